/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel's nodes as parts. What can be one part stays one. Else the roots (reductions and outputs) are taken in order, each into the
 * latest part that can hold it, else into a new one behind. Results of reductions that a later part reads lie in the workspace (or in the
 * output that they are); everything else that a part needs, it computes again from what it loads.
 */
#include <errno.h>
#include <string.h>

#include "compiler/schedule/sched.h"

#define MAX_PARTS 16u

struct split {
        struct whole *w;
        uint32_t *part_of; /* per node: part that it is a root of; AF_NONE */
        bool *is_root, *is_output, *needed, *is_held;
        bool *is_read; /* by other parts, as far as is known */
        struct part *parts;
        uint32_t n_parts;
        struct af_region *regions; /* of held values */
        uint32_t n_regions, cap_regions;
        uint32_t *place;      /* per node: of a held value; AF_NONE: it needs none */
        uint32_t *store_part; /* per store of the kernel that no member makes: its part; AF_NONE */
};

static uint32_t output_place(const struct whole *w, uint32_t value) {
        for (uint32_t i = 0; i < w->n_outputs; i++)
                if (w->outputs[i] == value)
                        return w->n_inputs + i;
        return AF_NONE;
}

static uint32_t out_of(const struct split *p, uint32_t position) {
        return p->w->g->nodes[p->w->m.nodes[position]].out[0];
}

/* Everything in one part. */
static struct part one_part(const struct whole *w) {
        return (struct part){.nodes = w->m.nodes,
                             .n_nodes = w->m.n,
                             .stores = w->stores,
                             .n_stores = w->n_stores,
                             .store_place = w->store_place,
                             .behind = AF_NONE};
}

/* Marks what part k needs for its roots and `extra` (AF_NONE); false where that is computed in a later part only. */
static bool mark(struct split *p, uint32_t k, uint32_t extra) {
        const struct af_members *m = &p->w->m;
        for (uint32_t i = 0; i < m->n; i++)
                p->needed[i] = p->part_of[i] == k || i == extra;
        memset(p->is_held, 0, m->n * sizeof(bool));
        for (uint32_t i = m->n; i-- > 0;) {
                const struct af_node *n = &m->g->nodes[m->nodes[i]];
                for (uint32_t j = 0; p->needed[i] && j < n->n_in; j++) {
                        uint32_t from = af_members_producer(m, n->in[j]);
                        if (from == AF_NONE)
                                continue;
                        bool reduces = af_op_info(m->g->nodes[m->nodes[from]].op)->cls == AF_CLASS_REDUCE;
                        if (reduces && p->part_of[from] != AF_NONE && p->part_of[from] > k)
                                return false;
                        if (reduces && p->part_of[from] != AF_NONE && p->part_of[from] < k)
                                p->is_held[from] = true;
                        else
                                p->needed[from] = true;
                }
        }
        return true;
}

/* A place for a root: the output that it is, else a region, where someone may read it there. */
static int place_root(struct split *p, uint32_t i) {
        uint32_t v = out_of(p, i);
        const struct af_graph *g = p->w->g;
        p->place[i] = output_place(p->w, v);
        if (p->place[i] != AF_NONE || !p->is_read[i])
                return 0;
        int r = af_arena_grow(p->w->arena, &p->regions, &p->cap_regions, p->n_regions + 1, sizeof(*p->regions));
        if (r)
                return r;
        int64_t dims[AF_LIMIT_RANK], elements = 1;
        bool fits = true;
        af_size_dims(g, v, dims);
        for (uint32_t d = 0; d < g->values[v].rank; d++)
                fits = fits && af_size_mul(g, elements, dims[d], &elements);
        fits = fits && sched_set_region(g, &p->regions[p->n_regions], g->values[v].dtype, elements,
                                        p->n_regions ? &p->regions[p->n_regions - 1] : NULL);
        p->place[i] = PLACE_REGION | p->n_regions++;
        if (!fits)
                *p->w->why = "sizes beyond 64 bits";
        return fits ? 0 : AF_SCHEDULE_E_UNFIT;
}

