/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/layout.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ORDER_SWEEPS    24
#define PLACE_SWEEPS    24
#define COUNT_MAX       3000 /* segments between two ranks up to which crossings are counted */
#define INVISIBLE_WIDTH 6.0

struct vnode {          /* a node, or an edge passing through a rank */
        double w, h, x; /* x: left side */
        double key;
        uint32_t rank, order;
        uint32_t edge; /* passing edge, or AF_NONE */
};
struct segment {       /* between neighbouring ranks */
        uint32_t a, b; /* upper, lower */
        double adx, bdx;
};
struct work {
        struct af_layout *l;
        struct vnode *v;
        struct segment *s;
        uint32_t n_v, n_s, n_ranks;
        uint32_t *layer_first, *layer; /* vnodes by rank, in order */
        uint32_t *up_first, *up;       /* segments that end at a vnode */
        uint32_t *down_first, *down;   /* that start there */
        uint32_t *best;
};

/* ---- ranks ---- */

static void longest_path(struct af_layout *l) {
        bool again = true;
        /* Edges mostly run forwards in the nodes' order, so few rounds are needed. */
        while (again) {
                again = false;
                for (uint32_t i = 0; i < l->n_edges; i++) {
                        const struct af_layout_edge *e = &l->edges[i];
                        if (l->nodes[e->to].rank < l->nodes[e->from].rank + 1) {
                                l->nodes[e->to].rank = l->nodes[e->from].rank + 1;
                                again = true;
                        }
                }
        }
}

/* Sources move down to their first reader; ports to their side. */
static int assign_ranks(struct af_layout *l, uint32_t *ret_n) {
        uint32_t last = 0, *first_use = af_arena_calloc(l->arena, l->n_nodes, sizeof(*first_use));
        bool *has_in = af_arena_calloc(l->arena, l->n_nodes, sizeof(*has_in));
        if (!first_use || !has_in)
                return -ENOMEM;
        for (uint32_t i = 0; i < l->n_nodes; i++) {
                first_use[i] = AF_NONE;
                l->nodes[i].rank = 0;
        }
        longest_path(l);
        for (uint32_t i = 0; i < l->n_edges; i++) {
                const struct af_layout_edge *e = &l->edges[i];
                has_in[e->to] = true;
                first_use[e->from] = AF_MIN(first_use[e->from], l->nodes[e->to].rank);
        }
        for (uint32_t i = 0; i < l->n_nodes; i++) {
                if (!has_in[i] && first_use[i] != AF_NONE && l->nodes[i].place == AF_LAYOUT_ANY)
                        l->nodes[i].rank = first_use[i] - 1;
                last = AF_MAX(last, l->nodes[i].rank);
        }
        for (uint32_t i = 0; i < l->n_nodes; i++) {
                if (l->nodes[i].place == AF_LAYOUT_BOTTOM)
                        l->nodes[i].rank = last;
                else if (l->nodes[i].place == AF_LAYOUT_TOP)
                        l->nodes[i].rank = 0;
        }
        *ret_n = last + 1;
        return 0;
}

/* ---- invisible nodes and segments ---- */

static void add_chain(struct work *w, uint32_t edge) {
        const struct af_layout_edge *e = &w->l->edges[edge];
        uint32_t at = e->from;
        double adx = e->from_dx;
        for (uint32_t r = w->l->nodes[e->from].rank + 1; r < w->l->nodes[e->to].rank; r++) {
                w->v[w->n_v] = (struct vnode){.w = INVISIBLE_WIDTH, .rank = r, .edge = edge};
                w->s[w->n_s++] = (struct segment){at, w->n_v, adx, INVISIBLE_WIDTH / 2};
                at = w->n_v++;
                adx = INVISIBLE_WIDTH / 2;
        }
        w->s[w->n_s++] = (struct segment){at, e->to, adx, e->to_dx};
}

