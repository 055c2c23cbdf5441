/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "daemon/paths.h"

#define TICK_MS 100

/* ---- failures ---- */

struct af_failure af_failure_make(enum af_error_code code, bool retryable, const char *fmt, ...) {
        struct af_failure f = {.code = code, .retryable = retryable};
        va_list ap;

        va_start(ap, fmt);
        if (vasprintf(&f.text, fmt, ap) < 0)
                f.text = NULL;
        va_end(ap);
        return f;
}

bool af_error_retryable(enum af_error_code code) {
        switch (code) {
        case AF_ERROR_DRAINING:
        case AF_ERROR_BUSY:
        case AF_ERROR_JOB_DIED:
        case AF_ERROR_STORAGE:
                return true;
        case AF_ERROR_PROTOCOL:
        case AF_ERROR_VERSION:
        case AF_ERROR_REFUSED:
        case AF_ERROR_INVALID:
        case AF_ERROR_TOO_LARGE:
        case AF_ERROR_COMPILE:
        case AF_ERROR_DEADLINE:
        case AF_ERROR_CANCELED:
        case AF_ERROR_INTERNAL:
        case AF_ERROR_NOT_FOUND:
        case AF_ERROR_TOOLCHAIN:
                return false;
        }
        return false;
}

struct af_failure af_failure_copy(const struct af_failure *f) {
        struct af_failure copy = *f;

        copy.text = f->text ? strdup(f->text) : NULL;
        return copy;
}

void af_failure_deinit(struct af_failure *f) {
        free(f->text);
        *f = (struct af_failure){0};
}

/* ---- time ---- */

static void on_tick(uv_timer_t *timer) {
        struct af_core *core = timer->data;
        uint64_t now = af_clock_now_ns();
        bool busy = af_workers_tick(core, now);

        busy |= af_requests_tick(core, now);
        af_list_each (conn, &core->conns, struct af_conn, link)
                busy |= af_conn_tick(conn, now);
        af_conns_sweep(core);
        af_clients_sweep(core, false);
        if (core->draining) {
                busy = true;
                if (now - core->drain_ns > core->config->drain_timeout_s * 1000000000ull && core->on_drained) {
                        af_log(AF_LOG_WARNING, "%u requests were not done in time", core->n_requests);
                        core->on_drained(core);
                        return;
                }
        }
        if (!busy) {
                core->ticking = false;
                uv_timer_stop(timer);
        }
}

void af_core_need_tick(struct af_core *core) {
        if (core->ticking || core->closing)
                return;
        core->ticking = true;
        uv_timer_start(&core->tick, on_tick, TICK_MS, TICK_MS);
}

static bool drained(const struct af_core *core) {
        if (!core->draining || core->closing || core->n_requests > 0 || !af_list_empty(&core->flights))
                return false;
        af_list_each (conn, (struct af_list *)&core->conns, struct af_conn, link)
                if (conn->out_head && !conn->doomed && !conn->watcher)
                        return false;
        return true;
}

static void on_kick(uv_timer_t *timer) {
        struct af_core *core = timer->data;

        af_conns_sweep(core);
        if (drained(core) && core->on_drained)
                core->on_drained(core);
        if (!core->closing && af_workers_tick(core, af_clock_now_ns()))
                af_core_need_tick(core);
}

void af_core_kick(struct af_core *core) {
        if (!uv_is_closing((uv_handle_t *)&core->kick) && !uv_is_active((uv_handle_t *)&core->kick))
                uv_timer_start(&core->kick, on_kick, 0, 0);
}

/* ---- configuration ---- */

int af_core_make_env_config(struct af_core *core) {
        const struct af_config *c = core->config;
        bool has_host = false;

        for (uint32_t i = 0; i < c->n_toolchains; i++) {
                core->toolchains[i] = c->toolchains[i];
                has_host |= strcmp(c->toolchains[i].id, "host") == 0;
        }
        core->env_config = (struct af_env_config){.rules_dir = c->rules_dir,
                                                  .extra_rules = c->extra_rules,
                                                  .default_soc = c->default_soc,
                                                  .default_toolchain = c->default_toolchain,
                                                  .salt = c->cache_salt,
                                                  .toolchains = core->toolchains,
                                                  .n_toolchains = c->n_toolchains};
        if (!has_host)
                core->toolchains[core->env_config.n_toolchains++] = (struct af_toolchain_config){.id = "host", .kind = AF_TOOLCHAIN_HOST};
        for (uint32_t i = 0; i < core->env_config.n_toolchains; i++) {
                core->toolchains[i].pch_dir = core->pch_dir;
                core->toolchains[i].tmp_dir = core->tmp_dir;
        }
        return 0;
}

