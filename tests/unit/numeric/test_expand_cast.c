/* SPDX-License-Identifier: Apache-2.0 */
/* cast, where, logical ops and compares over every pair of types, on special values; constants against tensors; programs' shape. */
#include "tests/unit/numeric/help.h"

static const enum af_dtype types[] = {AF_DTYPE_BOOL,  AF_DTYPE_INT8,    AF_DTYPE_UINT8,    AF_DTYPE_INT16,  AF_DTYPE_INT32,
                                      AF_DTYPE_INT64, AF_DTYPE_FLOAT16, AF_DTYPE_BFLOAT16, AF_DTYPE_FLOAT32};
enum { N_TYPES = sizeof(types) / sizeof(types[0]), N = 65536 };

static bool is_float(enum af_dtype d) {
        return af_dtype_kind(d) == 'f';
}

/* Every value of 8- and 16-bit types; corners and random values of the others. */
static void fill(enum af_dtype d, void *p, uint64_t seed) {
        unsigned size = af_dtype_size(d);

        for (size_t i = 0; i < N; i++) {
                uint64_t v = random64(&seed);

                if (d == AF_DTYPE_BOOL)
                        v = i & 1;
                else if (size <= 2)
                        v = i;
                else if (d == AF_DTYPE_FLOAT32 && i < N_F32_SPECIALS)
                        v = f32_specials[i];
                else if (d == AF_DTYPE_FLOAT32 && i % 2)
                        v = af_bits_f32(ldexpf((float)(int32_t)v, (int)(i % 48) - 31));
                else if (!is_float(d))
                        v = (uint64_t)((int64_t)v >> (i % 64));
                if (i < 8 && size == 8)
                        v = (uint64_t[]){
                                0, 1, UINT64_MAX, (uint64_t)INT64_MIN, INT64_MAX, 0x80000000u, 0xffffffff00000000u, 1ull << 24 | 1}[i];
                memcpy((char *)p + i * size, &v, size);
        }
}

static int64_t as_int(enum af_dtype d, const void *p) {
        return d == AF_DTYPE_INT64 ? *(const int64_t *)p : (int64_t)as_double(d, p);
}

static int64_t saturated(double v, double low, double high) {
        if (isnan(v))
                return 0;
        if (v >= 0x1p63)
                return high >= 0x1p63 ? INT64_MAX : (int64_t)high;
        return (int64_t)trunc(v < low ? low : v > high ? high : v);
}

/* What the cast of the value at p gives, in bits of `to`. */
static uint64_t expected(enum af_dtype from, enum af_dtype to, const void *p) {
        unsigned size = af_dtype_size(to);
        double v = as_double(from, p);
        int64_t i;
        float s;

        if (to == AF_DTYPE_BOOL)
                return is_float(from) ? v != 0 : as_int(from, p) != 0;
        if (is_float(to)) {
                s = from == AF_DTYPE_INT64 ? (float)*(const int64_t *)p : (float)v;
                return to == AF_DTYPE_FLOAT32 ? af_bits_f32(s) : to == AF_DTYPE_FLOAT16 ? af_f16_from_f32(s) : af_bf16_from_f32(s);
        }
        if (is_float(from)) {
                double low = to == AF_DTYPE_UINT8 ? 0 : -ldexp(1, (int)size * 8 - 1);
                double high = to == AF_DTYPE_UINT8 ? 255 : ldexp(1, (int)size * 8 - 1) - (size < 8);

                i = saturated(v, low, high);
        } else {
                i = as_int(from, p);
        }
        return size == 8 ? (uint64_t)i : (uint64_t)i & (((uint64_t)1 << size * 8) - 1);
}

static bool same_bits(enum af_dtype d, uint64_t a, uint64_t b) {
        if (is_float(d) && isnan(as_double(d, &a)) && isnan(as_double(d, &b)))
                return true;
        return a == b;
}

