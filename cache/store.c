/* SPDX-License-Identifier: Apache-2.0 */
/* The owner's side of the store: open and close, reads, the queue to the store thread. */
#include "cache/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "cache/record.h"
#include "cache/store_internal.h"

#define DEFAULT_MAP (1ull << 30)
#define DEFAULT_MAX (16ull << 30)
#define MIN_MAP     (1ull << 20)

static void store_free(struct af_store *s) {
        if (!s)
                return;
        store_env_close(s);
        if (s->event_fd >= 0)
                close(s->event_fd);
        if (s->dir_fd >= 0)
                close(s->dir_fd); /* gives the lock up */
        if (s->lock_fd >= 0)
                close(s->lock_fd);
        pthread_rwlock_destroy(&s->env_lock);
        pthread_mutex_destroy(&s->lock);
        pthread_cond_destroy(&s->wake);
        pthread_cond_destroy(&s->sync_done);
        free(s->dir);
        free(s);
}

static struct af_store *store_alloc(const struct af_store_config *config) {
        struct af_store *s = calloc(1, sizeof(*s));
        pthread_condattr_t attr;

        if (!s)
                return NULL;
        s->dir_fd = s->lock_fd = s->event_fd = -1;
        s->queue_tail = &s->queue_head;
        s->done_tail = &s->done_head;
        pthread_rwlock_init(&s->env_lock, NULL);
        pthread_mutex_init(&s->lock, NULL);
        pthread_condattr_init(&attr);
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        pthread_cond_init(&s->wake, &attr);
        pthread_condattr_destroy(&attr);
        pthread_cond_init(&s->sync_done, NULL);
        if (getrandom(&s->random, sizeof(s->random), 0) != sizeof(s->random) || !s->random)
                s->random = 0x9e3779b97f4a7c15ull;
        s->max_bytes = AF_MAX(config->max_bytes ? config->max_bytes : DEFAULT_MAX, MIN_MAP);
        s->dir = strdup(config->dir);
        s->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (!s->dir || s->event_fd < 0) {
                store_free(s);
                return NULL;
        }
        return s;
}

int af_store_open(const struct af_store_config *config, struct af_store **ret_store, char **ret_why) {
        uint64_t map = AF_MAX(config->map_bytes ? config->map_bytes : DEFAULT_MAP, MIN_MAP);
        struct af_store *s;
        int r;

        *ret_why = NULL;
        s = store_alloc(config);
        if (!s)
                return -ENOMEM;
        r = store_dir_open(config->dir, &s->dir_fd, &s->lock_fd, &s->read_only, ret_why);
        if (r)
                goto fail;
        r = store_dir_prepare(s->dir_fd, s->dir, s->read_only, &s->salvage);
        if (r == 0)
                r = store_env_open(s, AF_MIN(map, s->max_bytes));
        if (r)
                goto fail;
        if (s->salvage)
                store_salvage(s);
        if (!s->read_only) {
                r = -pthread_create(&s->thread, NULL, store_thread_main, s);
                if (r)
                        goto fail;
                s->thread_started = true;
        }
        *ret_store = s;
        return 0;
fail:
        if (!*ret_why &&
            asprintf(ret_why, "state directory %s: cannot open the store: %s", config->dir, r < 0 ? strerror(-r) : "disk full") < 0)
                *ret_why = NULL;
        store_free(s);
        return r;
}

void af_store_close(struct af_store *s) {
        if (!s)
                return;
        if (s->thread_started) {
                pthread_mutex_lock(&s->lock);
                s->stop = true;
                pthread_cond_signal(&s->wake);
                pthread_mutex_unlock(&s->lock);
                pthread_join(s->thread, NULL);
        }
        for (struct store_op *op = s->done_head, *next; op; op = next) {
                next = op->next;
                op->done(op->userdata, -ECANCELED);
                free(op);
        }
        store_free(s);
}

int af_store_fd(const struct af_store *s) {
        return s->event_fd;
}

