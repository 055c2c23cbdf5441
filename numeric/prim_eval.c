/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Primitives over arrays: one plain loop per primitive and dtype over the scalar functions of prim.h. A destination may be one of
 * the sources (same start), so the loops promise independent iterations.
 */
#include "numeric/expand.h"
#include "numeric/loops.h"
#include "numeric/prim.h"

static const struct af_prim_info infos[AF_N_PRIMS] = {
#define KIND_V                                    'V'
#define KIND_S                                    'S'
#define KIND_C                                    'C'
#define KIND_M                                    'M'
#define KIND_MS                                   'm'
#define KIND_SEL                                  '?'
#define KIND_L                                    'L'
#define KIND_D                                    'D'
#define KIND_R                                    'R'
#define AF_PRIM(ID, call_, n_src_, kind_, dtypes) [AF_PRIM_##ID] = {call_, n_src_, KIND_##kind_},
#include "numeric/prims.def"
#undef AF_PRIM
};

const struct af_prim_info *af_prim_info(enum af_prim prim) {
        return &infos[prim];
}

/* Three loops per arithmetic primitive and dtype: vector with vector, with the scalar, and of one source. */
#define BINARY(fn, T)                                                                                                                      \
        AF_LOOP_FN void v_##fn(const struct af_prim_ins *ins, const void *const *srcs, void *dst, size_t n) {                              \
                const T *a = srcs[0], *b = srcs[1];                                                                                        \
                T *d = dst;                                                                                                                \
                                                                                                                                           \
                AF_LOOP(n)                                                                                                                 \
                d[i] = fn(a[i], b[i]);                                                                                                     \
        }
#define SCALAR(fn, T, imm_of)                                                                                                              \
        AF_LOOP_FN void s_##fn(const struct af_prim_ins *ins, const void *const *srcs, void *dst, size_t n) {                              \
                const T *a = srcs[0];                                                                                                      \
                const T s = imm_of(ins->imm);                                                                                              \
                T *d = dst;                                                                                                                \
                                                                                                                                           \
                AF_LOOP(n)                                                                                                                 \
                d[i] = fn(a[i], s);                                                                                                        \
        }
#define UNARY(fn, T)                                                                                                                       \
        AF_LOOP_FN void u_##fn(const struct af_prim_ins *ins, const void *const *srcs, void *dst, size_t n) {                              \
                const T *a = srcs[0];                                                                                                      \
                T *d = dst;                                                                                                                \
                                                                                                                                           \
                AF_LOOP(n)                                                                                                                 \
                d[i] = fn(a[i]);                                                                                                           \
        }
#define SHIFT(fn, T)                                                                                                                       \
        AF_LOOP_FN void s_##fn(const struct af_prim_ins *ins, const void *const *srcs, void *dst, size_t n) {                              \
                const T *a = srcs[0];                                                                                                      \
                const uint32_t s = (uint32_t)ins->imm;                                                                                     \
                T *d = dst;                                                                                                                \
                                                                                                                                           \
                AF_LOOP(n)                                                                                                                 \
                d[i] = fn(a[i], s);                                                                                                        \
        }
