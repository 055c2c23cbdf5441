/* SPDX-License-Identifier: Apache-2.0 */
/* history: what the server's ledger has kept. */
#include <cjson/cJSON.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/admin.h"
#include "tools/commands.h"
#include "tools/event_line.h"
#include "tools/history.h"

static const struct af_option options[] = {
        AF_OPTIONS_COMMON,
        {'k', "kind", AF_OPTION_TEXT, "KIND", "request, plan, compile, miss, fallback or failure"},
        {'f', "fragment", AF_OPTION_TEXT, "HEX", "of fragments whose digest begins so"},
        {0, "since", AF_OPTION_TEXT, "AGO", "not older than this: 90, 90s, 15m, 2h, 7d"},
        {'u', "uid", AF_OPTION_NUMBER, "UID", "asked by this user"},
        {'n', "limit", AF_OPTION_NUMBER, "N", "at most so many, the newest (100)"},
        {0, "top", AF_OPTION_FLAG, NULL, "the fragments that were used most, instead"},
        {0, "summary", AF_OPTION_FLAG, NULL, "stages, misses, failures and toolchains, instead"},
        AF_OPTIONS_SERVER,
        {0},
};

cJSON *af_history_ask(struct af_admin *a, cJSON *query) {
        AF_CLEANUP(af_buf_deinit) struct af_buf fields = AF_BUF_INIT;
        char *text = cJSON_PrintUnformatted(query), *answer = NULL;
        cJSON *o = NULL;
        cJSON_Delete(query);
        if (text)
                af_frame_field_str(&fields, AF_TAG_QUERY, text);
        cJSON_free(text);
        if (af_admin_ask(a, AF_FRAME_HISTORY, &fields, NULL, &answer, NULL, NULL) != AF_EXIT_OK)
                return NULL;
        o = cJSON_Parse(answer);
        if (!o)
                fputs("error: the server sends what is no answer\n", stderr);
        free(answer);
        return o;
}

const char *af_history_text(const cJSON *row, const char *name) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(row, name);
        return cJSON_IsString(item) ? item->valuestring : "";
}

double af_history_number(const cJSON *row, const char *name) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(row, name);
        return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

/* "15m" in seconds; 0: not understood. */
static uint64_t read_ago(const char *text) {
        static const char units[] = "smhd";
        static const unsigned seconds[] = {1, 60, 3600, 86400};
        char *end;
        unsigned long long n = strtoull(text, &end, 10);
        const char *unit = *end ? strchr(units, *end) : units;
        if (!isdigit((unsigned char)text[0]) || !unit || (*end && end[1]) || n > UINT32_MAX)
                return 0;
        return n * seconds[unit - units];
}

static const char *when(double wall_s, char out[32]) {
        time_t t = (time_t)wall_s;
        struct tm tm;
        if (!localtime_r(&t, &tm) || !strftime(out, 32, "%Y-%m-%d %H:%M:%S", &tm))
                out[0] = 0;
        return out;
}

/* ---- tables ---- */

static void add_us(struct af_table *t, double us) {
        char text[32];
        af_table_add(t, "%s", us > 0 ? af_out_us((uint64_t)us, text) : "-");
}

static void print_events(const cJSON *list) {
        static const char *const names[] = {"time", "kind", "fragment", "waited", "ran", "process", "text"};
        struct af_table t;
        char text[32];
        af_table_init(&t, names, AF_ARRAY_SIZE(names));
        /* Newest last, as a log. */
        for (int i = cJSON_GetArraySize(list) - 1; i >= 0; i--) {
                const cJSON *e = cJSON_GetArrayItem(list, i);
                af_table_add(&t, "%s", when(af_history_number(e, "wall_s"), text));
                af_table_add(&t, "%s", af_event_safe(af_history_text(e, "kind"), 20));
                af_table_add(&t, "%.12s", af_history_text(e, "fragment"));
                add_us(&t, af_history_number(e, "queued_us"));
                add_us(&t, af_history_number(e, "run_us"));
                if (af_history_number(e, "pid") > 0)
                        af_table_add(&t, "%.0f", af_history_number(e, "pid"));
                else
                        af_table_add(&t, "-");
                af_table_add(&t, "%s", af_event_safe(af_history_text(e, "text"), 160));
        }
        af_table_print(&t, 0, stdout);
        af_table_deinit(&t);
}

static void print_top(const cJSON *list) {
        static const char *const names[] = {"fragment", "hits", "joined", "compiled", "environments", "last used", "what"};
        static const char *const counts[] = {"hits", "joined", "compiled", "environments"};
        const cJSON *row;
        struct af_table t;
        char text[32];
        af_table_init(&t, names, AF_ARRAY_SIZE(names));
        cJSON_ArrayForEach(row, list) {
                af_table_add(&t, "%.16s", af_history_text(row, "fragment"));
                for (size_t i = 0; i < AF_ARRAY_SIZE(counts); i++)
                        af_table_add(&t, "%.0f", af_history_number(row, counts[i]));
                af_table_add(&t, "%s", when(af_history_number(row, "last_s"), text));
                af_table_add(&t, "%s", af_event_safe(af_history_text(row, "words"), 100));
        }
        af_table_print(&t, 0, stdout);
        af_table_deinit(&t);
}

