/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves every use of a group to its base and its axes, orders the axes, and hands them to axes_merge.c. */
#include <errno.h>
#include <string.h>

#include "compiler/schedule/axes_internal.h"

bool af_value_empty(const struct af_graph *g, uint32_t value) {
        return af_value_count(g, value) == 0;
}

/* Dimensions of the base: those of the member that computes it, or new ones for this use of an input. */
static int base_dims(struct build *b, struct raw_use *u) {
        uint32_t p = af_members_producer(b->m, u->use.base);
        const struct af_value *v = &b->m->g->values[u->use.base];
        if (p != AF_NONE) {
                u->use.base_kind = AF_BASE_NODE;
                u->base_dims = b->node_dims[p];
                return 0;
        }
        uint64_t bits;
        u->use.base_kind = v->kind == AF_VALUE_CONST && af_value_scalar(b->m->g, u->use.base, &bits) ? AF_BASE_SCALAR : AF_BASE_INPUT;
        for (uint32_t i = 0; b->share && i < b->n_inputs; i++)
                if (b->inputs[i].value == u->use.base) {
                        u->base_dims = b->inputs[i].dims;
                        return 0;
                }
        int r = af_view_load_dims(b, u->use.base, &u->base_dims);
        if (!r)
                r = af_view_fresh_atoms(b, &u->base_dims);
        if (!r && b->share)
                r = af_arena_grow(b->arena, &b->inputs, &b->cap_inputs, b->n_inputs + 1, sizeof(*b->inputs));
        if (!r && b->share)
                b->inputs[b->n_inputs++] = (struct input_dims){u->use.base, u->base_dims};
        return r;
}

/* value as someone reads it: goes down through members that are views or broadcasts, then up again with the axes. */
static int resolve(struct build *b, uint32_t value, struct raw_use *u) {
        const struct af_graph *g = b->m->g;
        uint32_t n = 0;
        *u = (struct raw_use){.use = {.value = value, .base = value, .source = AF_NONE}};
        for (uint32_t p; (p = af_members_producer(b->m, u->use.base)) != AF_NONE && af_view_transparent(g->nodes[b->m->nodes[p]].op);) {
                int r = af_arena_grow(b->arena, &b->chain, &b->cap_chain, n + 1, sizeof(uint32_t));
                if (r)
                        return r;
                b->chain[n++] = p;
                u->use.base = g->nodes[b->m->nodes[p]].in[0];
        }
        u->use.direct = n == 0;
        uint32_t maker = af_members_producer(b->m, u->use.base);
        if (maker != AF_NONE && af_op_info(g->nodes[b->m->nodes[maker]].op)->cls == AF_CLASS_CONCAT)
                return af_view_unfit(b, "a concatenation that its own kernel reads");
        int r = base_dims(b, u);
        u->dims = u->base_dims;
        while (!r && n > 0)
                r = af_view_through(b, b->chain[--n], u);
        return r;
}

static int add_use(struct build *b, uint32_t value, struct raw_use **ret_use) {
        int r = af_arena_grow(&b->temp, &b->uses, &b->cap_uses, b->n_uses + 1, sizeof(*b->uses));
        if (!r)
                r = resolve(b, value, &b->uses[b->n_uses]);
        if (!r)
                *ret_use = &b->uses[b->n_uses++];
        return r;
}

/* Which dimensions of a reduction's input are reduced, as a bit set. */
static uint32_t reduced_dims(const struct af_node *n, uint32_t rank) {
        const struct af_attr *axes = af_node_attr(n, AF_ATTR_AXES);
        if (!axes)
                return (1u << rank) - 1;
        uint32_t mask = 0;
        for (uint32_t i = 0; i < axes->n; i++)
                mask |= 1u << axes->ints[i];
        return mask;
}

static int visit_reduce(struct build *b, uint32_t i, const struct af_node *n) {
        struct raw_use *u;
        struct af_dims *out = &b->node_dims[i];
        if (af_value_empty(b->m->g, n->in[0])) {
                b->space->empty_reduce[i] = true;
                return af_view_fresh_atoms(b, out);
        }
        int r = add_use(b, n->in[0], &u);
        if (r)
                return r;
        uint32_t mask = reduced_dims(n, u->dims.rank), o = 0;
        bool keep = out->rank == u->dims.rank;
        b->space->unit_reduce[i] = true;
        for (uint32_t d = 0; d < u->dims.rank; d++) {
                if (mask & (1u << d)) {
                        b->space->unit_reduce[i] &= u->dims.atom[d] == AF_NONE;
                        if (keep)
                                out->atom[o++] = AF_NONE;
                } else {
                        out->atom[o++] = u->dims.atom[d];
                }
        }
        u->reduced_dims = mask;
        return 0;
}

