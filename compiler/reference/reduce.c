/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions in the one order that the logical shape and the axes fix. Unit axes are dropped; reduced axes that are then adjacent are
 * one group; groups go innermost first, each by af_combine_run, with results between them in the accumulate dtype. A group is
 * `last` where nothing that remains varies faster. Where every reduced axis is a unit axis (or there is none), one run over one
 * element takes place, so that the identity takes part always: the sum of a lone -0.0 is +0.0.
 */
#include <errno.h>
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
static struct shape shape_of(const struct af_node *n, const struct af_tensor *in) {
        const struct af_attr *axes = af_node_attr(n, AF_ATTR_AXES);
        struct shape s = {0};

        for (uint32_t i = 0, next = 0; i < in->rank; i++) {
                bool reduced = axes && next < axes->n && axes->ints[next] == i;
                next += reduced;
                if (in->dims[i] == 1)
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

static void combine_columns(const struct af_reduce_plan *plan, unsigned size, bool last, const char *src, int64_t n, int64_t inner,
                            char *dst, char *columns) {
        for (int64_t c = 0; c < inner; c += COLUMNS) {
                int64_t width = AF_MIN((int64_t)COLUMNS, inner - c);
                for (int64_t i = 0; i < n; i++)
                        for (int64_t k = 0; k < width; k++)
                                memcpy(columns + (k * n + i) * size, src + (i * inner + c + k) * size, size);
                for (int64_t k = 0; k < width; k++)
                        af_combine_run(plan->combine, plan->acc, last, columns + k * n * size, (uint64_t)n, 1, dst + (c + k) * size);
        }
}

/* [outer, n, inner] -> [outer, inner]. */
static int combine_group(const struct af_reduce_plan *plan, const char *src, int64_t outer, int64_t n, int64_t inner, char *dst) {
        unsigned size = af_dtype_size(plan->acc);
        char *columns = inner > 1 ? malloc((size_t)COLUMNS * (size_t)n * size + 1) : NULL;

        if (inner > 1 && !columns)
                return -ENOMEM;
        for (int64_t o = 0; o < outer; o++) {
                if (inner == 1)
                        af_combine_run(plan->combine, plan->acc, true, src + o * n * size, (uint64_t)n, 1, dst + o * size);
                else
                        combine_columns(plan, size, false, src + o * n * inner * size, n, inner, dst + o * inner * size, columns);
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
                int r = next ? combine_group(plan, *acc, outer, s.dims[i], inner, next) : -ENOMEM;
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

/* What the device has no program for: integers in 64 bits (they wrap, so order does not matter), float64 in sequence. */
struct wide {
        uint64_t i;
        double f;
};

static struct wide load_wide(const char *p, enum af_dtype d) {
        switch (d) {
        case AF_DTYPE_BOOL:
                return (struct wide){.i = *(const uint8_t *)p != 0};
        case AF_DTYPE_INT8:
                return (struct wide){.i = (uint64_t)(int64_t) * (const int8_t *)p};
        case AF_DTYPE_UINT8:
                return (struct wide){.i = *(const uint8_t *)p};
        case AF_DTYPE_INT16:
                return (struct wide){.i = (uint64_t)(int64_t) * (const int16_t *)p};
        case AF_DTYPE_INT32:
                return (struct wide){.i = (uint64_t)(int64_t) * (const int32_t *)p};
        case AF_DTYPE_INT64:
                return (struct wide){.i = (uint64_t) * (const int64_t *)p};
        default:
                return (struct wide){.f = *(const double *)p};
        }
}

static struct wide identity_wide(enum af_op op) {
        switch (op) {
        case AF_OP_REDUCE_PROD:
                return (struct wide){1, 1.0};
        case AF_OP_REDUCE_ALL:
                return (struct wide){1, 1.0};
        case AF_OP_REDUCE_MAX:
                return (struct wide){(uint64_t)INT64_MIN, -__builtin_inf()};
        case AF_OP_REDUCE_MIN:
                return (struct wide){INT64_MAX, __builtin_inf()};
        default:
                return (struct wide){0, 0.0};
        }
}

static struct wide combine_wide(enum af_op op, struct wide a, struct wide b, bool is_float) {
        bool truth = is_float ? b.f != 0 : b.i != 0;
        bool greater = is_float ? b.f > a.f || b.f != b.f : (int64_t)b.i > (int64_t)a.i;
        bool less = is_float ? b.f < a.f || b.f != b.f : (int64_t)b.i < (int64_t)a.i;

        switch (op) {
        case AF_OP_REDUCE_PROD:
                return (struct wide){a.i * b.i, a.f * b.f};
        case AF_OP_REDUCE_MAX:
                return a.f != a.f ? a : greater ? b : a;
        case AF_OP_REDUCE_MIN:
                return a.f != a.f ? a : less ? b : a;
        case AF_OP_REDUCE_ANY:
                return (struct wide){a.i | truth, 0};
        case AF_OP_REDUCE_ALL:
                return (struct wide){a.i & truth, 0};
        default:
                return (struct wide){a.i + b.i, a.f + b.f};
        }
}

static void store_wide(char *p, enum af_dtype d, struct wide v) {
        if (d == AF_DTYPE_FLOAT64)
                memcpy(p, &v.f, sizeof(v.f));
        else if (d == AF_DTYPE_BOOL)
                *p = v.i != 0;
        else
                memcpy(p, &v.i, af_dtype_size(d)); /* wraps */
}

static int reduce_wide(const struct af_node *n, const struct shape *s, const struct af_tensor *in, struct af_tensor *out) {
        int64_t n_in = af_tensor_count(in), n_out = af_tensor_count(out), index[AF_LIMIT_RANK] = {0};
        unsigned in_size = af_dtype_size(in->dtype), out_size = af_dtype_size(out->dtype);
        bool is_float = in->dtype == AF_DTYPE_FLOAT64;
        struct wide *acc = malloc((size_t)n_out * sizeof(*acc) + 1);
        void *own = NULL;
        char *result = malloc((size_t)n_out * out_size + 1);
        const void *data;
        struct af_view to;
        int r = acc && result ? af_reference_dense(in, &data, &own) : -ENOMEM;

        for (int64_t i = 0; r == 0 && i < n_out; i++)
                acc[i] = identity_wide(n->op);
        for (int64_t i = 0; r == 0 && i < n_in; i++) {
                int64_t at = 0;
                for (uint32_t k = 0; k < s->n; k++)
                        at = s->reduced[k] ? at : at * s->dims[k] + index[k];
                acc[at] = combine_wide(n->op, acc[at], load_wide((const char *)data + i * in_size, in->dtype), is_float);
                for (uint32_t k = s->n; k-- > 0 && ++index[k] == s->dims[k];)
                        index[k] = 0;
        }
        for (int64_t i = 0; r == 0 && i < n_out; i++) {
                if (n->op == AF_OP_REDUCE_MEAN)
                        acc[i].f /= (double)(n_in / n_out);
                store_wide(result + i * out_size, out->dtype, acc[i]);
        }
        if (r == 0) {
                af_view_of(out, &to);
                af_view_write(&to, 0, n_out, result);
        }
        free(acc);
        free(own);
        free(result);
        return r;
}

int af_reference_reduce(const struct af_node *n, const struct af_tensor *in, struct af_tensor *out, const char **ret_why) {
        struct shape s = shape_of(n, in);
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
        char kind = af_dtype_kind(in->dtype);
        if (!plan)
                return -ENOMEM;
        if (af_expand_reduce(n->op, in->dtype, out->dtype, count, plan, &why) == 0) {
                r = reduce_by_plan(plan, &s, in, out);
        } else if (kind != 'f' || in->dtype == AF_DTYPE_FLOAT64) {
                r = reduce_wide(n, &s, in, out);
        } else {
                *ret_why = why ? why : "no definition for these dtypes";
                r = AF_REFERENCE_E_UNSUPPORTED;
        }
        free(plan);
        return r;
}
