/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise ONNX ops that are several ops of the table. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "importer/import.h"

#define B(op, x, y)     im_binary(im, AF_OP_##op, x, y)
#define S(op, x, value) im_binary_scalar(im, AF_OP_##op, x, value)
#define U(op, x)        im_unary(im, AF_OP_##op, x)
static struct val *like(struct import *im, struct val *x, double value) {
        return x ? im_scalar(im, x->dtype, value) : NULL;
}

/* A row of the table with parameters of ONNX's names; the defaults are ONNX's. */
static void with_floats(struct import *im, double alpha, enum af_attr_key second, double other) {
        const char *name = second == AF_ATTR_BETA ? "beta" : "gamma";
        struct af_attr attrs[] = {{.key = AF_ATTR_ALPHA, .f = im_attr_float(im, "alpha", alpha)},
                                  {.key = second, .f = second == AF_N_ATTRS ? 0 : im_attr_float(im, name, other)}};
        im->out[0] = im_node(im, im->op, im->in, 1, attrs, second == AF_N_ATTRS ? 1 : 2, AF_DTYPE_INVALID);
}
static void with_alpha(struct import *im) {
        with_floats(im, 1, AF_N_ATTRS, 0);
}
static void selu(struct import *im) {
        with_floats(im, (double)1.67326319217681884765625f, AF_ATTR_GAMMA, (double)1.05070102214813232421875f);
}
static void hard_sigmoid(struct import *im) {
        with_floats(im, (double)0.2f, AF_ATTR_BETA, 0.5);
}
/* x sigmoid(alpha x) */
static void swish(struct import *im) {
        struct val *x = im->in[0];
        double alpha = im_attr_float(im, "alpha", 1);
        im->out[0] = alpha == 1 ? U(SILU, x) : B(MUL, x, U(SIGMOID, S(MUL, x, alpha)));
}
/* Before opset 7 a slope of one dimension is per channel. */
static void prelu(struct import *im) {
        struct val *x = im->in[0], *slope = im->in[1];
        int64_t dims[AF_LIMIT_RANK];
        if (x && slope && im->m->opset < 7 && slope->rank == 1 && x->rank > 2) {
                for (uint32_t i = 1; i < x->rank; i++)
                        dims[i - 1] = i == 1 ? slope->dims[0] : 1;
                slope = im_reshape(im, slope, x->rank - 1, dims);
        }
        im->out[0] = im_where(im, S(LT, x, 0), B(MUL, x, slope), x);
}
static void shrink(struct import *im) {
        struct val *x = im->in[0];
        double lambd = im_attr_float(im, "lambd", 0.5), bias = im_attr_float(im, "bias", 0);
        struct val *above = im_where(im, S(GT, x, lambd), S(SUB, x, bias), like(im, x, 0));
        im->out[0] = im_where(im, S(LT, x, -lambd), S(ADD, x, bias), above);
}
static void is_inf(struct import *im) {
        bool positive = im_attr_int(im, "detect_positive", 1), negative = im_attr_int(im, "detect_negative", 1);
        struct val *x = im->in[0];
        if (positive && negative)
                im->out[0] = U(ISINF, x);
        else
                im->out[0] = S(EQ, x, positive ? INFINITY : negative ? -INFINITY : NAN);
}
/* A parameter with one element per block of an axis, repeated to x's size. */
static struct val *in_blocks(struct import *im, struct val *p, const struct val *x, uint32_t axis, int64_t block) {
        int64_t column[AF_LIMIT_RANK], spread[AF_LIMIT_RANK], flat[AF_LIMIT_RANK];
        if (p->rank != x->rank || x->rank + 1 > AF_LIMIT_RANK || im->error || p->dims[axis] != (x->dims[axis] + block - 1) / block) {
                im_refuse(im, "shape of %s's blocks", im->node->op_type);
                return NULL;
        }
        for (uint32_t i = 0, at = 0; i < x->rank; i++) {
                column[at] = spread[at] = flat[i] = p->dims[i];
                at++;
                if (i == axis) {
                        column[at] = 1;
                        spread[at++] = block;
                        flat[i] *= block;
                }
        }
        struct val *y = im_expand(im, im_reshape(im, p, x->rank + 1, column), x->rank + 1, spread);
        return im_slice_axis(im, im_reshape(im, y, x->rank, flat), axis, 0, x->dims[axis]);
}
/* A per-axis parameter, shaped so that it broadcasts over x. */
static struct val *along_axis(struct import *im, struct val *p, const struct val *x) {
        int64_t dims[AF_LIMIT_RANK], axis;
        if (im->error || !p || !x || im_count(p) == 1)
                return p;
        axis = im_axis(im, im_attr_int(im, "axis", 1), x->rank);
        if (im_attr_int(im, "block_size", 0) > 0)
                return in_blocks(im, p, x, (uint32_t)axis, im_attr_int(im, "block_size", 0));
        for (uint32_t i = 0; i < x->rank; i++)
                dims[i] = i == (uint32_t)axis ? p->dims[0] : 1;
        return im_reshape(im, p, x->rank, dims);
}
static void quantize_linear(struct import *im) {
        struct val *x = im->in[0], *scale = along_axis(im, im->in[1], x), *zero = along_axis(im, im->in[2], x);
        enum af_dtype d = zero                          ? zero->dtype
                          : im_attr(im, "output_dtype") ? im_dtype((int32_t)im_attr_int(im, "output_dtype", 0))
                                                        : AF_DTYPE_UINT8;
        double lo = d == AF_DTYPE_UINT8 ? 0 : d == AF_DTYPE_INT8 ? -128 : -32768, hi = d == AF_DTYPE_UINT8 ? 255 : -lo - 1;
        if (!im->error && d != AF_DTYPE_UINT8 && d != AF_DTYPE_INT8 && d != AF_DTYPE_INT16)
                im_refuse(im, "dtype %s of QuantizeLinear", d == AF_DTYPE_INVALID ? "that fragments do not have" : af_dtype_name(d));
        struct val *q = U(ROUND, B(DIV, x, scale));
        if (zero)
                q = B(ADD, q, im_cast(im, zero, AF_DTYPE_FLOAT32));
        im->out[0] = im_cast(im, im_clip(im, q, lo, hi), d);
}
static void dequantize_linear(struct import *im) {
        struct val *x = im->in[0], *scale = along_axis(im, im->in[1], x), *zero = along_axis(im, im->in[2], x);
        struct val *f = im_cast(im, x, AF_DTYPE_FLOAT32);
        if (zero)
                f = B(SUB, f, im_cast(im, zero, AF_DTYPE_FLOAT32));
        im->out[0] = B(MUL, f, scale);
}
/* scale = (max(x, 0) - min(x, 0)) / 255, zero point = round(-min / scale) */
static void dynamic_quantize(struct import *im) {
        struct val *x = im->in[0];
        if (!x)
                return;
        int64_t axes[AF_LIMIT_RANK];
        for (uint32_t i = 0; i < x->rank; i++)
                axes[i] = i;
        struct val *hi = S(MAXIMUM, im_reduce(im, AF_OP_REDUCE_MAX, x, axes, x->rank, false), 0);
        struct val *lo = S(MINIMUM, im_reduce(im, AF_OP_REDUCE_MIN, x, axes, x->rank, false), 0);
        struct val *scale = S(DIV, B(SUB, hi, lo), 255);
        struct val *zero = U(ROUND, im_clip(im, B(DIV, U(NEG, lo), scale), 0, 255));
        im->out[0] = im_cast(im, im_clip(im, B(ADD, U(ROUND, B(DIV, x, scale)), zero), 0, 255), AF_DTYPE_UINT8);
        im->out[1] = scale;
        im->out[2] = im_cast(im, zero, AF_DTYPE_UINT8);
}

const struct handler im_ops_composite[] = {
        {"Elu", with_alpha, AF_OP_ELU},
        {"Celu", with_alpha, AF_OP_CELU},
        {"ThresholdedRelu", with_alpha, AF_OP_THRESHOLDED_RELU},
        {"Selu", selu, AF_OP_SELU},
        {"HardSigmoid", hard_sigmoid, AF_OP_HARDSIGMOID},
        {"HardSwish", im_run_unary, AF_OP_HARDSWISH},
        {"Mish", im_run_unary, AF_OP_MISH},
        {"Swish", swish, 0},
        {"Softplus", im_run_unary, AF_OP_SOFTPLUS},
        {"Softsign", im_run_unary, AF_OP_SOFTSIGN},
        {"PRelu", prelu, 0},
        {"Shrink", shrink, 0},
        {"IsInf", is_inf, 0},
        {"QuantizeLinear", quantize_linear, 0},
        {"DequantizeLinear", dequantize_linear, 0},
        {"DynamicQuantizeLinear", dynamic_quantize, 0},
        {NULL, NULL, 0},
};
