/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/events.h"

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/json_text.h"
#include "daemon/core.h"

#define GATHER_MS 20
#define MAX_TEXT  (16u << 10)
#define TRAIL_MS  1000 /* after the last event: evictions come later than what caused them */

/* ---- who watches ---- */

bool af_watch_start(struct af_conn *conn) {
        struct af_core *core = conn->core;
        struct af_store_stats st;

        if (conn->watcher)
                return true;
        if (core->events.n_watchers >= AF_EVENTS_MAX_WATCHERS)
                return false;
        conn->watcher = calloc(1, sizeof(*conn->watcher));
        if (!conn->watcher)
                return false;
        if (core->events.n_watchers++ == 0) {
                /* What happened unwatched is no news. */
                af_store_stats(core->store, &st);
                core->events.n_evicted_told = st.n_evicted;
                core->events.n_damaged_told = st.n_damaged;
                core->events.n_more = 0;
        }
        return true;
}

void af_watch_stop(struct af_conn *conn) {
        if (!conn->watcher)
                return;
        af_buf_deinit(&conn->watcher->fields);
        free(conn->watcher);
        conn->watcher = NULL;
        conn->core->events.n_watchers--;
}

/* ---- sending ---- */

static void on_timer(uv_timer_t *timer);

static void arm(struct af_core *core, unsigned ms) {
        if (core->closing)
                return;
        core->events.gathering = true;
        uv_timer_start(&core->events.timer, on_timer, ms, 0);
}

void af_events_init(struct af_core *core) {
        uv_timer_init(core->loop, &core->events.timer);
        core->events.timer.data = core;
}

void af_events_close(struct af_core *core) {
        uv_close((uv_handle_t *)&core->events.timer, NULL);
}

static void send_gathered(struct af_conn *conn) {
        struct af_watcher *w = conn->watcher;
        struct af_buf frame = AF_BUF_INIT;
        size_t at = af_frame_begin(&frame, &(struct af_frame_header){.type = AF_FRAME_EVENT});

        if (w->n_lost)
                af_frame_field_u64(&frame, AF_TAG_LOST, w->n_lost);
        af_buf_put(&frame, w->fields.data, w->fields.size);
        af_frame_end(&frame, at);
        af_buf_clear(&w->fields);
        w->n_lost = 0;
        af_conn_send(conn, &frame);
}

/* True where somebody has not taken its last frame yet. */
static bool send_all(struct af_core *core) {
        bool waits = false;

        af_list_each (conn, &core->conns, struct af_conn, link) {
                if (!conn->watcher || conn->state != AF_CONN_OPEN || (conn->watcher->fields.size == 0 && conn->watcher->n_lost == 0))
                        continue;
                if (conn->out_head)
                        waits = true;
                else
                        send_gathered(conn);
        }
        return waits;
}

/* One field, gathered for everyone. text is an object without its closing brace. */
static void tell(struct af_core *core, struct af_buf *text) {
        af_buf_put_u8(text, '}');
        core->events.n_made++;
        af_list_each (conn, &core->conns, struct af_conn, link) {
                struct af_watcher *w = conn->watcher;

                if (!w)
                        continue;
                if (af_buf_error(text) || w->fields.size + text->size > AF_EVENTS_MAX_BYTES) {
                        w->n_lost++;
                        core->events.n_lost++;
                        continue;
                }
                af_frame_field(&w->fields, AF_TAG_EVENT, text->data, text->size);
                if (af_buf_error(&w->fields)) {
                        af_buf_clear(&w->fields);
                        w->n_lost++;
                }
        }
        af_buf_deinit(text);
        if (!core->events.gathering)
                arm(core, GATHER_MS);
}

