/* SPDX-License-Identifier: Apache-2.0 */
/* The pack's tables as they lie in the file, and their way to and from structs. Private to hot/. */
#pragma once

#include "hot/pack.h"

#define PACK_HEADER_BYTES 192u
#define PACK_DIGESTED     96u /* of the header: what the digest covers */
#define PACK_ENTRY_BYTES  192u
#define PACK_TARGET_BYTES 192u
#define PACK_SIGNED       1u
#define PACK_ALIGN        64u
#define PACK_MAX_BYTES    (UINT64_C(1) << 46)

struct pack_header {
        uint32_t version, flags, canon_version;
        uint64_t n_entries, entries_at, n_targets, targets_at, machine_at, machine_bytes, file_bytes;
        struct af_digest digest;
        uint8_t signature[64];
};
struct pack_entry {
        struct af_digest fragment, environment;
        uint64_t canon_at, n_canon, bundle_at, n_bundle;
        struct af_check check;
        struct af_digest content; /* signed packs */
};
struct pack_target {
        struct af_digest environment;
        uint32_t twin;
        char soc[AF_PACK_MAX_NAME + 1], toolchain[AF_PACK_MAX_NAME + 1];
};

void pack_header_write(const struct pack_header *h, uint8_t out[PACK_HEADER_BYTES]);
/* 0, AF_PACK_E_DAMAGED (not a pack), AF_PACK_E_VERSION. Offsets are not checked against the file. */
int pack_header_read(const uint8_t in[PACK_HEADER_BYTES], struct pack_header *ret_h) AF_WARN_UNUSED;
void pack_entry_write(const struct pack_entry *e, uint8_t out[PACK_ENTRY_BYTES]);
void pack_entry_read(const uint8_t in[PACK_ENTRY_BYTES], struct pack_entry *ret_e);
void pack_target_write(const struct pack_target *t, uint8_t out[PACK_TARGET_BYTES]);
/* Names are cut where they have no zero byte. */
void pack_target_read(const uint8_t in[PACK_TARGET_BYTES], struct pack_target *ret_t);
/* By fragment, then environment. */
int pack_entry_compare(const struct pack_entry *a, const struct af_digest *fragment, const struct af_digest *environment);
/* Over digests, canonical bytes and bundle. */
void pack_entry_check(const struct pack_entry *e, const void *canon, const void *bundle, struct af_check *ret_check);
void pack_entry_content(const struct pack_entry *e, const void *canon, const void *bundle, struct af_digest *ret_digest);
/* What is signed. header: its first PACK_DIGESTED bytes. */
void pack_digest(const uint8_t header[PACK_DIGESTED], const void *entries, size_t n_entries, const void *targets, size_t n_targets,
                 const void *machine, size_t n_machine, struct af_digest *ret_digest);
