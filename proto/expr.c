/* SPDX-License-Identifier: Apache-2.0 */
/* The pool and the normal form; text is in expr_text.c. */
#include "proto/expr.h"

#include <errno.h>
#include <string.h>

#define MAX_TERMS      AF_EXPR_MAX_DEPTH
#define MIN_TABLE_SIZE 64u

/* coefficient * product; product AF_NONE: the constant term */
struct term {
        int64_t coefficient;
        uint32_t product;
};
struct poly {
        struct term terms[MAX_TERMS];
        uint32_t n_terms; /* distinct products, coefficients not 0, in no order */
};

void af_expr_pool_init(struct af_expr_pool *pool, struct af_arena *arena) {
        *pool = (struct af_expr_pool){.arena = arena};
}

static uint32_t hash_of(uint32_t kind, uint32_t a, uint32_t b, int64_t value) {
        uint64_t h = (uint64_t)value * 0x9e3779b97f4a7c15u;

        h ^= (h >> 29) + ((uint64_t)a << 32 | b);
        h *= 0xbf58476d1ce4e5b9u;
        h ^= (h >> 32) + kind;
        h *= 0x94d049bb133111ebu;
        return (uint32_t)(h >> 32);
}

static int table_grow(struct af_expr_pool *pool) {
        uint32_t size = pool->table_size ? pool->table_size * 2 : MIN_TABLE_SIZE;
        uint32_t *table = size ? af_arena_calloc(pool->arena, size, sizeof(*table)) : NULL;

        if (!table)
                return -ENOMEM;
        memset(table, 0xff, size * sizeof(*table));
        for (uint32_t id = 0; id < pool->n_exprs; id++) {
                const struct af_expr *e = &pool->exprs[id];
                uint32_t at = hash_of(e->kind, e->a, e->b, e->value) & (size - 1);
                while (table[at] != AF_NONE)
                        at = (at + 1) & (size - 1);
                table[at] = id;
        }
        pool->table = table;
        pool->table_size = size;
        return 0;
}

/* The one id of this node, which is in normal form already. */
static int intern(struct af_expr_pool *pool, uint32_t kind, uint32_t a, uint32_t b, int64_t value, uint32_t *ret_id) {
        struct af_expr e = {.kind = kind, .a = a, .b = b, .value = value, .depth = 1, .n_tree = 1};

        if (kind > AF_EXPR_SYMBOL) {
                uint32_t depth = 1u + AF_MAX(pool->exprs[a].depth, pool->exprs[b].depth);
                uint32_t n_tree = 1u + pool->exprs[a].n_tree + pool->exprs[b].n_tree;
                if (depth > AF_EXPR_MAX_DEPTH || n_tree > AF_EXPR_MAX_NODES)
                        return AF_EXPR_E_DEPTH;
                e.depth = (uint16_t)depth;
                e.n_tree = (uint16_t)n_tree;
        }
        if (pool->n_exprs >= pool->table_size / 2) {
                int r = table_grow(pool);
                if (r < 0)
                        return r;
        }
        uint32_t at = hash_of(kind, a, b, value) & (pool->table_size - 1);
        for (; pool->table[at] != AF_NONE; at = (at + 1) & (pool->table_size - 1)) {
                const struct af_expr *have = &pool->exprs[pool->table[at]];
                if (have->kind == kind && have->a == a && have->b == b && have->value == value) {
                        *ret_id = pool->table[at];
                        return 0;
                }
        }
        int r = af_arena_grow(pool->arena, &pool->exprs, &pool->cap_exprs, pool->n_exprs + 1, sizeof(*pool->exprs));
        if (r < 0)
                return r;
        pool->exprs[pool->n_exprs] = e;
        pool->table[at] = pool->n_exprs;
        *ret_id = pool->n_exprs++;
        return 0;
}

int af_expr_const(struct af_expr_pool *pool, int64_t v, uint32_t *ret_id) {
        return intern(pool, AF_EXPR_CONST, AF_NONE, AF_NONE, v, ret_id);
}

