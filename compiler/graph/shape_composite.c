/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of the composites. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "compiler/graph/shape.h"

static void same_as_first(const struct af_infer_ctx *ctx, struct af_inferred *ret) {
        ret->rank = ctx->in[0].rank;
        ret->dims = ctx->in[0].dims;
}

void af_infer_arg_reduce(struct af_infer_ctx *ctx, struct af_inferred *ret) {
        const struct af_infer_operand *in = &ctx->in[0];
        bool all = !(ctx->has & UINT64_C(1) << AF_ATTR_AXIS);
        uint32_t *dims = af_infer_dims_alloc(ctx, in->rank);
        uint32_t rank = 0;
        int64_t v;

        for (uint32_t i = 0; i < in->rank && dims; i++) {
                bool reduced = all || ctx->attrs[AF_ATTR_AXIS].i == i;
                if (reduced && af_expr_is_const(ctx->exprs, in->dims[i], &v) && v == 0) {
                        af_infer_fail(ctx, ".inputs[0]", "%s of nothing: axis %u has size 0", ctx->info->name, i);
                        return;
                }
                if (!reduced)
                        dims[rank++] = in->dims[i];
                else if (ctx->attrs[AF_ATTR_KEEPDIMS].i && !af_infer_const(ctx, 1, &dims[rank++]))
                        return;
        }
        ret->rank = rank;
        ret->dims = dims;
}

void af_infer_one_hot(struct af_infer_ctx *ctx, struct af_inferred *ret) {
        const struct af_infer_operand *in = &ctx->in[0];
        uint32_t axis = (uint32_t)ctx->attrs[AF_ATTR_AXIS].i;
        int64_t depth = ctx->attrs[AF_ATTR_DEPTH].i;
        char field[32];

        for (uint32_t i = 1; i < ctx->n_in; i++)
                if (ctx->in[i].rank > 0) {
                        snprintf(field, sizeof(field), ".inputs[%u]", i);
                        af_infer_fail(ctx, field, "the value has shape %s, not []",
                                      af_infer_dims_text(ctx, ctx->in[i].dims, ctx->in[i].rank));
                        return;
                }
        if (depth < 0 || in->rank + 1 > AF_LIMIT_RANK) {
                if (depth < 0)
                        af_infer_fail(ctx, ".attrs.depth", "%lld is negative", (long long)depth);
                else
                        af_infer_fail(ctx, ".inputs[0]", "the rank would be beyond the limit of %u", AF_LIMIT_RANK);
                return;
        }
        uint32_t *dims = af_infer_dims_alloc(ctx, in->rank + 1);
        if (!dims || !af_infer_const(ctx, depth, &dims[axis]))
                return;
        for (uint32_t i = 0; i < in->rank; i++)
                dims[i + (i >= axis)] = in->dims[i];
        ret->rank = in->rank + 1;
        ret->dims = dims;
}

/* Weight and bias of a norm over the axes from attribute axis on: as those, or broadcast to them. */
void af_infer_norm(struct af_infer_ctx *ctx, struct af_inferred *ret) {
        const struct af_infer_operand *x = &ctx->in[0];
        uint32_t normalised = x->rank - (uint32_t)ctx->attrs[AF_ATTR_AXIS].i;
        char field[32];
        int64_t v;

        for (uint32_t i = 1; i < ctx->n_in; i++) {
                const struct af_infer_operand *in = &ctx->in[i];
                bool fits = in->rank <= normalised;
                for (uint32_t k = 0; k < in->rank && fits; k++)
                        fits = (af_expr_is_const(ctx->exprs, in->dims[k], &v) && v == 1) ||
                               af_dims_equal(ctx->exprs, &ctx->facts, in->dims[k], x->dims[x->rank - in->rank + k]);
                if (fits)
                        continue;
                snprintf(field, sizeof(field), ".inputs[%u]", i);
                af_infer_fail(ctx, field, "shape %s does not broadcast to the normalised axes %s",
                              af_infer_dims_text(ctx, in->dims, in->rank),
                              af_infer_dims_text(ctx, x->dims + (x->rank - normalised), normalised));
                return;
        }
        same_as_first(ctx, ret);
}

static bool groups_fit(struct af_infer_ctx *ctx, uint32_t channels) {
        int64_t groups = ctx->attrs[AF_ATTR_GROUPS].i, v;
        uint32_t by, rest;

        if (groups < 1) {
                af_infer_fail(ctx, ".attrs.groups", "%lld groups", (long long)groups);
                return false;
        }
        if (!af_infer_const(ctx, groups, &by) || !af_infer_expr(ctx, ".attrs.groups", AF_EXPR_MOD, channels, by, &rest))
                return false;
        if (af_expr_is_const(ctx->exprs, rest, &v) && v == 0)
                return true;
        af_infer_fail(ctx, ".attrs.groups", "%lld groups do not divide the %s channels", (long long)groups,
                      af_infer_dims_text(ctx, &channels, 1));
        return false;
}

void af_infer_channels(struct af_infer_ctx *ctx, struct af_inferred *ret) {
        const struct af_infer_operand *x = &ctx->in[0];
        uint32_t least = ctx->op == AF_OP_INSTANCE_NORM ? 3 : 2;
        char field[32];

        if (x->rank < least) {
                af_infer_fail(ctx, ".inputs[0]", "rank %u, but %s needs at least %u: batch, channels%s", x->rank, ctx->info->name, least,
                              least == 3 ? " and what is normalised" : "");
                return;
        }
        for (uint32_t i = 1; i < ctx->n_in; i++)
                if (ctx->in[i].rank != 1 || !af_dims_equal(ctx->exprs, &ctx->facts, ctx->in[i].dims[0], x->dims[1])) {
                        snprintf(field, sizeof(field), ".inputs[%u]", i);
                        af_infer_fail(ctx, field, "shape %s, not one per channel %s",
                                      af_infer_dims_text(ctx, ctx->in[i].dims, ctx->in[i].rank), af_infer_dims_text(ctx, &x->dims[1], 1));
                        return;
                }
        if (ctx->op == AF_OP_GROUP_NORM && !groups_fit(ctx, x->dims[1]))
                return;
        same_as_first(ctx, ret);
}
