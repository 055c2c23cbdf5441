/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of byte offsets, tiles gathered out of lines of memory or into them by these, and indices along axes. */
#include <inttypes.h>

#include "compiler/codegen/emit.h"

static const char *table_text(struct emit *e, const struct af_kstmt *s) {
        const struct af_kvalue *v = &e->phase->values[s->dst];
        const struct af_stage *st = &e->phase->stages[v->stage];
        const struct af_raw *raw = &v->raw;
        uint32_t rows, cols, n = raw->line == st->inner_axis ? st->inner : st->rows;
        int64_t along = (raw->apart ? 32 / (int64_t)raw->size : raw->step) * v->size;
        int64_t next = (int64_t)af_kraw_pitch(e->phase, v) * v->size;
        bool crosswise = raw->line != st->inner_axis && raw->lines != AF_NONE, back = raw->step < 0;
        af_ktable_shape(e->phase, v, &rows, &cols);
        cols = v->size == 8 ? AF_ALIGN_UP(cols, 4) : cols; /* rows of offsets start on 32-byte blocks */
        along = back && raw->apart ? -along : along;
        const char *first = back ? emit_text(e, "(int32_t)(%s - 1) * %" PRId64, emit_length(e, raw->line), -along) : "0";
        const char *last = emit_text(e, "%u", (crosswise ? st->inner : n) - 1);
        if (back && !crosswise)
                last = emit_text(e, "(int32_t)%s - 1", emit_length(e, raw->line));
        int64_t row_step = crosswise ? along : next, col_step = crosswise ? next : along;
        if (raw->stored) {
                row_step = v->size;
                col_step = (int64_t)st->pitch * v->size;
                last = emit_text(e, "%u", n - 1);
        }
        emit_use(e, v->size == 8 ? EMIT_LIB_OFFSETS64 : EMIT_LIB_OFFSETS);
        return emit_text(e, "%s(%s, %s, %" PRId64 ", %" PRId64 ", %s, %u, %u);", v->size == 8 ? "Offsets64" : "Offsets",
                         emit_view_of(e, s->dst, "int32_t"), first, row_step, col_step, last, rows, cols);
}

static const char *gather_text(struct emit *e, const struct af_kstmt *s) {
        const struct af_kvalue *src = &e->phase->values[s->src[0]], *t = &e->phase->values[s->src[1]];
        const char *type = t->size == 2 ? "uint16_t" : "uint32_t", *n;
        uint32_t rows, cols, words = t->size == 8 ? 2 : 1;
        af_ktable_shape(e->phase, t, &rows, &cols);
        if (t->raw.stored)
                n = emit_text(e, "%s * %u", emit_length(e, t->raw.lines), cols * words);
        else if (t->raw.to == AF_HOLD_FULL && e->stage->row_axis != AF_NONE)
                n = emit_text(e, "%s * %u", emit_rows(e), cols * words);
        else
                n = emit_text(e, words == 2 ? "2 * %s" : "%s", emit_length(e, t->raw.line));
        emit_use(e, EMIT_LIB_PICK);
        const char *to = emit_view_of(e, s->dst, type), *from = emit_view_of(e, s->src[0], type),
                   *offsets = emit_view_of(e, s->src[1], "uint32_t");
        return emit_text(e, "Pick(%s, %s, %s, %u, %s);", to, from, offsets, af_kvalue_elements(e->phase, src) * words, n);
}

static const char *index_text(struct emit *e, const struct af_kstmt *s) {
        const struct af_kvalue *v = &e->phase->values[s->dst];
        uint32_t axis = v->hold == AF_HOLD_COLUMN ? e->stage->row_axis : v->hold == AF_HOLD_ONE ? AF_NONE : e->stage->inner_axis;
        const char *to = emit_view_of(e, s->dst, "int32_t"), *first = emit_position(e, s), *n = emit_count(e, s->dst);
        if (axis == AF_NONE)
                return emit_text(e, "Duplicate(%s, (int32_t)(%s), %s);", to, first, n);
        if (s->access.strides[axis] == 1 && !s->access.strides_x[axis])
                return emit_text(e, "CreateVecIndex(%s, (int32_t)(%s), %s);", to, first, n);
        emit_use(e, EMIT_LIB_INDEX);
        return emit_text(e, "Index(%s, (int32_t)(%s), (int32_t)%s, %s);", to, first, emit_step(e, &s->access, axis), n);
}

/* Where a FETCH writes: a view of the stage; for rows that come with the loads a place in the load buffer. */
static const char *fetch_view(struct emit *e, const struct af_kstmt *s, uint32_t v) {
        const struct af_kvalue *value = &e->phase->values[v];
        const char *type = emit_type(value->dtype);
        return s->pick.queued ? emit_text(e, "View<%s>(in, %u)", type, value->offset) : emit_view_of(e, v, type);
}

/* Its index; of entries one word of two. */
static const char *fetch_index(struct emit *e, const struct af_kstmt *s) {
        if (s->pick.word == AF_INDEX_ITSELF)
                return fetch_view(e, s, s->src[0]);
        return emit_text(e, "View<int32_t>(in, %u)%s", e->phase->values[s->src[0]].offset, s->pick.word == AF_INDEX_PLACE ? "[1]" : "");
}

