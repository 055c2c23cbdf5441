/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/runner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/graph/canon.h"
#include "runtime/solve.h"
#include "tests/lib/bind.h"
#include "tests/lib/eval.h"
#include "tests/lib/run_bundle.h"

#define FLUSH_KERNELS 800u

struct variant {
        const char *name;
        bool checked;
        struct af_driver_opts opts;
};
static const struct variant variants[RUNNER_N_VARIANTS] = {
        [RUNNER_DEFAULT] = {"default", true, {0}},
        [RUNNER_UNFUSED] = {"unfused", true, {.no_fuse = true}},
        [RUNNER_SMALL] = {"small", true, {.max_cores = 3, .max_tile_bytes = 24 * 1024}},
        [RUNNER_FAST] = {"fast", false, {0}},
};

struct numbers { /* of one tensor each, row-major; NULL: none given */
        double **in, **out;
        uint32_t n_in, n_out;
};
struct runner_item {
        char *what;
        uint32_t variant;
        uint64_t seed;
        struct af_buf canon, bytes; /* bytes: a plan, or with `single` a bundle */
        struct numbers numbers;     /* n_in 0 and n_out 0: random data */
};

void runner_report(struct runner *r, const char *what, const char *variant, const char *text) {
        printf("not ok %s %s: %s\n", what, variant, text);
        r->n_failed++;
}

static void report_diags(struct runner *r, const char *what, const char *variant, int code, const struct af_diags *diags,
                         const struct af_buf *err) {
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        af_buf_printf(&text, "error %d\n", code);
        af_diags_format(diags, &text);
        if (err)
                af_buf_put(&text, err->data, AF_MIN(err->size, (size_t)4000));
        af_buf_put_u8(&text, 0);
        runner_report(r, what, variant, (const char *)text.data);
}

static bool load_env(struct af_env *env, struct af_arena *arena, const struct af_toolchain_config *host, enum af_twin twin) {
        struct af_env_config config = {.toolchains = host, .n_toolchains = 1};
        struct af_diags diags = {0};
        int r = af_env_load(env, arena, &config, NULL, NULL, twin, &diags);
        if (r)
                printf("not ok environment: error %d %s\n", r, diags.n_items ? diags.items[0].what : "");
        af_diags_deinit(&diags);
        return r == 0;
}

bool runner_init(struct runner *r, const char *names, const char *flags) {
        *r = (struct runner){0};
        af_arena_init(&r->arena, 0);
        setvbuf(stdout, NULL, _IOLBF, 0);
        for (size_t i = 0; i < RUNNER_N_VARIANTS; i++)
                r->wanted[i] = strstr(names, variants[i].name) != NULL;
        struct af_toolchain_config quick = batch_toolchain(flags), served = batch_toolchain("");
        if (!load_env(&r->checked, &r->arena, &quick, AF_TWIN_CHECKED))
                return false;
        if (r->wanted[RUNNER_FAST] && !load_env(&r->fast, &r->arena, &served, AF_TWIN_FAST))
                return false;
        batch_init(&r->batches[0], &r->checked.toolchain);
        batch_init(&r->batches[1], &r->fast.toolchain);
        return true;
}

void runner_deinit(struct runner *r) {
        for (uint32_t i = 0; i < r->n_fallbacks; i++)
                free(r->fallbacks[i].what);
        free(r->fallbacks);
        free(r->items);
        batch_reset(&r->batches[0]);
        batch_reset(&r->batches[1]);
        af_arena_deinit(&r->arena);
}

static void count_fallback(struct runner *r, const char *what) {
        for (uint32_t i = 0; i < r->n_fallbacks; i++)
                if (strcmp(r->fallbacks[i].what, what) == 0) {
                        r->fallbacks[i].count++;
                        return;
                }
        struct runner_fallback *grown = realloc(r->fallbacks, (r->n_fallbacks + 1) * sizeof(*grown));
        if (!grown)
                return;
        r->fallbacks = grown;
        char *copy = strdup(what);
        if (copy)
                r->fallbacks[r->n_fallbacks++] = (struct runner_fallback){copy, 1};
}

