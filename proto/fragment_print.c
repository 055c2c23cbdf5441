/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "proto/fragment.h"

#define SAFE_INTEGER (INT64_C(1) << 53) /* beyond it integers go into strings */

struct printer {
        const struct af_fragment *f;
        struct af_buf *buf;
        const char *const *symbols;
        unsigned indent; /* spaces per level; 0: one line */
        unsigned depth;
        bool is_first;  /* nothing printed in the container at hand */
        bool is_inline; /* short lists stay on a line */
};

static void new_line(struct printer *p) {
        if (p->indent > 0 && !p->is_inline)
                af_buf_printf(p->buf, "\n%*s", (int)(p->depth * p->indent), "");
}

/* Before an element or a key. */
static void separate(struct printer *p) {
        if (!p->is_first)
                af_buf_put_str(p->buf, p->indent > 0 && p->is_inline ? ", " : ",");
        p->is_first = false;
        new_line(p);
}

static void open_container(struct printer *p, char c) {
        af_buf_put_u8(p->buf, (uint8_t)c);
        p->depth++;
        p->is_first = true;
}

static void close_container(struct printer *p, char c) {
        p->depth--;
        if (!p->is_first)
                new_line(p);
        af_buf_put_u8(p->buf, (uint8_t)c);
        p->is_first = false;
}

static void put_string(struct printer *p, const char *s) {
        af_buf_put_u8(p->buf, '"');
        for (size_t n; *s; s += n) {
                n = 0;
                while (s[n] && (unsigned char)s[n] >= 0x20 && s[n] != '"' && s[n] != '\\' && s[n] != 0x7f)
                        n++;
                af_buf_put(p->buf, s, n);
                if (n > 0)
                        continue;
                n = 1;
                if (*s == '"' || *s == '\\')
                        af_buf_printf(p->buf, "\\%c", *s);
                else
                        af_buf_printf(p->buf, "\\u%04x", (unsigned char)*s);
        }
        af_buf_put_u8(p->buf, '"');
}

static void put_key(struct printer *p, const char *key) {
        separate(p);
        put_string(p, key);
        af_buf_put_str(p->buf, p->indent > 0 ? ": " : ":");
}

static void put_key_string(struct printer *p, const char *key, const char *s) {
        put_key(p, key);
        put_string(p, s);
}

static void put_integer(struct printer *p, int64_t v) {
        bool quoted = v > SAFE_INTEGER || v < -SAFE_INTEGER;

        af_buf_printf(p->buf, quoted ? "\"%" PRId64 "\"" : "%" PRId64, v);
}

