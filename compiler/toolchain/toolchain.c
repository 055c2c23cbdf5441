/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/toolchain/toolchain.h"

#include <errno.h>

#include "compiler/toolchain/internal.h"

/* What a memoised probe depends on besides the files that it names. */
static void memo_key(const struct af_toolchain *t, struct af_digest *ret_key) {
        struct af_hasher h;

        af_hasher_init(&h, "autofused.probe/1");
        af_hasher_u64(&h, "kind", t->kind);
        af_hasher_u64(&h, "twin", t->twin);
        af_hasher_str(&h, "driver", t->config.driver);
        af_hasher_str(&h, "flags", t->config.extra_flags);
        af_hasher_str(&h, "twin_dir", t->config.twin_dir);
        af_hasher_str(&h, "include_root", t->config.include_root);
        af_hasher_str(&h, "ascend_home", t->config.ascend_home);
        af_hasher_str(&h, "arch", t->ccec_arch);
        af_hasher_final(&h, ret_key);
}

static int copy_config(struct af_arena *arena, const struct af_toolchain_config *from, struct af_toolchain_config *to) {
        const char *const *src[] = {&from->id,           &from->driver,  &from->extra_flags, &from->twin_dir,
                                    &from->include_root, &from->pch_dir, &from->ascend_home, &from->tmp_dir};
        const char **dst[] = {&to->id,           &to->driver,  &to->extra_flags, &to->twin_dir,
                              &to->include_root, &to->pch_dir, &to->ascend_home, &to->tmp_dir};

        *to = *from;
        for (uint32_t i = 0; i < AF_ARRAY_SIZE(src); i++)
                if (*src[i] && !(*dst[i] = af_arena_strdup(arena, *src[i])))
                        return -ENOMEM;
        return 0;
}

static int finish(struct af_arena *arena, struct af_toolchain *t, struct af_closure *c) {
        const char **names = af_arena_calloc(arena, c->n + 1, sizeof(*names));

        if (!names)
                return -ENOMEM;
        af_closure_finish(c, &t->closure_digest);
        for (uint32_t i = 0; i < c->n; i++)
                names[i] = c->files[i].path;
        t->closure = names;
        t->closure_files = c->files;
        t->n_closure = c->n;
        return 0;
}

int af_toolchain_probe(struct af_arena *arena, const struct af_toolchain_config *config, const struct af_soc *soc, enum af_twin twin,
                       struct af_toolchain *ret, struct af_diags *diags) {
        struct af_toolchain t = {.kind = config->kind, .twin = config->kind == AF_TOOLCHAIN_HOST ? twin : AF_TWIN_DEFAULT};
        struct af_closure c = {.arena = arena};
        struct af_digest key;
        int r = copy_config(arena, config, &t.config);

        if (r < 0)
                return r;
        t.id = t.config.id;
        if (t.kind != AF_TOOLCHAIN_HOST) {
                t.npu_arch = af_arena_strdup(arena, soc->arch);
                t.ccec_arch = af_arena_strdup(arena, soc->ccec_arch);
                if (!t.npu_arch || !t.ccec_arch)
                        return -ENOMEM;
        }
        memo_key(&t, &key);
        r = af_memo_load(arena, &key, &t, &c);
        if (r < 0)
                return r;
        if (r > 0) {
                c = (struct af_closure){.arena = arena};
                r = t.kind == AF_TOOLCHAIN_HOST ? af_host_probe(arena, &t, &c, diags) : af_npu_probe(arena, &t, &c, diags);
                if (r)
                        return r;
                af_memo_save(&key, &t, &c);
        }
        r = finish(arena, &t, &c);
        if (r < 0)
                return r;
        *ret = t;
        return 0;
}

int af_toolchain_recheck(const struct af_toolchain *t) {
        int r = af_closure_recheck(t->closure_files, t->n_closure);

        return r > 0 ? AF_TOOLCHAIN_E_CHANGED : r;
}

int af_toolchain_command(struct af_arena *arena, const struct af_toolchain *t, const char *source_path, const char *output_path,
                         const char *const **ret_argv) {
        static const char *const link[] = {"-shared", "-s", "-Wl,--as-needed", "-Wl,--build-id=none", "-Wl,-z,noseparate-code", "-x",
                                           "c++",     NULL};
        struct af_argv argv = {.arena = arena};

        if (t->kind != AF_TOOLCHAIN_HOST)
                return af_npu_command(arena, t, source_path, output_path, ret_argv);
        af_argv_add_all(&argv, t->argv);
        af_argv_add_all(&argv, link);
        af_argv_add(&argv, source_path);
        af_argv_add(&argv, "-o");
        af_argv_add(&argv, output_path);
        *ret_argv = af_argv_take(&argv);
        return *ret_argv ? 0 : -ENOMEM;
}
