/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orders the axes of a group, merges what no access can tell apart, and marks the inputs that must be made dense first and the outputs that
 * must be spread out last: a tile's rows must lie contiguous in memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/schedule/axes_internal.h"

struct order { /* axes before merging, outermost first */
        uint32_t *leaves, n;
        uint32_t *position; /* per atom */
        int64_t extent[AF_ATOMS_MAX];
        uint64_t reduced;
        struct line { /* one access */
                uint64_t axes, vary;
                int64_t *load;    /* [n] as it stands in memory; of an output: where packed */
                int64_t *strides; /* [n] as the kernel reads it: of the packed copy where packed */
                uint64_t reduced;
                bool packed, access, reduces; /* an index is an access, but of no memory */
                bool memory;
        } * lines; /* per use */
        uint64_t *node_axes;
        bool join[AF_ATOMS_MAX]; /* with the next one */
        bool combines;           /* a reduction gives the order */
        uint32_t cross;          /* axis along which an access lies that does not lie along the innermost one: a tile spans both; AF_NONE */
};

static int unfit(struct build *b, const char *why) {
        *b->why = why;
        return AF_SCHEDULE_E_UNFIT;
}

static int list_leaves(struct build *b, const struct af_dims *d, uint32_t *list, uint32_t *n) {
        *n = 0;
        for (uint32_t i = 0; i < d->rank; i++)
                if (d->atom[i] != AF_NONE && !af_atoms_leaves(&b->atoms, d->atom[i], list, n))
                        return unfit(b, "too many axes");
        return 0;
}

/* Leaves to positions. */
static int number_axes(struct build *b, struct order *o) {
        memset(o->position, 0xff, (b->atoms.n + 1) * sizeof(uint32_t));
        for (uint32_t i = 0; i < o->n; i++) {
                if (o->position[o->leaves[i]] != AF_NONE)
                        return unfit(b, "two axes of one value are the same axis of another");
                o->position[o->leaves[i]] = i;
                o->extent[i] = b->atoms.items[o->leaves[i]].extent;
        }
        return 0;
}

/* Operand of a reduction over more than one element: its dimensions give the order in which axes are combined. */
static bool combines(const struct raw_use *u) {
        for (uint32_t d = 0; d < u->dims.rank; d++)
                if (u->reduced_dims >> d & 1 && u->dims.atom[d] != AF_NONE)
                        return true;
        return false;
}

/* The longest list has every axis, or there is no kernel; of several, a reduction's. */
static int find_order(struct build *b, struct order *o) {
        uint32_t list[AF_ATOMS_MAX], n;
        o->leaves = af_arena_calloc(b->arena, AF_ATOMS_MAX, sizeof(uint32_t));
        o->position = af_arena_calloc(b->arena, b->atoms.n + 1, sizeof(uint32_t));
        o->lines = af_arena_calloc(b->arena, b->n_uses + 1, sizeof(*o->lines));
        o->node_axes = af_arena_calloc(b->arena, b->m->n + 1, sizeof(uint64_t));
        if (!o->leaves || !o->position || !o->lines || !o->node_axes)
                return -ENOMEM;
        for (uint32_t i = 0; i < b->n_uses + b->m->n; i++) {
                bool is_use = i < b->n_uses;
                if (is_use ? b->uses[i].use.base == AF_NONE : b->space->skip[i - b->n_uses])
                        continue;
                int r = list_leaves(b, is_use ? &b->uses[i].dims : &b->node_dims[i - b->n_uses], list, &n);
                if (r)
                        return r;
                bool first = is_use && !o->combines && combines(&b->uses[i]);
                if (n > o->n || (n == o->n && first)) {
                        o->n = n;
                        memcpy(o->leaves, list, n * sizeof(*list));
                        o->combines |= first;
                }
        }
        int64_t *strides = af_arena_calloc(b->arena, 2 * (size_t)b->n_uses * o->n, sizeof(*strides));
        if (!strides)
                return -ENOMEM;
        for (uint32_t i = 0; i < b->n_uses; i++) {
                o->lines[i].load = strides + 2 * (size_t)i * o->n;
                o->lines[i].strides = o->lines[i].load + o->n;
        }
        return number_axes(b, o);
}

