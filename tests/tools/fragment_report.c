/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "compiler/reference/reference.h"
#include "runtime/solve.h"
#include "tests/lib/bind.h"
#include "tests/tools/fragment_runs.h"

#define MAX_ARGS      256u
#define MAX_SYMBOLS   16u
#define MOST_ELEMENTS (INT64_C(1) << 17) /* of a value whose size symbols choose */

struct report {
        struct setup *s;
        struct item *item;
        struct af_graph g;
        struct af_bundle bundle;
        struct af_plan_view plan;
        struct af_twin_stats *stats; /* per step */
        uint32_t step;               /* of the kernel launched next */
        const char *equal;           /* "null", "true", "false" */
        char why[700];
};

static void put_json(struct af_buf *out, const char *text) {
        af_buf_put_u8(out, '"');
        for (; *text; text++) {
                if (*text == '"' || *text == '\\')
                        af_buf_put_u8(out, '\\');
                if ((unsigned char)*text < 0x20)
                        af_buf_put_u8(out, ' ');
                else
                        af_buf_put_u8(out, (uint8_t)*text);
        }
        af_buf_put_u8(out, '"');
}

static uint64_t value_bytes(const struct af_graph *g, uint32_t v) {
        int64_t n = af_value_count(g, v);
        return n < 0 ? 0 : (uint64_t)n * af_dtype_size(g->values[v].dtype);
}

/* What a node moves by itself: each operand read once, no more of it than the result holds where the op picks elements; results written. */
static uint64_t node_bytes(const struct af_graph *g, const struct af_node *n) {
        uint64_t out = 0, in = 0;
        enum af_op_class cls = af_op_info(n->op)->cls;
        bool picks = cls == AF_CLASS_GATHER || cls == AF_CLASS_SLICE || cls == AF_CLASS_SPLIT;
        for (uint32_t i = 0; i < n->n_out; i++)
                out += value_bytes(g, n->out[i]);
        for (uint32_t i = 0; i < n->n_in; i++) {
                uint64_t bytes = value_bytes(g, n->in[i]);
                bool seen = false;
                for (uint32_t k = 0; k < i; k++)
                        seen |= n->in[k] == n->in[i];
                in += seen ? 0 : i == 0 && picks && bytes > out ? out : bytes;
        }
        return in + out;
}

static const struct af_bundle_step *step_at(const struct report *r, uint32_t i) {
        return af_bundle_at(&r->bundle, AF_SECTION_STEPS, i);
}

static uint32_t next_kernel_step(const struct af_bundle *b, uint32_t from) {
        while (from < af_bundle_count(b, AF_SECTION_STEPS) &&
               ((const struct af_bundle_step *)af_bundle_at(b, AF_SECTION_STEPS, from))->kind != AF_STEP_KERNEL)
                from++;
        return from;
}

static void put_arg(const struct report *r, const struct af_bundle_kernel *k, const struct af_bundle_arg *a, struct af_buf *out) {
        const struct af_bundle_buffer *buf = af_bundle_at(&r->bundle, AF_SECTION_BUFFERS, a->buffer);
        static const char *const kinds[] = {
                [AF_BUFFER_INPUT] = "in", [AF_BUFFER_OUTPUT] = "out", [AF_BUFFER_TEMP] = "temp", [AF_BUFFER_CONST] = "const"};
        const char *kind = kinds[buf->kind];
        uint64_t bytes = a->range_end - a->range_begin;
        uint32_t index = buf->kind == AF_BUFFER_OUTPUT ? buf->slot : a->buffer;
        if (a->access == (AF_ACCESS_READ | AF_ACCESS_WRITE) && k->workspace_bytes && buf->kind == AF_BUFFER_TEMP) {
                kind = "work";
                bytes = k->workspace_bytes;
        }
        if (buf->kind == AF_BUFFER_INPUT) {
                bytes = value_bytes(&r->g, r->g.inputs[buf->slot].value);
                for (index = 0; index < r->item->map.n_inputs && r->item->map.inputs[index] != buf->slot; index++)
                        ;
        }
        af_buf_printf(out, "[\"%s\",%u,%llu,%u]", kind, index, (unsigned long long)bytes, a->access);
}

