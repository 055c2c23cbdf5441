/* SPDX-License-Identifier: Apache-2.0 */
/* Each composite against its formula in double precision, on odd sizes, special values and every float dtype; what stays whole. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/rewrite/rewrite.h"
#include "tests/lib/eval.h"
#include "tests/lib/maker.h"

/* A fragment of one composite, its graph, and that graph rewritten. */
struct subject {
        struct maker m;
        struct af_graph before, after;
        struct af_rewrite_notes notes;
        uint32_t in[8], n_in;
        struct af_tensor tensors[8], out;
};

static struct subject *begin(void) {
        struct subject *s = calloc(1, sizeof(*s));
        cr_assert(s);
        maker_init(&s->m);
        return s;
}
static void end(struct subject *s) {
        for (uint32_t i = 0; i < s->n_in; i++)
                free(s->tensors[i].data);
        free(s->out.data);
        maker_deinit(&s->m);
        free(s);
}

static int64_t count(const struct maker_shape *shape) {
        int64_t n = 1;
        for (uint32_t i = 0; i < shape->rank; i++)
                n *= shape->dims[i];
        return n;
}

/* An input with these numbers, rounded to its dtype. */
static void input(struct subject *s, enum af_dtype d, const struct maker_shape *shape, const double *numbers) {
        struct af_tensor *t = &s->tensors[s->n_in];
        int64_t n = count(shape), stride = 1;
        s->in[s->n_in++] = maker_input(&s->m, d, shape);
        *t = (struct af_tensor){.dtype = d, .rank = shape->rank, .data = malloc((size_t)n * 8 + 8)};
        for (uint32_t i = shape->rank; i-- > 0; stride *= t->dims[i]) {
                t->dims[i] = shape->dims[i];
                t->strides[i] = stride;
        }
        for (int64_t i = 0; i < n; i++)
                af_test_number_put((char *)t->data + i * af_dtype_size(d), d, numbers[i]);
}

/* Makes the node, rewrites, runs. */
static void run(struct subject *s, enum af_op op, const struct af_attr *attrs, uint32_t n_attrs, enum af_dtype declared) {
        struct af_diags diags = {0};
        const char *why = "";
        maker_output(&s->m, maker_node(&s->m, op, s->in, s->n_in, attrs, n_attrs, declared));
        cr_assert_eq(s->m.error, 0, "%s", s->m.where);
        cr_assert_eq(af_graph_from_fragment(&s->before, &s->m.f, &diags), 0, "%s", diags.n_items ? diags.items[0].what : "");
        cr_assert_eq(af_rewrite_decompose(&s->before, NULL, &s->after, &s->notes), 0);
        cr_assert_eq(af_graph_check(&s->after, &diags), 0, "%s: %s %s", af_op_info(op)->name, diags.n_items ? diags.items[0].where : "",
                     diags.n_items ? diags.items[0].what : "");
        for (uint32_t i = 0; i < s->after.n_nodes; i++) {
                cr_assert_not(af_rewrite_is_composite(s->after.nodes[i].op), "%s", af_op_info(op)->name);
                cr_assert(s->after.nodes[i].piece && s->after.nodes[i].source == 0);
        }
        cr_assert_eq(s->notes.n, 1);
        cr_assert_eq(af_reference_run(&s->after, s->tensors, &s->out, NULL, &why), 0, "%s: %s", af_op_info(op)->name, why);
        af_diags_deinit(&diags);
}

static double in_at(const struct subject *s, uint32_t k, int64_t i) {
        const struct af_tensor *t = &s->tensors[k];
        return af_test_number_get((char *)t->data + i * af_dtype_size(t->dtype), t->dtype);
}
static double out_at(const struct subject *s, int64_t i) {
        return af_test_number_get((char *)s->out.data + i * af_dtype_size(s->out.dtype), s->out.dtype);
}

/* The dtype's own precision, and what float32 loses on the way. */
static double tolerance(enum af_dtype d) {
        return d == AF_DTYPE_FLOAT32 ? 4e-6 : d == AF_DTYPE_FLOAT16 ? 6e-4 : 5e-3;
}
static void near(const struct subject *s, int64_t i, double want, double scale, const char *what) {
        double got = out_at(s, i);
        if (isnan(want) || isinf(want))
                cr_assert(isnan(want) ? isnan(got) : got == want, "%s[%lld]: %g, not %g", what, (long long)i, got, want);
        else
                cr_assert(fabs(got - want) <= tolerance(s->out.dtype) * (fabs(want) + scale), "%s[%lld]: %.9g, not %.9g", what,
                          (long long)i, got, want);
}