/* A list as a bit set. */
static int place(struct build *b, struct order *o, const struct af_dims *d, uint64_t *ret_axes) {
        uint32_t list[AF_ATOMS_MAX], n;
        int r = list_leaves(b, d, list, &n);
        if (r)
                return r;
        *ret_axes = 0;
        for (uint32_t i = 0; i < n; i++) {
                uint32_t p = o->position[list[i]];
                if (p == AF_NONE)
                        return unfit(b, "no value spans every axis");
                if (*ret_axes >> p & 1)
                        return unfit(b, "two axes of one value are the same axis of another");
                *ret_axes |= UINT64_C(1) << p;
        }
        return 0;
}

/* A stride over one axis, spread over what it was cut into. */
static int spread_atom(struct build *b, struct order *o, uint32_t atom, int64_t stride, int64_t *strides, uint64_t *vary) {
        uint32_t list[AF_ATOMS_MAX], n = 0;
        if (!af_atoms_leaves(&b->atoms, atom, list, &n))
                return unfit(b, "too many axes");
        while (n > 0) {
                uint32_t p = o->position[list[--n]];
                if (p == AF_NONE)
                        return unfit(b, "no value spans every axis");
                strides[p] = stride;
                *vary |= stride ? UINT64_C(1) << p : 0;
                if (!af_size_mul(b->m->g, stride, o->extent[p], &stride))
                        return unfit(b, "strides beyond 64 bits");
        }
        return 0;
}

/* Strides of a value over its dimensions. */
static int spread(struct build *b, struct order *o, const struct af_dims *d, const int64_t *dim_strides, int64_t *strides, uint64_t *vary) {
        int r = 0;
        *vary = 0;
        for (uint32_t i = 0; !r && i < d->rank; i++)
                r = d->atom[i] == AF_NONE ? 0 : spread_atom(b, o, d->atom[i], dim_strides[i], strides, vary);
        return r;
}

/* Strides of a dense copy; of what is larger than memory they mean nothing, and nobody allocates it. */
static void dense(const struct build *b, const struct order *o, uint64_t axes, int64_t *strides) {
        int64_t s = 1;
        for (uint32_t p = o->n; p-- > 0;) {
                strides[p] = axes >> p & 1 ? s : 0;
                if (axes >> p & 1 && !af_size_mul(b->m->g, s, o->extent[p], &s))
                        s = 1;
        }
}

static int place_input(struct build *b, struct order *o, struct raw_use *u, struct line *l) {
        int64_t strides[AF_LIMIT_RANK];
        if (u->use.base_kind != AF_BASE_INDEX && !af_size_strides(b->m->g, u->use.base, strides))
                return unfit(b, "strides beyond 64 bits");
        if (b->m->g->values[u->use.base].kind == AF_VALUE_INPUT)
                u->use.offset = af_size_from(b->m->g, b->m->g->inputs[b->m->g->values[u->use.base].index].offset);
        const struct address *a = u->address;
        int r = a ? 0 : spread(b, o, &u->base_dims, strides, l->load, &l->vary);
        for (uint32_t i = 0; a && !r && i < a->n; i++)
                r = spread_atom(b, o, a->atom[i], a->stride[i], l->load, &l->vary);
        if (a && !af_size_add(b->m->g, u->use.offset, a->offset, &u->use.offset))
                return unfit(b, "strides beyond 64 bits");
        memcpy(l->strides, l->load, o->n * sizeof(*l->load));
        return r;
}

static bool row_major(const struct build *b, const struct af_dims *d, int64_t *strides) {
        int64_t s = 1;
        for (uint32_t i = d->rank; i-- > 0;) {
                strides[i] = s;
                if (!af_size_mul(b->m->g, s, d->dim[i], &s))
                        return false;
        }
        return true;
}

static int place_store(struct build *b, struct order *o, struct raw_use *u, struct line *l) {
        int64_t strides[AF_LIMIT_RANK];
        uint64_t vary;
        uint32_t into = u->store->into, value = into == AF_NONE ? u->use.value : into;
        struct af_dims whole = u->dims;
        l->vary = l->axes;
        if (into != AF_NONE)
                af_size_dims(b->m->g, into, whole.dim);
        bool stated = b->m->g->values[value].strides;
        if (stated ? !af_size_strides(b->m->g, value, strides) : !row_major(b, &whole, strides))
                return unfit(b, "strides beyond 64 bits");
        u->use.offset = 0;
        for (uint32_t d = 0; into != AF_NONE && d < whole.rank; d++) {
                int64_t at;
                if (!af_size_mul(b->m->g, u->store->start[d], strides[d], &at) || !af_size_add(b->m->g, u->use.offset, at, &u->use.offset))
                        return unfit(b, "strides beyond 64 bits");
        }
        return spread(b, o, &u->dims, strides, l->strides, &vary);
}

