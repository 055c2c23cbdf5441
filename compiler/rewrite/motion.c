/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pass: nodes in order, each written anew from what its operands have become. Views are moved where they stand, concats by their
 * readers. What nothing matches is kept, equal nodes become one.
 */
#include <errno.h>
#include <string.h>

#include "compiler/rewrite/motion.h"
#include "numeric/expand.h"

#define WORK_PER_NODE 4u
#define WORK_LEAST    32768u

static bool is_class(const struct af_node *n, enum af_op_class cls) {
        return af_op_info(n->op)->cls == cls;
}
static bool pinned_node(const struct mv *m, const struct af_node *n) {
        return m->pinned && m->pinned[n->source];
}

/* Something that a view or a concat is. */
static bool moves(const struct af_node *n) {
        switch (af_op_info(n->op)->cls) {
        case AF_CLASS_TRANSPOSE:
        case AF_CLASS_SLICE:
        case AF_CLASS_PAD:
        case AF_CLASS_CONCAT:
        case AF_CLASS_SPLIT:
        case AF_CLASS_GATHER:
                return true;
        default:
                return n->piece; /* of a composite: equal ones may be one */
        }
}

/* Per value of the old graph: whether someone reads all of it as it is, views aside and what will be computed in pieces. */
struct reads {
        bool *full, *pieces; /* pieces: of a concat or computed from one */
        uint16_t *reduced;   /* axes */
};

/* Axes of operand j over which it is reduced by what n's output is. */
static uint16_t reduced_through(const struct af_graph *g, const struct reads *r, const struct af_node *n, uint32_t j) {
        const struct af_value *x = &g->values[n->in[j]], *y = &g->values[n->out[0]];
        enum af_op_class cls = af_op_info(n->op)->cls;
        uint16_t axes = 0, out = r->reduced[n->out[0]];
        if (cls == AF_CLASS_REDUCE) {
                const struct af_attr *a = af_node_attr(n, AF_ATTR_AXES);
                for (uint32_t i = 0; i < a->n; i++)
                        axes |= (uint16_t)(1u << a->ints[i]);
                return axes;
        }
        if (mv_is_elementwise(n))
                return x->rank == y->rank && x->rank && memcmp(x->dims, y->dims, x->rank * sizeof(*x->dims)) == 0 ? out : 0;
        /* the last axis as two: reduced where its chunks are */
        bool chunks = cls == AF_CLASS_VIEW && x->rank && y->rank == x->rank + 1 &&
                      (x->rank == 1 || memcmp(x->dims, y->dims, (x->rank - 1) * sizeof(*x->dims)) == 0);
        return chunks && out >> x->rank & 1 ? (uint16_t)(1u << (x->rank - 1)) : 0;
}

static int reads_make(const struct mv *m, struct reads *r) {
        const struct af_graph *g = m->b->from;
        r->full = af_arena_calloc(g->arena, g->n_values, 1);
        r->pieces = af_arena_calloc(g->arena, g->n_values, 1);
        r->reduced = af_arena_calloc(g->arena, g->n_values, sizeof(*r->reduced));
        if (!r->full || !r->pieces || !r->reduced)
                return -ENOMEM;
        for (uint32_t i = 0; i < g->n_nodes; i++) {
                const struct af_node *n = &g->nodes[i];
                bool any = is_class(n, AF_CLASS_CONCAT) || is_class(n, AF_CLASS_PAD);
                for (uint32_t j = 0; j < n->n_in && (mv_is_elementwise(n) || is_class(n, AF_CLASS_VIEW)); j++)
                        any |= r->pieces[n->in[j]];
                for (uint32_t j = 0; j < n->n_out; j++)
                        r->pieces[n->out[j]] = any && !pinned_node(m, n);
        }
        for (uint32_t i = 0; i < g->n_outputs; i++)
                r->full[g->outputs[i].value] = true;
        for (uint32_t i = g->n_nodes; i-- > 0;) {
                const struct af_node *n = &g->nodes[i];
                enum af_op_class cls = af_op_info(n->op)->cls;
                bool view = cls == AF_CLASS_SLICE || cls == AF_CLASS_SPLIT || cls == AF_CLASS_TRANSPOSE || cls == AF_CLASS_GATHER;
                bool through = mv_is_elementwise(n) || cls == AF_CLASS_VIEW || cls == AF_CLASS_BROADCAST || cls == AF_CLASS_CONCAT ||
                               cls == AF_CLASS_PAD;
                for (uint32_t j = 0; j < n->n_in; j++) {
                        bool whole = pinned_node(m, n) || !(through || (view && j == 0));
                        bool apart = through && r->pieces[n->out[0]] && !r->pieces[n->in[j]] && mv_is_elementwise(n);
                        r->full[n->in[j]] |= whole || (through && !apart && r->full[n->out[0]]);
                        if (n->n_out)
                                r->reduced[n->in[j]] |= reduced_through(g, r, n, j);
                }
        }
        return 0;
}

