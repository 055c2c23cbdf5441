/* SPDX-License-Identifier: Apache-2.0 */
/* Whole graphs: the samples, constants against inputs, outputs of every kind, symbols, refusals, random graphs. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/io.h"
#include "tests/lib/eval.h"
#include "tests/lib/random_graph.h"

#define D(...) ((const double[]){__VA_ARGS__})

Test(run, samples) {
        static const char *const samples[] = {"tf_abs_add_relu_broadcast", "tf_abs_reduce_sum",  "tf_abs_relu_exp", "torch_add_ge",
                                              "torch_gather_add",          "torch_mul_reducesum"};

        for (size_t i = 0; i < AF_ARRAY_SIZE(samples); i++) {
                struct af_buf text = AF_BUF_INIT;
                struct af_random_input *inputs;
                struct af_tensor tensors[8], outputs[8];
                struct af_test_graph t;
                char path[512];

                snprintf(path, sizeof(path), "%s/examples/fragments/%s.json", getenv("AF_SOURCE_ROOT"), samples[i]);
                cr_assert_eq(af_io_read_file(path, 1 << 20, &text), 0);
                af_test_graph_parse(&t, (const char *)text.data, text.size);
                cr_assert_eq(t.r, 0);
                cr_assert_eq(af_random_inputs(&t.graph, 3, false, &inputs), 0);
                for (uint32_t k = 0; k < t.graph.n_inputs; k++)
                        tensors[k] = inputs[k].tensor;
                cr_assert_eq(af_reference_run(&t.graph, tensors, outputs, NULL, NULL), 0, "%s", samples[i]);
                for (uint32_t k = 0; k < t.graph.n_outputs; k++)
                        free(outputs[k].data);
                af_random_inputs_free(inputs, t.graph.n_inputs);
                af_test_graph_deinit(&t);
                af_buf_deinit(&text);
        }
}

/* The same value as a constant, as a host scalar and as an input of the dtype gives the same bits. */
Test(run, constants_and_inputs_agree) {
        static const char *const ops[] = {"add", "sub", "mul", "div", "maximum", "minimum", "pow"};
        static const char *const dtypes[] = {"float32", "float16", "bfloat16", "int32", "int8", "int64"};
        double x[64], y[64];

        for (int i = 0; i < 64; i++) {
                x[i] = i / 4.0 - 8;
                y[i] = 3;
        }
        for (size_t o = 0; o < AF_ARRAY_SIZE(ops); o++)
                for (size_t d = 0; d < AF_ARRAY_SIZE(dtypes); d++) {
                        char text[2048];
                        struct af_test_eval e;
#define NODE(n, b) "{'name': '" n "', 'op': '%s', 'inputs': ['x', '" b "'], 'outputs': [{'name': 't" n "', 'dtype': '%s', 'shape': [64]}]}"
                        snprintf(text, sizeof(text),
                                 "'inputs': [{'name': 'x', 'dtype': '%s', 'shape': [64]}, {'name': 'y', 'dtype': '%s', 'shape': [64]}, "
                                 "{'name': "
                                 "'h', 'dtype': '%s', 'shape': [], 'host': true}, {'name': 'k', 'dtype': '%s', 'shape': []}], 'constants': "
                                 "[{'name': 'c', 'dtype': '%s', 'shape': [], 'value': 3}], 'nodes': [" NODE("0", "y") ", " NODE(
                                         "1", "h") ", " NODE("2", "k") ", " NODE("3", "c") "], 'outputs': ['t0', 't1', 't2', 't3']",
                                 dtypes[d], dtypes[d], dtypes[d], dtypes[d], dtypes[d], ops[o], dtypes[d], ops[o], dtypes[d], ops[o],
                                 dtypes[d], ops[o], dtypes[d]);
                        af_test_eval(&e, text, (const double *const[]){x, y, y, y});
                        cr_assert_eq(e.r, 0, "%s %s: %s", ops[o], dtypes[d], e.why ? e.why : "");
                        for (uint32_t k = 1; k < 4; k++)
                                cr_expect_eq(af_tensor_compare(&e.outputs[0], &e.outputs[k], NULL, NULL), 0, "%s %s %u", ops[o], dtypes[d],
                                             k);
                        af_test_eval_deinit(&e);
                }
}

