/* SPDX-License-Identifier: Apache-2.0 */
/* The combine order against a plain recursion that follows the rule's words; reduction plans on short rows. */
#include "tests/unit/numeric/help.h"

static float op(enum af_combine c, float a, float b) {
        return c == AF_COMBINE_ADD   ? af_f32_add(a, b)
               : c == AF_COMBINE_MUL ? af_f32_mul(a, b)
               : c == AF_COMBINE_MAX ? af_f32_max(a, b)
                                     : af_f32_min(a, b);
}

static float identity(enum af_combine c) {
        return c == AF_COMBINE_ADD ? 0.0f : c == AF_COMBINE_MUL ? 1.0f : c == AF_COMBINE_MAX ? -INFINITY : INFINITY;
}

static float adjacent_pairs(enum af_combine c, const float *v, unsigned n) {
        return n == 1 ? v[0] : op(c, adjacent_pairs(c, v, n / 2), adjacent_pairs(c, v + n / 2, n / 2));
}

/* Chunks of 1,024 in 64 lanes and a tree, or of 32 in sequence; then the same on the chunk results. */
static float naive(enum af_combine c, bool last, const float *v, size_t n) {
        size_t chunk = last ? 1024 : 32, n_chunks = (n + chunk - 1) / chunk;
        float *results, r;

        if (!n)
                return identity(c);
        results = malloc(n_chunks * sizeof(float));
        for (size_t k = 0; k < n_chunks; k++) {
                float lanes[64];

                for (int j = 0; j < 64; j++)
                        lanes[j] = identity(c);
                for (size_t i = k * chunk; i < n && i < (k + 1) * chunk; i++) {
                        size_t lane = last ? i % 64 : 0;

                        lanes[lane] = op(c, lanes[lane], v[i]);
                }
                results[k] = last ? adjacent_pairs(c, lanes, 64) : lanes[0];
        }
        r = n_chunks == 1 ? results[0] : naive(c, last, results, n_chunks);
        free(results);
        return r;
}

static const size_t lengths[] = {0,    1,    2,    31,   32,   33,    63,    64,    65,    127,   1000,  1023,    1024,    1025,   1055,
                                 1056, 1057, 2047, 2048, 4097, 32768, 32769, 40000, 65536, 65537, 99999, 1048576, 1048577, 1050000};

Test(combine, order_is_the_written_one) {
        enum { MAX = 1050000 };
        float *v = malloc(MAX * sizeof(float)), *spread = malloc(3 * MAX * sizeof(float));
        struct failures f = {0};
        uint64_t seed = 60;

        for (size_t i = 0; i < MAX; i++)
                v[i] = ldexpf((float)(int32_t)random64(&seed), -31) + 1.0f / 3;
        for (size_t i = 0; i < MAX; i++)
                spread[3 * i] = v[i];
        for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++)
                for (int last = 0; last < 2; last++)
                        for (int c = AF_COMBINE_ADD; c <= AF_COMBINE_MUL; c++) {
                                float want = naive((enum af_combine)c, last, v, lengths[k]), got, strided;

                                af_combine_run((enum af_combine)c, AF_DTYPE_FLOAT32, last, v, lengths[k], 1, &got);
                                af_combine_run((enum af_combine)c, AF_DTYPE_FLOAT32, last, spread, lengths[k], 3, &strided);
                                if (af_bits_f32(got) != af_bits_f32(want) || af_bits_f32(strided) != af_bits_f32(want))
                                        fail(&f, "n %zu last %d combine %d: %a and %a, want %a", lengths[k], last, c, (double)got,
                                             (double)strided, (double)want);
                        }
        free(v);
        free(spread);
        EXPECT_NONE(f);
}

Test(combine, specials) {
        float v[3] = {-0.0f, -0.0f, -0.0f}, r;
        int32_t i[3] = {INT32_MAX, 1, 5}, s;
        int64_t w[2] = {INT64_MAX, 1}, t;
        uint16_t h[3] = {0x8000, 0x0000, 0xbc00}, u;

        af_combine_run(AF_COMBINE_ADD, AF_DTYPE_FLOAT32, true, v, 1, 1, &r);
        cr_expect_eq(af_bits_f32(r), 0, "a sum of -0.0 is +0.0");
        af_combine_run(AF_COMBINE_ADD, AF_DTYPE_FLOAT32, false, v, 3, 1, &r);
        cr_expect_eq(af_bits_f32(r), 0);
        af_combine_run(AF_COMBINE_MAX, AF_DTYPE_FLOAT32, true, v, 3, 1, &r);
        cr_expect_eq(af_bits_f32(r), 0x80000000u, "a max of -0.0 is -0.0");
        v[1] = NAN;
        af_combine_run(AF_COMBINE_MAX, AF_DTYPE_FLOAT32, true, v, 3, 1, &r);
        cr_expect_eq(af_bits_f32(r), AF_F32_NAN);
        af_combine_run(AF_COMBINE_ADD, AF_DTYPE_INT32, true, i, 3, 1, &s);
        cr_expect_eq(s, INT32_MIN + 5);
        af_combine_run(AF_COMBINE_ADD, AF_DTYPE_INT64, true, w, 2, 1, &t);
        cr_expect_eq(t, INT64_MIN);
        af_combine_run(AF_COMBINE_MAX, AF_DTYPE_FLOAT16, false, h, 3, 1, &u);
        cr_expect_eq(u, 0);
        af_combine_run(AF_COMBINE_MIN, AF_DTYPE_FLOAT16, false, h, 3, 1, &u);
        cr_expect_eq(u, 0xbc00);
        af_combine_run(AF_COMBINE_MAX, AF_DTYPE_INT32, false, i, 0, 1, &s);
        cr_expect_eq(s, INT32_MIN);
}

