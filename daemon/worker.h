/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs of the core: a bounded number of autofused-job processes at once. A worker is queued, then runs, then ends; its owner hears of each
 * message and once of the end, unless it canceled. Which one starts next is decided by scheduler.h, from the requests that want it.
 */
#pragma once

#include <uv.h>

#include "daemon/blob.h"
#include "daemon/jobwire.h"
#include "daemon/list.h"
#include "daemon/scheduler.h"

struct af_core;
struct af_request;
struct af_worker;

/* p is borrowed and aligned to 1. */
typedef void (*af_worker_message_fn)(void *owner, uint32_t type, const void *p, size_t n);
/* How a job ended. */
struct af_worker_end {
        bool finished; /* exit status 0, and its last message arrived whole */
        bool timed_out;
        bool out_of_memory; /* the kernel's OOM killer was at work meanwhile */
        int signal;         /* nonzero: killed by it */
        int exit_code;
        int start_error; /* nonzero: -errno, it never ran */
        uint64_t queued_us, run_us;
};
typedef void (*af_worker_end_fn)(void *owner, const struct af_worker_end *end);

/* What the owner of a job does for it; all are called from the loop, never from a call of the owner's. */
struct af_worker_ops {
        struct af_blob *(*make_input)(void *owner); /* when it starts: what it reads, the caller's reference; NULL: no memory */
        af_worker_message_fn on_message;
        af_worker_end_fn on_end;
};

struct af_workers {
        struct af_sched sched;
        struct af_list queued, running;
        uint32_t n_running;
        bool alone;                            /* the one that runs tolerates no other */
        uint64_t mean_us[AF_JOB_COMPILE + 1];  /* of the last jobs of this kind, weighted */
        uint64_t peak_mib[AF_JOB_COMPILE + 1]; /* their resident sets (capacity.h) */
        uint64_t available_mib, memory_ns;     /* memory, and when it was read; 0: never */
        uint64_t busy_us, counted_ns;          /* slot time used, until counted_ns */
};

void af_workers_init(struct af_workers *w);
/* Queues a job that nobody wants yet. alone: it runs while no other does. ops live as long. NULL: no memory. */
struct af_worker *af_worker_start(struct af_core *core, enum af_job_kind kind, bool alone, void *owner,
                                  const struct af_worker_ops *ops) AF_WARN_UNUSED;
/* The request waits for it. worker may be NULL. */
void af_worker_want(struct af_worker *worker, struct af_request *req);
/* The owner hears nothing more; a running process and its group are killed. worker may be NULL. */
void af_worker_cancel(struct af_worker *worker);
void af_worker_set_owner(struct af_worker *worker, void *owner);
/* What it works on, for people; cut to some 90 bytes. worker may be NULL. */
void af_worker_set_label(struct af_worker *worker, const char *label);
/* Running jobs as a JSON list. */
void af_workers_json(const struct af_workers *w, struct af_buf *buf);
/* What became of a job that did not finish, for people: static or in buf. */
const char *af_worker_end_text(const struct af_worker_end *end, char buf[160]);
bool af_worker_running(const struct af_worker *worker);
/* Starts what may start; ends what is over its deadline. True while anything is queued or runs. */
bool af_workers_tick(struct af_core *core, uint64_t now_ns);
/* Slot time used so far, by all jobs that ran. */
uint64_t af_workers_busy_us(const struct af_workers *w, uint64_t now_ns);
/* Cancels all. */
void af_workers_close(struct af_core *core);

/* orphans.c: records of running jobs in STATE/jobs, so that a new core ends what an old one left. */
void af_orphan_record(const char *state_dir, pid_t pid);
void af_orphan_forget(const char *state_dir, pid_t pid);
/* Ends every recorded job that still runs. Returns how many processes were killed. */
unsigned af_orphans_end(const char *state_dir);
/* Kills every process of a session (a job's descendants, whatever groups they made) except self. Returns how many. */
unsigned af_session_kill(pid_t session, pid_t self);

/* lifeline.c, in the job: a thread that kills the whole session once the core is gone. 0 or -errno. */
int af_lifeline_watch(void) AF_WARN_UNUSED;
