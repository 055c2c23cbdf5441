/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape of a vector call. Count form: n elements from the start of each operand. Repeat form: `rep` times 256 bytes of the widest
 * operand, seen as eight 32-byte blocks; block and repeat strides count 32-byte blocks; a mask picks elements of a repeat.
 * Each loop is one function per call and type, not per place where a kernel calls it: that keeps compiles short.
 */
#pragma once

#include "twin/tensor.h"

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

template <class T> AF_TWIN_INLINE T *at(T *base, int r, int i, int blk, int rep) {
        constexpr int per = static_cast<int>(BLOCK / sizeof(T));
        return reinterpret_cast<T *>(reinterpret_cast<uintptr_t>(base) +
                                     (static_cast<int64_t>(r) * rep + static_cast<int64_t>(i / per) * blk) * BLOCK) +
               i % per;
}

/* Calls f(repeat, first element, elements) for runs of at most `run` elements that the mask picks. */
template <class F> AF_TWIN_INLINE void walk(int lanes, int run, const Mask &m, int rep, F f) {
        for (int r = 0; r < rep; r++) {
                if (m.n >= 0) {
                        for (int i = 0; i < m.n; i += run)
                                f(r, i, m.n - i < run ? m.n - i : run);
                } else {
                        for (int i = 0; i < lanes; i++)
                                if (mask_has(m, i))
                                        f(r, i, 1);
                }
        }
}

AF_TWIN_INLINE half make_half(uint16_t bits) {
        half h;
        h.bits = bits;
        return h;
}
AF_TWIN_INLINE bfloat16_t make_bf16(uint16_t bits) {
        bfloat16_t b;
        b.bits = bits;
        return b;
}

/* A result as the vector unit leaves it under the saturation flag. */
template <bool Sat, class T> AF_TWIN_INLINE T finish(T v) {
        if constexpr (Sat && one_of<T, half, bfloat16_t>) {
                constexpr uint32_t inf = same<T, half> ? AF_F16_INF : 0x7f80u;
                uint32_t a = v.bits & 0x7fffu, r = v.bits;
                r = af_blend32(af_mask32(a == inf), r - 1, r);
                v.bits = static_cast<uint16_t>(af_blend32(af_mask32(a > inf), 0, r));
        }
        return v;
}
template <class T> AF_TWIN_INLINE bool saturating() {
        if constexpr (one_of<T, half, bfloat16_t>)
                return block().saturate;
        else
                return false;
}

template <class Op, bool Sat, class T> AF_TWIN_NOINLINE void loop1(T *dst, const T *src, int n) {
        T *d = static_cast<T *>(__builtin_assume_aligned(dst, 32));
        const T *a = static_cast<const T *>(__builtin_assume_aligned(src, 32));
        AF_TWIN_IVDEP
        for (int i = 0; i < n; i++)
                d[i] = finish<Sat>(Op::f(a[i]));
}
template <class Op, bool Sat, class T> AF_TWIN_NOINLINE void loop2(T *dst, const T *src0, const T *src1, int n) {
        T *d = static_cast<T *>(__builtin_assume_aligned(dst, 32));
        const T *a = static_cast<const T *>(__builtin_assume_aligned(src0, 32)),
                *b = static_cast<const T *>(__builtin_assume_aligned(src1, 32));
        AF_TWIN_IVDEP
        for (int i = 0; i < n; i++)
                d[i] = finish<Sat>(Op::f(a[i], b[i]));
}
template <class Op, bool Sat, class T> AF_TWIN_NOINLINE void loop1s(T *dst, const T *src, T s, int n) {
        T *d = static_cast<T *>(__builtin_assume_aligned(dst, 32));
        const T *a = static_cast<const T *>(__builtin_assume_aligned(src, 32));
        AF_TWIN_IVDEP
        for (int i = 0; i < n; i++)
                d[i] = finish<Sat>(Op::f(a[i], s));
}

