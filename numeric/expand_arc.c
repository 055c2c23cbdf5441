/* SPDX-License-Identifier: Apache-2.0 */
/* Inverse trigonometric functions and hypot in float32. Coefficients are own minimax fits; measured errors are in docs/numerics.md. */
#include "numeric/build_macros.h"

#define HALF_PI     0x1.921fb6p+0f
#define HALF_PI_LOW -0x1.777a5cp-25f /* what it lacks */

/* pi/2 - a, the low part first: |a| is below 2. */
static af_val from_half_pi(struct af_builder *b, af_val a) {
        af_val rest = ADDS(a, -HALF_PI_LOW);

        return SUB(DUP(HALF_PI), rest);
}

/* Mask: the sign bit is set. */
static af_val is_negative(struct af_builder *b, af_val x) {
        return af_b_cmps(b, AF_CMP_EQ, INT_SHR(AS_INT(x), 31), 0xffffffffu);
}

/* atan q for 0 <= q <= 1: q + q^3 P(q^2). */
static af_val atan_unit(struct af_builder *b, af_val q) {
        static const float p[] = {-0x1.d3794cp-10f, 0x1.6430e2p-7f,  -0x1.fd8502p-6f, 0x1.da2bdap-5f, -0x1.580950p-4f,
                                  0x1.c08c52p-4f,   -0x1.242086p-3f, 0x1.9991e4p-3f,  -0x1.55553ep-2f};
        af_val z = MUL(q, q);

        return ADD(q, MUL(q, MUL(z, HORNER(z, p))));
}

/* By min(a, 1) / max(a, 1), a = |x|; beyond 1 from pi/2. */
af_val af_x_atan(struct af_builder *b, af_val x) {
        af_val a = ABS(x), r = atan_unit(b, DIV(MINS(a, 1.0f), MAXS(a, 1.0f)));

        return af_b_copysign(b, SELECT(IF(GT, a, 1.0f), from_half_pi(b, r), r), x);
}

/* The same with min / max of |y| and |x|: 0 for two zeros, 1 for two infinities; y's sign last. */
af_val af_x_atan2(struct af_builder *b, af_val y, af_val x) {
        af_val ay = ABS(y), ax = ABS(x), most = MAX(ay, ax), least = AF_B2(AF_PRIM_MIN, ay, ax);
        af_val q = DIV(least, most), r;

        q = SELECT(IF(EQ, most, 0.0f), DUP(0.0f), q);
        q = SELECT(IF(EQ, least, af_f32_from_bits(AF_F32_INF)), DUP(1.0f), q);
        r = atan_unit(b, q);
        r = SELECT(CMP(AF_CMP_GT, ay, ax), from_half_pi(b, r), r);
        /* pi - r: twice the halves, exactly. */
        r = SELECT(is_negative(b, x), MULS(from_half_pi(b, MULS(r, 0.5f)), 2.0f), r);
        return af_b_copysign(b, r, y);
}

/*
 * asin |x| up to 1/2, asin sqrt((1 - |x|) / 2) beyond: s + s z P(z) with z = s^2. NaN beyond 1. ret_s and ret_rest: the sum's parts.
 */
static void arcsine(struct af_builder *b, af_val a, af_val big, af_val *ret_s, af_val *ret_rest) {
        static const float p[] = {0x1.596d60p-5f, 0x1.8c2d84p-6f, 0x1.747d06p-5f, 0x1.3301fcp-4f, 0x1.5555c8p-3f};
        af_val z = SELECT(big, ADDS(MULS(a, -0.5f), 0.5f), MUL(a, a));
        af_val s = SELECT(big, af_b_unary(b, AF_PRIM_SQRT, z), a);

        *ret_s = s;
        *ret_rest = MUL(s, MUL(z, HORNER(z, p)));
}

/* pi/2 - 2 asin sqrt((1 - |x|) / 2) beyond 1/2: pi/2 - 2 s is exact where it cancels. */
af_val af_x_asin(struct af_builder *b, af_val x) {
        af_val a = ABS(x), big = IF(GT, a, 0.5f), s, rest, top;

        arcsine(b, a, big, &s, &rest);
        top = SUB(DUP(HALF_PI), MULS(s, 2.0f));
        top = SUB(top, ADDS(MULS(rest, 2.0f), -HALF_PI_LOW));
        return af_b_copysign(b, SELECT(big, top, ADD(s, rest)), x);
}

/* pi/2 - asin x up to 1/2; 2 asin sqrt((1 - |x|) / 2) beyond, for negative x taken from pi. */
af_val af_x_acos(struct af_builder *b, af_val x) {
        af_val a = ABS(x), big = IF(GT, a, 0.5f), negative = IF(LT, x, 0.0f), s, rest, small, sum, far;

        arcsine(b, a, big, &s, &rest);
        sum = ADD(s, rest);
        small = SELECT(negative, MULS(sum, -1.0f), sum);
        far = MULS(SELECT(negative, from_half_pi(b, sum), sum), 2.0f);
        return SELECT(big, far, from_half_pi(b, small));
}

/* Scaled by a power of two where squares would leave float32's range. Infinite where one is, even beside a NaN. */
af_val af_x_hypot(struct af_builder *b, af_val x, af_val y) {
        const float inf = af_f32_from_bits(AF_F32_INF);
        af_val ax = ABS(x), ay = ABS(y), most = MAX(ax, ay);
        af_val scale = SELECT(IF(LT, most, 0x1p-60f), DUP(0x1p90f), DUP(1.0f)), p, q, r;

        scale = SELECT(IF(GT, most, 0x1p60f), DUP(0x1p-70f), scale);
        p = MUL(ax, scale);
        q = MUL(ay, scale);
        r = af_b_unary(b, AF_PRIM_SQRT, ADD(MUL(p, p), MUL(q, q)));
        r = MUL(r, DIV(DUP(1.0f), scale));
        return SELECT(MASK_OR(IF(EQ, ax, inf), IF(EQ, ay, inf)), DUP(inf), r);
}
