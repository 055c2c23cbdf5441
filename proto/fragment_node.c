/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes and their attributes. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "proto/fragment_parse.h"
#include "proto/number.h"

static const struct af_json_key node_keys[] = AF_KEY_LIST(AF_KEYS_NODE);
static const struct af_json_key result_keys[] = AF_KEY_LIST(AF_KEYS_RESULT);

/* Elements of a list that must be one and within the limit; false after a diagnostic. */
static bool list_size(struct af_fragment_parser *p, const struct af_where *at, const struct af_json_value *list, uint32_t limit,
                      uint32_t *ret_n) {
        if (list->kind != AF_JSON_LIST) {
                af_parse_fail(p, at, NULL, "is not a list");
                return false;
        }
        *ret_n = list->n;
        if (*ret_n <= limit)
                return true;
        af_parse_fail(p, at, NULL, "%u items, at most %u", *ret_n, limit);
        return false;
}

/* nan, inf and -inf have names of their own, integers stay exact; -0 is the float. */
static void read_float(struct af_fragment_parser *p, const struct af_where *at, const struct af_json_value *item, struct af_attr *attr) {
        static const struct {
                const char *name;
                double value;
        } named[] = {{"nan", NAN}, {"inf", INFINITY}, {"-inf", -INFINITY}};
        if (item->kind != AF_JSON_NUMBER && item->kind != AF_JSON_STRING) {
                af_parse_fail(p, at, NULL, "is not a number");
                return;
        }
        const char *text = af_json_text(&p->json, item->at);
        size_t n = item->n;
        for (size_t i = 0; i < AF_ARRAY_SIZE(named); i++)
                if (af_parse_is(p, item, named[i].name)) {
                        attr->f = named[i].value;
                        return;
                }
        bool is_minus_zero = n == 2 && memcmp(text, "-0", 2) == 0;
        attr->is_int = af_parse_digits(text, n) && !is_minus_zero && af_number_int64(text, n, &attr->i) == 0;
        if (af_number_double(text, n, &attr->f) != 0)
                af_parse_fail(p, at, "infinities and NaN are \"inf\", \"-inf\" and \"nan\"", "is not a finite number");
}

static int read_ints(struct af_fragment_parser *p, const struct af_where *at, const struct af_json_value *list, struct af_attr *attr) {
        struct af_where element = {.up = at};
        int64_t *ints;

        if (!list_size(p, at, list, AF_LIMIT_RANK, &attr->n))
                return 0;
        ints = af_arena_calloc(&p->scratch, attr->n, sizeof(*ints));
        if (!ints)
                return -ENOMEM;
        attr->ints = ints;
        af_json_each(item, list) {
                (void)af_parse_integer(p, &element, item, &ints[element.index]);
                element.index++;
        }
        return 0;
}

static int read_attr(struct af_fragment_parser *p, const struct af_where *at, const struct af_json_value *item, struct af_attr *attr) {
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
                if (item->kind != AF_JSON_TRUE && item->kind != AF_JSON_FALSE)
                        af_parse_fail(p, at, NULL, "is neither true nor false");
                attr->i = item->kind == AF_JSON_TRUE;
                return 0;
        case AF_ATTR_KIND_STRING:
                attr->s = af_parse_name(p, at, item);
                return 0;
        case AF_ATTR_KIND_DIMS:
                return af_parse_dims(p, at, item, true, &attr->dims, &attr->n);
        }
        return 0;
}

static enum af_attr_key attr_key(const struct af_fragment_parser *p, const struct af_json_value *item) {
        const char *name = af_json_text(&p->json, item->key_at);
        int key = 0;

        while (key < AF_N_ATTRS && (strlen(af_attr_name(key)) != item->n_key || memcmp(af_attr_name(key), name, item->n_key) != 0))
                key++;
        return key;
}

static int read_attrs(struct af_fragment_parser *p, const struct af_where *at, const struct af_json_value *item,
                      struct af_fragment_node *node) {
        struct af_attr *attrs;

        if (!item)
                return 0;
        if (item->kind != AF_JSON_OBJECT) {
                af_parse_fail(p, at, NULL, "is not an object");
                return 0;
        }
        attrs = af_arena_calloc(&p->scratch, item->n, sizeof(*attrs));
        if (!attrs)
                return -ENOMEM;
        node->attrs = attrs;
        af_json_each(child, item) {
                enum af_attr_key key = attr_key(p, child);
                if (key == AF_N_ATTRS) {
                        af_parse_fail(p, at, NULL, "unknown attribute \"%.*s\"", (int)AF_MIN(child->n_key, 64u),
                                      af_json_text(&p->json, child->key_at));
                        continue;
                }
                struct af_attr *attr = &attrs[node->n_attrs++];
                attr->key = key;
                int r = read_attr(p, AF_FIELD(at, af_attr_name(key)), child, attr);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_inputs(struct af_fragment_parser *p, const struct af_where *at, const struct af_json_value *list,
                       struct af_fragment_node *node) {
        struct af_where element = {.up = at};
        const char **names;

        if (!list_size(p, at, list, AF_LIMIT_NODE_INPUTS, &node->n_inputs))
                return 0;
        names = af_arena_calloc(&p->scratch, node->n_inputs, sizeof(*names));
        if (!names)
                return -ENOMEM;
        node->inputs = names;
        af_json_each(item, list) {
                names[element.index] = af_parse_name(p, &element, item);
                element.index++;
        }
        return 0;
}

static int read_outputs(struct af_fragment_parser *p, const struct af_where *at, const struct af_json_value *list,
                        struct af_fragment_node *node) {
        struct af_where element = {.up = at};
        struct af_fragment_tensor *outputs;

        if (!list_size(p, at, list, AF_LIMIT_NODE_INPUTS, &node->n_outputs))
                return 0;
        outputs = af_arena_calloc(&p->scratch, node->n_outputs, sizeof(*outputs));
        if (!outputs)
                return -ENOMEM;
        node->outputs = outputs;
        af_json_each(item, list) {
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

int af_parse_node(struct af_fragment_parser *p, const struct af_where *at, const struct af_json_value *item) {
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
