/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scalar primitives on float16 bit patterns: arithmetic in float, rounded once (24 bits are enough for that to equal the directly
 * rounded result), overflow gives infinity. Common subset of C17 and C++17.
 */
#pragma once

#include "numeric/half.h"

AF_FN uint16_t af_f16_add(uint16_t a, uint16_t b) {
        return af_f16_from_f32(af_f16_to_f32(a) + af_f16_to_f32(b));
}
AF_FN uint16_t af_f16_sub(uint16_t a, uint16_t b) {
        return af_f16_from_f32(af_f16_to_f32(a) - af_f16_to_f32(b));
}
AF_FN uint16_t af_f16_mul(uint16_t a, uint16_t b) {
        return af_f16_from_f32(af_f16_to_f32(a) * af_f16_to_f32(b));
}
AF_FN uint16_t af_f16_div(uint16_t a, uint16_t b) {
        return af_f16_from_f32(af_f16_to_f32(a) / af_f16_to_f32(b));
}
AF_FN uint16_t af_f16_abs(uint16_t a) {
        return (uint16_t)(a & 0x7fffu);
}

AF_FN int af_f16_is_nan(uint16_t a) {
        return (int)((a & 0x7fff) > (int)AF_F16_INF);
}

/* Order of the numbers as integers, -0 just below +0. */
AF_FN int32_t af_f16_order(uint16_t a) {
        int32_t s = (int16_t)a;

        return s ^ ((s >> 31) & 0x7fff);
}

/* IEEE 754-2019 maximum and minimum, as af_f32_max. */
AF_FN uint16_t af_f16_max(uint16_t a, uint16_t b) {
        uint32_t r = af_blend32(af_mask32(af_f16_order(a) > af_f16_order(b)), a, b);

        return (uint16_t)af_blend32(af_mask32(af_f16_is_nan(a) | af_f16_is_nan(b)), AF_F16_NAN, r);
}

AF_FN uint16_t af_f16_min(uint16_t a, uint16_t b) {
        uint32_t r = af_blend32(af_mask32(af_f16_order(a) < af_f16_order(b)), a, b);

        return (uint16_t)af_blend32(af_mask32(af_f16_is_nan(a) | af_f16_is_nan(b)), AF_F16_NAN, r);
}

AF_FN uint16_t af_f16_relu(uint16_t a) {
        return af_f16_max(a, 0);
}

AF_FN uint8_t af_f16_eq(uint16_t a, uint16_t b) {
        int same = a == b, zeros = ((a | b) & 0x7fff) == 0, nan = af_f16_is_nan(a) | af_f16_is_nan(b);

        return (uint8_t)((same | zeros) & (nan ^ 1));
}
AF_FN uint8_t af_f16_ne(uint16_t a, uint16_t b) {
        return (uint8_t)(af_f16_eq(a, b) ^ 1u);
}
AF_FN uint8_t af_f16_gt(uint16_t a, uint16_t b) {
        int above = af_f16_order(a) > af_f16_order(b), zeros = ((a | b) & 0x7fff) == 0, nan = af_f16_is_nan(a) | af_f16_is_nan(b);

        return (uint8_t)(above & ((zeros | nan) ^ 1));
}
AF_FN uint8_t af_f16_lt(uint16_t a, uint16_t b) {
        return af_f16_gt(b, a);
}
AF_FN uint8_t af_f16_ge(uint16_t a, uint16_t b) {
        return (uint8_t)(af_f16_gt(a, b) | af_f16_eq(a, b));
}
AF_FN uint8_t af_f16_le(uint16_t a, uint16_t b) {
        return af_f16_ge(b, a);
}
