/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX ops that are ops of the table, alone or in a row. */
#include <string.h>

#include "importer/import.h"

void im_run_unary(struct import *im) {
        im->out[0] = im_unary(im, im->op, im->in[0]);
}

/* Before opset 7, `broadcast` lets the second operand's dimensions stand from `axis` on (default: at the end). */
static struct val *placed(struct import *im, struct val *y, const struct val *x) {
        int64_t dims[AF_LIMIT_RANK];
        if (!x || !y || im->m->opset >= 7 || !im_attr(im, "axis") || y->rank >= x->rank)
                return y;
        int64_t axis = im_axis(im, im_attr_int(im, "axis", 0), x->rank);
        if (axis + y->rank > x->rank) {
                im_refuse(im, "shape: axis of %s out of range", im->node->op_type);
                return NULL;
        }
        for (uint32_t i = (uint32_t)axis; i < x->rank; i++)
                dims[i - axis] = i - axis < y->rank ? y->dims[i - axis] : 1;
        return im_reshape(im, y, x->rank - (uint32_t)axis, dims);
}
void im_run_binary(struct import *im) {
        im->out[0] = im_binary(im, im->op, im->in[0], placed(im, im->in[1], im->in[0]));
}

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

static void row_of(struct import *im) {
        struct val *x = im->in[0];
        for (uint32_t i = 1; i < im->n_in; i++)
                x = im_binary(im, im->op, x, im->in[i]);
        im->out[0] = x;
}
static void mean_(struct import *im) {
        row_of(im);
        if (im->n_in > 1)
                im->out[0] = im_binary_scalar(im, AF_OP_DIV, im->out[0], im->n_in);
}

/* fmod 1: the sign of the dividend; 0: of the divisor, integers only. */
static void mod(struct import *im) {
        im->out[0] = im_binary(im, im_attr_int(im, "fmod", 0) ? AF_OP_FMOD : AF_OP_REMAINDER, im->in[0], im->in[1]);
}
static void bit_shift(struct import *im) {
        const Onnxm__Attribute *a = im_attr(im, "direction");
        bool left = a && a->s.len == 4 && memcmp(a->s.data, "LEFT", 4) == 0;
        im->out[0] = im_binary(im, left ? AF_OP_SHIFT_LEFT : AF_OP_SHIFT_RIGHT, im->in[0], im->in[1]);
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
const struct handler im_ops_simple[] = {
        {"Abs", im_run_unary, AF_OP_ABS},
        {"Neg", im_run_unary, AF_OP_NEG},
        {"Sign", im_run_unary, AF_OP_SIGN},
        {"Relu", im_run_unary, AF_OP_RELU},
        {"Exp", im_run_unary, AF_OP_EXP},
        {"Log", im_run_unary, AF_OP_LOG},
        {"Sqrt", im_run_unary, AF_OP_SQRT},
        {"Reciprocal", im_run_unary, AF_OP_RECIPROCAL},
        {"Tanh", im_run_unary, AF_OP_TANH},
        {"Sigmoid", im_run_unary, AF_OP_SIGMOID},
        {"Erf", im_run_unary, AF_OP_ERF},
        {"Sin", im_run_unary, AF_OP_SIN},
        {"Cos", im_run_unary, AF_OP_COS},
        {"Tan", im_run_unary, AF_OP_TAN},
        {"Asin", im_run_unary, AF_OP_ASIN},
        {"Acos", im_run_unary, AF_OP_ACOS},
        {"Atan", im_run_unary, AF_OP_ATAN},
        {"Sinh", im_run_unary, AF_OP_SINH},
        {"Cosh", im_run_unary, AF_OP_COSH},
        {"Asinh", im_run_unary, AF_OP_ASINH},
        {"Acosh", im_run_unary, AF_OP_ACOSH},
        {"Atanh", im_run_unary, AF_OP_ATANH},
        {"Floor", im_run_unary, AF_OP_FLOOR},
        {"Ceil", im_run_unary, AF_OP_CEIL},
        {"Round", im_run_unary, AF_OP_ROUND},
        {"Not", im_run_unary, AF_OP_LOGICAL_NOT},
        {"BitwiseNot", im_run_unary, AF_OP_BITWISE_NOT},
        {"IsNaN", im_run_unary, AF_OP_ISNAN},
        {"Add", im_run_binary, AF_OP_ADD},
        {"Sub", im_run_binary, AF_OP_SUB},
        {"Mul", im_run_binary, AF_OP_MUL},
        {"Div", im_run_binary, AF_OP_DIV},
        {"Equal", im_run_binary, AF_OP_EQ},
        {"Less", im_run_binary, AF_OP_LT},
        {"LessOrEqual", im_run_binary, AF_OP_LE},
        {"Greater", im_run_binary, AF_OP_GT},
        {"GreaterOrEqual", im_run_binary, AF_OP_GE},
        {"And", im_run_binary, AF_OP_LOGICAL_AND},
        {"Or", im_run_binary, AF_OP_LOGICAL_OR},
        {"Xor", im_run_binary, AF_OP_LOGICAL_XOR},
        {"BitwiseAnd", im_run_binary, AF_OP_BITWISE_AND},
        {"BitwiseOr", im_run_binary, AF_OP_BITWISE_OR},
        {"BitwiseXor", im_run_binary, AF_OP_BITWISE_XOR},
        {"Max", row_of, AF_OP_MAXIMUM},
        {"Min", row_of, AF_OP_MINIMUM},
        {"Sum", row_of, AF_OP_ADD},
        {"Mean", mean_, AF_OP_ADD},
        {"BitShift", bit_shift, 0},
        {"Mod", mod, 0},
        {"Pow", pow_, 0},
        {"Where", where_, 0},
        {"Cast", cast_, 0},
        {"CastLike", cast_like, 0},
        {"Clip", clip_, 0},
        {"LeakyRelu", leaky_relu, 0},
        {"Gelu", gelu, 0},
        {NULL, NULL, 0},
};
