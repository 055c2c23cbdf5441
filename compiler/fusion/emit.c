/* SPDX-License-Identifier: Apache-2.0 */
/* The result: groups with their inputs and outputs, decisions as text. Decisions speak of ops, dtypes and shapes, never of the sender's
 * names. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/fusion/fuse.h"

static bool has_reduce(const struct af_graph *g, const struct af_group *group) {
        for (uint32_t i = 0; i < group->n_nodes; i++)
                if (af_op_info(g->nodes[group->nodes[i]].op)->cls == AF_CLASS_REDUCE)
                        return true;
        return false;
}

/* Values read from memory, in order of first use. group_of already has the group's number at its nodes. */
static int group_inputs(struct fuse *f, const uint32_t *group_of, uint32_t number, struct af_group *group) {
        const struct af_graph *g = f->g;
        uint32_t *inputs = NULL, n = 0, cap = 0, seen = ++f->value_mark_now;
        for (uint32_t i = 0; i < group->n_nodes; i++) {
                const struct af_node *node = &g->nodes[group->nodes[i]];
                for (uint32_t j = 0; j < node->n_in; j++) {
                        const struct af_value *v = &g->values[node->in[j]];
                        if (fuse_is_immediate(g, node->in[j]) || f->value_mark[node->in[j]] == seen ||
                            (v->kind == AF_VALUE_NODE && group_of[v->index] == number))
                                continue;
                        f->value_mark[node->in[j]] = seen;
                        if (af_arena_grow(g->arena, &inputs, &cap, n + 1, sizeof(*inputs)))
                                return -ENOMEM;
                        inputs[n++] = node->in[j];
                }
        }
        group->inputs = inputs;
        group->n_inputs = n;
        return 0;
}

/* Values stored: outputs of the graph, and what someone outside reads. */
static int group_outputs(struct fuse *f, const uint32_t *group_of, uint32_t number, struct af_group *group) {
        const struct af_graph *g = f->g;
        uint32_t *outputs = NULL, n = 0, cap = 0;
        for (uint32_t i = 0; i < group->n_nodes; i++) {
                const struct af_node *node = &g->nodes[group->nodes[i]];
                for (uint32_t j = 0; j < node->n_out; j++) {
                        uint32_t v = node->out[j];
                        bool stored = f->is_output[v];
                        for (uint32_t u = f->users_first[v]; !stored && u < f->users_first[v + 1]; u++)
                                stored = group_of[f->users[u]] != number;
                        if (!stored)
                                continue;
                        if (af_arena_grow(g->arena, &outputs, &cap, n + 1, sizeof(*outputs)))
                                return -ENOMEM;
                        outputs[n++] = v;
                }
        }
        group->outputs = outputs;
        group->n_outputs = n;
        return 0;
}

static int emit_group(struct fuse *f, uint32_t root, uint32_t *group_of, struct af_fusion *ret) {
        struct af_group *group = &ret->groups[ret->n_groups];
        uint32_t n, number = ret->n_groups;
        int r = fuse_candidate(f, root, AF_NONE, &n);
        if (r)
                return r;
        if (n == 0)
                return 0; /* views only: no kernel */
        *group = (struct af_group){.n_nodes = n, .rule = f->groups[root].rule};
        group->nodes = af_arena_memdup(f->g->arena, f->nodes, n * sizeof(*f->nodes));
        if (!group->nodes)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++)
                group_of[group->nodes[i]] = number;
        if (!group->rule)
                group->rule = fuse_match_single(f, root);
        group->tmpl = group->rule ? group->rule->tmpl : has_reduce(f->g, group) ? "reduce_fusion_kernel" : "pointwise_fusion_kernel";
        ret->n_groups++;
        r = group_inputs(f, group_of, number, group);
        return r ? r : group_outputs(f, group_of, number, group);
}

