/* SPDX-License-Identifier: Apache-2.0 */
/* The bundle handle: checked bytes together with the names of whoever asked. */
#pragma once

#include "client/content.h"
#include "client/error.h"
#include "client/prepared.h"

struct autofuse_bundle {
        atomic_uint refs;
        struct af_content *content;
        struct af_solved_ref *solved; /* of a form: its tables for some values of the symbols; NULL */
        struct af_prepared *prepared;
        enum autofuse_hit hit;
        uint64_t compile_us;
};

/* The tables: of the solved form, or of the bundle itself. */
const struct af_bundle *af_bundle_tables(const struct autofuse_bundle *bundle);

/* Whether a bundle answers this fragment: slots, outputs and nodes agree in number. *ret_why: static text. */
bool af_content_suits(const struct af_content *content, const struct af_prepared *prepared, const char **ret_why) AF_WARN_UNUSED;
/* Takes a reference of each. NULL: no memory, and nothing was taken. */
struct autofuse_bundle *af_bundle_handle_new(struct af_content *content, struct af_prepared *prepared, enum autofuse_hit hit,
                                             uint64_t compile_us) AF_WARN_UNUSED;

/* Counters of a run by the checked twin, summed over launches. */
struct af_run_stats {
        struct af_twin_stats twin;
        uint32_t n_launches;
};
/* autofuse_bundle_run with counters; stats may be NULL. */
enum autofuse_status af_bundle_run(struct autofuse_bundle *bundle, const struct autofuse_run *run, struct af_run_stats *stats,
                                   struct autofuse_error **ret_error) AF_WARN_UNUSED;
