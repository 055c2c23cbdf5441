/* SPDX-License-Identifier: Apache-2.0 */
/* For the numeric tests: random bits, special values, errors in ulps, one-op evaluation, counted failures. */
#pragma once

#include <criterion/criterion.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numeric/expand.h"
#include "numeric/prim.h"

static inline uint64_t random64(uint64_t *state) {
        uint64_t z = (*state += 0x9e3779b97f4a7c15u);

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
}

/* Failures are counted, the first few are told. */
struct failures {
        unsigned n;
};

__attribute__((format(printf, 2, 3), unused)) static void fail(struct failures *f, const char *fmt, ...) {
        va_list ap;

        if (f->n++ >= 5)
                return;
        va_start(ap, fmt);
        fputs("  ", stderr);
        vfprintf(stderr, fmt, ap);
        fputc('\n', stderr);
        va_end(ap);
}

#define EXPECT_NONE(f) cr_expect_eq((f).n, 0, "%u failures", (f).n)

static const uint32_t f32_specials[] = {
        0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x7f800001, 0x00000001, 0x80000001,
        0x007fffff, 0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff, 0x3f000000, 0xbf000000, 0x40000000, 0xc0000000, 0x40400000, 0xc0400000,
        0x3f7fffff, 0x3f800001, 0x3fc00000, 0xbfc00000, 0x40200000, 0x4b000000, 0xcb000000, 0x4b7fffff, 0x4b800000, 0x4b800001, 0x42f00000,
        0xc2f00000, 0x477fe000, 0x477ff000, 0x47800000, 0x33000000, 0x33000001, 0x387fc000, 0x4f000000, 0xcf000000, 0x4effffff, 0xcf000001,
        0x5f000000, 0xdf000000, 0x5effffff, 0x437f0000, 0x43000000, 0xc3000000, 0xc3010000, 0x46fffe00, 0x47000000, 0xc7000000, 0x3dcccccd,
};
enum { N_F32_SPECIALS = sizeof(f32_specials) / sizeof(f32_specials[0]) };

/* Distance of got from the exact value want, in units of the last place of want as a float with `bits` of significand and least exponent
 * e_min. */
static inline double ulps(double got, double want, int bits, int e_min) {
        double past;
        int e;

        if (isnan(want) || isnan(got))
                return isnan(want) && isnan(got) ? 0 : HUGE_VAL;
        if (got == want)
                return got == 0 && !signbit(got) != !signbit(want) ? HUGE_VAL : 0;
        if (isinf(want))
                return HUGE_VAL;
        /* Infinity counts as the number that would follow the largest. */
        past = bits == 11 ? 0x1p16 : 0x1p128;
        got = isinf(got) ? copysign(past, got) : got;
        want = fabs(want) > past ? copysign(past, want) : want;
        frexp(want, &e);
        if (e < e_min + 1)
                e = e_min + 1;
        return fabs(got - want) / ldexp(1, e - bits);
}

static inline double ulps_f32(float got, double want) {
        return ulps(got, want, 24, -126);
}

static inline void *scratch(void) {
        static void *memory;

        if (!memory)
                memory = malloc(af_eval_scratch_bytes(1));
        return memory;
}

/* Evaluates op on tensors alone; all operands have dtype in. */
static inline int eval(enum af_op op, unsigned n_operands, enum af_dtype in, enum af_dtype out, const struct af_expand_attrs *attrs,
                       const void *a, const void *b, void *dst, size_t n) {
        struct af_expand_operand o[3] = {{.dtype = in}, {.dtype = in}, {.dtype = in}};
        const void *srcs[3] = {a, b, NULL};

        return af_eval_op(op, o, n_operands, out, attrs, srcs, dst, n, scratch());
}

/* A value of d at p as a double (integers up to 2^53 exactly). */
static inline double as_double(enum af_dtype d, const void *p) {
        switch ((int)d) {
        case AF_DTYPE_BOOL:
        case AF_DTYPE_UINT8:
                return *(const uint8_t *)p;
        case AF_DTYPE_INT8:
                return *(const int8_t *)p;
        case AF_DTYPE_INT16:
                return *(const int16_t *)p;
        case AF_DTYPE_INT32:
                return *(const int32_t *)p;
        case AF_DTYPE_INT64:
                return (double)*(const int64_t *)p;
        case AF_DTYPE_FLOAT16:
                return af_f16_to_f32(*(const uint16_t *)p);
        case AF_DTYPE_BFLOAT16:
                return af_bf16_to_f32(*(const uint16_t *)p);
        case AF_DTYPE_FLOAT32:
                return *(const float *)p;
        default:
                return *(const double *)p;
        }
}
