/* SPDX-License-Identifier: Apache-2.0 */
/* top: the server's state, again and again. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/admin.h"
#include "tools/commands.h"
#include "tools/event_line.h"
#include "tools/history.h"

static const struct af_option options[] = {
        AF_OPTIONS_COMMON,
        {'d', "delay", AF_OPTION_NUMBER, "SECONDS", "between two looks (1)"},
        {'1', "once", AF_OPTION_FLAG, NULL, "one look, with rates since the server's start"},
        AF_OPTIONS_SERVER,
        {0},
};

/* What rates are made of. */
static const char *const counters[] = {"requests", "hits", "joined", "fragment_compiles", "kernel_compiles", "failures"};
enum { REQUESTS, HITS, JOINED, PLANS, KERNELS, FAILURES, N_COUNTERS };
struct look {
        cJSON *stats;
        double at_s, values[N_COUNTERS];
};

static int take_look(struct af_admin *a, struct look *ret) {
        struct af_buf none = AF_BUF_INIT;
        char *text = NULL;
        if (af_admin_ask(a, AF_FRAME_STATS, &none, NULL, &text, NULL, NULL) != AF_EXIT_OK)
                return AF_EXIT_FAILED;
        *ret = (struct look){.stats = cJSON_Parse(text), .at_s = (double)af_clock_now_us() / 1e6};
        free(text);
        for (unsigned i = 0; i < N_COUNTERS; i++)
                ret->values[i] = af_history_number(ret->stats, counters[i]);
        return ret->stats ? AF_EXIT_OK : AF_EXIT_FAILED;
}

static double number(const cJSON *stats, const char *object, const char *name) {
        return af_history_number(cJSON_GetObjectItem(stats, object), name);
}

/* Of the requests that ended: answered without a compile. NaN: there were none. */
static double ratio(double hits, double joined, double requests) {
        return requests > 0 ? (hits + joined) / requests : NAN;
}

static void put_ratio(double r) {
        if (isnan(r))
                fputs("    -", stdout);
        else
                printf("%4.0f%%", r * 100);
}

static void print_head(const cJSON *o, const double *rates, double since) {
        char used[32], map[32];
        printf("autofused %s, process %.0f, up %.0f s%s; jobs %.0f of %.0f, %.0f queued; %.0f connections, %.0f requests for %.0f "
               "fragments\n",
               af_event_safe(af_history_text(o, "version"), 20), af_history_number(o, "pid"), af_history_number(o, "uptime_s"),
               cJSON_IsTrue(cJSON_GetObjectItem(o, "draining")) ? ", draining" : "", number(o, "jobs", "running"),
               number(o, "jobs", "slots"), number(o, "jobs", "queued"), number(o, "in_flight", "connections"),
               number(o, "in_flight", "requests"), number(o, "in_flight", "fragments"));
        printf("per second   %9.1f requests  %9.1f hits  %7.1f joined  %7.1f plans  %7.1f kernels  %7.1f failures\n", rates[REQUESTS],
               rates[HITS], rates[JOINED], rates[PLANS], rates[KERNELS], rates[FAILURES]);
        fputs("no compile for ", stdout);
        put_ratio(ratio(af_history_number(o, "hits"), af_history_number(o, "joined"), af_history_number(o, "requests")));
        fputs(" of all requests", stdout);
        if (since > 0) {
                fputs(", ", stdout);
                put_ratio(ratio(rates[HITS], rates[JOINED], rates[REQUESTS]));
                fputs(" of the latest", stdout);
        }
        printf("; store %s of %s, %.0f evicted, %.0f damaged\n", af_out_bytes((uint64_t)number(o, "store", "used_bytes"), used),
               af_out_bytes((uint64_t)number(o, "store", "map_bytes"), map), number(o, "store", "evicted"), number(o, "store", "damaged"));
}

/* False: nothing to show. */
static bool begin_list(struct af_table *t, const cJSON *list, const char *const *names, uint32_t n) {
        if (cJSON_GetArraySize(list) == 0)
                return false;
        putchar('\n');
        af_table_init(t, names, n);
        return true;
}

