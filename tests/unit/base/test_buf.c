/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"

Test(buf, writes_little_endian_and_reads_it_back) {
        struct af_buf b = AF_BUF_INIT;

        af_buf_put_u8(&b, 0x01);
        af_buf_put_u16(&b, 0x0302);
        af_buf_put_u32(&b, 0x07060504);
        af_buf_put_u64(&b, 0x0f0e0d0c0b0a0908);
        af_buf_put_field(&b, "ab", 2);
        af_buf_put_str(&b, "xyz");
        af_buf_printf(&b, "%d", 42);
        cr_assert_eq(af_buf_error(&b), 0);
        static const uint8_t expected[] = {1,  2,  3, 4, 5, 6, 7,   8,   9,   10,  11,  12,  13,
                                           14, 15, 2, 0, 0, 0, 'a', 'b', 'x', 'y', 'z', '4', '2'};
        cr_assert_eq(b.size, sizeof(expected));
        cr_assert_arr_eq(b.data, expected, sizeof(expected));
        struct af_cursor c = af_cursor_make(b.data, b.size);
        uint32_t n;
        cr_assert_eq(af_cursor_u8(&c), 1);
        cr_assert_eq(af_cursor_u16(&c), 0x0302);
        cr_assert_eq(af_cursor_u32(&c), 0x07060504);
        cr_assert_eq(af_cursor_u64(&c), 0x0f0e0d0c0b0a0908);
        cr_assert_arr_eq(af_cursor_field(&c, &n), "ab", 2);
        cr_assert_eq(n, 2);
        cr_assert_arr_eq(af_cursor_bytes(&c, 5), "xyz42", 5);
        cr_assert(!c.error);
        cr_assert_eq(c.at, c.size);
        af_buf_deinit(&b);
}

Test(buf, cursor_stays_failed) {
        struct af_cursor c = af_cursor_make("\x05\0\0\0abc", 7);
        uint32_t n = 9;

        cr_assert_null(af_cursor_field(&c, &n));
        cr_assert_eq(n, 0);
        cr_assert(c.error);
        cr_assert_eq(af_cursor_u8(&c), 0);
        cr_assert_null(af_cursor_bytes(&c, 0));
        c = af_cursor_make(NULL, 0);
        cr_assert_not_null(af_cursor_bytes(&c, 0));
        cr_assert_eq(af_cursor_u64(&c), 0);
        cr_assert(c.error);
        c = af_cursor_make("abc", 3);
        cr_assert_null(af_cursor_bytes(&c, SIZE_MAX));
}

Test(buf, aligns_and_patches) {
        struct af_buf b = AF_BUF_INIT;

        af_buf_align(&b, 8);
        cr_assert_eq(b.size, 0);
        af_buf_put_u8(&b, 7);
        af_buf_align(&b, 8);
        cr_assert_eq(b.size, 8);
        af_buf_align(&b, 8);
        cr_assert_eq(b.size, 8);
        af_buf_patch_u32(&b, 4, 0x01020304);
        cr_assert_arr_eq(b.data, "\x07\0\0\0\x04\x03\x02\x01", 8);
        af_buf_patch_u64(&b, 0, 1);
        cr_assert_arr_eq(b.data, "\x01\0\0\0\0\0\0\0", 8);
        af_buf_patch_u64(&b, 1, 1);
        cr_assert_eq(af_buf_error(&b), -EOVERFLOW);
        af_buf_deinit(&b);
}

Test(buf, errors_stick) {
        struct af_buf b = AF_BUF_INIT;
        size_t n = 5;

        af_buf_put_u8(&b, 1);
        cr_assert_null(af_buf_reserve(&b, SIZE_MAX));
        cr_assert_eq(af_buf_error(&b), -EOVERFLOW);
        af_buf_put(&b, "abc", 3);
        af_buf_printf(&b, "x");
        af_buf_align(&b, 64);
        af_buf_put_field(&b, "x", (size_t)UINT32_MAX + 1);
        cr_assert_eq(b.size, 1);
        cr_assert_null(af_buf_take(&b, &n));
        cr_assert_eq(n, 5);
        af_buf_clear(&b);
        cr_assert_eq(af_buf_error(&b), 0);
        af_buf_put_field(&b, "x", (size_t)UINT32_MAX + 1);
        cr_assert_eq(af_buf_error(&b), -EOVERFLOW);
        af_buf_deinit(&b);
}

Test(buf, take_ends_with_a_zero_byte) {
        struct af_buf b = AF_BUF_INIT;
        size_t n;

        uint8_t *empty = af_buf_take(&b, &n);
        cr_assert_not_null(empty);
        cr_assert_eq(n, 0);
        cr_assert_eq(empty[0], 0);
        free(empty);
        for (int i = 0; i < 64; i++)
                af_buf_put_u8(&b, 'x');
        uint8_t *full = af_buf_take(&b, &n);
        cr_assert_eq(n, 64);
        cr_assert_eq(full[64], 0);
        cr_assert_null(b.data);
        free(full);
        af_buf_put(&b, NULL, 0);
        cr_assert_eq(b.size, 0);
        af_buf_deinit(&b);
        af_buf_deinit(&b);
}
