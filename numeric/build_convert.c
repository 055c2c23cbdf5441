/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From type to type inside a program: the op cast, loads of operands, truth values, constants.
 *
 * Rules (docs/numerics.md): integers wrap; floats go to integers by truncation, saturating at the target's range, NaN as 0; integers
 * and float32 go to float16 and bfloat16 by way of float32; anything goes to bool as x != 0.
 */
#include "numeric/build_macros.h"
#include "numeric/prim.h"

static af_val refuse(struct af_builder *b, const char *reason) {
        if (!b->reason)
                b->reason = reason;
        return 0;
}

/* A constant as an exact double or, for integers, as an int64. True: an integer or bool. */
static bool decode(const struct af_expand_operand *o, double *ret_f, int64_t *ret_i) {
        uint64_t u = o->bits;

        *ret_f = 0;
        *ret_i = 0;
        switch ((int)o->dtype) {
        case AF_DTYPE_BOOL:
                *ret_i = (u & 0xff) != 0;
                return true;
        case AF_DTYPE_INT8:
                *ret_i = (int8_t)u;
                return true;
        case AF_DTYPE_UINT8:
                *ret_i = (uint8_t)u;
                return true;
        case AF_DTYPE_INT16:
                *ret_i = (int16_t)u;
                return true;
        case AF_DTYPE_INT32:
                *ret_i = (int32_t)u;
                return true;
        case AF_DTYPE_INT64:
                *ret_i = (int64_t)u;
                return true;
        case AF_DTYPE_FLOAT16:
                *ret_f = (double)af_f16_to_f32((uint16_t)u);
                return false;
        case AF_DTYPE_BFLOAT16:
                *ret_f = (double)af_bf16_to_f32((uint16_t)u);
                return false;
        case AF_DTYPE_FLOAT32:
                *ret_f = (double)af_f32_from_bits((uint32_t)u);
                return false;
        default:
                *ret_f = af_f64_from_bits(u);
                return false;
        }
}

/* Truncated and saturated at the range of d; NaN gives 0. */
static int64_t saturate(double f, enum af_dtype d) {
        unsigned bits = (af_dtype_size(d) ? af_dtype_size(d) : 8) * 8 - (af_dtype_kind(d) != 'u');
        double end = (double)((uint64_t)1 << bits), low = af_dtype_kind(d) == 'u' ? 0 : -end;

        if (f != f)
                return 0;
        if (f >= end)
                return (int64_t)(((uint64_t)1 << bits) - 1);
        return f < low ? (int64_t)low : (int64_t)f;
}

uint64_t af_scalar_bits(const struct af_expand_operand *operand, enum af_dtype d) {
        double f;
        int64_t i;
        bool is_int = decode(operand, &f, &i);
        float s = is_int ? (float)i : (float)f;

        if (!is_int)
                i = saturate(f, d);
        switch ((int)d) {
        case AF_DTYPE_BOOL:
        case AF_DTYPE_MASK:
                return is_int ? i != 0 : f != 0;
        case AF_DTYPE_INT8:
        case AF_DTYPE_UINT8:
                return (uint8_t)i;
        case AF_DTYPE_INT16:
                return (uint16_t)i;
        case AF_DTYPE_INT32:
                return (uint32_t)i;
        case AF_DTYPE_FLOAT16:
                return af_f16_from_f32(s);
        case AF_DTYPE_BFLOAT16:
                return af_bf16_from_f32(s);
        case AF_DTYPE_FLOAT32:
                return af_bits_f32(af_f32_one_nan(s));
        case AF_DTYPE_FLOAT64:
                return af_bits_f64(is_int ? (double)i : f);
        default:
                return (uint64_t)i;
        }
}

af_val af_b_truth(struct af_builder *b, af_val x) {
        if (b->full || b->reason)
                return 0;
        switch ((int)af_build_type(b, x)) {
        case AF_DTYPE_MASK:
                return x;
        case AF_DTYPE_FLOAT16:
        case AF_DTYPE_FLOAT32:
                return af_b_cmps(b, AF_CMP_NE, x, 0);
        case AF_DTYPE_BFLOAT16:
                return af_b_truth(b, af_b_cast(b, x, AF_DTYPE_FLOAT32, AF_ROUND_NONE));
        case AF_DTYPE_INT8:
        case AF_DTYPE_UINT8:
                return af_b_truth(b, af_b_cast(b, x, AF_DTYPE_FLOAT16, AF_ROUND_NONE));
        case AF_DTYPE_INT16:
                return af_b_truth(b, af_b_cast(b, x, AF_DTYPE_FLOAT32, AF_ROUND_NONE));
        case AF_DTYPE_INT32:
                return af_b_unary(b, AF_PRIM_MASK_NOT, af_b_cmps(b, AF_CMP_EQ, x, 0));
        case AF_DTYPE_FLOAT64:
                x = af_b_bits(b, x, AF_DTYPE_INT64);
                return af_b_truth(b, AND(x, af_b_const_i64(b, INT64_MAX)));
        case AF_DTYPE_INT64: /* rounding never makes a nonzero integer zero */
                return af_b_truth(b, af_b_cast(b, x, AF_DTYPE_FLOAT32, AF_ROUND_RINT));
        default:
                return refuse(b, "no compare with zero for this dtype on the vector unit");
        }
}

