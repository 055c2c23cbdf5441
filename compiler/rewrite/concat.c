/* SPDX-License-Identifier: Apache-2.0 */
/* Concats float down: f(concat(a, b), y) = concat(f(a, y's part), f(b, y's part)); a pad is a concat with fills. */
#include <errno.h>
#include <string.h>

#include "compiler/rewrite/motion.h"
#include "numeric/expand.h"

#define MAX_PIECES 64u /* operands of one concat */
#define MAX_LEAVES 24u /* pieces of pieces of all operands that meet: where they are cut differently, each border cuts the others too */

/* ---- concat ---- */

struct pieces {
        uint32_t list[MAX_PIECES];
        uint32_t n;
        bool full; /* one more did not fit */
};

/* Two neighbours that are neighbouring slices of one value are one slice: b's after a's, on the axis alone. */
static uint32_t join(struct mv *m, uint32_t a, uint32_t b, uint32_t axis) {
        const struct af_node *x = mv_maker(m, a), *y = mv_maker(m, b);
        if (!x || !y || x->op != AF_OP_SLICE || y->op != AF_OP_SLICE || x->in[0] != y->in[0])
                return AF_NONE;
        const struct af_attr *starts[] = {af_node_attr(x, AF_ATTR_STARTS), af_node_attr(y, AF_ATTR_STARTS)};
        const struct af_attr *stops[] = {af_node_attr(x, AF_ATTR_STOPS), af_node_attr(y, AF_ATTR_STOPS)};
        const struct af_attr *steps[] = {af_node_attr(x, AF_ATTR_STEPS), af_node_attr(y, AF_ATTR_STEPS)};
        struct mv_view v = {.kind = MV_SLICE, .rank = rw_value(m->b, a)->rank};
        for (uint32_t i = 0; i < v.rank; i++) {
                struct mv_range *r = &v.range[i];
                int64_t size, more = 0;
                bool same = starts[0]->dims[i] == starts[1]->dims[i] && stops[0]->dims[i] == stops[1]->dims[i];
                if (steps[0]->ints[i] != steps[1]->ints[i] || !af_expr_is_const(&m->b->g.exprs, starts[0]->dims[i], &r->start) ||
                    !rw_dim(m->b, a, i, &size) || (i == axis && !rw_dim(m->b, b, i, &more)))
                        return AF_NONE;
                if (i == axis ? steps[0]->ints[i] != 1 || stops[0]->dims[i] != starts[1]->dims[i] : !same)
                        return AF_NONE;
                r->step = steps[0]->ints[i];
                r->size = size + more;
                v.touched[i] = true;
        }
        return mv_slice(m, x->in[0], &v);
}

static void add_piece(struct mv *m, struct pieces *p, uint32_t piece, uint32_t axis) {
        int64_t d;
        if (piece == AF_NONE || (rw_dim(m->b, piece, axis, &d) && d == 0))
                return;
        uint32_t joined = p->n ? join(m, p->list[p->n - 1], piece, axis) : AF_NONE;
        if (joined != AF_NONE)
                p->list[p->n - 1] = joined;
        else if (p->n < MAX_PIECES)
                p->list[p->n++] = piece;
        else
                p->full = true;
}

uint32_t mv_concat(struct mv *m, const uint32_t *list, uint32_t n, uint32_t axis) {
        struct rw *b = m->b;
        struct pieces p = {.n = 0};
        for (uint32_t i = 0; i < n; i++)
                if (list[i] == AF_NONE)
                        return rw_fail(b);
        for (uint32_t i = 0; i < n && !b->error; i++) {
                const struct af_node *inner = mv_maker(m, list[i]);
                bool flat = inner && inner->op == AF_OP_CONCAT && af_node_attr(inner, AF_ATTR_AXIS)->i == axis;
                const uint32_t *in = inner ? inner->in : NULL;
                uint32_t n_in = inner ? inner->n_in : 0;
                for (uint32_t k = 0; flat && k < n_in; k++)
                        add_piece(m, &p, in[k], axis);
                if (!flat)
                        add_piece(m, &p, list[i], axis);
        }
        if (b->error)
                return AF_NONE;
        struct af_attr attr = {.key = AF_ATTR_AXIS, .i = axis};
        if (p.full) /* nested, as it came */
                return rw_node(b, AF_OP_CONCAT, list, n, &attr, 1, AF_DTYPE_INVALID);
        if (p.n <= 1)
                return p.n ? p.list[0] : list[0];
        return rw_node(b, AF_OP_CONCAT, p.list, p.n, &attr, 1, AF_DTYPE_INVALID);
}