/* A list of objects as a table of the named members; a name that ends in "us" is a time, in "_s" a date. */
static void print_rows(const char *title, const cJSON *list, const char *const *names, uint32_t n) {
        const cJSON *row;
        struct af_table t;
        char text[32];
        if (cJSON_GetArraySize(list) == 0)
                return;
        printf("%s\n", title);
        af_table_init(&t, names, n);
        cJSON_ArrayForEach(row, list) for (uint32_t i = 0; i < n; i++) {
                const cJSON *item = cJSON_GetObjectItemCaseSensitive(row, names[i]);
                size_t length = strlen(names[i]);
                if (cJSON_IsString(item))
                        af_table_add(&t, "%s", af_event_safe(item->valuestring, strcmp(names[i], "environment") == 0 ? 16 : 120));
                else if (length >= 2 && strcmp(names[i] + length - 2, "us") == 0)
                        add_us(&t, af_history_number(row, names[i]));
                else if (length > 2 && strcmp(names[i] + length - 2, "_s") == 0)
                        af_table_add(&t, "%s", when(af_history_number(row, names[i]), text));
                else
                        af_table_add(&t, "%.0f", af_history_number(row, names[i]));
        }
        af_table_print(&t, 2, stdout);
        af_table_deinit(&t);
}

void af_history_print_summary(const cJSON *o) {
        static const char *const stages[] = {"stage", "n", "mean_us", "max_us", "us"};
        static const char *const events[] = {"kind", "n", "mean_queued_us", "mean_run_us"};
        static const char *const texts[] = {"n", "text"};
        static const char *const environments[] = {"environment", "soc", "toolchain", "fragments", "last_s", "version"};
        print_rows("stages of compiles", cJSON_GetObjectItem(o, "stages"), stages, AF_ARRAY_SIZE(stages));
        print_rows("events", cJSON_GetObjectItem(o, "events"), events, AF_ARRAY_SIZE(events));
        print_rows("why requests missed", cJSON_GetObjectItem(o, "misses"), texts, AF_ARRAY_SIZE(texts));
        print_rows("left to the framework", cJSON_GetObjectItem(o, "fallbacks"), texts, AF_ARRAY_SIZE(texts));
        print_rows("failures", cJSON_GetObjectItem(o, "failures"), texts, AF_ARRAY_SIZE(texts));
        print_rows("environments", cJSON_GetObjectItem(o, "environments"), environments, AF_ARRAY_SIZE(environments));
}

/* ---- the command ---- */

static cJSON *make_query(const struct af_args *args) {
        const char *since = af_args_text(args, "since"), *kind = af_args_text(args, "kind"), *fragment = af_args_text(args, "fragment");
        const char *question = af_args_flag(args, "summary") ? "summary" : af_args_flag(args, "top") ? "top" : "history";
        uint64_t ago = since ? read_ago(since) : 0;
        if (since && !ago) {
                fprintf(stderr, "error: --since %s: not a time as 90s, 15m, 2h or 7d\n", since);
                return NULL;
        }
        cJSON *q = cJSON_CreateObject();
        cJSON_AddStringToObject(q, "question", question);
        cJSON_AddNumberToObject(q, "limit", (double)af_args_number(args, "limit", 100));
        if (kind)
                cJSON_AddStringToObject(q, "kind", kind);
        if (fragment)
                cJSON_AddStringToObject(q, "fragment", fragment);
        if (since)
                cJSON_AddNumberToObject(q, "since_s", (double)time(NULL) - (double)ago);
        if (af_args_text(args, "uid"))
                cJSON_AddNumberToObject(q, "uid", (double)af_args_number(args, "uid", 0));
        return q;
}

static int run(const struct af_args *args) {
        struct af_admin a;
        cJSON *query = make_query(args);
        if (!query)
                return AF_EXIT_USAGE;
        if (af_admin_open(args, &a) != AF_EXIT_OK) {
                cJSON_Delete(query);
                return AF_EXIT_FAILED;
        }
        cJSON *o = af_history_ask(&a, query);
        af_admin_close(&a);
        if (!o)
                return AF_EXIT_FAILED;
        if (af_args_flag(args, "json")) {
                af_out_json(o);
                return AF_EXIT_OK;
        }
        if (af_args_flag(args, "summary"))
                af_history_print_summary(o);
        else if (af_args_flag(args, "top"))
                print_top(cJSON_GetObjectItem(o, "fragments"));
        else
                print_events(cJSON_GetObjectItem(o, "events"));
        cJSON_Delete(o);
        return AF_EXIT_OK;
}

const struct af_command af_command_history = {
        .name = "history",
        .operands = "",
        .summary = "show what the server's ledger has kept",
        .details = "Requests that were compiled, jobs, misses with their reasons, nodes left to the framework, failures. Hits are counted, "
                   "not listed: --top. "
                   "autofusectl warm --from-history compiles what was used most for a new toolchain.",
        .options = options,
        .run = run,
};
