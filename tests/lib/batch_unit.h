/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/buf.h"
#include "tests/lib/batch.h"

#define BATCH_INCLUDE "#include \"kernel_operator.h\"\n"

/*
 * One translation unit of many kernels, each the function af_batch_<i>. What they have in common is written once: kernels with the same
 * helpers lie in one namespace with them, and of kernels that differ in nothing but the values of their sizes the first gives the body
 * and the others their entries, with their own sizes. Aborts without memory.
 */
void batch_unit_write(struct af_buf *out, struct batch_kernel *const *kernels, uint32_t n);