/* Axis by axis, so that a corner is part of the later axis's fill. */
uint32_t mv_pad(struct mv *m, uint32_t x, const int64_t *low, const int64_t *high, uint32_t fill) {
        struct rw *b = m->b;
        for (uint32_t i = 0; x != AF_NONE && i < rw_value(b, x)->rank; i++) {
                const struct af_value v = *rw_value(b, x);
                const int64_t sizes[] = {low[i], high[i]};
                uint32_t list[3], n = 0, dims[AF_LIMIT_RANK];
                memcpy(dims, v.dims, v.rank * sizeof(*dims));
                for (uint32_t k = 0; k < 3; k++) {
                        if (k == 1) {
                                list[n++] = x;
                        } else if (sizes[k / 2] > 0) {
                                dims[i] = rw_const_dim(b, sizes[k / 2]);
                                list[n++] = rw_broadcast(b, fill, dims, v.rank);
                        }
                }
                x = mv_concat(m, list, n, i);
        }
        return x;
}

/* ---- elementwise over pieces ---- */

/* Where an operand is a concat: its axis counted from the end, and its sizes there. */
struct partition {
        uint32_t operand, from_end, n;
        int64_t sizes[MAX_PIECES];
        uint32_t pieces[MAX_PIECES];
};

static bool partition_of(const struct mv *m, uint32_t value, struct partition *ret) {
        const struct af_node *n = mv_maker(m, value);
        if (!n || n->op != AF_OP_CONCAT || n->n_in > MAX_PIECES)
                return false;
        uint32_t axis = (uint32_t)af_node_attr(n, AF_ATTR_AXIS)->i;
        ret->from_end = rw_value(m->b, value)->rank - axis;
        ret->n = n->n_in;
        for (uint32_t i = 0; i < n->n_in; i++) {
                ret->pieces[i] = n->in[i];
                if (!rw_dim(m->b, n->in[i], axis, &ret->sizes[i]))
                        return false;
        }
        return true;
}

/* Whether an operand has the partitioned axis and is not spread over it. */
static bool has_axis(const struct mv *m, uint32_t value, const struct partition *p) {
        const struct af_value *v = rw_value(m->b, value);
        int64_t d;
        return v->rank >= p->from_end && !(rw_dim(m->b, value, v->rank - p->from_end, &d) && d == 1);
}

static bool same_partition(const struct partition *a, const struct partition *b) {
        return a->from_end == b->from_end && a->n == b->n && memcmp(a->sizes, b->sizes, a->n * sizeof(*a->sizes)) == 0;
}

/* Pieces of pieces of a value, up to `most`. */
static uint32_t leaves_of(const struct mv *m, uint32_t value, uint32_t most) {
        const struct af_node *n = mv_maker(m, value);
        uint32_t leaves = 0;
        if (!n || n->op != AF_OP_CONCAT)
                return 1;
        for (uint32_t i = 0; i < n->n_in && leaves < most; i++)
                leaves += leaves_of(m, n->in[i], most - leaves);
        return leaves;
}

/* Whether operands that are cut differently have so many pieces that cutting all of them at all borders is no gain any more. */
static bool too_many_pieces(const struct mv *m, const uint32_t *in, uint32_t n_in, const struct partition *p) {
        struct partition other;
        uint32_t leaves = 0;
        bool differ = false;
        for (uint32_t j = 0; j < n_in; j++) {
                bool cut = partition_of(m, in[j], &other);
                leaves += cut ? leaves_of(m, in[j], MAX_LEAVES + 1) : 0;
                differ |= cut && !same_partition(p, &other);
        }
        return differ && leaves > MAX_LEAVES;
}

/*
 * Distributing is a gain where the parts of the other operands need no more bytes stored than the concat would. (An axis of size 1 is none
 * to distribute over: an operand's 1 could not be told from one that is spread.)
 */
static bool worth_it(struct mv *m, const uint32_t *in, uint32_t n_in, const struct partition *p) {
        int64_t cost = 0, total = 0;
        for (uint32_t i = 0; i < p->n; i++)
                total += p->sizes[i];
        if (total < 2 || p->n < 2 || too_many_pieces(m, in, n_in, p))
                return false;
        for (uint32_t j = 0; j < n_in; j++) {
                const struct af_node *n = mv_maker(m, in[j]);
                if (j == p->operand || !has_axis(m, in[j], p) || (n && n->op == AF_OP_CONCAT))
                        continue;
                uint32_t rank = rw_value(m->b, in[j])->rank;
                struct mv_view v = {.kind = MV_SLICE, .rank = rank};
                v.touched[rank - p->from_end] = true;
                v.range[rank - p->from_end] = (struct mv_range){0, 1, p->sizes[0]};
                if (!mv_stored(m, in[j]))
                        cost = AF_MIN(MV_BYTES_MAX, cost + mv_push_cost(m, in[j], &v));
        }
        return cost <= mv_bytes(m, in[p->operand]);
}

