/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores: an access and a hold as one call of the Load or Store helper. */
#include <inttypes.h>
#include <string.h>

#include "compiler/codegen/emit.h"

const char *emit_axis_size(struct emit *e, uint32_t a, const char *what, int64_t value, uint32_t x) {
        return emit_size_x(e, "int64_t", value, x, "p%u_%s%u", e->phase_no, what, a);
}

const char *emit_whole_length(struct emit *e, uint32_t a) {
        const struct af_axis *x = &e->phase->axes[a];
        const char *extent = emit_axis_size(e, a, "extent", x->extent, x->extent_x);
        if (x->chunk_axis == AF_NONE)
                return emit_text(e, "(uint32_t)%s", extent);
        return emit_text(e, "Least(%s, %s - s%u * %s)", extent, emit_axis_size(e, a, "total", x->total, x->total_x), x->chunk_axis, extent);
}

const char *emit_length(struct emit *e, uint32_t axis) {
        const struct af_axis *x = axis == AF_NONE ? NULL : &e->phase->axes[axis];
        if (!x)
                return "1";
        if (!e->once)
                return emit_text(e, "l%u", axis);
        return x->role == AF_AXIS_WHOLE && x->extent_x ? emit_whole_length(e, axis) : emit_axis_size(e, axis, "tile", x->tile, 0);
}

const char *emit_rows(struct emit *e) {
        return emit_length(e, e->stage->row_axis);
}
const char *emit_cols(struct emit *e) {
        return emit_length(e, e->stage->inner_axis);
}

const char *emit_step(struct emit *e, const struct af_access *a, uint32_t axis) {
        return emit_axis_size(e, axis, "step", a->strides[axis], a->strides_x[axis]);
}

const char *emit_position(struct emit *e, const struct af_kstmt *s) {
        const struct af_access *a = &s->access;
        const char *text = a->offset_x ? emit_size_x(e, "int64_t", a->offset, a->offset_x, "p%u_offset_v%u", e->phase_no,
                                                     s->dst == AF_NONE ? s->src[0] : s->dst)
                           : a->offset ? emit_text(e, "%" PRId64, a->offset)
                                       : "";
        for (uint32_t i = 0; i < e->phase->n_axes; i++) {
                const struct af_axis *x = &e->phase->axes[i];
                if (!a->strides[i] || x->role == AF_AXIS_WHOLE)
                        continue;
                if (a->strides[i] == 1 && !a->strides_x[i])
                        text = emit_text(e, "%s%ss%u", text, *text ? " + " : "", i);
                else
                        text = emit_text(e, "%s%ss%u * %s", text, *text ? " + " : "", i, emit_step(e, a, i));
        }
        return *text ? text : "0";
}

static bool dense(const struct emit *e, const struct af_access *a, uint32_t axis) {
        const struct af_axis *x = axis == AF_NONE ? NULL : &e->phase->axes[axis];
        return !x || (a->strides[axis] == 1 && !a->strides_x[axis]) || (x->extent == 1 && !x->extent_x) || x->tile == 1;
}

/* A value as it lies in memory: one call for its lines; where elements stand apart one call per line, each element a row. */
static void move_raw(struct emit *e, const struct af_kstmt *s, const struct af_kvalue *v, const char *base, bool load) {
        const struct af_raw *raw = &v->raw;
        const char *at = emit_position(e, s), *n = emit_length(e, raw->line), *type = emit_type(v->dtype), *open = "";
        int64_t step = raw->step < 0 ? -raw->step : raw->step;
        const char *pitch =
                emit_size(e, "uint32_t", af_kraw_pitch(e->phase, v), "p%u_line%u", e->phase_no, (uint32_t)(v - e->phase->values));
        if (raw->step < 0)
                at = emit_text(e, "%s - (%s - 1) * %" PRId64, at, n, step);
        const char *ub = emit_text(e, "View<%s>(%s, %u)", type, base, v->offset), *shape;
        if (raw->apart) {
                shape = emit_text(e, "%s, 1, %" PRId64 ", %u", n, step, 32 / raw->size);
                if (raw->lines != AF_NONE) {
                        open = emit_text(e, "for (uint32_t i = 0; i < %s; ++i) ", emit_length(e, raw->lines));
                        ub = emit_text(e, "%s[i * %s]", ub, pitch);
                        at = emit_text(e, "%s + i * %s", at, emit_step(e, &s->access, raw->lines));
                }
        } else {
                bool empty = e->phase->axes[raw->line].extent_x; /* a size with symbols may be 0 */
                const char *cols = step == 1 ? n
                                   : empty   ? emit_text(e, "%s ? (%s - 1) * %" PRId64 " + 1 : 0", n, n, step)
                                             : emit_text(e, "(%s - 1) * %" PRId64 " + 1", n, step);
                shape = raw->lines == AF_NONE ? emit_text(e, "1, %s, 0, 0", cols)
                                              : emit_text(e, "%s, %s, %s, %s", emit_length(e, raw->lines), cols,
                                                          emit_step(e, &s->access, raw->lines), pitch);
        }
        if (load)
                emit_line(e, "%sMove<LOAD>(%s, gm%u, %s, %s);", open, ub, s->access.arg, at, shape);
        else
                emit_line(e, "%sMove<STORE>(%s, gm%u, %s, %s);", open, ub, s->access.arg, at, shape);
}

