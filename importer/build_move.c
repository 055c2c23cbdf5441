/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that move elements: slices, transposes, concatenations, padding, counting. */
#include <string.h>

#include "importer/import.h"

struct af_attr im_attr_dims(struct import *im, enum af_attr_key key, const int64_t *dims, uint32_t n) {
        struct af_attr a = {.key = key, .n = n};
        int r = im->error ? im->error : af_fragment_dims_const(im->f, dims, n, &a.dims);
        im->error = r;
        return a;
}

struct im_box im_box_all(const struct val *x) {
        struct im_box box = {0};
        for (uint32_t i = 0; x && i < x->rank; i++) {
                box.stop[i] = x->dims[i];
                box.step[i] = 1;
        }
        return box;
}

struct val *im_slice(struct import *im, struct val *x, const struct im_box *box) {
        bool all = true;
        if (im->error || !x)
                return NULL;
        for (uint32_t i = 0; i < x->rank; i++)
                all = all && box->start[i] == 0 && box->stop[i] == x->dims[i] && box->step[i] == 1;
        if (all)
                return x;
        struct af_attr attrs[] = {im_attr_dims(im, AF_ATTR_STARTS, box->start, x->rank),
                                  im_attr_dims(im, AF_ATTR_STOPS, box->stop, x->rank),
                                  {.key = AF_ATTR_STEPS, .ints = box->step, .n = x->rank}};
        return im_node(im, AF_OP_SLICE, &x, 1, attrs, 3, AF_DTYPE_INVALID);
}

struct val *im_slice_axis(struct import *im, struct val *x, uint32_t axis, int64_t start, int64_t stop) {
        struct im_box box = im_box_all(x);
        box.start[axis] = start;
        box.stop[axis] = stop;
        return im_slice(im, x, &box);
}

struct val *im_transpose(struct import *im, struct val *x, const int64_t *perm) {
        struct af_attr attr = {.key = AF_ATTR_PERM, .ints = perm, .n = x ? x->rank : 0};
        return x ? im_node(im, AF_OP_TRANSPOSE, &x, 1, &attr, 1, AF_DTYPE_INVALID) : NULL;
}

struct val *im_concat(struct import *im, struct val *const *in, uint32_t n, uint32_t axis) {
        struct val *parts[ONNX_MAX_IO];
        struct af_attr attr = {.key = AF_ATTR_AXIS, .i = axis};
        if (n == 1 || im->error)
                return in[0];
        if (n <= ONNX_MAX_IO)
                return im_node(im, AF_OP_CONCAT, in, n, &attr, 1, AF_DTYPE_INVALID);
        uint32_t each = (n + ONNX_MAX_IO - 1) / ONNX_MAX_IO, n_parts = 0;
        for (uint32_t i = 0; i < n; i += each)
                parts[n_parts++] = im_concat(im, in + i, AF_MIN(each, n - i), axis);
        return im_concat(im, parts, n_parts, axis);
}

struct val *im_pad(struct import *im, struct val *x, const int64_t *low, const int64_t *high, struct val *fill) {
        bool any = false;
        if (im->error || !x)
                return NULL;
        for (uint32_t i = 0; i < x->rank; i++)
                any |= low[i] || high[i];
        if (!any)
                return x;
        struct af_attr attrs[] = {im_attr_dims(im, AF_ATTR_LOW, low, x->rank), im_attr_dims(im, AF_ATTR_HIGH, high, x->rank)};
        return im_node(im, AF_OP_PAD, (struct val *[]){x, fill}, fill ? 2 : 1, attrs, 2, AF_DTYPE_INVALID);
}

struct val *im_iota(struct import *im, enum af_dtype d, uint32_t rank, const int64_t *dims, uint32_t axis, int64_t start, int64_t step) {
        struct af_attr attrs[] = {{.key = AF_ATTR_AXIS, .i = axis},
                                  im_attr_dims(im, AF_ATTR_SHAPE, dims, rank),
                                  {.key = AF_ATTR_START, .i = start, .f = (double)start, .is_int = true},
                                  {.key = AF_ATTR_STEP, .i = step, .f = (double)step, .is_int = true}};
        return im_node(im, AF_OP_IOTA, NULL, 0, attrs, 4, d);
}

struct val *im_index32(struct import *im, struct val *index) {
        if (im->error || !index || index->dtype == AF_DTYPE_INT32)
                return index;
        return im_cast(im, im_cast(im, index, AF_DTYPE_FLOAT32), AF_DTYPE_INT32);
}
