/* SPDX-License-Identifier: Apache-2.0 */
/* Rule files. Every message names file and line. */
#include "compiler/fusion/rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/yaml_tree.h"
#include "compiler/fusion/fuse.h"

struct load {
        struct af_arena *arena;
        const char *file;
        struct af_diags *diags;
        bool failed;
};

static void complain(struct load *l, const struct af_yaml *at, enum af_severity severity, const char *what, const char *detail) {
        char where[512];
        snprintf(where, sizeof(where), "%s:%u", l->file, at ? at->line : 1);
        af_diag_add(l->diags, severity, where, NULL, "%s%s%s", what, detail ? " " : "", detail ? detail : "");
        if (severity == AF_SEVERITY_ERROR)
                l->failed = true;
}

static void warn_unknown(struct load *l, const struct af_yaml *map, const char *const *known) {
        for (uint32_t i = 0; map && map->kind == AF_YAML_MAP && i < map->n; i++) {
                const char *const *k = known;
                while (*k && strcmp(*k, map->keys[i]) != 0)
                        k++;
                if (!*k)
                        complain(l, &map->items[i], AF_SEVERITY_WARNING, "unknown key", map->keys[i]);
        }
}

static void read_bool(struct load *l, const struct af_yaml *map, const char *key, bool *ret) {
        const struct af_yaml *y = af_yaml_get(map, key);
        if (y && !af_yaml_bool(y, ret))
                complain(l, y, AF_SEVERITY_ERROR, "must be true or false:", key);
}

static void read_str(struct load *l, const struct af_yaml *map, const char *key, const char **ret) {
        const struct af_yaml *y = af_yaml_get(map, key);
        if (y && !af_yaml_str(y, ret))
                complain(l, y, AF_SEVERITY_ERROR, "must be text:", key);
}

/* An op by its name, `class:<name>` for every op of a class, `any` for every op that a kernel can hold. False where there is none. */
static bool add_ops(const char *name, struct af_op_set *ops) {
        static const char prefix[] = "class:";
        bool any = strcmp(name, "any") == 0, found = false;
        enum af_op op = af_op_from_name(name);
        if (op != AF_OP_INVALID) {
                af_op_set_add(ops, op);
                return true;
        }
        if (!any && strncmp(name, prefix, sizeof(prefix) - 1) != 0)
                return false;
        for (unsigned i = 0; i < AF_N_OPS; i++) {
                enum af_op_class cls = af_op_info((enum af_op)i)->cls;
                if (any ? cls == AF_CLASS_OPAQUE || cls == AF_CLASS_COMPOSITE
                        : strcmp(af_op_class_name(cls), name + sizeof(prefix) - 1) != 0)
                        continue;
                af_op_set_add(ops, i);
                found = true;
        }
        return found;
}

static void read_pattern(struct load *l, const struct af_yaml *y, struct af_rule *rule) {
        static const char *const known[] = {"type", "ops", NULL};
        const struct af_yaml *ops = af_yaml_get(y, "ops");
        if (!y || y->kind != AF_YAML_MAP) {
                complain(l, y, AF_SEVERITY_ERROR, "fusion_pattern must be a map with type and ops", NULL);
                return;
        }
        warn_unknown(l, y, known);
        read_str(l, y, "type", &rule->type);
        if (!rule->type)
                complain(l, y, AF_SEVERITY_ERROR, "fusion_pattern.type is missing", NULL);
        else if (!fuse_type_known(rule->type)) {
                complain(l, af_yaml_get(y, "type"), AF_SEVERITY_ERROR, "unknown fusion_pattern.type:", rule->type);
                complain(l, af_yaml_get(y, "type"), AF_SEVERITY_NOTE, "known types:", fuse_types());
        }
        if (!ops || ops->kind != AF_YAML_LIST || ops->n == 0) {
                complain(l, ops ? ops : y, AF_SEVERITY_ERROR, "fusion_pattern.ops must be a list of op names", NULL);
                return;
        }
        for (uint32_t i = 0; i < ops->n; i++) {
                const char *name = NULL;
                if (!af_yaml_str(&ops->items[i], &name) || !add_ops(name, &rule->ops))
                        complain(l, &ops->items[i], AF_SEVERITY_ERROR, "unknown op:", name ? name : "(not a name)");
        }
}

static void read_count(struct load *l, const struct af_yaml *map, const char *key, uint32_t *ret) {
        const struct af_yaml *y = af_yaml_get(map, key);
        int64_t n = 0;
        if (y && (!af_yaml_int(y, &n) || n < 1 || n > 1000000))
                complain(l, y, AF_SEVERITY_ERROR, key, "must be 1 to 1000000");
        else if (y)
                *ret = (uint32_t)n;
}

static void read_constraint(struct load *l, const struct af_yaml *y, struct af_rule *rule) {
        static const char *const known[] = {"shape_compatible", "dtype_match",    "single_consumer", "memory_layout",
                                            "max_nodes",        "max_reductions", "broadcast_back",  NULL};
        bool back = !rule->no_broadcast_back;
        if (y->kind != AF_YAML_MAP) {
                complain(l, y, AF_SEVERITY_ERROR, "a constraint is `key: value`", NULL);
                return;
        }
        warn_unknown(l, y, known);
        read_bool(l, y, "shape_compatible", &rule->shape_compatible);
        read_bool(l, y, "dtype_match", &rule->dtype_match);
        read_bool(l, y, "single_consumer", &rule->single_consumer);
        read_str(l, y, "memory_layout", &rule->memory_layout);
        read_bool(l, y, "broadcast_back", &back);
        rule->no_broadcast_back = !back;
        read_count(l, y, "max_nodes", &rule->max_nodes);
        read_count(l, y, "max_reductions", &rule->max_reductions);
        if (af_yaml_get(y, "memory_layout") && rule->memory_layout) {
                if (strcmp(rule->memory_layout, "any") == 0)
                        rule->memory_layout = NULL;
                else if (strcmp(rule->memory_layout, "NCHW") != 0)
                        complain(l, y, AF_SEVERITY_ERROR, "memory_layout must be NCHW or any, not", rule->memory_layout);
        }
}

