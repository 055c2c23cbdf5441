/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/expr.h"
#include "tests/unit/proto/random.h"

static const char *const names[] = {"s0", "s1", "s2", "batch_size"};
#define N_NAMES 4

static struct af_arena arena;
static struct af_expr_pool pool;

static void set_up(void) {
        af_arena_init(&arena, 0);
        af_expr_pool_init(&pool, &arena);
}

static void tear_down(void) {
        af_arena_deinit(&arena);
}

TestSuite(expr, .init = set_up, .fini = tear_down);

static uint32_t parse(const char *text) {
        uint32_t id;
        int r = af_expr_parse(&pool, text, names, N_NAMES, &id);

        cr_assert_eq(r, 0, "%s: %d", text, r);
        return id;
}

static void expect_same(const char *a, const char *b) {
        cr_assert_eq(parse(a), parse(b), "%s and %s", a, b);
}

static void expect_print(const char *text, const char *printed) {
        struct af_buf buf = AF_BUF_INIT;

        af_expr_print(&pool, parse(text), names, &buf);
        af_buf_put_u8(&buf, 0);
        cr_assert_str_eq((char *)buf.data, printed);
        expect_same(text, printed);
        af_buf_deinit(&buf);
}

static void expect_error(const char *text, int error) {
        uint32_t id = 12345;

        cr_assert_eq(af_expr_parse(&pool, text, names, N_NAMES, &id), error, "%s", text);
        cr_assert_eq(id, 12345);
}

Test(expr, has_one_id_for_equal_shapes) {
        expect_same("s0*2+1", "1+2*s0");
        expect_same("s0+s1+s2", "s2+(s0+s1)");
        expect_same("s0*s1*s2", "s2*(s1*s0)");
        expect_same("s0+s0", "2*s0");
        expect_same("s0-s0", "0");
        expect_same("(s0+1)*(s0-1)", "s0*s0-1");
        expect_same("2*(s0+s1)*3", "6*s0+6*s1");
        expect_same("0*s0", "0");
        expect_same("-(-s0)", "s0");
        expect_same("max(s0,s1,3)", "max(3,max(s1,s0,s1),1)");
        expect_same("min(s0,s0)", "s0");
        expect_same("max(4,7)", "7");
        expect_same("s0//1", "s0");
        expect_same("(4*s0+2)//2", "2*s0+1");
        expect_same("(2*s0+3)//2", "s0+1");
        expect_same("(s0+5)//2", "(s0+1)//2+2");
        expect_same("s0//2//3", "s0//6");
        expect_same("s0%1", "0");
        expect_same("(4*s0+s1+9)%4", "(s1+1)%4");
        expect_same("-7//2", "-4");
        expect_same("-7%2", "1");
        expect_same("7%-2", "-1");
        expect_same(" 1\t+  s0 ", "s0+1");
        expect_same("9223372036854775807", "0-(-9223372036854775807)");
        cr_assert_neq(parse("s0*s1"), parse("s0*s2"));
        cr_assert_neq(parse("s0//2"), parse("s0%2"));
}

Test(expr, prints_what_it_parses) {
        expect_print("1+2*s0", "2*s0+1");
        expect_print("s1-s0", "-1*s0+s1");
        expect_print("s0-2*s1-3", "s0-2*s1-3");
        expect_print("(s0+1)//3*s1", "s1*((s0+1)//3)");
        expect_print("-s0", "-1*s0");
        expect_print("(0-3)//s0", "(-3)//s0");
        expect_print("max(s0+1,4)%s1", "max(s0+1,4)%s1");
        expect_print("min(s1,s0)*2", "2*min(s0,s1)");
        expect_print("-9223372036854775808", "-9223372036854775808");
        expect_print("s0 + -9223372036854775808", "s0+-9223372036854775808");
        expect_print("batch_size", "batch_size");
        struct af_buf buf = AF_BUF_INIT;
        af_expr_print(&pool, parse("s1*batch_size"), NULL, &buf);
        cr_assert_eq(buf.size, 5);
        cr_assert_arr_eq(buf.data, "s1*s3", 5);
        af_buf_deinit(&buf);
}