/* Part k with its marks as lists. */
static int make_part(struct split *p, uint32_t k, uint32_t extra, uint32_t extra_store, struct part *ret) {
        const struct af_members *m = &p->w->m;
        struct af_arena *arena = p->w->arena;
        uint32_t most = m->n + p->w->n_stores;
        uint32_t *nodes = af_arena_calloc(arena, m->n, sizeof(*nodes)), *places = af_arena_calloc(arena, most, sizeof(*places));
        struct af_store *stores = af_arena_calloc(arena, most, sizeof(*stores));
        struct held *held = af_arena_calloc(arena, m->n, sizeof(*held));
        *ret = (struct part){.nodes = nodes, .stores = stores, .store_place = places, .held = held, .behind = AF_NONE};
        if (!nodes || !stores || !places || !held)
                return -ENOMEM;
        for (uint32_t i = 0; i < m->n; i++) {
                if (p->needed[i])
                        nodes[ret->n_nodes++] = m->nodes[i];
                if ((p->part_of[i] == k || i == extra) && p->place[i] != AF_NONE && p->place[i] & PLACE_REGION) {
                        places[ret->n_stores] = p->place[i];
                        stores[ret->n_stores++] = (struct af_store){.value = out_of(p, i), .output = AF_NONE, .into = AF_NONE};
                }
                if (!p->is_held[i])
                        continue;
                held[ret->n_held++] = (struct held){out_of(p, i), p->place[i]};
                ret->behind = ret->behind == AF_NONE ? p->part_of[i] : AF_MAX(ret->behind, p->part_of[i]);
        }
        for (uint32_t i = 0; i < p->w->n_stores; i++) {
                uint32_t root = af_members_producer(m, p->w->stores[i].value);
                if (root == AF_NONE ? p->store_part[i] != k && i != extra_store : p->part_of[root] != k && root != extra)
                        continue;
                places[ret->n_stores] = p->w->store_place[i];
                stores[ret->n_stores++] = p->w->stores[i];
        }
        return 0;
}

/* Whether root i, or a store that is only copied, can be in part k as well. */
static int try_root(struct split *p, uint32_t k, uint32_t i, uint32_t store) {
        struct part part;
        if (!mark(p, k, i))
                return AF_SCHEDULE_E_UNFIT;
        int r = make_part(p, k, i, store, &part);
        if (!r)
                r = sched_open_part(p->w, &part, p->regions, p->n_regions);
        return r ? r : sched_part_check(p->w->s);
}

/* Root i, or where that is AF_NONE a store. */
static int assign(struct split *p, uint32_t i, uint32_t store) {
        uint32_t *part = i == AF_NONE ? &p->store_part[store] : &p->part_of[i];
        int r = i == AF_NONE ? 0 : place_root(p, i);
        if (r)
                return r;
        for (uint32_t k = p->n_parts; k-- > 0;) {
                r = try_root(p, k, i, store);
                if (!r)
                        *part = k;
                if (r <= 0)
                        return r;
        }
        if (p->n_parts == MAX_PARTS) {
                *p->w->why = "too many parts in one kernel";
                return AF_SCHEDULE_E_UNFIT;
        }
        r = try_root(p, p->n_parts, i, store);
        if (!r)
                *part = p->n_parts++;
        return r;
}

/* An input that is updated in place is read by the part that updates it, and by no other. */
static int check_in_place(struct split *p) {
        const struct af_graph *g = p->w->g;
        for (uint32_t o = 0; o < g->n_outputs && !g->not_in_place; o++) {
                uint32_t from = g->outputs[o].alias_of == AF_NONE ? AF_NONE : af_members_producer(&p->w->m, g->outputs[o].value);
                if (from == AF_NONE || output_place(p->w, g->outputs[o].value) == AF_NONE)
                        continue;
                for (uint32_t k = 0; k < p->n_parts; k++) {
                        for (uint32_t i = 0; k != p->part_of[from] && i < p->parts[k].n_nodes; i++) {
                                const struct af_node *n = &g->nodes[p->parts[k].nodes[i]];
                                for (uint32_t j = 0; j < n->n_in; j++) {
                                        const struct af_value *v = &g->values[n->in[j]];
                                        if (v->kind != AF_VALUE_INPUT ||
                                            g->inputs[v->index].buffer != g->inputs[g->outputs[o].alias_of].buffer)
                                                continue;
                                        *p->w->why = "an input that is updated in place is read by other parts too";
                                        return AF_SCHEDULE_E_UNFIT;
                                }
                        }
                }
        }
        return 0;
}

