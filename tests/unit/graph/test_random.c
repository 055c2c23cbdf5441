/* SPDX-License-Identifier: Apache-2.0 */
/* Random fragments: valid, their own canonical form, and one form however they are written down. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "compiler/graph/canon.h"
#include "tests/lib/fragment_text.h"
#include "tests/lib/random_graph.h"

#define N_SEEDS 3000

static struct af_buf canon_of(struct af_fragment *f, uint64_t seed) {
        struct af_buf canon = AF_BUF_INIT;
        struct af_diags diags = {0};
        struct af_graph g;

        int r = af_graph_from_fragment(&g, f, &diags);
        af_test_diags_print(&diags);
        cr_assert_eq(r, 0, "seed %llu", (unsigned long long)seed);
        cr_expect_eq(af_graph_check(&g, &diags), 0, "seed %llu", (unsigned long long)seed);
        cr_assert_eq(af_canon_write(&g, &canon, NULL), 0);
        cr_expect_eq(af_canon_verify(canon.data, canon.size, NULL), 0, "seed %llu", (unsigned long long)seed);
        af_diags_deinit(&diags);
        return canon;
}

/* Shuffles nodes and inputs, swaps commutative operands, renames values by a prefix. */
static void disguise(struct af_fragment *f, uint64_t seed) {
        uint64_t x = seed * 2 + 1;

        for (uint32_t i = f->n_nodes; i > 1; i--) {
                x = x * 6364136223846793005u + 1442695040888963407u;
                uint32_t k = (uint32_t)((x >> 33) % i);
                struct af_fragment_node t = f->nodes[i - 1];
                f->nodes[i - 1] = f->nodes[k];
                f->nodes[k] = t;
        }
        for (uint32_t i = f->n_inputs; i > 1; i--) {
                x = x * 6364136223846793005u + 1442695040888963407u;
                uint32_t k = (uint32_t)((x >> 33) % i);
                struct af_fragment_input t = f->inputs[i - 1];
                f->inputs[i - 1] = f->inputs[k];
                f->inputs[k] = t;
        }
        for (uint32_t i = 0; i < f->n_nodes; i++) {
                struct af_fragment_node *n = &f->nodes[i];
                x = x * 6364136223846793005u + 1442695040888963407u;
                n->name = af_arena_printf(f->arena, "other%u", i);
                n->origin = NULL;
                if ((af_op_info(af_op_from_name(n->op))->flags & AF_OP_COMMUTES) && (x >> 40 & 1)) {
                        const char **in = af_arena_memdup(f->arena, n->inputs, 2 * sizeof(*in));
                        in[0] = n->inputs[1];
                        in[1] = n->inputs[0];
                        n->inputs = in;
                }
        }
}

static bool equal(const struct af_buf *a, const struct af_buf *b) {
        return a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

Test(random, one_form, .timeout = 120) {
        uint32_t n_nodes = 0, n_differ = 0;

        for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
                struct af_random_opts opts = {.in_place = seed % 3 == 0, .n_nodes = seed % 50 == 0 ? 60 : 0};
                struct af_arena arena;
                struct af_fragment f, again;

                opts.classes = seed % 2 ? AF_RANDOM_ALL_CLASSES : 0;
                af_arena_init(&arena, 0);
                cr_assert_eq(af_random_fragment(&f, &arena, seed, &opts), 0);
                cr_assert_eq(af_random_fragment(&again, &arena, seed, &opts), 0);
                n_nodes += f.n_nodes;
                struct af_buf a = canon_of(&f, seed), b = canon_of(&again, seed);
                cr_expect(equal(&a, &b), "seed %llu gives two fragments", (unsigned long long)seed);
                disguise(&again, seed);
                struct af_buf c = canon_of(&again, seed);
                if (!equal(&a, &c)) {
                        n_differ++;
                        fprintf(stderr, "seed %llu: another form when disguised\n", (unsigned long long)seed);
                }
                af_buf_deinit(&a);
                af_buf_deinit(&b);
                af_buf_deinit(&c);
                af_arena_deinit(&arena);
        }
        fprintf(stderr, "%u nodes in %u fragments\n", n_nodes, N_SEEDS);
        cr_expect_eq(n_differ, 0);
        cr_expect_gt(n_nodes, 4 * N_SEEDS);
}

Test(random, printed_and_parsed, .timeout = 120) {
        for (uint64_t seed = 0; seed < N_SEEDS / 4; seed++) {
                struct af_buf text = AF_BUF_INIT, canon = AF_BUF_INIT;
                struct af_test_graph t;
                struct af_arena arena;
                struct af_fragment f;

                af_arena_init(&arena, 0);
                cr_assert_eq(af_random_fragment(&f, &arena, seed, NULL), 0);
                af_fragment_print(&f, 1, &text);
                af_test_graph_parse(&t, (const char *)text.data, text.size);
                af_test_diags_print(&t.diags);
                cr_assert_eq(t.r, 0, "seed %llu\n%.*s", (unsigned long long)seed, (int)text.size, text.data);
                cr_assert_eq(af_canon_write(&t.graph, &canon, NULL), 0);
                struct af_buf direct = canon_of(&f, seed);
                cr_expect(equal(&canon, &direct), "seed %llu", (unsigned long long)seed);
                af_buf_deinit(&text);
                af_buf_deinit(&canon);
                af_buf_deinit(&direct);
                af_test_graph_deinit(&t);
                af_arena_deinit(&arena);
        }
}
