/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cycles of the vector pipe for one statement on one tile: the calls that the emitter and rules/templates/lib_*.j2 make of it, each at
 * the SoC's k * elements + c, elements in whole repeats. A test compares the sums with the checked twin's.
 */
#include "compiler/schedule/timeline.h"

#define REPEAT     256u /* bytes */
#define MAX_REPEAT 255u
#define MAX_STEP   255u /* 32-byte blocks between rows that a repeat can skip */

struct calls {
        const struct af_soc *soc;
        const struct af_phase *p;
        const struct af_kstmt *s;
        const struct af_stage *st;
        const struct sched_tile_at *at;
};

static uint32_t up(uint32_t n, uint32_t to) {
        return (n + to - 1) / to * to;
}
static uint32_t pieces(uint32_t n, uint32_t of) {
        return (n + of - 1) / of;
}

static unsigned size_of(enum af_dtype d) {
        return d == AF_DTYPE_MASK ? 1 : af_dtype_size(d);
}

static const struct af_vec_cost *cost_of(const struct af_soc *soc, bool unary, unsigned from, unsigned to) {
        return from == 8 || to == 8   ? &soc->vec_wide
               : from == 1 && to == 2 ? &soc->vec_u8_f16
               : from == 4 && to == 2 ? &soc->vec_f32_f16
               : from <= 2 && to <= 2 ? (unary ? &soc->vec_unary_f16 : &soc->vec_default_f16)
               : unary                ? &soc->vec_unary_f32
                                      : &soc->vec_default_f32;
}

/* n calls over so many elements in all. */
static double calls(const struct calls *c, bool unary, unsigned from, unsigned to, double n, double elements) {
        const struct af_vec_cost *v = cost_of(c->soc, unary, from, to);
        return v->c * n + v->k * elements;
}

static uint32_t length_of(const struct calls *c, uint32_t axis) {
        return axis == AF_NONE ? 1 : (uint32_t)c->at->length[axis];
}
static uint32_t rows(const struct calls *c) {
        return length_of(c, c->st->row_axis);
}
static uint32_t cols(const struct calls *c) {
        return length_of(c, c->st->inner_axis);
}
/* Rows of the tile that value v belongs to. */
static uint32_t rows_of(const struct calls *c, uint32_t v) {
        return length_of(c, c->p->stages[c->p->values[v].stage].row_axis);
}

static uint32_t count(const struct calls *c, uint32_t v) {
        const struct af_kvalue *value = &c->p->values[v];
        switch (value->hold) {
        case AF_HOLD_FULL:
                return up(c->st->row_axis == AF_NONE ? cols(c) : rows(c) * c->st->pitch, AF_KERNEL_ROUND);
        case AF_HOLD_ROW:
                return up(cols(c), AF_KERNEL_ROUND);
        case AF_HOLD_COLUMN:
                return up(rows(c), AF_KERNEL_ROUND);
        case AF_HOLD_ONE:
                return AF_KERNEL_ROUND;
        default:
                return af_kvalue_elements(c->p, value);
        }
}

static double prim(const struct calls *c) {
        const struct af_prim_ins *ins = &c->s->ins;
        const struct af_prim_info *info = af_prim_info(ins->prim);
        double n = count(c, c->s->dst);
        unsigned from = size_of(ins->dtype), to = size_of(ins->to);
        switch (ins->prim) {
        case AF_PRIM_AND:
        case AF_PRIM_OR:
        case AF_PRIM_NOT: /* on 16-bit words */
                return calls(c, info->n_src == 1, 2, 2, 1, from > 2 ? n * from / 2 : n);
        case AF_PRIM_MASK_AND:
        case AF_PRIM_MASK_OR:
        case AF_PRIM_MASK_NOT:
                return calls(c, info->n_src == 1, 2, 2, 1, (uint32_t)n / 16);
        default:
                break;
        }
        switch (info->kind) {
        case 'M':
        case 'm':
                return calls(c, false, from, 1, 1, n);
        case '?':
                return calls(c, false, from, from, 1, n);
        case 'D':
                return calls(c, true, to, to, 1, n);
        default:
                return calls(c, info->n_src == 1, from, to, 1, n);
        }
}

