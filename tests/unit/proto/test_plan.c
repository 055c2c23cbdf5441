/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "proto/bundle.h"
#include "tests/unit/proto/random.h"

static void put_map(struct af_buf *b) {
        uint32_t inputs[] = {1, AF_NONE, 0}, nodes[] = {0, 1}, symbols[] = {0};

        af_slot_map_write(&(struct af_slot_map){inputs, nodes, symbols, 3, 2, 1}, b);
}

Test(slot_map, reads_what_it_writes) {
        struct af_buf b = AF_BUF_INIT;
        struct af_slot_map m;

        put_map(&b);
        cr_assert_eq(b.size, 12 + 6 * 4);
        cr_assert_eq(af_slot_map_read(b.data, b.size, &m), 0);
        cr_assert_eq(m.n_inputs, 3);
        cr_assert_eq(m.inputs[0], 1);
        cr_assert_eq(m.inputs[1], AF_NONE);
        cr_assert_eq(m.nodes[1], 1);
        cr_assert_eq(m.n_symbols, 1);
        af_slot_map_deinit(&m);
        cr_assert_null(m.inputs);
        af_slot_map_deinit(&m);
        af_buf_clear(&b);
        af_slot_map_write(&(struct af_slot_map){0}, &b);
        cr_assert_eq(af_slot_map_read(b.data, b.size, &m), 0);
        cr_assert_eq(m.n_nodes, 0);
        af_slot_map_deinit(&m);
        af_buf_deinit(&b);
}

Test(slot_map, refuses_damage) {
        struct af_buf b = AF_BUF_INIT;
        struct af_slot_map m;

        put_map(&b);
        for (size_t n = 0; n < b.size; n++)
                cr_assert_eq(af_slot_map_read(b.data, n, &m), AF_BUNDLE_E_DAMAGED);
        af_buf_patch_u32(&b, 12, 3);
        cr_assert_eq(af_slot_map_read(b.data, b.size, &m), AF_BUNDLE_E_DAMAGED, "slot beyond the list");
        af_buf_patch_u32(&b, 12, 2);
        cr_assert_eq(af_slot_map_read(b.data, b.size, &m), 0);
        af_slot_map_deinit(&m);
        af_buf_patch_u32(&b, 0, UINT32_MAX);
        af_buf_patch_u32(&b, 4, 7);
        cr_assert_eq(af_slot_map_read(b.data, b.size, &m), AF_BUNDLE_E_DAMAGED, "counts that wrap");
        af_buf_patch_u32(&b, 0, 3);
        af_buf_patch_u32(&b, 4, 2);
        af_buf_put_u8(&b, 0);
        cr_assert_eq(af_slot_map_read(b.data, b.size, &m), AF_BUNDLE_E_DAMAGED, "trailing byte");
        af_buf_deinit(&b);
}

static void put_plan(struct af_buf *b) {
        struct af_plan_kernel kernels[] = {
                {.key = {{1}}, .toolchain = "host", .symbol = "autofused_a", .source = (const uint8_t *)"int a;", .source_size = 6},
                {.key = {{2}}, .toolchain = "ccec", .symbol = "autofused_b", .source = (const uint8_t *)"", .source_size = 0},
        };
        const struct af_plan_view plan = {
                .fragment = {{9, 8, 7}},
                .skeleton = (const uint8_t *)"SKELETON",
                .skeleton_size = 8,
                .slot_map = (const uint8_t *)"map",
                .slot_map_size = 3,
                .canon = (const uint8_t *)"canon",
                .canon_size = 5,
                .n_kernels = 2,
                .kernels = kernels,
        };

        af_plan_write(&plan, b);
}

