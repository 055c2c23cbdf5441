/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that move elements or pick them: slices, concatenation, padding, gathers. */
#include <string.h>

#include "importer/import.h"

static void transpose(struct import *im) {
        struct val *x = im->in[0];
        const Onnxm__Attribute *a = im_attr(im, "perm");
        int64_t perm[AF_LIMIT_RANK];
        if (!x)
                return;
        if (a && a->n_ints != x->rank) {
                im_refuse(im, "shape of Transpose's perm");
                return;
        }
        for (uint32_t i = 0; i < x->rank; i++)
                perm[i] = a ? im_axis(im, a->ints[i], x->rank) : x->rank - 1 - i;
        im->out[0] = im_transpose(im, x, perm);
}

static void concat(struct import *im) {
        struct val *x = im->in[0];
        int64_t axis = x ? im_axis(im, im_attr_int(im, "axis", im->m->opset < 4), x->rank) : 0;
        im->out[0] = im_concat(im, im->in, im->n_in, (uint32_t)axis);
}

/* Sizes of the pieces: stated, or equal with the last one smaller. */
static void split(struct import *im) {
        struct val *x = im->in[0];
        const Onnxm__Attribute *a = im_attr(im, "split");
        const int64_t *sizes = a ? a->ints : NULL;
        uint32_t n = a ? (uint32_t)a->n_ints : (uint32_t)im->node->n_output;
        if (im->in[1])
                sizes = im_ints(im, im->in[1], &n);
        if (!x || im->error)
                return;
        uint32_t axis = (uint32_t)im_axis(im, im_attr_int(im, "axis", 0), x->rank);
        if (!n || n != im->node->n_output || axis >= x->rank) {
                im_refuse(im, "shape of Split's pieces");
                return;
        }
        int64_t each = (x->dims[axis] + n - 1) / n, at = 0;
        for (uint32_t i = 0; i < n && !im->error; i++) {
                int64_t size = sizes ? sizes[i] : AF_MIN(each, x->dims[axis] - at);
                if (size < 0 || at + size > x->dims[axis])
                        im_refuse(im, "shape of Split's pieces");
                im->out[i] = im_slice_axis(im, x, axis, at, at + size);
                at += size;
        }
        if (at != x->dims[axis])
                im_refuse(im, "shape of Split's pieces");
}

static int64_t clamp(int64_t v, int64_t lo, int64_t hi) {
        return v < lo ? lo : v > hi ? hi : v;
}
/* One axis of a box from ONNX's start, end and step, which may lie outside and count from the end. */
static void cut(struct import *im, const struct val *x, struct im_box *box, int64_t axis, int64_t start, int64_t end, int64_t step) {
        int64_t at = im_axis(im, axis, x->rank), len = x->rank ? x->dims[at] : 0, low = step < 0 ? -1 : 0;
        if (step == 0 || !x->rank) {
                im_refuse(im, "shape of Slice");
                return;
        }
        step = clamp(step, -AF_MAX(len, 1), AF_MAX(len, 1));
        start = clamp(start < 0 ? start + len : start, 0, step < 0 ? len - 1 : len);
        end = clamp(end < 0 ? end + len : end, low, len);
        int64_t n = step > 0 ? (end - start + step - 1) / step : (start - end - step - 1) / -step;
        if (len == 0 || n <= 0) {
                box->start[at] = box->stop[at] = 0;
                box->step[at] = 1;
        } else {
                box->start[at] = start;
                box->stop[at] = end;
                box->step[at] = step;
        }
}
bool im_slice_box(struct import *im, struct val *const *in, uint32_t n_in, struct im_box *ret_box) {
        const struct val *x = in[0];
        const int64_t *given[4] = {0}; /* starts, ends, axes, steps */
        static const char *const names[] = {"starts", "ends", "axes", "steps"};
        uint32_t n[4] = {0};
        for (uint32_t i = 0; i < 4; i++) {
                const Onnxm__Attribute *a = im_attr(im, names[i]);
                bool operand = i + 1 < n_in && in[i + 1];
                given[i] = operand ? im_ints(im, in[i + 1], &n[i]) : a ? a->ints : NULL;
                n[i] = operand ? n[i] : a ? (uint32_t)a->n_ints : 0;
        }
        if (im->error || !x)
                return false;
        if (!given[0] || n[0] != n[1] || (given[2] && n[2] != n[0]) || (given[3] && n[3] != n[0]) || n[0] > x->rank) {
                im_refuse(im, "shape of Slice");
                return false;
        }
        *ret_box = im_box_all(x);
        for (uint32_t i = 0; i < n[0]; i++)
                cut(im, x, ret_box, given[2] ? given[2][i] : i, given[0][i], given[1][i], given[3] ? given[3][i] : 1);
        return !im->error;
}
static void slice(struct import *im) {
        struct im_box box;
        if (im_slice_box(im, im->in, im->n_in, &box))
                im->out[0] = im_slice(im, im->in[0], &box);
}

