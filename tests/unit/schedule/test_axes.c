/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "compiler/schedule/axes.h"
#include "tests/lib/fragment_text.h"

#define ONE_OUT(name, shape) "'outputs':[{'name':'" name "','dtype':'float32','shape':" shape "}]"

struct space_case {
        struct af_test_graph t;
        struct af_members m;
        struct af_space s;
        const char *why;
        int r;
};

/* All nodes as one group; the last node's value is stored. */
static void make_shared(struct space_case *c, bool share, const char *text) {
        uint32_t *nodes;
        *c = (struct space_case){0};
        af_test_graph_make(&c->t, text);
        af_test_diags_print(&c->t.diags);
        cr_assert_eq(c->t.r, 0);
        const struct af_graph *g = &c->t.graph;
        nodes = af_arena_calloc(g->arena, g->n_nodes, sizeof(*nodes));
        for (uint32_t i = 0; i < g->n_nodes; i++)
                nodes[i] = i;
        cr_assert_eq(af_members_init(&c->m, g->arena, g, nodes, g->n_nodes), 0);
        const struct af_store store = {.value = g->outputs[0].value, .output = g->outputs[0].value, .into = AF_NONE};
        c->r = af_space_build(g->arena, &c->m, &store, 1, AF_PACK_NEEDED, share, &c->s, &c->why);
}

static void make(struct space_case *c, const char *text) {
        make_shared(c, true, text);
}

Test(schedule_axes, contiguous_axes_merge) {
        struct space_case c;
        make(&c, "'inputs':[{'name':'x','dtype':'float32','shape':[4,5,6]},{'name':'y','dtype':'float32','shape':[4,5,6]}],"
                 "'nodes':[{'name':'n','op':'add','inputs':['x','y']," ONE_OUT("t", "[4,5,6]") "}],'outputs':['t']");
        cr_assert_eq(c.r, 0);
        cr_assert_eq(c.s.n_axes, 1);
        cr_assert_eq(c.s.extent[0], 120);
        cr_assert_eq(c.s.row, AF_NONE);
        af_test_graph_deinit(&c.t);
}

Test(schedule_axes, a_broadcast_keeps_its_axis_apart) {
        struct space_case c;
        make(&c, "'inputs':[{'name':'x','dtype':'float32','shape':[4,5,6]},{'name':'y','dtype':'float32','shape':[5,1]}],"
                 "'nodes':[{'name':'n','op':'add','inputs':['x','y']," ONE_OUT("t", "[4,5,6]") "}],'outputs':['t']");
        cr_assert_eq(c.r, 0);
        cr_assert_eq(c.s.n_axes, 3);
        cr_assert_eq(c.s.uses[1].vary, 2);
        cr_assert_eq(c.s.uses[1].strides[1], 1);
        cr_assert_eq(c.s.row, 1);
        cr_assert_eq(c.s.inner, 2);
        af_test_graph_deinit(&c.t);
}

Test(schedule_axes, a_reshape_refines) {
        struct space_case c;
        make(&c, "'inputs':[{'name':'x','dtype':'float32','shape':[24,10]},{'name':'y','dtype':'float32','shape':[6,10]}],"
                 "'nodes':[{'name':'a','op':'abs','inputs':['x']," ONE_OUT(
                         "t", "[24,10]") "},"
                                         "{'name':'r','op':'reshape','inputs':['t'],'attrs':{'shape':[4,6,10]}," ONE_OUT(
                                                 "u", "[4,6,10]") "},"
                                                                  "{'name':'n','op':'add','inputs':['u','y']," ONE_OUT(
                                                                          "v", "[4,6,10]") "}],'outputs':['v']");
        cr_assert_eq(c.r, 0, "%s", c.why);
        cr_assert_eq(c.s.n_axes, 2); /* 4 and 60: y does not vary over the 4 */
        cr_assert_eq(c.s.extent[0], 4);
        cr_assert_eq(c.s.extent[1], 60);
        cr_assert(c.s.skip[1]);
        af_test_graph_deinit(&c.t);
}

Test(schedule_axes, one_input_may_be_rows_and_columns) {
        struct space_case c;
        make_shared(&c, false,
                    "'inputs':[{'name':'x','dtype':'float32','shape':[9]}],"
                    "'nodes':[{'name':'u','op':'unsqueeze','inputs':['x'],'attrs':{'axes':[1]}," ONE_OUT(
                            "a", "[9,1]") "},"
                                          "{'name':'n','op':'sub','inputs':['a','x']," ONE_OUT("t", "[9,9]") "}],'outputs':['t']");
        cr_assert_eq(c.r, 0, "%s", c.why);
        cr_assert_eq(c.s.n_axes, 2);
        af_test_graph_deinit(&c.t);
}

