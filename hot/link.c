/* SPDX-License-Identifier: Apache-2.0 */
#include "hot/link.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* "autofused-hot:PID:FD:NUMBER" */
#define FORMAT     "autofused-hot:%d:%d:%016llx"
#define TARGET_MAX 128

static int link_path(const char *socket, char ret_path[PATH_MAX]) {
        int n = snprintf(ret_path, PATH_MAX, "%s.hot", socket);

        return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int af_hot_link_make(const char *socket, int fd, uint64_t number) {
        char path[PATH_MAX], target[TARGET_MAX];
        int r = link_path(socket, path);

        if (r < 0)
                return r;
        snprintf(target, sizeof(target), FORMAT, (int)getpid(), fd, (unsigned long long)number);
        if (unlink(path) < 0 && errno != ENOENT)
                return -errno;
        return symlink(target, path) < 0 ? -errno : 0;
}

void af_hot_link_remove(const char *socket) {
        char path[PATH_MAX];

        if (link_path(socket, path) == 0)
                (void)unlink(path);
}

/* -ENOENT: there is none, or it says something else. */
static int read_link(const char *socket, char ret_name[TARGET_MAX], uint64_t *ret_number) {
        char path[PATH_MAX], target[TARGET_MAX];
        unsigned long long number;
        int r = link_path(socket, path), pid, fd, end = 0;
        ssize_t n;

        if (r < 0)
                return r;
        n = readlink(path, target, sizeof(target) - 1);
        if (n < 0)
                return -errno;
        target[n] = 0;
        if (sscanf(target, "autofused-hot:%9d:%9d:%16llx%n", &pid, &fd, &number, &end) != 3 || end != n || pid <= 0 || fd < 0)
                return -ENOENT;
        snprintf(ret_name, TARGET_MAX, "/proc/%d/fd/%d", pid, fd);
        *ret_number = number;
        return 0;
}

int af_hot_link_open(const char *socket, uint64_t *ret_number, uid_t *ret_owner, off_t *ret_bytes, int *ret_fd) {
        char name[TARGET_MAX];
        struct stat st;
        int r = read_link(socket, name, ret_number), found, fd;

        if (r < 0)
                return r;
        found = open(name, O_PATH | O_CLOEXEC);
        if (found < 0)
                return -errno;
        r = fstat(found, &st) < 0 ? -errno : !S_ISREG(st.st_mode) ? -ENOENT : 0;
        snprintf(name, sizeof(name), "/proc/self/fd/%d", found);
        fd = r == 0 ? open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
        if (r == 0 && fd < 0)
                r = -errno;
        close(found);
        if (r < 0)
                return r;
        *ret_owner = st.st_uid;
        *ret_bytes = st.st_size;
        *ret_fd = fd;
        return 0;
}
