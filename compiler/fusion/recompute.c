/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that are cheaper to compute again than to read: a mask made of indices, a cast of something narrower, a broadcast of something
 * small. Where a kernel stores such a value for other kernels, each of those that reads less that way gets nodes of its own for it; once
 * nobody reads the stored one it is not stored. Whether that paid is seen when the new graph has been fused.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/fusion/fusion.h"
#include "compiler/graph/traffic.h"

#define MAX_CHAIN   8u  /* nodes computed again for one value */
#define MAX_LEAVES  8u  /* values that they read */
#define MAX_READERS 64u /* kernels that read one value */

struct chain {
        uint32_t nodes[MAX_CHAIN], n_nodes; /* consumers before producers */
        uint32_t leaves[MAX_LEAVES], n_leaves;
};
struct copy {                          /* of value's chain, for a group */
        uint32_t value, group, before; /* node that the copy stands before */
        struct chain chain;
};
struct recompute {
        const struct af_graph *g;
        const struct af_fusion *f;
        const uint32_t *first, *users;
        const bool *updated; /* per buffer: taken over in place */
        bool *is_output;     /* per value */
        struct copy *copies;
        uint32_t n_copies, cap_copies;
};

static bool is_scalar(const struct af_graph *g, uint32_t value) {
        return g->values[value].kind == AF_VALUE_CONST && g->values[value].rank == 0;
}

static bool is_cheap(const struct af_node *n) {
        const struct af_op_info *info = af_op_info(n->op);
        switch (info->cls) {
        case AF_CLASS_ELEMENTWISE:
        case AF_CLASS_COMPARE:
        case AF_CLASS_SELECT:
        case AF_CLASS_CAST:
        case AF_CLASS_BROADCAST:
        case AF_CLASS_VIEW:
        case AF_CLASS_IOTA:
                return n->n_out == 1 && !n->effects && !(info->flags & AF_OP_HEAVY);
        default:
                return false;
        }
}

static bool has(const uint32_t *list, uint32_t n, uint32_t x) {
        for (uint32_t i = 0; i < n; i++)
                if (list[i] == x)
                        return true;
        return false;
}

/* Whether a value stands in memory whatever is done here, unchanged for as long as anyone may read it. */
static bool in_memory(const struct recompute *r, uint32_t value, uint32_t group) {
        const struct af_value *v = &r->g->values[value];
        if (v->kind == AF_VALUE_INPUT)
                return !r->updated[r->g->inputs[v->index].buffer];
        return v->kind == AF_VALUE_CONST || r->f->group_of[v->index] != group;
}

/* The nodes of `group` that make value out of what is in memory; false where that is too much. */
static bool find_chain(const struct recompute *r, uint32_t value, uint32_t group, struct chain *ret) {
        struct chain c = {.nodes = {r->g->values[value].index}, .n_nodes = 1};
        for (uint32_t i = 0; i < c.n_nodes; i++) {
                const struct af_node *n = &r->g->nodes[c.nodes[i]];
                if (!is_cheap(n))
                        return false;
                for (uint32_t k = 0; k < n->n_in; k++) {
                        uint32_t v = n->in[k];
                        if (is_scalar(r->g, v))
                                continue;
                        if (r->g->values[v].kind == AF_VALUE_NODE && r->f->group_of[r->g->values[v].index] == group) {
                                uint32_t from = r->g->values[v].index;
                                if (has(c.nodes, c.n_nodes, from))
                                        continue;
                                if (c.n_nodes == MAX_CHAIN)
                                        return false;
                                c.nodes[c.n_nodes++] = from;
                        } else if (!has(c.leaves, c.n_leaves, v)) {
                                if (c.n_leaves == MAX_LEAVES || !in_memory(r, v, group))
                                        return false;
                                c.leaves[c.n_leaves++] = v;
                        }
                }
        }
        *ret = c;
        return true;
}

/* Bytes that a group reads less if it has the chain instead of the value. */
static int64_t gain(const struct recompute *r, uint32_t value, const struct chain *c, uint32_t group) {
        const struct af_group *to = &r->f->groups[group];
        int64_t bytes = af_value_bytes(r->g, value);
        for (uint32_t i = 0; i < c->n_leaves; i++)
                if (!has(to->inputs, to->n_inputs, c->leaves[i]))
                        bytes -= af_value_bytes(r->g, c->leaves[i]);
        return bytes;
}

