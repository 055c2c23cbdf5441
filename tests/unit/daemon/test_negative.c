/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/negative.h"

#define SECOND 1000000000ull

static struct af_negatives negatives;
static struct af_digest key;

static void setup(void) {
        af_negatives_init(&negatives);
        memset(key.bytes, 7, sizeof(key.bytes));
}

static void teardown(void) {
        af_negatives_clear(&negatives);
        cr_assert_eq(negatives.n_bytes, 0);
        cr_assert_eq(negatives.table.n, 0);
}

static void fails(const char *text, bool alone, uint64_t s) {
        af_negative_note(&negatives, &key, text, alone, "/state/tmp", s * SECOND);
}

Test(negative, only_the_second_run_alone_proves_it, .init = setup, .fini = teardown) {
        fails("k.cpp:3: error: no such call", false, 1);
        cr_assert_null(af_negative_get(&negatives, &key, 2 * SECOND));
        cr_assert(af_negative_suspected(&negatives, &key, 2 * SECOND));
        fails("k.cpp:3: error: no such call", false, 3);
        cr_assert_null(af_negative_get(&negatives, &key, 3 * SECOND));
        fails("k.cpp:3: error: no such call", true, 4);
        cr_assert_str_eq(af_negative_get(&negatives, &key, 5 * SECOND), "k.cpp:3: error: no such call");
}

Test(negative, for_ten_minutes, .init = setup, .fini = teardown) {
        fails("error: a", true, 1);
        fails("error: a", true, 2);
        cr_assert_not_null(af_negative_get(&negatives, &key, 602 * SECOND));
        cr_assert_null(af_negative_get(&negatives, &key, 603 * SECOND));
        cr_assert(!af_negative_suspected(&negatives, &key, 603 * SECOND));
}

Test(negative, another_text_proves_nothing, .init = setup, .fini = teardown) {
        fails("error: a", true, 1);
        fails("error: b", true, 2);
        cr_assert_null(af_negative_get(&negatives, &key, 3 * SECOND));
        fails("error: b", true, 3);
        cr_assert_not_null(af_negative_get(&negatives, &key, 4 * SECOND));
}

Test(negative, temporary_paths_and_addresses_do_not_count, .init = setup, .fini = teardown) {
        fails("/state/tmp/job.1x/kernel.cpp:3: error at 0x7f12", true, 1);
        fails("/state/tmp/job.ab/kernel.cpp:3: error at 0x55aa10", true, 2);
        cr_assert_not_null(af_negative_get(&negatives, &key, 3 * SECOND));
        fails("/state/tmp/job.ab/kernel.cpp:4: error at 0x55aa10", true, 2);
        cr_assert_null(af_negative_get(&negatives, &key, 3 * SECOND));
}

Test(negative, space_memory_and_signals_are_never_counted, .init = setup, .fini = teardown) {
        static const char *const texts[] = {"fatal error: error writing to x.s: No space left on device", "virtual memory exhausted",
                                            "g++: fatal error: Killed signal terminated program cc1plus", "internal compiler error: in foo",
                                            "as: out of memory allocating 5 bytes"};

        for (size_t i = 0; i < AF_ARRAY_SIZE(texts); i++) {
                fails(texts[i], true, 1);
                fails(texts[i], true, 2);
                cr_assert_null(af_negative_get(&negatives, &key, 3 * SECOND), "%s", texts[i]);
        }
        fails("error: a", true, 4);
        fails(texts[0], true, 5);
        fails("error: a", true, 6);
        cr_assert_null(af_negative_get(&negatives, &key, 7 * SECOND));
}

Test(negative, a_success_forgets_it, .init = setup, .fini = teardown) {
        fails("error: a", true, 1);
        fails("error: a", true, 2);
        af_negative_forget(&negatives, &key);
        cr_assert_null(af_negative_get(&negatives, &key, 3 * SECOND));
        cr_assert(!af_negative_suspected(&negatives, &key, 3 * SECOND));
}

Test(negative, bounded, .init = setup, .fini = teardown) {
        char *text = malloc(100001);

        memset(text, 'e', 100000);
        text[100000] = 0;
        for (unsigned i = 0; i < 3000; i++) {
                memcpy(key.bytes, &i, sizeof(i));
                fails(i % 2 ? text : "error", true, i / 10);
        }
        cr_assert_leq(negatives.table.n, AF_NEGATIVE_MAX);
        cr_assert_leq(negatives.n_bytes, AF_NEGATIVE_MAX_BYTES);
        cr_assert(af_negative_suspected(&negatives, &key, 300 * SECOND));
        free(text);
}
