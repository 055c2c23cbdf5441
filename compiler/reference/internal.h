/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of the interpreter. Private to compiler/reference. */
#pragma once

#include "compiler/reference/view.h"

/* Each evaluates one node of its class: as af_reference_node. */
int af_reference_elementwise(const struct af_graph *g, const struct af_node *n, const struct af_tensor *in, struct af_tensor *out,
                             const char **ret_why) AF_WARN_UNUSED;
int af_reference_reduce(const struct af_node *n, const struct af_tensor *in, struct af_tensor *out, const char **ret_why) AF_WARN_UNUSED;
int af_reference_gather(const struct af_node *n, const struct af_tensor *in, struct af_tensor *out, const char **ret_why) AF_WARN_UNUSED;

/* Dense copy of t, or t's own memory where that is dense; *ret_owned: free() it (NULL: borrowed). */
int af_reference_dense(const struct af_tensor *t, const void **ret_data, void **ret_owned) AF_WARN_UNUSED;
