/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that move elements: transpose, slice, pad, concat and split as copies between views, gather_elements and iota element by element. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/reference/internal.h"

#define BLOCK 8192 /* elements at a time */

int af_reference_copy(const struct af_tensor *from, const struct af_tensor *to) {
        struct af_view src, dst;
        char *block = malloc(BLOCK * 8);

        if (!block)
                return -ENOMEM;
        af_view_of(from, &src);
        af_view_of(to, &dst);
        for (int64_t at = 0; at < dst.count; at += BLOCK) {
                int64_t n = AF_MIN((int64_t)BLOCK, dst.count - at);
                af_view_read(&src, at, n, block);
                af_view_write(&dst, at, n, block);
        }
        free(block);
        return 0;
}

static bool same_dims(const struct af_tensor *a, const struct af_tensor *b) {
        return a->rank == b->rank && (a->rank == 0 || memcmp(a->dims, b->dims, a->rank * sizeof(*a->dims)) == 0);
}

static int shape_error(const char **ret_why, const char *why) {
        *ret_why = why;
        return AF_REFERENCE_E_SHAPE;
}

/* The part of t that starts at element `start` of the axis and has `size` there. */
static struct af_tensor part_of(const struct af_tensor *t, uint32_t axis, int64_t start, int64_t size) {
        struct af_tensor part = *t;

        part.dims[axis] = size;
        if (size > 0)
                part.data = (char *)t->data + start * t->strides[axis] * (int64_t)af_dtype_size(t->dtype);
        return part;
}

/* Items of a list attribute for the symbols' values; false where they are not known or not `rank` many. */
static bool attr_values(const struct af_reference_node *r, enum af_attr_key key, uint32_t rank, int64_t *ret) {
        const struct af_attr *a = af_node_attr(r->n, key);
        uint32_t n = 0;

        if (!a || a->n != rank)
                return false;
        if (af_node_attr_ints(r->g, r->n, key, ret, &n))
                return true;
        for (uint32_t i = 0; i < rank; i++)
                if (!r->symbols || af_expr_eval(&r->g->exprs, a->dims[i], r->symbols, &ret[i]) != 0)
                        return false;
        return true;
}

static int64_t attr_int(const struct af_node *n, enum af_attr_key key) {
        const struct af_attr *a = af_node_attr(n, key);

        return a ? a->i : 0;
}

static int run_transpose(const struct af_reference_node *r, const struct af_tensor *in, struct af_tensor *out) {
        int64_t perm[AF_LIMIT_ATTR_ITEMS];
        struct af_tensor from = *in;

        if (!attr_values(r, AF_ATTR_PERM, in->rank, perm))
                return shape_error(r->ret_why, "perm does not fit the operand");
        for (uint32_t i = 0; i < in->rank; i++) {
                from.dims[i] = in->dims[perm[i]];
                from.strides[i] = in->strides[perm[i]];
        }
        return same_dims(&from, out) ? af_reference_copy(&from, out) : shape_error(r->ret_why, "the result has another shape");
}

static int run_slice(const struct af_reference_node *r, const struct af_tensor *in, struct af_tensor *out) {
        int64_t starts[AF_LIMIT_ATTR_ITEMS], steps[AF_LIMIT_ATTR_ITEMS];
        struct af_tensor from = *in;

        if (!attr_values(r, AF_ATTR_STARTS, in->rank, starts) || !attr_values(r, AF_ATTR_STEPS, in->rank, steps) || out->rank != in->rank)
                return shape_error(r->ret_why, "the slice's bounds are not known or do not fit the operand");
        int64_t count = af_tensor_count(out);
        for (uint32_t i = 0; i < in->rank && count > 0; i++) {
                int64_t last = starts[i] + (out->dims[i] - 1) * steps[i];
                if (starts[i] < 0 || starts[i] >= in->dims[i] || last < 0 || last >= in->dims[i])
                        return shape_error(r->ret_why, "the slice goes beyond the operand");
                from = part_of(&from, i, starts[i], out->dims[i]);
                from.strides[i] = in->strides[i] * steps[i];
        }
        return count > 0 ? af_reference_copy(&from, out) : 0;
}

