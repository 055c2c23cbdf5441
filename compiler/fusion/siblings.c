/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups that read the same value and do not wait for each other: one kernel reads it once, or at least is one launch. Of the readers of
 * a value a few stay open as partners for those that come later, so that many readers cost no more than their number.
 */
#include "compiler/fusion/fuse.h"

#define OPEN_SIBLINGS  8u
#define SIBLING_BUDGET 256u

/* Merges the group of `user` with one of the open ones. *ret_done: it is, or was, in one of their kernels. */
static int join_one(struct fuse *f, const uint32_t *open, uint32_t n_open, uint32_t user, bool *ret_done, bool *ret_merged) {
        uint32_t c = fuse_find(f, user);
        for (uint32_t i = 0; i < n_open; i++)
                if (fuse_find(f, open[i]) == c) {
                        *ret_done = true;
                        return 0;
                }
        for (uint32_t i = n_open; i-- > 0;) {
                uint32_t p = fuse_find(f, open[i]);
                enum fuse_refusal why;
                bool before = f->groups[p].pos < f->groups[c].pos;
                int r = fuse_try(f, before ? open[i] : user, before ? user : open[i], &why);
                if (r)
                        return r;
                if (why)
                        continue;
                *ret_done = *ret_merged = true;
                return 0;
        }
        return 0;
}

static int merge_readers(struct fuse *f, uint32_t value, bool *ret_merged) {
        uint32_t open[OPEN_SIBLINGS], n_open = 0;
        for (uint32_t u = f->users_first[value]; u < f->users_first[value + 1]; u++) {
                uint32_t user = f->users[u];
                bool done = false;
                if (f->fallback[user] || f->groups[fuse_find(f, user)].n_computing == 0)
                        continue;
                int r = join_one(f, open, n_open, user, &done, ret_merged);
                if (r)
                        return r;
                if (done)
                        continue;
                if (n_open == OPEN_SIBLINGS) {
                        for (uint32_t i = 1; i < OPEN_SIBLINGS; i++)
                                open[i - 1] = open[i];
                        n_open--;
                }
                open[n_open++] = user;
        }
        return 0;
}

int fuse_siblings(struct fuse *f, bool *ret_merged) {
        int r = 0;
        f->budget = SIBLING_BUDGET;
        *ret_merged = false;
        for (uint32_t v = 0; !r && v < f->g->n_values; v++)
                if (f->users_first[v + 1] - f->users_first[v] > 1 && !fuse_is_immediate(f->g, v))
                        r = merge_readers(f, v, ret_merged);
        f->budget = FUSE_CYCLE_BUDGET;
        return r;
}
