/* SPDX-License-Identifier: Apache-2.0 */
/* Words, element types, enumerations and parameter structs of Ascend C, as kernels name them. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "numeric/prim.h"

#ifndef AF_TWIN_CHECKED
#define AF_TWIN_CHECKED 0
#endif

#define __aicore__
#define __global__ __attribute__((noinline)) /* one copy: the launcher calls it */
#define __vector__
#define __cube__
#define __mix__(...)
#define __schedmode__(...)
#define __gm__
#define __ubuf__
#define __NPU_ARCH__ 2201
#define GM_ADDR      __gm__ uint8_t *

#define KERNEL_TASK_TYPE_DEFAULT(type)                                                                                                     \
        do {                                                                                                                               \
                (void)(type);                                                                                                              \
        } while (0)
enum KernelMetaType {
        KERNEL_TYPE_AIV_ONLY,
        KERNEL_TYPE_AIC_ONLY,
        KERNEL_TYPE_MIX_AIV_1_0,
        KERNEL_TYPE_MIX_AIC_1_0,
        KERNEL_TYPE_MIX_AIC_1_1,
        KERNEL_TYPE_MIX_AIC_1_2
};

#if defined(__clang__)
#define AF_TWIN_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#define AF_TWIN_ROLLED
#else
#define AF_TWIN_IVDEP  _Pragma("GCC ivdep")
#define AF_TWIN_ROLLED _Pragma("GCC unroll 1") /* short loops: vectorised instead of unrolled into scalars */
#endif
#define AF_TWIN_NOINLINE __attribute__((noinline))
/* -DAF_TWIN_OUTLINE=1: each call is one function per object and type, for tests that compile kernels by the thousand without optimisation.
 */
#ifdef AF_TWIN_OUTLINE
#define AF_TWIN_INLINE inline
#else
#define AF_TWIN_INLINE inline __attribute__((always_inline))
#endif

namespace AscendC::twin {
template <bool C, class A, class B> struct pick { using type = A; };
template <class A, class B> struct pick<false, A, B> { using type = B; };
template <class T, class U> inline constexpr bool same = false;
template <class T> inline constexpr bool same<T, T> = true;
template <class T, class... U> inline constexpr bool one_of = (same<T, U> || ...);
template <class T>
inline constexpr bool arithmetic = one_of<T, bool, char, signed char, unsigned char, short, unsigned short, int, unsigned, long,
                                          unsigned long, long long, unsigned long long, float, double>;
template <bool C, class T = void> struct only_if {};
template <class T> struct only_if<true, T> { using type = T; };
} // namespace AscendC::twin

/* float16: bits; numbers convert to it rounded to nearest even, it converts to float exactly. */
struct half {
        uint16_t bits;
        half() = default;
        template <class N, class = typename AscendC::twin::only_if<AscendC::twin::arithmetic<N>>::type>
        AF_TWIN_INLINE half(N n) : bits(af_f16_from_f32(static_cast<float>(n))) {}
        AF_TWIN_INLINE operator float() const { return af_f16_to_f32(bits); }
};
struct bfloat16_t {
        uint16_t bits;
        bfloat16_t() = default;
        template <class N, class = typename AscendC::twin::only_if<AscendC::twin::arithmetic<N>>::type>
        AF_TWIN_INLINE bfloat16_t(N n) : bits(af_bf16_from_f32(static_cast<float>(n))) {}
        AF_TWIN_INLINE operator float() const { return af_bf16_to_f32(bits); }
};

enum pipe_t : uint32_t { PIPE_S, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_ALL };
enum event_t : uint32_t { EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };

