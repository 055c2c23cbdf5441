/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that move elements, against where each element must come from: every dtype, ranks 0 to 6, sizes 0 and 1, strided operands. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/eval.h"
#include "tests/lib/maker.h"
#include "tests/lib/random_graph.h"

#define MAX_OUT 8

struct moved {
        struct maker m;
        struct af_graph g;
        struct af_random_input *inputs;
        struct af_tensor outputs[MAX_OUT];
        uint64_t state;
};

static int64_t below(struct moved *t, int64_t n) {
        t->state = t->state * 6364136223846793005u + 1442695040888963407u;
        return (int64_t)((t->state >> 33) % (uint64_t)n);
}

static void begin(struct moved *t, uint64_t seed) {
        *t = (struct moved){.state = seed * 7919 + 17};
        maker_init(&t->m);
}

static struct maker_shape shape(struct moved *t, uint32_t least_rank) {
        static const int64_t sizes[] = {1, 2, 3, 5, 7, 1, 4, 2, 3, 0};
        struct maker_shape s = {.rank = least_rank + (uint32_t)below(t, 7 - (int64_t)least_rank)};

        for (uint32_t i = 0; i < s.rank; i++)
                s.dims[i] = sizes[below(t, i == 0 ? 10 : 9)];
        return s;
}

static enum af_dtype dtype(struct moved *t) {
        return 1 + (enum af_dtype)below(t, AF_DTYPE_FLOAT64 - 1);
}

/* An input with its axes in another order and gaps between, now and then. */
static uint32_t input(struct moved *t, enum af_dtype d, const struct maker_shape *s) {
        int64_t strides[8], step = 1;

        if (below(t, 2))
                return maker_input(&t->m, d, s);
        for (uint32_t i = 0; i < s->rank; i++) {
                strides[i] = step;
                step = step * (s->dims[i] ? s->dims[i] : 1) + below(t, 3);
        }
        return maker_strided(&t->m, d, s, strides, below(t, 5));
}

static void run(struct moved *t, uint64_t seed) {
        struct af_tensor in[8];
        const char *why = NULL;
        struct af_diags diags = {0};

        cr_assert_eq(t->m.error, 0, "%s, seed %llu", t->m.where, (unsigned long long)seed);
        int r = af_graph_from_fragment(&t->g, &t->m.f, &diags);
        if (r)
                af_test_diags_print(&diags);
        cr_assert_eq(r, 0, "seed %llu", (unsigned long long)seed);
        af_diags_deinit(&diags);
        cr_assert_eq(af_graph_check(&t->g, NULL), 0);
        cr_assert_eq(af_random_inputs(&t->g, seed, true, &t->inputs), 0);
        for (uint32_t i = 0; i < t->g.n_inputs; i++)
                in[i] = t->inputs[i].tensor;
        cr_assert(t->g.n_outputs <= MAX_OUT);
        cr_assert_eq(af_reference_run(&t->g, in, t->outputs, NULL, &why), 0, "%s", why);
}

static void end(struct moved *t) {
        af_random_inputs_free(t->inputs, t->g.n_inputs);
        for (uint32_t i = 0; i < t->g.n_outputs; i++)
                free(t->outputs[i].data);
        maker_deinit(&t->m);
}

/* The bytes of an element. */
static const char *at(const struct af_tensor *t, const int64_t *index) {
        int64_t place = 0;

        for (uint32_t i = 0; i < t->rank; i++) {
                cr_assert(index[i] >= 0 && index[i] < t->dims[i]);
                place += index[i] * t->strides[i];
        }
        return (const char *)t->data + place * (int64_t)af_dtype_size(t->dtype);
}

static bool step(int64_t *index, const struct af_tensor *t) {
        for (uint32_t i = t->rank; i-- > 0;) {
                if (++index[i] < t->dims[i])
                        return true;
                index[i] = 0;
        }
        return false;
}

static int64_t count(const struct af_tensor *t) {
        int64_t n = 1;

        for (uint32_t i = 0; i < t->rank; i++)
                n *= t->dims[i];
        return n;
}

/* where: for an output's index, the operand's. */
static void expect_from(const struct moved *t, uint32_t out, uint32_t in, void (*where)(const int64_t *index, int64_t *from, void *arg),
                        void *arg, uint64_t seed) {
        const struct af_tensor *o = &t->outputs[out], *x = &t->inputs[in].tensor;
        int64_t index[AF_LIMIT_RANK] = {0}, from[AF_LIMIT_RANK];

        if (count(o) == 0)
                return;
        do {
                where(index, from, arg);
                cr_assert_arr_eq(at(o, index), at(x, from), af_dtype_size(o->dtype), "output %u, seed %llu", out, (unsigned long long)seed);
        } while (step(index, o));
}

struct places {
        uint32_t rank;
        int64_t perm[8], start[8], step[8];
};

