/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/io.h"
#include "compiler/graph/canon.h"
#include "compiler/graph/key.h"
#include "tests/lib/fragment_text.h"

/* Canonical bytes of a fragment text; the text must be valid. Caller deinits. */
static struct af_buf canon_of(const char *text) {
        struct af_buf buf = AF_BUF_INIT;
        struct af_test_graph t;

        af_test_graph_make(&t, text);
        af_test_diags_print(&t.diags);
        cr_assert_eq(t.r, 0, "%s", text);
        cr_assert_eq(af_canon_write(&t.graph, &buf, NULL), 0);
        cr_assert_eq(af_canon_verify(buf.data, buf.size, NULL), 0, "not its own canonical form: %s", text);
        af_test_graph_deinit(&t);
        return buf;
}

static void check_pair(const char *a, const char *b, bool equal) {
        struct af_buf x = canon_of(a), y = canon_of(b);
        bool same = x.size == y.size && memcmp(x.data, y.data, x.size) == 0;

        cr_expect_eq(same, equal, "%s\n%s\n%s", equal ? "differ:" : "are one:", a, b);
        af_buf_deinit(&x);
        af_buf_deinit(&y);
}

static const char *const samples[] = {"tf_abs_add_relu_broadcast", "tf_abs_reduce_sum",  "tf_abs_relu_exp", "torch_add_ge",
                                      "torch_gather_add",          "torch_mul_reducesum"};

Test(canon, samples_round_trip) {
        for (size_t i = 0; i < AF_ARRAY_SIZE(samples); i++) {
                struct af_buf text = AF_BUF_INIT, canon = AF_BUF_INIT;
                struct af_slot_map map;
                struct af_test_graph t;
                char path[512];

                snprintf(path, sizeof(path), "%s/examples/fragments/%s.json", getenv("AF_SOURCE_ROOT"), samples[i]);
                cr_assert_eq(af_io_read_file(path, 1 << 20, &text), 0, "%s", path);
                af_test_graph_parse(&t, (const char *)text.data, text.size);
                af_test_diags_print(&t.diags);
                cr_assert_eq(t.r, 0, "%s", samples[i]);
                cr_expect_eq(af_graph_check(&t.graph, NULL), 0);
                cr_assert_eq(af_canon_write(&t.graph, &canon, &map), 0);
                cr_expect_eq(map.n_nodes, t.fragment.n_nodes);
                cr_expect_eq(map.n_inputs, t.fragment.n_inputs);
                for (uint32_t k = 0; k < map.n_nodes; k++)
                        cr_expect_eq(map.nodes[k], k);
                cr_expect_eq(af_canon_verify(canon.data, canon.size, NULL), 0, "%s", samples[i]);
                af_slot_map_deinit(&map);
                af_test_graph_deinit(&t);
                af_buf_deinit(&text);
                af_buf_deinit(&canon);
        }
}

/* Fields of a fragment that tests vary: a base and one change each. */
#define IN(name, rest)            "{'name': '" name "', 'dtype': 'float32', 'shape': [4, 6]" rest "}"
#define NODE(n, op, in, attrs, t) "{'name': '" n "', 'op': '" op "', 'inputs': [" in "], 'attrs': {" attrs "}, 'outputs': [" t "]}"
#define T46(name)                 "{'name': '" name "', 'dtype': 'float32', 'shape': [4, 6]}"
#define T4(name)                  "{'name': '" name "', 'dtype': 'float32', 'shape': [4]}"
#define BASE_IN                   IN("x", "") ", " IN("y", "")
#define BASE_NODES                NODE("n0", "sub", "'x', 'y'", "", T46("t0")) ", " NODE("n1", "exp", "'t0'", "", T46("t1"))
#define FRAGMENT(in, nodes, out)  "'inputs': [" in "], 'nodes': [" nodes "], 'outputs': [" out "]"
#define BASE                      FRAGMENT(BASE_IN, BASE_NODES, "'t1'")

