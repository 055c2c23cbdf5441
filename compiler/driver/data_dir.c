/* SPDX-License-Identifier: Apache-2.0 */
/* Where rules/, twin/ and numeric/ are. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compiler/driver/env.h"

/* A tree moved after its installation: the programs lie in PREFIX/bin and PREFIX/libexec/autofused. */
static const char *beside(struct af_arena *arena, const char *program) {
        char *prefix = af_arena_strdup(arena, program);
        for (int up = 0; prefix && up < 3; up++) {
                char *slash = strrchr(prefix, '/');
                if (!slash || slash == prefix)
                        return NULL;
                *slash = 0;
                const char *dir = up ? af_arena_printf(arena, "%s/share/autofused", prefix) : NULL;
                const char *rules = dir ? af_arena_printf(arena, "%s/rules/fusion", dir) : NULL;
                if (rules && access(rules, R_OK) == 0)
                        return dir;
        }
        return NULL;
}

const char *af_data_dir(struct af_arena *arena) {
        const char *env = getenv("AUTOFUSE_DATA_DIR");
        char self[4096];
        if (env && env[0] == '/')
                return env;
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        if (n > 0) {
                self[n] = 0;
                const char *dir = beside(arena, self);
                if (dir)
                        return dir;
                if (strncmp(self, AF_BUILD_DIR "/", strlen(AF_BUILD_DIR "/")) == 0)
                        return AF_SOURCE_DIR;
        }
        return AF_INSTALL_DATA_DIR;
}
