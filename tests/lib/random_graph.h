/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded random fragments and inputs for differential tests (fused against reference). One seed, one fragment, on every machine. */
#pragma once

#include "compiler/graph/graph.h"
#include "compiler/reference/reference.h"

/* All zero: the defaults in parentheses. */
struct af_random_opts {
        uint32_t n_nodes;      /* about as many; casts between dtypes come on top (1 to 12, by seed) */
        uint32_t dtypes;       /* AF_DTYPE_BIT mask of inputs and casts (all but float64) */
        uint32_t classes;      /* 1u << enum af_op_class (elementwise to views) */
        const enum af_op *ops; /* ends with AF_OP_INVALID: only these (NULL: every op of the classes) */
        int64_t max_elements;  /* of any value (6000) */
        uint32_t max_rank;     /* (4) */
        bool contiguous_only;  /* no strides, offsets, broadcast inputs' stride 0 */
        bool no_scalars;       /* no constants and host inputs */
        bool no_empty;         /* no zero-size axes */
        bool in_place;         /* now and then an output takes an input's memory */
        bool mixed;            /* half of the nodes elementwise, the rest by class: reductions, views, movement, composites */
        bool chains;           /* operands are the newest values: deep graphs */
        bool output_strides;   /* a quarter of the outputs state strides of their own */
        bool outputs;          /* half of all values are outputs */
        uint32_t n_inputs;     /* (1 to 4, by seed) */
        uint32_t n_symbols;    /* of the main shape's axes, at most 2: symbolic sizes, with ranges and multiples (0) */
        const char *soc;       /* target (NULL) */
};

#define AF_RANDOM_ALL_CLASSES (~(1u << AF_CLASS_OPAQUE))

/* Kinds of fragments for tests, by number: 0 the defaults; then deep, many outputs, wide (many inputs), reductions and views, narrow
 * integers, long runs, high rank. From AF_RANDOM_PROFILES on, over the whole table: mixed, deep, movement, composites. From
 * AF_RANDOM_ALL_PROFILES on with symbols: one, two; one and two over the whole table. */
#define AF_RANDOM_PROFILES        8u
#define AF_RANDOM_ALL_PROFILES    12u
#define AF_RANDOM_SYMBOL_PROFILES 4u
void af_random_profile(unsigned profile, struct af_random_opts *ret_opts);

/*
 * Builds a valid fragment in arena: ops of the table, dtypes, broadcasting, reductions, views, scalar constants (wide ones and special
 * values too), strided inputs, several outputs, some values used more than once. opts may be NULL. 0 or -ENOMEM.
 */
int af_random_fragment(struct af_fragment *f, struct af_arena *arena, uint64_t seed, const struct af_random_opts *opts) AF_WARN_UNUSED;

/* Memory for one input of a graph. */
struct af_random_input {
        void *base;              /* where the input's pointer points: heap, 64-aligned */
        size_t n_bytes;          /* from base on */
        struct af_tensor tensor; /* strides as stated; data = base + offset */
};
/*
 * Fills one entry per input of g (static shapes): memory with every bit set in gaps (NaN for floats), data by af_tensor_fill; negative
 * and far-out indices occur. Inputs of one buffer share memory. 0, -ENOMEM, or -EINVAL for symbolic shapes. Free with
 * af_random_inputs_free.
 */
int af_random_inputs(const struct af_graph *g, uint64_t seed, bool specials, struct af_random_input **ret_inputs) AF_WARN_UNUSED;
void af_random_inputs_free(struct af_random_input *inputs, uint32_t n);
