/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/intern.h"

Test(intern, equal_bytes_get_one_number) {
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        struct af_intern set;
        uint32_t a, b, c, empty, again;
        bool fresh;
        af_arena_init(&arena, 0);
        af_intern_init(&set, &arena);
        char text[] = "abc";
        cr_assert_eq(af_intern_put(&set, text, 3, &a, &fresh), 0);
        cr_assert(fresh);
        text[0] = 'x'; /* the set has its own copy */
        cr_assert_eq(af_intern_put(&set, text, 3, &b, &fresh), 0);
        cr_assert(fresh && b != a);
        cr_assert_eq(af_intern_put(&set, "abc", 3, &c, &fresh), 0);
        cr_assert(!fresh && c == a);
        cr_assert_eq(af_intern_put(&set, "abcd", 4, &c, NULL), 0);
        cr_assert(c != a && c != b);
        cr_assert_eq(af_intern_put(&set, NULL, 0, &empty, &fresh), 0);
        cr_assert(fresh);
        cr_assert_eq(af_intern_put(&set, "", 0, &again, &fresh), 0);
        cr_assert(!fresh && again == empty);
        cr_assert_eq(set.n_items, 4);
}

Test(intern, numbers_survive_growth) {
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        struct af_intern set;
        uint32_t number;
        bool fresh;
        af_arena_init(&arena, 0);
        af_intern_init(&set, &arena);
        for (unsigned round = 0; round < 2; round++)
                for (uint32_t i = 0; i < 20000; i++) {
                        cr_assert_eq(af_intern_put(&set, &i, sizeof(i), &number, &fresh), 0);
                        cr_assert(number == i && fresh == (round == 0));
                }
}

Test(intern, a_full_arena_is_an_error) {
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        struct af_intern set;
        uint32_t number;
        af_arena_init(&arena, 64);
        af_intern_init(&set, &arena);
        cr_assert_lt(af_intern_put(&set, "abc", 3, &number, NULL), 0);
}
