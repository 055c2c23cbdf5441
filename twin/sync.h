/* SPDX-License-Identifier: Apache-2.0 */
/* Flags, barriers and the meeting of all blocks. In the fast policy calls run in program order, so only SyncAll does anything. */
#pragma once

#include "twin/tensor.h"

namespace AscendC {
namespace twin {
void sync_all_blocks(); /* launch.h */

/* Exists where a kernel uses SyncAll: its initialiser runs when the object is loaded. */
template <int> struct SyncMark { static inline bool used = (uses_sync_all = true); };
} // namespace twin

template <HardEvent event> AF_TWIN_INLINE void SetFlag(int32_t id) {
        AF_CHK_DO(chk::flag_set(event, id));
        (void)id;
}
template <HardEvent event> AF_TWIN_INLINE void WaitFlag(int32_t id) {
        AF_CHK_DO(chk::flag_wait(event, id));
        (void)id;
}
template <pipe_t pipe> AF_TWIN_INLINE void PipeBarrier() {
        AF_CHK_DO(chk::barrier(pipe));
}

/* All blocks meet. Hard form: by the synchronisation engine. */
template <bool isAIVOnly = true> AF_TWIN_INLINE void SyncAll() {
        (void)twin::SyncMark<0>::used;
        AF_CHK_DO(chk::sync_all());
        twin::sync_all_blocks();
}
/* Soft form: by flags in GM, 32 bytes per block, zero at the start; ub: as large. */
template <bool isAIVOnly = true>
AF_TWIN_INLINE void SyncAll(const GlobalTensor<int32_t> &gm, const LocalTensor<int32_t> &ub, const int32_t usedCores = 0) {
        static_assert(isAIVOnly, "SyncAll: the soft form is for vector cores");
        (void)twin::SyncMark<0>::used;
        AF_CHK_DO(chk::sync_all_soft(gm, ub, usedCores));
        twin::sync_all_blocks();
}

template <typename T> AF_TWIN_INLINE void SetAtomicAdd() {
        static_assert(twin::one_of<T, float, half, bfloat16_t, int32_t, int16_t, int8_t>, "SetAtomicAdd: data type");
        twin::block().atomic = twin::Atomic::ADD;
}
template <typename T> AF_TWIN_INLINE void SetAtomicMax() {
        static_assert(twin::one_of<T, float, half, bfloat16_t, int32_t, int16_t, int8_t>, "SetAtomicMax: data type");
        twin::block().atomic = twin::Atomic::MAX;
}
template <typename T> AF_TWIN_INLINE void SetAtomicMin() {
        static_assert(twin::one_of<T, float, half, bfloat16_t, int32_t, int16_t, int8_t>, "SetAtomicMin: data type");
        twin::block().atomic = twin::Atomic::MIN;
}
AF_TWIN_INLINE void SetAtomicNone() {
        twin::block().atomic = twin::Atomic::NONE;
}
} // namespace AscendC