Test(canon, does_not_matter) {
        const char *const same[] = {
                /* names, origins, the fragment's name, defaults written out */
                FRAGMENT(IN("a", "") ", " IN("b", ""),
                         NODE("first", "sub", "'a', 'b'", "", T46("p")) ", " NODE("second", "exp", "'p'", "", T46("q")), "'q'"),
                "'name': 'other', " BASE,
                FRAGMENT(IN("x", ", 'strides': [6, 1], 'offset': 0, 'align': 4, 'host': false") ", " IN("y", ""), BASE_NODES, "'t1'"),
                FRAGMENT(BASE_IN,
                         "{'name': 'n0', 'op': 'sub', 'origin': 'aten.sub', 'inputs': ['x', 'y'], 'outputs': [" T46("t0") "]}, " NODE(
                                 "n1", "exp", "'t0'", "", T46("t1")),
                         "'t1'"),
                /* order of nodes and of inputs, dead nodes, unused inputs, constants and symbols */
                FRAGMENT(BASE_IN, NODE("n1", "exp", "'t0'", "", T46("t1")) ", " NODE("n0", "sub", "'x', 'y'", "", T46("t0")), "'t1'"),
                FRAGMENT(IN("y", "") ", " IN("x", ""), BASE_NODES, "'t1'"),
                FRAGMENT(BASE_IN, NODE("d", "abs", "'t0'", "", T46("t9")) ", " BASE_NODES, "'t1'"),
                FRAGMENT(IN("z", "") ", " BASE_IN, BASE_NODES, "'t1'"),
                "'symbols': [{'name': 's'}], " BASE,
                "'constants': [{'name': 'c', 'dtype': 'float32', 'shape': [], 'value': 3}], " BASE,
                FRAGMENT(IN("x", "") ", " IN("y", ", 'buffer': 'm'") ", " IN("z", ", 'buffer': 'm'"), BASE_NODES, "'t1'"),
                FRAGMENT(BASE_IN, BASE_NODES, "{'value': 't1', 'strides': [6, 1]}"),
        };

        for (size_t i = 0; i < AF_ARRAY_SIZE(same); i++)
                check_pair(BASE, same[i], true);
}

#define SUM(in, op, attrs, t) FRAGMENT(IN("x", ""), NODE("n", op, in, attrs, t), "'t'")

Test(canon, defaults_are_written_out) {
        check_pair(SUM("'x'", "reduce_sum", "'axes': [1]", T4("t")), SUM("'x'", "reduce_sum", "'axes': [-1], 'keepdims': false", T4("t")),
                   true);
        check_pair(SUM("'x'", "reduce_sum", "", "{'name': 't', 'dtype': 'float32', 'shape': []}"),
                   SUM("'x'", "reduce_sum", "'axes': [1, 0]", "{'name': 't', 'dtype': 'float32', 'shape': []}"), true);
        check_pair(SUM("'x'", "leaky_relu", "", T46("t")), SUM("'x'", "leaky_relu", "'alpha': 0.01", T46("t")), true);
        check_pair(SUM("'x'", "gelu", "", T46("t")), SUM("'x'", "gelu", "'approximate': 'none'", T46("t")), true);
        check_pair(SUM("'x'", "clip", "'min': 1", T46("t")), SUM("'x'", "clip", "'min': 1.0", T46("t")), true);
        check_pair(SUM("'x'", "reshape", "'shape': [-1]", "{'name': 't', 'dtype': 'float32', 'shape': [24]}"),
                   SUM("'x'", "reshape", "'shape': [24]", "{'name': 't', 'dtype': 'float32', 'shape': [24]}"), true);
}

Test(canon, commutative_operands) {
        check_pair(FRAGMENT(BASE_IN, NODE("a", "exp", "'y'", "", T46("e")) ", " NODE("b", "add", "'x', 'e'", "", T46("t")), "'t'"),
                   FRAGMENT(BASE_IN, NODE("a", "exp", "'y'", "", T46("e")) ", " NODE("b", "add", "'e', 'x'", "", T46("t")), "'t'"), true);
        /* two inputs of one type, told apart by what else is done with them */
        check_pair(FRAGMENT(BASE_IN, NODE("a", "add", "'x', 'y'", "", T46("e")) ", " NODE("b", "sub", "'e', 'x'", "", T46("t")), "'t'"),
                   FRAGMENT(BASE_IN, NODE("a", "add", "'y', 'x'", "", T46("e")) ", " NODE("b", "sub", "'e', 'x'", "", T46("t")), "'t'"),
                   true);
        /* equal constants under two names, in either place */
        check_pair(
                "'constants': [{'name': 'c', 'dtype': 'float32', 'shape': [], 'value': 3}, {'name': 'd', 'dtype': 'float32', 'shape': [], "
                "'bits': '00004040'}], " FRAGMENT(
                        IN("x", ""), NODE("a", "mul", "'x', 'c'", "", T46("e")) ", " NODE("b", "add", "'d', 'e'", "", T46("t")), "'t'"),
                "'constants': [{'name': 'c', 'dtype': 'float32', 'shape': [], 'value': 3}], " FRAGMENT(
                        IN("x", ""), NODE("a", "mul", "'c', 'x'", "", T46("e")) ", " NODE("b", "add", "'e', 'c'", "", T46("t")), "'t'"),
                true);
        check_pair(BASE,
                   FRAGMENT(BASE_IN, NODE("n0", "sub", "'x', 'x'", "", T46("t0")) ", " NODE("n1", "exp", "'t0'", "", T46("t1")), "'t1'"),
                   false);
}

