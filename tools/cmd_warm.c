/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/commands.h"
#include "tools/history.h"
#include "tools/model.h"
#include "tools/out.h"
#include "tools/report.h"
#include "tools/session.h"

#define IN_FLIGHT 32u
#define MAX_DEPTH 16

static const struct af_option options[] = {
        AF_OPTIONS_COMMON,
        {0, "from-history", AF_OPTION_FLAG, NULL,
         "instead of files: the fragments that the server was asked for most, with what it has now"},
        {0, "top", AF_OPTION_NUMBER, "N", "with --from-history: so many (100)"},
        {'v', "verbose", AF_OPTION_FLAG, NULL, "list what was compiled or found, too, not only what failed"},
        AF_OPTIONS_SERVER,
        {0},
};

struct file {
        char *path;
        struct autofuse_request *request;
        enum { FILE_WAITING, FILE_COMPILED, FILE_FOUND, FILE_REFUSED, FILE_FAILED } outcome;
        char *why;
        uint64_t compile_us;
        uint32_t n_kernels, n_fallback;
};
struct list {
        struct file *files;
        uint32_t n, cap;
        bool failed; /* no memory */
};

/* ---- which files ---- */

static void add(struct list *l, const char *path) {
        if (l->n == l->cap) {
                uint32_t cap = l->cap ? l->cap * 2 : 64;
                struct file *files = realloc(l->files, cap * sizeof(*files));
                if (!files) {
                        l->failed = true;
                        return;
                }
                l->files = files;
                l->cap = cap;
        }
        l->files[l->n] = (struct file){.path = strdup(path)};
        l->failed |= !l->files[l->n++].path;
}

static bool ends_with(const char *s, const char *suffix) {
        size_t n = strlen(s), m = strlen(suffix);
        return n >= m && strcmp(s + n - m, suffix) == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
        return strcmp((*a)->d_name, (*b)->d_name);
}

/* Files that were named are taken as they are; directories are searched for models and fragments. */
static int collect(struct list *l, const char *path, int depth) {
        struct stat st;
        struct dirent **entries;
        if (stat(path, &st) < 0) {
                if (depth)
                        return 0; /* gone meanwhile, or a dead link */
                fprintf(stderr, "error: %s: %s\n", path, strerror(errno));
                return AF_EXIT_FAILED;
        }
        if (!S_ISDIR(st.st_mode)) {
                if (!depth || ends_with(path, ".onnx") || ends_with(path, ".json"))
                        add(l, path);
                return 0;
        }
        int n = depth < MAX_DEPTH ? scandir(path, &entries, NULL, by_name) : 0;
        if (n < 0) {
                fprintf(stderr, "error: %s: %s\n", path, strerror(errno));
                return AF_EXIT_FAILED;
        }
        for (int i = 0; i < n; i++) {
                char inner[4096];
                if (entries[i]->d_name[0] != '.' && snprintf(inner, sizeof(inner), "%s/%s", path, entries[i]->d_name) < (int)sizeof(inner))
                        (void)collect(l, inner, depth + 1);
                free(entries[i]);
        }
        if (depth < MAX_DEPTH)
                free(entries);
        return 0;
}

/* ---- one file ---- */

static void settle(struct file *f, int outcome, const char *why) {
        f->outcome = outcome;
        f->why = why ? strdup(why) : NULL;
}

static void settle_error(struct file *f, enum autofuse_status status, struct autofuse_error *error) {
        settle(f, status == AUTOFUSE_E_INVALID ? FILE_REFUSED : FILE_FAILED,
               error ? autofuse_error_text(error) : autofuse_status_name(status));
        autofuse_error_free(error);
}

