/* SPDX-License-Identifier: Apache-2.0 */
/* Time and size of rewrites of long chains. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "compiler/rewrite/rewrite.h"

struct chain {
        struct af_arena arena;
        struct af_fragment f;
        uint32_t n;
};
static const char *value_name(struct chain *c, uint32_t v) {
        return af_arena_printf(&c->arena, "v%u", v);
}
static uint32_t chain_node(struct chain *c, const char *op, const uint32_t *in, uint32_t n_in, int64_t columns, const struct af_attr *attrs,
                           uint32_t n_attrs) {
        const int64_t dims[] = {4, columns};
        const char *names[2];
        struct af_fragment_tensor out = {.name = value_name(c, c->n), .dtype = AF_DTYPE_FLOAT32, .rank = 2};
        cr_assert_eq(af_fragment_dims_const(&c->f, dims, 2, &out.dims), 0);
        for (uint32_t i = 0; i < n_in; i++)
                names[i] = value_name(c, in[i]);
        struct af_fragment_node n = {.name = out.name,
                                     .op = op,
                                     .inputs = names,
                                     .n_inputs = n_in,
                                     .attrs = attrs,
                                     .n_attrs = n_attrs,
                                     .outputs = &out,
                                     .n_outputs = 1};
        cr_assert_eq(af_fragment_add_node(&c->f, &n, NULL), 0);
        return c->n++;
}
static uint32_t chain_part(struct chain *c, uint32_t x, int64_t start, int64_t stop) {
        static const int64_t steps[] = {1, 1};
        const int64_t starts[] = {0, start}, stops[] = {4, stop};
        struct af_attr attrs[] = {
                {.key = AF_ATTR_STARTS, .n = 2}, {.key = AF_ATTR_STOPS, .n = 2}, {.key = AF_ATTR_STEPS, .ints = steps, .n = 2}};
        cr_assert_eq(af_fragment_dims_const(&c->f, starts, 2, &attrs[0].dims), 0);
        cr_assert_eq(af_fragment_dims_const(&c->f, stops, 2, &attrs[1].dims), 0);
        return chain_node(c, "slice", &x, 1, stop - start, attrs, 3);
}

enum { SLICES, CONCATS, SLICES_AND_SUMS, PLAIN };
static const char *const chain_names[] = {"slices", "concats", "slices and sums", "plain"};

/* n steps, each one to four nodes, on a value [4, columns]. Seconds that the rewrite took. */
static double grow(unsigned kind, uint32_t n) {
        struct chain c = {.n = 0};
        struct af_graph before, after;
        struct af_diags diags = {0};
        int64_t columns = kind == SLICES || kind == SLICES_AND_SUMS ? 2 * (int64_t)n + 8 : 64;
        const int64_t dims[] = {4, columns};
        struct af_attr axis = {.key = AF_ATTR_AXIS, .i = 1};
        af_arena_init(&c.arena, 0);
        cr_assert_eq(af_fragment_init(&c.f, &c.arena), 0);
        struct af_fragment_input in = {.t = {.name = value_name(&c, c.n++), .dtype = AF_DTYPE_FLOAT32, .rank = 2}};
        cr_assert_eq(af_fragment_dims_const(&c.f, dims, 2, &in.t.dims), 0);
        cr_assert_eq(af_expr_const(&c.f.exprs, 0, &in.offset), 0);
        cr_assert_eq(af_fragment_add_input(&c.f, &in, NULL), 0);
        uint32_t x = 0;
        for (uint32_t i = 0; i < n; i++) {
                if (kind == SLICES || kind == SLICES_AND_SUMS) {
                        x = chain_part(&c, x, 1, columns - 1);
                        columns -= 2;
                }
                if (kind == CONCATS) {
                        uint32_t halves[] = {chain_part(&c, x, 32, 64), chain_part(&c, x, 0, 32)};
                        x = chain_node(&c, "concat", halves, 2, 64, &axis, 1);
                }
                if (kind != SLICES)
                        x = chain_node(&c, i % 2 ? "abs" : "neg", &x, 1, columns, NULL, 0);
        }
        struct af_fragment_output out = {.value = value_name(&c, x)};
        cr_assert_eq(af_fragment_add_output(&c.f, &out, NULL), 0);
        cr_assert_eq(af_graph_from_fragment(&before, &c.f, &diags), 0, "%s", diags.n_items ? diags.items[0].what : "");
        uint64_t start = af_clock_cpu_ns();
        cr_assert_eq(af_rewrite(&before, NULL, &after, NULL), 0);
        double s = (double)(af_clock_cpu_ns() - start) * 1e-9;
        cr_assert_eq(af_graph_check(&after, &diags), 0);
        cr_assert(after.n_nodes <= 4 * before.n_nodes + 4096, "%s: %u nodes became %u", chain_names[kind], before.n_nodes, after.n_nodes);
        if (kind == SLICES)
                cr_assert_eq(after.n_nodes, 1);
        if (kind == PLAIN)
                cr_assert_eq(after.nodes, before.nodes);
        af_arena_deinit(&c.arena);
        return s;
}

Test(growth, long_chains_stay_near_linear, .timeout = 120) {
        for (unsigned kind = 0; kind <= PLAIN; kind++) {
                double small = grow(kind, 2500), large = grow(kind, 10000);
                fprintf(stderr, "%s: 2,500 steps %.1f ms, 10,000 steps %.1f ms\n", chain_names[kind], small * 1e3, large * 1e3);
                cr_assert(large < 12 * small + 0.25, "%s: %.3f s, then %.3f s", chain_names[kind], small, large);
        }
}
