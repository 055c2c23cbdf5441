/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One compile: a private directory with kernel.cpp, the compiler run inside it (relative names only, so that no path reaches the
 * output), its product read and looked at, the directory removed.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/utf8.h"
#include "compiler/toolchain/internal.h"
#include "runtime/host_kernel.h"

#define MAX_BINARY_BYTES (64u << 20)

struct compile {
        const struct af_toolchain *t;
        struct af_arena arena;
        char *dir;
        struct af_tool_env env;
        uint64_t deadline_us; /* 0: none */
        int lifeline_fd;
        struct af_buf *trace;
};

static void trace_run(struct compile *c, const char *what, const struct af_spawn_result *r) {
        if (c->trace)
                af_buf_printf(c->trace, "[CompileTrace] %s: %llu us, %llu KiB, %s %d\n", what, (unsigned long long)r->wall_us,
                              (unsigned long long)r->max_rss_kib,
                              r->timed_out ? "timed out"
                              : r->signal  ? "signal"
                                           : "exit",
                              r->signal ? r->signal : r->exit_code);
}

/* Milliseconds to the deadline, at least 1; 0: there is none. */
static uint64_t left_ms(const struct compile *c) {
        uint64_t now = af_clock_now_us();

        return !c->deadline_us ? 0 : now >= c->deadline_us ? 1 : (c->deadline_us - now) / 1000 + 1;
}

/* Runs one command in the directory. 0, -errno, AF_TOOLCHAIN_E_*. */
static int run(struct compile *c, const char *what, const char *const *argv, struct af_buf *err) {
        struct af_spawn_result result;
        struct af_spawn spawn = {.argv = argv, .envp = c->env.envp, .cwd = c->dir, .lifeline_fd = c->lifeline_fd, .new_group = true};
        size_t before = err->size;

        spawn.timeout_ms = left_ms(c);
        int r = af_spawn_run(&spawn, err, err, &result);
        if (r == -ENOENT || r == -EACCES)
                return AF_TOOLCHAIN_E_MISSING;
        if (r == -ENOSPC)
                return AF_TOOLCHAIN_E_SPACE;
        if (r < 0)
                return r;
        trace_run(c, what, &result);
        r = af_tool_classify(&result, err->data ? err->data + before : NULL, err->size - before);
        if (r == AF_TOOLCHAIN_E_KILLED && result.signal)
                af_buf_printf(err, "compiler killed by signal %d\n", result.signal);
        if (r == AF_TOOLCHAIN_E_TIMEOUT)
                af_buf_printf(err, "compiler stopped after %llu ms\n", (unsigned long long)result.wall_us / 1000);
        return r;
}

static int write_source(const struct compile *c, const char *symbol, const void *source, size_t n) {
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        char path[4096];

        af_buf_put(&text, source, n);
        if (c->t->kind == AF_TOOLCHAIN_HOST)
                af_buf_printf(&text, AF_TOOLCHAIN_SYMBOL_LINE, symbol);
        int r = af_buf_error(&text);
        if (r < 0)
                return r;
        if (snprintf(path, sizeof(path), "%s/kernel.cpp", c->dir) >= (int)sizeof(path))
                return -ENAMETOOLONG;
        r = af_io_publish_file(path, text.data, text.size, 0600);
        return r == -ENOSPC || r == -EDQUOT ? AF_TOOLCHAIN_E_SPACE : r;
}

static bool within(uint64_t offset, uint64_t n, uint64_t each, size_t size) {
        return offset <= size && (each == 0 || n <= (size - offset) / each);
}

/* All that its tables name lies in the file: one that a full disk or a dying linker cut off does not pass. */
static bool whole_elf(const struct af_buf *binary) {
        Elf64_Ehdr h;
        Elf64_Phdr p;
        Elf64_Shdr s;

        if (binary->size < sizeof(h) || memcmp(binary->data, ELFMAG, SELFMAG) != 0)
                return false;
        memcpy(&h, binary->data, sizeof(h));
        if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != ELFDATA2LSB || (h.e_phnum && h.e_phentsize != sizeof(p)) ||
            (h.e_shnum && h.e_shentsize != sizeof(s)) || !within(h.e_phoff, h.e_phnum, sizeof(p), binary->size) ||
            !within(h.e_shoff, h.e_shnum, sizeof(s), binary->size))
                return false;
        for (unsigned i = 0; i < h.e_phnum; i++) {
                memcpy(&p, binary->data + h.e_phoff + i * sizeof(p), sizeof(p));
                if (!within(p.p_offset, p.p_filesz, 1, binary->size))
                        return false;
        }
        for (unsigned i = 0; i < h.e_shnum; i++) {
                memcpy(&s, binary->data + h.e_shoff + i * sizeof(s), sizeof(s));
                if (s.sh_type != SHT_NOBITS && !within(s.sh_offset, s.sh_size, 1, binary->size))
                        return false;
        }
        return true;
}

/* Whether a product can be what was asked for; the loader looks closer. */
static bool usable(const struct compile *c, const struct af_buf *binary) {
        if (!whole_elf(binary))
                return false;
        return c->t->kind != AF_TOOLCHAIN_HOST || memmem(binary->data, binary->size, AF_TWIN_LAUNCH_SYMBOL, sizeof(AF_TWIN_LAUNCH_SYMBOL));
}

