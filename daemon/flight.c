/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flights: one per fragment and one per text under way. af_flight_advance is where states change; everything else reports an event and
 * calls it. A flight goes on for as long as somebody waits, or until the store has taken what it made.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/core.h"

struct af_flight *af_flight_find(struct af_core *core, const struct af_digest *key) {
        return af_digest_table_get(&core->flight_table, key);
}

struct af_flight *af_flight_new(struct af_core *core, const struct af_digest *key, bool is_text, struct af_blob *input,
                                struct af_user *user) {
        struct af_flight *f = calloc(1, sizeof(*f));

        if (!f)
                return NULL;
        f->link.key = *key;
        f->core = core;
        f->is_text = is_text;
        f->input = af_blob_ref(input);
        f->n_held = input->size;
        core->held_bytes += f->n_held;
        f->held_by = user;
        if (user)
                af_user_hold(user, f->n_held);
        f->begin_ns = af_clock_now_ns();
        f->state = AF_FLIGHT_PLAN;
        af_list_init(&f->waiters);
        af_list_append(&core->flights, &f->all);
        af_digest_table_add(&core->flight_table, &f->link);
        af_core_need_tick(core);
        return f;
}

void af_flight_begin(struct af_flight *f, struct af_target *target) {
        if (!target) {
                af_flight_start_plan(f);
                return;
        }
        f->target = *target;
        f->has_target = true;
        f->state = AF_FLIGHT_LOOKUP;
        af_flight_advance(f);
}

void af_flight_want(struct af_flight *f, struct af_worker *worker) {
        af_list_each (req, &f->waiters, struct af_request, in_flight)
                af_worker_want(worker, req);
}

void af_flight_add(struct af_flight *f, struct af_request *req) {
        req->flight = f;
        af_list_append(&f->waiters, &req->in_flight);
        f->n_waiters++;
}

void af_flight_join(struct af_flight *f, struct af_request *req) {
        af_flight_add(f, req);
        af_worker_want(f->worker, req);
        for (uint32_t i = 0; i < f->n_kernels; i++)
                if (f->kernels[i].kernel)
                        af_worker_want(f->kernels[i].kernel->worker, req);
        af_parts_ready(req);
}

void af_flight_drop_plan(struct af_flight *f) {
        for (uint32_t i = 0; i < f->n_kernels; i++) {
                if (f->kernels[i].kernel)
                        af_list_del(&f->kernels[i].in_kernel);
                af_build_unref(f->kernels[i].kernel);
                af_blob_unref(f->kernels[i].binary);
        }
        free(f->kernels);
        f->kernels = NULL;
        f->n_kernels = 0;
        af_plan_view_deinit(&f->plan_view);
        f->plan_view = (struct af_plan_view){0};
        af_blob_clear(&f->plan);
        af_blob_clear(&f->skeleton);
        f->has_reported = false;
}

void af_flight_drop_input(struct af_flight *f) {
        af_blob_clear(&f->input);
        f->core->held_bytes -= f->n_held;
        if (f->held_by)
                af_user_release(f->held_by, f->n_held);
        f->held_by = NULL;
        f->n_held = 0;
}

void af_flight_free(struct af_flight *f) {
        af_worker_cancel(f->worker);
        af_flight_drop_plan(f);
        af_digest_table_del(&f->core->flight_table, &f->link);
        af_list_del(&f->all);
        af_flight_drop_input(f);
        af_blob_unref(f->slot_map);
        af_blob_unref(f->canon);
        af_blob_unref(f->origins);
        af_blob_unref(f->stages);
        af_target_deinit(&f->target);
        af_ready_bundle_unref(f->bundle);
        af_failure_deinit(&f->job_failure);
        af_core_check_drained(f->core);
        free(f);
}

void af_flight_left(struct af_flight *f) {
        /* What the store is writing is finished; texts that are known live until it has them. */
        if (f->n_waiters > 0 || f->state == AF_FLIGHT_COMMIT || f->state == AF_FLIGHT_KNOWN)
                return;
        af_flight_free(f);
}

/* Takes the waiters out, so that the flight can go before they are answered. */
static void detach_waiters(struct af_flight *f, struct af_list *ret_list) {
        af_list_init(ret_list);
        while (!af_list_empty(&f->waiters)) {
                struct af_request *req = af_list_entry(f->waiters.next, struct af_request, in_flight);

                af_list_del(&req->in_flight);
                req->flight = NULL;
                af_sched_unwant(&f->core->workers.sched, &req->wants);
                af_list_append(ret_list, &req->in_flight);
        }
        f->n_waiters = 0;
}

