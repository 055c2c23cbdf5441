/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Differential test: fragments compiled in several ways and run on the twin must equal the reference interpreter bit for bit.
 *
 *   differential [--seeds A:B] [--variants default,unfused,small,fast] [--flags "-O1"] [FRAGMENT.json…]
 *
 * Variants: default (as served), unfused (every node its own kernel), small (3 cores, 24 KiB of UB: other tiles), fast (the fast twin at
 * full optimisation). All but fast run on the checked twin, which also fails on hazards, bounds, poison and alignment. Each seed gives a
 * random fragment, once with ordinary and once with special values. Prints `not ok seed N …` per failure and one `ok …` line at the end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "compiler/driver/driver.h"
#include "compiler/graph/canon.h"
#include "tests/lib/random_graph.h"
#include "tests/lib/run_bundle.h"

struct variant {
        const char *name;
        bool checked;
        struct af_driver_opts opts;
};
static const struct variant variants[] = {
        {"default", true, {0}},
        {"unfused", true, {.no_fuse = true}},
        {"small", true, {.max_cores = 3, .max_tile_bytes = 24 * 1024}},
        {"fast", false, {0}},
};
#define N_VARIANTS AF_ARRAY_SIZE(variants)

struct setup {
        struct af_env checked, fast;
        bool wanted[N_VARIANTS];
        uint64_t n_runs, n_failed, n_kernels, n_framework, n_nodes, n_bytes_off;
};

static void report(struct setup *s, const char *what, const char *variant, const char *text) {
        printf("not ok %s %s: %s\n", what, variant, text);
        s->n_failed++;
}

static void report_diags(struct setup *s, const char *what, const char *variant, int r, const struct af_diags *diags,
                         const struct af_buf *err) {
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        af_buf_printf(&text, "error %d\n", r);
        af_diags_format(diags, &text);
        af_buf_put(&text, err->data, AF_MIN(err->size, 4000u));
        af_buf_put_u8(&text, 0);
        report(s, what, variant, (const char *)text.data);
}

static void free_tensors(struct af_tensor *t, uint32_t n) {
        for (uint32_t i = 0; i < n; i++)
                free(t[i].data);
        free(t);
}

/* Runs a compiled bundle on one set of inputs and compares. */
static void run_once(struct setup *s, const char *what, const struct variant *v, const struct af_graph *g, const struct af_bundle *b,
                     uint64_t seed, bool specials) {
        struct af_tensor *inputs = calloc(g->n_inputs + 1, sizeof(*inputs)), *got = calloc(g->n_outputs + 1, sizeof(*got)),
                         *want = calloc(g->n_outputs + 1, sizeof(*want));
        void **blocks = calloc(g->n_inputs + 1, sizeof(*blocks));
        struct run_result result = {0};
        char text[600] = "";
        const char *why = NULL;
        s->n_runs++;
        if (!inputs || !got || !want || !blocks || make_inputs(g, seed, specials, inputs, blocks))
                snprintf(text, sizeof(text), "no inputs");
        else if (af_reference_run(g, inputs, want, NULL, &why))
                snprintf(text, sizeof(text), "the reference refuses: %s", why ? why : "?");
        else if (run_bundle(g, b, inputs, got, &result))
                snprintf(text, sizeof(text), "%s", result.error);
        else
                compare_outputs(got, want, g->n_outputs, text, sizeof(text));
        if (text[0])
                report(s, what, v->name, text);
        s->n_kernels += result.n_kernel_steps;
        s->n_framework += result.n_framework_steps;
        s->n_nodes += result.n_nodes_fused;
        s->n_bytes_off += v->checked && result.moved_bytes != result.modelled_bytes;
        for (uint32_t i = 0; blocks && i < g->n_inputs; i++)
                free(blocks[i]);
        free(blocks);
        free(inputs);
        free_tensors(got, g->n_outputs);
        free_tensors(want, g->n_outputs);
}

static void run_variant(struct setup *s, const char *what, const struct variant *v, const struct af_graph *g, const struct af_buf *canon,
                        uint64_t seed) {
        AF_CLEANUP(af_buf_deinit) struct af_buf bytes = AF_BUF_INIT;
        AF_CLEANUP(af_buf_deinit) struct af_buf err = AF_BUF_INIT;
        struct af_diags diags = {0};
        struct af_bundle bundle;
        const char *why = NULL;
        int r = af_driver_compile(v->checked ? &s->checked : &s->fast, canon->data, canon->size, &v->opts, &bytes, &err, &diags);
        if (r)
                report_diags(s, what, v->name, r, &diags, &err);
        else if (af_bundle_open(bytes.data, bytes.size, &bundle, &why))
                report(s, what, v->name, why);
        else
                for (int specials = 0; specials < 2; specials++)
                        run_once(s, what, v, g, &bundle, seed, specials);
        af_diags_deinit(&diags);
}