/* Along one axis: what stands before and after it, by mode. A mirrored piece is a slice with step -1. */
static struct val *pad_axis(struct import *im, struct val *x, uint32_t axis, int64_t low, int64_t high, char mode) {
        struct val *in[3];
        uint32_t n = 0;
        int64_t len = x->dims[axis], dims[AF_LIMIT_RANK];
        struct im_box box = im_box_all(x);
        if ((mode == 'r' && AF_MAX(low, high) >= len) || (mode == 'w' && AF_MAX(low, high) > len) || len == 0) {
                im_refuse(im, "shape: Pad by more than there is");
                return NULL;
        }
        memcpy(dims, x->dims, sizeof(dims));
        for (int side = 0; side < 2; side++) {
                int64_t width = side ? high : low;
                if (side)
                        in[n++] = x;
                if (!width)
                        continue;
                if (mode == 'e') {
                        int64_t at = side ? len - 1 : 0;
                        dims[axis] = width;
                        in[n++] = im_expand(im, im_slice_axis(im, x, axis, at, at + 1), x->rank, dims);
                } else if (mode == 'w') {
                        in[n++] = im_slice_axis(im, x, axis, side ? 0 : len - width, side ? width : len);
                } else {
                        box.start[axis] = side ? len - 2 : width;
                        box.stop[axis] = side ? len - 2 - width : 0;
                        box.step[axis] = -1;
                        in[n++] = im_slice(im, x, &box);
                }
        }
        return im->error ? NULL : im_concat(im, in, n, axis);
}

#define MAX_PAD (INT64_C(1) << 40) /* beyond, no tensor is that large */

/* Amounts before and after each axis: attribute, or operand since opset 11 (for some axes only since 18). */
static bool pad_amounts(struct import *im, const struct val *x, int64_t *low, int64_t *high) {
        const Onnxm__Attribute *a = im_attr(im, "pads") ? im_attr(im, "pads") : im_attr(im, "paddings");
        uint32_t n = a ? (uint32_t)a->n_ints : 0, n_axes = 0;
        const int64_t *pads = im->in[1] ? im_ints(im, im->in[1], &n) : a ? a->ints : NULL;
        const int64_t *axes = im->in[3] ? im_ints(im, im->in[3], &n_axes) : NULL;
        n_axes = im->in[3] ? n_axes : x->rank;
        if (im->error || !pads || n != 2 * n_axes || n_axes > x->rank) {
                im_refuse(im, "shape of Pad's amounts");
                return false;
        }
        for (uint32_t i = 0; i < n_axes; i++) {
                int64_t at = axes ? im_axis(im, axes[i], x->rank) : i;
                low[at] = clamp(pads[i], -MAX_PAD, MAX_PAD);
                high[at] = clamp(pads[i + n_axes], -MAX_PAD, MAX_PAD);
        }
        return !im->error;
}
static void pad(struct import *im) {
        struct val *x = im->in[0], *fill = im->in[2];
        int64_t low[AF_LIMIT_RANK] = {0}, high[AF_LIMIT_RANK] = {0};
        const Onnxm__Attribute *mode = im_attr(im, "mode");
        char m = mode && mode->s.len ? (char)mode->s.data[0] : 'c';
        if (!x || !pad_amounts(im, x, low, high))
                return;
        struct im_box box = im_box_all(x);
        for (uint32_t i = 0; i < x->rank; i++) { /* negative amounts cut off */
                box.start[i] = AF_MAX(-low[i], 0);
                box.stop[i] = AF_MAX(x->dims[i] - AF_MAX(-high[i], 0), box.start[i]);
                low[i] = AF_MAX(low[i], 0);
                high[i] = AF_MAX(high[i], 0);
        }
        x = im_slice(im, x, &box);
        if (m == 'c') {
                if (fill)
                        fill = im_reshape(im, fill, 0, NULL);
                else if (x && im_attr_float(im, "value", 0) != 0)
                        fill = im_scalar(im, x->dtype, im_attr_float(im, "value", 0));
                im->out[0] = im_pad(im, x, low, high, fill);
                return;
        }
        for (uint32_t i = 0; x && i < x->rank; i++)
                if (low[i] || high[i])
                        x = pad_axis(im, x, i, low[i], high[i], m);
        im->out[0] = x;
}

