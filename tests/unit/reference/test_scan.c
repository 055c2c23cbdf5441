/* SPDX-License-Identifier: Apache-2.0 */
/* cumsum: values by hand, then random shapes, dtypes and strides against a plain recursion. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numeric/half.h"
#include "tests/lib/eval.h"
#include "tests/lib/maker.h"
#include "tests/lib/random_graph.h"

#define D(...) ((const double[]){__VA_ARGS__})

static void expect(const char *in, const char *out, const char *shape, const char *attrs, const double *x, const double *want, int64_t n) {
        struct af_test_eval e;
        char text[512];

        snprintf(text, sizeof(text),
                 "'inputs': [{'name': 'x', 'dtype': '%s', 'shape': %s}], 'nodes': [{'name': 'n', 'op': 'cumsum', 'inputs': ['x'], 'attrs': "
                 "{%s}, 'outputs': [{'name': 't', 'dtype': '%s', 'shape': %s}]}], 'outputs': ['t']",
                 in, shape, attrs, out, shape);
        af_test_eval(&e, text, &x);
        cr_assert_eq(e.r, 0, "%s", e.why ? e.why : "refused");
        for (int64_t i = 0; i < n; i++) {
                double v = af_test_output(&e, 0, i);
                cr_expect(v == want[i] || (isnan(v) && isnan(want[i])), "%s to %s {%s} [%lld]: %g, not %g", in, out, attrs, (long long)i, v,
                          want[i]);
        }
        af_test_eval_deinit(&e);
}

Test(scan, by_hand) {
        expect("float32", "float32", "[4]", "'axis': 0", D(1, 2, 3, 4), D(1, 3, 6, 10), 4);
        expect("float32", "float32", "[4]", "'axis': 0, 'exclusive': true", D(1, 2, 3, 4), D(0, 1, 3, 6), 4);
        expect("float32", "float32", "[4]", "'axis': 0, 'reverse': true", D(1, 2, 3, 4), D(10, 9, 7, 4), 4);
        expect("float32", "float32", "[4]", "'axis': 0, 'reverse': true, 'exclusive': true", D(1, 2, 3, 4), D(9, 7, 4, 0), 4);
        expect("int32", "int32", "[2, 3]", "'axis': 0", D(1, 2, 3, 4, 5, 6), D(1, 2, 3, 5, 7, 9), 6);
        expect("int32", "int32", "[2, 3]", "'axis': -1", D(1, 2, 3, 4, 5, 6), D(1, 3, 6, 4, 9, 15), 6);
        expect("bool", "int64", "[4]", "'axis': 0", D(1, 0, 1, 1), D(1, 1, 2, 3), 4);
        expect("int8", "int8", "[3]", "'axis': 0", D(100, 100, 100), D(100, -56, 44), 3);
        expect("int8", "int64", "[3]", "'axis': 0", D(100, 100, 100), D(100, 200, 300), 3);
        expect("float32", "float32", "[0]", "'axis': 0", NULL, NULL, 0);
        expect("float32", "float32", "[3, 0]", "'axis': 0", NULL, NULL, 0);
        expect("float32", "float32", "[1, 1]", "'axis': 0, 'exclusive': true", D(7), D(0), 1);
        expect("float32", "float32", "[4]", "'axis': 0", D(1, NAN, 3, INFINITY), D(1, NAN, NAN, NAN), 4);
        expect("float32", "float32", "[4]", "'axis': 0", D(1, INFINITY, 3, -INFINITY), D(1, INFINITY, INFINITY, NAN), 4);
}

/* The running value is float32 and stays so: rounding happens where a result is stored. */
Test(scan, halves_accumulate_in_float32) {
        expect("float16", "float16", "[3]", "'axis': 0", D(2048, 1, 1), D(2048, 2048, 2050), 3);
        expect("bfloat16", "bfloat16", "[3]", "'axis': 0", D(256, 1, 1), D(256, 256, 258), 3);
        expect("float16", "float16", "[3]", "'axis': 0", D(60000, 60000, -60000), D(60000, INFINITY, 60000), 3);
        expect("float32", "float32", "[3]", "'axis': 0", D(16777216, 1, 1), D(16777216, 16777216, 16777216), 3);
}

