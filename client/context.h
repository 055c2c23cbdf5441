/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The context: one connection shared by any number of threads, without a thread of its own. Who waits for a request and finds nobody
 * leading becomes the leader: it connects, polls and reads for all, hands answers out and, when its own request is done, lets the next
 * waiter lead.
 *
 *   lock      guards everything below it; never held over poll(), connect() or a callback
 *   leading   a thread is in connect() or poll(); only the leader reads, and only it replaces the connection
 *   writes    go out without blocking under the lock; what the kernel does not take is left to the leader (woken by wake_fd)
 *
 * Fork: the page `generation` is wiped in a child (MADV_WIPEONFORK). The first call there finds it, closes its copies of the descriptors
 * and abandons (leaks) what another thread may have been changing: the connection's buffers, the list of requests, and the memo where it
 * was busy.
 */
#pragma once

#include <pthread.h>

#include "client/connection.h"
#include "client/memo.h"
#include "client/packs.h"

#define AF_MAX_TOUCHES 64u

struct autofuse_request;
struct autofuse_context {
        atomic_uint refs; /* the user's, and one per request */
        /* fixed after open */
        struct af_socket_paths paths;
        char *name;
        uid_t own_uid;
        int64_t server_uid;
        uint64_t window_ns; /* UINT64_MAX: by path */
        bool strict;
        bool no_memo;
        void (*log)(void *userdata, enum autofuse_log_level level, const char *line);
        void *log_userdata;
        _Atomic uint32_t *generation; /* a page of its own; NULL: the kernel cannot wipe it, fork_pid is compared */
        pid_t fork_pid;

        pthread_mutex_t lock;
        pthread_cond_t cond; /* CLOCK_MONOTONIC; any change of a request or of leading */
        bool leading;
        int wake_fd;                /* eventfd: the leader looks again */
        struct af_connection *conn; /* NULL: not connected */
        uint32_t fork_serial;       /* grows in each forked child */
        bool connected_once;
        uint64_t down_until_ns;            /* no server: not tried again before */
        uint32_t n_down;                   /* failures in a row */
        struct autofuse_error *down;       /* why */
        char *last_logged;                 /* the reason logged last */
        struct autofuse_request *requests; /* in flight, doubly linked */
        uint64_t next_id;
        bool memo_busy; /* a change of the memo is under way: see Fork */
        struct af_memo memo;
        struct af_digest memo_env; /* hello's environment that the memo belongs to; valid with has_memo_env */
        bool has_memo_env;
        struct af_packs packs; /* opened with the context; read without the lock */
        /* hits.c */
        struct af_hot_view *hot;  /* NULL: none; of the newest connection, or found beside the socket before there was one; good for as long
                                     as its server says so */
        bool looked;              /* for an area beside the socket: once */
        bool has_epoch;           /* the server tells what is in force, or wants to be asked */
        uint64_t unsure_until_ns; /* until then the memo's answers stand without anybody's word */
        uint32_t n_unsure;        /* times in a row */
        struct af_bundle_key touches[AF_MAX_TOUCHES];
        uint32_t n_touches;
        uint64_t touch_at_ns; /* no frame of them before */
};

/* To be called first by every function that uses the context's lock: makes it usable in a forked child. */
void af_context_enter(struct autofuse_context *ctx);
struct autofuse_context *af_context_ref(struct autofuse_context *ctx);
void af_context_unref(struct autofuse_context *ctx);
/* Memo, under the lock: marks it busy meanwhile. */
struct af_content *af_context_memo_get(struct autofuse_context *ctx, const struct af_digest *fragment);
void af_context_memo_put(struct autofuse_context *ctx, struct af_content *content);
/* One line to the log callback; not under the lock. */
void af_context_log(struct autofuse_context *ctx, enum autofuse_log_level level, const char *fmt, ...) AF_PRINTF(3, 4);
/* Logs that the server is not used, once per reason; not under the lock. */
void af_context_log_unavailable(struct autofuse_context *ctx, const struct autofuse_error *error);
/* What to run against a server with: the connect parameters of this context. Under the lock. */
void af_context_connect_params(const struct autofuse_context *ctx, struct af_connect *ret_how);
