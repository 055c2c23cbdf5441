/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes of a plan with symbols: each is a number at the symbols' hints, and the number (plus one) of an expression in the bundle; 0 where
 * it does not depend on symbols. What is filled in later goes on record as a patch (proto/bundle.h).
 */
#pragma once

#include "compiler/graph/graph.h"
#include "proto/bundle.h"

struct af_size {
        int64_t n;
        uint32_t x;
};
struct af_sizes {
        const struct af_graph *g;
        struct af_bundle_builder *builder;
        int64_t *hints;     /* per symbol */
        uint32_t *imported; /* per expression of the graph's pool: number in the bundle plus one; 0: not yet */
        uint32_t n_imported;
};
/* 0 or -ENOMEM. Memory from g->arena. */
int af_sizes_init(struct af_sizes *s, const struct af_graph *g, struct af_bundle_builder *builder) AF_WARN_UNUSED;
struct af_size af_size_const(int64_t n);
/* An expression of the graph's pool. */
struct af_size af_size_of(struct af_sizes *s, uint32_t expr);
/* ADD SUB MUL FLOORDIV MOD MAX MIN; constants fold. */
struct af_size af_size_op(struct af_sizes *s, enum af_expr_kind kind, struct af_size a, struct af_size b);
struct af_size af_size_align(struct af_sizes *s, struct af_size a, int64_t unit);
/* Puts size into a field of an element (or at a byte of BLOB) when the bundle is solved; nothing where it is constant. */
void af_size_patch(struct af_sizes *s, struct af_size a, enum af_bundle_section section, enum af_patch_kind kind, uint32_t index,
                   size_t field);
