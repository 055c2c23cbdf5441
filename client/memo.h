/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In-process memo, bounded in bytes, least recently used first out. Two kinds of entries in one table:
 *
 *   TEXT  XXH3 of a JSON text, compared byte for byte -> what it was prepared to
 *   KEY   fragment digest -> bundle
 *
 * A text's bundle is found in two steps, so that a bundle's bytes are counted once. Not thread-safe: the context's lock guards it.
 */
#pragma once

#include "client/content.h"
#include "client/prepared.h"

struct af_memo_entry;
struct af_memo {
        uint64_t max_bytes;
        struct af_memo_entry **buckets; /* n_buckets, a power of two; NULL until the first put */
        uint32_t n_buckets, n_entries;
        struct af_memo_entry *newest, *oldest;
        uint64_t n_bytes, n_hits, n_misses, n_evictions;
};

void af_memo_init(struct af_memo *memo, uint64_t max_bytes);
void af_memo_deinit(struct af_memo *memo);
/* Drops every entry, keeps the counters. */
void af_memo_clear(struct af_memo *memo);
/* Hash of a text for the two functions below: computed outside the lock. */
uint64_t af_memo_hash_text(const char *text, size_t n);
/* A new reference, or NULL. Counts nothing: the key's lookup does. */
struct af_prepared *af_memo_get_text(struct af_memo *memo, uint64_t hash, const char *text, size_t n);
/* Copies the text. An entry that is larger than a quarter of the bound, or for which there is no memory, is not kept. */
void af_memo_put_text(struct af_memo *memo, uint64_t hash, const char *text, size_t n, struct af_prepared *prepared);
/* A new reference, or NULL; counts a hit or a miss. */
struct af_content *af_memo_get(struct af_memo *memo, const struct af_digest *fragment);
/* What is there, borrowed, or NULL; counts nothing. */
struct af_content *af_memo_peek(const struct af_memo *memo, const struct af_digest *fragment);
/* Drops what is there, which was just got; the hit is counted as a miss. */
void af_memo_drop(struct af_memo *memo, const struct af_digest *fragment);
/* Replaces what was there. */
void af_memo_put(struct af_memo *memo, struct af_content *content);
