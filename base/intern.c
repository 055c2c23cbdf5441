/* SPDX-License-Identifier: Apache-2.0 */
#include "base/intern.h"

#include <errno.h>
#include <string.h>
#include <xxhash.h>

#define FIRST_TABLE 64u

void af_intern_init(struct af_intern *set, struct af_arena *arena) {
        *set = (struct af_intern){.arena = arena};
}

static int grow(struct af_intern *set) {
        uint32_t size = set->table_size ? 2 * set->table_size : FIRST_TABLE;
        uint32_t *table = af_arena_calloc(set->arena, size, sizeof(*table));
        if (!table)
                return -ENOMEM;
        memset(table, 0xff, size * sizeof(*table));
        for (uint32_t i = 0; i < set->n_items; i++) {
                uint32_t at = set->items[i].hash & (size - 1);
                while (table[at] != AF_NONE)
                        at = (at + 1) & (size - 1);
                table[at] = i;
        }
        set->table = table;
        set->table_size = size;
        return 0;
}

int af_intern_put(struct af_intern *set, const void *p, size_t n, uint32_t *ret_number, bool *ret_fresh) {
        if (n > UINT32_MAX)
                return -EOVERFLOW;
        if (2 * (set->n_items + 1) > set->table_size) {
                int r = grow(set);
                if (r)
                        return r;
        }
        uint32_t hash = (uint32_t)XXH3_64bits(p, n), mask = set->table_size - 1, at = hash & mask;
        for (; set->table[at] != AF_NONE; at = (at + 1) & mask) {
                const struct af_intern_item *item = &set->items[set->table[at]];
                if (item->hash != hash || item->size != n || (n > 0 && memcmp(item->bytes, p, n) != 0))
                        continue;
                *ret_number = set->table[at];
                if (ret_fresh)
                        *ret_fresh = false;
                return 0;
        }
        int r = af_arena_grow(set->arena, &set->items, &set->cap_items, set->n_items + 1, sizeof(*set->items));
        const uint8_t *bytes = r ? NULL : af_arena_memdup(set->arena, n > 0 ? p : "", n);
        if (!bytes)
                return -ENOMEM;
        set->items[set->n_items] = (struct af_intern_item){.bytes = bytes, .size = (uint32_t)n, .hash = hash};
        set->table[at] = set->n_items;
        *ret_number = set->n_items++;
        if (ret_fresh)
                *ret_fresh = true;
        return 0;
}