static void print_jobs(const cJSON *list) {
        static const char *const names[] = {"job", "what", "process", "priority", "runs"};
        const cJSON *row;
        struct af_table t;
        char text[32];
        if (!begin_list(&t, list, names, AF_ARRAY_SIZE(names)))
                return;
        cJSON_ArrayForEach(row, list) {
                af_table_add(&t, "%s", af_event_safe(af_history_text(row, "job"), 10));
                af_table_add(&t, "%s", af_event_safe(af_history_text(row, "what"), 64));
                af_table_add(&t, "%.0f", af_history_number(row, "pid"));
                af_table_add(&t, "%.0f", af_history_number(row, "priority"));
                af_table_add(&t, "%s", af_out_us((uint64_t)(af_history_number(row, "ms") * 1000), text));
        }
        af_table_print(&t, 0, stdout);
        af_table_deinit(&t);
}

static void print_waiting(const cJSON *list) {
        static const char *const names[] = {"fragment", "state", "waiters", "since"};
        const cJSON *row;
        struct af_table t;
        char text[32];
        if (!begin_list(&t, list, names, AF_ARRAY_SIZE(names)))
                return;
        cJSON_ArrayForEach(row, list) {
                af_table_add(&t, "%.16s", af_history_text(row, "fragment"));
                af_table_add(&t, "%s", af_event_safe(af_history_text(row, "doing"), 40));
                af_table_add(&t, "%.0f", af_history_number(row, "waiters"));
                af_table_add(&t, "%s", af_out_us((uint64_t)(af_history_number(row, "ms") * 1000), text));
        }
        af_table_print(&t, 0, stdout);
        af_table_deinit(&t);
}

static void show(struct look *now, const struct look *before, bool json) {
        double since = before->stats ? now->at_s - before->at_s : 0, uptime = fmax(af_history_number(now->stats, "uptime_s"), 1);
        double rates[N_COUNTERS];
        for (unsigned i = 0; i < N_COUNTERS; i++)
                rates[i] = since > 0 ? (now->values[i] - before->values[i]) / since : now->values[i] / uptime;
        if (!json) {
                print_head(now->stats, rates, since);
                print_jobs(cJSON_GetObjectItem(now->stats, "running"));
                print_waiting(cJSON_GetObjectItem(now->stats, "waiting"));
                return;
        }
        cJSON *o = cJSON_CreateObject(), *r = cJSON_AddObjectToObject(o, "per_second");
        for (unsigned i = 0; i < N_COUNTERS; i++)
                cJSON_AddNumberToObject(r, counters[i], rates[i]);
        cJSON_AddNumberToObject(o, "over_s", since > 0 ? since : uptime);
        cJSON_AddItemToObject(o, "stats", cJSON_Duplicate(now->stats, 1));
        char *text = cJSON_PrintUnformatted(o);
        puts(text ? text : "");
        cJSON_free(text);
        cJSON_Delete(o);
}

static int run(const struct af_args *args) {
        bool json = af_args_flag(args, "json"), once = af_args_flag(args, "once"), screen = !json && !once && isatty(STDOUT_FILENO);
        uint64_t delay = af_args_seconds(args, "delay", 1);
        struct look before = {0};
        struct af_admin a;
        int r = af_admin_open(args, &a);
        if (r != AF_EXIT_OK)
                return r;
        for (;;) {
                struct look now;
                r = take_look(&a, &now);
                if (r != AF_EXIT_OK)
                        break;
                if (screen)
                        fputs("\033[H\033[J", stdout);
                show(&now, &before, json);
                cJSON_Delete(before.stats);
                before = now;
                if (fflush(stdout) != 0 || once)
                        break;
                if (!screen && !json)
                        putchar('\n');
                sleep((unsigned)AF_MAX(delay, (uint64_t)1));
        }
        cJSON_Delete(before.stats);
        af_admin_close(&a);
        return r;
}

const struct af_command af_command_top = {
        .name = "top",
        .operands = "",
        .summary = "show what the server works on, refreshed",
        .details = "Rates are per second since the look before; the first look's, and --once's, since the server's start. --json prints "
                   "one object per look.",
        .options = options,
        .run = run,
};
