/* SPDX-License-Identifier: Apache-2.0 */
/* Order of nodes: topological sort, renumbering, and the order that no operand shows (effects, in-place updates). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/graph/internal.h"

#define CYCLES_MAX      8u /* reported per run */
#define CYCLE_NAMES     8u
#define ORDER_EDGES_MAX (8u << 20) /* limit: readers times in-place updates */

enum color { WHITE, GRAY, BLACK };

struct sorter {
        const struct af_graph *g;
        const uint32_t *first, *list; /* extra edges; may be NULL */
        uint8_t *color;
        uint32_t *stack, *next; /* nodes under way; per node, its next operand or extra edge */
        uint32_t depth;
        uint32_t *order;
        uint32_t n_order;
        uint32_t n_cycles;
        struct af_diags *diags;
};

/* The producers of node n, then its extra predecessors; AF_NONE at the end. Values that are no node's are passed over. */
static uint32_t next_predecessor(struct sorter *s, uint32_t n) {
        const struct af_node *node = &s->g->nodes[n];

        while (s->next[n] < node->n_in) {
                uint32_t v = node->in[s->next[n]++];
                if (v != AF_NONE && s->g->values[v].kind == AF_VALUE_NODE)
                        return s->g->values[v].index;
        }
        if (s->first && s->next[n] - node->n_in < s->first[n + 1] - s->first[n])
                return s->list[s->first[n] + s->next[n]++ - node->n_in];
        return AF_NONE;
}

static void name_put(struct af_buf *buf, const struct af_graph *g, uint32_t n) {
        if (g->nodes[n].name && *g->nodes[n].name)
                af_buf_printf(buf, "\"%.64s\"", g->nodes[n].name);
        else
                af_buf_printf(buf, "nodes[%u]", g->nodes[n].source);
}

/* The stack from `from` on is a cycle. */
static void report_cycle(struct sorter *s, uint32_t from) {
        struct af_buf buf = AF_BUF_INIT;
        struct af_where where = af_where_node(s->g, from);
        uint32_t at = s->depth, n;

        if (s->n_cycles++ >= CYCLES_MAX)
                return;
        while (s->stack[at - 1] != from)
                at--;
        n = s->depth - at + 1;
        /* Deepest first: each is an operand of the one before it, so the arrows point the way that data flows. */
        name_put(&buf, s->g, from);
        for (uint32_t i = 0; i < n; i++) {
                uint32_t member = s->stack[s->depth - 1 - i];
                if (i == CYCLE_NAMES && n > CYCLE_NAMES + 1) {
                        af_buf_printf(&buf, " -> (%u more)", n - CYCLE_NAMES - 1);
                        i = n - 1;
                        member = from;
                }
                af_buf_put_str(&buf, " -> ");
                name_put(&buf, s->g, member);
        }
        af_buf_put_u8(&buf, 0);
        af_where_error(s->diags, &where, "",
                       s->first ? "effectful nodes keep the order of the list; nobody may read an input after its in-place update" : NULL,
                       s->first ? "the nodes cannot be put in order: %s" : "the nodes form a cycle: %s",
                       af_buf_error(&buf) ? "?" : (const char *)buf.data);
        af_buf_deinit(&buf);
}

static void visit(struct sorter *s, uint32_t root) {
        s->stack[s->depth++] = root;
        s->color[root] = GRAY;
        while (s->depth > 0) {
                uint32_t n = s->stack[s->depth - 1], p = next_predecessor(s, n);
                if (p == AF_NONE) {
                        s->color[n] = BLACK;
                        s->order[s->n_order++] = n;
                        s->depth--;
                } else if (s->color[p] == GRAY) {
                        report_cycle(s, p);
                } else if (s->color[p] == WHITE) {
                        s->color[p] = GRAY;
                        s->stack[s->depth++] = p;
                }
        }
}

int af_graph_sort(const struct af_graph *g, const uint32_t *first, const uint32_t *list, const uint32_t **ret_order,
                  struct af_diags *diags) {
        struct sorter s = {.g = g, .first = first, .list = list, .diags = diags};

        s.color = af_arena_calloc(g->arena, g->n_nodes, 1);
        s.stack = af_arena_calloc(g->arena, g->n_nodes, sizeof(*s.stack));
        s.next = af_arena_calloc(g->arena, g->n_nodes, sizeof(*s.next));
        s.order = af_arena_calloc(g->arena, g->n_nodes, sizeof(*s.order));
        if (!s.color || !s.stack || !s.next || !s.order)
                return -ENOMEM;
        for (uint32_t n = 0; n < g->n_nodes; n++)
                if (s.color[n] == WHITE)
                        visit(&s, n);
        if (s.n_cycles > 0)
                return AF_GRAPH_E_INVALID;
        *ret_order = s.order;
        return 0;
}

