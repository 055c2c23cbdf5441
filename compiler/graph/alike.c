/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values and nodes are first sorted into classes by what they are in themselves; a set is then written as
 *   per node: class, then per operand and per output the value's number within the set, in order of first sight
 *   the numbers of the stored values, after AF_NONE
 * A class fixes how many operands and outputs follow, so that no two sets share one text.
 */
#include "compiler/graph/alike.h"

#include <errno.h>
#include <string.h>

#define SMALL_CONSTANT 64u /* bytes up to which constants are compared; larger ones are alike only to themselves */

struct classes {
        const struct af_graph *g;
        struct af_arena scratch;
        struct af_intern values, nodes;
        struct af_buf text;
        uint32_t *value_class;
        uint32_t *in_place; /* per value: buffer + 1 that it takes over as an output */
        bool *updated;      /* per buffer: some output takes it over */
};

static void put_list(struct af_buf *b, const uint32_t *list, uint32_t n) {
        af_buf_put_u32(b, list ? n : AF_NONE);
        if (list)
                af_buf_put(b, list, n * sizeof(*list));
}

static void put_source(struct classes *c, const struct af_value *v) {
        struct af_buf *b = &c->text;
        if (v->kind == AF_VALUE_INPUT) {
                const struct af_graph_input *in = &c->g->inputs[v->index];
                af_buf_put_u32(b, in->offset);
                af_buf_put_u32(b, in->align);
                af_buf_put_u32(b, in->host);
                af_buf_put_u32(b, c->updated[in->buffer] ? in->buffer : AF_NONE);
        } else if (v->kind == AF_VALUE_CONST) {
                const struct af_graph_constant *k = &c->g->constants[v->index];
                if (k->n_bytes <= SMALL_CONSTANT)
                        af_buf_put_field(b, k->bytes, k->n_bytes);
                else
                        af_buf_put_u32(b, v->index);
        }
}

static int class_values(struct classes *c) {
        for (uint32_t i = 0; i < c->g->n_values; i++) {
                const struct af_value *v = &c->g->values[i];
                af_buf_clear(&c->text);
                af_buf_put_u32(&c->text, v->kind);
                af_buf_put_u32(&c->text, v->dtype);
                put_list(&c->text, v->dims, v->rank);
                put_list(&c->text, v->strides, v->rank);
                af_buf_put_u32(&c->text, c->in_place[i]);
                put_source(c, v);
                int r = af_buf_error(&c->text);
                if (!r)
                        r = af_intern_put(&c->values, c->text.data, c->text.size, &c->value_class[i], NULL);
                if (r)
                        return r;
        }
        return 0;
}

static void put_attr(struct af_buf *b, const struct af_attr *a) {
        uint64_t f;
        memcpy(&f, &a->f, sizeof(f));
        af_buf_put_u32(b, a->key);
        af_buf_put_u64(b, (uint64_t)a->i);
        af_buf_put_u32(b, a->is_int);
        af_buf_put_u64(b, f);
        af_buf_put_u32(b, a->ints ? a->n : AF_NONE);
        if (a->ints)
                af_buf_put(b, a->ints, a->n * sizeof(*a->ints));
        put_list(b, a->dims, a->n);
        af_buf_put_field(b, a->s ? a->s : "", a->s ? strlen(a->s) : 0);
}

static bool commutes(const struct af_node *n) {
        return n->n_in == 2 && (af_op_info(n->op)->flags & AF_OP_COMMUTES);
}

static int class_nodes(struct classes *c, uint32_t *node_class) {
        for (uint32_t i = 0; i < c->g->n_nodes; i++) {
                const struct af_node *n = &c->g->nodes[i];
                af_buf_clear(&c->text);
                af_buf_put_u32(&c->text, n->op);
                af_buf_put_u32(&c->text, n->effects);
                af_buf_put_u32(&c->text, n->n_in);
                af_buf_put_u32(&c->text, n->n_out);
                bool turn = commutes(n) && c->value_class[n->in[0]] > c->value_class[n->in[1]];
                for (uint32_t k = 0; k < n->n_in; k++)
                        af_buf_put_u32(&c->text, c->value_class[n->in[turn ? 1 - k : k]]);
                for (uint32_t k = 0; k < n->n_out; k++)
                        af_buf_put_u32(&c->text, c->value_class[n->out[k]]);
                for (uint32_t k = 0; k < n->n_attrs; k++)
                        put_attr(&c->text, &n->attrs[k]);
                int r = af_buf_error(&c->text);
                if (!r)
                        r = af_intern_put(&c->nodes, c->text.data, c->text.size, &node_class[i], NULL);
                if (r)
                        return r;
        }
        return 0;
}

