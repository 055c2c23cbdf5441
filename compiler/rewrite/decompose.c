/* SPDX-License-Identifier: Apache-2.0 */
/* The table of composites, the pass over it, and the definition of one node for the reference. */
#include "compiler/rewrite/decompose.h"

#include <errno.h>
#include <string.h>

static const rw_decompose_fn table[AF_N_OPS] = {
        [AF_OP_SOFTMAX] = rw_softmax,
        [AF_OP_LOG_SOFTMAX] = rw_log_softmax,
        [AF_OP_LOGSUMEXP] = rw_logsumexp,
        [AF_OP_LAYER_NORM] = rw_layer_norm,
        [AF_OP_RMS_NORM] = rw_rms_norm,
        [AF_OP_GROUP_NORM] = rw_group_norm,
        [AF_OP_INSTANCE_NORM] = rw_instance_norm,
        [AF_OP_BATCH_NORM] = rw_batch_norm,
        [AF_OP_VAR] = rw_var,
        [AF_OP_STD] = rw_std,
        [AF_OP_REDUCE_L1] = rw_reduce_l1,
        [AF_OP_REDUCE_L2] = rw_reduce_l2,
        [AF_OP_REDUCE_SUM_SQUARE] = rw_reduce_sum_square,
        [AF_OP_REDUCE_LOG_SUM] = rw_reduce_log_sum,
        [AF_OP_ARG_MAX] = rw_arg_max,
        [AF_OP_ARG_MIN] = rw_arg_min,
        [AF_OP_ONE_HOT] = rw_one_hot,
        [AF_OP_TRIU] = rw_triu,
        [AF_OP_TRIL] = rw_tril,
        [AF_OP_TILE] = rw_tile,
        [AF_OP_CUMSUM] = rw_cumsum,
        [AF_OP_FMA] = rw_fma,
        [AF_OP_AXPY] = rw_axpy,
        [AF_OP_MASKED_FILL] = rw_masked_fill,
        [AF_OP_SOFTPLUS] = rw_softplus,
        [AF_OP_SOFTSIGN] = rw_softsign,
        [AF_OP_ELU] = rw_elu,
        [AF_OP_SELU] = rw_selu,
        [AF_OP_CELU] = rw_celu,
        [AF_OP_HARDSIGMOID] = rw_hardsigmoid,
        [AF_OP_HARDSWISH] = rw_hardswish,
        [AF_OP_MISH] = rw_mish,
        [AF_OP_THRESHOLDED_RELU] = rw_thresholded_relu,
        [AF_OP_LERP] = rw_lerp,
        [AF_OP_ADDCMUL] = rw_addcmul,
        [AF_OP_ADDCDIV] = rw_addcdiv,
};

bool af_rewrite_is_composite(enum af_op op) {
        return op < AF_N_OPS && table[op] != NULL;
}

/* Magnitude of the least number: how many of them int32 holds the sum of. */
static int64_t magnitude(enum af_dtype d) {
        return d == AF_DTYPE_BOOL ? 1 : INT64_C(1) << (8 * af_dtype_size(d) - (af_dtype_kind(d) == 'u' ? 0 : 1));
}

/* Whether an integer sum into int64 may be beyond int32. */
static bool is_wide_sum(const struct af_graph *g, const struct af_node *n) {
        enum af_dtype in = g->values[n->in[0]].dtype;
        int64_t all = af_value_count(g, n->in[0]), kept = af_value_count(g, n->out[0]);
        if (n->op != AF_OP_REDUCE_SUM || g->values[n->out[0]].dtype != AF_DTYPE_INT64 || af_dtype_kind(in) == 'f')
                return false;
        return in == AF_DTYPE_INT64 || all < 0 || kept < 0 || (kept && all / kept > INT32_MAX / magnitude(in));
}

/* NULL: the node stays as it is. */
static rw_decompose_fn function_of(const struct af_graph *g, const struct af_node *n) {
        bool extreme = n->op == AF_OP_REDUCE_MAX || n->op == AF_OP_REDUCE_MIN;
        if (extreme && g->values[n->in[0]].dtype == AF_DTYPE_INT64)
                return rw_wide_extreme;
        if (n->op == AF_OP_REDUCE_SUM && is_wide_sum(g, n))
                return rw_wide_sum;
        return n->op < AF_N_OPS ? table[n->op] : NULL;
}

