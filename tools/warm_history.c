/* SPDX-License-Identifier: Apache-2.0 */
/* warm --from-history: fragments by their digests, most used first; the server has their bytes. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/history.h"
#include "tools/session.h"

#define IN_FLIGHT 32u
#define MAX_TRIES 8u
#define PAUSE_US  100000
#define WARM_UP   255 /* behind every waiting rank */

enum outcome { WAITING, AGAIN /* the server was busy */, COMPILED, FOUND, GONE, FAILED, N_OUTCOMES };
static const char *const outcomes[N_OUTCOMES] = {"waiting", "waiting", "compiled", "found", "gone", "failed"};

struct item {
        struct af_digest digest;
        double uses;
        char words[128];
        enum outcome outcome;
        unsigned n_tries;
        uint64_t again_us; /* AGAIN: when */
        char *why;         /* malloc'd */
};
struct warm {
        struct af_admin a;
        struct item *items; /* request ids are their places + 1 */
        uint32_t n, n_sent, n_done, n_in_flight, n_again;
        uint32_t deadline_ms;
};

static int read_items(struct warm *w, uint32_t n) {
        cJSON *q = cJSON_CreateObject();
        cJSON_AddStringToObject(q, "question", "top");
        cJSON_AddNumberToObject(q, "limit", n);
        cJSON *o = af_history_ask(&w->a, q);
        const cJSON *row, *list = cJSON_GetObjectItem(o, "fragments");
        if (!o)
                return AF_EXIT_FAILED;
        w->items = calloc((size_t)cJSON_GetArraySize(list) + 1, sizeof(*w->items));
        cJSON_ArrayForEach(row, list) {
                struct item *item = &w->items[w->n];
                if (!w->items || !af_unhex(af_history_text(row, "fragment"), 64, item->digest.bytes, 32))
                        continue;
                item->uses = af_history_number(row, "hits") + af_history_number(row, "joined") + af_history_number(row, "compiled");
                snprintf(item->words, sizeof(item->words), "%s", af_history_text(row, "words"));
                w->n++;
        }
        cJSON_Delete(o);
        return w->items ? AF_EXIT_OK : AF_EXIT_FAILED;
}

static void send_one(struct warm *w, struct item *item) {
        struct af_buf *out = &w->a.conn->out;
        size_t at = af_frame_begin(out, &(struct af_frame_header){.type = AF_FRAME_SUBMIT,
                                                                  .request_id = (uint64_t)(item - w->items) + 1,
                                                                  .deadline_ms = w->deadline_ms,
                                                                  .priority = WARM_UP});
        af_frame_field(out, AF_TAG_FRAGMENT, item->digest.bytes, sizeof(item->digest.bytes));
        af_frame_end(out, at);
        item->outcome = WAITING;
        item->n_tries++;
        w->n_in_flight++;
}

/* Those that are due once more, and then new ones. */
static void send_some(struct warm *w) {
        uint64_t now = af_clock_now_us();
        for (uint32_t i = 0; i < w->n_sent && w->n_again > 0 && w->n_in_flight < IN_FLIGHT; i++)
                if (w->items[i].outcome == AGAIN && w->items[i].again_us <= now) {
                        w->n_again--;
                        send_one(w, &w->items[i]);
                }
        while (w->n_sent < w->n && w->n_in_flight < IN_FLIGHT)
                send_one(w, &w->items[w->n_sent++]);
}

static void settle(struct warm *w, const struct af_incoming *in) {
        struct item *item = in->h.request_id > 0 && in->h.request_id <= w->n ? &w->items[in->h.request_id - 1] : NULL;
        struct af_field f, code;
        if (!item || item->outcome != WAITING || (in->h.type != AF_FRAME_RESULT && in->h.type != AF_FRAME_ERROR))
                return;
        w->n_in_flight--;
        if (in->h.type == AF_FRAME_ERROR && item->n_tries < MAX_TRIES && af_frame_find(in->body, in->n_body, AF_TAG_RETRYABLE, 1, &f) &&
            f.p[0]) {
                item->outcome = AGAIN;
                item->again_us = af_clock_now_us() + PAUSE_US * item->n_tries;
                w->n_again++;
                return;
        }
        w->n_done++;
        if (in->h.type == AF_FRAME_RESULT) {
                bool compiled = af_frame_find(in->body, in->n_body, AF_TAG_HIT, 1, &f) && f.p[0] == AF_HIT_COMPILED;
                item->outcome = compiled ? COMPILED : FOUND;
                return;
        }
        item->outcome =
                af_frame_find(in->body, in->n_body, AF_TAG_CODE, 4, &code) && af_field_u32(&code) == AF_ERROR_NOT_FOUND ? GONE : FAILED;
        if (af_frame_find(in->body, in->n_body, AF_TAG_TEXT, 0, &f))
                item->why = strndup((const char *)f.p, f.n);
}

