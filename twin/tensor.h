/* SPDX-License-Identifier: Apache-2.0 */
/* GlobalTensor and LocalTensor: typed views of GM and of the unified buffer. */
#pragma once

#include "twin/core.h"

namespace AscendC {
template <typename T> class GlobalTensor {
      public:
        using PrimType = T;
        GlobalTensor() = default;
        AF_TWIN_INLINE void SetGlobalBuffer(__gm__ T *buffer, uint64_t size) {
                p_ = buffer;
                size_ = size;
                AF_CHK_DO(chk::gm_bind(buffer, size * sizeof(T), arg_));
        }
        AF_TWIN_INLINE void SetGlobalBuffer(__gm__ T *buffer) {
                p_ = buffer;
                size_ = 0;
                AF_CHK_DO(chk::gm_bind(buffer, 0, arg_));
        }
        AF_TWIN_INLINE const __gm__ T *GetPhyAddr() const { return p_; }
        AF_TWIN_INLINE __gm__ T *GetPhyAddr(const uint64_t offset) const { return p_ + offset; }
        AF_TWIN_INLINE uint64_t GetSize() const { return size_; }
        AF_TWIN_INLINE T GetValue(const uint64_t offset) const {
                T v;
#if AF_TWIN_CHECKED
                if (!chk::gm_scalar("GetValue", arg_, p_ + offset, sizeof(T), false)) {
                        memset(&v, 0, sizeof(v));
                        return v;
                }
#endif
                memcpy(&v, p_ + offset, sizeof(T));
                return v;
        }
        AF_TWIN_INLINE void SetValue(const uint64_t offset, T value) {
                AF_CHK(chk::gm_scalar("SetValue", arg_, p_ + offset, sizeof(T), true));
                memcpy(p_ + offset, &value, sizeof(T));
        }
        AF_TWIN_INLINE GlobalTensor operator[](const uint64_t offset) const {
                GlobalTensor r = *this;
                r.p_ = p_ + offset;
                return r;
        }
        T *p_ = nullptr;
        uint64_t size_ = 0; /* elements, as told; 0: untold */
#if AF_TWIN_CHECKED
        uint32_t arg_ = 0; /* the kernel argument that it points into */
#endif
};

template <typename T> class LocalTensor {
      public:
        using PrimType = T;
        LocalTensor() = default;
        AF_TWIN_INLINE T GetValue(const uint32_t i) const {
#if AF_TWIN_CHECKED
                T v;
                if (!chk::ub_scalar("GetValue", *this, i, false)) {
                        memset(&v, 0, sizeof(v));
                        return v;
                }
#endif
                return p_[i];
        }
        template <typename S> AF_TWIN_INLINE void SetValue(const uint32_t i, const S value) const {
                AF_CHK(chk::ub_scalar("SetValue", *this, i, true));
                p_[i] = static_cast<T>(value);
        }
#if AF_TWIN_CHECKED
        struct Element { /* a reference that is checked */
                const LocalTensor &t;
                uint32_t i;
                operator T() const { return t.GetValue(i); }
                T operator=(T v) const {
                        t.SetValue(i, v);
                        return v;
                }
        };
        Element operator()(const uint32_t i) const {
                return Element{*this, i};
        }
#else
        AF_TWIN_INLINE T &operator()(const uint32_t i) const {
                return p_[i];
        }
#endif
        AF_TWIN_INLINE T *GetPhyAddr() const {
                return p_;
        }
        AF_TWIN_INLINE T *GetPhyAddr(const uint32_t i) const {
                return p_ + i;
        }
        AF_TWIN_INLINE uint32_t GetSize() const {
                return bytes_ / sizeof(T);
        }
        AF_TWIN_INLINE void SetSize(const uint32_t n) {
                bytes_ = n * sizeof(T);
        }
        AF_TWIN_INLINE int32_t GetPosition() const {
                return static_cast<int32_t>(pos_);
        }
        AF_TWIN_INLINE LocalTensor operator[](const uint32_t i) const {
                LocalTensor r = *this;
                r.p_ += i;
                r.bytes_ = static_cast<uint32_t>(bytes_ > i * sizeof(T) ? bytes_ - i * sizeof(T) : 0);
                return r;
        }
        template <typename U> AF_TWIN_INLINE LocalTensor<U> ReinterpretCast() const {
                LocalTensor<U> r;
                r.p_ = reinterpret_cast<U *>(p_);
                r.bytes_ = bytes_;
                r.pos_ = pos_;
                r.slot_ = slot_;
                AF_CHK_DO(r.buf_ = buf_);
                return r;
        }
        T *p_ = nullptr;
        uint32_t bytes_ = 0; /* to the end of its buffer */
        TPosition pos_ = TPosition::MAX;
        uint8_t slot_ = 0; /* which of its queue's buffers */
#if AF_TWIN_CHECKED
        uint16_t buf_ = 0; /* the InitBuffer it lies in */
#endif
};
} // namespace AscendC
