/* SPDX-License-Identifier: Apache-2.0 */
#include "client/memo.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define ENTRY_OVERHEAD 64

struct af_memo_entry {
        uint64_t hash;
        struct af_memo_entry *next;          /* in its bucket */
        struct af_memo_entry *newer, *older; /* by use */
        uint64_t n_bytes;
        struct af_content *content;   /* KEY */
        struct af_prepared *prepared; /* TEXT */
        size_t n_text;
        char text[];
};

void af_memo_init(struct af_memo *memo, uint64_t max_bytes) {
        *memo = (struct af_memo){.max_bytes = max_bytes};
}

static void unlink_use(struct af_memo *memo, struct af_memo_entry *e) {
        *(e->newer ? &e->newer->older : &memo->newest) = e->older;
        *(e->older ? &e->older->newer : &memo->oldest) = e->newer;
        e->newer = e->older = NULL;
}

static void link_newest(struct af_memo *memo, struct af_memo_entry *e) {
        e->older = memo->newest;
        *(memo->newest ? &memo->newest->newer : &memo->oldest) = e;
        memo->newest = e;
}

static void touch(struct af_memo *memo, struct af_memo_entry *e) {
        if (memo->newest == e)
                return;
        unlink_use(memo, e);
        link_newest(memo, e);
}

static void entry_free(struct af_memo_entry *e) {
        af_content_unref(e->content);
        af_prepared_unref(e->prepared);
        free(e);
}

static void drop(struct af_memo *memo, struct af_memo_entry *e) {
        struct af_memo_entry **at = &memo->buckets[e->hash & (memo->n_buckets - 1)];
        while (*at != e)
                at = &(*at)->next;
        *at = e->next;
        unlink_use(memo, e);
        memo->n_entries--;
        memo->n_bytes -= e->n_bytes;
        entry_free(e);
}

void af_memo_clear(struct af_memo *memo) {
        while (memo->oldest)
                drop(memo, memo->oldest);
}

void af_memo_deinit(struct af_memo *memo) {
        af_memo_clear(memo);
        free(memo->buckets);
        *memo = (struct af_memo){0};
}

static bool grow(struct af_memo *memo) {
        if (memo->n_entries < memo->n_buckets)
                return true;
        uint32_t n = memo->n_buckets ? memo->n_buckets * 2 : 64;
        struct af_memo_entry **buckets = calloc(n, sizeof(*buckets));
        if (!buckets)
                return memo->n_buckets > 0;
        for (struct af_memo_entry *e = memo->newest; e; e = e->older) {
                e->next = buckets[e->hash & (n - 1)];
                buckets[e->hash & (n - 1)] = e;
        }
        free(memo->buckets);
        memo->buckets = buckets;
        memo->n_buckets = n;
        return true;
}

/* Takes e, also where it is not kept. */
static void insert(struct af_memo *memo, struct af_memo_entry *e) {
        if (e->n_bytes > memo->max_bytes / 4 || !grow(memo)) {
                entry_free(e);
                return;
        }
        while (memo->n_bytes + e->n_bytes > memo->max_bytes) {
                drop(memo, memo->oldest);
                memo->n_evictions++;
        }
        struct af_memo_entry **bucket = &memo->buckets[e->hash & (memo->n_buckets - 1)];
        e->next = *bucket;
        *bucket = e;
        link_newest(memo, e);
        memo->n_entries++;
        memo->n_bytes += e->n_bytes;
}

static uint64_t hash_digest(const struct af_digest *d) {
        uint64_t h;
        memcpy(&h, d->bytes, sizeof(h));
        return h;
}

static struct af_memo_entry *bucket_of(const struct af_memo *memo, uint64_t hash) {
        return memo->n_buckets ? memo->buckets[hash & (memo->n_buckets - 1)] : NULL;
}

static struct af_memo_entry *find_key(const struct af_memo *memo, const struct af_digest *fragment) {
        uint64_t hash = hash_digest(fragment);
        for (struct af_memo_entry *e = bucket_of(memo, hash); e; e = e->next)
                if (e->hash == hash && e->content && af_digest_equal(&e->content->key.fragment, fragment))
                        return e;
        return NULL;
}

static struct af_memo_entry *find_text(const struct af_memo *memo, uint64_t hash, const char *text, size_t n) {
        for (struct af_memo_entry *e = bucket_of(memo, hash); e; e = e->next)
                if (e->hash == hash && e->prepared && e->n_text == n && memcmp(e->text, text, n) == 0)
                        return e;
        return NULL;
}

uint64_t af_memo_hash_text(const char *text, size_t n) {
        return XXH3_64bits(text, n);
}

struct af_prepared *af_memo_get_text(struct af_memo *memo, uint64_t hash, const char *text, size_t n) {
        struct af_memo_entry *e = find_text(memo, hash, text, n);
        if (!e)
                return NULL;
        touch(memo, e);
        return af_prepared_ref(e->prepared);
}

void af_memo_put_text(struct af_memo *memo, uint64_t hash, const char *text, size_t n, struct af_prepared *prepared) {
        if (n > memo->max_bytes || find_text(memo, hash, text, n))
                return;
        struct af_memo_entry *e = malloc(sizeof(*e) + n);
        if (!e)
                return;
        *e = (struct af_memo_entry){.hash = hash, .prepared = af_prepared_ref(prepared), .n_text = n};
        e->n_bytes = sizeof(*e) + n + prepared->n_bytes + ENTRY_OVERHEAD;
        memcpy(e->text, text, n);
        insert(memo, e);
}

struct af_content *af_memo_get(struct af_memo *memo, const struct af_digest *fragment) {
        struct af_memo_entry *e = find_key(memo, fragment);
        if (!e) {
                memo->n_misses++;
                return NULL;
        }
        memo->n_hits++;
        touch(memo, e);
        return af_content_ref(e->content);
}

struct af_content *af_memo_peek(const struct af_memo *memo, const struct af_digest *fragment) {
        struct af_memo_entry *e = find_key(memo, fragment);
        return e ? e->content : NULL;
}

void af_memo_drop(struct af_memo *memo, const struct af_digest *fragment) {
        struct af_memo_entry *e = find_key(memo, fragment);
        if (!e)
                return;
        drop(memo, e);
        memo->n_hits--;
        memo->n_misses++;
}

void af_memo_put(struct af_memo *memo, struct af_content *content) {
        struct af_memo_entry *old = find_key(memo, &content->key.fragment);
        if (old && old->content == content)
                return;
        if (old)
                drop(memo, old);
        struct af_memo_entry *e = malloc(sizeof(*e));
        if (!e)
                return;
        *e = (struct af_memo_entry){.hash = hash_digest(&content->key.fragment), .content = af_content_ref(content)};
        e->n_bytes = sizeof(*e) + sizeof(*content) + content->size + ENTRY_OVERHEAD;
        insert(memo, e);
}
