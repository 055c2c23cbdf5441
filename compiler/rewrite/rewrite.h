/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graph to graph, before fusion: composite ops become the nodes that define them. Every pass keeps each output's bits: the reference
 * gives the same for the graph before and after.
 *
 * A node of the new graph keeps in `source` the number of the sender's node that it comes from, and says in `piece` whether it is only a
 * part of it. A pinned node is kept whole: what cannot be compiled in pieces goes to the framework as the sender wrote it.
 */
#pragma once

#include "compiler/graph/graph.h"

enum af_rewrite_kind { AF_REWRITE_DECOMPOSED, AF_REWRITE_NARROWED, AF_REWRITE_MOVED };
struct af_rewrite_note { /* for people */
        enum af_rewrite_kind kind;
        uint32_t source;  /* the sender's node */
        uint32_t n_nodes; /* that it became */
};
struct af_rewrite_notes {
        struct af_rewrite_note *items;
        uint32_t n, cap;
};

/*
 * The passes in order. pinned: per `source` number, true where the node stays whole; NULL: none. g stays as it is; *ret is a graph of its
 * own over the same arena, or g's copy where nothing matched. notes (may be NULL) collects what was done. 0 or -ENOMEM.
 */
int af_rewrite(const struct af_graph *g, const bool *pinned, struct af_graph *ret, struct af_rewrite_notes *notes) AF_WARN_UNUSED;
/* Composite nodes -> the nodes that define them. As af_rewrite. */
int af_rewrite_decompose(const struct af_graph *g, const bool *pinned, struct af_graph *ret, struct af_rewrite_notes *notes) AF_WARN_UNUSED;
/* Compares and indices of 64-bit integers in 32 bits, where that decides the same. As af_rewrite. */
int af_rewrite_narrow(const struct af_graph *g, const bool *pinned, struct af_graph *ret, struct af_rewrite_notes *notes) AF_WARN_UNUSED;
/*
 * Views up to what is in memory, concats and pads down to what is stored, equal nodes one, dead ones gone. As af_rewrite. Near-linear:
 * where the work a graph of its size may take is used up, views stay where they are.
 */
int af_rewrite_motion(const struct af_graph *g, const bool *pinned, struct af_graph *ret, struct af_rewrite_notes *notes) AF_WARN_UNUSED;

/* Whether op is a composite: it has no kernel and no evaluation of its own. */
bool af_rewrite_is_composite(enum af_op op);
/*
 * The definition of one composite node, n of g, as a graph in arena: its inputs are n's operands in order (scalar constants stay constants:
 * they are inputs that nobody reads), with dims in_dims[j], all static (but for a symbol
 * that stands for 1 where af_value_varies()); its outputs are n's, of dims out_dims. 0, -ENOMEM,
 * AF_GRAPH_E_INVALID: no composite, or no decomposition for these operands.
 */
int af_rewrite_define(struct af_arena *arena, const struct af_graph *g, const struct af_node *n, const int64_t *const *in_dims,
                      const int64_t *out_dims, struct af_graph *ret) AF_WARN_UNUSED;
