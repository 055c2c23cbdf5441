/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves one view up through the cone of nodes that compute a value, to the leaves of the cone. Elementwise nodes know each element by its
 * place, so f(x, y)[v] = f(x[v], y[v]), where an operand that is spread over an axis is not touched on it. Reductions let slices of the
 * axes that they keep through, where the order of their sums stays what it was.
 *
 * A node is not moved through where that would compute something costly twice (HEAVY, reductions) that someone else reads in full. A
 * move is a gain where no more bytes must be stored for the views after it than before.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/rewrite/motion.h"

struct cone {
        struct mv *m;
        const struct mv_view *view;
        struct mv_entry *entries;
        uint32_t n, cap;
        int64_t cost; /* bytes of leaves that would have to be stored */
        bool failed;
        bool costly;                  /* may move through what is costly and read in full, if its readers all move too */
        const struct af_node *origin; /* of the view */
};

static bool touches(const struct mv_view *v, int8_t axis) {
        if (v->kind == MV_TRANSPOSE)
                return true;
        return axis >= 0 && (v->kind == MV_SLICE ? v->touched[axis] : (uint32_t)axis == v->axis);
}
static bool affected(const struct mv_view *v, const int8_t *map, uint32_t rank) {
        for (uint32_t i = 0; i < rank; i++)
                if (touches(v, map[i]))
                        return true;
        return false;
}

/* Axes of an operand that is broadcast to the node's shape. */
static void map_broadcast(const struct cone *c, uint32_t node_value, const int8_t *map, uint32_t operand, int8_t *ret) {
        const struct af_value *v = rw_value(c->m->b, node_value), *o = rw_value(c->m->b, operand);
        int64_t d;
        for (uint32_t k = 0; k < o->rank; k++) {
                uint32_t axis = k + v->rank - o->rank;
                bool spread = o->dims[k] != v->dims[axis] && rw_dim(c->m->b, operand, k, &d) && d == 1;
                ret[k] = spread ? -1 : map[axis];
        }
}

/* Axes of what a reshape, squeeze or unsqueeze shows; false where the view touches one that it does not keep. */
static bool map_reshape(const struct cone *c, uint32_t value, const int8_t *map, uint32_t operand, int8_t *ret) {
        int8_t axes[AF_LIMIT_RANK];
        memset(ret, -1, AF_LIMIT_RANK);
        mv_reshape_axes(c->m, operand, value, axes);
        for (uint32_t k = 0; k < rw_value(c->m->b, value)->rank; k++) {
                if (axes[k] >= 0)
                        ret[axes[k]] = map[k];
                else if (touches(c->view, map[k]))
                        return false;
        }
        return true;
}

static void map_reduce(const struct cone *c, const struct af_node *n, const int8_t *map, int8_t *ret) {
        const struct af_attr *axes = af_node_attr(n, AF_ATTR_AXES);
        bool keep = af_node_attr(n, AF_ATTR_KEEPDIMS)->i;
        uint32_t next = 0, out = 0;
        for (uint32_t k = 0; k < rw_value(c->m->b, n->in[0])->rank; k++) {
                bool reduced = next < axes->n && axes->ints[next] == k;
                next += reduced;
                ret[k] = reduced ? -1 : map[out];
                out += !reduced || keep;
        }
}

/* False: the view cannot pass to this operand. */
static bool map_operand(const struct cone *c, const struct af_node *n, const int8_t *map, uint32_t j, int8_t *ret) {
        switch (af_op_info(n->op)->cls) {
        case AF_CLASS_VIEW:
                return map_reshape(c, n->out[0], map, n->in[j], ret);
        case AF_CLASS_REDUCE:
                map_reduce(c, n, map, ret);
                return true;
        default:
                map_broadcast(c, n->out[0], map, n->in[j], ret);
                return true;
        }
}

/*
 * Floating sums run in an order that the extents of a shape fix: it stays where no axis that varies faster than a reduced one becomes or
 * ceases to be a unit axis. The 1 that a reduced axis leaves is nothing to slice.
 */
