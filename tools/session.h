/* SPDX-License-Identifier: Apache-2.0 */
/* Where bundles come from: the server, through libautofuse, or the compiler in this process (--offline). Both give the same handles. */
#pragma once

#include "client/request.h"
#include "compiler/driver/driver.h"
#include "tools/args.h"

#define AF_OPTION_OFFLINE                                                                                                                  \
        { 0, "offline", AF_OPTION_FLAG, NULL, "compile in this process, without a server" }

struct af_session_env; /* a loaded environment, by target */
struct af_session {
        bool offline;
        bool quiet;            /* no progress on stderr */
        bool silent_fallbacks; /* `Fallback …` lines are printed by the command, or not at all */
        uint32_t deadline_ms;
        struct autofuse_context *ctx; /* server mode */
        struct af_session_env *envs;
        struct af_driver_opts opts; /* offline */
};
/*
 * Opens what the options ask for (--offline, --socket, --timeout; each may be missing from the command's table). The server is started
 * where none runs and $AUTOFUSE_AUTOSTART is not 0. Reasons go to stderr. 0 or AF_EXIT_FAILED.
 */
int af_session_open(const struct af_args *args, struct af_session *ret_session) AF_WARN_UNUSED;
/* For commands that never ask a server. */
void af_session_open_offline(struct af_session *ret_session);
void af_session_close(struct af_session *s);
/* Environment of a target in this process; lives as long as the session. Mistakes go to stderr. 0 or AF_EXIT_FAILED. */
int af_session_env(struct af_session *s, const char *soc, const char *toolchain, enum af_twin twin,
                   const struct af_env **ret_env) AF_WARN_UNUSED;
/* Compiles or looks up; waits. */
enum autofuse_status af_session_compile(struct af_session *s, const struct af_fragment *f, struct autofuse_bundle **ret_bundle,
                                        struct autofuse_error **ret_error) AF_WARN_UNUSED;
/* `error: PATH: TEXT` for each line, and frees the error. */
void af_session_report(const char *path, enum autofuse_status status, struct autofuse_error *error);