static int add_copy(struct recompute *r, uint32_t value, uint32_t group, uint32_t before, const struct chain *c) {
        int e = af_arena_grow(r->g->arena, &r->copies, &r->cap_copies, r->n_copies + 1, sizeof(*r->copies));
        if (!e)
                r->copies[r->n_copies++] = (struct copy){value, group, before, *c};
        return e;
}

/* Decides about one stored value: copies for all its readers where that pays with the store saved, else for those that read less. */
static int consider(struct recompute *r, uint32_t value, uint32_t group) {
        uint32_t groups[MAX_READERS], before[MAX_READERS], n = 0;
        bool all = !r->is_output[value];
        struct chain c;
        if (!find_chain(r, value, group, &c))
                return 0;
        for (uint32_t u = r->first[value]; u < r->first[value + 1]; u++) {
                uint32_t to = r->f->group_of[r->users[u]];
                if (to == group || (n > 0 && has(groups, n, to)))
                        continue;
                if (to == AF_NONE || n == MAX_READERS) { /* someone reads it from memory in any case */
                        all = false;
                        continue;
                }
                groups[n] = to;
                before[n++] = r->users[u]; /* users come in ascending order */
        }
        int64_t total = all ? af_value_bytes(r->g, value) : 0;
        for (uint32_t i = 0; i < n; i++)
                total += gain(r, value, &c, groups[i]);
        int e = 0;
        for (uint32_t i = 0; !e && i < n; i++)
                if ((all && total > 0) || gain(r, value, &c, groups[i]) > 0)
                        e = add_copy(r, value, groups[i], before[i], &c);
        return e;
}

static int by_place(const void *a, const void *b) {
        const struct copy *x = a, *y = b;
        if (x->before != y->before)
                return x->before < y->before ? -1 : 1;
        return x->value < y->value ? -1 : x->value > y->value;
}

/* The chain of a copy as new nodes at the end of ret's list; *ret_value is what stands for the copied value. */
static int put_copy(const struct af_graph *g, const struct copy *copy, struct af_graph *ret, uint32_t *from, uint32_t *ret_value) {
        uint32_t made[MAX_CHAIN], order[MAX_CHAIN], n = copy->chain.n_nodes;
        for (uint32_t i = 0; i < n; i++) { /* ascending numbers are a topological order */
                uint32_t at = i;
                for (; at > 0 && order[at - 1] > copy->chain.nodes[i]; at--)
                        order[at] = order[at - 1];
                order[at] = copy->chain.nodes[i];
        }
        for (uint32_t i = 0; i < n; i++) {
                const struct af_node *old = &g->nodes[order[i]];
                uint32_t *in = af_arena_calloc(g->arena, old->n_in, sizeof(*in)), *out = af_arena_calloc(g->arena, 1, sizeof(*out));
                if (!in || !out)
                        return -ENOMEM;
                for (uint32_t k = 0; k < old->n_in; k++) {
                        in[k] = old->in[k];
                        for (uint32_t j = 0; j < i; j++)
                                in[k] = g->nodes[order[j]].out[0] == old->in[k] ? made[j] : in[k];
                }
                *out = made[i] = ret->n_values;
                ret->values[ret->n_values] = g->values[old->out[0]];
                ret->values[ret->n_values++].index = ret->n_nodes;
                from[ret->n_nodes] = order[i];
                ret->nodes[ret->n_nodes] = *old;
                ret->nodes[ret->n_nodes].in = in;
                ret->nodes[ret->n_nodes++].out = out;
                if (old->out[0] == copy->value)
                        *ret_value = made[i];
        }
        return 0;
}

/* A node of the old graph, reading copies where its group has them: newest[v] is the last copy of v, earlier[] those before it. */
static int put_node(const struct recompute *r, uint32_t node, const uint32_t *newest, const uint32_t *earlier, const uint32_t *copied,
                    struct af_graph *ret, uint32_t *from) {
        const struct af_node *old = &r->g->nodes[node];
        uint32_t *in = NULL;
        for (uint32_t k = 0; k < old->n_in; k++)
                for (uint32_t i = newest[old->in[k]]; i != AF_NONE; i = earlier[i]) {
                        if (r->copies[i].group != r->f->group_of[node])
                                continue;
                        if (!in && !(in = af_arena_memdup(r->g->arena, old->in, old->n_in * sizeof(*in))))
                                return -ENOMEM;
                        in[k] = copied[i];
                }
        from[ret->n_nodes] = node;
        ret->nodes[ret->n_nodes] = *old;
        if (in)
                ret->nodes[ret->n_nodes].in = in;
        for (uint32_t k = 0; k < old->n_out; k++)
                ret->values[old->out[k]].index = ret->n_nodes;
        ret->n_nodes++;
        return 0;
}

