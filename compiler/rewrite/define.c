/* SPDX-License-Identifier: Apache-2.0 */
/* One composite node as a graph of its own, for the reference: its decomposition is its definition. */
#include <errno.h>
#include <string.h>

#include "compiler/rewrite/build.h"

/* The node alone: operands are inputs, scalar constants are constants besides. */
struct alone {
        struct af_graph g;
        struct af_node node;
        bool varying; /* sizes that vary and are 1 stay a symbol */
        uint32_t in[8];
};

static int copy_pool(struct af_expr_pool *to, struct af_arena *arena, const struct af_expr_pool *from) {
        *to = *from;
        to->arena = arena;
        to->cap_exprs = from->n_exprs;
        if (from->exprs)
                to->exprs = af_arena_memdup(arena, from->exprs, from->n_exprs * sizeof(*from->exprs));
        if (from->table)
                to->table = af_arena_memdup(arena, from->table, from->table_size * sizeof(*from->table));
        return (from->exprs && !to->exprs) || (from->table && !to->table) ? -ENOMEM : 0;
}

/* A size that varies and is 1 stays a symbol, so that the definition's reductions do not take it for a unit axis. */
static int static_dims(struct alone *a, struct af_value *v, uint32_t varies, const int64_t *dims) {
        uint32_t *ids = af_arena_calloc(a->g.arena, v->rank, sizeof(*ids));
        if (!ids)
                return -ENOMEM;
        for (uint32_t i = 0; i < v->rank; i++) {
                bool one = a->varying && dims[i] == 1 && varies & 1u << i;
                int r = one ? af_expr_symbol(&a->g.exprs, a->g.n_symbols - 1, &ids[i]) : af_expr_const(&a->g.exprs, dims[i], &ids[i]);
                if (r)
                        return r;
        }
        v->varies = 0;
        v->dims = ids;
        v->strides = NULL;
        return 0;
}

static int add_operand(struct alone *a, const struct af_graph *g, uint32_t value, uint32_t j, const int64_t *dims) {
        const struct af_value *from = &g->values[value];
        struct af_value *v = &a->g.values[a->g.n_values];
        *v = *from;
        v->kind = AF_VALUE_INPUT;
        v->index = j;
        a->g.inputs[j] = (struct af_graph_input){.value = a->g.n_values, .align = 1, .buffer = j};
        a->g.inputs[j].host = from->kind == AF_VALUE_INPUT && g->inputs[from->index].host;
        a->in[j] = a->g.n_values++;
        int r = af_expr_const(&a->g.exprs, 0, &a->g.inputs[j].offset);
        if (!r)
                r = static_dims(a, v, af_value_varies(g, value), dims);
        if (r || from->kind != AF_VALUE_CONST || from->rank > 0)
                return r;
        a->g.constants[a->g.n_constants] = g->constants[from->index];
        a->g.constants[a->g.n_constants].value = a->in[j] = a->g.n_values;
        a->g.values[a->g.n_values] = *from;
        a->g.values[a->g.n_values++].index = a->g.n_constants++;
        return 0;
}

/* Repeats that are symbolic: what the dims say. */
static int static_repeats(struct alone *a, const int64_t *in_dims, const int64_t *out_dims) {
        struct af_attr *attrs = af_arena_memdup(a->g.arena, a->node.attrs, a->node.n_attrs * sizeof(*attrs));
        if (!attrs)
                return -ENOMEM;
        for (uint32_t i = 0; i < a->node.n_attrs; i++) {
                if (attrs[i].key != AF_ATTR_REPEATS)
                        continue;
                uint32_t *ids = af_arena_calloc(a->g.arena, attrs[i].n, sizeof(*ids));
                if (!ids)
                        return -ENOMEM;
                for (uint32_t k = 0; k < attrs[i].n; k++) {
                        int r = af_expr_const(&a->g.exprs, in_dims[k] ? out_dims[k] / in_dims[k] : 0, &ids[k]);
                        if (r)
                                return r;
                }
                attrs[i].dims = ids;
        }
        a->node.attrs = attrs;
        return 0;
}

