/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of a node: which an op takes, what is missing, defaults, normal form. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/graph/internal.h"

#define BIT(key) (UINT64_C(1) << AF_ATTR_##key)

_Static_assert(AF_N_ATTRS <= 64, "sets of keys are 64 bits");

#define NORM    (BIT(AXIS) | BIT(EPSILON))
#define REDUCED (BIT(AXES) | BIT(KEEPDIMS))
#define ARG     (BIT(AXIS) | BIT(KEEPDIMS) | BIT(SELECT_LAST))

/* Keys that an op may have and those that it must have; reductions have REDUCED on top. */
static const struct {
        uint64_t allowed, required;
} op_keys[AF_N_OPS] = {
        [AF_OP_GELU] = {BIT(APPROXIMATE), 0},
        [AF_OP_LEAKY_RELU] = {BIT(ALPHA), 0},
        [AF_OP_CLIP] = {BIT(MIN) | BIT(MAX), 0},
        [AF_OP_BROADCAST] = {BIT(SHAPE), BIT(SHAPE)},
        [AF_OP_EXPAND] = {BIT(SHAPE), BIT(SHAPE)},
        [AF_OP_RESHAPE] = {BIT(SHAPE), BIT(SHAPE)},
        [AF_OP_SQUEEZE] = {BIT(AXES), 0},
        [AF_OP_UNSQUEEZE] = {BIT(AXES), BIT(AXES)},
        [AF_OP_GATHER] = {BIT(AXIS), 0},
        [AF_OP_OPAQUE] = {BIT(EFFECTS), 0},
        [AF_OP_TRANSPOSE] = {BIT(PERM), 0},
        [AF_OP_SLICE] = {BIT(STARTS) | BIT(STOPS) | BIT(STEPS), 0},
        [AF_OP_PAD] = {BIT(LOW) | BIT(HIGH), BIT(LOW) | BIT(HIGH)},
        [AF_OP_CONCAT] = {BIT(AXIS), BIT(AXIS)},
        [AF_OP_SPLIT] = {BIT(AXIS) | BIT(SIZES), BIT(SIZES)},
        [AF_OP_GATHER_ELEMENTS] = {BIT(AXIS), 0},
        [AF_OP_IOTA] = {BIT(SHAPE) | BIT(AXIS) | BIT(START) | BIT(STEP), BIT(SHAPE)},
        [AF_OP_CUMSUM] = {BIT(AXIS) | BIT(EXCLUSIVE) | BIT(REVERSE), BIT(AXIS)},
        [AF_OP_SOFTMAX] = {BIT(AXIS), 0},
        [AF_OP_LOG_SOFTMAX] = {BIT(AXIS), 0},
        [AF_OP_LAYER_NORM] = {NORM, 0},
        [AF_OP_RMS_NORM] = {NORM, 0},
        [AF_OP_GROUP_NORM] = {BIT(GROUPS) | BIT(EPSILON), BIT(GROUPS)},
        [AF_OP_INSTANCE_NORM] = {BIT(EPSILON), 0},
        [AF_OP_BATCH_NORM] = {BIT(EPSILON), 0},
        [AF_OP_VAR] = {BIT(CORRECTION), 0},
        [AF_OP_STD] = {BIT(CORRECTION), 0},
        [AF_OP_ARG_MAX] = {ARG, 0},
        [AF_OP_ARG_MIN] = {ARG, 0},
        [AF_OP_ONE_HOT] = {BIT(DEPTH) | BIT(AXIS), BIT(DEPTH)},
        [AF_OP_TRIU] = {BIT(DIAGONAL), 0},
        [AF_OP_TRIL] = {BIT(DIAGONAL), 0},
        [AF_OP_TILE] = {BIT(REPEATS), BIT(REPEATS)},
        [AF_OP_AXPY] = {BIT(ALPHA), 0},
        [AF_OP_SOFTPLUS] = {BIT(BETA), 0},
        [AF_OP_ELU] = {BIT(ALPHA), 0},
        [AF_OP_SELU] = {BIT(ALPHA) | BIT(GAMMA), 0},
        [AF_OP_CELU] = {BIT(ALPHA), 0},
        [AF_OP_HARDSIGMOID] = {BIT(ALPHA) | BIT(BETA), 0},
        [AF_OP_THRESHOLDED_RELU] = {BIT(ALPHA), 0},
        [AF_OP_ADDCMUL] = {BIT(ALPHA), 0},
        [AF_OP_ADDCDIV] = {BIT(ALPHA), 0},
};

