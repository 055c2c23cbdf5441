/* SPDX-License-Identifier: Apache-2.0 */
/* Moved views and concats: the same bits on random graphs of every rule, the normal form on known ones, growth. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/rewrite/rewrite.h"
#include "tests/lib/maker.h"
#include "tests/lib/random_graph.h"

/* ---- short writing ---- */

static struct maker *begin(void) {
        struct maker *m = calloc(1, sizeof(*m));
        cr_assert(m);
        maker_init(m);
        return m;
}
static void end(struct maker *m) {
        maker_deinit(m);
        free(m);
}
static int64_t dim(const struct maker *m, uint32_t v, uint32_t axis) {
        int64_t d = -1;
        cr_assert(af_expr_is_const(&m->f.exprs, m->values[v].ids[axis], &d));
        return d;
}
static uint32_t slice(struct maker *m, uint32_t x, const int64_t *starts, const int64_t *stops, const int64_t *steps) {
        uint32_t rank = m->values[x].rank;
        struct af_attr attrs[] = {maker_dims(m, AF_ATTR_STARTS, starts, rank),
                                  maker_dims(m, AF_ATTR_STOPS, stops, rank),
                                  {.key = AF_ATTR_STEPS, .ints = steps, .n = rank}};
        return maker_node(m, AF_OP_SLICE, &x, 1, attrs, 3, AF_DTYPE_INVALID);
}
/* [start, stop) of one axis. */
static uint32_t part(struct maker *m, uint32_t x, uint32_t axis, int64_t start, int64_t stop) {
        int64_t starts[8] = {0}, stops[8], steps[8];
        for (uint32_t i = 0; i < m->values[x].rank; i++) {
                stops[i] = dim(m, x, i);
                steps[i] = 1;
        }
        starts[axis] = start;
        stops[axis] = stop;
        return slice(m, x, starts, stops, steps);
}
static uint32_t transpose(struct maker *m, uint32_t x, const int64_t *perm) {
        struct af_attr attr = {.key = AF_ATTR_PERM, .ints = perm, .n = m->values[x].rank};
        return maker_node(m, AF_OP_TRANSPOSE, &x, 1, &attr, 1, AF_DTYPE_INVALID);
}
static uint32_t concat(struct maker *m, const uint32_t *in, uint32_t n, uint32_t axis) {
        struct af_attr attr = {.key = AF_ATTR_AXIS, .i = axis};
        return maker_node(m, AF_OP_CONCAT, in, n, &attr, 1, AF_DTYPE_INVALID);
}
static uint32_t concat2(struct maker *m, uint32_t a, uint32_t b, uint32_t axis) {
        const uint32_t in[] = {a, b};
        return concat(m, in, 2, axis);
}
static uint32_t split(struct maker *m, uint32_t x, uint32_t axis, const int64_t *sizes, uint32_t n) {
        struct af_attr attrs[] = {{.key = AF_ATTR_AXIS, .i = axis}, maker_dims(m, AF_ATTR_SIZES, sizes, n)};
        return maker_node(m, AF_OP_SPLIT, &x, 1, attrs, 2, AF_DTYPE_INVALID);
}
static uint32_t pad(struct maker *m, uint32_t x, const int64_t *low, const int64_t *high, uint32_t fill) {
        const uint32_t in[] = {x, fill};
        struct af_attr attrs[] = {maker_dims(m, AF_ATTR_LOW, low, m->values[x].rank), maker_dims(m, AF_ATTR_HIGH, high, m->values[x].rank)};
        return maker_node(m, AF_OP_PAD, in, fill ? 2 : 1, attrs, 2, AF_DTYPE_INVALID);
}
static uint32_t gather(struct maker *m, enum af_op op, uint32_t x, uint32_t index, uint32_t axis) {
        const uint32_t in[] = {x, index};
        struct af_attr attr = {.key = AF_ATTR_AXIS, .i = axis};
        return maker_node(m, op, in, 2, &attr, 1, AF_DTYPE_INVALID);
}
static uint32_t by_axis(struct maker *m, enum af_op op, uint32_t x, int64_t axis) {
        struct af_attr attr = {.key = AF_ATTR_AXIS, .i = axis};
        return maker_node(m, op, &x, 1, &attr, 1, AF_DTYPE_INVALID);
}
static uint32_t shape_like(struct maker *m, enum af_op op, uint32_t x, const int64_t *dims, uint32_t rank) {
        struct maker_shape shape = {.rank = rank};
        memcpy(shape.dims, dims, rank * sizeof(*dims));
        return maker_shaped(m, op, x, &shape);
}
static uint32_t in2(struct maker *m, enum af_dtype d, int64_t rows, int64_t columns) {
        return maker_input(m, d, &(struct maker_shape){2, {rows, columns}});
}

