/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the ledger: ledger.c has queue and thread, ledger_db.c the tables, ledger_query.c the answers. */
#pragma once

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>

#include "cache/ledger.h"

#define LEDGER_MAX_WAITING   (64u << 10)
#define LEDGER_MAX_QUESTIONS 64u
#define LEDGER_USE_BUCKETS   4096u
#define LEDGER_MAX_TEXT      1024u

enum ledger_entry_kind { LEDGER_EVENT, LEDGER_STAGE, LEDGER_DESCRIBE, LEDGER_ENVIRONMENT };
struct ledger_entry {
        struct ledger_entry *next;
        enum ledger_entry_kind kind;
        struct af_digest fragment, environment, kernel; /* but of EVENT */
        uint64_t wall_s, us;                            /* but of EVENT */
        union {
                struct af_ledger_event event;
                char target[3][96]; /* ENVIRONMENT: SoC, toolchain, version */
        };
        char text[]; /* STAGE: its name; DESCRIBE: words */
};
struct ledger_use {
        struct ledger_use *next;
        struct af_digest fragment, environment;
        struct af_ledger_use use;
        uint64_t wall_s;
};
struct ledger_question {
        struct ledger_question *next;
        struct af_ledger_query query;
        af_ledger_done_fn done;
        void *userdata;
        int result;
        struct af_buf json;
};

enum { LEDGER_INSERT_EVENT, LEDGER_INSERT_STAGE, LEDGER_INSERT_FRAGMENT, LEDGER_INSERT_ENVIRONMENT, LEDGER_ADD_USE, LEDGER_N_STATEMENTS };
struct af_ledger {
        char *path;
        int event_fd;
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t wake, ended;
        struct ledger_entry *head, **tail;
        struct ledger_use *uses[LEDGER_USE_BUCKETS];
        struct ledger_question *questions, **questions_tail, *answers, **answers_tail;
        uint32_t n_waiting, n_uses, n_questions;
        uint64_t n_dropped;
        bool stop, failed, thread_ended;
        /* The ledger's thread's. */
        sqlite3 *db;
        sqlite3_stmt *statements[LEDGER_N_STATEMENTS];
        bool restarted;
        uint64_t n_since_prune;
};

extern const char *const ledger_kind_names[AF_LEDGER_N_KINDS];

/* ledger_db.c; each returns SQLite's code */
int ledger_db_open(struct af_ledger *l) AF_WARN_UNUSED;
void ledger_db_close(struct af_ledger *l);
/* A damaged file goes aside with its WAL, and a new one is begun. */
int ledger_db_restart(struct af_ledger *l) AF_WARN_UNUSED;
/* All in one transaction. */
int ledger_db_write(struct af_ledger *l, const struct ledger_entry *entries, struct ledger_use *const *uses) AF_WARN_UNUSED;

/* ledger_query.c: appends one JSON object. */
int ledger_answer(sqlite3 *db, const struct af_ledger_query *q, struct af_buf *json) AF_WARN_UNUSED;
