/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/graph/traffic.h"

#define MAX_COUNTED 64u /* values told apart; kernels have no more pointers */

/* Elements with every symbol at its hint; 0 where that is none or overflows. */
static int64_t elements(const struct af_graph *g, uint32_t value) {
        const struct af_value *v = &g->values[value];
        int64_t n = 1, d, symbols[AF_LIMIT_SYMBOLS];
        bool ready = false;
        for (uint32_t i = 0; i < v->rank; i++) {
                if (!af_expr_is_const(&g->exprs, v->dims[i], &d)) {
                        if (!ready)
                                af_graph_hints(g, symbols);
                        ready = true;
                        if (af_expr_eval(&g->exprs, v->dims[i], symbols, &d))
                                return 0;
                }
                if (d < 0 || __builtin_mul_overflow(n, d, &n))
                        return 0;
        }
        return n;
}

static int64_t sized(const struct af_graph *g, uint32_t value, int64_t n) {
        int64_t bytes;
        return __builtin_mul_overflow(n, (int64_t)af_dtype_size(g->values[value].dtype), &bytes) ? 0 : bytes;
}

int64_t af_value_bytes(const struct af_graph *g, uint32_t value) {
        return sized(g, value, elements(g, value));
}

int64_t af_operand_bytes(const struct af_graph *g, uint32_t node, uint32_t k) {
        const struct af_node *n = &g->nodes[node];
        enum af_op_class cls = af_op_info(n->op)->cls;
        int64_t all = elements(g, n->in[k]), out = 0;
        if (cls == AF_CLASS_REDUCE || cls == AF_CLASS_OPAQUE)
                return sized(g, n->in[k], all);
        for (uint32_t i = 0; i < n->n_out; i++)
                if (__builtin_add_overflow(out, elements(g, n->out[i]), &out))
                        return sized(g, n->in[k], all);
        return sized(g, n->in[k], AF_MIN(all, out));
}

static bool makes(const struct af_graph *g, const uint32_t *nodes, uint32_t n, uint32_t value) {
        const struct af_value *v = &g->values[value];
        uint32_t lo = 0, hi = n;
        while (v->kind == AF_VALUE_NODE && lo < hi) {
                uint32_t mid = (lo + hi) / 2;
                if (nodes[mid] == v->index)
                        return true;
                if (nodes[mid] < v->index)
                        lo = mid + 1;
                else
                        hi = mid;
        }
        return false;
}

int64_t af_traffic(const struct af_graph *g, const uint32_t *nodes, uint32_t n_nodes, const uint32_t *stored, uint32_t n_stored) {
        struct {
                uint32_t value;
                int64_t touched;
        } reads[MAX_COUNTED];
        uint32_t n_reads = 0;
        int64_t bytes = 0;
        for (uint32_t i = 0; i < n_nodes; i++) {
                const struct af_node *n = &g->nodes[nodes[i]];
                for (uint32_t k = 0; k < n->n_in; k++) {
                        uint32_t v = n->in[k], at = 0;
                        if ((g->values[v].kind == AF_VALUE_CONST && g->values[v].rank == 0) || makes(g, nodes, n_nodes, v))
                                continue;
                        while (at < n_reads && reads[at].value != v)
                                at++;
                        if (at == MAX_COUNTED) { /* beyond what a kernel can have */
                                bytes += af_operand_bytes(g, nodes[i], k);
                                continue;
                        }
                        if (at == n_reads) {
                                reads[n_reads].value = v;
                                reads[n_reads++].touched = 0;
                        }
                        reads[at].touched += af_operand_bytes(g, nodes[i], k);
                }
        }
        for (uint32_t i = 0; i < n_reads; i++)
                bytes += AF_MIN(reads[i].touched, af_value_bytes(g, reads[i].value));
        for (uint32_t i = 0; i < n_stored; i++)
                bytes += af_value_bytes(g, stored[i]);
        return bytes;
}
