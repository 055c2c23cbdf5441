/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Environment: one immutable snapshot of rules, templates, SoC files and toolchain, with its digest. A plan or compile job holds one.
 */
#pragma once

#include "compiler/codegen/codegen.h"
#include "compiler/fusion/rules.h"
#include "compiler/graph/key.h"
#include "compiler/toolchain/toolchain.h"

struct af_env_config {
        const char *rules_dir;                        /* has fusion/, soc/, templates/; NULL: installed or source tree's */
        const char *const *extra_rules;               /* further fusion rule files or directories; NULL-terminated; may be NULL */
        const char *default_soc;                      /* NULL: "Ascend910B2" */
        const char *default_toolchain;                /* NULL: "host" */
        const struct af_toolchain_config *toolchains; /* by id; "host" exists always */
        uint32_t n_toolchains;
        const char *salt;
};
struct af_env {
        struct af_arena *arena;
        struct af_rules rules;
        struct af_templates templates;
        struct af_soc soc;
        struct af_toolchain toolchain;
        struct af_key_env key;
        struct af_digest digest;
};
enum {
        AF_ENV_E_INVALID = 1 /* diagnostics: rules, templates, SoC */,
        AF_ENV_E_TOOLCHAIN = 2,
        AF_ENV_E_SOC = 3 /* unknown SoC */,
        AF_ENV_E_KILLED = 4 /* the toolchain's programs, while asked: try again */
};
/* Loads a snapshot for (soc, toolchain, twin); NULL: the defaults. */
int af_env_load(struct af_env *env, struct af_arena *arena, const struct af_env_config *config, const char *soc, const char *toolchain,
                enum af_twin twin, struct af_diags *diags) AF_WARN_UNUSED;
/* rules/soc/<name>.yaml. ret_digest (may be NULL): of the bytes that were read. */
int af_soc_load(const char *dir, const char *name, struct af_soc *ret_soc, struct af_digest *ret_digest,
                struct af_diags *diags) AF_WARN_UNUSED;
/*
 * The directory with rules/, twin/ and numeric/: $AUTOFUSE_DATA_DIR; share/autofused of the prefix that the running program lies in; the
 * source tree for a program of its build; else the installed one. Lives as long as the arena and the environment.
 */
const char *af_data_dir(struct af_arena *arena);
