/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of `fast`: a wide result rounded once is the strict one, for every op on 16-bit floats; a chain in float32 is no further from
 * the exact value than the chain's own float32 error and one rounding.
 */
#include "tests/unit/numeric/help.h"

enum { N = 1 << 14 };
static uint16_t x[3][N], strict[N], rounded[N];
static float wide[3][N], wide_result[N];

static void fill(enum af_dtype d, uint64_t seed) {
        for (int k = 0; k < 3; k++)
                for (int i = 0; i < N; i++) {
                        uint32_t v = (uint32_t)random64(&seed);

                        if (i % 3 == 0)
                                v = af_bits_f32((float)((int)(v % 129) - 64) / 8);
                        if (i % 5 == 0)
                                v = f32_specials[(v >> 8) % N_F32_SPECIALS];
                        x[k][i] = d == AF_DTYPE_FLOAT16 && i % 3 && i % 5 ? (uint16_t)v
                                  : d == AF_DTYPE_FLOAT16                 ? af_f16_from_f32(af_f32_from_bits(v))
                                                                          : af_bf16_from_f32(af_f32_from_bits(v));
                        wide[k][i] = (float)as_double(d, &x[k][i]);
                }
}

/* mask: one condition per element for `where`. */
static uint8_t condition[N];

static bool same(enum af_dtype out, size_t i) {
        if (out == AF_DTYPE_BOOL)
                return ((uint8_t *)strict)[i] == ((uint8_t *)wide_result)[i];
        return strict[i] == rounded[i] || (isnan(as_double(out, &strict[i])) && isnan(as_double(out, &rounded[i])));
}

static void check(struct failures *f, enum af_op op, enum af_dtype d) {
        const struct af_op_info *info = af_op_info(op);
        const struct af_expand_attrs attrs = {.alpha = 0.01, .has_min = true, .min = -1.5};
        bool where = info->cls == AF_CLASS_SELECT;
        enum af_dtype out = op == AF_OP_CAST ? d : af_op_result_dtype(op, d), dtypes[3];
        struct af_expand_operand o[3];
        const void *narrow_srcs[3], *wide_srcs[3];
        static struct af_prog prog;
        const char *reason = NULL;
        int r;

        for (int k = 0; k < 3; k++) {
                bool mask = where && k == 0;

                o[k] = (struct af_expand_operand){.dtype = mask ? AF_DTYPE_BOOL : d};
                dtypes[k] = mask ? AF_DTYPE_BOOL : AF_DTYPE_FLOAT32;
                narrow_srcs[k] = mask ? (const void *)condition : x[k];
                wide_srcs[k] = mask ? (const void *)condition : wide[k];
        }
        cr_assert_eq(af_eval_op(op, o, info->min_inputs, out, &attrs, narrow_srcs, strict, N, scratch()), 0);
        r = af_expand_wide(op, o, info->min_inputs, out, &attrs, 7, true, &prog, &reason);
        cr_assert_eq(r, 0, "%s: %s", info->name, reason);
        af_prog_eval(&prog, dtypes, wide_srcs, wide_result, N, scratch());
        if (out != AF_DTYPE_BOOL)
                cr_assert_eq(eval(AF_OP_CAST, 1, AF_DTYPE_FLOAT32, out, NULL, wide_result, NULL, rounded, N), 0);
        for (size_t i = 0; i < N; i++)
                if (!same(out, i) && !(op == AF_OP_COPYSIGN && isnan(wide[1][i]))) /* widening forgets a NaN's sign */
                        fail(f, "%s %s of %a, %a: wide %a, strict %04x", af_dtype_name(d), info->name, (double)wide[0][i],
                             (double)wide[1][i], (double)wide_result[i], strict[i]);
}

Test(expand_wide, rounded_once_is_strict) {
        static const enum af_dtype ds[] = {AF_DTYPE_FLOAT16, AF_DTYPE_BFLOAT16};
        struct failures f = {0};
        unsigned n = 0;

        for (int i = 0; i < N; i++)
                condition[i] = i % 2;
        for (int t = 0; t < 2; t++) {
                fill(ds[t], 100);
                for (unsigned op = 0; op < AF_N_OPS; op++) {
                        const struct af_op_info *info = af_op_info((enum af_op)op);

                        if (info->cls > AF_CLASS_CAST || !(info->dtypes & AF_DTYPE_BIT(ds[t])))
                                continue;
                        check(&f, (enum af_op)op, ds[t]);
                        n++;
                }
        }
        EXPECT_NONE(f);
        cr_expect_gt(n, 120);
}

