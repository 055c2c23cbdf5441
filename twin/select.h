/* SPDX-License-Identifier: Apache-2.0 */
/* Compare into bits (least significant first) and select by bits. */
#pragma once

#include "twin/arith.h"

namespace AscendC {
namespace twin {
template <CMPMODE M> struct OpCompare {
        static AF_TWIN_INLINE uint8_t f(float a, float b) {
                switch (M) {
                case CMPMODE::LT:
                        return af_f32_lt(a, b);
                case CMPMODE::GT:
                        return af_f32_gt(a, b);
                case CMPMODE::EQ:
                        return af_f32_eq(a, b);
                case CMPMODE::LE:
                        return af_f32_le(a, b);
                case CMPMODE::GE:
                        return af_f32_ge(a, b);
                case CMPMODE::NE:
                        return af_f32_ne(a, b);
                }
                return 0;
        }
        static AF_TWIN_INLINE uint8_t f(half a, half b) {
                switch (M) {
                case CMPMODE::LT:
                        return af_f16_lt(a.bits, b.bits);
                case CMPMODE::GT:
                        return af_f16_gt(a.bits, b.bits);
                case CMPMODE::EQ:
                        return af_f16_eq(a.bits, b.bits);
                case CMPMODE::LE:
                        return af_f16_le(a.bits, b.bits);
                case CMPMODE::GE:
                        return af_f16_ge(a.bits, b.bits);
                case CMPMODE::NE:
                        return af_f16_ne(a.bits, b.bits);
                }
                return 0;
        }
        static AF_TWIN_INLINE uint8_t f(int32_t a, int32_t b) { return af_i32_eq(a, b); } /* EQ only */
};

/* n bytes of 0 or 1, n a multiple of 8, into bits. */
AF_TWIN_INLINE void pack_bits(uint8_t *dst, const uint8_t *truth, int n) {
        for (int i = 0; i < n; i += 8) {
                uint64_t w;
                memcpy(&w, truth + i, 8);
                dst[i / 8] = static_cast<uint8_t>(w * 0x0102040810204080ull >> 56);
        }
}
AF_TWIN_INLINE void unpack_bits(uint8_t *truth, const uint8_t *src, int n) {
        for (int i = 0; i < n; i += 8) {
                uint64_t w = src[i / 8] * 0x0101010101010101ull & 0x8040201008040201ull;
                w = ((w + 0x7f7f7f7f7f7f7f7full) | w) >> 7 & 0x0101010101010101ull;
                memcpy(truth + i, &w, 8);
        }
}
inline constexpr int CHUNK = 1024; /* elements whose truth values lie on the stack at a time */

template <CMPMODE M, class T, bool Scalar> AF_TWIN_NOINLINE void loop_compare(uint8_t *d, const T *a, const T *b, T s, int n) {
        alignas(64) uint8_t truth[CHUNK];
        for (int at = 0; at < n; at += CHUNK) {
                int m = n - at < CHUNK ? n - at : CHUNK;
                AF_TWIN_IVDEP
                for (int i = 0; i < m; i++)
                        truth[i] = OpCompare<M>::f(a[at + i], Scalar ? s : b[at + i]);
                for (int i = m; i % 8; i++)
                        truth[i] = 0;
                pack_bits(d + at / 8, truth, (m + 7) / 8 * 8);
        }
}
/* Whole repeats: each gives a full row of bits, the mask plays no part. */
template <CMPMODE M, class T, bool Scalar>
AF_TWIN_NOINLINE void rep_compare(uint8_t *d, const T *a, const T *b, T s, int rep, int ab, int bb, int ar, int br) {
        constexpr int lanes = REPEAT / sizeof(T);
        uint8_t truth[lanes];
        for (int r = 0; r < rep; r++) {
                for (int i = 0; i < lanes; i++)
                        truth[i] = OpCompare<M>::f(*at(a, r, i, ab, ar), Scalar ? s : *at(b, r, i, bb, br));
                pack_bits(d + r * (lanes / 8), truth, lanes);
        }
}
template <CMPMODE M, class T, bool Scalar, class... X> AF_TWIN_INLINE void compare_mode(const X &...x) {
        if constexpr (!same<T, int32_t> || M == CMPMODE::EQ) {
                if constexpr (sizeof...(X) == 5)
                        loop_compare<M, T, Scalar>(x...);
                else
                        rep_compare<M, T, Scalar>(x...);
        }
}
template <class T, bool Scalar, class... X> AF_TWIN_INLINE void compare_any(CMPMODE mode, const X &...x) {
        switch (mode) {
        case CMPMODE::LT:
                return compare_mode<CMPMODE::LT, T, Scalar>(x...);
        case CMPMODE::GT:
                return compare_mode<CMPMODE::GT, T, Scalar>(x...);
        case CMPMODE::EQ:
                return compare_mode<CMPMODE::EQ, T, Scalar>(x...);
        case CMPMODE::LE:
                return compare_mode<CMPMODE::LE, T, Scalar>(x...);
        case CMPMODE::GE:
                return compare_mode<CMPMODE::GE, T, Scalar>(x...);
        case CMPMODE::NE:
                return compare_mode<CMPMODE::NE, T, Scalar>(x...);
        }
}
template <class T, class U> inline constexpr bool compares = one_of<T, half, float, int32_t> &&one_of<U, uint8_t, int8_t>;

/* The same size as an unsigned integer: Select moves bits. */
template <class T> using Bits = typename pick<sizeof(T) == 2, uint16_t, uint32_t>::type;
template <class W> AF_TWIN_INLINE W pick_bits(uint8_t m, W a, W b) {
        if constexpr (sizeof(W) == 2)
                return af_u16_select(m, a, b);
        else
                return af_u32_select(m, a, b);
}
template <class W, bool Scalar> AF_TWIN_NOINLINE void loop_select(W *d, const uint8_t *mask, const W *a, const W *b, W s, int n) {
        alignas(64) uint8_t truth[CHUNK];
        for (int at = 0; at < n; at += CHUNK) {
                int m = n - at < CHUNK ? n - at : CHUNK;
                unpack_bits(truth, mask + at / 8, (m + 7) / 8 * 8);
                AF_TWIN_IVDEP
                for (int i = 0; i < m; i++)
                        d[at + i] = pick_bits<W>(truth[i], a[at + i], Scalar ? s : b[at + i]);
        }
}
/* step: bytes of mask per repeat; 0 for the compare register, which every repeat uses again. */
template <class W, bool Scalar>
AF_TWIN_NOINLINE void rep_select(W *d, const uint8_t *mask, int step, const W *a, const W *b, W s, const Mask &m, int rep,
                                 const BinaryRepeatParams &p) {
        constexpr int lanes = REPEAT / sizeof(W);
        for (int r = 0; r < rep; r++)
                for (int i = 0; i < lanes; i++)
                        if (mask_has(m, i))
                                *at(d, r, i, p.dstBlkStride, p.dstRepStride) =
                                        pick_bits<W>(mask[r * step + i / 8] >> (i % 8) & 1, *at(a, r, i, p.src0BlkStride, p.src0RepStride),
                                                     Scalar ? s : *at(b, r, i, p.src1BlkStride, p.src1RepStride));
}
template <class T> AF_TWIN_INLINE Bits<T> *as_bits(T *p) {
        return reinterpret_cast<Bits<T> *>(p);
}
template <class T> AF_TWIN_INLINE Bits<T> bits_of(T v) {
        Bits<T> b;
        memcpy(&b, &v, sizeof(b));
        return b;
}
template <class U> AF_TWIN_INLINE const uint8_t *mask_bytes(const LocalTensor<U> &m) {
        return reinterpret_cast<const uint8_t *>(m.p_);
}
template <class T, class U> inline constexpr bool selects = one_of<T, half, float> &&one_of<U, uint8_t, uint16_t, uint32_t, uint64_t>;
} // namespace twin

/* count * sizeof(T) a multiple of 256 bytes; count / 8 bytes are written. */
template <typename T, typename U>
AF_TWIN_INLINE void Compare(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, CMPMODE cmpMode,
                            uint32_t count) {
        static_assert(twin::compares<T, U>, "Compare: data types");
        AF_CHK(chk::Call("Compare", chk::COMPARE)
                       .cmp_mode(sizeof(T), twin::same<T, int32_t>, cmpMode, count)
                       .bits_out(dst)
                       .in("src0", src0)
                       .in("src1", src1)
                       .count(static_cast<int32_t>(count)));
        twin::compare_any<T, false>(cmpMode, reinterpret_cast<uint8_t *>(dst.p_), src0.p_, src1.p_, T(0), static_cast<int>(count));
}
template <typename T, typename U, bool isSetMask = true>
AF_TWIN_INLINE void Compare(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, CMPMODE cmpMode,
                            const uint64_t mask, uint8_t repeatTime, const BinaryRepeatParams &p) {
        static_assert(twin::compares<T, U>, "Compare: data types");
        AF_CHK(chk::Call("Compare", chk::COMPARE)
                       .cmp_mode(sizeof(T), twin::same<T, int32_t>, cmpMode, 0)
                       .bits_out(dst)
                       .in("src0", src0, p.src0BlkStride, p.src0RepStride)
                       .in("src1", src1, p.src1BlkStride, p.src1RepStride)
                       .repeat(twin::mask_first(twin::REPEAT / sizeof(T)), repeatTime));
        (void)mask;
        twin::compare_any<T, false>(cmpMode, reinterpret_cast<uint8_t *>(dst.p_), src0.p_, src1.p_, T(0), static_cast<int>(repeatTime),
                                    static_cast<int>(p.src0BlkStride), static_cast<int>(p.src1BlkStride), static_cast<int>(p.src0RepStride),
                                    static_cast<int>(p.src1RepStride));
}

#define AF_TWIN_COMPARE_SCALAR(Name)                                                                                                       \
        template <typename T, typename U>                                                                                                  \
        AF_TWIN_INLINE void Name(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const T src1Scalar, CMPMODE cmpMode,               \
                                 uint32_t count) {                                                                                         \
                static_assert(twin::compares<T, U>, #Name ": data types");                                                                 \
                AF_CHK(chk::Call(#Name, chk::COMPARE)                                                                                      \
                               .cmp_mode(sizeof(T), twin::same<T, int32_t>, cmpMode, count)                                                \
                               .bits_out(dst)                                                                                              \
                               .in("src0", src0)                                                                                           \
                               .count(static_cast<int32_t>(count)));                                                                       \
                twin::compare_any<T, true>(cmpMode, reinterpret_cast<uint8_t *>(dst.p_), src0.p_, src0.p_, src1Scalar,                     \
                                           static_cast<int>(count));                                                                       \
        }                                                                                                                                  \
        template <typename T, typename U, bool isSetMask = true>                                                                           \
        AF_TWIN_INLINE void Name(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const T src1Scalar, CMPMODE cmpMode,               \
                                 const uint64_t mask, uint8_t repeatTime, const UnaryRepeatParams &p) {                                    \
                static_assert(twin::compares<T, U>, #Name ": data types");                                                                 \
                AF_CHK(chk::Call(#Name, chk::COMPARE)                                                                                      \
                               .cmp_mode(sizeof(T), twin::same<T, int32_t>, cmpMode, 0)                                                    \
                               .bits_out(dst)                                                                                              \
                               .in("src0", src0, p.srcBlkStride, p.srcRepStride)                                                           \
                               .repeat(twin::mask_first(twin::REPEAT / sizeof(T)), repeatTime));                                           \
                (void)mask;                                                                                                                \
                twin::compare_any<T, true>(cmpMode, reinterpret_cast<uint8_t *>(dst.p_), src0.p_, src0.p_, src1Scalar,                     \
                                           static_cast<int>(repeatTime), static_cast<int>(p.srcBlkStride),                                 \
                                           static_cast<int>(p.srcBlkStride), static_cast<int>(p.srcRepStride),                             \
                                           static_cast<int>(p.srcRepStride));                                                              \
        }
AF_TWIN_COMPARE_SCALAR(CompareScalar)
AF_TWIN_COMPARE_SCALAR(Compares)
#undef AF_TWIN_COMPARE_SCALAR

/* Bit 1 takes src0. Tensor and tensor: VSEL_TENSOR_TENSOR_MODE by mask bits, VSEL_CMPMASK_SPR by the first 16 bytes for every repeat. */
template <typename T, typename U>
AF_TWIN_INLINE void Select(const LocalTensor<T> &dst, const LocalTensor<U> &selMask, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                           SELMODE selMode, uint32_t count) {
        static_assert(twin::selects<T, U>, "Select: data types");
        AF_CHK(chk::Call("Select", chk::SELECT)
                       .select_mode(selMode, false)
                       .out(dst)
                       .in("src0", src0)
                       .in("src1", src1)
                       .bits_in(selMask)
                       .count(static_cast<int32_t>(count)));
        constexpr int lanes = twin::REPEAT / sizeof(T);
        if (selMode != SELMODE::VSEL_CMPMASK_SPR)
                return twin::loop_select<twin::Bits<T>, false>(twin::as_bits(dst.p_), twin::mask_bytes(selMask), twin::as_bits(src0.p_),
                                                               twin::as_bits(src1.p_), 0, static_cast<int>(count));
        for (uint32_t at = 0; at < count; at += lanes)
                twin::loop_select<twin::Bits<T>, false>(twin::as_bits(dst.p_ + at), twin::mask_bytes(selMask), twin::as_bits(src0.p_ + at),
                                                        twin::as_bits(src1.p_ + at), 0,
                                                        static_cast<int>(count - at < static_cast<uint32_t>(lanes) ? count - at : lanes));
}
template <typename T, typename U, bool isSetMask = true>
AF_TWIN_INLINE void Select(const LocalTensor<T> &dst, const LocalTensor<U> &selMask, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                           SELMODE selMode, uint64_t mask, uint8_t repeatTime, const BinaryRepeatParams &p) {
        static_assert(twin::selects<T, U>, "Select: data types");
        twin::Mask m = twin::mask_first(mask);
        AF_CHK(chk::Call("Select", chk::SELECT)
                       .select_mode(selMode, false)
                       .binary(dst, src0, src1, p)
                       .bits_in(selMask)
                       .repeat(m, repeatTime));
        int step = selMode == SELMODE::VSEL_CMPMASK_SPR ? 0 : static_cast<int>(twin::REPEAT / sizeof(T) / 8);
        twin::rep_select<twin::Bits<T>, false>(twin::as_bits(dst.p_), twin::mask_bytes(selMask), step, twin::as_bits(src0.p_),
                                               twin::as_bits(src1.p_), 0, m, repeatTime, p);
}
/* Tensor and scalar: VSEL_TENSOR_SCALAR_MODE. */
template <typename T, typename U>
AF_TWIN_INLINE void Select(const LocalTensor<T> &dst, const LocalTensor<U> &selMask, const LocalTensor<T> &src0, T src1, SELMODE selMode,
                           uint32_t count) {
        static_assert(twin::selects<T, U>, "Select: data types");
        AF_CHK(chk::Call("Select", chk::SELECT)
                       .select_mode(selMode, true)
                       .out(dst)
                       .in("src0", src0)
                       .bits_in(selMask)
                       .count(static_cast<int32_t>(count)));
        (void)selMode;
        twin::loop_select<twin::Bits<T>, true>(twin::as_bits(dst.p_), twin::mask_bytes(selMask), twin::as_bits(src0.p_),
                                               twin::as_bits(src0.p_), twin::bits_of(src1), static_cast<int>(count));
}
template <typename T, typename U, bool isSetMask = true>
AF_TWIN_INLINE void Select(const LocalTensor<T> &dst, const LocalTensor<U> &selMask, const LocalTensor<T> &src0, T src1, SELMODE selMode,
                           uint64_t mask, uint8_t repeatTime, const BinaryRepeatParams &p) {
        static_assert(twin::selects<T, U>, "Select: data types");
        twin::Mask m = twin::mask_first(mask);
        AF_CHK(chk::Call("Select", chk::SELECT)
                       .select_mode(selMode, true)
                       .out(dst, p.dstBlkStride, p.dstRepStride)
                       .in("src0", src0, p.src0BlkStride, p.src0RepStride)
                       .bits_in(selMask)
                       .repeat(m, repeatTime));
        (void)selMode;
        twin::rep_select<twin::Bits<T>, true>(twin::as_bits(dst.p_), twin::mask_bytes(selMask),
                                              static_cast<int>(twin::REPEAT / sizeof(T) / 8), twin::as_bits(src0.p_),
                                              twin::as_bits(src0.p_), twin::bits_of(src1), m, repeatTime, p);
}
} // namespace AscendC
