/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "tests/tools/matrix.h"

static const struct maker_shape shapes[] = {
        {0, {0}},       {1, {1}},       {3, {1, 1, 1}}, {1, {7}}, {2, {3, 5}}, {3, {4, 3, 5}},
        {2, {128, 50}}, {2, {2, 1000}}, {2, {513, 17}}, {1, {0}}, {2, {0, 3}}, {2, {3, 0}},
};
#define N_SHAPES AF_ARRAY_SIZE(shapes)

/* Of the shapes, quick takes two that change from case to case, and the 0-d one now and then. */
static bool wanted(const struct matrix *x, unsigned shape, unsigned salt) {
        return !x->quick || (shape + salt * 5) % 6 == 0;
}

static bool defined(enum af_op op, enum af_dtype d) {
        return af_op_info(op)->dtypes & AF_DTYPE_BIT(d);
}

static void clip_forms(struct maker *m, uint32_t a, bool is_float) {
        struct af_attr lo = {.key = AF_ATTR_MIN, .is_int = !is_float, .i = -2, .f = is_float ? -1.5 : -2},
                       hi = {.key = AF_ATTR_MAX, .is_int = !is_float, .i = 3, .f = is_float ? 2.25 : 3}, both[] = {lo, hi},
                       crossed[] = {{.key = AF_ATTR_MIN, .is_int = !is_float, .i = 5, .f = 5},
                                    {.key = AF_ATTR_MAX, .is_int = !is_float, .i = 1, .f = 1}};
        maker_output(m, maker_node(m, AF_OP_CLIP, &a, 1, both, 2, 0));
        maker_output(m, maker_node(m, AF_OP_CLIP, &a, 1, &lo, 1, 0));
        maker_output(m, maker_node(m, AF_OP_CLIP, &a, 1, &hi, 1, 0));
        maker_output(m, maker_node(m, AF_OP_CLIP, &a, 1, crossed, 2, 0));
        if (is_float) {
                struct af_attr nan = {.key = AF_ATTR_MIN, .f = NAN}, inf = {.key = AF_ATTR_MAX, .f = INFINITY};
                maker_output(m, maker_node(m, AF_OP_CLIP, &a, 1, &nan, 1, 0));
                maker_output(m, maker_node(m, AF_OP_CLIP, &a, 1, &inf, 1, 0));
        }
}

static void unary_case(struct matrix *x, enum af_op op, enum af_dtype d, unsigned shape) {
        struct maker *m = &x->maker;
        if (!matrix_begin(x, "unary %s %s shape#%u", af_op_info(op)->name, af_dtype_name(d), shape))
                return;
        uint32_t a = maker_input(m, d, &shapes[shape]);
        if (op == AF_OP_CLIP) {
                clip_forms(m, a, af_dtype_kind(d) == 'f');
        } else if (op == AF_OP_GELU) {
                struct af_attr tanh_form = {.key = AF_ATTR_APPROXIMATE, .s = "tanh"};
                maker_output(m, maker_unary(m, op, a));
                maker_output(m, maker_node(m, op, &a, 1, &tanh_form, 1, 0));
        } else if (op == AF_OP_LEAKY_RELU) {
                const double alphas[] = {0.2, -0.5, 0, 1.5};
                maker_output(m, maker_unary(m, op, a));
                for (unsigned i = 0; i < AF_ARRAY_SIZE(alphas); i++) {
                        struct af_attr alpha = {.key = AF_ATTR_ALPHA, .f = alphas[i]};
                        maker_output(m, maker_node(m, op, &a, 1, &alpha, 1, 0));
                }
        } else {
                maker_output(m, maker_unary(m, op, a));
        }
        matrix_end(x);
}

static double number_of(enum af_dtype d, unsigned i) {
        static const double floats[] = {0.1, -0.0, 0.0, 1, -1, 2, 0.5, 3, NAN, INFINITY, -INFINITY, 1e-42, 65504, 1e30, -2.5};
        static const double ints[] = {1, 0, -1, 2, -4, 7, 127, -128};
        static const double naturals[] = {1, 0, 2, 3, 7, 255, 128, 16};
        switch (af_dtype_kind(d)) {
        case 'f':
                return floats[i % AF_ARRAY_SIZE(floats)];
        case 'i':
                return ints[i % AF_ARRAY_SIZE(ints)];
        case 'u':
                return naturals[i % AF_ARRAY_SIZE(naturals)];
        default:
                return i & 1;
        }
}