/* The fragment's graph and what it becomes, both checked; every composite decomposed in both. */
struct both {
        struct af_graph before, after;
        struct af_rewrite_notes notes;
};
static struct both rewrite(struct maker *m, const char *what) {
        struct both g = {0};
        struct af_graph sent;
        struct af_diags diags = {0};
        cr_assert_eq(m->error, 0, "%s: %s", what, m->where);
        cr_assert_eq(af_graph_from_fragment(&sent, &m->f, &diags), 0, "%s: %s", what, diags.n_items ? diags.items[0].what : "");
        cr_assert_eq(af_rewrite_decompose(&sent, NULL, &g.before, NULL), 0);
        int r = af_rewrite(&sent, NULL, &g.after, &g.notes);
        cr_assert_eq(r, 0, "%s: %d", what, r);
        cr_assert_eq(af_graph_check(&g.after, &diags), 0, "%s: %s %s", what, diags.n_items ? diags.items[0].where : "",
                     diags.n_items ? diags.items[0].what : "");
        af_diags_deinit(&diags);
        return g;
}

static void same_bits(const struct both *g, uint64_t seed, const char *what) {
        struct af_random_input *inputs;
        struct af_tensor tensors[64], *a = calloc(g->before.n_outputs, sizeof(*a)), *b = calloc(g->before.n_outputs, sizeof(*b));
        const char *why = "";
        cr_assert_eq(af_random_inputs(&g->before, seed, seed % 2, &inputs), 0);
        for (uint32_t i = 0; i < g->before.n_inputs; i++)
                tensors[i] = inputs[i].tensor;
        cr_assert_eq(af_reference_run(&g->before, tensors, a, NULL, &why), 0, "%s: %s", what, why);
        cr_assert_eq(af_reference_run(&g->after, tensors, b, NULL, &why), 0, "%s: %s", what, why);
        for (uint32_t i = 0; i < g->before.n_outputs; i++) {
                double error;
                uint64_t first;
                cr_assert_eq(af_tensor_compare(&b[i], &a[i], &error, &first), 0,
                             "%s, seed %" PRIu64 ": output %u differs from element %" PRIu64, what, seed, i, first);
                free(a[i].data);
                free(b[i].data);
        }
        free(a);
        free(b);
        af_random_inputs_free(inputs, g->before.n_inputs);
}

static uint32_t count_class(const struct af_graph *g, enum af_op_class cls) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < g->n_nodes; i++)
                n += af_op_info(g->nodes[i].op)->cls == cls;
        return n;
}

/* Whether a value is an input or constant, or views of one. */
static bool is_source(const struct af_graph *g, uint32_t value) {
        while (g->values[value].kind == AF_VALUE_NODE) {
                const struct af_node *n = &g->nodes[g->values[value].index];
                enum af_op_class cls = af_op_info(n->op)->cls;
                if (cls != AF_CLASS_VIEW && cls != AF_CLASS_SLICE && cls != AF_CLASS_TRANSPOSE)
                        return false;
                value = n->in[0];
        }
        return true;
}
/* Views only of what is in memory, concats only read by nobody. */
static void normal_form(const struct af_graph *g, const char *what) {
        for (uint32_t i = 0; i < g->n_nodes; i++) {
                const struct af_node *n = &g->nodes[i];
                enum af_op_class cls = af_op_info(n->op)->cls;
                cr_assert(cls != AF_CLASS_PAD && cls != AF_CLASS_SPLIT, "%s", what);
                if (cls == AF_CLASS_SLICE || cls == AF_CLASS_TRANSPOSE || cls == AF_CLASS_GATHER)
                        cr_assert(is_source(g, n->in[0]), "%s: %s of something computed", what, af_op_info(n->op)->name);
                for (uint32_t j = 0; j < n->n_in; j++) {
                        const struct af_value *v = &g->values[n->in[j]];
                        cr_assert(v->kind != AF_VALUE_NODE || g->nodes[v->index].op != AF_OP_CONCAT, "%s: %s reads a concat", what,
                                  af_op_info(n->op)->name);
                }
        }
}

