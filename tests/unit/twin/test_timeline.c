/* SPDX-License-Identifier: Apache-2.0 */
/* The checked twin's timeline on kernels whose time can be worked out by hand. */
#include <math.h>

#include "compiler/driver/env.h"
#include "tests/unit/twin/kernel_case.h"

struct turns {
        uint32_t n, tile, buffers, calls;
};

static struct af_soc soc;
static double max(double a, double b) {
        return a > b ? a : b;
}
static double dma(const struct af_dma_cost *c, double bytes, double blocks) {
        return bytes / (c->a + c->b / blocks) + c->h;
}
static double load(double bytes, double blocks) {
        return dma(bytes < soc.small_bytes ? &soc.load_small : &soc.load, bytes, blocks);
}
static double head_load(double bytes, double blocks) {
        return bytes < soc.head_mte2_small_bytes ? soc.head_mte2_small_base + soc.head_mte2_small_per_block * blocks
                                                 : soc.head_mte2_base + soc.head_mte2_per_block * blocks;
}
static void setup(void) {
        char dir[4096];
        snprintf(dir, sizeof(dir), "%s/rules/soc", source_root());
        cr_assert_eq(af_soc_load(dir, "Ascend910B2", &soc, NULL, NULL), 0);
}

static struct af_twin_stats run(const char *symbol, const struct turns *t, uint32_t blocks, bool count_only) {
        struct af_host_kernel *k = kernel_build("timeline.cpp", symbol, AF_TWIN_CHECKED);
        struct af_twin_stats stats = {0};
        char error[512] = "";
        uint64_t bytes = 8u * 4u * t->tile * blocks * (t->n + 1);
        void *in = count_only ? NULL : calloc(1, bytes), *out = count_only ? NULL : calloc(1, bytes), *args[2] = {in, out};
        struct af_twin_launch l = {.args = args,
                                   .n_args = 2,
                                   .tiling = t,
                                   .block_dim = blocks,
                                   .n_blocks = blocks,
                                   .count_only = count_only,
                                   .stats = &stats,
                                   .error = error,
                                   .error_size = sizeof(error)};
        cr_assert_eq(af_host_kernel_launch(k, &l), 0, "%s", error);
        af_host_kernel_free(k);
        free(in);
        free(out);
        return stats;
}
static struct af_twin_stats count(const char *symbol, const struct turns *t, uint32_t blocks) {
        return run(symbol, t, blocks, true);
}

static void expect(uint64_t got, double want, const char *what) {
        cr_assert(fabs((double)got - want) <= 1, "%s: %llu cycles, %.1f worked out", what, (unsigned long long)got, want);
}

/* Turns of load, compute and store by the definition: a pipe starts when it is free and what it waits for is there. */
static void check_turns(const struct turns *t) {
        double bytes = 4.0 * t->tile, l = load(bytes, 1), s = dma(&soc.store, bytes, 1);
        double v = t->calls * (soc.vec_unary_f32.k * t->tile + soc.vec_unary_f32.c), heads = 0, now[3] = {0}, in_free[2] = {0},
               out_free[2] = {0};
        for (uint32_t i = 0; i < t->n; i++) {
                double *in = &in_free[i % t->buffers], *out = &out_free[i % t->buffers], grown = head_load(bytes * (i + 1), 1) - heads;
                heads += grown;
                now[0] = max(now[0], *in) + l + grown;
                now[1] = max(max(now[1], now[0]), *out) + v + (i ? 0 : soc.head_vector);
                *in = now[1];
                now[2] = max(now[2], now[1]) + s + (i ? 0 : soc.head_mte3);
                *out = now[2];
        }
        struct af_twin_stats stats = count("turns", t, 1);
        expect(stats.total_cycles, now[2], "total");
        expect(stats.mte2_cycles, t->n * l + head_load(bytes * t->n, 1), "MTE2");
        expect(stats.v_cycles, t->n * v + soc.head_vector, "V");
        expect(stats.mte3_cycles, t->n * s + soc.head_mte3, "MTE3");
}

Test(timeline, two_buffers_hide_the_shorter_pipes, .init = setup) {
        struct turns loads = {100, 4096, 2, 1}, computes = {100, 4096, 2, 40}, big = {20, 8192, 2, 3};
        double v = 40 * (soc.vec_unary_f32.k * 4096 + soc.vec_unary_f32.c), l = load(4 * 4096, 1), s = dma(&soc.store, 4 * 4096, 1);
        struct af_twin_stats stats = count("turns", &computes, 1);
        expect(stats.total_cycles, head_load(4 * 4096, 1) + l + soc.head_vector + 100 * v + s, "bound by V");
        stats = count("turns", &loads, 1);
        cr_assert_lt((double)stats.total_cycles, 1.05 * max((double)stats.mte2_cycles, (double)stats.mte3_cycles));
        check_turns(&loads);
        check_turns(&computes);
        check_turns(&big);
}

