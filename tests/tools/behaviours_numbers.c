/* SPDX-License-Identifier: Apache-2.0 */
/* N01 to N30, elementwise, layouts, aliases and gathers: numbers by hand. */
#include <float.h>
#include <math.h>

#include "tests/tools/behaviours.h"

#define INF INFINITY

/* Rounded or wrapped at each node, before what follows. */
static void n01(struct behaviours *x) {
        struct maker *m = &x->maker;
        if (behaviours_begin(x, "N01 N13 float16 overflows before a widening cast")) {
                uint32_t a = behaviours_input(x, AF_DTYPE_FLOAT16, SHAPE(2), D(5000, 2));
                uint32_t w = maker_cast(m, maker_binary(m, AF_OP_MUL, a, a), AF_DTYPE_FLOAT32);
                behaviours_output(x, w, D(INF, 4));
                behaviours_output(x, maker_binary(m, AF_OP_MUL, w, maker_constant(m, AF_DTYPE_FLOAT32, 0.5)), D(INF, 2));
                behaviours_end(x);
        }
        if (behaviours_begin(x, "N01 N13 uint8 wraps")) {
                uint32_t a = behaviours_input(x, AF_DTYPE_UINT8, SHAPE(2), D(128, 200)), s = maker_binary(m, AF_OP_ADD, a, a);
                behaviours_output(x, s, D(0, 144));
                behaviours_output(x, maker_cast(m, s, AF_DTYPE_FLOAT32), D(0, 144));
                behaviours_end(x);
        }
        if (behaviours_begin(x, "N01 N13 int8 -128 under abs and neg")) {
                uint32_t a = behaviours_input(x, AF_DTYPE_INT8, SHAPE(2), D(-128, 127));
                behaviours_output(x, maker_unary(m, AF_OP_ABS, a), D(-128, 127));
                behaviours_output(x, maker_cast(m, maker_unary(m, AF_OP_NEG, a), AF_DTYPE_INT32), D(-128, -127));
                behaviours_end(x);
        }
        if (behaviours_begin(x, "N01 N13 bfloat16 rounds a sum at each node")) {
                uint32_t a = behaviours_input(x, AF_DTYPE_BFLOAT16, SHAPE(1), D(256)), one = maker_constant(m, AF_DTYPE_BFLOAT16, 1);
                uint32_t s = maker_binary(m, AF_OP_ADD, maker_binary(m, AF_OP_ADD, a, one), one);
                behaviours_output(x, maker_binary(m, AF_OP_SUB, s, a), D(0));
                behaviours_end(x);
        }
}

/* No identity of the reals. */
static void n03(struct behaviours *x) {
        static const double v[] = {-0.0, 0, NAN, INF, -INF, 1, -2};
        static const enum af_dtype dtypes[] = {AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT16, AF_DTYPE_BFLOAT16};
        struct maker *m = &x->maker;
        for (unsigned t = 0; t < 3; t++) {
                enum af_dtype d = dtypes[t];
                if (!behaviours_begin(x, "N03 N05 no identity of the reals %s", af_dtype_name(d)))
                        continue;
                uint32_t a = behaviours_input(x, d, SHAPE(7), v), zero = maker_constant(m, d, 0), one = maker_constant(m, d, 1);
                behaviours_output(x, maker_binary(m, AF_OP_ADD, a, zero), D(0, 0, NAN, INF, -INF, 1, -2));
                behaviours_output(x, maker_binary(m, AF_OP_SUB, a, zero), D(-0.0, 0, NAN, INF, -INF, 1, -2));
                behaviours_output(x, maker_binary(m, AF_OP_MUL, a, zero), D(-0.0, 0, NAN, NAN, NAN, 0, -0.0));
                behaviours_output(x, maker_binary(m, AF_OP_MUL, a, one), D(-0.0, 0, NAN, INF, -INF, 1, -2));
                behaviours_output(x, maker_binary(m, AF_OP_SUB, a, a), D(0, 0, NAN, NAN, NAN, 0, 0));
                behaviours_output(x, maker_binary(m, AF_OP_DIV, a, a), D(NAN, NAN, NAN, NAN, NAN, 1, 1));
                behaviours_output(x, maker_binary(m, AF_OP_POW, a, zero), D(1, 1, 1, 1, 1, 1, 1));
                behaviours_output(x, maker_binary(m, AF_OP_POW, one, a), D(1, 1, 1, 1, 1, 1, 1));
                behaviours_output(x, maker_unary(m, AF_OP_NEG, maker_unary(m, AF_OP_NEG, a)), D(-0.0, 0, NAN, INF, -INF, 1, -2));
                behaviours_end(x);
        }
}

