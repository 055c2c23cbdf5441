/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of the canonical form (drawn in canon.c). Nothing is believed: bounds here, meaning by af_graph_finish. */
#include <errno.h>
#include <string.h>

#include "compiler/graph/canon.h"
#include "compiler/graph/canon_format.h"
#include "compiler/graph/internal.h"

struct reader {
        struct af_cursor c;
        struct af_graph *g;
        struct af_arena *arena;
        uint32_t *exprs; /* place in the form -> id */
        uint32_t n_exprs;
        uint32_t cap_values, cap_nodes;
        const char *why; /* static; the first thing that is wrong */
        int error;       /* -ENOMEM */
};

static bool ok(const struct reader *r) {
        return !r->c.error && !r->why && !r->error;
}

static void wrong(struct reader *r, const char *why) {
        if (!r->why)
                r->why = why;
}

static void *alloc(struct reader *r, size_t n, size_t size) {
        void *p = af_arena_calloc(r->arena, n, size);

        if (!p)
                r->error = -ENOMEM;
        return p;
}

/* A count of things of at least min_bytes each that are still to come. */
static uint32_t count(struct reader *r, uint32_t limit, size_t min_bytes, const char *why) {
        uint32_t n = af_cursor_u32(&r->c);

        if (r->c.error || n > limit || n > (r->c.size - r->c.at) / min_bytes) {
                wrong(r, why);
                return 0;
        }
        return n;
}

static const char *read_string(struct reader *r) {
        uint32_t n = 0;
        const uint8_t *p = af_cursor_field(&r->c, &n);

        if (!p || n > AF_LIMIT_NAME_BYTES || memchr(p, 0, n)) {
                wrong(r, "bad text");
                return "";
        }
        const char *s = af_arena_memdup(r->arena, p, n);
        if (!s)
                r->error = -ENOMEM;
        return s ? s : "";
}

static const char *read_text(struct reader *r) {
        uint8_t present = af_cursor_u8(&r->c);

        if (present > 1)
                wrong(r, "bad text");
        return present == 1 && ok(r) ? read_string(r) : NULL;
}

static void read_header(struct reader *r) {
        uint8_t numerics = af_cursor_u8(&r->c), twin = af_cursor_u8(&r->c);

        if (numerics > AF_NUMERICS_FAST || twin > AF_TWIN_CHECKED)
                wrong(r, "unknown numerics or twin");
        r->g->numerics = numerics;
        r->g->twin = twin;
        r->g->soc = read_text(r);
        r->g->toolchain = read_text(r);
}

static void read_symbols(struct reader *r) {
        uint32_t n = count(r, AF_LIMIT_SYMBOLS, 24, "too many symbols");

        r->g->symbols = alloc(r, n, sizeof(*r->g->symbols));
        for (uint32_t i = 0; i < n && ok(r); i++) {
                struct af_graph_symbol *s = &r->g->symbols[r->g->n_symbols++];
                s->min = (int64_t)af_cursor_u64(&r->c);
                s->max = (int64_t)af_cursor_u64(&r->c);
                s->multiple_of = (int64_t)af_cursor_u64(&r->c);
                s->hint = -1;
        }
}

static void read_expr(struct reader *r, uint32_t index) {
        uint8_t kind = af_cursor_u8(&r->c);
        int e;

        if (kind == AF_EXPR_CONST) {
                e = af_expr_const(&r->g->exprs, (int64_t)af_cursor_u64(&r->c), &r->exprs[index]);
        } else if (kind == AF_EXPR_SYMBOL) {
                uint32_t symbol = af_cursor_u32(&r->c);
                e = symbol < r->g->n_symbols ? af_expr_symbol(&r->g->exprs, symbol, &r->exprs[index]) : 1;
        } else {
                uint32_t a = af_cursor_u32(&r->c), b = af_cursor_u32(&r->c);
                bool fine = kind <= AF_EXPR_MIN && a < index && b < index && !r->c.error;
                e = fine ? af_expr_binary(&r->g->exprs, kind, r->exprs[a], r->exprs[b], &r->exprs[index]) : 1;
        }
        if (e < 0)
                r->error = e;
        else if (e > 0)
                wrong(r, "bad expression");
}

static void read_exprs(struct reader *r) {
        r->n_exprs = count(r, AF_CANON_MAX_EXPRS, 5, "too many expressions");
        r->exprs = alloc(r, r->n_exprs, sizeof(*r->exprs));
        for (uint32_t i = 0; i < r->n_exprs && ok(r); i++)
                read_expr(r, i);
}

static uint32_t read_expr_ref(struct reader *r) {
        uint32_t i = af_cursor_u32(&r->c);

        if (i < r->n_exprs && !r->c.error)
                return r->exprs[i];
        wrong(r, "expression out of range");
        return 0;
}

static const uint32_t *read_expr_refs(struct reader *r, uint32_t n) {
        uint32_t *ids = alloc(r, n, sizeof(*ids));

        for (uint32_t i = 0; i < n && ok(r); i++)
                ids[i] = read_expr_ref(r);
        return ids;
}

