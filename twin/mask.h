/* SPDX-License-Identifier: Apache-2.0 */
/* Which elements of a repeat a vector call works on. */
#pragma once

#include "twin/types.h"

namespace AscendC::twin {
/* The first n elements of a repeat (n >= 0), or those whose bit is set (n < 0). */
struct Mask {
        int n;
        uint64_t bits[2];
};

AF_TWIN_INLINE Mask mask_first(uint64_t n) {
        return Mask{static_cast<int>(n), {0, 0}};
}
inline Mask mask_bits(const uint64_t mask[], int lanes) {
        Mask m{-1, {mask[0], lanes > 64 ? mask[1] : 0}};
        int n = 0;
        while (n < lanes && (m.bits[n >> 6] >> (n & 63) & 1))
                n++;
        uint64_t low = n >= 64 ? ~0ull : (1ull << n) - 1, high = n >= 128 ? ~0ull : n > 64 ? (1ull << (n - 64)) - 1 : 0;
        if (m.bits[0] == low && m.bits[1] == high)
                m.n = n;
        return m;
}
AF_TWIN_INLINE bool mask_has(const Mask &m, int i) {
        return m.n >= 0 ? i < m.n : (m.bits[i >> 6] >> (i & 63) & 1) != 0;
}

/* Elements from i on that the mask picks without a gap, at most `most`. */
inline int mask_run(const Mask &m, int i, int most) {
        int n = 0;
        while (n < most && mask_has(m, i + n))
                n++;
        return n;
}
/* Calls f(repeat, first element, elements) for runs that the mask picks and that cross no multiple of `run`. */
template <class F> AF_TWIN_INLINE void walk(int lanes, int run, const Mask &m, int rep, F f) {
        int end = m.n >= 0 ? m.n : lanes;
        for (int r = 0; r < rep; r++)
                for (int i = 0, edge = run; i < end;) {
                        int most = (edge < end ? edge : end) - i, n = m.n >= 0 ? most : mask_run(m, i, most);
                        if (n > 0)
                                f(r, i, n);
                        i += n > 0 ? n : 1;
                        edge += i >= edge ? run : 0;
                }
}
} // namespace AscendC::twin
