/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by axes.c (resolves) and axes_merge.c (orders and merges). */
#pragma once

#include "compiler/schedule/axes.h"

struct address { /* a sliced input: what steps over its memory, outermost first */
        uint32_t n, atom[AF_ATOMS_MAX];
        int64_t stride[AF_ATOMS_MAX];
        int64_t offset;
};
struct raw_use {
        struct af_use use;
        struct address *address;        /* NULL: the base's dimensions at its strides */
        struct af_dims dims, base_dims; /* of the use, of its base */
        const struct af_store *store;   /* a stored output */
        uint32_t reduced_dims;          /* a reduction's operand: bits over dims */
};
struct build {
        struct af_arena *arena;
        const struct af_members *m;
        struct af_space *space;
        const char **why;
        struct af_atoms atoms;
        struct af_dims *node_dims; /* per node */
        struct af_dims *
                *shared; /* per node: a view or broadcast that is stored as well: all its uses have these axes; NULL: each its own */
        bool *read;      /* per node: by another member */
        struct sliced {
                struct af_dims dims;
                struct address *address;
        } * *sliced;          /* per node: a slice of memory that was met before; NULL */
        struct af_arena temp; /* uses: large, and needed no longer than this */
        struct raw_use *uses;
        uint32_t n_uses, cap_uses;
        uint32_t *chain, cap_chain;
        enum af_packing packing;
        bool share;
        struct input_dims {
                uint32_t value;
                struct af_dims dims;
        } * inputs; /* where shared */
        uint32_t n_inputs, cap_inputs;
};
/* axes_view.c: whether a node only says which elements are read. */
bool af_view_transparent(enum af_op op);
/* One such node of the use: from its operand's dimensions to its result's. */
int af_view_through(struct build *b, uint32_t position, struct raw_use *u) AF_WARN_UNUSED;
int af_view_load_dims(struct build *b, uint32_t value, struct af_dims *ret) AF_WARN_UNUSED;
int af_view_fresh_atoms(struct build *b, struct af_dims *d) AF_WARN_UNUSED;
/* Aligned at the right, as numpy does: equal dimensions are one axis, a 1 is a broadcast. */
int af_view_unify_right(struct build *b, const struct af_dims *in, const struct af_dims *out) AF_WARN_UNUSED;
int af_view_unfit(struct build *b, const char *why);
/* The stride of every dimension of a use of memory (0 where the dimension is 1), and its first element. */
int af_view_strides(struct build *b, const struct raw_use *u, int64_t *ret_strides, int64_t *ret_offset) AF_WARN_UNUSED;
int af_view_address_add(struct build *b, struct address *a, uint32_t atom, int64_t stride) AF_WARN_UNUSED;
bool af_value_empty(const struct af_graph *g, uint32_t value);
int af_space_merge(struct build *b) AF_WARN_UNUSED;