static double noise(uint64_t *seed) {
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        return (double)(int64_t)(*seed >> 33) / (double)(1u << 30) - 1; /* [-1, 1) */
}
static void fill(double *x, int64_t n, double scale, uint64_t seed) {
        for (int64_t i = 0; i < n; i++)
                x[i] = scale * noise(&seed);
}

static const enum af_dtype floats[] = {AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT16, AF_DTYPE_BFLOAT16};

/* ---- rows ---- */

/* [outer, n, inner] reduced over n: what a row is, for the formulas. */
struct row {
        double x[20000];
        int64_t n;
        double max, sum_exp, mean, var; /* var: mean of squares */
};
static void row_make(struct row *r, const struct subject *s, int64_t first, int64_t stride, int64_t n) {
        double sum = 0;
        r->n = n;
        r->max = -INFINITY;
        r->sum_exp = r->var = 0;
        for (int64_t i = 0; i < n; i++) {
                r->x[i] = in_at(s, 0, first + i * stride);
                r->max = fmax(r->max, r->x[i]);
                sum += r->x[i];
        }
        r->mean = sum / (double)n;
        for (int64_t i = 0; i < n; i++) {
                r->sum_exp += exp(r->x[i] - r->max);
                r->var += (r->x[i] - r->mean) * (r->x[i] - r->mean) / (double)n;
        }
}

static void check_rows(enum af_op op, enum af_dtype d, struct maker_shape shape, uint32_t axis) {
        int64_t n = shape.dims[axis], inner = 1, outer = 1;
        struct row *r = malloc(sizeof(*r));
        double *x = malloc(sizeof(*x) * (size_t)(count(&shape) + 1));
        struct subject *s = begin();
        int64_t axes = axis;
        struct af_attr by_axis = {.key = AF_ATTR_AXIS, .i = axis}, by_axes = {.key = AF_ATTR_AXES, .ints = &axes, .n = 1};
        for (uint32_t i = 0; i < shape.rank; i++)
                *(i < axis ? &outer : &inner) *= i == axis ? 1 : shape.dims[i];
        fill(x, count(&shape), 4, (uint64_t)(n * 31 + inner));
        input(s, d, &shape, x);
        run(s, op, op == AF_OP_SOFTMAX || op == AF_OP_LOG_SOFTMAX ? &by_axis : &by_axes, 1, AF_DTYPE_INVALID);
        for (int64_t o = 0; o < outer; o++)
                for (int64_t k = 0; k < inner; k++) {
                        row_make(r, s, o * n * inner + k, inner, n);
                        double lse = r->max + log(r->sum_exp), l1 = 0, l2 = 0;
                        for (int64_t i = 0; i < n; i++) {
                                int64_t at = (o * n + i) * inner + k;
                                l1 += fabs(r->x[i]);
                                l2 += r->x[i] * r->x[i];
                                if (op == AF_OP_SOFTMAX)
                                        near(s, at, exp(r->x[i] - lse), 1e-3, "softmax");
                                if (op == AF_OP_LOG_SOFTMAX)
                                        near(s, at, r->x[i] - lse, 1, "log_softmax");
                        }
                        int64_t at = o * inner + k;
                        if (op == AF_OP_LOGSUMEXP)
                                near(s, at, lse, 1, "logsumexp");
                        if (op == AF_OP_REDUCE_L1)
                                near(s, at, l1, 0, "l1");
                        if (op == AF_OP_REDUCE_L2)
                                near(s, at, sqrt(l2), 0, "l2");
                        if (op == AF_OP_REDUCE_SUM_SQUARE)
                                near(s, at, l2, 0, "sum of squares");
                        if (op == AF_OP_VAR)
                                near(s, at, n > 1 ? r->var * (double)n / (double)(n - 1) : NAN, 1e-2, "var");
                        if (op == AF_OP_STD)
                                near(s, at, n > 1 ? sqrt(r->var * (double)n / (double)(n - 1)) : NAN, 1e-2, "std");
                }
        free(x);
        free(r);
        end(s);
}

