/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elementwise ops on float64 tensors. No kernel ever computes in float64: such nodes are the framework's, and numeric/ has no program
 * for them. This is what `autofusectl run` and the tests use in the framework's place: IEEE doubles, ops that are exact or correctly
 * rounded, and casts. Others (exp, tanh, ...) are not defined here.
 */
#include <math.h>
#include <string.h>

#include "compiler/reference/internal.h"
#include "numeric/half.h"

double af_reference_number(const void *p, enum af_dtype d) {
        uint64_t bits = 0;
        float f;
        double g;

        memcpy(&bits, p, af_dtype_size(d));
        switch (d) {
        case AF_DTYPE_INT8:
                return (int8_t)bits;
        case AF_DTYPE_INT16:
                return (int16_t)bits;
        case AF_DTYPE_INT32:
                return (int32_t)bits;
        case AF_DTYPE_INT64:
                return (double)(int64_t)bits;
        case AF_DTYPE_FLOAT16:
                return af_f16_to_f32((uint16_t)bits);
        case AF_DTYPE_BFLOAT16:
                return af_bf16_to_f32((uint16_t)bits);
        case AF_DTYPE_FLOAT32:
                memcpy(&f, &bits, sizeof(f));
                return f;
        case AF_DTYPE_FLOAT64:
                memcpy(&g, &bits, sizeof(g));
                return g;
        default:
                return (double)bits;
        }
}

/* float16 and bfloat16 by way of float, as the frameworks do; integers towards zero, what does not fit int64 as its least, then wrapped. */
static void store(void *p, enum af_dtype d, double v) {
        float single = (float)v;
        int64_t integer = v >= -0x1p63 && v < 0x1p63 ? (int64_t)v : INT64_MIN;
        uint16_t half;
        uint8_t truth = v != 0;

        switch (d) {
        case AF_DTYPE_BOOL:
                memcpy(p, &truth, sizeof(truth));
                break;
        case AF_DTYPE_FLOAT16:
        case AF_DTYPE_BFLOAT16:
                half = d == AF_DTYPE_FLOAT16 ? af_f16_from_f32(single) : af_bf16_from_f32(single);
                memcpy(p, &half, sizeof(half));
                break;
        case AF_DTYPE_FLOAT32:
                memcpy(p, &single, sizeof(single));
                break;
        case AF_DTYPE_FLOAT64:
                memcpy(p, &v, sizeof(v));
                break;
        default:
                memcpy(p, &integer, af_dtype_size(d));
                break;
        }
}

/* NaN wins; +0 is above -0. */
static double maximum(double a, double b) {
        if (isnan(a) || isnan(b))
                return NAN;
        return a == b ? (signbit(a) ? b : a) : a > b ? a : b;
}

/* Quotients and their rests as numeric/ has them for float32. */
static bool quotient(enum af_op op, double a, double b, double *ret) {
        double rest = fmod(a, b), q;
        bool off = rest != 0 && (rest < 0) != (b < 0);

        switch (op) {
        case AF_OP_DIV:
        case AF_OP_TRUE_DIV:
                *ret = a / b;
                return true;
        case AF_OP_TRUNC_DIV:
                *ret = trunc(a / b);
                return true;
        case AF_OP_FMOD:
                *ret = rest;
                return true;
        case AF_OP_REMAINDER:
                *ret = off ? rest + b : rest;
                return true;
        case AF_OP_FLOOR_DIV:
                q = (a - rest) / b - off;
                *ret = q == 0 ? copysign(0, a / b) : q - floor(q) > 0.5 ? floor(q) + 1 : floor(q);
                *ret = b == 0 ? a / b : *ret;
                return true;
        case AF_OP_COPYSIGN:
                *ret = copysign(a, b);
                return true;
        default:
                return false;
        }
}

