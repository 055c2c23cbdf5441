/* SPDX-License-Identifier: Apache-2.0 */
/* From a SUBMIT to its answer, or into the flight whose answer it shares. Cheapest first: memory, store, flight. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "compiler/graph/canon.h"
#include "compiler/graph/key.h"
#include "daemon/core.h"

#define PROGRESS_NS    1000000000ull
#define PROGRESS_PER_S 64u /* news on one connection: with more requests each is told less often */

static void request_free(struct af_request *req) {
        af_list_del(&req->in_conn);
        af_list_del(&req->in_flight);
        if (req->flight)
                req->flight->n_waiters--;
        af_sched_unwant(&req->conn->core->workers.sched, &req->wants);
        req->conn->n_requests--;
        req->conn->core->n_requests--;
        req->conn->client->user->n_requests--;
        af_blob_unref(req->slot_map);
        free(req);
}

void af_request_fail(struct af_request *req, const struct af_failure *f) {
        struct af_conn *conn = req->conn;
        uint64_t id = req->id;

        conn->core->stats.n_failures++;
        af_event_failed(req, f);
        af_core_ledger(conn->core, AF_LEDGER_FAILURE, req, &req->fragment, NULL, NULL, req->begin_ns, af_clock_now_ns() - req->begin_ns,
                       (int)f->code, f->text);
        request_free(req);
        af_reply_error(conn, id, f->code, f->retryable, f->text ? f->text : af_error_code_name(f->code));
}

void af_request_answer(struct af_request *req, const struct af_digest *fragment, struct af_ready_bundle *bundle, enum af_hit hit,
                       uint64_t compile_us) {
        static const struct af_ledger_use uses[] = {
                [AF_HIT_COMPILED] = {.n_compiled = 1}, [AF_HIT_JOINED] = {.n_joined = 1}, [AF_HIT_STORE] = {.n_hits = 1}};
        struct af_conn *conn = req->conn;

        if (hit != AF_HIT_STORE)
                af_core_ledger(conn->core, AF_LEDGER_REQUEST, req, fragment, &bundle->environment, NULL, req->begin_ns,
                               af_clock_now_ns() - req->begin_ns, 0, conn->name);
        af_ledger_count(conn->core->ledger, fragment, &bundle->environment, &uses[hit]);
        af_event_answer(req, fragment, &bundle->environment, hit, (af_clock_now_ns() - req->begin_ns) / 1000, compile_us);
        af_reply_result(req, fragment, bundle, hit, compile_us);
        request_free(req);
        af_hot_answered(conn->core, fragment, bundle, hit);
}

void af_request_drop(struct af_request *req) {
        struct af_flight *f = req->flight;

        af_event_dropped(req);
        request_free(req);
        if (f)
                af_flight_left(f);
}

/* ---- the store ---- */

struct af_blob *af_lookup_record(struct af_core *core, enum af_table table, const void *key, uint32_t key_size) {
        struct af_store_value v;

        if (af_store_get(core->store, &(struct af_store_record){table, key, key_size}, 1, &v) || !v.data)
                return NULL;
        return af_blob_take(v.data, v.size);
}

static void bundle_key(uint8_t key[64], const struct af_digest *fragment, const struct af_digest *environment) {
        memcpy(key, fragment->bytes, 32);
        memcpy(key + 32, environment->bytes, 32);
}

/* All binaries of a stored skeleton, or AF_STORE_E_MISS. binaries has room for n. */
static int lookup_binaries(struct af_core *core, const struct af_bundle *skeleton, struct af_blob **binaries, uint32_t n) {
        for (uint32_t i = 0; i < n; i++) {
                const struct af_bundle_kernel *k = af_bundle_at(skeleton, AF_SECTION_KERNELS, i);

                binaries[i] = af_lookup_record(core, AF_TABLE_KERNELS, k->key.bytes, sizeof(k->key.bytes));
                if (!binaries[i])
                        return AF_STORE_E_MISS;
                af_store_touch(core->store, AF_TABLE_KERNELS, k->key.bytes, sizeof(k->key.bytes));
        }
        return 0;
}

/* A small bundle is stored whole: its record is the answer, read again each time, which costs little more than keeping it would. */
static int whole(struct af_core *core, struct af_environment *env, const uint8_t key[64], struct af_store_value *v,
                 struct af_ready_bundle **ret_bundle) {
        *ret_bundle = af_ready_bundle_small(v->data, v->size);
        if (!*ret_bundle)
                return -ENOMEM;
        (*ret_bundle)->environment = env->digest;
        (*ret_bundle)->env = env;
        af_store_touch(core->store, AF_TABLE_BUNDLES, key, 64);
        return 0;
}

