/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions: values by hand, and the order of floating sums against an order written down a second time here. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/eval.h"

/* Fragment of one reduction of x. */
static const char *reduction(const char *op, const char *in_dtype, const char *in_shape, const char *attrs, const char *out_dtype,
                             const char *out_shape) {
        static char text[1024];

        snprintf(text, sizeof(text),
                 "'inputs': [{'name': 'x', 'dtype': '%s', 'shape': %s}], 'nodes': [{'name': 'n', 'op': '%s', 'inputs': ['x'], 'attrs': "
                 "{%s}, "
                 "'outputs': [{'name': 't', 'dtype': '%s', 'shape': %s}]}], 'outputs': ['t']",
                 in_dtype, in_shape, op, attrs, out_dtype, out_shape);
        return text;
}

static void dims_text(const int64_t *dims, uint32_t rank, char *text, size_t n) {
        size_t at = (size_t)snprintf(text, n, "[");

        for (uint32_t i = 0; i < rank; i++)
                at += (size_t)snprintf(text + at, n - at, "%s%lld", i ? ", " : "", (long long)dims[i]);
        snprintf(text + at, n - at, "]");
}

/* Sum of 100i + 10j + k over every set of axes of [4, 3, 5]. */
Test(reduce, every_set_of_axes) {
        const int64_t dims[] = {4, 3, 5};
        double x[60];
        const double *inputs[] = {x};

        for (int i = 0; i < 60; i++)
                x[i] = 100 * (i / 15) + 10 * (i / 5 % 3) + i % 5;
        for (unsigned set = 1; set < 8; set++) {
                char attrs[64] = "'axes': [", shape[64];
                int64_t kept[3];
                uint32_t n_kept = 0;
                double expected[60] = {0};
                struct af_test_eval e;
                for (unsigned a = 0; a < 3; a++)
                        if (set & 1u << a)
                                sprintf(attrs + strlen(attrs), "%s%u", attrs[strlen(attrs) - 1] == '[' ? "" : ", ", a);
                        else
                                kept[n_kept++] = dims[a];
                strcat(attrs, "]");
                for (int i = 0; i < 60; i++) {
                        const int64_t index[] = {i / 15, i / 5 % 3, i % 5};
                        int64_t at = 0;
                        for (unsigned a = 0; a < 3; a++)
                                at = set & 1u << a ? at : at * dims[a] + index[a];
                        expected[at] += x[i];
                }
                dims_text(kept, n_kept, shape, sizeof(shape));
                af_test_eval(&e, reduction("reduce_sum", "float32", "[4, 3, 5]", attrs, "float32", shape), inputs);
                cr_assert_eq(e.r, 0, "%s", attrs);
                int64_t n = 1;
                for (uint32_t i = 0; i < n_kept; i++)
                        n *= kept[i];
                for (int64_t i = 0; i < n; i++)
                        cr_expect_eq(af_test_output(&e, 0, i), expected[i], "%s element %d", attrs, (int)i);
                af_test_eval_deinit(&e);
        }
}

/* Ones: [512, n] over axis 1 and over all. */
Test(reduce, ones) {
        static const struct {
                const char *in, *out;
        } dtypes[] = {{"float32", "float32"}, {"float16", "float16"},   {"int32", "int32"}, {"int32", "int64"},
                      {"int8", "int32"},      {"int8", "int8"},         {"bool", "int64"},  {"bool", "int32"},
                      {"uint8", "uint8"},     {"bfloat16", "bfloat16"}, {"int64", "int64"}, {"int16", "int32"}};
        double x[512 * 17];
        const double *inputs[] = {x};

        for (size_t i = 0; i < AF_ARRAY_SIZE(x); i++)
                x[i] = 1;
        for (size_t d = 0; d < AF_ARRAY_SIZE(dtypes); d++)
                for (int n = 1; n <= 17; n++) {
                        char shape[32];
                        struct af_test_eval e;
                        double all = 512 * n;
                        snprintf(shape, sizeof(shape), "[512, %d]", n);
                        af_test_eval(&e, reduction("reduce_sum", dtypes[d].in, shape, "'axes': [1]", dtypes[d].out, "[512]"), inputs);
                        cr_assert_eq(e.r, 0, "%s %s", dtypes[d].in, e.why);
                        for (int i = 0; i < 512; i++)
                                cr_assert_eq(af_test_output(&e, 0, i), n, "%s %d", dtypes[d].in, n);
                        af_test_eval_deinit(&e);
                        af_test_eval(&e, reduction("reduce_sum", dtypes[d].in, shape, "", dtypes[d].out, "[]"), inputs);
                        cr_assert_eq(e.r, 0);
                        uint64_t bits = 0;
                        af_test_number_put(&bits, af_dtype_from_name(dtypes[d].out), all);
                        cr_expect_eq(af_test_output(&e, 0, 0), af_test_number_get(&bits, af_dtype_from_name(dtypes[d].out)), "%s %d",
                                     dtypes[d].in, n);
                        af_test_eval_deinit(&e);
                }
}

