/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The definition of every elementwise op on arrays: the program where there is one, else int64 in scalar code. float64 operands
 * (scalars that change per call) enter as float32.
 */
#include <string.h>

#include "numeric/bits.h"
#include "numeric/build.h"

enum { BLOCK = 512 };

struct block {
        int64_t x[3][BLOCK];
        int64_t r[BLOCK];
};

size_t af_eval_scratch_bytes(size_t n) {
        (void)n; /* programs run in blocks */
        return AF_PROG_SCRATCH_BYTES + AF_PROG_MAX_OPERANDS * BLOCK * sizeof(float) + sizeof(struct block) + 64;
}

static enum af_dtype widest(const struct af_expand_operand *operands, unsigned n_operands, unsigned first) {
        for (unsigned i = first; i < n_operands; i++)
                if (operands[i].dtype == AF_DTYPE_INT64 && !operands[i].is_scalar)
                        return AF_DTYPE_INT64;
        return operands[first].dtype;
}

static bool any_float(const struct af_expand_operand *operands, unsigned n_operands, unsigned first) {
        for (unsigned i = first; i < n_operands; i++)
                if (af_dtype_kind(operands[i].dtype) == 'f' && !operands[i].is_scalar)
                        return true;
        return false;
}

/* Whether the int64 code below defines the op for these types. */
static bool int64_defined(enum af_op op, const struct af_expand_operand *operands, unsigned n_operands, enum af_dtype out) {
        const struct af_op_info *info = af_op_info(op);
        bool to_int = af_dtype_kind(out) == 'i' || af_dtype_kind(out) == 'u';

        switch (info->cls) {
        case AF_CLASS_CAST:
        case AF_CLASS_BROADCAST:
        case AF_CLASS_VIEW:
                return to_int && (operands[0].dtype == AF_DTYPE_INT64 || (operands[0].is_scalar && out == AF_DTYPE_INT64));
        case AF_CLASS_COMPARE:
                return widest(operands, n_operands, 0) == AF_DTYPE_INT64 && !any_float(operands, n_operands, 0);
        case AF_CLASS_SELECT:
                return out == AF_DTYPE_INT64 && !any_float(operands, n_operands, 1);
        default:
                return out == AF_DTYPE_INT64 && (info->dtypes & AF_DTYPE_BIT(out)) && info->dtype_rule == AF_DTYPES_SAME &&
                       !any_float(operands, n_operands, 0);
        }
}

static void load_ints(const struct af_expand_operand *o, const void *src, size_t at, size_t n, bool as_truth, int64_t *dst) {
        for (size_t i = 0; i < n; i++) {
                struct af_expand_operand c = {.dtype = o->dtype, .is_scalar = true, .bits = o->bits};
                unsigned size = af_dtype_size(o->dtype);

                if (!o->is_scalar) {
                        c.bits = 0;
                        memcpy(&c.bits, (const char *)src + (at + i) * size, size); /* little-endian */
                }
                dst[i] = (int64_t)af_scalar_bits(&c, as_truth ? AF_DTYPE_BOOL : AF_DTYPE_INT64);
        }
}

static int64_t int64_div(int64_t x, int64_t y) {
        if (y == 0)
                return 0;
        return y == -1 ? (int64_t) - (uint64_t)x : x / y;
}