static const enum af_op row_ops[] = {AF_OP_SOFTMAX, AF_OP_LOG_SOFTMAX, AF_OP_LOGSUMEXP, AF_OP_VAR,
                                     AF_OP_STD,     AF_OP_REDUCE_L1,   AF_OP_REDUCE_L2, AF_OP_REDUCE_SUM_SQUARE};

Test(decompose, rows_of_odd_sizes) {
        static const int64_t sizes[] = {1, 7, 8, 9, 63, 65, 1023, 4097};
        for (size_t o = 0; o < AF_ARRAY_SIZE(row_ops); o++)
                for (size_t d = 0; d < AF_ARRAY_SIZE(floats); d++)
                        for (size_t k = 0; k < AF_ARRAY_SIZE(sizes); k++) {
                                check_rows(row_ops[o], floats[d], (struct maker_shape){2, {3, sizes[k]}}, 1);
                                if (sizes[k] < 100)
                                        check_rows(row_ops[o], floats[d], (struct maker_shape){3, {2, sizes[k], 5}}, 1);
                        }
}

Test(decompose, long_rows_are_read_in_chunks) {
        static const int64_t sizes[] = {8192, 8193, 12288, 16384};
        for (size_t o = 1; o < 3; o++)
                for (size_t k = 0; k < AF_ARRAY_SIZE(sizes); k++)
                        check_rows(row_ops[o], AF_DTYPE_FLOAT32, (struct maker_shape){2, {2, sizes[k]}}, 1);
}

/* One row of x: what comes out first. */
static double first_of(enum af_op op, const double *x, int64_t n, int64_t at) {
        struct subject *s = begin();
        int64_t axes = 0;
        struct af_attr by_axis = {.key = AF_ATTR_AXIS, .i = 0}, by_axes = {.key = AF_ATTR_AXES, .ints = &axes, .n = 1};
        struct maker_shape shape = {1, {n}};
        input(s, AF_DTYPE_FLOAT32, &shape, x);
        run(s, op, op == AF_OP_LOGSUMEXP ? &by_axes : &by_axis, 1, AF_DTYPE_INVALID);
        double v = out_at(s, at);
        end(s);
        return v;
}

Test(decompose, infinities_and_nan_in_a_row) {
        static const int64_t sizes[] = {1, 9, 65, 12288};
        double *x = malloc(sizeof(*x) * 12288);
        for (size_t k = 0; k < AF_ARRAY_SIZE(sizes); k++) {
                int64_t n = sizes[k];
                for (int64_t i = 0; i < n; i++)
                        x[i] = -INFINITY;
                cr_assert(isnan(first_of(AF_OP_SOFTMAX, x, n, 0)) && isnan(first_of(AF_OP_LOG_SOFTMAX, x, n, 0)));
                cr_assert_eq(first_of(AF_OP_LOGSUMEXP, x, n, 0), -INFINITY, "%lld", (long long)n);
                x[n / 2] = 3; /* one number: everything else counts for nothing */
                cr_assert_eq(first_of(AF_OP_SOFTMAX, x, n, n / 2), 1);
                cr_assert_eq(first_of(AF_OP_LOG_SOFTMAX, x, n, n / 2), 0);
                cr_assert_eq(first_of(AF_OP_LOGSUMEXP, x, n, 0), 3);
                x[n / 2] = -200; /* far below what a chunk of nothing subtracts */
                cr_assert_eq(first_of(AF_OP_LOGSUMEXP, x, n, 0), -200);
                x[n / 2] = INFINITY;
                cr_assert(isnan(first_of(AF_OP_SOFTMAX, x, n, n / 2)) && isnan(first_of(AF_OP_LOG_SOFTMAX, x, n, n / 2)));
                cr_assert_eq(first_of(AF_OP_LOGSUMEXP, x, n, 0), INFINITY);
                x[n / 2] = NAN;
                cr_assert(isnan(first_of(AF_OP_SOFTMAX, x, n, 0)) && isnan(first_of(AF_OP_LOGSUMEXP, x, n, 0)));
        }
        free(x);
}

