/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers for tests whose seed is printed: AF_TEST_SEED repeats a run. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

struct random {
        uint64_t state, seed;
};

static inline struct random random_make(const char *what) {
        const char *given = getenv("AF_TEST_SEED");
        uint64_t seed = given ? strtoull(given, NULL, 0) : af_clock_now_ns() | 1;

        printf("%s: AF_TEST_SEED=%llu\n", what, (unsigned long long)seed);
        fflush(stdout);
        return (struct random){.state = seed, .seed = seed};
}

/* splitmix64 */
static inline uint64_t random_u64(struct random *r) {
        uint64_t z = r->state += 0x9e3779b97f4a7c15u;

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
}

/* 0 .. n-1 */
static inline uint32_t random_below(struct random *r, uint32_t n) {
        return (uint32_t)(random_u64(r) % n);
}

/* Changes a few bytes of n: flips, replacements, interesting values. */
static inline void random_mutate(struct random *r, uint8_t *bytes, size_t n) {
        static const uint32_t values[] = {0, 1, 2, 15, 16, 17, 63, 64, 255, 256, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};

        for (uint32_t i = 0, times = 1 + random_below(r, 4); i < times && n > 0; i++) {
                size_t at = random_u64(r) % n;
                switch (random_below(r, 4)) {
                case 0:
                        bytes[at] ^= (uint8_t)(1u << random_below(r, 8));
                        break;
                case 1:
                        bytes[at] = (uint8_t)random_u64(r);
                        break;
                case 2:
                        bytes[at]++;
                        break;
                case 3: {
                        uint32_t v = values[random_below(r, sizeof(values) / sizeof(values[0]))];
                        for (size_t j = 0; j < 4 && (at & ~(size_t)3) + j < n; j++)
                                bytes[(at & ~(size_t)3) + j] = (uint8_t)(v >> (8 * j));
                        break;
                }
                }
        }
}
