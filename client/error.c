/* SPDX-License-Identifier: Apache-2.0 */
#include "client/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

static const char memory_text[] = "out of memory";
static const struct autofuse_error memory_error = {.status = AUTOFUSE_E_MEMORY, .retryable = true, .text = (char *)memory_text};

static struct autofuse_error *error_new(enum autofuse_status status, bool retryable, char *text) {
        struct autofuse_error *e = text ? malloc(sizeof(*e)) : NULL;
        if (!e) {
                free(text);
                return (struct autofuse_error *)&memory_error;
        }
        *e = (struct autofuse_error){.status = status, .retryable = retryable, .text = text};
        return e;
}

static char *format(const char *fmt, va_list ap) {
        char *text = NULL;
        if (vasprintf(&text, fmt, ap) < 0)
                return NULL;
        size_t n = strlen(text);
        while (n > 0 && text[n - 1] == '\n')
                text[--n] = 0;
        return text;
}

enum autofuse_status af_error_set(struct autofuse_error **ret_error, enum autofuse_status status, const char *fmt, ...) {
        if (!ret_error)
                return status;
        va_list ap;
        va_start(ap, fmt);
        *ret_error = error_new(status, false, format(fmt, ap));
        va_end(ap);
        return status;
}

enum autofuse_status af_error_set_retryable(struct autofuse_error **ret_error, enum autofuse_status status, const char *fmt, ...) {
        if (!ret_error)
                return status;
        va_list ap;
        va_start(ap, fmt);
        *ret_error = error_new(status, true, format(fmt, ap));
        va_end(ap);
        return status;
}

enum autofuse_status af_error_set_diags(struct autofuse_error **ret_error, const struct af_diags *diags) {
        if (!ret_error)
                return AUTOFUSE_E_INVALID;
        struct af_buf buf = AF_BUF_INIT;
        af_diags_format(diags, &buf);
        size_t n;
        char *text = (char *)af_buf_take(&buf, &n);
        af_buf_deinit(&buf);
        if (text && n == 0) {
                free(text);
                text = strdup("the fragment is invalid");
        }
        n = text ? strlen(text) : 0;
        while (n > 0 && text[n - 1] == '\n')
                text[--n] = 0;
        *ret_error = error_new(AUTOFUSE_E_INVALID, false, text);
        return AUTOFUSE_E_INVALID;
}

enum autofuse_status af_error_set_memory(struct autofuse_error **ret_error) {
        if (ret_error)
                *ret_error = (struct autofuse_error *)&memory_error;
        return AUTOFUSE_E_MEMORY;
}

enum autofuse_status af_error_copy(struct autofuse_error **ret_error, const struct autofuse_error *from) {
        if (ret_error)
                *ret_error = error_new(from->status, from->retryable, strdup(from->text));
        return from->status;
}

enum autofuse_status autofuse_error_status(const struct autofuse_error *error) {
        return error ? error->status : AUTOFUSE_OK;
}

const char *autofuse_error_text(const struct autofuse_error *error) {
        return error ? error->text : "";
}

bool autofuse_error_is_retryable(const struct autofuse_error *error) {
        return error && error->retryable;
}

void autofuse_error_free(struct autofuse_error *error) {
        if (!error || error == &memory_error)
                return;
        free(error->text);
        free(error);
}

const char *autofuse_status_name(enum autofuse_status status) {
        switch (status) {
        case AUTOFUSE_OK:
                return "ok";
        case AUTOFUSE_E_ARGUMENT:
                return "argument";
        case AUTOFUSE_E_MEMORY:
                return "memory";
        case AUTOFUSE_E_INVALID:
                return "invalid";
        case AUTOFUSE_E_UNAVAILABLE:
                return "unavailable";
        case AUTOFUSE_E_COMPILE:
                return "compile";
        case AUTOFUSE_E_TIMEOUT:
                return "timeout";
        case AUTOFUSE_E_DEADLINE:
                return "deadline";
        case AUTOFUSE_E_CANCELED:
                return "canceled";
        case AUTOFUSE_E_NOT_FOUND:
                return "not_found";
        case AUTOFUSE_E_TARGET:
                return "target";
        case AUTOFUSE_E_KERNEL:
                return "kernel";
        case AUTOFUSE_E_SHAPE:
                return "shape";
        case AUTOFUSE_E_CALLBACK:
                return "callback";
        }
        return "unknown";
}

const char *autofuse_version(void) {
        return "0.1.0";
}
