/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core: one thread, one libuv loop. Who owns what:
 *
 *   core          everything
 *   connection    its socket, its unsent frames, its requests
 *   user          whoever has connections or still owes slot time (clients.c): what is allowed to him, what he uses
 *   client        a process of a user, likewise; connections refer to it
 *   request       one SUBMIT that is not answered yet; belongs to its connection and waits in exactly one flight, whose jobs it wants
 *   flight        one fragment (by fragment digest) or one text (by text digest) under way; whoever asks for the same joins it
 *   kernel        one kernel under way; flights hold references, the last one to go ends its compile
 *   environment   what compiles depend on, by target; loaded by a job, watched by stat
 *   worker        one job: queued, running or ending (worker.h)
 *   bundle        one answer as a sealed memfd (bundle_cache.c)
 *
 * The core parses no fragment: it digests bytes and passes them on. No callback blocks or does unbounded work.
 */
#pragma once

#include <sys/socket.h>
#include <uv.h>

#include "cache/ledger.h"
#include "cache/store.h"
#include "daemon/blob.h"
#include "daemon/config.h"
#include "daemon/events.h"
#include "daemon/gate_child.h"
#include "daemon/hot.h"
#include "daemon/jobwire.h"
#include "daemon/list.h"
#include "daemon/listen.h"
#include "daemon/negative.h"
#include "daemon/records.h"
#include "daemon/table.h"
#include "daemon/worker.h"
#include "proto/bundle.h"
#include "proto/frame.h"

#define AF_INLINE_BUNDLE_BYTES 4096u
#define AF_MAX_UNREAD_FDS      8u
#define AF_MAX_OUT_BYTES       (1u << 20)  /* unsent bytes at which a connection is not read from */
#define AF_MAX_FLIGHT_TRIES    4u          /* plans of one flight while the environment keeps moving */
#define AF_SMALL_BODY          (64u << 10) /* taken however much others hold: a hello, a look-up, most fragments */

/* One error answer. */
struct af_failure {
        enum af_error_code code;
        bool retryable;
        char *text; /* malloc'd or NULL */
};

/* ---- bundles (bundle_cache.c) ---- */
struct af_ready_bundle {
        struct af_table_link link; /* by fragment digest: the newest environment's */
        struct af_list lru;
        uint32_t refs;
        bool cached;
        struct af_digest environment;
        struct af_environment *env; /* lives as long as the core */
        int fd;                     /* -1: small, in memory */
        size_t size;
        const uint8_t *map; /* NULL until an inline answer or the hot area needs it */
        void *heap;         /* small: malloc'd, map points to it */
        uint32_t n_uses;    /* answers that it was, since it is kept */
};

/* ---- users and their processes (clients.c) ---- */
struct af_user {
        struct af_list link, clients;
        struct af_core *core;
        struct af_sched_user sched;
        uint32_t uid, n_conns, n_requests;
        uint32_t n_flights; /* that his requests began */
        size_t held_bytes;  /* their inputs */
};
struct af_client {
        struct af_list link;
        struct af_sched_client sched;
        struct af_user *user;
        pid_t pid; /* 0: not known, one connection alone */
        uint32_t n_conns;
};

/* ---- connections (conn.c, frames.c, reply.c) ---- */
struct af_out {
        struct af_out *next;
        struct af_ready_bundle *bundle; /* its memfd goes along, or (inline_at) its bytes follow the head */
        bool pass_fd, fd_passed;
        size_t size, at; /* of head */
        size_t inline_size, inline_at;
        uint8_t tail[4]; /* zero padding behind inline bytes */
        size_t tail_size, tail_at;
        uint8_t head[];
};
enum af_peer_kind { AF_PEER_CLIENT, AF_PEER_GATE /* our own child */ };
enum af_conn_state { AF_CONN_HELLO, AF_CONN_OPEN, AF_CONN_FLUSH /* closes when all is written */, AF_CONN_CLOSED };
struct af_conn {
        struct af_list link;
        struct af_core *core;
        uv_poll_t poll;
        int fd, events;
        enum af_conn_state state;
        struct ucred peer;
        uint64_t serial; /* no other one ever has it */
        struct af_client *client;
        char name[64];
        enum af_peer_kind kind;
        bool takes_fds, takes_hot, doomed; /* doomed: closed from the loop, never under somebody who is sending */
        struct af_list in_doomed;
        uint8_t head[AF_FRAME_HEADER_BYTES];
        size_t n_head;
        struct af_frame_header header;
        struct af_buf body;
        size_t skip;             /* body bytes of a refused frame still to come */
        uint64_t frame_begin_ns; /* 0: between frames */
        struct af_out *out_head, **out_tail;
        size_t out_bytes;
        uint64_t out_since_ns; /* last progress in writing; valid while out_head */
        uint32_t n_fds;        /* passed since the peer had read everything */
        bool fd_blocked;
        struct af_list requests;
        uint32_t n_requests;
        struct af_watcher *watcher; /* NULL: does not watch */
        const void *origins;        /* of the SUBMIT at hand: borrowed, valid while it is taken in */
        uint32_t n_origins;
};
struct af_request {
        struct af_list in_conn, in_flight;
        struct af_conn *conn;
        struct af_flight *flight;
        struct af_list wants; /* jobs (scheduler.h) */
        uint64_t id, begin_ns, deadline_ns, progress_ns;
        uint8_t priority;
        bool lookup_only, joined, is_text, wants_parts;
        struct af_blob *slot_map;  /* text requests, once known */
        struct af_digest fragment; /* zero: not known yet */
};

