/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/io.h"
#include "tests/lib/fragment_text.h"
#include "tests/lib/golden.h"
#include "tests/lib/kernel_group.h"

struct built {
        struct af_test_graph t;
        struct af_soc soc;
        struct kernel_users users;
        struct af_group group;
        struct af_kernel *k;
        const char *why;
        int r;
};

/* The whole graph as one kernel. */
static void build(struct built *b) {
        const struct af_graph *g = &b->t.graph;
        af_test_diags_print(&b->t.diags);
        cr_assert_eq(b->t.r, 0);
        kernel_soc(&b->soc);
        uint32_t *nodes = af_arena_calloc(g->arena, g->n_nodes, sizeof(*nodes));
        for (uint32_t i = 0; i < g->n_nodes; i++)
                nodes[i] = i;
        cr_assert_eq(af_graph_users(g, &b->users.first, &b->users.list), 0);
        cr_assert_eq(kernel_group_make(g, &b->users, nodes, g->n_nodes, &b->group), 0);
        AF_CLEANUP(af_arena_deinit) struct af_arena scratch = {0};
        b->r = af_schedule_build(&scratch, g, &b->group, &b->soc, &b->k, &b->why);
        const char *why = NULL;
        cr_assert_eq(af_schedule_fusable(&b->soc, g, nodes, g->n_nodes, &why), b->r == 0, "fusable says %s, build %s", why, b->why);
}

static void build_text(struct built *b, const char *text) {
        *b = (struct built){0};
        af_test_graph_make(&b->t, text);
        build(b);
}

static void build_file(struct built *b, const char *name) {
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        char path[600];
        *b = (struct built){0};
        snprintf(path, sizeof(path), "%s/examples/fragments/%s.json", getenv("AF_SOURCE_ROOT"), name);
        cr_assert_eq(af_io_read_file(path, 1 << 20, &text), 0);
        af_test_graph_parse(&b->t, (const char *)text.data, text.size);
        build(b);
}

static void expect_tree(struct built *b, const char *name) {
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        char file[100];
        cr_assert_eq(b->r, 0, "%s", b->why);
        af_kernel_print(b->k, &text);
        snprintf(file, sizeof(file), "%s.tree", name);
        cr_expect(golden_equal(file, text.data, text.size));
        af_test_graph_deinit(&b->t);
}

Test(schedule_build, sample_trees) {
        static const char *const names[] = {"tf_abs_relu_exp", "torch_add_ge", "tf_abs_add_relu_broadcast", "tf_abs_reduce_sum",
                                            "torch_mul_reducesum"};
        for (size_t i = 0; i < AF_ARRAY_SIZE(names); i++) {
                struct built b;
                build_file(&b, names[i]);
                expect_tree(&b, names[i]);
        }
}

#define X(shape)                "'inputs':[{'name':'x','dtype':'float32','shape':" shape "}],"
#define OUT(name, dtype, shape) "'outputs':[{'name':'" name "','dtype':'" dtype "','shape':" shape "}]}"
#define REDUCE(op, in, axes, out, shape)                                                                                                   \
        "{'name':'" out "n','op':'" op "','inputs':['" in "'],'attrs':{'axes':" axes ",'keepdims':false}," OUT(out, "float32", shape)

/* Large graphs have thousands of kernels: what was tried for one of them goes, only what it is made of stays. */
Test(schedule_build, what_was_tried_does_not_stay) {
        struct built b;
        build_text(&b, X("[64,300000]") "'nodes':[" REDUCE("reduce_sum", "x", "[1]", "t", "[64]") "],'outputs':['t']");
        cr_assert_eq(b.r, 0, "%s", b.why);
        const struct af_graph *g = &b.t.graph;
        AF_CLEANUP(af_arena_deinit) struct af_arena scratch = {0};
        size_t before = g->arena->n_bytes, own = sizeof(struct af_kernel) + 16 * 1024;
        cr_assert_eq(af_schedule_build(&scratch, g, &b.group, &b.soc, &b.k, &b.why), 0);
        for (uint32_t i = 0; i < b.k->n_phases; i++) {
                const struct af_phase *p = &b.k->phases[i];
                own += sizeof(*p) + p->n_values * sizeof(*p->values) + p->n_stmts * sizeof(*p->stmts);
        }
        cr_expect_leq(g->arena->n_bytes - before, own);
        cr_expect_gt(scratch.n_bytes, 4 * own, "nothing was tried");
        af_test_graph_deinit(&b.t);
}

