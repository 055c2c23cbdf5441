/* SPDX-License-Identifier: Apache-2.0 */
/* Cast: the pairs of types and the rounding modes that the vector unit has. */
#pragma once

#include "twin/arith.h"

namespace AscendC {
namespace twin {
inline constexpr unsigned R = 1u << 1, F = 1u << 2, C = 1u << 3, A = 1u << 4, Z = 1u << 5, N = 1u << 0, O = 1u << 6,
                          RFCAZ = R | F | C | A | Z;

/* Modes of a pair, bit by bit of RoundMode; 0: no such Cast. */
template <class D, class S> inline constexpr unsigned cast_modes = 0;
template <> inline constexpr unsigned cast_modes<half, int8_t> = N;
template <> inline constexpr unsigned cast_modes<half, uint8_t> = N;
template <> inline constexpr unsigned cast_modes<int8_t, half> = RFCAZ | N;
template <> inline constexpr unsigned cast_modes<uint8_t, half> = RFCAZ | N;
template <> inline constexpr unsigned cast_modes<int16_t, half> = RFCAZ;
template <> inline constexpr unsigned cast_modes<int32_t, half> = RFCAZ;
template <> inline constexpr unsigned cast_modes<float, half> = N;
template <> inline constexpr unsigned cast_modes<half, int16_t> = RFCAZ | N;
template <> inline constexpr unsigned cast_modes<float, int16_t> = N;
template <> inline constexpr unsigned cast_modes<float, int32_t> = RFCAZ | N;
template <> inline constexpr unsigned cast_modes<int16_t, int32_t> = N;
template <> inline constexpr unsigned cast_modes<int64_t, int32_t> = N;
template <> inline constexpr unsigned cast_modes<int32_t, int64_t> = N;
template <> inline constexpr unsigned cast_modes<float, int64_t> = RFCAZ;
template <> inline constexpr unsigned cast_modes<float, bfloat16_t> = N;
template <> inline constexpr unsigned cast_modes<int32_t, bfloat16_t> = RFCAZ;
template <> inline constexpr unsigned cast_modes<half, float> = RFCAZ | O | N;
template <> inline constexpr unsigned cast_modes<bfloat16_t, float> = RFCAZ;
template <> inline constexpr unsigned cast_modes<int16_t, float> = RFCAZ;
template <> inline constexpr unsigned cast_modes<int32_t, float> = RFCAZ;
template <> inline constexpr unsigned cast_modes<int64_t, float> = RFCAZ;
template <> inline constexpr unsigned cast_modes<float, float> = RFCAZ;

/* Rounded towards zero, the last bit set where anything was cut off. */
AF_TWIN_INLINE uint16_t f16_odd(float x) {
        uint16_t t = af_f16_from_f32_mode(x, AF_ROUND_TRUNC);
        return static_cast<uint16_t>(t | ((x == x) & (af_f16_to_f32(t) != x)));
}

#define AF_TWIN_CAST(D, S, ds, ss, in, out)                                                                                                \
        template <RoundMode M> AF_TWIN_INLINE D cast_one(S x, D *) {                                                                       \
                constexpr enum af_round m = static_cast<enum af_round>(M);                                                                 \
                return out(af_cast_##ss##_##ds(in, m));                                                                                    \
        }
#define AF_TWIN_SAME(v) (v)
AF_TWIN_CAST(half, int8_t, f16, i8, x, make_half)
AF_TWIN_CAST(half, uint8_t, f16, u8, x, make_half)
AF_TWIN_CAST(half, int16_t, f16, i16, x, make_half)
AF_TWIN_CAST(int8_t, half, i8, f16, x.bits, AF_TWIN_SAME)
AF_TWIN_CAST(uint8_t, half, u8, f16, x.bits, AF_TWIN_SAME)
AF_TWIN_CAST(int16_t, half, i16, f16, x.bits, AF_TWIN_SAME)
AF_TWIN_CAST(int32_t, half, i32, f16, x.bits, AF_TWIN_SAME)
AF_TWIN_CAST(float, half, f32, f16, x.bits, AF_TWIN_SAME)
AF_TWIN_CAST(float, int16_t, f32, i16, x, AF_TWIN_SAME)
AF_TWIN_CAST(float, int32_t, f32, i32, x, AF_TWIN_SAME)
AF_TWIN_CAST(int16_t, int32_t, i16, i32, x, AF_TWIN_SAME)
AF_TWIN_CAST(int64_t, int32_t, i64, i32, x, AF_TWIN_SAME)
AF_TWIN_CAST(int32_t, int64_t, i32, i64, x, AF_TWIN_SAME)
AF_TWIN_CAST(float, int64_t, f32, i64, x, AF_TWIN_SAME)
AF_TWIN_CAST(float, bfloat16_t, f32, bf16, x.bits, AF_TWIN_SAME)
AF_TWIN_CAST(int32_t, bfloat16_t, i32, bf16, x.bits, AF_TWIN_SAME)
AF_TWIN_CAST(bfloat16_t, float, bf16, f32, x, make_bf16)
AF_TWIN_CAST(int16_t, float, i16, f32, x, AF_TWIN_SAME)
AF_TWIN_CAST(int32_t, float, i32, f32, x, AF_TWIN_SAME)
AF_TWIN_CAST(int64_t, float, i64, f32, x, AF_TWIN_SAME)
AF_TWIN_CAST(float, float, f32, f32, x, AF_TWIN_SAME)
#undef AF_TWIN_CAST
#undef AF_TWIN_SAME
template <RoundMode M> AF_TWIN_INLINE half cast_one(float x, half *) {
        if constexpr (M == RoundMode::CAST_ODD)
                return make_half(f16_odd(x));
        else
                return make_half(af_cast_f32_f16(x, static_cast<enum af_round>(M)));
}

template <class D, class S, RoundMode M> AF_TWIN_NOINLINE void loop_cast(D *dst, const S *src, int n) {
        D *d = aligned(dst);
        const S *a = aligned(src);
        AF_TWIN_IVDEP
        for (int i = 0; i < n; i++)
                d[i] = cast_one<M>(a[i], static_cast<D *>(nullptr));
}
template <class D, class S, RoundMode M>
AF_TWIN_NOINLINE void rep_cast(D *d, const S *a, const Mask &m, int rep, const UnaryRepeatParams &p) {
        constexpr int most = sizeof(D) > sizeof(S) ? sizeof(D) : sizeof(S), lanes = REPEAT / most, per = BLOCK / most;
        walk(lanes, p.dstBlkStride == 1 && p.srcBlkStride == 1 ? lanes : per, m, rep, [&](int r, int i, int n) {
                D *x = at(d, r, i, p.dstBlkStride, p.dstRepStride);
                const S *y = at(a, r, i, p.srcBlkStride, p.srcRepStride);
                AF_TWIN_IVDEP
                for (int k = 0; k < n; k++)
                        x[k] = cast_one<M>(y[k], static_cast<D *>(nullptr));
        });
}
template <class D, class S, RoundMode M> AF_TWIN_INLINE void cast_mode(D *d, const S *a, int n) {
        constexpr unsigned modes = cast_modes<D, S>, bit = 1u << static_cast<unsigned>(M);
        if constexpr ((modes & bit) != 0)
                loop_cast<D, S, M>(d, a, n);
        if (saturating<D>())
                saturate(d, n);
}
template <class D, class S, RoundMode M>
AF_TWIN_INLINE void cast_mode(D *d, const S *a, const Mask &m, int rep, const UnaryRepeatParams &p) {
        constexpr unsigned modes = cast_modes<D, S>, bit = 1u << static_cast<unsigned>(M);
        if constexpr ((modes & bit) != 0)
                rep_cast<D, S, M>(d, a, m, rep, p);
        for (int r = 0; saturating<D>() && r < rep; r++)
                rep_saturate(step(d, r * p.dstRepStride), m, p.dstBlkStride);
}
/* The mode is a literal wherever kernels call Cast, so one case stays. */
template <class D, class S, class... X> AF_TWIN_INLINE void cast_any(RoundMode mode, D *d, const S *a, const X &...x) {
        switch (mode) {
        case RoundMode::CAST_NONE:
                return cast_mode<D, S, RoundMode::CAST_NONE>(d, a, x...);
        case RoundMode::CAST_RINT:
                return cast_mode<D, S, RoundMode::CAST_RINT>(d, a, x...);
        case RoundMode::CAST_FLOOR:
                return cast_mode<D, S, RoundMode::CAST_FLOOR>(d, a, x...);
        case RoundMode::CAST_CEIL:
                return cast_mode<D, S, RoundMode::CAST_CEIL>(d, a, x...);
        case RoundMode::CAST_ROUND:
                return cast_mode<D, S, RoundMode::CAST_ROUND>(d, a, x...);
        case RoundMode::CAST_TRUNC:
                return cast_mode<D, S, RoundMode::CAST_TRUNC>(d, a, x...);
        case RoundMode::CAST_ODD:
                return cast_mode<D, S, RoundMode::CAST_ODD>(d, a, x...);
        }
}
} // namespace twin

template <typename T, typename U>
AF_TWIN_INLINE void Cast(const LocalTensor<T> &dst, const LocalTensor<U> &src, const RoundMode &roundMode, const uint32_t count) {
        static_assert(twin::cast_modes<T, U> != 0, "Cast: no such pair of data types");
        AF_CHK(chk::Call("Cast").cast_mode(twin::cast_modes<T, U>, roundMode).out(dst).in("src", src).count(static_cast<int32_t>(count)));
        twin::cast_any(roundMode, dst.p_, src.p_, static_cast<int>(count));
}
template <typename T, typename U, bool isSetMask = true>
AF_TWIN_INLINE void Cast(const LocalTensor<T> &dst, const LocalTensor<U> &src, const RoundMode &roundMode, const uint64_t mask,
                         const uint8_t repeatTime, const UnaryRepeatParams &p) {
        static_assert(twin::cast_modes<T, U> != 0, "Cast: no such pair of data types");
        twin::Mask m = twin::mask_first(mask);
        AF_CHK(chk::Call("Cast")
                       .cast_mode(twin::cast_modes<T, U>, roundMode)
                       .out(dst, p.dstBlkStride, p.dstRepStride)
                       .in("src", src, p.srcBlkStride, p.srcRepStride)
                       .repeat(m, repeatTime));
        twin::cast_any(roundMode, dst.p_, src.p_, m, static_cast<int>(repeatTime), p);
}
template <typename T, typename U, bool isSetMask = true>
AF_TWIN_INLINE void Cast(const LocalTensor<T> &dst, const LocalTensor<U> &src, const RoundMode &roundMode, const uint64_t mask[],
                         const uint8_t repeatTime, const UnaryRepeatParams &p) {
        static_assert(twin::cast_modes<T, U> != 0, "Cast: no such pair of data types");
        twin::Mask m = twin::mask_bits(mask, static_cast<int>(twin::REPEAT / (sizeof(T) > sizeof(U) ? sizeof(T) : sizeof(U))));
        AF_CHK(chk::Call("Cast")
                       .cast_mode(twin::cast_modes<T, U>, roundMode)
                       .out(dst, p.dstBlkStride, p.dstRepStride)
                       .in("src", src, p.srcBlkStride, p.srcRepStride)
                       .repeat(m, repeatTime));
        twin::cast_any(roundMode, dst.p_, src.p_, m, static_cast<int>(repeatTime), p);
}
} // namespace AscendC
