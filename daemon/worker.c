/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/json_text.h"
#include "base/log.h"
#include "daemon/capacity.h"
#include "daemon/core.h"
#include "daemon/process.h"

#define EOF_WAIT_NS 2000000000ull /* for the pipe's end after the process is gone */
#define MEMORY_NS   100000000ull  /* how long what was read of it holds */

struct af_worker {
        struct af_list link;
        struct af_sched_job job;
        struct af_core *core;
        enum af_job_kind kind;
        uint8_t priority; /* of the most urgent who wanted it when it started */
        char label[96];
        bool alone, started, canceled, exited, eof, broken, finalized, timed_out, got_message;
        void *owner;
        const struct af_worker_ops *ops;
        uv_poll_t child;
        uv_pipe_t out;
        unsigned n_handles; /* open ones; freed at 0 */
        int lifeline, host_slot, pidfd;
        pid_t pid;
        uint64_t queued_ns, started_ns, deadline_ns, exited_ns, oom_before;
        int64_t status;
        int signal;
        struct af_buf rx;
};

static const char *const kind_names[] = {[AF_JOB_ENV] = "env", [AF_JOB_PLAN] = "plan", [AF_JOB_COMPILE] = "compile"};

void af_workers_init(struct af_workers *w) {
        *w = (struct af_workers){0};
        af_sched_init(&w->sched);
        af_list_init(&w->queued);
        af_list_init(&w->running);
}

uint64_t af_workers_busy_us(const struct af_workers *w, uint64_t now_ns) {
        return w->busy_us + w->n_running * ((now_ns - w->counted_ns) / 1000);
}

static void count_running(struct af_workers *all, int change) {
        uint64_t now = af_clock_now_ns();

        all->busy_us = af_workers_busy_us(all, now);
        all->counted_ns = now;
        all->n_running += (uint32_t)change;
}

static void worker_free(struct af_worker *w) {
        af_buf_deinit(&w->rx);
        if (w->lifeline >= 0)
                close(w->lifeline);
        if (w->host_slot >= 0)
                close(w->host_slot);
        if (w->pidfd >= 0)
                close(w->pidfd);
        free(w);
}

/* ---- the end ---- */

static void on_closed(uv_handle_t *handle) {
        struct af_worker *w = handle->data;

        if (--w->n_handles == 0)
                worker_free(w);
}

static struct af_event_job job_of(const struct af_worker *w) {
        return (struct af_event_job){.kind = w->kind,
                                     .label = w->label,
                                     .pid = w->pid,
                                     .priority = w->priority,
                                     .queued_us = (w->started_ns - w->queued_ns) / 1000};
}

/* What it costs those who want it: one that runs alone holds all slots. */
static uint64_t slot_us(const struct af_worker *w, uint64_t run_us) {
        return w->alone ? run_us * w->core->config->jobs : run_us;
}

static void schedule(struct af_core *core);

static void finalize(struct af_worker *w) {
        struct af_workers *all = &w->core->workers;
        struct af_event_job job = job_of(w);
        struct af_worker_end end = {
                .finished = w->exited && w->status == 0 && !w->signal && !w->broken && w->rx.size == 0 && w->got_message,
                .timed_out = w->timed_out,
                .signal = w->signal,
                .exit_code = (int)w->status,
                .queued_us = (w->started_ns - w->queued_ns) / 1000,
                .run_us = (af_clock_now_ns() - w->started_ns) / 1000,
        };

        if (w->finalized)
                return;
        w->finalized = true;
        af_list_del(&w->link);
        count_running(all, -1);
        if (w->host_slot >= 0)
                close(w->host_slot);
        w->host_slot = -1;
        af_sched_remove(&all->sched, &w->job, slot_us(w, end.run_us));
        if (end.finished)
                all->mean_us[w->kind] = all->mean_us[w->kind] ? (all->mean_us[w->kind] * 7 + end.run_us) / 8 : end.run_us;
        if (w->alone)
                all->alone = false;
        af_orphan_forget(w->core->state_dir, w->pid);
        end.out_of_memory = !w->canceled && w->signal == SIGKILL && !w->timed_out && af_memory_oom_kills("") > w->oom_before;
        af_event_job_end(w->core, &job, &end);
        if (w->kind == AF_JOB_COMPILE && !w->core->closing)
                schedule(w->core); /* before many are answered; what a plan's end brings is to be the next itself */
        if (!w->canceled) {
                w->core->stats.n_jobs_died += !end.finished && !w->timed_out;
                w->core->stats.n_jobs_timed_out += w->timed_out;
                w->canceled = true;
                w->ops->on_end(w->owner, &end);
        }
        if (!uv_is_closing((uv_handle_t *)&w->out))
                uv_close((uv_handle_t *)&w->out, on_closed);
        af_core_kick(w->core);
        af_core_check_drained(w->core);
}