/* New number of every value when nodes stand in this order. */
static uint32_t *renumber(const struct af_graph *g, const uint32_t *order) {
        uint32_t *map = af_arena_calloc(g->arena, g->n_values, sizeof(*map));
        uint32_t next = 0;

        if (!map)
                return NULL;
        for (uint32_t i = 0; i < g->n_inputs; i++)
                map[g->inputs[i].value] = next++;
        for (uint32_t i = 0; i < g->n_constants; i++)
                map[g->constants[i].value] = next++;
        for (uint32_t i = 0; i < g->n_nodes; i++)
                for (uint32_t j = 0; j < g->nodes[order[i]].n_out; j++)
                        map[g->nodes[order[i]].out[j]] = next++;
        return map;
}

int af_graph_permute(struct af_graph *g, const uint32_t *order) {
        struct af_node *nodes = af_arena_calloc(g->arena, g->n_nodes, sizeof(*nodes));
        struct af_value *values = af_arena_calloc(g->arena, g->n_values, sizeof(*values));
        uint32_t *map = renumber(g, order);

        if (!nodes || !values || !map)
                return -ENOMEM;
        for (uint32_t v = 0; v < g->n_values; v++)
                values[map[v]] = g->values[v];
        for (uint32_t i = 0; i < g->n_nodes; i++) {
                struct af_node *n = &nodes[i];
                *n = g->nodes[order[i]];
                uint32_t *ids = af_arena_calloc(g->arena, (size_t)n->n_in + n->n_out, sizeof(*ids));
                if (!ids)
                        return -ENOMEM;
                for (uint32_t j = 0; j < n->n_in; j++)
                        ids[j] = n->in[j] == AF_NONE ? AF_NONE : map[n->in[j]];
                for (uint32_t j = 0; j < n->n_out; j++) {
                        ids[n->n_in + j] = map[n->out[j]];
                        values[map[n->out[j]]].index = i;
                }
                n->in = ids;
                n->out = ids + n->n_in;
        }
        for (uint32_t i = 0; i < g->n_inputs; i++)
                g->inputs[i].value = map[g->inputs[i].value];
        for (uint32_t i = 0; i < g->n_constants; i++)
                g->constants[i].value = map[g->constants[i].value];
        for (uint32_t i = 0; i < g->n_outputs; i++)
                if (g->outputs[i].value != AF_NONE)
                        g->outputs[i].value = map[g->outputs[i].value];
        g->nodes = nodes;
        g->values = values;
        return 0;
}

int af_graph_roots(const struct af_graph *g, struct af_arena *arena, uint32_t **ret_roots) {
        uint32_t *roots = af_arena_calloc(arena, g->n_values, sizeof(*roots));

        if (!roots)
                return -ENOMEM;
        for (uint32_t v = 0; v < g->n_values; v++)
                roots[v] = g->values[v].kind == AF_VALUE_INPUT ? g->values[v].index : AF_NONE;
        for (uint32_t i = 0; i < g->n_nodes; i++) {
                const struct af_node *n = &g->nodes[i];
                enum af_op_class cls = af_op_info(n->op)->cls;
                if ((cls == AF_CLASS_VIEW || cls == AF_CLASS_BROADCAST) && n->n_in == 1 && n->in[0] != AF_NONE)
                        roots[n->out[0]] = roots[n->in[0]];
        }
        *ret_roots = roots;
        return 0;
}

/* Readers of each buffer group's memory, CSR over groups; a node may stand more than once. */
struct readers {
        uint32_t *first, *list, *last; /* last: per group, the node listed last, +1 */
        uint32_t n_groups;
};

static void readers_pass(const struct af_graph *g, const uint32_t *roots, struct readers *r, bool fill) {
        memset(r->last, 0, ((size_t)r->n_groups + 1) * sizeof(*r->last));
        for (uint32_t i = 0; i < g->n_nodes; i++)
                for (uint32_t j = 0; j < g->nodes[i].n_in; j++) {
                        uint32_t root = g->nodes[i].in[j] == AF_NONE ? AF_NONE : roots[g->nodes[i].in[j]];
                        if (root == AF_NONE)
                                continue;
                        uint32_t group = g->inputs[root].buffer;
                        if (r->last[group] == i + 1)
                                continue;
                        r->last[group] = i + 1;
                        if (fill)
                                r->list[r->first[group + 1]++] = i;
                        else
                                r->first[group + 2]++;
                }
}

