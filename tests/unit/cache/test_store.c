/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cache/store_fixture.h"

/* Changes the byte after the first occurrence of mark in the file. */
static void damage_after(const char *mark) {
        struct af_buf buf = AF_BUF_INIT;
        uint8_t *at;
        int fd;

        cr_assert_eq(af_io_read_file(data_path, 64u << 20, &buf), 0);
        fd = open(data_path, O_WRONLY);
        for (size_t from = 0; (at = memmem(buf.data + from, buf.size - from, mark, strlen(mark))); from = (size_t)(at - buf.data) + 1) {
                off_t where = at + strlen(mark) - buf.data;
                uint8_t flipped = buf.data[where] ^ 1;

                cr_assert_eq(pwrite(fd, &flipped, 1, where), 1);
        }
        close(fd);
        af_buf_deinit(&buf);
}

Test(store, put_get_reopen, .init = setup, .fini = teardown) {
        struct af_store *s = open_store();
        struct af_store_record rs[3] = {kernel("k1", "one", 4), kernel("k2", "", 0), {AF_TABLE_SOURCES, "k1", 2, "source", 7}};
        struct af_store_value v[3];
        struct af_store_stats st;

        cr_assert_null(get(s, "k1", NULL));
        cr_assert_eq(put_wait(s, rs, 3), 0);
        cr_assert_eq(af_store_get(s, rs, 3, v), 0);
        cr_assert_str_eq(v[0].data, "one");
        cr_assert_eq(v[1].size, 0u);
        cr_assert_not_null(v[1].data);
        cr_assert_str_eq(v[2].data, "source");
        for (int i = 0; i < 3; i++) {
                cr_assert_eq((uintptr_t)v[i].data % 64, 0u);
                free(v[i].data);
        }
        af_store_close(s);
        s = open_store();
        cr_assert(has(s, "k1", "one"));
        af_store_stats(s, &st);
        cr_assert_eq(st.n_records[AF_TABLE_KERNELS], 2u);
        cr_assert_eq(st.n_records[AF_TABLE_SOURCES], 1u);
        af_store_close(s);
}

Test(store, close_finishes_queued_puts, .init = setup, .fini = teardown) {
        struct af_store *s = open_store();
        int results[500];
        char key[32];

        for (int i = 0; i < 500; i++) {
                struct af_store_record r;

                snprintf(key, sizeof(key), "key%d", i);
                r = kernel(key, key, strlen(key) + 1);
                results[i] = 1000;
                cr_assert_eq(af_store_put(s, &r, 1, on_done, &results[i]), 0);
        }
        af_store_close(s);
        s = open_store();
        for (int i = 0; i < 500; i++) {
                snprintf(key, sizeof(key), "key%d", i);
                cr_assert(has(s, key, key));
                cr_assert_eq(results[i], -ECANCELED);
        }
        af_store_close(s);
}

Test(store, clear_drops_everything, .init = setup, .fini = teardown) {
        struct af_store *s = open_store();
        struct af_store_record r = kernel("k", "v", 2);

        cr_assert_eq(put_wait(s, &r, 1), 0);
        cr_assert_eq(af_store_clear(s), 0);
        cr_assert_null(get(s, "k", NULL));
        cr_assert_eq(put_wait(s, &r, 1), 0);
        cr_assert(has(s, "k", "v"));
        af_store_close(s);
}

Test(store, a_flipped_bit_is_a_miss_that_heals, .init = setup, .fini = teardown) {
        struct af_store *s = open_store();
        struct af_store_record rs[2] = {kernel("k1", "MARK-ONE-abc", 13), kernel("k2", "other", 6)};
        struct af_store_stats st;

        cr_assert_eq(put_wait(s, rs, 2), 0);
        af_store_close(s);
        damage_after("MARK-ONE-");
        s = open_store();
        cr_assert_null(get(s, "k1", NULL));
        cr_assert_null(get(s, "k1", NULL), "damage read twice counts once");
        cr_assert(has(s, "k2", "other"), "no other key is touched");
        cr_assert_eq(put_wait(s, rs, 1), 0);
        cr_assert(has(s, "k1", "MARK-ONE-abc"));
        af_store_stats(s, &st);
        cr_assert_eq(st.n_damaged, 1u);
        af_store_close(s);
}

