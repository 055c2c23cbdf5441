/* SPDX-License-Identifier: Apache-2.0 */
/* Data movement: GM and the unified buffer, and inside the buffer. */
#pragma once

#include "twin/arith.h"

namespace AscendC {
namespace twin {
/* One DMA: `rows` pieces of `len` bytes; gaps in bytes on either side. */
struct Rows {
        uint32_t rows, len;
        uint64_t src_step, dst_step; /* start to start */
};

AF_TWIN_INLINE void copy_rows(void *dst, const void *src, const Rows &r) {
        uint8_t *d = static_cast<uint8_t *>(dst);
        const uint8_t *s = static_cast<const uint8_t *>(src);
        if (r.src_step == r.len && r.dst_step == r.len) {
                memcpy(d, s, static_cast<size_t>(r.rows) * r.len);
                return;
        }
        for (uint32_t i = 0; i < r.rows; i++)
                memcpy(d + i * r.dst_step, s + i * r.src_step, r.len);
}

template <class T> AF_TWIN_INLINE T atomic_op(Atomic kind, T a, T b) {
        if constexpr (same<T, int8_t>) {
                int r = kind == Atomic::ADD ? a + b : kind == Atomic::MAX ? (a > b ? a : b) : (a < b ? a : b);
                return static_cast<int8_t>(r);
        } else if constexpr (same<T, bfloat16_t>) {
                float x = af_bf16_to_f32(a.bits), y = af_bf16_to_f32(b.bits);
                return make_bf16(af_bf16_from_f32(atomic_op(kind, x, y)));
        } else {
                return kind == Atomic::ADD ? OpAdd::f(a, b) : kind == Atomic::MAX ? OpMax::f(a, b) : OpMin::f(a, b);
        }
}
template <class T> AF_TWIN_NOINLINE void combine_rows(T *dst, const T *src, const Rows &r, Atomic kind) {
        for (uint32_t i = 0; i < r.rows; i++)
                for (uint32_t k = 0; k < r.len / sizeof(T); k++) {
                        T a, b;
                        uint8_t *d = reinterpret_cast<uint8_t *>(dst) + i * r.dst_step + k * sizeof(T);
                        memcpy(&a, d, sizeof(T));
                        memcpy(&b, reinterpret_cast<const uint8_t *>(src) + i * r.src_step + k * sizeof(T), sizeof(T));
                        a = atomic_op(kind, a, b);
                        memcpy(d, &a, sizeof(T));
                }
}
template <class T> AF_TWIN_INLINE void store_rows(T *dst, const T *src, const Rows &r) {
        if constexpr (one_of<T, float, half, bfloat16_t, int32_t, int16_t, int8_t>) {
                if (__builtin_expect(block().atomic != Atomic::NONE, 0)) {
                        combine_rows(dst, src, r, block().atomic);
                        return;
                }
        }
        copy_rows(dst, src, r);
}
AF_TWIN_INLINE uint32_t lines(uint32_t bytes) {
        return (bytes + BLOCK - 1) / BLOCK * BLOCK;
}
/* DataCopyParams: everything in 32-byte blocks. */
AF_TWIN_INLINE Rows block_rows(const DataCopyParams &p) {
        uint32_t len = p.blockLen * BLOCK;
        return Rows{p.blockCount, len, static_cast<uint64_t>(len) + p.srcStride * BLOCK, static_cast<uint64_t>(len) + p.dstStride * BLOCK};
}

/* GM to buffer with padding: each row starts on a block; `pad` fills the elements left and right of it. */
template <class T>
AF_TWIN_INLINE void load_padded(T *dst, const T *src, uint32_t rows, uint32_t len, uint64_t src_gap, uint64_t dst_gap_blocks, uint32_t left,
                                uint32_t right, T pad) {
        uint64_t step = lines(len + (left + right) * static_cast<uint32_t>(sizeof(T))) + dst_gap_blocks * BLOCK;
        copy_rows(dst + left, src, Rows{rows, len, len + src_gap, step});
        if (left + right == 0)
                return;
        for (uint32_t i = 0; i < rows; i++) {
                T *d = reinterpret_cast<T *>(reinterpret_cast<uint8_t *>(dst) + i * step);
                for (uint32_t k = 0; k < left; k++)
                        d[k] = pad;
                for (uint32_t k = 0; k < right; k++)
                        d[left + len / sizeof(T) + k] = pad;
        }
}
template <class T> AF_TWIN_INLINE T pad_value(uint64_t bits) {
        T v;
        memcpy(&v, &bits, sizeof(T));
        return v;
}
template <class T> inline constexpr bool movable = !same<T, bool> && (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);
} // namespace twin

/* count elements; count * sizeof(T) a multiple of 32 bytes (the device rounds down silently). */
template <typename T> AF_TWIN_INLINE void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const uint32_t count) {
        static_assert(twin::movable<T>, "DataCopy: data type");
        twin::Rows r{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0};
        AF_CHK(chk::load("DataCopy", dst, src, r, 0, 0, true));
        memcpy(dst.p_, src.p_, r.len / twin::BLOCK * twin::BLOCK);
}
template <typename T> AF_TWIN_INLINE void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t count) {
        static_assert(twin::movable<T>, "DataCopy: data type");
        twin::Rows r{1, static_cast<uint32_t>(count * sizeof(T)) / twin::BLOCK * twin::BLOCK, 0, 0};
        AF_CHK(chk::store("DataCopy", dst, src, twin::Rows{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0}, true));
        twin::store_rows(dst.p_, src.p_, r);
}
template <typename T> AF_TWIN_INLINE void DataCopy(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t count) {
        static_assert(twin::movable<T>, "DataCopy: data type");
        twin::Rows r{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0};
        AF_CHK(chk::move("DataCopy", dst, src, r));
        memmove(dst.p_, src.p_, r.len / twin::BLOCK * twin::BLOCK);
}
template <typename T> AF_TWIN_INLINE void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const DataCopyParams &p) {
        static_assert(twin::movable<T>, "DataCopy: data type");
        twin::Rows r = twin::block_rows(p);
        AF_CHK(chk::load("DataCopy", dst, src, r, 0, 0, true));
        twin::copy_rows(dst.p_, src.p_, r);
}
template <typename T> AF_TWIN_INLINE void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyParams &p) {
        static_assert(twin::movable<T>, "DataCopy: data type");
        twin::Rows r = twin::block_rows(p);
        AF_CHK(chk::store("DataCopy", dst, src, r, true));
        twin::store_rows(dst.p_, src.p_, r);
}
template <typename T> AF_TWIN_INLINE void DataCopy(const LocalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyParams &p) {
        static_assert(twin::movable<T>, "DataCopy: data type");
        twin::Rows r = twin::block_rows(p);
        AF_CHK(chk::move("DataCopy", dst, src, r));
        twin::copy_rows(dst.p_, src.p_, r);
}

