/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layered drawing of an acyclic graph: ranks from top to bottom, long edges through invisible nodes, order within a rank by barycentres,
 * positions by least squares with the order kept. Sizes and positions in any unit; y grows downwards.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"

enum af_layout_place { AF_LAYOUT_ANY, AF_LAYOUT_TOP, AF_LAYOUT_BOTTOM };
struct af_layout_node {
        double w, h;
        enum af_layout_place place;
        double x, y; /* out: the upper left corner */
        uint32_t rank;
};
struct af_layout_edge {
        uint32_t from, to;
        double from_dx, to_dx; /* where it leaves and arrives, from the node's left side */
        double *points; /* out: x, y pairs from the lower side of `from` to the upper side of `to`; vertical between points 1 and 2, 3 and
                           4, … */
        uint32_t n_points;
};
struct af_layout {
        struct af_arena *arena;
        struct af_layout_node *nodes;
        struct af_layout_edge *edges;
        uint32_t n_nodes, n_edges;
        double gap_x, gap_y;
        double width, height; /* out */
};
/* Edges form no cycle. 0 or -ENOMEM. */
int af_layout_run(struct af_layout *l) AF_WARN_UNUSED;
