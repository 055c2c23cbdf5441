/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "tests/unit/hot/hot.h"

static struct af_hot_area *make(uint64_t n) {
        struct af_hot_area *area = NULL;

        cr_assert_eq(af_hot_area_new(n, &area), 0);
        return area;
}

static struct af_hot_stats stats(const struct af_hot_area *area) {
        struct af_hot_stats s;

        af_hot_area_stats(area, &s);
        return s;
}

Test(area, what_is_put_is_found) {
        struct af_hot_area *area = make(4 << 20);
        struct af_hot_view *view = hot_view(area);

        for (uint32_t i = 0; i < 40; i++)
                cr_assert_eq(hot_put(area, i, 1 + i * 977, false), 0);
        for (uint32_t i = 0; i < 40; i++)
                cr_assert_eq(hot_get(view, i, 1 + i * 977), 0);
        cr_assert_eq(hot_get(view, 40, 1), AF_HOT_E_MISS);
        cr_assert_eq(stats(area).n_records, 40);
        af_hot_view_unref(view);
        af_hot_area_free(area);
}

Test(area, refuses_nothing_and_too_much) {
        struct af_hot_area *area = make(4 << 20);

        cr_assert_eq(hot_put(area, 1, 0, true), AF_HOT_E_LARGE);
        cr_assert_eq(hot_put(area, 1, 1 << 19, true), AF_HOT_E_LARGE);
        cr_assert_eq(stats(area).n_records, 0);
        af_hot_area_free(area);
}

Test(area, replaces_drops_and_clears) {
        struct af_hot_area *area = make(1 << 20);
        struct af_hot_view *view = hot_view(area);
        struct af_hot_key key = hot_key(5);

        cr_assert_eq(hot_put(area, 5, 100, false), 0);
        cr_assert_eq(hot_put(area, 5, 3000, false), 0);
        cr_assert_eq(hot_get(view, 5, 3000), 0);
        cr_assert_eq(stats(area).n_records, 1);
        af_hot_area_del(area, &key);
        af_hot_area_del(area, &key);
        cr_assert_eq(hot_get(view, 5, 3000), AF_HOT_E_MISS);
        for (uint32_t i = 0; i < 20; i++)
                cr_assert_eq(hot_put(area, i, 500, false), 0);
        af_hot_area_clear(area);
        cr_assert_eq(stats(area).n_records, 0);
        cr_assert_eq(stats(area).used_bytes, 0);
        cr_assert_eq(hot_get(view, 3, 500), AF_HOT_E_MISS);
        af_hot_view_unref(view);
        af_hot_area_free(area);
}

/* Many times round: what is found is right, what is used stays, room and index stay within their bounds. */
Test(area, goes_round_and_keeps_what_is_used) {
        struct af_hot_area *area = make(1 << 20);
        struct af_hot_view *view = hot_view(area);
        struct af_hot_key kept = hot_key(1);
        uint32_t n_found = 0;

        cr_assert_eq(hot_put(area, 1, 4000, false), 0);
        for (uint32_t i = 2; i < 3000; i++) {
                cr_assert(af_hot_area_touch(area, &kept), "at %u", i);
                (void)hot_put(area, i, 1000 + i % 5000, true);
                cr_assert_eq(hot_get(view, 1, 4000), 0, "at %u", i);
        }
        for (uint32_t i = 2; i < 3000; i++)
                n_found += hot_get(view, i, 1000 + i % 5000) == 0;
        cr_assert_gt(n_found, 50);
        cr_assert_eq(n_found + 1, stats(area).n_records);
        cr_assert_gt(stats(area).n_evicted, 2000);
        cr_assert_leq(stats(area).used_bytes, 1 << 20);
        af_hot_view_unref(view);
        af_hot_area_free(area);
}

/* Small records run out of slots before they run out of bytes. */
Test(area, a_full_index_evicts_the_cold) {
        struct af_hot_area *area = make(1 << 20);
        struct af_hot_view *view = hot_view(area);
        uint32_t n_refused = 0;

        for (uint32_t i = 0; i < 4000; i++)
                n_refused += hot_put(area, i, 64, false) == AF_HOT_E_FULL;
        cr_assert_gt(n_refused, 3000, "the index has some hundred slots");
        cr_assert_eq(stats(area).n_evicted, 0);
        for (uint32_t i = 4000; i < 8000; i++)
                cr_assert_eq(hot_put(area, i, 64, true), 0);
        cr_assert_eq(hot_get(view, 7999, 64), 0);
        /* A bucket whose records are all in use takes none at first, and one the next time. */
        for (uint32_t i = 0; i < 8000; i++) {
                struct af_hot_key key = hot_key(i);

                (void)af_hot_area_touch(area, &key);
        }
        cr_assert_eq(hot_put(area, 9000, 64, true), AF_HOT_E_FULL);
        cr_assert_eq(hot_put(area, 9000, 64, true), 0);
        af_hot_view_unref(view);
        af_hot_area_free(area);
}

/* Whoever has the descriptor, or opens its file anew, cannot write by any way that there is. */
Test(area, C35_nobody_else_can_write) {
        struct af_hot_area *area = make(1 << 20);
        size_t n = af_hot_area_bytes(area);
        char path[64];
        int fd = af_hot_area_fd(area), again;

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        again = open(path, O_RDWR | O_CLOEXEC);
        for (int i = 0; i < 2; i++) {
                int f = i ? again : fd;

                if (f < 0)
                        continue;
                cr_assert_eq(mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0), MAP_FAILED);
                cr_assert_lt(pwrite(f, "x", 1, 0), 0);
                cr_assert_lt(ftruncate(f, 0), 0);
                cr_assert_lt(ftruncate(f, (off_t)n * 2), 0);
                cr_assert_lt(fallocate(f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
                cr_assert_lt(fcntl(f, F_ADD_SEALS, F_SEAL_WRITE), 0);
        }
        void *map = mmap(NULL, n, PROT_READ, MAP_SHARED, fd, 0);
        cr_assert_neq(map, MAP_FAILED);
        cr_assert_lt(mprotect(map, n, PROT_READ | PROT_WRITE), 0);
        cr_assert_lt(madvise(map, n, MADV_REMOVE), 0);
        cr_assert_eq(hot_put(area, 1, 100, false), 0, "the owner still can");
        munmap(map, n);
        if (again >= 0)
                close(again);
        af_hot_area_free(area);
}