static void tile(struct import *im) {
        struct val *x = im->in[0];
        uint32_t n;
        const int64_t *given = im_ints(im, im->in[1], &n);
        int64_t repeats[AF_LIMIT_RANK];
        if (im->error || !x)
                return;
        if (im->m->opset < 6 && n == 1 && im->in[2]) { /* how often, and along which axis */
                uint32_t n_axes;
                const int64_t *axis = im_ints(im, im->in[2], &n_axes);
                for (uint32_t i = 0; i < x->rank; i++)
                        repeats[i] = axis && axis[0] == i ? given[0] : 1;
        } else if (n == x->rank) {
                memcpy(repeats, given, n * sizeof(*given));
        } else {
                im_refuse(im, "shape of Tile's repeats");
                return;
        }
        struct af_attr attr = im_attr_dims(im, AF_ATTR_REPEATS, repeats, x->rank);
        im->out[0] = im_node(im, AF_OP_TILE, &x, 1, &attr, 1, AF_DTYPE_INVALID);
}

#define MAX_BLOCK 4096

static struct val *reordered(struct import *im, struct val *x, const int64_t *split, const int64_t *perm, const int64_t *merged) {
        return im_reshape(im, im_transpose(im, im_reshape(im, x, 6, split), perm), 4, merged);
}
static void depth_to_space(struct import *im) {
        struct val *x = im->in[0];
        int64_t b = im_attr_int(im, "blocksize", 1);
        const Onnxm__Attribute *mode = im_attr(im, "mode");
        bool crd = mode && mode->s.len && mode->s.data[0] == 'C';
        if (!x || x->rank != 4 || b < 1 || b > MAX_BLOCK || x->dims[1] % (b * b)) {
                im_refuse(im, "shape of DepthToSpace");
                return;
        }
        int64_t n = x->dims[0], c = x->dims[1] / (b * b), h = x->dims[2], w = x->dims[3];
        im->out[0] = crd ? reordered(im, x, (int64_t[]){n, c, b, b, h, w}, (int64_t[]){0, 1, 4, 2, 5, 3}, (int64_t[]){n, c, h * b, w * b})
                         : reordered(im, x, (int64_t[]){n, b, b, c, h, w}, (int64_t[]){0, 3, 4, 1, 5, 2}, (int64_t[]){n, c, h * b, w * b});
}
static void space_to_depth(struct import *im) {
        struct val *x = im->in[0];
        int64_t b = im_attr_int(im, "blocksize", 1);
        if (!x || x->rank != 4 || b < 1 || b > MAX_BLOCK || x->dims[2] % b || x->dims[3] % b) {
                im_refuse(im, "shape of SpaceToDepth");
                return;
        }
        int64_t n = x->dims[0], c = x->dims[1], h = x->dims[2] / b, w = x->dims[3] / b;
        const Onnxm__Attribute *mode = im_attr(im, "mode");
        bool crd = mode && mode->s.len && mode->s.data[0] == 'C'; /* a channel's places side by side, not a place's channels */
        im->out[0] = reordered(im, x, (int64_t[]){n, c, h, b, w, b}, crd ? (int64_t[]){0, 1, 3, 5, 2, 4} : (int64_t[]){0, 3, 5, 1, 2, 4},
                               (int64_t[]){n, c * b * b, h, w});
}

