/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/tools/matrix.h"

struct layout {
        const char *name;
        struct maker_shape shape;
        int64_t strides[4], offset;
};

static void strided_case(struct matrix *x, const struct layout *l, enum af_dtype d) {
        struct maker *m = &x->maker;
        if (!matrix_begin(x, "strided %s %s", l->name, af_dtype_name(d)))
                return;
        uint32_t rank = l->shape.rank;
        struct maker_shape row = {.rank = 1, .dims = {l->shape.dims[rank - 1]}};
        uint32_t a = maker_strided(m, d, &l->shape, l->strides, l->offset), b = maker_input(m, d, &l->shape), r = maker_input(m, d, &row);
        maker_output(m, maker_binary(m, AF_OP_MAXIMUM, a, b));
        maker_output(m, maker_binary(m, AF_OP_SUB, maker_unary(m, AF_OP_NEG, a), r));
        for (uint32_t axes = 1; axes < 1u << rank; axes++) {
                uint32_t s = maker_reduce(m, AF_OP_REDUCE_SUM, a, axes, true, AF_DTYPE_INT32);
                maker_output(m, s);
                maker_output(m, maker_binary(m, AF_OP_MINIMUM, maker_reduce(m, AF_OP_REDUCE_MAX, a, axes, true, 0), b));
        }
        int64_t n = 1;
        for (uint32_t k = 0; k < rank; k++)
                n *= l->shape.dims[k];
        maker_output(m, maker_unary(m, AF_OP_ABS, maker_shaped(m, AF_OP_RESHAPE, a, SHAPE(n))));
        maker_output(m, maker_cast(m, a, AF_DTYPE_BOOL));
        int64_t place = rank / 2;
        struct af_attr at = {.key = AF_ATTR_AXES, .ints = &place, .n = 1};
        uint32_t u = maker_node(m, AF_OP_UNSQUEEZE, &a, 1, &at, 1, 0), q = maker_unary(m, AF_OP_SQUEEZE, u);
        maker_output(m, u);
        maker_output(m, maker_unary(m, AF_OP_NEG, u));
        maker_output(m, maker_binary(m, AF_OP_MINIMUM, q, q));
        maker_output(m, maker_shaped(m, AF_OP_RESHAPE, q, SHAPE(1, n)));
        matrix_end(x);
}

static void strided_cases(struct matrix *x) {
        static const struct layout layouts[] = {
                {"transposed", {2, {50, 33}}, {1, 50}, 0},
                {"sliced", {2, {40, 17}}, {100, 1}, 5},
                {"stepped", {1, {300}}, {3}, 1},
                {"stride0 rows", {2, {30, 70}}, {0, 1}, 0},
                {"stride0 columns", {2, {30, 70}}, {1, 0}, 3},
                {"padded rows", {2, {100, 7}}, {16, 1}, 0},
                {"unit axis 999", {3, {5, 1, 9}}, {9, 999, 1}, 0},
                {"permuted", {3, {6, 10, 14}}, {1, 84, 6}, 0},
                {"gaps", {3, {4, 6, 9}}, {200, 20, 2}, 7},
                {"all stride0", {2, {9, 11}}, {0, 0}, 2},
                {"offset", {1, {1025}}, {1}, 3},
                {"wide sliced", {2, {3, 5000}}, {9001, 1}, 1},
                {"middle", {3, {3, 40, 8}}, {2000, 16, 1}, 11},
                {"far steps", {2, {20, 30}}, {3000, 90}, 4},
                {"far steps in one row", {1, {700}}, {70}, 4},
                {"axes reversed", {4, {3, 5, 7, 9}}, {1, 3, 15, 105}, 0},
                {"transposed in steps", {2, {50, 33}}, {2, 200}, 1},
                {"large transposed", {2, {300, 200}}, {1, 300}, 0},
        };
        for (unsigned i = 0; i < AF_ARRAY_SIZE(layouts); i++)
                for (enum af_dtype d = AF_DTYPE_INT8; d < AF_DTYPE_FLOAT64; d++)
                        if (!x->quick || (i + d) % 6 == 0)
                                strided_case(x, &layouts[i], d);
}

