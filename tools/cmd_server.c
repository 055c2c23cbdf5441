/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "tools/admin.h"
#include "tools/commands.h"
#include "tools/history.h"
#include "tools/out.h"
#include "tools/session.h"

static const struct af_option stats_options[] = {
        AF_OPTIONS_COMMON,
        {'l', "ledger", AF_OPTION_FLAG, NULL, "instead: stages of compiles, why requests missed, failures, toolchains"},
        AF_OPTIONS_SERVER,
        {0},
};

static const struct af_option options[] = {
        AF_OPTIONS_COMMON,
        AF_OPTIONS_SERVER,
        {0},
};

/* "counters.hits" and the like: nested objects become dotted names. */
static void add_rows(struct af_table *t, const cJSON *o, const char *prefix) {
        const cJSON *item;
        cJSON_ArrayForEach(item, o) {
                char name[256];
                snprintf(name, sizeof(name), "%s%s%s", prefix, prefix[0] ? "." : "", item->string ? item->string : "");
                if (cJSON_IsObject(item)) {
                        add_rows(t, item, name);
                        continue;
                }
                char *text = cJSON_IsString(item) ? NULL : cJSON_PrintUnformatted(item);
                af_table_add(t, "%s", name);
                af_table_add(t, "%s", cJSON_IsString(item) ? item->valuestring : text ? text : "");
                cJSON_free(text);
        }
}

static int print(const char *json, bool raw) {
        struct af_table t;
        cJSON *o = cJSON_Parse(json);
        if (raw || !cJSON_IsObject(o)) {
                puts(json);
                cJSON_Delete(o);
                return AF_EXIT_OK;
        }
        af_table_init(&t, (const char *const[]){"counter", "value"}, 2);
        add_rows(&t, o, "");
        af_table_print(&t, 0, stdout);
        af_table_deinit(&t);
        cJSON_Delete(o);
        return AF_EXIT_OK;
}

static int ask(const struct af_args *args, enum autofuse_status (*question)(struct autofuse_context *, char **, struct autofuse_error **)) {
        struct af_session s;
        char *json = NULL;
        struct autofuse_error *error = NULL;
        int r = af_session_open(args, &s);
        if (r != AF_EXIT_OK)
                return r;
        enum autofuse_status status = question(s.ctx, &json, &error);
        if (status == AUTOFUSE_OK) {
                r = print(json, af_args_flag(args, "json"));
        } else {
                af_session_report(NULL, status, error);
                r = AF_EXIT_FAILED;
        }
        free(json);
        af_session_close(&s);
        return r;
}

/* Of the ledger: what counters do not tell. */
static int print_ledger(const struct af_args *args) {
        struct af_admin a;
        cJSON *q = cJSON_CreateObject(), *o;
        if (af_admin_open(args, &a) != AF_EXIT_OK) {
                cJSON_Delete(q);
                return AF_EXIT_FAILED;
        }
        cJSON_AddStringToObject(q, "question", "summary");
        o = af_history_ask(&a, q);
        af_admin_close(&a);
        if (!o)
                return AF_EXIT_FAILED;
        if (af_args_flag(args, "json")) {
                af_out_json(o);
                return AF_EXIT_OK;
        }
        af_history_print_summary(o);
        cJSON_Delete(o);
        return AF_EXIT_OK;
}

static int run_stats(const struct af_args *args) {
        return af_args_flag(args, "ledger") ? print_ledger(args) : ask(args, autofuse_server_stats);
}

static int run_clear(const struct af_args *args) {
        return ask(args, autofuse_server_clear);
}

const struct af_command af_command_stats = {
        .name = "stats",
        .operands = "",
        .summary = "show the server's counters",
        .options = stats_options,
        .run = run_stats,
};

const struct af_command af_command_clear = {
        .name = "clear",
        .operands = "",
        .summary = "drop every entry of the server's store",
        .details = "For the server's own user and root.",
        .options = options,
        .run = run_clear,
};
