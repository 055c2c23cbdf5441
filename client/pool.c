/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads for runs whose caller has none of its own. They start at the first launch, sleep between launches, and are started anew in a
 * forked child. One launch at a time has them; another that comes meanwhile runs in its own thread alone.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macros.h"
#include "client/autofuse.h"
#include "client/error.h"

#define POOL_MAX_THREADS 1024u

struct autofuse_pool {
        pthread_mutex_t lock; /* of all below but next */
        pthread_cond_t work, done;
        pthread_t *threads;            /* n_started of them */
        uint32_t n_helpers, n_started; /* besides the caller's */
        atomic_int pid;                /* whose threads these are */
        bool busy, stop;
        uint32_t n_inside; /* helpers at work on the launch */
        /* The launch: set while busy. */
        void (*task)(void *arg, uint32_t i);
        void *arg;
        uint32_t n_tasks;
        atomic_uint next; /* task that nobody has taken */
};

static void init_sync(struct autofuse_pool *pool) {
        pthread_mutex_init(&pool->lock, NULL);
        pthread_cond_init(&pool->work, NULL);
        pthread_cond_init(&pool->done, NULL);
}

/* In a forked child, by one thread: the parent's threads are not here, what they held is forgotten. */
static void after_fork(struct autofuse_pool *pool, int pid) {
        int old = atomic_load(&pool->pid);
        if (old == pid || !atomic_compare_exchange_strong(&pool->pid, &old, -1)) {
                while (atomic_load(&pool->pid) == -1)
                        sched_yield();
                return;
        }
        init_sync(pool);
        pool->n_started = pool->n_inside = 0;
        pool->busy = false;
        atomic_store(&pool->next, 0);
        pool->n_tasks = 0;
        atomic_store(&pool->pid, pid);
}

static void take_tasks(struct autofuse_pool *pool) {
        uint32_t i;
        while ((i = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed)) < pool->n_tasks)
                pool->task(pool->arg, i);
}

static void *help(void *userdata) {
        struct autofuse_pool *pool = userdata;
        pthread_mutex_lock(&pool->lock);
        while (!pool->stop) {
                if (!pool->busy || atomic_load_explicit(&pool->next, memory_order_relaxed) >= pool->n_tasks) {
                        pthread_cond_wait(&pool->work, &pool->lock);
                        continue;
                }
                pool->n_inside++;
                pthread_mutex_unlock(&pool->lock);
                take_tasks(pool);
                pthread_mutex_lock(&pool->lock);
                if (--pool->n_inside == 0)
                        pthread_cond_signal(&pool->done);
        }
        pthread_mutex_unlock(&pool->lock);
        return NULL;
}

/* Under the lock. Signals are the program's own business; a thread that cannot be had is done without. */
static void start_threads(struct autofuse_pool *pool, uint32_t n_wanted) {
        sigset_t all, old;
        if (pool->n_started >= n_wanted)
                return;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        while (pool->n_started < n_wanted && pthread_create(&pool->threads[pool->n_started], NULL, help, pool) == 0)
                pool->n_started++;
        pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Under the lock: whether this call got the threads. */
static bool begin(struct autofuse_pool *pool, uint32_t n_tasks, void (*task)(void *arg, uint32_t i), void *arg) {
        if (pool->busy || n_tasks < 2)
                return false;
        start_threads(pool, AF_MIN(pool->n_helpers, n_tasks - 1));
        pool->busy = true;
        pool->task = task;
        pool->arg = arg;
        pool->n_tasks = n_tasks;
        atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
        for (uint32_t i = 0; i < AF_MIN(pool->n_started, n_tasks - 1); i++)
                pthread_cond_signal(&pool->work);
        return true;
}

void autofuse_pool_execute(void *userdata, uint32_t n_tasks, void (*task)(void *arg, uint32_t i), void *arg) {
        struct autofuse_pool *pool = userdata;
        int pid = getpid();
        if (atomic_load_explicit(&pool->pid, memory_order_acquire) != pid)
                after_fork(pool, pid);
        pthread_mutex_lock(&pool->lock);
        bool mine = begin(pool, n_tasks, task, arg);
        pthread_mutex_unlock(&pool->lock);
        if (!mine) {
                for (uint32_t i = 0; i < n_tasks; i++)
                        task(arg, i);
                return;
        }
        take_tasks(pool);
        pthread_mutex_lock(&pool->lock);
        while (pool->n_inside)
                pthread_cond_wait(&pool->done, &pool->lock);
        pool->busy = false;
        pthread_mutex_unlock(&pool->lock);
}

enum autofuse_status autofuse_pool_new(uint32_t n_threads, struct autofuse_pool **ret_pool, struct autofuse_error **ret_error) {
        if (!ret_pool || n_threads == 0 || n_threads > POOL_MAX_THREADS)
                return af_error_set(ret_error, AUTOFUSE_E_ARGUMENT, "autofuse_pool_new: no place for the pool, or not 1 to %u threads",
                                    POOL_MAX_THREADS);
        struct autofuse_pool *pool = calloc(1, sizeof(*pool));
        pthread_t *threads = calloc(n_threads, sizeof(*threads));
        if (!pool || !threads) {
                free(pool);
                free(threads);
                return af_error_set_memory(ret_error);
        }
        pool->threads = threads;
        pool->n_helpers = n_threads - 1;
        atomic_init(&pool->pid, getpid());
        atomic_init(&pool->next, 0);
        init_sync(pool);
        *ret_pool = pool;
        return AUTOFUSE_OK;
}

void autofuse_pool_free(struct autofuse_pool *pool) {
        if (!pool)
                return;
        if (atomic_load(&pool->pid) == getpid()) {
                pthread_mutex_lock(&pool->lock);
                pool->stop = true;
                pthread_cond_broadcast(&pool->work);
                pthread_mutex_unlock(&pool->lock);
                for (uint32_t i = 0; i < pool->n_started; i++)
                        pthread_join(pool->threads[i], NULL);
                pthread_cond_destroy(&pool->work);
                pthread_cond_destroy(&pool->done);
                pthread_mutex_destroy(&pool->lock);
        }
        free(pool->threads);
        free(pool);
}
