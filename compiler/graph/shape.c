/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/graph/shape.h"

#include <string.h>

#define MAX_FACTORS 256u /* of all dims of one shape, products taken apart */

/* One axis of a broadcast: the size that both take. False with a diagnostic. */
static bool broadcast_dim(struct af_infer_ctx *ctx, uint32_t operand, uint32_t a, uint32_t b, uint32_t *ret) {
        int64_t va = 0, vb = 0;
        bool const_a = af_expr_is_const(ctx->exprs, a, &va), const_b = af_expr_is_const(ctx->exprs, b, &vb);

        if (a == b || (const_b && vb == 1)) {
                *ret = a;
        } else if (const_a && va == 1) {
                *ret = b;
        } else if (af_dims_equal(ctx->exprs, &ctx->facts, a, b)) {
                *ret = const_b ? b : a;
        } else {
                char field[32];
                strcpy(field, ".inputs[0]");
                field[8] = (char)('0' + operand);
                af_infer_fail(ctx, field, "shape %s does not broadcast: its %s meets %s and the two are not %s",
                              af_infer_dims_text(ctx, ctx->in[operand].dims, ctx->in[operand].rank), af_infer_dims_text(ctx, &b, 1),
                              af_infer_dims_text(ctx, &a, 1), const_a && const_b ? "equal" : "known to be equal");
                return false;
        }
        return true;
}

static void broadcast_shape(struct af_infer_ctx *ctx, struct af_inferred *ret) {
        uint32_t rank = 0;

        for (uint32_t i = 0; i < ctx->n_in; i++)
                rank = AF_MAX(rank, ctx->in[i].rank);
        uint32_t *dims = af_infer_dims_alloc(ctx, rank);
        if (!dims)
                return;
        for (uint32_t axis = 0; axis < rank; axis++) {
                bool first = true;
                for (uint32_t i = 0; i < ctx->n_in; i++) {
                        const struct af_infer_operand *in = &ctx->in[i];
                        if (axis + in->rank < rank)
                                continue;
                        uint32_t d = in->dims[axis + in->rank - rank];
                        if (first)
                                dims[axis] = d;
                        else if (!broadcast_dim(ctx, i, dims[axis], d, &dims[axis]))
                                return;
                        first = false;
                }
        }
        ret->rank = rank;
        ret->dims = dims;
}

/* Copy of attribute `shape` that may be changed; false with a diagnostic for a bad rank or a dim that is negative (-1 aside). */
static bool shape_attr(struct af_infer_ctx *ctx, uint32_t **ret_dims, uint32_t *ret_unknown) {
        struct af_attr *a = &ctx->attrs[AF_ATTR_SHAPE];
        int64_t v;

        *ret_unknown = AF_NONE;
        if (a->n > AF_LIMIT_RANK) {
                af_infer_fail(ctx, ".attrs.shape", "rank %u is beyond the limit of %u", a->n, AF_LIMIT_RANK);
                return false;
        }
        uint32_t *dims = af_infer_dims_alloc(ctx, a->n);
        if (!dims)
                return false;
        for (uint32_t i = 0; i < a->n; i++) {
                dims[i] = a->dims[i];
                if (!af_expr_is_const(ctx->exprs, dims[i], &v) || v >= 0)
                        continue;
                if (v < -1) {
                        af_infer_fail(ctx, ".attrs.shape", "negative size %lld", (long long)v);
                        return false;
                }
                *ret_unknown = i;
        }
        a->dims = dims;
        *ret_dims = dims;
        return true;
}

