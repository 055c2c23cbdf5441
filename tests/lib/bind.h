/* SPDX-License-Identifier: Apache-2.0 */
/* Values of symbols that are worth trying. */
#pragma once

#include "compiler/graph/graph.h"

/*
 * Values number k for the symbols of g: borders of their ranges and of tiles, odd ones, none, within their guards. False: no more.
 * most: values of more elements are avoided: the largest symbols are halved, as far as their ranges let them. 0: no limit.
 */
bool bind_choice(const struct af_graph *g, uint32_t k, int64_t most, int64_t *ret_values);
/* Whether some node of a graph of known sizes reduces nothing where it wants some: such a size must be refused. */
bool bind_reduces_nothing(const struct af_graph *g);
