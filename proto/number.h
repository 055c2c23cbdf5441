/* SPDX-License-Identifier: Apache-2.0 */
/* Decimal text to elements, rounded once. The caller has set the C locale for its thread (uselocale). */
#pragma once

#include "base/macros.h"
#include "numeric/dtype.h"

enum { AF_NUMBER_E_SYNTAX = 1, AF_NUMBER_E_RANGE = 2 };

/* A decimal integer, or a JSON number whose value is one (`128.0`, `1e3`, up to 2^53). The text is n bytes, followed by a byte of no
 * number. */
int af_number_int64(const char *text, size_t n, int64_t *ret_v) AF_WARN_UNUSED;
/* Nearest double of a JSON number; RANGE where it is not finite. */
int af_number_double(const char *text, size_t n, double *ret_v) AF_WARN_UNUSED;
/*
 * The element of dtype d for a JSON number's text, little-endian, af_dtype_size(d) bytes. Floats: nearest, ties to even, from the decimal
 * at once; RANGE where that is infinite. Integers and bool (0, 1): exact, else RANGE.
 */
int af_number_element(enum af_dtype d, const char *text, size_t n, uint8_t *ret_bytes) AF_WARN_UNUSED;
