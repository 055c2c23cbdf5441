/* SPDX-License-Identifier: Apache-2.0 */
/* Integer division and power, on int16 or int32 values. */
#include "numeric/build_macros.h"

/* int16: the rounded float32 quotient of two 16-bit integers never reaches an integer that the exact one misses. */
static af_val div_i16(struct af_builder *b, af_val x, af_val y, bool floor) {
        af_val fy = af_b_cast(b, y, AF_DTYPE_FLOAT32, AF_ROUND_NONE);
        af_val q = DIV(af_b_cast(b, x, AF_DTYPE_FLOAT32, AF_ROUND_NONE), fy);

        q = SELECT(IF(EQ, fy, 0.0f), DUP(0.0f), q);
        q = af_b_cast(b, q, AF_DTYPE_INT32, floor ? AF_ROUND_FLOOR : AF_ROUND_TRUNC);
        return af_b_cast(b, af_b_wrap(b, q, 16, true), AF_DTYPE_INT16, AF_ROUND_NONE);
}

/* Quotient q and rest r of x by y, improved by the rounded float32 quotient of the rest; wraps like the exact ones. */
static af_val refine(struct af_builder *b, af_val rest, af_val y, af_val fy, af_val *ret_rest) {
        af_val q = DIV(af_b_cast(b, rest, AF_DTYPE_FLOAT32, AF_ROUND_RINT), fy);

        q = TO_I32(q);
        *ret_rest = SUB(rest, MUL(q, y));
        return q;
}

/*
 * int32: a float32 quotient is good to 22 bits; that of the rest gives the others. Rounding to nearest keeps each rest within
 * |y| / 2 and a little, so that nothing overflows but INT_MIN / -1, which saturates once and comes out as INT_MIN. A rest whose sign is
 * not x's means that the quotient is one too far from zero.
 */
static af_val div_i32(struct af_builder *b, af_val x, af_val y) {
        af_val fy = af_b_cast(b, y, AF_DTYPE_FLOAT32, AF_ROUND_RINT);
        af_val rest, q, sign_x, sign_y, sign_rest, off, step;

        q = refine(b, x, y, fy, &rest);
        q = ADD(q, refine(b, rest, y, fy, &rest));
        sign_x = INT_SHR(x, 31);
        sign_y = INT_SHR(y, 31);
        sign_rest = INT_SHR(rest, 31);
        off = MASK_OR(af_b_cmps(b, AF_CMP_EQ, rest, 0), af_b_cmp(b, AF_CMP_EQ, sign_rest, sign_x));
        step = SELECT(af_b_cmp(b, AF_CMP_EQ, sign_x, sign_y), af_b_dup(b, AF_DTYPE_INT32, 0xffffffffu), af_b_dup(b, AF_DTYPE_INT32, 1));
        q = SELECT(off, q, ADD(q, step));
        return SELECT(af_b_cmps(b, AF_CMP_EQ, y, 0), af_b_dup(b, AF_DTYPE_INT32, 0), q);
}

static uint64_t minus_one(const struct af_builder *b, af_val x) {
        return af_build_type(b, x) == AF_DTYPE_INT16 ? 0xffffu : 0xffffffffu;
}

/* The rest of the division towards zero for int32: 0 for y = 0. */
static af_val rest_i32(struct af_builder *b, af_val x, af_val y, af_val q) {
        af_val rest = SUB(x, MUL(q, y));

        return SELECT(af_b_cmps(b, AF_CMP_EQ, y, 0), af_b_dup(b, AF_DTYPE_INT32, 0), rest);
}

/* Mask: the rest is zero or has y's sign, so that the quotient towards zero is the floor too. */
static af_val is_floor_i32(struct af_builder *b, af_val rest, af_val y) {
        af_val same = CMP(AF_CMP_EQ, INT_SHR(rest, 31), INT_SHR(y, 31));

        return MASK_OR(af_b_cmps(b, AF_CMP_EQ, rest, 0), same);
}

af_val af_x_int_div(struct af_builder *b, af_val x, af_val y, bool floor) {
        af_val q, is_floor;

        if (af_build_type(b, x) == AF_DTYPE_INT16)
                return div_i16(b, x, y, floor);
        q = div_i32(b, x, y);
        if (!floor)
                return q;
        is_floor = is_floor_i32(b, rest_i32(b, x, y, q), y);
        return SELECT(is_floor, q, INT_ADDS(q, -1));
}

af_val af_x_int_rest(struct af_builder *b, af_val x, af_val y, bool floor) {
        af_val zero, rest;

        if (af_build_type(b, x) == AF_DTYPE_INT16) {
                zero = IF(EQ, af_b_cast(b, y, AF_DTYPE_FLOAT32, AF_ROUND_NONE), 0.0f);
                rest = SUB(x, MUL(div_i16(b, x, y, floor), y));
                return SELECT(zero, af_b_dup(b, AF_DTYPE_INT16, 0), rest);
        }
        rest = rest_i32(b, x, y, div_i32(b, x, y));
        return floor ? SELECT(is_floor_i32(b, rest, y), rest, ADD(rest, y)) : rest;
}

static af_val equals(struct af_builder *b, af_val x, int value) {
        if (af_build_type(b, x) == AF_DTYPE_INT16)
                return IF(EQ, af_b_cast(b, x, AF_DTYPE_FLOAT32, AF_ROUND_NONE), (float)value);
        return af_b_cmps(b, AF_CMP_EQ, x, (uint32_t)value);
}

/* r where x is 1 or -1, else 0: a power with a negative exponent, 0 to such a power included. */
static af_val unit_only(struct af_builder *b, af_val x, af_val r) {
        af_val unit = MASK_OR(equals(b, x, 1), equals(b, x, -1));

        return SELECT(unit, r, af_b_dup(b, af_build_type(b, x), 0));
}

/*
 * Repeated squaring over the exponent's bits: a factor is 1 + bit (base - 1), so that no select is needed. For x = 1 or -1 the low
 * bits of a negative exponent give the right value too.
 */
af_val af_x_int_pow(struct af_builder *b, af_val x, af_val y, unsigned n_bits, bool is_signed) {
        enum af_dtype d = af_build_type(b, x);
        af_val one = af_b_dup(b, d, 1), base = x, r = one, negative;

        for (unsigned k = 0; k < n_bits; k++) {
                af_val bit = AND(k ? INT_SHR(y, k) : y, one);
                af_val factor = MUL(bit, INT_ADDS(base, minus_one(b, x)));

                factor = INT_ADDS(factor, 1);
                r = k ? MUL(r, factor) : factor;
                if (k + 1 < n_bits)
                        base = MUL(base, base);
        }
        if (!is_signed)
                return r;
        negative = equals(b, INT_SHR(y, af_dtype_size(d) * 8 - 1), -1);
        return SELECT(negative, unit_only(b, x, r), r);
}

af_val af_x_int_pow_const(struct af_builder *b, af_val x, int64_t e) {
        af_val one = af_b_dup(b, af_build_type(b, x), 1), base = x, r = one;
        uint64_t bits = (uint64_t)e;
        bool first = true;

        if (e < 0)
                return unit_only(b, x, bits & 1 ? x : MUL(x, x));
        for (; bits; bits >>= 1) {
                if (bits & 1) {
                        r = first ? base : MUL(r, base);
                        first = false;
                }
                if (bits > 1)
                        base = MUL(base, base);
        }
        return r;
}