static void transposed(const int64_t *index, int64_t *from, void *arg) {
        const struct places *p = arg;

        for (uint32_t i = 0; i < p->rank; i++)
                from[p->perm[i]] = index[i];
}

static void stepped(const int64_t *index, int64_t *from, void *arg) {
        const struct places *p = arg;

        for (uint32_t i = 0; i < p->rank; i++)
                from[i] = p->start[i] + index[i] * p->step[i];
}

Test(move, transpose) {
        for (uint64_t seed = 0; seed < 300; seed++) {
                struct moved t;
                begin(&t, seed);
                struct maker_shape s = shape(&t, 0);
                struct places p = {.rank = s.rank};
                for (uint32_t i = 0; i < s.rank; i++)
                        p.perm[i] = i;
                for (uint32_t i = s.rank; i > 1; i--) {
                        int64_t k = below(&t, i), v = p.perm[i - 1];
                        p.perm[i - 1] = p.perm[k];
                        p.perm[k] = v;
                }
                struct af_attr attr = {.key = AF_ATTR_PERM, .ints = p.perm, .n = s.rank};
                uint32_t x = input(&t, dtype(&t), &s);
                maker_output(&t.m, maker_node(&t.m, AF_OP_TRANSPOSE, &x, 1, &attr, 1, 0));
                run(&t, seed);
                for (uint32_t i = 0; i < s.rank; i++)
                        cr_assert_eq(t.outputs[0].dims[i], s.dims[p.perm[i]]);
                expect_from(&t, 0, 0, transposed, &p, seed);
                end(&t);
        }
}

/* A range as Python has it: what list(range(n))[start:stop:step] holds, with bounds counted from the front. */
static int64_t python_range(int64_t n, int64_t start, int64_t stop, int64_t by, int64_t *ret_first) {
        int64_t size = 0;

        start = by > 0 ? (start < n ? start : n) : (start < n - 1 ? start : n - 1);
        stop = by > 0 ? (stop < n ? stop : n) : stop;
        for (int64_t i = start; by > 0 ? i < stop : i > stop; i += by)
                size++;
        *ret_first = start;
        return size;
}

Test(move, slice) {
        for (uint64_t seed = 0; seed < 600; seed++) {
                struct moved t;
                int64_t stops[8], sizes[8];
                begin(&t, seed);
                struct maker_shape s = shape(&t, 0);
                struct places p = {.rank = s.rank};
                for (uint32_t i = 0; i < s.rank; i++) {
                        p.step[i] = below(&t, 3) ? below(&t, 2) * 2 - 1 : (below(&t, 2) * 2 - 1) * (1 + below(&t, 9));
                        p.start[i] = below(&t, 9);
                        stops[i] = below(&t, 10) - (p.step[i] < 0);
                }
                struct af_attr attrs[] = {maker_dims(&t.m, AF_ATTR_STARTS, p.start, s.rank),
                                          maker_dims(&t.m, AF_ATTR_STOPS, stops, s.rank),
                                          {.key = AF_ATTR_STEPS, .ints = p.step, .n = s.rank}};
                uint32_t x = input(&t, dtype(&t), &s);
                maker_output(&t.m, maker_node(&t.m, AF_OP_SLICE, &x, 1, attrs, 3, 0));
                run(&t, seed);
                for (uint32_t i = 0; i < s.rank; i++) {
                        sizes[i] = python_range(s.dims[i], p.start[i], stops[i], p.step[i], &p.start[i]);
                        cr_assert_eq(t.outputs[0].dims[i], sizes[i], "seed %llu axis %u", (unsigned long long)seed, i);
                }
                expect_from(&t, 0, 0, stepped, &p, seed);
                end(&t);
        }
}

/* What stands at an index of a padded tensor: an element, or NULL for the fill. */
static const char *padded(const struct af_tensor *x, const int64_t *index, const int64_t *low) {
        int64_t from[AF_LIMIT_RANK];

        for (uint32_t i = 0; i < x->rank; i++) {
                from[i] = index[i] - low[i];
                if (from[i] < 0 || from[i] >= x->dims[i])
                        return NULL;
        }
        return at(x, from);
}