static int64_t attr_int(const struct af_node *n, enum af_attr_key key) {
        return af_node_attr(n, key)->i;
}

/* Integers step by themselves, and wrap; floats are made of the index. What does not fit 32 bits is not made at all. */
static int iota_address(struct build *b, const struct af_node *n, int64_t extent, int64_t *ret_start, int64_t *ret_step) {
        enum af_dtype d = b->m->g->values[n->out[0]].dtype;
        int64_t start = 0, step = 1, last;
        if (af_dtype_kind(d) != 'f') {
                start = attr_int(n, AF_ATTR_START);
                step = attr_int(n, AF_ATTR_STEP);
        }
        if (af_dtype_kind(d) != 'f' && af_dtype_size(d) < 8) {
                start = (int32_t)(uint32_t)(uint64_t)start;
                step = (int32_t)(uint32_t)(uint64_t)step;
        }
        if (extent > INT32_MAX || __builtin_mul_overflow(step, extent - 1, &last) || __builtin_add_overflow(last, start, &last))
                return af_view_unfit(b, "indices beyond 32 bits");
        if (af_dtype_size(d) == 8 && (AF_MIN(start, last) < INT32_MIN || AF_MAX(start, last) > INT32_MAX))
                return af_view_unfit(b, "indices beyond 32 bits");
        *ret_start = start;
        *ret_step = step;
        return 0;
}

/* One use: over its axis alone, as if it read memory. */
static int visit_iota(struct build *b, uint32_t i, const struct af_node *n) {
        uint32_t axis = (uint32_t)attr_int(n, AF_ATTR_AXIS);
        struct af_dims *d = &b->node_dims[i];
        int64_t start = 0, step = 0;
        int r = af_view_fresh_atoms(b, d);
        if (!r)
                r = iota_address(b, n, d->dim[axis], &start, &step);
        if (!r)
                r = af_arena_grow(&b->temp, &b->uses, &b->cap_uses, b->n_uses + 1, sizeof(*b->uses));
        struct address *a = r ? NULL : af_arena_calloc(b->arena, 1, sizeof(*a));
        if (!a)
                return r ? r : -ENOMEM;
        *a = (struct address){.n = d->atom[axis] != AF_NONE, .atom = {d->atom[axis]}, .stride = {step}, .offset = start};
        b->uses[b->n_uses++] = (struct raw_use){
                .use = {.value = n->out[0], .base = n->out[0], .base_kind = AF_BASE_INDEX, .source = AF_NONE}, .address = a, .dims = *d};
        return 0;
}

/* What a gather reads: memory over the result's axes but for those of the index, along which the index picks. */
static int gather_data(struct build *b, const struct af_node *n, const struct af_dims *out, uint32_t index_rank) {
        struct raw_use *u;
        int64_t strides[AF_LIMIT_RANK];
        uint32_t axis = (uint32_t)attr_int(n, AF_ATTR_AXIS);
        struct address *a = af_arena_calloc(b->arena, 1, sizeof(*a));
        int r = a ? add_use(b, n->in[0], &u) : -ENOMEM;
        if (r)
                return r;
        if (u->use.base_kind != AF_BASE_INPUT)
                return af_view_unfit(b, "a gather from what its kernel computes");
        r = af_view_strides(b, u, strides, &a->offset);
        for (uint32_t d = 0; !r && d < u->dims.rank; d++) {
                uint32_t o = n->op == AF_OP_GATHER_ELEMENTS || d < axis ? d : d + index_rank - 1;
                if (d != axis && out->atom[o] != AF_NONE)
                        r = af_view_address_add(b, a, out->atom[o], strides[d]);
        }
        u->use.gathers = true;
        u->use.gather_stride = strides[axis];
        u->use.gather_extent = u->dims.dim[axis];
        u->address = a;
        u->dims = *out;
        return r;
}