bool emit_carries(const struct emit *e, const struct af_kstmt *s) {
        const struct af_axis *inner = &e->phase->axes[e->phase->stages[s->stage].inner_axis];
        return inner->role == AF_AXIS_WHOLE || inner->tile == inner->extent;
}

/* A number, or what it is for these symbols. */
static const char *pick_size(struct emit *e, const struct af_kstmt *s, const char *what, int64_t n, uint32_t x) {
        return x ? emit_size_x(e, "int64_t", n, x, "p%u_pick_%s%u", e->phase_no, what, s->dst) : emit_text(e, "%" PRId64, n);
}

/* Rows of a fetched tile, how far apart they are in memory and in UB, and how the index steps with rows and columns. */
static const char *fetch_text(struct emit *e, const struct af_kstmt *s) {
        const struct af_kvalue *v = &e->phase->values[s->dst], *index = &e->phase->values[s->src[0]];
        const struct af_stage *st = e->stage;
        bool tile = v->hold == AF_HOLD_FULL && st->row_axis != AF_NONE;
        uint32_t along = v->hold == AF_HOLD_COLUMN ? st->row_axis : v->hold == AF_HOLD_ONE ? AF_NONE : st->inner_axis;
        const char *rows = tile ? emit_rows(e) : "1", *cols = emit_length(e, along);
        uint32_t by_row = !tile ? 0 : index->hold == AF_HOLD_FULL ? st->pitch : index->hold == AF_HOLD_COLUMN ? 1 : 0;
        uint32_t by_col = index->hold == AF_HOLD_ONE || (tile && index->hold == AF_HOLD_COLUMN) ? 0 : 1;
        uint32_t words = s->pick.word == AF_INDEX_ITSELF ? 1 : 2;
        const char *call = s->pick.once     ? "FetchRows<true>"
                           : s->pick.queued ? "FetchRows<false>"
                           : s->pick.runs   ? "FetchRuns"
                                            : "FetchElements";
        emit_use(e, EMIT_LIB_AWAIT);
        emit_use(e, s->pick.queued ? EMIT_LIB_FETCH_ROWS : s->pick.runs ? EMIT_LIB_FETCH_RUNS : EMIT_LIB_FETCH_ELEMENTS);
        const char *to = fetch_view(e, s, s->dst), *by = fetch_index(e, s), *at = emit_position(e, s);
        const char *extent = pick_size(e, s, "extent", s->pick.extent, s->pick.extent_x),
                   *stride = pick_size(e, s, "stride", s->pick.stride, s->pick.stride_x);
        const char *text = emit_text(e, "%s(%s, gm%u, %s, (int64_t)(%s), %s, %s", call, to, s->access.arg, by, at, extent, stride);
        const char *row_step = tile && s->access.strides[st->row_axis] ? emit_step(e, &s->access, st->row_axis) : "0",
                   *col_step = along != AF_NONE && s->access.strides[along] ? emit_step(e, &s->access, along) : "0";
        if (s->pick.runs)
                return emit_text(e, "%s, %s, %s, %u, %s, %u%s);", text, rows, row_step, by_row * words, cols, st->pitch,
                                 s->pick.once     ? emit_text(e, ", %s", emit_before(e, s))
                                 : s->pick.queued ? ", -1"
                                                  : "");
        return emit_text(e, "%s, %s, %s, %u, %s, %s, %u, %u);", text, rows, row_step, by_row * words, cols, col_step, by_col * words,
                         st->pitch);
}

void emit_fetch(struct emit *e, const struct af_kstmt *s) {
        if (s->pick.once && !emit_carries(e, s))
                emit_line(e, "int64_t %s = -1;", emit_before(e, s));
        emit_line(e, "%s", fetch_text(e, s));
}

const char *emit_before(struct emit *e, const struct af_kstmt *s) {
        return emit_text(e, "p%u_before%u", e->phase_no, s->dst);
}

void emit_repeats(struct emit *e, const struct af_kstmt *s) {
        const struct af_kvalue *v = &e->phase->values[s->dst], *kept = &e->phase->values[s->src[1]];
        const char *type = emit_type(v->dtype);
        emit_use(e, EMIT_LIB_REPEAT_ROWS);
        emit_line(e, "RepeatRows(View<%s>(in, %u), View<%s>(calc, %u), View<int32_t>(in, %u), %s, %s, %u, %s);", type, v->offset, type,
                  kept->offset, e->phase->values[s->src[0]].offset, emit_rows(e), emit_cols(e), e->stage->pitch, emit_before(e, s));
}

const char *emit_raw_text(struct emit *e, const struct af_kstmt *s) {
        if (s->kind == AF_KSTMT_INDEX)
                return index_text(e, s);
        if (s->kind == AF_KSTMT_FETCH)
                return fetch_text(e, s);
        return s->kind == AF_KSTMT_TABLE ? table_text(e, s) : s->kind == AF_KSTMT_GATHER ? gather_text(e, s) : NULL;
}
