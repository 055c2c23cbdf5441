/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pass: classify, then merge producer groups into consumer groups from the outputs backwards until nothing changes, then ask the
 * schedule once more about groups that grew since it was last asked. Steps are a table, so that further ones (siblings that share
 * inputs, recomputation) go beside the backward scan.
 */
#include <errno.h>
#include <string.h>

#include "compiler/fusion/fuse.h"
#include "compiler/graph/traffic.h"

static int record(struct fuse *f, struct fuse_record r) {
        int e = af_arena_grow(&f->scratch, &f->records, &f->cap_records, f->n_records + 1, sizeof(*f->records));
        if (!e)
                f->records[f->n_records++] = r;
        return e;
}

static unsigned log2_floor(uint32_t n) {
        return 31u - (unsigned)__builtin_clz(n);
}

/* Every node computes as many elements as it reads, all dense: such groups share axes whatever their size. */
static bool is_plain(const struct fuse_group *group) {
        const uint32_t computes = 1u << AF_CLASS_ELEMENTWISE | 1u << AF_CLASS_COMPARE | 1u << AF_CLASS_SELECT | 1u << AF_CLASS_CAST;
        return (group->classes & ~computes) == 0 && (group->flags & (FUSE_BROADCAST | FUSE_STRIDED)) == 0;
}

/* Whether it is time to ask the schedule about the union: always while it is small, around reductions somewhat longer, seldom where both
 * are plain. All that were not asked about are at the end. */
static bool is_time(const struct fuse_group *gp, const struct fuse_group *gc) {
        uint32_t n = gp->n_nodes + gc->n_nodes, large = AF_MAX(gp->n_nodes, gc->n_nodes), small = n - large;
        if ((gp->flags | gc->flags) & FUSE_CAREFUL)
                return true;
        if (is_plain(gp) && is_plain(gc))
                return n > FUSE_ASK_PLAIN && log2_floor(n) > log2_floor(large);
        uint32_t always = gp->n_reduce + gc->n_reduce > 0 ? FUSE_ASK_REDUCING : FUSE_ASK_ALWAYS;
        return n <= always || small > FUSE_ASK_ALWAYS / 4 || log2_floor(n) > log2_floor(large);
}

/* Cycles that the union saves: bytes through all cores, and a launch, less the meetings that it adds. */
static double gain(const struct fuse *f, const struct fuse_group *gp, const struct fuse_group *gc, const struct af_fuse_answer *u) {
        double rate = f->soc->load.a * f->soc->vector_cores + f->soc->load.b, cycles = 0;
        if (rate > 0)
                cycles = (double)(gp->bytes + gc->bytes - u->bytes) / rate;
        if (gp->n_computing > 0 && gc->n_computing > 0)
                cycles += f->soc->launch_cycles;
        return cycles - ((double)u->meetings - gp->meetings - gc->meetings) * f->soc->sync_all_cycles;
}

