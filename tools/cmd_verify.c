/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/strided.h"
#include "tools/commands.h"
#include "tools/exec.h"
#include "tools/model.h"
#include "tools/out.h"
#include "tools/report.h"
#include "tools/session.h"

static const struct af_option options[] = {
        AF_OPTIONS_COMMON,
        {'d', "data", AF_OPTION_TEXT, "DIR", "feed DIR/input_*.pb and compare with DIR/output_*.pb; or each DIR/test_data_set_*"},
        AF_OPTION_OFFLINE,
        {0, "seed", AF_OPTION_NUMBER, "N", "without --data: seed of the random inputs (1)"},
        AF_OPTIONS_SERVER,
        {0},
};

/* What is found out; the verdict is the last line. */
struct result {
        bool ok;
        uint32_t n_kernels, n_fused, n_fallback, n_folded, n_sets;
        char verdict[1200];
        struct af_buf fallbacks; /* lines */
};

static int verdict(struct result *r, bool ok, const char *fmt, ...) AF_PRINTF(3, 4);
static int verdict(struct result *r, bool ok, const char *fmt, ...) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(r->verdict, sizeof(r->verdict), fmt, ap);
        va_end(ap);
        for (char *p = r->verdict; *p; p++)
                if (*p == '\n')
                        *p = ' ';
        r->ok = ok;
        return ok ? 0 : AF_EXIT_FAILED;
}

static int feed(const struct af_model *m, struct af_exec *x, struct result *r) {
        for (uint32_t i = 0; i < m->import.n_inputs; i++) {
                uint32_t from = m->import.input_of[i];
                struct af_tensor *t = &x->inputs[i].t;
                const struct af_onnx_tensor *feed = from < m->n_feeds ? &m->feeds[from] : NULL;
                int64_t dense[AF_LIMIT_RANK];
                size_t n = af_dtype_size(t->dtype);
                if (!feed)
                        return verdict(r, false, "mismatch: there is no input_%u.pb for input \"%s\"", from,
                                       af_onnx_input_name(m->onnx, from));
                for (uint32_t k = 0; k < t->rank; k++)
                        n *= (size_t)t->dims[k];
                if (feed->rank != t->rank || memcmp(feed->dims, t->dims, t->rank * sizeof(*t->dims)) != 0 || feed->n_bytes != n)
                        return verdict(r, false, "mismatch: input_%u.pb has another shape or type than the model's input \"%s\"", from,
                                       af_onnx_input_name(m->onnx, from));
                af_strided_dense(t->dims, t->rank, dense);
                af_strided_copy(t->data, t->strides, feed->bytes, dense, t->dims, t->rank, af_dtype_size(t->dtype));
        }
        return 0;
}

/* One output as ONNX sees it: dense bytes in arena. */
static int as_onnx(struct af_arena *arena, const char *name, const struct af_tensor *t, struct af_onnx_tensor *ret) {
        int64_t dense[AF_LIMIT_RANK];
        size_t n = af_dtype_size(t->dtype);
        for (uint32_t k = 0; k < t->rank; k++)
                n *= (size_t)t->dims[k];
        uint8_t *bytes = af_arena_alloc(arena, n);
        if (!bytes)
                return -ENOMEM;
        *ret = (struct af_onnx_tensor){.name = name, .dtype = t->dtype, .rank = t->rank, .bytes = bytes, .n_bytes = n};
        memcpy(ret->dims, t->dims, sizeof(*t->dims) * t->rank);
        af_strided_dense(t->dims, t->rank, dense);
        af_strided_copy(bytes, dense, t->data, t->strides, t->dims, t->rank, af_dtype_size(t->dtype));
        return 0;
}

static int compare_files(struct af_model *m, struct af_exec *x, const char *data, struct result *r) {
        for (uint32_t i = 0; i < af_onnx_n_outputs(m->onnx); i++) {
                AF_CLEANUP(af_diags_deinit) struct af_diags diags = {0};
                struct af_onnx_tensor got, want;
                char text[512] = "";
                int e = af_model_read_tensor(&m->frag.arena, data, "output", i, &want, &diags);
                if (e != 0)
                        return verdict(r, false, "mismatch: output_%u.pb: %s", i,
                                       e < 0 ? strerror(-e) : af_model_reason(&diags, "cannot be read"));
                if (as_onnx(&m->frag.arena, af_onnx_output_name(m->onnx, i), &x->outputs[i].t, &got) < 0)
                        return verdict(r, false, "failed: out of memory");
                if (!af_onnx_equal(&got, &want, text, sizeof(text)))
                        return verdict(r, false, "mismatch: output %u \"%s\": %s", i, af_onnx_output_name(m->onnx, i), text);
        }
        return 0;
}

