/* SPDX-License-Identifier: Apache-2.0 */
/* Composites of positions and the like by hand: ties, NaN, edges of the index, every dtype. The reference runs their decomposition. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/eval.h"

/* One node of x; more: further inputs of the fragment, ", {…}"; operands: ", 'y'". */
static const char *node(const char *op, const char *dtype, const char *shape, const char *more, const char *operands, const char *attrs,
                        const char *out_dtype, const char *out_shape) {
        static char text[2000];
        snprintf(text, sizeof(text),
                 "'inputs': [{'name': 'x', 'dtype': '%s', 'shape': %s}%s], 'nodes': [{'name': 'n', 'op': '%s', 'inputs': ['x'%s], "
                 "'attrs': {%s}, 'outputs': [{'name': 't', 'dtype': '%s', 'shape': %s}]}], 'outputs': ['t']",
                 dtype, shape, more, op, operands, attrs, out_dtype, out_shape);
        return text;
}
static void gives(const char *text, const double *const *inputs, const double *want, int64_t n) {
        struct af_test_eval e;
        af_test_eval(&e, text, inputs);
        cr_assert_eq(e.r, 0, "%s: %s", text, e.why ? e.why : "");
        for (int64_t i = 0; i < n; i++) {
                double got = af_test_output(&e, 0, i);
                cr_assert(got == want[i] && signbit(got) == signbit(want[i]), "%s: [%lld] is %g, not %g", text, (long long)i, got, want[i]);
        }
        af_test_eval_deinit(&e);
}

Test(positions, the_first_extreme_wins_and_nan_before_all) {
        static const struct {
                double x[5], max, min, last_max, last_min;
        } rows[] = {{{1, 3, 2, 3, 1}, 1, 0, 3, 4},
                    {{0, -0.0, 0, -0.0, 0}, 0, 0, 4, 4},
                    {{1, NAN, 2, NAN, 0}, 1, 1, 3, 3},
                    {{-INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY}, 0, 0, 4, 4},
                    {{INFINITY, 1, INFINITY, -INFINITY, -INFINITY}, 0, 3, 2, 4}};
        static const char *const dtypes[] = {"float32", "float16", "bfloat16"};
        for (size_t d = 0; d < 3; d++)
                for (size_t i = 0; i < AF_ARRAY_SIZE(rows); i++) {
                        const double *in[] = {rows[i].x};
                        gives(node("arg_max", dtypes[d], "[5]", "", "", "'axis': 0", "int64", "[]"), in, &rows[i].max, 1);
                        gives(node("arg_min", dtypes[d], "[5]", "", "", "'axis': 0", "int64", "[]"), in, &rows[i].min, 1);
                        gives(node("arg_max", dtypes[d], "[1, 5]", "", "", "'select_last': true, 'keepdims': true", "int64", "[1, 1]"), in,
                              &rows[i].last_max, 1);
                        gives(node("arg_min", dtypes[d], "[5, 1]", "", "", "'select_last': true, 'axis': 0", "int64", "[1]"), in,
                              &rows[i].last_min, 1);
                }
}

Test(positions, extremes_of_integers_and_of_either_axis) {
        static const double x[] = {3, -7, 3, 5, 5, -7}, rows[] = {0, 0}, columns[] = {1, 1, 0}, all = 3, none[] = {0, 0, 0, 0, 0, 0};
        static const char *const dtypes[] = {"int8", "int16", "int32", "int64"};
        const double *in[] = {x};
        for (size_t d = 0; d < AF_ARRAY_SIZE(dtypes); d++) {
                gives(node("arg_max", dtypes[d], "[2, 3]", "", "", "'axis': 1", "int64", "[2]"), in, rows, 2);
                gives(node("arg_max", dtypes[d], "[2, 3]", "", "", "'axis': 0", "int64", "[3]"), in, columns, 3);
                gives(node("arg_max", dtypes[d], "[2, 3]", "", "", "", "int64", "[]"), in, &all, 1);
                gives(node("arg_max", dtypes[d], "[2, 3, 1]", "", "", "'axis': 2, 'keepdims': true", "int64", "[2, 3, 1]"), in, none, 6);
        }
}

