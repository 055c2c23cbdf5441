/* SPDX-License-Identifier: Apache-2.0 */
/* stop: SIGTERM to the process behind the socket, and waiting until it has drained. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "tools/admin.h"
#include "tools/commands.h"

#define WAIT_S 120u /* longer than a server drains by default */

static const struct af_option options[] = {
        AF_OPTIONS_COMMON,
        {0, "no-wait", AF_OPTION_FLAG, NULL, "do not wait until it has ended"},
        AF_OPTIONS_SERVER,
        {0},
};

static int complain(const char *what, const char *why) {
        fprintf(stderr, "error: %s%s%s\n", what, why ? ": " : "", why ? why : "");
        return AF_EXIT_FAILED;
}

/* The server's own word for its process; 0: none. */
static pid_t told_pid(struct af_admin *a) {
        struct af_buf none = AF_BUF_INIT;
        AF_CLEANUP(af_freep) char *text = NULL;
        if (af_admin_ask(a, AF_FRAME_STATS, &none, NULL, &text, NULL, NULL) != AF_EXIT_OK)
                return 0;
        cJSON *o = cJSON_Parse(text);
        const cJSON *pid = cJSON_GetObjectItemCaseSensitive(o, "pid");
        pid_t told = cJSON_IsNumber(pid) ? (pid_t)pid->valueint : 0;
        cJSON_Delete(o);
        return told;
}

/* A descriptor of the process that listens, which cannot come to mean another one; or -1, the reason printed. */
static int find_process(struct af_admin *a, pid_t *ret_pid) {
        struct ucred peer;
        socklen_t n = sizeof(peer);
        if (getsockopt(a->conn->fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0 || peer.pid <= 0) {
                complain("the server's process cannot be told", strerror(errno));
                return -1;
        }
        int fd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
        if (fd < 0) {
                complain("the server's process", strerror(errno));
                return -1;
        }
        /* It answers, so the descriptor is of a process that still was the server after it was opened. */
        if (told_pid(a) != peer.pid) {
                close(fd);
                complain("another process than the server made this socket, as systemd does: stop its unit",
                         "systemctl stop autofused.socket autofused.service");
                return -1;
        }
        *ret_pid = peer.pid;
        return fd;
}

static int end(int fd, pid_t pid, bool wait, uint64_t seconds) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0) < 0)
                return errno == ESRCH ? AF_EXIT_OK : complain("the server is another user's, or cannot be signaled", strerror(errno));
        if (!wait)
                return AF_EXIT_OK;
        int r;
        do
                r = poll(&p, 1, (int)AF_MIN(seconds * 1000, (uint64_t)INT32_MAX));
        while (r < 0 && errno == EINTR);
        if (r == 1)
                return AF_EXIT_OK;
        fprintf(stderr, "error: process %d has not ended after %llu s; it finishes what is in flight\n", (int)pid,
                (unsigned long long)seconds);
        return AF_EXIT_FAILED;
}

static int run(const struct af_args *args) {
        struct af_admin a;
        pid_t pid = 0;
        int r = af_admin_open(args, &a);
        if (r != AF_EXIT_OK)
                return r;
        AF_CLEANUP(af_closep) int fd = find_process(&a, &pid);
        /* Closed before the signal: a connection would be drained, too. */
        af_admin_close(&a);
        if (fd < 0)
                return AF_EXIT_FAILED;
        r = end(fd, pid, !af_args_flag(args, "no-wait"), af_args_seconds(args, "timeout", WAIT_S));
        if (r == AF_EXIT_OK && af_args_flag(args, "json")) {
                cJSON *o = cJSON_CreateObject();
                cJSON_AddNumberToObject(o, "stopped", pid);
                af_out_json(o);
        }
        return r;
}

const struct af_command af_command_stop = {
        .name = "stop",
        .operands = "",
        .summary = "end this user's server, after what is in flight",
        .details = "Sends SIGTERM to the process behind the socket and waits until it is gone (--timeout, 120 s). What it stored stays.",
        .options = options,
        .run = run,
};
