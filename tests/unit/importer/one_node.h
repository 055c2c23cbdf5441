/* SPDX-License-Identifier: Apache-2.0 */
/* A model of one node, through the importer and the reference, compared with expected numbers. */
#pragma once

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/reference/reference.h"
#include "compiler/rewrite/rewrite.h"
#include "importer/onnx.h"
#include "numeric/half.h"
#include "onnx_min.pb-c.h"

#define CASE_MAX_IO    8
#define CASE_MAX_ITEMS 64

enum { ELEM_F32 = 1, ELEM_U8 = 2, ELEM_I8 = 3, ELEM_I32 = 6, ELEM_I64 = 7, ELEM_BOOL = 9, ELEM_F16 = 10 };

struct numbers {
        int32_t elem; /* ONNX's number; 0: no such operand */
        uint32_t rank;
        int64_t dims[4];
        double v[CASE_MAX_ITEMS];
};
#define DIMS(...)                                                                                                                          \
        { __VA_ARGS__ }
#define T(type, r, d, ...) ((struct numbers){ELEM_##type, r, d, {__VA_ARGS__}})
#define INT64S(n, ...)     T(I64, 1, DIMS(n), __VA_ARGS__)

struct one_node {
        const char *op, *domain;
        int64_t opset;
        const char *attrs; /* "axis=1;perm=0,2,1,;mode=wrap;alpha=0.5": a point makes a float, a comma a list */
        struct numbers in[CASE_MAX_IO], want[CASE_MAX_IO];
        double tolerance;    /* relative; 0: the numbers themselves */
        const char *refused; /* what the refusal says; NULL: none */
};

static size_t case_count(const struct numbers *t) {
        size_t n = 1;
        for (uint32_t i = 0; i < t->rank; i++)
                n *= (size_t)t->dims[i];
        return n;
}

static size_t case_bytes(const struct numbers *t, uint8_t *out) {
        size_t n = case_count(t), at = 0;
        cr_assert_leq(n, (size_t)CASE_MAX_ITEMS);
        for (size_t i = 0; i < n; i++) {
                float f = (float)t->v[i];
                int64_t k = isfinite(t->v[i]) ? (int64_t)t->v[i] : 0;
                uint16_t h = af_f16_from_f32(f);
                unsigned size = t->elem == ELEM_F32 || t->elem == ELEM_I32 ? 4 : t->elem == ELEM_I64 ? 8 : t->elem == ELEM_F16 ? 2 : 1;
                memcpy(out + at, t->elem == ELEM_F32 ? (const void *)&f : t->elem == ELEM_F16 ? (const void *)&h : (const void *)&k, size);
                at += size;
        }
        return at;
}

static double case_element(const struct af_tensor *t, size_t i) {
        const uint8_t *p = (const uint8_t *)t->data + i * af_dtype_size(t->dtype);
        float f;
        uint16_t h;
        int64_t k = 0;
        memcpy(&k, p, af_dtype_size(t->dtype));
        memcpy(&h, p, 2);
        switch (t->dtype) {
        case AF_DTYPE_FLOAT32:
                memcpy(&f, p, 4);
                return (double)f;
        case AF_DTYPE_FLOAT16:
                return (double)af_f16_to_f32(h);
        case AF_DTYPE_INT64:
                return (double)k;
        case AF_DTYPE_INT32:
                return (double)(int32_t)k;
        case AF_DTYPE_INT8:
                return (double)(int8_t)k;
        default:
                return (double)k;
        }
}

/* One attribute from its text; memory is never freed (one process per test). */
static Onnxm__Attribute *case_attr(char *text) {
        Onnxm__Attribute *a = malloc(sizeof(*a));
        char *value = strchr(text, '=');
        *a = (Onnxm__Attribute)ONNXM__ATTRIBUTE__INIT;
        *value++ = 0;
        a->name = text;
        if (strchr(value, ',')) {
                a->ints = calloc(CASE_MAX_ITEMS, sizeof(*a->ints));
                for (char *end, *p = value; *p; p = *end ? end + 1 : end)
                        a->ints[a->n_ints++] = strtoll(p, &end, 10);
        } else if (strspn(value, "0123456789-") == strlen(value)) {
                a->has_i = 1;
                a->i = strtoll(value, NULL, 10);
        } else if (strspn(value, "0123456789-.e") == strlen(value)) {
                a->has_f = 1;
                a->f = strtof(value, NULL);
        } else {
                a->has_s = 1;
                a->s = (ProtobufCBinaryData){.len = strlen(value), .data = (uint8_t *)value};
        }
        return a;
}

