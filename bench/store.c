/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store behind a live server: hits among 10^3 and 10^6 bundles drawn uniformly, memory after 10^6 hits, hits while the store evicts.
 * Two servers run side by side and are asked in turn. Prints one JSON object per line. Arguments: BUILD [FIGURES…]; no figure: all.
 *
 * Canonical bytes here are words, not graphs: the core digests them and looks them up, and nothing is ever compiled.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "cache/store.h"
#include "client/connection.h"
#include "compiler/graph/key.h"
#include "daemon/records.h"
#include "proto/bundle.h"

#define BLOCK       200u /* requests to one server before the other has its turn */
#define MAX_SAMPLES 60000u

extern char **environ;
static const char *build_dir;
/* Servers and importers that run; ended with this process, however that ends. */
static pid_t children[8];

static void child_add(pid_t pid) {
        for (size_t i = 0; i < AF_ARRAY_SIZE(children); i++)
                if (children[i] == 0) {
                        children[i] = pid;
                        return;
                }
}

static void child_gone(pid_t pid) {
        for (size_t i = 0; i < AF_ARRAY_SIZE(children); i++)
                if (children[i] == pid)
                        children[i] = 0;
}

static void children_end(void) {
        for (size_t i = 0; i < AF_ARRAY_SIZE(children); i++)
                if (children[i] > 0)
                        kill(children[i], SIGKILL);
}

static void die(const char *what, int r) {
        fprintf(stderr, "bench_store: %s: %s\n", what, r < 0 ? strerror(-r) : "failed");
        exit(1);
}

/* ---- a server ---- */

struct server {
        char dir[512], socket[600], state[600];
        pid_t pid;
        struct af_connection *conn;
        uint64_t next_id;
};

static void server_dirs(struct server *s) {
        char *dir = NULL;
        int r = af_io_temp_dir(NULL, "afbench", &dir);

        if (r)
                die("temporary directory", r);
        snprintf(s->dir, sizeof(s->dir), "%s", dir);
        snprintf(s->socket, sizeof(s->socket), "%s/core.sock", dir);
        snprintf(s->state, sizeof(s->state), "%s/state", dir);
        free(dir);
}

static struct af_connection *server_connect(struct server *s) {
        struct af_socket_paths paths = {.items = {{s->socket, true}}, .n_items = 1};
        struct af_connect how = {.paths = &paths,
                                 .own_uid = geteuid(),
                                 .server_uid = -1,
                                 .name = "bench",
                                 .window_ns = 60000000000ull,
                                 .hello_ns = 60000000000ull};
        struct autofuse_error *error = NULL;
        struct af_connection *conn = NULL;

        if (af_connection_open(&how, &conn, &error) != AUTOFUSE_OK) {
                fprintf(stderr, "bench_store: %s\n", autofuse_error_text(error));
                exit(1);
        }
        return conn;
}

