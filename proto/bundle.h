/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bundle: the answer to a fragment. One flat little-endian file, mapped and read in place: no parsing beyond offsets.
 *
 *   header   struct af_bundle_header (64 bytes), section table
 *   sections, each at a multiple of 64; tables are arrays of the fixed structs below; strings and blobs are {offset, size} into BLOB.
 *
 * A bundle without binaries (kernels[].binary.size == 0, flag AF_BUNDLE_SKELETON) is what the store keeps per fragment; af_bundle_attach
 * adds the kernels' binaries. Names of the sender are not in it: inputs, outputs and nodes are canonical slots.
 * Nothing in a bundle is trusted before af_bundle_open has checked every offset, id and count.
 */
#pragma once

#include "base/buf.h"
#include "base/diag.h"
#include "base/digest.h"
#include "base/intern.h"
#include "numeric/dtype.h"

#define AF_BUNDLE_MAGIC     0x31424641u /* "AFB1" */
#define AF_BUNDLE_VERSION   3
#define AF_BUNDLE_SKELETON  1u
#define AF_BUNDLE_MAX_RANK  16
#define AF_BUNDLE_MAX_BYTES (UINT64_C(1) << 48) /* of one buffer, and of all temporaries together */

struct af_blob_ref {
        uint32_t offset, size; /* into section BLOB; strings are followed by a zero byte that size does not count */
};
enum af_bundle_section {
        AF_SECTION_STEPS,
        AF_SECTION_KERNELS,
        AF_SECTION_ARGS,
        AF_SECTION_BUFFERS,
        AF_SECTION_INPUTS,
        AF_SECTION_OUTPUTS,
        AF_SECTION_TENSORS,
        AF_SECTION_DECISIONS,
        AF_SECTION_FALLBACK_VALUES,
        AF_SECTION_EXPRS,
        AF_SECTION_SYMBOLS,
        AF_SECTION_PATCHES,
        AF_SECTION_BLOB,
        AF_SECTION_GUARDS,
        AF_N_SECTIONS = 16
};
struct af_bundle_header {
        uint32_t magic;
        uint16_t version, flags;
        uint64_t total_bytes;
        struct af_check check; /* af_check_pieces over bytes 0..16, then 64 to the end */
        uint8_t zero[32];
}; /* 64 bytes; at byte 64 follows a table of AF_N_SECTIONS entries: */
struct af_bundle_section_entry {
        uint32_t offset, bytes, count, zero;
};

/*
 * A bundle with symbols is a form: its tables hold the sizes at the symbols' hints, and PATCHES says which fields change with the symbols.
 * runtime/solve.h fills a copy in for given values. EXPRS: size expressions, operands before users (proto/expr.h's kinds): evaluated in
 * order of ids, each once. SYMBOLS: their symbols' guards, canonical order; GUARDS: sizes that a node must have some of. BLOB: count is
 * its bytes. Sections 14.. are all zero.
 */
struct af_bundle_expr {
        uint32_t kind; /* enum af_expr_kind */
        uint32_t a, b; /* ids below this one's; AF_NONE for CONST and SYMBOL */
        uint32_t zero;
        int64_t value; /* CONST: the value; SYMBOL: id into SYMBOLS */
};
struct af_bundle_symbol {
        int64_t min, max, multiple_of;
};
struct af_bundle_guard { /* refused where the expression is below min */
        uint32_t expr;
        uint32_t node; /* canonical node that says so */
        int64_t min;
        struct af_blob_ref why; /* "reduce_max of nothing: axis 1 has size 0" */
};

enum af_patch_kind { AF_PATCH_U32, AF_PATCH_I64, AF_PATCH_F32, AF_N_PATCH_KINDS };
struct af_bundle_patch {  /* a field that is the value of an expression */
        uint32_t section; /* KERNELS, ARGS, BUFFERS, TENSORS or BLOB (of tilings) */
        uint32_t kind;    /* enum af_patch_kind */
        uint32_t offset;  /* bytes into the section */
        uint32_t expr;
};