/* Counts the framework steps of a bundle by op, dtypes and reason; one without a reason is a failure. */
static void note_fallbacks(struct runner *r, const struct runner_item *item, const struct af_graph *g, const struct af_bundle *b) {
        for (uint32_t i = 0; i < af_bundle_count(b, AF_SECTION_STEPS); i++) {
                const struct af_bundle_step *s = af_bundle_at(b, AF_SECTION_STEPS, i);
                char what[400];
                size_t n = 0;
                if (s->kind != AF_STEP_FRAMEWORK || s->node >= g->n_nodes)
                        continue;
                const struct af_node *node = &g->nodes[s->node];
                const char *reason = af_bundle_str(b, s->reason);
                n += (size_t)snprintf(what, sizeof(what), "%s", af_op_info(node->op)->name);
                for (uint32_t k = 0; k < node->n_in; k++)
                        n += (size_t)snprintf(what + n, sizeof(what) - n, " %s", af_dtype_name(g->values[node->in[k]].dtype));
                snprintf(what + n, sizeof(what) - n, " -> %s: %s", af_dtype_name(g->values[node->out[0]].dtype), reason ? reason : "");
                if (!reason || !reason[0])
                        runner_report(r, item->what, variants[item->variant].name, "a fallback without a reason");
                count_fallback(r, what);
        }
}

static int launch_batch(void *userdata, const char *symbol, const struct af_twin_launch *launch) {
        af_twin_launch_fn fn = batch_find(userdata, symbol);
        if (launch->error_size)
                launch->error[0] = 0;
        if (!fn && launch->error_size)
                snprintf(launch->error, launch->error_size, "%s did not compile", symbol);
        return fn ? fn(launch) : -1;
}

static void free_tensors(struct af_tensor *t, uint32_t n) {
        for (uint32_t i = 0; t && i < n; i++)
                free(t[i].data);
        free(t);
}

static bool gathers(const struct af_graph *g) {
        for (uint32_t i = 0; i < g->n_nodes; i++)
                if (af_op_info(g->nodes[i].op)->cls == AF_CLASS_GATHER)
                        return true;
        return false;
}

/* Counts of the twin against the schedule's; cycles are rounded per kernel. What a gather reads hangs on its index: at most what is stated.
 */
static void compare_model(struct runner *r, const struct runner_item *item, const struct af_graph *g, const struct run_result *result) {
        char text[200];
        uint64_t c = result->cycles, m = result->modelled_cycles, off = c > m ? c - m : m - c;
        r->moved += result->moved_bytes;
        r->modelled += result->modelled_bytes;
        r->cycles += c;
        r->modelled_cycles += m;
        if (result->moved_bytes == result->modelled_bytes && off <= result->n_kernel_steps)
                return;
        if (gathers(g) && result->moved_bytes <= result->modelled_bytes && c <= m + result->n_kernel_steps)
                return;
        r->n_model_off++;
        snprintf(text, sizeof(text), "counted %llu bytes and %llu cycles, modelled %llu and %llu", (unsigned long long)result->moved_bytes,
                 (unsigned long long)c, (unsigned long long)result->modelled_bytes, (unsigned long long)m);
        if (r->exact_model)
                runner_report(r, item->what, variants[item->variant].name, text);
}

static int64_t count_of(const struct af_tensor *t) {
        int64_t n = 1;
        for (uint32_t i = 0; i < t->rank; i++)
                n *= t->dims[i];
        return n;
}

static void free_numbers(struct numbers *n) {
        for (uint32_t i = 0; i < n->n_in; i++)
                free(n->in[i]);
        for (uint32_t i = 0; i < n->n_out; i++)
                free(n->out[i]);
        free(n->in);
        free(n->out);
        *n = (struct numbers){0};
}

static void put_numbers(const struct numbers *n, struct af_tensor *inputs) {
        for (uint32_t i = 0; i < n->n_in; i++)
                if (n->in[i])
                        af_test_numbers_put(&inputs[i], n->in[i]);
}

