/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digests. BLAKE2b-256 names things (fragments, kernels, environments); XXH3-128 guards bytes against damage.
 * Every ingredient of a BLAKE2b digest goes in as a tagged, length-prefixed field, so that no two lists of fields collide.
 */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "base/macros.h"

struct af_digest {
        uint8_t bytes[32];
};
struct af_check {
        uint8_t bytes[16];
}; /* XXH3-128, canonical byte order */

#define AF_DIGEST_HEX_SIZE 65

static inline bool af_digest_equal(const struct af_digest *a, const struct af_digest *b) {
        return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

struct af_hasher {
        _Alignas(64) uint8_t state[384];
}; /* opaque: crypto_generichash_state */
/* domain separates kinds of digests ("autofuse.fragment/1"). */
void af_hasher_init(struct af_hasher *h, const char *domain);
/* tag names the ingredient; u32 tag length, tag, u64 length, bytes go in. */
void af_hasher_field(struct af_hasher *h, const char *tag, const void *p, size_t n);
void af_hasher_str(struct af_hasher *h, const char *tag, const char *s); /* s may be NULL: an empty field with tag "tag?" */
void af_hasher_u64(struct af_hasher *h, const char *tag, uint64_t v);
void af_hasher_final(struct af_hasher *h, struct af_digest *ret_digest);

/* One field, one digest. */
void af_digest_bytes(const char *domain, const void *p, size_t n, struct af_digest *ret_digest);
/* Digest of a file's content (a domain of its own, "autofuse.file/1"). Blocks. 0 or -errno. */
int af_digest_file(const char *path, struct af_digest *ret_digest) AF_WARN_UNUSED;
/* Lower-case hex of n bytes, with a zero: out holds 2n+1. */
void af_hex(const void *p, size_t n, char *out);
void af_digest_hex(const struct af_digest *d, char out[AF_DIGEST_HEX_SIZE]);
/* Exactly 2n hex digits (either case) into n bytes; false otherwise. */
bool af_unhex(const char *hex, size_t n_hex, void *ret_bytes, size_t n) AF_WARN_UNUSED;

void af_check_bytes(const void *p, size_t n, struct af_check *ret_check);
/* One check over several pieces: a chain of XXH3-128 over (check so far, length, check of the piece), from all zero. */
struct af_piece {
        const void *p;
        size_t n;
};
void af_check_pieces(const struct af_piece *pieces, size_t n_pieces, struct af_check *ret_check);
