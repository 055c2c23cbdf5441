/* SPDX-License-Identifier: Apache-2.0 */
/* Values of symbols that are worth trying. */
#pragma once

#include "compiler/graph/graph.h"

/* Values number k for the symbols of g: borders of their ranges and of tiles, odd ones, none, within their guards. False: no more. */
bool bind_choice(const struct af_graph *g, uint32_t k, int64_t *ret_values);
/* Whether some node of a graph of known sizes reduces nothing where it wants some: such a size must be refused. */
bool bind_reduces_nothing(const struct af_graph *g);