/* ---- known graphs ---- */

Test(motion, rotary) {
        struct maker *m = begin();
        struct maker_shape wide = {4, {1, 3, 5, 8}}, flat = {2, {5, 8}};
        uint32_t q = maker_input(m, AF_DTYPE_FLOAT32, &wide), c = maker_input(m, AF_DTYPE_FLOAT32, &flat);
        uint32_t s = maker_input(m, AF_DTYPE_FLOAT32, &flat);
        uint32_t turned = concat2(m, maker_unary(m, AF_OP_NEG, part(m, q, 3, 4, 8)), part(m, q, 3, 0, 4), 3);
        maker_output(m, maker_binary(m, AF_OP_ADD, maker_binary(m, AF_OP_MUL, turned, s), maker_binary(m, AF_OP_MUL, q, c)));
        struct both g = rewrite(m, "rotary");
        normal_form(&g.after, "rotary");
        cr_assert_eq(count_class(&g.after, AF_CLASS_CONCAT), 1);
        same_bits(&g, 1, "rotary");
        end(m);
}

Test(motion, concat_of_computed) {
        struct maker *m = begin();
        uint32_t a = in2(m, AF_DTYPE_FLOAT32, 4, 6), b = in2(m, AF_DTYPE_FLOAT32, 4, 9);
        uint32_t t = concat2(m, maker_unary(m, AF_OP_EXP, a), maker_unary(m, AF_OP_ABS, b), 1);
        maker_output(m, maker_unary(m, AF_OP_RELU, t));
        struct both g = rewrite(m, "concat");
        normal_form(&g.after, "concat");
        cr_assert_eq(g.after.n_nodes, 5);
        same_bits(&g, 2, "concat");
        end(m);
}

Test(motion, split_act_concat) {
        struct maker *m = begin();
        static const int64_t sizes[] = {5, 5, 5};
        uint32_t p = split(m, in2(m, AF_DTYPE_FLOAT32, 7, 15), 1, sizes, 3);
        const uint32_t in[] = {maker_unary(m, AF_OP_SIGMOID, p), maker_unary(m, AF_OP_TANH, p + 1), maker_unary(m, AF_OP_RELU, p + 2)};
        maker_output(m, concat(m, in, 3, 1));
        struct both g = rewrite(m, "split");
        normal_form(&g.after, "split");
        cr_assert_eq(g.after.n_nodes, 7);
        same_bits(&g, 3, "split");
        end(m);
}

Test(motion, pad_then_relu) {
        struct maker *m = begin();
        static const int64_t one[] = {1, 1};
        uint32_t x = in2(m, AF_DTYPE_FLOAT32, 4, 9);
        maker_output(m, maker_unary(m, AF_OP_RELU, pad(m, x, one, one, maker_constant(m, AF_DTYPE_FLOAT32, -0.5))));
        struct both g = rewrite(m, "pad");
        cr_assert_eq(count_class(&g.after, AF_CLASS_ELEMENTWISE), 1, "the fills' relu is known");
        cr_assert_eq(count_class(&g.after, AF_CLASS_CONCAT), 2);
        same_bits(&g, 4, "pad");
        end(m);
}

Test(motion, cross_entropy) {
        static const int64_t classes[] = {9, 12288};
        for (int k = 0; k < 2; k++) {
                struct maker *m = begin();
                uint32_t x = in2(m, AF_DTYPE_BFLOAT16, 3, classes[k]), t = in2(m, AF_DTYPE_INT64, 3, 1);
                uint32_t l = by_axis(m, AF_OP_LOG_SOFTMAX, maker_cast(m, x, AF_DTYPE_FLOAT32), 1);
                maker_output(m, maker_unary(m, AF_OP_NEG, gather(m, AF_OP_GATHER_ELEMENTS, l, t, 1)));
                struct both g = rewrite(m, "cross entropy");
                normal_form(&g.after, "cross entropy");
                cr_assert_eq(count_class(&g.after, AF_CLASS_GATHER), 0, "picked from the row that is read anyway");
                for (uint64_t seed = 0; seed < 4; seed++)
                        same_bits(&g, seed, "cross entropy");
                end(m);
        }
}

