/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions inside a repeat and over a tensor. Sums of a repeat are an adjacent-pair tree over its lanes, absent lanes +0; the count
 * form of ReduceSum adds the repeats one after another from +0. Maximum and minimum as Max and Min; an index is that of the first
 * element that is not beaten (a NaN is not).
 */
#pragma once

#include "twin/arith.h"

namespace AscendC {
namespace twin {
template <class T> inline constexpr bool reducible = one_of<T, half, float>;
template <class T> using Index = typename pick<sizeof(T) == 2, uint16_t, uint32_t>::type;

/* v[0] after n lanes (a power of two) are folded in adjacent pairs. */
template <class Op, bool Sat, int N, class T> AF_TWIN_INLINE T tree(T *v) {
        if constexpr (N > 1) {
                AF_TWIN_IVDEP
                for (int i = 0; i < N / 2; i++)
                        v[i] = finish<Sat>(Op::f(v[2 * i], v[2 * i + 1]));
                return tree<Op, Sat, N / 2>(v);
        }
        return v[0];
}
/* The lanes of repeat r, absent ones as `none`. */
template <class T> AF_TWIN_INLINE void lanes_of(T *v, const T *s, const Mask &m, int r, int blk, int rep, T none) {
        constexpr int lanes = REPEAT / sizeof(T);
        if (m.n == lanes && blk == 1) {
                memcpy(v, at(s, r, 0, 1, rep), REPEAT);
                return;
        }
        for (int i = 0; i < lanes; i++)
                v[i] = mask_has(m, i) ? *at(s, r, i, blk, rep) : none;
}
template <class Op, class T> AF_TWIN_INLINE T identity() {
        if constexpr (same<T, half>)
                return make_half(same<Op, OpAdd> ? 0 : same<Op, OpMax> ? 0xfc00 : 0x7c00);
        else
                return af_f32_from_bits(same<Op, OpAdd> ? 0 : same<Op, OpMax> ? 0xff800000u : 0x7f800000u);
}
AF_TWIN_INLINE bool mask_empty(const Mask &m) {
        return m.n == 0 || (m.n < 0 && !(m.bits[0] | m.bits[1]));
}

template <class Op, bool Sat, class T> AF_TWIN_NOINLINE void rep_whole(T *d, const T *s, const Mask &m, int rep, int dr, int sb, int sr) {
        constexpr int lanes = REPEAT / sizeof(T);
        alignas(64) T v[lanes];
        for (int r = 0; r < rep; r++) {
                lanes_of(v, s, m, r, sb, sr, identity<Op, T>());
                d[r * dr] = tree<Op, Sat, lanes>(v);
        }
}
/* One result per 32-byte block; blocks without an active lane are left alone. */
template <class Op, bool Sat, class T> AF_TWIN_NOINLINE void rep_blocks(T *d, const T *s, const Mask &m, int rep, int dr, int sb, int sr) {
        constexpr int lanes = REPEAT / sizeof(T), per = BLOCK / sizeof(T);
        alignas(64) T v[lanes];
        for (int r = 0; r < rep; r++) {
                lanes_of(v, s, m, r, sb, sr, identity<Op, T>());
                for (int b = 0; b < 8; b++) {
                        bool any = false;
                        for (int i = 0; i < per; i++)
                                any |= mask_has(m, b * per + i);
                        if (any)
                                d[r * dr * 8 + b] = tree<Op, Sat, per>(v + b * per);
                }
        }
}
template <class T> AF_TWIN_NOINLINE void rep_pairs(T *d, const T *s, const Mask &m, int rep, int dr, int sb, int sr) {
        constexpr int lanes = REPEAT / sizeof(T);
        alignas(64) T v[lanes];
        for (int r = 0; r < rep; r++) {
                lanes_of(v, s, m, r, sb, sr, identity<OpAdd, T>());
                for (int i = 0; i < lanes / 2; i++)
                        d[r * dr * (lanes / 2) + i] =
                                saturating<T>() ? finish<true>(OpAdd::f(v[2 * i], v[2 * i + 1])) : OpAdd::f(v[2 * i], v[2 * i + 1]);
        }
}

template <class Op, class T> AF_TWIN_INLINE bool beats(T a, T best) {
        float x = wide(a), y = wide(best);
        return (same<Op, OpMax> ? x > y : x < y) | ((x != x) & (y == y));
}
/* First element of repeat r that none beats; -1 where the mask is empty. */
template <class Op, class T> AF_TWIN_INLINE int best_of(const T *s, const Mask &m, int r, int sb, int sr) {
        constexpr int lanes = REPEAT / sizeof(T);
        int k = -1;
        for (int i = 0; i < lanes; i++)
                if (mask_has(m, i) && (k < 0 || beats<Op>(*at(s, r, i, sb, sr), *at(s, r, k, sb, sr))))
                        k = i;
        return k;
}
template <class Op, class T>
AF_TWIN_NOINLINE void rep_extreme(T *d, const T *s, const Mask &m, int rep, int dr, int sb, int sr, ReduceOrder order) {
        if (mask_empty(m))
                return;
        if (order == ReduceOrder::ORDER_ONLY_VALUE)
                return rep_whole<Op, false>(d, s, m, rep, dr, sb, sr);
        for (int r = 0; r < rep; r++) {
                int k = best_of<Op>(s, m, r, sb, sr);
                T v = *at(s, r, k, sb, sr);
                Index<T> index = static_cast<Index<T>>(k);
                if (order == ReduceOrder::ORDER_ONLY_INDEX) {
                        uint32_t wide_index = static_cast<uint32_t>(k);
                        memcpy(reinterpret_cast<uint32_t *>(d) + r * dr, &wide_index, sizeof(wide_index));
                        continue;
                }
                bool value_first = order == ReduceOrder::ORDER_VALUE_INDEX;
                memcpy(d + r * dr * 2 + (value_first ? 0 : 1), &v, sizeof(v));
                memcpy(d + r * dr * 2 + (value_first ? 1 : 0), &index, sizeof(index));
        }
}
template <class T> AF_TWIN_INLINE void whole_sum(T *d, const T *s, const Mask &m, int rep, int dr, int sb, int sr) {
        if (saturating<T>())
                rep_whole<OpAdd, true>(d, s, m, rep, dr, sb, sr);
        else
                rep_whole<OpAdd, false>(d, s, m, rep, dr, sb, sr);
}

template <class T> AF_TWIN_NOINLINE T sum_count(const T *s, int n) {
        constexpr int lanes = REPEAT / sizeof(T);
        T acc = T(0), x;
        for (int at = 0; at < n; at += lanes) {
                whole_sum(&x, s + at, mask_first(static_cast<uint64_t>(n - at < lanes ? n - at : lanes)), 1, 1, 1, 8);
                acc = OpAdd::f(acc, x);
        }
        return acc;
}
/* One sum per repeat into tmp, then those in the same way until one is left. */
template <class T> AF_TWIN_NOINLINE T sum_repeats(T *tmp, const T *s, const Mask &m, int rep, int sr) {
        constexpr int lanes = REPEAT / sizeof(T);
        whole_sum(tmp, s, m, rep, 1, 1, sr);
        for (int n = rep; n > 1; n = (n + lanes - 1) / lanes)
                for (int at = 0; at < n; at += lanes)
                        whole_sum(tmp + at / lanes, tmp + at, mask_first(static_cast<uint64_t>(n - at < lanes ? n - at : lanes)), 1, 1, 1,
                                  8);
        return tmp[0];
}
template <class Op, class T>
AF_TWIN_NOINLINE void extreme_all(T *d, const T *s, const Mask &m, int rep, int sr, int tail, bool with_index) {
        constexpr int lanes = REPEAT / sizeof(T);
        int64_t best = -1;
        T v = T(0);
        for (int r = 0; r < rep + (tail > 0); r++) {
                int k = best_of<Op>(s, r < rep ? m : mask_first(static_cast<uint64_t>(tail)), r, 1, sr);
                if (k < 0)
                        continue;
                T x = *at(s, r, k, 1, sr);
                if (best < 0 || beats<Op>(x, v)) {
                        v = x;
                        best = static_cast<int64_t>(r) * sr * (lanes / 8) + k;
                }
        }
        if (best < 0)
                return;
        Index<T> index = static_cast<Index<T>>(best);
        d[0] = v;
        if (with_index)
                memcpy(d + 1, &index, sizeof(index));
}
} // namespace twin

#define AF_TWIN_WHOLE(Name, CHECK_OUT, DO, EXTRA, ...)                                                                                     \
        template <typename T, bool isSetMask = true>                                                                                       \
        AF_TWIN_INLINE void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const int32_t mask, const int32_t repeatTime,       \
                                 const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride EXTRA) {               \
                static_assert(twin::reducible<T>, #Name ": data type");                                                                    \
                twin::Mask m = twin::mask_first(static_cast<uint64_t>(mask));                                                              \
                AF_CHK(chk::Call(#Name, chk::REDUCE).CHECK_OUT.in("src", src, srcBlkStride, srcRepStride).repeat(m, repeatTime));          \
                DO;                                                                                                                        \
        }                                                                                                                                  \
        template <typename T, bool isSetMask = true>                                                                                       \
        AF_TWIN_INLINE void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint64_t mask[], const int32_t repeatTime,    \
                                 const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride EXTRA) {               \
                static_assert(twin::reducible<T>, #Name ": data type");                                                                    \
                twin::Mask m = twin::mask_bits(mask, twin::REPEAT / sizeof(T));                                                            \
                AF_CHK(chk::Call(#Name, chk::REDUCE).CHECK_OUT.in("src", src, srcBlkStride, srcRepStride).repeat(m, repeatTime));          \
                DO;                                                                                                                        \
        }
/* dstRepStride in elements (pairs where an index goes along). */
AF_TWIN_WHOLE(WholeReduceSum, reduce_out(dst, 1, sizeof(T), dstRepStride),
              twin::whole_sum(dst.p_, src.p_, m, repeatTime, dstRepStride, srcBlkStride, srcRepStride), )
#define AF_TWIN_COMMA_ORDER , ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX
AF_TWIN_WHOLE(WholeReduceMax, extreme_out(dst, order, dstRepStride),
              (twin::rep_extreme<twin::OpMax>(dst.p_, src.p_, m, repeatTime, dstRepStride, srcBlkStride, srcRepStride, order)),
              AF_TWIN_COMMA_ORDER)
AF_TWIN_WHOLE(WholeReduceMin, extreme_out(dst, order, dstRepStride),
              (twin::rep_extreme<twin::OpMin>(dst.p_, src.p_, m, repeatTime, dstRepStride, srcBlkStride, srcRepStride, order)),
              AF_TWIN_COMMA_ORDER)
#undef AF_TWIN_COMMA_ORDER
#undef AF_TWIN_WHOLE

/* One result per block (dstRepStride in 8 elements) or per pair (in half repeats). */
#define AF_TWIN_PARTS(Name, n_out, DO)                                                                                                     \
        template <typename T, bool isSetMask = true>                                                                                       \
        AF_TWIN_INLINE void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const int32_t repeatTime, const int32_t mask,       \
                                 const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride) {                     \
                static_assert(twin::reducible<T>, #Name ": data type");                                                                    \
                twin::Mask m = twin::mask_first(static_cast<uint64_t>(mask));                                                              \
                AF_CHK(chk::Call(#Name, chk::REDUCE)                                                                                       \
                               .reduce_out(dst, n_out, sizeof(T), dstRepStride *(n_out))                                                   \
                               .in("src", src, srcBlkStride, srcRepStride)                                                                 \
                               .repeat(m, repeatTime));                                                                                    \
                DO;                                                                                                                        \
        }                                                                                                                                  \
        template <typename T, bool isSetMask = true>                                                                                       \
        AF_TWIN_INLINE void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const int32_t repeatTime, const uint64_t mask[],    \
                                 const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride) {                     \
                static_assert(twin::reducible<T>, #Name ": data type");                                                                    \
                twin::Mask m = twin::mask_bits(mask, twin::REPEAT / sizeof(T));                                                            \
                AF_CHK(chk::Call(#Name, chk::REDUCE)                                                                                       \
                               .reduce_out(dst, n_out, sizeof(T), dstRepStride *(n_out))                                                   \
                               .in("src", src, srcBlkStride, srcRepStride)                                                                 \
                               .repeat(m, repeatTime));                                                                                    \
                DO;                                                                                                                        \
        }
AF_TWIN_PARTS(BlockReduceSum, 8,
              (twin::saturating<T>()
                       ? twin::rep_blocks<twin::OpAdd, true>(dst.p_, src.p_, m, repeatTime, dstRepStride, srcBlkStride, srcRepStride)
                       : twin::rep_blocks<twin::OpAdd, false>(dst.p_, src.p_, m, repeatTime, dstRepStride, srcBlkStride, srcRepStride)))
AF_TWIN_PARTS(BlockReduceMax, 8,
              (twin::rep_blocks<twin::OpMax, false>(dst.p_, src.p_, m, repeatTime, dstRepStride, srcBlkStride, srcRepStride)))
AF_TWIN_PARTS(BlockReduceMin, 8,
              (twin::rep_blocks<twin::OpMin, false>(dst.p_, src.p_, m, repeatTime, dstRepStride, srcBlkStride, srcRepStride)))
AF_TWIN_PARTS(PairReduceSum, static_cast<int32_t>(twin::REPEAT / sizeof(T) / 2),
              twin::rep_pairs(dst.p_, src.p_, m, repeatTime, dstRepStride, srcBlkStride, srcRepStride))
#undef AF_TWIN_PARTS

template <typename T, bool isSetMask = true>
AF_TWIN_INLINE void ReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &sharedTmpBuffer,
                              const int32_t count) {
        static_assert(twin::reducible<T>, "ReduceSum: data type");
        AF_CHK(chk::Call("ReduceSum", chk::REDUCE).stall().first_out(dst, 1).in("src", src).count(count));
        (void)sharedTmpBuffer;
        dst.p_[0] = twin::sum_count(src.p_, count);
}
template <typename T>
AF_TWIN_INLINE void ReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &sharedTmpBuffer,
                              const int32_t mask, const int32_t repeatTime, const int32_t srcRepStride) {
        static_assert(twin::reducible<T>, "ReduceSum: data type");
        twin::Mask m = twin::mask_first(static_cast<uint64_t>(mask));
        AF_CHK(chk::Call("ReduceSum", chk::REDUCE)
                       .stall()
                       .first_out(dst, 1)
                       .scratch(sharedTmpBuffer, repeatTime)
                       .in("src", src, 1, srcRepStride)
                       .repeat(m, repeatTime));
        dst.p_[0] = twin::sum_repeats(sharedTmpBuffer.p_, src.p_, m, repeatTime, srcRepStride);
}

#define AF_TWIN_EXTREME(Name, Op)                                                                                                          \
        template <typename T>                                                                                                              \
        AF_TWIN_INLINE void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &sharedTmpBuffer,              \
                                 const int32_t count, bool calIndex = 0) {                                                                 \
                static_assert(twin::reducible<T>, #Name ": data type");                                                                    \
                constexpr int lanes = twin::REPEAT / sizeof(T);                                                                            \
                AF_CHK(chk::Call(#Name, chk::REDUCE)                                                                                       \
                               .stall()                                                                                                    \
                               .first_out(dst, calIndex ? 2 : 1)                                                                           \
                               .scratch(sharedTmpBuffer, 2 * ((count + lanes - 1) / lanes))                                                \
                               .in("src", src)                                                                                             \
                               .count(count));                                                                                             \
                (void)sharedTmpBuffer;                                                                                                     \
                twin::extreme_all<twin::Op>(dst.p_, src.p_, twin::mask_first(lanes), count / lanes, 8, count % lanes, calIndex);           \
        }                                                                                                                                  \
        template <typename T>                                                                                                              \
        AF_TWIN_INLINE void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &sharedTmpBuffer,              \
                                 const int32_t mask, const int32_t repeatTime, const int32_t srcRepStride, bool calIndex = 0) {            \
                static_assert(twin::reducible<T>, #Name ": data type");                                                                    \
                twin::Mask m = twin::mask_first(static_cast<uint64_t>(mask));                                                              \
                AF_CHK(chk::Call(#Name, chk::REDUCE)                                                                                       \
                               .stall()                                                                                                    \
                               .first_out(dst, calIndex ? 2 : 1)                                                                           \
                               .scratch(sharedTmpBuffer, 2 * repeatTime)                                                                   \
                               .in("src", src, 1, srcRepStride)                                                                            \
                               .repeat(m, repeatTime));                                                                                    \
                (void)sharedTmpBuffer;                                                                                                     \
                twin::extreme_all<twin::Op>(dst.p_, src.p_, m, repeatTime, srcRepStride, 0, calIndex);                                     \
        }
AF_TWIN_EXTREME(ReduceMax, OpMax)
AF_TWIN_EXTREME(ReduceMin, OpMin)
#undef AF_TWIN_EXTREME
} // namespace AscendC