Test(timeline, one_buffer_hides_only_loads_behind_stores, .init = setup) {
        struct turns t = {50, 4096, 1, 4};
        double l = load(4 * 4096, 1), s = dma(&soc.store, 4 * 4096, 1), v = 4 * (soc.vec_unary_f32.k * 4096 + soc.vec_unary_f32.c);
        struct af_twin_stats stats = count("turns", &t, 1);
        cr_assert_gt((double)stats.total_cycles, 50 * (v + max(l, s)));
        check_turns(&t);
}

Test(timeline, the_longest_block_counts_and_all_go_on_from_a_meeting_at_once, .init = setup) {
        struct turns t = {0, 1024, 2, 2};
        double bytes = 4096, blocks = 3, l = load(bytes, blocks), s = dma(&soc.store, bytes, blocks),
               v = 2 * (soc.vec_unary_f32.k * 1024 + soc.vec_unary_f32.c);
        struct af_twin_stats stats = count("meeting", &t, 3);
        /* the last block: three turns bound by its stores, which start once its first turn is through */
        double first = head_load(bytes, blocks) + l + soc.head_vector + v + soc.head_mte3 + 3 * s;
        expect(stats.total_cycles, first + soc.sync_all_cycles + l + v + s, "total");
        expect(stats.mte2_cycles, head_load(bytes, blocks) + 4 * l, "MTE2");
        cr_assert_eq(stats.mte2_bytes, (1 + 2 + 3 + 3) * 4096);
}

Test(timeline, scalar_code_waits_and_what_it_issues_waits_with_it, .init = setup) {
        struct turns t = {1, 2048, 2, 0};
        double fill = soc.vec_unary_f32.k * 2048 + soc.vec_unary_f32.c;
        struct af_twin_stats stats = run("scalar", &t, 1, false);
        expect(stats.v_cycles, soc.head_vector + 2 * fill, "V");
        expect(stats.s_cycles, 2, "S");
        /* read when the first call is over; the load starts after that */
        expect(stats.total_cycles, soc.head_vector + fill + 2 + head_load(8192, 1) + load(8192, 1) + fill, "total");
}

/* The schedule's figures and the twin's are the same ones. */
Test(timeline, figures_are_those_of_the_soc, .init = setup) {
        static const char text[] =
                "#include \"kernel_operator.h\"\nusing namespace AscendC;\nusing namespace AscendC::chk;\n"
                "extern \"C\" __global__ __aicore__ void k(GM_ADDR a) {\n"
                "        const double v[] = {LOAD.a, LOAD.b, LOAD.h, LOAD_SMALL.a, LOAD_SMALL.b, LOAD_SMALL.h, STORE.a,\n"
                "                STORE.b, STORE.h, SMALL_BYTES, VEC_F32.k, VEC_F32.c, VEC_F16.k, VEC_F16.c, UNARY_F32.k,\n"
                "                UNARY_F32.c, UNARY_F16.k, UNARY_F16.c, WIDE.k, WIDE.c, CAST_U8_F16.k, CAST_U8_F16.c,\n"
                "                CAST_F32_F16.k, CAST_F32_F16.c, HEAD_V, HEAD_MTE3, head_mte2(0, 0), head_mte2(0, 1),\n"
                "                head_mte2(SMALL_BYTES, 0), head_mte2(SMALL_BYTES, 1), SYNC_ALL};\n"
                "        memcpy(a, v, sizeof(v));\n}\n";
        struct af_host_kernel *k = kernel_build_text("k", text, AF_TWIN_CHECKED, NULL);
        const double want[31] = {soc.load.a,
                                 soc.load.b,
                                 soc.load.h,
                                 soc.load_small.a,
                                 soc.load_small.b,
                                 soc.load_small.h,
                                 soc.store.a,
                                 soc.store.b,
                                 soc.store.h,
                                 soc.small_bytes,
                                 soc.vec_default_f32.k,
                                 soc.vec_default_f32.c,
                                 soc.vec_default_f16.k,
                                 soc.vec_default_f16.c,
                                 soc.vec_unary_f32.k,
                                 soc.vec_unary_f32.c,
                                 soc.vec_unary_f16.k,
                                 soc.vec_unary_f16.c,
                                 soc.vec_wide.k,
                                 soc.vec_wide.c,
                                 soc.vec_u8_f16.k,
                                 soc.vec_u8_f16.c,
                                 soc.vec_f32_f16.k,
                                 soc.vec_f32_f16.c,
                                 soc.head_vector,
                                 soc.head_mte3,
                                 head_load(0, 0),
                                 head_load(0, 1),
                                 head_load(25000, 0),
                                 head_load(25000, 1),
                                 soc.sync_all_cycles};
        double got[31];
        void *args[] = {got};
        cr_assert_eq(kernel_run(k, args, NULL, 1, NULL, 1, NULL, NULL), 0);
        for (unsigned i = 0; i < 31; i++)
                cr_assert_eq(got[i], want[i], "figure %u: %g in the twin, %g in rules/soc", i, got[i], want[i]);
        af_host_kernel_free(k);
}
