/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold of symbols, values, inputs, constants and outputs; af_graph_check for passes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "compiler/graph/internal.h"
#include "compiler/graph/layout.h"

struct checker {
        struct af_graph *g;
        const struct af_symbol_facts *facts;
        struct af_diags *diags;
        bool fix;
        int error;
};

static void check_symbols(struct checker *c) {
        for (uint32_t i = 0; i < c->g->n_symbols; i++) {
                const struct af_graph_symbol *s = &c->g->symbols[i];
                struct af_where where = {.list = "symbols", .index = i, .name = s->name};
                if (s->min < 0)
                        af_where_error(c->diags, &where, ".min", NULL, "a size cannot be negative");
                if (s->min > s->max)
                        af_where_error(c->diags, &where, ".max", NULL, "the maximum %lld is below the minimum %lld", (long long)s->max,
                                       (long long)s->min);
                if (s->multiple_of < 1)
                        af_where_error(c->diags, &where, ".multiple_of", NULL, "%lld is not positive", (long long)s->multiple_of);
        }
}

/* Dims not negative, elements and bytes within limits. */
static void check_dims(struct checker *c, const struct af_where *where, const char *field, const struct af_value *v) {
        int64_t d, min, max, bytes = af_dtype_size(v->dtype);

        for (uint32_t i = 0; i < v->rank; i++) {
                if (af_expr_is_const(&c->g->exprs, v->dims[i], &d)) {
                        if (d < 0)
                                af_where_error(c->diags, where, field, NULL, "negative size %lld", (long long)d);
                        else if (d > 0 && (__builtin_mul_overflow(bytes, d, &bytes) || bytes > AF_LAYOUT_MAX_BYTES)) {
                                af_where_error(c->diags, where, field, NULL, "larger than the limit of 2^47 bytes");
                                return;
                        }
                } else {
                        af_expr_range(&c->g->exprs, v->dims[i], c->facts->mins, c->facts->maxs, &min, &max);
                        if (max < 0)
                                af_where_error(c->diags, where, field, NULL, "%s is negative for every size of the symbols",
                                               af_dims_text(&c->g->exprs, c->g->arena, c->facts->names, &v->dims[i], 1));
                }
        }
}

/* Strides that say no more than row-major become NULL. */
static void normalise_strides(struct checker *c, const uint32_t *dims, uint32_t rank, const uint32_t **strides) {
        bool contiguous;
        int r = *strides ? af_layout_is_contiguous(&c->g->exprs, dims, *strides, rank, &contiguous) : 0;

        if (r < 0)
                c->error = r;
        else if (*strides && contiguous && c->fix)
                *strides = NULL;
}

static void check_input(struct checker *c, uint32_t index) {
        struct af_graph_input *in = &c->g->inputs[index];
        struct af_value *v = &c->g->values[in->value];
        struct af_where where = {.list = "inputs", .index = index, .name = v->name};
        const char *why;

        check_dims(c, &where, ".shape", v);
        normalise_strides(c, v->dims, v->rank, &v->strides);
        why = af_layout_check(&c->g->exprs, v->dims, v->strides, v->rank, in->offset, af_dtype_size(v->dtype));
        if (why)
                af_where_error(c->diags, &where, ".strides", NULL, "%s", why);
        if (in->align == 0 || (in->align & (in->align - 1)) != 0)
                af_where_error(c->diags, &where, ".align", NULL, "%u is no power of two", in->align);
        if (in->host && v->rank > 0)
                af_where_error(c->diags, &where, ".host", NULL, "a host input is a scalar: its shape must be []");
}