static af_val from_mask(struct af_builder *b, af_val x, enum af_dtype to) {
        switch ((int)to) {
        case AF_DTYPE_INT8:
        case AF_DTYPE_UINT8:
                return af_b_cast(b, from_mask(b, x, AF_DTYPE_FLOAT16), to, AF_ROUND_TRUNC);
        case AF_DTYPE_INT64:
                return af_b_cast(b, from_mask(b, x, AF_DTYPE_INT32), to, AF_ROUND_NONE);
        case AF_DTYPE_INT16:
        case AF_DTYPE_INT32:
                return SELECT(x, af_b_dup(b, to, 1), af_b_dup(b, to, 0));
        case AF_DTYPE_FLOAT16:
                return SELECT(x, af_b_dup(b, to, 0x3c00), af_b_dup(b, to, 0));
        case AF_DTYPE_BFLOAT16:
                return SELECT(x, af_b_dup(b, to, 0x3f80), af_b_dup(b, to, 0));
        default:
                return SELECT(x, af_b_dup_f32(b, 1.0f), af_b_dup_f32(b, 0.0f));
        }
}

/* int16 or int32, wrapped, to int8 or uint8. */
static af_val to_byte(struct af_builder *b, af_val x, enum af_dtype to) {
        af_val low = af_b_wrap(b, x, 8, to == AF_DTYPE_INT8);

        if (af_build_type(b, low) == AF_DTYPE_INT32)
                low = af_b_cast(b, low, AF_DTYPE_INT16, AF_ROUND_NONE);
        return af_b_cast(b, af_b_cast(b, low, AF_DTYPE_FLOAT16, AF_ROUND_NONE), to, AF_ROUND_TRUNC);
}

static af_val from_byte(struct af_builder *b, af_val x, enum af_dtype to) {
        af_val h = af_b_cast(b, x, AF_DTYPE_FLOAT16, AF_ROUND_NONE);

        switch ((int)to) {
        case AF_DTYPE_FLOAT16:
                return h;
        case AF_DTYPE_INT16:
        case AF_DTYPE_INT32:
                return af_b_cast(b, h, to, AF_ROUND_RINT);
        case AF_DTYPE_INT64:
                return af_b_cast(b, af_b_cast(b, h, AF_DTYPE_INT32, AF_ROUND_RINT), to, AF_ROUND_NONE);
        case AF_DTYPE_INT8:
        case AF_DTYPE_UINT8:
                return to_byte(b, af_b_cast(b, h, AF_DTYPE_INT16, AF_ROUND_RINT), to);
        default:
                return af_b_convert(b, af_b_cast(b, h, AF_DTYPE_FLOAT32, AF_ROUND_NONE), AF_DTYPE_FLOAT32, to);
        }
}

static af_val from_f32(struct af_builder *b, af_val x, enum af_dtype to) {
        switch ((int)to) {
        case AF_DTYPE_FLOAT16:
        case AF_DTYPE_BFLOAT16:
                return af_b_cast(b, x, to, AF_ROUND_RINT);
        case AF_DTYPE_INT16:
        case AF_DTYPE_INT32:
        case AF_DTYPE_INT64:
                return af_b_cast(b, x, to, AF_ROUND_TRUNC);
        default: /* integral and in range first: then float16 holds it exactly */
                x = af_b_cast(b, x, AF_DTYPE_FLOAT32, AF_ROUND_TRUNC);
                x = af_b_scalar(b, AF_PRIM_MAXS, x, af_bits_f32(to == AF_DTYPE_INT8 ? -128.0f : 0.0f));
                x = af_b_scalar(b, AF_PRIM_MINS, x, af_bits_f32(to == AF_DTYPE_INT8 ? 127.0f : 255.0f));
                return af_b_cast(b, af_b_cast(b, x, AF_DTYPE_FLOAT16, AF_ROUND_RINT), to, AF_ROUND_TRUNC);
        }
}

static af_val from_f16(struct af_builder *b, af_val x, enum af_dtype to) {
        switch ((int)to) {
        case AF_DTYPE_INT8:
        case AF_DTYPE_UINT8:
        case AF_DTYPE_INT16:
        case AF_DTYPE_INT32:
                return af_b_cast(b, x, to, AF_ROUND_TRUNC);
        case AF_DTYPE_FLOAT32:
                return af_b_cast(b, x, to, AF_ROUND_NONE);
        default:
                return from_f32(b, af_b_cast(b, x, AF_DTYPE_FLOAT32, AF_ROUND_NONE), to);
        }
}