static uint64_t bits_at(enum af_dtype d, const void *p, size_t i) {
        uint64_t v = 0;

        memcpy(&v, (const char *)p + i * af_dtype_size(d), af_dtype_size(d));
        return v;
}

static int64_t in[N], out[N], other[N];

Test(expand_cast, every_pair_of_types) {
        struct failures f = {0};

        for (int a = 0; a < N_TYPES; a++)
                for (int b = 0; b < N_TYPES; b++) {
                        enum af_dtype from = types[a], to = types[b];

                        fill(from, in, 50);
                        cr_assert_eq(eval(AF_OP_CAST, 1, from, to, NULL, in, NULL, out, N), 0, "%s to %s", af_dtype_name(from),
                                     af_dtype_name(to));
                        for (size_t i = 0; i < N; i++) {
                                const char *p = (const char *)in + i * af_dtype_size(from);
                                uint64_t want = expected(from, to, p), got = bits_at(to, out, i);

                                if (!same_bits(to, got, want))
                                        fail(&f, "%s %a to %s: %llx, want %llx", af_dtype_name(from), as_double(from, p), af_dtype_name(to),
                                             (unsigned long long)got, (unsigned long long)want);
                        }
                }
        EXPECT_NONE(f);
}

Test(expand_cast, constants_cast_like_tensors) {
        struct failures f = {0};

        for (int a = 0; a < N_TYPES; a++)
                for (int b = 0; b < N_TYPES; b++) {
                        enum af_dtype from = types[a], to = types[b];

                        fill(from, in, 51);
                        cr_assert_eq(eval(AF_OP_CAST, 1, from, to, NULL, in, NULL, out, N), 0);
                        for (size_t i = 0; i < N; i += from == AF_DTYPE_BOOL ? 1 + i * N : 97) {
                                struct af_expand_operand o = {.dtype = from, .is_scalar = true, .bits = bits_at(from, in, i)};
                                const void *src = NULL;
                                uint64_t got = 0;

                                if (af_eval_op(AF_OP_CAST, &o, 1, to, NULL, &src, &got, 1, scratch()))
                                        fail(&f, "constant %s to %s: unsupported", af_dtype_name(from), af_dtype_name(to));
                                else if (!same_bits(to, got, bits_at(to, out, i)))
                                        fail(&f, "constant %s %llx to %s: %llx", af_dtype_name(from), (unsigned long long)o.bits,
                                             af_dtype_name(to), (unsigned long long)got);
                        }
                }
        EXPECT_NONE(f);
}

/* Every cast has an exact chain on the device. */
Test(expand_cast, every_cast_has_a_program) {
        for (int a = 0; a < N_TYPES; a++)
                for (int b = 0; b < N_TYPES; b++) {
                        struct af_expand_operand o = {.dtype = types[a]};
                        struct af_prog prog;
                        const char *reason;

                        cr_expect_eq(af_expand(AF_OP_CAST, &o, 1, types[b], NULL, &prog, &reason), 0, "%s to %s", af_dtype_name(types[a]),
                                     af_dtype_name(types[b]));
                }
}

static void run_cast(enum af_dtype from, enum af_dtype to) {
        struct af_expand_operand o = {.dtype = from};
        const void *src = in;
        struct af_prog prog;
        const char *reason;

        cr_assert_eq(af_expand(AF_OP_CAST, &o, 1, to, NULL, &prog, &reason), 0);
        af_prog_eval(&prog, &from, &src, out, N, scratch());
}

