/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes can be in a kernel at all; the others get the one reason that the framework's line shows. */
#include <errno.h>
#include <string.h>

#include "compiler/fusion/fuse.h"

bool fuse_is_immediate(const struct af_graph *g, uint32_t value) {
        return g->values[value].kind == AF_VALUE_CONST && g->values[value].rank == 0;
}

static bool same_dims(const struct af_value *a, const struct af_value *b) {
        return a->rank == b->rank && (a->rank == 0 || memcmp(a->dims, b->dims, a->rank * sizeof(*a->dims)) == 0);
}

static bool is_dense(const struct af_graph *g, uint32_t value) {
        const struct af_value *v = &g->values[value];
        int64_t dims[AF_LIMIT_RANK], strides[AF_LIMIT_RANK], want = 1;
        if (!v->strides)
                return true;
        if (!af_value_static_dims(g, value, dims) || !af_value_static_strides(g, value, strides))
                return false;
        for (uint32_t i = v->rank; i-- > 0; want *= dims[i])
                if (dims[i] != 1 && strides[i] != want)
                        return false;
        return true;
}

/* Whether numeric/ writes the node as a program of primitives. */
static bool has_program(enum af_op_class cls) {
        return cls == AF_CLASS_ELEMENTWISE || cls == AF_CLASS_COMPARE || cls == AF_CLASS_SELECT || cls == AF_CLASS_CAST ||
               cls == AF_CLASS_BROADCAST || cls == AF_CLASS_REDUCE;
}

uint32_t fuse_node_flags(const struct fuse *f, uint32_t node) {
        const struct af_graph *g = f->g;
        const struct af_node *n = &g->nodes[node];
        enum af_op_class cls = af_op_info(n->op)->cls;
        uint32_t flags = cls == AF_CLASS_VIEW ? FUSE_VIEW : cls == AF_CLASS_BROADCAST ? FUSE_BROADCAST : 0;
        for (uint32_t i = 0; i < n->n_in; i++) {
                if (fuse_is_immediate(g, n->in[i]))
                        continue;
                bool elementwise = has_program(cls) && cls != AF_CLASS_REDUCE;
                if (elementwise && !same_dims(&g->values[n->in[i]], &g->values[n->out[0]]))
                        flags |= FUSE_BROADCAST;
                if (!is_dense(g, n->in[i]))
                        flags |= FUSE_STRIDED;
        }
        for (uint32_t i = 0; i < n->n_out; i++)
                if (!is_dense(g, n->out[i]))
                        flags |= FUSE_STRIDED;
        return flags;
}

uint32_t fuse_node_dtypes(const struct fuse *f, uint32_t node) {
        const struct af_node *n = &f->g->nodes[node];
        uint32_t dtypes = 0;
        for (uint32_t i = 0; i < n->n_in; i++)
                if (!fuse_is_immediate(f->g, n->in[i]))
                        dtypes |= AF_DTYPE_BIT(f->g->values[n->in[i]].dtype);
        for (uint32_t i = 0; i < n->n_out; i++)
                dtypes |= AF_DTYPE_BIT(f->g->values[n->out[i]].dtype);
        return dtypes;
}

void fuse_mark_live(struct fuse *f) {
        const struct af_graph *g = f->g;
        for (uint32_t i = 0; i < g->n_outputs; i++) {
                const struct af_value *v = &g->values[g->outputs[i].value];
                f->is_output[g->outputs[i].value] = true;
                if (v->kind == AF_VALUE_NODE)
                        f->live[v->index] = true;
        }
        for (uint32_t n = g->n_nodes; n-- > 0;) {
                f->live[n] |= g->nodes[n].effects;
                for (uint32_t i = 0; f->live[n] && i < g->nodes[n].n_in; i++) {
                        const struct af_value *v = &g->values[g->nodes[n].in[i]];
                        if (v->kind == AF_VALUE_NODE)
                                f->live[v->index] = true;
                }
        }
}