/* Outputs that state where their elements go: spread out by the kernel that computes them, whatever that is. */
static void spread_cases(struct matrix *x) {
        static const struct layout layouts[] = {{"transposed", {2, {50, 33}}, {1, 50}, 0}, {"padded rows", {2, {40, 17}}, {100, 1}, 0},
                                                {"stepped", {1, {300}}, {3}, 0},           {"permuted", {3, {6, 10, 14}}, {1, 84, 6}, 0},
                                                {"gaps", {3, {4, 6, 9}}, {200, 20, 2}, 0}, {"unit axis", {3, {5, 1, 9}}, {1, 7, 5}, 0},
                                                {"long", {2, {3, 9000}}, {1, 3}, 0}};
        struct maker *m = &x->maker;
        for (unsigned i = 0; i < AF_ARRAY_SIZE(layouts); i++)
                for (enum af_dtype d = AF_DTYPE_INT8; d < AF_DTYPE_FLOAT64; d++) {
                        const struct layout *l = &layouts[i];
                        if ((x->quick && (i + d) % 5) || !matrix_begin(x, "spread %s %s", l->name, af_dtype_name(d)))
                                continue;
                        struct maker_shape row = {.rank = 1, .dims = {l->shape.dims[l->shape.rank - 1]}};
                        uint32_t a = maker_input(m, d, &l->shape), b = maker_input(m, d, &row), p = maker_binary(m, AF_OP_MAXIMUM, a, b);
                        uint32_t s = maker_reduce(m, AF_OP_REDUCE_MAX, p, 1u << (l->shape.rank - 1), true, 0);
                        maker_output_strided(m, a, l->strides);
                        maker_output_strided(m, p, l->strides);
                        maker_output_strided(m, maker_binary(m, AF_OP_LT, a, b), l->strides);
                        maker_output_strided(m, maker_binary(m, AF_OP_SUB, p, s), l->strides);
                        maker_output_strided(m, s, l->strides);
                        maker_output_strided(m, maker_shaped(m, AF_OP_EXPAND, b, &l->shape), l->strides);
                        maker_output(m, maker_binary(m, AF_OP_MINIMUM, p, b)); /* reads the one that is spread out */
                        int64_t n = 1;
                        for (uint32_t k = 0; k < l->shape.rank; k++)
                                n *= l->shape.dims[k];
                        maker_output(m, maker_shaped(m, AF_OP_RESHAPE, p, SHAPE(n)));
                        matrix_end(x);
                }
}

static void view_cases(struct matrix *x) {
        static const enum af_dtype dtypes[] = {AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT16, AF_DTYPE_INT8};
        struct maker *m = &x->maker;
        for (unsigned t = 0; t < AF_ARRAY_SIZE(dtypes); t++) {
                enum af_dtype d = dtypes[t];
                if (matrix_begin(x, "view A05 %s", af_dtype_name(d))) { /* reshape, row sum, compare, select, sum */
                        uint32_t a = maker_unary(m, AF_OP_ABS, maker_input(m, d, SHAPE(64, 64)));
                        uint32_t r = maker_shaped(m, AF_OP_RESHAPE, a, SHAPE(1, 4096));
                        uint32_t s = maker_cast(m, maker_reduce(m, AF_OP_REDUCE_SUM, r, 2, true, AF_DTYPE_INT32), d);
                        uint32_t in[] = {maker_binary(m, AF_OP_LT, r, s), r, maker_constant(m, d, 1)};
                        uint32_t w = maker_node(m, AF_OP_WHERE, in, 3, NULL, 0, 0);
                        maker_output(m, maker_reduce(m, AF_OP_REDUCE_SUM, w, 3, false, AF_DTYPE_INT32));
                        matrix_end(x);
                }
                if (matrix_begin(x, "view split merge %s", af_dtype_name(d))) {
                        uint32_t a = maker_input(m, d, SHAPE(6, 20, 35)), b = maker_input(m, d, SHAPE(120, 5, 7));
                        uint32_t p = maker_shaped(m, AF_OP_RESHAPE, maker_unary(m, AF_OP_NEG, a), SHAPE(120, 5, 7));
                        uint32_t q = maker_binary(m, AF_OP_ADD, p, b);
                        maker_output(m, maker_shaped(m, AF_OP_RESHAPE, q, SHAPE(4200)));
                        maker_output(m,
                                     maker_reduce(m, AF_OP_REDUCE_MAX, maker_shaped(m, AF_OP_RESHAPE, q, SHAPE(2, 3, 700)), 4, false, 0));
                        maker_output(m, maker_shaped(m, AF_OP_RESHAPE, a, SHAPE(35, 20, 6)));
                        maker_output(m, maker_binary(m, AF_OP_MUL, maker_shaped(m, AF_OP_RESHAPE, q, SHAPE(35, 120)),
                                                     maker_input(m, d, SHAPE(35, 1))));
                        matrix_end(x);
                }
                if (matrix_begin(x, "view expand %s", af_dtype_name(d))) {
                        uint32_t a = maker_input(m, d, SHAPE(3, 1, 5)), e = maker_shaped(m, AF_OP_EXPAND, a, SHAPE(2, 3, 4, 5));
                        uint32_t f = maker_shaped(m, AF_OP_BROADCAST, maker_input(m, d, SCALAR_SHAPE), SHAPE(40, 3));
                        maker_output(m, e);
                        maker_output(m, maker_unary(m, AF_OP_ABS, e));
                        maker_output(m, maker_reduce(m, AF_OP_REDUCE_SUM, e, 0xb, false, AF_DTYPE_INT32));
                        maker_output(m, f);
                        maker_output(m, maker_reduce(m, AF_OP_REDUCE_SUM, f, 1, false, AF_DTYPE_INT32));
                        maker_output(m, maker_shaped(m, AF_OP_RESHAPE, e, SHAPE(24, 5)));
                        matrix_end(x);
                }
                if (matrix_begin(x, "view alone %s", af_dtype_name(d))) { /* outputs that are inputs, views of them, and repeated */
                        uint32_t a = maker_input(m, d, SHAPE(4, 6)), r = maker_shaped(m, AF_OP_RESHAPE, a, SHAPE(24));
                        uint32_t n = maker_unary(m, AF_OP_NEG, a);
                        maker_output(m, a);
                        maker_output(m, r);
                        maker_output(m, n);
                        maker_output(m, n);
                        maker_output(m, maker_constant(m, d, 3));
                        maker_output(m, maker_shaped(m, AF_OP_RESHAPE, n, SHAPE(2, 12)));
                        matrix_end(x);
                }
        }
}

