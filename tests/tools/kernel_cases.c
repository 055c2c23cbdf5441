/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels without the fusion pass and without bundles: cuts a fragment into runs of nodes that the schedule takes as one kernel, and runs
 * each kernel on the twin against the reference's values, or writes it out for another judge.
 *
 *   kernel_cases [--seeds A:B] [--single] [--specials] [--fast] [--out DIR] [--print tree|source|bytes] [--cores N] [--ub BYTES]
 * [FRAGMENT.json...]
 *
 * --single: every computing node by itself. --out: writes case files instead of running: NAME.cpp, NAME.<arg>.in / .want, and one line per
 * case in DIR/cases.txt: name, blocks, synchronises, then per argument in:FILE, out:BYTES:FILE:DTYPE or work:BYTES.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "compiler/codegen/codegen.h"
#include "compiler/driver/env.h"
#include "runtime/host_kernel.h"
#include "tests/lib/kernel_group.h"
#include "tests/lib/random_graph.h"

struct setup {
        struct af_soc soc;
        struct af_templates templates;
        struct af_toolchain toolchain;
        bool single, specials, twin;
        const char *out, *print;
        FILE *cases;
        uint64_t n_kernels, n_nodes, n_unfit, n_failed;
};
struct memory { /* of one value */
        uint8_t *base;
        size_t bytes;
        int64_t offset;
        bool owned;
};
struct run {
        struct setup *s;
        const struct af_graph *g;
        const char *name;
        struct af_random_input *inputs;
        struct af_tensor *values; /* of the reference, dense */
        struct kernel_users users;
        uint32_t n_done;
};

static void fail(struct run *r, const char *what, const char *text) {
        printf("not ok %s kernel %u: %s: %s\n", r->name, r->n_done, what, text ? text : "");
        r->s->n_failed++;
}

static size_t span(const int64_t *dims, const int64_t *strides, uint32_t rank, size_t size) {
        int64_t last = 0;
        for (uint32_t i = 0; i < rank; i++) {
                if (!dims[i])
                        return 0;
                last += (dims[i] - 1) * strides[i];
        }
        return (size_t)(last + 1) * size;
}

/* Copies a dense tensor into (or out of) memory with strides. */
static void restride(uint8_t *strided, uint8_t *dense, const int64_t *dims, const int64_t *strides, uint32_t rank, size_t size, bool out) {
        int64_t n = 1, index[AF_LIMIT_RANK] = {0}, at = 0;
        for (uint32_t i = 0; i < rank; i++)
                n *= dims[i];
        for (int64_t k = 0; k < n; k++) {
                memcpy(out ? dense + (size_t)k * size : strided + at * (int64_t)size,
                       out ? strided + at * (int64_t)size : dense + (size_t)k * size, size);
                for (uint32_t d = rank; d-- > 0;) {
                        at += strides[d];
                        if (++index[d] < dims[d])
                                break;
                        at -= strides[d] * dims[d];
                        index[d] = 0;
                }
        }
}

static int place(const struct run *r, uint32_t v, bool output, struct memory *m) {
        const struct af_value *value = &r->g->values[v];
        int64_t dims[AF_LIMIT_RANK], strides[AF_LIMIT_RANK];
        size_t size = af_dtype_size(value->dtype);
        if (value->kind == AF_VALUE_INPUT && !output) {
                *m = (struct memory){.base = r->inputs[value->index].base, .bytes = r->inputs[value->index].n_bytes};
                return 0;
        }
        if (value->kind == AF_VALUE_CONST) {
                const struct af_graph_constant *c = &r->g->constants[value->index];
                *m = (struct memory){.base = (uint8_t *)(uintptr_t)c->bytes, .bytes = c->n_bytes};
                return 0;
        }
        if (!af_value_static_dims(r->g, v, dims) || !af_value_static_strides(r->g, v, strides))
                return -EINVAL;
        m->bytes = span(dims, strides, value->rank, size);
        m->owned = true;
        m->base = malloc(m->bytes + 64);
        if (!m->base)
                return -ENOMEM;
        memset(m->base, 0xa5, m->bytes);
        if (!output && m->bytes)
                restride(m->base, r->values[v].data, dims, strides, value->rank, size, false);
        return 0;
}

