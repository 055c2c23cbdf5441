/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resize and Upsample: axis by axis, each output takes 1, 2 or 4 elements with weights that the shapes alone decide. So an axis is a
 * gather per tap with a constant index, and a weighted sum.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "importer/import.h"

#define TAPS    4
#define MAX_OUT (1 << 20) /* the indices and weights of an axis are constants */

struct resize {
        char mode; /* n, l, c */
        const char *transform, *nearest;
        double cubic_a, extrapolation;
        bool exclude;
};
/* One axis: for output o, sum over taps of weight[t][o] * x[index[t][o]]; outside: takes the extrapolation value. */
struct taps {
        uint32_t n;
        int32_t *index[TAPS];
        float *weight[TAPS];
        uint8_t *outside;
        bool any_outside;
};

static const char *text_attr(struct import *im, const char *name, const char *otherwise) {
        const Onnxm__Attribute *a = im_attr(im, name);
        char *s = a ? af_arena_alloc(im->arena, a->s.len + 1) : NULL;
        if (!s)
                return otherwise;
        if (a->s.len)
                memcpy(s, a->s.data, a->s.len);
        s[a->s.len] = 0;
        return s;
}

/* Where output o of an axis lies in the input. */
static double origin(const struct resize *r, double o, double in, double out, double scale, const float *roi) {
        const char *t = r->transform;
        if (strcmp(t, "asymmetric") == 0)
                return o / scale;
        if (strcmp(t, "align_corners") == 0)
                return in * scale == 1 ? 0 : o * (in - 1) / (in * scale - 1);
        if (strcmp(t, "tf_half_pixel_for_nn") == 0)
                return (o + 0.5) / scale;
        if (strcmp(t, "pytorch_half_pixel") == 0 && out <= 1)
                return 0;
        if (strcmp(t, "tf_crop_and_resize") == 0)
                return out > 1 ? (double)roi[0] * (in - 1) + o * (double)(roi[1] - roi[0]) * (in - 1) / (out - 1)
                               : 0.5 * (double)(roi[0] + roi[1]) * (in - 1);
        return (o + 0.5) / scale - 0.5;
}

static double nearest(const char *mode, double x) {
        if (strcmp(mode, "floor") == 0)
                return floor(x);
        if (strcmp(mode, "ceil") == 0)
                return ceil(x);
        return strcmp(mode, "round_prefer_ceil") == 0 ? floor(x + 0.5) : ceil(x - 0.5);
}

/* Weights around x, the first for element *ret_first. */
static uint32_t weights(const struct resize *r, double x, double *w, double *ret_first) {
        double a = r->cubic_a, f = x - floor(x), g = 1 - f;
        *ret_first = floor(x);
        if (r->mode == 'n') {
                *ret_first = nearest(r->nearest, x);
                w[0] = 1;
                return 1;
        }
        if (r->mode == 'l') {
                w[0] = g;
                w[1] = f;
                return 2;
        }
        *ret_first -= 1;
        w[0] = ((a * (f + 1) - 5 * a) * (f + 1) + 8 * a) * (f + 1) - 4 * a;
        w[1] = ((a + 2) * f - (a + 3)) * f * f + 1;
        w[2] = ((a + 2) * g - (a + 3)) * g * g + 1;
        w[3] = ((a * (g + 1) - 5 * a) * (g + 1) + 8 * a) * (g + 1) - 4 * a;
        return 4;
}

static bool plan_axis(struct import *im, const struct resize *r, int64_t in, int64_t out, double scale, const float *roi, struct taps *t) {
        double w[TAPS], first;
        *t = (struct taps){.n = r->mode == 'n' ? 1 : r->mode == 'l' ? 2 : 4, .outside = af_arena_calloc(im->arena, (size_t)out, 1)};
        for (uint32_t k = 0; k < t->n; k++) {
                t->index[k] = af_arena_calloc(im->arena, (size_t)out, sizeof(int32_t));
                t->weight[k] = af_arena_calloc(im->arena, (size_t)out, sizeof(float));
                if (!t->index[k] || !t->weight[k] || !t->outside) {
                        im->error = -ENOMEM;
                        return false;
                }
        }
        for (int64_t o = 0; o < out; o++) {
                double x = origin(r, (double)o, (double)in, (double)out, scale, roi), sum = 0;
                weights(r, x, w, &first);
                for (uint32_t k = 0; k < t->n; k++) {
                        double at = first + k;
                        if (r->exclude && (at < 0 || at >= (double)in))
                                w[k] = 0;
                        sum += w[k];
                        t->index[k][o] = (int32_t)AF_MAX(0, AF_MIN(at, (double)in - 1));
                }
                for (uint32_t k = 0; k < t->n; k++)
                        t->weight[k][o] = (float)(r->exclude ? w[k] / sum : w[k]);
                t->outside[o] = strcmp(r->transform, "tf_crop_and_resize") == 0 && (x < 0 || x > (double)in - 1);
                t->any_outside |= t->outside[o];
        }
        return true;
}

