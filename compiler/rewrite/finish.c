/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a rewrite: dead nodes and constants go, ids close up, outputs are linked, hidden order is made again. */
#include <errno.h>
#include <string.h>

#include "compiler/rewrite/build.h"

/* Marks what outputs and effects need. */
static void mark_live(const struct rw *b, bool *node, bool *value) {
        const struct af_graph *g = &b->g;
        for (uint32_t i = 0; i < b->from->n_outputs; i++)
                value[b->map[b->from->outputs[i].value]] = true;
        for (uint32_t n = g->n_nodes; n-- > 0;) {
                node[n] = g->nodes[n].effects;
                for (uint32_t i = 0; i < g->nodes[n].n_out; i++)
                        node[n] |= value[g->nodes[n].out[i]];
                for (uint32_t i = 0; node[n] && i < g->nodes[n].n_in; i++)
                        value[g->nodes[n].in[i]] = true;
        }
}

struct renumber {
        struct rw *b;
        const bool *node, *value;
        uint32_t *place; /* old value -> new */
        struct af_value *values;
        uint32_t n;
};

static void move_value(struct renumber *r, uint32_t value, uint32_t index) {
        r->place[value] = r->n;
        r->values[r->n] = r->b->g.values[value];
        r->values[r->n++].index = index;
}

/* Inputs all stay; constants that someone reads; node outputs in node order. */
static void close_up(struct renumber *r) {
        struct af_graph *g = &r->b->g;
        uint32_t n_nodes = 0, n_constants = 0;
        for (uint32_t i = 0; i < g->n_inputs; i++) {
                move_value(r, g->inputs[i].value, i);
                g->inputs[i].value = r->place[g->inputs[i].value];
        }
        for (uint32_t i = 0; i < g->n_constants; i++) {
                struct af_graph_constant c = g->constants[i];
                if (!r->value[c.value])
                        continue;
                move_value(r, c.value, n_constants);
                c.value = r->place[c.value];
                g->constants[n_constants++] = c;
        }
        for (uint32_t i = 0; i < g->n_nodes; i++) {
                if (!r->node[i])
                        continue;
                struct af_node n = g->nodes[i];
                uint32_t *ids = (uint32_t *)n.in; /* the builder's own array: operands, then outputs */
                for (uint32_t k = 0; k < n.n_out; k++)
                        move_value(r, n.out[k], n_nodes);
                for (uint32_t k = 0; k < n.n_in + n.n_out; k++)
                        ids[k] = r->place[ids[k]];
                g->nodes[n_nodes++] = n;
        }
        g->values = r->values;
        g->n_values = r->n;
        g->n_nodes = n_nodes;
        g->n_constants = n_constants;
}

/* Outputs keep the strides that their old values stated. */
static int link_outputs(struct rw *b, const uint32_t *place) {
        const struct af_graph *from = b->from;
        b->g.outputs = af_arena_calloc(b->g.arena, from->n_outputs, sizeof(*from->outputs));
        if (!b->g.outputs)
                return -ENOMEM;
        for (uint32_t i = 0; i < from->n_outputs; i++) {
                struct af_graph_output *o = &b->g.outputs[i];
                *o = from->outputs[i];
                o->value = place[b->map[from->outputs[i].value]];
                const uint32_t *stated = o->strides ? o->strides : from->values[from->outputs[i].value].strides;
                uint32_t rank = b->g.values[o->value].rank;
                const uint32_t *own = b->g.values[o->value].strides;
                bool same = stated == own || (stated && own && memcmp(stated, own, rank * sizeof(*own)) == 0);
                o->strides = same ? NULL : stated;
                if (same || stated)
                        continue;
                /* the old value was dense, the new one is not: say so */
                int r = rw_dense_strides(b, o->value, &o->strides);
                if (r)
                        return r;
        }
        return 0;
}

int rw_finish(struct rw *b, struct af_graph *ret) {
        struct af_arena *arena = b->g.arena;
        struct renumber r = {.b = b};
        bool *node = af_arena_calloc(arena, b->g.n_nodes, sizeof(*node)), *value = af_arena_calloc(arena, b->g.n_values, sizeof(*value));
        r.place = af_arena_calloc(arena, b->g.n_values, sizeof(*r.place));
        r.values = af_arena_calloc(arena, b->g.n_values, sizeof(*r.values));
        if (!node || !value || !r.place || !r.values)
                return -ENOMEM;
        mark_live(b, node, value);
        r.node = node;
        r.value = value;
        close_up(&r);
        int e = link_outputs(b, r.place);
        if (!e)
                e = af_graph_reorder(&b->g);
        if (!e)
                *ret = b->g;
        return e;
}
