/* SPDX-License-Identifier: Apache-2.0 */
/* float16 and bfloat16 as uint16_t bit patterns: conversions from and to float. Common subset of C17 and C++17. */
#pragma once

#include "numeric/bits.h"
#include "numeric/mode.h"

/* Exact. A NaN gives the one NaN. */
AF_FN float af_f16_to_f32(uint16_t h) {
        uint32_t m = (uint32_t)h & 0x7fffu, sign = ((uint32_t)h & 0x8000u) << 16;
        uint32_t normal = (m << 13) + (112u << 23);
        uint32_t subnormal = af_bits_f32((float)(int32_t)m * 0x1p-24f);
        uint32_t r = af_blend32(af_mask32(m < 0x400u), subnormal, normal);

        r = af_blend32(af_mask32(m >= AF_F16_INF), AF_F32_INF, r);
        r |= sign;
        return af_f32_from_bits(af_blend32(af_mask32(m > AF_F16_INF), AF_F32_NAN, r));
}

/* Nearest, ties to even; beyond 65519.99… gives infinity. A NaN gives the one NaN. */
AF_FN uint16_t af_f16_from_f32(float x) {
        uint32_t u = af_bits_f32(x), a = u & 0x7fffffffu, sign = (u >> 16) & 0x8000u;
        uint32_t normal = (a + 0xfffu + ((a >> 13) & 1u) - (112u << 23)) >> 13;
        /* Adding 0.5 rounds to multiples of 2^-24, float16's least subnormal. */
        uint32_t subnormal = af_bits_f32(af_f32_from_bits(a) + 0.5f) - 0x3f000000u;
        uint32_t r = af_blend32(af_mask32((int32_t)a < (int32_t)(113u << 23)), subnormal, normal);

        r = af_blend32(af_mask32((int32_t)a >= (int32_t)0x477ff000), AF_F16_INF, r);
        r |= sign;
        return (uint16_t)af_blend32(af_mask32((int32_t)a > (int32_t)AF_F32_INF), AF_F16_NAN, r);
}

/* Exact. A NaN gives the one NaN. */
AF_FN float af_bf16_to_f32(uint16_t h) {
        uint32_t u = (uint32_t)h << 16;

        return af_f32_from_bits(af_blend32(af_mask32((int32_t)(u & 0x7fffffffu) > (int32_t)AF_F32_INF), AF_F32_NAN, u));
}

/* Nearest, ties to even. A NaN gives the one NaN. */
AF_FN uint16_t af_bf16_from_f32(float x) {
        uint32_t u = af_bits_f32(x);
        uint32_t r = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;

        return (uint16_t)af_blend32(af_mask32((int32_t)(u & 0x7fffffffu) > (int32_t)AF_F32_INF), AF_BF16_NAN, r);
}

/*
 * Magnitude a (sign bit clear, finite), its lowest `drop` bits rounded away by mode: the shifted value. sign: nonzero for negative.
 * drop 1..25.
 */
AF_FN uint32_t af_round_drop(uint32_t a, uint32_t drop, uint32_t sign, enum af_round mode) {
        uint32_t kept = a >> drop, rest = a & ((1u << drop) - 1u), half = 1u << (drop - 1u);
        uint32_t up = 0;

        up |= (uint32_t)((mode == AF_ROUND_RINT) | (mode == AF_ROUND_NONE)) &
              (uint32_t)((rest > half) | ((rest == half) & (int)(kept & 1u)));
        up |= (uint32_t)(mode == AF_ROUND_ROUND) & (uint32_t)(rest >= half);
        up |= (uint32_t)(mode == AF_ROUND_FLOOR) & (uint32_t)((rest != 0) & (sign != 0));
        up |= (uint32_t)(mode == AF_ROUND_CEIL) & (uint32_t)((rest != 0) & (sign == 0));
        return kept + up;
}

/*
 * float to float16 in any mode. Directed modes stop at the largest finite value where IEEE 754 does: TRUNC always, FLOOR for positive,
 * CEIL for negative numbers.
 */
AF_FN uint16_t af_f16_from_f32_mode(float x, enum af_round mode) {
        uint32_t u = af_bits_f32(x), a = u & 0x7fffffffu, sign = (u >> 16) & 0x8000u;
        int32_t e = (int32_t)(a >> 23);
        /* Below 2^-14 the kept bits are units of 2^-24: drop 126 - e bits of the significand with its hidden one. */
        int32_t d = 126 - e;
        uint32_t drop = (uint32_t)(d < 14 ? 14 : d > 25 ? 25 : d);
        uint32_t significand = af_blend32(af_mask32(e != 0), (a & 0x7fffffu) | 0x800000u, a);
        uint32_t subnormal = af_round_drop(significand, drop, sign, mode);
        uint32_t normal = af_round_drop(a, 13, sign, mode) - (112u << 10);
        uint32_t r = af_blend32(af_mask32(e < 113), subnormal, normal);
        int finite = (mode == AF_ROUND_TRUNC) | ((mode == AF_ROUND_FLOOR) & (sign == 0)) | ((mode == AF_ROUND_CEIL) & (sign != 0));
        uint32_t most = af_blend32(af_mask32(finite & (a < AF_F32_INF)), 0x7bffu, AF_F16_INF);

        r = af_blend32(af_mask32((e > 142) | (r >= AF_F16_INF)), most, r);
        r |= sign;
        return (uint16_t)af_blend32(af_mask32(a > AF_F32_INF), AF_F16_NAN, r);
}

/* float to bfloat16 in any mode; the carry of a directed mode reaches infinity only where IEEE 754 lets it. */
AF_FN uint16_t af_bf16_from_f32_mode(float x, enum af_round mode) {
        uint32_t u = af_bits_f32(x), a = u & 0x7fffffffu, sign = (u >> 16) & 0x8000u;
        uint32_t r = af_round_drop(a, 16, sign, mode);

        r = af_blend32(af_mask32(a >= AF_F32_INF), a >> 16, r) | sign;
        return (uint16_t)af_blend32(af_mask32(a > AF_F32_INF), AF_BF16_NAN, r);
}
