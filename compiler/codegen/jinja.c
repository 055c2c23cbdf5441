/* SPDX-License-Identifier: Apache-2.0 */
/* Renders a parsed template. Python's rules for truth, comparison, printing; anything that Python would print in a way of its own is an
 * error. */
#include "compiler/codegen/jinja.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "compiler/codegen/jinja_ast.h"

struct scope { /* innermost first; lives on the C stack */
        const struct scope *parent;
        const char *const *names;
        const struct af_jval *values;
        uint32_t n_names;
        bool is_loop;
        uint32_t index, length; /* is_loop */
};
struct render {
        const struct af_template *t;
        const struct af_jval *context;
        struct af_arena arena; /* strings made while rendering */
        struct af_buf *out;
        struct af_diags *diags;
};

static const char *const kind_names[] = {[AF_JVAL_STR] = "text",
                                         [AF_JVAL_INT] = "an integer",
                                         [AF_JVAL_BOOL] = "a truth value",
                                         [AF_JVAL_LIST] = "a list",
                                         [AF_JVAL_DICT] = "a dictionary"};

static int report(const struct render *r, uint32_t line, int code, const char *what, const char *detail) {
        char where[256];
        snprintf(where, sizeof(where), "%s:%u", r->t->name, line);
        af_diag_error(r->diags, where, "%s%s%s", what, detail ? " " : "", detail ? detail : "");
        return code;
}

static int type_error(const struct render *r, const struct jinja_expr *e, const char *what, const struct af_jval *v) {
        return report(r, e->line, AF_JINJA_E_TYPE, what, kind_names[v->kind]);
}

static bool truth(const struct af_jval *v) {
        switch (v->kind) {
        case AF_JVAL_STR:
                return v->s[0] != 0;
        case AF_JVAL_INT:
        case AF_JVAL_BOOL:
                return v->i != 0;
        case AF_JVAL_LIST:
        case AF_JVAL_DICT:
                return v->n > 0;
        }
        return false;
}

static bool is_number(const struct af_jval *v) {
        return v->kind == AF_JVAL_INT || v->kind == AF_JVAL_BOOL;
}
static struct af_jval jbool(bool b) {
        return (struct af_jval){.kind = AF_JVAL_BOOL, .i = b};
}
static struct af_jval jint(int64_t i) {
        return (struct af_jval){.kind = AF_JVAL_INT, .i = i};
}
static struct af_jval jstr(const char *s) {
        return (struct af_jval){.kind = AF_JVAL_STR, .s = s};
}

static const struct af_jval *dict_get(const struct af_jval *dict, const char *key) {
        for (uint32_t i = 0; i < dict->n; i++)
                if (strcmp(dict->keys[i], key) == 0)
                        return &dict->items[i];
        return NULL;
}

static bool equal(const struct af_jval *a, const struct af_jval *b) {
        if (is_number(a) && is_number(b))
                return a->i == b->i;
        if (a->kind != b->kind)
                return false;
        if (a->kind == AF_JVAL_STR)
                return strcmp(a->s, b->s) == 0;
        if (a->n != b->n)
                return false;
        for (uint32_t i = 0; i < a->n; i++) {
                const struct af_jval *other = a->kind == AF_JVAL_LIST ? &b->items[i] : dict_get(b, a->keys[i]);
                if (!other || !equal(&a->items[i], other))
                        return false;
        }
        return true;
}

/* The text that printing gives: in the render's arena or borrowed. */
static int text_of(struct render *r, const struct jinja_expr *e, const struct af_jval *v, const char **ret) {
        if (v->kind == AF_JVAL_STR)
                *ret = v->s;
        else if (v->kind == AF_JVAL_BOOL)
                *ret = v->i ? "True" : "False";
        else if (v->kind == AF_JVAL_INT)
                *ret = af_arena_printf(&r->arena, "%" PRId64, v->i);
        else
                return type_error(r, e, "cannot print", v);
        return *ret ? 0 : -ENOMEM;
}

static int eval(struct render *r, const struct scope *sc, const struct jinja_expr *e, struct af_jval *ret);