/* lib_expand_row */
static double expand_row(const struct calls *c, unsigned size) {
        uint32_t n = up(cols(c) * size, 2) / 2, step = c->st->pitch * size / 2, r = rows(c);
        if (r < pieces(n, 128) || step > MAX_STEP * 16)
                return calls(c, false, 2, 2, r, (double)r * n);
        double columns = pieces(n, 128);
        return calls(c, false, 2, 2, columns * pieces(r, MAX_REPEAT), columns * r * 128);
}

/* lib_expand_column */
static double expand_column(const struct calls *c, unsigned size, uint32_t r, uint32_t columns, uint32_t pitch) {
        uint32_t n = columns * size / 2, step = pitch * size / 2;
        double t = calls(c, false, size, size, pieces(r, 2040), (double)up(r, 8) / 8 * (REPEAT / size));
        if (r > 1 && step <= MAX_STEP * 16 && pieces(n, 128) <= (n % 128 ? 2 * r : r)) {
                double k = pieces(n, 128);
                return t + calls(c, false, 2, 2, k * pieces(r, MAX_REPEAT), k * r * 128);
        }
        uint32_t full = n / 128;
        t += r * calls(c, false, 2, 2, pieces(full, MAX_REPEAT), full * 128);
        return n % 128 ? t + r * calls(c, false, 2, 2, 1, 128) : t;
}

static double expand(const struct calls *c) {
        const struct af_kvalue *src = &c->p->values[c->s->src[0]];
        unsigned size = af_dtype_size(src->dtype);
        switch (src->hold) {
        case AF_HOLD_ROW:
                return expand_row(c, size);
        case AF_HOLD_COLUMN:
                return expand_column(c, size, rows(c), cols(c), c->st->pitch);
        default:
                return expand_column(c, size, 1, count(c, c->s->dst), 0);
        }
}

static uint32_t chunk_pitch(const struct calls *c, uint32_t v) {
        const struct af_kvalue *value = &c->p->values[v];
        return af_kvalue_elements(c->p, value) / c->p->stages[value->stage].rows;
}

/* What a value's tile looks like to a combination along its rows: as row_shape in the emitter. */
struct shape {
        uint32_t rows, cols, pitch;
};
static bool has_loop(const struct af_phase *p) {
        for (uint32_t a = 0; a < p->n_axes; a++)
                if (p->axes[a].role == AF_AXIS_LOOP)
                        return true;
        return false;
}
static struct shape shape_of(const struct calls *c, uint32_t v) {
        const struct af_kvalue *src = &c->p->values[v];
        const struct af_stage *st = &c->p->stages[src->stage];
        if (c->s->flat)
                return (struct shape){1, rows_of(c, v) * length_of(c, st->inner_axis), 0};
        if (src->hold == AF_HOLD_ROW || src->hold == AF_HOLD_COLUMN)
                return (struct shape){1, length_of(c, src->hold == AF_HOLD_COLUMN ? st->row_axis : st->inner_axis), 0};
        if (src->hold == AF_HOLD_CHUNKS)
                return (struct shape){rows_of(c, v), has_loop(c->p) ? (uint32_t)c->at->steps : src->columns, chunk_pitch(c, v)};
        return (struct shape){rows_of(c, v), length_of(c, st->inner_axis), st->pitch};
}

/* lib_row_lanes */
static double row_lanes(const struct calls *c, unsigned size, uint32_t r, uint32_t n, uint32_t pitch) {
        unsigned width = REPEAT / size;
        uint32_t full = n / AF_REDUCE_LANES, tail = n % AF_REDUCE_LANES ? 1 : 0;
        if (r > 1 && pitch * size / 32 <= MAX_STEP && full + tail <= (tail ? 2 * r : r)) {
                double columns = full + tail;
                return calls(c, false, size, size, columns * pieces(r, MAX_REPEAT), columns * r * width);
        }
        return r * calls(c, false, size, size, pieces(full, MAX_REPEAT) + tail, (full + tail) * width);
}