static int place_use(struct build *b, struct order *o, uint32_t i) {
        struct raw_use *u = &b->uses[i];
        struct line *l = &o->lines[i];
        if (u->use.base == AF_NONE)
                return 0;
        int r = place(b, o, &u->dims, &l->axes);
        if (!r && i >= b->space->first_store)
                r = place_store(b, o, u, l);
        else if (!r && (u->use.base_kind == AF_BASE_INPUT || u->use.base_kind == AF_BASE_INDEX))
                r = place_input(b, o, u, l);
        l->memory = !r && (i >= b->space->first_store || (u->use.base_kind == AF_BASE_INPUT && !u->use.gathers));
        l->access = l->memory || (!r && (u->use.base_kind == AF_BASE_INDEX || u->use.gathers));
        for (uint32_t d = 0; !r && d < u->dims.rank; d++) {
                uint32_t list[AF_ATOMS_MAX], n = 0;
                if (!(u->reduced_dims >> d & 1) || u->dims.atom[d] == AF_NONE)
                        continue;
                if (!af_atoms_leaves(&b->atoms, u->dims.atom[d], list, &n))
                        return unfit(b, "too many axes");
                l->reduces = true;
                while (n > 0)
                        l->reduced |= UINT64_C(1) << o->position[list[--n]];
        }
        return r;
}

/* What a reduction combines in order must be combined in the kernel's. */
static bool in_order(struct build *b, const struct order *o, const struct af_dims *d) {
        uint32_t list[AF_ATOMS_MAX], n;
        if (list_leaves(b, d, list, &n))
                return false;
        for (uint32_t i = 1; i < n; i++)
                if (o->position[list[i]] < o->position[list[i - 1]])
                        return false;
        return true;
}

/* Which axes are reduced by someone, and the axes of every node. */
static int find_reduced(struct build *b, struct order *o) {
        for (uint32_t i = 0; i < b->n_uses; i++) {
                o->reduced |= o->lines[i].reduced;
                if (o->lines[i].reduces && !in_order(b, o, &b->uses[i].dims))
                        return unfit(b, "axes of reductions in different order");
        }
        for (uint32_t i = 0; i < b->m->n; i++) {
                if (b->space->skip[i])
                        continue;
                int r = place(b, o, &b->node_dims[i], &o->node_axes[i]);
                if (r)
                        return r;
        }
        return 0;
}

static void find_joins(const struct build *b, struct order *o) {
        for (uint32_t p = 0; p + 1 < o->n; p++) {
                o->join[p] = true;
                for (uint32_t i = 0; o->join[p] && i < b->n_uses; i++) {
                        const struct line *l = &o->lines[i];
                        int64_t run;
                        if (l->access)
                                o->join[p] = af_size_mul(b->m->g, l->strides[p + 1], o->extent[p + 1], &run) && l->strides[p] == run;
                        if (l->reduces)
                                o->join[p] &=
                                        !((l->reduced >> p ^ l->reduced >> (p + 1)) & 1) && !((l->axes >> p ^ l->axes >> (p + 1)) & 1);
                }
                for (uint32_t i = 0; o->join[p] && i < b->m->n; i++)
                        o->join[p] = !((o->node_axes[i] >> p ^ o->node_axes[i] >> (p + 1)) & 1);
        }
}

/* First axis (before merging) of the merged axis that ends at p. */
static uint32_t start_of(const struct order *o, uint32_t p) {
        while (p > 0 && o->join[p - 1])
                p--;
        return p;
}

/* The axes that a tile spans, as their innermost axes before merging. */
static void tile_axes(const struct order *o, uint32_t *ret_row, uint32_t *ret_inner) {
        *ret_row = *ret_inner = AF_NONE;
        if (!o->n)
                return;
        *ret_inner = o->n - 1;
        uint32_t p = start_of(o, o->n - 1);
        if (o->reduced && !(o->reduced >> (o->n - 1) & 1)) /* rows are the innermost reduced axes */
                while (p > 0 && !(o->reduced >> (p - 1) & 1))
                        p--;
        *ret_row = !o->reduced && o->cross != AF_NONE ? o->cross : p ? p - 1 : AF_NONE;
}