/* Reduces n elements by the plan. */
static uint64_t reduce(enum af_op op_, enum af_dtype in, enum af_dtype out, const void *src, size_t n, int *ret_device) {
        struct af_reduce_plan plan;
        const char *reason;
        uint64_t acc[64] = {0}, value = 0, result = 0;
        const void *srcs[1] = {src};

        *ret_device = af_expand_reduce(op_, in, out, n, &plan, &reason);
        cr_assert_eq(af_eval_reduce_plan(op_, in, out, n, &plan, &reason), 0, "%s of %s: %s", af_op_info(op_)->name, af_dtype_name(in),
                     reason);
        af_prog_eval(&plan.pre, &in, srcs, acc, n, scratch());
        af_combine_run(plan.combine, plan.acc, true, acc, n, 1, &value);
        srcs[0] = &value;
        af_prog_eval(&plan.post, &plan.acc, srcs, &result, 1, scratch());
        return result;
}

#define EXPECT_REDUCE(op_, in, out, want, on_device, ...)                                                                                  \
        do {                                                                                                                               \
                int device_;                                                                                                               \
                uint64_t got_ = reduce(AF_OP_REDUCE_##op_, AF_DTYPE_##in, AF_DTYPE_##out, __VA_ARGS__, &device_);                          \
                cr_expect_eq(got_, (uint64_t)(want), "%s of %s gives %llx", #op_, #in, (unsigned long long)got_);                          \
                cr_expect_eq(device_, (on_device) ? 0 : AF_EXPAND_E_UNSUPPORTED, "%s of %s to %s on the device", #op_, #in, #out);         \
        } while (0)

Test(combine, plans) {
        const float fs[4] = {1.5f, -2.0f, 4.0f, 0.25f}, nan_row[2] = {NAN, 1};
        const uint16_t hs[3] = {0x3c00, 0xc000, 0x7bff}, bs[3] = {0x3f80, 0x4000, 0xbf80};
        const int8_t is[4] = {-128, 127, 3, -128};
        const uint8_t us[4] = {255, 255, 1, 0}, flags[3] = {0, 7, 0};
        const int32_t ws[3] = {INT32_MAX, 1, -7};
        const int64_t ls[3] = {INT64_MAX, 2, -1};

        EXPECT_REDUCE(SUM, FLOAT32, FLOAT32, af_bits_f32(3.75f), true, fs, 4);
        EXPECT_REDUCE(MEAN, FLOAT32, FLOAT32, af_bits_f32(0.9375f), true, fs, 4);
        EXPECT_REDUCE(MEAN, FLOAT32, FLOAT32, AF_F32_NAN, true, fs, 0);
        EXPECT_REDUCE(SUM, FLOAT32, FLOAT32, 0, true, fs, 0);
        EXPECT_REDUCE(PROD, FLOAT32, FLOAT32, af_bits_f32(1.0f), true, fs, 0);
        EXPECT_REDUCE(PROD, FLOAT32, FLOAT32, af_bits_f32(-3.0f), true, fs, 4);
        EXPECT_REDUCE(MAX, FLOAT32, FLOAT32, AF_F32_NAN, true, nan_row, 2);
        EXPECT_REDUCE(ANY, FLOAT32, BOOL, 1, true, nan_row, 1);
        EXPECT_REDUCE(SUM, FLOAT16, FLOAT16, 0x7bff, true, hs, 3);
        EXPECT_REDUCE(MIN, FLOAT16, FLOAT16, 0xc000, true, hs, 3);
        EXPECT_REDUCE(MAX, BFLOAT16, BFLOAT16, 0x4000, true, bs, 3);
        EXPECT_REDUCE(MEAN, BFLOAT16, BFLOAT16, 0x3f2b, true, bs, 3);
        EXPECT_REDUCE(SUM, INT8, INT64, (int64_t)-126, true, is, 4);
        EXPECT_REDUCE(SUM, INT8, INT8, (uint8_t)-126, true, is, 4);
        EXPECT_REDUCE(MIN, INT8, INT8, 0x80, true, is, 4);
        EXPECT_REDUCE(PROD, INT8, INT64, -128ll * 127 * 3 * -128, false, is, 4);
        EXPECT_REDUCE(SUM, UINT8, INT32, 511, true, us, 4);
        EXPECT_REDUCE(SUM, BOOL, INT64, 1, true, flags, 3);
        EXPECT_REDUCE(ANY, BOOL, BOOL, 1, true, flags, 3);
        EXPECT_REDUCE(ALL, BOOL, BOOL, 0, true, flags, 3);
        EXPECT_REDUCE(ALL, UINT8, BOOL, 1, true, us, 3);
        EXPECT_REDUCE(MAX, BOOL, BOOL, 1, true, flags, 3);
        EXPECT_REDUCE(SUM, INT32, INT32, (uint32_t)INT32_MIN - 7, true, ws, 3);
        EXPECT_REDUCE(SUM, INT32, INT64, (int64_t)INT32_MAX - 6, false, ws, 3);
        EXPECT_REDUCE(MAX, INT32, INT32, INT32_MAX, true, ws, 3);
        EXPECT_REDUCE(SUM, INT64, INT64, (uint64_t)INT64_MIN, false, ls, 3);
        EXPECT_REDUCE(MIN, INT64, INT64, (uint64_t)-1, false, ls, 3);
        EXPECT_REDUCE(ANY, INT64, BOOL, 1, true, ls, 3);
}