/* ---- environments (environment.c) ---- */
struct af_watch {
        char *path;
        uint64_t id[5]; /* dev, inode, size, mtime, ctime; all zero: absent */
};
enum af_environment_state { AF_ENVIRONMENT_NEW, AF_ENVIRONMENT_LOADING, AF_ENVIRONMENT_READY, AF_ENVIRONMENT_FAILED };
struct af_environment {
        struct af_list link;
        struct af_core *core;
        struct af_target target;
        enum af_environment_state state;
        struct af_digest digest;     /* READY */
        struct af_blob *toolchain;   /* READY: passed to compile jobs */
        char *version;               /* READY */
        struct af_blob *ingredients; /* READY: records.h; may be NULL */
        bool recorded;               /* they are in the store under digest */
        struct af_watch *watches;
        uint32_t n_watches;
        uint64_t checked_ns, failed_ns;
        bool loaded_before; /* digest is of the load before */
        bool unsettled;     /* something changed while it was loaded: load again at the next check */
        struct timespec load_began;
        struct af_worker *worker;  /* LOADING */
        struct af_blob *told;      /* the job's answer until it has ended */
        uint32_t job_fault;        /* AF_JOB_FAULT_*, likewise */
        bool retried;              /* this load is the second in a row */
        struct af_failure failure; /* FAILED */
        struct af_hot_names hot;   /* as which targets it stands in the hot area */
};

/* ---- flights (flight.c, plan.c, publish.c) ---- */
enum af_flight_state {
        AF_FLIGHT_LOOKUP,  /* target known: waits for its environment, then looks into the store */
        AF_FLIGHT_PLAN,    /* plan job queued or running, or done and waiting for the environment */
        AF_FLIGHT_KERNELS, /* waits for kernels */
        AF_FLIGHT_COMMIT,  /* waits for the store */
        AF_FLIGHT_KNOWN,   /* texts: fragment and slot map known, until the store has them */
};
struct af_flight_kernel {
        struct af_list in_kernel; /* while kernel */
        struct af_flight *flight;
        struct af_digest key;
        struct af_build *kernel; /* live, referenced; NULL: binary was in the store */
        struct af_blob *binary;  /* NULL: not yet */
};
struct af_flight {
        struct af_table_link link;
        struct af_list all;
        struct af_core *core;
        bool is_text;
        enum af_flight_state state;
        struct af_blob *input; /* canonical bytes or text */
        size_t n_held;         /* its share of held_bytes, the core's and of a user */
        struct af_user *held_by;
        struct af_list waiters;
        uint32_t n_waiters, n_tries;
        uint64_t begin_ns, begin_wall_s;
        bool compiled_any;             /* a job ran to the end for it */
        bool planned;                  /* the plan job has ended well: plan is whole */
        bool looked_up;                /* in the store, for the environment at hand */
        bool missed;                   /* told that it is not there */
        bool retried_alone;            /* its plan job died once */
        struct af_failure job_failure; /* what the plan job said; code 0: nothing */
        uint32_t job_fault;            /* AF_JOB_FAULT_* */
        struct af_worker *worker;
        bool has_target;
        struct af_target target;
        struct af_environment *env;
        struct af_digest environment; /* env's digest that plan and kernels belong to */
        bool has_reported;
        struct af_digest reported; /* the plan job's environment digest */
        struct af_blob *plan, *skeleton;
        struct af_blob *stages;           /* AF_JOB_MSG_STAGES; may be NULL */
        bool known_fragment;              /* its bytes were in the store */
        struct af_flight_kernel *kernels; /* in the skeleton's order */
        struct af_plan_view plan_view;    /* borrows from plan; zero while the skeleton is the store's */
        uint32_t n_kernels;
        struct af_blob *origins;        /* AF_TAG_ORIGINS of who asked first; NULL: none */
        struct af_ready_bundle *bundle; /* COMMIT */
        uint64_t publish_ns;            /* COMMIT: when that began */
        struct af_digest fragment;      /* KNOWN */
        struct af_blob *slot_map;       /* KNOWN */
        struct af_blob *canon;          /* KNOWN: of the fragment, which may have failed and be asked for again before this is stored */
};

