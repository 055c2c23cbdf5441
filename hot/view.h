/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of a hot area. Takes no lock, waits for nobody and writes nothing: what it copies is believed only after the sequence number
 * and the check held. Any number of threads; a forked child may go on with it.
 */
#pragma once

#include <sys/types.h>

#include "hot/layout.h"

struct af_hot_view;
enum {
        AF_HOT_E_FORMAT = 1 /* not an area, another version, or not sealed; *ret_why */,
        AF_HOT_E_MISS = 2 /* absent, overwritten meanwhile, or damaged */,
};

/* Maps the area of n bytes read-only; the caller keeps fd. 0, -errno, AF_HOT_E_FORMAT with static text. One reference. */
int af_hot_view_open(int fd, uint64_t n, struct af_hot_view **ret_view, const char **ret_why) AF_WARN_UNUSED;
struct af_hot_view *af_hot_view_ref(struct af_hot_view *view);
void af_hot_view_unref(struct af_hot_view *view); /* NULL is fine */
uint64_t af_hot_view_number(const struct af_hot_view *view);

/* Whether the server found its environments in force less than AF_HOT_FRESH_NS before now_ns (CLOCK_MONOTONIC). */
bool af_hot_view_is_fresh(const struct af_hot_view *view, uint64_t now_ns);
/* The environment in force for a target; AF_HOT_E_MISS where the server does not say. To be asked only of a fresh view. */
int af_hot_view_target(const struct af_hot_view *view, const struct af_hot_target_id *id, struct af_digest *ret_environment) AF_WARN_UNUSED;
/*
 * A verified copy of a record of at most n_max bytes; aligned to 64, freed with free(). 0, -ENOMEM, AF_HOT_E_MISS. Costs one pass over the
 * bytes and one over the copy; pages that this process has not read before are mapped on the way.
 */
int af_hot_view_get(const struct af_hot_view *view, const struct af_hot_key *key, size_t n_max, void **ret_data,
                    size_t *ret_n) AF_WARN_UNUSED;
