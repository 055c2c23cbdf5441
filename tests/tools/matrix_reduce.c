/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/tools/matrix.h"

static const enum af_op kinds[] = {AF_OP_REDUCE_SUM,  AF_OP_REDUCE_MAX, AF_OP_REDUCE_MIN, AF_OP_REDUCE_MEAN,
                                   AF_OP_REDUCE_PROD, AF_OP_REDUCE_ANY, AF_OP_REDUCE_ALL};
#define N_KINDS AF_ARRAY_SIZE(kinds)

static bool empty_run(const struct maker_shape *s, uint32_t axes) {
        for (uint32_t k = 0; k < s->rank; k++)
                if ((axes >> k & 1) && s->dims[k] == 0)
                        return true;
        return false;
}

static bool extreme(enum af_op op) {
        return op == AF_OP_REDUCE_MAX || op == AF_OP_REDUCE_MIN;
}

/* Every set of axes, with and without keepdims, of one input. */
static void axes_case(struct matrix *x, enum af_op op, enum af_dtype d, const struct maker_shape *s, const char *name) {
        struct maker *m = &x->maker;
        bool any = false;
        if (!(af_op_info(op)->dtypes & AF_DTYPE_BIT(d)) || !matrix_begin(x, "axes %s %s %s", af_op_info(op)->name, af_dtype_name(d), name))
                return;
        uint32_t a = maker_input(m, d, s);
        for (uint32_t axes = s->rank ? 1 : 0; axes < 1u << s->rank; axes++)
                for (int keep = 0; keep < 2; keep++) {
                        if (extreme(op) && empty_run(s, axes)) /* refused: nothing to take the maximum of */
                                continue;
                        uint32_t r = maker_reduce(m, op, a, axes, keep, (axes + keep) & 1 ? AF_DTYPE_INT64 : AF_DTYPE_INT32);
                        maker_output(m, r);
                        any = true;
                        if (keep && af_op_info(op)->dtype_rule == AF_DTYPES_SAME && af_dtype_kind(d) == 'f') /* read by its own input */
                                maker_output(m, maker_binary(m, AF_OP_SUB, a, r));
                }
        if (!any)
                maker_output(m, a);
        matrix_end(x);
}

static void axes_cases(struct matrix *x) {
        static const struct {
                const char *name;
                struct maker_shape s;
        } of[] = {{"[4,3,5]", {3, {4, 3, 5}}},
                  {"[]", {0, {0}}},
                  {"[1]", {1, {1}}},
                  {"[1,1,1]", {3, {1, 1, 1}}},
                  {"[7]", {1, {7}}},
                  {"[128,50]", {2, {128, 50}}},
                  {"[2,1000]", {2, {2, 1000}}},
                  {"[513,17]", {2, {513, 17}}},
                  {"[0]", {1, {0}}},
                  {"[0,3]", {2, {0, 3}}},
                  {"[3,0]", {2, {3, 0}}},
                  {"[2,3,4,5]", {4, {2, 3, 4, 5}}},
                  {"[3,1,70]", {3, {3, 1, 70}}},
                  {"[33,2,33]", {3, {33, 2, 33}}},
                  {"[1,2050]", {2, {1, 2050}}},
                  {"[2050,1]", {2, {2050, 1}}}};
        unsigned salt = 0;
        for (unsigned k = 0; k < N_KINDS; k++)
                for (enum af_dtype d = 1; d < AF_DTYPE_FLOAT64; d++, salt++)
                        for (unsigned i = 0; i < AF_ARRAY_SIZE(of); i++)
                                if (!x->quick || (i + salt) % 8 == 0)
                                        axes_case(x, kinds[k], d, &of[i].s, of[i].name);
}

