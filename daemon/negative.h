/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that the compiler refuses, and what no plan can be made of (plan.c): remembered in memory for ten minutes, and only once a second
 * run, alone, has failed with the same text. What may come from a lack of space or memory or from a signal is never counted.
 */
#pragma once

#include "daemon/list.h"
#include "daemon/table.h"

#define AF_NEGATIVE_MAX       1024u
#define AF_NEGATIVE_MAX_BYTES (8u << 20) /* texts, all together */
#define AF_NEGATIVE_NS        600000000000ull

struct af_negatives {
        struct af_digest_table table;
        struct af_list oldest; /* by the time of the last failure */
        size_t n_bytes;
};

void af_negatives_init(struct af_negatives *n);
void af_negatives_clear(struct af_negatives *n);
/* A compile failed with this text; alone: nothing ran beside it. tmp_dir: its paths differ from run to run and do not count. */
void af_negative_note(struct af_negatives *n, const struct af_digest *key, const char *text, bool alone, const char *tmp_dir,
                      uint64_t now_ns);
/* It was compiled after all. */
void af_negative_forget(struct af_negatives *n, const struct af_digest *key);
/* The text, borrowed until the next call, where it is known to fail; NULL where not. */
const char *af_negative_get(struct af_negatives *n, const struct af_digest *key, uint64_t now_ns);
/* Whether it failed once: its next run is to be alone. */
bool af_negative_suspected(struct af_negatives *n, const struct af_digest *key, uint64_t now_ns);
/* Whether the text may speak of something else than the source: space, memory, a signal. */
bool af_negative_doubtful(const char *text);
