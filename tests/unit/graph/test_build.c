/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs from fragments: every op's inference, every mistake's diagnostic. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/lib/fragment_text.h"

/* Inputs that most cases use. */
#define INPUTS                                                                                                                             \
        "'symbols': [{'name': 's', 'max': 64}, {'name': 't', 'max': 64}, {'name': 'five', 'min': 5, 'max': 5}], 'inputs': ["               \
        "{'name': 'a', 'dtype': 'float32', 'shape': [4, 5]}, {'name': 'b', 'dtype': 'float32', 'shape': [5]}, "                            \
        "{'name': 'h', 'dtype': 'float16', 'shape': [4, 5]}, {'name': 'i', 'dtype': 'int32', 'shape': [4, 5]}, "                           \
        "{'name': 'l', 'dtype': 'int64', 'shape': [3]}, {'name': 'q', 'dtype': 'int8', 'shape': [4, 5]}, "                                 \
        "{'name': 'p', 'dtype': 'bool', 'shape': [4, 5]}, {'name': 'z', 'dtype': 'float32', 'shape': [0, 3]}, "                            \
        "{'name': 'd', 'dtype': 'float32', 'shape': ['s', 5]}, {'name': 'e', 'dtype': 'float32', 'shape': ['t', 5]}, "                     \
        "{'name': 'u', 'dtype': 'float32', 'shape': [4, 1, 5, 1]}, {'name': 'f', 'dtype': 'float32', 'shape': ['five']}, "                 \
        "{'name': 'g', 'dtype': 'float64', 'shape': [4, 5]}, {'name': 'k', 'dtype': 'float32', 'shape': []}, "                             \
        "{'name': 'r', 'dtype': 'float64', 'shape': [], 'host': true}], "                                                                  \
        "'constants': [{'name': 'c', 'dtype': 'float64', 'shape': [], 'value': 0.1}, "                                                     \
        "{'name': 'j', 'dtype': 'int64', 'shape': [], 'value': 3}], "

/* One node over INPUTS with one output. */
static void make_node(struct af_test_graph *t, const char *op, const char *in, const char *attrs, const char *dtype, const char *shape) {
        char text[4096];

        snprintf(text, sizeof(text),
                 INPUTS "'nodes': [{'name': 'n7', 'op': '%s', 'inputs': [%s], 'attrs': {%s}, "
                        "'outputs': [{'name': 'o', 'dtype': '%s', 'shape': %s}]}], 'outputs': ['o']",
                 op, in, attrs, dtype, shape);
        af_test_graph_make(t, text);
}

struct good {
        const char *op, *in, *attrs, *dtype, *shape;
};

