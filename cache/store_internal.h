/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the store. Two threads: the owner (af_store_* calls, reads) and the store thread (every write).
 *
 *   lock      guards queue, done list, touches, counters, cached usage
 *   env_lock  read: whoever has a transaction open; write: whoever changes the map size or reopens LMDB. Only the store thread takes
 *             it for writing, and holds no transaction then.
 */
#pragma once

#include <lmdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#include "cache/store.h"

#define STORE_N_DBS           (AF_N_TABLES + 1)
#define STORE_DB_RECENCY      AF_N_TABLES
#define STORE_MAX_QUEUE_BYTES (1ull << 30)
#define STORE_BATCH_OPS       256u
#define STORE_BATCH_BYTES     (64u << 20)
#define STORE_N_TOUCH         1024u
#define STORE_TOUCH_PERIOD_S  30
#define STORE_RECENCY_GRAIN_S 600u /* a stamp younger than this is left alone; */
#define STORE_PRESSED_GRAIN_S 1u   /* where much is in use: new records are not to push out what is asked for all the time */

enum store_op_kind { STORE_OP_PUT, STORE_OP_DROP_DAMAGED, STORE_OP_CLEAR, STORE_OP_DELETE, STORE_OP_TRIM };

struct store_op {
        struct store_op *next;
        enum store_op_kind kind;
        af_store_done_fn done; /* NULL: nobody is told */
        void *userdata;
        bool sync;     /* CLEAR, DROP_DAMAGED from verify: the caller waits, and frees the op */
        bool finished; /* sync: result is valid */
        int result;
        size_t bytes;     /* what it takes in the map at most */
        uint64_t trim_to; /* TRIM */
        uint32_t n_records;
        struct af_store_record records[]; /* keys and values point behind this array */
};

struct store_touch {
        uint8_t table, key_size; /* key_size 0: free slot */
        uint8_t key[AF_STORE_MAX_KEY];
};

/* What of the map was put into the page tables (store_map.c). Store thread's. */
struct store_ahead {
        uint8_t *at, *end; /* at NULL: not looked for yet */
        bool done;
};

struct af_store {
        int dir_fd, lock_fd, event_fd;
        bool read_only;
        char *dir;
        uint64_t max_bytes;

        pthread_rwlock_t env_lock;
        MDB_env *env;
        MDB_dbi dbs[STORE_N_DBS];
        MDB_txn *read_txn;      /* owner's, reset between uses; NULL: none yet */
        bool salvage;           /* files were set aside as damaged: what is whole in them is to be taken over */
        bool damaged_structure; /* owner saw broken LMDB pages: the store thread sets the files aside */

        pthread_mutex_t lock;
        pthread_cond_t wake, sync_done;
        pthread_t thread;
        bool thread_started, stop;
        struct store_op *queue_head, **queue_tail, *done_head, **done_tail;
        uint64_t queued_bytes;
        struct store_touch touches[STORE_N_TOUCH];
        uint32_t n_touches;
        struct af_store_stats stats;

        struct store_ahead ahead;
        uint64_t random;    /* store thread's: eviction samples */
        uint64_t n_dropped; /* store thread's: damaged records deleted in the transaction at hand */
        uint64_t n_trimmed; /* store thread's: evicted in the transaction at hand */
};

/* Thread-local: nonzero while this thread is inside LMDB, see af_store_mark_suspect. */
extern _Thread_local volatile sig_atomic_t af_store_in_lmdb;

/* --- store_dir.c --- */
/*
 * Opens and checks a state directory, creating it (0700) where it is missing, and locks it with the kernel's own locks: they end with the
 * process, nothing has to be cleaned up. *ret_read_only where it cannot be written (then *ret_lock_fd is -1). 0, -errno, AF_STORE_E_DIR,
 * AF_STORE_E_LOCKED; *ret_why (malloc, may stay NULL) in every case but 0.
 */
int store_dir_open(const char *dir, int *ret_fd, int *ret_lock_fd, bool *ret_read_only, char **ret_why) AF_WARN_UNUSED;
/*
 * Makes `lmdb/` under dir_fd ready to be opened: created with its schema record, or, where that names another version or a crash
 * inside LMDB was recorded, renamed to `lmdb.aside` (an older one is removed) and created anew. *ret_salvage (NULL: not asked) is set to
 * true in the latter case, else left.
 */
int store_dir_prepare(int dir_fd, const char *dir, bool read_only, bool *ret_salvage) AF_WARN_UNUSED;
/* Renames lmdb/ to lmdb.aside. */
int store_dir_set_aside(int dir_fd, const char *dir, const char *why) AF_WARN_UNUSED;

/* --- store.c --- */
/* Copies records and what they point to into one allocation, to be freed; NULL: no memory. */
struct store_op *store_op_new(enum store_op_kind kind, const struct af_store_record *records, uint32_t n);

/* --- store_env.c --- */
/*
 * Opens LMDB and the databases; caller holds env_lock for writing or is alone. Files whose pages do not hold (pages.h), or that LMDB
 * refuses, are set aside once, and s->salvage is set.
 */
int store_env_open(struct af_store *s, uint64_t map_bytes) AF_WARN_UNUSED;
void store_env_close(struct af_store *s);
/* Closes, sets aside when damaged, opens again, salvages. Store thread. */
int store_env_reopen(struct af_store *s, bool set_aside) AF_WARN_UNUSED;
/* Sets the map to at least need bytes at 80% use, within max_bytes. Store thread, no transaction open. True where it grew. */
bool store_env_grow(struct af_store *s, uint64_t need_bytes);
/* Refreshes s->stats' sizes from an open transaction. */
void store_env_usage(struct af_store *s, MDB_txn *txn);
/* -errno, AF_STORE_E_FULL for a full map or disk, from an LMDB code. */
int store_error(int mdb);
/* LMDB codes that mean the file's structure is broken. */
bool store_error_is_damage(int mdb);

/* AF_N_TABLES: none of that name. */
enum af_table store_table_of(const char *name, size_t n);

/* --- store_salvage.c --- */
/* Puts what is whole in lmdb.aside/ into the open store. Store thread, or while there is none; env_lock is not held. */
void store_salvage(struct af_store *s);

/* --- store_map.c --- */
/* The map is another one: from its beginning. */
void store_map_reset(struct af_store *s);
/* Maps a few MiB of what is in memory, on the store thread, with no transaction open. True: there is more. */
bool store_map_step(struct af_store *s);

/* --- store_write.c --- */
/* One put in a transaction of its own, with room made for it. Store thread, or while there is none. An MDB code. */
int store_apply(struct af_store *s, struct store_op *op) AF_WARN_UNUSED;
void *store_thread_main(void *userdata);

/* --- store_evict.c --- */
/* Deletes up to n_max records, the stalest of random samples, in one transaction. Returns how many, or -errno. */
int store_evict(struct af_store *s, unsigned n_max);
/* The same inside a transaction, no further than max_bytes of use. An MDB code; *ret_n how many. */
int store_evict_in(struct af_store *s, MDB_txn *txn, unsigned n_max, uint64_t max_bytes, unsigned *ret_n);
/* Minute of the last use; 0 where unknown. */
uint32_t store_stamp_read(struct af_store *s, MDB_txn *txn, enum af_table table, const void *key, uint32_t key_size);
/* Stamps one record as used now, unless its stamp is recent. Inside a write transaction. An MDB code. */
int store_stamp(struct af_store *s, MDB_txn *txn, enum af_table table, const void *key, uint32_t key_size);
int store_stamp_del(struct af_store *s, MDB_txn *txn, enum af_table table, const void *key, uint32_t key_size);
