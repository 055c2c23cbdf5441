/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "compiler/graph/key.h"

static struct af_key_env base(void) {
        struct af_key_env env = {.toolchain_id = "host", .toolchain_flags = "-O3 -march=x86-64"};

        memset(&env.soc, 1, sizeof(env.soc));
        memset(&env.rules, 2, sizeof(env.rules));
        memset(&env.templates, 3, sizeof(env.templates));
        memset(&env.toolchain_closure, 4, sizeof(env.toolchain_closure));
        return env;
}

static struct af_digest digest_of(const struct af_key_env *env) {
        struct af_digest d;

        af_key_environment(env, &d);
        return d;
}

Test(key, every_field_of_the_environment_counts) {
        struct af_key_env v[12];
        struct af_digest d[12];

        for (int i = 0; i < 12; i++)
                v[i] = base();
        v[1].soc.bytes[31] ^= 1;
        v[2].rules.bytes[0] ^= 1;
        v[3].templates.bytes[5] ^= 1;
        v[4].toolchain_closure.bytes[6] ^= 1;
        v[5].toolchain_id = "hos";
        v[6].salt = "";
        v[7].salt = "a";
        v[8].toolchain_id = NULL;
        v[9].toolchain_flags = "-O3 -march=x86-64-v2";
        v[10].toolchain_flags = "-O3";
        v[11].toolchain_flags = NULL;
        for (int i = 0; i < 12; i++) {
                d[i] = digest_of(&v[i]);
                for (int k = 0; k < i; k++)
                        cr_expect(!af_digest_equal(&d[i], &d[k]), "%d and %d", i, k);
        }
        struct af_key_env again = base();
        struct af_digest same = digest_of(&again);
        cr_expect(af_digest_equal(&same, &d[0]));
}

static void count(void *userdata, const char *name, const char *text, const void *p, size_t n) {
        unsigned *n_seen = userdata;

        cr_expect(*name && text && p);
        cr_expect_not(strchr(text, '/') != NULL && *text == '/', "no path of this machine enters a key");
        ++*n_seen;
}

Test(key, ingredients_are_listed) {
        struct af_key_env env = base();
        unsigned n = 0;

        af_key_ingredients(&env, count, &n);
        cr_expect_eq(n, 12);
}

Test(key, kernels) {
        struct af_digest closure = {{1}}, other = {{2}}, d[6];

        af_key_kernel("source", 6, &closure, "-O2", &d[0]);
        af_key_kernel("sourcf", 6, &closure, "-O2", &d[1]);
        af_key_kernel("source", 6, &other, "-O2", &d[2]);
        af_key_kernel("source", 6, &closure, "-O3", &d[3]);
        af_key_kernel("source-", 7, &closure, "O2", &d[4]);
        af_key_kernel("source", 6, &closure, NULL, &d[5]);
        for (int i = 0; i < 6; i++)
                for (int k = 0; k < i; k++)
                        cr_expect(!af_digest_equal(&d[i], &d[k]), "%d and %d", i, k);
}
