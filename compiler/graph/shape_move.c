/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shape rules of the ops that move elements. Their attributes come into normal form here, where the operand's sizes are known: a
 * slice's bounds lie within the operand, and one that takes nothing or one element has step 1.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "compiler/graph/shape.h"

#define KNOWN_DEPTH 8 /* of max and min looked through for a proof, and quotients */

uint32_t *af_infer_dims_alloc(struct af_infer_ctx *ctx, uint32_t rank) {
        uint32_t *dims = af_arena_calloc(ctx->arena, rank, sizeof(*dims));

        if (!dims)
                ctx->error = -ENOMEM;
        return dims;
}

static bool add(struct af_infer_ctx *ctx, enum af_expr_kind kind, uint32_t a, uint32_t b, uint32_t *ret) {
        return af_expr_binary(ctx->exprs, kind, a, b, ret) == 0;
}

static bool number(struct af_infer_ctx *ctx, int64_t v, uint32_t *ret) {
        return af_expr_const(ctx->exprs, v, ret) == 0;
}

/* A term c * (x // d) of a sum, d a positive constant. */
struct quotient {
        uint32_t term, x;
        int64_t c, d;
};

static bool is_quotient(const struct af_expr_pool *exprs, uint32_t term, struct quotient *ret) {
        struct quotient q = {.term = term, .c = 1};
        const struct af_expr *e = &exprs->exprs[term];

        if (e->kind == AF_EXPR_MUL && af_expr_is_const(exprs, e->a, &q.c))
                e = &exprs->exprs[e->b];
        if (e->kind != AF_EXPR_FLOORDIV || !af_expr_is_const(exprs, e->b, &q.d) || q.d < 1)
                return false;
        q.x = e->a;
        *ret = q;
        return true;
}

static bool find_quotient(const struct af_expr_pool *exprs, uint32_t sum, struct quotient *ret) {
        while (exprs->exprs[sum].kind == AF_EXPR_ADD) {
                if (is_quotient(exprs, exprs->exprs[sum].b, ret))
                        return true;
                sum = exprs->exprs[sum].a;
        }
        return is_quotient(exprs, sum, ret);
}

/*
 * Whether e >= 0: by its range, or with a quotient replaced by its bound, x/d - (d-1)/d <= x // d <= x/d, all times d:
 * d (e - term) + c x >= 0 for c < 0, d (e - term) + c (x - d + 1) >= 0 for c > 0.
 */
static bool known_positive(struct af_infer_ctx *ctx, uint32_t e, unsigned depth) {
        struct quotient q;
        int64_t v, min, max;
        uint32_t c, d, rest, bound, low;

        if (af_expr_is_const(ctx->exprs, e, &v))
                return v >= 0;
        if (ctx->facts.mins) {
                af_expr_range(ctx->exprs, e, ctx->facts.mins, ctx->facts.maxs, &min, &max);
                if (min >= 0)
                        return true;
        }
        if (depth == 0 || !find_quotient(ctx->exprs, e, &q))
                return false;
        if (!number(ctx, q.c, &c) || !number(ctx, q.d, &d) || !number(ctx, q.c > 0 ? 1 - q.d : 0, &low) ||
            !add(ctx, AF_EXPR_SUB, e, q.term, &rest) || !add(ctx, AF_EXPR_MUL, rest, d, &rest) ||
            !add(ctx, AF_EXPR_ADD, q.x, low, &bound) || !add(ctx, AF_EXPR_MUL, bound, c, &bound) ||
            !add(ctx, AF_EXPR_ADD, rest, bound, &rest))
                return false;
        return known_positive(ctx, rest, depth - 1);
}