/* CSR of segments by one end. */
static int index_segments(struct work *w, bool upper, uint32_t **ret_first, uint32_t **ret_list) {
        uint32_t *first = af_arena_calloc(w->l->arena, w->n_v + 2, sizeof(*first)),
                 *list = af_arena_calloc(w->l->arena, w->n_s, sizeof(*list));
        if (!first || !list)
                return -ENOMEM;
        for (uint32_t i = 0; i < w->n_s; i++)
                first[(upper ? w->s[i].a : w->s[i].b) + 2]++;
        for (uint32_t i = 0; i < w->n_v; i++)
                first[i + 2] += first[i + 1];
        for (uint32_t i = 0; i < w->n_s; i++)
                list[first[(upper ? w->s[i].a : w->s[i].b) + 1]++] = i;
        *ret_first = first;
        *ret_list = list;
        return 0;
}

static void renumber(struct work *w, uint32_t rank) {
        for (uint32_t i = w->layer_first[rank]; i < w->layer_first[rank + 1]; i++)
                w->v[w->layer[i]].order = i - w->layer_first[rank];
}

static int build_layers(struct work *w) {
        w->layer_first = af_arena_calloc(w->l->arena, w->n_ranks + 2, sizeof(*w->layer_first));
        w->layer = af_arena_calloc(w->l->arena, w->n_v, sizeof(*w->layer));
        w->best = af_arena_calloc(w->l->arena, w->n_v, sizeof(*w->best));
        if (!w->layer_first || !w->layer || !w->best)
                return -ENOMEM;
        for (uint32_t i = 0; i < w->n_v; i++)
                w->layer_first[w->v[i].rank + 2]++;
        for (uint32_t r = 0; r < w->n_ranks; r++)
                w->layer_first[r + 2] += w->layer_first[r + 1];
        for (uint32_t i = 0; i < w->n_v; i++)
                w->layer[w->layer_first[w->v[i].rank + 1]++] = i;
        for (uint32_t r = 0; r < w->n_ranks; r++)
                renumber(w, r);
        return 0;
}

static int build(struct work *w) {
        const struct af_layout *l = w->l;
        uint32_t n_v = l->n_nodes, n_s = 0;
        for (uint32_t i = 0; i < l->n_edges; i++) {
                uint32_t span = l->nodes[l->edges[i].to].rank - l->nodes[l->edges[i].from].rank;
                n_v += span - 1;
                n_s += span;
        }
        w->v = af_arena_calloc(l->arena, n_v, sizeof(*w->v));
        w->s = af_arena_calloc(l->arena, n_s, sizeof(*w->s));
        if (!w->v || !w->s)
                return -ENOMEM;
        for (uint32_t i = 0; i < l->n_nodes; i++)
                w->v[i] = (struct vnode){.w = l->nodes[i].w, .h = l->nodes[i].h, .rank = l->nodes[i].rank, .edge = AF_NONE};
        w->n_v = l->n_nodes;
        for (uint32_t i = 0; i < l->n_edges; i++)
                add_chain(w, i);
        int r = index_segments(w, true, &w->down_first, &w->down);
        if (r == 0)
                r = index_segments(w, false, &w->up_first, &w->up);
        return r ? r : build_layers(w);
}

/* ---- order within ranks ---- */

static double end_key(const struct work *w, uint32_t v, double dx) {
        return w->v[v].order + dx / (w->v[v].w + 1);
}

/* Insertion sort by key: stable, and the ranks are nearly sorted after the first sweeps. */
static void sort_layer(struct work *w, uint32_t rank) {
        uint32_t first = w->layer_first[rank], end = w->layer_first[rank + 1];
        for (uint32_t i = first + 1; i < end; i++) {
                uint32_t v = w->layer[i], j = i;
                for (; j > first && w->v[w->layer[j - 1]].key > w->v[v].key; j--)
                        w->layer[j] = w->layer[j - 1];
                w->layer[j] = v;
        }
        renumber(w, rank);
}

static void order_layer(struct work *w, uint32_t rank, bool from_above) {
        for (uint32_t i = w->layer_first[rank]; i < w->layer_first[rank + 1]; i++) {
                uint32_t v = w->layer[i], n = 0;
                double sum = 0;
                const uint32_t *first = from_above ? w->up_first : w->down_first, *list = from_above ? w->up : w->down;
                for (uint32_t j = first[v]; j < first[v + 1]; j++, n++) {
                        const struct segment *s = &w->s[list[j]];
                        sum += from_above ? end_key(w, s->a, s->adx) : end_key(w, s->b, s->bdx);
                }
                w->v[v].key = n ? sum / n : w->v[v].order;
        }
        sort_layer(w, rank);
}