/* One value as a constant and as an input; constants wider than the tensors. */
static void n11(struct behaviours *x) {
        static const enum af_op ops[] = {AF_OP_SUB, AF_OP_MUL, AF_OP_DIV, AF_OP_MAXIMUM, AF_OP_POW};
        static const double values[] = {0.1, -3};
        struct maker *m = &x->maker;
        for (enum af_dtype d = AF_DTYPE_FLOAT16; d <= AF_DTYPE_FLOAT32; d++) {
                if (!behaviours_begin(x, "N11 constant and input %s", af_dtype_name(d)))
                        continue;
                uint32_t a = behaviours_input(x, d, SHAPE(1, 5), D(0, 1, -2.5, 300, NAN));
                for (unsigned k = 0; k < AF_ARRAY_SIZE(values); k++) {
                        uint32_t b = behaviours_input(x, d, SCALAR_SHAPE, &values[k]), c = maker_constant(m, d, values[k]);
                        for (unsigned i = 0; i < AF_ARRAY_SIZE(ops); i++) {
                                uint32_t p = maker_binary(m, ops[i], a, b), q = maker_binary(m, ops[i], a, c);
                                uint32_t same = maker_binary(m, AF_OP_EQ, p, q), nan = maker_unary(m, AF_OP_ISNAN, p);
                                behaviours_output(x, maker_binary(m, AF_OP_LOGICAL_OR, same, nan), D(1, 1, 1, 1, 1));
                        }
                }
                behaviours_end(x);
        }
        if (behaviours_begin(x, "N12 bfloat16 times an unrounded 0.1")) {
                uint32_t a = behaviours_input(x, AF_DTYPE_BFLOAT16, SHAPE(2), D(255, 3));
                uint32_t wide = maker_binary(m, AF_OP_MUL, a, maker_constant(m, AF_DTYPE_FLOAT64, 0.1));
                uint32_t narrow = maker_binary(m, AF_OP_MUL, a, maker_constant(m, AF_DTYPE_BFLOAT16, 0.1));
                behaviours_output(x, wide, D(25.5, 0.30078125));
                behaviours_output(x, narrow, D(25.5, 0.30078125));
                behaviours_output(x, maker_binary(m, AF_OP_LT, a, maker_constant(m, AF_DTYPE_FLOAT64, 255.1)), D(1, 1));
                behaviours_end(x);
        }
}

/* Numbers that JSON has no word for, or that a reader of doubles would lose. */
static void n12(struct behaviours *x) {
        if (!behaviours_begin(x, "N12 numbers that must survive JSON"))
                return;
        behaviours_text(
                x, "'inputs': [{'name': 'x', 'dtype': 'float32', 'shape': []}],"
                   "'constants': [{'name': 'f', 'dtype': 'float32', 'shape': [4], 'bits': '0000c07f0000807f000080ff00000080'},"
                   "{'name': 'z', 'dtype': 'float32', 'shape': [3], 'value': [-0.0, 1e-45, 3.4028234663852886e38]},"
                   "{'name': 'i', 'dtype': 'int64', 'shape': [3], 'value': ['9007199254740993', '9223372036854775807', "
                   "'-9223372036854775808']}, {'name': 'k', 'dtype': 'int64', 'shape': [], 'value': 32}],"
                   "'nodes': [{'name': 'a', 'op': 'copysign', 'inputs': ['f', 'x'], 'outputs': [{'name': 'fx', 'dtype': 'float32', "
                   "'shape': [4]}]},"
                   "{'name': 'b', 'op': 'cast', 'inputs': ['i'], 'outputs': [{'name': 'low', 'dtype': 'int32', 'shape': [3]}]},"
                   "{'name': 'c', 'op': 'shift_right', 'inputs': ['i', 'k'], 'outputs': [{'name': 's', 'dtype': 'int64', 'shape': [3]}]},"
                   "{'name': 'd', 'op': 'cast', 'inputs': ['s'], 'outputs': [{'name': 'high', 'dtype': 'int32', 'shape': [3]}]},"
                   "{'name': 'e', 'op': 'clip', 'inputs': ['i'], 'attrs': {'min': '-9223372036854775807', 'max': '9007199254740993'},"
                   "'outputs': [{'name': 'cut', 'dtype': 'int64', 'shape': [3]}]},"
                   "{'name': 'g', 'op': 'cast', 'inputs': ['cut'], 'outputs': [{'name': 'cut_low', 'dtype': 'int32', 'shape': [3]}]},"
                   "{'name': 'h', 'op': 'clip', 'inputs': ['f'], 'attrs': {'min': '-inf', 'max': 'nan'},"
                   "'outputs': [{'name': 'nans', 'dtype': 'float32', 'shape': [4]}]}],"
                   "'outputs': ['f', 'z', 'i', 'fx', 'low', 'high', 'cut_low', 'nans']");
        behaviours_output_of(x, 0, D(NAN, INF, -INF, -0.0), 4);
        behaviours_output_of(x, 1, D(-0.0, 0x1p-149, (double)FLT_MAX), 3);
        behaviours_output_of(x, 4, D(1, -1, 0), 3);
        behaviours_output_of(x, 5, D(0x1p21, 2147483647.0, -2147483648.0), 3);
        behaviours_output_of(x, 6, D(1, 1, 1), 3);
        behaviours_output_of(x, 7, D(NAN, NAN, NAN, NAN), 4);
        behaviours_end(x);
}

