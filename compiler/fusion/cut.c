/* SPDX-License-Identifier: Apache-2.0 */
/* Where a group comes apart most cheaply, for groups that turn out not to fit one kernel. */
#include <errno.h>

#include "compiler/fusion/fusion.h"
#include "compiler/graph/traffic.h"

static uint32_t position_of(const struct af_graph *g, const struct af_group *group, uint32_t value) {
        const struct af_value *v = &g->values[value];
        uint32_t lo = 0, hi = group->n_nodes;
        while (v->kind == AF_VALUE_NODE && lo < hi) {
                uint32_t mid = (lo + hi) / 2;
                if (group->nodes[mid] == v->index)
                        return mid;
                if (group->nodes[mid] < v->index)
                        lo = mid + 1;
                else
                        hi = mid;
        }
        return AF_NONE;
}

int af_fusion_cut(const struct af_graph *g, const struct af_group *group, uint32_t *ret_at) {
        uint32_t n = group->n_nodes;
        int64_t *crossing = af_arena_calloc(g->arena, n + 1, sizeof(*crossing)); /* differences from place to place */
        uint32_t *last = af_arena_calloc(g->arena, n, sizeof(*last));            /* per node: its last reader */
        if (!crossing || !last)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++)
                for (uint32_t k = 0; k < g->nodes[group->nodes[i]].n_in; k++) {
                        uint32_t from = position_of(g, group, g->nodes[group->nodes[i]].in[k]);
                        if (from != AF_NONE)
                                last[from] = i;
                }
        for (uint32_t i = 0; i < n; i++)
                if (last[i] > i)
                        for (uint32_t k = 0; k < g->nodes[group->nodes[i]].n_out; k++) {
                                int64_t bytes = af_value_bytes(g, g->nodes[group->nodes[i]].out[k]);
                                crossing[i + 1] += bytes;
                                crossing[last[i] + 1] -= bytes;
                        }
        uint32_t from = AF_MAX(n / 4, 1u), to = AF_MAX(n - n / 4, from + 1), best = from;
        int64_t at = 0, least = INT64_MAX;
        for (uint32_t i = 1; i < to && i < n; i++) {
                at += crossing[i];
                if (i >= from && at < least) {
                        least = at;
                        best = i;
                }
        }
        *ret_at = best;
        return 0;
}
