/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Canonical form, version 1. Little-endian, no padding.
 *
 *   u32 "AFC1"   u32 version   u8 numerics   u8 twin
 *   text soc, text toolchain      text: u8 0 (absent), or u8 1, u32 bytes, bytes
 *   u32 n_symbols     each: i64 min, i64 max, i64 multiple_of
 *   u32 n_exprs       each: u8 kind; CONST: i64 value; SYMBOL: u32 symbol; else u32 a, u32 b (earlier entries)
 *   u32 n_inputs      each: type, u32 offset (expr), u32 align, u32 buffer, u8 host
 *   u32 n_constants   each: type, u32 bytes, bytes
 *   u32 n_nodes       each: u16 op, u8 n_attrs, u32 n_in, u32 n_out, u32 values[n_in], attrs, type[n_out]
 *   u32 n_outputs     each: u32 value, u32 alias_of (input, or ~0), u8 has_strides, exprs
 *
 *   type   u8 dtype, u8 rank, u8 has_strides, u32 dims[rank] (exprs), u32 strides[rank] (exprs) where it has them
 *   attr   u8 key, then by kind  INT, BOOL: i64    FLOAT: u8 is_int, u64 bits or i64    INTS: u32 n, i64[n]
 *                                STRING: u32 bytes, bytes    DIMS: u32 n, u32[n] (exprs)
 *
 * Values are numbered inputs, constants, then node outputs in node order. Symbols are numbered by first use alone in a
 * dim, stride or offset; those that occur only inside larger expressions follow, by their bounds. Expressions stand in order of first use,
 * operands first, each once.
 */
#include "compiler/graph/canon.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/graph/canon_format.h"
#include "compiler/graph/canon_order.h"

struct writer {
        const struct af_graph *g;
        struct af_arena *arena;
        struct af_canon_order order;
        uint32_t *value_number; /* value of g -> number in the form */
        bool scanning;          /* first round: only which expressions are used, and symbols that stand alone */
        uint8_t *used;          /* per expression of g */
        uint32_t *symbol_number;
        uint32_t n_symbols;
        struct af_expr_pool exprs; /* over canonical symbols */
        uint32_t *rebuilt;         /* expression of g -> of exprs */
        uint32_t *written;         /* of exprs -> place in the form */
        uint32_t n_written;
        struct af_buf table, body;
        int error;
};

/* Writes e, which is of w->exprs, after its operands; returns its place. Depth is bounded by AF_EXPR_MAX_DEPTH. */
static uint32_t write_expr(struct writer *w, uint32_t id) {
        const struct af_expr *e = &w->exprs.exprs[id];
        uint32_t a = 0, b = 0;

        if (w->written[id] != AF_NONE)
                return w->written[id];
        if (e->kind != AF_EXPR_CONST && e->kind != AF_EXPR_SYMBOL) {
                a = write_expr(w, e->a);
                b = write_expr(w, e->b);
        }
        af_buf_put_u8(&w->table, (uint8_t)e->kind);
        if (e->kind == AF_EXPR_CONST) {
                af_buf_put_u64(&w->table, (uint64_t)e->value);
        } else if (e->kind == AF_EXPR_SYMBOL) {
                af_buf_put_u32(&w->table, (uint32_t)e->value);
        } else {
                af_buf_put_u32(&w->table, a);
                af_buf_put_u32(&w->table, b);
        }
        return w->written[id] = w->n_written++;
}

static void put_expr(struct writer *w, uint32_t id) {
        const struct af_expr *e = &w->g->exprs.exprs[id];

        if (!w->scanning) {
                af_buf_put_u32(&w->body, write_expr(w, w->rebuilt[id]));
                return;
        }
        w->used[id] = 1;
        if (e->kind == AF_EXPR_SYMBOL && w->symbol_number[e->value] == AF_NONE)
                w->symbol_number[e->value] = w->n_symbols++;
}

static void put_exprs(struct writer *w, const uint32_t *ids, uint32_t n) {
        for (uint32_t i = 0; i < n; i++)
                put_expr(w, ids[i]);
}

static void put_type(struct writer *w, const struct af_value *v) {
        af_buf_put_u8(&w->body, (uint8_t)v->dtype);
        af_buf_put_u8(&w->body, (uint8_t)v->rank);
        af_buf_put_u8(&w->body, v->strides != NULL);
        put_exprs(w, v->dims, v->rank);
        if (v->strides)
                put_exprs(w, v->strides, v->rank);
}