static int by_pos(const void *a, const void *b, void *userdata) {
        const struct fuse *f = userdata;
        uint32_t x = f->groups[*(const uint32_t *)a].pos, y = f->groups[*(const uint32_t *)b].pos;
        return x < y ? -1 : x > y;
}

static int emit_groups(struct fuse *f, struct af_fusion *ret) {
        const struct af_graph *g = f->g;
        uint32_t *group_of = af_arena_calloc(g->arena, g->n_nodes, sizeof(*group_of)), *roots = f->stack, n_roots = 0;
        bool *alias = af_arena_calloc(g->arena, g->n_nodes, sizeof(*alias));
        const char **fallback = af_arena_calloc(g->arena, g->n_nodes, sizeof(*fallback));
        if (!group_of || !alias || !fallback)
                return -ENOMEM;
        for (uint32_t n = 0; n < g->n_nodes; n++) {
                group_of[n] = AF_NONE;
                fallback[n] = f->fallback[n];
                if (f->live[n] && !f->fallback[n] && fuse_find(f, n) == n)
                        roots[n_roots++] = n;
        }
        ret->groups = af_arena_calloc(g->arena, n_roots, sizeof(*ret->groups));
        if (!ret->groups)
                return -ENOMEM;
        qsort_r(roots, n_roots, sizeof(*roots), by_pos, f);
        for (uint32_t i = 0; i < n_roots; i++) {
                int r = emit_group(f, roots[i], group_of, ret);
                if (r)
                        return r;
        }
        for (uint32_t n = 0; n < g->n_nodes; n++)
                alias[n] = f->live[n] && f->alias[n] && group_of[n] == AF_NONE;
        ret->group_of = group_of;
        ret->alike = f->alike;
        ret->fallback = fallback;
        ret->alias_view = alias;
        return 0;
}

/* ---- decisions ---- */

static void put_value(const struct af_graph *g, uint32_t value, struct af_buf *buf) {
        const struct af_value *v = &g->values[value];
        af_buf_printf(buf, "%s[", af_dtype_name(v->dtype));
        for (uint32_t i = 0; i < v->rank; i++) {
                if (i > 0)
                        af_buf_put_u8(buf, ',');
                af_expr_print(&g->exprs, v->dims[i], NULL, buf);
        }
        af_buf_put_u8(buf, ']');
}

static void put_node(const struct af_graph *g, uint32_t node, struct af_buf *buf) {
        const struct af_node *n = &g->nodes[node];
        af_buf_printf(buf, "%s ", af_op_info(n->op)->name);
        if (n->n_out > 0)
                put_value(g, n->out[0], buf);
}

static void put_refusal(const struct fuse *f, const struct fuse_record *r, struct af_buf *buf) {
        static const char *const texts[] = {[FUSE_NO_OPS] = "no rule holds these ops together",
                                            [FUSE_NO_TYPE] = "no rule of this pattern",
                                            [FUSE_SHAPE] = "shape_compatible: the value is spread over a larger shape",
                                            [FUSE_DTYPE] = "dtype_match: more than one dtype",
                                            [FUSE_CONSUMERS] = "single_consumer: the value has other readers",
                                            [FUSE_LAYOUT] = "memory_layout: a tensor is not row-major contiguous",
                                            [FUSE_TWO_REDUCTIONS] = "two reductions in one kernel",
                                            [FUSE_BROADCAST_BACK] = "a reduced value is spread over a larger shape again",
                                            [FUSE_RULE_REDUCTIONS] = "max_reductions of the rule",
                                            [FUSE_RULE_NODES] = "max_nodes of the rule",
                                            [FUSE_FENCE] = "a larger kernel with both did not fit or moved more",
                                            [FUSE_CYCLE] = "a kernel between the two needs one and feeds the other",
                                            [FUSE_CYCLE_LONG] = "too much lies between the two to rule out a cycle",
                                            [FUSE_MEETINGS] = "all cores would meet more often than a launch is worth"};
        if (r->why == FUSE_NODES)
                af_buf_printf(buf, "more than %" PRIu32 " nodes", f->soc->max_nodes);
        else if (r->why == FUSE_INPUTS)
                af_buf_printf(buf, "more than %" PRIu32 " inputs or %u pointers", f->soc->max_inputs, FUSE_MAX_ARGS);
        else if (r->why == FUSE_SCHEDULE)
                af_buf_put_str(buf, r->text ? r->text : "one kernel cannot run both");
        else if (r->why == FUSE_MORE_BYTES)
                af_buf_printf(buf, "one kernel moves %" PRId64 " bytes, two move %" PRId64, r->together, r->apart);
        else
                af_buf_put_str(buf, texts[r->why]);
}

