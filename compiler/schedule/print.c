/* SPDX-License-Identifier: Apache-2.0 */
/* The loop tree as text. */
#include <inttypes.h>

#include "compiler/schedule/kernel.h"

static const char *const hold_names[] = {"full", "row", "column", "one", "lanes", "chunks", "levels", "blocks", "scratch", "raw", "table"};
static const char *const place_names[] = {"pool", "load", "store", "resident"};
static const char *const stmt_names[] = {"load",      "store",      "prim",      "copy",  "expand", "fill",  "row_lanes", "row_chunks",
                                         "lane_tree", "row_levels", "level_top", "table", "fetch",  "index", "scan",      "gather"};
static const char *const stage_names[] = {"prologue", "init", "body", "finish"};
static const char *const role_names[] = {"block", "loop", "whole"};

static void print_access(const struct af_phase *p, const struct af_access *a, struct af_buf *b) {
        if (a->arg == AF_NONE)
                af_buf_printf(b, " [%" PRId64, a->offset);
        else
                af_buf_printf(b, " gm%u[%" PRId64, a->arg, a->offset);
        for (uint32_t i = 0; i < p->n_axes; i++)
                if (a->strides[i])
                        af_buf_printf(b, " + %" PRId64 "*a%u", a->strides[i], i);
        af_buf_put_str(b, "]");
}

static void print_stmt(const struct af_kernel *k, const struct af_phase *p, const struct af_kstmt *s, struct af_buf *b) {
        af_buf_put_str(b, "    ");
        if (s->dst != AF_NONE) {
                const struct af_kvalue *v = &p->values[s->dst];
                af_buf_printf(b, "v%u:%s %s %s+%u = ", s->dst, v->dtype == AF_DTYPE_MASK ? "mask" : af_dtype_name(v->dtype),
                              hold_names[v->hold], place_names[v->place], v->offset);
        }
        af_buf_put_str(b, s->kind == AF_KSTMT_PRIM ? af_prim_info(s->ins.prim)->call : stmt_names[s->kind]);
        for (unsigned i = 0; i < 3; i++)
                if (s->src[i] != AF_NONE)
                        af_buf_printf(b, " v%u", s->src[i]);
        if (s->kind == AF_KSTMT_LOAD || s->kind == AF_KSTMT_STORE || s->kind == AF_KSTMT_INDEX || s->kind == AF_KSTMT_FETCH)
                print_access(p, &s->access, b);
        if (s->kind == AF_KSTMT_FETCH && s->pick.once)
                af_buf_put_str(b, " once");
        if (s->op_node != AF_NONE)
                af_buf_printf(b, "  # %s", af_op_info(k->g->nodes[s->op_node].op)->name);
        af_buf_put_str(b, "\n");
}

static void print_stage(const struct af_kernel *k, const struct af_phase *p, uint32_t stage, struct af_buf *b) {
        const struct af_stage *st = &p->stages[stage];
        if (!st->n_stmts)
                return;
        af_buf_printf(b, "  %s rows=%u inner=%u pitch=%u load=%u store=%u\n", stage_names[stage], st->rows, st->inner, st->pitch,
                      st->load_bytes, st->store_bytes);
        for (uint32_t i = st->first_stmt; i < st->first_stmt + st->n_stmts; i++)
                print_stmt(k, p, &p->stmts[i], b);
}

void af_kernel_print(const struct af_kernel *k, struct af_buf *b) {
        af_buf_printf(b, "kernel blocks=%u args=%u workspace=%" PRIu64 " hbm=%" PRIu64 " cycles=%" PRIu64 "\n", k->block_dim, k->n_args,
                      k->workspace_bytes, k->hbm_bytes, k->modelled_cycles);
        for (uint32_t i = 0; i < k->n_phases; i++) {
                const struct af_phase *p = &k->phases[i];
                af_buf_printf(b, "phase %u (%s) tiles=%" PRId64 " buffers=%u,%u ub=%" PRIu64 "\n", i, p->what, p->n_tiles, p->load_buffers,
                              p->store_buffers, af_phase_ub_bytes(p));
                for (uint32_t a = 0; a < p->n_axes; a++)
                        af_buf_printf(b, "  a%u %" PRId64 "/%" PRId64 " %s%s%s\n", a, p->axes[a].extent, p->axes[a].tile,
                                      role_names[p->axes[a].role], p->axes[a].reduced ? " reduced" : "",
                                      p->axes[a].chunk_axis != AF_NONE ? " chunk" : "");
                for (uint32_t s = 0; s < p->n_stages; s++)
                        print_stage(k, p, s, b);
        }
}
