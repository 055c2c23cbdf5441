/* SPDX-License-Identifier: Apache-2.0 */
/* Composites that reduce: softmax and its kin, norms, variance. In float32; two passes for a variance; one rounding last. */
#include <math.h>
#include <string.h>

#include "compiler/rewrite/decompose.h"

/* Axes of one reduction. */
struct axes {
        int64_t list[AF_LIMIT_RANK];
        uint32_t n;
};

static uint32_t reduce(const struct rw_composite *c, enum af_op op, uint32_t x, const struct axes *a, bool keepdims) {
        return rw_reduce(c->b, op, x, a->list, a->n, keepdims, AF_DTYPE_INVALID);
}
static struct axes axes_from(const struct rw_composite *c, int64_t axis, bool to_the_end) {
        struct axes a = {.n = 0};
        uint32_t rank = rw_value(c->b, c->in[0])->rank;
        if (axis < 0)
                axis += rank;
        for (int64_t i = axis; i >= 0 && i < rank && (to_the_end || i == axis); i++)
                a.list[a.n++] = i;
        return a;
}
/* The attribute `axes`; all where absent. */
static struct axes axes_attr(const struct rw_composite *c) {
        const struct af_attr *attr = af_node_attr(c->n, AF_ATTR_AXES);
        struct axes a = {.n = attr ? attr->n : 0};
        if (!attr)
                return axes_from(c, 0, true);
        memcpy(a.list, attr->ints, attr->n * sizeof(*a.list));
        return a;
}
/* Elements reduced into one; -1 where symbolic. */
static int64_t count_of(const struct rw_composite *c, uint32_t x, const struct axes *a) {
        int64_t n = 1, d;
        for (uint32_t i = 0; i < a->n; i++) {
                if (!rw_dim(c->b, x, (uint32_t)a->list[i], &d))
                        return -1;
                n *= d;
        }
        return n;
}
/* -inf and +inf count as 0, so that what is subtracted is finite. */
static uint32_t finite_or_zero(const struct rw_composite *c, uint32_t m) {
        uint32_t infinite = rw_binary(c->b, AF_OP_EQ, rw_unary(c->b, AF_OP_ABS, m), rw_number(c, INFINITY));
        return rw_where(c->b, infinite, rw_number(c, 0), m);
}

/* A row's maximum and the sum of exp(x - maximum), both with their axes kept. */
struct row_sum {
        uint32_t max, shift, sum; /* shift: what was subtracted */
};

/*
 * Last axis [R] as [R/d, d]: chunk results first, so that x is read once. finite: shifts are finite (logsumexp); else a row's own maximum
 * is subtracted, and only chunks of nothing but -inf count as 0.
 */
static struct row_sum sum_by_chunks(const struct rw_composite *c, uint32_t x, int64_t n, int64_t d, bool finite) {
        struct rw *b = c->b;
        const struct af_value v = *rw_value(b, x);
        uint32_t dims[AF_LIMIT_RANK + 1], last = v.rank - 1;
        struct axes inner = {.list = {v.rank}, .n = 1}, outer = {.list = {last}, .n = 1};
        memcpy(dims, v.dims, last * sizeof(*dims));
        dims[last] = rw_const_dim(b, n / d);
        dims[last + 1] = rw_const_dim(b, d);
        uint32_t parts = rw_reshape(b, x, dims, v.rank + 1);
        uint32_t max_c = reduce(c, AF_OP_REDUCE_MAX, parts, &inner, true);
        uint32_t none = rw_binary(b, AF_OP_EQ, max_c, rw_number(c, -INFINITY));
        uint32_t shift_c = finite ? finite_or_zero(c, max_c) : rw_where(b, none, rw_number(c, 0), max_c);
        uint32_t sum_c = reduce(c, AF_OP_REDUCE_SUM, rw_unary(b, AF_OP_EXP, rw_binary(b, AF_OP_SUB, parts, shift_c)), &inner, false);
        dims[last + 1] = rw_const_dim(b, 1);
        max_c = rw_reshape(b, max_c, dims, v.rank);
        uint32_t max = reduce(c, AF_OP_REDUCE_MAX, max_c, &outer, true), shift = finite ? finite_or_zero(c, max) : max;
        uint32_t scale = rw_unary(b, AF_OP_EXP, rw_binary(b, AF_OP_SUB, max_c, shift));
        uint32_t sum = reduce(c, AF_OP_REDUCE_SUM, rw_binary(b, AF_OP_MUL, sum_c, scale), &outer, true);
        return (struct row_sum){max, shift, sum};
}