#define SYMBOLS(a, b) "'symbols': [" a ", " b "], "
#define DYN(s, t)     "{'name': 'x', 'dtype': 'float32', 'shape': ['" s "', '" t "']}"
#define DYN_OUT(s, t) "{'name': 't', 'dtype': 'float32', 'shape': ['" s "', '" t "']}"

Test(canon, symbols) {
        const char *base = SYMBOLS("{'name': 's', 'max': 64}", "{'name': 't', 'max': 64}")
                FRAGMENT(DYN("s", "t*2+1"), NODE("n", "exp", "'x'", "", DYN_OUT("s", "1+2*t")), "'t'");

        check_pair(base,
                   SYMBOLS("{'name': 'b', 'max': 64, 'hint': 7}", "{'name': 'a', 'max': 64}")
                           FRAGMENT(DYN("a", "b*2+1"), NODE("n", "exp", "'x'", "", DYN_OUT("a", "1+2*b")), "'t'"),
                   true);
        check_pair(base,
                   SYMBOLS("{'name': 's', 'max': 64}", "{'name': 't', 'max': 65}")
                           FRAGMENT(DYN("s", "t*2+1"), NODE("n", "exp", "'x'", "", DYN_OUT("s", "1+2*t")), "'t'"),
                   false);
        check_pair(base,
                   SYMBOLS("{'name': 's', 'max': 64}", "{'name': 't', 'max': 64}")
                           FRAGMENT(DYN("s", "s*2+1"), NODE("n", "exp", "'x'", "", DYN_OUT("s", "1+2*s")), "'t'"),
                   false);
}