/* rows, cols, step, pitch of the transfer. */
static const char *shape(struct emit *e, const struct af_kstmt *s, const struct af_kvalue *v) {
        const struct af_stage *st = e->stage;
        const struct af_access *a = &s->access;
        bool rows = v->hold == AF_HOLD_FULL && st->row_axis != AF_NONE;
        const char *cols = v->hold == AF_HOLD_COLUMN ? emit_rows(e) : v->hold == AF_HOLD_ONE ? "1" : emit_cols(e);
        uint32_t inner = v->hold == AF_HOLD_COLUMN ? st->row_axis : v->hold == AF_HOLD_ONE ? AF_NONE : st->inner_axis;
        if (v->hold > AF_HOLD_ONE || !dense(e, a, inner))
                emit_fail(e, "a transfer with gaps between elements");
        if (!rows)
                return emit_text(e, "1, %s, 0, 0", cols);
        const char *step = emit_step(e, a, st->row_axis),
                   *pitch = emit_size(e, "uint32_t", st->pitch, "p%u_pitch%u", e->phase_no, s->stage);
        return emit_text(e, "%s, %s, %s, %s", emit_rows(e), cols, step, pitch);
}

void emit_load(struct emit *e, const struct af_kstmt *s, const char *base) {
        const struct af_kvalue *v = &e->phase->values[s->dst];
        emit_use(e, EMIT_LIB_MOVE);
        if (v->hold == AF_HOLD_RAW) {
                move_raw(e, s, v, base, true);
                return;
        }
        const char *at = emit_position(e, s);
        emit_line(e, "Move<LOAD>(View<%s>(%s, %u), gm%u, %s, %s);", emit_type(v->dtype), base, v->offset, s->access.arg, at,
                  shape(e, s, v));
}

/* Of the tiles that hold the same elements of a narrow value the first alone writes them. NULL: every tile has its own. */
static const char *first_tile(struct emit *e, const struct af_kstmt *s) {
        const char *text = NULL;
        for (uint32_t i = 0; i < e->phase->n_axes; i++) {
                const struct af_axis *x = &e->phase->axes[i];
                bool loops =
                        x->role == AF_AXIS_LOOP && e->stage->row_axis != AF_NONE && (i == e->stage->row_axis || i == e->stage->inner_axis);
                if (s->access.strides[i] || (x->extent == x->tile && !x->extent_x) || (x->role != AF_AXIS_BLOCK && !loops))
                        continue;
                text = text ? emit_text(e, "%s && s%u == 0", text, i) : emit_text(e, "s%u == 0", i);
        }
        return text;
}

/* Each row where the index tells. */
static void store_rows(struct emit *e, const struct af_kstmt *s, const struct af_kvalue *v, const char *base) {
        struct af_kstmt first = *s;
        uint32_t row = e->stage->row_axis;
        first.access.strides[row] = 0;
        emit_use(e, EMIT_LIB_STORE_ROWS);
        if (!dense(e, &s->access, e->stage->inner_axis))
                emit_fail(e, "a transfer with gaps between elements");
        const char *at = emit_position(e, &first), *step = emit_step(e, &s->access, row),
                   *pitch = emit_size(e, "uint32_t", e->stage->pitch, "p%u_pitch%u", e->phase_no, s->stage);
        emit_line(e, "StoreRows(gm%u, %s, View<%s>(%s, %u), %s, %s, %s, %s, View<int32_t>(in, %u));", s->access.arg, at,
                  emit_type(v->dtype), base, v->offset, emit_rows(e), emit_cols(e), step, pitch, e->phase->values[s->src[1]].offset);
}

void emit_store(struct emit *e, const struct af_kstmt *s, const char *base) {
        const struct af_kvalue *v = &e->phase->values[s->src[0]];
        const char *at = emit_position(e, s), *when = first_tile(e, s);
        if (s->src[1] == AF_NONE)
                emit_use(e, EMIT_LIB_MOVE);
        if (when)
                emit_line(e, "if (%s)", when);
        e->indent += when ? 1 : 0;
        if (s->src[1] != AF_NONE)
                store_rows(e, s, v, base);
        else if (v->hold == AF_HOLD_RAW)
                move_raw(e, s, v, base, false);
        else
                emit_line(e, "Move<STORE>(View<%s>(%s, %u), gm%u, %s, %s);", emit_type(v->dtype), base, v->offset, s->access.arg, at,
                          shape(e, s, v));
        e->indent -= when ? 1 : 0;
}
