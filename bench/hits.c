/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hits of each kind against a running server, with what each is held against in the same process or beside it. bench/hits.py starts the
 * server and makes the figures. Modes (all: SOCKET first):
 *
 *   prepare DIR    the fragment is compiled, asked for until it is in the hot area, and DIR gets an LMDB database with its bundle
 *   memo TEXT      memo by handle and by the text in that file: two medians of a call, microseconds
 *   hot DIR I      first touch in this process: our hit, and LMDB's get and copy, whose turn is first by I's parity; then LMDB into memory
 * that was used before, and our hit once more stream DIR     in turns: an answer over the stream, an echo with mapping and verifying: p50
 * and p99 of each load KIND S    hits of KIND (hot, stream, echo:PATH) in S seconds by this process echo PATH      serves echoes until
 * standard input ends spawn N CMD…   from its start to the end of CMD, N times: microseconds, one a line
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "bench/hits.h"
#include "client/bundle.h"

#define ROUNDS 400u
#define TURNS  4000u

static struct autofuse_context *open_context(const char *socket, bool memo) {
        struct autofuse_options o = AUTOFUSE_OPTIONS_INIT;
        struct autofuse_context *ctx = NULL;
        struct autofuse_error *error = NULL;
        o.socket = socket;
        o.memo_bytes = memo ? 0 : UINT64_MAX;
        hits_must(autofuse_context_open(&o, &ctx, &error), error);
        return ctx;
}

/* The answer's kind; the bundle is dropped. */
static enum autofuse_hit ask(struct autofuse_context *ctx, struct autofuse_fragment *f, bool server) {
        struct autofuse_submit_options o = AUTOFUSE_SUBMIT_INIT;
        struct autofuse_bundle *bundle = NULL;
        struct autofuse_error *error = NULL;
        o.bypass_memo = server;
        hits_must(autofuse_compile(ctx, f, &o, &bundle, &error), error);
        enum autofuse_hit hit = bundle->hit;
        autofuse_bundle_unref(bundle);
        return hit;
}

static void until_hot(const char *socket, struct autofuse_fragment *f) {
        struct autofuse_context *ctx = open_context(socket, false);
        for (unsigned i = 0; i < 10000 && ask(ctx, f, false) != AUTOFUSE_HIT_HOT; i++)
                usleep(1000);
        autofuse_context_close(ctx);
}

/* ---- modes ---- */

static int prepare(const char *socket, const char *dir) {
        struct autofuse_context *ctx = open_context(socket, true);
        struct autofuse_fragment *f = hits_fragment_make(false), *small = hits_fragment_make(true);
        struct autofuse_bundle *bundle = NULL;
        struct autofuse_error *error = NULL;
        char path[4096];
        hits_must(autofuse_compile(ctx, f, NULL, &bundle, &error), error);
        (void)ask(ctx, small, false);
        until_hot(socket, f);
        until_hot(socket, small);
        hits_lmdb_make(dir, bundle->content->data, bundle->content->size);
        snprintf(path, sizeof(path), "%s/bundle", dir);
        if (af_io_publish_file(path, bundle->content->data, bundle->content->size, 0600) < 0)
                hits_die(path);
        printf("%zu\n", bundle->content->size);
        return 0;
}

static double median_call(struct autofuse_context *ctx, struct autofuse_fragment *f, const struct af_buf *text) {
        static double times[ROUNDS];
        const unsigned batch = 1000;
        for (unsigned r = 0; r < ROUNDS; r++) {
                double begin = hits_now_us();
                for (unsigned i = 0; i < batch; i++) {
                        struct autofuse_bundle *bundle = NULL;
                        enum autofuse_status status =
                                text ? autofuse_compile_text(ctx, (const char *)text->data, text->size, NULL, &bundle, NULL)
                                     : autofuse_compile(ctx, f, NULL, &bundle, NULL);
                        if (status != AUTOFUSE_OK || bundle->hit != AUTOFUSE_HIT_MEMO) /* the server's word came late: asked again */
                                begin = hits_now_us();
                        autofuse_bundle_unref(bundle);
                }
                times[r] = (hits_now_us() - begin) / batch;
        }
        return hits_quantile(times, ROUNDS, 0.5);
}

static int memo(const char *socket, const char *path) {
        struct autofuse_context *ctx = open_context(socket, true);
        struct autofuse_fragment *f = hits_fragment_make(false);
        struct autofuse_bundle *bundle = NULL;
        struct autofuse_error *error = NULL;
        struct af_buf text = AF_BUF_INIT;
        if (af_io_read_file(path, 1 << 20, &text) < 0)
                hits_die(path);
        hits_must(autofuse_compile_text(ctx, (const char *)text.data, text.size, NULL, &bundle, &error), error);
        (void)ask(ctx, f, false);
        printf("%.4f %.4f\n", median_call(ctx, f, NULL), median_call(ctx, f, &text));
        return 0;
}

/* Microseconds of a look-up in LMDB: into new memory, or into `into`. */
static double lmdb_us(struct hits_lmdb *db, uint32_t record, void *into) {
        double begin = hits_now_us();
        size_t n;
        void *p = hits_lmdb_get(db, record, into, &n);
        double us = hits_now_us() - begin;
        if (p != into)
                free(p);
        return us;
}

