/* SPDX-License-Identifier: Apache-2.0 */
/* A YAML document as a tree with line numbers, for small data files (rules, SoC descriptions). Over libyaml. */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/diag.h"

enum af_yaml_kind { AF_YAML_SCALAR, AF_YAML_LIST, AF_YAML_MAP };

struct af_yaml {
        enum af_yaml_kind kind;
        uint32_t line;               /* 1-based */
        const char *text;            /* SCALAR */
        bool plain;                  /* SCALAR: written without quotes (`true` is a bool, `"true"` is text) */
        const struct af_yaml *items; /* LIST: elements; MAP: values */
        const char *const *keys;     /* MAP */
        uint32_t n;
};

enum { AF_YAML_E_SYNTAX = 1 };

/*
 * Parses one document into arena. Refuses aliases, several documents, duplicate keys, keys that are not scalars and nesting beyond 16. file
 * is for messages (`file:line`). 0, -ENOMEM, AF_YAML_E_SYNTAX.
 */
int af_yaml_parse(struct af_arena *arena, const char *file, const char *text, size_t n, const struct af_yaml **ret_root,
                  struct af_diags *diags) AF_WARN_UNUSED;
/* Value of a key in a MAP, or NULL (also where map is NULL or no MAP). */
const struct af_yaml *af_yaml_get(const struct af_yaml *map, const char *key);
/* Typed reads; false where y is NULL or of another kind. */
bool af_yaml_str(const struct af_yaml *y, const char **ret_s);
bool af_yaml_bool(const struct af_yaml *y, bool *ret_b);
bool af_yaml_int(const struct af_yaml *y, int64_t *ret_i);
bool af_yaml_double(const struct af_yaml *y, double *ret_d);
