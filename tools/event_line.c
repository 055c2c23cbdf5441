/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/event_line.h"

#include <string.h>
#include <time.h>

#include "base/macros.h"
#include "base/utf8.h"
#include "tools/out.h"

#define NAME_WIDTH 16

const char *af_event_safe(const char *text, size_t max) {
        static char out[4][1024];
        static unsigned turn;
        char *copy = out[turn++ % 4];
        size_t at = 0, n = strlen(text), end = AF_MIN(max, sizeof(out[0]) - 8);
        for (size_t i = 0; i < n && at < end;) {
                size_t length = af_utf8_sequence((const uint8_t *)text + i, n - i);
                bool control = length == 1 && ((unsigned char)text[i] < 0x20 || text[i] == 0x7f);
                /* C1 controls are two bytes. */
                control |= length == 2 && (unsigned char)text[i] == 0xc2 && (unsigned char)text[i + 1] < 0xa0;
                if (length == 0 || control) {
                        copy[at++] = ' ';
                        i += AF_MAX(length, (size_t)1);
                        continue;
                }
                memcpy(copy + at, text + i, length);
                at += length;
                i += length;
        }
        copy[at] = 0;
        return copy;
}

static const char *text_of(const cJSON *e, const char *name, size_t max) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(e, name);
        return af_event_safe(cJSON_IsString(item) ? item->valuestring : "", max);
}

static double number_of(const cJSON *e, const char *name) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(e, name);
        return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static bool is_true(const cJSON *e, const char *name) {
        return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(e, name));
}

static void put_peer(const cJSON *e, FILE *out) {
        fprintf(out, "%s[%.0f]", text_of(e, "peer", 24), number_of(e, "pid"));
}

static void put_us(const cJSON *e, const char *name, FILE *out) {
        char text[32];
        fprintf(out, "%s", af_out_us((uint64_t)number_of(e, name), text));
}

/* ---- one function per kind of event ---- */

static void submit(const cJSON *e, FILE *out) {
        char text[32];
        put_peer(e, out);
        fprintf(out, " %s of %s", af_out_bytes((uint64_t)number_of(e, "bytes"), text), is_true(e, "json") ? "JSON" : "canonical form");
}

static void hit(const cJSON *e, FILE *out) {
        fprintf(out, "%s ", text_of(e, "fragment", 12));
        put_peer(e, out);
        fputc(' ', out);
        put_us(e, "us", out);
}

static void miss(const cJSON *e, FILE *out) {
        fprintf(out, "%s %s", text_of(e, "fragment", 12), text_of(e, "why", 300));
}

static void joined(const cJSON *e, FILE *out) {
        put_peer(e, out);
        fprintf(out, " waits with %.0f", number_of(e, "waiters") - 1);
}

static void done(const cJSON *e, FILE *out) {
        hit(e, out);
        fputs(is_true(e, "joined") ? " (joined)" : " (compiled)", out);
}

static void failed(const cJSON *e, FILE *out) {
        put_peer(e, out);
        fprintf(out, " %s: %s", text_of(e, "code", 20), text_of(e, "text", 300));
}

static void job(const cJSON *e, FILE *out) {
        fprintf(out, "%-7s %s", text_of(e, "job", 10), text_of(e, "what", strcmp(text_of(e, "job", 10), "plan") == 0 ? 12 : 60));
        if (cJSON_HasObjectItem(e, "run_us")) {
                fputs(" in ", out);
                put_us(e, "run_us", out);
                if (!is_true(e, "ok"))
                        fprintf(out, ", %s", text_of(e, "text", 200));
        } else if (number_of(e, "queued_us") >= 1000) {
                fputs(" after ", out);
                put_us(e, "queued_us", out);
        }
}

static void plan(const cJSON *e, FILE *out) {
        fprintf(out, "%s %s", text_of(e, "fragment", 12), text_of(e, "words", 300));
}

static void fallback(const cJSON *e, FILE *out) {
        fputs(text_of(e, "line", 500), out);
}

static void environment(const cJSON *e, FILE *out) {
        fprintf(out, "%s %s, %s: %s", is_true(e, "moved") ? "moved:" : "loaded:", text_of(e, "soc", 40), text_of(e, "toolchain", 40),
                text_of(e, "version", 100));
}

static void counted(const cJSON *e, FILE *out) {
        fprintf(out, "%.0f", number_of(e, "n"));
}

static void said(const cJSON *e, FILE *out) {
        fputs(text_of(e, "text", 300), out);
}

static void peer_only(const cJSON *e, FILE *out) {
        put_peer(e, out);
}

static const struct kind {
        const char *name, *color;
        void (*put)(const cJSON *e, FILE *out);
} kinds[] = {
        {"request.submit", "2", submit},
        {"request.hit", "32", hit},
        {"request.miss", "33", miss},
        {"request.joined", "36", joined},
        {"request.done", "1;32", done},
        {"request.failed", "1;31", failed},
        {"request.canceled", "31", peer_only},
        {"request.more", "2", counted},
        {"job.start", "34", job},
        {"job.end", "1;34", job},
        {"plan", "36", plan},
        {"fallback", "35", fallback},
        {"environment", "1;33", environment},
        {"store.evicted", "33", counted},
        {"store.damaged", "1;31", counted},
        {"server", "1", said},
};

void af_event_line(const cJSON *e, bool color, FILE *out) {
        const char *name = text_of(e, "event", 40);
        double ms = number_of(e, "time_ms");
        time_t seconds = (time_t)(ms / 1000);
        const struct kind *kind = NULL;
        struct tm tm;
        char clock[16] = "";
        for (size_t i = 0; i < AF_ARRAY_SIZE(kinds); i++)
                if (strcmp(kinds[i].name, name) == 0)
                        kind = &kinds[i];
        if (localtime_r(&seconds, &tm))
                strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
        fprintf(out, color ? "\033[2m%s.%03u\033[0m " : "%s.%03u ", clock, (unsigned)((uint64_t)ms % 1000));
        if (color && kind)
                fprintf(out, "\033[%sm%-*s\033[0m ", kind->color, NAME_WIDTH, name);
        else
                fprintf(out, "%-*s ", NAME_WIDTH, name);
        if (kind)
                kind->put(e, out);
        fputc('\n', out);
}
