/* SPDX-License-Identifier: Apache-2.0 */
/* Questions that only the server's owner may ask, over a connection of their own: one at a time, with progress. */
#pragma once

#include "client/connection.h"
#include "tools/args.h"
#include "tools/out.h"

struct af_admin {
        struct af_socket_paths paths;
        struct af_connection *conn;
        uint64_t next_id;
        uint64_t timeout_ns; /* without a word from the server */
};
/* Connects to the server that --socket, the environment or the usual places name; never starts one. Mistakes go to stderr. 0 or
 * AF_EXIT_FAILED. */
int af_admin_open(const struct af_args *args, struct af_admin *ret_admin) AF_WARN_UNUSED;
void af_admin_close(struct af_admin *a);
/*
 * Sends a frame of this type with these fields (whole, as af_frame_field wrote them) and waits for its answer, drawing bar (may be NULL).
 * *ret_text is malloc'd; *ret_fd, *ret_bytes (both may be NULL) get the file that came along, or -1. 0 or AF_EXIT_FAILED, the reason on
 * stderr.
 */
int af_admin_ask(struct af_admin *a, uint8_t type, const struct af_buf *fields, struct af_bar *bar, char **ret_text, int *ret_fd,
                 uint64_t *ret_bytes) AF_WARN_UNUSED;
struct af_admin_error {
        uint32_t code; /* enum af_error_code; 0: the connection broke, the reason is on stderr */
        bool retryable;
        char *text; /* malloc'd, or NULL */
};
/* The same without a descriptor; what the server refuses is not printed but told. */
int af_admin_try(struct af_admin *a, uint8_t type, const struct af_buf *fields, char **ret_text,
                 struct af_admin_error *ret_error) AF_WARN_UNUSED;
void af_admin_report(const struct af_admin_error *error);