static void submit(struct af_session *s, struct file *f, const struct af_fragment *fragment) {
        AF_CLEANUP(af_diags_deinit) struct af_diags diags = {0};
        struct autofuse_submit_options o = AUTOFUSE_SUBMIT_INIT;
        struct autofuse_error *error = NULL;
        struct af_prepared *prepared = NULL;
        int r = af_prepared_new(fragment, &diags, &prepared);
        if (r != 0) {
                settle(f, FILE_REFUSED, af_model_reason(&diags, r < 0 ? strerror(-r) : "the fragment is invalid"));
                return;
        }
        o.priority = 255;
        o.deadline_ms = s->deadline_ms;
        enum autofuse_status status = af_submit_prepared(s->ctx, prepared, &o, &f->request, &error);
        if (status != AUTOFUSE_OK)
                settle_error(f, status, error);
}

/* A model beside a test data set takes its parameters and open dimensions from it. */
static void submit_model(struct af_session *s, struct file *f) {
        AF_CLEANUP(af_diags_deinit) struct af_diags diags = {0};
        struct af_model m;
        struct stat st;
        char data[4096];
        const char *slash = strrchr(f->path, '/');
        snprintf(data, sizeof(data), "%.*s/test_data_set_0", slash ? (int)(slash - f->path) : 1, slash ? f->path : ".");
        int r = af_model_load(f->path, stat(data, &st) == 0 ? data : NULL, &m, &diags);
        if (r != 0) {
                settle(f, r > 0 ? FILE_REFUSED : FILE_FAILED, af_model_reason(&diags, r < 0 ? strerror(-r) : "the model is not valid"));
                return;
        }
        submit(s, f, &m.frag.f);
        af_model_deinit(&m);
}

static void submit_text(struct af_session *s, struct file *f) {
        AF_CLEANUP(af_diags_deinit) struct af_diags diags = {0};
        struct af_frag frag;
        int r = af_frag_parse(f->path, &frag, &diags);
        if (r != 0) {
                settle(f, r > 0 ? FILE_REFUSED : FILE_FAILED, af_model_reason(&diags, r < 0 ? strerror(-r) : "the fragment is invalid"));
                return;
        }
        submit(s, f, &frag.f);
        af_frag_deinit(&frag);
}

static void finish(struct file *f) {
        struct autofuse_bundle *bundle = NULL;
        struct autofuse_error *error = NULL;
        struct autofuse_bundle_info info;
        enum autofuse_status status = autofuse_request_wait(f->request, -1, &bundle, &error);
        if (status != AUTOFUSE_OK) {
                settle_error(f, status, error);
        } else {
                autofuse_bundle_info(bundle, &info);
                settle(f, info.hit == AUTOFUSE_HIT_COMPILED ? FILE_COMPILED : FILE_FOUND, NULL);
                f->compile_us = info.compile_us;
                f->n_kernels = info.n_kernels;
                f->n_fallback = info.n_framework_steps;
        }
        autofuse_bundle_unref(bundle);
        autofuse_request_free(f->request);
        f->request = NULL;
}

/* A window of requests moves over the list. */
static void warm(struct af_session *s, struct list *l) {
        struct af_bar bar;
        uint32_t sent = 0;
        af_bar_start(&bar, "warming", l->n);
        for (uint32_t i = 0; i < l->n; i++) {
                for (; sent < l->n && sent < i + IN_FLIGHT; sent++) {
                        if (ends_with(l->files[sent].path, ".onnx"))
                                submit_model(s, &l->files[sent]);
                        else
                                submit_text(s, &l->files[sent]);
                }
                af_bar_update(&bar, i, l->files[i].path);
                if (l->files[i].request)
                        finish(&l->files[i]);
        }
        af_bar_update(&bar, l->n, NULL);
        af_bar_end(&bar);
}

/* ---- the report ---- */

static const char *const outcomes[] = {"waiting", "compiled", "found", "refused", "failed"};

