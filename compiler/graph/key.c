/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/graph/key.h"

#include <stdio.h>
#include <string.h>

#include "base/le.h"
#include "compiler/graph/canon.h"
#include "compiler_digest.h"
#include "numeric/expand.h"
#include "proto/bundle.h"
#include "proto/fragment.h"

static void visit_number(af_key_visit_fn visit, void *userdata, const char *name, uint64_t v) {
        uint8_t bytes[8];
        char text[24];

        af_le_put(bytes, v, sizeof(bytes));
        snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
        visit(userdata, name, text, bytes, sizeof(bytes));
}

static void visit_text(af_key_visit_fn visit, void *userdata, const char *name, const char *s) {
        /* Absent and empty differ: the name tells. */
        char absent[64];

        snprintf(absent, sizeof(absent), "%s?", name);
        if (s)
                visit(userdata, name, s, s, strlen(s));
        else
                visit(userdata, absent, "", "", 0);
}

static void visit_digest(af_key_visit_fn visit, void *userdata, const char *name, const struct af_digest *d) {
        char hex[AF_DIGEST_HEX_SIZE];

        af_digest_hex(d, hex);
        visit(userdata, name, hex, d->bytes, sizeof(d->bytes));
}

void af_key_ingredients(const struct af_key_env *env, af_key_visit_fn visit, void *userdata) {
        visit_number(visit, userdata, "key format", AF_KEY_VERSION);
        visit_text(visit, userdata, "compiler sources", AF_COMPILER_SOURCES);
        visit_number(visit, userdata, "canonical form", AF_CANON_VERSION);
        visit_number(visit, userdata, "bundle format", AF_BUNDLE_VERSION);
        visit_number(visit, userdata, "numerics", AF_NUMERIC_VERSION);
        visit_digest(visit, userdata, "soc", &env->soc);
        visit_digest(visit, userdata, "rules", &env->rules);
        visit_digest(visit, userdata, "templates", &env->templates);
        visit_text(visit, userdata, "toolchain", env->toolchain_id);
        visit_digest(visit, userdata, "toolchain closure", &env->toolchain_closure);
        visit_text(visit, userdata, "toolchain flags", env->toolchain_flags);
        visit_text(visit, userdata, "salt", env->salt);
}

static void visit_hash(void *userdata, const char *name, const char *text, const void *p, size_t n) {
        af_hasher_field(userdata, name, p, n);
}

void af_key_environment(const struct af_key_env *env, struct af_digest *ret_digest) {
        struct af_hasher h;

        af_hasher_init(&h, "autofuse.environment/1");
        af_key_ingredients(env, visit_hash, &h);
        af_hasher_final(&h, ret_digest);
}

void af_key_fragment(const void *canon, size_t n, struct af_digest *ret_digest) {
        af_digest_bytes("autofuse.fragment/1", canon, n, ret_digest);
}

void af_key_kernel(const void *source, size_t n, const struct af_digest *toolchain_closure, const char *flags,
                   struct af_digest *ret_digest) {
        struct af_hasher h;

        af_hasher_init(&h, "autofuse.kernel/1");
        af_hasher_field(&h, "source", source, n);
        af_hasher_field(&h, "toolchain closure", toolchain_closure->bytes, sizeof(toolchain_closure->bytes));
        af_hasher_str(&h, "flags", flags);
        af_hasher_final(&h, ret_digest);
}
