/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digests of what the scalar primitives give (headers alone, C17 or C++17) and, unless IDENTITY_HEADERS_ONLY, of every program and of
 * what the library's loops give. Printed by identity.c under several compilers and flags: test_identity.c wants them all alike.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "numeric/prim.h"
#ifndef IDENTITY_HEADERS_ONLY
#include "numeric/expand.h"
#endif

static uint64_t digest_state;

static void digest_start(void) {
        digest_state = 0xcbf29ce484222325u;
}

static void digest(uint64_t v) {
        digest_state = (digest_state ^ v) * 0x100000001b3u;
        digest_state ^= digest_state >> 29;
}

static void digest_bytes(const void *p, size_t n) {
        const unsigned char *c = (const unsigned char *)p;

        for (size_t i = 0; i < n; i++)
                digest(c[i]);
}

static uint64_t mix(uint64_t i) {
        uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
}

enum { IDENTITY_N = 20000 };

/* Value i of a series with NaNs, infinities, zeros, subnormals, equal pairs, integers, ordinary numbers. */
static uint32_t series(uint64_t i, uint64_t salt) {
        uint64_t r = mix(i * 8 + salt);

        switch (r % 7) {
        case 0:
                return (uint32_t)(r >> 32);
        case 1:
                return (uint32_t)((r >> 32) & 0x807fffff); /* subnormals and zeros */
        case 2:
                return 0x7f800000u | (uint32_t)((r >> 32) & 0x80400001); /* infinities, NaNs of several payloads */
        case 3:
                return af_bits_f32((float)((int32_t)(r >> 32) >> 24) * 0.5f);
        default:
                return af_bits_f32((float)(int32_t)(r >> 32) * af_f32_from_bits((uint32_t)(0x2f000000 + (r >> 8 & 15) * 0x00800000)));
        }
}

/* A loop that the compiler may vectorise, over one expression in x, y (float), h, g (halves), i, j (int32). */
#define DIGEST_LOOP(name, type, expr)                                                                                                      \
        do {                                                                                                                               \
                static type out[IDENTITY_N];                                                                                               \
                for (int k = 0; k < IDENTITY_N; k++) {                                                                                     \
                        const float x = a[k], y = b[k];                                                                                    \
                        const uint16_t h = ha[k], g = hb[k];                                                                               \
                        const int32_t i = ia[k], j = ib[k];                                                                                \
                        (void)x, (void)y, (void)h, (void)g, (void)i, (void)j;                                                              \
                        out[k] = (expr);                                                                                                   \
                }                                                                                                                          \
                digest_start();                                                                                                            \
                digest_bytes(out, sizeof(out));                                                                                            \
                printf("prim %s %016llx\n", name, (unsigned long long)digest_state);                                                       \
        } while (0)

static float a[IDENTITY_N], b[IDENTITY_N];
static uint16_t ha[IDENTITY_N], hb[IDENTITY_N];
static int32_t ia[IDENTITY_N], ib[IDENTITY_N];

static void fill_series(void) {
        for (int k = 0; k < IDENTITY_N; k++) {
                a[k] = af_f32_from_bits(series((uint64_t)k, 1));
                b[k] = k % 5 ? af_f32_from_bits(series((uint64_t)k, 2)) : a[k];
                ha[k] = (uint16_t)mix((uint64_t)k * 8 + 3);
                hb[k] = (uint16_t)(k % 5 ? mix((uint64_t)k * 8 + 4) : ha[k] ^ 0x8000u);
                ia[k] = (int32_t)mix((uint64_t)k * 8 + 5) >> (k % 32);
                ib[k] = (int32_t)mix((uint64_t)k * 8 + 6) >> (k % 29);
        }
}

