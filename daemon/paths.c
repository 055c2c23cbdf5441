/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/paths.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *format(const char *a, const char *b) {
        char *path;

        return asprintf(&path, "%s%s", a, b) < 0 ? NULL : path;
}

char *af_path_socket(void) {
        const char *runtime = getenv("XDG_RUNTIME_DIR");
        char *path;

        if (geteuid() == 0)
                return strdup("/run/autofused/core.sock");
        if (runtime && runtime[0] == '/')
                return format(runtime, "/autofused/core.sock");
        return asprintf(&path, "/tmp/autofused-%u/core.sock", (unsigned)geteuid()) < 0 ? NULL : path;
}

char *af_path_state_dir(void) {
        const char *state = getenv("STATE_DIRECTORY"), *xdg = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
        struct passwd *pw;

        if (state && state[0] == '/') {
                char *first = strdup(state);

                if (first)
                        first[strcspn(first, ":")] = 0;
                return first;
        }
        if (geteuid() == 0)
                return strdup("/var/lib/autofused");
        if (xdg && xdg[0] == '/')
                return format(xdg, "/autofused");
        if (home && home[0] == '/' && home[1])
                return format(home, "/.local/state/autofused");
        pw = getpwuid(geteuid());
        return pw && pw->pw_dir && pw->pw_dir[0] == '/' && pw->pw_dir[1] ? format(pw->pw_dir, "/.local/state/autofused") : NULL;
}

/* name in a build tree; in a tree moved after its installation; else the installed one. */
static char *find_program(const char *name) {
        static const char *const places[] = {"", "/../libexec/autofused"};
        char self[4096], *slash = NULL, *path;
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

        if (n > 0) {
                self[n] = 0;
                slash = strrchr(self, '/');
        }
        if (slash)
                *slash = 0;
        for (size_t i = 0; slash && i < sizeof(places) / sizeof(places[0]); i++) {
                if (asprintf(&path, "%s%s/%s", self, places[i], name) < 0)
                        return NULL;
                if (access(path, X_OK) == 0)
                        return path;
                free(path);
        }
        return format(AF_INSTALL_LIBEXEC_DIR "/", name);
}

char *af_path_job(void) {
        return find_program("autofused-job");
}

char *af_path_gate(void) {
        return find_program("autofused-gate");
}
