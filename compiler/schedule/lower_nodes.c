/* SPDX-License-Identifier: Apache-2.0 */
/* The group's nodes as programs over values of one stage. */
#include <errno.h>
#include <string.h>

#include "compiler/schedule/lower.h"

int lower_access(const struct lower *l, const struct af_use *use, uint32_t arg, struct af_access *ret) {
        *ret = (struct af_access){.arg = arg, .offset = use->offset, .offset_x = use->offset_x};
        for (uint32_t a = 0; a < l->p->n_axes; a++) {
                uint32_t axis = l->p->axes[a].space_axis;
                int64_t s;
                if (axis == AF_NONE)
                        continue;
                if (!af_size_mul(l->s->g, af_size_join(use->strides[axis], use->strides_x[axis]), l->p->axes[a].step, &s))
                        return sched_unfit(l->s, "sizes beyond 64 bits");
                ret->strides[a] = af_size_hint(l->s->g, s);
                ret->strides_x[a] = af_size_x(s);
        }
        return 0;
}

int lower_node_value(struct lower *l, uint32_t i, uint32_t *ret) {
        uint32_t wide = l->node_wide[i];
        if (l->node_value[i] == AF_NONE && wide != AF_NONE) {
                const struct af_kvalue v = l->phase->values[wide];
                struct af_prim_ins round = {.prim = AF_PRIM_CAST, .dtype = AF_DTYPE_FLOAT32, .mode = AF_ROUND_RINT};
                round.to = (uint8_t)l->s->g->values[l->s->g->nodes[l->s->m.nodes[i]].out[0]].dtype;
                int r = lower_prim(l, round, v.hold, v.axes, wide, AF_NONE, AF_NONE, &l->node_value[i]);
                if (r)
                        return r;
        }
        *ret = l->node_value[i];
        return 0;
}

/* The value that a use reads, at the hold it has. */
int lower_use(struct lower *l, uint32_t use, uint32_t *ret) {
        const struct sched *s = l->s;
        const struct af_use *u = &s->sp.uses[use];
        const struct af_value *v = &s->g->values[u->base];
        if (u->base_kind == AF_BASE_NODE) {
                int r = lower_node_value(l, af_members_producer(&s->m, u->base), ret);
                return r ? r : *ret == AF_NONE ? sched_unfit(l->s, "a value on the wrong side of a reduction") : 0;
        }
        if (u->base_kind == AF_BASE_SCALAR) {
                uint64_t bits = 0;
                return af_value_scalar(s->g, u->base, &bits) ? lower_constant(l, v->dtype, bits, ret)
                                                             : sched_unfit(l->s, "a constant without a value");
        }
        struct af_access access;
        int r = lower_access(l, u, u->pack ? s->n_args + s->pack_region[use] : sched_input_arg(s, u->base), &access);
        return r ? r : lower_load(l, v->dtype, &access, u->base, ret);
}

void lower_mark(const struct sched *s, bool *needed, bool late) {
        for (uint32_t i = s->m.n; i-- > 0;) {
                if (!needed[i] || s->sp.skip[i] || (late && sched_cross(s, i)))
                        continue;
                for (uint32_t u = s->sp.first_use[i]; u < s->sp.first_use[i + 1]; u++)
                        if (s->sp.uses[u].base_kind == AF_BASE_NODE)
                                needed[af_members_producer(&s->m, s->sp.uses[u].base)] = true;
        }
}

/* A float64 scalar that changes per call enters as float32. */
static int as_float32(struct lower *l, struct af_expand_operand *desc, uint32_t *value) {
        const char *reason = "no program";
        const struct af_kvalue v = l->phase->values[*value];
        if (af_expand(AF_OP_CAST, desc, 1, AF_DTYPE_FLOAT32, NULL, &l->s->prog, &reason))
                return sched_unfit(l->s, reason);
        desc->dtype = AF_DTYPE_FLOAT32;
        return lower_program(l, &l->s->prog, value, v.hold, v.axes, value);
}

/* What a use reads, as float32: unrounded where a member has it so. */
static uint32_t wide_use(const struct lower *l, uint32_t use) {
        const struct af_use *u = &l->s->sp.uses[use];
        return u->base_kind == AF_BASE_NODE ? l->node_wide[af_members_producer(&l->s->m, u->base)] : AF_NONE;
}

