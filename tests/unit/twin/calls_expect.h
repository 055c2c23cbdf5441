/* SPDX-License-Identifier: Apache-2.0 */
/* What each case of kernels/calls.cpp gives, by plain loops over scalar primitives. Saturation is on unless a case turns it off. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "numeric/prim.h"

#define BYTES   4096
#define REPEATS 7

union operand {
        float f[BYTES / 4];
        uint16_t h[BYTES / 2]; /* half and bfloat16 bits */
        int32_t i[BYTES / 4];
        uint32_t u[BYTES / 4];
        int16_t s[BYTES / 2];
        uint16_t us[BYTES / 2];
        int64_t l[BYTES / 8];
        uint8_t b[BYTES];
        int8_t c[BYTES];
};
struct call_case {
        const union operand *a, *b;
        union operand *z; /* zero at the start */
        int n;
};

/* Saturated half and bfloat16. */
static inline uint16_t sat(uint16_t v, uint16_t inf) {
        uint16_t magnitude = v & 0x7fff;

        return magnitude > inf ? 0 : magnitude == inf ? (uint16_t)(v - 1) : v;
}
static inline uint16_t sat_h(uint16_t v) {
        return sat(v, 0x7c00);
}
static inline float hf(uint16_t v) {
        return af_f16_to_f32(v);
}
static inline uint16_t fh(float v) {
        return sat_h(af_f16_from_f32(v));
}
/* a b + c rounded once; the test's values leave room in a double's product, and the sum is checked by the caller's choice of values. */
static inline float fused(float a, float b, float c) {
        return af_f32_one_nan(__builtin_fmaf(a, b, c));
}

/* clang-format off */
#define EACH(count) for (int k = 0; k < (count); k++)
#define A           (x->a)
#define B           (x->b)
#define Z           (x->z)
#define N           (x->n)

