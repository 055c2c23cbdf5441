/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX ops that are ops of the table, alone or in a row. */
#include <string.h>

#include "importer/import.h"

static void unary(struct import *im, enum af_op op) {
        im->out[0] = im_unary(im, op, im->in[0]);
}
static void binary(struct import *im, enum af_op op) {
        im->out[0] = im_binary(im, op, im->in[0], im->in[1]);
}
#define UNARY(name, op)                                                                                                                    \
        static void name(struct import *im) {                                                                                              \
                unary(im, AF_OP_##op);                                                                                                     \
        }
#define BINARY(name, op)                                                                                                                   \
        static void name(struct import *im) {                                                                                              \
                binary(im, AF_OP_##op);                                                                                                    \
        }
UNARY(abs_, ABS)
UNARY(neg, NEG)
UNARY(sign, SIGN)
UNARY(relu, RELU)
UNARY(exp_, EXP)
UNARY(log_, LOG)
UNARY(sqrt_, SQRT)
UNARY(reciprocal, RECIPROCAL)
UNARY(tanh_, TANH)
UNARY(sigmoid, SIGMOID)
UNARY(erf_, ERF)
UNARY(sin_, SIN)
UNARY(cos_, COS)
UNARY(floor_, FLOOR)
UNARY(ceil_, CEIL)
UNARY(round_, ROUND)
UNARY(not_, LOGICAL_NOT)
BINARY(add, ADD)
BINARY(sub, SUB)
BINARY(mul, MUL)
BINARY(div_, DIV)
BINARY(equal, EQ)
BINARY(less, LT)
BINARY(less_equal, LE)
BINARY(greater, GT)
BINARY(greater_equal, GE)
BINARY(and_, LOGICAL_AND)
BINARY(or_, LOGICAL_OR)
BINARY(xor_, LOGICAL_XOR)

/* The result has the base's type; an integer base with a float exponent is computed in float32. */
static void pow_(struct import *im) {
        struct val *x = im->in[0], *y = im->in[1];
        if (!x || !y) {
                im_refuse(im, "op Pow without operands");
                return;
        }
        if (x->dtype == y->dtype)
                im->out[0] = im_binary(im, AF_OP_POW, x, y);
        else if (af_dtype_kind(x->dtype) == 'f')
                im->out[0] = im_binary(im, AF_OP_POW, x, im_cast(im, y, x->dtype));
        else if (af_dtype_kind(y->dtype) == 'f')
                im->out[0] = im_cast(im, im_binary(im, AF_OP_POW, im_cast(im, x, y->dtype), y), x->dtype);
        else
                im->out[0] = im_binary(im, AF_OP_POW, x, im_cast(im, y, x->dtype));
}

static void row_of(struct import *im, enum af_op op) {
        struct val *x = im->in[0];
        for (uint32_t i = 1; i < im->n_in; i++)
                x = im_binary(im, op, x, im->in[i]);
        im->out[0] = x;
}
static void max_(struct import *im) {
        row_of(im, AF_OP_MAXIMUM);
}
static void min_(struct import *im) {
        row_of(im, AF_OP_MINIMUM);
}
static void sum_(struct import *im) {
        row_of(im, AF_OP_ADD);
}
static void mean_(struct import *im) {
        row_of(im, AF_OP_ADD);
        if (im->n_in > 1)
                im->out[0] = im_binary_scalar(im, AF_OP_DIV, im->out[0], im->n_in);
}

static void where_(struct import *im) {
        im->out[0] = im_where(im, im->in[0], im->in[1], im->in[2]);
}
static void cast_(struct import *im) {
        int32_t to = (int32_t)im_attr_int(im, "to", 0);
        if (im_dtype(to) == AF_DTYPE_INVALID || im_dtype(to) == AF_DTYPE_FLOAT64)
                im_refuse(im, "dtype %s", im_elem_name(to));
        im->out[0] = im_cast(im, im->in[0], im_dtype(to));
}
static void cast_like(struct import *im) {
        im->out[0] = im_cast(im, im->in[0], im->in[1] ? im->in[1]->dtype : AF_DTYPE_INVALID);
}

/* min and max were attributes; since opset 11 they are operands, each optional. */
static void clip_(struct import *im) {
        struct val *x = im->in[0];
        if (im->m->opset < 11) {
                struct af_attr attrs[2];
                uint32_t n = 0;
                if (im_attr(im, "min"))
                        attrs[n++] = (struct af_attr){.key = AF_ATTR_MIN, .f = im_attr_float(im, "min", 0)};
                if (im_attr(im, "max"))
                        attrs[n++] = (struct af_attr){.key = AF_ATTR_MAX, .f = im_attr_float(im, "max", 0)};
                im->out[0] = n ? im_node(im, AF_OP_CLIP, &x, 1, attrs, n, AF_DTYPE_INVALID) : x;
                return;
        }
        if (im->in[1])
                x = im_binary(im, AF_OP_MAXIMUM, x, im->in[1]);
        if (im->in[2])
                x = im_binary(im, AF_OP_MINIMUM, x, im->in[2]);
        im->out[0] = x;
}

static void leaky_relu(struct import *im) {
        struct af_attr alpha = {.key = AF_ATTR_ALPHA, .f = im_attr_float(im, "alpha", (double)0.01f)};
        im->out[0] = im_node(im, AF_OP_LEAKY_RELU, im->in, 1, &alpha, 1, AF_DTYPE_INVALID);
}
static void gelu(struct import *im) {
        const Onnxm__Attribute *a = im_attr(im, "approximate");
        bool tanh_form = a && a->s.len == 4 && memcmp(a->s.data, "tanh", 4) == 0;
        struct af_attr approximate = {.key = AF_ATTR_APPROXIMATE, .s = tanh_form ? "tanh" : "none"};
        im->out[0] = im_node(im, AF_OP_GELU, im->in, 1, &approximate, 1, AF_DTYPE_INVALID);
}
static void gather(struct import *im) {
        struct af_attr axis = {.key = AF_ATTR_AXIS, .i = im->in[0] ? im_axis(im, im_attr_int(im, "axis", 0), im->in[0]->rank) : 0};
        im->out[0] = im_node(im, AF_OP_GATHER, im->in, 2, &axis, 1, AF_DTYPE_INVALID);
}

const struct handler im_ops_simple[] = {
        {"Abs", abs_},
        {"Neg", neg},
        {"Sign", sign},
        {"Relu", relu},
        {"Exp", exp_},
        {"Log", log_},
        {"Sqrt", sqrt_},
        {"Reciprocal", reciprocal},
        {"Tanh", tanh_},
        {"Sigmoid", sigmoid},
        {"Erf", erf_},
        {"Sin", sin_},
        {"Cos", cos_},
        {"Floor", floor_},
        {"Ceil", ceil_},
        {"Round", round_},
        {"Not", not_},
        {"Add", add},
        {"Sub", sub},
        {"Mul", mul},
        {"Div", div_},
        {"Equal", equal},
        {"Less", less},
        {"LessOrEqual", less_equal},
        {"Greater", greater},
        {"GreaterOrEqual", greater_equal},
        {"And", and_},
        {"Or", or_},
        {"Xor", xor_},
        {"Pow", pow_},
        {"Max", max_},
        {"Min", min_},
        {"Sum", sum_},
        {"Mean", mean_},
        {"Where", where_},
        {"Cast", cast_},
        {"CastLike", cast_like},
        {"Clip", clip_},
        {"LeakyRelu", leaky_relu},
        {"Gelu", gelu},
        {"Gather", gather},
        {NULL, NULL},
};