bool af_store_read_only(const struct af_store *s) {
        return s->read_only;
}

void af_store_dispatch(struct af_store *s) {
        struct store_op *ops;
        uint64_t n;

        (void)!read(s->event_fd, &n, sizeof(n));
        pthread_mutex_lock(&s->lock);
        ops = s->done_head;
        s->done_head = NULL;
        s->done_tail = &s->done_head;
        pthread_mutex_unlock(&s->lock);
        for (struct store_op *op = ops, *next; op; op = next) {
                next = op->next;
                op->done(op->userdata, op->result);
                free(op);
        }
}

struct store_op *store_op_new(enum store_op_kind kind, const struct af_store_record *records, uint32_t n) {
        size_t size = sizeof(struct store_op) + n * sizeof(struct af_store_record);
        struct store_op *op;
        uint8_t *p;

        for (uint32_t i = 0; i < n; i++)
                size += records[i].key_size + (kind == STORE_OP_PUT ? records[i].value_size : 0);
        op = calloc(1, size);
        if (!op)
                return NULL;
        op->kind = kind;
        op->n_records = n;
        p = (uint8_t *)&op->records[n];
        for (uint32_t i = 0; i < n; i++) {
                struct af_store_record *r = &op->records[i];

                *r = records[i];
                r->key = memcpy(p, r->key, r->key_size);
                p += r->key_size;
                /* Whole pages for large values, and the path of pages copied on write. */
                op->bytes += 2 * 4096;
                if (kind != STORE_OP_PUT)
                        continue;
                r->value = r->value_size ? memcpy(p, r->value, r->value_size) : p;
                p += r->value_size;
                op->bytes += AF_ALIGN_UP(r->value_size + AF_RECORD_HEADER_BYTES + 16, 4096);
        }
        return op;
}

static void enqueue(struct af_store *s, struct store_op *op) {
        pthread_mutex_lock(&s->lock);
        *s->queue_tail = op;
        s->queue_tail = &op->next;
        s->queued_bytes += op->bytes;
        pthread_cond_signal(&s->wake);
        pthread_mutex_unlock(&s->lock);
}

static int run_sync(struct af_store *s, struct store_op *op) {
        int r;

        op->sync = true;
        enqueue(s, op);
        pthread_mutex_lock(&s->lock);
        while (!op->finished)
                pthread_cond_wait(&s->sync_done, &s->lock);
        r = op->result;
        pthread_mutex_unlock(&s->lock);
        free(op);
        return r;
}

static bool record_valid(const struct af_store_record *r) {
        return (unsigned)r->table < AF_N_TABLES && r->key_size > 0 && r->key_size <= AF_STORE_MAX_KEY;
}

/* A read transaction over the latest commit. Holds env_lock until read_end. An MDB code. */
static int read_begin(struct af_store *s) {
        int r;

        pthread_rwlock_rdlock(&s->env_lock);
        if (!s->env) {
                pthread_rwlock_unlock(&s->env_lock);
                return EIO;
        }
        af_store_in_lmdb++;
        r = s->read_txn ? mdb_txn_renew(s->read_txn) : mdb_txn_begin(s->env, NULL, MDB_RDONLY, &s->read_txn);
        if (r) {
                if (s->read_txn)
                        mdb_txn_abort(s->read_txn);
                s->read_txn = NULL;
                af_store_in_lmdb--;
                pthread_rwlock_unlock(&s->env_lock);
        }
        return r;
}

static void read_end(struct af_store *s) {
        mdb_txn_reset(s->read_txn);
        af_store_in_lmdb--;
        pthread_rwlock_unlock(&s->env_lock);
}

/* The same for any other thread: a transaction of its own. */
static int visit_begin(struct af_store *s, MDB_txn **ret_txn) {
        int r;

        pthread_rwlock_rdlock(&s->env_lock);
        af_store_in_lmdb++;
        r = s->env ? mdb_txn_begin(s->env, NULL, MDB_RDONLY, ret_txn) : EIO;
        if (r) {
                af_store_in_lmdb--;
                pthread_rwlock_unlock(&s->env_lock);
        }
        return r;
}

