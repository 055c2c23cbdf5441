/* SPDX-License-Identifier: Apache-2.0 */
/* What the host has left for one more job: memory, and slots that all servers of the host share. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"

/*
 * Memory that can be had without swapping, MiB: MemAvailable, or less where a control group (version 2) of ours is nearer to its limit.
 * root stands before /proc and /sys ("" for the host's own). UINT64_MAX where nothing is known.
 */
uint64_t af_memory_available_mib(const char *root);

/* How many processes the kernel has ended for want of memory since it was started; 0 where nothing is known. root: as above. */
uint64_t af_memory_oom_kills(const char *root);

/* Of the jobs of one kind: the largest resident set of late. Rises at once, falls slowly. */
static inline uint64_t af_memory_estimate(uint64_t before_mib, uint64_t peak_mib) {
        return AF_MAX(peak_mib, before_mib - before_mib / 16);
}

/*
 * One of n slots under this name, shared with every process of the network namespace: an abstract socket that nobody else can bind
 * meanwhile. The slot is free again when the descriptor is closed, at the latest with the process: there is no file to be left behind and
 * nothing to be counted wrong. A descriptor, -EAGAIN (all are taken), -errno.
 */
int af_host_slot_take(const char *name, unsigned n) AF_WARN_UNUSED;
