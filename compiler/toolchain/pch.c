/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The precompiled twin: <pch_dir>/<key>/kernel_operator.h.gch, put first on the include path; a compiler that cannot use it goes on to
 * the header itself. Made once per closure and flags, published by rename; a directory that others can write is not used. The compiler
 * takes damaged ones as they are, so that kernel_operator.h.sum beside it holds the check of its bytes: where it differs, it is made anew.
 *
 *   sum: check[16]  u64 dev inode size mtime ctime      what stat said of the file whose bytes were checked
 *
 * Where stat says the same again, its 10 MB are not read for every kernel.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "compiler/toolchain/internal.h"

#define MAKE_TIMEOUT_MS 120000u
#define MAX_BYTES       ((size_t)256 << 20)

static void note(struct af_buf *trace, const char *text) {
        if (trace)
                af_buf_printf(trace, "[CompileTrace] precompiled header: %s\n", text);
}

static char *key_dir(struct af_arena *arena, const struct af_toolchain *t) {
        struct af_hasher h;
        struct af_digest d;
        char hex[AF_DIGEST_HEX_SIZE];

        af_hasher_init(&h, "autofused.pch/1");
        af_hasher_field(&h, "closure", t->closure_digest.bytes, sizeof(t->closure_digest.bytes));
        af_hasher_str(&h, "flags", t->flags);
        af_hasher_str(&h, "twin", t->config.twin_dir); /* the compiler stores where it found the headers */
        af_hasher_final(&h, &d);
        af_digest_hex(&d, hex);
        return af_arena_printf(arena, "%s/%.32s", t->config.pch_dir, hex);
}