static void put_attr(struct writer *w, const struct af_attr *a) {
        uint64_t bits;

        af_buf_put_u8(&w->body, (uint8_t)a->key);
        switch (af_attr_kind(a->key)) {
        case AF_ATTR_KIND_INT:
        case AF_ATTR_KIND_BOOL:
                af_buf_put_u64(&w->body, (uint64_t)a->i);
                break;
        case AF_ATTR_KIND_FLOAT:
                memcpy(&bits, &a->f, sizeof(bits));
                af_buf_put_u8(&w->body, a->is_int);
                af_buf_put_u64(&w->body, a->is_int ? (uint64_t)a->i : bits);
                break;
        case AF_ATTR_KIND_INTS:
                af_buf_put_u32(&w->body, a->n);
                for (uint32_t i = 0; i < a->n; i++)
                        af_buf_put_u64(&w->body, (uint64_t)a->ints[i]);
                break;
        case AF_ATTR_KIND_STRING:
                af_buf_put_field(&w->body, a->s, strlen(a->s));
                break;
        case AF_ATTR_KIND_DIMS:
                af_buf_put_u32(&w->body, a->n);
                put_exprs(w, a->dims, a->n);
                break;
        }
}

/* Buffer numbers by first use; an input that shares with no used one has a number of its own. */
static int put_inputs(struct writer *w) {
        uint32_t *buffers = af_arena_calloc(w->arena, (size_t)w->g->n_inputs + 1, sizeof(*buffers)); /* number + 1 */
        uint32_t n_buffers = 0;

        if (!buffers)
                return -ENOMEM;
        af_buf_put_u32(&w->body, w->order.n_inputs);
        for (uint32_t i = 0; i < w->order.n_inputs; i++) {
                const struct af_graph_input *in = &w->g->inputs[w->order.inputs[i]];
                if (buffers[in->buffer] == 0)
                        buffers[in->buffer] = ++n_buffers;
                put_type(w, &w->g->values[in->value]);
                put_expr(w, in->offset);
                af_buf_put_u32(&w->body, in->align);
                af_buf_put_u32(&w->body, buffers[in->buffer] - 1);
                af_buf_put_u8(&w->body, in->host);
        }
        return 0;
}

static void put_node(struct writer *w, uint32_t n) {
        const struct af_node *node = &w->g->nodes[n];

        af_buf_put_u16(&w->body, (uint16_t)node->op);
        af_buf_put_u8(&w->body, (uint8_t)node->n_attrs);
        af_buf_put_u32(&w->body, node->n_in);
        af_buf_put_u32(&w->body, node->n_out);
        for (uint32_t j = 0; j < node->n_in; j++)
                af_buf_put_u32(&w->body, w->value_number[af_canon_operand(w->g, &w->order, n, j)]);
        for (uint32_t i = 0; i < node->n_attrs; i++)
                put_attr(w, &node->attrs[i]);
        for (uint32_t j = 0; j < node->n_out; j++)
                put_type(w, &w->g->values[node->out[j]]);
}

/* Everything that refers to expressions. */
static int put_body(struct writer *w) {
        const struct af_graph *g = w->g;
        int r = put_inputs(w);

        if (r < 0)
                return r;
        af_buf_put_u32(&w->body, w->order.n_constants);
        for (uint32_t i = 0; i < w->order.n_constants; i++) {
                const struct af_graph_constant *c = &g->constants[w->order.constants[i]];
                put_type(w, &g->values[c->value]);
                af_buf_put_field(&w->body, c->bytes, c->n_bytes);
        }
        af_buf_put_u32(&w->body, w->order.n_nodes);
        for (uint32_t i = 0; i < w->order.n_nodes; i++)
                put_node(w, w->order.nodes[i]);
        af_buf_put_u32(&w->body, g->n_outputs);
        for (uint32_t i = 0; i < g->n_outputs; i++) {
                const struct af_graph_output *o = &g->outputs[i];
                af_buf_put_u32(&w->body, w->value_number[w->order.value_of[o->value]]);
                af_buf_put_u32(&w->body, o->alias_of == AF_NONE ? AF_NONE : w->order.input_slot[o->alias_of]);
                af_buf_put_u8(&w->body, o->strides != NULL);
                if (o->strides)
                        put_exprs(w, o->strides, g->values[o->value].rank);
        }
        return af_buf_error(&w->body);
}

