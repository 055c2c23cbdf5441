/* SPDX-License-Identifier: Apache-2.0 */
/* Fusion rules: rules/fusion/<nn>_<stem>.yaml, tried in file-name order. docs/rules.md documents every key. */
#pragma once

#include "base/arena.h"
#include "base/diag.h"
#include "numeric/op.h"

struct af_rule {
        const char *name; /* file stem without the leading number */
        const char *type; /* fusion_pattern.type: selects the matcher: elementwise_chain, elementwise_broadcast, elementwise_reduce */
        uint64_t ops[3];  /* bit set over enum af_op */
        bool shape_compatible, dtype_match, single_consumer; /* constraints; absent: false */
        const char *memory_layout;                           /* NULL: any; "NCHW": row-major contiguous, any rank */
        uint32_t max_nodes;                                  /* 0: the SoC's */
        const char *tmpl; /* codegen.template: file name stem selects rules/templates/<stem>.j2 ("pointwise_fusion_kernel.cu.j2" ->
                             "pointwise_fusion_kernel") */
        const char *tiling_strategy;
};
struct af_rules {
        const struct af_rule *rules;
        uint32_t n_rules;
};
enum { AF_RULES_E_INVALID = 1 };

/* One YAML document. file is for messages (`file:line`). Unknown keys warn; wrong types, unknown ops or types are errors. 0, -ENOMEM,
 * AF_RULES_E_INVALID. */
int af_rule_parse(struct af_arena *arena, const char *file, const char *text, size_t n, struct af_rule *ret_rule,
                  struct af_diags *diags) AF_WARN_UNUSED;
/* Every *.yaml of a directory, in name order. */
int af_rules_load_dir(struct af_arena *arena, const char *dir, struct af_rules *ret_rules, struct af_diags *diags) AF_WARN_UNUSED;
