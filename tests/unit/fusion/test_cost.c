/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, siblings, cost, fences and cuts: what the schedule answers decides. */
#include "tests/unit/fusion/fuse_test.h"

TestSuite(cost, .init = fuse_setup, .fini = fuse_teardown);

#define SOFTMAX                                                                                                                            \
        G(F32("x", "4,8"),                                                                                                                 \
          NA("reduce_max", "'x'", "'axes':[1],'keepdims':true", "m", "4,1") "," N("sub", "'x','m'", "d", "4,8") "," N(                     \
                  "exp", "'d'", "e", "4,8") "," NA("reduce_sum", "'e'", "'axes':[1],'keepdims':true", "s", "4,1") "," N("div", "'e','s'",  \
                                                                                                                        "o", "4,8"),       \
          "'o'")

Test(cost, softmax_is_one_kernel_where_the_schedule_can) {
        struct af_test_graph t;
        struct af_fusion f = fuse_text(&t, SOFTMAX);
        cr_assert_eq(f.n_groups, 1);
        cr_assert_str_eq(f.groups[0].rule->name, "reduce_elementwise");
        cr_assert_str_eq(f.groups[0].tmpl, "reduce_fusion_kernel");
        cr_assert(has_decision(&f, AF_DECISION_MERGED, "reduce_sum float32[4,1] into div float32[4,8]"));
        af_test_graph_deinit(&t);
}

/* Rules of one file only. */
static struct af_rules rules_of(struct af_arena *arena, const char *text) {
        struct af_rule *rule = af_arena_alloc(arena, sizeof(*rule));
        struct af_diags diags = {0};
        cr_assert_eq(af_rule_parse(arena, "mine.yaml", text, strlen(text), rule, &diags), 0);
        return (struct af_rules){rule, 1};
}

Test(cost, two_reductions_and_broadcast_back_stay_apart_where_a_rule_says_so) {
        struct af_test_graph t;
        struct fake fake = {0};
        af_test_graph_make(&t, SOFTMAX);
        struct af_rules with = rules_of(&t.arena, "fusion_pattern: {type: elementwise_reduce, ops: [any]}\ncodegen: {template: a.j2}\n");
        struct af_fusion f = fuse_with(&t, &with, &soc, &fake);
        cr_assert_eq(f.n_groups, 3);
        cr_assert(has_decision(&f, AF_DECISION_REFUSED,
                               "a reduced value is spread over a larger shape again: reduce_sum float32[4,1] into div float32[4,8]"));
        with = rules_of(&t.arena, "fusion_pattern: {type: reduce_elementwise, ops: [any]}\nconstraints: {max_reductions: 1}\n"
                                  "codegen: {template: a.j2}\n");
        f = fuse_with(&t, &with, &soc, &fake);
        cr_assert_eq(f.n_groups, 2);
        cr_assert(has_decision(&f, AF_DECISION_REFUSED, "max_reductions of the rule: reduce_max float32[4,1] into sub float32[4,8]"));
        with = rules_of(&t.arena, "fusion_pattern: {type: reduce_elementwise, ops: [any]}\nconstraints: {broadcast_back: false}\n"
                                  "codegen: {template: a.j2}\n");
        f = fuse_with(&t, &with, &soc, &fake);
        cr_assert(has_decision(&f, AF_DECISION_REFUSED, "a reduced value is spread over a larger shape again"));
        af_test_graph_deinit(&t);
}

#define STATISTICS                                                                                                                         \
        G(F32("x", "4,8"),                                                                                                                 \
          NA("reduce_max", "'x'", "'axes':[1]", "m", "4") "," NA("reduce_sum", "'x'", "'axes':[1]", "s",                                   \
                                                                 "4") "," NA("reduce_min", "'x'", "'axes':[1]", "n", "4"),                 \
          "'m','s','n'")

