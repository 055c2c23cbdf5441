/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the schedule. A kernel is a list of parts (split.c): sets of its nodes that share axes and fit one another; what one part computes
 * and another reads lies in memory between them (held), behind a meeting of all cores. A part is a list of passes: copies that make inputs
 * dense, then the nodes themselves (elementwise), or one pass per step of a reduction across tiles: each combines one axis (or the elements
 * of one chunk of it) and hands partial results to the next through the workspace; the last one also runs what follows the reduction. Last
 * come copies that spread outputs out to strides of their own. A reduction whose axis lies whole in a tile is a statement within a pass
 * (resident): what follows may read it back over that axis.
 */
#pragma once

#include "compiler/schedule/axes.h"

enum pass_kind { PASS_PACK, PASS_UNPACK, PASS_BIN, PASS_GROUP, PASS_ELEMENTWISE, PASS_LAST, PASS_ROWS, PASS_SCAN };
struct pass_axis {
        int64_t extent;
        uint32_t x;          /* of the extent, as size.h has it */
        int64_t most;        /* greatest extent there can be */
        uint32_t space_axis; /* of the group; AF_NONE: made by chunking or a unit axis */
        int64_t step;        /* elements of the space axis per element of this one */
        bool reduced;
};
struct pass {
        enum pass_kind kind;
        struct pass_axis axes[AF_KERNEL_MAX_AXES];
        uint32_t n_axes;
        uint32_t row, inner; /* axes that a tile spans, or AF_NONE */
        uint32_t whole;      /* bits: row and inner axis that a tile must hold whole, for resident reductions */
        uint32_t over;       /* LAST, ROWS: the axis that this pass combines; SCAN: runs along */
        uint32_t chunk_axis; /* LAST, ROWS: `over` is the elements of this axis' chunks; AF_NONE: the whole run */
        int64_t total;       /* elements of the run, over all chunks */
        uint32_t total_x;
        int64_t total_most;
        bool from_group;           /* reads the group's values; else the regions of the pass before */
        bool to_group;             /* ends with the group's outputs; else writes regions */
        bool binned;               /* ELEMENTWISE: rows come in the order of s->bins */
        const struct af_use *pack; /* PACK, UNPACK */
        uint32_t regions; /* PACK: region written; UNPACK: region read; reductions: first region of the partials read (one per reduction) */
        uint32_t to_regions; /* first region of the partials written */
};

struct reduction {
        uint32_t node;          /* position */
        bool real;              /* combines more than one element */
        bool cross;             /* across tiles, in the plan at hand: has partials, in the order of these; else resident */
        uint32_t axes, reduced; /* bits of the space: of its operand */
        uint32_t count_x;       /* mean: elements combined into one, where that depends on symbols */
        struct af_reduce_plan plan;
};

struct running { /* a running sum: axes of operand and result, the summed one last but one */
        int64_t extent[AF_KERNEL_MAX_AXES], in[AF_KERNEL_MAX_AXES], out[AF_KERNEL_MAX_AXES], in_offset; /* elements; sizes (size.h) */
        uint32_t n_axes, over;
        enum af_dtype acc;
        bool back, exclusive, empty;
};

