/* SPDX-License-Identifier: Apache-2.0 */
/* Where the server's socket is (DESIGN.md, Daemon), and whose server is trusted. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/macros.h"

#define AF_SOCKET_SYSTEM         "/run/autofused/core.sock"
#define AF_SOCKET_MAX_CANDIDATES 2

struct af_socket_candidate {
        char *path;
        bool named; /* by the caller or AUTOFUSE_SOCKET: a server is expected there */
};
struct af_socket_paths {
        struct af_socket_candidate items[AF_SOCKET_MAX_CANDIDATES]; /* tried in order */
        uint32_t n_items;
};

/*
 * Lists the paths to try. option: the caller's path, or NULL. env_socket: $AUTOFUSE_SOCKET, env_runtime: $XDG_RUNTIME_DIR; NULL or "" where
 * unset. 0 or -ENOMEM.
 */
int af_socket_paths_make(const char *option, const char *env_socket, const char *env_runtime, uid_t uid,
                         struct af_socket_paths *ret_paths) AF_WARN_UNUSED;
void af_socket_paths_deinit(struct af_socket_paths *paths);
/* The per-user path alone: $XDG_RUNTIME_DIR/autofused/core.sock, or /tmp/autofused-<uid>/core.sock. malloc'd; NULL: no memory. */
char *af_socket_path_user(const char *env_runtime, uid_t uid) AF_WARN_UNUSED;

/* Whether the user of the process that listens may be believed: root, oneself, or the configured one (-1: none). */
bool af_server_is_trusted(uid_t server, uid_t own, int64_t configured);
