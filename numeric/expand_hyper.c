/* SPDX-License-Identifier: Apache-2.0 */
/* Hyperbolic functions, their inverses and logarithms that are built on Ln, in float32. Measured errors are in docs/numerics.md. */
#include "numeric/build_macros.h"

#define LN2 0x1.62e430p-1f

/* ln(u + low) for a low part that u has lost: ln u + low / u. */
static af_val ln_sum(struct af_builder *b, af_val u, af_val low) {
        return ADD(LN(u), DIV(low, u));
}

/* What the rounded sum u = x + y lacks, for |x| >= |y|. */
static af_val lost(struct af_builder *b, af_val x, af_val y, af_val u) {
        return SUB(y, SUB(u, x));
}

/* ln(1 + x): u = 1 + x, what that lost added to the logarithm. Where nothing was lost, or x is no number, ln u as it is. */
af_val af_x_log1p(struct af_builder *b, af_val x) {
        af_val u = ADDS(x, 1.0f), v = ADDS(u, -1.0f);
        af_val one_part = ADDS(MULS(SUB(u, v), -1.0f), 1.0f);
        af_val low = ADD(one_part, SUB(x, v)), l = LN(u);
        af_val r = SELECT(IF(GT, ABS(low), 0.0f), ADD(l, DIV(low, u)), l);

        return SELECT(IF(EQ, x, 0.0f), x, r);
}

/*
 * e^a for sinh and cosh, a >= 0. From 80 on it is half of e^a as e^(a - K) (e^K / 2): a - K is exact, K chosen so that e^K / 2 is within
 * 2^-36 of a float, so that the function overflows where it should.
 */
static af_val exponential(struct af_builder *b, af_val a, af_val *ret_half) {
        const float k = 0x1.f80600p+5f, half_ek = 0x1.dbbc26p+89f;
        af_val big = IF(GT, a, 80.0f);
        af_val t = EXP(SELECT(big, ADDS(a, -k), a));

        *ret_half = MUL(t, SELECT(big, DUP(half_ek), DUP(0.5f)));
        return t;
}

/* |x| < 1: x + x^3 P(x^2); else (e^a - e^-a) / 2. */
af_val af_x_sinh(struct af_builder *b, af_val x) {
        static const float p[] = {0x1.756cb4p-19f, 0x1.a022bap-13f, 0x1.1110e0p-7f, 0x1.555556p-3f};
        af_val a = ABS(x), z = MUL(a, a), half, t = exponential(b, a, &half);
        af_val small = ADD(a, MUL(a, MUL(z, HORNER(z, p))));
        af_val large = SUB(half, DIV(DUP(0.5f), t));

        return af_b_copysign(b, SELECT(IF(LT, a, 1.0f), small, large), x);
}

af_val af_x_cosh(struct af_builder *b, af_val x) {
        af_val half, t = exponential(b, ABS(x), &half);

        return ADD(half, DIV(DUP(0.5f), t));
}

/* a + a^3 P(a^2) up to 1; ln(a + sqrt(a^2 + 1)) up to 2^15; ln a + ln 2 beyond. */
af_val af_x_asinh(struct af_builder *b, af_val x) {
        static const float p[] = {-0x1.987d02p-12f, 0x1.3ac772p-9f,  -0x1.cc3458p-8f, 0x1.bd15e4p-7f, -0x1.57e8f2p-6f,
                                  0x1.ec8162p-6f,   -0x1.6d5b46p-5f, 0x1.33301ap-4f,  -0x1.55554cp-3f};
        af_val a = ABS(x), c = MINS(a, 0x1p15f), z = MUL(c, c), s = af_b_unary(b, AF_PRIM_SQRT, ADDS(z, 1.0f));
        af_val u = ADD(c, s), far = IF(GT, a, 0x1p15f);
        af_val more = SELECT(far, DUP(LN2), DIV(lost(b, s, c, u), u));
        af_val large = ADD(LN(SELECT(far, a, u)), more);
        af_val small = ADD(a, MUL(a, MUL(z, HORNER(z, p))));

        return af_b_copysign(b, SELECT(IF(LE, a, 1.0f), small, large), x);
}

