/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server for tests: speaks frames version 1 at a socket of its own, answers every fragment with a bundle in which all nodes are left to
 * the framework, and misbehaves as told.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "proto/frame.h"

/* cr_assert is not for threads other than the test's own: this is. */
#define MUST(condition)                                                                                                                    \
        do {                                                                                                                               \
                if (!(condition)) {                                                                                                        \
                        fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);                                      \
                        abort();                                                                                                           \
                }                                                                                                                          \
        } while (0)

enum fake_mode {
        FAKE_OK,            /* a sealed memfd */
        FAKE_INLINE,        /* the bytes in the frame */
        FAKE_UNSEALED,      /* a memfd that can still be written */
        FAKE_FILE,          /* a plain file's descriptor */
        FAKE_WRONG_SIZE,    /* announces another size than the memfd has */
        FAKE_WRONG_KEY,     /* another fragment's key */
        FAKE_DAMAGED,       /* one bit of the bundle is flipped */
        FAKE_OTHER_BUNDLE,  /* a sound bundle that does not fit the fragment */
        FAKE_CUT,           /* half a frame, then the end; always */
        FAKE_GARBAGE,       /* bytes that are no frame */
        FAKE_HUGE,          /* a header that claims more than frames may have */
        FAKE_STRAY_FD,      /* a descriptor that the header does not announce */
        FAKE_NO_FD,         /* announces a descriptor and sends none */
        FAKE_SILENT,        /* takes the fragment, says nothing */
        FAKE_PROGRESS,      /* progress twice, then the answer */
        FAKE_PARTS,         /* kernels 0 and 1 of 2 where they are asked for, and parts that are none; then the answer */
        FAKE_CLOSE_ONCE,    /* closes on the first fragment, then behaves */
        FAKE_BUSY_TWICE,    /* busy, retryable, twice, then the answer */
        FAKE_JOB_DIED,      /* always that, retryable */
        FAKE_COMPILE_ERROR, /* refuses with a text */
        FAKE_NOT_FOUND,
        FAKE_HELLO_SILENT,
        FAKE_HELLO_GARBAGE,
        FAKE_HELLO_VERSION, /* speaks versions 7 to 9 */
        FAKE_HELLO_CANON,   /* another canonical form */
        FAKE_HELLO_REFUSED,
        FAKE_HELLO_CLOSE,
};

#define FAKE_MAX_CONNECTIONS 256
struct fake_server {
        char dir[64], path[96];
        int listen_fd;
        _Atomic enum fake_mode mode;
        _Atomic uint8_t env; /* every byte of the environment digest in hello */
        atomic_uint n_connections, n_submits, n_cancels, n_lookups, n_parts;
        pthread_t acceptor;
        pthread_mutex_t lock;
        int fds[FAKE_MAX_CONNECTIONS];
        pthread_t threads[FAKE_MAX_CONNECTIONS];
        unsigned n_threads;
        atomic_bool stopping;
};
/* Listens in a new temporary directory. */
void fake_server_start(struct fake_server *s, enum fake_mode mode);
/* Listens at a path that exists already or not: a restart. */
void fake_server_start_at(struct fake_server *s, enum fake_mode mode, const char *path);
/* Closes every connection and the socket; the socket file stays where keep is set. */
void fake_server_stop(struct fake_server *s, bool keep);
/* A bundle for these canonical bytes with every node left to the framework. */
void fake_bundle(const void *canon, size_t n, struct af_buf *out);
