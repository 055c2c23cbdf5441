/* SPDX-License-Identifier: Apache-2.0 */
/* The ops that move elements and the composites: their mistakes, what their attributes do to the key, several outputs, sizes over symbols.
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "compiler/graph/canon.h"
#include "compiler/graph/key.h"
#include "tests/lib/fragment_text.h"

#define INPUTS                                                                                                                             \
        "'symbols': [{'name': 's', 'max': 64}, {'name': 't', 'max': 64}], 'inputs': ["                                                     \
        "{'name': 'a', 'dtype': 'float32', 'shape': [4, 5]}, {'name': 'b', 'dtype': 'float32', 'shape': [5]}, "                            \
        "{'name': 'f', 'dtype': 'float32', 'shape': [4]}, {'name': 'h', 'dtype': 'float16', 'shape': [4, 5]}, "                            \
        "{'name': 'i', 'dtype': 'int32', 'shape': [4, 5]}, {'name': 'l', 'dtype': 'int64', 'shape': [3]}, "                                \
        "{'name': 'p', 'dtype': 'bool', 'shape': [4, 5]}, {'name': 'z', 'dtype': 'float32', 'shape': [0, 3]}, "                            \
        "{'name': 'd', 'dtype': 'float32', 'shape': ['s', 5]}, {'name': 'u', 'dtype': 'float32', 'shape': [2, 6, 5]}, "                    \
        "{'name': 'k', 'dtype': 'float32', 'shape': []}, {'name': 'e', 'dtype': 'float32', 'shape': [2, 's', 5]}], "                       \
        "'constants': [{'name': 'c', 'dtype': 'float64', 'shape': [], 'value': 0.1}], "

struct row {
        const char *op, *in, *attrs, *dtype, *shape;
};

static void make_node(struct af_test_graph *t, const struct row *r) {
        char text[4096];

        snprintf(text, sizeof(text),
                 INPUTS "'nodes': [{'name': 'n7', 'op': '%s', 'inputs': [%s], 'attrs': {%s}, "
                        "'outputs': [{'name': 'o', 'dtype': '%s', 'shape': %s}]}], 'outputs': ['o']",
                 r->op, r->in, r->attrs, r->dtype, r->shape);
        af_test_graph_make(t, text);
}

struct bad {
        struct row node;
        const char *where, *what;
};
static const struct bad bad[] = {
        {{"transpose", "'a'", "'perm': [0]", "float32", "[4, 5]"}, ".attrs.perm", "1 items, but the operand has 2 axes"},
        {{"transpose", "'a'", "'perm': [0, 2]", "float32", "[4, 5]"}, ".attrs.perm", "axis 2 is outside of rank 2"},
        {{"transpose", "'a'", "'perm': [0, -3]", "float32", "[4, 5]"}, ".attrs.perm", "axis -3 is outside of rank 2"},
        {{"transpose", "'a'", "'perm': [1, -1]", "float32", "[4, 5]"}, ".attrs.perm", "axis -1 is given twice"},
        {{"transpose", "'a'", "", "float32", "[4, 5]"}, ".outputs[0].shape", "[4, 5] is stated, but transpose gives [5, 4]"},
        {{"slice", "'a'", "'starts': [0]", "float32", "[4, 5]"}, ".attrs.starts", "1 items, but the operand has 2 axes"},
        {{"slice", "'a'", "'stops': [1, 2, 3]", "float32", "[4, 5]"}, ".attrs.stops", "3 items"},
        {{"slice", "'a'", "'steps': [1]", "float32", "[4, 5]"}, ".attrs.steps", "1 items"},
        {{"slice", "'a'", "'steps': [1, 0]", "float32", "[4, 5]"}, ".attrs.steps[1]", "a step of 0"},
        {{"slice", "'a'", "'starts': [0, -2]", "float32", "[4, 5]"}, ".attrs.starts[1]", "-2 is negative"},
        {{"slice", "'a'", "'stops': [-1, 5]", "float32", "[4, 5]"}, ".attrs.stops[0]", "-1 is negative"},
        {{"slice", "'a'", "'stops': [-2, 5], 'steps': [-1, 1]", "float32", "[4, 5]"}, ".attrs.stops[0]", "-2 is below -1"},
        {{"slice", "'d'", "'starts': [1, 0]", "float32", "['s-1', 5]"}, ".outputs[0].shape", "[s-1, 5] is stated"},
        {{"slice", "'a'", "'axis': 0", "float32", "[4, 5]"}, ".attrs.axis", "slice takes no such attribute"},
        {{"pad", "'a'", "'low': [0, 0]", "float32", "[4, 5]"}, ".attrs.high", "missing: pad needs it"},
        {{"pad", "'a'", "'low': [0, 0], 'high': [0]", "float32", "[4, 5]"}, ".attrs.high", "1 items"},
        {{"pad", "'a'", "'low': [0, -1], 'high': [0, 0]", "float32", "[4, 4]"}, ".attrs.low[1]", "-1 is negative"},
        {{"pad", "'d'", "'low': ['s-t', 0], 'high': [0, 0]", "float32", "['2*s-t', 5]"}, ".attrs.low[0]", "[s-t] may be negative"},
        {{"pad", "'a', 'b'", "'low': [0, 0], 'high': [0, 0]", "float32", "[4, 5]"}, ".inputs[1]", "the fill has shape [5], not []"},
        {{"pad", "'h', 'k'", "'low': [0, 0], 'high': [0, 0]", "float16", "[4, 5]"}, ".inputs[1]", "float32 meets float16"},
        {{"concat", "", "'axis': 0", "float32", "[4, 5]"}, ".inputs", "0 operands, but concat takes 1 to 64"},
        {{"concat", "'a'", "", "float32", "[4, 5]"}, ".attrs.axis", "missing"},
        {{"concat", "'a', 'a'", "'axis': 2", "float32", "[8, 5]"}, ".attrs.axis", "axis 2 is outside of rank 2"},
        {{"concat", "'k', 'k'", "'axis': 0", "float32", "[2]"}, ".attrs.axis", "axis 0 is outside of rank 0"},
        {{"concat", "'a', 'b'", "'axis': 0", "float32", "[8, 5]"}, ".inputs[1]", "shape [5] does not go with [4, 5] along axis 0"},
        {{"concat", "'a', 'z'", "'axis': 0", "float32", "[4, 5]"}, ".inputs[1]", "shape [0, 3] does not go with [4, 5]"},
        {{"concat", "'a', 'd'", "'axis': 1", "float32", "[4, 10]"}, ".inputs[1]", "shape [s, 5] does not go with [4, 5] along axis 1"},
        {{"concat", "'a', 'h'", "'axis': 0", "float32", "[8, 5]"}, ".inputs[1]", "float16 meets float32"},
        {{"split", "'a'", "'axis': 1", "float32", "[4, 5]"}, ".attrs.sizes", "missing"},
        {{"split", "'a'", "'axis': 1, 'sizes': []", "float32", "[4, 5]"}, ".attrs.sizes", "no size is given"},
        {{"split", "'a'", "'axis': 1, 'sizes': [4]", "float32", "[4, 4]"}, ".attrs.sizes", "they add up to [4], but axis 1 has size [5]"},
        {{"split", "'a'", "'sizes': [5, -1]", "float32", "[4, 5]"}, ".attrs.sizes[1]", "-1 is negative"},
        {{"split", "'a'", "'sizes': [1, 3]", "float32", "[1, 5]"}, ".outputs", "1 outputs are stated, but split gives 2"},
        {{"split", "'d'", "'sizes': ['t']", "float32", "['t', 5]"}, ".attrs.sizes", "they add up to [t], but axis 0 has size [s]"},
        {{"gather_elements", "'a', 'l'", "", "float32", "[3]"}, ".inputs[1]", "the index has rank 1, the data 2"},
        {{"gather_elements", "'a', 'a'", "", "float32", "[4, 5]"}, ".inputs[1]", "neither int32 nor int64"},
        {{"gather_elements", "'z', 'i'", "", "float32", "[4, 5]"}, ".inputs[1]", "size [5] on axis 1, beyond the data's [3]"},
        {{"gather_elements", "'k', 'l'", "", "float32", "[3]"}, ".attrs.axis", "outside of rank 0"},
        {{"iota", "", "", "int32", "[3]"}, ".attrs.shape", "missing"},
        {{"iota", "", "'shape': [-1]", "int32", "[3]"}, ".attrs.shape[0]", "-1 is negative"},
        {{"iota", "", "'shape': []", "int32", "[]"}, ".attrs.axis", "axis 0 is outside of rank 0"},
        {{"iota", "", "'shape': [3], 'axis': 1", "int32", "[3]"}, ".attrs.axis", "axis 1 is outside of rank 1"},
        {{"iota", "", "'shape': [3]", "bool", "[3]"}, ".outputs[0].dtype", "iota cannot give bool"},
        {{"iota", "", "'shape': [3], 'step': 0.5", "int32", "[3]"}, ".attrs.step", "0.5 is no integer, but the op computes in int32"},
        {{"iota", "", "'shape': [3], 'start': 'nan'", "int64", "[3]"}, ".attrs.start", "no integer"},
        {{"iota", "'a'", "'shape': [3]", "int64", "[3]"}, ".inputs", "1 operands, but iota takes 0"},
        {{"cumsum", "'a'", "", "float32", "[4, 5]"}, ".attrs.axis", "missing"},
        {{"cumsum", "'a'", "'axis': -3", "float32", "[4, 5]"}, ".attrs.axis", "axis -3 is outside of rank 2"},
        {{"cumsum", "'k'", "'axis': 0", "float32", "[]"}, ".attrs.axis", "outside of rank 0"},
        {{"cumsum", "'p'", "'axis': 0", "bool", "[4, 5]"}, ".outputs[0].dtype", "cumsum of bool cannot give bool"},
        {{"softmax", "'i'", "", "int32", "[4, 5]"}, ".inputs[0]", "softmax is not defined on int32"},
        {{"softmax", "'k'", "", "float32", "[]"}, ".attrs.axis", "axis -1 is outside of rank 0"},
        {{"softmax", "'a'", "'axis': 2", "float32", "[4, 5]"}, ".attrs.axis", "axis 2 is outside of rank 2"},
        {{"logsumexp", "'z'", "'axes': [0]", "float32", "[3]"}, ".attrs.axes", "logsumexp of nothing: axis 0 has size 0"},
        {{"layer_norm", "'a', 'f'", "", "float32", "[4, 5]"}, ".inputs[1]", "shape [4] does not broadcast to the normalised axes [5]"},
        {{"layer_norm", "'a', 'b', 'a'", "", "float32", "[4, 5]"},
         ".inputs[2]",
         "shape [4, 5] does not broadcast to the normalised axes [5]"},
        {{"rms_norm", "'a', 'b', 'b'", "", "float32", "[4, 5]"}, ".inputs", "3 operands, but rms_norm takes 1 to 2"},
        {{"layer_norm", "'a', 'b'", "'epsilon': 0.1, 'alpha': 1", "float32", "[4, 5]"}, ".attrs.alpha", "no such attribute"},
        {{"layer_norm", "'a', 'p'", "", "float32", "[4, 5]"}, ".inputs[1]", "layer_norm is not defined on bool"},
        {{"layer_norm", "'h', 'b'", "", "float32", "[4, 5]"}, ".outputs[0].dtype", "float32 is stated, but layer_norm gives float16"},
        {{"group_norm", "'a'", "", "float32", "[4, 5]"}, ".attrs.groups", "missing"},
        {{"group_norm", "'a'", "'groups': 2", "float32", "[4, 5]"}, ".attrs.groups", "2 groups do not divide the [5] channels"},
        {{"group_norm", "'a'", "'groups': 0", "float32", "[4, 5]"}, ".attrs.groups", "0 groups"},
        {{"group_norm", "'e'", "'groups': 2", "float32", "[2, 's', 5]"}, ".attrs.groups", "2 groups do not divide the [s] channels"},
        {{"group_norm", "'b'", "'groups': 1", "float32", "[5]"}, ".inputs[0]", "rank 1, but group_norm needs at least 2"},
        {{"instance_norm", "'a'", "", "float32", "[4, 5]"}, ".inputs[0]", "rank 2, but instance_norm needs at least 3"},
        {{"batch_norm", "'a', 'b'", "", "float32", "[4, 5]"}, ".inputs", "2 operands, but batch_norm takes 3 to 5"},
        {{"batch_norm", "'a', 'b', 'f'", "", "float32", "[4, 5]"}, ".inputs[2]", "shape [4], not one per channel [5]"},
        {{"batch_norm", "'a', 'b', 'k'", "", "float32", "[4, 5]"}, ".inputs[2]", "shape [], not one per channel [5]"},
        {{"var", "'i'", "", "int32", "[]"}, ".inputs[0]", "var is not defined on int32"},
        {{"reduce_l1", "'p'", "", "int64", "[]"}, ".inputs[0]", "reduce_l1 is not defined on bool"},
        {{"arg_max", "'a'", "'axes': [0]", "int64", "[5]"}, ".attrs.axes", "arg_max takes no such attribute"},
        {{"arg_max", "'a'", "'axis': 2", "int64", "[5]"}, ".attrs.axis", "outside of rank 2"},
        {{"arg_max", "'a'", "'axis': 0", "int32", "[5]"}, ".outputs[0].dtype", "int32 is stated, but arg_max gives int64"},
        {{"arg_min", "'z'", "'axis': 0", "int64", "[3]"}, ".inputs[0]", "arg_min of nothing: axis 0 has size 0"},
        {{"arg_max", "'z'", "", "int64", "[]"}, ".inputs[0]", "arg_max of nothing"},
        {{"arg_max", "'p'", "", "int64", "[]"}, ".inputs[0]", "arg_max is not defined on bool"},
        {{"one_hot", "'l'", "", "int64", "[3, 4]"}, ".attrs.depth", "missing"},
        {{"one_hot", "'l'", "'depth': -1", "int64", "[3, 4]"}, ".attrs.depth", "-1 is negative"},
        {{"one_hot", "'a'", "'depth': 2", "int64", "[4, 5, 2]"}, ".inputs[0]", "the index is float32, not an integer"},
        {{"one_hot", "'l', 'b', 'k'", "'depth': 2", "float32", "[3, 2]"}, ".inputs[1]", "the value has shape [5], not []"},
        {{"one_hot", "'l'", "'depth': 2, 'axis': 2", "int64", "[3, 2]"}, ".attrs.axis", "outside of rank 2"},
        {{"triu", "'b'", "", "float32", "[5]"}, ".inputs[0]", "rank 1, but triu needs rows and columns"},
        {{"tile", "'a'", "'repeats': [2]", "float32", "[8, 5]"}, ".attrs.repeats", "1 items"},
        {{"tile", "'a'", "'repeats': [2, -1]", "float32", "[8, 5]"}, ".attrs.repeats[1]", "-1 is negative"},
        {{"fma", "'a', 'a'", "", "float32", "[4, 5]"}, ".inputs", "2 operands, but fma takes 3"},
        {{"fma", "'a', 'a', 'z'", "", "float32", "[4, 5]"}, ".inputs[2]", "does not broadcast"},
        {{"axpy", "'i', 'i'", "'alpha': 0.5", "int32", "[4, 5]"}, ".attrs.alpha", "0.5 is no integer"},
        {{"masked_fill", "'a', 'a', 'k'", "", "float32", "[4, 5]"}, ".inputs[1]", "the mask is float32, not bool"},
        {{"masked_fill", "'a', 'p', 'b'", "", "float32", "[4, 5]"}, ".inputs[2]", "the value has shape [5], not []"},
        {{"masked_fill", "'i', 'p', 'c'", "", "int32", "[4, 5]"}, ".inputs[2]", "float64 meets int32"},
        {{"elu", "'a'", "'beta': 1", "float32", "[4, 5]"}, ".attrs.beta", "elu takes no such attribute"},
};

Test(shape, every_mistake_names_node_and_field) {
        for (size_t i = 0; i < AF_ARRAY_SIZE(bad); i++) {
                char where[64];
                struct af_test_graph t;
                make_node(&t, &bad[i].node);
                snprintf(where, sizeof(where), "\"n7\"%s", bad[i].where);
                cr_expect_eq(t.r, AF_GRAPH_E_INVALID, "%s(%s) {%s}: %d", bad[i].node.op, bad[i].node.in, bad[i].node.attrs, t.r);
                cr_expect(af_test_diag_has(&t.diags, where, bad[i].what), "%s(%s) {%s}", bad[i].node.op, bad[i].node.in, bad[i].node.attrs);
                if (!af_test_diag_has(&t.diags, where, bad[i].what))
                        af_test_diags_print(&t.diags);
                af_test_graph_deinit(&t);
        }
}

/* Of neighbours with one op: one attribute changed in each. All keys must differ. */
static const struct row sweep[] = {
        {"transpose", "'u'", "'perm': [0, 1, 2]", "float32", "[2, 6, 5]"},
        {"transpose", "'u'", "'perm': [0, 2, 1]", "float32", "[2, 5, 6]"},
        {"transpose", "'u'", "'perm': [2, 0, 1]", "float32", "[5, 2, 6]"},
        {"transpose", "'u'", "", "float32", "[5, 6, 2]"},
        {"slice", "'a'", "", "float32", "[4, 5]"},
        {"slice", "'a'", "'starts': [1, 0]", "float32", "[3, 5]"},
        {"slice", "'a'", "'stops': [3, 5]", "float32", "[3, 5]"},
        {"slice", "'a'", "'steps': [-1, 1]", "float32", "[4, 5]"},
        {"slice", "'a'", "'steps': [1, -1]", "float32", "[4, 5]"},
        {"slice", "'a'", "'steps': [2, 1]", "float32", "[2, 5]"},
        {"slice", "'a'", "'starts': [1, 0], 'steps': [2, 1]", "float32", "[2, 5]"},
        {"slice", "'d'", "'stops': ['s//2', 5]", "float32", "['s//2', 5]"},
        {"slice", "'d'", "'starts': ['s-s//2', 0]", "float32", "['s//2', 5]"},
        {"pad", "'a'", "'low': [0, 1], 'high': [0, 0]", "float32", "[4, 6]"},
        {"pad", "'a'", "'low': [0, 0], 'high': [0, 1]", "float32", "[4, 6]"},
        {"pad", "'a', 'k'", "'low': [0, 0], 'high': [0, 1]", "float32", "[4, 6]"},
        {"pad", "'a', 'c'", "'low': [0, 0], 'high': [0, 1]", "float32", "[4, 6]"},
        {"concat", "'a', 'a'", "'axis': 0", "float32", "[8, 5]"},
        {"concat", "'a', 'a'", "'axis': 1", "float32", "[4, 10]"},
        {"concat", "'a', 'd'", "'axis': 0", "float32", "['4+s', 5]"},
        {"concat", "'d', 'a'", "'axis': 0", "float32", "['4+s', 5]"},
        {"gather", "'u', 'l'", "'axis': 1", "float32", "[2, 3, 5]"},
        {"gather_elements", "'a', 'i'", "'axis': 0", "float32", "[4, 5]"},
        {"gather_elements", "'a', 'i'", "'axis': 1", "float32", "[4, 5]"},
        {"iota", "", "'shape': [4, 4]", "int32", "[4, 4]"},
        {"iota", "", "'shape': [4, 4], 'axis': 1", "int32", "[4, 4]"},
        {"iota", "", "'shape': [4, 4], 'start': 1", "int32", "[4, 4]"},
        {"iota", "", "'shape': [4, 4], 'step': 2", "int32", "[4, 4]"},
        {"iota", "", "'shape': [4, 5]", "int32", "[4, 5]"},
        {"iota", "", "'shape': [4, 4]", "int64", "[4, 4]"},
        {"iota", "", "'shape': [4, 4], 'start': 0", "float32", "[4, 4]"},
        {"iota", "", "'shape': [4, 4], 'start': -0.0", "float32", "[4, 4]"},
        {"cumsum", "'a'", "'axis': 0", "float32", "[4, 5]"},
        {"cumsum", "'a'", "'axis': 1", "float32", "[4, 5]"},
        {"cumsum", "'a'", "'axis': 1, 'exclusive': true", "float32", "[4, 5]"},
        {"cumsum", "'a'", "'axis': 1, 'reverse': true", "float32", "[4, 5]"},
        {"softmax", "'a'", "'axis': 0", "float32", "[4, 5]"},
        {"softmax", "'a'", "'axis': 1", "float32", "[4, 5]"},
        {"log_softmax", "'a'", "'axis': 1", "float32", "[4, 5]"},
        {"layer_norm", "'a'", "", "float32", "[4, 5]"},
        {"layer_norm", "'a'", "'axis': 0", "float32", "[4, 5]"},
        {"layer_norm", "'a'", "'epsilon': 0.000010000000000000002", "float32", "[4, 5]"},
        {"layer_norm", "'a', 'b'", "", "float32", "[4, 5]"},
        {"layer_norm", "'a', 'b', 'b'", "", "float32", "[4, 5]"},
        {"rms_norm", "'a', 'b'", "", "float32", "[4, 5]"},
        {"group_norm", "'u'", "'groups': 2", "float32", "[2, 6, 5]"},
        {"group_norm", "'u'", "'groups': 3", "float32", "[2, 6, 5]"},
        {"group_norm", "'u'", "'groups': 3, 'epsilon': 0", "float32", "[2, 6, 5]"},
        {"instance_norm", "'u'", "", "float32", "[2, 6, 5]"},
        {"var", "'a'", "", "float32", "[]"},
        {"var", "'a'", "'correction': 0", "float32", "[]"},
        {"std", "'a'", "", "float32", "[]"},
        {"arg_max", "'a'", "", "int64", "[]"},
        {"arg_max", "'a'", "'select_last': true", "int64", "[]"},
        {"arg_max", "'a'", "'keepdims': true", "int64", "[1, 1]"},
        {"arg_max", "'b'", "'axis': 0", "int64", "[]"},
        {"arg_max", "'b'", "", "int64", "[]"},
        {"arg_min", "'a'", "", "int64", "[]"},
        {"one_hot", "'l'", "'depth': 3", "int64", "[3, 3]"},
        {"one_hot", "'l'", "'depth': 3, 'axis': 0", "int64", "[3, 3]"},
        {"one_hot", "'l'", "'depth': 4", "int64", "[3, 4]"},
        {"one_hot", "'l', 'c'", "'depth': 3", "float64", "[3, 3]"},
        {"one_hot", "'l', 'c', 'c'", "'depth': 3", "float64", "[3, 3]"},
        {"triu", "'a'", "", "float32", "[4, 5]"},
        {"triu", "'a'", "'diagonal': 1", "float32", "[4, 5]"},
        {"tril", "'a'", "'diagonal': 1", "float32", "[4, 5]"},
        {"tile", "'a'", "'repeats': [2, 1]", "float32", "[8, 5]"},
        {"tile", "'a'", "'repeats': [1, 2]", "float32", "[4, 10]"},
        {"axpy", "'a', 'b'", "", "float32", "[4, 5]"},
        {"axpy", "'a', 'b'", "'alpha': 2", "float32", "[4, 5]"},
        {"softplus", "'a'", "", "float32", "[4, 5]"},
        {"softplus", "'a'", "'beta': 2", "float32", "[4, 5]"},
        {"selu", "'a'", "", "float32", "[4, 5]"},
        {"selu", "'a'", "'alpha': 1", "float32", "[4, 5]"},
        {"selu", "'a'", "'gamma': 1", "float32", "[4, 5]"},
        {"hardsigmoid", "'a'", "", "float32", "[4, 5]"},
        {"hardsigmoid", "'a'", "'alpha': 0.5", "float32", "[4, 5]"},
        {"hardsigmoid", "'a'", "'beta': 0.2", "float32", "[4, 5]"},
};

