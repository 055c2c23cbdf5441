/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"

#define BACKLOG          1024
#define CONNECT_TRIES    25
#define CONNECT_PAUSE_NS 20000000

static int refuse(char **ret_why, const char *path, const char *what) {
        if (asprintf(ret_why, "socket %s: %s", path, what) < 0)
                *ret_why = NULL;
        return AF_LISTEN_E_REFUSED;
}

static int refuse_errno(char **ret_why, const char *path, const char *step, int e) {
        char what[256];

        snprintf(what, sizeof(what), "%s: %s", step, strerror(e));
        refuse(ret_why, path, what);
        return -e;
}

/* 1: taken; 0: none given. */
static int take_activated(struct af_listener *l, char **ret_why) {
        int n = sd_listen_fds(1);

        if (n <= 0)
                return 0;
        if (n > 1 || sd_is_socket_unix(SD_LISTEN_FDS_START, SOCK_STREAM, 1, NULL, 0) <= 0)
                return -refuse(ret_why, "from systemd", "must be one listening Unix stream socket");
        if (fcntl(SD_LISTEN_FDS_START, F_SETFL, O_NONBLOCK) < 0 || fcntl(SD_LISTEN_FDS_START, F_SETFD, FD_CLOEXEC) < 0)
                return -refuse(ret_why, "from systemd", strerror(errno));
        *l = (struct af_listener){.fd = SD_LISTEN_FDS_START, .lock_fd = -1, .activated = true};
        return 1;
}

static int make_directory(const char *path, char **ret_why) {
        char *dir = strdup(path), *slash;
        struct stat st;
        int r = 0;

        if (!dir)
                return -ENOMEM;
        slash = strrchr(dir, '/');
        if (slash && slash != dir) {
                *slash = 0;
                /* The mask belongs to the process, and other threads make files meanwhile: it stays, and what is for all is opened after.
                 */
                if ((mkdir(dir, 0755) < 0 || chmod(dir, 0755) < 0) && errno != EEXIST)
                        r = refuse_errno(ret_why, path, "cannot make its directory", errno);
                else if (stat(dir, &st) < 0)
                        r = refuse_errno(ret_why, path, "its directory", errno);
                else if (!S_ISDIR(st.st_mode))
                        r = refuse(ret_why, path, "its directory is none");
                else if (st.st_uid != geteuid() && st.st_uid != 0)
                        r = refuse(ret_why, path, "its directory belongs to another user");
        }
        free(dir);
        return r;
}

/* Two servers that start at once on one path: the kernel's lock decides, and nothing of it outlives a killed process. */
static int take_lock(struct af_listener *l, const char *path, char **ret_why) {
        char *name;

        if (asprintf(&name, "%s.lock", path) < 0)
                return -ENOMEM;
        l->lock_fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        free(name);
        if (l->lock_fd < 0)
                return refuse_errno(ret_why, path, "cannot open its lock file", errno);
        /* Not flock: a child between fork and exec would share it, and outlive a killed server by a moment. */
        if (fcntl(l->lock_fd, F_SETLK, &(struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET}) < 0)
                return refuse(ret_why, path, "another server listens there");
        return 0;
}

static int connect_test(const struct sockaddr_un *addr) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r;

        if (fd < 0)
                return -errno;
        r = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0 ? -errno : 0;
        close(fd);
        return r;
}

/* What stands at the path: nothing, or a dead socket that is then removed. */
static int clear_path(const struct sockaddr_un *addr, const char *path, char **ret_why) {
        struct stat st;
        int r;

        if (lstat(path, &st) < 0)
                return errno == ENOENT ? 0 : refuse_errno(ret_why, path, "cannot look at it", errno);
        if (S_ISDIR(st.st_mode))
                return refuse(ret_why, path, "a directory is in the way");
        if (!S_ISSOCK(st.st_mode))
                return refuse(ret_why, path, "a file that is no socket is in the way");
        /* We have the lock: what answers is a stranger, or a child that a killed server just forked and that is gone at once. */
        for (unsigned i = 0; (r = connect_test(addr)) != -ECONNREFUSED && i < CONNECT_TRIES; i++)
                nanosleep(&(struct timespec){.tv_nsec = CONNECT_PAUSE_NS}, NULL);
        if (r == 0 || r == -EAGAIN)
                return refuse(ret_why, path, "another server listens there");
        if (r != -ECONNREFUSED)
                return refuse_errno(ret_why, path, "a socket is in the way", -r);
        return unlink(path) < 0 ? refuse_errno(ret_why, path, "cannot remove the dead socket", errno) : 0;
}

static int listen_at(struct af_listener *l, const struct sockaddr_un *addr, const char *path, char **ret_why) {
        l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (l->fd < 0)
                return refuse_errno(ret_why, path, "cannot make a socket", errno);
        if (bind(l->fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0)
                return refuse_errno(ret_why, path, "cannot bind", errno);
        /* Everyone may knock; hello decides by the peer's user. */
        if (chmod(path, 0666) < 0)
                return refuse_errno(ret_why, path, "cannot open it to all users", errno);
        l->path = strdup(path);
        if (!l->path)
                return -ENOMEM;
        if (listen(l->fd, BACKLOG) < 0)
                return refuse_errno(ret_why, path, "cannot listen", errno);
        return 0;
}

int af_listener_open(struct af_listener *l, const char *path, char **ret_why) {
        struct sockaddr_un addr = {.sun_family = AF_UNIX};
        int r;

        *ret_why = NULL;
        *l = (struct af_listener){.fd = -1, .lock_fd = -1};
        r = take_activated(l, ret_why);
        if (r)
                return r > 0 ? 0 : -r;
        if (strlen(path) >= sizeof(addr.sun_path)) {
                char what[128];

                snprintf(what, sizeof(what), "the path has %zu bytes, at most %zu fit", strlen(path), sizeof(addr.sun_path) - 1);
                return refuse(ret_why, path, what);
        }
        strcpy(addr.sun_path, path);
        r = make_directory(path, ret_why);
        if (r == 0)
                r = take_lock(l, path, ret_why);
        if (r == 0)
                r = clear_path(&addr, path, ret_why);
        if (r == 0)
                r = listen_at(l, &addr, path, ret_why);
        if (r)
                af_listener_close(l);
        return r;
}

char *af_listener_path(const struct af_listener *l) {
        struct sockaddr_un addr = {0};
        socklen_t n = sizeof(addr);

        if (getsockname(l->fd, (struct sockaddr *)&addr, &n) < 0 || addr.sun_path[0] != '/')
                return NULL;
        return strndup(addr.sun_path, sizeof(addr.sun_path));
}

void af_listener_close(struct af_listener *l) {
        if (l->path)
                unlink(l->path);
        if (l->fd >= 0)
                close(l->fd);
        if (l->lock_fd >= 0)
                close(l->lock_fd);
        free(l->path);
        *l = (struct af_listener){.fd = -1, .lock_fd = -1};
}
