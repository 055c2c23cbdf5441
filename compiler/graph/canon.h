/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Canonical form: the graph without names, dead nodes, unused inputs, hints and accidental order. Two senders with the same
 * computation get the same bytes. Its serialisation is what the library sends and what the fragment digest covers; the format is drawn in
 * canon.c.
 *
 * Numbering: depth-first from the ordered outputs, then from the effectful nodes in order, operands in order; commutative
 * operands ordered by a structural digest first. Linear time.
 */
#pragma once

#include "base/digest.h"
#include "compiler/graph/graph.h"
#include "proto/bundle.h"

#define AF_CANON_VERSION 1

enum { AF_CANON_E_DAMAGED = 1, AF_CANON_E_VERSION = 2, AF_CANON_E_NOT_CANONICAL = 3 };

/*
 * Appends the canonical bytes of g to out; ret_map (may be NULL) tells where the graph's inputs, nodes and symbols went; its arrays
 * are malloc'd. 0 or -ENOMEM.
 */
int af_canon_write(const struct af_graph *g, struct af_buf *out, struct af_slot_map *ret_map) AF_WARN_UNUSED;
/*
 * Graph from canonical bytes: everything is bounds-checked and inferred anew, nothing is believed. Node i is canonical node i, input i
 * canonical slot i. 0, -ENOMEM, AF_CANON_E_DAMAGED, _E_VERSION, AF_GRAPH_E_INVALID with diagnostics is reported as DAMAGED.
 */
int af_canon_read(struct af_graph *g, struct af_arena *arena, const void *p, size_t n, struct af_diags *diags) AF_WARN_UNUSED;
/* Reads, writes again, compares: 0 where p is its own canonical form, NOT_CANONICAL where not. */
int af_canon_verify(const void *p, size_t n, struct af_diags *diags) AF_WARN_UNUSED;
/*
 * The target that canonical bytes begin with, for a look-up; the rest is not looked at. "" is the default. False where the head is not that
 * of a canonical form, or a name has more than AF_CANON_MAX_NAME bytes.
 */
#define AF_CANON_MAX_NAME 63u
struct af_canon_target {
        char soc[AF_CANON_MAX_NAME + 1], toolchain[AF_CANON_MAX_NAME + 1];
        uint8_t twin; /* enum af_twin */
};
bool af_canon_target_read(const void *p, size_t n, struct af_canon_target *ret_target) AF_WARN_UNUSED;