/* The order once more: 64 lanes over a chunk of 1,024, then neighbours pairwise; chunk results under the same rule. */
static float sum_last(const float *x, size_t n) {
        float lanes[64] = {0};

        if (n > 1024) {
                size_t n_chunks = (n + 1023) / 1024;
                float *chunks = malloc(n_chunks * sizeof(*chunks));
                for (size_t c = 0; c < n_chunks; c++)
                        chunks[c] = sum_last(x + c * 1024, AF_MIN(n - c * 1024, (size_t)1024));
                float s = sum_last(chunks, n_chunks);
                free(chunks);
                return s;
        }
        for (size_t i = 0; i < n; i++)
                lanes[i % 64] += x[i];
        for (int width = 32; width > 0; width /= 2)
                for (int i = 0; i < width; i++)
                        lanes[i] = lanes[2 * i] + lanes[2 * i + 1];
        return lanes[0];
}

/* Chunks of 32 in sequence; chunk results under the same rule. */
static float sum_rows(const float *x, size_t n, size_t stride) {
        float s = 0;

        if (n > 32) {
                size_t n_chunks = (n + 31) / 32;
                float *chunks = malloc(n_chunks * sizeof(*chunks));
                for (size_t c = 0; c < n_chunks; c++)
                        chunks[c] = sum_rows(x + c * 32 * stride, AF_MIN(n - c * 32, (size_t)32), stride);
                s = sum_rows(chunks, n_chunks, 1);
                free(chunks);
                return s;
        }
        for (size_t i = 0; i < n; i++)
                s += x[i * stride];
        return s;
}

/* Sum of shape over axes by the reference, and the floats that went in. Both malloc'd. */
static float *reference_sum(const int64_t *dims, uint32_t rank, const char *attrs, const char *out_shape, float **ret_x) {
        char shape[64];
        int64_t n = 1;
        struct af_test_eval e;

        for (uint32_t i = 0; i < rank; i++)
                n *= dims[i];
        double *x = malloc((size_t)n * sizeof(*x));
        float *f = malloc((size_t)n * sizeof(*f));
        struct af_tensor t = {.dtype = AF_DTYPE_FLOAT32, .rank = 1, .dims = {n}, .strides = {1}, .data = f};
        af_tensor_fill(&t, 77, false);
        for (int64_t i = 0; i < n; i++)
                x[i] = f[i];
        dims_text(dims, rank, shape, sizeof(shape));
        af_test_eval(&e, reduction("reduce_sum", "float32", shape, attrs, "float32", out_shape), (const double *const[]){x});
        cr_assert_eq(e.r, 0);
        int64_t n_out = 1;
        for (uint32_t i = 0; i < e.outputs[0].rank; i++)
                n_out *= e.outputs[0].dims[i];
        float *out = malloc((size_t)n_out * sizeof(*out) + 1);
        memcpy(out, e.outputs[0].data, (size_t)n_out * sizeof(*out));
        af_test_eval_deinit(&e);
        free(x);
        *ret_x = f;
        return out;
}

Test(reduce, order_of_the_last_axis) {
        const int64_t sizes[] = {1, 2, 63, 64, 65, 100, 1023, 1024, 1025, 4097, 70000, 1100000};

        for (size_t i = 0; i < AF_ARRAY_SIZE(sizes); i++) {
                float *x, *out = reference_sum(&sizes[i], 1, "", "[]", &x);
                cr_expect_eq(out[0], sum_last(x, (size_t)sizes[i]), "%d", (int)sizes[i]);
                free(x);
                free(out);
        }
}

