/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graph fragment, `autofuse.fragment/1`: what a front end sends. This is the syntactic form with the sender's names; meaning
 * (op table, inference, canonical form) is compiler/graph's. proto/fragment.schema.json is the same as a JSON Schema.
 *
 * All memory belongs to the fragment's arena. Strings are NUL-terminated UTF-8 without embedded zeros.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/diag.h"
#include "numeric/dtype.h"
#include "proto/expr.h"

/* Limits; each is named in the message that refuses. */
#define AF_LIMIT_TEXT_BYTES     (64u << 20)
#define AF_LIMIT_NODES          200000u
#define AF_LIMIT_VALUES         1000000u
#define AF_LIMIT_RANK           16u
#define AF_LIMIT_ATTR_ITEMS     64u /* of one list attribute */
#define AF_LIMIT_NAME_BYTES     1024u
#define AF_LIMIT_NESTING        32u
#define AF_LIMIT_SYMBOLS        1024u
#define AF_LIMIT_NODE_INPUTS    4096u /* and outputs of one node */
#define AF_LIMIT_OUTPUTS        65536u
#define AF_LIMIT_ALIGN          4096u
#define AF_LIMIT_CONSTANT_BYTES (32u << 20) /* all constants of a fragment together */

/* Attribute keys: values are part of the canonical form, append only. X(id, name, kind) */
#define AF_ATTRS(X)                                                                                                                        \
        X(AXES, "axes", INTS)                                                                                                              \
        X(KEEPDIMS, "keepdims", BOOL)                                                                                                      \
        X(AXIS, "axis", INT)                                                                                                               \
        X(ALPHA, "alpha", FLOAT)                                                                                                           \
        X(MIN, "min", FLOAT)                                                                                                               \
        X(MAX, "max", FLOAT)                                                                                                               \
        X(SHAPE, "shape", DIMS)                                                                                                            \
        X(APPROXIMATE, "approximate", STRING)                                                                                              \
        X(EFFECTS, "effects", BOOL)                                                                                                        \
        X(PERM, "perm", INTS)                                                                                                              \
        X(STARTS, "starts", DIMS)                                                                                                          \
        X(STOPS, "stops", DIMS)                                                                                                            \
        X(STEPS, "steps", INTS)                                                                                                            \
        X(LOW, "low", DIMS)                                                                                                                \
        X(HIGH, "high", DIMS)                                                                                                              \
        X(SIZES, "sizes", DIMS)                                                                                                            \
        X(START, "start", FLOAT)                                                                                                           \
        X(STEP, "step", FLOAT)                                                                                                             \
        X(EXCLUSIVE, "exclusive", BOOL)                                                                                                    \
        X(REVERSE, "reverse", BOOL)                                                                                                        \
        X(EPSILON, "epsilon", FLOAT)                                                                                                       \
        X(GROUPS, "groups", INT)                                                                                                           \
        X(CORRECTION, "correction", FLOAT)                                                                                                 \
        X(SELECT_LAST, "select_last", BOOL)                                                                                                \
        X(DEPTH, "depth", INT)                                                                                                             \
        X(DIAGONAL, "diagonal", INT)                                                                                                       \
        X(REPEATS, "repeats", DIMS)                                                                                                        \
        X(BETA, "beta", FLOAT)                                                                                                             \
        X(GAMMA, "gamma", FLOAT)

enum af_attr_key {
#define AF_X(id, name, kind) AF_ATTR_##id,
        AF_ATTRS(AF_X)
#undef AF_X
                AF_N_ATTRS
};
enum af_attr_kind { AF_ATTR_KIND_INT, AF_ATTR_KIND_INTS, AF_ATTR_KIND_FLOAT, AF_ATTR_KIND_BOOL, AF_ATTR_KIND_STRING, AF_ATTR_KIND_DIMS };
enum af_attr_kind af_attr_kind(enum af_attr_key key);
const char *af_attr_name(enum af_attr_key key);
enum af_attr_key af_attr_from_name(const char *name); /* AF_N_ATTRS where unknown */

struct af_attr {
        enum af_attr_key key;
        /* By kind: */
        int64_t i;            /* INT, BOOL; FLOAT given as an integer (is_int) */
        bool is_int;          /* FLOAT: given as an integer, exact in i; f is its nearest double */
        double f;             /* FLOAT; "nan", "inf", "-inf" as strings in JSON */
        const int64_t *ints;  /* INTS */
        const uint32_t *dims; /* DIMS: expression ids */
        uint32_t n;           /* INTS, DIMS */
        const char *s;        /* STRING */
};

struct af_fragment_symbol {
        const char *name;
        int64_t min, max;    /* defaults 0, INT64_MAX */
        int64_t hint;        /* -1: none; not in the key */
        int64_t multiple_of; /* default 1 */
};