static uint32_t count_lines(const struct report *r, const char *symbol) {
        uint32_t lines = 0;
        for (uint32_t i = 0; i < r->plan.n_kernels; i++)
                for (uint32_t k = 0; strcmp(r->plan.kernels[i].symbol, symbol) == 0 && k < r->plan.kernels[i].source_size; k++)
                        lines += r->plan.kernels[i].source[k] == '\n';
        return lines;
}

static void put_kernel(const struct report *r, uint32_t step, struct af_buf *out) {
        const struct af_bundle_step *s = step_at(r, step);
        const struct af_bundle_kernel *k = af_bundle_at(&r->bundle, AF_SECTION_KERNELS, s->kernel);
        const struct af_twin_stats *t = &r->stats[step];
        const char *symbol = af_bundle_str(&r->bundle, k->symbol);
        af_buf_put_str(out, "{\"ops\":");
        put_json(out, af_bundle_str(&r->bundle, k->ops));
        af_buf_put_str(out, ",\"symbol\":");
        put_json(out, symbol);
        af_buf_printf(out, ",\"blocks\":%u,\"lines\":%u,\"sync\":%u,\"ub\":%u,\"workspace\":%llu,\"moved\":%llu,\"modelled\":%llu",
                      k->block_dim, count_lines(r, symbol), k->needs_sync_all, k->ub_bytes, (unsigned long long)k->workspace_bytes,
                      (unsigned long long)(t->mte2_bytes + t->mte3_bytes + t->scalar_bytes), (unsigned long long)k->hbm_bytes);
        af_buf_printf(
                out,
                ",\"cycles\":%llu,\"modelled_cycles\":%llu,\"mte2\":%llu,\"v\":%llu,\"mte3\":%llu,\"s\":%llu,\"calls\":%llu,\"dmas\":%llu"
                ",\"args\":[",
                (unsigned long long)t->total_cycles, (unsigned long long)k->modelled_cycles, (unsigned long long)t->mte2_cycles,
                (unsigned long long)t->v_cycles, (unsigned long long)t->mte3_cycles, (unsigned long long)t->s_cycles,
                (unsigned long long)t->n_vector_calls, (unsigned long long)t->n_dma_calls);
        for (uint32_t i = 0; i < s->n_args; i++) {
                if (i)
                        af_buf_put_u8(out, ',');
                put_arg(r, k, af_bundle_at(&r->bundle, AF_SECTION_ARGS, s->first_arg + i), out);
        }
        af_buf_put_str(out, "]}");
}

static void put_steps(const struct report *r, bool kernels, struct af_buf *out) {
        bool first = true;
        for (uint32_t i = 0; i < af_bundle_count(&r->bundle, AF_SECTION_STEPS); i++) {
                const struct af_bundle_step *s = step_at(r, i);
                if ((s->kind == AF_STEP_KERNEL) != kernels)
                        continue;
                if (!first)
                        af_buf_put_u8(out, ',');
                first = false;
                if (kernels) {
                        put_kernel(r, i, out);
                        continue;
                }
                af_buf_printf(out, "{\"op\":\"%s\",\"bytes\":%llu,\"reason\":", af_op_info(r->g.nodes[s->node].op)->name,
                              (unsigned long long)node_bytes(&r->g, &r->g.nodes[s->node]));
                put_json(out, af_bundle_str(&r->bundle, s->reason));
                af_buf_put_u8(out, '}');
        }
}

static void print(const struct report *r) {
        AF_CLEANUP(af_buf_deinit) struct af_buf out = AF_BUF_INIT;
        af_buf_put_str(&out, "{\"name\":");
        put_json(&out, r->item->name);
        if (r->item->error[0]) {
                af_buf_put_str(&out, ",\"error\":");
                put_json(&out, r->item->error);
        }
        af_buf_put_str(&out, ",\"kernels\":[");
        if (r->stats)
                put_steps(r, true, &out);
        af_buf_put_str(&out, "],\"framework\":[");
        if (r->stats)
                put_steps(r, false, &out);
        af_buf_printf(&out, "],\"equal\":%s,\"why\":", r->equal);
        put_json(&out, r->why);
        af_buf_put_str(&out, "}\n");
        fwrite(out.data, 1, out.size, stdout);
}

static int launch_here(struct report *r, const char *symbol, const struct af_twin_launch *launch) {
        af_twin_launch_fn fn = batch_find(&r->s->batch, symbol);
        launch->error[0] = 0;
        if (!fn)
                snprintf(launch->error, launch->error_size, "%s did not compile", symbol);
        return fn ? fn(launch) : -1;
}