struct af_job_limits af_core_job_limits(const struct af_core *core, enum af_job_kind kind) {
        uint64_t s = kind == AF_JOB_COMPILE ? core->config->compile_timeout_s : core->config->plan_timeout_s;

        /* The time-outs in order: the toolchain's run, then the job as a whole, then (should all else fail) the CPU limit. */
        return (struct af_job_limits){
                .cpu_s = s * 2, .memory_bytes = core->config->job_memory_mib << 20, .timeout_ms = (uint32_t)(s * 950)};
}

static uint64_t count_cores(void) {
        cpu_set_t set;

        return sched_getaffinity(0, sizeof(set), &set) == 0 ? (uint64_t)CPU_COUNT(&set) : 1;
}

static void adopt_config(struct af_core *core, struct af_config *config) {
        core->config = config;
        if (config->jobs == 0)
                config->jobs = count_cores();
        if (config->host_jobs == 0)
                config->host_jobs = AF_MAX(config->jobs, count_cores());
}

/* Descriptors for clients and bundles. */
static void raise_limits(struct af_core *core) {
        struct rlimit limit = {0};

        if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
                limit.rlim_cur = AF_MIN(limit.rlim_max, (rlim_t)1 << 20);
                (void)setrlimit(RLIMIT_NOFILE, &limit);
        }
        core->max_bundles = (uint32_t)AF_MIN(limit.rlim_cur / 2, (rlim_t)UINT32_MAX);
}

/* Compiles of an earlier life that were killed left their files. */
static void clean_tmp(const char *dir) {
        (void)!af_io_remove_tree(dir);
        (void)!af_io_make_dirs(dir, 0700);
}

static int make_paths(struct af_core *core) {
        const struct af_config *c = core->config;

        core->state_dir = c->state_dir ? strdup(c->state_dir) : af_path_state_dir();
        core->job_path = c->job_path ? strdup(c->job_path) : af_path_job();
        if (!core->state_dir || !core->job_path)
                return core->job_path ? -ENOENT : -ENOMEM;
        if (asprintf(&core->pch_dir, "%s/pch", core->state_dir) < 0)
                core->pch_dir = NULL;
        if (c->tmp_dir)
                core->tmp_dir = strdup(c->tmp_dir);
        else if (asprintf(&core->tmp_dir, "%s/tmp", core->state_dir) < 0)
                core->tmp_dir = NULL;
        return core->pch_dir && core->tmp_dir && strlen(core->state_dir) < 3000 ? 0 : -ENOMEM;
}

/* ---- life ---- */

static void on_turn(uv_check_t *check) {
        struct af_core *core = check->data;

        core->n_read_before = core->n_read;
        core->n_read = 0;
}

int af_core_init(struct af_core *core, uv_loop_t *loop, struct af_config *config) {
        core->loop = loop;
        adopt_config(core, config);
        core->start_ns = af_clock_now_ns();
        core->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        core->listener = (struct af_listener){.fd = -1, .lock_fd = -1};
        af_list_init(&core->conns);
        af_list_init(&core->doomed);
        af_list_init(&core->users);
        af_list_init(&core->environments);
        af_list_init(&core->flights);
        af_list_init(&core->questions);
        af_list_init(&core->bundle_lru);
        af_workers_init(&core->workers);
        af_negatives_init(&core->negatives);
        af_negatives_init(&core->plan_negatives);
        raise_limits(core);
        uv_timer_init(loop, &core->tick);
        uv_timer_init(loop, &core->kick);
        uv_timer_init(loop, &core->fd_timer);
        uv_check_init(loop, &core->turn);
        uv_check_start(&core->turn, on_turn);
        core->tick.data = core->kick.data = core->fd_timer.data = core->turn.data = core;
        af_events_init(core);
        af_gate_child_init(core);
        af_hot_init(core);
        return make_paths(core);
}

/* The default one is loaded before anyone asks, so that a hello can tell its digest. */
static void load_default_environment(struct af_core *core) {
        struct af_environment *env = af_environment_get(core, &(struct af_target){(char *)"", (char *)"", AF_TWIN_DEFAULT});

        if (env)
                (void)af_environment_check(env);
}

static void on_listen(uv_poll_t *poll, int status, int events) {
        af_conn_accept(poll->data);
}

static void on_store(uv_poll_t *poll, int status, int events) {
        struct af_core *core = poll->data;

        af_store_dispatch(core->store);
}

static void on_ledger(uv_poll_t *poll, int status, int events) {
        struct af_core *core = poll->data;

        af_ledger_dispatch(core->ledger);
}

