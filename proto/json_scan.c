/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/json_scan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/utf8.h"

#define MAX_LABEL    64u
#define FIRST_VALUES 64u

struct slice {
        uint32_t at, n; /* of af_json_text */
};

/* An object or array that is open. */
struct level {
        bool is_object;
        uint32_t value;                      /* its own number */
        uint32_t index;                      /* array: of the current element */
        uint32_t key_at, key_bytes;          /* object: the current key, raw, in the text */
        uint32_t label_at, label_bytes;      /* object: its "name", raw; 0 bytes: none seen */
        uint32_t n_keys;                     /* object: keys so far */
        struct slice keys[AF_JSON_MAX_KEYS]; /* their decoded bytes */
};

struct scan {
        const char *text;
        size_t n, at;
        struct af_json *json;
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

/* Bytes that stand for themselves in a string, from here on. */
static bool scan_plain(struct scan *s) {
        const uint8_t *text = (const uint8_t *)s->text;

        while (s->at < s->n) {
                uint8_t c = text[s->at];
                if (c == '"' || c == '\\' || c < 0x20)
                        return true;
                size_t len = c < 0x80 ? 1 : af_utf8_sequence(text + s->at, s->n - s->at);
                if (len == 0)
                        return mistake(s, s->at, NULL, "string is not UTF-8");
                s->at += len;
        }
        return true;
}

/* From the first escape on: the decoded bytes go beside the text. start: of the bytes before it. */
static bool scan_escaped(struct scan *s, size_t start, struct slice *ret) {
        struct af_buf *decoded = &s->json->decoded;
        size_t from = decoded->size;

        af_buf_put(decoded, s->text + start, s->at - start);
        while (peek(s) == '\\') {
                uint8_t bytes[4];
                uint32_t code = 0;
                if (!scan_escape(s, &code))
                        return false;
                af_buf_put(decoded, bytes, af_utf8_encode(code, bytes));
                size_t plain = s->at;
                if (!scan_plain(s))
                        return false;
                af_buf_put(decoded, s->text + plain, s->at - plain);
        }
        *ret = (struct slice){(uint32_t)(s->n + from), (uint32_t)(decoded->size - from)};
        af_buf_put_u8(decoded, 0);
        return true;
}

static bool scan_string(struct scan *s, struct slice *ret) {
        size_t quote = s->at++;

        if (!scan_plain(s))
                return false;
        *ret = (struct slice){(uint32_t)quote + 1, (uint32_t)(s->at - quote - 1)};
        if (peek(s) == '\\' && !scan_escaped(s, quote + 1, ret))
                return false;
        if (s->at >= s->n)
                return mistake(s, quote, NULL, "string without an end");
        if (s->text[s->at] != '"')
                return unexpected(s, "a character of a string");
        s->at++;
        return true;
}

static bool scan_word(struct scan *s, const char *word) {
        size_t n = strlen(word);

        if (s->n - s->at < n || memcmp(s->text + s->at, word, n) != 0)
                return unexpected(s, "a value");
        s->at += n;
        return true;
}

static bool is_duplicate(const struct scan *s, const struct level *l, struct slice key) {
        for (uint32_t i = 0; i < l->n_keys; i++)
                if (l->keys[i].n == key.n && memcmp(af_json_text(s->json, l->keys[i].at), af_json_text(s->json, key.at), key.n) == 0)
                        return true;
        return false;
}

static bool scan_key(struct scan *s, struct slice *ret_key) {
        struct level *l = &s->levels[s->depth - 1];
        size_t start = s->at;

        if (peek(s) != '"')
                return unexpected(s, "a key in quotes");
        l->key_bytes = 0;
        if (!scan_string(s, ret_key))
                return false;
        if (ret_key->n > AF_JSON_MAX_KEY_BYTES)
                return mistake(s, start, NULL, "key of more than 256 bytes");
        l->key_at = (uint32_t)start + 1;
        l->key_bytes = (uint32_t)(s->at - start - 2);
        if (l->n_keys == AF_JSON_MAX_KEYS)
                return mistake(s, start, NULL, "object with more than 64 keys");
        if (is_duplicate(s, l, *ret_key))
                mistake(s, start, NULL, "duplicate key");
        l->keys[l->n_keys++] = *ret_key;
        skip_space(s);
        if (peek(s) != ':')
                return unexpected(s, "':'");
        s->at++;
        return true;
}

static struct af_json_value *value_at(struct scan *s, uint32_t i) {
        return (struct af_json_value *)(void *)s->json->values.data + i;
}

/* A string value; the one under "name" labels its object in messages. */
static bool scan_string_value(struct scan *s, struct slice *ret) {
        struct level *l = s->depth > 0 ? &s->levels[s->depth - 1] : NULL;
        size_t start = s->at;

        if (!scan_string(s, ret))
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
        l->value = s->n_values - 1;
        l->index = l->key_bytes = l->label_bytes = l->n_keys = 0;
        s->at++;
        return true;
}

static void close_level(struct scan *s) {
        struct level *l = &s->levels[--s->depth];
        struct af_json_value *v = value_at(s, l->value);

        s->at++;
        v->span = s->n_values - l->value;
}

/* Room for the next value, counted already; NULL: no memory. */
static struct af_json_value *next_value(struct scan *s) {
        struct af_buf *values = &s->json->values;

