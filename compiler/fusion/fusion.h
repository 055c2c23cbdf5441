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

/* A candidate for one kernel. */
struct af_fuse_question {
        const uint32_t *nodes; /* topological order */
        uint32_t n_nodes;
        const uint32_t *stored; /* values that stay in memory: outputs of the graph, and what others read */
        uint32_t n_stored;
};
struct af_fuse_answer {
        const char *why;   /* where it cannot be one kernel; lives in the graph's arena */
        int64_t bytes;     /* moved through HBM, about; below 0: as if in one turn over the data (af_traffic) */
        uint32_t meetings; /* times that all cores must meet */
};
/* Can one kernel run it within the SoC's limits? The schedule answers: it owns axes, layout and UB. The same for all that are alike. */
typedef bool (*af_fusable_fn)(void *userdata, const struct af_graph *g, const struct af_fuse_question *q, struct af_fuse_answer *ret);
struct af_fuse_ask {
        af_fusable_fn fusable;
        void *userdata;
        const uint32_t *fence; /* per node, or NULL: nodes of two numbers other than 0 do not share a kernel */
};

/* Partitions g. Everything returned is in g->arena. 0 or -ENOMEM. */
int af_fuse(const struct af_graph *g, const struct af_rules *rules, const struct af_soc *soc, const struct af_fuse_ask *ask,
            struct af_fusion *ret_fusion) AF_WARN_UNUSED;
/*
 * For a group of several nodes that no kernel can run after all: where to cut its list of nodes so that few bytes pass from the first
 * *ret_at nodes to the rest, neither side small. Both sides can stand for themselves. 0 or -ENOMEM.
 */
int af_fusion_cut(const struct af_graph *g, const struct af_group *group, uint32_t *ret_at) AF_WARN_UNUSED;
/*
 * Copies of cheap values for kernels that would read them from another one's store, where that moves fewer bytes by the count of values:
 * *ret_graph is g with nodes added (those that lose all readers stay, dead), *ret_from tells for each of its nodes which of g's it is or
 * copies. *ret_n 0: nothing to gain, neither is written. Values of g keep their numbers. In g's arena. 0 or -ENOMEM.
 */
int af_fusion_recompute(const struct af_graph *g, const struct af_fusion *fusion, struct af_graph *ret_graph, uint32_t **ret_from,
                        uint32_t *ret_n) AF_WARN_UNUSED;
/* Graph before or after fusion as Graphviz text (clusters = kernels, dashed = framework). fusion may be NULL. */
void af_fusion_dot(const struct af_graph *g, const struct af_fusion *fusion, struct af_buf *buf);