static void gather(struct import *im) {
        struct af_attr axis = {.key = AF_ATTR_AXIS, .i = im->in[0] ? im_axis(im, im_attr_int(im, "axis", 0), im->in[0]->rank) : 0};
        im->out[0] = im_node(im, im->op, im->in, 2, &axis, 1, AF_DTYPE_INVALID);
}

/* The number of each row's element among `dims[batch .. batch + k)` of x: negative entries count from the end of their own axis. */
static struct val *row_number(struct import *im, const struct val *x, struct val *index, uint32_t batch, uint32_t k) {
        struct val *at = NULL;
        int64_t below = 1;
        index = im_index32(im, index);
        for (uint32_t i = k; i-- > 0;) {
                struct val *p = im_slice_axis(im, index, index ? index->rank - 1 : 0, i, i + 1);
                double len = (double)x->dims[batch + i];
                p = im_where(im, im_binary_scalar(im, AF_OP_LT, p, 0), im_binary_scalar(im, AF_OP_ADD, p, len), p);
                p = below == 1 ? p : im_binary_scalar(im, AF_OP_MUL, p, (double)below);
                at = at ? im_binary(im, AF_OP_ADD, at, p) : p;
                below *= x->dims[batch + i];
        }
        for (uint32_t axis = batch; axis-- > 0;) { /* each batch has elements of its own */
                int64_t line[AF_LIMIT_RANK];
                for (uint32_t i = 0; i < index->rank; i++)
                        line[i] = i == axis ? x->dims[axis] : 1;
                at = im_binary(im, AF_OP_ADD, at, im_iota(im, AF_DTYPE_INT32, index->rank, line, axis, 0, below));
                below *= x->dims[axis];
        }
        return at;
}
/* What the index picks from becomes one axis, and each of its rows one number. */
static void gather_nd(struct import *im) {
        struct val *x = im->in[0], *index = im->in[1];
        int64_t b = im_attr_int(im, "batch_dims", 0), dims[AF_LIMIT_RANK], k = index && index->rank ? index->dims[index->rank - 1] : 0;
        if (!x || b < 0 || k < 1 || b + k > x->rank || b >= index->rank || index->rank + x->rank - (uint64_t)k > AF_LIMIT_RANK) {
                im_refuse(im, "shape of GatherND");
                return;
        }
        struct val *at = k == 1 && b == 0 ? index : row_number(im, x, index, (uint32_t)b, (uint32_t)k);
        dims[0] = 1;
        for (uint32_t i = 0; i < b + k; i++)
                dims[0] *= x->dims[i];
        memcpy(dims + 1, x->dims + b + k, (x->rank - (size_t)(b + k)) * sizeof(*dims));
        struct af_attr zero = {.key = AF_ATTR_AXIS, .i = 0};
        struct val *in[] = {im_reshape(im, x, x->rank - (uint32_t)(b + k) + 1, dims), im_reshape(im, at, index->rank - 1, index->dims)};
        im->out[0] = im_node(im, AF_OP_GATHER, in, 2, &zero, 1, AF_DTYPE_INVALID);
}

/* A number given as a tensor of one element, of any numeric type. */
static bool known_number(struct import *im, struct val *v, int64_t otherwise, int64_t *ret) {
        const uint8_t *bytes = im_bytes(im, v);
        float f;
        *ret = otherwise;
        if (!v)
                return true;
        if (bytes && v->dtype == AF_DTYPE_FLOAT32 && im_count(v) == 1) {
                memcpy(&f, bytes, sizeof(f));
                *ret = f >= -2147483648.0f && f < 2147483648.0f ? (int64_t)f : otherwise;
                return true;
        }
        uint32_t n;
        const int64_t *p = im_ints(im, v, &n);
        *ret = p && n ? p[0] : otherwise;
        return p && n;
}