static inline bool expect_arith(int number, const struct call_case *x) {
        switch (number) {
        case 0: EACH(N) Z->f[k] = af_f32_add(A->f[k], B->f[k]); return true;
        case 1: EACH(N) Z->f[k] = af_f32_sub(A->f[k], B->f[k]); return true;
        case 2: EACH(N) Z->f[k] = af_f32_mul(A->f[k], B->f[k]); return true;
        case 3: EACH(N) Z->f[k] = af_f32_div(A->f[k], B->f[k]); return true;
        case 4: EACH(N) Z->f[k] = af_f32_max(A->f[k], B->f[k]); return true;
        case 5: EACH(N) Z->f[k] = af_f32_min(A->f[k], B->f[k]); return true;
        case 6: EACH(N) Z->h[k] = sat_h(af_f16_add(A->h[k], B->h[k])); return true;
        case 7: EACH(N) Z->h[k] = sat_h(af_f16_sub(A->h[k], B->h[k])); return true;
        case 8: EACH(N) Z->h[k] = sat_h(af_f16_mul(A->h[k], B->h[k])); return true;
        case 9: EACH(N) Z->h[k] = sat_h(af_f16_div(A->h[k], B->h[k])); return true;
        case 10: EACH(N) Z->h[k] = sat_h(af_f16_max(A->h[k], B->h[k])); return true;
        case 11: EACH(N) Z->h[k] = sat_h(af_f16_min(A->h[k], B->h[k])); return true;
        case 12: EACH(N) Z->i[k] = af_i32_add(A->i[k], B->i[k]); return true;
        case 13: EACH(N) Z->s[k] = af_i16_mul(A->s[k], B->s[k]); return true;
        case 14: EACH(N) Z->us[k] = A->us[k] & B->us[k]; return true;
        case 15: EACH(N) Z->us[k] = A->us[k] | B->us[k]; return true;
        case 16: EACH(N) Z->us[k] = (uint16_t)~A->us[k]; return true;
        case 17: EACH(N) Z->f[k] = af_f32_abs(A->f[k]); return true;
        case 18: EACH(N) Z->h[k] = sat_h(af_f16_abs(A->h[k])); return true;
        case 19: EACH(N) Z->f[k] = af_f32_sqrt(A->f[k]); return true;
        case 20: EACH(N) Z->f[k] = af_f32_div(1.0f, af_f32_sqrt(A->f[k])); return true;
        case 21: EACH(N) Z->f[k] = af_f32_div(1.0f, A->f[k]); return true;
        case 22: EACH(N) Z->f[k] = af_f32_relu(A->f[k]); return true;
        case 23: EACH(N) Z->h[k] = sat_h(af_f16_relu(A->h[k])); return true;
        case 24: EACH(N) Z->i[k] = A->i[k] > 0 ? A->i[k] : 0; return true;
        case 25: EACH(N) Z->f[k] = af_f32_exp(A->f[k]); return true;
        case 26: EACH(N) Z->f[k] = af_f32_ln(A->f[k]); return true;
        case 27: EACH(N) Z->h[k] = fh(af_f32_exp(hf(A->h[k]))); return true;
        case 28: EACH(N) Z->h[k] = fh(af_f32_ln(hf(A->h[k]))); return true;
        case 29: EACH(N) Z->f[k] = af_f32_add(A->f[k], 1.5f); return true;
        case 30: EACH(N) Z->h[k] = sat_h(af_f16_mul(A->h[k], af_f16_from_f32(0.3f))); return true;
        case 31: EACH(N) Z->i[k] = A->i[k] > 5 ? A->i[k] : 5; return true;
        case 32: EACH(N) Z->s[k] = A->s[k] < -5 ? A->s[k] : -5; return true;
        case 33: EACH(N) Z->f[k] = A->f[k] >= 0 ? A->f[k] : af_f32_mul(A->f[k], 0.1f); return true;
        case 34: EACH(N) Z->h[k] = hf(A->h[k]) >= 0 ? sat_h(A->h[k]) : fh(hf(A->h[k]) * hf(af_f16_from_f32(0.1f))); return true;
        case 35: EACH(N) Z->u[k] = A->u[k] << 3; return true;
        case 36: EACH(N) Z->us[k] = (uint16_t)(A->us[k] << 15); return true;
        case 37: EACH(N) Z->us[k] = A->us[k] >> 4; return true;
        case 38: EACH(N) Z->i[k] = A->i[k] < 0 ? -1 : 0; return true;
        case 39: EACH(64 * REPEATS) Z->i[k] = (A->i[k] >> 4) + (A->i[k] >> 3 & 1); return true;
        case 40: EACH(N) Z->f[k] = fused(A->f[k], 2.5f, 1.0f); return true;
        case 41: EACH(N) Z->f[k] = fused(hf(A->h[k]), hf(af_f16_from_f32(1.3f)), 0.7f); return true;
        case 42: EACH(N) Z->h[k] = fh(fused(hf(A->h[k]), hf(af_f16_from_f32(1.3f)), hf(af_f16_from_f32(0.7f)))); return true;
        case 43: EACH(N) Z->f[k] = fused(A->f[k], B->f[k], 0.7f); return true;
        case 44: EACH(N) Z->f[k] = fused(A->f[k], 0.7f, B->f[k]); return true;
        default:
                return false;
        }
}

