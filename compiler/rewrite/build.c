/* SPDX-License-Identifier: Apache-2.0 */
/* The builder's storage: nodes and values of the new graph, equal nodes made one. */
#include <errno.h>
#include <string.h>

#include "base/le.h"
#include "compiler/rewrite/build.h"

static int copy_exprs(struct rw *b) {
        const struct af_expr_pool *from = &b->from->exprs;
        b->g.exprs.cap_exprs = from->n_exprs;
        if (from->exprs)
                b->g.exprs.exprs = af_arena_memdup(b->g.arena, from->exprs, from->n_exprs * sizeof(*from->exprs));
        if (from->table)
                b->g.exprs.table = af_arena_memdup(b->g.arena, from->table, from->table_size * sizeof(*from->table));
        return (from->exprs && !b->g.exprs.exprs) || (from->table && !b->g.exprs.table) ? -ENOMEM : 0;
}

static int add_value(struct rw *b, const struct af_value *v, uint32_t *ret_id) {
        int r = af_arena_grow(b->g.arena, &b->g.values, &b->cap_values, b->g.n_values + 1, sizeof(*v));
        if (r)
                return r;
        b->g.values[b->g.n_values] = *v;
        *ret_id = b->g.n_values++;
        return 0;
}

static int take_sources(struct rw *b) {
        const struct af_graph *from = b->from;
        struct af_arena *arena = b->g.arena;
        b->g.inputs = af_arena_calloc(arena, from->n_inputs, sizeof(*from->inputs));
        b->cap_constants = from->n_constants + 8;
        b->g.constants = af_arena_calloc(arena, b->cap_constants, sizeof(*from->constants));
        if (!b->g.inputs || !b->g.constants)
                return -ENOMEM;
        for (uint32_t i = 0; i < from->n_inputs + from->n_constants; i++) {
                bool input = i < from->n_inputs;
                uint32_t k = input ? i : i - from->n_inputs, old = input ? from->inputs[k].value : from->constants[k].value, id;
                int r = add_value(b, &from->values[old], &id);
                if (r)
                        return r;
                b->map[old] = id;
                if (input) {
                        b->g.inputs[k] = from->inputs[k];
                        b->g.inputs[k].value = id;
                } else {
                        b->g.constants[k] = from->constants[k];
                        b->g.constants[k].value = id;
                }
        }
        return 0;
}

static int bounds_make(struct rw *b) {
        uint32_t n = b->from->n_symbols;
        int64_t *mins = af_arena_calloc(b->g.arena, n, sizeof(*mins)), *maxs = af_arena_calloc(b->g.arena, n, sizeof(*maxs));
        if (!mins || !maxs)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++) {
                mins[i] = b->from->symbols[i].min;
                maxs[i] = b->from->symbols[i].max;
        }
        b->bounds = (struct af_infer_bounds){mins, maxs};
        return 0;
}

int rw_begin(struct rw *b, const struct af_graph *from) {
        *b = (struct rw){.from = from, .g = *from};
        b->g.values = NULL;
        b->g.nodes = NULL;
        b->g.inputs = NULL;
        b->g.outputs = NULL;
        b->g.n_values = b->g.n_nodes = 0;
        b->map = af_arena_calloc(from->arena, from->n_values, sizeof(*b->map));
        b->is_output = af_arena_calloc(from->arena, from->n_values, sizeof(*b->is_output));
        int r = b->map && b->is_output ? copy_exprs(b) : -ENOMEM;
        if (!r)
                r = bounds_make(b);
        if (!r)
                r = af_arena_grow(from->arena, &b->g.values, &b->cap_values, from->n_values + from->n_values / 4 + 16,
                                  sizeof(*b->g.values));
        if (!r)
                r = af_arena_grow(from->arena, &b->g.nodes, &b->cap_nodes, from->n_nodes + from->n_nodes / 4 + 16, sizeof(*b->g.nodes));
        if (r)
                return r;
        if (from->n_values)
                memset(b->map, 0xff, from->n_values * sizeof(*b->map));
        for (uint32_t i = 0; i < from->n_outputs; i++)
                b->is_output[from->outputs[i].value] = true;
        return take_sources(b);
}