int af_lookup_bundle(struct af_core *core, const struct af_digest *fragment, struct af_environment *env,
                     struct af_ready_bundle **ret_bundle, struct af_blob **ret_skeleton) {
        struct af_blob *skeleton, **binaries = NULL;
        struct af_store_value v;
        struct af_bundle view;
        uint8_t key[64];
        uint32_t n;
        int r;

        *ret_skeleton = NULL;
        bundle_key(key, fragment, &env->digest);
        if (af_store_get(core->store, &(struct af_store_record){AF_TABLE_BUNDLES, key, sizeof(key)}, 1, &v) || !v.data)
                return AF_STORE_E_MISS;
        if (af_bundle_open(v.data, v.size, &view, NULL) == 0 && !(view.header->flags & AF_BUNDLE_SKELETON))
                return whole(core, env, key, &v, ret_bundle);
        skeleton = af_blob_take(v.data, v.size);
        if (!skeleton)
                return AF_STORE_E_MISS;
        if (af_bundle_open(skeleton->data, skeleton->size, &view, NULL)) {
                af_blob_unref(skeleton);
                return AF_STORE_E_MISS;
        }
        n = af_bundle_count(&view, AF_SECTION_KERNELS);
        binaries = calloc(n + 1, sizeof(struct af_blob *));
        r = binaries ? lookup_binaries(core, &view, binaries, n) : -ENOMEM;
        if (r == 0)
                r = af_bundle_assemble(core, skeleton, binaries, n, fragment, &env->digest, ret_bundle) ? AF_STORE_E_MISS : 0;
        for (uint32_t i = 0; binaries && i < n; i++)
                af_blob_unref(binaries[i]);
        free(binaries);
        if (r == 0) {
                af_store_touch(core->store, AF_TABLE_BUNDLES, key, sizeof(key));
                af_store_touch(core->store, AF_TABLE_FRAGMENTS, fragment->bytes, sizeof(fragment->bytes));
                af_bundle_cache_put(core, fragment, env, &env->digest, *ret_bundle);
                af_blob_unref(skeleton);
        } else {
                *ret_skeleton = skeleton;
        }
        return r;
}

/* ---- submit ---- */

static void fail_new(struct af_request *req, enum af_error_code code, bool retryable, const char *text) {
        struct af_failure f = {.code = code, .retryable = retryable, .text = (char *)text};

        af_request_fail(req, &f);
}

static void not_found(struct af_request *req) {
        fail_new(req, AF_ERROR_NOT_FOUND, false, "not in the store");
}

static void enter_new_flight(struct af_request *req, const struct af_digest *key, bool is_text, struct af_blob *bytes,
                             struct af_target *target) {
        struct af_core *core = req->conn->core;
        struct af_user *user = req->conn->client->user;
        const char *full = af_user_refuses_flight(user, bytes->size);
        struct af_flight *f = full ? NULL : af_flight_new(core, key, is_text, bytes, user);

        if (!f) {
                if (target)
                        af_target_deinit(target);
                fail_new(req, AF_ERROR_BUSY, true, full ? full : "out of memory");
                return;
        }
        if (req->conn->n_origins)
                f->origins = af_blob_copy(req->conn->origins, req->conn->n_origins);
        f->known_fragment = target != NULL;
        af_flight_join(f, req);
        af_flight_begin(f, target);
}

/*
 * A stored bundle whose target stands in the canonical bytes: answered with no flight and, where it is small, by one read. False: nothing
 * was done.
 */
static bool answer_stored(struct af_request *req, const struct af_digest *d, const struct af_blob *canon) {
        struct af_core *core = req->conn->core;
        struct af_ready_bundle *bundle = NULL;
        struct af_blob *skeleton = NULL;
        struct af_canon_target t;
        struct af_environment *env;

        if (!af_canon_target_read(canon->data, canon->size, &t))
                return false;
        env = af_environment_find(core, &(struct af_target){t.soc, t.toolchain, t.twin});
        if (!env || af_environment_check(env) != AF_ENVIRONMENT_READY)
                return false;
        if (af_lookup_bundle(core, d, env, &bundle, &skeleton)) {
                af_blob_unref(skeleton);
                return false;
        }
        core->stats.n_hits_store++;
        af_request_answer(req, d, bundle, AF_HIT_STORE, 0);
        af_ready_bundle_unref(bundle);
        return true;
}

/* True where the request was answered, or joined or started a flight. canon may be NULL: then the store must have the fragment. */
static bool submit_fragment(struct af_request *req, const struct af_digest *d, struct af_blob *canon) {
        struct af_core *core = req->conn->core;
        struct af_ready_bundle *bundle = af_bundle_cache_get(core, d);
        struct af_flight *f = af_flight_find(core, d);
        struct af_blob *record, *stored = NULL;
        struct af_target target;

        req->fragment = *d;
        if (bundle) {
                core->stats.n_hits_memory++;
                af_request_answer(req, d, bundle, AF_HIT_STORE, 0);
                return true;
        }
        if (f) {
                req->joined = true;
                af_flight_join(f, req);
                af_event_joined(req, f->n_waiters);
                return true;
        }
        if (canon && answer_stored(req, d, canon))
                return true;
        record = af_lookup_record(core, AF_TABLE_FRAGMENTS, d->bytes, sizeof(d->bytes));
        if (record && af_record_fragment_read(record, &target, &stored) == 0) {
                enter_new_flight(req, d, false, canon ? canon : stored, &target);
                af_blob_unref(stored);
                af_blob_unref(record);
                return true;
        }
        af_blob_unref(record);
        if (!canon)
                return false;
        if (req->lookup_only)
                not_found(req);
        else
                enter_new_flight(req, d, false, canon, NULL);
        return true;
}

