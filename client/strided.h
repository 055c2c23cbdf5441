/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between strided tensors of one shape. */
#pragma once

#include "base/macros.h"

/* Row-major strides, elements. */
void af_strided_dense(const int64_t *dims, uint32_t rank, int64_t *ret_strides);
/* Copies every element; strides in elements, size in bytes of one. dst and src do not overlap. rank <= 16; an empty shape copies nothing.
 */
void af_strided_copy(void *dst, const int64_t *dst_strides, const void *src, const int64_t *src_strides, const int64_t *dims, uint32_t rank,
                     size_t size);
