/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rewrite: composites and moved views as other nodes (compiler/rewrite). The framework knows only the sender's nodes: where fusion finds a
 * piece that no kernel can run, the node that it comes from is pinned whole, with the piece's reason, and the passes run again from here.
 */
#include <errno.h>

#include "compiler/driver/job.h"

/* Rounds with pins chosen one by one; then everything is pinned that was ever taken apart. */
#define MAX_ROUNDS 12u

int af_pass_rewrite(struct af_job *job) {
        if (!job->pinned) {
                job->read = job->graph;
                job->pinned = af_arena_calloc(job->arena, job->graph.n_nodes, sizeof(*job->pinned));
                job->pinned_why = af_arena_calloc(job->arena, job->graph.n_nodes, sizeof(*job->pinned_why));
                if (!job->pinned || !job->pinned_why)
                        return -ENOMEM;
        }
        job->read.exprs = job->graph.exprs; /* the later passes' expressions too: ids only grow */
        job->notes = (struct af_rewrite_notes){0};
        int r = af_rewrite(&job->read, job->pinned, &job->graph, &job->notes);
        if (r)
                return r;
        /* the outputs pass writes into them */
        job->graph.outputs = af_arena_memdup(job->arena, job->graph.outputs, job->graph.n_outputs * sizeof(*job->graph.outputs));
        return job->graph.outputs ? 0 : -ENOMEM;
}

static bool pin(struct af_job *job, uint32_t source, const char *why) {
        if (job->pinned[source])
                return false;
        job->pinned[source] = true;
        job->pinned_why[source] = why;
        return true;
}

/* A pinned composite is left to the framework for its piece's reason, not for being a composite. */
static void give_reasons(struct af_job *job) {
        const char **fallback = (const char **)job->fusion.fallback; /* of this arena, made by this job */
        for (uint32_t i = 0; i < job->graph.n_nodes; i++) {
                const struct af_node *n = &job->graph.nodes[i];
                if (fallback[i] && !n->piece && af_rewrite_is_composite(n->op) && job->pinned_why[n->source])
                        fallback[i] = job->pinned_why[n->source];
        }
        for (uint32_t i = 0; i < job->fusion.n_decisions; i++)
                if (job->fusion.decisions[i].kind == AF_DECISION_FALLBACK)
                        job->fusion.decisions[i].reason = fallback[job->fusion.decisions[i].consumer];
}

/* A copy that the outputs pass put in and no node of the sender's stands for: nobody could run it. */
static int refuse_lone_copies(struct af_job *job) {
        int r = 0;
        for (uint32_t i = 0; i < job->graph.n_nodes; i++) {
                const char *why = job->canonical[i] == AF_NONE ? job->fusion.fallback[i] : NULL;
                for (uint32_t k = 0; why && k < job->graph.n_outputs; k++)
                        if (job->graph.outputs[k].value == job->graph.nodes[i].out[0])
                                af_diag_error(job->diags, "outputs", "output %u cannot be stored with its strides: %s", k, why);
                r = why ? AF_DRIVER_E_INVALID : r;
        }
        return r;
}

int af_job_pin_pieces(struct af_job *job) {
        bool any = false;
        for (uint32_t i = 0; i < job->graph.n_nodes; i++)
                if (job->graph.nodes[i].piece && job->fusion.fallback[i])
                        any |= pin(job, job->graph.nodes[i].source, job->fusion.fallback[i]);
        if (any && ++job->n_rounds >= MAX_ROUNDS)
                for (uint32_t i = 0; i < job->read.n_nodes; i++)
                        pin(job, i, NULL);
        if (any)
                return AF_PASS_AGAIN;
        give_reasons(job);
        return refuse_lone_copies(job);
}
