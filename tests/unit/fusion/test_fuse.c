/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions: what merges, what does not and why, on small graphs and samples. */
#include "tests/unit/fusion/fuse_test.h"

TestSuite(fuse, .init = fuse_setup, .fini = fuse_teardown);

Test(fuse, a_chain_is_one_kernel) {
        struct af_test_graph t;
        struct af_fusion f =
                fuse_text(&t, G(F32("x", "4,8"),
                                N("abs", "'x'", "a", "4,8") "," N("relu", "'a'", "b", "4,8") "," N("exp", "'b'", "c", "4,8"), "'c'"));
        cr_assert_eq(f.n_groups, 1);
        cr_assert_eq(f.groups[0].n_nodes, 3);
        cr_assert_eq(f.groups[0].n_inputs, 1);
        cr_assert_eq(f.groups[0].n_outputs, 1);
        cr_assert_str_eq(f.groups[0].rule->name, "elementwise_chain");
        cr_assert_str_eq(f.groups[0].tmpl, "pointwise_fusion_kernel");
        cr_assert(has_decision(&f, AF_DECISION_MERGED, "256 bytes and a launch saved: relu float32[4,8] into exp float32[4,8]"));
        af_test_graph_deinit(&t);
}

Test(fuse, values_read_outside_and_outputs_in_the_middle_are_stored) {
        struct af_test_graph t;
        struct af_fusion f = fuse_text(&t, G(F32("x", "4,8"),
                                             N("abs", "'x'", "a", "4,8") "," N("relu", "'a'", "b", "4,8") "," N(
                                                     "exp", "'a'", "c", "4,8") "," N("add", "'b','c'", "d", "4,8"),
                                             "'d','a','d'"));
        cr_assert_eq(f.n_groups, 1);
        cr_assert_eq(f.groups[0].n_nodes, 4);
        cr_assert_eq(f.groups[0].n_outputs, 2);
        af_test_graph_deinit(&t);
}

Test(fuse, a_diamond_around_a_framework_node_makes_no_cycle) {
        struct af_test_graph t;
        struct af_fusion f =
                fuse_text(&t, G(F32("x", "4,8"),
                                N("abs", "'x'", "a", "4,8") "," N("opaque", "'a'", "b", "4,8") "," N("add", "'a','b'", "c", "4,8"), "'c'"));
        cr_assert_eq(f.n_groups, 2);
        cr_assert_str_eq(f.fallback[1], "no template for op class opaque");
        cr_assert(has_decision(&f, AF_DECISION_REFUSED, "a kernel between the two"));
        cr_assert(has_decision(&f, AF_DECISION_FALLBACK, "no template for op class opaque"));
        af_test_graph_deinit(&t);
}

Test(fuse, broadcast_and_reduction_take_their_rules) {
        struct af_test_graph t;
        struct af_fusion f = fuse_text(&t, G(F32("x", "4,8") "," F32("y", "8"),
                                             N("exp", "'y'", "e", "8") "," N("add", "'x','e'", "a", "4,8") "," NA(
                                                     "reduce_sum", "'a'", "'axes':[1]", "s", "4") "," N("sqrt", "'s'", "q", "4"),
                                             "'q'"));
        cr_assert_eq(f.n_groups, 1);
        cr_assert_eq(f.groups[0].n_nodes, 4);
        cr_assert_str_eq(f.groups[0].rule->name, "elementwise_reduce");
        cr_assert_str_eq(f.groups[0].tmpl, "reduce_fusion_kernel");
        af_test_graph_deinit(&t);
        f = fuse_text(&t, G(F32("x", "4,8") "," F32("y", "8"), N("add", "'x','y'", "a", "4,8") "," N("relu", "'a'", "b", "4,8"), "'b'"));
        cr_assert_eq(f.n_groups, 1);
        cr_assert_str_eq(f.groups[0].rule->name, "elementwise_broadcast");
        af_test_graph_deinit(&t);
}

/* c takes x's memory over; b, which reads x, needs a. Were a and c one kernel, b would have to stand before and behind it. */
Test(fuse, readers_of_an_input_stand_before_what_takes_its_memory) {
        struct af_test_graph t;
        struct fake fake = {0};
        af_test_graph_make(&t, G(F32("x", "4,8") "," F32("y", "4,8"),
                                 N("abs", "'y'", "a", "4,8") "," N("opaque", "'a','x'", "b", "4,8") "," N("add", "'a','x'", "c", "4,8"),
                                 "{'value':'c','alias_of':'x'},'b'"));
        struct af_fusion f = fuse_with(&t, &rules, &soc, &fake);
        cr_assert_eq(f.n_groups, 2);
        cr_assert(
                has_decision(&f, AF_DECISION_REFUSED, "a kernel between the two needs one and feeds the other: abs float32[4,8] into add"));
        af_test_graph_deinit(&t);
}

