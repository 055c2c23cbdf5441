/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle: evaluates a graph node by node from numeric/'s definitions, every op of the table. Also runs fallback nodes for
 * `autofusectl run`. Slow and simple on purpose; static shapes only (symbols are bound by the caller).
 */
#pragma once

#include "compiler/graph/graph.h"

/* A dense or strided tensor in host memory. */
struct af_tensor {
        enum af_dtype dtype;
        uint32_t rank;
        int64_t dims[AF_LIMIT_RANK];
        int64_t strides[AF_LIMIT_RANK]; /* elements */
        void *data;                     /* address of element [0, 0, ...] */
};

enum { AF_REFERENCE_E_UNSUPPORTED = 1, AF_REFERENCE_E_SHAPE = 2 };

/* Evaluates one node: in[] and out[] with their memory, out dense or strided. Attributes must be free of symbols. 0, -ENOMEM, positive
 * with *ret_why. */
int af_reference_node(const struct af_graph *g, const struct af_node *n, const struct af_tensor *in, struct af_tensor *out,
                      const char **ret_why) AF_WARN_UNUSED;
/*
 * Evaluates the whole graph. inputs: one per graph input (strides as stated by the graph). ret_outputs: one per graph output, data malloc'd
 * dense row-major (free each). ret_values (may be NULL): array of n_values tensors, every value dense, for node-by-node comparison; free
 * with af_reference_values_free. Opaque nodes: UNSUPPORTED.
 */
int af_reference_run(const struct af_graph *g, const struct af_tensor *inputs, struct af_tensor *ret_outputs, struct af_tensor **ret_values,
                     const char **ret_why) AF_WARN_UNUSED;
void af_reference_values_free(struct af_tensor *values, uint32_t n);

/* Elements that differ: bits, where all NaNs are one and -0.0 differs from +0.0. ret_max_error: largest |a-b| / max(|b|, 1e-30) over finite
 * pairs. */
uint64_t af_tensor_compare(const struct af_tensor *a, const struct af_tensor *b, double *ret_max_error, uint64_t *ret_first);
/* Deterministic test data: ordinary values, or with specials also NaN, inf, -0.0, subnormals, extreme integers. */
void af_tensor_fill(struct af_tensor *t, uint64_t seed, bool specials);