static const struct good good[] = {
        {"add", "'a', 'b'", "", "float32", "[4, 5]"},
        {"add", "'b', 'a'", "", "float32", "[4, 5]"},
        {"add", "'a', 'f'", "", "float32", "[4, 5]"}, /* a symbol of one value */
        {"add", "'d', 'b'", "", "float32", "['s', 5]"},
        {"add", "'d', 'd'", "", "float32", "['s', 5]"},
        {"add", "'a', 'k'", "", "float32", "[4, 5]"},
        {"add", "'k', 'k'", "", "float32", "[]"},
        {"mul", "'h', 'c'", "", "float16", "[4, 5]"}, /* wider scalars */
        {"mul", "'r', 'h'", "", "float16", "[4, 5]"},
        {"mul", "'c', 'c'", "", "float64", "[]"},
        {"mul", "'g', 'g'", "", "float64", "[4, 5]"},
        {"sub", "'z', 'z'", "", "float32", "[0, 3]"},
        {"maximum", "'q', 'q'", "", "int8", "[4, 5]"},
        {"lt", "'h', 'c'", "", "bool", "[4, 5]"},
        {"eq", "'p', 'p'", "", "bool", "[4, 5]"},
        {"logical_and", "'a', 'q'", "", "bool", "[4, 5]"},
        {"logical_not", "'p'", "", "bool", "[4, 5]"},
        {"where", "'p', 'h', 'c'", "", "float16", "[4, 5]"},
        {"where", "'p', 'b', 'a'", "", "float32", "[4, 5]"},
        {"cast", "'a'", "", "int8", "[4, 5]"},
        {"cast", "'p'", "", "bfloat16", "[4, 5]"},
        {"cast", "'g'", "", "float32", "[4, 5]"},
        {"clip", "'q'", "'min': -3, 'max': 100", "int8", "[4, 5]"},
        {"clip", "'a'", "", "float32", "[4, 5]"},
        {"leaky_relu", "'a'", "'alpha': 2", "float32", "[4, 5]"},
        {"gelu", "'a'", "'approximate': 'tanh'", "float32", "[4, 5]"},
        {"broadcast", "'b'", "'shape': [4, 5]", "float32", "[4, 5]"},
        {"expand", "'u'", "'shape': [2, -1, 3, -1, 7]", "float32", "[2, 4, 3, 5, 7]"},
        {"expand", "'b'", "'shape': ['s', 5]", "float32", "['s', 5]"},
        {"reduce_sum", "'a'", "", "float32", "[]"},
        {"reduce_sum", "'a'", "'axes': [-1]", "float32", "[4]"},
        {"reduce_sum", "'a'", "'axes': [0], 'keepdims': true", "float32", "[1, 5]"},
        {"reduce_sum", "'u'", "'axes': [0, 2]", "float32", "[1, 1]"},
        {"reduce_sum", "'k'", "", "float32", "[]"},
        {"reduce_sum", "'p'", "", "int64", "[]"},
        {"reduce_sum", "'p'", "", "int32", "[]"},
        {"reduce_sum", "'q'", "", "int8", "[]"},
        {"reduce_sum", "'q'", "", "int64", "[]"},
        {"reduce_sum", "'i'", "", "int64", "[]"},
        {"reduce_sum", "'z'", "'axes': [0]", "float32", "[3]"},
        {"reduce_max", "'z'", "'axes': [1]", "float32", "[0]"},
        {"reduce_mean", "'z'", "", "float32", "[]"},
        {"reduce_prod", "'z'", "", "float32", "[]"},
        {"reduce_any", "'a'", "'axes': [1]", "bool", "[4]"},
        {"reduce_all", "'z'", "", "bool", "[]"},
        {"reduce_max", "'p'", "", "bool", "[]"},
        {"reduce_min", "'d'", "'axes': [0]", "float32", "[5]"},
        {"reshape", "'a'", "'shape': [2, -1]", "float32", "[2, 10]"},
        {"reshape", "'a'", "'shape': [20]", "float32", "[20]"},
        {"reshape", "'k'", "'shape': [1, 1]", "float32", "[1, 1]"},
        {"reshape", "'d'", "'shape': [-1]", "float32", "['s*5']"},
        {"reshape", "'d'", "'shape': [5, -1]", "float32", "[5, 's']"},
        {"reshape", "'d'", "'shape': ['5*s', 1]", "float32", "['s*5', 1]"},
        {"reshape", "'z'", "'shape': [3, 0]", "float32", "[3, 0]"},
        {"reshape", "'z'", "'shape': [-1, 7]", "float32", "[0, 7]"},
        {"squeeze", "'u'", "", "float32", "[4, 5]"},
        {"squeeze", "'u'", "'axes': [-1]", "float32", "[4, 1, 5]"},
        {"squeeze", "'a'", "", "float32", "[4, 5]"},
        {"unsqueeze", "'a'", "'axes': [0, -1]", "float32", "[1, 4, 5, 1]"},
        {"unsqueeze", "'k'", "'axes': [0]", "float32", "[1]"},
        {"gather", "'a', 'l'", "'axis': 1", "float32", "[4, 3]"},
        {"gather", "'a', 'l'", "", "float32", "[3, 5]"},
        {"gather", "'a', 'j'", "'axis': -2", "float32", "[5]"},
        {"opaque", "'a', 'l'", "'effects': true", "int16", "[9, 's']"},
        {"transpose", "'u'", "", "float32", "[1, 5, 1, 4]"},
        {"transpose", "'d'", "'perm': [-1, 0]", "float32", "[5, 's']"},
        {"transpose", "'k'", "", "float32", "[]"},
        {"slice", "'a'", "'starts': [1, 0], 'stops': [3, 5]", "float32", "[2, 5]"},
        {"slice", "'a'", "'starts': [3, 4], 'stops': [-1, -1], 'steps': [-2, -3]", "float32", "[2, 2]"},
        {"slice", "'a'", "'steps': [-1, 7]", "float32", "[4, 1]"},
        {"slice", "'a'", "'starts': [9, 0], 'stops': [99, '9223372036854775807']", "float32", "[0, 5]"},
        {"slice", "'z'", "'steps': [-1, -1]", "float32", "[0, 3]"},
        {"slice", "'d'", "'starts': ['s//2', 0]", "float32", "['s-s//2', 5]"},
        {"slice", "'d'", "'stops': ['s//4*3', 5]", "float32", "['s//4*3', 5]"},
        {"slice", "'d'", "'starts': [1, 0]", "float32", "['s-min(s,1)', 5]"},
        {"slice", "'d'", "'steps': [2, -1]", "float32", "['(s+1)//2', 5]"},
        {"slice", "'d'", "'stops': [7, 5]", "float32", "['min(s,7)', 5]"},
        {"slice", "'d'", "'starts': ['t', 0], 'stops': ['t+2', 5]", "float32", "['min(t+2,s)-min(t,s)', 5]"},
        {"slice", "'k'", "", "float32", "[]"},
        {"pad", "'a'", "'low': [1, 0], 'high': [0, 2]", "float32", "[5, 7]"},
        {"pad", "'d'", "'low': ['t', 0], 'high': [0, 's']", "float32", "['s+t', '5+s']"},
        {"pad", "'h', 'c'", "'low': [0, 0], 'high': [0, 0]", "float16", "[4, 5]"},
        {"pad", "'k', 'k'", "'low': [], 'high': []", "float32", "[]"},
        {"concat", "'a'", "'axis': 0", "float32", "[4, 5]"},
        {"concat", "'a', 'd', 'e'", "'axis': -2", "float32", "['4+s+t', 5]"},
        {"concat", "'b', 'f'", "'axis': 0", "float32", "['5+five']"},
        {"gather_elements", "'a', 'i'", "'axis': 1", "float32", "[4, 5]"},
        {"iota", "", "'shape': [4, 's'], 'axis': -1", "int64", "[4, 's']"},
        {"iota", "", "'shape': [0], 'start': 0.5, 'step': 'nan'", "bfloat16", "[0]"},
        {"cumsum", "'a'", "'axis': -1, 'reverse': true", "float32", "[4, 5]"},
        {"cumsum", "'p'", "'axis': 0, 'exclusive': true", "int64", "[4, 5]"},
        {"softmax", "'a'", "", "float32", "[4, 5]"},
        {"log_softmax", "'z'", "'axis': 0", "float32", "[0, 3]"},
        {"logsumexp", "'d'", "'axes': [-1], 'keepdims': true", "float32", "['s', 1]"},
        {"layer_norm", "'h', 'b', 'b'", "'axis': 1, 'epsilon': 0.01", "float16", "[4, 5]"},
        {"layer_norm", "'a', 'a'", "'axis': 0", "float32", "[4, 5]"},
        {"rms_norm", "'a'", "", "float32", "[4, 5]"},
        {"group_norm", "'a', 'b', 'b'", "'groups': 5", "float32", "[4, 5]"},
        {"instance_norm", "'u'", "", "float32", "[4, 1, 5, 1]"},
        {"batch_norm", "'h', 'b', 'b', 'b', 'b'", "", "float16", "[4, 5]"},
        {"var", "'a'", "'axes': [0], 'correction': 0.5", "float32", "[5]"},
        {"std", "'z'", "", "float32", "[]"},
        {"reduce_l1", "'q'", "", "int64", "[]"},
        {"reduce_l2", "'a'", "'axes': [1]", "float32", "[4]"},
        {"reduce_sum_square", "'i'", "", "int32", "[]"},
        {"reduce_log_sum", "'a'", "", "float32", "[]"},
        {"arg_max", "'i'", "", "int64", "[]"},
        {"arg_min", "'a'", "'keepdims': true", "int64", "[1, 1]"},
        {"arg_max", "'a'", "'axis': -2, 'select_last': true", "int64", "[5]"},
        {"one_hot", "'l'", "'depth': 7", "float16", "[3, 7]"},
        {"one_hot", "'i', 'c', 'c'", "'depth': 2, 'axis': 1", "float64", "[4, 2, 5]"},
        {"one_hot", "'l', 'k'", "'depth': 0", "float32", "[3, 0]"},
        {"triu", "'p'", "'diagonal': -1", "bool", "[4, 5]"},
        {"tril", "'u'", "", "float32", "[4, 1, 5, 1]"},
        {"tile", "'d'", "'repeats': [3, 't']", "float32", "['3*s', '5*t']"},
        {"fma", "'a', 'b', 'k'", "", "float32", "[4, 5]"},
        {"axpy", "'i', 'i'", "'alpha': 2.0", "int32", "[4, 5]"},
        {"masked_fill", "'h', 'p', 'c'", "", "float16", "[4, 5]"},
        {"softplus", "'a'", "'beta': 2", "float32", "[4, 5]"},
        {"softsign", "'a'", "", "float32", "[4, 5]"},
        {"elu", "'a'", "'alpha': 'inf'", "float32", "[4, 5]"},
        {"selu", "'h'", "", "float16", "[4, 5]"},
        {"hardsigmoid", "'h'", "'beta': 1", "float16", "[4, 5]"},
        {"lerp", "'a', 'b', 'c'", "", "float32", "[4, 5]"},
        {"addcmul", "'q', 'q', 'q'", "'alpha': -1", "int8", "[4, 5]"},
        {"addcdiv", "'a', 'a', 'a'", "", "float32", "[4, 5]"},
};

