/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of one node: its output's dtype by the op's dtype rule, then its shape by the shape rule (shape.c). */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "compiler/graph/internal.h"
#include "compiler/graph/shape.h"

void af_where_error(struct af_diags *diags, const struct af_where *w, const char *field, const char *hint, const char *fmt, ...) {
        char what[1024], where[1400];
        va_list args;

        if (!diags)
                return;
        va_start(args, fmt);
        vsnprintf(what, sizeof(what), fmt, args);
        va_end(args);
        if (w->text)
                snprintf(where, sizeof(where), "%s%s", w->text, field);
        else if (w->name && *w->name)
                snprintf(where, sizeof(where), "%s[%u] \"%.1100s\"%s", w->list, w->index, w->name, field);
        else
                snprintf(where, sizeof(where), "%s[%u]%s", w->list, w->index, field);
        af_diag_add(diags, AF_SEVERITY_ERROR, where, hint, "%s", what);
}

void af_infer_fail_hint(struct af_infer_ctx *ctx, const char *field, const char *hint, const char *fmt, ...) {
        char what[1024];
        va_list args;

        va_start(args, fmt);
        vsnprintf(what, sizeof(what), fmt, args);
        va_end(args);
        af_where_error(ctx->diags, &ctx->where, field, hint, "%s", what);
        ctx->failed = true;
}

const char *af_dims_text(const struct af_expr_pool *exprs, struct af_arena *arena, const char *const *names, const uint32_t *dims,
                         uint32_t rank) {
        struct af_buf buf = AF_BUF_INIT;
        const char *text = NULL;

        af_buf_put_u8(&buf, '[');
        for (uint32_t i = 0; i < rank; i++) {
                if (i > 0)
                        af_buf_put(&buf, ", ", 2);
                af_expr_print(exprs, dims[i], names, &buf);
        }
        af_buf_put_u8(&buf, ']');
        if (!af_buf_error(&buf))
                text = af_arena_memdup(arena, buf.data, buf.size);
        af_buf_deinit(&buf);
        return text ? text : "[?]";
}

const char *af_infer_dims_text(struct af_infer_ctx *ctx, const uint32_t *dims, uint32_t rank) {
        return af_dims_text(ctx->exprs, ctx->arena, ctx->facts.names, dims, rank);
}

bool af_dims_equal(struct af_expr_pool *exprs, const struct af_symbol_facts *facts, uint32_t a, uint32_t b) {
        int64_t va, vb, min_a, max_a, min_b, max_b;
        uint32_t diff;

        if (a == b)
                return true;
        bool const_a = af_expr_is_const(exprs, a, &va), const_b = af_expr_is_const(exprs, b, &vb);
        if (const_a && const_b)
                return va == vb;
        if (af_expr_binary(exprs, AF_EXPR_SUB, a, b, &diff) == 0 && af_expr_is_const(exprs, diff, &va))
                return va == 0;
        if (!facts->mins)
                return false;
        af_expr_range(exprs, a, facts->mins, facts->maxs, &min_a, &max_a);
        af_expr_range(exprs, b, facts->mins, facts->maxs, &min_b, &max_b);
        return min_a == max_a && min_b == max_b && min_a == min_b;
}

bool af_infer_expr(struct af_infer_ctx *ctx, const char *field, enum af_expr_kind kind, uint32_t a, uint32_t b, uint32_t *ret_id) {
        int r = af_expr_binary(ctx->exprs, kind, a, b, ret_id);

        if (r < 0)
                ctx->error = r;
        else if (r == AF_EXPR_E_OVERFLOW)
                af_infer_fail(ctx, field, "the size is beyond 64 bits");
        else if (r == AF_EXPR_E_DIV_ZERO)
                af_infer_fail(ctx, field, "a division by zero");
        else if (r != 0)
                af_infer_fail(ctx, field, "the size expression is nested beyond the limit of %d", AF_EXPR_MAX_DEPTH);
        return r == 0;
}

