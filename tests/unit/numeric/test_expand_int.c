/* SPDX-License-Identifier: Apache-2.0 */
/* Integer ops: every pair of 8-bit values, corners and samples of the wider types, int64 by its definition; nothing may trap. */
#include "tests/unit/numeric/help.h"

static const enum af_op binary_ops[] = {AF_OP_ADD,         AF_OP_SUB,        AF_OP_MUL,         AF_OP_DIV,         AF_OP_MAXIMUM,
                                        AF_OP_MINIMUM,     AF_OP_POW,        AF_OP_EQ,          AF_OP_NE,          AF_OP_LT,
                                        AF_OP_LE,          AF_OP_GT,         AF_OP_GE,          AF_OP_BITWISE_AND, AF_OP_BITWISE_OR,
                                        AF_OP_BITWISE_XOR, AF_OP_SHIFT_LEFT, AF_OP_SHIFT_RIGHT, AF_OP_FLOOR_DIV,   AF_OP_TRUNC_DIV,
                                        AF_OP_REMAINDER,   AF_OP_FMOD};
enum { N_BINARY = sizeof(binary_ops) / sizeof(binary_ops[0]) };
static const enum af_op unary_ops[] = {AF_OP_ABS,   AF_OP_NEG,   AF_OP_SIGN,   AF_OP_RELU, AF_OP_FLOOR,      AF_OP_CEIL,
                                       AF_OP_ROUND, AF_OP_TRUNC, AF_OP_SQUARE, AF_OP_CLIP, AF_OP_BITWISE_NOT};
enum { N_UNARY = sizeof(unary_ops) / sizeof(unary_ops[0]) };
static const enum af_dtype types[] = {AF_DTYPE_INT8, AF_DTYPE_UINT8, AF_DTYPE_INT16, AF_DTYPE_INT32, AF_DTYPE_INT64};
static const struct af_expand_attrs attrs = {.has_min = true, .has_max = true, .imin = -100, .imax = 100};

/* The low bits of v as a value of d. */
static __int128 wrapped(enum af_dtype d, unsigned __int128 v) {
        switch ((int)d) {
        case AF_DTYPE_INT8:
                return (int8_t)v;
        case AF_DTYPE_UINT8:
                return (uint8_t)v;
        case AF_DTYPE_INT16:
                return (int16_t)v;
        case AF_DTYPE_INT32:
                return (int32_t)v;
        default:
                return (int64_t)v;
        }
}

static __int128 get(enum af_dtype d, const void *p, size_t i) {
        unsigned size = af_dtype_size(d);
        uint64_t v = 0;

        memcpy(&v, (const char *)p + i * size, size);
        return wrapped(d, v);
}

static void put(enum af_dtype d, void *p, size_t i, int64_t v) {
        memcpy((char *)p + i * af_dtype_size(d), &v, af_dtype_size(d));
}

/* x^e by e multiplications' worth of plain squaring, or what a negative exponent gives. */
static __int128 power(enum af_dtype d, __int128 x, __int128 e) {
        __int128 r = 1;

        if (e < 0)
                return x == 1 ? 1 : x == -1 ? (e & 1 ? -1 : 1) : 0;
        for (int bit = 62; bit >= 0; bit--) {
                r = wrapped(d, (unsigned __int128)r * (unsigned __int128)r);
                if (e >> bit & 1)
                        r = wrapped(d, (unsigned __int128)r * (unsigned __int128)x);
        }
        return r;
}

static __int128 floor_div(__int128 x, __int128 y) {
        __int128 q = y ? x / y : 0;

        return y && q * y != x && (x < 0) != (y < 0) ? q - 1 : q;
}

static __int128 shifted(enum af_op op, enum af_dtype d, __int128 x, __int128 n) {
        int bits = (int)af_dtype_size(d) * 8;
        bool outside = n < 0 || n >= bits;

        if (op == AF_OP_SHIFT_LEFT)
                return outside ? 0 : x * ((__int128)1 << n);
        return outside ? (x < 0 ? -1 : 0) : x >> n;
}

