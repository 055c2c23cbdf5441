/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the lowering: one context per tile shape of a phase. */
#pragma once

#include "compiler/schedule/sched.h"

enum { STAGE_PROLOGUE, STAGE_INIT, STAGE_BODY, STAGE_FINISH, N_STAGES };
struct stmt_list {
        struct af_kstmt *items;
        uint32_t n, cap;
};
/* Facts about a value that only the lowering needs. */
struct aux {
        uint32_t expanded[4];       /* by hold FULL..ONE: the same bits, expanded; AF_NONE */
        uint32_t as_mask, as_bytes; /* a truth value in its other form */
        bool hoisted;               /* lives in the prologue */
        bool loaded;
        uint32_t gathered; /* RAW that was loaded: the tile made of it; AF_NONE */
};
struct lower {
        struct sched *s;
        const struct pass *p;
        struct variant variant;
        struct af_phase *phase;
        struct aux *aux; /* per value of the phase */
        uint32_t cap_aux;
        uint32_t stage;      /* the stage being filled */
        uint32_t row, inner; /* its tile, AF_NONE */
        uint32_t fixed;      /* axes bits that do not change between tiles of a block */
        bool may_hoist;
        struct stmt_list lists[N_STAGES][3]; /* per stage: loads, compute, stores */
        uint32_t *node_value;                /* per node: its value in this context, or AF_NONE */
        uint32_t *node_wide; /* fast, 16-bit floats: the value as float32, unrounded, or AF_NONE; node_value is made of it when asked for */
        uint32_t op_node;    /* for comments */
        uint32_t entries;    /* of the bins; AF_NONE */
        uint32_t dup_x;      /* what a program's constant stands for: the count of a mean, where that depends on symbols; 0 */
};

/* A new value; id in *ret. */
int lower_value(struct lower *l, enum af_dtype dtype, enum af_hold hold, uint32_t axes, uint32_t *ret) AF_WARN_UNUSED;
enum af_hold lower_hold(const struct lower *l, uint32_t axes);
/* Appends to the prologue where dst is hoisted, else to the stage. */
int lower_emit(struct lower *l, struct af_kstmt stmt) AF_WARN_UNUSED;
int lower_prim(struct lower *l, struct af_prim_ins ins, enum af_hold hold, uint32_t axes, uint32_t a, uint32_t b, uint32_t c,
               uint32_t *ret) AF_WARN_UNUSED;
/* v at hold, bits unchanged: v itself where it is held so already. */
int lower_expand(struct lower *l, uint32_t v, enum af_hold hold, uint32_t *ret) AF_WARN_UNUSED;
int lower_to_mask(struct lower *l, uint32_t v, uint32_t *ret) AF_WARN_UNUSED;
int lower_to_bytes(struct lower *l, uint32_t v, uint32_t *ret) AF_WARN_UNUSED;
/* Every element v = bits of dtype, which a program would give: for constants. */
int lower_constant(struct lower *l, enum af_dtype dtype, uint64_t bits, uint32_t *ret) AF_WARN_UNUSED;
int lower_load(struct lower *l, enum af_dtype dtype, const struct af_access *access, uint32_t graph_value, uint32_t *ret) AF_WARN_UNUSED;
int lower_store(struct lower *l, uint32_t v, const struct af_access *access, uint32_t axes) AF_WARN_UNUSED;
/* Runs s->prog on values (AF_NONE: an immediate) at a common hold. */
int lower_program(struct lower *l, const struct af_prog *prog, const uint32_t *operands, enum af_hold hold, uint32_t axes,
                  uint32_t *ret) AF_WARN_UNUSED;

/* lower_resident.c: a combining statement, and chunk results of a run of n. */
struct af_kstmt lower_combine(enum af_kstmt_kind kind, const struct reduction *r, uint32_t dst, uint32_t a, uint32_t b);
int lower_chunks(struct lower *l, enum af_dtype acc, uint32_t axes, int64_t n, uint32_t *ret) AF_WARN_UNUSED;
/* A reduction whose axis the tile holds whole: from v, its operand after `pre`, to one value per row, per column or per tile. */
int lower_resident(struct lower *l, const struct reduction *r, uint32_t v, uint32_t *ret) AF_WARN_UNUSED;
/* Bits of the pass for bits of the space. */
uint32_t lower_axes_of(const struct lower *l, uint32_t space_axes);

#define RAW_STEP_UNKNOWN INT64_MAX
/* lower_raw.c: whether a tile of this hold does not lie row by row in memory, and how it lies instead; its step is RAW_STEP_UNKNOWN where
 * that depends on symbols. */
bool lower_lies(const struct lower *l, const struct af_access *access, enum af_hold hold, uint32_t size, struct af_raw *ret_raw);
/* The hold that decides whether a value may live in the prologue: a RAW value goes with its tile. */
enum af_hold lower_raw_hold(const struct af_kvalue *v);
/* A RAW value as a tile. */
int lower_unravel(struct lower *l, uint32_t v, uint32_t *ret) AF_WARN_UNUSED;
/* A FULL value as lines of memory. */
int lower_ravel(struct lower *l, uint32_t v, const struct af_raw *raw, uint32_t *ret) AF_WARN_UNUSED;
/* v of one type as another of the same hold. */
int lower_cast(struct lower *l, uint32_t v, enum af_dtype from, enum af_dtype to, enum af_round mode, uint32_t *ret) AF_WARN_UNUSED;

/* lower_index.c: node i, an iota. */
int lower_iota(struct lower *l, uint32_t i) AF_WARN_UNUSED;

/* Node i, a gather. */
int lower_gather(struct lower *l, uint32_t i) AF_WARN_UNUSED;
/* In a pass with bins: what lies at the places that the tile's rows have in memory; graph value d. */
int lower_load_binned(struct lower *l, enum af_dtype d, const struct af_access *access, uint32_t *ret) AF_WARN_UNUSED;
/* The entries of the bins that are the tile's rows. */
int lower_entries(struct lower *l, uint32_t *ret) AF_WARN_UNUSED;
bool lower_same_access(const struct af_access *a, const struct af_access *b);

/* scan.c: the part's running sum. */
int lower_scan(struct lower *l) AF_WARN_UNUSED;

/* lower_nodes.c: the group's nodes that `roots` (per node) need, in this context; late: those behind the reduction. */
int lower_nodes(struct lower *l, bool *needed, bool late) AF_WARN_UNUSED;
int lower_use(struct lower *l, uint32_t use, uint32_t *ret) AF_WARN_UNUSED;
/* What member i, a reduction, combines: its operand after the `pre` program, at the hold of these axes; AF_NONE: as it is held. */
int lower_reduce_input(struct lower *l, uint32_t i, uint32_t axes, uint32_t *ret) AF_WARN_UNUSED;
/* The value of member i in its own dtype; AF_NONE where it is not here. */
int lower_node_value(struct lower *l, uint32_t i, uint32_t *ret) AF_WARN_UNUSED;
void lower_mark(const struct sched *s, bool *needed, bool late);
int lower_access(const struct lower *l, const struct af_use *use, uint32_t arg, struct af_access *ret) AF_WARN_UNUSED;