/* What an absent attribute stands for, for INT, BOOL and FLOAT. */
static const struct {
        enum af_op op;
        enum af_attr_key key;
        double value;
} defaults[] = {
        {AF_OP_LEAKY_RELU, AF_ATTR_ALPHA, 0.01},
        {AF_OP_GATHER, AF_ATTR_AXIS, 0},
        {AF_OP_OPAQUE, AF_ATTR_EFFECTS, 0},
        {AF_OP_SPLIT, AF_ATTR_AXIS, 0},
        {AF_OP_GATHER_ELEMENTS, AF_ATTR_AXIS, 0},
        {AF_OP_IOTA, AF_ATTR_AXIS, 0},
        {AF_OP_IOTA, AF_ATTR_START, 0},
        {AF_OP_IOTA, AF_ATTR_STEP, 1},
        {AF_OP_CUMSUM, AF_ATTR_EXCLUSIVE, 0},
        {AF_OP_CUMSUM, AF_ATTR_REVERSE, 0},
        {AF_OP_SOFTMAX, AF_ATTR_AXIS, -1},
        {AF_OP_LOG_SOFTMAX, AF_ATTR_AXIS, -1},
        {AF_OP_LAYER_NORM, AF_ATTR_AXIS, -1},
        {AF_OP_LAYER_NORM, AF_ATTR_EPSILON, 1e-5},
        {AF_OP_RMS_NORM, AF_ATTR_AXIS, -1},
        {AF_OP_RMS_NORM, AF_ATTR_EPSILON, 1e-5},
        {AF_OP_GROUP_NORM, AF_ATTR_EPSILON, 1e-5},
        {AF_OP_INSTANCE_NORM, AF_ATTR_EPSILON, 1e-5},
        {AF_OP_BATCH_NORM, AF_ATTR_EPSILON, 1e-5},
        {AF_OP_VAR, AF_ATTR_CORRECTION, 1},
        {AF_OP_STD, AF_ATTR_CORRECTION, 1},
        {AF_OP_ARG_MAX, AF_ATTR_KEEPDIMS, 0},
        {AF_OP_ARG_MAX, AF_ATTR_SELECT_LAST, 0},
        {AF_OP_ARG_MIN, AF_ATTR_KEEPDIMS, 0},
        {AF_OP_ARG_MIN, AF_ATTR_SELECT_LAST, 0},
        {AF_OP_ONE_HOT, AF_ATTR_AXIS, -1},
        {AF_OP_TRIU, AF_ATTR_DIAGONAL, 0},
        {AF_OP_TRIL, AF_ATTR_DIAGONAL, 0},
        {AF_OP_AXPY, AF_ATTR_ALPHA, 1},
        {AF_OP_SOFTPLUS, AF_ATTR_BETA, 1},
        {AF_OP_ELU, AF_ATTR_ALPHA, 1},
        {AF_OP_SELU, AF_ATTR_ALPHA, 1.67326319217681884765625},
        {AF_OP_SELU, AF_ATTR_GAMMA, 1.05070102214813232421875},
        {AF_OP_CELU, AF_ATTR_ALPHA, 1},
        {AF_OP_HARDSIGMOID, AF_ATTR_ALPHA, 0.2},
        {AF_OP_HARDSIGMOID, AF_ATTR_BETA, 0.5},
        {AF_OP_THRESHOLDED_RELU, AF_ATTR_ALPHA, 1},
        {AF_OP_ADDCMUL, AF_ATTR_ALPHA, 1},
        {AF_OP_ADDCDIV, AF_ATTR_ALPHA, 1},
};

static bool reduces(const struct af_infer_ctx *ctx) {
        return ctx->info->shape_rule == AF_SHAPE_REDUCE;
}

static void field_of(enum af_attr_key key, char field[64]) {
        strcpy(field, ".attrs.");
        strncat(field, af_attr_name(key), 63 - strlen(field));
}