static void visit_end(struct af_store *s, MDB_txn *txn) {
        mdb_txn_abort(txn);
        af_store_in_lmdb--;
        pthread_rwlock_unlock(&s->env_lock);
}

static void note_damage(struct af_store *s, const struct af_store_record *r, bool structure) {
        struct store_op *op = NULL;

        if (!s->read_only && !structure)
                op = store_op_new(STORE_OP_DROP_DAMAGED, r, 1);
        /* Counted once it is deleted, so that two reads of one record count once. */
        pthread_mutex_lock(&s->lock);
        s->stats.n_damaged += !op;
        if (structure && !s->read_only) {
                s->damaged_structure = true;
                pthread_cond_signal(&s->wake);
        }
        pthread_mutex_unlock(&s->lock);
        if (op)
                enqueue(s, op);
}

/* A small record's lines all at once: one that was not read for long comes from memory, and each line on its own takes as long as all. */
static void ask_ahead(const void *p, size_t n) {
        for (size_t at = 0; at < AF_MIN(n, (size_t)2048); at += 64)
                __builtin_prefetch((const char *)p + at);
}

static int get_one(struct af_store *s, MDB_txn *txn, const struct af_store_record *key, struct af_store_value *ret) {
        MDB_val k = {key->key_size, (void *)key->key}, v;
        const void *p;
        size_t n;
        int r;

        r = mdb_get(txn, s->dbs[key->table], &k, &v);
        if (r == MDB_NOTFOUND)
                return 0;
        if (r) {
                if (!store_error_is_damage(r))
                        return store_error(r);
                note_damage(s, key, true);
                return 0;
        }
        ask_ahead(v.mv_data, v.mv_size);
        if (!af_record_verify(key->table, key->key, key->key_size, v.mv_data, v.mv_size, &p, &n)) {
                note_damage(s, key, false);
                return 0;
        }
        /* 128: see record.h. The zero byte behind it is not counted. */
        ret->data = aligned_alloc(128, AF_ALIGN_UP(n + 1, 128));
        if (!ret->data)
                return -ENOMEM;
        memcpy(ret->data, p, n);
        ((uint8_t *)ret->data)[n] = 0;
        ret->size = n;
        return 0;
}

static int get_all(struct af_store *s, MDB_txn *txn, const struct af_store_record *keys, uint32_t n, struct af_store_value *ret_values) {
        int r = 0;

        for (uint32_t i = 0; i < n && r == 0; i++)
                r = get_one(s, txn, &keys[i], &ret_values[i]);
        for (uint32_t i = 0; r && i < n; i++) {
                free(ret_values[i].data);
                ret_values[i] = (struct af_store_value){0};
        }
        return r;
}

int af_store_get(struct af_store *s, const struct af_store_record *keys, uint32_t n, struct af_store_value *ret_values) {
        int r;

        memset(ret_values, 0, n * sizeof(*ret_values));
        for (uint32_t i = 0; i < n; i++)
                if (!record_valid(&keys[i]))
                        return -EINVAL;
        r = read_begin(s);
        if (r)
                return store_error_is_damage(r) || r == EIO ? 0 : store_error(r);
        r = get_all(s, s->read_txn, keys, n, ret_values);
        read_end(s);
        return r;
}

int af_store_read(struct af_store *s, const struct af_store_record *keys, uint32_t n, struct af_store_value *ret_values) {
        MDB_txn *txn;
        int r;

        memset(ret_values, 0, n * sizeof(*ret_values));
        for (uint32_t i = 0; i < n; i++)
                if (!record_valid(&keys[i]))
                        return -EINVAL;
        r = visit_begin(s, &txn);
        if (r)
                return store_error_is_damage(r) || r == EIO ? 0 : store_error(r);
        r = get_all(s, txn, keys, n, ret_values);
        visit_end(s, txn);
        return r;
}