static int read_product(const struct compile *c, const char *name, struct af_buf *binary, struct af_buf *err) {
        char path[4096];
        struct stat st;

        snprintf(path, sizeof(path), "%s/%s", c->dir, name);
        int r = lstat(path, &st) < 0 ? -errno : 0;
        bool file = r == 0 && S_ISREG(st.st_mode); /* of a pipe or a link nothing is read */
        if (file)
                r = af_io_read_file(path, MAX_BINARY_BYTES, binary);
        if (r < 0 && r != -ENOENT)
                return r;
        if (file && usable(c, binary))
                return 0;
        af_buf_printf(err, "the compiler reported success but left %s\n",
                      r == -ENOENT                ? "no output file"
                      : file && binary->size == 0 ? "an empty output file"
                                                  : "something that is no kernel");
        return AF_TOOLCHAIN_E_NO_OUTPUT;
}

static int compile_host(struct compile *c, struct af_buf *binary, struct af_buf *err) {
        const char *const *plain, *const *with_pch;
        struct af_argv argv = {.arena = &c->arena};
        int r = af_toolchain_command(&c->arena, c->t, "kernel.cpp", "kernel.so", &plain);
        if (r)
                return r;
        char *pch = af_pch_get(&c->arena, c->t, c->dir, left_ms(c), c->lifeline_fd, c->trace);
        if (pch) {
                af_argv_add(&argv, plain[0]);
                af_argv_add(&argv, af_arena_printf(&c->arena, "-I%s", pch)); /* searched first: finds the .gch, or goes on */
                af_argv_add_all(&argv, plain + 1);
                with_pch = af_argv_take(&argv);
                if (!with_pch)
                        return -ENOMEM;
                size_t before = err->size;
                r = run(c, "compile with precompiled header", with_pch, err);
                if (r == 0)
                        return read_product(c, "kernel.so", binary, err);
                if (r < 0 || r == AF_TOOLCHAIN_E_TIMEOUT || r == AF_TOOLCHAIN_E_SPACE || r == AF_TOOLCHAIN_E_MISSING)
                        return r;
                err->size = before; /* once more without it, in case that was the cause */
        }
        r = run(c, "compile", plain, err);
        return r ? r : read_product(c, "kernel.so", binary, err);
}

static int compile_npu(struct compile *c, struct af_buf *binary, struct af_buf *err) {
        const char *const *argv;
        int r = af_toolchain_command(&c->arena, c->t, "kernel.cpp", c->t->linker ? "kernel.obj" : "kernel.o", &argv);
        if (r == 0)
                r = run(c, "compile", argv, err);
        if (r == 0 && c->t->linker) {
                r = af_npu_link_command(&c->arena, c->t, "kernel.obj", "kernel.o", &argv);
                if (r == 0)
                        r = run(c, "link", argv, err);
        }
        return r ? r : read_product(c, "kernel.o", binary, err);
}

/* Cuts every occurrence of prefix out of text from `from` on. */
static void cut_prefix(struct af_buf *text, size_t from, const char *prefix) {
        size_t n = prefix ? strlen(prefix) : 0, to = from;

        for (size_t at = from; n && at < text->size;) {
                uint8_t *hit = memmem(text->data + at, text->size - at, prefix, n);
                size_t kept = hit ? (size_t)(hit - text->data) - at : text->size - at;
                memmove(text->data + to, text->data + at, kept);
                to += kept;
                at += kept + (hit ? n : 0);
        }
        if (n)
                text->size = to;
}

/* Compilers colour, beep and quote any byte; people and JSON get UTF-8 without control characters. */
static void clean_text(struct af_buf *text, size_t from) {
        for (size_t at = from; at < text->size;) {
                size_t n = af_utf8_sequence(text->data + at, text->size - at);
                uint8_t b = text->data[at];
                if (n == 0 || b == 0x7f || (b < 0x20 && b != '\n' && b != '\t'))
                        text->data[at] = '?';
                at += n ? n : 1;
        }
}

static void relative_paths(struct compile *c, struct af_buf *err, size_t from) {
        const char *dirs[] = {c->dir, c->t->config.twin_dir, c->t->config.include_root};

        for (uint32_t i = 0; i < AF_ARRAY_SIZE(dirs); i++)
                if (dirs[i])
                        cut_prefix(err, from, af_arena_printf(&c->arena, "%s/", dirs[i]));
}

int af_toolchain_compile(const struct af_toolchain *t, const char *symbol, const void *source, size_t n, uint64_t timeout_ms,
                         int lifeline_fd, struct af_buf *ret_binary, struct af_buf *err, struct af_buf *trace) {
        AF_CLEANUP(af_buf_deinit) struct af_buf binary = AF_BUF_INIT;
        struct compile c = {.t = t, .lifeline_fd = lifeline_fd, .trace = trace};
        uint64_t start = af_clock_now_us();
        size_t before = err->size;

        c.deadline_us = timeout_ms ? start + timeout_ms * 1000 : 0;
        int r = af_io_temp_dir(t->config.tmp_dir, "autofused-compile", &c.dir);
        if (r < 0)
                return r == -ENOSPC ? AF_TOOLCHAIN_E_SPACE : r;
        af_arena_init(&c.arena, 0);
        af_tool_env_init(&c.env, c.dir, NULL);
        r = write_source(&c, symbol, source, n);
        if (r == 0)
                r = t->kind == AF_TOOLCHAIN_HOST ? compile_host(&c, &binary, err) : compile_npu(&c, &binary, err);
        relative_paths(&c, err, before);
        clean_text(err, before);
        if (r == 0) {
                af_buf_put(ret_binary, binary.data, binary.size);
                r = af_buf_error(ret_binary);
        }
        if (trace)
                af_buf_printf(trace, "[CompileTrace] %s: total %llu us, result %d, %zu bytes\n", symbol,
                              (unsigned long long)(af_clock_now_us() - start), r, binary.size);
        int removed = af_io_remove_tree(c.dir);
        (void)removed; /* a leftover in the temporary directory is no failure of the compile */
        free(c.dir);
        af_arena_deinit(&c.arena);
        return r;
}
