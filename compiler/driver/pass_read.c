/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read: canonical bytes -> graph, and the proof that they are canonical.
 * outputs: copies where one value must stand in memory in two layouts.
 */
#include <errno.h>
#include <string.h>

#include "compiler/driver/job.h"
#include "compiler/graph/canon.h"

int af_pass_read(struct af_job *job) {
        int r = af_canon_read(&job->graph, job->arena, job->canon, job->n_canon, job->diags);
        if (r)
                return r < 0 ? r : AF_DRIVER_E_INVALID;
        AF_CLEANUP(af_buf_deinit) struct af_buf again = AF_BUF_INIT;
        r = af_canon_write(&job->graph, &again, NULL);
        if (r)
                return r;
        if (again.size != job->n_canon || memcmp(again.data, job->canon, job->n_canon) != 0) {
                af_diag_error(job->diags, "canonical form", "the bytes are a graph but not its canonical form");
                return AF_DRIVER_E_NOT_CANONICAL;
        }
        job->n_original_nodes = job->graph.n_nodes;
        return 0;
}

static bool same_strides(const struct af_graph *g, const uint32_t *a, const uint32_t *b, uint32_t rank) {
        return memcmp(a, b, rank * sizeof(*a)) == 0; /* expressions are hash-consed */
}

/* Whether output o can be the value's own memory; if so its strides become the value's. */
static bool output_fits(struct af_graph *g, const struct af_graph_output *o) {
        struct af_value *v = &g->values[o->value];
        if (!o->strides)
                return true;
        if (v->strides)
                return same_strides(g, v->strides, o->strides, v->rank);
        if (v->kind == AF_VALUE_NODE && af_op_info(g->nodes[v->index].op)->cls != AF_CLASS_VIEW &&
            g->nodes[v->index].op != AF_OP_OPAQUE) {
                v->strides = o->strides;
                return true;
        }
        int64_t want[AF_LIMIT_RANK], have[AF_LIMIT_RANK];
        if (!af_value_static_strides(g, o->value, have))
                return false;
        for (uint32_t i = 0; i < v->rank; i++)
                if (!af_expr_is_const(&g->exprs, o->strides[i], &want[i]) || want[i] != have[i])
                        return false;
        return true;
}

/* Appends `value' = broadcast(value)`: the same elements, stored with these strides. */
static int add_copy(struct af_graph *g, uint32_t value, const uint32_t *strides, uint32_t *ret_value) {
        struct af_value *v = &g->values[value];
        struct af_attr *shape = af_arena_alloc(g->arena, sizeof(*shape));
        uint32_t *in = af_arena_calloc(g->arena, 1, sizeof(*in)), *out = af_arena_calloc(g->arena, 1, sizeof(*out));
        if (!shape || !in || !out)
                return -ENOMEM;
        *shape = (struct af_attr){.key = AF_ATTR_SHAPE, .dims = v->dims, .n = v->rank};
        *in = value;
        *out = g->n_values;
        g->values[g->n_values++] = (struct af_value){.kind = AF_VALUE_NODE, .dtype = v->dtype, .rank = v->rank, .dims = v->dims,
                                                     .strides = strides, .index = g->n_nodes};
        g->nodes[g->n_nodes++] =
                (struct af_node){.op = AF_OP_BROADCAST, .in = in, .n_in = 1, .out = out, .n_out = 1, .attrs = shape, .n_attrs = 1};
        *ret_value = *out;
        return 0;
}

int af_pass_outputs(struct af_job *job) {
        struct af_graph *g = &job->graph;
        struct af_value *values = af_arena_calloc(job->arena, g->n_values + g->n_outputs, sizeof(*values));
        struct af_node *nodes = af_arena_calloc(job->arena, g->n_nodes + g->n_outputs, sizeof(*nodes));
        if (!values || !nodes)
                return -ENOMEM;
        if (g->n_values)
                memcpy(values, g->values, g->n_values * sizeof(*values));
        if (g->n_nodes)
                memcpy(nodes, g->nodes, g->n_nodes * sizeof(*nodes));
        g->values = values;
        g->nodes = nodes;
        for (uint32_t i = 0; i < g->n_outputs; i++) {
                struct af_graph_output *o = &g->outputs[i];
                if (output_fits(g, o))
                        continue;
                int r = add_copy(g, o->value, o->strides, &o->value);
                if (r)
                        return r;
        }
        return 0;
}
