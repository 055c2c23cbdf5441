/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/scheduler.h"

#include <errno.h>
#include <stdlib.h>

struct want {
        struct af_list in_job, in_client, in_owner;
        struct af_sched_job *job;
        struct af_sched_client *client;
        uint64_t paid;
        bool charged;
        uint8_t priority;
};

void af_sched_init(struct af_sched *s) {
        *s = (struct af_sched){0};
        af_list_init(&s->users);
        af_list_init(&s->unwanted);
}

void af_sched_user_init(struct af_sched *s, struct af_sched_user *user) {
        *user = (struct af_sched_user){.used = s->clock};
        af_list_init(&user->link);
        af_list_init(&user->clients);
}

void af_sched_client_init(struct af_sched_client *client, struct af_sched_user *user) {
        *client = (struct af_sched_client){.user = user, .used = user->clock};
        af_list_init(&client->link);
        for (unsigned i = 0; i < AF_SCHED_CLASSES; i++)
                for (unsigned k = 0; k < AF_SCHED_RANKS; k++)
                        af_list_init(&client->queue[i][k]);
}

bool af_sched_user_owes(const struct af_sched *s, const struct af_sched_user *user) {
        return user->used > s->clock;
}

bool af_sched_client_owes(const struct af_sched_client *client) {
        return client->used > client->user->clock;
}

static unsigned class_of(uint8_t priority) {
        return priority >= AF_SCHED_BACKGROUND;
}

static bool any(const uint32_t n[AF_SCHED_CLASSES]) {
        return n[0] + n[1] > 0;
}

/* ---- wants in the queues of their clients ---- */

/* Queues grow at their ends: most wants are the newest of their priority. */
static void insert(struct af_list *queue, struct want *want) {
        struct af_list *at = queue->prev;

        while (at != queue) {
                struct want *w = af_list_entry(at, struct want, in_client);

                if (w->priority < want->priority || (w->priority == want->priority && w->job->number <= want->job->number))
                        break;
                at = at->prev;
        }
        af_list_append(at->next, &want->in_client); /* before what follows */
}

static void enqueue(struct af_sched *s, struct want *want) {
        struct af_sched_client *client = want->client;
        struct af_sched_user *user = client->user;
        unsigned class = class_of(want->priority);

        if (!any(user->n_queued)) {
                user->used = AF_MAX(user->used, s->clock);
                af_list_append(&s->users, &user->link);
        }
        if (!any(client->n_queued)) {
                client->used = AF_MAX(client->used, user->clock);
                af_list_append(&user->clients, &client->link);
        }
        insert(&client->queue[class][want->job->rank], want);
        client->n_queued[class]++;
        user->n_queued[class]++;
        s->n_queued[class]++;
}

/* Fine for a want that is in no queue. */
static void dequeue(struct af_sched *s, struct want *want) {
        struct af_sched_client *client = want->client;
        struct af_sched_user *user = client->user;
        unsigned class = class_of(want->priority);

        if (af_list_empty(&want->in_client))
                return;
        af_list_del(&want->in_client);
        client->n_queued[class]--;
        user->n_queued[class]--;
        s->n_queued[class]--;
        if (!any(client->n_queued))
                af_list_del(&client->link);
        if (!any(user->n_queued))
                af_list_del(&user->link);
        /* With nobody left to share with all are even. */
        if (af_list_empty(&user->clients))
                user->clock = AF_MAX(user->clock, user->max_used);
        if (af_list_empty(&s->users))
                s->clock = AF_MAX(s->clock, s->max_used);
}

static void want_free(struct af_sched *s, struct want *want) {
        struct af_sched_job *job = want->job;

        dequeue(s, want);
        af_list_del(&want->in_job);
        af_list_del(&want->in_owner);
        free(want);
        if (--job->n_wants == 0 && job->queued)
                af_list_append(&s->unwanted, &job->link);
}

/* ---- jobs ---- */

void af_sched_add(struct af_sched *s, struct af_sched_job *job, enum af_sched_rank rank) {
        *job = (struct af_sched_job){.rank = rank, .queued = true, .number = s->n_added++};
        af_list_init(&job->wants);
        af_list_append(&s->unwanted, &job->link);
        s->n_jobs++;
}

int af_sched_want(struct af_sched *s, struct af_sched_job *job, struct af_sched_client *client, uint8_t priority, struct af_list *owner) {
        struct want *want = calloc(1, sizeof(*want));

        if (!want)
                return -ENOMEM;
        *want = (struct want){.job = job, .client = client, .priority = priority};
        af_list_init(&want->in_client);
        af_list_append(&job->wants, &want->in_job);
        af_list_append(owner, &want->in_owner);
        if (job->n_wants++ == 0 && job->queued)
                af_list_del(&job->link);
        if (job->queued)
                enqueue(s, want);
        return 0;
}

