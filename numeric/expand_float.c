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

/* ln(1 + x) = ln(u) x / (u - 1) with u = 1 + x rounded: what the rounding lost cancels. */
af_val af_x_log1p(struct af_builder *b, af_val x) {
        af_val u = ADDS(x, 1.0f), d = ADDS(u, -1.0f);
        af_val r = MUL(LN(u), DIV(x, d));
        af_val itself = MASK_OR(IF(EQ, d, 0.0f), IF(EQ, x, af_f32_from_bits(AF_F32_INF)));

        return SELECT(itself, x, r);
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

/* |x| < 1: x + x P(x^2); else 1 - e^(a L(a)) with L = ln(erfc(a)) / a, up to a = 4 where it is 1. */
af_val af_x_erf(struct af_builder *b, af_val x) {
        static const float p[] = {0x1.4771fcp-14f, -0x1.a3515ep-11f, 0x1.53f224p-8f, -0x1.b7f71ap-6f,
                                  0x1.ce2ce6p-4f,  -0x1.81273ep-2f,  0x1.06eba8p-3f};
        static const float l[] = {-0x1.ca42ccp-17f, 0x1.6c4f50p-12f, -0x1.eac138p-9f, 0x1.88e6c8p-6f,
                                  -0x1.b43498p-4f,  -0x1.451da8p-1f, -0x1.20f1bcp+0f};
        af_val a = ABS(x), z = MUL(a, a), c = MINS(a, 4.0f);
        af_val small = ADD(a, MUL(a, HORNER(z, p)));
        af_val big = ADDS(MULS(EXP(MUL(c, HORNER(c, l))), -1.0f), 1.0f);

        return af_b_copysign(b, SELECT(IF(LT, a, 1.0f), small, big), x);
}

/*
 * x Phi(x) by the upper tail Q(a) = e^(-a^2/2) R(a), a = |x|: x - a Q(a) for x > 0, x Q(a) below, so that the lower tail keeps its
 * digits. R(a) = t P((a - 2.5) t), t = 1 / (a + 2.5). e^(-a^2/2) in two factors: that of a's high part squared is exact before the
 * exponential. Beyond 15 the tail is zero. -inf gives NaN as x (1 + erf(x / sqrt 2)) / 2 does.
 */
af_val af_x_gelu(struct af_builder *b, af_val x) {
        static const float p[] = {-0x1.694d30p-13f, -0x1.558168p-12f, 0x1.7194c2p-11f, 0x1.4d3ab4p-9f,  -0x1.a64ca2p-10f,
                                  -0x1.0c98c8p-6f,  0x1.2eb4dcp-7f,   0x1.0e4fbep-3f,  -0x1.bc19cap-2f, 0x1.69cee6p-1f};
        af_val a = MINS(ABS(x), 15.0f);
        af_val high = af_b_high_part(b, a);
        af_val e1 = EXP(MULS(MUL(high, high), -0.5f));
        af_val e2 = EXP(MULS(MUL(SUB(a, high), ADD(a, high)), -0.5f));
        af_val t = DIV(DUP(1.0f), ADDS(a, 2.5f));
        af_val u = MUL(ADDS(a, -2.5f), t);
        /* e1 last: it may be subnormal where the product is not. */
        af_val factor = MUL(e2, MUL(t, HORNER(u, p)));
        af_val above = SUB(x, MUL(MUL(a, factor), e1));

        return SELECT(IF(GT, x, 0.0f), above, MUL(MUL(x, factor), e1));
}

/* x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3): the same as x (1 + tanh(u)) / 2. -inf gives NaN. */
af_val af_x_gelu_tanh(struct af_builder *b, af_val x) {
        af_val inner = ADDS(MULS(MUL(x, x), 0x1.2444f2p-4f), 0x1.988454p+0f);
        af_val e = EXP(MULS(ABS(MUL(x, inner)), -0.5f));
        af_val top = SELECT(IF(GE, x, 0.0f), x, MUL(MUL(x, e), e));

        return DIV(top, ADDS(MUL(e, e), 1.0f));
}
