/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "proto/frame.h"
#include "tests/unit/proto/random.h"

static void put_sample(struct af_buf *b) {
        const struct af_frame_header h = {
                .type = AF_FRAME_ERROR, .flags = 0x0102, .request_id = 0x1122334455667788, .deadline_ms = 5000, .priority = 7, .n_fds = 1};
        size_t start = af_frame_begin(b, &h);

        af_frame_field_u32(b, AF_TAG_CODE, AF_ERROR_BUSY);
        af_frame_field_u8(b, AF_TAG_RETRYABLE, 1);
        af_frame_field_str(b, AF_TAG_TEXT, "busy: 64 queued");
        af_frame_field_u64(b, AF_TAG_ELAPSED_MS, 1u << 20);
        af_frame_field(b, AF_TAG_KEY, NULL, 0);
        af_frame_end(b, start);
}

Test(frame, layout_is_as_drawn) {
        struct af_buf b = AF_BUF_INIT;

        put_sample(&b);
        static const char expected[] = "AFW1\1\6\2\1"
                                       "\x88\x77\x66\x55\x44\x33\x22\x11" /* request id */
                                       "\x48\0\0\0\x88\x13\0\0"
                                       "\7\1\0\0\0\0\0\0"
                                       "\x18\0\0\0\4\0\0\0\x0a\0\0\0" /* CODE */
                                       "\x19\0\0\0\1\0\0\0\1\0\0\0";  /* RETRYABLE */
        cr_assert_eq(af_buf_error(&b), 0);
        cr_assert_eq(b.size, AF_FRAME_HEADER_BYTES + 72);
        cr_assert_arr_eq(b.data, expected, sizeof(expected) - 1);
        af_buf_deinit(&b);
}

Test(frame, reads_what_it_writes) {
        struct af_buf b = AF_BUF_INIT;
        struct af_frame_header h;
        struct af_field f;

        af_buf_put_str(&b, "odd");
        size_t start = b.size;
        put_sample(&b);
        cr_assert_eq(af_frame_header_read(b.data + start, &h), 0);
        cr_assert_eq(h.type, AF_FRAME_ERROR);
        cr_assert_eq(h.flags, 0x0102);
        cr_assert_eq(h.request_id, 0x1122334455667788);
        cr_assert_eq(h.deadline_ms, 5000);
        cr_assert_eq(h.priority, 7);
        cr_assert_eq(h.n_fds, 1);
        cr_assert_eq(h.body_bytes, b.size - start - AF_FRAME_HEADER_BYTES);
        const uint8_t *body = b.data + start + AF_FRAME_HEADER_BYTES;
        cr_assert(af_frame_find(body, h.body_bytes, AF_TAG_CODE, 4, &f));
        cr_assert_eq(af_field_u32(&f), AF_ERROR_BUSY);
        cr_assert(af_frame_find(body, h.body_bytes, AF_TAG_TEXT, 0, &f));
        cr_assert_eq(f.n, 15);
        cr_assert_arr_eq(f.p, "busy: 64 queued", 15);
        cr_assert(af_frame_find(body, h.body_bytes, AF_TAG_ELAPSED_MS, 8, &f));
        cr_assert_eq(af_field_u64(&f), 1u << 20);
        cr_assert(!af_frame_find(body, h.body_bytes, AF_TAG_CODE, 8, &f), "another size");
        cr_assert(!af_frame_find(body, h.body_bytes, AF_TAG_WAITERS, 0, &f));
        cr_assert(!af_frame_find(NULL, 0, AF_TAG_CODE, 0, &f));
        int n = 0;
        struct af_cursor c = af_cursor_make(body, h.body_bytes);
        while (af_frame_next(&c, &f))
                n++;
        cr_assert_eq(n, 5);
        cr_assert(!c.error);
        af_buf_deinit(&b);
}

Test(frame, skips_unknown_tags_and_takes_the_first) {
        struct af_buf b = AF_BUF_INIT;
        struct af_field f;

        af_frame_field(&b, (enum af_frame_tag)999, "xyz", 3);
        af_frame_field_u32(&b, AF_TAG_WAITERS, 1);
        af_frame_field_u32(&b, AF_TAG_WAITERS, 2);
        cr_assert(af_frame_find(b.data, b.size, AF_TAG_WAITERS, 4, &f));
        cr_assert_eq(af_field_u32(&f), 1);
        f.n = 2;
        cr_assert_eq(af_field_u32(&f), 0, "too short for its type");
        af_buf_deinit(&b);
}