/* One fresh process. Both sides have done the same with another record, so that code and index are warm, and the bytes are not. */
static int hot(const char *socket, const char *dir, bool ours_first) {
        struct autofuse_context *ctx = open_context(socket, false);
        struct autofuse_fragment *f = hits_fragment_make(false), *again = hits_fragment_make(false);
        struct hits_lmdb *db = hits_lmdb_open(dir);
        struct autofuse_bundle *bundle = NULL;
        double ours = 0, lmdb = 0;
        void *used = malloc(1 << 20);
        if (ask(ctx, hits_fragment_make(true), false) != AUTOFUSE_HIT_HOT || !used)
                return 0; /* the server was starved: nothing is measured */
        memset(used, 1, 1 << 20);
        (void)lmdb_us(db, 1, used);
        for (int turn = 0; turn < 2; turn++) {
                double begin = hits_now_us();
                if ((turn == 0) != ours_first) {
                        lmdb = lmdb_us(db, 0, NULL);
                        continue;
                }
                enum autofuse_status status = autofuse_compile(ctx, f, NULL, &bundle, NULL);
                ours = hits_now_us() - begin; /* it is in hand */
                if (status != AUTOFUSE_OK || bundle->hit != AUTOFUSE_HIT_HOT)
                        return 0;
        }
        double reused = lmdb_us(db, HITS_LMDB_RECORDS / 2, used), begin = hits_now_us();
        if (ask(ctx, again, false) != AUTOFUSE_HIT_HOT)
                return 0;
        printf("%.3f %.3f %.3f %.3f\n", ours, lmdb, reused, hits_now_us() - begin);
        return 0;
}

static int stream(const char *socket, const char *dir) {
        static double ours[TURNS], peer[TURNS];
        struct autofuse_context *ctx = open_context(socket, false);
        struct autofuse_fragment *f = hits_fragment_make(false);
        struct af_buf bytes = AF_BUF_INIT;
        char path[4096];
        snprintf(path, sizeof(path), "%s/bundle", dir);
        if (af_io_read_file(path, 64u << 20, &bytes) < 0)
                hits_die(path);
        int fd = af_io_memfd("peer", bytes.data, bytes.size, true);
        snprintf(path, sizeof(path), "%s/echo.%d", dir, (int)getpid());
        (void)hits_echo_serve(path);
        int echo = hits_echo_connect(path);
        for (unsigned i = 0; i < TURNS + 100; i++) {
                unsigned at = i < 100 ? 0 : i - 100; /* the first ones warm up */
                double begin = hits_now_us();
                if (ask(ctx, f, true) != AUTOFUSE_HIT_STORE)
                        hits_die("not a hit of the stream");
                ours[at] = hits_now_us() - begin;
                begin = hits_now_us();
                hits_echo_ask(echo);
                hits_map_and_verify(fd, bytes.size);
                peer[at] = hits_now_us() - begin;
        }
        printf("%.3f %.3f %.3f %.3f\n", hits_quantile(ours, TURNS, 0.5), hits_quantile(ours, TURNS, 0.99), hits_quantile(peer, TURNS, 0.5),
               hits_quantile(peer, TURNS, 0.99));
        unlink(path);
        return 0;
}

static int load(const char *socket, const char *kind, double seconds) {
        const char *path = strncmp(kind, "echo:", 5) == 0 ? kind + 5 : NULL;
        bool is_hot = strcmp(kind, "hot") == 0;
        struct autofuse_context *ctx = path ? NULL : open_context(socket, !is_hot);
        struct autofuse_fragment *f = hits_fragment_make(false);
        int echo = path ? hits_echo_connect(path) : -1;
        unsigned long n = 0, n_other = 0;
        if (ctx)
                (void)ask(ctx, f, !is_hot);
        /* All processes of a run begin together. */
        printf("ready\n");
        fflush(stdout);
        if (getchar() == EOF)
                return 1;
        double begin = hits_now_us(), end = begin + seconds * 1e6;
        while (hits_now_us() < end) {
                for (unsigned i = 0; i < 16; i++) {
                        if (path)
                                hits_echo_ask(echo);
                        else
                                n_other += ask(ctx, f, !is_hot) != (is_hot ? AUTOFUSE_HIT_HOT : AUTOFUSE_HIT_STORE);
                        n++;
                }
        }
        printf("%.1f %lu\n", (double)(n - n_other) / ((hits_now_us() - begin) / 1e6), n_other);
        return 0;
}

static int spawn(unsigned n, char **argv) {
        for (unsigned i = 0; i < n; i++) {
                int status;
                pid_t pid;
                double begin = hits_now_us(); /* started as a build tool does it, without a copy of its pages */
                if (posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) != 0 || waitpid(pid, &status, 0) != pid || status != 0)
                        hits_die(argv[0]);
                printf("%.1f\n", hits_now_us() - begin);
        }
        return 0;
}

int main(int argc, char **argv) {
        const char *socket = argc > 2 ? argv[1] : "", *mode = argc > 2 ? argv[2] : "";
        if (argc > 4 && strcmp(mode, "spawn") == 0)
                return spawn((unsigned)atoi(argv[3]), argv + 4);
        if (argc > 3 && strcmp(mode, "prepare") == 0)
                return prepare(socket, argv[3]);
        if (argc > 3 && strcmp(mode, "memo") == 0)
                return memo(socket, argv[3]);
        if (argc > 4 && strcmp(mode, "hot") == 0)
                return hot(socket, argv[3], atoi(argv[4]) % 2 == 0);
        if (argc > 3 && strcmp(mode, "stream") == 0)
                return stream(socket, argv[3]);
        if (argc > 4 && strcmp(mode, "load") == 0)
                return load(socket, argv[3], atof(argv[4]));
        if (argc > 3 && strcmp(mode, "echo") == 0)
                return hits_echo_serve(argv[3]) > 0 && getchar() ? 0 : 0;
        fprintf(stderr, "usage: bench_hits SOCKET MODE …\n");
        return 2;
}
