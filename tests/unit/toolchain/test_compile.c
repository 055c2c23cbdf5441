/* SPDX-License-Identifier: Apache-2.0 */
/* How a compile can end, with a compiler that ends in each way; what a good one leaves. */
#include "tests/unit/twin/kernel_case.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"

static const char source[] =
        "#include \"kernel_operator.h\"\nextern \"C\" __global__ __aicore__ void k(GM_ADDR a) {\n        a[0] = 1;\n}\n";

struct case_dirs {
        struct af_arena arena;
        char *dir;
        struct af_toolchain t;
        struct af_buf binary, err, trace;
};

static void setup(struct case_dirs *c, const char *mode, const char *pch) {
        struct af_diags diags = {0};
        struct af_soc soc = {0};

        memset(c, 0, sizeof(*c));
        af_arena_init(&c->arena, 0);
        cr_assert_eq(af_io_temp_dir(NULL, "toolchain-test", &c->dir), 0);
        struct af_toolchain_config config = {.id = "host",
                                             .kind = AF_TOOLCHAIN_HOST,
                                             .driver = af_arena_printf(&c->arena, "%s/cxx-%s", c->dir, mode),
                                             .include_root = source_root(),
                                             .twin_dir = af_arena_printf(&c->arena, "%s/twin", source_root()),
                                             .pch_dir = pch ? af_arena_printf(&c->arena, "%s/%s", c->dir, pch) : NULL,
                                             .tmp_dir = c->dir};
        cr_assert_eq(symlink(af_arena_printf(&c->arena, "%s/tests/unit/toolchain/fake_cxx", source_root()), config.driver), 0);
        cr_assert_eq(af_toolchain_probe(&c->arena, &config, &soc, AF_TWIN_FAST, &c->t, &diags), 0);
        af_diags_deinit(&diags);
}

static void teardown(struct case_dirs *c) {
        cr_expect_eq(af_io_remove_tree(c->dir), 0);
        free(c->dir);
        af_buf_deinit(&c->binary);
        af_buf_deinit(&c->err);
        af_buf_deinit(&c->trace);
        af_arena_deinit(&c->arena);
}

static int compile(struct case_dirs *c, const char *text, uint64_t timeout_ms, int lifeline) {
        return af_toolchain_compile(&c->t, "k", text, strlen(text), timeout_ms, lifeline, &c->binary, &c->err, &c->trace);
}

/* Whether anything named like a compile's directory is left. */
static void expect_clean(const struct case_dirs *c) {
        char command[4200];

        snprintf(command, sizeof(command), "ls -d %s/autofused-compile* 2>/dev/null | grep -q .", c->dir);
        cr_expect_neq(system(command), 0, "a compile left its directory");
}

Test(compile, each_end_has_its_code) {
        static const struct {
                const char *mode;
                int code;
                const char *text;
        } ends[] = {
                {"fail", AF_TOOLCHAIN_E_REJECTED, "kernel.cpp:3:1: error: no such thing"},
                {"crash", AF_TOOLCHAIN_E_KILLED, "compiler killed by signal 11"},
                {"oom", AF_TOOLCHAIN_E_KILLED, "Killed signal terminated program cc1plus"},
                {"full", AF_TOOLCHAIN_E_SPACE, "No space left on device"},
                {"empty", AF_TOOLCHAIN_E_NO_OUTPUT, "left an empty output file"},
                {"nothing", AF_TOOLCHAIN_E_NO_OUTPUT, "left no output file"},
                {"junk", AF_TOOLCHAIN_E_NO_OUTPUT, "left something that is no kernel"},
        };

        for (uint32_t i = 0; i < AF_ARRAY_SIZE(ends); i++) {
                struct case_dirs c;
                setup(&c, ends[i].mode, NULL);
                cr_expect_eq(compile(&c, source, 30000, -1), ends[i].code, "%s", ends[i].mode);
                af_buf_put_u8(&c.err, 0);
                cr_expect_not_null(strstr((char *)c.err.data, ends[i].text), "%s: %s", ends[i].mode, (char *)c.err.data);
                cr_expect_eq(c.binary.size, 0);
                expect_clean(&c);
                teardown(&c);
        }
}

static pid_t read_pid(const char *dir) {
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        char path[4096];

        snprintf(path, sizeof(path), "%s/child", dir);
        cr_assert_eq(af_io_read_file(path, 64, &text), 0);
        af_buf_put_u8(&text, 0);
        return (pid_t)atoi((char *)text.data);
}

/* A killed process may stay a zombie for whoever adopts it: state Z or gone both count. */
static bool is_over(pid_t pid) {
        AF_CLEANUP(af_buf_deinit) struct af_buf stat = AF_BUF_INIT;
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/stat", pid);
        if (af_io_read_file(path, 4096, &stat) < 0)
                return true;
        af_buf_put_u8(&stat, 0);
        char *paren = strrchr((char *)stat.data, ')');
        return paren && (paren[2] == 'Z' || paren[2] == 'X');
}