bool af_infer_const(struct af_infer_ctx *ctx, int64_t v, uint32_t *ret_id) {
        int r = af_expr_const(ctx->exprs, v, ret_id);

        if (r != 0)
                ctx->error = -ENOMEM;
        return r == 0;
}

/* float64 is never compiled, but a graph may hold it: such nodes are the framework's. */
static bool dtype_defined(const struct af_op_info *info, enum af_dtype d) {
        uint32_t dtypes = info->dtypes;

        if (dtypes & AF_DTYPE_BIT(AF_DTYPE_FLOAT32))
                dtypes |= AF_DTYPE_BIT(AF_DTYPE_FLOAT64);
        return dtypes & AF_DTYPE_BIT(d);
}

static void check_defined(struct af_infer_ctx *ctx, uint32_t operand, enum af_dtype d) {
        char field[32];

        if (dtype_defined(ctx->info, d))
                return;
        snprintf(field, sizeof(field), ".inputs[%u]", operand);
        af_infer_fail_hint(ctx, field, "cast it first", "%s is not defined on %s", ctx->info->name, af_dtype_name(d));
}

#define NO_OPERAND UINT32_MAX

/*
 * The one dtype of the operands but `except`: that of the tensors among them; scalars may be wider floats. With scalars alone they must
 * agree. INVALID with a diagnostic where they do not.
 */
static enum af_dtype common_dtype(struct af_infer_ctx *ctx, uint32_t except) {
        enum af_dtype d = AF_DTYPE_INVALID;
        uint32_t first = except == 0;
        char field[32];

        for (uint32_t i = first; i < ctx->n_in && d == AF_DTYPE_INVALID; i++)
                if (!ctx->in[i].scalar && i != except)
                        d = ctx->in[i].dtype;
        bool tensors = d != AF_DTYPE_INVALID;
        if (!tensors)
                d = ctx->in[first].dtype;
        for (uint32_t i = first; i < ctx->n_in; i++) {
                enum af_dtype o = ctx->in[i].dtype;
                if (i == except)
                        continue;
                bool wider = af_dtype_kind(o) == 'f' && af_dtype_kind(d) == 'f' && af_dtype_size(o) > af_dtype_size(d);
                if (o == d || (tensors && ctx->in[i].scalar && wider))
                        continue;
                snprintf(field, sizeof(field), ".inputs[%u]", i);
                af_infer_fail_hint(ctx, field, "cast one of them; only a scalar float may be wider than the tensors",
                                   "%s meets %s: %s takes operands of one dtype", af_dtype_name(o), af_dtype_name(d), ctx->info->name);
                return AF_DTYPE_INVALID;
        }
        check_defined(ctx, first, d);
        return d;
}

bool af_infer_dtype_allowed(enum af_op op, enum af_dtype in, enum af_dtype stated) {
        switch (af_op_info(op)->dtype_rule) {
        case AF_DTYPES_CAST:
                return true;
        case AF_DTYPES_DECLARED:
        case AF_DTYPES_ONE_HOT:
                return op == AF_OP_OPAQUE || dtype_defined(af_op_info(op), stated);
        case AF_DTYPES_SUM:
                if (in == stated)
                        return in != AF_DTYPE_BOOL;
                if (in == AF_DTYPE_INT64 || af_dtype_kind(in) == 'f')
                        return false;
                return stated == AF_DTYPE_INT32 || stated == AF_DTYPE_INT64;
        default:
                return false;
        }
}

static enum af_dtype where_dtype(struct af_infer_ctx *ctx) {
        if (ctx->in[0].dtype != AF_DTYPE_BOOL)
                af_infer_fail(ctx, ".inputs[0]", "the condition is %s, not bool", af_dtype_name(ctx->in[0].dtype));
        return common_dtype(ctx, 0);
}