Test(schedule_axes, one_computed_value_may_not) {
        struct space_case c;
        make(&c, "'inputs':[{'name':'x','dtype':'float32','shape':[9]}],"
                 "'nodes':[{'name':'e','op':'exp','inputs':['x']," ONE_OUT(
                         "y", "[9]") "},"
                                     "{'name':'u','op':'unsqueeze','inputs':['y'],'attrs':{'axes':[1]}," ONE_OUT(
                                             "a", "[9,1]") "},"
                                                           "{'name':'n','op':'sub','inputs':['a','y']," ONE_OUT(
                                                                   "t", "[9,9]") "}],'outputs':['t']");
        cr_assert_eq(c.r, AF_SCHEDULE_E_UNFIT);
        cr_assert_str_eq(c.why, "two axes of one value are the same axis of another");
        af_test_graph_deinit(&c.t);
}

Test(schedule_axes, reduced_axes_stay_apart_from_kept_ones) {
        struct space_case c;
        make(&c, "'inputs':[{'name':'x','dtype':'float32','shape':[4,5,6,7]}],"
                 "'nodes':[{'name':'n','op':'reduce_sum','inputs':['x'],'attrs':{'axes':[1,2],'keepdims':false}," ONE_OUT(
                         "t", "[4,7]") "}],"
                                       "'outputs':['t']");
        cr_assert_eq(c.r, 0);
        cr_assert_eq(c.s.n_axes, 3);
        cr_assert_eq(c.s.extent[1], 30);
        cr_assert_eq(c.s.reduced, 2);
        cr_assert_eq(c.s.row, 1);
        af_test_graph_deinit(&c.t);
}

#define STRIDED(shape, strides) "'inputs':[{'name':'x','dtype':'float32','shape':" shape ",'strides':" strides ",'offset':3}],"
#define ABS(shape)              "'nodes':[{'name':'n','op':'abs','inputs':['x']," ONE_OUT("t", shape) "}],'outputs':['t']"

Test(schedule_axes, a_transposed_input_moves_as_it_lies) {
        struct space_case c;
        make(&c, STRIDED("[5,6]", "[1,5]") ABS("[5,6]"));
        cr_assert_eq(c.r, 0, "%s", c.why);
        cr_assert_eq(c.s.n_axes, 2);
        cr_assert_null(c.s.uses[0].pack);
        cr_assert(c.s.raw);
        cr_assert_eq(c.s.uses[0].strides[0], 1);
        cr_assert_eq(c.s.uses[0].strides[1], 5);
        cr_assert_eq(c.s.uses[0].offset, 3);
        cr_assert_eq(c.s.uses[1].strides[1], 1); /* the order is the store's */
        af_test_graph_deinit(&c.t);
}

Test(schedule_axes, a_tile_spans_the_axis_that_an_input_lies_along) {
        struct space_case c;
        make(&c, STRIDED("[5,6,7]", "[1,5,30]") ABS("[5,6,7]"));
        cr_assert_eq(c.r, 0, "%s", c.why);
        cr_assert_eq(c.s.row, 0);
        cr_assert_eq(c.s.inner, 2);
        af_test_graph_deinit(&c.t);
}

Test(schedule_axes, steps_within_a_sector_are_loaded_with_what_lies_between) {
        struct space_case c;
        make(&c, STRIDED("[50,600]", "[3000,4]") ABS("[50,600]"));
        cr_assert_eq(c.r, 0, "%s", c.why);
        cr_assert_null(c.s.uses[0].pack);
        af_test_graph_deinit(&c.t);
}

/* x lies along the outermost axis, y along the middle one: a tile spans the innermost and one of them. */
Test(schedule_axes, one_input_of_two_that_lie_along_other_axes_is_packed) {
        struct space_case c;
        make(&c, "'inputs':[{'name':'x','dtype':'float32','shape':[50,60,70],'strides':[1,50,3000]},"
                 "{'name':'y','dtype':'float32','shape':[50,60,70],'strides':[4200,1,60]}],"
                 "'nodes':[{'name':'n','op':'add','inputs':['x','y']," ONE_OUT("t", "[50,60,70]") "}],'outputs':['t']");
        cr_assert_eq(c.r, 0, "%s", c.why);
        cr_assert_eq(!c.s.uses[0].pack + !c.s.uses[1].pack, 1);
        af_test_graph_deinit(&c.t);
}

