/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions: what merges, what does not and why, on small graphs, samples, large ones and random ones. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/io.h"
#include "compiler/fusion/fusion.h"
#include "tests/lib/fragment_text.h"
#include "tests/lib/random_graph.h"

static struct af_arena rules_arena;
static struct af_rules rules;
static const struct af_soc soc = {
        .name = "TestSoc", .max_inputs = 16, .max_nodes = 64, .dtypes = (1u << AF_N_DTYPES) - 1 - AF_DTYPE_BIT(AF_DTYPE_FLOAT64)};

static void setup(void) {
        struct af_diags diags = {0};
        char dir[4096];
        af_arena_init(&rules_arena, 0);
        snprintf(dir, sizeof(dir), "%s/rules/fusion", getenv("AF_SOURCE_ROOT"));
        cr_assert_eq(af_rules_load_dir(&rules_arena, dir, &rules, &diags), 0);
        cr_assert_eq(diags.n_items, 0);
}
static void teardown(void) {
        af_arena_deinit(&rules_arena);
}
TestSuite(fuse, .init = setup, .fini = teardown);

/* ---- a schedule that counts its questions ---- */
struct fake {
        uint32_t max_nodes; /* says no above this; 0: never */
        enum af_op hates;   /* says no to groups with this op and others */
        uint64_t n_calls, n_nodes_seen;
};

static bool fake_fusable(void *userdata, const struct af_graph *g, const uint32_t *nodes, uint32_t n_nodes, const char **ret_why) {
        struct fake *fake = userdata;
        fake->n_calls++;
        fake->n_nodes_seen += n_nodes;
        for (uint32_t i = 0; i < n_nodes; i++) {
                cr_assert(i == 0 || nodes[i - 1] < nodes[i], "candidates come in topological order");
                if (fake->hates && n_nodes > 1 && g->nodes[nodes[i]].op == fake->hates) {
                        *ret_why = "hated op";
                        return false;
                }
        }
        if (fake->max_nodes && n_nodes > fake->max_nodes) {
                *ret_why = "too many for this schedule";
                return false;
        }
        return true;
}

static uint64_t tested_seed; /* for messages */

/* ---- invariants of every partition ---- */

static bool contains(const uint32_t *list, uint32_t n, uint32_t x) {
        for (uint32_t i = 0; i < n; i++)
                if (list[i] == x)
                        return true;
        return false;
}

static void check_group(const struct af_graph *g, const struct af_fusion *f, uint32_t number, const uint32_t *first, const uint32_t *users,
                        const bool *live) {
        const struct af_group *group = &f->groups[number];
        cr_assert(group->n_nodes > 0 && group->tmpl);
        for (uint32_t i = 0; i < group->n_nodes; i++) {
                const struct af_node *n = &g->nodes[group->nodes[i]];
                cr_assert_eq(f->group_of[group->nodes[i]], number);
                cr_assert(i == 0 || group->nodes[i - 1] < group->nodes[i]);
                for (uint32_t j = 0; j < n->n_in; j++) {
                        const struct af_value *v = &g->values[n->in[j]];
                        bool inside = v->kind == AF_VALUE_NODE && f->group_of[v->index] == number;
                        bool immediate = v->kind == AF_VALUE_CONST && v->rank == 0;
                        cr_assert_eq(contains(group->inputs, group->n_inputs, n->in[j]), !inside && !immediate);
                }
                for (uint32_t j = 0; j < n->n_out; j++) {
                        bool stored = false;
                        for (uint32_t o = 0; o < g->n_outputs; o++)
                                stored |= g->outputs[o].value == n->out[j];
                        for (uint32_t u = first[n->out[j]]; u < first[n->out[j] + 1]; u++)
                                stored |= live[users[u]] && f->group_of[users[u]] != number;
                        cr_assert_eq(contains(group->outputs, group->n_outputs, n->out[j]), stored);
                }
        }
        for (uint32_t i = 0; i < group->n_inputs; i++)
                cr_assert(!contains(group->inputs, i, group->inputs[i]));
}