/* ln(1 + w), w = t + sqrt(t (t + 2)), t = x - 1, up to 2^15; ln x + ln 2 beyond. NaN below 1. */
af_val af_x_acosh(struct af_builder *b, af_val x) {
        af_val t = ADDS(MINS(x, 0x1p15f), -1.0f), s = af_b_unary(b, AF_PRIM_SQRT, MUL(t, ADDS(t, 2.0f)));
        af_val w = ADD(s, t), u = ADDS(w, 1.0f), far = IF(GT, x, 0x1p15f), below = IF(LT, w, 1.0f);
        /* The rounded sum of 1 and w, the larger first. */
        af_val first = SELECT(below, DUP(1.0f), w), second = SELECT(below, w, DUP(1.0f));
        af_val low = ADD(lost(b, first, second, u), lost(b, s, t, w)), r;

        r = ADD(LN(SELECT(far, x, u)), SELECT(far, DUP(LN2), DIV(low, u)));
        return SELECT(IF(LT, x, 1.0f), af_b_dup(b, AF_DTYPE_FLOAT32, AF_F32_NAN), r);
}

/* a + a^3 P(a^2) up to 1/2; ln(1 + 2 a / (1 - a)) / 2 beyond. */
af_val af_x_atanh(struct af_builder *b, af_val x) {
        static const float p[] = {0x1.6947dep-3f, 0x1.a6975ep-5f, 0x1.e4045ep-4f, 0x1.234d60p-3f, 0x1.99a678p-3f, 0x1.555540p-2f};
        af_val a = ABS(x), z = MUL(a, a), below_one = ADDS(MULS(a, -1.0f), 1.0f);
        af_val w = DIV(MULS(a, 2.0f), below_one), u = ADDS(w, 1.0f);
        af_val large = MULS(ln_sum(b, u, lost(b, w, DUP(1.0f), u)), 0.5f);
        af_val small = ADD(a, MUL(a, MUL(z, HORNER(z, p)))), r;

        r = SELECT(IF(LE, a, 0.5f), small, large);
        r = SELECT(IF(EQ, a, 1.0f), DUP(af_f32_from_bits(AF_F32_INF)), r);
        return af_b_copysign(b, r, x);
}

/* ln m and k of x = 2^k m; where x is no positive number, ln x in its place. */
static af_val ln_split(struct af_builder *b, af_val x, af_val *ret_k) {
        af_val m = af_b_split_float(b, x, ret_k);
        af_val number = MASK_AND(IF(GT, x, 0.0f), IF(LT, x, af_f32_from_bits(AF_F32_INF)));

        return LN(SELECT(number, m, x));
}

/* k + ln m / ln 2: whole for powers of two. */
af_val af_x_log2(struct af_builder *b, af_val x) {
        af_val k, l = ln_split(b, x, &k);

        return ADD(k, MULS(l, 0x1.715476p+0f));
}

/* k lg 2 + ln m / ln 10, lg 2 in two parts of which the first times k is exact: whole for powers of ten. */
af_val af_x_log10(struct af_builder *b, af_val x) {
        af_val k, l = ln_split(b, x, &k);
        af_val rest = ADD(MULS(l, 0x1.bcb7b2p-2f), MULS(k, 0x1.3509f8p-18f));

        return ADD(MULS(k, 0x1.3440p-2f), rest);
}

/* 2^n e^(f ln 2), n the nearest integer. */
af_val af_x_exp2(struct af_builder *b, af_val x) {
        af_val c = MINS(MAXS(x, -160.0f), 130.0f), n = ROUND(RINT, c);
        af_val r = EXP(MULS(SUB(c, n), LN2));

        return af_b_scale(b, r, TO_I32(n));
}
