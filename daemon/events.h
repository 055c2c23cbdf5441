/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the core tells to whoever watches it: one JSON object per event, gathered for a moment and sent as EVENT frames. A watcher that does
 * not keep up loses events, which are counted for it; the core never waits. With no watcher nothing is made. docs/gate.md lists the events.
 */
#pragma once

#include <uv.h>

#include "base/digest.h"
#include "daemon/jobwire.h"

#define AF_EVENTS_MAX_WATCHERS 32u
#define AF_EVENTS_MAX_BYTES    (1u << 20) /* gathered for one watcher: a second's events about requests fit */
#define AF_EVENTS_PER_S        2000u      /* about requests; the rest is counted in `request.more` */

struct af_core;
struct af_conn;
struct af_request;
struct af_flight;
struct af_environment;
struct af_failure;
struct af_worker_end;

struct af_watcher {
        struct af_buf fields; /* of the next EVENT frame */
        uint64_t n_lost;
};
struct af_events {
        uv_timer_t timer;
        bool gathering; /* the timer is set to send */
        uint32_t n_watchers;
        uint64_t n_made, n_lost; /* since the start; lost: for all watchers together */
        uint64_t n_made_before;  /* when the timer rang last */
        uint64_t second;         /* of CLOCK_MONOTONIC, that n_in_second counts */
        uint32_t n_in_second;
        uint64_t n_more; /* request events left out since the last `request.more` */
        uint64_t n_evicted_told, n_damaged_told;
};

void af_events_init(struct af_core *core);
void af_events_close(struct af_core *core);
/* conn watches from now on. False: too many do. */
bool af_watch_start(struct af_conn *conn) AF_WARN_UNUSED;
/* conn may be none that watches. */
void af_watch_stop(struct af_conn *conn);

/* Each tells one event where somebody watches. Pointers are borrowed for the call. */
void af_event_submit(const struct af_request *req, bool is_text, size_t n);
void af_event_joined(const struct af_request *req, uint32_t n_waiters);
void af_event_answer(const struct af_request *req, const struct af_digest *fragment, const struct af_digest *environment, unsigned hit,
                     uint64_t us, uint64_t compile_us);
void af_event_failed(const struct af_request *req, const struct af_failure *failure);
void af_event_dropped(const struct af_request *req);
void af_event_miss(const struct af_flight *f, const char *why);
/* words: what the fragment is; stages: a JSON object of microseconds. */
void af_event_plan(const struct af_flight *f, const char *words, const struct af_buf *stages);
/* line: "Fallback OP $reason: …". */
void af_event_fallback(const struct af_flight *f, const char *line);
struct af_event_job {
        enum af_job_kind kind;
        const char *label;
        int pid;
        uint8_t priority;
        uint64_t queued_us;
};
void af_event_job_start(struct af_core *core, const struct af_event_job *job);
void af_event_job_end(struct af_core *core, const struct af_event_job *job, const struct af_worker_end *end);
/* before: the digest that it had, or NULL. */
void af_event_environment(const struct af_environment *env, const struct af_digest *before);
void af_event_server(struct af_core *core, const char *what);
/* Sends what has gathered, to those who have taken what came before: the server goes. */
void af_events_flush(struct af_core *core);
