/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checked policy: one vector call. A Call collects its operands; count(), repeat() or packed() then checks bounds, alignment, overlap,
 * limits and order, moves poison along, counts cycles, and says whether to compute.
 */
#pragma once

#include "twin/checked.h"

namespace AscendC::chk {
enum Kind : uint8_t {
        ELEM /* any undefined source: undefined */,
        BITS /* bit by bit */,
        COPY,
        FILL,
        COMPARE,
        SELECT,
        REDUCE,
        SPREAD,
        GATHER,
        PACK,
        TILE
};

struct Operand {
        const char *name;
        uint32_t offset, bytes; /* in the buffer; to the tensor's end */
        uint16_t buf;
        uint8_t elem;
        int32_t blk, rep; /* strides in 32-byte blocks; rep in bytes where `loose` */
        bool loose;       /* results of a reduction: `n_out` elements per repeat, `rep` bytes apart */
        uint16_t n_out;
};

class Call {
      public:
        explicit Call(const char *op, Kind kind = ELEM) : op_(op), kind_(kind) {}

        template <class Tensor> Call &out(const Tensor &t, int blk = 1, int rep = 8) { return set(dst_, "dst", t, blk, rep); }
        template <class Tensor> Call &inout(const Tensor &t) { return out(t).in("dst", t); }
        template <class Tensor> Call &in(const char *name, const Tensor &t, int blk = 1, int rep = 8) {
                return set(src_[n_src_++], name, t, blk, rep);
        }
        template <class Tensor, class Params> Call &binary(const Tensor &d, const Tensor &a, const Tensor &b, const Params &p) {
                return out(d, p.dstBlkStride, p.dstRepStride)
                        .in("src0", a, p.src0BlkStride, p.src0RepStride)
                        .in("src1", b, p.src1BlkStride, p.src1RepStride);
        }
        /* Mask bits, LSB first: written by a compare, read by a select. */
        template <class Tensor> Call &bits_out(const Tensor &t) { return set(dst_, "dst", t, 1, 8); }
        template <class Tensor> Call &bits_in(const Tensor &t) {
                has_bits_ = true;
                return set(bits_, "selMask", t, 1, 8);
        }
        /* Reductions: n results per repeat, `stride` elements apart; values with an index; or the first elements only. */
        template <class Tensor> Call &reduce_out(const Tensor &t, int n, uint32_t align, int stride) {
                set(dst_, "dst", t, 1, stride * static_cast<int>(sizeof(*t.p_)));
                dst_.loose = true;
                dst_.n_out = static_cast<uint16_t>(n);
                dst_align_ = n == 8 ? 8 * align : n > 8 ? twin::BLOCK : align;
                return *this;
        }
        template <class Tensor> Call &extreme_out(const Tensor &t, ReduceOrder order, int stride) {
                bool pair = order == ReduceOrder::ORDER_VALUE_INDEX || order == ReduceOrder::ORDER_INDEX_VALUE;
                uint32_t elem = sizeof(*t.p_), index = order == ReduceOrder::ORDER_ONLY_INDEX ? 4 / elem : 1;
                reduce_out(t, pair ? 2 : static_cast<int>(index), elem, stride * static_cast<int>(pair ? 2 : index));
                dst_align_ = pair ? 2 * elem : order == ReduceOrder::ORDER_ONLY_INDEX ? 4 : elem;
                return *this;
        }
        template <class Tensor> Call &first_out(const Tensor &t, int n) { return reduce_out(t, n, sizeof(*t.p_), 0); }
        template <class Tensor> Call &scratch(const Tensor &t, int n) {
                bounds(op_, "sharedTmpBuffer", t.buf_, static_cast<uint64_t>(n) * sizeof(*t.p_), t.bytes_);
                return *this;
        }
        /* The scalar unit waits for the result. */
        Call &stall() {
                stall_ = true;
                return *this;
        }
        template <class Tensor> Call &table(const Tensor &t, uint32_t base) {
                table_base_ = base;
                has_table_ = true;
                return set(table_, "src", t, 1, 8);
        }
        Call &pattern(int pattern, uint32_t n, uint64_t *kept) {
                if (pattern < 0 || pattern > 7)
                        fail("%s: pattern %d", op_, pattern);
                pattern_ = pattern;
                per_repeat_ = n;
                kept_ = kept;
                return *this;
        }
        Call &cast_mode(unsigned modes, RoundMode mode) {
                static const char *const names[] = {"NONE", "RINT", "FLOOR", "CEIL", "ROUND", "TRUNC", "ODD"};
                if (!(modes >> static_cast<unsigned>(mode) & 1))
                        fail("%s: RoundMode::CAST_%s does not exist for these types", op_, names[static_cast<unsigned>(mode)]);
                return *this;
        }
        Call &cmp_mode(uint32_t elem, bool integer, CMPMODE mode, uint32_t count) {
                if (integer && mode != CMPMODE::EQ)
                        fail("%s: int32_t compares with CMPMODE::EQ only", op_);
                if (count * elem % twin::REPEAT)
                        fail("%s: %u elements are %u bytes, no multiple of %u", op_, count, count * elem, twin::REPEAT);
                return *this;
        }
        Call &select_mode(SELMODE mode, bool scalar) {
                if (scalar != (mode == SELMODE::VSEL_TENSOR_SCALAR_MODE))
                        fail("%s: the mode does not go with a %s as second source", op_, scalar ? "scalar" : "tensor");
                spr_ = mode == SELMODE::VSEL_CMPMASK_SPR;
                return *this;
        }

