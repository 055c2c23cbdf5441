/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise composites. Floats: a cast to float32 first, one rounding last; integers in their own dtype. */
#include "compiler/rewrite/decompose.h"

static bool is_float(const struct rw_composite *c) {
        return af_dtype_kind(c->out->dtype) == 'f';
}
/* An operand in the compute dtype, of integers as it is. */
static uint32_t operand(const struct rw_composite *c, uint32_t i) {
        return is_float(c) ? rw_operand(c, i) : c->in[i];
}
/* v * x; x where v is 1. */
static uint32_t times(const struct rw_composite *c, double v, uint32_t x) {
        if (v == 1)
                return x;
        return rw_binary(c->b, AF_OP_MUL, is_float(c) ? rw_number(c, v) : rw_int(c->b, c->out->dtype, (int64_t)v), x);
}
static uint32_t alpha_times(const struct rw_composite *c, uint32_t x) {
        const struct af_attr *a = af_node_attr(c->n, AF_ATTR_ALPHA);
        if (a && a->is_int && !is_float(c))
                return a->i == 1 ? x : rw_binary(c->b, AF_OP_MUL, rw_int(c->b, c->out->dtype, a->i), x);
        return times(c, rw_attr_number(c, AF_ATTR_ALPHA, 1), x);
}

/* The product is rounded to the declared dtype, then the sum. */
uint32_t rw_fma(const struct rw_composite *c) {
        return rw_binary(c->b, AF_OP_ADD, rw_binary(c->b, AF_OP_MUL, c->in[0], c->in[1]), c->in[2]);
}

uint32_t rw_axpy(const struct rw_composite *c) {
        return rw_binary(c->b, AF_OP_ADD, alpha_times(c, operand(c, 0)), operand(c, 1));
}

uint32_t rw_addcmul(const struct rw_composite *c) {
        return rw_binary(c->b, AF_OP_ADD, operand(c, 0), rw_binary(c->b, AF_OP_MUL, alpha_times(c, operand(c, 1)), operand(c, 2)));
}

uint32_t rw_addcdiv(const struct rw_composite *c) {
        return rw_binary(c->b, AF_OP_ADD, operand(c, 0), rw_binary(c->b, AF_OP_DIV, alpha_times(c, operand(c, 1)), operand(c, 2)));
}

/* |w| < 0.5 ? a + w (b - a) : b - (b - a) (1 - w), so that both ends are met exactly. */
uint32_t rw_lerp(const struct rw_composite *c) {
        struct rw *b = c->b;
        uint32_t from = rw_operand(c, 0), to = rw_operand(c, 1), w = rw_operand(c, 2);
        uint32_t step = rw_binary(b, AF_OP_SUB, to, from);
        uint32_t low = rw_binary(b, AF_OP_ADD, from, rw_binary(b, AF_OP_MUL, w, step));
        uint32_t rest = rw_binary(b, AF_OP_SUB, rw_number(c, 1), w);
        uint32_t high = rw_binary(b, AF_OP_SUB, to, rw_binary(b, AF_OP_MUL, step, rest));
        return rw_where(b, rw_binary(b, AF_OP_LT, rw_unary(b, AF_OP_ABS, w), rw_number(c, 0.5)), low, high);
}

uint32_t rw_masked_fill(const struct rw_composite *c) {
        return rw_where(c->b, c->in[1], c->in[2], c->in[0]);
}

