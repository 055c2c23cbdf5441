/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/graph/layout.h"

#include <errno.h>
#include <stdlib.h>

int af_layout_contiguous(struct af_expr_pool *exprs, struct af_arena *arena, const uint32_t *dims, uint32_t rank, uint32_t **ret) {
        uint32_t *strides = af_arena_calloc(arena, rank, sizeof(*strides)), next;
        int r = af_expr_const(exprs, 1, &next);

        if (!strides)
                return -ENOMEM;
        for (uint32_t i = rank; i-- > 0 && r == 0;) {
                strides[i] = next;
                if (i > 0)
                        r = af_expr_binary(exprs, AF_EXPR_MUL, next, dims[i], &next);
        }
        if (r == 0)
                *ret = strides;
        return r;
}

int af_layout_is_contiguous(struct af_expr_pool *exprs, const uint32_t *dims, const uint32_t *strides, uint32_t rank, bool *ret) {
        uint32_t expected;
        int r = af_expr_const(exprs, 1, &expected);

        *ret = false;
        for (uint32_t i = rank; i-- > 0 && r == 0;) {
                if (strides[i] != expected)
                        return 0;
                if (i > 0)
                        r = af_expr_binary(exprs, AF_EXPR_MUL, expected, dims[i], &expected);
        }
        *ret = r == 0;
        return r < 0 ? r : 0;
}

/* Constant dims and strides; false where one is symbolic. strides NULL: row-major. */
static bool static_layout(const struct af_expr_pool *exprs, const uint32_t *dims, const uint32_t *strides, uint32_t rank, int64_t *d,
                          int64_t *s) {
        int64_t next = 1;

        for (uint32_t i = rank; i-- > 0;) {
                if (!af_expr_is_const(exprs, dims[i], &d[i]))
                        return false;
                s[i] = next;
                if (strides && !af_expr_is_const(exprs, strides[i], &s[i]))
                        return false;
                if (!strides && __builtin_mul_overflow(next, d[i], &next))
                        return false;
        }
        return true;
}

const char *af_layout_check(const struct af_expr_pool *exprs, const uint32_t *dims, const uint32_t *strides, uint32_t rank, uint32_t offset,
                            unsigned elem_bytes) {
        int64_t d[AF_LIMIT_RANK], s[AF_LIMIT_RANK], low = 0, high, reach;

        if (offset != AF_NONE && !af_expr_is_const(exprs, offset, &low))
                return NULL;
        if (!static_layout(exprs, dims, strides, rank, d, s))
                return NULL;
        high = low;
        for (uint32_t i = 0; i < rank; i++) {
                if (d[i] <= 0)
                        return NULL; /* no element */
                if (__builtin_mul_overflow(s[i], d[i] - 1, &reach) ||
                    __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high))
                        return "the elements reach beyond 64 bits";
        }
        if (low < 0)
                return "elements lie before the pointer";
        if (high >= AF_LAYOUT_MAX_BYTES / elem_bytes)
                return "the elements reach beyond the limit of 2^47 bytes";
        return NULL;
}

static int compare_axes(const void *a, const void *b) {
        const int64_t *x = a, *y = b; /* {|stride|, dim} */

        if (x[0] != y[0])
                return x[0] < y[0] ? -1 : 1;
        return x[1] < y[1] ? -1 : x[1] > y[1];
}

bool af_layout_overlaps(const struct af_expr_pool *exprs, const uint32_t *dims, const uint32_t *strides, uint32_t rank) {
        int64_t d[AF_LIMIT_RANK], s[AF_LIMIT_RANK], axes[AF_LIMIT_RANK][2], reach = 0, step, v, w;
        uint32_t n = 0;

        if (!static_layout(exprs, dims, strides, rank, d, s)) {
                for (uint32_t i = 0; strides && i < rank; i++)
                        if (af_expr_is_const(exprs, strides[i], &v) && v == 0 && !(af_expr_is_const(exprs, dims[i], &w) && w <= 1))
                                return true;
                return false;
        }
        for (uint32_t i = 0; i < rank; i++) {
                if (d[i] == 0)
                        return false;
                if (d[i] == 1)
                        continue;
                axes[n][0] = s[i] == INT64_MIN ? INT64_MAX : llabs(s[i]);
                axes[n++][1] = d[i];
        }
        qsort(axes, n, sizeof(axes[0]), compare_axes);
        for (uint32_t i = 0; i < n; i++) {
                if (axes[i][0] <= reach)
                        return true;
                if (__builtin_mul_overflow(axes[i][0], axes[i][1] - 1, &step) || __builtin_add_overflow(reach, step, &reach))
                        return true;
        }
        return false;
}
