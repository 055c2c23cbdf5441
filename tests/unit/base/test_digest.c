/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/io.h"

static void expect(const struct af_digest *d, const char *hex) {
        char got[AF_DIGEST_HEX_SIZE];

        af_digest_hex(d, got);
        cr_assert_str_eq(got, hex);
}

/* Expected values: BLAKE2b of another library over the layout in digest.c. */
Test(digest, covers_tags_and_lengths) {
        struct af_digest d;
        struct af_hasher h;

        af_digest_bytes("test/1", "abc", 3, &d);
        expect(&d, "b5e8f0156a9cb7f34de6db931633977b4776a0dfcd109c15153a694cbca2a49e");
        af_hasher_init(&h, "test/1");
        af_hasher_str(&h, "a", "");
        af_hasher_str(&h, "b", NULL);
        af_hasher_u64(&h, "n", 7);
        af_hasher_final(&h, &d);
        expect(&d, "f9f45b77a7dc7c9af239cf996ebeb0838daaac95d0d38b8d588e7cd4e98eba66");
}

static struct af_digest two_fields(const char *a, size_t n_a, const char *b, size_t n_b) {
        struct af_digest d;
        struct af_hasher h;

        af_hasher_init(&h, "t");
        af_hasher_field(&h, "x", a, n_a);
        af_hasher_field(&h, "x", b, n_b);
        af_hasher_final(&h, &d);
        return d;
}

Test(digest, tells_lists_of_fields_apart) {
        struct af_digest p = two_fields("a", 1, "bc", 2), q = two_fields("ab", 2, "c", 1), r = two_fields("abc", 3, "", 0);
        struct af_hasher h;
        struct af_digest null, empty;

        cr_assert(!af_digest_equal(&p, &q));
        cr_assert(!af_digest_equal(&p, &r));
        af_hasher_init(&h, "t");
        af_hasher_str(&h, "x", NULL);
        af_hasher_final(&h, &null);
        af_hasher_init(&h, "t");
        af_hasher_str(&h, "x", "");
        af_hasher_final(&h, &empty);
        cr_assert(!af_digest_equal(&null, &empty));
}

Test(digest, of_files) {
        char *dir, path[512];
        struct af_digest d;

        cr_assert_eq(af_io_temp_dir(NULL, "digest", &dir), 0);
        snprintf(path, sizeof(path), "%s/f", dir);
        cr_assert_eq(af_digest_file(path, &d), -ENOENT);
        cr_assert_eq(af_digest_file(dir, &d), -EISDIR);
        cr_assert_eq(af_io_publish_file(path, "hello\n", 6, 0644), 0);
        cr_assert_eq(af_digest_file(path, &d), 0);
        expect(&d, "ea61d42c9a1e86270d27ffcc0c7186f7628cda817453ddda28ea3282c572383a");
        cr_assert_eq(af_io_remove_tree(dir), 0);
        free(dir);
}

Test(digest, hexadecimal) {
        uint8_t bytes[3] = {9, 9, 9};
        char hex[7];

        af_hex("\x00\xab\xff", 3, hex);
        cr_assert_str_eq(hex, "00abff");
        cr_assert(af_unhex("00aBFf", 6, bytes, 3));
        cr_assert_arr_eq(bytes, "\x00\xab\xff", 3);
        cr_assert(!af_unhex("00aBF", 5, bytes, 3));
        cr_assert(!af_unhex("00aBF", 5, bytes, 2));
        cr_assert(!af_unhex("00aBFg", 6, bytes, 3));
        cr_assert(!af_unhex("00aB", 4, bytes, 3));
        cr_assert(af_unhex("", 0, bytes, 0));
        cr_assert_arr_eq(bytes, "\x00\xab\xff", 3, "written only on success");
}

Test(check, depends_on_pieces_and_their_bounds) {
        struct af_check whole, a, b, again;
        const struct af_piece ab_c[] = {{"ab", 2}, {"c", 1}}, a_bc[] = {{"a", 1}, {"bc", 2}};
        char hex[33];

        af_check_bytes("abc", 3, &whole);
        af_hex(whole.bytes, 16, hex);
        cr_assert_str_eq(hex, "06b05ab6733a618578af5f94892f3950");
        af_check_pieces(ab_c, 2, &a);
        af_check_pieces(a_bc, 2, &b);
        cr_assert(memcmp(&a, &b, sizeof(a)) != 0);
        cr_assert(memcmp(&a, &whole, sizeof(a)) != 0);
        af_check_pieces(ab_c, 2, &again);
        cr_assert_arr_eq(&a, &again, sizeof(a));
        af_check_bytes(NULL, 0, &a);
        af_check_bytes("", 0, &b);
        cr_assert_arr_eq(&a, &b, sizeof(a));
}
