/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon puts into the store's tables. All integers little-endian; a "field" is u32 length, then the bytes.
 *
 *   fragments  fragment digest
 *              -> u8 twin, 3 zero bytes, field soc, field toolchain (as asked for; empty: default), field canonical bytes
 *   bundles    fragment digest, environment digest
 *              -> skeleton bundle (proto/bundle.h); one that is small with its binaries (AF_INLINE_BUNDLE_BYTES): whole
 *   sources    kernel key -> field toolchain, field symbol, field source
 *   kernels    kernel key -> binary
 *   texts      digest of a request's text -> fragment digest, slot map (proto/bundle.h)
 *   env        environment digest -> its ingredients, each field name, field value
 */
#pragma once

#include "base/digest.h"
#include "daemon/blob.h"

/* Where a fragment wants to run. Strings malloc'd, never NULL; "" is the default. */
struct af_target {
        char *soc, *toolchain;
        uint8_t twin; /* enum af_twin */
};
/* Copies; NULL strings count as "". 0 or -ENOMEM. */
int af_target_init(struct af_target *t, const char *soc, const char *toolchain, uint8_t twin) AF_WARN_UNUSED;
void af_target_deinit(struct af_target *t);
bool af_target_equal(const struct af_target *a, const struct af_target *b);

#define AF_RECORD_E_DAMAGED 1

void af_record_fragment_write(struct af_buf *buf, const struct af_target *target, const void *canon, size_t n);
/* *ret_canon is a slice of record. 0, -ENOMEM, AF_RECORD_E_DAMAGED. */
int af_record_fragment_read(struct af_blob *record, struct af_target *ret_target, struct af_blob **ret_canon) AF_WARN_UNUSED;

struct af_record_source {
        char *symbol;           /* malloc'd */
        struct af_blob *source; /* a slice of the record */
};
void af_record_source_write(struct af_buf *buf, const char *toolchain, const char *symbol, const void *source, size_t n);
/* 0, -ENOMEM, AF_RECORD_E_DAMAGED. */
int af_record_source_read(struct af_blob *record, struct af_record_source *ret_source) AF_WARN_UNUSED;

/* One ingredient of an environment: what `autofusectl why` compares. */
void af_record_ingredient_write(struct af_buf *buf, const char *name, const char *value);
/* Steps through a record; false at the end or where it is damaged. Borrows. */
struct af_ingredient {
        const char *name, *value; /* not terminated */
        uint32_t n_name, n_value;
};
bool af_record_ingredient_next(struct af_cursor *c, struct af_ingredient *ret);
