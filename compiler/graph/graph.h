/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graph IR: a fragment with meaning. Values and nodes are linked by 32-bit ids; nodes stand in topological order; all memory is the
 * job's arena. Built from a parsed fragment (af_graph_from_fragment) or from canonical bytes (af_canon_read).
 */
#pragma once

#include "numeric/expand.h"
#include "proto/fragment.h"

enum af_value_kind { AF_VALUE_INPUT, AF_VALUE_CONST, AF_VALUE_NODE };

struct af_value {
        enum af_value_kind kind;
        enum af_dtype dtype;
        uint32_t rank;
        const uint32_t *dims;    /* expression ids */
        const uint32_t *strides; /* expression ids, elements; NULL: row-major contiguous */
        uint32_t index;          /* INPUT: into inputs[]; CONST: into constants[]; NODE: the producing node */
        uint32_t out_index;      /* NODE: which of its outputs */
        const char *name;        /* sender's; NULL when read from canonical bytes */
        uint32_t varies;         /* bit i: dims[i] was made a number by af_graph_bind(). See af_value_varies() */
};
struct af_graph_input {
        uint32_t value;
        uint32_t offset; /* expression id, elements */
        uint32_t align;  /* bytes, never 0 */
        uint32_t buffer; /* group number of shared memory; each input without `buffer` has its own */
        bool host;
};
struct af_graph_constant {
        uint32_t value;
        const uint8_t *bytes;
        size_t n_bytes;
};
struct af_node { /* a cache line */
        enum af_op op;
        uint32_t n_in, n_out, n_attrs;
        const uint32_t *in, *out;    /* value ids */
        const struct af_attr *attrs; /* sorted by key; defaults filled in; axes normalised: non-negative, sorted, unique */
        const char *name, *origin;   /* not in the key; may be NULL */
        uint32_t source;             /* index of this node in the sender's list (canonical bytes: its own number) */
        bool effects;
        bool piece; /* only a part of node `source`, made by compiler/rewrite: no step of its own */
};
struct af_graph_output {
        uint32_t value;
        const uint32_t *strides; /* NULL: as the value has them */
        uint32_t alias_of;       /* index into inputs[], or AF_NONE */
};
struct af_graph_symbol {
        const char *name; /* may be NULL */
        int64_t min, max, multiple_of, hint;
};

struct af_graph {
        struct af_arena *arena;
        struct af_expr_pool exprs;
        const char *name;            /* not in the key */
        const char *soc, *toolchain; /* NULL: default */
        enum af_twin twin;
        enum af_numerics numerics;
        struct af_value *values;
        struct af_node *nodes;
        struct af_graph_input *inputs;
        struct af_graph_constant *constants;
        struct af_graph_output *outputs;
        struct af_graph_symbol *symbols;
        uint32_t n_values, n_nodes, n_inputs, n_constants, n_outputs, n_symbols;
        bool not_in_place; /* known: no output takes an input's memory, so that nobody need look through them */
};

enum { AF_GRAPH_E_INVALID = 1 };

/*
 * Resolves names, looks ops up, infers each node's output dtype and shape and compares with what is stated, checks attributes,
 * cycles, aliasing (undeclared overlap of outputs and inputs, a read after an in-place update), overlap declared by `buffer`. Nodes may
 * come in any order. Reports several mistakes with node and field. f and its arena outlive the graph. 0, -ENOMEM, AF_GRAPH_E_INVALID.
 */
int af_graph_from_fragment(struct af_graph *g, const struct af_fragment *f, struct af_diags *diags) AF_WARN_UNUSED;
/* Invariants that every pass keeps: ids in range, topological order, inferred = stated. For debug builds and tests. */
int af_graph_check(const struct af_graph *g, struct af_diags *diags) AF_WARN_UNUSED;

const struct af_attr *af_node_attr(const struct af_node *n, enum af_attr_key key); /* NULL where absent */
/* Whether the op has no result over an axis of size 0 that it reduces: a maximum or minimum of nothing, or the place of one. */
bool af_op_wants_some(enum af_op op);
/* Whether the node is such an op and reduces axis of its operand. */
bool af_node_wants_some(const struct af_node *n, uint32_t axis);
/* Items of a list attribute as numbers, at most AF_LIMIT_ATTR_ITEMS; *ret_n how many. False where it is absent or one is symbolic. */
bool af_node_attr_ints(const struct af_graph *g, const struct af_node *n, enum af_attr_key key, int64_t *ret_ints, uint32_t *ret_n);
/* Static dims of a value into dims[rank]; false where one is symbolic. */
bool af_value_static_dims(const struct af_graph *g, uint32_t value, int64_t *ret_dims);
/* Values that stand in for the symbols where a plan needs numbers: the sender's hints, else a middling size. values has n_symbols entries.
 */
