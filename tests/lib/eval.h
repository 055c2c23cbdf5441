/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in, numbers out: runs a fragment text through the reference. */
#pragma once

#include "compiler/reference/reference.h"
#include "tests/lib/fragment_text.h"

struct af_test_eval {
        struct af_test_graph t;
        struct af_tensor *outputs;
        int r; /* of af_reference_run; -1000 where the fragment was refused */
        const char *why;
};

/*
 * inputs: per input of the fragment its elements in row-major order, as doubles (exact for all but int64 beyond 2^53); they are laid out
 * with the strides that the fragment states, gaps filled with NaN bits. Always followed by af_test_eval_deinit.
 */
void af_test_eval(struct af_test_eval *e, const char *text, const double *const *inputs);
void af_test_eval_deinit(struct af_test_eval *e);
/* Element i of output k as a double. */
double af_test_output(const struct af_test_eval *e, uint32_t k, int64_t i);

double af_test_number_get(const void *p, enum af_dtype d);
/* Nearest value of the dtype; integers wrap. */
void af_test_number_put(void *p, enum af_dtype d, double v);
/* Fills t, strided as it is, with values in row-major order. */
void af_test_numbers_put(struct af_tensor *t, const double *values);
