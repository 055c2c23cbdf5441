/* SPDX-License-Identifier: Apache-2.0 */
/* Ops by hand: elementwise corner cases, views, broadcasts, gather, strides. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "tests/lib/eval.h"

#define D(...) ((const double[]){__VA_ARGS__})

/* One node over operands of the given dtypes and shapes. */
static void eval_node(struct af_test_eval *e, const char *op, const char *attrs, const char *const *dtypes, const char *const *shapes,
                      unsigned n, const char *out_dtype, const char *out_shape, const double *const *inputs) {
        char text[2048] = "'inputs': [", names[64] = "";

        for (unsigned i = 0; i < n; i++) {
                sprintf(text + strlen(text), "%s{'name': 'x%u', 'dtype': '%s', 'shape': %s}", i ? ", " : "", i, dtypes[i], shapes[i]);
                sprintf(names + strlen(names), "%s'x%u'", i ? ", " : "", i);
        }
        sprintf(text + strlen(text),
                "], 'nodes': [{'name': 'n', 'op': '%s', 'inputs': [%s], 'attrs': {%s}, 'outputs': [{'name': 't', 'dtype': '%s', 'shape': "
                "%s}]}], "
                "'outputs': ['t']",
                op, names, attrs, out_dtype, out_shape);
        af_test_eval(e, text, inputs);
        cr_assert_eq(e->r, 0, "%s: %s", op, e->why ? e->why : "refused");
}

/* op on one pair of numbers of a dtype. */
static double pair(const char *op, const char *dtype, const char *out, double a, double b) {
        struct af_test_eval e;

        eval_node(&e, op, "", (const char *const[]){dtype, dtype}, (const char *const[]){"[1]", "[1]"}, 2, out, "[1]",
                  (const double *const[]){&a, &b});
        double v = af_test_output(&e, 0, 0);
        af_test_eval_deinit(&e);
        return v;
}

static double one(const char *op, const char *attrs, const char *dtype, const char *out, double a) {
        struct af_test_eval e;

        eval_node(&e, op, attrs, &dtype, (const char *const[]){"[1]"}, 1, out, "[1]", (const double *const[]){&a});
        double v = af_test_output(&e, 0, 0);
        af_test_eval_deinit(&e);
        return v;
}

Test(node, values_round_and_wrap_at_each_node) {
        cr_expect_eq(pair("mul", "float16", "float16", 5000, 5000), INFINITY);
        cr_expect_eq(pair("add", "uint8", "uint8", 128, 128), 0);
        cr_expect_eq(one("abs", "", "int8", "int8", -128), -128);
        cr_expect_eq(one("neg", "", "int8", "int8", -128), -128);
        cr_expect_eq(pair("add", "float16", "float16", 2048, 1), 2048);
        cr_expect_eq(pair("add", "bfloat16", "bfloat16", 256, 1), 256);
        cr_expect_eq(pair("add", "int64", "int64", 4503599627370496.0, 1), 4503599627370497.0);
        cr_expect_eq(pair("mul", "int32", "int32", 65536, 65536), 0);
}

Test(node, no_identity_of_the_reals) {
        cr_expect_not(signbit(pair("add", "float32", "float32", -0.0, 0)));
        cr_expect(isnan(pair("mul", "float32", "float32", INFINITY, 0)));
        cr_expect(signbit(pair("mul", "float32", "float32", -1, 0)));
        cr_expect(isnan(pair("sub", "float32", "float32", INFINITY, INFINITY)));
        cr_expect(isnan(pair("div", "float32", "float32", 0, 0)));
        cr_expect_eq(pair("div", "float32", "float32", 1, -0.0), -INFINITY);
        cr_expect_eq(pair("pow", "float32", "float32", NAN, 0), 1);
        cr_expect_eq(pair("pow", "float32", "float32", INFINITY, 0), 1);
        cr_expect_eq(pair("pow", "float32", "float32", -2, 3), -8);
        cr_expect(isnan(pair("maximum", "float32", "float32", NAN, 1)));
        cr_expect(isnan(pair("minimum", "float16", "float16", 1, NAN)));
        cr_expect_eq(pair("eq", "float32", "bool", NAN, NAN), 0);
        cr_expect_eq(pair("ne", "float32", "bool", NAN, NAN), 1);
        cr_expect_eq(pair("eq", "float32", "bool", -0.0, 0.0), 1);
        cr_expect_eq(one("relu", "", "float32", "float32", -3), 0);
        cr_expect(isnan(one("relu", "", "float32", "float32", NAN)));
}