static inline bool expect_cast(int number, const struct call_case *x) {
        static const enum af_round modes[] = {AF_ROUND_RINT, AF_ROUND_FLOOR, AF_ROUND_CEIL, AF_ROUND_ROUND, AF_ROUND_TRUNC};

        switch (number) {
        case 45: EACH(N) Z->f[k] = hf(A->h[k]); return true;
        case 46: case 47: case 48: case 49: case 50: EACH(N) Z->h[k] = sat_h(af_cast_f32_f16(A->f[k], modes[number - 46])); return true;
        case 51:
                EACH(N) {
                        uint16_t t = af_cast_f32_f16(A->f[k], AF_ROUND_TRUNC);
                        Z->h[k] = sat_h((uint16_t)(hf(t) != A->f[k] ? t | 1 : t));
                }
                return true;
        case 52: EACH(N) Z->h[k] = fh(A->f[k]); return true;
        case 53: EACH(N) Z->h[k] = sat(af_cast_f32_bf16(A->f[k], AF_ROUND_RINT), 0x7f80); return true;
        case 54: EACH(N) Z->h[k] = sat(af_cast_f32_bf16(A->f[k], AF_ROUND_TRUNC), 0x7f80); return true;
        case 55: EACH(N) Z->f[k] = af_bf16_to_f32(A->h[k]); return true;
        case 56: case 57: case 58: case 59: case 60: EACH(N) Z->i[k] = af_cast_f32_i32(A->f[k], modes[number - 56]); return true;
        case 61: EACH(N) Z->s[k] = af_cast_f32_i16(A->f[k], AF_ROUND_RINT); return true;
        case 62: EACH(N) Z->f[k] = af_f32_round(A->f[k], AF_ROUND_FLOOR); return true;
        case 63: EACH(N) Z->f[k] = af_f32_round(A->f[k], AF_ROUND_ROUND); return true;
        case 64: EACH(N) Z->f[k] = (float)A->i[k]; return true;
        case 65: EACH(N) Z->f[k] = af_cast_i32_f32(A->i[k], AF_ROUND_CEIL); return true;
        case 66: EACH(N) Z->f[k] = A->s[k]; return true;
        case 67: EACH(N) Z->h[k] = sat_h(af_cast_i16_f16(A->s[k], AF_ROUND_FLOOR)); return true;
        case 68: EACH(N) Z->h[k] = fh(A->b[k]); return true;
        case 69: EACH(N) Z->h[k] = fh(A->c[k]); return true;
        case 70: EACH(N) Z->b[k] = af_cast_f16_u8(A->h[k], AF_ROUND_TRUNC); return true;
        case 71: EACH(N) Z->c[k] = af_cast_f16_i8(A->h[k], AF_ROUND_RINT); return true;
        case 72: EACH(N / 2) Z->l[k] = A->i[k]; return true;
        case 73: EACH(N / 2) Z->i[k] = af_cast_i64_i32(A->l[k], AF_ROUND_NONE); return true;
        case 74: EACH(N / 2) Z->f[k] = (float)A->l[k]; return true;
        case 75: EACH(N / 2) Z->l[k] = af_cast_f32_i64(A->f[k], AF_ROUND_TRUNC); return true;
        case 76: EACH(N) Z->i[k] = af_cast_f16_i32(A->h[k], AF_ROUND_CEIL); return true;
        case 77: EACH(N) Z->s[k] = af_cast_i32_i16(A->i[k], AF_ROUND_NONE); return true;
        case 78: EACH(64 * REPEATS) if (k % 64 < 50) Z->f[k] = hf(A->h[k]); return true;
        default:
                return false;
        }
}

static inline void set_bit(union operand *z, int k, bool v) {
        z->b[k / 8] |= (uint8_t)(v << (k % 8));
}
static inline bool bit(const union operand *b, int k) {
        return b->b[k / 8] >> (k % 8) & 1;
}

static inline bool expect_select(int number, const struct call_case *x) {
        switch (number) {
        case 79: EACH(1024) set_bit(Z, k, A->f[k] < B->f[k]); return true;
        case 80: EACH(2048) set_bit(Z, k, hf(A->h[k]) >= hf(B->h[k])); return true;
        case 81: EACH(1024) set_bit(Z, k, A->i[k] == B->i[k]); return true;
        case 82: EACH(1024) set_bit(Z, k, A->f[k] <= 0.5f); return true;
        case 83: EACH(2048) set_bit(Z, k, hf(A->h[k]) != 0.5f); return true;
        case 84: EACH(64 * REPEATS) set_bit(Z, k, A->f[k] > B->f[k]); return true;
        case 85: EACH(N) Z->u[k] = bit(B, k) ? A->u[k] : B->u[k]; return true;
        case 86: EACH(N) Z->us[k] = bit(B, k) ? A->us[k] : af_f16_from_f32(3.0f); return true;
        case 87: EACH(N) Z->u[k] = bit(B, k % 64) ? A->u[k] : B->u[k]; return true;
        case 88: EACH(64 * REPEATS) if (k % 64 < 40) Z->u[k] = bit(B, k) ? A->u[k] : B->u[k]; return true;
        default:
                return false;
        }
}

