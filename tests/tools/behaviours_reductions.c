/* SPDX-License-Identifier: Apache-2.0 */
/* N08, N09, N18, N28: softmax of hard rows, the true identity, empty shapes, ties of arg-reductions. */
#include <math.h>
#include <stdlib.h>

#include "tests/lib/eval.h"
#include "tests/tools/behaviours.h"

#define INF INFINITY

/* Rows: all -inf, one +inf, one NaN, all equal. */
static void softmax_rows(struct behaviours *x, enum af_dtype d, int64_t n) {
        struct maker *m = &x->maker;
        double *in = calloc((size_t)(8 * n), sizeof(*in)), *soft = in ? in + 4 * n : NULL;
        char bytes[8];
        if (!in || !behaviours_begin(x, "N08 N09 softmax rows of %lld %s", (long long)n, af_dtype_name(d))) {
                free(in);
                return;
        }
        for (int64_t i = 0; i < n; i++) {
                in[i] = -INF;
                in[n + i] = i == n / 2 ? INF : 1;
                in[2 * n + i] = i == n - 1 ? NAN : 2;
                in[3 * n + i] = 3;
                soft[i] = NAN;
                soft[n + i] = NAN; /* inf - inf is in its sum */
                soft[2 * n + i] = NAN;
                af_test_number_put(bytes, d, (double)(1.0f / (float)n));
                soft[3 * n + i] = af_test_number_get(bytes, d);
        }
        uint32_t a = behaviours_input(x, d, SHAPE(4, n), in);
        behaviours_output(x, maker_unary(m, AF_OP_SOFTMAX, a), soft);
        behaviours_output(x, maker_unary(m, AF_OP_LOG_SOFTMAX, a), NULL);
        behaviours_output(x, maker_reduce(m, AF_OP_REDUCE_MAX, a, 2, false, 0), D(-INF, INF, NAN, 3));
        behaviours_output(x, maker_reduce(m, AF_OP_LOGSUMEXP, a, 2, false, 0), NULL);
        behaviours_end(x);
        free(in);
}

static void n08(struct behaviours *x) {
        static const int64_t widths[] = {1, 7, 8, 9, 63, 64, 65, 1023, 4097};
        for (enum af_dtype d = AF_DTYPE_FLOAT16; d <= AF_DTYPE_FLOAT32; d++)
                for (unsigned i = 0; i < AF_ARRAY_SIZE(widths); i++)
                        softmax_rows(x, d, widths[i]);
}

/* Maxima of what lies below every finite start, minima above; products of negatives; sums of -0.0. */
static void n09(struct behaviours *x) {
        struct maker *m = &x->maker;
        if (behaviours_begin(x, "N09 reductions start from the true identity")) {
                uint32_t a = behaviours_input(x, AF_DTYPE_FLOAT32, SHAPE(2, 3), D(-INF, -INF, -INF, -1e38, -2e38, -3e38));
                uint32_t b = behaviours_input(x, AF_DTYPE_INT32, SHAPE(2, 2), D(-2147483648.0, -2147483648.0, -5, -6));
                uint32_t z = behaviours_input(x, AF_DTYPE_FLOAT32, SHAPE(1, 2), D(-0.0, -0.0));
                behaviours_output(x, maker_reduce(m, AF_OP_REDUCE_MAX, a, 2, false, 0), D(-INF, (double)-1e38f));
                behaviours_output(x, maker_reduce(m, AF_OP_REDUCE_MIN, maker_unary(m, AF_OP_NEG, a), 2, false, 0), D(INF, (double)1e38f));
                behaviours_output(x, maker_reduce(m, AF_OP_REDUCE_MAX, b, 2, false, 0), D(-2147483648.0, -5));
                behaviours_output(x, maker_reduce(m, AF_OP_REDUCE_SUM, z, 2, false, 0), D(0));
                behaviours_output(x, maker_reduce(m, AF_OP_REDUCE_MAX, z, 2, false, 0), D(-0.0));
                behaviours_end(x);
        }
}

/* The greatest is among a row's last elements, of rows that one tile holds: more than 255 times 64 elements in one. */
static void long_rows(struct behaviours *x) {
        static const int64_t widths[] = {16320, 16321, 16385, 30000};
        struct maker *m = &x->maker;
        for (unsigned i = 0; i < AF_ARRAY_SIZE(widths); i++) {
                int64_t n = widths[i];
                double *in = calloc((size_t)(6 * n), sizeof(*in)), *out = in ? in + 3 * n : NULL;
                if (!in || !behaviours_begin(x, "N09 the greatest of %lld comes late", (long long)n)) {
                        free(in);
                        continue;
                }
                for (int64_t row = 0; row < 3; row++) {
                        in[row * n + n - 100] = 7 + (double)row;
                        for (int64_t k = 0; k < n; k++)
                                out[row * n + k] = in[row * n + k] - in[row * n + n - 100];
                }
                uint32_t a = behaviours_input(x, AF_DTYPE_FLOAT16, SHAPE(3, n), in);
                behaviours_output(x, maker_binary(m, AF_OP_SUB, a, maker_reduce(m, AF_OP_REDUCE_MAX, a, 2, true, 0)), out);
                behaviours_end(x);
                free(in);
        }
}