/* Integers by zero and the least number by -1: tensors, constants, and both constant. */
static void n14(struct behaviours *x) {
        static const enum af_op ops[] = {AF_OP_DIV, AF_OP_TRUNC_DIV, AF_OP_FLOOR_DIV, AF_OP_REMAINDER, AF_OP_FMOD};
        struct maker *m = &x->maker;
        for (enum af_dtype d = AF_DTYPE_INT8; d <= AF_DTYPE_INT64; d++) {
                if (!behaviours_begin(x, "N14 division by zero %s", af_dtype_name(d)))
                        continue;
                bool has_sign = af_dtype_kind(d) == 'i';
                double least = has_sign ? -ldexp(1, (int)af_dtype_size(d) * 8 - 1) : 7;
                const double a[] = {7, least, 0, least}, b[] = {0, 0, 0, has_sign ? -1 : 1};
                uint32_t p = behaviours_input(x, d, SHAPE(4), a), q = behaviours_input(x, d, SHAPE(4), b);
                for (unsigned i = 0; i < AF_ARRAY_SIZE(ops); i++) {
                        bool rest = ops[i] == AF_OP_REMAINDER || ops[i] == AF_OP_FMOD;
                        const double want[] = {0, 0, 0, rest ? 0 : least};
                        behaviours_output(x, maker_binary(m, ops[i], p, q), want);
                        behaviours_output(x, maker_binary(m, ops[i], p, maker_constant(m, d, 0)), D(0, 0, 0, 0));
                        uint32_t folded = maker_binary(m, ops[i], maker_constant(m, d, 7), maker_constant(m, d, 0));
                        behaviours_output(x, maker_binary(m, AF_OP_MAXIMUM, p, folded), NULL);
                        behaviours_output(x, folded, D(0));
                }
                behaviours_end(x);
        }
}

/* Outputs that are inputs, repeated or constant; one input twice. */
static void n20(struct behaviours *x) {
        struct maker *m = &x->maker;
        if (!behaviours_begin(x, "N20 N22 N23 outputs that are inputs, repeated, constant"))
                return;
        uint32_t a = behaviours_input(x, AF_DTYPE_FLOAT32, SHAPE(2, 3), D(1, 2, 3, 4, 5, 6)), n = maker_binary(m, AF_OP_ADD, a, a);
        behaviours_output(x, a, D(1, 2, 3, 4, 5, 6));
        behaviours_output(x, n, D(2, 4, 6, 8, 10, 12));
        behaviours_output(x, n, D(2, 4, 6, 8, 10, 12));
        behaviours_output(x, maker_constant(m, AF_DTYPE_FLOAT32, 2.5), D(2.5));
        behaviours_output(x, a, D(1, 2, 3, 4, 5, 6));
        behaviours_output(x, maker_shaped(m, AF_OP_RESHAPE, a, SHAPE(6)), D(1, 2, 3, 4, 5, 6));
        behaviours_output(x, maker_binary(m, AF_OP_SUB, a, a), D(0, 0, 0, 0, 0, 0));
        behaviours_end(x);
}

