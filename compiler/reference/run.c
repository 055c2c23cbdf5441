/* SPDX-License-Identifier: Apache-2.0 */
/* The whole graph, node by node. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/reference/internal.h"

struct run {
        const struct af_graph *g;
        const struct af_tensor *inputs;
        struct af_tensor *values; /* data NULL: not made yet, or gone */
        uint8_t *borrowed;        /* per value: data is an input's */
        uint32_t *uses;           /* reads that are still to come; outputs hold one each */
        int64_t *symbols;
        const char **ret_why;
};

static bool eval_dims(const struct run *r, const uint32_t *ids, uint32_t n, int64_t *ret) {
        for (uint32_t i = 0; i < n; i++)
                if (af_expr_eval(&r->g->exprs, ids[i], r->symbols, &ret[i]) != 0)
                        return false;
        return true;
}

/* Symbols of one value; else from the inputs' dims that are a symbol alone; -1 stays where none is. */
static void bind_symbols(struct run *r) {
        for (uint32_t i = 0; i < r->g->n_symbols; i++)
                r->symbols[i] = r->g->symbols[i].min == r->g->symbols[i].max ? r->g->symbols[i].min : -1;
        for (uint32_t i = 0; i < r->g->n_inputs; i++) {
                const struct af_value *v = &r->g->values[r->g->inputs[i].value];
                for (uint32_t k = 0; k < v->rank && k < r->inputs[i].rank; k++) {
                        const struct af_expr *e = &r->g->exprs.exprs[v->dims[k]];
                        if (e->kind == AF_EXPR_SYMBOL)
                                r->symbols[e->value] = r->inputs[i].dims[k];
                }
        }
}

static int shape_error(const struct run *r, const char *why) {
        *r->ret_why = why;
        return AF_REFERENCE_E_SHAPE;
}

static int take_input(struct run *r, uint32_t index) {
        uint32_t value = r->g->inputs[index].value;
        const struct af_value *v = &r->g->values[value];
        const struct af_tensor *in = &r->inputs[index];
        int64_t dims[AF_LIMIT_RANK];

        if (in->dtype != v->dtype || in->rank != v->rank)
                return shape_error(r, "an input has another dtype or rank than the graph states");
        if (!eval_dims(r, v->dims, v->rank, dims) || memcmp(dims, in->dims, v->rank * sizeof(*dims)) != 0)
                return shape_error(r, "an input has another shape than the graph states");
        r->values[value] = *in;
        r->borrowed[value] = 1;
        return 0;
}

/* Dense memory for a value of the graph. */
static int make_value(struct run *r, uint32_t value) {
        const struct af_value *v = &r->g->values[value];
        struct af_tensor *t = &r->values[value];
        size_t bytes = af_dtype_size(v->dtype);

        t->dtype = v->dtype;
        t->rank = v->rank;
        if (!eval_dims(r, v->dims, v->rank, t->dims))
                return shape_error(r, "a shape has no value for these inputs");
        for (uint32_t i = 0; i < v->rank; i++)
                if (t->dims[i] < 0 || __builtin_mul_overflow(bytes, (size_t)t->dims[i], &bytes))
                        return shape_error(r, "a symbol is bound by no input, or a shape is too large");
        af_tensor_make_dense(t);
        t->data = malloc(bytes + 1);
        return t->data ? 0 : -ENOMEM;
}

static int take_constant(struct run *r, uint32_t index) {
        const struct af_graph_constant *c = &r->g->constants[index];
        int e = make_value(r, c->value);

        if (e == 0 && c->n_bytes > 0)
                memcpy(r->values[c->value].data, c->bytes, c->n_bytes);
        return e;
}

static void release(struct run *r, uint32_t value) {
        if (!r->borrowed[value])
                free(r->values[value].data);
        r->values[value].data = NULL;
}

