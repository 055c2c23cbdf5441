/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for tiles: a phase is lowered in each variant, and each pair of row and inner tile from two short lists is allocated and
 * costed. The cheapest that fits wins; ties go to the first. Candidates are what balances the cores, powers of two, and the largest that
 * fits.
 */
#include <errno.h>

#include "compiler/schedule/sched.h"

#define MAX_ROWS       4095 /* blocks of one DMA */
#define MAX_CANDIDATES 24
#define BLOCK_UNIT     8 /* 32 bytes of float32 */

struct list {
        int64_t items[MAX_CANDIDATES];
        uint32_t n;
};
struct best {
        bool found;
        uint64_t cycles;
        int64_t rows, inner;
        uint32_t buffers;
};

static void add(struct list *l, int64_t v, int64_t max) {
        v = v < 1 ? 1 : v > max ? max : v;
        for (uint32_t i = 0; i < l->n; i++)
                if (l->items[i] == v)
                        return;
        if (l->n < MAX_CANDIDATES)
                l->items[l->n++] = v;
}

/* Elements between rows: every row of every value that moves by rows starts on a 32-byte block. */
static uint32_t pitch_of(const struct af_phase *p, uint32_t stage, uint32_t inner) {
        uint32_t least = 8;
        for (uint32_t i = 0; i < p->n_stmts; i++) {
                const struct af_kstmt *s = &p->stmts[i];
                uint32_t ids[2] = {s->dst, s->src[0]};
                if (s->kind == AF_KSTMT_PRIM || (s->stage != stage && s->stage != 0))
                        continue;
                for (unsigned k = 0; k < 2; k++) {
                        if (ids[k] == AF_NONE || p->values[ids[k]].dtype == AF_DTYPE_MASK)
                                continue;
                        least = AF_MIN(least, af_dtype_size(p->values[ids[k]].dtype));
                }
        }
        return AF_ALIGN_UP(inner, 32 / least);
}

static int64_t tiles_of(const struct af_phase *p, uint32_t a) {
        const struct af_axis *x = &p->axes[a];
        if (x->ragged_tail)
                return (x->extent - 1 + x->tile - 1) / x->tile + 1;
        return (x->extent + x->tile - 1) / x->tile;
}

void sched_set_tile(struct af_phase *phase, const struct pass *p, int64_t rows, int64_t inner) {
        if (p->row != AF_NONE)
                phase->axes[p->row].tile = rows;
        if (p->inner != AF_NONE && p->kind != PASS_LAST)
                phase->axes[p->inner].tile = inner;
        phase->n_tiles = 1;
        for (uint32_t a = 0; a < phase->n_axes; a++)
                if (phase->axes[a].role == AF_AXIS_BLOCK)
                        phase->n_tiles *= tiles_of(phase, a);
        for (uint32_t i = 0; i < phase->n_stages; i++) {
                struct af_stage *st = &phase->stages[i];
                st->rows = st->row_axis == AF_NONE ? 1 : (uint32_t)phase->axes[st->row_axis].tile;
                st->inner = st->inner_axis == AF_NONE ? 1 : (uint32_t)phase->axes[st->inner_axis].tile;
                st->pitch = st->row_axis == AF_NONE ? st->inner : pitch_of(phase, i, st->inner);
        }
        phase->stages[0].pitch = phase->stages[1].pitch = phase->stages[2].pitch; /* prologue and init share the body's tile */
}

uint32_t sched_blocks(const struct sched *s, const struct af_phase *phase) {
        return (uint32_t)AF_MAX(1, AF_MIN(phase->n_tiles, (int64_t)s->soc->vector_cores));
}

/* UB of the phase with its number of buffers; whether it fits. */
static int fits(struct sched *s, struct af_phase *ph, const struct pass *p, int64_t rows, int64_t inner, bool *ret_fits) {
        *ret_fits = false;
        if (rows * inner > (int64_t)s->soc->ub_bytes)
                return 0;
        sched_set_tile(ph, p, rows, inner);
        int r = sched_allocate(s, ph);
        uint64_t need = (uint64_t)ph->buffers * (ph->load_bytes + ph->store_bytes) + ph->calc_bytes + ph->resident_bytes;
        *ret_fits = !r && need <= s->soc->ub_bytes;
        return r;
}

