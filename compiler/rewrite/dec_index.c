/* SPDX-License-Identifier: Apache-2.0 */
/* Composites of positions: arg max, one hot, triangles, tile. A position is an iota, never a stored table. */
#include <string.h>

#include "compiler/rewrite/decompose.h"

/* The smallest (or largest) position at which x is its extreme; a NaN is one, the first NaN before all. */
static uint32_t arg_reduce(const struct rw_composite *c, enum af_op extreme) {
        struct rw *b = c->b;
        const struct af_attr *axis_attr = af_node_attr(c->n, AF_ATTR_AXIS);
        uint32_t x = c->in[0], dims[AF_LIMIT_RANK];
        int64_t axis = axis_attr ? axis_attr->i : 0;
        bool last = rw_attr_int(c, AF_ATTR_SELECT_LAST, 0);
        const struct af_value v = *rw_value(b, x);
        if (!axis_attr) { /* of all, flattened */
                uint32_t flat = rw_const_dim(b, 1);
                for (uint32_t i = 0; i < v.rank; i++)
                        flat = rw_dim_binary(b, AF_EXPR_MUL, flat, v.dims[i]);
                x = rw_reshape(b, x, &flat, 1);
        } else if (v.rank == 0) {
                uint32_t one = rw_const_dim(b, 1);
                x = rw_reshape(b, x, &one, 1);
        }
        if (x == AF_NONE || axis >= rw_value(b, x)->rank || rw_most(b, rw_value(b, x)->dims[axis]) > INT32_MAX)
                return rw_fail(b);
        uint32_t m =
                v.dtype == AF_DTYPE_INT64 ? rw_extreme64(b, extreme, x, axis) : rw_reduce(b, extreme, x, &axis, 1, true, AF_DTYPE_INVALID);
        uint32_t hit = rw_binary(b, AF_OP_EQ, x, m);
        if (af_dtype_kind(v.dtype) == 'f')
                hit = rw_binary(b, AF_OP_LOGICAL_OR, hit, rw_binary(b, AF_OP_NE, x, x));
        uint32_t rank = b->error ? 0 : rw_value(b, x)->rank;
        for (uint32_t i = 0; i < rank; i++)
                dims[i] = i == axis ? rw_value(b, x)->dims[i] : rw_const_dim(b, 1);
        uint32_t position = rw_iota(b, AF_DTYPE_INT32, dims, rank, (uint32_t)axis, 0, 1);
        uint32_t at = rw_where(b, hit, position, rw_int(b, AF_DTYPE_INT32, last ? -1 : INT32_MAX));
        at = rw_reduce(b, last ? AF_OP_REDUCE_MAX : AF_OP_REDUCE_MIN, at, &axis, 1, false, AF_DTYPE_INVALID);
        return rw_reshape(b, rw_cast(b, at, c->out->dtype), c->out->dims, c->out->rank);
}

uint32_t rw_arg_max(const struct rw_composite *c) {
        return arg_reduce(c, AF_OP_REDUCE_MAX);
}
uint32_t rw_arg_min(const struct rw_composite *c) {
        return arg_reduce(c, AF_OP_REDUCE_MIN);
}

/* Negative indices count from the end; one outside gives a row of off. */
uint32_t rw_one_hot(const struct rw_composite *c) {
        struct rw *b = c->b;
        int64_t depth = rw_attr_int(c, AF_ATTR_DEPTH, 0), axis = rw_attr_int(c, AF_ATTR_AXIS, -1);
        uint32_t index = c->in[0], dims[AF_LIMIT_RANK], rank = c->out->rank;
        enum af_dtype d = rw_value(b, index)->dtype;
        if (axis < 0)
                axis += rank;
        if (rank == 0 || axis < 0 || axis >= rank)
                return rw_fail(b);
        if (af_dtype_size(d) < 4 || (d == AF_DTYPE_INT64 && depth <= RW_INDEX_MAX))
                index = rw_index32(b, index);
        if (index == AF_NONE)
                return AF_NONE;
        d = rw_value(b, index)->dtype;
        for (uint32_t i = 0; i < rank; i++)
                dims[i] = i == axis ? rw_const_dim(b, 1) : c->out->dims[i];
        index = rw_reshape(b, index, dims, rank);
        uint32_t negative = rw_binary(b, AF_OP_LT, index, rw_int(b, d, 0));
        index = rw_where(b, negative, rw_binary(b, AF_OP_ADD, index, rw_int(b, d, depth)), index);
        for (uint32_t i = 0; i < rank; i++)
                dims[i] = i == axis ? rw_const_dim(b, depth) : rw_const_dim(b, 1);
        uint32_t hit = rw_binary(b, AF_OP_EQ, index, rw_iota(b, d, dims, rank, (uint32_t)axis, 0, 1));
        uint32_t on = c->n->n_in > 1 ? c->in[1] : rw_scalar(b, c->out->dtype, 1);
        uint32_t off = c->n->n_in > 2 ? c->in[2] : rw_scalar(b, c->out->dtype, 0);
        return rw_where(b, hit, on, off);
}

