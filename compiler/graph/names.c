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
                .slots = af_arena_calloc(arena, size, sizeof(*names->slots)),
                .mask = size - 1,
        };
        /* Address space randomisation is seed enough. */
        names->seed = (uint64_t)(uintptr_t)names->slots ^ (uint64_t)(uintptr_t)&names->seed << 20;
        return names->slots ? 0 : -ENOMEM;
}

/* Where key is, or where it would go. */
static struct af_names_slot *slot_of(const struct af_names *names, const char *key, uint32_t *ret_hash) {
        uint32_t hash = (uint32_t)XXH3_64bits_withSeed(key, strlen(key), names->seed), at = hash & names->mask;
        struct af_names_slot *slot = &names->slots[at];

        while (slot->key && (slot->hash != hash || strcmp(slot->key, key) != 0)) {
                at = (at + 1) & names->mask;
                slot = &names->slots[at];
        }
        *ret_hash = hash;
        return slot;
}

uint32_t af_names_add(struct af_names *names, const char *key, uint32_t id) {
        uint32_t hash;
        struct af_names_slot *slot = slot_of(names, key, &hash);

        if (slot->key)
                return slot->id;
        *slot = (struct af_names_slot){.key = key, .hash = hash, .id = id};
        return AF_NONE;
}

uint32_t af_names_find(const struct af_names *names, const char *key) {
        uint32_t hash;
        const struct af_names_slot *slot = slot_of(names, key, &hash);

        return slot->key ? slot->id : AF_NONE;
}
