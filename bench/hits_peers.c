/* SPDX-License-Identifier: Apache-2.0 */
/* What hits are held against: an echo over a Unix socket, a mapped and verified memfd, LMDB. */
#include <lmdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "bench/hits.h"

#define ECHO_BYTES 256

_Noreturn void hits_die(const char *what) {
        perror(what);
        exit(1);
}

double hits_now_us(void) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b) {
        double x = *(const double *)a, y = *(const double *)b;
        return x < y ? -1 : x > y;
}

double hits_quantile(double *values, uint32_t n, double q) {
        if (n == 0)
                hits_die("no values");
        qsort(values, n, sizeof(*values), compare);
        return values[(uint32_t)(q * (n - 1))];
}

/* ---- echo ---- */

static struct sockaddr_un address(const char *path) {
        struct sockaddr_un sa = {.sun_family = AF_UNIX};
        snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
        return sa;
}

static void echo_loop(int listener) {
        struct epoll_event e = {.events = EPOLLIN, .data.fd = listener}, ready[64];
        char bytes[ECHO_BYTES];
        int ep = epoll_create1(0);
        if (ep < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, listener, &e) < 0)
                hits_die("epoll");
        for (;;) {
                int n = epoll_wait(ep, ready, 64, -1);
                for (int i = 0; i < n; i++) {
                        int fd = ready[i].data.fd;
                        if (fd == listener) {
                                e.data.fd = accept(listener, NULL, NULL);
                                if (e.data.fd >= 0)
                                        (void)epoll_ctl(ep, EPOLL_CTL_ADD, e.data.fd, &e);
                        } else if (recv(fd, bytes, sizeof(bytes), 0) != sizeof(bytes)) {
                                close(fd);
                        } else if (send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) != sizeof(bytes)) {
                                close(fd);
                        }
                }
        }
}

int hits_echo_serve(const char *path) {
        struct sockaddr_un sa = address(path);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        unlink(path);
        if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, 64) < 0)
                hits_die("echo server");
        pid_t pid = fork();
        if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                echo_loop(fd);
        }
        close(fd);
        return pid;
}

int hits_echo_connect(const char *path) {
        struct sockaddr_un sa = address(path);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
                hits_die("echo");
        return fd;
}

void hits_echo_ask(int fd) {
        char bytes[ECHO_BYTES] = {0};
        if (send(fd, bytes, sizeof(bytes), 0) != sizeof(bytes) || recv(fd, bytes, sizeof(bytes), MSG_WAITALL) != sizeof(bytes))
                hits_die("echo");
}

void hits_map_and_verify(int fd, size_t n) {
        static volatile uint64_t sink;
        void *p = mmap(NULL, n, PROT_READ, MAP_SHARED, fd, 0);
        if (p == MAP_FAILED)
                hits_die("mmap");
        sink += XXH3_128bits(p, n).low64;
        munmap(p, n);
}

/* ---- LMDB ---- */

struct hits_lmdb {
        MDB_env *env;
        MDB_txn *txn;
        MDB_dbi dbi;
};

static void must(int r) {
        if (r) {
                fprintf(stderr, "lmdb: %s\n", mdb_strerror(r));
                exit(1);
        }
}

/* 64 bytes that are spread like digests. */
static void key_of(uint32_t i, uint8_t key[64]) {
        for (uint64_t k = 0; k < 4; k++) {
                uint64_t part[2] = {i, k};
                XXH128_hash_t h = XXH3_128bits(part, sizeof(part));
                memcpy(key + 16 * k, &h, 16);
        }
}

void hits_lmdb_make(const char *dir, const void *p, size_t n) {
        uint8_t key[64];
        MDB_env *env;
        MDB_txn *txn;
        MDB_dbi dbi;
        must(mdb_env_create(&env));
        must(mdb_env_set_mapsize(env, 2 * HITS_LMDB_RECORDS * (n + 4096) + (1u << 20)));
        must(mdb_env_open(env, dir, 0, 0600));
        must(mdb_txn_begin(env, NULL, 0, &txn));
        must(mdb_dbi_open(txn, NULL, MDB_CREATE, &dbi));
        for (uint32_t i = 0; i < HITS_LMDB_RECORDS; i++) {
                key_of(i, key);
                must(mdb_put(txn, dbi, &(MDB_val){sizeof(key), key}, &(MDB_val){n, (void *)p}, 0));
        }
        must(mdb_txn_commit(txn));
        mdb_env_close(env);
}

struct hits_lmdb *hits_lmdb_open(const char *dir) {
        struct hits_lmdb *db = calloc(1, sizeof(*db));
        if (!db)
                hits_die("memory");
        must(mdb_env_create(&db->env));
        must(mdb_env_open(db->env, dir, MDB_RDONLY, 0600));
        must(mdb_txn_begin(db->env, NULL, MDB_RDONLY, &db->txn));
        must(mdb_dbi_open(db->txn, NULL, 0, &db->dbi));
        return db;
}

void *hits_lmdb_get(struct hits_lmdb *db, uint32_t i, void *into, size_t *ret_n) {
        uint8_t key[64];
        MDB_val v;
        key_of(i, key);
        must(mdb_get(db->txn, db->dbi, &(MDB_val){sizeof(key), key}, &v));
        void *p = into ? into : aligned_alloc(64, (v.mv_size + 63) / 64 * 64);
        if (!p)
                hits_die("memory");
        memcpy(p, v.mv_data, v.mv_size);
        *ret_n = v.mv_size;
        return p;
}