Test(motion, a_gather_moves_to_the_input) {
        for (int k = 0; k < 2; k++) {
                struct maker *m = begin();
                struct maker_shape wide = {2, {3, 2}}, index = {2, {3, 4}};
                uint32_t x = in2(m, AF_DTYPE_FLOAT16, 3, 9), y = in2(m, AF_DTYPE_FLOAT16, k ? 3 : 1, k ? 1 : 9);
                uint32_t v = maker_unary(m, AF_OP_NEG, maker_binary(m, AF_OP_ADD, x, y));
                maker_output(m, gather(m, AF_OP_GATHER, v, maker_input(m, AF_DTYPE_INT32, &wide), 1));
                maker_output(m, gather(m, AF_OP_GATHER_ELEMENTS, v, maker_input(m, AF_DTYPE_INT64, &index), 1));
                struct both g = rewrite(m, "gather");
                normal_form(&g.after, "gather");
                cr_assert_eq(count_class(&g.after, AF_CLASS_GATHER), k ? 2 : 4);
                for (uint64_t seed = 0; seed < 4; seed++)
                        same_bits(&g, seed, "gather");
                end(m);
        }
}

Test(motion, a_gather_of_nothing_gives_zeros) {
        for (uint32_t rank = 0; rank < 3; rank++) {
                struct maker *m = begin();
                struct maker_shape index = {rank, {2, 3}}, elements = {2, {4, 5}};
                uint32_t x = maker_unary(m, AF_OP_EXP, in2(m, AF_DTYPE_FLOAT32, 4, 0));
                maker_output(m, gather(m, AF_OP_GATHER, x, maker_input(m, AF_DTYPE_INT64, &index), 1));
                maker_output(m, gather(m, AF_OP_GATHER_ELEMENTS, x, maker_input(m, AF_DTYPE_INT32, &elements), 1));
                struct both g = rewrite(m, "nothing");
                cr_assert_eq(count_class(&g.after, AF_CLASS_GATHER), 0);
                same_bits(&g, 11, "nothing");
                end(m);
        }
}

Test(motion, a_causal_mask_is_a_compare) {
        struct maker *m = begin();
        struct maker_shape square = {2, {6, 6}}, batch = {3, {2, 6, 6}};
        struct af_attr diagonal = {.key = AF_ATTR_DIAGONAL, .i = 1};
        uint32_t x = maker_input(m, AF_DTYPE_BFLOAT16, &batch);
        uint32_t ones = maker_shaped(m, AF_OP_EXPAND, maker_constant(m, AF_DTYPE_BOOL, 1), &square);
        const uint32_t in[] = {x, maker_node(m, AF_OP_TRIU, &ones, 1, &diagonal, 1, AF_DTYPE_INVALID),
                               maker_constant(m, AF_DTYPE_BFLOAT16, -INFINITY)};
        maker_output(m, by_axis(m, AF_OP_SOFTMAX, maker_node(m, AF_OP_MASKED_FILL, in, 3, NULL, 0, AF_DTYPE_INVALID), 2));
        struct both g = rewrite(m, "causal");
        cr_assert_eq(count_class(&g.after, AF_CLASS_BROADCAST), 0);
        cr_assert_eq(count_class(&g.after, AF_CLASS_SELECT), 1);
        cr_assert_eq(count_class(&g.after, AF_CLASS_IOTA), 2);
        same_bits(&g, 5, "causal");
        end(m);
}

Test(motion, views_of_views_fold) {
        static const int64_t perm[] = {1, 0}, starts[] = {7, 1}, stops[] = {0, 6}, steps[] = {-2, 2};
        struct maker *m = begin();
        uint32_t x = in2(m, AF_DTYPE_INT32, 8, 9), y = in2(m, AF_DTYPE_INT32, 8, 9);
        uint32_t s = slice(m, x, starts, stops, steps);                           /* [4, 3] */
        maker_output(m, part(m, part(m, s, 0, 1, 4), 1, 1, 2));                   /* slice of slice */
        maker_output(m, transpose(m, transpose(m, y, perm), perm));               /* itself */
        maker_output(m, part(m, concat2(m, x, y, 1), 1, 9, 18));                  /* one piece */
        maker_output(m, concat2(m, part(m, x, 0, 2, 4), part(m, x, 0, 4, 7), 0)); /* neighbours */
        struct both g = rewrite(m, "folds");
        cr_assert_eq(g.after.n_nodes, 2);
        cr_assert_eq(count_class(&g.after, AF_CLASS_SLICE), 2);
        same_bits(&g, 6, "folds");
        end(m);
}

