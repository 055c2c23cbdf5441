/* SPDX-License-Identifier: Apache-2.0 */
/* Probes, closures and the command lines for CANN. */
#include "tests/unit/twin/kernel_case.h"

#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

struct dirs {
        struct af_arena arena;
        char *dir;
};

static void dirs_init(struct dirs *d) {
        af_arena_init(&d->arena, 0);
        cr_assert_eq(af_io_temp_dir(NULL, "toolchain-test", &d->dir), 0);
}

static void dirs_deinit(struct dirs *d) {
        cr_expect_eq(af_io_remove_tree(d->dir), 0);
        free(d->dir);
        af_arena_deinit(&d->arena);
}

/* Runs a shell command with $D as the directory. */
static void sh(const struct dirs *d, const char *command) {
        setenv("D", d->dir, 1);
        cr_assert_eq(system(command), 0, "%s", command);
}

/* An executable script below the directory. */
static void put_program(struct dirs *d, const char *path) {
        static const char script[] = "#!/bin/sh\necho \"a compiler, version 1\"\n";
        char *full = af_arena_printf(&d->arena, "%s/%s", d->dir, path), *slash = strrchr(full, '/');

        *slash = 0;
        cr_assert_eq(af_io_make_dirs(full, 0755), 0);
        *slash = '/';
        cr_assert_eq(af_io_publish_file(full, script, sizeof(script) - 1, 0755), 0);
}

static int npu_probe(struct dirs *d, enum af_toolchain_kind kind, const char *arch, const char *ccec_arch, struct af_toolchain *ret) {
        struct af_diags diags = {0};
        struct af_toolchain_config config = {.id = "ccec", .kind = kind, .ascend_home = d->dir};
        struct af_soc soc = {0};

        snprintf(soc.arch, sizeof(soc.arch), "%s", arch);
        snprintf(soc.ccec_arch, sizeof(soc.ccec_arch), "%s", ccec_arch);
        int r = af_toolchain_probe(&d->arena, &config, &soc, AF_TWIN_DEFAULT, ret, &diags);
        af_diags_deinit(&diags);
        return r;
}

/* The command line with the directory as HOME. */
static char *command_text(struct dirs *d, const struct af_toolchain *t) {
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        const char *const *argv;

        cr_assert_eq(af_toolchain_command(&d->arena, t, "kernel.cpp", "kernel.o", &argv), 0);
        for (; *argv; argv++) {
                const char *at = strstr(*argv, d->dir);
                if (at)
                        af_buf_printf(&text, "%.*sHOME%s ", (int)(at - *argv), *argv, at + strlen(d->dir));
                else
                        af_buf_printf(&text, "%s ", *argv);
        }
        text.size--;
        return af_arena_memdup(&d->arena, text.data, text.size);
}

Test(toolchain, ccec_command_line) {
        static const char *const archs[][2] = {{"dav-2201", "dav-c220-vec"}, {"dav-2002", "dav-m200"}, {"dav-3510", "dav-c310-vec"}};

        for (uint32_t i = 0; i < AF_ARRAY_SIZE(archs); i++) {
                struct dirs d;
                struct af_toolchain t;
                dirs_init(&d);
                put_program(&d, "compiler/ccec_compiler/bin/ccec");
                cr_assert_eq(npu_probe(&d, AF_TOOLCHAIN_CCEC, archs[i][0], archs[i][1], &t), 0);
                cr_assert_eq(t.kind, AF_TOOLCHAIN_CCEC);
                cr_assert_str_eq(t.version, "a compiler, version 1");
                cr_assert_str_eq(
                        command_text(&d, &t),
                        af_arena_printf(
                                &d.arena,
                                "HOME/compiler/ccec_compiler/bin/ccec -x cce -c -O3 -std=c++17 --cce-aicore-arch=%s --cce-aicore-only "
                                "--cce-auto-sync "
                                "-mllvm -cce-aicore-stack-size=0x8000 -mllvm -cce-aicore-function-stack-size=0x8000 -mllvm "
                                "-cce-aicore-record-overflow=false "
                                "-mllvm -cce-aicore-addr-transform -mllvm -cce-aicore-dcci-insert-for-scalar=false kernel.cpp -o kernel.o",
                                archs[i][1]));
                dirs_deinit(&d);
        }
}

