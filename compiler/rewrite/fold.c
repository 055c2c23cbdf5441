/* SPDX-License-Identifier: Apache-2.0 */
/* Views of views: one view where it can be, none where it shows all. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "compiler/rewrite/motion.h"

bool mv_full(const struct mv *m, uint32_t value) {
        return value < m->cap_full && m->full[value];
}
bool mv_stored(const struct mv *m, uint32_t value) {
        return value < m->cap_stored && m->stored[value];
}
bool mv_reduced(const struct mv *m, uint32_t value, uint32_t axis) {
        return value < m->cap_reduced && m->reduced[value] >> axis & 1;
}
bool mv_work(struct mv *m, uint64_t n) {
        if (m->work < n) {
                m->work = 0;
                return false;
        }
        m->work -= n;
        return true;
}
const struct af_node *mv_maker(const struct mv *m, uint32_t value) {
        const struct af_value *v = rw_value(m->b, value);
        const struct af_node *n = v->kind == AF_VALUE_NODE ? &m->b->g.nodes[v->index] : NULL;
        return n && !(m->pinned && m->pinned[n->source]) && n->n_out == 1 ? n : NULL;
}
bool mv_is_elementwise(const struct af_node *n) {
        enum af_op_class cls = af_op_info(n->op)->cls;
        return n->n_out == 1 && !n->effects && n->n_in > 0 &&
               (cls == AF_CLASS_ELEMENTWISE || cls == AF_CLASS_COMPARE || cls == AF_CLASS_SELECT || cls == AF_CLASS_CAST);
}

void mv_reshape_axes(const struct mv *m, uint32_t from, uint32_t to, int8_t *ret_map) {
        const struct af_value *x = rw_value(m->b, from), *y = rw_value(m->b, to);
        int64_t before = 1, reached = 1, d, e;
        uint32_t i = 0; /* axis of from */
        memset(ret_map, -1, AF_LIMIT_RANK);
        for (uint32_t k = 0; k < y->rank; k++) {
                if (!rw_dim(m->b, to, k, &d) || d == 0)
                        return;
                while (i < x->rank && (reached < before || (rw_dim(m->b, from, i, &e) && e == 1 && d != 1 && reached == before))) {
                        if (!rw_dim(m->b, from, i, &e) || __builtin_mul_overflow(reached, e, &reached))
                                return;
                        i++;
                }
                if (reached == before && i < x->rank && rw_dim(m->b, from, i, &e) && e == d) {
                        ret_map[k] = (int8_t)i++;
                        reached *= e;
                }
                if (__builtin_mul_overflow(before, d, &before))
                        return;
        }
}

uint32_t mv_reshape(struct mv *m, uint32_t x, const uint32_t *dims, uint32_t rank) {
        const struct af_node *n = x == AF_NONE ? NULL : mv_maker(m, x);
        return rw_reshape(m->b, n && af_op_info(n->op)->cls == AF_CLASS_VIEW ? n->in[0] : x, dims, rank);
}

/* ---- slice ---- */

static uint32_t slice_node(struct mv *m, uint32_t x, const struct mv_view *v) {
        struct rw *b = m->b;
        const struct af_value *value = rw_value(b, x);
        uint32_t rank = value->rank, starts[AF_LIMIT_RANK], stops[AF_LIMIT_RANK];
        int64_t steps[AF_LIMIT_RANK];
        const uint32_t *dims = value->dims;
        for (uint32_t i = 0; i < rank; i++) {
                const struct mv_range *r = &v->range[i];
                int64_t last = r->size ? (r->size - 1) * r->step + (r->step > 0 ? 1 : -1) : 0;
                starts[i] = rw_const_dim(b, v->touched[i] ? r->start : 0);
                stops[i] = v->touched[i] ? rw_const_dim(b, r->start + last) : dims[i];
                steps[i] = v->touched[i] ? r->step : 1;
        }
        const struct af_attr attrs[] = {{.key = AF_ATTR_STARTS, .dims = starts, .n = rank},
                                        {.key = AF_ATTR_STOPS, .dims = stops, .n = rank},
                                        {.key = AF_ATTR_STEPS, .ints = steps, .n = rank}};
        return rw_node(b, AF_OP_SLICE, &x, 1, attrs, 3, AF_DTYPE_INVALID);
}

