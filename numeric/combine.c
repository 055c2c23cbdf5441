/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ordered combine of one run of n values, fixed by n and `last` alone:
 *
 *   last:   chunks of 1,024; a chunk is 64 lanes, lane j = identity, then elements j, j + 64, ... in index order; then lanes in
 *           adjacent pairs, 64 -> 32 -> ... -> 1.
 *   other:  chunks of 32, identity, then its elements in index order.
 *
 * The chunk results, in order, are the next run under the same rule, until one is left. At least one pass runs, so a single -0.0
 * sums to +0.0. No values: the identity.
 *
 * Levels are filled as a stream: a full chunk is reduced and goes one level up, so the memory is fixed.
 */
#include <string.h>

#include "numeric/expand.h"
#include "numeric/loops.h"
#include "numeric/prim.h"

enum {
        LANES = 64,
        CHUNK_LAST = 1024,
        CHUNK_OTHER = 32,
        MAX_LEVELS = 14, /* 32^13 > 2^64 */
};

AF_FN int64_t af_i64_add(int64_t a, int64_t b) {
        return (int64_t)((uint64_t)a + (uint64_t)b);
}
AF_FN int64_t af_i64_mul(int64_t a, int64_t b) {
        return (int64_t)((uint64_t)a * (uint64_t)b);
}
AF_FN int64_t af_i64_max(int64_t a, int64_t b) {
        return a > b ? a : b;
}
AF_FN int64_t af_i64_min(int64_t a, int64_t b) {
        return a < b ? a : b;
}

/* One accumulate step for each combine and type: acc[j] op= src[j * stride], j < n <= 64; and the fold of a whole chunk. */
#define COMBINE(fn, T)                                                                                                                     \
        AF_LOOP_FN void lanes_##fn(void *acc_, const void *src_, size_t n, int64_t stride) {                                               \
                T *acc = acc_;                                                                                                             \
                const T *src = src_;                                                                                                       \
                                                                                                                                           \
                if (stride == 1) {                                                                                                         \
                        AF_LOOP(n)                                                                                                         \
                        acc[i] = fn(acc[i], src[i]);                                                                                       \
                } else {                                                                                                                   \
                        for (size_t i = 0; i < n; i++)                                                                                     \
                                acc[i] = fn(acc[i], src[(int64_t)i * stride]);                                                             \
                }                                                                                                                          \
        }                                                                                                                                  \
        static void tree_##fn(void *acc_) {                                                                                                \
                T *acc = acc_;                                                                                                             \
                                                                                                                                           \
                for (unsigned m = LANES / 2; m; m /= 2)                                                                                    \
                        for (unsigned j = 0; j < m; j++)                                                                                   \
                                acc[j] = fn(acc[2 * j], acc[2 * j + 1]);                                                                   \
        }                                                                                                                                  \
        static void run_##fn(void *acc_, const void *src_, size_t n, int64_t stride) {                                                     \
                T acc = *(T *)acc_;                                                                                                        \
                const T *src = src_;                                                                                                       \
                                                                                                                                           \
                for (size_t i = 0; i < n; i++)                                                                                             \
                        acc = fn(acc, src[(int64_t)i * stride]);                                                                           \
                *(T *)acc_ = acc;                                                                                                          \
        }