Test(node, integers_divide_without_trapping) {
        cr_expect_eq(pair("div", "int32", "int32", 7, -2), -3);
        cr_expect_eq(pair("div", "int8", "int8", -7, 2), -3);
        static const char *const dtypes[] = {"int8", "uint8", "int16", "int32", "int64"};
        for (size_t i = 0; i < AF_ARRAY_SIZE(dtypes); i++) {
                double least = ldexp(-1, (int)af_dtype_size(af_dtype_from_name(dtypes[i])) * 8 - 1);
                if (strcmp(dtypes[i], "uint8") != 0)
                        (void)pair("div", dtypes[i], dtypes[i], least, -1);
                (void)pair("div", dtypes[i], dtypes[i], 5, 0);
        }
}

Test(node, casts) {
        cr_expect_eq(one("cast", "", "float32", "int32", -2.9), -2);
        cr_expect_eq(one("cast", "", "float32", "float16", 2049), 2048);
        cr_expect_eq(one("cast", "", "float32", "bool", 0.1), 1);
        cr_expect_eq(one("cast", "", "bool", "float32", 1), 1);
        cr_expect_eq(one("cast", "", "int64", "int32", 4294967297.0), 1);
        cr_expect_eq(one("cast", "", "int32", "int8", 300), 44);
        cr_expect_eq(one("cast", "", "float32", "bool", NAN), 1);
        cr_expect_eq(one("cast", "", "float32", "int64", 0x1p50), 0x1p50);
}

/* float64 tensors are never compiled; the definition still covers them. */
Test(node, float64) {
        cr_expect_eq(pair("add", "float64", "float64", 1, 0x1p-50), 1 + 0x1p-50);
        cr_expect_eq(pair("mul", "float64", "float64", 3, 0.1), 3 * 0.1);
        cr_expect_eq(pair("lt", "float64", "bool", 1, 2), 1);
        cr_expect_eq(pair("remainder", "float64", "float64", -7.5, 2), 0.5);
        cr_expect_eq(pair("fmod", "float64", "float64", -7.5, 2), -1.5);
        cr_expect_eq(pair("floor_div", "float64", "float64", -7.5, 2), -4);
        cr_expect_eq(pair("trunc_div", "float64", "float64", -7.5, 2), -3);
        cr_expect_eq(pair("true_div", "float64", "float64", 1, 3), 1.0 / 3);
        cr_expect_eq(pair("copysign", "float64", "float64", 3, -0.0), -3);
        cr_expect_eq(one("isnan", "", "float64", "bool", NAN), 1);
        cr_expect_eq(one("cast", "", "float64", "float32", 0.1), 0.1f);
        cr_expect_eq(one("cast", "", "int64", "float64", 7), 7);
}

Test(node, attributes) {
        cr_expect_eq(one("clip", "'min': 1", "float32", "float32", -3), 1);
        cr_expect_eq(one("clip", "'min': -1, 'max': 2", "int8", "int8", 100), 2);
        cr_expect(isnan(one("clip", "'min': 0, 'max': 2", "float32", "float32", NAN)));
        cr_expect_eq(one("leaky_relu", "'alpha': 0.5", "float32", "float32", -3), -1.5);
        cr_expect_float_eq(one("gelu", "", "float32", "float32", 1), 0.8413447, 1e-6);
        cr_expect_float_eq(one("gelu", "'approximate': 'tanh'", "float32", "float32", 1), 0.8411920, 1e-6);
        cr_expect_eq(one("round", "", "float32", "float32", 2.5), 2);
}

