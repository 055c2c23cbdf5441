/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of shape expressions.
 *
 *   sum     = product { ("+" | "-") product }
 *   product = unary { ("*" | "//" | "%") unary }
 *   unary   = "-" unary | integer | name | ("max" | "min") "(" sum { "," sum } ")" | "(" sum ")"
 *
 * Spaces and tabs separate. A minus directly before an integer is part of it, so that INT64_MIN can be written.
 */
#include <inttypes.h>
#include <string.h>

#include "proto/expr.h"

struct parser {
        struct af_expr_pool *pool;
        const char *at, *end;
        const char *const *names;
        const uint32_t *order; /* may be NULL */
        uint32_t n_names;
        uint32_t depth;
};

static int parse_sum(struct parser *p, uint32_t *ret_id);
static int parse_unary(struct parser *p, uint32_t *ret_id);

static bool is_digit(char c) {
        return c >= '0' && c <= '9';
}

static bool is_name_start(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name_char(char c) {
        return is_name_start(c) || is_digit(c);
}

static void skip_space(struct parser *p) {
        while (p->at < p->end && (*p->at == ' ' || *p->at == '\t'))
                p->at++;
}

static bool take(struct parser *p, const char *token) {
        size_t n = strlen(token);

        skip_space(p);
        if ((size_t)(p->end - p->at) < n || memcmp(p->at, token, n) != 0)
                return false;
        p->at += n;
        return true;
}

static int parse_integer(struct parser *p, bool negative, uint32_t *ret_id) {
        int64_t v = 0;

        for (; p->at < p->end && is_digit(*p->at); p->at++) {
                int64_t digit = *p->at - '0';
                if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, negative ? -digit : digit, &v))
                        return AF_EXPR_E_OVERFLOW;
        }
        if (p->at < p->end && is_name_char(*p->at)) /* 2s0 */
                return AF_EXPR_E_SYNTAX;
        return af_expr_const(p->pool, v, ret_id);
}

/* strcmp of the n bytes at s, which hold no zero, with a name. */
static int compare_name(const char *s, size_t n, const char *name) {
        int c = strncmp(s, name, n);

        return c != 0 ? c : name[n] ? -1 : 0;
}

static uint32_t find_name(const struct parser *p, const char *s, size_t n) {
        uint32_t low = 0, high = p->n_names;

        if (!p->order) {
                for (uint32_t i = 0; i < p->n_names; i++)
                        if (compare_name(s, n, p->names[i]) == 0)
                                return i;
                return AF_NONE;
        }
        while (low < high) {
                uint32_t middle = low + (high - low) / 2;
                int c = compare_name(s, n, p->names[p->order[middle]]);
                if (c == 0)
                        return p->order[middle];
                if (c < 0)
                        high = middle;
                else
                        low = middle + 1;
        }
        return AF_NONE;
}

static int parse_call(struct parser *p, enum af_expr_kind kind, uint32_t *ret_id) {
        uint32_t id, next;
        int r;

        if (!take(p, "("))
                return AF_EXPR_E_SYNTAX;
        r = parse_sum(p, &id);
        while (r == 0 && take(p, ",")) {
                r = parse_sum(p, &next);
                if (r == 0)
                        r = af_expr_binary(p->pool, kind, id, next, &id);
        }
        if (r == 0 && !take(p, ")"))
                r = AF_EXPR_E_SYNTAX;
        if (r == 0)
                *ret_id = id;
        return r;
}

static int parse_name(struct parser *p, uint32_t *ret_id) {
        const char *start = p->at;

        while (p->at < p->end && is_name_char(*p->at))
                p->at++;
        size_t n = (size_t)(p->at - start);
        if (n == 3 && (memcmp(start, "max", 3) == 0 || memcmp(start, "min", 3) == 0))
                return parse_call(p, start[1] == 'a' ? AF_EXPR_MAX : AF_EXPR_MIN, ret_id);
        uint32_t index = find_name(p, start, n);
        if (index == AF_NONE)
                return AF_EXPR_E_SYMBOL;
        return af_expr_symbol(p->pool, index, ret_id);
}

