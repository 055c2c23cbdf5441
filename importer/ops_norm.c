/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, softmax and normalisations as ops of the table. */
#include <string.h>

#include "importer/import.h"

#define B(op, x, y)     im_binary(im, AF_OP_##op, x, y)
#define S(op, x, value) im_binary_scalar(im, AF_OP_##op, x, value)
#define U(op, x)        im_unary(im, AF_OP_##op, x)

/* Axes of a Reduce*: attribute or operand; none: all, or nothing with noop_with_empty_axes. */
struct axes {
        int64_t items[AF_LIMIT_RANK];
        uint32_t n;
        bool keepdims, noop;
};

static struct axes reduce_axes(struct import *im) {
        struct axes a = {.keepdims = im_attr_int(im, "keepdims", 1) != 0};
        const Onnxm__Attribute *attr = im_attr(im, "axes");
        const int64_t *given = attr ? attr->ints : NULL;
        uint32_t n = attr ? (uint32_t)attr->n_ints : 0, rank = im->in[0] ? im->in[0]->rank : 0;
        if (im->in[1])
                given = im_ints(im, im->in[1], &n);
        if (n > AF_LIMIT_RANK)
                im_refuse(im, "shape: %u axes", n);
        for (uint32_t i = 0; i < n && !im->error; i++)
                a.items[a.n++] = im_axis(im, given[i], rank);
        if (!n && im_attr_int(im, "noop_with_empty_axes", 0))
                a.noop = true;
        for (uint32_t i = 0; !n && i < rank; i++)
                a.items[a.n++] = i;
        return a;
}