static bool known_le_at(struct af_infer_ctx *ctx, uint32_t a, uint32_t b, unsigned depth) {
        uint32_t diff;

        if (a == b)
                return true;
        if (depth == 0)
                return false;
        if (add(ctx, AF_EXPR_SUB, b, a, &diff) && known_positive(ctx, diff, KNOWN_DEPTH))
                return true;
        const struct af_expr x = ctx->exprs->exprs[a], y = ctx->exprs->exprs[b];
        if (x.kind == AF_EXPR_MIN && (known_le_at(ctx, x.a, b, depth - 1) || known_le_at(ctx, x.b, b, depth - 1)))
                return true;
        if (x.kind == AF_EXPR_MAX && known_le_at(ctx, x.a, b, depth - 1) && known_le_at(ctx, x.b, b, depth - 1))
                return true;
        if (y.kind == AF_EXPR_MAX && (known_le_at(ctx, a, y.a, depth - 1) || known_le_at(ctx, a, y.b, depth - 1)))
                return true;
        return y.kind == AF_EXPR_MIN && known_le_at(ctx, a, y.a, depth - 1) && known_le_at(ctx, a, y.b, depth - 1);
}

bool af_infer_known_le(struct af_infer_ctx *ctx, uint32_t a, uint32_t b) {
        return known_le_at(ctx, a, b, KNOWN_DEPTH);
}

/* The smaller (larger) of two sizes, written as one of them where that can be shown. */
static bool smaller(struct af_infer_ctx *ctx, const char *field, uint32_t a, uint32_t b, uint32_t *ret) {
        if (!af_infer_known_le(ctx, a, b) && !af_infer_known_le(ctx, b, a))
                return af_infer_expr(ctx, field, AF_EXPR_MIN, a, b, ret);
        *ret = af_infer_known_le(ctx, a, b) ? a : b;
        return true;
}

static bool larger(struct af_infer_ctx *ctx, const char *field, uint32_t a, uint32_t b, uint32_t *ret) {
        if (!af_infer_known_le(ctx, a, b) && !af_infer_known_le(ctx, b, a))
                return af_infer_expr(ctx, field, AF_EXPR_MAX, a, b, ret);
        *ret = af_infer_known_le(ctx, a, b) ? b : a;
        return true;
}

bool af_infer_list_size(struct af_infer_ctx *ctx, enum af_attr_key key, uint32_t rank) {
        char field[40];

        if (ctx->attrs[key].n == rank)
                return true;
        snprintf(field, sizeof(field), ".attrs.%s", af_attr_name(key));
        af_infer_fail(ctx, field, "%u items, but the operand has %u axes", ctx->attrs[key].n, rank);
        return false;
}

bool af_infer_not_negative(struct af_infer_ctx *ctx, enum af_attr_key key, uint32_t i) {
        uint32_t id = ctx->attrs[key].dims[i], zero;
        char field[40];
        int64_t v;

        snprintf(field, sizeof(field), ".attrs.%s[%u]", af_attr_name(key), i);
        if (af_expr_is_const(ctx->exprs, id, &v)) {
                if (v < 0)
                        af_infer_fail(ctx, field, "%lld is negative", (long long)v);
                return v >= 0;
        }
        if (!ctx->facts.mins)
                return true;
        if (!af_infer_const(ctx, 0, &zero))
                return false;
        if (af_infer_known_le(ctx, zero, id))
                return true;
        af_infer_fail(ctx, field, "%s may be negative", af_infer_dims_text(ctx, &id, 1));
        return false;
}

