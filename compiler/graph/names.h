/* SPDX-License-Identifier: Apache-2.0 */
/* Hash table from names to 32-bit ids, sized once for all the names of a fragment. Private to compiler/graph. */
#pragma once

#include "base/arena.h"

struct af_names_slot {
        const char *key; /* NULL: empty; borrowed */
        uint32_t hash, id;
};
struct af_names {
        struct af_names_slot *slots;
        uint32_t mask;
        uint64_t seed; /* differs per process, so that nobody can prepare colliding names; never shows in any output */
};

/* Room for n_max names, in the arena. 0 or -ENOMEM. */
int af_names_init(struct af_names *names, struct af_arena *arena, uint32_t n_max) AF_WARN_UNUSED;
/* Adds key -> id and returns AF_NONE; where the key is known already, changes nothing and returns the id that it has. key is borrowed. */
uint32_t af_names_add(struct af_names *names, const char *key, uint32_t id);
/* The id, or AF_NONE. */
uint32_t af_names_find(const struct af_names *names, const char *key);