/* lib_lane_sum */
static double lane_sum(const struct calls *c, uint32_t r) {
        return calls(c, false, 4, 4, pieces(r, MAX_REPEAT), (double)r * AF_REDUCE_LANES);
}

/* lib_row_chunks */
static double row_chunks(const struct calls *c) {
        struct shape x = shape_of(c, c->s->src[0]);
        uint32_t full = x.cols / AF_REDUCE_CHUNK, tail = x.cols % AF_REDUCE_CHUNK;
        double each = calls(c, true, 4, 4, 1, x.rows * AF_REDUCE_LANES) + lane_sum(c, x.rows);
        return full * (each + row_lanes(c, 4, x.rows, AF_REDUCE_CHUNK, x.pitch)) +
               (tail ? each + row_lanes(c, 4, x.rows, tail, x.pitch) : 0);
}

/* lib_lane_halves */
static double lane_halves(const struct calls *c, unsigned size, uint32_t r) {
        unsigned width = REPEAT / size, block = 32 / size;
        double t = 0;
        for (uint32_t n = AF_REDUCE_LANES / 2; n >= block; n /= 2)
                t += calls(c, false, size, size, pieces(r, MAX_REPEAT), r * width);
        for (uint32_t n = r * block; n > r; n /= 2)
                t += calls(c, false, size, size, 3, 2.5 * n);
        return t;
}

/* lib_lane_sum, lib_lane_tree */
static double lane_tree(const struct calls *c) {
        const struct af_kvalue *src = &c->p->values[c->s->src[0]];
        unsigned size = af_dtype_size(src->dtype);
        uint32_t r = c->p->values[c->s->dst].hold == AF_HOLD_ONE ? 1 : rows_of(c, c->s->src[0]);
        if (c->s->combine == AF_COMBINE_ADD && src->dtype == AF_DTYPE_FLOAT32)
                return lane_sum(c, r);
        if (!af_combine_ordered(c->s->combine, src->dtype))
                return lane_halves(c, size, r);
        double t = 0;
        for (uint32_t n = r * AF_REDUCE_LANES; n > r; n /= 2)
                t += calls(c, false, size, size, 3, 2.5 * n);
        return t;
}

/* lib_row_levels: rows `first` on of the run. */
static double row_levels(const struct calls *c) {
        unsigned size = af_dtype_size(c->p->values[c->s->src[0]].dtype), width = REPEAT / size;
        uint32_t n = cols(c), all = rows(c), lanes = pieces(n, AF_REDUCE_LANES);
        int64_t first = c->at->first;
        bool steps = c->st->pitch * size / 32 <= MAX_STEP;
        double t = 0, up_one = calls(c, false, size, size, 1, n) + calls(c, true, size, size, 1, n);
        for (uint32_t r = 0; r < all;) {
                uint32_t m = AF_REDUCE_ROWS - (uint32_t)((first + r) % AF_REDUCE_ROWS);
                m = AF_MIN(m, all - r);
                t += steps && n < AF_REDUCE_LANES * m ? calls(c, false, size, size, lanes, (double)lanes * m * width)
                                                      : calls(c, false, size, size, m, (double)m * n);
                r += m;
                int64_t done = first + r;
                for (uint32_t l = 0; l + 1 < c->p->levels && done % AF_REDUCE_ROWS == 0; l++, done /= AF_REDUCE_ROWS)
                        t += up_one;
        }
        return t;
}

/* lib_offsets, lib_offsets64 */
static double table(const struct calls *c) {
        const struct af_kvalue *v = &c->p->values[c->s->dst];
        uint32_t rows, cols;
        af_ktable_shape(c->p, v, &rows, &cols);
        bool wide = v->size == 8;
        double n = wide ? 2 * up(cols, 4) : cols, t = calls(c, true, 4, 4, wide ? 9 : 4, (wide ? 9 : 4) * n);
        if (wide)
                t += calls(c, false, 4, 4, 2, 2 * n);
        for (uint32_t k = 1; k < rows; k *= 2)
                t += calls(c, true, 4, 4, 1, AF_MIN(k, rows - k) * n);
        return t;
}

