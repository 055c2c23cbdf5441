/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of `behaviours`. */
#pragma once

#include "tests/lib/maker.h"
#include "tests/lib/runner.h"
#include "tests/tools/served.h"

#define BEHAVIOURS_TENSORS 128
#define MAX_ONLY           64
#define MAX_FILES          16

struct behaviours {
        struct runner runner;
        struct maker maker; /* of the case being made */
        char what[160];
        const char *only[MAX_ONLY], *files[MAX_FILES]; /* starts of names; NAME=FILE */
        uint32_t n_only, n_files;
        struct served *served; /* NULL: the runner compiles and runs */
        bool all;              /* every dtype of every op, not a part of them */
        uint64_t n_cases;
        const double *in[BEHAVIOURS_TENSORS], *out[BEHAVIOURS_TENSORS]; /* of the case: one per input and output made, in order */
        uint32_t n_in, n_out;
        bool by_hand;     /* some output has numbers */
        const char *text; /* of a case that is a text */
};

/* A case: its name starts with the id of what must hold. False: not wanted. */
bool behaviours_begin(struct behaviours *x, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void behaviours_end(struct behaviours *x);
/* An input with these elements in row-major order (NULL: random ones), copied. */
uint32_t behaviours_input(struct behaviours *x, enum af_dtype d, const struct maker_shape *shape, const double *numbers);
uint32_t behaviours_strided(struct behaviours *x, enum af_dtype d, const struct maker_shape *shape, const int64_t *strides, int64_t offset,
                            const double *numbers);
/* An output that must have these elements (NULL: those that the reference gives). */
void behaviours_output(struct behaviours *x, uint32_t v, const double *numbers);

/* The case is this fragment, JSON with ' in place of ", without the schema; outputs, in order, still go through behaviours_output_of. */
void behaviours_text(struct behaviours *x, const char *text);
/* Output number i of a text has these n elements. */
void behaviours_output_of(struct behaviours *x, uint32_t i, const double *numbers, uint32_t n);

#define SHAPE(...)   (&(const struct maker_shape){.rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dims = {__VA_ARGS__}})
#define SCALAR_SHAPE (&(const struct maker_shape){.rank = 0})
#define D(...)       ((const double[]){__VA_ARGS__})

void behaviours_compile(struct behaviours *x);    /* behaviours_compile.c: A.. */
void behaviours_numbers(struct behaviours *x);    /* behaviours_numbers.c: N.., values by hand */
void behaviours_reductions(struct behaviours *x); /* behaviours_reductions.c: N.., softmax, arg-reductions, empty shapes */
