/* SPDX-License-Identifier: Apache-2.0 */
/* Checked policy: flags and barriers, TPipe's buffers, queue discipline, SyncAll. */
#pragma once

#include "twin/checked.h"

namespace AscendC::chk {
inline Flag take_flag(HardEvent e) {
        State &s = state();
        Pipe from = event_from(e);
        Flag f{true, s.clock[from]};
        join(f.at, s.clock[S]);
        return f;
}
inline void give_flag(HardEvent e, Flag &f) {
        join(state().clock[event_to(e)], f.at);
        f.set = false;
}
inline void flag_set(HardEvent e, int32_t id) {
        if (id < 0 || id > 7)
                fail("SetFlag<HardEvent::%s>(%d): ids are 0..7", event_name(e), id);
        Flag &f = state().flag[static_cast<uint32_t>(e)][id];
        if (f.set)
                fail("SetFlag<HardEvent::%s>(%d): set twice without a WaitFlag between", event_name(e), id);
        f = take_flag(e);
}
inline void flag_wait(HardEvent e, int32_t id) {
        if (id < 0 || id > 7)
                fail("WaitFlag<HardEvent::%s>(%d): ids are 0..7", event_name(e), id);
        Flag &f = state().flag[static_cast<uint32_t>(e)][id];
        if (!f.set)
                fail("WaitFlag<HardEvent::%s>(%d): nothing set it, the core would hang", event_name(e), id);
        give_flag(e, f);
}
inline void barrier(pipe_t pipe) {
        State &s = state();
        if (pipe != PIPE_ALL)
                return; /* operations of one pipe are in order here */
        Clock all = s.clock[0];
        for (uint32_t p = 1; p < N_PIPES; p++)
                join(all, s.clock[p]);
        for (uint32_t p = 0; p < N_PIPES; p++)
                s.clock[p] = all;
}
inline void event_taken(TEventID id) {
        if (id < 0)
                fail("AllocEventID: no id is left (six per pair of pipes; ReleaseEventID gives them back)");
}

/* ---- TPipe ---- */
inline void pipe_init() {
        State &s = state();
        s.n_buffers = 0;
        memset(s.live, 0, sizeof(s.live));
}
inline void pipe_destroy() {
        barrier(PIPE_ALL);
        const State &s = state();
        for (uint32_t i = 0; i < static_cast<uint32_t>(TPosition::MAX); i++)
                if (s.live[i])
                        fail("TPipe ends with %u %s tensor(s) not freed", s.live[i], position_name(static_cast<TPosition>(i)));
}
inline uint16_t add_buffer(TPosition pos, uint32_t num, uint32_t bytes, uint32_t used) {
        State &s = state();
        if (bytes == 0)
                fail("InitBuffer: a %s buffer of 0 bytes", position_name(pos));
        if (used + static_cast<uint64_t>(num) * bytes > twin::UB_USABLE)
                fail("InitBuffer: %u x %u bytes for %s after %u: more than the %u bytes of the unified buffer", num, bytes,
                     position_name(pos), used, twin::UB_USABLE);
        if (s.n_buffers == MAX_BUFFERS)
                fail("InitBuffer: more than %u buffers", MAX_BUFFERS);
        s.buffer[s.n_buffers] = Buffer{pos, used, bytes, num};
        return static_cast<uint16_t>(s.n_buffers++);
}
inline void init_buffer(Queue &q, TPosition pos, uint8_t num, uint32_t bytes, uint32_t used) {
        if (num == 0 || num > MAX_SLOTS)
                fail("InitBuffer: %u buffers in one %s queue", num, position_name(pos));
        memset(&q, 0, sizeof(q));
        q.id = add_buffer(pos, num, bytes, used);
        q.num = num;
}
inline uint16_t init_tbuf(TPosition pos, uint32_t bytes, uint32_t used) {
        return add_buffer(pos, 1, bytes, used);
}
inline void buf_get(uint16_t id, uint32_t bytes, uint32_t offset, uint64_t need) {
        if (offset + need > bytes)
                fail("TBuf::Get: %llu bytes at byte %u of %s, which has %u", static_cast<unsigned long long>(need), offset,
                     where(static_cast<uint16_t>(id + 1)).text, bytes);
        aligned("TBuf::Get", "offset", static_cast<uint16_t>(id + 1), offset, twin::BLOCK);
}

/* ---- queues ---- */
inline uint32_t que_alloc(Queue &q, HardEvent free_event) {
        State &s = state();
        if (q.num == 0)
                fail("AllocTensor: the queue has no InitBuffer");
        uint32_t &live = s.live[static_cast<uint32_t>(s.buffer[q.id].pos)];
        for (uint32_t k = 0; k < q.num; k++) {
                uint32_t i = (q.next + k) % q.num;
                if (q.slot[i] != Slot::FREE)
                        continue;
                if (++live > 8)
                        fail("AllocTensor: more than 8 live %s tensors", position_name(s.buffer[q.id].pos));
                q.slot[i] = Slot::ALLOCATED;
                q.next = static_cast<uint8_t>((i + 1) % q.num);
                if (q.freed[i].set)
                        give_flag(free_event, q.freed[i]);
                set_shadow(s.buffer[q.id].offset + i * s.buffer[q.id].bytes, s.buffer[q.id].bytes, 0xff);
                return i;
        }
        fail("AllocTensor: all %u tensors of %s are in use, the core would hang (a FreeTensor is missing)", q.num,
             where(static_cast<uint16_t>(q.id + 1)).text);
}
template <class Tensor> inline void belongs(const char *op, const Queue &q, const Tensor &t) {
        if (t.buf_ != q.id + 1 || t.slot_ >= q.num)
                fail("%s: the tensor (%s) is not of this queue (%s)", op, where(t.buf_).text, where(static_cast<uint16_t>(q.id + 1)).text);
}
template <class Tensor> inline void que_enque(Queue &q, const Tensor &t, int32_t depth, HardEvent e) {
        belongs("EnQue", q, t);
        if (q.slot[t.slot_] != Slot::ALLOCATED && q.slot[t.slot_] != Slot::TAKEN)
                fail("EnQue: the tensor of %s is %s", where(t.buf_).text,
                     q.slot[t.slot_] == Slot::FREE ? "not allocated" : "in the queue already");
        if (q.queued >= (depth < 1 ? 1 : depth))
                fail("EnQue: %s holds %u tensor(s) already, its depth", where(t.buf_).text, q.queued);
        q.queued++;
        q.slot[t.slot_] = Slot::QUEUED;
        q.enqued[t.slot_] = take_flag(e);
}
inline void que_deque(Queue &q, bool empty, uint32_t slot, HardEvent e) {
        if (q.num == 0 || empty)
                fail("DeQue: %s holds no tensor, the core would hang", where(static_cast<uint16_t>(q.id + 1)).text);
        q.queued--;
        q.slot[slot] = Slot::TAKEN;
        give_flag(e, q.enqued[slot]);
}
template <class Tensor> inline void que_free(Queue &q, const Tensor &t, HardEvent e) {
        belongs("FreeTensor", q, t);
        if (q.slot[t.slot_] == Slot::FREE)
                fail("FreeTensor: the tensor of %s is not allocated", where(t.buf_).text);
        if (q.slot[t.slot_] == Slot::QUEUED)
                fail("FreeTensor: the tensor of %s is still in the queue", where(t.buf_).text);
        q.slot[t.slot_] = Slot::FREE;
        q.freed[t.slot_] = take_flag(e);
        state().live[static_cast<uint32_t>(state().buffer[q.id].pos)]--;
}

/* ---- all blocks ---- */
inline void sync_all() {
        barrier(PIPE_ALL);
        for (Clock &c : state().clock)
                c.time += twin::block().num > 1 ? SYNC_ALL : 0;
        state().meetings++;
        state().meeting = true;
}
template <class Gm, class Local> inline void sync_all_soft(const Gm &gm, const Local &ub, int32_t used) {
        int64_t blocks = twin::block().num;
        if (used != 0 && used != blocks)
                fail("SyncAll: usedCores %d, but %lld blocks run", used, static_cast<long long>(blocks));
        bounds("SyncAll", "ubWorkspace", ub.buf_, static_cast<uint64_t>(blocks) * 32, ub.bytes_);
        gm_bounds("SyncAll", "gmWorkspace", gm.arg_, gm.p_, static_cast<uint64_t>(blocks) * 32, true);
        for (int64_t i = 0; !counting() && state().meetings == 0 && i < blocks * 8; i++)
                if (gm.p_[i] != 0)
                        fail("SyncAll: gmWorkspace is not zero at the start");
        sync_all();
}
} // namespace AscendC::chk
