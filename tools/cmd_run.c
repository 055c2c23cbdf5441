/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "tools/commands.h"
#include "tools/exec.h"
#include "tools/out.h"
#include "tools/report.h"
#include "tools/session.h"

static const struct af_option options[] = {
        AF_OPTIONS_COMMON,
        AF_OPTION_OFFLINE,
        {'c', "compare", AF_OPTION_FLAG, NULL, "compare with the reference interpreter, bit for bit"},
        {0, "seed", AF_OPTION_NUMBER, "N", "seed of the random inputs (1)"},
        {0, "specials", AF_OPTION_FLAG, NULL, "inputs also have NaN, infinities, -0.0, subnormals, extreme integers"},
        {'i', "input", AF_OPTION_LIST, "NAME=FILE", "take an input from a file: its elements, row-major, little-endian"},
        {0, "save", AF_OPTION_TEXT, "DIR", "write each output to DIR/<number>.bin, row-major"},
        {0, "checked", AF_OPTION_FLAG, NULL, "compile for the checked twin: rules of the hardware are enforced, bytes and cycles counted"},
        {0, "unfused", AF_OPTION_FLAG, NULL, "one kernel per node (with --offline)"},
        {0, "symbol", AF_OPTION_LIST, "NAME=SIZE", "run at this size (else at the symbol's hint)"},
        AF_OPTIONS_SERVER,
        {0},
};

/* One size per symbol of the fragment. */
static int read_symbols(const struct af_args *args, const struct af_frag *frag, int64_t *values) {
        const char *spec;
        af_graph_hints(&frag->g, values);
        for (uint32_t i = 0; (spec = af_args_list(args, "symbol", i)); i++) {
                const char *equals = strchr(spec, '=');
                uint32_t n = 0;
                char *end = NULL;
                while (equals && n < frag->f.n_symbols &&
                       !(strlen(frag->f.symbols[n].name) == (size_t)(equals - spec) &&
                         strncmp(frag->f.symbols[n].name, spec, (size_t)(equals - spec)) == 0))
                        n++;
                if (!equals || n == frag->f.n_symbols) {
                        fprintf(stderr, "error: --symbol %s: %s\n", spec, equals ? "the fragment has no such symbol" : "wants NAME=SIZE");
                        return AF_EXIT_FAILED;
                }
                errno = 0;
                values[n] = strtoll(equals + 1, &end, 10);
                if (errno || end == equals + 1 || *end) {
                        fprintf(stderr, "error: --symbol %s: no number\n", spec);
                        return AF_EXIT_FAILED;
                }
        }
        return AF_EXIT_OK;
}

/* A form becomes the bundle, and the graph the one, of the sizes that were asked for. */
static int solve(const struct af_args *args, struct af_frag *frag, struct autofuse_bundle **bundle) {
        int64_t *values = calloc((size_t)frag->f.n_symbols + 1, sizeof(*values));
        struct autofuse_bundle *solved = NULL;
        struct autofuse_error *error = NULL;
        int r = values ? read_symbols(args, frag, values) : AF_EXIT_FAILED;
        if (r == AF_EXIT_OK) {
                enum autofuse_status status = autofuse_bundle_solve(*bundle, values, frag->f.n_symbols, &solved, &error);
                if (status != AUTOFUSE_OK) {
                        af_session_report(frag->path, status, error);
                        r = AF_EXIT_FAILED;
                }
        }
        if (r == AF_EXIT_OK) {
                autofuse_bundle_unref(*bundle);
                *bundle = solved;
                if (af_graph_bind(&frag->g, values)) {
                        fprintf(stderr, "error: %s: a size overflows at these symbols\n", frag->path);
                        r = AF_EXIT_FAILED;
                }
        }
        free(values);
        return r;
}

static int read_inputs(const struct af_args *args, struct af_exec *x) {
        const struct af_graph *g = &x->frag->g;
        const char *spec;
        for (uint32_t i = 0; (spec = af_args_list(args, "input", i)); i++) {
                const char *equals = strrchr(spec, '=');
                uint32_t n = 0;
                while (equals && n < g->n_inputs &&
                       !(strlen(g->values[g->inputs[n].value].name) == (size_t)(equals - spec) &&
                         strncmp(g->values[g->inputs[n].value].name, spec, (size_t)(equals - spec)) == 0))
                        n++;
                if (!equals || n == g->n_inputs) {
                        fprintf(stderr, "error: --input %s: %s\n", spec, equals ? "the fragment has no such input" : "wants NAME=FILE");
                        return AF_EXIT_FAILED;
                }
                if (af_exec_read(x, n, equals + 1) != 0)
                        return AF_EXIT_FAILED;
        }
        return AF_EXIT_OK;
}