Test(schedule_build, first_axis_tree) {
        struct built b;
        build_text(&b, X("[4096,1024]") "'nodes':[" REDUCE("reduce_sum", "x", "[0]", "t", "[1024]") "],'outputs':['t']");
        expect_tree(&b, "sum_first");
}

Test(schedule_build, strided_tree) {
        struct built b;
        build_text(
                &b,
                "'inputs':[{'name':'x','dtype':'float32','shape':[50,60],'strides':[1,50]},{'name':'y','dtype':'float32','shape':[50,1]}],"
                "'nodes':[{'name':'n','op':'add','inputs':['x','y']," OUT("t", "float32", "[50,60]") "],'outputs':['t']");
        expect_tree(&b, "turned_add");
}

#define CONCAT(in, axis, out, shape)                                                                                                       \
        "{'name':'" out "n','op':'concat','inputs':[" in "],'attrs':{'axis':" axis "}," OUT(out, "float32", shape)
#define ABS(in, out, shape) "{'name':'" out "n','op':'abs','inputs':['" in "']," OUT(out, "float32", shape)
#define TWO(a, b)           "'inputs':[{'name':'x','dtype':'float32','shape':" a "},{'name':'y','dtype':'float32','shape':" b "}],"

#define GATHER_OF(shape) "'inputs':[{'name':'x','dtype':'float32','shape':" shape "},{'name':'i','dtype':'int64','shape':[4]}],"
#define GATHER(in, axis, out, shape)                                                                                                       \
        "{'name':'" out "n','op':'gather','inputs':['" in "','i'],'attrs':{'axis':" axis "}," OUT(out, "float32", shape)

static void expect_unfit(const char *text, const char *why) {
        struct built b;
        build_text(&b, text);
        cr_assert_eq(b.r, AF_SCHEDULE_E_UNFIT);
        cr_expect_str_eq(b.why, why);
        af_test_graph_deinit(&b.t);
}

static void expect_phases(const char *text, uint32_t n_phases, bool sync) {
        struct built b;
        build_text(&b, text);
        cr_assert_eq(b.r, 0, "%s", b.why);
        cr_expect_eq(b.k->n_phases, n_phases);
        cr_expect_eq(b.k->needs_sync_all, sync);
        af_test_graph_deinit(&b.t);
}

#define SUB_BACK                                                                                                                           \
        "{'name':'u','op':'unsqueeze','inputs':['m'],'attrs':{'axes':[1]}," OUT(                                                           \
                "k", "float32", "[8,1]") ",{'name':'s','op':'sub','inputs':['x','k']," OUT("t", "float32", "[8,9]")

Test(schedule_build, reductions_within_a_tile) {
        expect_phases(X("[8,9]") "'nodes':[" REDUCE("reduce_max", "x", "[1]", "m", "[8]") "," SUB_BACK "],'outputs':['t']", 1, false);
        expect_phases(X("[8,9]") "'nodes':[" REDUCE("reduce_sum", "x", "[1]", "a", "[8]") "," REDUCE("reduce_sum", "x", "[0]", "b",
                                                                                                     "[9]") "],'outputs':['a','b']",
                      1, false);
        expect_phases(X("[8,9]") "'nodes':[" REDUCE("reduce_sum", "x", "[1]", "a", "[8]") "," REDUCE("reduce_sum", "a", "[0]", "b",
                                                                                                     "[]") "],'outputs':['b']",
                      1, false);
}

