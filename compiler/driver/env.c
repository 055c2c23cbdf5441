/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads one environment snapshot. The digests of rules, templates and the SoC file are over the bytes that are parsed here.
 */
#include "compiler/driver/env.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

static int by_name(const void *a, const void *b) {
        return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds every file of dir with this suffix, in name order, to the digest: name and content. */
static int digest_dir(struct af_hasher *h, const char *dir, const char *suffix, struct af_arena *arena) {
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        DIR *d = opendir(dir);
        if (!d)
                return -errno;
        char **names = NULL;
        uint32_t n = 0, cap = 0;
        int r = 0;
        for (struct dirent *e; r == 0 && (e = readdir(d));) {
                size_t len = strlen(e->d_name), len_suffix = strlen(suffix);
                if (len <= len_suffix || strcmp(e->d_name + len - len_suffix, suffix) != 0 || e->d_name[0] == '.')
                        continue;
                r = af_arena_grow(arena, &names, &cap, n + 1, sizeof(*names));
                if (!r && !(names[n++] = af_arena_strdup(arena, e->d_name)))
                        r = -ENOMEM;
        }
        closedir(d);
        if (r)
                return r;
        if (n)
                qsort(names, n, sizeof(*names), by_name);
        for (uint32_t i = 0; i < n; i++) {
                char path[4096];
                af_buf_clear(&text);
                if (snprintf(path, sizeof(path), "%s/%s", dir, names[i]) >= (int)sizeof(path))
                        return -ENAMETOOLONG;
                r = af_io_read_file(path, 1 << 22, &text);
                if (r)
                        return r;
                af_hasher_field(h, names[i], text.data, text.size);
        }
        return 0;
}

/* Digests of everything that is data: the fusion rules with the operator's own, the templates, the SoC file. */
static int digest_data(struct af_arena *arena, const struct af_env_config *config, const char *dir, const char *soc,
                       struct af_key_env *ret) {
        char path[4096];
        struct af_hasher h;
        struct stat st;
        af_hasher_init(&h, "autofuse.rules/1");
        snprintf(path, sizeof(path), "%s/fusion", dir);
        int r = digest_dir(&h, path, ".yaml", arena);
        for (const char *const *p = config->extra_rules; !r && p && *p; p++) {
                struct af_digest file;
                if (stat(*p, &st) < 0)
                        return -errno;
                r = S_ISDIR(st.st_mode) ? digest_dir(&h, *p, ".yaml", arena) : af_digest_file(*p, &file);
                if (!r && !S_ISDIR(st.st_mode))
                        af_hasher_field(&h, "file", file.bytes, sizeof(file.bytes));
        }
        af_hasher_final(&h, &ret->rules);
        if (r)
                return r;
        af_hasher_init(&h, "autofuse.templates/1");
        snprintf(path, sizeof(path), "%s/templates", dir);
        r = digest_dir(&h, path, ".j2", arena);
        af_hasher_final(&h, &ret->templates);
        if (r)
                return r;
        snprintf(path, sizeof(path), "%s/soc/%s.yaml", dir, soc);
        return af_digest_file(path, &ret->soc);
}

/* extra_rules entries are directories or single files. */
static int load_extra_rule(struct af_env *env, const char *path, struct af_rules *all, struct af_diags *diags) {
        struct stat st;
        struct af_rules more = {0};
        if (stat(path, &st) < 0)
                return -errno;
        int r;
        if (S_ISDIR(st.st_mode)) {
                r = af_rules_load_dir(env->arena, path, &more, diags);
        } else {
                AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
                struct af_rule *rule = af_arena_alloc(env->arena, sizeof(*rule));
                if (!rule)
                        return -ENOMEM;
                r = af_io_read_file(path, 1 << 22, &text);
                if (r)
                        return r;
                r = af_rule_parse(env->arena, path, (const char *)text.data, text.size, rule, diags);
                more = (struct af_rules){.rules = rule, .n_rules = 1};
        }
        if (r || !more.n_rules)
                return r;
        struct af_rule *rules = af_arena_calloc(env->arena, all->n_rules + more.n_rules, sizeof(*rules));
        if (!rules)
                return -ENOMEM;
        if (all->n_rules)
                memcpy(rules, all->rules, all->n_rules * sizeof(*rules));
        memcpy(rules + all->n_rules, more.rules, more.n_rules * sizeof(*rules));
        *all = (struct af_rules){.rules = rules, .n_rules = all->n_rules + more.n_rules};
        return 0;
}

static int forward(int r, const char *where, struct af_diags *diags) {
        if (r < 0)
                af_diag_error(diags, where, "cannot be read: %s", strerror(-r));
        return r > 0 ? AF_ENV_E_INVALID : r;
}

static int load_rules(struct af_env *env, const struct af_env_config *config, const char *dir, struct af_diags *diags) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/fusion", dir);
        int r = af_rules_load_dir(env->arena, path, &env->rules, diags);
        if (r)
                return forward(r, path, diags);
        for (const char *const *p = config->extra_rules; p && *p; p++)
                if ((r = load_extra_rule(env, *p, &env->rules, diags)))
                        return forward(r, *p, diags);
        snprintf(path, sizeof(path), "%s/templates", dir);
        r = af_templates_load_dir(env->arena, path, &env->templates, diags);
        return r ? forward(r, path, diags) : 0;
}

/* The data, and proof that the digests are of the bytes that were parsed: the same before and after. */
static int load_data(struct af_env *env, const struct af_env_config *config, const char *dir, const char *soc, struct af_diags *diags) {
        char path[4096];
        struct af_key_env after;
        snprintf(path, sizeof(path), "%s/soc", dir);
        int r = af_soc_load(path, soc, &env->soc, diags);
        if (!r)
                r = forward(digest_data(env->arena, config, dir, soc, &env->key), dir, diags);
        if (!r)
                r = af_soc_load(path, soc, &env->soc, diags); /* again: this time between the digests */
        if (!r)
                r = load_rules(env, config, dir, diags);
        if (!r)
                r = forward(digest_data(env->arena, config, dir, soc, &after), dir, diags);
        if (r)
                return r;
        bool same = af_digest_equal(&after.rules, &env->key.rules) && af_digest_equal(&after.templates, &env->key.templates) &&
                    af_digest_equal(&after.soc, &env->key.soc);
        return same ? 0 : forward(-EAGAIN, dir, diags);
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
        env->key.salt = config->salt ? af_arena_strdup(arena, config->salt) : NULL;
        if (config->salt && !env->key.salt)
                return -ENOMEM;
        af_key_environment(&env->key, &env->digest);
        return 0;
}
