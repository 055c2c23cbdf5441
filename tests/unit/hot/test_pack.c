/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "hot/pack.h"

#define N 300u

static char *base, path[4096];
static uint8_t secret[AF_PACK_SECRET_BYTES], public[AF_PACK_PUBLIC_BYTES];

static void setup(void) {
        cr_assert_eq(af_io_temp_dir(NULL, "af_pack", &base), 0);
        snprintf(path, sizeof(path), "%s/p.pack", base);
        af_pack_make_keys(secret, public);
}

static void teardown(void) {
        cr_assert_eq(af_io_remove_tree(base), 0);
        free(base);
}

static struct af_digest name(const char *kind, unsigned i) {
        struct af_digest d;

        af_digest_bytes(kind, &i, sizeof(i), &d);
        return d;
}

/* Entry i: canonical bytes "canon<i>" (every third has none), a bundle of 100 i bytes of value i. */
static void write_pack(const char *machine, bool sign) {
        static uint8_t bundle[100 * N];
        struct af_pack_writer *w = NULL;
        struct af_digest env = name("env", 0);
        int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        cr_assert_geq(fd, 0);
        cr_assert_eq(af_pack_writer_new(fd, 7, machine, &w), 0);
        for (unsigned i = 0; i < N; i++) {
                struct af_digest f = name("fragment", i);
                char canon[32];

                snprintf(canon, sizeof(canon), "canon%u", i);
                memset(bundle, (int)i, sizeof(bundle));
                cr_assert_eq(af_pack_writer_add(w, &f, &env, canon, i % 3 ? strlen(canon) : 0, bundle, 100 * i), 0);
                if (i == 5)
                        cr_assert_eq(af_pack_writer_add(w, &f, &env, canon, strlen(canon), bundle, 100 * i), 0, "twice");
        }
        cr_assert_eq(af_pack_writer_target(w, "", "", 0, &(struct af_digest){{1}}), 0);
        cr_assert_eq(af_pack_writer_target(w, "", "", 0, &env), 0);
        cr_assert_eq(af_pack_writer_target(w, "Ascend910B2", "host", 1, &(struct af_digest){{2}}), 0);
        cr_assert_eq(
                af_pack_writer_target(w, "a name that is much too long to be that of any chip or toolchain in this world", "", 0, &env),
                -ENAMETOOLONG);
        cr_assert_eq(af_pack_writer_finish(w, sign ? secret : NULL), 0);
        cr_assert_eq(af_pack_writer_count(w), N);
        af_pack_writer_free(w);
        close(fd);
}

static int try_open(const uint8_t *key) {
        struct af_pack *p = NULL;
        const char *why = NULL;
        int r = af_pack_open(path, 7, key, &p, &why);

        cr_assert(r == 0 || why);
        af_pack_close(p);
        return r;
}

static struct af_pack *must_open(const uint8_t *key) {
        struct af_pack *p = NULL;
        const char *why = NULL;

        cr_assert_eq(af_pack_open(path, 7, key, &p, &why), 0, "%s", why ? why : "");
        return p;
}

/* 1 right, 0 miss or damaged; fails on wrong bytes. */
static int check_entry(const struct af_pack *p, unsigned i) {
        struct af_buf canon = AF_BUF_INIT, bundle = AF_BUF_INIT;
        struct af_digest f = name("fragment", i), env = name("env", 0);
        int r = af_pack_get(p, &f, &env, &canon, &bundle);
        char text[32];

        if (r == 0) {
                snprintf(text, sizeof(text), "canon%u", i);
                cr_assert_eq(bundle.size, 100 * i);
                for (size_t k = 0; k < bundle.size; k++)
                        cr_assert_eq(bundle.data[k], (uint8_t)i);
                cr_assert_eq(canon.size, i % 3 ? strlen(text) : 0);
                cr_assert_arr_eq(canon.data, text, canon.size);
        } else {
                cr_assert_eq(canon.size + bundle.size, 0u);
        }
        af_buf_deinit(&canon);
        af_buf_deinit(&bundle);
        return r == 0;
}

Test(pack, every_entry_comes_back, .init = setup, .fini = teardown) {
        for (int sign = 0; sign < 2; sign++) {
                struct af_digest env, other = name("env", 1), f = name("fragment", 3);
                struct af_pack_entry e, last = {0};
                struct af_pack *p;

                write_pack(NULL, sign);
                p = must_open(sign ? public : NULL);
                cr_assert_eq(af_pack_count(p), N);
                cr_assert_eq(af_pack_signed(p), sign);
                for (unsigned i = 0; i < N; i++)
                        cr_assert(check_entry(p, i));
                cr_assert_eq(af_pack_get(p, &f, &other, NULL, NULL), AF_PACK_E_MISS);
                cr_assert_eq(af_pack_environment(p, "", "", 0, &env), 0);
                cr_assert(af_digest_equal(&env, &(struct af_digest){0}) == false);
                env = name("env", 0);
                cr_assert_eq(af_pack_environment(p, "Ascend910B2", "host", 0, &env), AF_PACK_E_MISS);
                cr_assert_eq(af_pack_environment(p, "Ascend910B2", "host", 1, &env), 0);
                cr_assert_eq(env.bytes[0], 2);
                for (uint64_t i = 0; i < N; i++) {
                        cr_assert_eq(af_pack_entry(p, i, &e, NULL, NULL), 0);
                        cr_assert_gt(memcmp(e.fragment.bytes, last.fragment.bytes, 32), 0, "sorted");
                        last = e;
                }
                cr_assert_eq(af_pack_entry(p, N, &e, NULL, NULL), AF_PACK_E_MISS);
                af_pack_close(p);
        }
}

