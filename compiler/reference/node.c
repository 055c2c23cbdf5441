/* SPDX-License-Identifier: Apache-2.0 */
/* One node: elementwise by numeric/'s programs, views and broadcasts as copies, gather. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/reference/internal.h"

#define BLOCK        8192 /* elements gathered at a time where an operand is not dense */
#define MAX_OPERANDS 4    /* of an elementwise op */

int af_reference_dense(const struct af_tensor *t, const void **ret_data, void **ret_owned) {
        struct af_view v;

        af_view_of(t, &v);
        *ret_owned = NULL;
        if (af_view_is_dense(&v)) {
                *ret_data = v.data;
                return 0;
        }
        void *copy = malloc((size_t)v.count * v.elem_bytes + 1);
        if (!copy)
                return -ENOMEM;
        af_view_read(&v, 0, v.count, copy);
        *ret_data = *ret_owned = copy;
        return 0;
}

/* One elementwise evaluation under way. */
struct elementwise {
        enum af_op op;
        uint32_t n_in;
        struct af_expand_operand operands[MAX_OPERANDS];
        enum af_dtype dtypes[MAX_OPERANDS];
        struct af_expand_attrs attrs;
        enum af_dtype out_dtype;
        struct af_view in[MAX_OPERANDS], out;
        struct af_prog *prog;   /* NULL: the op's scalar definition */
        bool float64;           /* by float64.c */
        void *scratch, *blocks; /* blocks: one per operand, then the result's */
};

static int evaluate(struct elementwise *e, const void *const *srcs, void *dst, int64_t n) {
        if (e->float64)
                return af_reference_float64(e->op, e->operands, e->n_in, e->out_dtype, &e->attrs, srcs, dst, n);
        if (!e->prog)
                return af_eval_op(e->op, e->operands, e->n_in, e->out_dtype, &e->attrs, srcs, dst, (size_t)n, e->scratch);
        af_prog_eval(e->prog, e->dtypes, srcs, dst, (size_t)n, e->scratch);
        return 0;
}

static int run_blocks(struct elementwise *e) {
        const void *srcs[MAX_OPERANDS] = {NULL};
        bool dense = af_view_is_dense(&e->out);
        int r = 0;

        for (uint32_t k = 0; k < e->n_in; k++)
                dense &= e->operands[k].is_scalar || af_view_is_dense(&e->in[k]);
        int64_t step = dense ? AF_MAX(e->out.count, (int64_t)1) : BLOCK;
        for (int64_t at = 0; at < e->out.count && r == 0; at += step) {
                int64_t n = AF_MIN(step, e->out.count - at);
                char *block = e->blocks;
                for (uint32_t k = 0; k < e->n_in; k++, block += BLOCK * 8) {
                        const struct af_view *v = &e->in[k];
                        if (e->operands[k].is_scalar)
                                continue;
                        if (!af_view_is_dense(v))
                                af_view_read(v, at, n, block);
                        srcs[k] = af_view_is_dense(v) ? v->data + at * v->elem_bytes : block;
                }
                bool direct = af_view_is_dense(&e->out);
                void *dst = direct ? e->out.data + at * e->out.elem_bytes : block;
                r = evaluate(e, srcs, dst, n);
                if (r == 0 && !direct)
                        af_view_write(&e->out, at, n, dst);
        }
        return r;
}

static uint64_t scalar_bits(const struct af_tensor *t) {
        uint64_t bits = 0;

        memcpy(&bits, t->data, af_dtype_size(t->dtype)); /* little-endian hosts only, as the formats are */
        return bits;
}

/* Operands and views; 0, or SHAPE. */
static int prepare(struct elementwise *e, const struct af_graph *g, const struct af_node *n, const struct af_tensor *in,
                   struct af_tensor *out, const char **ret_why) {
        af_view_of(out, &e->out);
        af_node_expand_args(g, n, e->operands, &e->attrs);
        for (uint32_t k = 0; k < n->n_in; k++) {
                const struct af_value *v = &g->values[n->in[k]];
                e->dtypes[k] = in[k].dtype;
                if (v->kind == AF_VALUE_INPUT && g->inputs[v->index].host) {
                        e->operands[k].is_scalar = true;
                        e->operands[k].bits = scalar_bits(&in[k]);
                }
                if (!af_view_broadcast(&in[k], out->rank, out->dims, &e->in[k])) {
                        *ret_why = "an operand does not broadcast to the result";
                        return AF_REFERENCE_E_SHAPE;
                }
        }
        return 0;
}

static bool has_float64(const struct elementwise *e) {
        for (uint32_t k = 0; k < e->n_in; k++)
                if (e->operands[k].dtype == AF_DTYPE_FLOAT64)
                        return true;
        return e->out_dtype == AF_DTYPE_FLOAT64;
}

int af_reference_elementwise(const struct af_graph *g, const struct af_node *n, const struct af_tensor *in, struct af_tensor *out,
                             const char **ret_why) {
        struct elementwise e = {.op = n->op, .n_in = n->n_in, .out_dtype = out->dtype};
        const char *why = NULL;
        int r = prepare(&e, g, n, in, out, ret_why);

        if (r != 0)
                return r;
        e.prog = malloc(sizeof(*e.prog));
        e.blocks = malloc((size_t)(n->n_in + 1) * BLOCK * 8);
        e.scratch = malloc(af_eval_scratch_bytes((size_t)AF_MAX(e.out.count, (int64_t)BLOCK)));
        struct af_prog *prog = e.prog;
        if (!e.prog || !e.blocks || !e.scratch) {
                r = -ENOMEM;
        } else {
                if (af_expand(n->op, e.operands, n->n_in, e.out_dtype, &e.attrs, e.prog, &why) != 0)
                        e.prog = NULL;
                e.float64 = !e.prog && has_float64(&e) && !af_eval_op_supported(n->op, e.operands, n->n_in, e.out_dtype);
                r = run_blocks(&e);
        }
        free(prog);
        free(e.blocks);
        free(e.scratch);
        if (r > 0) {
                *ret_why = why ? why : "no definition for these dtypes";
                r = AF_REFERENCE_E_UNSUPPORTED;
        }
        return r;
}

