/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

static char *dir;
static char path_memory[2][512];

static const char *in_dir(int i, const char *name) {
        snprintf(path_memory[i], sizeof(path_memory[i]), "%s/%s", dir, name);
        return path_memory[i];
}

static void set_up(void) {
        cr_assert_eq(af_io_temp_dir(NULL, "io", &dir), 0);
}

static void tear_down(void) {
        cr_assert_eq(af_io_remove_tree(dir), 0);
        cr_assert_neq(access(dir, F_OK), 0);
        free(dir);
}

TestSuite(io, .init = set_up, .fini = tear_down);

Test(io, publishes_new_files_only) {
        AF_CLEANUP(af_buf_deinit) struct af_buf buf = AF_BUF_INIT;
        struct stat st;

        cr_assert_eq(af_io_publish_new_file(in_dir(0, "f"), "one", 3, 0600), 0);
        cr_assert_eq(af_io_publish_new_file(in_dir(0, "f"), "other", 5, 0644), -EEXIST);
        cr_assert_eq(symlink("nowhere", in_dir(0, "l")), 0);
        cr_assert_eq(af_io_publish_new_file(in_dir(0, "l"), "x", 1, 0600), -EEXIST);
        cr_assert_eq(af_io_read_file(in_dir(0, "f"), 100, &buf), 0);
        cr_assert(buf.size == 3 && memcmp(buf.data, "one", 3) == 0);
        cr_assert(stat(in_dir(0, "f"), &st) == 0 && (st.st_mode & 0777) == 0600);
}

Test(io, publishes_whole_files) {
        struct af_buf b = AF_BUF_INIT;
        struct stat st;

        cr_assert_eq(af_io_publish_file(in_dir(0, "f"), "one", 3, 0640), 0);
        cr_assert_eq(af_io_publish_file(in_dir(0, "f"), "second", 6, 0600), 0);
        cr_assert_eq(af_io_read_file(in_dir(0, "f"), 100, &b), 0);
        cr_assert_eq(b.size, 6);
        cr_assert_arr_eq(b.data, "second", 6);
        cr_assert_eq(stat(in_dir(0, "f"), &st), 0);
        cr_assert_eq(st.st_mode & 07777, 0600);
        cr_assert_eq(af_io_publish_file(in_dir(0, "none/f"), "x", 1, 0600), -ENOENT);
        cr_assert_eq(mkdir(in_dir(1, "d"), 0700), 0);
        cr_assert_lt(af_io_publish_file(in_dir(1, "d"), "x", 1, 0600), 0);
        /* No temporary is left behind. */
        cr_assert_eq(rmdir(in_dir(1, "d")), 0);
        cr_assert_eq(unlink(in_dir(0, "f")), 0);
        cr_assert_eq(rmdir(dir), 0);
        cr_assert_eq(mkdir(dir, 0700), 0);
        af_buf_deinit(&b);
}

Test(io, reads_up_to_a_limit) {
        struct af_buf b = AF_BUF_INIT;
        char *big = calloc(1, 200000);

        cr_assert_eq(af_io_publish_file(in_dir(0, "f"), big, 200000, 0600), 0);
        cr_assert_eq(af_io_read_file(in_dir(0, "f"), 199999, &b), -EFBIG);
        af_buf_clear(&b);
        cr_assert_eq(af_io_read_file(in_dir(0, "f"), 200000, &b), 0);
        cr_assert_eq(b.size, 200000);
        cr_assert_eq(af_io_read_file(in_dir(0, "none"), 1, &b), -ENOENT);
        cr_assert_eq(af_io_read_file(dir, 1, &b), -EISDIR);
        cr_assert_eq(af_io_write_fd(-1, "x", 1), -EBADF);
        free(big);
        af_buf_deinit(&b);
}

Test(io, makes_directories) {
        struct stat st;

        cr_assert_eq(af_io_make_dirs(in_dir(0, "a//b/c/"), 0700), 0);
        cr_assert_eq(stat(in_dir(0, "a/b/c"), &st), 0);
        cr_assert(S_ISDIR(st.st_mode));
        cr_assert_eq(af_io_make_dirs(in_dir(0, "a/b/c"), 0700), 0);
        cr_assert_eq(af_io_publish_file(in_dir(0, "f"), "", 0, 0600), 0);
        cr_assert_eq(af_io_make_dirs(in_dir(0, "f"), 0700), -ENOTDIR);
        cr_assert_lt(af_io_make_dirs(in_dir(0, "f/x"), 0700), 0);
        cr_assert_eq(af_io_make_dirs("/", 0700), 0);
        cr_assert_lt(af_io_make_dirs("", 0700), 0);
}

Test(io, removal_does_not_follow_links) {
        cr_assert_eq(af_io_make_dirs(in_dir(0, "tree/sub"), 0700), 0);
        cr_assert_eq(af_io_make_dirs(in_dir(0, "kept"), 0700), 0);
        cr_assert_eq(af_io_publish_file(in_dir(0, "kept/f"), "x", 1, 0600), 0);
        cr_assert_eq(symlink(in_dir(0, "kept"), in_dir(1, "tree/sub/link")), 0);
        cr_assert_eq(symlink("nowhere", in_dir(1, "tree/dangling")), 0);
        cr_assert_eq(symlink(in_dir(0, "kept"), in_dir(1, "top")), 0);
        cr_assert_eq(mkfifo(in_dir(0, "tree/fifo"), 0600), 0);
        cr_assert_eq(af_io_remove_tree(in_dir(0, "tree")), 0);
        cr_assert_neq(access(in_dir(0, "tree"), F_OK), 0);
        cr_assert_eq(af_io_remove_tree(in_dir(0, "top")), 0);
        cr_assert_eq(access(in_dir(0, "kept/f"), F_OK), 0);
        cr_assert_eq(af_io_remove_tree(in_dir(0, "tree")), 0, "a missing one is fine");
        cr_assert_eq(af_io_remove_tree(in_dir(0, "kept/f")), 0, "a file too");
}

