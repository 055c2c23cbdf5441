/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Element types. Values are part of the canonical form and of the bundle format: never renumber, only append.
 * Common subset of C17 and C++17.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* X(id, name, bytes in memory, kind: b bool, i signed, u unsigned, f float) */
#define AF_DTYPES(X)                                                                                                                       \
        X(BOOL, "bool", 1, 'b')                                                                                                            \
        X(INT8, "int8", 1, 'i')                                                                                                            \
        X(UINT8, "uint8", 1, 'u')                                                                                                          \
        X(INT16, "int16", 2, 'i')                                                                                                          \
        X(INT32, "int32", 4, 'i')                                                                                                          \
        X(INT64, "int64", 8, 'i')                                                                                                          \
        X(FLOAT16, "float16", 2, 'f')                                                                                                      \
        X(BFLOAT16, "bfloat16", 2, 'f')                                                                                                    \
        X(FLOAT32, "float32", 4, 'f')                                                                                                      \
        X(FLOAT64, "float64", 8, 'f')

enum af_dtype {
        AF_DTYPE_INVALID = 0,
#define AF_X(id, name, bytes, kind) AF_DTYPE_##id,
        AF_DTYPES(AF_X)
#undef AF_X
                AF_N_DTYPES,
        /* Only inside primitive programs and kernels, never in a fragment: */
        AF_DTYPE_MASK = 32, /* one truth value per element: a bit in UB (LSB first), a uint8 0/1 in the reference */
        AF_DTYPE_UINT16,    /* bits, for And, Or, Not, shifts */
        AF_DTYPE_UINT32,
};

#define AF_DTYPE_BIT(d) (1u << (d))

/* Bytes of one element; 0 for INVALID and MASK. */
unsigned af_dtype_size(enum af_dtype d);
/* 'b', 'i', 'u', 'f', or 'm' for MASK; 0 for INVALID. */
char af_dtype_kind(enum af_dtype d);
const char *af_dtype_name(enum af_dtype d);         /* "float32"; "invalid" */
enum af_dtype af_dtype_from_name(const char *name); /* INVALID where unknown */
