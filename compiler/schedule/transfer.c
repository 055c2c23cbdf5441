/* SPDX-License-Identifier: Apache-2.0 */
/* The DMA calls of a load or store (lib_load, lib_store): distinct 32-byte sectors per call, and their time. Pointers count as aligned. */
#include "compiler/schedule/timeline.h"

#define SECTOR 32
#define BATCH  4095 /* rows of one call */

struct rows { /* in bytes */
        int64_t at, step, length;
        bool apart; /* a call each */
};

/* Sectors of row r that the row before it, in the same call, has not touched. */
static int64_t fresh(const struct rows *t, int64_t r, bool first) {
        int64_t from = (t->at + r * t->step) / SECTOR, to = (t->at + r * t->step + t->length - 1) / SECTOR;
        return to - from + 1 - (!first && from <= (t->at + (r - 1) * t->step + t->length - 1) / SECTOR ? 1 : 0);
}

/* Rows whose places within a sector repeat. */
static int64_t period(int64_t step) {
        int64_t p = 1;
        while (p < SECTOR && step * p % SECTOR)
                p *= 2;
        return p;
}

/* Sectors of n rows of one call. */
static int64_t sectors(const struct rows *t, int64_t n) {
        if (n <= 0 || t->length <= 0)
                return 0;
        if (t->step == t->length || n == 1)
                return (t->at + n * t->length - 1) / SECTOR - t->at / SECTOR + 1;
        int64_t all = fresh(t, 0, true), p = period(t->step), turns = (n - 1) / p, once = 0, rest = 0;
        for (int64_t r = 1; r <= AF_MIN(p, n - 1); r++) {
                int64_t k = fresh(t, r, false);
                once += k;
                rest += r <= (n - 1) % p ? k : 0;
        }
        return all + turns * once + rest;
}

static double cycles_of(const struct af_soc *soc, bool load, int64_t bytes, uint32_t blocks) {
        const struct af_dma_cost *c = !load ? &soc->store : (double)bytes < soc->small_bytes ? &soc->load_small : &soc->load;
        return (double)bytes / (c->a + c->b / blocks) + c->h;
}

/* n rows as the helpers move them: many in a call where the gaps are forward, else one by one. */
static void add_rows(struct sched_transfer *t, const struct af_soc *soc, bool load, struct rows rows, int64_t n, uint32_t blocks) {
        int64_t gap = rows.step - rows.length;
        if (gap >= 0 && gap <= INT32_MAX && !rows.apart) {
                for (; n > 0; n -= BATCH, rows.at += BATCH * rows.step) {
                        int64_t bytes = SECTOR * sectors(&rows, AF_MIN(n, BATCH));
                        t->bytes += (uint64_t)bytes;
                        t->cycles += cycles_of(soc, load, bytes, blocks);
                }
                return;
        }
        for (int64_t r = 0, same = period(rows.step); r < AF_MIN(same, n); r++) { /* a call per row */
                int64_t bytes = SECTOR * fresh(&rows, r, true), like_it = (n - r + same - 1) / same;
                t->bytes += (uint64_t)(bytes * like_it);
                t->cycles += (double)like_it * cycles_of(soc, load, bytes, blocks);
        }
}

/* Lines as they lie in memory; of elements that stand apart each is a row, and each line a call. */
static void add_raw(struct sched_transfer *t, const struct af_soc *soc, const struct af_kstmt *s, const struct af_raw *raw,
                    const struct sched_tile_at *at, int64_t element, uint32_t blocks) {
        bool load = s->kind == AF_KSTMT_LOAD;
        int64_t n = at->length[raw->line], lines = raw->lines == AF_NONE ? 1 : at->length[raw->lines], size = raw->size;
        int64_t step = raw->step < 0 ? -raw->step : raw->step, next = raw->lines == AF_NONE ? 0 : s->access.strides[raw->lines];
        element += raw->step < 0 ? (n - 1) * raw->step : 0;
        if (!raw->apart) {
                add_rows(t, soc, load, (struct rows){element * size, next * size, ((n - 1) * step + 1) * size}, lines, blocks);
                return;
        }
        for (int64_t i = 0, same = period(next * size); i < AF_MIN(same, lines); i++) {
                struct sched_transfer one = {0};
                add_rows(&one, soc, load, (struct rows){(element + i * next) * size, step * size, size}, n, blocks);
                int64_t like_it = (lines - i + same - 1) / same;
                t->bytes += one.bytes * (uint64_t)like_it;
                t->cycles += one.cycles * (double)like_it;
        }
}