static void print_f32(void) {
        DIGEST_LOOP("f32 add", float, af_f32_add(x, y));
        DIGEST_LOOP("f32 sub", float, af_f32_sub(x, y));
        DIGEST_LOOP("f32 mul", float, af_f32_mul(x, y));
        DIGEST_LOOP("f32 mul add", float, af_f32_add(af_f32_mul(x, y), x)); /* must not be fused */
        DIGEST_LOOP("f32 div", float, af_f32_div(x, y));
        DIGEST_LOOP("f32 max", float, af_f32_max(x, y));
        DIGEST_LOOP("f32 min", float, af_f32_min(x, y));
        DIGEST_LOOP("f32 relu", float, af_f32_relu(x));
        DIGEST_LOOP("f32 abs", float, af_f32_abs(x));
        DIGEST_LOOP("f32 sqrt", float, af_f32_sqrt(x));
        DIGEST_LOOP("f32 exp", float, af_f32_exp(x));
        DIGEST_LOOP("f32 exp small", float, af_f32_exp(y * 1e-8f));
        DIGEST_LOOP("f32 ln", float, af_f32_ln(x));
        DIGEST_LOOP("f32 compares", uint8_t,
                    (uint8_t)(af_f32_lt(x, y) + 2 * af_f32_le(x, y) + 4 * af_f32_eq(x, y) + 8 * af_f32_ne(x, y) + 16 * af_f32_ge(x, y) +
                              32 * af_f32_gt(x, y)));
        DIGEST_LOOP("f32 select", float, af_f32_select(af_f32_lt(x, y), x, y));
}

static void print_narrow(void) {
        DIGEST_LOOP("f16 add", uint16_t, af_f16_add(h, g));
        DIGEST_LOOP("f16 sub", uint16_t, af_f16_sub(h, g));
        DIGEST_LOOP("f16 mul", uint16_t, af_f16_mul(h, g));
        DIGEST_LOOP("f16 div", uint16_t, af_f16_div(h, g));
        DIGEST_LOOP("f16 max", uint16_t, af_f16_max(h, g));
        DIGEST_LOOP("f16 min", uint16_t, af_f16_min(h, g));
        DIGEST_LOOP("f16 relu", uint16_t, af_f16_relu(h));
        DIGEST_LOOP("f16 compares", uint8_t,
                    (uint8_t)(af_f16_lt(h, g) + 2 * af_f16_le(h, g) + 4 * af_f16_eq(h, g) + 8 * af_f16_ne(h, g) + 16 * af_f16_ge(h, g) +
                              32 * af_f16_gt(h, g)));
        DIGEST_LOOP("i32 mul", int32_t, af_i32_mul(af_i32_add(i, j), af_i32_sub(i, j)));
        DIGEST_LOOP("i32 max", int32_t, af_i32_max(i, af_i32_min(j, 7)));
        DIGEST_LOOP("i16 mul", int16_t, af_i16_mul(af_i16_add((int16_t)i, (int16_t)j), (int16_t)j));
        DIGEST_LOOP("shifts", int32_t, af_i32_shr(i, (uint32_t)j & 63) ^ af_i32_shl(j, (uint32_t)i & 63));
}

static void print_casts(void) {
        for (int m = AF_ROUND_NONE; m <= AF_ROUND_TRUNC; m++) {
                const enum af_round mode = (enum af_round)m;

                DIGEST_LOOP("f32 f32", float, af_cast_f32_f32(x, mode));
                DIGEST_LOOP("f32 i32", int32_t, af_cast_f32_i32(x, mode));
                DIGEST_LOOP("f32 i64", int64_t, af_cast_f32_i64(x, mode));
                DIGEST_LOOP("f32 i16", int16_t, af_cast_f32_i16(x, mode));
                DIGEST_LOOP("f32 f16", uint16_t, af_cast_f32_f16(x, mode));
                DIGEST_LOOP("f32 bf16", uint16_t, af_cast_f32_bf16(x, mode));
                DIGEST_LOOP("f16 i8", int8_t, af_cast_f16_i8(h, mode));
                DIGEST_LOOP("f16 u8", uint8_t, af_cast_f16_u8(h, mode));
                DIGEST_LOOP("f16 f32", float, af_cast_f16_f32(h, mode));
                DIGEST_LOOP("bf16 f32", float, af_cast_bf16_f32(h, mode));
                DIGEST_LOOP("bf16 i32", int32_t, af_cast_bf16_i32(h, mode));
                DIGEST_LOOP("i16 f16", uint16_t, af_cast_i16_f16((int16_t)h, mode));
                DIGEST_LOOP("i32 f32", float, af_cast_i32_f32(i, mode));
                DIGEST_LOOP("i64 f32", float, af_cast_i64_f32((int64_t)i * j, mode));
        }
}

