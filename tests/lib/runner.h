/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles fragments in several variants, runs them on the twin, compares with the reference bit for bit and counts. What `differential`
 * and `matrix` share. Prints `not ok WHAT VARIANT: …` per failure.
 */
#pragma once

#include "compiler/driver/driver.h"
#include "tests/lib/batch.h"

enum { RUNNER_DEFAULT, RUNNER_UNFUSED, RUNNER_SMALL, RUNNER_FAST, RUNNER_N_VARIANTS };

struct runner_item; /* a fragment in one variant: planned, not yet run */
struct runner_fallback {
        char *what; /* "op dtypes: reason" */
        uint64_t count;
};
struct runner {
        struct af_arena arena;
        struct af_env checked, fast;
        struct batch batches[2]; /* checked, fast */
        bool wanted[RUNNER_N_VARIANTS];
        bool single;           /* each kernel is an object of its own, through af_driver_compile */
        int64_t most_elements; /* of a value where a form is bound (bind_choice); 0: no limit */
        bool exact_model;      /* a run whose counted bytes or cycles differ from the schedule's fails */
        struct runner_item *items;
        uint32_t n_items, cap_items;
        struct runner_fallback *fallbacks;
        uint32_t n_fallbacks;
        uint64_t n_runs, n_failed, n_kernels, n_framework, n_nodes, n_model_off, n_refused, moved, modelled, cycles, modelled_cycles;
};

/* variants: names in one text (default, unfused, small, fast); flags: of the checked twin's compile (batch_toolchain). False: it said why.
 */
bool runner_init(struct runner *r, const char *variants, const char *flags);
void runner_deinit(struct runner *r);
/* Takes a fragment; it runs now, or at the flush that this or a later call makes. seed: of the input data. */
void runner_add(struct runner *r, const char *what, const struct af_fragment *f, uint64_t seed);
/*
 * The same on data by hand: in: per input of the fragment its elements in row-major order (NULL: random ones), out: per output those that
 * must come (NULL: only what the reference gives). Both are copied.
 */
void runner_add_numbers(struct runner *r, const char *what, const struct af_fragment *f, const double *const *in, const double *const *out);
void runner_report(struct runner *r, const char *what, const char *variant, const char *text);
/* Runs what waits. */
void runner_flush(struct runner *r);
/* Flushes, prints the sums and `ok …`. The process's exit code. */
int runner_finish(struct runner *r, bool list_fallbacks);
