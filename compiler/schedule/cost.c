/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a tiled phase costs: bytes through HBM (whole 32-byte sectors per row of a DMA), and cycles: per stage the longest of the three
 * pipes where double buffering lets them overlap, else their sum. Figures are the SoC's.
 */
#include "compiler/schedule/sched.h"

#define SECTOR      32
#define TURN_CYCLES 100 /* scalar work and queue hand-over of one turn of a stage; assumed, no figure is published */

static int64_t tiles_of(const struct af_axis *a) {
        if (a->role == AF_AXIS_WHOLE)
                return 1;
        return (a->extent + a->tile - 1) / a->tile;
}

static const struct af_kvalue *moved(const struct af_phase *p, const struct af_kstmt *s) {
        return &p->values[s->kind == AF_KSTMT_LOAD ? s->dst : s->src[0]];
}

/* Bytes of all executions of a load or store. */
static double total_bytes(const struct af_phase *p, const struct af_kstmt *s, uint32_t blocks) {
        const struct af_stage *st = &p->stages[s->stage];
        const struct af_kvalue *v = moved(p, s);
        bool has_row = v->hold == AF_HOLD_FULL || v->hold == AF_HOLD_COLUMN, has_inner = v->hold == AF_HOLD_FULL || v->hold == AF_HOLD_ROW;
        double rows = 1, row_elements = 1, size = af_dtype_size(v->dtype), times = st->prologue ? blocks : 1;
        for (uint32_t a = 0; a < p->n_axes; a++) {
                double extent = (double)p->axes[a].extent, tiles = st->prologue ? 1 : (double)tiles_of(&p->axes[a]);
                if (a == st->inner_axis && has_inner)
                        row_elements *= extent;
                else if (a == st->row_axis && has_row)
                        rows *= extent;
                else if (s->kind == AF_KSTMT_LOAD || s->access.strides[a])
                        times *= st->prologue || (p->axes[a].role == AF_AXIS_LOOP && s->kind == AF_KSTMT_STORE) ? 1 : tiles;
        }
        if (v->hold == AF_HOLD_COLUMN || rows == 1) {
                row_elements *= rows;
                rows = 1;
        }
        bool gapless = st->row_axis != AF_NONE && s->access.strides[st->row_axis] == p->axes[st->inner_axis].extent;
        double row_bytes = row_elements * size, sectors = row_bytes;
        if (!gapless)
                sectors = (double)(((int64_t)row_bytes + SECTOR - 1) / SECTOR * SECTOR);
        return times * rows * sectors;
}

static double dma_cycles(const struct af_soc *soc, const struct af_phase *p, const struct af_kstmt *s, uint32_t blocks) {
        const struct af_stage *st = &p->stages[s->stage];
        const struct af_kvalue *v = moved(p, s);
        double n = v->hold == AF_HOLD_FULL     ? (double)st->rows * st->inner
                   : v->hold == AF_HOLD_ROW    ? st->inner
                   : v->hold == AF_HOLD_COLUMN ? st->rows
                                               : 1;
        double bytes = n * af_dtype_size(v->dtype);
        const struct af_dma_cost *c = s->kind == AF_KSTMT_STORE ? &soc->store : bytes < soc->small_bytes ? &soc->load_small : &soc->load;
        double per_row = st->inner * (double)af_dtype_size(v->dtype); /* short rows waste the access granule */
        if (v->hold == AF_HOLD_FULL && st->row_axis != AF_NONE && per_row < 512)
                bytes += 0.07 * (512 - per_row) * st->rows;
        return bytes / (c->a + c->b / blocks) + c->h;
}

static double call(const struct af_vec_cost *c, double n) {
        return c->k * n + c->c;
}

