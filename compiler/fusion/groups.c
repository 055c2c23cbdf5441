/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of nodes under union-find, and a topological order of the groups that is kept while they merge: merging producer p into consumer
 * c is allowed where no other group lies on a way from p to c. Only groups that stand between the two can, so the look is short; the
 * groups that follow p move behind c, those that lead to c stay before it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/fusion/fuse.h"
#include "compiler/graph/traffic.h"

uint32_t fuse_find(struct fuse *f, uint32_t node) {
        while (f->parent[node] != node) {
                f->parent[node] = f->parent[f->parent[node]];
                node = f->parent[node];
        }
        return node;
}

static uint32_t producer(const struct fuse *f, uint32_t value) {
        const struct af_value *v = &f->g->values[value];
        return v->kind == AF_VALUE_NODE ? v->index : AF_NONE;
}

static int by_value(const void *a, const void *b) {
        const struct fuse_read *x = a, *y = b;
        return x->value < y->value ? -1 : x->value > y->value;
}

static int single_reads(struct fuse *f, uint32_t node) {
        const struct af_node *n = &f->g->nodes[node];
        struct fuse_group *group = &f->groups[node];
        struct fuse_read *reads = af_arena_calloc(&f->scratch, n->n_in, sizeof(*reads));
        uint32_t n_reads = 0;
        if (!reads)
                return -ENOMEM;
        for (uint32_t i = 0; i < n->n_in; i++)
                if (!fuse_is_immediate(f->g, n->in[i]))
                        reads[n_reads++] = (struct fuse_read){n->in[i], 1, af_operand_bytes(f->g, node, i)};
        if (n_reads > 1)
                qsort(reads, n_reads, sizeof(*reads), by_value);
        uint32_t k = 0;
        for (uint32_t i = 0; i < n_reads; i++) {
                if (k > 0 && reads[k - 1].value == reads[i].value) {
                        reads[k - 1].n_uses++;
                        reads[k - 1].touched += reads[i].touched;
                } else {
                        reads[k++] = reads[i];
                }
        }
        group->reads = reads;
        group->n_reads = k;
        return 0;
}

static int64_t read_bytes(const struct fuse *f, const struct fuse_read *read) {
        return AF_MIN(read->touched, f->bytes[read->value]);
}

int fuse_single(struct fuse *f, uint32_t node) {
        const struct af_node *n = &f->g->nodes[node];
        bool reduces = af_op_info(n->op)->cls == AF_CLASS_REDUCE;
        uint32_t careful = f->groups[node].flags & FUSE_CAREFUL;
        f->groups[node] = (struct fuse_group){.first = node, .last = node, .n_nodes = 1, .pos = node, .n_reduce = reduces, .asked = true};
        struct fuse_group *group = &f->groups[node];
        group->n_computing = !f->alias[node];
        group->flags = fuse_node_flags(f, node) | careful;
        group->dtypes = fuse_node_dtypes(f, node);
        group->classes = 1u << af_op_info(n->op)->cls;
        group->fence = f->ask->fence ? f->ask->fence[node] : 0;
        af_op_set_add(&group->ops, n->op);
        f->parent[node] = node;
        f->next[node] = AF_NONE;
        f->after_reduce[node] = reduces;
        for (uint32_t i = 0; i < n->n_out; i++) {
                uint32_t v = n->out[i];
                f->n_outside[v] = f->users_first[v + 1] - f->users_first[v];
                if (!f->is_output[v] && f->n_outside[v] == 0)
                        continue;
                group->n_stored++;
                group->stored_bytes += f->bytes[v];
        }
        int r = single_reads(f, node);
        for (uint32_t i = 0; i < group->n_reads; i++)
                group->turn_bytes += read_bytes(f, &group->reads[i]);
        group->turn_bytes = f->alias[node] ? 0 : group->turn_bytes + group->stored_bytes;
        group->bytes = group->turn_bytes;
        return r;
}

/* ---- neighbours of a group ---- */

struct walk { /* over the edges of a group's nodes, in one direction */
        uint32_t node, out, at, order_at;
};

/* Next group that group `root` feeds (itself and repeats included), or AF_NONE. */
static uint32_t next_consumer(struct fuse *f, struct walk *w) {
        while (w->node != AF_NONE) {
                const struct af_node *n = &f->g->nodes[w->node];
                while (w->out < n->n_out) {
                        uint32_t v = n->out[w->out], first = f->users_first[v];
                        if (w->at < f->users_first[v + 1] - first)
                                return fuse_find(f, f->users[first + w->at++]);
                        w->out++;
                        w->at = 0;
                }
                uint32_t first = f->after_first[w->node];
                if (w->order_at < f->after_first[w->node + 1] - first)
                        return fuse_find(f, f->after[first + w->order_at++]);
                *w = (struct walk){.node = f->next[w->node]};
        }
        return AF_NONE;
}

