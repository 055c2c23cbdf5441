/* SPDX-License-Identifier: Apache-2.0 */
/* Canonical numbering of a graph. Private to compiler/graph. */
#pragma once

#include "compiler/graph/graph.h"

struct af_canon_hash {
        uint64_t lo, hi;
};

/* Everything is in the caller's arena; AF_NONE stands for what is dead, unused or merged away. */
struct af_canon_order {
        uint32_t *nodes, *inputs, *constants; /* canonical place -> number in the graph */
        uint32_t n_nodes, n_inputs, n_constants;
        uint32_t *node_number, *input_slot, *constant_slot; /* number in the graph -> canonical place */
        uint32_t *value_of;                                 /* value -> value that stands for it: equal constants are one */
        uint8_t *swapped;                                   /* per node: its two operands change places */
};

/* Linear in the size of g but for the ordering of readers of one input updated in place. 0 or -ENOMEM. */
int af_canon_order_make(const struct af_graph *g, struct af_arena *arena, struct af_canon_order *ret) AF_WARN_UNUSED;
/* Operand j of node n as written: value id of g, commutative operands in canonical order, merged constants followed. */
uint32_t af_canon_operand(const struct af_graph *g, const struct af_canon_order *o, uint32_t n, uint32_t j);