/* Elements of in, seen with the result's shape (broadcast) or in their own order (views), to out. */
static int copy_node(const struct af_node *n, const struct af_tensor *in, struct af_tensor *out, const char **ret_why) {
        bool broadcast = af_op_info(n->op)->cls == AF_CLASS_BROADCAST;
        struct af_view from, to;
        void *block;

        af_view_of(out, &to);
        if (broadcast ? !af_view_broadcast(in, out->rank, out->dims, &from) : (af_view_of(in, &from), from.count != to.count)) {
                *ret_why = "the operand has another shape";
                return AF_REFERENCE_E_SHAPE;
        }
        block = malloc(BLOCK * 8);
        if (!block)
                return -ENOMEM;
        for (int64_t at = 0; at < to.count; at += BLOCK) {
                int64_t m = AF_MIN((int64_t)BLOCK, to.count - at);
                af_view_read(&from, at, m, block);
                af_view_write(&to, at, m, block);
        }
        free(block);
        return 0;
}

static int64_t product(const int64_t *dims, uint32_t from, uint32_t to) {
        int64_t n = 1;

        for (uint32_t i = from; i < to; i++)
                n *= dims[i];
        return n;
}

static int64_t index_at(const void *index, enum af_dtype d, int64_t i) {
        return d == AF_DTYPE_INT32 ? ((const int32_t *)index)[i] : ((const int64_t *)index)[i];
}

/* A negative index counts from the end; one that is still out of range gives zeros. */
int af_reference_gather(const struct af_node *n, const struct af_tensor *in, struct af_tensor *out, const char **ret_why) {
        const struct af_attr *axis_attr = af_node_attr(n, AF_ATTR_AXIS);
        uint32_t axis = axis_attr ? (uint32_t)axis_attr->i : 0;
        const void *data, *index;
        void *own_data = NULL, *own_index = NULL, *row;
        struct af_view to;
        int r;

        if (axis >= in[0].rank) {
                *ret_why = "the axis is outside of the data";
                return AF_REFERENCE_E_SHAPE;
        }
        int64_t outer = product(in[0].dims, 0, axis), inner = product(in[0].dims, axis + 1, in[0].rank);
        int64_t size = in[0].dims[axis], n_index = af_tensor_count(&in[1]);
        size_t row_bytes = (size_t)inner * af_dtype_size(in[0].dtype);
        af_view_of(out, &to);
        if (to.count != outer * n_index * inner) {
                *ret_why = "the result has another shape";
                return AF_REFERENCE_E_SHAPE;
        }
        r = af_reference_dense(&in[0], &data, &own_data);
        if (r == 0)
                r = af_reference_dense(&in[1], &index, &own_index);
        row = r == 0 ? calloc(1, row_bytes + 1) : NULL;
        for (int64_t o = 0; row && inner > 0 && o < outer; o++)
                for (int64_t i = 0; i < n_index; i++) {
                        int64_t at = index_at(index, in[1].dtype, i);
                        bool inside = at >= -size && at < size;
                        const char *from = inside ? (const char *)data + (size_t)(o * size + (at < 0 ? at + size : at)) * row_bytes : row;
                        af_view_write(&to, (o * n_index + i) * inner, inner, from);
                }
        if (r == 0 && !row)
                r = -ENOMEM;
        free(row);
        free(own_data);
        free(own_index);
        return r;
}

int af_reference_node_with(const struct af_reference_node *r, const struct af_tensor *in, struct af_tensor *out) {
        switch (af_op_info(r->n->op)->cls) {
        case AF_CLASS_ELEMENTWISE:
        case AF_CLASS_COMPARE:
        case AF_CLASS_SELECT:
        case AF_CLASS_CAST:
                return af_reference_elementwise(r->g, r->n, in, out, r->ret_why);
        case AF_CLASS_BROADCAST:
        case AF_CLASS_VIEW:
                return copy_node(r->n, in, out, r->ret_why);
        case AF_CLASS_REDUCE:
                return af_reference_reduce(r->g, r->n, in, out, r->ret_why);
        case AF_CLASS_GATHER:
                return r->n->op == AF_OP_GATHER ? af_reference_gather(r->n, in, out, r->ret_why) : af_reference_move(r, in, out);
        case AF_CLASS_TRANSPOSE:
        case AF_CLASS_SLICE:
        case AF_CLASS_PAD:
        case AF_CLASS_CONCAT:
        case AF_CLASS_SPLIT:
        case AF_CLASS_IOTA:
                return af_reference_move(r, in, out);
        case AF_CLASS_SCAN:
                return af_reference_scan(r, in, out);
        case AF_CLASS_COMPOSITE:
                return af_reference_composite(r, in, out);
        case AF_CLASS_OPAQUE:
                *r->ret_why = "an opaque node is the framework's own";
                return AF_REFERENCE_E_UNSUPPORTED;
        }
        *r->ret_why = "no definition for this class of ops";
        return AF_REFERENCE_E_UNSUPPORTED;
}

int af_reference_node(const struct af_graph *g, const struct af_node *n, const struct af_tensor *in, struct af_tensor *out,
                      const char **ret_why) {
        const char *why;

        return af_reference_node_with(&(struct af_reference_node){.g = g, .n = n, .ret_why = ret_why ? ret_why : &why}, in, out);
}
