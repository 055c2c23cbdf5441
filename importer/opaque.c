/* SPDX-License-Identifier: Apache-2.0 */
/* Model nodes that stay whole, for the caller to run. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "importer/import.h"

#define ATTRIBUTE_GRAPH  5
#define ATTRIBUTE_GRAPHS 10

const Onnxm__TensorType *im_stated(const struct import *im, const char *name) {
        const Onnxm__Graph *g = im->m->proto->graph;
        for (size_t i = 0; i < g->n_output + g->n_value_info; i++) {
                const Onnxm__ValueInfo *v = i < g->n_output ? g->output[i] : g->value_info[i - g->n_output];
                const Onnxm__TensorType *t = v->name && strcmp(v->name, name) == 0 && v->type ? v->type->tensor_type : NULL;
                bool known = t && t->shape && t->shape->n_dim <= AF_LIMIT_RANK;
                for (size_t a = 0; known && a < t->shape->n_dim; a++)
                        known = t->shape->dim[a]->has_dim_value && t->shape->dim[a]->dim_value >= 0;
                if (known)
                        return t;
        }
        return NULL;
}

/* Whether a node's body reads values of the graph around it, which its operands do not name. */
static bool has_body(const Onnxm__Node *n) {
        for (size_t i = 0; i < n->n_attribute; i++)
                if (n->attribute[i]->type == ATTRIBUTE_GRAPH || n->attribute[i]->type == ATTRIBUTE_GRAPHS)
                        return true;
        return false;
}

/* Output i as a fragment's tensor, and as a value. */
static void output(struct import *im, uint32_t i, const char *reason, struct af_fragment_tensor *ret) {
        const Onnxm__TensorType *type = im_stated(im, im->node->output[i]);
        enum af_dtype dtype = type ? im_dtype(type->elem_type) : AF_DTYPE_INVALID;
        struct val *v = af_arena_alloc(im->arena, sizeof(*v));
        char name[32];
        if (!type || dtype == AF_DTYPE_INVALID || dtype == AF_DTYPE_FLOAT64) {
                im_refuse(im, "%s", reason);
                return;
        }
        snprintf(name, sizeof(name), "v%u", im->n_names++);
        ret->name = af_arena_strdup(im->arena, name);
        if (!v || !ret->name) {
                im->error = -ENOMEM;
                return;
        }
        *v = (struct val){.name = ret->name, .dtype = dtype, .rank = (uint32_t)type->shape->n_dim, .input = -1};
        for (uint32_t a = 0; a < v->rank; a++)
                v->dims[a] = type->shape->dim[a]->dim_value;
        ret->dtype = dtype;
        ret->rank = v->rank;
        im->error = af_fragment_dims_const(im->f, v->dims, v->rank, &ret->dims);
        im->out[i] = v;
}

static void remember(struct import *im, const char *reason) {
        struct af_onnx_import *ret = im->ret;
        struct af_onnx_opaque o = {.node = im->at, .reason = af_arena_strdup(im->arena, reason)};
        im->error = o.reason ? af_arena_grow(im->arena, &ret->opaque, &im->cap_opaque, ret->n_opaque + 1, sizeof(o)) : -ENOMEM;
        if (!im->error)
                ret->opaque[ret->n_opaque++] = o;
}

void im_opaque(struct import *im, const char *reason) {
        struct af_fragment_tensor outputs[ONNX_MAX_IO] = {0};
        const char *inputs[ONNX_MAX_IO];
        struct af_fragment_node node = {
                .op = af_op_info(AF_OP_OPAQUE)->name, .origin = im->node->op_type, .inputs = inputs, .outputs = outputs};
        char name[32];
        if (im->depth || has_body(im->node)) /* the caller knows the nodes of the model's own graph */
                im_refuse(im, "%s", reason);
        for (uint32_t i = 0; i < im->n_in && !im->error; i++) {
                if (!im->in[i])
                        continue;
                im_enter(im, im->in[i]);
                inputs[node.n_inputs++] = im->in[i]->name;
        }
        for (uint32_t i = 0; i < im->node->n_output && !im->error; i++)
                if (im->node->output[i][0])
                        output(im, i, reason, &outputs[node.n_outputs++]);
        if (!node.n_outputs)
                im_refuse(im, "%s", reason);
        snprintf(name, sizeof(name), "n%u", im->ret->n_nodes);
        node.name = name;
        im_add_node(im, &node);
        if (!im->error)
                remember(im, reason);
}
