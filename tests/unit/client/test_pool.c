/* SPDX-License-Identifier: Apache-2.0 */
/* Pools: each task once, whoever asks at once, in forked children too. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macros.h"
#include "client/autofuse.h"

#define N_TASKS 64u

struct counts {
        atomic_uint of[N_TASKS];
        struct autofuse_pool *pool;
        struct counts *inner; /* launched from within a task */
};

static void task(void *arg, uint32_t i) {
        struct counts *c = arg;
        atomic_fetch_add(&c->of[i], 1);
        if (c->inner && i == 3)
                autofuse_pool_execute(c->pool, N_TASKS, task, c->inner);
}

static bool each_is(const struct counts *c, uint32_t n_tasks, uint32_t n) {
        for (uint32_t i = 0; i < N_TASKS; i++)
                if (atomic_load(&c->of[i]) != (i < n_tasks ? n : 0))
                        return false;
        return true;
}

static struct autofuse_pool *make(uint32_t n_threads) {
        struct autofuse_pool *pool = NULL;
        cr_assert_eq(autofuse_pool_new(n_threads, &pool, NULL), AUTOFUSE_OK);
        return pool;
}

Test(pool, runs_each_task_once) {
        for (uint32_t n_threads = 1; n_threads < 9; n_threads++) {
                struct autofuse_pool *pool = make(n_threads);
                for (uint32_t n = 0; n <= N_TASKS; n += 1 + n / 3) {
                        struct counts c = {0};
                        for (uint32_t k = 0; k < 20; k++)
                                autofuse_pool_execute(pool, n, task, &c);
                        cr_assert(each_is(&c, n, 20));
                }
                autofuse_pool_free(pool);
        }
}

Test(pool, a_launch_within_a_launch_runs_in_its_own_thread) {
        struct autofuse_pool *pool = make(4);
        struct counts inner = {0}, outer = {.pool = pool, .inner = &inner};
        for (uint32_t k = 0; k < 100; k++)
                autofuse_pool_execute(pool, N_TASKS, task, &outer);
        cr_assert(each_is(&outer, N_TASKS, 100));
        cr_assert(each_is(&inner, N_TASKS, 100));
        autofuse_pool_free(pool);
}

struct gate {
        pthread_barrier_t barrier;
        pthread_t seen[2];
        bool blocked[2];
};

static void meet(void *arg, uint32_t i) {
        struct gate *g = arg;
        sigset_t set;
        pthread_sigmask(SIG_SETMASK, NULL, &set);
        g->seen[i] = pthread_self();
        g->blocked[i] = sigismember(&set, SIGUSR1);
        pthread_barrier_wait(&g->barrier); /* passes only where two threads are at work */
}

Test(pool, tasks_run_at_the_same_time, .timeout = 300) {
        struct autofuse_pool *pool = make(2);
        struct gate g;
        pthread_barrier_init(&g.barrier, NULL, 2);
        for (uint32_t k = 0; k < 50; k++) {
                autofuse_pool_execute(pool, 2, meet, &g);
                cr_assert(!pthread_equal(g.seen[0], g.seen[1]));
        }
        pthread_barrier_destroy(&g.barrier);
        autofuse_pool_free(pool);
}

Test(pool, its_threads_take_no_signals) {
        struct autofuse_pool *pool = make(2);
        struct gate g;
        sigset_t set;
        pthread_barrier_init(&g.barrier, NULL, 2);
        autofuse_pool_execute(pool, 2, meet, &g);
        for (uint32_t i = 0; i < 2; i++)
                cr_assert_eq(g.blocked[i], !pthread_equal(g.seen[i], pthread_self()));
        pthread_sigmask(SIG_SETMASK, NULL, &set);
        cr_assert(!sigismember(&set, SIGUSR1));
        pthread_barrier_destroy(&g.barrier);
        autofuse_pool_free(pool);
}

static void *ask(void *arg) {
        struct counts *c = arg;
        for (uint32_t k = 0; k < 300; k++)
                autofuse_pool_execute(c->pool, N_TASKS, task, c);
        return NULL;
}

Test(pool, many_ask_at_once) {
        struct autofuse_pool *pool = make(3);
        struct counts c[4] = {0};
        pthread_t threads[4];
        for (uint32_t i = 0; i < 4; i++) {
                c[i].pool = pool;
                cr_assert_eq(pthread_create(&threads[i], NULL, ask, &c[i]), 0);
        }
        for (uint32_t i = 0; i < 4; i++) {
                pthread_join(threads[i], NULL);
                cr_assert(each_is(&c[i], N_TASKS, 300));
        }
        autofuse_pool_free(pool);
}

Test(pool, a_forked_child_has_threads_of_its_own) {
        struct autofuse_pool *pool = make(2);
        struct gate g;
        pthread_barrier_init(&g.barrier, NULL, 2);
        autofuse_pool_execute(pool, 2, meet, &g);
        pid_t pid = fork();
        cr_assert_geq(pid, 0);
        if (pid == 0) {
                alarm(200);
                pthread_barrier_init(&g.barrier, NULL, 2);
                for (uint32_t k = 0; k < 10; k++)
                        autofuse_pool_execute(pool, 2, meet, &g);
                autofuse_pool_free(pool);
                _exit(pthread_equal(g.seen[0], g.seen[1]) ? 1 : 0);
        }
        int status = -1;
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        autofuse_pool_execute(pool, 2, meet, &g);
        autofuse_pool_free(pool);
}

Test(pool, what_it_refuses) {
        struct autofuse_pool *pool = NULL;
        struct autofuse_error *error = NULL;
        cr_assert_eq(autofuse_pool_new(0, &pool, &error), AUTOFUSE_E_ARGUMENT);
        cr_assert_not_null(error);
        autofuse_error_free(error);
        cr_assert_eq(autofuse_pool_new(1u << 20, &pool, NULL), AUTOFUSE_E_ARGUMENT);
        cr_assert_eq(autofuse_pool_new(2, NULL, NULL), AUTOFUSE_E_ARGUMENT);
        cr_assert_null(pool);
        autofuse_pool_free(NULL);
        autofuse_pool_free(make(5)); /* never used: no thread to end */
}
