/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/json_scan.h"

/* Scans a copy in a block of its own, so that a read beyond the end is seen. *report (to be freed) has the diagnostics. */
static int scan(const char *text, size_t n, char **report) {
        struct af_json json;
        struct af_buf b = AF_BUF_INIT;
        struct af_diags d = {0};
        char *copy = malloc(n ? n : 1);

        memcpy(copy, text, n);
        int r = af_json_scan(copy, n, &json, &d);
        af_diags_format(&d, &b);
        *report = (char *)af_buf_take(&b, NULL);
        cr_assert_eq(r != 0, d.n_errors > 0);
        af_diags_deinit(&d);
        af_json_deinit(&json);
        free(copy);
        return r;
}

static void expect(const char *text, const char *expected) {
        char *report;

        int r = scan(text, strlen(text), &report);
        cr_assert_str_eq(report, expected, "%s gave %s", text, report);
        cr_assert_eq(r, expected[0] ? AF_JSON_E_INVALID : 0);
        free(report);
}

Test(json_scan, lets_json_through) {
        static const char *const good[] = {"0",
                                           "-0.5e+10",
                                           "[]",
                                           " [ ] ",
                                           "{}",
                                           "\"\"",
                                           "true",
                                           "null",
                                           "[1,2,[3,{\"a\":false}]]",
                                           "{\"a\":1,\"b\":{\"a\":2}}",
                                           "\"\\u00e9\\ud83d\\ude00\\\\\\/\"",
                                           "9007199254740992",
                                           "[-9007199254740992]",
                                           "123456789012345678901234567890.0",
                                           "\r\n\t [0e0]\n"};

        for (size_t i = 0; i < AF_ARRAY_SIZE(good); i++)
                expect(good[i], "");
}

Test(json_scan, names_the_place_of_a_mistake) {
        expect("", "error: line 1, column 1: the text is empty\n");
        expect("  \n ", "error: line 1, column 1: the text is empty\n");
        expect("[1,]", "error: [1], line 1, column 4: ']' where a value is expected\n");
        expect("[1 2]", "error: [0], line 1, column 4: '2' where ',' or ']' is expected\n");
        expect("{\"a\":1,}", "error: a, line 1, column 8: '}' where a key in quotes is expected\n");
        expect("{\"a\" 1}", "error: a, line 1, column 6: '1' where ':' is expected\n");
        expect("{a:1}", "error: line 1, column 2: 'a' where a key in quotes is expected\n");
        expect("{\"nodes\":[\n{\"name\":\"n0\"},\n{\"name\":\"n1\",\"x\":tru}]}",
               "error: nodes[1] \"n1\".x, line 3, column 18: 't' where a value is expected\n");
        expect("[1", "error: [0], line 1, column 3: the text ends where ',' or ']' is expected\n");
        expect("{} {}", "error: line 1, column 4: bytes after the end of the text\n");
        expect("{}\x01", "error: line 1, column 3: bytes after the end of the text\n");
        expect("\xef\xbb\xbf{}", "error: line 1, column 1: byte 0xef where a value is expected\n");
        expect("'a'", "error: line 1, column 1: ''' where a value is expected\n");
        expect("NaN", "error: line 1, column 1: 'N' where a value is expected\n");
}

Test(json_scan, refuses_bad_numbers) {
        expect("01", "error: line 1, column 2: bytes after the end of the text\n");
        expect("-", "error: line 1, column 2: the text ends where a digit is expected\n");
        expect("1.", "error: line 1, column 3: the text ends where a digit is expected\n");
        expect("[1e]", "error: [0], line 1, column 4: ']' where a digit is expected\n");
        expect("+1", "error: line 1, column 1: '+' where a value is expected\n");
        expect(".5", "error: line 1, column 1: '.' where a value is expected\n");
        expect("0x10", "error: line 1, column 2: bytes after the end of the text\n");
#define HINT " (most readers of JSON keep doubles and lose its last bits: write it as a string)\n"
        expect("9007199254740993", "error: line 1, column 1: integer beyond 2^53" HINT);
        expect("[-9007199254740993,10000000000000000]",
               "error: [0], line 1, column 2: integer beyond 2^53" HINT "error: [1], line 1, column 20: integer beyond 2^53" HINT);
        expect("0.1234567890123456789012345678901234567890123456789012345678901234",
               "error: line 1, column 1: number of more than 63 characters (write it as a string)\n");
}

Test(json_scan, refuses_bad_strings) {
        expect("\"a", "error: line 1, column 1: string without an end\n");
        expect("\"\\x\"", "error: line 1, column 3: 'x' where an escape is expected\n");
        expect("\"\\u12g4\"", "error: line 1, column 6: 'g' where a hex digit is expected\n");
        expect("\"\\ud800\"", "error: line 1, column 2: half of a surrogate pair\n");
        expect("\"\\ud800\\u0041\"", "error: line 1, column 2: half of a surrogate pair\n");
        expect("\"\\udc00\"", "error: line 1, column 2: half of a surrogate pair\n");
        expect("\"a\nb\"", "error: line 1, column 3: byte 0x0a where a character of a string is expected\n");
        expect("\"\xff\"", "error: line 1, column 2: string is not UTF-8\n");
        expect("\"\xc3", "error: line 1, column 2: string is not UTF-8\n");
        expect("[\"\\u0000\",\"a\\u0000b\"]",
               "error: [0], line 1, column 3: \\u0000 in a string\nerror: [1], line 1, column 13: \\u0000 in a string\n");
        char *report;
        cr_assert_eq(scan("\"a\0b\"", 5, &report), AF_JSON_E_INVALID);
        free(report);
        cr_assert_eq(scan("{}\0", 3, &report), AF_JSON_E_INVALID);
        free(report);
}