#define NODE(name, op, in, attrs, out, shape)                                                                                              \
        "{'name':'" name "','op':'" op "','inputs':[" in "],'attrs':{" attrs "}," ONE_OUT(out, shape) "}"
#define INPUT(name, shape) "{'name':'" name "','dtype':'float32','shape':" shape "}"

Test(schedule_axes, a_transpose_permutes_the_axes_of_a_use) {
        struct space_case c;
        make(&c, "'inputs':[" INPUT("x", "[5,6]") "," INPUT("y", "[6,5]") "],'nodes':[" NODE(
                         "p", "transpose", "'x'", "'perm':[1,0]", "a", "[6,5]") "," NODE("n", "add", "'a','y'", "", "t",
                                                                                         "[6,5]") "],'outputs':['t']");
        cr_assert_eq(c.r, 0, "%s", c.why);
        cr_assert_eq(c.s.n_axes, 2);
        cr_assert_eq(c.s.extent[0], 6);
        cr_assert(c.s.skip[0]);
        cr_assert_eq(c.s.uses[0].strides[0], 1);
        cr_assert_eq(c.s.uses[0].strides[1], 6);
        cr_assert_eq(c.s.uses[1].strides[0], 5);
        af_test_graph_deinit(&c.t);
}

Test(schedule_axes, a_transposed_result_is_stored_across) {
        struct space_case c;
        make(&c, "'inputs':[" INPUT("x", "[5,6]") "],'nodes':[" NODE("n", "abs", "'x'", "", "a", "[5,6]") "," NODE(
                         "p", "transpose", "'a'", "'perm':[1,0]", "t", "[6,5]") "],'outputs':['t']");
        cr_assert_eq(c.r, 0, "%s", c.why);
        cr_assert_eq(c.s.n_axes, 2);
        cr_assert_neq(c.s.uses[0].strides[0], c.s.uses[1].strides[0]);
        cr_assert_eq(c.s.uses[1].strides[1], 1); /* rather gathered on its way in than on its way out */
        af_test_graph_deinit(&c.t);
}

Test(schedule_axes, a_slice_steps_over_its_input) {
        struct space_case c;
        make(&c, "'inputs':[" INPUT("x", "[50,600]") "],'nodes':[" NODE(
                         "s", "slice", "'x'", "'starts':[3,599],'stops':[50,-1],'steps':[2,-1]", "a",
                         "[24,600]") "," NODE("n", "abs", "'a'", "", "t", "[24,600]") "],'outputs':['t']");
        cr_assert_eq(c.r, 0, "%s", c.why);
        cr_assert_eq(c.s.n_axes, 2);
        cr_assert_eq(c.s.uses[0].offset, 3 * 600 + 599);
        cr_assert_eq(c.s.uses[0].strides[0], 1200);
        cr_assert_eq(c.s.uses[0].strides[1], -1);
        af_test_graph_deinit(&c.t);
}

Test(schedule_axes, a_slice_of_a_reshape_is_a_slice_of_memory) {
        struct space_case c;
        make(&c, "'inputs':[" INPUT("x", "[24,10]") "],'nodes':[" NODE("r", "reshape", "'x'", "'shape':[4,6,10]", "a", "[4,6,10]") "," NODE(
                         "s", "slice", "'a'", "'starts':[0,2,0],'stops':[4,4,10],'steps':[1,1,1]", "b",
                         "[4,2,10]") "," NODE("n", "abs", "'b'", "", "t", "[4,2,10]") "],'outputs':['t']");
        cr_assert_eq(c.r, 0, "%s", c.why);
        cr_assert_eq(c.s.n_axes, 2);
        cr_assert_eq(c.s.extent[1], 20);
        cr_assert_eq(c.s.uses[0].offset, 20);
        cr_assert_eq(c.s.uses[0].strides[0], 60);
        af_test_graph_deinit(&c.t);
}

#define IOTA(name, dtype, shape, attrs)                                                                                                    \
        "{'name':'" name "n','op':'iota','inputs':[],'attrs':{'shape':" shape "," attrs "},'outputs':[{'name':'" name "','dtype':'" dtype  \
        "','shape':" shape "}]}"

