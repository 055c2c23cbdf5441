/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Child processes for short synchronous use (compiler probes, compile jobs, tests). The daemon's own workers are started
 * by libuv; this is for code that runs inside a job and may block.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"

struct af_spawn {
        const char *const *argv; /* NULL-terminated; argv[0] is looked up in PATH of envp where it has no slash */
        const char *const *envp; /* NULL-terminated, the whole environment; NULL: empty */
        const char *cwd;         /* NULL: unchanged */
        const void *input;       /* fed to stdin; NULL: /dev/null */
        size_t input_size;
        uint64_t timeout_ms;     /* 0: none */
        int lifeline_fd;         /* when it reaches EOF the child is killed; -1: none */
        size_t max_output_bytes; /* per stream, further output is read and dropped; 0: 1 MiB */
        bool new_group;          /* own process group; the group is killed on time-out or lifeline loss */
};

struct af_spawn_result {
        int exit_code; /* valid where signal == 0 */
        int signal;    /* nonzero: killed by it */
        bool timed_out;
        bool lifeline_lost;
        uint64_t wall_us;
        uint64_t max_rss_kib;
};

/*
 * Runs to the end; appends stdout and stderr (either may be NULL: dropped). The child inherits no descriptor but its three
 * streams and gets PR_SET_PDEATHSIG SIGKILL. 0, or -errno where it could not be started (-ENOENT: no such program).
 */
int af_spawn_run(const struct af_spawn *spawn, struct af_buf *out, struct af_buf *err, struct af_spawn_result *ret_result) AF_WARN_UNUSED;
