/* SPDX-License-Identifier: Apache-2.0 */
/* env: loads an environment, tells its digest, its toolchain and what to watch. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/job.h"

int af_job_load_env(struct af_arena *arena, const struct af_env_config *config, const char *soc, const char *toolchain, enum af_twin twin,
                    struct af_env *ret_env) {
        struct af_diags diags = {0};
        int r = af_env_load(ret_env, arena, config, soc, toolchain, twin, &diags);

        if (r == AF_ENV_E_KILLED)
                af_job_fail(AF_ERROR_JOB_DIED, AF_JOB_FAULT_KILLED, "a program of the toolchain was killed while it was asked what it is");
        else if (r == -EAGAIN)
                af_job_fail(AF_ERROR_INTERNAL, AF_JOB_FAULT_CHANGED, "rules or toolchain changed while they were read");
        else if (r)
                af_job_fail_diags(AF_ERROR_TOOLCHAIN, &diags, r);
        af_diags_deinit(&diags);
        return r != 0;
}

struct watch {
        struct af_arena *arena;
        const char **paths;
        uint32_t n, cap;
};

static void add(struct watch *w, const char *path) {
        if (!path || af_arena_grow(w->arena, &w->paths, &w->cap, w->n + 1, sizeof(*w->paths)))
                return;
        w->paths[w->n++] = path;
}

/* The directory (something may be added to it) and its files. */
static void add_dir(struct watch *w, const char *dir) {
        DIR *d = dir ? opendir(dir) : NULL;
        struct dirent *e;

        add(w, dir);
        while (d && (e = readdir(d)))
                if (e->d_name[0] != '.')
                        add(w, af_arena_printf(w->arena, "%s/%s", dir, e->d_name));
        if (d)
                closedir(d);
}

/* Where a driver of this name would be found first: one that is installed there later changes the environment. */
static void add_driver(struct watch *w, const char *name) {
        static const char *const dirs[] = {"/usr/local/bin", "/usr/bin", "/bin"};

        if (!name || strchr(name, '/')) {
                add(w, name);
                return;
        }
        for (size_t i = 0; i < AF_ARRAY_SIZE(dirs); i++)
                add(w, af_arena_printf(w->arena, "%s/%s", dirs[i], name));
}

static void add_rules(struct watch *w, const struct af_env_config *config) {
        static const char *const parts[] = {"fusion", "soc", "templates"};
        const char *dir = config->rules_dir ? config->rules_dir : af_arena_printf(w->arena, "%s/rules", af_data_dir(w->arena));
        struct stat st;

        for (size_t i = 0; dir && i < AF_ARRAY_SIZE(parts); i++)
                add_dir(w, af_arena_printf(w->arena, "%s/%s", dir, parts[i]));
        for (const char *const *p = config->extra_rules; p && *p; p++)
                if (stat(*p, &st) == 0 && S_ISDIR(st.st_mode))
                        add_dir(w, *p);
                else
                        add(w, *p);
}

static void visit(void *userdata, const char *name, const char *text, const void *p, size_t n) {
        af_record_ingredient_write(userdata, name, text);
}

/* What is in the digest, and behind it what its closure consists of, so that a difference can be told by its file. */
static void put_ingredients(struct af_buf *buf, const struct af_env *env) {
        char name[512], hex[AF_DIGEST_HEX_SIZE];

        af_key_ingredients(&env->key, visit, buf);
        af_record_ingredient_write(buf, "compiler", env->toolchain.version ? env->toolchain.version : "");
        for (uint32_t i = 0; env->toolchain.closure_files && i < env->toolchain.n_closure; i++) {
                snprintf(name, sizeof(name), "file %s", env->toolchain.closure_files[i].path);
                af_digest_hex(&env->toolchain.closure_files[i].digest, hex);
                hex[16] = 0;
                af_record_ingredient_write(buf, name, hex);
        }
}

int af_job_env(struct af_arena *arena, const struct af_job_request *request) {
        AF_CLEANUP(af_buf_deinit) struct af_buf buf = AF_BUF_INIT;
        AF_CLEANUP(af_buf_deinit) struct af_buf ingredients = AF_BUF_INIT;
        struct watch watch = {.arena = arena};
        struct af_env env;

        if (af_job_load_env(arena, &request->config, request->soc, request->toolchain, request->twin, &env))
                return 0;
        add_rules(&watch, &request->config);
        for (uint32_t i = 0; i < env.toolchain.n_closure; i++)
                add(&watch, env.toolchain.closure[i]);
        add(&watch, env.toolchain.driver);
        if (env.toolchain.config.driver)
                add_driver(&watch, env.toolchain.config.driver);
        else if (env.toolchain.kind == AF_TOOLCHAIN_HOST)
                add_driver(&watch, "g++");
        put_ingredients(&ingredients, &env);
        af_jobwire_write_environment(&buf, &env.digest, &env.toolchain, watch.paths, watch.n, &ingredients);
        if (af_buf_error(&buf))
                af_job_fail_errno("the environment", af_buf_error(&buf));
        else
                af_job_send(AF_JOB_MSG_ENV, buf.data, buf.size);
        return 0;
}