static void digest_of(const struct row *r, struct af_digest *ret) {
        struct af_buf canon = AF_BUF_INIT;
        struct af_test_graph t;

        make_node(&t, r);
        af_test_diags_print(&t.diags);
        cr_assert_eq(t.r, 0, "%s(%s) {%s}", r->op, r->in, r->attrs);
        cr_assert_eq(af_graph_check(&t.graph, NULL), 0, "%s(%s) {%s}", r->op, r->in, r->attrs);
        cr_assert_eq(af_canon_write(&t.graph, &canon, NULL), 0);
        cr_assert_eq(af_canon_verify(canon.data, canon.size, NULL), 0, "%s(%s) {%s}", r->op, r->in, r->attrs);
        af_key_fragment(canon.data, canon.size, ret);
        af_buf_deinit(&canon);
        af_test_graph_deinit(&t);
}

/* Over the attributes of these ops. */
Test(shape, C22_one_bit_sweep) {
        struct af_digest digests[AF_ARRAY_SIZE(sweep)];

        for (size_t i = 0; i < AF_ARRAY_SIZE(sweep); i++) {
                digest_of(&sweep[i], &digests[i]);
                for (size_t k = 0; k < i; k++)
                        cr_expect(!af_digest_equal(&digests[i], &digests[k]), "one key: %s(%s) {%s} and %s(%s) {%s}", sweep[i].op,
                                  sweep[i].in, sweep[i].attrs, sweep[k].op, sweep[k].in, sweep[k].attrs);
        }
}

