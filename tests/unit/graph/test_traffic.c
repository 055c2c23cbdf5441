/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of sets of nodes, by values. */
#include <criterion/criterion.h>

#include "compiler/graph/traffic.h"
#include "tests/lib/fragment_text.h"

#define F32(name, dims)      "{'name':'" name "','dtype':'float32','shape':[" dims "]}"
#define N(op, in, out, dims) "{'name':'n_" out "','op':'" op "','inputs':[" in "],'outputs':[" F32(out, dims) "]}"
#define NA(op, in, attrs, out, dims)                                                                                                       \
        "{'name':'n_" out "','op':'" op "','inputs':[" in "],'attrs':{" attrs "},'outputs':[" F32(out, dims) "]}"
#define G(inputs, nodes, outputs) "'inputs':[" inputs "],'nodes':[" nodes "],'outputs':[" outputs "]"

static struct af_test_graph make(const char *text) {
        struct af_test_graph t;
        af_test_graph_make(&t, text);
        if (t.r)
                af_test_diags_print(&t.diags);
        cr_assert_eq(t.r, 0);
        return t;
}

Test(traffic, each_value_moves_once) {
        struct af_test_graph t = make("'constants':[{'name':'k','dtype':'float32','shape':[],'bits':'0000803f'}]," G(
                F32("x", "4,8") "," F32("y", "8"),
                N("add", "'x','y'", "a", "4,8") "," N("mul", "'a','x'", "b", "4,8") "," N("add", "'b','k'", "c", "4,8"), "'c'"));
        static const uint32_t nodes[] = {0, 1, 2};
        uint32_t a = t.graph.nodes[0].out[0], c = t.graph.nodes[2].out[0];
        const uint32_t both[] = {a, c};
        cr_assert_eq(af_value_bytes(&t.graph, a), 128);
        cr_assert_eq(af_traffic(&t.graph, nodes, 1, &a, 1), 128 + 32 + 128);
        cr_assert_eq(af_traffic(&t.graph, nodes, 3, &c, 1), 128 + 32 + 128, "x once, the scalar not at all");
        cr_assert_eq(af_traffic(&t.graph, nodes, 3, both, 2), 128 + 32 + 256);
        af_test_graph_deinit(&t);
}

Test(traffic, what_picks_elements_reads_no_more_than_it_gives) {
        struct af_test_graph t = make(G(F32("x", "100,8"),
                                        NA("slice", "'x'", "'starts':[0,0],'stops':[10,8],'steps':[1,1]", "a",
                                           "10,8") "," NA("reduce_sum", "'x'", "'axes':[0]", "s", "8"),
                                        "'a','s'"));
        cr_assert_eq(af_operand_bytes(&t.graph, t.graph.nodes[0].op == AF_OP_SLICE ? 0 : 1, 0), 320);
        cr_assert_eq(af_operand_bytes(&t.graph, t.graph.nodes[0].op == AF_OP_SLICE ? 1 : 0, 0), 3200, "a reduction reads all of it");
        static const uint32_t nodes[] = {0, 1};
        const uint32_t stored[] = {t.graph.nodes[0].out[0], t.graph.nodes[1].out[0]};
        cr_assert_eq(af_traffic(&t.graph, nodes, 2, stored, 2), 3200 + 320 + 32, "both together read it once");
        af_test_graph_deinit(&t);
}

Test(traffic, symbols_count_with_their_hints) {
        struct af_test_graph t = make("'symbols':[{'name':'s','min':1,'max':64,'hint':16},{'name':'r','min':0,'max':9}]," G(
                F32("x", "'s',8") "," F32("y", "'r'"), N("abs", "'x'", "a", "'s',8") "," N("abs", "'y'", "b", "'r'"), "'a','b'"));
        uint32_t a = t.graph.values[t.graph.nodes[0].out[0]].rank == 2 ? 0 : 1;
        cr_assert_eq(af_value_bytes(&t.graph, t.graph.nodes[a].out[0]), 16 * 8 * 4);
        cr_assert_eq(af_value_bytes(&t.graph, t.graph.nodes[1 - a].out[0]), 9 * 4, "without a hint: a middling size within its range");
        af_test_graph_deinit(&t);
}
