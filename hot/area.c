/* SPDX-License-Identifier: Apache-2.0 */
#include "hot/area.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "hot/ring.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#define MIN_BUCKETS      16u
#define BYTES_PER_RECORD 4096u /* that the index is laid out for */

struct af_hot_area {
        int fd; /* read-only */
        uint8_t *map;
        size_t size;
        struct af_hot_header *header;
        struct af_hot_target *targets;
        struct af_hot_slot *slots;
        uint8_t *data;
        uint32_t n_slots, max_units; /* of one record */
        struct af_hot_ring ring;
        uint32_t *extents; /* by slot: its extent, or AF_NONE */
        uint64_t n_records, n_puts, n_evicted, n_refused;
};

/* ---- life ---- */

static int map_sealed(struct af_hot_area *a) {
        char path[64];
        int fd = memfd_create("autofused-hot", MFD_CLOEXEC | MFD_ALLOW_SEALING), r = 0;
        void *p = MAP_FAILED;

        if (fd < 0)
                return -errno;
        if (ftruncate(fd, (off_t)a->size) == 0)
                p = mmap(NULL, a->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        /* This mapping goes on writing; no other that could can be made, not even by whoever opens the file anew. */
        if (p == MAP_FAILED || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) < 0 ||
            (a->fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
                r = -errno;
        close(fd);
        if (r == 0)
                a->map = p;
        else if (p != MAP_FAILED)
                munmap(p, a->size);
        return r;
}

static void lay_out(struct af_hot_area *a) {
        uint64_t n_buckets = MIN_BUCKETS, slots_at = AF_HOT_PAGE + AF_HOT_N_TARGETS * sizeof(struct af_hot_target), data_at;

        while (n_buckets * AF_HOT_WAYS * BYTES_PER_RECORD < a->size && n_buckets < 1u << 24)
                n_buckets *= 2;
        data_at = AF_ALIGN_UP(slots_at + n_buckets * AF_HOT_WAYS * sizeof(struct af_hot_slot), AF_HOT_PAGE);
        a->header = (struct af_hot_header *)(void *)a->map;
        a->targets = (struct af_hot_target *)(void *)(a->map + AF_HOT_PAGE);
        a->slots = (struct af_hot_slot *)(void *)(a->map + slots_at);
        a->data = a->map + data_at;
        a->n_slots = (uint32_t)n_buckets * AF_HOT_WAYS;
        a->max_units = (uint32_t)((a->size - data_at) / AF_HOT_UNIT / 16);
        a->header->version = AF_HOT_VERSION;
        a->header->n_targets = AF_HOT_N_TARGETS;
        a->header->n_buckets = (uint32_t)n_buckets;
        a->header->total_bytes = a->size;
        a->header->targets_at = AF_HOT_PAGE;
        a->header->slots_at = slots_at;
        a->header->data_at = data_at;
        (void)!getrandom(&a->header->number, sizeof(a->header->number), GRND_NONBLOCK);
        a->header->magic = AF_HOT_MAGIC;
}

static int start_empty(struct af_hot_area *a) {
        uint32_t n_units = (uint32_t)((a->size - a->header->data_at) / AF_HOT_UNIT);

        af_hot_ring_deinit(&a->ring);
        for (uint32_t i = 0; i < a->n_slots; i++)
                a->extents[i] = AF_NONE;
        a->n_records = 0;
        return af_hot_ring_init(&a->ring, n_units, a->n_slots);
}

int af_hot_area_new(uint64_t n_bytes, struct af_hot_area **ret_area) {
        struct af_hot_area *a = calloc(1, sizeof(*a));
        int r;

        if (!a)
                return -ENOMEM;
        a->fd = -1;
        n_bytes = AF_MIN(AF_MAX(n_bytes, AF_HOT_MIN_BYTES), AF_HOT_MAX_BYTES);
        a->size = AF_ALIGN_UP(n_bytes, AF_HOT_PAGE);
        r = map_sealed(a);
        if (r == 0) {
                lay_out(a);
                a->extents = calloc(a->n_slots, sizeof(*a->extents));
                r = a->extents ? start_empty(a) : -ENOMEM;
        }
        if (r < 0) {
                af_hot_area_free(a);
                return r;
        }
        *ret_area = a;
        return 0;
}

void af_hot_area_free(struct af_hot_area *a) {
        if (!a)
                return;
        if (a->map) {
                af_hot_area_shut(a);
                munmap(a->map, a->size);
        }
        if (a->fd >= 0)
                close(a->fd);
        af_hot_ring_deinit(&a->ring);
        free(a->extents);
        free(a);
}

int af_hot_area_fd(const struct af_hot_area *area) {
        return area->fd;
}

uint64_t af_hot_area_bytes(const struct af_hot_area *area) {
        return area->size;
}

uint64_t af_hot_area_number(const struct af_hot_area *area) {
        return area->header->number;
}

/* ---- what is in force ---- */

void af_hot_area_beat(struct af_hot_area *area, uint64_t ns) {
        atomic_store_explicit(&area->header->beat_ns, ns, memory_order_release);
}

void af_hot_area_shut(struct af_hot_area *area) {
        af_hot_area_beat(area, 0);
}

/* Between the two calls readers find the number odd. */
static void write_begin(_Atomic uint32_t *seq) {
        atomic_store_explicit(seq, atomic_load_explicit(seq, memory_order_relaxed) + 1, memory_order_relaxed);
        atomic_thread_fence(memory_order_release);
}

static void write_end(_Atomic uint32_t *seq) {
        atomic_store_explicit(seq, atomic_load_explicit(seq, memory_order_relaxed) + 1, memory_order_release);
}

int af_hot_area_set_target(struct af_hot_area *area, const struct af_hot_target_id *id, const struct af_digest *environment) {
        uint32_t first = af_hot_target_first(id);
        struct af_hot_target *found = NULL;

        for (uint32_t i = 0; i < AF_HOT_PROBES; i++) {
                struct af_hot_target *t = &area->targets[(first + i) % AF_HOT_N_TARGETS];

                if (t->used && memcmp(t->id, id->bytes, sizeof(t->id)) == 0) {
                        found = t;
                        break;
                }
                if (!t->used && !found)
                        found = t;
        }
        if (!found || (!environment && !found->used))
                return environment ? AF_HOT_E_FULL : 0;
        write_begin(&found->seq);
        found->used = environment != NULL;
        memcpy(found->id, id->bytes, sizeof(found->id));
        found->environment = environment ? *environment : (struct af_digest){0};
        write_end(&found->seq);
        return 0;
}

/* ---- records ---- */

static void tag_of(const struct af_hot_key *key, uint8_t tag[16]) {
        struct af_check check;

        af_check_bytes(key->bytes, sizeof(key->bytes), &check);
        memcpy(tag, check.bytes, 16);
}

static uint32_t find(const struct af_hot_area *a, const uint8_t tag[16]) {
        uint32_t first = af_hot_bucket(tag, a->header->n_buckets);

        for (uint32_t i = first; i < first + AF_HOT_WAYS; i++)
                if (a->slots[i].n_bytes && memcmp(a->slots[i].tag, tag, 16) == 0)
                        return i;
        return AF_NONE;
}

static void slot_empty(struct af_hot_area *a, uint32_t slot) {
        struct af_hot_slot *s = &a->slots[slot];

        write_begin(&s->seq);
        s->n_bytes = 0;
        write_end(&s->seq);
        atomic_thread_fence(memory_order_release); /* before its bytes are given away */
        a->extents[slot] = AF_NONE;
        a->n_records--;
}

/* The ring's call: the extent is taken already. */
static void evict(void *userdata, uint32_t slot) {
        struct af_hot_area *a = userdata;

        slot_empty(a, slot);
        a->n_evicted++;
}

static void slot_drop(struct af_hot_area *a, uint32_t slot) {
        uint32_t extent = a->extents[slot];

        slot_empty(a, slot);
        af_hot_ring_free(&a->ring, extent);
}

/* A slot of the bucket: empty, or with may_evict one that was not used lately. */
static uint32_t take_slot(struct af_hot_area *a, const uint8_t tag[16], bool may_evict) {
        uint32_t first = af_hot_bucket(tag, a->header->n_buckets), cold = AF_NONE;

        for (uint32_t i = first; i < first + AF_HOT_WAYS; i++) {
                if (a->extents[i] == AF_NONE)
                        return i;
                if (cold == AF_NONE && !a->ring.extents[a->extents[i]].used)
                        cold = i;
        }
        if (!may_evict)
                return AF_NONE;
        if (cold == AF_NONE) {
                for (uint32_t i = first; i < first + AF_HOT_WAYS; i++)
                        a->ring.extents[a->extents[i]].used = false;
                return AF_NONE;
        }
        slot_drop(a, cold);
        a->n_evicted++;
        return cold;
}

static void fill(struct af_hot_area *a, uint32_t slot, uint32_t extent, const struct af_hot_key *key, const uint8_t tag[16], const void *p,
                 size_t n) {
        struct af_hot_slot *s = &a->slots[slot];
        struct af_check check;

        af_check_pieces((struct af_piece[]){{key->bytes, sizeof(key->bytes)}, {p, n}}, 2, &check);
        write_begin(&s->seq);
        memcpy(a->data + (size_t)a->ring.extents[extent].at * AF_HOT_UNIT, p, n);
        s->n_bytes = (uint32_t)n;
        s->unit = a->ring.extents[extent].at;
        memcpy(s->tag, tag, 16);
        s->check = check;
        write_end(&s->seq);
        a->extents[slot] = extent;
        a->n_records++;
        a->n_puts++;
}

int af_hot_area_put(struct af_hot_area *area, const struct af_hot_key *key, const void *p, size_t n, bool may_evict) {
        uint64_t units = AF_ALIGN_UP(n, (size_t)AF_HOT_UNIT) / AF_HOT_UNIT;
        uint32_t slot, extent;
        uint8_t tag[16];

        if (n == 0 || units > area->max_units)
                return AF_HOT_E_LARGE;
        tag_of(key, tag);
        slot = find(area, tag);
        if (slot != AF_NONE)
                slot_drop(area, slot);
        slot = take_slot(area, tag, may_evict);
        /* Nobody owns the extent until the slot is filled: it cannot be taken from it meanwhile. */
        extent = slot == AF_NONE ? AF_NONE : af_hot_ring_alloc(&area->ring, (uint32_t)units, slot, may_evict, evict, area);
        if (extent == AF_NONE) {
                area->n_refused++;
                return AF_HOT_E_FULL;
        }
        fill(area, slot, extent, key, tag, p, n);
        return 0;
}

bool af_hot_area_touch(struct af_hot_area *area, const struct af_hot_key *key) {
        uint8_t tag[16];
        uint32_t slot;

        tag_of(key, tag);
        slot = find(area, tag);
        if (slot == AF_NONE)
                return false;
        area->ring.extents[area->extents[slot]].used = true;
        return true;
}

void af_hot_area_del(struct af_hot_area *area, const struct af_hot_key *key) {
        uint8_t tag[16];
        uint32_t slot;

        tag_of(key, tag);
        slot = find(area, tag);
        if (slot != AF_NONE)
                slot_drop(area, slot);
}

void af_hot_area_clear(struct af_hot_area *area) {
        for (uint32_t i = 0; i < area->n_slots; i++)
                if (area->extents[i] != AF_NONE)
                        slot_drop(area, i);
}

void af_hot_area_stats(const struct af_hot_area *area, struct af_hot_stats *ret_stats) {
        *ret_stats = (struct af_hot_stats){.total_bytes = area->size,
                                           .used_bytes = (uint64_t)area->ring.n_used_units * AF_HOT_UNIT,
                                           .n_records = area->n_records,
                                           .n_puts = area->n_puts,
                                           .n_evicted = area->n_evicted,
                                           .n_refused = area->n_refused};
}
