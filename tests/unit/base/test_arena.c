/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"

static bool all_zero(const void *p, size_t n) {
        const uint8_t *b = p;

        for (size_t i = 0; i < n; i++)
                if (b[i] != 0)
                        return false;
        return true;
}

Test(arena, gives_zeroed_aligned_memory) {
        struct af_arena a;

        af_arena_init(&a, 0);
        for (size_t n = 0; n < 5000; n += 37) {
                uint8_t *p = af_arena_alloc(&a, n);
                cr_assert_not_null(p);
                cr_assert_eq((uintptr_t)p % 16, 0);
                cr_assert(all_zero(p, n));
                memset(p, 0xaa, n);
        }
        uint8_t *large = af_arena_alloc(&a, 20u << 20);
        cr_assert_not_null(large);
        cr_assert(all_zero(large, 20u << 20));
        af_arena_deinit(&a);
        cr_assert_null(a.head);
}

Test(arena, deinit_accepts_what_was_never_used) {
        struct af_arena zero = {0}, fresh;

        af_arena_deinit(&zero);
        af_arena_init(&fresh, 10);
        af_arena_reset(&fresh);
        af_arena_deinit(&fresh);
        af_arena_deinit(&fresh);
}

Test(arena, keeps_its_limit) {
        struct af_arena a;

        af_arena_init(&a, 64);
        cr_assert_not_null(af_arena_alloc(&a, 48));
        cr_assert_null(af_arena_alloc(&a, 32));
        cr_assert_not_null(af_arena_alloc(&a, 16));
        cr_assert_null(af_arena_alloc(&a, 0));
        af_arena_reset(&a);
        cr_assert_not_null(af_arena_alloc(&a, 64));
        af_arena_deinit(&a);
}

Test(arena, reset_gives_zeroed_memory_again) {
        struct af_arena a;

        af_arena_init(&a, 0);
        for (int round = 0; round < 4; round++) {
                for (int i = 0; i < 100; i++) {
                        uint8_t *p = af_arena_alloc(&a, 1000);
                        cr_assert(all_zero(p, 1000));
                        memset(p, 0xff, 1000);
                }
                af_arena_reset(&a);
                cr_assert_eq(a.n_bytes, 0);
        }
        af_arena_deinit(&a);
}

/* Beyond a megabyte chunks are mapped; what they hand out is as clean, after a reset too. */
Test(arena, gives_zeroed_memory_from_mapped_chunks) {
        struct af_arena a;

        af_arena_init(&a, 0);
        for (int round = 0; round < 3; round++) {
                for (size_t i = 0; i < 150; i++) {
                        size_t n = 100000 + i * 1000 + (i == 70 ? 3u << 20 : 0);
                        uint8_t *p = af_arena_alloc(&a, n);
                        cr_assert_not_null(p);
                        cr_assert_eq((uintptr_t)p % 16, 0);
                        cr_assert(all_zero(p, n));
                        memset(p, 0xff, n);
                }
                af_arena_reset(&a);
        }
        af_arena_deinit(&a);
}

Test(arena, refuses_sizes_that_overflow) {
        struct af_arena a;

        af_arena_init(&a, 0);
        cr_assert_null(af_arena_alloc(&a, SIZE_MAX));
        cr_assert_null(af_arena_alloc(&a, SIZE_MAX - 8));
        cr_assert_null(af_arena_calloc(&a, SIZE_MAX / 2, 4));
        cr_assert_null(af_arena_memdup(&a, "", SIZE_MAX));
        cr_assert_not_null(af_arena_calloc(&a, 0, 4));
        af_arena_deinit(&a);
}

Test(arena, copies_text) {
        struct af_arena a;

        af_arena_init(&a, 0);
        cr_assert_str_eq(af_arena_strdup(&a, "abc"), "abc");
        cr_assert_str_eq(af_arena_strdup(&a, ""), "");
        const char *bytes = af_arena_memdup(&a, "x\0y", 3);
        cr_assert_arr_eq(bytes, "x\0y\0", 4);
        cr_assert_not_null(af_arena_memdup(&a, NULL, 0));
        cr_assert_str_eq(af_arena_printf(&a, "%s-%d", "n", 7), "n-7");
        af_arena_deinit(&a);
}

Test(arena, grows_arrays) {
        struct af_arena a;
        uint32_t *items = NULL, cap = 0;

        af_arena_init(&a, 0);
        for (uint32_t i = 0; i < 1000; i++) {
                cr_assert_eq(af_arena_grow(&a, &items, &cap, i + 1, sizeof(*items)), 0);
                items[i] = i * 3;
        }
        for (uint32_t i = 0; i < 1000; i++)
                cr_assert_eq(items[i], i * 3);
        cr_assert_geq(cap, 1000);
        af_arena_deinit(&a);
        af_arena_init(&a, 32);
        items = NULL;
        cap = 0;
        cr_assert_eq(af_arena_grow(&a, &items, &cap, 100, sizeof(*items)), -ENOMEM);
        cr_assert_null(items);
        cr_assert_eq(cap, 0);
        af_arena_deinit(&a);
}