static int launch_and_keep(void *userdata, const char *symbol, const struct af_twin_launch *launch) {
        struct report *r = userdata;
        int e = launch_here(r, symbol, launch);
        r->step = next_kernel_step(&r->bundle, r->step);
        if (launch->stats && r->step < af_bundle_count(&r->bundle, AF_SECTION_STEPS))
                r->stats[r->step++] = *launch->stats;
        return e;
}

/* Every kernel step by itself, on no memory at all. */
static void count(struct report *r) {
        for (uint32_t i = next_kernel_step(&r->bundle, 0); i < af_bundle_count(&r->bundle, AF_SECTION_STEPS);
             i = next_kernel_step(&r->bundle, i + 1)) {
                const struct af_bundle_step *s = step_at(r, i);
                const struct af_bundle_kernel *k = af_bundle_at(&r->bundle, AF_SECTION_KERNELS, s->kernel);
                void *args[MAX_ARGS] = {0};
                uint64_t bytes[MAX_ARGS];
                struct af_twin_launch launch = {.args = args,
                                                .arg_bytes = bytes,
                                                .n_args = s->n_args,
                                                .tiling = k->tiling.size ? af_bundle_blob(&r->bundle, k->tiling) : NULL,
                                                .block_dim = k->block_dim,
                                                .n_blocks = k->block_dim,
                                                .count_only = 1,
                                                .stats = &r->stats[i],
                                                .error = r->why,
                                                .error_size = sizeof(r->why)};
                for (uint32_t a = 0; a < s->n_args && a < MAX_ARGS; a++)
                        bytes[a] = ((const struct af_bundle_arg *)af_bundle_at(&r->bundle, AF_SECTION_ARGS, s->first_arg + a))->range_end;
                if (s->n_args > MAX_ARGS || launch_here(r, af_bundle_str(&r->bundle, k->symbol), &launch)) {
                        r->equal = "false";
                        return;
                }
        }
}

/* Raw elements of the fragment's inputs, where there is a file. */
static int read_inputs(const struct report *r, struct af_tensor *inputs) {
        for (uint32_t i = 0; r->s->inputs && i < r->item->map.n_inputs; i++) {
                AF_CLEANUP(af_buf_deinit) struct af_buf bytes = AF_BUF_INIT;
                uint32_t slot = r->item->map.inputs[i];
                char path[600];
                if (slot == AF_NONE)
                        continue;
                snprintf(path, sizeof(path), "%s/%s.%u.in", r->s->inputs, r->item->name, i);
                int e = af_io_read_file(path, UINT32_MAX, &bytes);
                if (e == -ENOENT)
                        continue;
                if (e || bytes.size != value_bytes(&r->g, r->g.inputs[slot].value))
                        return e ? e : -EINVAL;
                memcpy(inputs[slot].data, bytes.data, bytes.size);
        }
        return 0;
}

static int write_outputs(const struct report *r, const struct af_tensor *outputs) {
        int e = 0;
        for (uint32_t i = 0; r->s->outputs && i < r->g.n_outputs && !e; i++) {
                char path[600];
                snprintf(path, sizeof(path), "%s/%s.%u.out", r->s->outputs, r->item->name, i);
                e = af_io_publish_file(path, outputs[i].data, value_bytes(&r->g, r->g.outputs[i].value), 0644);
        }
        return e;
}

static int run_and_compare(struct report *r, const struct run_launcher *launcher, bool specials, struct af_tensor *inputs, void **blocks,
                           struct af_tensor *got, struct af_tensor *want) {
        struct run_result result = {0};
        const char *why = NULL;
        if (make_inputs(&r->g, r->item->seed, specials, inputs, blocks) || read_inputs(r, inputs))
                snprintf(r->why, sizeof(r->why), "no inputs");
        else if (af_reference_run(&r->g, inputs, want, NULL, &why)) {
                snprintf(r->why, sizeof(r->why), "the reference refuses: %s", why ? why : "?");
                r->equal = "null";
        } else if (run_bundle_with(&r->g, &r->bundle, launcher, inputs, got, &result))
                snprintf(r->why, sizeof(r->why), "%s", result.error);
        else if (!compare_outputs(got, want, r->g.n_outputs, r->why, sizeof(r->why)) && write_outputs(r, got))
                snprintf(r->why, sizeof(r->why), "outputs cannot be written");
        return r->why[0] ? -1 : 0;
}

