/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans fragments as they are served, compiles their kernels for the checked twin and tells what they cost and whether they are right.
 *
 *   fragment_runs [--count] [--run] [--specials] [--no-fuse] [--cores N] [--tile BYTES] [--flags FLAGS] [--inputs DIR] [--outputs DIR]
 *                 [--dump DIR] [--symbols K] [--profile N] [--seeds A:B] [FRAGMENT.json…]
 *
 * --count: bytes moved and cycles at the fragment's own size, without computing (default where --run is not given). --run: computes, and
 * compares with the reference bit for bit; with --specials also on special values. --inputs, --outputs: DIR/NAME.<i>.in and .out hold the
 * elements of the fragment's i-th input and output. --dump: runs, and writes each launch for another judge: NAME_<k>.cpp, its arguments
 * before and after, a line in DIR/cases.txt: name, symbol, blocks, synchronises, then per argument in:FILE,
 * out:BEFORE:WANT:DTYPE or work:BYTES, and for a form struct:FILE. --symbols: where a fragment has symbols, choice K of their values
 * (tests/lib/bind.h; 0). --seeds: random fragments as well, of one profile (tests/lib/random_graph.h) or of all without symbols. One JSON
 * object per fragment on stdout.
 */
#include "tests/tools/fragment_runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "tests/lib/random_graph.h"

#define MAX_PENDING_BYTES   (8u << 20)
#define MAX_PENDING_KERNELS 200u

struct queue {
        struct item *items;
        uint32_t n, cap;
        size_t bytes;
};

static void note_diags(struct item *item, int code, struct af_diags *diags) {
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        af_diags_format(diags, &text);
        snprintf(item->error, sizeof(item->error), "error %d: %.*s", code, (int)text.size, text.data ? (const char *)text.data : "");
}

static void queue_kernels(struct setup *s, struct item *item) {
        struct af_plan_view plan = {0};
        int e = af_plan_read(item->plan.data, item->plan.size, &plan);
        for (uint32_t i = 0; !e && i < plan.n_kernels; i++)
                e = batch_add(&s->batch, plan.kernels[i].symbol, plan.kernels[i].source, plan.kernels[i].source_size);
        if (e)
                snprintf(item->error, sizeof(item->error), "error %d in the plan", e);
        af_plan_view_deinit(&plan);
}

static void plan_item(struct setup *s, struct item *item, const char *text, size_t n) {
        struct af_diags diags = {0};
        int e = af_driver_canonicalise(text, n, &item->canon, &item->map, &diags);
        if (!e)
                e = af_driver_plan(&s->env, item->canon.data, item->canon.size, &s->opts, &item->plan, &diags);
        if (e)
                note_diags(item, e, &diags);
        else
                queue_kernels(s, item);
        af_diags_deinit(&diags);
}

static void flush(struct setup *s, struct queue *q) {
        AF_CLEANUP(af_buf_deinit) struct af_buf err = AF_BUF_INIT;
        if (batch_build(&s->batch, &err))
                fprintf(stderr, "%.*s\n", (int)err.size, err.data ? (const char *)err.data : "");
        for (uint32_t i = 0; i < q->n; i++) {
                struct item *item = &q->items[i];
                item_report(s, item);
                af_slot_map_deinit(&item->map);
                af_buf_deinit(&item->canon);
                af_buf_deinit(&item->plan);
                free(item->name);
        }
        q->n = 0;
        q->bytes = 0;
        batch_reset(&s->batch);
}

static void add(struct setup *s, struct queue *q, const char *name, uint64_t seed, const char *text, size_t n) {
        if (q->n == q->cap) {
                q->cap = q->cap ? q->cap * 2 : 64;
                q->items = realloc(q->items, q->cap * sizeof(*q->items));
                if (!q->items)
                        abort();
        }
        struct item *item = &q->items[q->n++];
        *item = (struct item){.name = strdup(name), .seed = seed};
        if (!text)
                snprintf(item->error, sizeof(item->error), "no fragment");
        else
                plan_item(s, item, text, n);
        q->bytes += item->plan.size;
        if (q->bytes > MAX_PENDING_BYTES || s->batch.n_kernels > MAX_PENDING_KERNELS)
                flush(s, q);
}

static void add_file(struct setup *s, struct queue *q, const char *path) {
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        char name[256];
        const char *stem = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(stem, "."), stem);
        int e = af_io_read_file(path, AF_LIMIT_TEXT_BYTES, &text);
        add(s, q, name, 1, e ? NULL : (const char *)text.data, text.size);
}