/* Pairs that mean one thing. */
static const struct row alike[][2] = {
        {{"transpose", "'u'", "", "float32", "[5, 6, 2]"}, {"transpose", "'u'", "'perm': [-1, 1, -3]", "float32", "[5, 6, 2]"}},
        {{"slice", "'a'", "", "float32", "[4, 5]"},
         {"slice", "'a'", "'starts': [0, 0], 'stops': [4, 5], 'steps': [1, 1]", "float32", "[4, 5]"}},
        {{"slice", "'a'", "", "float32", "[4, 5]"}, {"slice", "'a'", "'stops': [99, '9223372036854775807']", "float32", "[4, 5]"}},
        {{"slice", "'a'", "'steps': [3, 1]", "float32", "[2, 5]"},
         {"slice", "'a'", "'stops': [4, 5], 'steps': [3, 1]", "float32", "[2, 5]"}},
        {{"slice", "'a'", "'steps': [1, 2]", "float32", "[4, 3]"},
         {"slice", "'a'", "'stops': [4, 9], 'steps': [1, 2]", "float32", "[4, 3]"}},
        {{"slice", "'a'", "'stops': [4, 1]", "float32", "[4, 1]"}, {"slice", "'a'", "'steps': [1, 7]", "float32", "[4, 1]"}},
        {{"slice", "'a'", "'starts': [3, 0], 'stops': [2, 5]", "float32", "[0, 5]"},
         {"slice", "'a'", "'stops': [0, 5]", "float32", "[0, 5]"}},
        {{"slice", "'a'", "'steps': [-3, 1]", "float32", "[2, 5]"},
         {"slice", "'a'", "'starts': [3, 0], 'stops': [-1, 5], 'steps': [-3, 1]", "float32", "[2, 5]"}},
        {{"slice", "'d'", "'stops': ['s', 5]", "float32", "['s', 5]"}, {"slice", "'d'", "'stops': ['s+t', 9]", "float32", "['s', 5]"}},
        {{"pad", "'d'", "'low': ['t+1', 0], 'high': [0, 0]", "float32", "['s+t+1', 5]"},
         {"pad", "'d'", "'low': ['1+t', 0], 'high': [0, 0]", "float32", "['1+t+s', 5]"}},
        {{"concat", "'a', 'a'", "'axis': 1", "float32", "[4, 10]"}, {"concat", "'a', 'a'", "'axis': -1", "float32", "[4, 10]"}},
        {{"iota", "", "'shape': [4]", "int32", "[4]"}, {"iota", "", "'shape': [4], 'axis': -1, 'start': 0.0, 'step': 1", "int32", "[4]"}},
        {{"softmax", "'a'", "", "float32", "[4, 5]"}, {"softmax", "'a'", "'axis': 1", "float32", "[4, 5]"}},
        {{"layer_norm", "'a'", "", "float32", "[4, 5]"}, {"layer_norm", "'a'", "'epsilon': 1e-5, 'axis': 1", "float32", "[4, 5]"}},
        {{"var", "'a'", "", "float32", "[]"}, {"var", "'a'", "'axes': [1, 0], 'correction': 1.0, 'keepdims': false", "float32", "[]"}},
        {{"one_hot", "'l'", "'depth': 3", "int64", "[3, 3]"}, {"one_hot", "'l'", "'depth': 3, 'axis': 1", "int64", "[3, 3]"}},
        {{"axpy", "'i', 'i'", "'alpha': 2", "int32", "[4, 5]"}, {"axpy", "'i', 'i'", "'alpha': 2.0", "int32", "[4, 5]"}},
        {{"selu", "'a'", "", "float32", "[4, 5]"}, {"selu", "'a'", "'gamma': 1.05070102214813232421875", "float32", "[4, 5]"}},
};