static int rebuild(const struct recompute *r, struct af_graph *ret, uint32_t *from) {
        const struct af_graph *g = r->g;
        uint32_t *copied = af_arena_calloc(g->arena, r->n_copies, sizeof(*copied)), next = 0;
        uint32_t *earlier = af_arena_calloc(g->arena, r->n_copies, sizeof(*earlier));
        uint32_t *newest = af_arena_calloc(g->arena, g->n_values, sizeof(*newest));
        if (!copied || !earlier || !newest)
                return -ENOMEM;
        memset(newest, 0xff, g->n_values * sizeof(*newest));
        for (uint32_t n = 0; n < g->n_nodes; n++) {
                for (; next < r->n_copies && r->copies[next].before == n; next++) {
                        int e = put_copy(g, &r->copies[next], ret, from, &copied[next]);
                        if (e)
                                return e;
                        earlier[next] = newest[r->copies[next].value];
                        newest[r->copies[next].value] = next;
                }
                int e = put_node(r, n, newest, earlier, copied, ret, from);
                if (e)
                        return e;
        }
        return 0;
}

/* Room for the copies. */
static int grow(const struct recompute *r, struct af_graph *ret, uint32_t **ret_from) {
        const struct af_graph *g = r->g;
        uint64_t n_nodes = g->n_nodes, n_values = g->n_values;
        for (uint32_t i = 0; i < r->n_copies; i++) {
                n_nodes += r->copies[i].chain.n_nodes;
                n_values += r->copies[i].chain.n_nodes;
        }
        *ret = *g;
        ret->n_nodes = 0;
        ret->nodes = af_arena_calloc(g->arena, n_nodes, sizeof(*ret->nodes));
        ret->values = af_arena_calloc(g->arena, n_values, sizeof(*ret->values));
        *ret_from = af_arena_calloc(g->arena, n_nodes, sizeof(**ret_from));
        if (!ret->nodes || !ret->values || !*ret_from)
                return -ENOMEM;
        memcpy(ret->values, g->values, g->n_values * sizeof(*g->values));
        return 0;
}

static int init(struct recompute *r) {
        const struct af_graph *g = r->g;
        uint32_t n_buffers = 0, *first, *users;
        int e = af_graph_users(g, &first, &users);
        r->first = first;
        r->users = users;
        for (uint32_t i = 0; i < g->n_inputs; i++)
                n_buffers = AF_MAX(n_buffers, g->inputs[i].buffer + 1);
        bool *updated = af_arena_calloc(g->arena, n_buffers, sizeof(*updated));
        r->is_output = af_arena_calloc(g->arena, g->n_values, sizeof(*r->is_output));
        if (e || !updated || !r->is_output)
                return -ENOMEM;
        for (uint32_t i = 0; i < g->n_outputs; i++) {
                r->is_output[g->outputs[i].value] = true;
                if (g->outputs[i].alias_of != AF_NONE)
                        updated[g->inputs[g->outputs[i].alias_of].buffer] = true;
        }
        r->updated = updated;
        return 0;
}

int af_fusion_recompute(const struct af_graph *g, const struct af_fusion *fusion, struct af_graph *ret_graph, uint32_t **ret_from,
                        uint32_t *ret_n) {
        struct recompute r = {.g = g, .f = fusion};
        *ret_n = 0;
        if (fusion->n_groups < 2)
                return 0;
        int e = init(&r);
        for (uint32_t i = 0; !e && i < fusion->n_groups; i++)
                for (uint32_t k = 0; !e && k < fusion->groups[i].n_outputs; k++)
                        e = consider(&r, fusion->groups[i].outputs[k], i);
        if (e || r.n_copies == 0)
                return e;
        qsort(r.copies, r.n_copies, sizeof(*r.copies), by_place);
        e = grow(&r, ret_graph, ret_from);
        if (!e)
                e = rebuild(&r, ret_graph, *ret_from);
        *ret_n = r.n_copies;
        return e;
}
