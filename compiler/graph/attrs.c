/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of a node: which an op takes, what is missing, defaults, normal form. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/graph/internal.h"

#define BIT(key) (1u << AF_ATTR_##key)

/* Keys that an op may have and those that it must have. */
static void attrs_of(const struct af_infer_ctx *ctx, uint32_t *ret_allowed, uint32_t *ret_required) {
        uint32_t allowed = 0, required = 0;

        if (ctx->info->cls == AF_CLASS_REDUCE)
                allowed = BIT(AXES) | BIT(KEEPDIMS);
        switch (ctx->op) {
        case AF_OP_GELU:
                allowed = BIT(APPROXIMATE);
                break;
        case AF_OP_LEAKY_RELU:
                allowed = BIT(ALPHA);
                break;
        case AF_OP_CLIP:
                allowed = BIT(MIN) | BIT(MAX);
                break;
        case AF_OP_BROADCAST:
        case AF_OP_EXPAND:
        case AF_OP_RESHAPE:
                allowed = required = BIT(SHAPE);
                break;
        case AF_OP_SQUEEZE:
                allowed = BIT(AXES);
                break;
        case AF_OP_UNSQUEEZE:
                allowed = required = BIT(AXES);
                break;
        case AF_OP_GATHER:
                allowed = BIT(AXIS);
                break;
        case AF_OP_OPAQUE:
                allowed = BIT(EFFECTS);
                break;
        default:
                break;
        }
        *ret_allowed = allowed;
        *ret_required = required;
}

static void field_of(enum af_attr_key key, char field[64]) {
        strcpy(field, ".attrs.");
        strncat(field, af_attr_name(key), 63 - strlen(field));
}

static void set_int(struct af_infer_ctx *ctx, enum af_attr_key key, int64_t v) {
        ctx->attrs[key] = (struct af_attr){.key = key, .i = v};
        ctx->has |= 1u << key;
}

static void set_axes(struct af_infer_ctx *ctx, int64_t *axes, uint32_t n) {
        ctx->attrs[AF_ATTR_AXES] = (struct af_attr){.key = AF_ATTR_AXES, .ints = axes, .n = n};
        ctx->has |= BIT(AXES);
}

/* Normal axis in [0, rank), or -1 with a diagnostic. */
static int64_t axis_of(struct af_infer_ctx *ctx, const char *field, int64_t axis, uint32_t rank) {
        int64_t n = axis < 0 ? axis + (int64_t)rank : axis;

        if (n >= 0 && n < (int64_t)rank)
                return n;
        af_infer_fail(ctx, field, "axis %lld is outside of rank %u", (long long)axis, rank);
        return -1;
}

/* The given axes, non-negative, sorted and unique, relative to rank. */
static void axes_normalise(struct af_infer_ctx *ctx, uint32_t rank) {
        const struct af_attr *given = &ctx->attrs[AF_ATTR_AXES];
        bool seen[AF_LIMIT_RANK * 2] = {false};
        uint32_t n = 0;

        for (uint32_t i = 0; i < given->n; i++) {
                int64_t axis = axis_of(ctx, ".attrs.axes", given->ints[i], rank);
                if (axis < 0)
                        return;
                if (seen[axis]) {
                        af_infer_fail(ctx, ".attrs.axes", "axis %lld is given twice", (long long)axis);
                        return;
                }
                seen[axis] = true;
        }
        int64_t *axes = af_arena_calloc(ctx->arena, given->n, sizeof(*axes));
        if (!axes) {
                ctx->error = -ENOMEM;
                return;
        }
        for (uint32_t axis = 0; axis < rank; axis++)
                if (seen[axis])
                        axes[n++] = axis;
        set_axes(ctx, axes, n);
}

/* Default axes: all of them, or for squeeze those that are 1. */
static void axes_default(struct af_infer_ctx *ctx, bool unit_only) {
        int64_t *axes = af_arena_calloc(ctx->arena, ctx->in[0].rank, sizeof(*axes));
        uint32_t n = 0;
        int64_t v;

        if (!axes) {
                ctx->error = -ENOMEM;
                return;
        }
        for (uint32_t i = 0; i < ctx->in[0].rank; i++)
                if (!unit_only || (af_expr_is_const(ctx->exprs, ctx->in[0].dims[i], &v) && v == 1))
                        axes[n++] = i;
        set_axes(ctx, axes, n);
}

static void reduce_attrs(struct af_infer_ctx *ctx) {
        set_int(ctx, AF_ATTR_KEEPDIMS, ctx->has & BIT(KEEPDIMS) ? ctx->attrs[AF_ATTR_KEEPDIMS].i != 0 : 0);
        if (!(ctx->has & BIT(AXES)))
                axes_default(ctx, false);
        else if (ctx->attrs[AF_ATTR_AXES].n == 0 && ctx->in[0].rank > 0)
                af_infer_fail_hint(ctx, ".attrs.axes", "leave axes out to reduce over all of them", "no axis is given");
        else
                axes_normalise(ctx, ctx->in[0].rank);
}

