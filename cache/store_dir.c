/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state directory: who may own it, who may write it, which file systems will do, and which format is in it.
 *
 *   DIR/lmdb/schema   one line, SCHEMA below; anything else is another program's and is set aside unread
 *   DIR/lmdb/data.mdb, lock.mdb
 *   DIR/lmdb.aside/   what was set aside last
 *   DIR/lock          locked while a process has the directory; empty, and may stay
 *   DIR/suspect       the process died inside LMDB: the files are not opened again
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "cache/store_internal.h"

#define LOCK_TRIES    50
#define LOCK_PAUSE_NS 20000000

#define SCHEMA "autofused-store 1 little-endian 64\n"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the store's format is little-endian"
#endif

static const struct {
        uint64_t magic;
        const char *name;
} network_file_systems[] = {
        {0x6969, "NFS"},     {0x517B, "SMB"},       {0xFF534D42, "CIFS"}, {0xFE534D42, "SMB2"},   {0x5346414F, "AFS"},
        {0x6B414653, "AFS"}, {0x73757245, "Coda"},  {0x00C36400, "Ceph"}, {0x0BD00BD0, "Lustre"}, {0x47504653, "GPFS"},
        {0x01021997, "9P"},  {0x7461636F, "OCFS2"}, {0x01161970, "GFS2"},
};

static int refuse(char **ret_why, const char *dir, const char *what) {
        if (asprintf(ret_why, "state directory %s: %s", dir, what) < 0)
                *ret_why = NULL;
        return AF_STORE_E_DIR;
}

static int check_file_system(int fd, const char *dir, char **ret_why) {
        struct statfs fs;

        if (fstatfs(fd, &fs) < 0)
                return -errno;
        for (size_t i = 0; i < AF_ARRAY_SIZE(network_file_systems); i++) {
                char what[96];

                if ((uint32_t)fs.f_type != network_file_systems[i].magic)
                        continue;
                snprintf(what, sizeof(what), "is on a network file system (%s); the store needs a local one", network_file_systems[i].name);
                return refuse(ret_why, dir, what);
        }
        return 0;
}

static int check_mode(const struct stat *st, const char *dir, char **ret_why) {
        char what[96];

        if (!S_ISDIR(st->st_mode))
                return refuse(ret_why, dir, "is not a directory");
        if (st->st_uid != geteuid()) {
                snprintf(what, sizeof(what), "belongs to uid %u, not to uid %u", (unsigned)st->st_uid, (unsigned)geteuid());
                return refuse(ret_why, dir, what);
        }
        /* One that nobody can write (0555: a warm read-only cache) may be readable by all. */
        if ((st->st_mode & 022) || ((st->st_mode & 055) && (st->st_mode & 0200))) {
                snprintf(what, sizeof(what), "has mode %04o, must be 0700 (chmod 700)", (unsigned)st->st_mode & 07777);
                return refuse(ret_why, dir, what);
        }
        return 0;
}

/* Who has the record lock; 0: nobody. */
static pid_t lock_holder(int fd) {
        struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

        return fcntl(fd, F_GETLK, &l) == 0 && l.l_type != F_UNLCK ? l.l_pid : 0;
}

/*
 * A record lock on DIR/lock belongs to the process alone; the flock on the directory is shared with a child between fork and exec, and so
 * may outlive a killed process by a moment, but it also keeps this process from opening the directory twice.
 */