enum af_buffer_kind {
        AF_BUFFER_INPUT,  /* the caller's input `slot` */
        AF_BUFFER_OUTPUT, /* memory of output `slot`; the caller allocates bytes */
        AF_BUFFER_TEMP,   /* piece of the one arena: `offset` */
        AF_BUFFER_CONST,  /* data in BLOB */
};
struct af_bundle_buffer {
        uint32_t kind;
        uint32_t slot;           /* INPUT, OUTPUT */
        uint64_t bytes;          /* static size (TEMP: rounded up to 512) */
        uint64_t offset;         /* TEMP: into the arena, multiple of 512; reuse = overlapping offsets with disjoint lives */
        struct af_blob_ref data; /* CONST */
};
struct af_bundle_tensor { /* a strided view of a buffer */
        uint32_t buffer;
        uint32_t dtype;
        uint32_t rank;
        uint32_t zero;
        int64_t dims[AF_BUNDLE_MAX_RANK];
        int64_t strides[AF_BUNDLE_MAX_RANK]; /* elements */
        int64_t offset;                      /* elements */
};
struct af_bundle_input { /* canonical input slot i */
        uint32_t tensor; /* id into TENSORS: expected dtype, dims, strides, offset */
        uint32_t align;
        uint32_t flags; /* 1: host scalar */
        uint32_t zero;
};
struct af_bundle_output {  /* output i, in the order of the fragment's outputs */
        uint32_t tensor;   /* where the result is when all steps ran; its buffer may be an INPUT (a view or in-place), CONST or another
                              output's */
        uint32_t alias_of; /* canonical input slot updated in place, or AF_NONE; where tensor's buffer is not that input, the caller copies
                              the result there after the last step */
};
enum af_step_kind { AF_STEP_KERNEL, AF_STEP_FRAMEWORK };
struct af_bundle_step {
        uint32_t kind;
        uint32_t kernel;                           /* KERNEL: id into KERNELS */
        uint32_t first_arg, n_args;                /* KERNEL: into ARGS, in the entry's order */
        uint32_t node;                             /* FRAMEWORK: canonical node number */
        uint32_t first_value, n_inputs, n_outputs; /* FRAMEWORK: into FALLBACK_VALUES: tensor ids, inputs then outputs */
        struct af_blob_ref reason;                 /* FRAMEWORK */
        uint32_t op;                               /* FRAMEWORK: enum af_op */
        uint32_t zero;
};
enum af_arg_access { AF_ACCESS_READ = 1, AF_ACCESS_WRITE = 2 };
struct af_bundle_arg {
        uint32_t buffer; /* pointer passed = base of this buffer + byte_offset */
        uint32_t access; /* AF_ACCESS_*; WRITE: never into CONST, into INPUT only where an output's alias_of is its slot */
        uint64_t byte_offset;
        uint64_t range_begin, range_end; /* bytes relative to the pointer that the kernel may touch */
};
struct af_bundle_kernel {
        struct af_digest key;         /* kernel key */
        struct af_blob_ref symbol;    /* entry point */
        struct af_blob_ref source;    /* empty unless asked for (debug) */
        struct af_blob_ref binary;    /* empty in a skeleton */
        struct af_blob_ref toolchain; /* id: "host", "ccec" */
        struct af_blob_ref tiling;    /* POD passed by value after the pointers; empty: constexpr */
        struct af_blob_ref ops;       /* "abs,relu,exp": for people */
        uint32_t core_type;           /* 0 vector (AIV) */
        uint32_t block_dim;
        uint64_t workspace_bytes;  /* is also an ARG of the step (a TEMP buffer) */
        uint32_t workspace_zeroed; /* 1: must be zero before each launch */
        uint32_t ub_bytes;
        uint32_t needs_sync_all; /* 1: all blocks must be resident at once */
        uint32_t n_pointer_args; /* of the entry point, the workspace included: n_args of each step that launches it */
        uint32_t n_nodes;        /* canonical nodes fused */
        uint32_t zero;
        uint64_t hbm_bytes; /* modelled: moved by DMA */
        uint64_t modelled_cycles;
};
struct af_bundle_decision {
        uint32_t kind;             /* 0 merged, 1 refused, 2 fallback */
        uint32_t node_a, node_b;   /* canonical nodes (consumer, producer), or AF_NONE */
        uint32_t group;            /* step number of the kernel, or AF_NONE */
        struct af_blob_ref rule;   /* file stem of the rule, "" */
        struct af_blob_ref reason; /* constraint with both sides' facts */
        int64_t bytes_saved;
};

/* Builder of a bundle or a skeleton. */
struct af_bundle_builder {
        struct af_buf sections[AF_N_SECTIONS]; /* tables grow here; BLOB holds strings and data */
        struct af_arena arena;
        struct af_intern strings;        /* in BLOB already, each once: decisions of large graphs repeat theirs */
        struct af_blob_ref *string_refs; /* by their number */
        uint32_t cap_string_refs;
};
void af_bundle_builder_init(struct af_bundle_builder *b);
void af_bundle_builder_deinit(struct af_bundle_builder *b);
/* Appends one element (size of that section's struct) and returns its index. */
uint32_t af_bundle_add(struct af_bundle_builder *b, enum af_bundle_section section, const void *elem);
/* Elements added to a section so far. */
uint32_t af_bundle_builder_count(const struct af_bundle_builder *b, enum af_bundle_section section);
/* Copies bytes into BLOB (align 64 for binaries and constants, else 1). */
struct af_blob_ref af_bundle_add_blob(struct af_bundle_builder *b, const void *p, size_t n, size_t align);
/* The same for a string: equal ones stand in BLOB once. NULL and "" are the empty reference. */
struct af_blob_ref af_bundle_add_str(struct af_bundle_builder *b, const char *s);
/* Appends the finished file to out. 0, -ENOMEM, -EOVERFLOW (4 GiB). */
int af_bundle_finish(struct af_bundle_builder *b, uint16_t flags, struct af_buf *out) AF_WARN_UNUSED;

