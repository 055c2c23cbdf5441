/* SPDX-License-Identifier: Apache-2.0 */
/* Views, broadcasts and what is constant. */
#include <string.h>

#include "importer/import.h"

static void identity(struct import *im) {
        im->out[0] = im->in[0];
}

/* 0 copies a dimension (unless allowzero), -1 takes what is left. */
static void reshape(struct import *im) {
        struct val *x = im->in[0];
        const Onnxm__Attribute *attr = im_attr(im, "shape");
        const int64_t *given = attr ? attr->ints : NULL;
        uint32_t n = attr ? (uint32_t)attr->n_ints : 0, infer = AF_NONE;
        int64_t dims[AF_LIMIT_RANK], known = 1;
        if (!attr)
                given = im_ints(im, im->in[1], &n);
        if (im->error || !x)
                return;
        if (n > AF_LIMIT_RANK) {
                im_refuse(im, "shape of rank %u", n);
                return;
        }
        for (uint32_t i = 0; i < n; i++) {
                dims[i] = given[i] == 0 && !im_attr_int(im, "allowzero", 0) ? (i < x->rank ? x->dims[i] : 0) : given[i];
                if (dims[i] == -1)
                        infer = i;
                else if (__builtin_mul_overflow(known, dims[i], &known))
                        im_refuse(im, "shape of Reshape");
        }
        if (infer != AF_NONE)
                dims[infer] = known ? im_count(x) / known : 0;
        im->out[0] = im_reshape(im, x, n, dims);
}

/* Axes of Squeeze and Unsqueeze: attribute, or operand since opset 13. */
static const int64_t *view_axes(struct import *im, uint32_t *ret_n) {
        const Onnxm__Attribute *attr = im_attr(im, "axes");
        *ret_n = attr ? (uint32_t)attr->n_ints : 0;
        if (im->in[1])
                return im_ints(im, im->in[1], ret_n);
        return attr ? attr->ints : NULL;
}
static void squeeze(struct import *im) {
        uint32_t n, rank = 0;
        const int64_t *axes = view_axes(im, &n);
        int64_t dims[AF_LIMIT_RANK];
        struct val *x = im->in[0];
        for (uint32_t i = 0; x && !im->error && i < x->rank; i++) {
                bool drop = !axes && x->dims[i] == 1;
                for (uint32_t k = 0; k < n; k++)
                        drop |= im_axis(im, axes[k], x->rank) == i;
                if (!drop)
                        dims[rank++] = x->dims[i];
        }
        im->out[0] = im_reshape(im, x, rank, dims);
}
static void unsqueeze(struct import *im) {
        uint32_t n, from = 0;
        const int64_t *axes = view_axes(im, &n);
        int64_t dims[AF_LIMIT_RANK];
        struct val *x = im->in[0];
        if (im->error || !x)
                return;
        if (x->rank + n > AF_LIMIT_RANK) {
                im_refuse(im, "shape of rank %u", x->rank + n);
                return;
        }
        for (uint32_t i = 0; i < x->rank + n; i++) {
                bool added = false;
                for (uint32_t k = 0; k < n; k++)
                        added |= im_axis(im, axes[k], x->rank + n) == i;
                dims[i] = added || from >= x->rank ? 1 : x->dims[from++];
        }
        im->out[0] = im_reshape(im, x, x->rank + n, dims);
}
static void flatten(struct import *im) {
        struct val *x = im->in[0];
        int64_t dims[2] = {1, 1}, axis = im_attr_int(im, "axis", 1);
        if (!x)
                return;
        axis = axis == x->rank ? axis : im_axis(im, axis, x->rank);
        for (uint32_t i = 0; i < x->rank; i++)
                dims[i >= (uint64_t)axis] *= x->dims[i];
        im->out[0] = im_reshape(im, x, 2, dims);
}
/* Both ways: a 1 in the shape keeps the input's dimension. */
static void expand(struct import *im) {
        struct val *x = im->in[0];
        uint32_t n;
        const int64_t *given = im_ints(im, im->in[1], &n);
        int64_t dims[AF_LIMIT_RANK];
        if (im->error || !x)
                return;
        uint32_t rank = AF_MAX(n, x->rank);
        if (rank > AF_LIMIT_RANK) {
                im_refuse(im, "shape of rank %u", rank);
                return;
        }
        for (uint32_t i = 0; i < rank; i++) {
                int64_t a = i + x->rank >= rank ? x->dims[i + x->rank - rank] : 1, b = i + n >= rank ? given[i + n - rank] : 1;
                dims[i] = a == 1 ? b : a;
        }
        im->out[0] = im_expand(im, x, rank, dims);
}