static struct row_sum sum_of_exp(const struct rw_composite *c, uint32_t x, const struct axes *a, bool finite) {
        int64_t n = count_of(c, x, a), d = rw_chunk_of(n);
        uint32_t rank = rw_value(c->b, x)->rank;
        if (d && a->n == 1 && a->list[0] == (int64_t)rank - 1 && rank < AF_LIMIT_RANK)
                return sum_by_chunks(c, x, n, d, finite);
        uint32_t max = reduce(c, AF_OP_REDUCE_MAX, x, a, true), shift = finite ? finite_or_zero(c, max) : max;
        uint32_t e = rw_unary(c->b, AF_OP_EXP, rw_binary(c->b, AF_OP_SUB, x, shift));
        return (struct row_sum){max, shift, reduce(c, AF_OP_REDUCE_SUM, e, a, true)};
}

uint32_t rw_softmax(const struct rw_composite *c) {
        struct axes a = axes_from(c, rw_attr_int(c, AF_ATTR_AXIS, -1), false);
        uint32_t x = rw_operand(c, 0);
        if (count_of(c, c->in[0], &a) == 0)
                return c->in[0]; /* nothing in it */
        uint32_t e = rw_unary(c->b, AF_OP_EXP, rw_binary(c->b, AF_OP_SUB, x, reduce(c, AF_OP_REDUCE_MAX, x, &a, true)));
        return rw_binary(c->b, AF_OP_DIV, e, reduce(c, AF_OP_REDUCE_SUM, e, &a, true));
}

uint32_t rw_log_softmax(const struct rw_composite *c) {
        struct axes a = axes_from(c, rw_attr_int(c, AF_ATTR_AXIS, -1), false);
        uint32_t x = rw_operand(c, 0);
        if (count_of(c, c->in[0], &a) == 0)
                return c->in[0];
        struct row_sum s = sum_of_exp(c, x, &a, false);
        uint32_t log = rw_unary(c->b, AF_OP_LOG, s.sum);
        return rw_binary(c->b, AF_OP_SUB, rw_binary(c->b, AF_OP_SUB, x, s.max), log);
}

uint32_t rw_logsumexp(const struct rw_composite *c) {
        struct axes a = axes_attr(c);
        uint32_t x = rw_operand(c, 0);
        bool keepdims = rw_attr_int(c, AF_ATTR_KEEPDIMS, 0);
        struct row_sum s = sum_of_exp(c, x, &a, true);
        uint32_t v = rw_binary(c->b, AF_OP_ADD, rw_unary(c->b, AF_OP_LOG, s.sum), s.shift);
        return keepdims || a.n == 0 ? v : rw_reshape(c->b, v, c->out->dims, c->out->rank);
}

/* ---- norms ---- */

/* (x - mean) / sqrt(mean of its squares + epsilon) over the axes. */
static uint32_t normalise(const struct rw_composite *c, uint32_t x, const struct axes *a) {
        struct rw *b = c->b;
        uint32_t d = rw_binary(b, AF_OP_SUB, x, reduce(c, AF_OP_REDUCE_MEAN, x, a, true));
        uint32_t var = reduce(c, AF_OP_REDUCE_MEAN, rw_binary(b, AF_OP_MUL, d, d), a, true);
        uint32_t epsilon = rw_number(c, rw_attr_number(c, AF_ATTR_EPSILON, 1e-5));
        return rw_binary(b, AF_OP_MUL, d, rw_unary(b, AF_OP_RSQRT, rw_binary(b, AF_OP_ADD, var, epsilon)));
}
/* y * weight + bias, each where there is one. */
static uint32_t affine(const struct rw_composite *c, uint32_t y, uint32_t weight, uint32_t bias) {
        if (weight != AF_NONE)
                y = rw_binary(c->b, AF_OP_MUL, y, weight);
        return bias == AF_NONE ? y : rw_binary(c->b, AF_OP_ADD, y, bias);
}

uint32_t rw_layer_norm(const struct rw_composite *c) {
        struct axes a = axes_from(c, rw_attr_int(c, AF_ATTR_AXIS, -1), true);
        if (count_of(c, c->in[0], &a) == 0)
                return c->in[0];
        uint32_t bias = rw_operand(c, 2), weight = rw_operand(c, 1);
        return affine(c, normalise(c, rw_operand(c, 0), &a), weight, bias);
}

