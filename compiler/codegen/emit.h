/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the emitter: one kernel being written. */
#pragma once

#include "compiler/codegen/codegen.h"

/* Snippets of rules/templates/lib_*.j2, in the order in which they stand in a source. Those with a call are rendered once per combining
 * call. */
#define EMIT_LIBS(X)                                                                                                                       \
        X(TILE, "lib_tile", false)                                                                                                         \
        X(BITS, "lib_bits", false)                                                                                                         \
        X(LOAD, "lib_load", false)                                                                                                         \
        X(STORE, "lib_store", false)                                                                                                       \
        X(COPY, "lib_copy", false)                                                                                                         \
        X(AWAIT, "lib_await", false)                                                                                                       \
        X(FETCH_ROWS, "lib_fetch_rows", false)                                                                                             \
        X(FETCH_RUNS, "lib_fetch_runs", false)                                                                                             \
        X(FETCH_ELEMENTS, "lib_fetch_elements", false)                                                                                     \
        X(REPEAT_ROWS, "lib_repeat_rows", false)                                                                                           \
        X(STORE_ROWS, "lib_store_rows", false)                                                                                             \
        X(BIN, "lib_bin", false)                                                                                                           \
        X(GROUP, "lib_group", false)                                                                                                       \
        X(INDEX, "lib_index", false)                                                                                                       \
        X(OFFSETS, "lib_offsets", false)                                                                                                   \
        X(OFFSETS64, "lib_offsets64", false)                                                                                               \
        X(PICK, "lib_pick", false)                                                                                                         \
        X(EXPAND_ROW, "lib_expand_row", false)                                                                                             \
        X(EXPAND_COLUMN, "lib_expand_column", false)                                                                                       \
        X(ROW_LANES, "lib_row_lanes", true)                                                                                                \
        X(LANE_SUM, "lib_lane_sum", false)                                                                                                 \
        X(ROW_CHUNKS, "lib_row_chunks", false)                                                                                             \
        X(LANE_TREE, "lib_lane_tree", true)                                                                                                \
        X(LANE_HALVES, "lib_lane_halves", true)                                                                                            \
        X(ROW_LEVELS, "lib_row_levels", true)                                                                                              \
        X(LEVEL_TOP, "lib_level_top", true)                                                                                                \
        X(SCAN_ROWS, "lib_scan_rows", false)
#define EMIT_LONG 100 /* characters of declarations behind which a new line starts */
enum emit_lib {
#define AF_X(id, name, per_call) EMIT_LIB_##id,
        EMIT_LIBS(AF_X)
#undef AF_X
                EMIT_N_LIBS
};

struct emit_field {
        const char *type, *name;
        int64_t value;
        uint32_t x; /* with symbols (schedule/size.h): the entry gets it by value */
};
struct emit_view { /* a typed view of a place in UB, by name */
        enum af_place place;
        uint32_t offset;
        const char *type, *name;
};
struct emit {
        const struct af_kernel *k;
        struct af_arena arena; /* scratch of this source */
        struct af_buf body;
        unsigned indent;
        uint32_t libs[EMIT_N_LIBS]; /* bit per enum af_combine; bit 0 for those without a call */
        struct emit_field *fields;
        uint32_t n_fields, cap_fields;
        struct emit_view *views; /* of the stage */
        uint32_t n_views, cap_views, n_slots[4];
        const struct af_phase *phase;
        uint32_t phase_no;
        const struct af_stage *stage;
        uint32_t last_node; /* op named in the last comment */
        int error;          /* sticky: -ENOMEM or AF_CODEGEN_E_TEMPLATE */
        struct af_diags *diags;
};

/* One line of the body, indented. */
void emit_line(struct emit *e, const char *fmt, ...) AF_PRINTF(2, 3);
void emit_use(struct emit *e, enum emit_lib lib, enum af_combine combine);
/* "t.NAME": a size that goes into struct Tiling; printf-like name, arena memory. */
const char *emit_size(struct emit *e, const char *type, int64_t value, const char *fmt, ...) AF_PRINTF(4, 5);
/* The same for a size that may depend on symbols. */
const char *emit_size_x(struct emit *e, const char *type, int64_t value, uint32_t x, const char *fmt, ...) AF_PRINTF(5, 6);
const char *emit_text(struct emit *e, const char *fmt, ...) AF_PRINTF(2, 3);
void emit_fail(struct emit *e, const char *what);

/* C++ type of a dtype's elements in UB and GM: "float". MASK and bool: "uint8_t". */
const char *emit_type(enum af_dtype d);
/* A scalar of dtype d from its bits, as an expression of exactly that type. */
const char *emit_scalar(struct emit *e, enum af_dtype d, uint64_t bits);
/* "Add", "Max", ... */
const char *emit_call_of(enum af_combine combine);

/* emit_phase.c: one phase with its loops. */
void emit_phase(struct emit *e, uint32_t phase_no);
/* emit_stmt.c: names the views that the compute statements of the stage need, then the statements. */
void emit_declare_views(struct emit *e);
void emit_compute(struct emit *e, const struct af_kstmt *s);
/* Elements of a value's tile in calls of count form, as they are at run time. */
const char *emit_count(struct emit *e, uint32_t v);
/* emit_raw.c: rows by an index, into the load buffer; what of them stays to be copied, once that is full. */
void emit_fetch(struct emit *e, const struct af_kstmt *s);
void emit_repeats(struct emit *e, const struct af_kstmt *s);
/* Whether, of a FETCH once, the last row of a tile stands for the first ones of the next. */
bool emit_carries(const struct emit *e, const struct af_kstmt *s);
/* Tables and what is gathered by them, indices. NULL where s is none of these. */
const char *emit_raw_text(struct emit *e, const struct af_kstmt *s);
/* Name of the view of value v as type.
 * Names are given as they are asked for, and what a size is for the first time is a new field: no two of these calls in one argument list,
 * whose order differs between compilers. */
const char *emit_view_of(struct emit *e, uint32_t v, const char *type);
/* emit_bins.c: what a BIN or GROUP phase does with each of its tiles, and with its buffer `calc`. */
void emit_bins(struct emit *e);
/* emit_move.c */
/* Where this tile's first element is: offset + starts times strides. */
const char *emit_position(struct emit *e, const struct af_kstmt *s);
/* Elements per step of an axis. */
const char *emit_step(struct emit *e, const struct af_access *a, uint32_t axis);
void emit_load(struct emit *e, const struct af_kstmt *s, const char *base);
void emit_store(struct emit *e, const struct af_kstmt *s, const char *base);
/* Lengths of the stage's tile as they are at run time. */
const char *emit_rows(const struct emit *e);
const char *emit_cols(const struct emit *e);