static int parse_unary_inner(struct parser *p, uint32_t *ret_id) {
        uint32_t id, zero;
        int r;

        if (take(p, "-")) {
                if (p->at < p->end && is_digit(*p->at))
                        return parse_integer(p, true, ret_id);
                r = parse_unary(p, &id);
                if (r == 0)
                        r = af_expr_const(p->pool, 0, &zero);
                return r != 0 ? r : af_expr_binary(p->pool, AF_EXPR_SUB, zero, id, ret_id);
        }
        if (take(p, "(")) {
                r = parse_sum(p, ret_id);
                return r == 0 && !take(p, ")") ? AF_EXPR_E_SYNTAX : r;
        }
        if (p->at < p->end && is_digit(*p->at))
                return parse_integer(p, false, ret_id);
        if (p->at < p->end && is_name_start(*p->at))
                return parse_name(p, ret_id);
        return AF_EXPR_E_SYNTAX;
}

static int parse_unary(struct parser *p, uint32_t *ret_id) {
        if (p->depth >= AF_EXPR_MAX_DEPTH)
                return AF_EXPR_E_DEPTH;
        p->depth++;
        int r = parse_unary_inner(p, ret_id);
        p->depth--;
        return r;
}

static int parse_product(struct parser *p, uint32_t *ret_id) {
        uint32_t id, next;
        int r = parse_unary(p, &id);

        while (r == 0) {
                enum af_expr_kind kind;
                if (take(p, "//"))
                        kind = AF_EXPR_FLOORDIV;
                else if (take(p, "*"))
                        kind = AF_EXPR_MUL;
                else if (take(p, "%"))
                        kind = AF_EXPR_MOD;
                else
                        break;
                r = parse_unary(p, &next);
                if (r == 0)
                        r = af_expr_binary(p->pool, kind, id, next, &id);
        }
        if (r == 0)
                *ret_id = id;
        return r;
}

static int parse_sum(struct parser *p, uint32_t *ret_id) {
        uint32_t id, next;
        int r = parse_product(p, &id);

        while (r == 0) {
                bool plus = take(p, "+");
                if (!plus && !take(p, "-"))
                        break;
                r = parse_product(p, &next);
                if (r == 0)
                        r = af_expr_binary(p->pool, plus ? AF_EXPR_ADD : AF_EXPR_SUB, id, next, &id);
        }
        if (r == 0)
                *ret_id = id;
        return r;
}

int af_expr_parse_sorted(struct af_expr_pool *pool, const char *text, size_t n, const char *const *names, const uint32_t *order,
                         uint32_t n_names, uint32_t *ret_id) {
        struct parser p = {.pool = pool, .at = text, .end = text + n, .names = names, .order = order, .n_names = n_names};
        uint32_t id;
        int r = parse_sum(&p, &id);

        skip_space(&p);
        if (r == 0 && p.at != p.end)
                r = AF_EXPR_E_SYNTAX;
        if (r == 0)
                *ret_id = id;
        return r;
}

int af_expr_parse(struct af_expr_pool *pool, const char *text, const char *const *names, uint32_t n_names, uint32_t *ret_id) {
        return af_expr_parse_sorted(pool, text, strlen(text), names, NULL, n_names, ret_id);
}

bool af_expr_is_name(const char *s) {
        if (!is_name_start(s[0]) || strcmp(s, "max") == 0 || strcmp(s, "min") == 0)
                return false;
        while (is_name_char(*s))
                s++;
        return *s == 0;
}

const char *af_expr_error_text(int code) {
        switch (code) {
        case AF_EXPR_E_OVERFLOW:
                return "overflows 64 bits";
        case AF_EXPR_E_DIV_ZERO:
                return "divides by zero";
        case AF_EXPR_E_SYNTAX:
                return "is not an expression of integers, symbols, + - * // %, max and min";
        case AF_EXPR_E_SYMBOL:
                return "uses a name that is not among the symbols";
        case AF_EXPR_E_DEPTH:
                return "is too large or nested too deep";
        }
        return "is invalid";
}