void af_graph_hints(const struct af_graph *g, int64_t *values);
/* Bit i: the size of axis i is a symbol's, or was before af_graph_bind(): a reduction's order does not take it for a unit axis, even where
 * it is 1 (docs/numerics.md). */
uint32_t af_value_varies(const struct af_graph *g, uint32_t value);
/* Every size of g becomes the number that it is for these values of its symbols. 0, -ENOMEM, or an AF_EXPR_E_*. */
int af_graph_bind(struct af_graph *g, const int64_t *values) AF_WARN_UNUSED;
/* Static strides (row-major where the value states none); false where symbolic. */
bool af_value_static_strides(const struct af_graph *g, uint32_t value, int64_t *ret_strides);
/* Whether the operand counts as a scalar of the dtype rules: a constant of shape [], or a host input. */
bool af_value_is_scalar(const struct af_graph *g, uint32_t value);
/* n elements, 0 where one size is 0 whatever the others are, or -1 where symbolic or beyond int64. */
int64_t af_value_count(const struct af_graph *g, uint32_t value);
/* A float64 input of shape []: it changes per call; kernels take it as float32, by bit operations. */
bool af_value_is_wide_scalar(const struct af_value *v);
/* A constant of shape []: its bits, zero-extended. */
bool af_value_scalar(const struct af_graph *g, uint32_t value, uint64_t *ret_bits);
/* Users of each value, CSR: users of v are list[first[v] .. first[v+1]). In the graph's arena. */
int af_graph_users(const struct af_graph *g, uint32_t **ret_first, uint32_t **ret_list) AF_WARN_UNUSED;
/*
 * Order that no operand shows, CSR over nodes: before node i must stand list[first[i] .. first[i+1]). Effectful nodes keep the sender's
 * order; every reader of an input's old value (views of it count) stands before the node whose result replaces it in place. Passes
 * keep it. In the graph's arena.
 */
int af_graph_order_edges(const struct af_graph *g, uint32_t **ret_first, uint32_t **ret_list) AF_WARN_UNUSED;
/* Sorts nodes anew over operands and these edges where they do not stand right. 0, -ENOMEM, AF_GRAPH_E_INVALID: a cycle. */
int af_graph_reorder(struct af_graph *g) AF_WARN_UNUSED;
/* Operand descriptions and attributes of an elementwise node, as numeric/expand.h wants them; operands has n_in entries. */
void af_node_expand_args(const struct af_graph *g, const struct af_node *n, struct af_expand_operand *operands,
                         struct af_expand_attrs *ret_attrs);

/*
 * Infers one node's outputs from its operands and attributes. dims are written as expression ids into arrays from the arena.
 * Used by the checker and by importers and front ends, which need not state what can be inferred. 0, -ENOMEM, AF_GRAPH_E_INVALID.
 */
struct af_inferred {
        enum af_dtype dtype; /* INVALID: must be declared (cast, opaque, reduce_sum of narrow integers) */
        uint32_t rank;
        const struct af_attr *attrs; /* those given, in normal form */
        uint32_t n_attrs;
        const uint32_t *dims;  /* of every output but for the sizes below */
        uint32_t n_out;        /* outputs: 1, or as many as split has sizes */
        uint32_t axis;         /* with sizes */
        const uint32_t *sizes; /* per output, on axis; NULL: one output */
};
/* Size of an output on an axis, as an expression id. */
uint32_t af_inferred_dim(const struct af_inferred *inferred, uint32_t out, uint32_t axis);
struct af_infer_operand {
        enum af_dtype dtype;
        uint32_t rank;
        const uint32_t *dims;
        bool scalar; /* a constant of shape [] or a host scalar: a float may be wider than the tensors that it meets */
};
int af_infer(struct af_expr_pool *exprs, struct af_arena *arena, enum af_op op, const struct af_infer_operand *operands, uint32_t n,
             const struct af_attr *attrs, uint32_t n_attrs, const char *where, struct af_inferred *ret,
             struct af_diags *diags) AF_WARN_UNUSED;
/* The same with the symbols' ranges, one number each per symbol; both NULL, or bounds NULL: nothing is known of them. */
struct af_infer_bounds {
        const int64_t *mins, *maxs;
};
int af_infer_within(struct af_expr_pool *exprs, struct af_arena *arena, const struct af_infer_bounds *bounds, enum af_op op,
                    const struct af_infer_operand *operands, uint32_t n, const struct af_attr *attrs, uint32_t n_attrs, const char *where,
                    struct af_inferred *ret, struct af_diags *diags) AF_WARN_UNUSED;
