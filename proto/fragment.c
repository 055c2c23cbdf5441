/* SPDX-License-Identifier: Apache-2.0 */
/* Attribute table and builder. */
#include "proto/fragment.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* Where a builder's mistake is, for the message: `inputs[3] "x".dims`. */
struct spot {
        struct af_diags *diags;
        const char *list;
        uint32_t index;
        const char *name; /* may be NULL */
};

static const char *const attr_names[] = {
#define AF_X(id, name, kind) name,
        AF_ATTRS(AF_X)
#undef AF_X
};
static const enum af_attr_kind attr_kinds[] = {
#define AF_X(id, name, kind) AF_ATTR_KIND_##kind,
        AF_ATTRS(AF_X)
#undef AF_X
};

enum af_attr_kind af_attr_kind(enum af_attr_key key) {
        return attr_kinds[key];
}

const char *af_attr_name(enum af_attr_key key) {
        return attr_names[key];
}

enum af_attr_key af_attr_from_name(const char *name) {
        unsigned i = 0;

        while (i < AF_N_ATTRS && strcmp(attr_names[i], name) != 0)
                i++;
        return (enum af_attr_key)i;
}

int af_fragment_init(struct af_fragment *f, struct af_arena *arena) {
        *f = (struct af_fragment){.arena = arena};
        af_expr_pool_init(&f->exprs, arena);
        f->name = af_arena_strdup(arena, "");
        return f->name ? 0 : -ENOMEM;
}

AF_PRINTF(3, 4) static int refuse(const struct spot *at, const char *field, const char *fmt, ...) {
        char where[256], what[256];
        va_list args;

        snprintf(where, sizeof(where), "%s[%u] \"%.64s\"%s%s", at->list, at->index, at->name ? at->name : "", field[0] ? "." : "", field);
        va_start(args, fmt);
        vsnprintf(what, sizeof(what), fmt, args);
        va_end(args);
        af_diag_add(at->diags, AF_SEVERITY_ERROR, where, NULL, "%s", what);
        return AF_FRAGMENT_E_INVALID;
}

/* A copy of a name that is there, short enough and UTF-8. */
static int copy_name(struct af_fragment *f, const struct spot *at, const char *field, const char *name, const char **ret_name) {
        size_t n = name ? strlen(name) : 0;

        if (n == 0)
                return refuse(at, field, "is empty");
        if (n > AF_LIMIT_NAME_BYTES)
                return refuse(at, field, "is longer than %u bytes", AF_LIMIT_NAME_BYTES);
        if (!af_utf8_valid(name, n))
                return refuse(at, field, "is not UTF-8");
        *ret_name = af_arena_memdup(f->arena, name, n);
        return *ret_name ? 0 : -ENOMEM;
}

static int copy_optional_name(struct af_fragment *f, const struct spot *at, const char *field, const char *name, const char **ret_name) {
        *ret_name = NULL;
        return name ? copy_name(f, at, field, name, ret_name) : 0;
}

static int copy_ids(struct af_fragment *f, const struct spot *at, const char *field, const uint32_t *ids, uint32_t n, uint32_t limit,
                    const uint32_t **ret_ids) {
        if (n > limit)
                return refuse(at, field, limit == AF_LIMIT_RANK ? "rank %u, at most %u" : "%u items, at most %u", n, limit);
        for (uint32_t i = 0; i < n; i++)
                if (ids[i] >= f->exprs.n_exprs)
                        return refuse(at, field, "expression %u does not exist", ids[i]);
        *ret_ids = af_arena_memdup(f->arena, ids, n * sizeof(*ids));
        return *ret_ids ? 0 : -ENOMEM;
}

