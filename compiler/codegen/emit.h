/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the emitter: one kernel being written. */
#pragma once

#include "compiler/codegen/codegen.h"

/* Snippets of rules/templates/lib_*.j2, in the order in which they stand in a source. OP is rendered once per combining call. */
#define EMIT_LIBS(X)                                                                                                                       \
        X(TILE, "lib_tile")                                                                                                                \
        X(FLOAT_BITS, "lib_float_bits")                                                                                                    \
        X(HALF_BITS, "lib_half_bits")                                                                                                      \
        X(MOVE, "lib_move")                                                                                                                \
        X(COPY, "lib_copy")                                                                                                                \
        X(AWAIT, "lib_await")                                                                                                              \
        X(FETCH_ROWS, "lib_fetch_rows")                                                                                                    \
        X(FETCH_RUNS, "lib_fetch_runs")                                                                                                    \
        X(FETCH_ELEMENTS, "lib_fetch_elements")                                                                                            \
        X(REPEAT_ROWS, "lib_repeat_rows")                                                                                                  \
        X(STORE_ROWS, "lib_store_rows")                                                                                                    \
        X(BIN, "lib_bin")                                                                                                                  \
        X(GROUP, "lib_group")                                                                                                              \
        X(INDEX, "lib_index")                                                                                                              \
        X(OFFSETS, "lib_offsets")                                                                                                          \
        X(OFFSETS64, "lib_offsets64")                                                                                                      \
        X(PICK, "lib_pick")                                                                                                                \
        X(EXPAND_ROW, "lib_expand_row")                                                                                                    \
        X(EXPAND_COLUMN, "lib_expand_column")                                                                                              \
        X(OP, "lib_op")                                                                                                                    \
        X(ROW_LANES, "lib_row_lanes")                                                                                                      \
        X(LANE_SUM, "lib_lane_sum")                                                                                                        \
        X(ROW_CHUNKS, "lib_row_chunks")                                                                                                    \
        X(LANE_TREE, "lib_lane_tree")                                                                                                      \
        X(LANE_HALVES, "lib_lane_halves")                                                                                                  \
        X(ROW_LEVELS, "lib_row_levels")                                                                                                    \
        X(LEVEL_TOP, "lib_level_top")                                                                                                      \
        X(SCAN_ROWS, "lib_scan_rows")
#define EMIT_LONG 100 /* characters of declarations behind which a new line starts */
enum emit_lib {
#define AF_X(id, name) EMIT_LIB_##id,
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
        bool out_late;              /* the turn takes its store buffer behind its views: what lies there has no name */
        bool once;                  /* in the prologue: full lengths stand in for those of a tile */
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
void emit_use(struct emit *e, enum emit_lib lib);
/* The type of a combining call, as a template argument: "AddOf". */
const char *emit_op(struct emit *e, enum af_combine combine);
/* "t.NAME": a size that goes into struct Tiling; printf-like name, arena memory. */
const char *emit_size(struct emit *e, const char *type, int64_t value, const char *fmt, ...) AF_PRINTF(4, 5);
/* The same for a size that may depend on symbols. */
const char *emit_size_x(struct emit *e, const char *type, int64_t value, uint32_t x, const char *fmt, ...) AF_PRINTF(5, 6);
const char *emit_text(struct emit *e, const char *fmt, ...) AF_PRINTF(2, 3);
/* "TYPE a, b, c;" of those of the n items that are not NULL, over as many lines as it takes. */
void emit_declare(struct emit *e, const char *type, const char *const *items, uint32_t n);
void emit_fail(struct emit *e, const char *what);

/* C++ type of a dtype's elements in UB and GM: "float". MASK and bool: "uint8_t". */
const char *emit_type(enum af_dtype d);
/* A scalar of dtype d from its bits, as an expression of exactly that type. */
const char *emit_scalar(struct emit *e, enum af_dtype d, uint64_t bits);
/* emit_phase.c: one phase with its loops. */
void emit_phase(struct emit *e, uint32_t phase_no);
/* emit_stmt.c: names the views that the compute statements of a turn's stages need, then the statements. rest NULL: one stage. */
void emit_declare_views(struct emit *e, const struct af_stage *st, const struct af_stage *rest);
void emit_compute(struct emit *e, const struct af_kstmt *s);
/* Elements of a value's tile in calls of count form, as they are at run time. */
const char *emit_count(struct emit *e, uint32_t v);
/* emit_raw.c: rows by an index, into the load buffer; what of them stays to be copied, once that is full. */
void emit_fetch(struct emit *e, const struct af_kstmt *s);
void emit_repeats(struct emit *e, const struct af_kstmt *s);
/* Whether, of a FETCH once, the last row of a tile stands for the first ones of the next. */
bool emit_carries(const struct emit *e, const struct af_kstmt *s);
/* The name of the variable that has this row; phases may share a scope. */
const char *emit_before(struct emit *e, const struct af_kstmt *s);
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
/* Of an axis' tile, and of the stage's, as they are at run time. */
const char *emit_length(struct emit *e, uint32_t axis);
/* Length of an element axis within its chunk, or of a whole axis. */
const char *emit_whole_length(struct emit *e, uint32_t a);
/* "t.p0_extent1": a size of an axis of the phase. */
const char *emit_axis_size(struct emit *e, uint32_t a, const char *what, int64_t value, uint32_t x);
const char *emit_rows(struct emit *e);
const char *emit_cols(struct emit *e);
