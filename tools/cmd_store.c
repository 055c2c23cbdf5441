/* SPDX-License-Identifier: Apache-2.0 */
/* gc and verify-store: on the live store through its server, or, with --state, on one that no server holds. */
#include <stdlib.h>
#include <string.h>

#include "tools/admin.h"
#include "tools/alone.h"
#include "tools/commands.h"

#define OPTION_STATE                                                                                                                       \
        { 0, "state", AF_OPTION_TEXT, "DIR", "a state directory that no server holds, instead of a server's" }

static const struct af_option verify_options[] = {AF_OPTIONS_COMMON, AF_OPTIONS_SERVER, OPTION_STATE, {0}};
static const struct af_option gc_options[] = {
        AF_OPTIONS_COMMON,
        AF_OPTIONS_SERVER,
        OPTION_STATE,
        {0, "max-mib", AF_OPTION_NUMBER, "MIB", "then evict what was not used for longest until this much is used"},
        {0, "max-age", AF_OPTION_NUMBER, "DAYS", "bundles that were not used for longer go"},
        {0, "current-only", AF_OPTION_FLAG, NULL, "bundles of other toolchains, SoC files and rules go (server only)"},
        {0},
};

static void draw(void *userdata, uint64_t done, uint64_t total) {
        struct af_bar *bar = userdata;

        bar->total = total;
        af_bar_update(bar, done, NULL);
}

static int run_alone(struct af_alone *alone, const char *what, char **ret_text) {
        struct af_bar bar;
        int r;

        alone->tell = draw;
        alone->userdata = &bar;
        af_bar_start(&bar, what, 1);
        r = af_alone_run(alone, ret_text);
        af_bar_end(&bar);
        return r ? AF_EXIT_FAILED : AF_EXIT_OK;
}

static int run_server(const struct af_args *args, const char *query, const char *what, char **ret_text) {
        AF_CLEANUP(af_buf_deinit) struct af_buf fields = AF_BUF_INIT;
        struct af_admin admin;
        struct af_bar bar;
        int r = af_admin_open(args, &admin);

        if (r != AF_EXIT_OK)
                return r;
        af_frame_field_str(&fields, AF_TAG_QUERY, query);
        af_bar_start(&bar, what, 1);
        r = af_admin_ask(&admin, AF_FRAME_MAINTAIN, &fields, &bar, ret_text, NULL, NULL);
        af_bar_end(&bar);
        af_admin_close(&admin);
        return r;
}

static int print(const struct af_args *args, char *text, bool fail_on_damage) {
        cJSON *o = cJSON_Parse(text), *damaged = cJSON_GetObjectItemCaseSensitive(o, "damaged");
        int r = !o || (fail_on_damage && damaged && damaged->valuedouble > 0) ? AF_EXIT_FAILED : AF_EXIT_OK;
        struct af_table t;
        const cJSON *item;

        free(text);
        if (o && af_args_flag(args, "json")) {
                af_out_json(o);
                return r;
        }
        af_table_init(&t, (const char *const[]){"what", "how much"}, 2);
        cJSON_ArrayForEach(item, o) {
                char bytes[32];

                af_table_add(&t, "%s", item->string);
                if (strncmp(item->string, "used_", 5) == 0)
                        af_table_add(&t, "%s", af_out_bytes((uint64_t)item->valuedouble, bytes));
                else
                        af_table_add(&t, "%.0f", item->valuedouble);
        }
        af_table_print(&t, 0, stdout);
        af_table_deinit(&t);
        cJSON_Delete(o);
        return r;
}

static int run_verify(const struct af_args *args) {
        struct af_alone alone = {.dir = af_args_text(args, "state")};
        char *text = NULL;
        int r = alone.dir ? run_alone(&alone, "verifying", &text) : run_server(args, "{\"action\":\"verify\"}", "verifying", &text);

        return r == AF_EXIT_OK ? print(args, text, true) : r;
}

static int run_gc(const struct af_args *args) {
        struct af_alone alone = {.dir = af_args_text(args, "state"), .gc = true};
        bool current_only = af_args_flag(args, "current-only");
        char query[256], *text = NULL;
        int r;

        alone.max_bytes = AF_MIN(af_args_number(args, "max-mib", 0), UINT64_MAX >> 20) << 20;
        alone.max_age_days = (uint32_t)AF_MIN(af_args_number(args, "max-age", 0), (uint64_t)1000000);
        if (alone.dir && current_only) {
                fputs("autofusectl gc: --current-only needs a server, which knows what is current\n", stderr);
                return AF_EXIT_USAGE;
        }
        snprintf(query, sizeof(query), "{\"action\":\"gc\",\"max_bytes\":%llu,\"max_age_days\":%u,\"current_only\":%s}",
                 (unsigned long long)alone.max_bytes, alone.max_age_days, current_only ? "true" : "false");
        r = alone.dir ? run_alone(&alone, "collecting", &text) : run_server(args, query, "collecting", &text);
        return r == AF_EXIT_OK ? print(args, text, false) : r;
}

const struct af_command af_command_verify_store = {
        .name = "verify-store",
        .operands = "",
        .summary = "check every record of the store; damaged ones are deleted",
        .details = "The exit code is 1 where something was damaged. What is deleted is compiled again when it is asked for.",
        .options = verify_options,
        .run = run_verify,
};

const struct af_command af_command_gc = {
        .name = "gc",
        .operands = "",
        .summary = "delete what nothing needs any more from the store",
        .details = "Kernels, sources, fragments and texts that no bundle needs go; with options, bundles before them. The file does not "
                   "shrink: its free pages are used again.",
        .options = gc_options,
        .run = run_gc,
};
