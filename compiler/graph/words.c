/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/graph/words.h"

/* Room for the operations, so that inputs and outputs are told, too. */
#define OPS_BYTES    500u
#define INPUTS_BYTES 800u

static void put_value(const struct af_graph *g, uint32_t value, struct af_buf *buf) {
        const struct af_value *v = &g->values[value];
        int64_t n;

        af_buf_printf(buf, " %s[", af_dtype_name(v->dtype));
        for (uint32_t i = 0; i < v->rank; i++) {
                af_buf_put_str(buf, i ? "," : "");
                if (af_expr_is_const(&g->exprs, v->dims[i], &n))
                        af_buf_printf(buf, "%lld", (long long)n);
                else
                        af_buf_put_str(buf, "?");
        }
        af_buf_put_u8(buf, ']');
}

void af_graph_words(const struct af_graph *g, struct af_buf *buf) {
        static const char *const twins[] = {[AF_TWIN_DEFAULT] = "", [AF_TWIN_FAST] = " twin-fast", [AF_TWIN_CHECKED] = " twin-checked"};
        size_t start = buf->size;
        uint32_t i;

        af_buf_printf(buf, "%s %s%s %s", g->soc ? g->soc : "default-soc", g->toolchain ? g->toolchain : "default-toolchain", twins[g->twin],
                      g->numerics == AF_NUMERICS_FAST ? "fast" : "strict");
        for (i = 0; i < g->n_nodes && buf->size - start < OPS_BYTES; i++)
                af_buf_printf(buf, " %s", af_op_info(g->nodes[i].op)->name);
        if (i < g->n_nodes)
                af_buf_printf(buf, " +%u", g->n_nodes - i);
        af_buf_put_str(buf, " in");
        for (i = 0; i < g->n_inputs && buf->size - start < INPUTS_BYTES; i++)
                put_value(g, g->inputs[i].value, buf);
        if (i < g->n_inputs)
                af_buf_printf(buf, " +%u", g->n_inputs - i);
        af_buf_put_str(buf, " out");
        for (i = 0; i < g->n_outputs && buf->size - start < AF_GRAPH_WORDS_BYTES - 100; i++)
                put_value(g, g->outputs[i].value, buf);
        if (i < g->n_outputs)
                af_buf_printf(buf, " +%u", g->n_outputs - i);
}
