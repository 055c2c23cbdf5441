/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fragment text in, sources out (parse, canonical form, digest, fusion, schedule, code generation), in process and without compiling.
 * Prints one JSON object per line. Arguments: names of the figures to measure; none: all.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "compiler/driver/driver.h"

/* t = abs(t * 0.5 + y), n_nodes / 3 times: the corpus row chain_60 for 60 nodes. */
static void make_chain(uint32_t n_nodes, struct af_buf *text) {
        af_buf_printf(text, "{\"schema\":\"autofuse.fragment/1\",\"inputs\":[{\"name\":\"x\",\"dtype\":\"float32\",\"shape\":[4194304]},"
                            "{\"name\":\"y\",\"dtype\":\"float32\",\"shape\":[4194304]}],"
                            "\"constants\":[{\"name\":\"h\",\"dtype\":\"float32\",\"shape\":[],\"bits\":\"0000003f\"}],\"nodes\":[");
        for (uint32_t i = 0; i < n_nodes; i++) {
                static const char *const ops[] = {"mul", "add", "abs"};
                af_buf_printf(text, "%s{\"name\":\"n%u\",\"op\":\"%s\",\"inputs\":[\"", i ? "," : "", i, ops[i % 3]);
                if (i)
                        af_buf_printf(text, "t%u", i - 1);
                else
                        af_buf_put_str(text, "x");
                af_buf_printf(text, "\"%s],\"outputs\":[{\"name\":\"t%u\",\"dtype\":\"float32\",\"shape\":[4194304]}]}",
                              i % 3 == 0   ? ",\"h\""
                              : i % 3 == 1 ? ",\"y\""
                                           : "",
                              i);
        }
        af_buf_printf(text, "],\"outputs\":[\"t%u\"]}", n_nodes - 1);
}

#define FAMILIES 8u  /* shapes */
#define REACH    40u /* how far back an operand lies */

/* A random graph of 8 shapes side by side, most of whose kernels are like no other. */
static void make_distinct(uint32_t n_nodes, struct af_buf *text) {
        static const char *const ops[] = {"add", "mul", "sub", "maximum", "exp", "abs", "relu"};
        uint64_t state = 1;
        af_buf_put_str(text, "{\"schema\":\"autofuse.fragment/1\",\"inputs\":[");
        for (uint32_t i = 0; i < FAMILIES; i++)
                af_buf_printf(text, "%s{\"name\":\"t%u\",\"dtype\":\"float32\",\"shape\":[%u,64]}", i ? "," : "", i, 128 * (i + 1));
        af_buf_put_str(text, "],\"nodes\":[");
        for (uint32_t i = FAMILIES; i < n_nodes + FAMILIES; i++) {
                uint32_t family = i % FAMILIES, reach = AF_MIN(i / FAMILIES, REACH), in[2], op;
                for (unsigned k = 0; k < 2; k++) {
                        state = state * 6364136223846793005u + 1442695040888963407u;
                        in[k] = i - FAMILIES * (1 + (uint32_t)(state >> 33) % reach);
                }
                op = (uint32_t)(state >> 20) % AF_ARRAY_SIZE(ops);
                af_buf_printf(text, "%s{\"name\":\"n%u\",\"op\":\"%s\",\"inputs\":[\"t%u\"", i > FAMILIES ? "," : "", i, ops[op], in[0]);
                if (op < 4)
                        af_buf_printf(text, ",\"t%u\"", in[1]);
                af_buf_printf(text, "],\"outputs\":[{\"name\":\"t%u\",\"dtype\":\"float32\",\"shape\":[%u,64]}]}", i, 128 * (family + 1));
        }
        af_buf_put_str(text, "],\"outputs\":[");
        for (uint32_t i = n_nodes; i < n_nodes + FAMILIES; i++)
                af_buf_printf(text, "%s\"t%u\"", i > n_nodes ? "," : "", i);
        af_buf_put_str(text, "]}");
}

/* Seconds that this process was on a core: it has one thread and waits for nothing, so that a busy machine shows less than by the wall's
 * clock. */
