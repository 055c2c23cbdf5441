/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Differential test: fragments compiled in several ways and run on the twin must equal the reference interpreter bit for bit.
 *
 *   differential [--seeds A:B] [--variants default,unfused,small,fast] [--flags FLAGS] [--profile N] [--single] [--fallbacks] [--model]
 *                [--print] [FRAGMENT.json…]
 *
 * Variants: default (as served), unfused (every node its own kernel), small (3 cores, 24 KiB of UB: other tiles), fast (the fast twin at
 * full optimisation). All but fast run on the checked twin, which also fails on hazards, bounds, poison and alignment. Each seed gives a
 * random fragment, once with ordinary and once with special values; --profile picks what kind (random_graph.h), or of all kinds with
 * `any`; else the seed does, of those without symbols.
 * --single compiles each kernel into an object of its own, as they are served, else many share one. --fallbacks lists what was left to
 * the framework; with --model a run fails whose counted bytes or cycles differ from the schedule's; --print prints the
 * fragments instead of running them. Prints `not ok seed N …` per failure and one `ok …` line at
 * the end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "tests/lib/random_graph.h"
#include "tests/lib/runner.h"

/* The fragment as text, for a file to shrink. */
static void print_fragment(const struct af_fragment *f) {
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        af_fragment_print(f, 1, &text);
        fwrite(text.data, 1, text.size, stdout);
        putchar('\n');
}

/* Profiles that stand for a choice by the seed: of those without symbols, of all. */
enum { PROFILE_STATIC = -1, PROFILE_ANY = -2 };

static unsigned profile_of(uint64_t seed, int profile) {
        if (profile >= 0)
                return (unsigned)profile;
        return (unsigned)(seed % (AF_RANDOM_ALL_PROFILES + (profile == PROFILE_ANY ? AF_RANDOM_SYMBOL_PROFILES : 0)));
}

static bool parse_profile(const char *text, int *ret) {
        if (strcmp(text, "any") == 0)
                return *ret = PROFILE_ANY, true;
        return sscanf(text, "%d", ret) == 1;
}

static void run_seed(struct runner *r, uint64_t seed, int profile, bool print) {
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        struct af_fragment f;
        struct af_random_opts opts;
        char what[64];
        af_arena_init(&arena, 0);
        snprintf(what, sizeof(what), "seed %llu", (unsigned long long)seed);
        af_random_profile(profile_of(seed, profile), &opts);
        if (af_random_fragment(&f, &arena, seed, &opts))
                runner_report(r, what, "generator", "no fragment");
        else if (print)
                print_fragment(&f);
        else
                runner_add(r, what, &f, seed);
}

static void run_file(struct runner *s, const char *path) {
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        AF_CLEANUP(af_buf_deinit) struct af_buf lines = AF_BUF_INIT;
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        struct af_fragment f;
        struct af_diags diags = {0};
        af_arena_init(&arena, 0);
        int r = af_io_read_file(path, AF_LIMIT_TEXT_BYTES, &text);
        if (!r)
                r = af_fragment_init(&f, &arena);
        if (!r)
                r = af_fragment_parse(&f, (const char *)text.data, text.size, &diags);
        af_diags_format(&diags, &lines);
        af_buf_put_u8(&lines, 0);
        if (r)
                runner_report(s, path, "parse", (const char *)lines.data);
        else
                runner_add(s, path, &f, 1);
        af_diags_deinit(&diags);
}

int main(int argc, char **argv) {
        struct runner r;
        unsigned long long first = 0, last = 0;
        const char *names = "default,unfused,small,fast", *flags = NULL;
        bool single = false, print = false, fallbacks = false, model = false;
        int files = argc, profile = PROFILE_STATIC;
        for (int i = 1; i < argc; i++) {
                if (strcmp(argv[i], "--seeds") == 0 && i + 1 < argc && sscanf(argv[++i], "%llu:%llu", &first, &last) == 2)
                        continue;
                if (strcmp(argv[i], "--variants") == 0 && i + 1 < argc && (names = argv[++i]))
                        continue;
                if (strcmp(argv[i], "--flags") == 0 && i + 1 < argc && (flags = argv[++i]))
                        continue;
                if (strcmp(argv[i], "--profile") == 0 && i + 1 < argc && parse_profile(argv[++i], &profile))
                        continue;
                if ((strcmp(argv[i], "--single") == 0 && (single = true)) || (strcmp(argv[i], "--fallbacks") == 0 && (fallbacks = true)) ||
                    (strcmp(argv[i], "--print") == 0 && (print = true)) || (strcmp(argv[i], "--model") == 0 && (model = true)))
                        continue;
                files = i;
                break;
        }
        if (!runner_init(&r, names, flags))
                return 1;
        r.single = single;
        r.exact_model = model;
        r.most_elements = last > first ? 1 << 15 : 0;
        for (unsigned long long seed = first; seed < last; seed++)
                run_seed(&r, seed, profile, print);
        for (int i = files; i < argc; i++)
                run_file(&r, argv[i]);
        int e = runner_finish(&r, fallbacks);
        runner_deinit(&r);
        return e;
}
