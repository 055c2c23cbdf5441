/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ledger over SQLite. Events wait in a bounded list; the ledger's thread opens the file, and writes what has gathered in one transaction at
 * most once a second. A file that SQLite finds damaged is renamed to PATH.damaged and begun anew, once; any other fault ends the writing.
 *
 *   table event: one row per struct af_ledger_event; kind as a word; digests as 32-byte blobs or NULL
 */
#include "cache/ledger.h"

#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

#define MAX_WAITING    (64u << 10)
#define MAX_ROWS       1000000
#define CLOSE_WAIT_S   2
#define WRITE_PERIOD_S 1

struct entry {
        struct entry *next;
        struct af_ledger_event event;
};

struct af_ledger {
        char *path;
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t wake, ended;
        struct entry *head, **tail;
        uint32_t n_waiting;
        uint64_t n_dropped;
        bool stop, failed, thread_ended;
        /* Ledger thread's. */
        sqlite3 *db;
        sqlite3_stmt *insert;
        bool restarted;
        uint64_t n_since_prune;
};

static const char *const kind_names[] = {
        [AF_LEDGER_REQUEST] = "request", [AF_LEDGER_PLAN] = "plan",         [AF_LEDGER_COMPILE] = "compile",
        [AF_LEDGER_HIT] = "hit",         [AF_LEDGER_FALLBACK] = "fallback", [AF_LEDGER_FAILURE] = "failure",
};

static const char schema[] =
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
        "CREATE TABLE IF NOT EXISTS event("
        " id INTEGER PRIMARY KEY, kind TEXT NOT NULL, wall_s INTEGER NOT NULL, fragment BLOB, environment BLOB, kernel BLOB,"
        " queued_us INTEGER, run_us INTEGER, peer_uid INTEGER, peer_pid INTEGER, code INTEGER, text TEXT);"
        "CREATE INDEX IF NOT EXISTS event_fragment ON event(fragment) WHERE fragment IS NOT NULL;";

static const char insert_sql[] = "INSERT INTO event(kind,wall_s,fragment,environment,kernel,queued_us,run_us,peer_uid,peer_pid,code,text) "
                                 "VALUES(?,?,?,?,?,?,?,?,?,?,?)";

static void db_close(struct af_ledger *l) {
        sqlite3_finalize(l->insert);
        sqlite3_close(l->db);
        l->insert = NULL;
        l->db = NULL;
}