static void to_shape(struct af_infer_ctx *ctx, struct af_inferred *ret) {
        const struct af_infer_operand *in = &ctx->in[0];
        uint32_t *dims, unknown, n = ctx->attrs[AF_ATTR_SHAPE].n;
        int64_t v;

        if (!shape_attr(ctx, &dims, &unknown))
                return;
        if (in->rank > n) {
                af_infer_fail(ctx, ".attrs.shape", "rank %u is less than the operand's %u", n, in->rank);
                return;
        }
        for (uint32_t i = 0; i < n; i++) {
                bool keep = af_expr_is_const(ctx->exprs, dims[i], &v) && v == -1;
                bool fresh = i < n - in->rank;
                if (keep && fresh) {
                        af_infer_fail(ctx, ".attrs.shape", "-1 keeps an axis, but axis %u is new", i);
                        return;
                }
                if (fresh)
                        continue;
                uint32_t d = in->dims[i - (n - in->rank)];
                if (keep)
                        dims[i] = d;
                bool unit = af_expr_is_const(ctx->exprs, d, &v) && v == 1;
                if (!unit && !af_dims_equal(ctx->exprs, &ctx->facts, d, dims[i])) {
                        af_infer_fail(ctx, ".attrs.shape", "%s does not broadcast to %s", af_infer_dims_text(ctx, in->dims, in->rank),
                                      af_infer_dims_text(ctx, dims, n));
                        return;
                }
        }
        ret->rank = n;
        ret->dims = dims;
}

static void reduce_shape(struct af_infer_ctx *ctx, struct af_inferred *ret) {
        const struct af_infer_operand *in = &ctx->in[0];
        const struct af_attr *axes = &ctx->attrs[AF_ATTR_AXES];
        uint32_t *dims = af_infer_dims_alloc(ctx, in->rank);
        uint32_t next = 0, rank = 0;
        int64_t v;

        for (uint32_t i = 0; i < in->rank && dims; i++) {
                bool reduced = next < axes->n && axes->ints[next] == i;
                next += reduced;
                if (!reduced) {
                        dims[rank++] = in->dims[i];
                        continue;
                }
                if (af_op_wants_some(ctx->op) && af_expr_is_const(ctx->exprs, in->dims[i], &v) && v == 0)
                        af_infer_fail(ctx, ".attrs.axes", "%s of nothing: axis %u has size 0", ctx->info->name, i);
                if (ctx->attrs[AF_ATTR_KEEPDIMS].i && !af_infer_const(ctx, 1, &dims[rank++]))
                        return;
        }
        ret->rank = rank;
        ret->dims = dims;
}

/* A product of dims taken apart: a constant and symbolic factors. */
struct factors {
        int64_t constant;
        uint32_t ids[MAX_FACTORS];
        uint32_t n;
        bool zero, overflow;
};

static void factors_add(const struct af_expr_pool *exprs, uint32_t id, struct factors *f) {
        uint32_t stack[AF_EXPR_MAX_DEPTH * 2 + 2];
        uint32_t n = 0;
        int64_t v;

        stack[n++] = id;
        while (n > 0) {
                id = stack[--n];
                if (af_expr_is_const(exprs, id, &v)) {
                        f->zero |= v == 0;
                        if (v != 0)
                                f->overflow |= __builtin_mul_overflow(f->constant, v, &f->constant);
                } else if (exprs->exprs[id].kind == AF_EXPR_MUL && n + 2 <= AF_ARRAY_SIZE(stack)) {
                        stack[n++] = exprs->exprs[id].a;
                        stack[n++] = exprs->exprs[id].b;
                } else if (f->n < MAX_FACTORS) {
                        f->ids[f->n++] = id;
                } else {
                        f->overflow = true;
                        return;
                }
        }
}

/* Strikes factors that both have. */
static void factors_cancel(struct factors *a, struct factors *b) {
        for (uint32_t i = 0; i < a->n;) {
                uint32_t j = 0;
                while (j < b->n && b->ids[j] != a->ids[i])
                        j++;
                if (j == b->n) {
                        i++;
                        continue;
                }
                b->ids[j] = b->ids[--b->n];
                a->ids[i] = a->ids[--a->n];
        }
}

