/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for tiles: a phase is lowered in each variant, and each pair of row and inner tile from two short lists is allocated and
 * costed. The cheapest that fits wins; ties go to the first. Candidates are what balances the cores, powers of two, and the largest that
 * fits.
 */
#include <errno.h>

#include "compiler/schedule/sched.h"

#define MAX_ROWS       4095 /* blocks of one DMA */
#define MAX_CANDIDATES 40
#define MAX_PIECES     64   /* of a row */
#define FIRST_GUESS    4096 /* elements of a tile; a row of more is long */
#define MAX_TURNS      24   /* tiles of a core beyond the fewest */
#define FEW_CYCLES     5000 /* a kernel for which some cores may be too many */
#define BLOCK_UNIT     8    /* 32 bytes of float32 */

struct list {
        int64_t items[MAX_CANDIDATES];
        uint32_t n;
};
struct best {
        bool found;
        uint64_t cycles, bytes;
        int64_t rows, inner;
        uint32_t load_buffers, store_buffers, blocks;
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

bool af_axis_tiles(const struct af_graph *g, const struct af_axis *x, int64_t *ret) {
        int64_t n = af_size_join(x->extent, x->extent_x), tiles;
        if (!x->ragged_tail)
                return af_size_ceil_div(g, n, x->tile, ret);
        if (!af_size_add(g, n, -1, &tiles) || !af_size_ceil_div(g, tiles, x->tile, &tiles) || !af_size_add(g, tiles, 1, &tiles))
                return false;
        *ret = tiles;
        return !x->extent_x || af_size_min(g, tiles, n, ret); /* none where there are no chunks */
}

/* Tiles of the phase as an expression, where they depend on symbols. */
static bool count_tiles(const struct sched *s, struct af_phase *phase) {
        int64_t n = 1, tiles;
        for (uint32_t a = 0; a < phase->n_axes; a++)
                if (phase->axes[a].role == AF_AXIS_BLOCK &&
                    (!af_axis_tiles(s->g, &phase->axes[a], &tiles) || !af_size_mul(s->g, n, tiles, &n)))
                        return false;
        phase->n_tiles_x = af_size_x(n);
        return true;
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

/* Lays the tile out in UB; whether it fits with one buffer of each queue. */
static int fits(struct sched *s, struct af_phase *ph, const struct pass *p, int64_t rows, int64_t inner, bool *ret_fits) {
        int64_t ub = s->soc->ub_bytes;
        *ret_fits = false;
        if (rows > ub || inner > ub || rows * inner > ub) /* a size with symbols may have no bound */
                return 0;
        sched_set_tile(ph, p, rows, inner);
        int r = sched_allocate(s, ph);
        ph->load_buffers = ph->store_buffers = 1;
        *ret_fits = !r && af_phase_ub_bytes(ph) <= s->soc->ub_bytes;
        return r;
}

/* Costs a tile that fits on as few cores as leave none with more tiles, and on fewer: where there is little to do starting them costs more.
 */
static void try_blocks(struct sched *s, struct af_phase *ph, int64_t rows, int64_t inner, struct best *best) {
        int64_t cores = s->soc->vector_cores, each = AF_MAX(1, (ph->n_tiles + cores - 1) / cores);
        uint64_t least = UINT64_MAX;
        for (uint32_t blocks, last = 0;; each++) {
                blocks = (uint32_t)AF_MAX(1, (ph->n_tiles + each - 1) / each);
                if (blocks == last)
                        continue;
                last = blocks;
                sched_cost(s, ph, blocks);
                if (!best->found || sched_better(ph->cycles, ph->hbm_bytes, best->cycles, best->bytes))
                        *best = (struct best){true, ph->cycles, ph->hbm_bytes, rows, inner, ph->load_buffers, ph->store_buffers, blocks};
                bool worse = s->exhaustive ? ph->cycles > 2 * least : ph->cycles > least || ph->cycles > FEW_CYCLES;
                least = AF_MIN(least, ph->cycles);
                if (worse || blocks == 1)
                        break;
        }
}

/* A tile with two buffers of each queue; where they do not fit, of one or the other; else with one of each. */
static int try_tile(struct sched *s, struct af_phase *ph, const struct pass *p, int64_t rows, int64_t inner, struct best *best,
                    bool *ret_fits) {
        static const struct {
                uint8_t loads, stores;
                bool last; /* where it fits no further one can be better */
        } buffers[] = {{2, 2, true}, {2, 1, false}, {1, 2, false}, {1, 1, true}};
        int r = fits(s, ph, p, rows, inner, ret_fits);
        bool tried = false;
        if (r || !*ret_fits)
                return r;
        for (size_t i = 0; i < AF_ARRAY_SIZE(buffers); i++) {
                ph->load_buffers = buffers[i].loads;
                ph->store_buffers = buffers[i].stores;
                if (af_phase_ub_bytes(ph) > s->soc->ub_bytes || (tried && buffers[i].last))
                        continue;
                try_blocks(s, ph, rows, inner, best);
                tried = true;
                if (buffers[i].last)
                        break;
        }
        return 0;
}

/*
 * Largest multiple of unit up to max for which the tile fits at all; 0: none. What a tile needs grows about evenly, so that each try says
 * about where the end is; halves where that does not help.
 */
static int largest(struct sched *s, struct af_phase *ph, const struct pass *p, bool by_rows, int64_t other, int64_t unit, int64_t max,
                   int64_t *ret) {
        int64_t lo = 0, hi = (max + unit - 1) / unit, guess = AF_MAX(1, FIRST_GUESS / (other * unit));
        for (unsigned turn = 0; lo < hi; turn++) {
                int64_t n = turn < 6 ? AF_MAX(lo + 1, AF_MIN(guess, hi)) : lo + (hi - lo + 1) / 2, v = AF_MIN(n * unit, max);
                bool ok;
                int r = fits(s, ph, p, by_rows ? v : other, by_rows ? other : v, &ok);
                if (r)
                        return r;
                if (ok)
                        lo = n;
                else
                        hi = n - 1;
                uint64_t need = v * other > (int64_t)s->soc->ub_bytes ? 0 : af_phase_ub_bytes(ph);
                guess = need ? n * (int64_t)s->soc->ub_bytes / (int64_t)need : lo + (hi - lo + 1) / 2;
        }
        *ret = AF_MIN(lo * unit, max);
        return 0;
}

/* The largest tile, and about the largest that have room for more buffers. */
static int add_largest(struct sched *s, struct list *l, struct af_phase *ph, const struct pass *p, bool by_rows, int64_t other,
                       int64_t unit, int64_t max, int64_t *ret_most) {
        bool ok;
        int r = largest(s, ph, p, by_rows, other, unit, max, ret_most);
        *ret_most = AF_MAX(*ret_most, AF_MIN(unit, max));
        if (!r)
                r = fits(s, ph, p, by_rows ? *ret_most : other, by_rows ? other : *ret_most, &ok);
        if (r)
                return r;
        add(l, *ret_most, max);
        for (uint32_t more = 1; more <= 3; more++) {
                ph->load_buffers = more & 1 ? 2 : 1;
                ph->store_buffers = more & 2 ? 2 : 1;
                if (af_phase_ub_bytes(ph) > s->soc->ub_bytes)
                        add(l, *ret_most * (int64_t)s->soc->ub_bytes / (int64_t)af_phase_ub_bytes(ph) / unit * unit, max);
        }
        return 0;
}

/*
 * Tiles of n elements of an axis, beside `others` independent tiles, that give every core as much, from few large ones to many small ones;
 * and over fewer cores where there is too little for all.
 */
static void balanced(const struct sched *s, struct list *l, int64_t n, int64_t others, int64_t unit, int64_t max) {
        int64_t cores = s->soc->vector_cores, all = n * AF_MIN(others, INT64_MAX / 2 / n), least = AF_MAX(1, all / (cores * max));
        for (int64_t m = least; m <= least + MAX_TURNS; m += 1 + (m - least) / 8) {
                int64_t pieces = AF_MAX(1, (cores * m + others - 1) / others);
                if (pieces > n)
                        break;
                add(l, AF_ALIGN_UP((n + pieces - 1) / pieces, unit), max);
        }
        for (int64_t blocks = 1; blocks < cores && others < cores && n / max < cores; blocks += 1 + blocks / 2)
                add(l, AF_ALIGN_UP((n + blocks - 1) / blocks, unit), max);
}

/* Tiles with which the transfers of some value are just large enough for the better rate. `other`: elements along the tile's other axis. */
static void full_speed(const struct sched *s, struct list *l, const struct af_phase *ph, int64_t other, int64_t unit, int64_t max) {
        for (uint32_t i = 0; i < ph->n_stmts; i++) {
                if (ph->stmts[i].kind != AF_KSTMT_LOAD || ph->values[ph->stmts[i].dst].hold != AF_HOLD_FULL)
                        continue;
                int64_t size = other * af_dtype_size(ph->values[ph->stmts[i].dst].dtype),
                        n = ((int64_t)s->soc->small_bytes + size - 1) / size;
                n = AF_ALIGN_UP(n, unit);
                if (n <= max)
                        add(l, n, max);
        }
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
                add(l, p->row == AF_NONE ? 1 : p->axes[p->row].most, INT64_MAX);
                return 0;
        }
        int64_t extent = p->axes[p->row].extent, max = AF_MIN(extent, MAX_ROWS / unit * unit);
        int r = add_largest(s, l, ph, p, true, inner, unit, max, &most);
        if (r)
                return r;
        full_speed(s, l, ph, inner, unit, most);
        if (p->kind >= PASS_ROWS)
                for (int64_t v = unit; v < most; v *= 2)
                        add(l, v, most);
        else
                balanced(s, l, extent, others(p) * (ph->axes[p->inner].role == AF_AXIS_BLOCK ? tiles_of(ph, p->inner) : 1), 1, most);
        if (p->kind < PASS_ROWS)
                add(l, 1, 1);
        return 0;
}

static int inner_candidates(struct sched *s, struct af_phase *ph, const struct pass *p, struct variant v, struct list *l) {
        if (p->inner == AF_NONE || p->kind == PASS_LAST || v.inner_whole || p->whole >> p->inner & 1) {
                add(l, p->inner == AF_NONE ? 1 : p->kind == PASS_LAST ? ph->axes[p->inner].tile : p->axes[p->inner].most, INT64_MAX);
                return 0;
        }
        int64_t extent = p->axes[p->inner].extent, unit = BLOCK_UNIT, most;
        int64_t rows = p->row != AF_NONE && p->whole >> p->row & 1 ? p->axes[p->row].most
                       : p->row != AF_NONE                         ? AF_MIN(p->axes[p->row].extent, row_unit(p))
                                                                   : 1;
        int r = add_largest(s, l, ph, p, false, rows, unit, extent, &most);
        if (r)
                return r;
        if (p->row == AF_NONE) {
                full_speed(s, l, ph, rows, unit, most);
                balanced(s, l, extent, others(p), unit, most);
                return 0;
        }
        for (int64_t two = 1; two <= MAX_PIECES && two <= extent; two *= 2)
                for (int64_t pieces = two; pieces <= 3 * two / 2; pieces += AF_MAX(1, two / 2)) /* 1, 2, 3, 4, 6, 8, 12, ... */
                        if ((extent + pieces - 1) / pieces <= most)
                                add(l, AF_ALIGN_UP((extent + pieces - 1) / pieces, unit), most);
        return 0;
}

/* Where a row is long: inner tiles for all rows, half of them, ... */
static int search_tall(struct sched *s, struct af_phase *ph, const struct pass *p, struct best *best) {
        int64_t extent = p->axes[p->row].extent, unit = row_unit(p);
        int r = 0;
        for (int64_t rows = AF_MIN(extent, MAX_ROWS); !r && rows > unit; rows = (rows + 1) / 2) {
                struct list inners = {0};
                int64_t most, tall = AF_ALIGN_UP(rows, unit);
                bool ok;
                tall = AF_MIN(tall, extent);
                r = add_largest(s, &inners, ph, p, false, tall, BLOCK_UNIT, p->axes[p->inner].extent, &most);
                if (r)
                        break;
                full_speed(s, &inners, ph, tall, BLOCK_UNIT, most);
                balanced(s, &inners, p->axes[p->inner].extent, others(p) * (p->kind == PASS_ROWS ? 1 : (extent + tall - 1) / tall),
                         BLOCK_UNIT, most);
                for (uint32_t k = 0; !r && k < inners.n; k++)
                        r = try_tile(s, ph, p, tall, inners.items[k], best, &ok);
        }
        return r;
}

static int search(struct sched *s, struct af_phase *ph, const struct pass *p, struct variant v, struct best *best) {
        struct list inners = {0};
        int r = inner_candidates(s, ph, p, v, &inners);
        bool tall = p->row != AF_NONE && p->kind != PASS_LAST && !(p->whole >> p->row & 1) && !(p->whole >> p->inner & 1) && !v.inner_whole;
        if (!r && tall && (inners.items[0] < p->axes[p->inner].extent || p->axes[p->inner].extent > FIRST_GUESS))
                r = search_tall(s, ph, p, best);
        for (uint32_t i = 0; !r && i < inners.n; i++) {
                struct list rows = {0};
                sched_set_tile(ph, p, 1, inners.items[i]);
                r = row_candidates(s, ph, p, inners.items[i], &rows);
                bool ok;
                for (uint32_t k = 0; !r && k < rows.n; k++)
                        r = try_tile(s, ph, p, rows.items[k], inners.items[i], best, &ok);
        }
        return r;
}

/* Every row tile for one inner tile: what is too large for UB stays so with more rows. */
static int search_rows(struct sched *s, struct af_phase *ph, const struct pass *p, int64_t inner, struct best *best, bool *ret_fits) {
        bool whole = p->row == AF_NONE || p->whole >> p->row & 1;
        int64_t extent = p->row == AF_NONE ? 1 : p->axes[p->row].extent, unit = whole ? extent : row_unit(p), rows = unit;
        int r;
        bool ok;
        *ret_fits = false;
        do {
                r = try_tile(s, ph, p, AF_MIN(rows, extent), inner, best, &ok);
                *ret_fits |= ok;
                rows += unit;
        } while (!r && ok && rows - unit < extent && rows <= MAX_ROWS);
        return r;
}

static int search_all(struct sched *s, struct af_phase *ph, const struct pass *p, struct variant v, struct best *best) {
        bool whole = p->inner == AF_NONE || p->kind == PASS_LAST || v.inner_whole || p->whole >> p->inner & 1, ok;
        int64_t extent = p->inner == AF_NONE ? 1 : p->axes[p->inner].extent, unit = whole ? extent : BLOCK_UNIT, inner = unit;
        int r;
        do {
                r = search_rows(s, ph, p, AF_MIN(inner, extent), best, &ok);
                inner += unit;
        } while (!r && ok && inner - unit < extent);
        return r;
}

static bool worth_trying(const struct sched *s, const struct pass *p, struct variant v) {
        if (!v.inner_whole)
                return !v.hoist_expand;
        if (p->inner != AF_NONE && p->whole >> p->inner & 1)
                return v.hoist_expand;
        if (p->inner == AF_NONE || (p->kind != PASS_LAST && p->row == AF_NONE && p->n_axes == 1))
                return false;
        return !p->axes[p->inner].x && p->axes[p->inner].extent <= (int64_t)s->soc->ub_bytes / 2;
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
                        r = s->exhaustive ? search_all(s, &ph, p, variants[i], &best) : search(s, &ph, p, variants[i], &best);
                if (r)
                        return r;
                if (!best.found || (found && !sched_better(best.cycles, best.bytes, ret_phase->cycles, ret_phase->hbm_bytes)))
                        continue;
                ph.load_buffers = best.load_buffers;
                ph.store_buffers = best.store_buffers;
                sched_set_tile(&ph, p, best.rows, best.inner);
                r = sched_allocate(s, &ph);
                if (r)
                        return r;
                ph.blocks = best.blocks;
                sched_cost(s, &ph, ph.blocks);
                *ret_phase = ph;
                found = true;
        }
        if (!found)
                return sched_unfit(s, "even the smallest tile does not fit the unified buffer");
        return count_tiles(s, ret_phase) ? 0 : sched_unfit(s, "sizes beyond 64 bits");
}

int sched_least(struct sched *s, const struct pass *p) {
        struct af_phase ph;
        bool ok;
        int r = sched_lower(s, p, (struct variant){0}, &ph);
        if (r)
                return r;
        int64_t rows = p->row == AF_NONE ? 1 : AF_MIN(p->axes[p->row].extent, row_unit(p));
        int64_t inner = p->inner == AF_NONE ? 1 : AF_MIN(p->axes[p->inner].extent, p->row == AF_NONE ? AF_KERNEL_ROUND : 64);
        rows = p->row != AF_NONE && p->whole >> p->row & 1 ? p->axes[p->row].most : rows;
        inner = p->inner != AF_NONE && p->whole >> p->inner & 1 ? p->axes[p->inner].most : inner;
        r = fits(s, &ph, p, rows, inner, &ok);
        return r || ok ? r : sched_unfit(s, "even the smallest tile does not fit the unified buffer");
}