/* Copies a tensor's parts; source and target may be one. Counts a value. */
static int copy_tensor(struct af_fragment *f, const struct spot *at, const struct af_fragment_tensor *t, struct af_fragment_tensor *ret_t) {
        struct af_fragment_tensor copy = *t;

        if (f->n_values >= AF_LIMIT_VALUES)
                return refuse(at, "", "more than %u values", AF_LIMIT_VALUES);
        if (t->dtype <= AF_DTYPE_INVALID || t->dtype >= AF_N_DTYPES)
                return refuse(at, "dtype", "is none");
        int r = copy_name(f, at, "name", t->name, &copy.name);
        if (r == 0)
                r = copy_ids(f, at, "shape", t->dims, t->rank, AF_LIMIT_RANK, &copy.dims);
        copy.strides = NULL;
        if (r == 0 && t->has_strides)
                r = copy_ids(f, at, "strides", t->strides, t->rank, AF_LIMIT_RANK, &copy.strides);
        if (r != 0)
                return r;
        f->n_values++;
        *ret_t = copy;
        return 0;
}

int af_fragment_dims_const(struct af_fragment *f, const int64_t *dims, uint32_t rank, const uint32_t **ret_ids) {
        uint32_t *ids = af_arena_calloc(f->arena, rank, sizeof(*ids));

        if (!ids)
                return -ENOMEM;
        for (uint32_t i = 0; i < rank; i++) {
                int r = af_expr_const(&f->exprs, dims[i], &ids[i]);
                if (r != 0)
                        return r;
        }
        *ret_ids = ids;
        return 0;
}

int af_fragment_add_symbol(struct af_fragment *f, const struct af_fragment_symbol *s, struct af_diags *diags) {
        struct spot at = {diags, "symbols", f->n_symbols, s->name};
        struct af_fragment_symbol copy = *s;
        int r = copy_name(f, &at, "name", s->name, &copy.name);

        if (r != 0)
                return r;
        if (f->n_symbols >= AF_LIMIT_SYMBOLS)
                return refuse(&at, "", "more than %u symbols", AF_LIMIT_SYMBOLS);
        if (!af_expr_is_name(s->name))
                return refuse(&at, "name", "is no identifier, or max or min");
        for (uint32_t i = 0; i < f->n_symbols; i++)
                if (strcmp(f->symbols[i].name, s->name) == 0)
                        return refuse(&at, "name", "is that of symbols[%u] too", i);
        if (s->min < 0 || s->min > s->max)
                return refuse(&at, "min", "the range must be within 0 .. max");
        if (s->multiple_of < 1)
                return refuse(&at, "multiple_of", "must be positive");
        if (s->hint < -1)
                return refuse(&at, "hint", "is negative");
        r = af_arena_grow(f->arena, &f->symbols, &f->cap_symbols, f->n_symbols + 1, sizeof(*f->symbols));
        if (r == 0)
                f->symbols[f->n_symbols++] = copy;
        return r;
}

int af_fragment_add_input(struct af_fragment *f, const struct af_fragment_input *in, struct af_diags *diags) {
        struct spot at = {diags, "inputs", f->n_inputs, in->t.name};
        struct af_fragment_input copy = *in;

        if (in->offset >= f->exprs.n_exprs)
                return refuse(&at, "offset", "expression %u does not exist", in->offset);
        if (in->align > AF_LIMIT_ALIGN || (in->align & (in->align - 1)) != 0)
                return refuse(&at, "align", "must be a power of two up to %u", AF_LIMIT_ALIGN);
        if (in->host && in->t.rank != 0)
                return refuse(&at, "host", "a host scalar has shape []");
        int r = copy_optional_name(f, &at, "buffer", in->buffer, &copy.buffer);
        if (r == 0)
                r = copy_tensor(f, &at, &in->t, &copy.t);
        if (r == 0)
                r = af_arena_grow(f->arena, &f->inputs, &f->cap_inputs, f->n_inputs + 1, sizeof(*f->inputs));
        if (r == 0)
                f->inputs[f->n_inputs++] = copy;
        return r;
}

