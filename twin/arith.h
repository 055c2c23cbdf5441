/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise calls: one tensor, two tensors, tensor and scalar; shifts and bit logic. */
#pragma once

#include "twin/loops.h"

namespace AscendC {
namespace twin {
/* half computes in float and rounds once. */
#define AF_TWIN_H(expr) make_half(af_f16_from_f32(expr))
#define AF_TWIN_F(x)    af_f16_to_f32((x).bits)

#define AF_TWIN_NUM2(Name, fn)                                                                                                             \
        struct Name {                                                                                                                      \
                static AF_TWIN_INLINE float f(float a, float b) { return af_f32_##fn(a, b); }                                              \
                static AF_TWIN_INLINE half f(half a, half b) { return make_half(af_f16_##fn(a.bits, b.bits)); }                            \
                static AF_TWIN_INLINE int32_t f(int32_t a, int32_t b) { return af_i32_##fn(a, b); }                                        \
                static AF_TWIN_INLINE int16_t f(int16_t a, int16_t b) { return af_i16_##fn(a, b); }                                        \
        };
AF_TWIN_NUM2(OpAdd, add)
AF_TWIN_NUM2(OpSub, sub)
AF_TWIN_NUM2(OpMul, mul)
AF_TWIN_NUM2(OpMax, max)
AF_TWIN_NUM2(OpMin, min)
#undef AF_TWIN_NUM2

struct OpDiv {
        static AF_TWIN_INLINE float f(float a, float b) { return af_f32_div(a, b); }
        static AF_TWIN_INLINE half f(half a, half b) { return make_half(af_f16_div(a.bits, b.bits)); }
};
struct OpExp {
        static AF_TWIN_INLINE float f(float a) { return af_f32_exp(a); }
        static AF_TWIN_INLINE half f(half a) { return AF_TWIN_H(af_f32_exp(AF_TWIN_F(a))); }
};
struct OpLn {
        static AF_TWIN_INLINE float f(float a) { return af_f32_ln(a); }
        static AF_TWIN_INLINE half f(half a) { return AF_TWIN_H(af_f32_ln(AF_TWIN_F(a))); }
};
struct OpAbs {
        static AF_TWIN_INLINE float f(float a) { return af_f32_abs(a); }
        static AF_TWIN_INLINE half f(half a) { return make_half(af_f16_abs(a.bits)); }
};
struct OpSqrt {
        static AF_TWIN_INLINE float f(float a) { return af_f32_sqrt(a); }
        static AF_TWIN_INLINE half f(half a) { return AF_TWIN_H(af_f32_sqrt(AF_TWIN_F(a))); }
};
struct OpRsqrt {
        static AF_TWIN_INLINE float f(float a) { return af_f32_div(1.0f, af_f32_sqrt(a)); }
        static AF_TWIN_INLINE half f(half a) { return AF_TWIN_H(af_f32_div(1.0f, af_f32_sqrt(AF_TWIN_F(a)))); }
};
struct OpReciprocal {
        static AF_TWIN_INLINE float f(float a) { return af_f32_div(1.0f, a); }
        static AF_TWIN_INLINE half f(half a) { return AF_TWIN_H(af_f32_div(1.0f, AF_TWIN_F(a))); }
};
struct OpRelu {
        static AF_TWIN_INLINE float f(float a) { return af_f32_relu(a); }
        static AF_TWIN_INLINE half f(half a) { return make_half(af_f16_relu(a.bits)); }
        static AF_TWIN_INLINE int32_t f(int32_t a) { return af_i32_relu(a); }
};
struct OpLeakyRelu {
        static AF_TWIN_INLINE float f(float a, float s) { return af_blend_f32(af_mask32(a >= 0.0f), a, af_f32_mul(a, s)); }
        static AF_TWIN_INLINE half f(half a, half s) { return AF_TWIN_H(f(AF_TWIN_F(a), AF_TWIN_F(s))); }
};
struct OpAnd {
        template <class T> static AF_TWIN_INLINE T f(T a, T b) {
                return static_cast<T>(af_u16_and(static_cast<uint16_t>(a), static_cast<uint16_t>(b)));
        }
};
struct OpOr {
        template <class T> static AF_TWIN_INLINE T f(T a, T b) {
                return static_cast<T>(af_u16_or(static_cast<uint16_t>(a), static_cast<uint16_t>(b)));
        }
};
struct OpNot {
        template <class T> static AF_TWIN_INLINE T f(T a) { return static_cast<T>(af_u16_not(static_cast<uint16_t>(a))); }
};
struct OpShl {
        static AF_TWIN_INLINE uint16_t f(uint16_t a, uint16_t n) { return af_u16_shl(a, n); }
        static AF_TWIN_INLINE int16_t f(int16_t a, int16_t n) { return af_i16_shl(a, static_cast<uint32_t>(n)); }
        static AF_TWIN_INLINE uint32_t f(uint32_t a, uint32_t n) { return af_u32_shl(a, n); }
        static AF_TWIN_INLINE int32_t f(int32_t a, int32_t n) { return af_i32_shl(a, static_cast<uint32_t>(n)); }
};
struct OpShr {
        static AF_TWIN_INLINE uint16_t f(uint16_t a, uint16_t n) { return af_u16_shr(a, n); }
        static AF_TWIN_INLINE int16_t f(int16_t a, int16_t n) { return af_i16_shr(a, static_cast<uint32_t>(n)); }
        static AF_TWIN_INLINE uint32_t f(uint32_t a, uint32_t n) { return af_u32_shr(a, n); }
        static AF_TWIN_INLINE int32_t f(int32_t a, int32_t n) { return af_i32_shr(a, static_cast<uint32_t>(n)); }
};
/* Adds the highest bit that falls out. */
struct OpShrRound {
        template <class T> static AF_TWIN_INLINE T f(T a, T n) {
                int64_t k = static_cast<int64_t>(n) > 40 ? 40 : static_cast<int64_t>(n), v = a;
                return static_cast<T>((v >> k) + (k ? v >> (k - 1) & 1 : 0));
        }
};

/* a * b + c rounded once: the exact product and sum in double, the rest kept as a sticky bit (round to odd). */
AF_TWIN_INLINE float fused(float a, float b, float c) {
        double p = static_cast<double>(a) * b, d = c, s = p + d;
        double bb = s - p, rest = (p - (s - bb)) + (d - bb);
        uint64_t u = af_bits_f64(s);
        bool finite = (u >> 52 & 0x7ff) != 0x7ff, inexact = rest != 0.0, up = (rest > 0.0) == !(u >> 63);
        uint64_t odd = up ? u | 1 : (u & 1) ? u : u - 1;
        return af_f32_one_nan(static_cast<float>(finite && inexact ? af_f64_from_bits(odd) : s));
}
} // namespace twin

#define AF_TWIN_KIND(Name) (twin::one_of<twin::Op##Name, twin::OpAnd, twin::OpOr, twin::OpNot> ? chk::BITS : chk::ELEM)
#define AF_TWIN_UNARY(Name, ...)                                                                                                           \
        template <typename T> AF_TWIN_INLINE void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const int32_t &count) {       \
                static_assert(twin::one_of<T, __VA_ARGS__>, #Name ": data type");                                                          \
                AF_CHK(chk::Call(#Name, AF_TWIN_KIND(Name)).out(dst).in("src", src).count(count));                                         \
                twin::do1<twin::Op##Name>(dst.p_, src.p_, count);                                                                          \
        }                                                                                                                                  \
        template <typename T, bool isSetMask = true>                                                                                       \
        AF_TWIN_INLINE void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint64_t mask, const uint8_t repeatTime,            \
                                 const UnaryRepeatParams &p) {                                                                             \
                static_assert(twin::one_of<T, __VA_ARGS__>, #Name ": data type");                                                          \
                twin::Mask m = twin::mask_first(mask);                                                                                     \
                AF_CHK(chk::Call(#Name, AF_TWIN_KIND(Name))                                                                                \
                               .out(dst, p.dstBlkStride, p.dstRepStride)                                                                   \
                               .in("src", src, p.srcBlkStride, p.srcRepStride)                                                             \
                               .repeat(m, repeatTime));                                                                                    \
                twin::do1<twin::Op##Name>(dst.p_, src.p_, m, repeatTime, p);                                                               \
        }                                                                                                                                  \
        template <typename T, bool isSetMask = true>                                                                                       \
        AF_TWIN_INLINE void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint64_t mask[], const uint8_t repeatTime,          \
                                 const UnaryRepeatParams &p) {                                                                             \
                static_assert(twin::one_of<T, __VA_ARGS__>, #Name ": data type");                                                          \
                twin::Mask m = twin::mask_bits(mask, twin::REPEAT / sizeof(T));                                                            \
                AF_CHK(chk::Call(#Name, AF_TWIN_KIND(Name))                                                                                \
                               .out(dst, p.dstBlkStride, p.dstRepStride)                                                                   \
                               .in("src", src, p.srcBlkStride, p.srcRepStride)                                                             \
                               .repeat(m, repeatTime));                                                                                    \
                twin::do1<twin::Op##Name>(dst.p_, src.p_, m, repeatTime, p);                                                               \
        }
AF_TWIN_UNARY(Exp, half, float)
AF_TWIN_UNARY(Ln, half, float)
AF_TWIN_UNARY(Abs, half, float)
AF_TWIN_UNARY(Sqrt, half, float)
AF_TWIN_UNARY(Rsqrt, half, float)
AF_TWIN_UNARY(Reciprocal, half, float)
AF_TWIN_UNARY(Relu, half, int32_t, float)
AF_TWIN_UNARY(Not, int16_t, uint16_t)
#undef AF_TWIN_UNARY

#define AF_TWIN_BINARY(Name, ...)                                                                                                          \
        template <typename T>                                                                                                              \
        AF_TWIN_INLINE void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,                        \
                                 const int32_t &count) {                                                                                   \
                static_assert(twin::one_of<T, __VA_ARGS__>, #Name ": data type");                                                          \
                AF_CHK(chk::Call(#Name, AF_TWIN_KIND(Name)).out(dst).in("src0", src0).in("src1", src1).count(count));                      \
                twin::do2<twin::Op##Name>(dst.p_, src0.p_, src1.p_, count);                                                                \
        }                                                                                                                                  \
        template <typename T, bool isSetMask = true>                                                                                       \
        AF_TWIN_INLINE void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, uint64_t mask,         \
                                 const uint8_t repeatTime, const BinaryRepeatParams &p) {                                                  \
                static_assert(twin::one_of<T, __VA_ARGS__>, #Name ": data type");                                                          \
                twin::Mask m = twin::mask_first(mask);                                                                                     \
                AF_CHK(chk::Call(#Name, AF_TWIN_KIND(Name)).binary(dst, src0, src1, p).repeat(m, repeatTime));                             \
                twin::do2<twin::Op##Name>(dst.p_, src0.p_, src1.p_, m, repeatTime, p);                                                     \
        }                                                                                                                                  \
        template <typename T, bool isSetMask = true>                                                                                       \
        AF_TWIN_INLINE void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, uint64_t mask[],       \
                                 const uint8_t repeatTime, const BinaryRepeatParams &p) {                                                  \
                static_assert(twin::one_of<T, __VA_ARGS__>, #Name ": data type");                                                          \
                twin::Mask m = twin::mask_bits(mask, twin::REPEAT / sizeof(T));                                                            \
                AF_CHK(chk::Call(#Name, AF_TWIN_KIND(Name)).binary(dst, src0, src1, p).repeat(m, repeatTime));                             \
                twin::do2<twin::Op##Name>(dst.p_, src0.p_, src1.p_, m, repeatTime, p);                                                     \
        }
AF_TWIN_BINARY(Add, int16_t, half, int32_t, float)
AF_TWIN_BINARY(Sub, int16_t, half, int32_t, float)
AF_TWIN_BINARY(Mul, int16_t, half, int32_t, float)
AF_TWIN_BINARY(Max, int16_t, half, int32_t, float)
AF_TWIN_BINARY(Min, int16_t, half, int32_t, float)
AF_TWIN_BINARY(Div, half, float)
AF_TWIN_BINARY(And, int16_t, uint16_t)
AF_TWIN_BINARY(Or, int16_t, uint16_t)
#undef AF_TWIN_BINARY

#define AF_TWIN_SCALAR(Name, Op, ...)                                                                                                      \
        template <typename T, bool isSetMask = true>                                                                                       \
        AF_TWIN_INLINE void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalarValue, const int32_t &count) {       \
                static_assert(twin::one_of<T, __VA_ARGS__>, #Name ": data type");                                                          \
                AF_CHK(chk::Call(#Name).out(dst).in("src", src).count(count));                                                             \
                twin::do1s<twin::Op>(dst.p_, src.p_, scalarValue, count);                                                                  \
        }                                                                                                                                  \
        template <typename T, bool isSetMask = true>                                                                                       \
        AF_TWIN_INLINE void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalarValue, uint64_t mask,                \
                                 const uint8_t repeatTime, const UnaryRepeatParams &p) {                                                   \
                static_assert(twin::one_of<T, __VA_ARGS__>, #Name ": data type");                                                          \
                twin::Mask m = twin::mask_first(mask);                                                                                     \
                AF_CHK(chk::Call(#Name)                                                                                                    \
                               .out(dst, p.dstBlkStride, p.dstRepStride)                                                                   \
                               .in("src", src, p.srcBlkStride, p.srcRepStride)                                                             \
                               .repeat(m, repeatTime));                                                                                    \
                twin::do1s<twin::Op>(dst.p_, src.p_, scalarValue, m, repeatTime, p);                                                       \
        }                                                                                                                                  \
        template <typename T, bool isSetMask = true>                                                                                       \
        AF_TWIN_INLINE void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalarValue, uint64_t mask[],              \
                                 const uint8_t repeatTime, const UnaryRepeatParams &p) {                                                   \
                static_assert(twin::one_of<T, __VA_ARGS__>, #Name ": data type");                                                          \
                twin::Mask m = twin::mask_bits(mask, twin::REPEAT / sizeof(T));                                                            \
                AF_CHK(chk::Call(#Name)                                                                                                    \
                               .out(dst, p.dstBlkStride, p.dstRepStride)                                                                   \
                               .in("src", src, p.srcBlkStride, p.srcRepStride)                                                             \
                               .repeat(m, repeatTime));                                                                                    \
                twin::do1s<twin::Op>(dst.p_, src.p_, scalarValue, m, repeatTime, p);                                                       \
        }
AF_TWIN_SCALAR(Adds, OpAdd, int16_t, half, int32_t, float)
AF_TWIN_SCALAR(Muls, OpMul, int16_t, half, int32_t, float)
AF_TWIN_SCALAR(Maxs, OpMax, int16_t, half, int32_t, float)
AF_TWIN_SCALAR(Mins, OpMin, int16_t, half, int32_t, float)
AF_TWIN_SCALAR(LeakyRelu, OpLeakyRelu, half, float)
AF_TWIN_SCALAR(ShiftLeft, OpShl, int16_t, uint16_t, int32_t, uint32_t)
AF_TWIN_SCALAR(ShiftRight, OpShr, int16_t, uint16_t, int32_t, uint32_t)
#undef AF_TWIN_SCALAR

template <typename T, bool isSetMask = true>
AF_TWIN_INLINE void ShiftRight(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalarValue, uint64_t mask,
                               const uint8_t repeatTime, const UnaryRepeatParams &p, bool roundEn) {
        static_assert(twin::one_of<T, int16_t, uint16_t, int32_t, uint32_t>, "ShiftRight: data type");
        twin::Mask m = twin::mask_first(mask);
        AF_CHK(chk::Call("ShiftRight")
                       .out(dst, p.dstBlkStride, p.dstRepStride)
                       .in("src", src, p.srcBlkStride, p.srcRepStride)
                       .repeat(m, repeatTime));
        if (roundEn)
                twin::do1s<twin::OpShrRound>(dst.p_, src.p_, scalarValue, m, repeatTime, p);
        else
                twin::do1s<twin::OpShr>(dst.p_, src.p_, scalarValue, m, repeatTime, p);
}

namespace twin {
/* dst = fused(a, b, c) where one of a, b, c is the old dst; half in, half or float out. */
template <class D> AF_TWIN_INLINE D fused_to(float a, float b, float c) {
        if constexpr (same<D, half>)
                return AF_TWIN_H(fused(a, b, c));
        else
                return fused(a, b, c);
}
template <class T> AF_TWIN_INLINE float wide(T x) {
        if constexpr (same<T, half>)
                return AF_TWIN_F(x);
        else
                return x;
}
template <class D, class S> AF_TWIN_NOINLINE void loop_axpy(D *d, const S *a, float s, int n) {
        AF_TWIN_IVDEP
        for (int i = 0; i < n; i++)
                d[i] = fused_to<D>(wide(a[i]), s, wide(d[i]));
}
template <class D, class S> AF_TWIN_NOINLINE void loop_mul_add(D *d, const S *a, const S *b, int n) {
        AF_TWIN_IVDEP
        for (int i = 0; i < n; i++)
                d[i] = fused_to<D>(wide(a[i]), wide(b[i]), wide(d[i]));
}
template <class T> AF_TWIN_NOINLINE void loop_fused_mul_add(T *d, const T *a, const T *b, int n) {
        AF_TWIN_IVDEP
        for (int i = 0; i < n; i++)
                d[i] = fused_to<T>(wide(a[i]), wide(d[i]), wide(b[i]));
}
template <class D, class S> inline constexpr bool fused_types = (same<D, S> && one_of<D, half, float>) || (same<D, float> && same<S, half>);
} // namespace twin

/* dst += src * scalar. */
template <typename T, typename U>
AF_TWIN_INLINE void Axpy(const LocalTensor<T> &dst, const LocalTensor<U> &src, const U &scalarValue, const int32_t &count) {
        static_assert(twin::fused_types<T, U>, "Axpy: data types");
        AF_CHK(chk::Call("Axpy").inout(dst).in("src", src).count(count));
        twin::loop_axpy(dst.p_, src.p_, twin::wide(scalarValue), count);
        if (twin::saturating<T>())
                twin::saturate(dst.p_, count);
}
/* dst += src0 * src1. */
template <typename T, typename U>
AF_TWIN_INLINE void MulAddDst(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1, const int32_t &count) {
        static_assert(twin::fused_types<T, U>, "MulAddDst: data types");
        AF_CHK(chk::Call("MulAddDst").inout(dst).in("src0", src0).in("src1", src1).count(count));
        twin::loop_mul_add(dst.p_, src0.p_, src1.p_, count);
        if (twin::saturating<T>())
                twin::saturate(dst.p_, count);
}
/* dst = src0 * dst + src1. */
template <typename T>
AF_TWIN_INLINE void FusedMulAdd(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, const int32_t &count) {
        static_assert(twin::one_of<T, half, float>, "FusedMulAdd: data type");
        AF_CHK(chk::Call("FusedMulAdd").inout(dst).in("src0", src0).in("src1", src1).count(count));
        twin::loop_fused_mul_add(dst.p_, src0.p_, src1.p_, count);
        if (twin::saturating<T>())
                twin::saturate(dst.p_, count);
}
} // namespace AscendC
