/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "base/buf.h"
#include "base/yaml_tree.h"

static struct af_arena arena;
static struct af_diags diags;

static void setup(void) {
        af_arena_init(&arena, 1 << 20);
}
static void teardown(void) {
        af_arena_deinit(&arena);
        af_diags_deinit(&diags);
}
TestSuite(yaml_tree, .init = setup, .fini = teardown);

static const struct af_yaml *good(const char *text) {
        const struct af_yaml *root = NULL;
        cr_assert_eq(af_yaml_parse(&arena, "x.yaml", text, strlen(text), &root, &diags), 0, "%s", text);
        return root;
}
static void bad(const char *text, const char *where, const char *what) {
        const struct af_yaml *root;
        cr_assert_eq(af_yaml_parse(&arena, "x.yaml", text, strlen(text), &root, &diags), AF_YAML_E_SYNTAX, "%s", text);
        cr_assert_str_eq(diags.items[diags.n_items - 1].where, where);
        cr_assert(strstr(diags.items[diags.n_items - 1].what, what), "%s", diags.items[diags.n_items - 1].what);
}

Test(yaml_tree, reads_maps_lists_and_scalars) {
        const struct af_yaml *y = good("a: 5\nb: [x, 'y', -2.5e1]\nc:\n  d: true\n  e: \"true\"\n");
        int64_t i;
        double d;
        bool b;
        const char *s;
        cr_assert(af_yaml_int(af_yaml_get(y, "a"), &i) && i == 5);
        cr_assert_eq(af_yaml_get(y, "a")->line, 1);
        const struct af_yaml *list = af_yaml_get(y, "b");
        cr_assert(list->kind == AF_YAML_LIST && list->n == 3);
        cr_assert(af_yaml_str(&list->items[1], &s) && strcmp(s, "y") == 0);
        cr_assert(af_yaml_double(&list->items[2], &d) && d == -25.0);
        cr_assert(af_yaml_bool(af_yaml_get(af_yaml_get(y, "c"), "d"), &b) && b);
        cr_assert_not(af_yaml_bool(af_yaml_get(af_yaml_get(y, "c"), "e"), &b), "quoted: text");
        cr_assert_eq(af_yaml_get(af_yaml_get(y, "c"), "e")->line, 5);
}

Test(yaml_tree, typed_reads_refuse_other_kinds) {
        const struct af_yaml *y = good("a: 5x\nb: [1]\nc: 99999999999999999999\nd: ''\n");
        int64_t i;
        double d;
        bool b;
        const char *s;
        cr_assert_not(af_yaml_int(af_yaml_get(y, "a"), &i));
        cr_assert_not(af_yaml_int(af_yaml_get(y, "c"), &i));
        cr_assert_not(af_yaml_int(af_yaml_get(y, "d"), &i));
        cr_assert_not(af_yaml_double(af_yaml_get(y, "a"), &d));
        cr_assert_not(af_yaml_str(af_yaml_get(y, "b"), &s));
        cr_assert_not(af_yaml_bool(af_yaml_get(y, "nothing"), &b));
        cr_assert_null(af_yaml_get(NULL, "a"));
        cr_assert_null(af_yaml_get(af_yaml_get(y, "b"), "a"));
}

Test(yaml_tree, refuses_with_file_and_line) {
        bad("a: 1\na: 2\n", "x.yaml:2", "duplicate key");
        bad("a: [1\n", "x.yaml:2", "");
        bad("", "x.yaml:1", "empty");
        bad("a: 1\n---\nb: 2\n", "x.yaml:1", "more than one document");
        bad("a: &x 1\nb: *x\n", "x.yaml:1", "alias");
        bad("? [a]\n: 1\n", "x.yaml:1", "a key must be a word");
        bad("[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]", "x.yaml:1", "nested too deeply");
}