static enum af_dtype gather_dtype(struct af_infer_ctx *ctx) {
        enum af_dtype index = ctx->in[1].dtype;

        if (index != AF_DTYPE_INT32 && index != AF_DTYPE_INT64)
                af_infer_fail(ctx, ".inputs[1]", "the index is %s, neither int32 nor int64", af_dtype_name(index));
        check_defined(ctx, 0, ctx->in[0].dtype);
        return ctx->in[0].dtype;
}

static enum af_dtype masked_dtype(struct af_infer_ctx *ctx) {
        if (ctx->in[1].dtype != AF_DTYPE_BOOL)
                af_infer_fail(ctx, ".inputs[1]", "the mask is %s, not bool", af_dtype_name(ctx->in[1].dtype));
        if (ctx->in[2].rank > 0)
                af_infer_fail(ctx, ".inputs[2]", "the value has shape %s, not []",
                              af_infer_dims_text(ctx, ctx->in[2].dims, ctx->in[2].rank));
        return common_dtype(ctx, 1);
}

static enum af_dtype one_hot_dtype(struct af_infer_ctx *ctx) {
        enum af_dtype index = ctx->in[0].dtype;

        if (af_dtype_kind(index) != 'i' && af_dtype_kind(index) != 'u')
                af_infer_fail_hint(ctx, ".inputs[0]", "cast it first", "the index is %s, not an integer", af_dtype_name(index));
        return ctx->n_in > 1 ? common_dtype(ctx, 0) : AF_DTYPE_INVALID;
}

/* Output dtype, INVALID where it must be stated; *ret_compute: what the op computes in, for its attributes. */
static enum af_dtype infer_dtype(struct af_infer_ctx *ctx, enum af_dtype *ret_compute) {
        enum af_dtype d = ctx->n_in > 0 ? ctx->in[0].dtype : AF_DTYPE_INVALID;

        *ret_compute = d;
        switch (ctx->info->dtype_rule) {
        case AF_DTYPES_SAME:
                return *ret_compute = common_dtype(ctx, NO_OPERAND);
        case AF_DTYPES_BOOL_OUT:
                *ret_compute = common_dtype(ctx, NO_OPERAND);
                return AF_DTYPE_BOOL;
        case AF_DTYPES_TRUE_DIV:
                d = *ret_compute = common_dtype(ctx, NO_OPERAND);
                return d == AF_DTYPE_INVALID ? d : af_op_result_dtype(ctx->op, d);
        case AF_DTYPES_LOGICAL:
        case AF_DTYPES_ANY:
                for (uint32_t i = 0; i < ctx->n_in; i++)
                        check_defined(ctx, i, ctx->in[i].dtype);
                return AF_DTYPE_BOOL;
        case AF_DTYPES_WHERE:
                return where_dtype(ctx);
        case AF_DTYPES_SUM:
                check_defined(ctx, 0, d);
                return af_dtype_kind(d) == 'f' || d == AF_DTYPE_INT64 ? d : AF_DTYPE_INVALID;
        case AF_DTYPES_GATHER:
                return gather_dtype(ctx);
        case AF_DTYPES_FIRST:
        case AF_DTYPES_INDEX:
                for (uint32_t i = 0; i < ctx->n_in; i++)
                        check_defined(ctx, i, ctx->in[i].dtype);
                return ctx->info->dtype_rule == AF_DTYPES_FIRST ? d : AF_DTYPE_INT64;
        case AF_DTYPES_MASKED:
                return *ret_compute = masked_dtype(ctx);
        case AF_DTYPES_ONE_HOT:
                return one_hot_dtype(ctx);
        case AF_DTYPES_CAST:
        case AF_DTYPES_DECLARED:
                return AF_DTYPE_INVALID;
        }
        return AF_DTYPE_INVALID;
}

