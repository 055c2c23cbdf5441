/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scalar primitives on float32. Arithmetic is IEEE 754 and gives the one NaN; own polynomials for exp and ln. Common subset of
 * C17 and C++17. Measured accuracy: docs/numerics.md.
 */
#pragma once

#include "numeric/bits.h"
#include "numeric/mode.h"

AF_FN float af_f32_add(float a, float b) {
        return af_f32_one_nan(a + b);
}
AF_FN float af_f32_sub(float a, float b) {
        return af_f32_one_nan(a - b);
}
AF_FN float af_f32_mul(float a, float b) {
        return af_f32_one_nan(a * b);
}
AF_FN float af_f32_div(float a, float b) {
        return af_f32_one_nan(a / b);
}
AF_FN float af_f32_sqrt(float a) {
        return af_f32_one_nan(__builtin_sqrtf(a));
}
AF_FN float af_f32_abs(float a) {
        return af_f32_from_bits(af_bits_f32(a) & 0x7fffffffu);
}

/* IEEE 754-2019 maximum and minimum: a NaN wins, +0 is above -0; they commute in every bit. */
AF_FN float af_f32_max(float a, float b) {
        float r = af_blend_f32(af_mask32(a > b), a, b);

        r = af_blend_f32(af_mask32(a == b), af_f32_from_bits(af_bits_f32(a) & af_bits_f32(b)), r);
        return af_blend_f32(af_mask32(a != a) | af_mask32(b != b), af_f32_from_bits(AF_F32_NAN), r);
}

AF_FN float af_f32_min(float a, float b) {
        float r = af_blend_f32(af_mask32(a < b), a, b);

        r = af_blend_f32(af_mask32(a == b), af_f32_from_bits(af_bits_f32(a) | af_bits_f32(b)), r);
        return af_blend_f32(af_mask32(a != a) | af_mask32(b != b), af_f32_from_bits(AF_F32_NAN), r);
}

/* max(x, +0): NaN stays, -0 gives +0. */
AF_FN float af_f32_relu(float a) {
        float r = af_f32_from_bits(af_bits_f32(a) & af_mask32(a > 0.0f));

        return af_blend_f32(af_mask32(a != a), af_f32_from_bits(AF_F32_NAN), r);
}

AF_FN uint8_t af_f32_lt(float a, float b) {
        return (uint8_t)(a < b);
}
AF_FN uint8_t af_f32_gt(float a, float b) {
        return (uint8_t)(a > b);
}
AF_FN uint8_t af_f32_eq(float a, float b) {
        return (uint8_t)(a == b);
}
AF_FN uint8_t af_f32_le(float a, float b) {
        return (uint8_t)(a <= b);
}
AF_FN uint8_t af_f32_ge(float a, float b) {
        return (uint8_t)(a >= b);
}
AF_FN uint8_t af_f32_ne(float a, float b) {
        return (uint8_t)(a != b);
} /* true for NaN */

AF_FN float af_f32_select(uint8_t mask, float a, float b) {
        return mask ? a : b;
}

/* |x| with the sign of s. */
AF_FN float af_f32_copysign(float x, float s) {
        return af_f32_from_bits((af_bits_f32(x) & 0x7fffffffu) | (af_bits_f32(s) & 0x80000000u));
}

/* Rounds to an integral value; -0, infinities and the sign of a zero result are kept, a NaN gives the one NaN. */
AF_FN float af_f32_round(float x, enum af_round mode) {
        float a = af_f32_abs(x);
        uint32_t small = af_mask32(a < 0x1p23f);
        float s = af_f32_from_bits(af_bits_f32(a) & small); /* 0 where x is integral already, or no number */
        float t = (float)(int32_t)s;
        float frac = s - t;
        int negative = af_bits_f32(x) >> 31 != 0;
        int odd = (int)((uint32_t)(int32_t)s & 1u);
        int up = 0;

        up |= ((mode == AF_ROUND_RINT) | (mode == AF_ROUND_NONE)) & ((frac > 0.5f) | ((frac == 0.5f) & odd));
        up |= (mode == AF_ROUND_ROUND) & (frac >= 0.5f);
        up |= (mode == AF_ROUND_FLOOR) & (frac > 0.0f) & negative;
        up |= (mode == AF_ROUND_CEIL) & (frac > 0.0f) & !negative;
        t += (float)up;
        return af_f32_one_nan(af_blend_f32(small, af_f32_copysign(t, x), x));
}