static bool order_stays(const struct cone *c, const struct af_node *n, const int8_t *map) {
        const struct af_attr *axes = af_node_attr(n, AF_ATTR_AXES);
        bool keep = af_node_attr(n, AF_ATTR_KEEPDIMS)->i;
        uint32_t next = 0, out = 0;
        int64_t d;
        for (uint32_t k = 0; k < rw_value(c->m->b, n->in[0])->rank; k++) {
                bool reduced = next < axes->n && axes->ints[next] == k;
                next += reduced;
                if (reduced && !keep)
                        continue;
                int8_t axis = map[out++];
                if (!touches(c->view, axis))
                        continue;
                if (reduced || !rw_dim(c->m->b, n->in[0], k, &d) || (next > 0 && (d == 1) != (c->view->range[axis].size == 1)))
                        return false;
        }
        return true;
}

static bool costly(const struct cone *c, const struct af_node *n) {
        const struct af_op_info *info = af_op_info(n->op);
        return ((info->flags & AF_OP_HEAVY) || info->cls == AF_CLASS_REDUCE) && mv_full(c->m, n->out[0]);
}

static bool passable(const struct cone *c, const struct af_node *n, const int8_t *map) {
        const struct af_op_info *info = af_op_info(n->op);
        bool slice = c->view->kind == MV_SLICE;
        if (costly(c, n) && (!c->costly || mv_stored(c->m, n->out[0])))
                return false;
        if (info->cls == AF_CLASS_VIEW)
                return slice || c->view->kind == MV_GATHER;
        if (info->cls == AF_CLASS_REDUCE)
                return slice && order_stays(c, n, map);
        if (info->cls == AF_CLASS_IOTA)
                return c->view->kind <= MV_TRANSPOSE && af_dtype_kind(rw_value(c->m->b, n->out[0])->dtype) != 'f';
        return info->cls == AF_CLASS_BROADCAST || mv_is_elementwise(n);
}

/* Whether a value is in memory without being stored for this: an input or constant, or a view of one. */
static bool is_source(const struct mv *m, uint32_t value) {
        for (uint32_t i = 0; i < 16; i++) {
                const struct af_value *v = rw_value(m->b, value);
                if (v->kind != AF_VALUE_NODE)
                        return true;
                const struct af_node *n = &m->b->g.nodes[v->index];
                enum af_op_class cls = af_op_info(n->op)->cls;
                if (cls != AF_CLASS_VIEW && cls != AF_CLASS_SLICE && cls != AF_CLASS_TRANSPOSE)
                        return false;
                value = n->in[0];
        }
        return false;
}

int64_t mv_bytes(const struct mv *m, uint32_t value) {
        int64_t n = af_value_count(&m->b->g, value), size = af_dtype_size(rw_value(m->b, value)->dtype), bytes;
        return n < 0 || __builtin_mul_overflow(n, size, &bytes) ? MV_BYTES_MAX : bytes;
}

static uint32_t *entry_slot(struct mv *m, uint32_t node) {
        if (af_arena_grow(m->b->g.arena, &m->entry_of, &m->cap_entry_of, node + 1, sizeof(*m->entry_of))) {
                m->b->error = -ENOMEM;
                return NULL;
        }
        return &m->entry_of[node];
}

/* A value that the view reaches: a node of the cone, or a leaf. */
static void reach(struct cone *c, uint32_t value, int8_t *map) {
        struct mv *m = c->m;
        uint32_t rank = rw_value(m->b, value)->rank;
        for (uint32_t i = 0; i < rank && c->view->kind == MV_SLICE; i++)
                map[i] = touches(c->view, map[i]) ? map[i] : -1; /* so that equal views are equal maps */
        const struct af_node *n = mv_maker(m, value);
        if (rank == 0 || !affected(c->view, map, rank))
                return;
        if (!n || !passable(c, n, map)) {
                bool concat = n && n->op == AF_OP_CONCAT && c->view->kind <= MV_TRANSPOSE;
                if (!is_source(m, value) && !mv_stored(m, value) && !concat)
                        c->cost = AF_MIN(MV_BYTES_MAX, c->cost + mv_bytes(m, value));
                return;
        }
        uint32_t node = rw_value(m->b, value)->index, *slot = entry_slot(m, node);
        if (!slot)
                return;
        if (*slot) { /* reached before: it must be the same view of it */
                c->failed |= memcmp(c->entries[*slot - 1].map, map, rank) != 0;
                return;
        }
        if (c->n >= MV_CONE_MAX || !mv_work(m, 1) || af_arena_grow(m->b->g.arena, &c->entries, &c->cap, c->n + 1, sizeof(*c->entries))) {
                c->failed = true;
                return;
        }
        struct mv_entry *e = &c->entries[c->n++];
        *slot = c->n;
        *e = (struct mv_entry){.node = node, .value = AF_NONE, .must_die = costly(c, n)};
        memcpy(e->map, map, rank);
}