Test(build, every_rule) {
        for (size_t i = 0; i < AF_ARRAY_SIZE(good); i++) {
                struct af_test_graph t;
                make_node(&t, good[i].op, good[i].in, good[i].attrs, good[i].dtype, good[i].shape);
                if (t.r != 0)
                        af_test_diags_print(&t.diags);
                cr_expect_eq(t.r, 0, "%s(%s) {%s}", good[i].op, good[i].in, good[i].attrs);
                if (t.r == 0)
                        cr_expect_eq(af_graph_check(&t.graph, NULL), 0, "%s(%s) {%s}", good[i].op, good[i].in, good[i].attrs);
                af_test_graph_deinit(&t);
        }
}

/* Each elementwise op of the table on each of its dtypes: accepted as stated, refused with another dtype or shape. */
Test(build, every_elementwise_op) {
        for (unsigned op = 0; op < AF_N_OPS; op++) {
                const struct af_op_info *info = af_op_info(op);
                bool plain = info->cls <= AF_CLASS_CAST && info->dtype_rule == AF_DTYPES_SAME &&
                             (info->shape_rule == AF_SHAPE_SAME || info->shape_rule == AF_SHAPE_BROADCAST);
                for (unsigned d = 1; plain && d < AF_DTYPE_FLOAT64; d++) {
                        struct af_test_graph t;
                        char text[1024];
                        bool defined = info->dtypes & AF_DTYPE_BIT(d);
                        for (unsigned bad = 0; bad < 3; bad++) {
                                snprintf(text, sizeof(text),
                                         "'inputs': [{'name': 'x', 'dtype': '%s', 'shape': [2, 3]}], 'nodes': [{'name': 'n', 'op': '%s', "
                                         "'inputs': "
                                         "['x'%s], 'outputs': [{'name': 't', 'dtype': '%s', 'shape': [2, %d]}]}], 'outputs': ['t']",
                                         af_dtype_name(d), info->name, info->min_inputs == 2 ? ", 'x'" : "",
                                         af_dtype_name(bad == 1 ? d % 9 + 1 : d), bad == 2 ? 4 : 3);
                                af_test_graph_make(&t, text);
                                cr_expect_eq(t.r, defined && !bad ? 0 : AF_GRAPH_E_INVALID, "%s on %s, bad %u", info->name,
                                             af_dtype_name(d), bad);
                                af_test_graph_deinit(&t);
                        }
                }
        }
}