static double bytes_of(const struct build *b, const struct order *o, uint32_t use) {
        double bytes = af_dtype_size(b->m->g->values[b->uses[use].use.value].dtype);
        for (uint32_t p = 0; p < o->n; p++)
                bytes *= o->lines[use].vary >> p & 1 ? (double)af_size_hint(b->m->g, o->extent[p]) : 1;
        return bytes;
}

/* The axis along which most lies of what does not lie along the innermost one. */
static void find_cross(const struct build *b, struct order *o) {
        double most = 0;
        o->cross = AF_NONE;
        for (uint32_t i = 0; i < b->n_uses && b->packing == AF_PACK_NEEDED; i++) {
                const struct line *l = &o->lines[i];
                uint32_t p = 0;
                while (p < o->n && l->strides[p] != 1)
                        p++;
                if (!l->memory || l->packed || p + 1 >= o->n || l->strides[o->n - 1] == 0 || bytes_of(b, o, i) <= most)
                        continue;
                most = bytes_of(b, o, i);
                o->cross = p;
        }
}

#define SECTOR       32
#define FEW_ELEMENTS 2048 /* rather read one by one than copied before */

/*
 * Whether tiles move it as it stands: rows, or lines across them; loads also with steps between elements: all that lies in the same
 * sectors, or element by element where nothing can be had better.
 */
static bool moves(const struct build *b, const struct order *o, uint32_t use, uint32_t row, uint32_t inner) {
        const struct line *l = &o->lines[use];
        int64_t across = row == AF_NONE ? 0 : l->strides[row], along = inner == AF_NONE ? 0 : l->strides[inner], size;
        bool load = use < b->space->first_store, lies = false;
        if (!along)
                along = across;
        if (!along || along == 1)
                return true;
        if (b->packing != AF_PACK_NEEDED)
                return false;
        b->space->raw = true;
        if (across == 1)
                return true;
        if (af_size_is_symbolic(along))
                return false;
        size = (int64_t)af_dtype_size(b->m->g->values[b->uses[use].use.value].dtype);
        for (uint32_t p = 0; p < o->n; p++)
                lies |= l->strides[p] == 1;
        return load && (along * size <= SECTOR || !lies || bytes_of(b, o, use) <= (double)(size * FEW_ELEMENTS)) && along * size >= -SECTOR;
}

/* Whether rows of a tile, from axis p on, have no gaps between them: whole 32-byte blocks of any dtype. */
static bool gapless(const struct order *o, uint32_t p) {
        int64_t n = 1;
        for (uint32_t k = p; k < o->n; k++)
                if (af_size_is_symbolic(o->extent[k]) || __builtin_mul_overflow(n, o->extent[k], &n))
                        return false;
        return n % 32 == 0;
}

/*
 * Reduced axes that stand side by side must be one, as their elements are combined in row-major order: one axis, or the two of a tile that
 * has no gaps (flat).
 */
static bool runs_whole(const struct order *o, uint32_t n_uses, uint32_t row, bool *ret_flat) {
        *ret_flat = false;
        for (uint32_t i = 0; i < n_uses; i++) {
                const struct line *l = &o->lines[i];
                for (uint32_t p = 0, before = AF_NONE; l->reduces && p < o->n; p++) {
                        if (!(l->axes >> p & 1))
                                continue;
                        bool apart =
                                before != AF_NONE && (l->reduced >> before & l->reduced >> p & 1) && (before + 1 != p || !o->join[before]);
                        if (apart && (before != row || before + 1 != p || start_of(o, o->n - 1) != p || !gapless(o, p)))
                                return false;
                        *ret_flat |= apart;
                        before = p;
                }
        }
        return true;
}

/* Marks inputs to be packed, and outputs to be unpacked, until every access has contiguous rows. */
static int settle(struct build *b, struct order *o) {
        if (b->packing == AF_PACK_ALL)
                for (uint32_t i = 0; i < b->space->first_store; i++)
                        if (o->lines[i].memory) {
                                o->lines[i].packed = true;
                                o->lines[i].vary = o->lines[i].axes;
                                dense(b, o, o->lines[i].vary, o->lines[i].strides);
                        }
        for (bool again = true; again;) {
                uint32_t row, inner;
                again = false;
                find_joins(b, o);
                find_cross(b, o);
                tile_axes(o, &row, &inner);
                for (uint32_t i = 0; i < b->n_uses; i++) {
                        struct line *l = &o->lines[i];
                        if (!l->memory || moves(b, o, i, row, inner))
                                continue;
                        if (l->packed)
                                return unfit(b, "rows that are not contiguous in memory (needs a transpose)");
                        if (i >= b->space->first_store)
                                memcpy(l->load, l->strides, o->n * sizeof(*l->load));
                        l->packed = again = true;
                        dense(b, o, l->vary, l->strides);
                }
        }
        uint32_t row, inner;
        tile_axes(o, &row, &inner);
        return runs_whole(o, b->n_uses, row, &b->space->flat) ? 0 : unfit(b, "reduced axes that do not merge");
}

