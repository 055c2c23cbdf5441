/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to the server: connect, check whose server it is, exchange hello, then frames out and in without blocking. Not
 * thread-safe: the context decides who reads, and writes under its lock.
 */
#pragma once

#include <sys/types.h>

#include "client/error.h"
#include "client/socket_path.h"
#include "hot/view.h"
#include "proto/frame.h"

struct af_connection {
        int fd;
        struct af_digest env; /* the server's default environment; valid with has_env */
        bool has_env;
        bool has_epoch;          /* the server tells what is in force, or wants to be asked */
        struct af_hot_view *hot; /* NULL: none came. Until somebody takes it */
        /* incoming frame under construction */
        uint8_t head[AF_FRAME_HEADER_BYTES];
        size_t n_head;
        struct af_frame_header h;
        struct af_buf body;
        int in_fd;        /* came with the header of this frame or of a later one in `in`; -1: none */
        uint8_t in[4096]; /* received and not yet taken: in[in_at .. in_end) */
        size_t in_at, in_end;
        bool drained; /* the socket had no more: the next turn waits for it again */
        /* outgoing bytes not yet taken by the kernel: out.data[out_at .. out.size) */
        struct af_buf out;
        size_t out_at;
};

struct af_connect {
        const struct af_socket_paths *paths;
        uid_t own_uid;
        int64_t server_uid; /* -1: none */
        const char *name;   /* for the server's log */
        uint64_t
                window_ns; /* how long a server that is not there yet is waited for; UINT64_MAX: by path (1 s where it was named, else 0) */
        bool quick;        /* nobody depends on it */
        uint64_t hello_ns; /* how long hello may take */
};

/* Blocks at most window + hello. E_UNAVAILABLE (retryable where a server may come up), E_MEMORY. */
enum autofuse_status af_connection_open(const struct af_connect *how, struct af_connection **ret_conn,
                                        struct autofuse_error **ret_error) AF_WARN_UNUSED;
void af_connection_close(struct af_connection *conn);
/* Over a connected stream socket that it takes, also on failure: hello only, bounded by deadline_ns (CLOCK_MONOTONIC). */
enum autofuse_status af_connection_hello(int fd, const struct af_connect *how, const char *path, uint64_t deadline_ns,
                                         struct af_connection **ret_conn, struct autofuse_error **ret_error) AF_WARN_UNUSED;

/* Hands what it can of conn->out to the kernel: 0 (all gone), -EAGAIN, -errno. */
int af_connection_flush(struct af_connection *conn) AF_WARN_UNUSED;

struct af_incoming {
        struct af_frame_header h;
        const uint8_t *body; /* borrowed until the next read */
        size_t n_body;
        int fd; /* the caller's now, or -1 */
};
/* Whether bytes were received that no frame was read from yet: the socket does not tell of them. */
static inline bool af_connection_has_input(const struct af_connection *conn) {
        return conn->in_at < conn->in_end;
}
enum { AF_CONNECTION_E_PROTOCOL = 1 /* *ret_why: static text */, AF_CONNECTION_E_CLOSED = 2 };
/* Reads one whole frame: 0, -EAGAIN, -errno, or a positive code: the connection is of no more use. */
int af_connection_read(struct af_connection *conn, struct af_incoming *ret_frame, const char **ret_why) AF_WARN_UNUSED;
