/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Environments. A job loads one and tells its digest, what compile jobs need of the toolchain, and every file that it depends on; the core
 * looks at those files by stat, at most five times a second. A changed one is loaded again before anything else is answered.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/core.h"

#define CHECK_NS       200000000ull
#define RETRY_NS       1000000000ull /* a failed load is not tried again sooner */
#define CLOCK_GRAIN_NS 20000000l     /* of a file's ctime */

static void watch_stat(const char *path, uint64_t id[5], struct timespec *ret_ctime) {
        struct stat st;

        memset(id, 0, 5 * sizeof(*id));
        *ret_ctime = (struct timespec){0};
        if (stat(path, &st) < 0)
                return;
        id[0] = st.st_dev;
        id[1] = st.st_ino;
        id[2] = S_ISDIR(st.st_mode) ? 0 : (uint64_t)st.st_size;
        id[3] = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
        id[4] = (uint64_t)st.st_ctim.tv_sec * 1000000000u + (uint64_t)st.st_ctim.tv_nsec;
        *ret_ctime = st.st_ctim;
}

static void watches_free(struct af_environment *env) {
        for (uint32_t i = 0; i < env->n_watches; i++)
                free(env->watches[i].path);
        free(env->watches);
        env->watches = NULL;
        env->n_watches = 0;
}

void af_environment_free(struct af_environment *env) {
        af_worker_cancel(env->worker);
        af_hot_environment_gone(env);
        af_list_del(&env->link);
        watches_free(env);
        af_target_deinit(&env->target);
        af_blob_unref(env->toolchain);
        af_blob_unref(env->ingredients);
        af_blob_unref(env->told);
        af_failure_deinit(&env->failure);
        free(env->version);
        free(env);
}

/* A default by name or by silence is one environment. Borrows. */
static struct af_target resolve(const struct af_core *core, const struct af_target *asked) {
        return (struct af_target){
                .soc = asked->soc[0] ? asked->soc : (char *)core->config->default_soc,
                .toolchain = asked->toolchain[0] ? asked->toolchain : (char *)core->config->default_toolchain,
                .twin = asked->twin == AF_TWIN_DEFAULT ? AF_TWIN_FAST : asked->twin,
        };
}

struct af_environment *af_environment_find(struct af_core *core, const struct af_target *asked) {
        struct af_target target = resolve(core, asked);

        af_list_each (e, &core->environments, struct af_environment, link)
                if (af_target_equal(&e->target, &target))
                        return e;
        return NULL;
}

struct af_environment *af_environment_get(struct af_core *core, const struct af_target *asked) {
        struct af_target target = resolve(core, asked);
        struct af_environment *env = af_environment_find(core, asked);

        if (env)
                return env;
        env = calloc(1, sizeof(*env));
        if (!env || af_target_init(&env->target, target.soc, target.toolchain, target.twin)) {
                free(env);
                return NULL;
        }
        env->core = core;
        af_list_append(&core->environments, &env->link);
        return env;
}

/* Whether the file changed while (or a clock's grain before) it was read. */
static bool too_new(const struct timespec *ctime, const struct timespec *began) {
        int64_t ns = (ctime->tv_sec - began->tv_sec) * 1000000000ll + ctime->tv_nsec - began->tv_nsec;

        return ns > -CLOCK_GRAIN_NS;
}

static int take_environment(struct af_environment *env, const struct af_job_env *e) {
        struct af_blob *toolchain = af_blob_copy(e->toolchain, e->n_toolchain);
        char *version = strdup(e->version ? e->version : "");
        struct af_digest before;

        watches_free(env);
        env->watches = calloc(e->n_watch + 1, sizeof(*env->watches));
        if (!toolchain || !version || !env->watches) {
                af_blob_unref(toolchain);
                free(version);
                return -1;
        }
        env->unsettled = false;
        for (uint32_t i = 0; i < e->n_watch; i++) {
                struct af_watch *w = &env->watches[env->n_watches];
                struct timespec ctime;

                w->path = strdup(e->watch[i]);
                if (!w->path)
                        continue;
                watch_stat(w->path, w->id, &ctime);
                env->unsettled |= too_new(&ctime, &env->load_began);
                env->n_watches++;
        }
        af_blob_unref(env->toolchain);
        af_blob_unref(env->ingredients);
        free(env->version);
        env->ingredients = af_blob_copy(e->ingredients, e->n_ingredients);
        env->toolchain = toolchain;
        env->version = version;
        before = env->digest;
        env->digest = e->digest;
        if (!af_digest_equal(&before, &env->digest))
                env->recorded = false;
        af_ledger_environment(env->core->ledger, &env->digest, env->target.soc, env->target.toolchain, version);
        af_event_environment(env, env->loaded_before ? &before : NULL);
        env->loaded_before = true;
        return 0;
}

static void failed(struct af_environment *env, enum af_error_code code, bool retryable, const char *text) {
        af_failure_deinit(&env->failure);
        env->failure = af_failure_make(code, retryable, "%s", text);
        env->state = AF_ENVIRONMENT_FAILED;
        env->failed_ns = af_clock_now_ns();
        af_log(AF_LOG_WARNING, "environment of %s, %s: %s", env->target.soc, env->target.toolchain, text);
}

static void on_message(void *owner, uint32_t type, const void *p, size_t n) {
        struct af_environment *env = owner;
        struct af_cursor c = af_cursor_make(p, n);

        if (type == AF_JOB_MSG_ENV) {
                af_blob_clear(&env->told);
                env->told = af_blob_copy(p, n);
        } else if (type == AF_JOB_MSG_ERROR) {
                enum af_error_code code = af_cursor_u32(&c);

                env->job_fault = af_cursor_u32(&c);
                af_failure_deinit(&env->failure);
                if (!c.error)
                        env->failure = af_failure_make(code, af_error_retryable(code), "%.*s", (int)(n - c.at), (const char *)p + c.at);
        }
}

