/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions that have been answered. Large graphs repeat the same layers: what the schedule said about a set of nodes holds for every set
 * that is alike, and what can be said about a node alone is said once per class of nodes.
 */
#include <errno.h>

#include "compiler/fusion/fuse.h"
#include "compiler/graph/traffic.h"

int fuse_ask_init(struct fuse *f) {
        int r = af_alike_init(f->alike, f->g);
        af_intern_init(&f->asked, &f->scratch);
        f->reason_known = r ? NULL : af_arena_calloc(&f->scratch, f->alike->n_classes, sizeof(*f->reason_known));
        f->reasons = r ? NULL : af_arena_calloc(&f->scratch, f->alike->n_classes, sizeof(*f->reasons));
        return f->reason_known && f->reasons ? 0 : -ENOMEM;
}

/* The number of a question, and whether it is new. 0 or -ENOMEM. */
static int find(struct fuse *f, uint32_t n_nodes, uint32_t *ret_number, bool *ret_fresh) {
        uint32_t n_words;
        const uint32_t *words;
        int r = af_alike_write(f->alike, f->nodes, n_nodes, f->stored, f->n_stored, &words, &n_words);
        if (!r)
                r = af_intern_put(&f->asked, words, n_words * sizeof(*words), ret_number, ret_fresh);
        if (!r)
                r = af_arena_grow(&f->scratch, &f->answers, &f->cap_answers, f->asked.n_items, sizeof(*f->answers));
        return r ? r : af_arena_grow(&f->scratch, &f->agreed, &f->cap_agreed, f->asked.n_items, sizeof(*f->agreed));
}

bool fuse_ask(struct fuse *f, uint32_t n_nodes, struct af_fuse_answer *ret) {
        const struct af_fuse_question q = {.nodes = f->nodes, .n_nodes = n_nodes, .stored = f->stored, .n_stored = f->n_stored};
        uint32_t number;
        bool fresh;
        if (find(f, n_nodes, &number, &fresh)) {
                ret->why = "no memory";
                return false;
        }
        struct af_fuse_answer *answer = &f->answers[number];
        if (fresh) {
                *answer = (struct af_fuse_answer){.bytes = -1};
                f->agreed[number] = f->ask->fusable(f->ask->userdata, f->g, &q, answer);
                if (!f->agreed[number] && !answer->why)
                        answer->why = "the schedule cannot run it";
                if (answer->bytes < 0)
                        answer->bytes = af_traffic(f->g, q.nodes, q.n_nodes, q.stored, q.n_stored);
        }
        *ret = *answer;
        return f->agreed[number];
}