static void factors_of(const struct af_expr_pool *exprs, const uint32_t *dims, uint32_t rank, uint32_t skip, struct factors *f) {
        *f = (struct factors){.constant = 1};
        for (uint32_t i = 0; i < rank; i++)
                if (i != skip)
                        factors_add(exprs, dims[i], f);
}

/* The size that -1 stands for: have / others. False with a diagnostic. */
static bool solve_unknown(struct af_infer_ctx *ctx, const struct factors *have, const struct factors *others, uint32_t *ret) {
        if (others->zero) {
                af_infer_fail(ctx, ".attrs.shape", "-1 could be any size: another is 0");
                return false;
        }
        if (have->zero)
                return af_infer_const(ctx, 0, ret);
        if (others->n > 0 || have->constant % others->constant != 0) {
                af_infer_fail(ctx, ".attrs.shape", "no size for -1 can be shown to keep the number of elements");
                return false;
        }
        if (!af_infer_const(ctx, have->constant / others->constant, ret))
                return false;
        for (uint32_t i = 0; i < have->n; i++)
                if (!af_infer_expr(ctx, ".attrs.shape", AF_EXPR_MUL, *ret, have->ids[i], ret))
                        return false;
        return true;
}

static void reshape_shape(struct af_infer_ctx *ctx, struct af_inferred *ret) {
        const struct af_infer_operand *in = &ctx->in[0];
        uint32_t *dims, unknown, n = ctx->attrs[AF_ATTR_SHAPE].n, n_unknown = 0;
        struct factors have, want;
        int64_t v;

        if (!shape_attr(ctx, &dims, &unknown))
                return;
        for (uint32_t i = 0; i < n; i++)
                n_unknown += af_expr_is_const(ctx->exprs, dims[i], &v) && v == -1;
        factors_of(ctx->exprs, in->dims, in->rank, AF_NONE, &have);
        factors_of(ctx->exprs, dims, n, unknown, &want);
        if (n_unknown > 1 || have.overflow || want.overflow) {
                af_infer_fail(ctx, ".attrs.shape",
                              n_unknown > 1 ? "-1 stands in it more than once" : "the number of elements is beyond 64 bits");
                return;
        }
        factors_cancel(&have, &want);
        if (n_unknown == 1) {
                if (!solve_unknown(ctx, &have, &want, &dims[unknown]))
                        return;
        } else if (!(have.zero && want.zero) && (have.zero != want.zero || have.n > 0 || want.n > 0 || have.constant != want.constant)) {
                af_infer_fail(ctx, ".attrs.shape", "%s and %s are not known to have as many elements",
                              af_infer_dims_text(ctx, in->dims, in->rank), af_infer_dims_text(ctx, dims, n));
                return;
        }
        ret->rank = n;
        ret->dims = dims;
}

static void squeeze_shape(struct af_infer_ctx *ctx, struct af_inferred *ret) {
        const struct af_infer_operand *in = &ctx->in[0];
        const struct af_attr *axes = &ctx->attrs[AF_ATTR_AXES];
        uint32_t *dims = af_infer_dims_alloc(ctx, in->rank);
        uint32_t next = 0, rank = 0, one;

        if (!dims || !af_infer_const(ctx, 1, &one))
                return;
        for (uint32_t i = 0; i < in->rank; i++) {
                if (next == axes->n || axes->ints[next] != i) {
                        dims[rank++] = in->dims[i];
                        continue;
                }
                next++;
                if (!af_dims_equal(ctx->exprs, &ctx->facts, in->dims[i], one))
                        af_infer_fail(ctx, ".attrs.axes", "axis %u of %s is not 1", i, af_infer_dims_text(ctx, in->dims, in->rank));
        }
        ret->rank = rank;
        ret->dims = dims;
}