Test(store, verify_deletes_what_is_damaged, .init = setup, .fini = teardown) {
        struct af_store *s = open_store();
        struct af_store_record rs[2] = {kernel("k1", "MARK-TWO-abc", 13), kernel("k2", "other", 6)};
        struct af_store_stats st;

        cr_assert_eq(put_wait(s, rs, 2), 0);
        cr_assert_eq(af_store_verify(s, &st), 0);
        cr_assert_eq(st.n_damaged, 0u);
        af_store_close(s);
        damage_after("MARK-TWO-");
        s = open_store();
        cr_assert_eq(af_store_verify(s, &st), 0);
        cr_assert_eq(st.n_damaged, 1u);
        cr_assert_eq(st.n_records[AF_TABLE_KERNELS], 1u);
        af_store_close(s);
}

static void fill(struct af_store *s, int n) {
        char key[32];
        uint8_t value[6000];

        for (int i = 0; i < n; i++) {
                struct af_store_record r;

                snprintf(key, sizeof(key), "key%d", i);
                memset(value, i, sizeof(value));
                r = kernel(key, value, sizeof(value));
                cr_assert_eq(put_wait(s, &r, 1), 0);
        }
}

static int count_right(struct af_store *s, int n) {
        char key[32];
        int right = 0;

        for (int i = 0; i < n; i++) {
                size_t size;
                uint8_t *v;

                snprintf(key, sizeof(key), "key%d", i);
                v = (uint8_t *)get(s, key, &size);
                if (!v)
                        continue;
                cr_assert_eq(size, 6000u);
                for (size_t j = 0; j < size; j++)
                        cr_assert_eq(v[j], (uint8_t)i);
                right++;
                free(v);
        }
        return right;
}

Test(store, a_truncated_file_never_kills, .init = setup, .fini = teardown) {
        struct af_store *s = open_store();
        struct stat st;

        fill(s, 40);
        af_store_close(s);
        cr_assert_eq(stat(data_path, &st), 0);
        for (off_t size = st.st_size - 1; size > 0; size -= 50001) {
                struct af_store_record r = kernel("again", "x", 2);

                cr_assert_eq(truncate(data_path, size), 0);
                s = open_store();
                count_right(s, 40);
                cr_assert_eq(put_wait(s, &r, 1), 0);
                cr_assert(has(s, "again", "x"));
                af_store_close(s);
        }
}

/* Reads, overwrites and clears a store whose file may be damaged. The exit status: 42 for a wrong value, else how many were right. */
static int use_damaged(int n) {
        struct af_store *c = NULL;
        char *why = NULL;
        int right;

        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        signal(SIGALRM, SIG_DFL);
        alarm(60);
        if (af_store_open(&(struct af_store_config){.dir = dir}, &c, &why))
                return 43;
        right = 0;
        for (int i = 0; i < n; i++) {
                char key[32];
                struct af_store_value v;

                snprintf(key, sizeof(key), "key%d", i);
                struct af_store_record r = kernel(key, NULL, 0);
                if (af_store_get(c, &r, 1, &v) || !v.data)
                        continue;
                for (size_t j = 0; j < v.size; j++)
                        if (v.size != 6000 || ((uint8_t *)v.data)[j] != (uint8_t)i)
                                return 42;
                right++;
                free(v.data);
        }
        fill(c, n);
        struct af_store_stats st;
        if (af_store_verify(c, &st) || count_right(c, n) != n || af_store_trim(c, 0) < 0 || af_store_clear(c))
                return 44;
        af_store_close(c);
        return right;
}

