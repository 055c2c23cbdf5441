/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop tree: one fused kernel between the group (what to compute) and the source (how it is written). Built and tiled by
 * af_schedule_build, walked by the emitter.
 *
 *   kernel = phases (SyncAll between them)
 *   phase  = axes + a tree: a block loop over the flattened block tiles, holding tile loops (LOOP axes) and stages
 *   stage  = one turn of load, compute, store on one tile shape (rows x inner)
 *   access = affine map over the phase's axes, in elements of a kernel argument or of a region of the workspace
 *   value  = a tile in UB: axes that it varies over, dtype, and how it is held
 */
#pragma once

#include "compiler/fusion/fusion.h"
#include "compiler/graph/graph.h"
#include "compiler/schedule/size.h"
#include "runtime/soc.h"

#define AF_KERNEL_MAX_AXES 20
#define AF_KERNEL_MAX_ARGS 64
#define AF_KERNEL_ROUND    128u  /* calls in count form run over a multiple of this many elements: whole repeats of masks */
#define AF_REDUCE_CHUNK    1024u /* elements of a chunk where the last axis is reduced */
#define AF_REDUCE_LANES    64u   /* lanes of a chunk */
#define AF_REDUCE_ROWS     32u   /* rows of a chunk elsewhere */

enum af_axis_role {
        AF_AXIS_BLOCK, /* its tiles are part of the flattened block tiles */
        AF_AXIS_LOOP,  /* its tiles are a loop within one block tile */
        AF_AXIS_WHOLE, /* one tile holds all of it */
};
struct af_axis {
        int64_t extent;
        int64_t tile; /* elements of this axis in a full tile, 1..extent; BLOCK and LOOP */
        enum af_axis_role role;
        bool reduced;
        /* A chunked axis is two: chunk (outer) and element. The element axis of the last chunk may be short. */
        uint32_t chunk_axis;        /* element axis: its chunk axis; else AF_NONE */
        int64_t total;              /* element axis: elements over all chunks */
        uint32_t extent_x, total_x; /* with symbols (size.h): extent and total are those at the hints */
        int64_t most;               /* greatest extent there can be */
        bool back;                  /* LOOP: from the last tile to the first */
        bool ragged_tail;           /* chunk axis: the short last chunk is a tile of its own */
};

enum af_karg_kind { AF_KARG_INPUT, AF_KARG_OUTPUT, AF_KARG_WORKSPACE };
struct af_karg { /* a GM pointer of the entry, in order */
        enum af_karg_kind kind;
        enum af_dtype dtype;
        uint32_t value;                  /* graph value, or AF_NONE */
        uint64_t workspace_bytes;        /* WORKSPACE */
        uint64_t range_begin, range_end; /* bytes touched, relative to the pointer */
};
struct af_region { /* a tensor in the workspace */
        enum af_dtype dtype;
        uint64_t offset, bytes; /* offset a multiple of 512 */
        uint32_t offset_x, bytes_x;
};

enum af_hold {
        AF_HOLD_FULL,    /* rows x inner, rows at the stage's pitch; inner alone where the stage has no row axis */
        AF_HOLD_ROW,     /* varies over the inner axis only: one row */
        AF_HOLD_COLUMN,  /* varies over the row axis only: one element per row, contiguous */
        AF_HOLD_ONE,     /* one element */
        AF_HOLD_LANES,   /* rows x 64 running lanes */
        AF_HOLD_CHUNKS,  /* rows x chunk results: one per 1,024 elements of the axis that is combined */
        AF_HOLD_LEVELS,  /* running rows, one per level of the recursion: levels x inner */
        AF_HOLD_BLOCKS,  /* scratch: a 32-byte block per row */
        AF_HOLD_SCRATCH, /* scratch of a lane tree: as LANES */
        AF_HOLD_RAW,     /* as it lies in memory: raw */
        AF_HOLD_TABLE,   /* byte offsets for a GATHER between a RAW value and a tile, uint32 */
};
/* How a tile lies in memory, where its rows are not contiguous there: lines of elements, each from a 32-byte block on in UB. */
struct af_raw {
        uint32_t line;   /* axis along a line */
        uint32_t lines;  /* axis that counts the lines; AF_NONE: one */
        int64_t step;    /* elements of memory from one to the next along the line; negative: the line starts with the last one */
        bool apart;      /* what lies between is not loaded: each element has a 32-byte block of its own */
        uint32_t size;   /* bytes of an element in memory */
        enum af_hold to; /* the tile's hold */
        bool stored;     /* the tile is gathered into lines, to be stored; else the lines into the tile */
};
enum af_place { AF_PLACE_POOL, AF_PLACE_LOAD, AF_PLACE_STORE, AF_PLACE_RESIDENT };
struct af_kvalue {
        enum af_dtype dtype; /* as written; a reader may see the same bits as another type of the size. MASK: a bit per element, LSB first.
                                bool is uint8 */
        enum af_hold hold;
        uint32_t stage; /* whose tile shape it has */
        uint32_t axes;  /* bit per axis of the phase that it varies over */
        uint32_t bytes; /* UB bytes for a full tile, multiple of 256 (scratch for the wildest reader included) */
        enum af_place place;
        uint32_t offset;      /* bytes within its place */
        uint32_t graph_value; /* or AF_NONE */
        uint32_t columns;     /* CHUNKS: results per row */
        struct af_raw raw;    /* RAW, TABLE */
        uint32_t size;        /* TABLE: bytes of the elements that are gathered: 2, 4 or 8 (then two offsets each) */
};

