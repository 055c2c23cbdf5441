/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuse: groups and their loop trees. Fusion asks the schedule cheaply whether a set of nodes can be one kernel; where the full schedule
 * says no after all, or its kernel moves more than its nodes would by themselves, the group is cut in two and fusion runs again, so that
 * the answer is smaller groups, never an error.
 */
#include <errno.h>
#include <string.h>

#include "compiler/driver/kernels.h"
#include "compiler/graph/traffic.h"

static bool fusable(void *userdata, const struct af_graph *g, const struct af_fuse_question *q, struct af_fuse_answer *ret) {
        struct af_job *job = userdata;
        for (uint32_t i = 0; i < q->n_nodes; i++)
                if (job->unfit[q->nodes[i]]) {
                        ret->why = job->unfit[q->nodes[i]];
                        return false;
                }
        return af_schedule_ask(&job->scratch, &job->soc, g, q, ret);
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

int af_pass_fuse(struct af_job *job) {
        static const struct af_rules none;
        const struct af_rules *rules = job->opts->no_fuse ? &none : &job->env->rules;
        uint32_t n = job->graph.n_nodes;
        struct kernels kernels;
        job->unfit = af_arena_calloc(job->arena, n, sizeof(*job->unfit));
        job->fence = af_arena_calloc(job->arena, n, sizeof(*job->fence));
        if (!job->unfit || !job->fence)
                return -ENOMEM;
        kernels_init(&kernels, job);
        struct af_fuse_ask ask = {.fusable = fusable, .userdata = job, .fence = job->fence};
        for (bool again = true; again;) {
                again = false; /* ends: each further round keeps nodes apart that shared a group, or leaves one to the framework */
                int r = af_fuse(&job->graph, rules, &job->soc, &ask, &job->fusion);
                if (!r)
                        r = schedule_groups(&kernels, job, &again);
                if (r)
                        return r;
        }
        return af_job_pin_pieces(job);
}
