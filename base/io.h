/* SPDX-License-Identifier: Apache-2.0 */
/* Files and descriptors. Every function returns 0 (or a descriptor) or -errno and blocks. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"

/* Cleanup for `AF_CLEANUP(af_closep) int fd = -1;` keeps errno. */
void af_closep(int *fd);
void af_freep(void *p); /* p: address of a pointer from malloc */

/* Reads to the end, at most max bytes (-EFBIG beyond). Appends to buf. */
int af_io_read_fd(int fd, size_t max, struct af_buf *buf) AF_WARN_UNUSED;
int af_io_read_file(const char *path, size_t max, struct af_buf *buf) AF_WARN_UNUSED;
/* A file as it was read, in an arena. */
struct af_io_file {
        const char *name, *path; /* within its directory; with it */
        const char *text;        /* a zero byte behind it */
        size_t size;
};
/* name is the whole path. -EFBIG beyond max bytes. */
int af_io_load_file(struct af_arena *arena, const char *path, size_t max, struct af_io_file *ret_file) AF_WARN_UNUSED;
/* Every file of a directory whose name ends so and does not begin with a dot, by name. */
int af_io_load_dir(struct af_arena *arena, const char *dir, const char *suffix, size_t max, struct af_io_file **ret_files,
                   uint32_t *ret_n) AF_WARN_UNUSED;
int af_io_write_fd(int fd, const void *p, size_t n) AF_WARN_UNUSED;
/* Writes PATH.<random>, fsyncs, renames: a reader sees the old file or the new one. */
int af_io_publish_file(const char *path, const void *p, size_t n, mode_t mode) AF_WARN_UNUSED;
/* The same, but -EEXIST where anything is there, which stays as it is. */
int af_io_publish_new_file(const char *path, const void *p, size_t n, mode_t mode) AF_WARN_UNUSED;
/* mkdir -p with mode for what it creates. */
int af_io_make_dirs(const char *path, mode_t mode) AF_WARN_UNUSED;
/* Removes a tree; a missing one is fine; never follows symlinks out of it. */
int af_io_remove_tree(const char *path) AF_WARN_UNUSED;
/* Directory NAME.XXXXXX under dir (or TMPDIR, /tmp where dir is NULL); the caller frees *ret_path. */
int af_io_temp_dir(const char *dir, const char *name, char **ret_path) AF_WARN_UNUSED;

/* A memfd with the bytes, CLOEXEC, sealed against write, shrink and grow where seal is set. Returns the descriptor. */
int af_io_memfd(const char *name, const void *p, size_t n, bool seal) AF_WARN_UNUSED;
/* Whether fd is a memfd with the four seals (write, shrink, grow, seal). 0, or -EPERM. */
int af_io_check_sealed(int fd) AF_WARN_UNUSED;
/* Maps a whole file read-only; an empty one gives *ret_p = "" and size 0. Unmap with af_io_unmap. */
int af_io_map_fd(int fd, const void **ret_p, size_t *ret_n) AF_WARN_UNUSED;
void af_io_unmap(const void *p, size_t n);