/* ---- equal nodes are one ---- */

static uint64_t mix(uint64_t h, uint64_t v) {
        h = (h ^ v) * 0x9e3779b97f4a7c15u;
        return h ^ h >> 29;
}

static uint64_t hash_attr(uint64_t h, const struct af_attr *a) {
        uint64_t f;
        memcpy(&f, &a->f, sizeof(f));
        h = mix(mix(mix(h, a->key), (uint64_t)a->i), f ^ a->n);
        for (uint32_t i = 0; a->ints && i < a->n; i++)
                h = mix(h, (uint64_t)a->ints[i]);
        for (uint32_t i = 0; a->dims && i < a->n; i++)
                h = mix(h, a->dims[i]);
        for (const char *s = a->s; s && *s; s++)
                h = mix(h, (uint8_t)*s);
        return h;
}

static bool attr_equal(const struct af_attr *a, const struct af_attr *b) {
        if (a->key != b->key || a->i != b->i || a->is_int != b->is_int || a->n != b->n || memcmp(&a->f, &b->f, sizeof(a->f)) != 0)
                return false;
        if (strcmp(a->s ? a->s : "", b->s ? b->s : "") != 0 || !a->ints != !b->ints || !a->dims != !b->dims)
                return false;
        return !(a->ints && memcmp(a->ints, b->ints, a->n * sizeof(*a->ints)) != 0) &&
               !(a->dims && memcmp(a->dims, b->dims, a->n * sizeof(*a->dims)) != 0);
}

static uint64_t hash_node(const struct rw *b, const struct af_node *n, enum af_dtype dtype) {
        uint64_t h = mix(n->op, dtype);
        for (uint32_t i = 0; i < n->n_in; i++)
                h = mix(h, n->in[i]);
        for (uint32_t i = 0; i < n->n_attrs; i++)
                h = hash_attr(h, &n->attrs[i]);
        return h;
}

static bool node_equal(const struct rw *b, const struct af_node *x, const struct af_node *y, enum af_dtype dtype) {
        if (x->op != y->op || x->n_in != y->n_in || x->n_attrs != y->n_attrs || x->n_out != 1 || b->g.values[x->out[0]].dtype != dtype)
                return false;
        if (x->n_in && memcmp(x->in, y->in, x->n_in * sizeof(*x->in)) != 0)
                return false;
        for (uint32_t i = 0; i < x->n_attrs; i++)
                if (!attr_equal(&x->attrs[i], &y->attrs[i]))
                        return false;
        return true;
}

/* Doubles a table of ids below n_ids; hash_of tells each one's place. */
static int table_grow(struct rw *b, uint32_t **table, uint32_t *size, uint32_t n_ids, uint64_t (*hash_of)(const struct rw *, uint32_t)) {
        uint32_t n = *size ? 2 * *size : 64;
        uint32_t *t = af_arena_calloc(b->g.arena, n, sizeof(*t));
        if (!t)
                return -ENOMEM;
        memset(t, 0xff, n * sizeof(*t));
        for (uint32_t i = 0; i < *size; i++) {
                if ((*table)[i] == AF_NONE || (*table)[i] >= n_ids)
                        continue;
                uint64_t at = hash_of(b, (*table)[i]);
                while (t[at & (n - 1)] != AF_NONE)
                        at++;
                t[at & (n - 1)] = (*table)[i];
        }
        *table = t;
        *size = n;
        return 0;
}

static uint64_t hash_of_node(const struct rw *b, uint32_t node) {
        const struct af_node *n = &b->g.nodes[node];
        return hash_node(b, n, b->g.values[n->out[0]].dtype);
}

/* The node equal to n, or n_nodes after it was entered under that number: the caller appends it. AF_NONE: no memory. */
static uint32_t find_or_enter(struct rw *b, const struct af_node *n, enum af_dtype dtype) {
        if (2 * (b->n_table + 1) > b->table_size && table_grow(b, &b->table, &b->table_size, b->g.n_nodes, hash_of_node))
                return AF_NONE;
        uint64_t at = hash_node(b, n, dtype);
        for (;; at++) {
                uint32_t *slot = &b->table[at & (b->table_size - 1)];
                if (*slot == AF_NONE) {
                        *slot = b->g.n_nodes;
                        b->n_table++;
                        return b->g.n_nodes;
                }
                if (*slot < b->g.n_nodes && node_equal(b, &b->g.nodes[*slot], n, dtype))
                        return *slot;
        }
}