static int number_values(struct writer *w) {
        const struct af_graph *g = w->g;
        uint32_t next = 0;

        w->value_number = af_arena_calloc(w->arena, (size_t)g->n_values + 1, sizeof(*w->value_number));
        if (!w->value_number)
                return -ENOMEM;
        for (uint32_t i = 0; i < w->order.n_inputs; i++)
                w->value_number[g->inputs[w->order.inputs[i]].value] = next++;
        for (uint32_t i = 0; i < w->order.n_constants; i++)
                w->value_number[g->constants[w->order.constants[i]].value] = next++;
        for (uint32_t i = 0; i < w->order.n_nodes; i++) {
                const struct af_node *n = &g->nodes[w->order.nodes[i]];
                for (uint32_t j = 0; j < n->n_out; j++)
                        w->value_number[n->out[j]] = next++;
        }
        return 0;
}

static int compare_symbols(const void *a, const void *b, void *userdata) {
        const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
        const struct af_graph_symbol *s = &((const struct af_graph *)userdata)->symbols[x];
        const struct af_graph_symbol *t = &((const struct af_graph *)userdata)->symbols[y];

        if (s->min != t->min)
                return s->min < t->min ? -1 : 1;
        if (s->max != t->max)
                return s->max < t->max ? -1 : 1;
        if (s->multiple_of != t->multiple_of)
                return s->multiple_of < t->multiple_of ? -1 : 1;
        return x < y ? -1 : x > y;
}

/* Marks what used expressions are made of, and numbers the symbols met only there. */
static int number_rest(struct writer *w) {
        const struct af_graph *g = w->g;
        uint32_t *rest = af_arena_calloc(w->arena, (size_t)g->n_symbols + 1, sizeof(*rest)), n = 0;

        if (!rest)
                return -ENOMEM;
        for (uint32_t i = g->exprs.n_exprs; i-- > 0;) {
                const struct af_expr *e = &g->exprs.exprs[i];
                if (w->used[i] && e->kind != AF_EXPR_CONST && e->kind != AF_EXPR_SYMBOL)
                        w->used[e->a] = w->used[e->b] = 1;
        }
        for (uint32_t i = 0; i < g->exprs.n_exprs; i++) {
                const struct af_expr *e = &g->exprs.exprs[i];
                if (w->used[i] && e->kind == AF_EXPR_SYMBOL && w->symbol_number[e->value] == AF_NONE)
                        rest[n++] = (uint32_t)e->value;
        }
        qsort_r(rest, n, sizeof(*rest), compare_symbols, (void *)g);
        for (uint32_t i = 0; i < n; i++)
                w->symbol_number[rest[i]] = w->n_symbols++;
        return 0;
}

/* The used expressions anew, in the normal form that the canonical symbol numbers give. */
static int rebuild_exprs(struct writer *w) {
        const struct af_graph *g = w->g;
        int r = 0;

        af_expr_pool_init(&w->exprs, w->arena);
        for (uint32_t i = 0; i < g->exprs.n_exprs && r == 0; i++) {
                const struct af_expr *e = &g->exprs.exprs[i];
                if (!w->used[i])
                        continue;
                if (e->kind == AF_EXPR_CONST)
                        r = af_expr_const(&w->exprs, e->value, &w->rebuilt[i]);
                else if (e->kind == AF_EXPR_SYMBOL)
                        r = af_expr_symbol(&w->exprs, w->symbol_number[e->value], &w->rebuilt[i]);
                else
                        r = af_expr_binary(&w->exprs, e->kind, w->rebuilt[e->a], w->rebuilt[e->b], &w->rebuilt[i]);
        }
        if (r != 0)
                return r < 0 ? r : -EOVERFLOW;
        w->written = af_arena_calloc(w->arena, (size_t)w->exprs.n_exprs + 1, sizeof(*w->written));
        if (!w->written)
                return -ENOMEM;
        memset(w->written, 0xff, ((size_t)w->exprs.n_exprs + 1) * sizeof(*w->written));
        return 0;
}

static int scan_exprs(struct writer *w) {
        const struct af_graph *g = w->g;

        w->used = af_arena_calloc(w->arena, (size_t)g->exprs.n_exprs + 1, 1);
        w->rebuilt = af_arena_calloc(w->arena, (size_t)g->exprs.n_exprs + 1, sizeof(*w->rebuilt));
        w->symbol_number = af_arena_calloc(w->arena, (size_t)g->n_symbols + 1, sizeof(*w->symbol_number));
        if (!w->used || !w->rebuilt || !w->symbol_number)
                return -ENOMEM;
        memset(w->symbol_number, 0xff, ((size_t)g->n_symbols + 1) * sizeof(*w->symbol_number));
        w->scanning = true;
        int r = put_body(w);
        if (r == 0)
                r = number_rest(w);
        if (r == 0)
                r = rebuild_exprs(w);
        w->scanning = false;
        af_buf_clear(&w->body);
        return r;
}