/* What the reference gave against what must come: NaN is NaN, -0.0 is not 0.0. */
static bool numbers_hold(const struct numbers *n, const struct af_tensor *outputs, char *text, size_t text_size) {
        for (uint32_t i = 0; i < n->n_out; i++)
                for (int64_t k = 0; n->out[i] && k < count_of(&outputs[i]); k++) {
                        double v =
                                af_test_number_get((const char *)outputs[i].data + k * af_dtype_size(outputs[i].dtype), outputs[i].dtype);
                        double want = n->out[i][k];
                        if ((isnan(v) && isnan(want)) || (v == want && signbit(v) == signbit(want)))
                                continue;
                        snprintf(text, text_size, "output %u[%lld] is %g, not %g", i, (long long)k, v, want);
                        return false;
                }
        return true;
}

/* Runs a bundle on one set of inputs and compares. */
static void run_once(struct runner *r, const struct runner_item *item, const struct af_graph *g, const struct af_bundle *b, bool specials) {
        const struct variant *v = &variants[item->variant];
        struct run_launcher launcher = {launch_batch, &r->batches[!v->checked]};
        struct af_tensor *inputs = calloc(g->n_inputs + 1, sizeof(*inputs)), *got = calloc(g->n_outputs + 1, sizeof(*got)),
                         *want = calloc(g->n_outputs + 1, sizeof(*want));
        void **blocks = calloc(g->n_inputs + 1, sizeof(*blocks));
        struct run_result result = {0};
        char text[600] = "";
        const char *why = NULL;
        r->n_runs++;
        if (!inputs || !got || !want || !blocks || make_inputs(g, item->seed, specials, inputs, blocks))
                snprintf(text, sizeof(text), "no inputs");
        else if (put_numbers(&item->numbers, inputs), af_reference_run(g, inputs, want, NULL, &why))
                snprintf(text, sizeof(text), "the reference refuses: %s", why ? why : "?");
        else if (!numbers_hold(&item->numbers, want, text, sizeof(text)))
                ; /* text says it */
        else if (run_bundle_with(g, b, r->single ? NULL : &launcher, inputs, got, &result))
                snprintf(text, sizeof(text), "%s", result.error);
        else
                compare_outputs(got, want, g->n_outputs, text, sizeof(text));
        if (text[0])
                runner_report(r, item->what, v->name, text);
        r->n_kernels += result.n_kernel_steps;
        r->n_framework += result.n_framework_steps;
        r->n_nodes += result.n_nodes_fused;
        if (v->checked && !text[0] && !g->n_symbols) /* the model counts at the hints */
                compare_model(r, item, g, &result);
        for (uint32_t i = 0; blocks && i < g->n_inputs; i++)
                free(blocks[i]);
        free(blocks);
        free(inputs);
        free_tensors(got, g->n_outputs);
        free_tensors(want, g->n_outputs);
}

/* A form at several values of its symbols; a failure says which. */
static void run_form(struct runner *r, struct runner_item *item, const struct af_bundle *form) {
        char *what = item->what;
        for (uint32_t k = 0;; k++) {
                AF_CLEANUP(af_arena_deinit) struct af_arena arena;
                struct af_graph g;
                struct af_diags diags = {0};
                struct af_solved solved;
                int64_t values[16];
                char text[300];
                const char *why = "";
                af_arena_init(&arena, 0);
                if (af_canon_read(&g, &arena, item->canon.data, item->canon.size, &diags) || g.n_symbols > AF_ARRAY_SIZE(values)) {
                        runner_report(r, what, variants[item->variant].name, "a form with more symbols than the test binds");
                        break;
                }
                if (!bind_choice(&g, k, r->most_elements, values))
                        break;
                size_t n = (size_t)snprintf(text, sizeof(text), "%s at", what);
                for (uint32_t i = 0; i < g.n_symbols; i++)
                        n += (size_t)snprintf(text + n, sizeof(text) - n, " %lld", (long long)values[i]);
                item->what = text;
                int e = af_graph_bind(&g, values);
                if (!e)
                        e = af_solve(form, values, &solved, NULL, &why);
                bool refused = e == AF_SOLVE_E_NODE && bind_reduces_nothing(&g);
                r->n_refused += refused;
                if (!e && bind_reduces_nothing(&g)) {
                        af_solved_deinit(&solved);
                        e = -1;
                        why = "a node reduces nothing and is not refused";
                }
                if (refused)
                        continue;
                if (e) {
                        runner_report(r, text, variants[item->variant].name, why);
                        continue;
                }
                run_once(r, item, &g, &solved.view, k % 2);
                af_solved_deinit(&solved);
        }
        item->what = what;
}