/*
 * e^x. x = n ln 2 + r, |r| <= ln 2 / 2; e^r = 1 + r + r^2 P(r), its leading sum kept in two parts; 2^n in two factors, so that
 * results below 2^-126 round once more only.
 */
AF_FN float af_f32_exp(float x) {
        const float magic = 0x1.8p23f;
        /* Outside, and for NaN, the polynomial sees 0: no slow subnormals on the way to a result that is known. */
        uint32_t below = af_mask32(x <= -104.0f), above = af_mask32(x >= 89.0f);
        float c = af_f32_from_bits(af_bits_f32(x) & ~(below | above | af_mask32(x != x)));
        float t, n, h, w, r, r_low, p, s, y;
        int32_t k, k1;

        t = c * 0x1.715476p0f + magic;
        n = t - magic;
        k = (int32_t)(af_bits_f32(t) - af_bits_f32(magic));
        h = c - n * 0x1.63p-1f; /* exact: 9 bits times at most 8 */
        w = n * -0x1.bd0106p-13f;
        r = h - w;
        r_low = (h - r) - w;
        p = 0x1.6d839ap-10f;
        p = p * r + 0x1.123f9p-7f;
        p = p * r + 0x1.5554b8p-5f;
        p = p * r + 0x1.55548ap-3f;
        p = p * r + 0.5f;
        s = 1.0f + r;
        y = s + (((r - (s - 1.0f)) + r_low) + (r * r) * p);
        k1 = k >> 1;
        y = y * af_f32_from_bits((uint32_t)(k1 + 127) << 23);
        y = y * af_f32_from_bits((uint32_t)(k - k1 + 127) << 23);
        y = af_blend_f32(above, af_f32_from_bits(AF_F32_INF), af_f32_from_bits(af_bits_f32(y) & ~below));
        return af_blend_f32(af_mask32(x != x), af_f32_from_bits(AF_F32_NAN), y);
}

/*
 * Natural logarithm. x = 2^k m, sqrt(1/2) <= m < sqrt(2), f = m - 1; ln m = f - f^2/2 + f^3 Q(f) with the first two terms in two
 * parts. ln(±0) = -inf, of negative numbers NaN.
 */
AF_FN float af_f32_ln(float x) {
        uint32_t u0 = af_bits_f32(x), tiny = af_mask32(x < 0x1p-126f);
        uint32_t u = af_bits_f32(af_blend_f32(tiny, x * 0x1p23f, x));
        uint32_t i = u - 0x3f3504f3u;
        float k = (float)(((int32_t)i >> 23) - (int32_t)(tiny & 23u));
        float f = af_f32_from_bits((i & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
        float fh = af_f32_from_bits(af_bits_f32(f) & 0xfffff000u), fl = f - fh;
        float a = 0.5f * fh * fh, b = 0.5f * fl * (f + fh);
        float hi = f - a, lo = ((f - hi) - a) - b;
        float q, top, s, y;

        q = 0x1.1b4874p-4f;
        q = q * f + -0x1.e2ef3cp-4f;
        q = q * f + 0x1.e650e6p-4f;
        q = q * f + -0x1.fb42a8p-4f;
        q = q * f + 0x1.2332c6p-3f;
        q = q * f + -0x1.5562e4p-3f;
        q = q * f + 0x1.99a544p-3f;
        q = q * f + -0x1.ffffeep-3f;
        q = q * f + 0x1.555546p-2f;
        lo = lo + (f * f * f) * q;
        top = k * 0x1.62ep-1f; /* exact: 12 bits times 8 */
        s = top + hi;
        y = s + (((hi - (s - top)) + k * 0x1.0bfbe8p-15f) + lo);
        y = af_blend_f32(af_mask32(u0 == AF_F32_INF), x, y);
        y = af_blend_f32(af_mask32(x == 0.0f), af_f32_from_bits(0xff800000u), y);
        return af_blend_f32(af_mask32(x < 0.0f) | af_mask32(x != x), af_f32_from_bits(AF_F32_NAN), y);
}
