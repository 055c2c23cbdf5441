/* SPDX-License-Identifier: Apache-2.0 */
/* Rarer forms of calls that the other headers have: repeats of the multiply-adds, mask arrays, the newer names of reductions. */
#pragma once

#include "twin/move.h"
#include "twin/reduce.h"

namespace AscendC {
namespace twin {
template <class T, class U> inline constexpr int lanes_of_both = static_cast<int>(REPEAT / (sizeof(T) > sizeof(U) ? sizeof(T) : sizeof(U)));
enum class Fused { AXPY /* dst + a s */, MUL_ADD /* dst + a b */, FUSED /* a dst + b */ };

template <Fused K, class D, class S>
AF_TWIN_NOINLINE void rep_fused(D *d, const S *a, const S *b, float s, const Mask &m, int rep, const BinaryRepeatParams &p,
                                bool saturate_each) {
        constexpr int lanes = lanes_of_both<D, S>;
        walk(lanes, 1, m, rep, [&](int r, int i, int) {
                D *x = at(d, r, i, p.dstBlkStride, p.dstRepStride), old = *x;
                float u = wide(*at(a, r, i, p.src0BlkStride, p.src0RepStride));
                float v = K == Fused::AXPY ? s : wide(*at(b, r, i, p.src1BlkStride, p.src1RepStride));
                D y = K == Fused::FUSED ? fused_to<D>(u, wide(old), v) : fused_to<D>(u, v, wide(old));
                *x = saturate_each ? finish<true>(y) : y;
        });
}
template <class T, class U>
AF_TWIN_INLINE void axpy(const LocalTensor<T> &dst, const LocalTensor<U> &src, U s, const Mask &m, uint8_t rep,
                         const UnaryRepeatParams &p) {
        static_assert(fused_types<T, U>, "Axpy: data types");
        AF_CHK(chk::Call("Axpy")
                       .out(dst, p.dstBlkStride, p.dstRepStride)
                       .in("dst", dst, p.dstBlkStride, p.dstRepStride)
                       .in("src", src, p.srcBlkStride, p.srcRepStride)
                       .repeat(m, rep));
        BinaryRepeatParams q(static_cast<uint8_t>(p.dstBlkStride), static_cast<uint8_t>(p.srcBlkStride), 0, p.dstRepStride, p.srcRepStride,
                             0);
        rep_fused<Fused::AXPY>(dst.p_, src.p_, src.p_, wide(s), m, rep, q, saturating<T>());
}
template <Fused K, class T, class U>
AF_TWIN_INLINE void mul_add(const char *name, const LocalTensor<T> &dst, const LocalTensor<U> &a, const LocalTensor<U> &b, const Mask &m,
                            uint8_t rep, const BinaryRepeatParams &p) {
        (void)name;
        AF_CHK(chk::Call(name)
                       .out(dst, p.dstBlkStride, p.dstRepStride)
                       .in("dst", dst, p.dstBlkStride, p.dstRepStride)
                       .in("src0", a, p.src0BlkStride, p.src0RepStride)
                       .in("src1", b, p.src1BlkStride, p.src1RepStride)
                       .repeat(m, rep));
        rep_fused<K>(dst.p_, a.p_, b.p_, 0.0f, m, rep, p, saturating<T>());
}
} // namespace twin

template <typename T, typename U, bool isSetMask = true>
AF_TWIN_INLINE void Axpy(const LocalTensor<T> &dst, const LocalTensor<U> &src, const U &scalarValue, uint64_t mask,
                         const uint8_t repeatTime, const UnaryRepeatParams &p) {
        twin::axpy(dst, src, scalarValue, twin::mask_first(mask), repeatTime, p);
}
template <typename T, typename U, bool isSetMask = true>
AF_TWIN_INLINE void Axpy(const LocalTensor<T> &dst, const LocalTensor<U> &src, const U &scalarValue, uint64_t mask[],
                         const uint8_t repeatTime, const UnaryRepeatParams &p) {
        twin::axpy(dst, src, scalarValue, twin::mask_bits(mask, twin::lanes_of_both<T, U>), repeatTime, p);
}
template <typename T, typename U, bool isSetMask = true>
AF_TWIN_INLINE void MulAddDst(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1, uint64_t mask,
                              const uint8_t repeatTime, const BinaryRepeatParams &p) {
        static_assert(twin::fused_types<T, U>, "MulAddDst: data types");
        twin::mul_add<twin::Fused::MUL_ADD>("MulAddDst", dst, src0, src1, twin::mask_first(mask), repeatTime, p);
}
template <typename T, typename U, bool isSetMask = true>
AF_TWIN_INLINE void MulAddDst(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1, const uint64_t mask[],
                              const uint8_t repeatTime, const BinaryRepeatParams &p) {
        static_assert(twin::fused_types<T, U>, "MulAddDst: data types");
        twin::mul_add<twin::Fused::MUL_ADD>("MulAddDst", dst, src0, src1, twin::mask_bits(mask, twin::lanes_of_both<T, U>), repeatTime, p);
}
template <typename T, bool isSetMask = true>
AF_TWIN_INLINE void FusedMulAdd(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, uint64_t mask,
                                const uint8_t repeatTime, const BinaryRepeatParams &p) {
        static_assert(twin::one_of<T, half, float>, "FusedMulAdd: data type");
        twin::mul_add<twin::Fused::FUSED>("FusedMulAdd", dst, src0, src1, twin::mask_first(mask), repeatTime, p);
}
template <typename T, bool isSetMask = true>
AF_TWIN_INLINE void FusedMulAdd(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, uint64_t mask[],
                                const uint8_t repeatTime, const BinaryRepeatParams &p) {
        static_assert(twin::one_of<T, half, float>, "FusedMulAdd: data type");
        twin::mul_add<twin::Fused::FUSED>("FusedMulAdd", dst, src0, src1, twin::mask_bits(mask, twin::lanes_of_both<T, T>), repeatTime, p);
}

/* Compares write whole repeats: a mask array plays no part either. */
template <typename T, typename U, bool isSetMask = true>
AF_TWIN_INLINE void Compare(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, CMPMODE cmpMode,
                            const uint64_t mask[], uint8_t repeatTime, const BinaryRepeatParams &p) {
        Compare(dst, src0, src1, cmpMode, mask[0], repeatTime, p);
}
template <typename T, typename U, bool isSetMask = true>
AF_TWIN_INLINE void CompareScalar(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const T src1Scalar, CMPMODE cmpMode,
                                  const uint64_t mask[], uint8_t repeatTime, const UnaryRepeatParams &p) {
        CompareScalar(dst, src0, src1Scalar, cmpMode, mask[0], repeatTime, p);
}
template <typename T, typename U, bool isSetMask = true>
AF_TWIN_INLINE void Compares(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const T src1Scalar, CMPMODE cmpMode,
                             const uint64_t mask[], uint8_t repeatTime, const UnaryRepeatParams &p) {
        Compares(dst, src0, src1Scalar, cmpMode, mask[0], repeatTime, p);
}
template <typename T, typename U, bool isSetMask = true>
AF_TWIN_INLINE void Select(const LocalTensor<T> &dst, const LocalTensor<U> &selMask, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                           SELMODE selMode, uint64_t mask[], uint8_t repeatTime, const BinaryRepeatParams &p) {
        static_assert(twin::selects<T, U>, "Select: data types");
        twin::Mask m = twin::mask_bits(mask, twin::lanes_of_both<T, T>);
        AF_CHK(chk::Call("Select", chk::SELECT)
                       .select_mode(selMode, false)
                       .binary(dst, src0, src1, p)
                       .bits_in(selMask)
                       .repeat(m, repeatTime));
        int step = selMode == SELMODE::VSEL_CMPMASK_SPR ? 0 : twin::lanes_of_both<T, T> / 8;
        twin::rep_select<twin::Bits<T>, false>(twin::as_bits(dst.p_), twin::mask_bytes(selMask), step, twin::as_bits(src0.p_),
                                               twin::as_bits(src1.p_), 0, m, repeatTime, p);
}
template <typename T, typename U, bool isSetMask = true>
AF_TWIN_INLINE void Select(const LocalTensor<T> &dst, const LocalTensor<U> &selMask, const LocalTensor<T> &src0, T src1, SELMODE selMode,
                           uint64_t mask[], uint8_t repeatTime, const BinaryRepeatParams &p) {
        static_assert(twin::selects<T, U>, "Select: data types");
        twin::Mask m = twin::mask_bits(mask, twin::lanes_of_both<T, T>);
        (void)selMode;
        AF_CHK(chk::Call("Select", chk::SELECT)
                       .select_mode(selMode, true)
                       .out(dst, p.dstBlkStride, p.dstRepStride)
                       .in("src0", src0, p.src0BlkStride, p.src0RepStride)
                       .bits_in(selMask)
                       .repeat(m, repeatTime));
        twin::rep_select<twin::Bits<T>, true>(twin::as_bits(dst.p_), twin::mask_bytes(selMask), twin::lanes_of_both<T, T> / 8,
                                              twin::as_bits(src0.p_), twin::as_bits(src0.p_), twin::bits_of(src1), m, repeatTime, p);
}

/* firstValue + element number, element 0 of the first repeat being 0; strides place the results. */
template <typename T>
AF_TWIN_INLINE void CreateVecIndex(LocalTensor<T> &dst, const T &firstValue, uint64_t mask, uint8_t repeatTime, uint16_t dstBlkStride,
                                   uint8_t dstRepStride) {
        static_assert(twin::one_of<T, int16_t, half, int32_t, float>, "CreateVecIndex: data type");
        constexpr int lanes = twin::lanes_of_both<T, T>;
        twin::Mask m = twin::mask_first(mask);
        AF_CHK(chk::Call("CreateVecIndex", chk::FILL).out(dst, dstBlkStride, dstRepStride).repeat(m, repeatTime));
        twin::walk(lanes, 1, m, repeatTime, [&](int r, int i, int) {
                *twin::at(dst.p_, r, i, dstBlkStride, dstRepStride) = twin::OpAdd::f(firstValue, T(r * lanes + i));
        });
}

/* ---- newer names: ReduceRepeat, ReduceDataBlock, ReducePairElem; the mask comes first ---- */
enum class ReduceType { NONE = -1, SUM = 0, MAX, MIN };

template <ReduceType type, typename T, typename U, bool isSetMask = true, typename M>
AF_TWIN_INLINE void ReduceRepeat(const LocalTensor<T> &dst, const LocalTensor<U> &src, const M mask, const int32_t repeatTime,
                                 const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride,
                                 ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX) {
        static_assert(twin::same<T, U>, "ReduceRepeat: data types");
        if constexpr (type == ReduceType::SUM)
                WholeReduceSum(dst, src, mask, repeatTime, dstRepStride, srcBlkStride, srcRepStride);
        else if constexpr (type == ReduceType::MAX)
                WholeReduceMax(dst, src, mask, repeatTime, dstRepStride, srcBlkStride, srcRepStride, order);
        else
                WholeReduceMin(dst, src, mask, repeatTime, dstRepStride, srcBlkStride, srcRepStride, order);
        (void)order;
}
template <ReduceType type, typename T, typename U, bool isSetMask = true, typename M>
AF_TWIN_INLINE void ReduceDataBlock(const LocalTensor<T> &dst, const LocalTensor<U> &src, const M mask, const int32_t repeatTime,
                                    const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride) {
        static_assert(twin::same<T, U>, "ReduceDataBlock: data types");
        if constexpr (type == ReduceType::SUM)
                BlockReduceSum(dst, src, repeatTime, mask, dstRepStride, srcBlkStride, srcRepStride);
        else if constexpr (type == ReduceType::MAX)
                BlockReduceMax(dst, src, repeatTime, mask, dstRepStride, srcBlkStride, srcRepStride);
        else
                BlockReduceMin(dst, src, repeatTime, mask, dstRepStride, srcBlkStride, srcRepStride);
}
template <ReduceType type, typename T, typename U, bool isSetMask = true, typename M>
AF_TWIN_INLINE void ReducePairElem(const LocalTensor<T> &dst, const LocalTensor<U> &src, const M mask, const int32_t repeatTime,
                                   const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride) {
        static_assert(twin::same<T, U> && type == ReduceType::SUM, "ReducePairElem: data types");
        PairReduceSum(dst, src, repeatTime, mask, dstRepStride, srcBlkStride, srcRepStride);
}
} // namespace AscendC