Test(move, pad) {
        static const char zeros[8];
        for (uint64_t seed = 0; seed < 300; seed++) {
                struct moved t;
                int64_t low[8], high[8], index[AF_LIMIT_RANK] = {0};
                begin(&t, seed);
                struct maker_shape s = shape(&t, 0);
                for (uint32_t i = 0; i < s.rank; i++) {
                        low[i] = below(&t, 3);
                        high[i] = below(&t, 3);
                }
                struct af_attr attrs[] = {maker_dims(&t.m, AF_ATTR_LOW, low, s.rank), maker_dims(&t.m, AF_ATTR_HIGH, high, s.rank)};
                enum af_dtype d = dtype(&t);
                uint32_t in[2] = {input(&t, d, &s)}, n = 1;
                char fill[8] = {0};
                double v = d == AF_DTYPE_BOOL ? 1 : -2.5;
                if (below(&t, 2)) {
                        in[n++] = maker_constant(&t.m, below(&t, 2) && af_dtype_kind(d) == 'f' ? AF_DTYPE_FLOAT64 : d, v);
                        af_test_number_put(fill, d, v);
                }
                maker_output(&t.m, maker_node(&t.m, AF_OP_PAD, in, n, attrs, 2, 0));
                run(&t, seed);
                const struct af_tensor *o = &t.outputs[0];
                for (uint32_t i = 0; i < s.rank; i++)
                        cr_assert_eq(o->dims[i], s.dims[i] + low[i] + high[i]);
                while (count(o) > 0) {
                        const char *from = padded(&t.inputs[0].tensor, index, low);
                        cr_assert_arr_eq(at(o, index),
                                         from    ? from
                                         : n > 1 ? fill
                                                 : zeros,
                                         af_dtype_size(d), "seed %llu", (unsigned long long)seed);
                        if (!step(index, o))
                                break;
                }
                end(&t);
        }
}

/* A fill wider than the tensor is rounded to it. */
Test(move, pad_rounds_a_wider_fill) {
        struct af_test_eval e;

        af_test_eval(
                &e,
                "'inputs': [{'name': 'x', 'dtype': 'bfloat16', 'shape': [1]}], 'constants': [{'name': 'c', 'dtype': 'float64', 'shape': "
                "[], 'value': 0.1}], 'nodes': [{'name': 'n', 'op': 'pad', 'inputs': ['x', 'c'], 'attrs': {'low': [1], 'high': [0]}, "
                "'outputs': [{'name': 't', 'dtype': 'bfloat16', 'shape': [2]}]}], 'outputs': ['t']",
                (const double *const[]){(const double[]){3}});
        cr_assert_eq(e.r, 0);
        cr_expect_eq(af_test_output(&e, 0, 0), 0.10009765625);
        cr_expect_eq(af_test_output(&e, 0, 1), 3);
        af_test_eval_deinit(&e);
}

/* index: of the whole; gives the piece and the index in it. */
static uint32_t piece_of(const int64_t *sizes, uint32_t axis, int64_t *index) {
        uint32_t i = 0;

        while (index[axis] >= sizes[i])
                index[axis] -= sizes[i++];
        return i;
}

static void pieces(bool join) {
        for (uint64_t seed = 0; seed < 300; seed++) {
                struct moved t;
                int64_t sizes[8], sum = 0, index[AF_LIMIT_RANK] = {0};
                uint32_t in[8], n;
                begin(&t, seed);
                struct maker_shape s = shape(&t, 1);
                uint32_t axis = (uint32_t)below(&t, s.rank);
                n = 1 + (uint32_t)below(&t, 6);
                for (uint32_t i = 0; i < n; i++)
                        sum += sizes[i] = below(&t, 5);
                enum af_dtype d = dtype(&t);
                struct af_attr attrs[] = {{.key = AF_ATTR_AXIS, .i = below(&t, 2) ? axis : (int64_t)axis - s.rank},
                                          maker_dims(&t.m, AF_ATTR_SIZES, sizes, n)};
                for (uint32_t i = 0; i < (join ? n : 1); i++) {
                        s.dims[axis] = join ? sizes[i] : sum;
                        in[i] = input(&t, d, &s);
                }
                uint32_t first = maker_node(&t.m, join ? AF_OP_CONCAT : AF_OP_SPLIT, in, join ? n : 1, attrs, join ? 1 : 2, 0);
                for (uint32_t i = 0; i < (join ? 1 : n); i++)
                        maker_output(&t.m, first + i);
                run(&t, seed);
                const struct af_tensor *whole = join ? &t.outputs[0] : &t.inputs[0].tensor;
                cr_assert_eq(whole->dims[axis], sum);
                while (count(whole) > 0) {
                        int64_t part[AF_LIMIT_RANK];
                        memcpy(part, index, sizeof(part));
                        uint32_t i = piece_of(sizes, axis, part);
                        cr_assert_arr_eq(at(whole, index), at(join ? &t.inputs[i].tensor : &t.outputs[i], part), af_dtype_size(d),
                                         "seed %llu", (unsigned long long)seed);
                        if (!step(index, whole))
                                break;
                }
                end(&t);
        }
}

Test(move, concat) {
        pieces(true);
}

Test(move, split) {
        pieces(false);
}

static int64_t index_at(const struct af_tensor *t, const int64_t *index) {
        const char *p = at(t, index);

        return t->dtype == AF_DTYPE_INT32 ? *(const int32_t *)p : *(const int64_t *)p;
}

