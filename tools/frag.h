/* SPDX-License-Identifier: Apache-2.0 */
/* A fragment file, parsed and checked. */
#pragma once

#include "base/arena.h"
#include "compiler/graph/graph.h"

struct af_frag {
        struct af_arena arena;
        const char *path;
        struct af_fragment f;
        struct af_graph g;       /* nodes in topological order, with the file's names */
        const uint32_t *node_of; /* per node of f: its node in g */
};
/* Reads and checks path ("-": stdin). Mistakes go to stderr. 0, or AF_EXIT_FAILED; then nothing is left to free. */
int af_frag_load(const char *path, struct af_frag *ret_frag) AF_WARN_UNUSED;
/* The same with the mistakes in diags. 0, -errno, AF_GRAPH_E_INVALID. */
int af_frag_parse(const char *path, struct af_frag *ret_frag, struct af_diags *diags) AF_WARN_UNUSED;
/* For a fragment that was built elsewhere (an importer): f.arena is frag's own. 0, -ENOMEM, AF_GRAPH_E_INVALID. */
int af_frag_resolve(struct af_frag *frag, struct af_diags *diags) AF_WARN_UNUSED;
void af_frag_deinit(struct af_frag *frag);