Test(toolchain, bisheng_command_line_with_the_machines_headers) {
        struct dirs d;
        struct af_toolchain t;
        struct utsname machine;

        dirs_init(&d);
        cr_assert_eq(uname(&machine), 0);
        put_program(&d, "tools/bisheng_compiler/bin/bisheng");
        cr_assert_eq(af_io_make_dirs(af_arena_printf(&d.arena, "%s/%s-linux/asc/include", d.dir, machine.machine), 0755), 0);
        cr_assert_eq(npu_probe(&d, AF_TOOLCHAIN_CCEC, "dav-2201", "dav-c220-vec", &t), 0);
        cr_assert_eq(t.kind, AF_TOOLCHAIN_BISHENG, "whichever CANN ships");
        cr_assert_str_eq(
                command_text(&d, &t),
                af_arena_printf(&d.arena,
                                "HOME/tools/bisheng_compiler/bin/bisheng -x asc -c -O3 -std=c++17 --cce-aicore-only --npu-arch=dav-2201 "
                                "-IHOME/%s-linux/asc/include kernel.cpp -o kernel.o",
                                machine.machine));
        dirs_deinit(&d);
}

Test(toolchain, says_where_it_looked_for_cann) {
        struct dirs d;
        struct af_toolchain t;
        struct af_diags diags = {0};
        struct af_soc soc = {0};

        dirs_init(&d);
        struct af_toolchain_config config = {.id = "ccec", .kind = AF_TOOLCHAIN_CCEC, .ascend_home = d.dir};
        cr_assert_eq(af_toolchain_probe(&d.arena, &config, &soc, AF_TWIN_DEFAULT, &t, &diags), AF_TOOLCHAIN_E_MISSING);
        cr_assert_eq(diags.n_items, 1);
        cr_assert_not_null(strstr(diags.items[0].what, d.dir));
        af_diags_deinit(&diags);
        struct af_toolchain_config host = {
                .id = "host", .driver = "/nonexistent/g++", .include_root = source_root(), .twin_dir = source_root()};
        cr_assert_eq(af_toolchain_probe(&d.arena, &host, &soc, AF_TWIN_FAST, &t, &diags), AF_TOOLCHAIN_E_MISSING);
        af_diags_deinit(&diags);
        dirs_deinit(&d);
}

/* A host toolchain over a copy of the twin and a copied driver, so that both can be changed. */
static void host_probe(struct dirs *d, bool memo, struct af_toolchain *ret) {
        struct af_diags diags = {0};
        struct af_soc soc = {0};
        struct af_toolchain_config config = {.id = "host",
                                             .driver = af_arena_printf(&d->arena, "%s/cxx-ok", d->dir),
                                             .include_root = d->dir,
                                             .twin_dir = af_arena_printf(&d->arena, "%s/twin", d->dir),
                                             .pch_dir = memo ? af_arena_printf(&d->arena, "%s/pch", d->dir) : NULL};
        int r = af_toolchain_probe(&d->arena, &config, &soc, AF_TWIN_FAST, ret, &diags);

        cr_assert_eq(r, 0, "%d %s", r, diags.n_items ? diags.items[0].what : "");
        af_diags_deinit(&diags);
}

static void host_setup(struct dirs *d) {
        dirs_init(d);
        sh(d, "cd \"$AF_SOURCE_ROOT\" && cp -r twin numeric $D/ && cp tests/unit/toolchain/fake_cxx $D/cxx-ok");
}

static const char *closure_find(const struct af_toolchain *t, const char *role) {
        for (uint32_t i = 0; i < t->n_closure; i++)
                if (strcmp(t->closure_files[i].role, role) == 0)
                        return t->closure_files[i].path;
        return NULL;
}

