/* SPDX-License-Identifier: Apache-2.0 */
/* Axes before merging: a union-find forest whose roots may split into an outer and an inner half. */
#include <errno.h>

#include "compiler/schedule/axes.h"

int af_atoms_new(struct af_atoms *a, int64_t extent, uint32_t *ret_atom) {
        int r = af_arena_grow(a->arena, &a->items, &a->cap, a->n + 1, sizeof(*a->items));
        if (r)
                return r;
        a->items[a->n] = (struct af_atom){.extent = extent, .parent = a->n, .hi = AF_NONE, .lo = AF_NONE};
        *ret_atom = a->n++;
        return 0;
}

uint32_t af_atoms_find(struct af_atoms *a, uint32_t atom) {
        while (a->items[atom].parent != atom) {
                a->items[atom].parent = a->items[a->items[atom].parent].parent;
                atom = a->items[atom].parent;
        }
        return atom;
}

bool af_atoms_leaves(struct af_atoms *a, uint32_t atom, uint32_t *list, uint32_t *n) {
        atom = af_atoms_find(a, atom);
        if (a->items[atom].hi == AF_NONE) {
                if (*n >= AF_ATOMS_MAX)
                        return false;
                list[(*n)++] = atom;
                return true;
        }
        return af_atoms_leaves(a, a->items[atom].hi, list, n) && af_atoms_leaves(a, a->items[atom].lo, list, n);
}

static int split(struct af_atoms *a, uint32_t leaf, int64_t outer, int64_t inner) {
        uint32_t hi, lo;
        int r = af_atoms_new(a, outer, &hi);
        if (!r)
                r = af_atoms_new(a, inner, &lo);
        if (r)
                return r;
        a->items[leaf].hi = hi;
        a->items[leaf].lo = lo;
        return 0;
}

/* Walks two leaf lists from the inside; splits the larger of each pair. */
static int unify_lists(struct af_atoms *a, uint32_t *x, uint32_t nx, uint32_t *y, uint32_t ny) {
        while (nx && ny) {
                uint32_t p = af_atoms_find(a, x[nx - 1]), q = af_atoms_find(a, y[ny - 1]);
                if (p == q) {
                        nx--, ny--;
                        continue;
                }
                if (a->items[p].hi != AF_NONE || a->items[q].hi != AF_NONE)
                        return 1; /* the two lists share an axis that this walk has split */
                int64_t ep = a->items[p].extent, eq = a->items[q].extent;
                if (ep != eq) {
                        int64_t outer;
                        bool first = af_size_divide(a->g, ep, eq, &outer);
                        uint32_t big = first ? p : q;
                        if (!first && !af_size_divide(a->g, eq, ep, &outer))
                                return 1;
                        int r = split(a, big, outer, first ? eq : ep);
                        if (r)
                                return r;
                        a->items[a->items[big].lo].parent = first ? q : p;
                        if (first)
                                x[nx - 1] = a->items[big].hi, ny--;
                        else
                                y[ny - 1] = a->items[big].hi, nx--;
                        continue;
                }
                a->items[p].parent = q;
                nx--, ny--;
        }
        return nx || ny;
}

int af_atoms_unify(struct af_atoms *a, uint32_t x, uint32_t y) {
        uint32_t lx[AF_ATOMS_MAX], ly[AF_ATOMS_MAX], nx = 0, ny = 0;
        x = af_atoms_find(a, x);
        y = af_atoms_find(a, y);
        if (x == y)
                return 0;
        if (!af_atoms_leaves(a, x, lx, &nx) || !af_atoms_leaves(a, y, ly, &ny))
                return 1;
        int r = unify_lists(a, lx, nx, ly, ny);
        if (r)
                return r;
        x = af_atoms_find(a, x);
        y = af_atoms_find(a, y);
        if (x == y)
                return 0;
        if (a->items[x].hi == AF_NONE) /* a leaf gives way to what is split */
                a->items[x].parent = y;
        else
                a->items[y].parent = x;
        return 0;
}

int af_atoms_unify_dims(struct af_atoms *a, const struct af_dims *x, const struct af_dims *y) {
        uint32_t lx[AF_ATOMS_MAX], ly[AF_ATOMS_MAX], nx = 0, ny = 0;
        for (uint32_t i = 0; i < x->rank; i++)
                if (x->atom[i] != AF_NONE && !af_atoms_leaves(a, x->atom[i], lx, &nx))
                        return 1;
        for (uint32_t i = 0; i < y->rank; i++)
                if (y->atom[i] != AF_NONE && !af_atoms_leaves(a, y->atom[i], ly, &ny))
                        return 1;
        return unify_lists(a, lx, nx, ly, ny);
}
