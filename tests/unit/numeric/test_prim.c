/* SPDX-License-Identifier: Apache-2.0 */
/* float32 primitives, integer primitives and casts against libm and plain arithmetic. */
#include "tests/unit/numeric/help.h"

static float from(uint32_t u) {
        return af_f32_from_bits(u);
}

/* Same bits, or both the one NaN. */
static bool same(float got, float want) {
        return isnan(want) ? af_bits_f32(got) == AF_F32_NAN : af_bits_f32(got) == af_bits_f32(want);
}

static int order(float x) {
        return isnan(x) ? 2 : signbit(x) ? -1 : 1;
}

static void check_pair(struct failures *f, float a, float b) {
        bool nan = isnan(a) || isnan(b), swap = a < b || (a == b && order(a) < order(b));
        float max = nan ? NAN : swap ? b : a, min = nan ? NAN : swap ? a : b;

        if (!same(af_f32_add(a, b), a + b) || !same(af_f32_sub(a, b), a - b) || !same(af_f32_mul(a, b), a * b) ||
            !same(af_f32_div(a, b), a / b))
                fail(f, "arithmetic of %a and %a", (double)a, (double)b);
        if (!same(af_f32_max(a, b), max) || !same(af_f32_min(a, b), min))
                fail(f, "max or min of %a and %a", (double)a, (double)b);
        if (af_f32_lt(a, b) != (a < b) || af_f32_le(a, b) != (a <= b) || af_f32_gt(a, b) != (a > b) || af_f32_ge(a, b) != (a >= b) ||
            af_f32_eq(a, b) != (a == b) || af_f32_ne(a, b) != (a != b))
                fail(f, "compare of %a and %a", (double)a, (double)b);
}

Test(prim, float32_pairs) {
        struct failures f = {0};
        uint64_t seed = 3;

        for (int i = 0; i < N_F32_SPECIALS; i++)
                for (int j = 0; j < N_F32_SPECIALS; j++)
                        check_pair(&f, from(f32_specials[i]), from(f32_specials[j]));
        for (int i = 0; i < 200000; i++)
                check_pair(&f, from((uint32_t)random64(&seed)), from((uint32_t)random64(&seed)));
        EXPECT_NONE(f);
}

static void check_round(struct failures *f, float x) {
        float want[6] = {rintf(x), rintf(x), floorf(x), ceilf(x), roundf(x), truncf(x)};
        float relu = isnan(x) ? NAN : x > 0 ? x : 0;

        for (int m = 0; m < 6; m++)
                if (!same(af_f32_round(x, (enum af_round)m), want[m]))
                        fail(f, "round %a mode %d: %a", (double)x, m, (double)af_f32_round(x, (enum af_round)m));
        if (!same(af_f32_relu(x), relu) || !same(af_f32_sqrt(x), sqrtf(x)) || af_bits_f32(af_f32_abs(x)) != (af_bits_f32(x) & 0x7fffffff))
                fail(f, "relu, sqrt or abs of %a", (double)x);
}

/* The number nearest in the mode, in the integer's range; NaN gives 0. */
static int64_t to_int(float x, enum af_round mode, int64_t low, int64_t high) {
        float want[6] = {rintf(x), rintf(x), floorf(x), ceilf(x), roundf(x), truncf(x)};
        float r = want[mode];

        if (isnan(r))
                return 0;
        return r <= (float)low ? low : r >= (float)high ? high : (int64_t)r;
}

static void check_to_int(struct failures *f, float x) {
        for (int i = 0; i < 6; i++) {
                enum af_round m = (enum af_round)i;

                if (af_cast_f32_i8(x, m) != to_int(x, m, -128, 127) || af_cast_f32_u8(x, m) != to_int(x, m, 0, 255) ||
                    af_cast_f32_i16(x, m) != to_int(x, m, -32768, 32767) || af_cast_f32_i32(x, m) != to_int(x, m, INT32_MIN, INT32_MAX) ||
                    af_cast_f32_i64(x, m) != to_int(x, m, INT64_MIN, INT64_MAX))
                        fail(f, "cast of %a mode %d", (double)x, i);
        }
}

Test(prim, float32_rounding) {
        struct failures f = {0};
        uint64_t seed = 4;

        for (int i = 0; i < N_F32_SPECIALS; i++) {
                check_round(&f, from(f32_specials[i]));
                check_to_int(&f, from(f32_specials[i]));
        }
        for (uint64_t u = 0; u < (uint64_t)1 << 32; u += 7919)
                check_round(&f, from((uint32_t)u));
        for (int i = 0; i < 100000; i++) {
                float x = ldexpf((float)(int32_t)random64(&seed), (int)(random64(&seed) % 80) - 55);

                check_round(&f, x);
                check_to_int(&f, x);
                x = (float)((int)(random64(&seed) % 2000) - 1000) * 0.5f; /* ties */
                check_round(&f, x);
                check_to_int(&f, x);
        }
        EXPECT_NONE(f);
}

/* Integer to float by mode, from exact neighbours in long double. */
static float int_to_float(int64_t v, enum af_round mode) {
        float r = (float)v; /* to nearest, ties to even */
        long double d = (long double)v - (long double)r;
        float other = nextafterf(r, d > 0 ? INFINITY : -INFINITY);
        bool tie = d != 0 && (long double)v - (long double)r == (long double)other - (long double)v;
        bool away = fabsf(other) > fabsf(r);

        if (d == 0 || mode == AF_ROUND_RINT || mode == AF_ROUND_NONE)
                return r;
        if (mode == AF_ROUND_ROUND)
                return tie && away ? other : r;
        if (mode == AF_ROUND_FLOOR)
                return d < 0 ? other : r;
        if (mode == AF_ROUND_CEIL)
                return d > 0 ? other : r;
        return away ? r : other; /* TRUNC: the one nearer to zero */
}