static int compare_reference(const struct af_exec *x, struct result *r) {
        for (uint32_t i = 0; i < x->frag->g.n_outputs; i++) {
                double error = 0;
                uint64_t first = 0, n = af_tensor_compare(&x->outputs[i].t, &x->expected[i], &error, &first);
                if (n)
                        return verdict(
                                r, false,
                                "mismatch: output %u \"%s\": %llu elements differ from the reference, first %llu, largest error %.3g", i,
                                x->frag->f.outputs[i].value, (unsigned long long)n, (unsigned long long)first, error);
        }
        return 0;
}

/* A graph of views, copies and constants needs no kernel; any other must have launched one. */
static int check_launches(const struct af_frag *frag, const struct autofuse_bundle *bundle, struct result *r) {
        struct autofuse_step_info s;
        if (r->n_kernels > 0)
                return 0;
        for (uint32_t i = 0; i < frag->g.n_nodes; i++) {
                enum af_op_class cls = af_op_info(frag->g.nodes[i].op)->cls;
                if (cls == AF_CLASS_VIEW || cls == AF_CLASS_BROADCAST)
                        continue;
                for (uint32_t k = 0; autofuse_bundle_step(bundle, k, &s); k++)
                        if (s.kind == AUTOFUSE_STEP_FRAMEWORK)
                                return verdict(r, false, "refused: op %s: no kernel was launched: %s", s.origin ? s.origin : s.op,
                                               s.reason);
                return 0; /* nothing to run: empty tensors, or nothing that is read */
        }
        return 0;
}

static void count(const struct autofuse_bundle *bundle, struct result *r) {
        struct autofuse_bundle_info info;
        struct autofuse_step_info s;
        autofuse_bundle_info(bundle, &info);
        r->n_kernels = info.n_kernel_steps;
        r->n_fused = info.n_nodes_fused;
        r->n_fallback = info.n_framework_steps;
        af_buf_clear(&r->fallbacks);
        for (uint32_t i = 0; autofuse_bundle_step(bundle, i, &s); i++)
                if (s.kind == AUTOFUSE_STEP_FRAMEWORK)
                        af_buf_printf(&r->fallbacks, "Fallback %s $reason: %s\n", s.origin ? s.origin : s.op, s.reason);
}

static int execute(const struct af_args *args, struct af_model *m, struct autofuse_bundle *bundle, const char *data, struct result *r) {
        struct af_exec x;
        struct autofuse_error *error = NULL;
        if (af_exec_init(&x, &m->frag) != 0)
                return verdict(r, false, "refused: shape is symbolic");
        int e = 0;
        if (data) {
                e = feed(m, &x, r);
        } else {
                af_exec_fill(&x, af_args_number(args, "seed", 1), false);
                if (af_exec_reference(&x) != 0)
                        e = verdict(r, false, "failed: the reference cannot run it");
        }
        if (e == 0 && af_exec_run(&x, bundle, false, &error) != AUTOFUSE_OK)
                e = verdict(r, false, "failed: %s", autofuse_error_text(error));
        if (e == 0)
                e = data ? compare_files(m, &x, data, r) : compare_reference(&x, r);
        if (e == 0)
                e = check_launches(&m->frag, bundle, r);
        autofuse_error_free(error);
        af_exec_deinit(&x);
        return e;
}

/* One model with one data set. */
static int verify_set(const struct af_args *args, struct af_session *s, const char *data, struct result *r) {
        AF_CLEANUP(af_diags_deinit) struct af_diags diags = {0};
        struct af_model m;
        struct autofuse_bundle *bundle = NULL;
        struct autofuse_error *error = NULL;
        int e = af_model_load(args->operands[0], data, &m, &diags);
        if (e < 0)
                return verdict(r, false, "failed: %s: %s", args->operands[0], strerror(-e));
        if (e > 0)
                return verdict(r, false, "refused: %s", af_model_reason(&diags, "the model is not valid"));
        r->n_folded = m.import.n_folded;
        enum autofuse_status status = af_session_compile(s, &m.frag.f, &bundle, &error);
        if (status == AUTOFUSE_OK) {
                count(bundle, r);
                e = execute(args, &m, bundle, data, r);
        } else {
                e = verdict(r, false, "failed: %s: %s", autofuse_status_name(status), autofuse_error_text(error));
                autofuse_error_free(error);
        }
        autofuse_bundle_unref(bundle);
        af_model_deinit(&m);
        return e;
}

