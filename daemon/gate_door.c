/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The REQ/REP door. A raw REP socket: replies go out in any order, each with the header that its request came with:
 *
 *   pipe (u32, of nanomsg in this process), further hops, request id (u32 with the top bit set)
 *
 * All but the id is who asks. REQ has one request outstanding: the same id again is a copy of one that is under way, and another id means
 * that the older one is no longer wanted.
 */
#include <errno.h>
#include <nanomsg/nn.h>
#include <nanomsg/reqrep.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "daemon/gate.h"
#include "daemon/list.h"

#define MAX_REQUESTS_PER_TURN 64u
#define MAX_HEADER            64u
#define UNSENT                0u /* the id of a request that the core does not know */

struct request {
        struct af_list link;
        uint64_t id;                 /* at the core; UNSENT: none */
        struct af_gate_request what; /* fragment is not kept */
        void *control;               /* nanomsg's, for the reply; NULL: answered already ("pending"), the core goes on */
        uint8_t header[MAX_HEADER];
        size_t n_header;
        uint64_t begin_ns, pending_ns; /* pending_ns: when "pending" is answered; UINT64_MAX: never */
        uint64_t elapsed_ms;
        uint32_t n_waiters;
        char text[160];
};
struct af_gate_door {
        const struct af_gate_config *config;
        int socket;
        uv_poll_t poll;
        uv_timer_t timer;
        struct af_gate_link link;
        struct af_list requests;
        uint32_t n_requests;
        uint64_t next_id;
};

/* ---- replies ---- */

/* Sends and gives control up. What cannot be sent is dropped: the client asks again. */
static void reply(struct af_gate_door *d, void **control, const struct af_gate_reply *r) {
        size_t n = af_gate_reply_bytes(r);
        void *body = nn_allocmsg(n, 0);
        struct nn_iovec iov = {.iov_base = &body, .iov_len = NN_MSG};
        struct nn_msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = NN_MSG};

        if (body) {
                af_gate_reply_write(r, body);
                if (nn_sendmsg(d->socket, &msg, NN_DONTWAIT) >= 0) {
                        *control = NULL;
                        return;
                }
                nn_freemsg(body);
        }
        nn_freemsg(*control);
        *control = NULL;
}

static void reply_json(struct af_gate_door *d, void **control, struct af_buf *json) {
        if (af_buf_error(json) == 0)
                reply(d, control, &(struct af_gate_reply){.json = (const char *)json->data, .n_json = json->size});
        else if (*control)
                nn_freemsg(*control);
        *control = NULL;
        af_buf_deinit(json);
}

static void reply_error(struct af_gate_door *d, void **control, enum af_error_code code, bool retryable, const char *text, size_t n) {
        struct af_buf json = AF_BUF_INIT;

        af_gate_json_error(&json, af_error_code_name(code), retryable, text, n);
        reply_json(d, control, &json);
}

static void request_free(struct af_gate_door *d, struct request *r) {
        if (r->control)
                nn_freemsg(r->control);
        af_list_del(&r->link);
        d->n_requests--;
        free(r);
}

static void fail(struct af_gate_door *d, struct request *r, enum af_error_code code, bool retryable, const char *text, size_t n) {
        if (r->control)
                reply_error(d, &r->control, code, retryable, text, n);
        request_free(d, r);
}

/* ---- "pending" ---- */

static void on_timer(uv_timer_t *timer);

static void arm(struct af_gate_door *d) {
        uint64_t due = UINT64_MAX, now = af_clock_now_ns();

        af_list_each (r, &d->requests, struct request, link)
                due = AF_MIN(due, r->pending_ns);
        if (due == UINT64_MAX)
                uv_timer_stop(&d->timer);
        else
                uv_timer_start(&d->timer, on_timer, due > now ? (due - now) / 1000000 + 1 : 0, 0);
}