/* Every elementwise op on shapes [], [1] and [1, 1, 1]: one answer. */
Test(node, scalars) {
        static const char *const shapes[] = {"[]", "[1]", "[1, 1, 1]"};
        const double x = 0.75, truth = 1;

        for (unsigned op = 0; op < AF_N_OPS; op++) {
                const struct af_op_info *info = af_op_info(op);
                double first = 0;
                if (info->cls > AF_CLASS_CAST)
                        continue;
                const char *d = info->dtypes & AF_DTYPE_BIT(AF_DTYPE_FLOAT32) ? "float32" : "int32";
                bool where = op == AF_OP_WHERE, bool_out = af_op_result_dtype(op, AF_DTYPE_FLOAT32) == AF_DTYPE_BOOL;
                for (size_t s = 0; s < AF_ARRAY_SIZE(shapes); s++) {
                        struct af_test_eval e;
                        eval_node(&e, info->name, "", (const char *const[]){where ? "bool" : d, d, d},
                                  (const char *const[]){shapes[s], shapes[s], shapes[s]}, info->min_inputs, bool_out ? "bool" : d,
                                  shapes[s], (const double *const[]){where ? &truth : &x, &x, &x});
                        double v = af_test_output(&e, 0, 0);
                        cr_expect(s == 0 || v == first || (isnan(v) && isnan(first)), "%s of %s", info->name, shapes[s]);
                        first = v;
                        af_test_eval_deinit(&e);
                }
        }
}

Test(node, broadcast) {
        struct af_test_eval e;

        eval_node(&e, "add", "", (const char *const[]){"float32", "float32"}, (const char *const[]){"[3, 1]", "[3]"}, 2, "float32",
                  "[3, 3]", (const double *const[]){D(10, 20, 30), D(1, 2, 3)});
        for (int i = 0; i < 9; i++)
                cr_expect_eq(af_test_output(&e, 0, i), 10 * (i / 3 + 1) + i % 3 + 1);
        af_test_eval_deinit(&e);
        eval_node(&e, "expand", "'shape': [2, 2, 3]", (const char *const[]){"int16"}, (const char *const[]){"[2, 1]"}, 1, "int16",
                  "[2, 2, 3]", (const double *const[]){D(7, 8)});
        for (int i = 0; i < 12; i++)
                cr_expect_eq(af_test_output(&e, 0, i), 7 + i / 3 % 2);
        af_test_eval_deinit(&e);
        eval_node(&e, "where", "", (const char *const[]){"bool", "float32", "float32"}, (const char *const[]){"[2, 1]", "[]", "[3]"}, 3,
                  "float32", "[2, 3]", (const double *const[]){D(1, 0), D(9), D(1, 2, 3)});
        cr_expect_eq(af_test_output(&e, 0, 2), 9);
        cr_expect_eq(af_test_output(&e, 0, 5), 3);
        af_test_eval_deinit(&e);
}

Test(node, gather) {
        struct af_test_eval e;

        eval_node(&e, "gather", "'axis': 1", (const char *const[]){"float32", "int64"}, (const char *const[]){"[2, 3]", "[2, 2]"}, 2,
                  "float32", "[2, 2, 2]", (const double *const[]){D(1, 2, 3, 4, 5, 6), D(0, -1, 3, -4)});
        const double expected[] = {1, 3, 0, 0, 4, 6, 0, 0}; /* out of range gives 0 */
        for (int i = 0; i < 8; i++)
                cr_expect_eq(af_test_output(&e, 0, i), expected[i], "%d", i);
        af_test_eval_deinit(&e);
        eval_node(&e, "gather", "", (const char *const[]){"bool", "int32"}, (const char *const[]){"[0, 2]", "[2]"}, 2, "bool", "[2, 2]",
                  (const double *const[]){NULL, D(0, 5)});
        for (int i = 0; i < 4; i++)
                cr_expect_eq(af_test_output(&e, 0, i), 0);
        af_test_eval_deinit(&e);
        eval_node(&e, "gather", "", (const char *const[]){"int8", "int64"}, (const char *const[]){"[3, 2]", "[]"}, 2, "int8", "[2]",
                  (const double *const[]){D(1, 2, 3, 4, 5, 6), D(-2)});
        cr_expect_eq(af_test_output(&e, 0, 1), 4);
        af_test_eval_deinit(&e);
}