static int save_outputs(const struct af_args *args, const struct af_exec *x) {
        const char *dir = af_args_text(args, "save");
        int r = dir ? af_io_make_dirs(dir, 0755) : 0;
        if (r < 0)
                fprintf(stderr, "error: %s: %s\n", dir, strerror(-r));
        for (uint32_t i = 0; dir && r == 0 && i < x->frag->g.n_outputs; i++) {
                char path[4096];
                snprintf(path, sizeof(path), "%s/%u.bin", dir, i);
                r = af_exec_write(x, i, path);
        }
        return r ? AF_EXIT_FAILED : AF_EXIT_OK;
}

/* Prints outputs, compared where asked; returns how many differ. *ret_worst: the largest error. */
static uint32_t show_outputs(const struct af_exec *x, bool compare, struct af_table *t, cJSON *list, double *ret_worst) {
        const struct af_graph *g = &x->frag->g;
        uint32_t n_bad = 0;
        for (uint32_t i = 0; i < g->n_outputs; i++) {
                AF_CLEANUP(af_buf_deinit) struct af_buf shape = AF_BUF_INIT;
                double error = 0;
                uint64_t first = 0, n_differ = compare ? af_tensor_compare(&x->outputs[i].t, &x->expected[i], &error, &first) : 0;
                const char *name = x->frag->f.outputs[i].value;
                af_exec_shape(g, g->outputs[i].value, &shape);
                cJSON *o = cJSON_CreateObject();
                cJSON_AddStringToObject(o, "name", name);
                cJSON_AddStringToObject(o, "dtype", af_dtype_name(x->outputs[i].t.dtype));
                if (compare) {
                        cJSON_AddNumberToObject(o, "differing", (double)n_differ);
                        cJSON_AddNumberToObject(o, "largest_error", isfinite(error) ? error : -1);
                }
                cJSON_AddItemToArray(list, o);
                af_table_add(t, "%s", name);
                af_table_add(t, "%s", af_dtype_name(x->outputs[i].t.dtype));
                af_table_add(t, "%.*s", (int)shape.size, shape.size ? (const char *)shape.data : "");
                if (compare) {
                        af_table_add(t, "%llu", (unsigned long long)n_differ);
                        af_table_add(t, "%.3g", error);
                        if (n_differ)
                                af_table_add(t, "first at element %llu", (unsigned long long)first);
                        else
                                af_table_add(t, "identical");
                }
                n_bad += n_differ > 0;
                *ret_worst = fmax(*ret_worst, error);
        }
        return n_bad;
}

static void show_counters(const struct af_exec *x, cJSON *o, bool json) {
        const struct af_twin_stats *t = &x->stats.twin;
        char in[32], out[32];
        cJSON_AddNumberToObject(o, "mte2_bytes", (double)t->mte2_bytes);
        cJSON_AddNumberToObject(o, "mte3_bytes", (double)t->mte3_bytes);
        cJSON_AddNumberToObject(o, "scalar_bytes", (double)t->scalar_bytes);
        cJSON_AddNumberToObject(o, "cycles", (double)t->total_cycles);
        if (!json)
                printf("counted: %s in, %s out, %llu cycles (MTE2 %llu, V %llu, MTE3 %llu)\n",
                       af_out_bytes(t->mte2_bytes + t->scalar_bytes, in), af_out_bytes(t->mte3_bytes, out),
                       (unsigned long long)t->total_cycles, (unsigned long long)t->mte2_cycles, (unsigned long long)t->v_cycles,
                       (unsigned long long)t->mte3_cycles);
}