/* A number attribute of a float op: its double alone. Of an integer op: its exact integer alone. */
static void number_normalise(struct af_infer_ctx *ctx, enum af_attr_key key, enum af_dtype dtype) {
        struct af_attr *a = &ctx->attrs[key];
        char field[64];

        if (!(ctx->has & 1u << key))
                return;
        if (af_dtype_kind(dtype) == 'f') {
                double f = a->is_int ? (double)a->i : a->f;
                *a = (struct af_attr){.key = key, .f = isnan(f) ? (double)NAN : f};
        } else if (a->is_int) {
                *a = (struct af_attr){.key = key, .is_int = true, .i = a->i};
        } else if (a->f == trunc(a->f) && fabs(a->f) <= 0x1p53) {
                *a = (struct af_attr){.key = key, .is_int = true, .i = (int64_t)a->f};
        } else {
                field_of(key, field);
                af_infer_fail(ctx, field, "%g is no integer, but the op computes in %s", a->f, af_dtype_name(dtype));
        }
}

static void gelu_attrs(struct af_infer_ctx *ctx) {
        struct af_attr *a = &ctx->attrs[AF_ATTR_APPROXIMATE];

        if (!(ctx->has & BIT(APPROXIMATE))) {
                *a = (struct af_attr){.key = AF_ATTR_APPROXIMATE, .s = "none"};
                ctx->has |= BIT(APPROXIMATE);
        } else if (!a->s || (strcmp(a->s, "none") != 0 && strcmp(a->s, "tanh") != 0)) {
                af_infer_fail(ctx, ".attrs.approximate", "\"%s\" is neither \"none\" nor \"tanh\"", a->s ? a->s : "");
        }
}

static void op_attrs(struct af_infer_ctx *ctx, enum af_dtype dtype) {
        if (ctx->info->cls == AF_CLASS_REDUCE)
                reduce_attrs(ctx);
        switch (ctx->op) {
        case AF_OP_GELU:
                gelu_attrs(ctx);
                break;
        case AF_OP_LEAKY_RELU:
                if (!(ctx->has & BIT(ALPHA))) {
                        ctx->attrs[AF_ATTR_ALPHA] = (struct af_attr){.key = AF_ATTR_ALPHA, .f = 0.01};
                        ctx->has |= BIT(ALPHA);
                }
                number_normalise(ctx, AF_ATTR_ALPHA, AF_DTYPE_FLOAT32);
                break;
        case AF_OP_CLIP:
                number_normalise(ctx, AF_ATTR_MIN, dtype);
                number_normalise(ctx, AF_ATTR_MAX, dtype);
                break;
        case AF_OP_SQUEEZE:
                if (ctx->has & BIT(AXES))
                        axes_normalise(ctx, ctx->in[0].rank);
                else
                        axes_default(ctx, true);
                break;
        case AF_OP_UNSQUEEZE:
                if (ctx->in[0].rank + ctx->attrs[AF_ATTR_AXES].n > AF_LIMIT_RANK)
                        af_infer_fail(ctx, ".attrs.axes", "the rank would be beyond the limit of %u", AF_LIMIT_RANK);
                else
                        axes_normalise(ctx, ctx->in[0].rank + ctx->attrs[AF_ATTR_AXES].n);
                break;
        case AF_OP_GATHER:
                if (!(ctx->has & BIT(AXIS)))
                        set_int(ctx, AF_ATTR_AXIS, 0);
                set_int(ctx, AF_ATTR_AXIS, axis_of(ctx, ".attrs.axis", ctx->attrs[AF_ATTR_AXIS].i, ctx->in[0].rank));
                break;
        case AF_OP_OPAQUE:
                set_int(ctx, AF_ATTR_EFFECTS, ctx->has & BIT(EFFECTS) ? ctx->attrs[AF_ATTR_EFFECTS].i != 0 : 0);
                break;
        default:
                break;
        }
}

void af_attrs_normalise(struct af_infer_ctx *ctx, const struct af_attr *attrs, uint32_t n_attrs, enum af_dtype dtype) {
        uint32_t allowed, required;
        char field[64];

        attrs_of(ctx, &allowed, &required);
        ctx->has = 0;
        for (uint32_t i = 0; i < n_attrs; i++) {
                enum af_attr_key key = attrs[i].key;
                if (key >= AF_N_ATTRS)
                        continue;
                if (allowed & 1u << key) {
                        ctx->attrs[key] = attrs[i];
                        ctx->has |= 1u << key;
                } else {
                        field_of(key, field);
                        af_infer_fail(ctx, field, "%s takes no such attribute", ctx->info->name);
                }
        }
        for (unsigned key = 0; key < AF_N_ATTRS; key++)
                if (required & ~ctx->has & 1u << key) {
                        field_of(key, field);
                        af_infer_fail(ctx, field, "missing: %s needs it", ctx->info->name);
                }
        if (!ctx->failed && !ctx->error)
                op_attrs(ctx, dtype);
}
