/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiles whose rows are not contiguous in memory: transposed ones, steps, flips. They are loaded as they lie, in lines, and gathered into
 * rows in UB by a table of byte offsets; what is stored so is gathered into lines first. The table is the same for every tile, so that it
 * is made once per block.
 */
#include <errno.h>
#include <string.h>

#include "compiler/schedule/lower.h"

#define BLOCK 32

static uint32_t tile_of(const struct af_stage *st, uint32_t axis) {
        return axis == AF_NONE ? 1 : axis == st->inner_axis ? st->inner : st->rows;
}

uint32_t af_kraw_pitch(const struct af_phase *p, const struct af_kvalue *v) {
        uint64_t n = tile_of(&p->stages[v->stage], v->raw.line), per = BLOCK / v->raw.size;
        uint64_t step = (uint64_t)(v->raw.step < 0 ? -v->raw.step : v->raw.step);
        uint64_t pitch = v->raw.apart ? n * per : AF_ALIGN_UP((n - 1) * step + 1, per);
        return (uint32_t)AF_MIN(pitch, UINT32_C(1) << 24);
}

uint32_t af_kraw_lines(const struct af_phase *p, const struct af_kvalue *v) {
        return tile_of(&p->stages[v->stage], v->raw.lines);
}

void af_ktable_shape(const struct af_phase *p, const struct af_kvalue *v, uint32_t *ret_rows, uint32_t *ret_cols) {
        const struct af_stage *st = &p->stages[v->stage];
        *ret_rows = 1;
        if (v->raw.stored) {
                *ret_rows = af_kraw_lines(p, v);
                *ret_cols = af_kraw_pitch(p, v);
        } else if (v->raw.to == AF_HOLD_FULL && st->row_axis != AF_NONE) {
                *ret_rows = st->rows;
                *ret_cols = st->pitch;
        } else {
                *ret_cols = v->raw.to == AF_HOLD_COLUMN ? st->rows : st->inner;
        }
}

enum af_hold lower_raw_hold(const struct af_kvalue *v) {
        return v->hold == AF_HOLD_RAW ? v->raw.to : v->hold;
}

/* A stride that depends on a symbol counts as a large one, whatever it is at the hints. */
static int64_t stride_of(const struct lower *l, const struct af_access *a, uint32_t axis) {
        if (axis == AF_NONE || (l->phase->axes[axis].extent == 1 && !l->phase->axes[axis].extent_x))
                return 1;
        return a->strides_x[axis] ? RAW_STEP_UNKNOWN : a->strides[axis];
}

/* Whether what lies between the elements is worth loading: they share sectors anyway. */
static bool near(int64_t step, uint32_t size) {
        return step >= -(int64_t)(BLOCK / size) && step <= (int64_t)(BLOCK / size);
}

bool lower_lies(const struct lower *l, const struct af_access *access, enum af_hold hold, uint32_t size, struct af_raw *ret_raw) {
        bool tile = hold == AF_HOLD_FULL && l->row != AF_NONE;
        uint32_t axis = hold == AF_HOLD_COLUMN ? l->row : hold == AF_HOLD_FULL || hold == AF_HOLD_ROW ? l->inner : AF_NONE;
        int64_t inner = stride_of(l, access, axis), row = tile ? stride_of(l, access, l->row) : 0;
        *ret_raw = (struct af_raw){.line = axis, .lines = tile ? l->row : AF_NONE, .step = inner, .size = size, .to = hold};
        if (inner == 1)
                return false;
        if (tile && (row == 1 || (near(row, size) && !near(inner, size)))) {
                ret_raw->line = l->row;
                ret_raw->lines = l->inner;
                ret_raw->step = row;
        }
        ret_raw->apart = !near(ret_raw->step, size);
        return true;
}

static bool same_table(const struct af_kvalue *v, const struct af_raw *raw, uint32_t size) {
        const struct af_raw *t = &v->raw;
        return v->hold == AF_HOLD_TABLE && v->size == size && t->line == raw->line && t->lines == raw->lines && t->step == raw->step &&
               t->apart == raw->apart && t->size == raw->size && t->to == raw->to && t->stored == raw->stored;
}

/* One table per layout. Where lines start with their last element it goes by the tile's length. */
static int table(struct lower *l, const struct af_raw *raw, uint32_t size, uint32_t *ret) {
        for (uint32_t v = 0; v < l->phase->n_values; v++)
                if (same_table(&l->phase->values[v], raw, size) &&
                    (l->aux[v].hoisted ? l->may_hoist : l->phase->values[v].stage == l->stage)) {
                        *ret = v;
                        return 0;
                }
        int r = lower_value(l, AF_DTYPE_UINT32, AF_HOLD_TABLE, raw->step < 0 ? 1u << raw->line : 0, ret);
        if (r)
                return r;
        l->phase->values[*ret].raw = *raw;
        l->phase->values[*ret].size = size;
        return lower_emit(l, (struct af_kstmt){.kind = AF_KSTMT_TABLE, .dst = *ret, .src = {AF_NONE, AF_NONE, AF_NONE}});
}

static int gather(struct lower *l, uint32_t v, enum af_hold hold, const struct af_raw *raw, uint32_t *ret) {
        enum af_dtype d = l->phase->values[v].dtype;
        uint32_t t;
        int r = table(l, raw, af_dtype_size(d), &t);
        if (!r)
                r = lower_value(l, d, hold, l->phase->values[v].axes, ret);
        if (r)
                return r;
        l->phase->values[*ret].raw = *raw;
        return lower_emit(l, (struct af_kstmt){.kind = AF_KSTMT_GATHER, .dst = *ret, .src = {v, t, AF_NONE}});
}

/* Nothing gathers bytes: they go there and back as half, which holds all of them. */
static int gather_any(struct lower *l, uint32_t v, enum af_hold hold, const struct af_raw *raw, uint32_t *ret) {
        enum af_dtype d = l->phase->values[v].dtype;
        if (af_dtype_size(d) != 1)
                return gather(l, v, hold, raw, ret);
        d = d == AF_DTYPE_INT8 ? AF_DTYPE_INT8 : AF_DTYPE_UINT8;
        uint32_t h, g;
        int r = lower_cast(l, v, d, AF_DTYPE_FLOAT16, AF_ROUND_NONE, &h);
        if (r)
                return r;
        l->phase->values[h].raw = *raw;
        r = gather(l, h, hold, raw, &g);
        if (!r)
                r = lower_cast(l, g, AF_DTYPE_FLOAT16, d, AF_ROUND_NONE, ret);
        if (!r)
                l->phase->values[*ret].raw = *raw;
        return r;
}

int lower_unravel(struct lower *l, uint32_t v, uint32_t *ret) {
        struct af_raw raw = l->phase->values[v].raw;
        return gather_any(l, v, raw.to, &raw, ret);
}

int lower_ravel(struct lower *l, uint32_t v, const struct af_raw *raw, uint32_t *ret) {
        struct af_raw to = *raw;
        if (raw->step != 1 || raw->lines == AF_NONE)
                return sched_unfit(l->s, "a store with gaps between elements");
        to.stored = true;
        return gather_any(l, v, AF_HOLD_RAW, &to, ret);
}