/* values: what stands elsewhere, and at the index. */
static void one_hot(struct import *im) {
        struct val *index = im->in[0], *values = im->in[2];
        int64_t depth;
        if (!index || !values || !known_number(im, im->in[1], 0, &depth))
                return;
        int64_t axis = im_axis(im, im_attr_int(im, "axis", -1), index->rank + 1);
        struct val *in[] = {im_index32(im, index), im_reshape(im, im_slice_axis(im, values, 0, 1, 2), 0, NULL),
                            im_reshape(im, im_slice_axis(im, values, 0, 0, 1), 0, NULL)};
        struct af_attr attrs[] = {{.key = AF_ATTR_DEPTH, .i = depth}, {.key = AF_ATTR_AXIS, .i = axis}};
        im->out[0] = im_node(im, AF_OP_ONE_HOT, in, 3, attrs, 2, AF_DTYPE_INVALID);
}

static void trilu(struct import *im) {
        int64_t k;
        if (!known_number(im, im->in[1], 0, &k))
                return;
        struct af_attr diagonal = {.key = AF_ATTR_DIAGONAL, .i = k};
        im->out[0] = im_node(im, im_attr_int(im, "upper", 1) ? AF_OP_TRIU : AF_OP_TRIL, im->in, 1, &diagonal, 1, AF_DTYPE_INVALID);
}

static void cumsum(struct import *im) {
        struct val *x = im->in[0];
        int64_t axis;
        if (!x || !known_number(im, im->in[1], 0, &axis))
                return;
        struct af_attr attrs[] = {{.key = AF_ATTR_AXIS, .i = im_axis(im, axis, x->rank)},
                                  {.key = AF_ATTR_EXCLUSIVE, .i = im_attr_int(im, "exclusive", 0) != 0},
                                  {.key = AF_ATTR_REVERSE, .i = im_attr_int(im, "reverse", 0) != 0}};
        im->out[0] = im_node(im, AF_OP_CUMSUM, &x, 1, attrs, 3, x->dtype);
}

/* The first len[b] steps of each batch backwards, the others as they are: a gather with a computed index. */
static void reverse_sequence(struct import *im) {
        struct val *x = im->in[0], *len = im->in[1];
        int64_t time = im_attr_int(im, "time_axis", 0), batch = im_attr_int(im, "batch_axis", 1), line[AF_LIMIT_RANK],
                column[AF_LIMIT_RANK];
        if (!x || !len || x->rank < 2 || time == batch || time < 0 || time > 1 || batch < 0 || batch > 1) {
                im_refuse(im, "shape of ReverseSequence");
                return;
        }
        for (uint32_t i = 0; i < x->rank; i++) {
                line[i] = i == time ? x->dims[i] : 1;
                column[i] = i == batch ? x->dims[i] : 1;
        }
        struct val *t = im_iota(im, AF_DTYPE_INT32, x->rank, line, (uint32_t)time, 0, 1);
        len = im_reshape(im, im_index32(im, len), x->rank, column);
        struct val *back = im_binary(im, AF_OP_SUB, im_binary_scalar(im, AF_OP_SUB, len, 1), t);
        struct val *in[] = {x, im_expand(im, im_where(im, im_binary(im, AF_OP_LT, t, len), back, t), x->rank, x->dims)};
        struct af_attr axis = {.key = AF_ATTR_AXIS, .i = time};
        im->out[0] = im_node(im, AF_OP_GATHER_ELEMENTS, in, 2, &axis, 1, AF_DTYPE_INVALID);
}

const struct handler im_ops_move[] = {
        {"Transpose", transpose, 0},
        {"Concat", concat, 0},
        {"Split", split, 0},
        {"Slice", slice, 0},
        {"Pad", pad, 0},
        {"Tile", tile, 0},
        {"DepthToSpace", depth_to_space, 0},
        {"SpaceToDepth", space_to_depth, 0},
        {"Gather", gather, AF_OP_GATHER},
        {"GatherElements", gather, AF_OP_GATHER_ELEMENTS},
        {"GatherND", gather_nd, 0},
        {"OneHot", one_hot, 0},
        {"Trilu", trilu, 0},
        {"CumSum", cumsum, 0},
        {"ReverseSequence", reverse_sequence, 0},
        {NULL, NULL, 0},
};
