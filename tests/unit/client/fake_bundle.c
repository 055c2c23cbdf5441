/* SPDX-License-Identifier: Apache-2.0 */

#include "compiler/graph/canon.h"
#include "tests/unit/client/fake_server.h"

static uint64_t value_bytes(const struct af_graph *g, uint32_t v) {
        return (uint64_t)af_value_count(g, v) * af_dtype_size(g->values[v].dtype);
}

/* One buffer and one tensor per value, with the same number. */
static void add_value(struct af_bundle_builder *b, const struct af_graph *g, uint32_t v, struct af_bundle_buffer buffer, int64_t offset) {
        struct af_bundle_tensor t = {.buffer = v, .dtype = g->values[v].dtype, .rank = g->values[v].rank, .offset = offset};
        MUST(af_value_static_dims(g, v, t.dims) && af_value_static_strides(g, v, t.strides));
        af_bundle_add(b, AF_SECTION_BUFFERS, &buffer);
        af_bundle_add(b, AF_SECTION_TENSORS, &t);
}

static void add_values(struct af_bundle_builder *b, const struct af_graph *g) {
        uint64_t temp = 0;
        for (uint32_t v = 0; v < g->n_values; v++) {
                struct af_bundle_buffer buffer = {.kind = AF_BUFFER_TEMP, .offset = temp, .bytes = AF_ALIGN_UP(value_bytes(g, v), 512)};
                int64_t offset = 0;
                if (g->values[v].kind == AF_VALUE_INPUT) {
                        af_expr_is_const(&g->exprs, g->inputs[g->values[v].index].offset, &offset);
                        buffer = (struct af_bundle_buffer){.kind = AF_BUFFER_INPUT,
                                                           .slot = g->values[v].index,
                                                           .bytes = value_bytes(g, v) +
                                                                    (uint64_t)offset * af_dtype_size(g->values[v].dtype)};
                } else if (g->values[v].kind == AF_VALUE_CONST) {
                        const struct af_graph_constant *c = &g->constants[g->values[v].index];
                        buffer = (struct af_bundle_buffer){
                                .kind = AF_BUFFER_CONST, .bytes = c->n_bytes, .data = af_bundle_add_blob(b, c->bytes, c->n_bytes, 64)};
                }
                for (uint32_t i = g->n_outputs; i-- > 0 && buffer.kind == AF_BUFFER_TEMP;)
                        if (g->outputs[i].value == v)
                                buffer = (struct af_bundle_buffer){.kind = AF_BUFFER_OUTPUT, .slot = i, .bytes = value_bytes(g, v)};
                if (buffer.kind == AF_BUFFER_TEMP)
                        temp += buffer.bytes;
                add_value(b, g, v, buffer, offset);
        }
}

static void add_steps(struct af_bundle_builder *b, const struct af_graph *g) {
        uint32_t n_values = 0;
        for (uint32_t i = 0; i < g->n_nodes; i++) {
                const struct af_node *n = &g->nodes[i];
                struct af_bundle_step step = {.kind = AF_STEP_FRAMEWORK,
                                              .node = i,
                                              .op = n->op,
                                              .first_value = n_values,
                                              .n_inputs = n->n_in,
                                              .n_outputs = n->n_out};
                struct af_bundle_decision d = {.kind = 2, .node_a = i, .node_b = AF_NONE, .group = AF_NONE};
                step.reason = d.reason = af_bundle_add_str(b, "no template for this test");
                for (uint32_t j = 0; j < n->n_in; j++)
                        af_bundle_add(b, AF_SECTION_FALLBACK_VALUES, &n->in[j]);
                for (uint32_t j = 0; j < n->n_out; j++)
                        af_bundle_add(b, AF_SECTION_FALLBACK_VALUES, &n->out[j]);
                n_values += n->n_in + n->n_out;
                af_bundle_add(b, AF_SECTION_STEPS, &step);
                af_bundle_add(b, AF_SECTION_DECISIONS, &d);
        }
}

void fake_bundle(const void *canon, size_t n, struct af_buf *out) {
        struct af_arena arena;
        struct af_graph g;
        struct af_bundle_builder b;
        af_arena_init(&arena, 0);
        af_bundle_builder_init(&b);
        MUST(af_canon_read(&g, &arena, canon, n, NULL) == 0);
        add_values(&b, &g);
        add_steps(&b, &g);
        for (uint32_t i = 0; i < g.n_inputs; i++)
                af_bundle_add(&b, AF_SECTION_INPUTS, &(struct af_bundle_input){.tensor = g.inputs[i].value, .align = g.inputs[i].align});
        for (uint32_t i = 0; i < g.n_outputs; i++)
                af_bundle_add(&b, AF_SECTION_OUTPUTS,
                              &(struct af_bundle_output){.tensor = g.outputs[i].value, .alias_of = g.outputs[i].alias_of});
        MUST(af_bundle_finish(&b, 0, out) == 0);
        af_bundle_builder_deinit(&b);
        af_arena_deinit(&arena);
}
