/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order: groups and framework nodes as steps, in an order that can run: data dependencies, then effects in their own order. Among ready
 * steps the one with the smallest first node comes first, so that the order is a function of the graph alone.
 */
#include <errno.h>
#include <string.h>

#include "compiler/driver/job.h"

struct order {
        uint32_t *n_wait;                /* per unit: unmet dependencies */
        uint32_t *first, *edges;         /* CSR: units that wait for this one */
        uint32_t *before_first, *before; /* af_graph_order_edges */
        uint32_t *heap, n_heap;
};

static int make_units(struct af_job *job) {
        const struct af_graph *g = &job->graph;
        const struct af_fusion *f = &job->fusion;
        job->units = af_arena_calloc(job->arena, g->n_nodes, sizeof(*job->units));
        job->unit_of_node = af_arena_calloc(job->arena, g->n_nodes, sizeof(uint32_t));
        uint32_t *unit_of_group = af_arena_calloc(job->arena, f->n_groups, sizeof(uint32_t));
        if (!job->units || !job->unit_of_node || !unit_of_group)
                return -ENOMEM;
        if (f->n_groups)
                memset(unit_of_group, 0xff, f->n_groups * sizeof(uint32_t));
        for (uint32_t n = 0; n < g->n_nodes; n++) { /* unit numbers rise with their first node */
                uint32_t group = f->group_of[n];
                job->unit_of_node[n] = AF_NONE;
                if (group == AF_NONE && !f->fallback[n])
                        continue; /* a view: its users wait for what it views */
                if (group == AF_NONE) {
                        job->unit_of_node[n] = job->n_units;
                        job->units[job->n_units++] = (struct af_unit){.group = AF_NONE, .node = n};
                } else {
                        if (unit_of_group[group] == AF_NONE) {
                                unit_of_group[group] = job->n_units;
                                job->units[job->n_units++] = (struct af_unit){.group = group, .node = AF_NONE};
                        }
                        job->unit_of_node[n] = unit_of_group[group];
                }
        }
        return 0;
}

/* The unit that makes v, seen through views; AF_NONE for inputs and constants. */
static uint32_t maker(const struct af_job *job, uint32_t v, const uint32_t *through) {
        const struct af_value *value = &job->graph.values[v];
        return value->kind == AF_VALUE_NODE ? through[value->index] : AF_NONE;
}

/* Calls visit for each dependency edge (from, to). */
static void each_edge(const struct af_job *job, const uint32_t *through, void (*visit)(struct order *, uint32_t, uint32_t),
                      struct order *o) {
        const struct af_graph *g = &job->graph;
        for (uint32_t n = 0; n < g->n_nodes; n++) {
                uint32_t to = job->unit_of_node[n];
                if (to == AF_NONE)
                        continue;
                for (uint32_t i = 0; i < g->nodes[n].n_in; i++) {
                        uint32_t from = maker(job, g->nodes[n].in[i], through);
                        if (from != AF_NONE && from != to)
                                visit(o, from, to);
                }
        }
        /* effects, and readers of an input before what takes its memory over */
        for (uint32_t n = 0; n < g->n_nodes; n++)
                for (uint32_t k = o->before_first[n]; k < o->before_first[n + 1]; k++) {
                        uint32_t from = job->unit_of_node[o->before[k]], to = through[n];
                        if (from != AF_NONE && to != AF_NONE && from != to)
                                visit(o, from, to);
                }
}

static void count_edge(struct order *o, uint32_t from, uint32_t to) {
        o->n_wait[to]++;
        o->first[from + 1]++;
}
static void put_edge(struct order *o, uint32_t from, uint32_t to) {
        o->edges[o->first[from]++] = to;
}

static void heap_push(struct order *o, uint32_t unit) {
        uint32_t i = o->n_heap++;
        for (; i > 0 && o->heap[(i - 1) / 2] > unit; i = (i - 1) / 2)
                o->heap[i] = o->heap[(i - 1) / 2];
        o->heap[i] = unit;
}
static uint32_t heap_pop(struct order *o) {
        uint32_t top = o->heap[0], last = o->heap[--o->n_heap], i = 0;
        for (;;) {
                uint32_t child = 2 * i + 1;
                if (child >= o->n_heap)
                        break;
                if (child + 1 < o->n_heap && o->heap[child + 1] < o->heap[child])
                        child++;
                if (o->heap[child] >= last)
                        break;
                o->heap[i] = o->heap[child];
                i = child;
        }
        o->heap[i] = last;
        return top;
}

static int sort_units(struct af_job *job, struct order *o) {
        uint32_t n = job->n_units, n_done = 0;
        struct af_unit *sorted = af_arena_calloc(job->arena, n, sizeof(*sorted));
        uint32_t *number = af_arena_calloc(job->arena, n, sizeof(*number));
        o->heap = af_arena_calloc(job->arena, n, sizeof(uint32_t));
        if (!sorted || !number || !o->heap)
                return -ENOMEM;
        for (uint32_t u = 0; u < n; u++)
                if (!o->n_wait[u])
                        heap_push(o, u);
        while (o->n_heap) {
                uint32_t u = heap_pop(o);
                number[u] = n_done;
                sorted[n_done++] = job->units[u];
                for (uint32_t e = u ? o->first[u - 1] : 0; e < o->first[u]; e++)
                        if (--o->n_wait[o->edges[e]] == 0)
                                heap_push(o, o->edges[e]);
        }
        if (n_done != n) {
                af_diag_error(job->diags, "fusion", "groups depend on each other in a cycle");
                return -ELOOP; /* fusion broke its promise */
        }
        job->units = sorted;
        for (uint32_t i = 0; i < job->graph.n_nodes; i++)
                if (job->unit_of_node[i] != AF_NONE)
                        job->unit_of_node[i] = number[job->unit_of_node[i]];
        return 0;
}

int af_pass_order(struct af_job *job) {
        const struct af_graph *g = &job->graph;
        int r = make_units(job);
        if (r)
                return r;
        struct order o = {.n_wait = af_arena_calloc(job->arena, job->n_units, sizeof(uint32_t)),
                          .first = af_arena_calloc(job->arena, job->n_units + 2, sizeof(uint32_t))};
        uint32_t *through = af_arena_calloc(job->arena, g->n_nodes, sizeof(uint32_t));
        if (!o.n_wait || !o.first || !through)
                return -ENOMEM;
        r = af_graph_order_edges(g, &o.before_first, &o.before);
        if (r)
                return r < 0 ? r : AF_DRIVER_E_INVALID;
        for (uint32_t n = 0; n < g->n_nodes; n++) {
                through[n] = job->unit_of_node[n];
                if (through[n] == AF_NONE && g->nodes[n].n_in)
                        through[n] = maker(job, g->nodes[n].in[0], through);
        }
        each_edge(job, through, count_edge, &o);
        for (uint32_t u = 0; u < job->n_units; u++)
                o.first[u + 1] += o.first[u];
        o.edges = af_arena_calloc(job->arena, o.first[job->n_units], sizeof(uint32_t));
        if (!o.edges)
                return -ENOMEM;
        each_edge(job, through, put_edge, &o); /* moves first[u] to the end of u's edges */
        return sort_units(job, &o);
}