Test(expr, refuses_what_is_none) {
        static const char *const bad[] = {"",    " ",   "+",    "s0+",   "s0 s1", "(s0", "s0)",   "max()",    "max(s0", "max",
                                          "2s0", "1.5", "s0/2", "s0**2", "s0,s1", "0x1", "s0[0]", "\xc3\xa9", "s0\n+1", "min s0"};

        for (size_t i = 0; i < AF_ARRAY_SIZE(bad); i++)
                expect_error(bad[i], AF_EXPR_E_SYNTAX);
        expect_error("s9", AF_EXPR_E_SYMBOL);
        expect_error("s", AF_EXPR_E_SYMBOL);
        expect_error("s00", AF_EXPR_E_SYMBOL);
        expect_error("s0//0", AF_EXPR_E_DIV_ZERO);
        expect_error("s0%(1-1)", AF_EXPR_E_DIV_ZERO);
        expect_error("9223372036854775808", AF_EXPR_E_OVERFLOW);
        expect_error("9223372036854775807+1", AF_EXPR_E_OVERFLOW);
        expect_error("s0*9223372036854775807*2", AF_EXPR_E_OVERFLOW);
        expect_error("-9223372036854775808//-1", AF_EXPR_E_OVERFLOW);
        expect_error("0--9223372036854775808", AF_EXPR_E_OVERFLOW);
        for (int code = 0; code <= 6; code++)
                cr_assert_not_null(af_expr_error_text(code));
        cr_assert_neq(af_expr_binary(&pool, AF_EXPR_CONST, parse("1"), parse("2"), &(uint32_t){0}), 0);
}

Test(expr, bounds_depth_and_size) {
        char text[4096];
        uint32_t id, next;

        memset(text, '(', 60);
        snprintf(text + 60, sizeof(text) - 60, "s0%.60s", "))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))");
        parse(text);
        memset(text, '(', 2000);
        strcpy(text + 2000, "s0");
        expect_error(text, AF_EXPR_E_DEPTH);
        memset(text, '-', 2000);
        expect_error(text, AF_EXPR_E_DEPTH);
        /* A chain of remainders nests. */
        id = parse("s0");
        int r = 0;
        for (int i = 0; i < 100 && r == 0; i++)
                r = af_expr_binary(&pool, AF_EXPR_MOD, id, parse("s1"), &id);
        cr_assert_eq(r, AF_EXPR_E_DEPTH);
        /* Sharing does not hide a tree of 2^n nodes. */
        id = parse("s0");
        r = 0;
        for (int i = 0; i < 60 && r == 0; i++) {
                r = af_expr_binary(&pool, AF_EXPR_MOD, id, id, &next);
                id = next;
        }
        cr_assert_eq(r, AF_EXPR_E_DEPTH);
        /* More terms than a sum may have. */
        id = parse("s0");
        r = 0;
        for (int i = 0; i < 200 && r == 0; i++)
                r = af_expr_binary(&pool, AF_EXPR_MUL, id, parse("s0+1"), &id);
        cr_assert_eq(r, AF_EXPR_E_DEPTH);
}

Test(expr, finds_names_by_bisection) {
        static const char *const many[] = {"s10", "s1", "b", "s", "a", "s100"};
        static const uint32_t order[] = {4, 2, 3, 1, 0, 5};

        for (uint32_t i = 0; i < 6; i++) {
                uint32_t scanned, found;
                cr_assert_eq(af_expr_parse(&pool, many[i], many, 6, &scanned), 0);
                cr_assert_eq(af_expr_parse_sorted(&pool, many[i], strlen(many[i]), many, order, 6, &found), 0);
                cr_assert_eq(scanned, found);
                cr_assert_eq(pool.exprs[found].value, i);
        }
        uint32_t id;
        static const char *const absent[] = {"s2", "A", "z", "s1000", "s11"};
        for (size_t i = 0; i < AF_ARRAY_SIZE(absent); i++)
                cr_assert_eq(af_expr_parse_sorted(&pool, absent[i], strlen(absent[i]), many, order, 6, &id), AF_EXPR_E_SYMBOL);
        cr_assert_eq(af_expr_parse_sorted(&pool, "s1xx", 2, many, order, 6, &id), 0, "n bounds the text");
}

Test(expr, knows_names) {
        cr_assert(af_expr_is_name("s0"));
        cr_assert(af_expr_is_name("_x"));
        cr_assert(af_expr_is_name("maxi"));
        cr_assert(!af_expr_is_name("max"));
        cr_assert(!af_expr_is_name("min"));
        cr_assert(!af_expr_is_name(""));
        cr_assert(!af_expr_is_name("0s"));
        cr_assert(!af_expr_is_name("a-b"));
        cr_assert(!af_expr_is_name("\xc3\xa9"));
}

