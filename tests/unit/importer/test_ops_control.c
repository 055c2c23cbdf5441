/* SPDX-License-Identifier: Apache-2.0 */
/* A branch stands in its node's place where the condition is known: y = (shape of x) mod 2 == 0 ? relu(x) : |x| - c. */
#include <criterion/criterion.h>
#include <string.h>

#include "importer/autofuse_onnx.h"
#include "onnx_min.pb-c.h"

static Onnxm__Node node(const char *op, char **in, size_t n_in, char **out) {
        Onnxm__Node n = ONNXM__NODE__INIT;
        n.op_type = (char *)op;
        n.input = in;
        n.n_input = n_in;
        n.output = out;
        n.n_output = 1;
        return n;
}
static Onnxm__Tensor number(const char *name, int32_t type, const void *p, size_t n, int64_t *one) {
        Onnxm__Tensor t = ONNXM__TENSOR__INIT;
        t.name = (char *)name;
        t.has_data_type = t.has_raw_data = 1;
        t.data_type = type;
        t.raw_data = (ProtobufCBinaryData){.len = n, .data = (uint8_t *)p};
        t.dims = one;
        t.n_dims = 1;
        return t;
}
static Onnxm__Attribute branch(const char *name, Onnxm__Graph *g) {
        Onnxm__Attribute a = ONNXM__ATTRIBUTE__INIT;
        a.name = (char *)name;
        a.g = g;
        a.has_type = 1;
        a.type = 5;
        return a;
}
static Onnxm__ValueInfo named(const char *name) {
        Onnxm__ValueInfo v = ONNXM__VALUE_INFO__INIT;
        v.name = (char *)name;
        return v;
}
static void graph(Onnxm__Graph *g, Onnxm__Node **nodes, size_t n, Onnxm__ValueInfo **out) {
        *g = (Onnxm__Graph)ONNXM__GRAPH__INIT;
        g->node = nodes;
        g->n_node = n;
        g->output = out;
        g->n_output = 1;
}

/* by_shape: the condition follows from x's size; else it is an input. Returns the answer for an x of n elements. */
static char *ask(bool by_shape, int64_t n, bool opaque, enum autofuse_onnx_status want) {
        int64_t one = 1, two = 2, zero = 0;
        float c = 4;
        uint8_t packed[2048], truth = 1;
        char *json = NULL;
        Onnxm__Graph g, yes, no;
        Onnxm__Tensor initial[] = {number("two", 7, &two, 8, &one), number("zero", 7, &zero, 8, &one)}, inner = number("c", 1, &c, 4, &one);
        Onnxm__ValueInfo y = named("y"), a = named("a"), b = named("b"), x = named("x"), cond = named("cond");
        Onnxm__TensorType types[2] = {ONNXM__TENSOR_TYPE__INIT, ONNXM__TENSOR_TYPE__INIT};
        Onnxm__Type type[2] = {ONNXM__TYPE__INIT, ONNXM__TYPE__INIT};
        Onnxm__Node relu = node("Relu", (char *[]){"x"}, 1, (char *[]){"a"}), abs_ = node("Abs", (char *[]){"x"}, 1, (char *[]){"t"}),
                    sub = node("Sub", (char *[]){"t", "c"}, 2, (char *[]){"b"}), shape = node("Shape", (char *[]){"x"}, 1, (char *[]){"s"}),
                    mod = node("Mod", (char *[]){"s", "two"}, 2, (char *[]){"r"}),
                    equal = node("Equal", (char *[]){"r", "zero"}, 2, (char *[]){"even"}),
                    if_ = node("If", (char *[]){by_shape ? "even" : "cond"}, 1, (char *[]){"y"});
        graph(&yes, (Onnxm__Node *[]){&relu}, 1, (Onnxm__ValueInfo *[]){&a});
        graph(&no, (Onnxm__Node *[]){&abs_, &sub}, 2, (Onnxm__ValueInfo *[]){&b});
        no.initializer = (Onnxm__Tensor *[]){&inner};
        no.n_initializer = 1;
        Onnxm__Attribute then_ = branch("then_branch", &yes), else_ = branch("else_branch", &no);
        if_.attribute = (Onnxm__Attribute *[]){&then_, &else_};
        if_.n_attribute = 2;
        graph(&g, (Onnxm__Node *[]){&shape, &mod, &equal, &if_}, 4, (Onnxm__ValueInfo *[]){&y});
        g.initializer = (Onnxm__Tensor *[]){&initial[0], &initial[1]};
        g.n_initializer = 2;
        for (int i = 0; i < 2; i++) {
                types[i].has_elem_type = 1;
                types[i].elem_type = i ? 9 : 1;
                type[i].tensor_type = &types[i];
        }
        x.type = y.type = &type[0];
        cond.type = &type[1];
        g.input = (Onnxm__ValueInfo *[]){&x, &cond};
        g.n_input = by_shape ? 1 : 2;
        Onnxm__Model model = ONNXM__MODEL__INIT;
        model.graph = &g;
        cr_assert_leq(onnxm__model__get_packed_size(&model), sizeof(packed));
        struct autofuse_onnx_tensor feeds[] = {{1, 1, &n, NULL, 0}, {9, 1, &one, by_shape ? NULL : &truth, 1}};
        struct autofuse_onnx_options o = {.size = sizeof(o), .opaque = opaque};
        if (!by_shape && opaque)
                feeds[1].data = NULL;
        enum autofuse_onnx_status got =
                autofuse_onnx_import(packed, onnxm__model__pack(&model, packed), feeds, by_shape ? 1 : 2, &o, &json);
        cr_assert_eq(got, want, "%s", json);
        return json;
}

Test(ops_control, the_branch_follows_from_the_sizes) {
        char *even = ask(true, 6, false, AUTOFUSE_ONNX_OK), *odd = ask(true, 5, false, AUTOFUSE_ONNX_OK);
        cr_expect(strstr(even, "\"op\":\"relu\"") && !strstr(even, "\"op\":\"abs\""), "%s", even);
        cr_expect(strstr(odd, "\"op\":\"abs\"") && strstr(odd, "\"op\":\"sub\"") && strstr(odd, "00008040"), "%s", odd);
        cr_expect(strstr(odd, "\"nodes\":[3,3]") && strstr(odd, "\"values\":[]"), "%s", odd);
        autofuse_onnx_free(even);
        autofuse_onnx_free(odd);
}
Test(ops_control, or_from_a_value_that_is_given) {
        char *json = ask(false, 5, false, AUTOFUSE_ONNX_OK);
        cr_expect(strstr(json, "\"op\":\"relu\"") && strstr(json, "\"values\":[1]"), "%s", json);
        autofuse_onnx_free(json);
}
Test(ops_control, otherwise_it_is_refused_and_never_opaque) {
        char *json = ask(false, 5, true, AUTOFUSE_ONNX_E_REFUSED);
        cr_expect(strstr(json, "op If of a condition that is not known"), "%s", json);
        autofuse_onnx_free(json);
}