/* [512, n] for n = 1..17 and widths around 8, 64, 1,024 and 4,096: rows, columns and all. */
static void width_cases(struct matrix *x) {
        static const enum af_dtype dtypes[] = {AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT16, AF_DTYPE_BFLOAT16, AF_DTYPE_INT32,
                                               AF_DTYPE_INT8,    AF_DTYPE_BOOL,    AF_DTYPE_INT16,    AF_DTYPE_UINT8};
        static const int64_t widths[] = {63, 64, 65, 1023, 1024, 1025, 4097};
        struct maker *m = &x->maker;
        for (unsigned i = 0; i < 17 + AF_ARRAY_SIZE(widths); i++)
                for (unsigned t = 0; t < AF_ARRAY_SIZE(dtypes); t++) {
                        int64_t n = i < 17 ? i + 1 : widths[i - 17];
                        enum af_dtype d = dtypes[t];
                        if ((x->quick && (i + t * 3) % 8) || !matrix_begin(x, "width %s %d", af_dtype_name(d), (int)n))
                                continue;
                        uint32_t a = maker_input(m, d, SHAPE(i < 17 ? 512 : 12, n));
                        for (uint32_t axes = 1; axes < 4; axes++)
                                maker_output(m, maker_reduce(m, AF_OP_REDUCE_SUM, a, axes, false, AF_DTYPE_INT32));
                        if (d != AF_DTYPE_BOOL)
                                maker_output(m, maker_reduce(m, AF_OP_REDUCE_MAX, a, 2, true, 0));
                        maker_output(m, maker_reduce(m, AF_OP_REDUCE_ANY, a, 2, false, 0));
                        matrix_end(x);
                }
}

/* Softmax, layer norm and RMS norm as front ends decompose them. */
static void norm_case(struct matrix *x, enum af_dtype d, int64_t rows, int64_t width) {
        struct maker *m = &x->maker;
        if (!matrix_begin(x, "norm %s [%d,%d]", af_dtype_name(d), (int)rows, (int)width))
                return;
        uint32_t a = maker_input(m, d, SHAPE(rows, width)), g = maker_input(m, AF_DTYPE_FLOAT32, SHAPE(width));
        uint32_t f = d == AF_DTYPE_FLOAT32 ? a : maker_cast(m, a, AF_DTYPE_FLOAT32);
        uint32_t e = maker_unary(m, AF_OP_EXP, maker_binary(m, AF_OP_SUB, f, maker_reduce(m, AF_OP_REDUCE_MAX, f, 2, true, 0)));
        uint32_t soft = maker_binary(m, AF_OP_DIV, e, maker_reduce(m, AF_OP_REDUCE_SUM, e, 2, true, 0));
        uint32_t c = maker_binary(m, AF_OP_SUB, f, maker_reduce(m, AF_OP_REDUCE_MEAN, f, 2, true, 0));
        uint32_t var = maker_reduce(m, AF_OP_REDUCE_MEAN, maker_unary(m, AF_OP_SQUARE, c), 2, true, 0);
        uint32_t eps = maker_constant(m, AF_DTYPE_FLOAT32, 1e-5);
        uint32_t norm = maker_binary(m, AF_OP_MUL, c, maker_unary(m, AF_OP_RSQRT, maker_binary(m, AF_OP_ADD, var, eps)));
        norm = maker_binary(m, AF_OP_MUL, norm, g);
        maker_output(m, d == AF_DTYPE_FLOAT32 ? soft : maker_cast(m, soft, d));
        maker_output(m, d == AF_DTYPE_FLOAT32 ? norm : maker_cast(m, norm, d));
        matrix_end(x);
}

