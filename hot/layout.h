/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands in a hot area. One host: native byte order, and both sides are built from this header (VERSION).
 *
 *   0           struct af_hot_header, one page
 *   targets_at  n_targets  struct af_hot_target: which environment is in force for what a fragment may name as its target
 *   slots_at    n_buckets * AF_HOT_WAYS  struct af_hot_slot: where a record lies
 *   data_at     records' bytes, each at a multiple of AF_HOT_UNIT
 *
 * One process writes (area.h), any number read (view.h). Each target and slot has a sequence number: odd while it is written, changed by
 * every write, and changed before the bytes that a slot names are given to another. Who reads copies, looks at the number again, and then
 * holds the copy against the check: XXH3-128 over the record's key and its bytes. So a slot needs no key, only a tag to find it by.
 *
 * Offsets are multiples of 64 on both sides of a copy: memcpy is many times slower where the destination lies 1 to 31 bytes above the
 * source modulo 4096.
 */
#pragma once

#include <stdatomic.h>

#include "base/digest.h"

#define AF_HOT_MAGIC     0x31544f4846410000ull /* "AFHOT1" */
#define AF_HOT_VERSION   2u
#define AF_HOT_PAGE      4096u
#define AF_HOT_UNIT      64u
#define AF_HOT_WAYS      4u
#define AF_HOT_N_TARGETS 256u
#define AF_HOT_PROBES    8u /* targets looked at for one */
#define AF_HOT_MIN_BYTES (1ull << 20)
#define AF_HOT_MAX_BYTES (1ull << 37) /* offsets count units in 32 bits */
#define AF_HOT_FRESH_NS  980000000ll  /* what was found current longer ago is not believed: a second, and readers' clocks are coarse */

struct af_hot_header {
        uint64_t magic;
        uint32_t version, n_targets, n_buckets, zero;
        uint64_t total_bytes, targets_at, slots_at, data_at;
        uint64_t number; /* random: one area is not taken for another */
        /* CLOCK_MONOTONIC: every environment in the table was found in force at this time or later; 0: the server is gone. */
        _Alignas(64) _Atomic uint64_t beat_ns;
};

struct af_hot_target {
        _Atomic uint32_t seq;
        uint32_t used;                /* 0: empty */
        uint8_t id[16];               /* struct af_hot_target_id */
        struct af_digest environment; /* in force */
        uint64_t zero;
};

struct af_hot_slot {
        _Atomic uint32_t seq;
        uint32_t n_bytes; /* 0: empty */
        uint32_t unit;    /* data_at + unit * AF_HOT_UNIT */
        uint32_t zero;
        uint8_t tag[16];       /* XXH3-128 of the key; its first bytes choose the bucket */
        struct af_check check; /* over key, then bytes: af_check_pieces */
        uint64_t zeros[2];
};
_Static_assert(sizeof(struct af_hot_target) == 64 && sizeof(struct af_hot_slot) == 64, "one cache line each");
_Static_assert(sizeof(struct af_hot_header) <= AF_HOT_PAGE, "the header is a page");

/* A record's name. */
struct af_hot_key {
        uint8_t bytes[64];
};
/* The bundle of a fragment in an environment. */
static inline struct af_hot_key af_hot_key_bundle(const struct af_digest *fragment, const struct af_digest *environment) {
        struct af_hot_key key;

        memcpy(key.bytes, fragment->bytes, 32);
        memcpy(key.bytes + 32, environment->bytes, 32);
        return key;
}
/* What a text was found to be. */
static inline struct af_hot_key af_hot_key_text(const struct af_digest *text) {
        struct af_hot_key key;

        memcpy(key.bytes, text->bytes, 32);
        memset(key.bytes + 32, 0, 32);
        return key;
}

/* A target as a fragment names it ("" and 0: the server's default). */
struct af_hot_target_id {
        uint8_t bytes[16];
};
static inline struct af_hot_target_id af_hot_target_make(const char *soc, const char *toolchain, uint32_t twin) {
        struct af_hot_target_id id;
        struct af_check check;
        uint8_t last[4] = {(uint8_t)twin, (uint8_t)(twin >> 8), (uint8_t)(twin >> 16), (uint8_t)(twin >> 24)};

        af_check_pieces((struct af_piece[]){{soc, strlen(soc)}, {toolchain, strlen(toolchain)}, {last, sizeof(last)}}, 3, &check);
        memcpy(id.bytes, check.bytes, sizeof(id.bytes));
        return id;
}

static inline uint32_t af_hot_target_first(const struct af_hot_target_id *id) {
        uint32_t h;

        memcpy(&h, id->bytes, sizeof(h));
        return h % AF_HOT_N_TARGETS;
}
/* The bucket's first slot. */
static inline uint32_t af_hot_bucket(const uint8_t tag[16], uint32_t n_buckets) {
        uint32_t h;

        memcpy(&h, tag, sizeof(h));
        return (h & (n_buckets - 1)) * AF_HOT_WAYS;
}
