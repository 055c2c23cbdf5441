/* SPDX-License-Identifier: Apache-2.0 */
/* float16 and bfloat16 against plain arithmetic on doubles: every bit pattern, every midpoint, every mode. */
#include "tests/unit/numeric/help.h"

/* The number that a float16 pattern stands for, from the format's definition. */
static double f16_value(unsigned h) {
        int e = (h >> 10) & 31, m = h & 1023;
        double v = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);

        return h & 0x8000 ? -v : v;
}

static double bf16_value(unsigned h) {
        int e = (h >> 7) & 255, m = h & 127;
        double v = e == 255 ? (m ? NAN : INFINITY) : e ? ldexp(128 + m, e - 134) : ldexp(m, -133);

        return h & 0x8000 ? -v : v;
}

Test(half, every_pattern_widens_exactly) {
        struct failures f = {0};

        for (unsigned h = 0; h < 65536; h++) {
                float a = af_f16_to_f32((uint16_t)h), b = af_bf16_to_f32((uint16_t)h);
                double va = f16_value(h), vb = bf16_value(h);

                if (isnan(va) ? af_bits_f32(a) != AF_F32_NAN : a != va || !signbit(a) != !signbit(va))
                        fail(&f, "float16 %04x gives %a", h, (double)a);
                if (isnan(vb) ? af_bits_f32(b) != AF_F32_NAN : b != vb || !signbit(b) != !signbit(vb))
                        fail(&f, "bfloat16 %04x gives %a", h, (double)b);
        }
        EXPECT_NONE(f);
}

/* x lies between the finite magnitudes low and low + 1 (patterns): which one does the mode take? past: value of the pattern after the last.
 */
static unsigned expected(double x, unsigned low, double (*value)(unsigned), double past, unsigned inf, enum af_round mode) {
        double a = value(low), b = low + 1 == inf ? past : value(low + 1), m = fabs(x);
        bool up;

        if (m == a)
                up = false;
        else if (mode == AF_ROUND_RINT || mode == AF_ROUND_NONE)
                up = m - a > b - m || (m - a == b - m && (low & 1));
        else if (mode == AF_ROUND_ROUND)
                up = m - a >= b - m;
        else
                up = mode != AF_ROUND_TRUNC && (mode == AF_ROUND_CEIL) == !signbit(x);
        return (low + up) | (signbit(x) ? 0x8000u : 0);
}

static void check_boundary(struct failures *f, bool half, unsigned low) {
        double (*value)(unsigned) = half ? f16_value : bf16_value;
        unsigned inf = half ? 0x7c00 : 0x7f80;
        double past = half ? 65536 : 0x1p128;
        double a = value(low), b = low + 1 == inf ? past : value(low + 1), mid = (a + b) / 2;
        float xs[5] = {(float)a, (float)mid, nextafterf((float)mid, 0), nextafterf((float)mid, INFINITY), nextafterf((float)b, 0)};

        for (int k = 0; k < 10; k++) {
                float x = k < 5 ? xs[k] : -xs[k - 5];

                for (int mode = AF_ROUND_NONE; mode <= AF_ROUND_TRUNC; mode++) {
                        unsigned want = expected(x, low, value, past, inf, (enum af_round)mode);
                        unsigned got = half ? af_cast_f32_f16(x, (enum af_round)mode) : af_cast_f32_bf16(x, (enum af_round)mode);

                        if (got != want)
                                fail(f, "%s of %a mode %d: %04x, want %04x", half ? "float16" : "bfloat16", (double)x, mode, got, want);
                }
        }
}

Test(half, every_boundary_rounds_right) {
        struct failures f = {0};

        for (unsigned h = 0; h < 0x7c00; h++)
                check_boundary(&f, true, h);
        for (unsigned h = 0; h < 0x7f80; h++)
                check_boundary(&f, false, h);
        EXPECT_NONE(f);
}

