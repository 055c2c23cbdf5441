/* SPDX-License-Identifier: Apache-2.0 */
/* Cast over arrays. The two modes that programs use have loops of their own, so that the mode folds away. */
#include "numeric/loops.h"
#include "numeric/prim.h"

#define CAST(from, F, to, T)                                                                                                               \
        AF_LOOP_FN void cast_##from##_##to(const struct af_prim_ins *ins, const void *const *srcs, void *dst, size_t n) {                  \
                const F *a = srcs[0];                                                                                                      \
                const enum af_round mode = (enum af_round)ins->mode;                                                                       \
                T *d = dst;                                                                                                                \
                                                                                                                                           \
                if (mode == AF_ROUND_RINT || mode == AF_ROUND_NONE) {                                                                      \
                        AF_LOOP(n)                                                                                                         \
                        d[i] = af_cast_##from##_##to(a[i], AF_ROUND_RINT);                                                                 \
                } else if (mode == AF_ROUND_TRUNC) {                                                                                       \
                        AF_LOOP(n)                                                                                                         \
                        d[i] = af_cast_##from##_##to(a[i], AF_ROUND_TRUNC);                                                                \
                } else {                                                                                                                   \
                        AF_LOOP(n)                                                                                                         \
                        d[i] = af_cast_##from##_##to(a[i], mode);                                                                          \
                }                                                                                                                          \
        }

/* X(from id, from name, from type, to id, to name, to type): ASCENDC's Cast table. */
#define CASTS(X)                                                                                                                           \
        X(INT8, i8, int8_t, FLOAT16, f16, uint16_t)                                                                                        \
        X(UINT8, u8, uint8_t, FLOAT16, f16, uint16_t)                                                                                      \
        X(FLOAT16, f16, uint16_t, INT8, i8, int8_t)                                                                                        \
        X(FLOAT16, f16, uint16_t, UINT8, u8, uint8_t)                                                                                      \
        X(FLOAT16, f16, uint16_t, INT16, i16, int16_t)                                                                                     \
        X(FLOAT16, f16, uint16_t, INT32, i32, int32_t)                                                                                     \
        X(FLOAT16, f16, uint16_t, FLOAT32, f32, float)                                                                                     \
        X(INT16, i16, int16_t, FLOAT16, f16, uint16_t)                                                                                     \
        X(INT16, i16, int16_t, FLOAT32, f32, float)                                                                                        \
        X(INT32, i32, int32_t, FLOAT32, f32, float)                                                                                        \
        X(INT32, i32, int32_t, INT16, i16, int16_t)                                                                                        \
        X(INT32, i32, int32_t, INT64, i64, int64_t)                                                                                        \
        X(INT64, i64, int64_t, INT32, i32, int32_t)                                                                                        \
        X(INT64, i64, int64_t, FLOAT32, f32, float)                                                                                        \
        X(BFLOAT16, bf16, uint16_t, FLOAT32, f32, float)                                                                                   \
        X(BFLOAT16, bf16, uint16_t, INT32, i32, int32_t)                                                                                   \
        X(FLOAT32, f32, float, FLOAT16, f16, uint16_t)                                                                                     \
        X(FLOAT32, f32, float, BFLOAT16, bf16, uint16_t)                                                                                   \
        X(FLOAT32, f32, float, INT16, i16, int16_t)                                                                                        \
        X(FLOAT32, f32, float, INT32, i32, int32_t)                                                                                        \
        X(FLOAT32, f32, float, INT64, i64, int64_t)                                                                                        \
        X(FLOAT32, f32, float, FLOAT32, f32, float)

#define DEFINE(FROM, from, F, TO, to, T) CAST(from, F, to, T)
CASTS(DEFINE)

static const struct cast_row {
        enum af_dtype from, to;
        af_loop_fn loop;
} rows[] = {
#define ROW(FROM, from, F, TO, to, T) {AF_DTYPE_##FROM, AF_DTYPE_##TO, cast_##from##_##to},
        CASTS(ROW)};

af_loop_fn af_cast_loop(enum af_dtype from, enum af_dtype to) {
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                if (rows[i].from == from && rows[i].to == to)
                        return rows[i].loop;
        return NULL;
}