/* Rows of bytes; GM strides are gaps in bytes, buffer strides gaps in blocks. */
template <typename T>
AF_TWIN_INLINE void DataCopyPad(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const DataCopyExtParams &p,
                                const DataCopyPadExtParams<T> &pad) {
        static_assert(twin::movable<T>, "DataCopyPad: data type");
        uint32_t left = pad.isPad ? pad.leftPadding : 0, right = pad.isPad ? pad.rightPadding : 0;
        AF_CHK(chk::load("DataCopyPad", dst, src,
                         twin::Rows{p.blockCount, p.blockLen, static_cast<uint64_t>(p.blockLen) + p.srcStride,
                                    twin::lines(p.blockLen + (left + right) * static_cast<uint32_t>(sizeof(T))) +
                                            static_cast<uint64_t>(p.dstStride) * twin::BLOCK},
                         left, right, false));
        AF_CHK(chk::pad_ok(sizeof(T), left, right, pad.isPad && sizeof(T) == 8 && !(pad.paddingValue == T(0))));
        twin::load_padded(dst.p_, src.p_, p.blockCount, p.blockLen, p.srcStride, p.dstStride, left, right, pad.paddingValue);
}
template <typename T> AF_TWIN_INLINE void DataCopyPad(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyExtParams &p) {
        static_assert(twin::movable<T>, "DataCopyPad: data type");
        twin::Rows r{p.blockCount, p.blockLen, twin::lines(p.blockLen) + static_cast<uint64_t>(p.srcStride) * twin::BLOCK,
                     static_cast<uint64_t>(p.blockLen) + p.dstStride};
        AF_CHK(chk::store("DataCopyPad", dst, src, r, false));
        twin::store_rows(dst.p_, src.p_, r);
}
/* The older forms: 16-bit counts and strides, the padding value as bits. */
template <typename T>
AF_TWIN_INLINE void DataCopyPad(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const DataCopyParams &p,
                                const DataCopyPadParams &pad) {
        DataCopyPadExtParams<T> ext(pad.isPad, pad.leftPadding, pad.rightPadding, twin::pad_value<T>(pad.paddingValue));
        DataCopyPad(dst, src, DataCopyExtParams(p.blockCount, p.blockLen, p.srcStride, p.dstStride, 0), ext);
}
template <typename T> AF_TWIN_INLINE void DataCopyPad(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyParams &p) {
        DataCopyPad(dst, src, DataCopyExtParams(p.blockCount, p.blockLen, p.srcStride, p.dstStride, 0));
}

namespace twin {
template <class T> AF_TWIN_NOINLINE void rep_copy(T *d, const T *s, const Mask &m, int rep, const CopyRepeatParams &p) {
        constexpr int lanes = REPEAT / sizeof(T), per = BLOCK / sizeof(T);
        walk(lanes, p.dstStride == 1 && p.srcStride == 1 ? lanes : per, m, rep, [&](int r, int i, int n) {
                T *x = at(d, r, i, p.dstStride, p.dstRepeatSize);
                const T *y = at(s, r, i, p.srcStride, p.srcRepeatSize);
                AF_TWIN_IVDEP
                for (int k = 0; k < n; k++)
                        x[k] = y[k];
        });
}
template <class T> inline constexpr bool word = one_of<T, int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float>;
} // namespace twin

/* Buffer to buffer in repeats. */
template <typename T, bool isSetMask = true>
AF_TWIN_INLINE void Copy(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint64_t mask, const uint8_t repeatTime,
                         const CopyRepeatParams &p) {
        static_assert(twin::word<T>, "Copy: data type");
        twin::Mask m = twin::mask_first(mask);
        AF_CHK(chk::Call("Copy", chk::COPY)
                       .out(dst, p.dstStride, p.dstRepeatSize)
                       .in("src", src, p.srcStride, p.srcRepeatSize)
                       .repeat(m, repeatTime));
        twin::rep_copy(dst.p_, src.p_, m, repeatTime, p);
}
template <typename T, bool isSetMask = true>
AF_TWIN_INLINE void Copy(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint64_t mask[], const uint8_t repeatTime,
                         const CopyRepeatParams &p) {
        static_assert(twin::word<T>, "Copy: data type");
        twin::Mask m = twin::mask_bits(mask, twin::REPEAT / sizeof(T));
        AF_CHK(chk::Call("Copy", chk::COPY)
                       .out(dst, p.dstStride, p.dstRepeatSize)
                       .in("src", src, p.srcStride, p.srcRepeatSize)
                       .repeat(m, repeatTime));
        twin::rep_copy(dst.p_, src.p_, m, repeatTime, p);
}
} // namespace AscendC