int af_expr_symbol(struct af_expr_pool *pool, uint32_t index, uint32_t *ret_id) {
        return intern(pool, AF_EXPR_SYMBOL, AF_NONE, AF_NONE, index, ret_id);
}

bool af_expr_is_const(const struct af_expr_pool *pool, uint32_t id, int64_t *ret_v) {
        if (pool->exprs[id].kind != AF_EXPR_CONST)
                return false;
        *ret_v = pool->exprs[id].value;
        return true;
}

int af_expr_compare(const struct af_expr_pool *pool, uint32_t a, uint32_t b) {
        /* Equal subtrees have equal ids, so only one path down is ever walked. */
        while (a != b) {
                const struct af_expr *x = &pool->exprs[a], *y = &pool->exprs[b];
                if (x->kind != y->kind)
                        return x->kind < y->kind ? -1 : 1;
                if (x->kind <= AF_EXPR_SYMBOL)
                        return x->value < y->value ? -1 : 1;
                bool first = x->a != y->a;
                a = first ? x->a : x->b;
                b = first ? y->a : y->b;
        }
        return 0;
}

/* Sorts ids by structure; stable order needs nothing more, since equal structures are equal ids. n is small. */
static void sort_ids(const struct af_expr_pool *pool, uint32_t *ids, uint32_t n) {
        for (uint32_t i = 1; i < n; i++) {
                uint32_t id = ids[i], j = i;
                for (; j > 0 && af_expr_compare(pool, ids[j - 1], id) > 0; j--)
                        ids[j] = ids[j - 1];
                ids[j] = id;
        }
}

/* Operands of a left-deep chain of one kind into ids, at most MAX_TERMS (depth bounds the chain). */
static uint32_t chain_operands(const struct af_expr_pool *pool, enum af_expr_kind kind, uint32_t id, uint32_t *ids) {
        uint32_t n = 0;

        for (; pool->exprs[id].kind == (uint32_t)kind; id = pool->exprs[id].a)
                ids[n++] = pool->exprs[id].b;
        ids[n++] = id;
        return n;
}

static int chain_build(struct af_expr_pool *pool, enum af_expr_kind kind, const uint32_t *ids, uint32_t n, uint32_t *ret_id) {
        uint32_t id = ids[0];

        for (uint32_t i = 1; i < n; i++) {
                int r = intern(pool, kind, id, ids[i], 0, &id);
                if (r != 0)
                        return r;
        }
        *ret_id = id;
        return 0;
}

static int poly_add(struct poly *p, int64_t coefficient, uint32_t product) {
        uint32_t i = 0;

        if (coefficient == 0)
                return 0;
        while (i < p->n_terms && p->terms[i].product != product)
                i++;
        if (i == p->n_terms) {
                if (p->n_terms == MAX_TERMS)
                        return AF_EXPR_E_DEPTH;
                p->terms[p->n_terms++] = (struct term){coefficient, product};
                return 0;
        }
        if (__builtin_add_overflow(p->terms[i].coefficient, coefficient, &p->terms[i].coefficient))
                return AF_EXPR_E_OVERFLOW;
        if (p->terms[i].coefficient == 0)
                p->terms[i] = p->terms[--p->n_terms];
        return 0;
}

static struct term term_of(const struct af_expr_pool *pool, uint32_t id) {
        const struct af_expr *e = &pool->exprs[id];

        if (e->kind == AF_EXPR_CONST)
                return (struct term){e->value, AF_NONE};
        if (e->kind == AF_EXPR_MUL && pool->exprs[e->a].kind == AF_EXPR_CONST)
                return (struct term){pool->exprs[e->a].value, e->b};
        return (struct term){1, id};
}

/* Adds scale * id to p. */
static int poly_add_expr(const struct af_expr_pool *pool, struct poly *p, int64_t scale, uint32_t id) {
        uint32_t ids[MAX_TERMS + 1];
        uint32_t n = chain_operands(pool, AF_EXPR_ADD, id, ids);

        for (uint32_t i = 0; i < n; i++) {
                struct term t = term_of(pool, ids[i]);
                if (__builtin_mul_overflow(t.coefficient, scale, &t.coefficient))
                        return AF_EXPR_E_OVERFLOW;
                int r = poly_add(p, t.coefficient, t.product);
                if (r != 0)
                        return r;
        }
        return 0;
}

