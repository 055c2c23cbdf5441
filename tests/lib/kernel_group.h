/* SPDX-License-Identifier: Apache-2.0 */
/* Groups without the fusion pass: what a run of nodes reads and stores, and runs that the schedule takes as one kernel. */
#pragma once

#include "compiler/schedule/kernel.h"

struct kernel_users { /* of af_graph_users */
        uint32_t *first, *list;
};
/* ret_group's lists are in g's arena and nodes is borrowed. 0 or -ENOMEM. */
int kernel_group_make(const struct af_graph *g, const struct kernel_users *users, const uint32_t *nodes, uint32_t n,
                      struct af_group *ret_group) AF_WARN_UNUSED;
/*
 * How many nodes from nodes[0] on the schedule takes as one kernel, at most max and at least 1. Runs in topological order never have a path
 * out and in again.
 */
uint32_t kernel_group_grow(const struct af_graph *g, struct af_soc *soc, const uint32_t *nodes, uint32_t n, uint32_t max);
/* Ascend910B2's sizes and costs, written out: a test that does not depend on rules/soc. */
void kernel_soc(struct af_soc *ret_soc);