/* A text that was seen before: its fragment and slot map, from a flight that just learnt them or from the store. */
static bool known_text(struct af_core *core, const struct af_digest *text, struct af_flight *f, struct af_digest *ret_fragment,
                       struct af_blob **ret_map) {
        struct af_blob *record;

        if (f && f->state == AF_FLIGHT_KNOWN) {
                *ret_fragment = f->fragment;
                *ret_map = af_blob_ref(f->slot_map);
                return true;
        }
        record = f ? NULL : af_lookup_record(core, AF_TABLE_TEXTS, text->bytes, sizeof(text->bytes));
        if (!record || record->size < sizeof(*ret_fragment)) {
                af_blob_unref(record);
                return false;
        }
        memcpy(ret_fragment->bytes, record->data, sizeof(ret_fragment->bytes));
        *ret_map = af_blob_slice(record, record->data + sizeof(ret_fragment->bytes), record->size - sizeof(ret_fragment->bytes));
        af_blob_unref(record);
        af_store_touch(core->store, AF_TABLE_TEXTS, text->bytes, sizeof(text->bytes));
        return *ret_map != NULL;
}

static void submit_text(struct af_request *req, struct af_blob *text) {
        struct af_core *core = req->conn->core;
        struct af_digest d, fragment;
        struct af_flight *f;

        af_digest_bytes("autofuse.text/1", text->data, text->size, &d);
        f = af_flight_find(core, &d);
        if (known_text(core, &d, f, &fragment, &req->slot_map)) {
                if (submit_fragment(req, &fragment, f ? f->canon : NULL))
                        return;
                /* The fragment itself was evicted, or never stored. */
                af_blob_clear(&req->slot_map);
        }
        if (f) {
                req->joined = true;
                af_flight_join(f, req);
                af_event_joined(req, f->n_waiters);
        } else if (req->lookup_only) {
                not_found(req);
        } else {
                enter_new_flight(req, &d, true, text, NULL);
        }
}

void af_request_submit_stored(struct af_request *req, const struct af_digest *fragment) {
        if (!submit_fragment(req, fragment, NULL))
                not_found(req);
}

void af_request_submit(struct af_request *req, bool is_text, struct af_blob *bytes) {
        struct af_digest d;

        req->is_text = is_text;
        if (is_text) {
                submit_text(req, bytes);
                return;
        }
        af_key_fragment(bytes->data, bytes->size, &d);
        (void)submit_fragment(req, &d, bytes);
}

/* ---- time ---- */

/* Ends it, or adds what its client is told to news. */
static void tick_one(struct af_request *req, uint64_t now_ns, struct af_buf *news) {
        struct af_core *core = req->conn->core;
        char text[200];

        if (now_ns >= req->deadline_ns) {
                struct af_flight *f = req->flight;

                core->stats.n_deadlines++;
                snprintf(text, sizeof(text), "not done after %llu ms (%s); what is compiled stays for the next request",
                         (unsigned long long)((now_ns - req->begin_ns) / 1000000), f ? af_flight_doing(f) : "waiting");
                fail_new(req, AF_ERROR_DEADLINE, false, text);
                if (f)
                        af_flight_left(f);
                return;
        }
        if (now_ns - req->progress_ns < PROGRESS_NS * (1 + req->conn->n_requests / PROGRESS_PER_S) || !req->flight || req->conn->out_head)
                return; /* a peer that is behind does not need the news */
        req->progress_ns = now_ns;
        snprintf(text, sizeof(text), "%s, %llu s, waited for by %u", af_flight_doing(req->flight),
                 (unsigned long long)((now_ns - req->begin_ns) / 1000000000), req->flight->n_waiters);
        af_reply_put_progress(news, req, text, req->flight->n_waiters, now_ns);
}

bool af_requests_tick(struct af_core *core, uint64_t now_ns) {
        af_list_each (conn, &core->conns, struct af_conn, link) {
                struct af_buf news = AF_BUF_INIT;

                af_list_each (req, &conn->requests, struct af_request, in_conn)
                        tick_one(req, now_ns, &news);
                if (news.size)
                        af_conn_send(conn, &news);
                af_buf_deinit(&news);
        }
        return core->n_requests > 0;
}
