/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores: an access and a hold as one call of the Load or Store helper. */
#include <inttypes.h>
#include <string.h>

#include "compiler/codegen/emit.h"

const char *emit_rows(const struct emit *e) {
        struct emit *m = (struct emit *)e;
        return e->stage->row_axis == AF_NONE ? "1" : emit_text(m, "l%u", e->stage->row_axis);
}
const char *emit_cols(const struct emit *e) {
        struct emit *m = (struct emit *)e;
        return e->stage->inner_axis == AF_NONE ? "1" : emit_text(m, "l%u", e->stage->inner_axis);
}

/* Those that depend on symbols are numbered as they come. */
const char *emit_step(struct emit *e, const struct af_access *a, uint32_t axis) {
        if (!a->strides_x[axis])
                return emit_size(e, "int64_t", a->strides[axis], "p%u_step%u_%" PRIu64, e->phase_no, axis, (uint64_t)a->strides[axis]);
        uint32_t n = 0;
        for (uint32_t i = 0; i < e->n_fields; i++)
                if (e->fields[i].x == a->strides_x[axis] && strstr(e->fields[i].name, "_stride"))
                        return emit_text(e, "t.%s", e->fields[i].name);
        for (uint32_t i = 0; i < e->n_fields; i++)
                n += strstr(e->fields[i].name, "_stride") != NULL;
        return emit_size_x(e, "int64_t", a->strides[axis], a->strides_x[axis], "p%u_stride%u", e->phase_no, n);
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
        const char *at = emit_position(e, s), *n = emit_text(e, "l%u", raw->line), *type = emit_type(v->dtype), *open = "";
        int64_t step = raw->step < 0 ? -raw->step : raw->step;
        const char *pitch =
                emit_size(e, "uint32_t", af_kraw_pitch(e->phase, v), "p%u_line%u", e->phase_no, (uint32_t)(v - e->phase->values));
        if (raw->step < 0)
                at = emit_text(e, "%s - (%s - 1) * %" PRId64, at, n, step);
        const char *ub = emit_text(e, "At<%s>(%s, %u)", type, base, v->offset), *shape;
        if (raw->apart) {
                shape = emit_text(e, "%s, 1, %" PRId64 ", %u", n, step, 32 / raw->size);
                if (raw->lines != AF_NONE) {
                        open = emit_text(e, "for (uint32_t i = 0; i < l%u; ++i) ", raw->lines);
                        ub = emit_text(e, "%s[i * %s]", ub, pitch);
                        at = emit_text(e, "%s + i * %s", at, emit_step(e, &s->access, raw->lines));
                }
        } else {
                bool empty = e->phase->axes[raw->line].extent_x; /* a size with symbols may be 0 */
                const char *cols = step == 1 ? n
                                   : empty   ? emit_text(e, "%s ? (%s - 1) * %" PRId64 " + 1 : 0", n, n, step)
                                             : emit_text(e, "(%s - 1) * %" PRId64 " + 1", n, step);
                shape = raw->lines == AF_NONE
                                ? emit_text(e, "1, %s, 0, 0", cols)
                                : emit_text(e, "l%u, %s, %s, %s", raw->lines, cols, emit_step(e, &s->access, raw->lines), pitch);
        }
        if (load)
                emit_line(e, "%sLoad(%s, gm%u, %s, %s);", open, ub, s->access.arg, at, shape);
        else
                emit_line(e, "%sStore(gm%u, %s, %s, %s);", open, s->access.arg, at, ub, shape);
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
        emit_use(e, EMIT_LIB_LOAD, AF_COMBINE_ADD);
        if (v->hold == AF_HOLD_RAW) {
                move_raw(e, s, v, base, true);
                return;
        }
        const char *at = emit_position(e, s);
        emit_line(e, "Load(At<%s>(%s, %u), gm%u, %s, %s);", emit_type(v->dtype), base, v->offset, s->access.arg, at, shape(e, s, v));
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
        emit_use(e, EMIT_LIB_STORE_ROWS, AF_COMBINE_ADD);
        if (!dense(e, &s->access, e->stage->inner_axis))
                emit_fail(e, "a transfer with gaps between elements");
        emit_line(e, "StoreRows(gm%u, %s, At<%s>(%s, %u), %s, %s, %s, %s, At<int32_t>(in, %u));", s->access.arg, emit_position(e, &first),
                  emit_type(v->dtype), base, v->offset, emit_rows(e), emit_cols(e), emit_step(e, &s->access, row),
                  emit_size(e, "uint32_t", e->stage->pitch, "p%u_pitch%u", e->phase_no, s->stage), e->phase->values[s->src[1]].offset);
}

void emit_store(struct emit *e, const struct af_kstmt *s, const char *base) {
        const struct af_kvalue *v = &e->phase->values[s->src[0]];
        const char *at = emit_position(e, s), *when = first_tile(e, s);
        if (s->src[1] == AF_NONE)
                emit_use(e, EMIT_LIB_STORE, AF_COMBINE_ADD);
        if (when)
                emit_line(e, "if (%s)", when);
        e->indent += when ? 1 : 0;
        if (s->src[1] != AF_NONE)
                store_rows(e, s, v, base);
        else if (v->hold == AF_HOLD_RAW)
                move_raw(e, s, v, base, false);
        else
                emit_line(e, "Store(gm%u, %s, At<%s>(%s, %u), %s);", s->access.arg, at, emit_type(v->dtype), base, v->offset,
                          shape(e, s, v));
        e->indent -= when ? 1 : 0;
}