/* max(x, 0) + log1p(exp(-|x|)): neither overflows nor cancels. */
static uint32_t softplus(const struct rw_composite *c, uint32_t x) {
        struct rw *b = c->b;
        uint32_t small = rw_unary(b, AF_OP_EXP, rw_unary(b, AF_OP_NEG, rw_unary(b, AF_OP_ABS, x)));
        uint32_t rest = rw_unary(b, AF_OP_LOG1P, small);
        return rw_binary(b, AF_OP_ADD, rw_unary(b, AF_OP_RELU, x), rest);
}
uint32_t rw_softplus(const struct rw_composite *c) {
        double beta = rw_attr_number(c, AF_ATTR_BETA, 1);
        uint32_t v = softplus(c, times(c, beta, rw_operand(c, 0)));
        return beta == 1 ? v : rw_binary(c->b, AF_OP_DIV, v, rw_number(c, beta));
}
uint32_t rw_mish(const struct rw_composite *c) {
        uint32_t x = rw_operand(c, 0);
        return rw_binary(c->b, AF_OP_MUL, x, rw_unary(c->b, AF_OP_TANH, softplus(c, x)));
}

uint32_t rw_softsign(const struct rw_composite *c) {
        uint32_t x = rw_operand(c, 0);
        return rw_binary(c->b, AF_OP_DIV, x, rw_binary(c->b, AF_OP_ADD, rw_unary(c->b, AF_OP_ABS, x), rw_number(c, 1)));
}

/* x > 0 ? scale x : below expm1(inner) */
static uint32_t exponential(const struct rw_composite *c, uint32_t x, double scale, double below, uint32_t inner) {
        struct rw *b = c->b;
        uint32_t positive = rw_binary(b, AF_OP_GT, x, rw_number(c, 0));
        return rw_where(b, positive, times(c, scale, x), times(c, below, rw_unary(b, AF_OP_EXPM1, inner)));
}
uint32_t rw_elu(const struct rw_composite *c) {
        uint32_t x = rw_operand(c, 0);
        return exponential(c, x, 1, rw_attr_number(c, AF_ATTR_ALPHA, 1), x);
}
uint32_t rw_selu(const struct rw_composite *c) {
        double alpha = rw_attr_number(c, AF_ATTR_ALPHA, 1.67326319217681884765625);
        double gamma = rw_attr_number(c, AF_ATTR_GAMMA, 1.05070102214813232421875);
        uint32_t x = rw_operand(c, 0);
        return exponential(c, x, gamma, gamma * alpha, x);
}
uint32_t rw_celu(const struct rw_composite *c) {
        double alpha = rw_attr_number(c, AF_ATTR_ALPHA, 1);
        uint32_t x = rw_operand(c, 0);
        return exponential(c, x, 1, alpha, alpha == 1 ? x : rw_binary(c->b, AF_OP_DIV, x, rw_number(c, alpha)));
}

/* NaN stays NaN. */
static uint32_t clip(const struct rw_composite *c, uint32_t x, double min, double max) {
        const struct af_attr attrs[] = {{.key = AF_ATTR_MIN, .f = min}, {.key = AF_ATTR_MAX, .f = max}};
        return rw_node(c->b, AF_OP_CLIP, &x, 1, attrs, 2, AF_DTYPE_INVALID);
}
uint32_t rw_hardsigmoid(const struct rw_composite *c) {
        uint32_t x = times(c, rw_attr_number(c, AF_ATTR_ALPHA, 0.2), rw_operand(c, 0));
        return clip(c, rw_binary(c->b, AF_OP_ADD, x, rw_number(c, rw_attr_number(c, AF_ATTR_BETA, 0.5))), 0, 1);
}
uint32_t rw_hardswish(const struct rw_composite *c) {
        uint32_t x = rw_operand(c, 0), gate = clip(c, rw_binary(c->b, AF_OP_ADD, x, rw_number(c, 3)), 0, 6);
        return rw_binary(c->b, AF_OP_DIV, rw_binary(c->b, AF_OP_MUL, x, gate), rw_number(c, 6));
}
uint32_t rw_thresholded_relu(const struct rw_composite *c) {
        uint32_t x = rw_operand(c, 0), above = rw_binary(c->b, AF_OP_GT, x, rw_number(c, rw_attr_number(c, AF_ATTR_ALPHA, 1)));
        return rw_where(c->b, above, x, rw_number(c, 0));
}