/* Both gathers on every axis; indices of all kinds, also far out. */
static void gathers(bool elements) {
        static const char zeros[8];
        for (uint64_t seed = 0; seed < 300; seed++) {
                struct moved t;
                int64_t index[AF_LIMIT_RANK] = {0};
                begin(&t, seed);
                struct maker_shape s = shape(&t, 1), by = elements ? s : shape(&t, 0);
                uint32_t axis = (uint32_t)below(&t, s.rank);
                by.rank = elements ? by.rank : by.rank % 3;
                for (uint32_t i = 0; elements && i < s.rank; i++)
                        by.dims[i] = i == axis ? below(&t, 6) : s.dims[i] - (s.dims[i] > 0 ? below(&t, 2) : 0);
                struct af_attr attr = {.key = AF_ATTR_AXIS, .i = axis};
                enum af_dtype d = dtype(&t);
                uint32_t in[] = {input(&t, d, &s), input(&t, below(&t, 2) ? AF_DTYPE_INT32 : AF_DTYPE_INT64, &by)};
                maker_output(&t.m, maker_node(&t.m, elements ? AF_OP_GATHER_ELEMENTS : AF_OP_GATHER, in, 2, &attr, 1, 0));
                run(&t, seed);
                const struct af_tensor *o = &t.outputs[0], *x = &t.inputs[0].tensor, *where = &t.inputs[1].tensor;
                while (count(o) > 0) {
                        int64_t from[AF_LIMIT_RANK];
                        int64_t k = index_at(where, elements ? index : index + axis);
                        for (uint32_t i = 0; i < s.rank; i++)
                                from[i] = elements || i <= axis ? index[i] : index[i - 1 + by.rank];
                        from[axis] = k + (k < 0 ? s.dims[axis] : 0);
                        bool inside = from[axis] >= 0 && from[axis] < s.dims[axis];
                        cr_assert_arr_eq(at(o, index), inside ? at(x, from) : zeros, af_dtype_size(d), "seed %llu",
                                         (unsigned long long)seed);
                        if (!step(index, o))
                                break;
                }
                end(&t);
        }
}

Test(move, gather_elements) {
        gathers(true);
}

Test(move, gather) {
        gathers(false);
}

static void expect_iota(const char *attrs, const char *dtype_name, const char *dims, const double *want, int64_t n) {
        struct af_test_eval e;
        char text[512];

        snprintf(text, sizeof(text),
                 "'nodes': [{'name': 'n', 'op': 'iota', 'inputs': [], 'attrs': {'shape': %s, %s}, 'outputs': [{'name': 't', 'dtype': '%s', "
                 "'shape': %s}]}], 'outputs': ['t']",
                 dims, attrs, dtype_name, dims);
        af_test_eval(&e, text, NULL);
        cr_assert_eq(e.r, 0, "%s", e.why ? e.why : "refused");
        for (int64_t i = 0; i < n; i++) {
                double v = af_test_output(&e, 0, i);
                cr_expect(v == want[i] || (isnan(v) && isnan(want[i])), "%s {%s} %s [%lld]: %g, not %g", dtype_name, attrs, dims,
                          (long long)i, v, want[i]);
        }
        af_test_eval_deinit(&e);
}

#define D(...) ((const double[]){__VA_ARGS__})

Test(move, iota) {
        static const char *const all[] = {"int8", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"};
        for (size_t i = 0; i < AF_ARRAY_SIZE(all); i++) {
                expect_iota("'axis': 1", all[i], "[2, 3]", D(0, 1, 2, 0, 1, 2), 6);
                expect_iota("'axis': -2, 'start': 5, 'step': 7", all[i], "[2, 3, 1]", D(5, 12, 19, 5, 12, 19), 6);
                expect_iota("'start': 3, 'step': -1", all[i], "[3]", D(3, 2, 1), 3);
                expect_iota("'axis': 0", all[i], "[0, 3]", NULL, 0);
        }
        expect_iota("'start': 120, 'step': 5", "int8", "[3]", D(120, 125, -126), 3);
        expect_iota("'start': -1, 'step': 1", "uint8", "[3]", D(255, 0, 1), 3);
        expect_iota("'start': '9223372036854775807'", "int64", "[2]", D(9223372036854775807.0, -9223372036854775808.0), 2);
        expect_iota("'start': 0.5, 'step': 0.1", "float32", "[3]", D(0.5, 0.5f + 0.1f, 0.5f + 0.1f * 2), 3);
        expect_iota("'start': 0.1, 'step': 0.1", "float64", "[3]", D(0.1, 0.2, 0.1 + 0.2), 3);
        expect_iota("'start': 2048, 'step': 1", "float16", "[4]", D(2048, 2048, 2050, 2052), 4); /* rounded once, from float32 */
        expect_iota("'step': 'inf'", "float32", "[2]", D(NAN, INFINITY), 2);
}