static int eval_name(struct render *r, const struct scope *sc, const struct jinja_expr *e, struct af_jval *ret) {
        for (const struct scope *s = sc; s; s = s->parent) {
                for (uint32_t i = s->n_names; i-- > 0;)
                        if (strcmp(s->names[i], e->s) == 0) {
                                *ret = s->values[i];
                                return 0;
                        }
                if (s->is_loop && strcmp(e->s, "loop") == 0)
                        return report(r, e->line, AF_JINJA_E_TYPE, "loop is used only with an attribute: loop.index, loop.first, …", NULL);
        }
        const struct af_jval *v = dict_get(r->context, e->s);
        if (!v)
                return report(r, e->line, AF_JINJA_E_UNDEFINED, "unknown variable", e->s);
        *ret = *v;
        return 0;
}

static int eval_loop_attr(struct render *r, const struct scope *loop, const struct jinja_expr *e, struct af_jval *ret) {
        uint32_t i = loop->index, n = loop->length;
        const struct {
                const char *name;
                struct af_jval value;
        } attrs[] = {{"index", jint((int64_t)i + 1)}, {"index0", jint(i)}, {"first", jbool(i == 0)},
                     {"last", jbool(i + 1 == n)},     {"length", jint(n)}, {"revindex", jint(n - i)},
                     {"revindex0", jint(n - i - 1)}};
        for (size_t k = 0; k < AF_ARRAY_SIZE(attrs); k++)
                if (strcmp(attrs[k].name, e->s) == 0) {
                        *ret = attrs[k].value;
                        return 0;
                }
        return report(r, e->line, AF_JINJA_E_UNDEFINED, "unknown attribute of loop:", e->s);
}

static int eval_attr(struct render *r, const struct scope *sc, const struct jinja_expr *e, struct af_jval *ret) {
        struct af_jval base;
        if (e->a->kind == JINJA_NAME && strcmp(e->a->s, "loop") == 0)
                for (const struct scope *s = sc; s; s = s->parent)
                        if (s->is_loop)
                                return eval_loop_attr(r, s, e, ret);
        int k = eval(r, sc, e->a, &base);
        if (k)
                return k;
        const struct af_jval *v = base.kind == AF_JVAL_DICT ? dict_get(&base, e->s) : NULL;
        if (!v)
                return report(r, e->line, AF_JINJA_E_UNDEFINED, "no such attribute:", e->s);
        *ret = *v;
        return 0;
}

static int eval_index(struct render *r, const struct scope *sc, const struct jinja_expr *e, struct af_jval *ret) {
        struct af_jval base, index;
        int k = eval(r, sc, e->a, &base);
        if (!k)
                k = eval(r, sc, e->b, &index);
        if (k)
                return k;
        if (base.kind == AF_JVAL_DICT && index.kind == AF_JVAL_STR) {
                const struct af_jval *v = dict_get(&base, index.s);
                if (!v)
                        return report(r, e->line, AF_JINJA_E_UNDEFINED, "no such key:", index.s);
                *ret = *v;
                return 0;
        }
        if (base.kind != AF_JVAL_LIST || !is_number(&index))
                return type_error(r, e, "cannot index so:", &base);
        int64_t i = index.i < 0 ? index.i + base.n : index.i;
        if (i < 0 || i >= base.n)
                return report(r, e->line, AF_JINJA_E_UNDEFINED, "index beyond the list", NULL);
        *ret = base.items[i];
        return 0;
}