/* The copy that makes an input dense, or spreads a dense output out: over all its axes before merging, merged for these two accesses alone.
 */
static int make_pack(struct build *b, const struct order *o, const struct line *l, struct af_use *use) {
        struct af_pack *k = af_arena_alloc(b->arena, sizeof(*k));
        if (!k)
                return -ENOMEM;
        k->offset = use->offset;
        k->elements = 1;
        for (uint32_t p = 0; p < o->n; p++) {
                if (!(l->vary >> p & 1))
                        continue;
                if (af_size_is_symbolic(o->extent[p]) || af_size_is_symbolic(l->load[p]) || af_size_is_symbolic(l->strides[p]) ||
                    af_size_is_symbolic(use->offset))
                        return unfit(b, "a layout that needs a copy, of a size that depends on symbols");
                k->elements *= o->extent[p];
                uint32_t n = k->n_axes;
                if (n && k->load[n - 1] == l->load[p] * o->extent[p]) {
                        k->extent[n - 1] *= o->extent[p];
                        k->load[n - 1] = l->load[p];
                        k->store[n - 1] = l->strides[p];
                        continue;
                }
                if (n + 1 >= AF_KERNEL_MAX_AXES)
                        return unfit(b, "too many axes");
                k->extent[n] = o->extent[p];
                k->load[n] = l->load[p];
                k->store[n] = l->strides[p];
                k->n_axes++;
        }
        use->pack = k;
        use->offset = 0;
        return 0;
}

/* Bytes of accesses that do not lie along the innermost axis of an order; stores count twice: they are gathered after all is computed. */
static double crosswise(const struct build *b, const struct order *o, uint32_t innermost) {
        double bytes = 0;
        for (uint32_t i = 0; i < b->n_uses; i++) {
                int64_t s = o->lines[i].memory ? o->lines[i].strides[innermost] : 0;
                bytes += s == 0 || s == 1 ? 0 : bytes_of(b, o, i) * (i >= b->space->first_store ? 2 : 1);
        }
        return bytes;
}

/* Positions as an access has them in memory, outermost first. */
static void memory_order(const struct order *o, const struct line *l, uint32_t *ret_order) {
        for (uint32_t p = 0; p < o->n; p++) {
                uint32_t k = p;
                for (; k > 0 && llabs(l->strides[ret_order[k - 1]]) < llabs(l->strides[p]); k--)
                        ret_order[k] = ret_order[k - 1];
                ret_order[k] = p;
        }
}

/* Without a reduction any order will do: the one in memory of the access that leaves the fewest bytes crosswise; stores come first. */
static int choose_order(struct build *b, struct order *o) {
        uint32_t best[AF_ATOMS_MAX], order[AF_ATOMS_MAX], leaves[AF_ATOMS_MAX];
        uint64_t all = o->n == 64 ? UINT64_MAX : (UINT64_C(1) << o->n) - 1, tried = 0;
        double least = -1;
        for (uint32_t k = 0; k < b->n_uses; k++) {
                uint32_t i = (k + b->space->first_store) % b->n_uses; /* stores stand last */
                const struct line *l = &o->lines[i];
                if (!l->memory || l->vary != all)
                        continue;
                memory_order(o, l, order);
                if (tried >> order[o->n - 1] & 1)
                        continue;
                tried |= UINT64_C(1) << order[o->n - 1];
                double bytes = crosswise(b, o, order[o->n - 1]);
                if (least >= 0 && bytes >= least)
                        continue;
                least = bytes;
                memcpy(best, order, sizeof(best));
        }
        if (least < 0)
                return 0;
        memcpy(leaves, o->leaves, o->n * sizeof(*leaves));
        for (uint32_t p = 0; p < o->n; p++)
                o->leaves[p] = leaves[best[p]];
        return number_axes(b, o);
}