static void constant(struct import *im) {
        const Onnxm__Attribute *a;
        struct af_onnx_tensor t;
        if ((a = im_attr(im, "value")) && a->t) {
                int r = im_tensor(im->arena, a->t, &t, im->diags);
                if (r)
                        im->error = r;
                else
                        im->out[0] = im_known(im, t.dtype, t.rank, t.dims, t.bytes);
        } else if ((a = im_attr(im, "value_float"))) {
                im->out[0] = im_known(im, AF_DTYPE_FLOAT32, 0, NULL, af_arena_memdup(im->arena, &a->f, 4));
        } else if ((a = im_attr(im, "value_int"))) {
                im->out[0] = im_known(im, AF_DTYPE_INT64, 0, NULL, af_arena_memdup(im->arena, &a->i, 8));
        } else if ((a = im_attr(im, "value_floats"))) {
                im->out[0] = im_known(im, AF_DTYPE_FLOAT32, 1, &(int64_t){(int64_t)a->n_floats},
                                      af_arena_memdup(im->arena, a->floats, 4 * a->n_floats));
        } else if ((a = im_attr(im, "value_ints"))) {
                im->out[0] =
                        im_known(im, AF_DTYPE_INT64, 1, &(int64_t){(int64_t)a->n_ints}, af_arena_memdup(im->arena, a->ints, 8 * a->n_ints));
        } else {
                im_refuse(im, "op Constant of this kind");
        }
}

/* Ops whose result is known from shapes and parameters alone. */
static void folded(struct import *im) {
        bool by_shape = strcmp(im->node->op_type, "Shape") == 0 || strcmp(im->node->op_type, "Size") == 0 ||
                        strcmp(im->node->op_type, "EyeLike") == 0;
        for (uint32_t i = 0; i < im->n_in && !by_shape; i++)
                if (im->in[i] && !im_bytes(im, im->in[i])) {
                        im_refuse(im, "op %s of values that are not known at import", im->node->op_type);
                        return;
                }
        im->out[0] = im_fold(im, im->node, im->in, im->n_in);
        if (!im->out[0]) {
                im_refuse(im, "op %s of this kind", im->node->op_type);
                return;
        }
        im->ret->n_folded++;
}

/* A small one is a constant, any other a number that is repeated. */
static void constant_of_shape(struct import *im) {
        uint32_t rank;
        const int64_t *dims = im_ints(im, im->in[0], &rank);
        const Onnxm__Attribute *a = im_attr(im, "value");
        struct af_onnx_tensor value = {.dtype = AF_DTYPE_FLOAT32, .rank = 1, .dims = {1}, .bytes = (const uint8_t *)"\0\0\0", .n_bytes = 4};
        int r = dims && a && a->t ? im_tensor(im->arena, a->t, &value, im->diags) : 0;
        im->error = im->error ? im->error : r;
        if (im->error)
                return;
        int64_t bytes = af_dtype_size(value.dtype);
        for (uint32_t i = 0; i < rank; i++)
                if (dims[i] < 0 || __builtin_mul_overflow(bytes, dims[i], &bytes))
                        im_refuse(im, "shape of ConstantOfShape");
        if (im->error || bytes <= IM_LARGE_BYTES || value.n_bytes != af_dtype_size(value.dtype)) {
                folded(im);
                return;
        }
        im->out[0] = im_expand(im, im_known(im, value.dtype, 0, NULL, value.bytes), rank, dims);
}

/* Inference: the data as it is, and a mask that keeps everything. */
static void dropout(struct import *im) {
        struct val *x = im->in[0];
        const uint8_t *training = im_bytes(im, im->in[2]), *ratio = im_bytes(im, im->in[1]);
        float r = 0.5f;
        if (ratio && im->in[1]->dtype == AF_DTYPE_FLOAT32)
                memcpy(&r, ratio, sizeof(r));
        if (im->in[2] && (!training || training[0]) && r != 0) {
                im_refuse(im, "op Dropout in training");
                return;
        }
        im->out[0] = x;
        if (im->node->n_output < 2 || !x)
                return;
        uint8_t *ones = af_arena_alloc(im->arena, (size_t)im_count(x));
        if (ones)
                memset(ones, 1, (size_t)im_count(x));
        im->out[1] = ones ? im_known(im, AF_DTYPE_BOOL, x->rank, x->dims, ones) : NULL;
}

const struct handler im_ops_shape[] = {
        {"Identity", identity, 0}, {"Reshape", reshape, 0}, {"Squeeze", squeeze, 0},   {"Unsqueeze", unsqueeze, 0},
        {"Flatten", flatten, 0},   {"Expand", expand, 0},   {"Constant", constant, 0}, {"ConstantOfShape", constant_of_shape, 0},
        {"Shape", folded, 0},      {"Size", folded, 0},     {"Range", folded, 0},      {"EyeLike", folded, 0},
        {"Dropout", dropout, 0},   {NULL, NULL, 0},
};