Test(cost, readers_of_one_value_share_a_kernel) {
        struct af_test_graph t;
        struct af_fusion f = fuse_text(&t, STATISTICS);
        cr_assert_eq(f.n_groups, 1);
        cr_assert_eq(f.groups[0].n_inputs, 1);
        cr_assert_eq(f.groups[0].n_outputs, 3);
        cr_assert_str_eq(f.groups[0].rule->name, "siblings");
        cr_assert(has_decision(&f, AF_DECISION_MERGED, "128 bytes and a launch saved: reduce_max float32[4] beside reduce_sum float32[4]"));
        af_test_graph_deinit(&t);
}

Test(cost, siblings_of_which_one_waits_for_the_other_stay_apart) {
        struct af_test_graph t;
        struct af_fusion f =
                fuse_text(&t, G(F32("x", "4,8"),
                                N("abs", "'x'", "a", "4,8") "," N("opaque", "'a'", "b", "4,8") "," N("add", "'x','b'", "c", "4,8"), "'c'"));
        cr_assert_eq(f.n_groups, 2);
        cr_assert(has_decision(&f, AF_DECISION_REFUSED, "a kernel between the two needs one and feeds the other"));
        af_test_graph_deinit(&t);
}

/* Says that kernels with a reduction and more read their inputs three times. */
static bool wasteful(void *userdata, const struct af_graph *g, const struct af_fuse_question *q, struct af_fuse_answer *ret) {
        for (uint32_t i = 0; i < q->n_nodes; i++)
                if (q->n_nodes > 1 && af_op_info(g->nodes[q->nodes[i]].op)->cls == AF_CLASS_REDUCE)
                        ret->bytes = 1 << 20;
        return true;
}

Test(cost, a_kernel_that_moves_more_than_two_is_not_made) {
        struct af_test_graph t;
        struct af_fusion f;
        af_test_graph_make(&t, SOFTMAX);
        cr_assert_eq(af_fuse(&t.graph, &rules, &soc, &(struct af_fuse_ask){wasteful, NULL, NULL}, &f), 0);
        check_partition(&t.graph, &f, &soc);
        cr_assert_eq(f.n_groups, 4); /* max, sub and exp, sum, div */
        cr_assert(has_decision(&f, AF_DECISION_REFUSED, "one kernel moves 1048576 bytes, two move "));
        af_test_graph_deinit(&t);
}

/* All cores meet ten times in any kernel of two, and nothing is saved but a launch. */
static bool sociable(void *userdata, const struct af_graph *g, const struct af_fuse_question *q, struct af_fuse_answer *ret) {
        ret->meetings = q->n_nodes > 1 ? 10 : 0;
        ret->bytes = q->n_nodes * 144;
        return true;
}

Test(cost, meetings_that_cost_more_than_a_launch_are_not_worth_it) {
        struct af_test_graph t;
        struct af_fusion f;
        struct af_soc s = soc;
        s.sync_all_cycles = 1500;
        s.launch_cycles = 9000;
        af_test_graph_make(&t, STATISTICS);
        cr_assert_eq(af_fuse(&t.graph, &rules, &s, &(struct af_fuse_ask){sociable, NULL, NULL}, &f), 0);
        cr_assert_eq(f.n_groups, 3);
        cr_assert(has_decision(&f, AF_DECISION_REFUSED, "all cores would meet more often than a launch is worth"));
        s.launch_cycles = 90000;
        cr_assert_eq(af_fuse(&t.graph, &rules, &s, &(struct af_fuse_ask){sociable, NULL, NULL}, &f), 0);
        cr_assert_eq(f.n_groups, 1);
        af_test_graph_deinit(&t);
}