static int readers_make(const struct af_graph *g, struct readers *r) {
        uint32_t *roots;
        int e = af_graph_roots(g, g->arena, &roots);

        if (e < 0)
                return e;
        for (uint32_t i = 0; i < g->n_inputs; i++)
                r->n_groups = AF_MAX(r->n_groups, g->inputs[i].buffer + 1);
        r->first = af_arena_calloc(g->arena, (size_t)r->n_groups + 2, sizeof(*r->first));
        r->last = af_arena_calloc(g->arena, (size_t)r->n_groups + 1, sizeof(*r->last));
        if (!r->first || !r->last)
                return -ENOMEM;
        readers_pass(g, roots, r, false);
        for (uint32_t group = 0; group < r->n_groups; group++)
                r->first[group + 2] += r->first[group + 1];
        r->list = af_arena_calloc(g->arena, r->first[r->n_groups + 1], sizeof(*r->list));
        if (!r->list)
                return -ENOMEM;
        readers_pass(g, roots, r, true);
        return 0;
}

/* The node that makes the result of an in-place output, or AF_NONE: inputs and constants are made before everything. */
static uint32_t updater_of(const struct af_graph *g, uint32_t output) {
        const struct af_graph_output *o = &g->outputs[output];

        if (o->alias_of == AF_NONE || o->value == AF_NONE || g->values[o->value].kind != AF_VALUE_NODE)
                return AF_NONE;
        return g->values[o->value].index;
}

static int by_source(const void *a, const void *b, void *userdata) {
        const struct af_node *nodes = userdata;
        uint32_t x = nodes[*(const uint32_t *)a].source, y = nodes[*(const uint32_t *)b].source;

        return x < y ? -1 : x > y;
}

/* Effectful nodes in the sender's order, in the graph's arena. 0 or -ENOMEM. */
static int effectful_nodes(const struct af_graph *g, uint32_t **ret_nodes, uint32_t *ret_n) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < g->n_nodes; i++)
                n += g->nodes[i].effects;
        uint32_t *nodes = af_arena_calloc(g->arena, n, sizeof(*nodes));
        if (!nodes)
                return -ENOMEM;
        *ret_n = n;
        n = 0;
        for (uint32_t i = 0; i < g->n_nodes; i++)
                if (g->nodes[i].effects)
                        nodes[n++] = i;
        qsort_r(nodes, n, sizeof(*nodes), by_source, g->nodes);
        *ret_nodes = nodes;
        return 0;
}

/* Where edges come from. */
struct edge_facts {
        struct readers readers;
        uint32_t *effectful;
        uint32_t n_effectful;
};

/* Counts (list NULL) or writes the edges; at[n + 1] is where the next edge of node n goes, at[n + 2] its count. False beyond the limit. */
static bool edges_pass(const struct af_graph *g, const struct edge_facts *facts, uint32_t *at, uint32_t *list) {
        const struct readers *readers = &facts->readers;
        uint32_t n_edges = 0;

        for (uint32_t k = 1; k < facts->n_effectful; k++) {
                if (list)
                        list[at[facts->effectful[k] + 1]++] = facts->effectful[k - 1];
                else
                        at[facts->effectful[k] + 2]++;
        }
        for (uint32_t o = 0; o < g->n_outputs; o++) {
                uint32_t u = updater_of(g, o);
                if (u == AF_NONE)
                        continue;
                uint32_t group = g->inputs[g->outputs[o].alias_of].buffer;
                for (uint32_t k = readers->first[group]; k < readers->first[group + 1]; k++) {
                        if (readers->list[k] == u)
                                continue;
                        if (list)
                                list[at[u + 1]++] = readers->list[k];
                        else if (n_edges++ >= ORDER_EDGES_MAX)
                                return false;
                        else
                                at[u + 2]++;
                }
        }
        return true;
}

int af_graph_order_edges(const struct af_graph *g, uint32_t **ret_first, uint32_t **ret_list) {
        uint32_t *first = af_arena_calloc(g->arena, (size_t)g->n_nodes + 2, sizeof(*first)), *list;
        struct edge_facts facts = {0};
        bool in_place = false;
        int r = effectful_nodes(g, &facts.effectful, &facts.n_effectful);

        for (uint32_t o = 0; o < g->n_outputs; o++)
                in_place |= updater_of(g, o) != AF_NONE;
        if (in_place && r == 0)
                r = readers_make(g, &facts.readers);
        if (r < 0 || !first)
                return -ENOMEM;
        if (!edges_pass(g, &facts, first, NULL))
                return AF_GRAPH_E_INVALID;
        for (uint32_t n = 0; n < g->n_nodes; n++)
                first[n + 2] += first[n + 1];
        list = af_arena_calloc(g->arena, first[g->n_nodes + 1], sizeof(*list));
        if (!list)
                return -ENOMEM;
        edges_pass(g, &facts, first, list);
        *ret_first = first;
        *ret_list = list;
        return 0;
}
