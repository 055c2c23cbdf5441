/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/number.h"

#include <fenv.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/le.h"
#include "numeric/half.h"

/* -?[0-9]+ */
static bool is_integer_text(const char *text, size_t n) {
        size_t i = n > 0 && text[0] == '-';

        if (i == n)
                return false;
        for (; i < n; i++)
                if (text[i] < '0' || text[i] > '9')
                        return false;
        return true;
}

/* -?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?: what JSON takes, leading zeros aside. Keeps strtod from hexadecimal, inf and nan. */
static bool is_number_text(const char *text, size_t n) {
        size_t i = 0, start;

        if (i < n && text[i] == '-')
                i++;
        for (start = i; i < n && text[i] >= '0' && text[i] <= '9';)
                i++;
        if (i == start)
                return false;
        if (i < n && text[i] == '.') {
                for (start = ++i; i < n && text[i] >= '0' && text[i] <= '9';)
                        i++;
                if (i == start)
                        return false;
        }
        if (i < n && (text[i] == 'e' || text[i] == 'E')) {
                i++;
                if (i < n && (text[i] == '+' || text[i] == '-'))
                        i++;
                for (start = i; i < n && text[i] >= '0' && text[i] <= '9';)
                        i++;
                if (i == start)
                        return false;
        }
        return i == n;
}

int af_number_int64(const char *text, size_t n, int64_t *ret_v) {
        bool negative = n > 0 && text[0] == '-';
        int64_t v = 0;
        double d;

        if (!is_integer_text(text, n)) {
                int r = af_number_double(text, n, &d);
                if (r != 0)
                        return r;
                if (d != floor(d))
                        return AF_NUMBER_E_SYNTAX;
                if (fabs(d) > 0x1p53)
                        return AF_NUMBER_E_RANGE;
                *ret_v = (int64_t)d;
                return 0;
        }
        for (size_t i = negative; i < n; i++) {
                int64_t digit = text[i] - '0';
                if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, negative ? -digit : digit, &v))
                        return AF_NUMBER_E_RANGE;
        }
        *ret_v = v;
        return 0;
}

int af_number_double(const char *text, size_t n, double *ret_v) {
        if (!is_number_text(text, n))
                return AF_NUMBER_E_SYNTAX;
        double d = strtod(text, NULL);
        if (isinf(d))
                return AF_NUMBER_E_RANGE;
        *ret_v = d;
        return 0;
}

/*
 * The decimal rounded to odd in float: of the two floats around it the one whose last bit is set, so that a second rounding to 11 or fewer
 * bits comes out as one rounding of the decimal would.
 */
static float parse_to_odd(const char *text) {
        int mode = fegetround();
        float down, up;

        fesetround(FE_DOWNWARD);
        down = strtof(text, NULL);
        fesetround(FE_UPWARD);
        up = strtof(text, NULL);
        fesetround(mode);
        return af_bits_f32(down) & 1 ? down : up;
}

static int float_element(enum af_dtype d, const char *text, size_t n, uint8_t *ret_bytes) {
        uint64_t bits;
        bool finite;

        if (!is_number_text(text, n))
                return AF_NUMBER_E_SYNTAX;
        if (d == AF_DTYPE_FLOAT64) {
                double x = strtod(text, NULL);
                finite = isfinite(x);
                bits = af_bits_f64(x);
        } else if (d == AF_DTYPE_FLOAT32) {
                float x = strtof(text, NULL);
                finite = isfinite(x);
                bits = af_bits_f32(x);
        } else if (d == AF_DTYPE_FLOAT16) {
                bits = af_f16_from_f32(parse_to_odd(text));
                finite = (bits & AF_F16_INF) != AF_F16_INF;
        } else {
                bits = af_bf16_from_f32(parse_to_odd(text));
                finite = (bits & (AF_F32_INF >> 16)) != AF_F32_INF >> 16;
        }
        if (!finite)
                return AF_NUMBER_E_RANGE;
        af_le_put(ret_bytes, bits, af_dtype_size(d));
        return 0;
}

int af_number_element(enum af_dtype d, const char *text, size_t n, uint8_t *ret_bytes) {
        int64_t v, min, max;

        if (af_dtype_kind(d) == 'f')
                return float_element(d, text, n, ret_bytes);
        int r = af_number_int64(text, n, &v);
        if (r != 0)
                return r;
        if (d == AF_DTYPE_BOOL) {
                min = 0;
                max = 1;
        } else {
                unsigned bits = 8 * af_dtype_size(d);
                bool is_signed = af_dtype_kind(d) == 'i';
                max = (int64_t)((is_signed ? UINT64_C(1) << (bits - 1) : UINT64_C(1) << bits) - 1);
                min = is_signed ? -max - 1 : 0;
        }
        if (v < min || v > max)
                return AF_NUMBER_E_RANGE;
        af_le_put(ret_bytes, (uint64_t)v, af_dtype_size(d));
        return 0;
}
