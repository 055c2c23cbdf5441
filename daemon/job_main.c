/* SPDX-License-Identifier: Apache-2.0 */
/*
 * autofused-job: started by autofused, never by hand. Request on descriptor 0, messages on 1, lifeline on 3 (daemon/jobwire.h). It leads a
 * session of its own; when the lifeline breaks, everything in that session is killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "daemon/job.h"
#include "daemon/worker.h"

#define MAX_REQUEST_BYTES ((size_t)1 << 30)

static int message_fd = -1;

void af_job_send(uint32_t type, const void *p, size_t n) {
        uint32_t head[2] = {type, (uint32_t)n};

        if (n > AF_JOBWIRE_MAX_MESSAGE || af_io_write_fd(message_fd, head, sizeof(head)) < 0 || af_io_write_fd(message_fd, p, n) < 0)
                _exit(3);
}

void af_job_fail(enum af_error_code code, uint32_t fault, const char *text) {
        AF_CLEANUP(af_buf_deinit) struct af_buf buf = AF_BUF_INIT;

        af_buf_put_u32(&buf, code);
        af_buf_put_u32(&buf, fault);
        af_buf_put_str(&buf, text);
        if (af_buf_error(&buf))
                _exit(4);
        af_job_send(AF_JOB_MSG_ERROR, buf.data, buf.size);
}

void af_job_fail_errno(const char *what, int r) {
        char text[256];

        snprintf(text, sizeof(text), "%s: %s", what, strerror(-r));
        if (r == -ENOMEM)
                af_job_fail(AF_ERROR_JOB_DIED, AF_JOB_FAULT_KILLED, text);
        else if (r == -ENOSPC || r == -EDQUOT || r == -EROFS)
                af_job_fail(AF_ERROR_STORAGE, AF_JOB_FAULT_SPACE, text);
        else
                af_job_fail(AF_ERROR_INTERNAL, AF_JOB_FAULT_NONE, text);
}

void af_job_fail_diags(enum af_error_code code, const struct af_diags *diags, int r) {
        AF_CLEANUP(af_buf_deinit) struct af_buf buf = AF_BUF_INIT;

        if (r == -ENOMEM || (r < 0 && diags->n_errors == 0)) {
                af_job_fail_errno("the job", r);
                return;
        }
        af_diags_format(diags, &buf);
        while (buf.size && buf.data[buf.size - 1] == '\n')
                buf.size--;
        af_buf_put_u8(&buf, 0);
        af_job_fail(code, AF_JOB_FAULT_NONE, af_buf_error(&buf) ? "out of memory" : buf.size > 1 ? (const char *)buf.data : "refused");
}

static void set_limits(const struct af_job_limits *l) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        if (l->cpu_s)
                setrlimit(RLIMIT_CPU, &(struct rlimit){l->cpu_s, l->cpu_s + 5});
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        if (l->memory_bytes)
                setrlimit(RLIMIT_AS, &(struct rlimit){l->memory_bytes, l->memory_bytes});
#endif
}

/* Whatever a library prints goes to the log, not among the messages. */
static int take_message_fd(void) {
        message_fd = fcntl(1, F_DUPFD_CLOEXEC, 10);
        if (message_fd < 0 || dup2(2, 1) < 0)
                return -errno;
        return fcntl(AF_JOB_LIFELINE_FD, F_SETFD, FD_CLOEXEC) < 0 ? -errno : 0;
}

static void send_peak(void) {
        struct rusage self = {0}, children = {0};
        uint32_t mib;

        getrusage(RUSAGE_SELF, &self);
        getrusage(RUSAGE_CHILDREN, &children);
        mib = (uint32_t)((self.ru_maxrss + children.ru_maxrss + 1023) / 1024);
        af_job_send(AF_JOB_MSG_PEAK, &mib, sizeof(mib));
}

static int run(struct af_arena *arena, const struct af_job_request *r) {
        switch (r->kind) {
        case AF_JOB_ENV:
                return af_job_env(arena, r);
        case AF_JOB_PLAN:
                return af_job_plan(arena, r);
        case AF_JOB_COMPILE:
                return af_job_compile(arena, r);
        }
        return 2;
}

int main(int argc, char **argv) {
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        AF_CLEANUP(af_buf_deinit) struct af_buf buf = AF_BUF_INIT;
        struct af_job_request request;
        int r;

        af_arena_init(&arena, 0);
        if (take_message_fd() < 0 || getsid(0) != getpid()) {
                fputs("autofused-job is started by autofused, not by hand\n", stderr);
                return 2;
        }
        close_range(message_fd + 1, ~0u, 0);
        umask(077);
        signal(SIGPIPE, SIG_IGN);
        if (af_lifeline_watch() < 0)
                return 2;
        if (af_io_read_fd(0, MAX_REQUEST_BYTES, &buf) < 0 || af_jobwire_read(&arena, buf.data, buf.size, &request) < 0)
                return 2;
        set_limits(&request.limits);
        r = run(&arena, &request);
        if (r == 0)
                send_peak();
        return r;
}
