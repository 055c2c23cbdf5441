/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator on random kernels: no two values that live at once share a byte, and everything lies inside its buffer. */
#include <criterion/criterion.h>

#include "tests/lib/kernel_group.h"
#include "tests/lib/random_graph.h"

struct life {
        uint32_t first, last;
};

static bool in_loop(const struct af_phase *p, uint32_t stage) {
        for (uint32_t n = 0; n < p->n_nodes; n++)
                for (uint32_t c = 0; p->nodes[n].kind == AF_KNODE_LOOP && c < p->nodes[n].n_children; c++)
                        if (p->nodes[p->nodes[n].first_child + c].stage == stage)
                                return true;
        return false;
}

/* A second opinion on lives: what a loop or the prologue carries counts as live throughout. */
static struct life life_of(const struct af_phase *p, uint32_t v) {
        struct life l = {AF_NONE, 0};
        bool seen[8] = {false};
        uint32_t n_stages = 0;
        for (uint32_t i = 0; i < p->n_stmts; i++) {
                const struct af_kstmt *s = &p->stmts[i];
                if (s->dst != v && s->src[0] != v && s->src[1] != v && s->src[2] != v)
                        continue;
                l.first = AF_MIN(l.first, i);
                l.last = i;
                n_stages += !seen[s->stage];
                seen[s->stage] = true;
        }
        for (uint32_t st = 0; st < p->n_stages && n_stages > 1; st++)
                if (seen[st] && in_loop(p, st)) {
                        l.first = AF_MIN(l.first, p->stages[st].first_stmt);
                        l.last = AF_MAX(l.last, p->stages[st].first_stmt + p->stages[st].n_stmts - 1);
                }
        if (n_stages > 1 && seen[0])
                l.last = p->n_stmts;
        return l;
}

static void check_pair(const struct af_phase *p, uint32_t a, uint32_t b, const struct life *lives) {
        const struct af_kvalue *x = &p->values[a], *y = &p->values[b];
        if (x->place != y->place || x->offset + x->bytes <= y->offset || y->offset + y->bytes <= x->offset)
                return;
        if (x->place == AF_PLACE_LOAD || x->place == AF_PLACE_STORE) {
                uint32_t sx = p->stmts[lives[a].first].stage, sy = p->stmts[lives[b].first].stage;
                if (sx != sy)
                        return;
        }
        if (lives[a].first > lives[b].first)
                return check_pair(p, b, a, lives);
        if (lives[a].last < lives[b].first)
                return;
        /* In place: b is made by the statement that reads a last, over all of it. */
        cr_assert(lives[a].last == lives[b].first && p->stmts[lives[b].first].dst == b && x->offset == y->offset && x->bytes == y->bytes,
                  "values %u and %u share bytes", a, b);
}

static void check_phase(const struct af_kernel *k, const struct af_phase *p, const struct af_soc *soc) {
        struct life *lives = af_arena_calloc(k->g->arena, p->n_values, sizeof(*lives));
        for (uint32_t v = 0; v < p->n_values; v++)
                lives[v] = life_of(p, v);
        for (uint32_t a = 0; a < p->n_values; a++) {
                if (lives[a].first == AF_NONE)
                        continue;
                const uint32_t sizes[] = {p->calc_bytes, p->load_bytes, p->store_bytes, p->resident_bytes};
                cr_assert_leq(p->values[a].offset + p->values[a].bytes, sizes[p->values[a].place]);
                cr_assert_eq(p->values[a].offset % 32, 0);
                for (uint32_t b = a + 1; b < p->n_values; b++)
                        if (lives[b].first != AF_NONE)
                                check_pair(p, a, b, lives);
        }
        cr_assert_leq(af_phase_ub_bytes(p), soc->ub_bytes);
}

static uint32_t shared_phases;

/* Each phase's queues are among those of its layout, one for each stage, large enough; and layouts fit. */
static void check_layouts(const struct af_kernel *k, const struct af_soc *soc) {
        const struct af_ub *ub = NULL;
        for (uint32_t i = 0; i < k->n_phases; i++) {
                const struct af_phase *p = &k->phases[i];
                uint32_t loads = 0, stores = 0;
                ub = p->joins ? ub : &p->ub;
                shared_phases += p->joins;
                cr_assert_not_null(ub);
                cr_assert(p->calc_bytes <= ub->calc_bytes && p->resident_bytes <= ub->resident_bytes);
                for (uint32_t s = 0; s < p->n_stages; s++) {
                        const struct af_stage *st = &p->stages[s];
                        if (st->load_bytes && !st->prologue) {
                                cr_assert(st->load_queue < ub->n_loads && !(loads >> st->load_queue & 1));
                                cr_assert_leq(st->load_bytes, ub->loads[st->load_queue].bytes);
                                cr_assert_eq(p->load_buffers, ub->loads[st->load_queue].buffers);
                                loads |= 1u << st->load_queue;
                        }
                        if (st->store_bytes) {
                                cr_assert(st->store_queue < ub->n_stores && !(stores >> st->store_queue & 1));
                                cr_assert_leq(st->store_bytes, ub->stores[st->store_queue].bytes);
                                cr_assert_eq(p->store_buffers, ub->stores[st->store_queue].buffers);
                                stores |= 1u << st->store_queue;
                        }
                }
                cr_assert_leq(af_ub_bytes(ub), k->ub_bytes);
        }
        cr_assert_leq(k->ub_bytes, soc->ub_bytes);
}

static void check_seed(uint64_t seed, struct af_soc *soc) {
        AF_CLEANUP(af_arena_deinit) struct af_arena scratch = {0};
        struct af_arena arena;
        struct af_fragment f;
        struct af_graph g = {0};
        struct kernel_users users;
        struct af_random_opts opts = {.n_nodes = 20};
        af_arena_init(&arena, 0);
        cr_assert_eq(af_random_fragment(&f, &arena, seed, &opts), 0);
        if (af_graph_from_fragment(&g, &f, NULL) == 0) {
                uint32_t *nodes = af_arena_calloc(&arena, g.n_nodes, sizeof(*nodes));
                cr_assert_eq(af_graph_users(&g, &users.first, &users.list), 0);
                for (uint32_t i = 0; i < g.n_nodes; i++)
                        nodes[i] = i;
                for (uint32_t at = 0, n; at < g.n_nodes; at += n) {
                        struct af_group group;
                        struct af_kernel *k;
                        const char *why;
                        n = kernel_group_grow(&g, soc, &nodes[at], g.n_nodes - at, 24);
                        cr_assert_eq(kernel_group_make(&g, &users, &nodes[at], n, &group), 0);
                        if (af_schedule_build(&scratch, &g, &group, soc, &k, &why) != 0)
                                continue;
                        for (uint32_t i = 0; i < k->n_phases; i++)
                                check_phase(k, &k->phases[i], soc);
                        check_layouts(k, soc);
                }
        }
        af_arena_deinit(&arena);
}

Test(schedule_ub, random_kernels_never_overlap) {
        struct af_soc soc;
        kernel_soc(&soc);
        for (uint64_t seed = 0; seed < 60; seed++)
                check_seed(seed, &soc);
        cr_assert_gt(shared_phases, 0);
}

Test(schedule_ub, nor_in_a_small_buffer) {
        struct af_soc soc;
        kernel_soc(&soc);
        soc.ub_bytes = 24 * 1024;
        soc.vector_cores = 3;
        for (uint64_t seed = 0; seed < 60; seed++)
                check_seed(seed, &soc);
}
