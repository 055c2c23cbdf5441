/* SPDX-License-Identifier: Apache-2.0 */
/* Objects by digest: an intrusive chained table. Digests are uniform, so their first bytes are the hash. */
#pragma once

#include "base/digest.h"

#define AF_TABLE_BUCKETS 4096u

struct af_table_link {
        struct af_table_link *next;
        struct af_digest key;
};
struct af_digest_table {
        struct af_table_link *buckets[AF_TABLE_BUCKETS];
        uint32_t n;
};

static inline struct af_table_link **af_digest_table_bucket(struct af_digest_table *t, const struct af_digest *key) {
        return &t->buckets[(key->bytes[0] | (uint32_t)key->bytes[1] << 8) % AF_TABLE_BUCKETS];
}

/* NULL where absent. Links stand first in their objects: cast the result. */
static inline void *af_digest_table_get(struct af_digest_table *t, const struct af_digest *key) {
        struct af_table_link *l = *af_digest_table_bucket(t, key);

        while (l && !af_digest_equal(&l->key, key))
                l = l->next;
        return l;
}

/* link->key is set and not in the table yet. */
static inline void af_digest_table_add(struct af_digest_table *t, struct af_table_link *link) {
        struct af_table_link **at = af_digest_table_bucket(t, &link->key);

        link->next = *at;
        *at = link;
        t->n++;
}

/* Fine for a link that is not in the table. */
static inline void af_digest_table_del(struct af_digest_table *t, struct af_table_link *link) {
        for (struct af_table_link **at = af_digest_table_bucket(t, &link->key); *at; at = &(*at)->next)
                if (*at == link) {
                        *at = link->next;
                        t->n--;
                        return;
                }
}