static af_val from_i16(struct af_builder *b, af_val x, enum af_dtype to) {
        af_val f;

        switch ((int)to) {
        case AF_DTYPE_INT8:
        case AF_DTYPE_UINT8:
                return to_byte(b, x, to);
        case AF_DTYPE_FLOAT16: /* one rounding: float32 holds every int16 */
                return af_b_cast(b, x, to, AF_ROUND_RINT);
        default:
                f = af_b_cast(b, x, AF_DTYPE_FLOAT32, AF_ROUND_NONE);
                return to == AF_DTYPE_FLOAT32 ? f : from_f32(b, f, to);
        }
}

static af_val from_i32(struct af_builder *b, af_val x, enum af_dtype to) {
        af_val f;

        switch ((int)to) {
        case AF_DTYPE_INT8:
        case AF_DTYPE_UINT8:
                return to_byte(b, x, to);
        case AF_DTYPE_INT16:
                return af_b_cast(b, af_b_wrap(b, x, 16, true), to, AF_ROUND_NONE);
        case AF_DTYPE_INT64:
                return af_b_cast(b, x, to, AF_ROUND_NONE);
        default:
                f = af_b_cast(b, x, AF_DTYPE_FLOAT32, AF_ROUND_RINT);
                return to == AF_DTYPE_FLOAT32 ? f : from_f32(b, f, to);
        }
}

static af_val from_i64(struct af_builder *b, af_val x, enum af_dtype to) {
        af_val f;

        if (af_dtype_kind(to) != 'f') {
                x = af_b_low_i32(b, x);
                return to == AF_DTYPE_INT32 ? x : from_i32(b, x, to);
        }
        f = af_b_cast(b, x, AF_DTYPE_FLOAT32, AF_ROUND_RINT);
        return to == AF_DTYPE_FLOAT32 ? f : from_f32(b, f, to);
}

af_val af_b_convert(struct af_builder *b, af_val x, enum af_dtype from, enum af_dtype to) {
        if (from == AF_DTYPE_BOOL)
                from = AF_DTYPE_MASK;
        if (to == AF_DTYPE_BOOL)
                to = AF_DTYPE_MASK;
        if (from == to || b->full || b->reason)
                return x;
        if (to == AF_DTYPE_FLOAT64 || (from == AF_DTYPE_FLOAT64 && af_dtype_kind(to) != 'f' && to != AF_DTYPE_MASK))
                return refuse(b, "no float64 on the vector unit");
        if (to == AF_DTYPE_MASK)
                return af_b_truth(b, x);
        if (from == AF_DTYPE_FLOAT64) {
                x = af_b_f64_to_f32(b, x);
                return to == AF_DTYPE_FLOAT32 ? x : from_f32(b, x, to);
        }
        switch ((int)from) {
        case AF_DTYPE_MASK:
                return from_mask(b, x, to);
        case AF_DTYPE_INT8:
        case AF_DTYPE_UINT8:
                return from_byte(b, x, to);
        case AF_DTYPE_INT16:
                return from_i16(b, x, to);
        case AF_DTYPE_INT32:
                return from_i32(b, x, to);
        case AF_DTYPE_INT64:
                return from_i64(b, x, to);
        case AF_DTYPE_FLOAT16:
                return from_f16(b, x, to);
        case AF_DTYPE_BFLOAT16:
                x = af_b_cast(b, x, AF_DTYPE_FLOAT32, AF_ROUND_NONE);
                return to == AF_DTYPE_FLOAT32 ? x : from_f32(b, x, to);
        case AF_DTYPE_FLOAT32:
                return from_f32(b, x, to);
        default:
                return refuse(b, "no such cast");
        }
}

af_val af_b_operand(struct af_builder *b, unsigned i, enum af_dtype narrow, enum af_dtype d) {
        const struct af_expand_operand *o = &b->operands[i];
        struct af_expand_operand narrowed = {.dtype = narrow, .is_scalar = true};

        if (!o->is_scalar)
                return af_b_convert(b, (af_val)i, o->dtype, d);
        narrowed.bits = af_scalar_bits(o, narrow);
        if (d == AF_DTYPE_MASK || d == AF_DTYPE_BOOL)
                return af_b_mask_const(b, af_scalar_bits(&narrowed, d) != 0);
        if (af_dtype_size(d) == 1)
                return af_b_cast(b, af_b_dup(b, AF_DTYPE_FLOAT16, af_scalar_bits(&narrowed, AF_DTYPE_FLOAT16)), d, AF_ROUND_TRUNC);
        if (d == AF_DTYPE_INT64)
                return af_b_const_i64(b, (int64_t)af_scalar_bits(&narrowed, d));
        if (d == AF_DTYPE_FLOAT64)
                return refuse(b, "no float64 on the vector unit");
        return af_b_dup(b, d, af_scalar_bits(&narrowed, d));
}
