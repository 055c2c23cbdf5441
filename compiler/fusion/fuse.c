/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pass: classify, then merge producer groups into consumer groups from the outputs backwards until nothing changes, then ask the
 * schedule once more about groups that grew since it was last asked. Steps are a table, so that further ones (siblings that share
 * inputs, recomputation) go beside the backward scan.
 */
#include <errno.h>
#include <string.h>

#include "compiler/fusion/fuse.h"

static int record(struct fuse *f, enum fuse_refusal why, uint32_t p, uint32_t c, const struct af_rule *rule, const char *text,
                  int64_t bytes) {
        int r = af_arena_grow(&f->scratch, &f->records, &f->cap_records, f->n_records + 1, sizeof(*f->records));
        if (r)
                return r;
        f->records[f->n_records++] = (struct fuse_record){why, p, c, rule, text, bytes};
        return 0;
}

static unsigned log2_floor(uint32_t n) {
        return 31u - (unsigned)__builtin_clz(n);
}

/* Asks the schedule about the union, where it is time to. */
static bool schedule_agrees(struct fuse *f, uint32_t p, uint32_t c, bool *ret_asked, const char **ret_why) {
        const struct fuse_group *gp = &f->groups[p], *gc = &f->groups[c];
        uint32_t n = gp->n_nodes + gc->n_nodes, large = AF_MAX(gp->n_nodes, gc->n_nodes), small = n - large;
        bool careful = (gp->flags | gc->flags) & FUSE_CAREFUL;
        *ret_asked = careful || n <= FUSE_ASK_ALWAYS || small > FUSE_ASK_ALWAYS / 4 || log2_floor(n) > log2_floor(large);
        if (!*ret_asked)
                return true;
        n = fuse_candidate(f, p, c);
        return n <= 1 || fuse_ask(f, f->nodes, n, ret_why);
}

/* First rule that allows the merge; the refusal of the rule that came furthest otherwise. */
static enum fuse_refusal try_rules(struct fuse *f, uint32_t p, uint32_t c, const struct fuse_crossing *x, uint32_t consumer,
                                   const struct af_rule **ret_rule) {
        enum fuse_refusal furthest = FUSE_NO_OPS;
        *ret_rule = NULL;
        for (uint32_t i = 0; i < f->rules->n_rules; i++) {
                enum fuse_refusal r = fuse_match(f, &f->rules->rules[i], p, c, x, consumer);
                if (r == FUSE_MERGED || r > furthest) {
                        furthest = r;
                        *ret_rule = &f->rules->rules[i];
                }
                if (r == FUSE_MERGED)
                        break;
        }
        return furthest;
}

static int check_limits(struct fuse *f, uint32_t p, uint32_t c, enum fuse_refusal *ret_why) {
        uint32_t n_reads, n_stored;
        if (f->groups[p].n_nodes + f->groups[c].n_nodes > f->soc->max_nodes) {
                *ret_why = FUSE_NODES;
                return 0;
        }
        int r = fuse_union_args(f, p, c, NULL, &n_reads, &n_stored);
        if (!r && (n_reads > f->soc->max_inputs || n_reads + n_stored > FUSE_MAX_ARGS))
                *ret_why = FUSE_INPUTS;
        return r;
}

/* Merges the groups of two linked nodes if everything allows it. *ret_why tells. 0 or -ENOMEM. */
static int try_merge(struct fuse *f, uint32_t producer, uint32_t consumer, enum fuse_refusal *ret_why) {
        uint32_t p = fuse_find(f, producer), c = fuse_find(f, consumer);
        const struct af_rule *rule;
        struct fuse_crossing x;
        const char *text = NULL;
        bool asked = false;
        fuse_cross(f, p, c, &x);
        enum fuse_refusal why = try_rules(f, p, c, &x, consumer, &rule);
        int r = why ? 0 : check_limits(f, p, c, &why);
        if (r)
                return r;
        if (!why)
                why = fuse_order(f, p, c);
        if (!why && !schedule_agrees(f, p, c, &asked, &text))
                why = FUSE_SCHEDULE;
        if (!why) {
                r = fuse_join(f, p, c, rule);
                f->groups[fuse_find(f, p)].asked = asked;
        }
        *ret_why = why;
        return r ? r : record(f, why, producer, consumer, rule, text, x.bytes_saved);
}

