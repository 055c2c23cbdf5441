/* SPDX-License-Identifier: Apache-2.0 */
#include "base/diag.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"

#define TEXT_MAX_BYTES 1024u

void af_diags_deinit(struct af_diags *diags) {
        for (uint32_t i = 0; i < diags->n_items; i++) {
                free(diags->items[i].where);
                free(diags->items[i].what);
                free(diags->items[i].hint);
        }
        memset(diags, 0, sizeof(*diags));
}

/* As af_utf8_sequence, but 0 for C1 control characters too: those steer terminals as the C0 ones do. */
static size_t printable_sequence(const uint8_t *s, size_t n) {
        return s[0] == 0xc2 && n > 1 && s[1] < 0xa0 ? 0 : af_utf8_sequence(s, n);
}

/* A heap copy in which nothing can break a line or steer a terminal, cut at TEXT_MAX_BYTES with "..."; NULL without memory. */
static char *clean_copy(const char *text) {
        const uint8_t *s = (const uint8_t *)text;
        size_t n = strlen(text), at = 0;
        char *out = malloc(TEXT_MAX_BYTES + 8);

        if (!out)
                return NULL;
        for (size_t i = 0, len; i < n; i += len) {
                char piece[8];

                len = printable_sequence(s + i, n - i);
                if (len > 1 || (len == 1 && s[i] >= 0x20 && s[i] < 0x7f))
                        snprintf(piece, sizeof(piece), "%.*s", (int)len, text + i);
                else if (s[i] == '\n' || s[i] == '\t' || s[i] == '\r')
                        snprintf(piece, sizeof(piece), "\\%c", s[i] == '\n' ? 'n' : s[i] == '\t' ? 't' : 'r');
                else
                        snprintf(piece, sizeof(piece), "\\x%02x", s[i]);
                len = AF_MAX(len, (size_t)1);
                size_t n_piece = strlen(piece);
                if (at + n_piece > TEXT_MAX_BYTES - 3) {
                        memcpy(out + at, "...", 3);
                        at += 3;
                        break;
                }
                memcpy(out + at, piece, n_piece);
                at += n_piece;
        }
        out[at] = 0;
        return out;
}

void af_diag_add(struct af_diags *diags, enum af_severity severity, const char *where, const char *hint, const char *fmt, ...) {
        char what[TEXT_MAX_BYTES + 64];
        va_list args;

        if (!diags)
                return;
        if (severity == AF_SEVERITY_ERROR)
                diags->n_errors++;
        if (diags->n_items >= AF_DIAG_MAX) {
                diags->n_dropped++;
                return;
        }
        va_start(args, fmt);
        vsnprintf(what, sizeof(what), fmt, args);
        va_end(args);
        struct af_diag d = {
                .severity = severity,
                .where = clean_copy(where ? where : ""),
                .what = clean_copy(what),
                .hint = hint ? clean_copy(hint) : NULL,
        };
        if (!d.where || !d.what || (hint && !d.hint)) {
                free(d.where);
                free(d.what);
                free(d.hint);
                diags->n_dropped++;
                return;
        }
        diags->items[diags->n_items++] = d;
}

static const char *severity_name(enum af_severity severity) {
        switch (severity) {
        case AF_SEVERITY_NOTE:
                return "note";
        case AF_SEVERITY_WARNING:
                return "warning";
        case AF_SEVERITY_ERROR:
                return "error";
        }
        return "error";
}

void af_diags_format(const struct af_diags *diags, struct af_buf *buf) {
        for (uint32_t i = 0; i < diags->n_items; i++) {
                const struct af_diag *d = &diags->items[i];

                af_buf_printf(buf, "%s: ", severity_name(d->severity));
                if (d->where[0])
                        af_buf_printf(buf, "%s: ", d->where);
                af_buf_put_str(buf, d->what);
                if (d->hint)
                        af_buf_printf(buf, " (%s)", d->hint);
                af_buf_put_u8(buf, '\n');
        }
        if (diags->n_dropped > 0)
                af_buf_printf(buf, "note: %u more not shown\n", diags->n_dropped);
}
