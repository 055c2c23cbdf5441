/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/bind.h"

bool bind_choice(const struct af_graph *g, uint32_t k, int64_t *ret_values) {
        static const int64_t sizes[] = {32, 31, 33, 1, 0, 65, 128, 513, 1025, 2500};
        if (k >= AF_ARRAY_SIZE(sizes))
                return false;
        for (uint32_t i = 0; i < g->n_symbols; i++) {
                const struct af_graph_symbol *s = &g->symbols[i];
                int64_t v = sizes[(k + 3 * i) % AF_ARRAY_SIZE(sizes)];
                v = v < s->min ? s->min : v > s->max ? s->max : v;
                v += (s->multiple_of - v % s->multiple_of) % s->multiple_of;
                ret_values[i] = v > s->max ? v - s->multiple_of : v;
        }
        return true;
}
