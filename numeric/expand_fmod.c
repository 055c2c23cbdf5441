/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rest of a float division, exactly. With |x| = mx 2^ex, |y| = my 2^ey (mx, my < 2^24 integers, ex - ey <= 253) the rest is
 * (mx 2^(ex-ey) mod my) 2^ey. Long division, STEP bits at a time:
 *
 *   r <- r 2^s - q my, q = the float32 quotient r 2^s / my rounded to nearest
 *
 * in wrapping int32 arithmetic. |r| <= my, so q is below 2^STEP and off by at most one half and a little: |r| stays below my, however
 * often bits were lost in between. s is STEP while that many bits remain, then what remains, then 0.
 */
#include "numeric/build_macros.h"

enum { STEP = 22, STEPS_F32 = 12, STEPS_F16 = 2 /* ex - ey <= 39 */ };

/* Integer significand and biased exponent (1 for subnormals) of a >= 0; of no meaning for infinities and NaN. */
static af_val split(struct af_builder *b, af_val a, af_val *ret_e) {
        af_val i = AS_INT(a), e = INT_SHR(i, 23);
        af_val m = AND(i, INT_DUP(AF_DTYPE_INT32, 0x7fffffu));
        af_val subnormal = af_b_cmps(b, AF_CMP_EQ, e, 0);

        *ret_e = af_b_scalar(b, AF_PRIM_MAXS, e, 1);
        return SELECT(subnormal, m, INT_ADDS(m, 0x800000));
}

/* r 2^s - q my for the q nearest to r 2^s / my; pf = 2^s. */
static af_val step(struct af_builder *b, af_val r, af_val pf, af_val my, af_val myf) {
        af_val q = TO_I32(DIV(MUL(TO_F32(r), pf), myf));

        return SUB(MUL(r, TO_I32(pf)), MUL(q, my));
}

af_val af_x_fmod(struct af_builder *b, af_val x, af_val y, bool is_half) {
        af_val ax = ABS(x), ay = ABS(y), ex, ey, mx, my, myf, d, r, ok;

        mx = split(b, ax, &ex);
        my = split(b, ay, &ey);
        myf = TO_F32(my);
        r = SUB(mx, MUL(TO_I32(DIV(TO_F32(mx), myf)), my));
        d = af_b_scalar(b, AF_PRIM_MAXS, SUB(ex, ey), 0);
        for (unsigned i = is_half ? STEPS_F16 : STEPS_F32; i > 0; i--) {
                af_val s = af_b_scalar(b, AF_PRIM_MINS, d, STEP);

                r = step(b, r, AS_F32(INT_SHL(INT_ADDS(s, 127), 23)), my, myf);
                if (i > 1)
                        d = SUB(d, s);
        }
        r = SELECT(af_b_cmps(b, AF_CMP_EQ, INT_SHR(r, 31), 0), r, ADD(r, my));
        r = TO_F32(r);
        r = af_b_copysign(b, af_b_scale(b, r, INT_ADDS(ey, -150)), x);
        r = SELECT(CMP(AF_CMP_LT, ax, ay), x, r);
        ok = MASK_AND(IF(LT, ax, af_f32_from_bits(AF_F32_INF)), IF(GT, ay, 0.0f));
        return SELECT(ok, r, af_b_dup(b, AF_DTYPE_FLOAT32, AF_F32_NAN));
}

/* Mask: the rest m is not zero and its sign is not y's. */
static af_val off_side(struct af_builder *b, af_val m, af_val y) {
        af_val m_negative = IF(LT, m, 0.0f), y_negative = IF(LT, y, 0.0f);
        af_val signs = af_b_mask_xor(b, m_negative, y_negative);

        return MASK_AND(IF(NE, m, 0.0f), signs);
}

af_val af_x_remainder(struct af_builder *b, af_val x, af_val y, bool is_half) {
        af_val m = af_x_fmod(b, x, y, is_half);

        return SELECT(off_side(b, m, y), ADD(m, y), m);
}

/*
 * floor(x / y) as PyTorch has it: (x - rest) / y, one less where the rest's sign is not y's, to the nearest integer; a zero has the
 * sign of x / y; for y = 0 it is x / y.
 */
af_val af_x_floor_div(struct af_builder *b, af_val x, af_val y, bool is_half) {
        af_val m = af_x_fmod(b, x, y, is_half), plain = DIV(x, y);
        af_val q = DIV(SUB(x, m), y), f, zero;

        q = SELECT(off_side(b, m, y), ADDS(q, -1.0f), q);
        f = ROUND(FLOOR, q);
        f = SELECT(IF(GT, SUB(q, f), 0.5f), ADDS(f, 1.0f), f);
        zero = af_b_copysign(b, DUP(0.0f), plain);
        f = SELECT(IF(EQ, q, 0.0f), zero, f);
        return SELECT(IF(EQ, y, 0.0f), plain, f);
}
