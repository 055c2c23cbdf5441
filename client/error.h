/* SPDX-License-Identifier: Apache-2.0 */
/* The error object of the public interface. */
#pragma once

#include "base/diag.h"
#include "base/macros.h"
#include "client/autofuse.h"

struct autofuse_error {
        enum autofuse_status status;
        bool retryable;
        char *text; /* malloc'd */
};

/*
 * Writes a new error to *ret_error where ret_error is not NULL, and returns status. Where there is no memory for it, *ret_error is a static
 * object with status E_MEMORY; the status that is returned stays.
 */
enum autofuse_status af_error_set(struct autofuse_error **ret_error, enum autofuse_status status, const char *fmt, ...) AF_PRINTF(3, 4);
/* The same, retryable. */
enum autofuse_status af_error_set_retryable(struct autofuse_error **ret_error, enum autofuse_status status, const char *fmt, ...)
        AF_PRINTF(3, 4);
/* The diagnostics' lines as text of an E_INVALID error. */
enum autofuse_status af_error_set_diags(struct autofuse_error **ret_error, const struct af_diags *diags);
enum autofuse_status af_error_set_memory(struct autofuse_error **ret_error);
/* Copies from into *ret_error; returns its status. from is not NULL. */
enum autofuse_status af_error_copy(struct autofuse_error **ret_error, const struct autofuse_error *from);