Test(expr, does_not_depend_on_what_the_pool_held_before) {
        static const char *const texts[] = {"s2*s0+s1//3", "max(s1%5,s0,s2)", "(s0+s1)*(s2+4)", "min(s2//s1,s1//s2)+s0"};
        struct af_buf first = AF_BUF_INIT, second = AF_BUF_INIT;

        for (int i = 0; i < 4; i++)
                af_expr_print(&pool, parse(texts[i]), names, &first);
        af_expr_pool_init(&pool, &arena);
        parse("s2+s1+s0");
        parse("max(s2,s1%5)");
        parse("(s2+4)//(s1+1)");
        for (int i = 3; i >= 0; i--)
                parse(texts[i]);
        for (int i = 0; i < 4; i++)
                af_expr_print(&pool, parse(texts[i]), names, &second);
        cr_assert_eq(first.size, second.size);
        cr_assert_arr_eq(first.data, second.data, first.size);
        af_buf_deinit(&first);
        af_buf_deinit(&second);
}

Test(expr, evaluation_refuses_overflow_and_division_by_zero) {
        int64_t values[N_NAMES] = {INT64_MAX, 0, 2, 1}, v = 77;

        cr_assert_eq(af_expr_eval(&pool, parse("s0+1"), values, &v), AF_EXPR_E_OVERFLOW);
        cr_assert_eq(af_expr_eval(&pool, parse("s0*s2"), values, &v), AF_EXPR_E_OVERFLOW);
        cr_assert_eq(af_expr_eval(&pool, parse("s0//s1"), values, &v), AF_EXPR_E_DIV_ZERO);
        cr_assert_eq(af_expr_eval(&pool, parse("s0%s1"), values, &v), AF_EXPR_E_DIV_ZERO);
        cr_assert_eq(v, 77);
        cr_assert_eq(af_expr_eval(&pool, parse("s0-s0+s2"), values, &v), 0);
        cr_assert_eq(v, 2);
}

/* What an expression is by the book, in wide integers, beside its id. */
struct both {
        uint32_t id;
        __int128 value;
        bool valid; /* false: a division by zero somewhere */
};

static __int128 floor_div(__int128 a, __int128 b) {
        __int128 q = a / b;

        return q - (q * b != a && (a < 0) != (b < 0));
}

static struct both leaf(struct random *r, const int64_t *values) {
        struct both e = {.valid = true};

        if (random_below(r, 2)) {
                uint32_t symbol = random_below(r, N_NAMES);
                cr_assert_eq(af_expr_symbol(&pool, symbol, &e.id), 0);
                e.value = values[symbol];
        } else {
                e.value = (int64_t)random_below(r, 13) - 4;
                cr_assert_eq(af_expr_const(&pool, (int64_t)e.value, &e.id), 0);
        }
        return e;
}

static struct both combine(struct random *r, struct both a, struct both b) {
        enum af_expr_kind kind = (enum af_expr_kind)(AF_EXPR_ADD + random_below(r, 7));
        struct both e = {.valid = a.valid && b.valid};
        int error = af_expr_binary(&pool, kind, a.id, b.id, &e.id);

        if (error != 0)
                return a; /* constant zero divisor, or too large: keep what there is */
        if ((kind == AF_EXPR_FLOORDIV || kind == AF_EXPR_MOD) && b.value == 0) {
                e.valid = false;
                return e;
        }
        e.value = kind == AF_EXPR_ADD        ? a.value + b.value
                  : kind == AF_EXPR_SUB      ? a.value - b.value
                  : kind == AF_EXPR_MUL      ? a.value * b.value
                  : kind == AF_EXPR_FLOORDIV ? floor_div(a.value, b.value)
                  : kind == AF_EXPR_MOD      ? a.value - floor_div(a.value, b.value) * b.value
                  : kind == AF_EXPR_MAX      ? AF_MAX(a.value, b.value)
                                             : AF_MIN(a.value, b.value);
        return e;
}

