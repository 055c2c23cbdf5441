/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/json_scan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/io.h"
#include "base/utf8.h"

#define MAX_KEY_BYTES 256u
#define MAX_LABEL     64u

/* An object or array that is open. */
struct level {
        bool is_object;
        uint32_t index;                         /* array: of the current element */
        uint32_t key_at, key_bytes;             /* object: the current key, raw, in the text */
        uint32_t label_at, label_bytes;         /* object: its "name", raw; 0 bytes: none seen */
        uint32_t n_keys;                        /* object: keys so far */
        struct af_check keys[AF_JSON_MAX_KEYS]; /* of their decoded bytes */
};

struct scan {
        const char *text;
        size_t n, at;
        struct af_buf *numbers;
        struct af_diags *diags;
        uint32_t n_values;
        uint32_t n_mistakes;                /* that did not end the scan */
        size_t line_from, line_start, line; /* how far lines are counted */
        uint32_t depth;
        struct level levels[AF_JSON_MAX_DEPTH];
};

static void put_path(const struct scan *s, struct af_buf *path) {
        for (uint32_t i = 0; i < s->depth; i++) {
                const struct level *l = &s->levels[i];
                if (!l->is_object) {
                        af_buf_printf(path, "[%u]", l->index);
                        continue;
                }
                if (l->label_bytes > 0 && i > 0)
                        af_buf_printf(path, " \"%.*s\"", (int)AF_MIN(l->label_bytes, MAX_LABEL), s->text + l->label_at);
                if (l->key_bytes > 0)
                        af_buf_printf(path, "%s%.*s", path->size > 0 ? "." : "", (int)AF_MIN(l->key_bytes, MAX_LABEL), s->text + l->key_at);
        }
}

/* Line of byte `at` and where it starts. Counts on from the last place asked for: mistakes come in order, nearly. */
static void find_line(struct scan *s, size_t at, size_t *ret_line, size_t *ret_start) {
        if (at < s->line_from || s->line == 0) {
                s->line_from = s->line_start = 0;
                s->line = 1;
        }
        for (; s->line_from < at; s->line_from++)
                if (s->text[s->line_from] == '\n') {
                        s->line++;
                        s->line_start = s->line_from + 1;
                }
        *ret_line = s->line;
        *ret_start = s->line_start;
}

/* Reports at byte `at`; returns false, for callers that end the scan with it. */
static bool mistake(struct scan *s, size_t at, const char *hint, const char *what) {
        AF_CLEANUP(af_buf_deinit) struct af_buf where = AF_BUF_INIT;
        size_t line, start;

        s->n_mistakes++;
        if (!s->diags)
                return false;
        if (s->diags->n_items < AF_DIAG_MAX) {
                find_line(s, at, &line, &start);
                put_path(s, &where);
                af_buf_printf(&where, "%sline %zu, column %zu", where.size > 0 ? ", " : "", line, at - start + 1);
        }
        af_diag_add(s->diags, AF_SEVERITY_ERROR, where.data && !where.error ? (const char *)where.data : NULL, hint, "%s", what);
        return false;
}

static void skip_space(struct scan *s) {
        while (s->at < s->n && (s->text[s->at] == ' ' || s->text[s->at] == '\t' || s->text[s->at] == '\n' || s->text[s->at] == '\r'))
                s->at++;
}

/* The next byte, 0 at the end (no token starts with a zero byte). */
static char peek(const struct scan *s) {
        return s->at < s->n ? s->text[s->at] : 0;
}

static bool unexpected(struct scan *s, const char *expected) {
        char what[96];
        unsigned char c = (unsigned char)peek(s);

        if (s->at >= s->n)
                snprintf(what, sizeof(what), "the text ends where %s is expected", expected);
        else if (c > 0x20 && c < 0x7f)
                snprintf(what, sizeof(what), "'%c' where %s is expected", c, expected);
        else
                snprintf(what, sizeof(what), "byte 0x%02x where %s is expected", c, expected);
        return mistake(s, s->at, NULL, what);
}

static bool scan_digits(struct scan *s) {
        size_t start = s->at;

        while (peek(s) >= '0' && peek(s) <= '9')
                s->at++;
        return s->at > start || unexpected(s, "a digit");
}

/* Whether a run of digits is above 2^53. */
static bool beyond_2_53(const char *digits, size_t n) {
        static const char limit[] = "9007199254740992";

        return n > 16 || (n == 16 && memcmp(digits, limit, 16) > 0);
}