/* Operands as values at one hold; AF_NONE where the program has an immediate. wide: a bit for each that may come as float32. */
static int operands_of(struct lower *l, uint32_t i, uint32_t wide, struct af_expand_operand *desc, uint32_t *ret_values,
                       uint32_t *ret_axes) {
        const struct sched *s = l->s;
        uint32_t first = s->sp.first_use[i], n = s->sp.first_use[i + 1] - first;
        /* Truth is asked of all its bits. */
        bool narrow = n > 1 && af_op_info(s->g->nodes[s->m.nodes[i]].op)->dtype_rule != AF_DTYPES_LOGICAL;
        *ret_axes = 0;
        for (uint32_t k = 0; k < n; k++) {
                ret_values[k] = AF_NONE;
                if (desc[k].is_scalar)
                        continue;
                if (wide >> k & 1)
                        ret_values[k] = wide_use(l, first + k);
                if (ret_values[k] != AF_NONE)
                        desc[k].dtype = AF_DTYPE_FLOAT32;
                int r = ret_values[k] != AF_NONE ? 0 : lower_use(l, first + k, &ret_values[k]);
                if (!r && desc[k].dtype == AF_DTYPE_BOOL)
                        r = lower_to_mask(l, ret_values[k], &ret_values[k]);
                if (!r && narrow && desc[k].dtype == AF_DTYPE_FLOAT64)
                        r = as_float32(l, &desc[k], &ret_values[k]);
                if (r)
                        return r;
                *ret_axes |= l->phase->values[ret_values[k]].axes;
        }
        for (uint32_t k = 0; k < n; k++) {
                int r = ret_values[k] == AF_NONE ? 0 : lower_expand(l, ret_values[k], lower_hold(l, *ret_axes), &ret_values[k]);
                if (r)
                        return r;
        }
        return 0;
}

/*
 * fast: the operands that the node's program begins by casting to float32 (or hands on as they are) come so if they can; *ret_out: the
 * result that it would round last stays so too. What is computed in float16 stays in float16, at twice the speed.
 */
static uint32_t stay_wide(const struct af_prog *prog, enum af_dtype out, bool *ret_out) {
        const struct af_prim_ins *last = prog->result < prog->n_operands ? NULL : &prog->ins[prog->result - prog->n_operands];
        uint32_t wide = last ? 0 : 1u << prog->result;
        *ret_out = !last || (last->prim == AF_PRIM_CAST && last->dtype == AF_DTYPE_FLOAT32);
        *ret_out &= af_dtype_widened(out) != out;
        if (!last && !*ret_out)
                return 0;
        for (uint32_t k = 0; k < prog->n_ins; k++)
                if (prog->ins[k].prim == AF_PRIM_CAST && prog->ins[k].src[0] < prog->n_operands && prog->ins[k].to == AF_DTYPE_FLOAT32 &&
                    af_dtype_widened(prog->ins[k].dtype) != prog->ins[k].dtype)
                        wide |= 1u << prog->ins[k].src[0];
        return wide;
}

static int lower_elementwise(struct lower *l, uint32_t i) {
        struct sched *s = l->s;
        const struct af_node *n = &s->g->nodes[s->m.nodes[i]];
        struct af_expand_attrs attrs;
        const char *reason = "no program";
        struct af_expand_operand *desc = af_arena_calloc(s->arena, n->n_in, sizeof(*desc));
        uint32_t *values = af_arena_calloc(s->arena, n->n_in, sizeof(*values)), axes;
        if (!desc || !values)
                return -ENOMEM;
        enum af_dtype out = s->g->values[n->out[0]].dtype;
        uint32_t wide = 0, itself = AF_NONE;
        bool wide_out = false;
        af_node_expand_args(s->g, n, desc, &attrs);
        if (s->g->numerics == AF_NUMERICS_FAST && af_expand(n->op, desc, n->n_in, out, &attrs, &s->prog, &reason) == 0) {
                wide = stay_wide(&s->prog, out, &wide_out);
                itself = s->prog.result < n->n_in ? s->prog.result : AF_NONE;
        }
        int r = operands_of(l, i, wide, desc, values, &axes);
        if (r)
                return r;
        if (itself != AF_NONE) /* a view of what is not wide is not either */
                wide_out &= desc[itself].dtype == AF_DTYPE_FLOAT32;
        if (af_expand_wide(n->op, desc, n->n_in, out, &attrs, 0, wide_out, &s->prog, &reason))
                return sched_unfit(s, reason);
        return lower_program(l, &s->prog, values, lower_hold(l, axes), axes, wide_out ? &l->node_wide[i] : &l->node_value[i]);
}

