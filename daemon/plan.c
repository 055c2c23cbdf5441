/* SPDX-License-Identifier: Apache-2.0 */
/* Plan jobs of flights, and the kernels that a plan asks for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/core.h"

static void fail_job(struct af_flight *f, enum af_error_code code, bool retryable, const char *what, const char *text) {
        struct af_failure failure = af_failure_make(code, retryable, "%s%s", what, text);

        af_flight_fail(f, &failure);
        af_failure_deinit(&failure);
}

/* ---- texts: the key is told before the planning ---- */

static void text_stored(void *userdata, int r) {
        af_flight_free(userdata);
}

/* The text flight stays, without its job and waiters, until its record is in the store. */
static void remember_text(struct af_flight *f) {
        AF_CLEANUP(af_buf_deinit) struct af_buf buf = AF_BUF_INIT;
        int r;

        f->state = AF_FLIGHT_KNOWN;
        af_flight_drop_input(f);
        af_buf_put(&buf, f->fragment.bytes, sizeof(f->fragment.bytes));
        af_buf_put(&buf, f->slot_map->data, f->slot_map->size);
        r = af_buf_error(&buf);
        if (r == 0)
                r = af_store_put(
                        f->core->store,
                        &(struct af_store_record){AF_TABLE_TEXTS, f->link.key.bytes, sizeof(f->link.key.bytes), buf.data, buf.size}, 1,
                        text_stored, f);
        if (r)
                af_flight_free(f);
}

/* Where the job goes along they go on wanting it: what it takes is known at its end. */
static void move_waiters(struct af_flight *from, struct af_flight *to) {
        while (!af_list_empty(&from->waiters)) {
                struct af_request *req = af_list_entry(from->waiters.next, struct af_request, in_flight);

                af_list_del(&req->in_flight);
                from->n_waiters--;
                af_blob_unref(req->slot_map);
                req->slot_map = af_blob_ref(from->slot_map);
                req->fragment = to->link.key;
                if (from->worker) {
                        af_sched_unwant(&from->core->workers.sched, &req->wants);
                        af_flight_join(to, req);
                } else {
                        af_flight_add(to, req);
                }
        }
}

/* The fragment's own flight: one that was there, which makes this job superfluous, or a new one that takes the job over. */
static void text_known(struct af_flight *f, const struct af_job_key *key, struct af_blob *canon) {
        struct af_core *core = f->core;
        struct af_flight *g = af_flight_find(core, &key->fragment);
        char hex[AF_DIGEST_HEX_SIZE];

        f->fragment = key->fragment;
        af_blob_unref(f->canon);
        f->canon = af_blob_ref(canon);
        if (g) {
                af_list_each (req, &f->waiters, struct af_request, in_flight) {
                        req->joined = true;
                        af_event_joined(req, g->n_waiters + 1);
                }
                move_waiters(f, g);
                af_worker_cancel(f->worker);
                f->worker = NULL;
                remember_text(f);
                return;
        }
        g = af_flight_new(core, &key->fragment, false, canon, f->held_by);
        if (!g || af_target_init(&g->target, key->soc, key->toolchain, key->twin)) {
                if (g)
                        af_flight_free(g);
                fail_job(f, AF_ERROR_BUSY, true, "out of memory", "");
                return;
        }
        g->has_target = true;
        g->begin_ns = f->begin_ns;
        g->retried_alone = f->retried_alone;
        g->has_reported = true;
        g->reported = key->environment;
        g->worker = f->worker;
        f->worker = NULL;
        af_worker_set_owner(g->worker, g);
        af_digest_hex(&g->link.key, hex);
        af_worker_set_label(g->worker, hex);
        move_waiters(f, g);
        remember_text(f);
        af_flight_advance(g);
}

static void on_key(struct af_flight *f, const struct af_job_key *key) {
        if (f->is_text) {
                struct af_blob *canon = af_blob_copy(key->canon, key->n_canon);

                f->slot_map = af_blob_copy(key->slot_map, key->n_slot_map);
                if (canon && f->slot_map)
                        text_known(f, key, canon);
                else
                        fail_job(f, AF_ERROR_BUSY, true, "out of memory", "");
                af_blob_unref(canon);
                return;
        }
        if (!af_digest_equal(&key->fragment, &f->link.key)) {
                fail_job(f, AF_ERROR_INTERNAL, false, "the plan job read another fragment", "");
                return;
        }
        if (!f->has_target && af_target_init(&f->target, key->soc, key->toolchain, key->twin)) {
                fail_job(f, AF_ERROR_BUSY, true, "out of memory", "");
                return;
        }
        f->has_target = f->has_reported = true;
        f->reported = key->environment;
        af_flight_advance(f);
}