int af_store_put(struct af_store *s, const struct af_store_record *records, uint32_t n, af_store_done_fn done, void *userdata) {
        struct store_op *op;
        bool full;

        for (uint32_t i = 0; i < n; i++)
                if (!record_valid(&records[i]))
                        return -EINVAL;
        if (s->read_only)
                return -EROFS;
        op = store_op_new(STORE_OP_PUT, records, n);
        if (!op)
                return -ENOMEM;
        op->done = done;
        op->userdata = userdata;
        pthread_mutex_lock(&s->lock);
        full = op->bytes > s->max_bytes / 2 || s->queued_bytes + op->bytes > STORE_MAX_QUEUE_BYTES;
        if (full)
                s->stats.n_put_failed++;
        pthread_mutex_unlock(&s->lock);
        if (full) {
                free(op);
                return AF_STORE_E_FULL;
        }
        enqueue(s, op);
        return 0;
}

void af_store_touch(struct af_store *s, enum af_table table, const void *key, uint32_t key_size) {
        struct af_check hash;
        uint32_t at;

        if (s->read_only || (unsigned)table >= AF_N_TABLES || key_size == 0 || key_size > AF_STORE_MAX_KEY)
                return;
        af_check_bytes(key, key_size, &hash);
        memcpy(&at, hash.bytes, sizeof(at));
        pthread_mutex_lock(&s->lock);
        for (unsigned i = 0; i < 8; i++) {
                struct store_touch *t = &s->touches[(at + i) % STORE_N_TOUCH];

                if (t->key_size == key_size && t->table == table && memcmp(t->key, key, key_size) == 0)
                        break;
                if (t->key_size)
                        continue; /* all eight taken: dropped, recency is coarse */
                t->table = (uint8_t)table;
                t->key_size = (uint8_t)key_size;
                memcpy(t->key, key, key_size);
                s->n_touches++;
                break;
        }
        pthread_mutex_unlock(&s->lock);
}

int af_store_lease(struct af_store *s, const void *key, uint32_t key_size, uint64_t ttl_ms) {
        return 0;
}

int af_store_clear(struct af_store *s) {
        struct store_op *op;

        if (s->read_only)
                return -EROFS;
        op = store_op_new(STORE_OP_CLEAR, NULL, 0);
        return op ? run_sync(s, op) : -ENOMEM;
}

/* Where the cursor stands, or behind it. An MDB code. */
static int seek(struct af_store_walk *w, MDB_cursor *cursor, MDB_val *k, MDB_val *v) {
        int r;

        if (w->key_size == 0)
                return mdb_cursor_get(cursor, k, v, MDB_FIRST);
        *k = (MDB_val){w->key_size, w->key};
        r = mdb_cursor_get(cursor, k, v, MDB_SET_RANGE);
        if (r == 0 && k->mv_size == w->key_size && memcmp(k->mv_data, w->key, w->key_size) == 0)
                r = mdb_cursor_get(cursor, k, v, MDB_NEXT);
        return r;
}

/* Behind the place that the walk has come to, and of a size that a key has. Else the page is damaged, and the walk might go round for ever.
 */
static bool ascends(const struct af_store_walk *w, const MDB_val *k) {
        int c;

        if (k->mv_size == 0 || k->mv_size > AF_STORE_MAX_KEY)
                return false;
        c = memcmp(k->mv_data, w->key, AF_MIN(k->mv_size, w->key_size));
        return c > 0 || (c == 0 && k->mv_size > w->key_size);
}

