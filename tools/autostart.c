/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/autostart.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "client/request.h"

#define START_TIMEOUT_US 10000000u
#define TRY_WINDOW_NS    100000000u

/* Connects the context; nobody else uses it yet. */
static enum autofuse_status try_connect(struct autofuse_context *ctx, uint64_t window_ns, struct autofuse_error **ret_error) {
        struct af_connect how;
        af_context_connect_params(ctx, &how);
        how.window_ns = window_ns;
        struct af_connection *conn = NULL;
        enum autofuse_status status = af_connection_open(&how, &conn, ret_error);
        if (status == AUTOFUSE_OK)
                af_lead_connected(ctx, conn);
        return status;
}

/* Beside this program, in a build tree, or in PATH. */
static void find_server(char out[PATH_MAX]) {
        static const char *const places[] = {"%s/autofused", "%s/../daemon/autofused", "%s/../sbin/autofused"};
        char self[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        for (size_t i = 0; n > 0 && i < AF_ARRAY_SIZE(places); i++) {
                self[n] = 0;
                char copy[PATH_MAX];
                memcpy(copy, self, (size_t)n + 1);
                if (snprintf(out, PATH_MAX, places[i], dirname(copy)) < PATH_MAX && access(out, X_OK) == 0)
                        return;
        }
        snprintf(out, PATH_MAX, "autofused");
}

/* In the child: no descriptor but a log, a session of its own. */
static void exec_server(const char *program, const char *socket, int log_fd) {
        int null_fd = open("/dev/null", O_RDWR);
        if (setsid() < 0 || null_fd < 0 || dup2(null_fd, 0) < 0 || dup2(log_fd, 1) < 0 || dup2(log_fd, 2) < 0)
                _exit(127);
        close_range(3, ~0u, 0);
        execlp(program, program, "--socket", socket, (char *)NULL);
        dprintf(2, "%s: %s\n", program, strerror(errno));
        _exit(127);
}

/* What the server said last before it ended: into out. */
static void last_line(int log_fd, off_t from, char *out, size_t size) {
        char text[4096];
        ssize_t n = pread(log_fd, text, sizeof(text) - 1, from);
        out[0] = 0;
        if (n <= 0)
                return;
        while (n > 0 && text[n - 1] == '\n')
                n--;
        text[n] = 0;
        const char *line = strrchr(text, '\n');
        snprintf(out, size, ": %.900s", line ? line + 1 : text);
}

static enum autofuse_status wait_for(struct autofuse_context *ctx, pid_t pid, int log_fd, off_t log_start,
                                     struct autofuse_error **ret_error) {
        uint64_t until = af_clock_now_us() + START_TIMEOUT_US;
        for (;;) {
                struct autofuse_error *error = NULL;
                int wstatus;
                if (try_connect(ctx, TRY_WINDOW_NS, &error) == AUTOFUSE_OK)
                        return AUTOFUSE_OK;
                bool gone = waitpid(pid, &wstatus, WNOHANG) == pid;
                if (gone || af_clock_now_us() >= until) {
                        char line[1024];
                        last_line(log_fd, log_start, line, sizeof(line));
                        enum autofuse_status status =
                                af_error_set(ret_error, AUTOFUSE_E_UNAVAILABLE, "%s, and a server started here %s%s",
                                             autofuse_error_text(error), gone ? "ended at once" : "does not answer", line);
                        autofuse_error_free(error);
                        return status;
                }
                autofuse_error_free(error);
        }
}

static enum autofuse_status start(struct autofuse_context *ctx, const char *path, const char *dir, struct autofuse_error **ret_error) {
        char program[PATH_MAX], log_path[PATH_MAX];
        find_server(program);
        snprintf(log_path, sizeof(log_path), "%s/autofused.log", dir);
        AF_CLEANUP(af_closep) int log_fd = open(log_path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (log_fd < 0)
                return af_error_set(ret_error, AUTOFUSE_E_UNAVAILABLE, "no server is running, and none can be started: %s: %s", log_path,
                                    strerror(errno));
        off_t log_start = lseek(log_fd, 0, SEEK_END);
        pid_t pid = fork();
        if (pid < 0)
                return af_error_set(ret_error, AUTOFUSE_E_UNAVAILABLE, "no server is running, and none can be started: %s",
                                    strerror(errno));
        if (pid == 0)
                exec_server(program, path, log_fd);
        return wait_for(ctx, pid, log_fd, log_start, ret_error);
}

/* Descriptor of the locked file in the socket's directory: held by whoever starts a server. Released by the kernel when it is closed. */
static int lock_directory(const char *dir) {
        char path[PATH_MAX];
        struct stat st;
        int r = af_io_make_dirs(dir, 0755);
        if (r < 0)
                return r;
        if (lstat(dir, &st) < 0)
                return -errno;
        if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
                return -EPERM;
        snprintf(path, sizeof(path), "%s/start.lock", dir);
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return -errno;
        while (flock(fd, LOCK_EX) < 0)
                if (errno != EINTR) {
                        r = -errno;
                        close(fd);
                        return r;
                }
        return fd;
}

enum autofuse_status af_autostart(struct autofuse_context *ctx, struct autofuse_error **ret_error) {
        struct autofuse_error *error = NULL;
        enum autofuse_status status = try_connect(ctx, 0, &error);
        const char *forbidden = getenv("AUTOFUSE_AUTOSTART");
        bool may_start =
                status == AUTOFUSE_E_UNAVAILABLE && autofuse_error_is_retryable(error) && !(forbidden && strcmp(forbidden, "0") == 0);
        if (status == AUTOFUSE_OK || !may_start) {
                if (status != AUTOFUSE_OK && ret_error)
                        *ret_error = error;
                else
                        autofuse_error_free(error);
                return status;
        }
        autofuse_error_free(error);
        /* Root's own server is the system's. */
        const char *path = ctx->paths.items[ctx->own_uid == 0 ? 0 : ctx->paths.n_items - 1].path;
        char copy[PATH_MAX];
        snprintf(copy, sizeof(copy), "%s", path);
        const char *dir = dirname(copy);
        int r = lock_directory(dir);
        AF_CLEANUP(af_closep) int lock_fd = r;
        if (r < 0)
                return af_error_set(ret_error, AUTOFUSE_E_UNAVAILABLE, "no server is running, and none can be started in %s: %s", dir,
                                    r == -EPERM ? "the directory is not this user's" : strerror(-r));
        /* Another process may have started it meanwhile. */
        if (try_connect(ctx, 0, NULL) == AUTOFUSE_OK)
                return AUTOFUSE_OK;
        return start(ctx, path, dir, ret_error);
}
