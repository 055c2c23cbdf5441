/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the schedule. A part of a kernel is a list of passes: copies that make inputs dense, then the nodes themselves (elementwise), or
 * one pass per step of a reduction across tiles: each combines one axis (or the elements of one chunk of it) and hands partial results to
 * the next through the workspace; the last one also runs what follows the reduction. Last come copies that spread outputs out to strides
 * of their own. A reduction whose axis lies whole in a tile is a statement within a pass (resident): what follows may read it back over
 * that axis.
 */
#pragma once

#include "compiler/schedule/axes.h"

enum pass_kind { PASS_PACK, PASS_UNPACK, PASS_ELEMENTWISE, PASS_LAST, PASS_ROWS };
struct pass_axis {
        int64_t extent;
        uint32_t space_axis; /* of the group; AF_NONE: made by chunking or a unit axis */
        int64_t step;        /* elements of the space axis per element of this one */
        bool reduced;
};
struct pass {
        enum pass_kind kind;
        struct pass_axis axes[AF_KERNEL_MAX_AXES];
        uint32_t n_axes;
        uint32_t row, inner;       /* axes that a tile spans, or AF_NONE */
        uint32_t whole;            /* bits: row and inner axis that a tile must hold whole, for resident reductions */
        uint32_t over;             /* LAST, ROWS: the axis that this pass combines */
        uint32_t chunk_axis;       /* LAST, ROWS: `over` is the elements of this axis' chunks; AF_NONE: the whole run */
        int64_t total;             /* elements of the run, over all chunks */
        bool from_group;           /* reads the group's values; else the regions of the pass before */
        bool to_group;             /* ends with the group's outputs; else writes regions */
        const struct af_use *pack; /* PACK, UNPACK */
        uint32_t regions; /* PACK: region written; UNPACK: region read; reductions: first region of the partials read (one per reduction) */
        uint32_t to_regions; /* first region of the partials written */
};

struct reduction {
        uint32_t node;          /* position */
        bool real;              /* combines more than one element */
        bool cross;             /* across tiles, in the plan at hand: has partials, in the order of these; else resident */
        uint32_t axes, reduced; /* bits of the space: of its operand */
        struct af_reduce_plan plan;
};

struct sched {
        const struct af_graph *g;
        const struct af_soc *soc;
        struct af_arena *arena;
        struct af_arena scratch; /* of one allocation */
        struct af_members m;
        struct af_space sp;
        const char **why;
        const uint32_t *stores;
        uint32_t n_stores;
        struct reduction *reductions;
        uint32_t n_reductions, n_real, n_cross;
        uint32_t *reduction_of; /* per node, or AF_NONE */
        bool *late;             /* per node: reads a reduction across tiles, or is one */
        struct af_karg *args;
        uint32_t n_args, workspace_arg;
        struct af_region *regions;
        uint32_t n_regions, cap_regions;
        uint32_t *pack_region; /* per use: region of its packed copy */
        struct af_prog prog;   /* scratch: one expansion at a time */
        struct af_reduce_plan plan;
};

/* How one phase is lowered; the search for tiles tries several. */
struct variant {
        bool inner_whole;  /* the tile holds all of the inner axis */
        bool hoist_expand; /* expanded rows are kept for the whole block */
};

/* The reduction across tiles at a node's position, or NULL. */
const struct reduction *sched_cross(const struct sched *s, uint32_t position);
/* Whether float rounding makes the order of combining matter. */
bool sched_ordered(const struct reduction *r);
int sched_unfit(struct sched *s, const char *why);
/* Region of bytes at the next free place of the workspace. 0 or -ENOMEM. */
int sched_add_region(struct sched *s, enum af_dtype dtype, int64_t elements, uint32_t *ret_region) AF_WARN_UNUSED;

#define MAX_PASSES 96
/*
 * plan.c: the passes of a part; packs first. CROSS + 0: each reduced run in one pass where that can be; CROSS + k: the first run is cut
 * into chunks (k levels of rows, or chunks of 1,024) that are spread over the cores. RESIDENT: all reductions within a tile. MIXED + k:
 * those over the innermost axis within a tile, those over rows across tiles, cut k levels of rows deep. *ret_n 0: the choice says nothing
 * new. 0, -ENOMEM, UNFIT.
 */
enum { CHOICE_RESIDENT, CHOICE_CROSS, CHOICE_MIXED = CHOICE_CROSS + 4, SCHED_CHOICES = CHOICE_MIXED + 2 };
int sched_plan(struct sched *s, uint32_t choice, struct pass *passes, uint32_t *ret_n) AF_WARN_UNUSED;
/* sides.c: which reductions run across tiles under a choice, and which nodes stand behind them. 0 or UNFIT: the choice is none. */
int sched_sides(struct sched *s, uint32_t choice) AF_WARN_UNUSED;

/* lower.c: pass -> phase without tile sizes. 0, -ENOMEM, UNFIT. */
int sched_lower(struct sched *s, const struct pass *p, struct variant v, struct af_phase *ret_phase) AF_WARN_UNUSED;
/* ub.c: bytes of every value for the tile that the stages state, places and offsets; fills the phase's byte counts. 0 or -ENOMEM. */
int sched_allocate(struct sched *s, struct af_phase *phase) AF_WARN_UNUSED;
/* cost.c: hbm_bytes and cycles of a tiled and allocated phase on blocks cores. */
void sched_cost(const struct sched *s, struct af_phase *phase, uint32_t blocks);
/* bytes.c: hbm_bytes counted transfer by transfer, where they are not too many. */
void sched_count_bytes(struct af_phase *phase, uint32_t block_dim);
/* tile.c: lowers, searches for the cheapest tile that fits. 0, -ENOMEM, UNFIT. */
int sched_tile(struct sched *s, const struct pass *p, struct af_phase *ret_phase) AF_WARN_UNUSED;
/* Lowers, and checks that the smallest tile fits. */
int sched_least(struct sched *s, const struct pass *p) AF_WARN_UNUSED;
/* build.c: what af_schedule_fusable asks. 0, -ENOMEM, UNFIT. */
int sched_check(struct sched *s, const uint32_t *inputs, uint32_t n_inputs) AF_WARN_UNUSED;
/* Sets tile sizes of the row and inner axes and all that follows from them but UB. */
void sched_set_tile(struct af_phase *phase, const struct pass *p, int64_t rows, int64_t inner);
uint32_t sched_blocks(const struct sched *s, const struct af_phase *phase);