/* The protobuf messages of a model; they point into one another. */
struct case_messages {
        char names[2 * CASE_MAX_IO][4], *in[CASE_MAX_IO], *results[CASE_MAX_IO];
        Onnxm__ValueInfo info[2 * CASE_MAX_IO], *inputs[CASE_MAX_IO], *outputs[CASE_MAX_IO];
        Onnxm__Type type[2 * CASE_MAX_IO];
        Onnxm__TensorType tensor[2 * CASE_MAX_IO];
        Onnxm__Attribute *attrs[16];
        Onnxm__Node node, *nodes[1];
        Onnxm__Graph graph;
        Onnxm__OpsetId opset, *opsets[1];
        Onnxm__Model model;
};

/* Value i: the inputs, then the outputs; what has no type is left out. */
static void case_value(struct case_messages *m, const struct one_node *c, uint32_t i) {
        const bool input = i < CASE_MAX_IO;
        const struct numbers *t = input ? &c->in[i] : &c->want[i - CASE_MAX_IO];
        bool there = t->elem || (i == CASE_MAX_IO && c->refused);
        snprintf(m->names[i], sizeof(m->names[i]), "%c%u", input ? 'x' : 'y', i % CASE_MAX_IO);
        m->info[i] = (Onnxm__ValueInfo)ONNXM__VALUE_INFO__INIT;
        m->type[i] = (Onnxm__Type)ONNXM__TYPE__INIT;
        m->tensor[i] = (Onnxm__TensorType)ONNXM__TENSOR_TYPE__INIT;
        m->info[i].name = m->names[i];
        m->info[i].type = &m->type[i];
        m->type[i].tensor_type = &m->tensor[i];
        m->tensor[i].has_elem_type = 1;
        m->tensor[i].elem_type = t->elem;
        if (input)
                m->in[i] = there ? m->names[i] : "";
        else
                m->results[i - CASE_MAX_IO] = m->names[i];
        if (there && input) {
                m->inputs[m->graph.n_input++] = &m->info[i];
                m->node.n_input = i + 1;
        } else if (there) {
                m->outputs[m->graph.n_output++] = &m->info[i];
                m->node.n_output++;
        }
}

static size_t case_model(const struct one_node *c, uint8_t *out, size_t n_out) {
        static struct case_messages m;
        m = (struct case_messages){
                .node = ONNXM__NODE__INIT, .graph = ONNXM__GRAPH__INIT, .opset = ONNXM__OPSET_ID__INIT, .model = ONNXM__MODEL__INIT};
        for (uint32_t i = 0; i < 2 * CASE_MAX_IO; i++)
                case_value(&m, c, i);
        for (char *p = c->attrs ? strdup(c->attrs) : NULL; p && *p;) {
                char *end = strchr(p, ';');
                if (end)
                        *end = 0;
                m.attrs[m.node.n_attribute++] = case_attr(p);
                p = end ? end + 1 : NULL;
        }
        m.node.op_type = (char *)c->op;
        m.node.domain = (char *)c->domain;
        m.node.input = m.in;
        m.node.output = m.results;
        m.node.attribute = m.attrs;
        m.nodes[0] = &m.node;
        m.graph.node = m.nodes;
        m.graph.n_node = 1;
        m.graph.input = m.inputs;
        m.graph.output = m.outputs;
        m.opset.has_version = 1;
        m.opset.version = c->opset ? c->opset : 21;
        m.opsets[0] = &m.opset;
        m.model.opset_import = m.opsets;
        m.model.n_opset_import = 1;
        m.model.graph = &m.graph;
        cr_assert_leq(onnxm__model__get_packed_size(&m.model), n_out);
        return onnxm__model__pack(&m.model, out);
}

