/* SPDX-License-Identifier: Apache-2.0 */
/* Programs as such: every instruction exists on the vector unit, its types fit, few values live at once; constants give what tensors give.
 */
#include "tests/unit/numeric/help.h"

static const enum af_dtype types[] = {AF_DTYPE_BOOL,  AF_DTYPE_INT8,    AF_DTYPE_UINT8,    AF_DTYPE_INT16,  AF_DTYPE_INT32,
                                      AF_DTYPE_INT64, AF_DTYPE_FLOAT16, AF_DTYPE_BFLOAT16, AF_DTYPE_FLOAT32};
enum { N_TYPES = sizeof(types) / sizeof(types[0]) };

static enum af_dtype value_type(const struct af_prog *p, const struct af_expand_operand *o, unsigned v) {
        if (v >= p->n_operands)
                return (enum af_dtype)p->ins[v - p->n_operands].to;
        return o[v].dtype == AF_DTYPE_BOOL ? AF_DTYPE_MASK : o[v].dtype;
}

/* The type that source k of an instruction must have. */
static enum af_dtype source_type(const struct af_prim_ins *ins, unsigned k) {
        bool mask = ins->prim == AF_PRIM_SELECT && k == 0;

        return mask ? AF_DTYPE_MASK : (enum af_dtype)ins->dtype;
}

static void check_program(struct failures *f, const char *name, const struct af_prog *p, const struct af_expand_operand *o,
                          enum af_dtype out) {
        for (unsigned i = 0; i < p->n_ins; i++) {
                const struct af_prim_ins *ins = &p->ins[i];
                unsigned n_src = af_prim_info((enum af_prim)ins->prim)->n_src;

                if (!af_prim_valid(ins))
                        fail(f, "%s: instruction %u is no primitive", name, i);
                for (unsigned k = 0; k < n_src; k++) {
                        if (ins->src[k] >= p->n_operands + i)
                                fail(f, "%s: instruction %u reads a later value", name, i);
                        else if (ins->src[k] < p->n_operands && o[ins->src[k]].is_scalar)
                                fail(f, "%s: instruction %u reads a constant", name, i);
                        else if (value_type(p, o, ins->src[k]) != source_type(ins, k))
                                fail(f, "%s: instruction %u source %u is %s", name, i, k, af_dtype_name(value_type(p, o, ins->src[k])));
                }
        }
        if (p->result >= p->n_operands + p->n_ins || value_type(p, o, p->result) != (out == AF_DTYPE_BOOL ? AF_DTYPE_MASK : out))
                fail(f, "%s: result", name);
        if (af_prog_max_live(p) > AF_PROG_MAX_LIVE)
                fail(f, "%s: %u values live", name, af_prog_max_live(p));
}

/* scalars: bit per operand that is a constant. */
static unsigned check_op(struct failures *f, enum af_op op, enum af_dtype d, unsigned scalars) {
        static struct af_prog prog;
        const struct af_op_info *info = af_op_info(op);
        struct af_expand_operand o[3];
        struct af_expand_attrs attrs = {.has_max = true, .max = 3, .imax = 3, .gelu_tanh = scalars & 8};
        const char *reason = NULL;
        char name[64];
        int r;

        for (unsigned k = 0; k < 3; k++)
                o[k] = (struct af_expand_operand){
                        .dtype = op == AF_OP_WHERE && k == 0 ? AF_DTYPE_BOOL : d, .is_scalar = scalars >> k & 1, .bits = 3};
        snprintf(name, sizeof(name), "%s %s %x", info->name, af_dtype_name(d), scalars);
        r = af_expand(op, o, info->min_inputs, af_op_result_dtype(op, d), &attrs, &prog, &reason);
        if (!r)
                check_program(f, name, &prog, o, af_op_result_dtype(op, d));
        else if (r != AF_EXPAND_E_UNSUPPORTED || !reason)
                fail(f, "%s: %d without a reason", name, r);
        else if (d != AF_DTYPE_INT64)
                fail(f, "%s: %s", name, reason);
        return !r;
}