static bool ends_soon(pid_t pid) {
        for (int i = 0; i < 200; i++) {
                if (is_over(pid))
                        return true;
                usleep(10000);
        }
        return false;
}

Test(compile, a_compiler_that_hangs_is_ended_with_its_children) {
        struct case_dirs c;
        uint64_t start = af_clock_now_us();

        setup(&c, "hang", NULL);
        cr_assert_eq(compile(&c, source, 600, -1), AF_TOOLCHAIN_E_TIMEOUT);
        cr_assert_lt(af_clock_now_us() - start, 20000000u);
        cr_assert(ends_soon(read_pid(c.dir)));
        expect_clean(&c);
        teardown(&c);
}

Test(compile, ends_when_the_lifeline_goes) {
        struct case_dirs c;
        int ends[2];

        setup(&c, "hang", NULL);
        cr_assert_eq(pipe(ends), 0);
        close(ends[1]);
        cr_assert_eq(compile(&c, source, 60000, ends[0]), -ECANCELED);
        expect_clean(&c);
        close(ends[0]);
        teardown(&c);
}

Test(compile, same_source_same_bytes_in_any_directory_with_or_without_precompiled_header) {
        struct case_dirs plain, pch;

        setup(&plain, "ok", NULL);
        setup(&pch, "ok", "pch");
        cr_assert_eq(compile(&plain, source, 60000, -1), 0, "%.*s", (int)plain.err.size, (char *)plain.err.data);
        cr_assert_eq(compile(&pch, source, 60000, -1), 0, "%.*s", (int)pch.err.size, (char *)pch.err.data);
        cr_assert_eq(plain.binary.size, pch.binary.size);
        cr_assert_eq(memcmp(plain.binary.data, pch.binary.data, pch.binary.size), 0);
        cr_assert(memmem(pch.trace.data, pch.trace.size, "precompiled header: made", 24));
        pch.binary.size = pch.trace.size = 0;
        cr_assert_eq(compile(&pch, source, 60000, -1), 0);
        cr_assert(memmem(pch.trace.data, pch.trace.size, "precompiled header: hit", 23));
        cr_assert_eq(memcmp(plain.binary.data, pch.binary.data, pch.binary.size), 0);
        cr_assert(!memmem(pch.binary.data, pch.binary.size, pch.dir, strlen(pch.dir)));
        cr_assert_eq(af_digest_equal(&plain.t.closure_digest, &pch.t.closure_digest), true);
        cr_assert_str_eq(plain.t.flags, pch.t.flags);
        cr_assert_null(strstr(plain.t.flags, source_root()), "a path in the flags: %s", plain.t.flags);
        cr_assert_null(strstr(plain.t.flags, "native"), "unresolved: %s", plain.t.flags);
        teardown(&plain);
        teardown(&pch);
}

Test(compile, without_a_usable_place_for_precompiled_headers_it_compiles_plainly) {
        struct case_dirs c;

        setup(&c, "ok", "cxx-ok/below"); /* below a file */
        cr_assert_eq(compile(&c, source, 60000, -1), 0);
        cr_assert(memmem(c.trace.data, c.trace.size, "plain compile", 13));
        teardown(&c);
}

Test(compile, a_damaged_precompiled_header_does_no_harm) {
        struct case_dirs c;
        char command[8400];

        setup(&c, "ok", "pch");
        cr_assert_eq(compile(&c, source, 60000, -1), 0);
        snprintf(command, sizeof(command), "for f in %s/pch/*/*.gch; do head -c 100000 \"$f\" > %s/cut && cat %s/cut > \"$f\"; done", c.dir,
                 c.dir, c.dir);
        cr_assert_eq(system(command), 0);
        c.binary.size = 0;
        cr_assert_eq(compile(&c, source, 60000, -1), 0, "%.*s", (int)c.err.size, (char *)c.err.data);
        cr_assert_gt(c.binary.size, 0);
        teardown(&c);
}

