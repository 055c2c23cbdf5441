/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions that have been answered. Large graphs repeat the same layers: what the schedule said about a set of nodes holds for every set
 * that is alike, and what can be said about a node alone is said once per class of nodes.
 */
#include <errno.h>

#include "compiler/fusion/fuse.h"

int fuse_ask_init(struct fuse *f) {
        int r = af_alike_init(f->alike, f->g);
        af_intern_init(&f->asked, &f->scratch);
        f->reason_known = r ? NULL : af_arena_calloc(&f->scratch, f->alike->n_classes, sizeof(*f->reason_known));
        f->reasons = r ? NULL : af_arena_calloc(&f->scratch, f->alike->n_classes, sizeof(*f->reasons));
        return f->reason_known && f->reasons ? 0 : -ENOMEM;
}

bool fuse_ask(struct fuse *f, const uint32_t *nodes, uint32_t n_nodes, const char **ret_why) {
        uint32_t n_words, number;
        const uint32_t *words;
        bool fresh;
        if (af_alike_write(f->alike, nodes, n_nodes, NULL, AF_NONE, &words, &n_words) ||
            af_intern_put(&f->asked, words, n_words * sizeof(*words), &number, &fresh) ||
            af_arena_grow(&f->scratch, &f->answers, &f->cap_answers, f->asked.n_items, sizeof(*f->answers))) {
                *ret_why = "no memory";
                return false;
        }
        struct fuse_answer *answer = &f->answers[number];
        if (fresh) {
                answer->yes = f->fusable(f->userdata, f->g, nodes, n_nodes, &answer->why);
                if (!answer->yes && !answer->why)
                        answer->why = "the schedule cannot run it";
        }
        if (!answer->yes)
                *ret_why = answer->why;
        return answer->yes;
}
