/* SPDX-License-Identifier: Apache-2.0 */
/* A store in a temporary directory. */
#pragma once

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "cache/store.h"

static char *base, dir[4096], data_path[4200];

static inline void setup(void) {
        af_log_set_level(AF_LOG_ERROR);
        cr_assert_eq(af_io_temp_dir(NULL, "af_store", &base), 0);
        snprintf(dir, sizeof(dir), "%s/state", base);
        snprintf(data_path, sizeof(data_path), "%s/lmdb/data.mdb", dir);
}

static inline void teardown(void) {
        chmod(dir, 0700);
        cr_assert_eq(af_io_remove_tree(base), 0);
        free(base);
}

static inline struct af_store *open_sized(uint64_t map, uint64_t max) {
        struct af_store *s = NULL;
        char *why = NULL;
        int r = af_store_open(&(struct af_store_config){.dir = dir, .map_bytes = map, .max_bytes = max}, &s, &why);

        cr_assert_eq(r, 0, "%d: %s", r, why ? why : "");
        return s;
}

static inline struct af_store *open_store(void) {
        return open_sized(0, 0);
}

/* -1 while running. */
static inline void on_done(void *userdata, int r) {
        *(int *)userdata = r;
}

static inline int put_wait(struct af_store *s, const struct af_store_record *records, uint32_t n) {
        int result = 1000, r = af_store_put(s, records, n, on_done, &result);

        if (r)
                return r;
        while (result == 1000) {
                struct pollfd p = {.fd = af_store_fd(s), .events = POLLIN};

                cr_assert_eq(poll(&p, 1, 30000), 1, "a put never ended");
                af_store_dispatch(s);
        }
        return result;
}

static inline struct af_store_record kernel(const char *key, const void *value, size_t n) {
        return (struct af_store_record){AF_TABLE_KERNELS, key, (uint32_t)strlen(key), value, n};
}

/* malloc'd copy or NULL. */
static inline char *get(struct af_store *s, const char *key, size_t *ret_n) {
        struct af_store_record r = kernel(key, NULL, 0);
        struct af_store_value v;

        cr_assert_eq(af_store_get(s, &r, 1, &v), 0);
        if (ret_n)
                *ret_n = v.size;
        return v.data;
}

static inline bool has(struct af_store *s, const char *key, const char *value) {
        char *got = get(s, key, NULL);
        bool same = got && strcmp(got, value) == 0;

        free(got);
        return same;
}

static inline struct af_store_record big_record(int i, char key[32], uint8_t *value, size_t n) {
        snprintf(key, 32, "%08x%08x", (unsigned)i * 2654435761u, (unsigned)i);
        memset(value, i, n);
        return kernel(key, value, n);
}
