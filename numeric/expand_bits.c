/* SPDX-License-Identifier: Apache-2.0 */
/* Bit operations, shifts by amounts that differ from element to element, kinds of floats. */
#include "numeric/build_macros.h"

/* The highest bit alone. */
static uint64_t top_bit(enum af_dtype d) {
        return (uint64_t)1 << (af_dtype_size(d) * 8 - 1);
}

af_val af_x_bit_xor(struct af_builder *b, af_val x, af_val y) {
        af_val any = AF_B2(AF_PRIM_OR, x, y), both = AND(x, y);

        return AND(any, af_b_unary(b, AF_PRIM_NOT, both));
}

af_val af_x_copysign(struct af_builder *b, af_val x, af_val s) {
        enum af_dtype d = af_build_type(b, x);
        af_val sign = AND(s, af_b_dup(b, d, top_bit(d)));

        return AF_B2(AF_PRIM_OR, AND(x, af_b_dup(b, d, top_bit(d) - 1)), sign);
}

/* 2^n as float32 for an int32 n in [-126, 127]. */
static af_val power_of_two(struct af_builder *b, af_val n) {
        return AS_F32(INT_SHL(INT_ADDS(n, 127), 23));
}

/*
 * x 2^n in wrapping arithmetic; as a factor -2^n and a change of sign, since 2^31 is no int32. n outside of [0, bits) gives 0; bits: of the
 * type that x was widened from.
 */
static af_val shl_i16(struct af_builder *b, af_val x, af_val n, unsigned bits) {
        af_val f = af_b_cast(b, n, AF_DTYPE_FLOAT32, AF_ROUND_NONE);
        af_val c = MINS(MAXS(f, 0.0f), (float)(bits - 1));
        af_val inside = CMP(AF_CMP_EQ, c, f);
        af_val factor = af_b_cast(b, MULS(power_of_two(b, TO_I32(c)), -1.0f), AF_DTYPE_INT16, AF_ROUND_RINT);
        af_val r = af_b_scalar(b, AF_PRIM_MULS, MUL(x, factor), 0xffffu);

        return SELECT(inside, r, af_b_dup(b, AF_DTYPE_INT16, 0));
}

static af_val shl_i32(struct af_builder *b, af_val x, af_val n) {
        af_val c = af_b_scalar(b, AF_PRIM_MINS, af_b_scalar(b, AF_PRIM_MAXS, n, 0), 31);
        af_val inside = CMP(AF_CMP_EQ, c, n);
        af_val r = MUL(x, TO_I32(MULS(power_of_two(b, c), -1.0f)));

        return SELECT(inside, af_b_scalar(b, AF_PRIM_MULS, r, 0xffffffffu), af_b_dup(b, AF_DTYPE_INT32, 0));
}

af_val af_x_shift_left(struct af_builder *b, af_val x, af_val n, unsigned bits) {
        return af_build_type(b, x) == AF_DTYPE_INT16 ? shl_i16(b, x, n, bits) : shl_i32(b, x, n);
}

/* floor(x 2^-n), exact in float32; n < 0 or beyond most counts as most. */
static af_val shr_i16(struct af_builder *b, af_val x, af_val n, unsigned most) {
        af_val f = af_b_cast(b, n, AF_DTYPE_FLOAT32, AF_ROUND_NONE);
        af_val c = SELECT(IF(LT, f, 0.0f), DUP((float)most), MINS(f, (float)most));
        af_val factor = power_of_two(b, TO_I32(MULS(c, -1.0f)));

        return af_b_cast(b, MUL(af_b_cast(b, x, AF_DTYPE_FLOAT32, AF_ROUND_NONE), factor), AF_DTYPE_INT16, AF_ROUND_FLOOR);
}

/* Bit by bit of n. */
static af_val shr_i32(struct af_builder *b, af_val x, af_val n) {
        af_val natural = af_b_cmps(b, AF_CMP_EQ, INT_SHR(n, 31), 0);
        af_val c = SELECT(natural, af_b_scalar(b, AF_PRIM_MINS, n, 31), INT_DUP(AF_DTYPE_INT32, 31));

        for (unsigned k = 0; k < 5; k++) {
                af_val bit = AND(c, INT_DUP(AF_DTYPE_INT32, 1u << k));
                af_val keep = af_b_cmps(b, AF_CMP_EQ, bit, 0);

                x = SELECT(keep, x, INT_SHR(x, 1u << k));
        }
        return x;
}

af_val af_x_shift_right(struct af_builder *b, af_val x, af_val n, unsigned most) {
        return af_build_type(b, x) == AF_DTYPE_INT16 ? shr_i16(b, x, n, most) : shr_i32(b, x, n);
}

af_val af_x_shift_const(struct af_builder *b, enum af_op op, af_val x, int64_t n, unsigned bits, bool is_signed) {
        enum af_dtype d = af_build_type(b, x);
        int64_t most = (int64_t)bits - is_signed;

        if (op == AF_OP_SHIFT_LEFT)
                return n < 0 || n >= (int64_t)bits ? af_b_dup(b, d, 0) : INT_SHL(x, (unsigned)n);
        n = n < 0 || n > most ? most : n;
        return INT_SHR(x, (unsigned)n);
}

af_val af_x_bits(struct af_builder *b, enum af_op op, af_val x, af_val y) {
        bool mask = af_build_type(b, x) == AF_DTYPE_MASK;

        switch (op) {
        case AF_OP_BITWISE_AND:
                return AF_B2(mask ? AF_PRIM_MASK_AND : AF_PRIM_AND, x, y);
        case AF_OP_BITWISE_OR:
                return AF_B2(mask ? AF_PRIM_MASK_OR : AF_PRIM_OR, x, y);
        case AF_OP_BITWISE_XOR:
                return mask ? af_b_mask_xor(b, x, y) : af_x_bit_xor(b, x, y);
        default: /* BITWISE_NOT */
                return af_b_unary(b, mask ? AF_PRIM_MASK_NOT : AF_PRIM_NOT, x);
        }
}

/* x: float16 or float32. */
af_val af_x_float_kind(struct af_builder *b, enum af_op op, af_val x) {
        uint64_t inf = af_build_type(b, x) == AF_DTYPE_FLOAT16 ? AF_F16_INF : AF_F32_INF;

        if (op == AF_OP_ISNAN)
                return CMP(AF_CMP_NE, x, x);
        return af_b_cmps(b, op == AF_OP_ISINF ? AF_CMP_EQ : AF_CMP_LT, ABS(x), inf);
}