static int visit_gather(struct build *b, uint32_t i, const struct af_node *n) {
        const struct af_dims *out = &b->node_dims[i];
        uint32_t first = n->op == AF_OP_GATHER_ELEMENTS ? 0 : (uint32_t)attr_int(n, AF_ATTR_AXIS);
        struct raw_use *u;
        int r = af_view_fresh_atoms(b, &b->node_dims[i]);
        if (!r)
                r = gather_data(b, n, out, b->m->g->values[n->in[1]].rank);
        if (!r)
                r = add_use(b, n->in[1], &u);
        for (uint32_t d = 0; !r && d < u->dims.rank; d++)
                if (u->dims.atom[d] != AF_NONE) {
                        r = af_atoms_unify(&b->atoms, u->dims.atom[d], out->atom[first + d]);
                        r = r > 0 ? af_view_unfit(b, "axes that do not line up after a reshape") : r;
                }
        return r;
}

static int visit_node(struct build *b, uint32_t i) {
        const struct af_node *n = &b->m->g->nodes[b->m->nodes[i]];
        b->space->first_use[i] = b->n_uses;
        b->space->skip[i] = af_view_transparent(n->op) || af_op_info(n->op)->cls == AF_CLASS_CONCAT; /* its pieces are stored */
        int r = af_view_load_dims(b, n->out[0], &b->node_dims[i]);
        if (r || b->space->skip[i])
                return r;
        if (af_value_empty(b->m->g, n->out[0])) {
                b->space->skip[i] = true;
                return 0;
        }
        if (af_op_info(n->op)->cls == AF_CLASS_REDUCE)
                return visit_reduce(b, i, n);
        if (af_op_info(n->op)->cls == AF_CLASS_IOTA)
                return visit_iota(b, i, n);
        if (af_op_info(n->op)->cls == AF_CLASS_GATHER)
                return visit_gather(b, i, n);
        r = af_view_fresh_atoms(b, &b->node_dims[i]);
        for (uint32_t k = 0; !r && k < n->n_in; k++) {
                struct raw_use *u;
                r = add_use(b, n->in[k], &u);
                if (!r)
                        r = af_view_unify_right(b, &u->dims, &b->node_dims[i]);
        }
        return r;
}

/* A stored value that only views stand before is stored with its base's axes: row-major is row-major, however it is cut. */
static uint32_t stored_root(const struct build *b, uint32_t value) {
        const struct af_graph *g = b->m->g;
        uint32_t base = value;
        uint32_t position = af_members_producer(b->m, value);
        if (g->values[value].strides || (position != AF_NONE && b->shared[position]))
                return value;
        for (uint32_t p; (p = af_members_producer(b->m, base)) != AF_NONE && af_op_info(g->nodes[b->m->nodes[p]].op)->cls == AF_CLASS_VIEW;)
                base = g->nodes[b->m->nodes[p]].in[0];
        return base;
}

/* Pieces of one concatenation that have one shape have the same axes: what they read of the same memory is read once. */
static int join_pieces(struct build *b, struct raw_use *list, uint32_t n) {
        for (uint32_t i = 0; i < n; i++)
                for (uint32_t k = 0; k < i && list[i].store && list[i].store->into != AF_NONE; k++) {
                        const struct af_dims *x = &list[k].dims, *y = &list[i].dims;
                        if (!list[k].store || list[k].store->into != list[i].store->into ||
                            memcmp(x->dim, y->dim, x->rank * sizeof(*x->dim)) != 0)
                                continue;
                        for (uint32_t d = 0; d < x->rank; d++) {
                                int r = x->atom[d] == AF_NONE ? 0 : af_atoms_unify(&b->atoms, x->atom[d], y->atom[d]);
                                if (r)
                                        return r > 0 ? af_view_unfit(b, "pieces of a concatenation whose axes do not line up") : r;
                        }
                        break;
                }
        return 0;
}

/* The stored outputs; before them, for each that is only copied, the use that loads it. */
static int visit_stores(struct build *b, const struct af_store *stores, uint32_t n_stores) {
        struct raw_use *list = af_arena_calloc(&b->temp, n_stores, sizeof(*list));
        if (!list)
                return -ENOMEM;
        for (uint32_t i = 0; i < n_stores; i++) {
                uint32_t value = stores[i].value;
                list[i].use = (struct af_use){.value = value, .base = AF_NONE, .source = AF_NONE};
                if (af_value_empty(b->m->g, value))
                        continue;
                int r = resolve(b, stores[i].into == AF_NONE ? stored_root(b, value) : value, &list[i]);
                if (r)
                        return r;
                list[i].store = &stores[i];
                if (list[i].use.base_kind != AF_BASE_NODE) {
                        struct raw_use source = list[i];
                        r = af_arena_grow(&b->temp, &b->uses, &b->cap_uses, b->n_uses + 1, sizeof(*b->uses));
                        if (r)
                                return r;
                        list[i].use.source = b->n_uses;
                        b->uses[b->n_uses++] = source;
                }
                list[i].use.value = value;
        }
        int r = join_pieces(b, list, n_stores);
        if (r)
                return r;
        b->space->first_store = b->n_uses;
        r = af_arena_grow(&b->temp, &b->uses, &b->cap_uses, b->n_uses + n_stores, sizeof(*b->uses));
        if (!r && n_stores)
                memcpy(&b->uses[b->n_uses], list, n_stores * sizeof(*list));
        b->n_uses += n_stores;
        return r;
}