static int term_build(struct af_expr_pool *pool, const struct term *t, uint32_t *ret_id) {
        uint32_t c;

        if (t->product != AF_NONE && t->coefficient == 1) {
                *ret_id = t->product;
                return 0;
        }
        int r = af_expr_const(pool, t->coefficient, &c);
        if (r != 0)
                return r;
        if (t->product == AF_NONE) {
                *ret_id = c;
                return 0;
        }
        return intern(pool, AF_EXPR_MUL, c, t->product, 0, ret_id);
}

static bool term_before(const struct af_expr_pool *pool, const struct term *a, const struct term *b) {
        if (a->product == AF_NONE || b->product == AF_NONE)
                return b->product == AF_NONE && a->product != AF_NONE;
        return af_expr_compare(pool, a->product, b->product) < 0;
}

static int poly_build(struct af_expr_pool *pool, struct poly *p, uint32_t *ret_id) {
        uint32_t ids[MAX_TERMS];

        for (uint32_t i = 1; i < p->n_terms; i++) {
                struct term t = p->terms[i];
                uint32_t j = i;
                for (; j > 0 && term_before(pool, &t, &p->terms[j - 1]); j--)
                        p->terms[j] = p->terms[j - 1];
                p->terms[j] = t;
        }
        for (uint32_t i = 0; i < p->n_terms; i++) {
                int r = term_build(pool, &p->terms[i], &ids[i]);
                if (r != 0)
                        return r;
        }
        if (p->n_terms == 0)
                return af_expr_const(pool, 0, ret_id);
        return chain_build(pool, AF_EXPR_ADD, ids, p->n_terms, ret_id);
}

/* Product of two factor chains, either may be AF_NONE (1). */
static int product_merge(struct af_expr_pool *pool, uint32_t a, uint32_t b, uint32_t *ret_id) {
        uint32_t ids[2 * (MAX_TERMS + 1)];

        if (a == AF_NONE || b == AF_NONE) {
                *ret_id = a == AF_NONE ? b : a;
                return 0;
        }
        uint32_t n = chain_operands(pool, AF_EXPR_MUL, a, ids);
        n += chain_operands(pool, AF_EXPR_MUL, b, ids + n);
        if (n > MAX_TERMS)
                return AF_EXPR_E_DEPTH;
        sort_ids(pool, ids, n);
        return chain_build(pool, AF_EXPR_MUL, ids, n, ret_id);
}

static int multiply(struct af_expr_pool *pool, uint32_t a, uint32_t b, uint32_t *ret_id) {
        struct poly product = {0};
        uint32_t as[MAX_TERMS + 1], bs[MAX_TERMS + 1];
        uint32_t n_as = chain_operands(pool, AF_EXPR_ADD, a, as), n_bs = chain_operands(pool, AF_EXPR_ADD, b, bs);

        for (uint32_t i = 0; i < n_as; i++)
                for (uint32_t j = 0; j < n_bs; j++) {
                        struct term x = term_of(pool, as[i]), y = term_of(pool, bs[j]);
                        int64_t coefficient;
                        uint32_t merged;
                        if (__builtin_mul_overflow(x.coefficient, y.coefficient, &coefficient))
                                return AF_EXPR_E_OVERFLOW;
                        if (coefficient == 0)
                                continue;
                        int r = product_merge(pool, x.product, y.product, &merged);
                        if (r == 0)
                                r = poly_add(&product, coefficient, merged);
                        if (r != 0)
                                return r;
                }
        return poly_build(pool, &product, ret_id);
}

static int floor_div(int64_t a, int64_t b, int64_t *ret_v) {
        if (b == 0)
                return AF_EXPR_E_DIV_ZERO;
        if (a == INT64_MIN && b == -1)
                return AF_EXPR_E_OVERFLOW;
        *ret_v = a / b - (a % b != 0 && (a < 0) != (b < 0));
        return 0;
}