static struct val *reduce(struct import *im, enum af_op op, struct val *x, const struct axes *a, bool keepdims) {
        return a->noop ? x : im_reduce(im, op, x, a->items, a->n, keepdims);
}
#define REDUCE(name, op)                                                                                                                   \
        static void name(struct import *im) {                                                                                              \
                struct axes a = reduce_axes(im);                                                                                           \
                im->out[0] = reduce(im, AF_OP_REDUCE_##op, im->in[0], &a, a.keepdims);                                                     \
        }
REDUCE(reduce_sum, SUM)
REDUCE(reduce_max, MAX)
REDUCE(reduce_min, MIN)
REDUCE(reduce_mean, MEAN)
REDUCE(reduce_prod, PROD)
static void reduce_l1(struct import *im) {
        struct axes a = reduce_axes(im);
        im->out[0] = reduce(im, AF_OP_REDUCE_SUM, U(ABS, im->in[0]), &a, a.keepdims);
}
static void reduce_l2(struct import *im) {
        struct axes a = reduce_axes(im);
        im->out[0] = U(SQRT, reduce(im, AF_OP_REDUCE_SUM, U(SQUARE, im->in[0]), &a, a.keepdims));
}
static void reduce_sum_square(struct import *im) {
        struct axes a = reduce_axes(im);
        im->out[0] = reduce(im, AF_OP_REDUCE_SUM, U(SQUARE, im->in[0]), &a, a.keepdims);
}
static void reduce_log_sum(struct import *im) {
        struct axes a = reduce_axes(im);
        im->out[0] = U(LOG, reduce(im, AF_OP_REDUCE_SUM, im->in[0], &a, a.keepdims));
}

static struct val *without_axes(struct import *im, struct val *x, const struct axes *a) {
        int64_t dims[AF_LIMIT_RANK];
        uint32_t n = 0;
        for (uint32_t i = 0; x && i < x->rank; i++) {
                bool gone = false;
                for (uint32_t k = 0; k < a->n; k++)
                        gone |= a->items[k] == i;
                if (!gone)
                        dims[n++] = x->dims[i];
        }
        return im_reshape(im, x, n, dims);
}
/* max + log(sum(e^(x - max))) */
static void reduce_log_sum_exp(struct import *im) {
        struct axes a = reduce_axes(im);
        struct val *x = im->in[0], *m = reduce(im, AF_OP_REDUCE_MAX, x, &a, true);
        struct val *y = B(ADD, U(LOG, reduce(im, AF_OP_REDUCE_SUM, U(EXP, B(SUB, x, m)), &a, true)), m);
        im->out[0] = a.keepdims ? y : without_axes(im, y, &a);
}

/* Before opset 13 softmax runs over all axes from `axis` on. */
static struct axes softmax_axes(struct import *im) {
        struct axes a = {.keepdims = true};
        uint32_t rank = im->in[0] ? im->in[0]->rank : 0;
        int64_t axis = im_axis(im, im_attr_int(im, "axis", im->m->opset < 13 ? 1 : -1), rank);
        for (int64_t i = axis; i < (int64_t)rank && (i == axis || im->m->opset < 13); i++)
                a.items[a.n++] = i;
        return a;
}
static void softmax(struct import *im) {
        struct axes a = softmax_axes(im);
        struct val *x = im->in[0], *e = U(EXP, B(SUB, x, reduce(im, AF_OP_REDUCE_MAX, x, &a, true)));
        im->out[0] = B(DIV, e, reduce(im, AF_OP_REDUCE_SUM, e, &a, true));
}
static void log_softmax(struct import *im) {
        struct axes a = softmax_axes(im);
        struct val *x = im->in[0], *d = B(SUB, x, reduce(im, AF_OP_REDUCE_MAX, x, &a, true));
        im->out[0] = B(SUB, d, U(LOG, reduce(im, AF_OP_REDUCE_SUM, U(EXP, d), &a, true)));
}

/* (x - mean) / sqrt(var + epsilon) over axes; *ret_mean and *ret_inverse keep the axes. */
static struct val *normalise(struct import *im, struct val *x, const struct axes *a, double epsilon, struct val **ret_mean,
                             struct val **ret_inverse) {
        struct val *mean = reduce(im, AF_OP_REDUCE_MEAN, x, a, true), *d = B(SUB, x, mean);
        struct val *var = reduce(im, AF_OP_REDUCE_MEAN, B(MUL, d, d), a, true);
        struct val *inverse = U(RECIPROCAL, U(SQRT, S(ADD, var, epsilon)));
        *ret_mean = mean;
        *ret_inverse = inverse;
        return B(MUL, d, inverse);
}
static void layer_norm(struct import *im) {
        struct axes a = {.keepdims = true};
        struct val *x = im->in[0];
        uint32_t rank = x ? x->rank : 0;
        for (int64_t i = im_axis(im, im_attr_int(im, "axis", -1), rank); i < (int64_t)rank; i++)
                a.items[a.n++] = i;
        struct val *y = normalise(im, x, &a, im_attr_float(im, "epsilon", (double)1e-5f), &im->out[1], &im->out[2]);
        y = B(MUL, y, im->in[1]);
        im->out[0] = im->in[2] ? B(ADD, y, im->in[2]) : y;
}
static void mvn(struct import *im) {
        struct axes a = {.keepdims = true};
        const Onnxm__Attribute *attr = im_attr(im, "axes");
        static const int64_t otherwise[] = {0, 2, 3};
        uint32_t n = attr ? (uint32_t)attr->n_ints : 3;
        for (uint32_t i = 0; i < n && i < AF_LIMIT_RANK && im->in[0]; i++)
                a.items[a.n++] = im_axis(im, attr ? attr->ints[i] : otherwise[i], im->in[0]->rank);
        struct val *mean, *inverse;
        im->out[0] = normalise(im, im->in[0], &a, 1e-9, &mean, &inverse);
}

/* [C] as [C, 1, 1, ...] for x of [N, C, ...]. */
static struct val *per_channel(struct import *im, struct val *p, const struct val *x) {
        int64_t dims[AF_LIMIT_RANK];
        if (im->error || !p || !x || x->rank < 2)
                return p;
        for (uint32_t i = 0; i + 1 < x->rank; i++)
                dims[i] = i == 0 ? x->dims[1] : 1;
        return im_reshape(im, p, x->rank - 1, dims);
}
static struct axes spatial(struct import *im, bool batch) {
        struct axes a = {.keepdims = true};
        for (uint32_t i = 0; im->in[0] && i < im->in[0]->rank; i++)
                if (i >= 2 || (i == 0 && batch))
                        a.items[a.n++] = i;
        return a;
}
static void instance_norm(struct import *im) {
        struct axes a = spatial(im, false);
        struct val *x = im->in[0], *mean, *inverse;
        struct val *y = normalise(im, x, &a, im_attr_float(im, "epsilon", (double)1e-5f), &mean, &inverse);
        im->out[0] = B(ADD, B(MUL, y, per_channel(im, im->in[1], x)), per_channel(im, im->in[2], x));
}
static void batch_norm(struct import *im) {
        struct val *x = im->in[0], *mean = im->in[3], *var = im->in[4];
        double epsilon = im_attr_float(im, "epsilon", (double)1e-5f), momentum = im_attr_float(im, "momentum", (double)0.9f);
        if (im_attr_int(im, "training_mode", 0)) {
                struct axes a = spatial(im, true);
                struct val *m = reduce(im, AF_OP_REDUCE_MEAN, x, &a, true), *d = B(SUB, x, m);
                struct val *now_mean = without_axes(im, m, &a),
                           *now_var = without_axes(im, reduce(im, AF_OP_REDUCE_MEAN, B(MUL, d, d), &a, true), &a);
                im->out[1] = B(ADD, S(MUL, mean, momentum), S(MUL, now_mean, 1 - momentum));
                im->out[2] = B(ADD, S(MUL, var, momentum), S(MUL, now_var, 1 - momentum));
                mean = now_mean;
                var = now_var;
        }
        struct val *inverse = U(RECIPROCAL, U(SQRT, S(ADD, var, epsilon)));
        struct val *y = B(MUL, B(SUB, x, per_channel(im, mean, x)), per_channel(im, inverse, x));
        im->out[0] = B(ADD, B(MUL, y, per_channel(im, im->in[1], x)), per_channel(im, im->in[2], x));
}
static void global_average_pool(struct import *im) {
        struct axes a = spatial(im, false);
        im->out[0] = reduce(im, AF_OP_REDUCE_MEAN, im->in[0], &a, true);
}
static void global_max_pool(struct import *im) {
        struct axes a = spatial(im, false);
        im->out[0] = reduce(im, AF_OP_REDUCE_MAX, im->in[0], &a, true);
}

const struct handler im_ops_norm[] = {
        {"ReduceSum", reduce_sum},
        {"ReduceMax", reduce_max},
        {"ReduceMin", reduce_min},
        {"ReduceMean", reduce_mean},
        {"ReduceProd", reduce_prod},
        {"ReduceL1", reduce_l1},
        {"ReduceL2", reduce_l2},
        {"ReduceSumSquare", reduce_sum_square},
        {"ReduceLogSum", reduce_log_sum},
        {"ReduceLogSumExp", reduce_log_sum_exp},
        {"Softmax", softmax},
        {"LogSoftmax", log_softmax},
        {"LayerNormalization", layer_norm},
        {"MeanVarianceNormalization", mvn},
        {"InstanceNormalization", instance_norm},
        {"BatchNormalization", batch_norm},
        {"GlobalAveragePool", global_average_pool},
        {"GlobalMaxPool", global_max_pool},
        {NULL, NULL},
};
