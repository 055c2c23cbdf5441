/* SPDX-License-Identifier: Apache-2.0 */
/* Little-endian numbers in bytes, whatever the host is: formats are read on other machines. n: 1 to 8 bytes. */
#pragma once

#include <stdint.h>

static inline void af_le_put(uint8_t *out, uint64_t v, unsigned n) {
        for (unsigned i = 0; i < n; i++)
                out[i] = (uint8_t)(v >> (8 * i));
}

static inline uint64_t af_le_get(const uint8_t *p, unsigned n) {
        uint64_t v = 0;

        for (unsigned i = 0; i < n; i++)
                v |= (uint64_t)p[i] << (8 * i);
        return v;
}
