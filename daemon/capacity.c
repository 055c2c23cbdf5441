/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/capacity.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A file of /proc or /sys as a string; false where it cannot be read. */
static bool read_text(const char *root, const char *path, char *out, size_t size) {
        char whole[4200];
        ssize_t n;
        int fd;

        snprintf(whole, sizeof(whole), "%s%s", root, path);
        fd = open(whole, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return false;
        n = read(fd, out, size - 1);
        close(fd);
        out[n > 0 ? n : 0] = 0;
        return n > 0;
}

static bool number_after(const char *text, const char *name, uint64_t *ret) {
        const char *p = strstr(text, name);

        if (p)
                *ret = strtoull(p + strlen(name), NULL, 10);
        return p != NULL;
}

/* What one group of the path may still take, bytes; file pages that it could give back count as free. */
static uint64_t group_left(const char *root, const char *group) {
        char path[4100], text[8192];
        uint64_t limit = UINT64_MAX, used, cache = 0, high;

        snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.max", group);
        if (read_text(root, path, text, sizeof(text)) && text[0] != 'm')
                limit = strtoull(text, NULL, 10);
        snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.high", group);
        if (read_text(root, path, text, sizeof(text)) && text[0] != 'm' && (high = strtoull(text, NULL, 10)) < limit)
                limit = high;
        snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.current", group);
        if (limit == UINT64_MAX || !read_text(root, path, text, sizeof(text)))
                return UINT64_MAX;
        used = strtoull(text, NULL, 10);
        snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.stat", group);
        if (read_text(root, path, text, sizeof(text)))
                (void)number_after(text, "\ninactive_file ", &cache);
        used -= AF_MIN(used, cache);
        return limit - AF_MIN(limit, used);
}

uint64_t af_memory_available_mib(const char *root) {
        uint64_t mib = UINT64_MAX, kib;
        char text[16384], *group, *end;

        if (read_text(root, "/proc/meminfo", text, sizeof(text)) && number_after(text, "MemAvailable:", &kib))
                mib = kib / 1024;
        if (!read_text(root, "/proc/self/cgroup", text, 4000) || !(group = strstr(text, "0::/")))
                return mib;
        group += 3;
        group[strcspn(group, "\n")] = 0;
        /* The group's own limit and those of all above it. */
        for (;;) {
                uint64_t left = group_left(root, strcmp(group, "/") == 0 ? "" : group);

                if (left != UINT64_MAX)
                        mib = AF_MIN(mib, left >> 20);
                end = strrchr(group, '/');
                if (!end || end == group)
                        return mib;
                *end = 0;
        }
}

uint64_t af_memory_oom_kills(const char *root) {
        uint64_t n = 0;
        char text[16384];

        if (read_text(root, "/proc/vmstat", text, sizeof(text)))
                (void)number_after(text, "\noom_kill ", &n);
        return n;
}

int af_host_slot_take(const char *name, unsigned n) {
        struct sockaddr_un sa = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), r = -EAGAIN;

        if (fd < 0)
                return -errno;
        for (unsigned i = 0; i < n; i++) {
                int size = snprintf(sa.sun_path + 1, sizeof(sa.sun_path) - 1, "%.80s/job/%u", name, i);

                if (bind(fd, (struct sockaddr *)&sa, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size)) == 0)
                        return fd;
                if (errno != EADDRINUSE) {
                        r = -errno;
                        break;
                }
        }
        close(fd);
        return r;
}