Test(positions, one_hot_counts_from_the_end_and_drops_what_is_outside) {
        static const double x[] = {0, 2, -1, -3, 3, -4, 100, -128}, on = 5, off = -2;
        static const char *const dtypes[] = {"int8", "int16", "int32", "int64"};
        double want[24], bare[24], turned[24];
        for (int i = 0; i < 8; i++)
                for (int k = 0; k < 3; k++) {
                        bool hit = (x[i] < 0 ? x[i] + 3 : x[i]) == k;
                        want[i * 3 + k] = turned[k * 8 + i] = hit ? on : off;
                        bare[i * 3 + k] = hit;
                }
        const double *in[] = {x, &on, &off};
        for (size_t d = 0; d < AF_ARRAY_SIZE(dtypes); d++) {
                static const char more[] =
                        ", {'name': 'on', 'dtype': 'float16', 'shape': []}, {'name': 'off', 'dtype': 'float16', 'shape': []}";
                gives(node("one_hot", dtypes[d], "[8]", more, ", 'on', 'off'", "'depth': 3", "float16", "[8, 3]"), in, want, 24);
                gives(node("one_hot", dtypes[d], "[8]", more, ", 'on', 'off'", "'depth': 3, 'axis': 0", "float16", "[3, 8]"), in, turned,
                      24);
                gives(node("one_hot", dtypes[d], "[8]", "", "", "'depth': 3", "int32", "[8, 3]"), in, bare, 24);
                gives(node("one_hot", dtypes[d], "[8]", "", "", "'depth': 3", "bool", "[8, 3]"), in, bare, 24);
        }
        static const double far[] = {4294967296, 4294967295, -4294967296, 2147483648, 16777217, 9e18, -9e18, 1};
        const double *beyond[] = {far};
        double last[24] = {0};
        last[22] = 1;
        gives(node("one_hot", "int64", "[8]", "", "", "'depth': 3", "float32", "[8, 3]"), beyond, last, 24);
}

Test(positions, triangles_of_every_diagonal) {
        static const char *const dtypes[] = {"float32", "float16", "bfloat16", "int8", "int64", "bool"};
        double x[24], upper[24], lower[24];
        const double *in[] = {x};
        for (size_t d = 0; d < AF_ARRAY_SIZE(dtypes); d++)
                for (int k = -6; k <= 6; k++) {
                        char attrs[40];
                        for (int i = 0; i < 24; i++) {
                                int row = i / 4 % 3, column = i % 4;
                                x[i] = strcmp(dtypes[d], "bool") == 0 ? 1 : i + 1;
                                upper[i] = column - row >= k ? x[i] : 0;
                                lower[i] = column - row <= k ? x[i] : 0;
                        }
                        snprintf(attrs, sizeof(attrs), "'diagonal': %d", k);
                        gives(node("triu", dtypes[d], "[2, 3, 4]", "", "", attrs, dtypes[d], "[2, 3, 4]"), in, upper, 24);
                        gives(node("tril", dtypes[d], "[2, 3, 4]", "", "", attrs, dtypes[d], "[2, 3, 4]"), in, lower, 24);
                }
}

Test(positions, tiles) {
        static const double x[] = {1, 2, 3, 4, 5, 6};
        static const double both[] = {1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4, 5, 6, 5, 6, 5, 6,
                                      1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4, 5, 6, 5, 6, 5, 6};
        static const double one[] = {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6};
        const double *in[] = {x};
        gives(node("tile", "int16", "[3, 2]", "", "", "'repeats': [2, 3]", "int16", "[6, 6]"), in, both, 36);
        gives(node("tile", "float32", "[1, 6]", "", "", "'repeats': [2, 1]", "float32", "[2, 6]"), in, one, 12);
        gives(node("tile", "float32", "[6]", "", "", "'repeats': [1]", "float32", "[6]"), in, one, 6);
        gives(node("tile", "float32", "[6]", "", "", "'repeats': [0]", "float32", "[0]"), in, one, 0);
}

Test(positions, masks_fill_and_zeros_keep_their_sign) {
        static const double x[] = {-0.0, 1, -INFINITY, 4}, mask[] = {0, 1, 0, 1}, value = -0.5, want[] = {-0.0, -0.5, -INFINITY, -0.5};
        const double *in[] = {x, mask, &value};
        static const char more[] = ", {'name': 'm', 'dtype': 'bool', 'shape': [2, 2]}, {'name': 'v', 'dtype': 'float16', 'shape': []}";
        gives(node("masked_fill", "float16", "[2, 2]", more, ", 'm', 'v'", "", "float16", "[2, 2]"), in, want, 4);
}

Test(positions, logs_of_sums) {
        static const double x[] = {0, 0, 1, 0, -1, 0.5};
        struct af_test_eval e;
        const double *in[] = {x};
        af_test_eval(&e, node("reduce_log_sum", "float32", "[3, 2]", "", "", "'axes': [1]", "float32", "[3]"), in);
        cr_assert_eq(e.r, 0);
        cr_assert(af_test_output(&e, 0, 0) == -INFINITY && af_test_output(&e, 0, 1) == 0 && isnan(af_test_output(&e, 0, 2)));
        af_test_eval_deinit(&e);
}
