/* SPDX-License-Identifier: Apache-2.0 */
#include "base/yaml_tree.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#define MAX_NESTING 16

struct parse {
        struct af_arena *arena;
        const char *file;
        struct af_diags *diags;
        yaml_document_t *doc;
};

static int refuse(struct parse *p, size_t line, const char *what) {
        char where[4200];
        snprintf(where, sizeof(where), "%s:%zu", p->file, line);
        af_diag_error(p->diags, where, "%s", what);
        return AF_YAML_E_SYNTAX;
}

static int convert(struct parse *p, int index, unsigned depth, struct af_yaml *ret);

static int convert_list(struct parse *p, yaml_node_t *node, unsigned depth, struct af_yaml *ret) {
        size_t n = (size_t)(node->data.sequence.items.top - node->data.sequence.items.start);
        struct af_yaml *items = af_arena_calloc(p->arena, n, sizeof(*items));
        if (!items)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                int r = convert(p, node->data.sequence.items.start[i], depth + 1, &items[i]);
                if (r)
                        return r;
        }
        ret->kind = AF_YAML_LIST;
        ret->items = items;
        ret->n = (uint32_t)n;
        return 0;
}

static int convert_map(struct parse *p, yaml_node_t *node, unsigned depth, struct af_yaml *ret) {
        size_t n = (size_t)(node->data.mapping.pairs.top - node->data.mapping.pairs.start);
        struct af_yaml *items = af_arena_calloc(p->arena, n, sizeof(*items));
        const char **keys = af_arena_calloc(p->arena, n, sizeof(*keys));
        if (!items || !keys)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                yaml_node_pair_t *pair = &node->data.mapping.pairs.start[i];
                struct af_yaml key;
                int r = convert(p, pair->key, depth + 1, &key);
                if (r)
                        return r;
                if (key.kind != AF_YAML_SCALAR)
                        return refuse(p, key.line, "a key must be a word");
                for (size_t j = 0; j < i; j++)
                        if (strcmp(keys[j], key.text) == 0)
                                return refuse(p, key.line, "duplicate key");
                keys[i] = key.text;
                r = convert(p, pair->value, depth + 1, &items[i]);
                if (r)
                        return r;
        }
        ret->kind = AF_YAML_MAP;
        ret->items = items;
        ret->keys = keys;
        ret->n = (uint32_t)n;
        return 0;
}

static int convert(struct parse *p, int index, unsigned depth, struct af_yaml *ret) {
        yaml_node_t *node = yaml_document_get_node(p->doc, index);
        *ret = (struct af_yaml){.line = (uint32_t)node->start_mark.line + 1};
        if (depth > MAX_NESTING)
                return refuse(p, ret->line, "nested too deeply");
        switch (node->type) {
        case YAML_SCALAR_NODE:
                if (strlen((const char *)node->data.scalar.value) != node->data.scalar.length)
                        return refuse(p, ret->line, "a zero byte in text");
                ret->kind = AF_YAML_SCALAR;
                ret->plain = node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
                ret->text = af_arena_strdup(p->arena, (const char *)node->data.scalar.value);
                return ret->text ? 0 : -ENOMEM;
        case YAML_SEQUENCE_NODE:
                return convert_list(p, node, depth, ret);
        case YAML_MAPPING_NODE:
                return convert_map(p, node, depth, ret);
        case YAML_NO_NODE:
                break;
        }
        return refuse(p, ret->line, "not a scalar, list or map");
}

/* libyaml resolves an alias to the node that it names; a node met twice would make trees of exponential size. */
static bool has_alias(const char *text, size_t n) {
        yaml_parser_t parser;
        yaml_event_t event;
        bool found = false, more = true;
        if (!yaml_parser_initialize(&parser))
                return false;
        yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
        while (more && !found && yaml_parser_parse(&parser, &event)) {
                found = event.type == YAML_ALIAS_EVENT;
                more = event.type != YAML_STREAM_END_EVENT;
                yaml_event_delete(&event);
        }
        yaml_parser_delete(&parser);
        return found;
}

static int load(struct parse *p, yaml_parser_t *parser, const struct af_yaml **ret_root) {
        yaml_document_t doc, rest;
        if (!yaml_parser_load(parser, &doc))
                return refuse(p, parser->problem_mark.line + 1, parser->problem ? parser->problem : "not YAML");
        p->doc = &doc;
        struct af_yaml *root = af_arena_alloc(p->arena, sizeof(*root));
        int r;
        if (!root)
                r = -ENOMEM;
        else if (!yaml_document_get_root_node(&doc))
                r = refuse(p, 1, "empty document");
        else
                r = convert(p, (int)(doc.nodes.top - doc.nodes.start) > 0 ? 1 : 0, 0, root);
        yaml_document_delete(&doc);
        if (r)
                return r;
        if (!yaml_parser_load(parser, &rest))
                return refuse(p, parser->problem_mark.line + 1, parser->problem ? parser->problem : "not YAML");
        bool second = yaml_document_get_root_node(&rest) != NULL;
        yaml_document_delete(&rest);
        if (second)
                return refuse(p, 1, "more than one document");
        *ret_root = root;
        return 0;
}

int af_yaml_parse(struct af_arena *arena, const char *file, const char *text, size_t n, const struct af_yaml **ret_root,
                  struct af_diags *diags) {
        struct parse p = {.arena = arena, .file = file, .diags = diags};
        yaml_parser_t parser;
        if (n > 0 && memchr(text, '*', n) && has_alias(text, n)) /* an alias is written with one */
                return refuse(&p, 1, "aliases are not supported");
        if (!yaml_parser_initialize(&parser))
                return -ENOMEM;
        yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
        int r = load(&p, &parser, ret_root);
        yaml_parser_delete(&parser);
        return r;
}

const struct af_yaml *af_yaml_get(const struct af_yaml *map, const char *key) {
        if (!map || map->kind != AF_YAML_MAP)
                return NULL;
        for (uint32_t i = 0; i < map->n; i++)
                if (strcmp(map->keys[i], key) == 0)
                        return &map->items[i];
        return NULL;
}

bool af_yaml_str(const struct af_yaml *y, const char **ret_s) {
        if (!y || y->kind != AF_YAML_SCALAR)
                return false;
        *ret_s = y->text;
        return true;
}

bool af_yaml_bool(const struct af_yaml *y, bool *ret_b) {
        if (!y || y->kind != AF_YAML_SCALAR || !y->plain)
                return false;
        bool t = strcmp(y->text, "true") == 0;
        if (!t && strcmp(y->text, "false") != 0)
                return false;
        *ret_b = t;
        return true;
}

bool af_yaml_int(const struct af_yaml *y, int64_t *ret_i) {
        if (!y || y->kind != AF_YAML_SCALAR || !y->plain || !y->text[0])
                return false;
        char *end;
        errno = 0;
        long long v = strtoll(y->text, &end, 10);
        if (errno || *end)
                return false;
        *ret_i = v;
        return true;
}

bool af_yaml_double(const struct af_yaml *y, double *ret_d) {
        if (!y || y->kind != AF_YAML_SCALAR || !y->plain || !y->text[0])
                return false;
        /* strtod reads the decimal point of the locale; data files have a point always. */
        locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
        if (!c)
                return false;
        char *end;
        double v = strtod_l(y->text, &end, c);
        freelocale(c);
        if (*end)
                return false;
        *ret_d = v;
        return true;
}