static void set_int(struct af_infer_ctx *ctx, enum af_attr_key key, int64_t v) {
        ctx->attrs[key] = (struct af_attr){.key = key, .i = v};
        ctx->has |= UINT64_C(1) << key;
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
        if (!(ctx->has & BIT(KEEPDIMS)))
                set_int(ctx, AF_ATTR_KEEPDIMS, 0);
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

        if (!(ctx->has & UINT64_C(1) << key))
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

static void fill_defaults(struct af_infer_ctx *ctx) {
        for (size_t i = 0; i < AF_ARRAY_SIZE(defaults); i++) {
                enum af_attr_key key = defaults[i].key;
                double v = defaults[i].value;
                if (defaults[i].op != ctx->op || ctx->has & UINT64_C(1) << key)
                        continue;
                set_int(ctx, key, (int64_t)v);
                if (af_attr_kind(key) == AF_ATTR_KIND_FLOAT)
                        ctx->attrs[key] = (struct af_attr){.key = key, .f = v};
        }
}

/* As number_normalise where the dtype is not known: whole numbers as integers. */
static void whole_normalise(struct af_infer_ctx *ctx, enum af_attr_key key) {
        struct af_attr *a = &ctx->attrs[key];
        bool whole = a->is_int || (a->f == trunc(a->f) && fabs(a->f) <= 0x1p53 && !(a->f == 0 && signbit(a->f)));

        *a = whole ? (struct af_attr){.key = key, .is_int = true, .i = a->is_int ? a->i : (int64_t)a->f}
                   : (struct af_attr){.key = key, .f = isnan(a->f) ? (double)NAN : a->f};
}

/* Numbers that the op computes with; bools as 0 and 1. */
static void numbers_normalise(struct af_infer_ctx *ctx, enum af_dtype dtype) {
        bool reals = !(ctx->info->dtypes & AF_DTYPE_BIT(AF_DTYPE_INT32));

        for (unsigned key = 0; key < AF_N_ATTRS; key++) {
                if (!(ctx->has & UINT64_C(1) << key))
                        continue;
                if (af_attr_kind(key) == AF_ATTR_KIND_BOOL)
                        set_int(ctx, key, ctx->attrs[key].i != 0);
                if (af_attr_kind(key) == AF_ATTR_KIND_FLOAT && ctx->op == AF_OP_IOTA)
                        whole_normalise(ctx, key);
                else if (af_attr_kind(key) == AF_ATTR_KIND_FLOAT)
                        number_normalise(ctx, key, reals ? AF_DTYPE_FLOAT32 : dtype);
        }
}

/* Attribute axis, non-negative relative to rank. */
static void axis_normalise(struct af_infer_ctx *ctx, uint32_t rank) {
        set_int(ctx, AF_ATTR_AXIS, axis_of(ctx, ".attrs.axis", ctx->attrs[AF_ATTR_AXIS].i, rank));
}

static void op_attrs(struct af_infer_ctx *ctx, enum af_dtype dtype) {
        fill_defaults(ctx);
        numbers_normalise(ctx, dtype);
        if (reduces(ctx))
                reduce_attrs(ctx);
        switch (ctx->op) {
        case AF_OP_GELU:
                gelu_attrs(ctx);
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
        case AF_OP_ONE_HOT:
                axis_normalise(ctx, ctx->in[0].rank + 1);
                break;
        case AF_OP_IOTA:
                axis_normalise(ctx, ctx->attrs[AF_ATTR_SHAPE].n);
                break;
        default:
                if (ctx->has & BIT(AXIS))
                        axis_normalise(ctx, ctx->in[0].rank);
                break;
        }
}

void af_attrs_normalise(struct af_infer_ctx *ctx, const struct af_attr *attrs, uint32_t n_attrs, enum af_dtype dtype) {
        uint64_t allowed = op_keys[ctx->op].allowed | (reduces(ctx) ? REDUCED : 0), required = op_keys[ctx->op].required;
        char field[64];

        ctx->has = 0;
        if (allowed == 0 && n_attrs == 0)
                return; /* as most ops */
        for (uint32_t i = 0; i < n_attrs; i++) {
                enum af_attr_key key = attrs[i].key;
                if (key >= AF_N_ATTRS)
                        continue;
                if (allowed & UINT64_C(1) << key) {
                        ctx->attrs[key] = attrs[i];
                        ctx->has |= UINT64_C(1) << key;
                } else {
                        field_of(key, field);
                        af_infer_fail(ctx, field, "%s takes no such attribute", ctx->info->name);
                }
        }
        for (unsigned key = 0; key < AF_N_ATTRS; key++)
                if (required & ~ctx->has & UINT64_C(1) << key) {
                        field_of(key, field);
                        af_infer_fail(ctx, field, "missing: %s needs it", ctx->info->name);
                }
        if (!ctx->failed && !ctx->error)
                op_attrs(ctx, dtype);
}