static int mark(struct mv *m, bool **list, uint32_t *cap, uint32_t value) {
        int r = af_arena_grow(m->b->g.arena, list, cap, value + 1, sizeof(**list));
        if (!r)
                (*list)[value] = true;
        return r;
}

/* What is known of an old value is known of what it became. */
static int inherit(struct mv *m, const struct reads *r, uint32_t old) {
        uint32_t value = m->b->map[old];
        int e = r->full[old] ? mark(m, &m->full, &m->cap_full, value) : 0;
        if (!e)
                e = af_arena_grow(m->b->g.arena, &m->old_of, &m->cap_old_of, value + 1, sizeof(*m->old_of));
        if (!e && !m->old_of[value])
                m->old_of[value] = old + 1;
        if (!e && r->reduced[old]) {
                e = af_arena_grow(m->b->g.arena, &m->reduced, &m->cap_reduced, value + 1, sizeof(*m->reduced));
                if (!e)
                        m->reduced[value] |= r->reduced[old];
        }
        return !e && m->b->is_output[old] ? mark(m, &m->stored, &m->cap_stored, value) : e;
}

/* ---- one node ---- */

static uint32_t move_slice(struct mv *m, const struct af_node *n, uint32_t x) {
        const struct af_attr *starts = af_node_attr(n, AF_ATTR_STARTS), *steps = af_node_attr(n, AF_ATTR_STEPS);
        const struct af_value *out = &m->b->from->values[n->out[0]];
        struct mv_view v = {.kind = MV_SLICE, .rank = out->rank};
        for (uint32_t i = 0; i < out->rank; i++) {
                struct mv_range *r = &v.range[i];
                bool whole = out->dims[i] == rw_value(m->b, x)->dims[i] && steps->ints[i] == 1;
                int64_t d;
                bool known = af_expr_is_const(&m->b->g.exprs, starts->dims[i], &r->start) &&
                             af_expr_is_const(&m->b->g.exprs, out->dims[i], &r->size) && rw_dim(m->b, x, i, &d);
                if (!known && !(whole && af_expr_is_const(&m->b->g.exprs, starts->dims[i], &r->start) && r->start == 0))
                        return rw_fail(m->b);
                r->step = steps->ints[i];
                v.touched[i] = known;
        }
        return mv_slice(m, x, &v);
}

static uint32_t move_pad(struct mv *m, const struct af_node *n, uint32_t x, uint32_t fill) {
        const struct af_attr *lows = af_node_attr(n, AF_ATTR_LOW), *highs = af_node_attr(n, AF_ATTR_HIGH);
        int64_t low[AF_LIMIT_RANK], high[AF_LIMIT_RANK];
        for (uint32_t i = 0; i < rw_value(m->b, x)->rank; i++)
                if (!af_expr_is_const(&m->b->g.exprs, lows->dims[i], &low[i]) ||
                    !af_expr_is_const(&m->b->g.exprs, highs->dims[i], &high[i]))
                        return rw_fail(m->b);
        if (fill == AF_NONE)
                fill = rw_int(m->b, rw_value(m->b, x)->dtype, 0);
        return mv_pad(m, x, low, high, rw_cast(m->b, fill, rw_value(m->b, x)->dtype));
}

static uint32_t move_gather(struct mv *m, const struct af_node *n, uint32_t x, uint32_t index) {
        struct mv_view v = {.kind = n->op == AF_OP_GATHER ? MV_GATHER : MV_ELEMENTS, .rank = rw_value(m->b, x)->rank, .index = index};
        v.axis = (uint32_t)af_node_attr(n, AF_ATTR_AXIS)->i;
        return mv_gather(m, x, &v);
}

