/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sin, cos and tan. x = n pi/2 + r with n the nearest integer and pi/2 in six parts: the first five have 8 bits, so that n times each is
 * exact up to n = 2^16; r is kept as r + r_low. Good up to |x| = 102,943; beyond, x is taken as that, so that the result stays within
 * [-1, 1]. Infinities give NaN.
 */
#include "numeric/build_macros.h"

struct reduced {
        af_val r, r_low; /* |r| <= pi/4 and a little */
        af_val n;        /* int32 */
};

/* x - y rounded, and what that lost added to *low. */
static af_val subtract(struct af_builder *b, af_val x, af_val y, af_val *ret_low) {
        af_val d = SUB(x, y);

        *ret_low = SUB(SUB(x, d), y);
        return d;
}

static struct reduced reduce(struct af_builder *b, af_val x) {
        static const float limit = 102943.0f;
        af_val n, r, low1, low2, low;
        struct reduced out;

        x = MINS(MAXS(x, -limit), limit);
        n = af_b_cast(b, MULS(x, 0x1.45f306p-1f), AF_DTYPE_FLOAT32, AF_ROUND_RINT);
        r = SUB(x, MULS(n, 0x1.92p+0f));
        r = SUB(r, MULS(n, 0x1.ep-12f));
        r = SUB(r, MULS(n, 0x1.b4p-16f));
        r = subtract(b, r, MULS(n, 0x1.44p-24f), &low1);
        r = subtract(b, r, MULS(n, 0x1.08p-34f), &low2);
        low = SUB(ADD(low1, low2), MULS(n, 0x1.a308d4p-41f));
        out.r = ADD(r, low);
        out.r_low = ADD(SUB(r, out.r), low);
        out.n = TO_I32(n);
        return out;
}

static af_val sine(struct af_builder *b, const struct reduced *a, af_val z) {
        static const float s[] = {0x1.7bf19cp-19f, -0x1.a058e4p-13f, 0x1.111174p-7f, -0x1.555556p-3f};

        return ADD(a->r, ADD(MUL(MUL(a->r, z), HORNER(z, s)), a->r_low));
}

static af_val cosine(struct af_builder *b, const struct reduced *a, af_val z) {
        static const float c[] = {0x1.99e1d6p-16f, -0x1.6c0c1cp-10f, 0x1.55554ap-5f};
        af_val h = MULS(z, 0.5f), one = DUP(1.0f);
        af_val top = SUB(one, h), low = SUB(SUB(one, top), h);
        af_val rest = SUB(MUL(MUL(z, z), HORNER(z, c)), MUL(a->r, a->r_low));

        return ADD(top, ADD(low, rest));
}

/* quarter: 0 sin, 1 cos. */
static af_val circular(struct af_builder *b, af_val x, unsigned quarter) {
        struct reduced a = reduce(b, x);
        af_val z = MUL(a.r, a.r), n = a.n, even, negative, y;

        if (quarter)
                n = INT_ADDS(n, quarter);
        even = af_b_cmps(b, AF_CMP_EQ, AND(n, af_b_dup(b, AF_DTYPE_INT32, 1)), 0);
        /* Quarters 2 and 3 are negative: a factor of 1 or -1. */
        negative = AND(n, af_b_dup(b, AF_DTYPE_INT32, 2));
        negative = ADDS(MULS(af_b_cast(b, negative, AF_DTYPE_FLOAT32, AF_ROUND_RINT), -1.0f), 1.0f);
        y = MUL(SELECT(even, sine(b, &a, z), cosine(b, &a, z)), negative);
        /* x - x is NaN for infinities. */
        return ADD(y, SUB(x, x));
}

af_val af_x_sin(struct af_builder *b, af_val x) {
        return SELECT(IF(EQ, x, 0.0f), x, circular(b, x, 0));
}

af_val af_x_cos(struct af_builder *b, af_val x) {
        return circular(b, x, 1);
}

/*
 * r + r^3 P(r^2) as a sum t + t_low; -1 / t for odd quarters, the low part put in by its derivative.
 */
af_val af_x_tan(struct af_builder *b, af_val x) {
        static const float p[] = {0x1.1f1c48p-8f, 0x1.5b8ae0p-14f, 0x1.632664p-7f, 0x1.5cb1bcp-6f,
                                  0x1.badae8p-5f, 0x1.110d9ap-3f,  0x1.555560p-2f};
        struct reduced a = reduce(b, x);
        af_val z = MUL(a.r, a.r), even, rest, t, low, q, y;

        even = af_b_cmps(b, AF_CMP_EQ, AND(a.n, af_b_dup(b, AF_DTYPE_INT32, 1)), 0);
        rest = ADD(MUL(a.r, MUL(z, HORNER(z, p))), a.r_low);
        t = ADD(a.r, rest);
        low = SUB(rest, SUB(t, a.r));
        q = DIV(DUP(-1.0f), t);
        y = SELECT(even, t, ADD(q, MUL(MUL(q, q), low)));
        y = ADD(y, SUB(x, x));
        return SELECT(IF(EQ, x, 0.0f), x, y);
}
