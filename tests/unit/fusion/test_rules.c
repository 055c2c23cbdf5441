/* SPDX-License-Identifier: Apache-2.0 */
/* Rule files: the published one, the shipped ones, and every kind of mistake with its file and line. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "compiler/fusion/rules.h"

static bool holds(const struct af_rule *rule, enum af_op op) {
        return af_op_set_has(&rule->ops, op);
}

Test(rules, the_published_file_loads_unchanged) {
        struct af_arena arena;
        struct af_diags diags = {0};
        struct af_buf text = AF_BUF_INIT;
        struct af_rule rule;
        char path[4096];
        af_arena_init(&arena, 0);
        snprintf(path, sizeof(path), "%s/tests/golden/rules/published.yaml", getenv("AF_SOURCE_ROOT"));
        cr_assert_eq(af_io_read_file(path, 1 << 16, &text), 0);
        cr_assert_eq(af_rule_parse(&arena, path, (const char *)text.data, text.size, &rule, &diags), 0);
        cr_assert_eq(diags.n_items, 0, "no warning either");
        cr_assert_str_eq(rule.name, "published");
        cr_assert_str_eq(rule.type, "elementwise_chain");
        cr_assert_str_eq(rule.tmpl, "pointwise_fusion_kernel");
        cr_assert_str_eq(rule.tiling_strategy, "auto_tiling");
        cr_assert_str_eq(rule.memory_layout, "NCHW");
        cr_assert(rule.shape_compatible && rule.dtype_match && rule.single_consumer);
        for (unsigned op = 0; op < AF_N_OPS; op++) {
                bool want =
                        op == AF_OP_ADD || op == AF_OP_SUB || op == AF_OP_MUL || op == AF_OP_DIV || op == AF_OP_RELU || op == AF_OP_SIGMOID;
                cr_assert_eq(holds(&rule, op), want);
        }
        af_buf_deinit(&text);
        af_diags_deinit(&diags);
        af_arena_deinit(&arena);
}

Test(rules, the_shipped_files_hold_every_op_of_their_classes) {
        struct af_arena arena;
        struct af_diags diags = {0};
        struct af_rules rules;
        char dir[4096];
        af_arena_init(&arena, 0);
        snprintf(dir, sizeof(dir), "%s/rules/fusion", getenv("AF_SOURCE_ROOT"));
        cr_assert_eq(af_rules_load_dir(&arena, dir, &rules, &diags), 0);
        cr_assert_eq(diags.n_items, 0);
        static const char *const names[] = {"elementwise_chain",
                                            "elementwise_broadcast",
                                            "elementwise_reduce",
                                            "reduce_elementwise",
                                            "gather",
                                            "concat",
                                            "split",
                                            "slice",
                                            "transpose",
                                            "pad",
                                            "mixed",
                                            "siblings"};
        cr_assert_eq(rules.n_rules, AF_ARRAY_SIZE(names));
        for (uint32_t i = 0; i < rules.n_rules; i++) {
                cr_assert_str_eq(rules.rules[i].name, names[i]);
                cr_assert_str_eq(rules.rules[i].type, names[i]);
        }
        for (unsigned op = 0; op < AF_N_OPS; op++) {
                enum af_op_class cls = af_op_info(op)->cls;
                const char *name = af_op_info(op)->name;
                bool chain = cls == AF_CLASS_ELEMENTWISE || cls == AF_CLASS_COMPARE || cls == AF_CLASS_SELECT || cls == AF_CLASS_CAST ||
                             cls == AF_CLASS_VIEW;
                bool spread = chain || cls == AF_CLASS_BROADCAST || cls == AF_CLASS_IOTA;
                bool kernel = cls != AF_CLASS_OPAQUE && cls != AF_CLASS_COMPOSITE;
                cr_expect_eq(holds(&rules.rules[0], op), chain, "%s", name);
                cr_expect_eq(holds(&rules.rules[1], op), spread, "%s", name);
                cr_expect_eq(holds(&rules.rules[2], op), spread || cls == AF_CLASS_REDUCE, "%s", name);
                cr_expect_eq(holds(&rules.rules[3], op), spread || cls == AF_CLASS_REDUCE, "%s", name);
                cr_expect_eq(holds(&rules.rules[5], op), spread || cls == AF_CLASS_REDUCE || cls == AF_CLASS_CONCAT, "%s", name);
                cr_expect_eq(holds(&rules.rules[10], op), kernel, "%s", name);
                cr_expect_eq(holds(&rules.rules[11], op), kernel, "%s", name);
        }
        af_diags_deinit(&diags);
        af_arena_deinit(&arena);
}

static void expect(const char *text, int code, const char *where, const char *what) {
        struct af_arena arena;
        struct af_diags diags = {0};
        struct af_rule rule = {0};
        bool found = !where;
        af_arena_init(&arena, 0);
        cr_expect_eq(af_rule_parse(&arena, "dir/07_mine.yaml", text, strlen(text), &rule, &diags), code, "%s", text);
        for (uint32_t i = 0; i < diags.n_items; i++) {
                found |= where && strcmp(diags.items[i].where, where) == 0 && strstr(diags.items[i].what, what);
                if (!found)
                        fprintf(stderr, "%s: %s\n", diags.items[i].where, diags.items[i].what);
        }
        cr_expect(found, "%s", text);
        if (!code)
                cr_expect_str_eq(rule.name, "mine");
        af_diags_deinit(&diags);
        af_arena_deinit(&arena);
}

#define PATTERN "fusion_pattern:\n  type: elementwise_chain\n  ops: [add]\n"
#define CODEGEN "codegen:\n  template: a.j2\n"

Test(rules, mistakes_name_file_and_line) {
        expect(PATTERN CODEGEN, 0, NULL, NULL);
        expect(PATTERN "constraints: {max_nodes: 8}\n" CODEGEN, 0, NULL, NULL);
        expect(PATTERN "surprise: 1\n" CODEGEN, 0, "dir/07_mine.yaml:4", "unknown key surprise");
        expect(PATTERN "constraints:\n  - color: blue\n" CODEGEN, 0, "dir/07_mine.yaml:5", "unknown key color");
        expect(PATTERN "constraints:\n  - dtype_match: maybe\n" CODEGEN, AF_RULES_E_INVALID, "dir/07_mine.yaml:5", "true or false");
        expect(PATTERN "constraints:\n  - memory_layout: NHWC\n" CODEGEN, AF_RULES_E_INVALID, "dir/07_mine.yaml:5", "NHWC");
        expect(PATTERN "constraints:\n  - max_nodes: 0\n" CODEGEN, AF_RULES_E_INVALID, "dir/07_mine.yaml:5", "max_nodes");
        expect(PATTERN "constraints:\n  - max_reductions: no\n" CODEGEN, AF_RULES_E_INVALID, "dir/07_mine.yaml:5", "max_reductions");
        expect(PATTERN "constraints:\n  - broadcast_back: 3\n" CODEGEN, AF_RULES_E_INVALID, "dir/07_mine.yaml:5", "broadcast_back");
        expect("fusion_pattern:\n  type: mixed\n  ops: [class:frob]\n" CODEGEN, AF_RULES_E_INVALID, "dir/07_mine.yaml:3",
               "unknown op: class:frob");
        expect("fusion_pattern:\n  type: mixed\n  ops: [any, class:reduce, add]\n" CODEGEN, 0, NULL, NULL);
        expect("fusion_pattern:\n  type: star\n  ops: [add]\n" CODEGEN, AF_RULES_E_INVALID, "dir/07_mine.yaml:2", "star");
        expect("fusion_pattern:\n  type: elementwise_chain\n  ops: [add, frob]\n" CODEGEN, AF_RULES_E_INVALID, "dir/07_mine.yaml:3",
               "unknown op: frob");
        expect("fusion_pattern:\n  type: elementwise_chain\n" CODEGEN, AF_RULES_E_INVALID, "dir/07_mine.yaml:2", "ops");
        expect(PATTERN, AF_RULES_E_INVALID, "dir/07_mine.yaml:1", "codegen");
        expect(PATTERN "codegen:\n  template: ../../etc/passwd\n", AF_RULES_E_INVALID, "dir/07_mine.yaml:5", "file name");
        expect(PATTERN "codegen:\n  tiling_strategy: auto_tiling\n", AF_RULES_E_INVALID, "dir/07_mine.yaml:5", "template is missing");
        expect("[1, 2]", AF_RULES_E_INVALID, "dir/07_mine.yaml:1", "a rule is a map");
        expect("", AF_RULES_E_INVALID, "dir/07_mine.yaml:1", "empty");
        expect("a: [", AF_RULES_E_INVALID, NULL, NULL);
}

Test(rules, reductions_and_broadcast_back_are_bounded_only_where_a_rule_says_so) {
        struct af_arena arena;
        struct af_diags diags = {0};
        struct af_rule rule;
        static const char open_text[] = PATTERN CODEGEN;
        static const char text[] = PATTERN "constraints:\n  - max_reductions: 2\n  - broadcast_back: false\n" CODEGEN;
        af_arena_init(&arena, 0);
        cr_assert_eq(af_rule_parse(&arena, "a.yaml", open_text, strlen(open_text), &rule, &diags), 0);
        cr_assert(rule.max_reductions == 0 && !rule.no_broadcast_back);
        cr_assert_eq(af_rule_parse(&arena, "a.yaml", text, strlen(text), &rule, &diags), 0);
        cr_assert(rule.max_reductions == 2 && rule.no_broadcast_back);
        cr_assert_eq(diags.n_items, 0);
        af_arena_deinit(&arena);
}