Test(reduce, order_of_an_outer_axis) {
        const int64_t sizes[] = {1, 2, 31, 32, 33, 100, 1024, 1025, 5000};

        for (size_t i = 0; i < AF_ARRAY_SIZE(sizes); i++) {
                const int64_t dims[] = {sizes[i], 19};
                float *x, *out = reference_sum(dims, 2, "'axes': [0]", "[19]", &x);
                for (size_t c = 0; c < 19; c++)
                        cr_expect_eq(out[c], sum_rows(x + c, (size_t)sizes[i], 19), "%d", (int)sizes[i]);
                free(x);
                free(out);
        }
}

/* Unit axes neither separate nor count; two groups go innermost first. */
Test(reduce, order_of_groups) {
        const int64_t merged[] = {30, 1, 70, 1}, outer[] = {100, 7, 1}, two[] = {50, 3, 90}, two_inner[] = {50, 3, 40, 2};
        float *x, *out = reference_sum(merged, 4, "'axes': [0, 2]", "[1, 1]", &x), *y, *part;

        cr_expect_eq(out[0], sum_last(x, 2100));
        free(x);
        free(out);
        out = reference_sum(outer, 3, "'axes': [0, 2]", "[7]", &x);
        for (size_t c = 0; c < 7; c++)
                cr_expect_eq(out[c], sum_rows(x + c, 100, 7));
        free(x);
        free(out);
        out = reference_sum(two, 3, "'axes': [0, 2]", "[3]", &x);
        part = malloc(150 * sizeof(*part));
        for (size_t i = 0; i < 150; i++)
                part[i] = sum_last(x + i * 90, 90);
        for (size_t c = 0; c < 3; c++)
                cr_expect_eq(out[c], sum_rows(part + c, 50, 3));
        free(x);
        free(out);
        out = reference_sum(two_inner, 4, "'axes': [0, 2]", "[3, 2]", &y);
        for (size_t i = 0; i < 150; i++)
                for (size_t k = 0; k < 2; k++)
                        part[i] = 0;
        float *mid = malloc(300 * sizeof(*mid));
        for (size_t i = 0; i < 150; i++)
                for (size_t k = 0; k < 2; k++)
                        mid[i * 2 + k] = sum_rows(y + i * 80 + k, 40, 2);
        for (size_t c = 0; c < 6; c++)
                cr_expect_eq(out[c], sum_rows(mid + c, 50, 6));
        free(mid);
        free(part);
        free(y);
        free(out);
}

static double reduce_to_one(const char *op, const char *in, const char *out, const double *x, int n) {
        char shape[32];
        struct af_test_eval e;

        snprintf(shape, sizeof(shape), "[%d]", n);
        af_test_eval(&e, reduction(op, in, shape, "", out, "[]"), (const double *const[]){x});
        cr_assert_eq(e.r, 0, "%s of %s: %s", op, in, e.why ? e.why : "refused");
        double v = af_test_output(&e, 0, 0);
        af_test_eval_deinit(&e);
        return v;
}

Test(reduce, by_hand) {
        const double x[] = {3, -7, 2, 5}, nan[] = {1, NAN, 2}, infinite[] = {-INFINITY, -INFINITY}, zero[] = {-0.0}, truths[] = {0, 1, 0};

        cr_expect_eq(reduce_to_one("reduce_max", "float32", "float32", x, 4), 5);
        cr_expect_eq(reduce_to_one("reduce_min", "int8", "int8", x, 4), -7);
        cr_expect_eq(reduce_to_one("reduce_max", "int64", "int64", x, 4), 5);
        cr_expect_eq(reduce_to_one("reduce_prod", "float32", "float32", x, 4), -210);
        cr_expect_eq(reduce_to_one("reduce_prod", "int32", "int64", x, 4), -210);
        cr_expect_eq(reduce_to_one("reduce_prod", "int8", "int8", x, 4), 46); /* -210 wraps */
        cr_expect_eq(reduce_to_one("reduce_mean", "float16", "float16", x, 4), 0.75);
        cr_expect(isnan(reduce_to_one("reduce_max", "float32", "float32", nan, 3)));
        cr_expect(isnan(reduce_to_one("reduce_min", "float16", "float16", nan, 3)));
        cr_expect(isnan(reduce_to_one("reduce_sum", "bfloat16", "bfloat16", nan, 3)));
        cr_expect_eq(reduce_to_one("reduce_max", "float32", "float32", infinite, 2), -INFINITY);
        cr_expect_eq(reduce_to_one("reduce_any", "bool", "bool", truths, 3), 1);
        cr_expect_eq(reduce_to_one("reduce_all", "bool", "bool", truths, 3), 0);
        cr_expect_eq(reduce_to_one("reduce_max", "bool", "bool", truths, 3), 1);
        cr_expect_eq(reduce_to_one("reduce_any", "float32", "bool", nan, 1), 1);
        cr_expect_eq(reduce_to_one("reduce_any", "int64", "bool", truths, 1), 0);
        cr_expect_not(signbit(reduce_to_one("reduce_sum", "float32", "float32", zero, 1)), "the identity takes part");
        cr_expect_eq(reduce_to_one("reduce_sum", "float64", "float64", x, 4), 3);
        cr_expect_eq(reduce_to_one("reduce_mean", "float64", "float64", x, 4), 0.75);
        cr_expect_eq(reduce_to_one("reduce_max", "float64", "float64", x, 4), 5);
        cr_expect_eq(reduce_to_one("reduce_min", "float64", "float64", x, 4), -7);
        cr_expect(isnan(reduce_to_one("reduce_max", "float64", "float64", nan, 3)));
        cr_expect_eq(reduce_to_one("reduce_all", "float64", "bool", truths, 3), 0);
}