static uint32_t next_producer(struct fuse *f, struct walk *w) {
        while (w->node != AF_NONE) {
                const struct af_node *n = &f->g->nodes[w->node];
                while (w->at < n->n_in) {
                        uint32_t p = producer(f, n->in[w->at++]);
                        if (p != AF_NONE)
                                return fuse_find(f, p);
                }
                uint32_t first = f->before_first[w->node];
                if (w->order_at < f->before_first[w->node + 1] - first)
                        return fuse_find(f, f->before[first + w->order_at++]);
                *w = (struct walk){.node = f->next[w->node]};
        }
        return AF_NONE;
}

static struct walk walk_from(const struct fuse *f, uint32_t root) {
        return (struct walk){.node = f->groups[root].first};
}

int fuse_renumber(struct fuse *f) {
        uint32_t n_queue = 0, n_nodes = f->g->n_nodes, *queue = f->stack, *waits = f->slots, w;
        memset(waits, 0, n_nodes * sizeof(*waits));
        for (uint32_t n = 0; n < n_nodes; n++) {
                if (!f->live[n] || f->parent[n] != n)
                        continue;
                struct walk walk = walk_from(f, n);
                while ((w = next_producer(f, &walk)) != AF_NONE)
                        waits[n] += w != n;
                if (!waits[n])
                        queue[n_queue++] = n;
        }
        for (uint32_t i = 0; i < n_queue; i++) {
                struct walk walk = walk_from(f, queue[i]);
                f->groups[queue[i]].pos = i;
                while ((w = next_consumer(f, &walk)) != AF_NONE)
                        if (w != queue[i] && --waits[w] == 0)
                                queue[n_queue++] = w;
        }
        return 0;
}

/* ---- the order ---- */

/* Groups after p and before c, into f->forward. */
static enum fuse_refusal look_forward(struct fuse *f, uint32_t p, uint32_t c, uint32_t *ret_n) {
        uint32_t n = 0, budget = f->budget, limit = f->groups[c].pos, to;
        struct walk walk = walk_from(f, p);
        f->mark_now++;
        while ((to = next_consumer(f, &walk)) != AF_NONE)
                if (to != p && f->groups[to].pos < limit && f->mark[to] != f->mark_now) {
                        f->mark[to] = f->mark_now;
                        f->forward[n++] = to;
                }
        for (uint32_t i = 0; i < n; i++) {
                walk = walk_from(f, f->forward[i]);
                while ((to = next_consumer(f, &walk)) != AF_NONE) {
                        if (to == c)
                                return FUSE_CYCLE;
                        if (budget-- == 0)
                                return FUSE_CYCLE_LONG;
                        if (f->groups[to].pos < limit && f->mark[to] != f->mark_now) {
                                f->mark[to] = f->mark_now;
                                f->forward[n++] = to;
                        }
                }
        }
        *ret_n = n;
        return FUSE_MERGED;
}

/* c and the groups that lead to it and stand behind `low`, into f->backward. */
static enum fuse_refusal look_backward(struct fuse *f, uint32_t c, uint32_t low, uint32_t *ret_n) {
        uint32_t n = 0, budget = f->budget, from;
        f->mark_now++;
        f->mark[c] = f->mark_now;
        f->backward[n++] = c;
        for (uint32_t i = 0; i < n; i++) {
                struct walk walk = walk_from(f, f->backward[i]);
                while ((from = next_producer(f, &walk)) != AF_NONE) {
                        if (budget-- == 0)
                                return FUSE_CYCLE_LONG;
                        if (f->groups[from].pos > low && f->mark[from] != f->mark_now) {
                                f->mark[from] = f->mark_now;
                                f->backward[n++] = from;
                        }
                }
        }
        *ret_n = n;
        return FUSE_MERGED;
}

static int by_pos(const void *a, const void *b, void *userdata) {
        const struct fuse *f = userdata;
        uint32_t x = f->groups[*(const uint32_t *)a].pos, y = f->groups[*(const uint32_t *)b].pos;
        return x < y ? -1 : x > y;
}

static int by_number(const void *a, const void *b) {
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
        return x < y ? -1 : x > y;
}

