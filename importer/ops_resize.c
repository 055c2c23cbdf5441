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
        if (strcmp(t, "half_pixel_symmetric") == 0) /* what rounding the size down cut off is cut off at both ends */
                return in / 2 * (1 - out / (scale * in)) + (o + 0.5) / scale - 0.5;
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

/* Which axes are named, all in order where none are. Returns how many; 0: refused. */
static uint32_t named_axes(struct import *im, const struct val *x, uint32_t *axes) {
        const Onnxm__Attribute *a = im_attr(im, "axes");
        uint32_t n = a ? (uint32_t)AF_MIN(a->n_ints, AF_LIMIT_RANK + 1) : x->rank, seen = 0;
        for (uint32_t i = 0; i < n && n <= x->rank; i++) {
                axes[i] = a ? (uint32_t)im_axis(im, a->ints[i], x->rank) : i;
                if (seen & 1u << axes[i])
                        n = AF_LIMIT_RANK; /* one twice */
                seen |= 1u << axes[i];
        }
        return im->error || n > x->rank ? 0 : n;
}

/* Sizes that keep the aspect: all named axes by the least, or the largest, of their scales. */
static void keep_aspect(const char *policy, const struct val *x, const uint32_t *axes, uint32_t n, double *size, double *scale) {
        double all = scale[axes[0]];
        for (uint32_t i = 1; i < n; i++)
                all = strcmp(policy, "not_larger") == 0 ? AF_MIN(all, scale[axes[i]]) : AF_MAX(all, scale[axes[i]]);
        for (uint32_t i = 0; i < n; i++) {
                scale[axes[i]] = all;
                size[axes[i]] = floor(all * (double)x->dims[axes[i]] + 0.5);
        }
}

/* Scales or sizes of the named axes, from operands by position or an attribute. */
static bool targets(struct import *im, const struct val *x, int64_t *out, double *scale) {
        bool old = im->m->opset < 11;
        struct val *given = old ? im->in[1] : im->in[2], *sizes = old ? NULL : im->in[3];
        const Onnxm__Attribute *attr = im_attr(im, "scales");
        uint32_t axes[AF_LIMIT_RANK], n = named_axes(im, x, axes), n_given = n;
        const float *scales = attr ? attr->floats : NULL;
        const int64_t *to = sizes && im_count(sizes) ? im_ints(im, sizes, &n_given) : NULL;
        const char *policy = text_attr(im, "keep_aspect_ratio_policy", "stretch");
        double size[AF_LIMIT_RANK];
        if (!to && given && given->dtype == AF_DTYPE_FLOAT32 && im_count(given)) {
                scales = (const float *)im_bytes(im, given);
                n_given = (uint32_t)im_count(given);
        }
        bool known = !im->error && n && (to || scales) && n_given == n && (!attr || attr->n_floats == n);
        for (uint32_t i = 0; i < x->rank; i++) {
                known = known && x->dims[i] >= 1;
                scale[i] = 1;
                size[i] = (double)x->dims[i];
        }
        for (uint32_t i = 0; known && i < n; i++) {
                float s = 0;
                if (!to)
                        memcpy(&s, scales + i, sizeof(s));
                scale[axes[i]] = to ? (double)to[i] / size[axes[i]] : (double)s;
                size[axes[i]] = to ? (double)to[i] : floor(size[axes[i]] * (double)s);
        }
        if (known && to && strcmp(policy, "stretch") != 0)
                keep_aspect(policy, x, axes, n, size, scale);
        for (uint32_t i = 0; i < x->rank; i++) {
                known = known && size[i] >= 1 && size[i] <= MAX_OUT;
                out[i] = known ? (int64_t)size[i] : 0;
        }
        if (!known)
                im_refuse(im, "shape of %s", im->node->op_type);
        return known;
}

/* Where tf_crop_and_resize cuts, start and end per axis; 0 and 1 for those that are not named. False: refused. */
static bool crop_of(struct import *im, const struct val *x, float (*range)[2]) {
        uint32_t axes[AF_LIMIT_RANK], n = named_axes(im, x, axes);
        struct val *roi = im->in[1];
        const uint8_t *bytes = roi && roi->dtype == AF_DTYPE_FLOAT32 && im_count(roi) == 2 * (int64_t)n ? im_bytes(im, roi) : NULL;
        for (uint32_t i = 0; i < n && bytes; i++) {
                memcpy(&range[axes[i]][0], bytes + i * sizeof(float), sizeof(float));
                memcpy(&range[axes[i]][1], bytes + (i + n) * sizeof(float), sizeof(float));
        }
        if (!bytes)
                im_refuse(im, "shape parameter of %s is not known", im->node->op_type);
        return bytes != NULL;
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
        if (im_attr_int(im, "antialias", 0)) {
                im_refuse(im, "op %s with antialias", im->node->op_type);
                return;
        }
        enum af_dtype d = x->dtype;
        float range[AF_LIMIT_RANK][2];
        bool crop = strcmp(r.transform, "tf_crop_and_resize") == 0;
        for (uint32_t i = 0; i < x->rank; i++) {
                range[i][0] = 0;
                range[i][1] = 1;
        }
        if (crop && !crop_of(im, x, range))
                return;
        if (r.mode != 'n')
                x = im_cast(im, x, AF_DTYPE_FLOAT32);
        for (uint32_t i = 0; x && !im->error && i < x->rank; i++) {
                struct taps t;
                bool cut = range[i][0] != 0 || range[i][1] != 1;
                if ((out[i] != x->dims[i] || scale[i] != 1 || cut) && plan_axis(im, &r, x->dims[i], out[i], scale[i], range[i], &t))
                        x = resize_axis(im, x, i, out[i], &t, r.extrapolation);
        }
        im->out[0] = im_cast(im, x, d);
}

const struct handler im_ops_resize[] = {
        {"Resize", resize, 0},
        {"Upsample", resize, 0},
        {NULL, NULL, 0},
};