struct bad {
        struct good node;
        const char *where, *what;
};

static const struct bad bad[] = {
        {{"frobnicate", "'a'", "", "float32", "[4, 5]"}, "nodes[0] \"n7\".op", "unknown op \"frobnicate\""},
        {{"add", "'a'", "", "float32", "[4, 5]"}, "\"n7\".inputs", "1 operands, but add takes 2"},
        {{"add", "'a', 'nowhere'", "", "float32", "[4, 5]"}, "\"n7\".inputs[1]", "no value is named \"nowhere\""},
        {{"add", "'a', 'h'", "", "float32", "[4, 5]"}, "\"n7\".inputs[1]", "float16 meets float32"},
        {{"add", "'h', 'k'", "", "float16", "[4, 5]"}, "\"n7\".inputs[1]", "float32 meets float16"}, /* a 0-d tensor is no scalar */
        {{"add", "'i', 'j'", "", "int32", "[4, 5]"}, "\"n7\".inputs[1]", "int64 meets int32"},
        {{"add", "'p', 'p'", "", "bool", "[4, 5]"}, "\"n7\".inputs[0]", "add is not defined on bool"},
        {{"exp", "'i'", "", "int32", "[4, 5]"}, "\"n7\".inputs[0]", "exp is not defined on int32"},
        {{"add", "'a', 'l'", "", "float32", "[4, 5]"}, "\"n7\".inputs[1]", "int64 meets float32"},
        {{"add", "'a', 'z'", "", "float32", "[4, 5]"},
         "\"n7\".inputs[1]",
         "does not broadcast: its [0] meets [4] and the two are not equal"},
        {{"add", "'a', 'd'", "", "float32", "[4, 5]"}, "\"n7\".inputs[1]", "its [s] meets [4] and the two are not known to be equal"},
        {{"add", "'d', 'e'", "", "float32", "['s', 5]"}, "\"n7\".inputs[1]", "its [t] meets [s]"},
        {{"add", "'a', 'b'", "", "float32", "[5, 4]"}, "\"n7\".outputs[0].shape", "[5, 4] is stated, but add gives [4, 5]"},
        {{"add", "'a', 'b'", "", "float16", "[4, 5]"}, "\"n7\".outputs[0].dtype", "float16 is stated, but add gives float32"},
        {{"add", "'a', 'b'", "'axis': 1", "float32", "[4, 5]"}, "\"n7\".attrs.axis", "add takes no such attribute"},
        {{"lt", "'a', 'b'", "", "float32", "[4, 5]"}, "\"n7\".outputs[0].dtype", "float32 is stated, but lt gives bool"},
        {{"where", "'a', 'a', 'a'", "", "float32", "[4, 5]"}, "\"n7\".inputs[0]", "the condition is float32, not bool"},
        {{"clip", "'i'", "'min': 0.5", "int32", "[4, 5]"}, "\"n7\".attrs.min", "no integer"},
        {{"clip", "'i'", "'max': 'inf'", "int32", "[4, 5]"}, "\"n7\".attrs.max", "no integer"},
        {{"gelu", "'a'", "'approximate': 'erf'", "float32", "[4, 5]"}, "\"n7\".attrs.approximate", "neither"},
        {{"broadcast", "'b'", "", "float32", "[4, 5]"}, "\"n7\".attrs.shape", "missing: broadcast needs it"},
        {{"broadcast", "'a'", "'shape': [5]", "float32", "[5]"}, "\"n7\".attrs.shape", "rank 1 is less than the operand's 2"},
        {{"broadcast", "'a'", "'shape': [1, 5]", "float32", "[1, 5]"}, "\"n7\".attrs.shape", "[4, 5] does not broadcast to [1, 5]"},
        {{"expand", "'b'", "'shape': [-1, 5]", "float32", "[1, 5]"}, "\"n7\".attrs.shape", "axis 0 is new"},
        {{"expand", "'b'", "'shape': [-2, 5]", "float32", "[1, 5]"}, "\"n7\".attrs.shape", "negative size -2"},
        {{"reduce_sum", "'a'", "'axes': [2]", "float32", "[4]"}, "\"n7\".attrs.axes", "axis 2 is outside of rank 2"},
        {{"reduce_sum", "'a'", "'axes': [-3]", "float32", "[4]"}, "\"n7\".attrs.axes", "axis -3 is outside of rank 2"},
        {{"reduce_sum", "'a'", "'axes': [1, -1]", "float32", "[4]"}, "\"n7\".attrs.axes", "given twice"},
        {{"reduce_sum", "'a'", "'axes': []", "float32", "[4]"}, "\"n7\".attrs.axes", "no axis is given"},
        {{"reduce_sum", "'p'", "", "bool", "[]"}, "\"n7\".outputs[0].dtype", "reduce_sum of bool cannot give bool"},
        {{"reduce_sum", "'h'", "", "float32", "[]"}, "\"n7\".outputs[0].dtype", "float32 is stated, but reduce_sum gives float16"},
        {{"reduce_sum", "'i'", "", "int8", "[]"}, "\"n7\".outputs[0].dtype", "reduce_sum of int32 cannot give int8"},
        {{"reduce_max", "'z'", "'axes': [0]", "float32", "[3]"}, "\"n7\".attrs.axes", "reduce_max of nothing: axis 0 has size 0"},
        {{"reduce_min", "'z'", "", "float32", "[]"}, "\"n7\".attrs.axes", "reduce_min of nothing"},
        {{"reduce_mean", "'i'", "", "int32", "[]"}, "\"n7\".inputs[0]", "not defined on int32"},
        {{"reshape", "'a'", "'shape': [3, -1]", "float32", "[3, 7]"}, "\"n7\".attrs.shape", "no size for -1"},
        {{"reshape", "'a'", "'shape': [-1, -1]", "float32", "[4, 5]"}, "\"n7\".attrs.shape", "more than once"},
        {{"reshape", "'a'", "'shape': [21]", "float32", "[21]"}, "\"n7\".attrs.shape", "as many elements"},
        {{"reshape", "'z'", "'shape': [0, -1]", "float32", "[0, 3]"}, "\"n7\".attrs.shape", "any size"},
        {{"reshape", "'d'", "'shape': ['t', 5]", "float32", "['t', 5]"}, "\"n7\".attrs.shape", "[s, 5] and [t, 5] are not known"},
        {{"squeeze", "'a'", "'axes': [1]", "float32", "[4]"}, "\"n7\".attrs.axes", "axis 1 of [4, 5] is not 1"},
        {{"unsqueeze", "'a'", "", "float32", "[4, 5]"}, "\"n7\".attrs.axes", "missing"},
        {{"unsqueeze", "'a'", "'axes': [3]", "float32", "[4, 5, 1]"}, "\"n7\".attrs.axes", "outside of rank 3"},
        {{"gather", "'a', 'a'", "", "float32", "[4, 5, 5]"}, "\"n7\".inputs[1]", "neither int32 nor int64"},
        {{"gather", "'k', 'l'", "", "float32", "[3]"}, "\"n7\".attrs.axis", "outside of rank 0"},
        {{"gather", "'a', 'l'", "'axis': 2", "float32", "[4, 3]"}, "\"n7\".attrs.axis", "outside of rank 2"},
};