/* Touched axes that show everything are not touched. False: nothing is. */
static bool slice_settle(const struct mv *m, uint32_t x, struct mv_view *v) {
        bool any = false;
        int64_t d;
        for (uint32_t i = 0; i < v->rank; i++) {
                struct mv_range *r = &v->range[i];
                if (v->touched[i] && rw_dim(m->b, x, i, &d) && r->size == d && (d < 2 || (r->step == 1 && r->start == 0)))
                        v->touched[i] = false;
                any |= v->touched[i];
        }
        return any;
}

/* Ranges of a slice node that are static; false where one is not. */
static bool ranges_of(const struct mv *m, const struct af_node *n, struct mv_view *ret) {
        const struct af_attr *starts = af_node_attr(n, AF_ATTR_STARTS), *steps = af_node_attr(n, AF_ATTR_STEPS);
        *ret = (struct mv_view){.kind = MV_SLICE, .rank = rw_value(m->b, n->in[0])->rank};
        for (uint32_t i = 0; i < ret->rank; i++) {
                int64_t size, have, start;
                bool known = af_expr_is_const(&m->b->g.exprs, starts->dims[i], &start) && rw_dim(m->b, n->out[0], i, &size);
                bool same = steps->ints[i] == 1 && rw_value(m->b, n->in[0])->dims[i] == rw_value(m->b, n->out[0])->dims[i];
                if (same && known && start == 0)
                        continue;
                if (!known || !rw_dim(m->b, n->in[0], i, &have))
                        return false;
                ret->touched[i] = true;
                ret->range[i] = (struct mv_range){start, steps->ints[i], size};
        }
        return true;
}

/* Slice of concat: the pieces that it meets, each sliced. */
static uint32_t slice_of_concat(struct mv *m, const struct af_node *n, const struct mv_view *v) {
        uint32_t axis = (uint32_t)af_node_attr(n, AF_ATTR_AXIS)->i, pieces[64], k = 0, n_in = n->n_in, in[64];
        struct mv_range whole = v->range[axis];
        bool back = v->touched[axis] && whole.step < 0;
        int64_t at = 0, d;
        memcpy(in, n->in, n_in * sizeof(*in));
        for (uint32_t i = 0; i < n_in; i++) {
                struct mv_view part = *v;
                if (!rw_dim(m->b, in[i], axis, &d))
                        return rw_fail(m->b);
                if (v->touched[axis]) {
                        int64_t pace = back ? -whole.step : whole.step, lowest = back ? whole.start - (whole.size - 1) * pace : whole.start;
                        int64_t first = AF_MAX(0, (at - lowest + pace - 1) / pace); /* of the places in rising order */
                        if (at <= lowest)
                                first = 0;
                        int64_t end = at + d <= lowest ? 0 : AF_MIN(whole.size, (at + d - lowest + pace - 1) / pace);
                        struct mv_range *r = &part.range[axis];
                        r->size = AF_MAX(0, end - first);
                        r->start = lowest + (back ? end - 1 : first) * pace - at;
                }
                at += d;
                if (v->touched[axis] && part.range[axis].size == 0)
                        continue;
                pieces[k++] = mv_slice(m, in[i], &part);
        }
        if (k == 0) { /* nothing of it */
                struct mv_view none = *v;
                none.range[axis] = (struct mv_range){0, 1, 0};
                return mv_slice(m, in[0], &none);
        }
        for (uint32_t i = 0; back && i < k / 2; i++) {
                uint32_t t = pieces[i];
                pieces[i] = pieces[k - 1 - i];
                pieces[k - 1 - i] = t;
        }
        return mv_concat(m, pieces, k, axis);
}

/* Slice of slice; false where the inner one is not static. */
static bool slice_compose(const struct mv *m, const struct af_node *n, const struct mv_view *v, struct mv_view *ret) {
        if (!ranges_of(m, n, ret))
                return false;
        for (uint32_t i = 0; i < v->rank; i++) {
                if (!v->touched[i])
                        continue;
                struct mv_range in = ret->touched[i] ? ret->range[i] : (struct mv_range){0, 1, 0}, out = v->range[i];
                ret->range[i] = (struct mv_range){in.start + in.step * out.start, in.step * out.step, out.size};
                ret->touched[i] = true;
        }
        return true;
}