/* Tries to merge a node's group with the groups of its consumers. *ret_again: a cycle stood in the way, which a later merge may remove. */
static int scan_node(struct fuse *f, uint32_t n, bool *ret_merged, bool *ret_again) {
        const struct af_node *node = &f->g->nodes[n];
        *ret_again = false;
        for (uint32_t i = 0; i < node->n_out; i++) {
                uint32_t v = node->out[i], refused = AF_NONE;
                for (uint32_t u = f->users_first[v]; u < f->users_first[v + 1]; u++) {
                        uint32_t user = f->users[u], c = fuse_find(f, user);
                        enum fuse_refusal why;
                        if (f->fallback[user] || c == fuse_find(f, n) || c == refused)
                                continue;
                        int r = try_merge(f, n, user, &why);
                        if (r)
                                return r;
                        refused = why ? c : AF_NONE;
                        *ret_again |= why == FUSE_CYCLE || why == FUSE_CYCLE_LONG;
                        *ret_merged |= why == FUSE_MERGED;
                }
        }
        return 0;
}

/* Visits `todo` (ascending) from the back, and again those that a cycle stopped, until nothing changes. */
static int merge_backwards(struct fuse *f, uint32_t *todo, uint32_t n_todo) {
        for (bool merged = true; merged && n_todo > 0;) {
                uint32_t k = n_todo;
                merged = false;
                for (uint32_t i = n_todo; i-- > 0;) {
                        uint32_t n = todo[i];
                        bool again = false;
                        int r = f->live[n] && !f->fallback[n] ? scan_node(f, n, &merged, &again) : 0;
                        if (r)
                                return r;
                        if (again)
                                todo[--k] = n;
                }
                memmove(todo, todo + k, (n_todo - k) * sizeof(*todo));
                n_todo -= k;
        }
        return 0;
}

/* Takes groups apart that the schedule turns down; their nodes merge again with a question at every step. *ret_n nodes into todo. */
static int take_apart(struct fuse *f, uint32_t *todo, uint32_t *ret_n) {
        uint32_t n_nodes = f->g->n_nodes, k = 0;
        bool *apart = af_arena_calloc(&f->scratch, n_nodes, sizeof(*apart));
        if (!apart)
                return -ENOMEM;
        for (uint32_t n = 0; n < n_nodes; n++) {
                const char *why;
                if (!f->live[n] || f->fallback[n] || f->parent[n] != n || f->groups[n].asked)
                        continue;
                f->groups[n].asked = true;
                uint32_t size = fuse_candidate(f, n, AF_NONE);
                apart[n] = size > 1 && !fuse_ask(f, f->nodes, size, &why);
        }
        for (uint32_t n = 0; n < n_nodes; n++)
                if (f->live[n] && !f->fallback[n] && apart[fuse_find(f, n)])
                        todo[k++] = n;
        for (uint32_t i = 0; i < k; i++) {
                f->groups[todo[i]].flags |= FUSE_CAREFUL;
                int r = fuse_single(f, todo[i]);
                if (r)
                        return r;
        }
        *ret_n = k;
        return k ? fuse_renumber(f) : 0;
}

static int scan(struct fuse *f) {
        uint32_t n_todo = f->g->n_nodes, *todo = af_arena_calloc(&f->scratch, n_todo, sizeof(*todo));
        if (!todo)
                return -ENOMEM;
        for (uint32_t n = 0; n < n_todo; n++)
                todo[n] = n;
        while (n_todo > 0) { /* twice at most: what is merged carefully has the schedule's word already */
                int r = merge_backwards(f, todo, n_todo);
                if (!r)
                        r = take_apart(f, todo, &n_todo);
                if (r)
                        return r;
        }
        return 0;
}

/* ---- set-up ---- */

