/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store thread. Takes what is queued, up to a batch, and commits it as one transaction. Where the batch fails each put is tried
 * alone, so that one that does not fit costs the others nothing. Between batches it keeps use below 80% of the map: growing while
 * that is allowed, then evicting in small steps.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "cache/record.h"
#include "cache/store_internal.h"

#define EVICT_STEP 32u

_Thread_local volatile sig_atomic_t af_store_in_lmdb;

static int put_record(struct af_store *s, MDB_txn *txn, const struct af_store_record *r) {
        MDB_val k = {r->key_size, (void *)r->key}, v = {r->value_size + AF_RECORD_HEADER_BYTES, NULL};
        int q;

        q = mdb_put(txn, s->dbs[r->table], &k, &v, MDB_RESERVE);
        if (q)
                return q;
        af_record_header_write(r, v.mv_data);
        memcpy((uint8_t *)v.mv_data + AF_RECORD_HEADER_BYTES, r->value, r->value_size);
        return store_stamp(s, txn, r->table, r->key, r->key_size);
}

/* Deletes a record unless it is sound by now: a put may have replaced it since it was seen. */
static int drop_damaged(struct af_store *s, MDB_txn *txn, const struct af_store_record *r) {
        MDB_val k = {r->key_size, (void *)r->key}, v;
        const void *p;
        size_t n;
        int q;

        q = mdb_get(txn, s->dbs[r->table], &k, &v);
        if (q)
                return q == MDB_NOTFOUND ? 0 : q;
        if (af_record_verify(r->table, r->key, r->key_size, v.mv_data, v.mv_size, &p, &n))
                return 0;
        q = mdb_del(txn, s->dbs[r->table], &k, NULL);
        if (q)
                return q;
        s->n_dropped++;
        return store_stamp_del(s, txn, r->table, r->key, r->key_size);
}

static int delete_record(struct af_store *s, MDB_txn *txn, const struct af_store_record *r) {
        MDB_val k = {r->key_size, (void *)r->key};
        int q = mdb_del(txn, s->dbs[r->table], &k, NULL);

        if (q)
                return q == MDB_NOTFOUND ? 0 : q;
        s->n_trimmed++;
        return store_stamp_del(s, txn, r->table, r->key, r->key_size);
}

static int clear(struct af_store *s, MDB_txn *txn) {
        int r = 0;

        for (unsigned i = 0; i < STORE_N_DBS && r == 0; i++)
                r = mdb_drop(txn, s->dbs[i], 0);
        return r;
}

static int trim(struct af_store *s, MDB_txn *txn, uint64_t to) {
        unsigned n;
        int r;

        store_env_usage(s, txn);
        r = store_evict_in(s, txn, EVICT_STEP, to, &n);
        s->n_trimmed += n;
        return r;
}

static int apply_record(struct af_store *s, MDB_txn *txn, enum store_op_kind kind, const struct af_store_record *r) {
        if (kind == STORE_OP_PUT)
                return put_record(s, txn, r);
        return kind == STORE_OP_DELETE ? delete_record(s, txn, r) : drop_damaged(s, txn, r);
}

static int apply(struct af_store *s, MDB_txn *txn, const struct store_op *op) {
        int r = 0;

        if (op->kind == STORE_OP_CLEAR)
                return clear(s, txn);
        if (op->kind == STORE_OP_TRIM)
                return trim(s, txn, op->trim_to);
        for (uint32_t i = 0; i < op->n_records && r == 0; i++)
                r = apply_record(s, txn, op->kind, &op->records[i]);
        return r;
}

/* An MDB code. All or nothing. */
static int run_transaction(struct af_store *s, struct store_op *ops, const struct store_touch *touches, uint32_t n_touches) {
        MDB_txn *txn;
        int r;

        if (!s->env)
                return EIO;
        r = mdb_txn_begin(s->env, NULL, 0, &txn);
        if (r)
                return r;
        s->n_dropped = s->n_trimmed = 0;
        for (struct store_op *op = ops; op && r == 0; op = op->next)
                r = apply(s, txn, op);
        for (uint32_t i = 0; i < n_touches && r == 0; i++) {
                MDB_val k = {touches[i].key_size, (void *)touches[i].key}, v;

                if (touches[i].key_size && mdb_get(txn, s->dbs[touches[i].table], &k, &v) == 0)
                        r = store_stamp(s, txn, touches[i].table, touches[i].key, touches[i].key_size);
        }
        if (r) {
                mdb_txn_abort(txn);
                return r;
        }
        store_env_usage(s, txn);
        r = mdb_txn_commit(txn);
        pthread_mutex_lock(&s->lock);
        s->stats.n_damaged += r == 0 ? s->n_dropped : 0;
        s->stats.n_evicted += r == 0 ? s->n_trimmed : 0;
        pthread_mutex_unlock(&s->lock);
        return r;
}

/* Room before a put of need bytes: grow, or evict down to 80%. */
static void make_room(struct af_store *s, uint64_t need) {
        store_env_grow(s, s->stats.used_bytes + need);
        for (unsigned i = 0; i < 4096 && s->env && s->stats.used_bytes + need > s->stats.map_bytes / 5 * 4; i++)
                if (store_evict(s, EVICT_STEP) <= 0)
                        break;
}

