/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/blob.h"

#include <stdlib.h>
#include <string.h>

struct af_blob *af_blob_take(void *p, size_t n) {
        struct af_blob *b = p ? malloc(sizeof(*b)) : NULL;

        if (!b) {
                free(p);
                return NULL;
        }
        *b = (struct af_blob){.refs = 1, .size = n, .data = p, .owned = p};
        return b;
}

struct af_blob *af_blob_copy(const void *p, size_t n) {
        uint8_t *copy = malloc(n + 1);

        if (!copy)
                return NULL;
        if (n)
                memcpy(copy, p, n);
        copy[n] = 0;
        return af_blob_take(copy, n);
}

struct af_blob *af_blob_take_buf(struct af_buf *buf) {
        size_t n = 0;
        uint8_t *p;

        if (af_buf_error(buf))
                return NULL;
        p = af_buf_take(buf, &n);
        return p ? af_blob_take(p, n) : af_blob_copy("", 0);
}

struct af_blob *af_blob_slice(struct af_blob *parent, const void *p, size_t n) {
        struct af_blob *b = malloc(sizeof(*b));

        if (b)
                *b = (struct af_blob){.refs = 1, .size = n, .data = p, .parent = af_blob_ref(parent)};
        return b;
}

struct af_blob *af_blob_ref(struct af_blob *blob) {
        if (blob)
                blob->refs++;
        return blob;
}

void af_blob_unref(struct af_blob *blob) {
        if (!blob || --blob->refs > 0)
                return;
        af_blob_unref(blob->parent);
        free(blob->owned);
        free(blob);
}

void af_blob_clear(struct af_blob **blob) {
        af_blob_unref(*blob);
        *blob = NULL;
}
