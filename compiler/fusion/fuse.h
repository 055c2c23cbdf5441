/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of one fusion run, shared by the files of this folder: groups.c keeps groups and their order, match.c holds the matchers and
 * constraints, classify.c says what can be compiled at all, emit.c writes the result, fuse.c drives them.
 */
#pragma once

#include "compiler/fusion/fusion.h"

/* What is asked of the schedule at once grows with the group: above this size only at powers of two, and once more at the end. */
#define FUSE_ASK_ALWAYS 16u
/* Edges that one look for a cycle may walk; beyond it the merge is refused. Keeps the pass near-linear. */
#define FUSE_CYCLE_BUDGET 4096u
/* Pointers of one kernel: inputs and outputs; a workspace comes on top. */
#define FUSE_MAX_ARGS 60u

enum {
        FUSE_BROADCAST = 1, /* some node reads a tensor smaller than what it computes */
        FUSE_VIEW = 2,
        FUSE_STRIDED = 4, /* some tensor in memory is not row-major contiguous */
        FUSE_CAREFUL = 8, /* ask the schedule at every merge */
};

struct fuse_read { /* a tensor value that a group reads from outside */
        uint32_t value, n_uses;
};
struct fuse_group {                    /* valid for roots of the union-find */
        uint32_t first, last, n_nodes; /* nodes, linked through fuse.next, in no order */
        uint32_t pos;                  /* place in a topological order of the groups */
        uint64_t ops[3];
        uint32_t flags;
        uint32_t dtypes; /* AF_DTYPE_BIT of every tensor read or made */
        uint32_t n_reduce;
        const struct fuse_read *reads; /* sorted by value */
        uint32_t n_reads;
        uint32_t n_stored; /* values that someone outside reads */
        const struct af_rule *rule;
        bool asked; /* the schedule agreed to exactly this group */
};

/* Why two groups stay apart, in the order in which the checks run: the furthest reached is the one reported. */
enum fuse_refusal {
        FUSE_MERGED,
        FUSE_NO_OPS,  /* no rule holds all ops */
        FUSE_NO_TYPE, /* no rule of the pattern's type */
        FUSE_SHAPE,
        FUSE_DTYPE,
        FUSE_CONSUMERS,
        FUSE_LAYOUT,
        FUSE_TWO_REDUCTIONS,
        FUSE_BROADCAST_BACK,
        FUSE_RULE_NODES,
        FUSE_NODES,
        FUSE_INPUTS,
        FUSE_CYCLE,
        FUSE_CYCLE_LONG,
        FUSE_SCHEDULE, /* text is the schedule's */
};
struct fuse_record {
        enum fuse_refusal why;
        uint32_t producer, consumer; /* nodes */
        const struct af_rule *rule;
        const char *text;
        int64_t bytes_saved;
};

struct fuse_answer {
        bool yes;
        const char *why;
};

struct fuse {
        const struct af_graph *g;
        const struct af_rules *rules;
        const struct af_soc *soc;
        af_fusable_fn fusable;
        void *userdata;
        struct af_arena scratch;
        struct af_alike *alike; /* in the graph's arena: the result keeps it */
        struct af_intern asked; /* sets of nodes that the schedule was asked about, as af_alike writes them */
        struct fuse_answer *answers;
        uint32_t cap_answers;
        bool *reason_known; /* per class of nodes: reasons[] is valid */
        const char **reasons;
        /* per node */
        uint32_t *parent, *next;
        struct fuse_group *groups;
        bool *live, *after_reduce;
        const char **fallback;
        bool *alias; /* a view that may stay outside every kernel */
        uint32_t *effect_next, *effect_prev;
        uint32_t *mark, mark_now; /* of group roots */
        uint32_t *stack, *forward, *backward, *slots;
        /* per value */
        uint32_t *users_first, *users; /* live users, one entry per operand */
        uint32_t *n_outside;           /* uses outside the producer's group */
        bool *is_output;
        uint32_t *value_mark, value_mark_now;

        struct fuse_record *records;
        uint32_t n_records, cap_records;
        uint32_t *nodes; /* scratch for candidate sets: n_nodes entries */
};

/* What passes from producer group p to consumer group c. */
struct fuse_crossing {
        uint32_t n_values;
        bool single;       /* each value has this one use and is no output */
        bool after_reduce; /* some value follows a reduction */
        int64_t bytes_saved;
};

/* ---- groups.c ---- */
uint32_t fuse_find(struct fuse *f, uint32_t node);
/* Node becomes a group of its own. 0 or -ENOMEM. */
int fuse_single(struct fuse *f, uint32_t node) AF_WARN_UNUSED;
/* Numbers all groups anew in topological order. */
int fuse_renumber(struct fuse *f) AF_WARN_UNUSED;
void fuse_cross(struct fuse *f, uint32_t p, uint32_t c, struct fuse_crossing *ret);
/* Reads and stores of the union; *ret_reads (may be NULL) is in scratch. 0 or -ENOMEM. */
int fuse_union_args(struct fuse *f, uint32_t p, uint32_t c, const struct fuse_read **ret_reads, uint32_t *ret_n_reads,
                    uint32_t *ret_n_stored) AF_WARN_UNUSED;
/* Whether joining p and c leaves the groups without a cycle; if so the order already allows for it. */
enum fuse_refusal fuse_order(struct fuse *f, uint32_t p, uint32_t c);
/* Joins two groups that passed every check. 0 or -ENOMEM. */
int fuse_join(struct fuse *f, uint32_t p, uint32_t c, const struct af_rule *rule) AF_WARN_UNUSED;
/*
 * The nodes of p and c (AF_NONE: p alone) that a kernel would hold, in topological order, views at the rim left out, into f->nodes.
 * Returns how many.
 */
uint32_t fuse_candidate(struct fuse *f, uint32_t p, uint32_t c);

/* ---- match.c ---- */
/* Whether type names a matcher. */
bool fuse_type_known(const char *type);
const char *fuse_types(void); /* "elementwise_chain, …" for messages */
/* Checks one rule on the union; FUSE_MERGED where it allows it. */
enum fuse_refusal fuse_match(struct fuse *f, const struct af_rule *rule, uint32_t p, uint32_t c, const struct fuse_crossing *x,
                             uint32_t consumer);
/* First rule that holds a single group, or NULL. */
const struct af_rule *fuse_match_single(struct fuse *f, uint32_t p);

/* ---- ask.c ---- */
/* Sorts the nodes into classes. 0 or -ENOMEM. */
int fuse_ask_init(struct fuse *f) AF_WARN_UNUSED;
/* The schedule's answer about a set of nodes in topological order; asked once for all sets that are alike. *ret_why where false. */
bool fuse_ask(struct fuse *f, const uint32_t *nodes, uint32_t n_nodes, const char **ret_why);

/* ---- classify.c ---- */
/* Node flags (FUSE_BROADCAST, …). */
uint32_t fuse_node_flags(const struct fuse *f, uint32_t node);
uint32_t fuse_node_dtypes(const struct fuse *f, uint32_t node);
/* A scalar constant becomes part of the code, it is not read from memory. */
bool fuse_is_immediate(const struct af_graph *g, uint32_t value);
/* Fills live, fallback, alias. 0 or -ENOMEM. */
int fuse_classify(struct fuse *f) AF_WARN_UNUSED;

/* ---- emit.c ---- */
int fuse_emit(struct fuse *f, struct af_fusion *ret) AF_WARN_UNUSED;
