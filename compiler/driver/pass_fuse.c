/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuse: groups and their loop trees. Fusion asks the schedule cheaply whether a set of nodes can be one kernel; where the full schedule
 * says no after all, those nodes are kept apart and fusion runs again, so that the answer is a smaller group, never an error.
 */
#include <errno.h>
#include <string.h>

#include "compiler/driver/job.h"

static bool fusable(void *userdata, const struct af_graph *g, const uint32_t *nodes, uint32_t n_nodes, const char **ret_why) {
        struct af_job *job = userdata;
        for (uint32_t i = 0; i < n_nodes; i++) {
                if (job->unfit[nodes[i]]) {
                        *ret_why = job->unfit[nodes[i]];
                        return false;
                }
                if (job->solo[nodes[i]] && n_nodes > 1) {
                        *ret_why = "a larger kernel with this node did not fit";
                        return false;
                }
        }
        return af_schedule_fusable_in(&job->scratch, &job->soc, g, nodes, n_nodes, ret_why);
}

/* Builds every group's loop tree. *ret_again: some group did not fit and the marks changed. */
static int schedule_groups(struct af_job *job, bool *ret_again) {
        const struct af_fusion *f = &job->fusion;
        job->kernels = af_arena_calloc(job->arena, f->n_groups, sizeof(*job->kernels));
        if (!job->kernels)
                return -ENOMEM;
        for (uint32_t i = 0; i < f->n_groups; i++) {
                const char *why = NULL;
                int r = af_schedule_build(&job->graph, &f->groups[i], &job->soc, &job->kernels[i].kernel, &why);
                if (r < 0)
                        return r;
                if (!r)
                        continue;
                *ret_again = true;
                for (uint32_t j = 0; j < f->groups[i].n_nodes; j++) {
                        uint32_t n = f->groups[i].nodes[j];
                        if (f->groups[i].n_nodes > 1)
                                job->solo[n] = true;
                        else
                                job->unfit[n] = why ? why : "no schedule";
                }
        }
        return 0;
}

int af_pass_fuse(struct af_job *job) {
        static const struct af_rules none;
        uint32_t n = job->graph.n_nodes;
        job->unfit = af_arena_calloc(job->arena, n, sizeof(*job->unfit));
        job->solo = af_arena_calloc(job->arena, n, sizeof(*job->solo));
        if (!job->unfit || !job->solo)
                return -ENOMEM;
        for (bool again = true; again;) {
                again = false; /* ends: each further round marks at least one more node, twice at most */
                int r = af_fuse(&job->graph, job->opts->no_fuse ? &none : &job->env->rules, &job->soc, fusable, job, &job->fusion);
                if (!r)
                        r = schedule_groups(job, &again);
                if (r)
                        return r;
        }
        return 0;
}