/* ---- the job ---- */

static void on_message(void *owner, uint32_t type, const void *p, size_t n) {
        struct af_flight *f = owner;
        struct af_job_key key;
        struct af_cursor c;

        switch (type) {
        case AF_JOB_MSG_KEY:
                if (!f->has_reported && af_jobwire_read_key(p, n, &key) == 0)
                        on_key(f, &key);
                break;
        case AF_JOB_MSG_PLAN:
                af_blob_clear(&f->plan);
                f->plan = af_blob_copy(p, n);
                break;
        case AF_JOB_MSG_ERROR:
                c = af_cursor_make(p, n);
                af_failure_deinit(&f->job_failure);
                f->job_failure.code = af_cursor_u32(&c);
                f->job_fault = af_cursor_u32(&c);
                if (!c.error)
                        f->job_failure = af_failure_make(f->job_failure.code, af_error_retryable(f->job_failure.code), "%.*s",
                                                         (int)(n - c.at), (const char *)p + c.at);
                break;
        case AF_JOB_MSG_STAGES:
                af_blob_clear(&f->stages);
                f->stages = af_blob_copy(p, n);
                break;
        case AF_JOB_MSG_TRACE:
                af_log(AF_LOG_DEBUG, "%.*s", (int)AF_MIN(n, (size_t)65536), (const char *)p);
                break;
        }
}

static void start(struct af_flight *f, bool alone);

static void job_lost(struct af_flight *f, const struct af_worker_end *end) {
        char text[160];

        af_worker_end_text(end, text);
        af_log(AF_LOG_WARNING, "a plan job %s", text);
        if (end->start_error || end->timed_out || f->retried_alone) {
                fail_job(f, end->start_error ? AF_ERROR_STORAGE : AF_ERROR_JOB_DIED, true, "the plan job ", text);
                return;
        }
        f->retried_alone = true;
        f->core->stats.n_retries++;
        start(f, true);
}

/*
 * A plan is refused by this program's own rules, not by a compiler that may have been short of something: where a second run says the same
 * it need not have run alone. (Runs alone for whatever somebody sends twice would hold everybody else up.)
 */
static void note_refusal(struct af_flight *f) {
        struct af_negatives *n = &f->core->plan_negatives;
        uint64_t now = af_clock_now_ns();

        if (f->job_fault == AF_JOB_FAULT_NONE && f->job_failure.code == AF_ERROR_INVALID && f->job_failure.text)
                af_negative_note(n, &f->link.key, f->job_failure.text, af_negative_suspected(n, &f->link.key, now), f->core->tmp_dir, now);
}

static void job_failed(struct af_flight *f) {
        struct af_failure failure = f->job_failure;

        if (f->job_fault == AF_JOB_FAULT_CHANGED) {
                if (f->env)
                        af_environment_invalidate(f->env);
                af_flight_restart(f, failure.text ? failure.text : "rules or toolchain changed");
        } else if (f->job_fault == AF_JOB_FAULT_KILLED && !f->retried_alone) {
                f->retried_alone = true;
                f->core->stats.n_retries++;
                start(f, true);
        } else {
                note_refusal(f);
                f->job_failure.text = NULL;
                af_flight_fail(f, &failure);
                af_failure_deinit(&failure);
        }
}

static void on_end(void *owner, const struct af_worker_end *end) {
        struct af_flight *f = owner;

        f->worker = NULL;
        if (!end->finished) {
                job_lost(f, end);
                return;
        }
        if (f->job_failure.code) {
                job_failed(f);
                return;
        }
        if (!f->plan || !f->has_reported) {
                fail_job(f, AF_ERROR_INTERNAL, false, "the plan job gave no plan", "");
                return;
        }
        af_negative_forget(&f->core->plan_negatives, &f->link.key);
        f->core->stats.n_fragment_compiles++;
        f->compiled_any = true;
        f->planned = true;
        af_core_ledger(f->core, AF_LEDGER_PLAN, NULL, &f->link.key, &f->reported, NULL, f->begin_ns, end->run_us * 1000, 0, "");
        af_flight_stages(f);
        af_flight_advance(f);
}

/* A text's job that was handed over to the fragment's own flight has started already: what is read is always the owner's. */
static struct af_blob *make_input(void *owner) {
        struct af_flight *f = owner;
        struct af_job_limits limits = af_core_job_limits(f->core, AF_JOB_PLAN);
        struct af_buf buf = AF_BUF_INIT;
        struct af_blob *input;

        af_jobwire_write_plan(&buf, &limits, &f->core->env_config, f->is_text, f->input->data, f->input->size);
        input = af_blob_take_buf(&buf);
        af_buf_deinit(&buf);
        return input;
}