void af_sched_unwant(struct af_sched *s, struct af_list *owner) {
        while (!af_list_empty(owner))
                want_free(s, af_list_entry(owner->next, struct want, in_owner));
}

static struct af_sched_user *least_user(const struct af_sched *s, unsigned class) {
        struct af_sched_user *best = NULL;

        af_list_each (user, &s->users, struct af_sched_user, link)
                if (user->n_queued[class] && (!best || user->used < best->used))
                        best = user;
        return best;
}

static struct af_sched_client *least_client(const struct af_sched_user *user, unsigned class) {
        struct af_sched_client *best = NULL;

        af_list_each (client, &user->clients, struct af_sched_client, link)
                if (client->n_queued[class] && (!best || client->used < best->used))
                        best = client;
        return best;
}

static struct want *first_want(const struct af_sched_client *client, unsigned class) {
        struct want *best = NULL;

        for (unsigned rank = 0; rank < AF_SCHED_RANKS; rank++) {
                const struct af_list *queue = &client->queue[class][rank];
                struct want *w = af_list_entry(queue->next, struct want, in_client);

                if (!af_list_empty(queue) && (!best || w->priority < best->priority))
                        best = w;
        }
        return best;
}

static unsigned next_class(const struct af_sched *s) {
        if (!s->n_queued[0])
                return 1;
        return s->n_queued[1] && s->n_since_background + 1 >= AF_SCHED_BACKGROUND_TURN;
}

struct af_sched_job *af_sched_next(struct af_sched *s) {
        unsigned class = next_class(s);

        if (!af_list_empty(&s->unwanted))
                return af_list_entry(s->unwanted.next, struct af_sched_job, link);
        if (!s->n_queued[class])
                return NULL;
        return first_want(least_client(least_user(s, class), class), class)->job;
}

uint8_t af_sched_priority(const struct af_sched_job *job) {
        uint8_t best = UINT8_MAX;

        af_list_each (want, &job->wants, struct want, in_job)
                best = AF_MIN(best, want->priority);
        return job->n_wants ? best : 0;
}

/* The clocks follow whoever is served: of those who want the job, the one that used least. */
static void move_clocks(struct af_sched *s, const struct af_sched_job *job) {
        const struct af_sched_client *least = NULL;

        af_list_each (want, &job->wants, struct want, in_job) {
                const struct af_sched_client *c = want->client;

                if (!least || c->user->used < least->user->used || (c->user == least->user && c->used < least->used))
                        least = c;
        }
        if (!least)
                return;
        s->clock = AF_MAX(s->clock, least->user->used);
        least->user->clock = AF_MAX(least->user->clock, least->used);
}

static void charge(struct af_sched *s, struct want *want, uint64_t cost) {
        struct af_sched_client *client = want->client;
        struct af_sched_user *user = client->user;

        client->used = client->used - AF_MIN(client->used, want->paid) + cost;
        user->used = user->used - AF_MIN(user->used, want->paid) + cost;
        user->max_used = AF_MAX(user->max_used, client->used);
        s->max_used = AF_MAX(s->max_used, user->used);
        want->paid = cost;
}

void af_sched_start(struct af_sched *s, struct af_sched_job *job, uint64_t cost) {
        bool background = true;

        move_clocks(s, job);
        job->queued = false;
        job->started = true;
        job->n_payers = job->n_wants;
        s->n_jobs--;
        if (!job->n_wants) {
                af_list_del(&job->link);
                return;
        }
        af_list_each (want, &job->wants, struct want, in_job) {
                background = background && class_of(want->priority) == 1;
                want->charged = true;
                charge(s, want, cost / job->n_payers);
        }
        af_list_each (queued, &job->wants, struct want, in_job)
                dequeue(s, queued);
        s->n_since_background = background || !s->n_queued[1] ? 0 : s->n_since_background + 1;
}

void af_sched_remove(struct af_sched *s, struct af_sched_job *job, uint64_t cost) {
        s->n_jobs -= job->queued;
        job->queued = false;
        af_list_del(&job->link);
        while (!af_list_empty(&job->wants)) {
                struct want *want = af_list_entry(job->wants.next, struct want, in_job);

                if (want->charged)
                        charge(s, want, cost / job->n_payers);
                want_free(s, want);
        }
}
