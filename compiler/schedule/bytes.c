/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exact HBM traffic of a tiled phase: every transfer of every tile, in distinct 32-byte sectors per call, as the checked twin counts them.
 * Pointers are taken to be aligned to a sector.
 */
#include "compiler/schedule/sched.h"

#define SECTOR   32
#define MAX_ROWS (1 << 20) /* rows of transfers walked; beyond that the estimate of the cost model stands */

struct walk {
        const struct af_phase *p;
        int64_t start[AF_KERNEL_MAX_AXES], length[AF_KERNEL_MAX_AXES];
        int64_t rows_left;
        uint64_t bytes;
};

static int64_t tiles_of(const struct af_axis *x) {
        int64_t n = x->ragged_tail ? x->extent - 1 : x->extent;
        return x->role == AF_AXIS_WHOLE ? 1 : (n + x->tile - 1) / x->tile + (x->ragged_tail ? 1 : 0);
}

static void set_block_axis(struct walk *w, uint32_t a, int64_t index) {
        const struct af_axis *x = &w->p->axes[a];
        int64_t full = x->ragged_tail ? x->extent - 1 : x->extent;
        w->start[a] = AF_MIN(index * x->tile, full);
        w->length[a] = w->start[a] < full ? AF_MIN(x->tile, full - w->start[a]) : 1;
}

/* Length of an axis that is whole or loops: the last chunk's elements may be fewer. */
static int64_t run_of(const struct walk *w, uint32_t a) {
        const struct af_axis *x = &w->p->axes[a];
        return x->chunk_axis == AF_NONE ? x->extent : AF_MIN(x->extent, x->total - w->start[x->chunk_axis] * x->extent);
}

/* Rows of cols elements from `at` on, `step` apart: distinct sectors. */
static uint64_t sectors(int64_t at, int64_t rows, int64_t cols, int64_t step, int64_t size) {
        uint64_t n = 0;
        int64_t last = INT64_MIN;
        bool one_call = (step - cols) * size >= 0 && (step - cols) * size <= INT32_MAX;
        for (int64_t r = 0; r < rows; r++) {
                int64_t first = (at + r * step) * size / SECTOR, end = ((at + r * step + cols) * size - 1) / SECTOR;
                n += (uint64_t)(end - first + 1) - (one_call && first <= last ? 1 : 0);
                last = end;
        }
        return n;
}

/* Of the tiles that hold the same elements of a narrow value the first alone writes them. */
static bool writes(const struct walk *w, const struct af_kstmt *s, const struct af_stage *st) {
        for (uint32_t a = 0; a < w->p->n_axes; a++) {
                const struct af_axis *x = &w->p->axes[a];
                bool loops = x->role == AF_AXIS_LOOP && st->row_axis != AF_NONE && (a == st->row_axis || a == st->inner_axis);
                if (!s->access.strides[a] && x->extent != x->tile && (x->role == AF_AXIS_BLOCK || loops) && w->start[a] != 0)
                        return false;
        }
        return true;
}

static void count_stage(struct walk *w, const struct af_stage *st) {
        for (uint32_t i = st->first_stmt; i < st->first_stmt + st->n_stmts; i++) {
                const struct af_kstmt *s = &w->p->stmts[i];
                if (s->kind != AF_KSTMT_LOAD && (s->kind != AF_KSTMT_STORE || !writes(w, s, st)))
                        continue;
                const struct af_kvalue *v = &w->p->values[s->kind == AF_KSTMT_LOAD ? s->dst : s->src[0]];
                int64_t at = s->access.offset, rows = 1, cols = 1, step = 0;
                for (uint32_t a = 0; a < w->p->n_axes; a++)
                        at += w->start[a] * s->access.strides[a];
                if (v->hold == AF_HOLD_COLUMN)
                        cols = w->length[st->row_axis];
                else if (v->hold != AF_HOLD_ONE && st->inner_axis != AF_NONE)
                        cols = w->length[st->inner_axis];
                if (v->hold == AF_HOLD_FULL && st->row_axis != AF_NONE) {
                        rows = w->length[st->row_axis];
                        step = s->access.strides[st->row_axis];
                }
                w->bytes += SECTOR * sectors(at, rows, cols, step, af_dtype_size(v->dtype));
                w->rows_left -= rows;
        }
}

static void count_tile(struct walk *w, int64_t tile) {
        const struct af_phase *p = w->p;
        for (uint32_t a = p->n_axes; a-- > 0;)
                if (p->axes[a].role == AF_AXIS_BLOCK) {
                        set_block_axis(w, a, tile % tiles_of(&p->axes[a]));
                        tile /= tiles_of(&p->axes[a]);
                }
        for (uint32_t a = 0; a < p->n_axes; a++)
                if (p->axes[a].role == AF_AXIS_WHOLE) {
                        w->start[a] = 0;
                        w->length[a] = run_of(w, a);
                }
        for (uint32_t n = 0; n < p->n_roots; n++) {
                const struct af_knode *node = &p->nodes[n];
                if (node->kind == AF_KNODE_STAGE) {
                        count_stage(w, &p->stages[node->stage]);
                        continue;
                }
                int64_t run = run_of(w, node->axis);
                for (w->start[node->axis] = 0; w->start[node->axis] < run && w->rows_left > 0;
                     w->start[node->axis] += p->axes[node->axis].tile) {
                        w->length[node->axis] = AF_MIN(p->axes[node->axis].tile, run - w->start[node->axis]);
                        for (uint32_t c = 0; c < node->n_children; c++)
                                count_stage(w, &p->stages[p->nodes[node->first_child + c].stage]);
                }
        }
}

void sched_count_bytes(struct af_phase *phase, uint32_t block_dim) {
        struct walk w = {.p = phase, .rows_left = MAX_ROWS};
        for (uint32_t a = 0; a < phase->n_axes; a++)
                w.length[a] = phase->axes[a].role == AF_AXIS_WHOLE ? phase->axes[a].extent : phase->axes[a].tile;
        for (uint32_t i = 0; i < phase->n_stages; i++)
                if (phase->stages[i].prologue)
                        count_stage(&w, &phase->stages[i]);
        w.bytes *= (uint64_t)AF_MIN(phase->n_tiles, (int64_t)block_dim);
        for (int64_t t = 0; t < phase->n_tiles && w.rows_left > 0; t++)
                count_tile(&w, t);
        if (w.rows_left > 0)
                phase->hbm_bytes = w.bytes;
}