static int floor_mod(int64_t a, int64_t b, int64_t *ret_v) {
        if (b == 0)
                return AF_EXPR_E_DIV_ZERO;
        if (b == -1) { /* INT64_MIN % -1 traps */
                *ret_v = 0;
                return 0;
        }
        int64_t m = a % b;
        *ret_v = m != 0 && (m < 0) != (b < 0) ? m + b : m;
        return 0;
}

/* rest // c, where c divides none of rest's coefficients. */
static int divide_rest(struct af_expr_pool *pool, uint32_t rest, int64_t c, uint32_t *ret_id) {
        const struct af_expr *e = &pool->exprs[rest];
        int64_t v;
        uint32_t divisor;
        int r;

        if (e->kind == AF_EXPR_CONST) {
                r = floor_div(e->value, c, &v);
                return r != 0 ? r : af_expr_const(pool, v, ret_id);
        }
        /* (x // d) // c is x // (d*c) for positive d and c */
        if (e->kind == AF_EXPR_FLOORDIV && c > 0 && af_expr_is_const(pool, e->b, &v) && v > 0 && !__builtin_mul_overflow(v, c, &v)) {
                c = v;
                rest = e->a;
        }
        r = af_expr_const(pool, c, &divisor);
        return r != 0 ? r : intern(pool, AF_EXPR_FLOORDIV, rest, divisor, 0, ret_id);
}

/* a // c: what c divides leaves the division, so that (2*s0 + 3) // 2 is s0 + 1. */
static int divide_const(struct af_expr_pool *pool, uint32_t a, int64_t c, uint32_t *ret_id) {
        struct poly all = {0}, whole = {0}, rest = {0};
        uint32_t rest_id;

        if (c == 0)
                return AF_EXPR_E_DIV_ZERO;
        int r = poly_add_expr(pool, &all, 1, a);
        for (uint32_t i = 0; i < all.n_terms && r == 0; i++) {
                struct term t = all.terms[i];
                int64_t q, m;
                r = floor_div(t.coefficient, c, &q);
                if (r == 0)
                        r = floor_mod(t.coefficient, c, &m);
                /* Of the constant the whole quotient leaves; of a symbol's coefficient all or nothing, or -(-n // 16) would turn into a
                 * riddle. */
                if (r == 0 && m != 0 && t.product != AF_NONE)
                        q = 0, m = t.coefficient;
                if (r == 0)
                        r = poly_add(&whole, q, t.product);
                if (r == 0)
                        r = poly_add(&rest, m, t.product);
        }
        if (r == 0)
                r = poly_build(pool, &rest, &rest_id);
        if (r == 0)
                r = divide_rest(pool, rest_id, c, &rest_id);
        if (r == 0)
                r = poly_add_expr(pool, &whole, 1, rest_id);
        return r != 0 ? r : poly_build(pool, &whole, ret_id);
}

/* a % c: every coefficient modulo c. */
static int modulo_const(struct af_expr_pool *pool, uint32_t a, int64_t c, uint32_t *ret_id) {
        struct poly all = {0}, rest = {0};
        uint32_t rest_id, divisor;
        int64_t v;

        if (c == 0)
                return AF_EXPR_E_DIV_ZERO;
        int r = poly_add_expr(pool, &all, 1, a);
        for (uint32_t i = 0; i < all.n_terms && r == 0; i++) {
                r = floor_mod(all.terms[i].coefficient, c, &v);
                if (r == 0)
                        r = poly_add(&rest, v, all.terms[i].product);
        }
        if (r == 0)
                r = poly_build(pool, &rest, &rest_id);
        if (r != 0)
                return r;
        if (af_expr_is_const(pool, rest_id, &v)) {
                *ret_id = rest_id;
                return 0;
        }
        r = af_expr_const(pool, c, &divisor);
        return r != 0 ? r : intern(pool, AF_EXPR_MOD, rest_id, divisor, 0, ret_id);
}

