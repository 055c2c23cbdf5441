/* SPDX-License-Identifier: Apache-2.0 */
/* A05 to A09: shapes that must compile, and every op on the smallest of them. */
#include <string.h>

#include "tests/tools/behaviours.h"

/* Views, sums and selections of one read; a row that no tile holds; more live rows than UB. */
static void a05(struct behaviours *x) {
        struct maker *m = &x->maker;
        if (behaviours_begin(x, "A05 reshape, row sum, compare, select, sum")) {
                uint32_t a = behaviours_input(x, AF_DTYPE_FLOAT32, SHAPE(64, 64), NULL),
                         r = maker_shaped(m, AF_OP_RESHAPE, a, SHAPE(1, 4096));
                uint32_t s = maker_reduce(m, AF_OP_REDUCE_SUM, r, 2, true, 0);
                uint32_t in[] = {maker_binary(m, AF_OP_LT, r, s), r, maker_constant(m, AF_DTYPE_FLOAT32, 1)};
                behaviours_output(x, maker_reduce(m, AF_OP_REDUCE_SUM, maker_node(m, AF_OP_WHERE, in, 3, NULL, 0, 0), 3, false, 0), NULL);
                behaviours_end(x);
        }
        if (behaviours_begin(x, "A05 layer norm over 48,000 columns")) {
                uint32_t in[] = {behaviours_input(x, AF_DTYPE_FLOAT32, SHAPE(3, 48000), NULL),
                                 behaviours_input(x, AF_DTYPE_FLOAT32, SHAPE(48000), NULL),
                                 behaviours_input(x, AF_DTYPE_FLOAT32, SHAPE(48000), NULL)};
                behaviours_output(x, maker_node(m, AF_OP_LAYER_NORM, in, 3, NULL, 0, 0), NULL);
                behaviours_end(x);
        }
        if (behaviours_begin(x, "A05 12 live rows of 24,576")) {
                uint32_t v[12], s = 0, o = 0;
                for (unsigned i = 0; i < 12; i++) {
                        v[i] = maker_unary(m, AF_OP_ABS, behaviours_input(x, AF_DTYPE_FLOAT32, SHAPE(1, 24576), NULL));
                        uint32_t r = maker_reduce(m, AF_OP_REDUCE_MAX, v[i], 2, true, 0);
                        s = s ? maker_binary(m, AF_OP_ADD, s, r) : r;
                }
                for (unsigned i = 0; i < 12; i++) {
                        uint32_t d = maker_binary(m, AF_OP_SUB, v[i], s);
                        o = o ? maker_binary(m, AF_OP_MAXIMUM, o, d) : d;
                }
                behaviours_output(x, o, NULL);
                behaviours_end(x);
        }
}

/* Sum of 100 i + 10 j + k over each axis set of [4, 3, 5]. */
static void a06(struct behaviours *x) {
        static const enum af_dtype dtypes[] = {AF_DTYPE_FLOAT32, AF_DTYPE_INT32, AF_DTYPE_INT16};
        double in[60], out[8][60];
        for (unsigned i = 0; i < 60; i++)
                in[i] = 100 * (i / 15) + 10 * (i / 5 % 3) + i % 5;
        memset(out, 0, sizeof(out));
        for (unsigned axes = 1; axes < 8; axes++)
                for (unsigned i = 0; i < 60; i++) {
                        unsigned a = axes & 1 ? 0 : i / 15, b = axes & 2 ? 0 : i / 5 % 3, c = axes & 4 ? 0 : i % 5;
                        unsigned nb = axes & 2 ? 1 : 3, nc = axes & 4 ? 1 : 5;
                        out[axes][(a * nb + b) * nc + c] += in[i];
                }
        for (unsigned t = 0; t < AF_ARRAY_SIZE(dtypes); t++) {
                if (!behaviours_begin(x, "A06 sums of 100i+10j+k %s", af_dtype_name(dtypes[t])))
                        continue;
                uint32_t a = behaviours_input(x, dtypes[t], SHAPE(4, 3, 5), in);
                for (unsigned axes = 1; axes < 8; axes++)
                        behaviours_output(x, maker_reduce(&x->maker, AF_OP_REDUCE_SUM, a, axes, axes & 1, AF_DTYPE_INT32), out[axes]);
                behaviours_end(x);
        }
}