Test(decompose, rows_of_nothing) {
        struct maker_shape shape = {2, {3, 0}};
        struct af_attr by_axis = {.key = AF_ATTR_AXIS, .i = 1};
        double nothing = 0;
        struct subject *s = begin();
        input(s, AF_DTYPE_FLOAT32, &shape, &nothing);
        maker_output(&s->m, maker_node(&s->m, AF_OP_SOFTMAX, s->in, 1, &by_axis, 1, AF_DTYPE_INVALID));
        cr_assert_eq(af_graph_from_fragment(&s->before, &s->m.f, NULL), 0);
        cr_assert_eq(af_rewrite_decompose(&s->before, NULL, &s->after, NULL), 0);
        cr_assert_eq(s->after.n_nodes, 0, "an output that is the empty input");
        end(s);
}

/* ---- norms ---- */

static void check_norm(enum af_op op, enum af_dtype d, struct maker_shape shape, int64_t groups, uint32_t n_in) {
        struct subject *s = begin();
        struct row *r = malloc(sizeof(*r));
        double *x = malloc(sizeof(*x) * (size_t)count(&shape)), w[64], b[64];
        bool channels = op != AF_OP_LAYER_NORM && op != AF_OP_RMS_NORM;
        int64_t c = shape.dims[channels ? 1 : shape.rank - 1];
        struct maker_shape vector = {1, {c}};
        struct af_attr attrs[] = {{.key = AF_ATTR_EPSILON, .f = 1e-3}, {.key = AF_ATTR_GROUPS, .i = groups}};
        fill(x, count(&shape), 3, 5);
        fill(w, c, 2, 7);
        fill(b, c, 2, 9);
        input(s, d, &shape, x);
        if (n_in > 1)
                input(s, d, &vector, w);
        if (n_in > 2)
                input(s, d, &vector, b);
        run(s, op, attrs, op == AF_OP_GROUP_NORM ? 2 : 1, AF_DTYPE_INVALID);
        int64_t run_length = channels ? count(&shape) / (shape.dims[0] * groups) : c;
        for (int64_t first = 0; first < count(&shape); first += run_length) {
                row_make(r, s, first, 1, run_length);
                for (int64_t i = 0; i < run_length; i++) {
                        int64_t channel = channels ? (first + i) / (count(&shape) / (shape.dims[0] * c)) % c : i;
                        double ms = r->var + r->mean * r->mean, y = (r->x[i] - r->mean) / sqrt(r->var + 1e-3);
                        if (op == AF_OP_RMS_NORM)
                                y = r->x[i] / sqrt(ms + 1e-3);
                        if (n_in > 1)
                                y *= in_at(s, 1, channel);
                        if (n_in > 2)
                                y += in_at(s, 2, channel);
                        near(s, first + i, y, 4, af_op_info(op)->name);
                }
        }
        free(x);
        free(r);
        end(s);
}

Test(decompose, norms) {
        for (size_t d = 0; d < AF_ARRAY_SIZE(floats); d++)
                for (uint32_t n_in = 1; n_in <= 3; n_in++) {
                        for (int64_t n = 1; n < 40; n += 19) {
                                check_norm(AF_OP_LAYER_NORM, floats[d], (struct maker_shape){2, {5, n}}, 1, n_in);
                                check_norm(AF_OP_RMS_NORM, floats[d], (struct maker_shape){3, {2, 3, n}}, 1, AF_MIN(n_in, 2u));
                        }
                        check_norm(AF_OP_GROUP_NORM, floats[d], (struct maker_shape){4, {2, 6, 3, 5}}, 3, n_in);
                        check_norm(AF_OP_GROUP_NORM, floats[d], (struct maker_shape){2, {3, 8}}, 2, n_in);
                        check_norm(AF_OP_INSTANCE_NORM, floats[d], (struct maker_shape){3, {2, 4, 11}}, 4, n_in);
                }
}

Test(decompose, batch_norm) {
        struct maker_shape shape = {4, {2, 3, 5, 7}}, vector = {1, {3}};
        static const double mean[] = {0.5, -1, 2}, var[] = {1, 0.25, 4}, w[] = {2, -1, 0.5}, b[] = {0, 3, -2};
        for (size_t d = 0; d < AF_ARRAY_SIZE(floats); d++) {
                struct subject *s = begin();
                double x[210];
                fill(x, 210, 3, 11);
                input(s, floats[d], &shape, x);
                input(s, AF_DTYPE_FLOAT32, &vector, mean);
                input(s, AF_DTYPE_FLOAT32, &vector, var);
                input(s, AF_DTYPE_FLOAT32, &vector, w);
                input(s, AF_DTYPE_FLOAT32, &vector, b);
                run(s, AF_OP_BATCH_NORM, NULL, 0, AF_DTYPE_INVALID);
                for (int64_t i = 0; i < 210; i++) {
                        int64_t c = i / 35 % 3;
                        near(s, i, (in_at(s, 0, i) - mean[c]) / sqrt(var[c] + 1e-5) * w[c] + b[c], 4, "batch_norm");
                }
                end(s);
        }
}

