/* SPDX-License-Identifier: Apache-2.0 */
/* The common end of both constructors (fragment, canonical bytes), and the check that passes call. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/graph/internal.h"

struct af_diags *af_tally_start(struct af_tally *t, struct af_diags *diags) {
        t->diags = diags ? diags : &t->own;
        t->before = t->diags->n_errors;
        return t->diags;
}

bool af_tally_failed(const struct af_tally *t) {
        return t->diags->n_errors > t->before;
}

int af_graph_copy_exprs(struct af_graph *g, const struct af_expr_pool *from) {
        g->exprs = *from;
        g->exprs.arena = g->arena;
        g->exprs.cap_exprs = from->n_exprs;
        if (from->exprs) {
                g->exprs.exprs = af_arena_memdup(g->arena, from->exprs, from->n_exprs * sizeof(*from->exprs));
                if (!g->exprs.exprs)
                        return -ENOMEM;
        }
        if (from->table) {
                g->exprs.table = af_arena_memdup(g->arena, from->table, from->table_size * sizeof(*from->table));
                if (!g->exprs.table)
                        return -ENOMEM;
        }
        return 0;
}

/* A mistake in what output j states; part: ".dtype" or ".shape". */
AF_PRINTF(4, 5) static void output_fail(struct af_infer_ctx *ctx, uint32_t j, const char *part, const char *fmt, ...) {
        char field[48], what[1024];
        va_list args;

        snprintf(field, sizeof(field), ".outputs[%u]%s", j, part);
        va_start(args, fmt);
        vsnprintf(what, sizeof(what), fmt, args);
        va_end(args);
        af_infer_fail(ctx, field, "%s", what);
}

static void compare_dtype(struct af_infer_ctx *ctx, const struct af_value *v, enum af_dtype inferred, uint32_t out) {
        if (inferred != AF_DTYPE_INVALID && inferred != v->dtype)
                output_fail(ctx, out, ".dtype", "%s is stated, but %s gives %s", af_dtype_name(v->dtype), ctx->info->name,
                            af_dtype_name(inferred));
        else if (inferred == AF_DTYPE_INVALID && !af_infer_dtype_allowed(ctx->op, ctx->n_in ? ctx->in[0].dtype : 0, v->dtype))
                output_fail(ctx, out, ".dtype", "%s%s%s cannot give %s", ctx->info->name, ctx->n_in ? " of " : "",
                            ctx->n_in ? af_dtype_name(ctx->in[0].dtype) : "", af_dtype_name(v->dtype));
}

static void compare_shape(struct af_infer_ctx *ctx, const struct af_value *v, const struct af_inferred *inferred, uint32_t out) {
        uint32_t dims[AF_LIMIT_RANK];
        bool equal = v->rank == inferred->rank;

        for (uint32_t i = 0; i < inferred->rank; i++)
                dims[i] = af_inferred_dim(inferred, out, i);
        for (uint32_t i = 0; equal && i < v->rank; i++)
                equal = af_dims_equal(ctx->exprs, &ctx->facts, v->dims[i], dims[i]);
        if (!equal)
                output_fail(ctx, out, ".shape", "%s is stated, but %s gives %s", af_infer_dims_text(ctx, v->dims, v->rank), ctx->info->name,
                            af_infer_dims_text(ctx, dims, inferred->rank));
}

/* iota's numbers must be whole where its result is. */
static void check_iota(struct af_infer_ctx *ctx, enum af_dtype d) {
        static const enum af_attr_key keys[] = {AF_ATTR_START, AF_ATTR_STEP};

        for (size_t i = 0; i < AF_ARRAY_SIZE(keys) && af_dtype_kind(d) != 'f'; i++)
                if (!ctx->attrs[keys[i]].is_int)
                        af_infer_fail(ctx, i == 0 ? ".attrs.start" : ".attrs.step", "%g is no integer, but the op computes in %s",
                                      ctx->attrs[keys[i]].f, af_dtype_name(d));
}

static void compare_outputs(struct af_infer_ctx *ctx, const struct af_graph *g, const struct af_node *n,
                            const struct af_inferred *inferred) {
        if (n->n_out != inferred->n_out) {
                if (ctx->info->flags & AF_OP_SEVERAL) /* else build.c has said it */
                        af_infer_fail(ctx, ".outputs", "%u outputs are stated, but %s gives %u", n->n_out, ctx->info->name,
                                      inferred->n_out);
                return;
        }
        for (uint32_t j = 0; j < n->n_out; j++) {
                const struct af_value *v = &g->values[n->out[j]];
                compare_dtype(ctx, v, inferred->dtype, j);
                compare_shape(ctx, v, inferred, j);
        }
        if (n->op == AF_OP_IOTA)
                check_iota(ctx, g->values[n->out[0]].dtype);
}