/* One record: checked, shown, and remembered as the place to go on from. False: the visitor has enough. */
static bool visit(struct af_store *s, MDB_txn *txn, struct af_store_walk *w, const MDB_val *k, const MDB_val *v) {
        struct af_store_record rec = {.table = w->table, .key = k->mv_data, .key_size = (uint32_t)k->mv_size};
        bool go_on = true;

        if (af_record_verify(w->table, rec.key, rec.key_size, v->mv_data, v->mv_size, &rec.value, &rec.value_size)) {
                if (w->visit)
                        go_on = w->visit(w->userdata, &rec, store_stamp_read(s, txn, w->table, rec.key, rec.key_size));
        } else {
                note_damage(s, &rec, false);
                w->n_damaged++;
        }
        w->n_records++;
        memcpy(w->key, rec.key, rec.key_size);
        w->key_size = rec.key_size;
        return go_on;
}

int af_store_walk(struct af_store *s, struct af_store_walk *w, uint32_t max_records, size_t max_bytes) {
        MDB_cursor *cursor;
        MDB_txn *txn;
        MDB_val k, v;
        size_t bytes = 0;
        int r;

        r = visit_begin(s, &txn);
        if (r)
                return store_error(r);
        r = mdb_cursor_open(txn, s->dbs[w->table], &cursor);
        if (r == 0) {
                r = seek(w, cursor, &k, &v);
                for (uint32_t i = 1; r == 0; i++) {
                        if (!ascends(w, &k)) {
                                r = MDB_CORRUPTED;
                                break;
                        }
                        bytes += v.mv_size;
                        if (!visit(s, txn, w, &k, &v) || i == max_records || bytes >= max_bytes)
                                break;
                        r = mdb_cursor_get(cursor, &k, &v, MDB_NEXT);
                }
                mdb_cursor_close(cursor);
        }
        visit_end(s, txn);
        if (store_error_is_damage(r))
                note_damage(s, &(struct af_store_record){0}, true);
        return r == MDB_NOTFOUND || store_error_is_damage(r) ? AF_STORE_E_MISS : store_error(r);
}

int af_store_delete(struct af_store *s, const struct af_store_record *records, uint32_t n) {
        struct store_op *op;

        for (uint32_t i = 0; i < n; i++)
                if (!record_valid(&records[i]))
                        return -EINVAL;
        if (s->read_only)
                return -EROFS;
        op = store_op_new(STORE_OP_DELETE, records, n);
        return op ? run_sync(s, op) : -ENOMEM;
}

int af_store_trim(struct af_store *s, uint64_t max_bytes) {
        struct af_store_stats before, after;
        struct store_op *op;
        int r;

        if (s->read_only)
                return -EROFS;
        op = store_op_new(STORE_OP_TRIM, NULL, 0);
        if (!op)
                return -ENOMEM;
        op->trim_to = max_bytes;
        af_store_stats(s, &before);
        r = run_sync(s, op);
        af_store_stats(s, &after);
        if (r == 0 && (after.used_bytes <= max_bytes || after.n_evicted == before.n_evicted))
                return AF_STORE_E_MISS;
        return r;
}

int af_store_verify(struct af_store *s, struct af_store_stats *ret_stats) {
        struct store_op *barrier;
        int r = 0;

        for (unsigned i = 0; i < AF_N_TABLES && r == 0; i++) {
                struct af_store_walk w = {.table = i};

                while ((r = af_store_walk(s, &w, 256, 16u << 20)) == 0)
                        ;
                r = r == AF_STORE_E_MISS ? 0 : r;
        }
        if (r)
                return r;
        if (!s->read_only) {
                barrier = store_op_new(STORE_OP_DROP_DAMAGED, NULL, 0);
                r = barrier ? run_sync(s, barrier) : -ENOMEM;
        }
        af_store_stats(s, ret_stats);
        return r;
}

void af_store_stats(struct af_store *s, struct af_store_stats *ret_stats) {
        pthread_mutex_lock(&s->lock);
        *ret_stats = s->stats;
        pthread_mutex_unlock(&s->lock);
}

void af_store_mark_suspect(const struct af_store *s) {
        int fd;

        if (!s || s->read_only || !af_store_in_lmdb)
                return;
        fd = openat(s->dir_fd, "suspect", O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd >= 0)
                close(fd);
}