int af_core_start(struct af_core *core) {
        char path[4096];
        int r;

        if (!af_store_read_only(core->store)) {
                snprintf(path, sizeof(path), "%s/jobs", core->state_dir);
                (void)mkdir(path, 0700);
                core->stats.n_orphans = af_orphans_end(core->state_dir);
                if (core->stats.n_orphans)
                        af_log(AF_LOG_WARNING, "ended %u processes that an earlier server left", (unsigned)core->stats.n_orphans);
                if (!core->config->tmp_dir)
                        clean_tmp(core->tmp_dir);
        }
        r = af_core_make_env_config(core);
        if (r == 0)
                r = uv_poll_init(core->loop, &core->store_poll, af_store_fd(core->store));
        if (r < 0)
                return r;
        core->store_poll.data = core;
        uv_poll_start(&core->store_poll, UV_READABLE, on_store);
        if (core->ledger && uv_poll_init(core->loop, &core->ledger_poll, af_ledger_fd(core->ledger)) == 0) {
                core->ledger_poll.data = core;
                uv_poll_start(&core->ledger_poll, UV_READABLE, on_ledger);
        }
        r = uv_poll_init(core->loop, &core->listen_poll, core->listener.fd);
        if (r < 0)
                return r;
        core->listen_poll.data = core;
        uv_poll_start(&core->listen_poll, UV_READABLE, on_listen);
        core->listening = true;
        load_default_environment(core);
        af_hot_show(core);
        af_gate_child_start(core);
        return 0;
}

void af_core_reload(struct af_core *core, struct af_config *config) {
        af_event_server(core, "configuration read again");
        adopt_config(core, config);
        (void)!af_core_make_env_config(core);
        af_bundle_cache_clear(core); /* what a fragment's default stands for may be another */
        af_negatives_clear(&core->negatives);
        af_negatives_clear(&core->plan_negatives);
        af_environments_invalidate(core);
        load_default_environment(core);
        af_gate_child_start(core);
        af_core_kick(core);
}

static void stop_listening(struct af_core *core) {
        if (!core->listening)
                return;
        core->listening = false;
        uv_poll_stop(&core->listen_poll);
        uv_close((uv_handle_t *)&core->listen_poll, NULL);
        af_listener_close(&core->listener);
}

void af_core_check_drained(struct af_core *core) {
        if (drained(core))
                af_core_kick(core);
}

void af_core_drain(struct af_core *core) {
        if (core->draining)
                return;
        af_admin_stop(core, NULL, 0);
        stop_listening(core);
        af_event_server(core, "draining");
        af_events_flush(core);
        core->draining = true;
        af_list_each (conn, &core->conns, struct af_conn, link)
                if (conn->state == AF_CONN_OPEN)
                        af_reply_drain(conn);
        core->drain_ns = af_clock_now_ns();
        af_core_need_tick(core);
        af_core_check_drained(core);
}

void af_core_close(struct af_core *core) {
        if (core->closing)
                return;
        core->closing = true;
        af_admin_stop(core, NULL, 0);
        stop_listening(core);
        af_list_each (conn, &core->conns, struct af_conn, link) {
                struct af_failure f = {.code = AF_ERROR_DRAINING, .retryable = true, .text = (char *)"the server is going down"};

                af_list_each (req, &conn->requests, struct af_request, in_conn)
                        af_request_fail(req, &f);
                af_conn_close(conn);
        }
        /* What the store writes ends in its callbacks. */
        af_list_each (flight, &core->flights, struct af_flight, all)
                if (flight->state != AF_FLIGHT_COMMIT && flight->state != AF_FLIGHT_KNOWN)
                        af_flight_free(flight);
        af_list_each (env, &core->environments, struct af_environment, link) {
                af_worker_cancel(env->worker);
                env->worker = NULL;
        }
        af_workers_close(core);
        uv_close((uv_handle_t *)&core->tick, NULL);
        uv_close((uv_handle_t *)&core->kick, NULL);
        uv_close((uv_handle_t *)&core->fd_timer, NULL);
        uv_close((uv_handle_t *)&core->turn, NULL);
        af_events_close(core);
        af_gate_child_close(core);
        af_hot_close(core);
        if (core->store_poll.data) {
                uv_poll_stop(&core->store_poll);
                uv_close((uv_handle_t *)&core->store_poll, NULL);
        }
        if (core->ledger_poll.data) {
                uv_poll_stop(&core->ledger_poll);
                uv_close((uv_handle_t *)&core->ledger_poll, NULL);
        }
}

void af_core_deinit(struct af_core *core) {
        af_listener_close(&core->listener);
        af_bundle_cache_clear(core);
        af_list_each (env, &core->environments, struct af_environment, link)
                af_environment_free(env);
        af_clients_sweep(core, true);
        af_negatives_clear(&core->negatives);
        af_negatives_clear(&core->plan_negatives);
        af_hot_deinit(core);
        if (core->reserve_fd >= 0)
                close(core->reserve_fd);
        af_gate_child_deinit(core);
        free(core->state_dir);
        free(core->job_path);
        free(core->tmp_dir);
        free(core->pch_dir);
}
