/* SPDX-License-Identifier: Apache-2.0 */
#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"

#define DEFAULT_OUTPUT_BYTES (1u << 20)
#define FIRST_FREE_FD        4 /* 0..2: the streams, 3: where exec's error goes */

/* Everything the parent holds while a child runs. */
struct run {
        const struct af_spawn *spawn;
        struct af_buf *sinks[2]; /* stdout, stderr; NULL: dropped */
        size_t n_taken[2];
        int pipes[2]; /* our ends; -1: none, or at its end */
        int pidfd;
        pid_t pid;
        bool killed;
        struct af_spawn_result result;
};

/* What the child needs between fork and exec, where nothing may allocate or lock. */
struct child {
        const char *program;
        char *const *argv;
        char *const *envp;
        const char *cwd;
        int streams[3];
        int error_fd;
        pid_t parent;
        bool new_group;
};

__attribute__((noreturn)) static void child_fail(int fd) {
        int e = errno;

        while (write(fd, &e, sizeof(e)) < 0 && errno == EINTR)
                ;
        _exit(127);
}

__attribute__((noreturn)) static void child_main(const struct child *c) {
        int error_fd = c->error_fd;
        sigset_t none;

        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                child_fail(error_fd);
        if (getppid() != c->parent) /* the parent went before the line above */
                _exit(127);
        if (c->new_group && setpgid(0, 0) < 0)
                child_fail(error_fd);
        for (int i = 0; i < 3; i++)
                if (dup2(c->streams[i], i) < 0)
                        child_fail(error_fd);
        if (dup3(error_fd, 3, O_CLOEXEC) < 0)
                child_fail(error_fd);
        error_fd = 3;
        if (close_range(FIRST_FREE_FD, UINT_MAX, 0) < 0) {
                struct rlimit limit = {.rlim_cur = 1024};
                (void)getrlimit(RLIMIT_NOFILE, &limit);
                for (int fd = FIRST_FREE_FD; fd < (int)AF_MIN(limit.rlim_cur, (rlim_t)65536); fd++)
                        close(fd);
        }
        for (int sig = 1; sig < NSIG; sig++)
                signal(sig, SIG_DFL);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        if (c->cwd && chdir(c->cwd) < 0)
                child_fail(error_fd);
        execve(c->program, c->argv, c->envp);
        child_fail(error_fd);
}

