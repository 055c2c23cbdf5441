/* SPDX-License-Identifier: Apache-2.0 */
/* The shared library's one call: y = Relu(MatMul(a, b)), z = Reshape(y, s), asked in different ways. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "importer/autofuse_onnx.h"
#include "onnx_min.pb-c.h"

enum { F32 = 1, I64 = 7, F64 = 11 };

struct parts {
        Onnxm__Dim dims[16], *dim_list[16];
        Onnxm__Shape shapes[8];
        Onnxm__TensorType tensors[8];
        Onnxm__Type types[8];
        Onnxm__ValueInfo infos[8];
        uint32_t n_dims, n_infos;
};

/* A value of two dimensions (one where the second is 0); -1: not stated. */
static Onnxm__ValueInfo *value(struct parts *p, const char *name, int32_t elem, int64_t d0, int64_t d1) {
        uint32_t i = p->n_infos++;
        p->shapes[i] = (Onnxm__Shape)ONNXM__SHAPE__INIT;
        p->shapes[i].dim = &p->dim_list[p->n_dims];
        for (int64_t k = 0, d = d0; k < (d1 ? 2 : 1); k++, d = d1) {
                p->dims[p->n_dims] = (Onnxm__Dim)ONNXM__DIM__INIT;
                p->dims[p->n_dims].has_dim_value = d >= 0;
                p->dims[p->n_dims].dim_value = d;
                p->dim_list[p->n_dims] = &p->dims[p->n_dims];
                p->n_dims++;
                p->shapes[i].n_dim++;
        }
        p->tensors[i] = (Onnxm__TensorType)ONNXM__TENSOR_TYPE__INIT;
        p->tensors[i].has_elem_type = 1;
        p->tensors[i].elem_type = elem;
        p->tensors[i].shape = &p->shapes[i];
        p->types[i] = (Onnxm__Type)ONNXM__TYPE__INIT;
        p->types[i].tensor_type = &p->tensors[i];
        p->infos[i] = (Onnxm__ValueInfo)ONNXM__VALUE_INFO__INIT;
        p->infos[i].name = (char *)name;
        p->infos[i].type = &p->types[i];
        return &p->infos[i];
}
static Onnxm__Node node(const char *op, char **in, size_t n_in, char **out) {
        Onnxm__Node n = ONNXM__NODE__INIT;
        n.op_type = (char *)op;
        n.input = in;
        n.n_input = n_in;
        n.output = out;
        n.n_output = 1;
        return n;
}

/* elem: of the product, as value_info states it; 0: not stated. */
static size_t pack(uint8_t *out, int32_t elem) {
        struct parts p = {0};
        Onnxm__Node nodes[] = {node("MatMul", (char *[]){"a", "b"}, 2, (char *[]){"t"}), node("Relu", (char *[]){"t"}, 1, (char *[]){"y"}),
                               node("Reshape", (char *[]){"y", "s"}, 2, (char *[]){"z"})};
        Onnxm__Graph graph = ONNXM__GRAPH__INIT;
        Onnxm__Model model = ONNXM__MODEL__INIT;
        Onnxm__OpsetId opset = ONNXM__OPSET_ID__INIT;
        graph.node = (Onnxm__Node *[]){&nodes[0], &nodes[1], &nodes[2]};
        graph.n_node = 3;
        graph.input = (Onnxm__ValueInfo *[]){value(&p, "a", F32, -1, 3), value(&p, "b", F32, 3, 4), value(&p, "s", I64, 1, 0)};
        graph.n_input = 3;
        graph.output = (Onnxm__ValueInfo *[]){value(&p, "z", F32, 8, 0)};
        graph.n_output = 1;
        graph.value_info = (Onnxm__ValueInfo *[]){value(&p, "t", elem, 2, 4)};
        graph.n_value_info = elem != 0;
        opset.has_version = 1;
        opset.version = 21;
        model.opset_import = (Onnxm__OpsetId *[]){&opset};
        model.n_opset_import = 1;
        model.graph = &graph;
        return onnxm__model__pack(&model, out);
}

