/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of the interpreter. Private to compiler/reference. */
#pragma once

#include "compiler/reference/view.h"

/* A node to evaluate. */
struct af_reference_node {
        const struct af_graph *g;
        const struct af_node *n;
        const int64_t *symbols; /* values of the graph's symbols; NULL: not known */
        const char **ret_why;   /* not NULL */
};
/* As af_reference_node; attributes over symbols have their values. */
int af_reference_node_with(const struct af_reference_node *r, const struct af_tensor *in, struct af_tensor *out) AF_WARN_UNUSED;

/* Each evaluates one node of its class: as af_reference_node. */
int af_reference_move(const struct af_reference_node *r, const struct af_tensor *in, struct af_tensor *out) AF_WARN_UNUSED;
int af_reference_composite(const struct af_reference_node *r, const struct af_tensor *in, struct af_tensor *out) AF_WARN_UNUSED;
int af_reference_scan(const struct af_reference_node *r, const struct af_tensor *in, struct af_tensor *out) AF_WARN_UNUSED;
int af_reference_elementwise(const struct af_graph *g, const struct af_node *n, const struct af_tensor *in, struct af_tensor *out,
                             const char **ret_why) AF_WARN_UNUSED;
int af_reference_reduce(const struct af_graph *g, const struct af_node *n, const struct af_tensor *in, struct af_tensor *out,
                        const char **ret_why) AF_WARN_UNUSED;
int af_reference_gather(const struct af_node *n, const struct af_tensor *in, struct af_tensor *out, const char **ret_why) AF_WARN_UNUSED;

/* Elements of one tensor to another of the same shape. 0 or -ENOMEM. */
int af_reference_copy(const struct af_tensor *from, const struct af_tensor *to) AF_WARN_UNUSED;
/* Dense copy of t, or t's own memory where that is dense; *ret_owned: free() it (NULL: borrowed). */
int af_reference_dense(const struct af_tensor *t, const void **ret_data, void **ret_owned) AF_WARN_UNUSED;

/* The value as a double: exact for all but int64 beyond 2^53. */
double af_reference_number(const void *p, enum af_dtype d);
/* v as a float dtype has it, by way of float32 but for float64. */
void af_reference_float_put(void *p, enum af_dtype d, double v);
/* An elementwise op with float64 among its operands or as its result, n elements; srcs[k] as in af_eval_op. 0 or UNSUPPORTED. */
int af_reference_float64(enum af_op op, const struct af_expand_operand *operands, uint32_t n_in, enum af_dtype out_dtype,
                         const struct af_expand_attrs *attrs, const void *const *srcs, void *dst, int64_t n) AF_WARN_UNUSED;
