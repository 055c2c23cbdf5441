/* SPDX-License-Identifier: Apache-2.0 */
/* A graph as Graphviz text: kernels are clusters, nodes left to the framework are dashed, views that need no step are dotted. */
#include <inttypes.h>

#include "compiler/fusion/fusion.h"

/* Names come from the sender: quotes and control characters must not end the label. */
static void put_label(struct af_buf *buf, const char *s) {
        for (; s && *s; s++) {
                unsigned char c = (unsigned char)*s;
                if (c == '"' || c == '\\')
                        af_buf_put_u8(buf, '\\');
                af_buf_put_u8(buf, c < 0x20 || c == 0x7f ? ' ' : c);
        }
}

static void put_shape(const struct af_graph *g, uint32_t value, struct af_buf *buf) {
        const struct af_value *v = &g->values[value];
        af_buf_printf(buf, "%s[", af_dtype_name(v->dtype));
        for (uint32_t i = 0; i < v->rank; i++) {
                if (i > 0)
                        af_buf_put_str(buf, ",");
                af_expr_print(&g->exprs, v->dims[i], NULL, buf);
        }
        af_buf_put_str(buf, "]");
}

static void put_node(const struct af_graph *g, const struct af_fusion *f, uint32_t n, struct af_buf *buf) {
        const struct af_node *node = &g->nodes[n];
        af_buf_printf(buf, "    n%" PRIu32 " [label=\"%s", n, af_op_info(node->op)->name);
        if (node->origin && node->op == AF_OP_OPAQUE) {
                af_buf_put_str(buf, " ");
                put_label(buf, node->origin);
        }
        if (node->n_out > 0) {
                af_buf_put_str(buf, "\\n");
                put_shape(g, node->out[0], buf);
        }
        if (f && f->fallback[n]) {
                af_buf_put_str(buf, "\\n");
                put_label(buf, f->fallback[n]);
        }
        af_buf_put_str(buf, "\"");
        if (f && f->fallback[n])
                af_buf_put_str(buf, ", style=dashed");
        else if (f && f->alias_view[n])
                af_buf_put_str(buf, ", style=dotted");
        af_buf_put_str(buf, "];\n");
}

static void put_groups(const struct af_graph *g, const struct af_fusion *f, struct af_buf *buf) {
        for (uint32_t i = 0; i < f->n_groups; i++) {
                const struct af_group *group = &f->groups[i];
                af_buf_printf(buf, "  subgraph cluster_%" PRIu32 " {\n    label=\"kernel %" PRIu32, i, i);
                if (group->rule) {
                        af_buf_put_str(buf, ": ");
                        put_label(buf, group->rule->name);
                }
                af_buf_put_str(buf, "\";\n");
                for (uint32_t k = 0; k < group->n_nodes; k++)
                        put_node(g, f, group->nodes[k], buf);
                af_buf_put_str(buf, "  }\n");
        }
}

/* Left over where its value is computed again by those who read it. */
static bool is_dead(const struct af_fusion *f, uint32_t n) {
        return f && f->group_of[n] == AF_NONE && !f->fallback[n] && !f->alias_view[n];
}

static void put_edges(const struct af_graph *g, const struct af_fusion *f, struct af_buf *buf) {
        for (uint32_t n = 0; n < g->n_nodes; n++)
                for (uint32_t i = 0; i < g->nodes[n].n_in && !is_dead(f, n); i++) {
                        const struct af_value *v = &g->values[g->nodes[n].in[i]];
                        if (v->kind == AF_VALUE_NODE)
                                af_buf_printf(buf, "  n%" PRIu32 " -> n%" PRIu32 ";\n", v->index, n);
                        else if (v->kind == AF_VALUE_INPUT)
                                af_buf_printf(buf, "  in%" PRIu32 " -> n%" PRIu32 ";\n", v->index, n);
                }
        for (uint32_t i = 0; i < g->n_outputs; i++) {
                const struct af_value *v = &g->values[g->outputs[i].value];
                if (v->kind == AF_VALUE_CONST)
                        af_buf_printf(buf, "  const%" PRIu32 " -> out%" PRIu32 ";\n", v->index, i);
                else
                        af_buf_printf(buf, "  %s%" PRIu32 " -> out%" PRIu32 ";\n", v->kind == AF_VALUE_NODE ? "n" : "in", v->index, i);
        }
}

void af_fusion_dot(const struct af_graph *g, const struct af_fusion *fusion, struct af_buf *buf) {
        af_buf_put_str(buf, "digraph fragment {\n  node [shape=box, fontname=\"sans-serif\"];\n");
        for (uint32_t i = 0; i < g->n_inputs; i++) {
                af_buf_printf(buf, "  in%" PRIu32 " [shape=ellipse, label=\"input %" PRIu32 "\\n", i, i);
                put_shape(g, g->inputs[i].value, buf);
                af_buf_put_str(buf, "\"];\n");
        }
        for (uint32_t i = 0; i < g->n_outputs; i++)
                af_buf_printf(buf, "  out%" PRIu32 " [shape=ellipse, label=\"output %" PRIu32 "\"];\n", i, i);
        if (fusion)
                put_groups(g, fusion, buf);
        for (uint32_t n = 0; n < g->n_nodes; n++)
                if (!fusion || (fusion->group_of[n] == AF_NONE && !is_dead(fusion, n)))
                        put_node(g, fusion, n, buf);
        put_edges(g, fusion, buf);
        af_buf_put_str(buf, "}\n");
}