/* Whether everyone who reads an old value is in the cone, or a view. */
static bool dies(const struct cone *c, uint32_t value) {
        const struct mv *m = c->m;
        const struct af_graph *from = m->b->from;
        uint32_t old = value < m->cap_old_of ? m->old_of[value] : 0;
        if (!old--)
                return false;
        for (uint32_t u = m->users_first[old]; u < m->users_first[old + 1]; u++) {
                const struct af_node *user = &from->nodes[m->users[u]];
                enum af_op_class cls = af_op_info(user->op)->cls;
                if (cls == AF_CLASS_SLICE || cls == AF_CLASS_SPLIT)
                        continue;
                uint32_t now = user->n_out == 1 ? m->b->map[user->out[0]] : AF_NONE;
                const struct af_value *v = now == AF_NONE ? NULL : rw_value(m->b, now);
                if (!v || v->kind != AF_VALUE_NODE || v->index >= m->cap_entry_of || !m->entry_of[v->index])
                        return false;
        }
        return true;
}

/* Fills the cone of x. */
static void explore(struct cone *c, uint32_t x) {
        int8_t map[AF_LIMIT_RANK];
        for (uint32_t i = 0; i < AF_LIMIT_RANK; i++)
                map[i] = (int8_t)i;
        reach(c, x, map);
        if (c->n == 0)
                c->failed = true; /* nothing to move through */
        for (uint32_t i = 0; i < c->n && !c->failed && !c->m->b->error; i++) {
                const struct af_node *n = &c->m->b->g.nodes[c->entries[i].node];
                int8_t own[AF_LIMIT_RANK];
                memcpy(own, c->entries[i].map, sizeof(own));
                for (uint32_t j = 0; j < n->n_in && !c->failed; j++) {
                        memset(map, -1, sizeof(map));
                        if (map_operand(c, n, own, j, map))
                                reach(c, n->in[j], map);
                        else
                                c->failed = true;
                }
        }
        for (uint32_t i = 0; i < c->n && !c->failed && !c->m->b->error; i++)
                c->failed = c->entries[i].must_die && !dies(c, c->m->b->g.nodes[c->entries[i].node].out[0]);
}

static void forget(struct cone *c) {
        for (uint32_t i = 0; i < c->n; i++)
                c->m->entry_of[c->entries[i].node] = 0;
}

/* ---- making it ---- */

/*
 * gather_elements of an operand that is spread over other axes: a vector along the axis, read by a plain gather; AF_NONE: it is not spread.
 */
static uint32_t spread_elements(struct cone *c, uint32_t value, const int8_t *map) {
        const struct af_value *v = rw_value(c->m->b, value);
        const struct mv_view whole = *c->view;
        bool spread = v->rank != whole.rank;
        uint32_t size = 0;
        int64_t d;
        for (uint32_t i = 0; i < v->rank; i++) {
                if (touches(&whole, map[i]))
                        size = v->dims[i];
                else
                        spread |= map[i] < 0;
        }
        if (!spread)
                return AF_NONE;
        for (uint32_t i = 0; i < v->rank; i++)
                if (!touches(&whole, map[i]) && !(rw_dim(c->m->b, value, i, &d) && d == 1))
                        return rw_fail(c->m->b);
        struct mv_view part = {.kind = MV_GATHER, .rank = 1, .index = whole.index};
        return mv_gather(c->m, mv_reshape(c->m, value, &size, 1), &part);
}