/* `dir/pointwise_fusion_kernel.cu.j2` is refused, `pointwise_fusion_kernel.cu.j2` gives `pointwise_fusion_kernel`. */
static const char *template_stem(struct load *l, const struct af_yaml *at, const char *name) {
        size_t n = strcspn(name, ".");
        if (n == 0 || strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") < n) {
                complain(l, at, AF_SEVERITY_ERROR, "codegen.template must be a file name of letters, digits, _ and -, not", name);
                return NULL;
        }
        return af_arena_memdup(l->arena, name, n);
}

static int read_codegen(struct load *l, const struct af_yaml *y, struct af_rule *rule) {
        static const char *const known[] = {"template", "tiling_strategy", NULL};
        const char *tmpl = NULL;
        if (!y || y->kind != AF_YAML_MAP) {
                complain(l, y, AF_SEVERITY_ERROR, "codegen must be a map with template", NULL);
                return 0;
        }
        warn_unknown(l, y, known);
        read_str(l, y, "template", &tmpl);
        read_str(l, y, "tiling_strategy", &rule->tiling_strategy);
        if (!tmpl) {
                complain(l, y, AF_SEVERITY_ERROR, "codegen.template is missing", NULL);
                return 0;
        }
        rule->tmpl = template_stem(l, af_yaml_get(y, "template"), tmpl);
        if (rule->tiling_strategy && strcmp(rule->tiling_strategy, "auto_tiling") != 0)
                complain(l, af_yaml_get(y, "tiling_strategy"), AF_SEVERITY_WARNING,
                         "the only tiling strategy is auto_tiling; ignored:", rule->tiling_strategy);
        return rule->tmpl || l->failed ? 0 : -ENOMEM;
}

/* `rules/fusion/10_elementwise_chain.yaml` -> `elementwise_chain`. */
static const char *rule_name(struct af_arena *arena, const char *file) {
        const char *base = strrchr(file, '/');
        base = base ? base + 1 : file;
        size_t digits = strspn(base, "0123456789");
        if (digits > 0 && base[digits] == '_')
                base += digits + 1;
        return af_arena_memdup(arena, base, strcspn(base, "."));
}

int af_rule_parse(struct af_arena *arena, const char *file, const char *text, size_t n, struct af_rule *ret_rule, struct af_diags *diags) {
        static const char *const known[] = {"fusion_pattern", "constraints", "codegen", NULL};
        struct load l = {.arena = arena, .file = file, .diags = diags};
        struct af_rule rule = {0};
        const struct af_yaml *root;
        int r = af_yaml_parse(arena, file, text, n, &root, diags);
        if (r)
                return r < 0 ? r : AF_RULES_E_INVALID;
        if (root->kind != AF_YAML_MAP) {
                complain(&l, root, AF_SEVERITY_ERROR, "a rule is a map with fusion_pattern, constraints and codegen", NULL);
                return AF_RULES_E_INVALID;
        }
        warn_unknown(&l, root, known);
        rule.name = rule_name(arena, file);
        if (!rule.name)
                return -ENOMEM;
        read_pattern(&l, af_yaml_get(root, "fusion_pattern"), &rule);
        const struct af_yaml *constraints = af_yaml_get(root, "constraints");
        if (constraints && constraints->kind == AF_YAML_LIST)
                for (uint32_t i = 0; i < constraints->n; i++)
                        read_constraint(&l, &constraints->items[i], &rule);
        else if (constraints)
                read_constraint(&l, constraints, &rule);
        r = read_codegen(&l, af_yaml_get(root, "codegen"), &rule);
        if (r)
                return r;
        if (l.failed)
                return AF_RULES_E_INVALID;
        *ret_rule = rule;
        return 0;
}

int af_rules_parse(struct af_arena *arena, const struct af_io_file *files, uint32_t n, struct af_rules *ret_rules, struct af_diags *diags) {
        struct af_rule *rules = af_arena_calloc(arena, n, sizeof(*rules));
        bool failed = false;
        if (!rules)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++) {
                int r = af_rule_parse(arena, files[i].path, files[i].text, files[i].size, &rules[i], diags);
                if (r < 0)
                        return r;
                failed |= r > 0;
        }
        if (failed)
                return AF_RULES_E_INVALID;
        *ret_rules = (struct af_rules){.rules = rules, .n_rules = n};
        return 0;
}

int af_rules_load_dir(struct af_arena *arena, const char *dir, struct af_rules *ret_rules, struct af_diags *diags) {
        struct af_io_file *files;
        uint32_t n;
        int r = af_io_load_dir(arena, dir, ".yaml", AF_RULE_MAX_BYTES, &files, &n);
        return r ? r : af_rules_parse(arena, files, n, ret_rules, diags);
}