/* Bytes of a constant with these dims; AF_FRAGMENT_E_INVALID where they are not constant, or it is too large. */
static int constant_bytes(const struct af_fragment *f, const struct spot *at, const struct af_fragment_tensor *t, size_t *ret_n) {
        uint64_t n = af_dtype_size(t->dtype);
        int64_t d;

        for (uint32_t i = 0; i < t->rank; i++) {
                if (t->dims[i] >= f->exprs.n_exprs || !af_expr_is_const(&f->exprs, t->dims[i], &d) || d < 0)
                        return refuse(at, "shape", "a constant's dimensions are integers of 0 or more");
                if (__builtin_mul_overflow(n, (uint64_t)d, &n))
                        n = UINT64_MAX / 2;
        }
        if (n > AF_LIMIT_CONSTANT_BYTES - f->n_constant_bytes)
                return refuse(at, "shape", "constants of more than %u bytes together", AF_LIMIT_CONSTANT_BYTES);
        *ret_n = n;
        return 0;
}

int af_fragment_add_constant(struct af_fragment *f, const struct af_fragment_constant *c, struct af_diags *diags) {
        struct spot at = {diags, "constants", f->n_constants, c->t.name};
        struct af_fragment_constant copy = *c;
        size_t n = 0;

        if (c->t.rank > AF_LIMIT_RANK)
                return refuse(&at, "shape", "rank %u, at most %u", c->t.rank, AF_LIMIT_RANK);
        int r = constant_bytes(f, &at, &c->t, &n);
        if (r != 0)
                return r;
        if (n != c->n_bytes)
                return refuse(&at, "bits", "%zu bytes where dtype and shape make %zu", c->n_bytes, n);
        for (size_t i = 0; c->t.dtype == AF_DTYPE_BOOL && i < n; i++)
                if (c->bytes[i] > 1)
                        return refuse(&at, "bits", "byte %zu of a bool is neither 00 nor 01", i);
        copy.t.has_strides = false;
        r = copy_tensor(f, &at, &copy.t, &copy.t);
        if (r != 0)
                return r;
        copy.bytes = af_arena_memdup(f->arena, c->bytes, n);
        if (!copy.bytes)
                return -ENOMEM;
        r = af_arena_grow(f->arena, &f->constants, &f->cap_constants, f->n_constants + 1, sizeof(*f->constants));
        if (r != 0)
                return r;
        f->constants[f->n_constants++] = copy;
        f->n_constant_bytes += n;
        return 0;
}

static int by_key(const void *a, const void *b) {
        const struct af_attr *x = a, *y = b;

        return x->key < y->key ? -1 : x->key > y->key;
}

static int copy_attr(struct af_fragment *f, const struct spot *at, struct af_attr *a) {
        const char *name = af_attr_name(a->key);

        switch (af_attr_kind(a->key)) {
        case AF_ATTR_KIND_INT:
        case AF_ATTR_KIND_FLOAT:
        case AF_ATTR_KIND_BOOL:
                return 0;
        case AF_ATTR_KIND_INTS:
                if (a->n > AF_LIMIT_RANK)
                        return refuse(at, name, "%u items, at most %u", a->n, AF_LIMIT_RANK);
                a->ints = af_arena_memdup(f->arena, a->ints, a->n * sizeof(*a->ints));
                return a->ints ? 0 : -ENOMEM;
        case AF_ATTR_KIND_DIMS:
                return copy_ids(f, at, name, a->dims, a->n, AF_LIMIT_ATTR_ITEMS, &a->dims);
        case AF_ATTR_KIND_STRING:
                return copy_name(f, at, name, a->s, &a->s);
        }
        return 0;
}