/* The shortest digits that read as the same double, marked as a float. The decimal point is a point whatever the locale. */
static void put_double(struct printer *p, double v) {
        char text[40];

        if (isnan(v) || isinf(v)) {
                put_string(p, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
                return;
        }
        for (int digits = 15; digits <= 17; digits++) {
                snprintf(text, sizeof(text), "%.*g", digits, v);
                if (strtod(text, NULL) == v)
                        break;
        }
        bool is_float = strcspn(text, "eE") < strlen(text);
        for (char *c = text; *c; c++)
                if (!strchr("0123456789+-eE", *c)) {
                        *c = '.';
                        is_float = true;
                }
        af_buf_printf(p->buf, is_float ? "%s" : "%s.0", text);
}

static void put_dim(struct printer *p, uint32_t id) {
        int64_t v;

        if (af_expr_is_const(&p->f->exprs, id, &v)) {
                put_integer(p, v);
                return;
        }
        af_buf_put_u8(p->buf, '"');
        af_expr_print(&p->f->exprs, id, p->symbols, p->buf);
        af_buf_put_u8(p->buf, '"');
}

static void put_dims(struct printer *p, const char *key, const uint32_t *ids, uint32_t n) {
        put_key(p, key);
        p->is_inline = true;
        open_container(p, '[');
        for (uint32_t i = 0; i < n; i++) {
                separate(p);
                put_dim(p, ids[i]);
        }
        close_container(p, ']');
        p->is_inline = false;
}

static void put_tensor(struct printer *p, const struct af_fragment_tensor *t) {
        put_key_string(p, "name", t->name);
        put_key_string(p, "dtype", af_dtype_name(t->dtype));
        put_dims(p, "shape", t->dims, t->rank);
        if (t->has_strides)
                put_dims(p, "strides", t->strides, t->rank);
}

static void put_head(struct printer *p) {
        const struct af_fragment *f = p->f;

        put_key_string(p, "schema", "autofuse.fragment/1");
        put_key_string(p, "name", f->name);
        if (f->soc || f->toolchain || f->twin != AF_TWIN_DEFAULT) {
                put_key(p, "target");
                open_container(p, '{');
                if (f->soc)
                        put_key_string(p, "soc", f->soc);
                if (f->toolchain)
                        put_key_string(p, "toolchain", f->toolchain);
                if (f->twin != AF_TWIN_DEFAULT)
                        put_key_string(p, "twin", f->twin == AF_TWIN_FAST ? "fast" : "checked");
                close_container(p, '}');
        }
        put_key_string(p, "numerics", f->numerics == AF_NUMERICS_FAST ? "fast" : "strict");
}

static void put_key_integer(struct printer *p, const char *key, int64_t v) {
        put_key(p, key);
        put_integer(p, v);
}

static void put_symbol(struct printer *p, uint32_t i) {
        const struct af_fragment_symbol *s = &p->f->symbols[i];

        put_key_string(p, "name", s->name);
        put_key_integer(p, "min", s->min);
        put_key_integer(p, "max", s->max);
        if (s->hint >= 0)
                put_key_integer(p, "hint", s->hint);
        put_key_integer(p, "multiple_of", s->multiple_of);
}

static void put_input(struct printer *p, uint32_t i) {
        const struct af_fragment_input *in = &p->f->inputs[i];
        int64_t offset;

        put_tensor(p, &in->t);
        if (!af_expr_is_const(&p->f->exprs, in->offset, &offset) || offset != 0) {
                put_key(p, "offset");
                put_dim(p, in->offset);
        }
        if (in->align > 0)
                put_key_integer(p, "align", in->align);
        if (in->buffer)
                put_key_string(p, "buffer", in->buffer);
        if (in->host) {
                put_key(p, "host");
                af_buf_put_str(p->buf, "true");
        }
}

static void put_constant(struct printer *p, uint32_t i) {
        const struct af_fragment_constant *c = &p->f->constants[i];

        put_tensor(p, &c->t);
        put_key(p, "bits");
        af_buf_put_u8(p->buf, '"');
        char *hex = (char *)af_buf_reserve(p->buf, 2 * c->n_bytes + 1);
        if (hex) {
                af_hex(c->bytes, c->n_bytes, hex);
                p->buf->size += 2 * c->n_bytes;
        }
        af_buf_put_u8(p->buf, '"');
}

static void put_attr(struct printer *p, const struct af_attr *a) {
        switch (af_attr_kind(a->key)) {
        case AF_ATTR_KIND_INT:
                put_key_integer(p, af_attr_name(a->key), a->i);
                return;
        case AF_ATTR_KIND_BOOL:
                put_key(p, af_attr_name(a->key));
                af_buf_put_str(p->buf, a->i ? "true" : "false");
                return;
        case AF_ATTR_KIND_FLOAT:
                put_key(p, af_attr_name(a->key));
                if (a->is_int)
                        put_integer(p, a->i);
                else
                        put_double(p, a->f);
                return;
        case AF_ATTR_KIND_STRING:
                put_key_string(p, af_attr_name(a->key), a->s);
                return;
        case AF_ATTR_KIND_DIMS:
                put_dims(p, af_attr_name(a->key), a->dims, a->n);
                return;
        case AF_ATTR_KIND_INTS:
                put_key(p, af_attr_name(a->key));
                p->is_inline = true;
                open_container(p, '[');
                for (uint32_t i = 0; i < a->n; i++) {
                        separate(p);
                        put_integer(p, a->ints[i]);
                }
                close_container(p, ']');
                p->is_inline = false;
                return;
        }
}

static void put_results(struct printer *p, const struct af_fragment_node *n) {
        put_key(p, "outputs");
        open_container(p, '[');
        for (uint32_t i = 0; i < n->n_outputs; i++) {
                separate(p);
                open_container(p, '{');
                put_tensor(p, &n->outputs[i]);
                close_container(p, '}');
        }
        close_container(p, ']');
}

static void put_node(struct printer *p, uint32_t i) {
        const struct af_fragment_node *n = &p->f->nodes[i];

        put_key_string(p, "name", n->name);
        put_key_string(p, "op", n->op);
        put_key(p, "inputs");
        p->is_inline = true;
        open_container(p, '[');
        for (uint32_t j = 0; j < n->n_inputs; j++) {
                separate(p);
                put_string(p, n->inputs[j]);
        }
        close_container(p, ']');
        p->is_inline = false;
        if (n->n_attrs > 0) {
                put_key(p, "attrs");
                open_container(p, '{');
                for (uint32_t j = 0; j < n->n_attrs; j++)
                        put_attr(p, &n->attrs[j]);
                close_container(p, '}');
        }
        if (n->origin)
                put_key_string(p, "origin", n->origin);
        put_results(p, n);
}

static void put_output(struct printer *p, uint32_t i) {
        const struct af_fragment_output *o = &p->f->outputs[i];

        put_key_string(p, "value", o->value);
        if (o->has_strides)
                put_dims(p, "strides", o->strides, o->n_strides);
        if (o->alias_of)
                put_key_string(p, "alias_of", o->alias_of);
}

static void put_list(struct printer *p, const char *key, uint32_t n, void (*put)(struct printer *p, uint32_t i)) {
        put_key(p, key);
        open_container(p, '[');
        for (uint32_t i = 0; i < n; i++) {
                const struct af_fragment_output *o = put == put_output ? &p->f->outputs[i] : NULL;
                separate(p);
                if (o && !o->has_strides && !o->alias_of) {
                        put_string(p, o->value);
                        continue;
                }
                open_container(p, '{');
                put(p, i);
                close_container(p, '}');
        }
        close_container(p, ']');
}

void af_fragment_print(const struct af_fragment *f, unsigned indent, struct af_buf *buf) {
        const char **symbols = calloc(AF_MAX(f->n_symbols, 1u), sizeof(*symbols));
        struct printer p = {.f = f, .buf = buf, .symbols = symbols, .indent = AF_MIN(indent, 16u), .is_first = true};

        if (!symbols) {
                buf->error = -ENOMEM;
                return;
        }
        for (uint32_t i = 0; i < f->n_symbols; i++)
                symbols[i] = f->symbols[i].name;
        open_container(&p, '{');
        put_head(&p);
        put_list(&p, "symbols", f->n_symbols, put_symbol);
        put_list(&p, "inputs", f->n_inputs, put_input);
        put_list(&p, "constants", f->n_constants, put_constant);
        put_list(&p, "nodes", f->n_nodes, put_node);
        put_list(&p, "outputs", f->n_outputs, put_output);
        close_container(&p, '}');
        if (indent > 0)
                af_buf_put_u8(buf, '\n');
        free(symbols);
}