/* bfloat16 x * 0.1 takes the unrounded 0.1. */
Test(run, wide_scalars_enter_unrounded) {
        struct af_test_eval e;

        af_test_eval(&e,
                     "'inputs': [{'name': 'x', 'dtype': 'bfloat16', 'shape': [3]}, {'name': 'h', 'dtype': 'float64', 'shape': [], 'host': "
                     "true}], "
                     "'constants': [{'name': 'c', 'dtype': 'float64', 'shape': [], 'value': 0.1}], 'nodes': [{'name': 'n', 'op': 'mul', "
                     "'inputs': "
                     "['x', 'c'], 'outputs': [{'name': 't', 'dtype': 'bfloat16', 'shape': [3]}]}, {'name': 'm', 'op': 'mul', 'inputs': "
                     "['h', 'x'], "
                     "'outputs': [{'name': 'u', 'dtype': 'bfloat16', 'shape': [3]}]}], 'outputs': ['t', 'u']",
                     (const double *const[]){D(3, 255, 7), D(0.1)});
        cr_assert_eq(e.r, 0);
        for (int i = 0; i < 3; i++) {
                uint16_t bits;
                af_test_number_put(&bits, AF_DTYPE_BFLOAT16, (float)(D(3, 255, 7)[i]) * 0.1f);
                cr_expect_eq(af_test_output(&e, 0, i), af_test_number_get(&bits, AF_DTYPE_BFLOAT16));
                cr_expect_eq(af_test_output(&e, 1, i), af_test_output(&e, 0, i));
        }
        af_test_eval_deinit(&e);
}

Test(run, outputs_of_every_kind) {
        struct af_test_eval e;

        af_test_eval(
                &e,
                "'inputs': [{'name': 'x', 'dtype': 'float32', 'shape': [2]}, {'name': 'unused', 'dtype': 'int8', 'shape': [1]}], "
                "'constants': "
                "[{'name': 'c', 'dtype': 'int8', 'shape': [2], 'bits': '07ff'}], 'nodes': [{'name': 'n', 'op': 'add', 'inputs': ['x', "
                "'x'], "
                "'outputs': [{'name': 't', 'dtype': 'float32', 'shape': [2]}]}, {'name': 'dead', 'op': 'exp', 'inputs': ['x'], 'outputs': "
                "[{'name': 'd', 'dtype': 'float32', 'shape': [2]}]}], 'outputs': ['x', 't', 'c', 't', 'x']",
                (const double *const[]){D(5, 6), D(0)});
        cr_assert_eq(e.r, 0);
        cr_expect_eq(af_test_output(&e, 0, 1), 6);
        cr_expect_eq(af_test_output(&e, 1, 1), 12);
        cr_expect_eq(af_test_output(&e, 2, 1), -1);
        cr_expect_eq(af_test_output(&e, 3, 0), 10);
        cr_expect_eq(af_test_output(&e, 4, 0), 5);
        cr_expect_neq(e.outputs[1].data, e.outputs[3].data);
        af_test_eval_deinit(&e);
}

Test(run, symbols_come_from_the_inputs) {
        const int64_t sizes[] = {0, 1, 31, 33, 100000};
        struct af_test_graph t;

        af_test_graph_make(
                &t, "'symbols': [{'name': 's', 'hint': 32}], 'inputs': [{'name': 'x', 'dtype': 'int32', 'shape': ['s']}, {'name': 'y', "
                    "'dtype': 'int32', 'shape': ['2*s']}], 'nodes': [{'name': 'n', 'op': 'reshape', 'inputs': ['y'], 'attrs': {'shape': "
                    "[2, -1]}, 'outputs': [{'name': 'r', 'dtype': 'int32', 'shape': [2, 's']}]}, {'name': 'm', 'op': 'add', 'inputs': "
                    "['x', 'r'], 'outputs': [{'name': 't', 'dtype': 'int32', 'shape': [2, 's']}]}], 'outputs': ['t']");
        af_test_diags_print(&t.diags);
        cr_assert_eq(t.r, 0);
        for (size_t i = 0; i < AF_ARRAY_SIZE(sizes); i++) {
                int32_t *x = calloc((size_t)sizes[i] + 1, 4), *y = calloc(2 * (size_t)sizes[i] + 1, 4);
                struct af_tensor in[] = {{AF_DTYPE_INT32, 1, {sizes[i]}, {1}, x}, {AF_DTYPE_INT32, 1, {2 * sizes[i]}, {1}, y}}, out;
                const char *why;
                for (int64_t k = 0; k < 2 * sizes[i]; k++)
                        y[k] = (int32_t)k;
                cr_assert_eq(af_reference_run(&t.graph, in, &out, NULL, &why), 0);
                cr_expect_eq(out.dims[1], sizes[i]);
                if (sizes[i] > 0)
                        cr_expect_eq(((int32_t *)out.data)[2 * sizes[i] - 1], 2 * sizes[i] - 1);
                free(out.data);
                in[1].dims[0]++;
                cr_expect_eq(af_reference_run(&t.graph, in, &out, NULL, &why), AF_REFERENCE_E_SHAPE);
                free(x);
                free(y);
        }
        af_test_graph_deinit(&t);
}

Test(run, refusals) {
        struct af_test_eval e;

        af_test_eval(
                &e,
                "'inputs': [{'name': 'x', 'dtype': 'float32', 'shape': [2]}], 'nodes': [{'name': 'n', 'op': 'opaque', 'inputs': ['x'], "
                "'outputs': "
                "[{'name': 't', 'dtype': 'float32', 'shape': [2]}, {'name': 'u', 'dtype': 'float32', 'shape': [2]}]}], 'outputs': ['t']",
                (const double *const[]){D(1, 2)});
        cr_expect_eq(e.r, AF_REFERENCE_E_UNSUPPORTED);
        cr_expect(strstr(e.why, "opaque"));
        af_test_eval_deinit(&e);
}

