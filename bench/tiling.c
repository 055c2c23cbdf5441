/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for tiles against trying every tile: each kernel of the fragments is scheduled both ways; both are compiled for the checked
 * twin, whose timeline must be the one that the schedule states. Prints one JSON object per line.
 *
 *   bench_tiling [--rows] [--trees] [--no-twin] FRAGMENT.json…
 *
 * tiling_vs_exhaustive_p95: cycles over the best ones, the 95th of 100 kernels. tiling_over_pipe_bound_max: cycles over those of the
 * busiest of MTE2, V and MTE3 alone, the worst fragment of those with an input or output of at least 4,000,000 elements.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/io.h"
#include "compiler/driver/driver.h"
#include "tests/lib/batch.h"

#define LARGE       4000000 /* elements */
#define MAX_ENTRIES 1024
#define TURNS       5 /* the fastest of them */

struct side { /* one schedule of a kernel */
        uint64_t cycles, bytes, pipe;
        char *symbol;
        uint32_t block_dim, n_args;
        bool by_index;
        double ms;
};
struct entry {
        char *name;
        struct side chosen, best;
        bool large;
};
struct bench {
        struct af_env env;
        struct batch batch;
        struct entry entries[MAX_ENTRIES];
        uint32_t n;
        bool rows, trees, no_twin;
        int bad;
};

/* Codegen as the driver does it; the kernel waits in the batch. */
static int add_source(struct bench *b, const struct af_kernel *k, struct side *side) {
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        AF_CLEANUP(af_buf_deinit) struct af_buf symbol = AF_BUF_INIT;
        AF_CLEANUP(af_buf_deinit) struct af_buf source = AF_BUF_INIT;
        struct af_digest key;
        struct af_tiling tiling;
        struct af_diags diags = {0};
        int r = af_codegen_emit(k, &b->env.templates, &text, &tiling, &diags);
        af_diags_deinit(&diags);
        if (r)
                return r;
        af_key_kernel(text.data, text.size, &b->env.toolchain.closure_digest, b->env.toolchain.flags, &key);
        af_codegen_symbol(k, &key, &symbol);
        af_buf_put_u8(&symbol, 0);
        af_codegen_instantiate(text.data, text.size, (const char *)symbol.data, &source);
        if (af_buf_error(&symbol) || af_buf_error(&source))
                return -ENOMEM;
        side->symbol = strdup((const char *)symbol.data);
        return side->symbol && !b->no_twin ? batch_add(&b->batch, side->symbol, source.data, (uint32_t)source.size)
               : side->symbol              ? 0
                                           : -ENOMEM;
}

static int fill(struct bench *b, const struct af_kernel *k, struct side *side) {
        AF_CLEANUP(af_buf_deinit) struct af_buf tree = AF_BUF_INIT;
        if (b->trees)
                af_kernel_print(k, &tree);
        for (uint32_t i = 0; b->trees && i < k->n_phases; i++)
                af_buf_printf(&tree, "# phase %u by itself, about %llu cycles on %u cores\n", i, (unsigned long long)k->phases[i].cycles,
                              k->phases[i].blocks);
        printf("%.*s", (int)tree.size, tree.data ? (const char *)tree.data : "");
        side->cycles = k->modelled_cycles;
        side->bytes = k->hbm_bytes;
        side->pipe = AF_MAX(k->mte2_cycles, AF_MAX(k->v_cycles, k->mte3_cycles));
        for (uint32_t i = 0; i < k->n_phases; i++)
                side->by_index |= k->phases[i].kind != AF_PHASE_TILES;
        side->block_dim = k->block_dim;
        side->n_args = k->n_args;
        return add_source(b, k, side);
}

static bool is_large(const struct af_graph *g) {
        for (uint32_t i = 0; i < g->n_inputs; i++)
                if (af_value_count(g, g->inputs[i].value) >= LARGE)
                        return true;
        for (uint32_t i = 0; i < g->n_outputs; i++)
                if (af_value_count(g, g->outputs[i].value) >= LARGE)
                        return true;
        return false;
}

