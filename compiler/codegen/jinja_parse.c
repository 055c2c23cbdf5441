/* SPDX-License-Identifier: Apache-2.0 */
/* Template text to tree: expressions in Jinja2's precedence, then statements. */
#include <errno.h>
#include <string.h>

#include "compiler/codegen/jinja_ast.h"

static struct jinja_expr *new_expr(struct jinja_parser *p, enum jinja_expr_kind kind, const struct jinja_expr *a,
                                   const struct jinja_expr *b) {
        if (p->error)
                return NULL;
        struct jinja_expr *e = af_arena_alloc(p->arena, sizeof(*e));
        if (!e)
                return af_jinja_fail_memory(p);
        *e = (struct jinja_expr){.kind = kind, .line = p->line, .a = a, .b = b};
        return e;
}

static bool is_keyword(const char *s) {
        static const char *const words[] = {"and",  "or",  "not",    "in",    "is",   "if",   "else",
                                            "elif", "for", "endfor", "endif", "none", "None", "recursive"};
        for (size_t i = 0; i < AF_ARRAY_SIZE(words); i++)
                if (strcmp(s, words[i]) == 0)
                        return true;
        return false;
}

/* Attributes that Jinja2 would find on Python's own dict: they would not mean the key. */
static bool is_dict_method(const char *s) {
        static const char *const words[] = {"clear", "copy",    "fromkeys",   "get",    "items", "keys",
                                            "pop",   "popitem", "setdefault", "update", "values"};
        for (size_t i = 0; i < AF_ARRAY_SIZE(words); i++)
                if (strcmp(s, words[i]) == 0)
                        return true;
        return strncmp(s, "__", 2) == 0;
}

static struct jinja_expr *parse_expr(struct jinja_parser *p);

static struct jinja_expr *parse_primary(struct jinja_parser *p) {
        struct jinja_expr *e = NULL;
        if (p->error)
                return NULL;
        if (p->tok == JINJA_TOKEN_STR || p->tok == JINJA_TOKEN_INT) {
                e = new_expr(p, p->tok == JINJA_TOKEN_STR ? JINJA_STR : JINJA_INT, NULL, NULL);
        } else if (p->tok == JINJA_TOKEN_NAME) {
                bool yes = strcmp(p->tok_s, "true") == 0 || strcmp(p->tok_s, "True") == 0;
                bool no = strcmp(p->tok_s, "false") == 0 || strcmp(p->tok_s, "False") == 0;
                if (is_keyword(p->tok_s))
                        return af_jinja_fail(p, "a keyword where a value was expected");
                p->tok_i = yes;
                e = new_expr(p, yes || no ? JINJA_BOOL : JINJA_NAME, NULL, NULL);
        } else if (af_jinja_accept(p, JINJA_TOKEN_OP, "(")) {
                e = parse_expr(p);
                if (!p->error && !af_jinja_accept(p, JINJA_TOKEN_OP, ")"))
                        return af_jinja_fail(p, "expected )");
                return p->error ? NULL : e;
        } else {
                return af_jinja_fail(p, "expected an expression");
        }
        if (e) {
                e->s = p->tok_s;
                e->i = p->tok_i;
                af_jinja_next(p);
        }
        return e;
}

static struct jinja_expr *parse_postfix(struct jinja_parser *p, struct jinja_expr *e) {
        while (!p->error) {
                if (af_jinja_accept(p, JINJA_TOKEN_OP, ".")) {
                        if (p->error || p->tok != JINJA_TOKEN_NAME)
                                return af_jinja_fail(p, "expected a name after the dot");
                        if (is_dict_method(p->tok_s))
                                return af_jinja_fail(p, "this attribute is a method in Jinja2: write x['name']");
                        e = new_expr(p, JINJA_ATTR, e, NULL);
                        if (e)
                                e->s = p->tok_s;
                        af_jinja_next(p);
                } else if (af_jinja_accept(p, JINJA_TOKEN_OP, "[")) {
                        struct jinja_expr *index = parse_expr(p);
                        e = new_expr(p, JINJA_INDEX, e, index);
                        if (!p->error && !af_jinja_accept(p, JINJA_TOKEN_OP, "]"))
                                return af_jinja_fail(p, "expected ]");
                } else {
                        break;
                }
        }
        return e;
}