/* A value's type, appended to the graph's values; returns its id. */
static uint32_t read_value(struct reader *r, enum af_value_kind kind, uint32_t index, uint32_t out_index) {
        struct af_value v = {.kind = kind, .index = index, .out_index = out_index};
        uint32_t id = r->g->n_values;
        uint8_t has_strides;

        v.dtype = af_cursor_u8(&r->c);
        v.rank = af_cursor_u8(&r->c);
        has_strides = af_cursor_u8(&r->c);
        if (v.dtype == AF_DTYPE_INVALID || v.dtype >= AF_N_DTYPES || v.rank > AF_LIMIT_RANK || has_strides > 1)
                wrong(r, "bad type");
        if (!ok(r))
                return 0;
        v.dims = read_expr_refs(r, v.rank);
        if (has_strides)
                v.strides = read_expr_refs(r, v.rank);
        if (id >= AF_LIMIT_VALUES)
                wrong(r, "too many values");
        else if (af_arena_grow(r->arena, &r->g->values, &r->cap_values, id + 1, sizeof(v)) < 0)
                r->error = -ENOMEM;
        if (!ok(r))
                return 0;
        r->g->values[id] = v;
        r->g->n_values++;
        return id;
}

static void read_inputs(struct reader *r) {
        uint32_t n = count(r, AF_LIMIT_VALUES, 16, "too many inputs");

        r->g->inputs = alloc(r, n, sizeof(*r->g->inputs));
        for (uint32_t i = 0; i < n && ok(r); i++) {
                struct af_graph_input *in = &r->g->inputs[r->g->n_inputs++];
                in->value = read_value(r, AF_VALUE_INPUT, i, 0);
                in->offset = read_expr_ref(r);
                in->align = af_cursor_u32(&r->c);
                in->buffer = af_cursor_u32(&r->c);
                uint8_t host = af_cursor_u8(&r->c);
                in->host = host;
                if (in->buffer > i || host > 1)
                        wrong(r, "bad input");
        }
}

static void read_constants(struct reader *r) {
        uint32_t n = count(r, AF_LIMIT_VALUES, 7, "too many constants");

        r->g->constants = alloc(r, n, sizeof(*r->g->constants));
        for (uint32_t i = 0; i < n && ok(r); i++) {
                struct af_graph_constant *k = &r->g->constants[r->g->n_constants++];
                uint32_t n_bytes = 0;
                k->value = read_value(r, AF_VALUE_CONST, i, 0);
                const uint8_t *p = af_cursor_field(&r->c, &n_bytes);
                k->bytes = p ? af_arena_memdup(r->arena, p, n_bytes) : NULL;
                k->n_bytes = n_bytes;
                if (p && !k->bytes)
                        r->error = -ENOMEM;
        }
}

static void read_attr(struct reader *r, struct af_attr *a) {
        uint8_t key = af_cursor_u8(&r->c);
        uint64_t bits;

        if (key >= AF_N_ATTRS) {
                wrong(r, "unknown attribute");
                return;
        }
        a->key = key;
        switch (af_attr_kind(a->key)) {
        case AF_ATTR_KIND_INT:
        case AF_ATTR_KIND_BOOL:
                a->i = (int64_t)af_cursor_u64(&r->c);
                break;
        case AF_ATTR_KIND_FLOAT:
                a->is_int = af_cursor_u8(&r->c) != 0;
                bits = af_cursor_u64(&r->c);
                if (a->is_int)
                        a->i = (int64_t)bits;
                else
                        memcpy(&a->f, &bits, sizeof(bits));
                break;
        case AF_ATTR_KIND_INTS: {
                a->n = count(r, AF_LIMIT_ATTR_ITEMS, 8, "too long an attribute");
                int64_t *ints = alloc(r, a->n, sizeof(*ints));
                for (uint32_t i = 0; i < a->n && ok(r); i++)
                        ints[i] = (int64_t)af_cursor_u64(&r->c);
                a->ints = ints;
                break;
        }
        case AF_ATTR_KIND_STRING:
                a->s = read_string(r);
                break;
        case AF_ATTR_KIND_DIMS:
                a->n = count(r, AF_LIMIT_ATTR_ITEMS, 4, "too long an attribute");
                a->dims = read_expr_refs(r, a->n);
                break;
        }
}

static void read_attrs(struct reader *r, struct af_node *n, uint32_t n_attrs) {
        struct af_attr *attrs = alloc(r, n_attrs, sizeof(*attrs));

        for (uint32_t i = 0; i < n_attrs && ok(r); i++) {
                read_attr(r, &attrs[i]);
                if (i > 0 && ok(r) && attrs[i - 1].key >= attrs[i].key)
                        wrong(r, "attributes out of order");
                if (ok(r) && attrs[i].key == AF_ATTR_EFFECTS)
                        n->effects = n->op == AF_OP_OPAQUE && attrs[i].i != 0;
        }
        n->attrs = attrs;
        n->n_attrs = n_attrs;
}

