/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room in the data of a hot area: extents in the order of their addresses, and a hand that goes round. To make room the hand looks for
 * neighbours, free or not used since it last came by, that are long enough together; what was used meanwhile has its mark taken and is
 * passed over. Nothing is moved, and one call looks at a bounded number of extents. Private memory of the writer; sizes in units.
 */
#pragma once

#include "base/macros.h"

#include <stdbool.h>

struct af_hot_extent {
        uint32_t at, size;
        uint32_t owner;      /* AF_NONE: free */
        uint32_t prev, next; /* by address; AF_NONE at the ends. Of an unused item: next unused */
        bool used;           /* since the hand came by */
};
struct af_hot_ring {
        struct af_hot_extent *extents;
        uint32_t n_extents, unused; /* list of unused items */
        uint32_t first, hand;
        uint32_t n_used_units;
};
#define AF_HOT_MAX_STEPS 512u /* extents looked at by one call */

/* Room of n_units for at most n_owners. 0 or -ENOMEM. */
int af_hot_ring_init(struct af_hot_ring *r, uint32_t n_units, uint32_t n_owners) AF_WARN_UNUSED;
void af_hot_ring_deinit(struct af_hot_ring *r);
/*
 * An extent of exactly `size` units for owner, or AF_NONE. With may_evict owners lose theirs: evict is told each before the call returns;
 * without, only room that is free where the hand stands is given.
 */
uint32_t af_hot_ring_alloc(struct af_hot_ring *r, uint32_t size, uint32_t owner, bool may_evict,
                           void (*evict)(void *userdata, uint32_t owner), void *userdata) AF_WARN_UNUSED;
void af_hot_ring_free(struct af_hot_ring *r, uint32_t extent);
