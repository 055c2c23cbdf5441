/* SPDX-License-Identifier: Apache-2.0 */
/* Checked policy: GM arguments, DMA calls and scalar accesses. */
#pragma once

#include "twin/checked.h"

namespace AscendC::twin {
struct Rows;
}

namespace AscendC::chk {
inline const twin::Launch &launch_now() {
        return *twin::block().launch;
}
/* Which argument a pointer belongs to: index + 1; 0: extents are unknown. */
inline void gm_bind(const void *p, uint64_t bytes, uint32_t &ret_arg) {
        const twin::Launch &l = launch_now();
        uint64_t at = reinterpret_cast<uint64_t>(p);
        ret_arg = 0;
        for (int past_end = 0; l.arg_bytes && past_end < 2; past_end++)
                for (uint32_t i = 0; i < l.n_args; i++) {
                        uint64_t from = reinterpret_cast<uint64_t>(l.args[i]);
                        if (at < from || at >= from + l.arg_bytes[i] + static_cast<uint64_t>(past_end))
                                continue;
                        ret_arg = i + 1;
                        if (at + bytes > from + l.arg_bytes[i])
                                fail("SetGlobalBuffer: %llu bytes at byte %llu of argument %u, which has %llu",
                                     static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(at - from), i,
                                     static_cast<unsigned long long>(l.arg_bytes[i]));
                        return;
                }
        if (l.arg_bytes)
                fail("SetGlobalBuffer: the address lies in no argument of the kernel");
}
inline void gm_bounds(const char *op, const char *operand, uint32_t arg, const void *p, uint64_t n, bool write) {
        const twin::Launch &l = launch_now();
        if (!p && !counting())
                fail("%s: %s: SetGlobalBuffer was not called", op, operand);
        if (arg == 0 || !l.arg_bytes)
                return;
        int64_t at = static_cast<int64_t>(reinterpret_cast<uint64_t>(p) - reinterpret_cast<uint64_t>(l.args[arg - 1]));
        if (at < 0 || static_cast<uint64_t>(at) + n > l.arg_bytes[arg - 1])
                fail("%s: %s: %s %llu bytes at byte %lld of argument %u, which has %llu", op, operand, write ? "writes" : "reads",
                     static_cast<unsigned long long>(n), static_cast<long long>(at), arg - 1,
                     static_cast<unsigned long long>(l.arg_bytes[arg - 1]));
}
/* Address for counting sectors: from the argument's start, which counts as aligned. */
inline uint64_t gm_place(uint32_t arg, const void *p) {
        uint64_t at = reinterpret_cast<uint64_t>(p);
        return arg ? at - reinterpret_cast<uint64_t>(launch_now().args[arg - 1]) : at;
}

/* Bytes of the distinct 32-byte sectors that ascending rows touch. */
inline uint64_t sector_bytes(uint64_t place, uint32_t rows, uint64_t len, uint64_t step) {
        uint64_t n = 0, next = 0;
        for (uint32_t i = 0; len && i < rows; i++) {
                uint64_t from = (place + i * step) / 32, to = (place + i * step + len - 1) / 32;
                from = i && from < next ? next : from;
                n += to >= from ? to - from + 1 : 0;
                next = to + 1 > next ? to + 1 : next;
        }
        return n * 32;
}
inline double dma_cycles(bool load, uint64_t bytes) {
        return dma_cycles(load, bytes, static_cast<double>(twin::block().num));
}

/* ---- order of GM accesses of one block: MTE2 reads against MTE3 writes ---- */
inline void gm_remember(GmRanges &r, uint64_t from, uint64_t to, uint32_t seq) {
        if (r.n && r.items[r.n - 1].seq == seq && r.items[r.n - 1].to == from) {
                r.items[r.n - 1].to = to;
                return;
        }
        if (r.n == r.cap) {
                uint32_t cap = r.cap ? 2 * r.cap : 64;
                void *p = realloc(r.items, cap * sizeof(GmRange));
                if (!p)
                        fail("no memory for the checks");
                r.items = static_cast<GmRange *>(p);
                r.cap = cap;
        }
        r.items[r.n++] = GmRange{from, to, seq};
}
/* Drops what is known to be over, and finds an overlap among the rest. */
inline bool gm_conflict(GmRanges &r, uint32_t done, uint64_t from, uint64_t to) {
        uint32_t k = 0;
        bool hit = false;
        for (uint32_t i = 0; i < r.n; i++) {
                if (r.items[i].seq <= done)
                        continue;
                hit |= r.items[i].from < to && from < r.items[i].to;
                r.items[k++] = r.items[i];
        }
        r.n = k;
        return hit;
}
inline void gm_order(const char *op, Pipe p, uint64_t place, uint64_t len, uint64_t step, uint32_t rows, uint32_t arg, const void *gm) {
        State &s = state();
        uint64_t base = reinterpret_cast<uint64_t>(gm);
        (void)place;
        GmRanges &against = p == MTE2 ? s.gm_written : s.gm_read, &own = p == MTE2 ? s.gm_read : s.gm_written;
        Pipe other = p == MTE2 ? MTE3 : MTE2;
        for (uint32_t i = 0; i < rows && len; i++) {
                uint64_t from = base + i * step, to = from + len;
                if (gm_conflict(against, s.clock[p].done[other], from, to))
                        fail("%s: argument %u: missing wait: %s %s GM that %s still %s; no flag orders %s before %s", op, arg ? arg - 1 : 0,
                             pipe_name(p), p == MTE2 ? "reads" : "overwrites", pipe_name(other), p == MTE2 ? "writes" : "reads",
                             pipe_name(other), pipe_name(p));
                gm_remember(own, from, to, s.issued[p]);
        }
}

inline void dma_limits(const char *op, uint32_t rows, uint32_t len, uint32_t elem, bool blocks) {
        if (rows > 4095)
                fail("%s: blockCount %u is beyond 4095", op, rows);
        if (!blocks && len > 2097151)
                fail("%s: blockLen %u bytes is beyond 2097151", op, len);
        if (blocks && len % 32)
                fail("%s: %u bytes is no multiple of 32 (the device rounds silently; DataCopyPad copies exactly)", op, len);
        if (len % elem)
                fail("%s: blockLen %u is no multiple of the element's %u bytes", op, len, elem);
}

/* GM to buffer: rows.len bytes per row, `left` and `right` padding elements around. */
template <class Local, class Gm, class R>
inline bool load(const char *op, const Local &dst, const Gm &src, const R &r, uint32_t left, uint32_t right, bool blocks) {
        constexpr uint32_t elem = sizeof(typename Local::PrimType);
        State &s = state();
        uint64_t step = blocks && r.rows == 1 ? r.len : r.src_step, to_step = blocks && r.rows == 1 ? r.len : r.dst_step;
        uint32_t line = (r.len + (left + right) * elem + twin::BLOCK - 1) / twin::BLOCK * twin::BLOCK,
                 offset = counting() ? 0 : offset_of(dst);
        dma_limits(op, r.rows, r.len, elem, blocks);
        s.stats.n_dma_calls++;
        uint64_t bytes = sector_bytes(gm_place(src.arg_, src.p_), r.rows, r.len, step);
        s.stats.mte2_bytes += bytes;
        begin(MTE2, dma_cycles(true, bytes));
        if (r.rows == 0 || r.len == 0)
                return !counting();
        bounds(op, "dst", dst.buf_, (r.rows - 1) * to_step + line, dst.bytes_);
        gm_bounds(op, "src", src.arg_, src.p_, (r.rows - 1) * step + r.len, false);
        if (counting())
                return false;
        aligned(op, "dst", dst.buf_, offset, twin::BLOCK);
        gm_order(op, MTE2, 0, r.len, step, r.rows, src.arg_, src.p_);
        for (uint32_t i = 0; i < r.rows; i++) {
                uint32_t at = offset + static_cast<uint32_t>(i * to_step), used = r.len + (left + right) * elem;
                touch(MTE2, op, "dst", dst.buf_, at, line, true);
                set_shadow(at, used, 0);
                set_shadow(at + used, line - used, 0xff);
        }
        return true;
}
template <class Gm, class Local, class R> inline bool store(const char *op, const Gm &dst, const Local &src, const R &r, bool blocks) {
        constexpr uint32_t elem = sizeof(typename Local::PrimType);
        State &s = state();
        uint64_t step = blocks && r.rows == 1 ? r.len : r.dst_step, from_step = blocks && r.rows == 1 ? r.len : r.src_step;
        uint32_t offset = counting() ? 0 : offset_of(src);
        dma_limits(op, r.rows, r.len, elem, blocks);
        s.stats.n_dma_calls++;
        uint64_t bytes = sector_bytes(gm_place(dst.arg_, dst.p_), r.rows, r.len, step);
        s.stats.mte3_bytes += bytes;
        begin(MTE3, dma_cycles(false, bytes));
        if (r.rows == 0 || r.len == 0)
                return !counting();
        bounds(op, "src", src.buf_, (r.rows - 1) * from_step + r.len, src.bytes_);
        gm_bounds(op, "dst", dst.arg_, dst.p_, (r.rows - 1) * step + r.len, true);
        if (counting())
                return false;
        aligned(op, "src", src.buf_, offset, twin::BLOCK);
        gm_order(op, MTE3, 0, r.len, step, r.rows, dst.arg_, dst.p_);
        for (uint32_t i = 0; i < r.rows; i++) {
                uint32_t at = offset + static_cast<uint32_t>(i * from_step);
                touch(MTE3, op, "src", src.buf_, at, r.len, false);
                if (poisoned(at, r.len))
                        fail("%s: src (%s, byte %u): undefined bytes reach GM", op, where(src.buf_).text, at + first_poisoned(at, r.len));
        }
        return true;
}
/* Buffer to buffer, by the vector pipe. */
template <class Local, class R> inline bool move(const char *op, const Local &dst, const Local &src, const R &r) {
        constexpr uint32_t elem = sizeof(typename Local::PrimType);
        uint64_t step = r.rows == 1 ? r.len : r.src_step, to_step = r.rows == 1 ? r.len : r.dst_step;
        dma_limits(op, r.rows, r.len, elem, true);
        state().stats.n_vector_calls++;
        begin(V, vector_cycles(true, 4, 4, static_cast<uint64_t>(r.rows) * (r.len / 4)));
        if (r.rows == 0 || r.len == 0)
                return !counting();
        bounds(op, "dst", dst.buf_, (r.rows - 1) * to_step + r.len, dst.bytes_);
        bounds(op, "src", src.buf_, (r.rows - 1) * step + r.len, src.bytes_);
        if (counting())
                return false;
        uint32_t d = offset_of(dst), a = offset_of(src);
        aligned(op, "dst", dst.buf_, d, twin::BLOCK);
        aligned(op, "src", src.buf_, a, twin::BLOCK);
        for (uint32_t i = 0; i < r.rows; i++) {
                uint32_t to = d + static_cast<uint32_t>(i * to_step), from = a + static_cast<uint32_t>(i * step);
                touch(V, op, "src", src.buf_, from, r.len, false);
                touch(V, op, "dst", dst.buf_, to, r.len, true);
                memmove(state().shadow + to, state().shadow + from, r.len);
        }
        return true;
}
inline bool pad_ok(uint32_t elem, uint32_t left, uint32_t right, bool wide_value) {
        if (left * elem > 32 || right * elem > 32)
                fail("DataCopyPad: padding of %u + %u elements is beyond 32 bytes a side", left, right);
        if (wide_value)
                fail("DataCopyPad: 64-bit types pad with 0 only");
        return true;
}

/* ---- scalars ---- */
template <class Tensor> inline bool ub_scalar(const char *op, const Tensor &t, uint32_t i, bool write) {
        constexpr uint32_t elem = sizeof(typename Tensor::PrimType);
        bounds(op, "tensor", t.buf_, (static_cast<uint64_t>(i) + 1) * elem, t.bytes_);
        begin(S, 2);
        if (counting())
                return false;
        uint32_t at = offset_of(t) + i * elem;
        touch(S, op, "tensor", t.buf_, at, elem, write);
        if (write)
                set_shadow(at, elem, 0);
        else if (poisoned(at, elem))
                fail("%s: element %u (%s, byte %u) is undefined", op, i, where(t.buf_).text, at);
        return true;
}
inline bool gm_scalar(const char *op, uint32_t arg, const void *p, uint32_t n, bool write) {
        State &s = state();
        uint64_t bytes = sector_bytes(gm_place(arg, p), 1, n, n);
        gm_bounds(op, "GlobalTensor", arg, p, n, write);
        s.stats.scalar_bytes += bytes;
        begin(S, dma_cycles(!write, bytes));
        return !counting();
}
} // namespace AscendC::chk