template <class Op, bool Sat, class T> AF_TWIN_NOINLINE void rep1(T *d, const T *a, const Mask &m, int rep, const UnaryRepeatParams &p) {
        constexpr int lanes = REPEAT / sizeof(T), per = BLOCK / sizeof(T);
        walk(lanes, p.dstBlkStride == 1 && p.srcBlkStride == 1 ? lanes : per, m, rep, [&](int r, int i, int n) {
                T *x = at(d, r, i, p.dstBlkStride, p.dstRepStride);
                const T *y = at(a, r, i, p.srcBlkStride, p.srcRepStride);
                AF_TWIN_IVDEP
                for (int k = 0; k < n; k++)
                        x[k] = finish<Sat>(Op::f(y[k]));
        });
}
template <class Op, bool Sat, class T>
AF_TWIN_NOINLINE void rep2(T *d, const T *a, const T *b, const Mask &m, int rep, const BinaryRepeatParams &p) {
        constexpr int lanes = REPEAT / sizeof(T), per = BLOCK / sizeof(T);
        bool flat = p.dstBlkStride == 1 && p.src0BlkStride == 1 && p.src1BlkStride == 1;
        walk(lanes, flat ? lanes : per, m, rep, [&](int r, int i, int n) {
                T *x = at(d, r, i, p.dstBlkStride, p.dstRepStride);
                const T *y = at(a, r, i, p.src0BlkStride, p.src0RepStride), *z = at(b, r, i, p.src1BlkStride, p.src1RepStride);
                AF_TWIN_IVDEP
                for (int k = 0; k < n; k++)
                        x[k] = finish<Sat>(Op::f(y[k], z[k]));
        });
}
template <class Op, bool Sat, class T>
AF_TWIN_NOINLINE void rep1s(T *d, const T *a, T s, const Mask &m, int rep, const UnaryRepeatParams &p) {
        constexpr int lanes = REPEAT / sizeof(T), per = BLOCK / sizeof(T);
        walk(lanes, p.dstBlkStride == 1 && p.srcBlkStride == 1 ? lanes : per, m, rep, [&](int r, int i, int n) {
                T *x = at(d, r, i, p.dstBlkStride, p.dstRepStride);
                const T *y = at(a, r, i, p.srcBlkStride, p.srcRepStride);
                AF_TWIN_IVDEP
                for (int k = 0; k < n; k++)
                        x[k] = finish<Sat>(Op::f(y[k], s));
        });
}

/* Kinds of calls, with or without saturation. */
template <class Op, class T> AF_TWIN_INLINE void do1(T *d, const T *a, int n) {
        if (saturating<T>())
                loop1<Op, true>(d, a, n);
        else
                loop1<Op, false>(d, a, n);
}
template <class Op, class T> AF_TWIN_INLINE void do2(T *d, const T *a, const T *b, int n) {
        if (saturating<T>())
                loop2<Op, true>(d, a, b, n);
        else
                loop2<Op, false>(d, a, b, n);
}
template <class Op, class T> AF_TWIN_INLINE void do1s(T *d, const T *a, T s, int n) {
        if (saturating<T>())
                loop1s<Op, true>(d, a, s, n);
        else
                loop1s<Op, false>(d, a, s, n);
}
template <class Op, class T> AF_TWIN_INLINE void do1(T *d, const T *a, const Mask &m, int rep, const UnaryRepeatParams &p) {
        if (saturating<T>())
                rep1<Op, true>(d, a, m, rep, p);
        else
                rep1<Op, false>(d, a, m, rep, p);
}
template <class Op, class T> AF_TWIN_INLINE void do2(T *d, const T *a, const T *b, const Mask &m, int rep, const BinaryRepeatParams &p) {
        if (saturating<T>())
                rep2<Op, true>(d, a, b, m, rep, p);
        else
                rep2<Op, false>(d, a, b, m, rep, p);
}
template <class Op, class T> AF_TWIN_INLINE void do1s(T *d, const T *a, T s, const Mask &m, int rep, const UnaryRepeatParams &p) {
        if (saturating<T>())
                rep1s<Op, true>(d, a, s, m, rep, p);
        else
                rep1s<Op, false>(d, a, s, m, rep, p);
}
} // namespace AscendC::twin
