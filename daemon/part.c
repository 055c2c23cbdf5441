/* SPDX-License-Identifier: Apache-2.0 */
/* What is ready of a bundle before all of it is: told to those who asked for parts. Part 0 is the skeleton, part i its kernel i-1. */
#include <string.h>

#include "daemon/core.h"

#define MAX_BEHIND (256u << 10) /* unsent bytes from which on a peer goes without: RESULT has everything */

static void send_part(struct af_request *req, const struct af_flight *f, uint32_t index, const struct af_blob *bytes) {
        struct af_buf buf = AF_BUF_INIT;
        uint8_t key[64];
        size_t at;

        if (!req->wants_parts || req->conn->out_bytes > MAX_BEHIND || bytes->size > AF_FRAME_MAX_BODY / 2)
                return;
        memcpy(key, f->link.key.bytes, 32);
        memcpy(key + 32, f->environment.bytes, 32);
        at = af_frame_begin(&buf, &(struct af_frame_header){.type = AF_FRAME_PART, .request_id = req->id});
        af_frame_field(&buf, AF_TAG_KEY, key, sizeof(key));
        af_frame_field_u32(&buf, AF_TAG_PART, index);
        af_frame_field_u32(&buf, AF_TAG_N_PARTS, f->n_kernels + 1);
        af_frame_field(&buf, AF_TAG_BUNDLE, bytes->data, bytes->size);
        af_frame_end(&buf, at);
        af_conn_send(req->conn, &buf);
}

void af_parts_ready(struct af_request *req) {
        const struct af_flight *f = req->flight;

        if (!req->wants_parts || f->state != AF_FLIGHT_KERNELS || !f->skeleton)
                return;
        send_part(req, f, 0, f->skeleton);
        for (uint32_t i = 0; i < f->n_kernels; i++) {
                const struct af_flight_kernel *fk = &f->kernels[i];
                const struct af_blob *binary = fk->binary ? fk->binary : fk->kernel ? fk->kernel->binary : NULL;

                if (binary)
                        send_part(req, f, i + 1, binary);
        }
}

void af_parts_kernel(const struct af_build *k) {
        af_list_each (fk, (struct af_list *)&k->flights, struct af_flight_kernel, in_kernel)
                af_list_each (req, &fk->flight->waiters, struct af_request, in_flight)
                        send_part(req, fk->flight, (uint32_t)(fk - fk->flight->kernels) + 1, k->binary);
}
