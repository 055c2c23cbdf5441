/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of a group, searchable by node id: groups are small, graphs are not. */
#include <errno.h>
#include <stdlib.h>

#include "compiler/schedule/axes.h"

struct pair {
        uint32_t node, position;
};

static int by_node(const void *a, const void *b) {
        const struct pair *x = a, *y = b;
        return x->node < y->node ? -1 : x->node > y->node;
}

int af_members_init(struct af_members *m, struct af_arena *arena, const struct af_graph *g, const uint32_t *nodes, uint32_t n) {
        struct pair *pairs = af_arena_calloc(arena, n, sizeof(*pairs));
        *m = (struct af_members){.g = g, .nodes = nodes, .n = n};
        m->sorted = af_arena_calloc(arena, n, sizeof(uint32_t));
        m->position = af_arena_calloc(arena, n, sizeof(uint32_t));
        if (!pairs || !m->sorted || !m->position)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++)
                pairs[i] = (struct pair){nodes[i], i};
        qsort(pairs, n, sizeof(*pairs), by_node);
        for (uint32_t i = 0; i < n; i++) {
                m->sorted[i] = pairs[i].node;
                m->position[i] = pairs[i].position;
        }
        return 0;
}

uint32_t af_members_producer(const struct af_members *m, uint32_t value) {
        const struct af_value *v = &m->g->values[value];
        if (v->kind != AF_VALUE_NODE)
                return AF_NONE;
        uint32_t lo = 0, hi = m->n;
        while (lo < hi) {
                uint32_t mid = (lo + hi) / 2;
                if (m->sorted[mid] < v->index)
                        lo = mid + 1;
                else
                        hi = mid;
        }
        return lo < m->n && m->sorted[lo] == v->index ? m->position[lo] : AF_NONE;
}
