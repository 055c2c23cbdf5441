/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fragment to plan to bundle, in process. The daemon's jobs, `autofusectl --offline` and the tests call this; the pass order is the
 * const table in driver.c.
 */
#pragma once

#include "compiler/driver/env.h"
#include "compiler/fusion/fusion.h"
#include "compiler/rewrite/rewrite.h"
#include "proto/bundle.h"

enum { AF_DRIVER_E_INVALID = 1 /* the fragment; diagnostics */, AF_DRIVER_E_NOT_CANONICAL = 2, AF_DRIVER_E_COMPILE = 3 };

/*
 * Canonical bytes -> plan bytes (proto/bundle.h). dump (may be NULL) is called after each pass with its name and text.
 */
struct af_driver_opts {
        bool keep_sources;       /* sources go into the bundle too */
        bool no_fuse;            /* every node its own group: the unfused comparison */
        uint32_t max_cores;      /* 0: the SoC's; tests vary it */
        uint32_t max_tile_bytes; /* 0: UB; tests vary it */
        void (*dump)(void *userdata, const char *pass, const char *text);
        void (*stage)(void *userdata, const char *name, uint64_t us); /* may be NULL: after all passes, once per pass and for "schedule",
                                                                         which is the part of fuse that asks for loop trees */
        void *userdata;
};
int af_driver_plan(const struct af_env *env, const void *canon, size_t n, const struct af_driver_opts *opts, struct af_buf *ret_plan,
                   struct af_diags *diags) AF_WARN_UNUSED;
/* JSON text -> canonical bytes and slot map. */
int af_driver_canonicalise(const char *text, size_t n, struct af_buf *ret_canon, struct af_slot_map *ret_map,
                           struct af_diags *diags) AF_WARN_UNUSED;
/* Canonical bytes -> full bundle with binaries, compiled in this process, one after another. */
int af_driver_compile(const struct af_env *env, const void *canon, size_t n, const struct af_driver_opts *opts, struct af_buf *ret_bundle,
                      struct af_buf *err, struct af_diags *diags) AF_WARN_UNUSED;

struct af_view_kernel {
        const struct af_kernel *kernel;
        const char *symbol;
        const uint8_t *source; /* instantiated */
        uint32_t source_size;
};
/* What the fuse and emit passes found, for people: everything lives in the caller's arena. */
struct af_driver_view {
        struct af_graph graph;
        const uint32_t *canonical;     /* per node: its canonical number, or AF_NONE for a copy that the compiler added */
        struct af_rewrite_notes notes; /* what was rewritten before; `source` is a canonical number */
        struct af_fusion fusion;
        const struct af_view_kernel *kernels; /* per group */
};
int af_driver_view(const struct af_env *env, struct af_arena *arena, const void *canon, size_t n, const struct af_driver_opts *opts,
                   struct af_driver_view *ret_view, struct af_diags *diags) AF_WARN_UNUSED;