static void put_gain(const struct fuse_record *r, struct af_buf *buf) {
        int64_t saved = r->apart - r->together;
        if (saved > 0)
                af_buf_printf(buf, "%" PRId64 " bytes%s saved", saved, r->launches_saved ? " and a launch" : "");
        else
                af_buf_put_str(buf, r->launches_saved ? "a launch saved" : "a view costs nothing");
}

static bool is_beside(const struct fuse_record *r) {
        return r->rule && strcmp(r->rule->type, "siblings") == 0;
}

static void put_reason(const struct fuse *f, const struct fuse_record *r, struct af_buf *buf) {
        if (r->why == FUSE_MERGED)
                put_gain(r, buf);
        else
                put_refusal(f, r, buf);
        af_buf_put_str(buf, ": ");
        put_node(f->g, r->producer, buf);
        af_buf_put_str(buf, is_beside(r) ? " beside " : " into ");
        put_node(f->g, r->consumer, buf);
}

/* Reasons by what they are written from: large graphs repeat a few of them. */
struct reasons {
        struct af_intern known; /* facts */
        const char **texts;     /* by their number */
        uint32_t cap;
        struct af_buf buf;
};

static void put_node_facts(const struct af_graph *g, uint32_t node, struct af_buf *buf) {
        const struct af_node *n = &g->nodes[node];
        const struct af_value *v = n->n_out > 0 ? &g->values[n->out[0]] : NULL;
        uint32_t head[3] = {n->op, v ? v->dtype : AF_NONE, v ? v->rank : 0};
        af_buf_put(buf, head, sizeof(head));
        if (v && v->rank > 0)
                af_buf_put(buf, v->dims, v->rank * sizeof(*v->dims));
}

static int get_reason(struct fuse *f, struct reasons *reasons, const struct fuse_record *r, const char **ret_text) {
        struct af_buf *buf = &reasons->buf;
        int64_t head[] = {r->why, is_beside(r), r->apart, r->together, r->launches_saved, (int64_t)(intptr_t)r->text};
        uint32_t number;
        bool fresh;
        af_buf_clear(buf);
        af_buf_put(buf, head, sizeof(head));
        put_node_facts(f->g, r->producer, buf);
        put_node_facts(f->g, r->consumer, buf);
        if (af_buf_error(buf) || af_intern_put(&reasons->known, buf->data, buf->size, &number, &fresh))
                return -ENOMEM;
        if (fresh) {
                if (af_arena_grow(&f->scratch, &reasons->texts, &reasons->cap, number + 1, sizeof(*reasons->texts)))
                        return -ENOMEM;
                af_buf_clear(buf);
                put_reason(f, r, buf);
                if (af_buf_error(buf) || !(reasons->texts[number] = af_arena_memdup(f->g->arena, buf->data, buf->size)))
                        return -ENOMEM;
        }
        *ret_text = reasons->texts[number];
        return 0;
}

static int add_decision(struct fuse *f, struct af_fusion *ret, const struct fuse_record *r, struct reasons *reasons) {
        struct af_decision *d = &ret->decisions[ret->n_decisions++];
        *d = (struct af_decision){.kind = r->why == FUSE_MERGED ? AF_DECISION_MERGED : AF_DECISION_REFUSED,
                                  .consumer = r->consumer,
                                  .producer = r->producer,
                                  .rule = r->rule,
                                  .bytes_saved = r->why == FUSE_MERGED ? r->apart - r->together : 0};
        return get_reason(f, reasons, r, &d->reason);
}

