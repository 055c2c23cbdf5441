/* SPDX-License-Identifier: Apache-2.0 */
/* What people see: aligned tables, a progress bar on a terminal, sizes and times in readable units. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/diag.h"
#include "base/macros.h"

#define AF_TABLE_MAX_COLUMNS 16

/* A table whose columns are as wide as their widest cell; cells that start with a digit, sign or point stand right. */
struct af_table {
        uint32_t n_columns;
        char **cells; /* malloc'd texts, row by row; the first row is the heading */
        uint32_t n_cells, cap_cells;
        bool failed; /* no memory: prints nothing */
};
/* heads: the first row; borrowed for the call. */
void af_table_init(struct af_table *t, const char *const *heads, uint32_t n_columns);
void af_table_deinit(struct af_table *t);
void af_table_add(struct af_table *t, const char *fmt, ...) AF_PRINTF(2, 3);
/* With `indent` blanks before each row. */
void af_table_print(const struct af_table *t, unsigned indent, FILE *out);

/* "204.8 KiB", "12 B" into out. */
const char *af_out_bytes(uint64_t n, char out[32]);
/* "1.2 ms", "850 us". */
const char *af_out_us(uint64_t us, char out[32]);
/* Prints "ERROR: WHERE: WHAT" lines of the diagnostics to stderr. */
void af_out_diags(const struct af_diags *diags);
/* False, with a line on stderr, where nothing can be written: no name, or "-", which is for streams. */
bool af_out_is_file(const char *command, const char *path);
/* Prints one JSON document with a newline, and frees it. */
void af_out_json(cJSON *json);

/* Bar on stderr where that is a terminal; elsewhere nothing. Not for two at once. */
struct af_bar {
        const char *what;
        uint64_t total, done;
        uint64_t started_us, drawn_us;
        bool active; /* a terminal is there */
};
void af_bar_start(struct af_bar *bar, const char *what, uint64_t total);
/* Redraws at most ten times a second. note (may be NULL): what is worked on. */
void af_bar_update(struct af_bar *bar, uint64_t done, const char *note);
/* Erases it. */
void af_bar_end(struct af_bar *bar);
