/* SPDX-License-Identifier: Apache-2.0 */
/*
 * autofused-gate: the open door. nanomsg hides who its peers are, and one malformed byte of any of them ends the process that owns the
 * socket; so that process is this one. It holds no state: requests come in as JSON, go to the core as an ordinary client's, and answers
 * go back. docs/gate.md has the messages.
 *
 *   gate_main.c     arguments, limits, sandbox, loop
 *   gate_link.c     a connection to the core: frames out and in, connected again when it breaks
 *   gate_door.c     REP: requests, their way to the core and back
 *   gate_events.c   PUB: the core's events
 *   gate_request.c  what a request's bytes say      gate_reply.c  the bytes of a reply
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "base/buf.h"
#include "proto/frame.h"

#define AF_GATE_REPLY_MAGIC     0x31474641u /* "AFG1" */
#define AF_GATE_REPLY_HEAD      16u
#define AF_GATE_REPLY_ALIGN     64u
#define AF_GATE_MAX_REPLY_BYTES (1u << 20) /* nanomsg's own limit of a receiver that sets none */
#define AF_GATE_MAX_PATH        107u       /* nanomsg aborts on longer ones */

/* ---- requests (gate_request.c) ---- */
enum af_gate_want { AF_GATE_WANT_BUNDLE, AF_GATE_WANT_KEY, AF_GATE_WANT_STATS };
struct af_gate_request {
        enum af_gate_want want;
        const char *fragment; /* borrowed: the text of the fragment; NULL where only STATS is wanted */
        size_t n_fragment;
        uint32_t deadline_ms; /* 0: the server's */
        uint32_t wait_ms;     /* 0: as long as it takes; else "pending" is answered after that */
        uint64_t max_bytes;   /* of the reply */
        uint8_t priority;
        bool lookup_only;
};
enum { AF_GATE_E_INVALID = 1 };
/*
 * A fragment as it is, or an envelope: an object with the member "fragment" or "want". The fragment's own text is not looked into. 0, or
 * AF_GATE_E_INVALID with a line in why.
 */
int af_gate_request_read(const char *text, size_t n, struct af_gate_request *ret_request, char why[160]) AF_WARN_UNUSED;

/* ---- replies (gate_reply.c) ---- */
struct af_gate_reply {
        const char *json; /* one object */
        size_t n_json;
        const void *bundle;
        size_t n_bundle;
};
size_t af_gate_reply_bytes(const struct af_gate_reply *r);
/* Fills out, which has af_gate_reply_bytes: head, JSON, zeros, the bundle at a multiple of 64. */
void af_gate_reply_write(const struct af_gate_reply *r, uint8_t *out);
/* The objects. Members as docs/gate.md lists them. */
void af_gate_json_error(struct af_buf *buf, const char *code, bool retryable, const char *text, size_t n);
void af_gate_json_pending(struct af_buf *buf, uint64_t elapsed_ms, uint32_t waiters, const char *text, size_t n);
void af_gate_json_stats(struct af_buf *buf, const char *stats, size_t n);
/* From a RESULT's body and the bundle, which is checked. 0, -ENOMEM, or AF_GATE_E_INVALID: the bundle or the frame is damaged. */
int af_gate_json_result(struct af_buf *buf, const uint8_t *body, size_t n, const void *bundle, size_t n_bundle) AF_WARN_UNUSED;

/* ---- the core's connection (gate_link.c) ---- */
struct af_gate_frame {
        struct af_frame_header h;
        const uint8_t *body; /* borrowed for the call */
        size_t n_body;
        int fd; /* the callee's, or -1 */
};
enum af_gate_link_state { AF_GATE_LINK_DOWN, AF_GATE_LINK_HELLO, AF_GATE_LINK_UP };
struct af_gate_link {
        uv_loop_t *loop;
        uv_timer_t retry;
        uv_poll_t *poll; /* of fd; NULL while down */
        const char *path;
        int fd, in_fd, events;
        const char *broken; /* why it is given up at the next turn of the loop */
        enum af_gate_link_state state;
        uint8_t head[AF_FRAME_HEADER_BYTES];
        size_t n_head;
        struct af_frame_header h;
        struct af_buf body, out;
        size_t out_at;
        void *userdata;
        void (*on_up)(void *userdata);
        void (*on_down)(void *userdata, const char *why);
        void (*on_frame)(void *userdata, struct af_gate_frame *frame);
};
/* Begins to connect, and does again whenever the connection breaks. The callbacks are set by the caller before. */
void af_gate_link_start(struct af_gate_link *link, uv_loop_t *loop, const char *path);
/* Sends a finished frame (buf is emptied). False where the link is not up, or has too much to send already. Calls nobody back. */
bool af_gate_link_send(struct af_gate_link *link, struct af_buf *buf) AF_WARN_UNUSED;

/* ---- the two sockets ---- */
struct af_gate_config {
        const char *core, *door, *events; /* paths */
        uint32_t *uids;                   /* besides our own: who may connect */
        uint32_t n_uids;
        unsigned mode; /* of the sockets' files */
        uint64_t max_message_bytes, memory_bytes;
        uint32_t max_requests;
};
struct af_gate_door;
struct af_gate_events;
/* 0 or -errno; -EADDRINUSE: another process answers there. Live until the process ends. */
int af_gate_door_open(uv_loop_t *loop, const struct af_gate_config *config, struct af_gate_door **ret_door) AF_WARN_UNUSED;
int af_gate_events_open(uv_loop_t *loop, const struct af_gate_config *config, struct af_gate_events **ret_events) AF_WARN_UNUSED;
/* nn_bind at a path that nobody else can open before its mode is set. Endpoint id or -errno. */
int af_gate_bind(int socket, const char *path, const struct af_gate_config *config) AF_WARN_UNUSED;