static int try_tile(struct sched *s, struct af_phase *ph, const struct pass *p, int64_t rows, int64_t inner, struct best *best) {
        for (uint32_t buffers = 2; buffers >= 1; buffers--) {
                bool ok;
                ph->buffers = buffers;
                int r = fits(s, ph, p, rows, inner, &ok);
                if (r)
                        return r;
                if (!ok)
                        continue;
                sched_cost(s, ph, sched_blocks(s, ph));
                if (!best->found || ph->cycles < best->cycles)
                        *best = (struct best){true, ph->cycles, rows, inner, buffers};
                break;
        }
        return 0;
}

/* Largest multiple of unit up to max for which the tile fits with double buffers; 0: none. */
static int largest(struct sched *s, struct af_phase *ph, const struct pass *p, bool by_rows, int64_t other, int64_t unit, int64_t max,
                   int64_t *ret) {
        int64_t lo = 0, hi = (max + unit - 1) / unit;
        ph->buffers = 2;
        while (lo < hi) {
                int64_t mid = lo + (hi - lo + 1) / 2, v = AF_MIN(mid * unit, max);
                bool ok;
                int r = fits(s, ph, p, by_rows ? v : other, by_rows ? other : v, &ok);
                if (r)
                        return r;
                if (ok)
                        lo = mid;
                else
                        hi = mid - 1;
        }
        *ret = AF_MIN(lo * unit, max);
        return 0;
}

/* Tiles of an axis that spread n elements, times `others` independent tiles, evenly over the cores. */
static void balanced(const struct sched *s, struct list *l, int64_t n, int64_t others, int64_t unit, int64_t max) {
        int64_t cores = s->soc->vector_cores;
        for (int64_t waves = 1; waves <= 8; waves *= 2) {
                int64_t pieces = (cores * waves + others - 1) / others;
                add(l, AF_ALIGN_UP((n + pieces - 1) / pieces, unit), max);
        }
        for (int64_t blocks = 1; blocks < cores; blocks *= 4)
                add(l, AF_ALIGN_UP((n + blocks - 1) / blocks, unit), max);
}

static int64_t others(const struct pass *p) {
        int64_t n = 1;
        for (uint32_t a = 0; a < p->n_axes; a++)
                if (a != p->row && a != p->inner && n < INT64_C(1) << 40)
                        n *= p->axes[a].extent;
        return n;
}

/* Rows of the least tile: running rows take them in chunks of 32, or in pieces of those where whole rows are long. */
static int64_t row_unit(const struct pass *p) {
        return p->kind == PASS_ROWS && !(p->whole >> p->inner & 1) ? AF_REDUCE_ROWS : 1;
}

/* Row tiles worth trying where the inner tile is given. */
static int row_candidates(struct sched *s, struct af_phase *ph, const struct pass *p, int64_t inner, struct list *l) {
        int64_t unit = row_unit(p), most;
        if (p->row == AF_NONE || p->whole >> p->row & 1) {
                add(l, p->row == AF_NONE ? 1 : p->axes[p->row].extent, INT64_MAX);
                return 0;
        }
        int64_t extent = p->axes[p->row].extent, max = AF_MIN(extent, MAX_ROWS / unit * unit);
        int r = largest(s, ph, p, true, inner, unit, max, &most);
        if (r)
                return r;
        most = AF_MAX(most, AF_MIN(unit, max));
        add(l, most, max);
        if (p->kind == PASS_ROWS)
                for (int64_t v = unit; v < most; v *= 2)
                        add(l, v, most);
        else
                balanced(s, l, extent, others(p) * (ph->axes[p->inner].role == AF_AXIS_BLOCK ? tiles_of(ph, p->inner) : 1), 1, most);
        if (p->kind != PASS_ROWS)
                add(l, 1, 1);
        return 0;
}