uint32_t rw_rms_norm(const struct rw_composite *c) {
        struct axes a = axes_from(c, rw_attr_int(c, AF_ATTR_AXIS, -1), true);
        uint32_t x = rw_operand(c, 0), epsilon = rw_number(c, rw_attr_number(c, AF_ATTR_EPSILON, 1e-5));
        if (count_of(c, c->in[0], &a) == 0)
                return c->in[0];
        uint32_t mean = reduce(c, AF_OP_REDUCE_MEAN, rw_binary(c->b, AF_OP_MUL, x, x), &a, true);
        uint32_t r = rw_unary(c->b, AF_OP_RSQRT, rw_binary(c->b, AF_OP_ADD, mean, epsilon));
        uint32_t weight = rw_operand(c, 1);
        return affine(c, rw_binary(c->b, AF_OP_MUL, x, r), weight, AF_NONE);
}

/* Operand i, one number per channel, as [.., channels, 1..] of this rank. */
static uint32_t per_channel(const struct rw_composite *c, uint32_t i, const uint32_t *dims, uint32_t rank) {
        uint32_t v = rw_operand(c, i);
        return v == AF_NONE || rw_value(c->b, v)->rank == 0 ? v : rw_reshape(c->b, v, dims, rank);
}

/* [N, C, ...] as [N, G, C/G, the rest]: one space for the reduction and for the channels' numbers. */
static uint32_t grouped(const struct rw_composite *c, int64_t groups) {
        struct rw *b = c->b;
        const struct af_value v = *rw_value(b, c->in[0]);
        int64_t channels;
        struct axes a = {.list = {2, 3}, .n = 2};
        if (v.rank < 2 || groups < 1 || !rw_dim(b, c->in[0], 1, &channels) || channels % groups)
                return rw_fail(b);
        uint32_t one = rw_const_dim(b, 1), rest = one, g = rw_const_dim(b, groups), each = rw_const_dim(b, channels / groups);
        for (uint32_t i = 2; i < v.rank; i++)
                rest = rw_dim_binary(b, AF_EXPR_MUL, rest, v.dims[i]);
        const uint32_t dims[] = {v.dims[0], g, each, rest}, channel_dims[] = {g, each, one};
        uint32_t x = rw_reshape(b, rw_operand(c, 0), dims, 4);
        if (x == AF_NONE || count_of(c, x, &a) == 0)
                return x == AF_NONE ? x : c->in[0];
        uint32_t y = normalise(c, x, &a);
        uint32_t bias = per_channel(c, 2, channel_dims, 3), weight = per_channel(c, 1, channel_dims, 3);
        y = affine(c, y, weight, bias);
        return rw_reshape(b, y, v.dims, v.rank);
}

uint32_t rw_group_norm(const struct rw_composite *c) {
        return grouped(c, rw_attr_int(c, AF_ATTR_GROUPS, 1));
}
uint32_t rw_instance_norm(const struct rw_composite *c) {
        int64_t channels;
        if (rw_value(c->b, c->in[0])->rank < 2 || !rw_dim(c->b, c->in[0], 1, &channels))
                return rw_fail(c->b);
        return channels ? grouped(c, channels) : c->in[0];
}

/* (x - mean) * 1/sqrt(var + epsilon) * weight + bias, all but x one number per channel. */
uint32_t rw_batch_norm(const struct rw_composite *c) {
        struct rw *b = c->b;
        uint32_t rank = rw_value(b, c->in[0])->rank, dims[AF_LIMIT_RANK], n = rank - 1;
        if (rank < 2)
                return rw_fail(b);
        dims[0] = rw_value(b, c->in[0])->dims[1];
        for (uint32_t i = 1; i < n; i++)
                dims[i] = rw_const_dim(b, 1);
        uint32_t epsilon = rw_number(c, rw_attr_number(c, AF_ATTR_EPSILON, 1e-5));
        uint32_t mean = per_channel(c, 1, dims, n), d = rw_binary(b, AF_OP_SUB, rw_operand(c, 0), mean);
        uint32_t r = rw_unary(b, AF_OP_RSQRT, rw_binary(b, AF_OP_ADD, per_channel(c, 2, dims, n), epsilon));
        uint32_t bias = per_channel(c, 4, dims, n), weight = per_channel(c, 3, dims, n);
        return affine(c, rw_binary(b, AF_OP_MUL, d, r), weight, bias);
}

