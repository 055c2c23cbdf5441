/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration: default < file < environment < command line. Every key stands once in the table of config.c. File: lines `key = value`,
 * `#` begins a comment; environment: AUTOFUSE_<KEY>; command line: --key-with-dashes value or =value.
 */
#pragma once

#include "base/arena.h"
#include "base/diag.h"
#include "compiler/driver/env.h"

#define AF_CONFIG_MAX_TOOLCHAINS 16

struct af_config_uids {
        uint32_t *items;
        uint32_t n;
};

/* Strings live in the arena; NULL where there is no default. */
struct af_config {
        struct af_arena arena;
        const char *socket, *state_dir, *data_dir, *rules_dir, *job_path, *tmp_dir, *log_level;
        const char *default_soc, *default_toolchain, *cache_salt;
        const char *const *extra_rules; /* NULL-terminated */
        struct af_config_uids allow_uid;
        uint64_t jobs;           /* processes at once; 0: one per core */
        uint64_t host_jobs;      /* of all servers of the host; 0: one per core, or jobs where that is more */
        const char *host_slots;  /* name of the slots that they share; empty: none are shared */
        uint64_t min_free_mib;   /* memory that must be available before another job starts */
        uint64_t job_memory_mib; /* address space of a job's process; 0: no limit */
        uint64_t store_map_mib, store_max_mib;
        uint64_t bundle_cache_mib; /* memfds of bundles kept */
        uint64_t hot_mib;          /* of the hot area; 0: none */
        uint64_t receive_mib;      /* request bodies in memory, all connections together */
        uint64_t plan_timeout_s, compile_timeout_s, request_timeout_s, drain_timeout_s, read_timeout_s;
        bool gate;             /* autofused-gate runs beside */
        const char *gate_path; /* NULL: beside this program, or the installed one */
        const char *gate_mode; /* octal digits */
        uint64_t gate_requests, gate_message_mib, gate_memory_mib;
        uint64_t max_connections, max_requests;                          /* of the process; outstanding per connection */
        uint64_t max_queue;                                              /* fragments under way */
        uint64_t user_connections, user_requests, user_held_mib;         /* of one user */
        struct af_toolchain_config toolchains[AF_CONFIG_MAX_TOOLCHAINS]; /* operator's, by `toolchain.ID.KEY` */
        uint32_t n_toolchains;
        const char *file; /* that was read, or NULL */
        bool help, version;
};

enum { AF_CONFIG_E_INVALID = 1 /* diagnostics */ };
/*
 * Reads everything into config (zeroed by the call). argv[0] is skipped. Unknown keys are warnings with file and line, wrong values errors.
 * The file is --config, AUTOFUSE_CONFIG, or one of the usual places if it exists. 0, -ENOMEM, AF_CONFIG_E_INVALID.
 */
int af_config_load(struct af_config *config, int argc, char *const *argv, struct af_diags *diags) AF_WARN_UNUSED;
void af_config_deinit(struct af_config *config);
/* One line per key: option, default, meaning. */
void af_config_help(struct af_buf *buf);
