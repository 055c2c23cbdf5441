/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "tests/unit/hot/hot.h"

static struct af_hot_area *make(uint64_t n) {
        struct af_hot_area *area = NULL;

        cr_assert_eq(af_hot_area_new(n, &area), 0);
        return area;
}

/* What is in force follows at once, and nothing is in force for longer than a second after the last beat. */
Test(view, C25_targets_and_the_beat) {
        struct af_hot_area *area = make(1 << 20);
        struct af_hot_view *view = hot_view(area);
        struct af_hot_target_id near[3] = {af_hot_target_make("Ascend910B2", "", 0), af_hot_target_make("Ascend910B", "2", 0),
                                           af_hot_target_make("Ascend910B2", "", 1)};
        struct af_digest env = {{1, 2, 3}}, other = {{9}}, got;
        const uint64_t now = 5000000000000ull, s = AF_HOT_FRESH_NS;

        cr_assert_not(af_hot_view_is_fresh(view, now), "no beat yet");
        af_hot_area_beat(area, now);
        cr_assert(af_hot_view_is_fresh(view, now) && af_hot_view_is_fresh(view, now + s - 1) && af_hot_view_is_fresh(view, now - 5000000));
        cr_assert_not(af_hot_view_is_fresh(view, now + s));
        cr_assert_not(af_hot_view_is_fresh(view, now - s), "a clock of another time");
        for (int i = 0; i < 3; i++) {
                cr_assert_eq(af_hot_view_target(view, &near[i], &got), AF_HOT_E_MISS);
                env.bytes[31] = (uint8_t)i;
                cr_assert_eq(af_hot_area_set_target(area, &near[i], &env), 0);
        }
        for (int i = 0; i < 3; i++) {
                cr_assert_eq(af_hot_view_target(view, &near[i], &got), 0);
                cr_assert_eq(got.bytes[31], i);
        }
        cr_assert_eq(af_hot_area_set_target(area, &near[1], &other), 0);
        cr_assert(af_hot_view_target(view, &near[1], &got) == 0 && af_digest_equal(&got, &other));
        cr_assert_eq(af_hot_area_set_target(area, &near[1], NULL), 0);
        cr_assert_eq(af_hot_area_set_target(area, &near[1], NULL), 0);
        cr_assert_eq(af_hot_view_target(view, &near[1], &got), AF_HOT_E_MISS);
        af_hot_area_shut(area);
        cr_assert_not(af_hot_view_is_fresh(view, now));
        af_hot_view_unref(view);
        af_hot_area_free(area);
}

Test(view, a_full_table_of_targets_says_so) {
        struct af_hot_area *area = make(1 << 20);
        struct af_hot_view *view = hot_view(area);
        struct af_digest env = {{1}}, got;
        uint32_t n_full = 0, n_found = 0;

        for (uint32_t i = 0; i < 400; i++) {
                struct af_hot_target_id id = af_hot_target_make("soc", "", i);
                int r = af_hot_area_set_target(area, &id, &env);

                n_full += r == AF_HOT_E_FULL;
                n_found += af_hot_view_target(view, &id, &got) == 0;
        }
        cr_assert_gt(n_full, 100);
        cr_assert_eq(n_full + n_found, 400);
        af_hot_view_unref(view);
        af_hot_area_free(area);
}