static struct maker_shape row_of(const struct maker_shape *s) {
        return (struct maker_shape){.rank = AF_MIN(s->rank, 1u), .dims = {s->rank ? s->dims[s->rank - 1] : 0}};
}
static struct maker_shape column_of(const struct maker_shape *s) {
        struct maker_shape c = *s;
        if (c.rank)
                c.dims[c.rank - 1] = 1;
        return c;
}

/* The operand beside x in form number form. 0: no such form. */
#define N_FORMS 7u
static uint32_t beside(struct maker *m, enum af_dtype d, const struct maker_shape *shape, unsigned form, unsigned salt) {
        struct maker_shape row = row_of(shape), column = column_of(shape);
        switch (form) {
        case 0:
                return maker_input(m, d, shape);
        case 1:
                return maker_constant(m, d, number_of(d, salt));
        case 2:
                return maker_input(m, d, SCALAR_SHAPE);
        case 3:
                return maker_input(m, d, &row);
        case 4:
                return maker_input(m, d, &column);
        case 5:
                return af_dtype_kind(d) == 'f' ? maker_constant(m, AF_DTYPE_FLOAT64, number_of(d, salt + 3)) : 0;
        default:
                return maker_host(m, af_dtype_kind(d) == 'f' && salt % 2 ? AF_DTYPE_FLOAT64 : d);
        }
}

static void binary_case(struct matrix *x, enum af_op op, enum af_dtype d, unsigned shape, unsigned salt) {
        struct maker *m = &x->maker;
        if (!matrix_begin(x, "binary %s %s shape#%u", af_op_info(op)->name, af_dtype_name(d), shape))
                return;
        uint32_t a = maker_input(m, d, &shapes[shape]);
        maker_output(m, maker_binary(m, op, a, a));
        for (unsigned form = 0; form < N_FORMS; form++) {
                uint32_t left = beside(m, d, &shapes[shape], form, salt), right = beside(m, d, &shapes[shape], form, salt + 1);
                if (!left || !right)
                        continue;
                maker_output(m, maker_binary(m, op, a, right));
                maker_output(m, maker_binary(m, op, left, a));
        }
        matrix_end(x);
}

/* Two dtypes in one logical op; comparing and logical results feed further ones. */
static void mixed_case(struct matrix *x, enum af_op op, enum af_dtype d, unsigned shape) {
        struct maker *m = &x->maker;
        if (af_op_info(op)->dtype_rule != AF_DTYPES_LOGICAL ||
            !matrix_begin(x, "mixed %s %s shape#%u", af_op_info(op)->name, af_dtype_name(d), shape))
                return;
        uint32_t a = maker_input(m, d, &shapes[shape]), b = maker_input(m, AF_DTYPE_BOOL, &shapes[shape]),
                 c = maker_input(m, AF_DTYPE_FLOAT32, &shapes[shape]);
        uint32_t p = maker_binary(m, op, a, b), q = maker_binary(m, op, c, a);
        maker_output(m, maker_binary(m, op, p, q));
        maker_output(m, maker_unary(m, AF_OP_LOGICAL_NOT, p));
        maker_output(m, maker_cast(m, q, d));
        matrix_end(x);
}

static void where_case(struct matrix *x, enum af_dtype d, unsigned shape) {
        struct maker *m = &x->maker;
        if (!matrix_begin(x, "where %s shape#%u", af_dtype_name(d), shape))
                return;
        struct maker_shape row = row_of(&shapes[shape]), column = column_of(&shapes[shape]);
        uint32_t c = maker_input(m, AF_DTYPE_BOOL, &shapes[shape]), a = maker_input(m, d, &shapes[shape]), b = maker_input(m, d, &row),
                 e = maker_input(m, d, &column), crow = maker_input(m, AF_DTYPE_BOOL, &row), ccol = maker_input(m, AF_DTYPE_BOOL, &column),
                 k = maker_constant(m, d, number_of(d, shape)), k2 = maker_constant(m, d, number_of(d, shape + 8)),
                 c0 = maker_input(m, AF_DTYPE_BOOL, SCALAR_SHAPE);
        const uint32_t sets[][3] = {{c, a, b},    {c, e, a},    {c, k, a},  {c, a, k2}, {c, k, k2},
                                    {crow, a, e}, {ccol, b, a}, {c0, a, b}, {c, b, e}};
        for (unsigned i = 0; i < AF_ARRAY_SIZE(sets); i++)
                maker_output(m, maker_node(m, AF_OP_WHERE, sets[i], 3, NULL, 0, 0));
        matrix_end(x);
}

