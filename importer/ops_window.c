/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops over windows: pools as padded, strided slices combined axis by axis (a window of k x k is 2k slices), local response
 * normalisation, and the window functions of signal processing.
 */
#include <math.h>
#include <string.h>

#include "importer/import.h"

#define B(op, x, y)     im_binary(im, AF_OP_##op, x, y)
#define S(op, x, value) im_binary_scalar(im, AF_OP_##op, x, value)

#define MAX_KERNEL 64 /* along one axis */
#define MAX_STEP   (1 << 20)
#define MAX_DIRECT 8

/* One spatial axis. Windows start at o * stride - low. */
struct window {
        int64_t in, out, kernel, stride, dilation, low, high;
};

static int64_t item(const struct import *im, const char *name, size_t i, int64_t otherwise) {
        const Onnxm__Attribute *a = im_attr(im, name);
        return a && i < a->n_ints ? a->ints[i] : otherwise;
}
static int64_t ceil_div(int64_t a, int64_t b) {
        return (a + b - 1) / b;
}

static bool window_of(struct import *im, uint32_t i, int64_t in, uint32_t n, struct window *w) {
        const Onnxm__Attribute *mode = im_attr(im, "auto_pad");
        const char *pad = mode && mode->s.len ? (const char *)mode->s.data : "NOTSET";
        *w = (struct window){.in = in,
                             .kernel = item(im, "kernel_shape", i, 0),
                             .stride = item(im, "strides", i, 1),
                             .dilation = item(im, "dilations", i, 1)};
        if (w->kernel < 1 || w->kernel > MAX_KERNEL || w->stride < 1 || w->stride > MAX_STEP || w->dilation < 1 || w->dilation > MAX_STEP) {
                im_refuse(im, "shape of %s's window", im->node->op_type);
                return false;
        }
        int64_t reach = (w->kernel - 1) * w->dilation + 1;
        if (strncmp(pad, "SAME", 4) == 0) {
                w->out = ceil_div(in, w->stride);
                int64_t total = AF_MAX((w->out - 1) * w->stride + reach - in, 0);
                w->low = pad[5] == 'L' ? total - total / 2 : total / 2;
                w->high = total - w->low;
        } else {
                bool set = strncmp(pad, "VALID", 5) != 0;
                w->low = set ? AF_MIN(item(im, "pads", i, 0), reach) : 0;
                w->high = set ? AF_MIN(item(im, "pads", i + n, 0), reach) : 0;
                int64_t room = in + w->low + w->high - reach;
                bool up = im_attr_int(im, "ceil_mode", 0);
                w->out = room < 0 ? 0 : (up ? ceil_div(room, w->stride) : room / w->stride) + 1;
                if (up && w->out > 0 && (w->out - 1) * w->stride >= in + w->low)
                        w->out--; /* a window must start inside */
        }
        if (w->out < 1 || w->low < 0 || w->high < 0 || w->low >= reach || w->high >= reach)
                im_refuse(im, "shape of %s's window", im->node->op_type);
        return !im->error;
}

/* Element k of each window of one axis of the padded x. */
static struct val *tap(struct import *im, struct val *x, uint32_t axis, const struct window *w, int64_t k) {
        struct im_box box = im_box_all(x);
        box.step[axis] = w->stride;
        box.start[axis] = k * w->dilation;
        box.stop[axis] = box.start[axis] + (w->out - 1) * w->stride + 1;
        return im_slice(im, x, &box);
}
/*
 * op, which must be associative, over the windows of one axis of the padded x: element by element; with many, windows of 1, 2, 4, … are
 * doubled, and those of the kernel's bits stand one after another.
 */
