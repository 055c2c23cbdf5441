/* SPDX-License-Identifier: Apache-2.0 */
/* 64-bit compares and indices in 32 bits: the same answers at every edge. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/rewrite/rewrite.h"
#include "tests/lib/maker.h"
#include "tests/lib/random_graph.h"

static const int64_t edges[] = {0,          1,           -1,          99,         100,        101,          -99,        -100,
                                -101,       16777214,    16777215,    16777216,   16777217,   16777218,     -16777214,  -16777215,
                                -16777216,  -16777217,   2147483547,  2147483548, 2147483647, 2147483648,   4294967196, 4294967295,
                                4294967296, -2147483648, -2147483649, INT64_MAX,  INT64_MIN,  INT64_MIN + 1};

static struct af_tensor tensor(enum af_dtype d, const int64_t *dims, uint32_t rank, const void *data) {
        struct af_tensor t = {.dtype = d, .rank = rank, .data = (void *)data};
        int64_t stride = 1;
        for (uint32_t i = rank; i-- > 0; stride *= dims[i]) {
                t.dims[i] = dims[i];
                t.strides[i] = stride;
        }
        return t;
}

static uint32_t count_wide(const struct af_graph *g, enum af_op_class cls) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < g->n_nodes; i++) {
                bool wide = g->nodes[i].n_in > 1 && g->values[g->nodes[i].in[1]].dtype == AF_DTYPE_INT64;
                n += af_op_info(g->nodes[i].op)->cls == cls && wide;
        }
        return n;
}

/* Both graphs on these inputs: every output equal. */
static void same(const struct af_graph *before, const struct af_graph *after, const struct af_tensor *inputs) {
        struct af_tensor *a = calloc(before->n_outputs, sizeof(*a)), *b = calloc(before->n_outputs, sizeof(*b));
        const char *why = "";
        cr_assert_eq(af_reference_run(before, inputs, a, NULL, &why), 0, "%s", why);
        cr_assert_eq(af_reference_run(after, inputs, b, NULL, &why), 0, "%s", why);
        for (uint32_t i = 0; i < before->n_outputs; i++) {
                double error;
                uint64_t first;
                cr_assert_eq(af_tensor_compare(&b[i], &a[i], &error, &first), 0, "output %u, element %llu", i, (unsigned long long)first);
                free(a[i].data);
                free(b[i].data);
        }
        free(a);
        free(b);
}

Test(narrow, compares_with_constants) {
        static const enum af_op ops[] = {AF_OP_EQ, AF_OP_NE, AF_OP_LT, AF_OP_LE, AF_OP_GT, AF_OP_GE};
        static const int64_t dims[] = {AF_ARRAY_SIZE(edges)};
        for (size_t k = 0; k < AF_ARRAY_SIZE(edges); k++) {
                struct maker *m = calloc(1, sizeof(*m));
                struct af_graph before, after;
                struct af_diags diags = {0};
                maker_init(m);
                uint32_t x = maker_input(m, AF_DTYPE_INT64, &(struct maker_shape){1, {AF_ARRAY_SIZE(edges)}});
                double number = (double)edges[k];
                if ((int64_t)(number < 9e18 ? number : 0) != edges[k]) { /* the maker writes doubles */
                        maker_deinit(m);
                        free(m);
                        continue;
                }
                uint32_t c = maker_constant(m, AF_DTYPE_INT64, number);
                for (size_t o = 0; o < AF_ARRAY_SIZE(ops); o++) {
                        maker_output(m, maker_binary(m, ops[o], x, c));
                        maker_output(m, maker_binary(m, ops[o], c, x));
                }
                cr_assert_eq(af_graph_from_fragment(&before, &m->f, NULL), 0);
                cr_assert_eq(af_rewrite_narrow(&before, NULL, &after, NULL), 0);
                cr_assert_eq(af_graph_check(&after, &diags), 0);
                bool small = edges[k] > -16777216 && edges[k] < 16777216;
                cr_assert_eq(count_wide(&after, AF_CLASS_COMPARE) == 0, small, "%lld", (long long)edges[k]);
                struct af_tensor t = tensor(AF_DTYPE_INT64, dims, 1, edges);
                same(&before, &after, &t);
                maker_deinit(m);
                free(m);
        }
}

Test(narrow, an_index_that_is_chosen) {
        static const int64_t data_dims[] = {7}, index_dims[] = {AF_ARRAY_SIZE(edges)};
        static const float data[] = {1, 2, 3, 4, 5, 6, 7};
        struct maker *m = calloc(1, sizeof(*m));
        struct af_graph before, after;
        struct af_diags diags = {0};
        maker_init(m);
        uint32_t x = maker_input(m, AF_DTYPE_FLOAT32, &(struct maker_shape){1, {7}});
        uint32_t t = maker_input(m, AF_DTYPE_INT64, &(struct maker_shape){1, {AF_ARRAY_SIZE(edges)}});
        uint32_t skip = maker_constant(m, AF_DTYPE_INT64, -100);
        uint32_t in[] = {maker_binary(m, AF_OP_NE, t, skip), t, maker_constant(m, AF_DTYPE_INT64, 3)};
        in[0] = maker_node(m, AF_OP_WHERE, in, 3, NULL, 0, AF_DTYPE_INVALID);
        const uint32_t both[] = {x, in[0]};
        struct af_attr axis = {.key = AF_ATTR_AXIS, .i = 0};
        maker_output(m, maker_node(m, AF_OP_GATHER, both, 2, &axis, 1, AF_DTYPE_INVALID));
        cr_assert_eq(m->error, 0, "%s", m->where);
        cr_assert_eq(af_graph_from_fragment(&before, &m->f, NULL), 0);
        cr_assert_eq(af_rewrite_narrow(&before, NULL, &after, NULL), 0);
        cr_assert_eq(af_graph_check(&after, &diags), 0);
        cr_assert_eq(count_wide(&after, AF_CLASS_SELECT) + count_wide(&after, AF_CLASS_GATHER) + count_wide(&after, AF_CLASS_COMPARE), 0);
        const struct af_tensor inputs[] = {tensor(AF_DTYPE_FLOAT32, data_dims, 1, data), tensor(AF_DTYPE_INT64, index_dims, 1, edges)};
        same(&before, &after, inputs);
        maker_deinit(m);
        free(m);
}

Test(narrow, nothing_to_do_copies_nothing) {
        struct maker *m = calloc(1, sizeof(*m));
        struct af_graph before, after;
        maker_init(m);
        uint32_t x = maker_input(m, AF_DTYPE_INT64, &(struct maker_shape){1, {8}});
        maker_output(m, maker_binary(m, AF_OP_LT, x, x));
        cr_assert_eq(af_graph_from_fragment(&before, &m->f, NULL), 0);
        cr_assert_eq(af_rewrite_narrow(&before, NULL, &after, NULL), 0);
        cr_assert_eq(after.nodes, before.nodes);
        maker_deinit(m);
        free(m);
}
