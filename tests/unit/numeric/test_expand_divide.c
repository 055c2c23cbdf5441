/* SPDX-License-Identifier: Apache-2.0 */
/* Division, its rest and copysign on floats; kinds of floats: against libm's exact functions, on specials and over all exponents. */
#include "tests/unit/numeric/help.h"

static const enum af_dtype types[] = {AF_DTYPE_FLOAT16, AF_DTYPE_BFLOAT16, AF_DTYPE_FLOAT32};
enum { N_TYPES = 3, N = 1 << 14 };
static uint32_t xs[N], ys[N], zs[N]; /* room for any type */

static void put(enum af_dtype d, void *p, size_t i, float v) {
        if (d == AF_DTYPE_FLOAT32)
                ((float *)p)[i] = v;
        else
                ((uint16_t *)p)[i] = d == AF_DTYPE_FLOAT16 ? af_f16_from_f32(v) : af_bf16_from_f32(v);
}

static float get(enum af_dtype d, const void *p, size_t i) {
        return (float)as_double(d, (const char *)p + i * af_dtype_size(d));
}

/* The value that d holds in v's place. */
static float rounded(enum af_dtype d, float v) {
        uint32_t room;

        put(d, &room, 0, v);
        return get(d, &room, 0);
}

static float remainder_(float x, float y) {
        float m = fmodf(x, y);

        return m != 0 && (y < 0) != (m < 0) ? m + y : m;
}

/* PyTorch's rule, step by step. */
static float floor_div_(float x, float y) {
        float m = fmodf(x, y), q = (x - m) / y, f;

        if (y == 0)
                return x / y;
        if (m != 0 && (y < 0) != (m < 0))
                q -= 1;
        if (q == 0)
                return copysignf(0, x / y);
        f = floorf(q);
        return q - f > 0.5f ? f + 1 : f;
}

static float exact(enum af_op op, float x, float y) {
        switch (op) {
        case AF_OP_FLOOR_DIV:
                return floor_div_(x, y);
        case AF_OP_TRUNC_DIV:
                return truncf(x / y);
        case AF_OP_REMAINDER:
                return remainder_(x, y);
        case AF_OP_FMOD:
                return fmodf(x, y);
        case AF_OP_COPYSIGN:
                return copysignf(x, y);
        default: /* TRUE_DIV */
                return x / y;
        }
}

/* Kinds: any bits; quotients of every size; near multiples; specials with each other; small integers. */
static void fill(enum af_dtype d, int kind, uint64_t seed) {
        for (size_t i = 0; i < N; i++) {
                float x = af_f32_from_bits((uint32_t)random64(&seed)), y = af_f32_from_bits((uint32_t)random64(&seed));

                if (kind == 1)
                        y = x * ldexpf((float)(int32_t)random64(&seed), -31 - (int)(i % 60));
                if (kind == 2)
                        x = (float)((double)y * (double)(int)(random64(&seed) % 4001 - 2000)) + (float)((int)(i % 3) - 1) * y * 0x1p-20f;
                if (kind == 3) {
                        x = af_f32_from_bits(f32_specials[i % N_F32_SPECIALS]);
                        y = af_f32_from_bits(f32_specials[i / N_F32_SPECIALS % N_F32_SPECIALS]);
                }
                if (kind == 4) {
                        x = (float)((int)(i % 41) - 20) / 4;
                        y = (float)((int)(i / 41 % 41) - 20) / 4;
                }
                put(d, xs, i, x);
                put(d, ys, i, y);
        }
}

static void check(struct failures *f, enum af_op op, enum af_dtype d) {
        cr_assert_eq(eval(op, 2, d, d, NULL, xs, ys, zs, N), 0, "%s %s", af_op_info(op)->name, af_dtype_name(d));
        for (size_t i = 0; i < N; i++) {
                float x = get(d, xs, i), y = get(d, ys, i), want = rounded(d, exact(op, x, y)), got = get(d, zs, i);

                if (af_bits_f32(got) != af_bits_f32(want) && !(isnan(got) && isnan(want)))
                        fail(f, "%s %s of %a, %a: %a, want %a", af_dtype_name(d), af_op_info(op)->name, (double)x, (double)y, (double)got,
                             (double)want);
        }
}

Test(expand_divide, floats) {
        static const enum af_op ops[] = {AF_OP_TRUE_DIV, AF_OP_FLOOR_DIV, AF_OP_TRUNC_DIV, AF_OP_REMAINDER, AF_OP_FMOD, AF_OP_COPYSIGN};
        struct failures f = {0};

        for (int t = 0; t < N_TYPES; t++)
                for (int kind = 0; kind < 5; kind++) {
                        fill(types[t], kind, 80 + (uint64_t)kind);
                        for (unsigned k = 0; k < sizeof(ops) / sizeof(ops[0]); k++)
                                check(&f, ops[k], types[t]);
                }
        EXPECT_NONE(f);
}

/* The largest number by the least: 277 bits of quotient, for each digit of the significands. */
Test(expand_divide, longest_division) {
        struct failures f = {0};

        for (size_t i = 0; i < N; i++) {
                ((float *)xs)[i] = af_f32_from_bits(0x7f7fffffu - (uint32_t)i * 511u);
                ((float *)ys)[i] = af_f32_from_bits(1u + (uint32_t)(i % 4099));
        }
        check(&f, AF_OP_FMOD, AF_DTYPE_FLOAT32);
        check(&f, AF_OP_REMAINDER, AF_DTYPE_FLOAT32);
        EXPECT_NONE(f);
}

/* copysign moves a bit: from NaNs too. */
Test(expand_divide, copysign_bits) {
        for (int t = 0; t < N_TYPES; t++) {
                enum af_dtype d = types[t];
                uint32_t size = af_dtype_size(d), top = d == AF_DTYPE_FLOAT32 ? 0x80000000u : 0x8000u, r = 0;
                uint32_t nan = d == AF_DTYPE_FLOAT32 ? 0xffc00001u : d == AF_DTYPE_FLOAT16 ? 0xfe01u : 0xffc1u, one = 0;

                put(d, &one, 0, 1);
                cr_assert_eq(eval(AF_OP_COPYSIGN, 2, d, d, NULL, &one, &nan, &r, 1), 0);
                cr_expect_eq(r, one | top, "%u bytes", size);
                cr_assert_eq(eval(AF_OP_COPYSIGN, 2, d, d, NULL, &nan, &one, &r, 1), 0);
                cr_expect_eq(r, nan ^ top);
        }
}

Test(expand_divide, kinds) {
        struct failures f = {0};
        static uint8_t kind[N];

        for (int t = 0; t < N_TYPES; t++)
                for (int k = 0; k < 4; k++) {
                        fill(types[t], k, 90);
                        for (enum af_op op = AF_OP_ISNAN; op <= AF_OP_ISFINITE; op++) {
                                cr_assert_eq(eval(op, 1, types[t], AF_DTYPE_BOOL, NULL, xs, NULL, kind, N), 0);
                                for (size_t i = 0; i < N; i++) {
                                        float x = get(types[t], xs, i);
                                        bool want = op == AF_OP_ISNAN ? isnan(x) : op == AF_OP_ISINF ? isinf(x) : isfinite(x);

                                        if (kind[i] != want)
                                                fail(&f, "%s %s of %a", af_dtype_name(types[t]), af_op_info(op)->name, (double)x);
                                }
                        }
                }
        EXPECT_NONE(f);
}
