/* SPDX-License-Identifier: Apache-2.0 */
/* Parsed templates: shared by the lexer (jinja_lex.c), the parser (jinja_parse.c) and the renderer (jinja.c) and by nobody else. */
#pragma once

#include "compiler/codegen/jinja.h"

enum jinja_expr_kind {
        JINJA_STR,
        JINJA_INT,
        JINJA_BOOL,
        JINJA_NAME,
        JINJA_ATTR,   /* a.s */
        JINJA_INDEX,  /* a[b] */
        JINJA_FILTER, /* a|filter(b); b may be NULL */
        JINJA_NOT,
        JINJA_NEG,
        JINJA_AND,
        JINJA_OR,
        JINJA_COND,    /* a if b else c */
        JINJA_COMPARE, /* a, then links in b: JINJA_LINK with op, a (operand) and b (next link) */
        JINJA_LINK,
        JINJA_CONCAT, /* a ~ b */
        JINJA_ARITH,  /* a op b */
};
enum jinja_op {
        JINJA_EQ,
        JINJA_NE,
        JINJA_LT,
        JINJA_LE,
        JINJA_GT,
        JINJA_GE,
        JINJA_IN,
        JINJA_NOT_IN,
        JINJA_ADD,
        JINJA_SUB,
        JINJA_MUL,
        JINJA_FLOORDIV,
        JINJA_MOD
};
enum jinja_filter { JINJA_JOIN, JINJA_UPPER, JINJA_LOWER, JINJA_LENGTH };

struct jinja_expr {
        enum jinja_expr_kind kind;
        uint8_t op; /* enum jinja_op or enum jinja_filter */
        uint32_t line;
        const char *s;
        int64_t i;
        const struct jinja_expr *a, *b, *c;
};

enum jinja_node_kind { JINJA_DATA, JINJA_PRINT, JINJA_IF, JINJA_FOR };
struct jinja_node {
        enum jinja_node_kind kind;
        uint32_t line;
        const struct jinja_node *next;
        const char *data; /* DATA */
        size_t n_data;
        const struct jinja_expr *expr; /* PRINT; IF: the test; FOR: the sequence */
        const char *const *targets;    /* FOR: loop variables; more than one: items are unpacked */
        uint32_t n_targets;
        const struct jinja_node *body, *otherwise; /* elif is an IF in otherwise */
};

struct af_template {
        const char *name;
        const struct jinja_node *root; /* NULL: empty */
};

#define JINJA_MAX_NESTING 64

/* ---- lexer ---- */
enum jinja_token { JINJA_TOKEN_END, JINJA_TOKEN_NAME, JINJA_TOKEN_INT, JINJA_TOKEN_STR, JINJA_TOKEN_OP };

struct jinja_parser {
        struct af_arena *arena;
        struct af_diags *diags;
        const char *name;
        const char *text;
        size_t n, at;
        uint32_t line, depth;
        bool in_block; /* inside {% %}: else {{ }} */
        int error;
        enum jinja_token tok;
        const char *tok_s; /* NAME, STR, OP: text in the arena */
        int64_t tok_i;
};

/*
 * Errors are sticky in p->error: the first one is reported, everything after it does nothing. fail and fail_memory return NULL for the
 * caller to return.
 */
void *af_jinja_fail(struct jinja_parser *p, const char *what);
void *af_jinja_fail_memory(struct jinja_parser *p);
bool af_jinja_is_space(char c);
/* Whether s stands at the cursor. */
bool af_jinja_ahead(const struct jinja_parser *p, const char *s);
/* Moves the cursor by n bytes, counting lines. */
void af_jinja_advance(struct jinja_parser *p, size_t n);
void af_jinja_skip_space(struct jinja_parser *p);
/* Reads the next token of the current tag. After END the cursor is in the data behind the tag. */
void af_jinja_next(struct jinja_parser *p);
bool af_jinja_tok_is(const struct jinja_parser *p, enum jinja_token kind, const char *s);
/* Consumes the current token where it is this one. */
bool af_jinja_accept(struct jinja_parser *p, enum jinja_token kind, const char *s);
