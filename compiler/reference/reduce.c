/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions in the one order that the logical shape and the axes fix. Unit axes are dropped (but for those whose size is a symbol's, which
 * is 1 by chance); reduced axes that are then adjacent are
 * one group; groups go innermost first, each by af_combine_run, with results between them in the accumulate dtype. A group is
 * `last` where nothing that remains varies faster. Where every reduced axis is a unit axis (or there is none), one run over one
 * element takes place, so that the identity takes part always: the sum of a lone -0.0 is +0.0.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/reference/internal.h"

#define COLUMNS 16 /* combined together where the reduced axis is not the last: their elements are brought side by side */

struct shape {
        uint32_t n;
        int64_t dims[AF_LIMIT_RANK];
        bool reduced[AF_LIMIT_RANK];
};

/* Axes that matter, neighbours of one kind merged. */
static struct shape shape_of(const struct af_graph *g, const struct af_node *n, const struct af_tensor *in) {
        const struct af_attr *axes = af_node_attr(n, AF_ATTR_AXES);
        uint32_t varies = af_value_varies(g, n->in[0]);
        struct shape s = {0};

        for (uint32_t i = 0, next = 0; i < in->rank; i++) {
                bool reduced = axes && next < axes->n && axes->ints[next] == i;
                next += reduced;
                if (in->dims[i] == 1 && !(varies & 1u << i))
                        continue;
                if (s.n > 0 && s.reduced[s.n - 1] == reduced) {
                        s.dims[s.n - 1] *= in->dims[i];
                } else {
                        s.reduced[s.n] = reduced;
                        s.dims[s.n++] = in->dims[i];
                }
        }
        return s;
}

static bool has_reduced(const struct shape *s) {
        for (uint32_t i = 0; i < s->n; i++)
                if (s->reduced[i])
                        return true;
        return false;
}

static void combine_columns(const struct af_reduce_plan *plan, unsigned size, const char *src, int64_t n, int64_t inner, char *dst,
                            char *columns) {
        for (int64_t c = 0; c < inner; c += COLUMNS) {
                int64_t width = AF_MIN((int64_t)COLUMNS, inner - c);
                for (int64_t i = 0; i < n; i++)
                        for (int64_t k = 0; k < width; k++)
                                memcpy(columns + (k * n + i) * size, src + (i * inner + c + k) * size, size);
                for (int64_t k = 0; k < width; k++)
                        af_combine_run(plan->combine, plan->acc, false, columns + k * n * size, (uint64_t)n, 1, dst + (c + k) * size);
        }
}

/* [outer, n, inner] -> [outer, inner]. last: no kept axis is inside, and inner is 1. */
static int combine_group(const struct af_reduce_plan *plan, bool last, const char *src, int64_t outer, int64_t n, int64_t inner,
                         char *dst) {
        unsigned size = af_dtype_size(plan->acc);
        char *columns = last ? NULL : malloc((size_t)COLUMNS * (size_t)n * size + 1);

        if (!last && !columns)
                return -ENOMEM;
        for (int64_t o = 0; o < outer; o++) {
                if (last)
                        af_combine_run(plan->combine, plan->acc, true, src + o * n * size, (uint64_t)n, 1, dst + o * size);
                else
                        combine_columns(plan, size, src + o * n * inner * size, n, inner, dst + o * inner * size, columns);
        }
        free(columns);
        return 0;
}

/* Combines all groups of s; acc (malloc'd, taken) is replaced by the result. */
static int combine_all(const struct af_reduce_plan *plan, struct shape s, char **acc) {
        unsigned size = af_dtype_size(plan->acc);

        if (!has_reduced(&s)) { /* one run over one element each */
                s.reduced[s.n] = true;
                s.dims[s.n++] = 1;
        }
        for (uint32_t i = s.n; i-- > 0;) {
                int64_t outer = 1, inner = 1;
                if (!s.reduced[i])
                        continue;
                for (uint32_t k = 0; k < i; k++)
                        outer *= s.dims[k];
                for (uint32_t k = i + 1; k < s.n; k++)
                        inner *= s.dims[k];
                char *next = malloc((size_t)outer * (size_t)inner * size + 1);
                int r = next ? combine_group(plan, i == s.n - 1, *acc, outer, s.dims[i], inner, next) : -ENOMEM;
                free(*acc);
                *acc = next;
                if (r < 0)
                        return r;
                s.dims[i] = 1;
                s.reduced[i] = false;
        }
        return 0;
}

/* Runs a one-operand program over dense memory. */
static int run_program(const struct af_prog *prog, enum af_dtype from, const void *src, void *dst, int64_t n) {
        const void *srcs[1] = {src};
        void *scratch = malloc(af_eval_scratch_bytes((size_t)n));

        if (!scratch)
                return -ENOMEM;
        if (n > 0)
                af_prog_eval(prog, &from, srcs, dst, (size_t)n, scratch);
        free(scratch);
        return 0;
}