static uint64_t count_crossings(const struct work *w) {
        uint64_t n = 0;
        for (uint32_t r = 0; r + 1 < w->n_ranks; r++) {
                uint32_t first = w->layer_first[r], end = w->layer_first[r + 1], seen[COUNT_MAX], n_seen = 0;
                for (uint32_t i = first; i < end; i++)
                        for (uint32_t j = w->down_first[w->layer[i]]; j < w->down_first[w->layer[i] + 1] && n_seen < COUNT_MAX; j++)
                                seen[n_seen++] = w->down[j];
                for (uint32_t i = 0; i < n_seen; i++)
                        for (uint32_t j = i + 1; j < n_seen; j++) {
                                const struct segment *p = &w->s[seen[i]], *q = &w->s[seen[j]];
                                double above = end_key(w, p->a, p->adx) - end_key(w, q->a, q->adx),
                                       below = end_key(w, p->b, p->bdx) - end_key(w, q->b, q->bdx);
                                n += above * below < 0;
                        }
        }
        return n;
}

static void order_all(struct work *w) {
        uint64_t best = count_crossings(w);
        memcpy(w->best, w->layer, w->n_v * sizeof(*w->best));
        for (int sweep = 0; sweep < ORDER_SWEEPS && best > 0; sweep++) {
                for (uint32_t i = 1; i < w->n_ranks; i++)
                        order_layer(w, sweep % 2 ? w->n_ranks - 1 - i : i, sweep % 2 == 0);
                uint64_t n = count_crossings(w);
                if (n < best) {
                        best = n;
                        memcpy(w->best, w->layer, w->n_v * sizeof(*w->best));
                }
        }
        memcpy(w->layer, w->best, w->n_v * sizeof(*w->best));
        for (uint32_t r = 0; r < w->n_ranks; r++)
                renumber(w, r);
}

/* ---- positions ---- */

/* Where v would like its left side to be: the mean over its segments. False: it does not care. */
static bool wish(const struct work *w, uint32_t v, bool above, bool below, double *ret_x, double *ret_weight) {
        double sum = 0, weight = 0;
        for (uint32_t j = w->up_first[v]; above && j < w->up_first[v + 1]; j++) {
                const struct segment *s = &w->s[w->up[j]];
                double k = w->v[s->a].edge != AF_NONE || w->v[v].edge != AF_NONE ? 2 : 1;
                sum += k * (w->v[s->a].x + s->adx - s->bdx);
                weight += k;
        }
        for (uint32_t j = w->down_first[v]; below && j < w->down_first[v + 1]; j++) {
                const struct segment *s = &w->s[w->down[j]];
                double k = w->v[s->b].edge != AF_NONE || w->v[v].edge != AF_NONE ? 2 : 1;
                sum += k * (w->v[s->b].x + s->bdx - s->adx);
                weight += k;
        }
        *ret_x = weight > 0 ? sum / weight : w->v[v].x;
        *ret_weight = weight > 0 ? weight : 0.05;
        return weight > 0;
}

struct pool {
        double sum, weight;
        uint32_t n;
};

/* Least squares to the wishes, the order and the gaps kept: pool adjacent violators. */
static void place_layer(struct work *w, uint32_t rank, bool above, bool below, struct pool *pools) {
        uint32_t first = w->layer_first[rank], end = w->layer_first[rank + 1], n = 0;
        double shift = 0;
        for (uint32_t i = first; i < end; i++) {
                uint32_t v = w->layer[i];
                double x, weight;
                wish(w, v, above, below, &x, &weight);
                pools[n++] = (struct pool){(x - shift) * weight, weight, 1};
                while (n > 1 && pools[n - 2].sum / pools[n - 2].weight > pools[n - 1].sum / pools[n - 1].weight) {
                        pools[n - 2].sum += pools[n - 1].sum;
                        pools[n - 2].weight += pools[n - 1].weight;
                        pools[n - 2].n += pools[n - 1].n;
                        n--;
                }
                shift += w->v[v].w + w->l->gap_x;
        }
        shift = 0;
        for (uint32_t p = 0, i = first; p < n; p++)
                for (uint32_t k = 0; k < pools[p].n; k++, i++) {
                        w->v[w->layer[i]].x = pools[p].sum / pools[p].weight + shift;
                        shift += w->v[w->layer[i]].w + w->l->gap_x;
                }
}

