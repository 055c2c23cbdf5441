/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/bind.h"

#define MANY_ELEMENTS (INT64_C(1) << 22)

/* Whether no value has more elements. */
static bool small_enough(const struct af_graph *g, int64_t most, const int64_t *values) {
        for (uint32_t v = 0; v < g->n_values; v++) {
                int64_t n = 1, d;
                for (uint32_t i = 0; i < g->values[v].rank; i++)
                        if (af_expr_eval(&g->exprs, g->values[v].dims[i], values, &d) || __builtin_mul_overflow(n, d, &n))
                                return false;
                if (n > most)
                        return false;
        }
        return true;
}

/* Halves the largest symbol that may be smaller; false where none may. */
static bool halve(const struct af_graph *g, int64_t *values) {
        uint32_t best = AF_NONE;
        int64_t to = 0;

        for (uint32_t i = 0; i < g->n_symbols; i++) {
                const struct af_graph_symbol *s = &g->symbols[i];
                int64_t v = values[i] / 2 / s->multiple_of * s->multiple_of;
                v = AF_MAX(v, (s->min + s->multiple_of - 1) / s->multiple_of * s->multiple_of);
                if (v < values[i] && (best == AF_NONE || values[i] > values[best])) {
                        best = i;
                        to = v;
                }
        }
        if (best != AF_NONE)
                values[best] = to;
        return best != AF_NONE;
}

bool bind_choice(const struct af_graph *g, uint32_t k, int64_t most, int64_t *ret_values) {
        static const int64_t sizes[] = {32, 31, 33, 1, 0, 65, 128, 513, 1025, 2500, 1 << 20};
        if (k >= AF_ARRAY_SIZE(sizes))
                return false;
        for (uint32_t i = 0; i < g->n_symbols; i++) {
                const struct af_graph_symbol *s = &g->symbols[i];
                int64_t v = sizes[(k + 3 * i) % (k + 1 < AF_ARRAY_SIZE(sizes) ? AF_ARRAY_SIZE(sizes) - 1 : AF_ARRAY_SIZE(sizes))];
                v = v < s->min ? s->min : v > s->max ? s->max : v;
                v += (s->multiple_of - v % s->multiple_of) % s->multiple_of;
                ret_values[i] = v > s->max ? v - s->multiple_of : v;
        }
        while (most && !small_enough(g, most, ret_values) && halve(g, ret_values))
                ;
        return k + 1 < AF_ARRAY_SIZE(sizes) || (g->n_symbols == 1 && small_enough(g, MANY_ELEMENTS, ret_values));
}

bool bind_reduces_nothing(const struct af_graph *g) {
        for (uint32_t i = 0; i < g->n_nodes; i++) {
                const struct af_node *n = &g->nodes[i];
                int64_t dims[AF_LIMIT_RANK];
                for (uint32_t a = 0; n->n_in && a < g->values[n->in[0]].rank; a++)
                        if (af_node_wants_some(n, a) && af_value_static_dims(g, n->in[0], dims) && dims[a] == 0)
                                return true;
        }
        return false;
}