static void add_seed(struct setup *s, struct queue *q, uint64_t seed, int profile) {
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        struct af_fragment f;
        struct af_random_opts opts;
        char name[40];
        af_arena_init(&arena, 0);
        snprintf(name, sizeof(name), "seed%llu", (unsigned long long)seed);
        af_random_profile(profile >= 0 ? (unsigned)profile : (unsigned)(seed % AF_RANDOM_ALL_PROFILES), &opts);
        int e = af_random_fragment(&f, &arena, seed, &opts);
        if (!e)
                af_fragment_print(&f, 1, &text);
        add(s, q, name, seed, e ? NULL : (const char *)text.data, text.size);
}

struct args {
        unsigned long long first_seed, end_seed;
        const char *flags;
        int files, profile; /* below 0: all */
};

static bool parse_switch(struct setup *s, const char *arg) {
        bool *known = !strcmp(arg, "--count")      ? &s->count
                      : !strcmp(arg, "--run")      ? &s->run
                      : !strcmp(arg, "--specials") ? &s->specials
                      : !strcmp(arg, "--no-fuse")  ? &s->opts.no_fuse
                                                   : NULL;
        if (known)
                *known = true;
        return known != NULL;
}

static bool parse(struct setup *s, struct args *a, int argc, char **argv) {
        int i = 1;
        for (; i < argc && argv[i][0] == '-'; i++) {
                const char *value = i + 1 < argc ? argv[i + 1] : NULL;
                if (parse_switch(s, argv[i]))
                        continue;
                if (!value)
                        return false;
                if (!strcmp(argv[i], "--seeds") && sscanf(value, "%llu:%llu", &a->first_seed, &a->end_seed) == 2)
                        ;
                else if (!strcmp(argv[i], "--symbols"))
                        s->symbols = (unsigned)atoi(value);
                else if (!strcmp(argv[i], "--profile"))
                        a->profile = atoi(value);
                else if (!strcmp(argv[i], "--cores"))
                        s->opts.max_cores = (uint32_t)atoi(value);
                else if (!strcmp(argv[i], "--tile"))
                        s->opts.max_tile_bytes = (uint32_t)atoi(value);
                else if (!strcmp(argv[i], "--flags"))
                        a->flags = value;
                else if (!strcmp(argv[i], "--inputs"))
                        s->inputs = value;
                else if (!strcmp(argv[i], "--outputs"))
                        s->outputs = value;
                else if (!strcmp(argv[i], "--dump"))
                        s->dump = value;
                else
                        return false;
                i++;
        }
        a->files = i;
        s->run |= s->dump != NULL || s->outputs != NULL;
        s->count |= !s->run;
        return true;
}

static int load(struct setup *s, struct af_arena *arena, const char *flags) {
        struct af_toolchain_config host = batch_toolchain(flags);
        struct af_env_config config = {.toolchains = &host, .n_toolchains = 1};
        struct af_diags diags = {0};
        int e = af_env_load(&s->env, arena, &config, NULL, NULL, AF_TWIN_CHECKED, &diags);
        if (e)
                fprintf(stderr, "environment: error %d %s\n", e, diags.n_items ? diags.items[0].what : "");
        af_diags_deinit(&diags);
        if (!e)
                batch_init(&s->batch, &s->env.toolchain);
        return e;
}

static bool open_cases(struct setup *s) {
        char path[600];
        if (!s->dump)
                return true;
        snprintf(path, sizeof(path), "%s/cases.txt", s->dump);
        s->cases = fopen(path, "w");
        return s->cases != NULL;
}

int main(int argc, char **argv) {
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        struct setup s = {0};
        struct args a = {.profile = -1};
        struct queue q = {0};
        af_arena_init(&arena, 0);
        setvbuf(stdout, NULL, _IOLBF, 0);
        if (!parse(&s, &a, argc, argv) || load(&s, &arena, a.flags) || !open_cases(&s)) {
                fprintf(stderr,
                        "usage: %s [--count] [--run] [--specials] [--no-fuse] [--cores N] [--tile BYTES] [--flags FLAGS]\n"
                        "       [--inputs DIR] [--outputs DIR] [--dump DIR] [--symbols K] [--profile N] [--seeds A:B] [FRAGMENT.json...]\n",
                        argv[0]);
                return 2;
        }
        for (unsigned long long seed = a.first_seed; seed < a.end_seed; seed++)
                add_seed(&s, &q, seed, a.profile);
        for (int i = a.files; i < argc; i++)
                add_file(&s, &q, argv[i]);
        flush(&s, &q);
        free(q.items);
        if (s.cases)
                fclose(s.cases);
        return 0;
}
