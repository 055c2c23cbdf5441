/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ledger: what happened (jobs, stage timings, uses, misses, fallbacks, failures, toolchains) in SQLite, WAL, written by its own thread.
 * Losing it harms nothing: a ledger that cannot be opened or written is reported once and then dropped. Every function but
 * af_ledger_dispatch may be called from any thread; none waits for the disk.
 */
#pragma once

#include "base/buf.h"
#include "base/digest.h"

struct af_ledger;
enum af_ledger_kind {
        AF_LEDGER_REQUEST, /* answered after a compile, its own or another's */
        AF_LEDGER_PLAN,
        AF_LEDGER_COMPILE,
        AF_LEDGER_MISS, /* text: why */
        AF_LEDGER_FALLBACK,
        AF_LEDGER_FAILURE,
        AF_LEDGER_N_KINDS
};
struct af_ledger_event {
        enum af_ledger_kind kind;
        struct af_digest fragment, environment, kernel; /* zero where not applicable */
        uint64_t wall_s, queued_us, run_us;
        uint32_t peer_uid, peer_pid;
        int32_t code;   /* 0 or enum af_error_code */
        char text[256]; /* cut; peer name, reason, message */
};
/* Never NULL on 0; opens in the background. */
int af_ledger_open(const char *path, struct af_ledger **ret_ledger) AF_WARN_UNUSED;
/* Writes what is queued, at most 2 s. Queries that are not dispatched are called with -ECANCELED. */
void af_ledger_close(struct af_ledger *l);
/* How many entries were dropped since the start. l may be NULL. */
uint64_t af_ledger_dropped(struct af_ledger *l);

/* Each copies, and drops (and counts) when 64 Ki entries wait. l may be NULL. */
void af_ledger_add(struct af_ledger *l, const struct af_ledger_event *e);
/* Counts of one bundle: summed in memory, one row per fragment and environment. Hits come by the ten thousand. */
struct af_ledger_use {
        uint32_t n_hits, n_joined, n_compiled;
};
void af_ledger_count(struct af_ledger *l, const struct af_digest *fragment, const struct af_digest *environment,
                     const struct af_ledger_use *use);
/* How long a stage of a compile took ("fuse", "compile"). kernel may be NULL. */
void af_ledger_stage(struct af_ledger *l, const struct af_digest *fragment, const struct af_digest *environment,
                     const struct af_digest *kernel, const char *stage, uint64_t us);
/* What a fragment is, in blank-separated words; kept once. */
void af_ledger_describe(struct af_ledger *l, const struct af_digest *fragment, const char *words);
/* A toolchain that was loaded. */
void af_ledger_environment(struct af_ledger *l, const struct af_digest *environment, const char *soc, const char *toolchain,
                           const char *version);

/* ---- questions ---- */
enum af_ledger_question {
        AF_LEDGER_HISTORY, /* events, newest first */
        AF_LEDGER_TOP,     /* fragments, most used first */
        AF_LEDGER_SUMMARY, /* stages, misses, failures, environments */
        AF_LEDGER_NEAREST, /* the fragment whose words are most like `words`, but `fragment` itself */
};
struct af_ledger_query {
        enum af_ledger_question question;
        int kind;             /* HISTORY: enum af_ledger_kind; -1: every kind */
        uint8_t fragment[32]; /* HISTORY: its first n_fragment bytes; NEAREST: all */
        uint32_t n_fragment;  /* 0: any */
        uint64_t since_s;     /* HISTORY, SUMMARY: wall clock */
        int64_t uid;          /* HISTORY; -1: any */
        uint32_t limit;       /* rows; at most AF_LEDGER_MAX_ROWS */
        char words[1024];     /* NEAREST */
};
#define AF_LEDGER_MAX_ROWS 10000u
/* Kind by its name ("miss"), or -1. */
int af_ledger_kind_from_name(const char *name);
/*
 * Asks; what was added before is in the answer. done is called from af_ledger_dispatch with a JSON object (borrowed), or with r < 0.
 * -EIO: the ledger is off; -EBUSY: too many questions wait.
 */
typedef void (*af_ledger_done_fn)(void *userdata, int r, const char *json, size_t n);
int af_ledger_ask(struct af_ledger *l, const struct af_ledger_query *query, af_ledger_done_fn done, void *userdata) AF_WARN_UNUSED;
/* Readable (eventfd) when af_ledger_dispatch has something to do. */
int af_ledger_fd(const struct af_ledger *l);
void af_ledger_dispatch(struct af_ledger *l);