static struct jinja_expr *parse_filters(struct jinja_parser *p, struct jinja_expr *e) {
        static const char *const names[] = {
                [JINJA_JOIN] = "join", [JINJA_UPPER] = "upper", [JINJA_LOWER] = "lower", [JINJA_LENGTH] = "length"};
        while (af_jinja_accept(p, JINJA_TOKEN_OP, "|")) {
                uint8_t f = 0;
                if (p->error || p->tok != JINJA_TOKEN_NAME)
                        return af_jinja_fail(p, "expected a filter");
                while (f < AF_ARRAY_SIZE(names) && strcmp(names[f], p->tok_s) != 0)
                        f++;
                if (f == AF_ARRAY_SIZE(names))
                        return af_jinja_fail(p, "unknown filter (known: join, upper, lower, length)");
                af_jinja_next(p);
                struct jinja_expr *arg = NULL;
                if (af_jinja_accept(p, JINJA_TOKEN_OP, "(")) {
                        if (f == JINJA_JOIN && !af_jinja_tok_is(p, JINJA_TOKEN_OP, ")"))
                                arg = parse_expr(p);
                        if (!p->error && !af_jinja_accept(p, JINJA_TOKEN_OP, ")"))
                                return af_jinja_fail(p, "expected )");
                }
                e = new_expr(p, JINJA_FILTER, e, arg);
                if (e)
                        e->op = f;
        }
        return e;
}

static struct jinja_expr *parse_unary(struct jinja_parser *p, bool with_filter) {
        struct jinja_expr *e;
        if (++p->depth > JINJA_MAX_NESTING)
                return af_jinja_fail(p, "nested too deeply");
        if (af_jinja_accept(p, JINJA_TOKEN_OP, "-"))
                e = new_expr(p, JINJA_NEG, parse_unary(p, false), NULL);
        else
                e = parse_primary(p);
        e = parse_postfix(p, e);
        if (with_filter)
                e = parse_filters(p, e);
        p->depth--;
        return p->error ? NULL : e;
}

static struct jinja_expr *arith(struct jinja_parser *p, enum jinja_op op, struct jinja_expr *a, struct jinja_expr *b) {
        struct jinja_expr *e = new_expr(p, JINJA_ARITH, a, b);
        if (e)
                e->op = op;
        return e;
}

static struct jinja_expr *parse_product(struct jinja_parser *p) {
        struct jinja_expr *e = parse_unary(p, true);
        while (!p->error) {
                if (af_jinja_accept(p, JINJA_TOKEN_OP, "*"))
                        e = arith(p, JINJA_MUL, e, parse_unary(p, true));
                else if (af_jinja_accept(p, JINJA_TOKEN_OP, "//"))
                        e = arith(p, JINJA_FLOORDIV, e, parse_unary(p, true));
                else if (af_jinja_accept(p, JINJA_TOKEN_OP, "%"))
                        e = arith(p, JINJA_MOD, e, parse_unary(p, true));
                else
                        break;
        }
        return e;
}

static struct jinja_expr *parse_concat(struct jinja_parser *p) {
        struct jinja_expr *e = parse_product(p);
        while (af_jinja_accept(p, JINJA_TOKEN_OP, "~"))
                e = new_expr(p, JINJA_CONCAT, e, parse_product(p));
        return e;
}

static struct jinja_expr *parse_sum(struct jinja_parser *p) {
        struct jinja_expr *e = parse_concat(p);
        while (!p->error) {
                if (af_jinja_accept(p, JINJA_TOKEN_OP, "+"))
                        e = arith(p, JINJA_ADD, e, parse_concat(p));
                else if (af_jinja_accept(p, JINJA_TOKEN_OP, "-"))
                        e = arith(p, JINJA_SUB, e, parse_concat(p));
                else
                        break;
        }
        return e;
}