static bool scan_number(struct scan *s) {
        size_t start = s->at;
        bool is_integer = true;

        af_buf_put_u32(s->numbers, (uint32_t)start);
        if (peek(s) == '-')
                s->at++;
        size_t digits = s->at;
        if (peek(s) == '0')
                s->at++;
        else if (!scan_digits(s))
                return false;
        size_t n_digits = s->at - digits;
        if (peek(s) == '.') {
                is_integer = false;
                s->at++;
                if (!scan_digits(s))
                        return false;
        }
        if (peek(s) == 'e' || peek(s) == 'E') {
                is_integer = false;
                s->at++;
                if (peek(s) == '+' || peek(s) == '-')
                        s->at++;
                if (!scan_digits(s))
                        return false;
        }
        if (is_integer && beyond_2_53(s->text + digits, n_digits))
                mistake(s, start, "most readers of JSON keep doubles and lose its last bits: write it as a string", "integer beyond 2^53");
        else if (s->at - start > AF_JSON_MAX_NUMBER_BYTES)
                mistake(s, start, "write it as a string", "number of more than 63 characters");
        return true;
}

static int hex_digit(char c) {
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Four hex digits after \u. */
static bool scan_hex4(struct scan *s, uint32_t *ret_code) {
        uint32_t code = 0;

        for (int i = 0; i < 4; i++, s->at++) {
                int digit = hex_digit(peek(s));
                if (digit < 0)
                        return unexpected(s, "a hex digit");
                code = code << 4 | (uint32_t)digit;
        }
        *ret_code = code;
        return true;
}

/* What follows \u: one code point, of a surrogate pair too. */
static bool scan_code_point(struct scan *s, uint32_t *ret_code) {
        size_t start = s->at - 2;
        uint32_t code = 0, low = 0;

        if (!scan_hex4(s, &code))
                return false;
        if (code >= 0xd800 && code < 0xdc00) {
                if (s->n - s->at < 2 || s->text[s->at] != '\\' || s->text[s->at + 1] != 'u')
                        return mistake(s, start, NULL, "half of a surrogate pair");
                s->at += 2;
                if (!scan_hex4(s, &low))
                        return false;
                if (low < 0xdc00 || low >= 0xe000)
                        return mistake(s, start, NULL, "half of a surrogate pair");
                code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        } else if (code >= 0xdc00 && code < 0xe000) {
                return mistake(s, start, NULL, "half of a surrogate pair");
        }
        if (code == 0)
                mistake(s, start, NULL, "\\u0000 in a string");
        *ret_code = code;
        return true;
}

static bool scan_escape(struct scan *s, uint32_t *ret_code) {
        static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
        const char *found;

        s->at++;
        if (peek(s) == 'u') {
                s->at++;
                return scan_code_point(s, ret_code);
        }
        found = peek(s) ? strchr(from, peek(s)) : NULL;
        if (!found)
                return unexpected(s, "an escape");
        *ret_code = (uint32_t)to[found - from];
        s->at++;
        return true;
}

/* A string; its first `room` decoded bytes go to out (may be NULL), *ret_n counts all. */
static bool scan_string(struct scan *s, uint8_t *out, size_t room, size_t *ret_n) {
        size_t total = 0, start = s->at;

        s->at++;
        for (;;) {
                uint8_t decoded[4];
                const uint8_t *bytes = decoded;
                size_t len;
                uint32_t code = 0;

                if (s->at >= s->n)
                        return mistake(s, start, NULL, "string without an end");
                uint8_t c = (uint8_t)s->text[s->at];
                if (c == '"')
                        break;
                if (c < 0x20)
                        return unexpected(s, "a character of a string");
                if (c == '\\') {
                        if (!scan_escape(s, &code))
                                return false;
                        len = af_utf8_encode(code, decoded);
                } else {
                        bytes = (const uint8_t *)s->text + s->at;
                        len = af_utf8_sequence(bytes, s->n - s->at);
                        if (len == 0)
                                return mistake(s, s->at, NULL, "string is not UTF-8");
                        s->at += len;
                }
                if (out && total + len <= room)
                        memcpy(out + total, bytes, len);
                total += len;
        }
        s->at++;
        if (ret_n)
                *ret_n = total;
        return true;
}

static bool scan_word(struct scan *s, const char *word) {
        size_t n = strlen(word);

        if (s->n - s->at < n || memcmp(s->text + s->at, word, n) != 0)
                return unexpected(s, "a value");
        s->at += n;
        return true;
}

static bool scan_key(struct scan *s) {
        struct level *l = &s->levels[s->depth - 1];
        uint8_t key[MAX_KEY_BYTES];
        size_t start = s->at, n;

        if (peek(s) != '"')
                return unexpected(s, "a key in quotes");
        l->key_bytes = 0;
        if (!scan_string(s, key, sizeof(key), &n))
                return false;
        if (n > MAX_KEY_BYTES)
                return mistake(s, start, NULL, "key of more than 256 bytes");
        l->key_at = (uint32_t)start + 1;
        l->key_bytes = (uint32_t)(s->at - start - 2);
        if (l->n_keys == AF_JSON_MAX_KEYS)
                return mistake(s, start, NULL, "object with more than 64 keys");
        struct af_check *check = &l->keys[l->n_keys];
        af_check_bytes(key, n, check);
        for (uint32_t i = 0; i < l->n_keys; i++)
                if (memcmp(&l->keys[i], check, sizeof(*check)) == 0) {
                        mistake(s, start, NULL, "duplicate key");
                        break;
                }
        l->n_keys++;
        skip_space(s);
        if (peek(s) != ':')
                return unexpected(s, "':'");
        s->at++;
        return true;
}

/* A string value; the one under "name" labels its object in messages. */
static bool scan_string_value(struct scan *s) {
        struct level *l = s->depth > 0 ? &s->levels[s->depth - 1] : NULL;
        size_t start = s->at;

        if (!scan_string(s, NULL, 0, NULL))
                return false;
        if (l && l->is_object && l->key_bytes == 4 && memcmp(s->text + l->key_at, "name", 4) == 0) {
                l->label_at = (uint32_t)start + 1;
                l->label_bytes = (uint32_t)(s->at - start - 2);
        }
        return true;
}

static bool open_level(struct scan *s, bool is_object) {
        if (s->depth == AF_JSON_MAX_DEPTH)
                return mistake(s, s->at, NULL, "nested deeper than 32 levels");
        struct level *l = &s->levels[s->depth++];
        l->is_object = is_object;
        l->index = l->key_bytes = l->label_bytes = l->n_keys = 0;
        s->at++;
        return true;
}

/* One value; a container is only opened. */
static bool scan_value(struct scan *s) {
        char c;

        skip_space(s);
        if (++s->n_values > AF_JSON_MAX_VALUES)
                return mistake(s, s->at, "large constants go into bits", "more than 4000000 values");
        c = peek(s);
        switch (c) {
        case '{':
        case '[':
                return open_level(s, c == '{');
        case '"':
                return scan_string_value(s);
        case 't':
                return scan_word(s, "true");
        case 'f':
                return scan_word(s, "false");
        case 'n':
                return scan_word(s, "null");
        default:
                return c == '-' || (c >= '0' && c <= '9') ? scan_number(s) : unexpected(s, "a value");
        }
}

/* Next element of the innermost container, or its end. first: nothing of it was read yet. */
static bool scan_element(struct scan *s, bool first) {
        struct level *l = &s->levels[s->depth - 1];
        char end = l->is_object ? '}' : ']';

        skip_space(s);
        if (peek(s) == end) {
                s->at++;
                s->depth--;
                return true;
        }
        if (!first) {
                if (peek(s) != ',')
                        return unexpected(s, l->is_object ? "',' or '}'" : "',' or ']'");
                s->at++;
                l->index++;
                skip_space(s);
        }
        if (l->is_object && !scan_key(s))
                return false;
        return scan_value(s);
}

static void scan_text(struct scan *s) {
        bool first = true;

        skip_space(s);
        if (s->at == s->n) {
                mistake(s, 0, NULL, "the text is empty");
                return;
        }
        if (!scan_value(s))
                return;
        while (s->depth > 0) {
                uint32_t depth = s->depth;
                if (!scan_element(s, first))
                        return;
                first = s->depth > depth;
        }
        skip_space(s);
        if (s->at != s->n)
                mistake(s, s->at, NULL, "bytes after the end of the text");
}

int af_json_scan(const char *text, size_t n, struct af_buf *ret_numbers, struct af_diags *diags) {
        AF_CLEANUP(af_freep) struct scan *s = calloc(1, sizeof(*s));

        if (!s)
                return -ENOMEM;
        *s = (struct scan){.text = text, .n = n, .numbers = ret_numbers, .diags = diags};
        if (n > UINT32_MAX - 1)
                mistake(s, 0, NULL, "the text is too large");
        else
                scan_text(s);
        if (af_buf_error(ret_numbers))
                return -ENOMEM;
        return s->n_mistakes > 0 ? AF_JSON_E_INVALID : 0;
}
