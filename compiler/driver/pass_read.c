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
        return 0;
}

static bool same_strides(const struct af_graph *g, const uint32_t *a, const uint32_t *b, uint32_t rank) {
        return memcmp(a, b, rank * sizeof(*a)) == 0; /* expressions are hash-consed */
}

static bool is_view(const struct af_graph *g, const struct af_value *v) {
        return v->kind == AF_VALUE_NODE && af_op_info(g->nodes[v->index].op)->cls == AF_CLASS_VIEW;
}

/* A node's value takes the strides that the first output showing it states; what a view states is the output's wish. */
static void settle_output_strides(struct af_graph *g) {
        for (uint32_t i = 0; i < g->n_outputs; i++) {
                struct af_graph_output *o = &g->outputs[i];
                struct af_value *v = &g->values[o->value];
                if (is_view(g, v))
                        o->strides = o->strides ? o->strides : v->strides;
                else if (o->strides && !v->strides && v->kind == AF_VALUE_NODE && g->nodes[v->index].op != AF_OP_OPAQUE)
                        v->strides = o->strides;
        }
}

static bool has_axis(const struct af_attr *axes, uint32_t axis) {
        for (uint32_t i = 0; axes && i < axes->n; i++)
                if (axes->ints[i] == axis)
                        return true;
        return false;
}

/* Views have the strides of the memory that they show: squeezed and unsqueezed, the axes left keep theirs; reshaped, it is dense. */
static int pass_strides_on(struct af_graph *g) {
        for (uint32_t i = 0; i < g->n_nodes; i++) {
                const struct af_node *n = &g->nodes[i];
                if (af_op_info(n->op)->cls != AF_CLASS_VIEW)
                        continue;
                const struct af_value *src = &g->values[n->in[0]];
                struct af_value *dst = &g->values[n->out[0]];
                dst->strides = NULL;
                if (n->op == AF_OP_RESHAPE || !src->strides)
                        continue;
                const struct af_attr *axes = af_node_attr(n, AF_ATTR_AXES);
                uint32_t *strides = af_arena_calloc(g->arena, AF_LIMIT_RANK, sizeof(*strides)), s = 0;
                if (!strides)
                        return -ENOMEM;
                for (uint32_t k = 0; k < dst->rank; k++) {
                        while (n->op == AF_OP_SQUEEZE && s < src->rank && has_axis(axes, s))
                                s++;
                        bool fresh = n->op == AF_OP_UNSQUEEZE && has_axis(axes, k);
                        int r = fresh || s >= src->rank ? af_expr_const(&g->exprs, 1, &strides[k]) : 0;
                        if (r)
                                return r;
                        if (!fresh && s < src->rank)
                                strides[k] = src->strides[s++];
                }
                dst->strides = strides;
        }
        return 0;
}

/* Whether output o can be the value's own memory. */
static bool output_fits(const struct af_graph *g, const struct af_graph_output *o) {
        const struct af_value *v = &g->values[o->value];
        if (!o->strides)
                return true;
        if (v->strides && same_strides(g, v->strides, o->strides, v->rank))
                return true;
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
        g->values[g->n_values++] = (struct af_value){
                .kind = AF_VALUE_NODE, .dtype = v->dtype, .rank = v->rank, .dims = v->dims, .strides = strides, .index = g->n_nodes};
        g->nodes[g->n_nodes++] =
                (struct af_node){.op = AF_OP_BROADCAST, .in = in, .n_in = 1, .out = out, .n_out = 1, .attrs = shape, .n_attrs = 1};
        *ret_value = *out;
        return 0;
}

/* Whether a value stands in memory in row-major order without gaps, so that a reshape of it is an alias. */
static bool is_dense(const struct af_graph *g, uint32_t value) {
        const struct af_value *v = &g->values[value];
        int64_t dims[AF_LIMIT_RANK], strides[AF_LIMIT_RANK], dense[AF_LIMIT_RANK];
        if (!v->strides)
                return true;
        if (!af_value_static_dims(g, value, dims) || !af_value_static_strides(g, value, strides))
                return false;
        af_job_dense_strides(dims, v->rank, dense);
        for (uint32_t i = 0; i < v->rank; i++)
                if (dims[i] == 0)
                        return true;
        for (uint32_t i = 0; i < v->rank; i++)
                if (dims[i] > 1 && strides[i] != dense[i])
                        return false;
        return true;
}

/* The value behind squeezes and unsqueezes, which keep whatever strides there are. */
static uint32_t behind_unit_views(const struct af_graph *g, uint32_t value) {
        while (g->values[value].kind == AF_VALUE_NODE) {
                const struct af_node *n = &g->nodes[g->values[value].index];
                if (n->op != AF_OP_SQUEEZE && n->op != AF_OP_UNSQUEEZE)
                        break;
                value = n->in[0];
        }
        return value;
}

