/* SPDX-License-Identifier: Apache-2.0 */
/* The leader's turns: connect, send, poll, read; what a lost connection means. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/hits.h"
#include "client/request.h"

#define OUT_MAX_BYTES   (1u << 20) /* no further request is encoded while more than this waits to be sent */
#define FRAMES_PER_TURN 64
#define ORIGINS_MAX     (64u << 10)
#define POSTPONE_MIN_NS 10000000ull
#define POSTPONE_MAX_NS 2000000000ull
#define DOWN_MIN_NS     1000000000ull
#define DOWN_MAX_NS     30000000000ull

void af_request_postpone(struct autofuse_request *req, uint32_t n_before) {
        uint64_t ns = AF_MIN(POSTPONE_MIN_NS << AF_MIN(n_before, 16u), POSTPONE_MAX_NS);
        uint64_t now = af_clock_now_ns();
        uint64_t mix = (now ^ (uintptr_t)req ^ (uint64_t)getpid() << 32) * 0x9e3779b97f4a7c15ull;
        req->state = AF_REQUEST_PENDING;
        req->send_at_ns = now + ns / 2 + (mix >> 16) % (ns / 2 + 1);
}

void af_request_link(struct autofuse_context *ctx, struct autofuse_request *req) {
        req->id = ctx->next_id++;
        req->fork_serial = ctx->fork_serial;
        req->state = AF_REQUEST_PENDING;
        req->prev = NULL;
        req->next = ctx->requests;
        if (req->next)
                req->next->prev = req;
        ctx->requests = req;
        req->linked = true;
}

static void request_unlink(struct autofuse_context *ctx, struct autofuse_request *req) {
        if (!req->linked || req->fork_serial != ctx->fork_serial)
                return;
        *(req->prev ? &req->prev->next : &ctx->requests) = req->next;
        if (req->next)
                req->next->prev = req->prev;
        req->prev = req->next = NULL;
        req->linked = false;
}

void af_request_finish(struct autofuse_context *ctx, struct autofuse_request *req, struct autofuse_error *error) {
        request_unlink(ctx, req);
        if (error && req->fallback && autofuse_error_status(error) == AUTOFUSE_E_UNAVAILABLE) {
                autofuse_error_free(error);
                error = NULL;
                req->content = req->fallback;
                req->fallback = NULL;
                req->hit = req->content->packed ? AUTOFUSE_HIT_PACK : AUTOFUSE_HIT_MEMO;
                if (req->content->packed)
                        af_context_memo_put(ctx, req->content);
                af_hits_unconfirmed(ctx);
        }
        req->error = error;
        req->state = AF_REQUEST_DONE;
        pthread_cond_broadcast(&ctx->cond);
}

bool af_requests_can_do_without(const struct autofuse_context *ctx) {
        for (const struct autofuse_request *req = ctx->requests; req; req = req->next)
                if (!req->fallback)
                        return false;
        return ctx->requests != NULL;
}

static void finish_all(struct autofuse_context *ctx, const struct autofuse_error *error) {
        struct autofuse_request *next;
        for (struct autofuse_request *req = ctx->requests; req; req = next) {
                struct autofuse_error *copy = NULL;
                next = req->next;
                (void)af_error_copy(&copy, error);
                af_request_finish(ctx, req, copy);
        }
}

/* Those that have a fallback; takes error. */
static void finish_quick(struct autofuse_context *ctx, struct autofuse_error *error) {
        struct autofuse_request *next;
        for (struct autofuse_request *req = ctx->requests; req; req = next) {
                struct autofuse_error *copy = NULL;
                next = req->next;
                if (!req->fallback)
                        continue;
                (void)af_error_copy(&copy, error);
                af_request_finish(ctx, req, copy);
        }
        autofuse_error_free(error);
}

static void set_down(struct autofuse_context *ctx, struct autofuse_error *error) {
        autofuse_error_free(ctx->down);
        ctx->down = error;
        ctx->down_until_ns = af_clock_now_ns() + AF_MIN(DOWN_MIN_NS << AF_MIN(ctx->n_down, 8u), DOWN_MAX_NS);
        ctx->n_down++;
        finish_all(ctx, error);
}

