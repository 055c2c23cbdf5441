/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes and their attributes. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "proto/fragment_parse.h"
#include "proto/number.h"

static const struct af_json_key node_keys[] = AF_KEY_LIST(AF_KEYS_NODE);
static const struct af_json_key result_keys[] = AF_KEY_LIST(AF_KEYS_RESULT);

static uint32_t count_items(const cJSON *list) {
        const cJSON *item;
        uint32_t n = 0;

        cJSON_ArrayForEach(item, list) n++;
        return n;
}

/* Elements of a list that must be one and within the limit; false after a diagnostic. */
static bool list_size(struct af_fragment_parser *p, const struct af_where *at, const cJSON *list, uint32_t limit, uint32_t *ret_n) {
        if (!cJSON_IsArray(list)) {
                af_parse_fail(p, at, NULL, "is not a list");
                return false;
        }
        *ret_n = count_items(list);
        if (*ret_n <= limit)
                return true;
        af_parse_fail(p, at, NULL, "%u items, at most %u", *ret_n, limit);
        return false;
}

/* nan, inf and -inf have names of their own, integers stay exact; -0 is the float. */
static void read_float(struct af_fragment_parser *p, const struct af_where *at, const cJSON *item, struct af_attr *attr) {
        static const struct {
                const char *name;
                double value;
        } named[] = {{"nan", NAN}, {"inf", INFINITY}, {"-inf", -INFINITY}};
        const char *text;
        size_t n;

        if (!cJSON_IsNumber(item) && !cJSON_IsString(item)) {
                af_parse_fail(p, at, NULL, "is not a number");
                return;
        }
        af_parse_text(p, item, &text, &n);
        for (size_t i = 0; i < AF_ARRAY_SIZE(named); i++)
                if (cJSON_IsString(item) && strcmp(text, named[i].name) == 0) {
                        attr->f = named[i].value;
                        return;
                }
        size_t n_digits = strspn(text, "-0123456789");
        bool is_minus_zero = n == 2 && memcmp(text, "-0", 2) == 0;
        attr->is_int = n_digits >= n && !is_minus_zero && af_number_int64(text, n, &attr->i) == 0;
        if (af_number_double(text, n, &attr->f) != 0)
                af_parse_fail(p, at, "infinities and NaN are \"inf\", \"-inf\" and \"nan\"", "is not a finite number");
}

static int read_ints(struct af_fragment_parser *p, const struct af_where *at, const cJSON *list, struct af_attr *attr) {
        struct af_where element = {.up = at};
        const cJSON *item;
        int64_t *ints;

        if (!list_size(p, at, list, AF_LIMIT_RANK, &attr->n))
                return 0;
        ints = af_arena_calloc(&p->scratch, attr->n, sizeof(*ints));
        if (!ints)
                return -ENOMEM;
        attr->ints = ints;
        cJSON_ArrayForEach(item, list) {
                (void)af_parse_integer(p, &element, item, &ints[element.index]);
                element.index++;
        }
        return 0;
}

static int read_attr(struct af_fragment_parser *p, const struct af_where *at, const cJSON *item, struct af_attr *attr) {
        switch (af_attr_kind(attr->key)) {
        case AF_ATTR_KIND_INT:
                (void)af_parse_integer(p, at, item, &attr->i);
                return 0;
        case AF_ATTR_KIND_INTS:
                return read_ints(p, at, item, attr);
        case AF_ATTR_KIND_FLOAT:
                read_float(p, at, item, attr);
                return 0;
        case AF_ATTR_KIND_BOOL:
                if (!cJSON_IsBool(item))
                        af_parse_fail(p, at, NULL, "is neither true nor false");
                attr->i = cJSON_IsTrue(item);
                return 0;
        case AF_ATTR_KIND_STRING:
                attr->s = af_parse_name(p, at, item);
                return 0;
        case AF_ATTR_KIND_DIMS:
                return af_parse_dims(p, at, item, true, &attr->dims, &attr->n);
        }
        return 0;
}

