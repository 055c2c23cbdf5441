/* SPDX-License-Identifier: Apache-2.0 */
/* A fragment in words, for people and for likeness: target, operations, inputs and outputs, blank-separated. In no key. */
#pragma once

#include "base/buf.h"
#include "compiler/graph/graph.h"

#define AF_GRAPH_WORDS_BYTES 1000u

/*
 * Appends at most about AF_GRAPH_WORDS_BYTES: `Ascend910B2 host fast strict abs add relu in float32[4,8] out float32[4,8]`. A symbolic size
 * is `?`; what does not fit is left out, and counted (`+12`).
 */
void af_graph_words(const struct af_graph *g, struct af_buf *buf);