/* Every reduction of a scalar and of unit axes. */
Test(reduce, scalars) {
        static const char *const ops[] = {"reduce_sum",  "reduce_max", "reduce_min", "reduce_mean",
                                          "reduce_prod", "reduce_any", "reduce_all"};
        static const char *const shapes[] = {"[]", "[1]", "[1, 1, 1]"};
        const double x[] = {2.5};

        for (size_t o = 0; o < AF_ARRAY_SIZE(ops); o++)
                for (size_t s = 0; s < AF_ARRAY_SIZE(shapes); s++) {
                        bool truth = o >= 5;
                        struct af_test_eval e;
                        af_test_eval(&e, reduction(ops[o], "float32", shapes[s], "", truth ? "bool" : "float32", "[]"),
                                     (const double *const[]){x});
                        cr_assert_eq(e.r, 0, "%s %s", ops[o], shapes[s]);
                        cr_expect_eq(af_test_output(&e, 0, 0), truth ? 1 : 2.5, "%s %s", ops[o], shapes[s]);
                        af_test_eval_deinit(&e);
                }
}

static void check_empty(const char *op, const char *dtype, const char *shape, const char *attrs, const char *out, const char *out_shape,
                        int64_t n, double expected) {
        struct af_test_eval e;

        af_test_eval(&e, reduction(op, dtype, shape, attrs, out, out_shape), (const double *const[]){NULL});
        cr_assert_eq(e.r, 0, "%s of %s", op, shape);
        for (int64_t i = 0; i < n; i++) {
                double v = af_test_output(&e, 0, i);
                cr_expect(isnan(expected) ? isnan(v) : v == expected, "%s of %s: %g", op, shape, v);
        }
        af_test_eval_deinit(&e);
}

Test(reduce, nothing) {
        check_empty("reduce_sum", "float32", "[0]", "", "float32", "[]", 1, 0);
        check_empty("reduce_sum", "float16", "[3, 0]", "'axes': [1]", "float16", "[3]", 3, 0);
        check_empty("reduce_sum", "float32", "[0, 3]", "'axes': [0]", "float32", "[3]", 3, 0);
        check_empty("reduce_sum", "float32", "[0, 3]", "'axes': [1]", "float32", "[0]", 0, 0);
        check_empty("reduce_sum", "int32", "[0, 3]", "", "int64", "[]", 1, 0);
        check_empty("reduce_mean", "float32", "[0]", "", "float32", "[]", 1, NAN);
        check_empty("reduce_mean", "bfloat16", "[3, 0]", "'axes': [1]", "bfloat16", "[3]", 3, NAN);
        check_empty("reduce_prod", "float32", "[0]", "", "float32", "[]", 1, 1);
        check_empty("reduce_prod", "int64", "[0]", "", "int64", "[]", 1, 1);
        check_empty("reduce_any", "bool", "[0]", "", "bool", "[]", 1, 0);
        check_empty("reduce_all", "bool", "[0]", "", "bool", "[]", 1, 1);
        check_empty("reduce_all", "float32", "[2, 0, 2]", "'axes': [0, 1]", "bool", "[2]", 2, 1);
        check_empty("reduce_max", "float32", "[3, 0]", "'axes': [0]", "float32", "[0]", 0, 0);
}
