/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fragment to graph. Values get numbers in the fragment's order first; af_graph_finish puts nodes in order, renumbers, infers, checks.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "compiler/graph/internal.h"
#include "compiler/graph/names.h"

struct builder {
        struct af_graph *g;
        const struct af_fragment *f;
        struct af_diags *diags;
        struct af_names values; /* name -> value id */
        struct af_names inputs; /* name -> input index, for alias_of */
};

static const char *name_or_null(const char *name) {
        return name && *name ? name : NULL;
}

static bool count_outputs(struct builder *b, uint64_t *ret_n) {
        const struct af_fragment *f = b->f;
        uint64_t n = (uint64_t)f->n_inputs + f->n_constants;

        for (uint32_t i = 0; i < f->n_nodes; i++)
                n += f->nodes[i].n_outputs;
        *ret_n = n;
        if (f->n_nodes > AF_LIMIT_NODES)
                af_diag_error(b->diags, "nodes", "%u nodes are beyond the limit of %u", f->n_nodes, AF_LIMIT_NODES);
        if (n > AF_LIMIT_VALUES)
                af_diag_error(b->diags, "nodes", "%llu values are beyond the limit of %u", (unsigned long long)n, AF_LIMIT_VALUES);
        if (f->n_symbols > AF_LIMIT_SYMBOLS)
                af_diag_error(b->diags, "symbols", "%u symbols are beyond the limit of %u", f->n_symbols, AF_LIMIT_SYMBOLS);
        return f->n_nodes <= AF_LIMIT_NODES && n <= AF_LIMIT_VALUES && f->n_symbols <= AF_LIMIT_SYMBOLS;
}

static int alloc_arrays(struct builder *b, uint64_t n_values) {
        const struct af_fragment *f = b->f;
        struct af_graph *g = b->g;

        g->values = af_arena_calloc(g->arena, n_values, sizeof(*g->values));
        g->nodes = af_arena_calloc(g->arena, f->n_nodes, sizeof(*g->nodes));
        g->inputs = af_arena_calloc(g->arena, f->n_inputs, sizeof(*g->inputs));
        g->constants = af_arena_calloc(g->arena, f->n_constants, sizeof(*g->constants));
        g->outputs = af_arena_calloc(g->arena, f->n_outputs, sizeof(*g->outputs));
        g->symbols = af_arena_calloc(g->arena, f->n_symbols, sizeof(*g->symbols));
        if (!g->values || !g->nodes || !g->inputs || !g->constants || !g->outputs || !g->symbols)
                return -ENOMEM;
        int r = af_names_init(&b->values, g->arena, (uint32_t)n_values);
        return r < 0 ? r : af_names_init(&b->inputs, g->arena, f->n_inputs);
}

/* A mistake in a value: field as ".dtype". output: which of its node's outputs it is; AF_NONE: no node's. */
AF_PRINTF(5, 6)
static void value_error(struct builder *b, const struct af_where *where, uint32_t output, const char *field, const char *fmt, ...) {
        char at[64], what[AF_LIMIT_NAME_BYTES + 128];
        va_list args;

        if (output == AF_NONE)
                snprintf(at, sizeof(at), "%s", field);
        else
                snprintf(at, sizeof(at), ".outputs[%u]%s", output, field);
        va_start(args, fmt);
        vsnprintf(what, sizeof(what), fmt, args);
        va_end(args);
        af_where_error(b->diags, where, at, NULL, "%s", what);
}

/* A value's common part; its name must be new. output: as value_error takes it. */
static uint32_t add_value(struct builder *b, enum af_value_kind kind, uint32_t index, const struct af_fragment_tensor *t,
                          const struct af_where *where, uint32_t output) {
        uint32_t id = b->g->n_values++;
        struct af_value *v = &b->g->values[id];

        *v = (struct af_value){.kind = kind, .dtype = t->dtype, .rank = t->rank, .dims = t->dims, .index = index, .name = t->name};
        v->strides = t->has_strides ? t->strides : NULL;
        if (af_dtype_size(t->dtype) == 0) {
                value_error(b, where, output, ".dtype", "no dtype");
                v->dtype = AF_DTYPE_FLOAT32; /* so that the rest can be checked */
        }
        if (t->rank > AF_LIMIT_RANK) {
                value_error(b, where, output, ".shape", "rank %u is beyond the limit of %u", t->rank, AF_LIMIT_RANK);
                v->rank = 0;
        }
        if (!name_or_null(t->name))
                value_error(b, where, output, ".name", "a value needs a name");
        else if (af_names_add(&b->values, t->name, id) != AF_NONE)
                value_error(b, where, output, ".name", "the name \"%s\" is taken by another value", t->name);
        return id;
}