Test(fuse, views_at_the_rim_are_aliases_and_inside_are_members) {
        struct af_test_graph t;
        struct af_fusion f =
                fuse_text(&t, G(F32("x", "4,8"),
                                NA("reshape", "'x'", "'shape':[32]", "v", "32") "," N("abs", "'v'", "a", "32") "," NA(
                                        "reshape", "'a'", "'shape':[8,4]", "w",
                                        "8,4") "," N("relu", "'w'", "b", "8,4") "," NA("unsqueeze", "'b'", "'axes':[0]", "u", "1,8,4"),
                                "'u'"));
        cr_assert_eq(f.n_groups, 1);
        cr_assert_eq(f.groups[0].n_nodes, 3); /* abs, reshape, relu */
        cr_assert(f.alias_view[0] && !f.alias_view[2] && f.alias_view[4]);
        af_test_graph_deinit(&t);
        f = fuse_text(&t,
                      G(F32("x", "4,8"),
                        NA("reshape", "'x'", "'shape':[32]", "v", "32") "," NA("unsqueeze", "'v'", "'axes':[0]", "u", "1,32"), "'u','v'"));
        cr_assert_eq(f.n_groups, 0);
        cr_assert(f.alias_view[0] && f.alias_view[1]);
        af_test_graph_deinit(&t);
}

Test(fuse, a_refused_view_between_leaves_two_kernels_and_an_alias) {
        struct af_test_graph t;
        struct fake fake = {.hates = AF_OP_RESHAPE};
        af_test_graph_make(
                &t,
                G(F32("x", "4,8"),
                  N("abs", "'x'", "a", "4,8") "," NA("reshape", "'a'", "'shape':[32]", "v", "32") "," N("relu", "'v'", "b", "32"), "'b'"));
        struct af_fusion f = fuse_with(&t, &rules, &soc, &fake);
        cr_assert_eq(f.n_groups, 2);
        cr_assert(f.alias_view[1]);
        cr_assert(has_decision(&f, AF_DECISION_REFUSED, "hated op"));
        af_test_graph_deinit(&t);
}

Test(fuse, without_rules_every_node_is_alone) {
        static const struct af_rules none;
        struct af_test_graph t;
        struct fake fake = {0};
        af_test_graph_make(&t, G(F32("x", "4,8"),
                                 N("abs", "'x'", "a", "4,8") "," NA("reshape", "'a'", "'shape':[32]", "v",
                                                                    "32") "," NA("reduce_sum", "'v'", "'axes':[0]", "s", ""),
                                 "'s'"));
        struct af_fusion f = fuse_with(&t, &none, &soc, &fake);
        cr_assert_eq(f.n_groups, 2);
        cr_assert_null(f.groups[0].rule);
        cr_assert_str_eq(f.groups[0].tmpl, "pointwise_fusion_kernel");
        cr_assert_str_eq(f.groups[1].tmpl, "reduce_fusion_kernel");
        af_test_graph_deinit(&t);
}

Test(fuse, dead_nodes_count_nowhere) {
        struct af_test_graph t;
        struct af_fusion f =
                fuse_text(&t, G(F32("x", "4,8"),
                                N("abs", "'x'", "a", "4,8") "," N("relu", "'a'", "b", "4,8") "," N("exp", "'a'", "dead", "4,8"), "'b'"));
        cr_assert_eq(f.n_groups, 1);
        cr_assert_eq(f.groups[0].n_nodes, 2);
        cr_assert_eq(f.groups[0].n_outputs, 1);
        af_test_graph_deinit(&t);
}

Test(fuse, reasons_for_the_framework) {
        struct af_test_graph t;
        struct af_soc small = soc;
        struct fake fake = {0};
        small.dtypes &= ~AF_DTYPE_BIT(AF_DTYPE_FLOAT32);
        af_test_graph_make(&t, G(F32("x", "4,8"), N("abs", "'x'", "a", "4,8"), "'a'"));
        struct af_fusion f = fuse_with(&t, &rules, &small, &fake);
        cr_assert_str_eq(f.fallback[0], "dtype float32 is not supported on TestSoc");
        af_test_graph_deinit(&t);
}

/* ---- the samples ---- */
Test(fuse, samples) {
        static const struct {
                const char *name;
                uint32_t n_groups, n_fallback;
        } samples[] = {{"tf_abs_add_relu_broadcast", 1, 0}, {"tf_abs_reduce_sum", 1, 0},  {"tf_abs_relu_exp", 1, 0}, {"torch_add_ge", 1, 0},
                       {"torch_gather_add", 1, 1},          {"torch_mul_reducesum", 1, 0}};
        for (size_t i = 0; i < AF_ARRAY_SIZE(samples); i++) {
                struct af_test_graph t;
                struct fake fake = {0};
                struct af_buf text = AF_BUF_INIT;
                char path[4096];
                uint32_t n_fallback = 0;
                snprintf(path, sizeof(path), "%s/examples/fragments/%s.json", getenv("AF_SOURCE_ROOT"), samples[i].name);
                cr_assert_eq(af_io_read_file(path, 1 << 20, &text), 0);
                af_test_graph_parse(&t, (const char *)text.data, text.size);
                struct af_fusion f = fuse_with(&t, &rules, &soc, &fake);
                for (uint32_t n = 0; n < t.graph.n_nodes; n++)
                        n_fallback += f.fallback[n] != NULL;
                cr_expect_eq(f.n_groups, samples[i].n_groups, "%s: %u groups", samples[i].name, f.n_groups);
                cr_expect_eq(n_fallback, samples[i].n_fallback, "%s", samples[i].name);
                if (n_fallback)
                        cr_expect(has_decision(&f, AF_DECISION_FALLBACK, "no template for op class gather"));
                struct af_buf dot = AF_BUF_INIT;
                af_fusion_dot(&t.graph, &f, &dot);
                cr_expect_gt(dot.size, 100);
                af_buf_deinit(&dot);
                af_buf_deinit(&text);
                af_test_graph_deinit(&t);
        }
}
