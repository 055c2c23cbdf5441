/* SPDX-License-Identifier: Apache-2.0 */
/* Composites: the node gives what the graph of its decomposition gives, in every bit; a few numbers by hand. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "compiler/rewrite/rewrite.h"
#include "tests/lib/eval.h"
#include "tests/lib/random_graph.h"

#define D(...) ((const double[]){__VA_ARGS__})

#define INPUTS                                                                                                                             \
        "'inputs': [{'name': 'a', 'dtype': 'float32', 'shape': [4, 10], 'strides': [1, 5]}, "                                              \
        "{'name': 'h', 'dtype': 'float16', 'shape': [3, 10, 7], 'strides': [100, 9, 1], 'offset': 3}, "                                    \
        "{'name': 'b', 'dtype': 'bfloat16', 'shape': [2, 10, 3, 2]}, {'name': 'c', 'dtype': 'float32', 'shape': [10]}, "                   \
        "{'name': 'd', 'dtype': 'bfloat16', 'shape': [10], 'strides': [0]}, {'name': 'i', 'dtype': 'int32', 'shape': [4, 10]}, "           \
        "{'name': 'q', 'dtype': 'int8', 'shape': [5, 7]}, {'name': 'l', 'dtype': 'int64', 'shape': [6]}, "                                 \
        "{'name': 'p', 'dtype': 'bool', 'shape': [4, 10]}, {'name': 'z', 'dtype': 'float32', 'shape': [0, 3]}, "                           \
        "{'name': 'one', 'dtype': 'float32', 'shape': [1, 1]}, {'name': 'k', 'dtype': 'float32', 'shape': []}, "                           \
        "{'name': 'r', 'dtype': 'float64', 'shape': [], 'host': true}], "                                                                  \
        "'constants': [{'name': 'w', 'dtype': 'float64', 'shape': [], 'value': 0.1}, "                                                     \
        "{'name': 'n', 'dtype': 'int32', 'shape': [], 'value': -7}], "

struct row {
        const char *op, *in, *attrs, *dtype, *shape;
};
static const struct row rows[] = {
        {"softmax", "'a'", "", "float32", "[4, 10]"},
        {"softmax", "'h'", "'axis': 1", "float16", "[3, 10, 7]"},
        {"softmax", "'z'", "'axis': 0", "float32", "[0, 3]"},
        {"softmax", "'one'", "", "float32", "[1, 1]"},
        {"log_softmax", "'b'", "'axis': 1", "bfloat16", "[2, 10, 3, 2]"},
        {"logsumexp", "'a'", "'axes': [0]", "float32", "[10]"},
        {"logsumexp", "'k'", "", "float32", "[]"},
        {"layer_norm", "'a', 'c', 'd'", "", "float32", "[4, 10]"},
        {"layer_norm", "'h'", "'axis': 0, 'epsilon': 0", "float16", "[3, 10, 7]"},
        {"rms_norm", "'a', 'c'", "'epsilon': 0.5", "float32", "[4, 10]"},
        {"group_norm", "'b', 'd', 'd'", "'groups': 5", "bfloat16", "[2, 10, 3, 2]"},
        {"instance_norm", "'h', 'c', 'c'", "", "float16", "[3, 10, 7]"},
        {"batch_norm", "'h', 'c', 'c', 'c', 'c'", "", "float16", "[3, 10, 7]"},
        {"var", "'a'", "'axes': [1]", "float32", "[4]"},
        {"std", "'h'", "'axes': [0, 2], 'correction': 0, 'keepdims': true", "float16", "[1, 10, 1]"},
        {"var", "'one'", "", "float32", "[]"},
        {"reduce_l1", "'q'", "'axes': [0]", "int8", "[7]"},
        {"reduce_l2", "'b'", "'axes': [1, 2]", "bfloat16", "[2, 2]"},
        {"reduce_sum_square", "'i'", "", "int64", "[]"},
        {"reduce_log_sum", "'a'", "'axes': [1]", "float32", "[4]"},
        {"arg_max", "'a'", "'axis': 1", "int64", "[4]"},
        {"arg_max", "'i'", "'select_last': true", "int64", "[]"},
        {"arg_min", "'h'", "'axis': 1, 'keepdims': true", "int64", "[3, 1, 7]"},
        {"one_hot", "'l'", "'depth': 9", "float16", "[6, 9]"},
        {"one_hot", "'q', 'k', 'k'", "'depth': 4, 'axis': 0", "float32", "[4, 5, 7]"},
        {"triu", "'q'", "'diagonal': 1", "int8", "[5, 7]"},
        {"tril", "'b'", "'diagonal': -1", "bfloat16", "[2, 10, 3, 2]"},
        {"tile", "'q'", "'repeats': [2, 3]", "int8", "[10, 21]"},
        {"tile", "'z'", "'repeats': [5, 1]", "float32", "[0, 3]"},
        {"fma", "'a', 'c', 'k'", "", "float32", "[4, 10]"},
        {"fma", "'i', 'i', 'n'", "", "int32", "[4, 10]"},
        {"axpy", "'h', 'h'", "'alpha': 0.1", "float16", "[3, 10, 7]"},
        {"masked_fill", "'a', 'p', 'w'", "", "float32", "[4, 10]"},
        {"masked_fill", "'a', 'p', 'r'", "", "float32", "[4, 10]"},
        {"softplus", "'b'", "'beta': 2", "bfloat16", "[2, 10, 3, 2]"},
        {"softsign", "'h'", "", "float16", "[3, 10, 7]"},
        {"elu", "'a'", "'alpha': 0.5", "float32", "[4, 10]"},
        {"selu", "'b'", "", "bfloat16", "[2, 10, 3, 2]"},
        {"celu", "'a'", "'alpha': 2", "float32", "[4, 10]"},
        {"hardsigmoid", "'h'", "", "float16", "[3, 10, 7]"},
        {"hardswish", "'h'", "", "float16", "[3, 10, 7]"},
        {"mish", "'a'", "", "float32", "[4, 10]"},
        {"thresholded_relu", "'a'", "'alpha': 0.5", "float32", "[4, 10]"},
        {"lerp", "'a', 'c', 'w'", "", "float32", "[4, 10]"},
        {"addcmul", "'i', 'i', 'i'", "'alpha': 3", "int32", "[4, 10]"},
        {"addcdiv", "'h', 'w', 'h'", "'alpha': 0.1", "float16", "[3, 10, 7]"},
        {"addcmul", "'a', 'w', 'w'", "", "float32", "[4, 10]"},
        {"addcdiv", "'a', 'c', 'a'", "'alpha': 0.1", "float32", "[4, 10]"},
};

static void expect_same(const struct row *row) {
        struct af_test_graph t;
        struct af_random_input *inputs;
        struct af_tensor in[16], whole = {0}, pieces = {0};
        struct af_graph after;
        const char *why = "";
        char text[4096];

        snprintf(text, sizeof(text),
                 INPUTS "'nodes': [{'name': 'n0', 'op': '%s', 'inputs': [%s], 'attrs': {%s}, 'outputs': [{'name': 'o', 'dtype': '%s', "
                        "'shape': %s}]}], 'outputs': ['o']",
                 row->op, row->in, row->attrs, row->dtype, row->shape);
        af_test_graph_make(&t, text);
        af_test_diags_print(&t.diags);
        cr_assert_eq(t.r, 0, "%s(%s)", row->op, row->in);
        for (unsigned specials = 0; specials < 2; specials++) {
                cr_assert_eq(af_random_inputs(&t.graph, 5, specials, &inputs), 0);
                for (uint32_t i = 0; i < t.graph.n_inputs; i++)
                        in[i] = inputs[i].tensor;
                cr_assert_eq(af_reference_run(&t.graph, in, &whole, NULL, &why), 0, "%s(%s): %s", row->op, row->in, why);
                cr_assert_eq(af_rewrite_decompose(&t.graph, NULL, &after, NULL), 0, "%s(%s)", row->op, row->in);
                cr_assert_eq(af_reference_run(&after, in, &pieces, NULL, &why), 0, "%s(%s): %s", row->op, row->in, why);
                cr_expect_eq(af_tensor_compare(&whole, &pieces, NULL, NULL), 0, "%s(%s) {%s}", row->op, row->in, row->attrs);
                free(whole.data);
                free(pieces.data);
                af_random_inputs_free(inputs, t.graph.n_inputs);
        }
        af_test_graph_deinit(&t);
}

Test(composite, equals_its_decomposition) {
        bool seen[AF_N_OPS] = {false};

        for (size_t i = 0; i < AF_ARRAY_SIZE(rows); i++) {
                expect_same(&rows[i]);
                seen[af_op_from_name(rows[i].op)] = true;
        }
        for (unsigned op = 0; op < AF_N_OPS; op++)
                cr_expect(seen[op] || af_op_info(op)->cls != AF_CLASS_COMPOSITE, "no row has %s", af_op_info(op)->name);
}

static void by_hand(const char *op, const char *attrs, const char *in, const char *out, const char *in_shape, const char *out_shape,
                    const double *x, const double *want, int64_t n) {
        struct af_test_eval e;
        char text[512];

        snprintf(text, sizeof(text),
                 "'inputs': [{'name': 'x', 'dtype': '%s', 'shape': %s}], 'nodes': [{'name': 'n', 'op': '%s', 'inputs': ['x'], 'attrs': "
                 "{%s}, "
                 "'outputs': [{'name': 't', 'dtype': '%s', 'shape': %s}]}], 'outputs': ['t']",
                 in, in_shape, op, attrs, out, out_shape);
        af_test_eval(&e, text, &x);
        cr_assert_eq(e.r, 0, "%s: %s", op, e.why ? e.why : "refused");
        for (int64_t i = 0; i < n; i++) {
                double v = af_test_output(&e, 0, i);
                cr_expect(v == want[i] || (isnan(v) && isnan(want[i])), "%s {%s} [%lld]: %g, not %g", op, attrs, (long long)i, v, want[i]);
        }
        af_test_eval_deinit(&e);
}

Test(composite, by_hand) {
        by_hand("softmax", "", "float32", "float32", "[1]", "[1]", D(INFINITY), D(NAN), 1);
        by_hand("softmax", "", "float32", "float32", "[2]", "[2]", D(3, 3), D(0.5, 0.5), 2);
        by_hand("softmax", "", "float32", "float32", "[2]", "[2]", D(-INFINITY, -INFINITY), D(NAN, NAN), 2);
        by_hand("softmax", "", "float16", "float16", "[2]", "[2]", D(60000, -60000), D(1, 0), 2);
        by_hand("arg_max", "", "float32", "int64", "[5]", "[]", D(1, 4, 2, 4, 0), D(1), 1);
        by_hand("arg_max", "'select_last': true", "float32", "int64", "[5]", "[]", D(1, 4, 2, 4, 0), D(3), 1);
        by_hand("arg_min", "", "float32", "int64", "[3]", "[]", D(1, NAN, -9), D(1), 1);
        by_hand("one_hot", "'depth': 3", "int32", "int32", "[4]", "[4, 3]", D(0, -1, 3, -4), D(1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0), 12);
        by_hand("tril", "", "int32", "int32", "[2, 3]", "[2, 3]", D(1, 2, 3, 4, 5, 6), D(1, 0, 0, 4, 5, 0), 6);
        by_hand("triu", "'diagonal': 1", "float32", "float32", "[2, 3]", "[2, 3]", D(NAN, 2, 3, NAN, NAN, 6), D(0, 2, 3, 0, 0, 6), 6);
        by_hand("tile", "'repeats': [2, 2]", "bool", "bool", "[1, 2]", "[2, 4]", D(0, 1), D(0, 1, 0, 1, 0, 1, 0, 1), 8);
        by_hand("reduce_l1", "", "int32", "int32", "[3]", "[]", D(-1, 2, -3), D(6), 1);
        by_hand("var", "", "float32", "float32", "[4]", "[]", D(1, 1, 3, 3), D(4.0f / 3), 1);
        by_hand("var", "", "float32", "float32", "[1]", "[]", D(1), D(NAN), 1);
        by_hand("hardsigmoid", "", "float32", "float32", "[3]", "[3]", D(-9, 0, 9), D(0, 0.5, 1), 3);
        by_hand("thresholded_relu", "", "float32", "float32", "[3]", "[3]", D(1, 1.5, NAN), D(0, 1.5, 0), 3);
}

/* Sizes that only the call knows. */
Test(composite, over_symbols) {
        struct af_test_graph t;
        float x[6] = {1, 2, 3, 4, 5, 9};
        struct af_tensor in = {.dtype = AF_DTYPE_FLOAT32, .rank = 2, .dims = {3, 2}, .strides = {2, 1}, .data = x}, out[2] = {{0}};
        const char *why = "";

        af_test_graph_make(&t,
                           "'symbols': [{'name': 's', 'min': 1, 'max': 99}], 'inputs': [{'name': 'x', 'dtype': 'float32', 'shape': ['s', "
                           "2]}], 'nodes': [{'name': 'n', 'op': 'arg_max', 'inputs': ['x'], 'attrs': {'axis': 0}, 'outputs': [{'name': "
                           "'t', 'dtype': 'int64', 'shape': [2]}]}, {'name': 'm', 'op': 'slice', 'inputs': ['x'], 'attrs': {'starts': "
                           "['s-1', 1]}, 'outputs': [{'name': 'u', 'dtype': 'float32', 'shape': [1, 1]}]}], 'outputs': ['t', 'u']");
        af_test_diags_print(&t.diags);
        cr_assert_eq(t.r, 0);
        cr_assert_eq(af_reference_run(&t.graph, &in, out, NULL, &why), 0, "%s", why);
        cr_expect_eq(((int64_t *)out[0].data)[0], 2);
        cr_expect_eq(((int64_t *)out[0].data)[1], 2);
        cr_expect_eq(*(float *)out[1].data, 9);
        free(out[0].data);
        free(out[1].data);
        af_test_graph_deinit(&t);
}