struct sched_transfer sched_transfer_cost(const struct af_soc *soc, const struct af_phase *p, const struct af_kstmt *s,
                                          const struct sched_tile_at *at, uint32_t blocks) {
        const struct af_stage *st = &p->stages[s->stage];
        bool load = s->kind == AF_KSTMT_LOAD;
        const struct af_kvalue *v = &p->values[load ? s->dst : s->src[0]];
        int64_t size = af_dtype_size(v->dtype), element = s->access.offset, n = 1, cols = 1, step = 0;
        struct sched_transfer t = {0};
        for (uint32_t a = 0; a < p->n_axes; a++)
                element += at->start[a] * s->access.strides[a];
        if (v->hold == AF_HOLD_RAW) {
                add_raw(&t, soc, s, &v->raw, at, element, blocks);
                return t;
        }
        if (v->hold == AF_HOLD_COLUMN)
                cols = at->length[st->row_axis];
        else if (v->hold != AF_HOLD_ONE && st->inner_axis != AF_NONE)
                cols = at->length[st->inner_axis];
        if (v->hold == AF_HOLD_FULL && st->row_axis != AF_NONE) {
                n = at->length[st->row_axis];
                step = s->access.strides[st->row_axis];
        }
        bool apart = !load && s->src[1] != AF_NONE; /* at places that an index tells: taken for those that the rows have themselves */
        add_rows(&t, soc, load, (struct rows){element * size, step * size, cols * size, apart}, n, blocks);
        return t;
}

static uint64_t sectors_of(int64_t bytes) {
        return (uint64_t)AF_ALIGN_UP(bytes, (int64_t)SECTOR);
}

/* Accesses to UB per entry, slot and bin: as the helpers have them. All wait for the fullest bin: two deviations more than the others. */
struct sched_bins_turn sched_bins_cost(const struct af_soc *soc, const struct af_phase *p, int64_t tile, uint32_t blocks) {
        const struct af_bins *b = &p->bins;
        const struct af_vec_cost *fill = &soc->vec_unary_f32;
        int64_t word = sizeof(int32_t);
        struct sched_bins_turn t = {0};
        if (p->kind == AF_PHASE_BIN) {
                int64_t n = b->n * (tile + 1) / b->sources - b->n * tile / b->sources;
                t.vector = fill->c + fill->k * b->bins * b->words;
                t.load_bytes = sectors_of(n * af_dtype_size(b->dtype));
                t.store_bytes = (uint64_t)word * b->bins * b->words;
                t.store = cycles_of(soc, false, (int64_t)t.store_bytes, blocks);
                t.scalar = SCHED_SCALAR * (4 * (double)n + 2 * (double)b->bins);
        } else {
                int64_t n = b->n / b->bins, more = 0, entries = (int64_t)sectors_of(2 * n * word);
                t.vector = fill->c + fill->k * b->table;
                t.load_bytes = (uint64_t)word * b->sources * b->words;
                t.store_bytes = (uint64_t)entries;
                t.store = cycles_of(soc, false, entries, blocks);
                while (more * more < 4 * n)
                        more++;
                t.scalar = SCHED_SCALAR * (4 * (double)(n + more) + b->sources);
        }
        t.load = cycles_of(soc, true, (int64_t)t.load_bytes, blocks);
        return t;
}