/* One field changed in each: all must differ from each other. */
static const char *const sweep[] = {
        BASE,
        "'numerics': 'fast', " BASE,
        "'target': {'soc': 'Ascend910B2'}, " BASE,
        "'target': {'soc': 'Ascend910B3'}, " BASE,
        "'target': {'soc': 'Ascend910B'}, " BASE,
        "'target': {'toolchain': 'host'}, " BASE,
        "'target': {'toolchain': 'host', 'twin': 'fast'}, " BASE,
        "'target': {'toolchain': 'host', 'twin': 'checked'}, " BASE,
        FRAGMENT("{'name': 'x', 'dtype': 'float16', 'shape': [4, 6]}, {'name': 'y', 'dtype': 'float16', 'shape': [4, 6]}",
                 NODE("n0", "sub", "'x', 'y'", "", "{'name': 't0', 'dtype': 'float16', 'shape': [4, 6]}") ", " NODE(
                         "n1", "exp", "'t0'", "", "{'name': 't1', 'dtype': 'float16', 'shape': [4, 6]}"),
                 "'t1'"),
        FRAGMENT("{'name': 'x', 'dtype': 'float32', 'shape': [4, 1]}, " IN("y", ""), BASE_NODES, "'t1'"),
        FRAGMENT("{'name': 'x', 'dtype': 'float32', 'shape': [1, 6]}, " IN("y", ""), BASE_NODES, "'t1'"),
        FRAGMENT("{'name': 'x', 'dtype': 'float32', 'shape': [6]}, " IN("y", ""), BASE_NODES, "'t1'"),
        FRAGMENT("{'name': 'x', 'dtype': 'float32', 'shape': [4, 1]}, {'name': 'y', 'dtype': 'float32', 'shape': [1, 6]}", BASE_NODES,
                 "'t1'"),
        FRAGMENT(IN("x", ", 'strides': [7, 1]") ", " IN("y", ""), BASE_NODES, "'t1'"),
        FRAGMENT(IN("x", ", 'strides': [1, 4]") ", " IN("y", ""), BASE_NODES, "'t1'"),
        FRAGMENT(IN("x", "") ", " IN("y", ", 'strides': [1, 4]"), BASE_NODES, "'t1'"),
        FRAGMENT(IN("x", ", 'offset': 1") ", " IN("y", ""), BASE_NODES, "'t1'"),
        FRAGMENT(IN("x", ", 'align': 64") ", " IN("y", ""), BASE_NODES, "'t1'"),
        FRAGMENT(IN("x", ", 'buffer': 'm'") ", " IN("y", ", 'buffer': 'm'"), BASE_NODES, "'t1'"),
        FRAGMENT("{'name': 'x', 'dtype': 'float32', 'shape': []}, " IN("y", ""), BASE_NODES, "'t1'"),
        FRAGMENT("{'name': 'x', 'dtype': 'float32', 'shape': [], 'host': true}, " IN("y", ""), BASE_NODES, "'t1'"),
        FRAGMENT("{'name': 'x', 'dtype': 'float64', 'shape': [], 'host': true}, " IN("y", ""), BASE_NODES, "'t1'"),
        FRAGMENT(BASE_IN, NODE("n0", "sub", "'x', 'x'", "", T46("t0")) ", " NODE("n1", "exp", "'t0'", "", T46("t1")), "'t1'"),
        FRAGMENT(BASE_IN, NODE("n0", "div", "'x', 'y'", "", T46("t0")) ", " NODE("n1", "exp", "'t0'", "", T46("t1")), "'t1'"),
        FRAGMENT(BASE_IN, NODE("n0", "sub", "'x', 'y'", "", T46("t0")) ", " NODE("n1", "log", "'t0'", "", T46("t1")), "'t1'"),
        FRAGMENT(BASE_IN, BASE_NODES, "'t0'"),
        FRAGMENT(BASE_IN, BASE_NODES, "'t0', 't1'"),
        FRAGMENT(BASE_IN, BASE_NODES, "'t1', 't0'"),
        FRAGMENT(BASE_IN, BASE_NODES, "'t1', 't1'"),
        FRAGMENT(BASE_IN, BASE_NODES, "'t1', 'x'"),
        FRAGMENT(BASE_IN, BASE_NODES, "'t1', 'y'"),
        FRAGMENT(BASE_IN, BASE_NODES, "{'value': 't1', 'strides': [1, 4]}"),
        FRAGMENT(BASE_IN, BASE_NODES, "{'value': 't1', 'alias_of': 'x'}"),
        FRAGMENT(BASE_IN, BASE_NODES, "{'value': 't1', 'alias_of': 'y'}"),
        FRAGMENT(IN("x", "") ", " IN("y", "") ", " IN("z", ""), BASE_NODES, "{'value': 't1', 'alias_of': 'z'}"),
        FRAGMENT(IN("x", ""), NODE("n", "reduce_sum", "'x'", "'axes': [1]", T4("t")), "'t'"),
        FRAGMENT(IN("x", ""), NODE("n", "reduce_mean", "'x'", "'axes': [1]", T4("t")), "'t'"),
        FRAGMENT(IN("x", ""), NODE("n", "reduce_sum", "'x'", "'axes': [0]", "{'name': 't', 'dtype': 'float32', 'shape': [6]}"), "'t'"),
        FRAGMENT(IN("x", ""),
                 NODE("n", "reduce_sum", "'x'", "'axes': [1], 'keepdims': true", "{'name': 't', 'dtype': 'float32', 'shape': [4, 1]}"),
                 "'t'"),
        FRAGMENT(IN("x", ""), NODE("n", "leaky_relu", "'x'", "", T46("t")), "'t'"),
        FRAGMENT(IN("x", ""), NODE("n", "leaky_relu", "'x'", "'alpha': 0.010000000000000002", T46("t")), "'t'"),
        FRAGMENT(IN("x", ""), NODE("n", "gelu", "'x'", "", T46("t")), "'t'"),
        FRAGMENT(IN("x", ""), NODE("n", "gelu", "'x'", "'approximate': 'tanh'", T46("t")), "'t'"),
        FRAGMENT(IN("x", ""), NODE("n", "clip", "'x'", "'min': 0", T46("t")), "'t'"),
        FRAGMENT(IN("x", ""), NODE("n", "clip", "'x'", "'min': -0.0", T46("t")), "'t'"),
        FRAGMENT(IN("x", ""), NODE("n", "clip", "'x'", "'max': 0", T46("t")), "'t'"),
        FRAGMENT(IN("x", ""), NODE("n", "clip", "'x'", "'min': 0, 'max': 0", T46("t")), "'t'"),
        FRAGMENT(IN("x", ""), NODE("n", "clip", "'x'", "'max': 'inf'", T46("t")), "'t'"),
        FRAGMENT(IN("x", ""), NODE("n", "clip", "'x'", "'max': 'nan'", T46("t")), "'t'"),
        FRAGMENT(IN("x", ""), NODE("n", "cast", "'x'", "", "{'name': 't', 'dtype': 'int32', 'shape': [4, 6]}"), "'t'"),
        FRAGMENT(IN("x", ""), NODE("n", "cast", "'x'", "", "{'name': 't', 'dtype': 'int64', 'shape': [4, 6]}"), "'t'"),
        FRAGMENT(IN("x", ""), NODE("n", "opaque", "'x'", "", T46("t")), "'t'"),
        FRAGMENT(IN("x", ""), NODE("n", "opaque", "'x'", "'effects': true", T46("t")), "'t'"),
        FRAGMENT(IN("x", ""), NODE("n", "opaque", "'x'", "", "{'name': 't', 'dtype': 'float32', 'shape': [4, 6], 'strides': [1, 4]}"),
                 "'t'"),
        FRAGMENT(IN("x", ""), NODE("n", "opaque", "'x'", "", T46("t") ", " T46("u")), "'t'"),
        FRAGMENT(IN("x", ""), NODE("n", "opaque", "'x'", "", T46("u") ", " T46("t")), "'t'"),
#define CONST(dtype, bits)                                                                                                                 \
        "'constants': [{'name': 'c', 'dtype': '" dtype "', 'shape': [], 'bits': '" bits                                                    \
        "'}], " FRAGMENT(IN("x", ""), NODE("n", "div", "'x', 'c'", "", T46("t")), "'t'")
        CONST("float32", "0000803f"),
        CONST("float32", "0100803f"),
        CONST("float32", "000080bf"),
        CONST("float32", "00000000"),
        CONST("float32", "00000080"),
        CONST("float64", "000000000000f03f"),
        "'constants': [{'name': 'c', 'dtype': 'float32', 'shape': [1], 'bits': '0000803f'}], " FRAGMENT(
                IN("x", ""), NODE("n", "div", "'x', 'c'", "", T46("t")), "'t'"),
        "'constants': [{'name': 'c', 'dtype': 'float32', 'shape': [], 'bits': '0000803f'}], " FRAGMENT(
                IN("x", ""), NODE("n", "div", "'c', 'x'", "", T46("t")), "'t'"),
};

