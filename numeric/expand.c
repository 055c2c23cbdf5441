/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From op and dtypes to a program. Each op is computed in one compute type (float16, float32, int16, int32 or masks), its operands
 * widened to that exactly, its result rounded or wrapped to the declared dtype once.
 *
 *   float16           float16 calls where one exists and constants fit, else float32
 *   bfloat16          float32: the vector unit has no bfloat16 arithmetic
 *   int8 uint8 int16  int16, wrapped to 8 bits at the end
 *   int64             three pieces of at most 24 bits (expand_int64.c)
 */
#include "numeric/build_macros.h"
#include "numeric/prim.h"

static af_val refuse(struct af_builder *b, const char *reason) {
        if (!b->reason)
                b->reason = reason;
        return 0;
}

static bool fits_f16(const struct af_expand_operand *o) {
        float s = af_f32_from_bits((uint32_t)af_scalar_bits(o, AF_DTYPE_FLOAT32));

        return s != s || af_f16_to_f32((uint16_t)af_scalar_bits(o, AF_DTYPE_FLOAT16)) == s;
}

/* float16 where all operands are that or constants that it holds, else float32. The values are the same either way. */
enum af_dtype af_x_float_type(const struct af_builder *b) {
        for (unsigned i = 0; i < b->n_operands; i++) {
                const struct af_expand_operand *o = &b->operands[i];

                if (o->is_scalar ? !fits_f16(o) : o->dtype != AF_DTYPE_FLOAT16)
                        return AF_DTYPE_FLOAT32;
        }
        return AF_DTYPE_FLOAT16;
}

static enum af_dtype compute_type(struct af_builder *b, enum af_dtype t) {
        switch ((int)t) {
        case AF_DTYPE_FLOAT16:
        case AF_DTYPE_BFLOAT16:
        case AF_DTYPE_FLOAT32:
                return af_x_float_type(b);
        case AF_DTYPE_INT8:
        case AF_DTYPE_UINT8:
        case AF_DTYPE_INT16:
                return AF_DTYPE_INT16;
        case AF_DTYPE_INT32:
                return AF_DTYPE_INT32;
        default:
                refuse(b, "no arithmetic in this dtype on the vector unit");
                return AF_DTYPE_INT32;
        }
}

static bool is_float(enum af_dtype d) {
        return af_dtype_kind(d) == 'f';
}

/* What the constants of an op on tensors of t become first: floats enter unrounded. */
static enum af_dtype narrow_type(enum af_dtype t, enum af_dtype compute) {
        return is_float(t) ? compute : t;
}

/* Compute type to the declared one; in_range: an 8-bit result that cannot have left its range. */
static af_val store(struct af_builder *b, af_val x, enum af_dtype out, bool in_range) {
        enum af_dtype d = af_build_type(b, x);

        if (in_range && af_dtype_size(out) == 1 && d == AF_DTYPE_INT16)
                return af_b_cast(b, af_b_cast(b, x, AF_DTYPE_FLOAT16, AF_ROUND_NONE), out, AF_ROUND_TRUNC);
        return af_b_convert(b, x, d, out);
}

/* The bits of -s. */
static uint64_t negated(enum af_dtype d, uint64_t s) {
        switch ((int)d) {
        case AF_DTYPE_FLOAT16:
                return s ^ 0x8000u;
        case AF_DTYPE_FLOAT32:
                return s ^ 0x80000000u;
        case AF_DTYPE_INT16:
                return (uint16_t)-s;
        default:
                return (uint32_t)-s;
        }
}

uint64_t af_x_scalar_imm(const struct af_builder *b, unsigned i, enum af_dtype narrow, enum af_dtype d) {
        struct af_expand_operand narrowed = {.dtype = narrow, .is_scalar = true, .bits = af_scalar_bits(&b->operands[i], narrow)};

        return af_scalar_bits(&narrowed, d);
}

/* x op y; a constant on a side where the call has a scalar form becomes its immediate. x - c is x + (-c) in every bit. */
static af_val binary(struct af_builder *b, enum af_prim prim, enum af_prim scalar_prim, enum af_dtype narrow, enum af_dtype d) {
        bool left = b->operands[0].is_scalar, right = b->operands[1].is_scalar;

        if (right && !left && scalar_prim != AF_N_PRIMS) {
                uint64_t imm = af_x_scalar_imm(b, 1, narrow, d);

                return af_b_scalar(b, scalar_prim, af_b_operand(b, 0, narrow, d), prim == AF_PRIM_SUB ? negated(d, imm) : imm);
        }
        if (left && !right && scalar_prim != AF_N_PRIMS && prim != AF_PRIM_SUB)
                return af_b_scalar(b, scalar_prim, af_b_operand(b, 1, narrow, d), af_x_scalar_imm(b, 0, narrow, d));
        return AF_B2(prim, af_b_operand(b, 0, narrow, d), af_b_operand(b, 1, narrow, d));
}