/* The fill, rounded to the result's dtype: in every element. */
static int fill_with(const struct af_reference_node *r, const struct af_tensor *in, const struct af_tensor *out) {
        uint64_t bits = 0;
        struct af_tensor fill = *out;

        if (r->n->n_in > 1 && in[1].dtype == out->dtype)
                memcpy(&bits, in[1].data, af_dtype_size(out->dtype));
        else if (r->n->n_in > 1)
                af_reference_float_put(&bits, out->dtype, af_reference_number(in[1].data, in[1].dtype));
        fill.data = &bits;
        memset(fill.strides, 0, sizeof(fill.strides));
        return af_reference_copy(&fill, out);
}

static int run_pad(const struct af_reference_node *r, const struct af_tensor *in, struct af_tensor *out) {
        int64_t low[AF_LIMIT_ATTR_ITEMS];
        struct af_tensor to = *out;

        if (!attr_values(r, AF_ATTR_LOW, in->rank, low) || out->rank != in->rank)
                return shape_error(r->ret_why, "the padding is not known or does not fit the operand");
        for (uint32_t i = 0; i < in->rank; i++) {
                if (low[i] < 0 || in->dims[i] > out->dims[i] - low[i])
                        return shape_error(r->ret_why, "the operand does not fit into the result");
                to = part_of(&to, i, low[i], in->dims[i]);
        }
        int e = fill_with(r, in, out);
        return e == 0 && af_tensor_count(in) > 0 ? af_reference_copy(in, &to) : e;
}

/* The pieces, one after another along the axis, to or from the whole. */
static int run_pieces(const struct af_reference_node *r, const struct af_tensor *pieces, uint32_t n, const struct af_tensor *whole,
                      bool join) {
        uint32_t axis = (uint32_t)attr_int(r->n, AF_ATTR_AXIS);
        int64_t at = 0;
        int e = 0;

        for (uint32_t i = 0; i < n && e == 0; i++) {
                int64_t size = pieces[i].rank == whole->rank && axis < whole->rank ? pieces[i].dims[axis] : INT64_MAX;
                if (size > whole->dims[axis] - at)
                        return shape_error(r->ret_why, "the pieces do not fit the whole");
                struct af_tensor part = part_of(whole, axis, at, size);
                if (!same_dims(&part, &pieces[i]))
                        return shape_error(r->ret_why, "a piece has another shape than the whole");
                e = join ? af_reference_copy(&pieces[i], &part) : af_reference_copy(&part, &pieces[i]);
                at += size;
        }
        return e == 0 && at != whole->dims[axis] ? shape_error(r->ret_why, "the pieces do not fill the whole") : e;
}

static int64_t index_of(const void *p, enum af_dtype d) {
        return d == AF_DTYPE_INT32 ? *(const int32_t *)p : *(const int64_t *)p;
}

/* Steps index through dims in row-major order. */
static void next_index(int64_t *index, const int64_t *dims, uint32_t rank) {
        for (uint32_t i = rank; i-- > 0;) {
                if (++index[i] < dims[i])
                        return;
                index[i] = 0;
        }
}

static int64_t place_of(const struct af_tensor *t, const int64_t *index) {
        int64_t at = 0;

        for (uint32_t i = 0; i < t->rank; i++)
                at += index[i] * t->strides[i];
        return at;
}

