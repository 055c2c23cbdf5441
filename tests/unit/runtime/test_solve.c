/* SPDX-License-Identifier: Apache-2.0 */
/* A form filled in: every expression kind, guards, sizes that overflow, tables that a value would make wrong. */
#include <criterion/criterion.h>
#include <stddef.h>
#include <string.h>

#include "proto/expr.h"
#include "runtime/solve.h"

struct form {
        struct af_bundle_builder b;
        struct af_buf bytes;
        struct af_bundle view;
};

/* One output of n elements whose bytes are expression `last` of the list. */
static void make_form(struct form *f, const struct af_bundle_expr *exprs, uint32_t n) {
        af_bundle_builder_init(&f->b);
        for (uint32_t i = 0; i < n; i++)
                af_bundle_add(&f->b, AF_SECTION_EXPRS, &exprs[i]);
        af_bundle_add(&f->b, AF_SECTION_SYMBOLS, &(struct af_bundle_symbol){.min = 2, .max = 1000, .multiple_of = 2});
        af_bundle_add(&f->b, AF_SECTION_BUFFERS, &(struct af_bundle_buffer){.kind = AF_BUFFER_OUTPUT, .bytes = 4096});
        af_bundle_add(&f->b, AF_SECTION_TENSORS,
                      &(struct af_bundle_tensor){.dtype = AF_DTYPE_INT8, .rank = 1, .dims = {8}, .strides = {1}});
        af_bundle_add(&f->b, AF_SECTION_OUTPUTS, &(struct af_bundle_output){.alias_of = AF_NONE});
        af_bundle_add(&f->b, AF_SECTION_PATCHES,
                      &(struct af_bundle_patch){.section = AF_SECTION_BUFFERS,
                                                .kind = AF_PATCH_I64,
                                                .offset = offsetof(struct af_bundle_buffer, bytes),
                                                .expr = n - 1});
        struct af_bundle_guard guard = {.expr = 0, .node = 7, .min = 4, .why = af_bundle_add_str(&f->b, "too few")};
        af_bundle_add(&f->b, AF_SECTION_GUARDS, &guard);
        f->bytes = (struct af_buf)AF_BUF_INIT;
        cr_assert_eq(af_bundle_finish(&f->b, 0, &f->bytes), 0);
        cr_assert_eq(af_bundle_open(f->bytes.data, f->bytes.size, &f->view, NULL), 0);
        cr_assert(af_bundle_is_form(&f->view));
}

static void drop_form(struct form *f) {
        af_bundle_builder_deinit(&f->b);
        af_buf_deinit(&f->bytes);
}

#define SYMBOL                                                                                                                             \
        { .kind = AF_EXPR_SYMBOL, .a = AF_NONE, .b = AF_NONE }
#define CONST(v)                                                                                                                           \
        { .kind = AF_EXPR_CONST, .a = AF_NONE, .b = AF_NONE, .value = v }

/* Bytes of the output for symbol = value and `symbol KIND constant`; -1 where it is refused. */
static int64_t bytes_for(enum af_expr_kind kind, int64_t constant, int64_t value, int want) {
        const struct af_bundle_expr exprs[] = {SYMBOL, CONST(constant), {.kind = kind, .a = 0, .b = 1}};
        struct form f;
        struct af_solved s;
        const char *why = NULL;
        make_form(&f, exprs, 3);
        int r = af_solve(&f.view, &value, &s, NULL, &why);
        cr_assert_eq(r, want, "%d: %s", r, why ? why : "");
        int64_t bytes = -1;
        if (!r) {
                bytes = (int64_t)((const struct af_bundle_buffer *)af_bundle_at(&s.view, AF_SECTION_BUFFERS, 0))->bytes;
                af_solved_deinit(&s);
        }
        drop_form(&f);
        return bytes;
}

Test(solve, every_kind_of_expression) {
        cr_expect_eq(bytes_for(AF_EXPR_ADD, 100, 10, 0), 110);
        cr_expect_eq(bytes_for(AF_EXPR_SUB, 20, 100, 0), 80);
        cr_expect_eq(bytes_for(AF_EXPR_MUL, 12, 10, 0), 120);
        cr_expect_eq(bytes_for(AF_EXPR_FLOORDIV, 3, 100, 0), 33);
        cr_expect_eq(bytes_for(AF_EXPR_FLOORDIV, -3, 100, AF_SOLVE_E_SIZE), -1); /* -34 bytes */
        cr_expect_eq(bytes_for(AF_EXPR_MOD, 64, 100, 0), 36);
        cr_expect_eq(bytes_for(AF_EXPR_MAX, 50, 10, 0), 50);
        cr_expect_eq(bytes_for(AF_EXPR_MIN, 50, 10, 0), 10);
}

Test(solve, what_cannot_be_is_refused) {
        cr_expect_eq(bytes_for(AF_EXPR_MUL, INT64_MAX, 10, AF_SOLVE_E_SIZE), -1);
        cr_expect_eq(bytes_for(AF_EXPR_MOD, 0, 10, AF_SOLVE_E_SIZE), -1);
        cr_expect_eq(bytes_for(AF_EXPR_FLOORDIV, 0, 10, AF_SOLVE_E_SIZE), -1);
        cr_expect_eq(bytes_for(AF_EXPR_MIN, 7, 10, AF_SOLVE_E_SIZE), -1, "eight elements in seven bytes");
}

Test(solve, guards) {
        cr_expect_eq(bytes_for(AF_EXPR_ADD, 100, 0, AF_SOLVE_E_GUARD), -1);
        cr_expect_eq(bytes_for(AF_EXPR_ADD, 100, 1002, AF_SOLVE_E_GUARD), -1);
        cr_expect_eq(bytes_for(AF_EXPR_ADD, 100, 11, AF_SOLVE_E_GUARD), -1);
        cr_expect_eq(bytes_for(AF_EXPR_ADD, 100, 1000, 0), 1100);
}

Test(solve, what_a_node_wants) {
        const struct af_bundle_expr exprs[] = {SYMBOL, CONST(100), {.kind = AF_EXPR_ADD, .a = 0, .b = 1}};
        const int64_t few = 2, enough = 4;
        struct form f;
        struct af_solved s;
        const char *why = NULL;
        uint32_t which = 0;
        make_form(&f, exprs, 3);
        cr_expect_eq(af_solve(&f.view, &few, &s, &which, &why), AF_SOLVE_E_NODE);
        cr_expect(which == 7 && strcmp(why, "too few") == 0);
        cr_expect_eq(af_solve(&f.view, &enough, &s, &which, &why), 0);
        af_solved_deinit(&s);
        drop_form(&f);
}