/* Slice of transpose: the transpose of the slice. */
static uint32_t slice_of_transpose(struct mv *m, const struct af_node *n, const struct mv_view *v) {
        struct mv_view inner = {.kind = MV_SLICE, .rank = v->rank};
        int64_t perm[AF_LIMIT_RANK];
        uint32_t x = n->in[0];
        memcpy(perm, af_node_attr(n, AF_ATTR_PERM)->ints, v->rank * sizeof(*perm));
        for (uint32_t i = 0; i < v->rank; i++) {
                inner.range[perm[i]] = v->range[i];
                inner.touched[perm[i]] = v->touched[i];
        }
        return mv_transpose(m, mv_slice(m, x, &inner), perm);
}

static uint32_t slice_deeper(struct mv *m, uint32_t x, struct mv_view *v) {
        const struct af_node *n = mv_maker(m, x);
        struct mv_view inner;
        if (n && n->op == AF_OP_SLICE && slice_compose(m, n, v, &inner))
                return mv_slice(m, n->in[0], &inner);
        if (n && n->op == AF_OP_CONCAT && mv_work(m, n->n_in))
                return slice_of_concat(m, n, v);
        if (n && n->op == AF_OP_TRANSPOSE)
                return slice_of_transpose(m, n, v);
        uint32_t moved = n ? mv_push(m, x, v) : AF_NONE;
        return moved != AF_NONE || m->b->error ? moved : slice_node(m, x, v);
}

uint32_t mv_slice(struct mv *m, uint32_t x, const struct mv_view *view) {
        struct mv_view v = *view;
        if (x == AF_NONE || m->b->error)
                return AF_NONE;
        if (!slice_settle(m, x, &v))
                return x;
        if (m->depth >= MV_DEPTH_MAX || !mv_work(m, 1))
                return slice_node(m, x, &v);
        m->depth++;
        uint32_t y = slice_deeper(m, x, &v);
        m->depth--;
        return y;
}

uint32_t mv_slice_axis(struct mv *m, uint32_t x, uint32_t axis, int64_t start, int64_t size) {
        if (x == AF_NONE)
                return x;
        struct mv_view v = {.kind = MV_SLICE, .rank = rw_value(m->b, x)->rank};
        v.range[axis] = (struct mv_range){start, 1, size};
        v.touched[axis] = true;
        return mv_slice(m, x, &v);
}

/* ---- transpose ---- */

static uint32_t transpose_node(struct mv *m, uint32_t x, const int64_t *perm) {
        uint32_t rank = rw_value(m->b, x)->rank;
        struct af_attr attr = {.key = AF_ATTR_PERM, .ints = perm, .n = rank};
        return rw_node(m->b, AF_OP_TRANSPOSE, &x, 1, &attr, 1, AF_DTYPE_INVALID);
}

/* Whether the axes longer than 1 keep their order: then it is a reshape. */
static bool keeps_order(const struct mv *m, uint32_t x, const int64_t *perm) {
        int64_t last = -1, d;
        for (uint32_t i = 0; i < rw_value(m->b, x)->rank; i++) {
                if (rw_dim(m->b, x, (uint32_t)perm[i], &d) && d == 1)
                        continue;
                if (perm[i] < last)
                        return false;
                last = perm[i];
        }
        return true;
}

static uint32_t transpose_of_concat(struct mv *m, const struct af_node *n, const int64_t *perm, uint32_t rank) {
        uint32_t axis = (uint32_t)af_node_attr(n, AF_ATTR_AXIS)->i, n_in = n->n_in, pieces[64], out = 0;
        memcpy(pieces, n->in, n_in * sizeof(*pieces));
        while (out < rank && perm[out] != axis)
                out++;
        for (uint32_t i = 0; i < n_in; i++)
                pieces[i] = mv_transpose(m, pieces[i], perm);
        return mv_concat(m, pieces, n_in, out);
}

