/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that the core sends. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/core.h"

#define MAX_ERROR_TEXT (256u << 10)

static size_t begin(struct af_buf *buf, uint8_t type, uint64_t id) {
        return af_frame_begin(buf, &(struct af_frame_header){.type = type, .request_id = id});
}

void af_reply_error(struct af_conn *conn, uint64_t id, enum af_error_code code, bool retryable, const char *text) {
        struct af_buf buf = AF_BUF_INIT;
        size_t at = begin(&buf, AF_FRAME_ERROR, id);

        af_frame_field_u32(&buf, AF_TAG_CODE, code);
        af_frame_field_u8(&buf, AF_TAG_RETRYABLE, retryable);
        if (text)
                af_frame_field(&buf, AF_TAG_TEXT, text, strnlen(text, MAX_ERROR_TEXT));
        af_frame_end(&buf, at);
        af_conn_send(conn, &buf);
}

void af_reply_fatal(struct af_conn *conn, enum af_error_code code, const char *text) {
        struct af_buf buf = AF_BUF_INIT;
        size_t at;

        if (conn->state == AF_CONN_CLOSED || conn->state == AF_CONN_FLUSH)
                return;
        conn->state = AF_CONN_FLUSH;
        af_list_each (req, &conn->requests, struct af_request, in_conn)
                af_request_drop(req);
        at = begin(&buf, AF_FRAME_ERROR, 0);
        af_frame_field_u32(&buf, AF_TAG_CODE, code);
        af_frame_field_u8(&buf, AF_TAG_RETRYABLE, code == AF_ERROR_BUSY || code == AF_ERROR_DRAINING);
        af_frame_field_str(&buf, AF_TAG_TEXT, text);
        af_frame_end(&buf, at);
        af_conn_send(conn, &buf);
}

static void put_key(struct af_buf *buf, const struct af_digest *fragment, const struct af_digest *environment) {
        uint8_t key[64];

        memcpy(key, fragment->bytes, 32);
        memcpy(key + 32, environment->bytes, 32);
        af_frame_field(buf, AF_TAG_KEY, key, sizeof(key));
}

/* Opens the last field, whose bytes follow from the bundle itself; the frame's length counts them. */
static void put_open_field(struct af_buf *buf, size_t frame, size_t n) {
        size_t padded = AF_ALIGN_UP(n, 4);

        af_frame_end(buf, frame);
        af_buf_put_u16(buf, AF_TAG_BUNDLE);
        af_buf_put_u16(buf, 0);
        af_buf_put_u32(buf, (uint32_t)n);
        if (!af_buf_error(buf))
                af_buf_patch_u32(buf, frame + 16, (uint32_t)(buf->size - frame - AF_FRAME_HEADER_BYTES + padded));
}

void af_reply_result(struct af_request *req, const struct af_digest *fragment, struct af_ready_bundle *bundle, enum af_hit hit,
                     uint64_t compile_us) {
        struct af_conn *conn = req->conn;
        bool pass_fd = conn->takes_fds && bundle->size > AF_INLINE_BUNDLE_BYTES;
        struct af_buf buf = AF_BUF_INIT;
        size_t at;

        if (!pass_fd && bundle->size > AF_FRAME_MAX_BODY - (1u << 20)) {
                af_reply_error(conn, req->id, AF_ERROR_TOO_LARGE, false, "the bundle is too large for a client that takes no descriptors");
                return;
        }
        at = af_frame_begin(&buf, &(struct af_frame_header){.type = AF_FRAME_RESULT, .request_id = req->id, .n_fds = pass_fd});
        put_key(&buf, fragment, &bundle->environment);
        af_frame_field_u8(&buf, AF_TAG_HIT, hit);
        af_frame_field_u64(&buf, AF_TAG_COMPILE_US, compile_us);
        if (req->slot_map)
                af_frame_field(&buf, AF_TAG_SLOT_MAP, req->slot_map->data, req->slot_map->size);
        if (pass_fd) {
                af_frame_field_u64(&buf, AF_TAG_BUNDLE_BYTES, bundle->size);
                af_frame_end(&buf, at);
        } else {
                put_open_field(&buf, at, bundle->size);
        }
        af_conn_send_bundle(conn, &buf, af_ready_bundle_ref(bundle), pass_fd);
}

void af_reply_put_progress(struct af_buf *buf, const struct af_request *req, const char *text, uint32_t waiters, uint64_t now_ns) {
        size_t at = begin(buf, AF_FRAME_PROGRESS, req->id);

        af_frame_field_str(buf, AF_TAG_TEXT, text);
        af_frame_field_u64(buf, AF_TAG_ELAPSED_MS, (now_ns - req->begin_ns) / 1000000);
        af_frame_field_u32(buf, AF_TAG_WAITERS, waiters);
        af_frame_end(buf, at);
}

void af_reply_text(struct af_conn *conn, uint8_t type, uint64_t id, const char *text, size_t n) {
        struct af_buf buf = AF_BUF_INIT;
        size_t at = begin(&buf, type, id);

        af_frame_field(&buf, AF_TAG_TEXT, text, n);
        af_frame_end(&buf, at);
        af_conn_send(conn, &buf);
}

void af_reply_drain(struct af_conn *conn) {
        struct af_buf buf = AF_BUF_INIT;

        af_frame_end(&buf, begin(&buf, AF_FRAME_DRAIN, 0));
        af_conn_send(conn, &buf);
}
