/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recency and eviction. Database `recency`: u8 table, key -> u32 second, u32 ~second (a damaged stamp counts as old; an older version
 * wrote minutes). Stamps are coarse (STORE_RECENCY_GRAIN_S) and only written along with other work. Eviction draws a few random keys of one
 * table and deletes the stalest; small steps, so that no put waits long.
 */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cache/store_internal.h"

#define N_SAMPLES   8
#define MAX_MINUTES 100000000u /* larger ones are seconds */

struct stamp_key {
        uint8_t bytes[1 + AF_STORE_MAX_KEY];
};

static MDB_val stamp_key(struct stamp_key *buf, enum af_table table, const void *key, uint32_t key_size) {
        buf->bytes[0] = (uint8_t)table;
        memcpy(buf->bytes + 1, key, key_size);
        return (MDB_val){1 + key_size, buf->bytes};
}

static uint32_t stamp_read(struct af_store *s, MDB_txn *txn, MDB_val *key) {
        uint32_t v[2];
        MDB_val val;

        if (mdb_get(txn, s->dbs[STORE_DB_RECENCY], key, &val) || val.mv_size != sizeof(v))
                return 0;
        memcpy(v, val.mv_data, sizeof(v));
        return v[1] != ~v[0] ? 0 : v[0] < MAX_MINUTES ? v[0] * 60 : v[0];
}

uint32_t store_stamp_read(struct af_store *s, MDB_txn *txn, enum af_table table, const void *key, uint32_t key_size) {
        struct stamp_key buf;
        MDB_val k = stamp_key(&buf, table, key, key_size);

        return stamp_read(s, txn, &k) / 60;
}

int store_stamp(struct af_store *s, MDB_txn *txn, enum af_table table, const void *key, uint32_t key_size) {
        uint32_t grain = s->stats.used_bytes > s->max_bytes / 5 * 3 ? STORE_PRESSED_GRAIN_S : STORE_RECENCY_GRAIN_S;
        uint32_t now = (uint32_t)af_clock_wall_s(), old;
        struct stamp_key buf;
        MDB_val k = stamp_key(&buf, table, key, key_size), v;

        old = stamp_read(s, txn, &k);
        if (old <= now && now - old < grain)
                return 0;
        v = (MDB_val){8, (uint32_t[2]){now, ~now}};
        return mdb_put(txn, s->dbs[STORE_DB_RECENCY], &k, &v, 0);
}

int store_stamp_del(struct af_store *s, MDB_txn *txn, enum af_table table, const void *key, uint32_t key_size) {
        struct stamp_key buf;
        MDB_val k = stamp_key(&buf, table, key, key_size);
        int r = mdb_del(txn, s->dbs[STORE_DB_RECENCY], &k, NULL);

        return r == MDB_NOTFOUND ? 0 : r;
}

static uint64_t next_random(struct af_store *s) {
        s->random ^= s->random << 13;
        s->random ^= s->random >> 7;
        s->random ^= s->random << 17;
        return s->random;
}

/* Where the bytes are is where evicting helps. */
static enum af_table pick_table(struct af_store *s) {
        uint64_t total = 0, at;

        for (unsigned i = 0; i < AF_N_TABLES; i++)
                total += i == AF_TABLE_ENV || s->stats.n_records[i] == 0 ? 0 : s->stats.bytes[i];
        at = total ? next_random(s) % total : 0;
        for (unsigned i = 0; i < AF_N_TABLES; i++) {
                uint64_t bytes = i == AF_TABLE_ENV || s->stats.n_records[i] == 0 ? 0 : s->stats.bytes[i];

                if (at < bytes)
                        return i;
                at -= bytes;
        }
        return AF_N_TABLES;
}

/* One victim: keys are digests, so that a random key's successor is a random record. */
static int evict_one(struct af_store *s, MDB_txn *txn) {
        enum af_table table = pick_table(s);
        uint8_t best[AF_STORE_MAX_KEY];
        uint32_t best_size = 0, best_stamp = 0;
        MDB_cursor *cursor;
        MDB_val k;
        int r;

        if (table == AF_N_TABLES)
                return MDB_NOTFOUND;
        r = mdb_cursor_open(txn, s->dbs[table], &cursor);
        if (r)
                return r;
        for (unsigned i = 0; i < N_SAMPLES; i++) {
                uint64_t draw[4] = {next_random(s), next_random(s), next_random(s), next_random(s)};
                struct stamp_key buf;
                uint32_t stamp;
                MDB_val sk;

                k = (MDB_val){sizeof(draw), draw};
                r = mdb_cursor_get(cursor, &k, NULL, MDB_SET_RANGE);
                if (r == MDB_NOTFOUND)
                        r = mdb_cursor_get(cursor, &k, NULL, MDB_FIRST);
                if (r || k.mv_size > AF_STORE_MAX_KEY)
                        break;
                sk = stamp_key(&buf, table, k.mv_data, (uint32_t)k.mv_size);
                stamp = stamp_read(s, txn, &sk);
                if (best_size == 0 || stamp < best_stamp) {
                        best_size = (uint32_t)k.mv_size;
                        best_stamp = stamp;
                        memcpy(best, k.mv_data, k.mv_size);
                }
        }
        mdb_cursor_close(cursor);
        if (best_size == 0)
                return r ? r : MDB_NOTFOUND;
        k = (MDB_val){best_size, best};
        r = mdb_del(txn, s->dbs[table], &k, NULL);
        return r ? r : store_stamp_del(s, txn, table, best, best_size);
}

int store_evict_in(struct af_store *s, MDB_txn *txn, unsigned n_max, uint64_t max_bytes, unsigned *ret_n) {
        unsigned n = 0;
        int r = 0;

        while (n < n_max && s->stats.used_bytes > max_bytes && r == 0) {
                r = evict_one(s, txn);
                if (r == 0) {
                        n++;
                        store_env_usage(s, txn);
                }
        }
        *ret_n = n;
        return r == MDB_NOTFOUND ? 0 : r;
}

int store_evict(struct af_store *s, unsigned n_max) {
        unsigned n = 0;
        MDB_txn *txn;
        int r;

        r = mdb_txn_begin(s->env, NULL, 0, &txn);
        if (r)
                return store_error(r);
        r = store_evict_in(s, txn, n_max, 0, &n);
        if (r) {
                mdb_txn_abort(txn);
                return store_error(r);
        }
        r = mdb_txn_commit(txn);
        if (r)
                return store_error(r);
        pthread_mutex_lock(&s->lock);
        s->stats.n_evicted += n;
        pthread_mutex_unlock(&s->lock);
        return (int)n;
}