Test(plan, reads_what_it_writes) {
        struct af_buf b = AF_BUF_INIT;
        struct af_plan_view p;

        put_plan(&b);
        cr_assert_eq(af_plan_read(b.data, b.size, &p), 0);
        cr_assert_eq(p.fragment.bytes[2], 7);
        cr_assert_eq(p.skeleton - b.data, 48, "aligned where the plan is");
        cr_assert_arr_eq(p.skeleton, "SKELETON", 8);
        cr_assert_eq(p.n_kernels, 2);
        cr_assert_str_eq(p.kernels[0].toolchain, "host");
        cr_assert_str_eq(p.kernels[1].symbol, "autofused_b");
        cr_assert_eq(p.kernels[0].source_size, 6);
        cr_assert_arr_eq(p.kernels[0].source, "int a;", 6);
        cr_assert_eq(p.kernels[1].key.bytes[0], 2);
        cr_assert_eq(p.slot_map_size, 3);
        cr_assert_arr_eq(p.canon, "canon", 5);
        cr_assert_eq(p.fallbacks_size, 0);
        af_plan_view_deinit(&p);
        af_plan_view_deinit(&p);
        af_buf_deinit(&b);
}

Test(plan, refuses_damage) {
        struct af_buf b = AF_BUF_INIT;
        struct af_plan_view p;

        put_plan(&b);
        for (size_t n = 0; n < b.size; n++)
                cr_assert_eq(af_plan_read(b.data, n, &p), AF_BUNDLE_E_DAMAGED);
        b.data[0] = 'B';
        cr_assert_eq(af_plan_read(b.data, b.size, &p), AF_BUNDLE_E_DAMAGED);
        b.data[0] = 'A';
        af_buf_patch_u32(&b, 4, UINT32_MAX);
        cr_assert_eq(af_plan_read(b.data, b.size, &p), AF_BUNDLE_E_DAMAGED, "more kernels than bytes");
        af_buf_patch_u32(&b, 4, 2);
        uint8_t *text = memmem(b.data, b.size, "host", 5);
        text[4] = 'x';
        cr_assert_eq(af_plan_read(b.data, b.size, &p), AF_BUNDLE_E_DAMAGED, "a string without an end");
        text[4] = 0;
        text[1] = 0;
        cr_assert_eq(af_plan_read(b.data, b.size, &p), AF_BUNDLE_E_DAMAGED, "a string with a zero inside");
        text[1] = 'o';
        af_buf_put_u8(&b, 0);
        cr_assert_eq(af_plan_read(b.data, b.size, &p), AF_BUNDLE_E_DAMAGED, "trailing byte");
        af_buf_deinit(&b);
}

static uint64_t walk(const struct af_plan_view *p) {
        uint64_t sum = 0;

        for (uint32_t i = 0; i < p->n_kernels; i++) {
                sum += strlen(p->kernels[i].toolchain) + strlen(p->kernels[i].symbol);
                for (uint32_t j = 0; j < p->kernels[i].source_size; j++)
                        sum += p->kernels[i].source[j];
        }
        for (uint32_t i = 0; i < p->skeleton_size; i++)
                sum += p->skeleton[i];
        for (uint32_t i = 0; i < p->canon_size; i++)
                sum += p->canon[i];
        return sum;
}

Test(plan, and_slot_map_survive_any_bytes) {
        struct random r = random_make("plan");
        struct af_buf plan = AF_BUF_INIT, map = AF_BUF_INIT;

        put_plan(&plan);
        put_map(&map);
        for (int round = 0; round < 100000; round++) {
                const struct af_buf *from = round % 2 ? &plan : &map;
                size_t n = random_below(&r, 4) ? from->size : random_below(&r, (uint32_t)from->size);
                uint8_t *copy = malloc(n + 1); /* its own block, so that a read beyond it is seen */
                struct af_plan_view p;
                struct af_slot_map m;
                memcpy(copy, from->data, n);
                random_mutate(&r, copy, n);
                if (from == &plan && af_plan_read(copy, n, &p) == 0) {
                        cr_assert_lt(walk(&p), UINT64_MAX);
                        af_plan_view_deinit(&p);
                } else if (from == &map && af_slot_map_read(copy, n, &m) == 0) {
                        for (uint32_t i = 0; i < m.n_nodes; i++)
                                cr_assert(m.nodes[i] < m.n_nodes || m.nodes[i] == AF_NONE);
                        af_slot_map_deinit(&m);
                }
                free(copy);
        }
        af_buf_deinit(&plan);
        af_buf_deinit(&map);
}