/* A descriptor at FIRST_FREE_FD or above, so that the child's dup2 onto 0..3 overwrites none of its sources. */
static int raise_fd(int *fd) {
        if (*fd >= FIRST_FREE_FD)
                return 0;
        int up = fcntl(*fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
        if (up < 0)
                return -errno;
        close(*fd);
        *fd = up;
        return 0;
}

static int make_pipe(int *ret_read, int *ret_write) {
        int ends[2];

        if (pipe2(ends, O_CLOEXEC) < 0)
                return -errno;
        *ret_read = ends[0];
        *ret_write = ends[1];
        int r = raise_fd(ret_read);
        return r < 0 ? r : raise_fd(ret_write);
}

static const char *env_get(const char *const *envp, const char *name) {
        size_t n = strlen(name);

        for (; envp && *envp; envp++)
                if (strncmp(*envp, name, n) == 0 && (*envp)[n] == '=')
                        return *envp + n + 1;
        return NULL;
}

/* Finds argv[0] along PATH of the child's environment; in the parent, because the search allocates. */
static int find_program(const struct af_spawn *s, char **ret_path) {
        const char *name = s->argv[0];
        const char *path = env_get(s->envp, "PATH");
        int found = -ENOENT;

        if (!name[0])
                return -ENOENT;
        if (strchr(name, '/')) {
                *ret_path = strdup(name);
                return *ret_path ? 0 : -ENOMEM;
        }
        if (!path)
                path = "/usr/local/bin:/usr/bin:/bin";
        while (*path) {
                size_t n = strcspn(path, ":");
                char *candidate;

                if (asprintf(&candidate, "%.*s/%s", n > 0 ? (int)n : 1, n > 0 ? path : ".", name) < 0)
                        return -ENOMEM;
                if (access(candidate, X_OK) == 0) {
                        *ret_path = candidate;
                        return 0;
                }
                if (errno == EACCES)
                        found = -EACCES;
                free(candidate);
                path += n + (path[n] == ':');
        }
        return found;
}

static int open_input(const struct af_spawn *s) {
        int fd = s->input ? af_io_memfd("stdin", s->input, s->input_size, false) : open("/dev/null", O_RDWR | O_CLOEXEC);

        return fd < 0 && !s->input ? -errno : fd;
}

/* 0 once the program runs, -errno where exec or a step before it failed (the child is reaped then). */
static int await_exec(struct run *run, int error_read) {
        int e = 0;
        ssize_t n;

        do
                n = read(error_read, &e, sizeof(e));
        while (n < 0 && errno == EINTR);
        if (n == 0)
                return 0;
        while (waitpid(run->pid, NULL, 0) < 0 && errno == EINTR)
                ;
        return n == (ssize_t)sizeof(e) && e > 0 ? -e : -EIO;
}

static int start(struct run *run, const char *program) {
        static char *const no_env[] = {NULL};
        const struct af_spawn *s = run->spawn;
        AF_CLEANUP(af_closep) int in = open_input(s), out = -1, err = -1, error_read = -1, error_write = -1;
        int r = in < 0 ? in : raise_fd(&in);
        int *writes[2] = {&out, &err};

        for (int i = 0; i < 2 && r == 0; i++)
                if (run->sinks[i])
                        r = make_pipe(&run->pipes[i], writes[i]);
                else if ((*writes[i] = open("/dev/null", O_RDWR | O_CLOEXEC)) < 0)
                        r = -errno;
                else
                        r = raise_fd(writes[i]);
        if (r == 0)
                r = make_pipe(&error_read, &error_write);
        if (r < 0)
                return r;
        struct child child = {
                .program = program,
                .argv = (char *const *)(uintptr_t)s->argv,
                .envp = s->envp ? (char *const *)(uintptr_t)s->envp : no_env,
                .cwd = s->cwd,
                .streams = {in, out, err},
                .error_fd = error_write,
                .parent = getpid(),
                .new_group = s->new_group,
        };
        run->pid = fork();
        if (run->pid == 0)
                child_main(&child);
        if (run->pid < 0)
                return -errno;
        af_closep(&error_write);
        return await_exec(run, error_read);
}

static void kill_child(struct run *run) {
        if (run->killed)
                return;
        run->killed = true;
        /* The child is not reaped yet, so neither number can belong to anyone else. */
        kill(run->spawn->new_group ? -run->pid : run->pid, SIGKILL);
}

/* Takes what is there now; closes the pipe at its end. */
static int drain(struct run *run, int i) {
        size_t max = run->spawn->max_output_bytes ? run->spawn->max_output_bytes : DEFAULT_OUTPUT_BYTES;
        uint8_t bytes[16384];

        for (;;) {
                ssize_t n = read(run->pipes[i], bytes, sizeof(bytes));
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        return 0;
                if (n <= 0) {
                        af_closep(&run->pipes[i]);
                        return 0;
                }
                size_t keep = AF_MIN((size_t)n, max - run->n_taken[i]);
                af_buf_put(run->sinks[i], bytes, keep);
                run->n_taken[i] += keep;
                if (af_buf_error(run->sinks[i]))
                        return af_buf_error(run->sinks[i]);
        }
}

static bool lifeline_gone(int fd) {
        char bytes[256];
        ssize_t n = read(fd, bytes, sizeof(bytes));

        return n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN);
}

/* Milliseconds until the deadline for poll, -1 where there is none. */
static int remaining_ms(uint64_t deadline_ns) {
        uint64_t now = af_clock_now_ns();

        if (deadline_ns == UINT64_MAX)
                return -1;
        if (now >= deadline_ns)
                return 0;
        return (int)AF_MIN((deadline_ns - now) / 1000000 + 1, (uint64_t)INT_MAX);
}

