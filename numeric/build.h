/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside numeric/: writes a program instruction by instruction. A value is its number; its type is kept beside the program. A builder
 * that runs out of room says so once, at af_build_finish.
 */
#pragma once

#include "numeric/bits.h"
#include "numeric/expand.h"

typedef uint16_t af_val;

#define AF_PROG_SCRATCH_BYTES (192u * 1024u) /* what af_prog_eval takes of its scratch */

struct af_builder {
        struct af_prog *prog;
        const struct af_expand_operand *operands;
        unsigned n_operands;
        uint8_t types[AF_PROG_MAX_OPERANDS + AF_PROG_MAX]; /* of each value: enum af_dtype; bool operands: MASK */
        bool full;                                         /* more than AF_PROG_MAX instructions were asked for */
        const char *reason;                                /* why there is no program, static text; NULL */
};

/* Starts an empty program. n_operands <= AF_PROG_MAX_OPERANDS. */
void af_build_start(struct af_builder *b, struct af_prog *prog, const struct af_expand_operand *operands, unsigned n_operands);
/* Ends it with result. 0, or AF_EXPAND_E_UNSUPPORTED with *ret_reason: b->reason, or no room. */
int af_build_finish(struct af_builder *b, af_val result, const char **ret_reason);

static inline enum af_dtype af_build_type(const struct af_builder *b, af_val v) {
        return (enum af_dtype)b->types[v];
}

/* One instruction each. Compute types are those of the sources. */
af_val af_b_binary(struct af_builder *b, enum af_prim prim, af_val x, af_val y);
af_val af_b_scalar(struct af_builder *b, enum af_prim prim, af_val x, uint64_t imm); /* ADDS MULS MAXS MINS SHL SHR */
af_val af_b_unary(struct af_builder *b, enum af_prim prim, af_val x);
af_val af_b_cast(struct af_builder *b, af_val x, enum af_dtype to, enum af_round mode);
af_val af_b_cmp(struct af_builder *b, enum af_cmp mode, af_val x, af_val y);
af_val af_b_cmps(struct af_builder *b, enum af_cmp mode, af_val x, uint64_t imm);
af_val af_b_select(struct af_builder *b, af_val mask, af_val x, af_val y);
af_val af_b_bits(struct af_builder *b, af_val x, enum af_dtype to);
/* A constant; the same one is written once. */
af_val af_b_dup(struct af_builder *b, enum af_dtype d, uint64_t imm);
af_val af_b_dup_f32(struct af_builder *b, float x);

/* float32 shorthands. */
af_val af_b_adds_f32(struct af_builder *b, af_val x, float s);
af_val af_b_muls_f32(struct af_builder *b, af_val x, float s);
af_val af_b_cmps_f32(struct af_builder *b, enum af_cmp mode, af_val x, float s);
/* c[0] x^(n-1) + ... + c[n-1] by Horner's rule. n >= 2. */
af_val af_b_horner(struct af_builder *b, af_val x, const float *c, unsigned n);
/* |x| with the sign of s; for a NaN the sign is that of s too. */
af_val af_b_copysign(struct af_builder *b, af_val x, af_val s);
/* The high 12 bits of x's significand (the rest zero): products of two such parts are exact. */
af_val af_b_high_part(struct af_builder *b, af_val x);
/* The rounded product x y, and in *ret_low what it lacks (exact barring underflow). */
af_val af_b_two_product(struct af_builder *b, af_val x, af_val y, af_val *ret_low);
/* m in [sqrt(1/2), sqrt(2)) and k (float32) of a = 2^k m, a > 0; for other a both are of no meaning. */
af_val af_b_split_float(struct af_builder *b, af_val a, af_val *ret_k);
/* x 2^k for an int32 k in [-252, 254], by two factors of 2^(k / 2): x 2^k is rounded once if x is 0 or within [2^-100, 2^100]. */
af_val af_b_scale(struct af_builder *b, af_val x, af_val k);

/* int64 (expand_int64.c): a constant; the low 32 bits as int32; a float64 value rounded to float32. */
af_val af_b_const_i64(struct af_builder *b, int64_t v);
af_val af_b_low_i32(struct af_builder *b, af_val x);
af_val af_b_f64_to_f32(struct af_builder *b, af_val x);

/* Masks. */
af_val af_b_mask_const(struct af_builder *b, bool value);
af_val af_b_mask_xor(struct af_builder *b, af_val x, af_val y);
/* x != 0, for a value of any type that has a compare on the way; MASK is returned as it is. */
af_val af_b_truth(struct af_builder *b, af_val x);

/*
 * x of type from (bool: MASK) as type to, by the op cast's rules, through any chain that is exact. b->reason is set where
 * the vector unit has none.
 */
af_val af_b_convert(struct af_builder *b, af_val x, enum af_dtype from, enum af_dtype to);

/*
 * Operand i as compute type d (float16, float32, int16, int32 or MASK): loaded and widened exactly. A constant is first brought to
 * `narrow`, the type of the tensors that it meets (for floats: d, so that it enters unrounded).
 */
af_val af_b_operand(struct af_builder *b, unsigned i, enum af_dtype narrow, enum af_dtype d);
/* The constant operand i, by the rules for scalars (docs/numerics.md), as bits of d. */
uint64_t af_scalar_bits(const struct af_expand_operand *operand, enum af_dtype d);
/* Low `bits` of an int16 or int32 value, signed or not: how narrow integers wrap. */
af_val af_b_wrap(struct af_builder *b, af_val x, unsigned bits, bool is_signed);

