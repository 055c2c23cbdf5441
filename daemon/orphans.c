/* SPDX-License-Identifier: Apache-2.0 */
/*
 * STATE/jobs/<pid>: `<start time of the process, clock ticks since boot> <boot id>`. A job ends by itself when its core dies (its
 * lifeline breaks); this is the second line, for one that was stopped or stuck then. A pid alone is never trusted.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "daemon/worker.h"

struct proc_stat {
        char state;
        long session;
        unsigned long long start;
};

/* /proc/<pid>/stat; the name in parentheses may hold anything. 0 or -errno. */
static int proc_stat_read(long pid, struct proc_stat *ret) {
        char path[64], text[1024];
        const char *p;
        ssize_t n;
        int fd;

        snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        n = read(fd, text, sizeof(text) - 1);
        close(fd);
        if (n <= 0)
                return -ESRCH;
        text[n] = 0;
        p = strrchr(text, ')');
        if (!p || sscanf(p + 1, " %c %*d %*d %ld %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &ret->state,
                         &ret->session, &ret->start) != 3)
                return -EBADMSG;
        return 0;
}

static void boot_id(char out[64]) {
        int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? 0 : read(fd, out, 63);

        if (fd >= 0)
                close(fd);
        out[n > 0 ? n : 0] = 0;
        out[strcspn(out, "\n")] = 0;
}

static unsigned session_kill_once(pid_t session, pid_t self, unsigned long long min_start) {
        struct proc_stat st;
        struct dirent *e;
        unsigned n = 0;
        DIR *d = opendir("/proc");

        while (d && (e = readdir(d))) {
                long pid = isdigit((unsigned char)e->d_name[0]) ? strtol(e->d_name, NULL, 10) : 0;

                if (pid <= 0 || pid == self || proc_stat_read(pid, &st) < 0)
                        continue;
                if (st.session != session || st.state == 'Z' || st.state == 'X' || st.start < min_start)
                        continue;
                n += kill((pid_t)pid, SIGKILL) == 0;
        }
        if (d)
                closedir(d);
        return n;
}

unsigned af_session_kill(pid_t session, pid_t self) {
        unsigned n = 0, more;

        /* Again, for what was forked meanwhile; a killed process may still be listed for a moment. */
        for (unsigned i = 0; i < 3 && (more = session_kill_once(session, self, 0)) > 0; i++)
                n = AF_MAX(n, more);
        return n;
}

static void record_path(char out[4096], const char *state_dir, pid_t pid) {
        snprintf(out, 4096, "%s/jobs/%d", state_dir, (int)pid);
}

void af_orphan_record(const char *state_dir, pid_t pid) {
        char path[4096], boot[64], text[128];
        struct proc_stat st;
        int fd;

        if (proc_stat_read(pid, &st) < 0)
                return;
        boot_id(boot);
        record_path(path, state_dir, pid);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return;
        /* Not synced: after a crash of the host there is no job either. */
        snprintf(text, sizeof(text), "%llu %s\n", st.start, boot);
        if (af_io_write_fd(fd, text, strlen(text)) < 0)
                unlink(path);
        close(fd);
}

void af_orphan_forget(const char *state_dir, pid_t pid) {
        char path[4096];

        record_path(path, state_dir, pid);
        unlink(path);
}

static unsigned end_one(const char *path, pid_t pid, const char *boot) {
        AF_CLEANUP(af_buf_deinit) struct af_buf buf = AF_BUF_INIT;
        unsigned long long start;
        struct proc_stat st;
        char id[64];

        if (af_io_read_file(path, 4096, &buf) < 0)
                return 0;
        af_buf_put_u8(&buf, 0);
        if (af_buf_error(&buf) || sscanf((const char *)buf.data, "%llu %63s", &start, id) != 2 || strcmp(id, boot) != 0)
                return 0;
        /* Its number belongs to someone else by now. (While anything of its session lives, the kernel does not give the number out again.)
         */
        if (proc_stat_read(pid, &st) == 0 && st.start != start)
                return 0;
        return session_kill_once(pid, getpid(), start);
}

unsigned af_orphans_end(const char *state_dir) {
        char dir[4096], path[4096], boot[64];
        struct dirent *e;
        unsigned n = 0;
        DIR *d;

        snprintf(dir, sizeof(dir), "%s/jobs", state_dir);
        d = opendir(dir);
        boot_id(boot);
        while (d && (e = readdir(d))) {
                pid_t pid = isdigit((unsigned char)e->d_name[0]) ? (pid_t)strtol(e->d_name, NULL, 10) : 0;

                if (pid <= 1)
                        continue;
                record_path(path, state_dir, pid);
                n += end_one(path, pid, boot);
                unlink(path);
        }
        if (d)
                closedir(d);
        return n;
}
