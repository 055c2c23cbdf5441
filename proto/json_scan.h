/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict check of JSON text before a library builds a tree of it: what such a tree no longer shows (duplicate keys, integers beyond 2^53,
 * U+0000 in strings, bytes after the end, the text of each number), and what would hurt to build (deep nesting, too many values).
 */
#pragma once

#include "base/buf.h"
#include "base/diag.h"

#define AF_JSON_MAX_VALUES       4000000u /* a tree takes about 80 bytes for each */
#define AF_JSON_MAX_KEYS         64u      /* of one object */
#define AF_JSON_MAX_NUMBER_BYTES 63u
#define AF_JSON_MAX_DEPTH        32u

enum { AF_JSON_E_INVALID = 1 };

/*
 * Scans n bytes in one pass and linear time. ret_numbers gets the offset (u32) of each number in text order; it may hold some after a
 * failure, too. After a mistake of syntax the scan ends; others are collected. 0, -ENOMEM, or AF_JSON_E_INVALID with diagnostics that name
 * line and column, and the field where there is one.
 */
int af_json_scan(const char *text, size_t n, struct af_buf *ret_numbers, struct af_diags *diags) AF_WARN_UNUSED;
