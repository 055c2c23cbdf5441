/* SPDX-License-Identifier: Apache-2.0 */
/* The cheap question of fusion: would this set of nodes make one kernel? Everything but the search for tiles, in memory of its own. */
#include <errno.h>
#include <string.h>

#include "compiler/graph/traffic.h"
#include "compiler/schedule/sched.h"

struct ends {
        uint32_t *inputs, *stores, n_inputs, n_stores;
};

static bool has(const uint32_t *list, uint32_t n, uint32_t v) {
        for (uint32_t i = 0; i < n; i++)
                if (list[i] == v)
                        return true;
        return false;
}

/* Inputs: what no member makes. Stores: what no member reads, and broadcasts: who reads them outside is not known here. */
static int find_ends(const struct af_members *m, struct af_arena *arena, struct ends *e) {
        uint32_t n_in = 0;
        bool *read = af_arena_calloc(arena, m->n, sizeof(*read));
        for (uint32_t i = 0; i < m->n; i++)
                n_in += m->g->nodes[m->nodes[i]].n_in;
        e->inputs = af_arena_calloc(arena, n_in, sizeof(uint32_t));
        e->stores = af_arena_calloc(arena, m->n, sizeof(uint32_t));
        if (!read || !e->inputs || !e->stores)
                return -ENOMEM;
        for (uint32_t i = 0; i < m->n; i++) {
                const struct af_node *n = &m->g->nodes[m->nodes[i]];
                for (uint32_t k = 0; k < n->n_in; k++) {
                        uint32_t p = af_members_producer(m, n->in[k]);
                        uint64_t bits;
                        if (p != AF_NONE)
                                read[p] = true;
                        else if (e->n_inputs < AF_KERNEL_MAX_ARGS && !af_value_scalar(m->g, n->in[k], &bits) &&
                                 !has(e->inputs, e->n_inputs, n->in[k]))
                                e->inputs[e->n_inputs++] = n->in[k];
                }
        }
        for (uint32_t i = 0; i < m->n; i++)
                if (!read[i] || af_op_info(m->g->nodes[m->nodes[i]].op)->cls == AF_CLASS_BROADCAST)
                        e->stores[e->n_stores++] = m->g->nodes[m->nodes[i]].out[0];
        return 0;
}

/* Each part loads what it needs by itself, and stores its roots. */
static int64_t parts_bytes(const struct whole *w, const struct part *parts, uint32_t n) {
        int64_t bytes = 0;
        for (uint32_t i = 0; i < n; i++) {
                bytes += af_traffic(w->g, parts[i].nodes, parts[i].n_nodes, NULL, 0);
                for (uint32_t k = 0; k < parts[i].n_stores; k++)
                        bytes += af_value_bytes(w->g, parts[i].stores[k].value);
        }
        return bytes;
}

static uint32_t count_meetings(const struct part *parts, uint32_t n) {
        uint32_t met = 0, meetings = 0; /* what the parts below it wrote can be read */
        for (uint32_t i = 0; i < n; i++)
                if (parts[i].behind != AF_NONE && parts[i].behind >= met) {
                        met = i;
                        meetings++;
                }
        return meetings;
}

static int ask(struct whole *w, const struct af_fuse_question *q, struct ends *e, struct af_fuse_answer *ret) {
        struct part *parts;
        struct af_region *regions;
        uint32_t n_parts, n_regions;
        struct af_members m;
        int r = af_members_init(&m, w->arena, w->g, q->nodes, q->n_nodes);
        if (!r)
                r = find_ends(&m, w->arena, e);
        const uint32_t *stored = q->stored ? q->stored : e->stores;
        uint32_t n_stored = q->stored ? q->n_stored : e->n_stores;
        if (!r)
                r = sched_whole_init(w, q->nodes, q->n_nodes, e->inputs, e->n_inputs, stored, n_stored);
        if (!r)
                r = sched_split(w, &parts, &n_parts, &regions, &n_regions);
        if (w->s)
                af_arena_deinit(&w->s->scratch);
        if (!r) {
                ret->bytes = parts_bytes(w, parts, n_parts);
                ret->meetings = count_meetings(parts, n_parts);
        }
        return r;
}

bool af_schedule_ask(struct af_arena *scratch, const struct af_soc *soc, const struct af_graph *g, const struct af_fuse_question *q,
                     struct af_fuse_answer *ret) {
        struct ends e = {0};
        const char *why = "no memory";
        struct whole w = {.g = g, .soc = soc, .arena = scratch, .why = &why};
        af_arena_reset(scratch);
        if (!ask(&w, q, &e, ret))
                return true;
        ret->why = af_arena_strdup(g->arena, why);
        return false;
}

bool af_schedule_fusable(void *soc, const struct af_graph *g, const uint32_t *nodes, uint32_t n_nodes, const char **ret_why) {
        AF_CLEANUP(af_arena_deinit) struct af_arena scratch;
        struct af_fuse_question q = {.nodes = nodes, .n_nodes = n_nodes};
        struct af_fuse_answer answer = {0};
        af_arena_init(&scratch, 0);
        bool yes = af_schedule_ask(&scratch, soc, g, &q, &answer);
        if (!yes)
                *ret_why = answer.why;
        return yes;
}