/* Narrow rows of ones. */
static void a07(struct behaviours *x) {
        static const enum af_dtype dtypes[] = {AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT16, AF_DTYPE_INT32, AF_DTYPE_INT8, AF_DTYPE_BOOL};
        static double ones[512 * 17], rows[512];
        for (unsigned i = 0; i < AF_ARRAY_SIZE(ones); i++)
                ones[i] = 1;
        for (unsigned t = 0; t < AF_ARRAY_SIZE(dtypes); t++)
                for (unsigned n = 1; n <= 17; n++) {
                        double all = 512.0 * n;
                        if (!behaviours_begin(x, "A07 ones [512, %u] %s", n, af_dtype_name(dtypes[t])))
                                continue;
                        for (unsigned i = 0; i < 512; i++)
                                rows[i] = n;
                        uint32_t a = behaviours_input(x, dtypes[t], SHAPE(512, n), ones);
                        behaviours_output(x, maker_reduce(&x->maker, AF_OP_REDUCE_SUM, a, 2, false, AF_DTYPE_INT32), rows);
                        behaviours_output(x, maker_reduce(&x->maker, AF_OP_REDUCE_SUM, a, 3, false, AF_DTYPE_INT32), &all);
                        behaviours_end(x);
                }
}

/* Floor division and modulo of -4..4 by -4, 4 and -3: a tensor, a 0-d input, a constant. */
static void a08(struct behaviours *x) {
        static const enum af_dtype dtypes[] = {AF_DTYPE_INT8,    AF_DTYPE_INT16,    AF_DTYPE_INT32,  AF_DTYPE_INT64,
                                               AF_DTYPE_FLOAT16, AF_DTYPE_BFLOAT16, AF_DTYPE_FLOAT32};
        static const int by[] = {-4, 4, -3};
        struct maker *m = &x->maker;
        double a[27], b[27], quotient[27], rest[27];
        for (unsigned t = 0; t < AF_ARRAY_SIZE(dtypes); t++) {
                enum af_dtype d = dtypes[t];
                bool is_float = af_dtype_kind(d) == 'f';
                for (int i = 0; i < 27; i++) {
                        int v = i % 9 - 4, w = by[i / 9], q = v / w - (v % w != 0 && (v < 0) != (w < 0)), r = v - q * w;
                        a[i] = v;
                        b[i] = w;
                        quotient[i] = is_float && v == 0 && w < 0 ? -0.0 : q;
                        rest[i] = is_float && r == 0 && v < 0 ? -0.0 : r; /* zero: the dividend's sign */
                }
                if (!behaviours_begin(x, "A08 -4..4 by -4, 4, -3 %s", af_dtype_name(d)))
                        continue;
                uint32_t all = behaviours_input(x, d, SHAPE(3, 9), a), n = behaviours_input(x, d, SHAPE(9), a);
                uint32_t tensor = behaviours_input(x, d, SHAPE(3, 9), b), scalar = behaviours_input(x, d, SCALAR_SHAPE, &b[9]);
                uint32_t constant = maker_constant(m, d, -3);
                behaviours_output(x, maker_binary(m, AF_OP_FLOOR_DIV, all, tensor), quotient);
                behaviours_output(x, maker_binary(m, AF_OP_REMAINDER, all, tensor), rest);
                behaviours_output(x, maker_binary(m, AF_OP_FLOOR_DIV, n, scalar), quotient + 9);
                behaviours_output(x, maker_binary(m, AF_OP_REMAINDER, n, scalar), rest + 9);
                behaviours_output(x, maker_binary(m, AF_OP_FLOOR_DIV, n, constant), quotient + 18);
                behaviours_output(x, maker_binary(m, AF_OP_REMAINDER, n, constant), rest + 18);
                behaviours_end(x);
        }
}

/* Attributes that op must have, for operands of this shape. */
static uint32_t attrs_of(struct maker *m, enum af_op op, const struct maker_shape *s, struct af_attr *attrs) {
        static const int64_t zeros[8], ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
        static const int64_t zero;
        switch (op) {
        case AF_OP_BROADCAST:
        case AF_OP_EXPAND:
        case AF_OP_RESHAPE:
        case AF_OP_IOTA:
                attrs[0] = maker_dims(m, AF_ATTR_SHAPE, s->dims, s->rank);
                return 1;
        case AF_OP_UNSQUEEZE:
                attrs[0] = (struct af_attr){.key = AF_ATTR_AXES, .ints = &zero, .n = 1};
                return 1;
        case AF_OP_PAD:
                attrs[0] = maker_dims(m, AF_ATTR_LOW, ones, s->rank);
                attrs[1] = maker_dims(m, AF_ATTR_HIGH, zeros, s->rank);
                return 2;
        case AF_OP_TILE:
                attrs[0] = maker_dims(m, AF_ATTR_REPEATS, ones, s->rank);
                return 1;
        case AF_OP_SPLIT:
                attrs[0] = maker_dims(m, AF_ATTR_SIZES, s->dims, 1);
                return 1;
        case AF_OP_CONCAT:
        case AF_OP_CUMSUM:
                attrs[0] = (struct af_attr){.key = AF_ATTR_AXIS, .i = 0};
                return 1;
        case AF_OP_GROUP_NORM:
                attrs[0] = (struct af_attr){.key = AF_ATTR_GROUPS, .i = 1};
                return 1;
        case AF_OP_ONE_HOT:
                attrs[0] = (struct af_attr){.key = AF_ATTR_DEPTH, .i = 3};
                return 1;
        default:
                return 0;
        }
}