/* Nothing to compute, and sums of nothing. */
static void n18(struct behaviours *x) {
        static const struct {
                const char *name;
                struct maker_shape shape;
        } shapes[] = {{"[0]", {1, {0}}}, {"[0,3]", {2, {0, 3}}}, {"[3,0]", {2, {3, 0}}}};
        static const double zeros[3], nans[] = {NAN, NAN, NAN}, ones[] = {1, 1, 1};
        struct maker *m = &x->maker;
        for (unsigned i = 0; i < 3; i++) {
                if (!behaviours_begin(x, "N18 %s", shapes[i].name))
                        continue;
                const struct maker_shape *s = &shapes[i].shape;
                uint32_t a = behaviours_input(x, AF_DTYPE_FLOAT32, s, zeros), b = behaviours_input(x, AF_DTYPE_BOOL, s, zeros);
                uint32_t all = (1u << s->rank) - 1, axis = s->dims[0] == 0 ? 1 : 2;
                behaviours_output(x, maker_unary(m, AF_OP_EXP, a), zeros);
                behaviours_output(x, maker_reduce(m, AF_OP_REDUCE_SUM, a, all, false, 0), zeros);
                behaviours_output(x, maker_reduce(m, AF_OP_REDUCE_SUM, a, axis, false, 0), zeros);
                behaviours_output(x, maker_reduce(m, AF_OP_REDUCE_MEAN, a, axis, false, 0), nans);
                behaviours_output(x, maker_reduce(m, AF_OP_REDUCE_PROD, a, all, false, 0), ones);
                behaviours_output(x, maker_reduce(m, AF_OP_REDUCE_ANY, b, axis, false, 0), zeros);
                behaviours_output(x, maker_reduce(m, AF_OP_REDUCE_ALL, b, axis, false, 0), ones);
                behaviours_output(x, maker_reduce(m, AF_OP_VAR, a, axis, false, 0), nans);
                behaviours_output(x, maker_unary(m, AF_OP_SOFTMAX, a), zeros);
                behaviours_output(x, maker_unary(m, AF_OP_TRANSPOSE, a), zeros);
                behaviours_end(x);
        }
}

/* Ties take the first (or the last, asked so), NaN wins, wherever tiles end; a transposed view. */
static void n28(struct behaviours *x) {
        static const int64_t sizes[] = {5, 64, 65, 1000, 5000, 70000};
        struct maker *m = &x->maker;
        for (unsigned k = 0; k < AF_ARRAY_SIZE(sizes); k++) {
                int64_t n = sizes[k], first = n / 3, last = n - 2;
                double *v = calloc((size_t)(2 * n), sizeof(*v));
                if (!v || !behaviours_begin(x, "N28 ties of %lld", (long long)n)) {
                        free(v);
                        continue;
                }
                for (int64_t i = 0; i < n; i++)
                        v[i] = v[n + i] = i == first || i == last ? 9 : (double)(i % 7);
                v[n + last] = NAN;
                double at[] = {(double)first, (double)last}, to[] = {(double)last, (double)last};
                struct af_attr axis = {.key = AF_ATTR_AXIS, .i = 1}, rows = {.key = AF_ATTR_AXIS, .i = 0};
                struct af_attr late[] = {axis, {.key = AF_ATTR_SELECT_LAST, .i = 1}};
                uint32_t a = behaviours_input(x, AF_DTYPE_FLOAT32, SHAPE(2, n), v);
                uint32_t t = behaviours_strided(x, AF_DTYPE_FLOAT32, SHAPE(2, n), (const int64_t[]){1, 2}, 0, v);
                behaviours_output(x, maker_node(m, AF_OP_ARG_MAX, &a, 1, &axis, 1, 0), at);
                behaviours_output(x, maker_node(m, AF_OP_ARG_MAX, &a, 1, late, 2, 0), to);
                behaviours_output(x, maker_node(m, AF_OP_ARG_MAX, &t, 1, &axis, 1, 0), at);
                uint32_t turned = maker_unary(m, AF_OP_TRANSPOSE, a);
                behaviours_output(x, maker_node(m, AF_OP_ARG_MAX, &turned, 1, &rows, 1, 0), at);
                uint32_t negated = maker_unary(m, AF_OP_NEG, a);
                behaviours_output(x, maker_node(m, AF_OP_ARG_MIN, &negated, 1, &axis, 1, 0), at);
                behaviours_end(x);
                free(v);
        }
}

void behaviours_reductions(struct behaviours *x) {
        n08(x);
        n09(x);
        long_rows(x);
        n18(x);
        n28(x);
}