static bool accept_compare(struct jinja_parser *p, enum jinja_op *ret_op) {
        static const char *const ops[] = {
                [JINJA_EQ] = "==", [JINJA_NE] = "!=", [JINJA_LT] = "<", [JINJA_LE] = "<=", [JINJA_GT] = ">", [JINJA_GE] = ">="};
        for (unsigned i = 0; i < AF_ARRAY_SIZE(ops); i++)
                if (af_jinja_accept(p, JINJA_TOKEN_OP, ops[i])) {
                        *ret_op = i;
                        return true;
                }
        if (af_jinja_accept(p, JINJA_TOKEN_NAME, "in")) {
                *ret_op = JINJA_IN;
                return true;
        }
        if (!af_jinja_accept(p, JINJA_TOKEN_NAME, "not"))
                return false;
        if (!af_jinja_accept(p, JINJA_TOKEN_NAME, "in"))
                af_jinja_fail(p, "expected in after not");
        *ret_op = JINJA_NOT_IN;
        return true;
}

static struct jinja_expr *parse_compare(struct jinja_parser *p) {
        struct jinja_expr *e = parse_sum(p), *last = NULL;
        enum jinja_op op;
        while (!p->error && accept_compare(p, &op)) {
                struct jinja_expr *link = new_expr(p, JINJA_LINK, parse_sum(p), NULL);
                if (!link)
                        return NULL;
                link->op = op;
                if (last)
                        last->b = link;
                else
                        e = new_expr(p, JINJA_COMPARE, e, link);
                last = link;
        }
        return e;
}

static struct jinja_expr *parse_not(struct jinja_parser *p) {
        if (++p->depth > JINJA_MAX_NESTING)
                return af_jinja_fail(p, "nested too deeply");
        struct jinja_expr *e;
        if (af_jinja_accept(p, JINJA_TOKEN_NAME, "not"))
                e = new_expr(p, JINJA_NOT, parse_not(p), NULL);
        else
                e = parse_compare(p);
        p->depth--;
        return e;
}

static struct jinja_expr *parse_and(struct jinja_parser *p) {
        struct jinja_expr *e = parse_not(p);
        while (af_jinja_accept(p, JINJA_TOKEN_NAME, "and"))
                e = new_expr(p, JINJA_AND, e, parse_not(p));
        return e;
}

static struct jinja_expr *parse_or(struct jinja_parser *p) {
        struct jinja_expr *e = parse_and(p);
        while (af_jinja_accept(p, JINJA_TOKEN_NAME, "or"))
                e = new_expr(p, JINJA_OR, e, parse_and(p));
        return e;
}

static struct jinja_expr *parse_expr(struct jinja_parser *p) {
        if (++p->depth > JINJA_MAX_NESTING)
                return af_jinja_fail(p, "nested too deeply");
        struct jinja_expr *e = parse_or(p);
        while (af_jinja_accept(p, JINJA_TOKEN_NAME, "if")) {
                struct jinja_expr *test = parse_or(p), *cond = new_expr(p, JINJA_COND, e, test);
                if (!p->error && !af_jinja_accept(p, JINJA_TOKEN_NAME, "else"))
                        return af_jinja_fail(p, "an inline if needs an else");
                struct jinja_expr *otherwise = parse_expr(p);
                if (p->error)
                        return NULL;
                cond->c = otherwise;
                e = cond;
        }
        p->depth--;
        return p->error ? NULL : e;
}

/* ---- statements ---- */

struct list {
        struct jinja_node *first, *last;
};

static struct jinja_node *append(struct jinja_parser *p, struct list *l, enum jinja_node_kind kind) {
        struct jinja_node *node = af_arena_alloc(p->arena, sizeof(*node));
        if (!node)
                return af_jinja_fail_memory(p);
        *node = (struct jinja_node){.kind = kind, .line = p->line};
        if (l->last)
                l->last->next = node;
        else
                l->first = node;
        l->last = node;
        return node;
}

static void expect_end(struct jinja_parser *p) {
        if (!p->error && p->tok != JINJA_TOKEN_END)
                af_jinja_fail(p, "expected the end of the tag");
}

