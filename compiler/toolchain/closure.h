/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The closure of a toolchain: every file whose bytes can change what it makes. Digests are memoised by what stat says of a file
 * (device, inode, size, mtime, ctime): a file replaced with its path and mtime kept still shows by its ctime.
 */
#pragma once

#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/digest.h"

struct af_file_id {
        uint64_t dev, inode, size;
        int64_t mtime_ns, ctime_ns;
};
struct af_closure_file {
        const char *role; /* enters the digest: "as", "header:twin/core.h", "lib:libz.so.1" */
        const char *path; /* absolute, as found: a link that comes to point elsewhere shows as a change */
        struct af_file_id id;
        struct af_digest digest;
};
struct af_closure {
        struct af_arena *arena; /* not owned */
        struct af_closure_file *files;
        uint32_t n, cap;
};

/* 0 or -errno. */
int af_file_id_get(const char *path, struct af_file_id *ret_id) AF_WARN_UNUSED;
bool af_file_id_equal(const struct af_file_id *a, const struct af_file_id *b);

/* Adds a file with its digest; one that is there already, or that does not exist where optional is set, is fine. 0 or
 * -errno. */
int af_closure_add(struct af_closure *c, const char *role, const char *path, bool optional) AF_WARN_UNUSED;
/* Adds the shared libraries that the program's loader names. Blocks (runs the loader's tracing mode). 0 or -errno. */
int af_closure_add_libraries(struct af_closure *c, const char *program) AF_WARN_UNUSED;
/* Adds the prerequisites in make's syntax (-M); those under root get it cut off in their role. 0 or -errno. */
int af_closure_add_make(struct af_closure *c, const char *text, size_t n, const char *root) AF_WARN_UNUSED;
/* Sorts by role and path and digests roles and contents; paths do not enter. */
void af_closure_finish(struct af_closure *c, struct af_digest *ret_digest);
/* Digests again what stat shows as touched. 0 unchanged, 1 changed, -errno. Refreshes the memoised ids. */
int af_closure_recheck(struct af_closure_file *files, uint32_t n) AF_WARN_UNUSED;