/* The view of an operand with this map: the whole view's part. */
static uint32_t view_of(struct cone *c, uint32_t value, const int8_t *map) {
        const struct mv_view *v = c->view;
        uint32_t rank = rw_value(c->m->b, value)->rank;
        struct mv_view part = {.kind = v->kind, .rank = rank, .index = v->index};
        c->m->b->origin = c->origin;
        if (v->kind == MV_ELEMENTS) {
                uint32_t y = spread_elements(c, value, map);
                if (y != AF_NONE || c->m->b->error)
                        return y;
        }
        if (v->kind == MV_TRANSPOSE) { /* the axes that it lacks stand before it, as unit axes */
                uint32_t dims[AF_LIMIT_RANK], lacks = v->rank - rank;
                for (uint32_t i = 0; i < v->rank; i++)
                        dims[i] = i < lacks ? rw_const_dim(c->m->b, 1) : rw_value(c->m->b, value)->dims[i - lacks];
                return mv_transpose(c->m, mv_reshape(c->m, value, dims, v->rank), v->perm);
        }
        for (uint32_t i = 0; i < rank; i++) {
                if (!touches(v, map[i]))
                        continue;
                part.axis = i;
                part.touched[i] = true;
                part.range[i] = v->range[map[i]];
        }
        return v->kind == MV_SLICE ? mv_slice(c->m, value, &part) : mv_gather(c->m, value, &part);
}

/* An operand that a gather by an index of rank other than 1 does not touch still changes its rank: unit axes stand for the index's. */
static uint32_t beside_gather(struct cone *c, uint32_t value, uint32_t node_rank, const int8_t *node_map) {
        const struct mv_view *v = c->view;
        uint32_t rank = rw_value(c->m->b, value)->rank, q = rw_value(c->m->b, v->index)->rank, dims[2 * AF_LIMIT_RANK], n = 0;
        uint32_t lacks = node_rank - rank;
        for (uint32_t i = 0; i < rank; i++) {
                if (node_map[i + lacks] != (int8_t)v->axis || node_map[i + lacks] < 0) {
                        dims[n++] = rw_value(c->m->b, value)->dims[i];
                        continue;
                }
                for (uint32_t k = 0; k < q; k++)
                        dims[n++] = rw_const_dim(c->m->b, 1);
        }
        return n > AF_LIMIT_RANK ? rw_fail(c->m->b) : mv_reshape(c->m, value, dims, n);
}

/* The output's dims of a node that states its shape, seen through the view. */
static uint32_t shape_of(struct cone *c, uint32_t value, const int8_t *map, uint32_t *ret_dims) {
        const struct mv_view *v = c->view;
        const struct af_value out = *rw_value(c->m->b, value);
        uint32_t n = 0;
        if (v->kind == MV_TRANSPOSE) {
                for (uint32_t i = 0; i < v->rank; i++) {
                        uint32_t k = (uint32_t)v->perm[i], lacks = v->rank - out.rank;
                        ret_dims[i] = k < lacks ? rw_const_dim(c->m->b, 1) : out.dims[k - lacks];
                }
                return v->rank;
        }
        for (uint32_t k = 0; k < out.rank; k++) {
                if (!touches(v, map[k])) {
                        ret_dims[n++] = out.dims[k];
                } else if (v->kind == MV_SLICE) {
                        ret_dims[n++] = rw_const_dim(c->m->b, v->range[map[k]].size);
                } else if (v->kind == MV_ELEMENTS) {
                        ret_dims[n++] = rw_value(c->m->b, v->index)->dims[v->axis];
                } else {
                        const struct af_value *index = rw_value(c->m->b, v->index);
                        for (uint32_t q = 0; q < index->rank && n < AF_LIMIT_RANK; q++)
                                ret_dims[n++] = index->dims[q];
                }
        }
        return n;
}

