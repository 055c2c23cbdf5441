/* SPDX-License-Identifier: Apache-2.0 */
/* Shared immutable bytes: inputs, plans, sources, binaries that several flights hold at once. One thread: plain counts. */
#pragma once

#include "base/buf.h"

struct af_blob {
        uint32_t refs;
        size_t size;
        const uint8_t *data;    /* aligned to 16; a zero byte follows unless it is a slice */
        void *owned;            /* malloc'd, freed with the blob; NULL for a slice */
        struct af_blob *parent; /* of a slice; NULL otherwise */
};

/* Each returns a blob with one reference, or NULL: no memory. */
struct af_blob *af_blob_copy(const void *p, size_t n) AF_WARN_UNUSED;
/* Takes p (malloc'd) over, on failure too. */
struct af_blob *af_blob_take(void *p, size_t n) AF_WARN_UNUSED;
/* What buf holds; buf is empty afterwards. NULL on its sticky error too. */
struct af_blob *af_blob_take_buf(struct af_buf *buf) AF_WARN_UNUSED;
/* n bytes at p inside of parent, which it keeps alive. */
struct af_blob *af_blob_slice(struct af_blob *parent, const void *p, size_t n) AF_WARN_UNUSED;
/* blob may be NULL. */
struct af_blob *af_blob_ref(struct af_blob *blob);
void af_blob_unref(struct af_blob *blob);
/* Drops *blob and clears it. */
void af_blob_clear(struct af_blob **blob);