/* ---- kernels under way (kernel_build.c) ---- */
struct af_build {
        struct af_table_link link;
        struct af_core *core;
        uint32_t refs;
        char *symbol;
        char *toolchain; /* id, for the record */
        struct af_blob *source, *binary;
        struct af_blob *binary_told; /* the job's, until it has ended well */
        struct af_environment *env;  /* whose toolchain compiles it */
        struct af_worker *worker;
        struct af_blob *toolchain_bytes; /* the environment's when it was begun */
        struct af_list flights;          /* that wait for it or have it: af_flight_kernel.in_kernel */
        bool failed, changed, retried_alone, stored;
        bool alone;                /* its job runs with nothing beside it */
        struct af_failure failure; /* failed; before: what the job said */
        uint32_t job_fault;        /* AF_JOB_FAULT_* */
        uint64_t begin_ns;
        struct af_digest fragment; /* whose plan asked first: for the ledger */
};

struct af_core_stats {
        uint64_t n_requests, n_hits_memory, n_hits_store, n_joined, n_fragment_compiles, n_kernel_compiles, n_environment_loads, n_failures,
                n_canceled, n_deadlines, n_retries, n_jobs_died, n_jobs_timed_out, n_orphans, n_connections, n_refused, n_protocol_errors,
                n_not_stored, n_hits_negative;
};

struct af_maintenance; /* admin.c */
struct af_core {
        uv_loop_t *loop;
        struct af_config *config;
        struct af_env_config env_config; /* borrows from config and from the strings below */
        struct af_toolchain_config toolchains[AF_CONFIG_MAX_TOOLCHAINS + 1];
        char *state_dir, *job_path, *tmp_dir, *pch_dir;
        struct af_store *store;
        struct af_ledger *ledger;
        struct af_listener listener;
        uv_poll_t listen_poll, store_poll, ledger_poll;
        uv_timer_t tick, kick, fd_timer;
        uv_check_t turn;
        uint32_t n_read, n_read_before; /* connections read from in this turn of the loop, and in the one before */
        bool listening, ticking, fd_waiting;
        int reserve_fd; /* given up to refuse a connection when descriptors run out */
        uint64_t start_ns;
        struct af_list conns, doomed, users, environments, flights, questions;
        uint32_t n_conns, n_requests;
        uint32_t n_gone;             /* clients that are remembered without a connection */
        size_t rx_bytes, held_bytes; /* bodies being received; inputs of flights */
        struct af_digest_table flight_table, kernel_table, bundle_table;
        struct af_list bundle_lru;
        size_t bundle_bytes;
        uint32_t max_bundles; /* half of the descriptors; as many are for connections */
        struct af_workers workers;
        struct af_negatives negatives;      /* kernels */
        struct af_negatives plan_negatives; /* fragments and texts that are refused in the environments as they are */
        struct af_maintenance *maintenance; /* under way; NULL: none */
        bool draining, closing;
        uint64_t drain_ns;
        struct af_core_stats stats;
        struct af_events events;
        struct af_gate_child gate;
        struct af_hot hot;
        void (*on_drained)(struct af_core *core);
};