/* Rows summed within tiles while columns are summed across them: chunks of rows on the cores, then their results. */
Test(schedule_build, row_and_column_sums_of_one_read) {
        expect_phases(X("[4096,1024]") "'nodes':[" REDUCE("reduce_sum", "x", "[1]", "a", "[4096]") "," REDUCE(
                              "reduce_sum", "x", "[0]", "b", "[1024]") "],'outputs':['a','b']",
                      2, true);
}

/* A row that no tile holds: its maximum goes through the workspace, behind a meeting of all cores. */
Test(schedule_build, what_no_tile_holds_becomes_parts) {
        expect_phases(X("[3,60000]") "'nodes':[" REDUCE("reduce_max", "x", "[1]", "m",
                                                        "[3]") ",{'name':'u','op':'unsqueeze','inputs':['m'],'attrs':{'axes':["
                                                               "1]}," OUT("k", "float32",
                                                                          "[3,1]") ",{'name':'s','op':'sub','inputs':['x','k']"
                                                                                   "," OUT("t", "float32", "[3,60000]") "],'outputs':['t']",
                      3, true);
}

/* Sums over different axes of one input: parts that do not wait for one another. */
Test(schedule_build, parts_that_share_nothing_do_not_meet) {
        expect_phases("'inputs':[{'name':'x','dtype':'float32','shape':[40,50]},{'name':'y','dtype':'float32','shape':[7,9]}],"
                      "'nodes':[{'name':'n','op':'exp','inputs':['x']," OUT(
                              "t", "float32", "[40,50]") ",{'name':'p','op':'exp','inputs':['y']," OUT("q", "float32",
                                                                                                       "[7,9]") "],'outputs':['t','q']",
                      2, false);
}

Test(schedule_build, refusals) {
        expect_unfit(GATHER_OF("[9,5]") "'nodes':[" ABS("x", "a", "[9,5]") "," GATHER("a", "0", "t", "[4,5]") "],'outputs':['t']",
                     "a gather from what its kernel computes");
        expect_unfit(
                TWO("[8,9]", "[8,4]") "'nodes':[" CONCAT("'x','y'", "1", "c", "[8,13]") "," ABS("c", "t", "[8,13]") "],'outputs':['t']",
                "a concatenation that its own kernel reads");
}

static uint32_t count_stmts(const struct af_phase *p, enum af_kstmt_kind kind) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < p->n_stmts; i++)
                n += p->stmts[i].kind == kind;
        return n;
}

/* Pieces of one shape go through one tile loop, pieces of different shapes through one after another; nobody meets. */
Test(schedule_build, pieces_of_a_concatenation_are_stores) {
        struct built b;
        build_text(&b, TWO("[8,9]", "[8,9]") "'nodes':[" ABS("x", "a", "[8,9]") "," CONCAT("'a','y','a'", "1", "t",
                                                                                           "[8,27]") "],'outputs':['t']");
        cr_assert_eq(b.r, 0, "%s", b.why);
        cr_expect_eq(b.k->n_phases, 1);
        cr_expect_eq(count_stmts(&b.k->phases[0], AF_KSTMT_LOAD), 2);
        cr_expect_eq(count_stmts(&b.k->phases[0], AF_KSTMT_STORE), 3);
        cr_expect_eq(b.k->n_args, 3);
        af_test_graph_deinit(&b.t);
        build_text(&b,
                   TWO("[8,9]", "[8,4]") "'nodes':[" ABS("x", "a", "[8,9]") "," CONCAT("'a','y'", "1", "t", "[8,13]") "],'outputs':['t']");
        cr_assert_eq(b.r, 0, "%s", b.why);
        cr_expect_eq(b.k->n_phases, 2);
        cr_expect_not(b.k->needs_sync_all);
        af_test_graph_deinit(&b.t);
}

static const struct af_kstmt *find_stmt(const struct af_phase *p, enum af_kstmt_kind kind) {
        for (uint32_t i = 0; i < p->n_stmts; i++)
                if (p->stmts[i].kind == kind)
                        return &p->stmts[i];
        return NULL;
}

