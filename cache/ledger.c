/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ledger over SQLite. Entries wait in a bounded list, counts in a table; the ledger's thread opens the file, and writes what has gathered
 * in one transaction at most once a second, or as soon as a question comes. A file that SQLite finds damaged is renamed to PATH.damaged
 * and begun anew, once; any other fault ends the writing.
 */
#include "cache/ledger.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cache/ledger_internal.h"

#define CLOSE_WAIT_S   2
#define WRITE_PERIOD_S 1

/* What the thread takes at once. */
struct batch {
        struct ledger_entry *entries;
        struct ledger_use *uses[LEDGER_USE_BUCKETS];
        struct ledger_question *questions;
        bool empty;
};

static bool is_damage(int r) {
        return (r & 0xff) == SQLITE_CORRUPT || (r & 0xff) == SQLITE_NOTADB;
}

static void free_entries(struct ledger_entry *e) {
        for (struct ledger_entry *next; e; e = next) {
                next = e->next;
                free(e);
        }
}

static void free_uses(struct ledger_use **uses) {
        for (unsigned i = 0; i < LEDGER_USE_BUCKETS; i++)
                for (struct ledger_use *u = uses[i], *next; u; u = next) {
                        next = u->next;
                        free(u);
                }
}

static bool has_work(const struct af_ledger *l) {
        return l->head || l->n_uses > 0 || l->questions;
}

/* Waits, and takes all there is. Called and left with the lock held. */
static void take(struct af_ledger *l, struct batch *b) {
        while (!has_work(l) && !l->stop)
                pthread_cond_wait(&l->wake, &l->lock);
        if (!l->stop && !l->questions) {
                struct timespec until;

                clock_gettime(CLOCK_MONOTONIC, &until);
                until.tv_sec += WRITE_PERIOD_S;
                while (!l->stop && !l->questions && pthread_cond_timedwait(&l->wake, &l->lock, &until) != ETIMEDOUT)
                        ;
        }
        b->empty = !has_work(l);
        b->entries = l->head;
        memcpy(b->uses, l->uses, sizeof(b->uses));
        b->questions = l->questions;
        l->head = NULL;
        l->tail = &l->head;
        memset(l->uses, 0, sizeof(l->uses));
        l->questions = NULL;
        l->questions_tail = &l->questions;
        l->n_waiting = l->n_uses = 0;
}

/* Without the lock. SQLite's code. */
static int write_batch(struct af_ledger *l, struct batch *b) {
        int r = ledger_db_write(l, b->entries, b->uses);

        if (is_damage(r)) {
                r = ledger_db_restart(l);
                if (r == SQLITE_OK)
                        r = ledger_db_write(l, b->entries, b->uses);
        }
        free_entries(b->entries);
        free_uses(b->uses);
        return r;
}

/* With the lock: hands questions over to whoever dispatches. */
static void hand_over(struct af_ledger *l, struct ledger_question *questions) {
        uint64_t one = 1;

        if (!questions)
                return;
        *l->answers_tail = questions;
        while (*l->answers_tail)
                l->answers_tail = &(*l->answers_tail)->next;
        (void)!write(l->event_fd, &one, sizeof(one));
}

static void answer(struct af_ledger *l, struct ledger_question *questions, int r) {
        for (struct ledger_question *q = questions; q; q = q->next) {
                int e = r == SQLITE_OK ? ledger_answer(l->db, &q->query, &q->json) : r;

                q->result = e != SQLITE_OK ? -EIO : af_buf_error(&q->json);
        }
}

static void *ledger_main(void *userdata) {
        struct af_ledger *l = userdata;
        struct batch *b = malloc(sizeof(*b));
        int r = b ? ledger_db_open(l) : SQLITE_NOMEM;

        if (is_damage(r))
                r = ledger_db_restart(l);
        pthread_mutex_lock(&l->lock);
        while (r == SQLITE_OK) {
                take(l, b);
                if (b->empty)
                        break;
                pthread_mutex_unlock(&l->lock);
                r = write_batch(l, b);
                answer(l, b->questions, r);
                pthread_mutex_lock(&l->lock);
                hand_over(l, b->questions);
        }
        l->failed = r != SQLITE_OK;
        for (struct ledger_question *q = l->questions; q; q = q->next)
                q->result = -EIO;
        hand_over(l, l->questions);
        l->questions = NULL;
        l->questions_tail = &l->questions;
        pthread_mutex_unlock(&l->lock);
        ledger_db_close(l);
        free(b);
        if (r != SQLITE_OK)
                af_log(AF_LOG_WARNING, "%s: ledger is off: %s", l->path, sqlite3_errstr(r));
        pthread_mutex_lock(&l->lock);
        l->thread_ended = true;
        pthread_cond_signal(&l->ended);
        pthread_mutex_unlock(&l->lock);
        return NULL;
}