/* The ops that a bit pattern or a quotient defines. */
static __int128 whole_value(enum af_op op, enum af_dtype d, __int128 x, __int128 y) {
        switch (op) {
        case AF_OP_BITWISE_AND:
                return x & y;
        case AF_OP_BITWISE_OR:
                return x | y;
        case AF_OP_BITWISE_XOR:
                return x ^ y;
        case AF_OP_SHIFT_LEFT:
        case AF_OP_SHIFT_RIGHT:
                return shifted(op, d, x, y);
        case AF_OP_FLOOR_DIV:
                return floor_div(x, y);
        case AF_OP_REMAINDER:
                return y ? x - floor_div(x, y) * y : 0;
        case AF_OP_FMOD:
                return y ? x % y : 0;
        default: /* DIV, TRUNC_DIV */
                return y ? x / y : 0;
        }
}

static __int128 binary_value(enum af_op op, enum af_dtype d, __int128 x, __int128 y) {
        switch (op) {
        case AF_OP_ADD:
                return x + y;
        case AF_OP_SUB:
                return x - y;
        case AF_OP_MUL:
                return x * y;
        case AF_OP_MAXIMUM:
                return x > y ? x : y;
        case AF_OP_MINIMUM:
                return x < y ? x : y;
        case AF_OP_POW:
                return power(d, x, y);
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
        case AF_OP_GE:
                return x >= y;
        default:
                return whole_value(op, d, x, y);
        }
}

static __int128 unary_value(enum af_op op, enum af_dtype d, __int128 x) {
        __int128 low = d == AF_DTYPE_UINT8 ? 0 : -100;

        switch (op) {
        case AF_OP_ABS:
                return x < 0 ? -x : x;
        case AF_OP_NEG:
                return -x;
        case AF_OP_SIGN:
                return (x > 0) - (x < 0);
        case AF_OP_RELU:
                return x > 0 ? x : 0;
        case AF_OP_SQUARE:
                return x * x;
        case AF_OP_BITWISE_NOT:
                return ~x;
        case AF_OP_CLIP:
                return x < low ? low : x > 100 ? 100 : x;
        default:
                return x;
        }
}

enum { N = 65536 };
static int64_t xs[N], ys[N], zs[N]; /* room for any type */

static int64_t sample(uint64_t *seed) {
        int64_t v = (int64_t)random64(seed) >> (random64(seed) % 64);

        switch (random64(seed) % 8) {
        case 0:
                return v % 17;
        case 1:
                return (int64_t[]){INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, INT16_MIN, -1, 1, 0}[v & 7];
        case 2:
                return (int64_t[]){INT32_MIN + 1, INT32_MAX - 1, INT16_MIN + 1, INT16_MAX, 127, -128, 46341, 65536}[v & 7];
        default:
                return v;
        }
}

static void fill(enum af_dtype d, uint64_t seed) {
        for (int i = 0; i < N; i++) {
                put(d, xs, (size_t)i, af_dtype_size(d) == 1 ? i >> 8 : sample(&seed));
                put(d, ys, (size_t)i, af_dtype_size(d) == 1 ? i : sample(&seed));
        }
}

static void check_binary(struct failures *f, enum af_op op, enum af_dtype d) {
        bool compare = af_op_info(op)->cls == AF_CLASS_COMPARE;
        enum af_dtype out = compare ? AF_DTYPE_BOOL : d;

        cr_assert_eq(eval(op, 2, d, out, NULL, xs, ys, zs, N), 0, "%s %s", af_op_info(op)->name, af_dtype_name(d));
        for (size_t i = 0; i < N; i++) {
                __int128 x = get(d, xs, i), y = get(d, ys, i), want = binary_value(op, d, x, y);
                __int128 got = compare ? ((const uint8_t *)zs)[i] : get(d, zs, i);

                if (got != (compare ? want : wrapped(d, (unsigned __int128)want)))
                        fail(f, "%s %s of %lld, %lld: %lld", af_dtype_name(d), af_op_info(op)->name, (long long)x, (long long)y,
                             (long long)got);
        }
}

