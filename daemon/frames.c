/* SPDX-License-Identifier: Apache-2.0 */
/* What each frame of a client means. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "compiler/graph/canon.h"
#include "daemon/core.h"

#define MAX_HELLO_BODY   (64u << 10)
#define MAX_CONTROL_BODY (4u << 10)
#define MAX_TOUCH_BODY   (1u << 20)
#define MAX_ORIGINS      (64u << 10)
#define MAX_TOUCHES      256u

size_t af_conn_max_body(const struct af_conn *conn, uint8_t type) {
        if (conn->state == AF_CONN_HELLO)
                return MAX_HELLO_BODY;
        if (type == AF_FRAME_SUBMIT || type == AF_FRAME_IMPORT)
                return AF_FRAME_MAX_BODY;
        return type == AF_FRAME_TOUCH ? MAX_TOUCH_BODY : MAX_CONTROL_BODY;
}

static void protocol_error(struct af_conn *conn, const char *text) {
        conn->core->stats.n_protocol_errors++;
        af_reply_fatal(conn, AF_ERROR_PROTOCOL, text);
}

static bool admitted(const struct af_conn *conn) {
        const struct af_config_uids *uids = &conn->core->config->allow_uid;

        if (conn->peer.uid == 0 || conn->peer.uid == geteuid())
                return true;
        for (uint32_t i = 0; i < uids->n; i++)
                if (uids->items[i] == conn->peer.uid)
                        return true;
        return false;
}

static bool owner(const struct af_conn *conn) {
        return conn->peer.uid == 0 || conn->peer.uid == geteuid();
}

static void take_name(struct af_conn *conn, const uint8_t *body, size_t n) {
        struct af_field f;
        size_t size = 0;

        if (af_frame_find(body, n, AF_TAG_PEER_NAME, 0, &f))
                for (; size < f.n && size < sizeof(conn->name) - 1; size++)
                        conn->name[size] = isprint(f.p[size]) ? (char)f.p[size] : '?';
        conn->name[size] = 0;
}

static void reply_hello(struct af_conn *conn, uint64_t id) {
        struct af_target target = {(char *)"", (char *)"", AF_TWIN_DEFAULT};
        struct af_buf buf = AF_BUF_INIT;
        struct af_ready_bundle *hot = conn->takes_fds && conn->takes_hot ? conn->core->hot.carrier : NULL;
        size_t at = af_frame_begin(&buf, &(struct af_frame_header){.type = AF_FRAME_HELLO, .request_id = id, .n_fds = hot != NULL});
        struct af_environment *env = af_environment_get(conn->core, &target);

        af_frame_field(&buf, AF_TAG_VERSIONS, (uint8_t[4]){AF_FRAME_VERSION, 0, AF_FRAME_VERSION, 0}, 4);
        af_frame_field_u64(&buf, AF_TAG_CAPABILITIES, AF_CAP_MEMFD | AF_CAP_HOT);
        af_frame_field_u32(&buf, AF_TAG_CANON_VERSION, AF_CANON_VERSION);
        af_frame_field_str(&buf, AF_TAG_PEER_NAME, "autofused " AF_VERSION);
        /* Not waited for: a client that needs it gets it with the first answer's key. */
        if (env && env->state == AF_ENVIRONMENT_READY)
                af_frame_field(&buf, AF_TAG_ENV_DIGEST, env->digest.bytes, sizeof(env->digest.bytes));
        if (hot)
                af_frame_field_u64(&buf, AF_TAG_HOT_BYTES, hot->size);
        af_frame_end(&buf, at);
        if (!hot) {
                af_conn_send(conn, &buf);
                return;
        }
        af_hot_wake(conn->core);
        af_conn_send_bundle(conn, &buf, af_ready_bundle_ref(hot), true);
}

static void on_hello(struct af_conn *conn, const struct af_frame_header *h, const uint8_t *body, size_t n) {
        struct af_field f;
        char text[160];
        unsigned min, max;

        if (!af_frame_find(body, n, AF_TAG_VERSIONS, 4, &f)) {
                protocol_error(conn, "the hello names no versions");
                return;
        }
        min = f.p[0] | (unsigned)f.p[1] << 8;
        max = f.p[2] | (unsigned)f.p[3] << 8;
        if (AF_FRAME_VERSION < min || AF_FRAME_VERSION > max) {
                snprintf(text, sizeof(text), "this server speaks protocol version %u, the client %u to %u", AF_FRAME_VERSION, min, max);
                af_reply_fatal(conn, AF_ERROR_VERSION, text);
                return;
        }
        if (!admitted(conn)) {
                conn->core->stats.n_refused++;
                snprintf(text, sizeof(text), "user %u is not admitted by this server (allow_uid)", (unsigned)conn->peer.uid);
                af_log(AF_LOG_INFO, "refused user %u, process %d", (unsigned)conn->peer.uid, (int)conn->peer.pid);
                af_reply_fatal(conn, AF_ERROR_REFUSED, text);
                return;
        }
        take_name(conn, body, n);
        if (af_frame_find(body, n, AF_TAG_CAPABILITIES, 8, &f)) {
                conn->takes_fds = af_field_u64(&f) & AF_CAP_MEMFD;
                conn->takes_hot = af_field_u64(&f) & AF_CAP_HOT;
        }
        conn->state = AF_CONN_OPEN;
        reply_hello(conn, h->request_id);
}

