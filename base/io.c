/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_STEP_BYTES (64u << 10)
#define TREE_MAX_DEPTH  256
#define SEALS           (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

void af_closep(int *fd) {
        int saved = errno;

        if (*fd >= 0)
                close(*fd);
        *fd = -1;
        errno = saved;
}

void af_freep(void *p) {
        void *q;

        memcpy(&q, p, sizeof(q));
        free(q);
}

int af_io_read_fd(int fd, size_t max, struct af_buf *buf) {
        size_t total = 0;

        for (;;) {
                uint8_t *to = af_buf_reserve(buf, READ_STEP_BYTES);
                if (!to)
                        return af_buf_error(buf);
                ssize_t n = read(fd, to, READ_STEP_BYTES);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        return 0;
                total += (size_t)n;
                if (total > max)
                        return -EFBIG;
                buf->size += (size_t)n;
        }
}

int af_io_read_file(const char *path, size_t max, struct af_buf *buf) {
        AF_CLEANUP(af_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

        if (fd < 0)
                return -errno;
        return af_io_read_fd(fd, max, buf);
}

int af_io_load_file(struct af_arena *arena, const char *path, size_t max, struct af_io_file *ret_file) {
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        int r = af_io_read_file(path, max, &text);

        if (r < 0)
                return r;
        struct af_io_file f = {.path = af_arena_strdup(arena, path), .text = af_arena_memdup(arena, text.data, text.size)};
        if (!f.path || !f.text)
                return -ENOMEM;
        f.name = f.path;
        f.size = text.size;
        *ret_file = f;
        return 0;
}

static int by_name(const void *a, const void *b) {
        const struct af_io_file *x = a, *y = b;

        return strcmp(x->name, y->name);
}

int af_io_load_dir(struct af_arena *arena, const char *dir, const char *suffix, size_t max, struct af_io_file **ret_files,
                   uint32_t *ret_n) {
        struct af_io_file *files = NULL;
        uint32_t n = 0, cap = 0;
        size_t n_suffix = strlen(suffix);
        int r = 0;
        DIR *d = opendir(dir);

        if (!d)
                return -errno;
        for (struct dirent *e; r == 0 && (e = readdir(d));) {
                size_t len = strlen(e->d_name);
                if (e->d_name[0] == '.' || len <= n_suffix || strcmp(e->d_name + len - n_suffix, suffix) != 0)
                        continue;
                const char *path = af_arena_printf(arena, "%s/%s", dir, e->d_name);
                r = path ? af_arena_grow(arena, &files, &cap, n + 1, sizeof(*files)) : -ENOMEM;
                if (r == 0)
                        r = af_io_load_file(arena, path, max, &files[n]);
                if (r == 0) {
                        files[n].name = files[n].path + strlen(dir) + 1;
                        n++;
                }
        }
        closedir(d);
        if (r < 0)
                return r;
        if (n > 0)
                qsort(files, n, sizeof(*files), by_name);
        *ret_files = files;
        *ret_n = n;
        return 0;
}

int af_io_write_fd(int fd, const void *p, size_t n) {
        const uint8_t *at = p;

        while (n > 0) {
                ssize_t written = write(fd, at, n);
                if (written < 0 && errno == EINTR)
                        continue;
                if (written < 0)
                        return -errno;
                at += written;
                n -= (size_t)written;
        }
        return 0;
}

/* Makes a rename in the directory of path durable. */
static int sync_parent(const char *path) {
        AF_CLEANUP(af_freep) char *dir = strdup(path);

        if (!dir)
                return -ENOMEM;
        char *slash = strrchr(dir, '/');
        if (slash)
                slash[slash == dir ? 1 : 0] = 0;
        AF_CLEANUP(af_closep) int fd = open(slash ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        /* Some file systems cannot sync a directory and say EINVAL: nothing to be had there. */
        if (fsync(fd) < 0 && errno != EINVAL)
                return -errno;
        return 0;
}

static int write_temporary(int fd, const void *p, size_t n, mode_t mode) {
        int r = af_io_write_fd(fd, p, n);

        if (r < 0)
                return r;
        if (fchmod(fd, mode) < 0 || fsync(fd) < 0)
                return -errno;
        return 0;
}

/* Some file systems cannot rename without replacing: there it gets a second name, and loses the first. */
static int put_in_place(const char *temporary, const char *path, bool only_new) {
        if (renameat2(AT_FDCWD, temporary, AT_FDCWD, path, only_new ? RENAME_NOREPLACE : 0) == 0)
                return 0;
        if (!only_new || errno != EINVAL)
                return -errno;
        return link(temporary, path) < 0 || unlink(temporary) < 0 ? -errno : 0;
}

static int publish(const char *path, const void *p, size_t n, mode_t mode, bool only_new) {
        AF_CLEANUP(af_freep) char *temporary = NULL;

        if (asprintf(&temporary, "%s.XXXXXX", path) < 0) {
                temporary = NULL;
                return -ENOMEM;
        }
        AF_CLEANUP(af_closep) int fd = mkostemp(temporary, O_CLOEXEC);
        if (fd < 0)
                return -errno;
        int r = write_temporary(fd, p, n, mode);
        if (r == 0)
                r = put_in_place(temporary, path, only_new);
        if (r < 0) {
                unlink(temporary);
                return r;
        }
        return sync_parent(path);
}

int af_io_publish_file(const char *path, const void *p, size_t n, mode_t mode) {
        return publish(path, p, n, mode, false);
}

int af_io_publish_new_file(const char *path, const void *p, size_t n, mode_t mode) {
        return publish(path, p, n, mode, true);
}

int af_io_make_dirs(const char *path, mode_t mode) {
        AF_CLEANUP(af_freep) char *copy = strdup(path);
        struct stat st;

        if (!copy)
                return -ENOMEM;
        for (char *at = copy; *at;) {
                at += strspn(at, "/");
                at += strcspn(at, "/");
                char saved = *at;
                *at = 0;
                if (copy[0] && mkdir(copy, mode) < 0 && errno != EEXIST) {
                        int e = errno;
                        /* A read-only file system or a parent without write access may still hold the directory. */
                        if (stat(copy, &st) < 0 || !S_ISDIR(st.st_mode))
                                return -e;
                }
                *at = saved;
        }
        if (stat(path, &st) < 0)
                return -errno;
        return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

static int remove_at(int parent, const char *name, int depth);

/* Empties an open directory; closes it. */
static int empty_dir(int fd, int depth) {
        DIR *dir = fdopendir(fd);
        struct dirent *entry;
        int r = 0;

        if (!dir) {
                r = -errno;
                close(fd);
                return r;
        }
        while (errno = 0, (entry = readdir(dir))) {
                if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                        continue;
                int k = remove_at(dirfd(dir), entry->d_name, depth + 1);
                if (k < 0 && r == 0)
                        r = k;
        }
        if (errno != 0 && r == 0)
                r = -errno;
        closedir(dir);
        return r;
}

/* One entry and what is below it. A symlink is removed, never entered: O_NOFOLLOW at each step, relative to an open parent. */
static int remove_at(int parent, const char *name, int depth) {
        if (depth > TREE_MAX_DEPTH)
                return -ELOOP;
        int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0 && errno == ENOENT)
                return 0;
        if (fd < 0 && errno != ENOTDIR && errno != ELOOP && errno != EACCES)
                return -errno;
        bool is_dir = fd >= 0;
        int r = is_dir ? empty_dir(fd, depth) : 0;
        if (r < 0)
                return r;
        if (unlinkat(parent, name, is_dir ? AT_REMOVEDIR : 0) == 0 || errno == ENOENT)
                return 0;
        int e = errno;
        /* A directory that may not be read may still be removed where it is empty. */
        if (!is_dir && (e == EISDIR || e == EPERM) && unlinkat(parent, name, AT_REMOVEDIR) == 0)
                return 0;
        return -e;
}

int af_io_remove_tree(const char *path) {
        return remove_at(AT_FDCWD, path, 0);
}

int af_io_temp_dir(const char *dir, const char *name, char **ret_path) {
        char *path;

        if (!dir)
                dir = getenv("TMPDIR");
        if (!dir || !dir[0])
                dir = "/tmp";
        if (asprintf(&path, "%s/%s.XXXXXX", dir, name) < 0)
                return -ENOMEM;
        if (!mkdtemp(path)) {
                int e = errno;
                free(path);
                return -e;
        }
        *ret_path = path;
        return 0;
}

int af_io_memfd(const char *name, const void *p, size_t n, bool seal) {
        AF_CLEANUP(af_closep) int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

        if (fd < 0)
                return -errno;
        int r = af_io_write_fd(fd, p, n);
        if (r < 0)
                return r;
        if (lseek(fd, 0, SEEK_SET) < 0)
                return -errno;
        if (seal && fcntl(fd, F_ADD_SEALS, SEALS) < 0)
                return -errno;
        int taken = fd;
        fd = -1;
        return taken;
}

int af_io_check_sealed(int fd) {
        int seals = fcntl(fd, F_GET_SEALS);

        /* EINVAL: not a memfd at all. */
        return seals >= 0 && (seals & SEALS) == SEALS ? 0 : -EPERM;
}

int af_io_map_fd(int fd, const void **ret_p, size_t *ret_n) {
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -EINVAL;
        if (st.st_size == 0) {
                *ret_p = "";
                *ret_n = 0;
                return 0;
        }
        if ((uint64_t)st.st_size > SIZE_MAX / 2)
                return -EFBIG;
        /* Private: a shared mapping of a write-sealed memfd is refused by older kernels. */
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED)
                return -errno;
        *ret_p = p;
        *ret_n = (size_t)st.st_size;
        return 0;
}

void af_io_unmap(const void *p, size_t n) {
        if (n > 0)
                munmap((void *)(uintptr_t)p, n);
}
