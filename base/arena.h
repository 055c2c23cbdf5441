/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bump allocator: everything that one job builds lives here and goes at once.
 * Not thread-safe; one arena per job.
 */
#pragma once

#include "base/macros.h"

struct af_arena_chunk;
struct af_arena {
        struct af_arena_chunk *head; /* newest chunk first */
        size_t n_bytes;              /* bytes handed out */
        size_t max_bytes;            /* 0 = no limit */
};

/* Prepares an empty arena. max_bytes bounds what it may hand out (0: unbounded). Allocates nothing. */
void af_arena_init(struct af_arena *arena, size_t max_bytes);
/* Frees every allocation. Accepts an arena that was never used or is all zero. */
void af_arena_deinit(struct af_arena *arena);
/* Keeps the newest chunk for reuse, drops the rest: for loops over many small jobs. */
void af_arena_reset(struct af_arena *arena);

/* Returns n zeroed bytes aligned to 16 (n == 0 gives a valid pointer), or NULL: no memory, or the limit is reached. */
void *af_arena_alloc(struct af_arena *arena, size_t n) AF_WARN_UNUSED;
/* As af_arena_alloc for n objects of size bytes; NULL too where the product overflows. */
void *af_arena_calloc(struct af_arena *arena, size_t n, size_t size) AF_WARN_UNUSED;
/* Copies n bytes; the copy is followed by one zero byte that n does not count. */
void *af_arena_memdup(struct af_arena *arena, const void *p, size_t n) AF_WARN_UNUSED;
char *af_arena_strdup(struct af_arena *arena, const char *s) AF_WARN_UNUSED;
char *af_arena_printf(struct af_arena *arena, const char *fmt, ...) AF_WARN_UNUSED AF_PRINTF(2, 3);

/*
 * Growable array of T inside an arena: keeps *p with room for n_need elements, capacity in *cap (doubling).
 * Returns 0 or -ENOMEM. The old copy stays in the arena until it goes.
 */
int af_arena_grow(struct af_arena *arena, void *p_array, uint32_t *cap, uint32_t n_need, size_t elem_size) AF_WARN_UNUSED;