Test(cost, fences_keep_nodes_apart) {
        struct af_test_graph t;
        struct fake fake = {0};
        struct af_fusion f;
        static const uint32_t fence[] = {1, 0, 2, 2};
        af_test_graph_make(&t, G(F32("x", "4,8"),
                                 N("abs", "'x'", "a", "4,8") "," N("exp", "'a'", "b", "4,8") "," N("relu", "'b'", "c",
                                                                                                   "4,8") "," N("neg", "'c'", "d", "4,8"),
                                 "'d'"));
        cr_assert_eq(af_fuse(&t.graph, &rules, &soc, &(struct af_fuse_ask){fake_fusable, &fake, fence}, &f), 0);
        check_partition(&t.graph, &f, &soc);
        cr_assert_eq(f.n_groups, 2);
        cr_assert(f.group_of[0] != f.group_of[2] && f.group_of[2] == f.group_of[3]);
        cr_assert(has_decision(&f, AF_DECISION_REFUSED, "a larger kernel with both did not fit or moved more"));
        af_test_graph_deinit(&t);
}

Test(cost, groups_are_cut_where_few_bytes_pass) {
        struct af_test_graph t;
        struct fake fake = {0};
        uint32_t at;
        af_test_graph_make(&t, G(F32("x", "64,64"),
                                 N("abs", "'x'", "a", "64,64") "," N("exp", "'a'", "b", "64,64") "," NA(
                                         "reduce_sum", "'b'", "'axes':[1]", "c", "64") "," N("neg", "'c'", "d",
                                                                                             "64") "," N("add", "'d','c'", "e", "64"),
                                 "'e'"));
        struct af_fusion f = fuse_with(&t, &rules, &soc, &fake);
        cr_assert_eq(f.n_groups, 1);
        cr_assert_eq(af_fusion_cut(&t.graph, &f.groups[0], &at), 0);
        cr_assert_eq(at, 3, "behind the reduction, not %u", at);
        af_test_graph_deinit(&t);
        af_test_graph_make(&t, G(F32("x", "4"), N("abs", "'x'", "a", "4") "," N("exp", "'a'", "b", "4"), "'b'"));
        f = fuse_with(&t, &rules, &soc, &fake);
        cr_assert_eq(af_fusion_cut(&t.graph, &f.groups[0], &at), 0);
        cr_assert_eq(at, 1);
        af_test_graph_deinit(&t);
}

/* ---- values computed again ---- */

#define F16(name, dims) "{'name':'" name "','dtype':'float16','shape':[" dims "]}"
#define CAST_TWICE                                                                                                                         \
        G(F16("x", "4,8"),                                                                                                                 \
          N("cast", "'x'", "c", "4,8") "," N("abs", "'c'", "a", "4,8") "," N("opaque", "'a'", "p", "4,8") "," N("add", "'c','p'", "b",     \
                                                                                                                "4,8"),                    \
          "'b'")

static uint32_t recomputed(struct af_test_graph *t, const char *text, struct af_fusion *ret_after) {
        struct fake fake = {0};
        struct af_graph graph;
        uint32_t *from, n;
        af_test_graph_make(t, text);
        struct af_fusion f = fuse_with(t, &rules, &soc, &fake);
        cr_assert_eq(af_fusion_recompute(&t->graph, &f, &graph, &from, &n), 0);
        if (n == 0)
                return 0;
        for (uint32_t i = 0; i < graph.n_nodes; i++) {
                cr_assert_eq(graph.nodes[i].op, t->graph.nodes[from[i]].op);
                for (uint32_t k = 0; k < graph.nodes[i].n_in; k++) {
                        const struct af_value *v = &graph.values[graph.nodes[i].in[k]];
                        cr_assert(v->kind != AF_VALUE_NODE || v->index < i, "producers stand before consumers");
                }
                for (uint32_t k = 0; k < graph.nodes[i].n_out; k++)
                        cr_assert_eq(graph.values[graph.nodes[i].out[k]].index, i);
        }
        t->graph = graph;
        *ret_after = fuse_with(t, &rules, &soc, &fake);
        return n;
}

