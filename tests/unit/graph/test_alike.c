/* SPDX-License-Identifier: Apache-2.0 */
/* What makes two sets of nodes alike: everything but numbers, names and the operand order of what commutes. */
#include <criterion/criterion.h>
#include <string.h>

#include "compiler/graph/alike.h"
#include "tests/lib/fragment_text.h"

#define F32(name, dims)      "{'name':'" name "','dtype':'float32','shape':[" dims "]}"
#define F16(name, dims)      "{'name':'" name "','dtype':'float16','shape':[" dims "]}"
#define N(op, in, out, dims) "{'name':'n_" out "','op':'" op "','inputs':[" in "],'outputs':[" F32(out, dims) "]}"
#define NA(op, in, attrs, out, dims)                                                                                                       \
        "{'name':'n_" out "','op':'" op "','inputs':[" in "],'attrs':{" attrs "},'outputs':[" F32(out, dims) "]}"
#define G(inputs, nodes, outputs) "'inputs':[" inputs "],'nodes':[" nodes "],'outputs':[" outputs "]"

/* The nodes of the sender's list that bit i of a mask names. */
static uint32_t pick(const struct af_graph *g, uint32_t mask, uint32_t *nodes) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < g->n_nodes; i++)
                if (mask >> g->nodes[i].source & 1)
                        nodes[n++] = i;
        return n;
}

/* Whether the nodes of two masks are alike, storing what each makes last (store) or without a word on that. */
static bool alike(const char *text, uint32_t a, uint32_t b, bool store) {
        struct af_test_graph t;
        struct af_alike al;
        uint32_t nodes[32], n_words, n_again;
        const uint32_t *words;
        af_test_graph_make(&t, text);
        if (t.r)
                af_test_diags_print(&t.diags);
        cr_assert_eq(t.r, 0);
        cr_assert_eq(af_alike_init(&al, &t.graph), 0);
        uint32_t n = pick(&t.graph, a, nodes);
        cr_assert_eq(af_alike_write(&al, nodes, n, t.graph.nodes[nodes[n - 1]].out, store ? 1 : AF_NONE, &words, &n_words), 0);
        uint32_t *first = af_arena_memdup(&t.arena, words, n_words * sizeof(*words));
        n = pick(&t.graph, b, nodes);
        cr_assert_eq(af_alike_write(&al, nodes, n, t.graph.nodes[nodes[n - 1]].out, store ? 1 : AF_NONE, &words, &n_again), 0);
        bool same = n_words == n_again && memcmp(first, words, n_words * sizeof(*words)) == 0;
        af_test_graph_deinit(&t);
        return same;
}

Test(alike, layers_that_repeat) {
        static const char text[] =
                G(F32("x", "4,8") "," F32("y", "4,8"),
                  N("abs", "'x'", "a", "4,8") "," N("add", "'a','y'", "b", "4,8") "," N("abs", "'b'", "c", "4,8") "," N(
                          "add", "'y','c'", "d", "4,8") "," N("sub", "'d','y'", "e", "4,8") "," N("sub", "'y','e'", "f", "4,8"),
                  "'f'");
        cr_assert(!alike(text, 1, 4, false), "an input and a node's value are not the same memory");
        cr_assert(alike(text, 2, 8, false), "operand order of what commutes");
        cr_assert(!alike(text, 16, 32, false), "operand order of what does not");
        cr_assert(!alike(text, 2, 16, false), "op");
        cr_assert(alike(text, 2, 8, true));
        cr_assert(!alike(text, 2, 2 + 4, false), "number of nodes");
}

Test(alike, one_value_twice_is_not_two_values) {
        static const char text[] =
                G(F32("x", "4,8") "," F32("y", "4,8"),
                  N("add", "'x','x'", "a", "4,8") "," N("add", "'x','y'", "b", "4,8") "," N("add", "'y','y'", "c", "4,8"), "'a','b','c'");
        cr_assert(!alike(text, 1, 2, false));
        cr_assert(alike(text, 1, 4, false));
}

Test(alike, shape_dtype_strides_offset_and_constants_count) {
        static const char shape[] =
                G(F32("x", "4,8") "," F32("y", "8,4"), N("abs", "'x'", "a", "4,8") "," N("abs", "'y'", "b", "8,4"), "'a','b'");
        static const char dtype[] =
                G(F32("x", "4,8") "," F16("y", "4,8"),
                  N("abs", "'x'", "a", "4,8") ",{'name':'n','op':'abs','inputs':['y'],'outputs':[" F16("b", "4,8") "]}", "'a','b'");
        static const char strides[] =
                G(F32("x", "4,8") ",{'name':'y','dtype':'float32','shape':[4,8],'strides':[16,1]},"
                                  "{'name':'z','dtype':'float32','shape':[4,8],'strides':[16,1],'offset':8}",
                  N("abs", "'x'", "a", "4,8") "," N("abs", "'y'", "b", "4,8") "," N("abs", "'z'", "c", "4,8"), "'a','b','c'");
        static const char constants[] =
                "'constants':[{'name':'k','dtype':'float32','shape':[],'bits':'0000803f'},"
                "{'name':'l','dtype':'float32','shape':[],'bits':'00000040'}]," G(
                        F32("x", "4,8"), N("add", "'x','k'", "a", "4,8") "," N("add", "'x','l'", "b", "4,8"), "'a','b'");
        cr_assert(!alike(shape, 1, 2, false));
        cr_assert(!alike(dtype, 1, 2, false));
        cr_assert(!alike(strides, 1, 2, false));
        cr_assert(!alike(strides, 2, 4, false));
        cr_assert(!alike(constants, 1, 2, false));
}

Test(alike, attributes_and_memory_updated_in_place_count) {
        static const char attrs[] =
                G(F32("x", "4,8"),
                  NA("leaky_relu", "'x'", "'alpha':0.5", "a", "4,8") "," NA("leaky_relu", "'x'", "'alpha':0.25", "b",
                                                                            "4,8") "," NA("leaky_relu", "'x'", "'alpha':0.5", "c", "4,8"),
                  "'a','b','c'");
        static const char in_place[] = G(F32("x", "4,8") "," F32("y", "4,8"), N("abs", "'x'", "a", "4,8") "," N("abs", "'y'", "b", "4,8"),
                                         "{'value':'a','alias_of':'x'},'b'");
        cr_assert(!alike(attrs, 1, 2, false));
        cr_assert(alike(attrs, 1, 4, false));
        cr_assert(!alike(in_place, 1, 2, false));
}

Test(alike, what_is_stored_counts_where_it_is_stated) {
        struct af_test_graph t;
        struct af_alike al;
        const uint32_t *words;
        uint32_t n, first[64], n_first;
        af_test_graph_make(&t, G(F32("x", "4,8"), N("abs", "'x'", "a", "4,8") "," N("exp", "'a'", "b", "4,8"), "'a','b'"));
        cr_assert_eq(t.r, 0);
        cr_assert_eq(af_alike_init(&al, &t.graph), 0);
        const uint32_t nodes[] = {0, 1}, both[] = {t.graph.nodes[0].out[0], t.graph.nodes[1].out[0]};
        cr_assert_eq(af_alike_write(&al, nodes, 2, both, 2, &words, &n_first), 0);
        memcpy(first, words, n_first * sizeof(*words));
        cr_assert_eq(al.n_values, 3);
        cr_assert_eq(al.values[2], both[1]);
        cr_assert_eq(af_alike_write(&al, nodes, 2, &both[1], 1, &words, &n), 0);
        cr_assert(n != n_first || memcmp(first, words, n * sizeof(*words)) != 0);
        af_test_graph_deinit(&t);
}
