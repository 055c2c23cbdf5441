/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuse: groups and their loop trees. Fusion asks the schedule cheaply whether a set of nodes can be one kernel; where the full schedule
 * says no after all, the group is cut in two and fusion runs again, so that the answer is smaller groups, never an error.
 */
#include <errno.h>
#include <string.h>

#include "compiler/driver/job.h"

static bool fusable(void *userdata, const struct af_graph *g, const struct af_fuse_question *q, struct af_fuse_answer *ret) {
        struct af_job *job = userdata;
        for (uint32_t i = 0; i < q->n_nodes; i++)
                if (job->unfit[q->nodes[i]]) {
                        ret->why = job->unfit[q->nodes[i]];
                        return false;
                }
        return af_schedule_ask(&job->scratch, &job->soc, g, q, ret);
}

/* The kernel of an alike group with this group's values as arguments: values[i] of this one stands for first[i] of the other. */
static int share_kernel(struct af_job *job, const struct af_kernel *k, const uint32_t *first, const uint32_t *values, uint32_t n_values,
                        const struct af_group *group, struct af_kernel **ret_kernel) {
        struct af_kernel *copy = af_arena_memdup(job->arena, k, sizeof(*k));
        struct af_karg *args = af_arena_memdup(job->arena, k->args, k->n_args * sizeof(*args));
        if (!copy || !args)
                return -ENOMEM;
        for (uint32_t i = 0; i < k->n_args; i++) {
                uint32_t at = 0;
                while (args[i].value != AF_NONE && at < n_values && first[at] != args[i].value)
                        at++;
                if (at == n_values)
                        return -EPROTO; /* an argument that no member reads or makes */
                if (args[i].value != AF_NONE)
                        args[i].value = values[at];
        }
        copy->group = group;
        copy->args = args;
        *ret_kernel = copy;
        return 0;
}

/* A group that did not fit comes apart where few bytes pass; a node that does not fit alone is for the framework, and so are all alike. */
static int mark_unfit(struct af_job *job, const struct af_group *group, const char *why) {
        const uint32_t *node_class = job->fusion.alike->node_class;
        uint32_t at;
        if (group->n_nodes == 1) {
                for (uint32_t n = 0; n < job->graph.n_nodes; n++)
                        if (node_class[n] == node_class[group->nodes[0]])
                                job->unfit[n] = why ? why : "no schedule";
                return 0;
        }
        int r = af_fusion_cut(&job->graph, group, &at);
        for (uint32_t i = 0; !r && i < group->n_nodes; i++)
                job->fence[group->nodes[i]] = job->n_fences + (i < at ? 1 : 2);
        job->n_fences += 2;
        return r;
}

/* Groups seen so far, by likeness. */
struct known {
        struct af_intern sets;
        uint32_t *first;   /* per number in sets: the first such group */
        uint32_t **values; /* per number in sets: that group's values as af_alike numbers them */
};

/* One group's loop tree: built, or that of a group that it is alike. kernel NULL where it did not fit, with *ret_why the first time. */
static int schedule_group(struct af_job *job, struct known *known, uint32_t i, const char **ret_why) {
        struct af_alike *alike = job->fusion.alike;
        const struct af_group *group = &job->fusion.groups[i];
        struct af_kernel_out *out = &job->kernels[i];
        const uint32_t *words;
        uint32_t n_words, number;
        bool fresh;
        int r = af_alike_write(alike, group->nodes, group->n_nodes, group->outputs, group->n_outputs, &words, &n_words);
        if (!r)
                r = af_intern_put(&known->sets, words, n_words * sizeof(*words), &number, &fresh);
        if (r)
                return r;
        if (fresh) {
                known->first[number] = out->alike = i;
                known->values[number] = af_arena_memdup(job->arena, alike->values, alike->n_values * sizeof(*alike->values));
                if (!known->values[number])
                        return -ENOMEM;
                r = af_schedule_build(&job->graph, group, &job->soc, &out->kernel, ret_why);
                return r < 0 ? r : 0;
        }
        out->alike = known->first[number];
        const struct af_kernel *k = job->kernels[out->alike].kernel;
        return k ? share_kernel(job, k, known->values[number], alike->values, alike->n_values, group, &out->kernel) : 0;
}

/* Builds every group's loop tree, once for all that are alike. *ret_again: some group did not fit and the marks changed. */
static int schedule_groups(struct af_job *job, bool *ret_again) {
        uint32_t n = job->fusion.n_groups;
        struct known known = {.first = af_arena_calloc(job->arena, n, sizeof(uint32_t)),
                              .values = af_arena_calloc(job->arena, n, sizeof(uint32_t *))};
        job->kernels = af_arena_calloc(job->arena, n, sizeof(*job->kernels));
        if (!job->kernels || !known.first || !known.values)
                return -ENOMEM;
        af_intern_init(&known.sets, job->arena);
        for (uint32_t i = 0; i < n; i++) {
                const char *why = NULL;
                int r = schedule_group(job, &known, i, &why);
                if (r)
                        return r;
                if (job->kernels[i].kernel)
                        continue;
                *ret_again = true;
                r = mark_unfit(job, &job->fusion.groups[i], why);
                if (r)
                        return r;
        }
        return 0;
}

int af_pass_fuse(struct af_job *job) {
        static const struct af_rules none;
        const struct af_rules *rules = job->opts->no_fuse ? &none : &job->env->rules;
        uint32_t n = job->graph.n_nodes;
        job->unfit = af_arena_calloc(job->arena, n, sizeof(*job->unfit));
        job->fence = af_arena_calloc(job->arena, n, sizeof(*job->fence));
        if (!job->unfit || !job->fence)
                return -ENOMEM;
        struct af_fuse_ask ask = {.fusable = fusable, .userdata = job, .fence = job->fence};
        for (bool again = true; again;) {
                again = false; /* ends: each further round keeps nodes apart that shared a group, or leaves one to the framework */
                int r = af_fuse(&job->graph, rules, &job->soc, &ask, &job->fusion);
                if (!r)
                        r = schedule_groups(job, &again);
                if (r)
                        return r;
        }
        return af_job_pin_pieces(job);
}
