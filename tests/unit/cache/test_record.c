/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "cache/record.h"

struct stored {
        uint8_t bytes[AF_RECORD_HEADER_BYTES + 5];
};

static struct stored make(enum af_table table, const char *key) {
        struct stored st;

        memcpy(st.bytes + AF_RECORD_HEADER_BYTES, "hello", 5);
        af_record_header_write(&(struct af_store_record){table, key, (uint32_t)strlen(key), "hello", 5}, st.bytes);
        return st;
}

static bool verify(enum af_table table, const char *key, const struct stored *st, size_t n) {
        const void *p;
        size_t size;

        return af_record_verify(table, key, (uint32_t)strlen(key), st->bytes, n, &p, &size) && size == 5 && memcmp(p, "hello", 5) == 0;
}

Test(record, round_trip) {
        struct stored st = make(AF_TABLE_KERNELS, "key");

        cr_assert(verify(AF_TABLE_KERNELS, "key", &st, sizeof(st)));
}

Test(record, other_table_or_key_is_refused) {
        struct stored st = make(AF_TABLE_KERNELS, "key");

        cr_assert_not(verify(AF_TABLE_SOURCES, "key", &st, sizeof(st)));
        cr_assert_not(verify(AF_TABLE_KERNELS, "kez", &st, sizeof(st)));
        cr_assert_not(verify(AF_TABLE_KERNELS, "keyh", &st, sizeof(st)));
}

Test(record, C01_every_flipped_bit_is_refused) {
        for (size_t bit = 0; bit < sizeof(struct stored) * 8; bit++) {
                struct stored st = make(AF_TABLE_KERNELS, "key");

                st.bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
                cr_assert_not(verify(AF_TABLE_KERNELS, "key", &st, sizeof(st)), "bit %zu", bit);
        }
}

Test(record, C01_every_truncation_is_refused) {
        struct stored st = make(AF_TABLE_KERNELS, "key");

        for (size_t n = 0; n < sizeof(st); n++)
                cr_assert_not(verify(AF_TABLE_KERNELS, "key", &st, n));
}
