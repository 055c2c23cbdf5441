/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens of templates. The lexer follows Jinja2's: data up to the next `{{`, `{%` or `{#`; inside a tag, the tag's end is looked for
 * before any operator, so that `a -}}` strips and does not subtract.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "compiler/codegen/jinja_ast.h"

void *af_jinja_fail(struct jinja_parser *p, const char *what) {
        if (!p->error) {
                char where[256];
                snprintf(where, sizeof(where), "%s:%u", p->name, p->line);
                af_diag_error(p->diags, where, "%s", what);
                p->error = AF_JINJA_E_SYNTAX;
        }
        return NULL;
}

void *af_jinja_fail_memory(struct jinja_parser *p) {
        if (!p->error)
                p->error = -ENOMEM;
        return NULL;
}

bool af_jinja_is_space(char c) {
        return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x1f);
}
static bool is_digit(char c) {
        return c >= '0' && c <= '9';
}
static bool is_name(char c) {
        return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c);
}

bool af_jinja_ahead(const struct jinja_parser *p, const char *s) {
        size_t n = strlen(s);
        return p->n - p->at >= n && memcmp(p->text + p->at, s, n) == 0;
}

void af_jinja_advance(struct jinja_parser *p, size_t n) {
        for (; n > 0 && p->at < p->n; n--)
                if (p->text[p->at++] == '\n')
                        p->line++;
}

void af_jinja_skip_space(struct jinja_parser *p) {
        while (p->at < p->n && af_jinja_is_space(p->text[p->at]))
                af_jinja_advance(p, 1);
}

/* The end of the current tag: consumed with the white space that its '-' strips. */
static bool take_end(struct jinja_parser *p) {
        const char *end = p->in_block ? "%}" : "}}";
        char minus[] = {'-', end[0], end[1], 0}, plus[] = {'+', end[0], end[1], 0};
        if (af_jinja_ahead(p, minus)) {
                af_jinja_advance(p, 3);
                af_jinja_skip_space(p);
                return true;
        }
        if (p->in_block && af_jinja_ahead(p, plus)) {
                af_jinja_advance(p, 3);
                return true;
        }
        if (af_jinja_ahead(p, end)) {
                af_jinja_advance(p, 2);
                return true;
        }
        return false;
}

static void lex_string(struct jinja_parser *p) {
        char quote = p->text[p->at];
        size_t from = p->at + 1, end = from, n = 0;
        while (end < p->n && p->text[end] != quote)
                end += p->text[end] == '\\' ? 2 : 1;
        if (end >= p->n) {
                af_jinja_fail(p, "string without an end");
                return;
        }
        char *s = af_arena_alloc(p->arena, end - from + 1);
        if (!s) {
                af_jinja_fail_memory(p);
                return;
        }
        for (size_t i = from; i < end; i++) {
                char c = p->text[i];
                if (c == '\\') {
                        static const char from_chars[] = "\\'\"nrt", to_chars[] = "\\'\"\n\r\t";
                        const char *f = p->text[++i] ? strchr(from_chars, p->text[i]) : NULL;
                        if (!f) {
                                af_jinja_fail(p, "unknown escape in a string (known: \\\\ \\' \\\" \\n \\r \\t)");
                                return;
                        }
                        c = to_chars[f - from_chars];
                } else if (c == 0) {
                        af_jinja_fail(p, "zero byte in a string");
                        return;
                }
                s[n++] = c;
        }
        p->tok = JINJA_TOKEN_STR;
        p->tok_s = s;
        af_jinja_advance(p, end + 1 - p->at);
}

static void lex_int(struct jinja_parser *p) {
        int64_t v = 0;
        bool zero = p->text[p->at] == '0';
        while (p->at < p->n && is_digit(p->text[p->at]) && (!zero || p->text[p->at] == '0')) {
                if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, p->text[p->at] - '0', &v)) {
                        af_jinja_fail(p, "integer beyond 64 bits");
                        return;
                }
                p->at++;
        }
        p->tok = JINJA_TOKEN_INT;
        p->tok_i = v;
}

static void lex_op(struct jinja_parser *p) {
        static const char *const ops[] = {"==", "!=", "<=", ">=", "//", "<", ">", "+", "-", "*",
                                          "%",  "~",  "|",  ".",  ",",  "(", ")", "[", "]"};
        for (size_t i = 0; i < AF_ARRAY_SIZE(ops); i++)
                if (af_jinja_ahead(p, ops[i])) {
                        p->tok = JINJA_TOKEN_OP;
                        p->tok_s = ops[i];
                        p->at += strlen(ops[i]);
                        return;
                }
        af_jinja_fail(p, "unexpected character in a tag");
}

/* Reads the next token of the current tag into p->tok. After JINJA_TOKEN_END p->at is in the data behind the tag. */
void af_jinja_next(struct jinja_parser *p) {
        if (p->error)
                return;
        af_jinja_skip_space(p);
        if (p->at >= p->n) {
                af_jinja_fail(p, "tag without an end");
                return;
        }
        char c = p->text[p->at];
        if (take_end(p)) {
                p->tok = JINJA_TOKEN_END;
        } else if (is_digit(c)) {
                lex_int(p);
        } else if (is_name(c)) {
                size_t from = p->at;
                while (p->at < p->n && is_name(p->text[p->at]))
                        p->at++;
                p->tok = JINJA_TOKEN_NAME;
                p->tok_s = af_arena_memdup(p->arena, p->text + from, p->at - from);
                if (!p->tok_s)
                        af_jinja_fail_memory(p);
        } else if (c == '"' || c == '\'') {
                lex_string(p);
        } else {
                lex_op(p);
        }
}

bool af_jinja_tok_is(const struct jinja_parser *p, enum jinja_token kind, const char *s) {
        return !p->error && p->tok == kind && strcmp(p->tok_s, s) == 0;
}

bool af_jinja_accept(struct jinja_parser *p, enum jinja_token kind, const char *s) {
        if (!af_jinja_tok_is(p, kind, s))
                return false;
        af_jinja_next(p);
        return true;
}