enum fuse_refusal fuse_order(struct fuse *f, uint32_t p, uint32_t c) {
        uint32_t n_forward, n_backward, low = AF_NONE, n = 0;
        enum fuse_refusal r = look_forward(f, p, c, &n_forward);
        if (r || n_forward == 0)
                return r;
        for (uint32_t i = 0; i < n_forward; i++)
                low = AF_MIN(low, f->groups[f->forward[i]].pos);
        r = look_backward(f, c, low, &n_backward);
        if (r)
                return r;
        qsort_r(f->forward, n_forward, sizeof(uint32_t), by_pos, f);
        qsort_r(f->backward, n_backward, sizeof(uint32_t), by_pos, f);
        for (uint32_t i = 0; i < n_backward; i++)
                f->slots[n++] = f->groups[f->backward[i]].pos;
        for (uint32_t i = 0; i < n_forward; i++)
                f->slots[n++] = f->groups[f->forward[i]].pos;
        qsort(f->slots, n, sizeof(uint32_t), by_number);
        for (uint32_t i = 0; i < n_backward; i++)
                f->groups[f->backward[i]].pos = f->slots[i];
        for (uint32_t i = 0; i < n_forward; i++)
                f->groups[f->forward[i]].pos = f->slots[n_backward + i];
        return FUSE_MERGED;
}

/* ---- joining ---- */

void fuse_cross(struct fuse *f, uint32_t p, uint32_t c, struct fuse_crossing *ret) {
        const struct fuse_group *gc = &f->groups[c];
        struct fuse_crossing x = {.single = true};
        for (uint32_t i = 0; i < gc->n_reads; i++) {
                const struct fuse_read *read = &gc->reads[i];
                uint32_t from = producer(f, read->value);
                if (from == AF_NONE || fuse_find(f, from) != p)
                        continue;
                x.n_values++;
                x.single &= !f->is_output[read->value] && f->users_first[read->value + 1] - f->users_first[read->value] == 1;
                x.after_reduce |= f->after_reduce[from];
        }
        *ret = x;
}

int fuse_unite(struct fuse *f, uint32_t p, uint32_t c, bool keep_reads, struct fuse_union *ret) {
        const struct fuse_group *gp = &f->groups[p], *gc = &f->groups[c];
        struct fuse_union u = {.n_stored = gp->n_stored + gc->n_stored, .stored_bytes = gp->stored_bytes + gc->stored_bytes};
        struct fuse_read *out = NULL;
        if (keep_reads && !(out = af_arena_calloc(&f->scratch, gp->n_reads + gc->n_reads, sizeof(*out))))
                return -ENOMEM;
        for (uint32_t i = 0, j = 0; i < gp->n_reads || j < gc->n_reads;) {
                struct fuse_read read = {0};
                uint32_t a = i < gp->n_reads ? gp->reads[i].value : AF_NONE, b = j < gc->n_reads ? gc->reads[j].value : AF_NONE;
                uint32_t from = b <= a ? producer(f, b) : AF_NONE;
                read.value = AF_MIN(a, b);
                if (a <= b) {
                        read.n_uses = gp->reads[i].n_uses;
                        read.touched = gp->reads[i].touched;
                }
                if (b <= a) {
                        read.n_uses += gc->reads[j].n_uses;
                        read.touched += gc->reads[j].touched;
                }
                i += a <= b;
                j += b <= a;
                if (from != AF_NONE && fuse_find(f, from) == p) {
                        if (!f->is_output[read.value] && f->n_outside[read.value] == read.n_uses) {
                                u.n_stored--;
                                u.stored_bytes -= f->bytes[read.value];
                        }
                        continue;
                }
                if (out)
                        out[u.n_reads] = read;
                u.n_reads++;
                u.turn_bytes += read_bytes(f, &read);
        }
        u.reads = out;
        u.turn_bytes = gp->n_computing + gc->n_computing > 0 ? u.turn_bytes + u.stored_bytes : 0;
        *ret = u;
        return 0;
}

/* Nodes of c that follow p's reduction follow it in the union too. */
static void spread_after_reduce(struct fuse *f, uint32_t p, uint32_t c) {
        uint32_t n = 0;
        for (uint32_t i = f->groups[c].first; i != AF_NONE; i = f->next[i])
                f->nodes[n++] = i;
        qsort(f->nodes, n, sizeof(uint32_t), by_number);
        for (uint32_t i = 0; i < n; i++) {
                const struct af_node *node = &f->g->nodes[f->nodes[i]];
                for (uint32_t k = 0; k < node->n_in; k++) {
                        uint32_t from = producer(f, node->in[k]);
                        if (from == AF_NONE || !f->after_reduce[from])
                                continue;
                        uint32_t root = fuse_find(f, from);
                        f->after_reduce[f->nodes[i]] |= root == p || root == c;
                }
        }
}