/* 12 float32 rows of 24,576 alive at once, all read by a sum and by what follows it. */
static void live_rows(struct matrix *x) {
        struct maker *m = &x->maker;
        uint32_t v[12], s = 0, o = 0;
        if (!matrix_begin(x, "live rows"))
                return;
        for (unsigned i = 0; i < 12; i++) {
                v[i] = maker_unary(m, AF_OP_ABS, maker_input(m, AF_DTYPE_FLOAT32, SHAPE(2, 24576)));
                uint32_t r = maker_reduce(m, AF_OP_REDUCE_MAX, v[i], 2, true, 0);
                s = s ? maker_binary(m, AF_OP_ADD, s, r) : r;
        }
        for (unsigned i = 0; i < 12; i++) {
                uint32_t d = maker_binary(m, AF_OP_SUB, v[i], s);
                o = o ? maker_binary(m, AF_OP_MAXIMUM, o, d) : d;
        }
        maker_output(m, o);
        matrix_end(x);
}

static void many_inputs(struct matrix *x) {
        struct maker *m = &x->maker;
        uint32_t o = 0;
        if (!matrix_begin(x, "60 inputs"))
                return;
        for (unsigned i = 0; i < 60; i++) {
                uint32_t a = maker_input(m, i % 3 ? AF_DTYPE_FLOAT32 : AF_DTYPE_FLOAT16, i % 4 ? SHAPE(10, 300) : SHAPE(300));
                a = i % 3 ? a : maker_cast(m, a, AF_DTYPE_FLOAT32);
                o = o ? maker_binary(m, AF_OP_ADD, o, a) : a;
        }
        maker_output(m, o);
        matrix_end(x);
}

static void chain(struct matrix *x) {
        static const enum af_op ops[] = {AF_OP_ABS,   AF_OP_NEG,  AF_OP_SQUARE, AF_OP_SQRT,
                                         AF_OP_FLOOR, AF_OP_SIGN, AF_OP_RELU,   AF_OP_SIGMOID};
        struct maker *m = &x->maker;
        if (!matrix_begin(x, "chain of 300"))
                return;
        uint32_t v = maker_input(m, AF_DTYPE_FLOAT32, SHAPE(3000)), y = maker_input(m, AF_DTYPE_FLOAT32, SHAPE(3000));
        for (unsigned i = 0; i < 300; i++)
                v = i % 3 ? maker_unary(m, ops[i % AF_ARRAY_SIZE(ops)], v) : maker_binary(m, i % 2 ? AF_OP_ADD : AF_OP_SUB, v, y);
        maker_output(m, v);
        matrix_end(x);
}

