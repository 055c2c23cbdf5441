/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger's tables (user_version 2; version 1 had `event` alone, with the same columns). Digests are 32-byte blobs, NULL where there is
 * none; wall_s are seconds since 1970.
 *
 *   event        one row per struct af_ledger_event; kind as a word
 *   stage        one row per stage of a compile that ended well
 *   use          one row per bundle that was asked for: counts
 *   fragment     what a fragment is, in words
 *   environment  one row per environment that was loaded
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cache/ledger_internal.h"

#define MAX_EVENTS 1000000
#define MAX_STAGES 1000000
#define MAX_USES   200000

const char *const ledger_kind_names[AF_LEDGER_N_KINDS] = {
        [AF_LEDGER_REQUEST] = "request", [AF_LEDGER_PLAN] = "plan",         [AF_LEDGER_COMPILE] = "compile",
        [AF_LEDGER_MISS] = "miss",       [AF_LEDGER_FALLBACK] = "fallback", [AF_LEDGER_FAILURE] = "failure",
};

static const char schema[] =
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
        "CREATE TABLE IF NOT EXISTS event("
        " id INTEGER PRIMARY KEY, kind TEXT NOT NULL, wall_s INTEGER NOT NULL, fragment BLOB, environment BLOB, kernel BLOB,"
        " queued_us INTEGER, run_us INTEGER, peer_uid INTEGER, peer_pid INTEGER, code INTEGER, text TEXT);"
        "CREATE INDEX IF NOT EXISTS event_fragment ON event(fragment) WHERE fragment IS NOT NULL;"
        "CREATE TABLE IF NOT EXISTS stage("
        " id INTEGER PRIMARY KEY, wall_s INTEGER NOT NULL, fragment BLOB, environment BLOB, kernel BLOB, stage TEXT NOT NULL, us INTEGER "
        "NOT NULL);"
        "CREATE TABLE IF NOT EXISTS use("
        " fragment BLOB NOT NULL, environment BLOB NOT NULL, hits INTEGER NOT NULL, joined INTEGER NOT NULL, compiled INTEGER NOT NULL,"
        " first_s INTEGER NOT NULL, last_s INTEGER NOT NULL, PRIMARY KEY(fragment, environment)) WITHOUT ROWID;"
        "CREATE INDEX IF NOT EXISTS use_environment ON use(environment);"
        "CREATE TABLE IF NOT EXISTS fragment(digest BLOB PRIMARY KEY, words TEXT NOT NULL, wall_s INTEGER NOT NULL) WITHOUT ROWID;"
        "CREATE TABLE IF NOT EXISTS environment("
        " digest BLOB PRIMARY KEY, soc TEXT, toolchain TEXT, version TEXT, first_s INTEGER NOT NULL, last_s INTEGER NOT NULL) WITHOUT "
        "ROWID;"
        "PRAGMA user_version=2;";

static const char *const sql[LEDGER_N_STATEMENTS] = {
        [LEDGER_INSERT_EVENT] = "INSERT INTO event(kind,wall_s,fragment,environment,kernel,queued_us,run_us,peer_uid,peer_pid,code,text) "
                                "VALUES(?,?,?,?,?,?,?,?,?,?,?)",
        [LEDGER_INSERT_STAGE] = "INSERT INTO stage(wall_s,fragment,environment,kernel,stage,us) VALUES(?,?,?,?,?,?)",
        [LEDGER_INSERT_FRAGMENT] = "INSERT OR IGNORE INTO fragment(digest,words,wall_s) VALUES(?,?,?)",
        [LEDGER_INSERT_ENVIRONMENT] = "INSERT INTO environment(digest,soc,toolchain,version,first_s,last_s) VALUES(?1,?2,?3,?4,?5,?5) "
                                      "ON CONFLICT(digest) DO UPDATE SET last_s=excluded.last_s",
        [LEDGER_ADD_USE] = "INSERT INTO use(fragment,environment,hits,joined,compiled,first_s,last_s) VALUES(?1,?2,?3,?4,?5,?6,?6) "
                           "ON CONFLICT(fragment,environment) DO UPDATE SET hits=hits+excluded.hits, joined=joined+excluded.joined, "
                           "compiled=compiled+excluded.compiled, last_s=excluded.last_s",
};