#define IMM_I16(x) (int16_t)(x)
#define IMM_U16(x) (uint16_t)(x)
#define IMM_I32(x) (int32_t)(x)
#define IMM_F32(x) af_f32_from_bits((uint32_t)(x))
#define ARITHMETIC(prim)                                                                                                                   \
        BINARY(af_i16_##prim, int16_t)                                                                                                     \
        BINARY(af_f16_##prim, uint16_t)                                                                                                    \
        BINARY(af_i32_##prim, int32_t)                                                                                                     \
        BINARY(af_f32_##prim, float)                                                                                                       \
        SCALAR(af_i16_##prim, int16_t, IMM_I16)                                                                                            \
        SCALAR(af_f16_##prim, uint16_t, IMM_U16)                                                                                           \
        SCALAR(af_i32_##prim, int32_t, IMM_I32)                                                                                            \
        SCALAR(af_f32_##prim, float, IMM_F32)

ARITHMETIC(add)
BINARY(af_i16_sub, int16_t)
BINARY(af_f16_sub, uint16_t)
BINARY(af_i32_sub, int32_t)
BINARY(af_f32_sub, float)
ARITHMETIC(mul)
ARITHMETIC(max)
ARITHMETIC(min)
BINARY(af_f16_div, uint16_t)
BINARY(af_f32_div, float)
UNARY(af_f32_exp, float)
UNARY(af_f32_ln, float)
UNARY(af_f16_abs, uint16_t)
UNARY(af_f32_abs, float)
UNARY(af_f32_sqrt, float)
UNARY(af_f16_relu, uint16_t)
UNARY(af_i32_relu, int32_t)
UNARY(af_f32_relu, float)
BINARY(af_u16_and, uint16_t)
BINARY(af_u16_or, uint16_t)
UNARY(af_u16_not, uint16_t)
BINARY(af_u32_and, uint32_t)
BINARY(af_u32_or, uint32_t)
UNARY(af_u32_not, uint32_t)
BINARY(af_u64_and, uint64_t)
BINARY(af_u64_or, uint64_t)
UNARY(af_u64_not, uint64_t)
SHIFT(af_u16_shl, uint16_t)
SHIFT(af_u16_shr, uint16_t)
SHIFT(af_i16_shr, int16_t)
SHIFT(af_u32_shl, uint32_t)
SHIFT(af_u32_shr, uint32_t)
SHIFT(af_i32_shr, int32_t)
BINARY(af_mask_and, uint8_t)
BINARY(af_mask_or, uint8_t)
UNARY(af_mask_not, uint8_t)

#define COMPARE(fn, T, imm_of)                                                                                                             \
        AF_LOOP_FN void v_##fn(const struct af_prim_ins *ins, const void *const *srcs, void *dst, size_t n) {                              \
                const T *a = srcs[0], *b = srcs[1];                                                                                        \
                uint8_t *d = dst;                                                                                                          \
                                                                                                                                           \
                AF_LOOP(n)                                                                                                                 \
                d[i] = fn(a[i], b[i]);                                                                                                     \
        }                                                                                                                                  \
        AF_LOOP_FN void s_##fn(const struct af_prim_ins *ins, const void *const *srcs, void *dst, size_t n) {                              \
                const T *a = srcs[0];                                                                                                      \
                const T s = imm_of(ins->imm);                                                                                              \
                uint8_t *d = dst;                                                                                                          \
                                                                                                                                           \
                AF_LOOP(n)                                                                                                                 \
                d[i] = fn(a[i], s);                                                                                                        \
        }
#define COMPARES(T, name, imm_of)                                                                                                          \
        COMPARE(af_##name##_lt, T, imm_of)                                                                                                 \
        COMPARE(af_##name##_gt, T, imm_of)                                                                                                 \
        COMPARE(af_##name##_eq, T, imm_of)                                                                                                 \
        COMPARE(af_##name##_le, T, imm_of)                                                                                                 \
        COMPARE(af_##name##_ge, T, imm_of)                                                                                                 \
        COMPARE(af_##name##_ne, T, imm_of)
COMPARES(float, f32, IMM_F32)
COMPARES(uint16_t, f16, IMM_U16)
COMPARE(af_i32_eq, int32_t, IMM_I32)

#define SELECT(fn, T)                                                                                                                      \
        AF_LOOP_FN void v_##fn(const struct af_prim_ins *ins, const void *const *srcs, void *dst, size_t n) {                              \
                const uint8_t *m = srcs[0];                                                                                                \
                const T *a = srcs[1], *b = srcs[2];                                                                                        \
                T *d = dst;                                                                                                                \
                                                                                                                                           \
                AF_LOOP(n)                                                                                                                 \
                d[i] = fn(m[i], a[i], b[i]);                                                                                               \
        }
SELECT(af_u16_select, uint16_t)
SELECT(af_u32_select, uint32_t)

static void fill(const struct af_prim_ins *ins, void *dst, size_t n) {
        if (af_dtype_size(ins->dtype) == 2) {
                uint16_t *d = dst;

                for (size_t i = 0; i < n; i++)
                        d[i] = (uint16_t)ins->imm;
        } else {
                uint32_t *d = dst;

                for (size_t i = 0; i < n; i++)
                        d[i] = (uint32_t)ins->imm;
        }
}

/* The arithmetic dtypes in prims.def's order, then the bit types. */
enum { I16, F16, I32, F32, N_ARITHMETIC };

static int column(enum af_dtype d) {
        switch ((int)d) {
        case AF_DTYPE_INT16:
                return I16;
        case AF_DTYPE_FLOAT16:
                return F16;
        case AF_DTYPE_INT32:
                return I32;
        case AF_DTYPE_FLOAT32:
                return F32;
        default:
                return -1;
        }
}

#define ROW4(form, prim)                                                                                                                   \
        { form##_af_i16_##prim, form##_af_f16_##prim, form##_af_i32_##prim, form##_af_f32_##prim }
static const af_loop_fn arithmetic[AF_N_PRIMS][N_ARITHMETIC] = {
        [AF_PRIM_ADD] = ROW4(v, add),
        [AF_PRIM_SUB] = ROW4(v, sub),
        [AF_PRIM_MUL] = ROW4(v, mul),
        [AF_PRIM_MAX] = ROW4(v, max),
        [AF_PRIM_MIN] = ROW4(v, min),
        [AF_PRIM_ADDS] = ROW4(s, add),
        [AF_PRIM_MULS] = ROW4(s, mul),
        [AF_PRIM_MAXS] = ROW4(s, max),
        [AF_PRIM_MINS] = ROW4(s, min),
        [AF_PRIM_DIV] = {0, v_af_f16_div, 0, v_af_f32_div},
        [AF_PRIM_EXP] = {0, 0, 0, u_af_f32_exp},
        [AF_PRIM_LN] = {0, 0, 0, u_af_f32_ln},
        [AF_PRIM_ABS] = {0, u_af_f16_abs, 0, u_af_f32_abs},
        [AF_PRIM_SQRT] = {0, 0, 0, u_af_f32_sqrt},
        [AF_PRIM_RELU] = {0, u_af_f16_relu, u_af_i32_relu, u_af_f32_relu},
};
#define ROW6(form, type)                                                                                                                   \
        {                                                                                                                                  \
                form##_af_##type##_lt, form##_af_##type##_gt, form##_af_##type##_eq, form##_af_##type##_le, form##_af_##type##_ge,         \
                        form##_af_##type##_ne                                                                                              \
        }
static const af_loop_fn compares[2][N_ARITHMETIC][6] = {
        {[F16] = ROW6(v, f16), [F32] = ROW6(v, f32), [I32] = {[AF_CMP_EQ] = v_af_i32_eq}},
        {[F16] = ROW6(s, f16), [F32] = ROW6(s, f32), [I32] = {[AF_CMP_EQ] = s_af_i32_eq}},
};

/* By primitive and by whether elements have 4 bytes; the last column: signed. */
static af_loop_fn bit_loop(const struct af_prim_ins *ins) {
        int wide = af_dtype_size(ins->dtype) == 4;
        int is_signed = af_dtype_kind(ins->dtype) == 'i';

        if (af_dtype_size(ins->dtype) == 8)
                return ins->prim == AF_PRIM_AND   ? v_af_u64_and
                       : ins->prim == AF_PRIM_OR  ? v_af_u64_or
                       : ins->prim == AF_PRIM_NOT ? u_af_u64_not
                                                  : NULL;
        switch (ins->prim) {
        case AF_PRIM_AND:
                return wide ? v_af_u32_and : v_af_u16_and;
        case AF_PRIM_OR:
                return wide ? v_af_u32_or : v_af_u16_or;
        case AF_PRIM_NOT:
                return wide ? u_af_u32_not : u_af_u16_not;
        case AF_PRIM_SHL:
                return wide ? s_af_u32_shl : s_af_u16_shl;
        case AF_PRIM_SHR:
                if (is_signed)
                        return wide ? s_af_i32_shr : s_af_i16_shr;
                return wide ? s_af_u32_shr : s_af_u16_shr;
        case AF_PRIM_SELECT:
                return wide ? v_af_u32_select : v_af_u16_select;
        case AF_PRIM_MASK_AND:
                return v_af_mask_and;
        case AF_PRIM_MASK_OR:
                return v_af_mask_or;
        case AF_PRIM_MASK_NOT:
                return u_af_mask_not;
        default:
                return NULL;
        }
}

static af_loop_fn find_loop(const struct af_prim_ins *ins) {
        int c = column((enum af_dtype)ins->dtype);

        switch (ins->prim) {
        case AF_PRIM_CAST:
                return af_cast_loop((enum af_dtype)ins->dtype, (enum af_dtype)ins->to);
        case AF_PRIM_CMP:
        case AF_PRIM_CMPS:
                return c < 0 || ins->mode > AF_CMP_NE ? NULL : compares[ins->prim == AF_PRIM_CMPS][c][ins->mode];
        default:
                if (c >= 0 && arithmetic[ins->prim][c])
                        return arithmetic[ins->prim][c];
                return bit_loop(ins);
        }
}

bool af_prim_valid(const struct af_prim_ins *ins) {
        if (ins->prim >= AF_N_PRIMS)
                return false;
        if (ins->prim == AF_PRIM_DUP)
                return af_dtype_size(ins->dtype) == 2 || af_dtype_size(ins->dtype) == 4;
        if (ins->prim == AF_PRIM_BITS)
                return af_dtype_size(ins->dtype) == af_dtype_size(ins->to);
        return find_loop(ins) != NULL;
}

void af_prim_eval(const struct af_prim_ins *ins, const void *const *srcs, void *dst, size_t n) {
        if (ins->prim == AF_PRIM_DUP)
                fill(ins, dst, n);
        else if (ins->prim == AF_PRIM_BITS)
                memmove(dst, srcs[0], n * af_dtype_size(ins->to));
        else
                find_loop(ins)(ins, srcs, dst, n);
}