        bool count(int32_t n);
        template <class M> bool repeat(const M &m, int rep);
        bool packed(uint32_t rep);

      private:
        template <class Tensor> Call &set(Operand &o, const char *name, const Tensor &t, int blk, int rep) {
                o = Operand{name, counting() ? 0 : offset_of(t), t.bytes_, t.buf_, static_cast<uint8_t>(sizeof(*t.p_)), blk, rep, false, 0};
                return *this;
        }
        static uint32_t place(const Operand &o, int r, int i) {
                int per = static_cast<int>(twin::BLOCK) / o.elem;
                return o.offset + static_cast<uint32_t>((r * o.rep + i / per * o.blk) * static_cast<int>(twin::BLOCK) + i % per * o.elem);
        }
        int lanes() const {
                int wide = kind_ == COMPARE || kind_ == REDUCE || kind_ == FILL ? 1 : dst_.elem;
                for (uint32_t i = 0; i < n_src_; i++)
                        wide = wide < src_[i].elem ? src_[i].elem : wide;
                if (kind_ == FILL || kind_ == SPREAD || kind_ == GATHER)
                        wide = dst_.elem;
                return static_cast<int>(twin::REPEAT) / wide;
        }
        void charge(uint64_t n);
        void check_reach(const Operand &o, int64_t n, int rep, int top, bool flat) const;
        void check_overlap(uint32_t to, uint32_t n_to, const Operand &dst, const Operand &src, uint32_t from, uint32_t n_from) const;
        void run(int r, int i, int n, int flat_at); /* one run of elements: order and poison */
        void run_bits(uint32_t dst_byte, int bit, int r, int i, int n);
        void run_gather(uint32_t to, uint32_t offsets, int n);
        void run_spread(int rep);
        void source(const Operand &o, uint32_t at, uint32_t bytes) const { touch(V, op_, o.name, o.buf, at, bytes, false); }
        void result(uint32_t at, uint32_t bytes) const { touch(V, op_, "dst", dst_.buf, at, bytes, true); }
        void refuse_poison(const Operand &o, uint32_t at, uint32_t bytes, const char *what) const {
                if (poisoned(at, bytes))
                        fail("%s: %s (%s, byte %u): %s", op_, o.name, where(o.buf).text, at + first_poisoned(at, bytes), what);
        }
        bool finish(uint64_t cost_n) {
                (void)cost_n;
                if (stall_)
                        join(state().clock[S], state().clock[V]);
                return !counting();
        }