void af_lead_connected(struct autofuse_context *ctx, struct af_connection *conn) {
        bool same_env = ctx->has_memo_env && conn->has_env && af_digest_equal(&conn->env, &ctx->memo_env);
        ctx->conn = conn;
        ctx->n_down = 0;
        ctx->down_until_ns = 0;
        /* A server that was started anew may see another environment: what the memo holds was not made by that. */
        if (ctx->connected_once && !same_env && !conn->has_epoch) {
                ctx->memo_busy = true;
                af_memo_clear(&ctx->memo);
                ctx->memo_busy = false;
        }
        ctx->connected_once = true;
        ctx->has_memo_env = conn->has_env;
        ctx->memo_env = conn->env;
        af_hits_connected(ctx, conn);
}

void af_lead_connect(struct autofuse_context *ctx) {
        if (ctx->conn)
                return;
        if (ctx->down && af_clock_now_ns() < ctx->down_until_ns) {
                finish_all(ctx, ctx->down);
                return;
        }
        struct af_connect how;
        struct af_connection *conn = NULL;
        struct autofuse_error *error = NULL;
        af_context_connect_params(ctx, &how);
        ctx->leading = true;
        pthread_mutex_unlock(&ctx->lock);
        enum autofuse_status status = af_connection_open(&how, &conn, &error);
        pthread_mutex_lock(&ctx->lock);
        ctx->leading = false;
        if (status == AUTOFUSE_OK)
                af_lead_connected(ctx, conn);
        else if (how.quick)
                finish_quick(ctx, error); /* it was not waited for: that says nothing to those who would */
        else
                set_down(ctx, error);
        pthread_cond_broadcast(&ctx->cond);
}

/* The connection is gone: what was sent is sent again on the next one. */
static void lose(struct autofuse_context *ctx, const char *why) {
        struct autofuse_request *next;
        af_connection_close(ctx->conn);
        ctx->conn = NULL;
        for (struct autofuse_request *req = ctx->requests; req; req = next) {
                next = req->next;
                if (req->state != AF_REQUEST_SENT)
                        continue;
                if (++req->n_lost > AF_REQUEST_MAX_LOST) {
                        struct autofuse_error *error = NULL;
                        (void)af_error_set_retryable(&error, AUTOFUSE_E_UNAVAILABLE, "the connection to the server broke %u times: %s",
                                                     req->n_lost, why);
                        af_request_finish(ctx, req, error);
                } else {
                        af_request_postpone(req, req->n_lost - 1);
                }
        }
        pthread_cond_broadcast(&ctx->cond);
}

/* The server does not keep to the protocol: it is not asked again soon. */
static void distrust(struct autofuse_context *ctx, const char *why) {
        struct autofuse_error *error = NULL;
        af_connection_close(ctx->conn);
        ctx->conn = NULL;
        (void)af_error_set(&error, AUTOFUSE_E_UNAVAILABLE, "the server broke the protocol: %s", why);
        set_down(ctx, error);
}

static void encode(struct af_connection *conn, const struct autofuse_request *req, uint64_t now) {
        static const enum af_frame_type types[] = {[AF_REQUEST_SUBMIT] = AF_FRAME_SUBMIT,
                                                   [AF_REQUEST_STATS] = AF_FRAME_STATS,
                                                   [AF_REQUEST_CLEAR] = AF_FRAME_CLEAR,
                                                   [AF_REQUEST_SOURCE] = AF_FRAME_SOURCE};
        uint64_t left_ms = req->deadline_ns > now ? (req->deadline_ns - now) / 1000000 + 1 : 1;
        struct af_frame_header h = {.type = types[req->kind],
                                    .request_id = req->id,
                                    .deadline_ms = (uint32_t)AF_MIN(left_ms, (uint64_t)UINT32_MAX),
                                    .priority = req->priority};
        size_t start = af_frame_begin(&conn->out, &h);
        if (req->kind == AF_REQUEST_SOURCE)
                af_frame_field(&conn->out, AF_TAG_KEY, req->kernel.bytes, sizeof(req->kernel.bytes));
        if (req->kind == AF_REQUEST_SUBMIT) {
                af_frame_field(&conn->out, AF_TAG_CANON, req->prepared->canon, req->prepared->n_canon);
                if (req->lookup_only)
                        af_frame_field_u8(&conn->out, AF_TAG_LOOKUP_ONLY, 1);
                if (req->part)
                        af_frame_field_u8(&conn->out, AF_TAG_PARTS, 1);
                struct af_buf origins = AF_BUF_INIT;
                af_prepared_origins(req->prepared, ORIGINS_MAX, &origins);
                if (origins.size && af_buf_error(&origins) == 0)
                        af_frame_field(&conn->out, AF_TAG_ORIGINS, origins.data, origins.size);
                af_buf_deinit(&origins);
        }
        af_frame_end(&conn->out, start);
}