Test(schedule_axes, an_index_steps_along_its_axis) {
        struct space_case c;
        make(&c,
             "'inputs':[{'name':'x','dtype':'int32','shape':[4,5,6]}],'nodes':[" IOTA(
                     "i", "int32", "[5,6]", "'axis':0,'start':3,'step':2") ","
                                                                           "{'name':'n','op':'add','inputs':['x','i'],'outputs':[{'name':'"
                                                                           "t','dtype':'int32','shape':[4,5,6]}]}],'outputs':['t']");
        cr_assert_eq(c.r, 0, "%s", c.why);
        cr_assert_eq(c.s.n_axes, 3); /* it tells rows from columns */
        cr_assert_eq(c.s.uses[0].base_kind, AF_BASE_INDEX);
        cr_assert_eq(c.s.uses[0].offset, 3);
        cr_assert_eq(c.s.uses[0].strides[0], 0);
        cr_assert_eq(c.s.uses[0].strides[1], 2);
        cr_assert_eq(c.s.uses[0].strides[2], 0);
        af_test_graph_deinit(&c.t);
}

Test(schedule_axes, indices_that_int32_does_not_hold_are_refused) {
        struct space_case c;
        make(&c, "'inputs':[],'nodes':[" IOTA("t", "int64", "[5,6]", "'axis':0,'start':3000000000,'step':2") "],'outputs':['t']");
        cr_assert_eq(c.r, AF_SCHEDULE_E_UNFIT);
        cr_assert_str_eq(c.why, "indices beyond 32 bits");
        af_test_graph_deinit(&c.t);
}

Test(schedule_axes, a_slice_of_what_is_computed_is_refused) {
        struct space_case c;
        make(&c, "'inputs':[" INPUT("x", "[24]") "],'nodes':[" NODE("n", "abs", "'x'", "", "a", "[24]") "," NODE(
                         "s", "slice", "'a'", "'starts':[2],'stops':[4],'steps':[1]", "t", "[2]") "],'outputs':['t']");
        cr_assert_eq(c.r, AF_SCHEDULE_E_UNFIT);
        cr_assert_str_eq(c.why, "a slice of a value that the kernel computes");
        af_test_graph_deinit(&c.t);
}

Test(schedule_axes, symbols_become_extents_and_strides) {
        struct space_case c;
        make(&c, "'symbols':[{'name':'s0','min':1,'max':64}],'inputs':[{'name':'x','dtype':'float32','shape':[6,'s0',5]},"
                 "{'name':'y','dtype':'float32','shape':[6,1,1]}],'nodes':[{'name':'n','op':'add','inputs':['x','y']," ONE_OUT(
                         "t", "[6,'s0',5]") "}],'outputs':['t']");
        cr_assert_eq(c.r, 0, "%s", c.why);
        cr_assert_eq(c.s.n_axes, 2);
        cr_expect(c.s.extent[0] == 6 && !c.s.extent_x[0] && c.s.most[0] == 6);
        cr_expect(c.s.extent_x[1] && c.s.most[1] == 320);
        cr_expect(c.s.uses[0].strides_x[0] && !c.s.uses[0].strides_x[1] && c.s.uses[0].strides[1] == 1);
        af_test_graph_deinit(&c.t);
}

Test(schedule_axes, atoms_split_both_ways) {
        struct af_arena arena;
        struct af_graph g = {0}; /* no symbols */
        struct af_atoms a = {.g = &g, .arena = &arena};
        struct af_dims x = {.rank = 2}, y = {.rank = 2};
        af_arena_init(&arena, 0);
        cr_assert(!af_atoms_new(&a, 12, &x.atom[0]) && !af_atoms_new(&a, 10, &x.atom[1]));
        cr_assert(!af_atoms_new(&a, 4, &y.atom[0]) && !af_atoms_new(&a, 30, &y.atom[1]));
        cr_assert_eq(af_atoms_unify_dims(&a, &x, &y), 0);
        uint32_t lx[AF_ATOMS_MAX], ly[AF_ATOMS_MAX], nx = 0, ny = 0;
        for (uint32_t i = 0; i < 2; i++)
                cr_assert(af_atoms_leaves(&a, x.atom[i], lx, &nx) && af_atoms_leaves(&a, y.atom[i], ly, &ny));
        cr_assert_eq(nx, 3); /* 4, 3, 10 */
        cr_assert_eq(ny, 3);
        for (uint32_t i = 0; i < 3; i++)
                cr_assert_eq(lx[i], ly[i]);
        struct af_dims z = {.rank = 1};
        cr_assert(!af_atoms_new(&a, 7, &z.atom[0]));
        cr_assert_eq(af_atoms_unify(&a, z.atom[0], x.atom[0]), 1);
        af_arena_deinit(&arena);
}