/* core.c */
/* Takes the open store, ledger and listener over; config stays the caller's. 0 or -errno. */
int af_core_init(struct af_core *core, uv_loop_t *loop, struct af_config *config) AF_WARN_UNUSED;
/* Begins to serve. */
int af_core_start(struct af_core *core) AF_WARN_UNUSED;
/* Swaps a new configuration in (what can change at run time) and forgets what it had loaded. */
void af_core_reload(struct af_core *core, struct af_config *config);
/* No new work; on_drained is called once what is in flight is answered, or after the limit. */
void af_core_drain(struct af_core *core);
/* Ends jobs, closes connections and handles. The loop has to run until it is empty. */
void af_core_close(struct af_core *core);
/* After the loop is empty and the store is closed. */
void af_core_deinit(struct af_core *core);
/* Keeps the timer running while something has a deadline. */
void af_core_need_tick(struct af_core *core);
/* Something went that draining waits for. on_drained comes from the loop: whoever calls this may be walking lists that closing empties. */
void af_core_check_drained(struct af_core *core);
/* Has the scheduler of jobs look again, from the loop. */
void af_core_kick(struct af_core *core);
/* Limits that a job of this kind gets. */
struct af_job_limits af_core_job_limits(const struct af_core *core, enum af_job_kind kind);
/* config -> env_config. */
int af_core_make_env_config(struct af_core *core) AF_WARN_UNUSED;
/* JSON object, one line. Names are stable: docs/operations.md lists them. */
void af_core_stats_json(struct af_core *core, struct af_buf *buf);
void af_core_ledger(struct af_core *core, enum af_ledger_kind kind, const struct af_request *req, const struct af_digest *fragment,
                    const struct af_digest *environment, const struct af_digest *kernel, uint64_t begin_ns, uint64_t run_us, int code,
                    const char *text);

/* Whether the same request may succeed when it is simply sent again. */
bool af_error_retryable(enum af_error_code code);
/* A failure with formatted text. */
struct af_failure af_failure_make(enum af_error_code code, bool retryable, const char *fmt, ...) AF_PRINTF(3, 4);
struct af_failure af_failure_copy(const struct af_failure *f);
void af_failure_deinit(struct af_failure *f);

/* clients.c */
/* Takes a connection in: its user and client, made where they are new. False: no memory. */
bool af_client_enter(struct af_conn *conn) AF_WARN_UNUSED;
void af_client_leave(struct af_conn *conn);
/* Forgets those who are gone and owe nothing; all: whatever they owe. */
void af_clients_sweep(struct af_core *core, bool all);
/* A flight of n bytes, for whoever asked first; until then the user stays. */
void af_user_hold(struct af_user *user, size_t n);
void af_user_release(struct af_user *user, size_t n);
/* What stands against the connection that was just entered, or against a new flight of n bytes, for people; NULL: nothing. */
const char *af_user_refuses_connection(const struct af_user *user);
const char *af_user_refuses_flight(const struct af_user *user, size_t n);

/* conn.c */
void af_conn_accept(struct af_core *core);
/* Ends it: its requests leave their flights. Frees it later. */
void af_conn_close(struct af_conn *conn);
/* Writes what it can, then watches what is needed. Never closes at once: see doomed. */
void af_conn_flush(struct af_conn *conn);
/* Queues a finished frame (buf is emptied). On no memory the connection is doomed. */
void af_conn_send(struct af_conn *conn, struct af_buf *frame);
/* Queues a frame whose body ends with the bundle: its memfd, or its bytes. Takes one reference. */
void af_conn_send_bundle(struct af_conn *conn, struct af_buf *frame, struct af_ready_bundle *bundle, bool pass_fd);
/* Deadlines of reading and writing. True while it has one. */
bool af_conn_tick(struct af_conn *conn, uint64_t now_ns);
void af_conn_retry_fds(struct af_core *core);
void af_conn_doom(struct af_conn *conn);
void af_conns_sweep(struct af_core *core); /* closes the doomed */
/* writer.c: 0 all written, 1 more to write, 2 waits until the peer takes its descriptors, -errno. */
int af_conn_write(struct af_conn *conn) AF_WARN_UNUSED;
void af_out_free(struct af_out *out);

/* frames.c: a whole frame has arrived; conn may be closed or flushing afterwards. */
void af_conn_on_frame(struct af_conn *conn, const struct af_frame_header *h, const uint8_t *body, size_t n);
/* Largest body for this type in this state. */
size_t af_conn_max_body(const struct af_conn *conn, uint8_t type);