int lower_reduce_input(struct lower *l, uint32_t i, uint32_t axes, uint32_t *ret) {
        struct sched *s = l->s;
        uint32_t use = s->sp.first_use[i], v = wide_use(l, use);
        const struct af_reduce_plan *plan = &s->reductions[s->reduction_of[i]].plan;
        enum af_dtype d = s->g->values[s->sp.uses[use].value].dtype;
        bool wide = v != AF_NONE && plan->acc == AF_DTYPE_FLOAT32 && plan->pre.n_ins == 1; /* the cast to float32 alone */
        int r = wide ? 0 : lower_use(l, use, &v);
        if (!r && d == AF_DTYPE_BOOL)
                r = lower_to_mask(l, v, &v);
        if (!r && axes != AF_NONE)
                r = lower_expand(l, v, lower_hold(l, axes), &v);
        if (r || wide) {
                *ret = v;
                return r;
        }
        return lower_program(l, &plan->pre, &v, l->phase->values[v].hold, axes != AF_NONE ? axes : l->phase->values[v].axes, ret);
}

/* A sum of one element is 0.0 + x, which differs from x for -0.0 alone. */
static int lower_unit_reduce(struct lower *l, uint32_t i) {
        struct sched *s = l->s;
        const struct af_reduce_plan *plan = &s->reductions[s->reduction_of[i]].plan;
        uint32_t v;
        int r = lower_reduce_input(l, i, AF_NONE, &v);
        if (!r && plan->combine == AF_COMBINE_ADD && plan->acc == AF_DTYPE_FLOAT32) {
                struct af_prim_ins ins = {.prim = AF_PRIM_ADDS, .dtype = plan->acc, .to = plan->acc};
                r = lower_prim(l, ins, l->phase->values[v].hold, l->phase->values[v].axes, v, AF_NONE, AF_NONE, &v);
        }
        l->dup_x = s->reductions[s->reduction_of[i]].count_x;
        r = r ? r : lower_program(l, &plan->post, &v, l->phase->values[v].hold, l->phase->values[v].axes, &l->node_value[i]);
        l->dup_x = 0;
        return r;
}

static int lower_resident_reduce(struct lower *l, uint32_t i) {
        const struct sched *s = l->s;
        const struct reduction *red = &s->reductions[s->reduction_of[i]];
        uint32_t v;
        int r = lower_reduce_input(l, i, AF_NONE, &v);
        return r ? r : lower_resident(l, red, v, &l->node_value[i]);
}

static int lower_empty_reduce(struct lower *l, uint32_t i) {
        struct sched *s = l->s;
        const struct af_reduce_plan *plan = &s->reductions[s->reduction_of[i]].plan;
        uint32_t v;
        int r = lower_constant(l, plan->acc, plan->identity, &v);
        l->dup_x = s->reductions[s->reduction_of[i]].count_x;
        r = r ? r : lower_program(l, &plan->post, &v, AF_HOLD_ONE, 0, &l->node_value[i]);
        l->dup_x = 0;
        return r;
}

int lower_nodes(struct lower *l, bool *needed, bool late) {
        const struct sched *s = l->s;
        lower_mark(s, needed, late);
        for (uint32_t i = 0; i < s->m.n; i++) {
                if (!needed[i] || s->sp.skip[i] || l->node_value[i] != AF_NONE || l->node_wide[i] != AF_NONE)
                        continue;
                l->op_node = s->m.nodes[i];
                int r = af_op_info(s->g->nodes[s->m.nodes[i]].op)->cls == AF_CLASS_IOTA     ? lower_iota(l, i)
                        : af_op_info(s->g->nodes[s->m.nodes[i]].op)->cls == AF_CLASS_GATHER ? lower_gather(l, i)
                        : s->sp.empty_reduce[i]                                             ? lower_empty_reduce(l, i)
                        : s->sp.unit_reduce[i]                                              ? lower_unit_reduce(l, i)
                        : s->reduction_of[i] != AF_NONE                                     ? lower_resident_reduce(l, i)
                                                                                            : lower_elementwise(l, i);
                l->op_node = AF_NONE;
                if (r)
                        return r;
        }
        return 0;
}