static void run_fragment(struct setup *s, const char *what, const struct af_fragment *f, uint64_t seed) {
        AF_CLEANUP(af_buf_deinit) struct af_buf canon = AF_BUF_INIT;
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        struct af_graph written, g;
        struct af_diags diags = {0};
        af_arena_init(&arena, 0);
        int r = af_graph_from_fragment(&written, f, &diags);
        if (!r)
                r = af_canon_write(&written, &canon, NULL);
        if (!r)
                r = af_canon_read(&g, &arena, canon.data, canon.size, &diags);
        if (r)
                report_diags(s, what, "graph", r, &diags, &(struct af_buf){0});
        for (size_t i = 0; !r && i < N_VARIANTS; i++)
                if (s->wanted[i])
                        run_variant(s, what, &variants[i], &g, &canon, seed);
        af_diags_deinit(&diags);
}

static void run_seed(struct setup *s, uint64_t seed) {
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        struct af_fragment f;
        char what[64];
        af_arena_init(&arena, 0);
        snprintf(what, sizeof(what), "seed %llu", (unsigned long long)seed);
        if (af_random_fragment(&f, &arena, seed, NULL))
                report(s, what, "generator", "no fragment");
        else
                run_fragment(s, what, &f, seed);
}

static void run_file(struct setup *s, const char *path) {
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        struct af_fragment f;
        struct af_diags diags = {0};
        af_arena_init(&arena, 0);
        int r = af_io_read_file(path, AF_LIMIT_TEXT_BYTES, &text);
        if (!r)
                r = af_fragment_init(&f, &arena);
        if (!r)
                r = af_fragment_parse(&f, (const char *)text.data, text.size, &diags);
        if (r)
                report_diags(s, path, "parse", r, &diags, &(struct af_buf){0});
        else
                run_fragment(s, path, &f, 1);
        af_diags_deinit(&diags);
}

static bool load_env(struct af_env *env, struct af_arena *arena, const char *flags, enum af_twin twin) {
        struct af_toolchain_config host = {
                .id = "host", .kind = AF_TOOLCHAIN_HOST, .extra_flags = flags, .pch_dir = getenv("AF_TEST_PCH_DIR")};
        struct af_env_config config = {.toolchains = &host, .n_toolchains = 1};
        struct af_diags diags = {0};
        int r = af_env_load(env, arena, &config, NULL, NULL, twin, &diags);
        if (r)
                printf("not ok environment: error %d %s\n", r, diags.n_items ? diags.items[0].what : "");
        af_diags_deinit(&diags);
        return r == 0;
}

int main(int argc, char **argv) {
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        struct setup s = {0};
        unsigned long long first = 0, last = 0;
        const char *names = "default,unfused,small,fast", *flags = "-O1";
        int files = argc;
        for (int i = 1; i < argc; i++) {
                if (strcmp(argv[i], "--seeds") == 0 && i + 1 < argc && sscanf(argv[++i], "%llu:%llu", &first, &last) == 2)
                        continue;
                if (strcmp(argv[i], "--variants") == 0 && i + 1 < argc && (names = argv[++i]))
                        continue;
                if (strcmp(argv[i], "--flags") == 0 && i + 1 < argc && (flags = argv[++i]))
                        continue;
                files = i;
                break;
        }
        for (size_t i = 0; i < N_VARIANTS; i++)
                s.wanted[i] = strstr(names, variants[i].name) != NULL;
        setvbuf(stdout, NULL, _IOLBF, 0);
        af_arena_init(&arena, 0);
        if (!load_env(&s.checked, &arena, flags, AF_TWIN_CHECKED) || !load_env(&s.fast, &arena, NULL, AF_TWIN_FAST))
                return 1;
        for (unsigned long long seed = first; seed < last; seed++)
                run_seed(&s, seed);
        for (int i = files; i < argc; i++)
                run_file(&s, argv[i]);
        printf("# %llu kernels launched with %llu nodes, %llu framework steps, %llu runs whose counted bytes differ from the model\n",
               (unsigned long long)s.n_kernels, (unsigned long long)s.n_nodes, (unsigned long long)s.n_framework,
               (unsigned long long)s.n_bytes_off);
        if (!s.n_failed && s.n_runs)
                printf("ok %llu runs equal the reference bit for bit\n", (unsigned long long)s.n_runs);
        return s.n_failed || !s.n_runs;
}
