/* SPDX-License-Identifier: Apache-2.0 */
/* Writes fragments for tests: values by number, output dtypes and shapes inferred. The first mistake sticks in `error`. */
#pragma once

#include "compiler/graph/graph.h"

#define MAKER_VALUES 2048

struct maker_value {
        const char *name;
        enum af_dtype dtype;
        uint32_t rank;
        const uint32_t *ids; /* dims as expressions */
        bool scalar;         /* a constant of shape [] or a host scalar */
};
struct maker {
        struct af_arena arena;
        struct af_fragment f;
        struct maker_value values[MAKER_VALUES];
        uint32_t n_values;
        int error;       /* first one; 0: none */
        char where[120]; /* what it was about */
};
struct maker_shape {
        uint32_t rank;
        int64_t dims[8];
};

void maker_init(struct maker *m);
void maker_deinit(struct maker *m);
/* Each returns a value number; 0 after an error, which no value has. */
uint32_t maker_input(struct maker *m, enum af_dtype d, const struct maker_shape *shape);
uint32_t maker_strided(struct maker *m, enum af_dtype d, const struct maker_shape *shape, const int64_t *strides, int64_t offset);
uint32_t maker_host(struct maker *m, enum af_dtype d);
/* Scalar constant, the nearest value of the dtype to number. */
uint32_t maker_constant(struct maker *m, enum af_dtype d, double number);
/* in: n value numbers, at most 64. declared: the output's dtype where the op does not give it. Of several outputs the first; the others
 * have the numbers after it. */
uint32_t maker_node(struct maker *m, enum af_op op, const uint32_t *in, uint32_t n, const struct af_attr *attrs, uint32_t n_attrs,
                    enum af_dtype declared);
/* An attribute of kind DIMS over numbers. */
struct af_attr maker_dims(struct maker *m, enum af_attr_key key, const int64_t *numbers, uint32_t n);
uint32_t maker_unary(struct maker *m, enum af_op op, uint32_t a);
uint32_t maker_binary(struct maker *m, enum af_op op, uint32_t a, uint32_t b);
uint32_t maker_cast(struct maker *m, uint32_t a, enum af_dtype to);
uint32_t maker_shaped(struct maker *m, enum af_op op, uint32_t a, const struct maker_shape *to);
/* axes: bit k is axis k; declared as above. */
uint32_t maker_reduce(struct maker *m, enum af_op op, uint32_t a, uint32_t axes, bool keepdims, enum af_dtype declared);
void maker_output(struct maker *m, uint32_t v);
void maker_output_strided(struct maker *m, uint32_t v, const int64_t *strides);
