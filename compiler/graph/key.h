/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys and their ingredients. af_key_ingredients is the only place that lists what is in a key; `autofusectl key --explain` prints
 * exactly these.
 */
#pragma once

#include "base/digest.h"

#define AF_KEY_VERSION 1

struct af_bundle_key {
        struct af_digest fragment;    /* over the canonical form */
        struct af_digest environment; /* SoC, rules, templates, versions, salt, toolchain: closure and flags */
};

struct af_key_env {
        const char *toolchain_id;
        struct af_digest soc, rules, templates, toolchain_closure;
        const char *toolchain_flags; /* as resolved: -march too */
        const char *salt;            /* AUTOFUSE_CACHE_SALT of the daemon; NULL: none */
};
/* Called once per ingredient: name, value for people, and the bytes that enter the digest. */
typedef void (*af_key_visit_fn)(void *userdata, const char *name, const char *text, const void *p, size_t n);
void af_key_ingredients(const struct af_key_env *env, af_key_visit_fn visit, void *userdata);
void af_key_environment(const struct af_key_env *env, struct af_digest *ret_digest);
void af_key_fragment(const void *canon, size_t n, struct af_digest *ret_digest);
/* Kernel key: source before its entry is named, toolchain closure, flags. */
void af_key_kernel(const void *source, size_t n, const struct af_digest *toolchain_closure, const char *flags,
                   struct af_digest *ret_digest);