static int run_node(struct run *r, uint32_t index, bool keep) {
        const struct af_node *n = &r->g->nodes[index];
        struct af_reference_node node = {.g = r->g, .n = n, .symbols = r->symbols, .ret_why = r->ret_why};
        struct af_tensor *in = calloc((size_t)n->n_in + n->n_out + 1, sizeof(*in)), *out = in ? in + n->n_in : NULL;
        int e = in ? 0 : -ENOMEM;

        for (uint32_t j = 0; e == 0 && j < n->n_in; j++)
                in[j] = r->values[n->in[j]];
        for (uint32_t j = 0; e == 0 && j < n->n_out; j++) {
                e = make_value(r, n->out[j]);
                out[j] = r->values[n->out[j]]; /* the memory is one */
        }
        if (e == 0)
                e = af_reference_node_with(&node, in, out);
        free(in);
        for (uint32_t j = 0; e == 0 && !keep && j < n->n_in; j++)
                if (--r->uses[n->in[j]] == 0)
                        release(r, n->in[j]);
        for (uint32_t j = 0; e == 0 && !keep && j < n->n_out; j++)
                if (r->uses[n->out[j]] == 0)
                        release(r, n->out[j]);
        return e;
}

static int dense_copy(const struct af_tensor *t, struct af_tensor *ret) {
        struct af_view v;

        *ret = *t;
        af_tensor_make_dense(ret);
        af_view_of(t, &v);
        ret->data = malloc((size_t)v.count * v.elem_bytes + 1);
        if (!ret->data)
                return -ENOMEM;
        af_view_read(&v, 0, v.count, ret->data);
        return 0;
}

static int run_all(struct run *r, struct af_tensor *outputs, bool keep) {
        const struct af_graph *g = r->g;
        int e = 0;

        bind_symbols(r);
        for (uint32_t i = 0; i < g->n_inputs && e == 0; i++)
                e = take_input(r, i);
        for (uint32_t i = 0; i < g->n_constants && e == 0; i++)
                e = take_constant(r, i);
        for (uint32_t i = 0; i < g->n_nodes; i++)
                for (uint32_t j = 0; j < g->nodes[i].n_in; j++)
                        r->uses[g->nodes[i].in[j]]++;
        for (uint32_t i = 0; i < g->n_outputs; i++)
                r->uses[g->outputs[i].value]++;
        for (uint32_t i = 0; i < g->n_nodes && e == 0; i++)
                e = run_node(r, i, keep);
        for (uint32_t i = 0; i < g->n_outputs && e == 0; i++)
                e = dense_copy(&r->values[g->outputs[i].value], &outputs[i]);
        /* The caller gets every value dense and its own: inputs too. */
        for (uint32_t v = 0; v < g->n_values && e == 0 && keep; v++)
                if (r->borrowed[v]) {
                        struct af_tensor copy;
                        e = dense_copy(&r->values[v], &copy);
                        if (e == 0) {
                                r->values[v] = copy;
                                r->borrowed[v] = 0;
                        }
                }
        return e;
}

int af_reference_run(const struct af_graph *g, const struct af_tensor *inputs, struct af_tensor *ret_outputs, struct af_tensor **ret_values,
                     const char **ret_why) {
        const char *why = NULL;
        struct af_tensor *outputs = calloc((size_t)g->n_outputs + 1, sizeof(*outputs));
        struct run r = {
                .g = g,
                .inputs = inputs,
                .values = calloc((size_t)g->n_values + 1, sizeof(*r.values)),
                .borrowed = calloc((size_t)g->n_values + 1, 1),
                .uses = calloc((size_t)g->n_values + 1, sizeof(*r.uses)),
                .symbols = calloc((size_t)g->n_symbols + 1, sizeof(*r.symbols)),
                .ret_why = ret_why ? ret_why : &why,
        };
        int e = outputs && r.values && r.borrowed && r.uses && r.symbols ? run_all(&r, outputs, ret_values != NULL) : -ENOMEM;

        if (e == 0) {
                memcpy(ret_outputs, outputs, g->n_outputs * sizeof(*outputs));
                if (ret_values)
                        *ret_values = r.values;
        }
        for (uint32_t i = 0; e != 0 && outputs && i < g->n_outputs; i++)
                free(outputs[i].data);
        if (r.values && r.borrowed && (e != 0 || !ret_values)) {
                for (uint32_t v = 0; v < g->n_values; v++)
                        release(&r, v);
                free(r.values);
        }
        free(outputs);
        free(r.borrowed);
        free(r.uses);
        free(r.symbols);
        return e;
}

void af_reference_values_free(struct af_tensor *values, uint32_t n) {
        for (uint32_t i = 0; values && i < n; i++)
                free(values[i].data);
        free(values);
}
