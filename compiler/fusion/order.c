/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order that no operand shows: effects one after another, and readers of an input before what takes its memory over. A view makes
 * nothing: what waits is the node that writes the memory which the view shows.
 */
#include <errno.h>
#include <string.h>

#include "compiler/fusion/fuse.h"

static uint32_t writer(const struct fuse *f, uint32_t node) {
        const struct af_graph *g = f->g;
        while (f->alias[node] && g->values[g->nodes[node].in[0]].kind == AF_VALUE_NODE)
                node = g->values[g->nodes[node].in[0]].index;
        return node;
}

/* Counts (list NULL) or writes the live edges from `from` to the writers of `to`; at[from + 1] is where the next one goes. */
static void each_edge(struct fuse *f, const uint32_t *first, const uint32_t *list, bool backwards, uint32_t *at, uint32_t *out) {
        for (uint32_t n = 0; n < f->g->n_nodes; n++) {
                uint32_t to = f->live[n] ? writer(f, n) : AF_NONE;
                for (uint32_t k = first[n]; to != AF_NONE && k < first[n + 1]; k++) {
                        uint32_t from = list[k];
                        if (!f->live[from] || from == to)
                                continue;
                        uint32_t row = backwards ? to : from;
                        if (out)
                                out[at[row + 1]++] = backwards ? from : to;
                        else
                                at[row + 2]++;
                }
        }
}

static int make(struct fuse *f, const uint32_t *first, const uint32_t *list, bool backwards, uint32_t **ret_first, uint32_t **ret_list) {
        uint32_t n = f->g->n_nodes, *at = af_arena_calloc(&f->scratch, (size_t)n + 2, sizeof(*at)), *out;
        if (!at)
                return -ENOMEM;
        each_edge(f, first, list, backwards, at, NULL);
        for (uint32_t i = 0; i < n; i++)
                at[i + 2] += at[i + 1];
        out = af_arena_calloc(&f->scratch, at[n + 1], sizeof(*out));
        if (!out)
                return -ENOMEM;
        each_edge(f, first, list, backwards, at, out);
        *ret_first = at;
        *ret_list = out;
        return 0;
}

int fuse_order_init(struct fuse *f) {
        uint32_t *first, *list;
        int r = af_graph_order_edges(f->g, &first, &list);
        if (!r)
                r = make(f, first, list, true, &f->before_first, &f->before);
        if (!r)
                r = make(f, first, list, false, &f->after_first, &f->after);
        return r > 0 ? -EINVAL : r; /* more edges than the graph was let in with */
}
