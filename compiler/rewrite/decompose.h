/* SPDX-License-Identifier: Apache-2.0 */
/* The decompositions: each writes the nodes of one composite and returns the value that is its output. Private to compiler/rewrite. */
#pragma once

#include "compiler/rewrite/build.h"

/* One composite node under way. */
struct rw_composite {
        struct rw *b;
        const struct af_node *n;    /* of b->from */
        const uint32_t *in;         /* its operands as values of b->g */
        const struct af_value *out; /* as the sender states it; of b->from */
        enum af_dtype compute;      /* float32, or float64 where the operand is that */
};
/* AF_NONE with b->error set where there is none for these operands. The result has the output's shape; its dtype is cast to the output's.
 */
typedef uint32_t (*rw_decompose_fn)(const struct rw_composite *c);

double rw_attr_number(const struct rw_composite *c, enum af_attr_key key, double otherwise);
int64_t rw_attr_int(const struct rw_composite *c, enum af_attr_key key, int64_t otherwise);
/* Operand i cast to the compute dtype; AF_NONE where there is none. Scalar constants of any float come as they are: they enter unrounded.
 */
uint32_t rw_operand(const struct rw_composite *c, uint32_t i);
static inline uint32_t rw_number(const struct rw_composite *c, double v) {
        return rw_scalar(c->b, c->compute, v);
}

/* Reductions of int64, and sums into it that int32 does not hold. */
uint32_t rw_wide_extreme(const struct rw_composite *c);
uint32_t rw_wide_sum(const struct rw_composite *c);
/* The maximum or minimum of int64 x along an axis, which is kept. */
uint32_t rw_extreme64(struct rw *b, enum af_op op, uint32_t x, int64_t axis);

uint32_t rw_softmax(const struct rw_composite *c);
uint32_t rw_log_softmax(const struct rw_composite *c);
uint32_t rw_logsumexp(const struct rw_composite *c);
uint32_t rw_layer_norm(const struct rw_composite *c);
uint32_t rw_rms_norm(const struct rw_composite *c);
uint32_t rw_group_norm(const struct rw_composite *c);
uint32_t rw_instance_norm(const struct rw_composite *c);
uint32_t rw_batch_norm(const struct rw_composite *c);
uint32_t rw_var(const struct rw_composite *c);
uint32_t rw_std(const struct rw_composite *c);
uint32_t rw_reduce_l1(const struct rw_composite *c);
uint32_t rw_reduce_l2(const struct rw_composite *c);
uint32_t rw_reduce_sum_square(const struct rw_composite *c);
uint32_t rw_reduce_log_sum(const struct rw_composite *c);
uint32_t rw_arg_max(const struct rw_composite *c);
uint32_t rw_arg_min(const struct rw_composite *c);
uint32_t rw_one_hot(const struct rw_composite *c);
uint32_t rw_triu(const struct rw_composite *c);
uint32_t rw_tril(const struct rw_composite *c);
uint32_t rw_tile(const struct rw_composite *c);
uint32_t rw_cumsum(const struct rw_composite *c);
uint32_t rw_fma(const struct rw_composite *c);
uint32_t rw_axpy(const struct rw_composite *c);
uint32_t rw_masked_fill(const struct rw_composite *c);
uint32_t rw_softplus(const struct rw_composite *c);
uint32_t rw_softsign(const struct rw_composite *c);
uint32_t rw_elu(const struct rw_composite *c);
uint32_t rw_selu(const struct rw_composite *c);
uint32_t rw_celu(const struct rw_composite *c);
uint32_t rw_hardsigmoid(const struct rw_composite *c);
uint32_t rw_hardswish(const struct rw_composite *c);
uint32_t rw_mish(const struct rw_composite *c);
uint32_t rw_thresholded_relu(const struct rw_composite *c);
uint32_t rw_lerp(const struct rw_composite *c);
uint32_t rw_addcmul(const struct rw_composite *c);
uint32_t rw_addcdiv(const struct rw_composite *c);