#ifndef IDENTITY_HEADERS_ONLY
/* The program of op on tensors of d, and what it gives on the series. */
static void digest_op(enum af_op op, enum af_dtype d, bool gelu_tanh, void *scratch) {
        const struct af_op_info *info = af_op_info(op);
        struct af_expand_attrs attrs = {};
        struct af_expand_operand o[3] = {};
        enum af_dtype out = af_op_result_dtype(op, d);
        static uint32_t in[3][2 * IDENTITY_N], r[2 * IDENTITY_N];
        const void *srcs[3] = {in[0], in[1], in[2]};
        static struct af_prog prog;
        const char *reason;

        attrs.alpha = 0.01;
        attrs.gelu_tanh = gelu_tanh;
        for (int k = 0; k < 3; k++) {
                o[k].dtype = info->cls == AF_CLASS_SELECT && k == 0 ? AF_DTYPE_BOOL : d;
                for (int i = 0; i < 2 * IDENTITY_N; i++)
                        in[k][i] = d == AF_DTYPE_FLOAT32 ? series((uint64_t)i, (uint64_t)k) : (uint32_t)mix((uint64_t)(i * 3 + k));
        }
        if (!af_expand(op, o, info->min_inputs, out, &attrs, &prog, &reason)) {
                digest(prog.n_ins);
                digest(prog.result);
                for (unsigned i = 0; i < prog.n_ins; i++)
                        digest_bytes(&prog.ins[i], sizeof(prog.ins[i]));
        }
        if (!af_eval_op(op, o, info->min_inputs, out, &attrs, srcs, r, IDENTITY_N, scratch))
                digest_bytes(r, IDENTITY_N * af_dtype_size(out));
}

static void print_ops(void) {
        void *scratch = malloc(af_eval_scratch_bytes(IDENTITY_N));

        for (unsigned op = 0; op < AF_N_OPS; op++) {
                const struct af_op_info *info = af_op_info((enum af_op)op);

                if (info->cls > AF_CLASS_CAST)
                        continue;
                digest_start();
                for (unsigned d = AF_DTYPE_BOOL; d <= AF_DTYPE_FLOAT32; d++)
                        if (info->dtypes & AF_DTYPE_BIT(d))
                                digest_op((enum af_op)op, (enum af_dtype)d, false, scratch);
                if (op == AF_OP_GELU)
                        digest_op(AF_OP_GELU, AF_DTYPE_FLOAT32, true, scratch);
                printf("op %s %016llx\n", info->name, (unsigned long long)digest_state);
        }
        free(scratch);
}

static void print_combines(void) {
        static float v[70000];
        float r;

        for (int i = 0; i < 70000; i++)
                v[i] = (float)(int32_t)mix((uint64_t)i) * 0x1p-31f + 1.0f;
        for (int c = AF_COMBINE_ADD; c <= AF_COMBINE_MUL; c++)
                for (int last = 0; last < 2; last++) {
                        af_combine_run((enum af_combine)c, AF_DTYPE_FLOAT32, last, v, 70000, 1, &r);
                        printf("combine %d %d %08x\n", c, last, af_bits_f32(r));
                }
}
#endif

static void print_identity(void) {
        fill_series();
        print_f32();
        print_narrow();
        print_casts();
#ifndef IDENTITY_HEADERS_ONLY
        print_ops();
        print_combines();
#endif
}
