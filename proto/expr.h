/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shape expressions: integers over symbols, hash-consed in a pool so that equal expressions have equal ids.
 * Normal form: constants folded, sums and products flattened and ordered by structure (never by symbol name), so that `s0*2+1` and
 * `1+2*s0` are one id. Overflow of 64 bits is an error, never a wrap.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/diag.h"

enum af_expr_kind { AF_EXPR_CONST, AF_EXPR_SYMBOL, AF_EXPR_ADD, AF_EXPR_SUB, AF_EXPR_MUL, AF_EXPR_FLOORDIV, AF_EXPR_MOD, AF_EXPR_MAX, AF_EXPR_MIN };

struct af_expr {
        uint32_t kind;   /* enum af_expr_kind */
        uint32_t a, b;   /* operands, for binary kinds */
        int64_t value;   /* CONST: the value; SYMBOL: index into the fragment's symbols */
};

struct af_expr_pool {
        struct af_arena *arena;
        struct af_expr *exprs; /* ids index this; operands always have smaller ids than their users */
        uint32_t n_exprs, cap_exprs;
        uint32_t *table; /* hash-cons index */
        uint32_t table_size;
};

enum { AF_EXPR_E_OVERFLOW = 1, AF_EXPR_E_DIV_ZERO = 2, AF_EXPR_E_SYNTAX = 3, AF_EXPR_E_SYMBOL = 4, AF_EXPR_E_DEPTH = 5 };
#define AF_EXPR_MAX_DEPTH 64

void af_expr_pool_init(struct af_expr_pool *pool, struct af_arena *arena);
int af_expr_const(struct af_expr_pool *pool, int64_t v, uint32_t *ret_id) AF_WARN_UNUSED;
int af_expr_symbol(struct af_expr_pool *pool, uint32_t index, uint32_t *ret_id) AF_WARN_UNUSED;
/* Folds and normalises. 0, -ENOMEM, or OVERFLOW, DIV_ZERO, DEPTH. */
int af_expr_binary(struct af_expr_pool *pool, enum af_expr_kind kind, uint32_t a, uint32_t b, uint32_t *ret_id) AF_WARN_UNUSED;
/* True and *ret_v where id is a constant. */
bool af_expr_is_const(const struct af_expr_pool *pool, uint32_t id, int64_t *ret_v);
/* Value for given symbol values. 0, OVERFLOW, DIV_ZERO. */
int af_expr_eval(const struct af_expr_pool *pool, uint32_t id, const int64_t *symbols, int64_t *ret_v) AF_WARN_UNUSED;
/* Bounds from the symbols' ranges; saturate at the int64 limits. */
void af_expr_range(const struct af_expr_pool *pool, uint32_t id, const int64_t *mins, const int64_t *maxs, int64_t *ret_min, int64_t *ret_max);
/* Text grammar: integers, symbol names, + - * // % and parentheses, max(a,b), min(a,b). names: the n_names symbols. */
int af_expr_parse(struct af_expr_pool *pool, const char *text, const char *const *names, uint32_t n_names, uint32_t *ret_id) AF_WARN_UNUSED;
/* Prints in the same grammar; names NULL: symbols print as s<index>. */
void af_expr_print(const struct af_expr_pool *pool, uint32_t id, const char *const *names, struct af_buf *buf);