Test(cost, a_cast_of_something_narrower_is_computed_where_it_is_read) {
        struct af_test_graph t;
        struct af_fusion f;
        cr_assert_eq(recomputed(&t, CAST_TWICE, &f), 1);
        cr_assert_eq(f.n_groups, 2);
        cr_assert_eq(f.groups[0].n_outputs, 1, "the cast is not stored");
        cr_assert_eq(f.groups[1].n_nodes, 2);
        cr_assert_eq(f.groups[1].n_inputs, 2);
        af_test_graph_deinit(&t);
}

Test(cost, nothing_is_computed_again_that_is_not_cheaper) {
        struct af_test_graph t;
        struct af_fusion f;
        static const char heavy[] = G(F16("x", "4,8"),
                                      N("cast", "'x'", "c", "4,8") "," N("exp", "'c'", "e", "4,8") "," N("abs", "'e'", "a", "4,8") "," N(
                                              "opaque", "'a'", "p", "4,8") "," N("add", "'e','p'", "b", "4,8"),
                                      "'b'");
        static const char wide[] = G(F32("x", "4,8") "," F32("y", "4,8"),
                                     N("add", "'x','y'", "c", "4,8") "," N("abs", "'c'", "a", "4,8") "," N(
                                             "opaque", "'a'", "p", "4,8") "," N("add", "'c','p'", "b", "4,8"),
                                     "'b','c'");
        static const char in_place[] =
                G(F16("x", "4,8") "," F32("y", "4,8"),
                  N("cast", "'x'", "c", "4,8") "," N("abs", "'c'", "a", "4,8") "," N("opaque", "'a'", "p", "4,8") "," N(
                          "add", "'c','p'", "b", "4,8") ",{'name':'u','op':'neg','inputs':['x'],'outputs':[" F16("d", "4,8") "]}",
                  "'b',{'value':'d','alias_of':'x'}");
        cr_assert_eq(recomputed(&t, heavy, &f), 0);
        af_test_graph_deinit(&t);
        cr_assert_eq(recomputed(&t, wide, &f), 0, "two inputs are more than the sum that is stored anyway");
        af_test_graph_deinit(&t);
        cr_assert_eq(recomputed(&t, in_place, &f), 0, "an input that changes is not read later than it was");
        af_test_graph_deinit(&t);
}

#define I32(name, dims)  "{'name':'" name "','dtype':'int32','shape':[" dims "]}"
#define BOOL(name, dims) "{'name':'" name "','dtype':'bool','shape':[" dims "]}"

Test(cost, a_mask_of_indices_is_made_by_every_kernel_that_reads_it) {
        struct af_test_graph t;
        struct af_fusion f;
        static const char text[] = "'constants':[{'name':'z','dtype':'float32','shape':[],'bits':'00000000'}]," G(
                F32("x", "8,8"),
                "{'name':'i','op':'iota','inputs':[],'attrs':{'shape':[8,1],'axis':0,'start':0,'step':1},'outputs':[" I32(
                        "i",
                        "8,1") "]},"
                               "{'name':'j','op':'iota','inputs':[],'attrs':{'shape':[1,8],'axis':1,'start':0,'step':1},'outputs':[" I32(
                                       "j", "1,8") "]},"
                                                   "{'name':'m','op':'ge','inputs':['i','j'],'outputs':[" BOOL("m", "8,8") "]}," N(
                                                           "where", "'m','x','z'", "a",
                                                           "8,8") "," N("opaque", "'a'", "p",
                                                                        "8,8") "," N("where", "'m','p','z'", "b",
                                                                                     "8,8") "," N("opaque", "'b'", "q",
                                                                                                  "8,8") "," N("where", "'m','q','z'", "c",
                                                                                                               "8,8"),
                "'c'");
        cr_assert_eq(recomputed(&t, text, &f), 2);
        cr_assert_eq(f.n_groups, 3);
        for (uint32_t i = 0; i < 3; i++)
                cr_assert(f.groups[i].n_nodes == 4 && f.groups[i].n_inputs == 1 && f.groups[i].n_outputs == 1);
        af_test_graph_deinit(&t);
}
