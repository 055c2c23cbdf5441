/* SPDX-License-Identifier: Apache-2.0 */
/* A form's tables filled in for one tuple of symbol values, shared by handles; a content keeps the ones used last. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/solve.h"

#define AF_SOLVED_MAX 64u /* kept per content */

struct af_solved_ref {
        atomic_uint refs;
        int64_t *symbols; /* canonical order */
        struct af_solved solved;
};
struct af_solved_memo {
        pthread_mutex_t lock;
        struct af_solved_ref *items[AF_SOLVED_MAX]; /* last used first */
        uint32_t n;
};
void af_solved_memo_init(struct af_solved_memo *m);
void af_solved_memo_deinit(struct af_solved_memo *m);
/*
 * What is kept for these values, or solved now. The caller gets a reference. n: symbols of the form. Errors as af_solve. Thread-safe.
 */
int af_solved_memo_get(struct af_solved_memo *m, const struct af_bundle *form, const int64_t *symbols, uint32_t n,
                       struct af_solved_ref **ret, uint32_t *ret_which, const char **ret_why) AF_WARN_UNUSED;
struct af_solved_ref *af_solved_ref(struct af_solved_ref *s); /* NULL stays NULL */
void af_solved_unref(struct af_solved_ref *s);