Test(build, every_mistake_names_node_and_field) {
        for (size_t i = 0; i < AF_ARRAY_SIZE(bad); i++) {
                const struct good *n = &bad[i].node;
                struct af_test_graph t;
                make_node(&t, n->op, n->in, n->attrs, n->dtype, n->shape);
                cr_expect_eq(t.r, AF_GRAPH_E_INVALID, "%s(%s) {%s}: %d", n->op, n->in, n->attrs, t.r);
                cr_expect(af_test_diag_has(&t.diags, bad[i].where, bad[i].what), "%s(%s) {%s}", n->op, n->in, n->attrs);
                if (!af_test_diag_has(&t.diags, bad[i].where, bad[i].what))
                        af_test_diags_print(&t.diags);
                af_test_graph_deinit(&t);
        }
}

#define X46         "{'name': 'x', 'dtype': 'float32', 'shape': [4, 6]}"
#define T(n)        "{'name': '" n "', 'dtype': 'float32', 'shape': [4, 6]}"
#define N(n, in, t) "{'name': '" n "', 'op': 'add', 'inputs': [" in "], 'outputs': [" T(t) "]}"

static void expect_invalid(const char *text, const char *where, const char *what) {
        struct af_test_graph t;

        af_test_graph_make(&t, text);
        cr_expect(t.r == AF_GRAPH_E_INVALID || t.r == -1000, "%d: %s", t.r, text); /* some are the parser's to refuse */
        if (!af_test_diag_has(&t.diags, where, what)) {
                cr_expect(false, "%s", text);
                af_test_diags_print(&t.diags);
        }
        af_test_graph_deinit(&t);
}