/* Each node reads the two before it: everything has two consumers. */
static void fibonacci(struct matrix *x) {
        struct maker *m = &x->maker;
        if (!matrix_begin(x, "fibonacci"))
                return;
        uint32_t a = maker_input(m, AF_DTYPE_FLOAT32, SHAPE(500)), b = maker_input(m, AF_DTYPE_FLOAT32, SHAPE(500));
        for (unsigned i = 0; i < 60; i++) {
                uint32_t c = maker_binary(m, i % 3 ? AF_OP_SUB : AF_OP_MAXIMUM, a, b);
                a = b;
                b = c;
        }
        maker_output(m, b);
        matrix_end(x);
}

/* One input, many readers, each an output: more stores than a kernel has queues. */
static void fan_out(struct matrix *x) {
        struct maker *m = &x->maker;
        if (!matrix_begin(x, "fan out"))
                return;
        uint32_t a = maker_input(m, AF_DTYPE_FLOAT32, SHAPE(77, 19));
        for (unsigned i = 0; i < 30; i++)
                maker_output(m, maker_binary(m, AF_OP_MUL, maker_unary(m, i % 2 ? AF_OP_ABS : AF_OP_NEG, a),
                                             maker_constant(m, AF_DTYPE_FLOAT32, i)));
        matrix_end(x);
}

/* A value is stored, reduced both ways, and read again by what the sums give. */
static void both_ways(struct matrix *x) {
        static const struct maker_shape of[] = {{2, {40, 60}}, {2, {300, 5}}, {2, {5, 3000}}, {2, {1, 77}}};
        struct maker *m = &x->maker;
        for (unsigned i = 0; i < AF_ARRAY_SIZE(of); i++) {
                if (!matrix_begin(x, "both ways %u", i))
                        continue;
                uint32_t a = maker_input(m, AF_DTYPE_FLOAT32, &of[i]), b = maker_input(m, AF_DTYPE_FLOAT32, &of[i]);
                uint32_t p = maker_binary(m, AF_OP_MUL, a, b);
                uint32_t rows = maker_reduce(m, AF_OP_REDUCE_SUM, p, 2, true, 0),
                         columns = maker_reduce(m, AF_OP_REDUCE_SUM, p, 1, true, 0);
                maker_output(m, p);
                maker_output(m, rows);
                maker_output(m, maker_binary(m, AF_OP_ADD, maker_binary(m, AF_OP_SUB, p, rows), columns));
                maker_output(m, maker_binary(m, AF_OP_ADD, rows, columns));
                maker_output(m, maker_reduce(m, AF_OP_REDUCE_MAX, maker_binary(m, AF_OP_MUL, rows, columns), 3, false, 0));
                matrix_end(x);
        }
}

/* Bool values inside a group, stored, broadcast and reduced. */
static void bools(struct matrix *x) {
        static const struct maker_shape of[] = {{2, {30, 50}}, {2, {7, 1}}, {1, {1029}}, {2, {3, 8}}};
        struct maker *m = &x->maker;
        for (unsigned i = 0; i < AF_ARRAY_SIZE(of); i++) {
                if (!matrix_begin(x, "bools %u", i))
                        continue;
                struct maker_shape row = {.rank = 1, .dims = {of[i].dims[of[i].rank - 1]}};
                uint32_t a = maker_input(m, AF_DTYPE_FLOAT16, &of[i]), b = maker_input(m, AF_DTYPE_FLOAT16, &row),
                         c = maker_input(m, AF_DTYPE_INT32, &of[i]), z = maker_constant(m, AF_DTYPE_INT32, 0);
                uint32_t p = maker_binary(m, AF_OP_LT, a, b), q = maker_binary(m, AF_OP_GT, c, z);
                uint32_t r = maker_binary(m, AF_OP_LOGICAL_XOR, p, q), s = maker_binary(m, AF_OP_EQ, p, q);
                uint32_t any = maker_reduce(m, AF_OP_REDUCE_ANY, r, 1u << (of[i].rank - 1), true, 0);
                uint32_t all = maker_reduce(m, AF_OP_REDUCE_ALL, s, 1, true, 0);
                maker_output(m, r);
                maker_output(m, maker_binary(m, AF_OP_LOGICAL_OR, any, p));
                maker_output(m, maker_binary(m, AF_OP_LOGICAL_AND, all, s));
                maker_output(m, maker_reduce(m, AF_OP_REDUCE_SUM, r, 1, false, AF_DTYPE_INT64));
                uint32_t w[] = {any, c, z};
                maker_output(m, maker_node(m, AF_OP_WHERE, w, 3, NULL, 0, 0));
                uint32_t w2[] = {r, p, s};
                maker_output(m, maker_node(m, AF_OP_WHERE, w2, 3, NULL, 0, 0));
                matrix_end(x);
        }
}

