/* SPDX-License-Identifier: Apache-2.0 */
/* The host toolchain: g++ or clang++ against twin/. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "compiler/toolchain/internal.h"

static bool is_clang(const struct af_toolchain *t) {
        return strstr(t->version, "clang") != NULL;
}

/* g++ -v shows the compiler's command line with everything that "native" stands for. */
static int resolve_gcc(struct af_argv *flags, const char *driver) {
        AF_CLEANUP(af_buf_deinit) struct af_buf out = AF_BUF_INIT;
        AF_CLEANUP(af_buf_deinit) struct af_buf err = AF_BUF_INIT;
        const char *args[] = {"-march=native", "-E", "-v", "-x", "c++", "/dev/null", NULL};
        int r = af_tool_ask(driver, args, &out, &err);
        if (r)
                return r;
        char *line = strstr((char *)err.data, "/cc1plus ");
        if (!line) { /* not a GCC: take the word as it is */
                af_argv_add(flags, "-march=native");
                return 0;
        }
        line[strcspn(line, "\n")] = 0;
        char *save = NULL;
        for (char *word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save))
                if (strncmp(word, "-m", 2) == 0)
                        af_argv_add(flags, af_arena_strdup(flags->arena, word));
        return 0;
}

/* clang -### shows "-target-cpu" "x" and a "-target-feature" "+y" for each. */
static int resolve_clang(struct af_argv *flags, const char *driver) {
        AF_CLEANUP(af_buf_deinit) struct af_buf out = AF_BUF_INIT;
        AF_CLEANUP(af_buf_deinit) struct af_buf err = AF_BUF_INIT;
        const char *args[] = {"-march=native", "-###", "-E", "-x", "c++", "/dev/null", NULL};
        int r = af_tool_ask(driver, args, &out, &err);
        if (r)
                return r;
        char *save = NULL;
        bool take = false;
        for (char *word = strtok_r((char *)err.data, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
                size_t n = strlen(word);
                if (n < 2 || word[0] != '"')
                        continue;
                word[n - 1] = 0;
                bool option = strcmp(word + 1, "-target-cpu") == 0 || strcmp(word + 1, "-target-feature") == 0 ||
                              strcmp(word + 1, "-tune-cpu") == 0;
                if (take || option) {
                        af_argv_add(flags, "-Xclang");
                        af_argv_add(flags, af_arena_strdup(flags->arena, word + 1));
                }
                take = option;
        }
        return 0;
}

static int find_driver(struct af_arena *arena, struct af_toolchain *t, struct af_diags *diags) {
        AF_CLEANUP(af_buf_deinit) struct af_buf out = AF_BUF_INIT;
        const char *wanted = t->config.driver, *args[] = {"--version", NULL};
        char *driver = af_tool_find(arena, wanted ? wanted : "g++");
        if (!driver && !wanted)
                driver = af_tool_find(arena, "clang++");
        int r = driver ? af_tool_ask(driver, args, &out, NULL) : AF_TOOLCHAIN_E_MISSING;
        if (r) {
                if (r == AF_TOOLCHAIN_E_MISSING)
                        af_diag_error(diags, "toolchain", "no working C++ compiler '%s'", wanted ? wanted : "g++ or clang++");
                return r;
        }
        t->driver = driver;
        t->version = af_arena_memdup(arena, out.data, strcspn((char *)out.data, "\n"));
        return t->version ? 0 : -ENOMEM;
}

static int make_argv(struct af_arena *arena, struct af_toolchain *t) {
        static const char *const fixed[] = {"-std=gnu++17",

                                            "-ffp-contract=off",
                                            "-fno-math-errno",
                                            "-fno-strict-aliasing",
                                            "-fno-exceptions",
                                            "-fno-rtti",
                                            "-fPIC",
                                            "-fvisibility=hidden",
                                            "-frandom-seed=kernel",
                                            "-w",
                                            NULL};
        struct af_argv flags = {.arena = arena}, argv = {.arena = arena};
        af_argv_add_all(&flags, fixed);
        /* The checks are most of a checked kernel: what -O3 would gain there costs more in compiling. Results are the same. */
        af_argv_add(&flags, t->twin == AF_TWIN_CHECKED ? "-O1" : "-O3");
        af_argv_add(&flags, t->twin == AF_TWIN_CHECKED ? "-DAF_TWIN_CHECKED=1" : "-DAF_TWIN_CHECKED=0");
        if (!is_clang(t)) {
                af_argv_add(&flags, "-fno-gnu-unique");
                af_argv_add(&flags, "-fno-ident");
                af_argv_add(&flags, "-ftrack-macro-expansion=0"); /* errors name the call, not the twin's macros */
        }
        int r = 0;
        if (!t->config.extra_flags || !strstr(t->config.extra_flags, "-march="))
                r = is_clang(t) ? resolve_clang(&flags, t->driver) : resolve_gcc(&flags, t->driver);
        if (r)
                return r;
        af_argv_split(&flags, t->config.extra_flags);
        const char *const *all = af_argv_take(&flags);
        if (!all)
                return -ENOMEM;
        t->flags = af_argv_join(arena, all);
        af_argv_add(&argv, t->driver);
        af_argv_add_all(&argv, all);
        af_argv_add(&argv, af_arena_printf(arena, "-I%s", t->config.twin_dir));
        af_argv_add(&argv, af_arena_printf(arena, "-I%s", t->config.include_root));
        t->argv = af_argv_take(&argv);
        return t->argv && t->flags ? 0 : -ENOMEM;
}

/* Asks the driver where it has a program or file; adds it, and its libraries where it is a program. */
static int add_asked(struct af_closure *c, const struct af_toolchain *t, const char *option, const char *name, bool program) {
        AF_CLEANUP(af_buf_deinit) struct af_buf out = AF_BUF_INIT;
        char *arg = af_arena_printf(c->arena, "%s=%s", option, name);
        const char *args[] = {arg, NULL};
        if (!arg)
                return -ENOMEM;
        int r = af_tool_ask(t->driver, args, &out, NULL);
        if (r == AF_TOOLCHAIN_E_MISSING)
                return 0;
        if (r)
                return r;
        char *text = (char *)out.data;
        text[strcspn(text, "\n")] = 0;
        const char *path = text[0] == '/' ? text : program ? af_tool_find(c->arena, text) : NULL;
        if (!path || !path[0])
                return 0;
        r = af_closure_add(c, name, path, true);
        return r == 0 && program ? af_closure_add_libraries(c, path) : r;
}

static int add_headers(struct af_closure *c, const struct af_toolchain *t) {
        AF_CLEANUP(af_buf_deinit) struct af_buf out = AF_BUF_INIT;
        AF_CLEANUP(af_buf_deinit) struct af_buf err = AF_BUF_INIT;
        struct af_argv argv = {.arena = c->arena};
        struct af_tool_env env;
        struct af_spawn_result result;
        static const char probe[] = "#include \"kernel_operator.h\"\n";

        af_argv_add_all(&argv, t->argv);
        af_argv_add(&argv, "-M");
        af_argv_add(&argv, "-x");
        af_argv_add(&argv, "c++");
        af_argv_add(&argv, "-");
        af_tool_env_init(&env, NULL, NULL);
        struct af_spawn spawn = {.argv = af_argv_take(&argv),
                                 .envp = env.envp,
                                 .input = probe,
                                 .input_size = sizeof(probe) - 1,
                                 .timeout_ms = 60000,
                                 .lifeline_fd = -1,
                                 .new_group = true};
        if (!spawn.argv)
                return -ENOMEM;
        int r = af_spawn_run(&spawn, &out, &err, &result);
        if (r == 0)
                r = af_tool_told(&result, &err);
        if (r)
                return r;
        return af_closure_add_make(c, (char *)out.data, out.size, t->config.include_root);
}

static int add_closure(struct af_closure *c, const struct af_toolchain *t) {
        static const char *const programs[] = {"cc1plus", "as", "collect2", "ld", "lto-wrapper", NULL};
        static const char *const files[] = {
                "crti.o",       "crtn.o",  "crtbeginS.o", "crtendS.o", "libgcc.a",         "libgcc_s.so", "libgcc_s.so.1",
                "libstdc++.so", "libm.so", "libc.so",     "libc.so.6", "liblto_plugin.so", NULL};
        int r = af_closure_add(c, "driver", t->driver, false);

        if (r == 0)
                r = af_closure_add_libraries(c, t->driver);
        for (uint32_t i = 0; programs[i] && r == 0; i++)
                if (!is_clang(t) || strcmp(programs[i], "ld") == 0)
                        r = add_asked(c, t, "-print-prog-name", programs[i], true);
        for (uint32_t i = 0; files[i] && r == 0; i++)
                r = add_asked(c, t, "-print-file-name", files[i], false);
        return r == 0 ? add_headers(c, t) : r;
}

int af_host_probe(struct af_arena *arena, struct af_toolchain *t, struct af_closure *c, struct af_diags *diags) {
        int r = find_driver(arena, t, diags);
        if (r == 0)
                r = make_argv(arena, t);
        if (r == 0) {
                r = add_closure(c, t);
                if (r == AF_TOOLCHAIN_E_MISSING)
                        af_diag_error(diags, "toolchain", "'%s' does not accept the twin's headers in %s", t->driver, t->config.twin_dir);
        }
        return r;
}
