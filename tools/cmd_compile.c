/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/io.h"
#include "client/bundle.h"
#include "tools/commands.h"
#include "tools/out.h"
#include "tools/report.h"
#include "tools/session.h"

static const struct af_option options[] = {
        AF_OPTIONS_COMMON,
        AF_OPTION_OFFLINE,
        {'o', "output", AF_OPTION_TEXT, "FILE", "write the bundle there (one fragment only)"},
        {0, "sources", AF_OPTION_TEXT, "DIR", "write each kernel's Ascend C source there (with --offline)"},
        AF_OPTIONS_SERVER,
        {0},
};

static int write_file(const char *path, const void *p, size_t n) {
        int r = af_io_publish_file(path, p, n, 0644);
        if (r < 0)
                fprintf(stderr, "error: %s: %s\n", path, strerror(-r));
        return r < 0 ? AF_EXIT_FAILED : AF_EXIT_OK;
}

static int write_sources(const struct autofuse_bundle *bundle, const char *dir) {
        struct autofuse_kernel_info k;
        int r = af_io_make_dirs(dir, 0755);
        if (r < 0) {
                fprintf(stderr, "error: %s: %s\n", dir, strerror(-r));
                return AF_EXIT_FAILED;
        }
        for (uint32_t i = 0; autofuse_bundle_kernel(bundle, i, &k); i++) {
                char path[4096];
                if (!k.source)
                        continue;
                snprintf(path, sizeof(path), "%s/%s.cpp", dir, k.symbol);
                if (write_file(path, k.source, k.source_bytes) != AF_EXIT_OK)
                        return AF_EXIT_FAILED;
        }
        return AF_EXIT_OK;
}

static void add_row(struct af_table *t, const struct af_frag *frag, const struct autofuse_bundle *bundle) {
        struct autofuse_bundle_info info;
        char stem[256], text[32];
        autofuse_bundle_info(bundle, &info);
        af_report_stem(frag->path, stem, sizeof(stem));
        af_table_add(t, "%s", stem);
        af_table_add(t, "%u", frag->f.n_nodes);
        af_table_add(t, "%u", info.n_kernel_steps);
        af_table_add(t, "%u", info.n_framework_steps);
        af_table_add(t, "%s", af_hit_name(info.hit));
        af_table_add(t, "%s", info.compile_us ? af_out_us(info.compile_us, text) : "-");
        af_table_add(t, "%s", af_out_bytes(info.bundle_bytes, text));
        af_table_add(t, "%.16s", info.fragment);
}

/* One fragment: compiled, reported, written. */
static int compile_one(const struct af_args *args, struct af_session *s, const char *path, struct af_table *table, cJSON *list) {
        struct af_frag frag;
        struct autofuse_bundle *bundle = NULL;
        struct autofuse_error *error = NULL;
        if (af_frag_load(path, &frag) != 0)
                return AF_EXIT_FAILED;
        enum autofuse_status status = af_session_compile(s, &frag.f, &bundle, &error);
        int r = AF_EXIT_OK;
        if (status != AUTOFUSE_OK) {
                af_session_report(path, status, error);
                r = AF_EXIT_FAILED;
        } else {
                add_row(table, &frag, bundle);
                cJSON_AddItemToArray(list, af_report_bundle(&frag, bundle));
                if (s->offline && !af_args_flag(args, "json"))
                        af_report_fallbacks(bundle, stderr);
                if (af_args_text(args, "output"))
                        r = write_file(af_args_text(args, "output"), bundle->content->data, bundle->content->size);
                if (r == AF_EXIT_OK && af_args_text(args, "sources"))
                        r = write_sources(bundle, af_args_text(args, "sources"));
        }
        autofuse_bundle_unref(bundle);
        af_frag_deinit(&frag);
        return r;
}

static int run(const struct af_args *args) {
        struct af_session s;
        struct af_table table;
        cJSON *list = cJSON_CreateArray();
        if (af_args_text(args, "output") && args->n_operands > 1) {
                fprintf(stderr, "autofusectl compile: --output is for one fragment\n");
                cJSON_Delete(list);
                return AF_EXIT_USAGE;
        }
        if (af_args_text(args, "output") && !af_out_is_file("compile", af_args_text(args, "output"))) {
                cJSON_Delete(list);
                return AF_EXIT_USAGE;
        }
        if (af_session_open(args, &s) != AF_EXIT_OK) {
                cJSON_Delete(list);
                return AF_EXIT_FAILED;
        }
        if (af_args_text(args, "sources") && !s.offline)
                fprintf(stderr, "autofusectl compile: the server keeps sources to itself: --sources needs --offline\n");
        s.opts.keep_sources = af_args_text(args, "sources") != NULL;
        static const char *const heads[] = {"fragment", "nodes", "launches", "fallbacks", "hit", "compile", "bundle", "key"};
        af_table_init(&table, heads, AF_ARRAY_SIZE(heads));
        int r = AF_EXIT_OK;
        for (uint32_t i = 0; i < args->n_operands; i++)
                if (compile_one(args, &s, args->operands[i], &table, list) != AF_EXIT_OK)
                        r = AF_EXIT_FAILED;
        if (af_args_flag(args, "json"))
                af_out_json(list);
        else
                cJSON_Delete(list);
        if (!af_args_flag(args, "json") && table.n_cells > table.n_columns)
                af_table_print(&table, 0, stdout);
        af_table_deinit(&table);
        af_session_close(&s);
        return r;
}

const struct af_command af_command_compile = {
        .name = "compile",
        .operands = "FRAG.json…",
        .summary = "compile fragments, or look them up",
        .details = "FRAG.json is a graph fragment, autofuse.fragment/1; - reads standard input.",
        .options = options,
        .min_operands = 1,
        .run = run,
};