static unsigned dtype_bits(enum af_dtype t) {
        return af_dtype_size(t) * 8;
}

/* Division and its rest on floats, in float32. */
static af_val float_division(struct af_builder *b, enum af_op op, enum af_dtype t) {
        af_val x = af_b_operand(b, 0, AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT32);
        af_val y = af_b_operand(b, 1, AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT32);
        bool is_half = af_x_float_type(b) == AF_DTYPE_FLOAT16;

        switch (op) {
        case AF_OP_FLOOR_DIV:
                return store(b, af_x_floor_div(b, x, y, is_half), t, false);
        case AF_OP_REMAINDER:
                return store(b, af_x_remainder(b, x, y, is_half), t, false);
        case AF_OP_FMOD:
                return store(b, af_x_fmod(b, x, y, is_half), t, false);
        default: /* TRUNC_DIV */
                return store(b, ROUND(TRUNC, DIV(x, y)), t, false);
        }
}

/* x / y; by a constant power of two as a product with its reciprocal: the same in every bit. */
static af_val float_quotient(struct af_builder *b, enum af_dtype d) {
        float y, r;

        if (!b->operands[1].is_scalar || b->operands[0].is_scalar)
                return binary(b, AF_PRIM_DIV, AF_N_PRIMS, d, d);
        y = af_f32_from_bits((uint32_t)af_scalar_bits(&b->operands[1], AF_DTYPE_FLOAT32));
        r = 1 / y;
        /* Far from where either is subnormal, in float16 too. */
        if ((af_bits_f32(y) & 0x7fffffu) || !(af_f32_abs(r) <= 0x1p14f && af_f32_abs(r) >= 0x1p-14f))
                return binary(b, AF_PRIM_DIV, AF_N_PRIMS, d, d);
        return af_b_scalar(b, AF_PRIM_MULS, af_b_operand(b, 0, d, d), d == AF_DTYPE_FLOAT16 ? af_f16_from_f32(r) : af_bits_f32(r));
}

static af_val float_binary(struct af_builder *b, enum af_op op, enum af_dtype t) {
        enum af_dtype d = af_x_float_type(b);
        af_val x, y;

        switch (op) {
        case AF_OP_DIV:
        case AF_OP_TRUE_DIV:
                return store(b, float_quotient(b, d), t, false);
        case AF_OP_POW:
        case AF_OP_ATAN2:
        case AF_OP_HYPOT:
                x = af_b_operand(b, 0, AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT32);
                y = af_b_operand(b, 1, AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT32);
                x = op == AF_OP_POW ? af_x_pow(b, x, y) : op == AF_OP_ATAN2 ? af_x_atan2(b, x, y) : af_x_hypot(b, x, y);
                return store(b, x, t, false);
        case AF_OP_COPYSIGN:
                x = af_b_operand(b, 0, t, t);
                return af_x_copysign(b, x, af_b_operand(b, 1, t, t));
        default:
                return float_division(b, op, t);
        }
}

/* Shifts and powers, whose second operand is worth knowing. */
static af_val int_by_amount(struct af_builder *b, enum af_op op, enum af_dtype t, enum af_dtype d) {
        bool is_signed = af_dtype_kind(t) == 'i', is_pow = op == AF_OP_POW;
        af_val x = af_b_operand(b, 0, t, d), y;

        if (b->operands[1].is_scalar) {
                int64_t n = (int64_t)af_x_scalar_imm(b, 1, t, AF_DTYPE_INT64);

                return is_pow ? af_x_int_pow_const(b, x, n) : af_x_shift_const(b, op, x, n, dtype_bits(t), is_signed);
        }
        y = af_b_operand(b, 1, t, d);
        if (is_pow)
                return af_x_int_pow(b, x, y, dtype_bits(t) - is_signed, is_signed);
        return op == AF_OP_SHIFT_LEFT ? af_x_shift_left(b, x, y, dtype_bits(t)) : af_x_shift_right(b, x, y, dtype_bits(t) - is_signed);
}