Test(toolchain, closure_has_what_can_change_the_output) {
        struct dirs d;
        struct af_toolchain t;

        host_setup(&d);
        host_probe(&d, false, &t);
        static const char *const roles[] = {"driver",
                                            "cc1plus",
                                            "as",
                                            "ld",
                                            "collect2",
                                            "crtbeginS.o",
                                            "liblto_plugin.so",
                                            "lib:libc.so.6",
                                            "header:twin/kernel_operator.h",
                                            "header:numeric/prim_f32.h"};
        for (uint32_t i = 0; i < AF_ARRAY_SIZE(roles); i++)
                cr_expect_not_null(closure_find(&t, roles[i]), "no %s", roles[i]);
        cr_assert_eq(af_toolchain_recheck(&t), 0);
        dirs_deinit(&d);
}

Test(toolchain, a_change_that_keeps_path_size_and_mtime_is_seen) {
        static const char *const changes[] = {
                "f=$D/twin/arith.h; cp -p $f $f.old; sed -i 's/Elementwise/elementwise/' $f; touch -r $f.old $f",
                "f=$D/cxx-ok; cp -p $f $f.old; sed -i 's/no such thing/no such_thing/' $f; touch -r $f.old $f",
                "f=$D/numeric/bits.h; rm $f",
        };

        for (uint32_t i = 0; i < AF_ARRAY_SIZE(changes); i++) {
                struct dirs d;
                struct af_toolchain t;
                host_setup(&d);
                host_probe(&d, true, &t);
                cr_assert_eq(af_toolchain_recheck(&t), 0);
                sh(&d, changes[i]);
                cr_expect_eq(af_toolchain_recheck(&t), AF_TOOLCHAIN_E_CHANGED, "%s", changes[i]);
                dirs_deinit(&d);
        }
}

Test(toolchain, identical_bytes_put_back_are_no_change) {
        struct dirs d;
        struct af_toolchain t, again;

        host_setup(&d);
        host_probe(&d, true, &t);
        sh(&d, "cp $D/twin/arith.h $D/twin/new && mv $D/twin/new $D/twin/arith.h && touch $D/numeric/bits.h");
        cr_assert_eq(af_toolchain_recheck(&t), 0);
        host_probe(&d, true, &again);
        cr_assert(af_digest_equal(&t.closure_digest, &again.closure_digest));
        dirs_deinit(&d);
}

Test(toolchain, digest_moves_with_content_and_not_with_place) {
        struct dirs a, b;
        struct af_toolchain ta, tb, tc;

        host_setup(&a);
        host_setup(&b);
        host_probe(&a, false, &ta);
        host_probe(&b, false, &tb);
        cr_assert(af_digest_equal(&ta.closure_digest, &tb.closure_digest));
        cr_assert_str_eq(ta.flags, tb.flags);
        sh(&b, "echo >> $D/twin/cast.h");
        host_probe(&b, false, &tc);
        cr_assert(!af_digest_equal(&ta.closure_digest, &tc.closure_digest));
        dirs_deinit(&a);
        dirs_deinit(&b);
}

Test(toolchain, a_memo_gives_the_same_probe_and_damage_gives_a_new_one) {
        struct dirs d;
        struct af_toolchain t, kept, mended;

        host_setup(&d);
        host_probe(&d, true, &t);
        sh(&d, "ls $D/pch/probe-* > /dev/null");
        host_probe(&d, true, &kept);
        cr_assert(af_digest_equal(&t.closure_digest, &kept.closure_digest));
        cr_assert_str_eq(t.flags, kept.flags);
        cr_assert_str_eq(t.version, kept.version);
        cr_assert_eq(t.n_closure, kept.n_closure);
        sh(&d, "for f in $D/pch/probe-*; do printf x | dd of=$f bs=1 seek=100 conv=notrunc 2> /dev/null; done");
        host_probe(&d, true, &mended);
        cr_assert(af_digest_equal(&t.closure_digest, &mended.closure_digest));
        cr_assert_str_eq(t.flags, mended.flags);
        dirs_deinit(&d);
}

Test(toolchain, policies_differ_in_flags) {
        struct af_arena arena;
        struct af_toolchain fast, checked;

        af_arena_init(&arena, 0);
        toolchain_probe(&arena, AF_TWIN_FAST, NULL, &fast);
        toolchain_probe(&arena, AF_TWIN_CHECKED, NULL, &checked);
        cr_assert_str_neq(fast.flags, checked.flags);
        af_arena_deinit(&arena);
}