static int copy_attrs(struct af_fragment *f, const struct spot *at, struct af_fragment_node *node) {
        struct af_attr *attrs;

        for (uint32_t i = 0; i < node->n_attrs; i++)
                if (node->attrs[i].key >= AF_N_ATTRS)
                        return refuse(at, "attrs", "attribute %u does not exist", (unsigned)node->attrs[i].key);
        attrs = af_arena_memdup(f->arena, node->attrs, node->n_attrs * sizeof(*attrs));
        if (!attrs)
                return -ENOMEM;
        qsort(attrs, node->n_attrs, sizeof(*attrs), by_key);
        for (uint32_t i = 0; i < node->n_attrs; i++) {
                if (i > 0 && attrs[i].key == attrs[i - 1].key)
                        return refuse(at, "attrs", "%s is there twice", af_attr_name(attrs[i].key));
                int r = copy_attr(f, at, &attrs[i]);
                if (r != 0)
                        return r;
        }
        node->attrs = attrs;
        return 0;
}

static int copy_operands(struct af_fragment *f, const struct spot *at, struct af_fragment_node *node) {
        const char **inputs = af_arena_calloc(f->arena, node->n_inputs, sizeof(*inputs));
        struct af_fragment_tensor *outputs = af_arena_calloc(f->arena, node->n_outputs, sizeof(*outputs));
        int r = 0;

        if (!inputs || !outputs)
                return -ENOMEM;
        for (uint32_t i = 0; i < node->n_inputs && r == 0; i++)
                r = copy_name(f, at, "inputs", node->inputs[i], &inputs[i]);
        for (uint32_t i = 0; i < node->n_outputs && r == 0; i++)
                r = copy_tensor(f, at, &node->outputs[i], &outputs[i]);
        node->inputs = inputs;
        node->outputs = outputs;
        return r;
}

int af_fragment_add_node(struct af_fragment *f, const struct af_fragment_node *n, struct af_diags *diags) {
        struct spot at = {diags, "nodes", f->n_nodes, n->name};
        struct af_fragment_node copy = *n;

        if (f->n_nodes >= AF_LIMIT_NODES)
                return refuse(&at, "", "more than %u nodes", AF_LIMIT_NODES);
        if (n->n_inputs > AF_LIMIT_NODE_INPUTS || n->n_outputs > AF_LIMIT_NODE_INPUTS)
                return refuse(&at, n->n_inputs > AF_LIMIT_NODE_INPUTS ? "inputs" : "outputs", "more than %u", AF_LIMIT_NODE_INPUTS);
        int r = copy_name(f, &at, "name", n->name, &copy.name);
        if (r == 0)
                r = copy_name(f, &at, "op", n->op, &copy.op);
        if (r == 0)
                r = copy_optional_name(f, &at, "origin", n->origin, &copy.origin);
        if (r == 0)
                r = copy_attrs(f, &at, &copy);
        if (r == 0)
                r = copy_operands(f, &at, &copy);
        if (r == 0)
                r = af_arena_grow(f->arena, &f->nodes, &f->cap_nodes, f->n_nodes + 1, sizeof(*f->nodes));
        if (r == 0)
                f->nodes[f->n_nodes++] = copy;
        return r;
}

int af_fragment_add_output(struct af_fragment *f, const struct af_fragment_output *o, struct af_diags *diags) {
        struct spot at = {diags, "outputs", f->n_outputs, o->value};
        struct af_fragment_output copy = *o;

        if (f->n_outputs >= AF_LIMIT_OUTPUTS)
                return refuse(&at, "", "more than %u outputs", AF_LIMIT_OUTPUTS);
        copy.strides = NULL;
        copy.n_strides = o->has_strides ? o->n_strides : 0;
        int r = copy_name(f, &at, "value", o->value, &copy.value);
        if (r == 0)
                r = copy_optional_name(f, &at, "alias_of", o->alias_of, &copy.alias_of);
        if (r == 0 && o->has_strides)
                r = copy_ids(f, &at, "strides", o->strides, o->n_strides, AF_LIMIT_RANK, &copy.strides);
        if (r == 0)
                r = af_arena_grow(f->arena, &f->outputs, &f->cap_outputs, f->n_outputs + 1, sizeof(*f->outputs));
        if (r == 0)
                f->outputs[f->n_outputs++] = copy;
        return r;
}