static int extremum(struct af_expr_pool *pool, enum af_expr_kind kind, uint32_t a, uint32_t b, uint32_t *ret_id) {
        uint32_t ids[2 * (MAX_TERMS + 1)], n_kept = 0;
        uint32_t n = chain_operands(pool, kind, a, ids);
        bool has_const = false;
        int64_t limit = 0, v;

        n += chain_operands(pool, kind, b, ids + n);
        sort_ids(pool, ids, n);
        for (uint32_t i = 0; i < n; i++)
                if (af_expr_is_const(pool, ids[i], &v)) {
                        limit = !has_const ? v : kind == AF_EXPR_MAX ? AF_MAX(limit, v) : AF_MIN(limit, v);
                        has_const = true;
                } else if (n_kept == 0 || ids[n_kept - 1] != ids[i]) {
                        ids[n_kept++] = ids[i];
                }
        if (has_const) {
                int r = af_expr_const(pool, limit, &ids[n_kept]);
                if (r != 0)
                        return r;
                n_kept++;
        }
        return chain_build(pool, kind, ids, n_kept, ret_id);
}

int af_expr_binary(struct af_expr_pool *pool, enum af_expr_kind kind, uint32_t a, uint32_t b, uint32_t *ret_id) {
        struct poly sum = {0};
        int64_t c;
        int r;

        switch (kind) {
        case AF_EXPR_ADD:
        case AF_EXPR_SUB:
                r = poly_add_expr(pool, &sum, 1, a);
                if (r == 0)
                        r = poly_add_expr(pool, &sum, kind == AF_EXPR_SUB ? -1 : 1, b);
                return r != 0 ? r : poly_build(pool, &sum, ret_id);
        case AF_EXPR_MUL:
                return multiply(pool, a, b, ret_id);
        case AF_EXPR_FLOORDIV:
                return af_expr_is_const(pool, b, &c) ? divide_const(pool, a, c, ret_id) : intern(pool, kind, a, b, 0, ret_id);
        case AF_EXPR_MOD:
                return af_expr_is_const(pool, b, &c) ? modulo_const(pool, a, c, ret_id) : intern(pool, kind, a, b, 0, ret_id);
        case AF_EXPR_MAX:
        case AF_EXPR_MIN:
                return extremum(pool, kind, a, b, ret_id);
        case AF_EXPR_CONST:
        case AF_EXPR_SYMBOL:
                break;
        }
        return AF_EXPR_E_SYNTAX;
}

int af_expr_eval(const struct af_expr_pool *pool, uint32_t id, const int64_t *symbols, int64_t *ret_v) {
        const struct af_expr *e = &pool->exprs[id];
        int64_t a, b, v = 0;
        bool wraps = false;
        int r;

        if (e->kind <= AF_EXPR_SYMBOL) {
                *ret_v = e->kind == AF_EXPR_CONST ? e->value : symbols[e->value];
                return 0;
        }
        if ((r = af_expr_eval(pool, e->a, symbols, &a)) != 0 || (r = af_expr_eval(pool, e->b, symbols, &b)) != 0)
                return r;
        switch ((enum af_expr_kind)e->kind) {
        case AF_EXPR_ADD:
                wraps = __builtin_add_overflow(a, b, &v);
                break;
        case AF_EXPR_SUB:
                wraps = __builtin_sub_overflow(a, b, &v);
                break;
        case AF_EXPR_MUL:
                wraps = __builtin_mul_overflow(a, b, &v);
                break;
        case AF_EXPR_FLOORDIV:
                r = floor_div(a, b, &v);
                break;
        case AF_EXPR_MOD:
                r = floor_mod(a, b, &v);
                break;
        case AF_EXPR_MAX:
                v = AF_MAX(a, b);
                break;
        case AF_EXPR_MIN:
                v = AF_MIN(a, b);
                break;
        case AF_EXPR_CONST:
        case AF_EXPR_SYMBOL:
                break;
        }
        if (wraps)
                return AF_EXPR_E_OVERFLOW;
        if (r == 0)
                *ret_v = v;
        return r;
}