Test(schedule_build, a_gather_fetches_by_an_index_in_the_tile) {
        struct built b;
        build_text(&b, GATHER_OF("[9,5]") "'nodes':[" GATHER("x", "0", "a", "[4,5]") "," ABS("a", "t", "[4,5]") "],'outputs':['t']");
        cr_assert_eq(b.r, 0, "%s", b.why);
        const struct af_kstmt *s = find_stmt(&b.k->phases[0], AF_KSTMT_FETCH);
        cr_assert_not_null(s);
        cr_expect(s->pick.runs);
        cr_expect_eq(s->pick.stride, 5);
        cr_expect_eq(s->pick.extent, 9);
        af_test_graph_deinit(&b.t);
        build_text(&b, GATHER_OF("[9,5]") "'nodes':[" GATHER("x", "1", "t", "[9,4]") "],'outputs':['t']");
        cr_assert_eq(b.r, 0, "%s", b.why);
        s = find_stmt(&b.k->phases[0], AF_KSTMT_FETCH);
        cr_assert_not_null(s);
        cr_expect_not(s->pick.runs); /* along the columns every element has an index of its own */
        af_test_graph_deinit(&b.t);
}

#define MANY(n, rows)                                                                                                                      \
        "'inputs':[{'name':'x','dtype':'float32','shape':[" rows ",512]},{'name':'i','dtype':'int32','shape':[" n "]}],'nodes':["          \
        "{'name':'tn','op':'gather','inputs':['x','i'],'attrs':{'axis':0}," OUT("t", "float32", "[" n ",512]") "],'outputs':['t']"

Test(schedule_build, rows_that_repeat_come_in_the_order_of_their_index) {
        struct built b;
        build_text(&b, MANY("4096", "1000"));
        cr_assert_eq(b.r, 0, "%s", b.why);
        cr_assert_eq(b.k->n_phases, 3);
        cr_expect_eq(b.k->phases[0].kind, AF_PHASE_BIN);
        cr_expect_eq(b.k->phases[1].kind, AF_PHASE_GROUP);
        cr_expect(b.k->needs_sync_all);
        const struct af_bins *bins = &b.k->phases[1].bins;
        cr_expect_eq(bins->n, 4096);
        cr_expect_eq(bins->extent, 1000);
        cr_expect_geq(bins->bins * (bins->words - 1), (4096 + bins->sources - 1) / bins->sources); /* a slice fits, whatever is in it */
        const struct af_kstmt *s = find_stmt(&b.k->phases[2], AF_KSTMT_FETCH), *store = find_stmt(&b.k->phases[2], AF_KSTMT_STORE);
        cr_assert(s && store);
        cr_expect(s->pick.once);
        cr_expect(s->pick.distinct > 980 && s->pick.distinct < 985, "%g", s->pick.distinct);
        cr_expect_eq(store->src[1], s->src[0]);
        uint64_t once = b.k->hbm_bytes;
        cr_expect(once < 4096 * 2048 + 1400 * 2048, "%llu", (unsigned long long)once); /* a third of what every index would read */
        af_test_graph_deinit(&b.t);
}

Test(schedule_build, rows_that_hardly_repeat_come_as_they_are) {
        struct built b;
        build_text(&b, MANY("4096", "3000000"));
        cr_assert_eq(b.r, 0, "%s", b.why);
        cr_expect_eq(b.k->n_phases, 1);
        const struct af_kstmt *s = find_stmt(&b.k->phases[0], AF_KSTMT_FETCH);
        cr_assert_not_null(s);
        cr_expect(s->pick.queued);
        cr_expect_not(s->pick.once);
        af_test_graph_deinit(&b.t);
}

#define IN_PLACE "'outputs':[{'value':'t','alias_of':'x'}]"
/* Casts between float32 and a 16-bit float: to it, and from it. */
static void count_casts(const struct af_kernel *k, enum af_dtype d, unsigned *ret_to, unsigned *ret_from) {
        *ret_to = *ret_from = 0;
        for (uint32_t p = 0; p < k->n_phases; p++)
                for (uint32_t i = 0; i < k->phases[p].n_stmts; i++) {
                        const struct af_kstmt *s = &k->phases[p].stmts[i];
                        if (s->kind != AF_KSTMT_PRIM || s->ins.prim != AF_PRIM_CAST)
                                continue;
                        *ret_to += s->ins.to == d;
                        *ret_from += s->ins.dtype == d;
                }
}