static void expect_valid(const char *text) {
        struct af_test_graph t;

        af_test_graph_make(&t, text);
        if (t.r != 0)
                af_test_diags_print(&t.diags);
        cr_expect_eq(t.r, 0, "%s", text);
        if (t.r == 0)
                cr_expect_eq(af_graph_check(&t.graph, NULL), 0, "%s", text);
        af_test_graph_deinit(&t);
}

Test(build, several_mistakes_in_one_run) {
        struct af_test_graph t;

        af_test_graph_make(
                &t, "'inputs': [" X46 "], 'nodes': [" N("n0", "'x', 'u'", "t0") ", " N(
                            "n1", "'x'",
                            "t1") ", {'name': 'n2', 'op': 'bla', 'inputs': [], 'outputs': []}, {'name': 'n3', 'op': 'exp', 'inputs': "
                                  "['t1'], 'outputs': [{'name': 't3', 'dtype': 'float16', 'shape': [4, 6]}]}], 'outputs': ['t0', 'gone']");
        cr_expect_eq(t.r, AF_GRAPH_E_INVALID);
        cr_expect(af_test_diag_has(&t.diags, "nodes[0] \"n0\".inputs[1]", "\"u\""));
        cr_expect(af_test_diag_has(&t.diags, "nodes[1] \"n1\".inputs", "1 operands"));
        cr_expect(af_test_diag_has(&t.diags, "nodes[2] \"n2\".op", "bla"));
        cr_expect(af_test_diag_has(&t.diags, "nodes[3] \"n3\".outputs[0].dtype", "float16 is stated"));
        cr_expect(af_test_diag_has(&t.diags, "outputs[1]", "\"gone\""));
        af_test_graph_deinit(&t);
}

Test(build, cycles_are_named) {
        expect_invalid("'inputs': [" X46 "], 'nodes': [" N("n0", "'x', 't2'", "t0") ", " N("n1", "'t0', 'x'", "t1") ", " N(
                               "n2", "'t1', 'x'", "t2") "], 'outputs': ['t1']",
                       "nodes[0] \"n0\"", "\"n0\" -> \"n1\" -> \"n2\" -> \"n0\"");
        expect_invalid("'inputs': [], 'nodes': [" N("n0", "'t0', 't0'", "t0") "], 'outputs': ['t0']", "\"n0\"", "\"n0\" -> \"n0\"");
}

Test(build, names_are_unique) {
        expect_invalid("'inputs': [" X46 ", " X46 "], 'nodes': [], 'outputs': ['x']", "inputs[1]", "taken");
        expect_invalid("'inputs': [" X46 "], 'nodes': [" N("n0", "'x', 'x'", "x") "], 'outputs': ['x']", "outputs[0].name", "taken");
        expect_invalid("'inputs': [" X46 "], 'nodes': [" N("n", "'x', 'x'", "t") ", " N("n", "'x', 'x'", "u") "], 'outputs': ['t']",
                       "nodes[1]", "same name");
}

#define INPUT(rest) "'inputs': [{'name': 'x', 'dtype': 'float32', " rest "}], 'nodes': [], 'outputs': ['x']"