/* A reshape of a concat is a concat of reshapes where it keeps the axis. */
static uint32_t view_of_concat(struct mv *m, const struct af_node *n, uint32_t x) {
        const struct af_node *concat = mv_maker(m, x);
        const struct af_value *out = &m->b->from->values[n->out[0]];
        uint32_t pieces[64], dims[AF_LIMIT_RANK], k = concat->n_in, axis = (uint32_t)af_node_attr(concat, AF_ATTR_AXIS)->i, to = AF_NONE;
        int8_t map[AF_LIMIT_RANK];
        uint32_t flat = rw_reshape(m->b, x, out->dims, out->rank);
        if (flat == AF_NONE || !mv_work(m, k))
                return AF_NONE;
        mv_reshape_axes(m, x, flat, map);
        for (uint32_t i = 0; i < out->rank; i++)
                to = map[i] == (int8_t)axis ? i : to;
        if (to == AF_NONE)
                return flat;
        const struct af_node from = *mv_maker(m, x), *origin = m->b->origin;
        concat = &from;
        memcpy(pieces, concat->in, k * sizeof(*pieces));
        memcpy(dims, out->dims, out->rank * sizeof(*dims));
        for (uint32_t i = 0; i < k; i++) {
                dims[to] = rw_value(m->b, pieces[i])->dims[axis];
                pieces[i] = rw_reshape(m->b, pieces[i], dims, out->rank);
        }
        m->b->origin = &from;
        uint32_t y = mv_concat(m, pieces, k, to);
        m->b->origin = origin;
        return y;
}

/* Reshapes of reshapes, and those that change nothing. AF_NONE: as it is. */
static uint32_t move_reshape(struct mv *m, const struct af_node *n, uint32_t x) {
        const struct af_value *out = &m->b->from->values[n->out[0]], *v = rw_value(m->b, x);
        const struct af_node *maker = mv_maker(m, x);
        if (v->rank == out->rank && (v->rank == 0 || memcmp(v->dims, out->dims, v->rank * sizeof(*v->dims)) == 0))
                return x;
        if (maker && is_class(maker, AF_CLASS_VIEW))
                return mv_reshape(m, x, out->dims, out->rank);
        if (maker && maker->op == AF_OP_CONCAT)
                return view_of_concat(m, n, x);
        return AF_NONE;
}

static uint32_t move_broadcast(struct mv *m, const struct af_node *n, uint32_t x) {
        const struct af_value *out = &m->b->from->values[n->out[0]], *v = rw_value(m->b, x);
        const struct af_node *maker = mv_maker(m, x);
        if (v->rank == out->rank && (v->rank == 0 || memcmp(v->dims, out->dims, v->rank * sizeof(*v->dims)) == 0))
                return x;
        if (maker && is_class(maker, AF_CLASS_BROADCAST))
                return rw_broadcast(m->b, maker->in[0], out->dims, out->rank);
        return AF_NONE;
}

static bool over_pieces(const struct mv *m, const uint32_t *in, uint32_t n) {
        for (uint32_t j = 0; j < n; j++) {
                const struct af_node *maker = mv_maker(m, in[j]);
                if (maker && (maker->op == AF_OP_CONCAT || is_class(maker, AF_CLASS_BROADCAST)))
                        return true;
        }
        return false;
}

/* What a node with one output becomes; AF_NONE: it is kept. */
static uint32_t move(struct mv *m, const struct af_node *n, const uint32_t *in) {
        enum af_dtype dtype = m->b->from->values[n->out[0]].dtype;
        switch (af_op_info(n->op)->cls) {
        case AF_CLASS_SLICE:
                return move_slice(m, n, in[0]);
        case AF_CLASS_TRANSPOSE:
                return mv_transpose(m, in[0], af_node_attr(n, AF_ATTR_PERM)->ints);
        case AF_CLASS_CONCAT:
                return mv_concat(m, in, n->n_in, (uint32_t)af_node_attr(n, AF_ATTR_AXIS)->i);
        case AF_CLASS_PAD:
                return move_pad(m, n, in[0], n->n_in > 1 ? in[1] : AF_NONE);
        case AF_CLASS_GATHER:
                return move_gather(m, n, in[0], in[1]);
        case AF_CLASS_VIEW:
                return move_reshape(m, n, in[0]);
        case AF_CLASS_BROADCAST:
                return move_broadcast(m, n, in[0]);
        default:
                return mv_is_elementwise(n) && over_pieces(m, in, n->n_in) ? mv_elementwise(m, n, in, dtype) : AF_NONE;
        }
}

