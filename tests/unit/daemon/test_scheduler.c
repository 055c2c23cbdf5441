/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "daemon/scheduler.h"

#define N_CLIENTS 12
#define N_JOBS    4000

/* One slot, or several; every job knows whose it is. */
static struct af_sched sched;
static struct af_sched_user users[4];
static struct af_sched_client clients[N_CLIENTS];
static struct af_list owners[N_CLIENTS];
static struct af_sched_job jobs[N_JOBS];
static int whose[N_JOBS];
static unsigned n_jobs;

/* clients[i] belongs to users[of[i]]. */
static void setup(const int *of, unsigned n) {
        n_jobs = 0;
        af_sched_init(&sched);
        for (unsigned i = 0; i < AF_ARRAY_SIZE(users); i++)
                af_sched_user_init(&sched, &users[i]);
        for (unsigned i = 0; i < n; i++) {
                af_sched_client_init(&clients[i], &users[of[i]]);
                af_list_init(&owners[i]);
        }
}

static struct af_sched_job *add(int client, enum af_sched_rank rank, uint8_t priority) {
        struct af_sched_job *job = &jobs[n_jobs];

        whose[n_jobs++] = client;
        af_sched_add(&sched, job, rank);
        if (client >= 0)
                cr_assert_eq(af_sched_want(&sched, job, &clients[client], priority, &owners[client]), 0);
        return job;
}

/* Starts the next and ends it at once; whose it was. -2: none. */
static int serve(uint64_t cost) {
        struct af_sched_job *job = af_sched_next(&sched);

        if (!job)
                return -2;
        af_sched_start(&sched, job, cost);
        af_sched_remove(&sched, job, cost);
        return whose[job - jobs];
}

static void end(void) {
        while (serve(1) != -2)
                ;
        cr_assert_eq(sched.n_jobs, 0);
        cr_assert_eq(sched.n_queued[0] + sched.n_queued[1], 0);
        cr_assert(af_list_empty(&sched.users) && af_list_empty(&sched.unwanted));
}

Test(scheduler, a_flood_gets_its_share_and_no_more) {
        unsigned got[9] = {0}, turns = 0;

        setup((const int[9]){0}, 9);
        for (int i = 0; i < 2000; i++)
                add(8, AF_SCHED_RANK_SECOND, 0);
        for (int i = 0; i < 8 * 20; i++)
                add(i % 8, AF_SCHED_RANK_SECOND, 0);
        while (got[0] + got[1] + got[2] + got[3] + got[4] + got[5] + got[6] + got[7] < 160) {
                got[serve(1000)]++;
                turns++;
        }
        cr_assert_leq(turns, 9 * 20);
        cr_assert_geq(got[8], 18);
        end();
}

Test(scheduler, dear_jobs_count_for_more) {
        uint64_t used[2] = {0};

        setup((const int[2]){0}, 2);
        for (int i = 0; i < 1000; i++)
                add(i % 2, AF_SCHED_RANK_FIRST, 0);
        for (int i = 0; i < 300; i++) {
                struct af_sched_job *job = af_sched_next(&sched);
                int who = whose[job - jobs];

                /* What it takes shows only at its end. */
                af_sched_start(&sched, job, 50);
                af_sched_remove(&sched, job, who ? 300 : 100);
                used[who] += who ? 300 : 100;
        }
        cr_assert_leq(used[0] > used[1] ? used[0] - used[1] : used[1] - used[0], 300);
        end();
}

Test(scheduler, users_first_then_their_clients) {
        unsigned got[4] = {0};

        /* Three processes of one user against one of another. */
        setup((const int[4]){0, 0, 0, 1}, 4);
        for (int i = 0; i < 400; i++)
                add(i % 4, AF_SCHED_RANK_FIRST, 0);
        for (int i = 0; i < 120; i++)
                got[serve(10)]++;
        cr_assert_eq(got[3], 60);
        for (int i = 0; i < 3; i++)
                cr_assert_eq(got[i], 20, "client %d got %u", i, got[i]);
        end();
}

Test(scheduler, a_waiting_rank_before_warm_up_that_does_not_starve) {
        unsigned background = 0;

        setup((const int[3]){0, 1, 1}, 3);
        for (int i = 0; i < 400; i++)
                add(0, AF_SCHED_RANK_FIRST, 200);
        serve(1), serve(1);
        for (int i = 0; i < 320; i++)
                add(1, AF_SCHED_RANK_SECOND, 0);
        cr_assert_eq(serve(1), 1);
        for (int i = 0; i < 319; i++)
                background += serve(1) == 0;
        cr_assert_eq(background, 320 / AF_SCHED_BACKGROUND_TURN);
        end();
}

Test(scheduler, within_a_client_by_priority_then_compiles_then_age) {
        struct af_sched_job *order[6];

        setup((const int[1]){0}, 1);
        order[4] = add(0, AF_SCHED_RANK_SECOND, 9);
        order[2] = add(0, AF_SCHED_RANK_SECOND, 5);
        order[3] = add(0, AF_SCHED_RANK_SECOND, 5);
        order[1] = add(0, AF_SCHED_RANK_FIRST, 5);
        order[5] = add(0, AF_SCHED_RANK_FIRST, 130);
        order[0] = add(0, AF_SCHED_RANK_SECOND, 0);
        for (int i = 0; i < 6; i++) {
                struct af_sched_job *job = af_sched_next(&sched);

                cr_assert_eq(job, order[i], "place %d: job %d", i, (int)(job - jobs));
                af_sched_start(&sched, job, 1);
                af_sched_remove(&sched, job, 1);
        }
        end();
}

