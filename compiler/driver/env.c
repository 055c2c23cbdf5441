/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads one environment snapshot. The digests of rules, templates and the SoC file are over the bytes that are parsed here.
 */
#include "compiler/driver/env.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"

/* What is read of an environment's data: the fusion rules with the operator's own, the templates. */
struct data {
        struct af_io_file *rules, *templates;
        uint32_t n_rules, cap_rules, n_templates;
};

static int forward(int r, const char *where, struct af_diags *diags) {
        if (r < 0)
                af_diag_error(diags, where, "cannot be read: %s", strerror(-r));
        return r > 0 ? AF_ENV_E_INVALID : r;
}

static int add_rules(struct af_arena *arena, struct data *data, const struct af_io_file *files, uint32_t n) {
        int r = af_arena_grow(arena, &data->rules, &data->cap_rules, data->n_rules + n, sizeof(*data->rules));
        if (!r && n > 0)
                memcpy(data->rules + data->n_rules, files, n * sizeof(*files));
        data->n_rules += r ? 0 : n;
        return r;
}

/* Rules of a directory, or of one file: where that one lies does not matter. */
static int read_rules(struct af_arena *arena, const char *path, struct data *data) {
        struct af_io_file one, *files = &one;
        struct stat st;
        uint32_t n = 1;
        if (stat(path, &st) < 0)
                return -errno;
        int r = S_ISDIR(st.st_mode) ? af_io_load_dir(arena, path, ".yaml", AF_RULE_MAX_BYTES, &files, &n)
                                    : af_io_load_file(arena, path, AF_RULE_MAX_BYTES, &one);
        if (r)
                return r;
        if (files == &one)
                one.name = "file";
        return add_rules(arena, data, files, n);
}

static int read_data(struct af_arena *arena, const struct af_env_config *config, const char *dir, struct data *data,
                     struct af_diags *diags) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/fusion", dir);
        int r = forward(read_rules(arena, path, data), path, diags);
        for (const char *const *p = config->extra_rules; !r && p && *p; p++)
                r = forward(read_rules(arena, *p, data), *p, diags);
        if (r)
                return r;
        snprintf(path, sizeof(path), "%s/templates", dir);
        r = af_io_load_dir(arena, path, AF_TEMPLATE_SUFFIX, AF_TEMPLATE_MAX_BYTES, &data->templates, &data->n_templates);
        return forward(r, path, diags);
}

/* Names and contents. */
static void digest_files(const char *domain, const struct af_io_file *files, uint32_t n, struct af_digest *ret_digest) {
        struct af_hasher h;
        af_hasher_init(&h, domain);
        for (uint32_t i = 0; i < n; i++)
                af_hasher_field(&h, files[i].name, files[i].text, files[i].size);
        af_hasher_final(&h, ret_digest);
}

/* Each file is read once: its digest and what it means are of the same bytes. */
static int load_data(struct af_env *env, const struct af_env_config *config, const char *dir, const char *soc, struct af_diags *diags) {
        AF_CLEANUP(af_arena_deinit) struct af_arena texts;
        struct data data = {0};
        char path[4096];
        af_arena_init(&texts, 0);
        snprintf(path, sizeof(path), "%s/soc", dir);
        int r = af_soc_load(path, soc, &env->soc, &env->key.soc, diags);
        if (!r)
                r = read_data(&texts, config, dir, &data, diags);
        if (r)
                return r;
        digest_files("autofuse.rules/1", data.rules, data.n_rules, &env->key.rules);
        digest_files("autofuse.templates/1", data.templates, data.n_templates, &env->key.templates);
        r = af_rules_parse(env->arena, data.rules, data.n_rules, &env->rules, diags);
        if (!r)
                r = af_templates_parse(env->arena, data.templates, data.n_templates, &env->templates, diags);
        return r > 0 ? AF_ENV_E_INVALID : r;
}

static int load_toolchain(struct af_env *env, const struct af_env_config *config, const char *id, enum af_twin twin,
                          struct af_diags *diags) {
        struct af_toolchain_config host = {.id = "host", .kind = AF_TOOLCHAIN_HOST};
        const struct af_toolchain_config *found = NULL;
        for (uint32_t i = 0; i < config->n_toolchains; i++)
                if (strcmp(config->toolchains[i].id, id) == 0)
                        found = &config->toolchains[i];
        if (!found && strcmp(id, "host") == 0)
                found = &host;
        if (!found) {
                af_diag_error(diags, "target.toolchain", "no toolchain '%s' is configured", id);
                return AF_ENV_E_TOOLCHAIN;
        }
        struct af_toolchain_config c = *found;
        if (!c.include_root)
                c.include_root = af_data_dir(env->arena);
        if (!c.twin_dir)
                c.twin_dir = af_arena_printf(env->arena, "%s/twin", c.include_root);
        if (!c.include_root || !c.twin_dir)
                return -ENOMEM;
        int r = af_toolchain_probe(env->arena, &c, &env->soc, twin == AF_TWIN_DEFAULT ? AF_TWIN_FAST : twin, &env->toolchain, diags);
        if (r == AF_TOOLCHAIN_E_KILLED) {
                af_diag_error(diags, "toolchain", "'%s' was killed while it was asked what it is", id);
                return AF_ENV_E_KILLED;
        }
        return r > 0 ? AF_ENV_E_TOOLCHAIN : r;
}

int af_env_load(struct af_env *env, struct af_arena *arena, const struct af_env_config *config, const char *soc, const char *toolchain,
                enum af_twin twin, struct af_diags *diags) {
        *env = (struct af_env){.arena = arena};
        const char *dir = config->rules_dir ? config->rules_dir : af_arena_printf(arena, "%s/rules", af_data_dir(arena));
        if (!dir)
                return -ENOMEM;
        int r = load_data(env, config, dir, soc ? soc : config->default_soc ? config->default_soc : "Ascend910B2", diags);
        if (!r)
                r = load_toolchain(env, config,
                                   toolchain                   ? toolchain
                                   : config->default_toolchain ? config->default_toolchain
                                                               : "host",
                                   twin, diags);
        if (r)
                return r;
        env->key.toolchain_id = env->toolchain.id;
        env->key.toolchain_closure = env->toolchain.closure_digest;
        env->key.toolchain_flags = env->toolchain.flags;
        env->key.salt = config->salt ? af_arena_strdup(arena, config->salt) : NULL;
        if (config->salt && !env->key.salt)
                return -ENOMEM;
        af_key_environment(&env->key, &env->digest);
        return 0;
}
