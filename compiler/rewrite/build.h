/* SPDX-License-Identifier: Apache-2.0 */
/* The builder: writes a new graph node by node, in topological order, while the old one is read. Private to compiler/rewrite. */
#pragma once

#include "compiler/rewrite/rewrite.h"

struct rw {
        const struct af_graph *from;
        struct af_graph g; /* under construction */
        uint32_t cap_nodes, cap_values, cap_constants;
        uint32_t *map;                /* per value of `from`: the value of g that is the same tensor; AF_NONE: none yet */
        const struct af_node *origin; /* node of `from` that new nodes come from */
        int error;                    /* first one, sticky: -ENOMEM, or AF_GRAPH_E_INVALID: this rewrite does not exist */
        uint32_t *table;              /* open addressing over nodes of g: equal ones are one */
        uint32_t table_size, n_table;
        uint32_t *scalars; /* the same over scalar constants */
        uint32_t scalars_size, n_scalars;
        struct af_infer_bounds bounds; /* of the symbols */
        uint32_t n_made;               /* nodes that rw_node wrote */
        bool *is_output;               /* per value of `from` */
};
struct rw_mark {
        uint32_t n_nodes, n_made;
};

/* Takes inputs, constants, symbols over. from and its arena outlive b. 0 or -ENOMEM. */
int rw_begin(struct rw *b, const struct af_graph *from) AF_WARN_UNUSED;
/* Copies node of `from`, its operands as map has them, and maps its outputs. unify: an equal node may stand for it. 0 or -ENOMEM. */
int rw_keep(struct rw *b, uint32_t node, bool unify) AF_WARN_UNUSED;
/* What is dead goes, outputs are linked, the order that no operand shows is made. 0, -ENOMEM, AF_GRAPH_E_INVALID: no order exists. */
int rw_finish(struct rw *b, struct af_graph *ret) AF_WARN_UNUSED;
/* Undoes what was made since, and forgives AF_GRAPH_E_INVALID. */
struct rw_mark rw_here(const struct rw *b);
void rw_back(struct rw *b, struct rw_mark mark);

/*
 * Nodes are made in the order of the calls: no two of these in one argument list, whose order differs between compilers.
 * Each returns a value of g, or AF_NONE with b->error set; an operand AF_NONE gives AF_NONE. Attributes need not be in normal form and are
 * borrowed from g's arena. dtype: INVALID where the op's rule tells it.
 */
uint32_t rw_node(struct rw *b, enum af_op op, const uint32_t *in, uint32_t n_in, const struct af_attr *attrs, uint32_t n_attrs,
                 enum af_dtype dtype);
uint32_t rw_fail(struct rw *b);
uint32_t rw_scalar_bits(struct rw *b, enum af_dtype dtype, uint64_t bits);
uint32_t rw_scalar(struct rw *b, enum af_dtype dtype, double v); /* float32 or float64: nearest; others: for small integers */
uint32_t rw_int(struct rw *b, enum af_dtype dtype, int64_t v);
uint32_t rw_unary(struct rw *b, enum af_op op, uint32_t x);
uint32_t rw_binary(struct rw *b, enum af_op op, uint32_t x, uint32_t y);
uint32_t rw_where(struct rw *b, uint32_t condition, uint32_t x, uint32_t y);
uint32_t rw_cast(struct rw *b, uint32_t x, enum af_dtype dtype); /* x itself where it has it */
uint32_t rw_reduce(struct rw *b, enum af_op op, uint32_t x, const int64_t *axes, uint32_t n_axes, bool keepdims, enum af_dtype dtype);
uint32_t rw_reshape(struct rw *b, uint32_t x, const uint32_t *dims, uint32_t rank); /* x itself where it has them */
uint32_t rw_broadcast(struct rw *b, uint32_t x, const uint32_t *dims, uint32_t rank);
uint32_t rw_iota(struct rw *b, enum af_dtype dtype, const uint32_t *dims, uint32_t rank, uint32_t axis, int64_t start, int64_t step);
/*
 * An index as int32: in range of an axis of at most 2^24 it is what it was, out of range it stays out. int64 goes by way of float32, where
 * rounding keeps order and every number up to 2^24 is exact; the cast to int32 saturates.
 */
uint32_t rw_index32(struct rw *b, uint32_t index);
#define RW_INDEX_MAX (INT64_C(1) << 24)
/* Rows longer than this are read once where a chunk size divides them: the size, or 0. A matter of the logical shape alone. */
int64_t rw_chunk_of(int64_t row);
const uint32_t *rw_keep_ids(struct rw *b, const uint32_t *ids, uint32_t n); /* in the arena; NULL with b->error set */
/* Expression ids; any id with b->error set. */
uint32_t rw_const_dim(struct rw *b, int64_t v);
uint32_t rw_dim_binary(struct rw *b, enum af_expr_kind kind, uint32_t x, uint32_t y);
/* Row-major strides of a value, in the arena. 0, -ENOMEM, AF_GRAPH_E_INVALID. */
int rw_dense_strides(struct rw *b, uint32_t value, const uint32_t **ret_strides) AF_WARN_UNUSED;

static inline const struct af_value *rw_value(const struct rw *b, uint32_t value) {
        return &b->g.values[value];
}
/* Static size of an axis; false where symbolic. */
static inline bool rw_dim(const struct rw *b, uint32_t value, uint32_t axis, int64_t *ret) {
        return af_expr_is_const(&b->g.exprs, b->g.values[value].dims[axis], ret);
}
/* The largest that an expression can be over the symbols' ranges. */
int64_t rw_most(struct rw *b, uint32_t expr);
/* Notes what became of a node; n_nodes of it. 0 or -ENOMEM. */
int rw_note(struct rw *b, struct af_rewrite_notes *notes, enum af_rewrite_kind kind, uint32_t source, uint32_t n_nodes) AF_WARN_UNUSED;