/* reply.c */
void af_reply_error(struct af_conn *conn, uint64_t id, enum af_error_code code, bool retryable, const char *text);
void af_reply_fatal(struct af_conn *conn, enum af_error_code code, const char *text); /* and closes after it */
void af_reply_result(struct af_request *req, const struct af_digest *fragment, struct af_ready_bundle *bundle, enum af_hit hit,
                     uint64_t compile_us);
/* One frame of several that are sent together. */
void af_reply_put_progress(struct af_buf *buf, const struct af_request *req, const char *text, uint32_t waiters, uint64_t now_ns);
void af_reply_text(struct af_conn *conn, uint8_t type, uint64_t id, const char *text, size_t n);
void af_reply_drain(struct af_conn *conn);

/* request.c */
/* Takes the request to its answer or into a flight. bytes: canonical, or text. */
void af_request_submit(struct af_request *req, bool is_text, struct af_blob *bytes);
/* The same for a fragment that the store has: not_found where it has not. */
void af_request_submit_stored(struct af_request *req, const struct af_digest *fragment);
/* Answers, then frees. */
void af_request_fail(struct af_request *req, const struct af_failure *f);
void af_request_answer(struct af_request *req, const struct af_digest *fragment, struct af_ready_bundle *bundle, enum af_hit hit,
                       uint64_t compile_us);
/* Leaves its flight without an answer; frees. */
void af_request_drop(struct af_request *req);
/* Deadline and progress of all waiters. True while there are any. */
bool af_requests_tick(struct af_core *core, uint64_t now_ns);
/* A stored bundle of (fragment, environment): complete, or with kernels missing (*ret_skeleton alone). 0, AF_STORE_E_MISS, -errno. */
int af_lookup_bundle(struct af_core *core, const struct af_digest *fragment, struct af_environment *env,
                     struct af_ready_bundle **ret_bundle, struct af_blob **ret_skeleton) AF_WARN_UNUSED;
/* One record as a blob; NULL where missing. */
struct af_blob *af_lookup_record(struct af_core *core, enum af_table table, const void *key, uint32_t key_size) AF_WARN_UNUSED;

/* flight.c */
struct af_flight *af_flight_find(struct af_core *core, const struct af_digest *key);
/* A flight in no state yet: the caller joins a request to it and then calls af_flight_begin. input: one reference is added; user
 * (may be NULL) answers for its bytes. NULL: no memory. */
struct af_flight *af_flight_new(struct af_core *core, const struct af_digest *key, bool is_text, struct af_blob *input,
                                struct af_user *user) AF_WARN_UNUSED;
/* With a known target it looks up first, else it plans. target (may be NULL) is taken over. */
void af_flight_begin(struct af_flight *f, struct af_target *target);
/* The request waits for it from now on, and wants its jobs. */
void af_flight_join(struct af_flight *f, struct af_request *req);
/* The same for one that wants its jobs already. */
void af_flight_add(struct af_flight *f, struct af_request *req);
/* Ends it when nobody waits any more and nothing of it must go on. */
void af_flight_left(struct af_flight *f);
/* Answers every waiter; the flight stays. */
void af_flight_answer(struct af_flight *f, struct af_ready_bundle *bundle, bool from_store);
void af_flight_fail(struct af_flight *f, const struct af_failure *failure);
void af_flight_free(struct af_flight *f);
/* Its canonical bytes or text are not needed any more. */
void af_flight_drop_input(struct af_flight *f);
/* Looks at what it waits for and goes on where it can. */
void af_flight_advance(struct af_flight *f);
/* All flights that wait for this environment. */
void af_flights_env_changed(struct af_core *core, struct af_environment *env);
/* All its waiters want this job. worker may be NULL. */
void af_flight_want(struct af_flight *f, struct af_worker *worker);
/* Drops plan and kernels and plans anew, the environment loaded again first; fails after AF_MAX_FLIGHT_TRIES. */
void af_flight_restart(struct af_flight *f, const char *why);
void af_flight_drop_plan(struct af_flight *f);
/* What a waiter is told. */
const char *af_flight_doing(const struct af_flight *f);

/* question.c */
void af_conn_on_history(struct af_conn *conn, uint64_t id, const uint8_t *body, size_t n);
void af_conn_on_why(struct af_conn *conn, uint64_t id, const uint8_t *body, size_t n);
/* Whoever asked through conn is gone. */
void af_questions_leave(struct af_conn *conn);

