/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor as a sequence of elements in row-major order of some logical shape. Private to compiler/reference. */
#pragma once

#include "compiler/reference/reference.h"

struct af_view {
        char *data;
        unsigned elem_bytes;
        uint32_t rank; /* axes that can be walked as one are merged, unit axes dropped */
        int64_t dims[AF_LIMIT_RANK], strides[AF_LIMIT_RANK];
        int64_t count; /* elements */
};

/* t as if it had the logical shape dims (numpy broadcast). False where it does not broadcast. */
bool af_view_broadcast(const struct af_tensor *t, uint32_t rank, const int64_t *dims, struct af_view *ret) AF_WARN_UNUSED;
/* t as it is. */
void af_view_of(const struct af_tensor *t, struct af_view *ret);
/* Whether the elements stand one after another in memory from data on. */
bool af_view_is_dense(const struct af_view *v);
/* Copies elements [start, start + n) to or from dense memory. */
void af_view_read(const struct af_view *v, int64_t start, int64_t n, void *dst);
void af_view_write(const struct af_view *v, int64_t start, int64_t n, const void *src);

/* Elements of a shape; the caller has checked that it fits memory. */
int64_t af_tensor_count(const struct af_tensor *t);
/* Row-major strides for the tensor's dims. */
void af_tensor_make_dense(struct af_tensor *t);
