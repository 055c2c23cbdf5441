/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vector unit's Cast, one function per pair of types: af_cast_<from>_<to>(x, mode). Common subset of C17 and C++17.
 *
 * To an integer: rounded to an integral value by mode, then saturated to the target's range; a NaN gives 0; a narrower integer
 * saturates as well. To a float: rounded by mode, overflow as IEEE 754 (RINT: infinity). NONE rounds as RINT. Programs (expand.h)
 * never rely on what an integer cast does beyond the target's range, except float32 to int32 and int64, where they want saturation.
 */
#pragma once

#include "numeric/half.h"
#include "numeric/prim_f32.h"

/* Integral or not, clamped to [low, high], both exact in float; NaN gives 0. |low|, high < 2^31. */
AF_FN int32_t af_f32_to_int_clamped(float x, enum af_round mode, float low, float high) {
        float r = af_f32_round(x, mode);

        r = af_blend_f32(af_mask32(r < low), low, r);
        r = af_blend_f32(af_mask32(r > high), high, r);
        return (int32_t)af_f32_from_bits(af_bits_f32(r) & af_mask32(r == r));
}

AF_FN int8_t af_cast_f32_i8(float x, enum af_round mode) {
        return (int8_t)af_f32_to_int_clamped(x, mode, -128.0f, 127.0f);
}
AF_FN uint8_t af_cast_f32_u8(float x, enum af_round mode) {
        return (uint8_t)af_f32_to_int_clamped(x, mode, 0.0f, 255.0f);
}
AF_FN int16_t af_cast_f32_i16(float x, enum af_round mode) {
        return (int16_t)af_f32_to_int_clamped(x, mode, -32768.0f, 32767.0f);
}

AF_FN int32_t af_cast_f32_i32(float x, enum af_round mode) {
        int32_t r = af_f32_to_int_clamped(x, mode, -0x1p31f, 0x1.fffffep30f);

        return (int32_t)af_blend32(af_mask32(x >= 0x1p31f), 0x7fffffffu, (uint32_t)r);
}

AF_FN int64_t af_cast_f32_i64(float x, enum af_round mode) {
        float r = af_f32_round(x, mode);
        float s = af_blend_f32(af_mask32(r < 0x1p63f) & af_mask32(r >= -0x1p63f), r, 0.0f);
        int64_t v = (int64_t)s;

        v = r >= 0x1p63f ? INT64_MAX : v;
        return r < -0x1p63f ? INT64_MIN : v;
}

AF_FN float af_cast_f32_f32(float x, enum af_round mode) {
        return af_f32_round(x, mode);
}

AF_FN uint16_t af_cast_f32_f16(float x, enum af_round mode) {
        return mode == AF_ROUND_RINT || mode == AF_ROUND_NONE ? af_f16_from_f32(x) : af_f16_from_f32_mode(x, mode);
}

AF_FN uint16_t af_cast_f32_bf16(float x, enum af_round mode) {
        return mode == AF_ROUND_RINT || mode == AF_ROUND_NONE ? af_bf16_from_f32(x) : af_bf16_from_f32_mode(x, mode);
}

AF_FN float af_cast_f16_f32(uint16_t x, enum af_round mode) {
        (void)mode;
        return af_f16_to_f32(x);
}
AF_FN int8_t af_cast_f16_i8(uint16_t x, enum af_round mode) {
        return af_cast_f32_i8(af_f16_to_f32(x), mode);
}
AF_FN uint8_t af_cast_f16_u8(uint16_t x, enum af_round mode) {
        return af_cast_f32_u8(af_f16_to_f32(x), mode);
}
AF_FN int16_t af_cast_f16_i16(uint16_t x, enum af_round mode) {
        return af_cast_f32_i16(af_f16_to_f32(x), mode);
}
AF_FN int32_t af_cast_f16_i32(uint16_t x, enum af_round mode) {
        return af_cast_f32_i32(af_f16_to_f32(x), mode);
}

AF_FN float af_cast_bf16_f32(uint16_t x, enum af_round mode) {
        (void)mode;
        return af_bf16_to_f32(x);
}
AF_FN int32_t af_cast_bf16_i32(uint16_t x, enum af_round mode) {
        return af_cast_f32_i32(af_bf16_to_f32(x), mode);
}

/* Exact: 8-bit integers fit float16. */
AF_FN uint16_t af_cast_i8_f16(int8_t x, enum af_round mode) {
        (void)mode;
        return af_f16_from_f32((float)x);
}
AF_FN uint16_t af_cast_u8_f16(uint8_t x, enum af_round mode) {
        (void)mode;
        return af_f16_from_f32((float)x);
}

AF_FN uint16_t af_cast_i16_f16(int16_t x, enum af_round mode) {
        return af_cast_f32_f16((float)x, mode);
}
AF_FN float af_cast_i16_f32(int16_t x, enum af_round mode) {
        (void)mode;
        return (float)x;
}

/* f = x rounded to nearest; moves it by one unit where mode wants the other neighbour. diff: exact x - f, as -1, 0 or 1. */
AF_FN float af_f32_redirect(float f, int diff, int tie, enum af_round mode) {
        uint32_t u = af_bits_f32(f), negative = u >> 31;
        int away = ((mode == AF_ROUND_FLOOR) & (diff < 0) & (int)negative) | ((mode == AF_ROUND_CEIL) & (diff > 0) & (int)!negative) |
                   ((mode == AF_ROUND_ROUND) & tie & (negative ? diff < 0 : diff > 0));
        int back = ((mode == AF_ROUND_FLOOR) & (diff < 0) & (int)!negative) | ((mode == AF_ROUND_CEIL) & (diff > 0) & (int)negative) |
                   ((mode == AF_ROUND_TRUNC) & (negative ? diff > 0 : diff < 0));

        return af_f32_from_bits(u + (uint32_t)away - (uint32_t)back);
}

AF_FN float af_cast_i64_f32(int64_t x, enum af_round mode) {
        float f = (float)x;
        int over = f >= 0x1p63f; /* then x < f */
        int64_t diff = over ? x - INT64_MAX - 1 : x - (int64_t)(over ? 0.0f : f);
        /* Half the distance to f's neighbour in the direction of x. */
        int e = (int)(af_bits_f32(f) >> 23 & 0xffu) - 127;
        int64_t half = e >= 24 ? (int64_t)1 << (e - 24) : 0;

        return af_f32_redirect(f, (diff > 0) - (diff < 0), diff == half || diff == -half, mode);
}

AF_FN float af_cast_i32_f32(int32_t x, enum af_round mode) {
        return mode == AF_ROUND_RINT || mode == AF_ROUND_NONE ? (float)x : af_cast_i64_f32(x, mode);
}
AF_FN int16_t af_cast_i32_i16(int32_t x, enum af_round mode) {
        (void)mode;
        x = x < -32768 ? -32768 : x;
        return (int16_t)(x > 32767 ? 32767 : x);
}
AF_FN int64_t af_cast_i32_i64(int32_t x, enum af_round mode) {
        (void)mode;
        return x;
}
AF_FN int32_t af_cast_i64_i32(int64_t x, enum af_round mode) {
        (void)mode;
        x = x < INT32_MIN ? INT32_MIN : x;
        return (int32_t)(x > INT32_MAX ? INT32_MAX : x);
}