static bool file_ours(const char *file) {
        struct stat st;

        return lstat(file, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 && (st.st_uid == geteuid() || st.st_uid == 0) &&
               !(st.st_mode & (S_IWGRP | S_IWOTH));
}

static char *sum_path(struct af_arena *arena, const char *dir) {
        return af_arena_printf(arena, "%s/kernel_operator.h.sum", dir);
}

/* Of the bytes and of the key, which is the directory's name. */
static void check_of(const char *dir, const struct af_buf *bytes, struct af_check *ret_check) {
        const char *key = strrchr(dir, '/');

        af_check_pieces((struct af_piece[]){{key, strlen(key)}, {bytes->data, bytes->size}}, 2, ret_check);
}

struct sum {
        struct af_check check;
        struct af_file_id id;
};
#define SUM_BYTES (sizeof(struct af_check) + 5 * sizeof(uint64_t))

static int write_sum(const char *sum_file, const struct sum *sum) {
        AF_CLEANUP(af_buf_deinit) struct af_buf b = AF_BUF_INIT;

        af_buf_put(&b, sum->check.bytes, sizeof(sum->check.bytes));
        af_buf_put_u64(&b, sum->id.dev);
        af_buf_put_u64(&b, sum->id.inode);
        af_buf_put_u64(&b, sum->id.size);
        af_buf_put_u64(&b, (uint64_t)sum->id.mtime_ns);
        af_buf_put_u64(&b, (uint64_t)sum->id.ctime_ns);
        return af_buf_error(&b) ? af_buf_error(&b) : af_io_publish_file(sum_file, b.data, b.size, 0644);
}

static bool read_sum(const char *sum_file, struct sum *ret_sum) {
        AF_CLEANUP(af_buf_deinit) struct af_buf b = AF_BUF_INIT;

        if (!file_ours(sum_file) || af_io_read_file(sum_file, SUM_BYTES, &b) < 0)
                return false;
        struct af_cursor c = af_cursor_make(b.data, b.size);
        const uint8_t *check = af_cursor_bytes(&c, sizeof(ret_sum->check.bytes));
        if (check)
                memcpy(ret_sum->check.bytes, check, sizeof(ret_sum->check.bytes));
        ret_sum->id.dev = af_cursor_u64(&c);
        ret_sum->id.inode = af_cursor_u64(&c);
        ret_sum->id.size = af_cursor_u64(&c);
        ret_sum->id.mtime_ns = (int64_t)af_cursor_u64(&c);
        ret_sum->id.ctime_ns = (int64_t)af_cursor_u64(&c);
        return !c.error;
}

/* Whole and ours: the file whose bytes were checked, by stat; else its bytes are checked now. */
static bool present(struct af_arena *arena, const struct af_toolchain *t, const char *dir, const char *file) {
        AF_CLEANUP(af_buf_deinit) struct af_buf bytes = AF_BUF_INIT;
        const char *sum_file = sum_path(arena, dir);
        struct sum sum, now;

        if (!sum_file || af_dir_ours(t->config.pch_dir) < 0 || af_dir_ours(dir) < 0 || !file_ours(file) || !read_sum(sum_file, &sum))
                return false;
        /* The id before the bytes: a change in between shows at the next look. */
        if (af_file_id_get(file, &now.id) < 0)
                return false;
        if (af_file_id_equal(&now.id, &sum.id))
                return true;
        if (af_io_read_file(file, MAX_BYTES, &bytes) < 0)
                return false;
        check_of(dir, &bytes, &now.check);
        if (memcmp(now.check.bytes, sum.check.bytes, sizeof(now.check.bytes)) != 0)
                return false;
        int r = write_sum(sum_file, &now);
        (void)r; /* without it the next look reads all again */
        return true;
}

/* The sum comes last: without it the other does not count. Two makers at once may mix theirs: each file is whole, and the next change of
 * either shows. */
static int publish(struct af_arena *arena, const char *dir, const char *file, const struct af_buf *bytes) {
        const char *sum_file = sum_path(arena, dir);
        struct sum sum;

        check_of(dir, bytes, &sum.check);
        int r = sum_file ? af_io_publish_file(file, bytes->data, bytes->size, 0644) : -ENOMEM;
        if (r == 0)
                r = af_file_id_get(file, &sum.id);
        return r < 0 ? r : write_sum(sum_file, &sum);
}

/* Compiles into the job's own directory, then renames. */
static int make(struct af_arena *arena, const struct af_toolchain *t, const char *tmp, const char *dir, uint64_t timeout_ms,
                int lifeline_fd) {
        AF_CLEANUP(af_buf_deinit) struct af_buf err = AF_BUF_INIT;
        AF_CLEANUP(af_buf_deinit) struct af_buf made = AF_BUF_INIT;
        struct af_argv argv = {.arena = arena};
        struct af_tool_env env;
        struct af_spawn_result result;
        char *output = af_arena_printf(arena, "%s/precompiled", tmp), /* no name that the compiler would look for here */
                *target = af_arena_printf(arena, "%s/kernel_operator.h.gch", dir);

        af_argv_add_all(&argv, t->argv);
        af_argv_add(&argv, "-x");
        af_argv_add(&argv, "c++-header");
        af_argv_add(&argv, af_arena_printf(arena, "%s/kernel_operator.h", t->config.twin_dir));
        af_argv_add(&argv, "-o");
        af_argv_add(&argv, output);
        af_tool_env_init(&env, tmp, NULL);
        struct af_spawn spawn = {.argv = af_argv_take(&argv),
                                 .envp = env.envp,
                                 .cwd = tmp,
                                 .timeout_ms = timeout_ms ? AF_MIN(timeout_ms, MAKE_TIMEOUT_MS) : MAKE_TIMEOUT_MS,
                                 .lifeline_fd = lifeline_fd,
                                 .new_group = true};
        if (!spawn.argv || !output || !target)
                return -ENOMEM;
        int r = af_io_make_dirs(dir, 0700);
        if (r == 0)
                r = af_dir_ours(t->config.pch_dir);
        if (r == 0)
                r = af_dir_ours(dir);
        if (r == 0)
                r = af_spawn_run(&spawn, &err, &err, &result);
        if (r < 0)
                return r;
        if (result.signal || result.exit_code || result.timed_out)
                return -EIO;
        r = af_io_read_file(output, MAX_BYTES, &made);
        return r == 0 ? publish(arena, dir, target, &made) : r;
}

char *af_pch_get(struct af_arena *arena, const struct af_toolchain *t, const char *tmp, uint64_t timeout_ms, int lifeline_fd,
                 struct af_buf *trace) {
        if (!t->config.pch_dir || strstr(t->version, "clang")) /* clang takes a .gch only where it is named */
                return NULL;
        char *dir = key_dir(arena, t), *file = dir ? af_arena_printf(arena, "%s/kernel_operator.h.gch", dir) : NULL;
        if (!file)
                return NULL;
        if (present(arena, t, dir, file)) {
                note(trace, "hit");
                return dir;
        }
        int r = make(arena, t, tmp, dir, timeout_ms, lifeline_fd);
        if (r < 0) {
                note(trace, r == -EROFS || r == -EACCES ? "directory not writable, plain compile" : "not made, plain compile");
                return NULL;
        }
        note(trace, "made");
        return dir;
}
