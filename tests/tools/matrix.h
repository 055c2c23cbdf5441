/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of `matrix`. */
#pragma once

#include "tests/lib/maker.h"
#include "tests/lib/runner.h"

struct matrix {
        struct runner runner;
        struct maker maker; /* of the case being made */
        char what[160];
        const char *only; /* case names must contain it; NULL: all */
        bool quick;       /* a part of each table, another one per op and dtype */
        uint64_t n_cases, n_skipped;
};

/* A case: begin names it and starts its fragment (false: not wanted); end hands the fragment to the runner. */
bool matrix_begin(struct matrix *x, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void matrix_end(struct matrix *x);
#define SHAPE(...)   (&(const struct maker_shape){.rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dims = {__VA_ARGS__}})
#define SCALAR_SHAPE (&(const struct maker_shape){.rank = 0})

void matrix_ops(struct matrix *x);    /* matrix_ops.c: op x dtype x shape x operand forms */
void matrix_reduce(struct matrix *x); /* matrix_reduce.c: reductions */
void matrix_graphs(struct matrix *x); /* matrix_graphs.c: strides, views, long runs, large groups */
