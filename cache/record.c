/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/record.h"

#include <string.h>

#include "base/le.h"

static void record_check(enum af_table table, const void *key, uint32_t key_size, const void *p, size_t n, struct af_check *ret_check) {
        uint8_t head[12];

        af_le_put(head, table, 4);
        af_le_put(head + 4, n, 8);
        af_check_pieces((struct af_piece[]){{head, sizeof(head)}, {key, key_size}, {p, n}}, 3, ret_check);
}

void af_record_header_write(const struct af_store_record *r, uint8_t out[AF_RECORD_HEADER_BYTES]) {
        struct af_check check;

        record_check(r->table, r->key, r->key_size, r->value, r->value_size, &check);
        af_le_put(out, AF_RECORD_MAGIC, 4);
        af_le_put(out + 4, r->table, 4);
        af_le_put(out + 8, r->value_size, 8);
        memcpy(out + 16, check.bytes, sizeof(check.bytes));
}

bool af_record_verify(enum af_table table, const void *key, uint32_t key_size, const void *p, size_t n, const void **ret_payload,
                      size_t *ret_n) {
        const uint8_t *head = p;
        struct af_check check;

        if (n < AF_RECORD_HEADER_BYTES || af_le_get(head, 4) != AF_RECORD_MAGIC || af_le_get(head + 4, 4) != (uint64_t)table ||
            af_le_get(head + 8, 8) != n - AF_RECORD_HEADER_BYTES)
                return false;
        record_check(table, key, key_size, head + AF_RECORD_HEADER_BYTES, n - AF_RECORD_HEADER_BYTES, &check);
        if (memcmp(check.bytes, head + 16, sizeof(check.bytes)) != 0)
                return false;
        *ret_payload = head + AF_RECORD_HEADER_BYTES;
        *ret_n = n - AF_RECORD_HEADER_BYTES;
        return true;
}
