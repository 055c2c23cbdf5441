/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a shape expression: what parses prints to a text of the same id, and its value lies in its range. */
#include <stdlib.h>

#include "proto/expr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const char *const names[] = {"s0", "s1", "s2"};
        static const int64_t mins[] = {0, 1, -4}, maxs[] = {7, 1 << 20, 3}, values[] = {5, 1000, -2};
        struct af_arena arena;
        struct af_expr_pool pool;
        uint32_t id, again;
        int64_t v, low, high;

        af_arena_init(&arena, 64u << 20);
        af_expr_pool_init(&pool, &arena);
        if (af_expr_parse_sorted(&pool, (const char *)data, size, names, NULL, 3, &id) == 0) {
                struct af_buf b = AF_BUF_INIT;
                af_expr_print(&pool, id, names, &b);
                if (af_expr_parse_sorted(&pool, (const char *)b.data, b.size, names, NULL, 3, &again) != 0 || again != id)
                        abort();
                af_expr_range(&pool, id, mins, maxs, &low, &high);
                if (af_expr_eval(&pool, id, values, &v) == 0 && (v < low || v > high))
                        abort();
                af_buf_deinit(&b);
        }
        af_arena_deinit(&arena);
        return 0;
}
