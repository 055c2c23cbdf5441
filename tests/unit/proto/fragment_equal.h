/* SPDX-License-Identifier: Apache-2.0 */
/* Whether two fragments say the same, field by field; expressions by their text, since ids belong to a pool. */
#pragma once

#include <string.h>

#include "proto/fragment.h"

static inline bool same_text(const char *a, const char *b) {
        return a && b ? strcmp(a, b) == 0 : a == b;
}

static inline bool same_expr(const struct af_fragment *f, uint32_t a, const struct af_fragment *g, uint32_t b) {
        struct af_buf x = AF_BUF_INIT, y = AF_BUF_INIT;

        af_expr_print(&f->exprs, a, NULL, &x);
        af_expr_print(&g->exprs, b, NULL, &y);
        bool same = x.size == y.size && memcmp(x.data, y.data, x.size) == 0;
        af_buf_deinit(&x);
        af_buf_deinit(&y);
        return same;
}

static inline bool same_exprs(const struct af_fragment *f, const uint32_t *a, const struct af_fragment *g, const uint32_t *b, uint32_t n) {
        for (uint32_t i = 0; i < n; i++)
                if (!same_expr(f, a[i], g, b[i]))
                        return false;
        return true;
}

static inline bool same_tensor(const struct af_fragment *f, const struct af_fragment_tensor *a, const struct af_fragment *g,
                               const struct af_fragment_tensor *b) {
        return same_text(a->name, b->name) && a->dtype == b->dtype && a->rank == b->rank && a->has_strides == b->has_strides &&
               same_exprs(f, a->dims, g, b->dims, a->rank) && (!a->has_strides || same_exprs(f, a->strides, g, b->strides, a->rank));
}

static inline bool same_attr(const struct af_fragment *f, const struct af_attr *a, const struct af_fragment *g, const struct af_attr *b) {
        if (a->key != b->key || a->i != b->i || a->is_int != b->is_int || a->n != b->n)
                return false;
        /* NaN has no payload in JSON */
        if (memcmp(&a->f, &b->f, sizeof(a->f)) != 0 && !(a->f != a->f && b->f != b->f))
                return false;
        switch (af_attr_kind(a->key)) {
        case AF_ATTR_KIND_INTS:
                return a->n == 0 || memcmp(a->ints, b->ints, a->n * sizeof(*a->ints)) == 0;
        case AF_ATTR_KIND_DIMS:
                return same_exprs(f, a->dims, g, b->dims, a->n);
        case AF_ATTR_KIND_STRING:
                return same_text(a->s, b->s);
        default:
                return true;
        }
}

static inline bool same_node(const struct af_fragment *f, const struct af_fragment_node *a, const struct af_fragment *g,
                             const struct af_fragment_node *b) {
        if (!same_text(a->name, b->name) || !same_text(a->op, b->op) || !same_text(a->origin, b->origin) || a->n_inputs != b->n_inputs ||
            a->n_attrs != b->n_attrs || a->n_outputs != b->n_outputs)
                return false;
        for (uint32_t i = 0; i < a->n_inputs; i++)
                if (!same_text(a->inputs[i], b->inputs[i]))
                        return false;
        for (uint32_t i = 0; i < a->n_attrs; i++)
                if (!same_attr(f, &a->attrs[i], g, &b->attrs[i]))
                        return false;
        for (uint32_t i = 0; i < a->n_outputs; i++)
                if (!same_tensor(f, &a->outputs[i], g, &b->outputs[i]))
                        return false;
        return true;
}

static inline bool same_interface(const struct af_fragment *f, const struct af_fragment *g) {
        for (uint32_t i = 0; i < f->n_symbols; i++) {
                const struct af_fragment_symbol *a = &f->symbols[i], *b = &g->symbols[i];
                if (!same_text(a->name, b->name) || a->min != b->min || a->max != b->max || a->hint != b->hint ||
                    a->multiple_of != b->multiple_of)
                        return false;
        }
        for (uint32_t i = 0; i < f->n_inputs; i++) {
                const struct af_fragment_input *a = &f->inputs[i], *b = &g->inputs[i];
                if (!same_tensor(f, &a->t, g, &b->t) || !same_expr(f, a->offset, g, b->offset) || a->align != b->align ||
                    !same_text(a->buffer, b->buffer) || a->host != b->host)
                        return false;
        }
        for (uint32_t i = 0; i < f->n_outputs; i++) {
                const struct af_fragment_output *a = &f->outputs[i], *b = &g->outputs[i];
                if (!same_text(a->value, b->value) || !same_text(a->alias_of, b->alias_of) || a->has_strides != b->has_strides ||
                    a->n_strides != b->n_strides || !same_exprs(f, a->strides, g, b->strides, a->n_strides))
                        return false;
        }
        return true;
}

static inline bool same_fragment(const struct af_fragment *f, const struct af_fragment *g) {
        if (!same_text(f->name, g->name) || !same_text(f->soc, g->soc) || !same_text(f->toolchain, g->toolchain) || f->twin != g->twin ||
            f->numerics != g->numerics || f->n_symbols != g->n_symbols || f->n_inputs != g->n_inputs || f->n_constants != g->n_constants ||
            f->n_nodes != g->n_nodes || f->n_outputs != g->n_outputs || f->n_values != g->n_values ||
            f->n_constant_bytes != g->n_constant_bytes || !same_interface(f, g))
                return false;
        for (uint32_t i = 0; i < f->n_constants; i++) {
                const struct af_fragment_constant *a = &f->constants[i], *b = &g->constants[i];
                if (!same_tensor(f, &a->t, g, &b->t) || a->n_bytes != b->n_bytes || memcmp(a->bytes, b->bytes, a->n_bytes) != 0)
                        return false;
        }
        for (uint32_t i = 0; i < f->n_nodes; i++)
                if (!same_node(f, &f->nodes[i], g, &g->nodes[i]))
                        return false;
        return true;
}