/* Floors of quotients by 2^n, n > 0, and their rests are shifts and masks. */
static bool by_power_of_two(const struct af_builder *b, enum af_op op, enum af_dtype t, unsigned *ret_n) {
        int64_t y;

        if (!b->operands[1].is_scalar || (op != AF_OP_FLOOR_DIV && op != AF_OP_REMAINDER))
                return false;
        y = (int64_t)af_x_scalar_imm(b, 1, t, AF_DTYPE_INT64);
        if (y < 2 || (y & (y - 1)))
                return false;
        *ret_n = (unsigned)__builtin_ctzll((uint64_t)y);
        return true;
}

static af_val low_bits(struct af_builder *b, af_val x, unsigned n) {
        return AND(x, af_b_dup(b, af_build_type(b, x), ((uint64_t)1 << n) - 1));
}

static af_val int_binary(struct af_builder *b, enum af_op op, enum af_dtype t) {
        enum af_dtype d = compute_type(b, t);
        bool floor = op == AF_OP_FLOOR_DIV || op == AF_OP_REMAINDER;
        unsigned n;
        af_val x, y;

        if (op == AF_OP_POW || op == AF_OP_SHIFT_LEFT || op == AF_OP_SHIFT_RIGHT)
                return store(b, int_by_amount(b, op, t, d), t, op == AF_OP_SHIFT_RIGHT);
        if (by_power_of_two(b, op, t, &n))
                return store(b, op == AF_OP_FLOOR_DIV ? INT_SHR(af_b_operand(b, 0, t, d), n) : low_bits(b, af_b_operand(b, 0, t, d), n), t,
                             true);
        x = af_b_operand(b, 0, t, d);
        y = af_b_operand(b, 1, t, d);
        switch (op) {
        case AF_OP_BITWISE_AND:
        case AF_OP_BITWISE_OR:
        case AF_OP_BITWISE_XOR:
                return store(b, af_x_bits(b, op, x, y), t, true);
        case AF_OP_REMAINDER:
        case AF_OP_FMOD:
                return store(b, af_x_int_rest(b, x, y, floor), t, true);
        default:
                return store(b, af_x_int_div(b, x, y, floor), t, false);
        }
}

static af_val expand_binary(struct af_builder *b, enum af_op op, enum af_dtype t) {
        enum af_dtype d = compute_type(b, t), n = narrow_type(t, d);

        switch (op) {
        case AF_OP_ADD:
                return store(b, binary(b, AF_PRIM_ADD, AF_PRIM_ADDS, n, d), t, false);
        case AF_OP_SUB:
                return store(b, binary(b, AF_PRIM_SUB, AF_PRIM_ADDS, n, d), t, false);
        case AF_OP_MUL:
                return store(b, binary(b, AF_PRIM_MUL, AF_PRIM_MULS, n, d), t, false);
        case AF_OP_MAXIMUM:
                return store(b, binary(b, AF_PRIM_MAX, AF_PRIM_MAXS, n, d), t, true);
        case AF_OP_MINIMUM:
                return store(b, binary(b, AF_PRIM_MIN, AF_PRIM_MINS, n, d), t, true);
        default:
                return is_float(t) ? float_binary(b, op, t) : int_binary(b, op, t);
        }
}

/* Ops that are one function of a float32 value. */
static af_val (*const functions[AF_N_OPS])(struct af_builder *b, af_val x) = {
        [AF_OP_LOG1P] = af_x_log1p, [AF_OP_EXPM1] = af_x_expm1, [AF_OP_TANH] = af_x_tanh, [AF_OP_SIGMOID] = af_x_sigmoid,
        [AF_OP_ERF] = af_x_erf,     [AF_OP_ERFC] = af_x_erfc,   [AF_OP_SILU] = af_x_silu, [AF_OP_SIN] = af_x_sin,
        [AF_OP_COS] = af_x_cos,     [AF_OP_TAN] = af_x_tan,     [AF_OP_ASIN] = af_x_asin, [AF_OP_ACOS] = af_x_acos,
        [AF_OP_ATAN] = af_x_atan,   [AF_OP_SINH] = af_x_sinh,   [AF_OP_COSH] = af_x_cosh, [AF_OP_ASINH] = af_x_asinh,
        [AF_OP_ACOSH] = af_x_acosh, [AF_OP_ATANH] = af_x_atanh, [AF_OP_EXP2] = af_x_exp2, [AF_OP_LOG2] = af_x_log2,
        [AF_OP_LOG10] = af_x_log10,
};

