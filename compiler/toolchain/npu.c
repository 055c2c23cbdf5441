/* SPDX-License-Identifier: Apache-2.0 */
/* CANN's device compilers: bisheng (newer) and ccec (older), found through ASCEND_HOME_PATH, and their documented command lines. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "compiler/toolchain/internal.h"

static const char *const bisheng_places[] = {"tools/bisheng_compiler/bin/bisheng", "compiler/bisheng/bin/bisheng", "bin/bisheng", NULL};
static const char *const ccec_places[] = {"compiler/ccec_compiler/bin/ccec", "ccec_compiler/bin/ccec", "bin/ccec", NULL};

static char *find_in(struct af_arena *arena, const char *home, const char *const *places) {
        for (; *places; places++) {
                char *path = af_arena_printf(arena, "%s/%s", home, *places);
                if (path && access(path, X_OK) == 0)
                        return path;
        }
        return NULL;
}

/* ld.lld beside the compiler. */
static char *find_linker(struct af_arena *arena, const char *driver) {
        const char *slash = strrchr(driver, '/');
        char *path = af_arena_printf(arena, "%.*s/ld.lld", (int)(slash - driver), driver);

        return path && access(path, X_OK) == 0 ? path : NULL;
}

static int find_driver(struct af_arena *arena, struct af_toolchain *t, struct af_diags *diags) {
        const char *home = t->config.ascend_home ? t->config.ascend_home : getenv("ASCEND_HOME_PATH");

        if (home && !t->config.ascend_home)
                t->config.ascend_home = af_arena_strdup(arena, home);
        if (t->config.driver) {
                t->driver = af_tool_find(arena, t->config.driver);
                const char *slash = t->driver ? strrchr(t->driver, '/') : NULL;
                if (slash && strncmp(slash + 1, "bisheng", 7) == 0)
                        t->kind = AF_TOOLCHAIN_BISHENG;
        } else if (home) {
                char *bisheng = find_in(arena, home, bisheng_places), *ccec = find_in(arena, home, ccec_places);
                bool newer = t->kind == AF_TOOLCHAIN_BISHENG ? bisheng != NULL : !ccec;
                t->driver = newer ? bisheng : ccec;
                t->kind = newer ? AF_TOOLCHAIN_BISHENG : AF_TOOLCHAIN_CCEC;
        }
        if (!t->driver) {
                af_diag_add(diags, AF_SEVERITY_ERROR, "toolchain", "set ASCEND_HOME_PATH to CANN's directory",
                            "no ccec or bisheng found%s%s", home ? " under " : "", home ? home : ": ASCEND_HOME_PATH is not set");
                return AF_TOOLCHAIN_E_MISSING;
        }
        return 0;
}

/* Directories of CANN's kernel headers that exist. */
static void add_includes(struct af_argv *a, const struct af_toolchain *t, const char *home) {
        static const char *const older[] = {"compiler/tikcpp/tikcfw", "compiler/tikcpp/tikcfw/impl", "compiler/tikcpp/tikcfw/interface",
                                            "include", NULL};
        struct utsname machine;

        if (!home || uname(&machine) < 0)
                return;
        char *asc = af_arena_printf(a->arena, "%s/%s-linux/asc/include", home, machine.machine);
        if (asc && access(asc, R_OK) == 0)
                af_argv_add(a, af_arena_printf(a->arena, "-I%s", asc));
        for (uint32_t i = 0; older[i] && t->kind == AF_TOOLCHAIN_CCEC; i++) {
                char *dir = af_arena_printf(a->arena, "%s/%s", home, older[i]);
                if (dir && access(dir, R_OK) == 0)
                        af_argv_add(a, af_arena_printf(a->arena, "-I%s", dir));
        }
}