static void run_item(struct runner *r, struct runner_item *item) {
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        struct af_plan_view plan = {0};
        struct af_graph g;
        struct af_diags diags = {0};
        struct af_bundle bundle;
        const char *why = "the plan does not open", *name = variants[item->variant].name;
        af_arena_init(&arena, 0);
        int e = af_canon_read(&g, &arena, item->canon.data, item->canon.size, &diags);
        if (!e && r->single)
                e = af_bundle_open(item->bytes.data, item->bytes.size, &bundle, &why);
        else if (!e)
                e = af_plan_read(item->bytes.data, item->bytes.size, &plan) ||
                    af_bundle_open(plan.skeleton, plan.skeleton_size, &bundle, &why);
        if (e)
                runner_report(r, item->what, name, why);
        else
                note_fallbacks(r, item, &g, &bundle);
        if (!e && g.n_symbols)
                run_form(r, item, &bundle);
        for (int specials = 0; !e && !g.n_symbols && specials < (item->numbers.n_out ? 1 : 2); specials++)
                run_once(r, item, &g, &bundle, specials);
        af_plan_view_deinit(&plan);
        af_diags_deinit(&diags);
}

void runner_flush(struct runner *r) {
        for (int i = 0; i < 2; i++) {
                AF_CLEANUP(af_buf_deinit) struct af_buf err = AF_BUF_INIT;
                int e = batch_build(&r->batches[i], &err);
                if (e)
                        report_diags(r, "batch", i ? "fast" : "checked", e, &(struct af_diags){0}, &err);
        }
        for (uint32_t i = 0; i < r->n_items; i++) {
                run_item(r, &r->items[i]);
                free(r->items[i].what);
                free_numbers(&r->items[i].numbers);
                af_buf_deinit(&r->items[i].canon);
                af_buf_deinit(&r->items[i].bytes);
        }
        r->n_items = 0;
        batch_reset(&r->batches[0]);
        batch_reset(&r->batches[1]);
}

static int queue_kernels(struct batch *b, const struct af_buf *bytes) {
        struct af_plan_view plan = {0};
        int e = af_plan_read(bytes->data, bytes->size, &plan);
        for (uint32_t i = 0; !e && i < plan.n_kernels; i++)
                e = batch_add(b, plan.kernels[i].symbol, plan.kernels[i].source, plan.kernels[i].source_size);
        af_plan_view_deinit(&plan);
        return e;
}

/* Elements of a value, copied; NULL where there are none. */
static double *copy_of(const struct af_graph *g, uint32_t value, const double *numbers) {
        int64_t n = af_value_count(g, value);
        double *copy = numbers && n >= 0 ? malloc((size_t)(n + 1) * sizeof(*copy)) : NULL;
        if (copy)
                memcpy(copy, numbers, (size_t)n * sizeof(*copy));
        return copy;
}

/* A case's numbers by canonical slot. */
struct given {
        const struct af_graph *g; /* as the sender wrote it */
        const double *const *in, *const *out;
        struct af_slot_map map;
};

static struct numbers take_numbers(const struct given *given) {
        const struct af_graph *g = given->g;
        struct numbers n = {0};
        if (!given->out)
                return n;
        n.in = calloc(g->n_inputs + 1, sizeof(*n.in));
        n.out = calloc(g->n_outputs + 1, sizeof(*n.out));
        if (!n.in || !n.out)
                abort();
        n.n_in = g->n_inputs;
        n.n_out = g->n_outputs;
        for (uint32_t i = 0; i < g->n_inputs; i++)
                if (given->map.inputs[i] != AF_NONE)
                        n.in[given->map.inputs[i]] = copy_of(g, g->inputs[i].value, given->in ? given->in[i] : NULL);
        for (uint32_t i = 0; i < g->n_outputs; i++)
                n.out[i] = copy_of(g, g->outputs[i].value, given->out[i]);
        return n;
}

