/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions of large graphs, and of random ones. */
#include "tests/unit/fusion/fuse_test.h"

TestSuite(scale, .init = fuse_setup, .fini = fuse_teardown);

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
        cr_assert_eq(af_fuse(&b->g, &rules, s, &(struct af_fuse_ask){fake_fusable, fake, NULL}, &f), 0);
        uint64_t us = af_clock_now_us() - start;
        cr_log_info("%s: %u nodes, %u groups, %llu us, schedule asked %llu times about %llu nodes", label, b->g.n_nodes, f.n_groups,
                    (unsigned long long)us, (unsigned long long)fake->n_calls, (unsigned long long)fake->n_nodes_seen);
        cr_expect_lt(us, 2000000); /* a tenth is usual; room for sanitizers and busy machines */
        af_diags_deinit(&diags);
        return f;
}

Test(scale, C32_long_chain) {
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

Test(scale, long_chain_with_a_schedule_that_holds_less) {
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

Test(scale, C32_fibonacci) {
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

Test(scale, C32_many_readers_of_one_value) {
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

Test(scale, a_layered_mesh) {
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
Test(scale, random_graphs_keep_the_invariants) {
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
                cr_assert_eq(af_fuse(&g, &rules, &s, &(struct af_fuse_ask){fake_fusable, &fake, NULL}, &f), 0);
                check_partition(&g, &f, &s);
                n_groups += f.n_groups;
                n_nodes += g.n_nodes;
                af_diags_deinit(&diags);
                af_arena_deinit(&arena);
        }
        cr_log_info("%llu graphs, %llu nodes, %llu groups", (unsigned long long)n, (unsigned long long)n_nodes,
                    (unsigned long long)n_groups);
}