/* Roots that no later part reads and that are no outputs need no memory: places anew for the others. */
static int settle(struct split *p) {
        const struct af_members *m = &p->w->m;
        memset(p->is_read, 0, m->n * sizeof(bool));
        for (uint32_t k = 0; k < p->n_parts; k++) {
                mark(p, k, AF_NONE);
                for (uint32_t i = 0; i < m->n; i++)
                        p->is_read[i] |= p->is_held[i];
        }
        p->n_regions = 0;
        for (uint32_t i = 0; i < m->n; i++) {
                if (p->part_of[i] == AF_NONE)
                        continue;
                if (!p->is_read[i] && !p->is_output[i])
                        p->part_of[i] = AF_NONE; /* someone in its part reads it, and makes it a member */
                int r = p->part_of[i] == AF_NONE ? 0 : place_root(p, i);
                if (r)
                        return r;
        }
        for (uint32_t k = 0; k < p->n_parts; k++) {
                mark(p, k, AF_NONE);
                int r = make_part(p, k, AF_NONE, AF_NONE, &p->parts[k]);
                if (r)
                        return r;
        }
        return check_in_place(p);
}

static int split_init(struct split *p) {
        const struct af_members *m = &p->w->m;
        struct af_arena *arena = p->w->arena;
        p->part_of = af_arena_calloc(arena, m->n, sizeof(uint32_t));
        p->place = af_arena_calloc(arena, m->n, sizeof(uint32_t));
        p->is_root = af_arena_calloc(arena, m->n, sizeof(bool));
        p->is_output = af_arena_calloc(arena, m->n, sizeof(bool));
        p->needed = af_arena_calloc(arena, m->n, sizeof(bool));
        p->is_held = af_arena_calloc(arena, m->n, sizeof(bool));
        p->is_read = af_arena_calloc(arena, m->n, sizeof(bool));
        p->store_part = af_arena_calloc(arena, p->w->n_stores, sizeof(uint32_t));
        p->parts = af_arena_calloc(arena, MAX_PARTS, sizeof(*p->parts));
        if (!p->part_of || !p->place || !p->is_root || !p->is_output || !p->needed || !p->is_held || !p->is_read || !p->store_part ||
            !p->parts)
                return -ENOMEM;
        memset(p->part_of, 0xff, m->n * sizeof(uint32_t));
        for (uint32_t i = 0; i < m->n; i++)
                p->is_root[i] = p->is_read[i] = af_op_info(m->g->nodes[m->nodes[i]].op)->cls == AF_CLASS_REDUCE;
        memset(p->store_part, 0xff, p->w->n_stores * sizeof(uint32_t));
        for (uint32_t i = 0; i < p->w->n_stores; i++) {
                uint32_t from = af_members_producer(m, p->w->stores[i].value);
                if (from != AF_NONE)
                        p->is_root[from] = p->is_output[from] = true;
        }
        return 0;
}

static int greedy(struct split *p) {
        uint32_t n_roots = 0;
        int r = split_init(p);
        for (uint32_t i = 0; !r && i < p->w->m.n; i++)
                n_roots += p->is_root[i];
        for (uint32_t i = 0; !r && i < p->w->n_stores; i++)
                n_roots += af_members_producer(&p->w->m, p->w->stores[i].value) == AF_NONE;
        if (!r && n_roots < 2)
                return AF_SCHEDULE_E_UNFIT; /* *why is that of the one part */
        for (uint32_t i = 0; !r && i < p->w->m.n; i++)
                r = p->is_root[i] ? assign(p, i, AF_NONE) : 0;
        for (uint32_t i = 0; !r && i < p->w->n_stores; i++)
                r = af_members_producer(&p->w->m, p->w->stores[i].value) == AF_NONE ? assign(p, AF_NONE, i) : 0;
        return r ? r : settle(p);
}

int sched_split(struct whole *w, struct part **ret_parts, uint32_t *ret_n, struct af_region **ret_regions, uint32_t *ret_n_regions) {
        struct split p = {.w = w};
        struct part *one = af_arena_calloc(w->arena, 1, sizeof(*one));
        if (!one)
                return -ENOMEM;
        *one = one_part(w);
        int r = sched_open_part(w, one, NULL, 0);
        if (!r)
                r = sched_part_check(w->s);
        *ret_parts = one;
        *ret_n = 1;
        *ret_regions = NULL;
        *ret_n_regions = 0;
        if (r != AF_SCHEDULE_E_UNFIT)
                return r;
        r = greedy(&p);
        *ret_parts = p.parts;
        *ret_n = p.n_parts;
        *ret_regions = p.regions;
        *ret_n_regions = p.n_regions;
        return r;
}