static void start(struct af_flight *f, bool alone) {
        static const struct af_worker_ops ops = {make_input, on_message, on_end};
        char hex[AF_DIGEST_HEX_SIZE];

        f->state = AF_FLIGHT_PLAN;
        f->planned = false;
        af_flight_drop_plan(f);
        af_failure_deinit(&f->job_failure);
        f->job_fault = 0;
        f->worker = af_worker_start(f->core, AF_JOB_PLAN, alone, f, &ops);
        af_digest_hex(&f->link.key, hex);
        af_worker_set_label(f->worker, hex);
        if (!f->worker)
                fail_job(f, AF_ERROR_BUSY, true, "out of memory", "");
        else
                af_flight_want(f, f->worker);
}

void af_flight_start_plan(struct af_flight *f) {
        const char *text = af_negative_get(&f->core->plan_negatives, &f->link.key, af_clock_now_ns());

        if (!text) {
                start(f, false);
                return;
        }
        f->core->stats.n_hits_negative++;
        fail_job(f, AF_ERROR_INVALID, false, "", text);
}

/* ---- kernels of a skeleton ---- */

static const struct af_plan_kernel *plan_kernel(const struct af_flight *f, const struct af_digest *key) {
        for (uint32_t i = 0; i < f->plan_view.n_kernels; i++)
                if (af_digest_equal(&f->plan_view.kernels[i].key, key))
                        return &f->plan_view.kernels[i];
        return NULL;
}

/* The kernel, its compile begun from the plan's source or the store's. 1: no source. */
static int compile_kernel(struct af_flight *f, const struct af_digest *key, struct af_build **ret_kernel) {
        const struct af_plan_kernel *pk = plan_kernel(f, key);
        struct af_record_source stored = {0};
        struct af_blob *record = NULL, *source;

        if (pk) {
                source = af_blob_slice(f->plan, pk->source, pk->source_size);
        } else {
                record = af_lookup_record(f->core, AF_TABLE_SOURCES, key->bytes, sizeof(key->bytes));
                if (!record || af_record_source_read(record, &stored)) {
                        af_blob_unref(record);
                        return 1;
                }
                source = stored.source;
        }
        *ret_kernel =
                source ? af_build_new(f->core, key, pk ? pk->toolchain : "", pk ? pk->symbol : stored.symbol, source, f->env, &f->link.key)
                       : NULL;
        af_blob_unref(source);
        af_blob_unref(record);
        free(stored.symbol);
        return *ret_kernel ? 0 : -ENOMEM;
}

static int open_plan(struct af_flight *f) {
        if (!f->plan)
                return 0;
        if (af_plan_read(f->plan->data, f->plan->size, &f->plan_view))
                return -EBADMSG;
        if (!af_digest_equal(&f->plan_view.fragment, &f->link.key))
                return -EBADMSG;
        f->skeleton = af_blob_slice(f->plan, f->plan_view.skeleton, f->plan_view.skeleton_size);
        return f->skeleton ? 0 : -ENOMEM;
}

int af_flight_gather(struct af_flight *f, bool *ret_replan) {
        const char *why = NULL;
        struct af_bundle view;
        int r = open_plan(f);

        *ret_replan = false;
        if (r)
                return r;
        if (af_bundle_open(f->skeleton->data, f->skeleton->size, &view, &why) || !(view.header->flags & AF_BUNDLE_SKELETON)) {
                af_log(AF_LOG_ERROR, "the bundle's skeleton in a plan is not sound: %s", why ? why : "it is no skeleton");
                return -EBADMSG;
        }
        f->kernels = calloc(af_bundle_count(&view, AF_SECTION_KERNELS) + 1, sizeof(*f->kernels));
        if (!f->kernels)
                return -ENOMEM;
        f->n_kernels = af_bundle_count(&view, AF_SECTION_KERNELS);
        for (uint32_t i = 0; i < f->n_kernels; i++) {
                const struct af_bundle_kernel *bk = af_bundle_at(&view, AF_SECTION_KERNELS, i);
                struct af_flight_kernel *fk = &f->kernels[i];

                fk->key = bk->key;
                fk->flight = f;
                af_list_init(&fk->in_kernel);
                fk->kernel = af_build_get(f->core, &bk->key);
                if (fk->kernel) {
                        af_build_wait(fk);
                        continue;
                }
                fk->binary = af_lookup_record(f->core, AF_TABLE_KERNELS, bk->key.bytes, sizeof(bk->key.bytes));
                if (fk->binary)
                        continue;
                r = compile_kernel(f, &bk->key, &fk->kernel);
                if (r > 0)
                        *ret_replan = true;
                if (r)
                        return r > 0 ? 0 : r;
                af_build_wait(fk);
        }
        return 0;
}
