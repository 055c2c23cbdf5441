/* SPDX-License-Identifier: Apache-2.0 */
/* Why a bundle is not there: what its fragment was compiled for, and which ingredient differs from the environment at hand. */
#pragma once

#include "cache/store.h"
#include "daemon/records.h"

#define AF_WHY_MAX_ENTRIES 64u
#define AF_WHY_TEXT        256u

struct af_environment;

/* One ingredient that is not the same; a side that has none: NULL. Borrows. */
typedef void (*af_why_difference_fn)(void *userdata, const struct af_ingredient *here, const struct af_ingredient *there);
/* Compares two ingredient records; calls visit (may be NULL) in the order of the first. Returns how many differ. */
uint32_t af_why_compare(const struct af_blob *here, const struct af_blob *there, af_why_difference_fn visit, void *userdata);

/* The environments that the store has a fragment's bundles for. Never more than AF_WHY_MAX_ENTRIES. Blocks for microseconds. */
uint32_t af_why_entries(struct af_store *store, const struct af_digest *fragment, struct af_digest ret_environments[AF_WHY_MAX_ENTRIES]);
/* One line: why (fragment, env) is missing. has_skeleton: the bundle is there, kernels of it are gone. */
void af_why_missed(struct af_environment *env, const struct af_digest *fragment, bool has_skeleton, bool known_fragment,
                   char out[AF_WHY_TEXT]);
/*
 * The answer to WHY as members of a JSON object: fragment, environment, stored, why, entries. env is READY. first (may be NULL): an
 * environment that is to be compared before others. Returns how many entries there are.
 */
uint32_t af_why_json(struct af_environment *env, const struct af_digest *fragment, const struct af_digest *first, struct af_buf *json);