enum af_kstmt_kind {
        AF_KSTMT_LOAD,       /* access -> dst */
        AF_KSTMT_STORE,      /* src[0] -> access; src[1] entries of bins: each row goes to its place, in steps of the row axis' stride */
        AF_KSTMT_PRIM,       /* ins: dst from src[] */
        AF_KSTMT_COPY,       /* bits of src[0], same hold */
        AF_KSTMT_EXPAND,     /* src[0] ROW, COLUMN or ONE -> dst, bits unchanged; src[1]: BLOCKS scratch or AF_NONE */
        AF_KSTMT_FILL,       /* every element of dst := imm */
        AF_KSTMT_ROW_LANES,  /* dst LANES: combine with the columns of src[0], 64 at a time. src[0] FULL or CHUNKS: row by row; ROW, COLUMN:
                                all of it as one row */
        AF_KSTMT_ROW_CHUNKS, /* dst CHUNKS: the sum of each 1,024 columns of src[0] FULL, ROW or COLUMN; src[1] LANES: scratch */
        AF_KSTMT_LANE_TREE,  /* dst: one value per row (ONE: one value) from src[0] LANES, adjacent pairs; src[1]: SCRATCH or AF_NONE.
                                dst CHUNKS: column = step of the LOOP axis */
        AF_KSTMT_ROW_LEVELS, /* dst LEVELS: combine with the rows of src[0], chunks of 32 */
        AF_KSTMT_LEVEL_TOP,  /* dst: the result of src[0] LEVELS */
        AF_KSTMT_TABLE,      /* dst TABLE */
        AF_KSTMT_FETCH,  /* dst from memory by the index src[0], int32 or int64: access + index * pick.stride; negative ones count from the
                            end, beyond it is 0 */
        AF_KSTMT_INDEX,  /* dst int32 ROW, COLUMN, ONE or FULL without a row axis: the access' position itself */
        AF_KSTMT_SCAN,   /* dst FULL: running sums of src[0] FULL from row to row, on from src[1] ROW, which goes on to the next tile */
        AF_KSTMT_GATHER, /* dst from src[0] by the offsets src[1]; one of dst and src[0] is RAW */
};
struct af_access {
        uint32_t arg;                        /* below n_args: an argument; else a region of the workspace */
        int64_t offset;                      /* elements */
        int64_t strides[AF_KERNEL_MAX_AXES]; /* elements per step of each axis; 0: does not vary */
        uint32_t offset_x, strides_x[AF_KERNEL_MAX_AXES];
};
enum af_index_of { AF_INDEX_ITSELF, AF_INDEX_ROW, AF_INDEX_PLACE };
struct af_pick {
        int64_t stride, extent; /* elements of memory per step of the index; steps there are */
        uint32_t stride_x, extent_x;
        bool runs;             /* the index is one along what is contiguous: a transfer per row; else element by element */
        bool queued;           /* the index is loaded, not computed: the rows come into the load buffer right behind it */
        enum af_index_of word; /* the index is entries of bins, int64: which half of them */
        bool once; /* queued; rows of one index stand together: what is like the row before is copied in UB, not read again. src[1]: the
                      last row of the tile before, where a tile holds all of the inner axis */
        double distinct; /* once: rows of memory that all of it takes, as indices go that are spread evenly */
};
struct af_kstmt {
        enum af_kstmt_kind kind;
        uint32_t stage;
        uint32_t dst, src[3]; /* values, or AF_NONE */
        struct af_access access;
        struct af_prim_ins ins;  /* PRIM; its value numbers are unused. SELECT with src[2] AF_NONE: against the scalar imm */
        enum af_combine combine; /* reductions */
        bool flat;               /* ROW_LANES, ROW_CHUNKS: all rows of src[0] FULL as one row: they have no gaps between them */
        bool back, exclusive;    /* SCAN: from the last row to the first; without the row's own elements */
        struct af_pick pick;     /* FETCH */
        uint64_t imm;            /* FILL; ROW_LEVELS: identity; bits of the dtype */
        uint32_t imm_x;          /* PRIM DUP of a float: the number is this size; 0: ins.imm */
        uint32_t op_node;        /* graph node that it comes from, for comments; AF_NONE */
};