/* Bytes anywhere in the file's first pages, where its structure is: nothing dies, no value is wrong, and most are still there. */
Test(store, C01_random_bytes_on_disk, .init = setup, .fini = teardown, .timeout = 300) {
        unsigned seed = 7;
        int right = 0;

        for (int round = 0; round < 30; round++) {
                int status, n_bytes = 1 + round % 30;
                pid_t pid;
                struct af_store *s = open_store();
                int fd;

                fill(s, 10);
                af_store_close(s);
                fd = open(data_path, O_RDWR);
                for (int i = 0; i < n_bytes; i++) {
                        uint8_t b = (uint8_t)rand_r(&seed);

                        cr_assert_eq(pwrite(fd, &b, 1, rand_r(&seed) % (60 * 1024)), 1);
                }
                close(fd);
                pid = fork();
                if (pid == 0)
                        _exit(use_damaged(10));
                cr_assert_eq(waitpid(pid, &status, 0), pid);
                cr_assert(WIFEXITED(status) && WEXITSTATUS(status) <= 10, "round %d: status %x", round, (unsigned)status);
                right += WEXITSTATUS(status);
                cr_assert_eq(af_io_remove_tree(dir), 0);
        }
        cr_assert_gt(right, 30 * 10 / 4);
}

/* Bytes of each page's header, of its offsets, of both metas, changed alone. */
Test(store, C01_every_byte_of_the_structure, .init = setup, .fini = teardown, .timeout = 300) {
        static const size_t places[] = {0, 10, 12, 13, 14, 15, 16, 17, 18, 20, 22, 24};
        struct af_store *s = open_store();
        struct af_buf sound = AF_BUF_INIT;

        fill(s, 2);
        af_store_close(s);
        cr_assert_eq(af_io_read_file(data_path, 64u << 20, &sound), 0);
        for (size_t page = 0; page < sound.size / 4096; page++)
                for (size_t i = 0; i < AF_ARRAY_SIZE(places); i++) {
                        size_t at = places[i];
                        uint8_t b = sound.data[page * 4096 + at] ^ (uint8_t)(1u << (at * 5 + page) % 8);
                        int status, fd = open(data_path, O_RDWR | O_TRUNC);
                        pid_t pid;

                        cr_assert_eq(write(fd, sound.data, sound.size), (ssize_t)sound.size);
                        cr_assert_eq(pwrite(fd, &b, 1, (off_t)(page * 4096 + at)), 1);
                        close(fd);
                        pid = fork();
                        if (pid == 0)
                                _exit(use_damaged(2));
                        cr_assert_eq(waitpid(pid, &status, 0), pid);
                        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) <= 2, "page %zu byte %zu: status %x", page, at,
                                  (unsigned)status);
                }
        af_buf_deinit(&sound);
}

/* A page of the tree is lost; what the others have is not. */
Test(store, C01_what_is_whole_is_taken_over, .init = setup, .fini = teardown) {
        struct af_store *s = open_store();
        struct af_buf buf = AF_BUF_INIT;
        struct af_store_stats st;
        int fd, lost = 0;

        fill(s, 200); /* a branch, and leaves below it */
        af_store_close(s);
        cr_assert_eq(af_io_read_file(data_path, 64u << 20, &buf), 0);
        fd = open(data_path, O_WRONLY);
        for (size_t at = 2 * 4096; at < buf.size; at += 4096)
                if (buf.data[at + 10] == 2 && memmem(buf.data + at, 4096, "key17", 5)) /* those of older commits too */
                        lost += pwrite(fd, "\xff\xff\xff\xff", 4, (off_t)at + 12) == 4;
        close(fd);
        af_buf_deinit(&buf);
        s = open_store();
        af_store_stats(s, &st);
        int right = count_right(s, 200);
        cr_assert(lost && right > 50 && right < 200, "%d of 200 after the loss of %d pages", right, lost);
        cr_assert_eq(st.n_records[AF_TABLE_KERNELS], (uint64_t)right);
        fill(s, 200);
        cr_assert_eq(count_right(s, 200), 200);
        af_store_close(s);
}

static struct af_store *crash_store;
static void on_crash(int sig) {
        af_store_mark_suspect(crash_store);
        signal(sig, SIG_DFL);
        raise(sig);
}

