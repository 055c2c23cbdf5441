/* SPDX-License-Identifier: Apache-2.0 */
/* Byte strings as small numbers: equal strings get equal numbers, in order of first sight. Bytes are compared, not only hashed. */
#pragma once

#include <stdbool.h>

#include "base/arena.h"

struct af_intern_item {
        const uint8_t *bytes;
        uint32_t size, hash;
};
struct af_intern {
        struct af_arena *arena;
        struct af_intern_item *items; /* by number */
        uint32_t n_items, cap_items;
        uint32_t *table, table_size; /* open-addressed, a power of two */
};

/* An empty set whose memory is the arena's; allocates nothing. */
void af_intern_init(struct af_intern *set, struct af_arena *arena);
/* The number of these bytes (copied at first sight). *ret_fresh (may be NULL): seen for the first time. 0 or -ENOMEM. */
int af_intern_put(struct af_intern *set, const void *p, size_t n, uint32_t *ret_number, bool *ret_fresh) AF_WARN_UNUSED;
