/* SPDX-License-Identifier: Apache-2.0 */
/* proto/fragment.schema.json says what the parser does: the same keys, required ones, dtypes, words and limits. */
#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "proto/fragment.h"
#include "proto/fragment_keys.h"

static cJSON *schema;

static void set_up(void) {
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        const char *root = getenv("AF_SOURCE_ROOT");
        char path[1024];

        snprintf(path, sizeof(path), "%s/proto/fragment.schema.json", root ? root : ".");
        cr_assert_eq(af_io_read_file(path, 1 << 20, &text), 0, "%s", path);
        schema = cJSON_ParseWithLength((const char *)text.data, text.size);
        cr_assert_not_null(schema);
}

static void tear_down(void) {
        cJSON_Delete(schema);
}

TestSuite(fragment_schema, .init = set_up, .fini = tear_down);

static const cJSON *get(const cJSON *object, const char *key) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

        cr_assert_not_null(item, "%s", key);
        return item;
}

static const cJSON *definition(const char *name) {
        return name ? get(get(schema, "$defs"), name) : schema;
}

static bool holds(const cJSON *list, const char *word) {
        const cJSON *item;

        cJSON_ArrayForEach(item, list) {
                if (cJSON_IsString(item) && strcmp(item->valuestring, word) == 0)
                        return true;
        }
        return false;
}

static void expect_keys(const char *name, const struct af_json_key *keys) {
        const cJSON *d = definition(name), *properties = get(d, "properties");
        const cJSON *required = cJSON_GetObjectItemCaseSensitive(d, "required");
        int n = 0, n_required = 0;

        for (; keys[n].name; n++) {
                get(properties, keys[n].name);
                cr_assert_eq(holds(required, keys[n].name), keys[n].required, "%s.%s", name ? name : "fragment", keys[n].name);
                n_required += keys[n].required;
        }
        cr_assert_eq(cJSON_GetArraySize(properties), n, "%s", name ? name : "fragment");
        cr_assert_eq(cJSON_GetArraySize(required), n_required);
        cr_assert(cJSON_IsFalse(get(d, "additionalProperties")));
}

Test(fragment_schema, keys_are_the_parsers) {
        static const struct af_json_key fragment[] = AF_KEY_LIST(AF_KEYS_FRAGMENT), target[] = AF_KEY_LIST(AF_KEYS_TARGET),
                                        symbol[] = AF_KEY_LIST(AF_KEYS_SYMBOL), input[] = AF_KEY_LIST(AF_KEYS_INPUT),
                                        constant[] = AF_KEY_LIST(AF_KEYS_CONSTANT), node[] = AF_KEY_LIST(AF_KEYS_NODE),
                                        result[] = AF_KEY_LIST(AF_KEYS_RESULT), output[] = AF_KEY_LIST(AF_KEYS_OUTPUT);

        expect_keys(NULL, fragment);
        expect_keys("target", target);
        expect_keys("symbol", symbol);
        expect_keys("input", input);
        expect_keys("constant", constant);
        expect_keys("node", node);
        expect_keys("result", result);
        expect_keys("output_object", output);
}

Test(fragment_schema, attributes_are_the_table) {
        const cJSON *properties = get(definition("attrs"), "properties");

        for (unsigned i = 0; i < AF_N_ATTRS; i++)
                get(properties, af_attr_name((enum af_attr_key)i));
        cr_assert_eq(cJSON_GetArraySize(properties), AF_N_ATTRS);
        cr_assert_eq(af_attr_from_name("nothing"), AF_N_ATTRS);
}

Test(fragment_schema, dtypes_are_the_table) {
        const cJSON *words = get(definition("dtype"), "enum");

        for (unsigned i = 1; i < AF_N_DTYPES; i++)
                cr_assert(holds(words, af_dtype_name((enum af_dtype)i)), "%s", af_dtype_name((enum af_dtype)i));
        cr_assert_eq(cJSON_GetArraySize(words), AF_N_DTYPES - 1);
}

static void expect_limit(const char *name, const char *key, const char *limit, double value) {
        const cJSON *property = get(get(definition(name), "properties"), key);

        cr_assert_eq(get(property, limit)->valuedouble, value, "%s %s", key, limit);
}

Test(fragment_schema, limits_are_the_headers) {
        expect_limit(NULL, "symbols", "maxItems", AF_LIMIT_SYMBOLS);
        expect_limit(NULL, "nodes", "maxItems", AF_LIMIT_NODES);
        expect_limit(NULL, "outputs", "maxItems", AF_LIMIT_OUTPUTS);
        expect_limit("node", "inputs", "maxItems", AF_LIMIT_NODE_INPUTS);
        expect_limit("node", "outputs", "maxItems", AF_LIMIT_NODE_INPUTS);
        expect_limit("constant", "shape", "maxItems", AF_LIMIT_RANK);
        expect_limit("attrs", "axes", "maxItems", AF_LIMIT_RANK);
        cr_assert_eq(get(definition("dimensions"), "maxItems")->valuedouble, AF_LIMIT_RANK);
        cr_assert_eq(get(definition("name"), "maxLength")->valuedouble, AF_LIMIT_NAME_BYTES);
        cr_assert_str_eq(get(get(get(schema, "properties"), "schema"), "const")->valuestring, "autofuse.fragment/1");
}