/* Nodes first(x, y), second(that, y), third(that, x) on 16-bit floats. */
static void expect_casts(const char *numerics, const char *dtype, const char *const ops[3], unsigned to, unsigned from) {
        char text[1200];
        struct built b;
        unsigned n_to, n_from;
        snprintf(text, sizeof(text),
                 "'numerics': '%s', 'inputs': [{'name': 'x', 'dtype': '%s', 'shape': [64, 50]}, {'name': 'y', 'dtype': '%s', 'shape': [64, "
                 "50]}], "
                 "'nodes': [{'name': 'a', 'op': '%s', 'inputs': ['x', 'y'], 'outputs': [{'name': 's', 'dtype': '%s', 'shape': [64, 50]}]}, "
                 "{'name': 'b', 'op': '%s', 'inputs': ['s', 'y'], 'outputs': [{'name': 't', 'dtype': '%s', 'shape': [64, 50]}]}, "
                 "{'name': 'c', 'op': '%s', 'inputs': ['t', 'x'], 'outputs': [{'name': 'u', 'dtype': '%s', 'shape': [64, 50]}]}], "
                 "'outputs': ['u']",
                 numerics, dtype, dtype, ops[0], dtype, ops[1], dtype, ops[2], dtype);
        build_text(&b, text);
        cr_assert_eq(b.r, 0, "%s", b.why);
        count_casts(b.k, af_dtype_from_name(dtype), &n_to, &n_from);
        cr_expect(n_to == to && n_from == from, "%s %s %s: %u casts to, %u from", numerics, dtype, ops[0], n_to, n_from);
        af_test_graph_deinit(&b.t);
}

/* fast: what is computed in float32 stays so from node to node; float16 calls stay float16. */
Test(schedule_build, fast_chains_stay_in_float32) {
        static const char *const plain[3] = {"add", "mul", "sub"}, *const heavy[3] = {"atan2", "hypot", "pow"},
                                 *const mixed[3] = {"atan2", "mul", "pow"};
        expect_casts("strict", "bfloat16", plain, 3, 6);
        expect_casts("fast", "bfloat16", plain, 1, 4);
        expect_casts("strict", "float16", plain, 0, 0);
        expect_casts("fast", "float16", plain, 0, 0);
        expect_casts("strict", "float16", heavy, 3, 6);
        expect_casts("fast", "float16", heavy, 1, 4);
        expect_casts("fast", "float16", mixed, 2, 4);
}

Test(schedule_build, in_place) {
        struct built b;
        build_text(&b, X("[8,9]") "'nodes':[{'name':'n','op':'exp','inputs':['x']," OUT("t", "float32", "[8,9]") "]," IN_PLACE);
        cr_expect_eq(b.r, 0, "%s", b.why);
        af_test_graph_deinit(&b.t);
        expect_unfit("'inputs':[{'name':'x','dtype':'float32','shape':[8,9],'buffer':'b'},{'name':'row','dtype':'float32','shape':[1,9],'"
                     "buffer':'b'}],"
                     "'nodes':[{'name':'n','op':'add','inputs':['x','row']," OUT("t", "float32", "[8,9]") "]," IN_PLACE,
                     "an input that is updated in place is read by other tiles too");
}

