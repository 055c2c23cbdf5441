/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* After fork in a process with threads: only what is safe in a signal handler. */
static _Noreturn void child(char *const argv[], char *const envp[], int in, int out, int lifeline, const sigset_t *mask) {
        int fds[3] = {in, out, lifeline};

        for (int s = 1; s < NSIG; s++)
                if (s != SIGKILL && s != SIGSTOP)
                        (void)signal(s, SIG_DFL);
        /* Out of the way of the numbers that they are to get. */
        for (int i = 0; i < 3; i++)
                fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 10);
        if (fds[0] < 0 || fds[1] < 0 || fds[2] < 0 || dup2(fds[0], 0) < 0 || dup2(fds[1], 1) < 0 || dup2(fds[2], 3) < 0)
                _exit(127);
        close_range(4, ~0u, 0);
        if (setsid() < 0 || chdir("/") < 0 || sigprocmask(SIG_SETMASK, mask, NULL) < 0)
                _exit(127);
        execve(argv[0], argv, envp);
        _exit(127);
}

int af_process_start(char *const argv[], char *const envp[], int in, int out, int lifeline, pid_t *ret_pid, int *ret_pidfd) {
        sigset_t all, mask;
        pid_t pid;
        int fd, r;

        if (access(argv[0], X_OK) < 0)
                return -errno;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &mask); /* no handler of ours runs in the child */
        pid = fork();
        r = errno;
        if (pid == 0) {
                sigdelset(&mask, SIGCHLD);
                child(argv, envp, in, out, lifeline, &mask);
        }
        pthread_sigmask(SIG_SETMASK, &mask, NULL);
        if (pid < 0)
                return -r;
        fd = (int)syscall(SYS_pidfd_open, pid, 0);
        if (fd < 0) {
                r = errno;
                kill(pid, SIGKILL);
                while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                        ;
                return -r;
        }
        *ret_pid = pid;
        *ret_pidfd = fd;
        return 0;
}

int af_process_reap(pid_t pid, int *ret_status, int *ret_signal) {
        int status;
        pid_t r;

        do
                r = waitpid(pid, &status, WNOHANG);
        while (r < 0 && errno == EINTR);
        if (r == 0)
                return -EAGAIN;
        if (r < 0)
                return -errno;
        *ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
        *ret_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        return 0;
}
