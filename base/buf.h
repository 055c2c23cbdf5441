/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growable byte buffer on the heap, little-endian writers and a bounds-checked reader.
 * Errors are sticky: a writer after a failed one does nothing, the caller asks once at the end.
 */
#pragma once

#include <stdbool.h>

#include "base/macros.h"

struct af_buf {
        uint8_t *data; /* NULL while empty */
        size_t size;
        size_t capacity;
        int error; /* 0 or -ENOMEM, -EOVERFLOW */
};

#define AF_BUF_INIT ((struct af_buf){0})

void af_buf_deinit(struct af_buf *buf);
/* Empties, keeps the memory, clears the error. */
void af_buf_clear(struct af_buf *buf);
/* The sticky error. */
int af_buf_error(const struct af_buf *buf) AF_WARN_UNUSED;
/* Room for n more bytes where there is none; as af_buf_reserve. */
uint8_t *af_buf_grow(struct af_buf *buf, size_t n);
/* Room for n more bytes; returns where they start, or NULL with the sticky error set. size does not change. */
static inline uint8_t *af_buf_reserve(struct af_buf *buf, size_t n) {
        return buf->capacity - buf->size > n && !buf->error ? buf->data + buf->size : af_buf_grow(buf, n);
}
void af_buf_put(struct af_buf *buf, const void *p, size_t n);
void af_buf_put_u8(struct af_buf *buf, uint8_t v);
void af_buf_put_u16(struct af_buf *buf, uint16_t v);
void af_buf_put_u32(struct af_buf *buf, uint32_t v);
void af_buf_put_u64(struct af_buf *buf, uint64_t v);
/* u32 length, then the bytes. */
void af_buf_put_field(struct af_buf *buf, const void *p, size_t n);
void af_buf_put_str(struct af_buf *buf, const char *s); /* the bytes of s, no length, no zero */
void af_buf_printf(struct af_buf *buf, const char *fmt, ...) AF_PRINTF(2, 3);
/* Zero bytes up to the next multiple of align. */
void af_buf_align(struct af_buf *buf, size_t align);
/* Overwrites 4 or 8 bytes written before. */
void af_buf_patch_u32(struct af_buf *buf, size_t at, uint32_t v);
void af_buf_patch_u64(struct af_buf *buf, size_t at, uint64_t v);
/* Hands the memory to the caller (free()); the buffer is empty afterwards. A zero byte follows the data. NULL on a sticky error. */
uint8_t *af_buf_take(struct af_buf *buf, size_t *ret_size) AF_WARN_UNUSED;

/* Reader over borrowed bytes; sticky: after a short read everything gives 0 and error is set. */
struct af_cursor {
        const uint8_t *data;
        size_t size;
        size_t at;
        bool error;
};

static inline struct af_cursor af_cursor_make(const void *p, size_t n) {
        return (struct af_cursor){.data = p, .size = n};
}
uint8_t af_cursor_u8(struct af_cursor *c);
uint16_t af_cursor_u16(struct af_cursor *c);
uint32_t af_cursor_u32(struct af_cursor *c);
uint64_t af_cursor_u64(struct af_cursor *c);
/* Borrows n bytes, or NULL. */
const uint8_t *af_cursor_bytes(struct af_cursor *c, size_t n);
/* u32 length, then borrows the bytes. */
const uint8_t *af_cursor_field(struct af_cursor *c, uint32_t *ret_n);