static int filter_join(struct render *r, const struct scope *sc, const struct jinja_expr *e, const struct af_jval *v, struct af_jval *ret) {
        struct af_jval sep = jstr("");
        AF_CLEANUP(af_buf_deinit) struct af_buf buf = AF_BUF_INIT;
        const char *sep_text, *text;
        int k = e->b ? eval(r, sc, e->b, &sep) : 0;
        if (!k)
                k = text_of(r, e, &sep, &sep_text);
        if (k)
                return k;
        if (v->kind != AF_JVAL_LIST && v->kind != AF_JVAL_DICT)
                return type_error(r, e, "cannot join", v);
        for (uint32_t i = 0; i < v->n; i++) {
                if (i > 0)
                        af_buf_put_str(&buf, sep_text);
                struct af_jval item = v->kind == AF_JVAL_DICT ? jstr(v->keys[i]) : v->items[i];
                k = text_of(r, e, &item, &text);
                if (k)
                        return k;
                af_buf_put_str(&buf, text);
        }
        if (af_buf_error(&buf))
                return -ENOMEM;
        ret->kind = AF_JVAL_STR;
        ret->s = af_arena_memdup(&r->arena, buf.data ? (const char *)buf.data : "", buf.size);
        return ret->s ? 0 : -ENOMEM;
}

static int filter_case(struct render *r, const struct jinja_expr *e, const struct af_jval *v, struct af_jval *ret) {
        const char *text;
        int k = text_of(r, e, v, &text);
        if (k)
                return k;
        char *s = af_arena_strdup(&r->arena, text), lo = e->op == JINJA_UPPER ? 'a' : 'A';
        if (!s)
                return -ENOMEM;
        for (char *c = s; *c; c++) {
                if (*c & 0x80)
                        return report(r, e->line, AF_JINJA_E_TYPE, "upper and lower work on ASCII text only", NULL);
                if (*c >= lo && *c <= lo + 25)
                        *c ^= 0x20;
        }
        *ret = jstr(s);
        return 0;
}

static int eval_filter(struct render *r, const struct scope *sc, const struct jinja_expr *e, struct af_jval *ret) {
        struct af_jval v;
        int64_t n = 0;
        int k = eval(r, sc, e->a, &v);
        if (k)
                return k;
        if (e->op == JINJA_JOIN)
                return filter_join(r, sc, e, &v, ret);
        if (e->op != JINJA_LENGTH)
                return filter_case(r, e, &v, ret);
        if (is_number(&v))
                return type_error(r, e, "no length:", &v);
        if (v.kind == AF_JVAL_STR)
                for (const char *c = v.s; *c; c++)
                        n += (*c & 0xc0) != 0x80; /* characters, not bytes */
        else
                n = v.n;
        *ret = jint(n);
        return 0;
}

/* Whether needle is in hay, as Python's `in`. */
static int contains(struct render *r, const struct jinja_expr *e, const struct af_jval *needle, const struct af_jval *hay, bool *ret) {
        *ret = false;
        if (hay->kind == AF_JVAL_LIST) {
                for (uint32_t i = 0; i < hay->n && !*ret; i++)
                        *ret = equal(needle, &hay->items[i]);
        } else if (hay->kind == AF_JVAL_DICT && (needle->kind == AF_JVAL_STR || is_number(needle))) {
                *ret = needle->kind == AF_JVAL_STR && dict_get(hay, needle->s);
        } else if (hay->kind == AF_JVAL_STR && needle->kind == AF_JVAL_STR) {
                *ret = strstr(hay->s, needle->s) != NULL;
        } else {
                return type_error(r, e, "`in` cannot look for this in", hay);
        }
        return 0;
}

static int compare(struct render *r, const struct jinja_expr *e, const struct af_jval *a, const struct af_jval *b, bool *ret) {
        int order, k;
        if (e->op == JINJA_EQ || e->op == JINJA_NE) {
                *ret = equal(a, b) == (e->op == JINJA_EQ);
                return 0;
        }
        if (e->op == JINJA_IN || e->op == JINJA_NOT_IN) {
                k = contains(r, e, a, b, ret);
                *ret = *ret == (e->op == JINJA_IN);
                return k;
        }
        if (is_number(a) && is_number(b))
                order = (a->i > b->i) - (a->i < b->i);
        else if (a->kind == AF_JVAL_STR && b->kind == AF_JVAL_STR)
                order = strcmp(a->s, b->s);
        else
                return type_error(r, e, "no order with", a->kind == AF_JVAL_STR || is_number(a) ? b : a);
        *ret = e->op == JINJA_LT ? order < 0 : e->op == JINJA_LE ? order <= 0 : e->op == JINJA_GT ? order > 0 : order >= 0;
        return 0;
}