Test(json_scan, finds_duplicate_keys_however_they_are_written) {
        expect("{\"a\":1,\"b\":2,\"a\":3}", "error: a, line 1, column 14: duplicate key\n");
        expect("{\"name\":1,\"n\\u0061me\":3}", "error: n\\u0061me, line 1, column 11: duplicate key\n");
        expect("{\"/\":1,\"\\/\":3}", "error: \\/, line 1, column 8: duplicate key\n");
        expect("{\"a\":{\"a\":{}},\"b\":[{\"a\":1},{\"a\":1}]}", "");
        char text[2048] = "{";
        for (int i = 0; i < 65; i++)
                sprintf(text + strlen(text), "%s\"k%d\":0", i ? "," : "", i);
        strcat(text, "}");
        char *report;
        cr_assert_eq(scan(text, strlen(text), &report), AF_JSON_E_INVALID);
        cr_assert_not_null(strstr(report, "object with more than 64 keys"));
        free(report);
}

/* The values as "key:text" each, containers with their elements and their span. */
static void print_values(const struct af_json *json, struct af_buf *b) {
        const struct af_json_value *v = af_json_root(json);

        for (uint32_t n = v->span; n > 0; n--, v++) {
                if (v->n_key > 0)
                        af_buf_printf(b, "%.*s:", (int)v->n_key, af_json_text(json, v->key_at));
                if (v->kind == AF_JSON_STRING || v->kind == AF_JSON_NUMBER)
                        af_buf_printf(b, "%c%.*s ", v->kind == AF_JSON_STRING ? '\'' : '#', (int)v->n, af_json_text(json, v->at));
                else if (v->kind == AF_JSON_LIST || v->kind == AF_JSON_OBJECT)
                        af_buf_printf(b, "%c%u/%u ", v->kind == AF_JSON_LIST ? '[' : '{', v->n, v->span);
                else
                        af_buf_put_str(b, v->kind == AF_JSON_NULL ? "null " : v->kind == AF_JSON_TRUE ? "true " : "false ");
        }
        af_buf_put_u8(b, 0);
}

static void expect_values(const char *text, const char *expected) {
        struct af_json json;
        struct af_buf b = AF_BUF_INIT;

        cr_assert_eq(af_json_scan(text, strlen(text), &json, NULL), 0, "%s", text);
        print_values(&json, &b);
        cr_assert_str_eq((const char *)b.data, expected, "%s gave %s", text, (const char *)b.data);
        af_buf_deinit(&b);
        af_json_deinit(&json);
}

Test(json_scan, gives_values_in_text_order) {
        expect_values(" 7 ", "#7 ");
        expect_values("[]", "[0/1 ");
        expect_values("{\"a\":[1,-2.5,{\"b\":3e4}],\"c\":\"5\",\"d\":[[],true,null,false]}",
                      "{3/12 a:[3/5 #1 #-2.5 {1/2 b:#3e4 c:'5 d:[4/5 [0/1 true null false ");
}

Test(json_scan, decodes_escapes_in_strings_and_keys) {
        expect_values("[\"\",\"\\n\",\"a\\tb\\u0041\\\\c\",\"\\u00e9\\ud83d\\ude00x\"]",
                      "[4/5 ' '\n 'a\tbA\\c '\xc3\xa9\xf0\x9f\x98\x80x ");
        expect_values("{\"n\\u0061me\":\"12\\u0033\",\"x\":\"4\",\"\\/\":5}", "{3/4 name:'123 x:'4 /:#5 ");
        /* A number that is read from a decoded string ends where the string ends. */
        struct af_json json;
        cr_assert_eq(af_json_scan("[\"\\u0031\",\"\\u0032\"]", 19, &json, NULL), 0);
        cr_assert_str_eq(af_json_text(&json, af_json_root(&json)[1].at), "1");
        cr_assert_str_eq(af_json_text(&json, af_json_root(&json)[2].at), "2");
        af_json_deinit(&json);
}

Test(json_scan, bounds_nesting_and_size) {
        size_t n = 100000;
        char *text = malloc(n), *report;

        memset(text, '[', n);
        cr_assert_eq(scan(text, n, &report), AF_JSON_E_INVALID);
        cr_assert_not_null(strstr(report, "nested deeper than 32 levels"));
        free(report);
        expect("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", "");
        free(text);
        n = 2 * (AF_JSON_MAX_VALUES + 1) + 1;
        text = malloc(n);
        for (size_t i = 0; i < n; i++)
                text[i] = i == 0 ? '[' : i == n - 1 ? ']' : i % 2 ? '0' : ',';
        cr_assert_eq(scan(text, n, &report), AF_JSON_E_INVALID);
        cr_assert_not_null(strstr(report, "more than 4000000 values"));
        free(report);
        free(text);
}