static void read_node(struct reader *r, uint32_t index) {
        uint16_t op = af_cursor_u16(&r->c);
        uint8_t n_attrs = af_cursor_u8(&r->c);
        struct af_node *n = &r->g->nodes[index];

        n->op = op;
        n->source = index;
        n->n_in = count(r, AF_LIMIT_NODE_INPUTS, 4, "too many operands");
        uint32_t n_out = count(r, AF_LIMIT_NODE_INPUTS, 3, "too many results");
        bool several = op == AF_OP_OPAQUE || (op < AF_N_OPS && af_op_info(op)->flags & AF_OP_SEVERAL);
        if (op >= AF_N_OPS || (!several && n_out != 1) || n_attrs > AF_N_ATTRS)
                wrong(r, "bad node");
        uint32_t *ids = ok(r) ? alloc(r, (size_t)n->n_in + n_out, sizeof(*ids)) : NULL;
        if (!ids)
                return;
        for (uint32_t j = 0; j < n->n_in; j++) {
                ids[j] = af_cursor_u32(&r->c);
                if (ids[j] >= r->g->n_values)
                        wrong(r, "operand out of order");
        }
        if (!ok(r))
                return;
        n->in = ids;
        n->out = ids + n->n_in;
        read_attrs(r, n, n_attrs);
        for (uint32_t j = 0; j < n_out && ok(r); j++) {
                ids[n->n_in + j] = read_value(r, AF_VALUE_NODE, index, j);
                n->n_out++;
        }
}

static void read_nodes(struct reader *r) {
        uint32_t n = count(r, AF_LIMIT_NODES, 11, "too many nodes");

        r->g->nodes = alloc(r, n, sizeof(*r->g->nodes));
        for (uint32_t i = 0; i < n && ok(r); i++) {
                r->g->n_nodes++;
                read_node(r, i);
        }
}

static void read_outputs(struct reader *r) {
        uint32_t n = count(r, AF_LIMIT_OUTPUTS, 9, "too many outputs");

        r->g->outputs = alloc(r, n, sizeof(*r->g->outputs));
        for (uint32_t i = 0; i < n && ok(r); i++) {
                struct af_graph_output *o = &r->g->outputs[r->g->n_outputs++];
                o->value = af_cursor_u32(&r->c);
                o->alias_of = af_cursor_u32(&r->c);
                uint8_t has_strides = af_cursor_u8(&r->c);
                if (o->value >= r->g->n_values || (o->alias_of != AF_NONE && o->alias_of >= r->g->n_inputs) || has_strides > 1)
                        wrong(r, "bad output");
                if (has_strides && ok(r))
                        o->strides = read_expr_refs(r, r->g->values[o->value].rank);
        }
        if (ok(r) && r->c.at != r->c.size)
                wrong(r, "bytes after the end");
}

int af_canon_read(struct af_graph *g, struct af_arena *arena, const void *p, size_t n, struct af_diags *diags) {
        struct reader r = {.c = af_cursor_make(p, n), .g = g, .arena = arena};
        struct af_tally tally = {0};
        void (*const sections[])(struct reader *) = {read_header,    read_symbols, read_exprs,  read_inputs,
                                                     read_constants, read_nodes,   read_outputs};

        *g = (struct af_graph){.arena = arena, .name = ""};
        af_expr_pool_init(&g->exprs, arena);
        if (af_cursor_u32(&r.c) != AF_CANON_MAGIC) {
                af_diag_error(diags, "canonical form", "no canonical form");
                return AF_CANON_E_DAMAGED;
        }
        if (af_cursor_u32(&r.c) != AF_CANON_VERSION) {
                af_diag_error(diags, "canonical form", "another version than %u", AF_CANON_VERSION);
                return AF_CANON_E_VERSION;
        }
        for (size_t i = 0; i < AF_ARRAY_SIZE(sections) && ok(&r); i++)
                sections[i](&r);
        if (r.error)
                return r.error;
        if (!ok(&r)) {
                af_diag_error(diags, "canonical form", "damaged at byte %zu: %s", r.c.at, r.why ? r.why : "cut off");
                return AF_CANON_E_DAMAGED;
        }
        (void)af_tally_start(&tally, diags);
        int e = af_graph_finish(g, true, &tally);
        af_diags_deinit(&tally.own);
        return e > 0 ? AF_CANON_E_DAMAGED : e;
}

static bool head_text(struct af_cursor *c, char out[AF_CANON_MAX_NAME + 1]) {
        uint32_t n = 0;
        const uint8_t *p = af_cursor_u8(c) ? af_cursor_field(c, &n) : NULL;

        if (c->error || n > AF_CANON_MAX_NAME)
                return false;
        if (p)
                memcpy(out, p, n);
        out[n] = 0;
        return true;
}

bool af_canon_target_read(const void *p, size_t n, struct af_canon_target *ret_target) {
        struct af_cursor c = af_cursor_make(p, n);
        bool known = af_cursor_u32(&c) == AF_CANON_MAGIC && af_cursor_u32(&c) == AF_CANON_VERSION;

        (void)af_cursor_u8(&c); /* numerics */
        ret_target->twin = af_cursor_u8(&c);
        return known && head_text(&c, ret_target->soc) && head_text(&c, ret_target->toolchain);
}