        if (values->capacity - values->size < sizeof(struct af_json_value) &&
            !af_buf_reserve(values, AF_MAX(values->size, FIRST_VALUES * sizeof(struct af_json_value))))
                return NULL;
        values->size += sizeof(struct af_json_value);
        return value_at(s, s->n_values - 1);
}

/* What begins with this byte. */
static enum af_json_kind kind_of(char c) {
        switch (c) {
        case '{':
                return AF_JSON_OBJECT;
        case '[':
                return AF_JSON_LIST;
        case '"':
                return AF_JSON_STRING;
        case 't':
                return AF_JSON_TRUE;
        case 'f':
                return AF_JSON_FALSE;
        case 'n':
                return AF_JSON_NULL;
        default:
                return AF_JSON_NUMBER;
        }
}

/* One value; a container is only opened. key: of a member, else empty. */
static bool scan_value(struct scan *s, struct slice key) {
        struct slice text = {0};
        bool ok = false;

        skip_space(s);
        if (++s->n_values > AF_JSON_MAX_VALUES)
                return mistake(s, s->at, "large constants go into bits", "more than 4000000 values");
        struct af_json_value *v = next_value(s);
        if (!v)
                return false;
        char c = peek(s);
        size_t start = s->at;
        enum af_json_kind kind = kind_of(c);
        switch (kind) {
        case AF_JSON_OBJECT:
        case AF_JSON_LIST:
                ok = open_level(s, kind == AF_JSON_OBJECT);
                break;
        case AF_JSON_STRING:
                ok = scan_string_value(s, &text);
                break;
        case AF_JSON_TRUE:
                ok = scan_word(s, "true");
                break;
        case AF_JSON_FALSE:
                ok = scan_word(s, "false");
                break;
        case AF_JSON_NULL:
                ok = scan_word(s, "null");
                break;
        case AF_JSON_NUMBER:
                ok = c == '-' || (c >= '0' && c <= '9') ? scan_number(s) : unexpected(s, "a value");
                text = (struct slice){(uint32_t)start, (uint32_t)(s->at - start)};
                break;
        }
        *v = (struct af_json_value){
                .at = text.at, .n = text.n, .span = 1, .key_at = key.at, .n_key = (uint16_t)key.n, .kind = (uint8_t)kind};
        return ok;
}

/* Next element of the innermost container, or its end. first: nothing of it was read yet. */
static bool scan_element(struct scan *s, bool first) {
        struct level *l = &s->levels[s->depth - 1];
        char end = l->is_object ? '}' : ']';
        struct slice key = {0};

        skip_space(s);
        if (peek(s) == end) {
                close_level(s);
                return true;
        }
        if (!first) {
                if (peek(s) != ',')
                        return unexpected(s, l->is_object ? "',' or '}'" : "',' or ']'");
                s->at++;
                l->index++;
                skip_space(s);
        }
        value_at(s, l->value)->n++;
        if (l->is_object && !scan_key(s, &key))
                return false;
        return scan_value(s, key);
}

static void scan_text(struct scan *s) {
        bool first = true;

        skip_space(s);
        if (s->at == s->n) {
                mistake(s, 0, NULL, "the text is empty");
                return;
        }
        if (!scan_value(s, (struct slice){0}))
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

void af_json_deinit(struct af_json *json) {
        af_buf_deinit(&json->values);
        af_buf_deinit(&json->decoded);
}

int af_json_scan(const char *text, size_t n, struct af_json *ret_json, struct af_diags *diags) {
        AF_CLEANUP(af_freep) struct scan *s = malloc(sizeof(*s));

        *ret_json = (struct af_json){.text = text, .n_text = n};
        if (!s)
                return -ENOMEM;
        *s = (struct scan){.text = text, .n = n, .json = ret_json, .diags = diags};
        if (n > AF_JSON_MAX_TEXT)
                mistake(s, 0, NULL, "the text is too large");
        else
                scan_text(s);
        if (af_buf_error(&ret_json->values) || af_buf_error(&ret_json->decoded))
                return -ENOMEM;
        return s->n_mistakes > 0 ? AF_JSON_E_INVALID : 0;
}