Test(motion, nothing_costly_is_computed_twice) {
        struct maker *m = begin();
        uint32_t x = in2(m, AF_DTYPE_FLOAT32, 8, 16), e = maker_unary(m, AF_OP_EXP, x);
        maker_output(m, maker_reduce(m, AF_OP_REDUCE_SUM, e, 2, false, AF_DTYPE_INVALID));
        maker_output(m, maker_unary(m, AF_OP_ABS, part(m, e, 1, 0, 4)));
        struct both g = rewrite(m, "heavy");
        cr_assert_eq(g.after.n_nodes, 4);
        cr_assert_eq(count_class(&g.after, AF_CLASS_SLICE), 1);
        same_bits(&g, 7, "heavy");
        end(m);
}

Test(motion, rows_that_nobody_reads_are_not_computed) {
        for (int64_t rows = 1; rows < 3; rows++) {
                struct maker *m = begin();
                uint32_t x = in2(m, AF_DTYPE_FLOAT32, 6, 100), y = by_axis(m, AF_OP_SOFTMAX, x, 1);
                maker_output(m, part(m, maker_binary(m, AF_OP_MUL, y, y), 0, 6 - rows, 6));
                struct both g = rewrite(m, "rows");
                normal_form(&g.after, "rows");
                cr_assert_eq(g.after.n_nodes, 7, "a slice of x, softmax and the product of that");
                same_bits(&g, 9, "rows");
                end(m);
        }
}

Test(motion, heads_are_split_and_turned_at_the_input) {
        static const int64_t heads[] = {2, 3, 4, 2}, perm[] = {0, 2, 1, 3};
        struct maker *m = begin();
        uint32_t x = maker_input(m, AF_DTYPE_FLOAT16, &(struct maker_shape){3, {2, 3, 8}});
        uint32_t bias = maker_input(m, AF_DTYPE_FLOAT16, &(struct maker_shape){1, {8}});
        uint32_t y = maker_unary(m, AF_OP_TANH, maker_binary(m, AF_OP_ADD, x, bias));
        y = transpose(m, shape_like(m, AF_OP_RESHAPE, y, heads, 4), perm);
        maker_output(m, maker_binary(m, AF_OP_MUL, y, maker_constant(m, AF_DTYPE_FLOAT16, 0.5)));
        struct both g = rewrite(m, "heads");
        normal_form(&g.after, "heads");
        cr_assert_eq(count_class(&g.after, AF_CLASS_TRANSPOSE), 1, "the bias is turned by a reshape");
        same_bits(&g, 10, "heads");
        end(m);
}

Test(motion, sums_keep_their_order) {
        /* a column alone: what remains is the last axis with more than one element, and would be added up in another order */
        for (int64_t columns = 1; columns < 4; columns++) {
                struct maker *m = begin();
                uint32_t x = in2(m, AF_DTYPE_FLOAT32, 3000, 7);
                maker_output(m, part(m, maker_reduce(m, AF_OP_REDUCE_SUM, x, 1, false, AF_DTYPE_INVALID), 0, 1, 1 + columns));
                struct both g = rewrite(m, "order");
                same_bits(&g, 8, "order");
                end(m);
        }
}

Test(motion, pinned_nodes_are_not_moved) {
        struct maker *m = begin();
        uint32_t x = in2(m, AF_DTYPE_FLOAT32, 4, 8), e = maker_unary(m, AF_OP_ABS, x);
        maker_output(m, part(m, e, 1, 0, 3));
        struct af_graph before, after;
        struct af_diags diags = {0};
        cr_assert_eq(af_graph_from_fragment(&before, &m->f, NULL), 0);
        for (unsigned pin = 0; pin < 4; pin++) {
                const bool pinned[] = {pin & 1, pin & 2};
                cr_assert_eq(af_rewrite(&before, pinned, &after, NULL), 0);
                cr_assert_eq(af_graph_check(&after, &diags), 0);
                cr_assert_eq(after.n_nodes, 2);
                cr_assert_eq(after.nodes[0].op == AF_OP_SLICE, pin == 0);
                for (uint32_t i = 0; i < 2 && pin; i++)
                        cr_assert(!after.nodes[i].piece && after.nodes[i].source == i);
        }
        end(m);
}