Test(expand_int, binary_ops) {
        struct failures f = {0};

        for (unsigned t = 0; t < 5; t++) {
                fill(types[t], 10 + t);
                for (unsigned k = 0; k < N_BINARY; k++)
                        check_binary(&f, binary_ops[k], types[t]);
        }
        EXPECT_NONE(f);
}

/* Quotients next to multiples, with large divisors and large quotients: where float32 quotients need their correction. */
Test(expand_int, int32_division) {
        struct failures f = {0};
        uint64_t seed = 20;

        for (int rep = 0; rep < 8; rep++) {
                for (size_t i = 0; i < N; i++) {
                        int32_t y = (int32_t)((int64_t)random64(&seed) >> (32 + random64(&seed) % 31));
                        int32_t q = (int32_t)((int64_t)random64(&seed) >> (32 + random64(&seed) % 31));
                        int64_t x = (int64_t)y * q + (int)(random64(&seed) % 5) - 2;

                        put(AF_DTYPE_INT32, xs, i, x);
                        put(AF_DTYPE_INT32, ys, i, y);
                }
                check_binary(&f, AF_OP_DIV, AF_DTYPE_INT32);
                check_binary(&f, AF_OP_FLOOR_DIV, AF_DTYPE_INT32);
                check_binary(&f, AF_OP_REMAINDER, AF_DTYPE_INT32);
                check_binary(&f, AF_OP_FMOD, AF_DTYPE_INT32);
        }
        EXPECT_NONE(f);
}

Test(expand_int, unary_ops) {
        struct failures f = {0};

        for (unsigned t = 0; t < 5; t++) {
                enum af_dtype d = types[t];

                fill(d, 30 + t);
                for (unsigned k = 0; k < N_UNARY; k++) {
                        enum af_op op = unary_ops[k];

                        cr_assert_eq(eval(op, 1, d, d, &attrs, xs, NULL, zs, N), 0, "%s %s", af_op_info(op)->name, af_dtype_name(d));
                        for (size_t i = 0; i < N; i++) {
                                __int128 x = get(d, xs, i);

                                if (get(d, zs, i) != wrapped(d, (unsigned __int128)unary_value(op, d, x)))
                                        fail(&f, "%s %s of %lld", af_dtype_name(d), af_op_info(op)->name, (long long)x);
                        }
                }
        }
        EXPECT_NONE(f);
}

/* A constant on either side gives what the same value in a tensor gives. */
static void check_constant(struct failures *f, enum af_op op, enum af_dtype d, int side, int64_t value) {
        struct af_expand_operand o[2] = {{.dtype = d}, {.dtype = d}};
        const void *srcs[2] = {xs, xs};
        bool compare = af_op_info(op)->cls == AF_CLASS_COMPARE;
        enum af_dtype out = compare ? AF_DTYPE_BOOL : d;
        enum { M = 1024 };
        static int64_t want[M], got[M];

        for (size_t i = 0; i < M; i++)
                put(d, ys, i, value);
        cr_assert_eq(eval(op, 2, d, out, NULL, side ? xs : ys, side ? ys : xs, want, M), 0);
        o[side].is_scalar = true;
        o[side].dtype = AF_DTYPE_INT64;
        o[side].bits = (uint64_t)value;
        srcs[side] = NULL;
        cr_assert_eq(af_eval_op(op, o, 2, out, NULL, srcs, got, M, scratch()), 0);
        if (memcmp(want, got, M * af_dtype_size(out)))
                fail(f, "%s %s with constant %lld on side %d", af_dtype_name(d), af_op_info(op)->name, (long long)value, side);
}

Test(expand_int, constants_are_like_tensors) {
        static const int64_t values[] = {0,  1,   -1,   2,   3,   4,      64,    128,       16384,     1 << 30,  7,
                                         -3, 127, -128, 200, 255, -32768, 40000, INT32_MIN, INT32_MAX, INT64_MIN};
        struct failures f = {0};

        for (unsigned t = 0; t < 5; t++) {
                fill(types[t], 40 + t);
                for (unsigned k = 0; k < N_BINARY; k++)
                        for (unsigned v = 0; v < sizeof(values) / sizeof(values[0]); v++)
                                for (int side = 0; side < 2; side++)
                                        check_constant(&f, binary_ops[k], types[t], side, values[v]);
        }
        EXPECT_NONE(f);
}

