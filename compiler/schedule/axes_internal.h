/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by axes.c (resolves) and axes_merge.c (orders and merges). */
#pragma once

#include "compiler/schedule/axes.h"

struct raw_use {
        struct af_use use;
        struct af_dims dims, base_dims; /* of the use, of its base */
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
bool af_value_empty(const struct af_graph *g, uint32_t value);
int af_space_merge(struct build *b) AF_WARN_UNUSED;