/* ---- random graphs ---- */

struct dice {
        uint64_t s;
};
static uint64_t roll(struct dice *d, uint64_t n) {
        d->s = d->s * 6364136223846793005u + 1442695040888963407u;
        return (d->s >> 33) % n;
}

static int64_t size_of(struct dice *d) {
        static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 1, 9};
        return roll(d, 40) == 0 ? 0 : sizes[roll(d, AF_ARRAY_SIZE(sizes))];
}
static uint32_t fresh_input(struct maker *m, struct dice *d, enum af_dtype dtype, uint32_t like) {
        struct maker_shape shape = {.rank = like ? m->values[like].rank : (uint32_t)roll(d, 4) + 1};
        for (uint32_t i = 0; i < shape.rank; i++)
                shape.dims[i] = like ? (roll(d, 3) ? dim(m, like, i) : 1) : size_of(d);
        uint32_t cut = like && shape.rank ? (uint32_t)roll(d, shape.rank + 2) : 0; /* leading axes that it lacks */
        if (cut < shape.rank && like) {
                memmove(shape.dims, shape.dims + cut, (shape.rank - cut) * sizeof(*shape.dims));
                shape.rank -= cut;
        }
        return maker_input(m, dtype, &shape);
}
static int64_t elements(const struct maker *m, uint32_t v) {
        int64_t n = 1;
        for (uint32_t i = 0; i < m->values[v].rank; i++)
                n *= dim(m, v, i);
        return n;
}

static uint32_t random_slice(struct maker *m, struct dice *d, uint32_t x) {
        int64_t starts[8], stops[8], steps[8];
        for (uint32_t i = 0; i < m->values[x].rank; i++) {
                int64_t n = dim(m, x, i), a = (int64_t)roll(d, (uint64_t)n + 1), b = (int64_t)roll(d, (uint64_t)n + 1);
                starts[i] = AF_MIN(a, b);
                stops[i] = AF_MAX(a, b);
                steps[i] = 1 + (int64_t)roll(d, 2);
                if (roll(d, 3) == 0) {
                        starts[i] = 0;
                        stops[i] = n;
                        steps[i] = 1;
                } else if (roll(d, 4) == 0 && n > 0) {
                        starts[i] = AF_MIN(AF_MAX(a, b), n - 1);
                        stops[i] = AF_MIN(a, b) - 1;
                        steps[i] = -steps[i];
                }
        }
        return slice(m, x, starts, stops, steps);
}
static uint32_t random_transpose(struct maker *m, struct dice *d, uint32_t x) {
        int64_t perm[8];
        uint32_t rank = m->values[x].rank;
        for (uint32_t i = 0; i < rank; i++)
                perm[i] = i;
        for (uint32_t i = rank; i > 1; i--) {
                uint64_t k = roll(d, i);
                int64_t t = perm[i - 1];
                perm[i - 1] = perm[k];
                perm[k] = t;
        }
        return transpose(m, x, perm);
}
static uint32_t random_reshape(struct maker *m, struct dice *d, uint32_t x) {
        int64_t dims[8];
        uint32_t rank = m->values[x].rank, n = 0, at = (uint32_t)roll(d, rank);
        for (uint32_t i = 0; i < rank; i++) {
                int64_t size = dim(m, x, i);
                if (i == at && i + 1 < rank && roll(d, 2)) { /* two axes as one */
                        dims[n++] = size * dim(m, x, ++i);
                } else if (i == at && size % 2 == 0 && size > 0) { /* one as two */
                        dims[n++] = 2;
                        dims[n++] = size / 2;
                } else {
                        dims[n++] = size;
                        if (i == at && n < 6)
                                dims[n++] = 1;
                }
        }
        return n <= 6 ? shape_like(m, AF_OP_RESHAPE, x, dims, n) : x;
}
static uint32_t random_gather(struct maker *m, struct dice *d, uint32_t x) {
        uint32_t axis = (uint32_t)roll(d, m->values[x].rank), rank = m->values[x].rank;
        enum af_dtype index = roll(d, 2) ? AF_DTYPE_INT64 : AF_DTYPE_INT32;
        struct maker_shape shape = {.rank = (uint32_t)roll(d, 3)};
        if (roll(d, 2)) {
                for (uint32_t i = 0; i < shape.rank; i++)
                        shape.dims[i] = 1 + (int64_t)roll(d, 4);
                return rank + shape.rank > 6 ? x : gather(m, AF_OP_GATHER, x, maker_input(m, index, &shape), axis);
        }
        shape.rank = rank;
        for (uint32_t i = 0; i < rank; i++)
                shape.dims[i] = i == axis ? 1 + (int64_t)roll(d, 4) : dim(m, x, i) - (roll(d, 6) == 0 && dim(m, x, i) > 1);
        return gather(m, AF_OP_GATHER_ELEMENTS, x, maker_input(m, index, &shape), axis);
}
static uint32_t random_concat(struct maker *m, struct dice *d, uint32_t x) {
        uint32_t axis = (uint32_t)roll(d, m->values[x].rank), in[4], n = 1 + (uint32_t)roll(d, 3);
        for (uint32_t i = 0; i < n; i++) {
                int64_t size = dim(m, x, axis), a = (int64_t)roll(d, (uint64_t)size + 1), b = (int64_t)roll(d, (uint64_t)size + 1);
                in[i] = roll(d, 3) || m->values[x].dtype == AF_DTYPE_BOOL ? part(m, x, axis, AF_MIN(a, b), AF_MAX(a, b))
                                                                          : maker_unary(m, AF_OP_ABS, x);
        }
        in[n++] = x;
        return concat(m, in, n, axis);
}
static uint32_t random_pad(struct maker *m, struct dice *d, uint32_t x) {
        int64_t low[8], high[8];
        for (uint32_t i = 0; i < m->values[x].rank; i++) {
                low[i] = (int64_t)roll(d, 3);
                high[i] = roll(d, 2) ? 0 : (int64_t)roll(d, 3);
        }
        return pad(m, x, low, high,
                   roll(d, 2) && m->values[x].dtype != AF_DTYPE_BOOL ? maker_constant(m, m->values[x].dtype, (double)roll(d, 7) - 3) : 0);
}