static uint32_t distribute(struct mv *m, const struct af_node *n, const uint32_t *in, enum af_dtype dtype, const struct partition *p) {
        uint32_t pieces[MAX_PIECES], rank = 0;
        int64_t at = 0;
        struct partition other;
        const struct af_node concat = *mv_maker(m, in[p->operand]), *origin = m->b->origin;
        for (uint32_t j = 0; j < n->n_in; j++)
                rank = AF_MAX(rank, rw_value(m->b, in[j])->rank);
        for (uint32_t i = 0; i < p->n; i++) {
                uint32_t part[8];
                m->b->origin = &concat; /* what is sliced for its sake comes from it */
                for (uint32_t j = 0; j < n->n_in; j++) {
                        part[j] = in[j];
                        if (partition_of(m, in[j], &other) && same_partition(p, &other))
                                part[j] = other.pieces[i];
                        else if (has_axis(m, in[j], p))
                                part[j] = mv_slice_axis(m, in[j], rw_value(m->b, in[j])->rank - p->from_end, at, p->sizes[i]);
                        if (part[j] == AF_NONE)
                                return rw_fail(m->b);
                }
                m->b->origin = origin;
                pieces[i] = mv_elementwise(m, n, part, dtype);
                at += p->sizes[i];
        }
        m->b->origin = &concat;
        return mv_concat(m, pieces, p->n, rank - p->from_end);
}

/* ---- fills ---- */

/* A scalar constant, or one spread over a shape: its bits and whether it is spread. */
static bool fill_of(const struct mv *m, uint32_t value, uint64_t *ret_bits, bool *ret_spread) {
        const struct af_node *n = mv_maker(m, value);
        *ret_spread = n && af_op_info(n->op)->cls == AF_CLASS_BROADCAST && rw_value(m->b, value)->rank > 0;
        return af_value_scalar(&m->b->g, *ret_spread ? n->in[0] : value, ret_bits);
}

/* All operands are fills: so is the result, y's node. AF_NONE: they are not, or nobody can say here. */
static uint32_t fold_fills(struct mv *m, uint32_t y) {
        struct rw *b = m->b;
        const struct af_value v = *rw_value(b, y);
        const struct af_node n = b->g.nodes[v.index];
        struct af_expand_operand operands[8];
        struct af_expand_attrs attrs;
        uint64_t bits[8], result = 0;
        const void *srcs[8] = {NULL};
        bool spread, any = false;
        if (n.n_in > AF_ARRAY_SIZE(bits) || v.rank == 0)
                return AF_NONE;
        for (uint32_t j = 0; j < n.n_in; j++)
                if (!fill_of(m, n.in[j], &bits[j], &spread))
                        return AF_NONE;
        af_node_expand_args(&b->g, &n, operands, &attrs);
        for (uint32_t j = 0; j < n.n_in; j++) {
                fill_of(m, n.in[j], &bits[j], &spread);
                any |= spread;
                srcs[j] = spread ? &bits[j] : NULL;
        }
        if (!any || af_eval_op(n.op, operands, n.n_in, v.dtype, &attrs, srcs, &result, 1, m->scratch))
                return AF_NONE;
        return rw_broadcast(b, rw_scalar_bits(b, v.dtype, result), v.dims, v.rank);
}

/* where(c, true, false) is c. */
static uint32_t fold_where(const struct mv *m, uint32_t y) {
        const struct af_value *v = rw_value(m->b, y);
        const struct af_node *n = &m->b->g.nodes[v->index];
        uint64_t yes, no;
        bool spread;
        if (n->op != AF_OP_WHERE || v->dtype != AF_DTYPE_BOOL || !fill_of(m, n->in[1], &yes, &spread) ||
            !fill_of(m, n->in[2], &no, &spread))
                return AF_NONE;
        const struct af_value *c = rw_value(m->b, n->in[0]);
        bool same = c->rank == v->rank && (c->rank == 0 || memcmp(c->dims, v->dims, c->rank * sizeof(*c->dims)) == 0);
        return same && yes == 1 && no == 0 ? n->in[0] : AF_NONE;
}

uint32_t mv_elementwise(struct mv *m, const struct af_node *n, const uint32_t *in, enum af_dtype dtype) {
        struct rw *b = m->b;
        struct partition p;
        if (b->error)
                return AF_NONE;
        for (uint32_t j = 0; j < n->n_in; j++)
                if (in[j] == AF_NONE)
                        return rw_fail(b);
        for (uint32_t j = 0; j < n->n_in && n->n_in <= 8 && m->depth < MV_DEPTH_MAX; j++) {
                p.operand = j;
                if (!partition_of(m, in[j], &p) || !worth_it(m, in, n->n_in, &p) || !mv_work(m, p.n))
                        continue;
                struct rw_mark mark = rw_here(b);
                const struct af_node *origin = b->origin;
                m->depth++;
                uint32_t y = distribute(m, n, in, dtype, &p);
                m->depth--;
                b->origin = origin;
                if (y != AF_NONE || b->error < 0)
                        return y;
                rw_back(b, mark);
        }
        uint32_t y = rw_node(b, n->op, in, n->n_in, n->attrs, n->n_attrs, dtype);
        if (y == AF_NONE)
                return y;
        uint32_t folded = fold_where(m, y);
        if (folded == AF_NONE)
                folded = fold_fills(m, y);
        return folded != AF_NONE || b->error ? folded : y;
}