static void load(struct af_environment *env);

/* Killed, or changed under its hands: that says nothing about what is installed, and is tried once more. True where it is. */
static bool retry(struct af_environment *env, const struct af_worker_end *end) {
        bool lost = !end->finished && !end->timed_out && !end->start_error;

        if (env->retried || (!lost && env->job_fault != AF_JOB_FAULT_KILLED && env->job_fault != AF_JOB_FAULT_CHANGED))
                return false;
        env->core->stats.n_retries++;
        load(env);
        env->retried = true;
        return env->state == AF_ENVIRONMENT_LOADING;
}

static void on_end(void *owner, const struct af_worker_end *end) {
        struct af_environment *env = owner;
        struct af_job_env e;
        char text[160];

        env->worker = NULL;
        if (retry(env, end))
                return;
        if (!end->finished) {
                failed(env, AF_ERROR_JOB_DIED, true, af_worker_end_text(end, text));
        } else if (env->failure.code) {
                struct af_failure told = env->failure;

                env->failure = (struct af_failure){0};
                failed(env, told.code, told.retryable || env->job_fault == AF_JOB_FAULT_CHANGED, told.text ? told.text : "unusable");
                af_failure_deinit(&told);
        } else if (!env->told || af_jobwire_read_environment(env->told->data, env->told->size, &e)) {
                failed(env, AF_ERROR_INTERNAL, true, "the job gave no answer");
        } else {
                char hex[AF_DIGEST_HEX_SIZE];

                if (take_environment(env, &e)) {
                        failed(env, AF_ERROR_BUSY, true, "out of memory");
                } else {
                        env->state = AF_ENVIRONMENT_READY;
                        env->checked_ns = af_clock_now_ns();
                        env->core->stats.n_environment_loads++;
                        af_digest_hex(&env->digest, hex);
                        af_log(AF_LOG_INFO, "environment %.16s: %s", hex, env->version);
                        af_hot_environment_used(env);
                }
                free(e.watch);
        }
        af_blob_clear(&env->told);
        af_flights_env_changed(env->core, env);
}

static struct af_blob *make_input(void *owner) {
        struct af_environment *env = owner;
        struct af_job_limits limits = af_core_job_limits(env->core, AF_JOB_ENV);
        struct af_buf buf = AF_BUF_INIT;
        struct af_blob *input;

        clock_gettime(CLOCK_REALTIME, &env->load_began);
        af_jobwire_write_env(&buf, &limits, &env->core->env_config, &env->target);
        input = af_blob_take_buf(&buf);
        af_buf_deinit(&buf);
        return input;
}

static void load(struct af_environment *env) {
        static const struct af_worker_ops ops = {make_input, on_message, on_end};
        char label[96];

        af_hot_environment_gone(env);
        af_negatives_clear(&env->core->plan_negatives); /* other rules may take what these refused */
        af_failure_deinit(&env->failure);
        af_blob_clear(&env->told);
        env->job_fault = 0;
        env->retried = false;
        env->worker = af_worker_start(env->core, AF_JOB_ENV, false, env, &ops);
        snprintf(label, sizeof(label), "%.40s, %.40s", env->target.soc, env->target.toolchain);
        af_worker_set_label(env->worker, label);
        if (env->worker)
                env->state = AF_ENVIRONMENT_LOADING;
        else
                failed(env, AF_ERROR_BUSY, true, "out of memory");
}

static bool files_changed(struct af_environment *env) {
        for (uint32_t i = 0; i < env->n_watches; i++) {
                struct timespec ctime;
                uint64_t id[5];

                watch_stat(env->watches[i].path, id, &ctime);
                if (memcmp(id, env->watches[i].id, sizeof(id)) != 0)
                        return true;
        }
        return false;
}

enum af_environment_state af_environment_check(struct af_environment *env) {
        uint64_t now = af_clock_now_ns();

        switch (env->state) {
        case AF_ENVIRONMENT_NEW:
                load(env);
                break;
        case AF_ENVIRONMENT_FAILED:
                if (now - env->failed_ns > RETRY_NS)
                        load(env);
                break;
        case AF_ENVIRONMENT_READY:
                if (now - env->checked_ns < CHECK_NS)
                        break;
                env->checked_ns = now;
                if (env->unsettled || files_changed(env))
                        load(env);
                break;
        case AF_ENVIRONMENT_LOADING:
                break;
        }
        return env->state;
}

void af_environment_invalidate(struct af_environment *env) {
        if (env && env->state == AF_ENVIRONMENT_READY) {
                af_hot_environment_gone(env);
                env->state = AF_ENVIRONMENT_NEW;
        }
}

void af_environments_invalidate(struct af_core *core) {
        af_list_each (env, &core->environments, struct af_environment, link) {
                af_worker_cancel(env->worker);
                env->worker = NULL;
                af_hot_environment_gone(env);
                env->state = AF_ENVIRONMENT_NEW;
        }
        /* Whoever waits for one has it loaded anew. */
        af_list_each (f, &core->flights, struct af_flight, all)
                if (f->env)
                        af_flight_advance(f);
}

bool af_environment_current(struct af_core *core, struct af_environment *env, const struct af_digest *digest) {
        return af_environment_check(env) == AF_ENVIRONMENT_READY && af_digest_equal(&env->digest, digest);
}
