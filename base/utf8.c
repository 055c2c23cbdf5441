/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

size_t af_utf8_sequence(const uint8_t *s, size_t n) {
        static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
        size_t len = s[0] < 0x80 ? 1 : s[0] < 0xc0 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf8 ? 4 : 0;

        if (len <= 1)
                return len;
        if (n < len)
                return 0;
        uint32_t code = s[0] & (0x7fu >> len);
        for (size_t i = 1; i < len; i++) {
                if ((s[i] & 0xc0) != 0x80)
                        return 0;
                code = code << 6 | (s[i] & 0x3f);
        }
        bool surrogate = code >= 0xd800 && code < 0xe000;
        return code < least[len] || surrogate || code > 0x10ffff ? 0 : len;
}

bool af_utf8_valid(const void *p, size_t n) {
        const uint8_t *s = p;

        for (size_t at = 0; at < n;) {
                size_t len = af_utf8_sequence(s + at, n - at);
                if (len == 0)
                        return false;
                at += len;
        }
        return true;
}

size_t af_utf8_encode(uint32_t code, uint8_t out[4]) {
        size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

        if (len == 1) {
                out[0] = (uint8_t)code;
                return 1;
        }
        for (size_t i = len; i-- > 1; code >>= 6)
                out[i] = (uint8_t)(0x80 | (code & 0x3f));
        out[0] = (uint8_t)((0xf00u >> len) | code);
        return len;
}
