/* SPDX-License-Identifier: Apache-2.0 */
/* A graph with symbols at given values. */
#include <errno.h>

#include "compiler/graph/graph.h"

static int bind_list(struct af_graph *g, const uint32_t **list, uint32_t n, const int64_t *values) {
        if (!*list || !n)
                return 0;
        uint32_t *copy = af_arena_memdup(g->arena, *list, n * sizeof(*copy));
        if (!copy)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++) {
                int64_t v;
                int r = af_expr_eval(&g->exprs, copy[i], values, &v);
                if (!r)
                        r = af_expr_const(&g->exprs, v, &copy[i]);
                if (r)
                        return r;
        }
        *list = copy;
        return 0;
}

static int bind_node(struct af_graph *g, struct af_node *n, const int64_t *values) {
        struct af_attr *attrs = af_arena_memdup(g->arena, n->attrs, n->n_attrs * sizeof(*attrs));
        int r = n->n_attrs && !attrs ? -ENOMEM : 0;
        for (uint32_t i = 0; !r && i < n->n_attrs; i++)
                if (af_attr_kind(attrs[i].key) == AF_ATTR_KIND_DIMS)
                        r = bind_list(g, &attrs[i].dims, attrs[i].n, values);
        n->attrs = attrs;
        return r;
}

uint32_t af_value_varies(const struct af_graph *g, uint32_t value) {
        const struct af_value *v = &g->values[value];
        uint32_t bits = v->varies;
        int64_t size;

        for (uint32_t i = 0; i < v->rank; i++)
                if (!af_expr_is_const(&g->exprs, v->dims[i], &size))
                        bits |= 1u << i;
        return bits;
}

int af_graph_bind(struct af_graph *g, const int64_t *values) {
        int r = 0;
        for (uint32_t i = 0; !r && i < g->n_values; i++) {
                g->values[i].varies = af_value_varies(g, i);
                r = bind_list(g, &g->values[i].dims, g->values[i].rank, values);
                if (!r)
                        r = bind_list(g, &g->values[i].strides, g->values[i].rank, values);
        }
        for (uint32_t i = 0; !r && i < g->n_nodes; i++)
                r = bind_node(g, &g->nodes[i], values);
        for (uint32_t i = 0; !r && i < g->n_inputs; i++) {
                const uint32_t *offset = &g->inputs[i].offset;
                r = bind_list(g, &offset, 1, values);
                g->inputs[i].offset = *offset;
        }
        for (uint32_t i = 0; !r && i < g->n_outputs; i++)
                r = bind_list(g, &g->outputs[i].strides, g->values[g->outputs[i].value].rank, values);
        return r;
}
