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

/* alpha (e^x - 1) below 0 */
static void elu(struct import *im) {
        struct val *x = im->in[0];
        im->out[0] = im_where(im, S(GT, x, 0), x, S(MUL, U(EXPM1, x), im_attr_float(im, "alpha", 1)));
}
static void selu(struct import *im) {
        struct val *x = im->in[0];
        double alpha = im_attr_float(im, "alpha", (double)1.67326319217681884765625f),
               gamma = im_attr_float(im, "gamma", (double)1.05070102214813232421875f);
        im->out[0] = S(MUL, im_where(im, S(GT, x, 0), x, S(MUL, U(EXPM1, x), alpha)), gamma);
}
/* max(0, x) + min(0, alpha (e^(x / alpha) - 1)) */
static void celu(struct import *im) {
        struct val *x = im->in[0];
        double alpha = im_attr_float(im, "alpha", 1);
        im->out[0] = B(ADD, S(MAXIMUM, x, 0), S(MINIMUM, S(MUL, U(EXPM1, S(DIV, x, alpha)), alpha), 0));
}
static void prelu(struct import *im) {
        struct val *x = im->in[0];
        im->out[0] = im_where(im, S(LT, x, 0), B(MUL, x, im->in[1]), x);
}
static void thresholded_relu(struct import *im) {
        struct val *x = im->in[0];
        im->out[0] = im_where(im, S(GT, x, im_attr_float(im, "alpha", 1)), x, like(im, x, 0));
}
static struct val *hard_sigmoid_of(struct import *im, struct val *x, double alpha, double beta) {
        return im_clip(im, S(ADD, S(MUL, x, alpha), beta), 0, 1);
}
static void hard_sigmoid(struct import *im) {
        im->out[0] = hard_sigmoid_of(im, im->in[0], im_attr_float(im, "alpha", (double)0.2f), im_attr_float(im, "beta", 0.5));
}
static void hard_swish(struct import *im) {
        im->out[0] = B(MUL, im->in[0], hard_sigmoid_of(im, im->in[0], 1.0 / 6, 0.5));
}
/* max(x, 0) + log1p(e^-|x|): does not overflow */
static void softplus(struct import *im) {
        struct val *x = im->in[0];
        im->out[0] = B(ADD, S(MAXIMUM, x, 0), U(LOG1P, U(EXP, U(NEG, U(ABS, x)))));
}
static void softsign(struct import *im) {
        struct val *x = im->in[0];
        im->out[0] = B(DIV, x, S(ADD, U(ABS, x), 1));
}
static void shrink(struct import *im) {
        struct val *x = im->in[0];
        double lambd = im_attr_float(im, "lambd", 0.5), bias = im_attr_float(im, "bias", 0);
        struct val *above = im_where(im, S(GT, x, lambd), S(SUB, x, bias), like(im, x, 0));
        im->out[0] = im_where(im, S(LT, x, -lambd), S(ADD, x, bias), above);
}
static void is_nan(struct import *im) {
        im->out[0] = B(NE, im->in[0], im->in[0]);
}
static void is_inf(struct import *im) {
        bool positive = im_attr_int(im, "detect_positive", 1), negative = im_attr_int(im, "detect_negative", 1);
        struct val *x = im->in[0];
        if (positive && negative)
                im->out[0] = S(EQ, U(ABS, x), INFINITY);
        else
                im->out[0] = S(EQ, x, positive ? INFINITY : negative ? -INFINITY : NAN);
}
static void tan_(struct import *im) {
        im->out[0] = B(DIV, U(SIN, im->in[0]), U(COS, im->in[0]));
}
/* (e^x - 1 + (e^x - 1) / e^x) / 2: exact near 0 */
static void sinh_(struct import *im) {
        struct val *m = U(EXPM1, im->in[0]);
        im->out[0] = S(MUL, B(ADD, m, B(DIV, m, S(ADD, m, 1))), 0.5);
}
static void cosh_(struct import *im) {
        im->out[0] = S(MUL, B(ADD, U(EXP, im->in[0]), U(EXP, U(NEG, im->in[0]))), 0.5);
}
/* sign(x) log1p(|x| + x^2 / (1 + sqrt(x^2 + 1))) */
static void asinh_(struct import *im) {
        struct val *x = im->in[0], *a = U(ABS, x), *xx = U(SQUARE, x);
        im->out[0] = B(MUL, U(SIGN, x), U(LOG1P, B(ADD, a, B(DIV, xx, S(ADD, U(SQRT, S(ADD, xx, 1)), 1)))));
}
/* log1p(t + sqrt(2t + t^2)), t = x - 1 */
static void acosh_(struct import *im) {
        struct val *t = S(SUB, im->in[0], 1);
        im->out[0] = U(LOG1P, B(ADD, t, U(SQRT, B(ADD, S(MUL, t, 2), U(SQUARE, t)))));
}
/* log1p(2x / (1 - x)) / 2 */
static void atanh_(struct import *im) {
        struct val *x = im->in[0];
        im->out[0] = S(MUL, U(LOG1P, B(DIV, S(MUL, x, 2), S(ADD, U(NEG, x), 1))), 0.5);
}

/* A per-axis parameter, shaped so that it broadcasts over x. */
static struct val *along_axis(struct import *im, struct val *p, const struct val *x) {
        int64_t dims[AF_LIMIT_RANK], axis;
        if (im->error || !p || !x || im_count(p) == 1)
                return p;
        axis = im_axis(im, im_attr_int(im, "axis", 1), x->rank);
        for (uint32_t i = 0; i < x->rank; i++)
                dims[i] = i == (uint32_t)axis ? p->dims[0] : 1;
        return im_reshape(im, p, x->rank, dims);
}
static void quantize_linear(struct import *im) {
        struct val *x = im->in[0], *scale = along_axis(im, im->in[1], x), *zero = along_axis(im, im->in[2], x);
        enum af_dtype d = zero ? zero->dtype : AF_DTYPE_UINT8;
        if (!im->error && d != AF_DTYPE_UINT8 && d != AF_DTYPE_INT8)
                im_refuse(im, "dtype %s of QuantizeLinear", af_dtype_name(d));
        struct val *q = U(ROUND, B(DIV, x, scale));
        if (zero)
                q = B(ADD, q, im_cast(im, zero, AF_DTYPE_FLOAT32));
        im->out[0] = im_cast(im, im_clip(im, q, d == AF_DTYPE_INT8 ? -128 : 0, d == AF_DTYPE_INT8 ? 127 : 255), d);
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
        {"Elu", elu},
        {"Selu", selu},
        {"Celu", celu},
        {"PRelu", prelu},
        {"ThresholdedRelu", thresholded_relu},
        {"HardSigmoid", hard_sigmoid},
        {"HardSwish", hard_swish},
        {"Softplus", softplus},
        {"Softsign", softsign},
        {"Shrink", shrink},
        {"IsNaN", is_nan},
        {"IsInf", is_inf},
        {"Tan", tan_},
        {"Sinh", sinh_},
        {"Cosh", cosh_},
        {"Asinh", asinh_},
        {"Acosh", acosh_},
        {"Atanh", atanh_},
        {"QuantizeLinear", quantize_linear},
        {"DequantizeLinear", dequantize_linear},
        {"DynamicQuantizeLinear", dynamic_quantize},
        {NULL, NULL},
};