static void run(struct report *r, const struct run_launcher *launcher, bool specials) {
        uint32_t n_in = r->g.n_inputs, n_out = r->g.n_outputs;
        struct af_tensor *inputs = calloc(n_in + 1, sizeof(*inputs)), *got = calloc(n_out + 1, sizeof(*got)),
                         *want = calloc(n_out + 1, sizeof(*want));
        void **blocks = calloc(n_in + 1, sizeof(*blocks));
        r->step = 0;
        if (!inputs || !got || !want || !blocks)
                abort();
        r->equal = "false";
        if (!run_and_compare(r, launcher, specials, inputs, blocks, got, want))
                r->equal = "true";
        for (uint32_t i = 0; i < n_in; i++)
                free(blocks[i]);
        for (uint32_t i = 0; i < n_out; i++) {
                free(got[i].data);
                free(want[i].data);
        }
        free(blocks);
        free(inputs);
        free(got);
        free(want);
}

/* Runs once more, writing each launch. */
static void dump(struct report *r) {
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        struct af_driver_view view;
        struct af_diags diags = {0};
        af_arena_init(&arena, 0);
        int e = af_driver_view(&r->s->env, &arena, r->item->canon.data, r->item->canon.size, &r->s->opts, &view, &diags);
        struct dump d = {.s = r->s, .item = r->item, .bundle = &r->bundle, .view = &view};
        struct run_launcher launcher = {dump_launch, &d};
        if (!e)
                run(r, &launcher, r->s->specials);
        if (e || d.error) {
                snprintf(r->why, sizeof(r->why), "cases cannot be written: error %d", e ? e : d.error);
                r->equal = "false";
        }
        af_diags_deinit(&diags);
}

/* A form for the values that were chosen: bundle and graph of known sizes. False: none is run, said why in the report. */
static bool choose_sizes(struct report *r, struct af_solved *solved) {
        int64_t values[MAX_SYMBOLS];
        const char *why = "";
        if (!r->g.n_symbols)
                return true;
        if (r->g.n_symbols > MAX_SYMBOLS || !bind_choice(&r->g, r->s->symbols, MOST_ELEMENTS, values)) {
                snprintf(r->why, sizeof(r->why), "no such values of the symbols");
                return false;
        }
        int e = af_graph_bind(&r->g, values);
        if (!e)
                e = af_solve(&r->bundle, values, solved, NULL, &why);
        if (!e)
                r->bundle = solved->view;
        else
                snprintf(r->why, sizeof(r->why), "refused: %s", why);
        if (e && !(e == AF_SOLVE_E_NODE && bind_reduces_nothing(&r->g)))
                r->equal = "false";
        return !e;
}

void item_report(struct setup *s, struct item *item) {
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        struct report r = {.s = s, .item = item, .equal = "null"};
        struct af_solved solved = {0};
        struct run_launcher launcher = {launch_and_keep, &r};
        struct af_diags diags = {0};
        const char *why = "the plan does not open";
        af_arena_init(&arena, 0);
        if (!item->error[0] && (af_canon_read(&r.g, &arena, item->canon.data, item->canon.size, &diags) ||
                                af_plan_read(item->plan.data, item->plan.size, &r.plan) ||
                                af_bundle_open(r.plan.skeleton, r.plan.skeleton_size, &r.bundle, &why)))
                snprintf(item->error, sizeof(item->error), "%s", why);
        if (!item->error[0]) {
                r.stats = calloc(af_bundle_count(&r.bundle, AF_SECTION_STEPS) + 1, sizeof(*r.stats));
                if (!r.stats)
                        abort();
                bool sized = choose_sizes(&r, &solved);
                for (int specials = 0; sized && s->run && !s->dump && !r.why[0] && specials <= s->specials; specials++)
                        run(&r, &launcher, specials);
                if (sized && s->dump)
                        dump(&r);
                if (sized && s->count)
                        count(&r);
        }
        print(&r);
        free(r.stats);
        af_solved_deinit(&solved);
        af_plan_view_deinit(&r.plan);
        af_diags_deinit(&diags);
}
