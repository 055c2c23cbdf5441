/* SPDX-License-Identifier: Apache-2.0 */
/* The search for tiles against every tile of whole 32-byte blocks, on kernels small enough for that. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/fragment_text.h"
#include "tests/lib/kernel_group.h"

#define X(shape) "'inputs':[{'name':'x','dtype':'float32','shape':" shape "}"
#define NODE(op, in, attrs, out, shape)                                                                                                    \
        "{'name':'" out "n','op':'" op "','inputs':[" in "]," attrs "'outputs':[{'name':'" out "','dtype':'float32','shape':" shape "}]}"
#define OVER(axes, keep) "'attrs':{'axes':" axes ",'keepdims':" keep "},"
#define FLAT(n)                                                                                                                            \
        X("[" n "]")                                                                                                                       \
        "],'nodes':[" NODE("exp", "'x'", "", "t", "[" n "]") "," NODE("add", "'t','x'", "", "u", "[" n "]") "],'outputs':['"               \
                                                                                                            "u']"
#define BIAS(r, c)                                                                                                                         \
        X("[" r "," c "]")                                                                                                                 \
        ",{'name':'b','dtype':'float32','shape':[" c "]}],'nodes':[" NODE("add", "'x','b'", "", "u", "[" r "," c "]") "],'outputs':['u']"
#define SUM(r, c, axis, out)                                                                                                               \
        X("[" r "," c "]")                                                                                                                 \
        "],'nodes':[" NODE("abs", "'x'", "", "t", "[" r "," c "]") "," NODE("reduce_sum", "'t'", OVER("[" axis "]", "false"), "u",         \
                                                                            "[" out "]") "],'outputs':['u']"
#define SHARE(r, c) /* of the row's sum */                                                                                                 \
        X("[" r "," c "]")                                                                                                                 \
        "],'nodes':[" NODE("exp", "'x'", "", "t", "[" r "," c "]") "," NODE("reduce_sum", "'t'", OVER("[1]", "true"), "s",                 \
                                                                            "[" r ",1]") "," NODE("div", "'t','s'", "", "u",               \
                                                                                                  "[" r "," c "]") "],'outputs':['u']"

static const struct {
        const char *name, *text;
} cases[] = {
        {"flat 1000", FLAT("1000")},
        {"flat 65536", FLAT("65536")},
        {"flat 1000003", FLAT("1000003")},
        {"flat 4194304", FLAT("4194304")},
        {"bias 256 x 100", BIAS("256", "100")},
        {"bias 500 x 333", BIAS("500", "333")},
        {"bias 32 x 20000", BIAS("32", "20000")},
        {"row sums 4096 x 1024", SUM("4096", "1024", "1", "4096")},
        {"row sums 65536 x 17", SUM("65536", "17", "1", "65536")},
        {"row sums 3 x 100000", SUM("3", "100000", "1", "3")},
        {"column sums 4096 x 1024", SUM("4096", "1024", "0", "1024")},
        {"column sums 1000 x 40", SUM("1000", "40", "0", "40")},
        {"shares 512 x 300", SHARE("512", "300")},
        {"shares 4096 x 1024", SHARE("4096", "1024")},
};

struct built {
        struct af_test_graph t;
        struct af_soc soc;
        struct kernel_users users;
        struct af_group group;
        struct af_kernel *chosen, *best;
};

static void build(struct built *b, const char *text) {
        const char *why = "";
        *b = (struct built){0};
        af_test_graph_make(&b->t, text);
        af_test_diags_print(&b->t.diags);
        cr_assert_eq(b->t.r, 0);
        const struct af_graph *g = &b->t.graph;
        uint32_t *nodes = af_arena_calloc(g->arena, g->n_nodes, sizeof(*nodes));
        for (uint32_t i = 0; i < g->n_nodes; i++)
                nodes[i] = i;
        kernel_soc(&b->soc);
        cr_assert_eq(af_graph_users(g, &b->users.first, &b->users.list), 0);
        cr_assert_eq(kernel_group_make(g, &b->users, nodes, g->n_nodes, &b->group), 0);
        AF_CLEANUP(af_arena_deinit) struct af_arena scratch = {0};
        cr_assert_eq(af_schedule_build(&scratch, g, &b->group, &b->soc, &b->chosen, &why), 0, "%s", why);
        cr_assert_eq(af_schedule_build_exhaustive(&scratch, g, &b->group, &b->soc, &b->best, &why), 0, "%s", why);
}

Test(schedule_tiles, search_is_near_the_best, .timeout = 120) {
        unsigned near = 0;
        for (size_t i = 0; i < AF_ARRAY_SIZE(cases); i++) {
                struct built b;
                build(&b, cases[i].text);
                double ratio = (double)b.chosen->modelled_cycles / (double)b.best->modelled_cycles;
                near += ratio <= 1.03;
                cr_expect_leq(ratio, 1.1, "%s: %.3f times the best tile's cycles", cases[i].name, ratio);
                af_test_graph_deinit(&b.t);
        }
        cr_assert_geq(100 * near, 95 * AF_ARRAY_SIZE(cases) - 100, "%u of %zu within 3%%", near, AF_ARRAY_SIZE(cases));
}

/* What the search goes by is what the kernel then takes, to a few per cent. */
Test(schedule_tiles, quick_figures_are_near_the_exact_ones) {
        for (size_t i = 0; i < AF_ARRAY_SIZE(cases); i++) {
                struct built b;
                uint64_t quick = 0;
                build(&b, cases[i].text);
                for (uint32_t p = 0; p < b.chosen->n_phases; p++)
                        quick += b.chosen->phases[p].cycles + (b.chosen->phases[p].sync_before ? (uint64_t)b.soc.sync_all_cycles : 0);
                double ratio = (double)quick / (double)b.chosen->modelled_cycles;
                cr_expect(ratio > .9 && ratio < 1.1, "%s: %.3f", cases[i].name, ratio);
                af_test_graph_deinit(&b.t);
        }
}

/* A large kernel is bound by one of its pipes, and sums over the first axis move little beside their input. */
Test(schedule_tiles, large_kernels_are_bound_by_a_pipe) {
        static const size_t large[] = {3, 7, 10, 13};
        for (size_t i = 0; i < AF_ARRAY_SIZE(large); i++) {
                struct built b;
                build(&b, cases[large[i]].text);
                uint64_t pipe = AF_MAX(b.chosen->mte2_cycles, AF_MAX(b.chosen->v_cycles, b.chosen->mte3_cycles));
                cr_expect_leq((double)b.chosen->modelled_cycles, 1.25 * (double)pipe, "%s", cases[large[i]].name);
                if (large[i] == 10)
                        cr_expect_leq((double)b.chosen->hbm_bytes, 1.02 * (4096 * 1024 + 1024) * 4);
                af_test_graph_deinit(&b.t);
        }
}