/* Adjacent-pair tree over n lanes, a power of two, of which `have` are there. */
static inline float tree_f(const float *v, int n, int have) {
        return n == 1 ? (have > 0 ? v[0] : 0.0f) : af_f32_add(tree_f(v, n / 2, have), tree_f(v + n / 2, n / 2, have - n / 2));
}
static inline uint16_t tree_h(const uint16_t *v, int n, int have) {
        return n == 1 ? (have > 0 ? v[0] : 0) : sat_h(af_f16_add(tree_h(v, n / 2, have), tree_h(v + n / 2, n / 2, have - n / 2)));
}
static inline int best_f(const float *v, int n, int sign) {
        int best = 0;

        for (int k = 1; k < n; k++)
                best = (float)sign * v[k] > (float)sign * v[best] ? k : best;
        return best;
}
static inline int best_h(const uint16_t *v, int n, int sign) {
        int best = 0;

        for (int k = 1; k < n; k++)
                best = (float)sign * hf(v[k]) > (float)sign * hf(v[best]) ? k : best;
        return best;
}

static inline bool expect_reduce(int number, const struct call_case *x) {
        float f = 0;
        uint16_t h = 0;
        int best;

        switch (number) {
        case 89: EACH(16) Z->f[k] = tree_f(A->f + 64 * k, 64, 64); return true;
        case 90: EACH(16) Z->f[k] = tree_f(A->f + 64 * k, 64, 37); return true;
        case 91: EACH(16) Z->h[k] = tree_h(A->h + 128 * k, 128, 100); return true;
        case 92: EACH(16) Z->f[k] = A->f[64 * k + best_f(A->f + 64 * k, 64, 1)]; return true;
        case 93: EACH(16) Z->h[2 * k + 1] = (uint16_t)best_h(A->h + 128 * k, 128, 1), Z->h[2 * k] = A->h[128 * k + Z->h[2 * k + 1]]; return true;
        case 94: EACH(16) Z->u[2 * k] = (uint32_t)best_f(A->f + 64 * k, 33, -1), Z->f[2 * k + 1] = A->f[64 * k + (int)Z->u[2 * k]]; return true;
        case 95: EACH(128) Z->f[k] = tree_f(A->f + 8 * k, 8, 8); return true;
        case 96: EACH(128) if (k % 8 < 7) Z->h[k] = A->h[16 * k + best_h(A->h + 16 * k, k % 8 < 6 ? 16 : 4, 1)]; return true;
        case 97: EACH(15 * 32) Z->f[k] = af_f32_add(A->f[2 * k], A->f[2 * k + 1]); return true;
        case 98: for (int k = 0; k < N; k += 64) f = af_f32_add(f, tree_f(A->f + k, 64, N - k)); Z->f[0] = f; return true;
        case 99: for (int k = 0; k < N; k += 128) h = af_f16_add(h, tree_h(A->h + k, 128, N - k)); Z->h[0] = h; return true;
        case 100: best = best_f(A->f, N, 1), Z->f[0] = A->f[best], Z->i[1] = best; return true;
        case 101: best = best_h(A->h, N, -1), Z->h[0] = A->h[best], Z->h[1] = (uint16_t)best; return true;
        case 102: {
                float sums[64] = {0};
                EACH(16) sums[k] = tree_f(A->f + 64 * k, 64, 60);
                Z->f[0] = tree_f(sums, 64, 16);
                return true;
        }
        case 103: best = best_f(A->f, 1024, 1), Z->f[0] = A->f[best], Z->i[1] = best; return true;
        default:
                return false;
        }
}