/* A float64 scalar's program: rounded once, subnormal results and ties included. */
Test(expand_cast, float64_to_float32) {
        struct failures f = {0};
        uint64_t seed = 52;

        for (int rep = 0; rep < 6; rep++) {
                for (size_t i = 0; i < N; i++) {
                        uint64_t v = random64(&seed);

                        if (rep == 1) /* about a float32 that is subnormal */
                                v = (v & 0x800fffffffffffffu) | (870 + i % 30) << 52;
                        if (rep == 2) /* ties and their neighbours */
                                v = (v & 0xffffffffe0000000u) + 0x10000000u + i % 3 - 1;
                        if (rep == 3) /* the same, subnormal */
                                v = af_bits_f64(((double)(v & 0x7fffff) + 0.5) * 0x1p-149) + i % 3 - 1;
                        if (rep == 4)
                                v = af_bits_f64(ldexp((double)(int64_t)v, (int)(i % 300) - 200));
                        if (rep == 5) /* specials and their neighbours */
                                v = af_bits_f64((double)af_f32_from_bits(f32_specials[i % N_F32_SPECIALS])) + i % 5 - 2;
                        in[i] = (int64_t)v;
                }
                run_cast(AF_DTYPE_FLOAT64, AF_DTYPE_FLOAT32);
                for (size_t i = 0; i < N; i++) {
                        float want = af_f32_one_nan((float)((const double *)in)[i]), got = ((const float *)out)[i];

                        if (af_bits_f32(want) != af_bits_f32(got))
                                fail(&f, "%a: %a, want %a", ((const double *)in)[i], (double)got, (double)want);
                }
        }
        EXPECT_NONE(f);
}

Test(expand_cast, float64_to_bool) {
        const double x[] = {0, -0.0, 1, -1, 5e-324, -1e-300, NAN, INFINITY, -INFINITY};

        memcpy(in, x, sizeof(x));
        run_cast(AF_DTYPE_FLOAT64, AF_DTYPE_BOOL);
        for (size_t i = 0; i < sizeof(x) / sizeof(x[0]); i++)
                cr_expect_eq(((const uint8_t *)out)[i], x[i] != 0, "%a", x[i]);
}

/* The words of an int64 and back. */
Test(expand_cast, words) {
        static int32_t low[N], high[N];
        const enum af_dtype wide = AF_DTYPE_INT64, narrow[2] = {AF_DTYPE_INT32, AF_DTYPE_INT32};
        const void *src = in, *words[2] = {low, high};
        struct af_prog prog;

        fill(AF_DTYPE_INT64, in, 53);
        af_expand_word(0, &prog);
        af_prog_eval(&prog, &wide, &src, low, N, scratch());
        af_expand_word(1, &prog);
        af_prog_eval(&prog, &wide, &src, high, N, scratch());
        for (size_t i = 0; i < N; i++)
                cr_assert(low[i] == (int32_t)in[i] && high[i] == (int32_t)(in[i] >> 32), "%llx", (unsigned long long)in[i]);
        af_expand_words_joined(&prog);
        af_prog_eval(&prog, narrow, words, out, N, scratch());
        cr_expect_arr_eq(in, out, sizeof(in));
}

/* Every bit of a number that is written into the program. */
Test(expand_cast, int64_constants) {
        static const int64_t numbers[] = {0,
                                          1,
                                          -1,
                                          INT32_MIN,
                                          INT64_MAX,
                                          INT64_MIN,
                                          INT64_C(1) << 40,
                                          -(INT64_C(1) << 53) - 1,
                                          INT64_C(123456789012345678),
                                          INT64_C(-0x123456789abcdef)};
        struct af_prog prog;
        int64_t out[3];

        for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
                af_expand_const_i64(numbers[i], &prog);
                af_prog_eval(&prog, NULL, NULL, out, 3, scratch());
                cr_expect(out[0] == numbers[i] && out[2] == numbers[i], "%lld gives %lld", (long long)numbers[i], (long long)out[0]);
        }
}

static bool truth(enum af_dtype d, const void *p) {
        return is_float(d) ? as_double(d, p) != 0 : as_int(d, p) != 0;
}