/* Every small amount and some beyond, on both sides of the range. */
Test(expand_int, shifts) {
        struct failures f = {0};
        uint64_t seed = 21;

        for (unsigned t = 0; t < 5; t++) {
                for (size_t i = 0; i < N; i++) {
                        put(types[t], xs, i, (int64_t)random64(&seed));
                        put(types[t], ys, i, (int64_t)(i % 80) - 8);
                }
                check_binary(&f, AF_OP_SHIFT_LEFT, types[t]);
                check_binary(&f, AF_OP_SHIFT_RIGHT, types[t]);
        }
        EXPECT_NONE(f);
}

Test(expand_int, bits_of_bools) {
        static const enum af_op ops[] = {AF_OP_BITWISE_AND, AF_OP_BITWISE_OR, AF_OP_BITWISE_XOR};
        const uint8_t x[4] = {0, 0, 1, 1}, y[4] = {0, 1, 0, 1};
        uint8_t r[4];

        for (unsigned k = 0; k < 3; k++) {
                cr_assert_eq(eval(ops[k], 2, AF_DTYPE_BOOL, AF_DTYPE_BOOL, NULL, x, y, r, 4), 0);
                for (int i = 0; i < 4; i++)
                        cr_expect_eq(r[i], k == 0 ? (x[i] & y[i]) : k == 1 ? (x[i] | y[i]) : (x[i] ^ y[i]));
        }
        cr_assert_eq(eval(AF_OP_BITWISE_NOT, 1, AF_DTYPE_BOOL, AF_DTYPE_BOOL, NULL, x, NULL, r, 4), 0);
        cr_expect(r[0] == 1 && r[2] == 0);
}

/* Integers are divided as float32; they are finite. */
Test(expand_int, as_floats) {
        struct failures f = {0};

        for (unsigned t = 0; t < 5; t++) {
                static float q[N];
                static uint8_t kind[N];

                fill(types[t], 60 + t);
                cr_assert_eq(eval(AF_OP_TRUE_DIV, 2, types[t], AF_DTYPE_FLOAT32, NULL, xs, ys, q, N), 0);
                for (size_t i = 0; i < N; i++) {
                        float want = (float)get(types[t], xs, i) / (float)get(types[t], ys, i);

                        if (q[i] != want && !(isnan(q[i]) && isnan(want)))
                                fail(&f, "%s true_div: %a, want %a", af_dtype_name(types[t]), (double)q[i], (double)want);
                }
                for (enum af_op op = AF_OP_ISNAN; op <= AF_OP_ISFINITE; op++) {
                        cr_assert_eq(eval(op, 1, types[t], AF_DTYPE_BOOL, NULL, xs, NULL, kind, N), 0);
                        for (size_t i = 0; i < N; i++)
                                if (kind[i] != (op == AF_OP_ISFINITE))
                                        fail(&f, "%s %s", af_dtype_name(types[t]), af_op_info(op)->name);
                }
        }
        EXPECT_NONE(f);
}