static int lock(int dir_fd, const char *dir, bool read_only, int *ret_lock_fd, char **ret_why) {
        AF_CLEANUP(af_closep) int fd = -1;
        char what[96];

        if (!read_only) {
                fd = openat(dir_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
                if (fd < 0)
                        return -errno;
                if (fcntl(fd, F_SETLK, &(struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET}) < 0) {
                        snprintf(what, sizeof(what), "is in use by another autofused, process %d", (int)lock_holder(fd));
                        refuse(ret_why, dir, what);
                        return AF_STORE_E_LOCKED;
                }
        }
        for (unsigned i = 0; flock(dir_fd, LOCK_EX | LOCK_NB) < 0; i++) {
                if (errno != EWOULDBLOCK)
                        return -errno;
                if (i == LOCK_TRIES) {
                        refuse(ret_why, dir, "is in use by another autofused");
                        return AF_STORE_E_LOCKED;
                }
                nanosleep(&(struct timespec){.tv_nsec = LOCK_PAUSE_NS}, NULL);
        }
        *ret_lock_fd = fd;
        fd = -1;
        return 0;
}

int store_dir_open(const char *dir, int *ret_fd, int *ret_lock_fd, bool *ret_read_only, char **ret_why) {
        AF_CLEANUP(af_closep) int fd = -1;
        struct stat st;
        int r;

        *ret_why = NULL;
        if (lstat(dir, &st) < 0) {
                if (errno != ENOENT)
                        return -errno;
                r = af_io_make_dirs(dir, 0700);
                if (r < 0) {
                        refuse(ret_why, dir, strerror(-r));
                        return r;
                }
        } else if (S_ISLNK(st.st_mode)) {
                return refuse(ret_why, dir, "is a symbolic link");
        } else if (!S_ISDIR(st.st_mode)) {
                return refuse(ret_why, dir, "is not a directory");
        }
        fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0) {
                r = -errno;
                refuse(ret_why, dir, strerror(-r));
                return r;
        }
        if (fstat(fd, &st) < 0)
                return -errno;
        r = check_mode(&st, dir, ret_why);
        if (r)
                return r;
        r = check_file_system(fd, dir, ret_why);
        if (r)
                return r;
        *ret_read_only = faccessat(fd, ".", W_OK, AT_EACCESS) < 0;
        r = lock(fd, dir, *ret_read_only, ret_lock_fd, ret_why);
        if (r)
                return r;
        *ret_fd = fd;
        fd = -1;
        return 0;
}

static int remove_at(const char *dir, const char *name) {
        char *path = NULL;
        int r;

        if (asprintf(&path, "%s/%s", dir, name) < 0)
                return -ENOMEM;
        r = af_io_remove_tree(path);
        free(path);
        return r;
}

int store_dir_set_aside(int dir_fd, const char *dir, const char *why) {
        int r;

        r = remove_at(dir, "lmdb.aside");
        if (r < 0 && r != -ENOENT)
                return r;
        if (renameat(dir_fd, "lmdb", dir_fd, "lmdb.aside") < 0)
                return errno == ENOENT ? 0 : -errno;
        af_log(AF_LOG_WARNING, "%s: %s; set aside as lmdb.aside, starting empty", dir, why);
        return 0;
}

static int schema_write(int dir_fd) {
        AF_CLEANUP(af_closep) int sub = -1, fd = -1;
        int r;

        sub = openat(dir_fd, "lmdb.new", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (sub < 0)
                return -errno;
        fd = openat(sub, "schema", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        r = af_io_write_fd(fd, SCHEMA, strlen(SCHEMA));
        if (r < 0)
                return r;
        return fsync(fd) < 0 || fsync(sub) < 0 ? -errno : 0;
}

static int create_empty(int dir_fd, const char *dir) {
        int r;

        r = remove_at(dir, "lmdb.new");
        if (r < 0 && r != -ENOENT)
                return r;
        if (mkdirat(dir_fd, "lmdb.new", 0700) < 0)
                return -errno;
        r = schema_write(dir_fd);
        if (r < 0)
                return r;
        return renameat(dir_fd, "lmdb.new", dir_fd, "lmdb") < 0 ? -errno : 0;
}

/* 1: ours; 0: another schema; -ENOENT: nothing there. */
static int schema_check(int dir_fd) {
        AF_CLEANUP(af_closep) int sub = -1, fd = -1;
        char text[sizeof(SCHEMA) + 1] = "";
        ssize_t n;

        sub = openat(dir_fd, "lmdb", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (sub < 0)
                return errno == ENOENT ? -ENOENT : 0;
        fd = openat(sub, "schema", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return 0;
        n = read(fd, text, sizeof(text));
        return n == (ssize_t)strlen(SCHEMA) && memcmp(text, SCHEMA, strlen(SCHEMA)) == 0;
}

int store_dir_prepare(int dir_fd, const char *dir, bool read_only, bool *ret_salvage) {
        int r = schema_check(dir_fd);

        if (read_only)
                return r == 1 ? 0 : -EROFS;
        if (faccessat(dir_fd, "suspect", F_OK, 0) == 0) {
                int q = store_dir_set_aside(dir_fd, dir, "the last process died inside the store");

                if (q < 0)
                        return q;
                if (unlinkat(dir_fd, "suspect", 0) < 0)
                        return -errno;
                if (ret_salvage)
                        *ret_salvage = true;
                r = -ENOENT;
        } else if (r == 0) {
                r = store_dir_set_aside(dir_fd, dir, "the store has another schema version");
                if (r < 0)
                        return r;
                r = -ENOENT;
        }
        return r == -ENOENT ? create_empty(dir_fd, dir) : 0;
}