static void skip_comment(struct jinja_parser *p) {
        size_t from = p->at;
        const char *close = memmem(p->text + p->at, p->n - p->at, "#}", 2);
        af_jinja_advance(p, close ? (size_t)(close - p->text) - p->at : p->n - p->at);
        if (p->at >= p->n) {
                af_jinja_fail(p, "comment without an end");
                return;
        }
        bool strip = p->at > from && p->text[p->at - 1] == '-';
        af_jinja_advance(p, 2);
        if (strip)
                af_jinja_skip_space(p);
}

/* Where the next tag opens, or the end of the text. */
static size_t next_tag(const struct jinja_parser *p) {
        const char *end = p->text + p->n, *at = memchr(p->text + p->at, '{', p->n - p->at);
        while (at && !(at + 1 < end && (at[1] == '{' || at[1] == '%' || at[1] == '#')))
                at = memchr(at + 1, '{', (size_t)(end - at) - 1);
        return at ? (size_t)(at - p->text) : p->n;
}

/* Appends the data before the next tag and consumes the tag's opening. Returns '{', '%' or '#', or 0 at the end of the text. */
static char take_data(struct jinja_parser *p, struct list *l) {
        size_t from = p->at, end;
        uint32_t line = p->line;
        af_jinja_advance(p, next_tag(p) - p->at);
        end = p->at;
        char open = p->at < p->n ? p->text[p->at + 1] : 0;
        if (open) {
                af_jinja_advance(p, 2);
                if (p->at < p->n && (p->text[p->at] == '-' || p->text[p->at] == '+')) {
                        while (p->text[p->at] == '-' && end > from && af_jinja_is_space(p->text[end - 1]))
                                end--;
                        af_jinja_advance(p, 1);
                }
        }
        if (end > from) {
                struct jinja_node *node = append(p, l, JINJA_DATA);
                if (node) {
                        node->line = line;
                        node->data = p->text + from;
                        node->n_data = end - from;
                }
        }
        return open;
}

static const char *parse_body(struct jinja_parser *p, const char *const *ends, struct list *ret_list);

/* After `if` or `elif`: test, body, and what follows up to endif. */
static void parse_if(struct jinja_parser *p, struct list *l) {
        static const char *const any[] = {"elif", "else", "endif", NULL}, *const last[] = {"endif", NULL};
        struct jinja_node *node = append(p, l, JINJA_IF);
        struct list body = {0}, otherwise = {0};
        const struct jinja_expr *test = parse_expr(p);
        expect_end(p);
        const char *end = parse_body(p, any, &body);
        if (p->error)
                return;
        node->expr = test;
        node->body = body.first;
        if (strcmp(end, "elif") == 0) {
                if (++p->depth > JINJA_MAX_NESTING)
                        af_jinja_fail(p, "nested too deeply");
                parse_if(p, &otherwise);
                p->depth--;
        } else if (strcmp(end, "else") == 0) {
                expect_end(p);
                parse_body(p, last, &otherwise);
                expect_end(p);
        } else {
                expect_end(p);
        }
        node->otherwise = otherwise.first;
}

static void parse_targets(struct jinja_parser *p, struct jinja_node *node) {
        const char **targets = NULL;
        uint32_t cap = 0;
        do {
                if (p->error || p->tok != JINJA_TOKEN_NAME || is_keyword(p->tok_s) || strcmp(p->tok_s, "loop") == 0) {
                        af_jinja_fail(p, "expected a loop variable");
                        return;
                }
                if (af_arena_grow(p->arena, &targets, &cap, node->n_targets + 1, sizeof(*targets)) < 0) {
                        af_jinja_fail_memory(p);
                        return;
                }
                targets[node->n_targets++] = p->tok_s;
                af_jinja_next(p);
        } while (af_jinja_accept(p, JINJA_TOKEN_OP, ","));
        node->targets = targets;
        if (!af_jinja_accept(p, JINJA_TOKEN_NAME, "in"))
                af_jinja_fail(p, "expected in");
}