static int run_recovering(struct af_store *s, struct store_op *ops, const struct store_touch *touches, uint32_t n_touches, uint64_t need) {
        int r = 0;

        for (unsigned attempt = 0; attempt < 4; attempt++) {
                if (!s->env && store_env_reopen(s, false) != 0)
                        return EIO;
                make_room(s, need);
                r = run_transaction(s, ops, touches, n_touches);
                if (r == 0)
                        return 0;
                if (r == MDB_MAP_FULL) {
                        /* Freed pages come back a few commits later. */
                        int dead;

                        mdb_reader_check(s->env, &dead);
                        if (!store_env_grow(s, s->stats.map_bytes + need))
                                (void)!store_evict(s, EVICT_STEP);
                } else if (r == MDB_PANIC) {
                        (void)!store_env_reopen(s, false);
                } else if (store_error_is_damage(r)) {
                        if (store_env_reopen(s, true) != 0)
                                return r;
                } else {
                        return r;
                }
        }
        return r;
}

int store_apply(struct af_store *s, struct store_op *op) {
        af_store_in_lmdb++;
        int r = run_recovering(s, op, NULL, 0, op->bytes);
        af_store_in_lmdb--;
        return r;
}

static void finish(struct af_store *s, struct store_op *op, int r) {
        pthread_mutex_lock(&s->lock);
        op->next = NULL;
        op->result = r;
        op->finished = true;
        s->queued_bytes -= op->bytes;
        if (op->kind == STORE_OP_PUT) {
                if (r == 0)
                        s->stats.n_puts++;
                else
                        s->stats.n_put_failed++;
        }
        if (op->sync) {
                pthread_cond_broadcast(&s->sync_done);
        } else if (op->done) {
                *s->done_tail = op;
                s->done_tail = &op->next;
        } else {
                free(op);
        }
        pthread_mutex_unlock(&s->lock);
        (void)!write(s->event_fd, &(uint64_t){1}, sizeof(uint64_t));
}

static void run_batch(struct af_store *s, struct store_op *ops, const struct store_touch *touches, uint32_t n_touches) {
        uint64_t need = 0;
        bool single = ops && !ops->next;
        int r;

        for (struct store_op *op = ops; op; op = op->next)
                need += op->bytes;
        af_store_in_lmdb++;
        r = run_recovering(s, ops, touches, n_touches, need);
        for (struct store_op *op = ops, *next; op; op = next) {
                int q = r;

                next = op->next;
                op->next = NULL;
                if (r && !single)
                        q = run_recovering(s, op, NULL, 0, op->bytes);
                finish(s, op, store_error(q));
        }
        af_store_in_lmdb--;
}

static struct store_op *take_batch(struct af_store *s) {
        struct store_op *ops = s->queue_head, *op = ops;
        uint64_t bytes = 0;
        unsigned n = 0;

        if (!ops)
                return NULL;
        for (; op; op = op->next) {
                bytes += op->bytes;
                if (++n == STORE_BATCH_OPS || bytes >= STORE_BATCH_BYTES)
                        break;
        }
        if (op && op->next) {
                s->queue_head = op->next;
                op->next = NULL;
        } else {
                s->queue_head = NULL;
                s->queue_tail = &s->queue_head;
        }
        return ops;
}

static void wait_for_work(struct af_store *s) {
        struct timespec until;

        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += STORE_TOUCH_PERIOD_S;
        while (!s->stop && !s->queue_head && !s->damaged_structure)
                if (pthread_cond_timedwait(&s->wake, &s->lock, &until) == ETIMEDOUT)
                        break;
}

/* Under the lock, which it drops: until there is work, or nothing more to map. */
static void map_ahead(struct af_store *s) {
        bool more = !s->ahead.done;

        while (more && !s->stop && !s->queue_head && !s->damaged_structure) {
                pthread_mutex_unlock(&s->lock);
                more = store_map_step(s);
                pthread_mutex_lock(&s->lock);
        }
}

void *store_thread_main(void *userdata) {
        struct af_store *s = userdata;
        static const struct store_touch none;
        struct store_touch *touches = calloc(STORE_N_TOUCH, sizeof(*touches));

        pthread_mutex_lock(&s->lock);
        for (;;) {
                uint32_t n_touches = 0;
                struct store_op *ops;
                bool damaged;

                map_ahead(s);
                wait_for_work(s);
                ops = take_batch(s);
                if (!ops && s->stop)
                        break;
                damaged = s->damaged_structure;
                if (touches && s->n_touches) {
                        memcpy(touches, s->touches, sizeof(s->touches));
                        memset(s->touches, 0, sizeof(s->touches));
                        s->n_touches = 0;
                        n_touches = STORE_N_TOUCH;
                }
                pthread_mutex_unlock(&s->lock);
                if (damaged)
                        (void)!store_env_reopen(s, true);
                if (ops || n_touches)
                        run_batch(s, ops, n_touches ? touches : &none, n_touches);
                pthread_mutex_lock(&s->lock);
        }
        pthread_mutex_unlock(&s->lock);
        free(touches);
        return NULL;
}
