/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the well-formed UTF-8 sequence at s, of which n > 0 remain; 0 where it is not one (overlong, surrogate, beyond U+10FFFF, cut).
 */
size_t af_utf8_sequence(const uint8_t *s, size_t n);
/* Whether all n bytes are UTF-8. */
bool af_utf8_valid(const void *p, size_t n);
/* Writes code (not a surrogate, at most U+10FFFF) to out; returns its bytes, 1 to 4. */
size_t af_utf8_encode(uint32_t code, uint8_t out[4]);