/* ---- elementwise ---- */

static double softplus(double x) {
        return fmax(x, 0) + log1p(exp(-fabs(x)));
}
static double apply(enum af_op op, double x) {
        switch ((int)op) {
        case AF_OP_SOFTPLUS:
                return softplus(x);
        case AF_OP_MISH:
                return x * tanh(softplus(x));
        case AF_OP_SOFTSIGN:
                return x / (1 + fabs(x));
        case AF_OP_ELU:
        case AF_OP_CELU:
                return x > 0 ? x : expm1(x);
        case AF_OP_SELU:
                return 1.05070102214813232421875 * (x > 0 ? x : 1.67326319217681884765625 * expm1(x));
        case AF_OP_HARDSIGMOID:
                return isnan(x) ? x : fmax(0, fmin(1, 0.2 * x + 0.5));
        case AF_OP_HARDSWISH:
                return isnan(x) ? x : x * fmax(0, fmin(6, x + 3)) / 6;
        default:
                return x > 1 ? x : 0;
        }
}

Test(decompose, elementwise_of_one) {
        static const enum af_op ops[] = {AF_OP_SOFTPLUS,    AF_OP_MISH,      AF_OP_SOFTSIGN,        AF_OP_ELU, AF_OP_CELU, AF_OP_SELU,
                                         AF_OP_HARDSIGMOID, AF_OP_HARDSWISH, AF_OP_THRESHOLDED_RELU};
        static const double x[] = {-100, -20, -3.5, -3, -1, -0.25, -0.0, 0, 0.25, 1, 1.5, 2.5, 3, 20, 100, 300, INFINITY, NAN};
        struct maker_shape shape = {1, {AF_ARRAY_SIZE(x)}};
        for (size_t o = 0; o < AF_ARRAY_SIZE(ops); o++)
                for (size_t d = 0; d < AF_ARRAY_SIZE(floats); d++) {
                        struct subject *s = begin();
                        input(s, floats[d], &shape, x);
                        run(s, ops[o], NULL, 0, AF_DTYPE_INVALID);
                        for (size_t i = 0; i < AF_ARRAY_SIZE(x); i++)
                                if (!(isinf(x[i]) && (ops[o] == AF_OP_SOFTSIGN || ops[o] == AF_OP_HARDSWISH)))
                                        near(s, (int64_t)i, apply(ops[o], in_at(s, 0, (int64_t)i)), 1e-3, af_op_info(ops[o])->name);
                        end(s);
                }
}

static double of_three(enum af_op op, double a, double b, double c) {
        switch ((int)op) {
        case AF_OP_FMA:
                return a * b + c;
        case AF_OP_LERP:
                return a + c * (b - a);
        case AF_OP_ADDCMUL:
                return a + 0.5 * b * c;
        default:
                return a + 0.5 * b / c;
        }
}

Test(decompose, elementwise_of_three) {
        static const enum af_op ops[] = {AF_OP_FMA, AF_OP_LERP, AF_OP_ADDCMUL, AF_OP_ADDCDIV};
        struct maker_shape shape = {2, {5, 9}}, row = {1, {9}};
        struct af_attr alpha = {.key = AF_ATTR_ALPHA, .f = 0.5};
        double a[45], b[9], c[45];
        fill(a, 45, 2, 1);
        fill(b, 9, 2, 2);
        fill(c, 45, 2, 3);
        for (size_t o = 0; o < AF_ARRAY_SIZE(ops); o++)
                for (size_t d = 0; d < AF_ARRAY_SIZE(floats); d++) {
                        struct subject *s = begin();
                        input(s, floats[d], &shape, a);
                        input(s, floats[d], &row, b);
                        input(s, floats[d], &shape, c);
                        run(s, ops[o], &alpha, ops[o] == AF_OP_ADDCMUL || ops[o] == AF_OP_ADDCDIV, AF_DTYPE_INVALID);
                        for (int64_t i = 0; i < 45; i++)
                                near(s, i, of_three(ops[o], in_at(s, 0, i), in_at(s, 1, i % 9), in_at(s, 2, i)), 4,
                                     af_op_info(ops[o])->name);
                        end(s);
                }
}