static void compare(struct run *r, uint32_t v, const struct memory *m, const char *source) {
        const struct af_value *value = &r->g->values[v];
        struct af_tensor got = r->values[v];
        int64_t strides[AF_LIMIT_RANK] = {0};
        size_t n = (size_t)af_value_count(r->g, v), size = af_dtype_size(value->dtype);
        double error = 0;
        uint64_t first = 0;
        got.data = malloc(n * size + 1);
        if (!got.data || !af_value_static_strides(r->g, v, strides))
                return;
        if (n)
                restride(m->base, got.data, got.dims, strides, value->rank, size, true);
        uint64_t bad = af_tensor_compare(&got, &r->values[v], &error, &first);
        if (bad) {
                char text[200];
                snprintf(text, sizeof(text), "value %u (%s): %llu of %zu differ, first %llu, error %g", v, af_dtype_name(value->dtype),
                         (unsigned long long)bad, n, (unsigned long long)first, error);
                fail(r, "result", text);
                if (r->s->print)
                        printf("%s\n", source);
        }
        free(got.data);
}

/* Writes the case for another judge. */
static int write_case(struct run *r, const struct af_kernel *k, const struct memory *mem, const char *source, size_t n) {
        char path[600];
        const char *stem = strrchr(r->name, '/') ? strrchr(r->name, '/') + 1 : r->name;
        snprintf(path, sizeof(path), "%s/%s_%u.cpp", r->s->out, stem, r->n_done);
        int e = af_io_publish_file(path, source, n, 0644);
        fprintf(r->s->cases, "%s_%u %u %d", stem, r->n_done, k->block_dim, k->needs_sync_all);
        for (uint32_t i = 0; !e && i < k->n_args; i++) {
                const struct af_karg *a = &k->args[i];
                if (a->kind == AF_KARG_WORKSPACE) {
                        fprintf(r->s->cases, " work:%llu", (unsigned long long)a->workspace_bytes);
                        continue;
                }
                bool out = a->kind == AF_KARG_OUTPUT;
                snprintf(path, sizeof(path), "%s/%s_%u.%u.%s", r->s->out, stem, r->n_done, i, out ? "want" : "in");
                if (out) {
                        int64_t dims[AF_LIMIT_RANK], strides[AF_LIMIT_RANK];
                        if (!af_value_static_dims(r->g, a->value, dims) || !af_value_static_strides(r->g, a->value, strides))
                                return -EINVAL;
                        restride(mem[i].base, r->values[a->value].data, dims, strides, r->g->values[a->value].rank, af_dtype_size(a->dtype),
                                 false);
                        fprintf(r->s->cases, " out:%zu:%s:%s", mem[i].bytes, path, af_dtype_name(a->dtype));
                } else {
                        fprintf(r->s->cases, " in:%s", path);
                }
                e = af_io_publish_file(path, mem[i].base, mem[i].bytes, 0644);
        }
        fprintf(r->s->cases, "\n");
        return e;
}

