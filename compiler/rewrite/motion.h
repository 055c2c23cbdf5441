/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving views: what the files of the pass share. Private to compiler/rewrite.
 *
 * A view (slice, transpose, gather by an index) floats up through elementwise nodes to what is in memory anyway; a concat floats down
 * through them to what is stored. motion.c walks the graph, fold.c makes views of views, push.c moves a view through a cone of nodes,
 * concat.c distributes over pieces.
 */
#pragma once

#include "compiler/rewrite/build.h"

/* Nodes that one view may be moved through, and views within views that are followed. */
#define MV_CONE_MAX  512u
#define MV_DEPTH_MAX 48u
#define MV_LIFT_MAX  64u /* nodes that a reshape is moved through, for a transpose's sake */

enum mv_kind { MV_SLICE, MV_TRANSPOSE, MV_GATHER, MV_ELEMENTS };
struct mv_range { /* elements start, start + step, ...; size of them */
        int64_t start, step, size;
};
struct mv_view {
        enum mv_kind kind;
        uint32_t rank;                        /* of what is viewed */
        struct mv_range range[AF_LIMIT_RANK]; /* SLICE: of each axis that is touched */
        bool touched[AF_LIMIT_RANK];
        int64_t perm[AF_LIMIT_RANK]; /* TRANSPOSE: output axis i is axis perm[i] */
        uint32_t axis, index;        /* gathers; index: a value of g */
};

struct mv_entry {                  /* a node of the cone that a view moves through */
        uint32_t node, value;      /* value: what it became */
        bool must_die;             /* costly: only if nobody is left who reads it as it was */
        int8_t map[AF_LIMIT_RANK]; /* its axis -> the view's axis, or -1: the view does not touch it */
};
struct mv {
        struct rw *b;
        const bool *pinned;
        /* per value of g, zero where beyond cap */
        bool *full;        /* someone reads all of it as it is */
        bool *stored;      /* an output of the graph */
        uint16_t *reduced; /* axes over which all of it is reduced, as it is or elementwise */
        uint32_t *old_of;  /* the old value that it is, + 1 */
        uint32_t cap_full, cap_stored, cap_reduced, cap_old_of;
        uint32_t *users_first, *users; /* of old values */
        /* per node of g: its entry in the cone + 1; all 0 between moves */
        uint32_t *entry_of, cap_entry_of;
        uint64_t work; /* nodes that may still be looked at or made: keeps the pass near-linear */
        uint32_t depth;
        void *scratch; /* of one element's evaluation */
        uint32_t n_moved;
};

bool mv_full(const struct mv *m, uint32_t value);
bool mv_stored(const struct mv *m, uint32_t value);
bool mv_reduced(const struct mv *m, uint32_t value, uint32_t axis);
/* Takes n steps off the work; false where it is used up. */
bool mv_work(struct mv *m, uint64_t n);
/* The node that makes a value and may be taken apart: not pinned. NULL for inputs, constants and pinned nodes. Valid until a node is made.
 */
const struct af_node *mv_maker(const struct mv *m, uint32_t value);
/* Elementwise, compare, select, cast: one output, one element each. */
bool mv_is_elementwise(const struct af_node *n);
/* For each axis of `to`, the axis of `from` that is the same one: the same size, and as many elements before it; else -1. */
void mv_reshape_axes(const struct mv *m, uint32_t from, uint32_t to, int8_t *ret_map);

/*
 * The view of x, moved or folded where that is a gain, else a node that makes it. Each returns a value of g, or AF_NONE with b->error set.
 * The operands' static sizes are known on every axis that is touched.
 */
uint32_t mv_slice(struct mv *m, uint32_t x, const struct mv_view *view);
uint32_t mv_transpose(struct mv *m, uint32_t x, const int64_t *perm);
uint32_t mv_gather(struct mv *m, uint32_t x, const struct mv_view *view);
uint32_t mv_concat(struct mv *m, const uint32_t *pieces, uint32_t n, uint32_t axis);
uint32_t mv_pad(struct mv *m, uint32_t x, const int64_t *low, const int64_t *high, uint32_t fill);
/* As rw_reshape; of what x is a reshape of, where it is one. */
uint32_t mv_reshape(struct mv *m, uint32_t x, const uint32_t *dims, uint32_t rank);
/* Elements [start, start + size) of one axis. */
uint32_t mv_slice_axis(struct mv *m, uint32_t x, uint32_t axis, int64_t start, int64_t size);

/* Moves the view through what x is computed by. AF_NONE without an error: it is no gain. */
uint32_t mv_push(struct mv *m, uint32_t x, const struct mv_view *view);
/* Of a value; the most where its size is symbolic. */
#define MV_BYTES_MAX (INT64_MAX / 4)
int64_t mv_bytes(const struct mv *m, uint32_t value);
/* x, a reshape of something computed, as something computed from reshapes. AF_NONE without an error: it is not, or cannot be. */
uint32_t mv_lift(struct mv *m, uint32_t x);
/* Bytes that a view of x would need stored after it was moved; -1: it cannot be moved. */
int64_t mv_push_cost(struct mv *m, uint32_t x, const struct mv_view *view);

/* An elementwise node like n over these operands: over pieces where an operand is a concat, folded where all are constant. */
uint32_t mv_elementwise(struct mv *m, const struct af_node *n, const uint32_t *in, enum af_dtype dtype);