/* The compiler takes one with other contents, or with a bit turned, as it is. */
Test(compile, a_precompiled_header_of_other_bytes_is_made_anew) {
        struct case_dirs c;
        char command[16800];

        setup(&c, "ok", "pch");
        cr_assert_eq(compile(&c, source, 60000, -1), 0);
        struct af_buf right = c.binary;
        c.binary = (struct af_buf)AF_BUF_INIT;
        /* A byte in its middle; then its sum gone. */
        static const char *const damage[] = {
                "for f in %s/pch/*/*.gch; do printf '\\252\\125\\252' | dd of=\"$f\" bs=1 seek=3000000 conv=notrunc 2>&1; done",
                "rm %s/pch/*/*.sum",
        };
        for (size_t i = 0; i < AF_ARRAY_SIZE(damage); i++) {
                snprintf(command, sizeof(command), damage[i], c.dir);
                cr_assert_eq(system(command), 0);
                c.binary.size = c.trace.size = 0;
                cr_assert_eq(compile(&c, source, 60000, -1), 0, "%.*s", (int)c.err.size, (char *)c.err.data);
                cr_assert(memmem(c.trace.data, c.trace.size, "precompiled header: made", 24), "%.*s", (int)c.trace.size,
                          (char *)c.trace.data);
                cr_assert_eq(c.binary.size, right.size);
                cr_assert_eq(memcmp(c.binary.data, right.data, right.size), 0);
        }
        /* The same bytes in another file are as good, and then known by that file. */
        snprintf(command, sizeof(command), "for f in %s/pch/*/*.gch; do cp \"$f\" %s/same && mv %s/same \"$f\"; done", c.dir, c.dir, c.dir);
        cr_assert_eq(system(command), 0);
        for (int i = 0; i < 2; i++) {
                c.trace.size = 0;
                cr_assert_eq(compile(&c, source, 60000, -1), 0);
                cr_assert(memmem(c.trace.data, c.trace.size, "precompiled header: hit", 23));
        }
        af_buf_deinit(&right);
        teardown(&c);
}

Test(compile, names_a_compile_error_the_same_way_twice) {
        struct case_dirs c;
        static const char wrong[] =
                "#include \"kernel_operator.h\"\nusing namespace AscendC;\nextern \"C\" __global__ __aicore__ void k(GM_ADDR a) {\n"
                "        LocalTensor<half> h;\n        Adds(h, h, 1.0f, 8);\n}\n";

        setup(&c, "ok", "pch");
        cr_assert_eq(compile(&c, wrong, 60000, -1), AF_TOOLCHAIN_E_REJECTED);
        size_t first = c.err.size;
        cr_assert_eq(compile(&c, wrong, 60000, -1), AF_TOOLCHAIN_E_REJECTED);
        cr_assert_eq(c.err.size, 2 * first, "%.*s", (int)c.err.size, (char *)c.err.data);
        cr_assert_eq(memcmp(c.err.data, c.err.data + first, first), 0);
        cr_assert(memmem(c.err.data, c.err.size, "kernel.cpp:5:", 13));
        cr_assert(!memmem(c.err.data, c.err.size, c.dir, strlen(c.dir)));
        teardown(&c);
}

Test(compile, clang_gives_the_same_numbers) {
        struct af_arena arena;
        struct af_toolchain t;
        struct af_diags diags = {0};
        struct af_soc soc = {0};
        struct af_buf text = AF_BUF_INIT, binary = AF_BUF_INIT, err = AF_BUF_INIT;
        struct af_host_kernel *by_clang = NULL, *by_gcc;
        static float a[3000], b[3000], c[3000], d[3000];
        uint32_t tiling[] = {3000, 512};
        void *args[] = {a, b, c}, *args_gcc[] = {a, b, d};

        af_arena_init(&arena, 0);
        struct af_toolchain_config config = {.id = "host",
                                             .driver = "clang++",
                                             .include_root = source_root(),
                                             .twin_dir = af_arena_printf(&arena, "%s/twin", source_root())};
        if (af_toolchain_probe(&arena, &config, &soc, AF_TWIN_FAST, &t, &diags) == AF_TOOLCHAIN_E_MISSING)
                cr_skip("no clang++ here");
        cr_assert_null(strstr(t.flags, "native"));
        cr_assert_eq(af_io_read_file(af_arena_printf(&arena, "%s/tests/unit/twin/kernels/add_exp.cpp", source_root()), 1 << 20, &text), 0);
        cr_assert_eq(af_toolchain_compile(&t, "add_exp", text.data, text.size, 60000, -1, &binary, &err, NULL), 0, "%.*s", (int)err.size,
                     (char *)err.data);
        cr_assert_eq(af_host_kernel_load(binary.data, binary.size, &by_clang, NULL), 0);
        by_gcc = kernel_build("add_exp.cpp", "add_exp", AF_TWIN_FAST);
        for (uint32_t i = 0; i < 3000; i++) {
                a[i] = 0.01f * (float)i - 14.0f;
                b[i] = 0.5f - 0.0007f * (float)i;
        }
        cr_assert_eq(kernel_run(by_clang, args, NULL, 3, tiling, 3, NULL, NULL), 0);
        cr_assert_eq(kernel_run(by_gcc, args_gcc, NULL, 3, tiling, 3, NULL, NULL), 0);
        cr_assert_eq(memcmp(c, d, sizeof(c)), 0);
        af_host_kernel_free(by_clang);
        af_host_kernel_free(by_gcc);
        af_buf_deinit(&text);
        af_buf_deinit(&binary);
        af_buf_deinit(&err);
        af_arena_deinit(&arena);
}
