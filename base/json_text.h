/* SPDX-License-Identifier: Apache-2.0 */
/* Writing JSON text into a buffer: one line, commas by the caller's first-flag or af_json_key. */
#pragma once

#include "base/buf.h"
#include "base/digest.h"

/* A string with its quotes. Control characters are escaped; bytes that are not UTF-8 become U+FFFD. */
void af_json_string_n(struct af_buf *buf, const void *p, size_t n);
void af_json_string(struct af_buf *buf, const char *s);
/* `"key":`, with a comma before it unless the text so far ends with `{`. */
void af_json_key(struct af_buf *buf, const char *key);
/* Members of an object, with their keys. s may be NULL: null. */
void af_json_add_string(struct af_buf *buf, const char *key, const char *s);
void af_json_add_u64(struct af_buf *buf, const char *key, uint64_t v);
void af_json_add_bool(struct af_buf *buf, const char *key, bool v);
/* As hex; a digest of all zero is left out. */
void af_json_add_digest(struct af_buf *buf, const char *key, const struct af_digest *d);
/* A comma before the next item of a list, unless the text so far ends with `[`. */
void af_json_item(struct af_buf *buf);