/* perm in normal form; absent: the axes reversed. */
static int64_t *transpose_perm(struct af_infer_ctx *ctx) {
        const struct af_attr *given = &ctx->attrs[AF_ATTR_PERM];
        bool has = ctx->has & UINT64_C(1) << AF_ATTR_PERM;
        int64_t rank = ctx->in[0].rank, *perm;
        bool seen[AF_LIMIT_RANK] = {false};

        if (has && !af_infer_list_size(ctx, AF_ATTR_PERM, (uint32_t)rank))
                return NULL;
        perm = af_arena_calloc(ctx->arena, (size_t)rank, sizeof(*perm));
        if (!perm)
                ctx->error = -ENOMEM;
        for (int64_t i = 0; perm && i < rank; i++) {
                int64_t axis = has ? given->ints[i] : rank - 1 - i;
                axis += axis < 0 ? rank : 0;
                if (axis < 0 || axis >= rank || seen[axis]) {
                        af_infer_fail(ctx, ".attrs.perm",
                                      axis >= 0 && axis < rank ? "axis %lld is given twice" : "axis %lld is outside of rank %u",
                                      (long long)given->ints[i], (unsigned)rank);
                        return NULL;
                }
                seen[axis] = true;
                perm[i] = axis;
        }
        ctx->attrs[AF_ATTR_PERM] = (struct af_attr){.key = AF_ATTR_PERM, .ints = perm, .n = (uint32_t)rank};
        ctx->has |= UINT64_C(1) << AF_ATTR_PERM;
        return perm;
}

void af_infer_transpose(struct af_infer_ctx *ctx, struct af_inferred *ret) {
        const struct af_infer_operand *in = &ctx->in[0];
        const int64_t *perm = transpose_perm(ctx);
        uint32_t *dims = perm ? af_infer_dims_alloc(ctx, in->rank) : NULL;

        if (!dims)
                return;
        for (uint32_t i = 0; i < in->rank; i++)
                dims[i] = in->dims[perm[i]];
        ret->rank = in->rank;
        ret->dims = dims;
}

/* One axis of a slice: elements start, start + step, ... before stop (behind it, where step is negative). */
struct range {
        uint32_t start, stop, size;
        int64_t step;
};

static bool range_refuse(struct af_infer_ctx *ctx, const char *list, uint32_t axis, const char *what, int64_t v) {
        char field[40];

        snprintf(field, sizeof(field), ".attrs.%s[%u]", list, axis);
        af_infer_fail_hint(ctx, field, "count from the front: add the size", what, (long long)v);
        return false;
}

static bool range_check(struct af_infer_ctx *ctx, const struct range *r, uint32_t axis) {
        char field[40];
        int64_t v;

        if (r->step == 0 || r->step == INT64_MIN) {
                snprintf(field, sizeof(field), ".attrs.steps[%u]", axis);
                af_infer_fail(ctx, field, "a step of %lld", (long long)r->step);
                return false;
        }
        if (af_expr_is_const(ctx->exprs, r->start, &v) && v < 0 && !(v == -1 && r->step < 0))
                return range_refuse(ctx, "starts", axis, "%lld is negative", v);
        if (af_expr_is_const(ctx->exprs, r->stop, &v) && v < (r->step > 0 ? 0 : -1))
                return range_refuse(ctx, "stops", axis,
                                    r->step > 0 ? "%lld is negative" : "%lld is below -1, which is before the first element", v);
        return true;
}

/* Bounds within the size d of the operand. */
static bool range_clamp(struct af_infer_ctx *ctx, struct range *r, uint32_t d) {
        uint32_t low, high = d, one;

        if (!af_infer_const(ctx, r->step > 0 ? 0 : -1, &low) || !af_infer_const(ctx, 1, &one))
                return false;
        if (r->step < 0 && !af_infer_expr(ctx, ".attrs.starts", AF_EXPR_SUB, d, one, &high))
                return false;
        if (!smaller(ctx, ".attrs.starts", r->start, high, &r->start) || !larger(ctx, ".attrs.starts", r->start, low, &r->start))
                return false;
        if (r->step > 0)
                return smaller(ctx, ".attrs.stops", r->stop, high, &r->stop) && larger(ctx, ".attrs.stops", r->stop, r->start, &r->stop);
        return larger(ctx, ".attrs.stops", r->stop, low, &r->stop) && smaller(ctx, ".attrs.stops", r->stop, r->start, &r->stop);
}

