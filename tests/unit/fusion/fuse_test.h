/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the tests of partitions: rules as shipped, a schedule that says what it is told, and the invariants of every partition. One file of
 * tests includes it; suites start with fuse_setup.
 */
#pragma once

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/io.h"
#include "compiler/fusion/fusion.h"
#include "tests/lib/fragment_text.h"
#include "tests/lib/random_graph.h"

static struct af_arena rules_arena;
static struct af_rules rules;
static const struct af_soc soc = {
        .name = "TestSoc", .max_inputs = 16, .max_nodes = 64, .dtypes = (1u << AF_N_DTYPES) - 1 - AF_DTYPE_BIT(AF_DTYPE_FLOAT64)};

static inline void fuse_setup(void) {
        struct af_diags diags = {0};
        char dir[4096];
        af_arena_init(&rules_arena, 0);
        snprintf(dir, sizeof(dir), "%s/rules/fusion", getenv("AF_SOURCE_ROOT"));
        cr_assert_eq(af_rules_load_dir(&rules_arena, dir, &rules, &diags), 0);
        cr_assert_eq(diags.n_items, 0);
}
static inline void fuse_teardown(void) {
        af_arena_deinit(&rules_arena);
}

/* ---- a schedule that counts its questions ---- */
struct fake {
        uint32_t max_nodes; /* says no above this; 0: never */
        enum af_op hates;   /* says no to groups with this op and others */
        uint64_t n_calls, n_nodes_seen;
};

static inline bool fake_fusable(void *userdata, const struct af_graph *g, const struct af_fuse_question *q, struct af_fuse_answer *ret) {
        struct fake *fake = userdata;
        fake->n_calls++;
        fake->n_nodes_seen += q->n_nodes;
        for (uint32_t i = 0; i < q->n_nodes; i++) {
                const struct af_node *n = &g->nodes[q->nodes[i]];
                cr_assert(i == 0 || q->nodes[i - 1] < q->nodes[i], "candidates come in topological order");
                if (af_op_info(n->op)->cls == AF_CLASS_GATHER) {
                        ret->why = "no template for op class gather";
                        return false;
                }
                if (fake->hates && q->n_nodes > 1 && n->op == fake->hates) {
                        ret->why = "hated op";
                        return false;
                }
        }
        if (fake->max_nodes && q->n_nodes > fake->max_nodes) {
                ret->why = "too many for this schedule";
                return false;
        }
        return true;
}

static uint64_t tested_seed; /* for messages */

/* ---- invariants of every partition ---- */

static inline bool contains(const uint32_t *list, uint32_t n, uint32_t x) {
        for (uint32_t i = 0; i < n; i++)
                if (list[i] == x)
                        return true;
        return false;
}

static inline void check_group(const struct af_graph *g, const struct af_fusion *f, uint32_t number, const uint32_t *first,
                               const uint32_t *users, const bool *live) {
        const struct af_group *group = &f->groups[number];
        cr_assert(group->n_nodes > 0 && group->tmpl);
        for (uint32_t i = 0; i < group->n_nodes; i++) {
                const struct af_node *n = &g->nodes[group->nodes[i]];
                cr_assert_eq(f->group_of[group->nodes[i]], number);
                cr_assert(i == 0 || group->nodes[i - 1] < group->nodes[i]);
                for (uint32_t j = 0; j < n->n_in; j++) {
                        const struct af_value *v = &g->values[n->in[j]];
                        bool inside = v->kind == AF_VALUE_NODE && f->group_of[v->index] == number;
                        bool immediate = v->kind == AF_VALUE_CONST && v->rank == 0;
                        cr_assert_eq(contains(group->inputs, group->n_inputs, n->in[j]), !inside && !immediate);
                }
                for (uint32_t j = 0; j < n->n_out; j++) {
                        bool stored = false;
                        for (uint32_t o = 0; o < g->n_outputs; o++)
                                stored |= g->outputs[o].value == n->out[j];
                        for (uint32_t u = first[n->out[j]]; u < first[n->out[j] + 1]; u++)
                                stored |= live[users[u]] && f->group_of[users[u]] != number;
                        cr_assert_eq(contains(group->outputs, group->n_outputs, n->out[j]), stored);
                }
        }
        for (uint32_t i = 0; i < group->n_inputs; i++)
                cr_assert(!contains(group->inputs, i, group->inputs[i]));
}