struct af_stage { /* statements in order: loads, then compute, then stores */
        uint32_t first_stmt, n_stmts;
        uint32_t row_axis, inner_axis; /* AF_NONE where the tile has none */
        uint32_t rows, inner, pitch;   /* of a full tile, elements */
        uint32_t load_bytes,
                store_bytes; /* of one buffer of its queues: each stage has its own, so that turns of other stages do not hold them */
        uint32_t load_queue, store_queue; /* which of the layout's these are */
        bool prologue;                    /* once per block, before its tiles; its loads stay (RESIDENT) */
};
/* What InitBuffer lays out in UB, once for a run of phases that have room for it side by side. */
#define AF_UB_QUEUES 6u /* of each kind; so many buffers too: as there are flags between two pipes */
struct af_ub_queue {
        uint32_t bytes, buffers; /* of one buffer; how many */
};
struct af_ub {
        struct af_ub_queue loads[AF_UB_QUEUES], stores[AF_UB_QUEUES];
        uint32_t n_loads, n_stores;
        uint32_t resident_bytes, calc_bytes;
};
/*
 * Positions put in the order of the rows that an index names (docs/schedule.md): each source takes a slice of the index apart into bins by
 * row, each bin then lists its entries with equal rows side by side. All in the workspace: the slots of a bin lie side by side, one per
 * source, `words` int32 each: a header (entries before it in its slice << 16 | entries), entries (row << shift | place in the slice).
 */
struct af_bins {
        uint32_t index; /* argument: n indices, int32 or int64, that name one of extent rows; outside: extent stands for it */
        int64_t offset, n, extent;
        enum af_dtype dtype;
        uint32_t sources, bins, words, shift;
        uint32_t table;          /* places of the table by which a bin finds equal rows; as bins a power of two */
        uint32_t slots, entries; /* regions, as arguments; entries: of each in order its row, then its place in the index */
};
enum af_phase_kind { AF_PHASE_TILES, AF_PHASE_BIN /* a tile per source */, AF_PHASE_GROUP /* a tile per bin */ };
enum af_knode_kind { AF_KNODE_LOOP, AF_KNODE_STAGE };
struct af_knode {
        enum af_knode_kind kind;
        uint32_t axis;                    /* LOOP */
        uint32_t first_child, n_children; /* LOOP: nodes[] */
        uint32_t stage;                   /* STAGE */
};
struct af_phase {
        enum af_phase_kind kind;
        struct af_bins bins;                     /* BIN, GROUP: no stages */
        struct af_axis axes[AF_KERNEL_MAX_AXES]; /* outermost first, merged */
        uint32_t n_axes;
        struct af_kvalue *values;
        struct af_kstmt *stmts;
        struct af_stage *stages;
        struct af_knode *nodes; /* nodes[0..n_roots): the body of one block tile; children follow */
        uint32_t n_values, n_stmts, n_stages, n_nodes, n_roots;
        uint32_t cap_values, cap_stmts, cap_stages, cap_nodes;
        int64_t n_tiles; /* product over BLOCK axes of their tiles */
        uint32_t blocks; /* cores that it is best spread over */
        uint32_t n_tiles_x;
        uint32_t levels;                      /* LEVELS */
        uint32_t load_buffers, store_buffers; /* 1 or 2 per queue */
        uint32_t load_bytes, store_bytes, calc_bytes, resident_bytes;
        bool joins;                 /* the layout of the phase before is this one's too */
        struct af_ub ub;            /* of this phase and those that join it; !joins */
        uint64_t hbm_bytes, cycles; /* modelled */
        const char *what;           /* for comments: "elementwise", "pack an input", ... */
        bool sync_before;           /* all cores meet first: something that it reads was written by other cores */
};
struct af_kernel {
        const struct af_graph *g;
        const struct af_group *group;
        struct af_karg *args;
        struct af_region *regions;
        struct af_phase *phases;
        uint32_t n_args, n_regions, n_phases;
        uint32_t block_dim;
        uint32_t ub_bytes; /* of the layout that takes most; layouts follow one another */
        uint64_t workspace_bytes;
        uint32_t workspace_x,
                block_dim_x; /* with symbols: expression of the graph plus one, of which the number is the value at the hints; 0 */
        bool needs_sync_all, workspace_zeroed;
        uint64_t hbm_bytes, modelled_cycles;
        uint64_t mte2_cycles, v_cycles, mte3_cycles; /* of modelled_cycles, each pipe alone (of the core where it has most); 0: not known */
};

