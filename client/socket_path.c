/* SPDX-License-Identifier: Apache-2.0 */
#include "client/socket_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int add(struct af_socket_paths *paths, char *path, bool named) {
        if (!path)
                return -ENOMEM;
        paths->items[paths->n_items++] = (struct af_socket_candidate){.path = path, .named = named};
        return 0;
}

char *af_socket_path_user(const char *env_runtime, uid_t uid) {
        char *path = NULL;
        int n = env_runtime && env_runtime[0] ? asprintf(&path, "%s/autofused/core.sock", env_runtime)
                                              : asprintf(&path, "/tmp/autofused-%u/core.sock", (unsigned)uid);
        return n < 0 ? NULL : path;
}

int af_socket_paths_make(const char *option, const char *env_socket, const char *env_runtime, uid_t uid,
                         struct af_socket_paths *ret_paths) {
        struct af_socket_paths paths = {0};
        const char *named = option && option[0] ? option : env_socket && env_socket[0] ? env_socket : NULL;
        int r;
        if (named) {
                r = add(&paths, strdup(named), true);
        } else {
                r = add(&paths, strdup(AF_SOCKET_SYSTEM), false);
                if (r == 0)
                        r = add(&paths, af_socket_path_user(env_runtime, uid), false);
        }
        if (r < 0) {
                af_socket_paths_deinit(&paths);
                return r;
        }
        *ret_paths = paths;
        return 0;
}

void af_socket_paths_deinit(struct af_socket_paths *paths) {
        for (uint32_t i = 0; i < paths->n_items; i++)
                free(paths->items[i].path);
        *paths = (struct af_socket_paths){0};
}

bool af_server_is_trusted(uid_t server, uid_t own, int64_t configured) {
        return server == 0 || server == own || (configured >= 0 && (int64_t)server == configured);
}
