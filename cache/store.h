/* SPDX-License-Identifier: Apache-2.0 */
/*
 * af_store: keys to bytes. One interface for the local LMDB store and, later, a remote tier: every operation is asynchronous and its
 * callback runs on the thread that calls af_store_dispatch. The store knows no graph. One process opens a store directory at a time.
 */
#pragma once

#include "base/buf.h"
#include "base/digest.h"

enum af_table { AF_TABLE_FRAGMENTS, AF_TABLE_BUNDLES, AF_TABLE_SOURCES, AF_TABLE_KERNELS, AF_TABLE_TEXTS, AF_TABLE_ENV, AF_N_TABLES };
#define AF_STORE_MAX_KEY 64

struct af_store;
struct af_store_config {
        const char *dir;    /* 0700, ours, no symlink, local file system: checked */
        uint64_t map_bytes; /* 0: 1 GiB to start with; grows */
        uint64_t max_bytes; /* 0: 16 GiB; eviction keeps below 80% of the map */
};
enum {
        AF_STORE_E_DIR = 1 /* wrong owner, mode, symlink or network file system; *ret_why */,
        AF_STORE_E_LOCKED = 2 /* another process has it */,
        AF_STORE_E_MISS = 3,
        AF_STORE_E_FULL = 4 /* disk or map full: nothing was stored */
};

int af_store_open(const struct af_store_config *config, struct af_store **ret_store, char **ret_why) AF_WARN_UNUSED;
/* Finishes queued puts, joins the store thread, closes. Callbacks not yet dispatched are called with -ECANCELED. */
void af_store_close(struct af_store *s);
/* Readable (eventfd) when af_store_dispatch has something to do. */
int af_store_fd(const struct af_store *s);
void af_store_dispatch(struct af_store *s);

struct af_store_record {
        enum af_table table;
        const void *key;
        uint32_t key_size;
        const void *value;
        size_t value_size;
};
/*
 * Gets several records in one go: values[i] is a malloc'd copy (64-byte aligned data; free with free) or NULL where missing or damaged (a
 * damaged record is deleted, counted and reported as a miss). Synchronous: LMDB reads take microseconds; called on the owner's thread only.
 */
struct af_store_value {
        void *data;
        size_t size;
};
int af_store_get(struct af_store *s, const struct af_store_record *keys, uint32_t n, struct af_store_value *ret_values) AF_WARN_UNUSED;
/* All records in one durable transaction by the store thread. Copies everything before it returns. done(userdata, 0 | -errno |
 * AF_STORE_E_FULL) from af_store_dispatch. */
typedef void (*af_store_done_fn)(void *userdata, int r);
int af_store_put(struct af_store *s, const struct af_store_record *records, uint32_t n, af_store_done_fn done,
                 void *userdata) AF_WARN_UNUSED;
/* The directory cannot be written (0555, read-only mount): reads work, puts give -EROFS. */
bool af_store_read_only(const struct af_store *s);
/* Recency, coarse and batched. */
void af_store_touch(struct af_store *s, enum af_table table, const void *key, uint32_t key_size);
/* Lease on a key across a cluster: the local store always grants. */
int af_store_lease(struct af_store *s, const void *key, uint32_t key_size, uint64_t ttl_ms) AF_WARN_UNUSED;
/* Deletes every record. Synchronous. */
int af_store_clear(struct af_store *s) AF_WARN_UNUSED;
/* The same as af_store_get from any thread, with a transaction of its own. */
int af_store_read(struct af_store *s, const struct af_store_record *keys, uint32_t n, struct af_store_value *ret_values) AF_WARN_UNUSED;
/*
 * A walk over one table in order of keys, in slices: each af_store_walk opens a transaction, shows up to max_records sound records (or
 * about max_bytes) and closes it, so that a long walk pins no pages. Any thread. Records put or deleted meanwhile are seen or not. visit
 * borrows the record, gets the minute of its last use (0: unknown) and returns false to end the slice behind it. Damaged records are
 * counted and deleted. 0 where there may be more, AF_STORE_E_MISS at the end, -errno.
 */
struct af_store_walk {
        enum af_table table;
        uint8_t key[AF_STORE_MAX_KEY]; /* all up to here is done; key_size 0: from the start */
        uint32_t key_size;
        uint64_t n_records, n_damaged;
        bool (*visit)(void *userdata, const struct af_store_record *record, uint32_t used_minute);
        void *userdata;
};
int af_store_walk(struct af_store *s, struct af_store_walk *w, uint32_t max_records, size_t max_bytes) AF_WARN_UNUSED;
/* Deletes records (values are not looked at; those that are not there count for nothing) in one transaction. Waits for the store thread. */
int af_store_delete(struct af_store *s, const struct af_store_record *records, uint32_t n) AF_WARN_UNUSED;
/* Evicts some records, in one small transaction, while more than max_bytes are used. Waits for the store thread. 0 where there may be more
 * to do, AF_STORE_E_MISS where max_bytes hold or nothing is left to evict, -errno. */
int af_store_trim(struct af_store *s, uint64_t max_bytes) AF_WARN_UNUSED;
/* Walks every record and verifies it; damaged ones are deleted. */
struct af_store_stats {
        uint64_t n_records[AF_N_TABLES], bytes[AF_N_TABLES];
        uint64_t map_bytes, used_bytes;
        uint64_t n_damaged, n_evicted, n_puts, n_put_failed;
};
int af_store_verify(struct af_store *s, struct af_store_stats *ret_stats) AF_WARN_UNUSED;
void af_store_stats(struct af_store *s, struct af_store_stats *ret_stats);
/*
 * For a handler of SIGSEGV, SIGBUS and SIGABRT (async-signal-safe): where the dying thread is inside LMDB, leaves a mark that makes the
 * next af_store_open set the files aside, so that a damaged file cannot kill one process after another. s may be NULL.
 */
void af_store_mark_suspect(const struct af_store *s);
