/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of compiler/graph share. Private to the folder. */
#pragma once

#include "compiler/graph/graph.h"

/*
 * Where a diagnostic points. Turned to text only when one is written: `nodes[3] "n3".outputs[0].dtype`. text, where not NULL, stands
 * for list, index and name.
 */
struct af_where {
        const char *text;
        const char *list; /* "nodes" */
        uint32_t index;
        const char *name; /* may be NULL */
};
void af_where_error(struct af_diags *diags, const struct af_where *w, const char *field, const char *hint, const char *fmt, ...)
        AF_PRINTF(5, 6);

/* Counts mistakes of one graph although the sink may hold others, or be NULL: then its own sink stands in (deinit own). Starts all zero. */
struct af_tally {
        struct af_diags *diags, own;
        uint32_t before;
};
struct af_diags *af_tally_start(struct af_tally *t, struct af_diags *diags);
bool af_tally_failed(const struct af_tally *t);

/* Ranges and names of the symbols, for proofs and messages; all NULL: unknown. */
struct af_symbol_facts {
        const int64_t *mins, *maxs;
        const char *const *names;
};
/* Fills the facts of g in its arena. 0 or -ENOMEM. */
int af_symbol_facts_make(const struct af_graph *g, struct af_symbol_facts *ret_facts) AF_WARN_UNUSED;

/* One node under inference. attrs is by key and valid where the bit in has is set. */
struct af_infer_ctx {
        struct af_expr_pool *exprs;
        struct af_arena *arena;
        struct af_diags *diags;
        struct af_where where;
        struct af_symbol_facts facts;
        enum af_op op;
        const struct af_op_info *info;
        const struct af_infer_operand *in;
        uint32_t n_in;
        struct af_attr attrs[AF_N_ATTRS];
        uint64_t has;
        bool failed; /* a diagnostic was written */
        int error;   /* -ENOMEM */
};
/* Records a mistake of the node: field as ".attrs.axes". */
#define af_infer_fail(ctx, field, ...) af_infer_fail_hint(ctx, field, NULL, __VA_ARGS__)
void af_infer_fail_hint(struct af_infer_ctx *ctx, const char *field, const char *hint, const char *fmt, ...) AF_PRINTF(4, 5);
/* Text of dims for a message, "[s0, 50]", in the ctx's arena; "[?]" without memory. */
const char *af_infer_dims_text(struct af_infer_ctx *ctx, const uint32_t *dims, uint32_t rank);
const char *af_dims_text(const struct af_expr_pool *exprs, struct af_arena *arena, const char *const *names, const uint32_t *dims,
                         uint32_t rank);
/* Whether a and b have one value for every symbol value; false where that cannot be shown. */
bool af_dims_equal(struct af_expr_pool *exprs, const struct af_symbol_facts *facts, uint32_t a, uint32_t b);
/* af_expr_binary whose failures become diagnostics of the node. False on failure. */
bool af_infer_expr(struct af_infer_ctx *ctx, const char *field, enum af_expr_kind kind, uint32_t a, uint32_t b, uint32_t *ret_id);
bool af_infer_const(struct af_infer_ctx *ctx, int64_t v, uint32_t *ret_id);

/*
 * Checks the attributes given against the op, fills defaults in, normalises axes and clip bounds. dtype: what the op computes in. Shapes
 * with -1 are left to the shape rule. Findings go to ctx.
 */
void af_attrs_normalise(struct af_infer_ctx *ctx, const struct af_attr *attrs, uint32_t n_attrs, enum af_dtype dtype);

/*
 * Inference of one node; ctx comes with everything but attrs, has, failed and error. ret_attrs: the attributes in normal form, in the
 * arena, sorted by key. 0, -ENOMEM, AF_GRAPH_E_INVALID.
 */
int af_infer_node(struct af_infer_ctx *ctx, const struct af_attr *attrs, uint32_t n_attrs, struct af_inferred *ret,
                  const struct af_attr **ret_attrs, uint32_t *ret_n_attrs) AF_WARN_UNUSED;
/* Whether a node of op may state this dtype for its output although the operands do not tell it (cast, reduce_sum, opaque). */
bool af_infer_dtype_allowed(enum af_op op, enum af_dtype in, enum af_dtype stated);

/*
 * Infers each node of g in order from its operands, puts attributes into normal form, compares with what the outputs state. fix: normalises
 * in place; otherwise attributes that are not normal are an error. Nodes with an operand AF_NONE are passed over. 0, -ENOMEM; mistakes are
 * in diags.
 */
int af_graph_infer(struct af_graph *g, const struct af_symbol_facts *facts, bool fix, struct af_diags *diags) AF_WARN_UNUSED;
/* Symbols, dims, layouts of inputs, constants, node outputs and graph outputs, aliasing. fix: fills strides of in-place outputs. */
int af_graph_check_values(struct af_graph *g, const struct af_symbol_facts *facts, bool fix, struct af_diags *diags) AF_WARN_UNUSED;

/* Input whose memory a value may be seen as (itself, or what its views show), as an index into inputs[]; AF_NONE: none. One entry per
 * value, in arena. */
int af_graph_roots(const struct af_graph *g, struct af_arena *arena, uint32_t **ret_roots) AF_WARN_UNUSED;

/*
 * Topological order of the nodes over operands and, where first is not NULL, the extra edges; stays as near to the order given as it can. A
 * cycle is reported with its nodes' names. ret_order: old numbers in new order, in the arena. 0, -ENOMEM, AF_GRAPH_E_INVALID.
 */
int af_graph_sort(const struct af_graph *g, const uint32_t *first, const uint32_t *list, const uint32_t **ret_order,
                  struct af_diags *diags) AF_WARN_UNUSED;
/* Puts the nodes into this order and renumbers the values: inputs, constants, then node outputs in node order. 0 or -ENOMEM. */
int af_graph_permute(struct af_graph *g, const uint32_t *order) AF_WARN_UNUSED;
/*
 * Sorts over operands, infers, checks, sorts again over order edges: the common end of both constructors. keep_order: the nodes must stand
 * right. Mistakes that tally has counted before count too. 0, -ENOMEM, AF_GRAPH_E_INVALID.
 */
int af_graph_finish(struct af_graph *g, bool keep_order, struct af_tally *tally) AF_WARN_UNUSED;

/* A private copy of the pool for g, in g's arena: it grows without the other. 0 or -ENOMEM. */
int af_graph_copy_exprs(struct af_graph *g, const struct af_expr_pool *from) AF_WARN_UNUSED;

/* The place of a node for diagnostics. */
struct af_where af_where_node(const struct af_graph *g, uint32_t node);