static int inner_candidates(struct sched *s, struct af_phase *ph, const struct pass *p, struct variant v, struct list *l) {
        if (p->inner == AF_NONE || p->kind == PASS_LAST || v.inner_whole || p->whole >> p->inner & 1) {
                add(l, p->inner == AF_NONE ? 1 : p->axes[p->inner].extent, INT64_MAX);
                return 0;
        }
        int64_t extent = p->axes[p->inner].extent, unit = p->row == AF_NONE ? AF_KERNEL_ROUND : 64, most;
        int64_t rows = p->row != AF_NONE && p->whole >> p->row & 1 ? p->axes[p->row].extent
                       : p->row != AF_NONE                         ? AF_MIN(p->axes[p->row].extent, row_unit(p))
                                                                   : 1;
        int r = largest(s, ph, p, false, rows, unit, extent, &most);
        if (r)
                return r;
        most = most ? most : AF_MIN(unit, extent);
        add(l, most, most);
        balanced(s, l, extent, others(p) * (p->row != AF_NONE && p->kind != PASS_ROWS ? p->axes[p->row].extent : 1),
                 p->row == AF_NONE ? unit : BLOCK_UNIT, most);
        if (p->row != AF_NONE)
                for (int64_t t = 2 * unit; t < most; t *= 2)
                        add(l, t, most);
        return 0;
}

static int search(struct sched *s, struct af_phase *ph, const struct pass *p, struct variant v, struct best *best) {
        struct list inners = {0};
        int r = inner_candidates(s, ph, p, v, &inners);
        for (uint32_t i = 0; !r && i < inners.n; i++) {
                struct list rows = {0};
                sched_set_tile(ph, p, 1, inners.items[i]);
                r = row_candidates(s, ph, p, inners.items[i], &rows);
                for (uint32_t k = 0; !r && k < rows.n; k++)
                        r = try_tile(s, ph, p, rows.items[k], inners.items[i], best);
        }
        return r;
}

static bool worth_trying(const struct sched *s, const struct pass *p, struct variant v) {
        if (!v.inner_whole)
                return !v.hoist_expand;
        if (p->inner != AF_NONE && p->whole >> p->inner & 1)
                return v.hoist_expand;
        if (p->inner == AF_NONE || (p->kind != PASS_LAST && p->row == AF_NONE && p->n_axes == 1))
                return false;
        return p->axes[p->inner].extent <= (int64_t)s->soc->ub_bytes / 2;
}

int sched_tile(struct sched *s, const struct pass *p, struct af_phase *ret_phase) {
        static const struct variant variants[] = {{false, false}, {true, false}, {true, true}};
        bool found = false;
        for (uint32_t i = 0; i < AF_ARRAY_SIZE(variants); i++) {
                struct af_phase ph;
                struct best best = {0};
                if (i > 0 && !worth_trying(s, p, variants[i]))
                        continue;
                int r = sched_lower(s, p, variants[i], &ph);
                if (!r)
                        r = search(s, &ph, p, variants[i], &best);
                if (r)
                        return r;
                if (!best.found || (found && best.cycles >= ret_phase->cycles))
                        continue;
                ph.buffers = best.buffers;
                sched_set_tile(&ph, p, best.rows, best.inner);
                r = sched_allocate(s, &ph);
                if (r)
                        return r;
                sched_cost(s, &ph, sched_blocks(s, &ph));
                *ret_phase = ph;
                found = true;
        }
        return found ? 0 : sched_unfit(s, "even the smallest tile does not fit the unified buffer");
}

int sched_least(struct sched *s, const struct pass *p) {
        struct af_phase ph;
        bool ok;
        int r = sched_lower(s, p, (struct variant){0}, &ph);
        if (r)
                return r;
        int64_t rows = p->row == AF_NONE ? 1 : AF_MIN(p->axes[p->row].extent, row_unit(p));
        int64_t inner = p->inner == AF_NONE ? 1 : AF_MIN(p->axes[p->inner].extent, p->row == AF_NONE ? AF_KERNEL_ROUND : 64);
        rows = p->row != AF_NONE && p->whole >> p->row & 1 ? p->axes[p->row].extent : rows;
        inner = p->inner != AF_NONE && p->whole >> p->inner & 1 ? p->axes[p->inner].extent : inner;
        ph.buffers = 1;
        r = fits(s, &ph, p, rows, inner, &ok);
        return r || ok ? r : sched_unfit(s, "even the smallest tile does not fit the unified buffer");
}