Test(canon, C22_one_bit_sweep) {
        struct af_digest digests[AF_ARRAY_SIZE(sweep)];

        for (size_t i = 0; i < AF_ARRAY_SIZE(sweep); i++) {
                struct af_buf canon = canon_of(sweep[i]);
                af_key_fragment(canon.data, canon.size, &digests[i]);
                af_buf_deinit(&canon);
                for (size_t k = 0; k < i; k++)
                        cr_expect(!af_digest_equal(&digests[i], &digests[k]), "one key:\n%s\n%s", sweep[i], sweep[k]);
        }
}

/* Names "a", "bc" and "ab", "c" neither matter nor collide. */
Test(canon, C23_names_do_not_run_together) {
        check_pair(FRAGMENT(IN("a", "") ", " IN("bc", ""), NODE("n", "sub", "'a', 'bc'", "", T46("t")), "'t'"),
                   FRAGMENT(IN("ab", "") ", " IN("c", ""), NODE("n", "sub", "'ab', 'c'", "", T46("t")), "'t'"), true);
        check_pair("'target': {'soc': 'ab', 'toolchain': 'c'}, " BASE, "'target': {'soc': 'a', 'toolchain': 'bc'}, " BASE, false);
}

Test(canon, effects_keep_their_order) {
#define PRINT(n, in, t) NODE(n, "opaque", in, "'effects': true", t)
        const char *ab =
                FRAGMENT(BASE_IN, PRINT("p", "'x'", "") ", " PRINT("q", "'y'", "") ", " NODE("n", "sub", "'x', 'y'", "", T46("t")), "'t'");
        const char *ba =
                FRAGMENT(BASE_IN, PRINT("q", "'y'", "") ", " PRINT("p", "'x'", "") ", " NODE("n", "sub", "'x', 'y'", "", T46("t")), "'t'");
        const char *late =
                FRAGMENT(BASE_IN, NODE("n", "sub", "'x', 'y'", "", T46("t")) ", " PRINT("p", "'x'", "") ", " PRINT("q", "'y'", ""), "'t'");
        struct af_slot_map map;
        struct af_test_graph t;
        struct af_buf buf = AF_BUF_INIT;

        check_pair(ab, ba, false);
        check_pair(ab, late, true);
        af_test_graph_make(&t, ab);
        cr_assert_eq(af_canon_write(&t.graph, &buf, &map), 0);
        cr_expect_lt(map.nodes[0], map.nodes[1]);
        cr_expect_neq(map.nodes[2], AF_NONE);
        af_slot_map_deinit(&map);
        af_buf_deinit(&buf);
        af_test_graph_deinit(&t);
}