void af_flight_fail(struct af_flight *f, const struct af_failure *failure) {
        struct af_failure copy = af_failure_copy(failure);
        struct af_list list;

        detach_waiters(f, &list);
        af_flight_free(f);
        while (!af_list_empty(&list))
                af_request_fail(af_list_entry(list.next, struct af_request, in_flight), &copy);
        af_failure_deinit(&copy);
}

void af_flight_answer(struct af_flight *f, struct af_ready_bundle *bundle, bool from_store) {
        uint64_t us = f->compiled_any ? (af_clock_now_ns() - f->begin_ns) / 1000 : 0;
        struct af_digest fragment = f->link.key;
        bool first = true;
        struct af_list list;

        detach_waiters(f, &list);
        while (!af_list_empty(&list)) {
                struct af_request *req = af_list_entry(list.next, struct af_request, in_flight);
                enum af_hit hit = from_store ? AF_HIT_STORE : req->joined || !first ? AF_HIT_JOINED : AF_HIT_COMPILED;

                af_list_del(&req->in_flight);
                if (!req->joined)
                        first = false;
                f->core->stats.n_hits_store += hit == AF_HIT_STORE;
                f->core->stats.n_joined += hit == AF_HIT_JOINED;
                af_request_answer(req, &fragment, bundle, hit, us);
        }
}

/* Those who only looked up hear that there is nothing. True where the flight is gone for want of others. */
static bool drop_lookups(struct af_flight *f) {
        struct af_failure none = {.code = AF_ERROR_NOT_FOUND, .text = (char *)"not in the store"};

        af_list_each (req, &f->waiters, struct af_request, in_flight)
                if (req->lookup_only)
                        af_request_fail(req, &none);
        if (f->n_waiters > 0)
                return false;
        af_flight_free(f);
        return true;
}

/* False where it has to wait, or is gone. */
static bool env_ready(struct af_flight *f) {
        if (!f->env)
                f->env = af_environment_get(f->core, &f->target);
        if (!f->env) {
                struct af_failure failure = af_failure_make(AF_ERROR_BUSY, true, "out of memory");

                af_flight_fail(f, &failure);
                af_failure_deinit(&failure);
                return false;
        }
        switch (af_environment_check(f->env)) {
        case AF_ENVIRONMENT_READY:
                return true;
        case AF_ENVIRONMENT_FAILED:
                af_flight_fail(f, &f->env->failure);
                return false;
        case AF_ENVIRONMENT_NEW:
        case AF_ENVIRONMENT_LOADING:
                return false;
        }
        return false;
}

static void answer_stored(struct af_flight *f, struct af_ready_bundle *bundle) {
        af_flight_answer(f, bundle, true);
        af_ready_bundle_unref(bundle);
        af_flight_free(f);
}

static void wait_for_kernels(struct af_flight *f) {
        f->state = AF_FLIGHT_KERNELS;
        af_list_each (req, &f->waiters, struct af_request, in_flight)
                af_parts_ready(req);
        af_flight_advance(f);
}

static void look_up(struct af_flight *f) {
        struct af_ready_bundle *bundle = NULL;
        struct af_blob *skeleton = NULL;
        bool replan = true;
        int r;

        f->looked_up = true;
        r = af_lookup_bundle(f->core, &f->link.key, f->env, &bundle, &skeleton);
        if (r == 0) {
                answer_stored(f, bundle);
                return;
        }
        if (drop_lookups(f)) {
                af_blob_unref(skeleton);
                return;
        }
        f->environment = f->env->digest;
        af_flight_missed(f, skeleton != NULL);
        if (skeleton) {
                /* The bundle is there, a kernel of it is gone: that one alone is compiled again. */
                f->skeleton = skeleton;
                if (af_flight_gather(f, &replan) == 0 && !replan) {
                        wait_for_kernels(f);
                        return;
                }
                af_flight_drop_plan(f);
        }
        af_flight_start_plan(f);
}

