/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/driver/sizes.h"

#include <errno.h>
#include <string.h>

int af_sizes_init(struct af_sizes *s, const struct af_graph *g, struct af_bundle_builder *builder) {
        *s = (struct af_sizes){.g = g, .builder = builder};
        s->hints = af_arena_calloc(g->arena, g->n_symbols, sizeof(*s->hints));
        s->imported = af_arena_calloc(g->arena, g->exprs.n_exprs, sizeof(*s->imported));
        s->n_imported = g->exprs.n_exprs;
        if (!s->hints || !s->imported)
                return -ENOMEM;
        af_graph_hints(g, s->hints);
        for (uint32_t i = 0; i < g->n_symbols; i++) {
                struct af_bundle_symbol symbol = {
                        .min = g->symbols[i].min, .max = g->symbols[i].max, .multiple_of = g->symbols[i].multiple_of};
                af_bundle_add(builder, AF_SECTION_SYMBOLS, &symbol);
        }
        return 0;
}

struct af_size af_size_const(int64_t n) {
        return (struct af_size){.n = n};
}

static uint32_t add_expr(struct af_sizes *s, uint32_t kind, uint32_t a, uint32_t b, int64_t value) {
        struct af_bundle_expr e = {.kind = kind, .a = a, .b = b, .value = value};
        return af_bundle_add(s->builder, AF_SECTION_EXPRS, &e) + 1;
}

static uint32_t import(struct af_sizes *s, uint32_t id) {
        const struct af_expr *e = &s->g->exprs.exprs[id];
        if (id < s->n_imported && s->imported[id])
                return s->imported[id];
        uint32_t x;
        if (e->kind <= AF_EXPR_SYMBOL) {
                x = add_expr(s, e->kind, AF_NONE, AF_NONE, e->value);
        } else {
                uint32_t a = import(s, e->a), b = import(s, e->b); /* as deep as AF_EXPR_MAX_DEPTH */
                x = add_expr(s, e->kind, a - 1, b - 1, 0);
        }
        if (id < s->n_imported)
                s->imported[id] = x;
        return x;
}

struct af_size af_size_of(struct af_sizes *s, uint32_t expr) {
        struct af_size a = {0};
        if (af_expr_is_const(&s->g->exprs, expr, &a.n))
                return a;
        if (af_expr_eval(&s->g->exprs, expr, s->hints, &a.n))
                a.n = 0;
        a.x = import(s, expr);
        return a;
}

static int64_t floor_div(int64_t a, int64_t b) {
        return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t apply(enum af_expr_kind kind, int64_t a, int64_t b) {
        int64_t v = 0;
        bool over = kind == AF_EXPR_ADD   ? __builtin_add_overflow(a, b, &v)
                    : kind == AF_EXPR_SUB ? __builtin_sub_overflow(a, b, &v)
                    : kind == AF_EXPR_MUL ? __builtin_mul_overflow(a, b, &v)
                                          : false;
        if (over)
                return INT64_MAX;
        switch (kind) {
        case AF_EXPR_FLOORDIV:
                return b ? floor_div(a, b) : 0;
        case AF_EXPR_MOD:
                return b ? a - floor_div(a, b) * b : 0;
        case AF_EXPR_MAX:
                return AF_MAX(a, b);
        case AF_EXPR_MIN:
                return AF_MIN(a, b);
        default:
                return v;
        }
}

static uint32_t expr_of(struct af_sizes *s, struct af_size a) {
        return a.x ? a.x : add_expr(s, AF_EXPR_CONST, AF_NONE, AF_NONE, a.n);
}

struct af_size af_size_op(struct af_sizes *s, enum af_expr_kind kind, struct af_size a, struct af_size b) {
        struct af_size r = {.n = apply(kind, a.n, b.n)};
        if (!a.x && !b.x)
                return r;
        uint32_t xa = expr_of(s, a), xb = expr_of(s, b);
        r.x = add_expr(s, kind, xa - 1, xb - 1, 0);
        return r;
}

struct af_size af_size_align(struct af_sizes *s, struct af_size a, int64_t unit) {
        struct af_size up = af_size_op(s, AF_EXPR_ADD, a, af_size_const(unit - 1));
        return af_size_op(s, AF_EXPR_MUL, af_size_op(s, AF_EXPR_FLOORDIV, up, af_size_const(unit)), af_size_const(unit));
}

void af_size_patch(struct af_sizes *s, struct af_size a, enum af_bundle_section section, enum af_patch_kind kind, uint32_t index,
                   size_t field) {
        static const size_t sizes[AF_N_SECTIONS] = {[AF_SECTION_KERNELS] = sizeof(struct af_bundle_kernel),
                                                    [AF_SECTION_ARGS] = sizeof(struct af_bundle_arg),
                                                    [AF_SECTION_BUFFERS] = sizeof(struct af_bundle_buffer),
                                                    [AF_SECTION_TENSORS] = sizeof(struct af_bundle_tensor),
                                                    [AF_SECTION_BLOB] = 1};
        if (!a.x)
                return;
        struct af_bundle_patch p = {
                .section = section, .kind = kind, .offset = (uint32_t)(index * sizes[section] + field), .expr = a.x - 1};
        af_bundle_add(s->builder, AF_SECTION_PATCHES, &p);
}