static int read_attrs(struct af_fragment_parser *p, const struct af_where *at, const cJSON *item, struct af_fragment_node *node) {
        struct af_attr *attrs;
        const cJSON *child;

        if (!item)
                return 0;
        if (!cJSON_IsObject(item)) {
                af_parse_fail(p, at, NULL, "is not an object");
                return 0;
        }
        attrs = af_arena_calloc(&p->scratch, AF_N_ATTRS, sizeof(*attrs));
        if (!attrs)
                return -ENOMEM;
        node->attrs = attrs;
        cJSON_ArrayForEach(child, item) {
                enum af_attr_key key = af_attr_from_name(child->string);
                if (key == AF_N_ATTRS) {
                        af_parse_fail(p, at, NULL, "unknown attribute \"%.64s\"", child->string);
                        continue;
                }
                struct af_attr *attr = &attrs[node->n_attrs++]; /* keys differ: at most AF_N_ATTRS */
                attr->key = key;
                int r = read_attr(p, AF_FIELD(at, af_attr_name(key)), child, attr);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_inputs(struct af_fragment_parser *p, const struct af_where *at, const cJSON *list, struct af_fragment_node *node) {
        struct af_where element = {.up = at};
        const char **names;
        const cJSON *item;

        if (!list_size(p, at, list, AF_LIMIT_NODE_INPUTS, &node->n_inputs))
                return 0;
        names = af_arena_calloc(&p->scratch, node->n_inputs, sizeof(*names));
        if (!names)
                return -ENOMEM;
        node->inputs = names;
        cJSON_ArrayForEach(item, list) {
                names[element.index] = af_parse_name(p, &element, item);
                element.index++;
        }
        return 0;
}

static int read_outputs(struct af_fragment_parser *p, const struct af_where *at, const cJSON *list, struct af_fragment_node *node) {
        struct af_where element = {.up = at};
        struct af_fragment_tensor *outputs;
        const cJSON *item;

        if (!list_size(p, at, list, AF_LIMIT_NODE_INPUTS, &node->n_outputs))
                return 0;
        outputs = af_arena_calloc(&p->scratch, node->n_outputs, sizeof(*outputs));
        if (!outputs)
                return -ENOMEM;
        node->outputs = outputs;
        cJSON_ArrayForEach(item, list) {
                struct af_json_fields f;
                if (af_parse_object(p, &element, item, result_keys, &f)) {
                        int r = af_parse_tensor(p, &element, f.of[KEY_RESULT_name], f.of[KEY_RESULT_dtype], f.of[KEY_RESULT_shape],
                                                f.of[KEY_RESULT_strides], &outputs[element.index]);
                        if (r < 0)
                                return r;
                }
                element.index++;
        }
        return 0;
}

int af_parse_node(struct af_fragment_parser *p, const struct af_where *at, const cJSON *item) {
        struct af_fragment_node node = {0};
        uint32_t before = p->n_errors;
        struct af_json_fields f;

        if (!af_parse_object(p, at, item, node_keys, &f))
                return 0;
        node.name = af_parse_name(p, AF_FIELD(at, "name"), f.of[KEY_NODE_name]);
        node.op = af_parse_name(p, AF_FIELD(at, "op"), f.of[KEY_NODE_op]);
        node.origin = af_parse_name(p, AF_FIELD(at, "origin"), f.of[KEY_NODE_origin]);
        int r = read_inputs(p, AF_FIELD(at, "inputs"), f.of[KEY_NODE_inputs], &node);
        if (r == 0)
                r = read_attrs(p, AF_FIELD(at, "attrs"), f.of[KEY_NODE_attrs], &node);
        if (r == 0)
                r = read_outputs(p, AF_FIELD(at, "outputs"), f.of[KEY_NODE_outputs], &node);
        return r == 0 && p->n_errors == before ? af_parse_added(p, af_fragment_add_node(p->f, &node, p->diags)) : r;
}