Test(shape, one_key_for_one_meaning) {
        for (size_t i = 0; i < AF_ARRAY_SIZE(alike); i++) {
                struct af_digest a, b;
                digest_of(&alike[i][0], &a);
                digest_of(&alike[i][1], &b);
                cr_expect(af_digest_equal(&a, &b), "two keys: %s {%s} and {%s}", alike[i][0].op, alike[i][0].attrs, alike[i][1].attrs);
        }
}

#define PART(n, shape) "{'name': '" n "', 'dtype': 'float32', 'shape': " shape "}"
#define SPLIT(sizes, parts, outputs)                                                                                                       \
        INPUTS "'nodes': [{'name': 'n7', 'op': 'split', 'inputs': ['d'], 'attrs': {'axis': 0, 'sizes': " sizes "}, 'outputs': [" parts     \
               "]}], 'outputs': [" outputs "]"

static struct af_digest digest_of_text(const char *text) {
        struct af_buf canon = AF_BUF_INIT;
        struct af_test_graph t;
        struct af_digest digest;

        af_test_graph_make(&t, text);
        af_test_diags_print(&t.diags);
        cr_assert_eq(t.r, 0, "%s", text);
        cr_assert_eq(af_canon_write(&t.graph, &canon, NULL), 0);
        cr_assert_eq(af_canon_verify(canon.data, canon.size, NULL), 0);
        af_key_fragment(canon.data, canon.size, &digest);
        af_buf_deinit(&canon);
        af_test_graph_deinit(&t);
        return digest;
}