static uint32_t transpose_deeper(struct mv *m, uint32_t x, const int64_t *perm) {
        const struct af_node *n = mv_maker(m, x);
        struct mv_view v = {.kind = MV_TRANSPOSE, .rank = rw_value(m->b, x)->rank};
        memcpy(v.perm, perm, v.rank * sizeof(*perm));
        if (n && n->op == AF_OP_TRANSPOSE) {
                const int64_t *inner = af_node_attr(n, AF_ATTR_PERM)->ints;
                for (uint32_t i = 0; i < v.rank; i++)
                        v.perm[i] = inner[perm[i]];
                return mv_transpose(m, n->in[0], v.perm);
        }
        if (n && n->op == AF_OP_CONCAT && mv_work(m, n->n_in))
                return transpose_of_concat(m, n, perm, v.rank);
        uint32_t lifted = mv_lift(m, x);
        if (lifted != AF_NONE && mv_work(m, 1))
                return mv_transpose(m, lifted, perm);
        if (m->b->error)
                return AF_NONE;
        uint32_t moved = n ? mv_push(m, x, &v) : AF_NONE;
        return moved != AF_NONE || m->b->error ? moved : transpose_node(m, x, perm);
}

uint32_t mv_transpose(struct mv *m, uint32_t x, const int64_t *perm) {
        if (x == AF_NONE || m->b->error)
                return AF_NONE;
        uint32_t rank = rw_value(m->b, x)->rank, dims[AF_LIMIT_RANK];
        bool identity = true;
        for (uint32_t i = 0; i < rank; i++) {
                dims[i] = rw_value(m->b, x)->dims[perm[i]];
                identity &= perm[i] == i;
        }
        if (identity)
                return x;
        if (keeps_order(m, x, perm))
                return mv_reshape(m, x, dims, rank);
        if (m->depth >= MV_DEPTH_MAX || !mv_work(m, 1))
                return transpose_node(m, x, perm);
        m->depth++;
        uint32_t y = transpose_deeper(m, x, perm);
        m->depth--;
        return y;
}

/* ---- gather ---- */

/* Whether one element per row is asked for, of rows that someone reads whole anyway. */
static bool picks(const struct mv *m, uint32_t x, const struct mv_view *v) {
        int64_t size, d, e;
        enum af_dtype t = rw_value(m->b, x)->dtype;
        bool known = rw_dim(m->b, x, v->axis, &size) && rw_dim(m->b, v->index, v->axis, &e) && e == 1;
        if (v->kind != MV_ELEMENTS || !known || !mv_reduced(m, x, v->axis) || size < 2 || size > RW_INDEX_MAX)
                return false;
        if (t != AF_DTYPE_FLOAT32 && t != AF_DTYPE_FLOAT16 && t != AF_DTYPE_BFLOAT16)
                return false;
        for (uint32_t i = 0; i < v->rank; i++)
                if (i != v->axis && (!rw_dim(m->b, x, i, &d) || !rw_dim(m->b, v->index, i, &e) || d != e))
                        return false;
        return true;
}

/* Largest of what stands at `at` (int32, along the axis) and -inf elsewhere: that element, NaN and -0.0 too. The axis stays, as 1. */
static uint32_t pick_at(struct mv *m, uint32_t x, uint32_t at, uint32_t axis) {
        struct rw *b = m->b;
        uint32_t dims[AF_LIMIT_RANK], rank = rw_value(b, x)->rank;
        int64_t axis64 = axis;
        for (uint32_t i = 0; i < rank; i++)
                dims[i] = i == axis ? rw_value(b, x)->dims[i] : rw_const_dim(b, 1);
        uint32_t hit = rw_binary(b, AF_OP_EQ, rw_iota(b, AF_DTYPE_INT32, dims, rank, axis, 0, 1), at);
        uint32_t one = rw_where(b, hit, x, rw_scalar(b, AF_DTYPE_FLOAT32, -INFINITY));
        return rw_reduce(b, AF_OP_REDUCE_MAX, one, &axis64, 1, true, AF_DTYPE_INVALID);
}

/* The same over chunks [.., R/d, d] of the last axis, so that it fits what else reads the row so. */
static uint32_t pick_in_chunks(struct mv *m, uint32_t x, uint32_t at, int64_t size, int64_t d) {
        struct rw *b = m->b;
        uint32_t dims[AF_LIMIT_RANK + 1], unit[AF_LIMIT_RANK + 1], rank = rw_value(b, x)->rank;
        int64_t last = rank - 1;
        for (uint32_t i = 0; i <= rank; i++) {
                dims[i] = i < rank ? rw_value(b, x)->dims[i] : rw_const_dim(b, d);
                unit[i] = rw_const_dim(b, 1);
        }
        dims[rank - 1] = unit[rank - 1] = rw_const_dim(b, size / d);
        uint32_t parts = rw_reshape(b, x, dims, rank + 1), first = rw_iota(b, AF_DTYPE_INT32, unit, rank + 1, rank - 1, 0, d);
        dims[rank - 1] = dims[rank] = rw_const_dim(b, 1);
        at = rw_binary(b, AF_OP_SUB, rw_reshape(b, at, dims, rank + 1), first);
        dims[rank - 1] = rw_const_dim(b, size / d);
        uint32_t best = rw_reshape(b, pick_at(m, parts, at, rank), dims, rank);
        return rw_reduce(b, AF_OP_REDUCE_MAX, best, &last, 1, true, AF_DTYPE_INVALID);
}

