/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pass order, in one place, and the two entries: plan, and plan with compile.
 */
#include "compiler/driver/driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "compiler/driver/job.h"
#include "compiler/graph/canon.h"

#define JOB_ARENA_MAX      ((size_t)4 << 30)
#define COMPILE_TIMEOUT_MS 600000u

static void dump_graph(struct af_job *job, struct af_buf *buf) {
        af_fusion_dot(&job->graph, NULL, buf);
}
static void dump_fusion(struct af_job *job, struct af_buf *buf) {
        af_fusion_dot(&job->graph, &job->fusion, buf);
}
static void dump_kernels(struct af_job *job, struct af_buf *buf) {
        for (uint32_t i = 0; i < job->fusion.n_groups; i++) {
                af_buf_printf(buf, "kernel %s\n", job->kernels[i].symbol);
                af_kernel_print(job->kernels[i].kernel, buf);
                af_buf_put(buf, job->kernels[i].source, job->kernels[i].source_size);
        }
}

static const struct af_pass {
        const char *name;
        int (*run)(struct af_job *job);
        const char *needs, *gives;
        bool keeps_graph; /* needs no check of the graph; fuse checks its own when it adds copies */
        void (*dump)(struct af_job *job, struct af_buf *buf);
} passes[] = {
        {"read", af_pass_read, "canonical bytes", "graph", true, dump_graph},
        {"rewrite", af_pass_rewrite, "graph", "graph of nodes that kernels can run, or pinned ones", false, dump_graph},
        {"outputs", af_pass_outputs, "graph", "graph in which every output can be laid out as stated", false, NULL},
        {"fuse", af_pass_fuse, "graph, rules", "groups with a tiled loop tree each, fallbacks; copies of cheap nodes", true, dump_fusion},
        {"emit", af_pass_emit, "loop trees, templates", "sources, keys, symbols", true, dump_kernels},
        {"order", af_pass_order, "groups, fallbacks", "steps in an order that can run", true, NULL},
        {"layout", af_pass_layout, "steps", "buffers, places of values", true, NULL},
        {"assemble", af_pass_assemble, "all of it", "skeleton", true, NULL},
};

static int dump(struct af_job *job, const struct af_pass *pass) {
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        if (!job->opts->dump || !pass->dump)
                return 0;
        pass->dump(job, &text);
        af_buf_put_u8(&text, 0);
        if (af_buf_error(&text))
                return af_buf_error(&text);
        job->opts->dump(job->opts->userdata, pass->name, (const char *)text.data);
        return 0;
}

/* Up to and with the pass named last; NULL: all. */
static int run_passes(struct af_job *job, const char *last) {
        size_t again = 0;
        for (size_t i = 0; i < AF_ARRAY_SIZE(passes); i++) {
                again = strcmp(passes[i].name, "rewrite") == 0 ? i : again;
                uint64_t begin = af_clock_now_ns();
                int r = passes[i].run(job);
                job->pass_ns[i] += af_clock_now_ns() - begin;
                if (r == AF_PASS_AGAIN) {
                        i = again - 1;
                        continue;
                }
                if (r)
                        return r;
#ifndef NDEBUG
                /* After a pass that rebuilds the graph its invariants must hold again. */
                if (!passes[i].keeps_graph && af_graph_check(&job->graph, job->diags))
                        return AF_DRIVER_E_INVALID;
#endif
                r = dump(job, &passes[i]);
                if (r || (last && strcmp(passes[i].name, last) == 0))
                        return r;
        }
        return 0;
}

/* How long each pass took, its repetitions together; the schedule's part is told by itself. */
static void tell_stages(const struct af_job *job) {
        if (!job->opts->stage)
                return;
        for (size_t i = 0; i < AF_ARRAY_SIZE(passes); i++) {
                bool fuse = strcmp(passes[i].name, "fuse") == 0;
                uint64_t ns = job->pass_ns[i];
                job->opts->stage(job->opts->userdata, passes[i].name, (fuse ? ns - AF_MIN(ns, job->schedule_ns) : ns) / 1000);
                if (fuse)
                        job->opts->stage(job->opts->userdata, "schedule", job->schedule_ns / 1000);
        }
}

/* Distinct kernels of the job in the order of the bundle's table. */
static int write_plan(struct af_job *job, struct af_buf *ret_plan) {
        AF_CLEANUP(af_buf_deinit) struct af_buf skeleton = AF_BUF_INIT;
        uint32_t n = 0;
        struct af_plan_kernel *kernels = af_arena_calloc(job->arena, job->fusion.n_groups, sizeof(*kernels));
        if (!kernels)
                return -ENOMEM;
        for (uint32_t i = 0; i < job->fusion.n_groups; i++) {
                const struct af_kernel_out *k = &job->kernels[i];
                if (k->entry != n)
                        continue; /* shares an earlier entry */
                kernels[n++] = (struct af_plan_kernel){.key = k->key,
                                                       .toolchain = job->env->toolchain.id,
                                                       .symbol = k->symbol,
                                                       .source = k->source,
                                                       .source_size = k->source_size};
        }
        int r = af_bundle_finish(&job->builder, AF_BUNDLE_SKELETON, &skeleton);
        if (r)
                return r;
        if (skeleton.size > UINT32_MAX || job->n_canon > UINT32_MAX)
                return -EOVERFLOW;
        struct af_plan_view plan = {.skeleton = skeleton.data,
                                    .skeleton_size = (uint32_t)skeleton.size,
                                    .canon = job->canon,
                                    .canon_size = (uint32_t)job->n_canon,
                                    .fallbacks = job->fallbacks.data,
                                    .fallbacks_size = (uint32_t)job->fallbacks.size,
                                    .n_kernels = n,
                                    .kernels = kernels};
        af_key_fragment(job->canon, job->n_canon, &plan.fragment);
        af_plan_write(&plan, ret_plan);
        return af_buf_error(ret_plan);
}