static struct af_request *request_find(struct af_conn *conn, uint64_t id) {
        af_list_each (req, &conn->requests, struct af_request, in_conn) {
                if (req->id == id)
                        return req;
        }
        return NULL;
}

static struct af_request *request_new(struct af_conn *conn, const struct af_frame_header *h, bool lookup_only) {
        struct af_request *req = calloc(1, sizeof(*req));
        uint64_t now = af_clock_now_ns();

        if (!req)
                return NULL;
        req->conn = conn;
        req->id = h->request_id;
        req->begin_ns = req->progress_ns = now;
        req->deadline_ns = now + (h->deadline_ms ? h->deadline_ms * 1000000ull : conn->core->config->request_timeout_s * 1000000000ull);
        req->priority = h->priority;
        req->lookup_only = lookup_only;
        af_list_init(&req->in_flight);
        af_list_init(&req->wants);
        af_list_append(&conn->requests, &req->in_conn);
        conn->n_requests++;
        conn->core->n_requests++;
        conn->client->user->n_requests++;
        return req;
}

static void submit_stored(struct af_request *req, const uint8_t digest[32]) {
        struct af_digest d;

        memcpy(d.bytes, digest, sizeof(d.bytes));
        af_request_submit_stored(req, &d);
}

static void on_submit(struct af_conn *conn, const struct af_frame_header *h, const uint8_t *body, size_t n) {
        struct af_core *core = conn->core;
        struct af_field f, flag;
        bool stored, is_text, lookup_only = af_frame_find(body, n, AF_TAG_LOOKUP_ONLY, 1, &flag) && flag.p[0];
        struct af_request *req;
        struct af_blob *bytes;

        core->stats.n_requests++;
        stored = !af_frame_find(body, n, AF_TAG_CANON, 0, &f) && af_frame_find(body, n, AF_TAG_FRAGMENT, 32, &f);
        is_text = !stored && !af_frame_find(body, n, AF_TAG_CANON, 0, &f);
        if (is_text && !af_frame_find(body, n, AF_TAG_TEXT_JSON, 0, &f)) {
                af_reply_error(conn, h->request_id, AF_ERROR_INVALID, false, "the request has no fragment");
                return;
        }
        if (core->draining) {
                af_reply_error(conn, h->request_id, AF_ERROR_DRAINING, true, "the server is going down");
                return;
        }
        if (request_find(conn, h->request_id)) {
                protocol_error(conn, "this request id is in use");
                return;
        }
        if (conn->n_requests >= (conn->kind == AF_PEER_GATE ? core->config->gate_requests : core->config->max_requests)) {
                af_reply_error(conn, h->request_id, AF_ERROR_BUSY, true, "too many requests outstanding on this connection");
                return;
        }
        if (conn->client->user->n_requests >= core->config->user_requests) {
                af_reply_error(conn, h->request_id, AF_ERROR_BUSY, true, "too many requests of this user outstanding");
                return;
        }
        bytes = af_blob_copy(f.p, f.n);
        req = bytes ? request_new(conn, h, lookup_only) : NULL;
        if (req)
                req->wants_parts = af_frame_find(body, n, AF_TAG_PARTS, 1, &flag) && flag.p[0];
        if (req) {
                bool named = af_frame_find(body, n, AF_TAG_ORIGINS, 0, &flag) && flag.n <= MAX_ORIGINS;

                conn->origins = named ? flag.p : NULL;
                conn->n_origins = named ? flag.n : 0;
                af_event_submit(req, is_text, f.n);
                if (stored)
                        submit_stored(req, f.p);
                else
                        af_request_submit(req, is_text, bytes);
                conn->origins = NULL;
                conn->n_origins = 0;
        } else {
                af_reply_error(conn, h->request_id, AF_ERROR_BUSY, true, "out of memory");
        }
        af_blob_unref(bytes);
}

static void on_cancel(struct af_conn *conn, uint64_t id) {
        struct af_request *req = request_find(conn, id);

        if (af_admin_stop(conn->core, conn, id))
                return;
        /* One that is answered already: the answer is on its way, nothing more comes. */
        if (!req)
                return;
        conn->core->stats.n_canceled++;
        af_request_drop(req);
        af_reply_error(conn, id, AF_ERROR_CANCELED, false, "canceled");
}

static void on_touch(struct af_conn *conn, const uint8_t *body, size_t n) {
        struct af_cursor c = af_cursor_make(body, n);
        struct af_field f;

        for (unsigned i = 0; i < MAX_TOUCHES && af_frame_next(&c, &f); i++)
                if (f.tag == AF_TAG_KEY && f.n == 64) {
                        struct af_digest fragment, environment;

                        memcpy(fragment.bytes, f.p, 32);
                        memcpy(environment.bytes, f.p + 32, 32);
                        af_hot_touched(conn->core, f.p);
                        af_ledger_count(conn->core->ledger, &fragment, &environment, &(struct af_ledger_use){.n_hits = 1});
                }
}

