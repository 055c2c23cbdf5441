/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long work on the store: verify, collect garbage, export. Runs on any thread but the store's, in slices, beside everything else; knows no
 * connection. What a bundle needs (its kernels, its fragment) is read here; cache/ knows only keys and bytes.
 */
#pragma once

#include <stdatomic.h>

#include "cache/store.h"

enum af_maintain_kind { AF_MAINTAIN_VERIFY, AF_MAINTAIN_GC, AF_MAINTAIN_EXPORT };

struct af_maintain_progress {
        atomic_bool stop; /* set by anyone: ends between two slices with -ECANCELED */
        _Atomic uint64_t n_done, n_total;
        void (*tell)(void *userdata); /* now and then, on the working thread; may be NULL */
        void *userdata;
};
struct af_maintain_opts {
        enum af_maintain_kind kind;
        uint64_t max_bytes;                   /* GC: then evict down to this; 0: no */
        uint32_t max_age_days;                /* GC: bundles unused for longer go; 0: no */
        bool current_only;                    /* GC: bundles of other environments go */
        const struct af_digest *environments; /* those in force: GC with current_only, EXPORT (others are left out) */
        uint32_t n_environments;
        int fd; /* EXPORT: new empty file for the pack; -1 */
};
struct af_maintain_result {
        uint64_t n_records, n_damaged;                       /* looked at; found damaged and deleted */
        uint64_t n_bundles, n_kernels, n_fragments, n_texts; /* GC: deleted (a kernel with its source) */
        uint64_t n_exported, n_incomplete;                   /* EXPORT: bundles; left out for want of a kernel */
        uint64_t used_before, used_after;
};
/* 0, -errno, AF_STORE_E_FULL. The store stays the caller's. */
int af_maintain_run(struct af_store *store, const struct af_maintain_opts *opts, struct af_maintain_progress *progress,
                    struct af_maintain_result *ret_result) AF_WARN_UNUSED;
/* One JSON object. */
void af_maintain_result_json(enum af_maintain_kind kind, const struct af_maintain_result *r, struct af_buf *buf);