Test(shape, split_has_several_outputs) {
        const char *const texts[] = {
                SPLIT("['s//2', 's-s//2']", PART("x", "['s//2', 5]") ", " PART("y", "['s-s//2', 5]"), "'x', 'y'"),
                SPLIT("['s//2', 's-s//2']", PART("x", "['s//2', 5]") ", " PART("y", "['s-s//2', 5]"), "'y', 'x'"),
                SPLIT("['s//2', 's-s//2']", PART("x", "['s//2', 5]") ", " PART("y", "['s-s//2', 5]"), "'y'"),
                SPLIT("['s-s//2', 's//2']", PART("x", "['s-s//2', 5]") ", " PART("y", "['s//2', 5]"), "'x', 'y'"),
                SPLIT("['s', 0, 0]", PART("x", "['s', 5]") ", " PART("y", "[0, 5]") ", " PART("v", "[0, 5]"), "'x', 'v'"),
                SPLIT("['s']", PART("x", "['s', 5]"), "'x'"),
        };
        struct af_digest digests[AF_ARRAY_SIZE(texts)];

        for (size_t i = 0; i < AF_ARRAY_SIZE(texts); i++) {
                digests[i] = digest_of_text(texts[i]);
                for (size_t k = 0; k < i; k++)
                        cr_expect(!af_digest_equal(&digests[i], &digests[k]), "%zu and %zu", i, k);
        }
}

