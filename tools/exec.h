/* SPDX-License-Identifier: Apache-2.0 */
/* Running a bundle on the twin with given inputs, nodes left to the framework evaluated by the reference, and comparing. */
#pragma once

#include "client/bundle.h"
#include "compiler/reference/reference.h"
#include "tools/frag.h"

/* A tensor with memory of its own. */
struct af_exec_tensor {
        struct af_tensor t; /* t.data lies in memory, offset applied */
        uint8_t *memory;    /* malloc'd, 64-aligned; the pointer that an input's offset counts from; NULL where it shares another's */
        uint64_t n_bytes;
        uint8_t *base; /* memory, or the other input's where they share a buffer */
};
struct af_exec {
        const struct af_frag *frag;
        struct af_exec_tensor *inputs;  /* per input of the fragment */
        struct af_exec_tensor *outputs; /* per output; after af_exec_run: the results */
        struct af_tensor *expected;     /* per output, dense; after af_exec_reference */
        struct af_run_stats stats;
        uint32_t n_fallback_calls;
        uint64_t run_us;
};
/* Memory for inputs: gaps between strided elements hold NaN. Prints to stderr why not (symbolic shapes). 0 or AF_EXIT_FAILED. */
int af_exec_init(struct af_exec *x, const struct af_frag *frag) AF_WARN_UNUSED;
void af_exec_deinit(struct af_exec *x);
/* Test data from a seed; indices of gathers in range. */
void af_exec_fill(struct af_exec *x, uint64_t seed, bool specials);
/* Dense row-major elements of input i from a file. 0 or AF_EXIT_FAILED. */
int af_exec_read(struct af_exec *x, uint32_t input, const char *path) AF_WARN_UNUSED;
/* Expected outputs by the interpreter; before af_exec_run, which may update inputs in place. 0 or AF_EXIT_FAILED with a line on stderr. */
int af_exec_reference(struct af_exec *x) AF_WARN_UNUSED;
enum autofuse_status af_exec_run(struct af_exec *x, struct autofuse_bundle *bundle, bool stats,
                                 struct autofuse_error **ret_error) AF_WARN_UNUSED;
/* Dense row-major bytes of output i to a file. 0 or AF_EXIT_FAILED. */
int af_exec_write(const struct af_exec *x, uint32_t output, const char *path) AF_WARN_UNUSED;
/* "[256, 100]" of static dims, "[s0, 100]" of symbolic ones. */
void af_exec_shape(const struct af_graph *g, uint32_t value, struct af_buf *buf);
