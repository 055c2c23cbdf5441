/* SPDX-License-Identifier: Apache-2.0 */
/* Records that tell their own number, and a copy of an area that a test may damage. */
#pragma once

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hot/area.h"
#include "hot/view.h"

static inline struct af_hot_key hot_key(uint32_t number) {
        struct af_hot_key key = {0};

        memcpy(key.bytes, &number, sizeof(number));
        key.bytes[40] = 7;
        return key;
}

/* Bytes that depend on number and version. */
static inline void hot_fill(uint8_t *p, size_t n, uint32_t number, uint32_t version) {
        uint64_t x = number * 0x9e3779b97f4a7c15ull + version * 0xc2b2ae3d27d4eb4full + 1;

        for (size_t i = 0; i < n; i++) {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                p[i] = (uint8_t)x;
        }
}

static inline int hot_put(struct af_hot_area *area, uint32_t number, size_t n, bool may_evict) {
        struct af_hot_key key = hot_key(number);
        uint8_t *p = malloc(n + 1);

        hot_fill(p, n, number, 0);
        int r = af_hot_area_put(area, &key, p, n, may_evict);
        free(p);
        return r;
}

/* 0 and the right bytes, or what get says. */
static inline int hot_get(const struct af_hot_view *view, uint32_t number, size_t n) {
        struct af_hot_key key = hot_key(number);
        uint8_t *want = malloc(n + 1);
        void *p = NULL;
        size_t got = 0;
        int r = af_hot_view_get(view, &key, 64u << 20, &p, &got);

        hot_fill(want, n, number, 0);
        if (r == 0) {
                cr_assert_eq(got, n);
                cr_assert_eq((uintptr_t)p % 64, 0);
                cr_assert_eq(memcmp(p, want, n), 0, "record %u", number);
                free(p);
        }
        free(want);
        return r;
}

static inline struct af_hot_view *hot_view(const struct af_hot_area *area) {
        struct af_hot_view *view = NULL;
        const char *why = "";

        cr_assert_eq(af_hot_view_open(af_hot_area_fd(area), af_hot_area_bytes(area), &view, &why), 0, "%s", why);
        return view;
}

/* The same bytes in a file that can be written: *ret_map. */
static inline int hot_copy(const struct af_hot_area *area, uint8_t **ret_map) {
        size_t n = af_hot_area_bytes(area);
        int fd = memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        void *from = mmap(NULL, n, PROT_READ, MAP_SHARED, af_hot_area_fd(area), 0);

        cr_assert(fd >= 0 && from != MAP_FAILED && ftruncate(fd, (off_t)n) == 0);
        *ret_map = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        cr_assert(*ret_map != MAP_FAILED);
        memcpy(*ret_map, from, n);
        munmap(from, n);
        cr_assert_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
        return fd;
}