static void put_text(struct af_buf *out, const char *s) {
        af_buf_put_u8(out, s != NULL);
        if (s)
                af_buf_put_field(out, s, strlen(s));
}

static int put_symbols(const struct writer *w, struct af_buf *out) {
        const struct af_graph *g = w->g;
        uint32_t *at = af_arena_calloc(w->arena, (size_t)w->n_symbols + 1, sizeof(*at));

        if (!at)
                return -ENOMEM;
        for (uint32_t i = 0; i < g->n_symbols; i++)
                if (w->symbol_number[i] != AF_NONE)
                        at[w->symbol_number[i]] = i;
        af_buf_put_u32(out, w->n_symbols);
        for (uint32_t i = 0; i < w->n_symbols; i++) {
                af_buf_put_u64(out, (uint64_t)g->symbols[at[i]].min);
                af_buf_put_u64(out, (uint64_t)g->symbols[at[i]].max);
                af_buf_put_u64(out, (uint64_t)g->symbols[at[i]].multiple_of);
        }
        return 0;
}

static uint32_t *copy_ids(const uint32_t *ids, uint32_t n) {
        uint32_t *copy = malloc(((size_t)n + 1) * sizeof(*copy));

        if (copy && n > 0)
                memcpy(copy, ids, n * sizeof(*copy));
        return copy;
}

/* Slots by the sender's numbers. */
static int make_map(const struct writer *w, struct af_slot_map *ret_map) {
        const struct af_graph *g = w->g;
        struct af_slot_map map = {.n_inputs = g->n_inputs, .n_nodes = g->n_nodes, .n_symbols = g->n_symbols};

        map.inputs = copy_ids(w->order.input_slot, map.n_inputs);
        map.nodes = copy_ids(w->order.node_number, map.n_nodes);
        map.symbols = copy_ids(w->symbol_number, map.n_symbols);
        if (!map.inputs || !map.nodes || !map.symbols) {
                af_slot_map_deinit(&map);
                return -ENOMEM;
        }
        for (uint32_t i = 0; i < g->n_nodes; i++)
                if (g->nodes[i].source < map.n_nodes)
                        map.nodes[g->nodes[i].source] = w->order.node_number[i];
        *ret_map = map;
        return 0;
}

static int write_all(struct writer *w, struct af_buf *out) {
        const struct af_graph *g = w->g;
        int r = af_canon_order_make(g, w->arena, &w->order);

        if (r == 0)
                r = number_values(w);
        if (r == 0)
                r = scan_exprs(w);
        if (r == 0)
                r = put_body(w);
        if (r < 0)
                return r;
        af_buf_put_u32(out, AF_CANON_MAGIC);
        af_buf_put_u32(out, AF_CANON_VERSION);
        af_buf_put_u8(out, (uint8_t)g->numerics);
        af_buf_put_u8(out, (uint8_t)g->twin);
        put_text(out, g->soc);
        put_text(out, g->toolchain);
        r = put_symbols(w, out);
        if (r < 0)
                return r;
        af_buf_put_u32(out, w->n_written);
        af_buf_put(out, w->table.data, w->table.size);
        af_buf_put(out, w->body.data, w->body.size);
        if (af_buf_error(&w->table))
                return af_buf_error(&w->table);
        return af_buf_error(&w->body) ? af_buf_error(&w->body) : af_buf_error(out);
}

int af_canon_write(const struct af_graph *g, struct af_buf *out, struct af_slot_map *ret_map) {
        struct af_arena arena;
        struct writer w = {.g = g, .arena = &arena};

        af_arena_init(&arena, 0);
        int r = write_all(&w, out);
        if (r == 0 && ret_map)
                r = make_map(&w, ret_map);
        af_buf_deinit(&w.table);
        af_buf_deinit(&w.body);
        af_arena_deinit(&arena);
        return r;
}

int af_canon_verify(const void *p, size_t n, struct af_diags *diags) {
        struct af_buf again = AF_BUF_INIT;
        struct af_arena arena;
        struct af_graph g;

        af_arena_init(&arena, 0);
        int r = af_canon_read(&g, &arena, p, n, diags);
        if (r == 0)
                r = af_canon_write(&g, &again, NULL);
        if (r == 0 && (again.size != n || memcmp(again.data, p, n) != 0)) {
                af_diag_error(diags, "canonical form", "the bytes are not the canonical form of the graph that they hold");
                r = AF_CANON_E_NOT_CANONICAL;
        }
        af_buf_deinit(&again);
        af_arena_deinit(&arena);
        return r;
}