/* ---- life ---- */

static void ledger_free(struct af_ledger *l) {
        pthread_mutex_destroy(&l->lock);
        pthread_cond_destroy(&l->wake);
        pthread_cond_destroy(&l->ended);
        if (l->event_fd >= 0)
                close(l->event_fd);
        free(l->path);
        free(l);
}

int af_ledger_open(const char *path, struct af_ledger **ret_ledger) {
        struct af_ledger *l = calloc(1, sizeof(*l));
        pthread_condattr_t attr;
        int r;

        if (!l)
                return -ENOMEM;
        l->tail = &l->head;
        l->questions_tail = &l->questions;
        l->answers_tail = &l->answers;
        pthread_mutex_init(&l->lock, NULL);
        pthread_condattr_init(&attr);
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        pthread_cond_init(&l->wake, &attr);
        pthread_cond_init(&l->ended, &attr);
        pthread_condattr_destroy(&attr);
        l->path = strdup(path);
        l->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        r = !l->path ? ENOMEM : l->event_fd < 0 ? errno : pthread_create(&l->thread, NULL, ledger_main, l);
        if (r) {
                ledger_free(l);
                return -r;
        }
        *ret_ledger = l;
        return 0;
}

static void call_all(struct ledger_question *q, bool canceled) {
        for (struct ledger_question *next; q; q = next) {
                next = q->next;
                if (canceled)
                        q->result = -ECANCELED;
                q->done(q->userdata, q->result, (const char *)q->json.data, q->json.size);
                af_buf_deinit(&q->json);
                free(q);
        }
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
        call_all(l->answers, true);
        free_entries(l->head);
        free_uses(l->uses);
        ledger_free(l);
}

/* ---- what is put in ---- */

/* With the lock. The thread sleeps while there is nothing. */
static void wake(struct af_ledger *l) {
        if (l->n_waiting + l->n_uses == 1)
                pthread_cond_signal(&l->wake);
}

/* Takes entry (NULL: no memory). */
static void put(struct af_ledger *l, struct ledger_entry *entry) {
        pthread_mutex_lock(&l->lock);
        if (!entry || l->failed || l->stop || l->n_waiting == LEDGER_MAX_WAITING) {
                l->n_dropped++;
                free(entry);
        } else {
                entry->next = NULL;
                *l->tail = entry;
                l->tail = &entry->next;
                l->n_waiting++;
                wake(l);
        }
        pthread_mutex_unlock(&l->lock);
}

/* With n bytes behind the fixed part. */
static struct ledger_entry *entry_new(enum ledger_entry_kind kind, const struct af_digest *fragment, const struct af_digest *environment,
                                      const struct af_digest *kernel, size_t n) {
        struct ledger_entry *e = malloc(sizeof(*e) + n);

        if (!e)
                return NULL;
        e->kind = kind;
        e->wall_s = af_clock_wall_s();
        e->us = 0;
        e->fragment = fragment ? *fragment : (struct af_digest){0};
        e->environment = environment ? *environment : (struct af_digest){0};
        e->kernel = kernel ? *kernel : (struct af_digest){0};
        return e;
}

static void set_text(char *out, size_t size, const char *text) {
        size_t n = strnlen(text ? text : "", size - 1);

        memcpy(out, text ? text : "", n);
        out[n] = 0;
}

void af_ledger_add(struct af_ledger *l, const struct af_ledger_event *event) {
        struct ledger_entry *e;

        if (!l)
                return;
        e = malloc(sizeof(*e));
        if (e) {
                e->kind = LEDGER_EVENT;
                e->event = *event;
        }
        put(l, e);
}