/* Quotients and shifts of int64 by constants have programs. */
Test(expand_int, int64_by_constants) {
        static const int64_t by[] = {0,  1,  -1, 2,  -2, 3,   7,    -10,  11,    12,      22,       33,      44,
                                     54, 55, 62, 63, 64, -63, 1000, 4096, 65537, 4194303, -4194303, -4194302};
        static const enum af_op ops[] = {AF_OP_DIV,  AF_OP_TRUNC_DIV,  AF_OP_FLOOR_DIV,  AF_OP_REMAINDER,
                                         AF_OP_FMOD, AF_OP_SHIFT_LEFT, AF_OP_SHIFT_RIGHT};
        const enum af_dtype d[2] = {AF_DTYPE_INT64, AF_DTYPE_INT64};
        struct af_expand_operand o[2] = {{.dtype = AF_DTYPE_INT64}, {.dtype = AF_DTYPE_INT64, .is_scalar = true}};
        const void *srcs[2] = {xs, NULL};
        struct failures f = {0};
        struct af_prog prog;
        const char *reason;

        fill(AF_DTYPE_INT64, 62);
        for (unsigned k = 0; k < sizeof(ops) / sizeof(ops[0]); k++)
                for (unsigned v = 0; v < sizeof(by) / sizeof(by[0]); v++) {
                        o[1].bits = (uint64_t)by[v];
                        cr_assert_eq(af_expand(ops[k], o, 2, AF_DTYPE_INT64, NULL, &prog, &reason), 0);
                        for (size_t i = 0; i < N / 2; i++) /* next to multiples */
                                xs[i] = (int64_t)((uint64_t)xs[i + N / 2] / 3 * (uint64_t)by[v] + i % 3 - 1);
                        af_prog_eval(&prog, d, srcs, zs, N, scratch());
                        for (size_t i = 0; i < N; i++)
                                if (zs[i] != wrapped(AF_DTYPE_INT64, (unsigned __int128)whole_value(ops[k], AF_DTYPE_INT64, xs[i], by[v])))
                                        fail(&f, "%s of %lld by %lld: %lld", af_op_info(ops[k])->name, (long long)xs[i], (long long)by[v],
                                             (long long)zs[i]);
                }
        EXPECT_NONE(f);
}

Test(expand_int, int64_small_powers) {
        struct af_expand_operand o[2] = {{.dtype = AF_DTYPE_INT64}, {.dtype = AF_DTYPE_INT64, .is_scalar = true}};
        const enum af_dtype d[2] = {AF_DTYPE_INT64, AF_DTYPE_INT64};
        const void *srcs[2] = {xs, NULL};
        struct failures f = {0};
        struct af_prog prog;
        const char *reason;

        fill(AF_DTYPE_INT64, 63);
        for (uint64_t e = 0; e < 4; e++) {
                o[1].bits = e;
                cr_assert_eq(af_expand(AF_OP_POW, o, 2, AF_DTYPE_INT64, NULL, &prog, &reason), 0);
                af_prog_eval(&prog, d, srcs, zs, N, scratch());
                for (size_t i = 0; i < N; i++)
                        if (zs[i] != power(AF_DTYPE_INT64, xs[i], (__int128)e))
                                fail(&f, "%lld to the %llu: %lld", (long long)xs[i], (unsigned long long)e, (long long)zs[i]);
        }
        EXPECT_NONE(f);
}

/* What has no exact program is still defined. */
Test(expand_int, int64_quotients_stay_off_the_device) {
        struct af_expand_operand o[2] = {{.dtype = AF_DTYPE_INT64}, {.dtype = AF_DTYPE_INT64}};
        struct af_prog prog;
        const char *reason = NULL;

        for (enum af_op op = AF_OP_ABS; op < AF_N_OPS; op++) {
                const struct af_op_info *info = af_op_info(op);
                bool off = op == AF_OP_DIV || op == AF_OP_POW || (op >= AF_OP_FLOOR_DIV && op <= AF_OP_FMOD) || op == AF_OP_SHIFT_LEFT ||
                           op == AF_OP_SHIFT_RIGHT;
                int want = off ? AF_EXPAND_E_UNSUPPORTED : 0;

                if (info->cls > AF_CLASS_COMPARE || !(info->dtypes & AF_DTYPE_BIT(AF_DTYPE_INT64)))
                        continue;
                cr_expect_eq(af_expand(op, o, info->min_inputs, af_op_result_dtype(op, AF_DTYPE_INT64), NULL, &prog, &reason), want, "%s",
                             info->name);
                cr_expect(af_eval_op_supported(op, o, info->min_inputs, af_op_result_dtype(op, AF_DTYPE_INT64)), "%s", info->name);
        }
        cr_expect_str_eq(reason, "int64 quotients, shifts and powers on the vector unit are by constants alone (below 2^22; 0 to 3)");
        cr_expect_not(af_eval_op_supported(AF_OP_EXP, o, 1, AF_DTYPE_INT64));
}