static inline bool expect_move(int number, const struct call_case *x) {
        int got = 0;

        switch (number) {
        case 104: EACH(N) Z->h[k] = af_f16_from_f32(2.5f); return true;
        case 105: EACH(128 * REPEATS) if (k % 128 < 100) Z->s[k] = -7; return true;
        case 106: EACH(1024) Z->u[k] = A->u[k / 8]; return true;
        case 107: EACH(1024) Z->us[k] = A->us[k / 16]; return true;
        case 108: EACH(N) Z->u[k] = A->u[B->u[k] >> 22]; return true;
        case 109: EACH(512) Z->u[k] = A->u[2 * k]; return true;
        case 110: EACH(1024) Z->us[k] = A->us[2 * k + 1]; return true;
        case 111: EACH(256) Z->u[k] = A->u[4 * k + 2]; return true;
        case 112: EACH(64 * 8) if (k % 64 < 40 && B->b[k / 64 * 32 + k % 64 / 8] >> (k % 8) & 1) Z->u[got++] = A->u[k]; return true;
        case 113: EACH(N) Z->i[k] = 3 + k; return true;
        case 114: EACH(N) Z->f[k] = 0.5f + (float)k; return true;
        case 115: EACH(256) Z->us[k] = A->us[k % 16 * 16 + k / 16]; return true;
        case 116: EACH(64 * REPEATS) Z->u[k] = A->u[k / 64 * 8 + k % 8]; return true;
        case 117: EACH(5) memcpy(Z->b + k * 4 * 32, A->b + k * 5 * 32, 96); return true;
        case 118: EACH(64 * REPEATS) if (k % 64 < 37) Z->f[k] = af_f32_add(A->f[k], B->f[k]); return true;
        case 119: EACH(1024) Z->f[k % 64] = af_f32_add(Z->f[k % 64], A->f[k]); return true;
        case 120: EACH(64 * REPEATS) if (0x5555aaaa0f0f1234ull >> (k % 64) & 1) Z->f[k] = af_f32_mul(A->f[k], B->f[k]); return true;
        case 121: EACH(128 * REPEATS) if (k % 128 < 72) Z->h[k] = sat_h(af_f16_add(A->h[k], af_f16_from_f32(1.0f))); return true;
        case 122: EACH(64 * REPEATS) Z->f[k / 8 * 16 + k % 8] = af_f32_add(A->f[k / 64 * 8 + k % 8], B->f[k]); return true;
        case 123: EACH(N) Z->h[k] = sat_h(af_f16_add(sat_h(af_f16_add(A->h[k], af_f16_from_f32(1.0f))), 0)); return true;
        case 124: EACH(N) Z->h[k] = af_f16_mul(A->h[k], B->h[k]); return true;
        case 125: EACH(N) Z->h[k] = af_f16_from_f32(A->f[k]); return true;
        default:
                return false;
        }
}

static inline bool expect_forms(int number, const struct call_case *x) {
        switch (number) {
        case 126: EACH(64 * REPEATS) if (k % 64 < 50) Z->f[k] = fused(hf(A->h[k]), hf(af_f16_from_f32(1.3f)), 0.0f); return true;
        case 127: EACH(1024) Z->f[k] = k < 64 * REPEATS ? fused(A->f[k], B->f[k], 0.7f) : 0.7f; return true;
        case 128:
                EACH(2048) {
                        uint16_t c = af_f16_from_f32(0.7f);
                        Z->h[k] = k < 128 * REPEATS && k % 128 < 100 ? fh(fused(hf(A->h[k]), hf(c), hf(B->h[k]))) : c;
                }
                return true;
        case 129: EACH(64 * REPEATS) if (0x00ff00ff12345678ull >> (k % 64) & 1) Z->f[k] = bit(B, k) ? A->f[k] : 2.0f; return true;
        case 130: EACH(64 * REPEATS) Z->i[k] = 3 + k; return true;
        case 131: EACH(16) Z->f[k] = tree_f(A->f + 64 * k, 64, 64); return true;
        case 132: EACH(128) Z->f[k] = A->f[8 * k + best_f(A->f + 8 * k, 8, -1)]; return true;
        case 133: EACH(15 * 32) Z->f[k] = af_f32_add(A->f[2 * k], A->f[2 * k + 1]); return true;
        default: return false;
        }
}

/* clang-format on */
#undef EACH
#undef A
#undef B
#undef Z
#undef N