Test(frame, refuses_bad_headers) {
        struct af_buf b = AF_BUF_INIT;
        struct af_frame_header h;
        static const struct {
                uint8_t at, value;
                int error;
        } cases[] = {
                {0, 'B', AF_FRAME_E_MAGIC},   {3, '2', AF_FRAME_E_MAGIC},      {4, 0, AF_FRAME_E_VERSION},   {4, 2, AF_FRAME_E_VERSION},
                {19, 0xff, AF_FRAME_E_SIZE},  {19, 5, AF_FRAME_E_SIZE},        {25, 2, AF_FRAME_E_RESERVED}, {26, 1, AF_FRAME_E_RESERVED},
                {31, 1, AF_FRAME_E_RESERVED}, {28, 0x80, AF_FRAME_E_RESERVED},
        };

        put_sample(&b);
        for (size_t i = 0; i < AF_ARRAY_SIZE(cases); i++) {
                uint8_t saved = b.data[cases[i].at];
                b.data[cases[i].at] = cases[i].value;
                cr_assert_eq(af_frame_header_read(b.data, &h), cases[i].error, "case %zu", i);
                b.data[cases[i].at] = saved;
        }
        af_buf_deinit(&b);
}

Test(frame, refuses_malformed_bodies) {
        static const struct {
                const char *bytes;
                size_t n;
        } cases[] = {
                {"\x18", 1},                         /* half a tag */
                {"\x18\0\0\0\x05\0\0\0abcd", 12},    /* bytes beyond the end */
                {"\x18\0\0\0\xff\xff\xff\xff", 8},   /* length of 4 GiB */
                {"\x18\0\1\0\x01\0\0\0a\0\0\0", 12}, /* reserved bits */
                {"\x18\0\0\0\x01\0\0\0a\0\0\1", 12}, /* padding */
                {"\x18\0\0\0\x01\0\0\0a\0\0", 11},   /* padding cut */
        };
        struct af_field f;

        for (size_t i = 0; i < AF_ARRAY_SIZE(cases); i++) {
                struct af_cursor c = af_cursor_make(cases[i].bytes, cases[i].n);
                cr_assert(!af_frame_next(&c, &f), "case %zu", i);
                cr_assert(c.error, "case %zu", i);
                cr_assert(!af_frame_find((const uint8_t *)cases[i].bytes, cases[i].n, AF_TAG_CODE, 0, &f));
        }
}

Test(frame, refuses_to_write_a_body_over_the_limit) {
        struct af_buf b = AF_BUF_INIT;
        char *big = calloc(1, AF_FRAME_MAX_BODY);
        size_t start = af_frame_begin(&b, &(struct af_frame_header){.type = AF_FRAME_SUBMIT});

        af_frame_field(&b, AF_TAG_CANON, big, AF_FRAME_MAX_BODY);
        af_frame_end(&b, start);
        cr_assert_eq(af_buf_error(&b), -EOVERFLOW);
        free(big);
        af_buf_deinit(&b);
}

Test(frame, names_every_code) {
        for (int code = AF_ERROR_PROTOCOL; code <= AF_ERROR_STORAGE; code++)
                cr_assert_str_neq(af_error_code_name((enum af_error_code)code), "unknown");
        cr_assert_str_eq(af_error_code_name(AF_ERROR_DEADLINE), "deadline");
        cr_assert_str_eq(af_error_code_name((enum af_error_code)999), "unknown");
}

Test(frame, survives_any_bytes) {
        struct random r = random_make("frame");
        struct af_buf b = AF_BUF_INIT;

        put_sample(&b);
        for (int round = 0; round < 100000; round++) {
                size_t n = random_below(&r, 4) ? b.size : random_below(&r, (uint32_t)b.size);
                uint8_t *copy = malloc(n + 1); /* its own block, so that a read beyond it is seen */
                struct af_frame_header h;
                struct af_field f;
                memcpy(copy, b.data, n);
                random_mutate(&r, copy, n);
                if (n >= AF_FRAME_HEADER_BYTES) {
                        (void)!af_frame_header_read(copy, &h);
                        struct af_cursor c = af_cursor_make(copy + AF_FRAME_HEADER_BYTES, n - AF_FRAME_HEADER_BYTES);
                        uint64_t sum = 0;
                        while (af_frame_next(&c, &f))
                                for (uint32_t i = 0; i < f.n; i++)
                                        sum += f.p[i];
                        cr_assert_leq(c.at, c.size);
                        cr_assert_lt(sum, UINT64_MAX);
                }
                free(copy);
        }
        af_buf_deinit(&b);
}
