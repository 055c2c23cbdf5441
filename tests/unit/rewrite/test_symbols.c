/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of symbolic sizes: the same bits at every size, before and after. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/rewrite/rewrite.h"
#include "tests/lib/fragment_text.h"
#include "tests/lib/random_graph.h"

#define IN(name, dtype, shape) "{'name': '" name "', 'dtype': '" dtype "', 'shape': " shape "}"
#define NODE(op, in, attrs, out, dtype, shape)                                                                                             \
        "{'name': 'n_" out "', 'op': '" op "', 'inputs': [" in "], 'attrs': {" attrs "}, 'outputs': [{'name': '" out "', 'dtype': '" dtype \
        "', 'shape': " shape "}]}"
#define F "float32"

static const struct {
        const char *what, *inputs, *nodes, *outputs;
        uint32_t n_after; /* nodes of it; 0: as they come */
} cases[] = {
        {"a slice of another axis", IN("x", F, "['s', 8]"),
         NODE("abs", "'x'", "", "a", F, "['s', 8]") "," NODE("slice", "'a'", "'starts': [0, 2], 'stops': ['s', 5]", "b", F, "['s', 3]"),
         "'b'", 2},
        {"a slice that depends on a symbol", IN("x", F, "['s', 8]"),
         NODE("abs", "'x'", "", "a", F, "['s', 8]") "," NODE("slice", "'a'", "'starts': [0, 2], 'stops': ['s - 1', 5]", "b", F,
                                                             "['s - 1', 3]"),
         "'b'", 0},
        {"a transpose", IN("x", F, "['s', 8]") "," IN("y", F, "[8]"),
         NODE("exp", "'x'", "", "a", F, "['s', 8]") "," NODE("add", "'a', 'y'", "", "b", F,
                                                             "['s', 8]") "," NODE("transpose", "'b'", "'perm': [1, 0]", "c", F, "[8, 's']"),
         "'c'", 4},
        {"a concat of another axis", IN("x", F, "['s', 8]") "," IN("y", F, "['s', 4]") "," IN("z", F, "['s', 12]"),
         NODE("concat", "'x', 'y'", "'axis': 1", "a", F, "['s', 12]") "," NODE("mul", "'a', 'z'", "", "b", F, "['s', 12]"), "'b'", 5},
        {"a concat along a symbol", IN("x", F, "['s', 8]") "," IN("y", F, "['t', 8]"),
         NODE("concat", "'x', 'y'", "'axis': 0", "a", F, "['s + t', 8]") "," NODE("relu", "'a'", "", "b", F, "['s + t', 8]"), "'b'", 0},
        {"a pad", IN("x", F, "['s', 8]"),
         NODE("pad", "'x'", "'low': [0, 1], 'high': [0, 2]", "a", F, "['s', 11]") "," NODE("square", "'a'", "", "b", F, "['s', 11]"), "'b'",
         0},
        {"a pad by a symbol", IN("x", F, "['s', 8]") "," IN("unread", F, "['t']"),
         NODE("pad", "'x'", "'low': ['t', 1], 'high': [0, 2]", "a", F, "['s + t', 11]") "," NODE("square", "'a'", "", "b", F,
                                                                                                 "['s + t', 11]"),
         "'b'", 0},
        {"a split", IN("x", F, "['s', 8]"),
         "{'name': 'n', 'op': 'split', 'inputs': ['x'], 'attrs': {'axis': 1, 'sizes': [3, 5]}, 'outputs': [{'name': 'a', 'dtype': "
         "'float32', "
         "'shape': ['s', 3]}, {'name': 'b', 'dtype': 'float32', 'shape': ['s', 5]}]}," NODE("neg", "'b'", "", "c", F, "['s', 5]"),
         "'a', 'c'", 3},
        {"a gather", IN("x", F, "['s', 9]") "," IN("t", "int64", "['s', 1]"),
         NODE("log_softmax", "'x'", "'axis': 1", "a", F, "['s', 9]") "," NODE("gather_elements", "'a', 't'", "'axis': 1", "b", F,
                                                                              "['s', 1]"),
         "'b'", 0},
        {"rows of a softmax", IN("x", F, "['s', 9]"),
         NODE("softmax", "'x'", "'axis': 1", "a", F, "['s', 9]") "," NODE("slice", "'a'", "'starts': ['s - 1', 0], 'stops': ['s', 9]", "b",
                                                                          F, "[1, 9]"),
         "'b'", 0},
        {"a mask", IN("x", F, "['s', 't']"),
         NODE("triu", "'x'", "'diagonal': 1", "a", F, "['s', 't']") "," NODE("transpose", "'a'", "'perm': [1, 0]", "b", F, "['t', 's']"),
         "'b'", 0},
        {"views of views", IN("x", F, "['s', 4, 6]"),
         NODE("reshape", "'x'", "'shape': ['s', 24]", "a", F,
              "['s', 24]") "," NODE("slice", "'a'", "'starts': [0, 0], 'stops': ['s', 12]", "b", F,
                                    "['s', 12]") "," NODE("reshape", "'b'", "'shape': ['s', 2, 6]", "c", F, "['s', 2, 6]"),
         "'c'", 0},
};