namespace AscendC {
using TEventID = int8_t;

enum class TPosition : uint8_t { GM, A1, A2, B1, B2, C1, C2, CO1, CO2, VECIN, VECOUT, VECCALC, LCM, SPM, SHM, TSCM, MAX };
using QuePosition = TPosition;

/* Those among the vector core's pipes. */
enum class HardEvent : uint8_t { MTE2_V, V_MTE2, MTE3_V, V_MTE3, V_V, MTE3_MTE2, MTE2_MTE3, S_V, V_S, S_MTE2, MTE2_S, S_MTE3, MTE3_S, MAX };

enum class RoundMode { CAST_NONE = 0, CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND, CAST_TRUNC, CAST_ODD };
enum class CMPMODE { LT = 0, GT, EQ, LE, GE, NE };
enum class SELMODE { VSEL_CMPMASK_SPR = 0, VSEL_TENSOR_SCALAR_MODE, VSEL_TENSOR_TENSOR_MODE };
enum class ReduceOrder { ORDER_VALUE_INDEX = 0, ORDER_INDEX_VALUE, ORDER_ONLY_VALUE, ORDER_ONLY_INDEX };
enum class SaturationMode : uint8_t { FLOAT, FLOAT8, INT, CAST };

struct UnaryRepeatParams {
        UnaryRepeatParams() {}
        UnaryRepeatParams(const uint16_t db, const uint16_t sb, const uint8_t dr, const uint8_t sr)
            : dstBlkStride(db), srcBlkStride(sb), dstRepStride(dr), srcRepStride(sr) {}
        uint16_t dstBlkStride = 1, srcBlkStride = 1;
        uint8_t dstRepStride = 8, srcRepStride = 8;
};
struct BinaryRepeatParams {
        BinaryRepeatParams() {}
        BinaryRepeatParams(const uint8_t db, const uint8_t ab, const uint8_t bb, const uint8_t dr, const uint8_t ar, const uint8_t br)
            : dstBlkStride(db), src0BlkStride(ab), src1BlkStride(bb), dstRepStride(dr), src0RepStride(ar), src1RepStride(br) {}
        uint8_t dstBlkStride = 1, src0BlkStride = 1, src1BlkStride = 1;
        uint8_t dstRepStride = 8, src0RepStride = 8, src1RepStride = 8;
};
struct CopyRepeatParams {
        CopyRepeatParams() {}
        CopyRepeatParams(const uint16_t ds, const uint16_t ss, uint16_t dr, uint16_t sr)
            : dstStride(ds), srcStride(ss), dstRepeatSize(dr), srcRepeatSize(sr) {}
        uint16_t dstStride = 0, srcStride = 0, dstRepeatSize = 8, srcRepeatSize = 8;
};
struct BrcbRepeatParams {
        BrcbRepeatParams() {}
        BrcbRepeatParams(const uint16_t db, const uint16_t dr) : dstRepStride(dr), dstBlkStride(db) {}
        uint16_t dstRepStride = 8, dstBlkStride = 1;
};
struct GatherMaskParams {
        GatherMaskParams() {}
        GatherMaskParams(const uint8_t sb, const uint16_t rep, const uint16_t sr, const uint8_t mr)
            : src0BlockStride(sb), repeatTimes(rep), src0RepeatStride(sr), src1RepeatStride(mr) {}
        uint8_t src0BlockStride = 1;
        uint16_t repeatTimes = 0, src0RepeatStride = 8;
        uint8_t src1RepeatStride = 8;
};
struct DataCopyParams {
        DataCopyParams() {}
        DataCopyParams(const uint16_t n, const uint16_t len, const uint16_t ss, const uint16_t ds)
            : blockCount(n), blockLen(len), srcStride(ss), dstStride(ds) {}
        uint16_t blockCount = 1, blockLen = 0, srcStride = 0, dstStride = 0;
};
struct DataCopyExtParams {
        DataCopyExtParams() {}
        DataCopyExtParams(const uint16_t n, const uint32_t len, const uint32_t ss, const uint32_t ds, const uint32_t r)
            : blockCount(n), blockLen(len), srcStride(ss), dstStride(ds), rsv(r) {}
        uint16_t blockCount = 1;
        uint32_t blockLen = 0, srcStride = 0, dstStride = 0, rsv = 0;
};
struct DataCopyPadParams {
        DataCopyPadParams() {}
        DataCopyPadParams(const bool pad, const uint8_t left, const uint8_t right, const uint64_t v)
            : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(v) {}
        bool isPad = false;
        uint8_t leftPadding = 0, rightPadding = 0;
        uint64_t paddingValue = 0;
};
template <typename T> struct DataCopyPadExtParams {
        DataCopyPadExtParams() {}
        DataCopyPadExtParams(const bool pad, const uint8_t left, const uint8_t right, T v)
            : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(v) {}
        bool isPad = false;
        uint8_t leftPadding = 0, rightPadding = 0;
        T paddingValue = 0;
};
} // namespace AscendC
