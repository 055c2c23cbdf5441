/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Diagnostics sink: user mistakes are collected here, several per run; library code never prints or exits.
 */
#pragma once

#include <stdbool.h>

#include "base/macros.h"

enum af_severity { AF_SEVERITY_NOTE, AF_SEVERITY_WARNING, AF_SEVERITY_ERROR };

#define AF_DIAG_MAX 64 /* kept; further ones are counted only */

struct af_diag {
        enum af_severity severity;
        char *where; /* node, file or field: `nodes[3] "n3".outputs[0].dtype`, `rules/x.yaml:12` */
        char *what;  /* one sentence */
        char *hint;  /* may be NULL */
};

struct af_diags {
        struct af_diag items[AF_DIAG_MAX];
        uint32_t n_items;
        uint32_t n_errors;  /* all, kept or not */
        uint32_t n_dropped; /* beyond AF_DIAG_MAX */
};

/* A sink starts all zero. deinit frees the texts and leaves it all zero. */
void af_diags_deinit(struct af_diags *diags);
/*
 * Adds one diagnostic (texts are copied and control characters escaped; each text is cut at 1 KiB). diags may be NULL: nothing
 * is recorded. where and hint may be NULL.
 */
void af_diag_add(struct af_diags *diags, enum af_severity severity, const char *where, const char *hint, const char *fmt, ...)
        AF_PRINTF(5, 6);
#define af_diag_error(diags, where, ...) af_diag_add(diags, AF_SEVERITY_ERROR, where, NULL, __VA_ARGS__)
#define af_diag_warn(diags, where, ...)  af_diag_add(diags, AF_SEVERITY_WARNING, where, NULL, __VA_ARGS__)
static inline bool af_diags_failed(const struct af_diags *diags) {
        return diags && diags->n_errors > 0;
}

struct af_buf;
/* Appends one line per diagnostic: `error: WHERE: WHAT (HINT)`. */
void af_diags_format(const struct af_diags *diags, struct af_buf *buf);