Test(prim, integers_to_float) {
        struct failures f = {0};
        uint64_t seed = 5;

        for (int i = 0; i < 300000; i++) {
                int64_t v = (int64_t)random64(&seed) >> (random64(&seed) % 64);

                if (i % 3 == 0)
                        v = (int64_t)((uint64_t)(0x800001 + 2 * (i % 1000)) << (i % 39)); /* odd 25-bit numbers: ties */
                if (i < 8)
                        v = (int64_t[]){INT64_MAX, INT64_MIN, 0, -1, 16777217, -16777217, INT64_MAX - 0x4000000000, INT32_MIN}[i];
                for (int m = 0; m < 6; m++) {
                        int32_t w = (int32_t)v;

                        if (!same(af_cast_i64_f32(v, (enum af_round)m), int_to_float(v, (enum af_round)m)))
                                fail(&f, "int64 %lld mode %d: %a", (long long)v, m, (double)af_cast_i64_f32(v, (enum af_round)m));
                        if (!same(af_cast_i32_f32(w, (enum af_round)m), int_to_float(w, (enum af_round)m)))
                                fail(&f, "int32 %d mode %d", w, m);
                }
        }
        EXPECT_NONE(f);
}

Test(prim, narrow_integers) {
        struct failures f = {0};

        for (int i = 0; i < 65536; i++) {
                int16_t v = (int16_t)i;
                float h = af_f16_to_f32(af_cast_i16_f16(v, AF_ROUND_RINT));

                if (af_cast_i16_f32(v, AF_ROUND_NONE) != (float)v || ulps(h, v, 11, -14) > 0.5)
                        fail(&f, "int16 %d", v);
                if (v >= -128 && v < 128 && af_f16_to_f32(af_cast_i8_f16((int8_t)v, AF_ROUND_NONE)) != v)
                        fail(&f, "int8 %d", v);
                if (v >= 0 && v < 256 && af_f16_to_f32(af_cast_u8_f16((uint8_t)v, AF_ROUND_NONE)) != v)
                        fail(&f, "uint8 %d", v);
        }
        EXPECT_NONE(f);
        cr_expect_eq(af_cast_i32_i16(40000, AF_ROUND_NONE), 32767);
        cr_expect_eq(af_cast_i32_i16(-40000, AF_ROUND_NONE), -32768);
        cr_expect_eq(af_cast_i64_i32((int64_t)1 << 40, AF_ROUND_NONE), INT32_MAX);
        cr_expect_eq(af_cast_i32_i64(-7, AF_ROUND_NONE), -7);
}

Test(prim, integers_wrap_and_shift) {
        cr_expect_eq(af_i16_add(32767, 1), -32768);
        cr_expect_eq(af_i16_mul(-32768, -1), -32768);
        cr_expect_eq(af_i16_mul(32767, 32767), 1);
        cr_expect_eq(af_i32_add(INT32_MAX, 1), INT32_MIN);
        cr_expect_eq(af_i32_sub(INT32_MIN, 1), INT32_MAX);
        cr_expect_eq(af_i32_mul(INT32_MIN, -1), INT32_MIN);
        cr_expect_eq(af_i32_shr(-5, 1), -3);
        cr_expect_eq(af_i32_shr(-5, 40), -1);
        cr_expect_eq(af_u32_shr(0x80000000u, 31), 1);
        cr_expect_eq(af_u32_shr(0x80000000u, 32), 0);
        cr_expect_eq(af_i32_shl(3, 31), INT32_MIN);
        cr_expect_eq(af_u32_shl(3, 32), 0);
        cr_expect_eq(af_i16_shr(-32768, 15), -1);
        cr_expect_eq(af_i16_shl(0x81, 8), (int16_t)0x8100);
        cr_expect_eq(af_u16_shl(1, 16), 0);
        cr_expect_eq(af_i32_relu(-1), 0);
}

static double sweep(float (*fn)(float), double (*exact)(double), double least, double most, uint32_t step, float *ret_at) {
        double worst = 0;

        for (uint64_t u = 0; u < (uint64_t)1 << 32; u += step) {
                float x = from((uint32_t)u);
                double e;

                if (!isnan(x) && !isinf(x) && (x < least || x > most))
                        continue;
                e = ulps_f32(fn(x), exact((double)x));
                if (e > worst) {
                        worst = e;
                        *ret_at = x;
                }
        }
        return worst;
}

static float f32_exp(float x) {
        return af_f32_exp(x);
}

static float f32_ln(float x) {
        return af_f32_ln(x);
}

Test(prim, exp_and_ln_accuracy) {
        float at = 0;
        double e = sweep(f32_exp, exp, -200, 200, 1499, &at);

        fprintf(stderr, "  exp: %.3f ulp at %a\n", e, (double)at);
        cr_expect_lt(e, 0.8);
        e = sweep(f32_ln, log, -INFINITY, INFINITY, 1499, &at);
        fprintf(stderr, "  ln: %.3f ulp at %a\n", e, (double)at);
        cr_expect_lt(e, 0.7);
        cr_expect_eq(af_bits_f32(af_f32_ln(from(0x80000000))), 0xff800000u);
        cr_expect_eq(af_bits_f32(af_f32_ln(-1.0f)), AF_F32_NAN);
        cr_expect_eq(af_f32_ln(1.0f), 0.0f);
        cr_expect_eq(af_f32_exp(0.0f), 1.0f);
        cr_expect_eq(af_f32_exp(-INFINITY), 0.0f);
        cr_expect_eq(af_f32_exp(INFINITY), INFINITY);
}