static double vector_cycles(const struct af_soc *soc, const struct af_phase *p, const struct af_kstmt *s) {
        const struct af_stage *st = &p->stages[s->stage];
        const struct af_kvalue *v = &p->values[s->dst];
        const struct af_vec_cost *c =
                v->dtype != AF_DTYPE_MASK && af_dtype_size(v->dtype) == 2 ? &soc->vec_default_f16 : &soc->vec_default_f32;
        double n = af_kvalue_elements(p, v), rows = p->stages[v->stage].rows;
        double row_groups = (rows + 254) / 255, blocks = (st->inner + 63) / 64.0;
        switch (s->kind) {
        case AF_KSTMT_EXPAND:
                return c->k * n + c->c * (p->values[s->src[0]].hold == AF_HOLD_ONE ? 2 : row_groups * blocks + 1);
        case AF_KSTMT_ROW_LANES: {
                double columns = p->values[s->src[0]].hold == AF_HOLD_CHUNKS ? 64 : st->inner;
                return row_groups * ((columns + 63) / 64) * call(c, 64 * AF_MIN(rows, 255));
        }
        case AF_KSTMT_ROW_CHUNKS:
                return row_groups * ((st->inner + 63) / 64.0) * call(c, 64 * AF_MIN(rows, 255)) +
                       (st->inner + 1023) / 1024.0 * (2 * row_groups * call(c, 64 * rows));
        case AF_KSTMT_LANE_TREE:
                return s->src[1] == AF_NONE ? row_groups * call(c, 64 * rows) : 3 * call(c, 128 * rows) + 15 * c->c;
        case AF_KSTMT_ROW_LEVELS:
                return (rows / 32 + 1) * (AF_MIN(blocks, 32) + 2) * c->c + c->k * rows * st->inner * 1.2;
        default:
                return call(c, n);
        }
}

struct pipes {
        double load, vector, store;
};
static struct pipes stage_cycles(const struct sched *s, const struct af_phase *p, uint32_t stage, uint32_t blocks) {
        struct pipes t = {0};
        const struct af_stage *st = &p->stages[stage];
        for (uint32_t i = st->first_stmt; i < st->first_stmt + st->n_stmts; i++) {
                const struct af_kstmt *stmt = &p->stmts[i];
                if (stmt->kind == AF_KSTMT_LOAD)
                        t.load += dma_cycles(s->soc, p, stmt, blocks);
                else if (stmt->kind == AF_KSTMT_STORE)
                        t.store += dma_cycles(s->soc, p, stmt, blocks);
                else
                        t.vector += vector_cycles(s->soc, p, stmt);
        }
        t.load += t.load > 0 ? TURN_CYCLES : 0;
        t.vector += t.vector > 0 ? TURN_CYCLES : 0;
        t.store += t.store > 0 ? TURN_CYCLES : 0;
        return t;
}

static double steps(const struct af_phase *p, uint32_t stage) {
        for (uint32_t n = 0; n < p->n_nodes; n++)
                if (p->nodes[n].kind == AF_KNODE_LOOP && p->nodes[p->nodes[n].first_child].stage == stage)
                        return (double)tiles_of(&p->axes[p->nodes[n].axis]);
        return 1;
}

void sched_cost(const struct sched *s, struct af_phase *phase, uint32_t blocks) {
        const struct af_soc *soc = s->soc;
        double tiles = (double)((phase->n_tiles + blocks - 1) / blocks), bytes = 0, cycles = 0, longest = 0;
        struct pipes all = {0};
        for (uint32_t i = 0; i < phase->n_stmts; i++)
                if (phase->stmts[i].kind == AF_KSTMT_LOAD || phase->stmts[i].kind == AF_KSTMT_STORE)
                        bytes += total_bytes(phase, &phase->stmts[i], blocks);
        for (uint32_t i = 0; i < phase->n_stages; i++) {
                struct pipes t = stage_cycles(s, phase, i, blocks);
                double times = phase->stages[i].prologue ? 1 : tiles * steps(phase, i);
                all.load += t.load * times;
                all.vector += t.vector * times;
                all.store += t.store * times;
                longest = AF_MAX(longest, t.load + t.vector + t.store);
                if (phase->buffers == 1)
                        cycles += times * (t.load + t.vector + t.store);
        }
        if (phase->buffers != 1) /* the first load and the last store have nothing to hide behind */
                cycles = AF_MAX(all.load, AF_MAX(all.vector, all.store)) + longest;
        double per_core = bytes / blocks;
        cycles += per_core < soc->head_mte2_small_bytes ? soc->head_mte2_small_base + soc->head_mte2_small_per_block * blocks
                                                        : soc->head_mte2_base + soc->head_mte2_per_block * blocks;
        cycles += soc->head_mte3 + soc->head_vector;
        phase->hbm_bytes = (uint64_t)bytes;
        phase->cycles = (uint64_t)cycles;
}
