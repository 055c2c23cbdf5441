/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is next: a pure data structure without clock or processes (start-time fair queueing in two levels).
 *
 *   user    users share the slots evenly
 *   client  a process of a user; the clients of a user share evenly what the user gets
 *   want    one request's wish for one job; a job belongs to all who want it, and each of them pays an equal part of what it costs
 *   job     queued until it is started, then it runs until it is removed
 *
 * The user, and of that user the client, that used least so far has its turn: the job that it wants most, by priority, a compile before a
 * plan, then age. Whoever comes back after a pause starts level with the others: time that nobody asked for is not saved up.
 * A request of priority 128 or more is background (warm-up): it waits for all others, but for one start in AF_SCHED_BACKGROUND_TURN. A job
 * that nobody in particular wants (an environment) goes before all.
 */
#pragma once

#include <stdint.h>

#include "base/macros.h"
#include "daemon/list.h"

#define AF_SCHED_BACKGROUND      128u /* priorities from here on */
#define AF_SCHED_BACKGROUND_TURN 32u  /* of so many starts one is background's while both wait */

enum { AF_SCHED_CLASSES = 2 /* waiting, background */ };
enum af_sched_rank { AF_SCHED_RANK_FIRST /* compile */, AF_SCHED_RANK_SECOND /* plan */, AF_SCHED_RANKS };

/* Fields are the scheduler's; storage is the caller's. */
struct af_sched {
        struct af_list users; /* that have something queued */
        struct af_list unwanted;
        uint64_t clock, max_used;
        uint32_t n_queued[AF_SCHED_CLASSES]; /* wants */
        uint32_t n_jobs;                     /* queued */
        uint32_t n_since_background;
        uint64_t n_added;
};
struct af_sched_user {
        struct af_list link, clients; /* that have something queued */
        uint64_t used;                /* slot time charged, in the caller's unit */
        uint64_t clock, max_used;     /* of its clients */
        uint32_t n_queued[AF_SCHED_CLASSES];
};
struct af_sched_client {
        struct af_list link;
        struct af_sched_user *user;
        uint64_t used;
        uint32_t n_queued[AF_SCHED_CLASSES];
        struct af_list queue[AF_SCHED_CLASSES][AF_SCHED_RANKS]; /* wants by priority, then age of the job */
};
struct af_sched_job {
        struct af_list link; /* in unwanted */
        struct af_list wants;
        uint32_t n_wants, n_payers;
        enum af_sched_rank rank;
        bool queued, started;
        uint64_t number;
};

void af_sched_init(struct af_sched *s);
void af_sched_user_init(struct af_sched *s, struct af_sched_user *user);
void af_sched_client_init(struct af_sched_client *client, struct af_sched_user *user);
/* Whether it used more than its share so far: whoever forgets it now would let it start anew. */
bool af_sched_user_owes(const struct af_sched *s, const struct af_sched_user *user);
bool af_sched_client_owes(const struct af_sched_client *client);

/* Queues a job that nobody wants yet. */
void af_sched_add(struct af_sched *s, struct af_sched_job *job, enum af_sched_rank rank);
/*
 * The client wants it, for a request that holds its wants in the list owner. Client and owner outlive the want. Fine for a job that runs:
 * then it costs nothing. 0 or -ENOMEM (the job stays queued).
 */
int af_sched_want(struct af_sched *s, struct af_sched_job *job, struct af_sched_client *client, uint8_t priority,
                  struct af_list *owner) AF_WARN_UNUSED;
/* All wants of a request go. */
void af_sched_unwant(struct af_sched *s, struct af_list *owner);
/* Whose turn it is; it stays queued. NULL: none is queued. */
struct af_sched_job *af_sched_next(struct af_sched *s);
/* Of the most urgent who wants it; 0 where nobody does. */
uint8_t af_sched_priority(const struct af_sched_job *job);
/* It runs now; cost is what it will take as far as one knows. */
void af_sched_start(struct af_sched *s, struct af_sched_job *job, uint64_t cost);
/* Forgets it, queued or running. A running one is charged what it took in place of what was thought; its wants go. */
void af_sched_remove(struct af_sched *s, struct af_sched_job *job, uint64_t cost);
