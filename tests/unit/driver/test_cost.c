/* SPDX-License-Identifier: Apache-2.0 */
/* Fusing never makes it worse: of random fragments, fused kernels are no more and move no more than one kernel per node. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/driver/driver.h"
#include "compiler/graph/canon.h"
#include "compiler/graph/traffic.h"
#include "tests/lib/random_graph.h"

struct cost {
        uint64_t bytes, cycles;
        uint32_t launches, fallbacks;
};

static struct cost cost_of(const struct af_env *env, const struct af_buf *canon, bool no_fuse) {
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        struct af_driver_opts opts = {.no_fuse = no_fuse};
        struct af_driver_view v;
        struct af_diags diags = {0};
        struct cost c = {0};
        af_arena_init(&arena, 0);
        cr_assert_eq(af_driver_view(env, &arena, canon->data, canon->size, &opts, &v, &diags), 0);
        c.launches = v.fusion.n_groups;
        for (uint32_t i = 0; i < v.fusion.n_groups; i++) {
                c.bytes += v.kernels[i].kernel->hbm_bytes;
                c.cycles += v.kernels[i].kernel->modelled_cycles;
        }
        for (uint32_t n = 0; n < v.graph.n_nodes; n++)
                c.fallbacks += v.fusion.fallback[n] != NULL;
        af_diags_deinit(&diags);
        return c;
}

Test(cost, random_fragments_move_no_more_and_launch_no_more_than_unfused) {
        const char *seed_text = getenv("AF_TEST_SEED");
        uint64_t first = seed_text ? strtoull(seed_text, NULL, 0) : 1, n = seed_text ? 1 : 200, n_worse = 0;
        struct cost all = {0}, all_unfused = {0};
        struct af_env_config config = {0};
        struct af_diags diags = {0};
        struct af_arena env_arena;
        struct af_env env;
        af_arena_init(&env_arena, 0);
        cr_assert_eq(af_env_load(&env, &env_arena, &config, NULL, NULL, AF_TWIN_DEFAULT, &diags), 0);
        for (uint64_t seed = first; seed < first + n; seed++) {
                AF_CLEANUP(af_arena_deinit) struct af_arena arena;
                AF_CLEANUP(af_buf_deinit) struct af_buf canon = AF_BUF_INIT;
                struct af_random_opts opts = {.n_nodes = seed % 3 == 0 ? 40 : 0, .in_place = true, .max_elements = seed % 2 ? 400000 : 0};
                struct af_fragment fragment;
                struct af_graph g;
                af_arena_init(&arena, 0);
                cr_assert_eq(af_random_fragment(&fragment, &arena, seed, &opts), 0);
                cr_assert_eq(af_graph_from_fragment(&g, &fragment, &diags), 0);
                cr_assert_eq(af_canon_write(&g, &canon, NULL), 0);
                struct cost fused = cost_of(&env, &canon, false), unfused = cost_of(&env, &canon, true);
                cr_expect_leq(fused.launches, unfused.launches, "seed %llu", (unsigned long long)seed);
                cr_expect_eq(fused.fallbacks, unfused.fallbacks, "seed %llu", (unsigned long long)seed);
                if (fused.bytes > unfused.bytes) {
                        n_worse++;
                        cr_log_warn("seed %llu: %u launches move %llu bytes, %u move %llu", (unsigned long long)seed, fused.launches,
                                    (unsigned long long)fused.bytes, unfused.launches, (unsigned long long)unfused.bytes);
                }
                all.bytes += fused.bytes;
                all.launches += fused.launches;
                all.cycles += fused.cycles;
                all_unfused.bytes += unfused.bytes;
                all_unfused.launches += unfused.launches;
                all_unfused.cycles += unfused.cycles;
        }
        cr_log_info("fused %u launches, %llu bytes, %llu cycles; unfused %u, %llu, %llu", all.launches, (unsigned long long)all.bytes,
                    (unsigned long long)all.cycles, all_unfused.launches, (unsigned long long)all_unfused.bytes,
                    (unsigned long long)all_unfused.cycles);
        cr_expect_eq(n_worse, 0);
        af_diags_deinit(&diags);
        af_arena_deinit(&env_arena);
}
