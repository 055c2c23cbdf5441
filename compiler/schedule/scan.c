/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running sums, a node by itself. The tile's rows follow one another along the axis; each is the row before plus what is read, and a row of
 * its own carries the sum from tile to tile. Along the last axis the tile lies across memory, and is gathered in UB as a transposed one is.
 * So each line is added up in index order, however it is cut.
 */
#include <errno.h>
#include <string.h>

#include "compiler/schedule/lower.h"

static const struct af_node *node_of(const struct sched *s) {
        return &s->g->nodes[s->m.nodes[0]];
}

static bool flag(const struct sched *s, enum af_attr_key key) {
        const struct af_attr *a = af_node_attr(node_of(s), key);
        return a && a->i;
}

/* Largest magnitude of an integer; 0: of no matter, or too large. */
static int64_t magnitude(enum af_dtype d) {
        switch (d) {
        case AF_DTYPE_BOOL:
                return 1;
        case AF_DTYPE_INT8:
                return 128;
        case AF_DTYPE_UINT8:
                return 255;
        case AF_DTYPE_INT16:
                return 32768;
        default:
                return 0;
        }
}

/* float32, or int32 that wraps as the result does, or holds every sum of an int64 one. */
static int accumulator(struct sched *s, int64_t n, enum af_dtype *ret) {
        enum af_dtype in = s->g->values[node_of(s)->in[0]].dtype, out = s->g->values[node_of(s)->out[0]].dtype;
        *ret = af_dtype_kind(out) == 'f' ? AF_DTYPE_FLOAT32 : AF_DTYPE_INT32;
        if (in == AF_DTYPE_FLOAT64 || out == AF_DTYPE_FLOAT64)
                return sched_unfit(s, "running sums of float64");
        bool held = magnitude(in) && af_size_most(s->g, n) <= INT32_MAX / magnitude(in);
        if (in == AF_DTYPE_INT64 || (out == AF_DTYPE_INT64 && !held))
                return sched_unfit(s, "running sums beyond int32");
        return 0;
}

static void drop_axis(struct running *c, uint32_t a) {
        c->n_axes--;
        memmove(&c->extent[a], &c->extent[a + 1], (c->n_axes - a) * sizeof(*c->extent));
        memmove(&c->in[a], &c->in[a + 1], (c->n_axes - a) * sizeof(*c->in));
        memmove(&c->out[a], &c->out[a + 1], (c->n_axes - a) * sizeof(*c->out));
        c->over -= c->over > a;
}

/* Whether one step of the outer axis is all of the inner one. */
static bool follows(const struct af_graph *g, int64_t outer, int64_t inner, int64_t extent) {
        int64_t all;
        return af_size_mul(g, inner, extent, &all) && all == outer;
}

/* Axes that both tensors lie along in the same way become one, units go. */
static void merge_axes(const struct af_graph *g, struct running *c) {
        for (uint32_t a = c->n_axes; a-- > 0;)
                if (c->extent[a] == 1 && a != c->over)
                        drop_axis(c, a);
        for (uint32_t a = c->n_axes; a-- > 1;) {
                bool apart = a == c->over || a - 1 == c->over;
                if (apart || !follows(g, c->in[a - 1], c->in[a], c->extent[a]) || !follows(g, c->out[a - 1], c->out[a], c->extent[a]) ||
                    !af_size_mul(g, c->extent[a], c->extent[a - 1], &c->extent[a]))
                        continue;
                drop_axis(c, a - 1);
        }
}

static void swap(int64_t *x, int64_t *y) {
        int64_t t = *x;
        *x = *y;
        *y = t;
}

static void swap_axes(struct running *c, uint32_t a, uint32_t b) {
        swap(&c->extent[a], &c->extent[b]);
        swap(&c->in[a], &c->in[b]);
        swap(&c->out[a], &c->out[b]);
        c->over = c->over == a ? b : c->over == b ? a : c->over;
}

/* The summed axis last but one, what lies closest in memory last: a unit axis where there is no other. */
static void order_axes(const struct af_graph *g, struct running *c) {
        uint32_t inner = AF_NONE;
        for (uint32_t a = 0; a < c->n_axes; a++)
                if (a != c->over && (inner == AF_NONE || af_size_hint(g, c->out[a]) <= af_size_hint(g, c->out[inner])))
                        inner = a;
        if (inner == AF_NONE) {
                inner = c->n_axes++;
                c->extent[inner] = c->in[inner] = c->out[inner] = 1;
        }
        swap_axes(c, inner, c->n_axes - 1);
        swap_axes(c, c->over, c->n_axes - 2);
}

/* Whether tiles may write over the operand: each element is read by the tile that writes it. */
static int check_in_place(struct sched *s, const struct running *c) {
        const struct af_value *in = &s->g->values[node_of(s)->in[0]];
        for (uint32_t o = 0; o < s->g->n_outputs; o++) {
                uint32_t alias = s->g->outputs[o].alias_of;
                if (s->g->outputs[o].value == node_of(s)->out[0] && alias != AF_NONE && in->kind == AF_VALUE_INPUT &&
                    s->g->inputs[in->index].buffer == s->g->inputs[alias].buffer &&
                    (c->in_offset || memcmp(c->in, c->out, sizeof(c->in)) != 0))
                        return sched_unfit(s, "an input that is updated in place is read by other tiles too");
        }
        return 0;
}