Test(canon, slot_map) {
        struct af_test_graph t;
        struct af_buf buf = AF_BUF_INIT;
        struct af_slot_map map;

        af_test_graph_make(
                &t,
                "'symbols': [{'name': 'u'}, {'name': 's'}], " FRAGMENT(
                        "{'name': 'z', 'dtype': 'float32', 'shape': ['u']}, {'name': 'y', 'dtype': 'float32', 'shape': ['s']}, "
                        "{'name': 'x', 'dtype': 'float32', 'shape': ['s']}",
                        "{'name': 'b', 'op': 'exp', 'inputs': ['t'], 'outputs': [{'name': 'e', 'dtype': 'float32', 'shape': ['s']}]}, "
                        "{'name': 'd', 'op': 'abs', 'inputs': ['z'], 'outputs': [{'name': 'f', 'dtype': 'float32', 'shape': ['u']}]}, "
                        "{'name': 'a', 'op': 'sub', 'inputs': ['x', 'y'], 'outputs': [{'name': 't', 'dtype': 'float32', 'shape': ['s']}]}",
                        "'e'"));
        af_test_diags_print(&t.diags);
        cr_assert_eq(t.r, 0);
        cr_assert_eq(af_canon_write(&t.graph, &buf, &map), 0);
        cr_expect_eq(map.inputs[0], AF_NONE);
        cr_expect_eq(map.inputs[1], 1);
        cr_expect_eq(map.inputs[2], 0);
        cr_expect_eq(map.nodes[0], 1);
        cr_expect_eq(map.nodes[1], AF_NONE);
        cr_expect_eq(map.nodes[2], 0);
        cr_expect_eq(map.symbols[0], AF_NONE);
        cr_expect_eq(map.symbols[1], 0);
        af_slot_map_deinit(&map);
        af_buf_deinit(&buf);
        af_test_graph_deinit(&t);
}

/* Whatever the bytes are: no crash, and what is accepted as canonical is what the writer would write. */
static void read_bytes(const uint8_t *p, size_t n) {
        struct af_diags diags = {0};
        struct af_arena arena;
        struct af_graph g;

        af_arena_init(&arena, 64 << 20);
        if (af_canon_read(&g, &arena, p, n, &diags) == 0) {
                struct af_buf again = AF_BUF_INIT;
                cr_expect_eq(af_graph_check(&g, NULL), 0);
                cr_expect_eq(af_canon_write(&g, &again, NULL), 0);
                cr_expect_eq(af_canon_verify(again.data, again.size, NULL), 0, "canonical bytes of accepted bytes");
                af_buf_deinit(&again);
        }
        af_arena_deinit(&arena);
        af_diags_deinit(&diags);
}

static void mutate(const struct af_buf *canon, uint64_t seed) {
        uint8_t *copy = malloc(canon->size);
        uint64_t x = seed * 0x9e3779b97f4a7c15u + 1;

        memcpy(copy, canon->data, canon->size);
        for (unsigned k = 0; k < 1 + seed % 4; k++) {
                x = x * 6364136223846793005u + 1442695040888963407u;
                uint8_t *p = &copy[(x >> 33) % canon->size];
                const uint8_t values[] = {
                        0, 1, 0xff, 0x7f, 0x80, (uint8_t)(x >> 20), (uint8_t)(*p ^ 1u << (x >> 29 & 7)), (uint8_t)(*p + 1)};
                *p = values[x >> 60 & 7];
        }
        read_bytes(copy, canon->size);
        free(copy);
}