Test(scheduler, what_nobody_in_particular_wants_goes_first) {
        struct af_sched_job *job;

        setup((const int[1]){0}, 1);
        add(0, AF_SCHED_RANK_FIRST, 0);
        job = add(-1, AF_SCHED_RANK_SECOND, 0);
        cr_assert_eq(serve(1), -1);
        cr_assert_eq(serve(1), 0);
        job = add(-1, AF_SCHED_RANK_SECOND, 0);
        af_sched_remove(&sched, job, 0);
        cr_assert_eq(serve(1), -2);
}

Test(scheduler, a_shared_job_is_paid_by_all_who_want_it) {
        struct af_sched_job *shared;

        setup((const int[3]){0}, 3);
        shared = add(0, AF_SCHED_RANK_FIRST, 0);
        for (int i = 1; i < 3; i++)
                cr_assert_eq(af_sched_want(&sched, shared, &clients[i], 7, &owners[i]), 0);
        cr_assert_eq(serve(300), 0);
        for (int i = 0; i < 3; i++)
                cr_assert_eq(clients[i].used, 100);
        cr_assert_eq(users[0].used, 300);
        for (int i = 0; i < 3; i++)
                cr_assert(af_list_empty(&owners[i]));
}

Test(scheduler, the_most_urgent_who_waits_decides_and_leaving_undoes_it) {
        struct af_sched_job *late;

        setup((const int[2]){0}, 2);
        late = add(0, AF_SCHED_RANK_FIRST, 200);
        add(0, AF_SCHED_RANK_FIRST, 100);
        cr_assert_neq(af_sched_next(&sched), late);
        cr_assert_eq(af_sched_want(&sched, late, &clients[1], 0, &owners[1]), 0);
        clients[0].used = 10;
        cr_assert_eq(af_sched_next(&sched), late);
        af_sched_unwant(&sched, &owners[1]);
        cr_assert_neq(af_sched_next(&sched), late);
        cr_assert_eq(late->n_wants, 1);
        end();
}

Test(scheduler, those_who_leave_take_nothing_along) {
        struct af_sched_job *job;

        setup((const int[2]){0}, 2);
        job = add(0, AF_SCHED_RANK_FIRST, 0);
        af_sched_start(&sched, job, 100);
        cr_assert_eq(af_sched_want(&sched, job, &clients[1], 0, &owners[1]), 0); /* runs already: for nothing */
        af_sched_unwant(&sched, &owners[0]);
        cr_assert_eq(job->n_wants, 1);
        af_sched_remove(&sched, job, 500);
        cr_assert_eq(clients[0].used, 100);
        cr_assert_eq(clients[1].used, 0);
        cr_assert(af_list_empty(&owners[1]));
        cr_assert_eq(serve(1), -2);
}

Test(scheduler, a_pause_saves_nothing_up) {
        unsigned got[2] = {0};

        setup((const int[2]){0}, 2);
        for (int i = 0; i < 300; i++)
                add(0, AF_SCHED_RANK_FIRST, 0);
        for (int i = 0; i < 100; i++)
                serve(10);
        for (int i = 0; i < 100; i++)
                add(1, AF_SCHED_RANK_FIRST, 0);
        for (int i = 0; i < 100; i++)
                got[serve(10)]++;
        cr_assert_leq(got[1], 51);
        cr_assert_geq(got[1], 49);
        cr_assert(!af_sched_client_owes(&clients[1]) || clients[1].used - users[0].clock <= 10);
        end();
}

/* Everything at random, against counts kept aside: nothing is lost, served twice, or left behind. */
Test(scheduler, random_comings_and_goings) {
        static bool queued[N_JOBS];
        unsigned seed = 1, left = 0, served = 0;

        setup((const int[8]){0, 0, 0, 1, 1, 2, 2, 3}, 8);
        for (int step = 0; step < 20000; step++) {
                unsigned r = (unsigned)rand_r(&seed) % 10;

                if (r < 4 && n_jobs < N_JOBS) {
                        int client = (int)((unsigned)rand_r(&seed) % 8);

                        queued[n_jobs] = true;
                        add(client, (unsigned)rand_r(&seed) % 2, (uint8_t)rand_r(&seed));
                        left++;
                } else if (r < 6 && n_jobs) {
                        unsigned j = (unsigned)rand_r(&seed) % n_jobs, client = (unsigned)rand_r(&seed) % 8;

                        if (queued[j])
                                cr_assert_eq(af_sched_want(&sched, &jobs[j], &clients[client], (uint8_t)rand_r(&seed), &owners[client]), 0);
                } else if (r == 6 && step % 7 == 0) {
                        af_sched_unwant(&sched, &owners[(unsigned)rand_r(&seed) % 8]);
                } else {
                        struct af_sched_job *job = af_sched_next(&sched);

                        cr_assert_eq(job != NULL, left > 0);
                        if (!job)
                                continue;
                        cr_assert(queued[job - jobs]);
                        queued[job - jobs] = false;
                        left--, served++;
                        af_sched_start(&sched, job, 10);
                        af_sched_remove(&sched, job, (uint64_t)rand_r(&seed) % 100);
                }
                cr_assert_eq(sched.n_jobs, left);
        }
        cr_assert_gt(served, 1000);
        while (serve(1) != -2)
                left--;
        cr_assert_eq(left, 0);
        for (int i = 0; i < 8; i++)
                cr_assert(af_list_empty(&owners[i]));
}