struct pair {
        uint32_t producer, consumer, record; /* roots at the end */
};

static int by_pair(const void *a, const void *b) {
        const struct pair *x = a, *y = b;
        if (x->producer != y->producer)
                return x->producer < y->producer ? -1 : 1;
        if (x->consumer != y->consumer)
                return x->consumer < y->consumer ? -1 : 1;
        return x->record < y->record ? -1 : x->record > y->record;
}

static int by_record(const void *a, const void *b) {
        const struct pair *x = a, *y = b;
        return x->record < y->record ? -1 : x->record > y->record;
}

static bool is_cycle(enum fuse_refusal why) {
        return why == FUSE_CYCLE || why == FUSE_CYCLE_LONG;
}

/* Records that still hold: merges, and of the refusals between two final groups the first; a cycle only where it stayed the reason. */
static int keep_records(struct fuse *f, struct pair **ret_pairs, uint32_t *ret_n) {
        struct pair *pairs = af_arena_calloc(&f->scratch, f->n_records, sizeof(*pairs));
        uint32_t n = 0, k = 0;
        if (!pairs)
                return -ENOMEM;
        for (uint32_t i = 0; i < f->n_records; i++) {
                uint32_t p = fuse_find(f, f->records[i].producer), c = fuse_find(f, f->records[i].consumer);
                if (f->records[i].why == FUSE_MERGED ? p == c : p != c)
                        pairs[n++] =
                                f->records[i].why == FUSE_MERGED ? (struct pair){p, f->records[i].producer, i} : (struct pair){p, c, i};
        }
        if (n > 0)
                qsort(pairs, n, sizeof(*pairs), by_pair);
        for (uint32_t i = 0; i < n;) {
                enum fuse_refusal why = f->records[pairs[i].record].why;
                uint32_t best = i, end = i + 1;
                while (why != FUSE_MERGED && end < n && pairs[end].producer == pairs[i].producer &&
                       pairs[end].consumer == pairs[i].consumer && f->records[pairs[end].record].why != FUSE_MERGED) {
                        if (is_cycle(f->records[pairs[best].record].why))
                                best = end;
                        end++;
                }
                pairs[k++] = pairs[best];
                i = end;
        }
        if (k > 0)
                qsort(pairs, k, sizeof(*pairs), by_record);
        *ret_pairs = pairs;
        *ret_n = k;
        return 0;
}

static int emit_decisions(struct fuse *f, struct af_fusion *ret) {
        const struct af_graph *g = f->g;
        struct reasons reasons = {0};
        struct pair *pairs;
        uint32_t n, n_fallbacks = 0;
        int r = keep_records(f, &pairs, &n);
        for (uint32_t i = 0; i < g->n_nodes; i++)
                n_fallbacks += f->fallback[i] != NULL;
        ret->decisions = r ? NULL : af_arena_calloc(g->arena, (size_t)n + n_fallbacks, sizeof(*ret->decisions));
        if (!ret->decisions)
                return -ENOMEM;
        af_intern_init(&reasons.known, &f->scratch);
        for (uint32_t i = 0; i < n && r == 0; i++)
                r = add_decision(f, ret, &f->records[pairs[i].record], &reasons);
        af_buf_deinit(&reasons.buf);
        if (r)
                return r;
        for (uint32_t i = 0; i < g->n_nodes; i++)
                if (f->fallback[i])
                        ret->decisions[ret->n_decisions++] = (struct af_decision){
                                .kind = AF_DECISION_FALLBACK, .consumer = i, .producer = AF_NONE, .reason = f->fallback[i]};
        return 0;
}

int fuse_emit(struct fuse *f, struct af_fusion *ret) {
        int r = emit_groups(f, ret);
        return r ? r : emit_decisions(f, ret);
}
