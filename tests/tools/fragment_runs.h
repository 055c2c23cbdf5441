/* SPDX-License-Identifier: Apache-2.0 */
/* What fragment_runs does with one planned fragment: counts, runs and compares, or writes its kernels out. */
#pragma once

#include <stdio.h>

#include "compiler/driver/driver.h"
#include "compiler/graph/canon.h"
#include "tests/lib/batch.h"
#include "tests/lib/run_bundle.h"

struct setup {
        struct af_env env;
        struct batch batch;
        struct af_driver_opts opts;
        bool count, run;              /* count bytes and cycles without computing; compute and compare with the reference */
        bool specials;                /* with `run`: also on NaN, infinities, … */
        unsigned symbols;             /* which values of symbols (tests/lib/bind.h) */
        const char *inputs, *outputs; /* directories of raw bytes, or NULL */
        const char *dump;             /* directory for another judge's cases, or NULL */
        FILE *cases;                  /* with `dump`: one line per launch */
};
struct item {       /* one fragment */
        char *name; /* file name without its folder and suffix, or seedN */
        uint64_t seed;
        struct af_buf canon, plan;
        struct af_slot_map map; /* of its inputs */
        char error[2000];
};

/* Prints one JSON object on one line: kernels with bytes, cycles and arguments, framework steps with reasons, whether results are equal. */
void item_report(struct setup *s, struct item *item);

/* A launcher for run_bundle_with that writes each launch as a case: sources, arguments before and after. */
struct dump {
        struct setup *s;
        const struct item *item;
        const struct af_bundle *bundle;
        const struct af_driver_view *view; /* of the same plan */
        uint32_t step, n_launches;
        int error; /* -errno of the first file that could not be written */
};
int dump_launch(void *dump, const char *symbol, const struct af_twin_launch *launch);
