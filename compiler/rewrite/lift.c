/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reshape of something computed, moved up to what that is computed from, so that a transpose behind it can go on: reshape(f(x, y)) =
 * f(reshape(x), reshape(y)). Axes fall into groups that hold the same elements before and after; an operand has a group whole, or is spread
 * over all of it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/rewrite/motion.h"

struct groups {
        uint32_t n;
        struct {
                uint32_t from, n_from, to, n_to; /* axes */
        } list[AF_LIMIT_RANK];
};
struct lift {
        struct mv *m;
        const uint32_t *from_dims, *to_dims; /* of the value, and of what it is seen as */
        uint32_t from_rank, to_rank;
        struct groups groups;
        uint32_t nodes[MV_LIFT_MAX], values[MV_LIFT_MAX], n;
        bool failed;
};

/* The finest groups; false where a size is symbolic or 0. */
static bool groups_make(struct lift *l) {
        const struct af_expr_pool *exprs = &l->m->b->g.exprs;
        uint32_t i = 0, k = 0;
        l->groups.n = 0;
        while (i < l->from_rank || k < l->to_rank) {
                int64_t a = 1, b = 1, d;
                uint32_t from = i, to = k;
                do {
                        bool left = i < l->from_rank && (a <= b || k == l->to_rank);
                        if (left ? !af_expr_is_const(exprs, l->from_dims[i++], &d)
                                 : k == l->to_rank || !af_expr_is_const(exprs, l->to_dims[k++], &d))
                                return false;
                        if (d == 0 || __builtin_mul_overflow(left ? a : b, d, left ? &a : &b))
                                return false;
                } while (a != b);
                l->groups.list[l->groups.n].from = from;
                l->groups.list[l->groups.n].n_from = i - from;
                l->groups.list[l->groups.n].to = to;
                l->groups.list[l->groups.n++].n_to = k - to;
        }
        return true;
}

/* Dims of an operand seen the new way; false where it has part of a group. */
static bool operand_dims(const struct lift *l, uint32_t value, uint32_t *ret) {
        const struct af_value *v = rw_value(l->m->b, value);
        uint32_t lacks = l->from_rank - v->rank;
        for (uint32_t g = 0; g < l->groups.n; g++) {
                bool whole = true, spread = true;
                for (uint32_t i = l->groups.list[g].from; i < l->groups.list[g].from + l->groups.list[g].n_from; i++) {
                        int64_t d = 1;
                        bool unit = i < lacks || (rw_dim(l->m->b, value, i - lacks, &d) && d == 1);
                        spread &= unit;
                        whole &= i >= lacks && v->dims[i - lacks] == l->from_dims[i];
                }
                if (!whole && !spread)
                        return false;
                for (uint32_t k = l->groups.list[g].to; k < l->groups.list[g].to + l->groups.list[g].n_to; k++)
                        ret[k] = whole ? l->to_dims[k] : rw_const_dim(l->m->b, 1);
        }
        return true;
}

static bool passable(const struct mv *m, const struct af_node *n) {
        const struct af_op_info *info = af_op_info(n->op);
        if ((info->flags & AF_OP_HEAVY) && mv_full(m, n->out[0]))
                return false;
        return mv_is_elementwise(n) || info->cls == AF_CLASS_BROADCAST;
}

static uint32_t place_of(const struct lift *l, uint32_t node) {
        for (uint32_t i = l->n; i-- > 0;)
                if (l->nodes[i] == node)
                        return i;
        return AF_NONE;
}

static void reach(struct lift *l, uint32_t value) {
        const struct af_value *v = rw_value(l->m->b, value);
        const struct af_node *n = mv_maker(l->m, value);
        if (v->rank == 0 || !n || !passable(l->m, n) || place_of(l, v->index) != AF_NONE)
                return;
        if (l->n == MV_LIFT_MAX || !mv_work(l->m, 1))
                l->failed = true;
        else
                l->nodes[l->n++] = v->index;
}

static int by_number(const void *a, const void *b) {
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
        return x < y ? -1 : x > y;
}

static uint32_t remake(struct lift *l, uint32_t node) {
        struct rw *b = l->m->b;
        const struct af_node n = b->g.nodes[node], *origin = b->origin;
        uint32_t in[8], dims[AF_LIMIT_RANK];
        if (n.n_in > AF_ARRAY_SIZE(in))
                return rw_fail(b);
        for (uint32_t j = 0; j < n.n_in; j++) {
                const struct af_value *v = rw_value(b, n.in[j]);
                uint32_t at = v->kind == AF_VALUE_NODE ? place_of(l, v->index) : AF_NONE;
                if (v->rank == 0)
                        in[j] = n.in[j];
                else if (at != AF_NONE)
                        in[j] = l->values[at];
                else if (operand_dims(l, n.in[j], dims))
                        in[j] = mv_reshape(l->m, n.in[j], dims, l->to_rank);
                else
                        return rw_fail(b);
        }
        enum af_dtype d = rw_value(b, n.out[0])->dtype;
        b->origin = &n;
        uint32_t y = AF_NONE;
        if (af_op_info(n.op)->cls != AF_CLASS_BROADCAST)
                y = rw_node(b, n.op, in, n.n_in, n.attrs, n.n_attrs, d);
        else if (operand_dims(l, n.out[0], dims))
                y = rw_broadcast(b, in[0], dims, l->to_rank);
        b->origin = origin;
        return y == AF_NONE ? rw_fail(b) : y;
}

uint32_t mv_lift(struct mv *m, uint32_t x) {
        struct rw *b = m->b;
        const struct af_node *n = mv_maker(m, x), *under = n ? mv_maker(m, n->in[0]) : NULL;
        if (!under || !passable(m, under) || af_op_info(n->op)->cls != AF_CLASS_VIEW)
                return AF_NONE;
        const struct af_value from = *rw_value(b, n->in[0]), to = *rw_value(b, x);
        struct lift l = {.m = m, .from_dims = from.dims, .from_rank = from.rank, .to_dims = to.dims, .to_rank = to.rank};
        if (from.rank == 0 || !groups_make(&l))
                return AF_NONE;
        reach(&l, n->in[0]);
        for (uint32_t i = 0; i < l.n && !l.failed; i++) {
                const struct af_node *node = &b->g.nodes[l.nodes[i]];
                for (uint32_t j = 0; j < node->n_in; j++)
                        reach(&l, node->in[j]);
        }
        if (l.failed || l.n == 0)
                return AF_NONE;
        struct rw_mark mark = rw_here(b);
        uint32_t y = AF_NONE;
        qsort(l.nodes, l.n, sizeof(*l.nodes), by_number);
        for (uint32_t i = 0; i < l.n && !b->error; i++)
                y = l.values[i] = remake(&l, l.nodes[i]);
        if (b->error > 0) {
                rw_back(b, mark);
                return AF_NONE;
        }
        return y;
}