static void worker_kill(struct af_worker *w) {
        if (w->exited)
                return;
        kill(w->pid, SIGKILL); /* it may not have made its session yet */
        kill(-w->pid, SIGKILL);
        af_session_kill(w->pid, 0);
}

static void on_child(uv_poll_t *poll, int status, int events) {
        struct af_worker *w = poll->data;
        int code = 0, sig = SIGKILL;

        if (af_process_reap(w->pid, &code, &sig) == -EAGAIN)
                return;
        uv_poll_stop(poll);
        w->exited = true;
        w->exited_ns = af_clock_now_ns();
        w->status = code;
        w->signal = sig;
        /* If the job dies its group ends; one that ended well leaves nothing. */
        kill(-w->pid, SIGKILL);
        if (code || sig)
                af_session_kill(w->pid, 0);
        uv_close((uv_handle_t *)poll, on_closed);
        if (w->eof)
                finalize(w);
}

/* ---- messages ---- */

static uint32_t get_u32(const uint8_t *p) {
        return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void take_peak(struct af_worker *w, const uint8_t *p, size_t n) {
        uint64_t *mib = &w->core->workers.peak_mib[w->kind];

        if (n == 4)
                *mib = af_memory_estimate(*mib, get_u32(p));
}

static void take_messages(struct af_worker *w) {
        size_t at = 0;

        while (!w->broken && w->rx.size - at >= 8) {
                uint32_t type = get_u32(w->rx.data + at), n = get_u32(w->rx.data + at + 4);

                if (n > AF_JOBWIRE_MAX_MESSAGE) {
                        w->broken = true;
                        worker_kill(w);
                        break;
                }
                if (w->rx.size - at - 8 < n)
                        break;
                if (type == AF_JOB_MSG_PEAK)
                        take_peak(w, w->rx.data + at + 8, n);
                else
                        w->got_message = true;
                if (!w->canceled && type != AF_JOB_MSG_PEAK)
                        w->ops->on_message(w->owner, type, w->rx.data + at + 8, n);
                at += 8 + (size_t)n;
        }
        if (at) {
                memmove(w->rx.data, w->rx.data + at, w->rx.size - at);
                w->rx.size -= at;
        }
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf) {
        struct af_worker *w = handle->data;
        uint8_t *p = af_buf_reserve(&w->rx, 65536);

        *buf = uv_buf_init((char *)p, p ? 65536 : 0);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
        struct af_worker *w = stream->data;

        if (n > 0) {
                w->rx.size += (size_t)n;
                take_messages(w);
                return;
        }
        if (n == 0)
                return;
        if (n != UV_EOF) {
                w->broken = true;
                worker_kill(w);
        }
        uv_read_stop(stream);
        w->eof = true;
        if (w->exited)
                finalize(w);
}

/* ---- the start ---- */

static int spawn(struct af_worker *w, int input, int output, int lifeline) {
        struct af_core *core = w->core;
        char tmp[4200], data[4200], *env[8], *args[] = {core->job_path, (char *)kind_names[w->kind], NULL};
        unsigned n = 0;
        int r;

        snprintf(tmp, sizeof(tmp), "TMPDIR=%s", core->tmp_dir);
        env[n++] = (char *)"PATH=/usr/local/bin:/usr/bin:/bin";
        env[n++] = (char *)"LC_ALL=C.UTF-8";
        env[n++] = tmp;
        if (core->config->data_dir) {
                snprintf(data, sizeof(data), "AUTOFUSE_DATA_DIR=%s", core->config->data_dir);
                env[n++] = data;
        }
        env[n] = NULL;
        r = af_process_start(args, env, input, output, lifeline, &w->pid, &w->pidfd);
        if (r < 0)
                return r;
        /* From here on it ends as any other does. */
        w->n_handles++;
        uv_poll_init(core->loop, &w->child, w->pidfd);
        w->child.data = w;
        uv_poll_start(&w->child, UV_READABLE, on_child);
        return 0;
}

static void close_pair(int ends[2]) {
        for (int i = 0; i < 2; i++)
                if (ends[i] >= 0)
                        close(ends[i]);
}

static int start_process(struct af_worker *w) {
        struct af_blob *bytes = w->ops->make_input(w->owner);
        int r, input = bytes ? af_io_memfd("autofused-job", bytes->data, bytes->size, true) : -ENOMEM;
        int ends[2] = {-1, -1}, out[2] = {-1, -1};

        af_blob_unref(bytes);
        uv_pipe_init(w->core->loop, &w->out, 0);
        w->out.data = w;
        w->n_handles = 1;
        r = input < 0 ? input : pipe2(ends, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 ? -errno : 0;
        if (r == 0) {
                r = uv_pipe_open(&w->out, out[0]);
                out[0] = r == 0 ? -1 : out[0];
        }
        if (r == 0)
                r = spawn(w, input, out[1], ends[0]);
        if (r == 0) {
                w->lifeline = ends[1];
                ends[1] = -1;
        }
        if (input >= 0)
                close(input);
        close_pair(ends);
        close_pair(out);
        return r;
}

static void start(struct af_worker *w) {
        struct af_workers *all = &w->core->workers;
        struct af_event_job job;
        int r;

        af_list_del(&w->link);
        w->priority = af_sched_priority(&w->job);
        af_sched_start(&all->sched, &w->job, slot_us(w, all->mean_us[w->kind]));
        count_running(all, 1);
        w->started = true;
        w->started_ns = af_clock_now_ns();
        w->oom_before = af_memory_oom_kills("");
        w->deadline_ns = w->started_ns +
                         (w->kind == AF_JOB_COMPILE ? w->core->config->compile_timeout_s : w->core->config->plan_timeout_s) * 1000000000ull;
        r = start_process(w);
        if (r < 0) {
                struct af_worker_end end = {.start_error = r, .queued_us = (w->started_ns - w->queued_ns) / 1000};

                af_log(AF_LOG_ERROR, "cannot start %s: %s", w->core->job_path, strerror(-r));
                w->canceled = true;
                count_running(all, -1);
                af_sched_remove(&all->sched, &w->job, 0);
                w->ops->on_end(w->owner, &end);
                uv_close((uv_handle_t *)&w->out, on_closed);
                return;
        }
        af_orphan_record(w->core->state_dir, w->pid);
        af_list_append(&all->running, &w->link);
        all->alone = w->alone;
        job = job_of(w);
        af_event_job_start(w->core, &job);
        uv_read_start((uv_stream_t *)&w->out, on_alloc, on_read);
}

/* Whether less would be left than is to be kept, once this one and those that began a moment ago have grown. */
static bool memory_low(struct af_core *core, enum af_job_kind kind) {
        struct af_workers *all = &core->workers;
        uint64_t now = af_clock_now_ns(), coming = all->peak_mib[kind];

        if (!all->memory_ns || now - all->memory_ns > MEMORY_NS) {
                all->memory_ns = now;
                all->available_mib = af_memory_available_mib("");
        }
        af_list_each (w, &all->running, struct af_worker, link)
                if (now - w->started_ns < all->mean_us[w->kind] * 500 || w->started_ns > all->memory_ns)
                        coming += all->peak_mib[w->kind];
        return all->available_mib < core->config->min_free_mib + coming;
}

/* A slot of the host for it. True where it has one, or no other server is to be minded. */
static bool host_slot(struct af_worker *w) {
        const struct af_config *c = w->core->config;

        if (!c->host_slots[0] || w->host_slot >= 0)
                return true;
        w->host_slot = af_host_slot_take(c->host_slots, (unsigned)c->host_jobs);
        return w->host_slot != -EAGAIN;
}

static void schedule(struct af_core *core) {
        struct af_workers *all = &core->workers;
        uint32_t slots = (uint32_t)core->config->jobs;

        for (struct af_sched_job *job; (job = af_sched_next(&all->sched));) {
                struct af_worker *w = af_list_entry(job, struct af_worker, job);

                if (all->n_running >= slots || all->alone || (w->alone && all->n_running > 0))
                        break;
                /* One job may always run: a server that waited for memory or for other servers might wait for ever. */
                if (all->n_running > 0 && memory_low(core, w->kind))
                        break;
                if (!host_slot(w) && all->n_running > 0)
                        break;
                start(w);
        }
}

struct af_worker *af_worker_start(struct af_core *core, enum af_job_kind kind, bool alone, void *owner, const struct af_worker_ops *ops) {
        struct af_worker *w = calloc(1, sizeof(*w));

        if (!w)
                return NULL;
        *w = (struct af_worker){.core = core,
                                .kind = kind,
                                .alone = alone,
                                .owner = owner,
                                .ops = ops,
                                .lifeline = -1,
                                .host_slot = -1,
                                .pidfd = -1,
                                .queued_ns = af_clock_now_ns()};
        /* Compiles before plans: they finish fragments. */
        af_sched_add(&core->workers.sched, &w->job, kind == AF_JOB_COMPILE ? AF_SCHED_RANK_FIRST : AF_SCHED_RANK_SECOND);
        af_list_append(&core->workers.queued, &w->link);
        af_core_kick(core);
        return w;
}

void af_worker_want(struct af_worker *w, struct af_request *req) {
        /* Without memory for the want it stays with those who want it already; a job that nobody wants goes first. */
        if (w && !w->finalized)
                (void)!af_sched_want(&w->core->workers.sched, &w->job, &req->conn->client->sched, req->priority, &req->wants);
}

void af_worker_cancel(struct af_worker *w) {
        if (!w || w->canceled)
                return;
        w->canceled = true;
        w->owner = NULL;
        if (w->started) {
                worker_kill(w);
                return;
        }
        af_list_del(&w->link);
        af_sched_remove(&w->core->workers.sched, &w->job, 0);
        worker_free(w);
}

void af_worker_set_owner(struct af_worker *w, void *owner) {
        w->owner = owner;
}

void af_worker_set_label(struct af_worker *w, const char *label) {
        if (w)
                snprintf(w->label, sizeof(w->label), "%s", label);
}

void af_workers_json(const struct af_workers *all, struct af_buf *buf) {
        uint64_t now = af_clock_now_ns();

        af_buf_put_u8(buf, '[');
        af_list_each (w, (struct af_list *)&all->running, struct af_worker, link) {
                af_json_item(buf);
                af_buf_put_u8(buf, '{');
                af_json_add_string(buf, "job", kind_names[w->kind]);
                af_json_add_string(buf, "what", w->label);
                af_json_add_u64(buf, "pid", (uint64_t)w->pid);
                af_json_add_u64(buf, "priority", w->priority);
                af_json_add_u64(buf, "ms", (now - w->started_ns) / 1000000);
                af_buf_put_u8(buf, '}');
        }
        af_buf_put_u8(buf, ']');
}

const char *af_worker_end_text(const struct af_worker_end *end, char buf[160]) {
        if (end->start_error)
                snprintf(buf, 160, "could not be started: %s", strerror(-end->start_error));
        else if (end->timed_out)
                snprintf(buf, 160, "was ended after %llu s", (unsigned long long)(end->run_us / 1000000));
        else if (end->out_of_memory)
                snprintf(buf, 160, "was ended by the system for want of memory");
        else if (end->signal)
                snprintf(buf, 160, "was ended by signal %d (%s)", end->signal, strsignal(end->signal));
        else
                snprintf(buf, 160, "ended with exit status %d and no answer", end->exit_code);
        return buf;
}

bool af_worker_running(const struct af_worker *w) {
        return w && w->started;
}

bool af_workers_tick(struct af_core *core, uint64_t now_ns) {
        struct af_workers *all = &core->workers;

        af_list_each (w, &all->running, struct af_worker, link) {
                if (!w->exited && !w->timed_out && now_ns >= w->deadline_ns) {
                        w->timed_out = true;
                        worker_kill(w);
                }
                if (w->exited && !w->eof && now_ns - w->exited_ns > EOF_WAIT_NS) {
                        w->broken = true;
                        finalize(w);
                }
        }
        schedule(core);
        return all->n_running > 0 || all->sched.n_jobs > 0;
}

void af_workers_close(struct af_core *core) {
        af_list_each (w, &core->workers.queued, struct af_worker, link)
                af_worker_cancel(w);
        af_list_each (r, &core->workers.running, struct af_worker, link)
                af_worker_cancel(r);
}