static uint32_t remake_iota(struct cone *c, const struct af_node *n, const int8_t *map) {
        const struct mv_view *v = c->view;
        uint32_t dims[AF_LIMIT_RANK], value = n->out[0], axis = (uint32_t)af_node_attr(n, AF_ATTR_AXIS)->i, out_axis = axis;
        int64_t start = af_node_attr(n, AF_ATTR_START)->i, step = af_node_attr(n, AF_ATTR_STEP)->i;
        enum af_dtype d = rw_value(c->m->b, value)->dtype;
        if (v->kind == MV_SLICE && touches(v, map[axis])) {
                start = (int64_t)((uint64_t)start + (uint64_t)step * (uint64_t)v->range[map[axis]].start);
                step = (int64_t)((uint64_t)step * (uint64_t)v->range[map[axis]].step);
        }
        uint32_t rank = shape_of(c, value, map, dims);
        for (uint32_t i = 0; v->kind == MV_TRANSPOSE && i < v->rank; i++)
                if (v->perm[i] == axis + (v->rank - rw_value(c->m->b, value)->rank))
                        out_axis = i;
        const uint32_t *ids = rw_keep_ids(c->m->b, dims, rank);
        const struct af_attr attrs[] = {{.key = AF_ATTR_AXIS, .i = out_axis},
                                        {.key = AF_ATTR_SHAPE, .dims = ids, .n = rank},
                                        {.key = AF_ATTR_START, .is_int = true, .i = start, .f = (double)start},
                                        {.key = AF_ATTR_STEP, .is_int = true, .i = step, .f = (double)step}};
        return rw_node(c->m->b, AF_OP_IOTA, NULL, 0, attrs, 4, d);
}

/* Entries in the order of their nodes: operands first. */
static int by_node(const void *a, const void *b) {
        const struct mv_entry *x = a, *y = b;
        return x->node < y->node ? -1 : x->node > y->node;
}

/* The operand of an entry as the moved node wants it. */
static uint32_t operand(struct cone *c, const struct mv_entry *e, const struct af_node *n, uint32_t j) {
        int8_t map[AF_LIMIT_RANK];
        uint32_t value = n->in[j], rank = rw_value(c->m->b, value)->rank, node_rank = rw_value(c->m->b, n->out[0])->rank;
        memset(map, -1, sizeof(map));
        map_operand(c, n, e->map, j, map);
        if (rank == 0)
                return value;
        if (!affected(c->view, map, rank))
                return c->view->kind == MV_GATHER ? beside_gather(c, value, node_rank, e->map) : value;
        const struct af_value *v = rw_value(c->m->b, value);
        struct mv_entry key = {.node = v->kind == AF_VALUE_NODE ? v->index : AF_NONE};
        const struct mv_entry *made = bsearch(&key, c->entries, c->n, sizeof(key), by_node);
        return made ? made->value : view_of(c, value, map);
}

static uint32_t remake(struct cone *c, const struct mv_entry *e) {
        struct rw *b = c->m->b;
        const struct af_node n = b->g.nodes[e->node];
        enum af_dtype d = rw_value(b, n.out[0])->dtype;
        uint32_t in[8], dims[2 * AF_LIMIT_RANK];
        if (n.n_in > AF_ARRAY_SIZE(in))
                return rw_fail(b);
        b->origin = &n; /* names and source */
        if (n.op == AF_OP_IOTA)
                return remake_iota(c, &n, e->map);
        for (uint32_t j = 0; j < n.n_in; j++)
                in[j] = operand(c, e, &n, j);
        b->origin = &n;
        switch (af_op_info(n.op)->cls) {
        case AF_CLASS_VIEW: {
                uint32_t rank = shape_of(c, n.out[0], e->map, dims);
                return mv_reshape(c->m, in[0], dims, rank);
        }
        case AF_CLASS_BROADCAST: {
                uint32_t rank = shape_of(c, n.out[0], e->map, dims);
                return rw_broadcast(b, in[0], dims, rank);
        }
        case AF_CLASS_REDUCE:
                return rw_node(b, n.op, in, n.n_in, n.attrs, n.n_attrs, d);
        default:
                return mv_elementwise(c->m, &n, in, d);
        }
}

/*
 * gather gives 0 for an index out of range, whatever f(0) is: so does what was moved. -n <= index < n is asked in float32, where it is
 * exact for n up to 2^24 whatever the index rounds to.
 */