static uint32_t random_elementwise(struct maker *m, struct dice *d, uint32_t x) {
        static const enum af_op unary[] = {AF_OP_ABS, AF_OP_NEG, AF_OP_RELU, AF_OP_SQUARE, AF_OP_EXP};
        static const enum af_op binary[] = {AF_OP_ADD, AF_OP_SUB, AF_OP_MUL, AF_OP_MAXIMUM};
        enum af_dtype t = m->values[x].dtype;
        if (t == AF_DTYPE_BOOL)
                return roll(d, 2) ? maker_cast(m, x, AF_DTYPE_FLOAT32) : maker_unary(m, AF_OP_LOGICAL_NOT, x);
        switch (roll(d, 5)) {
        case 0:
                return maker_unary(m, unary[roll(d, af_dtype_kind(t) == 'f' ? 5 : 4)], x);
        case 1:
                return maker_binary(m, binary[roll(d, 4)], x, maker_constant(m, t, (double)roll(d, 9) - 4));
        case 2: {
                uint32_t in[] = {fresh_input(m, d, AF_DTYPE_BOOL, x), x, fresh_input(m, d, t, x)};
                return maker_node(m, AF_OP_WHERE, in, 3, NULL, 0, AF_DTYPE_INVALID);
        }
        case 3:
                return maker_cast(m, x, roll(d, 2) ? AF_DTYPE_FLOAT16 : AF_DTYPE_FLOAT32);
        default: {
                uint32_t y = fresh_input(m, d, t, x);
                return roll(d, 2) ? maker_binary(m, binary[roll(d, 4)], x, y) : maker_binary(m, binary[roll(d, 4)], y, x);
        }
        }
}