double rw_attr_number(const struct rw_composite *c, enum af_attr_key key, double otherwise) {
        const struct af_attr *a = af_node_attr(c->n, key);
        return !a ? otherwise : a->is_int ? (double)a->i : a->f;
}
int64_t rw_attr_int(const struct rw_composite *c, enum af_attr_key key, int64_t otherwise) {
        const struct af_attr *a = af_node_attr(c->n, key);
        return a ? a->i : otherwise;
}
uint32_t rw_operand(const struct rw_composite *c, uint32_t i) {
        if (i >= c->n->n_in)
                return AF_NONE;
        const struct af_value *v = rw_value(c->b, c->in[i]);
        bool wide = v->kind == AF_VALUE_CONST && v->rank == 0 && af_dtype_size(v->dtype) >= af_dtype_size(c->compute);
        double number;
        if (v->kind == AF_VALUE_CONST && v->rank == 0 && v->dtype == AF_DTYPE_FLOAT64 && c->compute == AF_DTYPE_FLOAT32) {
                memcpy(&number, c->b->g.constants[v->index].bytes, sizeof(number));
                return rw_number(c, number); /* such constants count as float32 wherever they meet narrower ones */
        }
        return wide && c->n->n_in > 1 ? c->in[i] : rw_cast(c->b, c->in[i], c->compute);
}

/* float64 stays that; everything else computes in float32. */
static enum af_dtype compute_dtype(const struct rw *b, const struct af_node *n) {
        for (uint32_t i = 0; i < n->n_in; i++)
                if (!af_value_is_scalar(b->from, n->in[i]) && b->from->values[n->in[i]].dtype == AF_DTYPE_FLOAT64)
                        return AF_DTYPE_FLOAT64;
        return AF_DTYPE_FLOAT32;
}

static bool same_shape(const struct af_value *a, const struct af_value *b) {
        return a->rank == b->rank && (a->rank == 0 || memcmp(a->dims, b->dims, a->rank * sizeof(*a->dims)) == 0);
}

/* Writes the nodes of one composite; the value, or AF_NONE: it stays whole, or b->error is negative. */
static uint32_t decompose(struct rw *b, const struct af_node *n) {
        uint32_t in[8];
        struct rw_composite c = {.b = b, .n = n, .in = in, .out = &b->from->values[n->out[0]], .compute = compute_dtype(b, n)};
        struct rw_mark mark = rw_here(b);
        if (n->n_in > AF_ARRAY_SIZE(in) || n->n_out != 1)
                return AF_NONE;
        for (uint32_t i = 0; i < n->n_in; i++)
                in[i] = b->map[n->in[i]];
        b->origin = n;
        uint32_t v = rw_cast(b, function_of(b->from, n)(&c), c.out->dtype);
        if (v != AF_NONE && !b->error && !same_shape(rw_value(b, v), c.out))
                v = rw_reshape(b, v, c.out->dims, c.out->rank); /* dims that are equal in other words */
        if (v == AF_NONE || b->error) {
                rw_back(b, mark);
                return AF_NONE;
        }
        return v;
}

static bool wanted(const struct af_graph *g, const struct af_node *n, const bool *pinned) {
        return function_of(g, n) && !(pinned && pinned[n->source]);
}

int af_rewrite_decompose(const struct af_graph *g, const bool *pinned, struct af_graph *ret, struct af_rewrite_notes *notes) {
        struct rw b;
        uint32_t first = 0;
        while (first < g->n_nodes && !wanted(g, &g->nodes[first], pinned))
                first++;
        if (first == g->n_nodes) {
                *ret = *g;
                return 0;
        }
        int r = rw_begin(&b, g);
        for (uint32_t i = 0; !r && i < g->n_nodes; i++) {
                const struct af_node *n = &g->nodes[i];
                uint32_t before = b.n_made, v = wanted(g, n, pinned) ? decompose(&b, n) : AF_NONE;
                r = AF_MIN(b.error, 0);
                if (!r && v == AF_NONE) {
                        r = rw_keep(&b, i, false);
                } else if (!r) {
                        b.map[n->out[0]] = v;
                        r = rw_note(&b, notes, AF_REWRITE_DECOMPOSED, n->source, b.n_made - before);
                }
        }
        if (!r)
                r = rw_finish(&b, ret);
        if (r > 0) { /* no order of the nodes was found: the graph as it was */
                *ret = *g;
                r = 0;
        }
        return r;
}
