/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 64-bit integers that a vector unit has no arithmetic for, where fewer bits decide:
 *
 * - A compare with a constant c, |c| < 2^24, is that of the operand rounded to float32 with c: rounding keeps order, c and its neighbours
 * are exact, so nothing else rounds to c.
 * - A gather's index that is chosen (where) between others: as int32, out of range where it was.
 */
#include <errno.h>
#include <string.h>

#include "compiler/rewrite/build.h"

#define EXACT     (INT64_C(1) << 24) /* integers below it are exact in float32, and so are its multiples of 2 below 2^25 */
#define MAX_DEPTH 24u

struct narrow {
        struct rw *b;
        const bool *pinned;
};

static bool pinned_node(const struct narrow *w, const struct af_node *n) {
        return w->pinned && w->pinned[n->source];
}
static const struct af_node *maker(const struct narrow *w, uint32_t value) {
        const struct af_value *v = rw_value(w->b, value);
        const struct af_node *n = v->kind == AF_VALUE_NODE ? &w->b->g.nodes[v->index] : NULL;
        return n && !pinned_node(w, n) && n->n_out == 1 ? n : NULL;
}

/* An int64 scalar constant below 2^24. */
static bool small_constant(const struct af_graph *g, uint32_t value, int64_t *ret) {
        uint64_t bits;
        if (g->values[value].dtype != AF_DTYPE_INT64 || !af_value_scalar(g, value, &bits))
                return false;
        *ret = (int64_t)bits;
        return *ret > -EXACT && *ret < EXACT;
}

static bool is_compare(const struct af_graph *g, const struct af_node *n) {
        int64_t c;
        return af_op_info(n->op)->cls == AF_CLASS_COMPARE && n->n_in == 2 &&
               (small_constant(g, n->in[0], &c) ? g->values[n->in[1]].dtype == AF_DTYPE_INT64 && !af_value_is_scalar(g, n->in[1])
                                                : small_constant(g, n->in[1], &c) && !af_value_is_scalar(g, n->in[0]));
}

static uint32_t compare(struct narrow *w, const struct af_node *n) {
        uint32_t in[2];
        int64_t c;
        for (uint32_t j = 0; j < 2; j++)
                in[j] = small_constant(w->b->from, n->in[j], &c) ? rw_scalar(w->b, AF_DTYPE_FLOAT32, (double)c)
                                                                 : rw_cast(w->b, w->b->map[n->in[j]], AF_DTYPE_FLOAT32);
        return rw_node(w->b, n->op, in, 2, n->attrs, n->n_attrs, AF_DTYPE_INVALID);
}

/* A gather by an int64 index that a `where` computes, behind views. */
static bool is_chosen(const struct af_graph *g, const struct af_node *n) {
        int64_t size;
        if (af_op_info(n->op)->cls != AF_CLASS_GATHER || n->n_in != 2 || g->values[n->in[1]].dtype != AF_DTYPE_INT64)
                return false;
        const struct af_value *data = &g->values[n->in[0]], *v = &g->values[n->in[1]];
        if (!af_expr_is_const(&g->exprs, data->dims[af_node_attr(n, AF_ATTR_AXIS)->i], &size) || size > RW_INDEX_MAX)
                return false;
        for (uint32_t i = 0; i < MAX_DEPTH && v->kind == AF_VALUE_NODE; i++) {
                const struct af_node *by = &g->nodes[v->index];
                if (by->op == AF_OP_WHERE)
                        return true;
                if (af_op_info(by->op)->cls != AF_CLASS_VIEW && af_op_info(by->op)->cls != AF_CLASS_BROADCAST)
                        return false;
                v = &g->values[by->in[0]];
        }
        return false;
}

/* The index as int32, for an axis of this size. */
static uint32_t index32(struct narrow *w, uint32_t v, int64_t size, uint32_t depth) {
        struct rw *b = w->b;
        uint64_t bits;
        if (v == AF_NONE || depth == MAX_DEPTH)
                return rw_fail(b);
        if (af_value_scalar(&b->g, v, &bits)) {
                bool inside = (int64_t)bits >= -size && (int64_t)bits < size;
                return rw_int(b, AF_DTYPE_INT32, inside ? (int64_t)bits : INT32_MIN);
        }
        const struct af_node *by = maker(w, v);
        struct af_node n = by ? *by : (struct af_node){.op = AF_OP_INVALID};
        if (n.op == AF_OP_WHERE) {
                uint32_t y = index32(w, n.in[2], size, depth + 1), x = index32(w, n.in[1], size, depth + 1);
                return rw_where(b, n.in[0], x, y);
        }
        if (by && (af_op_info(n.op)->cls == AF_CLASS_VIEW || af_op_info(n.op)->cls == AF_CLASS_BROADCAST)) {
                uint32_t x = index32(w, n.in[0], size, depth + 1);
                return rw_node(b, n.op, &x, 1, n.attrs, n.n_attrs, AF_DTYPE_INVALID);
        }
        if (n.op == AF_OP_CAST && af_dtype_kind(rw_value(b, n.in[0])->dtype) != 'f' && af_dtype_size(rw_value(b, n.in[0])->dtype) <= 4)
                return rw_cast(b, n.in[0], AF_DTYPE_INT32);
        return rw_index32(b, v);
}

static uint32_t chosen(struct narrow *w, const struct af_node *n) {
        struct rw *b = w->b;
        int64_t size;
        if (!rw_dim(b, b->map[n->in[0]], (uint32_t)af_node_attr(n, AF_ATTR_AXIS)->i, &size))
                return AF_NONE;
        const uint32_t in[] = {b->map[n->in[0]], index32(w, b->map[n->in[1]], size, 0)};
        return rw_node(b, n->op, in, 2, n->attrs, n->n_attrs, AF_DTYPE_INVALID);
}

static uint32_t narrowed(struct narrow *w, const struct af_node *n) {
        struct rw_mark mark = rw_here(w->b);
        uint32_t v = AF_NONE;
        if (pinned_node(w, n))
                return v;
        w->b->origin = n;
        if (is_compare(w->b->from, n))
                v = compare(w, n);
        else if (is_chosen(w->b->from, n))
                v = chosen(w, n);
        if (v == AF_NONE && w->b->error >= 0)
                rw_back(w->b, mark);
        return v;
}

int af_rewrite_narrow(const struct af_graph *g, const bool *pinned, struct af_graph *ret, struct af_rewrite_notes *notes) {
        struct rw b;
        struct narrow w = {&b, pinned};
        uint32_t first = 0;
        *ret = *g;
        while (first < g->n_nodes && !is_compare(g, &g->nodes[first]) && !is_chosen(g, &g->nodes[first]))
                first++;
        if (first == g->n_nodes)
                return 0;
        int r = rw_begin(&b, g);
        for (uint32_t i = 0; !r && i < g->n_nodes; i++) {
                const struct af_node *n = &g->nodes[i];
                uint32_t before = b.n_made, v = narrowed(&w, n);
                r = AF_MIN(b.error, 0);
                if (!r && v == AF_NONE) {
                        r = rw_keep(&b, i, false);
                } else if (!r) {
                        b.map[n->out[0]] = v;
                        r = n->piece ? 0 : rw_note(&b, notes, AF_REWRITE_NARROWED, n->source, b.n_made - before);
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