static int add_group(struct bench *b, const char *name, const struct af_driver_view *view, uint32_t group) {
        struct entry *e = &b->entries[b->n];
        AF_CLEANUP(af_arena_deinit) struct af_arena scratch = {0};
        struct af_kernel *k[2];
        const char *why = "";
        uint64_t least = UINT64_MAX, t = 0;
        int r = 0;
        if (b->n == MAX_ENTRIES)
                return -E2BIG;
        for (unsigned turn = 0; !r && turn < TURNS; turn++) {
                t = af_clock_now_ns();
                r = af_schedule_build(&scratch, &view->graph, &view->fusion.groups[group], &b->env.soc, &k[0], &why);
                least = AF_MIN(least, af_clock_now_ns() - t);
        }
        t = af_clock_now_ns();
        if (!r)
                r = af_schedule_build_exhaustive(&scratch, &view->graph, &view->fusion.groups[group], &b->env.soc, &k[1], &why);
        t = af_clock_now_ns() - t;
        if (!r)
                r = fill(b, k[0], &e->chosen);
        if (!r)
                r = fill(b, k[1], &e->best);
        if (r) {
                fprintf(stderr, "tiling: %s: error %d %s\n", name, r, why);
                return r;
        }
        e->chosen.ms = (double)least * 1e-6;
        e->best.ms = (double)t * 1e-6;
        e->name = strdup(name);
        e->large = is_large(&view->graph);
        b->n++;
        return e->name ? 0 : -ENOMEM;
}

static int add_file(struct bench *b, const char *path) {
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        AF_CLEANUP(af_buf_deinit) struct af_buf canon = AF_BUF_INIT;
        struct af_slot_map map = {0};
        struct af_diags diags = {0};
        struct af_driver_view view;
        const char *stem = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
        char name[256];
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(stem, "."), stem);
        af_arena_init(&arena, 0);
        int r = af_io_read_file(path, AF_LIMIT_TEXT_BYTES, &text);
        if (!r)
                r = af_driver_canonicalise((const char *)text.data, text.size, &canon, &map, &diags);
        if (!r)
                r = af_driver_view(&b->env, &arena, canon.data, canon.size, NULL, &view, &diags);
        if (r)
                fprintf(stderr, "tiling: %s: error %d %s\n", path, r, diags.n_items ? diags.items[0].what : "");
        for (uint32_t i = 0; !r && i < view.fusion.n_groups; i++)
                r = add_group(b, name, &view, i);
        af_slot_map_deinit(&map);
        af_diags_deinit(&diags);
        return r;
}

/* The twin's timeline of a kernel is the one stated; where indices decide over it there is nothing to count without them. */
static void check_side(struct bench *b, const char *name, const struct side *side) {
        struct af_twin_stats stats = {0};
        if (side->by_index)
                return;
        void *args[AF_KERNEL_MAX_ARGS] = {NULL};
        char error[512] = "";
        af_twin_launch_fn launch = batch_find(&b->batch, side->symbol);
        struct af_twin_launch l = {.args = args,
                                   .n_args = side->n_args,
                                   .block_dim = side->block_dim,
                                   .n_blocks = side->block_dim,
                                   .count_only = 1,
                                   .stats = &stats,
                                   .error = error,
                                   .error_size = sizeof(error)};
        if (!launch || launch(&l)) {
                fprintf(stderr, "tiling: %s: %s\n", name, launch ? error : "does not compile");
                b->bad = 1;
                return;
        }
        uint64_t off = stats.total_cycles > side->cycles ? stats.total_cycles - side->cycles : side->cycles - stats.total_cycles,
                 bytes = stats.mte2_bytes + stats.mte3_bytes + stats.scalar_bytes;
        if (off <= 1 && bytes == side->bytes)
                return;
        fprintf(stderr, "tiling: %s: stated %llu cycles, %llu bytes; the twin counts %llu, %llu\n", name, (unsigned long long)side->cycles,
                (unsigned long long)side->bytes, (unsigned long long)stats.total_cycles, (unsigned long long)bytes);
        b->bad = 1;
}