static const char *expand_reason(const struct fuse *f, const struct af_node *n) {
        const struct af_graph *g = f->g;
        const char *reason = "no program for these dtypes";
        if (af_op_info(n->op)->cls == AF_CLASS_REDUCE) {
                struct af_reduce_plan plan;
                int64_t in = af_value_count(g, n->in[0]), out = af_value_count(g, n->out[0]);
                uint64_t count = out > 0 ? (uint64_t)(in / out) : 0;
                return af_expand_reduce(n->op, g->values[n->in[0]].dtype, g->values[n->out[0]].dtype, count, &plan, &reason) ? reason
                                                                                                                             : NULL;
        }
        struct af_prog prog;
        struct af_expand_operand operands[8];
        struct af_expand_attrs attrs;
        if (n->n_in > AF_ARRAY_SIZE(operands))
                return reason;
        af_node_expand_args(g, n, operands, &attrs);
        return af_expand(n->op, operands, n->n_in, g->values[n->out[0]].dtype, &attrs, &prog, &reason) ? reason : NULL;
}

static const char *value_reason(struct fuse *f, uint32_t value) {
        const struct af_value *v = &f->g->values[value];
        if (af_value_is_wide_scalar(v) || (f->soc->dtypes & AF_DTYPE_BIT(v->dtype)))
                return NULL;
        const char *text = af_arena_printf(f->g->arena, "dtype %s is not supported on %s", af_dtype_name(v->dtype), f->soc->name);
        return text ? text : "dtype not supported";
}

/* NULL, or why no kernel can hold such a node, whatever the schedule says. */
static const char *class_reason(struct fuse *f, uint32_t node) {
        const struct af_graph *g = f->g;
        const struct af_node *n = &g->nodes[node];
        enum af_op_class cls = af_op_info(n->op)->cls;
        const char *why = NULL;
        if (cls == AF_CLASS_OPAQUE || cls == AF_CLASS_COMPOSITE) {
                const char *text = af_arena_printf(g->arena, "no template for op class %s", af_op_class_name(cls));
                return text ? text : "no template for this op class";
        }
        for (uint32_t i = 0; !why && i < n->n_in; i++)
                if (!fuse_is_immediate(g, n->in[i]))
                        why = value_reason(f, n->in[i]);
        for (uint32_t i = 0; !why && i < n->n_out; i++)
                why = value_reason(f, n->out[i]);
        return !why && has_program(cls) ? expand_reason(f, n) : why;
}

/* Why no kernel can hold the node alone, or NULL; what the node's class decides is found once for all nodes that are alike. */
static int alone_reason(struct fuse *f, uint32_t node, const char **ret_why) {
        uint32_t k = f->alike->node_class[node], n;
        struct af_fuse_answer answer;
        if (!f->reason_known[k]) {
                f->reasons[k] = class_reason(f, node);
                f->reason_known[k] = true;
        }
        *ret_why = f->reasons[k];
        if (*ret_why)
                return 0;
        f->nodes[0] = node;
        int r = fuse_stored(f, n = 1);
        if (!r && !fuse_ask(f, n, &answer))
                *ret_why = answer.why;
        return r;
}

int fuse_classify(struct fuse *f) {
        const struct af_graph *g = f->g;
        for (uint32_t n = 0; n < g->n_nodes; n++) {
                const struct af_node *node = &g->nodes[n];
                if (!f->live[n])
                        continue;
                /* squeeze and unsqueeze keep any strides; a reshape is the same memory only where that has no gaps */
                if (af_op_info(node->op)->cls == AF_CLASS_VIEW)
                        f->alias[n] = node->op != AF_OP_RESHAPE || is_dense(g, node->in[0]);
                int r = f->alias[n] ? 0 : alone_reason(f, n, &f->fallback[n]);
                if (r)
                        return r;
        }
        return 0;
}