static void launch(struct run *r, const struct af_kernel *k, const struct memory *mem, const char *source, size_t n) {
        AF_CLEANUP(af_buf_deinit) struct af_buf binary = AF_BUF_INIT;
        AF_CLEANUP(af_buf_deinit) struct af_buf err = AF_BUF_INIT;
        struct af_host_kernel *h = NULL;
        char *why = NULL, error[512] = "";
        void *args[AF_KERNEL_MAX_ARGS];
        uint64_t bytes[AF_KERNEL_MAX_ARGS];
        int e = af_toolchain_compile(&r->s->toolchain, "autofused_case", source, n, 120000, -1, &binary, &err, NULL);
        if (e) {
                char code[64];
                snprintf(code, sizeof(code), "compile error %d", e);
                af_buf_put_u8(&err, 0);
                fail(r, code, (const char *)err.data);
                return;
        }
        e = af_host_kernel_load(binary.data, binary.size, &h, &why);
        if (e) {
                fail(r, "load", why);
                free(why);
                return;
        }
        for (uint32_t i = 0; i < k->n_args; i++) {
                args[i] = mem[i].base;
                bytes[i] = mem[i].bytes;
        }
        struct af_twin_stats stats = {0};
        struct af_twin_launch l = {.args = args,
                                   .arg_bytes = bytes,
                                   .n_args = k->n_args,
                                   .block_dim = k->block_dim,
                                   .n_blocks = k->block_dim,
                                   .stats = &stats,
                                   .error = error,
                                   .error_size = sizeof(error)};
        e = af_host_kernel_launch(h, &l);
        if (e)
                fail(r, "launch", error);
        uint64_t moved = stats.mte2_bytes + stats.mte3_bytes + stats.scalar_bytes;
        if (!e && moved && moved != k->hbm_bytes && r->s->print && !strcmp(r->s->print, "bytes"))
                printf("# %s kernel %u: %llu bytes moved, %llu modelled; %llu cycles, %llu modelled\n", r->name, r->n_done,
                       (unsigned long long)moved, (unsigned long long)k->hbm_bytes, (unsigned long long)stats.total_cycles,
                       (unsigned long long)k->modelled_cycles);
        for (uint32_t i = 0; !e && i < k->n_args; i++)
                if (k->args[i].kind == AF_KARG_OUTPUT)
                        compare(r, k->args[i].value, &mem[i], source);
        if (e && r->s->print)
                printf("%s\n", source);
        af_host_kernel_free(h);
}

static void run_kernel(struct run *r, const struct af_kernel *k) {
        AF_CLEANUP(af_buf_deinit) struct af_buf source = AF_BUF_INIT;
        AF_CLEANUP(af_buf_deinit) struct af_buf named = AF_BUF_INIT;
        struct memory mem[AF_KERNEL_MAX_ARGS] = {0};
        struct af_diags diags = {0};
        struct af_tiling tiling;
        int e = af_codegen_emit(k, &r->s->templates, &source, &tiling, &diags);
        if (e) {
                af_diags_format(&diags, &named);
                af_buf_put_u8(&named, 0);
                fail(r, "emit", (const char *)named.data);
                return;
        }
        af_codegen_instantiate(source.data, source.size, "autofused_case", &named);
        for (uint32_t i = 0; i < k->n_args && !e; i++) {
                if (k->args[i].kind != AF_KARG_WORKSPACE) {
                        e = place(r, k->args[i].value, k->args[i].kind == AF_KARG_OUTPUT, &mem[i]);
                        continue;
                }
                mem[i] = (struct memory){.base = malloc(k->args[i].workspace_bytes), .bytes = k->args[i].workspace_bytes, .owned = true};
                if (mem[i].base)
                        memset(mem[i].base, 0xff, mem[i].bytes);
        }
        if (e)
                fail(r, "memory", strerror(-e));
        if (r->s->print && strcmp(r->s->print, "source") == 0)
                printf("%.*s\n", (int)named.size, (const char *)named.data);
        af_buf_put_u8(&named, 0);
        if (!e && r->s->out)
                e = write_case(r, k, mem, (const char *)named.data, named.size - 1);
        else if (!e && r->s->twin)
                launch(r, k, mem, (const char *)named.data, named.size - 1);
        for (uint32_t i = 0; i < k->n_args; i++)
                if (mem[i].owned)
                        free(mem[i].base);
        af_diags_deinit(&diags);
}