/* After the run: everything that is printed. Returns the exit code. */
static int show(const struct af_args *args, const struct af_frag *frag, const struct af_exec *x, const struct autofuse_bundle *bundle) {
        bool compare = af_args_flag(args, "compare"), json = af_args_flag(args, "json");
        struct autofuse_bundle_info info;
        struct af_table table;
        cJSON *o = af_report_bundle(frag, bundle), *list = cJSON_CreateArray();
        double worst = 0;
        char text[32];
        static const char *const heads[] = {"output", "dtype", "shape", "differing", "largest error", ""};
        autofuse_bundle_info(bundle, &info);
        af_table_init(&table, heads, compare ? 6 : 3);
        uint32_t n_bad = show_outputs(x, compare, &table, list, &worst);
        cJSON_AddItemToObject(o, "outputs", list);
        cJSON_AddNumberToObject(o, "run_us", (double)x->run_us);
        if (!json) {
                printf("%u node%s: %u fused into %u launch%s, %u left to the framework; ran in %s\n", frag->f.n_nodes,
                       frag->f.n_nodes == 1 ? "" : "s", info.n_nodes_fused, info.n_kernel_steps, info.n_kernel_steps == 1 ? "" : "es",
                       info.n_framework_steps, af_out_us(x->run_us, text));
                af_report_fallbacks(bundle, stdout);
                af_table_print(&table, 2, stdout);
        }
        if (af_args_flag(args, "checked"))
                show_counters(x, o, json);
        if (compare) {
                cJSON_AddNumberToObject(o, "largest_error", isfinite(worst) ? worst : -1);
                cJSON_AddBoolToObject(o, "identical", n_bad == 0);
                if (!json && n_bad)
                        printf("mismatch: %u of %u outputs, largest error %.3g\n", n_bad, frag->g.n_outputs, worst);
                else if (!json)
                        printf("identical: largest error 0\n");
        }
        af_table_deinit(&table);
        if (json)
                af_out_json(o);
        else
                cJSON_Delete(o);
        return n_bad ? AF_EXIT_FAILED : save_outputs(args, x);
}

static int execute(const struct af_args *args, const struct af_frag *frag, struct autofuse_bundle *bundle) {
        struct af_exec x;
        struct autofuse_error *error = NULL;
        if (af_exec_init(&x, frag) != 0)
                return AF_EXIT_FAILED;
        af_exec_fill(&x, af_args_number(args, "seed", 1), af_args_flag(args, "specials"));
        int r = read_inputs(args, &x);
        if (r == AF_EXIT_OK && af_args_flag(args, "compare"))
                r = af_exec_reference(&x);
        if (r == AF_EXIT_OK) {
                enum autofuse_status status = af_exec_run(&x, bundle, af_args_flag(args, "checked"), &error);
                if (status != AUTOFUSE_OK) {
                        af_session_report(frag->path, status, error);
                        r = AF_EXIT_FAILED;
                } else {
                        r = show(args, frag, &x, bundle);
                }
        }
        af_exec_deinit(&x);
        return r;
}

static int run(const struct af_args *args) {
        struct af_session s;
        struct af_frag frag;
        struct autofuse_bundle *bundle = NULL;
        struct autofuse_error *error = NULL;
        if (af_frag_load(args->operands[0], &frag) != 0)
                return AF_EXIT_FAILED;
        if (af_args_flag(args, "checked"))
                frag.f.twin = AF_TWIN_CHECKED;
        int r = af_session_open(args, &s);
        if (r == AF_EXIT_OK) {
                if (!s.offline && af_args_flag(args, "unfused"))
                        fprintf(stderr, "autofusectl run: --unfused needs --offline; the server fuses\n");
                s.opts.no_fuse = af_args_flag(args, "unfused");
                enum autofuse_status status = af_session_compile(&s, &frag.f, &bundle, &error);
                if (status != AUTOFUSE_OK) {
                        af_session_report(frag.path, status, error);
                        r = AF_EXIT_FAILED;
                } else {
                        r = frag.f.n_symbols ? solve(args, &frag, &bundle) : AF_EXIT_OK;
                        if (r == AF_EXIT_OK)
                                r = execute(args, &frag, bundle);
                }
                autofuse_bundle_unref(bundle);
                af_session_close(&s);
        }
        af_frag_deinit(&frag);
        return r;
}

const struct af_command af_command_run = {
        .name = "run",
        .operands = "FRAG.json",
        .summary = "compile a fragment and run it on the CPU twin",
        .details = "Nodes that are left to the framework are evaluated by the reference interpreter.\n\nWith --compare the exit code is 1 "
                   "where any bit of an output differs (all NaNs "
                   "count as one, -0.0 and +0.0 as two).",
        .options = options,
        .min_operands = 1,
        .max_operands = 1,
        .run = run,
};