static void job_init(struct af_job *job, struct af_arena *arena, const struct af_env *env, const void *canon, size_t n,
                     const struct af_driver_opts *opts, struct af_diags *diags) {
        static const struct af_driver_opts defaults;
        *job = (struct af_job){
                .arena = arena, .env = env, .opts = opts ? opts : &defaults, .diags = diags, .soc = env->soc, .canon = canon, .n_canon = n};
        if (job->opts->max_cores && job->opts->max_cores < job->soc.vector_cores)
                job->soc.vector_cores = job->opts->max_cores;
        if (job->opts->max_tile_bytes && job->opts->max_tile_bytes < job->soc.ub_bytes)
                job->soc.ub_bytes = job->opts->max_tile_bytes;
        af_arena_init(&job->scratch, 0);
        af_bundle_builder_init(&job->builder);
}
static void job_deinit(struct af_job *job) {
        af_arena_deinit(&job->scratch);
        af_bundle_builder_deinit(&job->builder);
        af_buf_deinit(&job->fallbacks);
}

int af_driver_plan(const struct af_env *env, const void *canon, size_t n, const struct af_driver_opts *opts, struct af_buf *ret_plan,
                   struct af_diags *diags) {
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        struct af_job job;
        af_arena_init(&arena, JOB_ARENA_MAX);
        job_init(&job, &arena, env, canon, n, opts, diags);
        int r = run_passes(&job, NULL);
        tell_stages(&job);
        if (!r)
                r = write_plan(&job, ret_plan);
        job_deinit(&job);
        return r;
}

int af_driver_view(const struct af_env *env, struct af_arena *arena, const void *canon, size_t n, const struct af_driver_opts *opts,
                   struct af_driver_view *ret_view, struct af_diags *diags) {
        struct af_job job;
        job_init(&job, arena, env, canon, n, opts, diags);
        int r = run_passes(&job, "emit");
        struct af_view_kernel *kernels = r ? NULL : af_arena_calloc(arena, job.fusion.n_groups, sizeof(*kernels));
        if (!r && !kernels)
                r = -ENOMEM;
        for (uint32_t i = 0; !r && i < job.fusion.n_groups; i++)
                kernels[i] = (struct af_view_kernel){.kernel = job.kernels[i].kernel,
                                                     .symbol = job.kernels[i].symbol,
                                                     .source = job.kernels[i].source,
                                                     .source_size = job.kernels[i].source_size};
        if (!r)
                *ret_view = (struct af_driver_view){
                        .graph = job.graph, .canonical = job.canonical, .notes = job.notes, .fusion = job.fusion, .kernels = kernels};
        job_deinit(&job);
        return r;
}

int af_driver_canonicalise(const char *text, size_t n, struct af_buf *ret_canon, struct af_slot_map *ret_map, struct af_diags *diags) {
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        struct af_fragment fragment;
        struct af_graph graph;
        af_arena_init(&arena, JOB_ARENA_MAX);
        int r = af_fragment_init(&fragment, &arena);
        if (!r)
                r = af_fragment_parse(&fragment, text, n, diags);
        if (!r)
                r = af_graph_from_fragment(&graph, &fragment, diags);
        if (r)
                return r < 0 ? r : AF_DRIVER_E_INVALID;
        return af_canon_write(&graph, ret_canon, ret_map);
}

static int compile_all(const struct af_env *env, const struct af_plan_view *plan, struct af_buf *ret_bundle, struct af_buf *err) {
        int r = 0;
        struct af_bundle skeleton;
        struct af_buf *binaries = calloc(plan->n_kernels + 1, sizeof(*binaries));
        struct af_piece *pieces = calloc(plan->n_kernels + 1, sizeof(*pieces));
        if (!binaries || !pieces)
                r = -ENOMEM;
        for (uint32_t i = 0; !r && i < plan->n_kernels; i++) {
                const struct af_plan_kernel *k = &plan->kernels[i];
                r = af_toolchain_compile(&env->toolchain, k->symbol, k->source, k->source_size, COMPILE_TIMEOUT_MS, -1, &binaries[i], err,
                                         NULL);
                if (r > 0)
                        r = AF_DRIVER_E_COMPILE;
                pieces[i] = (struct af_piece){binaries[i].data, binaries[i].size};
        }
        if (!r && af_bundle_open(plan->skeleton, plan->skeleton_size, &skeleton, NULL))
                r = -EBADMSG;
        if (!r)
                r = af_bundle_attach(&skeleton, pieces, plan->n_kernels, ret_bundle);
        for (uint32_t i = 0; binaries && i < plan->n_kernels; i++)
                af_buf_deinit(&binaries[i]);
        free(binaries);
        free(pieces);
        return r;
}

int af_driver_compile(const struct af_env *env, const void *canon, size_t n, const struct af_driver_opts *opts, struct af_buf *ret_bundle,
                      struct af_buf *err, struct af_diags *diags) {
        AF_CLEANUP(af_buf_deinit) struct af_buf bytes = AF_BUF_INIT;
        struct af_plan_view plan = {0};
        int r = af_driver_plan(env, canon, n, opts, &bytes, diags);
        if (!r)
                r = af_plan_read(bytes.data, bytes.size, &plan) ? -EBADMSG : 0;
        if (!r)
                r = compile_all(env, &plan, ret_bundle, err);
        af_plan_view_deinit(&plan);
        return r;
}
