/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/schedule/size.h"

/* Expressions are interned: adding one changes nothing that anyone reads. */
static struct af_expr_pool *pool_of(const struct af_graph *g) {
        return (struct af_expr_pool *)&g->exprs;
}

int64_t af_size_from(const struct af_graph *g, uint32_t expr) {
        int64_t v;
        return af_expr_is_const(&g->exprs, expr, &v) ? v : AF_SIZE_TAG + expr;
}

int64_t af_size_hint(const struct af_graph *g, int64_t s) {
        int64_t hints[AF_LIMIT_SYMBOLS], v = 0;
        if (!af_size_is_symbolic(s))
                return s;
        af_graph_hints(g, hints);
        return af_expr_eval(&g->exprs, (uint32_t)(s - AF_SIZE_TAG), hints, &v) ? 0 : v;
}

uint32_t af_size_x(int64_t s) {
        return af_size_is_symbolic(s) ? (uint32_t)(s - AF_SIZE_TAG) + 1 : 0;
}

int64_t af_size_join(int64_t n, uint32_t x) {
        return x ? AF_SIZE_TAG + x - 1 : n;
}

static bool expr_of(const struct af_graph *g, int64_t s, uint32_t *ret) {
        *ret = (uint32_t)(s - AF_SIZE_TAG);
        return af_size_is_symbolic(s) || af_expr_const(pool_of(g), s, ret) == 0;
}

static bool binary(const struct af_graph *g, enum af_expr_kind kind, int64_t a, int64_t b, int64_t *ret) {
        uint32_t x, y, z;
        if (!expr_of(g, a, &x) || !expr_of(g, b, &y) || af_expr_binary(pool_of(g), kind, x, y, &z))
                return false;
        *ret = af_size_from(g, z);
        return true;
}

bool af_size_mul(const struct af_graph *g, int64_t a, int64_t b, int64_t *ret) {
        if (af_size_is_symbolic(a) || af_size_is_symbolic(b))
                return binary(g, AF_EXPR_MUL, a, b, ret);
        return !__builtin_mul_overflow(a, b, ret) && *ret < AF_SIZE_TAG;
}

bool af_size_add(const struct af_graph *g, int64_t a, int64_t b, int64_t *ret) {
        if (af_size_is_symbolic(a) || af_size_is_symbolic(b))
                return binary(g, AF_EXPR_ADD, a, b, ret);
        return !__builtin_add_overflow(a, b, ret) && *ret < AF_SIZE_TAG;
}

bool af_size_ceil_div(const struct af_graph *g, int64_t a, int64_t b, int64_t *ret) {
        if (!af_size_is_symbolic(a) && !af_size_is_symbolic(b)) {
                *ret = a / b + (a % b != 0);
                return true;
        }
        int64_t up;
        return af_size_add(g, a, b, &up) && af_size_add(g, up, -1, &up) && binary(g, AF_EXPR_FLOORDIV, up, b, ret);
}

/* A product as its constant and its other factors; false where it is a sum of terms. */
static bool factors_of(const struct af_expr_pool *pool, uint32_t id, int64_t *coefficient, uint32_t *factors, uint32_t *n) {
        const struct af_expr *e = &pool->exprs[id];
        if (e->kind == AF_EXPR_CONST)
                return !__builtin_mul_overflow(*coefficient, e->value, coefficient);
        if (e->kind == AF_EXPR_MUL)
                return factors_of(pool, e->a, coefficient, factors, n) && factors_of(pool, e->b, coefficient, factors, n);
        if (e->kind == AF_EXPR_ADD || *n == AF_EXPR_MAX_DEPTH)
                return false;
        factors[(*n)++] = id;
        return true;
}

/* a / b of products: every factor of b is one of a. */
static bool cancel(const struct af_graph *g, uint32_t a, uint32_t b, int64_t *ret) {
        uint32_t fa[AF_EXPR_MAX_DEPTH], fb[AF_EXPR_MAX_DEPTH], na = 0, nb = 0;
        int64_t ca = 1, cb = 1;
        if (!factors_of(&g->exprs, a, &ca, fa, &na) || !factors_of(&g->exprs, b, &cb, fb, &nb) || cb == 0 || ca % cb)
                return false;
        for (uint32_t i = 0; i < nb; i++) {
                uint32_t k = 0;
                while (k < na && fa[k] != fb[i])
                        k++;
                if (k == na)
                        return false;
                fa[k] = fa[--na];
        }
        *ret = ca / cb;
        for (uint32_t i = 0; i < na; i++)
                if (!af_size_mul(g, *ret, AF_SIZE_TAG + fa[i], ret))
                        return false;
        return true;
}

bool af_size_divide(const struct af_graph *g, int64_t a, int64_t b, int64_t *ret) {
        int64_t back;
        if (!af_size_is_symbolic(a) && !af_size_is_symbolic(b)) {
                if (b == 0 || a % b)
                        return false;
                *ret = a / b;
                return true;
        }
        uint32_t x, y;
        if (b == 0 || !expr_of(g, a, &x) || !expr_of(g, b, &y))
                return false;
        if (cancel(g, x, y, ret))
                return true;
        return binary(g, AF_EXPR_FLOORDIV, a, b, ret) && af_size_mul(g, *ret, b, &back) && back == a;
}

bool af_size_min(const struct af_graph *g, int64_t a, int64_t b, int64_t *ret) {
        return binary(g, AF_EXPR_MIN, a, b, ret);
}

bool af_size_max(const struct af_graph *g, int64_t a, int64_t b, int64_t *ret) {
        return binary(g, AF_EXPR_MAX, a, b, ret);
}

static void range(const struct af_graph *g, int64_t s, int64_t *ret_least, int64_t *ret_most) {
        int64_t mins[AF_LIMIT_SYMBOLS], maxs[AF_LIMIT_SYMBOLS];

        for (uint32_t i = 0; i < g->n_symbols; i++) {
                mins[i] = g->symbols[i].min;
                maxs[i] = g->symbols[i].max;
        }
        af_expr_range(&g->exprs, (uint32_t)(s - AF_SIZE_TAG), mins, maxs, ret_least, ret_most);
}

int64_t af_size_most(const struct af_graph *g, int64_t s) {
        int64_t least, most = s;

        if (af_size_is_symbolic(s))
                range(g, s, &least, &most);
        return most;
}

int64_t af_size_least(const struct af_graph *g, int64_t s) {
        int64_t least = s, most;

        if (af_size_is_symbolic(s))
                range(g, s, &least, &most);
        return least;
}

void af_size_dims(const struct af_graph *g, uint32_t value, int64_t *ret_dims) {
        for (uint32_t i = 0; i < g->values[value].rank; i++)
                ret_dims[i] = af_size_from(g, g->values[value].dims[i]);
}

bool af_size_strides(const struct af_graph *g, uint32_t value, int64_t *ret_strides) {
        const struct af_value *v = &g->values[value];
        int64_t s = 1;
        for (uint32_t i = v->rank; i-- > 0;) {
                ret_strides[i] = v->strides ? af_size_from(g, v->strides[i]) : s;
                if (!af_size_mul(g, s, af_size_from(g, v->dims[i]), &s))
                        return false;
        }
        return true;
}
