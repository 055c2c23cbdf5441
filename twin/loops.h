/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape of a vector call. Count form: n elements from the start of each operand. Repeat form: `rep` times 256 bytes of the widest
 * operand, seen as eight 32-byte blocks; block and repeat strides count 32-byte blocks; a mask picks elements of a repeat.
 * Each loop is one function per call and type, not per place where a kernel calls it: that keeps compiles short.
 */
#pragma once

#include "twin/tensor.h"

namespace AscendC::twin {
template <class T> AF_TWIN_INLINE T *at(T *base, int r, int i, int blk, int rep) {
        constexpr int per = static_cast<int>(BLOCK / sizeof(T));
        return reinterpret_cast<T *>(reinterpret_cast<uintptr_t>(base) +
                                     (static_cast<int64_t>(r) * rep + static_cast<int64_t>(i / per) * blk) * BLOCK) +
               i % per;
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
template <class T> AF_TWIN_INLINE T *aligned(T *p) {
        return static_cast<T *>(__builtin_assume_aligned(p, 32));
}
template <class T> AF_TWIN_NOINLINE void saturate(T *d, int n) {
        AF_TWIN_IVDEP
        for (int i = 0; i < n; i++)
                d[i] = finish<true>(d[i]);
}
template <class T> AF_TWIN_NOINLINE void rep_saturate(T *d, const Mask &m, int blk) {
        walk(REPEAT / sizeof(T), BLOCK / sizeof(T), m, 1, [&](int, int i, int n) {
                T *x = at(d, 0, i, blk, 0);
                for (int k = 0; k < n; k++)
                        x[k] = finish<true>(x[k]);
        });
}
template <class T> AF_TWIN_INLINE T *step(T *p, int blocks) {
        return reinterpret_cast<T *>(reinterpret_cast<uintptr_t>(p) + static_cast<int64_t>(blocks) * BLOCK);
}

template <class Op, class T> AF_TWIN_NOINLINE void loop1(T *dst, const T *src, int n) {
        T *d = aligned(dst);
        const T *a = aligned(src);
        AF_TWIN_IVDEP
        for (int i = 0; i < n; i++)
                d[i] = Op::f(a[i]);
}
template <class Op, class T> AF_TWIN_NOINLINE void loop2(T *dst, const T *src0, const T *src1, int n) {
        T *d = aligned(dst);
        const T *a = aligned(src0), *b = aligned(src1);
        AF_TWIN_IVDEP
        for (int i = 0; i < n; i++)
                d[i] = Op::f(a[i], b[i]);
}
template <class Op, class T> AF_TWIN_NOINLINE void loop1s(T *dst, const T *src, T s, int n) {
        T *d = aligned(dst);
        const T *a = aligned(src);
        AF_TWIN_IVDEP
        for (int i = 0; i < n; i++)
                d[i] = Op::f(a[i], s);
}

/* f(0..n), n mostly the elements of one block. */
template <class F> AF_TWIN_INLINE void apply(int per, int n, F f) {
        if (n == per) {
                AF_TWIN_IVDEP
                AF_TWIN_ROLLED
                for (int k = 0; k < per; k++)
                        f(k);
                return;
        }
        AF_TWIN_IVDEP
        for (int k = 0; k < n; k++)
                f(k);
}

template <class Op, class T> AF_TWIN_NOINLINE void rep1(T *d, const T *a, const Mask &m, int rep, const UnaryRepeatParams &p) {
        constexpr int lanes = REPEAT / sizeof(T), per = BLOCK / sizeof(T);
        walk(lanes, p.dstBlkStride == 1 && p.srcBlkStride == 1 ? lanes : per, m, rep, [&](int r, int i, int n) {
                T *x = at(d, r, i, p.dstBlkStride, p.dstRepStride);
                const T *y = at(a, r, i, p.srcBlkStride, p.srcRepStride);
                apply(per, n, [&](int k) { x[k] = Op::f(y[k]); });
        });
}
template <class Op, class T> AF_TWIN_NOINLINE void rep2(T *d, const T *a, const T *b, const Mask &m, int rep, const BinaryRepeatParams &p) {
        constexpr int lanes = REPEAT / sizeof(T), per = BLOCK / sizeof(T);
        bool flat = p.dstBlkStride == 1 && p.src0BlkStride == 1 && p.src1BlkStride == 1;
        walk(lanes, flat ? lanes : per, m, rep, [&](int r, int i, int n) {
                T *x = at(d, r, i, p.dstBlkStride, p.dstRepStride);
                const T *y = at(a, r, i, p.src0BlkStride, p.src0RepStride), *z = at(b, r, i, p.src1BlkStride, p.src1RepStride);
                apply(per, n, [&](int k) { x[k] = Op::f(y[k], z[k]); });
        });
}
template <class Op, class T> AF_TWIN_NOINLINE void rep1s(T *d, const T *a, T s, const Mask &m, int rep, const UnaryRepeatParams &p) {
        constexpr int lanes = REPEAT / sizeof(T), per = BLOCK / sizeof(T);
        walk(lanes, p.dstBlkStride == 1 && p.srcBlkStride == 1 ? lanes : per, m, rep, [&](int r, int i, int n) {
                T *x = at(d, r, i, p.dstBlkStride, p.dstRepStride);
                const T *y = at(a, r, i, p.srcBlkStride, p.srcRepStride);
                apply(per, n, [&](int k) { x[k] = Op::f(y[k], s); });
        });
}

/* The same with saturation: results are clipped before anything can read them, in repeat form after each repeat. */
template <class Op, class T> AF_TWIN_INLINE void do1(T *d, const T *a, int n) {
        loop1<Op>(d, a, n);
        if (saturating<T>())
                saturate(d, n);
}
template <class Op, class T> AF_TWIN_INLINE void do2(T *d, const T *a, const T *b, int n) {
        loop2<Op>(d, a, b, n);
        if (saturating<T>())
                saturate(d, n);
}
template <class Op, class T> AF_TWIN_INLINE void do1s(T *d, const T *a, T s, int n) {
        loop1s<Op>(d, a, s, n);
        if (saturating<T>())
                saturate(d, n);
}
template <class Op, class T> AF_TWIN_INLINE void do1(T *d, const T *a, const Mask &m, int rep, const UnaryRepeatParams &p) {
        int each = saturating<T>() ? 1 : rep;
        for (int r = 0; r < rep; r += each) {
                rep1<Op>(step(d, r * p.dstRepStride), step(a, r * p.srcRepStride), m, each, p);
                if (saturating<T>())
                        rep_saturate(step(d, r * p.dstRepStride), m, p.dstBlkStride);
        }
}
template <class Op, class T> AF_TWIN_INLINE void do2(T *d, const T *a, const T *b, const Mask &m, int rep, const BinaryRepeatParams &p) {
        int each = saturating<T>() ? 1 : rep;
        for (int r = 0; r < rep; r += each) {
                rep2<Op>(step(d, r * p.dstRepStride), step(a, r * p.src0RepStride), step(b, r * p.src1RepStride), m, each, p);
                if (saturating<T>())
                        rep_saturate(step(d, r * p.dstRepStride), m, p.dstBlkStride);
        }
}
template <class Op, class T> AF_TWIN_INLINE void do1s(T *d, const T *a, T s, const Mask &m, int rep, const UnaryRepeatParams &p) {
        int each = saturating<T>() ? 1 : rep;
        for (int r = 0; r < rep; r += each) {
                rep1s<Op>(step(d, r * p.dstRepStride), step(a, r * p.srcRepStride), s, m, each, p);
                if (saturating<T>())
                        rep_saturate(step(d, r * p.dstRepStride), m, p.dstBlkStride);
        }
}
} // namespace AscendC::twin
