/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, softmax and normalisations as ops of the table. */
#include <math.h>
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

/* What the largest, the least or the log of the sum of nothing is: the bound of the dtype, ln 0. NULL where something is reduced. */
static struct val *of_nothing(struct import *im, enum af_op op, struct val *x, const struct axes *a, bool keepdims) {
        bool largest = op != AF_OP_REDUCE_MIN, floats = x && af_dtype_kind(x->dtype) == 'f', nothing = false;
        int64_t dims[AF_LIMIT_RANK];
        uint32_t rank = 0, gone = 0;
        for (uint32_t k = 0; k < a->n; k++)
                gone |= 1u << a->items[k];
        for (uint32_t i = 0; x && i < x->rank; i++) {
                nothing |= (gone & 1u << i) && x->dims[i] == 0;
                if (!(gone & 1u << i) || keepdims)
                        dims[rank++] = gone & 1u << i ? 1 : x->dims[i];
        }
        if (!nothing || (!floats && x->dtype != AF_DTYPE_BOOL) ||
            (op != AF_OP_REDUCE_MAX && op != AF_OP_REDUCE_MIN && op != AF_OP_LOGSUMEXP && op != AF_OP_REDUCE_LOG_SUM))
                return NULL;
        struct val *bound = im_scalar(im, x->dtype, !floats ? !largest : largest ? -INFINITY : INFINITY);
        return im_expand(im, bound, rank, dims);
}
static struct val *reduce(struct import *im, enum af_op op, struct val *x, const struct axes *a, bool keepdims) {
        struct val *bound = a->noop ? NULL : of_nothing(im, op, x, a, keepdims);
        return a->noop ? x : bound ? bound : im_reduce(im, op, x, a->items, a->n, keepdims);
}
static void reduce_row(struct import *im) {
        struct axes a = reduce_axes(im);
        im->out[0] = reduce(im, im->op, im->in[0], &a, a.keepdims);
}
/* |x|, x^2 and the like of each element where there is nothing to reduce. */
static void reduce_parts(struct import *im) {
        struct axes a = reduce_axes(im);
        struct val *x = im->in[0];
        if (!a.noop)
                im->out[0] = reduce(im, im->op, x, &a, a.keepdims);
        else if (im->op == AF_OP_REDUCE_SUM_SQUARE)
                im->out[0] = U(SQUARE, x);
        else if (im->op == AF_OP_REDUCE_LOG_SUM)
                im->out[0] = U(LOG, x);
        else
                im->out[0] = im->op == AF_OP_LOGSUMEXP ? x : U(ABS, x);
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

/* Before opset 13, the default axis is 1 and all axes from it on count as one. */
static struct val *along_axis(struct import *im, struct val *(*run)(struct import *im, struct val *x, uint32_t axis)) {
        struct val *x = im->in[0];
        bool old = im->m->opset < 13;
        int64_t matrix[2] = {1, 1}, axis = x ? im_axis(im, im_attr_int(im, "axis", old ? 1 : -1), x->rank) : 0;
        if (!x || im->error || !old || (uint64_t)axis + 1 == x->rank)
                return x ? run(im, x, (uint32_t)axis) : NULL;
        for (uint32_t i = 0; i < x->rank; i++)
                matrix[i >= (uint64_t)axis] *= x->dims[i];
        return im_reshape(im, run(im, im_reshape(im, x, 2, matrix), 1), x->rank, x->dims);
}
static struct val *with_axis(struct import *im, struct val *x, uint32_t axis) {
        struct af_attr attr = {.key = AF_ATTR_AXIS, .i = axis};
        return im_node(im, im->op, &x, 1, &attr, 1, AF_DTYPE_INVALID);
}
static void softmax(struct import *im) {
        im->out[0] = along_axis(im, with_axis);
}
/* 1 at the first of the largest, else 0. */
static struct val *first_largest(struct import *im, struct val *x, uint32_t axis) {
        int64_t along = axis;
        struct val *at = im_iota(im, AF_DTYPE_INT32, x->rank, x->dims, axis, 0, 1);
        struct val *hit = B(EQ, x, im_reduce(im, AF_OP_REDUCE_MAX, x, &along, 1, true));
        struct val *first =
                im_reduce(im, AF_OP_REDUCE_MIN, im_where(im, hit, at, im_scalar(im, AF_DTYPE_INT32, INT32_MAX)), &along, 1, true);
        return im_where(im, B(EQ, at, first), im_scalar(im, x->dtype, 1), im_scalar(im, x->dtype, 0));
}
static void hardmax(struct import *im) {
        im->out[0] = along_axis(im, first_largest);
}
static void arg_reduce(struct import *im) {
        struct af_attr attrs[] = {{.key = AF_ATTR_AXIS, .i = im->in[0] ? im_axis(im, im_attr_int(im, "axis", 0), im->in[0]->rank) : 0},
                                  {.key = AF_ATTR_KEEPDIMS, .i = im_attr_int(im, "keepdims", 1) != 0},
                                  {.key = AF_ATTR_SELECT_LAST, .i = im_attr_int(im, "select_last_index", 0) != 0}};
        im->out[0] = im_node(im, im->op, im->in, 1, attrs, 3, AF_DTYPE_INVALID);
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
/* Outputs: the result, and where asked for the means and inverse deviations of the rows. */
static void layer_norm(struct import *im) {
        struct axes a = {.keepdims = true};
        struct val *x = im->in[0];
        uint32_t rank = x ? x->rank : 0;
        double epsilon = im_attr_float(im, "epsilon", (double)1e-5f);
        int64_t axis = im_axis(im, im_attr_int(im, "axis", -1), rank);
        for (int64_t i = axis; i < (int64_t)rank; i++)
                a.items[a.n++] = i;
        struct af_attr attrs[] = {{.key = AF_ATTR_AXIS, .i = axis}, {.key = AF_ATTR_EPSILON, .f = epsilon}};
        if (im->node->n_output > 1)
                normalise(im, im_cast(im, x, AF_DTYPE_FLOAT32), &a, epsilon, &im->out[1], &im->out[2]);
        im->out[0] = im_node(im, im->op, im->in, im->n_in, attrs, 2, AF_DTYPE_INVALID);
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

static struct axes spatial(struct import *im, bool batch) {
        struct axes a = {.keepdims = true};
        for (uint32_t i = 0; im->in[0] && i < im->in[0]->rank; i++)
                if (i >= 2 || (i == 0 && batch))
                        a.items[a.n++] = i;
        return a;
}
static void instance_norm(struct import *im) {
        struct af_attr epsilon = {.key = AF_ATTR_EPSILON, .f = im_attr_float(im, "epsilon", (double)1e-5f)};
        im->out[0] = im_node(im, AF_OP_INSTANCE_NORM, im->in, 3, &epsilon, 1, AF_DTYPE_INVALID);
}
/* Before opset 21 scale and bias are per group. */
static void group_norm(struct import *im) {
        struct val *x = im->in[0], *in[3] = {x, im->in[1], im->in[2]};
        int64_t groups = im_attr_int(im, "num_groups", 1);
        if (!x || x->rank < 2 || groups < 1 || x->dims[1] % groups) {
                im_refuse(im, "shape of GroupNormalization's groups");
                return;
        }
        int64_t column[] = {groups, 1}, spread[] = {groups, x->dims[1] / groups};
        for (uint32_t i = 1; i < 3 && in[i] && im->m->opset < 21; i++)
                in[i] = im_reshape(im, im_expand(im, im_reshape(im, in[i], 2, column), 2, spread), 1, &x->dims[1]);
        struct af_attr attrs[] = {{.key = AF_ATTR_GROUPS, .i = groups},
                                  {.key = AF_ATTR_EPSILON, .f = im_attr_float(im, "epsilon", (double)1e-5f)}};
        im->out[0] = im_node(im, AF_OP_GROUP_NORM, in, 3, attrs, 2, AF_DTYPE_INVALID);
}
/* In training the statistics are of this batch, and the running ones move. */
static void batch_norm(struct import *im) {
        struct val *x = im->in[0], *mean = im->in[3], *var = im->in[4];
        double momentum = im_attr_float(im, "momentum", (double)0.9f);
        struct af_attr epsilon = {.key = AF_ATTR_EPSILON, .f = im_attr_float(im, "epsilon", (double)1e-5f)};
        if (im_attr_int(im, "training_mode", 0) || (im->m->opset < 7 && !im_attr_int(im, "is_test", 0))) {
                struct axes a = spatial(im, true);
                struct val *m = reduce(im, AF_OP_REDUCE_MEAN, x, &a, true), *d = B(SUB, x, m);
                struct val *now_mean = without_axes(im, m, &a),
                           *now_var = without_axes(im, reduce(im, AF_OP_REDUCE_MEAN, B(MUL, d, d), &a, true), &a);
                im->out[1] = B(ADD, S(MUL, mean, momentum), S(MUL, now_mean, 1 - momentum));
                im->out[2] = B(ADD, S(MUL, var, momentum), S(MUL, now_var, 1 - momentum));
                mean = now_mean;
                var = now_var;
        }
        im->out[0] = im_node(im, AF_OP_BATCH_NORM, (struct val *[]){x, mean, var, im->in[1], im->in[2]}, 5, &epsilon, 1, AF_DTYPE_INVALID);
}
static void lp_normalization(struct import *im) {
        struct val *x = im->in[0];
        int64_t axis = x ? im_axis(im, im_attr_int(im, "axis", -1), x->rank) : 0;
        enum af_op op = im_attr_int(im, "p", 2) == 1 ? AF_OP_REDUCE_L1 : AF_OP_REDUCE_L2;
        struct val *norm = im_reduce(im, op, x, &axis, 1, true);
        if (x && !im->error) /* what has no length stays as it is: zeros */
                im->out[0] = im_where(im, S(EQ, norm, 0), im_scalar(im, x->dtype, 0), B(DIV, x, norm));
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
        {"ReduceSum", reduce_row, AF_OP_REDUCE_SUM},
        {"ReduceMax", reduce_row, AF_OP_REDUCE_MAX},
        {"ReduceMin", reduce_row, AF_OP_REDUCE_MIN},
        {"ReduceMean", reduce_row, AF_OP_REDUCE_MEAN},
        {"ReduceProd", reduce_row, AF_OP_REDUCE_PROD},
        {"ReduceL1", reduce_parts, AF_OP_REDUCE_L1},
        {"ReduceL2", reduce_parts, AF_OP_REDUCE_L2},
        {"ReduceSumSquare", reduce_parts, AF_OP_REDUCE_SUM_SQUARE},
        {"ReduceLogSum", reduce_parts, AF_OP_REDUCE_LOG_SUM},
        {"ReduceLogSumExp", reduce_parts, AF_OP_LOGSUMEXP},
        {"Softmax", softmax, AF_OP_SOFTMAX},
        {"LogSoftmax", softmax, AF_OP_LOG_SOFTMAX},
        {"Hardmax", hardmax, 0},
        {"ArgMax", arg_reduce, AF_OP_ARG_MAX},
        {"ArgMin", arg_reduce, AF_OP_ARG_MIN},
        {"LayerNormalization", layer_norm, AF_OP_LAYER_NORM},
        {"RMSNormalization", layer_norm, AF_OP_RMS_NORM},
        {"GroupNormalization", group_norm, 0},
        {"InstanceNormalization", instance_norm, 0},
        {"BatchNormalization", batch_norm, 0},
        {"MeanVarianceNormalization", mvn, 0},
        {"LpNormalization", lp_normalization, 0},
        {"GlobalAveragePool", global_average_pool, 0},
        {"GlobalMaxPool", global_max_pool, 0},
        {NULL, NULL, 0},
};
