/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a set of nodes moves between memory and a kernel, counted by values: the lower bound that a kernel of one turn over its data comes
 * near. Symbols count as af_graph_hints says.
 */
#pragma once

#include "compiler/graph/graph.h"

/* Bytes of a value's elements. 0 where that overflows. */
int64_t af_value_bytes(const struct af_graph *g, uint32_t value);
/* Bytes that node reads of operand k: all of it, but no more than it gives where it picks elements (slices, gathers). */
int64_t af_operand_bytes(const struct af_graph *g, uint32_t node, uint32_t k);
/*
 * Bytes of a set of nodes (ascending): each value that no member makes is read once, as far as members touch it; each stored value is
 * written once. Scalar constants are part of the code.
 */
int64_t af_traffic(const struct af_graph *g, const uint32_t *nodes, uint32_t n_nodes, const uint32_t *stored, uint32_t n_stored);
