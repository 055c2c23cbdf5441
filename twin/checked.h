/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checked policy's state of one block, and what every check is made of: the error that ends a launch, the order that flags give to
 * the pipes, the poison of undefined bytes, the modelled time.
 *
 * Order. Four pipes (scalar, vector, MTE2: GM to buffer, MTE3: buffer to GM) run their operations in turn, each on its own. A clock says
 * per pipe up to which operation something is known to be done. An operation knows what its pipe and, at issue, the scalar pipe know;
 * SetFlag takes a copy of its source pipe's clock, WaitFlag joins it into the target's. Who touches a 32-byte cell after another pipe
 * without knowing that it was done is a hazard. Scalar accesses wait for what they need: the device compiler puts those flags in.
 *
 * Poison. One shadow byte per buffer byte, a bit set where the bit is undefined. Elementwise calls pass it on; compare and select bit by
 * bit; at GM, a scalar, an offset or a reduction it is an error.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "twin/core.h"
#include "twin/costs.h"

namespace AscendC {
namespace twin {
[[noreturn]] void leave_block(); /* launch.h: back to the launcher for good */
}

namespace chk {
enum Pipe : uint8_t { S, V, MTE2, MTE3, N_PIPES };
inline constexpr uint32_t CELLS = twin::UB_BYTES / twin::BLOCK, MAX_BUFFERS = 128, MAX_SLOTS = 16,
                          N_EVENTS = static_cast<uint32_t>(HardEvent::MAX);

struct Clock {
        uint32_t done[N_PIPES]; /* operations known to be over, per pipe */
        double time;            /* cycles */
};
struct Cell { /* 32 bytes of the buffer */
        uint32_t written, read[N_PIPES];
        Pipe writer;
};
struct Flag {
        bool set;
        Clock at;
};
struct Buffer { /* one InitBuffer */
        TPosition pos;
        uint32_t offset, bytes, num;
};
enum class Slot : uint8_t { FREE, ALLOCATED, QUEUED, TAKEN };
struct Queue { /* checks of one TQue; lives in it */
        uint16_t id;
        uint8_t num, next, queued;
        Slot slot[MAX_SLOTS];
        Flag enqued[MAX_SLOTS], freed[MAX_SLOTS];
};
struct GmRange {
        uint64_t from, to;
        uint32_t seq;
};
struct GmRanges {
        GmRange *items;
        uint32_t n, cap;
};

struct State {
        uint8_t shadow[twin::UB_BYTES];
        Cell cell[CELLS];
        uint32_t issued[N_PIPES];
        Clock clock[N_PIPES];
        double busy[N_PIPES], heads[N_PIPES]; /* cycles; heads: of busy, the pipe's start-up */
        Flag flag[N_EVENTS][8];
        Buffer buffer[MAX_BUFFERS];
        uint32_t n_buffers, live[static_cast<uint32_t>(TPosition::MAX)];
        GmRanges gm_written, gm_read; /* by MTE3, by MTE2 */
        twin::Stats stats;
        uint32_t meetings; /* SyncAll calls */
        bool meeting;      /* stands in one */
};

inline State &state() {
        return *static_cast<State *>(twin::block().checks);
}
inline bool counting() {
        return twin::block().launch->count_only != 0;
}

/* Ends the launch with a message that starts with the block's number. */
[[noreturn]] inline __attribute__((noinline, format(printf, 1, 2))) void fail(const char *format, ...) {
        const twin::Launch &l = *twin::block().launch;
        if (l.error && l.error_size) {
                va_list args;
                va_start(args, format);
                int n = snprintf(l.error, l.error_size, "block %lld: ", static_cast<long long>(twin::block().idx));
                if (n >= 0 && static_cast<uint32_t>(n) < l.error_size)
                        vsnprintf(l.error + n, l.error_size - static_cast<uint32_t>(n), format, args);
                va_end(args);
        }
        twin::leave_block();
}

inline const char *position_name(TPosition p) {
        switch (p) {
        case TPosition::VECIN:
                return "VECIN";
        case TPosition::VECOUT:
                return "VECOUT";
        case TPosition::VECCALC:
                return "VECCALC";
        case TPosition::LCM:
                return "LCM";
        default:
                return "?";
        }
}
inline const char *pipe_name(Pipe p) {
        static const char *const names[] = {"scalar", "V", "MTE2", "MTE3"};
        return names[p];
}
/* "VECIN buffer 2": the InitBuffer that a tensor lies in, in order of the calls. */
struct Where {
        char text[48];
};
inline Where where(uint16_t buf) {
        Where w;
        const State &s = state();
        if (buf == 0 || buf > s.n_buffers)
                snprintf(w.text, sizeof(w.text), "no buffer");
        else
                snprintf(w.text, sizeof(w.text), "%s buffer %u", position_name(s.buffer[buf - 1].pos), buf);
        return w;
}

inline Pipe event_from(HardEvent e) {
        switch (e) {
        case HardEvent::MTE2_V:
        case HardEvent::MTE2_MTE3:
        case HardEvent::MTE2_S:
                return MTE2;
        case HardEvent::MTE3_V:
        case HardEvent::MTE3_MTE2:
        case HardEvent::MTE3_S:
                return MTE3;
        case HardEvent::S_V:
        case HardEvent::S_MTE2:
        case HardEvent::S_MTE3:
                return S;
        default:
                return V;
        }
}
inline Pipe event_to(HardEvent e) {
        switch (e) {
        case HardEvent::V_MTE2:
        case HardEvent::MTE3_MTE2:
        case HardEvent::S_MTE2:
                return MTE2;
        case HardEvent::V_MTE3:
        case HardEvent::MTE2_MTE3:
        case HardEvent::S_MTE3:
                return MTE3;
        case HardEvent::V_S:
        case HardEvent::MTE2_S:
        case HardEvent::MTE3_S:
                return S;
        default:
                return V;
        }
}
inline const char *event_name(HardEvent e) {
        static const char *const names[] = {"MTE2_V", "V_MTE2", "MTE3_V", "V_MTE3", "V_V",    "MTE3_MTE2", "MTE2_MTE3",
                                            "S_V",    "V_S",    "S_MTE2", "MTE2_S", "S_MTE3", "MTE3_S"};
        return names[static_cast<uint32_t>(e)];
}

inline void join(Clock &c, const Clock &other) {
        for (uint32_t i = 0; i < N_PIPES; i++)
                c.done[i] = c.done[i] < other.done[i] ? other.done[i] : c.done[i];
        c.time = c.time < other.time ? other.time : c.time;
}
/* What the pipe's start-up costs by now; the loads' grows when their bytes pass the limit. */
inline double head_of(const State &s, Pipe p) {
        return p == V      ? HEAD_V
               : p == MTE3 ? HEAD_MTE3
               : p == MTE2 ? head_mte2(s.stats.mte2_bytes, static_cast<double>(twin::block().num))
                           : 0;
}
/* Starts an operation of a pipe that takes so many cycles; touches of it follow. A load's bytes are counted before. */
inline void begin(Pipe p, double cycles) {
        State &s = state();
        Clock &c = s.clock[p];
        double head = head_of(s, p) - s.heads[p];
        s.heads[p] += head;
        if (p != S)
                join(c, s.clock[S]);
        c.done[p] = ++s.issued[p];
        c.time += cycles + head;
        s.busy[p] += cycles + head;
}

/* Op of pipe p reads or writes n bytes at offset: order, then the new state of the cells. */
inline __attribute__((noinline)) void touch(Pipe p, const char *op, const char *operand, uint16_t buf, uint32_t offset, uint32_t n,
                                            bool write) {
        State &s = state();
        if (n == 0)
                return;
        Clock &c = s.clock[p];
        for (uint32_t i = offset / twin::BLOCK; i <= (offset + n - 1) / twin::BLOCK; i++) {
                Cell &cell = s.cell[i];
                Pipe other = N_PIPES;
                bool after_write = cell.writer != p && cell.written > c.done[cell.writer];
                if (after_write)
                        other = cell.writer;
                for (uint32_t q = 0; write && q < N_PIPES && other == N_PIPES; q++)
                        if (q != p && cell.read[q] > c.done[q])
                                other = static_cast<Pipe>(q);
                if (other != N_PIPES && p == S) {
                        join(c, s.clock[other]); /* the device compiler makes scalar code wait */
                        other = N_PIPES;
                }
                if (other != N_PIPES)
                        fail("%s: %s (%s, byte %u): missing wait: %s %s what %s still %s; no flag orders %s before %s", op, operand,
                             where(buf).text, i * twin::BLOCK, pipe_name(p), write ? "overwrites" : "reads", pipe_name(other),
                             after_write ? "writes" : "reads", pipe_name(other), pipe_name(p));
                if (write) {
                        cell.written = s.issued[p];
                        cell.writer = p;
                } else {
                        cell.read[p] = s.issued[p];
                }
        }
}

inline bool poisoned(uint32_t offset, uint32_t n) {
        const uint8_t *sh = state().shadow + offset;
        for (uint32_t i = 0; i < n; i++)
                if (sh[i])
                        return true;
        return false;
}
inline uint32_t first_poisoned(uint32_t offset, uint32_t n) {
        const uint8_t *sh = state().shadow + offset;
        uint32_t i = 0;
        while (i < n && !sh[i])
                i++;
        return i;
}
inline void set_shadow(uint32_t offset, uint32_t n, uint8_t v) {
        memset(state().shadow + offset, v, n);
}

template <class Tensor> inline uint32_t offset_of(const Tensor &t) {
        return static_cast<uint32_t>(reinterpret_cast<const uint8_t *>(t.p_) - twin::block().ub);
}
/* A tensor's range lies in the buffer that it was made from. */
inline void bounds(const char *op, const char *operand, uint16_t buf, uint64_t need, uint64_t has) {
        if (buf == 0)
                fail("%s: %s is a tensor that was never allocated", op, operand);
        if (need > has)
                fail("%s: %s (%s) touches %llu bytes of a tensor of %llu bytes", op, operand, where(buf).text,
                     static_cast<unsigned long long>(need), static_cast<unsigned long long>(has));
}
inline void aligned(const char *op, const char *operand, uint16_t buf, uint32_t offset, uint32_t to) {
        if (offset % to)
                fail("%s: %s (%s) starts at buffer byte %u, not %u-byte aligned", op, operand, where(buf).text, offset, to);
}

/* ---- state of a block ---- */
inline State *state_new() {
        State *s = static_cast<State *>(calloc(1, sizeof(State)));
        if (s)
                memset(s->shadow, 0xff, sizeof(s->shadow));
        return s;
}
inline void state_free(State *s) {
        if (!s)
                return;
        free(s->gm_written.items);
        free(s->gm_read.items);
        free(s);
}
/* Adds a finished block to the launch's counts: bytes add up, cycles are the busiest block's. */
inline void state_account(const State &s, twin::Stats *sum) {
        auto most = [](uint64_t &a, double b) { a = a < static_cast<uint64_t>(b + 0.5) ? static_cast<uint64_t>(b + 0.5) : a; };
        double end = 0;
        for (uint32_t p = 0; p < N_PIPES; p++)
                end = end < s.clock[p].time ? s.clock[p].time : end;
        sum->mte2_bytes += s.stats.mte2_bytes;
        sum->mte3_bytes += s.stats.mte3_bytes;
        sum->scalar_bytes += s.stats.scalar_bytes;
        sum->n_vector_calls += s.stats.n_vector_calls;
        sum->n_dma_calls += s.stats.n_dma_calls;
        most(sum->s_cycles, s.busy[S]);
        most(sum->v_cycles, s.busy[V]);
        most(sum->mte2_cycles, s.busy[MTE2]);
        most(sum->mte3_cycles, s.busy[MTE3]);
        most(sum->total_cycles, end);
}
/* What a kernel must not leave behind. */
inline void state_check_end() {
        const State &s = state();
        for (uint32_t e = 0; e < N_EVENTS; e++)
                for (uint32_t i = 0; i < 8; i++)
                        if (s.flag[e][i].set)
                                fail("SetFlag<HardEvent::%s>(%u): nothing waits for it", event_name(static_cast<HardEvent>(e)), i);
        if (twin::block().atomic != twin::Atomic::NONE)
                fail("the kernel ends without SetAtomicNone");
}
} // namespace chk
} // namespace AscendC

#include "twin/checked_call.h"
#include "twin/checked_move.h"
#include "twin/checked_queue.h"
