/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer of a hot area: a memfd that its owner alone can write, sealed against every other way. For one thread. The area holds copies:
 * losing any of it costs a look-up elsewhere.
 */
#pragma once

#include "hot/layout.h"

struct af_hot_area;
struct af_hot_stats {
        uint64_t total_bytes, used_bytes, n_records, n_puts, n_evicted, n_refused;
};
enum {
        AF_HOT_E_FULL = 1 /* no room that may be taken now */,
        AF_HOT_E_LARGE = 2 /* empty, or larger than a sixteenth of the data */,
};

/* Rounded to pages and to AF_HOT_MIN_BYTES and AF_HOT_MAX_BYTES. Memory is taken as it is filled. 0 or -errno. */
int af_hot_area_new(uint64_t n_bytes, struct af_hot_area **ret_area) AF_WARN_UNUSED;
/* Marks it closed first. NULL is fine. */
void af_hot_area_free(struct af_hot_area *area);
/* Borrowed: for others to map; opened read-only. */
int af_hot_area_fd(const struct af_hot_area *area);
uint64_t af_hot_area_bytes(const struct af_hot_area *area);
uint64_t af_hot_area_number(const struct af_hot_area *area); /* hot/link.h */

/* Every environment in the table was in force at ns (CLOCK_MONOTONIC, not 0) or later. */
void af_hot_area_beat(struct af_hot_area *area, uint64_t ns);
/* Readers believe nothing of it any more. */
void af_hot_area_shut(struct af_hot_area *area);

/* The environment that is in force for a target; NULL: not known at the moment. AF_HOT_E_FULL: no place for one more target. */
int af_hot_area_set_target(struct af_hot_area *area, const struct af_hot_target_id *id, const struct af_digest *environment) AF_WARN_UNUSED;

/* Copies n bytes in; one with this key is replaced. Without may_evict only room that is free is taken. 0, AF_HOT_E_*. */
int af_hot_area_put(struct af_hot_area *area, const struct af_hot_key *key, const void *p, size_t n, bool may_evict) AF_WARN_UNUSED;
/* It was used: the hand passes it over once. False: it is not there. */
bool af_hot_area_touch(struct af_hot_area *area, const struct af_hot_key *key);
void af_hot_area_del(struct af_hot_area *area, const struct af_hot_key *key);
/* Drops every record; the targets stay. */
void af_hot_area_clear(struct af_hot_area *area);
void af_hot_area_stats(const struct af_hot_area *area, struct af_hot_stats *ret_stats);