/* Runs groups in their order and framework nodes as soon as they can: everything must get its turn. */
static inline void check_order(const struct af_graph *g, const struct af_fusion *f, const bool *live) {
        bool *done = calloc(g->n_nodes + 1, sizeof(*done));
        uint32_t group = 0;
        for (bool moved = true; moved;) {
                moved = false;
                for (uint32_t n = 0; n < g->n_nodes; n++) {
                        bool ready = live[n] && !done[n] && f->group_of[n] == AF_NONE;
                        for (uint32_t i = 0; ready && i < g->nodes[n].n_in; i++) {
                                const struct af_value *v = &g->values[g->nodes[n].in[i]];
                                ready = v->kind != AF_VALUE_NODE || done[v->index];
                        }
                        done[n] |= ready;
                        moved |= ready;
                }
                bool ready = group < f->n_groups;
                for (uint32_t i = 0; ready && i < f->groups[group].n_inputs; i++) {
                        const struct af_value *v = &g->values[f->groups[group].inputs[i]];
                        ready = v->kind != AF_VALUE_NODE || done[v->index];
                }
                for (uint32_t i = 0; ready && i < f->groups[group].n_nodes; i++)
                        done[f->groups[group].nodes[i]] = true;
                group += ready;
                moved |= ready;
        }
        cr_assert_eq(group, f->n_groups, "seed %llu: group %u waits for a later one", (unsigned long long)tested_seed, group);
        for (uint32_t n = 0; n < g->n_nodes; n++)
                cr_assert_eq(done[n], live[n], "node %u", n);
        free(done);
}

static inline void check_partition(const struct af_graph *g, const struct af_fusion *f, const struct af_soc *s) {
        bool *live = calloc(g->n_nodes + 1, sizeof(*live));
        uint32_t *first, *users;
        cr_assert_eq(af_graph_users(g, &first, &users), 0);
        for (uint32_t i = 0; i < g->n_outputs; i++)
                if (g->values[g->outputs[i].value].kind == AF_VALUE_NODE)
                        live[g->values[g->outputs[i].value].index] = true;
        for (uint32_t n = g->n_nodes; n-- > 0;) {
                live[n] |= g->nodes[n].effects;
                for (uint32_t i = 0; live[n] && i < g->nodes[n].n_in; i++)
                        if (g->values[g->nodes[n].in[i]].kind == AF_VALUE_NODE)
                                live[g->values[g->nodes[n].in[i]].index] = true;
        }
        for (uint32_t n = 0; n < g->n_nodes; n++) {
                unsigned places = (f->group_of[n] != AF_NONE) + (f->fallback[n] != NULL) + f->alias_view[n];
                cr_assert_eq(places, live[n], "seed %llu: node %u (%s) is in %u places", (unsigned long long)tested_seed, n,
                             af_op_info(g->nodes[n].op)->name, places);
        }
        for (uint32_t i = 0; i < f->n_groups; i++) {
                check_group(g, f, i, first, users, live);
                cr_assert(f->groups[i].n_nodes <= s->max_nodes);
                cr_assert(f->groups[i].n_nodes == 1 || f->groups[i].n_inputs <= s->max_inputs);
        }
        check_order(g, f, live);
        free(live);
}

/* ---- short cases ---- */

static inline struct af_fusion fuse_with(struct af_test_graph *t, const struct af_rules *with, const struct af_soc *s, struct fake *fake) {
        struct af_fusion f;
        if (t->r)
                af_test_diags_print(&t->diags);
        cr_assert_eq(t->r, 0);
        cr_assert_eq(af_fuse(&t->graph, with, s, &(struct af_fuse_ask){fake_fusable, fake, NULL}, &f), 0);
        check_partition(&t->graph, &f, s);
        return f;
}

static inline struct af_fusion fuse_text(struct af_test_graph *t, const char *text) {
        struct fake fake = {0};
        af_test_graph_make(t, text);
        return fuse_with(t, &rules, &soc, &fake);
}

static inline bool has_decision(const struct af_fusion *f, enum af_decision_kind kind, const char *text) {
        for (uint32_t i = 0; i < f->n_decisions; i++)
                if (f->decisions[i].kind == kind && strstr(f->decisions[i].reason, text))
                        return true;
        for (uint32_t i = 0; i < f->n_decisions; i++)
                fprintf(stderr, "decision %d: %s\n", f->decisions[i].kind, f->decisions[i].reason);
        return false;
}

#define F32(name, dims)      "{'name':'" name "','dtype':'float32','shape':[" dims "]}"
#define N(op, in, out, dims) "{'name':'n_" out "','op':'" op "','inputs':[" in "],'outputs':[" F32(out, dims) "]}"
#define NA(op, in, attrs, out, dims)                                                                                                       \
        "{'name':'n_" out "','op':'" op "','inputs':[" in "],'attrs':{" attrs "},'outputs':[" F32(out, dims) "]}"
#define G(inputs, nodes, outputs) "'inputs':[" inputs "],'nodes':[" nodes "],'outputs':[" outputs "]"