/* The compile goes on, so that the same request finds it done later. */
static void on_timer(uv_timer_t *timer) {
        struct af_gate_door *d = timer->data;
        uint64_t now = af_clock_now_ns();

        af_list_each (r, &d->requests, struct request, link) {
                struct af_buf json = AF_BUF_INIT;

                if (now < r->pending_ns)
                        continue;
                r->pending_ns = UINT64_MAX;
                af_gate_json_pending(&json, (now - r->begin_ns) / 1000000, r->n_waiters, r->text, strlen(r->text));
                reply_json(d, &r->control, &json);
        }
        arm(d);
}

/* ---- from the core ---- */

static struct request *find_id(struct af_gate_door *d, uint64_t id) {
        af_list_each (r, &d->requests, struct request, link) {
                if (r->id == id)
                        return r;
        }
        return NULL;
}

static void on_progress(struct request *r, const struct af_gate_frame *f) {
        struct af_field field;

        if (af_frame_find(f->body, f->n_body, AF_TAG_TEXT, 0, &field))
                snprintf(r->text, sizeof(r->text), "%.*s", (int)AF_MIN(field.n, 159u), (const char *)field.p);
        if (af_frame_find(f->body, f->n_body, AF_TAG_WAITERS, 4, &field))
                r->n_waiters = af_field_u32(&field);
}

static void on_error(struct af_gate_door *d, struct request *r, const struct af_gate_frame *f) {
        struct af_field code, retryable, text = {0};
        enum af_error_code c = AF_ERROR_INTERNAL;
        bool again = af_frame_find(f->body, f->n_body, AF_TAG_RETRYABLE, 1, &retryable) && retryable.p[0];

        if (af_frame_find(f->body, f->n_body, AF_TAG_CODE, 4, &code))
                c = af_field_u32(&code);
        (void)af_frame_find(f->body, f->n_body, AF_TAG_TEXT, 0, &text);
        fail(d, r, c, again, (const char *)text.p, text.n);
}

static void reply_bundle(struct af_gate_door *d, struct request *r, const struct af_gate_frame *f, const void *bundle, size_t n) {
        struct af_buf json = AF_BUF_INIT;
        struct af_gate_reply reply_of = {0};
        char text[160];

        if (af_gate_json_result(&json, f->body, f->n_body, bundle, n)) {
                af_buf_deinit(&json);
                fail(d, r, AF_ERROR_INTERNAL, true, "the bundle is damaged", 21);
                return;
        }
        reply_of = (struct af_gate_reply){.json = (const char *)json.data, .n_json = json.size, .bundle = bundle, .n_bundle = n};
        if (r->what.want == AF_GATE_WANT_KEY)
                reply_of.n_bundle = 0;
        if (af_gate_reply_bytes(&reply_of) > r->what.max_bytes) {
                snprintf(text, sizeof(text),
                         "the reply has %zu bytes, and the request takes %llu: set NN_RCVMAXSIZE, and say so in max_bytes",
                         af_gate_reply_bytes(&reply_of), (unsigned long long)r->what.max_bytes);
                fail(d, r, AF_ERROR_TOO_LARGE, false, text, strlen(text));
        } else {
                if (r->control)
                        reply(d, &r->control, &reply_of);
                request_free(d, r);
        }
        af_buf_deinit(&json);
}

static void on_result(struct af_gate_door *d, struct request *r, const struct af_gate_frame *f) {
        struct af_field field;
        const void *p = NULL;
        size_t n = 0;

        if (!r->control) {
                request_free(d, r);
        } else if (f->fd >= 0) {
                if (af_io_check_sealed(f->fd) == 0 && af_io_map_fd(f->fd, &p, &n) == 0) {
                        reply_bundle(d, r, f, p, n);
                        af_io_unmap(p, n);
                } else {
                        fail(d, r, AF_ERROR_INTERNAL, true, "the bundle cannot be mapped", 27);
                }
        } else if (af_frame_find(f->body, f->n_body, AF_TAG_BUNDLE, 0, &field)) {
                /* Its place in the frame is aligned to 4 only. */
                void *copy = aligned_alloc(64, AF_ALIGN_UP(field.n + 1, 64));

                if (copy) {
                        memcpy(copy, field.p, field.n);
                        reply_bundle(d, r, f, copy, field.n);
                } else {
                        fail(d, r, AF_ERROR_BUSY, true, "out of memory", 13);
                }
                free(copy);
        } else {
                fail(d, r, AF_ERROR_INTERNAL, true, "the answer has no bundle", 24);
        }
}

