/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes that only say which elements of their operand are read: views, broadcasts, transposes and slices. A use sees through them: a
 * transpose permutes its axes; a slice gives it axes of its own, over which it steps in the memory of what it reads.
 */
#include <errno.h>

#include "compiler/schedule/axes_internal.h"

bool af_view_transparent(enum af_op op) {
        enum af_op_class c = af_op_info(op)->cls;
        return c == AF_CLASS_VIEW || c == AF_CLASS_BROADCAST || c == AF_CLASS_TRANSPOSE || c == AF_CLASS_SLICE;
}

int af_view_unfit(struct build *b, const char *why) {
        *b->why = why;
        return AF_SCHEDULE_E_UNFIT;
}

/* Turns the 1 of the atom functions into UNFIT. */
static int fit(struct build *b, int r, const char *why) {
        return r > 0 ? af_view_unfit(b, why) : r;
}

int af_view_load_dims(struct build *b, uint32_t value, struct af_dims *ret) {
        ret->rank = b->m->g->values[value].rank;
        af_size_dims(b->m->g, value, ret->dim);
        return 0;
}

int af_view_fresh_atoms(struct build *b, struct af_dims *d) {
        for (uint32_t i = 0; i < d->rank; i++) {
                d->atom[i] = AF_NONE;
                if (d->dim[i] == 1)
                        continue;
                int r = af_atoms_new(&b->atoms, d->dim[i], &d->atom[i]);
                if (r)
                        return r;
        }
        return 0;
}

int af_view_unify_right(struct build *b, const struct af_dims *in, const struct af_dims *out) {
        for (uint32_t i = 0; i < in->rank && i < out->rank; i++) {
                uint32_t x = in->atom[in->rank - 1 - i], y = out->atom[out->rank - 1 - i];
                if (x == AF_NONE || y == AF_NONE)
                        continue;
                int r = fit(b, af_atoms_unify(&b->atoms, x, y), "axes that do not line up after a reshape");
                if (r)
                        return r;
        }
        return 0;
}

static int unify_all(struct build *b, const struct af_dims *x, const struct af_dims *y) {
        for (uint32_t i = 0; i < x->rank; i++) {
                int r = x->atom[i] == AF_NONE
                                ? 0
                                : fit(b, af_atoms_unify(&b->atoms, x->atom[i], y->atom[i]), "axes that do not line up after a reshape");
                if (r)
                        return r;
        }
        return 0;
}

int af_view_address_add(struct build *b, struct address *a, uint32_t atom, int64_t stride) {
        if (a->n == AF_ATOMS_MAX)
                return af_view_unfit(b, "too many axes");
        a->atom[a->n] = atom;
        a->stride[a->n++] = stride;
        return 0;
}

/* An atom's leaves with the stride of each. */
static int address_spread(struct build *b, struct address *a, uint32_t atom, int64_t stride) {
        uint32_t list[AF_ATOMS_MAX], n = 0;
        int r = 0;
        if (!af_atoms_leaves(&b->atoms, atom, list, &n))
                return af_view_unfit(b, "too many axes");
        while (!r && n > 0) {
                r = af_view_address_add(b, a, list[--n], stride);
                if (!r && !af_size_mul(b->m->g, stride, b->atoms.items[list[n]].extent, &stride))
                        return af_view_unfit(b, "strides beyond 64 bits");
        }
        return r;
}

/* How a use steps over its memory, leaf by leaf. */
static int address_now(struct build *b, const struct raw_use *u, struct address *ret) {
        int64_t strides[AF_LIMIT_RANK];
        int r = 0;
        *ret = (struct address){0};
        if (u->address) {
                ret->offset = u->address->offset;
                for (uint32_t i = 0; !r && i < u->address->n; i++)
                        r = address_spread(b, ret, u->address->atom[i], u->address->stride[i]);
                return r;
        }
        if (!af_size_strides(b->m->g, u->use.base, strides))
                return af_view_unfit(b, "strides beyond 64 bits");
        for (uint32_t i = 0; !r && i < u->base_dims.rank; i++)
                r = u->base_dims.atom[i] == AF_NONE ? 0 : address_spread(b, ret, u->base_dims.atom[i], strides[i]);
        return r;
}

static int64_t stride_of(const struct address *a, uint32_t leaf) {
        for (uint32_t i = 0; i < a->n; i++)
                if (a->atom[i] == leaf)
                        return a->stride[i];
        return 0;
}

/* The one stride of a dimension over all its leaves. */
static int dim_stride(struct build *b, const struct address *a, uint32_t atom, int64_t *ret) {
        uint32_t list[AF_ATOMS_MAX], n = 0;
        if (!af_atoms_leaves(&b->atoms, atom, list, &n))
                return af_view_unfit(b, "too many axes");
        for (uint32_t i = 0; i + 1 < n; i++) {
                int64_t next;
                if (!af_size_mul(b->m->g, stride_of(a, list[i + 1]), b->atoms.items[list[i + 1]].extent, &next) ||
                    stride_of(a, list[i]) != next)
                        return af_view_unfit(b, "a slice of an axis that lies in pieces in memory");
        }
        *ret = stride_of(a, list[n - 1]);
        return 0;
}