static void do_group(struct run *r, const uint32_t *nodes, uint32_t n) {
        const struct af_graph *g = r->g;
        struct af_group group;
        struct af_kernel *k = NULL;
        const char *why = NULL;
        if (kernel_group_make(g, &r->users, nodes, n, &group))
                return;
        AF_CLEANUP(af_arena_deinit) struct af_arena scratch = {0};
        int e = af_schedule_build(&scratch, g, &group, &r->s->soc, &k, &why);
        if (e) {
                if (r->s->print)
                        printf("# %s: unfit %s (first %s, %u nodes)\n", r->name, why, af_op_info(g->nodes[nodes[0]].op)->name, n);
                if (n > 1)
                        fail(r, "fusable but not built", why);
                r->s->n_unfit += n;
                return;
        }
        if (r->s->print && strcmp(r->s->print, "tree") == 0) {
                AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
                af_kernel_print(k, &text);
                printf("%.*s\n", (int)text.size, (const char *)text.data);
        }
        run_kernel(r, k);
        r->n_done++;
        r->s->n_kernels++;
        r->s->n_nodes += n;
}

#define MAX_RUN 24

static void cut(struct run *r) {
        const struct af_graph *g = r->g;
        uint32_t *nodes = af_arena_calloc(g->arena, g->n_nodes, sizeof(*nodes));
        if (!nodes)
                return;
        for (uint32_t i = 0; i < g->n_nodes; i++)
                nodes[i] = i;
        for (uint32_t at = 0; at < g->n_nodes;) {
                uint32_t n = kernel_group_grow(g, &r->s->soc, &nodes[at], g->n_nodes - at, r->s->single ? 1 : MAX_RUN);
                do_group(r, &nodes[at], n);
                at += n;
        }
}

static void do_fragment(struct setup *s, struct af_fragment *f, const char *name, uint64_t seed) {
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        struct af_graph g = {0};
        struct af_diags diags = {0};
        struct run r = {.s = s, .g = &g, .name = name};
        const char *why = NULL;
        af_arena_init(&arena, 0);
        int e = af_graph_from_fragment(&g, f, &diags);
        if (e || af_random_inputs(&g, seed, s->specials, &r.inputs) || af_graph_users(&g, &r.users.first, &r.users.list)) {
                AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
                af_diags_format(&diags, &text);
                printf("skip %s: %.*s\n", name, (int)text.size, text.data ? (const char *)text.data : "");
                af_diags_deinit(&diags);
                return;
        }
        struct af_tensor *in = calloc(g.n_inputs + 1, sizeof(*in)), *out = calloc(g.n_outputs + 1, sizeof(*out));
        for (uint32_t i = 0; i < g.n_inputs; i++)
                in[i] = r.inputs[i].tensor;
        e = af_reference_run(&g, in, out, &r.values, &why);
        if (e)
                printf("skip %s: reference: %s\n", name, why ? why : "");
        else
                cut(&r);
        for (uint32_t i = 0; !e && i < g.n_outputs; i++)
                free(out[i].data);
        if (!e)
                af_reference_values_free(r.values, g.n_values);
        af_random_inputs_free(r.inputs, g.n_inputs);
        af_diags_deinit(&diags);
        free(in);
        free(out);
}

static void do_seed(struct setup *s, uint64_t seed) {
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        struct af_fragment f;
        char name[40];
        af_arena_init(&arena, 0);
        snprintf(name, sizeof(name), "seed%llu", (unsigned long long)seed);
        if (!af_random_fragment(&f, &arena, seed, NULL))
                do_fragment(s, &f, name, seed);
}

static void do_file(struct setup *s, const char *path) {
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        struct af_fragment f;
        struct af_diags diags = {0};
        char name[256];
        const char *stem = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(stem, "."), stem);
        af_arena_init(&arena, 0);
        if (af_io_read_file(path, 1 << 26, &text) || af_fragment_init(&f, &arena) ||
            af_fragment_parse(&f, (const char *)text.data, text.size, &diags))
                printf("skip %s: not a fragment\n", path);
        else
                do_fragment(s, &f, name, 1);
        af_diags_deinit(&diags);
}