static bool attrs_equal(const struct af_attr *a, uint32_t n_a, const struct af_attr *b, uint32_t n_b) {
        if (n_a != n_b)
                return false;
        for (uint32_t i = 0; i < n_a; i++) {
                if (a[i].key != b[i].key || a[i].i != b[i].i || a[i].is_int != b[i].is_int || a[i].n != b[i].n)
                        return false;
                if (memcmp(&a[i].f, &b[i].f, sizeof(a[i].f)) != 0 || strcmp(a[i].s ? a[i].s : "", b[i].s ? b[i].s : "") != 0)
                        return false;
                if (a[i].ints && memcmp(a[i].ints, b[i].ints, a[i].n * sizeof(*a[i].ints)) != 0)
                        return false;
                if (a[i].dims && memcmp(a[i].dims, b[i].dims, a[i].n * sizeof(*a[i].dims)) != 0)
                        return false;
        }
        return true;
}

/* ctx: the same for all nodes of a graph, but for what is set here. */
static int infer_one(struct af_infer_ctx *ctx, struct af_graph *g, uint32_t index, struct af_infer_operand *operands, bool fix) {
        struct af_node *n = &g->nodes[index];
        const struct af_attr *attrs;
        struct af_inferred inferred;
        uint32_t n_attrs;

        for (uint32_t j = 0; j < n->n_in; j++) {
                if (n->in[j] == AF_NONE)
                        return 0;
                const struct af_value *v = &g->values[n->in[j]];
                operands[j] = (struct af_infer_operand){.dtype = v->dtype, .rank = v->rank, .dims = v->dims};
                operands[j].scalar = af_value_is_scalar(g, n->in[j]);
        }
        ctx->where = af_where_node(g, index);
        ctx->op = n->op;
        ctx->in = operands;
        ctx->n_in = n->n_in;
        int r = af_infer_node(ctx, n->attrs, n->n_attrs, &inferred, &attrs, &n_attrs);
        if (r < 0)
                return r;
        if (r > 0)
                return 0;
        if (ctx->info->shape_rule != AF_SHAPE_DECLARED)
                compare_outputs(ctx, g, n, &inferred);
        if (!fix && !attrs_equal(attrs, n_attrs, n->attrs, n->n_attrs))
                af_infer_fail(ctx, ".attrs", "not in normal form");
        if (fix) {
                n->attrs = attrs;
                n->n_attrs = n_attrs;
        }
        return ctx->error;
}

int af_graph_infer(struct af_graph *g, const struct af_symbol_facts *facts, bool fix, struct af_diags *diags) {
        struct af_infer_ctx ctx = {.exprs = &g->exprs, .arena = g->arena, .diags = diags, .facts = *facts};
        struct af_infer_operand *operands;
        uint32_t max_in = 1;

        for (uint32_t i = 0; i < g->n_nodes; i++)
                max_in = AF_MAX(max_in, g->nodes[i].n_in);
        operands = af_arena_calloc(g->arena, max_in, sizeof(*operands));
        if (!operands)
                return -ENOMEM;
        for (uint32_t i = 0; i < g->n_nodes; i++) {
                int r = infer_one(&ctx, g, i, operands, fix);
                if (r < 0)
                        return r;
        }
        return 0;
}

static bool is_identity(const uint32_t *order, uint32_t n) {
        for (uint32_t i = 0; i < n; i++)
                if (order[i] != i)
                        return false;
        return true;
}

static bool edges_hold(const struct af_graph *g, const uint32_t *first, const uint32_t *list) {
        for (uint32_t i = 0; i < g->n_nodes; i++)
                for (uint32_t k = first[i]; k < first[i + 1]; k++)
                        if (list[k] >= i)
                                return false;
        return true;
}

/* The second sort: operands and the order that no operand shows. */
static int order_finally(struct af_graph *g, bool keep_order, struct af_diags *diags) {
        uint32_t *first, *list;
        const uint32_t *order;
        int r = af_graph_order_edges(g, &first, &list);

        if (r > 0)
                af_diag_error(diags, "outputs", "in-place updates times readers of their inputs are beyond the limit");
        if (r != 0 || first[g->n_nodes] == 0 || edges_hold(g, first, list))
                return r;
        if (keep_order) {
                af_diag_error(diags, "nodes", "effects or in-place updates are out of order");
                return AF_GRAPH_E_INVALID;
        }
        r = af_graph_sort(g, first, list, &order, diags);
        return r != 0 ? r : af_graph_permute(g, order);
}