static bool has_file(const char *dir, const char *name) {
        char path[4096];
        return snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path) && access(path, R_OK) == 0;
}

/* The directory itself, or its test_data_set_* one after another. */
static int verify_all(const struct af_args *args, struct af_session *s, struct result *r) {
        const char *data = af_args_text(args, "data");
        int e = 0;
        if (!data || has_file(data, "output_0.pb") || !has_file(data, "test_data_set_0")) {
                e = data && !has_file(data, "output_0.pb") ? verdict(r, false, "failed: %s has no output_0.pb", data)
                                                           : verify_set(args, s, data, r);
                r->n_sets = 1;
        } else {
                for (uint32_t i = 0; e == 0; i++) {
                        char set[4096], name[64];
                        snprintf(name, sizeof(name), "test_data_set_%u", i);
                        if (!has_file(data, name))
                                break;
                        snprintf(set, sizeof(set), "%s/%s", data, name);
                        e = verify_set(args, s, set, r);
                        r->n_sets = i + 1;
                }
        }
        return e == 0 ? verdict(r, true, "ok") : e;
}

static void add_fallbacks(cJSON *o, const struct result *r) {
        cJSON *list = cJSON_AddArrayToObject(o, "fallbacks");
        char *lines = r->fallbacks.size ? strndup((const char *)r->fallbacks.data, r->fallbacks.size) : NULL, *rest = lines;
        for (char *line; rest && *rest && (line = strsep(&rest, "\n"));)
                cJSON_AddItemToArray(list, cJSON_CreateString(line));
        free(lines);
}

static void print_json(const struct af_args *args, const struct result *r) {
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "file", args->operands[0]);
        cJSON_AddBoolToObject(o, "ok", r->ok);
        cJSON_AddStringToObject(o, "verdict", r->verdict);
        cJSON_AddNumberToObject(o, "kernels_launched", r->n_kernels);
        cJSON_AddNumberToObject(o, "nodes_fused", r->n_fused);
        cJSON_AddNumberToObject(o, "nodes_fallback", r->n_fallback);
        cJSON_AddNumberToObject(o, "nodes_folded", r->n_folded);
        cJSON_AddNumberToObject(o, "data_sets", r->n_sets);
        add_fallbacks(o, r);
        af_out_json(o);
}

static int run(const struct af_args *args) {
        struct af_session s;
        struct result r = {0};
        if (af_session_open(args, &s) != AF_EXIT_OK)
                return AF_EXIT_FAILED;
        s.silent_fallbacks = true;
        s.quiet = true;
        int e = verify_all(args, &s, &r);
        if (af_args_flag(args, "json")) {
                print_json(args, &r);
        } else {
                if (r.fallbacks.size)
                        fwrite(r.fallbacks.data, 1, r.fallbacks.size, stdout);
                printf("kernels launched: %u, nodes fused: %u, nodes left to fallback: %u\n%s\n", r.n_kernels, r.n_fused, r.n_fallback,
                       r.verdict);
        }
        af_buf_deinit(&r.fallbacks);
        af_session_close(&s);
        return e ? AF_EXIT_FAILED : AF_EXIT_OK;
}

const struct af_command af_command_verify = {
        .name = "verify",
        .operands = "MODEL.onnx",
        .summary = "run an ONNX model fused and compare its results",
        .details =
                "The last line is ok, mismatch with what differs first, refused with the op, dtype or shape that cannot be expressed, or "
                "failed with the reason. Floats are equal "
                "within 1e-7 + 1e-3 of the wanted value, integers and bools exactly. ok needs a kernel to have been launched, unless the "
                "graph only moves views or "
                "constants.\n\nWithout --data, random inputs are fed and the results compared with the reference interpreter, bit for bit.",
        .options = options,
        .min_operands = 1,
        .max_operands = 1,
        .run = run,
};