static int64_t int64_rest(int64_t x, int64_t y, bool floor) {
        int64_t r = y == 0 || y == -1 ? 0 : x % y;

        return floor && r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

static int64_t int64_floor_div(int64_t x, int64_t y) {
        int64_t r = int64_rest(x, y, false);

        return int64_div(x, y) - (r != 0 && (r < 0) != (y < 0));
}

/* Amounts outside of the width give zeros, or to the right the sign. */
static int64_t int64_shift(enum af_op op, int64_t x, int64_t n) {
        if (op == AF_OP_SHIFT_LEFT)
                return n < 0 || n > 63 ? 0 : (int64_t)((uint64_t)x << n);
        return x >> (n < 0 || n > 63 ? 63 : n);
}

/* Of the ops on integers alone; *ret where op is one of them. */
static bool int64_whole(enum af_op op, int64_t x, int64_t y, int64_t *ret) {
        switch (op) {
        case AF_OP_DIV:
        case AF_OP_TRUNC_DIV:
                *ret = int64_div(x, y);
                return true;
        case AF_OP_FLOOR_DIV:
                *ret = int64_floor_div(x, y);
                return true;
        case AF_OP_REMAINDER:
        case AF_OP_FMOD:
                *ret = int64_rest(x, y, op == AF_OP_REMAINDER);
                return true;
        case AF_OP_SHIFT_LEFT:
        case AF_OP_SHIFT_RIGHT:
                *ret = int64_shift(op, x, y);
                return true;
        case AF_OP_BITWISE_NOT:
                *ret = ~x;
                return true;
        case AF_OP_BITWISE_AND:
                *ret = x & y;
                return true;
        case AF_OP_BITWISE_OR:
                *ret = x | y;
                return true;
        case AF_OP_BITWISE_XOR:
                *ret = x ^ y;
                return true;
        default:
                return false;
        }
}

static int64_t int64_pow(int64_t x, int64_t e) {
        uint64_t r = 1, base = (uint64_t)x;

        if (e < 0)
                return x == 1 || (x == -1 && !(e & 1)) ? 1 : x == -1 ? -1 : 0;
        for (uint64_t bits = (uint64_t)e; bits; bits >>= 1) {
                if (bits & 1)
                        r *= base;
                base *= base;
        }
        return (int64_t)r;
}

static int64_t int64_clip(const struct af_expand_attrs *a, int64_t x) {
        if (a && a->has_min && x < a->imin)
                x = a->imin;
        if (a && a->has_max && x > a->imax)
                x = a->imax;
        return x;
}

static int64_t int64_value(enum af_op op, const struct af_expand_attrs *attrs, int64_t x, int64_t y, int64_t z) {
        int64_t r;

        if (int64_whole(op, x, y, &r))
                return r;
        switch (op) {
        case AF_OP_ABS:
                return x < 0 ? (int64_t) - (uint64_t)x : x;
        case AF_OP_NEG:
                return (int64_t) - (uint64_t)x;
        case AF_OP_SIGN:
                return (x > 0) - (x < 0);
        case AF_OP_RELU:
                return x > 0 ? x : 0;
        case AF_OP_SQUARE:
                return (int64_t)((uint64_t)x * (uint64_t)x);
        case AF_OP_ADD:
                return (int64_t)((uint64_t)x + (uint64_t)y);
        case AF_OP_SUB:
                return (int64_t)((uint64_t)x - (uint64_t)y);
        case AF_OP_MUL:
                return (int64_t)((uint64_t)x * (uint64_t)y);
        case AF_OP_MAXIMUM:
                return x > y ? x : y;
        case AF_OP_MINIMUM:
                return x < y ? x : y;
        case AF_OP_POW:
                return int64_pow(x, y);
        case AF_OP_EQ:
                return x == y;
        case AF_OP_NE:
                return x != y;
        case AF_OP_LT:
                return x < y;
        case AF_OP_LE:
                return x <= y;
        case AF_OP_GT:
                return x > y;
        case AF_OP_GE:
                return x >= y;
        case AF_OP_WHERE:
                return x ? y : z;
        case AF_OP_CLIP:
                return int64_clip(attrs, x);
        default: /* rounding ops, casts and views: the value itself */
                return x;
        }
}

static void eval_int64(enum af_op op, const struct af_expand_operand *operands, unsigned n_operands, enum af_dtype out,
                       const struct af_expand_attrs *attrs, const void *const *srcs, void *dst, size_t n, struct block *t) {
        unsigned size = af_dtype_size(out);

        memset(t, 0, sizeof(*t));
        for (size_t at = 0; at < n; at += BLOCK) {
                size_t m = n - at < BLOCK ? n - at : BLOCK;

                for (unsigned k = 0; k < n_operands; k++)
                        load_ints(&operands[k], srcs[k], at, m, op == AF_OP_WHERE && k == 0, t->x[k]);
                for (size_t i = 0; i < m; i++)
                        t->r[i] = int64_value(op, attrs, t->x[0][i], t->x[1][i], t->x[2][i]);
                for (size_t i = 0; i < m; i++)
                        memcpy((char *)dst + (at + i) * size, &t->r[i], size); /* the low bytes: narrower integers wrap */
        }
}

static bool has_float64(const struct af_expand_operand *operands, unsigned n_operands) {
        for (unsigned i = 0; i < n_operands; i++)
                if (operands[i].dtype == AF_DTYPE_FLOAT64 && !operands[i].is_scalar)
                        return true;
        return false;
}

/* Programs never see float64 operands: as float32, a block at a time. */
static void eval_float64(const struct af_prog *prog, const struct af_expand_operand *operands, const enum af_dtype *dtypes,
                         enum af_dtype out, const void *const *srcs, void *dst, size_t n, float *room, void *scratch) {
        for (size_t at = 0; at < n; at += BLOCK) {
                size_t m = n - at < BLOCK ? n - at : BLOCK;
                const void *s[AF_PROG_MAX_OPERANDS] = {NULL};

                for (unsigned k = 0; k < prog->n_operands; k++) {
                        const char *p = srcs[k];
                        float *f = room + (size_t)k * BLOCK;

                        s[k] = p ? p + at * af_dtype_size(operands[k].dtype) : NULL;
                        if (!p || operands[k].dtype != AF_DTYPE_FLOAT64)
                                continue;
                        for (size_t i = 0; i < m; i++) {
                                double v;

                                memcpy(&v, p + (at + i) * sizeof(v), sizeof(v));
                                f[i] = af_f32_one_nan((float)v);
                        }
                        s[k] = f;
                }
                af_prog_eval(prog, dtypes, s, (char *)dst + at * af_dtype_size(out), m, scratch);
        }
}

/* The operands as a program gets them: float64 ones that are no constants as float32. */
static void lower(const struct af_expand_operand *operands, unsigned n_operands, struct af_expand_operand *ret, enum af_dtype *ret_dtypes) {
        for (unsigned i = 0; i < n_operands; i++) {
                ret[i] = operands[i];
                if (ret[i].dtype == AF_DTYPE_FLOAT64 && !ret[i].is_scalar)
                        ret[i].dtype = AF_DTYPE_FLOAT32;
                ret_dtypes[i] = ret[i].dtype;
        }
}

int af_eval_op(enum af_op op, const struct af_expand_operand *operands, unsigned n_operands, enum af_dtype out_dtype,
               const struct af_expand_attrs *attrs, const void *const *srcs, void *dst, size_t n, void *scratch) {
        struct af_expand_operand lowered[AF_PROG_MAX_OPERANDS] = {{0}};
        enum af_dtype dtypes[AF_PROG_MAX_OPERANDS] = {AF_DTYPE_INVALID};
        char *room = (char *)scratch + (-(uintptr_t)scratch & 63u);
        struct af_prog prog;
        const char *reason;

        if (n_operands > AF_PROG_MAX_OPERANDS)
                return AF_EXPAND_E_UNSUPPORTED;
        lower(operands, n_operands, lowered, dtypes);
        if (!af_expand(op, lowered, n_operands, out_dtype, attrs, &prog, &reason)) {
                float *floats = (float *)(room + sizeof(struct block));
                char *rest = (char *)(floats + AF_PROG_MAX_OPERANDS * BLOCK);

                if (has_float64(operands, n_operands))
                        eval_float64(&prog, operands, dtypes, out_dtype, srcs, dst, n, floats, rest);
                else
                        af_prog_eval(&prog, dtypes, srcs, dst, n, rest);
                return 0;
        }
        if (!n_operands || !int64_defined(op, operands, n_operands, out_dtype))
                return AF_EXPAND_E_UNSUPPORTED;
        eval_int64(op, operands, n_operands, out_dtype, attrs, srcs, dst, n, (struct block *)room);
        return 0;
}

bool af_eval_op_supported(enum af_op op, const struct af_expand_operand *operands, unsigned n_operands, enum af_dtype out_dtype) {
        struct af_expand_operand lowered[AF_PROG_MAX_OPERANDS] = {{0}};
        enum af_dtype dtypes[AF_PROG_MAX_OPERANDS] = {AF_DTYPE_INVALID};
        struct af_prog prog;
        const char *reason;

        if (n_operands > AF_PROG_MAX_OPERANDS)
                return false;
        lower(operands, n_operands, lowered, dtypes);
        if (!af_expand(op, lowered, n_operands, out_dtype, NULL, &prog, &reason))
                return true;
        return n_operands && int64_defined(op, operands, n_operands, out_dtype);
}