/* A value of 3x4 elements 0..11 under every layout gives the same results; the gaps hold NaN. */
Test(node, layouts) {
        static const char *const layouts[] = {"", ", 'strides': [1, 3]", ", 'strides': [9, 2], 'offset': 5",
                                              ", 'strides': [4, 1], 'offset': 17"};
        const double x[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

        for (size_t i = 0; i < AF_ARRAY_SIZE(layouts); i++) {
                char text[1024];
                struct af_test_eval e;
                snprintf(text, sizeof(text),
                         "'inputs': [{'name': 'x', 'dtype': 'float32', 'shape': [3, 4]%s}], 'nodes': ["
                         "{'name': 'a', 'op': 'add', 'inputs': ['x', 'x'], 'outputs': [{'name': 't', 'dtype': 'float32', 'shape': [3, "
                         "4]}]}, "
                         "{'name': 'b', 'op': 'reduce_sum', 'inputs': ['x'], 'attrs': {'axes': [0]}, 'outputs': [{'name': 's', 'dtype': "
                         "'float32', "
                         "'shape': [4]}]}, "
                         "{'name': 'c', 'op': 'reshape', 'inputs': ['x'], 'attrs': {'shape': [2, 6]}, 'outputs': [{'name': 'r', 'dtype': "
                         "'float32', 'shape': [2, 6]}]}], 'outputs': ['t', 's', 'r', 'x']",
                         layouts[i]);
                af_test_eval(&e, text, (const double *const[]){x});
                cr_assert_eq(e.r, 0);
                for (int k = 0; k < 12; k++) {
                        cr_expect_eq(af_test_output(&e, 0, k), 2 * k);
                        cr_expect_eq(af_test_output(&e, 2, k), k);
                        cr_expect_eq(af_test_output(&e, 3, k), k);
                }
                for (int k = 0; k < 4; k++)
                        cr_expect_eq(af_test_output(&e, 1, k), 12 + 3 * k);
                af_test_eval_deinit(&e);
        }
}

Test(node, overlapping_input) {
        struct af_test_eval e;

        af_test_eval(&e,
                     "'inputs': [{'name': 'x', 'dtype': 'float32', 'shape': [3, 4], 'strides': [0, 1]}, {'name': 'y', 'dtype': 'float32', "
                     "'shape': "
                     "[1, 4], 'strides': [999, 1]}], 'nodes': [{'name': 'a', 'op': 'add', 'inputs': ['x', 'y'], 'outputs': [{'name': 't', "
                     "'dtype': "
                     "'float32', 'shape': [3, 4]}]}], 'outputs': ['t']",
                     (const double *const[]){D(1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4), D(10, 20, 30, 40)});
        cr_assert_eq(e.r, 0);
        for (int i = 0; i < 12; i++)
                cr_expect_eq(af_test_output(&e, 0, i), 11 * (i % 4 + 1));
        af_test_eval_deinit(&e);
}

/* A result written through strides: the gaps stay. */
Test(node, strided_result) {
        struct af_test_graph t;
        float x[] = {1, 2, 3, 4, 5, 6}, out[10] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
        struct af_tensor in = {.dtype = AF_DTYPE_FLOAT32, .rank = 2, .dims = {2, 3}, .strides = {3, 1}, .data = x};
        struct af_tensor to = {.dtype = AF_DTYPE_FLOAT32, .rank = 2, .dims = {2, 3}, .strides = {1, 4}, .data = out};
        const char *why;

        af_test_graph_make(
                &t, "'inputs': [{'name': 'x', 'dtype': 'float32', 'shape': [2, 3]}], 'nodes': [{'name': 'n', 'op': 'neg', 'inputs': ['x'], "
                    "'outputs': [{'name': 't', 'dtype': 'float32', 'shape': [2, 3]}]}], 'outputs': ['t']");
        cr_assert_eq(t.r, 0);
        cr_assert_eq(af_reference_node(&t.graph, &t.graph.nodes[0], &in, &to, &why), 0);
        const float expected[] = {-1, -4, -1, -1, -2, -5, -1, -1, -3, -6};
        cr_expect_arr_eq(out, expected, sizeof(out));
        af_test_graph_deinit(&t);
}