static void parse_for(struct jinja_parser *p, struct list *l) {
        static const char *const any[] = {"else", "endfor", NULL}, *const last[] = {"endfor", NULL};
        struct jinja_node *node = append(p, l, JINJA_FOR);
        struct list body = {0}, otherwise = {0};
        if (!node)
                return;
        parse_targets(p, node);
        node->expr = p->error ? NULL : parse_or(p); /* an inline if here would be a filter of the loop: not in the subset */
        expect_end(p);
        const char *end = parse_body(p, any, &body);
        if (p->error)
                return;
        if (strcmp(end, "else") == 0) {
                expect_end(p);
                parse_body(p, last, &otherwise);
        }
        expect_end(p);
        node->body = body.first;
        node->otherwise = otherwise.first;
}

/* One `{% … %}`; returns its name where it is among ends (the rest of the tag is still to be read), else NULL. */
static const char *parse_block(struct jinja_parser *p, const char *const *ends, struct list *l) {
        p->in_block = true;
        af_jinja_next(p);
        if (p->error)
                return NULL;
        if (p->tok != JINJA_TOKEN_NAME)
                return af_jinja_fail(p, "expected a statement");
        const char *word = p->tok_s;
        af_jinja_next(p);
        for (; ends && *ends; ends++)
                if (strcmp(*ends, word) == 0)
                        return *ends;
        if (strcmp(word, "if") == 0)
                parse_if(p, l);
        else if (strcmp(word, "for") == 0)
                parse_for(p, l);
        else
                af_jinja_fail(p, "unknown or misplaced statement (known: if, elif, else, endif, for, endfor)");
        return NULL;
}

/* Statements up to one of ends (NULL-terminated; NULL: up to the end of the text). Returns which, or NULL. */
static const char *parse_body(struct jinja_parser *p, const char *const *ends, struct list *ret_list) {
        const char *end = NULL;
        if (p->error)
                return NULL;
        if (++p->depth > JINJA_MAX_NESTING)
                return af_jinja_fail(p, "nested too deeply");
        while (!p->error && !end) {
                char open = take_data(p, ret_list);
                if (p->error)
                        break;
                if (open == 0) {
                        if (ends)
                                af_jinja_fail(p, "if or for without an end");
                        break;
                }
                if (open == '#') {
                        skip_comment(p);
                } else if (open == '%') {
                        end = parse_block(p, ends, ret_list);
                } else {
                        struct jinja_node *node = append(p, ret_list, JINJA_PRINT);
                        p->in_block = false;
                        af_jinja_next(p);
                        const struct jinja_expr *e = parse_expr(p);
                        expect_end(p);
                        if (!p->error)
                                node->expr = e;
                }
        }
        p->depth--;
        return p->error ? NULL : end;
}

/* Line ends become \n; one at the end of the text goes. */
static int normalise(struct af_arena *arena, const char *text, size_t n, const char **ret_text, size_t *ret_n) {
        char *s = af_arena_alloc(arena, n + 1);
        size_t k = 0;
        if (!s)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                if (text[i] == '\r' && i + 1 < n && text[i + 1] == '\n')
                        continue;
                s[k++] = text[i] == '\r' ? '\n' : text[i];
        }
        if (k > 0 && s[k - 1] == '\n')
                k--;
        s[k] = 0;
        *ret_text = s;
        *ret_n = k;
        return 0;
}

int af_jinja_parse(struct af_arena *arena, const char *name, const char *text, size_t n, const struct af_template **ret_template,
                   struct af_diags *diags) {
        struct jinja_parser p = {.arena = arena, .diags = diags, .line = 1};
        struct af_template *t = af_arena_alloc(arena, sizeof(*t));
        struct list root = {0};
        p.name = af_arena_strdup(arena, name);
        if (!t || !p.name || normalise(arena, text, n, &p.text, &p.n) < 0)
                return -ENOMEM;
        parse_body(&p, NULL, &root);
        if (p.error)
                return p.error;
        *t = (struct af_template){.name = p.name, .root = root.first};
        *ret_template = t;
        return 0;
}
