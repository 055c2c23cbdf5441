/* SPDX-License-Identifier: Apache-2.0 */
/* Large and awkward graphs: parsing aside, everything is linear. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "base/clock.h"
#include "compiler/graph/canon.h"
#include "tests/lib/fragment_text.h"

struct big {
        struct af_arena arena;
        struct af_fragment f;
        struct af_fragment_tensor t;
};

static void big_init(struct big *b) {
        const int64_t dims[] = {4, 6};

        af_arena_init(&b->arena, 0);
        cr_assert_eq(af_fragment_init(&b->f, &b->arena), 0);
        b->t = (struct af_fragment_tensor){.dtype = AF_DTYPE_FLOAT32, .rank = 2};
        cr_assert_eq(af_fragment_dims_const(&b->f, dims, 2, &b->t.dims), 0);
}

static void add_input(struct big *b, const char *name) {
        struct af_fragment_input in = {.t = b->t};

        in.t.name = name;
        cr_assert_eq(af_expr_const(&b->f.exprs, 0, &in.offset), 0);
        cr_assert_eq(af_fragment_add_input(&b->f, &in, NULL), 0);
}

/* Node number i makes value v<i>. */
static void add_node(struct big *b, uint32_t i, const char *op, const char *x, const char *y) {
        const char *inputs[] = {x, y};
        struct af_fragment_tensor out = b->t;
        char name[16], value[16];

        snprintf(name, sizeof(name), "n%u", i);
        snprintf(value, sizeof(value), "v%u", i);
        out.name = value;
        struct af_fragment_node n = {.name = name, .op = op, .inputs = inputs, .n_inputs = y ? 2 : 1, .outputs = &out, .n_outputs = 1};
        cr_assert_eq(af_fragment_add_node(&b->f, &n, NULL), 0);
}

static void add_output(struct big *b, const char *value) {
        struct af_fragment_output o = {.value = value};

        cr_assert_eq(af_fragment_add_output(&b->f, &o, NULL), 0);
}

/* Microseconds for graph, check, canonical form and its verification; deinits b. */
static uint64_t run(struct big *b) {
        struct af_buf canon = AF_BUF_INIT;
        struct af_diags diags = {0};
        struct af_graph g;
        uint64_t start = af_clock_cpu_ns();

        int r = af_graph_from_fragment(&g, &b->f, &diags);
        af_test_diags_print(&diags);
        cr_assert_eq(r, 0);
        cr_assert_eq(af_graph_check(&g, NULL), 0);
        cr_assert_eq(af_canon_write(&g, &canon, NULL), 0);
        cr_assert_eq(af_canon_verify(canon.data, canon.size, NULL), 0);
        uint64_t took = (af_clock_cpu_ns() - start) / 1000;
        af_buf_deinit(&canon);
        af_diags_deinit(&diags);
        af_arena_deinit(&b->arena);
        return took;
}

static uint64_t chain(uint32_t n) {
        struct big b;
        char x[16];

        big_init(&b);
        add_input(&b, "x");
        /* Backwards: the last node stands first, so that a recursive visit would go n deep. */
        for (uint32_t i = n; i-- > 0;) {
                snprintf(x, sizeof(x), "v%u", i - 1);
                add_node(&b, i, "abs", i > 0 ? x : "x", NULL);
        }
        snprintf(x, sizeof(x), "v%u", n - 1);
        add_output(&b, x);
        return run(&b);
}

static uint64_t fibonacci(uint32_t n) {
        struct big b;
        char x[16], y[16];

        big_init(&b);
        add_input(&b, "v0");
        add_input(&b, "v1");
        for (uint32_t i = 2; i < n; i++) {
                snprintf(x, sizeof(x), "v%u", i - 1);
                snprintf(y, sizeof(y), "v%u", i - 2);
                add_node(&b, i, "add", x, y);
        }
        snprintf(x, sizeof(x), "v%u", n - 1);
        add_output(&b, x);
        return run(&b);
}

static uint64_t fan_out(uint32_t n) {
        struct big b;
        char x[16];

        big_init(&b);
        add_input(&b, "x");
        for (uint32_t i = 0; i < n; i++) {
                add_node(&b, i, "exp", "x", NULL);
                snprintf(x, sizeof(x), "v%u", i);
                add_output(&b, x);
        }
        return run(&b);
}

/* n inputs updated in place, each read by its own update and by one other node. */
static uint64_t updates(uint32_t n) {
        struct big b;
        char x[16], v[16];

        big_init(&b);
        for (uint32_t i = 0; i < n; i++) {
                snprintf(x, sizeof(x), "x%u", i);
                add_input(&b, x);
                add_node(&b, 2 * i, "neg", x, NULL);
                add_node(&b, 2 * i + 1, "abs", x, NULL);
                snprintf(v, sizeof(v), "v%u", 2 * i);
                struct af_fragment_output o = {.value = v, .alias_of = x};
                cr_assert_eq(af_fragment_add_output(&b.f, &o, NULL), 0);
                snprintf(v, sizeof(v), "v%u", 2 * i + 1);
                add_output(&b, v);
        }
        return run(&b);
}

/* Eight times the nodes may take no more than a few times eight as long; the floor keeps noise out. */
static void check_linear(const char *name, uint64_t (*make)(uint32_t), uint32_t n) {
        uint64_t small = make(n / 8), large = make(n);

        fprintf(stderr, "%s: %u nodes %llu us, %u nodes %llu us\n", name, n / 8, (unsigned long long)small, n, (unsigned long long)large);
        cr_expect_lt(large, 32 * AF_MAX(small, (uint64_t)20000), "%s", name);
}

Test(scale, C32_chain, .timeout = 60) {
        check_linear("chain", chain, 100000);
}
Test(scale, C32_fibonacci, .timeout = 60) {
        check_linear("fibonacci", fibonacci, 40000);
}
Test(scale, C32_fan_out, .timeout = 60) {
        check_linear("fan out", fan_out, 40000);
}
Test(scale, updates, .timeout = 60) {
        check_linear("updates", updates, 20000);
}
Test(scale, limit, .timeout = 60) {
        cr_expect_gt(chain(AF_LIMIT_NODES), 0);
}