static int eval_compare(struct render *r, const struct scope *sc, const struct jinja_expr *e, struct af_jval *ret) {
        struct af_jval left, right;
        bool holds = true;
        int k = eval(r, sc, e->a, &left);
        for (const struct jinja_expr *link = e->b; !k && holds && link; link = link->b) {
                k = eval(r, sc, link->a, &right);
                if (!k)
                        k = compare(r, link, &left, &right, &holds);
                left = right;
        }
        *ret = jbool(holds);
        return k;
}

static int arith(struct render *r, const struct jinja_expr *e, int64_t a, int64_t b, int64_t *ret) {
        bool over = false;
        if (e->op == JINJA_ADD) {
                over = __builtin_add_overflow(a, b, ret);
        } else if (e->op == JINJA_SUB) {
                over = __builtin_sub_overflow(a, b, ret);
        } else if (e->op == JINJA_MUL) {
                over = __builtin_mul_overflow(a, b, ret);
        } else if (b == 0) {
                return report(r, e->line, AF_JINJA_E_TYPE, "division by zero", NULL);
        } else if (b == -1) { /* INT64_MIN / -1 traps */
                over = e->op == JINJA_FLOORDIV && __builtin_sub_overflow((int64_t)0, a, ret);
                if (e->op == JINJA_MOD)
                        *ret = 0;
        } else {
                int64_t q = a / b, m = a % b;
                bool adjust = m != 0 && (m < 0) != (b < 0);
                *ret = e->op == JINJA_FLOORDIV ? q - adjust : m + (adjust ? b : 0);
        }
        return over ? report(r, e->line, AF_JINJA_E_TYPE, "integer beyond 64 bits", NULL) : 0;
}

static int eval_binary(struct render *r, const struct scope *sc, const struct jinja_expr *e, struct af_jval *ret) {
        struct af_jval a, b;
        const char *sa, *sb;
        int64_t i = 0;
        int k = eval(r, sc, e->a, &a);
        if (!k)
                k = eval(r, sc, e->b, &b);
        if (k)
                return k;
        if (e->kind == JINJA_CONCAT || (e->op == JINJA_ADD && a.kind == AF_JVAL_STR && b.kind == AF_JVAL_STR)) {
                k = text_of(r, e, &a, &sa);
                if (!k)
                        k = text_of(r, e, &b, &sb);
                if (k)
                        return k;
                ret->kind = AF_JVAL_STR;
                ret->s = af_arena_printf(&r->arena, "%s%s", sa, sb);
                return ret->s ? 0 : -ENOMEM;
        }
        if (!is_number(&a) || !is_number(&b))
                return type_error(r, e, "no arithmetic with", is_number(&a) ? &b : &a);
        k = arith(r, e, a.i, b.i, &i);
        *ret = jint(i);
        return k;
}

static int eval_unary(struct render *r, const struct scope *sc, const struct jinja_expr *e, struct af_jval *ret) {
        struct af_jval a;
        int64_t i;
        int k = eval(r, sc, e->a, &a);
        if (k)
                return k;
        if (e->kind == JINJA_NOT) {
                *ret = jbool(!truth(&a));
                return 0;
        }
        if (!is_number(&a))
                return type_error(r, e, "no minus of", &a);
        if (__builtin_sub_overflow((int64_t)0, a.i, &i))
                return report(r, e->line, AF_JINJA_E_TYPE, "integer beyond 64 bits", NULL);
        *ret = jint(i);
        return 0;
}

/* and, or, inline if: the operand itself is the value. */
static int eval_lazy(struct render *r, const struct scope *sc, const struct jinja_expr *e, struct af_jval *ret) {
        struct af_jval v;
        int k = eval(r, sc, e->kind == JINJA_COND ? e->b : e->a, &v);
        if (k)
                return k;
        if (e->kind == JINJA_COND)
                return eval(r, sc, truth(&v) ? e->a : e->c, ret);
        if (truth(&v) == (e->kind == JINJA_AND))
                return eval(r, sc, e->b, ret);
        *ret = v;
        return 0;
}