Test(build, layouts) {
        expect_valid(INPUT("'shape': [4, 6], 'strides': [0, 0]")); /* overlap within what is only read is fine */
        expect_valid(INPUT("'shape': [1, 6], 'strides': [999, 1]"));
        expect_invalid(INPUT("'shape': [4, 6], 'strides': [6, -1], 'offset': 4"), "inputs[0]", "negative");
        expect_invalid(INPUT("'shape': [4, -6]"), "inputs[0]", "negative");
        expect_invalid(INPUT("'shape': [1048576, 1048576, 1048576]"), "inputs[0]", "2^47");
        expect_invalid(INPUT("'shape': [4, 6], 'strides': ['4611686018427387904', 1]"), "inputs[0]", NULL);
        expect_invalid(INPUT("'shape': [4, 6], 'align': 3"), "inputs[0]", NULL);
        expect_invalid(INPUT("'shape': [4, 6], 'host': true"), "inputs[0]", NULL);
        expect_invalid("'inputs': [" X46 "], 'nodes': [], 'outputs': [{'value': 'x', 'strides': [0, 1]}]", "outputs[0]", "overlap");
        expect_invalid("'inputs': [" X46 "], 'nodes': [], 'outputs': [{'value': 'x', 'strides': [3, 1]}]", "outputs[0]", "overlap");
        expect_invalid("'inputs': [" X46 "], 'nodes': [], 'outputs': [{'value': 'x', 'strides': [1]}]", "outputs[0]",
                       "1 strides for rank 2");
        expect_valid("'inputs': [" X46 "], 'nodes': [], 'outputs': [{'value': 'x', 'strides': [1, 4]}]");
        expect_valid("'inputs': [" X46 "], 'nodes': [], 'outputs': [{'value': 'x', 'strides': [12, 2]}]");
}

#define TWO      "'inputs': [" X46 ", {'name': 'y', 'dtype': 'float32', 'shape': [4, 6]}], "
#define IN_PLACE "{'value': 't', 'alias_of': 'x'}"

Test(build, in_place) {
        expect_valid(TWO "'nodes': [" N("n", "'x', 'y'", "t") "], 'outputs': [" IN_PLACE "]");
        /* a reader of the old value that can stand before the update */
        expect_valid(TWO "'nodes': [" N("n", "'x', 'y'", "t") ", " N("m", "'x', 'x'", "u") "], 'outputs': [" IN_PLACE ", 'u']");
        /* one that cannot: it needs the new value too */
        expect_invalid(TWO "'nodes': [" N("n", "'x', 'y'", "t") ", " N("m", "'x', 't'", "u") "], 'outputs': [" IN_PLACE ", 'u']", "nodes[",
                       "cannot be put in order");
        expect_invalid(
                TWO "'nodes': [" N(
                        "n", "'x', 'y'",
                        "t") ", {'name': 'v', 'op': 'reshape', 'inputs': ['x'], 'attrs': {'shape': [24]}, 'outputs': [{'name': 'w', "
                             "'dtype': 'float32', 'shape': [24]}]}, {'name': 'b', 'op': 'reshape', 'inputs': ['t'], 'attrs': {'shape': "
                             "[24]}, 'outputs': [{'name': 'tb', 'dtype': 'float32', 'shape': [24]}]}, {'name': 'm', 'op': 'add', 'inputs': "
                             "['w', 'tb'], 'outputs': [{'name': 'u', 'dtype': 'float32', 'shape': [24]}]}], 'outputs': [" IN_PLACE ", 'u']",
                NULL, "cannot be put in order");
        expect_invalid(TWO "'nodes': [" N("n", "'x', 'y'", "t") "], 'outputs': [" IN_PLACE ", 'x']", "outputs[1]", "old value");
        expect_invalid(TWO "'nodes': [" N("n", "'x', 'y'", "t") "], 'outputs': [" IN_PLACE ", " IN_PLACE "]", "outputs[1]", "same memory");
        expect_invalid(TWO "'nodes': [" N("n", "'x', 'y'", "t") "], 'outputs': [{'value': 't', 'alias_of': 'w'}]", "outputs[0]",
                       "no input");
        expect_invalid("'inputs': [" X46 ", {'name': 'y', 'dtype': 'float32', 'shape': [6]}], 'nodes': [" N(
                               "n", "'x', 'y'", "t") "], 'outputs': [{'value': 't', 'alias_of': 'y'}]",
                       "outputs[0]", "cannot take the memory");
        expect_invalid("'inputs': [{'name': 'x', 'dtype': 'float32', 'shape': [4, 6], 'strides': [0, 1]}], 'nodes': [" N(
                               "n", "'x', 'x'", "t") "], 'outputs': [" IN_PLACE "]",
                       "outputs[0]", "overlap");
        expect_invalid("'inputs': [{'name': 'x', 'dtype': 'float32', 'shape': [4, 6], 'strides': [1, 4]}], 'nodes': [" N(
                               "n", "'x', 'x'", "t") "], 'outputs': [{'value': 't', 'alias_of': 'x', 'strides': [6, 1]}]",
                       "outputs[0]", "strides of its input");
        expect_valid("'inputs': [{'name': 'x', 'dtype': 'float32', 'shape': [4, 6], 'strides': [1, 4]}], 'nodes': [" N(
                "n", "'x', 'x'", "t") "], 'outputs': [" IN_PLACE "]");
        expect_valid(TWO "'nodes': [], 'outputs': [{'value': 'y', 'alias_of': 'x'}]");
        expect_invalid(TWO "'nodes': [], 'outputs': [{'value': 'y', 'alias_of': 'x'}, {'value': 'x', 'alias_of': 'y'}]", NULL, "old value");
}

