/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fast` against float64: whole kernels of chains and sums in which nothing is rounded between and sums may be reordered. Every result lies
 * within (n + k) · 2^-24 · M of the same graph evaluated in float64, and half a unit of float32: n addends, k operations on each before
 * (0 where an input is summed as it is), M the graph of the absolute values. float16 has calls of its own for x*y+z, which round: there the
 * chain is a constant that it does not hold, so that the product is float32's. In `strict` some chains of 16 bits must not hold it: else
 * this shows nothing. Prints `ok CASE` and `not ok CASE: …`.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/graph/canon.h"
#include "tests/lib/eval.h"
#include "tests/lib/maker.h"
#include "tests/lib/run_bundle.h"
#include "tests/lib/runner.h"

#define N_INPUTS 3u

enum kind { SUM, SUM_OF_TENTHS, SUM_OF_CHAIN, MEAN_OF_SQUARES, CHAIN, N_KINDS };
static const struct {
        const char *name;
        uint32_t n_ops; /* on each addend */
} kinds[N_KINDS] = {{"sum", 0}, {"sum of 0.1*x", 2}, {"sum of x*y+z", 2}, {"mean of squares", 2}, {"(x*y+z)*x", 3}};

static const struct shape {
        struct maker_shape shape;
        uint32_t axes;
        int64_t n; /* addends */
} shapes[] = {{{2, {64, 1000}}, 2, 1000}, {{2, {1000, 64}}, 1, 1000}, {{1, {70000}}, 1, 70000}};

struct test { /* a case in strict or fast */
        char what[120];
        enum kind kind;
        enum af_dtype dtype;
        const struct shape *shape;
        bool strict;
        struct af_buf canon, plan;
        struct af_slot_map map; /* from inputs to those of the canonical form */
};

/* So that no rounding to 16 bits hides the error. */
static uint32_t widened(struct maker *m, enum af_dtype d, uint32_t v) {
        return d == AF_DTYPE_FLOAT16 || d == AF_DTYPE_BFLOAT16 ? maker_cast(m, v, AF_DTYPE_FLOAT32) : v;
}

static uint32_t build(struct maker *m, enum kind kind, enum af_dtype d, const struct shape *s) {
        uint32_t in[N_INPUTS];
        for (uint32_t i = 0; i < N_INPUTS; i++)
                in[i] = maker_input(m, d, &s->shape);
        uint32_t chain = maker_binary(m, AF_OP_ADD, maker_binary(m, AF_OP_MUL, in[0], in[1]), in[2]);
        switch (kind) {
        case SUM:
                return maker_reduce(m, AF_OP_REDUCE_SUM, widened(m, d, in[0]), s->axes, false, 0);
        case SUM_OF_TENTHS:
                chain = maker_binary(m, AF_OP_MUL, in[0], maker_constant(m, AF_DTYPE_FLOAT64, 0.1));
                return maker_reduce(m, AF_OP_REDUCE_SUM, widened(m, d, chain), s->axes, false, 0);
        case SUM_OF_CHAIN:
                return maker_reduce(m, AF_OP_REDUCE_SUM, widened(m, d, chain), s->axes, false, 0);
        case MEAN_OF_SQUARES:
                return maker_reduce(m, AF_OP_REDUCE_MEAN, widened(m, d, maker_binary(m, AF_OP_MUL, in[0], in[0])), s->axes, false, 0);
        default:
                return widened(m, d, maker_binary(m, AF_OP_MUL, chain, in[0]));
        }
}

static int plan(struct test *t, const struct af_env *env, struct batch *batch) {
        struct maker *m = calloc(1, sizeof(*m));
        struct af_graph g;
        struct af_diags diags = {0};
        const struct af_driver_opts opts = {0};
        struct af_plan_view view = {0};
        if (!m)
                return -1;
        maker_init(m);
        m->f.numerics = t->strict ? AF_NUMERICS_STRICT : AF_NUMERICS_FAST;
        maker_output(m, build(m, t->kind, t->dtype, t->shape));
        int r = m->error ? m->error : af_graph_from_fragment(&g, &m->f, &diags);
        if (!r)
                r = af_canon_write(&g, &t->canon, &t->map);
        if (!r)
                r = af_driver_plan(env, t->canon.data, t->canon.size, &opts, &t->plan, &diags);
        if (!r)
                r = af_plan_read(t->plan.data, t->plan.size, &view);
        for (uint32_t i = 0; !r && i < view.n_kernels; i++)
                r = batch_add(batch, view.kernels[i].symbol, view.kernels[i].source, view.kernels[i].source_size);
        af_plan_view_deinit(&view);
        af_diags_deinit(&diags);
        maker_deinit(m);
        free(m);
        return r;
}

/* The same graph on the same numbers in float64, or on their absolute values. ret: malloc'd. */
static double *in_float64(const struct test *t, double *const *numbers, int64_t n, bool absolute) {
        struct maker *m = calloc(1, sizeof(*m));
        struct af_graph g;
        struct af_diags diags = {0};
        struct af_tensor inputs[N_INPUTS] = {0}, out = {0};
        const char *why = "";
        if (!m)
                abort();
        maker_init(m);
        maker_output(m, build(m, t->kind, AF_DTYPE_FLOAT64, t->shape));
        int r = m->error ? m->error : af_graph_from_fragment(&g, &m->f, &diags);
        for (uint32_t i = 0; i < N_INPUTS; i++) {
                double *copy = malloc((size_t)n * sizeof(*copy));
                if (!copy)
                        abort();
                for (int64_t k = 0; k < n; k++)
                        copy[k] = absolute ? fabs(numbers[i][k]) : numbers[i][k];
                inputs[i] = (struct af_tensor){.dtype = AF_DTYPE_FLOAT64, .rank = t->shape->shape.rank, .data = copy};
                memcpy(inputs[i].dims, t->shape->shape.dims, sizeof(t->shape->shape.dims));
                if (!r)
                        af_value_static_strides(&g, g.inputs[i].value, inputs[i].strides);
        }
        if (!r)
                r = af_reference_run(&g, inputs, &out, NULL, &why);
        if (r)
                printf("not ok %s float64: error %d %s\n", t->what, r, why);
        for (uint32_t i = 0; i < N_INPUTS; i++)
                free(inputs[i].data);
        af_diags_deinit(&diags);
        maker_deinit(m);
        free(m);
        return out.data;
}

static int launch(void *userdata, const char *symbol, const struct af_twin_launch *l) {
        af_twin_launch_fn fn = batch_find(userdata, symbol);
        return fn ? fn(l) : -1;
}

/* Half of the distance between neighbouring float32 at v. */
static double half_unit(double v) {
        int e;
        frexp(v, &e);
        return ldexp(0.5, (e < -125 ? -125 : e) - 24);
}

/* The largest error by what is allowed; above 1: outside. */
static double worst(const struct test *t, const struct af_tensor *got, const double *want, const double *magnitude) {
        int64_t n = 1;
        double worst = 0, k = kinds[t->kind].n_ops + (t->kind == CHAIN ? 0 : (double)t->shape->n);
        for (uint32_t i = 0; i < got->rank; i++)
                n *= got->dims[i];
        for (int64_t i = 0; i < n; i++) {
                double v = af_test_number_get((const char *)got->data + i * af_dtype_size(got->dtype), got->dtype);
                double slack = k * 0x1p-24 * magnitude[i], half = half_unit(fabs(want[i]) + slack);
                worst = fmax(worst, isfinite(v) ? fabs(v - want[i]) / (slack + half) : INFINITY);
        }
        return worst;
}

/* Numbers of the dtype, between -2 and 2, and the input tensors that have them. */
static void fill(const struct test *t, struct af_tensor *inputs, double **numbers, int64_t n) {
        uint64_t seed = 1;
        for (uint32_t i = 0; i < N_INPUTS; i++) {
                numbers[i] = calloc((size_t)n + 1, sizeof(double));
                if (!numbers[i])
                        abort();
                for (int64_t k = 0; k < n; k++) {
                        char bytes[8];
                        seed = seed * 6364136223846793005u + 1442695040888963407u;
                        af_test_number_put(bytes, t->dtype, (double)(seed >> 40) * 0x1p-22 - 2);
                        numbers[i][k] = af_test_number_get(bytes, t->dtype);
                }
                if (t->map.inputs[i] != AF_NONE)
                        af_test_numbers_put(&inputs[t->map.inputs[i]], numbers[i]);
        }
}

static double run(const struct test *t, struct batch *batch) {
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        struct af_plan_view view = {0};
        struct af_graph g;
        struct af_diags diags = {0};
        struct af_bundle bundle;
        struct af_tensor inputs[N_INPUTS] = {0}, got = {0};
        struct run_launcher launcher = {launch, batch};
        struct run_result result = {0};
        void *blocks[N_INPUTS] = {0};
        double *numbers[N_INPUTS] = {0}, error = INFINITY;
        int64_t n = 1;
        for (uint32_t i = 0; i < t->shape->shape.rank; i++)
                n *= t->shape->shape.dims[i];
        af_arena_init(&arena, 0);
        int r = af_canon_read(&g, &arena, t->canon.data, t->canon.size, &diags) || af_plan_read(t->plan.data, t->plan.size, &view) ||
                af_bundle_open(view.skeleton, view.skeleton_size, &bundle, NULL) || make_inputs(&g, 1, false, inputs, blocks);
        if (!r) {
                fill(t, inputs, numbers, n);
                r = run_bundle_with(&g, &bundle, &launcher, inputs, &got, &result);
        }
        if (r || result.n_framework_steps) {
                printf("not ok %s: %s\n", t->what, r ? result.error : "a node is left to the framework");
        } else {
                double *want = in_float64(t, numbers, n, false), *magnitude = in_float64(t, numbers, n, true);
                if (want && magnitude)
                        error = worst(t, &got, want, magnitude);
                free(want);
                free(magnitude);
        }
        for (uint32_t i = 0; i < N_INPUTS; i++) {
                free(blocks[i]);
                free(numbers[i]);
        }
        free(got.data);
        af_plan_view_deinit(&view);
        af_diags_deinit(&diags);
        return error;
}

/* strict: the few that show the difference. */
static bool in_scope(enum kind k, enum af_dtype d, bool strict) {
        if (strict)
                return (d == AF_DTYPE_BFLOAT16 && k == CHAIN) || (d == AF_DTYPE_FLOAT16 && k == SUM_OF_TENTHS);
        return d != AF_DTYPE_FLOAT16 || k <= SUM_OF_TENTHS;
}

static uint32_t make_tests(struct test *tests) {
        static const enum af_dtype dtypes[] = {AF_DTYPE_FLOAT16, AF_DTYPE_BFLOAT16, AF_DTYPE_FLOAT32};
        uint32_t n = 0;
        for (int strict = 0; strict < 2; strict++)
                for (unsigned d = 0; d < AF_ARRAY_SIZE(dtypes); d++)
                        for (unsigned k = 0; k < N_KINDS; k++)
                                for (unsigned s = 0; s < AF_ARRAY_SIZE(shapes) && in_scope(k, dtypes[d], strict); s++) {
                                        struct test *t = &tests[n++];
                                        *t = (struct test){.kind = k, .dtype = dtypes[d], .shape = &shapes[s], .strict = strict};
                                        snprintf(t->what, sizeof(t->what), "%s %s, %lld addends, shape %u", kinds[k].name,
                                                 af_dtype_name(dtypes[d]), (long long)shapes[s].n, s);
                                }
        return n;
}

int main(void) {
        struct runner r;
        struct test *tests = calloc(2 * 3 * N_KINDS * AF_ARRAY_SIZE(shapes), sizeof(*tests));
        AF_CLEANUP(af_buf_deinit) struct af_buf err = AF_BUF_INIT;
        uint32_t n_bad = 0, n_coarse = 0;
        if (!tests || !runner_init(&r, "default", "-O0"))
                return 1;
        uint32_t n = make_tests(tests);
        for (uint32_t i = 0; i < n; i++)
                if (plan(&tests[i], &r.checked, &r.batches[0]))
                        printf("not ok %s: no plan\n", tests[i].what);
        if (batch_build(&r.batches[0], &err))
                printf("not ok compile: %.*s\n", (int)AF_MIN(err.size, (size_t)2000), err.data ? (const char *)err.data : "");
        for (uint32_t i = 0; i < n; i++) {
                double error = run(&tests[i], &r.batches[0]);
                if (tests[i].strict)
                        n_coarse += isfinite(error) && error > 1;
                else
                        printf("%s %s: %.2g of what is allowed\n", error <= 1 ? "ok" : "not ok", tests[i].what, error);
                n_bad += !isfinite(error) || (!tests[i].strict && error > 1);
                af_buf_deinit(&tests[i].canon);
                af_buf_deinit(&tests[i].plan);
                af_slot_map_deinit(&tests[i].map);
        }
        printf("%s %u strict kernels are outside, as rounding at each node must make some\n", n_coarse ? "ok" : "not ok", n_coarse);
        runner_deinit(&r);
        free(tests);
        return n_bad || !n_coarse;
}
