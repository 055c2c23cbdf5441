/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Smooth float32 functions. Coefficients are own minimax fits, rounded to float32 one after another from the lowest power; measured
 * errors are in docs/numerics.md.
 */
#include "numeric/build_macros.h"

/* e^x - 1: x + x^2/2 + x^3 Q(x) up to 3/4, beyond that the difference loses less than one ulp. -0 stays. */
af_val af_x_expm1(struct af_builder *b, af_val x) {
        static const float q[] = {0x1.a06f5ap-16f, 0x1.a64746p-13f, 0x1.6c2064p-10f, 0x1.110948p-7f, 0x1.555540p-5f, 0x1.555560p-3f};
        af_val z = MUL(x, x);
        af_val small = ADD(x, ADD(MULS(z, 0.5f), MUL(MUL(z, x), HORNER(x, q))));
        af_val r = SELECT(IF(LE, ABS(x), 0.75f), small, ADDS(EXP(x), -1.0f));

        return SELECT(IF(EQ, x, 0.0f), x, r);
}

/* |x| < 0.7: x + x^3 P(x^2); else 1 - 2 / (e^2|x| + 1) with x's sign. */
af_val af_x_tanh(struct af_builder *b, af_val x) {
        static const float p[] = {0x1.f2553ep-10f, -0x1.02972cp-7f, 0x1.617fecp-6f, -0x1.b9bb3cp-5f, 0x1.110f52p-3f, -0x1.555550p-2f};
        af_val a = ABS(x), z = MUL(a, a);
        af_val small = ADD(a, MUL(a, MUL(z, HORNER(z, p))));
        af_val big = DIV(DUP(-2.0f), ADDS(EXP(MULS(a, 2.0f)), 1.0f));

        return af_b_copysign(b, SELECT(IF(LT, a, 0.7f), small, ADDS(big, 1.0f)), x);
}

/* With t = e^-|x|: 1 / (1 + t) for x >= 0, t / (1 + t) below, which stays exact down to the smallest numbers. */
af_val af_x_sigmoid(struct af_builder *b, af_val x) {
        af_val t = EXP(MULS(ABS(x), -1.0f));
        af_val top = SELECT(IF(GE, x, 0.0f), DUP(1.0f), t);

        return DIV(top, ADDS(t, 1.0f));
}

/* x sigmoid(x), with e^-|x| as a square so that x e^-|x| keeps its digits where e^-|x| is subnormal. -inf gives NaN. */
af_val af_x_silu(struct af_builder *b, af_val x) {
        af_val e = EXP(MULS(ABS(x), -0.5f));
        af_val top = SELECT(IF(GE, x, 0.0f), x, MUL(MUL(x, e), e));

        return DIV(top, ADDS(MUL(e, e), 1.0f));
}

/* x + x P(x^2) for |x| < 1 */
static af_val erf_small(struct af_builder *b, af_val x) {
        static const float p[] = {0x1.4771fcp-14f, -0x1.a3515ep-11f, 0x1.53f224p-8f, -0x1.b7f71ap-6f,
                                  0x1.ce2ce6p-4f,  -0x1.81273ep-2f,  0x1.06eba8p-3f};

        return ADD(x, MUL(x, HORNER(MUL(x, x), p)));
}

/* |x| < 1 as above; else 1 - e^(a L(a)) with L = ln(erfc(a)) / a, up to a = 4 where it is 1. */
af_val af_x_erf(struct af_builder *b, af_val x) {
        static const float l[] = {-0x1.ca42ccp-17f, 0x1.6c4f50p-12f, -0x1.eac138p-9f, 0x1.88e6c8p-6f,
                                  -0x1.b43498p-4f,  -0x1.451da8p-1f, -0x1.20f1bcp+0f};
        af_val a = ABS(x), c = MINS(a, 4.0f);
        af_val small = erf_small(b, a);
        af_val big = ADDS(MULS(EXP(MUL(c, HORNER(c, l))), -1.0f), 1.0f);

        return af_b_copysign(b, SELECT(IF(LT, a, 1.0f), small, big), x);
}

/* e^(-a^2 s), s = 1 or 1/2: what the rounded square lacks is put right by a factor of 1 - low s. */
static af_val gaussian(struct af_builder *b, af_val a, float s) {
        af_val square = MUL(a, a), high = af_b_high_part(b, a);
        af_val low = SUB(MUL(high, high), square), e;

        low = ADD(low, MUL(SUB(a, high), ADD(a, high)));
        e = EXP(MULS(square, -s));
        return SUB(e, MUL(e, s == 1.0f ? low : MULS(low, s)));
}

/*
 * P(u) of the normal distribution's upper tail Q(a) = e^(-a^2/2) P(u) / (a + 2.5), u = (a - 2.5) / (a + 2.5), for 0 <= a <= 15; beyond, the
 * tail is zero.
 */
static af_val tail(struct af_builder *b, af_val u) {
        static const float p[] = {-0x1.694d30p-13f, -0x1.558168p-12f, 0x1.7194c2p-11f, 0x1.4d3ab4p-9f,  -0x1.a64ca2p-10f,
                                  -0x1.0c98c8p-6f,  0x1.2eb4dcp-7f,   0x1.0e4fbep-3f,  -0x1.bc19cap-2f, 0x1.69cee6p-1f};

        return HORNER(u, p);
}

/*
 * x Phi(x): x - |x| Q(|x|) for x > 0, x Q(|x|) below, so that the lower tail keeps its digits. With v = x / (|x| + 2.5) the product x Q is
 * v P(2 |v| - 1) e^(-x^2/2), the exponential last: it may be subnormal. -inf gives NaN as x (1 + erf(x / sqrt 2)) / 2 does.
 */
af_val af_x_gelu(struct af_builder *b, af_val x) {
        af_val a = MINS(ABS(x), 15.0f), v = DIV(MINS(x, 15.0f), ADDS(a, 2.5f));
        af_val u = ADDS(MULS(MINS(ABS(v), 1.0f), 2.0f), -1.0f);
        af_val part = MUL(MUL(v, tail(b, u)), gaussian(b, a, 0.5f));

        return SELECT(IF(GT, x, 0.0f), SUB(x, part), part);
}

/* 1 - erf x for |x| < 13/16; else 2 Q(sqrt(2) |x|), for negative x taken from 2. */
af_val af_x_erfc(struct af_builder *b, af_val x) {
        const float c = 0x1.c48c60p+0f; /* 2.5 / sqrt(2) */
        af_val a = MINS(ABS(x), 10.5f), t = DIV(DUP(0x1.6a09e6p+0f), ADDS(a, c));
        af_val u = MUL(MULS(ADDS(a, -c), 0x1.6a09e6p-1f), t);
        af_val far = MUL(MUL(t, tail(b, u)), gaussian(b, a, 1.0f));
        af_val near = ADDS(MULS(erf_small(b, x), -1.0f), 1.0f);

        far = SELECT(IF(LT, x, 0.0f), ADDS(MULS(far, -1.0f), 2.0f), far);
        return SELECT(IF(LT, ABS(x), 0.8125f), near, far);
}

/* x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3): the same as x (1 + tanh(u)) / 2. -inf gives NaN. */
af_val af_x_gelu_tanh(struct af_builder *b, af_val x) {
        af_val inner = ADDS(MULS(MUL(x, x), 0x1.2444f2p-4f), 0x1.988454p+0f);
        af_val e = EXP(MULS(ABS(MUL(x, inner)), -0.5f));
        af_val top = SELECT(IF(GE, x, 0.0f), x, MUL(MUL(x, e), e));

        return DIV(top, ADDS(MUL(e, e), 1.0f));
}
