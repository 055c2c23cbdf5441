/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop tree: one fused kernel between the group (what to compute) and the source (how it is written). Built by af_schedule_build,
 * tiled by af_schedule_tile, walked by the emitter.
 *
 *   kernel = phases (SyncAll between them)
 *   phase  = a block loop over the flattened outer tiles, holding a tree of tile loops and statements
 *   access = affine map over the phase's axes + domain interval (tail), in elements of a kernel argument
 *   value  = a tile in UB: axes it varies over, dtype, row pitch, how it is held
 */
#pragma once

#include "compiler/fusion/fusion.h"
#include "compiler/graph/graph.h"
#include "runtime/soc.h"

#define AF_KERNEL_MAX_AXES 8
#define AF_KERNEL_MAX_ARGS 64

enum af_axis_role { AF_AXIS_OUTER /* one index per tile */, AF_AXIS_SPLIT /* tiled by `tile` */, AF_AXIS_INNER /* whole in a tile */ };
struct af_axis {
        int64_t extent;
        int64_t tile;           /* elements of this axis in a full tile: 1, a factor, or extent */
        enum af_axis_role role;
        bool reduced;
};

enum af_karg_kind { AF_KARG_INPUT, AF_KARG_OUTPUT, AF_KARG_WORKSPACE };
struct af_karg { /* a GM pointer of the entry, in order */
        enum af_karg_kind kind;
        enum af_dtype dtype;
        uint32_t value;          /* graph value, or AF_NONE */
        uint64_t workspace_bytes;
        int64_t offset;          /* elements from the pointer to the first element */
        uint64_t range_begin, range_end; /* bytes touched, relative to the pointer */
};

/* How a value sits in UB. */
enum af_hold { AF_HOLD_FULL /* every axis of the tile at the phase's pitch */, AF_HOLD_MASK /* as FULL, a bit per element */,
               AF_HOLD_ROW /* varies over the inner axis only: one row */, AF_HOLD_COLUMN /* one element per row, contiguous */,
               AF_HOLD_LANES /* 64 running lanes per row */ };
struct af_kvalue {
        enum af_dtype dtype;
        enum af_hold hold;
        uint32_t axes;      /* bit per axis it varies over */
        uint32_t bytes;     /* UB bytes for a full tile, multiple of 256 */
        uint32_t place;     /* 0 VECCALC pool, 1 load queue, 2 store queue, 3 resident (loaded once per block) */
        uint32_t ub_offset; /* within its place */
        uint32_t graph_value; /* or AF_NONE */
};

enum af_kstmt_kind {
        AF_KSTMT_LOAD,      /* arg -> value (access) */
        AF_KSTMT_STORE,     /* value -> arg (access) */
        AF_KSTMT_PRIM,      /* one primitive on tiles: ins */
        AF_KSTMT_BROADCAST, /* ROW or COLUMN -> FULL, bits unchanged */
        AF_KSTMT_TO_MASK,   /* uint8 -> bit mask */
        AF_KSTMT_FROM_MASK, /* bit mask -> uint8 0/1 */
        AF_KSTMT_FILL,      /* value := imm (identity of a running reduction) */
        AF_KSTMT_REDUCE_LANES, /* combine a tile into running lanes or rows (DESIGN 4's order) */
        AF_KSTMT_REDUCE_TREE,  /* lanes -> one value per row */
        AF_KSTMT_SYNC_ALL,
};
struct af_access {
        uint32_t arg;
        int64_t offset;                       /* elements */
        int64_t strides[AF_KERNEL_MAX_AXES];  /* elements per step of each axis; 0: does not vary */
};
struct af_kstmt {
        enum af_kstmt_kind kind;
        uint32_t dst, src[3]; /* values, or AF_NONE */
        struct af_access access;
        struct af_prim_ins ins;  /* PRIM; src and result numbers there are unused */
        enum af_combine combine; /* REDUCE_* */
        uint64_t imm;            /* FILL */
        uint32_t op_node;        /* graph node it comes from, for comments; AF_NONE */
};
enum af_knode_kind { AF_KNODE_LOOP, AF_KNODE_STMT };
struct af_knode {
        enum af_knode_kind kind;
        uint32_t axis;                 /* LOOP: steps over this axis by its tile */
        uint32_t first_child, n_children; /* LOOP: into children[] */
        uint32_t stmt;                 /* STMT */
};
struct af_phase {
        struct af_axis axes[AF_KERNEL_MAX_AXES]; /* outermost first, merged */
        uint32_t n_axes;
        uint32_t pitch;      /* elements between rows of a FULL tile */
        uint32_t block_axes; /* bits: axes whose tiles are spread over cores, flattened outermost first */
        uint32_t prologue;   /* knode (LOOP without axis: AF_NONE): once per block: resident loads */
        uint32_t root;       /* knode: the body of one block tile */
        uint32_t epilogue;
        int64_t n_tiles;     /* product over block axes of ceil(extent / tile) */
};
struct af_kernel {
        const struct af_graph *g;
        const struct af_group *group;
        struct af_karg *args;   uint32_t n_args;
        struct af_kvalue *values; uint32_t n_values;
        struct af_kstmt *stmts; uint32_t n_stmts;
        struct af_knode *nodes; uint32_t n_nodes;
        uint32_t *children;     uint32_t n_children;
        struct af_phase *phases; uint32_t n_phases;
        uint32_t block_dim;
        uint32_t buffers;       /* 1 or 2 per queue */
        uint32_t load_bytes, store_bytes, calc_bytes, resident_bytes; /* one buffer each; UB use = buffers * (load + store) + calc + resident */
        uint64_t workspace_bytes;
        bool needs_sync_all, workspace_zeroed;
        uint64_t hbm_bytes, modelled_cycles;
};

enum { AF_SCHEDULE_E_UNFIT = 1 /* *ret_why */ };
/*
 * Group -> tiled loop tree, within the SoC's limits; retiled, split or turned to passes where needed: no shape is refused for size.
 * All memory from g->arena. 0, -ENOMEM, or UNFIT: nothing can be generated for this set of nodes (layout, dtype, op class).
 */
int af_schedule_build(const struct af_graph *g, const struct af_group *group, const struct af_soc *soc, struct af_kernel **ret_kernel, const char **ret_why) AF_WARN_UNUSED;
/* For fusion (af_fusable_fn; userdata is the const struct af_soc *): whether af_schedule_build would succeed; cheap: axes, dtypes, limits, no tiling. */
bool af_schedule_fusable(void *soc, const struct af_graph *g, const uint32_t *nodes, uint32_t n_nodes, const char **ret_why);
/* The tree as text, for --dump and golden tests. */
void af_kernel_print(const struct af_kernel *k, struct af_buf *buf);
