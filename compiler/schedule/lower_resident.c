/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions within a tile: their axis is whole there, so that the result is at hand for what follows, also back over that axis. */
#include "compiler/schedule/lower.h"

uint32_t lower_axes_of(const struct lower *l, uint32_t space_axes) {
        uint32_t axes = 0;
        for (uint32_t a = 0; a < l->p->n_axes; a++)
                axes |= l->p->axes[a].space_axis != AF_NONE && space_axes >> l->p->axes[a].space_axis & 1 ? 1u << a : 0;
        return axes;
}

struct af_kstmt lower_combine(enum af_kstmt_kind kind, const struct reduction *r, uint32_t dst, uint32_t a, uint32_t b) {
        return (struct af_kstmt){.kind = kind, .dst = dst, .src = {a, b, AF_NONE}, .combine = r->plan.combine, .imm = r->plan.identity};
}

int lower_chunks(struct lower *l, enum af_dtype acc, uint32_t axes, int64_t n, uint32_t *ret) {
        int r = lower_value(l, acc, AF_HOLD_CHUNKS, axes, ret);
        int64_t chunks = n / AF_REDUCE_CHUNK + (n % AF_REDUCE_CHUNK != 0);
        if (!r)
                l->phase->values[*ret].columns = (uint32_t)AF_MIN(chunks, UINT32_MAX / 2);
        return r;
}

/* Rows in sequence, chunks of 32: one row is left. */
static int down_rows(struct lower *l, const struct reduction *r, uint32_t v, uint32_t axes, uint32_t *ret) {
        uint32_t levels;
        int e = lower_value(l, r->plan.acc, AF_HOLD_LEVELS, l->phase->values[v].axes, &levels);
        if (!e)
                e = lower_emit(l, lower_combine(AF_KSTMT_FILL, r, levels, AF_NONE, AF_NONE));
        if (!e)
                e = lower_emit(l, lower_combine(AF_KSTMT_ROW_LEVELS, r, levels, v, AF_NONE));
        if (!e)
                e = lower_value(l, r->plan.acc, lower_hold(l, axes), axes, ret);
        return e ? e : lower_emit(l, lower_combine(AF_KSTMT_LEVEL_TOP, r, *ret, levels, AF_NONE));
}

/* Columns into 64 lanes, chunk by chunk where the order matters, and the lanes' tree. */
static int along_row(struct lower *l, const struct reduction *r, uint32_t v, int64_t most, bool flat, uint32_t axes, uint32_t *ret) {
        struct af_kstmt stmt;
        uint32_t lanes, scratch = AF_NONE, from = v, wide = l->phase->values[v].axes;
        bool sums = r->plan.combine == AF_COMBINE_ADD && r->plan.acc == AF_DTYPE_FLOAT32;
        int e = lower_value(l, r->plan.acc, AF_HOLD_LANES, wide, &lanes);
        if (!e && sched_ordered(r) && most > AF_REDUCE_CHUNK) {
                e = lower_chunks(l, r->plan.acc, wide, most, &from);
                stmt = lower_combine(AF_KSTMT_ROW_CHUNKS, r, from, v, lanes);
                stmt.flat = flat;
                if (!e)
                        e = lower_emit(l, stmt);
                if (!e && most > (int64_t)AF_REDUCE_CHUNK * AF_REDUCE_CHUNK)
                        e = sched_unfit(l->s, "a row of more than 1,048,576 elements in one tile");
        }
        if (!e)
                e = lower_emit(l, lower_combine(AF_KSTMT_FILL, r, lanes, AF_NONE, AF_NONE));
        stmt = lower_combine(AF_KSTMT_ROW_LANES, r, lanes, from, AF_NONE);
        stmt.flat = flat && from == v;
        if (!e)
                e = lower_emit(l, stmt);
        if (!e && !sums)
                e = lower_value(l, r->plan.acc, AF_HOLD_SCRATCH, wide, &scratch);
        if (!e)
                e = lower_value(l, r->plan.acc, lower_hold(l, axes), axes, ret);
        return e ? e : lower_emit(l, lower_combine(AF_KSTMT_LANE_TREE, r, *ret, lanes, scratch));
}

int lower_resident(struct lower *l, const struct reduction *r, uint32_t v, uint32_t *ret) {
        uint32_t from = lower_axes_of(l, r->axes), over = lower_axes_of(l, r->reduced), out;
        bool flat = l->row != AF_NONE && l->inner != AF_NONE && over == (1u << l->row | 1u << l->inner);
        if (!over || (over & (over - 1) && !flat))
                return sched_unfit(l->s, "a reduction that no tile holds whole");
        uint32_t axis = flat ? l->inner : (uint32_t)__builtin_ctz(over);
        if (l->phase->axes[axis].role != AF_AXIS_WHOLE || (axis != l->row && axis != l->inner) ||
            (flat && l->phase->axes[l->row].role != AF_AXIS_WHOLE))
                return sched_unfit(l->s, "a value on the wrong side of a reduction");
        int64_t most = l->p->axes[axis].most * (flat ? l->p->axes[l->row].most : 1);
        int e = lower_expand(l, v, lower_hold(l, from), &v);
        if (e)
                return e;
        bool rows = axis == l->row && l->inner != AF_NONE && from >> l->inner & 1;
        e = rows ? down_rows(l, r, v, from & ~over, &out) : along_row(l, r, v, most, flat, from & ~over, &out);
        if (!e)
                l->dup_x = r->count_x;
        if (!e)
                e = lower_program(l, &r->plan.post, &out, l->phase->values[out].hold, from & ~over, ret);
        l->dup_x = 0;
        return e;
}