/* Runs groups in their order and framework nodes as soon as they can: everything must get its turn. */
static void check_order(const struct af_graph *g, const struct af_fusion *f, const bool *live) {
        bool *done = calloc(g->n_nodes + 1, sizeof(*done));
        uint32_t group = 0;
        for (bool moved = true; moved;) {
                moved = false;
                for (uint32_t n = 0; n < g->n_nodes; n++) {
                        bool ready = live[n] && !done[n] && f->group_of[n] == AF_NONE;
                        for (uint32_t i = 0; ready && i < g->nodes[n].n_in; i++) {
                                const struct af_value *v = &g->values[g->nodes[n].in[i]];
                                ready = v->kind != AF_VALUE_NODE || done[v->index];
                        }
                        done[n] |= ready;
                        moved |= ready;
                }
                bool ready = group < f->n_groups;
                for (uint32_t i = 0; ready && i < f->groups[group].n_inputs; i++) {
                        const struct af_value *v = &g->values[f->groups[group].inputs[i]];
                        ready = v->kind != AF_VALUE_NODE || done[v->index];
                }
                for (uint32_t i = 0; ready && i < f->groups[group].n_nodes; i++)
                        done[f->groups[group].nodes[i]] = true;
                group += ready;
                moved |= ready;
        }
        cr_assert_eq(group, f->n_groups, "seed %llu: group %u waits for a later one", (unsigned long long)tested_seed, group);
        for (uint32_t n = 0; n < g->n_nodes; n++)
                cr_assert_eq(done[n], live[n], "node %u", n);
        free(done);
}

static void check_partition(const struct af_graph *g, const struct af_fusion *f, const struct af_soc *s) {
        bool *live = calloc(g->n_nodes + 1, sizeof(*live));
        uint32_t *first, *users;
        cr_assert_eq(af_graph_users(g, &first, &users), 0);
        for (uint32_t i = 0; i < g->n_outputs; i++)
                if (g->values[g->outputs[i].value].kind == AF_VALUE_NODE)
                        live[g->values[g->outputs[i].value].index] = true;
        for (uint32_t n = g->n_nodes; n-- > 0;) {
                live[n] |= g->nodes[n].effects;
                for (uint32_t i = 0; live[n] && i < g->nodes[n].n_in; i++)
                        if (g->values[g->nodes[n].in[i]].kind == AF_VALUE_NODE)
                                live[g->values[g->nodes[n].in[i]].index] = true;
        }
        for (uint32_t n = 0; n < g->n_nodes; n++) {
                unsigned places = (f->group_of[n] != AF_NONE) + (f->fallback[n] != NULL) + f->alias_view[n];
                cr_assert_eq(places, live[n], "seed %llu: node %u (%s) is in %u places", (unsigned long long)tested_seed, n,
                             af_op_info(g->nodes[n].op)->name, places);
        }
        for (uint32_t i = 0; i < f->n_groups; i++) {
                check_group(g, f, i, first, users, live);
                cr_assert(f->groups[i].n_nodes <= s->max_nodes);
                cr_assert(f->groups[i].n_nodes == 1 || f->groups[i].n_inputs <= s->max_inputs);
        }
        check_order(g, f, live);
        free(live);
}

/* ---- short cases ---- */

static struct af_fusion fuse_with(struct af_test_graph *t, const struct af_rules *with, const struct af_soc *s, struct fake *fake) {
        struct af_fusion f;
        if (t->r)
                af_test_diags_print(&t->diags);
        cr_assert_eq(t->r, 0);
        cr_assert_eq(af_fuse(&t->graph, with, s, fake_fusable, fake, &f), 0);
        check_partition(&t->graph, &f, s);
        return f;
}

static struct af_fusion fuse_text(struct af_test_graph *t, const char *text) {
        struct fake fake = {0};
        af_test_graph_make(t, text);
        return fuse_with(t, &rules, &soc, &fake);
}

static bool has_decision(const struct af_fusion *f, enum af_decision_kind kind, const char *text) {
        for (uint32_t i = 0; i < f->n_decisions; i++)
                if (f->decisions[i].kind == kind && strstr(f->decisions[i].reason, text))
                        return true;
        for (uint32_t i = 0; i < f->n_decisions; i++)
                fprintf(stderr, "decision %d: %s\n", f->decisions[i].kind, f->decisions[i].reason);
        return false;
}

#define F32(name, dims)      "{'name':'" name "','dtype':'float32','shape':[" dims "]}"
#define N(op, in, out, dims) "{'name':'n_" out "','op':'" op "','inputs':[" in "],'outputs':[" F32(out, dims) "]}"
#define NA(op, in, attrs, out, dims)                                                                                                       \
        "{'name':'n_" out "','op':'" op "','inputs':[" in "],'attrs':{" attrs "},'outputs':[" F32(out, dims) "]}"
