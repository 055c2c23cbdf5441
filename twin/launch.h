/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launcher: AF_TWIN_ENTRY(kernel) after a kernel's source defines the symbol that runtime/host_kernel.c looks for. The entry's
 * type says how its arguments are made: pointers in order from args, everything else from `tiling`, each field at its alignment.
 */
#pragma once

#include <stdlib.h>
#include <ucontext.h>

#include "twin/pipe.h"

namespace AscendC::twin {
inline constexpr size_t FIBER_STACK =
        (AF_TWIN_CHECKED ? 4096 : 1024) * 1024; /* of long kernels without optimisation; only what is used is touched */

struct Fiber {
        ucontext_t context;
        Block block;
        bool done;
};
struct Group { /* the blocks of a launch that meet */
        ucontext_t scheduler;
        Fiber *fibers, *running;
        uint8_t *memory; /* per fiber: its unified buffer, its stack */
        uint32_t n;
        bool failed;
        void (*body)(const Launch &);
        const Launch *launch;
};

inline void sync_all_blocks() {
        Group *g = static_cast<Group *>(block().fiber);
        if (g)
                swapcontext(&g->running->context, &g->scheduler);
}

inline int refuse(const Launch &l, const char *text) {
        if (l.error && l.error_size) {
                size_t n = strlen(text) < l.error_size - 1 ? strlen(text) : l.error_size - 1;
                memcpy(l.error, text, n);
                l.error[n] = 0;
        }
        return 1;
}

/* What a call of K needs from the launch: pointers by number, other fields by offset. */
template <class T> inline constexpr bool pointer = false;
template <class T> inline constexpr bool pointer<T *> = true;

template <class... P> struct Layout {
        static constexpr uint32_t N = sizeof...(P);
        struct Slot {
                uint32_t pointer, offset;
        };
        struct Table {
                Slot slot[N ? N : 1];
                uint32_t pointers, bytes;
        };
        static constexpr Table make() {
                constexpr bool is_pointer[] = {pointer<P>..., false};
                constexpr uint32_t size[] = {static_cast<uint32_t>(sizeof(P))..., 0}, align[] = {static_cast<uint32_t>(alignof(P))..., 1};
                Table t{};
                for (uint32_t i = 0; i < N; i++) {
                        if (is_pointer[i]) {
                                t.slot[i].pointer = t.pointers++;
                                continue;
                        }
                        uint32_t a = align[i] < 4 ? 4 : align[i];
                        t.bytes = (t.bytes + a - 1) / a * a;
                        t.slot[i].offset = t.bytes;
                        t.bytes += size[i];
                }
                return t;
        }
        static constexpr Table table = make();
};

template <uint32_t... I> struct Seq {};
template <uint32_t N, uint32_t... I> struct MakeSeq : MakeSeq<N - 1, N - 1, I...> {};
template <uint32_t... I> struct MakeSeq<0, I...> { using type = Seq<I...>; };

template <class P> AF_TWIN_INLINE P argument(const Launch &l, uint32_t pointer_index, uint32_t offset) {
        if constexpr (pointer<P>) {
                return static_cast<P>(l.args[pointer_index]);
        } else {
                P v;
                memcpy(&v, static_cast<const uint8_t *>(l.tiling) + offset, sizeof(P));
                return v;
        }
}
template <class... P, uint32_t... I> AF_TWIN_INLINE void call(void (*kernel)(P...), const Launch &l, Seq<I...>) {
        using L = Layout<P...>;
        kernel(argument<P>(l, L::table.slot[I].pointer, L::table.slot[I].offset)...);
}

inline void block_init(Block &b, const Launch &l, uint32_t idx, uint8_t *ub, void *fiber) {
        b.ub = ub;
        b.idx = idx;
        b.num = l.block_dim;
        b.fiber = fiber;
        b.pipe = nullptr;
        b.saturate = true;
        b.atomic = Atomic::NONE;
        b.launch = &l;
        b.checks = nullptr;
}

#if AF_TWIN_CHECKED
[[noreturn]] inline void leave_block() {
        Group *g = static_cast<Group *>(block().fiber);
        g->failed = true;
        swapcontext(&g->running->context, &g->scheduler);
        abort();
}
/* After all blocks ran to a meeting or their end: all are at the same, and go on at the time of the last. */
inline void check_round(Group &g, uint32_t left) {
        double last = 0;
        for (uint32_t i = 0; i < g.n && !g.failed; i++) {
                chk::State &s = *static_cast<chk::State *>(g.fibers[i].block.checks);
                if (left && g.fibers[i].done) {
                        char text[80];
                        snprintf(text, sizeof(text), "block %u: ends while others wait in SyncAll, which would hang", i);
                        refuse(*g.launch, text);
                        g.failed = true;
                }
                last = s.clock[chk::S].time > last ? s.clock[chk::S].time : last;
        }
        for (uint32_t i = 0; left && i < g.n; i++)
                for (uint32_t p = 0; p < chk::N_PIPES; p++)
                        static_cast<chk::State *>(g.fibers[i].block.checks)->clock[p].time = last;
}
#endif
inline void fiber_main(unsigned high, unsigned low) {
        Group *g = reinterpret_cast<Group *>(static_cast<uint64_t>(high) << 32 | low);
        Fiber *f = g->running;
        g->body(*g->launch);
        AF_CHK_DO(chk::state_check_end());
        f->done = true;
        swapcontext(&f->context, &g->scheduler);
}
inline void group_deinit(Group &g) {
        for (uint32_t i = 0; g.fibers && i < g.n; i++)
                AF_CHK_DO(chk::state_free(static_cast<chk::State *>(g.fibers[i].block.checks)));
        free(g.memory);
        free(g.fibers);
}
inline bool fiber_init(Group &g, uint32_t i, uint32_t block_idx) {
        Fiber &f = g.fibers[i];
        uint8_t *ub = g.memory + i * (UB_BYTES + FIBER_STACK);
        uint64_t p = reinterpret_cast<uint64_t>(&g);
        block_init(f.block, *g.launch, block_idx, ub, &g);
#if AF_TWIN_CHECKED
        memset(ub, 0xff, UB_BYTES);
        f.block.checks = chk::state_new();
        if (!f.block.checks)
                return false;
#endif
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = ub + UB_BYTES;
        f.context.uc_stack.ss_size = FIBER_STACK;
        makecontext(&f.context, reinterpret_cast<void (*)()>(fiber_main), 2, static_cast<unsigned>(p >> 32), static_cast<unsigned>(p));
        return true;
}
inline void resume(Group &g, Fiber &f) {
        g.running = &f;
        block_now = &f.block;
        swapcontext(&g.scheduler, &f.context);
}
/* Blocks first..first+n as fibers of this thread, resumed in turn from meeting to meeting. */
inline int run_group(const Launch &l, void (*body)(const Launch &), uint32_t first, uint32_t n) {
        Group g{};
        g.n = n;
        g.body = body;
        g.launch = &l;
        g.memory = static_cast<uint8_t *>(aligned_alloc(512, (UB_BYTES + FIBER_STACK) * n));
        g.fibers = static_cast<Fiber *>(calloc(n, sizeof(Fiber)));
        bool ready = g.memory && g.fibers;
        for (uint32_t i = 0; ready && i < n; i++)
                ready = fiber_init(g, i, first + i);
        for (uint32_t left = ready ? n : 0; left > 0 && !g.failed;) {
                for (uint32_t i = 0; i < n && !g.failed; i++)
                        if (!g.fibers[i].done) {
                                resume(g, g.fibers[i]);
                                left -= g.fibers[i].done;
                        }
                AF_CHK_DO(check_round(g, left));
        }
        for (uint32_t i = 0; ready && !g.failed && l.stats && i < n; i++)
                AF_CHK_DO(chk::state_account(*static_cast<chk::State *>(g.fibers[i].block.checks), l.stats));
        bool failed = g.failed;
        group_deinit(g);
        return !ready ? refuse(l, "no memory for the blocks") : failed;
}
#if AF_TWIN_CHECKED
/* Each block on a stack of its own, which a broken rule leaves for good. */
inline int run_blocks(const Launch &l, void (*body)(const Launch &)) {
        int r = 0;
        for (uint32_t i = 0; i < l.n_blocks && r == 0; i++)
                r = run_group(l, body, l.first_block + i, 1);
        return r;
}
#else
inline int run_blocks(const Launch &l, void (*body)(const Launch &)) {
        uint8_t *ub = static_cast<uint8_t *>(aligned_alloc(512, UB_BYTES));
        if (!ub)
                return refuse(l, "no memory for the unified buffer");
        Block b;
        block_now = &b;
        for (uint32_t i = 0; i < l.n_blocks; i++) {
                block_init(b, l, l.first_block + i, ub, nullptr);
                body(l);
        }
        free(ub);
        return 0;
}
#endif

/* Arithmetic as numeric/ needs it, whatever the caller's thread has set. */
struct RoundingScope {
#if defined(__SSE__)
        unsigned saved;
        RoundingScope() : saved(__builtin_ia32_stmxcsr()) {
                __builtin_ia32_ldmxcsr(0x1f80);
        }
        ~RoundingScope() {
                __builtin_ia32_ldmxcsr(saved);
        }
#elif defined(__aarch64__)
        uint64_t saved, plain = 0;
        RoundingScope() {
                __asm__ volatile("mrs %0, fpcr" : "=r"(saved));
                __asm__ volatile("msr fpcr, %0" : : "r"(plain));
        }
        ~RoundingScope() {
                __asm__ volatile("msr fpcr, %0" : : "r"(saved));
        }
#endif
};

template <class... P> AF_TWIN_INLINE int launch(const Launch *l, void (*kernel)(P...), void (*body)(const Launch &)) {
        (void)kernel;
        using L = Layout<P...>;
        if (l->n_args != L::table.pointers)
                return refuse(*l, "the kernel takes another number of pointers");
        if (L::table.bytes && !l->tiling)
                return refuse(*l, "the kernel takes values that were not given");
        if (l->block_dim == 0 || l->block_dim > 65535 || l->first_block + static_cast<uint64_t>(l->n_blocks) > l->block_dim)
                return refuse(*l, "no such range of blocks");
        RoundingScope scope;
        Block *outer = block_now;
        bool meet = uses_sync_all && l->block_dim > 1;
        if (l->stats)
                memset(l->stats, 0, sizeof(*l->stats));
#if AF_TWIN_CHECKED
        /* Counting touches no memory: absent pointers stand as addresses far from each other. */
        void *stand_in[L::table.pointers + 1];
        Launch counted = *l;
        for (uint32_t i = 0; i < L::table.pointers; i++)
                stand_in[i] = l->count_only && !l->args[i] ? reinterpret_cast<void *>(static_cast<uintptr_t>(i + 1) << 44) : l->args[i];
        counted.args = stand_in;
        l = &counted;
#endif
        int r = meet && l->n_blocks != l->block_dim ? refuse(*l, "a kernel whose blocks meet needs all of them in one launch")
                : meet                              ? run_group(*l, body, 0, l->block_dim)
                                                    : run_blocks(*l, body);
        block_now = outer;
        return r;
}
} // namespace AscendC::twin

#define AF_TWIN_ENTRY(kernel)                                                                                                              \
        namespace AscendC::twin {                                                                                                          \
        template <class... P> static void body_of(void (*k)(P...), const Launch &l) {                                                      \
                call(k, l, typename MakeSeq<sizeof...(P)>::type());                                                                        \
        }                                                                                                                                  \
        static void entry_body(const Launch &l) {                                                                                          \
                body_of(&::kernel, l);                                                                                                     \
        }                                                                                                                                  \
        }                                                                                                                                  \
        extern "C" __attribute__((visibility("default"))) int af_twin_launch_v1(const AscendC::twin::Launch *l) {                          \
                return AscendC::twin::launch(l, &::kernel, AscendC::twin::entry_body);                                                     \
        }
