/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a stream of frames: each header that is read is written back the same, each body ends within its bytes. */
#include <stdlib.h>
#include <string.h>

#include "proto/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_header(const uint8_t *bytes, const struct af_frame_header *h) {
        struct af_buf b = AF_BUF_INIT;

        af_frame_begin(&b, h);
        af_buf_patch_u32(&b, 16, h->body_bytes);
        if (!af_buf_error(&b) && memcmp(b.data, bytes, AF_FRAME_HEADER_BYTES) != 0)
                abort();
        af_buf_deinit(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        while (size >= AF_FRAME_HEADER_BYTES) {
                struct af_frame_header h;
                struct af_field f;
                if (af_frame_header_read(data, &h) != 0)
                        break;
                check_header(data, &h);
                data += AF_FRAME_HEADER_BYTES;
                size -= AF_FRAME_HEADER_BYTES;
                size_t n = h.body_bytes < size ? h.body_bytes : size;
                struct af_cursor c = af_cursor_make(data, n);
                while (af_frame_next(&c, &f))
                        if (f.p + f.n > data + n)
                                abort();
                if (af_frame_find(data, n, AF_TAG_CODE, 4, &f) && f.n != 4)
                        abort();
                data += n;
                size -= n;
        }
        return 0;
}