static bool arity_check(struct af_infer_ctx *ctx) {
        const struct af_op_info *info = ctx->info;

        if (ctx->n_in >= info->min_inputs && ctx->n_in <= info->max_inputs)
                return true;
        if (info->min_inputs == info->max_inputs)
                af_infer_fail(ctx, ".inputs", "%u operands, but %s takes %u", ctx->n_in, info->name, info->min_inputs);
        else
                af_infer_fail(ctx, ".inputs", "%u operands, but %s takes %u to %u", ctx->n_in, info->name, info->min_inputs,
                              info->max_inputs);
        return false;
}

static int collect_attrs(struct af_infer_ctx *ctx, const struct af_attr **ret_attrs, uint32_t *ret_n) {
        uint32_t n = (uint32_t)__builtin_popcount(ctx->has), at = 0;
        struct af_attr *attrs = NULL;

        if (n > 0) {
                attrs = af_arena_calloc(ctx->arena, n, sizeof(*attrs));
                if (!attrs)
                        return -ENOMEM;
        }
        for (unsigned key = 0; key < AF_N_ATTRS; key++)
                if (ctx->has & UINT64_C(1) << key)
                        attrs[at++] = ctx->attrs[key];
        *ret_attrs = attrs;
        *ret_n = n;
        return 0;
}

int af_infer_node(struct af_infer_ctx *ctx, const struct af_attr *attrs, uint32_t n_attrs, struct af_inferred *ret,
                  const struct af_attr **ret_attrs, uint32_t *ret_n_attrs) {
        struct af_inferred inferred = {.dtype = AF_DTYPE_INVALID, .n_out = 1};
        enum af_dtype compute;

        ctx->info = af_op_info(ctx->op);
        ctx->failed = false;
        ctx->error = 0;
        if (arity_check(ctx)) {
                inferred.dtype = infer_dtype(ctx, &compute);
                if (!ctx->failed)
                        af_attrs_normalise(ctx, attrs, n_attrs, compute);
                if (!ctx->failed && !ctx->error)
                        af_infer_shape(ctx, &inferred);
        }
        if (ctx->error)
                return ctx->error;
        if (ctx->failed)
                return AF_GRAPH_E_INVALID;
        *ret = inferred;
        return collect_attrs(ctx, ret_attrs, ret_n_attrs);
}

uint32_t af_inferred_dim(const struct af_inferred *inferred, uint32_t out, uint32_t axis) {
        return inferred->sizes && axis == inferred->axis ? inferred->sizes[out] : inferred->dims[axis];
}

int af_infer(struct af_expr_pool *exprs, struct af_arena *arena, enum af_op op, const struct af_infer_operand *operands, uint32_t n,
             const struct af_attr *attrs, uint32_t n_attrs, const char *where, struct af_inferred *ret, struct af_diags *diags) {
        return af_infer_within(exprs, arena, NULL, op, operands, n, attrs, n_attrs, where, ret, diags);
}

int af_infer_within(struct af_expr_pool *exprs, struct af_arena *arena, const struct af_infer_bounds *bounds, enum af_op op,
                    const struct af_infer_operand *operands, uint32_t n, const struct af_attr *attrs, uint32_t n_attrs, const char *where,
                    struct af_inferred *ret, struct af_diags *diags) {
        struct af_infer_ctx ctx = {
                .exprs = exprs, .arena = arena, .diags = diags, .where = {.text = where ? where : ""}, .op = op, .in = operands, .n_in = n};
        if (bounds)
                ctx.facts = (struct af_symbol_facts){.mins = bounds->mins, .maxs = bounds->maxs};
        const struct af_attr *normal;
        uint32_t n_normal;

        if (op >= AF_N_OPS) {
                af_where_error(diags, &ctx.where, ".op", NULL, "unknown op");
                return AF_GRAPH_E_INVALID;
        }
        int r = af_infer_node(&ctx, attrs, n_attrs, ret, &normal, &n_normal);
        if (r == 0) {
                ret->attrs = normal;
                ret->n_attrs = n_normal;
        }
        return r;
}
