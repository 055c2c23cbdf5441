/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same bits whatever compiler, optimisation and instruction set: identity.c is built several ways, run, and its output compared line
 * by line. Compilers that are not installed are left out.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_TEXT = 1 << 16 };

static const struct config {
        const char *name;
        const char *compiler, *flags;
        bool headers_only; /* as C++, the primitives alone */
} configs[] = {
        {"gcc-o0", "gcc", "-std=gnu17 -O0", false},
        {"gcc-o3-native", "gcc", "-std=gnu17 -O3 -march=native", false},
        {"clang-o3-native", "clang", "-std=gnu17 -O3 -march=native", false},
        {"gxx-o3-native", "g++", "-std=gnu++17 -O3 -march=native", true},
        {"clangxx-o2", "clang++", "-std=gnu++17 -O2", true},
};
enum { N_CONFIGS = sizeof(configs) / sizeof(configs[0]) };

/* The output of a command; ret_text has MAX_TEXT bytes. Its exit code. */
static int output_of(const char *command, char *ret_text) {
        FILE *p = popen(command, "r");
        size_t n;

        cr_assert_not_null(p);
        n = fread(ret_text, 1, MAX_TEXT - 1, p);
        ret_text[n] = 0;
        return pclose(p);
}

/* Builds and runs one configuration in dir. False: the compiler is not there. */
static bool run_config(const struct config *c, const char *root, const char *dir, char *ret_text) {
        char command[2048];

        snprintf(command, sizeof(command), "command -v %s >/dev/null", c->compiler);
        if (output_of(command, ret_text))
                return false;
        snprintf(command, sizeof(command), "cd '%s' && %s %s -D_GNU_SOURCE -ffp-contract=off -fno-math-errno -I. %s %s -o '%s/%s' 2>&1",
                 root, c->compiler, c->flags, c->headers_only ? "-DIDENTITY_HEADERS_ONLY -x c++" : "numeric/*.c",
                 "tests/unit/numeric/identity.c", dir, c->name);
        cr_assert_eq(output_of(command, ret_text), 0, "%s:\n%s", command, ret_text);
        snprintf(command, sizeof(command), "'%s/%s'", dir, c->name);
        cr_assert_eq(output_of(command, ret_text), 0, "%s", command);
        return true;
}

/* The first line in which b differs from a, as far as b goes; NULL. */
static const char *first_difference(const char *a, const char *b) {
        while (*b) {
                size_t n = strcspn(b, "\n") + 1;

                if (strncmp(a, b, n))
                        return b;
                a += n;
                b += n;
        }
        return NULL;
}

Test(identity, compilers_and_flags, .timeout = 900) {
        static char first[MAX_TEXT], text[MAX_TEXT];
        const char *root = getenv("AF_SOURCE_ROOT"), *build = getenv("AF_BUILD_ROOT");
        char dir[512], command[600];
        int n_run = 0;

        if (!root || !build)
                cr_skip_test("needs AF_SOURCE_ROOT and AF_BUILD_ROOT");
        snprintf(dir, sizeof(dir), "%s/identity-XXXXXX", build);
        cr_assert_not_null(mkdtemp(dir));
        for (int i = 0; i < N_CONFIGS; i++) {
                const char *at;

                if (!run_config(&configs[i], root, dir, n_run ? text : first))
                        continue;
                if (n_run++) {
                        at = first_difference(first, text);
                        cr_expect_null(at, "%s differs: %.*s", configs[i].name, at ? (int)strcspn(at, "\n") : 0, at ? at : "");
                }
        }
        snprintf(command, sizeof(command), "rm -r '%s'", dir);
        cr_expect_eq(output_of(command, text), 0);
        cr_expect_gt(n_run, 1, "fewer than two compilers");
}