static int place_all(struct build *b, struct order *o) {
        int r = 0;
        for (uint32_t i = 0; !r && i < b->n_uses; i++) {
                struct line *l = &o->lines[i];
                memset(l->load, 0, 2 * (size_t)o->n * sizeof(*l->load));
                *l = (struct line){.load = l->load, .strides = l->strides};
                b->uses[i].use.offset = 0;
                r = place_use(b, o, i);
        }
        return r;
}

static uint32_t merged_bits(const struct order *o, const uint32_t *merged, uint64_t bits) {
        uint32_t m = 0;
        for (uint32_t p = 0; p < o->n; p++)
                m |= bits >> p & 1 ? 1u << merged[p] : 0;
        return m;
}

/* From one int each to a number at the hints and an expression. */
static void settle_sizes(const struct af_graph *g, struct af_space *s) {
        for (uint32_t a = 0; a < s->n_axes; a++) {
                s->extent_x[a] = af_size_x(s->extent[a]);
                s->most[a] = af_size_most(g, s->extent[a]);
                s->extent[a] = af_size_hint(g, s->extent[a]);
                if (!s->extent_x[a])
                        continue;
                s->most[a] = AF_MAX(s->most[a], (int64_t)1); /* a tile is never empty, whatever the hints give */
                s->extent[a] = AF_MAX(s->extent[a], (int64_t)1);
        }
        for (uint32_t i = 0; i < s->n_uses; i++) {
                struct af_use *u = &s->uses[i];
                u->offset_x = af_size_x(u->offset);
                u->offset = af_size_hint(g, u->offset);
                for (uint32_t a = 0; a < s->n_axes; a++) {
                        u->strides_x[a] = af_size_x(u->strides[a]);
                        u->strides[a] = af_size_hint(g, u->strides[a]);
                }
        }
}

static int finish(struct build *b, struct order *o) {
        struct af_space *s = b->space;
        uint32_t merged[AF_ATOMS_MAX], row, inner;
        for (uint32_t p = 0; p < o->n; p++) {
                bool joined = p > 0 && o->join[p - 1];
                if (!joined && s->n_axes + 2 >= AF_KERNEL_MAX_AXES) /* chunking may add two */
                        return unfit(b, "too many axes that do not merge");
                s->n_axes += joined ? 0 : 1;
                merged[p] = s->n_axes - 1;
                if (!af_size_mul(b->m->g, o->extent[p], joined ? s->extent[merged[p]] : 1, &s->extent[merged[p]]))
                        return unfit(b, "sizes beyond 64 bits");
        }
        tile_axes(o, &row, &inner);
        s->row = row == AF_NONE ? AF_NONE : merged[row];
        s->inner = inner == AF_NONE ? AF_NONE : merged[inner];
        s->reduced = merged_bits(o, merged, o->reduced);
        s->n_uses = b->n_uses;
        s->uses = af_arena_calloc(b->arena, b->n_uses + 1, sizeof(*s->uses));
        if (!s->uses)
                return -ENOMEM;
        for (uint32_t i = 0; i < b->m->n; i++) {
                uint32_t u = s->first_use[i];
                s->node_axes[i] = merged_bits(o, merged, o->node_axes[i]);
                s->node_reduced[i] = u < s->first_use[i + 1] && o->lines[u].reduces ? merged_bits(o, merged, o->lines[u].reduced) : 0;
        }
        for (uint32_t i = 0; i < b->n_uses; i++) {
                const struct line *l = &o->lines[i];
                s->uses[i] = b->uses[i].use;
                s->uses[i].axes = merged_bits(o, merged, l->axes);
                s->uses[i].vary = merged_bits(o, merged, l->vary);
                for (uint32_t p = 0; l->access && p < o->n; p++)
                        s->uses[i].strides[merged[p]] = l->strides[p];
                int r = l->packed ? make_pack(b, o, l, &s->uses[i]) : 0;
                if (r)
                        return r;
        }
        settle_sizes(b->m->g, s);
        return 0;
}

int af_space_merge(struct build *b) {
        struct order o = {0};
        int r = find_order(b, &o);
        if (!r)
                r = place_all(b, &o);
        if (!r && !o.combines && o.n > 1 && b->n_uses)
                r = choose_order(b, &o);
        if (!r && !o.combines && o.n > 1)
                r = place_all(b, &o);
        if (!r)
                r = find_reduced(b, &o);
        if (!r)
                r = settle(b, &o);
        return r ? r : finish(b, &o);
}