static uint32_t random_reduce(struct maker *m, struct dice *d, uint32_t x) {
        uint32_t axis = (uint32_t)roll(d, m->values[x].rank);
        enum af_dtype t = m->values[x].dtype;
        if (t == AF_DTYPE_BOOL || dim(m, x, axis) == 0)
                return x;
        return maker_reduce(m, roll(d, 2) || af_dtype_kind(t) != 'f' ? AF_OP_REDUCE_MAX : AF_OP_REDUCE_SUM, x, 1u << axis, roll(d, 2),
                            AF_DTYPE_INVALID);
}
static uint32_t random_split(struct maker *m, struct dice *d, uint32_t x) {
        int64_t size = dim(m, x, 0), cut = (int64_t)roll(d, (uint64_t)size + 1);
        const int64_t sizes[] = {cut, size - cut};
        return split(m, x, 0, sizes, 2) + (uint32_t)roll(d, 2);
}
static uint32_t random_broadcast(struct maker *m, struct dice *d, uint32_t x) {
        int64_t dims[8] = {1 + (int64_t)roll(d, 3)};
        uint32_t rank = m->values[x].rank;
        for (uint32_t i = 0; i < rank; i++)
                dims[i + 1] = dim(m, x, i) == 1 && roll(d, 2) ? 3 : dim(m, x, i);
        return rank < 5 ? shape_like(m, AF_OP_BROADCAST, x, dims, rank + 1) : x;
}
static uint32_t random_composite(struct maker *m, struct dice *d, uint32_t x) {
        uint32_t rank = m->values[x].rank, axis = (uint32_t)roll(d, rank);
        enum af_dtype t = m->values[x].dtype;
        struct af_attr diagonal = {.key = AF_ATTR_DIAGONAL, .i = (int64_t)roll(d, 5) - 2};
        switch (roll(d, 3)) {
        case 0:
                return rank > 1 ? maker_node(m, roll(d, 2) ? AF_OP_TRIU : AF_OP_TRIL, &x, 1, &diagonal, 1, AF_DTYPE_INVALID) : x;
        case 1:
                if (t == AF_DTYPE_BOOL || dim(m, x, axis) == 0)
                        return x;
                return maker_cast(m, by_axis(m, roll(d, 2) ? AF_OP_ARG_MAX : AF_OP_ARG_MIN, x, axis), AF_DTYPE_INT32);
        default:
                return af_dtype_kind(t) == 'f' ? by_axis(m, roll(d, 2) ? AF_OP_SOFTMAX : AF_OP_LOG_SOFTMAX, x, axis) : x;
        }
}

static uint32_t random_node(struct maker *m, struct dice *d, uint32_t x) {
        static uint32_t (*const kinds[])(struct maker *, struct dice *, uint32_t) = {
                random_slice,  random_slice, random_transpose, random_concat,    random_pad,       random_gather,
                random_reduce, random_split, random_broadcast, random_composite, random_composite, random_reshape};
        uint64_t kind = roll(d, AF_ARRAY_SIZE(kinds) + 6);
        bool can = m->values[x].rank > 0 && m->values[x].rank < 5 && elements(m, x) <= 3000 && kind < AF_ARRAY_SIZE(kinds);
        return can ? kinds[kind](m, d, x) : random_elementwise(m, d, x);
}

static void random_graph(struct maker *m, uint64_t seed) {
        static const enum af_dtype dtypes[] = {AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT16, AF_DTYPE_INT32, AF_DTYPE_BOOL};
        struct dice d = {seed * 7919 + 1};
        uint32_t pool[64], n = 0, n_nodes = 3 + (uint32_t)roll(&d, 14);
        roll(&d, 2);
        pool[n++] = fresh_input(m, &d, dtypes[roll(&d, AF_ARRAY_SIZE(dtypes))], 0);
        for (uint32_t i = 0; i < n_nodes && !m->error; i++) {
                uint32_t x = pool[roll(&d, 3) ? n - 1 : roll(&d, n)];
                pool[n] = random_node(m, &d, x);
                n++;
        }
        for (uint32_t i = 1; i < n && !m->error; i++)
                if (i + 1 == n || roll(&d, 5) == 0)
                        maker_output(m, pool[i]);
}

Test(motion, random_graphs_keep_their_bits, .timeout = 300) {
        const char *more = getenv("AF_MOTION_SEEDS");
        uint64_t n = more ? strtoull(more, NULL, 10) : 1500;
        uint64_t moved = 0;
        for (uint64_t seed = 0; seed < n; seed++) {
                char what[40];
                struct maker *m = begin();
                snprintf(what, sizeof(what), "seed %" PRIu64, seed);
                random_graph(m, seed);
                struct both g = rewrite(m, what);
                moved += g.notes.n;
                same_bits(&g, seed, what);
                end(m);
        }
        cr_assert_gt(moved, n, "the rules are met");
}