#define COMBINES(T, name)                                                                                                                  \
        COMBINE(af_##name##_add, T)                                                                                                        \
        COMBINE(af_##name##_max, T)                                                                                                        \
        COMBINE(af_##name##_min, T)                                                                                                        \
        COMBINE(af_##name##_mul, T)
COMBINES(float, f32)
COMBINES(int32_t, i32)
COMBINES(int64_t, i64)
COMBINES(uint16_t, f16)

struct combine_fns {
        void (*lanes)(void *acc, const void *src, size_t n, int64_t stride);
        void (*tree)(void *acc);
        void (*run)(void *acc, const void *src, size_t n, int64_t stride);
};

#define FNS(fn)                                                                                                                            \
        { lanes_##fn, tree_##fn, run_##fn }
#define FNS4(name)                                                                                                                         \
        { FNS(af_##name##_add), FNS(af_##name##_max), FNS(af_##name##_min), FNS(af_##name##_mul) }
static const struct combine_fns table[4][4] = {FNS4(f32), FNS4(i32), FNS4(i64), FNS4(f16)};

static const struct combine_fns *find_fns(enum af_combine combine, enum af_dtype acc) {
        unsigned t = acc == AF_DTYPE_FLOAT32 ? 0 : acc == AF_DTYPE_INT32 ? 1 : acc == AF_DTYPE_INT64 ? 2 : 3;

        return &table[t][combine];
}

uint64_t af_combine_identity(enum af_combine combine, enum af_dtype acc) {
        static const uint64_t rows[4][4] = {
                /* ADD, MAX, MIN, MUL */
                {0, 0xff800000u, 0x7f800000u, 0x3f800000u},
                {0, 0x80000000u, 0x7fffffffu, 1},
                {0, (uint64_t)INT64_MIN, (uint64_t)INT64_MAX, 1},
                {0, 0xfc00u, 0x7c00u, 0x3c00u},
        };
        unsigned t = acc == AF_DTYPE_FLOAT32 ? 0 : acc == AF_DTYPE_INT32 ? 1 : acc == AF_DTYPE_INT64 ? 2 : 3;

        return rows[t][combine];
}

bool af_combine_ordered(enum af_combine combine, enum af_dtype acc) {
        return acc == AF_DTYPE_FLOAT32 && (combine == AF_COMBINE_ADD || combine == AF_COMBINE_MUL);
}

/* One level: the lanes (or the one running value) of the chunk that is being filled. */
struct level {
        _Alignas(64) unsigned char acc[LANES * 8]; /* room for 64 of the widest type */
        unsigned n;                                /* elements in the chunk so far */
};
struct stream {
        const struct combine_fns *fns;
        uint64_t identity;
        unsigned size;         /* bytes of an element */
        unsigned chunk, width; /* elements of a chunk; lanes, 1 where it runs in sequence */
        struct level levels[MAX_LEVELS];
        unsigned n_levels;
};

static void level_start(const struct stream *s, struct level *l) {
        for (unsigned j = 0; j < s->width; j++)
                memcpy(l->acc + j * s->size, &s->identity, s->size); /* little-endian */
        l->n = 0;
}

/* The chunk's value, at the start of its acc. */
static const void *level_finish(const struct stream *s, struct level *l) {
        if (s->width > 1)
                s->fns->tree(l->acc);
        return l->acc;
}

static void push(struct stream *s, unsigned k, const void *value);

/* Ends the chunk of level k and hands its value up. */
static void carry(struct stream *s, unsigned k) {
        _Alignas(8) unsigned char value[8];

        memcpy(value, level_finish(s, &s->levels[k]), s->size);
        level_start(s, &s->levels[k]);
        push(s, k + 1, value);
}

static void push(struct stream *s, unsigned k, const void *value) {
        struct level *l = &s->levels[k];
        unsigned lane;

        if (k == s->n_levels) {
                level_start(s, l);
                s->n_levels++;
        }
        if (l->n == s->chunk)
                carry(s, k);
        lane = s->width > 1 ? l->n % LANES : 0;
        s->fns->run(l->acc + lane * s->size, value, 1, 1);
        l->n++;
}

/* Level 0: one chunk of the input. */
static void fill_chunk(struct stream *s, const char *src, unsigned n, int64_t stride) {
        struct level *l = &s->levels[0];

        level_start(s, l);
        if (s->width == 1) {
                s->fns->run(l->acc, src, n, stride);
        } else {
                for (unsigned at = 0; at < n; at += LANES)
                        s->fns->lanes(l->acc, src + (int64_t)at * stride * (int64_t)s->size, n - at < LANES ? n - at : LANES, stride);
        }
        l->n = n;
}

void af_combine_run(enum af_combine combine, enum af_dtype acc, bool last, const void *src, uint64_t n, int64_t stride, void *ret_value) {
        struct stream s = {.fns = find_fns(combine, acc), .identity = af_combine_identity(combine, acc), .size = af_dtype_size(acc)};
        const char *p = src;
        unsigned k = 0;

        s.chunk = last ? CHUNK_LAST : CHUNK_OTHER;
        s.width = last ? LANES : 1;
        s.n_levels = 1;
        if (!n) {
                memcpy(ret_value, &s.identity, s.size);
                return;
        }
        for (uint64_t at = 0; at < n; at += s.chunk) {
                if (at)
                        carry(&s, 0);
                fill_chunk(&s, p + (int64_t)at * stride * (int64_t)s.size, n - at < s.chunk ? (unsigned)(n - at) : s.chunk, stride);
        }
        /* The last, perhaps short, chunk of each level goes up; the level that only ever had one chunk holds the result. */
        for (k = 0; k + 1 < s.n_levels; k++)
                carry(&s, k);
        memcpy(ret_value, level_finish(&s, &s.levels[k]), s.size);
}