/* Operands may come either way; other dtypes are untouched. */
Test(expand_wide, some_operands) {
        const struct af_expand_operand o[2] = {{.dtype = AF_DTYPE_FLOAT16}, {.dtype = AF_DTYPE_FLOAT16}};
        const struct af_expand_operand ints[2] = {{.dtype = AF_DTYPE_INT8}, {.dtype = AF_DTYPE_INT8}};
        const enum af_dtype dtypes[2] = {AF_DTYPE_FLOAT16, AF_DTYPE_FLOAT32};
        static struct af_prog prog, plain;
        const void *srcs[2] = {x[0], wide[1]};
        const char *reason;

        fill(AF_DTYPE_FLOAT16, 101);
        cr_assert_eq(af_expand_wide(AF_OP_MUL, o, 2, AF_DTYPE_FLOAT16, NULL, 2, false, &prog, &reason), 0);
        af_prog_eval(&prog, dtypes, srcs, rounded, N, scratch());
        cr_assert_eq(eval(AF_OP_MUL, 2, AF_DTYPE_FLOAT16, AF_DTYPE_FLOAT16, NULL, x[0], x[1], strict, N), 0);
        for (size_t i = 0; i < N; i++)
                cr_assert(same(AF_DTYPE_FLOAT16, i));
        cr_assert_eq(af_expand_wide(AF_OP_MUL, ints, 2, AF_DTYPE_INT8, NULL, 3, true, &prog, &reason), 0);
        cr_assert_eq(af_expand(AF_OP_MUL, ints, 2, AF_DTYPE_INT8, NULL, &plain, &reason), 0);
        cr_expect_eq(prog.n_ins, plain.n_ins);
        cr_expect_arr_eq(prog.ins, plain.ins, plain.n_ins * sizeof(plain.ins[0]));
}

/*
 * y = ((a b + c) a - b) * 0.3 in float16: strict rounds five times, fast once. Each float32 step errs by at most 2^-24 of its own value, so
 * the distance to the exact value is below 2^-21 of the sum of magnitudes and half an ulp of float16.
 */
Test(expand_wide, chain_bound) {
        static const enum af_op ops[] = {AF_OP_MUL, AF_OP_ADD, AF_OP_MUL, AF_OP_SUB};
        static const int second[] = {1, 2, 0, 1};
        const struct af_expand_operand o[2] = {{.dtype = AF_DTYPE_FLOAT16}, {.dtype = AF_DTYPE_FLOAT16}};
        const struct af_expand_operand by[2] = {{.dtype = AF_DTYPE_FLOAT16},
                                                {.dtype = AF_DTYPE_FLOAT64, .is_scalar = true, .bits = af_bits_f64(0.3)}};
        const enum af_dtype dtypes[2] = {AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT32};
        static struct af_prog prog;
        struct failures f = {0};
        uint64_t seed = 102;
        const char *reason;

        for (int k = 0; k < 3; k++)
                for (int i = 0; i < N; i++) {
                        x[k][i] = af_f16_from_f32((float)(int32_t)random64(&seed) * 0x1p-28f);
                        wide[k][i] = af_f16_to_f32(x[k][i]);
                }
        memcpy(wide_result, wide[0], sizeof(wide_result));
        for (int s = 0; s < 5; s++) {
                const void *srcs[2] = {wide_result, s < 4 ? wide[second[s]] : NULL};

                cr_assert_eq(af_expand_wide(s < 4 ? ops[s] : AF_OP_MUL, s < 4 ? o : by, 2, AF_DTYPE_FLOAT16, NULL, 3, true, &prog, &reason),
                             0);
                af_prog_eval(&prog, dtypes, srcs, wide_result, N, scratch());
        }
        cr_assert_eq(eval(AF_OP_CAST, 1, AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT16, NULL, wide_result, NULL, rounded, N), 0);
        for (size_t i = 0; i < N; i++) {
                double a = (double)wide[0][i], b = (double)wide[1][i], c = (double)wide[2][i];
                double want = ((a * b + c) * a - b) * 0.3, most = (fabs(a * b * a) + fabs(c * a) + fabs(b)) * 0.3;
                double half_ulp = ldexp(1, (want == 0 ? -14 : (int)fmax(floor(log2(fabs(want))), -14)) - 11);

                if (fabs(as_double(AF_DTYPE_FLOAT16, &rounded[i]) - want) > half_ulp * 1.001 + most * 0x1p-21)
                        fail(&f, "%a %a %a: %a, want %a", a, b, c, as_double(AF_DTYPE_FLOAT16, &rounded[i]), want);
        }
        EXPECT_NONE(f);
}