Test(half, specials_round) {
        const float inf = INFINITY;

        cr_expect_eq(af_f16_from_f32(inf), 0x7c00);
        cr_expect_eq(af_f16_from_f32(-inf), 0xfc00);
        cr_expect_eq(af_f16_from_f32(af_f32_from_bits(0xff800123u)), 0x7e00);
        cr_expect_eq(af_f16_from_f32(65519.0f), 0x7bff);
        cr_expect_eq(af_f16_from_f32(65520.0f), 0x7c00);
        cr_expect_eq(af_f16_from_f32(1e30f), 0x7c00);
        cr_expect_eq(af_f16_from_f32_mode(1e30f, AF_ROUND_TRUNC), 0x7bff);
        cr_expect_eq(af_f16_from_f32_mode(-1e30f, AF_ROUND_CEIL), 0xfbff);
        cr_expect_eq(af_f16_from_f32_mode(-1e30f, AF_ROUND_FLOOR), 0xfc00);
        cr_expect_eq(af_f16_from_f32_mode(-inf, AF_ROUND_CEIL), 0xfc00);
        cr_expect_eq(af_bf16_from_f32(af_f32_from_bits(0x7f7fffffu)), 0x7f80);
        cr_expect_eq(af_bf16_from_f32(af_f32_from_bits(0x7f800001u)), 0x7fc0);
        cr_expect_eq(af_bf16_from_f32_mode(af_f32_from_bits(0x7f800001u), AF_ROUND_TRUNC), 0x7fc0);
        cr_expect_eq(af_bf16_from_f32_mode(af_f32_from_bits(0x7f7fffffu), AF_ROUND_TRUNC), 0x7f7f);
}

/* float16 arithmetic: the double result of two halves is exact or far from a tie, so that rounding it once is the true result. */
Test(half, arithmetic_rounds_once) {
        struct failures f = {0};
        uint64_t seed = 1;

        for (unsigned a = 0; a < 65536; a++) {
                for (int k = 0; k < 24; k++) {
                        unsigned b = (unsigned)random64(&seed) & 0xffff;
                        double x = f16_value(a), y = f16_value(b);
                        double want[4] = {x + y, x - y, x * y, x / y};
                        uint16_t got[4] = {af_f16_add((uint16_t)a, (uint16_t)b), af_f16_sub((uint16_t)a, (uint16_t)b),
                                           af_f16_mul((uint16_t)a, (uint16_t)b), af_f16_div((uint16_t)a, (uint16_t)b)};

                        for (int o = 0; o < 4; o++)
                                if (ulps(f16_value(got[o]), want[o], 11, -14) > 0.5 || (isnan(want[o]) && got[o] != AF_F16_NAN))
                                        fail(&f, "op %d of %04x and %04x: %04x, want %a", o, a, b, got[o], want[o]);
                }
        }
        EXPECT_NONE(f);
}

static int order(double x) {
        return isnan(x) ? 2 : signbit(x) ? -1 : 1;
}

Test(half, compares_and_extremes) {
        struct failures f = {0};
        uint64_t seed = 2;

        for (unsigned a = 0; a < 65536; a++) {
                for (int k = 0; k < 16; k++) {
                        uint16_t p = (uint16_t)a, q = (uint16_t)(k == 0 ? a : k == 1 ? a ^ 0x8000 : random64(&seed));
                        double x = f16_value(p), y = f16_value(q);
                        bool swap = x < y || (x == y && order(x) < order(y));
                        unsigned max = isnan(x) || isnan(y) ? AF_F16_NAN : swap ? q : p;
                        unsigned min = isnan(x) || isnan(y) ? AF_F16_NAN : swap ? p : q;

                        if (af_f16_lt(p, q) != (x < y) || af_f16_le(p, q) != (x <= y) || af_f16_gt(p, q) != (x > y) ||
                            af_f16_ge(p, q) != (x >= y) || af_f16_eq(p, q) != (x == y) || af_f16_ne(p, q) != (x != y))
                                fail(&f, "compare %04x %04x", p, q);
                        if (af_f16_max(p, q) != max || af_f16_max(q, p) != max || af_f16_min(p, q) != min || af_f16_min(q, p) != min)
                                fail(&f, "max or min of %04x %04x", p, q);
                }
        }
        EXPECT_NONE(f);
}
