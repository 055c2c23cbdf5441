/* SPDX-License-Identifier: Apache-2.0 */
/* Fusion rules: rules/fusion/<nn>_<stem>.yaml, tried in file-name order. docs/rules.md documents every key. */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/io.h"
#include "numeric/op.h"

#define AF_OP_SET_WORDS ((AF_N_OPS + 63u) / 64u)
struct af_op_set { /* over enum af_op */
        uint64_t words[AF_OP_SET_WORDS];
};
static inline void af_op_set_add(struct af_op_set *s, unsigned op) {
        s->words[op / 64] |= UINT64_C(1) << op % 64;
}
static inline bool af_op_set_has(const struct af_op_set *s, unsigned op) {
        return s->words[op / 64] >> op % 64 & 1;
}
/* Whether every op of part is in whole. */
static inline bool af_op_set_holds(const struct af_op_set *whole, const struct af_op_set *part) {
        for (unsigned i = 0; i < AF_OP_SET_WORDS; i++)
                if (part->words[i] & ~whole->words[i])
                        return false;
        return true;
}
static inline void af_op_set_join(struct af_op_set *to, const struct af_op_set *from) {
        for (unsigned i = 0; i < AF_OP_SET_WORDS; i++)
                to->words[i] |= from->words[i];
}

struct af_rule {
        const char *name; /* file stem without the leading number */
        const char *type; /* fusion_pattern.type: selects the matcher (docs/rules.md) */
        struct af_op_set ops;
        bool shape_compatible, dtype_match, single_consumer; /* constraints; absent: false */
        bool no_broadcast_back;                              /* broadcast_back: false. Absent: what the schedule can run */
        const char *memory_layout;                           /* NULL: any; "NCHW": row-major contiguous, any rank */
        uint32_t max_nodes;                                  /* 0: the SoC's */
        uint32_t max_reductions;                             /* 0: what the schedule can run */
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
#define AF_RULE_MAX_BYTES (1u << 20)
/* One rule per file, in their order; the bytes may go afterwards. */
int af_rules_parse(struct af_arena *arena, const struct af_io_file *files, uint32_t n, struct af_rules *ret_rules,
                   struct af_diags *diags) AF_WARN_UNUSED;
/* Every *.yaml of a directory, in name order. */
int af_rules_load_dir(struct af_arena *arena, const char *dir, struct af_rules *ret_rules, struct af_diags *diags) AF_WARN_UNUSED;