static uint64_t hash_of_scalar(const struct rw *b, uint32_t constant) {
        const struct af_graph_constant *c = &b->g.constants[constant];
        uint64_t bits = 0;
        af_value_scalar(&b->g, c->value, &bits);
        return mix(b->g.values[c->value].dtype, bits);
}

uint32_t rw_fail(struct rw *b) {
        if (!b->error)
                b->error = AF_GRAPH_E_INVALID;
        return AF_NONE;
}
static uint32_t no_memory(struct rw *b) {
        b->error = -ENOMEM;
        return AF_NONE;
}

uint32_t rw_scalar_bits(struct rw *b, enum af_dtype dtype, uint64_t bits) {
        if (b->error)
                return AF_NONE;
        if (2 * (b->n_scalars + 1) > b->scalars_size && table_grow(b, &b->scalars, &b->scalars_size, b->g.n_constants, hash_of_scalar))
                return no_memory(b);
        uint64_t at = mix(dtype, bits), have;
        for (; b->scalars[at & (b->scalars_size - 1)] != AF_NONE; at++) {
                const struct af_graph_constant *c = &b->g.constants[b->scalars[at & (b->scalars_size - 1)]];
                if (b->g.values[c->value].dtype == dtype && af_value_scalar(&b->g, c->value, &have) && have == bits)
                        return c->value;
        }
        uint8_t *bytes = af_arena_alloc(b->g.arena, 8);
        struct af_graph_constant c = {.bytes = bytes, .n_bytes = af_dtype_size(dtype)};
        struct af_value v = {.kind = AF_VALUE_CONST, .dtype = dtype, .index = b->g.n_constants};
        if (!bytes || af_arena_grow(b->g.arena, &b->g.constants, &b->cap_constants, b->g.n_constants + 1, sizeof(c)) ||
            add_value(b, &v, &c.value))
                return no_memory(b);
        af_le_put(bytes, bits, 8);
        b->scalars[at & (b->scalars_size - 1)] = b->g.n_constants;
        b->n_scalars++;
        b->g.constants[b->g.n_constants++] = c;
        return c.value;
}

/* ---- nodes ---- */

static int append(struct rw *b, struct af_node n) {
        int r = af_arena_grow(b->g.arena, &b->g.nodes, &b->cap_nodes, b->g.n_nodes + 1, sizeof(n));
        if (!r)
                b->g.nodes[b->g.n_nodes++] = n;
        return r;
}

static struct af_node copy_of(struct rw *b, const struct af_node *old, uint32_t *ids) {
        struct af_node n = *old;
        for (uint32_t i = 0; i < n.n_in; i++)
                ids[i] = b->map[old->in[i]];
        n.in = ids;
        n.out = ids + n.n_in;
        return n;
}

int rw_keep(struct rw *b, uint32_t node, bool unify) {
        const struct af_node *old = &b->from->nodes[node];
        uint32_t *ids = af_arena_calloc(b->g.arena, (size_t)old->n_in + old->n_out, sizeof(*ids));
        if (!ids)
                return -ENOMEM;
        struct af_node n = copy_of(b, old, ids);
        const struct af_value *v = n.n_out ? &b->from->values[old->out[0]] : NULL;
        if (unify && n.n_out == 1 && n.op != AF_OP_OPAQUE && !v->strides && !b->is_output[old->out[0]]) {
                uint32_t same = find_or_enter(b, &n, v->dtype);
                if (same == AF_NONE)
                        return -ENOMEM;
                if (same < b->g.n_nodes) {
                        b->map[old->out[0]] = b->g.nodes[same].out[0];
                        return 0;
                }
        }
        for (uint32_t i = 0; i < n.n_out; i++) {
                struct af_value out = b->from->values[old->out[i]];
                out.index = b->g.n_nodes;
                int r = add_value(b, &out, &ids[n.n_in + i]);
                if (r)
                        return r;
                b->map[old->out[i]] = ids[n.n_in + i];
        }
        return append(b, n);
}