static void norm_cases(struct matrix *x) {
        static const int64_t widths[] = {1, 7, 8, 9, 63, 64, 65, 1023, 4097};
        static const enum af_dtype dtypes[] = {AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT16, AF_DTYPE_BFLOAT16};
        for (unsigned i = 0; i < AF_ARRAY_SIZE(widths); i++)
                for (unsigned t = 0; t < AF_ARRAY_SIZE(dtypes); t++)
                        if (!x->quick || (i + t) % 3 == 0)
                                norm_case(x, dtypes[t], i % 2 ? 37 : 64, widths[i]);
        norm_case(x, AF_DTYPE_FLOAT32, 3, 48000);
        if (!x->quick)
                norm_case(x, AF_DTYPE_FLOAT16, 2, 48000);
        norm_case(x, AF_DTYPE_BFLOAT16, 1, 25000);
}

/* Runs longer than a core, or a grid, holds. */
static void long_cases(struct matrix *x) {
        static const struct maker_shape of[] = {{1, {1000003}},  {2, {70000, 3}}, {2, {3, 70000}},
                                                {2, {1, 48000}}, {2, {48000, 1}}, {3, {5, 1, 40001}}};
        static const enum af_dtype dtypes[] = {AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT16, AF_DTYPE_INT32, AF_DTYPE_BFLOAT16};
        struct maker *m = &x->maker;
        for (unsigned i = 0; i < AF_ARRAY_SIZE(of); i++)
                for (unsigned t = 0; t < AF_ARRAY_SIZE(dtypes); t++) {
                        if ((x->quick && t != i % 4) || !matrix_begin(x, "long %s shape#%u", af_dtype_name(dtypes[t]), i))
                                continue;
                        uint32_t a = maker_input(m, dtypes[t], &of[i]);
                        for (uint32_t axes = 1; axes < 1u << of[i].rank; axes++) {
                                uint32_t s = maker_reduce(m, AF_OP_REDUCE_SUM, a, axes, true, AF_DTYPE_INT32);
                                maker_output(m, s);
                                maker_output(m, maker_binary(m, AF_OP_SUB, a, maker_reduce(m, AF_OP_REDUCE_MAX, a, axes, true, 0)));
                                if (t != 2)
                                        maker_output(m,
                                                     maker_reduce(m, AF_OP_REDUCE_MEAN, maker_unary(m, AF_OP_SQUARE, a), axes, false, 0));
                        }
                        maker_output(m, maker_reduce(m, AF_OP_REDUCE_ANY, a, 1, false, 0));
                        matrix_end(x);
                }
}

/* A reduction of a reduction, of two inputs, and sums of one read over several axes, each read again below. */
static void nested_cases(struct matrix *x) {
        static const enum af_dtype dtypes[] = {AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT16, AF_DTYPE_INT32};
        struct maker *m = &x->maker;
        for (unsigned t = 0; t < AF_ARRAY_SIZE(dtypes); t++)
                for (uint32_t first = 1; first < 8; first++)
                        for (uint32_t second = 1; second < 8; second++) {
                                if ((x->quick && (first * 7 + second + t * 3) % 11) ||
                                    !matrix_begin(x, "nested %s %u %u", af_dtype_name(dtypes[t]), first, second))
                                        continue;
                                uint32_t a = maker_input(m, dtypes[t], SHAPE(6, 21, 40)), b = maker_input(m, dtypes[t], SHAPE(21, 1));
                                uint32_t p = maker_binary(m, AF_OP_MUL, a, b);
                                uint32_t s = maker_reduce(m, AF_OP_REDUCE_SUM, p, first, true, AF_DTYPE_INT32);
                                uint32_t q = maker_binary(m, AF_OP_SUB, p, s);
                                uint32_t u = maker_reduce(m, AF_OP_REDUCE_MAX, q, second, true, 0);
                                maker_output(m, maker_binary(m, AF_OP_ADD, u, s));
                                if (second != 7)
                                        maker_output(m, maker_reduce(m, AF_OP_REDUCE_MIN, u, 7 & ~second, false, 0));
                                matrix_end(x);
                        }
}

void matrix_reduce(struct matrix *x) {
        axes_cases(x);
        width_cases(x);
        norm_cases(x);
        nested_cases(x);
        long_cases(x);
}
