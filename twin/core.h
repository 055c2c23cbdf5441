/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one block (one vector core) is while it runs: its unified buffer and registers. Blocks of a launch run one after another in
 * the calling thread; where a kernel meets in SyncAll they are fibers (launch.h).
 */
#pragma once

#include "twin/mask.h"

namespace AscendC {
class TPipe;

namespace twin {
inline constexpr uint32_t UB_BYTES = 192 * 1024;
inline constexpr uint32_t UB_USABLE = 184 * 1024 - 256; /* the calls' own scratch lies above */
inline constexpr uint32_t BLOCK = 32, REPEAT = 256;

/* Mirrors struct af_twin_stats and struct af_twin_launch of runtime/host_kernel.h (a test compares the layouts). */
struct Stats {
        uint64_t mte2_bytes, mte3_bytes, scalar_bytes;
        uint64_t mte2_cycles, v_cycles, mte3_cycles, s_cycles, total_cycles;
        uint64_t n_vector_calls, n_dma_calls;
};
struct Launch {
        void *const *args;
        const uint64_t *arg_bytes;
        uint32_t n_args;
        const void *tiling;
        uint32_t block_dim, first_block, n_blocks, count_only;
        Stats *stats;
        char *error;
        uint32_t error_size;
};

enum class Atomic : uint8_t { NONE, ADD, MAX, MIN };

struct Block {
        uint8_t *ub;
        int64_t idx, num;
        void *fiber;         /* while blocks are fibers */
        TPipe *pipe;         /* the newest one */
        uint8_t cmpmask[16]; /* the compare register */
        bool saturate;       /* half and bfloat16 results stop at the largest finite value, NaN gives 0 */
        Atomic atomic;
        const Launch *launch;
        void *checks; /* checked policy's state */
};

static __thread Block *block_now __attribute__((unused));

AF_TWIN_INLINE Block &block() {
        return *block_now;
}
/* Whether any kernel in this object calls SyncAll: set while the object is loaded (sync.h). */
static bool uses_sync_all __attribute__((unused));
} // namespace twin

AF_TWIN_INLINE int64_t GetBlockIdx() {
        return twin::block().idx;
}
AF_TWIN_INLINE int64_t GetBlockNum() {
        return twin::block().num;
}
AF_TWIN_INLINE int64_t GetSubBlockIdx() {
        return 0;
}
/* On or off for results of type half and bfloat16; on when a kernel starts. */
template <SaturationMode mode> AF_TWIN_INLINE void SetSaturationFlag(bool on) {
        static_assert(mode == SaturationMode::FLOAT || mode == SaturationMode::INT || mode == SaturationMode::CAST,
                      "SetSaturationFlag: mode");
        if (mode == SaturationMode::FLOAT)
                twin::block().saturate = on;
}
} // namespace AscendC

#if AF_TWIN_CHECKED
#include "twin/checked.h"
/* Checks, counts; leaves the call where nothing is to be computed. */
#define AF_CHK(call)                                                                                                                       \
        do {                                                                                                                               \
                if (!(call))                                                                                                               \
                        return;                                                                                                            \
        } while (0)
#define AF_CHK_DO(call) (call)
#else
#define AF_CHK(call)
#define AF_CHK_DO(call)
#endif