/* lib_pick */
static double gather(const struct calls *c) {
        const struct af_kvalue *t = &c->p->values[c->s->src[1]];
        uint32_t rows, cols, words = t->size == 8 ? 2 : 1;
        af_ktable_shape(c->p, t, &rows, &cols);
        double n = t->raw.stored                                             ? length_of(c, t->raw.lines) * cols
                   : t->raw.to == AF_HOLD_FULL && c->st->row_axis != AF_NONE ? length_of(c, c->st->row_axis) * cols
                                                                             : length_of(c, t->raw.line);
        return calls(c, false, 4, t->size == 2 ? 2 : 4, 1, n * words);
}

/* lib_scan_rows */
static double scan_rows(const struct calls *c) {
        unsigned size = af_dtype_size(c->p->values[c->s->src[0]].dtype);
        uint32_t n = cols(c), all = rows(c);
        return calls(c, false, size, size, all, (double)all * n) + calls(c, false, 2, 2, 1, n * size / 2);
}

/* lib_index */
static double index_of(const struct calls *c) {
        const struct af_kvalue *v = &c->p->values[c->s->dst];
        uint32_t axis = v->hold == AF_HOLD_COLUMN ? c->st->row_axis : v->hold == AF_HOLD_ONE ? AF_NONE : c->st->inner_axis;
        double n = axis != AF_NONE && c->s->access.strides[axis] != 1 ? 3 : 1;
        return calls(c, true, 4, 4, n, n * count(c, c->s->dst));
}

double sched_compute_cycles(const struct af_soc *soc, const struct af_phase *p, const struct af_kstmt *s, const struct sched_tile_at *at) {
        struct calls c = {soc, p, s, &p->stages[s->stage], at};
        unsigned size;
        switch (s->kind) {
        case AF_KSTMT_PRIM:
                return prim(&c);
        case AF_KSTMT_COPY:
                size = size_of(p->values[s->src[0]].dtype);
                return calls(&c, false, 2, 2, 1,
                             p->values[s->src[0]].dtype == AF_DTYPE_MASK ? up(count(&c, s->src[0]) / 8, 2) / 2
                                                                         : up(count(&c, s->src[0]) * size, 2) / 2);
        case AF_KSTMT_EXPAND:
                return expand(&c);
        case AF_KSTMT_FILL:
                size = size_of(p->values[s->dst].dtype);
                return calls(&c, true, size, size, 1,
                             p->values[s->dst].hold == AF_HOLD_LANES ? rows_of(&c, s->dst) * AF_REDUCE_LANES : count(&c, s->dst));
        case AF_KSTMT_ROW_LANES: {
                struct shape x = shape_of(&c, s->src[0]);
                return row_lanes(&c, af_dtype_size(p->values[s->src[0]].dtype), x.rows, x.cols, x.pitch);
        }
        case AF_KSTMT_ROW_CHUNKS:
                return row_chunks(&c);
        case AF_KSTMT_LANE_TREE:
                return lane_tree(&c);
        case AF_KSTMT_ROW_LEVELS:
                return row_levels(&c);
        case AF_KSTMT_LEVEL_TOP:
                size = af_dtype_size(p->values[s->src[0]].dtype);
                return calls(&c, false, size, size, p->levels - 1, (double)(p->levels - 1) * cols(&c));
        case AF_KSTMT_SCAN:
                return scan_rows(&c);
        case AF_KSTMT_INDEX:
                return index_of(&c);
        case AF_KSTMT_TABLE:
                return table(&c);
        case AF_KSTMT_GATHER:
                return gather(&c);
        case AF_KSTMT_FETCH: /* see sched_fetch_cost */
        case AF_KSTMT_LOAD:
        case AF_KSTMT_STORE:
                break;
        }
        return 0;
}
