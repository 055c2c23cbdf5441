/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads and launches kernels compiled for the CPU twin. The shared object comes from bytes: it is loaded from the caller's own
 * sealed memfd, never from a path that another could change.
 */
#pragma once

#include "base/buf.h"

#define AF_TWIN_LAUNCH_SYMBOL "af_twin_launch_v1"

/* Counters of one launch by the checked twin. */
struct af_twin_stats {
        uint64_t mte2_bytes, mte3_bytes, scalar_bytes;         /* GM traffic, distinct 32-byte sectors per call */
        uint64_t mte2_cycles, v_cycles, mte3_cycles, s_cycles; /* modelled, of the busiest block */
        uint64_t total_cycles;                                 /* modelled timeline of the busiest block */
        uint64_t n_vector_calls, n_dma_calls;
};
struct af_twin_launch {
        void *const *args;         /* GM pointers in the entry's order */
        const uint64_t *arg_bytes; /* extents behind args[i] for bounds checks (checked policy); NULL: unchecked */
        uint32_t n_args;
        const void *tiling; /* POD by value; NULL: none */
        uint32_t block_dim;
        uint32_t first_block, n_blocks; /* the part of the grid to run; kernels that SyncAll need all of it */
        uint32_t count_only;            /* checked: count bytes and cycles without computing; args may be NULL then */
        struct af_twin_stats *stats;    /* may be NULL */
        char *error;                    /* checked: message of the first rule broken; may be NULL */
        uint32_t error_size;
};
/* Signature of AF_TWIN_LAUNCH_SYMBOL: 0, or 1 with error set. */
typedef int (*af_twin_launch_fn)(const struct af_twin_launch *launch);

struct af_host_kernel;
enum { AF_HOST_KERNEL_E_LOAD = 1, AF_HOST_KERNEL_E_CHECK = 2 /* a rule was broken: launch->error */ };
/* Copies the bytes. Thread-safe. 0, -errno, LOAD (*ret_why malloc'd text, may be NULL). */
int af_host_kernel_load(const void *binary, size_t n, struct af_host_kernel **ret_kernel, char **ret_why) AF_WARN_UNUSED;
void af_host_kernel_free(struct af_host_kernel *k);
/* Runs in the caller's thread. */
int af_host_kernel_launch(struct af_host_kernel *k, const struct af_twin_launch *launch) AF_WARN_UNUSED;
