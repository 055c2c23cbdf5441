/* SPDX-License-Identifier: Apache-2.0 */
/* LMDB environment: open, map size, usage, what its error codes mean. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "cache/pages.h"
#include "cache/store_internal.h"

static const char *const db_names[STORE_N_DBS] = {
        [AF_TABLE_FRAGMENTS] = "fragments", [AF_TABLE_BUNDLES] = "bundles", [AF_TABLE_SOURCES] = "sources", [AF_TABLE_KERNELS] = "kernels",
        [AF_TABLE_TEXTS] = "texts",         [AF_TABLE_ENV] = "env",         [STORE_DB_RECENCY] = "recency",
};

enum af_table store_table_of(const char *name, size_t n) {
        for (unsigned i = 0; i < AF_N_TABLES; i++)
                if (strlen(db_names[i]) == n && memcmp(db_names[i], name, n) == 0)
                        return i;
        return AF_N_TABLES;
}

bool store_error_is_damage(int mdb) {
        return mdb == MDB_CORRUPTED || mdb == MDB_PAGE_NOTFOUND || mdb == MDB_INVALID || mdb == MDB_VERSION_MISMATCH ||
               mdb == MDB_CURSOR_FULL || mdb == MDB_INCOMPATIBLE || mdb == MDB_BAD_TXN || mdb == MDB_PAGE_FULL;
}

int store_error(int mdb) {
        if (mdb == MDB_MAP_FULL || mdb == MDB_TXN_FULL || mdb == ENOSPC || mdb == EIO || mdb == EDQUOT || mdb == EFBIG)
                return AF_STORE_E_FULL;
        if (mdb > 0)
                return -mdb;
        return mdb == 0 ? 0 : -EIO;
}

static int open_databases(struct af_store *s) {
        MDB_txn *txn;
        int r;

        r = mdb_txn_begin(s->env, NULL, s->read_only ? MDB_RDONLY : 0, &txn);
        if (r)
                return r;
        for (unsigned i = 0; i < STORE_N_DBS && r == 0; i++)
                r = mdb_dbi_open(txn, db_names[i], s->read_only ? 0 : MDB_CREATE, &s->dbs[i]);
        if (r) {
                mdb_txn_abort(txn);
                return r;
        }
        store_env_usage(s, txn);
        return mdb_txn_commit(txn);
}

/*
 * Reading behind the end of a truncated file would be SIGBUS. Made long again it reads as zero pages, which LMDB reports as corrupted
 * and record checks as damage. (A sound file may be short by pages that its last transaction took and gave back.)
 */
static int extend_file(struct af_store *s, const char *path) {
        MDB_envinfo info;
        MDB_stat stat;
        struct stat st;
        off_t need;
        char *data = NULL;
        int r;

        if (mdb_env_info(s->env, &info) || mdb_env_stat(s->env, &stat))
                return MDB_INVALID;
        need = (off_t)(info.me_last_pgno + 1) * stat.ms_psize;
        if (asprintf(&data, "%s/data.mdb", path) < 0)
                return ENOMEM;
        r = lstat(data, &st) < 0 ? errno : 0;
        if (r == 0 && st.st_size < need)
                r = s->read_only ? MDB_CORRUPTED : truncate(data, need) < 0 ? errno : 0;
        free(data);
        return r;
}

