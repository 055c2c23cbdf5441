/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of one fusion run, shared by the files of this folder: groups.c keeps groups and their order, match.c holds the matchers and
 * constraints, classify.c says what can be compiled at all, emit.c writes the result, fuse.c drives them.
 */
#pragma once

#include "compiler/fusion/fusion.h"

/* What is asked of the schedule at once grows with the group: above this size only at powers of two, and once more at the end. */
#define FUSE_ASK_ALWAYS   16u
#define FUSE_ASK_PLAIN    32u /* plain groups: not before they are larger than this */
#define FUSE_ASK_REDUCING 64u /* the same for groups with a reduction: they may fall into parts */
/* Edges that one look for a cycle may walk; beyond it the merge is refused. Keeps the pass near-linear. */
#define FUSE_CYCLE_BUDGET 4096u
/* Turns of siblings and, where some merged, producers again. */
#define FUSE_MAX_ROUNDS 4u
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
        int64_t touched; /* bytes, over all uses */
};
struct fuse_group {                    /* valid for roots of the union-find */
        uint32_t first, last, n_nodes; /* nodes, linked through fuse.next, in no order */
        uint32_t n_computing;          /* nodes that are more than another look at memory; 0: no launch */
        uint32_t pos;                  /* place in a topological order of the groups */
        struct af_op_set ops;
        uint32_t classes; /* bit per enum af_op_class */
        uint32_t flags;
        uint32_t dtypes; /* AF_DTYPE_BIT of every tensor read or made */
        uint32_t n_reduce;
        uint32_t fence;                /* af_fuse_ask.fence of its nodes */
        const struct fuse_read *reads; /* sorted by value */
        uint32_t n_reads;
        uint32_t n_stored; /* values that someone outside reads */
        int64_t stored_bytes;
        int64_t turn_bytes; /* moved if each value moves once */
        int64_t bytes;      /* moved, as far as the schedule told; else as turn_bytes */
        uint32_t meetings;
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
        FUSE_RULE_REDUCTIONS,
        FUSE_RULE_NODES,
        FUSE_FENCE,
        FUSE_NODES,
        FUSE_INPUTS,
        FUSE_CYCLE,
        FUSE_CYCLE_LONG,
        FUSE_SCHEDULE,   /* text is the schedule's */
        FUSE_MORE_BYTES, /* one kernel moves more than two */
        FUSE_MEETINGS,   /* all cores would meet more often than a launch is worth */
};
struct fuse_record {
        enum fuse_refusal why;
        uint32_t producer, consumer; /* nodes */
        const struct af_rule *rule;
        const char *text;
        int64_t apart, together; /* bytes */
        uint32_t launches_saved;
};

/* What the union of two groups reads and stores. */
struct fuse_union {
        const struct fuse_read *reads; /* where asked for */
        uint32_t n_reads, n_stored;
        int64_t stored_bytes, turn_bytes;
};

struct fuse {
        const struct af_graph *g;
        const struct af_rules *rules;
        const struct af_soc *soc;
        const struct af_fuse_ask *ask;
        struct af_arena scratch;
        struct af_alike *alike; /* in the graph's arena: the result keeps it */
        struct af_intern asked; /* sets of nodes that the schedule was asked about, as af_alike writes them */
        struct af_fuse_answer *answers;
        bool *agreed;
        uint32_t cap_answers, cap_agreed;
        bool *reason_known; /* per class of nodes: reasons[] is valid */
        const char **reasons;
        /* per node */
        uint32_t *parent, *next;
        struct fuse_group *groups;
        bool *live, *after_reduce;
        const char **fallback;
        bool *alias; /* a view that may stay outside every kernel */
        /* order that no operand shows (af_graph_order_edges), CSR over nodes, in both directions */
        uint32_t *before_first, *before, *after_first, *after;
        uint32_t *mark, mark_now; /* of group roots */
        uint32_t *stack, *forward, *backward, *slots;
        /* per value */
        uint32_t *users_first, *users; /* live users, one entry per operand */
        uint32_t *n_outside;           /* uses outside the producer's group */
        uint32_t *n_inside;            /* uses within the candidate at hand, valid where value_mark says so */
        int64_t *bytes;
        bool *is_output;
        uint32_t *value_mark, value_mark_now;