Test(pack, keys_are_asked_for, .init = setup, .fini = teardown) {
        uint8_t other_secret[AF_PACK_SECRET_BYTES], other_public[AF_PACK_PUBLIC_BYTES];

        af_pack_make_keys(other_secret, other_public);
        write_pack(NULL, false);
        cr_assert_eq(try_open(public), AF_PACK_E_SIGNATURE, "unsigned");
        write_pack(NULL, true);
        cr_assert_eq(try_open(public), 0);
        cr_assert_eq(try_open(NULL), 0);
        cr_assert_eq(try_open(other_public), AF_PACK_E_SIGNATURE);
}

Test(pack, versions_owners_and_machines, .init = setup, .fini = teardown) {
        struct af_buf machine = AF_BUF_INIT;
        struct af_pack *p = NULL;
        const char *why = NULL;

        write_pack(NULL, false);
        cr_assert_eq(af_pack_open(path, 8, NULL, &p, &why), AF_PACK_E_VERSION);
        chmod(path, 0622);
        cr_assert_eq(try_open(NULL), AF_PACK_E_OWNER);
        snprintf(path, sizeof(path), "%s", base);
        cr_assert_eq(try_open(NULL), AF_PACK_E_OWNER, "a directory");
        snprintf(path, sizeof(path), "%s/none", base);
        cr_assert_eq(try_open(NULL), -ENOENT);
        snprintf(path, sizeof(path), "%s/p.pack", base);
        chmod(path, 0600);
        af_pack_machine(&machine);
        af_buf_put_u8(&machine, 0);
        write_pack((const char *)machine.data, false);
        cr_assert_eq(try_open(NULL), 0, "this host suits what it wrote");
        write_pack("fpu avx9001", false);
        cr_assert_eq(try_open(NULL), AF_PACK_E_MACHINE);
        af_buf_deinit(&machine);
}

/* Any byte changed: refused at opening, or entries that are right or missing. */
static void one_byte(struct af_buf *file, size_t at, const uint8_t *key, unsigned *ret_lost) {
        int fd = open(path, O_WRONLY);
        uint8_t flipped = file->data[at] ^ 0x40;
        unsigned found = 0;

        cr_assert_eq(pwrite(fd, &flipped, 1, (off_t)at), 1);
        if (try_open(key) == 0) {
                struct af_pack *p = must_open(key);

                for (unsigned i = 1; i < N; i += 23)
                        found += (unsigned)check_entry(p, i);
                af_pack_close(p);
        }
        *ret_lost += found < (N + 21) / 23;
        cr_assert_eq(pwrite(fd, &file->data[at], 1, (off_t)at), 1);
        close(fd);
}

Test(pack, damage_is_a_miss, .init = setup, .fini = teardown, .timeout = 120) {
        for (int sign = 0; sign < 2; sign++) {
                struct af_buf file = AF_BUF_INIT;
                unsigned lost = 0;

                write_pack("", sign);
                cr_assert_eq(af_io_read_file(path, 64u << 20, &file), 0);
                for (size_t at = 0; at < 300; at += 7)
                        one_byte(&file, at, sign ? public : NULL, &lost);
                for (size_t at = 300; at < file.size; at += file.size / 60)
                        one_byte(&file, at, sign ? public : NULL, &lost);
                cr_assert_gt(lost, 5u);
                af_buf_deinit(&file);
        }
}

Test(pack, a_file_cut_short_under_a_reader, .init = setup, .fini = teardown) {
        struct af_pack *p;
        struct stat st;
        unsigned found = 0;

        write_pack(NULL, false);
        p = must_open(NULL);
        cr_assert_eq(stat(path, &st), 0);
        cr_assert_eq(truncate(path, st.st_size / 2), 0);
        for (unsigned i = 0; i < N; i++)
                found += (unsigned)check_entry(p, i);
        cr_assert_lt(found, N);
        af_pack_close(p);
        for (off_t n = 0; n < 400; n += 13) {
                cr_assert_eq(truncate(path, n), 0);
                cr_assert_neq(try_open(NULL), 0);
        }
}
