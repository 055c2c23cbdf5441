/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the random generator share. Private to tests/lib. */
#pragma once

#include "tests/lib/random_graph.h"

#define RANDOM_MAX_RANK    8u
#define RANDOM_MAX_VALUES  512u
#define RANDOM_MAX_SYMBOLS 2u

struct random_value {
        const char *name;
        enum af_dtype dtype;
        uint32_t rank;
        int64_t dims[AF_LIMIT_RANK]; /* at the symbols' samples */
        const uint32_t *ids;         /* as expressions */
        uint32_t users;
        bool scalar, input, host, strided;
};

struct random_maker {
        struct af_fragment *f;
        struct af_random_opts o;
        uint64_t state;
        struct random_value values[RANDOM_MAX_VALUES];
        uint32_t n_values;
        uint32_t shape_rank; /* the fragment's main shape */
        int64_t shape[AF_LIMIT_RANK];
        int64_t samples[RANDOM_MAX_SYMBOLS]; /* a size that stands for each symbol while the fragment is made */
        int64_t mins[RANDOM_MAX_SYMBOLS], maxs[RANDOM_MAX_SYMBOLS];
        uint32_t n_symbols, symbols[RANDOM_MAX_SYMBOLS];
        int error;
};

/* A number in [0, n); true once in n times; one of the fragment's dtypes. */
uint32_t random_below(struct random_maker *m, uint32_t n);
bool random_one_in(struct random_maker *m, uint32_t n);
enum af_dtype random_dtype(struct random_maker *m);
/* Elements of a shape; INT64_MAX beyond it. */
int64_t random_count(const int64_t *dims, uint32_t rank);

/* The fragment's main shape; an input that goes with it, or a host scalar. */
void random_shape(struct random_maker *m);
void random_first_input(struct random_maker *m);

/* Values: each may be NULL where nothing fits. */
/* Another input, contiguous or strided. */
struct random_value *random_input(struct random_maker *m, enum af_dtype d, const int64_t *dims, uint32_t rank);
/* A scalar of dtype d (or a wider float), its bits an ordinary or a special value. */
struct random_value *random_constant(struct random_maker *m, enum af_dtype d);
/* Something to read; the same of one of the dtypes, cast where none is at hand; one that broadcasts with v, in dtype d. */
struct random_value *random_pick(struct random_maker *m);
struct random_value *random_pick_of(struct random_maker *m, uint32_t dtypes);
struct random_value *random_partner(struct random_maker *m, struct random_value *v, enum af_dtype d);
/* Adds a node where its operands fit; its first value, or NULL. declared: dtype where the op does not give it. */
struct random_value *random_node(struct random_maker *m, enum af_op op, struct random_value *const *in, uint32_t n,
                                 const struct af_attr *attrs, uint32_t n_attrs, enum af_dtype declared);
/* v in dtype d. */
struct random_value *random_cast(struct random_maker *m, struct random_value *v, enum af_dtype d);
/* Numbers as expressions: a symbol's sample is the symbol. NULL after an error. */
const uint32_t *random_ids(struct random_maker *m, const int64_t *numbers, uint32_t n);
/* Whether a size of v depends on a symbol. */
bool random_symbolic(const struct random_maker *m, const struct random_value *v);
/* An attribute of kind DIMS, by random_ids. */
struct af_attr random_dims(struct random_maker *m, enum af_attr_key key, const int64_t *numbers, uint32_t n);

/* One node of the class: as random_node. */
struct random_value *random_movement(struct random_maker *m, enum af_op op);
struct random_value *random_composite(struct random_maker *m, enum af_op op);