static bool infer(struct rw *b, struct af_node *n, enum af_dtype dtype, struct af_value *ret) {
        struct af_infer_operand few[8], *operands = few;
        struct af_inferred inferred;
        if (n->n_in > AF_ARRAY_SIZE(few))
                operands = af_arena_calloc(b->g.arena, n->n_in, sizeof(*operands));
        if (!operands)
                return no_memory(b) != AF_NONE;
        for (uint32_t i = 0; i < n->n_in; i++) {
                const struct af_value *v = &b->g.values[n->in[i]];
                operands[i] = (struct af_infer_operand){.dtype = v->dtype, .rank = v->rank, .dims = v->dims};
                operands[i].scalar = af_value_is_scalar(&b->g, n->in[i]);
        }
        int r = af_infer_within(&b->g.exprs, b->g.arena, &b->bounds, n->op, operands, n->n_in, n->attrs, n->n_attrs, "", &inferred, NULL);
        if (r < 0)
                return no_memory(b) != AF_NONE;
        if (r == 0 && inferred.dtype == AF_DTYPE_INVALID)
                inferred.dtype = dtype;
        if (r > 0 || inferred.dtype == AF_DTYPE_INVALID || (dtype != AF_DTYPE_INVALID && dtype != inferred.dtype))
                return rw_fail(b) != AF_NONE;
        n->attrs = inferred.attrs;
        n->n_attrs = inferred.n_attrs;
        *ret = (struct af_value){.kind = AF_VALUE_NODE, .dtype = inferred.dtype, .rank = inferred.rank, .dims = inferred.dims};
        return true;
}

uint32_t rw_node(struct rw *b, enum af_op op, const uint32_t *in, uint32_t n_in, const struct af_attr *attrs, uint32_t n_attrs,
                 enum af_dtype dtype) {
        struct af_value v = {0};
        struct af_node n = {.op = op, .in = in, .n_in = n_in, .n_out = 1, .attrs = attrs, .n_attrs = n_attrs, .piece = true};
        if (b->error)
                return AF_NONE;
        for (uint32_t i = 0; i < n_in; i++)
                if (in[i] == AF_NONE)
                        return rw_fail(b);
        if (!infer(b, &n, dtype, &v))
                return AF_NONE;
        uint32_t same = find_or_enter(b, &n, v.dtype);
        if (same == AF_NONE)
                return no_memory(b);
        if (same < b->g.n_nodes)
                return b->g.nodes[same].out[0];
        uint32_t *ids = af_arena_calloc(b->g.arena, (size_t)n_in + 1, sizeof(*ids));
        if (!ids)
                return no_memory(b);
        if (n_in)
                memcpy(ids, in, n_in * sizeof(*ids));
        v.index = b->g.n_nodes;
        n.in = ids;
        n.out = ids + n_in;
        n.name = b->origin->name;
        n.origin = b->origin->origin;
        n.source = b->origin->source;
        if (add_value(b, &v, &ids[n_in]) || append(b, n))
                return no_memory(b);
        b->n_made++;
        return ids[n_in];
}

struct rw_mark rw_here(const struct rw *b) {
        return (struct rw_mark){b->g.n_nodes, b->n_made};
}
void rw_back(struct rw *b, struct rw_mark mark) {
        b->g.n_nodes = mark.n_nodes;
        b->n_made = mark.n_made;
        if (b->error > 0)
                b->error = 0;
}

int rw_note(struct rw *b, struct af_rewrite_notes *notes, enum af_rewrite_kind kind, uint32_t source, uint32_t n_nodes) {
        if (!notes)
                return 0;
        int r = af_arena_grow(b->g.arena, &notes->items, &notes->cap, notes->n + 1, sizeof(*notes->items));
        if (!r)
                notes->items[notes->n++] = (struct af_rewrite_note){kind, source, n_nodes};
        return r;
}