static uint64_t wall_ms(void) {
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void begin(struct af_core *core, struct af_buf *text, const char *name) {
        *text = AF_BUF_INIT;
        af_buf_put_u8(text, '{');
        af_json_add_string(text, "event", name);
        af_json_add_u64(text, "seq", core->events.n_made + 1);
        af_json_add_u64(text, "time_ms", wall_ms());
}

static bool watched(const struct af_core *core) {
        return core->events.n_watchers > 0 && !core->closing;
}

/* Requests come by the ten thousand: so many are told, the others counted. */
static bool within_rate(struct af_core *core) {
        struct af_events *e = &core->events;
        uint64_t second;

        if (!watched(core))
                return false;
        second = af_clock_now_ns() / 1000000000;
        if (second != e->second) {
                e->second = second;
                e->n_in_second = 0;
        }
        if (e->n_in_second < AF_EVENTS_PER_S) {
                e->n_in_second++;
                return true;
        }
        e->n_more++;
        if (!e->gathering)
                arm(core, GATHER_MS);
        return false;
}

static void tell_counts(struct af_core *core) {
        struct af_events *e = &core->events;
        struct af_store_stats st;
        struct af_buf text;

        if (e->n_more && af_clock_now_ns() / 1000000000 != e->second) {
                begin(core, &text, "request.more");
                af_json_add_u64(&text, "n", e->n_more);
                e->n_more = 0;
                tell(core, &text);
        }
        af_store_stats(core->store, &st);
        if (st.n_evicted != e->n_evicted_told) {
                begin(core, &text, "store.evicted");
                af_json_add_u64(&text, "n", st.n_evicted - e->n_evicted_told);
                e->n_evicted_told = st.n_evicted;
                tell(core, &text);
        }
        if (st.n_damaged != e->n_damaged_told) {
                begin(core, &text, "store.damaged");
                af_json_add_u64(&text, "n", st.n_damaged - e->n_damaged_told);
                e->n_damaged_told = st.n_damaged;
                tell(core, &text);
        }
}

static void on_timer(uv_timer_t *timer) {
        struct af_core *core = timer->data;
        struct af_events *e = &core->events;

        e->gathering = false;
        if (!watched(core))
                return;
        tell_counts(core);
        if (send_all(core)) {
                arm(core, GATHER_MS);
        } else if (e->n_made != e->n_made_before || e->n_more) {
                e->n_made_before = e->n_made;
                e->gathering = false;
                uv_timer_start(timer, on_timer, TRAIL_MS, 0);
        } else {
                e->gathering = false;
        }
}

/* ---- events ---- */

static void add_peer(struct af_buf *text, const struct af_request *req) {
        const struct af_conn *conn = req->conn;

        af_json_add_string(text, "peer", conn->name);
        af_json_add_u64(text, "uid", conn->peer.uid);
        af_json_add_u64(text, "pid", (uint64_t)conn->peer.pid);
        af_json_add_u64(text, "request", req->id);
}

void af_event_submit(const struct af_request *req, bool is_text, size_t n) {
        struct af_core *core = req->conn->core;
        struct af_buf text;

        if (!within_rate(core))
                return;
        begin(core, &text, "request.submit");
        add_peer(&text, req);
        af_json_add_bool(&text, "json", is_text);
        af_json_add_u64(&text, "bytes", n);
        af_json_add_u64(&text, "priority", req->priority);
        tell(core, &text);
}

void af_event_joined(const struct af_request *req, uint32_t n_waiters) {
        struct af_core *core = req->conn->core;
        struct af_buf text;

        if (!within_rate(core))
                return;
        begin(core, &text, "request.joined");
        add_peer(&text, req);
        af_json_add_u64(&text, "waiters", n_waiters);
        tell(core, &text);
}

void af_event_answer(const struct af_request *req, const struct af_digest *fragment, const struct af_digest *environment, unsigned hit,
                     uint64_t us, uint64_t compile_us) {
        struct af_core *core = req->conn->core;
        struct af_buf text;

        if (!within_rate(core))
                return;
        begin(core, &text, hit == AF_HIT_STORE ? "request.hit" : "request.done");
        add_peer(&text, req);
        af_json_add_digest(&text, "fragment", fragment);
        af_json_add_digest(&text, "environment", environment);
        af_json_add_u64(&text, "us", us);
        if (hit != AF_HIT_STORE) {
                af_json_add_bool(&text, "joined", hit == AF_HIT_JOINED);
                af_json_add_u64(&text, "compile_us", compile_us);
        }
        tell(core, &text);
}

void af_event_failed(const struct af_request *req, const struct af_failure *failure) {
        struct af_core *core = req->conn->core;
        struct af_buf text;

        if (!within_rate(core))
                return;
        begin(core, &text, "request.failed");
        add_peer(&text, req);
        af_json_add_string(&text, "code", af_error_code_name(failure->code));
        af_json_add_bool(&text, "retryable", failure->retryable);
        af_json_key(&text, "text");
        af_json_string_n(&text, failure->text ? failure->text : "", failure->text ? strnlen(failure->text, MAX_TEXT) : 0);
        tell(core, &text);
}

void af_event_dropped(const struct af_request *req) {
        struct af_core *core = req->conn->core;
        struct af_buf text;

        if (!within_rate(core))
                return;
        begin(core, &text, "request.canceled");
        add_peer(&text, req);
        tell(core, &text);
}

void af_event_miss(const struct af_flight *f, const char *why) {
        struct af_buf text;

        if (!watched(f->core))
                return;
        begin(f->core, &text, "request.miss");
        af_json_add_digest(&text, "fragment", &f->link.key);
        if (f->env)
                af_json_add_digest(&text, "environment", &f->env->digest);
        af_json_add_string(&text, "why", why);
        tell(f->core, &text);
}

void af_event_plan(const struct af_flight *f, const char *words, const struct af_buf *stages) {
        struct af_buf text;

        if (!watched(f->core) || af_buf_error(stages))
                return;
        begin(f->core, &text, "plan");
        af_json_add_digest(&text, "fragment", &f->link.key);
        af_json_add_string(&text, "words", words);
        af_json_key(&text, "stages_us");
        af_buf_put(&text, stages->data, stages->size);
        tell(f->core, &text);
}

void af_event_fallback(const struct af_flight *f, const char *line) {
        struct af_buf text;

        if (!watched(f->core))
                return;
        begin(f->core, &text, "fallback");
        af_json_add_digest(&text, "fragment", &f->link.key);
        af_json_add_string(&text, "line", line);
        tell(f->core, &text);
}

static void add_job(struct af_buf *text, const struct af_event_job *job) {
        static const char *const kinds[] = {[AF_JOB_ENV] = "env", [AF_JOB_PLAN] = "plan", [AF_JOB_COMPILE] = "compile"};

        af_json_add_string(text, "job", kinds[job->kind]);
        af_json_add_string(text, "what", job->label);
        af_json_add_u64(text, "pid", (uint64_t)job->pid);
        af_json_add_u64(text, "priority", job->priority);
        af_json_add_u64(text, "queued_us", job->queued_us);
}

void af_event_job_start(struct af_core *core, const struct af_event_job *job) {
        struct af_buf text;

        if (!watched(core))
                return;
        begin(core, &text, "job.start");
        add_job(&text, job);
        tell(core, &text);
}

void af_event_job_end(struct af_core *core, const struct af_event_job *job, const struct af_worker_end *end) {
        struct af_buf text;
        char why[160];

        if (!watched(core))
                return;
        begin(core, &text, "job.end");
        add_job(&text, job);
        af_json_add_u64(&text, "run_us", end->run_us);
        af_json_add_bool(&text, "ok", end->finished);
        if (!end->finished)
                af_json_add_string(&text, "text", af_worker_end_text(end, why));
        tell(core, &text);
}

void af_event_environment(const struct af_environment *env, const struct af_digest *before) {
        struct af_buf text;

        if (!watched(env->core))
                return;
        begin(env->core, &text, "environment");
        af_json_add_string(&text, "soc", env->target.soc);
        af_json_add_string(&text, "toolchain", env->target.toolchain);
        af_json_add_string(&text, "version", env->version);
        af_json_add_digest(&text, "environment", &env->digest);
        if (before)
                af_json_add_digest(&text, "before", before);
        af_json_add_bool(&text, "moved", before && !af_digest_equal(before, &env->digest));
        tell(env->core, &text);
}

void af_event_server(struct af_core *core, const char *what) {
        struct af_buf text;

        if (!watched(core))
                return;
        begin(core, &text, "server");
        af_json_add_string(&text, "text", what);
        tell(core, &text);
}

void af_events_flush(struct af_core *core) {
        if (watched(core))
                (void)send_all(core);
}
