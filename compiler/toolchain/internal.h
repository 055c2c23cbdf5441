/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share. */
#pragma once

#include "base/spawn.h"
#include "compiler/toolchain/toolchain.h"

#define AF_TOOLCHAIN_SYMBOL_LINE "\nAF_TWIN_ENTRY(%s)\n"

/* The whole environment of every program run here. tmp may be NULL. */
struct af_tool_env {
        char tmpdir[4096 + 16];
        const char *envp[8];
};
void af_tool_env_init(struct af_tool_env *e, const char *tmp, const char *ascend_home);

/* A growing argv in an arena; sticky failure. */
struct af_argv {
        struct af_arena *arena;
        const char **items;
        uint32_t n, cap;
        bool failed;
};
void af_argv_add(struct af_argv *a, const char *arg); /* borrows arg; NULL (no memory) fails */
void af_argv_add_all(struct af_argv *a, const char *const *args);
void af_argv_split(struct af_argv *a, const char *text); /* at blanks; text may be NULL */
/* NULL-terminated, or NULL where anything failed. */
const char *const *af_argv_take(struct af_argv *a);
char *af_argv_join(struct af_arena *arena, const char *const *argv) AF_WARN_UNUSED;

/* What a run that was to tell something came to: 0, MISSING where it refused, KILLED where it was ended and may well answer next time. */
int af_tool_told(const struct af_spawn_result *result, const struct af_buf *err) AF_WARN_UNUSED;
/* Runs driver with up to three arguments, gives stdout (zero-terminated) in out and stderr in err (may be NULL). 0, -errno, MISSING,
 * KILLED. */
int af_tool_ask(const char *driver, const char *const *args, struct af_buf *out, struct af_buf *err) AF_WARN_UNUSED;
/* Absolute path of a program named by path or by name; NULL: not found or no memory. */
char *af_tool_find(struct af_arena *arena, const char *name) AF_WARN_UNUSED;

int af_host_probe(struct af_arena *arena, struct af_toolchain *t, struct af_closure *c, struct af_diags *diags) AF_WARN_UNUSED;
int af_npu_probe(struct af_arena *arena, struct af_toolchain *t, struct af_closure *c, struct af_diags *diags) AF_WARN_UNUSED;
int af_npu_command(struct af_arena *arena, const struct af_toolchain *t, const char *source, const char *output,
                   const char *const **ret_argv) AF_WARN_UNUSED;
int af_npu_link_command(struct af_arena *arena, const struct af_toolchain *t, const char *object, const char *output,
                        const char *const **ret_argv) AF_WARN_UNUSED;

/* Memo of a probe, under config.pch_dir (memo.c). load: 0 and *t filled, or 1: nothing usable. */
int af_memo_load(struct af_arena *arena, const struct af_digest *key, struct af_toolchain *t, struct af_closure *c) AF_WARN_UNUSED;
void af_memo_save(const struct af_digest *key, const struct af_toolchain *t, const struct af_closure *c);

/* Precompiled header (pch.c): directory to put before the include path, or NULL: compile plainly. */
char *af_pch_get(struct af_arena *arena, const struct af_toolchain *t, const char *tmp, uint64_t timeout_ms, int lifeline_fd,
                 struct af_buf *trace) AF_WARN_UNUSED;

/* What a finished run means: 0, REJECTED, KILLED, TIMEOUT, SPACE, or -ECANCELED where the lifeline went. */
int af_tool_classify(const struct af_spawn_result *result, const void *err, size_t n_err) AF_WARN_UNUSED;
/* -EACCES for a directory that another user can write; 0. */
int af_dir_ours(const char *path) AF_WARN_UNUSED;