/* Slices for a split's outputs. False: it is kept. */
static bool split(struct mv *m, const struct af_node *n) {
        struct rw *b = m->b;
        uint32_t axis = (uint32_t)af_node_attr(n, AF_ATTR_AXIS)->i, x = b->map[n->in[0]];
        int64_t at = 0, size;
        for (uint32_t i = 0; i < n->n_out; i++)
                if (!af_expr_is_const(&b->g.exprs, b->from->values[n->out[i]].dims[axis], &size))
                        return false;
        for (uint32_t i = 0; i < n->n_out; i++, at += size) {
                af_expr_is_const(&b->g.exprs, b->from->values[n->out[i]].dims[axis], &size);
                b->map[n->out[i]] = mv_slice_axis(m, x, axis, at, size);
                if (b->map[n->out[i]] == AF_NONE)
                        return false;
        }
        return true;
}

/* Whether a value can stand for an old one. */
static bool same_value(const struct mv *m, uint32_t value, const struct af_value *old) {
        const struct af_value *v = rw_value(m->b, value);
        return v->dtype == old->dtype && v->rank == old->rank &&
               (v->rank == 0 || memcmp(v->dims, old->dims, v->rank * sizeof(*v->dims)) == 0);
}

/* Whether the node is what it was, over the same operands: then it is kept, whole. */
static bool unmoved(const struct mv *m, const struct af_node *n, const uint32_t *in, uint32_t value) {
        const struct af_value *v = rw_value(m->b, value);
        const struct af_node *made = v->kind == AF_VALUE_NODE ? &m->b->g.nodes[v->index] : NULL;
        return made && made->op == n->op && made->n_in == n->n_in && made->piece && memcmp(made->in, in, n->n_in * sizeof(*in)) == 0;
}

static int one(struct mv *m, uint32_t i, struct af_rewrite_notes *notes) {
        struct rw *b = m->b;
        const struct af_node *n = &b->from->nodes[i];
        uint32_t few[64], before = b->n_made, v = AF_NONE;
        struct rw_mark mark = rw_here(b);
        b->origin = n;
        if (!pinned_node(m, n) && n->op == AF_OP_SPLIT) {
                if (split(m, n))
                        return rw_note(b, notes, AF_REWRITE_MOVED, n->source, b->n_made - before);
                if (b->error < 0)
                        return b->error;
                rw_back(b, mark);
        }
        if (!pinned_node(m, n) && n->n_out == 1 && n->n_in <= AF_ARRAY_SIZE(few) && !n->effects) {
                for (uint32_t j = 0; j < n->n_in; j++)
                        few[j] = b->map[n->in[j]];
                v = move(m, n, few);
                if (b->error < 0)
                        return b->error;
                if (v == AF_NONE || b->error || !same_value(m, v, &b->from->values[n->out[0]]) || unmoved(m, n, few, v)) {
                        rw_back(b, mark);
                        v = AF_NONE;
                }
        }
        if (v == AF_NONE)
                return rw_keep(b, i, true);
        b->map[n->out[0]] = v;
        return moves(n) && !n->piece ? rw_note(b, notes, AF_REWRITE_MOVED, n->source, b->n_made - before) : 0;
}

int af_rewrite_motion(const struct af_graph *g, const bool *pinned, struct af_graph *ret, struct af_rewrite_notes *notes) {
        struct rw b;
        struct mv m = {.b = &b, .pinned = pinned, .work = (uint64_t)g->n_nodes * WORK_PER_NODE + WORK_LEAST};
        struct reads reads;
        uint32_t first = 0;
        while (first < g->n_nodes && !moves(&g->nodes[first]))
                first++;
        *ret = *g;
        if (first == g->n_nodes)
                return 0;
        int r = rw_begin(&b, g);
        m.scratch = af_arena_alloc(g->arena, af_eval_scratch_bytes(1));
        if (!r)
                r = m.scratch ? reads_make(&m, &reads) : -ENOMEM;
        if (!r)
                r = af_graph_users(g, &m.users_first, &m.users);
        for (uint32_t i = 0; !r && i < g->n_values; i++) /* inputs and constants stand already */
                if (b.map[i] != AF_NONE)
                        r = inherit(&m, &reads, i);
        for (uint32_t i = 0; !r && i < g->n_nodes; i++) {
                r = one(&m, i, notes);
                for (uint32_t j = 0; !r && j < g->nodes[i].n_out; j++)
                        r = inherit(&m, &reads, g->nodes[i].out[j]);
        }
        if (!r)
                r = rw_finish(&b, ret);
        if (r > 0) { /* no order of the nodes was found: the graph as it was */
                *ret = *g;
                r = 0;
        }
        return r;
}
