/* SPDX-License-Identifier: Apache-2.0 */
#include "hot/view.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define POPULATE_MIN (4 * AF_HOT_PAGE)

/* Where things are is read once, at open: a header that changes later changes nothing here. */
struct af_hot_view {
        atomic_uint refs;
        const uint8_t *map;
        size_t size, n_data;
        const struct af_hot_header *header;
        const struct af_hot_target *targets;
        const struct af_hot_slot *slots;
        const uint8_t *data;
        uint32_t n_buckets;
};

static bool inside(uint64_t at, uint64_t n, uint64_t size) {
        return at % AF_HOT_UNIT == 0 && at <= size && n <= size - at;
}

static const char *read_layout(struct af_hot_view *v) {
        const struct af_hot_header *h = (const struct af_hot_header *)(const void *)v->map;
        uint32_t n = h->n_buckets;

        if (h->magic != AF_HOT_MAGIC || h->version != AF_HOT_VERSION)
                return "another format";
        if (h->total_bytes != v->size || h->n_targets != AF_HOT_N_TARGETS || n == 0 || (n & (n - 1)) || n > 1u << 26 ||
            !inside(h->targets_at, AF_HOT_N_TARGETS * sizeof(struct af_hot_target), v->size) ||
            !inside(h->slots_at, (uint64_t)n * AF_HOT_WAYS * sizeof(struct af_hot_slot), v->size) || !inside(h->data_at, 0, v->size))
                return "its layout does not fit its size";
        v->header = h;
        v->targets = (const struct af_hot_target *)(const void *)(v->map + h->targets_at);
        v->slots = (const struct af_hot_slot *)(const void *)(v->map + h->slots_at);
        v->data = v->map + h->data_at;
        v->n_data = v->size - h->data_at;
        v->n_buckets = n;
        return NULL;
}