static double cpu_s(void) {
        struct timespec t;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Seconds of the fastest of n_runs; negative on failure. */
static double measure(const struct af_env *env, void (*make)(uint32_t, struct af_buf *), uint32_t n_nodes, unsigned n_runs) {
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        double best = -1;
        make(n_nodes, &text);
        for (unsigned run = 0; run < n_runs; run++) {
                struct af_buf canon = AF_BUF_INIT, plan = AF_BUF_INIT;
                struct af_slot_map map = {0};
                struct af_diags diags = {0};
                double t0 = cpu_s();
                int r = af_driver_canonicalise((const char *)text.data, text.size, &canon, &map, &diags);
                if (!r)
                        r = af_driver_plan(env, canon.data, canon.size, NULL, &plan, &diags);
                double s = cpu_s() - t0;
                if (!r && (best < 0 || s < best))
                        best = s;
                if (r) {
                        struct af_buf why = AF_BUF_INIT;
                        af_diags_format(&diags, &why);
                        fprintf(stderr, "codegen: %u nodes: error %d\n%.*s", n_nodes, r, (int)why.size, (const char *)why.data);
                        af_buf_deinit(&why);
                }
                af_slot_map_deinit(&map);
                af_diags_deinit(&diags);
                af_buf_deinit(&canon);
                af_buf_deinit(&plan);
                if (r)
                        return -1;
        }
        return best;
}

static bool wanted(int argc, char **argv, const char *name) {
        for (int i = 1; i < argc; i++)
                if (strncmp(name, argv[i], strlen(argv[i])) == 0)
                        return true;
        return argc < 2;
}

int main(int argc, char **argv) {
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        struct af_env_config config = {0};
        struct af_env env;
        struct af_diags diags = {0};
        af_arena_init(&arena, 0);
        if (af_env_load(&env, &arena, &config, NULL, NULL, AF_TWIN_DEFAULT, &diags)) {
                fprintf(stderr, "codegen: no environment: %s\n", diags.n_items ? diags.items[0].what : "?");
                return 1;
        }
        if (wanted(argc, argv, "codegen_chain_60_ms")) {
                double s = measure(&env, make_chain, 60, 200);
                if (s < 0)
                        return 1;
                printf("{\"name\":\"codegen_chain_60_ms\",\"value\":%.4f,\"unit\":\"ms\"}\n", s * 1e3);
        }
        if (wanted(argc, argv, "codegen_distinct_growth")) { /* first: what the process takes at most grows with what comes next */
                double s4k = measure(&env, make_distinct, 4000, 3), s32k = measure(&env, make_distinct, 32000, 1);
                struct rusage usage;
                if (s4k < 0 || s32k < 0 || getrusage(RUSAGE_SELF, &usage))
                        return 1;
                printf("{\"name\":\"codegen_distinct_growth_4k_32k\",\"value\":%.2f,\"unit\":\"x for 8x the nodes\"}\n", s32k / s4k);
                printf("{\"name\":\"codegen_distinct_growth_32k_mb\",\"value\":%ld,\"unit\":\"MB\"}\n", usage.ru_maxrss / 1024);
        }
        if (wanted(argc, argv, "codegen_growth_10k_100k") || wanted(argc, argv, "codegen_100k_nodes")) {
                double s10k = measure(&env, make_chain, 10000, 20), s100k = measure(&env, make_chain, 100000, 5);
                if (s10k < 0 || s100k < 0)
                        return 1;
                printf("{\"name\":\"codegen_100k_nodes_s\",\"value\":%.3f,\"unit\":\"s\"}\n", s100k);
                struct rusage usage;
                if (getrusage(RUSAGE_SELF, &usage) == 0) /* of the whole process: the fragment's text is in it */
                        printf("{\"name\":\"codegen_100k_nodes_mb\",\"value\":%ld,\"unit\":\"MB\"}\n", usage.ru_maxrss / 1024);
                printf("{\"name\":\"codegen_growth_10k_100k\",\"value\":%.2f,\"unit\":\"x for 10x the nodes\"}\n", s100k / s10k);
        }
        return 0;
}