/* Of n rows those that are read: the first of its kind, in all and where a core starts or, with pieces of rows, a tile. */
static double read_share(const struct af_phase *p, const struct af_kstmt *s, uint32_t blocks) {
        const struct af_axis *row = &p->axes[p->stages[s->stage].row_axis], *inner = &p->axes[p->stages[s->stage].inner_axis];
        double n = (double)row->extent;
        double starts = inner->role == AF_AXIS_WHOLE || inner->tile == inner->extent ? blocks : n / (double)row->tile;
        return AF_MIN(1, s->pick.distinct / n + (1 - s->pick.distinct / n) * starts / n);
}

/*
 * Sectors of a row of so many bytes that an index picks: as many as any of them may take, which is what all take where steps are whole
 * sectors. Elements never straddle one.
 */
static int64_t picked_sectors(const struct af_phase *p, const struct af_kstmt *s, const struct sched_tile_at *at, int64_t size,
                              int64_t length) {
        const struct af_stage *st = &p->stages[s->stage];
        int64_t base = s->access.offset, unit = SECTOR, row = st->row_axis == AF_NONE ? 0 : s->access.strides[st->row_axis];
        for (uint32_t a = 0; a < p->n_axes; a++)
                base += at->start[a] * s->access.strides[a];
        while (s->pick.stride * size % unit || row * size % unit)
                unit /= 2;
        int64_t from = (base * size % unit + unit) % unit + SECTOR - unit;
        return (from + length - 1) / SECTOR + 1;
}

struct sched_fetch sched_fetch_cost(const struct af_soc *soc, const struct af_phase *p, const struct af_kstmt *s,
                                    const struct sched_tile_at *at, uint32_t blocks) {
        const struct af_stage *st = &p->stages[s->stage];
        const struct af_kvalue *v = &p->values[s->dst];
        int64_t size = af_dtype_size(v->dtype), rows = 1, cols = 1;
        if ((v->hold == AF_HOLD_FULL || v->hold == AF_HOLD_ROW) && st->inner_axis != AF_NONE)
                cols = at->length[st->inner_axis];
        if (v->hold == AF_HOLD_FULL && st->row_axis != AF_NONE)
                rows = at->length[st->row_axis];
        if (v->hold == AF_HOLD_COLUMN)
                cols = at->length[st->row_axis];
        if (!s->pick.runs) {
                rows *= cols;
                cols = 1;
        }
        int64_t bytes = SECTOR * (s->pick.runs ? picked_sectors(p, s, at, size, cols * size) : 1);
        if (s->pick.once) {
                const struct af_vec_cost *copy = &soc->vec_default_f16;
                double read = (double)rows * read_share(p, s, blocks);
                return (struct sched_fetch){.cycles = read * cycles_of(soc, true, bytes, blocks),
                                            .bytes = (uint64_t)(read * (double)bytes + .5),
                                            .n = (uint32_t)rows,
                                            .queued = true,
                                            .issue = SCHED_SCALAR * (double)rows,
                                            .after = ((double)rows - read + 1) *
                                                     (copy->c + copy->k * (double)AF_ALIGN_UP(cols * size / 2, 128))};
        }
        return (struct sched_fetch){.cycles = (double)rows * (cycles_of(soc, true, bytes, blocks) + (s->pick.runs ? 0 : 2 * SCHED_SCALAR)),
                                    .bytes = (uint64_t)(rows * bytes),
                                    .n = s->pick.runs ? (uint32_t)rows : 0,
                                    .queued = s->pick.queued};
}

bool sched_stores(const struct af_phase *p, const struct af_kstmt *s, const struct sched_tile_at *at) {
        const struct af_stage *st = &p->stages[s->stage];
        for (uint32_t a = 0; a < p->n_axes; a++) {
                const struct af_axis *x = &p->axes[a];
                bool loops = x->role == AF_AXIS_LOOP && st->row_axis != AF_NONE && (a == st->row_axis || a == st->inner_axis);
                if (!s->access.strides[a] && x->extent != x->tile && (x->role == AF_AXIS_BLOCK || loops) && at->start[a] != 0)
                        return false;
        }
        return true;
}