enum { AF_SCHEDULE_E_UNFIT = 1 /* *ret_why */ };
/*
 * Group -> tiled loop tree, within the SoC's limits; retiled, split or turned to passes where needed: no shape is refused for size.
 * scratch is reset first and holds what is tried; the kernel is in g->arena. 0, -ENOMEM, or UNFIT: nothing can be generated for this set of
 * nodes (layout, dtype, op class); *ret_why lives in g->arena.
 */
int af_schedule_build(struct af_arena *scratch, const struct af_graph *g, const struct af_group *group, const struct af_soc *soc,
                      struct af_kernel **ret_kernel, const char **ret_why) AF_WARN_UNUSED;
/* The same by trying every tile of whole 32-byte blocks on every count of cores, for hours where shapes are odd: what the search is
 * measured by. */
int af_schedule_build_exhaustive(struct af_arena *scratch, const struct af_graph *g, const struct af_group *group, const struct af_soc *soc,
                                 struct af_kernel **ret_kernel, const char **ret_why) AF_WARN_UNUSED;
/*
 * For fusion: whether af_schedule_build would succeed for these nodes, and what the kernel would move about. Linear in the nodes; no
 * search for tiles. scratch is reset first, and nothing in it outlives the next call; answer->why lives in g's arena. stored NULL: the
 * values that no member reads.
 */
bool af_schedule_ask(struct af_arena *scratch, const struct af_soc *soc, const struct af_graph *g, const struct af_fuse_question *q,
                     struct af_fuse_answer *ret);
/* The same for one question (soc is const struct af_soc *), in memory of its own: whether those nodes can be one kernel at all. */
bool af_schedule_fusable(void *soc, const struct af_graph *g, const uint32_t *nodes, uint32_t n_nodes, const char **ret_why);
/* Tiles of a BLOCK axis (size.h). False where that does not fit. */
bool af_axis_tiles(const struct af_graph *g, const struct af_axis *x, int64_t *ret);
/* UB that a phase takes with its numbers of buffers; that a layout takes. */
uint64_t af_phase_ub_bytes(const struct af_phase *p);
uint64_t af_ub_bytes(const struct af_ub *ub);
/* Element count of a value's full tile in calls of count form; 0 for scratch. */
uint32_t af_kvalue_elements(const struct af_phase *p, const struct af_kvalue *v);
/* Elements from line to line of a RAW value, or of what a TABLE is for; and the lines of a full tile. */
uint32_t af_kraw_pitch(const struct af_phase *p, const struct af_kvalue *v);
uint32_t af_kraw_lines(const struct af_phase *p, const struct af_kvalue *v);
/* Rows of what a TABLE's GATHER writes in a full tile, and elements from one to the next. */
void af_ktable_shape(const struct af_phase *p, const struct af_kvalue *v, uint32_t *ret_rows, uint32_t *ret_cols);
/* The tree as text, for --dump and golden tests. */
void af_kernel_print(const struct af_kernel *k, struct af_buf *buf);
