/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuse: groups and their loop trees. Fusion asks the schedule cheaply whether a set of nodes can be one kernel; where the full schedule
 * says no after all, or its kernel moves more than its nodes would by themselves, the group is cut in two and fusion runs again, so that
 * the answer is smaller groups, never an error.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "compiler/driver/kernels.h"
#include "compiler/graph/traffic.h"

static bool fusable(void *userdata, const struct af_graph *g, const struct af_fuse_question *q, struct af_fuse_answer *ret) {
        struct af_job *job = userdata;
        for (uint32_t i = 0; i < q->n_nodes; i++)
                if (job->unfit[q->nodes[i]]) {
                        ret->why = job->unfit[q->nodes[i]];
                        return false;
                }
        uint64_t begin = af_clock_now_ns();
        bool yes = af_schedule_ask(&job->scratch, &job->soc, g, q, ret);
        job->schedule_ns += af_clock_now_ns() - begin;
        return yes;
}

/* A group that did not pay comes apart where few bytes pass. */
static int cut(struct af_job *job, const struct af_group *group) {
        uint32_t at;
        int r = af_fusion_cut(&job->graph, group, &at);
        for (uint32_t i = 0; !r && i < group->n_nodes; i++)
                job->fence[group->nodes[i]] = job->n_fences + (i < at ? 1 : 2);
        job->n_fences += 2;
        return r;
}

/* A node that does not fit alone is for the framework, and so are all that are alike. */
static void leave_out(struct af_job *job, uint32_t node, const char *why) {
        const uint32_t *node_class = job->fusion.alike->node_class;
        for (uint32_t n = 0; n < job->graph.n_nodes; n++)
                if (node_class[n] == node_class[node])
                        job->unfit[n] = why ? why : "no schedule";
}

/* Whether a group's kernel moves more than kernels of its nodes would. Few do, so that those are seldom built. */
static int moves_more(struct kernels *k, struct af_job *job, const struct af_group *group, const struct af_kernel *kernel, bool *ret_more) {
        const struct af_graph *g = &job->graph;
        uint64_t least = 0, apart;
        for (uint32_t i = 0; i < group->n_nodes; i++) {
                const struct af_node *n = &g->nodes[group->nodes[i]];
                if (af_op_info(n->op)->cls != AF_CLASS_VIEW)
                        least += (uint64_t)af_traffic(g, &group->nodes[i], 1, n->out, n->n_out);
        }
        *ret_more = false;
        if (group->n_nodes == 1 || kernel->hbm_bytes <= least)
                return 0;
        int r = kernels_apart(k, job, group, &apart);
        *ret_more = !r && kernel->hbm_bytes > apart;
        return r;
}

/* Every group's loop tree. *ret_again: some group did not fit or pay, and the marks changed. */
static int schedule_groups(struct kernels *k, struct af_job *job, bool *ret_again) {
        uint32_t n = job->fusion.n_groups;
        job->kernels = af_arena_calloc(job->arena, n, sizeof(*job->kernels));
        if (!job->kernels)
                return -ENOMEM;
        k->round++;
        for (uint32_t i = 0; i < n; i++) {
                const struct af_group *group = &job->fusion.groups[i];
                const char *why = NULL;
                bool more = false;
                int r = kernels_get(k, job, i, &job->kernels[i], &why);
                if (!r && job->kernels[i].kernel && job->kernels[i].alike == i)
                        r = moves_more(k, job, group, job->kernels[i].kernel, &more);
                if (r)
                        return r;
                job->kernels[i].costly = more || job->kernels[job->kernels[i].alike].costly;
                if (job->kernels[i].kernel && !job->kernels[i].costly)
                        continue;
                *ret_again = true;
                if (group->n_nodes == 1)
                        leave_out(job, group->nodes[0], why);
                else if ((r = cut(job, group)))
                        return r;
        }
        return 0;
}

/* Groups with a kernel each, for the job's graph. unfit and fence: what is known of its nodes. */
static int fuse_all(struct af_job *job) {
        static const struct af_rules none;
        const struct af_rules *rules = job->opts->no_fuse ? &none : &job->env->rules;
        struct af_fuse_ask ask = {.fusable = fusable, .userdata = job, .fence = job->fence};
        AF_CLEANUP(kernels_deinit) struct kernels kernels;
        kernels_init(&kernels, job);
        for (bool again = true; again;) {
                again = false; /* ends: each further round keeps nodes apart that shared a group, or leaves one to the framework */
                int r = af_fuse(&job->graph, rules, &job->soc, &ask, &job->fusion);
                if (!r)
                        r = schedule_groups(&kernels, job, &again);
                if (r)
                        return r;
        }
        return 0;
}

static uint64_t bytes_moved(const struct af_job *job) {
        uint64_t bytes = 0;
        for (uint32_t i = 0; i < job->fusion.n_groups; i++)
                bytes += job->kernels[i].kernel->hbm_bytes;
        return bytes;
}

static uint32_t n_fallbacks(const struct af_job *job) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < job->graph.n_nodes; i++)
                n += job->fusion.fallback[i] != NULL;
        return n;
}

/* What is known of the nodes goes along to the graph with copies. */
static int move_to(struct af_job *job, const struct af_graph *graph, const uint32_t *from) {
        uint32_t n = graph->n_nodes, *canonical = af_arena_calloc(job->arena, n, sizeof(*canonical));
        uint32_t *fence = af_arena_calloc(job->arena, n, sizeof(*fence));
        const char **unfit = af_arena_calloc(job->arena, n, sizeof(*unfit));
        if (!canonical || !fence || !unfit)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++) {
                canonical[i] = job->canonical[from[i]];
                fence[i] = job->fence[from[i]];
                unfit[i] = job->unfit[from[i]];
        }
        job->graph = *graph;
        job->canonical = canonical;
        job->fence = fence;
        job->unfit = unfit;
        return 0;
}

/* Fuses once more with cheap values computed where they are read, and keeps that if it moves less in no more launches. */
static int recompute(struct af_job *job) {
        struct af_graph graph;
        uint32_t *from, n, n_launches = job->fusion.n_groups, n_left = n_fallbacks(job);
        uint64_t bytes = bytes_moved(job);
        int r = af_fusion_recompute(&job->graph, &job->fusion, &graph, &from, &n);
        if (r || n == 0)
                return r;
        const struct af_job before = *job;
        r = move_to(job, &graph, from);
#ifndef NDEBUG
        if (!r && af_graph_check(&job->graph, job->diags))
                return AF_DRIVER_E_INVALID;
#endif
        if (!r)
                r = fuse_all(job);
        if (!r && bytes_moved(job) < bytes && job->fusion.n_groups <= n_launches && n_fallbacks(job) == n_left)
                return 0;
        job->graph = before.graph;
        job->canonical = before.canonical;
        job->fence = before.fence;
        job->n_fences = before.n_fences;
        job->unfit = before.unfit;
        job->fusion = before.fusion;
        job->kernels = before.kernels;
        return r;
}

int af_pass_fuse(struct af_job *job) {
        uint32_t n = job->graph.n_nodes;
        job->unfit = af_arena_calloc(job->arena, n, sizeof(*job->unfit));
        job->fence = af_arena_calloc(job->arena, n, sizeof(*job->fence));
        if (!job->unfit || !job->fence)
                return -ENOMEM;
        int r = fuse_all(job);
        if (!r && !job->opts->no_fuse)
                r = recompute(job);
        return r ? r : af_job_pin_pieces(job);
}