        const char *op_;
        Kind kind_;
        bool has_bits_ = false, has_table_ = false, spr_ = false, stall_ = false;
        uint8_t n_src_ = 0;
        uint32_t dst_align_ = 32, table_base_ = 0, per_repeat_ = 0;
        int pattern_ = 0;
        uint64_t *kept_ = nullptr;
        Operand dst_{}, src_[3]{}, bits_{}, table_{};
};

/* Calls without a published figure count as the nearest kind. */
inline __attribute__((noinline)) void Call::charge(uint64_t n) {
        bool unary = n_src_ <= 1 && (kind_ == ELEM || kind_ == BITS || kind_ == FILL || kind_ == COPY);
        state().stats.n_vector_calls++;
        begin(V, vector_cycles(unary, n_src_ ? src_[0].elem : dst_.elem, dst_.elem, n));
}

/* Reach of an operand: count form n elements from its start, repeat form up to element top of the last repeat. */
inline __attribute__((noinline)) void Call::check_reach(const Operand &o, int64_t n, int rep, int top, bool flat) const {
        int64_t bytes;
        if (o.loose)
                bytes = (flat || o.rep == 0 ? 0 : static_cast<int64_t>(rep - 1) * o.rep) + o.n_out * o.elem;
        else if (flat)
                bytes = n * o.elem;
        else
                bytes = static_cast<int64_t>(place(o, rep - 1, top)) - o.offset + o.elem;
        bounds(op_, o.name, o.buf, static_cast<uint64_t>(bytes), o.bytes);
        if (!counting())
                aligned(op_, o.name, o.buf, o.offset, &o == &dst_ ? dst_align_ : twin::BLOCK);
}

inline void Call::check_overlap(uint32_t to, uint32_t n_to, const Operand &dst, const Operand &src, uint32_t from, uint32_t n_from) const {
        bool apart = to + n_to <= from || from + n_from <= to, same = to == from && n_to == n_from;
        (void)dst;
        if (!apart && !same)
                fail("%s: dst and %s overlap in part (%s, bytes %u..%u and %u..%u)", op_, src.name, where(src.buf).text, to, to + n_to - 1,
                     from, from + n_from - 1);
}

/* Mask bits from `bit` of dst_byte on, for n elements from element i of repeat r of the sources (r < 0: count form). */
inline void Call::run_bits(uint32_t dst_byte, int bit, int r, int i, int n) {
        State &s = state();
        (void)bit;
        for (uint32_t k = 0; k < n_src_; k++)
                source(src_[k], r < 0 ? src_[k].offset + static_cast<uint32_t>(i * src_[k].elem) : place(src_[k], r, i),
                       static_cast<uint32_t>(n * src_[k].elem));
        uint32_t bytes = static_cast<uint32_t>(n + 7) / 8;
        result(dst_byte, bytes);
        for (uint32_t b = 0; b < bytes; b++) {
                uint8_t v = 0;
                for (int k = 0; k < 8 && static_cast<int>(b * 8) + k < n; k++)
                        for (uint32_t q = 0; q < n_src_; q++) {
                                int e = i + static_cast<int>(b * 8) + k;
                                uint32_t at = r < 0 ? src_[q].offset + static_cast<uint32_t>(e * src_[q].elem) : place(src_[q], r, e);
                                v |= poisoned(at, src_[q].elem) ? static_cast<uint8_t>(1u << k) : 0;
                        }
                s.shadow[dst_byte + b] = v;
        }
}

inline void Call::run_gather(uint32_t to, uint32_t offsets, int n) {
        source(src_[0], offsets, static_cast<uint32_t>(n) * 4);
        refuse_poison(src_[0], offsets, static_cast<uint32_t>(n) * 4, "an undefined offset");
        result(to, static_cast<uint32_t>(n * dst_.elem));
        for (int k = 0; k < n; k++) {
                uint32_t o;
                memcpy(&o, twin::block().ub + offsets + k * 4, 4);
                uint64_t at = static_cast<uint64_t>(o) + table_base_;
                if (o % dst_.elem)
                        fail("%s: offset %u of element %d is no multiple of %u", op_, o, k, dst_.elem);
                if (at + dst_.elem > table_.bytes)
                        fail("%s: offset %u of element %d leaves src (%s) of %u bytes", op_, o, k, where(table_.buf).text, table_.bytes);
                touch(V, op_, "src", table_.buf, table_.offset + static_cast<uint32_t>(at), dst_.elem, false);
                memcpy(state().shadow + to + k * dst_.elem, state().shadow + table_.offset + at, dst_.elem);
        }
}

/* n elements from element i of repeat r, contiguous in every operand; flat_at >= 0: count form, elements from flat_at. */
inline __attribute__((noinline)) void Call::run(int r, int i, int n, int flat_at) {
        State &s = state();
        auto at = [&](const Operand &o) { return flat_at >= 0 ? o.offset + static_cast<uint32_t>(flat_at * o.elem) : place(o, r, i); };
        uint32_t to = at(dst_), out = static_cast<uint32_t>(n * dst_.elem);
        if (kind_ == GATHER)
                return run_gather(to, at(src_[0]), n);
        bool clean = true;
        for (uint32_t k = 0; k < n_src_; k++) {
                source(src_[k], at(src_[k]), static_cast<uint32_t>(n * src_[k].elem));
                clean &= !poisoned(at(src_[k]), static_cast<uint32_t>(n * src_[k].elem));
        }
        if (kind_ == REDUCE) {
                for (uint32_t k = 0; k < n_src_; k++)
                        refuse_poison(src_[k], at(src_[k]), static_cast<uint32_t>(n * src_[k].elem), "undefined bytes reach a reduction");
                return;
        }
        uint32_t row = flat_at >= 0 || spr_ ? 0 : static_cast<uint32_t>(r * lanes() / 8);
        uint32_t first_bit = static_cast<uint32_t>(spr_ && flat_at >= 0 ? flat_at % lanes() : flat_at >= 0 ? flat_at : i);
        if (kind_ == SELECT && has_bits_) {
                uint32_t from = spr_ ? bits_.offset : bits_.offset + row + first_bit / 8;
                uint32_t bytes = spr_ ? static_cast<uint32_t>(lanes()) / 8 : (first_bit % 8 + static_cast<uint32_t>(n) + 7) / 8;
                source(bits_, from, bytes);
                clean &= !poisoned(from, bytes);
        }
        result(to, out);
        if (clean || kind_ == FILL || kind_ == TILE)
                return set_shadow(to, out, clean || kind_ == FILL ? 0 : 0xff);
        for (int k = 0; k < n; k++) {
                uint8_t *d = s.shadow + to + k * dst_.elem, any = 0;
                uint32_t a = at(src_[0]) + static_cast<uint32_t>(k * src_[0].elem),
                         b = n_src_ > 1 ? at(src_[1]) + static_cast<uint32_t>(k * src_[1].elem) : a;
                if (kind_ == BITS || kind_ == COPY) {
                        for (uint32_t x = 0; x < dst_.elem; x++)
                                d[x] = s.shadow[a + x] | s.shadow[b + x];
                        continue;
                }
                if (kind_ == SELECT) {
                        uint32_t bit = first_bit + static_cast<uint32_t>(k);
                        bit = spr_ ? bit % static_cast<uint32_t>(lanes()) : bit;
                        uint32_t byte = bits_.offset + row + bit / 8;
                        bool unknown = s.shadow[byte] >> (bit % 8) & 1, takes_a = twin::block().ub[byte] >> (bit % 8) & 1;
                        any = unknown ? 1 : takes_a ? poisoned(a, dst_.elem) : n_src_ > 1 && poisoned(b, dst_.elem);
                } else {
                        for (uint32_t q = 0; q < n_src_; q++)
                                any |= poisoned(at(src_[q]) + static_cast<uint32_t>(k * src_[q].elem), src_[q].elem);
                }
                memset(d, any ? 0xff : 0, dst_.elem);
        }
}

inline __attribute__((noinline)) bool Call::count(int32_t n) {
        if (n < 0)
                fail("%s: count %d", op_, n);
        charge(static_cast<uint64_t>(n));
        if (n == 0)
                return !counting();
        int n_bits = (n + 7) / 8 * 8;
        if (kind_ == COMPARE)
                bounds(op_, "dst", dst_.buf, static_cast<uint64_t>(n_bits) / 8, dst_.bytes);
        else
                check_reach(dst_, n, 1, 0, true);
        for (uint32_t k = 0; k < n_src_; k++)
                check_reach(src_[k], n, 1, 0, true);
        if (has_bits_)
                bounds(op_, "selMask", bits_.buf, static_cast<uint64_t>(spr_ ? 16 : n_bits / 8), bits_.bytes);
        if (counting())
                return finish(0);
        if (has_bits_)
                aligned(op_, "selMask", bits_.buf, bits_.offset, twin::BLOCK);
        if (kind_ == COMPARE) {
                aligned(op_, "dst", dst_.buf, dst_.offset, twin::BLOCK);
                run_bits(dst_.offset, 0, -1, 0, n);
                return finish(0);
        }
        for (uint32_t k = 0; k < n_src_ && kind_ != REDUCE; k++)
                check_overlap(dst_.offset, static_cast<uint32_t>(n * dst_.elem), dst_, src_[k], src_[k].offset,
                              static_cast<uint32_t>(n * src_[k].elem));
        if (has_table_)
                check_overlap(dst_.offset, static_cast<uint32_t>(n * dst_.elem), dst_, table_, table_.offset, table_.bytes);
        run(0, 0, n, 0);
        if (kind_ == REDUCE) {
                result(dst_.offset, static_cast<uint32_t>(dst_.n_out * dst_.elem));
                set_shadow(dst_.offset, static_cast<uint32_t>(dst_.n_out * dst_.elem), 0);
        }
        return finish(0);
}

/* Element b of each group of eight fills block b. */
inline void Call::run_spread(int rep) {
        for (int r = 0; r < rep; r++)
                for (int b = 0; b < 8; b++) {
                        uint32_t from = src_[0].offset + static_cast<uint32_t>((r * 8 + b) * src_[0].elem);
                        uint32_t to = dst_.offset + static_cast<uint32_t>(r * dst_.rep + b * dst_.blk) * twin::BLOCK;
                        source(src_[0], from, src_[0].elem);
                        check_overlap(to, twin::BLOCK, dst_, src_[0], from, src_[0].elem);
                        result(to, twin::BLOCK);
                        set_shadow(to, twin::BLOCK, poisoned(from, src_[0].elem) ? 0xff : 0);
                }
}

template <class M> inline __attribute__((noinline)) bool Call::repeat(const M &m, int rep) {
        int width = lanes(), top = -1;
        if (rep < 1 || rep > 255)
                fail("%s: repeat %d is outside 1..255 (a uint8_t: 256 becomes nothing)", op_, rep);
        if (m.n > width)
                fail("%s: mask of %d elements, at most %d for these types", op_, m.n, width);
        for (int i = 0; i < width; i++)
                top = twin::mask_has(m, i) ? i : top;
        charge(static_cast<uint64_t>(rep) * static_cast<uint64_t>(width));
        if (top < 0)
                return !counting();
        if (kind_ == REDUCE && dst_.n_out == 8) /* blocks without an active element give nothing */
                dst_.n_out = static_cast<uint16_t>(top / (width / 8) + 1);
        if (kind_ == SPREAD) {
                for (uint32_t k = 0; k < n_src_; k++)
                        bounds(op_, src_[k].name, src_[k].buf, static_cast<uint64_t>(rep) * 8 * src_[k].elem, src_[k].bytes);
        } else {
                for (uint32_t k = 0; k < n_src_; k++)
                        check_reach(src_[k], 0, rep, top, false);
        }
        if (kind_ == COMPARE)
                bounds(op_, "dst", dst_.buf, static_cast<uint64_t>(rep) * static_cast<uint64_t>(width) / 8, dst_.bytes);
        else
                check_reach(dst_, 0, rep, kind_ == SPREAD ? width - 1 : top, false);
        if (has_bits_)
                bounds(op_, "selMask", bits_.buf, static_cast<uint64_t>(spr_ ? 16 : rep * width / 8), bits_.bytes);
        if (counting())
                return finish(0);
        if (kind_ == SPREAD) {
                run_spread(rep);
                return finish(0);
        }
        int run_length = static_cast<int>(twin::BLOCK) / (static_cast<int>(twin::REPEAT) / width);
        twin::walk(width, run_length, m, rep, [&](int r, int i, int n) {
                if (kind_ == COMPARE)
                        return run_bits(dst_.offset + static_cast<uint32_t>((r * width + i) / 8), 0, r, i, n);
                for (uint32_t k = 0; k < n_src_ && kind_ != REDUCE; k++)
                        check_overlap(place(dst_, r, i), static_cast<uint32_t>(n * dst_.elem), dst_, src_[k], place(src_[k], r, i),
                                      static_cast<uint32_t>(n * src_[k].elem));
                run(r, i, n, -1);
        });
        for (int r = 0; kind_ == REDUCE && r < (dst_.rep ? rep : 1); r++) {
                uint32_t to = dst_.offset + static_cast<uint32_t>(r * dst_.rep), n = static_cast<uint32_t>(dst_.n_out * dst_.elem);
                result(to, n);
                set_shadow(to, n, 0);
        }
        return finish(0);
}

/* GatherMask: packs the kept elements to dst. */
inline __attribute__((noinline)) bool Call::packed(uint32_t rep) {
        State &s = state();
        const Operand &a = src_[0];
        charge(static_cast<uint64_t>(rep) * per_repeat_);
        bool by_mask = pattern_ == 0;
        uint32_t kept = 0, n = per_repeat_;
        auto keeps = [&](uint32_t r, uint32_t i) {
                if (!by_mask)
                        return pattern_ == 1   ? i % 2 == 0
                               : pattern_ == 2 ? i % 2 == 1
                               : pattern_ == 7 ? true
                                               : i % 4 == static_cast<uint32_t>(pattern_) - 3;
                uint32_t at = src_[1].offset + r * static_cast<uint32_t>(src_[1].rep) * twin::BLOCK + i / 8;
                return (twin::block().ub[at] >> (i % 8) & 1) != 0;
        };
        if (rep && n)
                check_reach(a, 0, static_cast<int>(rep), static_cast<int>(n) - 1, false);
        if (by_mask && rep && n)
                bounds(op_, "src1Pattern", src_[1].buf,
                       static_cast<uint64_t>(rep - 1) * static_cast<uint64_t>(src_[1].rep) * twin::BLOCK + (n + 7) / 8, src_[1].bytes);
        if (counting()) {
                for (uint32_t i = 0; i < n; i++)
                        kept += by_mask || keeps(0, i);
                *kept_ = static_cast<uint64_t>(kept) * rep;
                return finish(0);
        }
        if (by_mask)
                for (uint32_t r = 0; r < rep; r++) {
                        uint32_t at = src_[1].offset + r * static_cast<uint32_t>(src_[1].rep) * twin::BLOCK;
                        source(src_[1], at, (n + 7) / 8);
                        refuse_poison(src_[1], at, (n + 7) / 8, "an undefined pattern");
                }
        for (uint32_t r = 0; r < rep; r++)
                for (uint32_t i = 0; i < n; i++) {
                        if (!keeps(r, i))
                                continue;
                        uint32_t from = place(a, static_cast<int>(r), static_cast<int>(i)), to = dst_.offset + kept++ * dst_.elem;
                        bounds(op_, "dst", dst_.buf, static_cast<uint64_t>(kept) * dst_.elem, dst_.bytes);
                        source(a, from, a.elem);
                        if (to > from && a.offset == dst_.offset)
                                fail("%s: dst overtakes src0 in the same buffer", op_);
                        result(to, dst_.elem);
                        memmove(s.shadow + to, s.shadow + from, dst_.elem);
                }
        aligned(op_, "dst", dst_.buf, dst_.offset, twin::BLOCK);
        aligned(op_, "src0", a.buf, a.offset, twin::BLOCK);
        return finish(0);
}
} // namespace AscendC::chk