static bool binary(enum af_op op, double a, double b, double *ret) {
        switch (op) {
        case AF_OP_ADD:
                *ret = a + b;
                return true;
        case AF_OP_SUB:
                *ret = a - b;
                return true;
        case AF_OP_MUL:
                *ret = a * b;
                return true;
        case AF_OP_MAXIMUM:
                *ret = maximum(a, b);
                return true;
        case AF_OP_MINIMUM:
                *ret = -maximum(-a, -b);
                return true;
        case AF_OP_EQ:
                *ret = a == b;
                return true;
        case AF_OP_NE:
                *ret = a != b;
                return true;
        case AF_OP_LT:
                *ret = a < b;
                return true;
        case AF_OP_LE:
                *ret = a <= b;
                return true;
        case AF_OP_GT:
                *ret = a > b;
                return true;
        case AF_OP_GE:
                *ret = a >= b;
                return true;
        case AF_OP_LOGICAL_AND:
                *ret = a != 0 && b != 0;
                return true;
        case AF_OP_LOGICAL_OR:
                *ret = a != 0 || b != 0;
                return true;
        case AF_OP_LOGICAL_XOR:
                *ret = (a != 0) != (b != 0);
                return true;
        default:
                return quotient(op, a, b, ret);
        }
}

static bool truth(enum af_op op, double a, double *ret) {
        switch (op) {
        case AF_OP_LOGICAL_NOT:
                *ret = a == 0;
                return true;
        case AF_OP_ISNAN:
                *ret = isnan(a);
                return true;
        case AF_OP_ISINF:
                *ret = isinf(a) != 0;
                return true;
        case AF_OP_ISFINITE:
                *ret = isfinite(a);
                return true;
        default:
                return false;
        }
}

static bool unary(enum af_op op, const struct af_expand_attrs *attrs, double a, double *ret) {
        switch (op) {
        case AF_OP_ABS:
                *ret = fabs(a);
                return true;
        case AF_OP_NEG:
                *ret = -a;
                return true;
        case AF_OP_SIGN:
                *ret = isnan(a) ? a : (a > 0) - (a < 0);
                return true;
        case AF_OP_RELU:
                *ret = a < 0 ? 0 : a;
                return true;
        case AF_OP_SQRT:
                *ret = sqrt(a);
                return true;
        case AF_OP_RECIPROCAL:
                *ret = 1 / a;
                return true;
        case AF_OP_LEAKY_RELU:
                *ret = a < 0 ? a * attrs->alpha : a;
                return true;
        case AF_OP_FLOOR:
                *ret = floor(a);
                return true;
        case AF_OP_CEIL:
                *ret = ceil(a);
                return true;
        case AF_OP_ROUND:
                *ret = nearbyint(a);
                return true;
        case AF_OP_TRUNC:
                *ret = trunc(a);
                return true;
        case AF_OP_SQUARE:
                *ret = a * a;
                return true;
        case AF_OP_CAST:
                *ret = a;
                return true;
        case AF_OP_CLIP:
                *ret = attrs->has_min && a < attrs->min ? attrs->min : a;
                *ret = attrs->has_max && *ret > attrs->max ? attrs->max : *ret;
                return true;
        default:
                return truth(op, a, ret);
        }
}

int af_reference_float64(enum af_op op, const struct af_expand_operand *operands, uint32_t n_in, enum af_dtype out_dtype,
                         const struct af_expand_attrs *attrs, const void *const *srcs, void *dst, int64_t n) {
        unsigned out_bytes = af_dtype_size(out_dtype);

        for (int64_t i = 0; i < n; i++) {
                double v[3] = {0}, result = 0;
                for (uint32_t k = 0; k < n_in && k < 3; k++) {
                        const char *p = operands[k].is_scalar ? (const char *)&operands[k].bits
                                                              : (const char *)srcs[k] + i * af_dtype_size(operands[k].dtype);
                        v[k] = af_reference_number(p, operands[k].dtype);
                }
                bool known = n_in == 1 ? unary(op, attrs, v[0], &result) : n_in == 2 && binary(op, v[0], v[1], &result);
                if (op == AF_OP_WHERE) {
                        result = v[0] != 0 ? v[1] : v[2];
                        known = true;
                }
                if (!known)
                        return AF_REFERENCE_E_UNSUPPORTED;
                store((char *)dst + i * out_bytes, out_dtype, result);
        }
        return 0;
}