Test(store, a_crash_inside_lmdb_sets_the_files_aside, .init = setup, .fini = teardown) {
        struct af_store *s = open_store();
        char aside[4200];
        int status, fd;
        pid_t pid;

        fill(s, 40);
        af_store_close(s);
        pid = fork();
        if (pid == 0) {
                setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
                crash_store = open_store();
                signal(SIGBUS, on_crash);
                signal(SIGSEGV, on_crash);
                fd = open(data_path, O_WRONLY);
                (void)!ftruncate(fd, 8192); /* under the live map */
                count_right(crash_store, 40);
                _exit(0);
        }
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        cr_assert(WIFSIGNALED(status));
        s = open_store();
        cr_assert_eq(count_right(s, 40), 0);
        fill(s, 3);
        snprintf(aside, sizeof(aside), "%s/lmdb.aside/data.mdb", dir);
        cr_assert_eq(access(aside, F_OK), 0);
        af_store_close(s);
}

Test(store, another_schema_is_set_aside_unread, .init = setup, .fini = teardown) {
        struct af_store *s = open_store();
        char schema[4200], aside[4200];
        FILE *f;

        fill(s, 3);
        af_store_close(s);
        snprintf(schema, sizeof(schema), "%s/lmdb/schema", dir);
        f = fopen(schema, "w");
        fputs("autofused-store 2 little-endian 64\n", f);
        fclose(f);
        s = open_store();
        cr_assert_eq(count_right(s, 3), 0);
        snprintf(aside, sizeof(aside), "%s/lmdb.aside/data.mdb", dir);
        cr_assert_eq(access(aside, F_OK), 0);
        af_store_close(s);
}

static int try_open(char **ret_why) {
        struct af_store *s;
        int r = af_store_open(&(struct af_store_config){.dir = dir}, &s, ret_why);

        if (r == 0)
                af_store_close(s);
        return r;
}

Test(store, second_open_is_refused, .init = setup, .fini = teardown) {
        struct af_store *s = open_store();
        char *why;
        int status;
        pid_t pid;

        cr_assert_eq(try_open(&why), AF_STORE_E_LOCKED);
        cr_assert(strstr(why, "in use by another"), "%s", why);
        cr_assert_null(strchr(why, '\n'));
        free(why);
        pid = fork();
        if (pid == 0)
                _exit(try_open(&why));
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        cr_assert_eq(WEXITSTATUS(status), AF_STORE_E_LOCKED);
        af_store_close(s);
        cr_assert_eq(try_open(&why), 0);
}

Test(store, directories_that_are_not_private_are_refused, .init = setup, .fini = teardown) {
        char *why, other[4200];

        cr_assert_eq(mkdir(dir, 0700), 0);
        for (int i = 0; i < 3; i++) {
                cr_assert_eq(chmod(dir, (mode_t[]){0777, 0755, 0720}[i]), 0);
                cr_assert_eq(try_open(&why), AF_STORE_E_DIR);
                cr_assert(strstr(why, "must be 0700"), "%s", why);
                free(why);
        }
        cr_assert_eq(rmdir(dir), 0);
        snprintf(other, sizeof(other), "%s/other", base);
        cr_assert_eq(mkdir(other, 0700), 0);
        cr_assert_eq(symlink(other, dir), 0);
        cr_assert_eq(try_open(&why), AF_STORE_E_DIR);
        cr_assert(strstr(why, "symbolic link"), "%s", why);
        free(why);
        unlink(dir);
        cr_assert_eq(close(open(dir, O_CREAT | O_WRONLY, 0600)), 0);
        cr_assert_eq(try_open(&why), AF_STORE_E_DIR);
        cr_assert(strstr(why, "not a directory"), "%s", why);
        free(why);
        unlink(dir);
        if (geteuid() == 0) {
                cr_assert_eq(mkdir(dir, 0700), 0);
                cr_assert_eq(chown(dir, 12345, 12345), 0);
                cr_assert_eq(try_open(&why), AF_STORE_E_DIR);
                cr_assert(strstr(why, "belongs to uid 12345"), "%s", why);
                free(why);
        }
}