/* One turn of the connection: out what can go, in what is there. False where it broke. */
static bool turn(struct warm *w) {
        int r = af_connection_flush(w->a.conn);
        struct pollfd p = {.fd = w->a.conn->fd, .events = (short)(POLLIN | (r == -EAGAIN ? POLLOUT : 0))};
        if ((r != 0 && r != -EAGAIN) || (poll(&p, 1, w->n_again ? PAUSE_US / 1000 : -1) < 0 && errno != EINTR))
                return false;
        for (;;) {
                struct af_incoming in;
                const char *why;
                r = af_connection_read(w->a.conn, &in, &why);
                if (r != 0)
                        return r == -EAGAIN;
                settle(w, &in);
                if (in.fd >= 0)
                        close(in.fd);
        }
}

static int warm_all(struct warm *w) {
        struct af_bar bar;
        bool broken = false;
        af_bar_start(&bar, "warming", w->n);
        while (w->n_done < w->n && !broken) {
                send_some(w);
                broken = !turn(w);
                af_bar_update(&bar, w->n_done, w->n_done < w->n ? w->items[w->n_done].words : NULL);
        }
        af_bar_end(&bar);
        if (broken)
                fputs("error: the server is gone\n", stderr);
        return broken ? AF_EXIT_FAILED : AF_EXIT_OK;
}

static void print_json(const struct warm *w) {
        cJSON *list = cJSON_CreateArray();
        for (uint32_t i = 0; i < w->n; i++) {
                char hex[AF_DIGEST_HEX_SIZE];
                cJSON *o = cJSON_CreateObject();
                af_digest_hex(&w->items[i].digest, hex);
                cJSON_AddStringToObject(o, "fragment", hex);
                cJSON_AddNumberToObject(o, "uses", w->items[i].uses);
                cJSON_AddStringToObject(o, "outcome", outcomes[w->items[i].outcome]);
                if (w->items[i].why)
                        cJSON_AddStringToObject(o, "why", w->items[i].why);
                cJSON_AddItemToArray(list, o);
        }
        af_out_json(list);
}

static void report(const struct warm *w, bool json, const uint32_t *counts) {
        if (json) {
                print_json(w);
                return;
        }
        for (uint32_t i = 0; i < w->n; i++)
                if (w->items[i].outcome == FAILED) {
                        char hex[AF_DIGEST_HEX_SIZE];
                        af_digest_hex(&w->items[i].digest, hex);
                        printf("%.16s failed: %.*s\n", hex, (int)strcspn(w->items[i].why ? w->items[i].why : "", "\n"),
                               w->items[i].why ? w->items[i].why : "");
                }
        printf("%u fragments: %u compiled, %u found, %u no longer stored, %u failed\n", w->n, counts[COMPILED], counts[FOUND], counts[GONE],
               counts[FAILED]);
}

int af_warm_from_history(const struct af_args *args, uint32_t n) {
        struct warm w = {.deadline_ms = (uint32_t)AF_MIN(af_args_seconds(args, "timeout", 600) * 1000, (uint64_t)UINT32_MAX)};
        uint32_t counts[N_OUTCOMES] = {0};
        struct af_session s;
        /* Starts this user's server where none runs; its history may be long. */
        int r = af_session_open(args, &s);
        if (r != AF_EXIT_OK)
                return r;
        af_session_close(&s);
        r = af_admin_open(args, &w.a);
        if (r != AF_EXIT_OK)
                return r;
        r = read_items(&w, n);
        if (r == AF_EXIT_OK)
                r = warm_all(&w);
        for (uint32_t i = 0; i < w.n; i++)
                counts[w.items[i].outcome]++;
        if (r == AF_EXIT_OK)
                report(&w, af_args_flag(args, "json"), counts);
        for (uint32_t i = 0; i < w.n; i++)
                free(w.items[i].why);
        free(w.items);
        af_admin_close(&w.a);
        return r != AF_EXIT_OK || counts[FAILED] ? AF_EXIT_FAILED : AF_EXIT_OK;
}