static const int64_t a_dims[] = {2, 3}, b_dims[] = {3, 4}, s_dims[] = {1}, eight[] = {8};
static struct autofuse_onnx_tensor feeds[] = {{0, 2, a_dims, NULL, 0}, {0, 2, b_dims, NULL, 0}, {I64, 1, s_dims, eight, 8}};

static char *ask(int32_t elem, size_t n_feeds, const struct autofuse_onnx_options *options, enum autofuse_onnx_status want) {
        uint8_t model[1024];
        char *json = NULL;
        size_t n = pack(model, elem);
        cr_assert_leq(n, sizeof(model));
        enum autofuse_onnx_status got = autofuse_onnx_import(model, n, n_feeds ? feeds : NULL, n_feeds, options, &json);
        cr_assert_eq(got, want, "%d: %s", got, json ? json : "");
        return json;
}
static void has(const char *json, const char *part) {
        cr_expect(strstr(json, part) != NULL, "%s in %s", part, json);
}

Test(shared, an_op_without_a_kernel_is_named) {
        char *json = ask(F32, 3, NULL, AUTOFUSE_ONNX_E_REFUSED);
        has(json, "{\"errors\":[{\"where\":\"t\",\"what\":\"op MatMul\"}],\"values\":[]}");
        autofuse_onnx_free(json);
}
Test(shared, it_stays_whole_where_that_is_asked_for) {
        struct autofuse_onnx_options o = {.size = sizeof(o), .opaque = true};
        char *json = ask(F32, 3, &o, AUTOFUSE_ONNX_OK);
        has(json, "\"op\":\"opaque\"");
        has(json, "\"inputs\":[0,1],\"values\":[2],\"nodes\":[0,1,2],\"opaque\":[{\"node\":0,\"op\":\"MatMul\",\"reason\":\"op MatMul\"}]");
        autofuse_onnx_free(json);
}
Test(shared, not_where_its_result_is_not_stated_or_no_dtype_of_fragments) {
        struct autofuse_onnx_options o = {.size = sizeof(o), .opaque = true};
        char *json = ask(0, 3, &o, AUTOFUSE_ONNX_E_REFUSED);
        has(json, "\"what\":\"op MatMul\"");
        autofuse_onnx_free(json);
        json = ask(F64, 3, &o, AUTOFUSE_ONNX_E_REFUSED);
        has(json, "\"what\":\"op MatMul\"");
        autofuse_onnx_free(json);
}
Test(shared, a_node_can_be_forced_to_stay_whole) {
        const uint32_t forced[] = {1};
        struct autofuse_onnx_options o = {.size = sizeof(o), .opaque = true, .forced = forced, .n_forced = 1};
        char *json = ask(F32, 3, &o, AUTOFUSE_ONNX_E_REFUSED);
        has(json, "\"where\":\"y\""); /* Relu's result is not stated */
        autofuse_onnx_free(json);
}
Test(shared, sizes_and_values_must_be_known) {
        struct autofuse_onnx_options o = {.size = sizeof(o), .opaque = true};
        char *json = ask(F32, 0, &o, AUTOFUSE_ONNX_E_REFUSED);
        has(json, "shape of input 'a' is not known");
        autofuse_onnx_free(json);
        feeds[2].data = NULL;
        json = ask(F32, 3, &o, AUTOFUSE_ONNX_OK);
        feeds[2].data = eight;
        has(json, "{\"node\":2,\"op\":\"Reshape\",\"reason\":\"shape parameter of Reshape is not known\"}");
        has(json, "\"values\":[]");
        autofuse_onnx_free(json);
}
Test(shared, what_is_no_model_is_invalid) {
        char *json;
        cr_expect_eq(autofuse_onnx_import("no model", 8, NULL, 0, NULL, &json), AUTOFUSE_ONNX_E_INVALID);
        has(json, "{\"errors\":[{\"where\":\"model\",\"what\":\"not an ONNX model\"}]}");
        autofuse_onnx_free(json);
        autofuse_onnx_free(NULL);
}