static void check_plan(struct af_flight *f) {
        bool replan = false;
        int r;

        if (!af_digest_equal(&f->reported, &f->env->digest)) {
                af_environment_invalidate(f->env);
                af_flight_restart(f, "rules or toolchain changed while it was planned");
                return;
        }
        f->environment = f->env->digest;
        r = af_flight_gather(f, &replan);
        if (r == 0 && !replan) {
                af_flight_fallbacks(f);
                wait_for_kernels(f);
                return;
        }
        struct af_failure failure = af_failure_make(r == -ENOMEM ? AF_ERROR_BUSY : AF_ERROR_INTERNAL, r == -ENOMEM,
                                                    r == -ENOMEM ? "out of memory" : "the plan does not hold together");

        af_flight_fail(f, &failure);
        af_failure_deinit(&failure);
}

/* A job has told target and environment; it goes on planning meanwhile. */
static void check_planning(struct af_flight *f) {
        struct af_ready_bundle *bundle = NULL;
        struct af_blob *skeleton = NULL;

        if (!f->has_reported || !env_ready(f))
                return;
        if (!f->looked_up) {
                f->looked_up = true;
                if (af_lookup_bundle(f->core, &f->link.key, f->env, &bundle, &skeleton) == 0) {
                        answer_stored(f, bundle);
                        return;
                }
                af_flight_missed(f, skeleton != NULL);
                af_blob_unref(skeleton);
        }
        if (f->planned)
                check_plan(f);
}

/* True where the flight went another way because of a kernel. Every flight learns of a fault at once, so that nobody keeps a dead kernel.
 */
static bool kernel_fault(struct af_flight *f) {
        for (uint32_t i = 0; i < f->n_kernels; i++) {
                struct af_build *k = f->kernels[i].kernel;

                if (k && k->changed) {
                        af_environment_invalidate(f->env);
                        af_flight_restart(f, "the toolchain changed while a kernel was compiled");
                        return true;
                }
                if (k && k->failed) {
                        af_flight_fail(f, &k->failure);
                        return true;
                }
        }
        return false;
}

static void check_kernels(struct af_flight *f) {
        if (kernel_fault(f))
                return;
        for (uint32_t i = 0; i < f->n_kernels; i++) {
                struct af_build *k = f->kernels[i].kernel;

                if (k && !k->binary)
                        return;
                if (!f->kernels[i].binary)
                        f->kernels[i].binary = af_blob_ref(k->binary);
        }
        af_flight_publish(f);
}

void af_flight_advance(struct af_flight *f) {
        switch (f->state) {
        case AF_FLIGHT_LOOKUP:
                if (env_ready(f))
                        look_up(f);
                break;
        case AF_FLIGHT_PLAN:
                check_planning(f);
                break;
        case AF_FLIGHT_KERNELS:
                check_kernels(f);
                break;
        case AF_FLIGHT_COMMIT:
        case AF_FLIGHT_KNOWN:
                break;
        }
}

void af_flight_restart(struct af_flight *f, const char *why) {
        af_worker_cancel(f->worker);
        f->worker = NULL;
        af_flight_drop_plan(f);
        if (++f->n_tries >= AF_MAX_FLIGHT_TRIES) {
                struct af_failure failure = af_failure_make(AF_ERROR_INTERNAL, true, "%s, %u times in a row", why, f->n_tries);

                af_flight_fail(f, &failure);
                af_failure_deinit(&failure);
                return;
        }
        f->core->stats.n_retries++;
        f->looked_up = false;
        af_log(AF_LOG_INFO, "planning a fragment again: %s", why);
        f->state = AF_FLIGHT_LOOKUP;
        f->env = NULL;
        if (f->has_target)
                af_flight_advance(f);
        else
                af_flight_start_plan(f);
}

void af_flights_env_changed(struct af_core *core, struct af_environment *env) {
        af_list_each (f, &core->flights, struct af_flight, all)
                if (f->env == env)
                        af_flight_advance(f);
}

const char *af_flight_doing(const struct af_flight *f) {
        switch (f->state) {
        case AF_FLIGHT_LOOKUP:
                return "reading rules and toolchain";
        case AF_FLIGHT_PLAN:
                return f->worker && !af_worker_running(f->worker) ? "queued" : "planning";
        case AF_FLIGHT_KERNELS:
                for (uint32_t i = 0; i < f->n_kernels; i++)
                        if (f->kernels[i].kernel && af_worker_running(f->kernels[i].kernel->worker))
                                return "compiling";
                return "queued";
        case AF_FLIGHT_COMMIT:
        case AF_FLIGHT_KNOWN:
                return "storing";
        }
        return "waiting";
}
