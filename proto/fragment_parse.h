/* SPDX-License-Identifier: Apache-2.0 */
/* What the parser's files share. Nothing outside proto/ includes it. */
#pragma once

#include "proto/fragment.h"
#include "proto/fragment_keys.h"
#include "proto/json_scan.h"

/* A place in the text, as a chain on the stack: `nodes[3] "n3".outputs[0].dtype`. */
struct af_where {
        const struct af_where *up;
        const char *field; /* NULL: an element of up */
        uint32_t index;    /* AF_NONE: no element */
        const char *label; /* the object's name, n_label bytes; may be NULL */
        uint32_t n_label;
};
#define AF_FIELD(up, name) (&(const struct af_where){(up), (name), AF_NONE, NULL, 0})

struct af_fragment_parser {
        struct af_fragment *f;
        struct af_diags *diags; /* may be NULL */
        struct af_json json;
        uint32_t n_errors;
        int error;               /* -ENOMEM where a name could not be copied */
        struct af_arena scratch; /* of the item at hand */
        const char **symbol_names;
        uint32_t *symbol_order; /* their indices by strcmp */
};

/* Fields of one object, by the index of their key; NULL where absent. */
struct af_json_fields {
        const struct af_json_value *of[AF_MAX_KEYS];
};

/* Reports one mistake. */
void af_parse_fail(struct af_fragment_parser *p, const struct af_where *at, const char *hint, const char *fmt, ...) AF_PRINTF(4, 5);
/* Whether item is a string with these characters; item may be NULL. */
bool af_parse_is(const struct af_fragment_parser *p, const struct af_json_value *item, const char *word);
/* Whether text is digits and minus signs, nothing else. */
bool af_parse_digits(const char *text, size_t n);
/* A string of 1 to AF_LIMIT_NAME_BYTES bytes, in scratch; NULL after a diagnostic or where item is NULL. */
const char *af_parse_name(struct af_fragment_parser *p, const struct af_where *at, const struct af_json_value *item);
/* False after a diagnostic. */
bool af_parse_integer(struct af_fragment_parser *p, const struct af_where *at, const struct af_json_value *item, int64_t *ret_v);
/* Sorts an object's fields by key; refuses what is no object, unknown keys and missing ones (false). */
bool af_parse_object(struct af_fragment_parser *p, const struct af_where *at, const struct af_json_value *item,
                     const struct af_json_key *keys, struct af_json_fields *ret);
/* Expression ids of a list of integers and expressions, in scratch: at most AF_LIMIT_RANK, none below 0; attribute: at most
 * AF_LIMIT_ATTR_ITEMS, negative constants too. 0 or -ENOMEM.
 */
int af_parse_dims(struct af_fragment_parser *p, const struct af_where *at, const struct af_json_value *list, bool attribute,
                  const uint32_t **ret_ids, uint32_t *ret_n);
/* Name, dtype, shape and strides (NULL: none) into *ret_t, in scratch. 0 or -ENOMEM. */
int af_parse_tensor(struct af_fragment_parser *p, const struct af_where *at, const struct af_json_value *name,
                    const struct af_json_value *dtype, const struct af_json_value *shape, const struct af_json_value *strides,
                    struct af_fragment_tensor *ret_t);
/* Result of a builder function: what its checks refuse counts as a mistake. 0 or -errno. */
int af_parse_added(struct af_fragment_parser *p, int r);
/* An element of `nodes`. 0 or -ENOMEM. */
int af_parse_node(struct af_fragment_parser *p, const struct af_where *at, const struct af_json_value *item);
/* Bytes of a constant from its `bits` or `value` (exactly one is not NULL), n_bytes for t's dtype and dims, into out. */
void af_parse_constant_bytes(struct af_fragment_parser *p, const struct af_where *at, const struct af_fragment_tensor *t,
                             const struct af_json_value *bits, const struct af_json_value *value, uint8_t *out, size_t n_bytes);