static void add_variant(struct runner *r, const char *what, uint32_t variant, const struct af_buf *canon, uint64_t seed,
                        const struct given *given) {
        const struct variant *v = &variants[variant];
        const struct af_env *env = v->checked ? &r->checked : &r->fast;
        AF_CLEANUP(af_buf_deinit) struct af_buf err = AF_BUF_INIT;
        struct runner_item item = {.what = strdup(what), .variant = variant, .seed = seed};
        struct af_diags diags = {0};
        int e = r->single ? af_driver_compile(env, canon->data, canon->size, &v->opts, &item.bytes, &err, &diags)
                          : af_driver_plan(env, canon->data, canon->size, &v->opts, &item.bytes, &diags);
        if (!e && !r->single)
                e = queue_kernels(&r->batches[!v->checked], &item.bytes);
        af_buf_put(&item.canon, canon->data, canon->size);
        if (e || !item.what || af_buf_error(&item.canon)) {
                report_diags(r, what, v->name, e, &diags, &err);
                free(item.what);
                af_buf_deinit(&item.canon);
                af_buf_deinit(&item.bytes);
        } else {
                if (r->n_items == r->cap_items) {
                        r->cap_items = r->cap_items ? r->cap_items * 2 : 64;
                        r->items = realloc(r->items, r->cap_items * sizeof(*r->items));
                        if (!r->items)
                                abort();
                }
                item.numbers = take_numbers(given);
                r->items[r->n_items++] = item;
        }
        af_diags_deinit(&diags);
}

static void add(struct runner *r, const char *what, const struct af_fragment *f, uint64_t seed, const double *const *in,
                const double *const *out) {
        AF_CLEANUP(af_buf_deinit) struct af_buf canon = AF_BUF_INIT;
        struct af_graph written;
        struct given given = {.g = &written, .in = in, .out = out};
        struct af_diags diags = {0};
        int e = af_graph_from_fragment(&written, f, &diags);
        if (!e)
                e = af_canon_write(&written, &canon, &given.map);
        if (e)
                report_diags(r, what, "graph", e, &diags, NULL);
        for (uint32_t i = 0; !e && i < RUNNER_N_VARIANTS; i++)
                if (r->wanted[i])
                        add_variant(r, what, i, &canon, seed, &given);
        af_slot_map_deinit(&given.map);
        af_diags_deinit(&diags);
        if (r->single || r->batches[0].n_kernels + r->batches[1].n_kernels >= FLUSH_KERNELS || r->n_items >= 1000)
                runner_flush(r);
}

void runner_add(struct runner *r, const char *what, const struct af_fragment *f, uint64_t seed) {
        add(r, what, f, seed, NULL, NULL);
}

void runner_add_numbers(struct runner *r, const char *what, const struct af_fragment *f, const double *const *in,
                        const double *const *out) {
        add(r, what, f, 1, in, out);
}

static int by_text(const void *a, const void *b) {
        return strcmp(((const struct runner_fallback *)a)->what, ((const struct runner_fallback *)b)->what);
}

int runner_finish(struct runner *r, bool list_fallbacks) {
        runner_flush(r);
        if (list_fallbacks && r->n_fallbacks)
                qsort(r->fallbacks, r->n_fallbacks, sizeof(*r->fallbacks), by_text);
        for (uint32_t i = 0; list_fallbacks && i < r->n_fallbacks; i++)
                printf("# fallback %s (%llu)\n", r->fallbacks[i].what, (unsigned long long)r->fallbacks[i].count);
        printf("# %llu kernels launched with %llu nodes, %llu framework steps\n", (unsigned long long)r->n_kernels,
               (unsigned long long)r->n_nodes, (unsigned long long)r->n_framework);
        if (r->n_refused)
                printf("# %llu values of symbols refused, as they must be\n", (unsigned long long)r->n_refused);
        printf("# counted %llu bytes and %llu cycles, modelled %llu and %llu; they differ in %llu runs\n", (unsigned long long)r->moved,
               (unsigned long long)r->cycles, (unsigned long long)r->modelled, (unsigned long long)r->modelled_cycles,
               (unsigned long long)r->n_model_off);
        if (!r->n_failed && r->n_runs)
                printf("ok %llu runs equal the reference bit for bit\n", (unsigned long long)r->n_runs);
        else
                printf("# %llu of %llu runs failed\n", (unsigned long long)r->n_failed, (unsigned long long)r->n_runs);
        return r->n_failed || !r->n_runs;
}