Test(expand_cast, logical_ops) {
        static const enum af_op ops[] = {AF_OP_LOGICAL_AND, AF_OP_LOGICAL_OR, AF_OP_LOGICAL_XOR};
        static const bool table[3][4] = {{0, 0, 0, 1}, {0, 1, 1, 1}, {0, 1, 1, 0}};
        struct failures f = {0};

        for (int a = 0; a < N_TYPES; a++)
                for (int b = 0; b < N_TYPES; b++)
                        for (int k = 0; k < 3; k++) {
                                struct af_expand_operand o[2] = {{.dtype = types[a]}, {.dtype = types[b]}};
                                const void *srcs[2] = {in, other};

                                fill(types[a], in, 52);
                                fill(types[b], other, 53);
                                cr_assert_eq(af_eval_op(ops[k], o, 2, AF_DTYPE_BOOL, NULL, srcs, out, 4096, scratch()), 0);
                                for (size_t i = 0; i < 4096; i++) {
                                        int x = truth(types[a], (char *)in + i * af_dtype_size(types[a]));
                                        int y = truth(types[b], (char *)other + i * af_dtype_size(types[b]));

                                        if (((uint8_t *)out)[i] != table[k][2 * x + y])
                                                fail(&f, "%s of %s and %s", af_op_info(ops[k])->name, af_dtype_name(types[a]),
                                                     af_dtype_name(types[b]));
                                }
                        }
        EXPECT_NONE(f);
}

static bool compare_value(enum af_op op, double x, double y) {
        switch (op) {
        case AF_OP_EQ:
                return x == y;
        case AF_OP_NE:
                return x != y;
        case AF_OP_LT:
                return x < y;
        case AF_OP_LE:
                return x <= y;
        case AF_OP_GT:
                return x > y;
        default:
                return x >= y;
        }
}

/* Floats and bools; integers are in test_expand_int.c. With a tensor on both sides, and with a constant on either. */
static void check_compare(struct failures *f, enum af_op op, enum af_dtype d) {
        struct af_expand_operand o[2] = {{.dtype = d}, {.dtype = d}};
        const void *srcs[2] = {in, other};
        enum { M = 4096 };
        static uint8_t r[M];

        cr_assert_eq(af_eval_op(op, o, 2, AF_DTYPE_BOOL, NULL, srcs, r, M, scratch()), 0);
        for (size_t i = 0; i < M; i++) {
                unsigned size = af_dtype_size(d);

                if (r[i] != compare_value(op, as_double(d, (char *)in + i * size), as_double(d, (char *)other + i * size)))
                        fail(f, "%s on %s", af_op_info(op)->name, af_dtype_name(d));
        }
        for (size_t k = 0; k < 64; k++)
                for (int side = 0; side < 2; side++) {
                        struct af_expand_operand c[2] = {{.dtype = d}, {.dtype = d}};
                        const void *s[2] = {in, in};
                        uint64_t bits = bits_at(d, other, k * 61);
                        double v = as_double(d, &bits);

                        c[side] = (struct af_expand_operand){.dtype = d, .is_scalar = true, .bits = bits};
                        s[side] = NULL;
                        cr_assert_eq(af_eval_op(op, c, 2, AF_DTYPE_BOOL, NULL, s, r, M, scratch()), 0);
                        for (size_t i = 0; i < M; i++) {
                                double x = as_double(d, (char *)in + i * af_dtype_size(d));

                                if (r[i] != (side ? compare_value(op, x, v) : compare_value(op, v, x)))
                                        fail(f, "%s on %s with a constant on side %d", af_op_info(op)->name, af_dtype_name(d), side);
                        }
                }
}

