/* SPDX-License-Identifier: Apache-2.0 */
/* Questions that every user of a graph asks. */
#include "compiler/graph/graph.h"

#include <errno.h>
#include <string.h>

#include "base/le.h"
#include "compiler/graph/internal.h"

const struct af_attr *af_node_attr(const struct af_node *n, enum af_attr_key key) {
        for (uint32_t i = 0; i < n->n_attrs; i++)
                if (n->attrs[i].key == key)
                        return &n->attrs[i];
        return NULL;
}

bool af_op_wants_some(enum af_op op) {
        return op == AF_OP_REDUCE_MAX || op == AF_OP_REDUCE_MIN || op == AF_OP_LOGSUMEXP || op == AF_OP_ARG_MAX || op == AF_OP_ARG_MIN;
}

bool af_node_wants_some(const struct af_node *n, uint32_t axis) {
        const struct af_attr *axes = af_node_attr(n, AF_ATTR_AXES), *one = af_node_attr(n, AF_ATTR_AXIS);
        bool reduced = !axes && (!one || one->i == axis);
        for (uint32_t i = 0; axes && i < axes->n; i++)
                reduced |= axes->ints[i] == axis;
        return reduced && af_op_wants_some(n->op);
}

bool af_node_attr_ints(const struct af_graph *g, const struct af_node *n, enum af_attr_key key, int64_t *ret_ints, uint32_t *ret_n) {
        const struct af_attr *a = af_node_attr(n, key);

        if (!a || a->n > AF_LIMIT_ATTR_ITEMS)
                return false;
        for (uint32_t i = 0; i < a->n; i++) {
                if (a->ints)
                        ret_ints[i] = a->ints[i];
                else if (!a->dims || !af_expr_is_const(&g->exprs, a->dims[i], &ret_ints[i]))
                        return false;
        }
        *ret_n = a->n;
        return true;
}

bool af_value_static_dims(const struct af_graph *g, uint32_t value, int64_t *ret_dims) {
        const struct af_value *v = &g->values[value];
        int64_t dims[AF_LIMIT_RANK];

        for (uint32_t i = 0; i < v->rank; i++)
                if (!af_expr_is_const(&g->exprs, v->dims[i], &dims[i]))
                        return false;
        memcpy(ret_dims, dims, v->rank * sizeof(*dims));
        return true;
}

bool af_value_static_strides(const struct af_graph *g, uint32_t value, int64_t *ret_strides) {
        const struct af_value *v = &g->values[value];
        int64_t strides[AF_LIMIT_RANK], dims[AF_LIMIT_RANK], next = 1;

        if (v->strides) {
                for (uint32_t i = 0; i < v->rank; i++)
                        if (!af_expr_is_const(&g->exprs, v->strides[i], &strides[i]))
                                return false;
        } else {
                if (!af_value_static_dims(g, value, dims))
                        return false;
                for (uint32_t i = v->rank; i-- > 0;) {
                        strides[i] = next;
                        if (__builtin_mul_overflow(next, dims[i], &next))
                                return false;
                }
        }
        memcpy(ret_strides, strides, v->rank * sizeof(*strides));
        return true;
}

int64_t af_value_count(const struct af_graph *g, uint32_t value) {
        int64_t dims[AF_LIMIT_RANK], count = 1;
        bool empty = false;

        for (uint32_t i = 0; i < g->values[value].rank; i++)
                if (af_expr_is_const(&g->exprs, g->values[value].dims[i], &dims[i]) && dims[i] == 0)
                        return 0; /* whatever the symbols are */
        if (!af_value_static_dims(g, value, dims))
                return -1;
        for (uint32_t i = 0; i < g->values[value].rank; i++) {
                empty |= dims[i] == 0;
                if (dims[i] != 0 && __builtin_mul_overflow(count, dims[i], &count))
                        return -1;
        }
        return empty ? 0 : count;
}

#define USUAL_SIZE 512

void af_graph_hints(const struct af_graph *g, int64_t *values) {
        for (uint32_t i = 0; i < g->n_symbols; i++) {
                const struct af_graph_symbol *s = &g->symbols[i];
                int64_t v = s->hint >= 0 ? s->hint : USUAL_SIZE;
                v = AF_MIN(v, s->max);
                v -= v % s->multiple_of;
                while (v < s->min && v <= INT64_MAX - s->multiple_of)
                        v += v + s->multiple_of <= s->min ? (s->min - v) / s->multiple_of * s->multiple_of : s->multiple_of;
                values[i] = v;
        }
}