int af_view_strides(struct build *b, const struct raw_use *u, int64_t *ret_strides, int64_t *ret_offset) {
        struct address now;
        int r = address_now(b, u, &now);
        for (uint32_t i = 0; !r && i < u->dims.rank; i++) {
                ret_strides[i] = 0;
                r = u->dims.atom[i] == AF_NONE ? 0 : dim_stride(b, &now, u->dims.atom[i], &ret_strides[i]);
        }
        *ret_offset = r ? 0 : now.offset;
        return r;
}

/* Axes of a slice that takes less than all of them, and the address with these. */
static int slice_axes(struct build *b, const struct af_node *n, struct raw_use *u, struct af_dims *out) {
        const struct af_attr *starts = af_node_attr(n, AF_ATTR_STARTS), *steps = af_node_attr(n, AF_ATTR_STEPS);
        struct address now, *next = af_arena_calloc(b->arena, 1, sizeof(*next));
        int r = next ? address_now(b, u, &now) : -ENOMEM;
        if (r)
                return r;
        next->offset = now.offset;
        for (uint32_t i = 0; !r && i < out->rank; i++) {
                int64_t start, stride = 0, offset;
                out->atom[i] = u->dims.atom[i];
                if (out->atom[i] == AF_NONE)
                        continue;
                if (out->dim[i] == u->dims.dim[i] && steps->ints[i] == 1) {
                        uint32_t list[AF_ATOMS_MAX], k = 0;
                        if (!af_atoms_leaves(&b->atoms, out->atom[i], list, &k))
                                return af_view_unfit(b, "too many axes");
                        for (uint32_t j = 0; !r && j < k; j++)
                                r = af_view_address_add(b, next, list[j], stride_of(&now, list[j]));
                        continue;
                }
                start = af_size_from(b->m->g, starts->dims[i]);
                r = dim_stride(b, &now, out->atom[i], &stride);
                if (!r && (!af_size_mul(b->m->g, start, stride, &offset) || !af_size_add(b->m->g, next->offset, offset, &next->offset) ||
                           !af_size_mul(b->m->g, stride, steps->ints[i], &stride)))
                        return af_view_unfit(b, "strides beyond 64 bits");
                out->atom[i] = AF_NONE;
                if (!r && out->dim[i] != 1)
                        r = af_atoms_new(&b->atoms, out->dim[i], &out->atom[i]);
                if (!r && out->atom[i] != AF_NONE)
                        r = af_view_address_add(b, next, out->atom[i], stride);
        }
        u->address = next;
        return r;
}

static bool takes_all(const struct af_node *n, const struct af_dims *in, const struct af_dims *out) {
        const struct af_attr *steps = af_node_attr(n, AF_ATTR_STEPS);
        for (uint32_t i = 0; i < in->rank; i++)
                if (in->dim[i] != out->dim[i] || (in->dim[i] > 1 && steps->ints[i] != 1))
                        return false;
        return true;
}

/* The same slice of the same memory has the same axes wherever it is read. */
static int slice(struct build *b, uint32_t position, const struct af_node *n, struct raw_use *u, struct af_dims *out) {
        if (takes_all(n, &u->dims, out)) {
                *out = u->dims;
                return 0;
        }
        if (u->use.base_kind == AF_BASE_NODE)
                return af_view_unfit(b, "a slice of a value that the kernel computes");
        if (u->use.base_kind == AF_BASE_SCALAR)
                return af_view_fresh_atoms(b, out);
        if (!b->sliced)
                b->sliced = af_arena_calloc(b->arena, b->m->n, sizeof(*b->sliced));
        if (!b->sliced)
                return -ENOMEM;
        struct sliced *known = b->sliced[position];
        if (known && b->share) {
                *out = known->dims;
                u->address = known->address;
                return 0;
        }
        int r = slice_axes(b, n, u, out);
        known = r ? NULL : af_arena_calloc(b->arena, 1, sizeof(*known));
        if (!r && !known)
                return -ENOMEM;
        if (!r)
                *known = (struct sliced){*out, u->address};
        b->sliced[position] = known;
        return r;
}

int af_view_through(struct build *b, uint32_t position, struct raw_use *u) {
        const struct af_node *n = &b->m->g->nodes[b->m->nodes[position]];
        const struct af_attr *perm = af_node_attr(n, AF_ATTR_PERM);
        enum af_op_class c = af_op_info(n->op)->cls;
        struct af_dims out;
        int r = af_view_load_dims(b, n->out[0], &out);
        if (!r && (c == AF_CLASS_VIEW || c == AF_CLASS_BROADCAST))
                r = af_view_fresh_atoms(b, &out);
        if (!r && c == AF_CLASS_BROADCAST)
                r = af_view_unify_right(b, &u->dims, &out);
        else if (!r && c == AF_CLASS_SLICE)
                r = slice(b, position, n, u, &out);
        else if (!r && c == AF_CLASS_VIEW)
                r = fit(b, af_atoms_unify_dims(&b->atoms, &u->dims, &out), "reshape of axes with no common refinement");
        for (uint32_t i = 0; !r && c == AF_CLASS_TRANSPOSE && i < out.rank; i++)
                out.atom[i] = u->dims.atom[perm->ints[i]];
        if (!r && b->shared[position])
                r = unify_all(b, b->shared[position], &out);
        u->dims = out;
        return r;
}
