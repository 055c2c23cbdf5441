/* SPDX-License-Identifier: Apache-2.0 */
/* What the parser's files share. Nothing outside proto/ includes it. */
#pragma once

#include <cjson/cJSON.h>

#include "proto/fragment.h"
#include "proto/fragment_keys.h"

/* A place in the text, as a chain on the stack: `nodes[3] "n3".outputs[0].dtype`. */
struct af_where {
        const struct af_where *up;
        const char *field; /* NULL: an element of up */
        uint32_t index;    /* AF_NONE: no element */
        const char *label; /* the object's name; may be NULL */
};
#define AF_FIELD(up, name) (&(const struct af_where){(up), (name), AF_NONE, NULL})

struct af_fragment_parser {
        struct af_fragment *f;
        struct af_diags *diags; /* may be NULL */
        const char *text;
        const uint32_t *numbers; /* offset in text of each number; a number item's valueint indexes it */
        uint32_t n_errors;
        struct af_arena scratch; /* of the item at hand */
        const char **symbol_names;
        uint32_t *symbol_order; /* their indices by strcmp */
};

/* Fields of one object, by the index of their key; NULL where absent. */
struct af_json_fields {
        const cJSON *of[AF_MAX_KEYS];
};

/* Reports one mistake. */
void af_parse_fail(struct af_fragment_parser *p, const struct af_where *at, const char *hint, const char *fmt, ...) AF_PRINTF(4, 5);
/* Text of a number or string item. */
void af_parse_text(const struct af_fragment_parser *p, const cJSON *item, const char **ret_text, size_t *ret_n);
/* A string of 1 to AF_LIMIT_NAME_BYTES bytes; NULL after a diagnostic or where item is NULL. Borrowed from the tree. */
const char *af_parse_name(struct af_fragment_parser *p, const struct af_where *at, const cJSON *item);
/* False after a diagnostic. */
bool af_parse_integer(struct af_fragment_parser *p, const struct af_where *at, const cJSON *item, int64_t *ret_v);
/* Sorts an object's fields by key; refuses what is no object, unknown keys and missing ones (false). */
bool af_parse_object(struct af_fragment_parser *p, const struct af_where *at, const cJSON *item, const struct af_json_key *keys,
                     struct af_json_fields *ret);
/* For messages: an object's string under key, or NULL. */
const char *af_parse_label(const cJSON *item, const char *key);
/* Expression ids of a list of integers and expressions, in scratch: at most AF_LIMIT_RANK, none below 0; attribute: at most
 * AF_LIMIT_ATTR_ITEMS, negative constants too. 0 or -ENOMEM.
 */
int af_parse_dims(struct af_fragment_parser *p, const struct af_where *at, const cJSON *list, bool attribute, const uint32_t **ret_ids,
                  uint32_t *ret_n);
/* Name, dtype, shape and strides (NULL: none) into *ret_t, in scratch. 0 or -ENOMEM. */
int af_parse_tensor(struct af_fragment_parser *p, const struct af_where *at, const cJSON *name, const cJSON *dtype, const cJSON *shape,
                    const cJSON *strides, struct af_fragment_tensor *ret_t);
/* Result of a builder function: what its checks refuse counts as a mistake. 0 or -errno. */
int af_parse_added(struct af_fragment_parser *p, int r);
/* An element of `nodes`. 0 or -ENOMEM. */
int af_parse_node(struct af_fragment_parser *p, const struct af_where *at, const cJSON *item);
/* Bytes of a constant from its `bits` or `value` (exactly one is not NULL), n_bytes for t's dtype and dims, into out. */
void af_parse_constant_bytes(struct af_fragment_parser *p, const struct af_where *at, const struct af_fragment_tensor *t, const cJSON *bits,
                             const cJSON *value, uint8_t *out, size_t n_bytes);
