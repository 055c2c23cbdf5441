/* SPDX-License-Identifier: Apache-2.0 */
/* Parts that several commands print about a bundle. */
#pragma once

#include <cjson/cJSON.h>
#include <stdio.h>

#include "client/autofuse.h"
#include "tools/frag.h"

const char *af_hit_name(enum autofuse_hit hit); /* "compiled", "joined", "store", "memo" */
/* Last part of a path without ".json" and ".onnx": into out. */
void af_report_stem(const char *path, char *out, size_t size);
/* Nodes of the fragment that are neither fused nor left to the framework: pure views, dead nodes, folded ones. */
uint32_t af_report_free_nodes(const struct af_frag *frag, const struct autofuse_bundle_info *info);
/* One object: path, name, key, hit, compile_us, kernels[], fallbacks[]. */
cJSON *af_report_bundle(const struct af_frag *frag, const struct autofuse_bundle *bundle);
/* `  Fallback <origin> $reason: …` lines. */
void af_report_fallbacks(const struct autofuse_bundle *bundle, FILE *out);