static void add_flags(struct af_argv *a, const struct af_toolchain *t) {
        static const char *const bisheng[] = {"-x", "asc", "-c", "-O3", "-std=c++17", "--cce-aicore-only", NULL};
        static const char *const ccec[] = {"-x", "cce", "-c", "-O3", "-std=c++17", NULL};
        static const char *const ccec_llvm[] = {"--cce-aicore-only",
                                                "--cce-auto-sync",
                                                "-mllvm",
                                                "-cce-aicore-stack-size=0x8000",
                                                "-mllvm",
                                                "-cce-aicore-function-stack-size=0x8000",
                                                "-mllvm",
                                                "-cce-aicore-record-overflow=false",
                                                "-mllvm",
                                                "-cce-aicore-addr-transform",
                                                "-mllvm",
                                                "-cce-aicore-dcci-insert-for-scalar=false",
                                                NULL};

        if (t->kind == AF_TOOLCHAIN_BISHENG) {
                af_argv_add_all(a, bisheng);
                af_argv_add(a, af_arena_printf(a->arena, "--npu-arch=%s", t->npu_arch));
                return;
        }
        af_argv_add_all(a, ccec);
        af_argv_add(a, af_arena_printf(a->arena, "--cce-aicore-arch=%s", t->ccec_arch));
        af_argv_add_all(a, ccec_llvm);
}

/* The driver, and what is found beside it that makes code. */
static int add_closure(struct af_closure *c, const struct af_toolchain *t) {
        static const char *const beside[] = {"clang", "clang-15", "llvm-objcopy", "opt", "llc", NULL};
        int r = af_closure_add(c, "driver", t->driver, false);
        static const char *const versions[] = {"version.cfg", "version.info", "compiler/version.info", "opp/version.info", NULL};
        int n = (int)(strrchr(t->driver, '/') - t->driver);

        if (r == 0)
                r = af_closure_add_libraries(c, t->driver);
        if (r == 0 && t->linker)
                r = af_closure_add(c, "ld.lld", t->linker, false);
        for (uint32_t i = 0; beside[i] && r == 0; i++) {
                char *path = af_arena_printf(c->arena, "%.*s/%s", n, t->driver, beside[i]);
                r = path ? af_closure_add(c, beside[i], path, true) : -ENOMEM;
        }
        for (uint32_t i = 0; versions[i] && t->config.ascend_home && r == 0; i++) {
                char *path = af_arena_printf(c->arena, "%s/%s", t->config.ascend_home, versions[i]);
                r = path ? af_closure_add(c, versions[i], path, true) : -ENOMEM;
        }
        return r;
}

int af_npu_probe(struct af_arena *arena, struct af_toolchain *t, struct af_closure *c, struct af_diags *diags) {
        AF_CLEANUP(af_buf_deinit) struct af_buf out = AF_BUF_INIT;
        struct af_argv flags = {.arena = arena}, argv = {.arena = arena};
        const char *args[] = {"--version", NULL};
        int r = find_driver(arena, t, diags);
        if (r == 0)
                r = af_tool_ask(t->driver, args, &out, NULL);
        if (r)
                return r;
        t->version = af_arena_memdup(arena, out.data, strcspn((char *)out.data, "\n"));
        t->linker = t->kind == AF_TOOLCHAIN_CCEC ? find_linker(arena, t->driver) : NULL;
        add_flags(&flags, t);
        af_argv_split(&flags, t->config.extra_flags);
        const char *const *all = af_argv_take(&flags);
        if (!all || !t->version)
                return -ENOMEM;
        t->flags = af_argv_join(arena, all);
        af_argv_add(&argv, t->driver);
        af_argv_add_all(&argv, all);
        add_includes(&argv, t, t->config.ascend_home);
        t->argv = af_argv_take(&argv);
        if (!t->argv || !t->flags)
                return -ENOMEM;
        return add_closure(c, t);
}

int af_npu_command(struct af_arena *arena, const struct af_toolchain *t, const char *source, const char *output,
                   const char *const **ret_argv) {
        struct af_argv argv = {.arena = arena};

        af_argv_add_all(&argv, t->argv);
        af_argv_add(&argv, source);
        af_argv_add(&argv, "-o");
        af_argv_add(&argv, output);
        *ret_argv = af_argv_take(&argv);
        return *ret_argv ? 0 : -ENOMEM;
}

int af_npu_link_command(struct af_arena *arena, const struct af_toolchain *t, const char *object, const char *output,
                        const char *const **ret_argv) {
        struct af_argv argv = {.arena = arena};

        af_argv_add(&argv, t->linker);
        af_argv_add(&argv, "-m");
        af_argv_add(&argv, "aicorelinux");
        af_argv_add(&argv, "-Ttext=0");
        af_argv_add(&argv, object);
        af_argv_add(&argv, "-static");
        af_argv_add(&argv, "-o");
        af_argv_add(&argv, output);
        *ret_argv = af_argv_take(&argv);
        return *ret_argv ? 0 : -ENOMEM;
}