int af_hot_view_open(int fd, uint64_t n, struct af_hot_view **ret_view, const char **ret_why) {
        const int must = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
        int seals = fcntl(fd, F_GET_SEALS);
        struct af_hot_view *v;
        struct stat st;
        void *p;

        if (seals < 0 || (seals & must) != must) {
                *ret_why = "its size is not sealed";
                return AF_HOT_E_FORMAT;
        }
        if (fstat(fd, &st) < 0)
                return -errno;
        if (n < AF_HOT_PAGE || n > AF_HOT_MAX_BYTES || (uint64_t)st.st_size != n) {
                *ret_why = "its size is not the one that was announced";
                return AF_HOT_E_FORMAT;
        }
        v = calloc(1, sizeof(*v));
        p = v ? mmap(NULL, n, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
        if (p == MAP_FAILED) {
                int r = v ? -errno : -ENOMEM;

                free(v);
                return r;
        }
        atomic_init(&v->refs, 1);
        v->map = p;
        v->size = n;
        *ret_why = read_layout(v);
        if (*ret_why) {
                af_hot_view_unref(v);
                return AF_HOT_E_FORMAT;
        }
        *ret_view = v;
        return 0;
}

struct af_hot_view *af_hot_view_ref(struct af_hot_view *view) {
        atomic_fetch_add_explicit(&view->refs, 1, memory_order_relaxed);
        return view;
}

void af_hot_view_unref(struct af_hot_view *view) {
        if (!view || atomic_fetch_sub_explicit(&view->refs, 1, memory_order_acq_rel) != 1)
                return;
        munmap((void *)view->map, view->size);
        free(view);
}

uint64_t af_hot_view_number(const struct af_hot_view *view) {
        return view->header->number;
}

bool af_hot_view_is_fresh(const struct af_hot_view *view, uint64_t now_ns) {
        uint64_t beat_ns = atomic_load_explicit(&view->header->beat_ns, memory_order_acquire);
        int64_t age = (int64_t)(now_ns - beat_ns);

        /* A coarse clock may be a little behind; one of another time namespace is far off and means that nothing is known. */
        return beat_ns != 0 && age < AF_HOT_FRESH_NS && age > -AF_HOT_FRESH_NS;
}

int af_hot_view_target(const struct af_hot_view *view, const struct af_hot_target_id *id, struct af_digest *ret_environment) {
        uint32_t first = af_hot_target_first(id);

        for (uint32_t i = 0; i < AF_HOT_PROBES; i++) {
                const struct af_hot_target *t = &view->targets[(first + i) % AF_HOT_N_TARGETS];
                uint32_t seq = atomic_load_explicit(&t->seq, memory_order_acquire);
                struct af_digest environment = t->environment;
                bool same = t->used && memcmp(t->id, id->bytes, sizeof(t->id)) == 0;

                atomic_thread_fence(memory_order_acquire);
                if (!same)
                        continue;
                if (seq % 2 || atomic_load_explicit(&t->seq, memory_order_relaxed) != seq)
                        return AF_HOT_E_MISS;
                *ret_environment = environment;
                return 0;
        }
        return AF_HOT_E_MISS;
}

/* What a slot says, untorn. False: it is empty, being written, or another's. */
static bool read_slot(const struct af_hot_slot *s, const uint8_t tag[16], struct af_hot_slot *ret_slot, uint32_t *ret_seq) {
        uint32_t seq = atomic_load_explicit(&s->seq, memory_order_acquire);

        memcpy(ret_slot, s, sizeof(*ret_slot));
        atomic_thread_fence(memory_order_acquire);
        *ret_seq = seq;
        return seq % 2 == 0 && atomic_load_explicit(&s->seq, memory_order_relaxed) == seq && ret_slot->n_bytes != 0 &&
               memcmp(ret_slot->tag, tag, 16) == 0;
}

/*
 * Memory for n bytes. A fresh process gets pages that the kernel has not given yet: asked for all at once they cost a third of what they
 * cost as faults under memcpy.
 */
static void *make_room(size_t n) {
        uint8_t *p = aligned_alloc(AF_HOT_UNIT, AF_ALIGN_UP(n, (size_t)AF_HOT_UNIT));
        uintptr_t begin = AF_ALIGN_UP((uintptr_t)p, (uintptr_t)AF_HOT_PAGE), end = ((uintptr_t)p + n) / AF_HOT_PAGE * AF_HOT_PAGE;

        if (p && end > begin + POPULATE_MIN)
                (void)madvise((void *)begin, end - begin, MADV_POPULATE_WRITE); /* an older kernel does not know it: then they are faults */
        return p;
}

static int copy(const struct af_hot_view *view, const struct af_hot_slot *at, const struct af_hot_slot *s, uint32_t seq, size_t n_max,
                void **ret_data) {
        uint64_t offset = (uint64_t)s->unit * AF_HOT_UNIT;
        void *p;

        if (offset > view->n_data || s->n_bytes > view->n_data - offset || s->n_bytes > n_max)
                return AF_HOT_E_MISS;
        p = make_room(s->n_bytes);
        if (!p)
                return -ENOMEM;
        memcpy(p, view->data + offset, s->n_bytes);
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&at->seq, memory_order_relaxed) != seq) {
                free(p);
                return AF_HOT_E_MISS;
        }
        *ret_data = p;
        return 0;
}

static int get_once(const struct af_hot_view *view, const struct af_hot_key *key, const uint8_t tag[16], size_t n_max, void **ret_data,
                    size_t *ret_n) {
        uint32_t first = af_hot_bucket(tag, view->n_buckets), seq;
        struct af_hot_slot s;
        struct af_check check;

        for (uint32_t i = first; i < first + AF_HOT_WAYS; i++) {
                void *p = NULL;
                int r;

                if (!read_slot(&view->slots[i], tag, &s, &seq))
                        continue;
                r = copy(view, &view->slots[i], &s, seq, n_max, &p);
                if (r)
                        return r;
                af_check_pieces((struct af_piece[]){{key->bytes, sizeof(key->bytes)}, {p, s.n_bytes}}, 2, &check);
                if (memcmp(check.bytes, s.check.bytes, sizeof(check.bytes)) != 0) {
                        free(p);
                        return AF_HOT_E_MISS;
                }
                *ret_data = p;
                *ret_n = s.n_bytes;
                return 0;
        }
        return AF_HOT_E_MISS;
}

int af_hot_view_get(const struct af_hot_view *view, const struct af_hot_key *key, size_t n_max, void **ret_data, size_t *ret_n) {
        struct af_check tag;

        af_check_bytes(key->bytes, sizeof(key->bytes), &tag);
        return get_once(view, key, tag.bytes, n_max, ret_data, ret_n);
}