/* Ops on one float32 value. */
static af_val expand_function(struct af_builder *b, enum af_op op, const struct af_expand_attrs *attrs, af_val x) {
        if (functions[op])
                return functions[op](b, x);
        switch (op) {
        case AF_OP_EXP:
                return af_b_unary(b, AF_PRIM_EXP, x);
        case AF_OP_LOG:
                return af_b_unary(b, AF_PRIM_LN, x);
        case AF_OP_SQRT:
                return af_b_unary(b, AF_PRIM_SQRT, x);
        case AF_OP_RSQRT:
                return DIV(af_b_dup_f32(b, 1.0f), af_b_unary(b, AF_PRIM_SQRT, x));
        case AF_OP_RECIPROCAL:
                return DIV(af_b_dup_f32(b, 1.0f), x);
        case AF_OP_GELU:
                return attrs && attrs->gelu_tanh ? af_x_gelu_tanh(b, x) : af_x_gelu(b, x);
        case AF_OP_LEAKY_RELU:
                return SELECT(af_b_cmps_f32(b, AF_CMP_GT, x, 0.0f), x, af_b_muls_f32(b, x, attrs ? (float)attrs->alpha : 0.01f));
        case AF_OP_FLOOR:
                return ROUND(FLOOR, x);
        case AF_OP_CEIL:
                return ROUND(CEIL, x);
        case AF_OP_ROUND:
                return ROUND(RINT, x);
        default:
                return ROUND(TRUNC, x);
        }
}

static uint64_t one_of(enum af_dtype d) {
        return d == AF_DTYPE_FLOAT32 ? 0x3f800000u : d == AF_DTYPE_FLOAT16 ? 0x3c00u : 1u;
}

/* Sign of a float: NaN and both zeros give +0. */
static af_val float_sign(struct af_builder *b, af_val x, enum af_dtype d) {
        af_val negative = SELECT(af_b_cmps(b, AF_CMP_LT, x, 0), af_b_dup(b, d, negated(d, one_of(d))), af_b_dup(b, d, 0));

        return SELECT(af_b_cmps(b, AF_CMP_GT, x, 0), af_b_dup(b, d, one_of(d)), negative);
}

static int64_t clamp_to(int64_t v, enum af_dtype t) {
        bool is_signed = af_dtype_kind(t) == 'i';
        int64_t high = (int64_t)(((uint64_t)1 << (dtype_bits(t) - is_signed)) - 1), low = is_signed ? -high - 1 : 0;

        return v < low ? low : v > high ? high : v;
}

static af_val expand_clip(struct af_builder *b, const struct af_expand_attrs *attrs, af_val x, enum af_dtype t) {
        static const struct af_expand_attrs none;
        const struct af_expand_attrs *a = attrs ? attrs : &none;
        enum af_dtype d = af_build_type(b, x);
        struct af_expand_operand low = {.dtype = AF_DTYPE_FLOAT64, .bits = af_bits_f64(a->min)};
        struct af_expand_operand high = {.dtype = AF_DTYPE_FLOAT64, .bits = af_bits_f64(a->max)};

        if (!is_float(t)) {
                low = (struct af_expand_operand){.dtype = AF_DTYPE_INT64, .bits = (uint64_t)clamp_to(a->imin, t)};
                high = (struct af_expand_operand){.dtype = AF_DTYPE_INT64, .bits = (uint64_t)clamp_to(a->imax, t)};
        }
        if (a->has_min)
                x = af_b_scalar(b, AF_PRIM_MAXS, x, af_scalar_bits(&low, d));
        if (a->has_max)
                x = af_b_scalar(b, AF_PRIM_MINS, x, af_scalar_bits(&high, d));
        return x;
}

static af_val int_unary(struct af_builder *b, enum af_op op, af_val x, enum af_dtype d) {
        uint64_t minus_one = negated(d, 1);

        switch (op) {
        case AF_OP_ABS: /* of the least integer: itself */
                return MAX(x, af_b_scalar(b, AF_PRIM_MULS, x, minus_one));
        case AF_OP_NEG:
                return af_b_scalar(b, AF_PRIM_MULS, x, minus_one);
        case AF_OP_SIGN:
                return af_b_scalar(b, AF_PRIM_MINS, af_b_scalar(b, AF_PRIM_MAXS, x, minus_one), 1);
        case AF_OP_RELU:
                return af_b_scalar(b, AF_PRIM_MAXS, x, 0);
        case AF_OP_BITWISE_NOT:
                return af_x_bits(b, op, x, x);
        default: /* SQUARE */
                return MUL(x, x);
        }
}