bool af_value_is_scalar(const struct af_graph *g, uint32_t value) {
        const struct af_value *v = &g->values[value];

        if (v->rank > 0)
                return false;
        return v->kind == AF_VALUE_CONST || (v->kind == AF_VALUE_INPUT && g->inputs[v->index].host);
}

bool af_value_is_wide_scalar(const struct af_value *v) {
        return v->dtype == AF_DTYPE_FLOAT64 && v->kind == AF_VALUE_INPUT && v->rank == 0;
}

bool af_value_scalar(const struct af_graph *g, uint32_t value, uint64_t *ret_bits) {
        const struct af_value *v = &g->values[value];
        if (v->kind != AF_VALUE_CONST || v->rank > 0)
                return false;
        const struct af_graph_constant *c = &g->constants[v->index];
        *ret_bits = af_le_get(c->bytes, (unsigned)AF_MIN(c->n_bytes, (size_t)8));
        return true;
}

int af_graph_users(const struct af_graph *g, uint32_t **ret_first, uint32_t **ret_list) {
        uint32_t *first = af_arena_calloc(g->arena, (size_t)g->n_values + 2, sizeof(*first));
        uint32_t *list;

        if (!first)
                return -ENOMEM;
        /* Counts one place too far to the right, so that filling leaves the starts where they belong. */
        for (uint32_t i = 0; i < g->n_nodes; i++)
                for (uint32_t j = 0; j < g->nodes[i].n_in; j++)
                        first[g->nodes[i].in[j] + 2]++;
        for (uint32_t v = 0; v < g->n_values; v++)
                first[v + 2] += first[v + 1];
        list = af_arena_calloc(g->arena, first[g->n_values + 1], sizeof(*list));
        if (!list)
                return -ENOMEM;
        for (uint32_t i = 0; i < g->n_nodes; i++)
                for (uint32_t j = 0; j < g->nodes[i].n_in; j++)
                        list[first[g->nodes[i].in[j] + 1]++] = i;
        *ret_first = first;
        *ret_list = list;
        return 0;
}

void af_node_expand_args(const struct af_graph *g, const struct af_node *n, struct af_expand_operand *operands,
                         struct af_expand_attrs *ret_attrs) {
        const struct af_attr *alpha = af_node_attr(n, AF_ATTR_ALPHA), *approximate = af_node_attr(n, AF_ATTR_APPROXIMATE);
        const struct af_attr *min = af_node_attr(n, AF_ATTR_MIN), *max = af_node_attr(n, AF_ATTR_MAX);

        for (uint32_t i = 0; i < n->n_in; i++) {
                operands[i] = (struct af_expand_operand){.dtype = g->values[n->in[i]].dtype};
                operands[i].is_scalar = af_value_scalar(g, n->in[i], &operands[i].bits);
        }
        *ret_attrs = (struct af_expand_attrs){0};
        if (alpha)
                ret_attrs->alpha = alpha->f;
        ret_attrs->gelu_tanh = approximate && strcmp(approximate->s, "tanh") == 0;
        if (min) {
                ret_attrs->has_min = true;
                ret_attrs->min = min->is_int ? (double)min->i : min->f;
                ret_attrs->imin = min->i;
        }
        if (max) {
                ret_attrs->has_max = true;
                ret_attrs->max = max->is_int ? (double)max->i : max->f;
                ret_attrs->imax = max->i;
        }
}

int af_symbol_facts_make(const struct af_graph *g, struct af_symbol_facts *ret_facts) {
        int64_t *mins = af_arena_calloc(g->arena, g->n_symbols, sizeof(*mins));
        int64_t *maxs = af_arena_calloc(g->arena, g->n_symbols, sizeof(*maxs));
        const char **names = af_arena_calloc(g->arena, g->n_symbols, sizeof(*names));
        bool named = true;

        if (!mins || !maxs || !names)
                return -ENOMEM;
        for (uint32_t i = 0; i < g->n_symbols; i++) {
                mins[i] = g->symbols[i].min;
                maxs[i] = g->symbols[i].max;
                names[i] = g->symbols[i].name;
                named &= names[i] != NULL;
        }
        *ret_facts = (struct af_symbol_facts){.mins = mins, .maxs = maxs, .names = named ? names : NULL};
        return 0;
}

struct af_where af_where_node(const struct af_graph *g, uint32_t node) {
        return (struct af_where){.list = "nodes", .index = g->nodes[node].source, .name = g->nodes[node].name};
}
