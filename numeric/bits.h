/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bit-level basics of the scalar primitives. Common subset of C17 and C++17.
 *
 * Everything here and in the headers above it is branch-free straight-line code, so that a plain loop over it vectorises. It needs
 * IEEE 754 arithmetic in round-to-nearest with subnormals kept (no fast-math, no FTZ or DAZ in MXCSR), -ffp-contract=off and
 * -fno-math-errno. Under these every result has the same bits with any compiler, optimisation level and -march.
 */
#pragma once

#include <stdint.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "numeric/ needs IEEE arithmetic: compile without -ffast-math"
#endif

#define AF_FN static inline __attribute__((always_inline, unused))

AF_FN uint32_t af_bits_f32(float x) {
        uint32_t u;

        memcpy(&u, &x, sizeof(u));
        return u;
}

AF_FN float af_f32_from_bits(uint32_t u) {
        float x;

        memcpy(&x, &u, sizeof(x));
        return x;
}

AF_FN uint64_t af_bits_f64(double x) {
        uint64_t u;

        memcpy(&u, &x, sizeof(u));
        return u;
}

AF_FN double af_f64_from_bits(uint64_t u) {
        double x;

        memcpy(&x, &u, sizeof(x));
        return x;
}

/* All ones where c is nonzero. */
AF_FN uint32_t af_mask32(int c) {
        return 0u - (uint32_t)(c != 0);
}

/* a where mask is all ones, b where it is zero. */
AF_FN uint32_t af_blend32(uint32_t mask, uint32_t a, uint32_t b) {
        return (a & mask) | (b & ~mask);
}

AF_FN float af_blend_f32(uint32_t mask, float a, float b) {
        return af_f32_from_bits(af_blend32(mask, af_bits_f32(a), af_bits_f32(b)));
}

#define AF_F32_NAN  0x7fc00000u /* the one NaN that arithmetic gives */
#define AF_F32_INF  0x7f800000u
#define AF_F16_NAN  0x7e00u
#define AF_F16_INF  0x7c00u
#define AF_BF16_NAN 0x7fc0u

/* Any NaN becomes the one NaN: payload and sign of an operation's NaN differ between machines and operand orders. */
AF_FN float af_f32_one_nan(float x) {
        return af_blend_f32(af_mask32(x != x), af_f32_from_bits(AF_F32_NAN), x);
}
