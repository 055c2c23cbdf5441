/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes written short, for the decompositions and the moves. */
#include <errno.h>
#include <string.h>

#include "compiler/rewrite/build.h"
#include "numeric/bits.h"
#include "numeric/half.h"

uint32_t rw_scalar(struct rw *b, enum af_dtype dtype, double v) {
        uint64_t bits;
        switch (dtype) {
        case AF_DTYPE_FLOAT64:
                memcpy(&bits, &v, sizeof(bits));
                return rw_scalar_bits(b, dtype, bits);
        case AF_DTYPE_FLOAT32:
                return rw_scalar_bits(b, dtype, af_bits_f32((float)v));
        case AF_DTYPE_FLOAT16:
                return rw_scalar_bits(b, dtype, af_f16_from_f32((float)v));
        case AF_DTYPE_BFLOAT16:
                return rw_scalar_bits(b, dtype, af_bf16_from_f32((float)v));
        default:
                return rw_int(b, dtype, (int64_t)v);
        }
}

uint32_t rw_int(struct rw *b, enum af_dtype dtype, int64_t v) {
        unsigned size = af_dtype_size(dtype);
        return rw_scalar_bits(b, dtype, size < 8 ? (uint64_t)v & ((UINT64_C(1) << 8 * size) - 1) : (uint64_t)v);
}

uint32_t rw_unary(struct rw *b, enum af_op op, uint32_t x) {
        return rw_node(b, op, &x, 1, NULL, 0, AF_DTYPE_INVALID);
}
uint32_t rw_binary(struct rw *b, enum af_op op, uint32_t x, uint32_t y) {
        uint32_t in[] = {x, y};
        return rw_node(b, op, in, 2, NULL, 0, AF_DTYPE_INVALID);
}
uint32_t rw_where(struct rw *b, uint32_t condition, uint32_t x, uint32_t y) {
        uint32_t in[] = {condition, x, y};
        return rw_node(b, AF_OP_WHERE, in, 3, NULL, 0, AF_DTYPE_INVALID);
}

uint32_t rw_cast(struct rw *b, uint32_t x, enum af_dtype dtype) {
        if (x == AF_NONE || rw_value(b, x)->dtype == dtype)
                return x;
        return rw_node(b, AF_OP_CAST, &x, 1, NULL, 0, dtype);
}

uint32_t rw_reduce(struct rw *b, enum af_op op, uint32_t x, const int64_t *axes, uint32_t n_axes, bool keepdims, enum af_dtype dtype) {
        const struct af_attr attrs[] = {{.key = AF_ATTR_AXES, .ints = axes, .n = n_axes}, {.key = AF_ATTR_KEEPDIMS, .i = keepdims}};
        return rw_node(b, op, &x, 1, attrs, 2, dtype);
}

static bool has_dims(const struct rw *b, uint32_t x, const uint32_t *dims, uint32_t rank) {
        const struct af_value *v = rw_value(b, x);
        return v->rank == rank && (rank == 0 || memcmp(v->dims, dims, rank * sizeof(*dims)) == 0);
}

static uint32_t shaped(struct rw *b, enum af_op op, uint32_t x, const uint32_t *dims, uint32_t rank) {
        if (b->error || x == AF_NONE || has_dims(b, x, dims, rank))
                return b->error ? AF_NONE : x;
        struct af_attr attr = {.key = AF_ATTR_SHAPE, .dims = dims, .n = rank};
        return rw_node(b, op, &x, 1, &attr, 1, AF_DTYPE_INVALID);
}
uint32_t rw_reshape(struct rw *b, uint32_t x, const uint32_t *dims, uint32_t rank) {
        return shaped(b, AF_OP_RESHAPE, x, dims, rank);
}
uint32_t rw_broadcast(struct rw *b, uint32_t x, const uint32_t *dims, uint32_t rank) {
        return shaped(b, AF_OP_BROADCAST, x, dims, rank);
}

uint32_t rw_iota(struct rw *b, enum af_dtype dtype, const uint32_t *dims, uint32_t rank, uint32_t axis, int64_t start, int64_t step) {
        dims = rw_keep_ids(b, dims, rank); /* the value's dims are the attribute's */
        const struct af_attr attrs[] = {{.key = AF_ATTR_AXIS, .i = axis},
                                        {.key = AF_ATTR_SHAPE, .dims = dims, .n = rank},
                                        {.key = AF_ATTR_START, .is_int = true, .i = start, .f = (double)start},
                                        {.key = AF_ATTR_STEP, .is_int = true, .i = step, .f = (double)step}};
        return rw_node(b, AF_OP_IOTA, NULL, 0, attrs, AF_ARRAY_SIZE(attrs), dtype);
}

uint32_t rw_index32(struct rw *b, uint32_t index) {
        if (index != AF_NONE && rw_value(b, index)->dtype == AF_DTYPE_INT64)
                index = rw_cast(b, index, AF_DTYPE_FLOAT32);
        return rw_cast(b, index, AF_DTYPE_INT32);
}

#define LONG_ROW  8192
#define CHUNK_MIN 1024
#define CHUNK_MAX 8192

int64_t rw_chunk_of(int64_t row) {
        for (int64_t d = CHUNK_MAX; row > LONG_ROW && d >= CHUNK_MIN; d--)
                if (row % d == 0)
                        return d;
        return 0;
}

const uint32_t *rw_keep_ids(struct rw *b, const uint32_t *ids, uint32_t n) {
        const uint32_t *copy = af_arena_memdup(b->g.arena, ids, n * sizeof(*ids));
        if (!copy)
                b->error = -ENOMEM;
        return copy;
}

uint32_t rw_const_dim(struct rw *b, int64_t v) {
        uint32_t id = 0;
        if (!b->error && af_expr_const(&b->g.exprs, v, &id))
                b->error = -ENOMEM;
        return id;
}

uint32_t rw_dim_binary(struct rw *b, enum af_expr_kind kind, uint32_t x, uint32_t y) {
        uint32_t id = 0;
        int r = b->error ? 0 : af_expr_binary(&b->g.exprs, kind, x, y, &id);
        if (r)
                b->error = r < 0 ? r : AF_GRAPH_E_INVALID;
        return id;
}

int64_t rw_most(struct rw *b, uint32_t expr) {
        int64_t least, most;
        af_expr_range(&b->g.exprs, expr, b->bounds.mins, b->bounds.maxs, &least, &most);
        return most;
}

int rw_dense_strides(struct rw *b, uint32_t value, const uint32_t **ret_strides) {
        const struct af_value *v = rw_value(b, value);
        uint32_t *strides = af_arena_calloc(b->g.arena, AF_LIMIT_RANK, sizeof(*strides)), next = rw_const_dim(b, 1);
        if (!strides)
                return -ENOMEM;
        for (uint32_t i = v->rank; i-- > 0;) {
                strides[i] = next;
                next = rw_dim_binary(b, AF_EXPR_MUL, next, v->dims[i]);
        }
        *ret_strides = strides;
        return b->error;
}
