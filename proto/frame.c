/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/frame.h"

#include <errno.h>
#include <string.h>

#include "base/le.h"

#define BODY_BYTES_AT 16u

const char *af_error_code_name(enum af_error_code code) {
        switch (code) {
        case AF_ERROR_PROTOCOL:
                return "protocol";
        case AF_ERROR_VERSION:
                return "version";
        case AF_ERROR_REFUSED:
                return "refused";
        case AF_ERROR_INVALID:
                return "invalid";
        case AF_ERROR_TOO_LARGE:
                return "too_large";
        case AF_ERROR_COMPILE:
                return "compile";
        case AF_ERROR_DEADLINE:
                return "deadline";
        case AF_ERROR_CANCELED:
                return "canceled";
        case AF_ERROR_DRAINING:
                return "draining";
        case AF_ERROR_BUSY:
                return "busy";
        case AF_ERROR_JOB_DIED:
                return "job_died";
        case AF_ERROR_INTERNAL:
                return "internal";
        case AF_ERROR_NOT_FOUND:
                return "not_found";
        case AF_ERROR_TOOLCHAIN:
                return "toolchain";
        case AF_ERROR_STORAGE:
                return "storage";
        }
        return "unknown"; /* a newer peer's */
}

size_t af_frame_begin(struct af_buf *buf, const struct af_frame_header *h) {
        size_t start = buf->size;

        af_buf_put_u32(buf, AF_FRAME_MAGIC);
        af_buf_put_u8(buf, AF_FRAME_VERSION);
        af_buf_put_u8(buf, h->type);
        af_buf_put_u16(buf, h->flags);
        af_buf_put_u64(buf, h->request_id);
        af_buf_put_u32(buf, 0);
        af_buf_put_u32(buf, h->deadline_ms);
        af_buf_put_u8(buf, h->priority);
        af_buf_put_u8(buf, h->n_fds);
        af_buf_put_u16(buf, 0);
        af_buf_put_u32(buf, 0);
        return start;
}

void af_frame_field(struct af_buf *buf, enum af_frame_tag tag, const void *p, size_t n) {
        af_buf_put_u16(buf, (uint16_t)tag);
        af_buf_put_u16(buf, 0);
        af_buf_put_field(buf, p, n);
        /* Padding is relative to the field, not to the buffer, which may hold other frames before this one. */
        af_buf_put(buf, "\0\0\0", (4 - n % 4) % 4);
}

void af_frame_field_u8(struct af_buf *buf, enum af_frame_tag tag, uint8_t v) {
        af_frame_field(buf, tag, &v, 1);
}

/* Little-endian value of n bytes. */
static void field_le(struct af_buf *buf, enum af_frame_tag tag, uint64_t v, unsigned n) {
        uint8_t bytes[8];

        af_le_put(bytes, v, n);
        af_frame_field(buf, tag, bytes, n);
}

void af_frame_field_u32(struct af_buf *buf, enum af_frame_tag tag, uint32_t v) {
        field_le(buf, tag, v, 4);
}

void af_frame_field_u64(struct af_buf *buf, enum af_frame_tag tag, uint64_t v) {
        field_le(buf, tag, v, 8);
}

void af_frame_field_str(struct af_buf *buf, enum af_frame_tag tag, const char *s) {
        af_frame_field(buf, tag, s, strlen(s));
}

void af_frame_end(struct af_buf *buf, size_t start) {
        if (af_buf_error(buf))
                return;
        size_t body = buf->size - start - AF_FRAME_HEADER_BYTES;
        if (body > AF_FRAME_MAX_BODY) {
                buf->error = -EOVERFLOW;
                return;
        }
        af_buf_patch_u32(buf, start + BODY_BYTES_AT, (uint32_t)body);
}

int af_frame_header_read(const uint8_t bytes[AF_FRAME_HEADER_BYTES], struct af_frame_header *ret_h) {
        struct af_cursor c = af_cursor_make(bytes, AF_FRAME_HEADER_BYTES);
        struct af_frame_header h = {0};

        if (af_cursor_u32(&c) != AF_FRAME_MAGIC)
                return AF_FRAME_E_MAGIC;
        if (af_cursor_u8(&c) != AF_FRAME_VERSION)
                return AF_FRAME_E_VERSION;
        h.type = af_cursor_u8(&c);
        h.flags = af_cursor_u16(&c);
        h.request_id = af_cursor_u64(&c);
        h.body_bytes = af_cursor_u32(&c);
        h.deadline_ms = af_cursor_u32(&c);
        h.priority = af_cursor_u8(&c);
        h.n_fds = af_cursor_u8(&c);
        if (h.body_bytes > AF_FRAME_MAX_BODY)
                return AF_FRAME_E_SIZE;
        if (af_cursor_u16(&c) != 0 || af_cursor_u32(&c) != 0 || h.n_fds > 1)
                return AF_FRAME_E_RESERVED;
        *ret_h = h;
        return 0;
}

bool af_frame_next(struct af_cursor *c, struct af_field *ret_field) {
        struct af_field f;

        if (c->error || c->at == c->size)
                return false;
        f.tag = af_cursor_u16(c);
        if (af_cursor_u16(c) != 0)
                c->error = true;
        f.p = af_cursor_field(c, &f.n);
        const uint8_t *padding = af_cursor_bytes(c, (4 - f.n % 4) % 4);
        for (uint32_t i = 0; padding && i < (4 - f.n % 4) % 4; i++)
                if (padding[i] != 0)
                        c->error = true;
        if (c->error)
                return false;
        *ret_field = f;
        return true;
}

bool af_frame_find(const uint8_t *body, size_t n_body, enum af_frame_tag tag, size_t n, struct af_field *ret_field) {
        struct af_cursor c = af_cursor_make(body, n_body);
        struct af_field f;

        while (af_frame_next(&c, &f))
                if (f.tag == (uint16_t)tag) {
                        if (n > 0 && f.n != n)
                                return false;
                        *ret_field = f;
                        return true;
                }
        return false;
}

uint32_t af_field_u32(const struct af_field *f) {
        struct af_cursor c = af_cursor_make(f->p, f->n);

        return af_cursor_u32(&c);
}

uint64_t af_field_u64(const struct af_field *f) {
        struct af_cursor c = af_cursor_make(f->p, f->n);

        return af_cursor_u64(&c);
}
