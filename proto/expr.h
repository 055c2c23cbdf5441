/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shape expressions: integers over symbols, hash-consed in a pool so that equal expressions have equal ids.
 * Normal form: constants folded, sums and products flattened and ordered by structure (never by symbol name), so that `s0*2+1` and
 * `1+2*s0` are one id. Overflow of 64 bits is an error, never a wrap.
 *
 * An expression is a polynomial over atoms (symbols, //, %, max, min), products expanded, like terms added up:
 *   sum      ADD(ADD(t1, t2), t3)   terms in structural order of their factors, the constant last
 *   term     f, or MUL(CONST c, f) with c other than 0 and 1
 *   factors  MUL(MUL(f1, f2), f3)   in structural order
 *   a // c   terms whose coefficient c divides are taken out, and the constant's quotient; a % c: coefficients are taken modulo c
 *   max      MAX(MAX(a, b), c)      in structural order without repeats, the constant last; min likewise
 * SUB never occurs in it. Division is floor division, the remainder takes the divisor's sign (as in Python).
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/diag.h"
#include "base/macros.h"

enum af_expr_kind {
        AF_EXPR_CONST,
        AF_EXPR_SYMBOL,
        AF_EXPR_ADD,
        AF_EXPR_SUB,
        AF_EXPR_MUL,
        AF_EXPR_FLOORDIV,
        AF_EXPR_MOD,
        AF_EXPR_MAX,
        AF_EXPR_MIN
};

struct af_expr {
        uint32_t kind;   /* enum af_expr_kind */
        uint32_t a, b;   /* operands, for binary kinds */
        int64_t value;   /* CONST: the value; SYMBOL: index into the fragment's symbols */
        uint16_t depth;  /* of the tree; a leaf has 1 */
        uint16_t n_tree; /* nodes written out as a tree, so that walking one is bounded however it is shared */
};

struct af_expr_pool {
        struct af_arena *arena;
        struct af_expr *exprs; /* ids index this; operands always have smaller ids than their users */
        uint32_t n_exprs, cap_exprs;
        uint32_t *table; /* hash-cons index */
        uint32_t table_size;
};

enum { AF_EXPR_E_OVERFLOW = 1, AF_EXPR_E_DIV_ZERO = 2, AF_EXPR_E_SYNTAX = 3, AF_EXPR_E_SYMBOL = 4, AF_EXPR_E_DEPTH = 5 };
#define AF_EXPR_MAX_DEPTH 64   /* DEPTH beyond; also the most terms of a sum and factors of a product */
#define AF_EXPR_MAX_NODES 1024 /* as a tree; DEPTH beyond */

void af_expr_pool_init(struct af_expr_pool *pool, struct af_arena *arena);
int af_expr_const(struct af_expr_pool *pool, int64_t v, uint32_t *ret_id) AF_WARN_UNUSED;
int af_expr_symbol(struct af_expr_pool *pool, uint32_t index, uint32_t *ret_id) AF_WARN_UNUSED;
/* Folds and normalises; a and b are ids of this pool. 0, -ENOMEM, or OVERFLOW, DIV_ZERO, DEPTH. */
int af_expr_binary(struct af_expr_pool *pool, enum af_expr_kind kind, uint32_t a, uint32_t b, uint32_t *ret_id) AF_WARN_UNUSED;
/* True and *ret_v where id is a constant. */
bool af_expr_is_const(const struct af_expr_pool *pool, uint32_t id, int64_t *ret_v);
/* Value for given symbol values. 0, OVERFLOW, DIV_ZERO. */
int af_expr_eval(const struct af_expr_pool *pool, uint32_t id, const int64_t *symbols, int64_t *ret_v) AF_WARN_UNUSED;
/* Bounds from the symbols' ranges; saturate at the int64 limits. */
void af_expr_range(const struct af_expr_pool *pool, uint32_t id, const int64_t *mins, const int64_t *maxs, int64_t *ret_min,
                   int64_t *ret_max);
/*
 * Text grammar: integers, symbol names ([A-Za-z_][A-Za-z0-9_]*, not max or min), + - * // % and parentheses, max(a,b,...), min(a,b,...).
 * names: the n_names symbols. 0, -ENOMEM, or any AF_EXPR_E_*.
 */
int af_expr_parse(struct af_expr_pool *pool, const char *text, const char *const *names, uint32_t n_names, uint32_t *ret_id) AF_WARN_UNUSED;
/* As af_expr_parse over n bytes; order (may be NULL): the indices of names sorted by strcmp, so that a name is found by bisection. */
int af_expr_parse_sorted(struct af_expr_pool *pool, const char *text, size_t n, const char *const *names, const uint32_t *order,
                         uint32_t n_names, uint32_t *ret_id) AF_WARN_UNUSED;
/* Whether s may name a symbol. */
bool af_expr_is_name(const char *s) AF_WARN_UNUSED;
/* What a code means, for a message: "overflows 64 bits". Static text. */
const char *af_expr_error_text(int code);
/* Structural order, the same in every pool: below, equal or above 0. Symbols compare by index. */
int af_expr_compare(const struct af_expr_pool *pool, uint32_t a, uint32_t b);
/* Prints in the same grammar; names NULL: symbols print as s<index>. */
void af_expr_print(const struct af_expr_pool *pool, uint32_t id, const char *const *names, struct af_buf *buf);
