/* SPDX-License-Identifier: Apache-2.0 */
/* Fragments for tests, written short: JSON with ' in place of ", without the fields that are the same everywhere. */
#pragma once

#include "compiler/graph/graph.h"

struct af_test_graph {
        struct af_arena arena;
        struct af_diags diags;
        struct af_fragment fragment;
        struct af_graph graph;
        int r; /* of af_graph_from_fragment; -1000 where the text did not parse */
};

/*
 * text: the members of a fragment but for schema, with ' for ". Always followed by af_test_graph_deinit, even after a failure: diags
 * tell.
 */
void af_test_graph_make(struct af_test_graph *t, const char *text);
/* The same from plain JSON. */
void af_test_graph_parse(struct af_test_graph *t, const char *json, size_t n);
void af_test_graph_deinit(struct af_test_graph *t);
/* Whether a diagnostic has both texts in it (`where` in its place, `what` in its sentence); either may be NULL. */
bool af_test_diag_has(const struct af_diags *diags, const char *where, const char *what);
/* Prints the diagnostics to stderr: for a failing test's log. */
void af_test_diags_print(const struct af_diags *diags);