static struct val *slide(struct import *im, enum af_op op, struct val *x, uint32_t axis, const struct window *w) {
        struct val *y = NULL;
        int64_t done = 0, doubled = w->kernel > MAX_DIRECT ? 1 : w->kernel + 1;
        for (int64_t k = 0; k < w->kernel && doubled > w->kernel && !im->error; k++)
                y = y ? im_binary(im, op, y, tap(im, x, axis, w, k)) : tap(im, x, axis, w, k);
        for (; doubled <= w->kernel && !im->error; doubled *= 2) {
                if (w->kernel & doubled) {
                        struct val *piece = tap(im, x, axis, w, done);
                        y = y ? im_binary(im, op, y, piece) : piece;
                        done += doubled;
                }
                int64_t shift = doubled * w->dilation, length = x->dims[axis];
                if (2 * doubled <= w->kernel)
                        x = im_binary(im, op, im_slice_axis(im, x, axis, 0, length - shift), im_slice_axis(im, x, axis, shift, length));
        }
        return y;
}
/* The first largest of each window, and its number from *at; both are replaced. */
static void slide_largest(struct import *im, struct val **x, struct val **at, uint32_t axis, const struct window *w) {
        struct val *y = tap(im, *x, axis, w, 0), *where = tap(im, *at, axis, w, 0);
        for (int64_t k = 1; k < w->kernel && !im->error; k++) {
                struct val *next = tap(im, *x, axis, w, k), *larger = B(GT, next, y);
                y = im_where(im, larger, next, y);
                where = im_where(im, larger, tap(im, *at, axis, w, k), where);
        }
        *x = y;
        *at = where;
}
/* The number of each element of x, row-major or with the spatial axes the other way round. */
static struct val *element_numbers(struct import *im, const struct val *x, bool columns) {
        struct val *all = NULL;
        int64_t stride = 1, line[AF_LIMIT_RANK];
        if (im_count(x) > INT32_MAX) {
                im_refuse(im, "shape of %s's indices", im->node->op_type);
                return NULL;
        }
        for (uint32_t i = x->rank; i-- > 0 && !im->error;) {
                uint32_t axis = columns && i >= 2 ? x->rank + 1 - i : i;
                for (uint32_t k = 0; k < x->rank; k++)
                        line[k] = k == axis ? x->dims[axis] : 1;
                struct val *one = im_iota(im, AF_DTYPE_INT32, x->rank, line, axis, 0, stride);
                all = all ? B(ADD, all, one) : one;
                stride *= x->dims[axis];
        }
        return all;
}

/* Elements that each window of the axis averages over: those inside, or also those of the padding. */
static int64_t inside(const struct window *w, int64_t o, bool padding) {
        int64_t n = 0, lo = padding ? -w->low : 0, hi = w->in + (padding ? w->high : 0);
        for (int64_t k = 0; k < w->kernel; k++) {
                int64_t at = o * w->stride - w->low + k * w->dilation;
                n += at >= lo && at < hi;
        }
        return n;
}
static struct val *divisors(struct import *im, const struct window *w, uint32_t rank, bool padding) {
        struct val *all = NULL;
        for (uint32_t i = 0; i < rank; i++) {
                float *p = af_arena_calloc(im->arena, (size_t)w[i].out, sizeof(*p));
                int64_t dims[AF_LIMIT_RANK];
                bool same = true;
                for (uint32_t k = i; k < rank; k++)
                        dims[k - i] = k == i ? w[i].out : 1;
                for (int64_t o = 0; p && o < w[i].out; o++) {
                        p[o] = (float)AF_MAX(inside(&w[i], o, padding), 1);
                        same = same && p[o] == p[0];
                }
                if (!p)
                        return NULL;
                struct val *one = same ? im_scalar(im, AF_DTYPE_FLOAT32, (double)p[0])
                                       : im_known(im, AF_DTYPE_FLOAT32, rank - i, dims, (const uint8_t *)p);
                all = all ? B(MUL, all, one) : one;
        }
        return all;
}

/* Windows of all spatial axes, and how far x is padded for them: as far as the last one reaches. False: refused. */
static bool windows_of(struct import *im, const struct val *x, struct window *w, int64_t *low, int64_t *high) {
        uint32_t n = x->rank - 2;
        for (uint32_t i = 0; i < n; i++) {
                if (!window_of(im, i, x->dims[i + 2], n, &w[i]))
                        return false;
                int64_t end = (w[i].out - 1) * w[i].stride + (w[i].kernel - 1) * w[i].dilation + 1;
                low[i + 2] = w[i].low;
                high[i + 2] = AF_MAX(end - w[i].in - w[i].low, 0);
        }
        return true;
}
static void average_pool(struct import *im) {
        struct val *x = im->in[0], *y;
        struct window w[AF_LIMIT_RANK];
        int64_t low[AF_LIMIT_RANK] = {0}, high[AF_LIMIT_RANK] = {0};
        if (!x || x->rank < 3 || !windows_of(im, x, w, low, high))
                return;
        y = im_pad(im, im_cast(im, x, AF_DTYPE_FLOAT32), low, high, NULL);
        for (uint32_t i = 2; i < x->rank; i++)
                y = slide(im, AF_OP_ADD, y, i, &w[i - 2]);
        y = B(DIV, y, divisors(im, w, x->rank - 2, im_attr_int(im, "count_include_pad", 0)));
        im->out[0] = im_cast(im, y, x->dtype);
}
/* (sum of |x|^p)^(1/p) */
static void lp_pool(struct import *im) {
        struct val *x = im->in[0], *y;
        struct window w[AF_LIMIT_RANK];
        int64_t low[AF_LIMIT_RANK] = {0}, high[AF_LIMIT_RANK] = {0};
        double p = (double)im_attr_int(im, "p", 2);
        if (!x || x->rank < 3 || p < 1 || !windows_of(im, x, w, low, high)) {
                im_refuse(im, "shape of LpPool");
                return;
        }
        x = im_cast(im, im->in[0], AF_DTYPE_FLOAT32);
        y = p == 2 ? im_unary(im, AF_OP_SQUARE, x) : im_unary(im, AF_OP_ABS, x);
        y = im_pad(im, p > 2 ? S(POW, y, p) : y, low, high, NULL);
        for (uint32_t i = 2; y && i < y->rank; i++)
                y = slide(im, AF_OP_ADD, y, i, &w[i - 2]);
        y = p == 1 ? y : p == 2 ? im_unary(im, AF_OP_SQRT, y) : S(POW, y, 1 / p);
        im->out[0] = im_cast(im, y, im->in[0]->dtype);
}
static void max_pool(struct import *im) {
        struct val *x = im->in[0], *y, *at = NULL;
        struct window w[AF_LIMIT_RANK];
        int64_t low[AF_LIMIT_RANK] = {0}, high[AF_LIMIT_RANK] = {0};
        if (!x || x->rank < 3 || !windows_of(im, x, w, low, high))
                return;
        enum af_dtype d = x->dtype;
        if (d != AF_DTYPE_UINT8 && d != AF_DTYPE_INT8 && af_dtype_kind(d) != 'f')
                im_refuse(im, "dtype %s of MaxPool", af_dtype_name(d));
        y = im_pad(im, x, low, high, im_scalar(im, d, d == AF_DTYPE_UINT8 ? 0 : d == AF_DTYPE_INT8 ? -128 : -INFINITY));
        if (im->node->n_output > 1)
                at = im_pad(im, element_numbers(im, x, im_attr_int(im, "storage_order", 0)), low, high, NULL);
        for (uint32_t i = x->rank; i-- > 2 && !im->error;) {
                if (at)
                        slide_largest(im, &y, &at, i, &w[i - 2]);
                else
                        y = slide(im, AF_OP_MAXIMUM, y, i, &w[i - 2]);
        }
        im->out[0] = y;
        if (at)
                im->out[1] = im_cast(im, at, AF_DTYPE_INT64);
}