static af_val expand_unary_int(struct af_builder *b, enum af_op op, const struct af_expand_attrs *attrs, enum af_dtype t) {
        bool is_rounding = op == AF_OP_FLOOR || op == AF_OP_CEIL || op == AF_OP_ROUND || op == AF_OP_TRUNC;
        bool is_unsigned = af_dtype_kind(t) == 'u';
        bool in_range = op == AF_OP_SIGN || op == AF_OP_RELU || op == AF_OP_CLIP;
        enum af_dtype d;
        af_val x;

        if (is_rounding || (is_unsigned && (op == AF_OP_ABS || op == AF_OP_RELU)))
                return af_b_operand(b, 0, t, t);
        d = compute_type(b, t);
        x = af_b_operand(b, 0, t, d);
        x = op == AF_OP_CLIP ? expand_clip(b, attrs, x, t) : int_unary(b, op, x, d);
        return store(b, x, t, in_range);
}

static af_val expand_unary(struct af_builder *b, enum af_op op, const struct af_expand_attrs *attrs, enum af_dtype t) {
        enum af_dtype d;
        af_val x;

        if (!is_float(t))
                return expand_unary_int(b, op, attrs, t);
        d = af_x_float_type(b);
        switch (op) {
        case AF_OP_ABS:
                return store(b, af_b_unary(b, AF_PRIM_ABS, af_b_operand(b, 0, d, d)), t, false);
        case AF_OP_NEG:
                return store(b, af_b_scalar(b, AF_PRIM_MULS, af_b_operand(b, 0, d, d), negated(d, one_of(d))), t, false);
        case AF_OP_SIGN:
                return store(b, float_sign(b, af_b_operand(b, 0, d, d), d), t, false);
        case AF_OP_RELU:
                return store(b, af_b_unary(b, AF_PRIM_RELU, af_b_operand(b, 0, d, d)), t, false);
        case AF_OP_SQUARE:
                x = af_b_operand(b, 0, d, d);
                return store(b, MUL(x, x), t, false);
        case AF_OP_CLIP:
                return store(b, expand_clip(b, attrs, af_b_operand(b, 0, d, d), t), t, false);
        default:
                x = af_b_operand(b, 0, AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT32);
                return store(b, expand_function(b, op, attrs, x), t, false);
        }
}

static af_val truth_of(struct af_builder *b, unsigned i) {
        const struct af_expand_operand *o = &b->operands[i];

        return o->is_scalar ? af_b_mask_const(b, af_scalar_bits(o, AF_DTYPE_BOOL) != 0) : af_b_truth(b, (af_val)i);
}

static af_val expand_bool_bits(struct af_builder *b, enum af_op op) {
        af_val x = af_b_operand(b, 0, AF_DTYPE_BOOL, AF_DTYPE_MASK);

        return af_x_bits(b, op, x, op == AF_OP_BITWISE_NOT ? x : af_b_operand(b, 1, AF_DTYPE_BOOL, AF_DTYPE_MASK));
}

/* isnan, isinf, isfinite: integers are finite. */
static af_val expand_kind(struct af_builder *b, enum af_op op) {
        enum af_dtype t = b->operands[0].dtype, d = af_x_float_type(b);

        return is_float(t) ? af_x_float_kind(b, op, af_b_operand(b, 0, d, d)) : af_b_mask_const(b, op == AF_OP_ISFINITE);
}

/* Integers as float32, by way of the tensors' dtype where they are constants. */
static af_val expand_true_div(struct af_builder *b, enum af_dtype out) {
        enum af_dtype t = af_x_operands_type(b, 0);
        af_val x;

        if (is_float(t))
                return float_binary(b, AF_OP_TRUE_DIV, out);
        x = af_b_operand(b, 0, t, out);
        return DIV(x, af_b_operand(b, 1, t, out));
}

static af_val expand_logical(struct af_builder *b, enum af_op op) {
        af_val x = truth_of(b, 0), y;

        if (op == AF_OP_LOGICAL_NOT)
                return af_b_unary(b, AF_PRIM_MASK_NOT, x);
        y = truth_of(b, 1);
        if (op == AF_OP_LOGICAL_XOR)
                return af_b_mask_xor(b, x, y);
        return AF_B2(op == AF_OP_LOGICAL_AND ? AF_PRIM_MASK_AND : AF_PRIM_MASK_OR, x, y);
}