static void print_atom(const struct af_expr_pool *pool, uint32_t id, const char *const *names, struct af_buf *buf);

static void print_call(const struct af_expr_pool *pool, uint32_t id, const char *const *names, struct af_buf *buf) {
        const struct af_expr *e = &pool->exprs[id];

        af_buf_put_str(buf, e->kind == AF_EXPR_MAX ? "max(" : "min(");
        af_expr_print(pool, e->a, names, buf);
        af_buf_put_u8(buf, ',');
        af_expr_print(pool, e->b, names, buf);
        af_buf_put_u8(buf, ')');
}

/* Something that binds tighter than any operator. */
static void print_atom(const struct af_expr_pool *pool, uint32_t id, const char *const *names, struct af_buf *buf) {
        const struct af_expr *e = &pool->exprs[id];

        if (e->kind == AF_EXPR_CONST && e->value >= 0) {
                af_buf_printf(buf, "%" PRId64, e->value);
        } else if (e->kind == AF_EXPR_SYMBOL && names) {
                af_buf_put_str(buf, names[e->value]);
        } else if (e->kind == AF_EXPR_SYMBOL) {
                af_buf_printf(buf, "s%" PRId64, e->value);
        } else if (e->kind == AF_EXPR_MAX || e->kind == AF_EXPR_MIN) {
                print_call(pool, id, names, buf);
        } else {
                af_buf_put_u8(buf, '(');
                af_expr_print(pool, id, names, buf);
                af_buf_put_u8(buf, ')');
        }
}

/* A term without its sign; *ret_negative tells it. */
static bool term_is_negative(const struct af_expr_pool *pool, uint32_t id) {
        const struct af_expr *e = &pool->exprs[id];

        if (e->kind == AF_EXPR_MUL)
                e = &pool->exprs[e->a];
        return e->kind == AF_EXPR_CONST && e->value < 0 && e->value != INT64_MIN;
}

static void print_term(const struct af_expr_pool *pool, uint32_t id, bool negate, const char *const *names, struct af_buf *buf) {
        const struct af_expr *e = &pool->exprs[id];

        switch ((enum af_expr_kind)e->kind) {
        case AF_EXPR_CONST:
                af_buf_printf(buf, "%" PRId64, negate ? -e->value : e->value);
                return;
        case AF_EXPR_MUL:
                if (negate && pool->exprs[e->a].value == -1) {
                        print_term(pool, e->b, false, names, buf);
                        return;
                }
                if (pool->exprs[e->a].kind == AF_EXPR_CONST || pool->exprs[e->a].kind == AF_EXPR_MUL)
                        print_term(pool, e->a, negate, names, buf);
                else
                        print_atom(pool, e->a, names, buf);
                af_buf_put_u8(buf, '*');
                if (pool->exprs[e->b].kind == AF_EXPR_MUL)
                        print_term(pool, e->b, false, names, buf);
                else
                        print_atom(pool, e->b, names, buf);
                return;
        case AF_EXPR_FLOORDIV:
        case AF_EXPR_MOD:
                print_atom(pool, e->a, names, buf);
                af_buf_put_str(buf, e->kind == AF_EXPR_MOD ? "%" : "//");
                print_atom(pool, e->b, names, buf);
                return;
        case AF_EXPR_SYMBOL:
        case AF_EXPR_ADD:
        case AF_EXPR_SUB:
        case AF_EXPR_MAX:
        case AF_EXPR_MIN:
                print_atom(pool, id, names, buf);
                return;
        }
}

void af_expr_print(const struct af_expr_pool *pool, uint32_t id, const char *const *names, struct af_buf *buf) {
        const struct af_expr *e = &pool->exprs[id];

        if (e->kind != AF_EXPR_ADD) {
                print_term(pool, id, false, names, buf);
                return;
        }
        bool minus = term_is_negative(pool, e->b);
        af_expr_print(pool, e->a, names, buf);
        af_buf_put_u8(buf, minus ? '-' : '+');
        print_term(pool, e->b, minus, names, buf);
}