static void print_text(const struct list *l, const uint32_t *counts, bool verbose) {
        struct af_table t;
        char text[32];
        static const char *const heads[] = {"file", "outcome", "kernels", "fallbacks", "compile", "why"};
        af_table_init(&t, heads, AF_ARRAY_SIZE(heads));
        for (uint32_t i = 0; i < l->n; i++) {
                const struct file *f = &l->files[i];
                if (!verbose && (f->outcome == FILE_COMPILED || f->outcome == FILE_FOUND))
                        continue;
                af_table_add(&t, "%s", f->path);
                af_table_add(&t, "%s", outcomes[f->outcome]);
                af_table_add(&t, "%u", f->n_kernels);
                af_table_add(&t, "%u", f->n_fallback);
                af_table_add(&t, "%s", f->compile_us ? af_out_us(f->compile_us, text) : "-");
                af_table_add(&t, "%.*s", (int)strcspn(f->why ? f->why : "", "\n"), f->why ? f->why : "");
        }
        if (t.n_cells > t.n_columns)
                af_table_print(&t, 0, stdout);
        af_table_deinit(&t);
        printf("%u files: %u compiled, %u found, %u refused, %u failed\n", l->n, counts[FILE_COMPILED], counts[FILE_FOUND],
               counts[FILE_REFUSED], counts[FILE_FAILED]);
}

static void print_json(const struct list *l) {
        cJSON *list = cJSON_CreateArray();
        for (uint32_t i = 0; i < l->n; i++) {
                const struct file *f = &l->files[i];
                cJSON *o = cJSON_CreateObject();
                cJSON_AddStringToObject(o, "file", f->path);
                cJSON_AddStringToObject(o, "outcome", outcomes[f->outcome]);
                cJSON_AddNumberToObject(o, "kernels", f->n_kernels);
                cJSON_AddNumberToObject(o, "fallbacks", f->n_fallback);
                cJSON_AddNumberToObject(o, "compile_us", (double)f->compile_us);
                if (f->why)
                        cJSON_AddStringToObject(o, "why", f->why);
                cJSON_AddItemToArray(list, o);
        }
        af_out_json(list);
}

static int run(const struct af_args *args) {
        struct af_session s;
        struct list l = {0};
        uint32_t counts[AF_ARRAY_SIZE(outcomes)] = {0};
        int r = AF_EXIT_OK;
        if (af_args_flag(args, "from-history") == (args->n_operands > 0)) {
                fputs(args->n_operands ? "error: --from-history takes no files\n" : "error: name files, or --from-history\n", stderr);
                return AF_EXIT_USAGE;
        }
        if (args->n_operands == 0)
                return af_warm_from_history(args, (uint32_t)AF_MIN(af_args_number(args, "top", 100), (uint64_t)10000));
        for (uint32_t i = 0; i < args->n_operands; i++)
                if (collect(&l, args->operands[i], 0) != 0)
                        r = AF_EXIT_FAILED;
        if (r == AF_EXIT_OK && !l.failed && (r = af_session_open(args, &s)) == AF_EXIT_OK) {
                s.silent_fallbacks = true;
                warm(&s, &l);
                for (uint32_t i = 0; i < l.n; i++)
                        counts[l.files[i].outcome]++;
                if (af_args_flag(args, "json"))
                        print_json(&l);
                else
                        print_text(&l, counts, af_args_flag(args, "verbose"));
                af_session_close(&s);
        }
        for (uint32_t i = 0; i < l.n; i++) {
                free(l.files[i].path);
                free(l.files[i].why);
        }
        free(l.files);
        return r != AF_EXIT_OK || counts[FILE_FAILED] ? AF_EXIT_FAILED : AF_EXIT_OK;
}

const struct af_command af_command_warm = {
        .name = "warm",
        .operands = "MODEL.onnx…|DIR|FRAG.json|--from-history",
        .summary = "compile models and fragments ahead, at the lowest priority",
        .details = "Directories are searched for *.onnx and *.json. A model beside a test_data_set_0 takes its parameters and open "
                   "dimensions from there. The exit code is 1 where "
                   "something failed; what the compiler cannot express is refused and does not count as failure. --from-history needs no "
                   "files: the "
                   "server has the fragments, and its ledger knows which were used most; run it after a change of toolchain or rules.",
        .options = options,
        .run = run,
};
