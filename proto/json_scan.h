/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict JSON text to an array of values, in one pass. Refuses what many readers let through: duplicate keys, integers beyond 2^53, U+0000
 * in strings, bytes after the end; and what would hurt to keep: deep nesting, too many values.
 *
 *   {"a":[1,"x"],"b":2}      ->  {} span 5   a:[] span 3   1   "x"   b:2
 *
 * Values stand in text order. A container is followed by what it holds; its span leads over all of it. Strings and keys stay in the text
 * where nothing in them is escaped, so that a value is 20 bytes and nothing is allocated for it.
 */
#pragma once

#include "base/buf.h"
#include "base/diag.h"

#define AF_JSON_MAX_TEXT         (UINT32_MAX / 2) /* bytes: offsets into the decoded strings follow those into the text */
#define AF_JSON_MAX_VALUES       4000000u         /* 20 bytes each */
#define AF_JSON_MAX_KEYS         64u              /* of one object */
#define AF_JSON_MAX_KEY_BYTES    256u
#define AF_JSON_MAX_NUMBER_BYTES 63u
#define AF_JSON_MAX_DEPTH        32u

enum { AF_JSON_E_INVALID = 1 };

enum af_json_kind { AF_JSON_NULL, AF_JSON_FALSE, AF_JSON_TRUE, AF_JSON_NUMBER, AF_JSON_STRING, AF_JSON_LIST, AF_JSON_OBJECT };

struct af_json_value {
        uint32_t at;     /* STRING: of its decoded bytes, NUMBER: of its characters; for af_json_text */
        uint32_t n;      /* bytes of those; LIST, OBJECT: elements */
        uint32_t span;   /* values in it, itself with them: the next one of its container is that much further */
        uint32_t key_at; /* member of an object: of its key's decoded bytes */
        uint16_t n_key;
        uint8_t kind; /* enum af_json_kind */
};
struct af_json {
        const char *text; /* borrowed */
        size_t n_text;
        struct af_buf values;  /* struct af_json_value, the root first */
        struct af_buf decoded; /* strings and keys that had escapes, a zero byte behind each */
};

/*
 * Scans n bytes in linear time. *ret_json is to be freed by af_json_deinit whatever comes back and holds the values where that is 0; it
 * borrows the text. After a mistake of syntax the scan ends; others are collected. 0, -ENOMEM, or AF_JSON_E_INVALID with diagnostics that
 * name line and column, and the field where there is one.
 */
int af_json_scan(const char *text, size_t n, struct af_json *ret_json, struct af_diags *diags) AF_WARN_UNUSED;
void af_json_deinit(struct af_json *json);

/* The root, or NULL before a successful scan. */
static inline const struct af_json_value *af_json_root(const struct af_json *json) {
        return (const struct af_json_value *)(const void *)json->values.data;
}

/* Bytes of a string, a number or a key at `at`: as many as the value says, no zero behind them. What follows them is no part of a number.
 */
static inline const char *af_json_text(const struct af_json *json, uint32_t at) {
        return at < json->n_text ? json->text + at : (const char *)json->decoded.data + (at - json->n_text);
}

/* Elements of a list, members of an object; nothing of other kinds. */
#define af_json_each(child, parent)                                                                                                        \
        for (const struct af_json_value *child = (parent) + 1; child < (parent) + (parent)->span; child += child->span)
