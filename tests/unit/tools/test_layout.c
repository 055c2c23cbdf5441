/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "tools/layout.h"

#define N 120

/* Edges lead downwards, nodes of one rank do not overlap, edges end at their nodes. */
static void check(const struct af_layout *l) {
        for (uint32_t i = 0; i < l->n_nodes; i++) {
                const struct af_layout_node *a = &l->nodes[i];
                cr_assert(a->x >= -0.01 && a->x + a->w <= l->width + 0.01 && a->y >= 0 && a->y + a->h <= l->height + 0.01,
                          "node %u lies outside", i);
                for (uint32_t j = 0; j < i; j++) {
                        const struct af_layout_node *b = &l->nodes[j];
                        bool apart = a->x + a->w <= b->x + 0.01 || b->x + b->w <= a->x + 0.01 || a->y + a->h <= b->y + 0.01 ||
                                     b->y + b->h <= a->y + 0.01;
                        cr_assert(apart, "nodes %u and %u overlap", i, j);
                }
        }
        for (uint32_t i = 0; i < l->n_edges; i++) {
                const struct af_layout_edge *e = &l->edges[i];
                cr_assert_lt(l->nodes[e->from].rank, l->nodes[e->to].rank);
                cr_assert_float_eq(e->points[0], l->nodes[e->from].x + e->from_dx, 0.01);
                cr_assert_float_eq(e->points[2 * e->n_points - 1], l->nodes[e->to].y, 0.01);
                for (uint32_t k = 1; k < e->n_points; k++)
                        cr_assert_geq(e->points[2 * k + 1], e->points[2 * k - 1] - 0.01);
        }
}

Test(layout, random_graphs) {
        for (unsigned seed = 1; seed <= 8; seed++) {
                struct af_arena arena;
                struct af_layout_node nodes[N];
                struct af_layout_edge edges[2 * N];
                struct af_layout l = {.arena = &arena, .nodes = nodes, .edges = edges, .n_nodes = N, .gap_x = 10, .gap_y = 20};
                srand(seed);
                af_arena_init(&arena, 0);
                for (uint32_t i = 0; i < N; i++) {
                        nodes[i] = (struct af_layout_node){.w = 20 + rand() % 80, .h = 10 + rand() % 30};
                        for (int k = 0; i > 0 && k < 2; k++) {
                                uint32_t from = i - 1 - (uint32_t)rand() % AF_MIN(i, 12u);
                                edges[l.n_edges++] = (struct af_layout_edge){
                                        .from = from, .to = i, .from_dx = nodes[from].w / 2, .to_dx = nodes[i].w / 3};
                        }
                }
                cr_assert_eq(af_layout_run(&l), 0);
                check(&l);
                af_arena_deinit(&arena);
        }
}

Test(layout, a_chain_is_straight_and_a_tree_has_no_crossing) {
        struct af_arena arena;
        struct af_layout_node nodes[7];
        struct af_layout_edge edges[6];
        af_arena_init(&arena, 0);
        for (int i = 0; i < 7; i++)
                nodes[i] = (struct af_layout_node){.w = 40, .h = 10};
        for (uint32_t i = 0; i < 6; i++)
                edges[i] = (struct af_layout_edge){.from = i, .to = i + 1, .from_dx = 20, .to_dx = 20};
        struct af_layout l = {.arena = &arena, .nodes = nodes, .edges = edges, .n_nodes = 7, .n_edges = 6, .gap_x = 10, .gap_y = 20};
        cr_assert_eq(af_layout_run(&l), 0);
        for (int i = 1; i < 7; i++)
                cr_assert_float_eq(nodes[i].x, nodes[0].x, 0.01);
        cr_assert_float_eq(l.height, 7 * 10 + 6 * 20, 0.01);
        /* 6 feeds 4 and 5, 4 feeds 0 and 1, 5 feeds 2 and 3: siblings stand together. */
        static const uint32_t tree[6][2] = {{6, 4}, {6, 5}, {4, 0}, {5, 2}, {4, 1}, {5, 3}};
        for (int i = 0; i < 6; i++)
                edges[i] = (struct af_layout_edge){.from = tree[i][0], .to = tree[i][1], .from_dx = 20, .to_dx = 20};
        cr_assert_eq(af_layout_run(&l), 0);
        cr_assert_eq((nodes[0].x < nodes[2].x) + (nodes[0].x < nodes[3].x) + (nodes[1].x < nodes[2].x) + (nodes[1].x < nodes[3].x),
                     nodes[4].x < nodes[5].x ? 4 : 0);
        af_arena_deinit(&arena);
}

Test(layout, nothing_and_lone_nodes) {
        struct af_arena arena;
        struct af_layout_node nodes[2] = {{.w = 10, .h = 5}, {.w = 10, .h = 5}};
        struct af_layout l = {.arena = &arena, .nodes = nodes, .n_nodes = 0, .gap_x = 4, .gap_y = 4};
        af_arena_init(&arena, 0);
        cr_assert_eq(af_layout_run(&l), 0);
        cr_assert_eq(l.width, 0);
        l.n_nodes = 2;
        cr_assert_eq(af_layout_run(&l), 0);
        check(&l);
        cr_assert_float_eq(l.width, 24, 0.01);
        af_arena_deinit(&arena);
}