static int place_all(struct work *w) {
        struct pool *pools = af_arena_calloc(w->l->arena, w->n_v, sizeof(*pools));
        if (!pools)
                return -ENOMEM;
        for (uint32_t r = 0; r < w->n_ranks; r++) {
                double x = 0;
                for (uint32_t i = w->layer_first[r]; i < w->layer_first[r + 1]; i++) {
                        w->v[w->layer[i]].x = x;
                        x += w->v[w->layer[i]].w + w->l->gap_x;
                }
                for (uint32_t i = w->layer_first[r]; i < w->layer_first[r + 1]; i++)
                        w->v[w->layer[i]].x -= x / 2;
        }
        for (int sweep = 0; sweep < PLACE_SWEEPS; sweep++) {
                bool both = sweep >= PLACE_SWEEPS / 2;
                for (uint32_t i = 0; i < w->n_ranks; i++)
                        place_layer(w, sweep % 2 ? w->n_ranks - 1 - i : i, both || sweep % 2 == 0, both || sweep % 2 == 1, pools);
        }
        return 0;
}

static void put_point(struct af_layout_edge *e, double x, double y) {
        e->points[2 * e->n_points] = x;
        e->points[2 * e->n_points++ + 1] = y;
}

/* Between ranks edges bend, inside a rank they are vertical, so that none crosses a neighbour that is taller than its own ends. */
static int write_edges(struct work *w, const double *top, const double *height) {
        struct af_layout *l = w->l;
        for (uint32_t i = 0, s = 0; i < l->n_edges; i++) {
                struct af_layout_edge *e = &l->edges[i];
                const struct af_layout_node *from = &l->nodes[e->from], *to = &l->nodes[e->to];
                uint32_t span = to->rank - from->rank;
                e->points = af_arena_calloc(l->arena, 4 * (size_t)span + 4, sizeof(*e->points));
                if (!e->points)
                        return -ENOMEM;
                put_point(e, from->x + e->from_dx, from->y + from->h);
                put_point(e, from->x + e->from_dx, top[from->rank] + height[from->rank]);
                for (uint32_t k = 1; k < span; k++, s++) {
                        const struct vnode *v = &w->v[w->s[s].b];
                        put_point(e, v->x + INVISIBLE_WIDTH / 2, top[v->rank]);
                        put_point(e, v->x + INVISIBLE_WIDTH / 2, top[v->rank] + height[v->rank]);
                }
                s++;
                put_point(e, to->x + e->to_dx, top[to->rank]);
                put_point(e, to->x + e->to_dx, to->y);
        }
        return 0;
}

static int finish(struct work *w) {
        struct af_layout *l = w->l;
        double *top = af_arena_calloc(l->arena, w->n_ranks, sizeof(*top)), *height = af_arena_calloc(l->arena, w->n_ranks, sizeof(*height));
        double left = INFINITY, right = -INFINITY, y = 0;
        if (!top || !height)
                return -ENOMEM;
        for (uint32_t i = 0; i < w->n_v; i++) {
                height[w->v[i].rank] = fmax(height[w->v[i].rank], w->v[i].h);
                left = fmin(left, w->v[i].x);
                right = fmax(right, w->v[i].x + w->v[i].w);
        }
        for (uint32_t r = 0; r < w->n_ranks; r++) {
                top[r] = y;
                y += height[r] + (r + 1 < w->n_ranks ? l->gap_y : 0);
        }
        for (uint32_t i = 0; i < w->n_v; i++)
                w->v[i].x -= left;
        for (uint32_t i = 0; i < l->n_nodes; i++) {
                l->nodes[i].x = w->v[i].x;
                l->nodes[i].y = top[l->nodes[i].rank] + (height[l->nodes[i].rank] - l->nodes[i].h) / 2;
        }
        l->width = w->n_v ? right - left : 0;
        l->height = y;
        return write_edges(w, top, height);
}

int af_layout_run(struct af_layout *l) {
        struct work w = {.l = l};
        int r = assign_ranks(l, &w.n_ranks);
        if (r == 0)
                r = build(&w);
        if (r != 0)
                return r;
        order_all(&w);
        r = place_all(&w);
        return r ? r : finish(&w);
}