/* Stored views and broadcasts that members read too: one set of axes for the store and the readers. */
static int find_shared(struct build *b, const struct af_store *stores, uint32_t n_stores) {
        const struct af_graph *g = b->m->g;
        b->shared = af_arena_calloc(b->arena, b->m->n, sizeof(*b->shared));
        b->read = af_arena_calloc(b->arena, b->m->n, sizeof(*b->read));
        if (!b->shared || !b->read)
                return -ENOMEM;
        for (uint32_t i = 0; i < b->m->n; i++) {
                const struct af_node *n = &g->nodes[b->m->nodes[i]];
                for (uint32_t k = 0; k < n->n_in; k++) {
                        uint32_t p = af_members_producer(b->m, n->in[k]);
                        if (p != AF_NONE)
                                b->read[p] = true;
                }
        }
        for (uint32_t i = 0; i < n_stores; i++) {
                uint32_t p = af_members_producer(b->m, stores[i].value);
                if (p == AF_NONE || !b->read[p] || !af_view_transparent(g->nodes[b->m->nodes[p]].op) || af_value_empty(g, stores[i].value))
                        continue;
                b->shared[p] = af_arena_alloc(b->arena, sizeof(struct af_dims));
                if (!b->shared[p])
                        return -ENOMEM;
                int r = af_view_load_dims(b, stores[i].value, b->shared[p]);
                if (!r)
                        r = af_view_fresh_atoms(b, b->shared[p]);
                if (r)
                        return r;
        }
        return 0;
}

int af_space_build(struct af_arena *arena, const struct af_members *m, const struct af_store *stores, uint32_t n_stores,
                   enum af_packing packing, bool share, struct af_space *ret_space, const char **ret_why) {
        struct build b = {.arena = arena,
                          .m = m,
                          .space = ret_space,
                          .why = ret_why,
                          .atoms = {.g = m->g, .arena = arena},
                          .packing = packing,
                          .share = share};
        *ret_space = (struct af_space){0};
        b.node_dims = af_arena_calloc(arena, m->n, sizeof(*b.node_dims));
        ret_space->first_use = af_arena_calloc(arena, m->n + 1, sizeof(uint32_t));
        ret_space->node_axes = af_arena_calloc(arena, m->n, sizeof(uint32_t));
        ret_space->node_reduced = af_arena_calloc(arena, m->n, sizeof(uint32_t));
        ret_space->skip = af_arena_calloc(arena, m->n, sizeof(bool));
        ret_space->empty_reduce = af_arena_calloc(arena, m->n, sizeof(bool));
        ret_space->unit_reduce = af_arena_calloc(arena, m->n, sizeof(bool));
        if (!b.node_dims || !ret_space->first_use || !ret_space->node_axes || !ret_space->node_reduced || !ret_space->skip ||
            !ret_space->empty_reduce || !ret_space->unit_reduce)
                return -ENOMEM;
        uint32_t n_uses = 2 * n_stores; /* most there can be: one list, never copied to a larger one */
        for (uint32_t i = 0; i < m->n; i++)
                n_uses += AF_MAX(m->g->nodes[m->nodes[i]].n_in, 1u);
        int r = af_arena_grow(&b.temp, &b.uses, &b.cap_uses, n_uses, sizeof(*b.uses));
        if (!r)
                r = find_shared(&b, stores, n_stores);
        for (uint32_t i = 0; !r && i < m->n; i++)
                r = visit_node(&b, i);
        ret_space->first_use[m->n] = b.n_uses;
        if (!r)
                r = visit_stores(&b, stores, n_stores);
        if (!r)
                r = af_space_merge(&b);
        af_arena_deinit(&b.temp);
        return r;
}
