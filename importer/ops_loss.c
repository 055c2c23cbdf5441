/* SPDX-License-Identifier: Apache-2.0 */
/* Losses over classes: what is picked, weighted and reduced. */
#include <string.h>

#include "importer/import.h"

#define B(op, x, y) im_binary(im, AF_OP_##op, x, y)
#define U(op, x)    im_unary(im, AF_OP_##op, x)

#define EXACT_IN_F32 (1 << 24)

/* Where a target counts; NULL: everywhere. Compared as float32: no other integer becomes one below 2^24. */
static struct val *counted(struct import *im, struct val *target) {
        const Onnxm__Attribute *a = im_attr(im, "ignore_index");
        if (!a)
                return NULL;
        if (a->i <= -EXACT_IN_F32 || a->i >= EXACT_IN_F32)
                im_refuse(im, "op %s with such an ignore_index", im->node->op_type);
        return im_binary_scalar(im, AF_OP_NE, im_cast(im, target, AF_DTYPE_FLOAT32), (double)a->i);
}

static struct val *sum_of_all(struct import *im, enum af_op op, struct val *x) {
        int64_t axes[AF_LIMIT_RANK];
        for (uint32_t i = 0; x && i < x->rank; i++)
                axes[i] = i;
        return x ? im_reduce(im, op, x, axes, x->rank, false) : NULL;
}

/* -weight[target] x[n, target, ...]; reduced to a number unless reduction is `none`. x: [N, C, ...], target: [N, ...] */
static struct val *picked_loss(struct import *im, struct val *x, struct val *target, struct val *weight) {
        int64_t dims[AF_LIMIT_RANK];
        if (im->error || !x || !target || x->rank < 2 || target->rank + 1 != x->rank) {
                im_refuse(im, "shape of %s's target", im->node->op_type);
                return NULL;
        }
        memcpy(dims, x->dims, sizeof(dims));
        dims[1] = 1;
        struct af_attr one = {.key = AF_ATTR_AXIS, .i = 1}, zero = {.key = AF_ATTR_AXIS, .i = 0};
        struct val *in[] = {x, im_reshape(im, target, x->rank, dims)};
        struct val *y =
                U(NEG, im_reshape(im, im_node(im, AF_OP_GATHER_ELEMENTS, in, 2, &one, 1, AF_DTYPE_INVALID), target->rank, target->dims));
        struct val *w = weight ? im_node(im, AF_OP_GATHER, (struct val *[]){weight, target}, 2, &zero, 1, AF_DTYPE_INVALID) : NULL;
        struct val *counts = counted(im, target), *nothing = im_scalar(im, x->dtype, 0);
        y = w ? B(MUL, y, w) : y;
        if (counts) {
                y = im_where(im, counts, y, nothing);
                w = im_where(im, counts, w ? w : im_scalar(im, x->dtype, 1), nothing);
        }
        const Onnxm__Attribute *a = im_attr(im, "reduction");
        if (a && a->s.len == 4 && memcmp(a->s.data, "none", 4) == 0)
                return y;
        if (a && a->s.len == 3 && memcmp(a->s.data, "sum", 3) == 0)
                return sum_of_all(im, AF_OP_REDUCE_SUM, y);
        if (!w)
                return sum_of_all(im, AF_OP_REDUCE_MEAN, y);
        return B(DIV, sum_of_all(im, AF_OP_REDUCE_SUM, y), sum_of_all(im, AF_OP_REDUCE_SUM, w));
}

static void nll_loss(struct import *im) {
        im->out[0] = picked_loss(im, im->in[0], im->in[1], im->in[2]);
}
static void cross_entropy(struct import *im) {
        struct af_attr axis = {.key = AF_ATTR_AXIS, .i = 1};
        struct val *log_prob = im_node(im, AF_OP_LOG_SOFTMAX, im->in, 1, &axis, 1, AF_DTYPE_INVALID);
        im->out[0] = picked_loss(im, log_prob, im->in[1], im->in[2]);
        im->out[1] = log_prob;
}

const struct handler im_ops_loss[] = {
        {"NegativeLogLikelihoodLoss", nll_loss, 0},
        {"SoftmaxCrossEntropyLoss", cross_entropy, 0},
        {NULL, NULL, 0},
};