static struct val *resize_axis(struct import *im, struct val *x, uint32_t axis, int64_t out, const struct taps *t, double outside) {
        struct af_attr attr = {.key = AF_ATTR_AXIS, .i = axis};
        int64_t line[AF_LIMIT_RANK];
        struct val *y = NULL;
        for (uint32_t i = 0; x && i < x->rank; i++)
                line[i] = i == axis ? out : 1;
        for (uint32_t k = 0; k < t->n && !im->error; k++) {
                struct val *in[] = {x, im_known(im, AF_DTYPE_INT32, 1, &out, t->index[k])};
                struct val *tap = im_node(im, AF_OP_GATHER, in, 2, &attr, 1, AF_DTYPE_INVALID);
                if (t->n > 1)
                        tap = im_binary(im, AF_OP_MUL, tap, im_known(im, AF_DTYPE_FLOAT32, x->rank, line, t->weight[k]));
                y = y ? im_binary(im, AF_OP_ADD, y, tap) : tap;
        }
        if (t->any_outside && y)
                y = im_where(im, im_known(im, AF_DTYPE_BOOL, x->rank, line, t->outside), im_scalar(im, y->dtype, outside), y);
        return y;
}

/* Scales or sizes of all axes, from operands by position or an attribute. */
static bool targets(struct import *im, const struct val *x, int64_t *out, double *scale) {
        bool old = im->m->opset < 11;
        struct val *given = old ? im->in[1] : im->in[2], *sizes = old ? NULL : im->in[3];
        const Onnxm__Attribute *attr = im_attr(im, "scales");
        uint32_t n = x->rank;
        const float *scales = attr ? attr->floats : NULL;
        const int64_t *to = sizes && im_count(sizes) ? im_ints(im, sizes, &n) : NULL;
        if (!to && given && given->dtype == AF_DTYPE_FLOAT32 && im_count(given)) {
                scales = (const float *)im_bytes(im, given);
                n = (uint32_t)im_count(given);
        }
        if (im->error || (!to && !scales) || n != x->rank || (attr && attr->n_floats != n)) {
                im_refuse(im, "shape of %s", im->node->op_type);
                return false;
        }
        for (uint32_t i = 0; i < n; i++) {
                float s = 0;
                if (!to)
                        memcpy(&s, scales + i, sizeof(s));
                scale[i] = to ? (double)to[i] / (double)x->dims[i] : (double)s;
                double size = to ? (double)to[i] : floor((double)x->dims[i] * scale[i]);
                if (x->dims[i] < 1 || !(size >= 1 && size <= MAX_OUT)) {
                        im_refuse(im, "shape of %s", im->node->op_type);
                        return false;
                }
                out[i] = (int64_t)size;
        }
        return !im->error;
}

static void resize(struct import *im) {
        struct val *x = im->in[0];
        int64_t out[AF_LIMIT_RANK];
        double scale[AF_LIMIT_RANK];
        bool old = im->m->opset < 11;
        struct resize r = {.mode = text_attr(im, "mode", "nearest")[0],
                           .transform = old ? "asymmetric" : text_attr(im, "coordinate_transformation_mode", "half_pixel"),
                           .nearest = old ? "floor" : text_attr(im, "nearest_mode", "round_prefer_floor"),
                           .cubic_a = im_attr_float(im, "cubic_coeff_a", -0.75),
                           .extrapolation = im_attr_float(im, "extrapolation_value", 0),
                           .exclude = im_attr_int(im, "exclude_outside", 0) != 0};
        if (!x || !targets(im, x, out, scale))
                return;
        if (im_attr(im, "axes") || im_attr_int(im, "antialias", 0) || strcmp(r.transform, "half_pixel_symmetric") == 0) {
                im_refuse(im, "op %s with axes or antialias", im->node->op_type);
                return;
        }
        enum af_dtype d = x->dtype;
        bool crop = strcmp(r.transform, "tf_crop_and_resize") == 0;
        const float *roi = crop && im->in[1] && im->in[1]->dtype == AF_DTYPE_FLOAT32 && im_count(im->in[1]) == 2 * (int64_t)x->rank
                                   ? (const float *)im_bytes(im, im->in[1])
                                   : NULL;
        if (crop && !roi)
                im_refuse(im, "shape parameter of %s is not known", im->node->op_type);
        if (r.mode != 'n')
                x = im_cast(im, x, AF_DTYPE_FLOAT32);
        for (uint32_t i = 0; x && !im->error && i < x->rank; i++) {
                struct taps t;
                float range[2] = {0, 1};
                if (roi) {
                        memcpy(&range[0], roi + i, sizeof(float));
                        memcpy(&range[1], roi + i + x->rank, sizeof(float));
                }
                if ((out[i] != x->dims[i] || scale[i] != 1 || crop) && plan_axis(im, &r, x->dims[i], out[i], scale[i], range, &t))
                        x = resize_axis(im, x, i, out[i], &t, r.extrapolation);
        }
        im->out[0] = im_cast(im, x, d);
}

const struct handler im_ops_resize[] = {
        {"Resize", resize, 0},
        {"Upsample", resize, 0},
        {NULL, NULL, 0},
};