static int index_users(struct fuse *f) {
        const struct af_graph *g = f->g;
        uint32_t total = 0;
        for (uint32_t n = 0; n < g->n_nodes; n++)
                for (uint32_t i = 0; f->live[n] && i < g->nodes[n].n_in; i++, total++)
                        f->users_first[g->nodes[n].in[i] + 1]++;
        for (uint32_t v = 0; v < g->n_values; v++)
                f->users_first[v + 1] += f->users_first[v];
        f->users = af_arena_calloc(&f->scratch, total, sizeof(*f->users));
        if (!f->users)
                return -ENOMEM;
        /* value_mark serves as the fill count and goes back to zero */
        for (uint32_t n = 0; n < g->n_nodes; n++)
                for (uint32_t i = 0; f->live[n] && i < g->nodes[n].n_in; i++) {
                        uint32_t v = g->nodes[n].in[i];
                        f->users[f->users_first[v] + f->value_mark[v]++] = n;
                }
        if (g->n_values)
                memset(f->value_mark, 0, g->n_values * sizeof(*f->value_mark));
        return 0;
}

static int allocate(struct fuse *f) {
        uint32_t n = f->g->n_nodes, n_values = f->g->n_values;
        uint32_t **const per_node[] = {&f->parent, &f->next,    &f->effect_next, &f->effect_prev, &f->mark,
                                       &f->stack,  &f->forward, &f->backward,    &f->slots,       &f->nodes};
        for (size_t i = 0; i < AF_ARRAY_SIZE(per_node); i++)
                if (!(*per_node[i] = af_arena_calloc(&f->scratch, (size_t)n + 1, sizeof(uint32_t))))
                        return -ENOMEM;
        f->alike = af_arena_alloc(f->g->arena, sizeof(*f->alike));
        f->groups = af_arena_calloc(&f->scratch, n, sizeof(*f->groups));
        f->live = af_arena_calloc(&f->scratch, n, sizeof(bool));
        f->after_reduce = af_arena_calloc(&f->scratch, n, sizeof(bool));
        f->alias = af_arena_calloc(&f->scratch, n, sizeof(bool));
        f->fallback = af_arena_calloc(&f->scratch, n, sizeof(*f->fallback));
        f->users_first = af_arena_calloc(&f->scratch, (size_t)n_values + 1, sizeof(uint32_t));
        f->n_outside = af_arena_calloc(&f->scratch, n_values, sizeof(uint32_t));
        f->value_mark = af_arena_calloc(&f->scratch, n_values, sizeof(uint32_t));
        f->is_output = af_arena_calloc(&f->scratch, n_values, sizeof(bool));
        return f->alike && f->groups && f->live && f->after_reduce && f->alias && f->fallback && f->users_first && f->n_outside &&
                               f->value_mark && f->is_output
                       ? 0
                       : -ENOMEM;
}

static int start(struct fuse *f) {
        int r = allocate(f);
        if (!r)
                r = fuse_ask_init(f);
        if (!r)
                r = fuse_classify(f);
        if (!r)
                r = index_users(f);
        for (uint32_t n = 0; !r && n < f->g->n_nodes; n++) {
                f->parent[n] = n;
                f->next[n] = AF_NONE;
                if (f->live[n])
                        r = fuse_single(f, n);
        }
        return r;
}

static int (*const steps[])(struct fuse *f) = {start, scan};

int af_fuse(const struct af_graph *g, const struct af_rules *rules, const struct af_soc *soc, af_fusable_fn fusable, void *userdata,
            struct af_fusion *ret_fusion) {
        struct fuse f = {.g = g, .rules = rules, .soc = soc, .fusable = fusable, .userdata = userdata};
        struct af_fusion fusion = {0};
        int r = 0;
        af_arena_init(&f.scratch, 0);
        for (size_t i = 0; !r && i < AF_ARRAY_SIZE(steps); i++)
                r = steps[i](&f);
        if (!r)
                r = fuse_emit(&f, &fusion);
        af_arena_deinit(&f.scratch);
        if (!r)
                *ret_fusion = fusion;
        return r;
}