/* Every value kept for node-by-node comparison equals a run that keeps none; nothing that the table defines is refused. */
Test(run, random_graphs, .timeout = 240) {
        uint64_t start = af_clock_now_us();
        uint32_t n_nodes = 0;

        for (uint64_t seed = 0; seed < 1500; seed++) {
                struct af_random_opts opts = {.classes = seed % 2 ? AF_RANDOM_ALL_CLASSES : 0};
                struct af_tensor tensors[16], a[600], b[600], *values;
                struct af_random_input *inputs;
                struct af_arena arena;
                struct af_fragment f;
                struct af_graph g;
                const char *why = NULL;

                af_arena_init(&arena, 0);
                cr_assert_eq(af_random_fragment(&f, &arena, seed, &opts), 0);
                cr_assert_eq(af_graph_from_fragment(&g, &f, NULL), 0);
                cr_assert_eq(af_random_inputs(&g, seed, seed % 3 == 0, &inputs), 0);
                for (uint32_t k = 0; k < g.n_inputs; k++)
                        tensors[k] = inputs[k].tensor;
                cr_assert_eq(af_reference_run(&g, tensors, a, &values, &why), 0, "seed %llu: %s", (unsigned long long)seed, why);
                cr_assert_eq(af_reference_run(&g, tensors, b, NULL, &why), 0);
                for (uint32_t k = 0; k < g.n_outputs; k++) {
                        cr_expect_eq(af_tensor_compare(&a[k], &b[k], NULL, NULL), 0, "seed %llu", (unsigned long long)seed);
                        cr_expect_eq(af_tensor_compare(&a[k], &values[g.outputs[k].value], NULL, NULL), 0);
                        free(a[k].data);
                        free(b[k].data);
                }
                n_nodes += g.n_nodes;
                af_reference_values_free(values, g.n_values);
                af_random_inputs_free(inputs, g.n_inputs);
                af_arena_deinit(&arena);
        }
        fprintf(stderr, "%u nodes, %llu ms\n", n_nodes, (unsigned long long)(af_clock_now_us() - start) / 1000);
}

/* Rows of a softmax, composed of the table's ops: [rows, n]. */
static void softmax(struct af_test_eval *e, int rows, int n, const double *x) {
        char text[4096];

#define T2(name, cols)             "{'name': '" name "', 'dtype': 'float32', 'shape': [%d, " cols "]}"
#define OP(id, op, in, attrs, out) "{'name': '" id "', 'op': '" op "', 'inputs': [" in "], 'attrs': {" attrs "}, 'outputs': [" out "]}"
        snprintf(text, sizeof(text),
                 "'inputs': [" T2("x", "%d") "], 'nodes': [" OP(
                         "a", "reduce_max", "'x'", "'axes': [1], 'keepdims': true",
                         T2("m",
                            "1")) ", " OP("b", "sub", "'x', 'm'", "",
                                          T2("d",
                                             "%d")) ", " OP("c", "exp", "'d'", "",
                                                            T2("e",
                                                               "%d")) ", " OP("f", "reduce_sum", "'e'", "'axes': [1], 'keepdims': true",
                                                                              T2("s", "1")) ", " OP("g", "div", "'e', 's'", "",
                                                                                                    T2("y", "%d")) "], 'outputs': ['y']",
                 rows, n, rows, rows, n, rows, n, rows, rows, n);
        af_test_eval(e, text, (const double *const[]){x});
        cr_assert_eq(e->r, 0);
}

Test(run, softmax_rows) {
        static const int widths[] = {1, 7, 8, 9, 63, 64, 65, 1023, 4097};

        for (size_t w = 0; w < AF_ARRAY_SIZE(widths); w++) {
                int n = widths[w];
                double *x = calloc(4 * (size_t)n, sizeof(*x)), sum = 0;
                struct af_test_eval e;
                for (int i = 0; i < n; i++) {
                        x[i] = -INFINITY;
                        x[n + i] = i == n / 2 ? INFINITY : 1;
                        x[2 * n + i] = i == n / 2 ? NAN : 1;
                        x[3 * n + i] = (i % 13) / 4.0;
                        sum += exp(x[3 * n + i]);
                }
                softmax(&e, 4, n, x);
                for (int i = 0; i < n; i++) {
                        cr_expect(isnan(af_test_output(&e, 0, i)), "a row of -inf, width %d", n);
                        cr_expect(isnan(af_test_output(&e, 0, n + i)), "one +inf: inf - inf is NaN, width %d", n);
                        cr_expect(isnan(af_test_output(&e, 0, 2 * n + i)), "one NaN, width %d", n);
                        cr_expect_float_eq(af_test_output(&e, 0, 3 * n + i), exp(x[3 * n + i]) / sum, 1e-6, "width %d", n);
                }
                af_test_eval_deinit(&e);
                free(x);
        }
}