        struct fuse_record *records;
        uint32_t n_records, cap_records;
        uint32_t *nodes;  /* scratch for candidate sets: n_nodes entries */
        uint32_t *stored; /* values that the candidate stores */
        uint32_t n_stored, cap_stored;
        uint32_t budget; /* of a look for a cycle */
};

/* What passes from producer group p to consumer group c. */
struct fuse_crossing {
        uint32_t n_values;
        bool single;       /* each value has this one use and is no output */
        bool after_reduce; /* some value follows a reduction */
};

/* ---- groups.c ---- */
uint32_t fuse_find(struct fuse *f, uint32_t node);
/* Node becomes a group of its own. 0 or -ENOMEM. */
int fuse_single(struct fuse *f, uint32_t node) AF_WARN_UNUSED;
/* Numbers all groups anew in topological order. */
int fuse_renumber(struct fuse *f) AF_WARN_UNUSED;
void fuse_cross(struct fuse *f, uint32_t p, uint32_t c, struct fuse_crossing *ret);
/* Reads, stores and bytes of the union; keep_reads: its list of reads too, in scratch. 0 or -ENOMEM. */
int fuse_unite(struct fuse *f, uint32_t p, uint32_t c, bool keep_reads, struct fuse_union *ret) AF_WARN_UNUSED;
/* Whether joining p and c (p stands before c) leaves the groups without a cycle; if so the order already allows for it. */
enum fuse_refusal fuse_order(struct fuse *f, uint32_t p, uint32_t c);
/* Joins two groups that passed every check. 0 or -ENOMEM. */
int fuse_join(struct fuse *f, uint32_t p, uint32_t c, const struct af_rule *rule) AF_WARN_UNUSED;
/*
 * The nodes of p and c (AF_NONE: p alone) that a kernel would hold, in topological order, views at the rim left out, into f->nodes, and
 * the values that it would store into f->stored. 0 or -ENOMEM.
 */
int fuse_candidate(struct fuse *f, uint32_t p, uint32_t c, uint32_t *ret_n) AF_WARN_UNUSED;

/* What the first n_nodes of f->nodes store, into f->stored: outputs of the graph, and values with readers outside. 0 or -ENOMEM. */
int fuse_stored(struct fuse *f, uint32_t n_nodes) AF_WARN_UNUSED;

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
/* The schedule's answer about f->nodes, which store f->stored; asked once for all sets that are alike. ret->bytes is never negative. */
bool fuse_ask(struct fuse *f, uint32_t n_nodes, struct af_fuse_answer *ret);

/* ---- order.c ---- */
/* Fills before and after; alias and live are known. 0 or -errno. */
int fuse_order_init(struct fuse *f) AF_WARN_UNUSED;

/* ---- classify.c ---- */
/* ---- siblings.c ---- */
/* Merges groups that read the same values; *ret_merged: some did. 0 or -ENOMEM. */
int fuse_siblings(struct fuse *f, bool *ret_merged) AF_WARN_UNUSED;
/* fuse.c: merges the groups of two nodes if everything allows it; the producer may feed the consumer or only stand before it. */
int fuse_try(struct fuse *f, uint32_t producer, uint32_t consumer, enum fuse_refusal *ret_why) AF_WARN_UNUSED;

/* Node flags (FUSE_BROADCAST, …). */
uint32_t fuse_node_flags(const struct fuse *f, uint32_t node);
uint32_t fuse_node_dtypes(const struct fuse *f, uint32_t node);
/* A scalar constant becomes part of the code, it is not read from memory. */
bool fuse_is_immediate(const struct af_graph *g, uint32_t value);
/* Nodes that an output or an effect needs: fills live and is_output. */
void fuse_mark_live(struct fuse *f);
/* Fills fallback and alias. 0 or -ENOMEM. */
int fuse_classify(struct fuse *f) AF_WARN_UNUSED;

/* ---- emit.c ---- */
int fuse_emit(struct fuse *f, struct af_fusion *ret) AF_WARN_UNUSED;