/* Canonical numbers of nodes that stand as they stood, copies of outputs behind them. */
static int number_nodes(struct af_job *job, uint32_t n_old) {
        const struct af_graph *g = &job->graph;
        job->canonical = af_arena_calloc(job->arena, g->n_nodes, sizeof(*job->canonical));
        if (!job->canonical)
                return -ENOMEM;
        for (uint32_t i = 0; i < g->n_nodes; i++)
                job->canonical[i] = i < n_old ? g->nodes[i].source : AF_NONE;
        return 0;
}

/* A reshape of a value with gaps or permuted axes is no alias: it reads a dense copy instead, put right before it. dense: per node, false
 * for such reshapes, n_sparse of them. */
static int copy_before_reshapes(struct af_job *job, uint32_t n_old, const bool *dense, uint32_t n_sparse) {
        struct af_graph *g = &job->graph;
        struct af_node *old = g->nodes;
        uint32_t n_copies = g->n_nodes - n_old; /* of outputs: stay last */
        struct af_node *copies = old + n_old;
        uint32_t *place = af_arena_calloc(job->arena, g->n_nodes, sizeof(*place)); /* old number -> new */
        struct af_node *nodes = af_arena_calloc(job->arena, (size_t)g->n_nodes + n_sparse, sizeof(*nodes));
        job->canonical = af_arena_calloc(job->arena, (size_t)g->n_nodes + n_sparse, sizeof(*job->canonical));
        if (!place || !nodes || !job->canonical)
                return -ENOMEM;
        uint32_t n_values = g->n_values, n = 0;
        for (uint32_t i = 0; i < n_old; i++) {
                if (!dense[i]) {
                        uint32_t *in = af_arena_calloc(job->arena, 1, sizeof(*in));
                        if (!in)
                                return -ENOMEM;
                        g->nodes = nodes; /* add_copy appends to the new list */
                        g->n_nodes = n;
                        int r = add_copy(g, old[i].in[0], NULL, in);
                        if (r)
                                return r;
                        nodes[n].source = old[i].source; /* a piece's copy is a piece: both fall back as the whole node */
                        nodes[n].piece = old[i].piece;
                        job->canonical[n++] = AF_NONE;
                        old[i].in = in;
                }
                place[i] = n;
                job->canonical[n] = old[i].source;
                nodes[n++] = old[i];
        }
        for (uint32_t i = 0; i < n_copies; i++) {
                place[n_old + i] = n;
                job->canonical[n] = AF_NONE;
                nodes[n++] = copies[i];
        }
        for (uint32_t v = 0; v < n_values; v++) /* those added just now have their new number already */
                if (g->values[v].kind == AF_VALUE_NODE)
                        g->values[v].index = place[g->values[v].index];
        g->nodes = nodes;
        g->n_nodes = n;
        return 0;
}

/* The copy of an output falls back as the node whose value the sender has there. */
static void own_copy(const struct af_job *job, uint32_t output, struct af_node *copy) {
        const struct af_value *v = &job->read.values[job->read.outputs[output].value];
        if (v->kind != AF_VALUE_NODE)
                return;
        copy->source = job->read.nodes[v->index].source;
        copy->piece = true;
}

/* The lists are copied: the passes before this one keep theirs, and copies of values are appended. */
static int copy_lists(struct af_job *job) {
        struct af_graph *g = &job->graph;
        uint32_t n_reshapes = 0;
        for (uint32_t i = 0; i < g->n_nodes; i++)
                n_reshapes += g->nodes[i].op == AF_OP_RESHAPE;
        struct af_value *values = af_arena_calloc(job->arena, (size_t)g->n_values + g->n_outputs + n_reshapes, sizeof(*values));
        struct af_node *nodes = af_arena_calloc(job->arena, (size_t)g->n_nodes + g->n_outputs, sizeof(*nodes));
        if (!values || !nodes)
                return -ENOMEM;
        if (g->n_values)
                memcpy(values, g->values, g->n_values * sizeof(*values));
        if (g->n_nodes)
                memcpy(nodes, g->nodes, g->n_nodes * sizeof(*nodes));
        g->values = values;
        g->nodes = nodes;
        return 0;
}

int af_pass_outputs(struct af_job *job) {
        struct af_graph *g = &job->graph;
        uint32_t n_old = g->n_nodes, n_sparse = 0;
        int e = copy_lists(job);
        if (e)
                return e;
        settle_output_strides(g);
        e = pass_strides_on(g);
        if (e)
                return e;
        for (uint32_t i = 0; i < g->n_outputs; i++) {
                struct af_graph_output *o = &g->outputs[i];
                if (output_fits(g, o))
                        continue;
                int r = add_copy(g, o->value, o->strides, &o->value);
                if (r)
                        return r;
                own_copy(job, i, &g->nodes[g->n_nodes - 1]);
        }
        bool *dense = af_arena_calloc(job->arena, n_old, sizeof(*dense));
        if (!dense)
                return -ENOMEM;
        for (uint32_t i = 0; i < n_old; i++) {
                dense[i] = g->nodes[i].op != AF_OP_RESHAPE || is_dense(g, behind_unit_views(g, g->nodes[i].in[0]));
                n_sparse += !dense[i];
        }
        return n_sparse > 0 ? copy_before_reshapes(job, n_old, dense, n_sparse) : number_nodes(job, n_old);
}