static void server_start(struct server *s, const char *max_mib) {
        char program[600], log[600];
        char *argv[] = {program, "--socket", s->socket, "--state-dir", s->state, "--store-max-mib", (char *)max_mib, NULL};
        posix_spawn_file_actions_t files;

        snprintf(program, sizeof(program), "%s/daemon/autofused", build_dir);
        snprintf(log, sizeof(log), "%s/log", s->dir);
        posix_spawn_file_actions_init(&files);
        posix_spawn_file_actions_addopen(&files, 2, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        if (posix_spawn(&s->pid, program, &files, NULL, argv, environ) != 0)
                die(program, -ENOENT);
        child_add(s->pid);
        posix_spawn_file_actions_destroy(&files);
        s->conn = server_connect(s);
        s->next_id = 1;
}

static void server_stop(struct server *s) {
        af_connection_close(s->conn);
        s->conn = NULL;
        kill(s->pid, SIGTERM);
        waitpid(s->pid, NULL, 0);
        child_gone(s->pid);
}

static void server_remove(struct server *s) {
        (void)!af_io_remove_tree(s->dir);
}

/* The digest of the default environment, once the server has loaded it. */
static struct af_digest environment_of(struct server *s) {
        struct af_digest d;

        while (!s->conn->has_env) {
                af_connection_close(s->conn);
                usleep(50000);
                s->conn = server_connect(s);
        }
        d = s->conn->env;
        return d;
}

/* ---- what is stored ---- */

struct item {
        uint32_t number;
        struct af_digest fragment;
};

/* What canonical bytes begin with (the default target), then a number: enough for a look-up. */
static size_t word(uint32_t i, char out[64]) {
        memcpy(out, "AFC1\1\0\0\0\0\0\0\0", 12);
        return 12 + (size_t)snprintf(out + 12, 52, "fragment %u of a benchmark of the store", i);
}

static int by_digest(const void *a, const void *b) {
        return memcmp(((const struct item *)a)->fragment.bytes, ((const struct item *)b)->fragment.bytes, 32);
}

static struct item *items_new(uint32_t n) {
        struct item *items = calloc(n, sizeof(*items));

        if (!items)
                die("items", -ENOMEM);
        for (uint32_t i = 0; i < n; i++) {
                char text[64];

                items[i].number = i;
                af_key_fragment(text, word(i, text), &items[i].fragment);
        }
        qsort(items, n, sizeof(*items), by_digest);
        return items;
}

/* A skeleton with one kernel; with its binary of n bytes it is the bundle. */
static void skeleton_of(const struct af_digest *kernel, struct af_buf *out) {
        struct af_bundle_builder b;
        struct af_bundle_kernel k = {.key = *kernel, .block_dim = 1};

        af_bundle_builder_init(&b);
        k.symbol = af_bundle_add_str(&b, "autofused_bench");
        k.toolchain = af_bundle_add_str(&b, "host");
        af_bundle_add(&b, AF_SECTION_KERNELS, &k);
        if (af_bundle_finish(&b, AF_BUNDLE_SKELETON, out) != 0)
                die("skeleton", -ENOMEM);
        af_bundle_builder_deinit(&b);
}

/* As the server stores it: a small one whole. */
static void bundle_of(const struct af_digest *kernel, const uint8_t *binary, size_t n, bool whole, struct af_buf *out) {
        AF_CLEANUP(af_buf_deinit) struct af_buf skeleton = AF_BUF_INIT;
        struct af_bundle view;

        skeleton_of(kernel, &skeleton);
        if (!whole)
                af_buf_put(out, skeleton.data, skeleton.size);
        else if (af_bundle_open(skeleton.data, skeleton.size, &view, NULL) != 0 ||
                 af_bundle_attach(&view, &(struct af_piece){binary, n}, 1, out) != 0)
                die("bundle", -ENOMEM);
}

static void binary_of(uint32_t number, uint8_t *out, size_t n) {
        uint32_t x = number * 2654435761u + 1;

        for (size_t i = 0; i < n; i++)
                out[i] = (uint8_t)((x = x * 1664525u + 1013904223u) >> 24);
}

static void on_put(void *userdata, int r) {
        if (r)
                die("put", r < 0 ? r : -ENOSPC);
        (*(uint32_t *)userdata)++;
}

/* Records of one item, as the server writes them. */
static int put_item(struct af_store *store, const struct item *item, const struct af_digest *env, size_t n_binary, uint32_t *done) {
        AF_CLEANUP(af_buf_deinit) struct af_buf bundle = AF_BUF_INIT, record = AF_BUF_INIT;
        struct af_target target = {(char *)"", (char *)"", 0};
        static uint8_t binary[1 << 20];
        char text[64];
        uint8_t key[64];

        binary_of(item->number, binary, n_binary);
        bundle_of(&item->fragment, binary, n_binary, n_binary < 3000, &bundle);
        af_record_fragment_write(&record, &target, text, word(item->number, text));
        memcpy(key, item->fragment.bytes, 32);
        memcpy(key + 32, env->bytes, 32);
        return af_store_put(store,
                            (struct af_store_record[]){{AF_TABLE_FRAGMENTS, item->fragment.bytes, 32, record.data, record.size},
                                                       {AF_TABLE_BUNDLES, key, 64, bundle.data, bundle.size},
                                                       {AF_TABLE_KERNELS, item->fragment.bytes, 32, binary, n_binary}},
                            3, on_put, done);
}

static void wait_store(struct af_store *store) {
        struct pollfd p = {.fd = af_store_fd(store), .events = POLLIN};

        if (poll(&p, 1, 120000) != 1)
                die("the store", -ETIMEDOUT);
        af_store_dispatch(store);
}

/* In order of digests, as LMDB likes it; the queue never holds more than some thousands. */
static void fill(const char *state, const struct item *items, uint32_t n, const struct af_digest *env, size_t n_binary) {
        struct af_store *store = NULL;
        uint32_t done = 0;
        char *why = NULL;
        int r = af_store_open(&(struct af_store_config){.dir = state, .max_bytes = 64ull << 30}, &store, &why);

        if (r) {
                fprintf(stderr, "%s\n", why ? why : "");
                die(state, r);
        }
        for (uint32_t i = 0; i < n; i++) {
                while (i - done > (n_binary > 8192 ? 500u : 4000u))
                        wait_store(store);
                r = put_item(store, &items[i], env, n_binary, &done);
                if (r)
                        die("put", r);
        }
        while (done < n)
                wait_store(store);
        af_store_close(store);
}

/* ---- asking ---- */

static void read_answer(struct server *s, uint64_t id, struct af_incoming *ret) {
        const char *why = "";

        for (;;) {
                int r = af_connection_read(s->conn, ret, &why);

                if (r == -EAGAIN) {
                        struct pollfd p = {.fd = s->conn->fd, .events = POLLIN};

                        if (poll(&p, 1, 60000) != 1)
                                die("answer", -ETIMEDOUT);
                } else if (r) {
                        die(why, r < 0 ? r : -EPROTO);
                } else if (ret->h.request_id == id && ret->h.type != AF_FRAME_PROGRESS) {
                        return;
                } else if (ret->fd >= 0) {
                        close(ret->fd);
                }
        }
}

static void send_frame(struct server *s) {
        int r;

        while ((r = af_connection_flush(s->conn)) == -EAGAIN) {
                struct pollfd p = {.fd = s->conn->fd, .events = POLLOUT};

                poll(&p, 1, 60000);
        }
        if (r)
                die("send", r);
}

/* One hit: sent, received, the bundle opened with all its checks. Nanoseconds. */
static uint64_t ask(struct server *s, const struct item *item) {
        uint64_t id = s->next_id++, begin, end;
        struct af_incoming in;
        struct af_bundle view;
        struct af_field f;
        const void *p = NULL;
        size_t n = 0, at, n_text;
        char text[64];

        n_text = word(item->number, text); /* the fragment is in hand */
        begin = af_clock_now_ns();
        at = af_frame_begin(&s->conn->out, &(struct af_frame_header){.type = AF_FRAME_SUBMIT, .request_id = id});
        af_frame_field(&s->conn->out, AF_TAG_CANON, text, n_text);
        af_frame_field_u8(&s->conn->out, AF_TAG_LOOKUP_ONLY, 1);
        af_frame_end(&s->conn->out, at);
        send_frame(s);
        read_answer(s, id, &in);
        if (in.h.type != AF_FRAME_RESULT)
                die("not a hit", -ENOENT);
        if (in.fd >= 0) {
                if (af_io_map_fd(in.fd, &p, &n) != 0)
                        die("map", -ENOMEM);
        } else if (af_frame_find(in.body, in.n_body, AF_TAG_BUNDLE, 0, &f)) {
                n = f.n;
                p = aligned_alloc(64, AF_ALIGN_UP(n, 64));
                memcpy((void *)p, f.p, n);
        }
        if (!p || af_bundle_open(p, n, &view, NULL) != 0)
                die("bundle", -EBADMSG);
        end = af_clock_now_ns();
        if (in.fd >= 0) {
                af_io_unmap(p, n);
                close(in.fd);
        } else {
                free((void *)p);
        }
        return end - begin;
}

/* ---- figures ---- */

static int by_ns(const void *a, const void *b) {
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? -1 : x > y;
}

static double quantile_us(uint64_t *ns, uint32_t n, double q) {
        qsort(ns, n, sizeof(*ns), by_ns);
        return (double)ns[(uint32_t)(q * (n - 1))] / 1000;
}

static void figure(const char *name, double value, const char *unit) {
        printf("{\"name\":\"%s\",\"value\":%.3f,\"unit\":\"%s\"}\n", name, value, unit);
        fflush(stdout);
}

static uint32_t draw(uint64_t *state, uint32_t n) {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        return (uint32_t)(*state % n);
}

/* A server whose store holds the first of `items`. */
static void server_with(struct server *s, const struct item *items, uint32_t n, size_t n_binary, const char *max_mib) {
        struct af_digest env;

        server_dirs(s);
        server_start(s, max_mib);
        env = environment_of(s);
        server_stop(s);
        fill(s->state, items, n, &env, n_binary);
        server_start(s, max_mib);
        (void)environment_of(s);
}

/* Reads the store's file once: a system that is short of memory, or takes what lies idle, may have dropped what was written a minute ago.
 */
static void warm(const struct server *s) {
        static uint8_t block[1 << 20];
        char path[700];
        int fd;

        snprintf(path, sizeof(path), "%s/lmdb/data.mdb", s->state);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                die(path, -errno);
        while (read(fd, block, sizeof(block)) > 0)
                ;
        close(fd);
}

/* Pages that the server has had to wait for. */
static uint64_t pages_waited_for(pid_t pid) {
        char path[64], text[1024] = "", *at;
        unsigned long long n = 0;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
        f = fopen(path, "r");
        if (f && fgets(text, sizeof(text), f) && (at = strrchr(text, ')')))
                (void)!sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %llu", &n);
        if (f)
                fclose(f);
        return n;
}

/* Medians of both in turns: what more entries add to a hit's whole path while the file is in memory. */
static void added(const char *name, uint32_t n_few, uint32_t n_many, size_t n_binary) {
        struct item *few = items_new(n_few), *many = items_new(n_many);
        uint64_t *ns[2] = {malloc(MAX_SAMPLES * sizeof(uint64_t)), malloc(MAX_SAMPLES * sizeof(uint64_t))}, seed = 88172645463325252ull;
        struct server s[2] = {0};
        uint64_t n_waited;
        double a, b;
        char text[80];

        if (!ns[0] || !ns[1])
                die("samples", -ENOMEM);
        server_with(&s[0], few, n_few, n_binary, "65536");
        server_with(&s[1], many, n_many, n_binary, "65536");
        warm(&s[0]);
        warm(&s[1]);
        for (unsigned i = 0; i < 2 * BLOCK; i++) { /* the first words of each */
                (void)ask(&s[0], &few[draw(&seed, n_few)]);
                (void)ask(&s[1], &many[draw(&seed, n_many)]);
        }
        n_waited = pages_waited_for(s[1].pid);
        for (uint32_t n = 0; n < MAX_SAMPLES; n += BLOCK)
                for (unsigned which = 0; which < 2; which++)
                        for (unsigned i = 0; i < BLOCK; i++)
                                ns[which][n + i] = ask(&s[which], which ? &many[draw(&seed, n_many)] : &few[draw(&seed, n_few)]);
        n_waited = pages_waited_for(s[1].pid) - n_waited;
        if (n_waited > MAX_SAMPLES / 100)
                fprintf(stderr, "bench_store: %s: the server waited for the disk %llu times in %u hits: that is in the figure\n", name,
                        (unsigned long long)n_waited, MAX_SAMPLES);
        a = quantile_us(ns[0], MAX_SAMPLES, 0.5);
        b = quantile_us(ns[1], MAX_SAMPLES, 0.5);
        figure(name, b - a, "us");
        snprintf(text, sizeof(text), "%s_of", name);
        figure(text, b, "us");
        for (unsigned i = 0; i < 2; i++) {
                server_stop(&s[i]);
                server_remove(&s[i]);
                free(ns[i]);
        }
        free(few);
        free(many);
}

static double status_mb(pid_t pid, const char *name) {
        char path[64], line[256];
        double kb = 0;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
        f = fopen(path, "r");
        while (f && fgets(line, sizeof(line), f))
                if (strncmp(line, name, strlen(name)) == 0)
                        kb = atof(line + strlen(name) + 1);
        if (f)
                fclose(f);
        return kb / 1024;
}

/* Anonymous memory of the server and of the asking process after 10^6 hits on 20,000 bundles of 1 KiB. */
static void memory(void) {
        uint32_t n = 20000;
        struct item *items = items_new(n);
        uint64_t seed = 362436069;
        struct server s = {0};
        double before = status_mb(getpid(), "RssAnon");

        server_with(&s, items, n, 600, "65536");
        for (uint32_t i = 0; i < 1000000; i++)
                (void)ask(&s, &items[draw(&seed, n)]);
        figure("rss_anon_mb", status_mb(s.pid, "RssAnon") + AF_MAX(status_mb(getpid(), "RssAnon") - before, 0.0), "MB");
        server_stop(&s);
        server_remove(&s);
        free(items);
}

/* ---- hits while the store takes in, and evicts or not ---- */

static void put_import(struct server *s, uint32_t number, const struct af_digest *env, size_t n_binary) {
        AF_CLEANUP(af_buf_deinit) struct af_buf whole = AF_BUF_INIT;
        static uint8_t binary[1 << 20];
        struct af_incoming in;
        uint64_t id = s->next_id++;
        uint8_t key[64];
        char text[64];
        size_t n = word(number, text), at;
        struct af_digest d;

        af_key_fragment(text, n, &d);
        binary_of(number, binary, n_binary);
        bundle_of(&d, binary, n_binary, true, &whole);
        memcpy(key, d.bytes, 32);
        memcpy(key + 32, env->bytes, 32);
        at = af_frame_begin(&s->conn->out, &(struct af_frame_header){.type = AF_FRAME_IMPORT, .request_id = id});
        af_frame_field(&s->conn->out, AF_TAG_KEY, key, sizeof(key));
        af_frame_field(&s->conn->out, AF_TAG_SOC, "", 0);
        af_frame_field(&s->conn->out, AF_TAG_TOOLCHAIN, "", 0);
        af_frame_field_u8(&s->conn->out, AF_TAG_TWIN, 0);
        af_frame_field(&s->conn->out, AF_TAG_CANON, text, n);
        af_frame_field(&s->conn->out, AF_TAG_BUNDLE, whole.data, whole.size);
        af_frame_end(&s->conn->out, at);
        send_frame(s);
        read_answer(s, id, &in);
        if (in.h.type != AF_FRAME_IMPORT)
                die("import", -EIO);
}

/* A process of its own that imports without a pause until it is killed. */
static pid_t start_importer(const struct server *s, const struct af_digest *env) {
        pid_t pid = fork();

        if (pid > 0)
                child_add(pid);
        if (pid != 0)
                return pid;
        memset(children, 0, sizeof(children)); /* they are its parent's */
        struct server own = *s;
        own.conn = server_connect(&own);
        for (uint32_t i = 1000000;; i++) {
                put_import(&own, i, env, 60000);
                usleep(2000);
        }
}

static void evict(void) {
        enum { N_HOT = 50, N_SAMPLES = 20000 };
        struct item *items = items_new(N_HOT);
        uint64_t *ns[2] = {malloc(N_SAMPLES * sizeof(uint64_t)), malloc(N_SAMPLES * sizeof(uint64_t))}, seed = 521288629;
        struct server s[2] = {0};
        pid_t importers[2];
        double p99[2];

        if (!ns[0] || !ns[1])
                die("samples", -ENOMEM);
        for (unsigned which = 0; which < 2; which++) {
                struct af_digest env;

                server_with(&s[which], items, N_HOT, 600, which ? "64" : "65536");
                env = environment_of(&s[which]);
                for (uint32_t i = 0; i < 1000; i++) {                       /* 60 MB: the small one is at its limit */
                        for (uint32_t k = 0; i % 20 == 0 && k < N_HOT; k++) /* in use all the time: what is not may go */
                                (void)ask(&s[which], &items[k]);
                        put_import(&s[which], 2000000 + i, &env, 60000);
                }
                importers[which] = start_importer(&s[which], &env);
        }
        for (uint32_t n = 0; n < N_SAMPLES; n += BLOCK)
                for (unsigned which = 0; which < 2; which++)
                        for (unsigned i = 0; i < BLOCK; i++)
                                ns[which][n + i] = ask(&s[which], &items[draw(&seed, N_HOT)]);
        for (unsigned which = 0; which < 2; which++) {
                kill(importers[which], SIGKILL);
                waitpid(importers[which], NULL, 0);
                child_gone(importers[which]);
                p99[which] = quantile_us(ns[which], N_SAMPLES, 0.99);
                server_stop(&s[which]);
                server_remove(&s[which]);
                free(ns[which]);
        }
        figure("evict_p99_us", p99[1], "us");
        figure("evict_p99_ratio", p99[1] / p99[0], "x");
        free(items);
}

static bool wanted(int argc, char **argv, const char *name) {
        for (int i = 2; i < argc; i++)
                if (argv[i][0] == 0 || strncmp(name, argv[i], strlen(argv[i])) == 0)
                        return true;
        return argc < 3;
}

int main(int argc, char **argv) {
        if (argc < 2) {
                fprintf(stderr, "usage: bench_store BUILD [FIGURES…]\n");
                return 2;
        }
        build_dir = argv[1];
        (void)atexit(children_end);
        af_log_set_level(AF_LOG_ERROR);
        if (wanted(argc, argv, "store_1e6_added_us"))
                added("store_1e6_added_us", 1000, 1000000, 600);
        if (wanted(argc, argv, "store_1e5_64k_added_us"))
                added("store_1e5_64k_added_us", 1000, 100000, 65000);
        if (wanted(argc, argv, "rss_anon_mb"))
                memory();
        if (wanted(argc, argv, "evict_p99_ratio"))
                evict();
        return 0;
}