#define G(inputs, nodes, outputs) "'inputs':[" inputs "],'nodes':[" nodes "],'outputs':[" outputs "]"

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

Test(fuse, a_softmax_is_one_kernel) {
        struct af_test_graph t;
        struct af_fusion f =
                fuse_text(&t, G(F32("x", "4,8"),
                                NA("reduce_max", "'x'", "'axes':[1],'keepdims':true", "m", "4,1") "," N("sub", "'x','m'", "d", "4,8") "," N(
                                        "exp", "'d'", "e", "4,8") "," NA("reduce_sum", "'e'", "'axes':[1],'keepdims':true", "s",
                                                                         "4,1") "," N("div", "'e','s'", "o", "4,8"),
                                "'o'"));
        cr_assert_eq(f.n_groups, 1);
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
        af_test_graph_make(&t, "'symbols':[{'name':'s','min':1,'max':64}]," G(F32("x", "'s'"), N("abs", "'x'", "a", "'s'"), "'a'"));
        f = fuse_with(&t, &rules, &soc, &fake);
        cr_assert_str_eq(f.fallback[0], "symbolic shape");
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

/* ---- large graphs ---- */
struct big {
        struct af_arena arena;
        struct af_fragment f;
        struct af_fragment_tensor t;
        struct af_graph g;
};

static void big_init(struct big *b) {
        const int64_t dims[] = {4, 6};
        af_arena_init(&b->arena, 0);
        cr_assert_eq(af_fragment_init(&b->f, &b->arena), 0);
        b->t = (struct af_fragment_tensor){.name = "x", .dtype = AF_DTYPE_FLOAT32, .rank = 2};
        cr_assert_eq(af_fragment_dims_const(&b->f, dims, 2, &b->t.dims), 0);
        struct af_fragment_input in = {.t = b->t};
        cr_assert_eq(af_expr_const(&b->f.exprs, 0, &in.offset), 0);
        cr_assert_eq(af_fragment_add_input(&b->f, &in, NULL), 0);
}

static void value_name(char name[16], int64_t i) {
        if (i < 0)
                strcpy(name, "x");
        else
                snprintf(name, 16, "v%lld", (long long)i);
}

static void big_node(struct big *b, uint32_t i, const char *op, int64_t x, int64_t y) {
        char name[16], out_name[16], x_name[16], y_name[16];
        const char *inputs[] = {x_name, y_name};
        struct af_fragment_tensor out = b->t;
        snprintf(name, sizeof(name), "n%u", i);
        value_name(out_name, i);
        value_name(x_name, x);
        value_name(y_name, y);
        out.name = out_name;
        struct af_fragment_node n = {
                .name = name, .op = op, .inputs = inputs, .n_inputs = strcmp(op, "add") ? 1 : 2, .outputs = &out, .n_outputs = 1};
        cr_assert_eq(af_fragment_add_node(&b->f, &n, NULL), 0);
}

static void big_output(struct big *b, uint32_t i) {
        char name[16];
        value_name(name, i);
        struct af_fragment_output o = {.value = name};
        cr_assert_eq(af_fragment_add_output(&b->f, &o, NULL), 0);
}

static struct af_fusion big_fuse(struct big *b, const struct af_soc *s, struct fake *fake, const char *label) {
        struct af_diags diags = {0};
        struct af_fusion f;
        cr_assert_eq(af_graph_from_fragment(&b->g, &b->f, &diags), 0);
        uint64_t start = af_clock_now_us();
        cr_assert_eq(af_fuse(&b->g, &rules, s, fake_fusable, fake, &f), 0);
        uint64_t us = af_clock_now_us() - start;
        cr_log_info("%s: %u nodes, %u groups, %llu us, schedule asked %llu times about %llu nodes", label, b->g.n_nodes, f.n_groups,
                    (unsigned long long)us, (unsigned long long)fake->n_calls, (unsigned long long)fake->n_nodes_seen);
        cr_expect_lt(us, 2000000); /* a tenth is usual; room for sanitizers and busy machines */
        af_diags_deinit(&diags);
        return f;
}

Test(fuse, long_chain) {
        struct big b;
        struct fake fake = {0};
        big_init(&b);
        for (uint32_t i = 0; i < 20000; i++)
                big_node(&b, i, "abs", (int64_t)i - 1, 0);
        big_output(&b, 19999);
        struct af_fusion f = big_fuse(&b, &soc, &fake, "chain");
        cr_expect_eq(f.n_groups, (20000 + 63) / 64);
        for (uint32_t i = 0; i < f.n_groups; i++) {
                cr_expect_eq(f.groups[i].n_inputs, 1);
                cr_expect_eq(f.groups[i].n_outputs, 1);
        }
        af_arena_deinit(&b.arena);
}

Test(fuse, long_chain_with_a_schedule_that_holds_less) {
        struct big b;
        struct fake fake = {.max_nodes = 41};
        big_init(&b);
        for (uint32_t i = 0; i < 5000; i++)
                big_node(&b, i, "abs", (int64_t)i - 1, 0);
        big_output(&b, 4999);
        struct af_fusion f = big_fuse(&b, &soc, &fake, "chain, 41 at most");
        for (uint32_t i = 0; i < f.n_groups; i++)
                cr_expect_leq(f.groups[i].n_nodes, 41);
        cr_expect_leq(f.n_groups, 5000 / 41 + 40);
        check_partition(&b.g, &f, &soc);
        af_arena_deinit(&b.arena);
}

Test(fuse, fibonacci) {
        struct big b;
        struct fake fake = {0};
        big_init(&b);
        for (uint32_t i = 0; i < 5000; i++)
                big_node(&b, i, "add", (int64_t)i - 1, (int64_t)i - 2);
        big_output(&b, 4999);
        struct af_fusion f = big_fuse(&b, &soc, &fake, "fibonacci");
        cr_expect_leq(f.n_groups, 5000 / 32);
        check_partition(&b.g, &f, &soc);
        af_arena_deinit(&b.arena);
}

Test(fuse, many_readers_of_one_value) {
        struct big b;
        struct fake fake = {0};
        big_init(&b);
        big_node(&b, 0, "abs", -1, 0);
        for (uint32_t i = 1; i <= 5000; i++)
                big_node(&b, i, "exp", 0, 0);
        for (uint32_t i = 1; i <= 5000; i++)
                big_output(&b, i);
        struct af_fusion f = big_fuse(&b, &soc, &fake, "fan-out");
        cr_expect_lt(f.n_groups, 5000);
        af_arena_deinit(&b.arena);
}

Test(fuse, a_layered_mesh) {
        struct big b;
        struct fake fake = {0};
        uint64_t rng = 99;
        big_init(&b);
        for (uint32_t i = 0; i < 10000; i++) {
                rng = rng * 6364136223846793005u + 1442695040888963407u;
                int64_t back = i < 100 ? i + 1 : 1 + (int64_t)((rng >> 33) % 100);
                big_node(&b, i, i % 37 == 36 ? "opaque" : "add", (int64_t)i - 1, (int64_t)i - back);
        }
        big_output(&b, 9999);
        struct af_fusion f = big_fuse(&b, &soc, &fake, "mesh");
        check_partition(&b.g, &f, &soc);
        af_arena_deinit(&b.arena);
}

/* ---- random graphs ---- */
Test(fuse, random_graphs_keep_the_invariants) {
        const char *env = getenv("AF_TEST_SEED");
        uint64_t first = env ? strtoull(env, NULL, 0) : 1, n = env ? 1 : 400, n_groups = 0, n_nodes = 0;
        for (uint64_t seed = first; seed < first + n; seed++) {
                struct af_arena arena;
                struct af_fragment fragment;
                struct af_graph g;
                struct af_diags diags = {0};
                struct af_fusion f;
                struct af_soc s = soc;
                struct fake fake = {.max_nodes = seed % 5 == 0 ? 1 + seed % 7 : 0, .hates = seed % 7 == 0 ? AF_OP_CAST : 0};
                struct af_random_opts opts = {.n_nodes = seed % 3 == 0 ? 60 : 0, .in_place = true};
                af_arena_init(&arena, 0);
                s.max_nodes = 2 + seed % 30;
                s.max_inputs = 3 + seed % 9;
                tested_seed = seed;
                cr_assert_eq(af_random_fragment(&fragment, &arena, seed, &opts), 0);
                cr_assert_eq(af_graph_from_fragment(&g, &fragment, &diags), 0);
                cr_assert_eq(af_fuse(&g, &rules, &s, fake_fusable, &fake, &f), 0);
                check_partition(&g, &f, &s);
                n_groups += f.n_groups;
                n_nodes += g.n_nodes;
                af_diags_deinit(&diags);
                af_arena_deinit(&arena);
        }
        cr_log_info("%llu graphs, %llu nodes, %llu groups", (unsigned long long)n, (unsigned long long)n_nodes,
                    (unsigned long long)n_groups);
}