/* RLIMIT_FSIZE stands for a full disk: writes beyond it give EFBIG. */
Test(store, disk_full_stores_nothing_and_then_recovers, .init = setup, .fini = teardown, .timeout = 120) {
        struct af_store *s = open_store();
        static uint8_t value[200000];
        struct rlimit old;
        char key[32];
        int i, r = 0;

        signal(SIGXFSZ, SIG_IGN);
        getrlimit(RLIMIT_FSIZE, &old);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){2u << 20, old.rlim_max});
        for (i = 0; i < 50 && r == 0; i++) {
                struct af_store_record rec = big_record(i, key, value, sizeof(value));

                r = put_wait(s, &rec, 1);
        }
        cr_assert_eq(r, AF_STORE_E_FULL);
        cr_assert_null(get(s, key, NULL), "nothing of it is stored");
        setrlimit(RLIMIT_FSIZE, &old);
        for (i = 100; i < 110; i++) {
                struct af_store_record rec = big_record(i, key, value, sizeof(value));
                char *got;

                cr_assert_eq(put_wait(s, &rec, 1), 0);
                got = get(s, key, NULL);
                cr_assert_not_null(got);
                free(got);
        }
        af_store_close(s);
}

static void child_puts(int fd) {
        struct af_store *s = open_store();
        static uint8_t value[20000];
        char key[32];

        for (int i = 0;; i++) {
                struct af_store_record r = big_record(i, key, value, sizeof(value));

                if (put_wait(s, &r, 1) || write(fd, &i, sizeof(i)) != sizeof(i))
                        _exit(1);
        }
}

Test(store, kill_9_loses_nothing_committed, .init = setup, .fini = teardown, .timeout = 120) {
        static uint8_t want[20000];

        for (int round = 0; round < 10; round++) {
                struct af_store *s;
                int fds[2], last = -1, i, n_want = 3 + round * 5;
                pid_t pid;

                cr_assert_eq(pipe(fds), 0);
                pid = fork();
                if (pid == 0) {
                        close(fds[0]);
                        child_puts(fds[1]);
                }
                close(fds[1]);
                while (read(fds[0], &i, sizeof(i)) == sizeof(i)) {
                        last = i;
                        if (i == n_want)
                                kill(pid, SIGKILL);
                }
                close(fds[0]);
                waitpid(pid, NULL, 0);
                s = open_store();
                for (i = 0; i <= last; i++) {
                        char key[32], *got;
                        size_t n;

                        big_record(i, key, want, sizeof(want));
                        got = get(s, key, &n);
                        cr_assert(got && n == sizeof(want) && memcmp(got, want, n) == 0, "round %d record %d of %d", round, i, last);
                        free(got);
                }
                af_store_close(s);
        }
}

Test(store, a_read_only_directory_serves_hits, .init = setup, .fini = teardown) {
        int status;
        pid_t pid;

        if (geteuid() == 0)
                cr_assert_eq(chmod(base, 0755), 0);
        cr_assert_eq(mkdir(dir, 0700), 0);
        if (geteuid() == 0)
                cr_assert_eq(chown(dir, 12345, 12345), 0);
        pid = fork();
        if (pid == 0) {
                struct af_store_record r = kernel("k", "v", 2);
                struct af_store *s;

                if (geteuid() == 0 && (setgid(12345) || setuid(12345)))
                        _exit(9);
                s = open_store();
                if (put_wait(s, &r, 1))
                        _exit(2);
                af_store_close(s);
                chmod(dir, 0555);
                s = open_store();
                if (!af_store_read_only(s) || !has(s, "k", "v"))
                        _exit(3);
                if (put_wait(s, &r, 1) != -EROFS)
                        _exit(4);
                af_store_close(s);
                /* Damaged, it is refused by that name. */
                int fd = open(data_path, O_WRONLY);
                for (off_t at = 2 * 4096; at < 12 * 4096; at += 4096)
                        (void)!pwrite(fd, "\xff\xff", 2, at + 14);
                close(fd);
                char *why = NULL;
                if (af_store_open(&(struct af_store_config){.dir = dir}, &s, &why) != -EUCLEAN || !why || !strstr(why, "cleaning"))
                        _exit(5);
                free(why);
                _exit(0);
        }
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", status);
}
