/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x^y = e^(y ln|x|), the logarithm and the product as unevaluated sums of two float32 (about 2^-40 relative), so that the last
 * rounding is the only one that shows: powers that are exact come out exact as long as they are moderate.
 *
 *   |x| = 2^k m, sqrt(1/2) <= m < sqrt(2);  s = (m - 1) / (m + 1)
 *   ln|x| / 2 = k ln2 / 2 + s + s^3 (1/3 + s^2 Q(s^2))
 *
 * Specials as C and PyTorch have them: x^0 = 1^y = 1 even for NaN; a negative base needs an integral exponent, else NaN; zeros and
 * infinities by the sign of y, negative for negative x and odd y.
 */
#include "numeric/build_macros.h"

/* A sum high + low that is not evaluated. */
struct pair {
        af_val high, low;
};

/* high + low as a pair whose high part is the rounded sum; |high| >= |low| or high = 0. */
static struct pair normalise(struct af_builder *b, af_val high, af_val low) {
        struct pair r;

        r.high = ADD(high, low);
        r.low = SUB(low, SUB(r.high, high));
        return r;
}

static struct pair product(struct af_builder *b, af_val x, af_val y) {
        struct pair r;

        r.high = af_b_two_product(b, x, y, &r.low);
        return r;
}

/* (m - 1) / (m + 1) */
static struct pair ratio(struct af_builder *b, af_val m) {
        af_val f = ADDS(m, -1.0f), d = ADDS(m, 1.0f), d_low = SUB(m, ADDS(d, -1.0f));
        struct pair s, p;
        af_val rest;

        s.high = DIV(f, d);
        p = product(b, s.high, d);
        rest = SUB(SUB(SUB(f, p.high), p.low), MUL(s.high, d_low));
        s.low = DIV(rest, d);
        return s;
}

/* s^3 (1/3 + s^2 Q(s^2)) */
static struct pair tail(struct af_builder *b, const struct pair *s) {
        static const float q[] = {0x1.dfa4fcp-4f, 0x1.245274p-3f, 0x1.999a00p-3f};
        const float third = 0x1.555556p-2f, third_low = -0x1.555556p-27f;
        struct pair z = product(b, s->high, s->high), t, c, r;
        af_val rest;

        z.low = ADD(z.low, MUL(ADD(s->high, s->high), s->low));
        t = product(b, s->high, z.high);
        t.low = ADD(t.low, ADD(MUL(s->high, z.low), MUL(s->low, z.high)));
        rest = MUL(z.high, HORNER(z.high, q));
        c = normalise(b, DUP(third), rest);
        c.low = ADDS(c.low, third_low);
        r = product(b, t.high, c.high);
        r.low = ADD(r.low, ADD(MUL(t.high, c.low), MUL(t.low, c.high)));
        return r;
}

/* ln a, a > 0 */
static struct pair logarithm(struct af_builder *b, af_val a) {
        af_val k, m = af_b_split_float(b, a, &k), low;
        struct pair s = ratio(b, m), t = tail(b, &s), h1, h2, r;

        h1 = normalise(b, MULS(k, 0x1.62ep-2f), s.high);
        h2 = normalise(b, h1.high, t.high);
        low = ADD(ADD(h1.low, h2.low), ADD(ADD(s.low, t.low), MULS(k, 0x1.0bfbe8p-16f)));
        r = normalise(b, h2.high, low);
        r.high = MULS(r.high, 2.0f);
        r.low = MULS(r.low, 2.0f);
        return r;
}

/* e^(t.high + t.low), as af_f32_exp with a second part. */
static af_val exponential(struct af_builder *b, struct pair t) {
        static const float p[] = {0x1.6d839ap-10f, 0x1.123f90p-7f, 0x1.5554b8p-5f, 0x1.55548ap-3f, 0.5f};
        af_val n, h, w, r, low, s, q, y;

        t.high = MINS(MAXS(t.high, -110.0f), 100.0f);
        t.low = MINS(MAXS(t.low, -0x1p-12f), 0x1p-12f);
        n = af_b_cast(b, MULS(t.high, 0x1.715476p0f), AF_DTYPE_FLOAT32, AF_ROUND_RINT);
        h = SUB(t.high, MULS(n, 0x1.63p-1f));
        w = MULS(n, -0x1.bd0106p-13f);
        r = SUB(h, w);
        low = ADD(SUB(SUB(h, r), w), t.low);
        s = ADDS(r, 1.0f);
        q = MUL(MUL(r, r), HORNER(r, p));
        y = ADD(SUB(r, ADDS(s, -1.0f)), ADD(q, MUL(low, ADD(s, q))));
        y = ADD(s, y);
        return af_b_scale(b, y, TO_I32(n));
}

/* y integral; odd as well. Infinities and numbers from 2^24 are even. */
static void parity(struct af_builder *b, af_val y, af_val *ret_integral, af_val *ret_odd) {
        af_val half = MULS(y, 0.5f);

        *ret_integral = CMP(AF_CMP_EQ, ROUND(TRUNC, y), y);
        *ret_odd = MASK_AND(*ret_integral, CMP(AF_CMP_NE, ROUND(TRUNC, half), half));
}

af_val af_x_pow(struct af_builder *b, af_val x, af_val y) {
        const float inf = af_f32_from_bits(AF_F32_INF);
        af_val a = ABS(x), clamped, integral, odd, r, edge, by_sign, bad, negative, either;
        struct pair l = logarithm(b, a), t;

        /* The least |ln a| but 0 is 2^-24: beyond 2^33 the power is 0, 1 or infinite. */
        clamped = MINS(MAXS(y, -0x1p33f), 0x1p33f);
        t = product(b, clamped, l.high);
        t.low = ADD(t.low, MUL(clamped, l.low));
        r = exponential(b, t);
        parity(b, y, &integral, &odd);

        bad = MASK_AND(IF(LT, x, 0.0f), MASK_NOT(integral));
        r = SELECT(bad, af_b_dup(b, AF_DTYPE_FLOAT32, AF_F32_NAN), r);
        edge = MASK_OR(IF(EQ, a, 0.0f), IF(EQ, a, inf));
        by_sign = SELECT(IF(LT, y, 0.0f), DIV(DUP(1.0f), a), a);
        r = SELECT(edge, by_sign, r);
        negative = af_b_cmps(b, AF_CMP_EQ, INT_SHR(AS_INT(x), 31), 0xffffffffu);
        r = SELECT(MASK_AND(negative, odd), MULS(r, -1.0f), r);
        either = MAX(x, y); /* NaN if one is */
        r = SELECT(af_b_cmp(b, AF_CMP_NE, either, either), either, r);
        return SELECT(MASK_OR(IF(EQ, x, 1.0f), IF(EQ, y, 0.0f)), DUP(1.0f), r);
}
