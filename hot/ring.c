/* SPDX-License-Identifier: Apache-2.0 */
#include "hot/ring.h"

#include <errno.h>
#include <stdlib.h>

int af_hot_ring_init(struct af_hot_ring *r, uint32_t n_units, uint32_t n_owners) {
        /* Between any two that are owned there is at most one that is free. */
        uint32_t n = 2 * n_owners + 3;

        *r = (struct af_hot_ring){.extents = calloc(n, sizeof(*r->extents)), .n_extents = n, .unused = 1};
        if (!r->extents)
                return -ENOMEM;
        r->extents[0] = (struct af_hot_extent){.size = n_units, .owner = AF_NONE, .prev = AF_NONE, .next = AF_NONE};
        for (uint32_t i = 1; i < n; i++)
                r->extents[i].next = i + 1 < n ? i + 1 : AF_NONE;
        return 0;
}

void af_hot_ring_deinit(struct af_hot_ring *r) {
        free(r->extents);
        *r = (struct af_hot_ring){0};
}

static void item_release(struct af_hot_ring *r, uint32_t i) {
        r->extents[i].next = r->unused;
        r->unused = i;
}

/* Joins the neighbour behind e into e. */
static void absorb_next(struct af_hot_ring *r, uint32_t i) {
        struct af_hot_extent *e = &r->extents[i];
        uint32_t next = e->next;

        e->size += r->extents[next].size;
        e->next = r->extents[next].next;
        if (e->next != AF_NONE)
                r->extents[e->next].prev = i;
        if (r->hand == next)
                r->hand = i;
        item_release(r, next);
}

void af_hot_ring_free(struct af_hot_ring *r, uint32_t i) {
        struct af_hot_extent *e = &r->extents[i];

        r->n_used_units -= e->size;
        e->owner = AF_NONE;
        e->used = false;
        if (e->next != AF_NONE && r->extents[e->next].owner == AF_NONE)
                absorb_next(r, i);
        if (e->prev != AF_NONE && r->extents[e->prev].owner == AF_NONE)
                absorb_next(r, e->prev);
}

/* The first of neighbours that together have size units, AF_NONE where the hand found none. */
static uint32_t find_run(struct af_hot_ring *r, uint32_t size, bool may_evict) {
        uint32_t at = r->hand, start = at, sum = 0;

        for (uint32_t step = 0; step < AF_HOT_MAX_STEPS; step++) {
                struct af_hot_extent *e = &r->extents[at];

                if (e->owner != AF_NONE && !may_evict)
                        return AF_NONE;
                if (e->owner != AF_NONE && e->used) {
                        e->used = false;
                        sum = 0;
                        start = e->next;
                } else {
                        sum += e->size;
                        if (sum >= size)
                                return start;
                }
                at = e->next;
                if (at == AF_NONE) { /* a run does not go round the end */
                        start = at = r->first;
                        sum = 0;
                }
        }
        r->hand = at;
        return AF_NONE;
}

uint32_t af_hot_ring_alloc(struct af_hot_ring *r, uint32_t size, uint32_t owner, bool may_evict,
                           void (*evict)(void *userdata, uint32_t owner), void *userdata) {
        uint32_t start = find_run(r, size, may_evict), rest;
        struct af_hot_extent *e;

        if (start == AF_NONE)
                return AF_NONE;
        e = &r->extents[start];
        for (;;) {
                if (e->owner != AF_NONE) {
                        evict(userdata, e->owner);
                        r->n_used_units -= e->size;
                        e->owner = AF_NONE;
                }
                if (e->size >= size)
                        break;
                if (r->extents[e->next].owner != AF_NONE) {
                        evict(userdata, r->extents[e->next].owner);
                        r->n_used_units -= r->extents[e->next].size;
                }
                absorb_next(r, start);
        }
        if (e->size > size) {
                rest = r->unused;
                r->unused = r->extents[rest].next;
                r->extents[rest] = (struct af_hot_extent){
                        .at = e->at + size, .size = e->size - size, .owner = AF_NONE, .prev = start, .next = e->next};
                if (e->next != AF_NONE)
                        r->extents[e->next].prev = rest;
                e->next = rest;
                e->size = size;
                if (r->extents[rest].next != AF_NONE && r->extents[r->extents[rest].next].owner == AF_NONE)
                        absorb_next(r, rest);
        }
        e->owner = owner;
        e->used = false;
        r->n_used_units += size;
        r->hand = e->next == AF_NONE ? r->first : e->next;
        return start;
}
