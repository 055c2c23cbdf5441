/* SPDX-License-Identifier: Apache-2.0 */
/* A request in flight, and the leader's work on all of them. Everything here is guarded by the context's lock. */
#pragma once

#include "client/context.h"

#define AF_REQUEST_MAX_LOST  3 /* connections that broke while it was under way */
#define AF_REQUEST_MAX_TRIES 3 /* retryable errors other than busy and draining */

#define AF_REQUEST_MAX_KERNELS 65536u

/* A kernel that came before the answer; the bytes are behind it. */
struct af_part {
        struct af_part *next;
        struct autofuse_part info;
};
enum af_request_kind { AF_REQUEST_SUBMIT, AF_REQUEST_STATS, AF_REQUEST_CLEAR, AF_REQUEST_SOURCE };
enum af_request_state { AF_REQUEST_PENDING /* to be sent at send_at_ns */, AF_REQUEST_SENT, AF_REQUEST_DONE };

struct autofuse_request {
        struct autofuse_context *ctx; /* a reference */
        struct af_prepared *prepared; /* SUBMIT: a reference */
        struct af_digest kernel;      /* SOURCE: its key */
        struct autofuse_request *prev, *next;
        bool linked;
        enum af_request_kind kind;
        enum af_request_state state;
        uint32_t fork_serial; /* the context's when it was linked */
        uint64_t id, deadline_ns, send_at_ns;
        uint8_t priority;
        bool lookup_only;
        void (*progress)(void *userdata, const struct autofuse_progress *progress);
        void (*part)(void *userdata, const struct autofuse_part *part); /* NULL: parts are not asked for */
        void *userdata;
        struct af_part *parts, **parts_tail; /* that the callback was not told of yet */
        uint8_t *part_seen;                  /* by kernel; NULL: none came yet */
        uint32_t n_part_kernels;
        uint32_t n_lost, n_tries;
        bool no_hot; /* the hot area is not asked */
        /* What the memo holds: the answer where the server cannot say whether it is in force. NULL: none */
        struct af_content *fallback;
        uint64_t fallback_ns;       /* when it is looked whether the server is alive */
        uint32_t fallback_progress; /* n_progress at the last look */
        char *last_reason;          /* of the last retryable error; may be NULL */
        /* progress */
        char progress_text[160];
        uint64_t elapsed_ms;
        uint32_t n_waiters, n_progress;
        /* DONE */
        struct autofuse_error *error; /* NULL: success */
        struct af_content *content;   /* SUBMIT */
        enum autofuse_hit hit;
        uint64_t compile_us;
        char *text; /* STATS, CLEAR, SOURCE: malloc'd */
};

/* Links a new request: it gets an id and is sent when the connection can take it. */
void af_request_link(struct autofuse_context *ctx, struct autofuse_request *req);
/* Ends it: takes error (NULL: success), unlinks, wakes all waiters. UNAVAILABLE is a success where there is a fallback. */
void af_request_finish(struct autofuse_context *ctx, struct autofuse_request *req, struct autofuse_error *error);
/* Whether all requests have something to fall back on. Under the lock. */
bool af_requests_can_do_without(const struct autofuse_context *ctx);
/* Tells the server that the answer is no longer wanted, where it was asked. */
void af_request_send_cancel(struct autofuse_context *ctx, struct autofuse_request *req);

/* Connects where there is no connection. Nobody leads. Drops the lock meanwhile; on failure every request is finished with the reason. */
void af_lead_connect(struct autofuse_context *ctx);
/* Takes a connection over as the context's. Under the lock, or while nobody else uses the context. */
void af_lead_connected(struct autofuse_context *ctx, struct af_connection *conn);
/* One turn: connects, or sends what is due, waits for the socket until until_ns at most, reads and hands out. Nobody leads. Drops the lock
 * meanwhile. */
void af_lead_turn(struct autofuse_context *ctx, uint64_t until_ns);
/* Sends what is due without blocking; for anyone. */
void af_lead_send(struct autofuse_context *ctx);
/* Handles one frame. 0, or AF_CONNECTION_E_PROTOCOL with *ret_why. Takes in->fd. */
int af_dispatch(struct autofuse_context *ctx, struct af_incoming *in, const char **ret_why);
/* Puts a request back to be sent later, spread over time. */
void af_request_postpone(struct autofuse_request *req, uint32_t n_before);

/* autofuse_submit and autofuse_compile for what was prepared already; each takes the reference to prepared, also on failure. Not under the
 * lock. */
enum autofuse_status af_submit_prepared(struct autofuse_context *ctx, struct af_prepared *prepared, const struct autofuse_submit_options *o,
                                        struct autofuse_request **ret_request, struct autofuse_error **ret_error) AF_WARN_UNUSED;
enum autofuse_status af_compile_prepared(struct autofuse_context *ctx, struct af_prepared *prepared,
                                         const struct autofuse_submit_options *o, struct autofuse_bundle **ret_bundle,
                                         struct autofuse_error **ret_error) AF_WARN_UNUSED;