static int prepare(struct setup *s, struct af_arena *arena, bool fast) {
        struct af_diags diags = {0};
        const char *data = af_data_dir(arena);
        char path[600];
        snprintf(path, sizeof(path), "%s/rules/soc", data);
        int e = af_soc_load(path, "Ascend910B2", &s->soc, NULL, &diags);
        snprintf(path, sizeof(path), "%s/rules/templates", data);
        if (!e)
                e = af_templates_load_dir(arena, path, &s->templates, &diags);
        snprintf(path, sizeof(path), "%s/twin", data);
        struct af_toolchain_config config = {.id = "host",
                                             .kind = AF_TOOLCHAIN_HOST,
                                             .twin_dir = af_arena_strdup(arena, path),
                                             .include_root = data,
                                             .pch_dir = getenv("AF_PCH_DIR"),
                                             .extra_flags = getenv("AF_TWIN_FLAGS")};
        if (!e && s->twin)
                e = af_toolchain_probe(arena, &config, &s->soc, fast ? AF_TWIN_FAST : AF_TWIN_CHECKED, &s->toolchain, &diags);
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        af_diags_format(&diags, &text);
        fprintf(stderr, "%.*s", (int)text.size, text.data ? (const char *)text.data : "");
        af_diags_deinit(&diags);
        return e;
}

struct options {
        unsigned long long first_seed, end_seed;
        bool fast;
        uint32_t cores, ub;
};

/* Index of the first file name; -1: not understood. */
static int parse(struct setup *s, struct options *o, int argc, char **argv) {
        int at = 1;
        for (; at < argc && argv[at][0] == '-'; at++) {
                bool more = at + 1 < argc;
                if (!strcmp(argv[at], "--single"))
                        s->single = true;
                else if (!strcmp(argv[at], "--specials"))
                        s->specials = true;
                else if (!strcmp(argv[at], "--fast"))
                        o->fast = true;
                else if (!strcmp(argv[at], "--dry"))
                        s->twin = false;
                else if (more && !strcmp(argv[at], "--seeds") && sscanf(argv[at + 1], "%llu:%llu", &o->first_seed, &o->end_seed) == 2)
                        at++;
                else if (more && !strcmp(argv[at], "--out"))
                        s->out = argv[++at];
                else if (more && !strcmp(argv[at], "--print"))
                        s->print = argv[++at];
                else if (more && !strcmp(argv[at], "--cores"))
                        o->cores = (uint32_t)atoi(argv[++at]);
                else if (more && !strcmp(argv[at], "--ub"))
                        o->ub = (uint32_t)atoi(argv[++at]);
                else
                        return -1;
        }
        return at;
}

int main(int argc, char **argv) {
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        struct setup s = {.twin = true};
        struct options o = {0};
        int at = parse(&s, &o, argc, argv);
        af_arena_init(&arena, 0);
        setvbuf(stdout, NULL, _IOLBF, 0);
        s.twin = s.twin && !s.out;
        if (at < 0 || prepare(&s, &arena, o.fast))
                return 2;
        s.soc.vector_cores = o.cores ? o.cores : s.soc.vector_cores;
        s.soc.ub_bytes = o.ub ? o.ub : s.soc.ub_bytes;
        if (s.out) {
                char path[600];
                snprintf(path, sizeof(path), "%s/cases.txt", s.out);
                s.cases = fopen(path, "w");
                if (!s.cases)
                        return 2;
        }
        for (unsigned long long seed = o.first_seed; seed < o.end_seed; seed++)
                do_seed(&s, seed);
        for (; at < argc; at++)
                do_file(&s, argv[at]);
        if (s.cases)
                fclose(s.cases);
        printf("%s %llu kernels of %llu nodes, %llu nodes unfit, %llu failures\n", s.n_failed ? "failed:" : "ok",
               (unsigned long long)s.n_kernels, (unsigned long long)s.n_nodes, (unsigned long long)s.n_unfit,
               (unsigned long long)s.n_failed);
        return s.n_failed != 0;
}
