/* SPDX-License-Identifier: Apache-2.0 */
#include "client/strided.h"

#include <string.h>

void af_strided_dense(const int64_t *dims, uint32_t rank, int64_t *ret_strides) {
        int64_t s = 1;
        for (uint32_t i = rank; i-- > 0;) {
                ret_strides[i] = s;
                s *= AF_MAX(dims[i], 1);
        }
}

/* The innermost axis. */
static void copy_row(uint8_t *dst, int64_t dst_step, const uint8_t *src, int64_t src_step, int64_t n, size_t size) {
        if (dst_step == (int64_t)size && src_step == (int64_t)size) {
                memcpy(dst, src, (size_t)n * size);
                return;
        }
        for (int64_t i = 0; i < n; i++, dst += dst_step, src += src_step)
                memcpy(dst, src, size);
}

void af_strided_copy(void *dst, const int64_t *dst_strides, const void *src, const int64_t *src_strides, const int64_t *dims, uint32_t rank,
                     size_t size) {
        int64_t index[16] = {0};
        uint8_t *d = dst;
        const uint8_t *s = src;
        for (uint32_t i = 0; i < rank; i++)
                if (dims[i] == 0)
                        return;
        if (rank == 0) {
                memcpy(d, s, size);
                return;
        }
        uint32_t last = rank - 1;
        int64_t bytes = (int64_t)size;
        for (;;) {
                copy_row(d, dst_strides[last] * bytes, s, src_strides[last] * bytes, dims[last], size);
                uint32_t axis = last;
                for (;;) {
                        if (axis-- == 0)
                                return;
                        d += dst_strides[axis] * bytes;
                        s += src_strides[axis] * bytes;
                        if (++index[axis] < dims[axis])
                                break;
                        d -= dst_strides[axis] * bytes * dims[axis];
                        s -= src_strides[axis] * bytes * dims[axis];
                        index[axis] = 0;
                }
        }
}
