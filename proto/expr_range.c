/* SPDX-License-Identifier: Apache-2.0 */
/* Interval arithmetic over shape expressions. Every node's value is an int64 (else evaluation refuses), so saturating is sound. */
#include "proto/expr.h"

struct range {
        int64_t min, max;
};

static int64_t saturate(__int128 v) {
        return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (int64_t)v;
}

/* Smallest range that holds all n values. */
static struct range hull(const __int128 *v, unsigned n) {
        __int128 min = v[0], max = v[0];

        for (unsigned i = 1; i < n; i++) {
                min = AF_MIN(min, v[i]);
                max = AF_MAX(max, v[i]);
        }
        return (struct range){saturate(min), saturate(max)};
}

static struct range multiply(struct range a, struct range b) {
        const __int128 v[4] = {(__int128)a.min * b.min, (__int128)a.min * b.max, (__int128)a.max * b.min, (__int128)a.max * b.max};

        return hull(v, 4);
}

static __int128 floor_div(int64_t a, int64_t b) {
        __int128 q = (__int128)a / b;

        return q - (q * b != a && (a < 0) != (b < 0));
}

static struct range divide(struct range a, struct range b) {
        /* The quotient is monotone in the divisor on each side of zero; zero itself refuses at evaluation. */
        const int64_t candidates[4] = {b.min, b.max, -1, 1};
        __int128 v[8];
        unsigned n = 0;

        for (unsigned i = 0; i < 4; i++) {
                int64_t d = candidates[i];
                if (d == 0 || d < b.min || d > b.max)
                        continue;
                v[n++] = floor_div(a.min, d);
                v[n++] = floor_div(a.max, d);
        }
        return n > 0 ? hull(v, n) : (struct range){INT64_MIN, INT64_MAX};
}

static struct range modulo(struct range a, struct range b) {
        if (a.min >= 0 && b.min > a.max)
                return a;
        return (struct range){b.min < 0 ? b.min + 1 : 0, b.max > 0 ? b.max - 1 : 0};
}

static struct range range_of(const struct af_expr_pool *pool, uint32_t id, const int64_t *mins, const int64_t *maxs) {
        const struct af_expr *e = &pool->exprs[id];

        if (e->kind == AF_EXPR_CONST)
                return (struct range){e->value, e->value};
        if (e->kind == AF_EXPR_SYMBOL)
                return (struct range){mins[e->value], maxs[e->value]};
        struct range a = range_of(pool, e->a, mins, maxs), b = range_of(pool, e->b, mins, maxs);
        switch ((enum af_expr_kind)e->kind) {
        case AF_EXPR_ADD:
                return (struct range){saturate((__int128)a.min + b.min), saturate((__int128)a.max + b.max)};
        case AF_EXPR_SUB:
                return (struct range){saturate((__int128)a.min - b.max), saturate((__int128)a.max - b.min)};
        case AF_EXPR_MUL:
                return multiply(a, b);
        case AF_EXPR_FLOORDIV:
                return divide(a, b);
        case AF_EXPR_MOD:
                return modulo(a, b);
        case AF_EXPR_MAX:
                return (struct range){AF_MAX(a.min, b.min), AF_MAX(a.max, b.max)};
        case AF_EXPR_MIN:
                return (struct range){AF_MIN(a.min, b.min), AF_MIN(a.max, b.max)};
        case AF_EXPR_CONST:
        case AF_EXPR_SYMBOL:
                break;
        }
        return (struct range){INT64_MIN, INT64_MAX};
}

void af_expr_range(const struct af_expr_pool *pool, uint32_t id, const int64_t *mins, const int64_t *maxs, int64_t *ret_min,
                   int64_t *ret_max) {
        struct range r = range_of(pool, id, mins, maxs);

        *ret_min = r.min;
        *ret_max = r.max;
}
