/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/reference/view.h"

#include <string.h>

int64_t af_tensor_count(const struct af_tensor *t) {
        int64_t n = 1;

        for (uint32_t i = 0; i < t->rank; i++)
                n *= t->dims[i];
        return n;
}

void af_tensor_make_dense(struct af_tensor *t) {
        int64_t next = 1;

        for (uint32_t i = t->rank; i-- > 0;) {
                t->strides[i] = next;
                next *= t->dims[i];
        }
}

/* Drops unit axes and merges an axis into the one outside of it where the two are one walk. */
static void collapse(struct af_view *v) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < v->rank; i++) {
                if (v->dims[i] == 1)
                        continue;
                if (n > 0 && v->strides[n - 1] == v->strides[i] * v->dims[i]) {
                        v->dims[n - 1] *= v->dims[i];
                        v->strides[n - 1] = v->strides[i];
                        continue;
                }
                v->dims[n] = v->dims[i];
                v->strides[n++] = v->strides[i];
        }
        v->rank = n;
}

bool af_view_broadcast(const struct af_tensor *t, uint32_t rank, const int64_t *dims, struct af_view *ret) {
        struct af_view v = {.data = t->data, .elem_bytes = af_dtype_size(t->dtype), .rank = rank, .count = 1};

        if (t->rank > rank)
                return false;
        for (uint32_t i = 0; i < rank; i++) {
                uint32_t missing = rank - t->rank;
                int64_t d = i < missing ? 1 : t->dims[i - missing];
                if (d != dims[i] && d != 1)
                        return false;
                v.dims[i] = dims[i];
                v.strides[i] = d == dims[i] && i >= missing ? t->strides[i - missing] : 0;
                v.count *= dims[i];
        }
        if (v.count > 0)
                collapse(&v);
        *ret = v;
        return true;
}

void af_view_of(const struct af_tensor *t, struct af_view *ret) {
        if (!af_view_broadcast(t, t->rank, t->dims, ret))
                __builtin_unreachable(); /* a shape broadcasts to itself */
}

bool af_view_is_dense(const struct af_view *v) {
        return v->count == 0 || v->rank == 0 || (v->rank == 1 && v->strides[0] == 1);
}

#define COPY_RUN(T)                                                                                                                        \
        do {                                                                                                                               \
                T *d = (T *)dst;                                                                                                           \
                const T *s = (const T *)src;                                                                                               \
                for (int64_t i = 0; i < n; i++)                                                                                            \
                        d[i * dst_stride] = s[i * src_stride];                                                                             \
        } while (0)

/* n elements, strides in elements. */
static void copy_run(char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t n, unsigned elem_bytes) {
        if (dst_stride == 1 && src_stride == 1) {
                memcpy(dst, src, (size_t)n * elem_bytes);
                return;
        }
        switch (elem_bytes) {
        case 1:
                COPY_RUN(uint8_t);
                break;
        case 2:
                COPY_RUN(uint16_t);
                break;
        case 4:
                COPY_RUN(uint32_t);
                break;
        case 8:
                COPY_RUN(uint64_t);
                break;
        }
}

/* Walks elements [start, start + n) in runs of the innermost axis. */
static void transfer(const struct af_view *v, int64_t start, int64_t n, char *dense, bool read) {
        int64_t index[AF_LIMIT_RANK], at = 0, rest = start;

        if (n == 0)
                return;
        for (uint32_t i = v->rank; i-- > 0;) {
                index[i] = rest % v->dims[i];
                rest /= v->dims[i];
                at += index[i] * v->strides[i];
        }
        while (n > 0) {
                uint32_t last = v->rank > 0 ? v->rank - 1 : 0;
                int64_t stride = v->rank > 0 ? v->strides[last] : 1;
                int64_t run = v->rank > 0 ? AF_MIN(n, v->dims[last] - index[last]) : n;
                char *p = v->data + at * v->elem_bytes;
                if (read)
                        copy_run(dense, 1, p, stride, run, v->elem_bytes);
                else
                        copy_run(p, stride, dense, 1, run, v->elem_bytes);
                dense += run * v->elem_bytes;
                n -= run;
                if (n == 0)
                        break;
                at += run * stride;
                index[last] += run;
                for (uint32_t i = last; i > 0 && index[i] == v->dims[i]; i--) {
                        at += v->strides[i - 1] - v->dims[i] * v->strides[i];
                        index[i] = 0;
                        index[i - 1]++;
                }
        }
}

void af_view_read(const struct af_view *v, int64_t start, int64_t n, void *dst) {
        transfer(v, start, n, dst, true);
}

void af_view_write(const struct af_view *v, int64_t start, int64_t n, const void *src) {
        transfer(v, start, n, (char *)src, false);
}