static uint32_t case_feeds(const struct one_node *c, uint8_t (*bytes)[CASE_MAX_ITEMS * 8], struct af_onnx_tensor *feeds) {
        static const enum af_dtype dtypes[] = {
                [ELEM_F32] = AF_DTYPE_FLOAT32, [ELEM_U8] = AF_DTYPE_UINT8,  [ELEM_I8] = AF_DTYPE_INT8,    [ELEM_I32] = AF_DTYPE_INT32,
                [ELEM_I64] = AF_DTYPE_INT64,   [ELEM_BOOL] = AF_DTYPE_BOOL, [ELEM_F16] = AF_DTYPE_FLOAT16};
        uint32_t n = 0;
        for (uint32_t i = 0; i < CASE_MAX_IO; i++) {
                const struct numbers *t = &c->in[i];
                if (!t->elem)
                        continue;
                feeds[n] = (struct af_onnx_tensor){
                        .name = "", .dtype = dtypes[t->elem], .elem_type = t->elem, .rank = t->rank, .bytes = bytes[n]};
                memcpy(feeds[n].dims, t->dims, sizeof(t->dims));
                feeds[n].n_bytes = case_bytes(t, bytes[n]);
                n++;
        }
        return n;
}

static void case_compare(const struct one_node *c, const struct numbers *want, const struct af_tensor *got, uint32_t number) {
        cr_assert_eq(got->rank, want->rank, "%s: output %u has rank %u", c->op, number, got->rank);
        for (uint32_t i = 0; i < want->rank; i++)
                cr_assert_eq(got->dims[i], want->dims[i], "%s: output %u: dimension %u is %lld", c->op, number, i, (long long)got->dims[i]);
        for (size_t i = 0; i < case_count(want); i++) {
                double a = case_element(got, i), b = want->v[i];
                cr_expect(a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= c->tolerance * fmax(1, fabs(b)),
                          "%s: output %u: element %zu is %.9g, not %.9g", c->op, number, i, a, b);
        }
}

static void check_case(const struct one_node *c) {
        static uint8_t bytes[CASE_MAX_IO][CASE_MAX_ITEMS * 8], packed[8192];
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        AF_CLEANUP(af_diags_deinit) struct af_diags diags = {0};
        struct af_onnx_tensor feeds[CASE_MAX_IO];
        struct af_tensor in[CASE_MAX_IO], out[CASE_MAX_IO];
        struct af_onnx_model *model;
        struct af_onnx_import import;
        struct af_fragment f;
        struct af_graph whole, g;
        const char *why = "";
        af_arena_init(&arena, 0);
        uint32_t n = case_feeds(c, bytes, feeds);
        cr_assert_eq(af_onnx_load(&arena, packed, case_model(c, packed, sizeof(packed)), &model, &diags), 0);
        cr_assert_eq(af_fragment_init(&f, &arena), 0);
        int r = af_onnx_import(model, feeds, n, NULL, &f, &import, &diags);
        if (c->refused) {
                cr_expect_eq(r, AF_ONNX_E_REFUSED, "%s is not refused", c->op);
                cr_expect(diags.n_items && strstr(diags.items[0].what, c->refused), "%s: %s", c->op,
                          diags.n_items ? diags.items[0].what : "");
                af_onnx_close(model);
                return;
        }
        cr_assert_eq(r, 0, "%s: %d %s", c->op, r, diags.n_items ? diags.items[0].what : "");
        cr_assert_eq(af_graph_from_fragment(&whole, &f, &diags), 0, "%s: %s", c->op, diags.n_items ? diags.items[0].what : "");
        cr_assert_eq(af_rewrite_decompose(&whole, NULL, &g, NULL), 0);
        for (uint32_t i = 0; i < import.n_inputs; i++) {
                const struct af_onnx_tensor *t = &feeds[import.input_of[i]];
                in[i] = (struct af_tensor){.dtype = t->dtype, .rank = t->rank, .data = (void *)t->bytes};
                memcpy(in[i].dims, t->dims, sizeof(t->dims));
                af_value_static_strides(&g, g.inputs[i].value, in[i].strides);
        }
        cr_assert_eq(af_reference_run(&g, in, out, NULL, &why), 0, "%s: %s", c->op, why);
        for (uint32_t i = 0; i < g.n_outputs; i++) {
                case_compare(c, &c->want[i], &out[i], i);
                free(out[i].data);
        }
        af_onnx_close(model);
}
#define CHECK(...) check_case(&(struct one_node){__VA_ARGS__})