bool sched_is_scan(const struct sched *s) {
        return s->m.n == 1 && af_op_info(node_of(s)->op)->cls == AF_CLASS_SCAN;
}

int sched_scan_init(struct sched *s) {
        const struct af_node *n = node_of(s);
        const struct af_value *in = &s->g->values[n->in[0]];
        struct running *c = s->scan = af_arena_calloc(s->arena, 1, sizeof(*c));
        if (!c)
                return -ENOMEM;
        if (s->n_stores != 1 || s->stores[0].value != n->out[0] || s->stores[0].into != AF_NONE)
                return sched_unfit(s, "a running sum beside other values, or as a piece of one");
        c->n_axes = in->rank;
        c->over = (uint32_t)af_node_attr(n, AF_ATTR_AXIS)->i;
        af_size_dims(s->g, n->in[0], c->extent);
        bool fits = af_size_strides(s->g, n->in[0], c->in) && af_size_strides(s->g, n->out[0], c->out);
        if (in->kind == AF_VALUE_INPUT)
                c->in_offset = af_size_from(s->g, s->g->inputs[in->index].offset);
        if (!fits)
                return sched_unfit(s, "sizes beyond 64 bits");
        c->back = flag(s, AF_ATTR_REVERSE);
        c->exclusive = flag(s, AF_ATTR_EXCLUSIVE);
        for (uint32_t a = 0; a < c->n_axes; a++)
                c->empty |= c->extent[a] == 0;
        int r = accumulator(s, c->extent[c->over], &c->acc);
        if (r || c->empty)
                return r;
        merge_axes(s->g, c);
        order_axes(s->g, c);
        return check_in_place(s, c);
}

void sched_scan_plan(const struct sched *s, struct pass *ret) {
        const struct running *c = s->scan;
        *ret = (struct pass){.kind = PASS_SCAN, .chunk_axis = AF_NONE, .from_group = true, .to_group = true, .n_axes = c->n_axes};
        for (uint32_t a = 0; a < c->n_axes; a++)
                ret->axes[a] = (struct pass_axis){.extent = af_size_hint(s->g, c->extent[a]),
                                                  .x = af_size_x(c->extent[a]),
                                                  .most = af_size_most(s->g, c->extent[a]),
                                                  .space_axis = AF_NONE,
                                                  .step = 1};
        ret->row = ret->over = c->over;
        ret->inner = c->n_axes - 1;
}

/* v by the op cast's rules. */
static int convert(struct lower *l, uint32_t v, enum af_dtype from, enum af_dtype to, uint32_t *ret) {
        const struct af_expand_operand operand = {.dtype = from};
        const char *reason = "no program";
        *ret = v;
        if (from == to)
                return 0;
        if (from == AF_DTYPE_BOOL) {
                int r = lower_to_mask(l, v, &v);
                if (r)
                        return r;
        }
        if (af_expand(AF_OP_CAST, &operand, 1, to, NULL, &l->s->prog, &reason))
                return sched_unfit(l->s, reason);
        const struct af_kvalue value = l->phase->values[v];
        return lower_program(l, &l->s->prog, &v, value.hold, value.axes, ret);
}

static struct af_access access_of(const struct sched *s, uint32_t arg, const int64_t *strides, int64_t offset) {
        struct af_access a = {.arg = arg, .offset = af_size_hint(s->g, offset), .offset_x = af_size_x(offset)};
        for (uint32_t i = 0; i < s->scan->n_axes; i++) {
                a.strides[i] = af_size_hint(s->g, strides[i]);
                a.strides_x[i] = af_size_x(strides[i]);
        }
        return a;
}

int lower_scan(struct lower *l) {
        struct sched *s = l->s;
        const struct running *c = s->scan;
        const struct af_node *n = node_of(s);
        enum af_dtype from = s->g->values[n->in[0]].dtype, to = s->g->values[n->out[0]].dtype;
        uint32_t v, carry, sum, all = (1u << l->p->n_axes) - 1;
        struct af_access in = access_of(s, sched_input_arg(s, n->in[0]), c->in, c->in_offset),
                         out = access_of(s, sched_arg(s, s->store_place[0]), c->out, 0);
        l->op_node = s->m.nodes[0];
        int r = lower_load(l, from, &in, n->in[0], &v);
        if (!r)
                r = convert(l, v, from, c->acc, &v);
        if (!r)
                r = lower_expand(l, v, AF_HOLD_FULL, &v);
        l->stage = STAGE_INIT;
        if (!r)
                r = lower_value(l, c->acc, AF_HOLD_ROW, all, &carry);
        if (!r)
                r = lower_emit(l, (struct af_kstmt){.kind = AF_KSTMT_FILL, .dst = carry, .src = {AF_NONE, AF_NONE, AF_NONE}});
        l->stage = STAGE_BODY;
        if (!r)
                r = lower_value(l, c->acc, AF_HOLD_FULL, all, &sum);
        if (!r)
                r = lower_emit(
                        l,
                        (struct af_kstmt){
                                .kind = AF_KSTMT_SCAN, .dst = sum, .src = {v, carry, AF_NONE}, .back = c->back, .exclusive = c->exclusive});
        if (!r)
                r = convert(l, sum, c->acc, to, &v);
        l->op_node = AF_NONE;
        return r ? r : lower_store(l, v, &out, all);
}
