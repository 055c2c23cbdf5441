/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing tensors, and filling them with test data. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "compiler/reference/internal.h"
#include "numeric/half.h"

#define COMPARE_BLOCK 1024

struct comparison {
        enum af_dtype dtype;
        uint64_t n_different, first;
        double max_error;
};

static void compare_block(struct comparison *c, const char *a, const char *b, int64_t at, int64_t n) {
        unsigned size = af_dtype_size(c->dtype);

        if (memcmp(a, b, (size_t)n * size) == 0)
                return;
        for (int64_t i = 0; i < n; i++, a += size, b += size) {
                if (memcmp(a, b, size) == 0)
                        continue;
                double x = af_reference_number(a, c->dtype), y = af_reference_number(b, c->dtype);
                if (isnan(x) && isnan(y))
                        continue;
                if (c->n_different++ == 0)
                        c->first = (uint64_t)(at + i);
                if (isfinite(x) && isfinite(y))
                        c->max_error = fmax(c->max_error, fabs(x - y) / fmax(fabs(y), 1e-30));
        }
}

uint64_t af_tensor_compare(const struct af_tensor *a, const struct af_tensor *b, double *ret_max_error, uint64_t *ret_first) {
        struct comparison c = {.dtype = a->dtype, .first = UINT64_MAX};
        struct af_view va, vb;
        char block_a[COMPARE_BLOCK * 8], block_b[COMPARE_BLOCK * 8];

        af_view_of(a, &va);
        af_view_of(b, &vb);
        if (a->dtype != b->dtype || a->rank != b->rank || memcmp(a->dims, b->dims, a->rank * sizeof(*a->dims)) != 0) {
                c.n_different = (uint64_t)AF_MAX(AF_MAX(va.count, vb.count), (int64_t)1);
                c.first = 0;
                c.max_error = INFINITY;
        } else {
                for (int64_t at = 0; at < va.count; at += COMPARE_BLOCK) {
                        int64_t n = AF_MIN((int64_t)COMPARE_BLOCK, va.count - at);
                        af_view_read(&va, at, n, block_a);
                        af_view_read(&vb, at, n, block_b);
                        compare_block(&c, block_a, block_b, at, n);
                }
        }
        if (ret_max_error)
                *ret_max_error = c.max_error;
        if (ret_first)
                *ret_first = c.first;
        return c.n_different;
}

/* A well-mixed number for (seed, index): splitmix64's finaliser. */
static uint64_t mix(uint64_t x) {
        x += 0x9e3779b97f4a7c15u;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
        x = (x ^ x >> 27) * 0x94d049bb133111ebu;
        return x ^ x >> 31;
}

static const float special_floats[] = {NAN,     INFINITY, -INFINITY, -0.0f,    0.0f,    FLT_MIN,    -FLT_MIN, 1e-45f, -1e-45f,
                                       1e-40f,  FLT_MAX,  -FLT_MAX,  1.0f,     -1.0f,   0.5f,       -0.5f,    1.5f,   2.5f,
                                       65504.f, 65520.f,  6.1e-5f,   5.96e-8f, 3.0e-8f, 16777216.f, 3.3e7f,   88.8f,  -88.8f,
                                       -104.f,  1e10f,    -1e10f,    2048.f,   2049.f,  11.1f,      -17.5f,   9.0f,   -9.0f};

void af_reference_float_put(void *p, enum af_dtype d, double f) {
        float single = (float)f;
        uint16_t half;

        switch (d) {
        case AF_DTYPE_FLOAT16:
                half = af_f16_from_f32(single);
                memcpy(p, &half, sizeof(half));
                break;
        case AF_DTYPE_BFLOAT16:
                half = af_bf16_from_f32(single);
                memcpy(p, &half, sizeof(half));
                break;
        case AF_DTYPE_FLOAT32:
                memcpy(p, &single, sizeof(single));
                break;
        default:
                memcpy(p, &f, sizeof(f));
                break;
        }
}

static int64_t integer_of(uint64_t r, unsigned bits, bool is_signed, bool special) {
        int64_t top = bits == 64 ? INT64_MAX : (int64_t)(((uint64_t)1 << (is_signed ? bits - 1 : bits)) - 1);
        int64_t bottom = is_signed ? -top - 1 : 0;
        const int64_t extremes[] = {bottom, top, bottom + 1, top - 1, 0, 1, is_signed ? -1 : 2, top / 2};

        if (special)
                return extremes[r >> 32 & 7];
        return is_signed ? (int64_t)(r >> 16) % 101 - 50 : (int64_t)(r >> 16 & 0x7f);
}

/* Element number i of the data that seed stands for. */
static void fill_element(char *p, enum af_dtype d, uint64_t seed, uint64_t i, bool specials) {
        uint64_t r = mix(seed ^ mix(i));
        bool special = specials && (r & 7) == 0;
        int64_t integer;

        switch (af_dtype_kind(d)) {
        case 'b':
                *p = (char)(r >> 20 & 1);
                break;
        case 'f':
                if (special)
                        af_reference_float_put(p, d, special_floats[(r >> 8) % AF_ARRAY_SIZE(special_floats)]);
                else /* 24 random bits on [-4, 4), so that sums of float32 round */
                        af_reference_float_put(p, d, (double)(int64_t)(r >> 40) / 2097152.0 - 4.0);
                break;
        default:
                integer = integer_of(r, af_dtype_size(d) * 8, af_dtype_kind(d) == 'i', special);
                memcpy(p, &integer, af_dtype_size(d));
                break;
        }
}

void af_tensor_fill(struct af_tensor *t, uint64_t seed, bool specials) {
        unsigned size = af_dtype_size(t->dtype);
        char block[COMPARE_BLOCK * 8];
        struct af_view v;

        af_view_of(t, &v);
        for (int64_t at = 0; at < v.count; at += COMPARE_BLOCK) {
                int64_t n = AF_MIN((int64_t)COMPARE_BLOCK, v.count - at);
                for (int64_t i = 0; i < n; i++)
                        fill_element(block + i * size, t->dtype, seed, (uint64_t)(at + i), specials);
                af_view_write(&v, at, n, block);
        }
}
