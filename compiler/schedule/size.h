/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes that depend on symbols. Two forms: in the space (axes*.c) one int64_t, which from AF_SIZE_TAG on is no number but that tag plus an
 * expression of the graph; sums of terms are equal where the ints are. In passes and phases a number at the symbols' hints, and beside it
 * `x`: the expression plus one, 0 where it is constant. Expressions are added to the graph's pool, which only grows.
 */
#pragma once

#include "compiler/graph/graph.h"

#define AF_SIZE_TAG (INT64_C(1) << 62)

static inline bool af_size_is_symbolic(int64_t s) {
        return s >= AF_SIZE_TAG;
}
/* Size of an expression of g. */
int64_t af_size_from(const struct af_graph *g, uint32_t expr);
/* Its value at the hints. */
int64_t af_size_hint(const struct af_graph *g, int64_t s);
/* 0 where it is constant, else its expression plus one. */
uint32_t af_size_x(int64_t s);
/* Number and x as one. */
int64_t af_size_join(int64_t n, uint32_t x);
/* a * b, a + b, ceil(a / b), floor(a / b) where b divides a: false where that is not so or does not fit 62 bits. */
bool af_size_mul(const struct af_graph *g, int64_t a, int64_t b, int64_t *ret);
bool af_size_add(const struct af_graph *g, int64_t a, int64_t b, int64_t *ret);
bool af_size_ceil_div(const struct af_graph *g, int64_t a, int64_t b, int64_t *ret);
bool af_size_divide(const struct af_graph *g, int64_t a, int64_t b, int64_t *ret);
bool af_size_min(const struct af_graph *g, int64_t a, int64_t b, int64_t *ret);
bool af_size_max(const struct af_graph *g, int64_t a, int64_t b, int64_t *ret);
/* Greatest value that it can take; INT64_MAX where that is not known. */
int64_t af_size_most(const struct af_graph *g, int64_t s);
/* Least value that it can take; INT64_MIN where that is not known. */
int64_t af_size_least(const struct af_graph *g, int64_t s);

/* Dims, strides and offset of a value (row-major where it states no strides). False where a stride does not fit. */
void af_size_dims(const struct af_graph *g, uint32_t value, int64_t *ret_dims);
bool af_size_strides(const struct af_graph *g, uint32_t value, int64_t *ret_strides);