static int eval(struct render *r, const struct scope *sc, const struct jinja_expr *e, struct af_jval *ret) {
        switch (e->kind) {
        case JINJA_STR:
                *ret = jstr(e->s);
                return 0;
        case JINJA_INT:
                *ret = jint(e->i);
                return 0;
        case JINJA_BOOL:
                *ret = jbool(e->i);
                return 0;
        case JINJA_NAME:
                return eval_name(r, sc, e, ret);
        case JINJA_ATTR:
                return eval_attr(r, sc, e, ret);
        case JINJA_INDEX:
                return eval_index(r, sc, e, ret);
        case JINJA_FILTER:
                return eval_filter(r, sc, e, ret);
        case JINJA_NOT:
        case JINJA_NEG:
                return eval_unary(r, sc, e, ret);
        case JINJA_AND:
        case JINJA_OR:
        case JINJA_COND:
                return eval_lazy(r, sc, e, ret);
        case JINJA_COMPARE:
                return eval_compare(r, sc, e, ret);
        case JINJA_CONCAT:
        case JINJA_ARITH:
                return eval_binary(r, sc, e, ret);
        case JINJA_LINK: /* only inside COMPARE */
                break;
        }
        return report(r, e->line, AF_JINJA_E_SYNTAX, "internal: a link outside a comparison", NULL);
}

static int render_list(struct render *r, const struct scope *sc, const struct jinja_node *node);

static int render_for(struct render *r, const struct scope *sc, const struct jinja_node *node) {
        struct af_jval seq;
        int k = eval(r, sc, node->expr, &seq);
        if (k)
                return k;
        if (seq.kind != AF_JVAL_LIST && seq.kind != AF_JVAL_DICT)
                return type_error(r, node->expr, "cannot loop over", &seq);
        if (seq.n == 0)
                return render_list(r, sc, node->otherwise);
        for (uint32_t i = 0; !k && i < seq.n; i++) {
                struct af_jval item = seq.kind == AF_JVAL_DICT ? jstr(seq.keys[i]) : seq.items[i];
                struct scope inner = {.parent = sc,
                                      .names = node->targets,
                                      .values = &item,
                                      .n_names = node->n_targets,
                                      .is_loop = true,
                                      .index = i,
                                      .length = seq.n};
                if (node->n_targets > 1) {
                        if (item.kind != AF_JVAL_LIST || item.n != node->n_targets)
                                return report(r, node->line, AF_JINJA_E_TYPE, "the loop's items do not unpack into its variables", NULL);
                        inner.values = item.items;
                }
                k = render_list(r, &inner, node->body);
        }
        return k;
}

static int render_list(struct render *r, const struct scope *sc, const struct jinja_node *node) {
        int k = 0;
        for (; !k && node; node = node->next) {
                struct af_jval v;
                const char *text;
                switch (node->kind) {
                case JINJA_DATA:
                        af_buf_put(r->out, node->data, node->n_data);
                        break;
                case JINJA_PRINT:
                        k = eval(r, sc, node->expr, &v);
                        if (!k)
                                k = text_of(r, node->expr, &v, &text);
                        if (!k)
                                af_buf_put_str(r->out, text);
                        break;
                case JINJA_IF:
                        k = eval(r, sc, node->expr, &v);
                        if (!k)
                                k = render_list(r, sc, truth(&v) ? node->body : node->otherwise);
                        break;
                case JINJA_FOR:
                        k = render_for(r, sc, node);
                        break;
                }
        }
        return k;
}

int af_jinja_render(const struct af_template *t, const struct af_jval *context, struct af_buf *out, struct af_diags *diags) {
        struct render r = {.t = t, .context = context, .out = out, .diags = diags};
        af_arena_init(&r.arena, 0);
        int k = render_list(&r, NULL, t->root);
        af_arena_deinit(&r.arena);
        return k ? k : af_buf_error(out);
}
