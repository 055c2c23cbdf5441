/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the server: which paths are tried, how long, and what is said where none answers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/connection.h"

#define NAMED_WINDOW_NS 1000000000ull
#define RETRY_MIN_NS    5000000ull
#define RETRY_MAX_NS    100000000ull

/* Connected descriptor, or -errno. */
static int connect_path(const char *path) {
        struct sockaddr_un sa = {.sun_family = AF_UNIX};
        size_t n = strlen(path);
        if (n >= sizeof(sa.sun_path))
                return -ENAMETOOLONG;
        memcpy(sa.sun_path, path, n + 1);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        /* Never blocks on a Unix socket: a full backlog is EAGAIN. */
        if (connect(fd, (struct sockaddr *)&sa, (socklen_t)sizeof(sa)) < 0) {
                int r = -errno;
                close(fd);
                return r;
        }
        return fd;
}

static enum autofuse_status explain(const char *path, int error, struct autofuse_error **ret_error) {
        struct stat st;
        switch (error) {
        case -ENAMETOOLONG:
                return af_error_set(ret_error, AUTOFUSE_E_UNAVAILABLE, "the socket path has %zu bytes, the system's limit is %zu: %s",
                                    strlen(path), sizeof(((struct sockaddr_un *)0)->sun_path) - 1, path);
        case -ENOENT:
        case -ENOTDIR:
                return af_error_set_retryable(ret_error, AUTOFUSE_E_UNAVAILABLE, "no server is running: %s does not exist", path);
        case -ECONNREFUSED:
                if (stat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
                        return af_error_set(ret_error, AUTOFUSE_E_UNAVAILABLE, "%s is %s, not a socket", path,
                                            S_ISDIR(st.st_mode) ? "a directory" : "a file");
                return af_error_set_retryable(ret_error, AUTOFUSE_E_UNAVAILABLE,
                                              "no server answers at %s (a socket left behind by one that is gone)", path);
        case -EAGAIN:
                return af_error_set_retryable(ret_error, AUTOFUSE_E_UNAVAILABLE, "the server at %s is too busy to accept a connection",
                                              path);
        case -EACCES:
        case -EPERM:
                return af_error_set(ret_error, AUTOFUSE_E_UNAVAILABLE, "this user may not connect to %s", path);
        default:
                return af_error_set(ret_error, AUTOFUSE_E_UNAVAILABLE, "cannot connect to %s: %s", path, strerror(-error));
        }
}

/* Whether waiting may help. */
static bool may_come(int error) {
        return error == -ENOENT || error == -ECONNREFUSED || error == -EAGAIN;
}

static uint64_t jitter(uint64_t ns) {
        return ns / 2 + (af_clock_now_ns() * 2654435761u >> 7) % (ns / 2 + 1);
}

static void sleep_ns(uint64_t ns) {
        struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
        nanosleep(&ts, NULL);
}

static enum autofuse_status try_path(const struct af_connect *how, const struct af_socket_candidate *c, uint64_t until_ns,
                                     struct af_connection **ret_conn, struct autofuse_error **ret_error) {
        uint64_t pause = RETRY_MIN_NS;
        for (;;) {
                struct autofuse_error *error = NULL;
                enum autofuse_status status = AUTOFUSE_E_UNAVAILABLE;
                bool again;
                int fd = connect_path(c->path);
                if (fd >= 0) {
                        status = af_connection_hello(fd, how, c->path, af_clock_now_ns() + how->hello_ns, ret_conn, &error);
                        again = autofuse_error_is_retryable(error);
                } else {
                        struct stat st;
                        again = may_come(fd) && !(fd == -ECONNREFUSED && stat(c->path, &st) == 0 && !S_ISSOCK(st.st_mode));
                        status = explain(c->path, fd, &error);
                }
                if (status == AUTOFUSE_OK || status == AUTOFUSE_E_MEMORY || !again || af_clock_now_ns() + pause >= until_ns) {
                        if (status != AUTOFUSE_OK && ret_error)
                                *ret_error = error;
                        else
                                autofuse_error_free(error);
                        return status;
                }
                autofuse_error_free(error);
                sleep_ns(jitter(pause));
                pause = AF_MIN(pause * 2, RETRY_MAX_NS);
        }
}

/* One path's reason, or both in a line. */
static enum autofuse_status join_errors(struct autofuse_error *const *errors, uint32_t n, struct autofuse_error **ret_error) {
        if (n == 1)
                return af_error_copy(ret_error, errors[0]);
        bool later = errors[0]->retryable || errors[1]->retryable;
        return (later ? af_error_set_retryable : af_error_set)(ret_error, AUTOFUSE_E_UNAVAILABLE, "%s; %s", errors[0]->text,
                                                               errors[1]->text);
}

enum autofuse_status af_connection_open(const struct af_connect *how, struct af_connection **ret_conn, struct autofuse_error **ret_error) {
        struct autofuse_error *errors[AF_SOCKET_MAX_CANDIDATES] = {0};
        enum autofuse_status status = AUTOFUSE_E_UNAVAILABLE;
        uint32_t n = 0;
        uint64_t now = af_clock_now_ns();
        for (; n < how->paths->n_items; n++) {
                const struct af_socket_candidate *c = &how->paths->items[n];
                uint64_t window = how->window_ns != UINT64_MAX ? how->window_ns : c->named ? NAMED_WINDOW_NS : 0;
                /* Several candidates: only the last is waited for, else a host without a system server would wait at each start. */
                if (n + 1 < how->paths->n_items)
                        window = 0;
                status = try_path(how, c, now + window, ret_conn, &errors[n]);
                if (status != AUTOFUSE_E_UNAVAILABLE)
                        break;
        }
        if (status == AUTOFUSE_E_UNAVAILABLE)
                status = join_errors(errors, n, ret_error);
        else if (status == AUTOFUSE_E_MEMORY)
                (void)af_error_set_memory(ret_error);
        for (uint32_t i = 0; i < AF_SOCKET_MAX_CANDIDATES; i++)
                autofuse_error_free(errors[i]);
        return status;
}