/* Before LMDB sees it. An MDB code. */
static int check_pages(const struct af_store *s) {
        AF_CLEANUP(af_closep) int fd = openat(s->dir_fd, "lmdb/data.mdb", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        int r = fd < 0 ? errno : 0;

        if (r)
                return r == ENOENT ? 0 : r;
        r = af_pages_walk(fd, NULL, NULL);
        return r < 0 ? -r : r > 0 ? MDB_CORRUPTED : 0;
}

static int env_open_once(struct af_store *s, uint64_t map_bytes) {
        char *path = NULL;
        mdb_filehandle_t fd;
        int r;

        if (asprintf(&path, "%s/lmdb", s->dir) < 0)
                return ENOMEM;
        r = mdb_env_create(&s->env);
        if (r) {
                free(path);
                return r;
        }
        mdb_env_set_maxdbs(s->env, STORE_N_DBS);
        r = mdb_env_set_mapsize(s->env, map_bytes);
        if (r == 0)
                r = mdb_env_open(s->env, path, MDB_NOTLS | (s->read_only ? MDB_RDONLY | MDB_NOLOCK : 0), 0600);
        if (r == 0 && mdb_env_get_fd(s->env, &fd) == 0)
                (void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* LMDB forgets this one */
        if (r == 0)
                r = extend_file(s, path);
        if (r == 0 && !s->read_only) {
                int dead = 0;

                mdb_reader_check(s->env, &dead);
        }
        if (r == 0)
                r = open_databases(s);
        free(path);
        if (r)
                store_env_close(s);
        return r;
}

int store_env_open(struct af_store *s, uint64_t map_bytes) {
        int r;

        r = check_pages(s);
        af_store_in_lmdb++;
        if (r == 0)
                r = env_open_once(s, map_bytes);
        if (r == MDB_MAP_FULL && map_bytes < s->max_bytes)
                r = env_open_once(s, s->max_bytes);
        af_store_in_lmdb--;
        if (store_error_is_damage(r) && !s->read_only) {
                r = -store_dir_set_aside(s->dir_fd, s->dir, "the store's files are damaged");
                if (r == 0)
                        r = -store_dir_prepare(s->dir_fd, s->dir, false, NULL);
                if (r == 0)
                        r = env_open_once(s, map_bytes);
                s->salvage = r == 0;
        }
        if (store_error_is_damage(r) && s->read_only)
                return -EUCLEAN; /* cannot be set aside */
        return r == 0 ? 0 : store_error(r);
}

void store_env_close(struct af_store *s) {
        if (s->read_txn)
                mdb_txn_abort(s->read_txn);
        s->read_txn = NULL;
        if (s->env)
                mdb_env_close(s->env);
        s->env = NULL;
        store_map_reset(s);
}

int store_env_reopen(struct af_store *s, bool set_aside) {
        uint64_t map;
        int r = 0;

        pthread_rwlock_wrlock(&s->env_lock);
        map = s->stats.map_bytes;
        store_env_close(s);
        if (set_aside) {
                r = store_dir_set_aside(s->dir_fd, s->dir, "the store's files are damaged");
                if (r == 0)
                        r = store_dir_prepare(s->dir_fd, s->dir, false, NULL);
                s->salvage = r == 0;
        }
        if (r == 0)
                r = store_env_open(s, map);
        pthread_rwlock_unlock(&s->env_lock);
        pthread_mutex_lock(&s->lock);
        s->damaged_structure = false;
        pthread_mutex_unlock(&s->lock);
        if (r)
                af_log(AF_LOG_ERROR, "%s: cannot open the store again: %s", s->dir, r < 0 ? strerror(-r) : "disk full");
        else if (s->salvage)
                store_salvage(s);
        return r;
}

bool store_env_grow(struct af_store *s, uint64_t need_bytes) {
        uint64_t map = s->stats.map_bytes;
        int r;

        while (map < s->max_bytes && need_bytes > map / 5 * 4)
                map = AF_MIN(map * 2, s->max_bytes);
        if (map == s->stats.map_bytes)
                return false;
        pthread_rwlock_wrlock(&s->env_lock);
        r = mdb_env_set_mapsize(s->env, map);
        store_map_reset(s);
        pthread_rwlock_unlock(&s->env_lock);
        if (r) {
                af_log(AF_LOG_WARNING, "%s: cannot grow the map: %s", s->dir, mdb_strerror(r));
                return false;
        }
        pthread_mutex_lock(&s->lock);
        s->stats.map_bytes = map;
        pthread_mutex_unlock(&s->lock);
        return true;
}

void store_env_usage(struct af_store *s, MDB_txn *txn) {
        uint64_t used = 16u << 10;
        MDB_envinfo info;
        MDB_stat st;

        pthread_mutex_lock(&s->lock);
        for (unsigned i = 0; i < STORE_N_DBS; i++) {
                uint64_t bytes;

                if (mdb_stat(txn, s->dbs[i], &st))
                        continue;
                bytes = (uint64_t)(st.ms_branch_pages + st.ms_leaf_pages + st.ms_overflow_pages) * st.ms_psize;
                used += bytes;
                if (i < AF_N_TABLES) {
                        s->stats.n_records[i] = st.ms_entries;
                        s->stats.bytes[i] = bytes;
                }
        }
        s->stats.used_bytes = used;
        if (mdb_env_info(s->env, &info) == 0)
                s->stats.map_bytes = info.me_mapsize;
        pthread_mutex_unlock(&s->lock);
}