Test(expr, normal_form_keeps_values_and_ranges) {
        struct random r = random_make("expr values");
        const int64_t mins[N_NAMES] = {0, 1, -5, 3}, maxs[N_NAMES] = {9, 40, 6, 3};
        uint32_t n_checked = 0;

        for (int round = 0; round < 3000; round++) {
                int64_t values[N_NAMES], v, low, high;
                struct both e[6];
                for (int i = 0; i < N_NAMES; i++)
                        values[i] = mins[i] + random_below(&r, (uint32_t)(maxs[i] - mins[i] + 1));
                for (int i = 0; i < 6; i++)
                        e[i] = leaf(&r, values);
                for (int i = 0; i < 12; i++) {
                        uint32_t at = random_below(&r, 6);
                        struct both c = combine(&r, e[at], e[random_below(&r, 6)]);
                        if (c.value > -1000000 && c.value < 1000000)
                                e[at] = c;
                }
                for (int i = 0; i < 6; i++) {
                        if (!e[i].valid)
                                continue;
                        int error = af_expr_eval(&pool, e[i].id, values, &v);
                        cr_assert_eq(error, 0, "seed %llu", (unsigned long long)r.seed);
                        cr_assert(v == e[i].value, "seed %llu", (unsigned long long)r.seed);
                        af_expr_range(&pool, e[i].id, mins, maxs, &low, &high);
                        cr_assert(low <= v && v <= high, "seed %llu", (unsigned long long)r.seed);
                        struct af_buf text = AF_BUF_INIT;
                        uint32_t again;
                        af_expr_print(&pool, e[i].id, names, &text);
                        af_buf_put_u8(&text, 0);
                        cr_assert_eq(af_expr_parse(&pool, (char *)text.data, names, N_NAMES, &again), 0, "%s", (char *)text.data);
                        cr_assert_eq(again, e[i].id, "%s", (char *)text.data);
                        af_buf_deinit(&text);
                        n_checked++;
                }
        }
        cr_assert_gt(n_checked, 6000);
}

static void expect_range(const char *text, const int64_t *mins, const int64_t *maxs, int64_t low, int64_t high) {
        int64_t got_low, got_high;

        af_expr_range(&pool, parse(text), mins, maxs, &got_low, &got_high);
        cr_assert_eq(got_low, low, "%s", text);
        cr_assert_eq(got_high, high, "%s", text);
}

Test(expr, ranges) {
        const int64_t mins[N_NAMES] = {1, 0, -3, 5}, maxs[N_NAMES] = {10, INT64_MAX, 4, 5};

        expect_range("s0*2+1", mins, maxs, 3, 21);
        expect_range("s1+1", mins, maxs, 1, INT64_MAX);
        expect_range("s1*s1", mins, maxs, 0, INT64_MAX);
        expect_range("s1*s2", mins, maxs, INT64_MIN, INT64_MAX);
        expect_range("s0-s1", mins, maxs, INT64_MIN + 2, 10);
        expect_range("s0//3", mins, maxs, 0, 3);
        expect_range("s0%20", mins, maxs, 1, 10);
        expect_range("s1%8", mins, maxs, 0, 7);
        expect_range("s0//s2", mins, maxs, -10, 10);
        expect_range("s1%(0-8)", mins, maxs, -7, 0);
        expect_range("max(s0,s2)", mins, maxs, 1, 10);
        expect_range("min(s0,s2)", mins, maxs, -3, 4);
        expect_range("batch_size", mins, maxs, 5, 5);
}

Test(expr, survives_any_text) {
        static const char alphabet[] = "s012 +-*/%(),maxin_b9";
        struct random r = random_make("expr text");
        char text[64];

        for (int round = 0; round < 50000; round++) {
                uint32_t n = random_below(&r, sizeof(text)), id;
                for (uint32_t i = 0; i < n; i++)
                        text[i] = alphabet[random_below(&r, sizeof(alphabet) - 1)];
                int error = af_expr_parse_sorted(&pool, text, n, names, NULL, N_NAMES, &id);
                cr_assert_geq(error, 0);
                if (error == 0)
                        cr_assert_lt(id, pool.n_exprs);
        }
}

Test(expr, memory_that_runs_out_is_an_error) {
        struct af_arena small;
        struct af_expr_pool tiny;
        uint32_t id = 0;
        int r = 0;

        af_arena_init(&small, 4096);
        af_expr_pool_init(&tiny, &small);
        for (int64_t i = 0; i < 10000 && r == 0; i++)
                r = af_expr_const(&tiny, i, &id);
        cr_assert_eq(r, -ENOMEM);
        af_arena_deinit(&small);
}