/* The reader of the old value is put before the update although it stands after it. */
Test(build, in_place_orders_readers) {
        struct af_test_graph t;
        uint32_t *first, *list;

        af_test_graph_make(&t, TWO "'nodes': [" N("n", "'x', 'y'", "t") ", " N("m", "'x', 'x'", "u") "], 'outputs': [" IN_PLACE ", 'u']");
        cr_assert_eq(t.r, 0);
        cr_expect_str_eq(t.graph.nodes[0].name, "m");
        cr_expect_eq(t.graph.nodes[0].source, 1);
        cr_assert_eq(af_graph_order_edges(&t.graph, &first, &list), 0);
        cr_expect_eq(first[2], 1);
        cr_expect_eq(list[0], 0);
        af_test_graph_deinit(&t);
}

Test(build, outputs_may_be_anything) {
        expect_valid(
                "'inputs': [" X46
                "], 'constants': [{'name': 'c', 'dtype': 'int8', 'shape': [2], 'bits': '0102'}], 'nodes': [], 'outputs': ['x', 'x', 'c']");
        expect_valid("'nodes': [], 'outputs': []");
}

Test(build, order_of_nodes_is_free) {
        struct af_test_graph t;

        af_test_graph_make(&t, "'inputs': [" X46 "], 'nodes': [" N("n2", "'t1', 't0'", "t2") ", " N("n1", "'t0', 'x'", "t1") ", " N(
                                       "n0", "'x', 'x'", "t0") "], 'outputs': ['t2']");
        cr_assert_eq(t.r, 0);
        cr_expect_str_eq(t.graph.nodes[0].name, "n0");
        cr_expect_str_eq(t.graph.nodes[1].name, "n1");
        cr_expect_str_eq(t.graph.nodes[2].name, "n2");
        cr_expect_eq(t.graph.values[t.graph.nodes[2].in[1]].index, 0);
        af_test_graph_deinit(&t);
}

Test(build, effects_and_data_agree) {
#define E(n, in, t) "{'name': '" n "', 'op': 'opaque', 'inputs': [" in "], 'attrs': {'effects': true}, 'outputs': [" t "]}"
        expect_valid("'inputs': [" X46 "], 'nodes': [" E("p", "'x'", T("t")) ", " E("q", "'t'", T("u")) "], 'outputs': ['u']");
        expect_invalid("'inputs': [" X46 "], 'nodes': [" E("q", "'t'", T("u")) ", " E("p", "'x'", T("t")) "], 'outputs': ['u']", NULL,
                       "cannot be put in order");
}

/* Data draws the second effect forward: the first one goes with it. */
Test(build, effects_are_not_overtaken) {
        struct af_test_graph t;

        af_test_graph_make(&t, "'inputs': [" X46 "], 'nodes': [" N("n", "'u', 'u'", "v") ", " E("p", "'x'", "") ", " E(
                                       "q", "'x'", T("u")) "], 'outputs': ['v']");
        cr_assert_eq(t.r, 0);
        cr_expect_str_eq(t.graph.nodes[0].name, "p");
        cr_expect_str_eq(t.graph.nodes[1].name, "q");
        af_test_graph_deinit(&t);
}

Test(build, questions) {
        struct af_test_graph t;
        uint32_t *first, *list;
        int64_t v[AF_LIMIT_RANK];
        uint64_t bits;

        make_node(&t, "mul", "'h', 'c'", "", "float16", "[4, 5]");
        cr_assert_eq(t.r, 0);
        const struct af_graph *g = &t.graph;
        const struct af_node *n = &g->nodes[0];
        cr_expect(af_value_static_strides(g, n->out[0], v) && v[0] == 5 && v[1] == 1);
        cr_expect_eq(af_value_count(g, n->out[0]), 20);
        cr_expect_eq(af_value_count(g, g->inputs[7].value), 0);
        cr_expect_eq(af_value_count(g, g->inputs[8].value), -1);
        cr_expect_not(af_value_static_dims(g, g->inputs[8].value, v));
        cr_expect(af_value_scalar(g, n->in[1], &bits) && bits == 0x3fb999999999999a);
        cr_expect_not(af_value_scalar(g, n->in[0], &bits));
        cr_assert_eq(af_graph_users(g, &first, &list), 0);
        cr_expect_eq(first[n->in[1] + 1] - first[n->in[1]], 1);
        cr_expect_eq(list[first[n->in[1]]], 0);
        af_test_graph_deinit(&t);
}
