/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside numeric/: instructions as expressions over a builder `b`. Arguments are evaluated from the left, so that a program is the same
 * whatever compiler built this library.
 */
#pragma once

#include "numeric/build.h"

#define AF_B2(prim, x, y)                                                                                                                  \
        __extension__({                                                                                                                    \
                const af_val x_ = (x);                                                                                                     \
                const af_val y_ = (y);                                                                                                     \
                af_b_binary(b, prim, x_, y_);                                                                                              \
        })
#define ADD(x, y)      AF_B2(AF_PRIM_ADD, x, y)
#define SUB(x, y)      AF_B2(AF_PRIM_SUB, x, y)
#define MUL(x, y)      AF_B2(AF_PRIM_MUL, x, y)
#define DIV(x, y)      AF_B2(AF_PRIM_DIV, x, y)
#define MAX(x, y)      AF_B2(AF_PRIM_MAX, x, y)
#define AND(x, y)      AF_B2(AF_PRIM_AND, x, y)
#define MASK_AND(x, y) AF_B2(AF_PRIM_MASK_AND, x, y)
#define MASK_OR(x, y)  AF_B2(AF_PRIM_MASK_OR, x, y)
#define MASK_NOT(x)    af_b_unary(b, AF_PRIM_MASK_NOT, x)
#define EXP(x)         af_b_unary(b, AF_PRIM_EXP, x)
#define LN(x)          af_b_unary(b, AF_PRIM_LN, x)
#define ABS(x)         af_b_unary(b, AF_PRIM_ABS, x)
#define SELECT(m, x, y)                                                                                                                    \
        __extension__({                                                                                                                    \
                const af_val m_ = (m);                                                                                                     \
                const af_val x_ = (x);                                                                                                     \
                const af_val y_ = (y);                                                                                                     \
                af_b_select(b, m_, x_, y_);                                                                                                \
        })

#define CMP(mode, x, y)                                                                                                                    \
        __extension__({                                                                                                                    \
                const af_val x_ = (x);                                                                                                     \
                const af_val y_ = (y);                                                                                                     \
                af_b_cmp(b, mode, x_, y_);                                                                                                 \
        })

/* float32 with a scalar */
#define ADDS(x, s)     af_b_adds_f32(b, x, s)
#define MULS(x, s)     af_b_muls_f32(b, x, s)
#define MINS(x, s)     af_b_scalar(b, AF_PRIM_MINS, x, af_bits_f32(s))
#define MAXS(x, s)     af_b_scalar(b, AF_PRIM_MAXS, x, af_bits_f32(s))
#define IF(mode, x, s) af_b_cmps_f32(b, AF_CMP_##mode, x, s)
#define DUP(x)         af_b_dup_f32(b, x)
#define HORNER(x, c)   af_b_horner(b, x, c, sizeof(c) / sizeof((c)[0]))
#define ROUND(mode, x) af_b_cast(b, x, AF_DTYPE_FLOAT32, AF_ROUND_##mode)

/* integers */
#define INT_ADDS(x, i) af_b_scalar(b, AF_PRIM_ADDS, x, (uint32_t)(i))
#define INT_SHL(x, n)  af_b_scalar(b, AF_PRIM_SHL, x, n)
#define INT_SHR(x, n)  af_b_scalar(b, AF_PRIM_SHR, x, n)
#define INT_DUP(d, i)  af_b_dup(b, d, i)
#define TO_I32(x)      af_b_cast(b, x, AF_DTYPE_INT32, AF_ROUND_RINT)
#define TO_F32(x)      af_b_cast(b, x, AF_DTYPE_FLOAT32, AF_ROUND_RINT)
#define AS_INT(x)      af_b_bits(b, x, AF_DTYPE_INT32)
#define AS_F32(x)      af_b_bits(b, x, AF_DTYPE_FLOAT32)