#define PLACE_REGION 0x80000000u /* a place: number of an argument, or with this bit of a region of the workspace */
struct held {                    /* a value that an earlier part left in memory */
        uint32_t value, place;
};
struct sched { /* one part */
        const struct af_graph *g;
        const struct af_soc *soc;
        struct af_arena *arena;
        struct af_arena scratch; /* of one allocation */
        struct af_members m;
        struct af_space sp;
        const char **why;
        enum af_packing packing;
        const struct af_store *stores;
        const uint32_t *store_place;
        uint32_t n_stores;
        const struct held *held;
        uint32_t n_held;
        struct reduction *reductions;
        uint32_t n_reductions, n_real, n_cross;
        uint32_t *reduction_of; /* per node, or AF_NONE */
        struct running *scan;   /* the one node is a running sum; else NULL */
        bool *late;             /* per node: reads a reduction across tiles, or is one */
        struct af_karg *args;   /* of the kernel */
        uint32_t n_pointers;    /* inputs and outputs */
        uint32_t n_args;        /* and the workspace, where there are regions */
        struct af_region *regions;
        uint32_t n_regions, cap_regions;
        uint32_t n_kept_regions; /* of other parts: plans add theirs behind them */
        uint32_t *pack_region;   /* per use: region of its packed copy */
        bool exhaustive;         /* tries every tile */
        bool binned;             /* the plan at hand puts rows in the order of an index (bins; its regions as numbers of regions) */
        struct af_bins bins;
        bool started;        /* phases before have paid for the start of the pipes */
        struct af_prog prog; /* scratch: one expansion at a time */
        struct af_reduce_plan plan;
};

/* How one phase is lowered; the search for tiles tries several. */
struct variant {
        bool inner_whole;  /* the tile holds all of the inner axis */
        bool hoist_expand; /* expanded rows are kept for the whole block */
};

struct part_plan { /* a part, tiled */
        struct af_phase *phases;
        uint32_t n_phases;
        struct af_region *regions; /* those of other parts first */
        uint32_t n_regions;
        uint64_t cycles, bytes;
};
/* part.c. Filled in before: g, soc, arena, scratch, m, why, stores, held, args, n_pointers, kept regions. 0, -ENOMEM, UNFIT. */
int sched_part_init(struct sched *s) AF_WARN_UNUSED;
/* Tries every plan, and keeps the cheapest. */
int sched_part_build(struct sched *s, struct part_plan *ret) AF_WARN_UNUSED;
/* Whether some plan can be lowered and fits with its smallest tile. */
int sched_part_check(struct sched *s) AF_WARN_UNUSED;

/* The argument that holds these regions. n > 0. */
struct af_karg sched_workspace(const struct af_region *regions, uint32_t n);

/* A kernel to be: its nodes, and the pointers that it gets. */
struct whole {
        const struct af_graph *g;
        const struct af_soc *soc;
        struct af_arena *arena;
        struct af_members m;
        const uint32_t *outputs;
        uint32_t n_outputs;
        struct af_store *stores; /* the outputs, concatenations piece by piece */
        uint32_t *store_place, n_stores, cap_stores, cap_places;
        struct af_karg *args; /* inputs, then outputs */
        uint32_t n_pointers, n_inputs;
        const char **why;
        bool exhaustive; /* tries every tile */
        struct sched *s; /* of the part at hand */
};
struct part {
        const uint32_t *nodes, *store_place;
        const struct af_store *stores;
        uint32_t n_nodes, n_stores;
        const struct held *held; /* what it reads of earlier parts */
        uint32_t n_held;
        uint32_t behind; /* latest part that it reads something of; AF_NONE */
};
/* split.c: all of it as one part where that can be, else as few as a greedy look finds. 0, -ENOMEM, UNFIT. */
int sched_split(struct whole *w, struct part **ret_parts, uint32_t *ret_n, struct af_region **ret_regions,
                uint32_t *ret_n_regions) AF_WARN_UNUSED;
/* w->s for a part, its facts collected. Regions: those kept so far. 0, -ENOMEM, UNFIT. */
int sched_open_part(struct whole *w, const struct part *p, const struct af_region *regions, uint32_t n_regions) AF_WARN_UNUSED;
/* build.c: the pointers of a kernel. 0, -ENOMEM, UNFIT. */
int sched_whole_init(struct whole *w, const uint32_t *nodes, uint32_t n_nodes, const uint32_t *inputs, uint32_t n_inputs,
                     const uint32_t *outputs, uint32_t n_outputs) AF_WARN_UNUSED;

