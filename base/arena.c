/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ARENA_ALIGN       16u
#define ARENA_MIN_CHUNK   ((size_t)16 << 10)
#define ARENA_MAX_DOUBLED ((size_t)4 << 20) /* chunks double up to this; larger requests get a chunk of their own size */
#define ARENA_PAGE        ((size_t)2 << 20) /* a huge page: chunks from this size on are whole ones */

struct af_arena_chunk {
        struct af_arena_chunk *next;
        size_t capacity;
        size_t used;
        size_t mapped; /* bytes, head and data; 0: from malloc */
        bool zeroed;   /* as the kernel gave it: allocations need no clearing */
        _Alignas(ARENA_ALIGN) uint8_t data[];
};

void af_arena_init(struct af_arena *arena, size_t max_bytes) {
        *arena = (struct af_arena){.max_bytes = max_bytes};
}

/* The chunk and all behind it. */
static void chunks_free(struct af_arena_chunk *c) {
        for (struct af_arena_chunk *next; c; c = next) {
                next = c->next;
                if (c->mapped > 0)
                        munmap(c, c->mapped);
                else
                        free(c);
        }
}

void af_arena_deinit(struct af_arena *arena) {
        chunks_free(arena->head);
        *arena = (struct af_arena){0};
}

void af_arena_reset(struct af_arena *arena) {
        struct af_arena_chunk *keep = arena->head;

        arena->n_bytes = 0;
        if (!keep)
                return;
        chunks_free(keep->next);
        keep->next = NULL;
        keep->zeroed = false;
        keep->used = 0;
}

/* A chunk in huge pages of its own, where the system has them: a job over a large graph touches each page once, and pays for each fault. */
static struct af_arena_chunk *chunk_map(size_t capacity) {
        size_t size = AF_ALIGN_UP(sizeof(struct af_arena_chunk) + capacity, ARENA_PAGE);
        uint8_t *p = mmap(NULL, size + ARENA_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (p == MAP_FAILED)
                return NULL;
        size_t before = (ARENA_PAGE - (uintptr_t)p % ARENA_PAGE) % ARENA_PAGE, after = ARENA_PAGE - before;
        struct af_arena_chunk *c = (struct af_arena_chunk *)(void *)(p + before);
        if (before > 0)
                munmap(p, before);
        if (after > 0)
                munmap(p + before + size, after);
        (void)madvise(c, size, MADV_HUGEPAGE); /* without, it is small pages */
        *c = (struct af_arena_chunk){.capacity = size - sizeof(*c), .mapped = size, .zeroed = true};
        return c;
}

/* What a small chunk hands out is cleared piece by piece: a short-lived arena does not pay for the part that nobody asks for. */
static struct af_arena_chunk *chunk_new(const struct af_arena_chunk *previous, size_t n) {
        size_t capacity = previous ? AF_MIN(previous->capacity * 2, ARENA_MAX_DOUBLED - sizeof(*previous)) : ARENA_MIN_CHUNK;

        capacity = AF_MAX(capacity, n);
        if (capacity > ARENA_PAGE / 2)
                return chunk_map(capacity);
        struct af_arena_chunk *c = malloc(sizeof(*c) + capacity);
        if (c)
                *c = (struct af_arena_chunk){.capacity = capacity};
        return c;
}

void *af_arena_alloc(struct af_arena *arena, size_t n) {
        if (n > SIZE_MAX / 4)
                return NULL;
        n = AF_ALIGN_UP(AF_MAX(n, (size_t)1), (size_t)ARENA_ALIGN);
        if (arena->max_bytes > 0 && (n > arena->max_bytes || arena->n_bytes > arena->max_bytes - n))
                return NULL;
        struct af_arena_chunk *c = arena->head;
        if (!c || c->capacity - c->used < n) {
                struct af_arena_chunk *fresh = chunk_new(c, n);
                if (!fresh)
                        return NULL;
                fresh->next = c;
                arena->head = c = fresh;
        }
        void *p = c->data + c->used;
        if (!c->zeroed)
                memset(p, 0, n);
        c->used += n;
        arena->n_bytes += n;
        return p;
}

void *af_arena_calloc(struct af_arena *arena, size_t n, size_t size) {
        size_t total;

        if (__builtin_mul_overflow(n, size, &total))
                return NULL;
        return af_arena_alloc(arena, total);
}

void *af_arena_memdup(struct af_arena *arena, const void *p, size_t n) {
        if (n == SIZE_MAX)
                return NULL;
        uint8_t *copy = af_arena_alloc(arena, n + 1);
        if (copy && n > 0)
                memcpy(copy, p, n);
        return copy;
}

char *af_arena_strdup(struct af_arena *arena, const char *s) {
        return af_arena_memdup(arena, s, strlen(s));
}

char *af_arena_printf(struct af_arena *arena, const char *fmt, ...) {
        va_list args;

        va_start(args, fmt);
        int n = vsnprintf(NULL, 0, fmt, args);
        va_end(args);
        if (n < 0)
                return NULL;
        char *text = af_arena_alloc(arena, (size_t)n + 1);
        if (!text)
                return NULL;
        va_start(args, fmt);
        vsnprintf(text, (size_t)n + 1, fmt, args);
        va_end(args);
        return text;
}

int af_arena_grow(struct af_arena *arena, void *p_array, uint32_t *cap, uint32_t n_need, size_t elem_size) {
        void *old, *fresh;

        if (n_need <= *cap)
                return 0;
        uint64_t want = AF_MAX((uint64_t)*cap * 2, (uint64_t)8);
        want = AF_MIN(AF_MAX(want, (uint64_t)n_need), (uint64_t)UINT32_MAX);
        fresh = af_arena_calloc(arena, want, elem_size);
        if (!fresh)
                return -ENOMEM;
        /* p_array is the address of a T *; memcpy keeps strict aliasing out of it. */
        memcpy(&old, p_array, sizeof(old));
        if (*cap > 0)
                memcpy(fresh, old, *cap * elem_size);
        memcpy(p_array, &fresh, sizeof(fresh));
        *cap = (uint32_t)want;
        return 0;
}
