/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/memo.h"
#include "tests/unit/client/fake_server.h"
#include "tests/unit/client/sample.h"

static struct af_prepared *prepare(const char *text) {
        struct af_prepared *p = NULL;
        cr_assert_eq(af_prepared_new_text(text, strlen(text), NULL, &p), 0);
        return p;
}

/* Content with a key of its own. */
static struct af_content *make(const struct af_prepared *p, uint32_t number) {
        struct af_buf bundle = AF_BUF_INIT;
        struct af_bundle_key key = {0};
        struct af_content *c = NULL;
        const char *why = NULL;
        memcpy(key.fragment.bytes, &number, sizeof(number));
        fake_bundle(p->canon, p->n_canon, &bundle);
        cr_assert_eq(af_content_from_bytes(bundle.data, bundle.size, &key, &c, &why), 0, "%s", why);
        af_buf_deinit(&bundle);
        return c;
}

static struct af_digest number_key(uint32_t number) {
        struct af_digest d = {0};
        memcpy(d.bytes, &number, sizeof(number));
        return d;
}

Test(memo, finds_what_was_put) {
        struct af_memo memo;
        af_memo_init(&memo, 1 << 20);
        struct af_prepared *p = prepare(sample_text);
        struct af_content *c = make(p, 7);
        struct af_digest d = number_key(7), other = number_key(8);
        cr_assert_null(af_memo_get(&memo, &d));
        af_memo_put(&memo, c);
        struct af_content *got = af_memo_get(&memo, &d);
        cr_assert_eq(got, c);
        cr_assert_null(af_memo_get(&memo, &other));
        cr_assert_eq(memo.n_hits, 1);
        cr_assert_eq(memo.n_misses, 2);
        af_content_unref(got);
        af_memo_put(&memo, c);
        cr_assert_eq(memo.n_entries, 1);
        af_memo_deinit(&memo);
        cr_assert_eq(atomic_load(&c->refs), 1);
        af_content_unref(c);
        af_prepared_unref(p);
}

Test(memo, texts_are_compared_not_believed) {
        struct af_memo memo;
        af_memo_init(&memo, 1 << 20);
        struct af_prepared *p = prepare(sample_text);
        uint64_t hash = af_memo_hash_text(sample_text, strlen(sample_text));
        af_memo_put_text(&memo, hash, sample_text, strlen(sample_text), p);
        struct af_prepared *got = af_memo_get_text(&memo, hash, sample_text, strlen(sample_text));
        cr_assert_eq(got, p);
        af_prepared_unref(got);
        /* Another text with the same hash: a collision. */
        cr_assert_null(af_memo_get_text(&memo, hash, "something else", 14));
        cr_assert_null(af_memo_get_text(&memo, hash, sample_text, strlen(sample_text) - 1));
        af_memo_deinit(&memo);
        af_prepared_unref(p);
}

Test(memo, is_bounded_and_drops_the_oldest) {
        struct af_memo memo;
        struct af_prepared *p = prepare(sample_text);
        struct af_content *first = make(p, 0);
        af_memo_init(&memo, 40 * (first->size + 400));
        for (uint32_t i = 0; i < 1000; i++) {
                struct af_content *c = i ? make(p, i) : af_content_ref(first);
                af_memo_put(&memo, c);
                af_content_unref(c);
                struct af_digest d = number_key(0);
                struct af_content *kept = af_memo_get(&memo, &d); /* used all the time: stays */
                cr_assert_eq(kept, first);
                af_content_unref(kept);
                cr_assert_leq(memo.n_bytes, memo.max_bytes);
        }
        struct af_digest early = number_key(1), late = number_key(999);
        struct af_content *c = af_memo_get(&memo, &late);
        cr_assert_not_null(c);
        af_content_unref(c);
        cr_assert_null(af_memo_get(&memo, &early));
        cr_assert_geq(memo.n_evictions, 950);
        af_memo_clear(&memo);
        cr_assert_eq(memo.n_bytes, 0);
        cr_assert_eq(memo.n_entries, 0);
        cr_assert_eq(atomic_load(&first->refs), 1);
        af_content_unref(first);
        af_memo_deinit(&memo);
        af_prepared_unref(p);
}

Test(memo, keeps_nothing_that_is_too_large) {
        struct af_memo memo;
        struct af_prepared *p = prepare(sample_text);
        struct af_content *c = make(p, 1);
        af_memo_init(&memo, 2 * c->size);
        af_memo_put(&memo, c);
        af_memo_put_text(&memo, 1, sample_text, strlen(sample_text), p);
        cr_assert_eq(memo.n_entries, 0);
        af_content_unref(c);
        af_prepared_unref(p);
        af_memo_deinit(&memo);
}