/* As gather's indices: negative ones count from the end, those out of range give zeros. */
static int run_gather_elements(const struct af_reference_node *r, const struct af_tensor *in, struct af_tensor *out) {
        const struct af_tensor *data = &in[0], *where = &in[1];
        uint32_t axis = (uint32_t)attr_int(r->n, AF_ATTR_AXIS);
        int64_t index[AF_LIMIT_RANK] = {0}, count = af_tensor_count(out);
        unsigned size = af_dtype_size(data->dtype), index_size = af_dtype_size(where->dtype);

        if (!same_dims(where, out) || data->rank != out->rank || axis >= out->rank)
                return shape_error(r->ret_why, "the index has another shape than the result");
        for (uint32_t i = 0; i < out->rank; i++)
                if (i != axis && out->dims[i] > data->dims[i])
                        return shape_error(r->ret_why, "the index is larger than the data");
        for (int64_t k = 0; k < count; k++, next_index(index, out->dims, out->rank)) {
                int64_t from[AF_LIMIT_RANK];
                char *to = (char *)out->data + place_of(out, index) * size;
                int64_t at = index_of((const char *)where->data + place_of(where, index) * index_size, where->dtype);
                at += at < 0 ? data->dims[axis] : 0;
                memcpy(from, index, sizeof(from));
                from[axis] = at;
                if (at >= 0 && at < data->dims[axis])
                        memcpy(to, (const char *)data->data + place_of(data, from) * size, size);
                else
                        memset(to, 0, size);
        }
        return 0;
}

/* start + step * i: integers wrap; floats in float32 (float64: in double), each operation rounded, once more to the dtype. */
static void iota_element(const struct af_node *n, enum af_dtype d, int64_t i, void *p) {
        const struct af_attr *start = af_node_attr(n, AF_ATTR_START), *step = af_node_attr(n, AF_ATTR_STEP);

        if (af_dtype_kind(d) != 'f') {
                uint64_t v = (uint64_t)start->i + (uint64_t)step->i * (uint64_t)i;
                memcpy(p, &v, af_dtype_size(d));
        } else if (d == AF_DTYPE_FLOAT64) {
                double by = (step->is_int ? (double)step->i : step->f) * (double)i;
                double v = (start->is_int ? (double)start->i : start->f) + by;
                memcpy(p, &v, sizeof(v));
        } else {
                float by = (step->is_int ? (float)step->i : (float)step->f) * (float)i;
                float v = (start->is_int ? (float)start->i : (float)start->f) + by;
                af_reference_float_put(p, d, (double)v);
        }
}

static int run_iota(const struct af_reference_node *r, struct af_tensor *out) {
        uint32_t axis = (uint32_t)attr_int(r->n, AF_ATTR_AXIS);
        struct af_tensor line = *out;
        int e;

        if (axis >= out->rank || !af_node_attr(r->n, AF_ATTR_START) || !af_node_attr(r->n, AF_ATTR_STEP))
                return shape_error(r->ret_why, "the axis is outside of the result");
        if (af_tensor_count(out) == 0)
                return 0;
        char *values = malloc((size_t)out->dims[axis] * 8);
        if (!values)
                return -ENOMEM;
        for (int64_t i = 0; i < out->dims[axis]; i++)
                iota_element(r->n, out->dtype, i, values + i * (int64_t)af_dtype_size(out->dtype));
        line.data = values;
        memset(line.strides, 0, sizeof(line.strides));
        line.strides[axis] = 1;
        e = af_reference_copy(&line, out);
        free(values);
        return e;
}

int af_reference_move(const struct af_reference_node *r, const struct af_tensor *in, struct af_tensor *out) {
        switch (r->n->op) {
        case AF_OP_TRANSPOSE:
                return run_transpose(r, in, out);
        case AF_OP_SLICE:
                return run_slice(r, in, out);
        case AF_OP_PAD:
                return run_pad(r, in, out);
        case AF_OP_CONCAT:
                return run_pieces(r, in, r->n->n_in, out, true);
        case AF_OP_SPLIT:
                return run_pieces(r, out, r->n->n_out, in, false);
        case AF_OP_GATHER_ELEMENTS:
                return run_gather_elements(r, in, out);
        case AF_OP_IOTA:
                return run_iota(r, out);
        default:
                *r->ret_why = "no definition for this op";
                return AF_REFERENCE_E_UNSUPPORTED;
        }
}