static int find_classes(struct classes *c, uint32_t *node_class) {
        const struct af_graph *g = c->g;
        uint32_t n_buffers = 0;
        for (uint32_t i = 0; i < g->n_inputs; i++)
                n_buffers = AF_MAX(n_buffers, g->inputs[i].buffer + 1);
        c->in_place = af_arena_calloc(&c->scratch, g->n_values, sizeof(uint32_t));
        c->updated = af_arena_calloc(&c->scratch, n_buffers, sizeof(bool));
        if (!c->in_place || !c->updated)
                return -ENOMEM;
        for (uint32_t i = 0; i < g->n_outputs; i++) {
                if (g->outputs[i].alias_of == AF_NONE)
                        continue;
                uint32_t buffer = g->inputs[g->outputs[i].alias_of].buffer;
                c->updated[buffer] = true;
                c->in_place[g->outputs[i].value] = buffer + 1;
        }
        int r = class_values(c);
        return r ? r : class_nodes(c, node_class);
}

int af_alike_init(struct af_alike *a, const struct af_graph *g) {
        struct classes c = {.g = g};
        uint32_t *node_class = af_arena_calloc(g->arena, g->n_nodes, sizeof(uint32_t));
        c.value_class = af_arena_calloc(g->arena, g->n_values, sizeof(uint32_t));
        *a = (struct af_alike){.g = g, .node_class = node_class, .value_class = c.value_class};
        a->local = af_arena_calloc(g->arena, g->n_values, sizeof(uint32_t));
        a->seen = af_arena_calloc(g->arena, g->n_values, sizeof(uint32_t));
        if (!node_class || !c.value_class || !a->local || !a->seen)
                return -ENOMEM;
        af_arena_init(&c.scratch, 0);
        af_intern_init(&c.values, &c.scratch);
        af_intern_init(&c.nodes, &c.scratch);
        int r = find_classes(&c, node_class);
        a->n_classes = c.nodes.n_items;
        af_buf_deinit(&c.text);
        af_arena_deinit(&c.scratch);
        return r;
}

static uint32_t local_number(struct af_alike *a, uint32_t value) {
        if (a->seen[value] != a->now) {
                a->seen[value] = a->now;
                a->local[value] = a->n_values;
                a->values[a->n_values++] = value;
        }
        return a->local[value];
}

/* Whether the operands of an op that commutes are written the other way round: by class, then those seen before first. */
static bool turned(const struct af_alike *a, const struct af_node *n) {
        if (!commutes(n))
                return false;
        uint32_t x = n->in[0], y = n->in[1], cx = a->value_class[x], cy = a->value_class[y];
        if (cx != cy)
                return cx > cy;
        return a->seen[y] == a->now && (a->seen[x] != a->now || a->local[x] > a->local[y]);
}

int af_alike_write(struct af_alike *a, const uint32_t *nodes, uint32_t n_nodes, const uint32_t *stored, uint32_t n_stored,
                   const uint32_t **ret_words, uint32_t *ret_n_words) {
        uint32_t n = 0, n_need = n_stored == AF_NONE ? 1 : n_stored + 2;
        for (uint32_t i = 0; i < n_nodes; i++)
                n_need += 1 + a->g->nodes[nodes[i]].n_in + a->g->nodes[nodes[i]].n_out;
        int r = af_arena_grow(a->g->arena, &a->words, &a->cap_words, n_need, sizeof(*a->words));
        if (!r)
                r = af_arena_grow(a->g->arena, &a->values, &a->cap_values, n_need, sizeof(*a->values));
        if (r)
                return r;
        a->now++;
        a->n_values = 0;
        for (uint32_t i = 0; i < n_nodes; i++) {
                const struct af_node *node = &a->g->nodes[nodes[i]];
                bool turn = turned(a, node);
                a->words[n++] = a->node_class[nodes[i]];
                for (uint32_t k = 0; k < node->n_in; k++)
                        a->words[n++] = local_number(a, node->in[turn ? 1 - k : k]);
                for (uint32_t k = 0; k < node->n_out; k++)
                        a->words[n++] = local_number(a, node->out[k]);
        }
        a->words[n++] = AF_NONE;
        for (uint32_t i = 0; n_stored != AF_NONE && i < n_stored; i++)
                a->words[n++] = local_number(a, stored[i]);
        if (n_stored != AF_NONE)
                a->words[n++] = AF_NONE;
        *ret_words = a->words;
        *ret_n_words = n;
        return 0;
}
