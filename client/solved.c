/* SPDX-License-Identifier: Apache-2.0 */
#include "client/solved.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void af_solved_memo_init(struct af_solved_memo *m) {
        *m = (struct af_solved_memo){0};
        pthread_mutex_init(&m->lock, NULL);
}

void af_solved_memo_deinit(struct af_solved_memo *m) {
        for (uint32_t i = 0; i < m->n; i++)
                af_solved_unref(m->items[i]);
        pthread_mutex_destroy(&m->lock);
}

struct af_solved_ref *af_solved_ref(struct af_solved_ref *s) {
        if (s)
                atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
        return s;
}

void af_solved_unref(struct af_solved_ref *s) {
        if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
                return;
        af_solved_deinit(&s->solved);
        free(s->symbols);
        free(s);
}

/* Moves entry i to the front. */
static struct af_solved_ref *use(struct af_solved_memo *m, uint32_t i) {
        struct af_solved_ref *s = m->items[i];
        memmove(&m->items[1], &m->items[0], i * sizeof(s));
        return m->items[0] = s;
}

static struct af_solved_ref *find(struct af_solved_memo *m, const int64_t *symbols, uint32_t n) {
        struct af_solved_ref *s = NULL;
        pthread_mutex_lock(&m->lock);
        for (uint32_t i = 0; i < m->n && !s; i++)
                if (memcmp(m->items[i]->symbols, symbols, n * sizeof(*symbols)) == 0)
                        s = af_solved_ref(use(m, i));
        pthread_mutex_unlock(&m->lock);
        return s;
}

/* Two threads may solve the same values at once; both are kept, and both are right. */
static void keep(struct af_solved_memo *m, struct af_solved_ref *s) {
        struct af_solved_ref *old = NULL;
        pthread_mutex_lock(&m->lock);
        if (m->n == AF_SOLVED_MAX)
                old = m->items[--m->n];
        m->items[m->n++] = af_solved_ref(s);
        use(m, m->n - 1);
        pthread_mutex_unlock(&m->lock);
        af_solved_unref(old);
}

int af_solved_memo_get(struct af_solved_memo *m, const struct af_bundle *form, const int64_t *symbols, uint32_t n,
                       struct af_solved_ref **ret, uint32_t *ret_which, const char **ret_why) {
        *ret = find(m, symbols, n);
        if (*ret)
                return 0;
        struct af_solved_ref *s = calloc(1, sizeof(*s));
        int64_t *copy = malloc((size_t)n * sizeof(*copy) + 1);
        int r = s && copy ? af_solve(form, symbols, &s->solved, ret_which, ret_why) : -ENOMEM;
        if (r) {
                free(s);
                free(copy);
                return r;
        }
        memcpy(copy, symbols, n * sizeof(*copy));
        s->symbols = copy;
        atomic_init(&s->refs, 1);
        keep(m, s);
        *ret = s;
        return 0;
}
