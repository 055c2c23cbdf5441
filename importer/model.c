/* SPDX-License-Identifier: Apache-2.0 */
/* The model file and its inputs and outputs. */
#include <errno.h>
#include <string.h>

#include "importer/import.h"

static bool is_initializer(const Onnxm__Graph *g, const char *name) {
        for (size_t i = 0; i < g->n_initializer; i++)
                if (g->initializer[i]->name && strcmp(g->initializer[i]->name, name) == 0)
                        return true;
        return false;
}

static int load_inputs(struct af_onnx_model *m) {
        const Onnxm__Graph *g = m->proto->graph;
        m->inputs = af_arena_calloc(m->arena, g->n_input, sizeof(*m->inputs));
        if (!m->inputs)
                return -ENOMEM;
        for (size_t i = 0; i < g->n_input; i++)
                if (g->input[i]->name && !is_initializer(g, g->input[i]->name))
                        m->inputs[m->n_inputs++] = g->input[i];
        for (size_t i = 0; i < m->proto->n_opset_import; i++) {
                const char *domain = m->proto->opset_import[i]->domain;
                if (!domain || !*domain || strcmp(domain, "ai.onnx") == 0)
                        m->opset = m->proto->opset_import[i]->version;
        }
        return 0;
}

int af_onnx_load(struct af_arena *arena, const void *p, size_t n, struct af_onnx_model **ret_model, struct af_diags *diags) {
        struct af_onnx_model *m = af_arena_alloc(arena, sizeof(*m));
        if (!m)
                return -ENOMEM;
        m->arena = arena;
        m->proto = onnxm__model__unpack(NULL, n, p);
        if (!m->proto || !m->proto->graph) {
                af_diag_error(diags, "model", "not an ONNX model");
                af_onnx_close(m);
                return AF_ONNX_E_INVALID;
        }
        int r = load_inputs(m);
        if (r) {
                af_onnx_close(m);
                return r;
        }
        *ret_model = m;
        return 0;
}

void af_onnx_close(struct af_onnx_model *m) {
        if (m && m->proto)
                onnxm__model__free_unpacked(m->proto, NULL);
        if (m)
                m->proto = NULL;
}

uint32_t af_onnx_n_inputs(const struct af_onnx_model *m) {
        return m->n_inputs;
}
uint32_t af_onnx_n_outputs(const struct af_onnx_model *m) {
        return (uint32_t)m->proto->graph->n_output;
}
const char *af_onnx_input_name(const struct af_onnx_model *m, uint32_t i) {
        return m->inputs[i]->name;
}
const char *af_onnx_output_name(const struct af_onnx_model *m, uint32_t i) {
        return m->proto->graph->output[i]->name ? m->proto->graph->output[i]->name : "";
}
uint32_t af_onnx_n_nodes(const struct af_onnx_model *m) {
        return (uint32_t)m->proto->graph->n_node;
}

int af_onnx_check_types(const struct af_onnx_model *m, struct af_diags *diags) {
        const Onnxm__Graph *g = m->proto->graph;
        for (size_t i = 0; i < g->n_input + g->n_output; i++) {
                const Onnxm__ValueInfo *info = i < g->n_input ? g->input[i] : g->output[i - g->n_input];
                if (info->type && info->type->tensor_type)
                        continue;
                af_diag_error(diags, info->name ? info->name : "model", "dtype: a sequence, map or optional value");
                return AF_ONNX_E_REFUSED;
        }
        return 0;
}