void ledger_db_close(struct af_ledger *l) {
        for (unsigned i = 0; i < LEDGER_N_STATEMENTS; i++) {
                sqlite3_finalize(l->statements[i]);
                l->statements[i] = NULL;
        }
        sqlite3_close(l->db);
        l->db = NULL;
}

/* SQLite gives its files the mode of the first, and that one what the process's mask leaves of 0644: whoever listens changes that for a
 * moment. */
static int make_file(const char *path) {
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

        if (fd < 0)
                return SQLITE_CANTOPEN;
        close(fd);
        return SQLITE_OK;
}

int ledger_db_open(struct af_ledger *l) {
        int r = make_file(l->path);

        if (r == SQLITE_OK)
                r = sqlite3_open_v2(l->path, &l->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
        if (r == SQLITE_OK) {
                sqlite3_busy_timeout(l->db, 1000);
                r = sqlite3_exec(l->db, schema, NULL, NULL, NULL);
        }
        for (unsigned i = 0; i < LEDGER_N_STATEMENTS && r == SQLITE_OK; i++)
                r = sqlite3_prepare_v2(l->db, sql[i], -1, &l->statements[i], NULL);
        if (r != SQLITE_OK)
                ledger_db_close(l);
        return r;
}

int ledger_db_restart(struct af_ledger *l) {
        char from[4096], to[4096];

        ledger_db_close(l);
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
        return ledger_db_open(l);
}

/* ---- rows ---- */

static void bind_digest(sqlite3_stmt *st, int at, const struct af_digest *d) {
        static const struct af_digest zero;

        if (af_digest_equal(d, &zero))
                sqlite3_bind_null(st, at);
        else
                sqlite3_bind_blob(st, at, d->bytes, sizeof(d->bytes), SQLITE_STATIC);
}

static void bind_text(sqlite3_stmt *st, int at, const char *text, size_t max) {
        sqlite3_bind_text(st, at, text, (int)strnlen(text, max), SQLITE_STATIC);
}

static int run(sqlite3_stmt *st) {
        int r = sqlite3_step(st);

        sqlite3_reset(st);
        return r == SQLITE_DONE ? SQLITE_OK : r;
}

static int insert_event(struct af_ledger *l, const struct af_ledger_event *e) {
        sqlite3_stmt *st = l->statements[LEDGER_INSERT_EVENT];

        sqlite3_bind_text(st, 1, (unsigned)e->kind < AF_LEDGER_N_KINDS ? ledger_kind_names[e->kind] : "unknown", -1, SQLITE_STATIC);
        sqlite3_bind_int64(st, 2, (sqlite3_int64)e->wall_s);
        bind_digest(st, 3, &e->fragment);
        bind_digest(st, 4, &e->environment);
        bind_digest(st, 5, &e->kernel);
        sqlite3_bind_int64(st, 6, (sqlite3_int64)e->queued_us);
        sqlite3_bind_int64(st, 7, (sqlite3_int64)e->run_us);
        sqlite3_bind_int64(st, 8, e->peer_uid);
        sqlite3_bind_int64(st, 9, e->peer_pid);
        sqlite3_bind_int64(st, 10, e->code);
        bind_text(st, 11, e->text, sizeof(e->text));
        return run(st);
}

static int insert_stage(struct af_ledger *l, const struct ledger_entry *e) {
        sqlite3_stmt *st = l->statements[LEDGER_INSERT_STAGE];

        sqlite3_bind_int64(st, 1, (sqlite3_int64)e->wall_s);
        bind_digest(st, 2, &e->fragment);
        bind_digest(st, 3, &e->environment);
        bind_digest(st, 4, &e->kernel);
        bind_text(st, 5, e->text, LEDGER_MAX_TEXT);
        sqlite3_bind_int64(st, 6, (sqlite3_int64)e->us);
        return run(st);
}

static int insert_fragment(struct af_ledger *l, const struct ledger_entry *e) {
        sqlite3_stmt *st = l->statements[LEDGER_INSERT_FRAGMENT];

        bind_digest(st, 1, &e->fragment);
        bind_text(st, 2, e->text, LEDGER_MAX_TEXT);
        sqlite3_bind_int64(st, 3, (sqlite3_int64)e->wall_s);
        return run(st);
}

static int insert_environment(struct af_ledger *l, const struct ledger_entry *e) {
        sqlite3_stmt *st = l->statements[LEDGER_INSERT_ENVIRONMENT];

        bind_digest(st, 1, &e->environment);
        for (int i = 0; i < 3; i++)
                bind_text(st, 2 + i, e->target[i], sizeof(e->target[i]));
        sqlite3_bind_int64(st, 5, (sqlite3_int64)e->wall_s);
        return run(st);
}

static int insert(struct af_ledger *l, const struct ledger_entry *e) {
        switch (e->kind) {
        case LEDGER_EVENT:
                return insert_event(l, &e->event);
        case LEDGER_STAGE:
                return insert_stage(l, e);
        case LEDGER_DESCRIBE:
                return insert_fragment(l, e);
        case LEDGER_ENVIRONMENT:
                return insert_environment(l, e);
        }
        return SQLITE_OK;
}

static int add_use(struct af_ledger *l, const struct ledger_use *u) {
        sqlite3_stmt *st = l->statements[LEDGER_ADD_USE];

        sqlite3_bind_blob(st, 1, u->fragment.bytes, sizeof(u->fragment.bytes), SQLITE_STATIC);
        sqlite3_bind_blob(st, 2, u->environment.bytes, sizeof(u->environment.bytes), SQLITE_STATIC);
        sqlite3_bind_int64(st, 3, u->use.n_hits);
        sqlite3_bind_int64(st, 4, u->use.n_joined);
        sqlite3_bind_int64(st, 5, u->use.n_compiled);
        sqlite3_bind_int64(st, 6, (sqlite3_int64)u->wall_s);
        return run(st);
}

/* Old rows go, so that the file has a limit. */
static int prune(struct af_ledger *l) {
        char text[640];

        l->n_since_prune = 0;
        snprintf(text, sizeof(text),
                 "DELETE FROM event WHERE id <= (SELECT max(id) FROM event) - %d;"
                 "DELETE FROM stage WHERE id <= (SELECT max(id) FROM stage) - %d;"
                 "DELETE FROM use WHERE last_s < (SELECT last_s FROM use ORDER BY last_s DESC LIMIT 1 OFFSET %d);"
                 "DELETE FROM fragment WHERE digest NOT IN (SELECT fragment FROM use)"
                 " AND wall_s < (SELECT min(wall_s) FROM event);",
                 MAX_EVENTS, MAX_STAGES, MAX_USES);
        return sqlite3_exec(l->db, text, NULL, NULL, NULL);
}

int ledger_db_write(struct af_ledger *l, const struct ledger_entry *entries, struct ledger_use *const *uses) {
        int r = sqlite3_exec(l->db, "BEGIN", NULL, NULL, NULL);

        for (const struct ledger_entry *e = entries; e && r == SQLITE_OK; e = e->next) {
                r = insert(l, e);
                l->n_since_prune++;
        }
        for (unsigned i = 0; i < LEDGER_USE_BUCKETS && r == SQLITE_OK; i++)
                for (const struct ledger_use *u = uses[i]; u && r == SQLITE_OK; u = u->next) {
                        r = add_use(l, u);
                        l->n_since_prune++;
                }
        if (r == SQLITE_OK && l->n_since_prune > MAX_EVENTS / 16)
                r = prune(l);
        if (r == SQLITE_OK)
                r = sqlite3_exec(l->db, "COMMIT", NULL, NULL, NULL);
        if (r != SQLITE_OK)
                sqlite3_exec(l->db, "ROLLBACK", NULL, NULL, NULL);
        return r;
}