static void on_stats(struct af_gate_door *d, struct request *r, const struct af_gate_frame *f) {
        struct af_buf json = AF_BUF_INIT;
        struct af_field text;

        if (!af_frame_find(f->body, f->n_body, AF_TAG_TEXT, 0, &text)) {
                fail(d, r, AF_ERROR_INTERNAL, true, "the answer is empty", 19);
                return;
        }
        if (r->control) {
                af_gate_json_stats(&json, (const char *)text.p, text.n);
                reply_json(d, &r->control, &json);
        }
        request_free(d, r);
}

static void on_frame(void *userdata, struct af_gate_frame *f) {
        struct af_gate_door *d = userdata;
        struct request *r = f->h.request_id ? find_id(d, f->h.request_id) : NULL;

        if (r && f->h.type == AF_FRAME_PROGRESS)
                on_progress(r, f);
        else if (r && f->h.type == AF_FRAME_ERROR)
                on_error(d, r, f);
        else if (r && f->h.type == AF_FRAME_RESULT)
                on_result(d, r, f);
        else if (r && f->h.type == AF_FRAME_STATS)
                on_stats(d, r, f);
        if (f->fd >= 0)
                close(f->fd);
        arm(d);
}

static void on_up(void *userdata) {
        af_log(AF_LOG_DEBUG, "gate: connected");
}

static void on_down(void *userdata, const char *why) {
        struct af_gate_door *d = userdata;

        af_log(AF_LOG_WARNING, "gate: %s; %u requests are told to ask again", why, d->n_requests);
        af_list_each (r, &d->requests, struct request, link)
                fail(d, r, AF_ERROR_BUSY, true, "the server's connection broke", 29);
        arm(d);
}

/* ---- from the clients ---- */

static bool send_to_core(struct af_gate_door *d, struct request *r) {
        bool stats = r->what.want == AF_GATE_WANT_STATS;
        struct af_buf frame = AF_BUF_INIT;
        size_t at = af_frame_begin(&frame, &(struct af_frame_header){.type = stats ? AF_FRAME_STATS : AF_FRAME_SUBMIT,
                                                                     .request_id = r->id,
                                                                     .deadline_ms = r->what.deadline_ms,
                                                                     .priority = r->what.priority});

        if (!stats)
                af_frame_field(&frame, AF_TAG_TEXT_JSON, r->what.fragment, r->what.n_fragment);
        if (r->what.lookup_only)
                af_frame_field_u8(&frame, AF_TAG_LOOKUP_ONLY, 1);
        af_frame_end(&frame, at);
        return af_gate_link_send(&d->link, &frame);
}

static void cancel(struct af_gate_door *d, struct request *r) {
        struct af_buf frame = AF_BUF_INIT;

        af_frame_end(&frame, af_frame_begin(&frame, &(struct af_frame_header){.type = AF_FRAME_CANCEL, .request_id = r->id}));
        (void)!af_gate_link_send(&d->link, &frame);
        request_free(d, r);
}

/* A copy of what is under way is dropped: false. An older request of the same client is canceled. */
static bool is_new(struct af_gate_door *d, const uint8_t *header, size_t n) {
        af_list_each (r, &d->requests, struct request, link) {
                if (!r->control || r->n_header != n || memcmp(r->header, header, n - 4) != 0)
                        continue;
                if (memcmp(r->header + n - 4, header + n - 4, 4) == 0)
                        return false;
                cancel(d, r);
                return true;
        }
        return true;
}

