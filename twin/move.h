/* SPDX-License-Identifier: Apache-2.0 */
/* Filling, spreading, gathering and packing inside the unified buffer. */
#pragma once

#include "twin/copy.h"
#include "twin/select.h"

namespace AscendC {
namespace twin {
template <class W> AF_TWIN_NOINLINE void fill(W *d, W v, int n) {
        for (int i = 0; i < n; i++)
                d[i] = v;
}
template <class W> AF_TWIN_NOINLINE void rep_fill(W *d, W v, const Mask &m, int rep, int blk, int stride) {
        constexpr int lanes = REPEAT / sizeof(W), per = BLOCK / sizeof(W);
        walk(lanes, blk == 1 ? lanes : per, m, rep, [&](int r, int i, int n) {
                W *x = at(d, r, i, blk, stride);
                for (int k = 0; k < n; k++)
                        x[k] = v;
        });
}
/* Element b of each group of eight fills block b. */
template <class W> AF_TWIN_NOINLINE void spread(W *d, const W *s, int rep, int blk, int stride) {
        for (int r = 0; r < rep; r++)
                for (int b = 0; b < 8; b++) {
                        W v = s[r * 8 + b], *x = at(d, r, b * static_cast<int>(BLOCK / sizeof(W)), blk, stride);
                        for (unsigned k = 0; k < BLOCK / sizeof(W); k++)
                                x[k] = v;
                }
}
template <class W> AF_TWIN_NOINLINE void gather(W *d, const W *s, const uint32_t *offsets, uint32_t base, int n) {
        const uint8_t *p = reinterpret_cast<const uint8_t *>(s) + base;
        for (int i = 0; i < n; i++)
                memcpy(d + i, p + offsets[i], sizeof(W));
}
/* Which elements fixed pattern 1..7 keeps. */
AF_TWIN_INLINE bool pattern_keeps(int pattern, unsigned i) {
        return pattern == 1 ? i % 2 == 0 : pattern == 2 ? i % 2 == 1 : pattern == 7 ? true : static_cast<int>(i % 4) == pattern - 3;
}
/* Packs what the pattern (1..7) or the bits of `mask` (pattern 0) keep; returns how many. n: elements per repeat. */
template <class W>
AF_TWIN_NOINLINE uint64_t pack(W *d, const W *s, int pattern, const uint8_t *mask, uint32_t n, int rep, int sb, int sr, int mr) {
        uint64_t k = 0;
        for (int r = 0; r < rep; r++) {
                if ((pattern == 1 || pattern == 2) && sb == 1) {
                        const W *p = at(s, r, 0, 1, sr) + (pattern - 1);
                        uint32_t m = (n + (pattern == 1)) / 2;
                        AF_TWIN_IVDEP
                        for (uint32_t i = 0; i < m; i++)
                                d[k + i] = p[2 * i];
                        k += m;
                        continue;
                }
                for (uint32_t i = 0; i < n; i++) {
                        bool keep = pattern ? pattern_keeps(pattern, i)
                                            : (mask[static_cast<int64_t>(r) * mr * BLOCK + i / 8] >> (i % 8) & 1) != 0;
                        if (keep)
                                d[k++] = *at(s, r, static_cast<int>(i), sb, sr);
                }
        }
        return k;
}
template <class T> AF_TWIN_NOINLINE void count_up(T *d, T first, int n) {
        for (int i = 0; i < n; i++)
                d[i] = OpAdd::f(first, T(i));
}
} // namespace twin

template <typename T> AF_TWIN_INLINE void Duplicate(const LocalTensor<T> &dst, const T &scalarValue, const int32_t &count) {
        static_assert(twin::word<T>, "Duplicate: data type");
        AF_CHK(chk::Call("Duplicate", chk::FILL).out(dst).count(count));
        twin::fill(twin::as_bits(dst.p_), twin::bits_of(scalarValue), count);
}
template <typename T, bool isSetMask = true>
AF_TWIN_INLINE void Duplicate(const LocalTensor<T> &dst, const T &scalarValue, uint64_t mask, const uint8_t repeatTime,
                              const uint16_t dstBlockStride, const uint8_t dstRepeatStride) {
        static_assert(twin::word<T>, "Duplicate: data type");
        twin::Mask m = twin::mask_first(mask);
        AF_CHK(chk::Call("Duplicate", chk::FILL).out(dst, dstBlockStride, dstRepeatStride).repeat(m, repeatTime));
        twin::rep_fill(twin::as_bits(dst.p_), twin::bits_of(scalarValue), m, repeatTime, dstBlockStride, dstRepeatStride);
}
template <typename T, bool isSetMask = true>
AF_TWIN_INLINE void Duplicate(const LocalTensor<T> &dst, const T &scalarValue, uint64_t mask[], const uint8_t repeatTime,
                              const uint16_t dstBlockStride, const uint8_t dstRepeatStride) {
        static_assert(twin::word<T>, "Duplicate: data type");
        twin::Mask m = twin::mask_bits(mask, twin::REPEAT / sizeof(T));
        AF_CHK(chk::Call("Duplicate", chk::FILL).out(dst, dstBlockStride, dstRepeatStride).repeat(m, repeatTime));
        twin::rep_fill(twin::as_bits(dst.p_), twin::bits_of(scalarValue), m, repeatTime, dstBlockStride, dstRepeatStride);
}

/* Eight elements per repeat, each into a 32-byte block. */
template <typename T>
AF_TWIN_INLINE void Brcb(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint8_t repeatTime, const BrcbRepeatParams &p) {
        static_assert(twin::word<T>, "Brcb: data type");
        AF_CHK(chk::Call("Brcb", chk::SPREAD)
                       .out(dst, p.dstBlkStride, p.dstRepStride)
                       .in("src", src)
                       .repeat(twin::mask_first(twin::REPEAT / sizeof(T)), repeatTime));
        twin::spread(twin::as_bits(dst.p_), twin::as_bits(src.p_), repeatTime, p.dstBlkStride, p.dstRepStride);
}

/* dst[i] = the element at byte srcOffset[i] + srcBaseOffset of src. */
template <typename T>
AF_TWIN_INLINE void Gather(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint32_t> &srcOffset,
                           const uint32_t srcBaseOffset, const uint32_t count) {
        static_assert(twin::word<T>, "Gather: data type");
        AF_CHK(chk::Call("Gather", chk::GATHER)
                       .out(dst)
                       .in("srcOffset", srcOffset)
                       .table(src, srcBaseOffset)
                       .count(static_cast<int32_t>(count)));
        twin::gather(twin::as_bits(dst.p_), twin::as_bits(src.p_), srcOffset.p_, srcBaseOffset, static_cast<int>(count));
}
template <typename T>
AF_TWIN_INLINE void Gather(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint32_t> &srcOffset,
                           const uint32_t srcBaseOffset, const uint64_t mask, const uint8_t repeatTime, const uint16_t dstRepStride) {
        static_assert(twin::word<T>, "Gather: data type");
        constexpr int lanes = twin::REPEAT / sizeof(T);
        AF_CHK(chk::Call("Gather", chk::GATHER)
                       .out(dst, 1, dstRepStride)
                       .in("srcOffset", srcOffset, 1, lanes / 8)
                       .table(src, srcBaseOffset)
                       .repeat(twin::mask_first(mask), repeatTime));
        for (int r = 0; r < repeatTime; r++)
                twin::gather(twin::at(twin::as_bits(dst.p_), r, 0, 1, dstRepStride), twin::as_bits(src.p_), srcOffset.p_ + r * lanes,
                             srcBaseOffset, static_cast<int>(mask));
}

/* Keeps what a fixed pattern picks (1: even, 2: odd, 3..6: one in four, 7: all). reduceMode: mask elements per repeat, else whole repeats.
 */
template <typename T>
AF_TWIN_INLINE void GatherMask(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const uint8_t src1Pattern, const bool reduceMode,
                               const uint32_t mask, const GatherMaskParams &p, uint64_t &rsvdCnt) {
        static_assert(twin::word<T>, "GatherMask: data type");
        uint32_t n = reduceMode ? mask : twin::REPEAT / static_cast<uint32_t>(sizeof(T));
        AF_CHK(chk::Call("GatherMask", chk::PACK)
                       .pattern(src1Pattern, n, &rsvdCnt)
                       .out(dst)
                       .in("src0", src0, p.src0BlockStride, p.src0RepeatStride)
                       .packed(p.repeatTimes));
        rsvdCnt = twin::pack(twin::as_bits(dst.p_), twin::as_bits(src0.p_), src1Pattern, nullptr, n, p.repeatTimes, p.src0BlockStride,
                             p.src0RepeatStride, 0);
}
template <typename T, typename U>
AF_TWIN_INLINE void GatherMask(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<U> &src1Pattern,
                               const bool reduceMode, const uint32_t mask, const GatherMaskParams &p, uint64_t &rsvdCnt) {
        static_assert(twin::word<T> && twin::one_of<U, uint16_t, uint32_t> && sizeof(T) == sizeof(U), "GatherMask: data types");
        uint32_t n = reduceMode ? mask : twin::REPEAT / static_cast<uint32_t>(sizeof(T));
        AF_CHK(chk::Call("GatherMask", chk::PACK)
                       .pattern(0, n, &rsvdCnt)
                       .out(dst)
                       .in("src0", src0, p.src0BlockStride, p.src0RepeatStride)
                       .in("src1Pattern", src1Pattern, 1, p.src1RepeatStride)
                       .packed(p.repeatTimes));
        rsvdCnt = twin::pack(twin::as_bits(dst.p_), twin::as_bits(src0.p_), 0, twin::mask_bytes(src1Pattern), n, p.repeatTimes,
                             p.src0BlockStride, p.src0RepeatStride, p.src1RepeatStride);
}

/* firstValue, firstValue + 1, ... */
template <typename T> AF_TWIN_INLINE void CreateVecIndex(LocalTensor<T> dst, const T &firstValue, uint32_t count) {
        static_assert(twin::one_of<T, int16_t, half, int32_t, float>, "CreateVecIndex: data type");
        AF_CHK(chk::Call("CreateVecIndex", chk::FILL).out(dst).count(static_cast<int32_t>(count)));
        twin::count_up(dst.p_, firstValue, static_cast<int>(count));
}

/* One tile of 16 x 16 two-byte elements. */
template <typename T> AF_TWIN_INLINE void Transpose(const LocalTensor<T> &dst, const LocalTensor<T> &src) {
        static_assert(twin::one_of<T, int16_t, uint16_t, half>, "Transpose: data type");
        AF_CHK(chk::Call("Transpose", chk::TILE).out(dst).in("src", src).count(256));
        uint16_t t[256];
        memcpy(t, src.p_, sizeof(t));
        for (int i = 0; i < 256; i++)
                twin::as_bits(dst.p_)[i] = t[i % 16 * 16 + i / 16];
}
} // namespace AscendC
