/* SPDX-License-Identifier: Apache-2.0 */
/* why: what a fragment's stored entries differ by from what would be compiled now. */
#include <cjson/cJSON.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/prepared.h"
#include "compiler/graph/canon.h"
#include "compiler/graph/words.h"
#include "tools/admin.h"
#include "tools/commands.h"
#include "tools/event_line.h"
#include "tools/frag.h"
#include "tools/history.h"

#define MAX_SHOWN 20 /* differences of one entry */
#define TRIES     100u
#define PAUSE_US  100000u

static const struct af_option options[] = {
        AF_OPTIONS_COMMON,
        AF_OPTIONS_SERVER,
        {0},
};

/* ---- what is asked ---- */

static bool is_hex(const char *text) {
        size_t n = strlen(text);
        return n >= 8 && strspn(text, "0123456789abcdefABCDEF") == n;
}

/* A digest's beginning, completed from the ledger. */
static int complete(struct af_admin *a, const char *hex, uint8_t digest[32]) {
        cJSON *q = cJSON_CreateObject();
        cJSON_AddStringToObject(q, "question", "history");
        cJSON_AddStringToObject(q, "fragment", hex);
        cJSON_AddNumberToObject(q, "limit", 1);
        cJSON *o = af_history_ask(a, q);
        const cJSON *row = cJSON_GetArrayItem(cJSON_GetObjectItem(o, "events"), 0);
        bool found = row && af_unhex(af_history_text(row, "fragment"), 64, digest, 32);
        if (o && !found)
                fprintf(stderr, "error: no fragment that begins with %s is in the ledger\n", hex);
        cJSON_Delete(o);
        return found ? AF_EXIT_OK : AF_EXIT_FAILED;
}

static int put_key(struct af_admin *a, const char *hex, struct af_buf *fields) {
        uint8_t key[64];
        size_t n = strlen(hex);
        if (n == 128 && af_unhex(hex, n, key, 64)) {
                af_frame_field(fields, AF_TAG_KEY, key, 64);
                return AF_EXIT_OK;
        }
        if (n > 64 || n % 2) {
                fprintf(stderr, "error: %zu hexadecimal digits: a key has 128, a fragment's digest 64, its beginning an even number\n", n);
                return AF_EXIT_USAGE;
        }
        if (n == 64 ? !af_unhex(hex, n, key, 32) : complete(a, hex, key) != AF_EXIT_OK)
                return AF_EXIT_FAILED;
        af_frame_field(fields, AF_TAG_FRAGMENT, key, 32);
        return AF_EXIT_OK;
}

/* Digest, target and words of a fragment's file. */
static int put_fragment(const char *path, struct af_buf *fields) {
        AF_CLEANUP(af_diags_deinit) struct af_diags diags = {0};
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        AF_CLEANUP(af_buf_deinit) struct af_buf words = AF_BUF_INIT;
        struct af_prepared *prepared = NULL;
        struct af_graph graph;
        struct af_frag frag;
        af_arena_init(&arena, 0);
        if (af_frag_load(path, &frag) != AF_EXIT_OK)
                return AF_EXIT_FAILED;
        int r = af_prepared_new(&frag.f, &diags, &prepared);
        if (r == 0)
                r = af_canon_read(&graph, &arena, prepared->canon, prepared->n_canon, &diags);
        if (r == 0) {
                uint8_t twin = (uint8_t)frag.f.twin;
                af_graph_words(&graph, &words);
                af_frame_field(fields, AF_TAG_FRAGMENT, prepared->digest.bytes, 32);
                af_frame_field_str(fields, AF_TAG_SOC, frag.f.soc ? frag.f.soc : "");
                af_frame_field_str(fields, AF_TAG_TOOLCHAIN, frag.f.toolchain ? frag.f.toolchain : "");
                af_frame_field(fields, AF_TAG_TWIN, &twin, 1);
                af_frame_field(fields, AF_TAG_TEXT, words.data, words.size);
        } else {
                af_out_diags(&diags);
        }
        af_prepared_unref(prepared);
        af_frag_deinit(&frag);
        return r == 0 ? AF_EXIT_OK : AF_EXIT_FAILED;
}

/* ---- what is shown ---- */

static void print_difference(const cJSON *d) {
        const cJSON *here = cJSON_GetObjectItemCaseSensitive(d, "here"), *there = cJSON_GetObjectItemCaseSensitive(d, "there");
        printf("  %s: ", af_event_safe(af_history_text(d, "name"), 200));
        if (cJSON_IsString(there))
                printf("%s", *there->valuestring ? af_event_safe(there->valuestring, 100) : "(empty)");
        else
                fputs("(not there)", stdout);
        if (cJSON_IsString(here))
                printf(" -> %s\n", *here->valuestring ? af_event_safe(here->valuestring, 100) : "(empty)");
        else
                fputs(" -> (none now)\n", stdout);
}

