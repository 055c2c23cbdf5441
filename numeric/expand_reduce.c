/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions: what is done to each element before, how two running values combine, and what follows.
 *
 *   sum mean prod of floats   float32 running value, one rounding at the end (mean: after the division)
 *   sum prod of integers      int32, wrapping; an int64 result only where int32 provably holds every partial sum
 *   max min                   in a type that holds every value exactly; a NaN wins
 *   any all                   float32 0 or 1, max or min
 */
#include "numeric/build_macros.h"
#include "numeric/prim.h"

static bool is_int(enum af_dtype d) {
        char k = af_dtype_kind(d);

        return k == 'i' || k == 'u' || k == 'b';
}

static enum af_combine combine_of(enum af_op op) {
        switch (op) {
        case AF_OP_REDUCE_MAX:
        case AF_OP_REDUCE_ANY:
                return AF_COMBINE_MAX;
        case AF_OP_REDUCE_MIN:
        case AF_OP_REDUCE_ALL:
                return AF_COMBINE_MIN;
        case AF_OP_REDUCE_PROD:
                return AF_COMBINE_MUL;
        default:
                return AF_COMBINE_ADD;
        }
}

/* The largest magnitude of one element. */
static uint64_t largest(enum af_dtype d) {
        switch ((int)d) {
        case AF_DTYPE_BOOL:
                return 1;
        case AF_DTYPE_INT8:
                return 128;
        case AF_DTYPE_UINT8:
                return 255;
        case AF_DTYPE_INT16:
                return 32768;
        default:
                return (uint64_t)1 << 32;
        }
}

/* The running value's type; INVALID with *ret_reason. with_int64: for the definition alone. */
static enum af_dtype acc_of(enum af_op op, enum af_dtype in, enum af_dtype out, uint64_t count, bool with_int64, const char **ret_reason) {
        switch (op) {
        case AF_OP_REDUCE_ANY:
        case AF_OP_REDUCE_ALL:
                return AF_DTYPE_FLOAT32;
        case AF_OP_REDUCE_MAX:
        case AF_OP_REDUCE_MIN:
                if (in == AF_DTYPE_INT8 || in == AF_DTYPE_UINT8 || in == AF_DTYPE_FLOAT16)
                        return AF_DTYPE_FLOAT16;
                if (in == AF_DTYPE_INT32)
                        return AF_DTYPE_INT32;
                if (in != AF_DTYPE_INT64)
                        return AF_DTYPE_FLOAT32;
                *ret_reason = "no single call gives the larger of two int64";
                return with_int64 ? AF_DTYPE_INT64 : AF_DTYPE_INVALID;
        default:
                if (!is_int(in))
                        return AF_DTYPE_FLOAT32;
                if (in != AF_DTYPE_INT64 && out != AF_DTYPE_INT64)
                        return AF_DTYPE_INT32;
                if (op == AF_OP_REDUCE_SUM && in != AF_DTYPE_INT64 && count <= INT32_MAX / largest(in))
                        return AF_DTYPE_INT32;
                *ret_reason = "the sum or product needs int64 arithmetic, which the vector unit lacks";
                return with_int64 ? AF_DTYPE_INT64 : AF_DTYPE_INVALID;
        }
}

static int build_pre(struct af_reduce_plan *plan, enum af_op op, enum af_dtype in, const char **ret_reason) {
        struct af_expand_operand o = {.dtype = in};
        struct af_builder b;
        af_val x = 0;

        af_build_start(&b, &plan->pre, &o, 1);
        if (op == AF_OP_REDUCE_ANY || op == AF_OP_REDUCE_ALL)
                x = af_b_convert(&b, af_b_truth(&b, x), AF_DTYPE_MASK, AF_DTYPE_FLOAT32);
        else
                x = af_b_convert(&b, x, in, plan->acc);
        return af_build_finish(&b, x, ret_reason);
}

static int build_post(struct af_reduce_plan *plan, enum af_op op, enum af_dtype out, uint64_t count, const char **ret_reason) {
        struct af_expand_operand o = {.dtype = plan->acc};
        struct af_builder b;
        af_val x = 0;

        af_build_start(&b, &plan->post, &o, 1);
        if (op == AF_OP_REDUCE_ANY) /* above zero: the identity of nothing is -inf */
                return af_build_finish(&b, af_b_cmps_f32(&b, AF_CMP_GT, x, 0), ret_reason);
        if (op == AF_OP_REDUCE_MEAN)
                x = af_b_binary(&b, AF_PRIM_DIV, x, af_b_dup_f32(&b, (float)count));
        return af_build_finish(&b, af_b_convert(&b, x, plan->acc, out), ret_reason);
}

static int plan_reduce(enum af_op op, enum af_dtype in, enum af_dtype out, uint64_t count, bool with_int64, struct af_reduce_plan *ret_plan,
                       const char **ret_reason) {
        int r;

        *ret_reason = "no such reduction";
        if (af_op_info(op)->cls != AF_CLASS_REDUCE || in >= AF_N_DTYPES || !(af_op_info(op)->dtypes & AF_DTYPE_BIT(in)))
                return AF_EXPAND_E_UNSUPPORTED;
        ret_plan->combine = combine_of(op);
        ret_plan->acc = acc_of(op, in, out, count, with_int64, ret_reason);
        if (ret_plan->acc == AF_DTYPE_INVALID)
                return AF_EXPAND_E_UNSUPPORTED;
        ret_plan->identity = af_combine_identity(ret_plan->combine, ret_plan->acc);
        r = build_pre(ret_plan, op, in, ret_reason);
        return r ? r : build_post(ret_plan, op, out, count, ret_reason);
}

int af_expand_reduce(enum af_op op, enum af_dtype in_dtype, enum af_dtype out_dtype, uint64_t count, struct af_reduce_plan *ret_plan,
                     const char **ret_reason) {
        return plan_reduce(op, in_dtype, out_dtype, count, false, ret_plan, ret_reason);
}

int af_eval_reduce_plan(enum af_op op, enum af_dtype in_dtype, enum af_dtype out_dtype, uint64_t count, struct af_reduce_plan *ret_plan,
                        const char **ret_reason) {
        return plan_reduce(op, in_dtype, out_dtype, count, true, ret_plan, ret_reason);
}