/* Asks the schedule about the union, where it is time to, and weighs its answer. *ret: what the union costs. */
static int weigh(struct fuse *f, uint32_t p, uint32_t c, const struct fuse_union *u, bool *ret_asked, struct af_fuse_answer *ret,
                 enum fuse_refusal *ret_why) {
        const struct fuse_group *gp = &f->groups[p], *gc = &f->groups[c];
        uint32_t n;
        *ret_asked = is_time(gp, gc);
        *ret = (struct af_fuse_answer){.bytes = gp->bytes + gc->bytes - (gp->turn_bytes + gc->turn_bytes - u->turn_bytes),
                                       .meetings = gp->meetings + gc->meetings};
        if (!*ret_asked)
                return 0;
        int r = fuse_candidate(f, p, c, &n);
        if (r || n <= 1)
                return r;
        if (!fuse_ask(f, n, ret))
                *ret_why = FUSE_SCHEDULE;
        else if (ret->bytes > gp->bytes + gc->bytes)
                *ret_why = FUSE_MORE_BYTES;
        else if (gain(f, gp, gc, ret) < 0)
                *ret_why = FUSE_MEETINGS;
        return 0;
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

static enum fuse_refusal check_limits(const struct fuse *f, uint32_t p, uint32_t c, const struct fuse_union *u) {
        const struct fuse_group *gp = &f->groups[p], *gc = &f->groups[c];
        if (gp->fence && gc->fence && gp->fence != gc->fence)
                return FUSE_FENCE;
        if (gp->n_nodes + gc->n_nodes > f->soc->max_nodes)
                return FUSE_NODES;
        if (u->n_reads > f->soc->max_inputs || u->n_reads + u->n_stored > FUSE_MAX_ARGS)
                return FUSE_INPUTS;
        return FUSE_MERGED;
}

int fuse_try(struct fuse *f, uint32_t producer, uint32_t consumer, enum fuse_refusal *ret_why) {
        uint32_t p = fuse_find(f, producer), c = fuse_find(f, consumer);
        struct fuse_record rec = {.producer = producer, .consumer = consumer, .apart = f->groups[p].bytes + f->groups[c].bytes};
        struct fuse_crossing x;
        struct fuse_union u;
        struct af_fuse_answer answer = {0};
        bool asked = false;
        fuse_cross(f, p, c, &x);
        rec.why = try_rules(f, p, c, &x, consumer, &rec.rule);
        rec.launches_saved = f->groups[p].n_computing > 0 && f->groups[c].n_computing > 0;
        int r = rec.why ? 0 : fuse_unite(f, p, c, false, &u);
        if (!r && !rec.why)
                rec.why = check_limits(f, p, c, &u);
        if (!r && !rec.why)
                rec.why = fuse_order(f, p, c);
        if (!r && !rec.why)
                r = weigh(f, p, c, &u, &asked, &answer, &rec.why);
        rec.text = answer.why;
        rec.together = answer.bytes;
        if (!r && !rec.why && !(r = fuse_join(f, p, c, rec.rule))) {
                struct fuse_group *joined = &f->groups[fuse_find(f, p)];
                joined->asked = asked;
                joined->bytes = answer.bytes;
                joined->meetings = answer.meetings;
        }
        *ret_why = rec.why;
        return r ? r : record(f, rec);
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
                        int r = fuse_try(f, n, user, &why);
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
                struct af_fuse_answer answer;
                if (!f->live[n] || f->fallback[n] || f->parent[n] != n || f->groups[n].asked)
                        continue;
                f->groups[n].asked = true;
                uint32_t size;
                int r = fuse_candidate(f, n, AF_NONE, &size);
                if (r)
                        return r;
                apart[n] = size > 1 && !fuse_ask(f, size, &answer);
                f->groups[n].bytes = size > 1 && !apart[n] ? answer.bytes : f->groups[n].bytes;
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

/* Producers into consumers, then siblings, until nothing changes. */
static int merge_all(struct fuse *f, uint32_t *todo, uint32_t n_todo) {
        bool merged = true;
        int r = merge_backwards(f, todo, n_todo);
        for (unsigned round = 0; !r && merged && round < FUSE_MAX_ROUNDS; round++) {
                r = fuse_siblings(f, &merged);
                for (uint32_t n = n_todo = 0; n < f->g->n_nodes; n++)
                        todo[n_todo++] = n;
                if (!r && merged)
                        r = merge_backwards(f, todo, n_todo);
        }
        return r;
}

static int scan(struct fuse *f) {
        uint32_t n_todo = f->g->n_nodes, *todo = af_arena_calloc(&f->scratch, n_todo, sizeof(*todo));
        if (!todo)
                return -ENOMEM;
        for (uint32_t n = 0; n < n_todo; n++)
                todo[n] = n;
        while (n_todo > 0) { /* twice at most: what is merged carefully has the schedule's word already */
                int r = merge_all(f, todo, n_todo);
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
        uint32_t **const per_node[] = {&f->parent, &f->next, &f->mark, &f->stack, &f->forward, &f->backward, &f->slots, &f->nodes};
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
        f->n_inside = af_arena_calloc(&f->scratch, n_values, sizeof(uint32_t));
        f->bytes = af_arena_calloc(&f->scratch, n_values, sizeof(*f->bytes));
        f->value_mark = af_arena_calloc(&f->scratch, n_values, sizeof(uint32_t));
        f->is_output = af_arena_calloc(&f->scratch, n_values, sizeof(bool));
        return f->alike && f->groups && f->live && f->after_reduce && f->alias && f->fallback && f->users_first && f->n_outside &&
                               f->value_mark && f->is_output
                       ? 0
                       : -ENOMEM;
}

static int start(struct fuse *f) {
        int r = allocate(f);
        f->budget = FUSE_CYCLE_BUDGET;
        if (!r)
                fuse_mark_live(f);
        for (uint32_t v = 0; !r && v < f->g->n_values; v++)
                f->bytes[v] = af_value_bytes(f->g, v);
        if (!r)
                r = index_users(f);
        if (!r)
                r = fuse_ask_init(f);
        if (!r)
                r = fuse_classify(f);
        if (!r)
                r = fuse_order_init(f);
        for (uint32_t n = 0; !r && n < f->g->n_nodes; n++) {
                f->parent[n] = n;
                f->next[n] = AF_NONE;
                if (f->live[n])
                        r = fuse_single(f, n);
        }
        return r ? r : fuse_renumber(f);
}

static int (*const steps[])(struct fuse *f) = {start, scan};

int af_fuse(const struct af_graph *g, const struct af_rules *rules, const struct af_soc *soc, const struct af_fuse_ask *ask,
            struct af_fusion *ret_fusion) {
        struct fuse f = {.g = g, .rules = rules, .soc = soc, .ask = ask};
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