static void unsqueeze_shape(struct af_infer_ctx *ctx, struct af_inferred *ret) {
        const struct af_infer_operand *in = &ctx->in[0];
        const struct af_attr *axes = &ctx->attrs[AF_ATTR_AXES];
        uint32_t rank = in->rank + axes->n, next = 0;
        uint32_t *dims = af_infer_dims_alloc(ctx, rank);

        for (uint32_t i = 0; i < rank && dims; i++) {
                bool fresh = next < axes->n && axes->ints[next] == i;
                if (fresh && !af_infer_const(ctx, 1, &dims[i]))
                        return;
                if (!fresh)
                        dims[i] = in->dims[i - next];
                next += fresh;
        }
        ret->rank = rank;
        ret->dims = dims;
}

static void gather_shape(struct af_infer_ctx *ctx, struct af_inferred *ret) {
        const struct af_infer_operand *data = &ctx->in[0], *index = &ctx->in[1];
        uint32_t axis = (uint32_t)ctx->attrs[AF_ATTR_AXIS].i, rank = data->rank - 1 + index->rank;

        if (rank > AF_LIMIT_RANK) {
                af_infer_fail(ctx, ".inputs[1]", "the rank would be beyond the limit of %u", AF_LIMIT_RANK);
                return;
        }
        uint32_t *dims = af_infer_dims_alloc(ctx, rank);
        if (!dims)
                return;
        memcpy(dims, data->dims, axis * sizeof(*dims));
        if (index->rank > 0)
                memcpy(dims + axis, index->dims, index->rank * sizeof(*dims));
        memcpy(dims + axis + index->rank, data->dims + axis + 1, (data->rank - axis - 1) * sizeof(*dims));
        ret->rank = rank;
        ret->dims = dims;
}

static void same_shape(struct af_infer_ctx *ctx, struct af_inferred *ret) {
        if ((ctx->op == AF_OP_TRIU || ctx->op == AF_OP_TRIL) && ctx->in[0].rank < 2)
                af_infer_fail(ctx, ".inputs[0]", "rank %u, but %s needs rows and columns", ctx->in[0].rank, ctx->info->name);
        ret->rank = ctx->in[0].rank;
        ret->dims = ctx->in[0].dims;
}

static void declared_shape(struct af_infer_ctx *ctx, struct af_inferred *ret) {
        (void)ctx;
        (void)ret;
}

static void (*const rules[])(struct af_infer_ctx *, struct af_inferred *) = {
        [AF_SHAPE_SAME] = same_shape,
        [AF_SHAPE_BROADCAST] = broadcast_shape,
        [AF_SHAPE_TO_SHAPE] = to_shape,
        [AF_SHAPE_REDUCE] = reduce_shape,
        [AF_SHAPE_RESHAPE] = reshape_shape,
        [AF_SHAPE_SQUEEZE] = squeeze_shape,
        [AF_SHAPE_UNSQUEEZE] = unsqueeze_shape,
        [AF_SHAPE_GATHER] = gather_shape,
        [AF_SHAPE_DECLARED] = declared_shape,
        [AF_SHAPE_TRANSPOSE] = af_infer_transpose,
        [AF_SHAPE_SLICE] = af_infer_slice,
        [AF_SHAPE_PAD] = af_infer_pad,
        [AF_SHAPE_CONCAT] = af_infer_concat,
        [AF_SHAPE_SPLIT] = af_infer_split,
        [AF_SHAPE_GATHER_ELEMENTS] = af_infer_gather_elements,
        [AF_SHAPE_IOTA] = af_infer_iota,
        [AF_SHAPE_TILE] = af_infer_tile,
        [AF_SHAPE_ARG_REDUCE] = af_infer_arg_reduce,
        [AF_SHAPE_ONE_HOT] = af_infer_one_hot,
        [AF_SHAPE_NORM] = af_infer_norm,
        [AF_SHAPE_CHANNELS] = af_infer_channels,
};

void af_infer_shape(struct af_infer_ctx *ctx, struct af_inferred *ret) {
        ret->rank = 0;
        ret->dims = NULL;
        rules[ctx->info->shape_rule](ctx, ret);
}