/* miss.c */
/* Tells (events, ledger) that it is compiled, and why it was not there. Once per flight. has_skeleton: only kernels are missing. */
void af_flight_missed(struct af_flight *f, bool has_skeleton);
/* Tells how long the stages of its plan took, and what the fragment is. */
void af_flight_stages(struct af_flight *f);
/* Tells what its skeleton leaves to the framework: one line per node. */
void af_flight_fallbacks(struct af_flight *f);

/* plan.c */
void af_flight_start_plan(struct af_flight *f);
/* Kernels of a skeleton: from the store, from live kernels, or compiled anew. *ret_replan where a source is missing. */
int af_flight_gather(struct af_flight *f, bool *ret_replan) AF_WARN_UNUSED;

/* part.c */
/* What is there of its flight's bundle goes to a request that asked for parts. */
void af_parts_ready(struct af_request *req);
/* A kernel that was just compiled goes to all who wait for it and asked for parts. */
void af_parts_kernel(const struct af_build *k);

/* publish.c */
void af_flight_publish(struct af_flight *f);
/* Skeleton and binaries to a sealed memfd. 0, -errno, AF_BUNDLE_E_*. */
int af_bundle_assemble(struct af_core *core, const struct af_blob *skeleton, struct af_blob *const *binaries, uint32_t n,
                       const struct af_digest *fragment, const struct af_digest *environment,
                       struct af_ready_bundle **ret_bundle) AF_WARN_UNUSED;

/* kernel_build.c */
struct af_build *af_build_get(struct af_core *core, const struct af_digest *key); /* adds a reference; NULL where none is live */
/* A new kernel, its compile queued. Takes no ownership; source gets a reference. NULL: no memory. */
struct af_build *af_build_new(struct af_core *core, const struct af_digest *key, const char *toolchain, const char *symbol,
                              struct af_blob *source, struct af_environment *env, const struct af_digest *fragment) AF_WARN_UNUSED;
/* The flight of fk, which has just got fk->kernel, hears what becomes of it. */
void af_build_wait(struct af_flight_kernel *fk);
void af_build_unref(struct af_build *k);

/* environment.c */
/* The environment of a target, made where there is none. NULL: no memory. */
struct af_environment *af_environment_get(struct af_core *core, const struct af_target *target) AF_WARN_UNUSED;
/* READY and fresh, or what it is instead; begins to load it where it is not. */
enum af_environment_state af_environment_check(struct af_environment *env);
/* Loads it again although nothing shows on its files. */
void af_environment_invalidate(struct af_environment *env);
void af_environments_invalidate(struct af_core *core);
void af_environment_free(struct af_environment *env);
/* The target's, where there is one. */
struct af_environment *af_environment_find(struct af_core *core, const struct af_target *target) AF_WARN_UNUSED;
/* Whether the bundle's environment is still the one in force. */
bool af_environment_current(struct af_core *core, struct af_environment *env, const struct af_digest *digest);

/* bundle_cache.c */
/* Takes fd. NULL: no memory (fd is closed). */
struct af_ready_bundle *af_ready_bundle_new(int fd, size_t size) AF_WARN_UNUSED;
/* Takes p (malloc'd, freed on failure). For what always travels inline. */
struct af_ready_bundle *af_ready_bundle_small(void *p, size_t size) AF_WARN_UNUSED;
struct af_ready_bundle *af_ready_bundle_ref(struct af_ready_bundle *b);
void af_ready_bundle_unref(struct af_ready_bundle *b);
void af_bundle_cache_put(struct af_core *core, const struct af_digest *fragment, struct af_environment *env,
                         const struct af_digest *environment, struct af_ready_bundle *b);
/* Borrowed; NULL where absent or its environment is not current. */
struct af_ready_bundle *af_bundle_cache_get(struct af_core *core, const struct af_digest *fragment);
void af_bundle_cache_clear(struct af_core *core);
/* Maps it; NULL on failure. */
const uint8_t *af_ready_bundle_map(struct af_ready_bundle *b);

/* admin.c: what only the server's own user and root may ask (the caller has checked it) */
void af_admin_maintain(struct af_conn *conn, uint64_t id, const uint8_t *body, size_t n);
void af_admin_import(struct af_conn *conn, uint64_t id, const uint8_t *body, size_t n);
/* The work at hand ends soon, without an answer: its asker left (conn, id; 0: any), or (conn NULL) the server goes down. True where it was
 * meant. */
bool af_admin_stop(struct af_core *core, const struct af_conn *conn, uint64_t id);