static void check(struct bench *b) {
        AF_CLEANUP(af_buf_deinit) struct af_buf err = AF_BUF_INIT;
        if (b->no_twin)
                return;
        if (batch_build(&b->batch, &err))
                fprintf(stderr, "%.*s\n", (int)err.size, err.data ? (const char *)err.data : "");
        for (uint32_t i = 0; i < b->n; i++) {
                check_side(b, b->entries[i].name, &b->entries[i].chosen);
                if (strcmp(b->entries[i].chosen.symbol, b->entries[i].best.symbol) != 0)
                        check_side(b, b->entries[i].name, &b->entries[i].best);
        }
}

static double over_best(const struct entry *e) {
        return (double)e->chosen.cycles / (double)AF_MAX(e->best.cycles, 1);
}

static int by_ratio(const void *a, const void *b) {
        double x = over_best(a), y = over_best(b);
        return x < y ? -1 : x > y;
}

static void report(struct bench *b) {
        double worst = 0;
        for (uint32_t i = 0; i < b->n; i++) {
                const struct entry *e = &b->entries[i];
                double over_pipe = e->chosen.pipe ? (double)e->chosen.cycles / (double)e->chosen.pipe : 0;
                worst = e->large && over_pipe > worst ? over_pipe : worst;
                if (b->rows)
                        printf("# %-32s %9llu cycles, best %9llu, %.3f; %.3f of the best's bytes; over pipe %.3f%s; %.2f ms, all %.0f ms\n",
                               e->name, (unsigned long long)e->chosen.cycles, (unsigned long long)e->best.cycles, over_best(e),
                               (double)e->chosen.bytes / (double)AF_MAX(e->best.bytes, 1), over_pipe, e->large ? " (large)" : "",
                               e->chosen.ms, e->best.ms);
        }
        qsort(b->entries, b->n, sizeof(b->entries[0]), by_ratio);
        if (b->n)
                printf("{\"name\":\"tiling_vs_exhaustive_p95\",\"value\":%.4f,\"unit\":\"x the cycles of the best tile\"}\n",
                       over_best(&b->entries[(b->n * 95 + 99) / 100 - 1]));
        printf("{\"name\":\"tiling_over_pipe_bound_max\",\"value\":%.4f,\"unit\":\"x the busiest pipe\"}\n", worst);
}

static void deinit(struct bench *b) {
        for (uint32_t i = 0; i < b->n; i++) {
                free(b->entries[i].name);
                free(b->entries[i].chosen.symbol);
                free(b->entries[i].best.symbol);
        }
        batch_reset(&b->batch);
        free(b);
}

int main(int argc, char **argv) {
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        struct bench *b = calloc(1, sizeof(*b));
        struct af_toolchain_config host = {
                .id = "host", .kind = AF_TOOLCHAIN_HOST, .extra_flags = "-O0", .pch_dir = getenv("AF_TEST_PCH_DIR")};
        struct af_env_config config = {.toolchains = &host, .n_toolchains = 1};
        struct af_diags diags = {0};
        af_arena_init(&arena, 0);
        if (!b || af_env_load(&b->env, &arena, &config, NULL, NULL, AF_TWIN_CHECKED, &diags)) {
                fprintf(stderr, "tiling: no environment: %s\n", diags.n_items ? diags.items[0].what : "?");
                return 1;
        }
        batch_init(&b->batch, &b->env.toolchain);
        for (int i = 1; i < argc; i++)
                if (strcmp(argv[i], "--rows") == 0)
                        b->rows = true;
                else if (strcmp(argv[i], "--trees") == 0)
                        b->trees = true;
                else if (strcmp(argv[i], "--no-twin") == 0)
                        b->no_twin = true;
                else if (add_file(b, argv[i]))
                        b->bad = 1;
        check(b);
        report(b);
        int bad = b->bad || !b->n;
        deinit(b);
        return bad;
}
