/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "hot/ring.h"

struct owners {
        uint32_t extents[256]; /* AF_NONE: none */
        uint32_t n_evicted, last;
};

static void evicted(void *userdata, uint32_t owner) {
        struct owners *o = userdata;

        cr_assert_neq(o->extents[owner], AF_NONE, "owner %u loses what it does not have", owner);
        o->extents[owner] = AF_NONE;
        o->last = owner;
        o->n_evicted++;
}

static void owners_init(struct owners *o) {
        for (uint32_t i = 0; i < 256; i++)
                o->extents[i] = AF_NONE;
        o->n_evicted = 0;
}

static bool take(struct af_hot_ring *r, struct owners *o, uint32_t owner, uint32_t size, bool may_evict) {
        uint32_t e = af_hot_ring_alloc(r, size, owner, may_evict, evicted, o);

        o->extents[owner] = e;
        return e != AF_NONE;
}

/* Extents tile the room, no two that are free touch, owners and extents agree. */
static void check(const struct af_hot_ring *r, const struct owners *o, uint32_t n_units) {
        uint32_t at = 0, used = 0, prev = AF_NONE, n = 0, n_owned = 0;
        bool free_before = false;

        for (uint32_t i = r->first; i != AF_NONE; i = r->extents[i].next) {
                const struct af_hot_extent *e = &r->extents[i];

                cr_assert_eq(e->at, at);
                cr_assert_eq(e->prev, prev);
                cr_assert_gt(e->size, 0);
                cr_assert(!(free_before && e->owner == AF_NONE), "two free ones side by side");
                if (e->owner != AF_NONE) {
                        cr_assert_eq(o->extents[e->owner], i);
                        used += e->size;
                        n_owned++;
                }
                free_before = e->owner == AF_NONE;
                at += e->size;
                prev = i;
                n++;
        }
        cr_assert_eq(at, n_units);
        cr_assert_eq(used, r->n_used_units);
        for (uint32_t i = 0; i < 256; i++)
                n_owned -= o->extents[i] != AF_NONE;
        cr_assert_eq(n_owned, 0);
        for (uint32_t i = r->unused; i != AF_NONE; i = r->extents[i].next)
                n++;
        cr_assert_eq(n, r->n_extents, "an item is lost");
}

Test(ring, fills_then_evicts_in_order) {
        struct af_hot_ring r;
        struct owners o;

        owners_init(&o);
        cr_assert_eq(af_hot_ring_init(&r, 100, 256), 0);
        for (uint32_t i = 0; i < 10; i++)
                cr_assert(take(&r, &o, i, 10, false));
        cr_assert_not(take(&r, &o, 10, 1, false), "full");
        cr_assert(take(&r, &o, 10, 10, true));
        cr_assert_eq(o.last, 0);
        cr_assert(take(&r, &o, 11, 15, true)); /* two go, five units are left */
        cr_assert_eq(o.n_evicted, 3);
        check(&r, &o, 100);
        af_hot_ring_deinit(&r);
}

Test(ring, passes_over_once_what_was_used) {
        struct af_hot_ring r;
        struct owners o;

        owners_init(&o);
        cr_assert_eq(af_hot_ring_init(&r, 100, 256), 0);
        for (uint32_t i = 0; i < 10; i++)
                cr_assert(take(&r, &o, i, 10, false));
        r.extents[o.extents[0]].used = r.extents[o.extents[1]].used = true;
        cr_assert(take(&r, &o, 20, 10, true));
        cr_assert_eq(o.last, 2);
        /* One round later the marks are gone. */
        for (uint32_t i = 21; i < 28; i++)
                cr_assert(take(&r, &o, i, 10, true));
        cr_assert(take(&r, &o, 28, 10, true));
        cr_assert_eq(o.last, 0);
        check(&r, &o, 100);
        af_hot_ring_deinit(&r);
}

Test(ring, gives_up_where_all_is_in_use_and_succeeds_later) {
        struct af_hot_ring r;
        struct owners o;

        owners_init(&o);
        cr_assert_eq(af_hot_ring_init(&r, 100, 256), 0);
        for (uint32_t i = 0; i < 10; i++)
                cr_assert(take(&r, &o, i, 10, false));
        for (uint32_t i = 0; i < 10; i++)
                r.extents[o.extents[i]].used = true;
        cr_assert(take(&r, &o, 10, 100, true), "a round takes the marks, the next takes the room");
        cr_assert_eq(o.n_evicted, 10);
        check(&r, &o, 100);
        cr_assert_not(take(&r, &o, 11, 101, true), "larger than all");
        check(&r, &o, 100);
        af_hot_ring_deinit(&r);
}

Test(ring, does_not_run_over_the_end) {
        struct af_hot_ring r;
        struct owners o;

        owners_init(&o);
        cr_assert_eq(af_hot_ring_init(&r, 100, 256), 0);
        cr_assert(take(&r, &o, 0, 60, true));
        cr_assert(take(&r, &o, 1, 30, true));
        cr_assert(take(&r, &o, 2, 50, true)); /* ten at the end do not do */
        cr_assert_eq(o.n_evicted, 1);
        cr_assert_eq(r.extents[o.extents[2]].at, 0);
        check(&r, &o, 100);
        af_hot_ring_deinit(&r);
}

Test(ring, random_work_keeps_it_whole) {
        struct af_hot_ring r;
        struct owners o;
        uint32_t x = 1, n_units = 5000;

        owners_init(&o);
        cr_assert_eq(af_hot_ring_init(&r, n_units, 256), 0);
        for (uint32_t step = 0; step < 20000; step++) {
                x = x * 1664525u + 1013904223u;
                uint32_t owner = (x >> 8) % 256, size = 1 + (x >> 16) % ((x >> 29) == 0 ? 2000 : 60);

                if (o.extents[owner] == AF_NONE) {
                        (void)take(&r, &o, owner, size, (x >> 4) % 4 != 0);
                } else if (x >> 31) {
                        af_hot_ring_free(&r, o.extents[owner]);
                        o.extents[owner] = AF_NONE;
                } else {
                        r.extents[o.extents[owner]].used = true;
                }
                if (step % 64 == 0)
                        check(&r, &o, n_units);
        }
        cr_assert_gt(o.n_evicted, 100);
        for (uint32_t i = 0; i < 256; i++)
                if (o.extents[i] != AF_NONE) {
                        af_hot_ring_free(&r, o.extents[i]);
                        o.extents[i] = AF_NONE;
                }
        check(&r, &o, n_units);
        cr_assert_eq(r.extents[r.first].size, n_units, "one free extent");
        af_hot_ring_deinit(&r);
}