static int reduce_by_plan(const struct af_reduce_plan *plan, const struct shape *s, const struct af_tensor *in, struct af_tensor *out) {
        int64_t n_in = af_tensor_count(in), n_out = af_tensor_count(out);
        void *own = NULL, *result = malloc((size_t)n_out * af_dtype_size(out->dtype) + 1);
        char *acc = malloc((size_t)n_in * af_dtype_size(plan->acc) + 1);
        const void *data;
        struct af_view to;
        int r = result && acc ? af_reference_dense(in, &data, &own) : -ENOMEM;

        if (r == 0)
                r = run_program(&plan->pre, in->dtype, data, acc, n_in);
        if (r == 0)
                r = combine_all(plan, *s, &acc);
        if (r == 0)
                r = run_program(&plan->post, plan->acc, acc, result, n_out);
        if (r == 0) {
                af_view_of(out, &to);
                af_view_write(&to, 0, n_out, result);
        }
        free(own);
        free(acc);
        free(result);
        return r;
}

/* float64, which no kernel ever computes in: in sequence. */
static double combine_f64(enum af_op op, double a, double b) {
        switch (op) {
        case AF_OP_REDUCE_PROD:
                return a * b;
        case AF_OP_REDUCE_MAX:
                return isnan(a) || a > b ? a : b;
        case AF_OP_REDUCE_MIN:
                return isnan(a) || a < b ? a : b;
        case AF_OP_REDUCE_ANY:
                return a != 0 || b != 0;
        case AF_OP_REDUCE_ALL:
                return a != 0 && b != 0;
        default:
                return a + b;
        }
}

static double identity_f64(enum af_op op) {
        switch (op) {
        case AF_OP_REDUCE_PROD:
        case AF_OP_REDUCE_ALL:
                return 1;
        case AF_OP_REDUCE_MAX:
                return -INFINITY;
        case AF_OP_REDUCE_MIN:
                return INFINITY;
        default:
                return 0;
        }
}

static void run_f64(enum af_op op, const struct shape *s, const double *data, int64_t n_in, double *acc, int64_t n_out) {
        int64_t index[AF_LIMIT_RANK] = {0};

        for (int64_t i = 0; i < n_out; i++)
                acc[i] = identity_f64(op);
        for (int64_t i = 0; i < n_in; i++) {
                int64_t at = 0;
                for (uint32_t k = 0; k < s->n; k++)
                        at = s->reduced[k] ? at : at * s->dims[k] + index[k];
                acc[at] = combine_f64(op, acc[at], data[i]);
                for (uint32_t k = s->n; k-- > 0 && ++index[k] == s->dims[k];)
                        index[k] = 0;
        }
}

static int reduce_f64(const struct af_node *n, const struct shape *s, const struct af_tensor *in, struct af_tensor *out, uint64_t count) {
        int64_t n_out = af_tensor_count(out);
        double *acc = malloc((size_t)n_out * sizeof(*acc) + 1);
        void *own = NULL;
        const void *data;
        struct af_view to;
        int r = acc ? af_reference_dense(in, &data, &own) : -ENOMEM;

        if (r == 0) {
                run_f64(n->op, s, data, af_tensor_count(in), acc, n_out);
                af_view_of(out, &to);
                for (int64_t i = 0; i < n_out; i++) {
                        uint8_t truth = acc[i] != 0;
                        if (n->op == AF_OP_REDUCE_MEAN)
                                acc[i] /= (double)count;
                        af_view_write(&to, i, 1, out->dtype == AF_DTYPE_BOOL ? (const void *)&truth : &acc[i]);
                }
        }
        free(acc);
        free(own);
        return r;
}

int af_reference_reduce(const struct af_graph *g, const struct af_node *n, const struct af_tensor *in, struct af_tensor *out,
                        const char **ret_why) {
        struct shape s = shape_of(g, n, in);
        struct af_reduce_plan *plan = malloc(sizeof(*plan));
        const char *why = NULL;
        uint64_t count = 1;
        int64_t n_kept = 1;
        int r;

        for (uint32_t i = 0; i < s.n; i++) {
                count *= s.reduced[i] ? (uint64_t)s.dims[i] : 1;
                n_kept *= s.reduced[i] ? 1 : s.dims[i];
        }
        if (n_kept != af_tensor_count(out)) {
                *ret_why = "the result has another shape";
                free(plan);
                return AF_REFERENCE_E_SHAPE;
        }
        if (!plan)
                return -ENOMEM;
        if (in->dtype == AF_DTYPE_FLOAT64) {
                r = reduce_f64(n, &s, in, out, count);
        } else if (af_eval_reduce_plan(n->op, in->dtype, out->dtype, count, plan, &why) == 0) {
                r = reduce_by_plan(plan, &s, in, out);
        } else {
                *ret_why = why ? why : "no definition for these dtypes";
                r = AF_REFERENCE_E_UNSUPPORTED;
        }
        free(plan);
        return r;
}