Test(io, removal_stops_at_its_depth) {
        int at = open(dir, O_RDONLY | O_DIRECTORY);

        for (int i = 0; i < 300; i++) {
                cr_assert_eq(mkdirat(at, "d", 0700), 0);
                int next = openat(at, "d", O_RDONLY | O_DIRECTORY);
                close(at);
                at = next;
        }
        close(at);
        cr_assert_eq(af_io_remove_tree(in_dir(0, "d")), -ELOOP);
        /* Bring the deep half up, so that the tree can go. */
        at = open(dir, O_RDONLY | O_DIRECTORY);
        int deep = dup(at);
        for (int i = 0; i < 150; i++) {
                int next = openat(deep, "d", O_RDONLY | O_DIRECTORY);
                close(deep);
                deep = next;
        }
        cr_assert_eq(renameat(deep, "d", at, "e"), 0);
        close(deep);
        close(at);
}

Test(io, temporary_directories_honour_tmpdir) {
        char *inner;

        setenv("TMPDIR", dir, 1);
        cr_assert_eq(af_io_temp_dir(NULL, "n", &inner), 0);
        cr_assert_eq(strncmp(inner, dir, strlen(dir)), 0);
        free(inner);
        setenv("TMPDIR", in_dir(0, "none"), 1);
        cr_assert_eq(af_io_temp_dir(NULL, "n", &inner), -ENOENT);
        cr_assert_eq(af_io_temp_dir(dir, "n", &inner), 0);
        free(inner);
}

Test(io, memfds_are_sealed) {
        char *bytes = malloc(100000);
        const void *p;
        size_t n;

        memset(bytes, 'q', 100000);
        int fd = af_io_memfd("bundle", bytes, 100000, true);
        cr_assert_geq(fd, 0);
        cr_assert_eq(af_io_check_sealed(fd), 0);
        cr_assert_lt(write(fd, "x", 1), 0);
        cr_assert_lt(ftruncate(fd, 1), 0);
        cr_assert_eq(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
        cr_assert_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        cr_assert_eq(af_io_map_fd(fd, &p, &n), 0);
        cr_assert_eq(n, 100000);
        cr_assert_arr_eq(p, bytes, n);
        af_io_unmap(p, n);
        close(fd);
        free(bytes);
        fd = af_io_memfd("open", "abc", 3, false);
        cr_assert_eq(af_io_check_sealed(fd), -EPERM);
        cr_assert_eq(lseek(fd, 0, SEEK_CUR), 0);
        close(fd);
        fd = open("/dev/null", O_RDONLY);
        cr_assert_eq(af_io_check_sealed(fd), -EPERM);
        cr_assert_eq(af_io_map_fd(fd, &p, &n), -EINVAL);
        close(fd);
        cr_assert_eq(af_io_map_fd(-1, &p, &n), -EBADF);
        fd = af_io_memfd("empty", NULL, 0, true);
        cr_assert_eq(af_io_map_fd(fd, &p, &n), 0);
        cr_assert_eq(n, 0);
        cr_assert_not_null(p);
        af_io_unmap(p, n);
        close(fd);
}

Test(io, loads_the_files_of_a_directory_by_name) {
        static const char *const names[] = {"20_b.yaml", "10_a.yaml", ".hidden.yaml", "other.txt", ".yaml"};
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        struct af_io_file *files, one;
        uint32_t n;

        af_arena_init(&arena, 0);
        cr_assert_eq(af_io_load_dir(&arena, dir, ".yaml", 100, &files, &n), 0);
        cr_assert_eq(n, 0);
        for (size_t i = 0; i < AF_ARRAY_SIZE(names); i++)
                cr_assert_eq(af_io_publish_file(in_dir(0, names[i]), names[i], strlen(names[i]), 0600), 0);
        cr_assert_eq(af_io_load_dir(&arena, dir, ".yaml", 100, &files, &n), 0);
        cr_assert_eq(n, 2);
        for (uint32_t i = 0; i < n; i++) {
                cr_assert_str_eq(files[i].name, names[1 - i]);
                cr_assert_str_eq(files[i].path, in_dir(0, names[1 - i]));
                cr_assert_str_eq(files[i].text, names[1 - i]);
                cr_assert_eq(files[i].size, strlen(names[1 - i]));
        }
        cr_assert_eq(af_io_load_dir(&arena, dir, ".yaml", 8, &files, &n), -EFBIG);
        cr_assert_eq(af_io_load_dir(&arena, in_dir(0, "none"), ".yaml", 100, &files, &n), -ENOENT);
        cr_assert_eq(af_io_load_file(&arena, in_dir(0, "other.txt"), 100, &one), 0);
        cr_assert_str_eq(one.text, "other.txt");
        cr_assert_str_eq(one.name, one.path);
        cr_assert_eq(af_io_load_file(&arena, in_dir(0, "none"), 100, &one), -ENOENT);
}

Test(io, closep_keeps_errno) {
        int fd = dup(0), closed = fd;

        errno = 77;
        af_closep(&fd);
        cr_assert_eq(fd, -1);
        cr_assert_eq(errno, 77);
        af_closep(&fd);
        cr_assert_lt(fcntl(closed, F_GETFD), 0);
        char *p = NULL;
        af_freep(&p);
}
