/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/kernel_group.h"

#include <errno.h>
#include <string.h>

static bool in_list(const uint32_t *list, uint32_t n, uint32_t v) {
        for (uint32_t i = 0; i < n; i++)
                if (list[i] == v)
                        return true;
        return false;
}

static bool is_output(const struct af_graph *g, uint32_t v) {
        for (uint32_t k = 0; k < g->n_outputs; k++)
                if (g->outputs[k].value == v)
                        return true;
        return false;
}

int kernel_group_make(const struct af_graph *g, const struct kernel_users *users, const uint32_t *nodes, uint32_t n,
                      struct af_group *ret_group) {
        uint32_t n_in = 0;
        for (uint32_t i = 0; i < n; i++)
                n_in += g->nodes[nodes[i]].n_in;
        uint32_t *in = af_arena_calloc(g->arena, n_in, sizeof(*in)), *out = af_arena_calloc(g->arena, n, sizeof(*out));
        if (!in || !out)
                return -ENOMEM;
        *ret_group = (struct af_group){.nodes = nodes, .n_nodes = n, .inputs = in, .outputs = out, .tmpl = "mixed_fusion_kernel"};
        for (uint32_t i = 0; i < n; i++) {
                const struct af_node *node = &g->nodes[nodes[i]];
                for (uint32_t k = 0; k < node->n_in; k++) {
                        const struct af_value *v = &g->values[node->in[k]];
                        uint64_t bits;
                        bool inside = v->kind == AF_VALUE_NODE && in_list(nodes, n, v->index);
                        if (!inside && !af_value_scalar(g, node->in[k], &bits) && !in_list(in, ret_group->n_inputs, node->in[k]))
                                in[ret_group->n_inputs++] = node->in[k];
                }
                uint32_t v = node->out[0];
                bool outside = users->first[v] == users->first[v + 1] || is_output(g, v);
                for (uint32_t u = users->first[v]; u < users->first[v + 1]; u++)
                        outside |= !in_list(nodes, n, users->list[u]);
                if (outside)
                        out[ret_group->n_outputs++] = v;
        }
        return 0;
}

uint32_t kernel_group_grow(const struct af_graph *g, struct af_soc *soc, const uint32_t *nodes, uint32_t n, uint32_t max) {
        uint32_t k = 1;
        const char *why = NULL;
        while (k < n && k < max && af_schedule_fusable(soc, g, nodes, k + 1, &why))
                k++;
        return k;
}

void kernel_soc(struct af_soc *ret_soc) {
        *ret_soc = (struct af_soc){.name = "Ascend910B2",
                                   .arch = "dav-2201",
                                   .ccec_arch = "dav-c220-vec",
                                   .vector_cores = 48,
                                   .ub_bytes = 188160,
                                   .queue_buffers = 8,
                                   .max_inputs = 56,
                                   .max_nodes = 256,
                                   .dtypes = 0x1ff << 1, /* all but float64 */
                                   .data_copy_pad = true,
                                   .load = {9.9074, 15.896, 27.01},
                                   .load_small = {7.9052, 7.31, 27.01},
                                   .store = {9.96, 3.79, 12.09},
                                   .head_mte2_base = 1575.03,
                                   .head_mte2_per_block = 32.72,
                                   .head_mte3 = 497.36,
                                   .head_vector = 37.37,
                                   .head_mte2_small_base = 882.09,
                                   .head_mte2_small_per_block = 15.89,
                                   .head_mte2_small_bytes = 25000,
                                   .small_bytes = 25000,
                                   .vec_default_f32 = {.0206, 22.5},
                                   .vec_default_f16 = {.0103, 22.5},
                                   .vec_unary_f32 = {.0147, 20},
                                   .vec_unary_f16 = {.0077, 20},
                                   .vec_wide = {.0332, 18.9},
                                   .vec_u8_f16 = {.0102, 46.5},
                                   .vec_f32_f16 = {.0087, 20.4},
                                   .sync_all_cycles = 1500,
                                   .launch_cycles = 9000};
}