Test(expand, programs_are_well_formed) {
        struct failures f = {0};
        unsigned n = 0;

        for (unsigned op = 0; op < AF_N_OPS; op++) {
                const struct af_op_info *info = af_op_info((enum af_op)op);

                if (info->cls > AF_CLASS_BROADCAST)
                        continue;
                for (int t = 0; t < N_TYPES; t++)
                        if (info->dtypes & AF_DTYPE_BIT(types[t]))
                                for (unsigned s = 0; s < 16; s++)
                                        n += check_op(&f, (enum af_op)op, types[t], s);
        }
        EXPECT_NONE(f);
        cr_expect_gt(n, 4000, "%u", n);
}

Test(expand, refuses_what_is_not_defined) {
        struct af_expand_operand o[3] = {{.dtype = AF_DTYPE_INT32}, {.dtype = AF_DTYPE_INT32}, {.dtype = AF_DTYPE_INT32}};
        static struct af_prog prog;
        const char *reason = NULL;

        cr_expect_eq(af_expand(AF_OP_EXP, o, 1, AF_DTYPE_INT32, NULL, &prog, &reason), AF_EXPAND_E_UNSUPPORTED);
        cr_expect_str_eq(reason, "the op is not defined for this dtype");
        cr_expect_eq(af_expand(AF_OP_ADD, o, 1, AF_DTYPE_INT32, NULL, &prog, &reason), AF_EXPAND_E_UNSUPPORTED);
        cr_expect_eq(af_expand(AF_OP_REDUCE_SUM, o, 1, AF_DTYPE_INT32, NULL, &prog, &reason), AF_EXPAND_E_UNSUPPORTED);
}

enum { N = 4096 };

static void fill(enum af_dtype d, void *p, uint64_t seed) {
        for (size_t i = 0; i < N; i++) {
                uint32_t v = i % 3 ? (uint32_t)random64(&seed) : af_bits_f32((float)((int)(random64(&seed) % 65) - 32) / 4);

                if (d == AF_DTYPE_FLOAT32)
                        ((uint32_t *)p)[i] = i < N_F32_SPECIALS ? f32_specials[i] : v;
                else
                        ((uint16_t *)p)[i] = d == AF_DTYPE_BFLOAT16 ? (uint16_t)(v >> 16)
                                             : i % 3                ? (uint16_t)v
                                                                    : af_f16_from_f32(af_f32_from_bits(v));
        }
}

/* Same bits, all NaNs being one. */
static bool alike(enum af_dtype d, const void *a, const void *b) {
        if (d != AF_DTYPE_BOOL && isnan(as_double(d, a)) && isnan(as_double(d, b)))
                return true;
        return !memcmp(a, b, af_dtype_size(d));
}

static void check_constant(struct failures *f, enum af_op op, enum af_dtype d, int side, uint64_t bits) {
        static uint32_t x[N], c[N], want[N], got[N];
        struct af_expand_operand o[2] = {{.dtype = d}, {.dtype = d}};
        const void *srcs[2] = {x, x};
        enum af_dtype out = af_op_result_dtype(op, d);

        fill(d, x, 70);
        for (size_t i = 0; i < N; i++)
                memcpy((char *)c + i * af_dtype_size(d), &bits, af_dtype_size(d));
        cr_assert_eq(eval(op, 2, d, out, NULL, side ? x : c, side ? c : x, want, N), 0);
        o[side] = (struct af_expand_operand){.dtype = d, .is_scalar = true, .bits = bits};
        srcs[side] = NULL;
        cr_assert_eq(af_eval_op(op, o, 2, out, NULL, srcs, got, N, scratch()), 0);
        for (size_t i = 0; i < N; i++)
                if (!alike(out, (char *)want + i * af_dtype_size(out), (char *)got + i * af_dtype_size(out)))
                        fail(f, "%s %s with constant %llx on side %d", af_op_info(op)->name, af_dtype_name(d), (unsigned long long)bits,
                             side);
}

