/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every elementwise op gives on special and random values, for another judge (tests/torch_elementwise.py):
 *
 *   OP IN OUT OPERANDS COUNT
 *   one line per operand, one for the result: COUNT elements as in memory, in hex
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numeric/expand.h"
#include "numeric/prim.h"

enum { N = 4096 };

static uint64_t random64(uint64_t *state) {
        uint64_t z = (*state += 0x9e3779b97f4a7c15u);

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
}

static const double specials[] = {
        0,        -0.0,      1,        -1,       2,        -2,         0.5,   -0.5,   1.5,   -1.5,           2.5,
        3,        -3,        7,        100,      -100,     1e-3,       1e-45, -1e-45, 1e-38, -1e-38,         0x1p-24,
        6e-5,     65504,     -65504,   65536,    1e10,     -1e10,      3e38,  -3e38,  88.5,  -88.5,          -103.5,
        89.2,     0.99999,   -0.99999, 127,      -128,     255,        32767, -32768, 1e30,  0x1.fffffep127, -0x1.fffffep127,
        0x1p-126, -0x1p-126, 3.14159,  -3.14159, 16777216, 16777217.0, 1e4,   -1e4};
enum { N_SPECIALS = sizeof(specials) / sizeof(specials[0]) + 3 };

static double special(unsigned i) {
        switch (i) {
        case 0:
                return __builtin_nan("");
        case 1:
                return __builtin_inf();
        case 2:
                return -__builtin_inf();
        default:
                return specials[i - 3];
        }
}

static const int64_t ints[] = {0,
                               1,
                               -1,
                               2,
                               -2,
                               3,
                               -3,
                               4,
                               -4,
                               5,
                               7,
                               8,
                               15,
                               16,
                               31,
                               32,
                               33,
                               63,
                               64,
                               100,
                               -100,
                               127,
                               -128,
                               255,
                               32767,
                               -32768,
                               46341,
                               INT32_MAX,
                               INT32_MIN,
                               (int64_t)1 << 40,
                               -((int64_t)1 << 40),
                               INT64_MAX,
                               INT64_MIN};
enum { N_INTS = sizeof(ints) / sizeof(ints[0]) };

/* Element i of operand k: pairs of specials first, then random bits and numbers of moderate size in turn. */
static uint64_t element(enum af_dtype d, unsigned i, unsigned k, uint64_t *seed) {
        bool is_float = af_dtype_kind(d) == 'f';
        unsigned n = is_float ? N_SPECIALS : N_INTS;
        uint64_t r = random64(seed);
        double v = i < n * n ? (is_float ? special(k ? i / n : i % n) : 0) : (double)(int64_t)r * (i % 2 ? 0x1p-60 : 0x1p-56);

        if (d == AF_DTYPE_BOOL)
                return (i >> k) & 1;
        if (!is_float)
                return i < n * n ? (uint64_t)ints[k ? i / n : i % n] : (uint64_t)((int64_t)r >> (r % 63));
        if (i >= n * n && i % 4 == 0)
                return r;
        if (d == AF_DTYPE_FLOAT32)
                return af_bits_f32((float)v);
        return d == AF_DTYPE_FLOAT16 ? af_f16_from_f32((float)v) : af_bf16_from_f32((float)v);
}

static void print_hex(const void *p, size_t bytes) {
        for (size_t i = 0; i < bytes; i++)
                printf("%02x", ((const unsigned char *)p)[i]);
        putchar('\n');
}

/* False: the op is not defined so. */
static bool print_op(enum af_op op, enum af_dtype d, enum af_dtype out, bool gelu_tanh) {
        static unsigned char operands[3][N * 8], result[N * 8];
        const struct af_op_info *info = af_op_info(op);
        const struct af_expand_attrs attrs = {
                .alpha = 0.01, .gelu_tanh = gelu_tanh, .has_min = true, .has_max = true, .min = -1.5, .max = 2.25, .imin = -3, .imax = 5};
        struct af_expand_operand o[3];
        const void *srcs[3];
        uint64_t seed = 1;
        void *scratch = malloc(af_eval_scratch_bytes(N));
        int r;

        for (unsigned k = 0; k < info->min_inputs; k++) {
                enum af_dtype t = info->cls == AF_CLASS_SELECT && k == 0 ? AF_DTYPE_BOOL : d;

                for (unsigned i = 0; i < N; i++) {
                        uint64_t bits = element(t, i, k, &seed);

                        memcpy(operands[k] + i * af_dtype_size(t), &bits, af_dtype_size(t));
                }
                o[k] = (struct af_expand_operand){.dtype = t};
                srcs[k] = operands[k];
        }
        r = af_eval_op(op, o, info->min_inputs, out, &attrs, srcs, result, N, scratch);
        free(scratch);
        if (r)
                return false;
        printf("%s%s %s %s %u %u\n", info->name, gelu_tanh ? "_tanh" : "", af_dtype_name(d), af_dtype_name(out), info->min_inputs, N);
        for (unsigned k = 0; k < info->min_inputs; k++)
                print_hex(operands[k], N * af_dtype_size(o[k].dtype));
        print_hex(result, N * af_dtype_size(out));
        return true;
}

int main(void) {
        unsigned missing = 0;

        for (unsigned op = 0; op < AF_N_OPS; op++) {
                const struct af_op_info *info = af_op_info((enum af_op)op);

                for (enum af_dtype d = AF_DTYPE_BOOL; info->cls <= AF_CLASS_CAST && d < AF_DTYPE_FLOAT64; d++) {
                        if (!(info->dtypes & AF_DTYPE_BIT(d)))
                                continue;
                        if (op != AF_OP_CAST)
                                missing += !print_op((enum af_op)op, d, af_op_result_dtype((enum af_op)op, d), false);
                        for (enum af_dtype to = AF_DTYPE_BOOL; op == AF_OP_CAST && to < AF_DTYPE_FLOAT64; to++)
                                missing += !print_op((enum af_op)op, d, to, false);
                        if (op == AF_OP_GELU)
                                missing += !print_op(AF_OP_GELU, d, d, true);
                }
        }
        return missing != 0;
}