static void begin(struct af_gate_door *d, struct request *r, const char *text, size_t n) {
        char why[160];

        if (af_gate_request_read(text, n, &r->what, why)) {
                fail(d, r, AF_ERROR_INVALID, false, why, strlen(why));
                return;
        }
        r->what.max_bytes = AF_MIN(r->what.max_bytes, d->config->max_message_bytes);
        if (d->n_requests > d->config->max_requests) {
                fail(d, r, AF_ERROR_BUSY, true, "too many requests at the gate", 29);
                return;
        }
        r->begin_ns = af_clock_now_ns();
        r->pending_ns = r->what.wait_ms ? r->begin_ns + r->what.wait_ms * 1000000ull : UINT64_MAX;
        snprintf(r->text, sizeof(r->text), "waiting");
        r->id = ++d->next_id;
        if (!send_to_core(d, r)) {
                fail(d, r, AF_ERROR_BUSY, true, "the server is not there at the moment", 37);
                return;
        }
        r->what.fragment = NULL;
        arm(d);
}

/* The bytes behind nn_cmsghdr: size_t length, then the header. NULL where there is none that we can answer to. */
static const uint8_t *header_of(void *control, size_t *ret_n) {
        struct nn_msghdr msg = {.msg_control = &control, .msg_controllen = NN_MSG};
        struct nn_cmsghdr *c = control ? NN_CMSG_FIRSTHDR(&msg) : NULL;
        const uint8_t *p;

        if (!c || c->cmsg_level != PROTO_SP || c->cmsg_type != SP_HDR)
                return NULL;
        p = NN_CMSG_DATA(c);
        memcpy(ret_n, p, sizeof(*ret_n));
        return *ret_n >= 8 && *ret_n <= MAX_HEADER ? p + sizeof(*ret_n) : NULL;
}

static bool receive(struct af_gate_door *d) {
        void *text = NULL, *control = NULL;
        struct nn_iovec iov = {.iov_base = &text, .iov_len = NN_MSG};
        struct nn_msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = NN_MSG};
        int n = nn_recvmsg(d->socket, &msg, NN_DONTWAIT);
        const uint8_t *header;
        struct request *r;
        size_t n_header = 0;

        if (n < 0)
                return false;
        header = header_of(control, &n_header);
        r = header && is_new(d, header, n_header) ? calloc(1, sizeof(*r)) : NULL;
        if (r) {
                memcpy(r->header, header, n_header);
                r->n_header = n_header;
                r->control = control;
                r->pending_ns = UINT64_MAX;
                af_list_append(&d->requests, &r->link);
                d->n_requests++;
                begin(d, r, text, (size_t)n);
        } else if (control) {
                nn_freemsg(control);
        }
        nn_freemsg(text);
        return true;
}

static void on_readable(uv_poll_t *poll, int status, int events) {
        struct af_gate_door *d = poll->data;

        for (unsigned i = 0; i < MAX_REQUESTS_PER_TURN && receive(d); i++)
                ;
}

int af_gate_door_open(uv_loop_t *loop, const struct af_gate_config *config, struct af_gate_door **ret_door) {
        struct af_gate_door *d = calloc(1, sizeof(*d));
        int r, fd, limit = (int)AF_MIN(config->max_message_bytes, (uint64_t)INT32_MAX);
        size_t n = sizeof(fd);

        if (!d)
                return -ENOMEM;
        d->config = config;
        af_list_init(&d->requests);
        d->socket = nn_socket(AF_SP_RAW, NN_REP);
        if (d->socket < 0)
                return -nn_errno();
        if (nn_setsockopt(d->socket, NN_SOL_SOCKET, NN_RCVMAXSIZE, &limit, sizeof(limit)) < 0 ||
            nn_getsockopt(d->socket, NN_SOL_SOCKET, NN_RCVFD, &fd, &n) < 0)
                return -nn_errno();
        r = af_gate_bind(d->socket, config->door, config);
        if (r < 0)
                return r;
        uv_timer_init(loop, &d->timer);
        r = uv_poll_init(loop, &d->poll, fd);
        if (r < 0)
                return r;
        d->poll.data = d->timer.data = d->link.userdata = d;
        uv_poll_start(&d->poll, UV_READABLE, on_readable);
        d->link.on_up = on_up;
        d->link.on_down = on_down;
        d->link.on_frame = on_frame;
        af_gate_link_start(&d->link, loop, config->core);
        *ret_door = d;
        return 0;
}