Test(decompose, fma_rounds_between) {
        static const double a = 300, b = 300, c = -INFINITY; /* the product is +inf in float16 */
        struct maker_shape shape = {1, {1}};
        struct subject *s = begin();
        input(s, AF_DTYPE_FLOAT16, &shape, &a);
        input(s, AF_DTYPE_FLOAT16, &shape, &b);
        input(s, AF_DTYPE_FLOAT16, &shape, &c);
        run(s, AF_OP_FMA, NULL, 0, AF_DTYPE_INVALID);
        cr_assert(isnan(out_at(s, 0)));
        end(s);
}

Test(decompose, integers_keep_their_dtype) {
        static const double a[] = {1, -2, 100}, b[] = {3, 4, -5};
        struct maker_shape shape = {1, {3}};
        struct af_attr alpha = {.key = AF_ATTR_ALPHA, .is_int = true, .i = 3, .f = 3};
        static const enum af_dtype ints[] = {AF_DTYPE_INT8, AF_DTYPE_INT16, AF_DTYPE_INT32, AF_DTYPE_INT64};
        for (size_t d = 0; d < AF_ARRAY_SIZE(ints); d++) {
                struct subject *s = begin();
                input(s, ints[d], &shape, a);
                input(s, ints[d], &shape, b);
                run(s, AF_OP_AXPY, &alpha, 1, AF_DTYPE_INVALID);
                for (int i = 0; i < 3; i++) {
                        double want = 3 * a[i] + b[i];
                        cr_assert_eq(out_at(s, i), ints[d] == AF_DTYPE_INT8 ? (int8_t)(int)want : want);
                }
                end(s);
                s = begin();
                input(s, ints[d], &shape, a);
                run(s, AF_OP_REDUCE_SUM_SQUARE, NULL, 0, AF_DTYPE_INT64);
                cr_assert_eq(out_at(s, 0), 10005);
                end(s);
        }
}

/* ---- what stays ---- */

Test(decompose, nothing_to_do_copies_nothing) {
        struct maker_shape shape = {1, {8}};
        struct maker *m = calloc(1, sizeof(*m));
        struct af_graph before, after;
        maker_init(m);
        maker_output(m, maker_unary(m, AF_OP_EXP, maker_input(m, AF_DTYPE_FLOAT32, &shape)));
        cr_assert_eq(af_graph_from_fragment(&before, &m->f, NULL), 0);
        cr_assert_eq(af_rewrite_decompose(&before, NULL, &after, NULL), 0);
        cr_assert_eq(after.nodes, before.nodes);
        cr_assert_eq(after.values, before.values);
        maker_deinit(m);
        free(m);
}

Test(decompose, pinned_nodes_stay_whole) {
        struct maker_shape shape = {2, {4, 8}};
        struct maker *m = calloc(1, sizeof(*m));
        struct af_graph before, after;
        struct af_diags diags = {0};
        maker_init(m);
        uint32_t x = maker_input(m, AF_DTYPE_FLOAT32, &shape), a = maker_unary(m, AF_OP_SOFTMAX, x);
        maker_output(m, maker_unary(m, AF_OP_MISH, a));
        cr_assert_eq(af_graph_from_fragment(&before, &m->f, NULL), 0);
        bool pinned[] = {true, false};
        cr_assert_eq(af_rewrite_decompose(&before, pinned, &after, NULL), 0);
        cr_assert_eq(af_graph_check(&after, &diags), 0);
        cr_assert(after.nodes[0].op == AF_OP_SOFTMAX && !after.nodes[0].piece && after.nodes[0].source == 0);
        for (uint32_t i = 1; i < after.n_nodes; i++)
                cr_assert(after.nodes[i].piece && after.nodes[i].source == 1);
        cr_assert_gt(after.n_nodes, 5);
        maker_deinit(m);
        free(m);
}

