/* SPDX-License-Identifier: Apache-2.0 */
/* Loop trees of groups, built once for all groups that are alike, over all rounds of the fuse pass. Private to compiler/driver. */
#pragma once

#include "compiler/driver/job.h"

struct kernel_entry {
        struct af_kernel *kernel; /* NULL: unfit */
        const char *why;
        uint32_t *values; /* of the group that it was built for, as af_alike numbers them */
        uint32_t first;   /* first such group of the round */
        uint32_t round;
};
struct kernels {
        struct af_intern sets;
        struct kernel_entry *entries; /* per number in sets */
        uint32_t cap_entries, round;
        struct af_arena scratch; /* what the schedule tries */
};

/* Nothing known; memory: the job's arena, and of its own until kernels_deinit. */
void kernels_init(struct kernels *k, struct af_job *job);
void kernels_deinit(struct kernels *k);
/*
 * The kernel of groups[number] with its own arguments into *ret_out: kernel (NULL where it does not fit, with *ret_why) and alike. 0 or
 * -errno.
 */
int kernels_get(struct kernels *k, struct af_job *job, uint32_t number, struct af_kernel_out *ret_out, const char **ret_why) AF_WARN_UNUSED;
/* Bytes that the nodes of a group would move with a kernel each; UINT64_MAX where one has none. 0 or -errno. */
int kernels_apart(struct kernels *k, struct af_job *job, const struct af_group *group, uint64_t *ret_bytes) AF_WARN_UNUSED;