Test(expand_cast, compares) {
        static const enum af_dtype ds[] = {AF_DTYPE_BOOL, AF_DTYPE_FLOAT16, AF_DTYPE_BFLOAT16, AF_DTYPE_FLOAT32};
        struct failures f = {0};

        for (int k = 0; k < 4; k++) {
                fill(ds[k], in, 54);
                fill(ds[k], other, 55);
                for (size_t i = 0; i < 1024; i++) { /* pairs of any two values, equal ones too */
                        unsigned size = af_dtype_size(ds[k]);

                        memcpy((char *)in + i * size, (char *)other + (i * 7919 % N) * size, size);
                        if (i % 3 == 0)
                                memcpy((char *)other + i * size, (char *)in + i * size, size);
                }
                for (enum af_op op = AF_OP_EQ; op <= AF_OP_GE; op++)
                        check_compare(&f, op, ds[k]);
        }
        EXPECT_NONE(f);
}

Test(expand_cast, where_moves_bits) {
        struct failures f = {0};
        static uint8_t mask[N];

        for (size_t i = 0; i < N; i++)
                mask[i] = (uint8_t)(i % 3); /* any nonzero byte is true */
        for (int k = 0; k < N_TYPES; k++) {
                enum af_dtype d = types[k];
                struct af_expand_operand o[3] = {{.dtype = AF_DTYPE_BOOL}, {.dtype = d}, {.dtype = d}};
                const void *srcs[3] = {mask, in, other};

                fill(d, in, 56);
                fill(d, other, 57);
                memmove(other, (char *)other + af_dtype_size(d), (N - 1) * af_dtype_size(d));
                cr_assert_eq(af_eval_op(AF_OP_WHERE, o, 3, d, NULL, srcs, out, N, scratch()), 0);
                for (size_t i = 0; i < N; i++)
                        if (bits_at(d, out, i) != bits_at(d, mask[i] ? in : other, i))
                                fail(&f, "where on %s: %llx", af_dtype_name(d), (unsigned long long)bits_at(d, out, i));
        }
        EXPECT_NONE(f);
}

/* bfloat16 x 0.1 with the constant unrounded, as eager frameworks do; float16 x 0.1 likewise. */
Test(expand_cast, scalars_enter_unrounded) {
        struct af_expand_operand o[2] = {{.dtype = AF_DTYPE_BFLOAT16},
                                         {.dtype = AF_DTYPE_FLOAT64, .is_scalar = true, .bits = af_bits_f64(0.1)}};
        const void *srcs[2] = {in, NULL};
        struct failures f = {0};

        for (int half = 0; half < 2; half++) {
                enum af_dtype d = half ? AF_DTYPE_FLOAT16 : AF_DTYPE_BFLOAT16;

                fill(d, in, 58);
                o[0].dtype = d;
                cr_assert_eq(af_eval_op(AF_OP_MUL, o, 2, d, NULL, srcs, out, N, scratch()), 0);
                for (size_t i = 0; i < N; i++) {
                        float want = (float)as_double(d, (char *)in + i * 2) * 0.1f;
                        uint64_t bits = half ? af_f16_from_f32(want) : af_bf16_from_f32(want);

                        if (!same_bits(d, bits_at(d, out, i), bits))
                                fail(&f, "%s %zx", af_dtype_name(d), i);
                }
        }
        EXPECT_NONE(f);
}

/* A float64 operand that is no constant (a scalar that changes per call) enters as float32. */
Test(expand_cast, float64_operands_enter_as_float32) {
        struct af_expand_operand o[2] = {{.dtype = AF_DTYPE_FLOAT32}, {.dtype = AF_DTYPE_FLOAT64}};
        static float x[1000], y[1000];
        static double s[1000];
        const void *srcs[2] = {x, s};
        uint64_t seed = 59;

        for (int i = 0; i < 1000; i++) {
                x[i] = (float)(int32_t)random64(&seed);
                s[i] = (double)(int64_t)random64(&seed) * 1e-9;
        }
        cr_assert_eq(af_eval_op(AF_OP_MUL, o, 2, AF_DTYPE_FLOAT32, NULL, srcs, y, 1000, scratch()), 0);
        for (int i = 0; i < 1000; i++)
                cr_expect_eq(y[i], x[i] * (float)s[i]);
}
