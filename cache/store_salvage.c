/* SPDX-License-Identifier: Apache-2.0 */
/* Out of files that were set aside: every record that is whole goes into the new store, so that damage costs no other key. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "cache/pages.h"
#include "cache/record.h"
#include "cache/store_internal.h"

#define BATCH_RECORDS 256u
#define BATCH_BYTES   (8u << 20)

struct salvage {
        struct af_store *s;
        struct af_store_record records[BATCH_RECORDS]; /* keys and values malloc'd together: the key's pointer is to be freed */
        uint32_t n;
        size_t bytes;
        uint64_t n_taken, n_lost;
};

static void put_batch(struct salvage *v) {
        struct store_op *op = v->n ? store_op_new(STORE_OP_PUT, v->records, v->n) : NULL;
        bool stored = op && store_apply(v->s, op) == 0;

        *(stored ? &v->n_taken : &v->n_lost) += v->n;
        for (uint32_t i = 0; i < v->n; i++)
                free((void *)v->records[i].key);
        free(op);
        v->n = 0;
        v->bytes = 0;
}

static void take(void *userdata, const char *db, size_t n_db, const uint8_t *key, size_t n_key, const uint8_t *value, size_t n_value) {
        struct salvage *v = userdata;
        enum af_table table = store_table_of(db, n_db);
        const void *payload;
        size_t n;

        if (table == AF_N_TABLES)
                return;
        if (n_key > AF_STORE_MAX_KEY || !af_record_verify(table, key, (uint32_t)n_key, value, n_value, &payload, &n)) {
                v->n_lost++;
                return;
        }
        uint8_t *copy = malloc(n_key + n);
        if (!copy) {
                v->n_lost++;
                return;
        }
        memcpy(copy, key, n_key);
        memcpy(copy + n_key, payload, n);
        v->records[v->n++] =
                (struct af_store_record){.table = table, .key = copy, .key_size = (uint32_t)n_key, .value = copy + n_key, .value_size = n};
        v->bytes += n;
        if (v->n == BATCH_RECORDS || v->bytes >= BATCH_BYTES)
                put_batch(v);
}

void store_salvage(struct af_store *s) {
        struct salvage v = {.s = s};
        AF_CLEANUP(af_closep) int fd = openat(s->dir_fd, "lmdb.aside/data.mdb", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

        s->salvage = false;
        if (fd < 0)
                return;
        int r = af_pages_walk(fd, take, &v);
        put_batch(&v);
        pthread_mutex_lock(&s->lock);
        s->stats.n_damaged += v.n_lost;
        pthread_mutex_unlock(&s->lock);
        af_log(AF_LOG_WARNING, "%s: %" PRIu64 " records of the damaged files were whole and taken over, %" PRIu64 " were not%s", s->dir,
               v.n_taken, v.n_lost, r < 0 ? "; not all of it could be read" : "");
}
