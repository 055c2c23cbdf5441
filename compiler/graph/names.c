/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/graph/names.h"

#include <errno.h>
#include <string.h>
#include <xxhash.h>

int af_names_init(struct af_names *names, struct af_arena *arena, uint32_t n_max) {
        uint32_t size = 16;

        while (size < n_max + n_max / 2)
                size *= 2;
        *names = (struct af_names){
                .keys = af_arena_calloc(arena, size, sizeof(*names->keys)),
                .ids = af_arena_calloc(arena, size, sizeof(*names->ids)),
                .mask = size - 1,
        };
        /* Address space randomisation is seed enough. */
        names->seed = (uint64_t)(uintptr_t)names->keys ^ (uint64_t)(uintptr_t)&names->seed << 20;
        return names->keys && names->ids ? 0 : -ENOMEM;
}

static uint32_t slot_of(const struct af_names *names, const char *key) {
        uint32_t slot = (uint32_t)XXH3_64bits_withSeed(key, strlen(key), names->seed) & names->mask;

        while (names->keys[slot] && strcmp(names->keys[slot], key) != 0)
                slot = (slot + 1) & names->mask;
        return slot;
}

uint32_t af_names_add(struct af_names *names, const char *key, uint32_t id) {
        uint32_t slot = slot_of(names, key);

        if (names->keys[slot])
                return names->ids[slot];
        names->keys[slot] = key;
        names->ids[slot] = id;
        return AF_NONE;
}

uint32_t af_names_find(const struct af_names *names, const char *key) {
        uint32_t slot = slot_of(names, key);

        return names->keys[slot] ? names->ids[slot] : AF_NONE;
}