static int db_open(struct af_ledger *l) {
        int r;

        r = sqlite3_open_v2(l->path, &l->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
        if (r == SQLITE_OK) {
                sqlite3_busy_timeout(l->db, 1000);
                r = sqlite3_exec(l->db, schema, NULL, NULL, NULL);
        }
        if (r == SQLITE_OK)
                r = sqlite3_prepare_v2(l->db, insert_sql, -1, &l->insert, NULL);
        if (r != SQLITE_OK)
                db_close(l);
        return r;
}

/* A damaged file goes aside with its WAL; SQLite's code. */
static int db_restart(struct af_ledger *l) {
        char from[4096], to[4096];

        db_close(l);
        if (l->restarted)
                return SQLITE_CORRUPT;
        l->restarted = true;
        af_log(AF_LOG_WARNING, "%s: ledger is damaged; set aside as .damaged, starting anew", l->path);
        snprintf(to, sizeof(to), "%s.damaged", l->path);
        if (rename(l->path, to) < 0 && errno != ENOENT)
                return SQLITE_IOERR;
        snprintf(from, sizeof(from), "%s-wal", l->path);
        unlink(from);
        snprintf(from, sizeof(from), "%s-shm", l->path);
        unlink(from);
        return db_open(l);
}

static void bind_digest(sqlite3_stmt *st, int at, const struct af_digest *d) {
        static const struct af_digest zero;

        if (af_digest_equal(d, &zero))
                sqlite3_bind_null(st, at);
        else
                sqlite3_bind_blob(st, at, d->bytes, sizeof(d->bytes), SQLITE_STATIC);
}

static int insert_event(struct af_ledger *l, const struct af_ledger_event *e) {
        sqlite3_stmt *st = l->insert;
        int r;

        sqlite3_bind_text(st, 1, (unsigned)e->kind < AF_ARRAY_SIZE(kind_names) ? kind_names[e->kind] : "unknown", -1, SQLITE_STATIC);
        sqlite3_bind_int64(st, 2, (sqlite3_int64)e->wall_s);
        bind_digest(st, 3, &e->fragment);
        bind_digest(st, 4, &e->environment);
        bind_digest(st, 5, &e->kernel);
        sqlite3_bind_int64(st, 6, (sqlite3_int64)e->queued_us);
        sqlite3_bind_int64(st, 7, (sqlite3_int64)e->run_us);
        sqlite3_bind_int64(st, 8, e->peer_uid);
        sqlite3_bind_int64(st, 9, e->peer_pid);
        sqlite3_bind_int64(st, 10, e->code);
        sqlite3_bind_text(st, 11, e->text, (int)strnlen(e->text, sizeof(e->text)), SQLITE_STATIC);
        r = sqlite3_step(st);
        sqlite3_reset(st);
        return r == SQLITE_DONE ? SQLITE_OK : r;
}

static int write_entries(struct af_ledger *l, const struct entry *list) {
        int r = sqlite3_exec(l->db, "BEGIN", NULL, NULL, NULL);

        for (const struct entry *e = list; e && r == SQLITE_OK; e = e->next) {
                r = insert_event(l, &e->event);
                l->n_since_prune++;
        }
        if (r == SQLITE_OK && l->n_since_prune > MAX_ROWS / 16) {
                char sql[128];

                l->n_since_prune = 0;
                snprintf(sql, sizeof(sql), "DELETE FROM event WHERE id <= (SELECT max(id) FROM event) - %d", MAX_ROWS);
                r = sqlite3_exec(l->db, sql, NULL, NULL, NULL);
        }
        if (r == SQLITE_OK)
                r = sqlite3_exec(l->db, "COMMIT", NULL, NULL, NULL);
        if (r != SQLITE_OK)
                sqlite3_exec(l->db, "ROLLBACK", NULL, NULL, NULL);
        return r;
}

static bool is_damage(int r) {
        return (r & 0xff) == SQLITE_CORRUPT || (r & 0xff) == SQLITE_NOTADB;
}

static void free_entries(struct entry *e) {
        for (struct entry *next; e; e = next) {
                next = e->next;
                free(e);
        }
}

/* Waits for events, takes them all. NULL: stop. Called and left with the lock held. */
static struct entry *take(struct af_ledger *l) {
        struct entry *list;

        while (!l->head && !l->stop)
                pthread_cond_wait(&l->wake, &l->lock);
        if (!l->stop) {
                struct timespec until;

                clock_gettime(CLOCK_MONOTONIC, &until);
                until.tv_sec += WRITE_PERIOD_S;
                while (!l->stop && pthread_cond_timedwait(&l->wake, &l->lock, &until) != ETIMEDOUT)
                        ;
        }
        list = l->head;
        l->head = NULL;
        l->tail = &l->head;
        l->n_waiting = 0;
        return list;
}

static void *ledger_main(void *userdata) {
        struct af_ledger *l = userdata;
        int r = db_open(l);

        if (is_damage(r))
                r = db_restart(l);
        pthread_mutex_lock(&l->lock);
        while (r == SQLITE_OK) {
                struct entry *list = take(l);

                if (!list)
                        break;
                pthread_mutex_unlock(&l->lock);
                r = write_entries(l, list);
                if (is_damage(r)) {
                        r = db_restart(l);
                        if (r == SQLITE_OK)
                                r = write_entries(l, list);
                }
                free_entries(list);
                pthread_mutex_lock(&l->lock);
        }
        l->failed = r != SQLITE_OK;
        pthread_mutex_unlock(&l->lock);
        db_close(l);
        if (r != SQLITE_OK)
                af_log(AF_LOG_WARNING, "%s: ledger is off: %s", l->path, sqlite3_errstr(r));
        pthread_mutex_lock(&l->lock);
        l->thread_ended = true;
        pthread_cond_signal(&l->ended);
        pthread_mutex_unlock(&l->lock);
        return NULL;
}

int af_ledger_open(const char *path, struct af_ledger **ret_ledger) {
        struct af_ledger *l = calloc(1, sizeof(*l));
        pthread_condattr_t attr;
        int r;

        if (!l)
                return -ENOMEM;
        l->tail = &l->head;
        l->path = strdup(path);
        if (!l->path) {
                free(l);
                return -ENOMEM;
        }
        pthread_mutex_init(&l->lock, NULL);
        pthread_condattr_init(&attr);
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        pthread_cond_init(&l->wake, &attr);
        pthread_cond_init(&l->ended, &attr);
        pthread_condattr_destroy(&attr);
        r = pthread_create(&l->thread, NULL, ledger_main, l);
        if (r) {
                free(l->path);
                free(l);
                return -r;
        }
        *ret_ledger = l;
        return 0;
}

void af_ledger_close(struct af_ledger *l) {
        struct timespec until;
        bool ended;

        if (!l)
                return;
        pthread_mutex_lock(&l->lock);
        l->stop = true;
        pthread_cond_signal(&l->wake);
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += CLOSE_WAIT_S;
        while (!l->thread_ended && pthread_cond_timedwait(&l->ended, &l->lock, &until) != ETIMEDOUT)
                ;
        ended = l->thread_ended;
        pthread_mutex_unlock(&l->lock);
        if (!ended) {
                /* A disk that hangs must not hold the process; the thread keeps its memory. */
                pthread_detach(l->thread);
                return;
        }
        pthread_join(l->thread, NULL);
        free_entries(l->head);
        pthread_mutex_destroy(&l->lock);
        pthread_cond_destroy(&l->wake);
        pthread_cond_destroy(&l->ended);
        free(l->path);
        free(l);
}

void af_ledger_add(struct af_ledger *l, const struct af_ledger_event *e) {
        struct entry *entry;

        if (!l)
                return;
        entry = malloc(sizeof(*entry));
        pthread_mutex_lock(&l->lock);
        if (!entry || l->failed || l->stop || l->n_waiting == MAX_WAITING) {
                l->n_dropped++;
                free(entry);
        } else {
                entry->event = *e;
                entry->next = NULL;
                *l->tail = entry;
                l->tail = &entry->next;
                if (l->n_waiting++ == 0)
                        pthread_cond_signal(&l->wake);
        }
        pthread_mutex_unlock(&l->lock);
}

uint64_t af_ledger_dropped(struct af_ledger *l) {
        uint64_t n;

        if (!l)
                return 0;
        pthread_mutex_lock(&l->lock);
        n = l->n_dropped;
        pthread_mutex_unlock(&l->lock);
        return n;
}