/* size = (distance - 1) // |step| + 1, which is 0 for a distance of 0. */
static bool range_size(struct af_infer_ctx *ctx, struct range *r) {
        int64_t pace = r->step > 0 ? r->step : -r->step;
        uint32_t one, by, n;

        if (!af_infer_expr(ctx, ".attrs.stops", AF_EXPR_SUB, r->step > 0 ? r->stop : r->start, r->step > 0 ? r->start : r->stop, &n))
                return false;
        if (pace != 1 && (!af_infer_const(ctx, 1, &one) || !af_infer_const(ctx, pace, &by) ||
                          !af_infer_expr(ctx, ".attrs.stops", AF_EXPR_SUB, n, one, &n) ||
                          !af_infer_expr(ctx, ".attrs.stops", AF_EXPR_FLOORDIV, n, by, &n) ||
                          !af_infer_expr(ctx, ".attrs.stops", AF_EXPR_ADD, n, one, &n)))
                return false;
        r->size = n;
        return true;
}

/* Where the size is a constant there is one way to write the range: nothing is 0, 0, 1; one element has step 1; stop is next to the last.
 */
static bool range_normalise(struct af_infer_ctx *ctx, struct range *r) {
        int64_t n, start;
        uint32_t next;

        if (!af_expr_is_const(ctx->exprs, r->size, &n))
                return true;
        if (n == 0) {
                r->step = 1;
                return af_infer_const(ctx, 0, &r->start) && af_infer_const(ctx, 0, &r->stop);
        }
        if (n == 1)
                r->step = 1;
        int64_t last = (n - 1) * r->step + (r->step > 0 ? 1 : -1);
        if (af_expr_is_const(ctx->exprs, r->start, &start))
                return af_infer_const(ctx, start + last, &r->stop);
        return af_infer_const(ctx, last, &next) && af_infer_expr(ctx, ".attrs.stops", AF_EXPR_ADD, r->start, next, &r->stop);
}

/* A list that is absent, or has an item per axis; false with a diagnostic. */
static bool slice_lists(struct af_infer_ctx *ctx) {
        static const enum af_attr_key keys[] = {AF_ATTR_STARTS, AF_ATTR_STOPS, AF_ATTR_STEPS};

        for (size_t i = 0; i < AF_ARRAY_SIZE(keys); i++)
                if (ctx->has & UINT64_C(1) << keys[i] && !af_infer_list_size(ctx, keys[i], ctx->in[0].rank))
                        return false;
        return true;
}

static bool slice_range(struct af_infer_ctx *ctx, uint32_t axis, struct range *ret) {
        const struct af_attr *a = ctx->attrs;
        uint32_t d = ctx->in[0].dims[axis];
        struct range r = {.step = ctx->has & UINT64_C(1) << AF_ATTR_STEPS ? a[AF_ATTR_STEPS].ints[axis] : 1};

        if (!af_infer_const(ctx, r.step < 0 ? INT64_MAX : 0, &r.start) || !af_infer_const(ctx, r.step < 0 ? -1 : INT64_MAX, &r.stop))
                return false;
        if (ctx->has & UINT64_C(1) << AF_ATTR_STARTS)
                r.start = a[AF_ATTR_STARTS].dims[axis];
        if (ctx->has & UINT64_C(1) << AF_ATTR_STOPS)
                r.stop = a[AF_ATTR_STOPS].dims[axis];
        *ret = r;
        if (!range_check(ctx, ret, axis) || !range_clamp(ctx, ret, d) || !range_size(ctx, ret))
                return false;
        return range_normalise(ctx, ret);
}