/* x / (bias + alpha / size * sum of x^2 over `size` channels around)^beta */
static void lrn(struct import *im) {
        struct val *x = im->in[0], *sum;
        int64_t size = im_attr_int(im, "size", 1), low[AF_LIMIT_RANK] = {0}, high[AF_LIMIT_RANK] = {0};
        if (!x || x->rank < 2 || size < 1 || size > ONNX_MAX_IO) {
                im_refuse(im, "shape of LRN");
                return;
        }
        struct window w = {.in = x->dims[1], .out = x->dims[1], .kernel = size, .stride = 1, .dilation = 1};
        low[1] = (size - 1) / 2;
        high[1] = size - 1 - low[1];
        sum = slide(im, AF_OP_ADD, im_pad(im, im_unary(im, AF_OP_SQUARE, x), low, high, NULL), 1, &w);
        double alpha = im_attr_float(im, "alpha", (double)0.0001f), beta = im_attr_float(im, "beta", 0.75);
        struct val *base = S(ADD, S(MUL, sum, alpha / (double)size), im_attr_float(im, "bias", 1));
        im->out[0] = B(DIV, x, S(POW, base, beta));
}

/* a - b cos(2 pi n / size) + c cos(4 pi n / size) */
static void window_function(struct import *im) {
        static const struct {
                const char *name;
                double a, b, c;
        } kinds[] = {{"HannWindow", 0.5, 0.5, 0}, {"HammingWindow", 25.0 / 46, 21.0 / 46, 0}, {"BlackmanWindow", 0.42, 0.5, 0.08}};
        uint32_t n;
        const int64_t *size = im_ints(im, im->in[0], &n);
        enum af_dtype d = im_dtype((int32_t)im_attr_int(im, "output_datatype", 1));
        if (!size || n != 1 || size[0] < 0)
                return;
        double turn = 2 * 3.14159265358979323846 / (double)AF_MAX(size[0] - !im_attr_int(im, "periodic", 1), 1);
        struct val *at = im_iota(im, AF_DTYPE_FLOAT32, 1, size, 0, 0, 1);
        for (size_t i = 0; i < AF_ARRAY_SIZE(kinds); i++) {
                if (strcmp(kinds[i].name, im->node->op_type) != 0)
                        continue;
                struct val *y = S(ADD, S(MUL, im_unary(im, AF_OP_COS, S(MUL, at, turn)), -kinds[i].b), kinds[i].a);
                if (kinds[i].c != 0)
                        y = B(ADD, y, S(MUL, im_unary(im, AF_OP_COS, S(MUL, at, 2 * turn)), kinds[i].c));
                im->out[0] = im_cast(im, y, d);
        }
}

const struct handler im_ops_window[] = {
        {"MaxPool", max_pool, 0},
        {"AveragePool", average_pool, 0},
        {"LpPool", lp_pool, 0},
        {"LRN", lrn, 0},
        {"HannWindow", window_function, 0},
        {"HammingWindow", window_function, 0},
        {"BlackmanWindow", window_function, 0},
        {NULL, NULL, 0},
};
