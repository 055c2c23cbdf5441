/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/driver/kernels.h"

#include "base/clock.h"

#include <errno.h>

void kernels_init(struct kernels *k, struct af_job *job) {
        *k = (struct kernels){.round = 0};
        af_intern_init(&k->sets, job->arena);
        af_arena_init(&k->scratch, 0);
}

void kernels_deinit(struct kernels *k) {
        af_arena_deinit(&k->scratch);
}

/* The kernel of an alike group with this group's values as arguments: values[i] of this one stands for first[i] of the other. */
static int share(struct af_job *job, const struct kernel_entry *e, const uint32_t *values, uint32_t n_values, const struct af_group *group,
                 struct af_kernel **ret_kernel) {
        const struct af_kernel *k = e->kernel;
        struct af_kernel *copy = af_arena_memdup(job->arena, k, sizeof(*k));
        struct af_karg *args = af_arena_memdup(job->arena, k->args, k->n_args * sizeof(*args));
        if (!copy || !args)
                return -ENOMEM;
        for (uint32_t i = 0; i < k->n_args; i++) {
                uint32_t at = 0;
                while (args[i].value != AF_NONE && at < n_values && e->values[at] != args[i].value)
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

/* The entry of a group; new ones are built. alike->values are the group's afterwards. */
static int find(struct kernels *k, struct af_job *job, const struct af_group *group, struct kernel_entry **ret) {
        struct af_alike *alike = job->fusion.alike;
        const uint32_t *words;
        uint32_t n_words, number;
        bool fresh;
        int r = af_alike_write(alike, group->nodes, group->n_nodes, group->outputs, group->n_outputs, &words, &n_words);
        if (!r)
                r = af_intern_put(&k->sets, words, n_words * sizeof(*words), &number, &fresh);
        if (!r)
                r = af_arena_grow(job->arena, &k->entries, &k->cap_entries, number + 1, sizeof(*k->entries));
        if (r)
                return r;
        struct kernel_entry *e = &k->entries[number];
        *ret = e;
        if (!fresh)
                return 0;
        *e = (struct kernel_entry){.values = af_arena_memdup(job->arena, alike->values, alike->n_values * sizeof(*alike->values)),
                                   .round = AF_NONE};
        if (!e->values)
                return -ENOMEM;
        uint64_t begin = af_clock_now_ns();
        r = af_schedule_build(&k->scratch, &job->graph, group, &job->soc, &e->kernel, &e->why);
        job->schedule_ns += af_clock_now_ns() - begin;
        if (r > 0)
                e->kernel = NULL;
        return r < 0 ? r : 0;
}

int kernels_get(struct kernels *k, struct af_job *job, uint32_t number, struct af_kernel_out *ret_out, const char **ret_why) {
        const struct af_group *group = &job->fusion.groups[number];
        const struct af_alike *alike = job->fusion.alike;
        struct kernel_entry *e;
        int r = find(k, job, group, &e);
        if (r)
                return r;
        if (e->round != k->round) {
                e->round = k->round;
                e->first = number;
        }
        *ret_out = (struct af_kernel_out){.alike = e->first};
        *ret_why = e->why;
        return e->kernel ? share(job, e, alike->values, alike->n_values, group, &ret_out->kernel) : 0;
}

/* A node as a group: every value that it makes is stored. */
static int single(struct af_job *job, const uint32_t *node, struct af_group *ret) {
        const struct af_graph *g = &job->graph;
        const struct af_node *n = &g->nodes[*node];
        uint32_t *inputs = af_arena_calloc(job->arena, n->n_in, sizeof(*inputs)), n_inputs = 0;
        if (!inputs)
                return -ENOMEM;
        for (uint32_t i = 0; i < n->n_in; i++) {
                uint32_t at = 0;
                while (at < n_inputs && inputs[at] != n->in[i])
                        at++;
                if (at == n_inputs && (g->values[n->in[i]].kind != AF_VALUE_CONST || g->values[n->in[i]].rank > 0))
                        inputs[n_inputs++] = n->in[i];
        }
        *ret = (struct af_group){
                .nodes = node, .n_nodes = 1, .inputs = inputs, .n_inputs = n_inputs, .outputs = n->out, .n_outputs = n->n_out};
        return 0;
}

int kernels_apart(struct kernels *k, struct af_job *job, const struct af_group *group, uint64_t *ret_bytes) {
        uint64_t bytes = 0;
        for (uint32_t i = 0; i < group->n_nodes; i++) {
                struct kernel_entry *e;
                struct af_group alone;
                if (af_op_info(job->graph.nodes[group->nodes[i]].op)->cls == AF_CLASS_VIEW)
                        continue; /* another look at memory */
                int r = single(job, &group->nodes[i], &alone);
                if (!r)
                        r = find(k, job, &alone, &e);
                if (r)
                        return r;
                bytes = e->kernel ? bytes + e->kernel->hbm_bytes : UINT64_MAX;
                if (!e->kernel)
                        break;
        }
        *ret_bytes = bytes;
        return 0;
}