static void check_constant(struct checker *c, uint32_t index) {
        const struct af_graph_constant *k = &c->g->constants[index];
        const struct af_value *v = &c->g->values[k->value];
        struct af_where where = {.list = "constants", .index = index, .name = v->name};
        int64_t count;

        check_dims(c, &where, ".shape", v);
        count = af_value_count(c->g, k->value);
        if (count < 0)
                af_where_error(c->diags, &where, ".shape", NULL, "a constant's shape must be static");
        else if ((uint64_t)count > AF_LIMIT_CONSTANT_BYTES || k->n_bytes != (size_t)count * af_dtype_size(v->dtype))
                af_where_error(c->diags, &where, ".bits", NULL, "%zu bytes, but the shape takes %lld elements of %u", k->n_bytes,
                               (long long)count, af_dtype_size(v->dtype));
        for (size_t i = 0; v->dtype == AF_DTYPE_BOOL && i < k->n_bytes; i++)
                if (k->bytes[i] > 1) {
                        af_where_error(c->diags, &where, ".bits", NULL, "a bool is 0 or 1, not %u", k->bytes[i]);
                        break;
                }
}

static void check_node_output(struct checker *c, uint32_t node, uint32_t out) {
        struct af_value *v = &c->g->values[c->g->nodes[node].out[out]];
        struct af_where where = af_where_node(c->g, node);
        const char *why;
        char field[40];

        snprintf(field, sizeof(field), ".outputs[%u].shape", out);
        check_dims(c, &where, field, v);
        if (!v->strides)
                return;
        normalise_strides(c, v->dims, v->rank, &v->strides);
        snprintf(field, sizeof(field), ".outputs[%u].strides", out);
        why = af_layout_check(&c->g->exprs, v->dims, v->strides, v->rank, AF_NONE, af_dtype_size(v->dtype));
        bool view = af_op_info(c->g->nodes[node].op)->cls == AF_CLASS_VIEW; /* shows memory that another wrote, or an input */
        if (!why && v->strides && !view && af_layout_overlaps(&c->g->exprs, v->dims, v->strides, v->rank))
                why = "elements of an output may overlap";
        if (why)
                af_where_error(c->diags, &where, field, NULL, "%s", why);
}

/* dtype and shape of an in-place output against the input whose memory it takes. */
static bool check_alias(struct checker *c, const struct af_where *where, const struct af_graph_output *o) {
        const struct af_graph_input *in = &c->g->inputs[o->alias_of];
        const struct af_value *v = &c->g->values[o->value], *x = &c->g->values[in->value];
        bool same = v->dtype == x->dtype && v->rank == x->rank;

        for (uint32_t i = 0; same && i < v->rank; i++)
                same = af_dims_equal(&c->g->exprs, c->facts, v->dims[i], x->dims[i]);
        if (!same) {
                af_where_error(c->diags, where, ".alias_of", NULL, "%s %s cannot take the memory of %s %s", af_dtype_name(v->dtype),
                               af_dims_text(&c->g->exprs, c->g->arena, c->facts->names, v->dims, v->rank), af_dtype_name(x->dtype),
                               af_dims_text(&c->g->exprs, c->g->arena, c->facts->names, x->dims, x->rank));
                return false;
        }
        if (in->host)
                af_where_error(c->diags, where, ".alias_of", NULL, "a host scalar has no memory to update");
        if (x->strides && af_layout_overlaps(&c->g->exprs, x->dims, x->strides, x->rank))
                af_where_error(c->diags, where, ".alias_of", NULL, "elements of the input may overlap, so it cannot be updated in place");
        return true;
}

static struct af_where where_output(const struct af_graph *g, uint32_t index) {
        const struct af_graph_output *o = &g->outputs[index];

        return (struct af_where){.list = "outputs", .index = index, .name = o->value == AF_NONE ? NULL : g->values[o->value].name};
}

/* Strides of a value, written out; NULL without memory or beyond 64 bits. */
static const uint32_t *strides_of(struct checker *c, uint32_t value) {
        const struct af_value *v = &c->g->values[value];
        uint32_t *strides;
        int r;

        if (v->strides)
                return v->strides;
        r = af_layout_contiguous(&c->g->exprs, c->g->arena, v->dims, v->rank, &strides);
        if (r < 0)
                c->error = r;
        return r == 0 ? strides : NULL;
}

