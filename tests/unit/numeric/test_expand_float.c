/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unary float ops and pow: every float16 and bfloat16 pattern, and float32 over every exponent, against double. A 16-bit result may miss
 * the correctly rounded one only where the float32 error can turn a rounding.
 */
#include "tests/unit/numeric/help.h"

static double rsqrt_(double x) {
        return 1 / sqrt(x);
}
static double reciprocal_(double x) {
        return 1 / x;
}
static double sigmoid_(double x) {
        return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}
static double silu_(double x) {
        return isinf(x) && x < 0 ? NAN : x * sigmoid_(x);
}
static double gelu_(double x) {
        return isinf(x) && x < 0 ? NAN : x > 0 ? x * (1 - erfc(x / sqrt(2)) / 2) : x * erfc(-x / sqrt(2)) / 2;
}
static double gelu_tanh_(double x) {
        return isinf(x) && x < 0 ? NAN : x * sigmoid_(2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
}
static double neg_(double x) {
        return -x;
}
static double sign_(double x) {
        return (x > 0) - (x < 0);
}
static double relu_(double x) {
        return isnan(x) ? x : x > 0 ? x : 0;
}
static double leaky_(double x) {
        return x > 0 ? x : x * (double)0.01f;
}
static double square_(double x) {
        return x * x;
}
static double clip_(double x) {
        return isnan(x) ? x : x < -1.5 ? -1.5 : x > 2.25 ? 2.25 : x;
}

static const struct unary_case {
        enum af_op op;
        double (*exact)(double);
        double bound; /* ulps of float32; 0: exact. gelu's tanh form: of max(|y|, |x| 2^-6), see docs/numerics.md */
        double limit; /* finite |x| up to which the bound holds; 0: all */
        bool gelu_tanh;
} cases[] = {
        {AF_OP_ABS, fabs, 0, 0, false},
        {AF_OP_NEG, neg_, 0, 0, false},
        {AF_OP_SIGN, sign_, 0, 0, false},
        {AF_OP_RELU, relu_, 0, 0, false},
        {AF_OP_FLOOR, floor, 0, 0, false},
        {AF_OP_CEIL, ceil, 0, 0, false},
        {AF_OP_ROUND, rint, 0, 0, false},
        {AF_OP_TRUNC, trunc, 0, 0, false},
        {AF_OP_CLIP, clip_, 0, 0, false},
        {AF_OP_SQUARE, square_, 0.5, 0, false},
        {AF_OP_LEAKY_RELU, leaky_, 0.5, 0, false},
        {AF_OP_SQRT, sqrt, 0.5, 0, false},
        {AF_OP_RECIPROCAL, reciprocal_, 0.5, 0, false},
        {AF_OP_RSQRT, rsqrt_, 1.5, 0, false},
        {AF_OP_EXP, exp, 0.8, 0, false},
        {AF_OP_LOG, log, 0.7, 0, false},
        {AF_OP_LOG1P, log1p, 1.6, 0, false},
        {AF_OP_EXPM1, expm1, 1.3, 0, false},
        {AF_OP_TANH, tanh, 1.2, 0, false},
        {AF_OP_SIGMOID, sigmoid_, 2.4, 0, false},
        {AF_OP_SILU, silu_, 4.2, 0, false},
        {AF_OP_ERF, erf, 1.2, 0, false},
        {AF_OP_GELU, gelu_, 3.9, 0, false},
        {AF_OP_GELU, gelu_tanh_, 8, 0, true},
        {AF_OP_SIN, sin, 1.0, 102943, false},
        {AF_OP_COS, cos, 1.0, 102943, false},
        {AF_OP_TAN, tan, 1.5, 102943, false},
        {AF_OP_ASIN, asin, 1.8, 0, false},
        {AF_OP_ACOS, acos, 1.3, 0, false},
        {AF_OP_ATAN, atan, 1.4, 0, false},
        {AF_OP_SINH, sinh, 1.6, 0, false},
        {AF_OP_COSH, cosh, 1.4, 0, false},
        {AF_OP_ASINH, asinh, 1.6, 0, false},
        {AF_OP_ACOSH, acosh, 1.8, 0, false},
        {AF_OP_ATANH, atanh, 1.4, 0, false},
        {AF_OP_EXP2, exp2, 1.0, 0, false},
        {AF_OP_LOG2, log2, 1.8, 0, false},
        {AF_OP_LOG10, log10, 2, 0, false},
        {AF_OP_ERFC, erfc, 3.8, 0, false},
};
enum { N_CASES = sizeof(cases) / sizeof(cases[0]) };

static const struct af_expand_attrs *attrs_of(const struct unary_case *c) {
        static struct af_expand_attrs a;

        a = (struct af_expand_attrs){.alpha = 0.01, .gelu_tanh = c->gelu_tanh, .has_min = true, .has_max = true, .min = -1.5, .max = 2.25};
        return &a;
}

/* Error in units of the last place; for gelu's tanh form of a number no smaller than |x| 2^-6. */
static double error_of(const struct unary_case *c, double x, double got, double want, int bits, int e_min) {
        double u = ulps(got, want, bits, e_min);

        if (c->gelu_tanh && isfinite(want) && fabs(want) < fabs(x) * 0x1p-6)
                return u * fmax(fabs(want), ldexp(1, e_min)) / fmax(fabs(x) * 0x1p-6, ldexp(1, e_min));
        return u;
}

static bool in_limit(const struct unary_case *c, double x) {
        return !c->limit || !(fabs(x) > c->limit) || isinf(x);
}

static void check_16bit(struct failures *f, const struct unary_case *c, enum af_dtype d) {
        static uint16_t in[65536], out[65536];
        int bits = d == AF_DTYPE_FLOAT16 ? 11 : 8, e_min = d == AF_DTYPE_FLOAT16 ? -14 : -126;
        unsigned turned = 0;

        for (unsigned i = 0; i < 65536; i++)
                in[i] = (uint16_t)i;
        cr_assert_eq(eval(c->op, 1, d, d, attrs_of(c), in, NULL, out, 65536), 0);
        for (unsigned i = 0; i < 65536; i++) {
                double x = as_double(d, &in[i]), want = c->exact(x), got = as_double(d, &out[i]);
                /* One rounding, and what the float32 value before it may be off. */
                double room = 0.5 + c->bound * ldexp(1, bits - 24) * 1.01;
                double e = in_limit(c, x) ? error_of(c, x, got, want, bits, e_min) : 0;

                if (e > (c->bound ? room : 0))
                        fail(f, "%s(%a) = %a, want %a: %.3f ulp", af_op_info(c->op)->name, x, got, want, e);
                turned += e > 0.5;
        }
        if (turned)
                fprintf(stderr, "  %s %s: %u of 65536 not correctly rounded\n", af_op_info(c->op)->name, af_dtype_name(d), turned);
}

Test(expand_float, every_float16) {
        struct failures f = {0};

        for (int i = 0; i < N_CASES; i++)
                check_16bit(&f, &cases[i], AF_DTYPE_FLOAT16);
        EXPECT_NONE(f);
}

Test(expand_float, every_bfloat16) {
        struct failures f = {0};

        for (int i = 0; i < N_CASES; i++)
                check_16bit(&f, &cases[i], AF_DTYPE_BFLOAT16);
        EXPECT_NONE(f);
}

enum { CHUNK = 1 << 14 };

static void check_f32(struct failures *f, const struct unary_case *c) {
        static float in[CHUNK], out[CHUNK];
        uint64_t u = 0, seed = 6;
        double worst = 0, at = 0;

        while (u < (uint64_t)1 << 32) {
                unsigned n = 0;

                for (; n < CHUNK && u < (uint64_t)1 << 32; u += 5003 + random64(&seed) % 64)
                        in[n++] = af_f32_from_bits((uint32_t)u);
                for (unsigned i = 0; i < N_F32_SPECIALS && i < n; i++)
                        in[i] = af_f32_from_bits(f32_specials[i]);
                cr_assert_eq(eval(c->op, 1, AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT32, attrs_of(c), in, NULL, out, n), 0);
                for (unsigned i = 0; i < n; i++) {
                        double want = c->exact((double)in[i]);
                        double e = in_limit(c, (double)in[i]) ? error_of(c, (double)in[i], (double)out[i], want, 24, -126) : 0;

                        if (e > c->bound)
                                fail(f, "%s(%a) = %a, want %a: %.3f ulp", af_op_info(c->op)->name, (double)in[i], (double)out[i], want, e);
                        if (e > worst) {
                                worst = e;
                                at = (double)in[i];
                        }
                }
        }
        fprintf(stderr, "  %-10s %s %.3f ulp at %a\n", af_op_info(c->op)->name, c->gelu_tanh ? "tanh" : "", worst, at);
}

Test(expand_float, float32_over_every_exponent) {
        struct failures f = {0};

        for (int i = 0; i < N_CASES; i++)
                check_f32(&f, &cases[i]);
        EXPECT_NONE(f);
}

/* Beyond the range of sin and cos: bounded, NaN for infinities. */
Test(expand_float, sin_stays_bounded) {
        float x[4] = {1e6f, -3e38f, INFINITY, NAN}, y[4];

        cr_assert_eq(eval(AF_OP_SIN, 1, AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT32, NULL, x, NULL, y, 4), 0);
        cr_expect(fabsf(y[0]) <= 1 && fabsf(y[1]) <= 1 && isnan(y[2]) && isnan(y[3]));
}

/* Kind k of pair number i: random bits; results over the whole range; bases near 1; small integers; specials. */
static void pow_pair(int k, int i, uint64_t *seed, float *ret_x, float *ret_y) {
        double target;

        *ret_x = af_f32_from_bits((uint32_t)random64(seed));
        *ret_y = af_f32_from_bits((uint32_t)random64(seed));
        switch (k) {
        case 1:
                *ret_x = fabsf(*ret_x);
                target = (double)(int32_t)random64(seed) * 0x1p-31 * 105;
                *ret_y = (float)(target / log((double)*ret_x));
                break;
        case 2:
                *ret_x = 1 + (float)((int)(random64(seed) % 2001) - 1000) * 0x1p-24f;
                *ret_y = (float)(int32_t)random64(seed);
                break;
        case 3:
                *ret_x = (float)(i % 61 - 30);
                *ret_y = (float)(i / 61 % 41 - 20);
                break;
        case 4:
                *ret_x = af_f32_from_bits(f32_specials[i % N_F32_SPECIALS]);
                *ret_y = af_f32_from_bits(f32_specials[i / N_F32_SPECIALS % N_F32_SPECIALS]);
                break;
        default:
                break;
        }
}

/* Results that are whole stay whole. */
Test(expand_float, whole_results) {
        float x[16], y[16];
        double p = 1;

        for (int i = 0; i < 16; i++, p *= 10)
                x[i] = (float)p;
        cr_assert_eq(eval(AF_OP_LOG10, 1, AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT32, NULL, x, NULL, y, 11), 0);
        for (int i = 0; i < 11; i++)
                cr_expect_eq(y[i], (float)i);
        for (int e = -149; e < 128; e++) {
                x[0] = ldexpf(1, e);
                cr_assert_eq(eval(AF_OP_LOG2, 1, AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT32, NULL, x, NULL, y, 1), 0);
                cr_expect_eq(y[0], (float)e);
                cr_assert_eq(eval(AF_OP_EXP2, 1, AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT32, NULL, y, NULL, y + 1, 1), 0);
                cr_expect_eq(y[1], x[0]);
        }
        x[0] = 0;
        cr_assert_eq(eval(AF_OP_ERFC, 1, AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT32, NULL, x, NULL, y, 1), 0);
        cr_expect_eq(y[0], 1);
        cr_assert_eq(eval(AF_OP_COSH, 1, AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT32, NULL, x, NULL, y, 1), 0);
        cr_expect_eq(y[0], 1);
}

static double atan2_(double y, double x) {
        return atan2(y, x);
}
static double hypot_(double x, double y) {
        return hypot(x, y);
}

static const struct binary_case {
        enum af_op op;
        double (*exact)(double, double);
        double bound; /* ulps */
} pairs[] = {{AF_OP_ATAN2, atan2_, 1.7}, {AF_OP_HYPOT, hypot_, 1.4}};

/* Any bits; numbers of like size; specials with each other. */
static void any_pair(int k, int i, uint64_t *seed, float *ret_x, float *ret_y) {
        *ret_x = af_f32_from_bits((uint32_t)random64(seed));
        *ret_y = af_f32_from_bits((uint32_t)random64(seed));
        if (k == 1)
                *ret_y = *ret_x * ldexpf((float)(int32_t)random64(seed), -31 + i % 9 - 4);
        if (k == 2) {
                *ret_x = af_f32_from_bits(f32_specials[i % N_F32_SPECIALS]);
                *ret_y = af_f32_from_bits(f32_specials[i / N_F32_SPECIALS % N_F32_SPECIALS]);
        }
}

static void check_pairs(struct failures *f, const struct binary_case *c, enum af_dtype d) {
        static float x[CHUNK], y[CHUNK];
        static uint32_t a[CHUNK], b[CHUNK], z[CHUNK]; /* room for any type */
        int bits = d == AF_DTYPE_FLOAT32 ? 24 : d == AF_DTYPE_FLOAT16 ? 11 : 8, e_min = d == AF_DTYPE_FLOAT16 ? -14 : -126;
        double room = d == AF_DTYPE_FLOAT32 ? c->bound : 0.5 + c->bound * ldexp(1, bits - 24) * 1.01, worst = 0;
        uint64_t seed = 9;

        for (int k = 0; k < 3; k++) {
                for (int i = 0; i < CHUNK; i++)
                        any_pair(k, i, &seed, &x[i], &y[i]);
                cr_assert_eq(eval(AF_OP_CAST, 1, AF_DTYPE_FLOAT32, d, NULL, x, NULL, a, CHUNK), 0);
                cr_assert_eq(eval(AF_OP_CAST, 1, AF_DTYPE_FLOAT32, d, NULL, y, NULL, b, CHUNK), 0);
                cr_assert_eq(eval(c->op, 2, d, d, NULL, a, b, z, CHUNK), 0);
                for (size_t i = 0; i < CHUNK; i++) {
                        size_t at = i * af_dtype_size(d);
                        double u = as_double(d, (char *)a + at), v = as_double(d, (char *)b + at), got = as_double(d, (char *)z + at);
                        double want = c->exact(u, v), e = ulps(got, want, bits, e_min);

                        if (e > room)
                                fail(f, "%s %s(%a, %a) = %a, want %a: %.3f ulp", af_dtype_name(d), af_op_info(c->op)->name, u, v, got, want,
                                     e);
                        worst = fmax(worst, e);
                }
        }
        fprintf(stderr, "  %s %s: %.3f ulp\n", af_op_info(c->op)->name, af_dtype_name(d), worst);
}

Test(expand_float, functions_of_two) {
        static const enum af_dtype ds[] = {AF_DTYPE_FLOAT16, AF_DTYPE_BFLOAT16, AF_DTYPE_FLOAT32};
        struct failures f = {0};

        for (unsigned k = 0; k < sizeof(pairs) / sizeof(pairs[0]); k++)
                for (int t = 0; t < 3; t++)
                        check_pairs(&f, &pairs[k], ds[t]);
        EXPECT_NONE(f);
}

Test(expand_float, pow_accuracy) {
        static float x[CHUNK], y[CHUNK], z[CHUNK];
        struct failures f = {0};
        uint64_t seed = 7;

        for (int k = 0; k < 5; k++) {
                double worst = 0;

                for (int rep = 0; rep < 8; rep++) {
                        for (int i = 0; i < CHUNK; i++)
                                pow_pair(k, i, &seed, &x[i], &y[i]);
                        cr_assert_eq(eval(AF_OP_POW, 2, AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT32, NULL, x, y, z, CHUNK), 0);
                        for (int i = 0; i < CHUNK; i++) {
                                double want = pow((double)x[i], (double)y[i]), e;

                                /* Below double's range too: compare signs of zero alone. */
                                want = fabs(want) < 0x1p-160 ? copysign(0, want) : want;
                                e = ulps_f32(z[i], want);
                                if (e > 0.9 || (k == 3 && want == (double)(float)want && fabs(want) < 0x1p24 && z[i] != (float)want))
                                        fail(&f, "pow(%a, %a) = %a, want %a", (double)x[i], (double)y[i], (double)z[i], want);
                                worst = fmax(worst, e);
                        }
                }
                fprintf(stderr, "  pow kind %d: %.3f ulp\n", k, worst);
        }
        EXPECT_NONE(f);
}

Test(expand_float, pow_16bit) {
        struct failures f = {0};
        static uint16_t x[CHUNK], y[CHUNK], z[CHUNK];
        uint64_t seed = 8;

        for (int rep = 0; rep < 16; rep++) {
                enum af_dtype d = rep % 2 ? AF_DTYPE_BFLOAT16 : AF_DTYPE_FLOAT16;

                for (int i = 0; i < CHUNK; i++) {
                        x[i] = (uint16_t)random64(&seed);
                        y[i] = (uint16_t)random64(&seed);
                }
                cr_assert_eq(eval(AF_OP_POW, 2, d, d, NULL, x, y, z, CHUNK), 0);
                for (int i = 0; i < CHUNK; i++) {
                        double want = pow(as_double(d, &x[i]), as_double(d, &y[i]));

                        want = fabs(want) < 0x1p-160 ? copysign(0, want) : want;
                        if (ulps(as_double(d, &z[i]), want, d == AF_DTYPE_FLOAT16 ? 11 : 8, d == AF_DTYPE_FLOAT16 ? -14 : -126) > 0.501)
                                fail(&f, "%s pow(%04x, %04x) = %04x", af_dtype_name(d), x[i], y[i], z[i]);
                }
        }
        EXPECT_NONE(f);
}