void af_infer_slice(struct af_infer_ctx *ctx, struct af_inferred *ret) {
        uint32_t rank = ctx->in[0].rank;
        uint32_t *lists = af_infer_dims_alloc(ctx, 3 * rank);
        int64_t *steps = af_arena_calloc(ctx->arena, rank, sizeof(*steps));

        if (!lists || !steps) {
                ctx->error = -ENOMEM;
                return;
        }
        if (!slice_lists(ctx))
                return;
        for (uint32_t i = 0; i < rank; i++) {
                struct range r;
                if (!slice_range(ctx, i, &r))
                        return;
                lists[i] = r.start;
                lists[rank + i] = r.stop;
                lists[2 * rank + i] = r.size;
                steps[i] = r.step;
        }
        ctx->attrs[AF_ATTR_STARTS] = (struct af_attr){.key = AF_ATTR_STARTS, .dims = lists, .n = rank};
        ctx->attrs[AF_ATTR_STOPS] = (struct af_attr){.key = AF_ATTR_STOPS, .dims = lists + rank, .n = rank};
        ctx->attrs[AF_ATTR_STEPS] = (struct af_attr){.key = AF_ATTR_STEPS, .ints = steps, .n = rank};
        ctx->has |= UINT64_C(1) << AF_ATTR_STARTS | UINT64_C(1) << AF_ATTR_STOPS | UINT64_C(1) << AF_ATTR_STEPS;
        ret->rank = rank;
        ret->dims = lists + 2 * rank;
}

void af_infer_pad(struct af_infer_ctx *ctx, struct af_inferred *ret) {
        const struct af_infer_operand *in = &ctx->in[0];
        uint32_t *dims = af_infer_dims_alloc(ctx, in->rank);

        if (!dims || !af_infer_list_size(ctx, AF_ATTR_LOW, in->rank) || !af_infer_list_size(ctx, AF_ATTR_HIGH, in->rank))
                return;
        if (ctx->n_in > 1 && ctx->in[1].rank > 0) {
                af_infer_fail(ctx, ".inputs[1]", "the fill has shape %s, not []",
                              af_infer_dims_text(ctx, ctx->in[1].dims, ctx->in[1].rank));
                return;
        }
        for (uint32_t i = 0; i < in->rank; i++)
                if (!af_infer_not_negative(ctx, AF_ATTR_LOW, i) || !af_infer_not_negative(ctx, AF_ATTR_HIGH, i) ||
                    !af_infer_expr(ctx, ".attrs.low", AF_EXPR_ADD, in->dims[i], ctx->attrs[AF_ATTR_LOW].dims[i], &dims[i]) ||
                    !af_infer_expr(ctx, ".attrs.high", AF_EXPR_ADD, dims[i], ctx->attrs[AF_ATTR_HIGH].dims[i], &dims[i]))
                        return;
        ret->rank = in->rank;
        ret->dims = dims;
}

/* Whether operand i has the first one's sizes but for the axis; dims get constants where either has them. */
static bool concat_fits(struct af_infer_ctx *ctx, uint32_t i, uint32_t axis, uint32_t *dims) {
        const struct af_infer_operand *in = &ctx->in[i];
        bool fits = in->rank == ctx->in[0].rank;
        char field[32];
        int64_t v;

        for (uint32_t k = 0; fits && k < in->rank; k++) {
                if (k == axis)
                        continue;
                fits = af_dims_equal(ctx->exprs, &ctx->facts, dims[k], in->dims[k]);
                if (fits && af_expr_is_const(ctx->exprs, in->dims[k], &v))
                        dims[k] = in->dims[k];
        }
        if (fits)
                return true;
        snprintf(field, sizeof(field), ".inputs[%u]", i);
        af_infer_fail(ctx, field, "shape %s does not go with %s along axis %u", af_infer_dims_text(ctx, in->dims, in->rank),
                      af_infer_dims_text(ctx, ctx->in[0].dims, ctx->in[0].rank), axis);
        return false;
}

void af_infer_concat(struct af_infer_ctx *ctx, struct af_inferred *ret) {
        uint32_t rank = ctx->in[0].rank, axis = (uint32_t)ctx->attrs[AF_ATTR_AXIS].i;
        uint32_t *dims = af_infer_dims_alloc(ctx, rank);

        if (!dims)
                return;
        memcpy(dims, ctx->in[0].dims, rank * sizeof(*dims));
        for (uint32_t i = 1; i < ctx->n_in; i++)
                if (!concat_fits(ctx, i, axis, dims) ||
                    !af_infer_expr(ctx, ".attrs.axis", AF_EXPR_ADD, dims[axis], ctx->in[i].dims[axis], &dims[axis]))
                        return;
        ret->rank = rank;
        ret->dims = dims;
}

