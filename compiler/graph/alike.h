/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of nodes that are alike: the same but for the numbers of nodes and values and for the sender's names, so that one kernel serves
 * both and what is found out about one holds for the other. Everything a compiler stage may read of a node and of the values around it
 * is part of the comparison: op, attributes, dtypes, shapes, strides, offsets, alignment, constants, memory updated in place. The order
 * of the operands of an op that commutes is not.
 */
#pragma once

#include "base/intern.h"
#include "compiler/graph/graph.h"

struct af_alike {
        const struct af_graph *g;
        const uint32_t *node_class, *value_class; /* equal numbers for nodes, and for values, that are alike by themselves */
        uint32_t n_classes;                       /* of nodes */
        uint32_t *local, *seen, now;              /* per value: number within the set that is written, valid where seen == now */
        uint32_t *words, cap_words;
        uint32_t *values, cap_values, n_values; /* of the set written last: its values by number within the set */
};

/* Looks at every node once. The graph keeps its nodes and values from here on. Memory: the graph's arena. 0 or -ENOMEM. */
int af_alike_init(struct af_alike *a, const struct af_graph *g) AF_WARN_UNUSED;
/*
 * A set of nodes, with the values that it stores (n_stored AF_NONE: not stated), as words: two sets are alike exactly if their words are
 * equal, and then a->values of the one correspond to a->values of the other. Nodes in topological order. *ret_words and a->values are
 * borrowed until the next call. 0 or -ENOMEM.
 */
int af_alike_write(struct af_alike *a, const uint32_t *nodes, uint32_t n_nodes, const uint32_t *stored, uint32_t n_stored,
                   const uint32_t **ret_words, uint32_t *ret_n_words) AF_WARN_UNUSED;