/* ---- variance and norms of vectors ---- */

#define COUNT_MAX (INT64_C(1) << 24) /* whole numbers up to here are float32's */

/* max(0, count - correction) of sizes with symbols: ones are added up, which is exact in any order. */
static uint32_t count_less(const struct rw_composite *c, const struct axes *a, double correction) {
        struct rw *b = c->b;
        uint32_t rank = rw_value(b, c->in[0])->rank, dims[AF_LIMIT_RANK];
        int64_t most = 1;
        for (uint32_t i = 0; i < rank; i++)
                dims[i] = rw_const_dim(b, 1);
        for (uint32_t i = 0; i < a->n; i++) {
                uint32_t dim = rw_value(b, c->in[0])->dims[a->list[i]];
                int64_t n = rw_most(b, dim);
                dims[a->list[i]] = dim;
                if (n > COUNT_MAX || (n && most > COUNT_MAX / n))
                        return rw_fail(b);
                most *= n;
        }
        if (correction != trunc(correction) || fabs(correction) > COUNT_MAX)
                return rw_fail(b);
        uint32_t count = reduce(c, AF_OP_REDUCE_SUM, rw_broadcast(b, rw_number(c, 1), dims, rank), a, rw_attr_int(c, AF_ATTR_KEEPDIMS, 0));
        uint32_t left = rw_binary(b, AF_OP_SUB, count, rw_number(c, correction));
        return rw_binary(b, AF_OP_MAXIMUM, left, rw_number(c, 0));
}

/* Sum of squared distances from the mean, over max(0, count - correction). */
uint32_t rw_var(const struct rw_composite *c) {
        struct rw *b = c->b;
        struct axes a = axes_attr(c);
        uint32_t x = rw_operand(c, 0);
        int64_t n = count_of(c, c->in[0], &a);
        double correction = rw_attr_number(c, AF_ATTR_CORRECTION, 1);
        bool keepdims = rw_attr_int(c, AF_ATTR_KEEPDIMS, 0);
        uint32_t d = rw_binary(b, AF_OP_SUB, x, reduce(c, AF_OP_REDUCE_MEAN, x, &a, true)), square = rw_binary(b, AF_OP_MUL, d, d);
        if (n < 0 && correction == 0)
                return reduce(c, AF_OP_REDUCE_MEAN, square, &a, keepdims);
        uint32_t all = reduce(c, AF_OP_REDUCE_SUM, square, &a, keepdims);
        double left = (double)n - correction;
        return rw_binary(b, AF_OP_DIV, all, n < 0 ? count_less(c, &a, correction) : rw_number(c, left > 0 ? left : 0));
}
uint32_t rw_std(const struct rw_composite *c) {
        return rw_unary(c->b, AF_OP_SQRT, rw_var(c));
}

/* Integers are added up in the output's dtype, and widened to it first. */
static uint32_t widened(const struct rw_composite *c) {
        return af_dtype_kind(c->out->dtype) == 'f' ? rw_operand(c, 0) : rw_cast(c->b, c->in[0], c->out->dtype);
}
static uint32_t sum(const struct rw_composite *c, uint32_t x) {
        struct axes a = axes_attr(c);
        enum af_dtype d = x == AF_NONE || af_dtype_kind(rw_value(c->b, x)->dtype) == 'f' ? AF_DTYPE_INVALID : c->out->dtype;
        return rw_reduce(c->b, AF_OP_REDUCE_SUM, x, a.list, a.n, rw_attr_int(c, AF_ATTR_KEEPDIMS, 0), d);
}
uint32_t rw_reduce_l1(const struct rw_composite *c) {
        return sum(c, rw_unary(c->b, AF_OP_ABS, widened(c)));
}
uint32_t rw_reduce_sum_square(const struct rw_composite *c) {
        uint32_t x = widened(c);
        return sum(c, rw_binary(c->b, AF_OP_MUL, x, x));
}
uint32_t rw_reduce_l2(const struct rw_composite *c) {
        return rw_unary(c->b, AF_OP_SQRT, rw_reduce_sum_square(c));
}
uint32_t rw_reduce_log_sum(const struct rw_composite *c) {
        return rw_unary(c->b, AF_OP_LOG, sum(c, rw_operand(c, 0)));
}