static void same_bits(const struct af_graph *before, const struct af_graph *after, int64_t s, int64_t t, const char *what) {
        struct af_tensor in[4] = {{0}}, a[4], b[4];
        const int64_t symbols[] = {s, t};
        const char *why = "";
        for (uint32_t i = 0; i < before->n_inputs; i++) {
                const struct af_value *v = &before->values[before->inputs[i].value];
                int64_t n = 1;
                in[i].dtype = v->dtype;
                in[i].rank = v->rank;
                for (uint32_t k = v->rank; k-- > 0; n *= in[i].dims[k]) {
                        cr_assert_eq(af_expr_eval(&before->exprs, v->dims[k], symbols, &in[i].dims[k]), 0);
                        in[i].strides[k] = n;
                }
                in[i].data = malloc((size_t)n * 8 + 8);
                af_tensor_fill(&in[i], (uint64_t)(s * 31 + t + i), true);
        }
        cr_assert_eq(af_reference_run(before, in, a, NULL, &why), 0, "%s: %s", what, why);
        cr_assert_eq(af_reference_run(after, in, b, NULL, &why), 0, "%s: %s", what, why);
        for (uint32_t i = 0; i < before->n_outputs; i++) {
                double error;
                uint64_t first;
                cr_assert_eq(af_tensor_compare(&b[i], &a[i], &error, &first), 0, "%s at %lld, %lld: output %u", what, (long long)s,
                             (long long)t, i);
                free(a[i].data);
                free(b[i].data);
        }
        for (uint32_t i = 0; i < before->n_inputs; i++)
                free(in[i].data);
}

Test(symbols, the_same_bits_at_every_size) {
        for (size_t i = 0; i < AF_ARRAY_SIZE(cases); i++) {
                struct af_test_graph g;
                struct af_graph after;
                struct af_diags diags = {0};
                char text[4000];
                snprintf(text, sizeof(text),
                         "'symbols': [{'name': 's', 'min': 1, 'max': 64}, {'name': 't', 'min': 1, 'max': 64}], 'inputs': [%s], 'nodes': "
                         "[%s], "
                         "'outputs': [%s]",
                         cases[i].inputs, cases[i].nodes, cases[i].outputs);
                af_test_graph_make(&g, text);
                af_test_diags_print(&g.diags);
                cr_assert_eq(g.r, 0, "%s", cases[i].what);
                cr_assert_eq(af_rewrite(&g.graph, NULL, &after, NULL), 0);
                cr_assert_eq(af_graph_check(&after, &diags), 0, "%s: %s", cases[i].what, diags.n_items ? diags.items[0].what : "");
                cr_assert(cases[i].n_after == 0 || after.n_nodes == cases[i].n_after, "%s: %u nodes", cases[i].what, after.n_nodes);
                for (int64_t s = 1; s < 12; s += 3)
                        for (int64_t t = 1; t < 6; t += 2)
                                same_bits(&g.graph, &after, s, t, cases[i].what);
                af_test_graph_deinit(&g);
        }
}