static uint32_t pick(struct mv *m, uint32_t x, const struct mv_view *v) {
        struct rw *b = m->b;
        enum af_dtype t = rw_value(b, x)->dtype;
        int64_t size = 0;
        rw_dim(b, x, v->axis, &size);
        uint32_t n = rw_int(b, AF_DTYPE_INT32, size), zero = rw_int(b, AF_DTYPE_INT32, 0), at = rw_index32(b, v->index);
        uint32_t from_end = rw_binary(b, AF_OP_ADD, at, n);
        at = rw_where(b, rw_binary(b, AF_OP_LT, at, zero), from_end, at);
        x = rw_cast(b, x, AF_DTYPE_FLOAT32);
        if (x == AF_NONE || at == AF_NONE)
                return AF_NONE;
        bool last = v->axis + 1 == rw_value(b, x)->rank && v->axis + 1 < AF_LIMIT_RANK;
        int64_t d = last ? rw_chunk_of(size) : 0;
        uint32_t y = d ? pick_in_chunks(m, x, at, size, d) : pick_at(m, x, at, v->axis);
        uint32_t below = rw_binary(b, AF_OP_LT, at, n), inside = rw_binary(b, AF_OP_LOGICAL_AND, rw_binary(b, AF_OP_GE, at, zero), below);
        return rw_where(b, inside, rw_cast(b, y, t), rw_int(b, t, 0));
}

/* A gather of an axis of nothing: every index is out of range, the result is 0. */
static uint32_t gather_nothing(struct mv *m, uint32_t x, const struct mv_view *v) {
        struct rw *b = m->b;
        const struct af_value *data = rw_value(b, x), *index = rw_value(b, v->index);
        uint32_t dims[2 * AF_LIMIT_RANK], n = 0, zero = rw_int(b, data->dtype, 0), one = rw_const_dim(b, 1);
        for (uint32_t i = 0; i < data->rank && v->kind == MV_GATHER; i++) {
                if (i != v->axis)
                        dims[n++] = data->dims[i];
                for (uint32_t k = 0; k < index->rank && i == v->axis; k++)
                        dims[n++] = index->dims[k];
        }
        if (v->kind == MV_ELEMENTS)
                return rw_broadcast(b, zero, index->dims, index->rank);
        /* a value of shape [] must not be a scalar constant: these meet other dtypes */
        return n ? rw_broadcast(b, zero, dims, n) : rw_reshape(b, rw_broadcast(b, zero, &one, 1), NULL, 0);
}

uint32_t mv_gather(struct mv *m, uint32_t x, const struct mv_view *v) {
        int64_t size;
        if (x == AF_NONE || m->b->error)
                return AF_NONE;
        if (rw_dim(m->b, x, v->axis, &size) && size == 0)
                return gather_nothing(m, x, v);
        const uint32_t in[] = {x, v->index};
        struct af_attr attr = {.key = AF_ATTR_AXIS, .i = v->axis};
        uint32_t moved = AF_NONE;
        if (m->depth < MV_DEPTH_MAX && mv_work(m, 1) && mv_maker(m, x)) {
                m->depth++;
                moved = mv_push(m, x, v);
                m->depth--;
        }
        if (moved != AF_NONE || m->b->error)
                return moved;
        if (picks(m, x, v)) {
                struct rw_mark mark = rw_here(m->b);
                uint32_t y = pick(m, x, v);
                if (y != AF_NONE || m->b->error < 0)
                        return y;
                rw_back(m->b, mark);
        }
        return rw_node(m->b, v->kind == MV_GATHER ? AF_OP_GATHER : AF_OP_GATHER_ELEMENTS, in, 2, &attr, 1, AF_DTYPE_INVALID);
}