static int make_alone(struct alone *a, struct af_arena *arena, const struct af_graph *g, const struct af_node *n,
                      const int64_t *const *in_dims, const int64_t *out_dims) {
        a->g = (struct af_graph){.arena = arena, .numerics = g->numerics, .soc = g->soc, .nodes = &a->node, .n_nodes = 1, .n_outputs = 1};
        a->g.n_inputs = n->n_in;
        a->g.inputs = af_arena_calloc(arena, n->n_in, sizeof(*a->g.inputs));
        a->g.constants = af_arena_calloc(arena, n->n_in, sizeof(*a->g.constants));
        a->g.values = af_arena_calloc(arena, 2 * (size_t)n->n_in + 1, sizeof(*a->g.values));
        a->g.outputs = af_arena_calloc(arena, 1, sizeof(*a->g.outputs));
        uint32_t *out = af_arena_calloc(arena, 1, sizeof(*out));
        a->g.n_symbols = g->n_symbols + 1; /* those of the pool, and one that is 1 */
        a->g.symbols = af_arena_calloc(arena, a->g.n_symbols, sizeof(*a->g.symbols));
        if (!a->g.inputs || !a->g.constants || !a->g.values || !a->g.outputs || !a->g.symbols || !out)
                return -ENOMEM;
        if (g->n_symbols)
                memcpy(a->g.symbols, g->symbols, g->n_symbols * sizeof(*g->symbols));
        a->g.symbols[g->n_symbols] = (struct af_graph_symbol){.min = 1, .max = 1, .multiple_of = 1, .hint = 1};
        int r = copy_pool(&a->g.exprs, arena, &g->exprs);
        for (uint32_t j = 0; !r && j < n->n_in; j++)
                r = add_operand(a, g, n->in[j], j, in_dims[j]);
        if (r)
                return r;
        *out = a->g.n_values++;
        a->g.values[*out] = g->values[n->out[0]];
        a->g.values[*out].kind = AF_VALUE_NODE;
        a->g.values[*out].index = 0;
        a->g.outputs[0] = (struct af_graph_output){.value = *out, .alias_of = AF_NONE};
        a->node = *n;
        a->node.in = a->in;
        a->node.out = out;
        a->node.source = 0;
        r = static_dims(a, &a->g.values[*out], af_value_varies(g, n->out[0]), out_dims);
        return !r && n->op == AF_OP_TILE ? static_repeats(a, in_dims[0], out_dims) : r;
}

static int define(struct af_arena *arena, const struct af_graph *g, const struct af_node *n, bool varying, const int64_t *const *in_dims,
                  const int64_t *out_dims, struct af_graph *ret) {
        struct alone a = {.varying = varying};
        struct af_graph made;
        int r = make_alone(&a, arena, g, n, in_dims, out_dims);
        if (!r)
                r = af_rewrite_decompose(&a.g, NULL, &made, NULL);
        for (uint32_t i = 0; !r && i < made.n_nodes; i++)
                if (af_rewrite_is_composite(made.nodes[i].op))
                        r = AF_GRAPH_E_INVALID;
        if (!r)
                *ret = made;
        return r;
}

int af_rewrite_define(struct af_arena *arena, const struct af_graph *g, const struct af_node *n, const int64_t *const *in_dims,
                      const int64_t *out_dims, struct af_graph *ret) {
        if (!af_rewrite_is_composite(n->op) || n->n_in > AF_ARRAY_SIZE(((struct alone *)0)->in) || n->n_out != 1)
                return AF_GRAPH_E_INVALID;
        int r = define(arena, g, n, true, in_dims, out_dims, ret);
        /* what has no decomposition over symbols has no kernel either, and is the framework's for these sizes */
        return r > 0 ? define(arena, g, n, false, in_dims, out_dims, ret) : r;
}