static af_val expand_where(struct af_builder *b, enum af_dtype out) {
        enum af_dtype d = af_dtype_size(out) == 1 ? AF_DTYPE_FLOAT16 : out;
        af_val mask, x, y, not_mask;

        if (out == AF_DTYPE_FLOAT64)
                return refuse(b, "no float64 on the vector unit");
        mask = truth_of(b, 0);
        if (out == AF_DTYPE_BOOL) {
                x = af_b_operand(b, 1, out, AF_DTYPE_MASK);
                y = af_b_operand(b, 2, out, AF_DTYPE_MASK);
                not_mask = af_b_unary(b, AF_PRIM_MASK_NOT, mask);
                return MASK_OR(MASK_AND(mask, x), MASK_AND(not_mask, y));
        }
        x = af_b_operand(b, 1, out, d);
        y = af_b_operand(b, 2, out, d);
        x = out == AF_DTYPE_INT64 ? af_x_select_i64(b, mask, x, y) : SELECT(mask, x, y);
        return d == out ? x : af_b_cast(b, x, out, AF_ROUND_TRUNC);
}

static af_val expand_cast(struct af_builder *b, enum af_dtype out) {
        const struct af_expand_operand *o = &b->operands[0];

        return o->is_scalar ? af_b_operand(b, 0, out, out) : af_b_convert(b, 0, o->dtype, out);
}

static af_val expand_int64(struct af_builder *b, enum af_op op, const struct af_expand_attrs *attrs) {
        af_val x = af_b_operand(b, 0, AF_DTYPE_INT64, AF_DTYPE_INT64);

        if (b->n_operands == 1)
                return af_x_unary_i64(b, op, attrs, x);
        if (b->operands[1].is_scalar)
                return af_x_by_const_i64(b, op, x, (int64_t)af_scalar_bits(&b->operands[1], AF_DTYPE_INT64));
        return af_x_binary_i64(b, op, x, af_b_operand(b, 1, AF_DTYPE_INT64, AF_DTYPE_INT64));
}

static af_val expand_elementwise(struct af_builder *b, enum af_op op, const struct af_expand_attrs *attrs, enum af_dtype out) {
        const struct af_op_info *info = af_op_info(op);

        switch (info->dtype_rule) {
        case AF_DTYPES_LOGICAL:
                return expand_logical(b, op);
        case AF_DTYPES_BOOL_OUT:
                return expand_kind(b, op);
        case AF_DTYPES_TRUE_DIV:
                return expand_true_div(b, out);
        default:
                break;
        }
        if (!(info->dtypes & AF_DTYPE_BIT(out)))
                return refuse(b, "the op is not defined for this dtype");
        if (out == AF_DTYPE_BOOL)
                return expand_bool_bits(b, op);
        if (out == AF_DTYPE_INT64)
                return expand_int64(b, op, attrs);
        return b->n_operands == 1 ? expand_unary(b, op, attrs, out) : expand_binary(b, op, out);
}

static af_val expand_op(struct af_builder *b, enum af_op op, const struct af_expand_attrs *attrs, enum af_dtype out) {
        const struct af_op_info *info = af_op_info(op);

        switch (info->cls) {
        case AF_CLASS_COMPARE:
                return af_x_compare(b, op);
        case AF_CLASS_SELECT:
                return expand_where(b, out);
        case AF_CLASS_CAST:
        case AF_CLASS_BROADCAST:
        case AF_CLASS_VIEW:
                return expand_cast(b, out);
        case AF_CLASS_ELEMENTWISE:
                return expand_elementwise(b, op, attrs, out);
        default:
                return refuse(b, "no elementwise program for this op class");
        }
}

int af_expand(enum af_op op, const struct af_expand_operand *operands, unsigned n_operands, enum af_dtype out_dtype,
              const struct af_expand_attrs *attrs, struct af_prog *ret_prog, const char **ret_reason) {
        struct af_builder b;
        const struct af_op_info *info = af_op_info(op);

        if (n_operands < info->min_inputs || n_operands > info->max_inputs || n_operands > AF_PROG_MAX_OPERANDS) {
                *ret_reason = "wrong number of operands";
                return AF_EXPAND_E_UNSUPPORTED;
        }
        af_build_start(&b, ret_prog, operands, n_operands);
        return af_build_finish(&b, expand_op(&b, op, attrs, out_dtype), ret_reason);
}