/* What expand.c and expand_compare.c share. */
/* float16 where all operands are that or constants that it holds, else float32. The values are the same either way. */
enum af_dtype af_x_float_type(const struct af_builder *b);
/* The constant operand i, brought to narrow first, as bits of d. */
uint64_t af_x_scalar_imm(const struct af_builder *b, unsigned i, enum af_dtype narrow, enum af_dtype d);
/* The dtype that an op on several is about, from operand `first` on: that of the tensors, the widest where they differ; of constants alone
 * the first's. */
enum af_dtype af_x_operands_type(const struct af_builder *b, unsigned first);
af_val af_x_compare(struct af_builder *b, enum af_op op);

/* Expansions of float32 -> float32 functions, one value in and out (expand_float.c and its neighbours). */
af_val af_x_expm1(struct af_builder *b, af_val x);
af_val af_x_log1p(struct af_builder *b, af_val x);
af_val af_x_tanh(struct af_builder *b, af_val x);
af_val af_x_sigmoid(struct af_builder *b, af_val x);
af_val af_x_silu(struct af_builder *b, af_val x);
af_val af_x_erf(struct af_builder *b, af_val x);
af_val af_x_gelu(struct af_builder *b, af_val x);
af_val af_x_gelu_tanh(struct af_builder *b, af_val x);
af_val af_x_sin(struct af_builder *b, af_val x);
af_val af_x_cos(struct af_builder *b, af_val x);
af_val af_x_tan(struct af_builder *b, af_val x);
af_val af_x_asin(struct af_builder *b, af_val x);
af_val af_x_acos(struct af_builder *b, af_val x);
af_val af_x_atan(struct af_builder *b, af_val x);
af_val af_x_atan2(struct af_builder *b, af_val y, af_val x);
af_val af_x_hypot(struct af_builder *b, af_val x, af_val y);
af_val af_x_sinh(struct af_builder *b, af_val x);
af_val af_x_cosh(struct af_builder *b, af_val x);
af_val af_x_asinh(struct af_builder *b, af_val x);
af_val af_x_acosh(struct af_builder *b, af_val x);
af_val af_x_atanh(struct af_builder *b, af_val x);
af_val af_x_exp2(struct af_builder *b, af_val x);
af_val af_x_log2(struct af_builder *b, af_val x);
af_val af_x_log10(struct af_builder *b, af_val x);
af_val af_x_erfc(struct af_builder *b, af_val x);
af_val af_x_pow(struct af_builder *b, af_val x, af_val y);

/* The exact rest and the quotients that go with it; is_half: both are float16 values, which takes fewer steps (expand_fmod.c). */
af_val af_x_fmod(struct af_builder *b, af_val x, af_val y, bool is_half);
af_val af_x_remainder(struct af_builder *b, af_val x, af_val y, bool is_half);
af_val af_x_floor_div(struct af_builder *b, af_val x, af_val y, bool is_half);

/* Bits (expand_bits.c). */
af_val af_x_bit_xor(struct af_builder *b, af_val x, af_val y);
/* |x| with the sign of s, on the bits of any float type: NaNs keep and give their sign. */
af_val af_x_copysign(struct af_builder *b, af_val x, af_val s);
/* BITWISE_AND OR XOR NOT on int16, int32 or masks; y is not read by NOT. */
af_val af_x_bits(struct af_builder *b, enum af_op op, af_val x, af_val y);
/*
 * Shifts of int16 or int32 values. bits: of the type that they were widened from; most: what a shift to the right by a negative or a
 * larger amount counts as.
 */
af_val af_x_shift_left(struct af_builder *b, af_val x, af_val n, unsigned bits);
af_val af_x_shift_right(struct af_builder *b, af_val x, af_val n, unsigned most);
/* The same for an amount that is known. */
af_val af_x_shift_const(struct af_builder *b, enum af_op op, af_val x, int64_t n, unsigned bits, bool is_signed);
/* ISNAN ISINF ISFINITE of float16 or float32: a mask. */
af_val af_x_float_kind(struct af_builder *b, enum af_op op, af_val x);

/* On int64 values (expand_int64.c), wrapping: SELECT, compares, elementwise ops; b->reason is set where there is no exact program. */
af_val af_x_select_i64(struct af_builder *b, af_val mask, af_val x, af_val y);
af_val af_x_compare_i64(struct af_builder *b, enum af_op op, af_val x, af_val y);
af_val af_x_unary_i64(struct af_builder *b, enum af_op op, const struct af_expand_attrs *attrs, af_val x);
af_val af_x_binary_i64(struct af_builder *b, enum af_op op, af_val x, af_val y);
/* The same by a constant: shifts and quotients too. */
af_val af_x_by_const_i64(struct af_builder *b, enum af_op op, af_val x, int64_t n);

/*
 * Integer division (towards zero, or floor; 0 for y = 0) and power on int16 or int32 values (expand_int.c), wrapping. n_bits: bits of
 * the exponent's type without its sign.
 */
af_val af_x_int_div(struct af_builder *b, af_val x, af_val y, bool floor);
/* x - q y for that quotient q; 0 for y = 0. */
af_val af_x_int_rest(struct af_builder *b, af_val x, af_val y, bool floor);
af_val af_x_int_pow(struct af_builder *b, af_val x, af_val y, unsigned n_bits, bool is_signed);
/* The same for an exponent that is known: the same value in every bit. */
af_val af_x_int_pow_const(struct af_builder *b, af_val x, int64_t e);
