/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the core and its jobs. A job gets one request as a memfd on descriptor 0, writes messages to the pipe on descriptor 1, and
 * lives as long as descriptor 3, a pipe whose other end the core holds.
 *
 *   request  u32 "AFJ1", u32 kind, u64 CPU seconds, u64 bytes of address space, u32 time-out ms, u32 zero, then by kind (jobwire.c)
 *   message  u32 type, u32 bytes, bytes
 *
 * A string is u32 length + 1, bytes, zero byte; length 0 alone is NULL.
 */
#pragma once

#include "compiler/driver/env.h"
#include "daemon/records.h"
#include "proto/frame.h"

#define AF_JOBWIRE_MAGIC       0x314a4641u /* "AFJ1" */
#define AF_JOBWIRE_MAX_MESSAGE (512u << 20)
#define AF_JOB_LIFELINE_FD     3

enum af_job_kind { AF_JOB_ENV = 1, AF_JOB_PLAN = 2, AF_JOB_COMPILE = 3 };

struct af_job_limits {
        uint64_t cpu_s;        /* 0: none */
        uint64_t memory_bytes; /* address space of each process of the job; 0: none */
        uint32_t timeout_ms;   /* of one toolchain run */
};

/* What a job reads. Everything borrows from the request's bytes and the arena. */
struct af_job_request {
        enum af_job_kind kind;
        struct af_job_limits limits;
        struct af_env_config config; /* ENV, PLAN */
        const char *soc, *toolchain; /* ENV; NULL: default */
        enum af_twin twin;           /* ENV */
        bool is_text;                /* PLAN: bytes are JSON text, else canonical bytes */
        const void *bytes;           /* PLAN: fragment; COMPILE: source */
        uint32_t n_bytes;
        struct af_toolchain compile_toolchain; /* COMPILE */
        const char *symbol;                    /* COMPILE */
};

void af_jobwire_write_env(struct af_buf *buf, const struct af_job_limits *limits, const struct af_env_config *config,
                          const struct af_target *target);
void af_jobwire_write_plan(struct af_buf *buf, const struct af_job_limits *limits, const struct af_env_config *config, bool is_text,
                           const void *p, size_t n);
/* toolchain: bytes from an ENV message, passed on unread. */
void af_jobwire_write_compile(struct af_buf *buf, const struct af_job_limits *limits, const void *toolchain, size_t n_toolchain,
                              const char *symbol, const void *source, size_t n);
/* 0, -ENOMEM, -EBADMSG. */
int af_jobwire_read(struct af_arena *arena, const void *p, size_t n, struct af_job_request *ret_request) AF_WARN_UNUSED;

enum af_job_message {
        AF_JOB_MSG_KEY = 1,  /* PLAN, before it plans: fragment digest, env digest, u32 twin, string soc, string toolchain, field slot map,
                                field canonical bytes */
        AF_JOB_MSG_PLAN = 2, /* PLAN: plan bytes */
        AF_JOB_MSG_ENV = 3,  /* ENV: see struct af_job_env */
        AF_JOB_MSG_BINARY = 4, /* COMPILE */
        AF_JOB_MSG_TRACE = 5,  /* text for the log */
        AF_JOB_MSG_STAGES = 7, /* PLAN, before the plan: field words that describe the fragment, u32 n, then field name, u64 us each */
        AF_JOB_MSG_PEAK = 8,   /* at the end: u32 MiB, the resident set of the job and of the largest process that it ran */
        AF_JOB_MSG_ERROR = 6,  /* u32 enum af_error_code, u32 AF_JOB_FAULT_*, text */
};
enum {
        AF_JOB_FAULT_NONE = 0,
        AF_JOB_FAULT_KILLED = 1,  /* a signal or lack of memory: worth another try, alone */
        AF_JOB_FAULT_CHANGED = 2, /* the toolchain is not the one of the request any more */
        AF_JOB_FAULT_SPACE = 3,   /* no room for temporary files */
};

struct af_job_key {
        struct af_digest fragment, environment;
        uint8_t twin;
        const char *soc, *toolchain; /* NULL: default */
        const uint8_t *slot_map, *canon;
        uint32_t n_slot_map, n_canon; /* slot map: 0 where the request was canonical */
};
void af_jobwire_write_key(struct af_buf *buf, const struct af_job_key *key);
/* Borrows from p. 0, -EBADMSG. */
int af_jobwire_read_key(const void *p, size_t n, struct af_job_key *ret_key) AF_WARN_UNUSED;

/*
 * env digest, string version, field toolchain, u32 n, strings: files and directories whose change means another environment; field
 * ingredients (records.h).
 */
struct af_job_env {
        struct af_digest digest;
        const char *version;
        const uint8_t *toolchain;
        uint32_t n_toolchain, n_watch;
        const char **watch; /* malloc'd array; strings borrowed */
        const uint8_t *ingredients;
        uint32_t n_ingredients;
};
void af_jobwire_write_environment(struct af_buf *buf, const struct af_digest *digest, const struct af_toolchain *toolchain,
                                  const char *const *watch, uint32_t n_watch, const struct af_buf *ingredients);
/* Borrows from p; free(ret_env->watch). 0, -ENOMEM, -EBADMSG. */
int af_jobwire_read_environment(const void *p, size_t n, struct af_job_env *ret_env) AF_WARN_UNUSED;