/* Every bit of a record and of its slot in turn: the record, or a miss; never other bytes. */
Test(view, damage_is_a_miss) {
        struct af_hot_area *area = make(1 << 20);
        uint8_t *map;

        cr_assert_eq(hot_put(area, 1, 300, false), 0);
        cr_assert_eq(hot_put(area, 2, 300, false), 0);
        int fd = hot_copy(area, &map), n_missed = 0;
        const struct af_hot_header *h = (const void *)map;
        struct af_hot_view *view = NULL;
        const char *why = "";
        struct af_check tag;
        struct af_hot_key key = hot_key(1);
        cr_assert_eq(af_hot_view_open(fd, af_hot_area_bytes(area), &view, &why), 0, "%s", why);
        af_check_bytes(key.bytes, sizeof(key.bytes), &tag);
        struct af_hot_slot *slot = (struct af_hot_slot *)(void *)(map + h->slots_at) + af_hot_bucket(tag.bytes, h->n_buckets);
        while (!slot->n_bytes || memcmp(slot->tag, tag.bytes, 16) != 0)
                slot++;
        uint8_t *data = map + h->data_at + (size_t)slot->unit * AF_HOT_UNIT;
        for (unsigned bit = 0; bit < 300 * 8; bit++) {
                data[bit / 8] ^= (uint8_t)(1 << bit % 8);
                cr_assert_eq(hot_get(view, 1, 300), AF_HOT_E_MISS, "bit %u", bit);
                cr_assert_eq(hot_get(view, 2, 300), 0);
                data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        for (unsigned bit = 0; bit < 64 * 8; bit++) {
                ((uint8_t *)slot)[bit / 8] ^= (uint8_t)(1 << bit % 8);
                n_missed += hot_get(view, 1, 300) != 0; /* asserts the bytes where it succeeds */
                ((uint8_t *)slot)[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        cr_assert_gt(n_missed, 8 * (4 + 4 + 16 + 16), "size, place, tag and check count");
        cr_assert_eq(hot_get(view, 1, 300), 0);
        af_hot_view_unref(view);
        munmap(map, af_hot_area_bytes(area));
        close(fd);
        af_hot_area_free(area);
}

/* A writer that died half-way leaves an odd number: a miss, whatever lies there. */
Test(view, a_half_written_slot_is_a_miss) {
        struct af_hot_area *area = make(1 << 20);
        struct af_hot_target_id id = af_hot_target_make("a", "b", 0);
        struct af_digest env = {{1}}, got;
        uint8_t *map;

        cr_assert_eq(hot_put(area, 1, 300, false), 0);
        cr_assert_eq(af_hot_area_set_target(area, &id, &env), 0);
        int fd = hot_copy(area, &map);
        struct af_hot_header *h = (void *)map;
        struct af_hot_slot *slots = (void *)(map + h->slots_at);
        struct af_hot_target *targets = (void *)(map + h->targets_at);
        struct af_hot_view *view = NULL;
        const char *why = "";
        cr_assert_eq(af_hot_view_open(fd, af_hot_area_bytes(area), &view, &why), 0, "%s", why);
        for (uint32_t i = 0; i < h->n_buckets * AF_HOT_WAYS; i++)
                slots[i].seq += 1;
        for (uint32_t i = 0; i < h->n_targets; i++)
                targets[i].seq += 1;
        cr_assert_eq(hot_get(view, 1, 300), AF_HOT_E_MISS);
        cr_assert_eq(af_hot_view_target(view, &id, &got), AF_HOT_E_MISS);
        for (uint32_t i = 0; i < h->n_buckets * AF_HOT_WAYS; i++)
                slots[i].seq += 1;
        for (uint32_t i = 0; i < h->n_targets; i++)
                targets[i].seq += 1;
        cr_assert_eq(hot_get(view, 1, 300), 0);
        cr_assert_eq(af_hot_view_target(view, &id, &got), 0);
        af_hot_view_unref(view);
        munmap(map, af_hot_area_bytes(area));
        close(fd);
        af_hot_area_free(area);
}

Test(view, refuses_what_is_no_area) {
        struct af_hot_area *area = make(1 << 20);
        size_t n = af_hot_area_bytes(area);
        struct af_hot_view *view = NULL;
        const char *why = "";
        uint8_t *map;
        int fd = hot_copy(area, &map), bare = memfd_create("bare", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        struct af_hot_header *h = (void *)map, whole = {0};

        memcpy(&whole, h, sizeof(whole));
        cr_assert_eq(ftruncate(bare, (off_t)n), 0);
        cr_assert_eq(af_hot_view_open(bare, n, &view, &why), AF_HOT_E_FORMAT, "not sealed");
        cr_assert_eq(af_hot_view_open(fd, n + 4096, &view, &why), AF_HOT_E_FORMAT, "another size");
        cr_assert_eq(af_hot_view_open(fd, 0, &view, &why), AF_HOT_E_FORMAT);
        cr_assert_eq(af_hot_view_open(STDIN_FILENO, n, &view, &why), AF_HOT_E_FORMAT);
        for (size_t at = 0; at < 56; at++) { /* every byte of the layout, all ones or zero; `zero` and the beat do not matter */
                uint8_t was = map[at];

                if (at / 4 == 5)
                        continue;
                map[at] = was == 0xff ? 0 : 0xff;
                int r = af_hot_view_open(fd, n, &view, &why);
                if (r == 0) { /* another place for slots or data that still fits: then there is nothing to be found */
                        cr_assert(at >= 32, "byte %zu", at);
                        cr_assert_eq(hot_get(view, 1, 10), AF_HOT_E_MISS);
                        af_hot_view_unref(view);
                }
                map[at] = was;
        }
        cr_assert_eq(memcmp(&whole, h, 56), 0);
        cr_assert_eq(af_hot_view_open(fd, n, &view, &why), 0);
        af_hot_view_unref(view);
        munmap(map, n);
        close(fd);
        close(bare);
        af_hot_area_free(area);
}

/* A slot that names more than there is. */
Test(view, bounds_are_checked) {
        struct af_hot_area *area = make(1 << 20);
        uint8_t *map;

        cr_assert_eq(hot_put(area, 1, 300, false), 0);
        int fd = hot_copy(area, &map);
        struct af_hot_header *h = (void *)map;
        struct af_hot_slot *slots = (void *)(map + h->slots_at);
        struct af_hot_view *view = NULL;
        const char *why = "";
        cr_assert_eq(af_hot_view_open(fd, af_hot_area_bytes(area), &view, &why), 0);
        const uint32_t bad[][2] = {
                {UINT32_MAX, 0}, {300, UINT32_MAX}, {300, (uint32_t)((af_hot_area_bytes(area) - h->data_at) / 64)}, {64u << 20, 0}};
        for (size_t k = 0; k < AF_ARRAY_SIZE(bad); k++) {
                for (uint32_t i = 0; i < h->n_buckets * AF_HOT_WAYS; i++)
                        if (slots[i].n_bytes) {
                                slots[i].n_bytes = bad[k][0];
                                slots[i].unit = bad[k][1];
                        }
                cr_assert_eq(hot_get(view, 1, 300), AF_HOT_E_MISS, "case %zu", k);
        }
        af_hot_view_unref(view);
        munmap(map, af_hot_area_bytes(area));
        close(fd);
        af_hot_area_free(area);
}

/* ---- a writer at full speed ---- */

struct race {
        const struct af_hot_view *view;
        atomic_bool stop;
        atomic_ulong n_hits, n_misses;
};

#define RACE_KEYS  24u
#define RACE_BYTES 40000u

/* Every hit is one whole version of its record: the first eight bytes say which. */
static void *read_all(void *userdata) {
        struct race *race = userdata;
        uint8_t *want = malloc(RACE_BYTES);

        for (uint32_t i = 0; !atomic_load(&race->stop); i++) {
                struct af_hot_key key = hot_key(i % RACE_KEYS);
                uint32_t version[2];
                void *p = NULL;
                size_t n = 0;

                if (af_hot_view_get(race->view, &key, RACE_BYTES, &p, &n)) {
                        atomic_fetch_add(&race->n_misses, 1);
                        continue;
                }
                memcpy(version, p, sizeof(version));
                cr_assert_eq(version[0], i % RACE_KEYS);
                hot_fill(want, n, version[0], version[1]);
                memcpy(want, version, sizeof(version));
                cr_assert_eq(memcmp(p, want, n), 0, "torn");
                free(p);
                atomic_fetch_add(&race->n_hits, 1);
        }
        free(want);
        return NULL;
}

Test(view, never_torn_under_a_writer) {
        struct af_hot_area *area = make(1 << 20); /* less than the records together: places change hands all the time */
        struct af_hot_view *view = hot_view(area);
        struct race race = {.view = view};
        uint8_t *p = malloc(RACE_BYTES);
        pthread_t threads[2];
        uint32_t version, n_full = 0;

        for (int i = 0; i < 2; i++)
                cr_assert_eq(pthread_create(&threads[i], NULL, read_all, &race), 0);
        for (version = 0; version < 200000 && (version < 3000 || atomic_load(&race.n_hits) < 500); version++) {
                uint32_t number = version * 7 % RACE_KEYS, head[2] = {number, version};
                size_t n = 20000 + version * 997 % 20000;
                struct af_hot_key key = hot_key(number);

                hot_fill(p, n, number, version);
                memcpy(p, head, sizeof(head));
                n_full += af_hot_area_put(area, &key, p, n, true) == AF_HOT_E_FULL;
        }
        atomic_store(&race.stop, true);
        for (int i = 0; i < 2; i++)
                pthread_join(threads[i], NULL);
        cr_assert_geq(atomic_load(&race.n_hits), 500);
        cr_assert_lt(n_full, version / 2);
        free(p);
        af_hot_view_unref(view);
        af_hot_area_free(area);
}