static uint32_t zero_outside(struct cone *c, uint32_t x, uint32_t y) {
        struct rw *b = c->m->b;
        const struct mv_view *v = c->view;
        uint32_t dims[AF_LIMIT_RANK], n = 0, rank = rw_value(b, x)->rank;
        int64_t d;
        if (y == AF_NONE || !rw_dim(b, x, v->axis, &d))
                return AF_NONE;
        uint32_t index = rw_cast(b, v->index, AF_DTYPE_FLOAT32);
        uint32_t below = rw_binary(b, AF_OP_LT, index, rw_scalar(b, AF_DTYPE_FLOAT32, (double)d));
        uint32_t inside = rw_binary(b, AF_OP_GE, index, rw_scalar(b, AF_DTYPE_FLOAT32, -(double)d));
        inside = rw_binary(b, AF_OP_LOGICAL_AND, inside, below);
        if (v->kind == MV_GATHER && inside != AF_NONE && v->axis + 1 < rank) {
                const struct af_value *value = rw_value(b, inside);
                for (uint32_t i = 0; i < value->rank; i++)
                        dims[n++] = value->dims[i];
                for (uint32_t i = v->axis + 1; i < rank && n < AF_LIMIT_RANK; i++)
                        dims[n++] = rw_const_dim(b, 1);
                inside = rw_reshape(b, inside, dims, n);
        }
        return rw_where(b, inside, y, rw_int(b, rw_value(b, x)->dtype, 0));
}

static bool gather_movable(const struct mv *m, uint32_t x, const struct mv_view *v) {
        int64_t d, e;
        if (v->kind == MV_GATHER || v->kind == MV_ELEMENTS) {
                if (!rw_dim(m->b, x, v->axis, &d) || d > (1 << 24))
                        return false;
                int64_t have = af_value_count(&m->b->g, x), index = af_value_count(&m->b->g, v->index);
                if (have < 0 || index < 0 || index > 16 * AF_MAX(have, 1))
                        return false; /* it would compute much more than what is there */
        }
        for (uint32_t i = 0; v->kind == MV_ELEMENTS && i < rw_value(m->b, x)->rank; i++)
                if (i != v->axis && (!rw_dim(m->b, x, i, &d) || !rw_dim(m->b, v->index, i, &e) || d != e))
                        return false;
        return true;
}

/* The cone: with all that is costly, so that none of it is computed in full any more, or without what is read in full. */
static void survey(struct cone *c, uint32_t x) {
        c->costly = c->view->kind == MV_SLICE;
        explore(c, x);
        forget(c);
        if (!c->costly || !c->failed || c->m->b->error)
                return;
        c->n = 0;
        c->cost = 0;
        c->failed = c->costly = false;
        explore(c, x);
        forget(c);
}

int64_t mv_push_cost(struct mv *m, uint32_t x, const struct mv_view *view) {
        struct cone c = {.m = m, .view = view};
        if (!mv_maker(m, x))
                return is_source(m, x) ? 0 : mv_bytes(m, x);
        survey(&c, x);
        return c.failed ? is_source(m, x) ? 0 : mv_bytes(m, x) : c.cost;
}

uint32_t mv_push(struct mv *m, uint32_t x, const struct mv_view *view) {
        const struct af_node *origin = m->b->origin;
        struct cone c = {.m = m, .view = view, .origin = origin};
        struct rw_mark mark = rw_here(m->b);
        uint32_t y = AF_NONE;
        if (!gather_movable(m, x, view))
                return AF_NONE;
        survey(&c, x);
        if (m->b->error || c.failed || c.cost > (mv_stored(m, x) ? 0 : mv_bytes(m, x)))
                return AF_NONE;
        qsort(c.entries, c.n, sizeof(*c.entries), by_node);
        for (uint32_t i = 0; i < c.n && !m->b->error; i++)
                y = c.entries[i].value = remake(&c, &c.entries[i]);
        m->b->origin = origin;
        if (view->kind == MV_GATHER || view->kind == MV_ELEMENTS)
                y = zero_outside(&c, x, y);
        if (m->b->error > 0)
                rw_back(m->b, mark);
        if (m->b->error || y == AF_NONE)
                return AF_NONE;
        m->n_moved += c.n;
        return y;
}
