/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions of 64 bits in 32. An extreme: that of the high words, then that of the low words where the high word is it. A sum: that of
 * pieces so narrow that int32 holds the sum of each, put together where they belong; what is beyond 64 bits wraps away.
 */
#include <string.h>

#include "compiler/rewrite/decompose.h"

struct wide {
        struct rw *b;
        int64_t axes[AF_LIMIT_RANK];
        uint32_t n_axes;
};

static struct wide wide_of(const struct rw_composite *c) {
        const struct af_attr *axes = af_node_attr(c->n, AF_ATTR_AXES);
        struct wide w = {.b = c->b, .n_axes = axes ? axes->n : rw_value(c->b, c->in[0])->rank};
        for (uint32_t i = 0; i < w.n_axes; i++)
                w.axes[i] = axes ? axes->ints[i] : (int64_t)i;
        return w;
}

static uint32_t low_word(struct rw *b, uint32_t x) {
        return rw_cast(b, x, AF_DTYPE_INT32);
}

static uint32_t high_word(struct rw *b, uint32_t x) {
        return low_word(b, rw_binary(b, AF_OP_SHIFT_RIGHT, x, rw_int(b, AF_DTYPE_INT64, 32)));
}

static uint32_t extreme(const struct wide *w, enum af_op op, uint32_t x) {
        struct rw *b = w->b;
        uint32_t sign = rw_int(b, AF_DTYPE_INT32, INT32_MIN),
                 worst = rw_int(b, AF_DTYPE_INT32, op == AF_OP_REDUCE_MAX ? INT32_MIN : INT32_MAX);
        uint32_t high = high_word(b, x), low = rw_binary(b, AF_OP_BITWISE_XOR, low_word(b, x), sign); /* in the order of unsigned words */
        uint32_t top = rw_reduce(b, op, high, w->axes, w->n_axes, true, AF_DTYPE_INVALID);
        low = rw_where(b, rw_binary(b, AF_OP_EQ, high, top), low, worst);
        low = rw_binary(b, AF_OP_BITWISE_XOR, rw_reduce(b, op, low, w->axes, w->n_axes, true, AF_DTYPE_INVALID), sign);
        top = rw_binary(b, AF_OP_SHIFT_LEFT, rw_cast(b, top, AF_DTYPE_INT64), rw_int(b, AF_DTYPE_INT64, 32));
        low = rw_binary(b, AF_OP_BITWISE_AND, rw_cast(b, low, AF_DTYPE_INT64), rw_int(b, AF_DTYPE_INT64, UINT32_MAX));
        return rw_binary(b, AF_OP_BITWISE_OR, top, low);
}

uint32_t rw_extreme64(struct rw *b, enum af_op op, uint32_t x, int64_t axis) {
        const struct wide w = {.b = b, .axes = {axis}, .n_axes = 1};
        return extreme(&w, op, x);
}

uint32_t rw_wide_extreme(const struct rw_composite *c) {
        const struct wide w = wide_of(c);
        return extreme(&w, c->n->op, c->in[0]);
}

/* Bits of a piece, so that n of them sum within int32; 0: too many. */
static int64_t piece_bits(const struct wide *w, uint32_t x) {
        int64_t n = 1;
        for (uint32_t i = 0; i < w->n_axes; i++) {
                int64_t most = rw_most(w->b, rw_value(w->b, x)->dims[w->axes[i]]);
                if (most > 1 << 23 || (most && n > (1 << 23) / most))
                        return 0;
                n *= most;
        }
        return n <= 1 << 15 ? 16 : 8;
}

/* The pieces of an int32 word, summed and put to their place; the topmost one of a number of 32 bits has its sign. */
static uint32_t add_word(const struct wide *w, uint32_t word, int64_t bits, int64_t place, bool has_sign, uint32_t sum) {
        struct rw *b = w->b;
        for (int64_t at = 0; at < 32; at += bits) {
                uint32_t piece = at ? rw_binary(b, AF_OP_SHIFT_RIGHT, word, rw_int(b, AF_DTYPE_INT32, at)) : word;
                if (!has_sign || at + bits < 32)
                        piece = rw_binary(b, AF_OP_BITWISE_AND, piece, rw_int(b, AF_DTYPE_INT32, (INT64_C(1) << bits) - 1));
                piece = rw_cast(b, rw_reduce(b, AF_OP_REDUCE_SUM, piece, w->axes, w->n_axes, true, AF_DTYPE_INT32), AF_DTYPE_INT64);
                if (place + at)
                        piece = rw_binary(b, AF_OP_SHIFT_LEFT, piece, rw_int(b, AF_DTYPE_INT64, place + at));
                sum = sum == AF_NONE ? piece : rw_binary(b, AF_OP_ADD, sum, piece);
        }
        return sum;
}

uint32_t rw_wide_sum(const struct rw_composite *c) {
        const struct wide w = wide_of(c);
        uint32_t x = c->in[0];
        int64_t bits = piece_bits(&w, x);
        if (!bits)
                return rw_fail(c->b);
        if (rw_value(c->b, x)->dtype != AF_DTYPE_INT64)
                return add_word(&w, rw_cast(c->b, x, AF_DTYPE_INT32), bits, 0, true, AF_NONE);
        uint32_t low = add_word(&w, low_word(c->b, x), bits, 0, false, AF_NONE), high = high_word(c->b, x);
        return add_word(&w, high, bits, 32, false, low);
}
