/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_text.h"

#include "base/utf8.h"

/* One escaped byte, or nothing done where it stands for itself. True where it was written. */
static bool put_escaped(struct af_buf *buf, uint8_t c) {
        switch (c) {
        case '"':
        case '\\':
                af_buf_printf(buf, "\\%c", c);
                return true;
        case '\n':
                af_buf_put_str(buf, "\\n");
                return true;
        case '\t':
                af_buf_put_str(buf, "\\t");
                return true;
        default:
                if (c >= 0x20 && c != 0x7f)
                        return false;
                af_buf_printf(buf, "\\u%04x", c);
                return true;
        }
}

void af_json_string_n(struct af_buf *buf, const void *p, size_t n) {
        const uint8_t *s = p;

        af_buf_put_u8(buf, '"');
        for (size_t at = 0, from = 0; at <= n;) {
                size_t length = at < n ? af_utf8_sequence(s + at, n - at) : 0;

                if (length > 1 || (length == 1 && s[at] >= 0x20 && s[at] != 0x7f && s[at] != '"' && s[at] != '\\')) {
                        at += length;
                        continue;
                }
                af_buf_put(buf, s + from, at - from);
                if (at < n && (length == 0 || !put_escaped(buf, s[at])))
                        af_buf_put_str(buf, "\\ufffd");
                from = ++at;
        }
        af_buf_put_u8(buf, '"');
}

void af_json_string(struct af_buf *buf, const char *s) {
        af_json_string_n(buf, s, strlen(s));
}

static void comma(struct af_buf *buf, uint8_t open) {
        if (buf->size > 0 && buf->data[buf->size - 1] != open)
                af_buf_put_u8(buf, ',');
}

void af_json_key(struct af_buf *buf, const char *key) {
        comma(buf, '{');
        af_json_string(buf, key);
        af_buf_put_u8(buf, ':');
}

void af_json_item(struct af_buf *buf) {
        comma(buf, '[');
}

void af_json_add_string(struct af_buf *buf, const char *key, const char *s) {
        af_json_key(buf, key);
        if (s)
                af_json_string(buf, s);
        else
                af_buf_put_str(buf, "null");
}

void af_json_add_u64(struct af_buf *buf, const char *key, uint64_t v) {
        af_json_key(buf, key);
        af_buf_printf(buf, "%llu", (unsigned long long)v);
}

void af_json_add_bool(struct af_buf *buf, const char *key, bool v) {
        af_json_key(buf, key);
        af_buf_put_str(buf, v ? "true" : "false");
}

void af_json_add_digest(struct af_buf *buf, const char *key, const struct af_digest *d) {
        static const struct af_digest zero;
        char hex[AF_DIGEST_HEX_SIZE];

        if (af_digest_equal(d, &zero))
                return;
        af_digest_hex(d, hex);
        af_json_add_string(buf, key, hex);
}