static void on_stats(struct af_conn *conn, uint8_t type, uint64_t id) {
        struct af_buf buf = AF_BUF_INIT;

        af_core_stats_json(conn->core, &buf);
        if (af_buf_error(&buf))
                af_reply_error(conn, id, AF_ERROR_BUSY, true, "out of memory");
        else
                af_reply_text(conn, type, id, (const char *)buf.data, buf.size);
        af_buf_deinit(&buf);
}

static void on_watch(struct af_conn *conn, uint64_t id) {
        if (!af_watch_start(conn)) {
                af_reply_error(conn, id, AF_ERROR_BUSY, true, "too many watch already");
                return;
        }
        on_stats(conn, AF_FRAME_WATCH, id);
}

static bool owner_only(struct af_conn *conn, uint64_t id) {
        if (owner(conn))
                return true;
        af_reply_error(conn, id, AF_ERROR_REFUSED, false, "only the server's own user and root may ask for this");
        return false;
}

static void on_clear(struct af_conn *conn, uint64_t id) {
        int r;

        if (!owner_only(conn, id))
                return;
        af_bundle_cache_clear(conn->core);
        af_negatives_clear(&conn->core->negatives);
        af_negatives_clear(&conn->core->plan_negatives);
        af_list_each (env, &conn->core->environments, struct af_environment, link)
                env->recorded = false;
        af_hot_clear(conn->core);
        r = af_store_clear(conn->core->store);
        af_log(AF_LOG_INFO, "cleared by user %u, process %d", (unsigned)conn->peer.uid, (int)conn->peer.pid);
        if (r)
                af_reply_error(conn, id, AF_ERROR_STORAGE, true, r < 0 ? strerror(-r) : "disk full");
        else
                on_stats(conn, AF_FRAME_CLEAR, id);
}

/* The source of a kernel, as the store has it. */
static void on_source(struct af_conn *conn, uint64_t id, const uint8_t *body, size_t n) {
        struct af_record_source source = {0};
        struct af_blob *record = NULL;
        struct af_field f;

        if (!af_frame_find(body, n, AF_TAG_KEY, 32, &f)) {
                protocol_error(conn, "a question for a source names no kernel");
                return;
        }
        record = af_lookup_record(conn->core, AF_TABLE_SOURCES, f.p, 32);
        if (record && af_record_source_read(record, &source) == 0)
                af_reply_text(conn, AF_FRAME_SOURCE, id, (const char *)source.source->data, source.source->size);
        else
                af_reply_error(conn, id, AF_ERROR_NOT_FOUND, false, "the store does not have this kernel's source");
        af_blob_unref(source.source);
        af_blob_unref(record);
        free(source.symbol);
}

/* What people ask, and their tools. */
static void on_question(struct af_conn *conn, const struct af_frame_header *h, const uint8_t *body, size_t n) {
        if (h->type == AF_FRAME_STATS)
                on_stats(conn, AF_FRAME_STATS, h->request_id);
        else if (h->type == AF_FRAME_WATCH)
                on_watch(conn, h->request_id);
        else if (h->type == AF_FRAME_HISTORY)
                af_conn_on_history(conn, h->request_id, body, n);
        else if (h->type == AF_FRAME_SOURCE)
                on_source(conn, h->request_id, body, n);
        else
                af_conn_on_why(conn, h->request_id, body, n);
}

void af_conn_on_frame(struct af_conn *conn, const struct af_frame_header *h, const uint8_t *body, size_t n) {
        struct af_cursor c = af_cursor_make(body, n);
        struct af_field f;

        while (af_frame_next(&c, &f))
                ;
        if (c.error) {
                protocol_error(conn, "the frame's fields are malformed");
                return;
        }
        if ((conn->state == AF_CONN_HELLO) != (h->type == AF_FRAME_HELLO)) {
                protocol_error(conn, conn->state == AF_CONN_HELLO ? "the first frame is not a hello" : "a second hello");
                return;
        }
        switch (h->type) {
        case AF_FRAME_HELLO:
                on_hello(conn, h, body, n);
                break;
        case AF_FRAME_SUBMIT:
                on_submit(conn, h, body, n);
                break;
        case AF_FRAME_CANCEL:
                on_cancel(conn, h->request_id);
                break;
        case AF_FRAME_TOUCH:
                on_touch(conn, body, n);
                break;
        case AF_FRAME_STATS:
        case AF_FRAME_WATCH:
        case AF_FRAME_HISTORY:
        case AF_FRAME_WHY:
        case AF_FRAME_SOURCE:
                on_question(conn, h, body, n);
                break;
        case AF_FRAME_CLEAR:
                on_clear(conn, h->request_id);
                break;
        case AF_FRAME_MAINTAIN:
                if (owner_only(conn, h->request_id))
                        af_admin_maintain(conn, h->request_id, body, n);
                break;
        case AF_FRAME_IMPORT:
                if (owner_only(conn, h->request_id))
                        af_admin_import(conn, h->request_id, body, n);
                break;
        default:
                protocol_error(conn, "a frame of this type is not for the server");
        }
}
