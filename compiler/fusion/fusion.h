/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fusion: which nodes share a kernel. Backward scan to a fixpoint; rules gate a merge, constraints and cost decide it; every decision
 * is recorded with its facts.
 */
#pragma once

#include "compiler/fusion/rules.h"
#include "compiler/graph/alike.h"
#include "runtime/soc.h"

struct af_group {
        const uint32_t *nodes; /* topological order; view nodes that the kernel sees through are members too */
        uint32_t n_nodes;
        const uint32_t *inputs; /* value ids read from memory, in order of first use; scalar constants are not here */
        uint32_t n_inputs;
        const uint32_t *outputs; /* value ids stored: read by another group, a framework step, or a graph output */
        uint32_t n_outputs;
        const struct af_rule *rule; /* of the last merge; for a single node, the first rule whose ops hold it; NULL: built-in single-node */
        const char *tmpl;           /* template stem */
};
enum af_decision_kind { AF_DECISION_MERGED, AF_DECISION_REFUSED, AF_DECISION_FALLBACK };
struct af_decision {
        enum af_decision_kind kind;
        uint32_t consumer, producer; /* nodes; FALLBACK: consumer is the node, producer AF_NONE */
        const struct af_rule *rule;  /* may be NULL */
        const char *reason;          /* constraint and both sides' facts; for MERGED what it saves */
        int64_t bytes_saved;
};
struct af_fusion {
        struct af_group *groups; /* in an order that can be launched */
        uint32_t n_groups;
        /* per node: group number, or AF_NONE (fallback, or a pure view outside any kernel, or dead) */
        const uint32_t *group_of;
        /* per node: NULL, or why it is left to the framework */
        const char *const *fallback;
        /* per node: true for a view that needs no step: its output is an alias of its input's buffer */
        const bool *alias_view;
        struct af_decision *decisions;
        uint32_t n_decisions;
        struct af_alike *alike; /* finds groups that are alike: one kernel serves them all */
};

/*
 * Asked of a candidate set of nodes (topological order): can one kernel run it within the SoC's limits? The schedule answers: it owns axes,
 * layout and UB. *ret_why gets text from arena where not.
 */
typedef bool (*af_fusable_fn)(void *userdata, const struct af_graph *g, const uint32_t *nodes, uint32_t n_nodes, const char **ret_why);

/* Partitions g. Everything returned is in g->arena. 0 or -ENOMEM. */
int af_fuse(const struct af_graph *g, const struct af_rules *rules, const struct af_soc *soc, af_fusable_fn fusable, void *userdata,
            struct af_fusion *ret_fusion) AF_WARN_UNUSED;
/* Graph before or after fusion as Graphviz text (clusters = kernels, dashed = framework). fusion may be NULL. */
void af_fusion_dot(const struct af_graph *g, const struct af_fusion *fusion, struct af_buf *buf);
