/* SPDX-License-Identifier: Apache-2.0 */
#include <cjson/cJSON.h>
#include <criterion/criterion.h>

#include "base/json_text.h"

static struct af_buf made(const void *p, size_t n) {
        struct af_buf buf = AF_BUF_INIT;

        af_json_string_n(&buf, p, n);
        af_buf_put_u8(&buf, 0);
        cr_assert_eq(af_buf_error(&buf), 0);
        return buf;
}

static void expect(const char *in, size_t n, const char *out) {
        struct af_buf buf = made(in, n);

        cr_expect_str_eq((const char *)buf.data, out);
        af_buf_deinit(&buf);
}

Test(json_text, strings) {
        expect("", 0, "\"\"");
        expect("plain", 5, "\"plain\"");
        expect("a\"b\\c\n\td\r\x01\x7f", 11, "\"a\\\"b\\\\c\\n\\td\\u000d\\u0001\\u007f\"");
        expect("a\0b", 3, "\"a\\u0000b\"");
        expect("\xe5\x8d\x8e", 3, "\"\xe5\x8d\x8e\"");
        expect("x\xff\xc0\x80y", 5, "\"x\\ufffd\\ufffd\\ufffdy\"");
        expect("\xe5\x8d", 2, "\"\\ufffd\\ufffd\"");
}

/* Whatever the bytes, the text is JSON. */
Test(json_text, any_bytes_give_json) {
        uint32_t x = 1;

        for (int round = 0; round < 2000; round++) {
                uint8_t bytes[40];
                struct af_buf buf;
                cJSON *o;

                for (size_t i = 0; i < sizeof(bytes); i++) {
                        x = x * 1664525 + 1013904223;
                        bytes[i] = (uint8_t)(x >> 24);
                }
                buf = made(bytes, sizeof(bytes));
                o = cJSON_Parse((const char *)buf.data);
                cr_assert(o, "%s", (const char *)buf.data);
                cJSON_Delete(o);
                af_buf_deinit(&buf);
        }
}

Test(json_text, members) {
        struct af_buf buf = AF_BUF_INIT;
        struct af_digest d = {0};

        af_buf_put_u8(&buf, '{');
        af_json_add_digest(&buf, "left out", &d);
        af_json_add_string(&buf, "s", "x");
        af_json_add_string(&buf, "none", NULL);
        af_json_add_u64(&buf, "n", UINT64_MAX);
        af_json_add_bool(&buf, "b", true);
        d.bytes[0] = 0xab;
        af_json_add_digest(&buf, "d", &d);
        af_json_key(&buf, "l");
        af_buf_put_u8(&buf, '[');
        af_json_item(&buf);
        af_buf_put_str(&buf, "1");
        af_json_item(&buf);
        af_buf_put_str(&buf, "2]}");
        af_buf_put_u8(&buf, 0);
        cr_assert_str_eq((const char *)buf.data, "{\"s\":\"x\",\"none\":null,\"n\":18446744073709551615,\"b\":true,"
                                                 "\"d\":\"ab00000000000000000000000000000000000000000000000000000000000000\",\"l\":[1,2]}");
        af_buf_deinit(&buf);
}