/* A checked view over borrowed bytes. */
struct af_bundle {
        const uint8_t *data;
        size_t size;
        const struct af_bundle_header *header;
        const struct af_bundle_section_entry *sections;
};
enum { AF_BUNDLE_E_DAMAGED = 1, AF_BUNDLE_E_VERSION = 2 };
/*
 * Checks size, digest, every table bound and id, strings' zero bytes, that each view and each argument's range lies inside its buffer
 * (of a form: at the symbols' hints), and that nothing writes where it may not. data must stay and be 8-aligned. 0 or AF_BUNDLE_E_*;
 * *ret_why (may be NULL) gets static text.
 */
int af_bundle_open(const void *data, size_t n, struct af_bundle *ret_bundle, const char **ret_why) AF_WARN_UNUSED;
/* The same for bytes whose sum the caller has just verified by other means (a record of the hot area). */
int af_bundle_open_verified(const void *data, size_t n, struct af_bundle *ret_bundle, const char **ret_why) AF_WARN_UNUSED;
/* The checks of af_bundle_open but that of the bytes' sum: for a copy whose fields were filled in. NULL, or what is wrong. */
const char *af_bundle_check_tables(const struct af_bundle *b);
/* Whether sizes depend on symbols: only a solved copy can be run. */
bool af_bundle_is_form(const struct af_bundle *b);
const void *af_bundle_at(const struct af_bundle *b, enum af_bundle_section section, uint32_t i); /* NULL beyond the end */
uint32_t af_bundle_count(const struct af_bundle *b, enum af_bundle_section section);
const char *af_bundle_str(const struct af_bundle *b, struct af_blob_ref ref);
const void *af_bundle_blob(const struct af_bundle *b, struct af_blob_ref ref);

/*
 * Skeleton + binaries (one per KERNELS entry, in order, none empty) -> full bundle appended to out. 0, -ENOMEM, -EOVERFLOW, or
 * AF_BUNDLE_E_DAMAGED: not a skeleton, or another number of binaries. out has undefined bytes added on failure.
 */
int af_bundle_attach(const struct af_bundle *skeleton, const struct af_piece *binaries, uint32_t n, struct af_buf *out) AF_WARN_UNUSED;

/*
 * The other way: what the store keeps of a whole bundle, appended to out; attaching the same binaries gives the same bytes again. 0,
 * -ENOMEM, or AF_BUNDLE_E_DAMAGED: a skeleton, or binaries elsewhere than at the end.
 */
int af_bundle_detach(const struct af_bundle *bundle, struct af_buf *out) AF_WARN_UNUSED;

/*
 * How a sender's fragment maps to canonical slots: kept by whoever has the names. inputs[i]: canonical input slot of the fragment's
 * i-th input, or AF_NONE (unused); nodes[i]: canonical number of its i-th node, or AF_NONE (dead). symbols likewise.
 */
struct af_slot_map {
        uint32_t *inputs, *nodes, *symbols;
        uint32_t n_inputs, n_nodes, n_symbols;
};
/* Appends u32 n_inputs, n_nodes, n_symbols, then the three arrays as u32. */
void af_slot_map_write(const struct af_slot_map *m, struct af_buf *buf);
/* Allocates with malloc; free with af_slot_map_deinit. Slots must be below their list's length or AF_NONE. 0, -ENOMEM, AF_BUNDLE_E_DAMAGED.
 */
int af_slot_map_read(const void *p, size_t n, struct af_slot_map *ret_map) AF_WARN_UNUSED;
void af_slot_map_deinit(struct af_slot_map *m);

/*
 * Plan: what a plan job returns. Skeleton bundle + one source per distinct kernel + the key.
 *   u32 "AFP1", u32 n_kernels, 32 bytes fragment digest, u32 zero, field skeleton (its bytes start at 48, so that it is aligned where the
 * plan is), then per kernel: 32 bytes key, field toolchain id, field symbol (both with their zero byte), field source; then field slot map
 * (empty for canonical requests), field canonical bytes, field fallback lines.
 */
struct af_plan_kernel {
        struct af_digest key;
        const char *toolchain, *symbol;
        const uint8_t *source;
        uint32_t source_size;
};
struct af_plan_view {
        struct af_digest fragment;
        const uint8_t *skeleton, *slot_map, *canon, *fallbacks;
        uint32_t skeleton_size, slot_map_size, canon_size, fallbacks_size;
        uint32_t n_kernels;
        struct af_plan_kernel *kernels; /* malloc; strings borrowed and NUL-terminated in the plan's bytes */
};
/* Appends; buf should be empty, or 16-aligned so far, for the skeleton's alignment. */
void af_plan_write(const struct af_plan_view *plan, struct af_buf *buf);
/* Borrows from p; the skeleton and the maps are not opened. Frees nothing on failure that the caller has to know. 0, -ENOMEM,
 * AF_BUNDLE_E_*. */
int af_plan_read(const void *p, size_t n, struct af_plan_view *ret_plan) AF_WARN_UNUSED;
void af_plan_view_deinit(struct af_plan_view *plan);
