/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A probe kept on disk, so that a new process need not run the driver a dozen times and digest its programs again.
 *
 *   "afprobe1"  key[32]  u32 kind  driver  version  flags  linker  argv  files  check[16]
 *   strings: u32 length, bytes. argv: u32 n, strings. files: u32 n, each: role, path, u64 dev inode size mtime ctime, digest[32]
 *   check: XXH3-128 over everything before it
 *
 * It counts only where stat says of every file what it said then.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "compiler/toolchain/internal.h"

static const char magic[8] = {'a', 'f', 'p', 'r', 'o', 'b', 'e', '1'};

static bool memo_path(const struct af_toolchain *t, const struct af_digest *key, char path[4096]) {
        char hex[AF_DIGEST_HEX_SIZE];

        if (!t->config.pch_dir)
                return false;
        af_digest_hex(key, hex);
        return snprintf(path, 4096, "%s/probe-%.32s", t->config.pch_dir, hex) < 4096;
}

static const char *get_str(struct af_arena *arena, struct af_cursor *c) {
        uint32_t n;
        const uint8_t *p = af_cursor_field(c, &n);

        return p ? af_arena_memdup(arena, p, n) : NULL;
}

static void put_str(struct af_buf *b, const char *s) {
        af_buf_put_field(b, s ? s : "", s ? strlen(s) : 0);
}

static bool read_files(struct af_arena *arena, struct af_cursor *c, struct af_closure *closure) {
        uint32_t n = af_cursor_u32(c);

        if (c->error || n > 65536)
                return false;
        closure->files = af_arena_calloc(arena, n + 1, sizeof(*closure->files));
        if (!closure->files)
                return false;
        closure->cap = n + 1;
        for (; closure->n < n; closure->n++) {
                struct af_closure_file *f = &closure->files[closure->n];
                struct af_file_id now;
                f->role = get_str(arena, c);
                f->path = get_str(arena, c);
                f->id = (struct af_file_id){.dev = af_cursor_u64(c), .inode = af_cursor_u64(c), .size = af_cursor_u64(c)};
                f->id.mtime_ns = (int64_t)af_cursor_u64(c);
                f->id.ctime_ns = (int64_t)af_cursor_u64(c);
                const uint8_t *digest = af_cursor_bytes(c, sizeof(f->digest.bytes));
                if (!f->role || !f->path || !digest || af_file_id_get(f->path, &now) < 0 || !af_file_id_equal(&now, &f->id))
                        return false;
                memcpy(f->digest.bytes, digest, sizeof(f->digest.bytes));
        }
        return !c->error && c->at == c->size;
}

static bool read_all(struct af_arena *arena, const struct af_digest *key, struct af_cursor *c, struct af_toolchain *t,
                     struct af_closure *closure) {
        const uint8_t *head = af_cursor_bytes(c, sizeof(magic)), *of = af_cursor_bytes(c, sizeof(key->bytes));
        struct af_argv argv = {.arena = arena};

        if (!head || !of || memcmp(head, magic, sizeof(magic)) || memcmp(of, key->bytes, sizeof(key->bytes)))
                return false;
        t->kind = (enum af_toolchain_kind)af_cursor_u32(c);
        t->driver = get_str(arena, c);
        t->version = get_str(arena, c);
        t->flags = get_str(arena, c);
        t->linker = get_str(arena, c);
        if (t->linker && !t->linker[0])
                t->linker = NULL;
        uint32_t n = af_cursor_u32(c);
        for (uint32_t i = 0; i < n && !argv.failed; i++)
                af_argv_add(&argv, get_str(arena, c));
        t->argv = af_argv_take(&argv);
        return t->driver && t->version && t->flags && t->argv && read_files(arena, c, closure);
}

int af_memo_load(struct af_arena *arena, const struct af_digest *key, struct af_toolchain *t, struct af_closure *closure) {
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        char path[4096];
        struct stat st;
        struct af_check check;

        if (!memo_path(t, key, path) || af_dir_ours(t->config.pch_dir) < 0)
                return 1;
        if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode) || (st.st_uid != geteuid() && st.st_uid != 0) ||
            (st.st_mode & (S_IWGRP | S_IWOTH)))
                return 1;
        if (af_io_read_file(path, 16u << 20, &text) < 0 || text.size < sizeof(check.bytes))
                return 1;
        size_t n = text.size - sizeof(check.bytes);
        af_check_bytes(text.data, n, &check);
        if (memcmp(check.bytes, text.data + n, sizeof(check.bytes)) != 0)
                return 1;
        struct af_cursor c = af_cursor_make(text.data, n);
        struct af_toolchain read = *t;
        if (!read_all(arena, key, &c, &read, closure))
                return 1;
        *t = read;
        return 0;
}

void af_memo_save(const struct af_digest *key, const struct af_toolchain *t, const struct af_closure *c) {
        AF_CLEANUP(af_buf_deinit) struct af_buf b = AF_BUF_INIT;
        char path[4096];
        struct af_check check;
        uint32_t n = 0;

        if (!memo_path(t, key, path) || af_io_make_dirs(t->config.pch_dir, 0700) < 0 || af_dir_ours(t->config.pch_dir) < 0)
                return;
        af_buf_put(&b, magic, sizeof(magic));
        af_buf_put(&b, key->bytes, sizeof(key->bytes));
        af_buf_put_u32(&b, t->kind);
        put_str(&b, t->driver);
        put_str(&b, t->version);
        put_str(&b, t->flags);
        put_str(&b, t->linker);
        while (t->argv[n])
                n++;
        af_buf_put_u32(&b, n);
        for (uint32_t i = 0; i < n; i++)
                put_str(&b, t->argv[i]);
        af_buf_put_u32(&b, c->n);
        for (uint32_t i = 0; i < c->n; i++) {
                const struct af_closure_file *f = &c->files[i];
                put_str(&b, f->role);
                put_str(&b, f->path);
                af_buf_put_u64(&b, f->id.dev);
                af_buf_put_u64(&b, f->id.inode);
                af_buf_put_u64(&b, f->id.size);
                af_buf_put_u64(&b, (uint64_t)f->id.mtime_ns);
                af_buf_put_u64(&b, (uint64_t)f->id.ctime_ns);
                af_buf_put(&b, f->digest.bytes, sizeof(f->digest.bytes));
        }
        if (af_buf_error(&b))
                return;
        af_check_bytes(b.data, b.size, &check);
        af_buf_put(&b, check.bytes, sizeof(check.bytes));
        if (!af_buf_error(&b) && af_io_publish_file(path, b.data, b.size, 0600) < 0)
                return; /* without it the next probe takes longer */
}
