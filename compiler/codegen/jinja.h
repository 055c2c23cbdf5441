/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Jinja2 subset of rules/templates (docs/templates.md): {{ x }}, {{ x.y }}, {{ x[0] }}, filters (join, upper, lower, length),
 * if/elif/else with and, or, not, comparisons; for with loop.*; comments; whitespace control. An unknown variable is an error. Output
 * equals Jinja2's own byte for byte (default settings, keep_trailing_newline off).
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/diag.h"

enum af_jval_kind { AF_JVAL_STR, AF_JVAL_INT, AF_JVAL_BOOL, AF_JVAL_LIST, AF_JVAL_DICT };
struct af_jval {
        enum af_jval_kind kind;
        const char *s;               /* STR */
        int64_t i;                   /* INT, BOOL */
        const struct af_jval *items; /* LIST, DICT */
        const char *const *keys;     /* DICT */
        uint32_t n;
};
struct af_template; /* parsed, in an arena */
enum { AF_JINJA_E_SYNTAX = 1, AF_JINJA_E_UNDEFINED = 2, AF_JINJA_E_TYPE = 3 };
/* name is for messages (`name:line`). 0, -ENOMEM, AF_JINJA_E_SYNTAX. */
int af_jinja_parse(struct af_arena *arena, const char *name, const char *text, size_t n, const struct af_template **ret_template,
                   struct af_diags *diags) AF_WARN_UNUSED;
/* context: a DICT. Appends to out. 0, -ENOMEM, UNDEFINED or TYPE with `name:line`. */
int af_jinja_render(const struct af_template *t, const struct af_jval *context, struct af_buf *out, struct af_diags *diags) AF_WARN_UNUSED;