/* Wrap and round at each node: overflow before a widening cast. */
static void declared(struct matrix *x) {
        struct maker *m = &x->maker;
        if (!matrix_begin(x, "rounded at each node"))
                return;
        static const enum af_dtype dtypes[] = {AF_DTYPE_FLOAT16, AF_DTYPE_BFLOAT16, AF_DTYPE_UINT8, AF_DTYPE_INT8, AF_DTYPE_INT16};
        for (unsigned t = 0; t < AF_ARRAY_SIZE(dtypes); t++) {
                bool wide = af_dtype_kind(dtypes[t]) == 'f';
                uint32_t a = maker_input(m, dtypes[t], SHAPE(99)), k = maker_constant(m, dtypes[t], wide ? 5000 : 100);
                uint32_t s = maker_binary(m, AF_OP_MUL, maker_binary(m, AF_OP_MUL, a, k), k);
                maker_output(m, maker_cast(m, s, AF_DTYPE_FLOAT32));
                maker_output(m, maker_binary(m, AF_OP_SUB, s, s));
                maker_output(m, maker_binary(m, AF_OP_DIV, s, s));
                maker_output(m, maker_binary(m, AF_OP_ADD, a, maker_constant(m, dtypes[t], 0)));
                maker_output(m, maker_binary(m, AF_OP_POW, a, maker_constant(m, dtypes[t], 0)));
                maker_output(m, maker_binary(m, AF_OP_MUL, a, maker_constant(m, dtypes[t], 0)));
                maker_output(m, maker_unary(m, AF_OP_ABS, maker_unary(m, AF_OP_NEG, a)));
        }
        matrix_end(x);
}

/* `fast` with ops that round nothing: the bits are those of strict, whichever values stay in float32. */
static void fast_exact(struct matrix *x) {
        static const enum af_dtype dtypes[] = {AF_DTYPE_FLOAT16, AF_DTYPE_BFLOAT16};
        struct maker *m = &x->maker;
        for (unsigned t = 0; t < AF_ARRAY_SIZE(dtypes); t++) {
                enum af_dtype d = dtypes[t];
                if (!matrix_begin(x, "fast exact %s", af_dtype_name(d)))
                        continue;
                m->f.numerics = AF_NUMERICS_FAST;
                uint32_t a = maker_input(m, d, SHAPE(37, 50)), b = maker_input(m, d, SHAPE(50)), c = maker_input(m, d, SHAPE(37, 1));
                uint32_t f = maker_unary(m, AF_OP_FLOOR, maker_unary(m, AF_OP_NEG, a)), g = maker_binary(m, AF_OP_MAXIMUM, f, b);
                uint32_t h = maker_unary(m, AF_OP_ROUND, maker_binary(m, AF_OP_MINIMUM, g, c)), p = maker_binary(m, AF_OP_LT, h, f);
                uint32_t k = maker_binary(m, AF_OP_TRUNC_DIV, h, maker_constant(m, d, 1));
                maker_output(m, maker_shaped(m, AF_OP_RESHAPE, maker_unary(m, AF_OP_TRUNC, k), SHAPE(50, 37)));
                maker_output(m, f);
                maker_output(m, p);
                maker_output(m, maker_node(m, AF_OP_WHERE, (uint32_t[]){p, h, k}, 3, NULL, 0, 0));
                maker_output(m, maker_cast(m, h, AF_DTYPE_FLOAT32));
                maker_output(m, maker_cast(m, maker_unary(m, AF_OP_ABS, h), AF_DTYPE_INT32));
                maker_output(m, maker_unary(m, AF_OP_RELU, maker_shaped(m, AF_OP_RESHAPE, g, SHAPE(1850))));
                const int64_t last = 1;
                const struct af_attr axes = {.key = AF_ATTR_AXES, .ints = &last, .n = 1};
                maker_output(m, maker_node(m, AF_OP_REDUCE_MAX, &h, 1, &axes, 1, 0));
                matrix_end(x);
        }
}

void matrix_graphs(struct matrix *x) {
        strided_cases(x);
        spread_cases(x);
        view_cases(x);
        both_ways(x);
        bools(x);
        declared(x);
        live_rows(x);
        many_inputs(x);
        chain(x);
        fibonacci(x);
        fan_out(x);
        fast_exact(x);
}
