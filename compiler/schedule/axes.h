/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The iteration space of a group. Every dimension of every value starts as an axis of its own; elementwise operands unify theirs with the
 * result's, reshapes split axes until both sides agree, and what no access can tell apart merges. Views and broadcasts are seen through:
 * each use of a value resolves to the value that is computed or loaded (its base) and to the axes that the use has.
 */
#pragma once

#include "base/arena.h"
#include "compiler/graph/graph.h"
#include "compiler/schedule/kernel.h"

enum af_base_kind {
        AF_BASE_INPUT,
        AF_BASE_NODE,
        AF_BASE_SCALAR,
        AF_BASE_INDEX /* the operand of an iota: no memory; strides and offset give its value */
};
/* One operand of a computing node, or one stored output. */
struct af_pack;
struct af_use {
        uint32_t value; /* as the node names it */
        uint32_t base;  /* what is loaded, computed or, for SCALAR, written into the source */
        enum af_base_kind base_kind;
        bool direct;                          /* value == base */
        uint32_t source;                      /* stored output whose base is not computed here: the use that loads it; else AF_NONE */
        uint32_t axes;                        /* bits of the space: those of the use, broadcast ones included */
        uint32_t vary;                        /* INPUT: those that the access steps over */
        int64_t strides[AF_KERNEL_MAX_AXES];  /* INPUT: of the load; stored output: of the store */
        int64_t offset;                       /* elements */
        bool gathers;                         /* a gather's data: strides are those of the axes that its index does not pick along */
        int64_t gather_stride, gather_extent; /* elements per step of the index; how many it may pick from; sizes (size.h) */
        uint32_t offset_x, strides_x[AF_KERNEL_MAX_AXES]; /* size.h: numbers above are those at the hints */
        const struct af_pack *pack; /* not NULL: an input is first copied to the workspace, a stored output is last copied out of it; vary
                                       and strides are those of the copy, offset 0 */
};
struct af_store { /* a value that is written to memory */
        uint32_t value;
        uint32_t output;              /* the output that it is, or is a piece of */
        uint32_t into;                /* a piece: the concatenation whose shape the output has; AF_NONE */
        int64_t start[AF_LIMIT_RANK]; /* a piece: its first element there */
};
struct af_pack { /* a copy that makes an input dense, or spreads a dense output out, over axes of its own */
        uint32_t n_axes;
        /* Strides: load of the value in its own memory, store of the copy in the workspace. */
        int64_t extent[AF_KERNEL_MAX_AXES], load[AF_KERNEL_MAX_AXES], store[AF_KERNEL_MAX_AXES];
        int64_t offset, elements;
};
struct af_space {
        int64_t extent[AF_KERNEL_MAX_AXES]; /* outermost first, none is 1; at the hints */
        uint32_t extent_x[AF_KERNEL_MAX_AXES];
        int64_t most[AF_KERNEL_MAX_AXES]; /* greatest there can be */
        uint32_t n_axes;
        uint32_t reduced;    /* bits: by some reduction */
        uint32_t row, inner; /* axes that a tile spans; AF_NONE */
        bool flat; /* some reduction combines row and inner axis as one: a tile that holds both whole has no gaps between its rows */
        bool raw;  /* something moves that has no contiguous rows */
        struct af_use *
                uses; /* operands of nodes[i]: uses[first_use[i] ..]; then sources of copied outputs; the stored outputs from first_store */
        uint32_t *first_use; /* n_nodes + 1 */
        uint32_t first_store, n_uses;
        uint32_t *node_axes;    /* per node: axes of its result */
        uint32_t *node_reduced; /* per node: axes that it reduces; 0 */
        bool *skip;             /* per node: a view or broadcast, or nothing of its result exists */
        bool *empty_reduce;     /* per node: a reduction of nothing: its result is its identity */
        bool *unit_reduce;      /* per node: a reduction over axes of one element */
};

struct af_members { /* the nodes of a group, searchable by node */
        const struct af_graph *g;
        const uint32_t *nodes;
        uint32_t n;
        uint32_t *sorted, *position; /* node ids ascending, and where each stands in nodes */
};
int af_members_init(struct af_members *m, struct af_arena *arena, const struct af_graph *g, const uint32_t *nodes,
                    uint32_t n) AF_WARN_UNUSED;
/* Position in nodes of the node that produces value, or AF_NONE. */
uint32_t af_members_producer(const struct af_members *m, uint32_t value);

/* What is copied to be dense first: what tiles cannot move as it stands; whatever has no contiguous rows; every input. */
enum af_packing { AF_PACK_NEEDED, AF_PACK_ROWS, AF_PACK_ALL };
/*
 * stores: values that are written to memory. share: an input has the same axes wherever it is
 * read; else each use has its own. 0, -ENOMEM, or AF_SCHEDULE_E_UNFIT with *ret_why (static or from arena).
 */
int af_space_build(struct af_arena *arena, const struct af_members *m, const struct af_store *stores, uint32_t n_stores,
                   enum af_packing packing, bool share, struct af_space *ret_space, const char **ret_why) AF_WARN_UNUSED;

/* internal to axes*.c: axes before merging */
struct af_atoms {
        const struct af_graph *g;
        struct af_arena *arena;
        struct af_atom {
                int64_t extent;
                uint32_t parent; /* itself: a root */
                uint32_t hi, lo; /* split root: outer and inner half; AF_NONE: a leaf */
        } * items;
        uint32_t n, cap;
};
struct af_dims { /* dimensions of a value as atoms; AF_NONE where the dimension is 1 */
        uint32_t rank;
        uint32_t atom[AF_LIMIT_RANK];
        int64_t dim[AF_LIMIT_RANK];
};
#define AF_ATOMS_MAX 64u /* leaves of one value */
int af_atoms_new(struct af_atoms *a, int64_t extent, uint32_t *ret_atom) AF_WARN_UNUSED;
uint32_t af_atoms_find(struct af_atoms *a, uint32_t atom);
/* Makes the two atoms one. 0, -ENOMEM, or 1: no common refinement. */
int af_atoms_unify(struct af_atoms *a, uint32_t x, uint32_t y) AF_WARN_UNUSED;
/* Same elements in row-major order, cut differently: splits until both lists are one. 0, -ENOMEM, 1. */
int af_atoms_unify_dims(struct af_atoms *a, const struct af_dims *x, const struct af_dims *y) AF_WARN_UNUSED;
/* Leaves of an atom, outermost first, appended at *n; false where they are more than AF_ATOMS_MAX. */
bool af_atoms_leaves(struct af_atoms *a, uint32_t atom, uint32_t *list, uint32_t *n);
