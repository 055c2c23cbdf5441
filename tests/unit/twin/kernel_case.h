/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles a kernel of tests/unit/twin/kernels (or a text) with the host toolchain and runs it: for the tests of twin/ and runtime/. */
#pragma once

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "compiler/toolchain/toolchain.h"
#include "runtime/host_kernel.h"

static inline const char *source_root(void) {
        const char *root = getenv("AF_SOURCE_ROOT");

        cr_assert_not_null(root, "AF_SOURCE_ROOT is not set");
        return root;
}

/* Where tests keep probes and precompiled headers: in the build directory, shared by all. */
static inline const char *cache_dir(struct af_arena *arena) {
        const char *build = getenv("AF_BUILD_ROOT");

        return build ? af_arena_printf(arena, "%s/pch", build) : NULL;
}

static inline void toolchain_probe(struct af_arena *arena, enum af_twin twin, const char *extra_flags, struct af_toolchain *ret) {
        struct af_diags diags = {0};
        struct af_soc soc = {.arch = "dav-2201", .ccec_arch = "dav-c220-vec"};
        struct af_toolchain_config config = {.id = "host",
                                             .kind = AF_TOOLCHAIN_HOST,
                                             .extra_flags = extra_flags,
                                             .include_root = source_root(),
                                             .twin_dir = af_arena_printf(arena, "%s/twin", source_root()),
                                             .pch_dir = cache_dir(arena)};
        int r = af_toolchain_probe(arena, &config, &soc, twin, ret, &diags);

        cr_assert_eq(r, 0, "probe: %d %s", r, diags.n_items ? diags.items[0].what : "");
        af_diags_deinit(&diags);
}

static inline struct af_host_kernel *kernel_build_text(const char *symbol, const char *text, enum af_twin twin, const char *flags) {
        struct af_arena arena;
        struct af_toolchain t;
        struct af_buf binary = AF_BUF_INIT, err = AF_BUF_INIT;
        struct af_host_kernel *k = NULL;
        char *why = NULL;

        af_arena_init(&arena, 0);
        toolchain_probe(&arena, twin, flags, &t);
        int r = af_toolchain_compile(&t, symbol, text, strlen(text), 120000, -1, &binary, &err, NULL);
        cr_assert_eq(r, 0, "compile: %d\n%.*s", r, (int)err.size, (char *)err.data);
        r = af_host_kernel_load(binary.data, binary.size, &k, &why);
        cr_assert_eq(r, 0, "load: %d %s", r, why ? why : "");
        af_buf_deinit(&binary);
        af_buf_deinit(&err);
        af_arena_deinit(&arena);
        return k;
}

/* file: a name under kernels/; symbol: the entry in it. */
static inline struct af_host_kernel *kernel_build(const char *file, const char *symbol, enum af_twin twin) {
        struct af_buf text = AF_BUF_INIT;
        char path[4096];

        snprintf(path, sizeof(path), "%s/tests/unit/twin/kernels/%s", source_root(), file);
        cr_assert_eq(af_io_read_file(path, 1 << 20, &text), 0, "%s", path);
        af_buf_put_u8(&text, 0);
        struct af_host_kernel *k = kernel_build_text(symbol, (char *)text.data, twin, NULL);
        af_buf_deinit(&text);
        return k;
}

/* Runs all blocks; returns af_host_kernel_launch's code, error: its text. */
static inline int kernel_run(struct af_host_kernel *k, void *const *args, const uint64_t *bytes, uint32_t n_args, const void *tiling,
                             uint32_t blocks, struct af_twin_stats *stats, char error[512]) {
        struct af_twin_launch l = {.args = args,
                                   .arg_bytes = bytes,
                                   .n_args = n_args,
                                   .tiling = tiling,
                                   .block_dim = blocks,
                                   .n_blocks = blocks,
                                   .stats = stats,
                                   .error = error,
                                   .error_size = error ? 512 : 0};
        return af_host_kernel_launch(k, &l);
}