/* Number of an argument (regions behind them). */
uint32_t sched_arg(const struct sched *s, uint32_t place);
/* Where a value that no member makes lies: number of an argument; AF_NONE. */
uint32_t sched_input_arg(const struct sched *s, uint32_t value);
/* The reduction across tiles at a node's position, or NULL. */
const struct reduction *sched_cross(const struct sched *s, uint32_t position);
/* Whether float rounding makes the order of combining matter. */
bool sched_ordered(const struct reduction *r);
int sched_unfit(struct sched *s, const char *why);
/* elements (size.h) of dtype behind `last` (NULL: at the start). False where a size does not fit 64 bits. */
bool sched_set_region(const struct af_graph *g, struct af_region *r, enum af_dtype dtype, int64_t elements, const struct af_region *last);
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

/* layout.c: which phases share queues and buffers, and these. */
void sched_share_ub(struct af_kernel *k, const struct af_soc *soc);
/* scan.c: whether the part is one running sum; its axes; its pass. 0, -ENOMEM, UNFIT. */
bool sched_is_scan(const struct sched *s);
int sched_scan_init(struct sched *s) AF_WARN_UNUSED;
void sched_scan_plan(const struct sched *s, struct pass *ret);

/*
 * bins.c: whether rows may come in the order of an index that some gather reads, and how; UNFIT: no, or uniform indices would not repeat
 * enough. 0 or UNFIT.
 */
int sched_bins_find(struct sched *s, struct af_bins *ret) AF_WARN_UNUSED;
/* Whether a use is the index that the rows go by, and picks from as many. */
bool sched_bins_index(const struct sched *s, const struct af_use *index, int64_t extent);
/* Rows of extent that n even draws hit. */
double sched_bins_distinct(int64_t extent, int64_t n);
/* The phase of a BIN or GROUP pass. */
void sched_bins_phase(const struct sched *s, const struct pass *p, struct af_phase *ret_phase);
/* Whether to take a plan with bins. */
bool sched_bins_better(uint64_t cycles, uint64_t bytes, uint64_t than_cycles, uint64_t than_bytes);

/* lower.c: pass -> phase without tile sizes. 0, -ENOMEM, UNFIT. */
int sched_lower(struct sched *s, const struct pass *p, struct variant v, struct af_phase *ret_phase) AF_WARN_UNUSED;
/* ub.c: bytes of every value for the tile that the stages state, places and offsets; fills the phase's byte counts. 0 or -ENOMEM. */
int sched_allocate(struct sched *s, struct af_phase *phase) AF_WARN_UNUSED;
/*
 * Whether to take the first of two ways to do the same: cycles, and bytes through HBM, for which other kernels wait too. Bytes beyond the
 * other's count four times their share, from half a per cent on. Quick figures.
 */
bool sched_better(uint64_t cycles, uint64_t bytes, uint64_t than_cycles, uint64_t than_bytes);
/* timeline.c: hbm_bytes and cycles of a tiled and allocated phase on blocks cores, as if it were the only one; quick, near enough to
 * choose. */
void sched_cost(const struct sched *s, struct af_phase *phase, uint32_t blocks);
/* Exact bytes and cycles of a kernel and its phases, as the checked twin has them, where the turns are not too many. 0 or -ENOMEM. */
int sched_timeline(struct sched *s, struct af_kernel *k) AF_WARN_UNUSED;
/* tile.c: lowers, searches for the cheapest tile that fits. 0, -ENOMEM, UNFIT. */
int sched_tile(struct sched *s, const struct pass *p, struct af_phase *ret_phase) AF_WARN_UNUSED;
/* Lowers, and checks that the smallest tile fits. */
int sched_least(struct sched *s, const struct pass *p) AF_WARN_UNUSED;
/* Sets tile sizes of the row and inner axes and all that follows from them but UB. */
void sched_set_tile(struct af_phase *phase, const struct pass *p, int64_t rows, int64_t inner);
