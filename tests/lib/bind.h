/* SPDX-License-Identifier: Apache-2.0 */
/* A graph with symbols at given values, and values worth trying. */
#pragma once

#include "compiler/graph/graph.h"

/* Every size of g becomes the number that it is for these values of its symbols. 0, -ENOMEM, or what the expressions say. */
int bind_symbols(struct af_graph *g, const int64_t *values);
/* Values number k for the symbols of g: borders of their ranges and of tiles, odd ones, none, within their guards. False: no more. */
bool bind_choice(const struct af_graph *g, uint32_t k, int64_t *ret_values);