Test(scan, starts_from_plus_zero) {
        struct af_test_eval e;

        af_test_eval(
                &e,
                "'inputs': [{'name': 'x', 'dtype': 'float32', 'shape': [2]}], 'nodes': [{'name': 'n', 'op': 'cumsum', 'inputs': ['x'], "
                "'attrs': {'axis': 0}, 'outputs': [{'name': 't', 'dtype': 'float32', 'shape': [2]}]}], 'outputs': ['t']",
                (const double *const[]){D(-0.0, -0.0)});
        cr_assert_eq(e.r, 0);
        cr_expect_not(signbit(af_test_output(&e, 0, 0)));
        cr_expect_not(signbit(af_test_output(&e, 0, 1)));
        af_test_eval_deinit(&e);
}

static int64_t below(uint64_t *state, int64_t n) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        return (int64_t)((*state >> 33) % (uint64_t)n);
}

static double round_to(double v, enum af_dtype d) {
        char bytes[8] = {0};

        af_test_number_put(bytes, d, v);
        return af_test_number_get(bytes, d);
}

/* Element k of the sum along an axis of n values, `stride` apart: by definition, anew for each. */
static double sum_of(const struct af_tensor *x, int64_t first, int64_t stride, int64_t n, int64_t k, bool exclusive, bool reverse) {
        float f = 0;
        int64_t i64 = 0;

        for (int64_t i = 0; i < k + !exclusive; i++) {
                int64_t at = first + (reverse ? n - 1 - i : i) * stride;
                double v = af_test_number_get((const char *)x->data + at * af_dtype_size(x->dtype), x->dtype);
                f += (float)v;
                i64 += (int64_t)(af_dtype_kind(x->dtype) == 'f' ? 0 : v);
        }
        return af_dtype_kind(x->dtype) == 'f' ? (double)f : (double)i64;
}

Test(scan, random) {
        for (uint64_t seed = 1; seed < 200; seed++) {
                struct maker m;
                struct af_graph g;
                struct af_random_input *inputs = NULL;
                struct af_tensor out = {0};
                uint64_t state = seed;
                struct maker_shape s = {.rank = 1 + (uint32_t)below(&state, 4)};
                int64_t strides[8], step = 1;
                const char *why = NULL;
                for (uint32_t i = 0; i < s.rank; i++) {
                        s.dims[i] = 1 + below(&state, i == 0 ? 40 : 5);
                        strides[i] = step;
                        step = step * s.dims[i] + below(&state, 3);
                }
                enum af_dtype d = 1 + (enum af_dtype)below(&state, AF_DTYPE_FLOAT64 - 1);
                bool exclusive = below(&state, 2), reverse = below(&state, 2);
                uint32_t axis = (uint32_t)below(&state, s.rank);
                enum af_dtype to = af_dtype_kind(d) == 'f' ? d : below(&state, 2) && d != AF_DTYPE_BOOL ? d : AF_DTYPE_INT64;
                struct af_attr attrs[] = {{.key = AF_ATTR_AXIS, .i = axis},
                                          {.key = AF_ATTR_EXCLUSIVE, .i = exclusive},
                                          {.key = AF_ATTR_REVERSE, .i = reverse}};
                maker_init(&m);
                uint32_t x = maker_strided(&m, d, &s, strides, 3);
                maker_output(&m, maker_node(&m, AF_OP_CUMSUM, &x, 1, attrs, 3, to));
                cr_assert_eq(m.error, 0, "%s", m.where);
                cr_assert_eq(af_graph_from_fragment(&g, &m.f, NULL), 0);
                cr_assert_eq(af_random_inputs(&g, seed, false, &inputs), 0);
                cr_assert_eq(af_reference_run(&g, &inputs[0].tensor, &out, NULL, &why), 0, "%s", why);
                int64_t index[8] = {0}, total = 1;
                for (uint32_t i = 0; i < s.rank; i++)
                        total *= s.dims[i];
                for (int64_t k = 0; k < total; k++) {
                        int64_t first = 0;
                        for (uint32_t i = 0; i < s.rank; i++)
                                first += i == axis ? 0 : index[i] * strides[i];
                        int64_t along = reverse ? s.dims[axis] - 1 - index[axis] : index[axis];
                        double want =
                                round_to(sum_of(&inputs[0].tensor, first, strides[axis], s.dims[axis], along, exclusive, reverse), to);
                        double got = af_test_number_get((const char *)out.data + k * af_dtype_size(to), to);
                        cr_assert_eq(got, want, "seed %llu [%lld]: %g, not %g", (unsigned long long)seed, (long long)k, got, want);
                        for (uint32_t i = s.rank; i-- > 0 && ++index[i] == s.dims[i];)
                                index[i] = 0;
                }
                free(out.data);
                af_random_inputs_free(inputs, 1);
                maker_deinit(&m);
        }
}
