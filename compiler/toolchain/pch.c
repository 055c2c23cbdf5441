/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The precompiled twin: <pch_dir>/<key>/kernel_operator.h.gch, put first on the include path; a compiler that cannot use it goes on to
 * the header itself. Made once per closure and flags, published by rename; a directory that others can write is not used. The compiler
 * takes damaged ones as they are, so that kernel_operator.h.sum beside it holds the check of its bytes: where it differs, it is made anew.
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

/* Whole and ours. Reads all of it: a few ms, where a compile takes a second. */
static bool present(struct af_arena *arena, const struct af_toolchain *t, const char *dir, const char *file) {
        AF_CLEANUP(af_buf_deinit) struct af_buf bytes = AF_BUF_INIT;
        AF_CLEANUP(af_buf_deinit) struct af_buf sum = AF_BUF_INIT;
        const char *sum_file = sum_path(arena, dir);
        struct af_check check;

        if (!sum_file || af_dir_ours(t->config.pch_dir) < 0 || af_dir_ours(dir) < 0 || !file_ours(file) || !file_ours(sum_file))
                return false;
        if (af_io_read_file(sum_file, sizeof(check.bytes), &sum) || af_io_read_file(file, MAX_BYTES, &bytes))
                return false;
        check_of(dir, &bytes, &check);
        return sum.size == sizeof(check.bytes) && memcmp(sum.data, check.bytes, sizeof(check.bytes)) == 0;
}

/* The sum comes last: without it the other does not count. Two makers at once may mix theirs; then it is made once more. */
static int publish(struct af_arena *arena, const char *dir, const char *file, const struct af_buf *bytes) {
        const char *sum_file = sum_path(arena, dir);
        struct af_check check;

        check_of(dir, bytes, &check);
        int r = sum_file ? af_io_publish_file(file, bytes->data, bytes->size, 0644) : -ENOMEM;
        return r < 0 ? r : af_io_publish_file(sum_file, check.bytes, sizeof(check.bytes), 0644);
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