/* Kept where column - row compares with the diagonal; 0 elsewhere. */
static uint32_t triangle(const struct rw_composite *c, enum af_op keep) {
        struct rw *b = c->b;
        uint32_t x = c->in[0], rank = rw_value(b, x)->rank;
        int64_t k = rw_attr_int(c, AF_ATTR_DIAGONAL, 0);
        if (rank < 2)
                return rw_fail(b);
        const uint32_t *dims = rw_value(b, x)->dims, one = rw_const_dim(b, 1);
        int64_t rows = rw_most(b, dims[rank - 2]), columns = rw_most(b, dims[rank - 1]);
        if (rows > INT32_MAX / 4 || columns > INT32_MAX / 4)
                return rw_fail(b);
        k = AF_MAX(AF_MIN(k, columns), -rows); /* beyond, nothing changes any more */
        const uint32_t row_dims[] = {dims[rank - 2], one}, column_dims[] = {one, dims[rank - 1]};
        uint32_t row = rw_iota(b, AF_DTYPE_INT32, row_dims, 2, 0, k, 1), column = rw_iota(b, AF_DTYPE_INT32, column_dims, 2, 1, 0, 1);
        return rw_where(b, rw_binary(b, keep, column, row), x, rw_int(b, rw_value(b, x)->dtype, 0));
}

uint32_t rw_triu(const struct rw_composite *c) {
        return triangle(c, AF_OP_GE);
}
uint32_t rw_tril(const struct rw_composite *c) {
        return triangle(c, AF_OP_LE);
}

/* [.., d, ..] as [.., 1, d, ..], broadcast to [.., n, d, ..], as [.., n*d, ..]. */
uint32_t rw_tile(const struct rw_composite *c) {
        struct rw *b = c->b;
        const struct af_attr *repeats = af_node_attr(c->n, AF_ATTR_REPEATS);
        const struct af_value v = *rw_value(b, c->in[0]);
        uint32_t apart[AF_LIMIT_RANK], wide[AF_LIMIT_RANK], n = 0;
        int64_t times, d;
        if (!repeats || repeats->n != v.rank)
                return rw_fail(b);
        for (uint32_t i = 0; i < v.rank; i++) {
                bool once = af_expr_is_const(&b->g.exprs, repeats->dims[i], &times) && times == 1;
                bool unit = rw_dim(b, c->in[0], i, &d) && d == 1;
                if (n + (once || unit ? 1 : 2) > AF_LIMIT_RANK)
                        return rw_fail(b);
                if (!once && !unit) {
                        apart[n] = rw_const_dim(b, 1);
                        wide[n++] = repeats->dims[i];
                }
                apart[n] = v.dims[i];
                wide[n++] = unit ? repeats->dims[i] : v.dims[i];
        }
        return rw_reshape(b, rw_broadcast(b, rw_reshape(b, c->in[0], apart, n), wide, n), c->out->dims, c->out->rank);
}

#define SCAN_MAX 32 /* elements along the axis that are added up one by one */

/* Element i along an axis, kept as an axis of 1. */
static uint32_t element_of(struct rw *b, uint32_t x, uint32_t axis, int64_t i) {
        const struct af_value v = *rw_value(b, x);
        uint32_t starts[AF_LIMIT_RANK], stops[AF_LIMIT_RANK];
        int64_t steps[AF_LIMIT_RANK];
        for (uint32_t d = 0; d < v.rank; d++) {
                starts[d] = rw_const_dim(b, d == axis ? i : 0);
                stops[d] = d == axis ? rw_const_dim(b, i + 1) : v.dims[d];
                steps[d] = 1;
        }
        const struct af_attr attrs[] = {{.key = AF_ATTR_STARTS, .dims = starts, .n = v.rank},
                                        {.key = AF_ATTR_STOPS, .dims = stops, .n = v.rank},
                                        {.key = AF_ATTR_STEPS, .ints = steps, .n = v.rank}};
        return rw_node(b, AF_OP_SLICE, &x, 1, attrs, AF_ARRAY_SIZE(attrs), AF_DTYPE_INVALID);
}

/* Short running sums, one after another from zero; AF_NONE: it is a scan of its own. */
uint32_t rw_cumsum(const struct rw_composite *c) {
        struct rw *b = c->b;
        uint32_t axis = (uint32_t)rw_attr_int(c, AF_ATTR_AXIS, 0), sums[SCAN_MAX];
        bool exclusive = rw_attr_int(c, AF_ATTR_EXCLUSIVE, 0), reverse = rw_attr_int(c, AF_ATTR_REVERSE, 0);
        enum af_dtype out = c->out->dtype, compute = af_dtype_kind(out) == 'f' ? AF_DTYPE_FLOAT32
                                                     : out == AF_DTYPE_INT64   ? AF_DTYPE_INT64
                                                                               : AF_DTYPE_INT32;
        int64_t n;
        if (out == AF_DTYPE_FLOAT64 || axis >= rw_value(b, c->in[0])->rank || !rw_dim(b, c->in[0], axis, &n) || n < 1 || n > SCAN_MAX)
                return rw_fail(b);
        uint32_t sum = rw_scalar(b, compute, 0);
        for (int64_t k = 0; k < n; k++) {
                int64_t i = reverse ? n - 1 - k : k;
                uint32_t x = rw_cast(b, element_of(b, c->in[0], axis, i), compute);
                uint32_t next = rw_binary(b, AF_OP_ADD, x, sum);
                if (exclusive && k == 0)
                        sum = rw_broadcast(b, sum, rw_value(b, x)->dims, rw_value(b, x)->rank);
                sums[i] = rw_cast(b, exclusive ? sum : next, out);
                sum = next;
                if (sum == AF_NONE || sums[i] == AF_NONE)
                        return rw_fail(b);
        }
        struct af_attr attr = {.key = AF_ATTR_AXIS, .i = axis};
        return n == 1 ? sums[0] : rw_node(b, AF_OP_CONCAT, sums, (uint32_t)n, &attr, 1, AF_DTYPE_INVALID);
}