static uint64_t deadline_of(uint64_t begin_ns, uint64_t timeout_ms) {
        uint64_t ns;

        if (timeout_ms == 0 || __builtin_mul_overflow(timeout_ms, 1000000u, &ns) || __builtin_add_overflow(begin_ns, ns, &ns))
                return UINT64_MAX;
        return ns;
}

/* Until the child is dead (not reaped). A failure here is remembered and the child is killed: nothing is left running. */
static int supervise(struct run *run, uint64_t deadline_ns) {
        int r = 0, lifeline = run->spawn->lifeline_fd;

        for (;;) {
                struct pollfd fds[4] = {
                        {.fd = run->pidfd, .events = POLLIN},
                        {.fd = run->pipes[0], .events = POLLIN},
                        {.fd = run->pipes[1], .events = POLLIN},
                        {.fd = run->killed ? -1 : lifeline, .events = POLLIN},
                };
                if (poll(fds, 4, run->killed ? -1 : remaining_ms(deadline_ns)) < 0 && errno != EINTR)
                        r = r < 0 ? r : -errno;
                for (int i = 0; i < 2; i++)
                        if (fds[1 + i].revents && r == 0)
                                r = drain(run, i);
                if (fds[0].revents)
                        return r;
                if (!run->killed && fds[3].revents && lifeline_gone(lifeline))
                        run->result.lifeline_lost = true;
                else if (!run->killed && deadline_ns != UINT64_MAX && af_clock_now_ns() >= deadline_ns)
                        run->result.timed_out = true;
                if (r < 0 || run->result.lifeline_lost || run->result.timed_out)
                        kill_child(run);
        }
}

static int reap(struct run *run) {
        struct rusage usage;
        int status;

        while (wait4(run->pid, &status, 0, &usage) < 0)
                if (errno != EINTR)
                        return -errno;
        run->result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
        run->result.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        run->result.max_rss_kib = (uint64_t)usage.ru_maxrss;
        return 0;
}

static int run_to_end(struct run *run, uint64_t begin_ns) {
        int r = 0;

        for (int i = 0; i < 2; i++)
                if (run->pipes[i] >= 0 && fcntl(run->pipes[i], F_SETFL, O_NONBLOCK) < 0)
                        r = -errno;
        run->pidfd = (int)syscall(SYS_pidfd_open, run->pid, 0);
        if (run->pidfd < 0 && r == 0)
                r = -errno;
        if (r < 0)
                kill_child(run);
        else
                r = supervise(run, deadline_of(begin_ns, run->spawn->timeout_ms));
        /* What the child left behind in its group goes with it. */
        if (run->spawn->new_group)
                kill(-run->pid, SIGKILL);
        int k = reap(run);
        if (r == 0)
                r = k;
        for (int i = 0; i < 2; i++)
                if (run->pipes[i] >= 0 && r == 0)
                        r = drain(run, i);
        run->result.wall_us = (af_clock_now_ns() - begin_ns) / 1000;
        return r;
}

int af_spawn_run(const struct af_spawn *spawn, struct af_buf *out, struct af_buf *err, struct af_spawn_result *ret_result) {
        struct run run = {.spawn = spawn, .sinks = {out, err}, .pipes = {-1, -1}, .pidfd = -1};
        AF_CLEANUP(af_freep) char *program = NULL;
        uint64_t begin_ns = af_clock_now_ns();
        int r = find_program(spawn, &program);

        if (r < 0)
                return r;
        r = start(&run, program);
        if (r == 0)
                r = run_to_end(&run, begin_ns);
        for (int i = 0; i < 2; i++)
                af_closep(&run.pipes[i]);
        af_closep(&run.pidfd);
        if (r == 0)
                *ret_result = run.result;
        return r;
}
