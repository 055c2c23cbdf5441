/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Canonical numbering.
 *
 * Which operand of a commutative op comes first must not depend on how the sender wrote the graph, so operands are ordered by digests
 * of structure (XXH3, 128 bit; they never leave this file):
 *   1. up: every live value gets the digest of what it computes; inputs only by what they look like.
 *   2. down: every value gets a sum over its uses (consumer's own context, operand place): two inputs of one type that are used
 *      differently part here.
 *   3. up again, with the contexts of 2 mixed in.
 * Operands equal under 3 stay as given. Then one depth-first walk numbers nodes, inputs and constants.
 */
#include "compiler/graph/canon_order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "compiler/graph/internal.h"

enum tag { TAG_EXPR = 1, TAG_INPUT, TAG_CONST, TAG_NODE, TAG_OUT, TAG_LEAF, TAG_OUTPUT, TAG_ALIAS, TAG_EFFECT, TAG_USE, TAG_CONTEXT };

struct walk {
        const struct af_graph *g;
        struct af_arena *arena;
        struct af_canon_order *o;
        uint64_t *words; /* one digest's ingredients */
        uint32_t n_words;
        uint8_t *live;     /* per node */
        uint8_t *used;     /* per value */
        uint32_t *sharers; /* per buffer group: used inputs */
        struct af_canon_hash *exprs, *values, *value_context, *nodes, *node_context;
        uint32_t *first, *list; /* order edges */
};

static void put(struct walk *w, uint64_t v) {
        w->words[w->n_words++] = v;
}

static void put_hash(struct walk *w, struct af_canon_hash h) {
        put(w, h.lo);
        put(w, h.hi);
}

static struct af_canon_hash finish(struct walk *w) {
        XXH128_hash_t h = XXH3_128bits(w->words, w->n_words * sizeof(*w->words));

        w->n_words = 0;
        return (struct af_canon_hash){h.low64, h.high64};
}

static void add(struct af_canon_hash *sum, struct af_canon_hash h) {
        sum->lo += h.lo;
        sum->hi += h.hi;
}

static bool before(struct af_canon_hash a, struct af_canon_hash b) {
        return a.hi != b.hi ? a.hi < b.hi : a.lo < b.lo;
}

/* Without symbol numbers: operands of commutative kinds as a sum. */
static void hash_exprs(struct walk *w) {
        for (uint32_t i = 0; i < w->g->exprs.n_exprs; i++) {
                const struct af_expr *e = &w->g->exprs.exprs[i];
                put(w, TAG_EXPR);
                put(w, e->kind);
                if (e->kind == AF_EXPR_CONST) {
                        put(w, (uint64_t)e->value);
                } else if (e->kind == AF_EXPR_SYMBOL) {
                        const struct af_graph_symbol *s = &w->g->symbols[e->value];
                        put(w, (uint64_t)s->min);
                        put(w, (uint64_t)s->max);
                        put(w, (uint64_t)s->multiple_of);
                } else if (e->kind == AF_EXPR_FLOORDIV || e->kind == AF_EXPR_MOD || e->kind == AF_EXPR_SUB) {
                        put_hash(w, w->exprs[e->a]);
                        put_hash(w, w->exprs[e->b]);
                } else {
                        struct af_canon_hash sum = w->exprs[e->a];
                        add(&sum, w->exprs[e->b]);
                        put_hash(w, sum);
                }
                w->exprs[i] = finish(w);
        }
}

static void put_ids(struct walk *w, const uint32_t *ids, uint32_t n) {
        put(w, ids ? n : UINT64_MAX);
        for (uint32_t i = 0; ids && i < n; i++)
                put_hash(w, w->exprs[ids[i]]);
}

static void put_type(struct walk *w, const struct af_value *v) {
        put(w, v->dtype);
        put_ids(w, v->rank > 0 ? v->dims : NULL, v->rank);
        put_ids(w, v->strides, v->rank);
}

static void put_attr(struct walk *w, const struct af_attr *a) {
        uint64_t bits;

        memcpy(&bits, &a->f, sizeof(bits));
        put(w, a->key);
        put(w, (uint64_t)a->i);
        put(w, bits);
        put(w, a->is_int);
        put(w, a->s ? XXH3_64bits(a->s, strlen(a->s)) : 0);
        put(w, a->ints ? XXH3_64bits(a->ints, a->n * sizeof(*a->ints)) : a->n);
        put_ids(w, a->dims, a->n);
}

uint32_t af_canon_operand(const struct af_graph *g, const struct af_canon_order *o, uint32_t n, uint32_t j) {
        return o->value_of[g->nodes[n].in[o->swapped[n] ? 1 - j : j]];
}

static bool commutes(const struct af_node *n) {
        return (af_op_info(n->op)->flags & AF_OP_COMMUTES) && n->n_in == 2;
}

static void mark_live(struct walk *w) {
        const struct af_graph *g = w->g;

        for (uint32_t i = 0; i < g->n_nodes; i++)
                w->live[i] = g->nodes[i].effects;
        for (uint32_t i = 0; i < g->n_outputs; i++) {
                const struct af_graph_output *out = &g->outputs[i];
                w->used[out->value] = 1;
                if (g->values[out->value].kind == AF_VALUE_NODE)
                        w->live[g->values[out->value].index] = 1;
                if (out->alias_of != AF_NONE)
                        w->used[g->inputs[out->alias_of].value] = 1;
        }
        for (uint32_t i = g->n_nodes; i-- > 0;) {
                for (uint32_t j = 0; w->live[i] && j < g->nodes[i].n_in; j++) {
                        uint32_t v = g->nodes[i].in[j];
                        w->used[v] = 1;
                        if (g->values[v].kind == AF_VALUE_NODE)
                                w->live[g->values[v].index] = 1;
                }
        }
        for (uint32_t i = 0; i < g->n_inputs; i++)
                w->sharers[g->inputs[i].buffer] += w->used[g->inputs[i].value];
}

static void hash_leaves(struct walk *w) {
        const struct af_graph *g = w->g;

        for (uint32_t i = 0; i < g->n_inputs; i++) {
                const struct af_graph_input *in = &g->inputs[i];
                put(w, TAG_INPUT);
                put_type(w, &g->values[in->value]);
                put_hash(w, w->exprs[in->offset]);
                put(w, in->align);
                put(w, in->host);
                put(w, w->sharers[in->buffer]);
                w->values[in->value] = finish(w);
        }
        for (uint32_t i = 0; i < g->n_constants; i++) {
                const struct af_graph_constant *c = &g->constants[i];
                XXH128_hash_t h = XXH3_128bits(c->bytes, c->n_bytes);
                put(w, TAG_CONST);
                put_type(w, &g->values[c->value]);
                put(w, h.low64);
                put(w, h.high64);
                w->values[c->value] = finish(w);
        }
}

static bool constants_equal(const struct af_graph *g, uint32_t a, uint32_t b) {
        const struct af_graph_constant *x = &g->constants[a], *y = &g->constants[b];
        const struct af_value *v = &g->values[x->value], *u = &g->values[y->value];

        return v->dtype == u->dtype && v->rank == u->rank && (v->rank == 0 || memcmp(v->dims, u->dims, v->rank * sizeof(*v->dims)) == 0) &&
               x->n_bytes == y->n_bytes && (x->n_bytes == 0 || memcmp(x->bytes, y->bytes, x->n_bytes) == 0);
}

/* Equal constants become the first of them. */
static int merge_constants(struct walk *w) {
        const struct af_graph *g = w->g;
        uint32_t size = 16, *table;

        while (size < g->n_constants * 2u)
                size *= 2;
        table = af_arena_calloc(w->arena, size, sizeof(*table)); /* constant + 1 */
        if (!table)
                return -ENOMEM;
        for (uint32_t i = 0; i < g->n_constants; i++) {
                uint32_t v = g->constants[i].value, at = (uint32_t)w->values[v].lo & (size - 1);
                while (table[at] > 0 && !constants_equal(g, table[at] - 1, i))
                        at = (at + 1) & (size - 1);
                if (table[at] == 0)
                        table[at] = i + 1;
                uint32_t first = g->constants[table[at] - 1].value;
                w->o->value_of[v] = first;
                w->used[first] |= w->used[v];
        }
        return 0;
}

/* Digest of node n over its operands' digests, then those of its outputs. context: mixed in where not NULL. */
static void hash_node(struct walk *w, uint32_t n, const struct af_canon_hash *context) {
        const struct af_node *node = &w->g->nodes[n];

        put(w, TAG_NODE);
        put(w, node->op);
        put(w, node->effects);
        put(w, node->n_attrs);
        for (uint32_t i = 0; i < node->n_attrs; i++)
                put_attr(w, &node->attrs[i]);
        put(w, node->n_in);
        for (uint32_t j = 0; j < node->n_in; j++)
                put_hash(w, w->values[af_canon_operand(w->g, w->o, n, j)]);
        put(w, node->n_out);
        for (uint32_t j = 0; j < node->n_out; j++)
                put_type(w, &w->g->values[node->out[j]]);
        if (context)
                put_hash(w, *context);
        w->nodes[n] = finish(w);
        for (uint32_t j = 0; j < node->n_out; j++) {
                put(w, TAG_OUT);
                put_hash(w, w->nodes[n]);
                put(w, j);
                w->values[node->out[j]] = finish(w);
        }
}

static void hash_up(struct walk *w, bool with_context) {
        for (uint32_t n = 0; n < w->g->n_nodes; n++) {
                const struct af_node *node = &w->g->nodes[n];
                if (!w->live[n])
                        continue;
                if (commutes(node)) {
                        uint32_t a = w->o->value_of[node->in[0]], b = w->o->value_of[node->in[1]];
                        w->o->swapped[n] = before(w->values[b], w->values[a]);
                }
                hash_node(w, n, with_context ? &w->node_context[n] : NULL);
        }
}

static void context_of_outputs(struct walk *w) {
        const struct af_graph *g = w->g;
        uint32_t n_effects = 0;

        for (uint32_t i = 0; i < g->n_outputs; i++) {
                const struct af_graph_output *out = &g->outputs[i];
                put(w, TAG_OUTPUT);
                put(w, i);
                put_ids(w, out->strides, g->values[out->value].rank);
                put(w, out->alias_of != AF_NONE);
                add(&w->value_context[w->o->value_of[out->value]], finish(w));
                if (out->alias_of == AF_NONE)
                        continue;
                put(w, TAG_ALIAS);
                put(w, i);
                add(&w->value_context[g->inputs[out->alias_of].value], finish(w));
        }
        for (uint32_t i = 0; i < g->n_nodes; i++) {
                if (!g->nodes[i].effects)
                        continue;
                put(w, TAG_EFFECT);
                put(w, n_effects++);
                w->node_context[i] = finish(w);
        }
}

static void hash_down(struct walk *w) {
        const struct af_graph *g = w->g;

        context_of_outputs(w);
        for (uint32_t n = g->n_nodes; n-- > 0;) {
                const struct af_node *node = &g->nodes[n];
                if (!w->live[n])
                        continue;
                put(w, TAG_CONTEXT);
                put_hash(w, w->node_context[n]);
                for (uint32_t j = 0; j < node->n_out; j++)
                        put_hash(w, w->value_context[node->out[j]]);
                w->node_context[n] = finish(w);
                for (uint32_t j = 0; j < node->n_in; j++) {
                        put(w, TAG_USE);
                        put_hash(w, w->node_context[n]);
                        put_hash(w, w->nodes[n]);
                        put(w, commutes(node) ? 0 : j + 1);
                        add(&w->value_context[w->o->value_of[node->in[j]]], finish(w));
                }
        }
}

static void mix_leaf(struct walk *w, uint32_t value) {
        put(w, TAG_LEAF);
        put_hash(w, w->values[value]);
        put_hash(w, w->value_context[value]);
        w->values[value] = finish(w);
}

static int compare_edges(const void *a, const void *b, void *userdata) {
        const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
        const struct walk *w = userdata;

        if (before(w->nodes[x], w->nodes[y]))
                return -1;
        if (before(w->nodes[y], w->nodes[x]))
                return 1;
        return x < y ? -1 : x > y;
}

/* Sorts each node's order edges by digest of the node that must come first; equal ones stay. */
static void sort_edges(struct walk *w) {
        for (uint32_t n = 0; n < w->g->n_nodes; n++)
                if (w->first[n + 1] - w->first[n] > 1)
                        qsort_r(w->list + w->first[n], w->first[n + 1] - w->first[n], sizeof(*w->list), compare_edges, w);
}

struct dfs {
        uint32_t *stack, *next;
        uint32_t depth;
};

/* Numbers inputs and constants as they are met; a node that has no number yet goes on the stack. */
static void meet(struct walk *w, struct dfs *d, uint32_t value) {
        const struct af_value *v = &w->g->values[value];
        struct af_canon_order *o = w->o;

        if (v->kind == AF_VALUE_INPUT) {
                if (o->input_slot[v->index] == AF_NONE) {
                        o->inputs[o->n_inputs] = v->index;
                        o->input_slot[v->index] = o->n_inputs++;
                }
        } else if (v->kind == AF_VALUE_CONST) {
                if (o->constant_slot[v->index] == AF_NONE) {
                        o->constants[o->n_constants] = v->index;
                        o->constant_slot[v->index] = o->n_constants++;
                }
        } else if (d->next[v->index] == 0 && o->node_number[v->index] == AF_NONE) {
                d->stack[d->depth++] = v->index;
        }
}

static void walk_down(struct walk *w, struct dfs *d) {
        struct af_canon_order *o = w->o;

        while (d->depth > 0) {
                uint32_t n = d->stack[d->depth - 1], at = d->next[n]++;
                const struct af_node *node = &w->g->nodes[n];
                if (at < node->n_in) {
                        meet(w, d, af_canon_operand(w->g, o, n, at));
                } else if (at - node->n_in < w->first[n + 1] - w->first[n]) {
                        uint32_t m = w->list[w->first[n] + at - node->n_in];
                        if (w->live[m] && d->next[m] == 0 && o->node_number[m] == AF_NONE)
                                d->stack[d->depth++] = m;
                } else {
                        o->nodes[o->n_nodes] = n;
                        o->node_number[n] = o->n_nodes++;
                        d->depth--;
                }
        }
}

static int number(struct walk *w) {
        const struct af_graph *g = w->g;
        struct dfs d = {
                .stack = af_arena_calloc(w->arena, (size_t)g->n_nodes + 1, sizeof(uint32_t)),
                .next = af_arena_calloc(w->arena, (size_t)g->n_nodes + 1, sizeof(uint32_t)),
        };

        if (!d.stack || !d.next)
                return -ENOMEM;
        for (uint32_t i = 0; i < g->n_outputs; i++) {
                meet(w, &d, w->o->value_of[g->outputs[i].value]);
                walk_down(w, &d);
                if (g->outputs[i].alias_of != AF_NONE)
                        meet(w, &d, g->inputs[g->outputs[i].alias_of].value);
        }
        for (uint32_t n = 0; n < g->n_nodes; n++)
                if (g->nodes[n].effects && w->o->node_number[n] == AF_NONE) {
                        d.stack[d.depth++] = n;
                        walk_down(w, &d);
                }
        return 0;
}

static uint32_t *filled(struct af_arena *arena, uint32_t n) {
        uint32_t *a = af_arena_calloc(arena, (size_t)n + 1, sizeof(*a));

        if (a)
                memset(a, 0xff, ((size_t)n + 1) * sizeof(*a));
        return a;
}

static int alloc_order(const struct af_graph *g, struct af_arena *arena, struct af_canon_order *o) {
        *o = (struct af_canon_order){
                .nodes = filled(arena, g->n_nodes),
                .inputs = filled(arena, g->n_inputs),
                .constants = filled(arena, g->n_constants),
                .node_number = filled(arena, g->n_nodes),
                .input_slot = filled(arena, g->n_inputs),
                .constant_slot = filled(arena, g->n_constants),
                .value_of = filled(arena, g->n_values),
                .swapped = af_arena_calloc(arena, (size_t)g->n_nodes + 1, 1),
        };
        if (!o->nodes || !o->inputs || !o->constants || !o->node_number || !o->input_slot || !o->constant_slot || !o->value_of ||
            !o->swapped)
                return -ENOMEM;
        for (uint32_t v = 0; v < g->n_values; v++)
                o->value_of[v] = v;
        return 0;
}

/* Words of the longest list that one digest covers. */
static size_t words_needed(const struct af_graph *g) {
        const size_t per_type = 3 + 4 * AF_LIMIT_RANK;
        size_t most = 64 + 4 * AF_LIMIT_RANK;

        for (uint32_t i = 0; i < g->n_nodes; i++) {
                const struct af_node *n = &g->nodes[i];
                size_t words = 16 + 2 * (size_t)n->n_in + per_type * n->n_out;
                for (uint32_t k = 0; k < n->n_attrs; k++)
                        words += 8 + 2 * (size_t)n->attrs[k].n;
                most = AF_MAX(most, words);
        }
        return most + per_type;
}

static int alloc_walk(struct walk *w) {
        const struct af_graph *g = w->g;

        w->words = af_arena_calloc(w->arena, words_needed(g), sizeof(*w->words));
        w->live = af_arena_calloc(w->arena, (size_t)g->n_nodes + 1, 1);
        w->used = af_arena_calloc(w->arena, (size_t)g->n_values + 1, 1);
        w->sharers = af_arena_calloc(w->arena, (size_t)g->n_inputs + 1, sizeof(*w->sharers));
        w->exprs = af_arena_calloc(w->arena, (size_t)g->exprs.n_exprs + 1, sizeof(*w->exprs));
        w->values = af_arena_calloc(w->arena, (size_t)g->n_values + 1, sizeof(*w->values));
        w->value_context = af_arena_calloc(w->arena, (size_t)g->n_values + 1, sizeof(*w->value_context));
        w->nodes = af_arena_calloc(w->arena, (size_t)g->n_nodes + 1, sizeof(*w->nodes));
        w->node_context = af_arena_calloc(w->arena, (size_t)g->n_nodes + 1, sizeof(*w->node_context));
        if (!w->words || !w->live || !w->used || !w->sharers || !w->exprs || !w->values || !w->value_context || !w->nodes ||
            !w->node_context)
                return -ENOMEM;
        return af_graph_order_edges(g, &w->first, &w->list);
}

int af_canon_order_make(const struct af_graph *g, struct af_arena *arena, struct af_canon_order *ret) {
        struct af_canon_order order;
        struct walk w = {.g = g, .arena = arena, .o = &order};

        int r = alloc_order(g, arena, &order);
        if (r == 0)
                r = alloc_walk(&w);
        if (r != 0)
                return -ENOMEM;
        mark_live(&w);
        hash_exprs(&w);
        hash_leaves(&w);
        r = merge_constants(&w);
        if (r < 0)
                return r;
        hash_up(&w, false);
        hash_down(&w);
        for (uint32_t v = 0; v < g->n_values; v++)
                if (g->values[v].kind != AF_VALUE_NODE)
                        mix_leaf(&w, v);
        hash_up(&w, true);
        sort_edges(&w);
        r = number(&w);
        if (r == 0)
                *ret = order;
        return r;
}
