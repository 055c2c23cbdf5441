/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizer steps of ai.onnx.preview.training: elementwise over each tensor with its gradient and state. */
#include <string.h>

#include "importer/import.h"

#define B(op, x, y)     im_binary(im, AF_OP_##op, x, y)
#define S(op, x, value) im_binary_scalar(im, AF_OP_##op, x, value)
#define U(op, x)        im_unary(im, AF_OP_##op, x)

/* n tensors per kind after the learning rate and the step: X1.. G1.. and state. Writes n; false: refused. */
static bool tensors_of(struct import *im, uint32_t kinds, uint32_t *ret_n) {
        uint32_t n = im->n_in < 2 ? 0 : (im->n_in - 2) / kinds;
        if (n == 0 || n * kinds + 2 != im->n_in || n * (kinds - 1) > ONNX_MAX_IO)
                im_refuse(im, "op %s with %u operands", im->node->op_type, im->n_in);
        *ret_n = n;
        return !im->error;
}
/* The step as float32. */
static struct val *step(struct import *im) {
        return im_cast(im, im->in[1], AF_DTYPE_FLOAT32);
}
/* norm_coefficient X + G */
static struct val *regular(struct import *im, struct val *x, struct val *g) {
        double c = im_attr_float(im, "norm_coefficient", 0);
        return c == 0 ? g : B(ADD, S(MUL, x, c), g);
}

static void adagrad(struct import *im) {
        uint32_t n;
        if (!tensors_of(im, 3, &n))
                return;
        double decay = im_attr_float(im, "decay_factor", 0), epsilon = im_attr_float(im, "epsilon", (double)1e-6f);
        struct val *r = B(DIV, im->in[0], S(ADD, S(MUL, step(im), decay), 1));
        for (uint32_t i = 0; i < n; i++) {
                struct val *x = im->in[2 + i], *g = regular(im, x, im->in[2 + n + i]);
                struct val *h = B(ADD, im->in[2 + 2 * n + i], U(SQUARE, g));
                im->out[i] = B(SUB, x, B(DIV, B(MUL, r, g), S(ADD, U(SQRT, h), epsilon)));
                im->out[n + i] = h;
        }
}

static void momentum(struct import *im) {
        uint32_t n;
        if (!tensors_of(im, 3, &n))
                return;
        const Onnxm__Attribute *mode = im_attr(im, "mode");
        bool nesterov = mode && mode->s.len && mode->s.data[0] == 'n';
        double alpha = im_attr_float(im, "alpha", 0), beta = im_attr_float(im, "beta", 0);
        struct val *r = im->in[0], *damped = im_where(im, S(GT, step(im), 0), im_scalar(im, AF_DTYPE_FLOAT32, beta),
                                                      im_scalar(im, AF_DTYPE_FLOAT32, 1)); /* not in the first step */
        for (uint32_t i = 0; i < n; i++) {
                struct val *x = im->in[2 + i], *g = regular(im, x, im->in[2 + n + i]);
                struct val *v = B(ADD, S(MUL, im->in[2 + 2 * n + i], alpha), B(MUL, g, damped));
                struct val *move = nesterov ? B(ADD, g, S(MUL, v, alpha)) : v;
                im->out[i] = B(SUB, x, B(MUL, r, move));
                im->out[n + i] = v;
        }
}

/* The rate corrected for the averages' start, from the second step on. */
static struct val *adam_rate(struct import *im, double alpha, double beta) {
        struct val *t = step(im), *r = im->in[0];
        struct val *a = B(SUB, im_scalar(im, AF_DTYPE_FLOAT32, 1), B(POW, im_scalar(im, AF_DTYPE_FLOAT32, alpha), t));
        struct val *b = B(SUB, im_scalar(im, AF_DTYPE_FLOAT32, 1), B(POW, im_scalar(im, AF_DTYPE_FLOAT32, beta), t));
        return im_where(im, S(GT, t, 0), B(DIV, B(MUL, r, U(SQRT, b)), a), r);
}
static void adam(struct import *im) {
        uint32_t n;
        if (!tensors_of(im, 4, &n))
                return;
        double alpha = im_attr_float(im, "alpha", (double)0.9f), beta = im_attr_float(im, "beta", (double)0.999f);
        double epsilon = im_attr_float(im, "epsilon", (double)1e-6f), post = im_attr_float(im, "norm_coefficient_post", 0);
        struct val *r = adam_rate(im, alpha, beta);
        for (uint32_t i = 0; i < n; i++) {
                struct val *x = im->in[2 + i], *g = regular(im, x, im->in[2 + n + i]);
                struct val *v = B(ADD, S(MUL, im->in[2 + 2 * n + i], alpha), S(MUL, g, 1 - alpha));
                struct val *h = B(ADD, S(MUL, im->in[2 + 3 * n + i], beta), S(MUL, U(SQUARE, g), 1 - beta));
                struct val *y = B(SUB, x, B(DIV, B(MUL, r, v), S(ADD, U(SQRT, h), epsilon)));
                im->out[i] = post == 0 ? y : S(MUL, y, 1 - post);
                im->out[n + i] = v;
                im->out[2 * n + i] = h;
        }
}

const struct handler im_ops_train[] = {
        {"Adagrad", adagrad, 0},
        {"Momentum", momentum, 0},
        {"Adam", adam, 0},
        {NULL, NULL, 0},
};
