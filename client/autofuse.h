/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libautofuse: hands graph fragments to autofused, the host's compile server, and runs what comes back.
 *
 *   context   the connection to the server and the in-process memo
 *   fragment  a graph under construction (or use JSON text, autofuse.fragment/1)
 *   request   one submitted fragment
 *   bundle    the answer: steps (fused kernels and nodes left to the framework), buffers, outputs
 *
 * Rules that hold for every function:
 * - A handle may be used from any number of threads at once, unless the function says otherwise. The library has no global state, starts no
 *   thread (but a pool's, for who asks for one), installs no signal or exit handler, never prints, never exits and never raises SIGPIPE.
 * - After fork() the child may go on with every handle that it inherited: it connects anew. Requests in flight belong to the parent;
 * waiting for one in the child sends it again.
 * - Functions that can fail return enum autofuse_status and take `struct autofuse_error **ret_error` last: NULL, or the address of a
 *   pointer that is written only on failure and freed with autofuse_error_free(). Other results are written only on success.
 * - A server that is absent, refuses or misbehaves never fails the job: AUTOFUSE_E_UNAVAILABLE says that the caller runs the graph itself.
 * The reason goes once to the log callback. See autofuse_context_is_strict().
 * - free, close and unref functions accept NULL. Strings and arrays that an accessor returns belong to the handle that was asked and live
 * as long.
 * - Names passed in are copied. Order of inputs, outputs and nodes is always the caller's own.
 */
#ifndef AUTOFUSE_H
#define AUTOFUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AUTOFUSE_VERSION_MAJOR 0
#define AUTOFUSE_VERSION_MINOR 1
#define AUTOFUSE_MAX_RANK      16

#if defined(__GNUC__)
#define AUTOFUSE_CHECK __attribute__((warn_unused_result))
#else
#define AUTOFUSE_CHECK
#endif

/* ---- errors ---- */

enum autofuse_status {
        AUTOFUSE_OK = 0,
        AUTOFUSE_E_ARGUMENT = 1,    /* the call itself is wrong: NULL, index, a fragment changed after it was submitted */
        AUTOFUSE_E_MEMORY = 2,      /* out of memory */
        AUTOFUSE_E_INVALID = 3,     /* the fragment: the text names nodes and fields, one mistake per line */
        AUTOFUSE_E_UNAVAILABLE = 4, /* no server, one that is not trusted, or a fault of it: run the graph without it */
        AUTOFUSE_E_COMPILE = 5,     /* the toolchain refused the generated code: the text is its message */
        AUTOFUSE_E_TIMEOUT = 6,     /* the wait ended, the request goes on: wait again, or free it */
        AUTOFUSE_E_DEADLINE = 7,    /* the request's deadline passed */
        AUTOFUSE_E_CANCELED = 8,    /* by autofuse_request_cancel() */
        AUTOFUSE_E_NOT_FOUND = 9,   /* lookup only: not compiled yet */
        AUTOFUSE_E_TARGET = 10,     /* unknown SoC, or a toolchain that the server does not have */
        AUTOFUSE_E_KERNEL = 11,     /* a kernel could not be loaded, or broke a rule of the checked twin */
        AUTOFUSE_E_SHAPE = 12,      /* memory given to a run does not suit the bundle: missing, too small, misaligned */
        AUTOFUSE_E_CALLBACK = 13,   /* the caller's own callback for a framework node failed, or there is none */
};

struct autofuse_error;
enum autofuse_status autofuse_error_status(const struct autofuse_error *error);
/* Lines of text, without a newline at the end. */
const char *autofuse_error_text(const struct autofuse_error *error);
/* Whether the same call may succeed later. */
bool autofuse_error_is_retryable(const struct autofuse_error *error);
void autofuse_error_free(struct autofuse_error *error);
/* "unavailable"; static. */
const char *autofuse_status_name(enum autofuse_status status);
/* "0.1.0"; static. */
const char *autofuse_version(void);

/* ---- context ---- */

enum autofuse_log_level { AUTOFUSE_LOG_ERROR, AUTOFUSE_LOG_WARNING, AUTOFUSE_LOG_INFO, AUTOFUSE_LOG_DEBUG };

/* Start from AUTOFUSE_OPTIONS_INIT. Everything is copied. */
struct autofuse_options {
        size_t size;                 /* sizeof(struct autofuse_options) of the caller's header */
        const char *socket;          /* path of the server's socket; NULL: see autofuse_context_open() */
        int64_t server_uid;          /* a server of this user is trusted besides root's and one's own; -1: none (or $AUTOFUSE_SERVER_UID) */
        uint64_t memo_bytes;         /* bound of the in-process memo; 0: 64 MiB; UINT64_MAX: no memo */
        uint32_t connect_timeout_ms; /* how long a server that is starting or restarting is waited for; 0: see autofuse_context_open() */
        int strict;                  /* 1, 0, or -1: $AUTOFUSE_STRICT is "1" */
        const char *client_name;     /* for the server's log; NULL: the program's name */
        /*
         * Gets a line without newline: why the server is not used (once per reason), `Fallback <origin> $reason: …` (once per node when a
         * fragment is first answered). May be called from any thread that is inside the library, with no lock held. May be NULL.
         */
        void (*log)(void *userdata, enum autofuse_log_level level, const char *line);
        void *userdata;
        const char *packs; /* paths of packs, with colons between them; NULL: $AUTOFUSE_PACKS. What $AUTOFUSE_PACK_KEY did not sign is not
                              used */
};
#define AUTOFUSE_OPTIONS_INIT                                                                                                              \
        { sizeof(struct autofuse_options), NULL, -1, 0, 0, -1, NULL, NULL, NULL, NULL }

struct autofuse_context;
/*
 * Opens a context; does not connect: the first request does. The socket is options->socket; else $AUTOFUSE_SOCKET; else
 * /run/autofused/core.sock where it exists and admits this process; else $XDG_RUNTIME_DIR/autofused/core.sock; else
 * /tmp/autofused-<uid>/core.sock. A server found at a path that was named is waited for one second while it starts, a server that this
 * context has talked to five seconds while it restarts. options may be NULL. E_MEMORY, E_ARGUMENT.
 */
enum autofuse_status autofuse_context_open(const struct autofuse_options *options, struct autofuse_context **ret_context,
                                           struct autofuse_error **ret_error) AUTOFUSE_CHECK;
/* Requests and bundles outlive it: the last of them frees what they share. */
void autofuse_context_close(struct autofuse_context *context);
/* Whether the user wants a failure instead of a fall-back (options->strict, AUTOFUSE_STRICT=1). The library returns the same codes either
 * way. */
bool autofuse_context_is_strict(const struct autofuse_context *context);
/* Drops every memo entry. Bundles in use stay valid. */
void autofuse_context_forget(struct autofuse_context *context);

struct autofuse_memo_stats {
        uint64_t hits, misses, entries, bytes, evictions;
};
void autofuse_context_memo_stats(struct autofuse_context *context, struct autofuse_memo_stats *ret_stats);

/* ---- fragment builder ---- */

/* Values are those of the server's formats. */
enum autofuse_dtype {
        AUTOFUSE_DTYPE_BOOL = 1,
        AUTOFUSE_DTYPE_INT8,
        AUTOFUSE_DTYPE_UINT8,
        AUTOFUSE_DTYPE_INT16,
        AUTOFUSE_DTYPE_INT32,
        AUTOFUSE_DTYPE_INT64,
        AUTOFUSE_DTYPE_FLOAT16,
        AUTOFUSE_DTYPE_BFLOAT16,
        AUTOFUSE_DTYPE_FLOAT32,
        AUTOFUSE_DTYPE_FLOAT64,
};
/* Bytes of one element; 0 where unknown. */
unsigned autofuse_dtype_size(enum autofuse_dtype dtype);
/* "float32", "invalid"; static. */
const char *autofuse_dtype_name(enum autofuse_dtype dtype);

/* A number, or an expression over the fragment's symbols ("s0*2+1") where expr is not NULL. */
struct autofuse_dim {
        int64_t value;
        const char *expr;
};
struct autofuse_tensor_spec {
        const char *name;
        enum autofuse_dtype dtype;
        uint32_t rank;
        const struct autofuse_dim *dims;    /* rank entries */
        const struct autofuse_dim *strides; /* rank entries, elements; NULL: row-major contiguous */
};
struct autofuse_input_spec {
        struct autofuse_tensor_spec tensor;
        struct autofuse_dim offset; /* elements from the pointer to the first element */
        uint32_t align;             /* bytes of the pointer that every call keeps to; 0: one element */
        const char *buffer;         /* inputs of one name share memory; NULL: memory of its own */
        bool host;                  /* a scalar that changes per call and is passed by value */
};
enum autofuse_attr_kind {
        AUTOFUSE_ATTR_INT,
        AUTOFUSE_ATTR_INTS,
        AUTOFUSE_ATTR_FLOAT,
        AUTOFUSE_ATTR_BOOL, /* in i */
        AUTOFUSE_ATTR_STRING,
        AUTOFUSE_ATTR_DIMS,
};
struct autofuse_attr {
        const char *name; /* "axes", "keepdims", … as in a JSON fragment */
        enum autofuse_attr_kind kind;
        int64_t i;
        double f;
        const char *s;
        const int64_t *ints;             /* INTS: n */
        const struct autofuse_dim *dims; /* DIMS: n */
        uint32_t n;
};
struct autofuse_node_spec {
        const char *name;
        const char *op;     /* canonical: "add", "reduce_sum", "opaque" */
        const char *origin; /* the framework's name, for messages; may be NULL */
        const char *const *inputs;
        uint32_t n_inputs;
        const struct autofuse_attr *attrs;
        uint32_t n_attrs;
        const struct autofuse_tensor_spec *outputs;
        uint32_t n_outputs;
};
struct autofuse_output_spec {
        const char *value;
        const struct autofuse_dim *strides; /* rank entries of the value; NULL: as the value has them */
        uint32_t n_strides;
        const char *alias_of; /* input that is updated in place; NULL: none */
};
enum autofuse_numerics { AUTOFUSE_NUMERICS_STRICT, AUTOFUSE_NUMERICS_FAST };
enum autofuse_twin { AUTOFUSE_TWIN_DEFAULT, AUTOFUSE_TWIN_FAST, AUTOFUSE_TWIN_CHECKED };

struct autofuse_fragment;
/*
 * An empty fragment. Building one is for one thread at a time; once it is submitted it is fixed, and any thread may submit it again. Add
 * functions return E_INVALID (a name or rank over its limit, an expression that does not parse), E_ARGUMENT or E_MEMORY. What a node means
 * is checked when the fragment is submitted or validated, all mistakes at once.
 */
enum autofuse_status autofuse_fragment_new(const char *name, struct autofuse_fragment **ret_fragment,
                                           struct autofuse_error **ret_error) AUTOFUSE_CHECK;
/* Requests and bundles made from it stay valid. */
void autofuse_fragment_free(struct autofuse_fragment *fragment);
/* soc and toolchain: NULL for the server's default. twin is for the host toolchain. */
enum autofuse_status autofuse_fragment_set_target(struct autofuse_fragment *fragment, const char *soc, const char *toolchain,
                                                  enum autofuse_twin twin, struct autofuse_error **ret_error) AUTOFUSE_CHECK;
enum autofuse_status autofuse_fragment_set_numerics(struct autofuse_fragment *fragment, enum autofuse_numerics numerics,
                                                    struct autofuse_error **ret_error) AUTOFUSE_CHECK;
/* A size known per call: min <= value <= max, a multiple of multiple_of (1: any); hint: a usual value, -1: none. Before its first use. */
enum autofuse_status autofuse_fragment_add_symbol(struct autofuse_fragment *fragment, const char *name, int64_t min, int64_t max,
                                                  int64_t multiple_of, int64_t hint, struct autofuse_error **ret_error) AUTOFUSE_CHECK;
enum autofuse_status autofuse_fragment_add_input(struct autofuse_fragment *fragment, const struct autofuse_input_spec *input,
                                                 struct autofuse_error **ret_error) AUTOFUSE_CHECK;
/* n_bytes of little-endian elements, contiguous; the shape has no symbols. */
enum autofuse_status autofuse_fragment_add_constant(struct autofuse_fragment *fragment, const struct autofuse_tensor_spec *tensor,
                                                    const void *bytes, size_t n_bytes, struct autofuse_error **ret_error) AUTOFUSE_CHECK;
enum autofuse_status autofuse_fragment_add_node(struct autofuse_fragment *fragment, const struct autofuse_node_spec *node,
                                                struct autofuse_error **ret_error) AUTOFUSE_CHECK;
enum autofuse_status autofuse_fragment_add_output(struct autofuse_fragment *fragment, const struct autofuse_output_spec *output,
                                                  struct autofuse_error **ret_error) AUTOFUSE_CHECK;
/* Checks everything that submitting checks and fixes the fragment. Blocks for the check, about a microsecond per node. */
enum autofuse_status autofuse_fragment_validate(struct autofuse_fragment *fragment, struct autofuse_error **ret_error) AUTOFUSE_CHECK;
/* The fragment's digest: 64 hex digits and a zero. Validates. */
enum autofuse_status autofuse_fragment_digest(struct autofuse_fragment *fragment, char ret_hex[65],
                                              struct autofuse_error **ret_error) AUTOFUSE_CHECK;

/* ---- requests ---- */

struct autofuse_progress {
        const char *text;    /* "compiling"; valid during the call */
        uint64_t elapsed_ms; /* since the server took the request */
        uint32_t n_waiters;  /* who wait for the same compile */
};
/* A kernel that is ready while others of its bundle are still compiled: it may be loaded meanwhile. */
struct autofuse_part {
        uint32_t kernel, n_kernels; /* its index, as autofuse_bundle_kernel() takes it, and how many there are */
        const void *binary;         /* until the call returns */
        size_t n_bytes;
};
/* Start from AUTOFUSE_SUBMIT_INIT. */
struct autofuse_submit_options {
        size_t size;
        uint32_t deadline_ms; /* from now until the answer; 0: 600,000 */
        uint8_t priority;     /* 0: a rank waits … 255: warm-up */
        bool lookup_only;     /* a miss is E_NOT_FOUND and nothing is compiled */
        bool bypass_memo;     /* ask the server even where the memo knows the answer */
        /* Called by autofuse_request_wait() in the waiting thread, with no lock held. May be NULL. */
        void (*progress)(void *userdata, const struct autofuse_progress *progress);
        void *userdata;
        /* Called likewise, once for each kernel that came before the whole answer did; a hit has none. May be NULL. */
        void (*part)(void *userdata, const struct autofuse_part *part);
};
#define AUTOFUSE_SUBMIT_INIT                                                                                                               \
        { sizeof(struct autofuse_submit_options), 0, 0, false, false, NULL, NULL, NULL }

struct autofuse_bundle;
struct autofuse_request;
/*
 * Sends a fragment, unless the memo answers; blocks only to connect. options may be NULL. Waiting moves the bytes: a large fragment whose
 * request nobody waits for may stay half sent. E_INVALID, E_UNAVAILABLE, E_MEMORY, E_ARGUMENT.
 */
enum autofuse_status autofuse_submit(struct autofuse_context *context, struct autofuse_fragment *fragment,
                                     const struct autofuse_submit_options *options, struct autofuse_request **ret_request,
                                     struct autofuse_error **ret_error) AUTOFUSE_CHECK;
/* The same for n bytes of JSON. A text that was submitted before is known by its bytes and not parsed again. */
enum autofuse_status autofuse_submit_text(struct autofuse_context *context, const char *text, size_t n,
                                          const struct autofuse_submit_options *options, struct autofuse_request **ret_request,
                                          struct autofuse_error **ret_error) AUTOFUSE_CHECK;
/*
 * Blocks at most timeout_ms (negative: until the deadline). On success *ret_bundle is a new reference; more than one thread may wait. A
 * connection that breaks, a server that restarts or is busy: sent again, with jitter, until the deadline. E_TIMEOUT, E_DEADLINE,
 * E_CANCELED, E_COMPILE, E_TARGET, E_NOT_FOUND, E_INVALID, E_UNAVAILABLE, E_MEMORY.
 */
enum autofuse_status autofuse_request_wait(struct autofuse_request *request, int timeout_ms, struct autofuse_bundle **ret_bundle,
                                           struct autofuse_error **ret_error) AUTOFUSE_CHECK;
/* Waiters return E_CANCELED; the server ends the compile unless others wait for it. Does not block. A request that is done stays as it is.
 */
void autofuse_request_cancel(struct autofuse_request *request);
/* Cancels it where it is not done. Not while another thread waits for it. */
void autofuse_request_free(struct autofuse_request *request);
/* Submit, wait until the deadline, free. */
enum autofuse_status autofuse_compile(struct autofuse_context *context, struct autofuse_fragment *fragment,
                                      const struct autofuse_submit_options *options, struct autofuse_bundle **ret_bundle,
                                      struct autofuse_error **ret_error) AUTOFUSE_CHECK;
enum autofuse_status autofuse_compile_text(struct autofuse_context *context, const char *text, size_t n,
                                           const struct autofuse_submit_options *options, struct autofuse_bundle **ret_bundle,
                                           struct autofuse_error **ret_error) AUTOFUSE_CHECK;

/* ---- bundle ---- */

struct autofuse_bundle *autofuse_bundle_ref(struct autofuse_bundle *bundle);
void autofuse_bundle_unref(struct autofuse_bundle *bundle);

/* HOT: from memory that the server shares, without asking it. */
enum autofuse_hit {
        AUTOFUSE_HIT_COMPILED,
        AUTOFUSE_HIT_JOINED,
        AUTOFUSE_HIT_STORE,
        AUTOFUSE_HIT_MEMO,
        AUTOFUSE_HIT_HOT,
        AUTOFUSE_HIT_PACK
};
struct autofuse_bundle_info {
        enum autofuse_hit hit;
        uint64_t compile_us; /* what the compile cost; 0 on a hit */
        uint32_t n_steps, n_kernel_steps, n_framework_steps, n_nodes_fused;
        uint32_t n_kernels, n_inputs, n_outputs, n_buffers, n_decisions;
        uint64_t temp_bytes;                /* the one block of memory that a run needs besides inputs and outputs */
        uint64_t hbm_bytes;                 /* modelled: moved by all kernels */
        uint64_t bundle_bytes;              /* the answer itself */
        char fragment[65], environment[65]; /* the key, hex */
};
void autofuse_bundle_info(const struct autofuse_bundle *bundle, struct autofuse_bundle_info *ret_info);

/* A strided view of a buffer, sizes in elements. */
struct autofuse_tensor_info {
        enum autofuse_dtype dtype;
        uint32_t rank;
        int64_t dims[AUTOFUSE_MAX_RANK], strides[AUTOFUSE_MAX_RANK];
        int64_t offset;  /* from the buffer's start */
        uint32_t buffer; /* index of autofuse_bundle_buffer() */
};
enum autofuse_buffer_kind { AUTOFUSE_BUFFER_INPUT, AUTOFUSE_BUFFER_OUTPUT, AUTOFUSE_BUFFER_TEMP, AUTOFUSE_BUFFER_CONST };
struct autofuse_buffer_info {
        enum autofuse_buffer_kind kind;
        uint32_t index; /* INPUT, OUTPUT: the caller's input or output */
        uint64_t bytes;
        uint64_t offset;  /* TEMP: into the block of temp_bytes */
        const void *data; /* CONST */
};
struct autofuse_input_info {
        const char *name;
        bool used; /* false: no step reads it, the rest is zero */
        bool host;
        uint32_t align;
        struct autofuse_tensor_info tensor;
};
struct autofuse_output_info {
        const char *name;
        int32_t alias_of; /* input updated in place, or -1 */
        bool own;         /* false: the result lies in an input's, a constant's or another output's memory */
        uint64_t bytes;   /* own: memory that the caller gives to a run */
        struct autofuse_tensor_info tensor;
};
enum autofuse_step_kind { AUTOFUSE_STEP_KERNEL, AUTOFUSE_STEP_FRAMEWORK };
struct autofuse_step_info {
        enum autofuse_step_kind kind;
        /* KERNEL */
        uint32_t kernel; /* index of autofuse_bundle_kernel() */
        uint32_t n_args; /* pointers, in the entry's order */
        /* FRAMEWORK: the caller's own node */
        uint32_t node;             /* its index among the nodes that were added */
        const char *name, *origin; /* origin may be NULL */
        const char *op;            /* canonical name */
        const char *reason;        /* why it is left to the framework */
        uint32_t n_inputs, n_outputs;
};
struct autofuse_arg_info {
        uint32_t buffer;
        uint64_t byte_offset; /* the pointer is the buffer's start plus this */
        bool reads, writes;
        uint64_t range_begin, range_end; /* bytes that the kernel may touch, from the pointer */
};
struct autofuse_kernel_info {
        const char *symbol, *ops, *toolchain; /* ops: "abs,relu,exp" */
        const void *binary;
        size_t binary_bytes;
        const char *source; /* NULL unless asked for */
        size_t source_bytes;
        const void *tiling; /* passed by value after the pointers; NULL: none */
        size_t tiling_bytes;
        uint32_t block_dim, ub_bytes, n_nodes;
        bool needs_sync_all;   /* all blocks at once */
        bool workspace_zeroed; /* the last pointer must be zero before each launch */
        uint64_t workspace_bytes, hbm_bytes, modelled_cycles;
        char key[65];
};
enum autofuse_decision_kind { AUTOFUSE_DECISION_MERGED, AUTOFUSE_DECISION_REFUSED, AUTOFUSE_DECISION_FALLBACK };
struct autofuse_decision_info {
        enum autofuse_decision_kind kind;
        int64_t consumer, producer;                /* the caller's node indices, or -1 */
        const char *consumer_name, *producer_name; /* NULL where -1 */
        const char *rule, *reason;
        int64_t step; /* the kernel's step, or -1 */
        int64_t bytes_saved;
};
/* Each false where the index is beyond the end. */
bool autofuse_bundle_input(const struct autofuse_bundle *bundle, uint32_t index, struct autofuse_input_info *ret_info);
bool autofuse_bundle_output(const struct autofuse_bundle *bundle, uint32_t index, struct autofuse_output_info *ret_info);
bool autofuse_bundle_buffer(const struct autofuse_bundle *bundle, uint32_t index, struct autofuse_buffer_info *ret_info);
bool autofuse_bundle_step(const struct autofuse_bundle *bundle, uint32_t index, struct autofuse_step_info *ret_info);
/* Argument of a kernel step. */
bool autofuse_bundle_step_arg(const struct autofuse_bundle *bundle, uint32_t step, uint32_t index, struct autofuse_arg_info *ret_info);
/* Operand of a framework step: its inputs, then its outputs. */
bool autofuse_bundle_step_value(const struct autofuse_bundle *bundle, uint32_t step, uint32_t index, struct autofuse_tensor_info *ret_info);
bool autofuse_bundle_kernel(const struct autofuse_bundle *bundle, uint32_t index, struct autofuse_kernel_info *ret_info);
bool autofuse_bundle_decision(const struct autofuse_bundle *bundle, uint32_t index, struct autofuse_decision_info *ret_info);

/*
 * A bundle of a fragment with symbols is a form: sizes in the functions above are those at a middling value of each symbol. Fills it in for
 * one value per symbol, in the order in which they were added: *ret_solved is a bundle of its own (autofuse_bundle_unref it) that shares
 * the kernels, and can be run and looked at. What was solved lately is kept: the same values again cost a look-up. Without symbols: the
 * bundle itself, once more. E_SHAPE: a value outside its symbol's range or not a multiple, or a node that would take the maximum or minimum
 * of nothing (the text names it); E_ARGUMENT, E_MEMORY.
 */
enum autofuse_status autofuse_bundle_solve(struct autofuse_bundle *bundle, const int64_t *symbols, uint32_t n_symbols,
                                           struct autofuse_bundle **ret_solved, struct autofuse_error **ret_error) AUTOFUSE_CHECK;

/* ---- running host bundles ---- */

/* A tensor in memory: data is the address of element [0, 0, …]. */
struct autofuse_tensor {
        enum autofuse_dtype dtype;
        uint32_t rank;
        const int64_t *dims, *strides; /* elements */
        void *data;
};
struct autofuse_node_call {
        uint32_t node; /* the caller's index */
        const char *name, *origin, *op;
        const struct autofuse_tensor *inputs, *outputs; /* outputs: memory to write, with the strides as given */
        uint32_t n_inputs, n_outputs;
};
/* Start from AUTOFUSE_RUN_INIT. */
struct autofuse_run {
        size_t size;
        void *const *inputs;         /* per input of the fragment: the pointer that its offset counts from; NULL where it is not used */
        const uint64_t *input_bytes; /* memory behind each, checked against what the steps touch; NULL: not checked */
        /*
         * Per output of the fragment: memory of `bytes` (autofuse_bundle_output) where `own`; for others NULL, or memory that gets a
         * row-major copy.
         */
        void *const *outputs;
        const uint64_t *output_bytes; /* NULL: not checked */
        /* Runs one node that was left to the framework; 0, or anything else to stop. NULL: such a bundle is E_CALLBACK. */
        int (*framework_node)(void *userdata, const struct autofuse_node_call *call);
        /*
         * Runs task(arg, i) for each i < n_tasks, in any order, on any threads, and returns when all are done. NULL: one after another in
         * the calling thread.
         */
        void (*executor)(void *userdata, uint32_t n_tasks, void (*task)(void *arg, uint32_t i), void *arg);
        uint32_t n_workers; /* tasks that the executor is given at most, fewer where a kernel moves little; 0: one per block */
        void *userdata;
        void *temp; /* temp_bytes, aligned to 512, reused between calls; NULL: allocated and freed by the call */
        uint64_t temp_bytes;
};
#define AUTOFUSE_RUN_INIT                                                                                                                  \
        { sizeof(struct autofuse_run), NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0 }
/*
 * Runs every step of a bundle compiled for the host. Kernels are loaded at the first run and kept with the bundle. Any number of runs may
 * go on at once with memory of their own. E_SHAPE, E_KERNEL (also: not a host kernel), E_CALLBACK, E_MEMORY, E_ARGUMENT.
 */
enum autofuse_status autofuse_bundle_run(struct autofuse_bundle *bundle, const struct autofuse_run *run,
                                         struct autofuse_error **ret_error) AUTOFUSE_CHECK;
/*
 * Runs kernel steps [first_step, first_step + n_steps) on memory that the caller placed: buffers has a pointer per buffer of the bundle
 * (autofuse_bundle_buffer(); NULL where it has no bytes; a TEMP's may be anywhere and is the caller's as long as later steps read it),
 * which nothing checks. Of run, which may be NULL, the executor, its userdata and n_workers count. For frameworks that run their own nodes
 * between. E_ARGUMENT: not all of these are kernel steps; E_SHAPE, E_KERNEL, E_MEMORY.
 */
enum autofuse_status autofuse_bundle_run_kernels(struct autofuse_bundle *bundle, uint32_t first_step, uint32_t n_steps,
                                                 void *const *buffers, const struct autofuse_run *run,
                                                 struct autofuse_error **ret_error) AUTOFUSE_CHECK;
/*
 * Launches blocks [first_block, first_block + n_blocks) of one host kernel in the calling thread; args are its pointers in order. arg_bytes
 * (may be NULL): memory behind each, checked by the checked twin. A kernel that needs_sync_all takes all blocks at once.
 */
enum autofuse_status autofuse_kernel_launch(struct autofuse_bundle *bundle, uint32_t kernel, void *const *args, const uint64_t *arg_bytes,
                                            uint32_t n_args, uint32_t first_block, uint32_t n_blocks,
                                            struct autofuse_error **ret_error) AUTOFUSE_CHECK;

/*
 * Threads for callers that have none of their own: n_threads, the launching one counted. They start at the first launch that has use for
 * them, block all signals and sleep between launches; a forked child gets its own. autofuse_pool_execute is an executor (struct
 * autofuse_run; userdata is the pool); a launch while the pool is at work on another runs in its own thread alone. E_ARGUMENT, E_MEMORY.
 */
struct autofuse_pool;
enum autofuse_status autofuse_pool_new(uint32_t n_threads, struct autofuse_pool **ret_pool,
                                       struct autofuse_error **ret_error) AUTOFUSE_CHECK;
void autofuse_pool_execute(void *pool, uint32_t n_tasks, void (*task)(void *arg, uint32_t i), void *arg);
/* Not while a run uses it. Ends its threads. */
void autofuse_pool_free(struct autofuse_pool *pool);

/* ---- the server ---- */

/* The server's counters as JSON; free() the text. */
enum autofuse_status autofuse_server_stats(struct autofuse_context *context, char **ret_json,
                                           struct autofuse_error **ret_error) AUTOFUSE_CHECK;
/* Drops every entry of the server's store: for its own user and root. *ret_json may be NULL; free() the text. */
enum autofuse_status autofuse_server_clear(struct autofuse_context *context, char **ret_json,
                                           struct autofuse_error **ret_error) AUTOFUSE_CHECK;

/* The Ascend C of a bundle's kernel, as the server's store has it; free() the text. E_NOT_FOUND where the store has it no longer. */
enum autofuse_status autofuse_kernel_source(struct autofuse_context *context, const struct autofuse_bundle *bundle, uint32_t kernel,
                                            char **ret_source, struct autofuse_error **ret_error) AUTOFUSE_CHECK;

#ifdef __cplusplus
}
#endif
#endif