void af_ledger_stage(struct af_ledger *l, const struct af_digest *fragment, const struct af_digest *environment,
                     const struct af_digest *kernel, const char *stage, uint64_t us) {
        size_t n = AF_MIN(strlen(stage) + 1, (size_t)LEDGER_MAX_TEXT);
        struct ledger_entry *e;

        if (!l)
                return;
        e = entry_new(LEDGER_STAGE, fragment, environment, kernel, n);
        if (e) {
                e->us = us;
                set_text(e->text, n, stage);
        }
        put(l, e);
}

void af_ledger_describe(struct af_ledger *l, const struct af_digest *fragment, const char *words) {
        size_t n = AF_MIN(strlen(words) + 1, (size_t)LEDGER_MAX_TEXT);
        struct ledger_entry *e;

        if (!l)
                return;
        e = entry_new(LEDGER_DESCRIBE, fragment, NULL, NULL, n);
        if (e)
                set_text(e->text, n, words);
        put(l, e);
}

void af_ledger_environment(struct af_ledger *l, const struct af_digest *environment, const char *soc, const char *toolchain,
                           const char *version) {
        struct ledger_entry *e;

        if (!l)
                return;
        e = entry_new(LEDGER_ENVIRONMENT, NULL, environment, NULL, 0);
        if (e) {
                set_text(e->target[0], sizeof(e->target[0]), soc);
                set_text(e->target[1], sizeof(e->target[1]), toolchain);
                set_text(e->target[2], sizeof(e->target[2]), version);
        }
        put(l, e);
}

void af_ledger_count(struct af_ledger *l, const struct af_digest *fragment, const struct af_digest *environment,
                     const struct af_ledger_use *use) {
        struct ledger_use **bucket, *u;

        if (!l)
                return;
        bucket = &l->uses[(fragment->bytes[0] | (uint32_t)fragment->bytes[1] << 8) % LEDGER_USE_BUCKETS];
        pthread_mutex_lock(&l->lock);
        for (u = *bucket; u; u = u->next)
                if (af_digest_equal(&u->fragment, fragment) && af_digest_equal(&u->environment, environment))
                        break;
        if (!u && !l->failed && !l->stop && l->n_uses < LEDGER_MAX_WAITING && (u = calloc(1, sizeof(*u)))) {
                u->fragment = *fragment;
                u->environment = *environment;
                u->next = *bucket;
                *bucket = u;
                l->n_uses++;
                wake(l);
        }
        if (u) {
                u->use.n_hits += use->n_hits;
                u->use.n_joined += use->n_joined;
                u->use.n_compiled += use->n_compiled;
                u->wall_s = af_clock_wall_s();
        } else {
                l->n_dropped++;
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

/* ---- questions ---- */

int af_ledger_kind_from_name(const char *name) {
        for (int i = 0; i < AF_LEDGER_N_KINDS; i++)
                if (strcmp(ledger_kind_names[i], name) == 0)
                        return i;
        return -1;
}

int af_ledger_ask(struct af_ledger *l, const struct af_ledger_query *query, af_ledger_done_fn done, void *userdata) {
        struct ledger_question *q;
        int r;

        if (!l)
                return -EIO;
        q = calloc(1, sizeof(*q));
        if (!q)
                return -ENOMEM;
        q->query = *query;
        q->done = done;
        q->userdata = userdata;
        pthread_mutex_lock(&l->lock);
        r = l->failed || l->stop ? -EIO : l->n_questions == LEDGER_MAX_QUESTIONS ? -EBUSY : 0;
        if (r == 0) {
                l->n_questions++;
                *l->questions_tail = q;
                l->questions_tail = &q->next;
                pthread_cond_signal(&l->wake);
        }
        pthread_mutex_unlock(&l->lock);
        if (r)
                free(q);
        return r;
}

int af_ledger_fd(const struct af_ledger *l) {
        return l->event_fd;
}

void af_ledger_dispatch(struct af_ledger *l) {
        struct ledger_question *answers;
        uint64_t n;

        (void)!read(l->event_fd, &n, sizeof(n));
        pthread_mutex_lock(&l->lock);
        answers = l->answers;
        l->answers = NULL;
        l->answers_tail = &l->answers;
        for (struct ledger_question *q = answers; q; q = q->next)
                l->n_questions--;
        pthread_mutex_unlock(&l->lock);
        call_all(answers, false);
}
