/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/le.h"

void af_buf_deinit(struct af_buf *buf) {
        free(buf->data);
        *buf = AF_BUF_INIT;
}

void af_buf_clear(struct af_buf *buf) {
        buf->size = 0;
        buf->error = 0;
}

int af_buf_error(const struct af_buf *buf) {
        return buf->error;
}

uint8_t *af_buf_grow(struct af_buf *buf, size_t n) {
        size_t need;

        if (buf->error)
                return NULL;
        if (__builtin_add_overflow(buf->size, n, &need) || need > SIZE_MAX / 4) {
                buf->error = -EOVERFLOW;
                return NULL;
        }
        if (need > buf->capacity || !buf->data) {
                size_t capacity = AF_MAX(AF_MAX(buf->capacity * 2, need), (size_t)64);
                uint8_t *data = realloc(buf->data, capacity);
                if (!data) {
                        buf->error = -ENOMEM;
                        return NULL;
                }
                buf->data = data;
                buf->capacity = capacity;
        }
        return buf->data + buf->size;
}

void af_buf_put(struct af_buf *buf, const void *p, size_t n) {
        uint8_t *to = af_buf_reserve(buf, n);

        if (!to || n == 0)
                return;
        memcpy(to, p, n);
        buf->size += n;
}

static inline void put_le(struct af_buf *buf, uint64_t v, unsigned n) {
        uint8_t *to = af_buf_reserve(buf, n);

        if (!to)
                return;
        af_le_put(to, v, n);
        buf->size += n;
}

void af_buf_put_u8(struct af_buf *buf, uint8_t v) {
        put_le(buf, v, 1);
}

void af_buf_put_u16(struct af_buf *buf, uint16_t v) {
        put_le(buf, v, 2);
}

void af_buf_put_u32(struct af_buf *buf, uint32_t v) {
        put_le(buf, v, 4);
}

void af_buf_put_u64(struct af_buf *buf, uint64_t v) {
        put_le(buf, v, 8);
}

void af_buf_put_field(struct af_buf *buf, const void *p, size_t n) {
        if (n > UINT32_MAX) {
                if (!buf->error)
                        buf->error = -EOVERFLOW;
                return;
        }
        af_buf_put_u32(buf, (uint32_t)n);
        af_buf_put(buf, p, n);
}

void af_buf_put_str(struct af_buf *buf, const char *s) {
        af_buf_put(buf, s, strlen(s));
}

void af_buf_printf(struct af_buf *buf, const char *fmt, ...) {
        va_list args;

        va_start(args, fmt);
        int n = vsnprintf(NULL, 0, fmt, args);
        va_end(args);
        if (n < 0) {
                if (!buf->error)
                        buf->error = -EOVERFLOW;
                return;
        }
        char *to = (char *)af_buf_reserve(buf, (size_t)n + 1);
        if (!to)
                return;
        va_start(args, fmt);
        vsnprintf(to, (size_t)n + 1, fmt, args);
        va_end(args);
        buf->size += (size_t)n;
}

void af_buf_align(struct af_buf *buf, size_t align) {
        size_t n = (align - buf->size % align) % align;
        uint8_t *to = n > 0 ? af_buf_reserve(buf, n) : NULL;

        if (!to)
                return;
        memset(to, 0, n);
        buf->size += n;
}

static void patch_le(struct af_buf *buf, size_t at, uint64_t v, unsigned n) {
        if (buf->error)
                return;
        if (at > buf->size || buf->size - at < n) {
                buf->error = -EOVERFLOW;
                return;
        }
        af_le_put(buf->data + at, v, n);
}

void af_buf_patch_u32(struct af_buf *buf, size_t at, uint32_t v) {
        patch_le(buf, at, v, 4);
}

void af_buf_patch_u64(struct af_buf *buf, size_t at, uint64_t v) {
        patch_le(buf, at, v, 8);
}

uint8_t *af_buf_take(struct af_buf *buf, size_t *ret_size) {
        uint8_t *end = af_buf_reserve(buf, 1);

        if (!end)
                return NULL;
        *end = 0;
        uint8_t *data = buf->data;
        if (ret_size)
                *ret_size = buf->size;
        *buf = AF_BUF_INIT;
        return data;
}

const uint8_t *af_cursor_bytes(struct af_cursor *c, size_t n) {
        if (c->error || c->size - c->at < n) {
                c->error = true;
                return NULL;
        }
        const uint8_t *p = c->data ? c->data + c->at : (const uint8_t *)"";
        c->at += n;
        return p;
}

static uint64_t get_le(struct af_cursor *c, unsigned n) {
        const uint8_t *p = af_cursor_bytes(c, n);

        return p ? af_le_get(p, n) : 0;
}

uint8_t af_cursor_u8(struct af_cursor *c) {
        return (uint8_t)get_le(c, 1);
}

uint16_t af_cursor_u16(struct af_cursor *c) {
        return (uint16_t)get_le(c, 2);
}

uint32_t af_cursor_u32(struct af_cursor *c) {
        return (uint32_t)get_le(c, 4);
}

uint64_t af_cursor_u64(struct af_cursor *c) {
        return get_le(c, 8);
}

const uint8_t *af_cursor_field(struct af_cursor *c, uint32_t *ret_n) {
        uint32_t n = af_cursor_u32(c);
        const uint8_t *p = af_cursor_bytes(c, n);

        *ret_n = p ? n : 0;
        return p;
}