static void cast_case(struct matrix *x, enum af_dtype from, unsigned shape) {
        struct maker *m = &x->maker;
        if (!matrix_begin(x, "cast %s shape#%u", af_dtype_name(from), shape))
                return;
        uint32_t a = maker_input(m, from, &shapes[shape]);
        for (enum af_dtype to = 1; to < AF_DTYPE_FLOAT64; to++) {
                uint32_t b = maker_cast(m, a, to);
                maker_output(m, b);
                if (to != from)
                        maker_output(m, maker_cast(m, b, from));
        }
        matrix_end(x);
}

/* Shapes that broadcast against each other in every way. */
static void broadcast_cases(struct matrix *x, enum af_op op, enum af_dtype d) {
        static const struct maker_shape pairs[][2] = {
                {{2, {3, 1}}, {1, {3}}},
                {{2, {10, 1}}, {2, {1, 10}}},
                {{1, {1}}, {0, {0}}},
                {{3, {4, 1, 5}}, {2, {3, 1}}},
                {{2, {0, 3}}, {1, {3}}},
                {{2, {1, 1000}}, {2, {2, 1}}},
                {{2, {513, 1}}, {2, {513, 17}}},
                {{3, {4, 1, 1}}, {3, {1, 3, 5}}},
                {{3, {1, 3, 1}}, {3, {4, 1, 5}}},
                {{4, {2, 1, 3, 1}}, {4, {1, 5, 1, 7}}},
                {{2, {70, 1}}, {3, {2, 1, 33}}},
                {{3, {1, 1, 64}}, {3, {9, 9, 1}}},
                {{2, {1, 1}}, {2, {40, 40}}},
                {{5, {2, 3, 1, 5, 1}}, {3, {4, 1, 6}}},
                {{2, {3, 0}}, {2, {3, 1}}},
        };
        struct maker *m = &x->maker;
        for (unsigned i = 0; i < AF_ARRAY_SIZE(pairs); i++) {
                if ((x->quick && (i + op + d) % 5) ||
                    !matrix_begin(x, "broadcast %s %s pair#%u", af_op_info(op)->name, af_dtype_name(d), i))
                        continue;
                uint32_t a = maker_input(m, d, &pairs[i][0]), b = maker_input(m, d, &pairs[i][1]);
                uint32_t s = maker_binary(m, op, a, b);
                maker_output(m, s);
                maker_output(m, maker_binary(m, AF_OP_SUB, maker_binary(m, AF_OP_MAXIMUM, b, s), a));
                matrix_end(x);
        }
}

void matrix_ops(struct matrix *x) {
        unsigned salt = 0;
        for (enum af_op op = 0; op < AF_N_OPS; op++) {
                const struct af_op_info *info = af_op_info(op);
                bool unary = info->cls == AF_CLASS_ELEMENTWISE && info->max_inputs == 1;
                bool binary = (info->cls == AF_CLASS_ELEMENTWISE || info->cls == AF_CLASS_COMPARE) && info->max_inputs == 2;
                for (enum af_dtype d = 1; d < AF_DTYPE_FLOAT64; d++, salt++)
                        for (unsigned s = 0; s < N_SHAPES; s++) {
                                if (!defined(op, d) || !wanted(x, s, salt))
                                        continue;
                                if (unary)
                                        unary_case(x, op, d, s);
                                if (binary)
                                        binary_case(x, op, d, s, salt + s);
                                if (binary)
                                        mixed_case(x, op, d, s);
                                if (op == AF_OP_WHERE)
                                        where_case(x, d, s);
                                if (op == AF_OP_CAST)
                                        cast_case(x, d, s);
                        }
        }
        const enum af_dtype usual[] = {AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT16, AF_DTYPE_BFLOAT16,
                                       AF_DTYPE_INT32,   AF_DTYPE_INT16,   AF_DTYPE_INT8};
        for (unsigned i = 0; i < AF_ARRAY_SIZE(usual); i++)
                broadcast_cases(x, i & 1 ? AF_OP_MUL : AF_OP_ADD, usual[i]);
}