Test(decompose, an_output_keeps_the_strides_that_it_stated) {
        struct maker_shape shape = {2, {4, 8}};
        static const int64_t strides[] = {1, 4};
        struct maker *m = calloc(1, sizeof(*m));
        struct af_graph before, after;
        struct af_diags diags = {0};
        int64_t have[2];
        maker_init(m);
        maker_output_strided(m, maker_unary(m, AF_OP_SOFTMAX, maker_input(m, AF_DTYPE_FLOAT32, &shape)), strides);
        cr_assert_eq(af_graph_from_fragment(&before, &m->f, NULL), 0);
        cr_assert_eq(af_rewrite_decompose(&before, NULL, &after, NULL), 0);
        cr_assert_eq(af_graph_check(&after, &diags), 0);
        cr_assert(after.outputs[0].strides);
        for (int i = 0; i < 2; i++)
                cr_assert(af_expr_is_const(&after.exprs, after.outputs[0].strides[i], &have[i]) && have[i] == strides[i]);
        maker_deinit(m);
        free(m);
}

/* ---- symbols ---- */

Test(decompose, symbolic_sizes) {
        static const struct {
                const char *op, *attrs, *dtype, *shape;
        } cases[] = {{"softmax", "'axis': 0", "float32", "['s', 5]"},
                     {"log_softmax", "'axis': 1", "float32", "['s', 5]"},
                     {"layer_norm", "", "float32", "['s', 5]"},
                     {"var", "'axes': [0], 'keepdims': true, 'correction': 0", "float32", "[1, 5]"},
                     {"arg_max", "'axis': 0", "int64", "[5]"},
                     {"arg_min", "", "int64", "[]"},
                     {"triu", "'diagonal': -1", "float32", "['s', 5]"},
                     {"tile", "'repeats': [2, 's']", "float32", "['2*s', '5*s']"},
                     {"mish", "", "float32", "['s', 5]"}};
        for (size_t i = 0; i < AF_ARRAY_SIZE(cases); i++)
                for (int64_t size = 1; size < 12; size += 5) {
                        struct af_test_graph t;
                        struct af_graph after;
                        struct af_diags diags = {0};
                        char text[1000];
                        double x[60];
                        struct af_tensor in = {.dtype = AF_DTYPE_FLOAT32, .rank = 2, .dims = {size, 5}, .strides = {5, 1}}, a, b;
                        const char *why = "";
                        snprintf(
                                text, sizeof(text),
                                "'symbols': [{'name': 's', 'min': 1, 'max': 64}], 'inputs': [{'name': 'x', 'dtype': 'float32', 'shape': "
                                "['s', 5]}], 'nodes': [{'name': 'n', 'op': '%s', 'inputs': ['x'], 'attrs': {%s}, 'outputs': [{'name': 't', "
                                "'dtype': '%s', 'shape': %s}]}], 'outputs': ['t']",
                                cases[i].op, cases[i].attrs, cases[i].dtype, cases[i].shape);
                        af_test_graph_make(&t, text);
                        cr_assert_eq(t.r, 0, "%s: %s", cases[i].op, t.diags.n_items ? t.diags.items[0].what : "");
                        cr_assert_eq(af_rewrite_decompose(&t.graph, NULL, &after, NULL), 0);
                        cr_assert_eq(af_graph_check(&after, &diags), 0, "%s: %s", cases[i].op, diags.n_items ? diags.items[0].what : "");
                        for (uint32_t k = 0; k < after.n_nodes; k++)
                                cr_assert_not(af_rewrite_is_composite(after.nodes[k].op), "%s", cases[i].op);
                        fill(x, size * 5, 3, (uint64_t)size);
                        float *data = malloc(sizeof(float) * 60);
                        for (int64_t k = 0; k < size * 5; k++)
                                data[k] = (float)x[k];
                        in.data = data;
                        cr_assert_eq(af_reference_run(&t.graph, &in, &a, NULL, &why), 0, "%s: %s", cases[i].op, why);
                        cr_assert_eq(af_reference_run(&after, &in, &b, NULL, &why), 0, "%s: %s", cases[i].op, why);
                        double error;
                        uint64_t first;
                        cr_assert_eq(af_tensor_compare(&b, &a, &error, &first), 0, "%s of %lld rows", cases[i].op, (long long)size);
                        free(a.data);
                        free(b.data);
                        free(data);
                        af_test_graph_deinit(&t);
                }
}
