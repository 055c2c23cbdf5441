/* SPDX-License-Identifier: Apache-2.0 */
/* Argument vectors, the environment of tools, and asking a driver about itself. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "compiler/toolchain/internal.h"

#define ASK_TIMEOUT_MS 20000
#define TOOL_PATH      "/usr/local/bin:/usr/bin:/bin"

void af_tool_env_init(struct af_tool_env *e, const char *tmp, const char *ascend_home) {
        uint32_t n = 0;

        e->envp[n++] = "PATH=" TOOL_PATH;
        e->envp[n++] = "LC_ALL=C";
        if (tmp) {
                snprintf(e->tmpdir, sizeof(e->tmpdir), "TMPDIR=%s", tmp);
                e->envp[n++] = e->tmpdir;
        }
        if (ascend_home)
                e->envp[n++] = ascend_home;
        e->envp[n] = NULL;
}

void af_argv_add(struct af_argv *a, const char *arg) {
        if (a->failed || !arg || af_arena_grow(a->arena, &a->items, &a->cap, a->n + 1, sizeof(*a->items)) < 0) {
                a->failed = true;
                return;
        }
        a->items[a->n++] = arg;
}

void af_argv_add_all(struct af_argv *a, const char *const *args) {
        for (; args && *args; args++)
                af_argv_add(a, *args);
}

void af_argv_split(struct af_argv *a, const char *text) {
        while (text && *text) {
                size_t n = strcspn(text, " \t\n");
                if (n)
                        af_argv_add(a, af_arena_memdup(a->arena, text, n));
                text += n + (text[n] != 0);
        }
}

const char *const *af_argv_take(struct af_argv *a) {
        if (a->failed || af_arena_grow(a->arena, &a->items, &a->cap, a->n + 1, sizeof(*a->items)) < 0)
                return NULL;
        a->items[a->n] = NULL;
        return a->items;
}

char *af_argv_join(struct af_arena *arena, const char *const *argv) {
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;

        for (uint32_t i = 0; argv[i]; i++)
                af_buf_printf(&text, "%s%s", i ? " " : "", argv[i]);
        return af_buf_error(&text) ? NULL : af_arena_memdup(arena, text.data, text.size);
}

int af_tool_told(const struct af_spawn_result *result, const struct af_buf *err) {
        int r = af_tool_classify(result, err->data, err->size);

        return r > 0 ? r == AF_TOOLCHAIN_E_REJECTED ? AF_TOOLCHAIN_E_MISSING : AF_TOOLCHAIN_E_KILLED : r;
}

int af_tool_ask(const char *driver, const char *const *args, struct af_buf *out, struct af_buf *err) {
        AF_CLEANUP(af_buf_deinit) struct af_buf own = AF_BUF_INIT;
        const char *argv[12] = {driver};
        struct af_tool_env env;
        struct af_spawn_result result;
        uint32_t n = 1;

        for (; *args && n + 1 < AF_ARRAY_SIZE(argv); args++)
                argv[n++] = *args;
        af_tool_env_init(&env, NULL, NULL);
        struct af_spawn spawn = {.argv = argv,
                                 .envp = env.envp,
                                 .timeout_ms = ASK_TIMEOUT_MS,
                                 .lifeline_fd = -1,
                                 .new_group = true,
                                 .max_output_bytes = 16u << 20};
        if (!err)
                err = &own;
        int r = af_spawn_run(&spawn, out, err, &result);
        if (r == -ENOENT || r == -EACCES)
                return AF_TOOLCHAIN_E_MISSING;
        if (r < 0)
                return r;
        af_buf_put_u8(out, 0);
        af_buf_put_u8(err, 0);
        if (af_buf_error(out) || af_buf_error(err))
                return -ENOMEM;
        return af_tool_told(&result, err);
}

char *af_tool_find(struct af_arena *arena, const char *name) {
        char path[4096];

        if (strchr(name, '/')) {
                AF_CLEANUP(af_freep) char *cwd = name[0] == '/' ? NULL : getcwd(NULL, 0);
                if (access(name, X_OK) != 0)
                        return NULL;
                return cwd ? af_arena_printf(arena, "%s/%s", cwd, name) : af_arena_strdup(arena, name);
        }
        for (const char *dir = TOOL_PATH; *dir;) {
                size_t n = strcspn(dir, ":");
                snprintf(path, sizeof(path), "%.*s/%s", (int)n, dir, name);
                if (access(path, X_OK) == 0)
                        return af_arena_strdup(arena, path);
                dir += n + (dir[n] == ':');
        }
        return NULL;
}

int af_dir_ours(const char *path) {
        struct stat st;

        if (lstat(path, &st) < 0)
                return -errno;
        if (!S_ISDIR(st.st_mode))
                return -ENOTDIR;
        if ((st.st_uid != geteuid() && st.st_uid != 0) || (st.st_mode & (S_IWGRP | S_IWOTH)))
                return -EACCES;
        return 0;
}