static void add_symbols(struct builder *b) {
        for (uint32_t i = 0; i < b->f->n_symbols; i++) {
                const struct af_fragment_symbol *s = &b->f->symbols[i];
                b->g->symbols[b->g->n_symbols++] = (struct af_graph_symbol){
                        .name = s->name, .min = s->min, .max = s->max, .multiple_of = s->multiple_of, .hint = s->hint};
        }
}

static int add_inputs(struct builder *b) {
        struct af_names buffers;
        uint32_t n_groups = 0;
        int r = af_names_init(&buffers, b->g->arena, b->f->n_inputs);

        if (r < 0)
                return r;
        for (uint32_t i = 0; i < b->f->n_inputs; i++) {
                const struct af_fragment_input *in = &b->f->inputs[i];
                struct af_graph_input *out = &b->g->inputs[b->g->n_inputs++];
                struct af_where where = {.list = "inputs", .index = i, .name = in->t.name};
                uint32_t shared = in->buffer ? af_names_add(&buffers, in->buffer, n_groups) : AF_NONE;

                *out = (struct af_graph_input){.offset = in->offset, .host = in->host, .buffer = shared != AF_NONE ? shared : n_groups++};
                out->value = add_value(b, AF_VALUE_INPUT, i, &in->t, &where, AF_NONE);
                out->align = in->align ? in->align : af_dtype_size(b->g->values[out->value].dtype);
                if (name_or_null(in->t.name))
                        (void)af_names_add(&b->inputs, in->t.name, i);
        }
        return 0;
}

static void add_constants(struct builder *b) {
        for (uint32_t i = 0; i < b->f->n_constants; i++) {
                const struct af_fragment_constant *c = &b->f->constants[i];
                struct af_where where = {.list = "constants", .index = i, .name = c->t.name};
                struct af_fragment_tensor t = c->t;

                t.has_strides = false;
                b->g->constants[b->g->n_constants++] = (struct af_graph_constant){
                        .value = add_value(b, AF_VALUE_CONST, i, &t, &where, AF_NONE), .bytes = c->bytes, .n_bytes = c->n_bytes};
        }
}

static bool attr_set(const struct af_fragment_node *n, enum af_attr_key key) {
        for (uint32_t i = 0; i < n->n_attrs; i++)
                if (n->attrs[i].key == key)
                        return n->attrs[i].i != 0;
        return false;
}

/* The node and its output values; operands follow when all names are known. */
static int add_node(struct builder *b, uint32_t index) {
        const struct af_fragment_node *from = &b->f->nodes[index];
        struct af_node *n = &b->g->nodes[b->g->n_nodes++];
        struct af_where where = {.list = "nodes", .index = index, .name = from->name};
        enum af_op op = af_op_from_name(from->op ? from->op : "");

        if (op == AF_OP_INVALID) {
                af_where_error(b->diags, &where, ".op", "send it as opaque", "unknown op \"%s\"", from->op ? from->op : "");
                op = AF_OP_OPAQUE;
        } else if (op != AF_OP_OPAQUE && !(af_op_info(op)->flags & AF_OP_SEVERAL) && from->n_outputs != 1) {
                af_where_error(b->diags, &where, ".outputs", NULL, "%u outputs, but %s has one", from->n_outputs, from->op);
        }
        uint32_t *ids = af_arena_calloc(b->g->arena, (size_t)from->n_inputs + from->n_outputs, sizeof(*ids));
        if (!ids)
                return -ENOMEM;
        *n = (struct af_node){.op = op, .in = ids, .n_in = from->n_inputs, .out = ids + from->n_inputs, .n_out = from->n_outputs};
        n->attrs = from->attrs;
        n->n_attrs = from->n_attrs;
        n->name = name_or_null(from->name);
        n->origin = name_or_null(from->origin);
        n->source = index;
        n->effects = op == AF_OP_OPAQUE && attr_set(from, AF_ATTR_EFFECTS);
        for (uint32_t j = 0; j < from->n_outputs; j++) {
                ids[from->n_inputs + j] = add_value(b, AF_VALUE_NODE, index, &from->outputs[j], &where, j);
                b->g->values[ids[from->n_inputs + j]].out_index = j;
        }
        return 0;
}