Test(canon, damaged_bytes, .timeout = 120) {
        const char *rich =
                "'symbols': [{'name': 's', 'max': 64}, {'name': 't'}], "
                "'constants': [{'name': 'c', 'dtype': 'float64', 'shape': [], 'value': 0.1}], " FRAGMENT(
                        DYN("s", "t*2+1") ", {'name': 'v', 'dtype': 'float32', 'shape': ['s', 'max(t, 3)'], 'strides': ['t', 1], "
                                          "'buffer': 'm'}",
                        NODE("n", "mul", "'x', 'c'", "", "{'name': 'p', 'dtype': 'float32', 'shape': ['s', '1+2*t']}") ", " NODE(
                                "r", "reduce_sum", "'p'", "'axes': [1], 'keepdims': true",
                                "{'name': 'q', 'dtype': 'float32', 'shape': ['s', 1]}") ", " NODE("l", "leaky_relu", "'q'", "",
                                                                                                  "{'name': 'w', 'dtype': "
                                                                                                  "'float32', 'shape': ['s', "
                                                                                                  "1]}") ", " NODE("o", "opaque",
                                                                                                                   "'v', 'w'",
                                                                                                                   "'effects': "
                                                                                                                   "true",
                                                                                                                   "{'name': "
                                                                                                                   "'k', "
                                                                                                                   "'dtype': "
                                                                                                                   "'bool', "
                                                                                                                   "'shape': "
                                                                                                                   "[2]}") ","
                                                                                                                           " " NODE(
                                                                                                                                   "u",
                                                                                                                                   "gelu",
                                                                                                                                   "'v'",
                                                                                                                                   "",
                                                                                                                                   "{'name'"
                                                                                                                                   ": 'y', "
                                                                                                                                   "'dtype'"
                                                                                                                                   ": "
                                                                                                                                   "'float3"
                                                                                                                                   "2', "
                                                                                                                                   "'shape'"
                                                                                                                                   ": "
                                                                                                                                   "['s', "
                                                                                                                                   "'max(t,"
                                                                                                                                   " 3)']"
                                                                                                                                   "}"),
                        "{'value': 'y', 'alias_of': 'v'}, 'w', 'k'");
        struct af_buf canon = canon_of(rich);

        for (size_t n = 0; n < canon.size; n++) {
                uint8_t *cut = malloc(n + 1); /* exact size for the sanitizer */
                memcpy(cut, canon.data, n);
                read_bytes(cut, n);
                free(cut);
        }
        for (uint64_t seed = 0; seed < 20000; seed++)
                mutate(&canon, seed);
        af_buf_deinit(&canon);
}

/* Bytes that read well but are not what the writer writes are not canonical: operands of an add, the other way round. */
Test(canon, other_bytes_of_one_graph_are_refused) {
        struct af_buf canon =
                canon_of(FRAGMENT(BASE_IN, NODE("a", "exp", "'y'", "", T46("e")) ", " NODE("b", "add", "'x', 'e'", "", T46("t")), "'t'"));
        const uint8_t head[] = {AF_OP_ADD, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0};
        uint8_t *at = memmem(canon.data, canon.size, head, sizeof(head)), operand[4];
        struct af_diags diags = {0};

        cr_assert_not_null(at);
        at += sizeof(head);
        memcpy(operand, at, 4);
        memcpy(at, at + 4, 4);
        memcpy(at + 4, operand, 4);
        cr_expect_eq(af_canon_verify(canon.data, canon.size, &diags), AF_CANON_E_NOT_CANONICAL);
        cr_expect(af_test_diag_has(&diags, "canonical form", "not the canonical form"));
        canon.data[4]++;
        cr_expect_eq(af_canon_verify(canon.data, canon.size, NULL), AF_CANON_E_VERSION);
        canon.data[0]++;
        cr_expect_eq(af_canon_verify(canon.data, canon.size, NULL), AF_CANON_E_DAMAGED);
        af_diags_deinit(&diags);
        af_buf_deinit(&canon);
}