Test(expand, float_constants_are_like_tensors) {
        static const enum af_dtype ds[] = {AF_DTYPE_FLOAT16, AF_DTYPE_BFLOAT16, AF_DTYPE_FLOAT32};
        static const float values[] = {0.0f,     -0.0f,    1.0f, -1.0f, 0.5f,  2.0f,  -8.0f,    0x1p14f,   -0x1p-14f, 0x1p15f,
                                       0x1p-24f, 0x1p126f, 3.0f, -2.5f, 1e30f, 6e-8f, INFINITY, -INFINITY, NAN};
        struct failures f = {0};

        for (int k = 0; k < 3; k++)
                for (enum af_op op = AF_OP_ADD; op < AF_N_OPS; op++) {
                        const struct af_op_info *info = af_op_info(op);

                        if (info->cls > AF_CLASS_CAST || info->max_inputs != 2 || !(info->dtypes & AF_DTYPE_BIT(ds[k])))
                                continue;
                        for (unsigned v = 0; v < sizeof(values) / sizeof(values[0]); v++)
                                for (int side = 0; side < 2; side++) {
                                        uint64_t bits = ds[k] == AF_DTYPE_FLOAT32   ? af_bits_f32(values[v])
                                                        : ds[k] == AF_DTYPE_FLOAT16 ? af_f16_from_f32(values[v])
                                                                                    : af_bf16_from_f32(values[v]);

                                        check_constant(&f, op, ds[k], side, bits);
                                }
                }
        EXPECT_NONE(f);
}

/* No identity that holds for reals alone; signed zeros and NaN as IEEE 754 has them. */
Test(expand, no_real_number_identities) {
        const float x[4] = {-0.0f, NAN, INFINITY, 5.0f}, zero[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        float r[4];

        cr_assert_eq(eval(AF_OP_ADD, 2, AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT32, NULL, x, zero, r, 4), 0);
        cr_expect(!signbit(r[0]) && isnan(r[1]) && isinf(r[2]));
        cr_assert_eq(eval(AF_OP_MUL, 2, AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT32, NULL, x, zero, r, 4), 0);
        cr_expect(signbit(r[0]) && isnan(r[1]) && isnan(r[2]) && r[3] == 0);
        cr_assert_eq(eval(AF_OP_SUB, 2, AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT32, NULL, x, x, r, 4), 0);
        cr_expect(r[0] == 0 && isnan(r[1]) && isnan(r[2]) && r[3] == 0);
        cr_assert_eq(eval(AF_OP_DIV, 2, AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT32, NULL, x, x, r, 4), 0);
        cr_expect(isnan(r[0]) && isnan(r[1]) && isnan(r[2]) && r[3] == 1);
        cr_assert_eq(eval(AF_OP_POW, 2, AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT32, NULL, x, zero, r, 4), 0);
        cr_expect(r[0] == 1 && r[1] == 1 && r[2] == 1 && r[3] == 1);
}

Test(expand, float16_overflows_at_its_node) {
        const uint16_t x = af_f16_from_f32(5000.0f);
        uint16_t r;
        float wide;

        cr_assert_eq(eval(AF_OP_SQUARE, 1, AF_DTYPE_FLOAT16, AF_DTYPE_FLOAT16, NULL, &x, NULL, &r, 1), 0);
        cr_assert_eq(eval(AF_OP_CAST, 1, AF_DTYPE_FLOAT16, AF_DTYPE_FLOAT32, NULL, &r, NULL, &wide, 1), 0);
        cr_expect(isinf(wide));
}

Test(tables, names_and_rows) {
        cr_expect_eq(af_dtype_from_name("bfloat16"), AF_DTYPE_BFLOAT16);
        cr_expect_eq(af_dtype_from_name("mask"), AF_DTYPE_INVALID, "a program's own types have no name in a fragment");
        cr_expect_eq(af_dtype_from_name(""), AF_DTYPE_INVALID);
        cr_expect_eq(af_dtype_size(AF_DTYPE_INT64), 8);
        cr_expect_eq(af_dtype_size(AF_DTYPE_MASK), 0);
        cr_expect_eq(af_dtype_size(AF_DTYPE_UINT32), 4);
        cr_expect_eq(af_dtype_kind(AF_DTYPE_UINT16), 'u');
        cr_expect_eq(af_dtype_kind((enum af_dtype)99), 0);
        cr_expect_str_eq(af_dtype_name((enum af_dtype)99), "invalid");
        cr_expect_eq(af_op_from_name("reduce_sum"), AF_OP_REDUCE_SUM);
        cr_expect_eq(af_op_from_name("nothing"), AF_OP_INVALID);
        for (unsigned op = 0; op < AF_N_OPS; op++) {
                const struct af_op_info *info = af_op_info((enum af_op)op);

                cr_expect_eq(af_op_from_name(info->name), (enum af_op)op, "%s", info->name);
                cr_expect_leq(info->min_inputs, info->max_inputs);
                cr_expect_str_not_empty(af_op_class_name(info->cls));
        }
}
