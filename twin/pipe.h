/* SPDX-License-Identifier: Apache-2.0 */
/* TPipe, queues and buffers. A queue hands out its buffers in turn, as the device's does. */
#pragma once

#include "twin/sync.h"
#include "twin/tensor.h"

namespace AscendC {
namespace twin {
constexpr bool is_ub(TPosition p) {
        return p == TPosition::VECIN || p == TPosition::VECOUT || p == TPosition::VECCALC || p == TPosition::LCM;
}
inline constexpr uint32_t QUEUE_BUFFERS = 16; /* of one queue */
} // namespace twin

template <TPosition src, TPosition dst, int32_t depth, auto mask = 0> class TQueBind {
      public:
        static constexpr TPosition position = dst == TPosition::GM || dst == TPosition::VECOUT  ? TPosition::VECOUT
                                              : src == TPosition::GM || src == TPosition::VECIN ? TPosition::VECIN
                                                                                                : src;
        /* Who fills a buffer and who reads it afterwards. */
        static constexpr bool filled_by_v = src == TPosition::VECOUT || src == TPosition::VECCALC;
        static constexpr bool read_by_mte3 = dst == TPosition::GM || dst == TPosition::VECOUT;
        static constexpr HardEvent enque_event = filled_by_v    ? (read_by_mte3 ? HardEvent::V_MTE3 : HardEvent::V_V)
                                                 : read_by_mte3 ? HardEvent::MTE2_MTE3
                                                                : HardEvent::MTE2_V;
        static constexpr HardEvent free_event = filled_by_v    ? (read_by_mte3 ? HardEvent::MTE3_V : HardEvent::V_V)
                                                : read_by_mte3 ? HardEvent::MTE3_MTE2
                                                               : HardEvent::V_MTE2;

        template <typename T> AF_TWIN_INLINE LocalTensor<T> AllocTensor() {
                uint32_t i = next_;
                AF_CHK_DO(i = chk::que_alloc(q_, free_event));
                next_ = static_cast<uint8_t>(i + 1 < n_ ? i + 1 : 0);
                return tensor<T>(i);
        }
        template <typename T> AF_TWIN_INLINE void AllocTensor(LocalTensor<T> &t) { t = AllocTensor<T>(); }
        template <typename T> AF_TWIN_INLINE void FreeTensor(LocalTensor<T> &t) {
                AF_CHK_DO(chk::que_free(q_, t, free_event));
                (void)t;
        }
        template <typename T> AF_TWIN_INLINE bool EnQue(const LocalTensor<T> &t) {
                AF_CHK_DO(chk::que_enque(q_, t, depth, enque_event));
                fifo_[tail_] = t.slot_;
                tail_ = static_cast<uint8_t>((tail_ + 1) % twin::QUEUE_BUFFERS);
                return true;
        }
        template <typename T> AF_TWIN_INLINE LocalTensor<T> DeQue() {
                uint32_t i = fifo_[head_];
                AF_CHK_DO(chk::que_deque(q_, tail_ == head_, i, enque_event));
                head_ = static_cast<uint8_t>((head_ + 1) % twin::QUEUE_BUFFERS);
                return tensor<T>(i);
        }
        template <typename T> AF_TWIN_INLINE void DeQue(LocalTensor<T> &t) { t = DeQue<T>(); }
        AF_TWIN_INLINE int32_t GetTensorCountInQue() { return (tail_ + twin::QUEUE_BUFFERS - head_) % twin::QUEUE_BUFFERS; }
        AF_TWIN_INLINE bool HasTensorInQue() { return tail_ != head_; }
        AF_TWIN_INLINE bool VacantInQue() { return GetTensorCountInQue() < depth; }

      protected:
        friend class TPipe;
        template <typename T> AF_TWIN_INLINE LocalTensor<T> tensor(uint32_t i) {
                LocalTensor<T> t;
                t.p_ = reinterpret_cast<T *>(p_ + i * bytes_);
                t.bytes_ = bytes_;
                t.pos_ = position;
                t.slot_ = static_cast<uint8_t>(i);
                AF_CHK_DO(t.buf_ = static_cast<uint16_t>(q_.id + 1));
                return t;
        }
        uint8_t *p_ = nullptr;
        uint32_t bytes_ = 0; /* of one buffer */
        uint8_t n_ = 0, next_ = 0, head_ = 0, tail_ = 0;
        uint8_t fifo_[twin::QUEUE_BUFFERS] = {};
#if AF_TWIN_CHECKED
        chk::Queue q_ = {};
#endif
};

template <TPosition pos, int32_t depth, auto mask = 0>
class TQue : public TQueBind<pos == TPosition::VECOUT ? TPosition::VECOUT : TPosition::GM,
                             pos == TPosition::VECOUT ? TPosition::GM : TPosition::VECIN, depth, mask> {
        static_assert(pos == TPosition::VECIN || pos == TPosition::VECOUT, "TQue: position");
};

template <TPosition pos = TPosition::LCM> class TBuf {
        static_assert(twin::is_ub(pos), "TBuf: position");

      public:
        template <typename T> AF_TWIN_INLINE LocalTensor<T> Get() { return GetWithOffset<T>(bytes_ / sizeof(T), 0); }
        template <typename T> AF_TWIN_INLINE LocalTensor<T> Get(uint32_t len) { return GetWithOffset<T>(len, 0); }
        template <typename T> AF_TWIN_INLINE LocalTensor<T> GetWithOffset(uint32_t size, uint32_t offset) {
                LocalTensor<T> t;
                AF_CHK_DO(chk::buf_get(id_, bytes_, offset, size * sizeof(T)));
                t.p_ = reinterpret_cast<T *>(p_ + offset);
                t.bytes_ = static_cast<uint32_t>(size * sizeof(T));
                t.pos_ = pos;
                AF_CHK_DO(t.buf_ = static_cast<uint16_t>(id_ + 1));
                return t;
        }

      private:
        friend class TPipe;
        uint8_t *p_ = nullptr;
        uint32_t bytes_ = 0;
#if AF_TWIN_CHECKED
        uint16_t id_ = 0;
#endif
};

class TPipe {
      public:
        AF_TWIN_INLINE TPipe() { Init(); }
        AF_TWIN_INLINE ~TPipe() { Destroy(); }
        TPipe(const TPipe &) = delete;
        TPipe &operator=(const TPipe &) = delete;
        AF_TWIN_INLINE void Init() {
                used_ = 0;
                twin::block().pipe = this;
                AF_CHK_DO(chk::pipe_init());
        }
        AF_TWIN_INLINE void Reset() {
                used_ = 0;
                AF_CHK_DO(chk::pipe_init());
        }
        AF_TWIN_INLINE void Destroy() { AF_CHK_DO(chk::pipe_destroy()); }
        template <class Q> AF_TWIN_INLINE bool InitBuffer(Q &q, uint8_t num, uint32_t len) {
                uint32_t bytes = (len + 31) / 32 * 32;
                AF_CHK_DO(chk::init_buffer(q.q_, Q::position, num, bytes, used_));
                q.p_ = twin::block().ub + used_;
                q.bytes_ = bytes;
                q.n_ = num;
                q.next_ = q.head_ = q.tail_ = 0;
                used_ += num * bytes;
                return true;
        }
        template <TPosition pos> AF_TWIN_INLINE bool InitBuffer(TBuf<pos> &b, uint32_t len) {
                uint32_t bytes = (len + 31) / 32 * 32;
                AF_CHK_DO(b.id_ = chk::init_tbuf(pos, bytes, used_));
                b.p_ = twin::block().ub + used_;
                b.bytes_ = bytes;
                used_ += bytes;
                return true;
        }
        template <HardEvent evt> AF_TWIN_INLINE TEventID AllocEventID() { return take(static_cast<unsigned>(evt)); }
        template <HardEvent evt> AF_TWIN_INLINE void ReleaseEventID(TEventID id) {
                events_[static_cast<unsigned>(evt)] &= static_cast<uint8_t>(~(1u << id));
        }
        template <HardEvent evt> AF_TWIN_INLINE TEventID FetchEventID() { return FetchEventID(evt); }
        AF_TWIN_INLINE TEventID FetchEventID(HardEvent evt) {
                TEventID id = first(static_cast<unsigned>(evt));
                return id < 0 ? TEventID(0) : id;
        }

      private:
        /* The first free one of ids 0..5; -1: none is left. */
        AF_TWIN_INLINE TEventID first(unsigned evt) {
                for (unsigned i = 0; i < 6; i++)
                        if (!(events_[evt] >> i & 1))
                                return static_cast<TEventID>(i);
                return -1;
        }
        AF_TWIN_INLINE TEventID take(unsigned evt) {
                TEventID id = first(evt);
                AF_CHK_DO(chk::event_taken(id));
                events_[evt] |= static_cast<uint8_t>(1u << (id < 0 ? 0 : id));
                return id;
        }
        uint32_t used_ = 0;
        uint8_t events_[static_cast<unsigned>(HardEvent::MAX)] = {};
};

AF_TWIN_INLINE TPipe *GetTPipePtr() {
        return twin::block().pipe;
}
} // namespace AscendC