static bool strides_equal(const uint32_t *a, const uint32_t *b, uint32_t rank) {
        return rank == 0 || (a && b && memcmp(a, b, rank * sizeof(*a)) == 0);
}

static void check_output(struct checker *c, uint32_t index) {
        struct af_graph_output *o = &c->g->outputs[index];
        const struct af_value *v = &c->g->values[o->value];
        struct af_where where = where_output(c->g, index);
        const uint32_t *own, *stated = o->strides, *input = NULL;
        const char *why = NULL;

        if (!stated && o->alias_of == AF_NONE)
                return;
        own = strides_of(c, o->value);
        if (o->alias_of != AF_NONE) {
                if (!check_alias(c, &where, o))
                        return;
                input = strides_of(c, c->g->inputs[o->alias_of].value);
                if (!stated)
                        stated = c->fix ? input : own;
                if (!strides_equal(stated, input, v->rank))
                        why = "an in-place output has the strides of its input";
        }
        if (stated && !why)
                why = af_layout_check(&c->g->exprs, v->dims, stated, v->rank, AF_NONE, af_dtype_size(v->dtype));
        if (stated && !why && af_layout_overlaps(&c->g->exprs, v->dims, stated, v->rank))
                why = "elements of an output may overlap";
        if (why)
                af_where_error(c->diags, &where, ".strides", NULL, "%s", why);
        if (c->fix)
                o->strides = strides_equal(stated, own, v->rank) ? NULL : stated;
}

/* Inputs updated in place: each memory once, and its old value returned nowhere. */
static void check_updates(struct checker *c) {
        struct af_graph *g = c->g;
        uint32_t *updated = af_arena_calloc(g->arena, g->n_inputs, sizeof(*updated)); /* per buffer group: output + 1 */
        uint32_t *roots;

        if (!updated || af_graph_roots(g, g->arena, &roots) < 0) {
                c->error = -ENOMEM;
                return;
        }
        for (uint32_t i = 0; i < g->n_outputs; i++) {
                const struct af_graph_output *o = &g->outputs[i];
                struct af_where where = where_output(g, i);
                if (o->alias_of == AF_NONE)
                        continue;
                uint32_t *by = &updated[g->inputs[o->alias_of].buffer];
                if (*by > 0)
                        af_where_error(c->diags, &where, ".alias_of", NULL, "outputs[%u] updates the same memory", *by - 1);
                *by = i + 1;
        }
        for (uint32_t i = 0; i < g->n_outputs; i++) {
                const struct af_graph_output *o = &g->outputs[i];
                uint32_t root = o->value == AF_NONE ? AF_NONE : roots[o->value];
                struct af_where where = where_output(g, i);
                if (root == AF_NONE || updated[g->inputs[root].buffer] == 0 || updated[g->inputs[root].buffer] == i + 1)
                        continue;
                af_where_error(c->diags, &where, "", "return a copy, or the new value",
                               "returns the old value of an input that outputs[%u] updates in place", updated[g->inputs[root].buffer] - 1);
        }
}

int af_graph_check_values(struct af_graph *g, const struct af_symbol_facts *facts, bool fix, struct af_diags *diags) {
        struct checker c = {.g = g, .facts = facts, .diags = diags, .fix = fix};

        check_symbols(&c);
        for (uint32_t i = 0; i < g->n_inputs; i++)
                check_input(&c, i);
        for (uint32_t i = 0; i < g->n_constants; i++)
                check_constant(&c, i);
        for (uint32_t i = 0; i < g->n_nodes; i++)
                for (uint32_t j = 0; j < g->nodes[i].n_out; j++)
                        check_node_output(&c, i, j);
        for (uint32_t i = 0; i < g->n_outputs; i++)
                if (g->outputs[i].value != AF_NONE)
                        check_output(&c, i);
        check_updates(&c);
        return c.error;
}