int af_graph_reorder(struct af_graph *g) {
        struct af_tally tally = {0};
        int r = order_finally(g, false, af_tally_start(&tally, NULL));

        af_diags_deinit(&tally.own);
        return r;
}

int af_graph_finish(struct af_graph *g, bool keep_order, struct af_tally *tally) {
        struct af_symbol_facts facts;
        const uint32_t *order;
        int r = af_symbol_facts_make(g, &facts);

        if (r == 0)
                r = af_graph_sort(g, NULL, NULL, &order, tally->diags);
        bool sorted = r == 0;
        if (sorted && !keep_order && !is_identity(order, g->n_nodes))
                r = af_graph_permute(g, order);
        /* With a cycle the order does not matter to the rest: each node is checked by itself. */
        if (r >= 0)
                r = af_graph_infer(g, &facts, true, tally->diags);
        if (r >= 0)
                r = af_graph_check_values(g, &facts, true, tally->diags);
        if (r >= 0 && sorted && !af_tally_failed(tally))
                r = order_finally(g, keep_order, tally->diags);
        g->not_in_place = true;
        for (uint32_t i = 0; i < g->n_outputs; i++)
                g->not_in_place &= g->outputs[i].alias_of == AF_NONE;
        if (r >= 0)
                r = af_tally_failed(tally) || !sorted ? AF_GRAPH_E_INVALID : r;
        return r;
}

/* Every link in range; nodes after their operands. */
static bool links_hold(const struct af_graph *g, struct af_diags *diags) {
        uint32_t before = diags->n_errors;

        for (uint32_t i = 0; i < g->n_nodes; i++) {
                const struct af_node *n = &g->nodes[i];
                struct af_where where = af_where_node(g, i);
                for (uint32_t j = 0; j < n->n_in; j++) {
                        uint32_t v = n->in[j];
                        if (v >= g->n_values || (g->values[v].kind == AF_VALUE_NODE && g->values[v].index >= i))
                                af_where_error(diags, &where, ".inputs", NULL, "operand %u is not made before the node", j);
                }
                for (uint32_t j = 0; j < n->n_out; j++) {
                        const struct af_value *v = n->out[j] < g->n_values ? &g->values[n->out[j]] : NULL;
                        if (!v || v->kind != AF_VALUE_NODE || v->index != i || v->out_index != j)
                                af_where_error(diags, &where, ".outputs", NULL, "output %u does not name its node", j);
                }
        }
        for (uint32_t i = 0; i < g->n_inputs; i++)
                if (g->inputs[i].value >= g->n_values || g->values[g->inputs[i].value].index != i)
                        af_diag_error(diags, "inputs", "input %u is not linked", i);
        for (uint32_t i = 0; i < g->n_constants; i++)
                if (g->constants[i].value >= g->n_values || g->values[g->constants[i].value].index != i)
                        af_diag_error(diags, "constants", "constant %u is not linked", i);
        for (uint32_t i = 0; i < g->n_outputs; i++)
                if (g->outputs[i].value >= g->n_values || (g->outputs[i].alias_of != AF_NONE && g->outputs[i].alias_of >= g->n_inputs))
                        af_diag_error(diags, "outputs", "output %u is not linked", i);
        return diags->n_errors == before;
}

int af_graph_check(const struct af_graph *g, struct af_diags *diags) {
        struct af_arena arena;
        struct af_symbol_facts facts;
        struct af_tally tally = {0};
        struct af_graph copy = *g;
        uint32_t *first, *list;
        int r;

        diags = af_tally_start(&tally, diags);
        af_arena_init(&arena, 0);
        copy.arena = &arena;
        r = af_graph_copy_exprs(&copy, &g->exprs);
        if (r == 0 && links_hold(g, diags)) {
                r = af_symbol_facts_make(&copy, &facts);
                if (r == 0)
                        r = af_graph_infer(&copy, &facts, false, diags);
                if (r == 0)
                        r = af_graph_check_values(&copy, &facts, false, diags);
                if (r == 0)
                        r = af_graph_order_edges(&copy, &first, &list);
                if (r == 0 && !edges_hold(g, first, list))
                        af_diag_error(diags, "nodes", "effects or in-place updates are out of order");
        }
        if (r >= 0 && af_tally_failed(&tally))
                r = AF_GRAPH_E_INVALID;
        af_arena_deinit(&arena);
        af_diags_deinit(&tally.own);
        return r;
}