void af_request_send_cancel(struct autofuse_context *ctx, struct autofuse_request *req) {
        if (req->state != AF_REQUEST_SENT || !ctx->conn || req->fork_serial != ctx->fork_serial)
                return;
        struct af_frame_header h = {.type = AF_FRAME_CANCEL, .request_id = req->id};
        af_frame_end(&ctx->conn->out, af_frame_begin(&ctx->conn->out, &h));
}

static void wake_leader(const struct autofuse_context *ctx) {
        const uint64_t one = 1;
        if (ctx->wake_fd >= 0 && write(ctx->wake_fd, &one, sizeof(one)) < 0)
                return; /* full: it is awake already */
}

/* Encodes what is due, oldest first, and flushes: 0, -EAGAIN, -errno. *ret_next_ns: when the next request is due. */
static int send_due(struct autofuse_context *ctx, uint64_t *ret_next_ns) {
        uint64_t now = af_clock_now_ns(), next_ns = UINT64_MAX;
        struct autofuse_request *last = ctx->requests;
        while (last && last->next)
                last = last->next;
        for (struct autofuse_request *req = last; req; req = req->prev) {
                if (req->state != AF_REQUEST_PENDING)
                        continue;
                if (req->send_at_ns > now) {
                        next_ns = AF_MIN(next_ns, req->send_at_ns);
                } else if (ctx->conn->out.size - ctx->conn->out_at < OUT_MAX_BYTES) {
                        encode(ctx->conn, req, now);
                        req->state = AF_REQUEST_SENT;
                }
        }
        *ret_next_ns = next_ns;
        return af_connection_flush(ctx->conn);
}

void af_lead_send(struct autofuse_context *ctx) {
        uint64_t next_ns;
        if (!ctx->conn)
                return;
        int r = send_due(ctx, &next_ns);
        /* What is left, and what went wrong, is the leader's to deal with. */
        if (r != 0 || next_ns != UINT64_MAX)
                wake_leader(ctx);
}

static void read_frames(struct autofuse_context *ctx) {
        for (int i = 0; i < FRAMES_PER_TURN && ctx->conn; i++) {
                struct af_incoming in;
                const char *why = "";
                int r = af_connection_read(ctx->conn, &in, &why);
                if (r == -EAGAIN)
                        return;
                if (r == 0)
                        r = af_dispatch(ctx, &in, &why);
                if (r == AF_CONNECTION_E_PROTOCOL)
                        distrust(ctx, why);
                else if (r == AF_CONNECTION_E_CLOSED)
                        lose(ctx, "the server closed it");
                else if (r < 0)
                        lose(ctx, strerror(-r));
        }
}

/* Milliseconds until the earlier of two times, rounded up. */
static int poll_timeout(uint64_t until_ns, uint64_t next_ns) {
        uint64_t now = af_clock_now_ns(), end = AF_MIN(until_ns, next_ns);
        return end <= now ? 0 : (int)AF_MIN((end - now) / 1000000 + 1, 60000ull);
}

static void lead_poll(struct autofuse_context *ctx, uint64_t until_ns) {
        uint64_t next_ns, drained;
        int r = send_due(ctx, &next_ns);
        if (r < 0 && r != -EAGAIN && r != -EPIPE && r != -ECONNRESET) {
                lose(ctx, strerror(-r));
                return;
        }
        struct pollfd fds[2] = {{.fd = ctx->conn->fd, .events = POLLIN | (r == -EAGAIN ? POLLOUT : 0)},
                                {.fd = ctx->wake_fd, .events = POLLIN}};
        bool has_input = af_connection_has_input(ctx->conn);
        int timeout_ms = has_input ? 0 : poll_timeout(until_ns, next_ns);
        if (ctx->wake_fd < 0)
                timeout_ms = AF_MIN(timeout_ms, 20);
        ctx->leading = true;
        pthread_mutex_unlock(&ctx->lock);
        (void)poll(fds, 2, timeout_ms);
        pthread_mutex_lock(&ctx->lock);
        ctx->leading = false;
        if (fds[1].revents && read(ctx->wake_fd, &drained, sizeof(drained)) < 0)
                drained = 0;
        if (has_input || (fds[0].revents & (POLLIN | POLLHUP | POLLERR)))
                read_frames(ctx);
        pthread_cond_broadcast(&ctx->cond);
}

void af_lead_turn(struct autofuse_context *ctx, uint64_t until_ns) {
        if (!ctx->conn)
                af_lead_connect(ctx);
        else
                lead_poll(ctx, until_ns);
}