/* Whether op needs an axis, rows or channels that a shape of this rank lacks. */
static bool too_small(enum af_op op, uint32_t rank) {
        switch (op) {
        case AF_OP_INSTANCE_NORM:
                return rank < 3;
        case AF_OP_TRIU:
        case AF_OP_TRIL:
        case AF_OP_GROUP_NORM:
        case AF_OP_BATCH_NORM:
                return rank < 2;
        case AF_OP_CONCAT:
        case AF_OP_SPLIT:
        case AF_OP_CUMSUM:
        case AF_OP_IOTA:
        case AF_OP_GATHER:
        case AF_OP_GATHER_ELEMENTS:
        case AF_OP_SOFTMAX:
        case AF_OP_LOG_SOFTMAX:
        case AF_OP_LAYER_NORM:
        case AF_OP_RMS_NORM:
                return rank < 1;
        default:
                return false;
        }
}

/* dtype of operand k where the op computes in d. */
static enum af_dtype operand_dtype(const struct af_op_info *info, uint32_t k, enum af_dtype d) {
        bool index = info->dtype_rule == AF_DTYPES_GATHER && k == 1, mask = info->dtype_rule == AF_DTYPES_MASKED && k == 1;

        if (index || info->dtype_rule == AF_DTYPES_ONE_HOT)
                return AF_DTYPE_INT32;
        return mask || (info->dtype_rule == AF_DTYPES_WHERE && k == 0) ? AF_DTYPE_BOOL : d;
}

static void a09_op(struct behaviours *x, enum af_op op, enum af_dtype d, const struct maker_shape *s) {
        const struct af_op_info *info = af_op_info(op);
        struct af_attr attrs[4];
        uint32_t in[8];
        bool narrow = info->dtype_rule == AF_DTYPES_SUM && af_dtype_kind(d) != 'f';
        for (uint32_t k = 0; k < info->min_inputs; k++) {
                bool scalar = op == AF_OP_MASKED_FILL && k == 2, row = info->shape_rule == AF_SHAPE_CHANNELS && k > 0;
                enum af_dtype of = operand_dtype(info, k, d);
                in[k] = scalar ? maker_constant(&x->maker, of, 1) : behaviours_input(x, of, row ? SHAPE(1) : s, NULL);
        }
        uint32_t n_attrs = attrs_of(&x->maker, op, s, attrs);
        enum af_dtype declared = op == AF_OP_CAST ? AF_DTYPE_INT16 : narrow ? AF_DTYPE_INT32 : d;
        behaviours_output(x, maker_node(&x->maker, op, in, info->min_inputs, attrs, n_attrs, declared), NULL);
}

/* Every op on [], [1] and [1, 1, 1]; N16: on every dtype that it is defined on, in the dtype that is declared. */
static void a09(struct behaviours *x) {
        static const struct maker_shape shapes[] = {{0, {0}}, {1, {1}}, {3, {1, 1, 1}}};
        for (unsigned op = 0; op < AF_N_OPS; op++) {
                uint32_t first = (uint32_t)__builtin_ctz(af_op_info(op)->dtypes);
                if (op == AF_OP_OPAQUE || !behaviours_begin(x, "A09 N16 %s", af_op_info(op)->name))
                        continue;
                for (unsigned k = 0; k < 3; k++)
                        for (enum af_dtype d = 1; d < AF_DTYPE_FLOAT64 && !too_small(op, shapes[k].rank); d++)
                                if (af_op_info(op)->dtypes & AF_DTYPE_BIT(d) && (x->all || d == first || (op + k + d) % 8 == 0))
                                        a09_op(x, op, d, &shapes[k]);
                behaviours_end(x);
        }
}

void behaviours_compile(struct behaviours *x) {
        a05(x);
        a06(x);
        a07(x);
        a08(x);
        a09(x);
}