/* Rows longer than UB, many live values, very many rows or columns: retiled, never refused. */
Test(schedule_build, no_shape_is_refused_for_size) {
        static const char *const shapes[] = {"[1,100000000]", "[100000000,1]", "[3,70000000]",
                                             "[70000000,3]",  "[12,24576]",    "[1000,1000,100]"};
        for (size_t i = 0; i < AF_ARRAY_SIZE(shapes); i++) {
                char text[2000], last[64];
                bool cube = strchr(strchr(shapes[i], ',') + 1, ',') != NULL;
                struct built b;
                snprintf(last, sizeof(last), "%s", cube ? "[1000,1000]" : "");
                if (!cube)
                        snprintf(last, sizeof(last), "%.*s]", (int)strcspn(shapes[i], ","), shapes[i]);
                snprintf(text, sizeof(text),
                         "'inputs':[{'name':'x','dtype':'float32','shape':%s}],'nodes':[{'name':'a','op':'exp','inputs':['x'],"
                         "'outputs':[{'name':'y','dtype':'float32','shape':%s}]},{'name':'r','op':'reduce_sum','inputs':['y'],'attrs':{'"
                         "axes':[%d],'keepdims':false},"
                         "'outputs':[{'name':'t','dtype':'float32','shape':%s}]}],'outputs':['t']",
                         shapes[i], shapes[i], cube ? 2 : 1, last);
                build_text(&b, text);
                cr_expect_eq(b.r, 0, "%s: %s", shapes[i], b.why);
                af_test_graph_deinit(&b.t);
        }
}

Test(schedule_build, twelve_live_rows) {
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        struct built b;
        af_buf_put_str(&text, "'inputs':[");
        for (int i = 0; i < 12; i++)
                af_buf_printf(&text, "%s{'name':'x%d','dtype':'float32','shape':[24,24576]}", i ? "," : "", i);
        af_buf_put_str(&text, "],'nodes':[");
        for (int i = 0; i < 12; i++)
                af_buf_printf(&text, "{'name':'e%d','op':'exp','inputs':['x%d']," OUT("y%d", "float32", "[24,24576]") ",", i, i, i);
        for (int i = 1; i < 12; i++)
                af_buf_printf(&text, "%s{'name':'a%d','op':'add','inputs':['%s%d','y%d']," OUT("s%d", "float32", "[24,24576]"),
                              i > 1 ? "," : "", i, i > 1 ? "s" : "y", i - 1, i, i);
        af_buf_put_str(&text, "],'outputs':['s11']");
        af_buf_put_u8(&text, 0);
        build_text(&b, (const char *)text.data);
        cr_expect_eq(b.r, 0, "%s", b.why);
        cr_expect_eq(b.k->n_args, 13);
        af_test_graph_deinit(&b.t);
}

/* A chain of n operations. */
static double chain_seconds(uint32_t n) {
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        struct built b = {0};
        uint64_t begin;
        double s;
        af_buf_put_str(&text, "'inputs':[{'name':'t0','dtype':'float32','shape':[4096]}],'nodes':[");
        for (uint32_t i = 0; i < n; i++)
                af_buf_printf(&text, "%s{'name':'n%u','op':'%s','inputs':['t%u']," OUT("t%u", "float32", "[4096]"), i ? "," : "", i,
                              i % 2 ? "neg" : "abs", i, i + 1);
        af_buf_printf(&text, "],'outputs':['t%u']", n);
        af_buf_put_u8(&text, 0);
        af_test_graph_make(&b.t, (const char *)text.data);
        begin = af_clock_cpu_ns();
        build(&b);
        s = (double)(af_clock_cpu_ns() - begin) * 1e-9;
        cr_assert_eq(b.r, 0, "%s", b.why);
        af_test_graph_deinit(&b.t);
        return s;
}

Test(schedule_build, near_linear_in_nodes) {
        chain_seconds(250);
        double small = chain_seconds(250), large = chain_seconds(2000);
        cr_expect_lt(large, 8 * 6 * (small + 0.002), "250 nodes: %g s, 2000 nodes: %g s", small, large);
}

Test(schedule_build, same_input_same_tree) {
        AF_CLEANUP(af_buf_deinit) struct af_buf a = AF_BUF_INIT;
        AF_CLEANUP(af_buf_deinit) struct af_buf z = AF_BUF_INIT;
        for (int i = 0; i < 2; i++) {
                struct built b;
                build_file(&b, "torch_mul_reducesum");
                af_kernel_print(b.k, i ? &z : &a);
                af_test_graph_deinit(&b.t);
        }
        cr_assert_eq(a.size, z.size);
        cr_assert_eq(memcmp(a.data, z.data, a.size), 0);
}