void af_infer_split(struct af_infer_ctx *ctx, struct af_inferred *ret) {
        const struct af_attr *sizes = &ctx->attrs[AF_ATTR_SIZES];
        uint32_t axis = (uint32_t)ctx->attrs[AF_ATTR_AXIS].i, sum;

        if (sizes->n == 0) {
                af_infer_fail(ctx, ".attrs.sizes", "no size is given");
                return;
        }
        if (!af_infer_const(ctx, 0, &sum))
                return;
        for (uint32_t i = 0; i < sizes->n; i++)
                if (!af_infer_not_negative(ctx, AF_ATTR_SIZES, i) ||
                    !af_infer_expr(ctx, ".attrs.sizes", AF_EXPR_ADD, sum, sizes->dims[i], &sum))
                        return;
        if (!af_dims_equal(ctx->exprs, &ctx->facts, sum, ctx->in[0].dims[axis])) {
                af_infer_fail(ctx, ".attrs.sizes", "they add up to %s, but axis %u has size %s", af_infer_dims_text(ctx, &sum, 1), axis,
                              af_infer_dims_text(ctx, &ctx->in[0].dims[axis], 1));
                return;
        }
        ret->rank = ctx->in[0].rank;
        ret->dims = ctx->in[0].dims;
        ret->n_out = sizes->n;
        ret->axis = axis;
        ret->sizes = sizes->dims;
}

void af_infer_gather_elements(struct af_infer_ctx *ctx, struct af_inferred *ret) {
        const struct af_infer_operand *data = &ctx->in[0], *index = &ctx->in[1];
        uint32_t axis = (uint32_t)ctx->attrs[AF_ATTR_AXIS].i;

        if (index->rank != data->rank) {
                af_infer_fail(ctx, ".inputs[1]", "the index has rank %u, the data %u", index->rank, data->rank);
                return;
        }
        for (uint32_t i = 0; i < data->rank; i++)
                if (i != axis && !af_infer_known_le(ctx, index->dims[i], data->dims[i])) {
                        af_infer_fail(ctx, ".inputs[1]", "the index has size %s on axis %u, beyond the data's %s",
                                      af_infer_dims_text(ctx, &index->dims[i], 1), i, af_infer_dims_text(ctx, &data->dims[i], 1));
                        return;
                }
        ret->rank = index->rank;
        ret->dims = index->dims;
}

void af_infer_iota(struct af_infer_ctx *ctx, struct af_inferred *ret) {
        const struct af_attr *shape = &ctx->attrs[AF_ATTR_SHAPE];

        if (shape->n > AF_LIMIT_RANK) {
                af_infer_fail(ctx, ".attrs.shape", "rank %u is beyond the limit of %u", shape->n, AF_LIMIT_RANK);
                return;
        }
        for (uint32_t i = 0; i < shape->n; i++)
                if (!af_infer_not_negative(ctx, AF_ATTR_SHAPE, i))
                        return;
        ret->rank = shape->n;
        ret->dims = shape->dims;
}

void af_infer_tile(struct af_infer_ctx *ctx, struct af_inferred *ret) {
        const struct af_infer_operand *in = &ctx->in[0];
        uint32_t *dims = af_infer_dims_alloc(ctx, in->rank);

        if (!dims || !af_infer_list_size(ctx, AF_ATTR_REPEATS, in->rank))
                return;
        for (uint32_t i = 0; i < in->rank; i++)
                if (!af_infer_not_negative(ctx, AF_ATTR_REPEATS, i) ||
                    !af_infer_expr(ctx, ".attrs.repeats", AF_EXPR_MUL, in->dims[i], ctx->attrs[AF_ATTR_REPEATS].dims[i], &dims[i]))
                        return;
        ret->rank = in->rank;
        ret->dims = dims;
}