static void print_entry(const cJSON *e) {
        const cJSON *d, *list = cJSON_GetObjectItemCaseSensitive(e, "differs");
        int n = 0;
        printf("\nentry of environment %.16s", af_history_text(e, "environment"));
        if (cJSON_IsTrue(cJSON_GetObjectItem(e, "current"))) {
                puts(", the one in force");
                return;
        }
        if (!cJSON_IsTrue(cJSON_GetObjectItem(e, "stored")))
                fputs(", which is not stored", stdout);
        if (!cJSON_IsTrue(cJSON_GetObjectItem(e, "known"))) {
                puts(": what it consisted of is not known");
                return;
        }
        printf(" differs in %.0f, then -> now:\n", af_history_number(e, "n_differ"));
        cJSON_ArrayForEach(d, list) {
                if (n++ == MAX_SHOWN)
                        break;
                print_difference(d);
        }
        if (af_history_number(e, "n_differ") > MAX_SHOWN)
                printf("  and %.0f more\n", af_history_number(e, "n_differ") - MAX_SHOWN);
}

/* Words of one that the other has not, in the order of the one. */
static void print_words_without(const char *sign, const char *words, const char *others) {
        char copy[2048], *save = NULL;
        bool any = false;
        snprintf(copy, sizeof(copy), "%s", words);
        for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
                size_t n = strlen(w);
                bool found = false;
                for (const char *p = strstr(others, w); p && !found; p = strstr(p + 1, w))
                        found = (p == others || p[-1] == ' ') && (p[n] == 0 || p[n] == ' ');
                if (found)
                        continue;
                printf("%s%s", any ? " " : sign, af_event_safe(w, 100));
                any = true;
        }
        if (any)
                putchar('\n');
}

static void print_nearest(const cJSON *nearest, const struct af_buf *fields) {
        struct af_field words;
        char mine[1100] = "";
        if (!nearest)
                return;
        if (af_frame_find(fields->data, fields->size, AF_TAG_TEXT, 0, &words))
                snprintf(mine, sizeof(mine), "%.*s", (int)AF_MIN(words.n, sizeof(mine) - 1), (const char *)words.p);
        printf("\nthe nearest fragment that was compiled, %.0f%% alike: %.16s\n", af_history_number(nearest, "likeness") / 10,
               af_history_text(nearest, "fragment"));
        print_words_without("  only there: ", af_history_text(nearest, "words"), mine);
        print_words_without("  only here:  ", mine, af_history_text(nearest, "words"));
}

static void print(const cJSON *o, const struct af_buf *fields) {
        const cJSON *e;
        printf("fragment     %s\nenvironment  %s (%s, %s)\n", af_history_text(o, "fragment"), af_history_text(o, "environment"),
               af_event_safe(af_history_text(o, "soc"), 60), af_event_safe(af_history_text(o, "toolchain"), 60));
        if (cJSON_IsTrue(cJSON_GetObjectItem(o, "stored")))
                puts("stored       yes: it hits");
        else
                printf("stored       no: %s\n", af_event_safe(af_history_text(o, "why"), 300));
        cJSON_ArrayForEach(e, cJSON_GetObjectItem(o, "entries")) print_entry(e);
        print_nearest(cJSON_GetObjectItem(o, "nearest"), fields);
}

/* The server may have to read rules and toolchain first. */
static char *ask(struct af_admin *a, const struct af_buf *fields) {
        for (unsigned i = 0; i < TRIES; i++) {
                struct af_admin_error error = {0};
                char *text = NULL;
                if (af_admin_try(a, AF_FRAME_WHY, fields, &text, &error) == AF_EXIT_OK)
                        return text;
                if (!error.retryable || i + 1 == TRIES)
                        af_admin_report(&error);
                bool again = error.retryable;
                free(error.text);
                if (!again)
                        break;
                usleep(PAUSE_US);
        }
        return NULL;
}

static int run(const struct af_args *args) {
        AF_CLEANUP(af_buf_deinit) struct af_buf fields = AF_BUF_INIT;
        const char *what = args->operands[0];
        struct af_admin a;
        if (af_admin_open(args, &a) != AF_EXIT_OK)
                return AF_EXIT_FAILED;
        int r = is_hex(what) && access(what, F_OK) != 0 ? put_key(&a, what, &fields) : put_fragment(what, &fields);
        char *text = r == AF_EXIT_OK ? ask(&a, &fields) : NULL;
        cJSON *o = text ? cJSON_Parse(text) : NULL;
        free(text);
        af_admin_close(&a);
        if (!o)
                return r != AF_EXIT_OK ? r : AF_EXIT_FAILED;
        if (af_args_flag(args, "json")) {
                af_out_json(o);
                return AF_EXIT_OK;
        }
        print(o, &fields);
        cJSON_Delete(o);
        return AF_EXIT_OK;
}

const struct af_command af_command_why = {
        .name = "why",
        .operands = "KEY|FRAG.json",
        .summary = "show why a fragment hits or misses",
        .details = "Compares the environment in force with those that the fragment's stored entries were compiled in: rules, SoC, "
                   "toolchain and each of its "
                   "files, salt. KEY: a key (128 hexadecimal digits), a fragment's digest (64), or its beginning. With a file, and no "
                   "entry of it, the most "
                   "similar fragment that was compiled is named.",
        .options = options,
        .min_operands = 1,
        .max_operands = 1,
        .run = run,
};