Test(shape, mistakes_of_several_outputs) {
        struct af_test_graph t;

        af_test_graph_make(&t, SPLIT("['s', 0]", PART("x", "['s', 5]") ", {'name': 'y', 'dtype': 'float16', 'shape': [1, 5]}", "'x', 'y'"));
        cr_expect_eq(t.r, AF_GRAPH_E_INVALID);
        cr_expect(af_test_diag_has(&t.diags, "\"n7\".outputs[1].dtype", "float16 is stated, but split gives float32"));
        cr_expect(af_test_diag_has(&t.diags, "\"n7\".outputs[1].shape", "[1, 5] is stated, but split gives [0, 5]"));
        af_test_graph_deinit(&t);
        af_test_graph_make(&t, SPLIT("['s', 0]", "", "'d'"));
        cr_expect(af_test_diag_has(&t.diags, "\"n7\".outputs", "0 outputs are stated, but split gives 2"));
        af_test_graph_deinit(&t);
}

/* 65 operands, 65 pieces, an index list beyond the limit. */
Test(shape, limits) {
        struct af_test_graph t;
        char text[8192] = INPUTS "'nodes': [{'name': 'n7', 'op': 'concat', 'inputs': ['a'";
        for (unsigned i = 0; i < 64; i++)
                strcat(text, ", 'a'");
        strcat(text, "], 'attrs': {'axis': 0}, 'outputs': [{'name': 'o', 'dtype': 'float32', 'shape': [260, 5]}]}], 'outputs': ['o']");
        af_test_graph_make(&t, text);
        cr_expect(af_test_diag_has(&t.diags, "\"n7\".inputs", "65 operands, but concat takes 1 to 64"));
        af_test_graph_deinit(&t);
        strcpy(text, INPUTS "'nodes': [{'name': 'n7', 'op': 'split', 'inputs': ['a'], 'attrs': {'sizes': [4");
        for (unsigned i = 0; i < 64; i++)
                strcat(text, ", 0");
        strcat(text, "]}, 'outputs': [{'name': 'o', 'dtype': 'float32', 'shape': [4, 5]}]}], 'outputs': ['o']");
        af_test_graph_make(&t, text);
        cr_expect_eq(t.r, -1000);
        cr_expect(af_test_diag_has(&t.diags, "\"n7\".attrs.sizes", "more than 64 items"));
        af_test_graph_deinit(&t);
}