/* Layouts of inputs; NaN bits lie in every gap. */
static void n25(struct behaviours *x) {
        static const struct {
                const char *name;
                int64_t strides[2], offset;
        } layouts[] = {{"transposed", {1, 2}, 0}, {"sliced", {5, 1}, 0},  {"offset", {3, 1}, 7},
                       {"padded", {16, 1}, 3},    {"stepped", {9, 2}, 1}, {"transposed with gaps", {3, 11}, 2}};
        struct maker *m = &x->maker;
        for (unsigned i = 0; i < AF_ARRAY_SIZE(layouts); i++) {
                if (!behaviours_begin(x, "N25 %s", layouts[i].name))
                        continue;
                uint32_t a =
                        behaviours_strided(x, AF_DTYPE_FLOAT32, SHAPE(2, 3), layouts[i].strides, layouts[i].offset, D(1, 2, 3, 4, 5, 6));
                behaviours_output(x, maker_unary(m, AF_OP_NEG, a), D(-1, -2, -3, -4, -5, -6));
                behaviours_output(x, maker_reduce(m, AF_OP_REDUCE_SUM, a, 1, false, 0), D(5, 7, 9));
                behaviours_output(x, maker_reduce(m, AF_OP_REDUCE_SUM, a, 2, false, 0), D(6, 15));
                behaviours_output(x, maker_unary(m, AF_OP_TRANSPOSE, a), D(1, 4, 2, 5, 3, 6));
                behaviours_end(x);
        }
        if (behaviours_begin(x, "N25 stride 0")) {
                uint32_t a = behaviours_strided(x, AF_DTYPE_FLOAT32, SHAPE(2, 3), (const int64_t[]){0, 1}, 2, D(1, 2, 3, 1, 2, 3));
                uint32_t b = behaviours_strided(x, AF_DTYPE_FLOAT32, SHAPE(2, 3), (const int64_t[]){4, 0}, 0, D(1, 1, 1, 5, 5, 5));
                behaviours_output(x, maker_binary(m, AF_OP_ADD, a, b), D(2, 3, 4, 6, 7, 8));
                behaviours_output(x, maker_reduce(m, AF_OP_REDUCE_SUM, a, 3, false, 0), D(12));
                behaviours_end(x);
        }
        if (behaviours_begin(x, "N26 a unit axis of stride 999, [3,1]+[3]")) {
                uint32_t a = behaviours_strided(x, AF_DTYPE_FLOAT32, SHAPE(3, 1), (const int64_t[]){1, 999}, 0, D(1, 2, 3));
                uint32_t b = behaviours_input(x, AF_DTYPE_FLOAT32, SHAPE(3), D(10, 20, 30));
                behaviours_output(x, maker_binary(m, AF_OP_ADD, a, b), D(11, 21, 31, 12, 22, 32, 13, 23, 33));
                behaviours_end(x);
        }
}

/* Negative indices count from the end, those out of range give 0. */
static void n30(struct behaviours *x) {
        struct maker *m = &x->maker;
        for (unsigned wide = 0; wide < 2; wide++) {
                enum af_dtype d = wide ? AF_DTYPE_INT64 : AF_DTYPE_INT32;
                double far = wide ? 0x1p62 : 0x1p30;
                if (!behaviours_begin(x, "N30 gather %s", af_dtype_name(d)))
                        continue;
                const double at[] = {0, -1, 3, -3, -4, 2, far, -far};
                uint32_t a = behaviours_input(x, AF_DTYPE_FLOAT32, SHAPE(3, 2), D(1, 2, 3, 4, 5, 6));
                uint32_t i = behaviours_input(x, d, SHAPE(8), at), j = behaviours_input(x, d, SHAPE(8, 1), at);
                uint32_t in[] = {a, i}, elements[] = {a, j};
                behaviours_output(x, maker_node(m, AF_OP_GATHER, in, 2, NULL, 0, 0), D(1, 2, 5, 6, 0, 0, 1, 2, 0, 0, 5, 6, 0, 0, 0, 0));
                behaviours_output(x, maker_node(m, AF_OP_GATHER_ELEMENTS, elements, 2, NULL, 0, 0), D(1, 5, 0, 1, 0, 5, 0, 0));
                behaviours_end(x);
        }
}

void behaviours_numbers(struct behaviours *x) {
        n01(x);
        n03(x);
        n11(x);
        n12(x);
        n14(x);
        n20(x);
        n25(x);
        n30(x);
}