struct af_fragment_tensor {
        const char *name;
        enum af_dtype dtype;
        uint32_t rank;
        const uint32_t *dims; /* expression ids */
        bool has_strides;
        const uint32_t *strides; /* expression ids, elements; valid with has_strides (else row-major contiguous) */
};
struct af_fragment_input {
        struct af_fragment_tensor t;
        uint32_t offset;    /* expression id, elements from the pointer to the first element */
        uint32_t align;     /* bytes of the pointer, a power of two; 0: one element */
        const char *buffer; /* inputs of one name share memory; NULL: memory of its own */
        bool host;          /* a scalar that changes per call, passed by value */
};
struct af_fragment_constant {
        struct af_fragment_tensor t; /* contiguous, all dims constant */
        const uint8_t *bytes;        /* little-endian, n elements */
        size_t n_bytes;
};
struct af_fragment_node {
        const char *name;
        const char *op;     /* canonical name as written; unknown ones are compiler/graph's to refuse */
        const char *origin; /* the framework's name; NULL: none */
        const char *const *inputs;
        const struct af_attr *attrs; /* sorted by key, no duplicates */
        const struct af_fragment_tensor *outputs;
        uint32_t n_inputs, n_attrs, n_outputs;
};
struct af_fragment_output {
        const char *value;
        bool has_strides;
        const uint32_t *strides; /* expression ids; rank of the value */
        uint32_t n_strides;
        const char *alias_of; /* input updated in place; NULL: none */
};
enum af_numerics { AF_NUMERICS_STRICT, AF_NUMERICS_FAST };
enum af_twin { AF_TWIN_DEFAULT, AF_TWIN_FAST, AF_TWIN_CHECKED };

struct af_fragment {
        struct af_arena *arena; /* borrowed: outlives the fragment */
        struct af_expr_pool exprs;
        const char *name;      /* "" where absent */
        const char *soc;       /* target.soc; NULL: the daemon's default */
        const char *toolchain; /* target.toolchain; NULL: default */
        enum af_twin twin;
        enum af_numerics numerics;
        struct af_fragment_symbol *symbols;
        struct af_fragment_input *inputs;
        struct af_fragment_constant *constants;
        struct af_fragment_node *nodes;
        struct af_fragment_output *outputs;
        uint32_t n_symbols, n_inputs, n_constants, n_nodes, n_outputs;
        uint32_t cap_symbols, cap_inputs, cap_constants, cap_nodes, cap_outputs;
        uint32_t n_values;       /* inputs, constants and node outputs */
        size_t n_constant_bytes; /* of all constants */
};

enum { AF_FRAGMENT_E_INVALID = 1 /* diagnostics say what */ };

/* Prepares an empty fragment over arena. 0 or -ENOMEM. */
int af_fragment_init(struct af_fragment *f, struct af_arena *arena) AF_WARN_UNUSED;
/*
 * Parses JSON text (need not be NUL-terminated) into a fragment fresh from init. Checks syntax and every field's type and range; refuses
 * duplicate keys, trailing bytes, \u0000, unknown keys, bare integers beyond 2^53, nesting and size limits. Reports several mistakes per
 * run, each with node and field. 0, -ENOMEM, or AF_FRAGMENT_E_INVALID.
 */
int af_fragment_parse(struct af_fragment *f, const char *text, size_t n, struct af_diags *diags) AF_WARN_UNUSED;
/* Prints JSON that parses to the same fragment, constants as bits (so that it may pass AF_LIMIT_TEXT_BYTES where they came as one
 * value); indent 0: one line, else spaces per level. */
void af_fragment_print(const struct af_fragment *f, unsigned indent, struct af_buf *buf);

/*
 * Builder: appends; copies everything that it is given into the arena. Used by importers and the client's C builder. Each returns 0,
 * -ENOMEM or AF_FRAGMENT_E_INVALID with a diagnostic (names over the limit or not UTF-8, rank over the limit, bytes that do not fit the
 * shape, ...). Expression ids are ids of f->exprs. Attributes need not be sorted. A node's strides may be left out. add_output: strides
 * must be the value's rank many, which compiler/graph checks.
 */
int af_fragment_dims_const(struct af_fragment *f, const int64_t *dims, uint32_t rank, const uint32_t **ret_ids) AF_WARN_UNUSED;
int af_fragment_add_symbol(struct af_fragment *f, const struct af_fragment_symbol *s, struct af_diags *diags) AF_WARN_UNUSED;
int af_fragment_add_input(struct af_fragment *f, const struct af_fragment_input *in, struct af_diags *diags) AF_WARN_UNUSED;
int af_fragment_add_constant(struct af_fragment *f, const struct af_fragment_constant *c, struct af_diags *diags) AF_WARN_UNUSED;
int af_fragment_add_node(struct af_fragment *f, const struct af_fragment_node *n, struct af_diags *diags) AF_WARN_UNUSED;
int af_fragment_add_output(struct af_fragment *f, const struct af_fragment_output *o, struct af_diags *diags) AF_WARN_UNUSED;