static void resolve_node(struct builder *b, uint32_t index) {
        const struct af_fragment_node *from = &b->f->nodes[index];
        struct af_where where = {.list = "nodes", .index = index, .name = from->name};
        uint32_t *in = (uint32_t *)b->g->nodes[index].in;
        char field[40];

        for (uint32_t j = 0; j < from->n_inputs; j++) {
                in[j] = af_names_find(&b->values, from->inputs[j]);
                if (in[j] != AF_NONE)
                        continue;
                snprintf(field, sizeof(field), ".inputs[%u]", j);
                af_where_error(b->diags, &where, field, NULL, "no value is named \"%s\"", from->inputs[j]);
        }
}

static int add_nodes(struct builder *b) {
        struct af_names names;
        int r = af_names_init(&names, b->g->arena, b->f->n_nodes);

        for (uint32_t i = 0; i < b->f->n_nodes && r == 0; i++) {
                const char *name = name_or_null(b->f->nodes[i].name);
                uint32_t other = name ? af_names_add(&names, name, i) : AF_NONE;
                struct af_where where = {.list = "nodes", .index = i, .name = name};
                if (other != AF_NONE)
                        af_where_error(b->diags, &where, ".name", NULL, "nodes[%u] has the same name", other);
                r = add_node(b, i);
        }
        for (uint32_t i = 0; i < b->f->n_nodes && r == 0; i++)
                resolve_node(b, i);
        return r;
}

static void add_outputs(struct builder *b) {
        for (uint32_t i = 0; i < b->f->n_outputs; i++) {
                const struct af_fragment_output *from = &b->f->outputs[i];
                struct af_graph_output *o = &b->g->outputs[b->g->n_outputs++];
                struct af_where where = {.list = "outputs", .index = i, .name = from->value};

                *o = (struct af_graph_output){.value = af_names_find(&b->values, from->value), .alias_of = AF_NONE};
                if (o->value == AF_NONE)
                        af_where_error(b->diags, &where, ".value", NULL, "no value is named \"%s\"", from->value);
                if (from->alias_of) {
                        o->alias_of = af_names_find(&b->inputs, from->alias_of);
                        if (o->alias_of == AF_NONE)
                                af_where_error(b->diags, &where, ".alias_of", NULL, "no input is named \"%s\"", from->alias_of);
                }
                if (!from->has_strides)
                        continue;
                o->strides = from->strides;
                if (o->value != AF_NONE && from->n_strides != b->g->values[o->value].rank) {
                        af_where_error(b->diags, &where, ".strides", NULL, "%u strides for rank %u", from->n_strides,
                                       b->g->values[o->value].rank);
                        o->strides = NULL;
                }
        }
}

static int build(struct builder *b, struct af_tally *tally) {
        uint64_t n_values;
        int r;

        if (!count_outputs(b, &n_values))
                return AF_GRAPH_E_INVALID;
        r = af_graph_copy_exprs(b->g, &b->f->exprs);
        if (r == 0)
                r = alloc_arrays(b, n_values);
        if (r == 0) {
                add_symbols(b);
                r = add_inputs(b);
        }
        if (r < 0)
                return r;
        add_constants(b);
        r = add_nodes(b);
        if (r < 0)
                return r;
        add_outputs(b);
        return af_graph_finish(b->g, false, tally);
}

int af_graph_from_fragment(struct af_graph *g, const struct af_fragment *f, struct af_diags *diags) {
        struct builder b = {.g = g, .f = f};
        struct af_tally tally = {0};

        *g = (struct af_graph){.arena = f->arena, .name = f->name, .soc = f->soc, .toolchain = f->toolchain};
        g->twin = f->twin;
        g->numerics = f->numerics;
        b.diags = af_tally_start(&tally, diags);
        int r = build(&b, &tally);
        af_diags_deinit(&tally.own);
        return r;
}