int fuse_join(struct fuse *f, uint32_t p, uint32_t c, const struct af_rule *rule) {
        struct fuse_group *gp = &f->groups[p], *gc = &f->groups[c], joined = *gc;
        struct fuse_union u;
        int r = fuse_unite(f, p, c, true, &u);
        if (r)
                return r;
        joined.reads = u.reads;
        joined.n_reads = u.n_reads;
        joined.n_stored = u.n_stored;
        joined.stored_bytes = u.stored_bytes;
        joined.turn_bytes = u.turn_bytes;
        for (uint32_t i = 0; i < gc->n_reads; i++) {
                uint32_t from = producer(f, gc->reads[i].value);
                if (from != AF_NONE && fuse_find(f, from) == p)
                        f->n_outside[gc->reads[i].value] -= gc->reads[i].n_uses;
        }
        if (gp->n_reduce)
                spread_after_reduce(f, p, c);
        f->next[gp->last] = gc->first;
        joined.first = gp->first;
        joined.n_nodes += gp->n_nodes;
        joined.n_computing += gp->n_computing;
        af_op_set_join(&joined.ops, &gp->ops);
        joined.classes |= gp->classes;
        joined.fence = gp->fence ? gp->fence : gc->fence;
        joined.flags |= gp->flags;
        joined.dtypes |= gp->dtypes;
        joined.n_reduce += gp->n_reduce;
        joined.rule = rule;
        uint32_t root = gp->n_nodes > gc->n_nodes ? p : c;
        f->parent[p] = f->parent[c] = root;
        f->groups[root] = joined;
        return 0;
}

/* ---- candidates ---- */

static void leave_out_sources(struct fuse *f, uint32_t *n_nodes) {
        const struct af_graph *g = f->g;
        uint32_t read = ++f->value_mark_now, made = ++f->value_mark_now, k = 0;
        for (uint32_t i = 0; i < *n_nodes; i++) { /* values that a node other than a view reads */
                const struct af_node *n = &g->nodes[f->nodes[i]];
                for (uint32_t j = 0; !f->alias[f->nodes[i]] && j < n->n_in; j++)
                        f->value_mark[n->in[j]] = read;
        }
        for (uint32_t i = 0; i < *n_nodes; i++) {
                const struct af_node *n = &g->nodes[f->nodes[i]];
                uint32_t mark = f->alias[f->nodes[i]] ? f->value_mark[n->in[0]] : made;
                if (mark != made && mark != read)
                        continue;
                for (uint32_t j = 0; j < n->n_out; j++)
                        f->value_mark[n->out[j]] = made;
                f->nodes[k++] = f->nodes[i];
        }
        *n_nodes = k;
}

static void leave_out_sinks(struct fuse *f, uint32_t *n_nodes) {
        const struct af_graph *g = f->g;
        uint32_t read = ++f->value_mark_now, k = *n_nodes;
        for (uint32_t i = *n_nodes; i-- > 0;) {
                uint32_t node = f->nodes[i];
                const struct af_node *n = &g->nodes[node];
                if (f->alias[node] && f->value_mark[n->out[0]] != read)
                        continue;
                for (uint32_t j = 0; j < n->n_in; j++)
                        f->value_mark[n->in[j]] = read;
                f->nodes[--k] = node;
        }
        memmove(f->nodes, f->nodes + k, (*n_nodes - k) * sizeof(*f->nodes));
        *n_nodes -= k;
}

int fuse_stored(struct fuse *f, uint32_t n_nodes) {
        const struct af_graph *g = f->g;
        uint32_t made = ++f->value_mark_now, n_out = 0;
        for (uint32_t i = 0; i < n_nodes; i++) {
                const struct af_node *n = &g->nodes[f->nodes[i]];
                n_out += n->n_out;
                for (uint32_t j = 0; j < n->n_out; j++) {
                        f->value_mark[n->out[j]] = made;
                        f->n_inside[n->out[j]] = 0;
                }
                for (uint32_t j = 0; j < n->n_in; j++)
                        if (f->value_mark[n->in[j]] == made)
                                f->n_inside[n->in[j]]++;
        }
        int r = af_arena_grow(&f->scratch, &f->stored, &f->cap_stored, n_out, sizeof(*f->stored));
        f->n_stored = 0;
        for (uint32_t i = 0; !r && i < n_nodes; i++) {
                const struct af_node *n = &g->nodes[f->nodes[i]];
                for (uint32_t j = 0; j < n->n_out; j++) {
                        uint32_t v = n->out[j];
                        if (f->is_output[v] || f->n_inside[v] < f->users_first[v + 1] - f->users_first[v])
                                f->stored[f->n_stored++] = v;
                }
        }
        return r;
}

int fuse_candidate(struct fuse *f, uint32_t p, uint32_t c, uint32_t *ret_n) {
        uint32_t n = 0;
        for (uint32_t i = f->groups[p].first; i != AF_NONE; i = f->next[i])
                f->nodes[n++] = i;
        for (uint32_t i = c == AF_NONE ? AF_NONE : f->groups[c].first; i != AF_NONE; i = f->next[i])
                f->nodes[n++] = i;
        qsort(f->nodes, n, sizeof(uint32_t), by_number);
        leave_out_sources(f, &n);
        leave_out_sinks(f, &n);
        *ret_n = n;
        return fuse_stored(f, n);
}
