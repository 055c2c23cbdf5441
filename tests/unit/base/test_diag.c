/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "base/buf.h"
#include "base/diag.h"
#include "base/utf8.h"

static const char *format(struct af_diags *d, struct af_buf *b) {
        af_buf_clear(b);
        af_diags_format(d, b);
        af_buf_put_u8(b, 0);
        return (const char *)b->data;
}

Test(diag, formats_one_line_each) {
        struct af_diags d = {0};
        struct af_buf b = AF_BUF_INIT;

        af_diag_error(&d, "nodes[3] \"n3\"", "no op %s", "foo");
        af_diag_add(&d, AF_SEVERITY_WARNING, NULL, "try that", "odd");
        af_diag_add(&d, AF_SEVERITY_NOTE, "x.yaml:3", NULL, "fine");
        cr_assert_str_eq(format(&d, &b), "error: nodes[3] \"n3\": no op foo\nwarning: odd (try that)\nnote: x.yaml:3: fine\n");
        cr_assert(af_diags_failed(&d));
        cr_assert_eq(d.n_errors, 1);
        af_diags_deinit(&d);
        cr_assert_eq(d.n_items, 0);
        cr_assert(!af_diags_failed(&d));
        cr_assert(!af_diags_failed(NULL));
        af_diag_error(NULL, "x", "nobody listens");
        af_buf_deinit(&b);
}

Test(diag, lets_no_text_break_a_line_or_steer_a_terminal) {
        struct af_diags d = {0};
        struct af_buf b = AF_BUF_INIT;

        af_diag_error(&d, "a\nb\x1b[31m", "%s", "tab\there \xff \xc2\x85 \xc3\xa9 \xed\xa0\x80 \x7f");
        cr_assert_str_eq(format(&d, &b), "error: a\\nb\\x1b[31m: tab\\there \\xff \\xc2\\x85 \xc3\xa9 \\xed\\xa0\\x80 \\x7f\n");
        af_diags_deinit(&d);
        af_buf_deinit(&b);
}

Test(diag, cuts_long_texts_and_counts_what_it_drops) {
        struct af_diags d = {0};
        struct af_buf b = AF_BUF_INIT;
        char text[5000];

        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = 0;
        for (int i = 0; i < AF_DIAG_MAX + 10; i++)
                af_diag_error(&d, text, "%s", text);
        cr_assert_eq(d.n_items, AF_DIAG_MAX);
        cr_assert_eq(d.n_errors, AF_DIAG_MAX + 10);
        cr_assert_eq(d.n_dropped, 10);
        cr_assert_eq(strlen(d.items[0].where), 1024);
        cr_assert_str_eq(d.items[0].where + 1020, "x...");
        cr_assert_not_null(strstr(format(&d, &b), "note: 10 more not shown\n"));
        af_diags_deinit(&d);
        af_buf_deinit(&b);
}

Test(utf8, knows_what_is_well_formed) {
        static const char *const good[] = {
                "", "abc", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"};
        static const char *const bad[] = {"\x80",
                                          "\xc0\x80",
                                          "\xc1\xbf",
                                          "\xc2",
                                          "\xe0\x9f\xbf",
                                          "\xed\xa0\x80",
                                          "\xed\xbf\xbf",
                                          "\xf0\x8f\xbf\xbf",
                                          "\xf4\x90\x80\x80",
                                          "\xf8\x88\x80\x80\x80",
                                          "\xff",
                                          "a\xe2\x82",
                                          "\xe2\x28\xa1"};

        for (size_t i = 0; i < AF_ARRAY_SIZE(good); i++)
                cr_assert(af_utf8_valid(good[i], strlen(good[i])), "good %zu", i);
        for (size_t i = 0; i < AF_ARRAY_SIZE(bad); i++)
                cr_assert(!af_utf8_valid(bad[i], strlen(bad[i])), "bad %zu", i);
}

Test(utf8, encodes_every_code_point) {
        for (uint32_t code = 0; code <= 0x10ffff; code++) {
                uint8_t bytes[4];
                if (code >= 0xd800 && code < 0xe000)
                        continue;
                size_t n = af_utf8_encode(code, bytes);
                cr_assert_eq(af_utf8_sequence(bytes, n), n, "U+%04x", code);
        }
}
