/* SPDX-License-Identifier: Apache-2.0 */
/* Compute statements: each is one call, on typed views of places in UB that are named at the head of the stage. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "compiler/codegen/emit.h"

static const char *const base_names[] = {
        [AF_PLACE_POOL] = "calc", [AF_PLACE_LOAD] = "in", [AF_PLACE_STORE] = "out", [AF_PLACE_RESIDENT] = "kept"};
static const char *const slot_names[] = {[AF_PLACE_POOL] = "v", [AF_PLACE_LOAD] = "x", [AF_PLACE_STORE] = "y", [AF_PLACE_RESIDENT] = "w"};

/* "float" -> "f", for the second and further types seen at one place. */
static const char *suffix(const char *type) {
        static const char *const table[][2] = {{"float", "_f"},      {"half", "_h"},      {"bfloat16_t", "_b"}, {"uint8_t", "_u8"},
                                               {"int8_t", "_i8"},    {"int16_t", "_i16"}, {"uint16_t", "_u16"}, {"int32_t", "_i32"},
                                               {"uint32_t", "_u32"}, {"int64_t", "_i64"}};
        for (size_t i = 0; i < AF_ARRAY_SIZE(table); i++)
                if (strcmp(table[i][0], type) == 0)
                        return table[i][1];
        return "";
}

/* Name of the view of value v as type; a new one where declare is set. */
const char *emit_view_of(struct emit *e, uint32_t v, const char *type) {
        const struct af_kvalue *value = &e->phase->values[v];
        const char *slot = NULL;
        if (e->out_late && value->place == AF_PLACE_STORE)
                return emit_text(e, "View<%s>(out, %u)", type, value->offset);
        for (uint32_t i = 0; i < e->n_views; i++) {
                const struct emit_view *w = &e->views[i];
                if (w->place != value->place || w->offset != value->offset)
                        continue;
                if (strcmp(w->type, type) == 0)
                        return w->name;
                if (!slot)
                        slot = w->name; /* the first view of a place has its plain name */
        }
        const char *name = slot ? emit_text(e, "%s%s", slot, suffix(type))
                                : emit_text(e, "%s%u", slot_names[value->place], e->n_slots[value->place]++);
        if (af_arena_grow(&e->arena, &e->views, &e->cap_views, e->n_views + 1, sizeof(*e->views))) {
                e->error = -ENOMEM;
                return "";
        }
        e->views[e->n_views++] = (struct emit_view){value->place, value->offset, type, name};
        return name;
}

/* Elements of a value's tile in a call of count form, as an expression. */
const char *emit_count(struct emit *e, uint32_t v) {
        const struct af_kvalue *value = &e->phase->values[v];
        const struct af_stage *st = e->stage;
        const char *pitch;
        switch (value->hold) {
        case AF_HOLD_FULL:
                if (st->row_axis == AF_NONE)
                        return emit_text(e, "Up(%s, 128)", emit_cols(e));
                pitch = emit_size(e, "uint32_t", st->pitch, "p%u_pitch%u", e->phase_no, (uint32_t)(st - e->phase->stages));
                return emit_text(e, "Up(%s * %s, 128)", emit_rows(e), pitch);
        case AF_HOLD_ROW:
                return emit_text(e, "Up(%s, 128)", emit_cols(e));
        case AF_HOLD_COLUMN:
                return emit_text(e, "Up(%s, 128)", emit_rows(e));
        case AF_HOLD_ONE:
                return "128";
        default:
                return emit_text(e, "%u", af_kvalue_elements(e->phase, value));
        }
}

/* Type in which a primitive's calls see dtype d: And, Or, Not work on 16-bit words, Select on half or float. */
static const char *words(const struct af_prim_ins *ins, enum af_dtype d) {
        switch (ins->prim) {
        case AF_PRIM_AND:
        case AF_PRIM_OR:
        case AF_PRIM_NOT:
        case AF_PRIM_MASK_AND:
        case AF_PRIM_MASK_OR:
        case AF_PRIM_MASK_NOT:
                return "uint16_t";
        case AF_PRIM_SELECT:
                return af_dtype_size(d) == 2 || d == AF_DTYPE_UINT16 ? "half" : "float";
        case AF_PRIM_DUP:
                return d == AF_DTYPE_BFLOAT16 ? "uint16_t" : emit_type(d);
        default:
                return emit_type(d);
        }
}

static bool not_finite(enum af_dtype d, uint64_t bits) {
        return (d == AF_DTYPE_FLOAT32 && (bits & 0x7f800000) == 0x7f800000) || (d == AF_DTYPE_FLOAT16 && (bits & 0x7c00) == 0x7c00);
}

static const char *dup_type(const struct af_prim_ins *ins) {
        /* An infinity or NaN is written by its bits. */
        if (not_finite(ins->to, ins->imm))
                return ins->to == AF_DTYPE_FLOAT32 ? "uint32_t" : "uint16_t";
        return words(ins, ins->to);
}

static const char *const round_names[] = {"NONE", "RINT", "FLOOR", "CEIL", "ROUND", "TRUNC"};
static const char *const cmp_names[] = {"LT", "GT", "EQ", "LE", "GE", "NE"};

struct operands {
        const char *dst, *a, *b, *c, *n;
};

/* Views of a primitive's operands; also used to declare them. */
static struct operands prim_operands(struct emit *e, const struct af_kstmt *s) {
        const struct af_prim_ins *ins = &s->ins;
        struct operands o = {0};
        char kind = af_prim_info(ins->prim)->kind;
        for (unsigned k = 0; k < af_prim_info(ins->prim)->n_src; k++) {
                const char *type = kind == '?' && k == 0 ? "uint8_t" : words(ins, ins->dtype);
                if (s->src[k] == AF_NONE)
                        continue;
                *(k == 0 ? &o.a : k == 1 ? &o.b : &o.c) = emit_view_of(e, s->src[k], type);
        }
        o.dst = emit_view_of(e, s->dst, kind == 'M' || kind == 'm' ? "uint8_t" : kind == 'D' ? dup_type(ins) : words(ins, ins->to));
        return o;
}

static const char *scaled(struct emit *e, const struct af_kstmt *s, const char *n) {
        switch (s->ins.prim) {
        case AF_PRIM_AND:
        case AF_PRIM_OR:
        case AF_PRIM_NOT:
                return af_dtype_size(s->ins.dtype) > 2 ? emit_text(e, "%s * %u", n, af_dtype_size(s->ins.dtype) / 2) : n;
        case AF_PRIM_MASK_AND:
        case AF_PRIM_MASK_OR:
        case AF_PRIM_MASK_NOT:
                return emit_text(e, "%s / 16", n);
        default:
                return n;
        }
}

static const char *prim_text(struct emit *e, const struct af_kstmt *s) {
        const struct af_prim_ins *ins = &s->ins;
        const char *call = af_prim_info(ins->prim)->call, *n = scaled(e, s, emit_count(e, s->dst)), *type;
        struct operands o = prim_operands(e, s);
        switch (af_prim_info(ins->prim)->kind) {
        case 'V':
        case 'L':
                return o.b ? emit_text(e, "%s(%s, %s, %s, %s);", call, o.dst, o.a, o.b, n)
                           : emit_text(e, "%s(%s, %s, %s);", call, o.dst, o.a, n);
        case 'S':
                return emit_text(e, "%s(%s, %s, %s, %s);", call, o.dst, o.a, emit_scalar(e, ins->dtype, ins->imm), n);
        case 'C':
                return emit_text(e, "Cast(%s, %s, RoundMode::CAST_%s, %s);", o.dst, o.a, round_names[ins->mode], n);
        case 'M':
                return emit_text(e, "Compare(%s, %s, %s, CMPMODE::%s, %s);", o.dst, o.a, o.b, cmp_names[ins->mode], n);
        case 'm':
                return emit_text(e, "CompareScalar(%s, %s, %s, CMPMODE::%s, %s);", o.dst, o.a, emit_scalar(e, ins->dtype, ins->imm),
                                 cmp_names[ins->mode], n);
        case '?':
                if (o.c)
                        return emit_text(e, "Select(%s, %s, %s, %s, SELMODE::VSEL_TENSOR_TENSOR_MODE, %s);", o.dst, o.a, o.b, o.c, n);
                return emit_text(e, "Select(%s, %s, %s, %s, SELMODE::VSEL_TENSOR_SCALAR_MODE, %s);", o.dst, o.a, o.b,
                                 emit_scalar(e, af_dtype_size(ins->dtype) == 2 ? AF_DTYPE_FLOAT16 : AF_DTYPE_FLOAT32, ins->imm), n);
        case 'D':
                type = dup_type(ins);
                if (s->imm_x)
                        return emit_text(e, "Duplicate(%s, %s, %s);", o.dst,
                                         emit_size_x(e, "float", af_size_hint(e->k->g, af_size_join(0, s->imm_x)), s->imm_x, "p%u_count%u",
                                                     e->phase_no, s->dst),
                                         n);
                return emit_text(e, "Duplicate(%s, %s, %s);", o.dst,
                                 emit_scalar(e,
                                             strcmp(type, "uint32_t") == 0   ? AF_DTYPE_UINT32
                                             : strcmp(type, "uint16_t") == 0 ? AF_DTYPE_UINT16
                                                                             : ins->to,
                                             ins->imm),
                                 n);
        default:
                emit_fail(e, "a primitive that is no call");
                return "";
        }
}

/* Length of the row axis' and inner axis' tile of the stage that a value belongs to. */
static const char *rows_of(struct emit *e, uint32_t v) {
        const struct af_stage *st = &e->phase->stages[e->phase->values[v].stage];
        return emit_length(e, st->row_axis);
}
static uint32_t chunk_pitch(const struct emit *e, uint32_t v) {
        const struct af_kvalue *value = &e->phase->values[v];
        return af_kvalue_elements(e->phase, value) / e->phase->stages[value->stage].rows;
}
static const struct af_axis *loop_axis(const struct emit *e, uint32_t *ret_axis) {
        for (uint32_t a = 0; a < e->phase->n_axes; a++)
                if (e->phase->axes[a].role == AF_AXIS_LOOP) {
                        *ret_axis = a;
                        return &e->phase->axes[a];
                }
        *ret_axis = AF_NONE;
        return NULL;
}
static const char *level_pitch(struct emit *e, uint32_t v) {
        return emit_size(e, "uint32_t", af_kvalue_elements(e->phase, &e->phase->values[v]) / e->phase->levels, "p%u_level_pitch",
                         e->phase_no);
}

/* The axis that a row of value v is combined along, or AF_NONE. */
static uint32_t combined_axis(const struct emit *e, uint32_t v) {
        const struct af_kvalue *src = &e->phase->values[v];
        const struct af_stage *st = &e->phase->stages[src->stage];

        return src->hold == AF_HOLD_COLUMN ? st->row_axis : st->inner_axis;
}

/* Columns of what a row of value v is combined along; flat: all its rows as one. */
static const char *row_columns(struct emit *e, uint32_t v, bool flat) {
        const char *cols = emit_length(e, combined_axis(e, v));

        return flat ? emit_text(e, "%s * %s", emit_length(e, e->phase->stages[e->phase->values[v].stage].row_axis), cols) : cols;
}

/* The statement that makes all chunk results of a row at once; NULL: a loop makes one after the other. */
static const struct af_kstmt *chunk_maker(const struct emit *e, uint32_t v) {
        for (uint32_t i = 0; i < e->phase->n_stmts; i++)
                if (e->phase->stmts[i].kind == AF_KSTMT_ROW_CHUNKS && e->phase->stmts[i].dst == v)
                        return &e->phase->stmts[i];
        return NULL;
}

/* Chunk results per row where no loop counts them: known, or one per 1,024 columns of a length that changes with a symbol. */
static const char *chunk_columns(struct emit *e, uint32_t v, const struct af_kstmt *maker) {
        if (maker) {
                /* what it combines may be one value expanded, which varies along no axis */
                uint32_t from = maker->src[0], inner = combined_axis(e, from);
                uint32_t row = maker->flat ? e->phase->stages[e->phase->values[from].stage].row_axis : AF_NONE;

                if ((inner != AF_NONE && e->phase->axes[inner].extent_x) || (row != AF_NONE && e->phase->axes[row].extent_x))
                        return emit_text(e, "(%s + %u) / %u", row_columns(e, from, maker->flat), AF_REDUCE_CHUNK - 1, AF_REDUCE_CHUNK);
        }
        return emit_text(e, "%u", e->phase->values[v].columns);
}

/* What a value's tile looks like to a combination along its rows: "rows, columns, pitch". */
static const char *row_shape(struct emit *e, uint32_t v, bool flat) {
        const struct af_kvalue *src = &e->phase->values[v];
        const struct af_stage *st = &e->phase->stages[src->stage];
        const char *cols = row_columns(e, v, flat), *pitch;
        uint32_t axis;
        if (flat)
                return emit_text(e, "1, %s, 0", cols);
        if (src->hold == AF_HOLD_ROW || src->hold == AF_HOLD_COLUMN)
                return emit_text(e, "1, %s, 0", cols);
        if (src->hold == AF_HOLD_CHUNKS) {
                const struct af_kstmt *maker = chunk_maker(e, v);
                const struct af_axis *x = maker ? NULL : loop_axis(e, &axis); /* another sum's loop may be around the statement */
                cols = x ? emit_text(e, "(run%u + %" PRId64 ") / %" PRId64, axis, x->tile - 1, x->tile) : chunk_columns(e, v, maker);
                pitch = emit_size(e, "uint32_t", chunk_pitch(e, v), "p%u_chunks", e->phase_no);
        } else {
                pitch = emit_size(e, "uint32_t", st->pitch, "p%u_pitch%u", e->phase_no, src->stage);
        }
        return emit_text(e, "%s, %s, %s", rows_of(e, v), cols, pitch);
}

static const char *row_lanes_text(struct emit *e, const struct af_kstmt *s) {
        const char *type = emit_type(e->phase->values[s->src[0]].dtype);
        const char *to = emit_view_of(e, s->dst, type), *from = emit_view_of(e, s->src[0], type), *shape = row_shape(e, s->src[0], s->flat);
        emit_use(e, EMIT_LIB_ROW_LANES);
        return emit_text(e, "RowLanes<%s>(%s, %s, %s);", emit_op(e, s->combine), to, from, shape);
}

static const char *row_chunks_text(struct emit *e, const struct af_kstmt *s) {
        emit_op(e, AF_COMBINE_ADD);
        emit_use(e, EMIT_LIB_ROW_LANES);
        emit_use(e, EMIT_LIB_LANE_SUM);
        emit_use(e, EMIT_LIB_ROW_CHUNKS);
        const char *to = emit_view_of(e, s->dst, "float"), *from = emit_view_of(e, s->src[0], "float"),
                   *lanes = emit_view_of(e, s->src[1], "float"), *shape = row_shape(e, s->src[0], s->flat),
                   *pitch = emit_size(e, "uint32_t", chunk_pitch(e, s->dst), "p%u_chunks", e->phase_no);
        return emit_text(e, "RowChunks(%s, %s, %s, %s, %s);", to, from, lanes, shape, pitch);
}

static bool sums_lanes(const struct emit *e, const struct af_kstmt *s) {
        return s->combine == AF_COMBINE_ADD && e->phase->values[s->src[0]].dtype == AF_DTYPE_FLOAT32;
}

static const char *lane_tree_text(struct emit *e, const struct af_kstmt *s) {
        const struct af_kvalue *dst = &e->phase->values[s->dst];
        const char *type = emit_type(e->phase->values[s->src[0]].dtype), *lanes = emit_view_of(e, s->src[0], type),
                   *to = emit_view_of(e, s->dst, type), *rows = dst->hold == AF_HOLD_ONE ? "1" : rows_of(e, s->src[0]);
        uint32_t axis;
        bool chunks = dst->hold == AF_HOLD_CHUNKS;
        const char *column = "", *step = "1";
        if (chunks) {
                const struct af_axis *x = loop_axis(e, &axis);
                column = emit_text(e, "(uint32_t)(s%u / %" PRId64 ")", axis, x->tile);
                step = emit_size(e, "uint32_t", chunk_pitch(e, s->dst), "p%u_chunks", e->phase_no);
        }
        if (sums_lanes(e, s)) {
                emit_use(e, EMIT_LIB_LANE_SUM);
                return emit_text(e, chunks ? "LaneSum(%s[%s], %s, %s, %s);" : "LaneSum(%s%s, %s, %s, %s);", to, column, lanes, rows, step);
        }
        if (s->src[1] == AF_NONE || chunks) { /* results of chunks in a loop are float sums: the others go through the workspace */
                emit_fail(e, "a lane tree without scratch");
                return "";
        }
        const char *scratch = emit_view_of(e, s->src[1], type);
        bool pairs = af_combine_ordered(s->combine, e->phase->values[s->src[0]].dtype);
        emit_use(e, pairs ? EMIT_LIB_LANE_TREE : EMIT_LIB_LANE_HALVES);
        return emit_text(e, "Lane%s<%s>(%s, %s, %s, %s);", pairs ? "Tree" : "Halves", emit_op(e, s->combine), to, lanes, scratch, rows);
}

static const char *row_levels_text(struct emit *e, const struct af_kstmt *s) {
        const struct af_kvalue *src = &e->phase->values[s->src[0]];
        const char *type = emit_type(src->dtype), *first = "0";
        uint32_t axis;
        emit_use(e, EMIT_LIB_ROW_LEVELS);
        if (loop_axis(e, &axis))
                first = emit_text(e, "s%u", axis);
        const char *to = emit_view_of(e, s->dst, type), *from = emit_view_of(e, s->src[0], type), *pitch = level_pitch(e, s->dst);
        return emit_text(e, "RowLevels<%s>(%s, %s, %s, %s, %s, %s, %u, %s);", emit_op(e, s->combine), to, from, first, emit_rows(e),
                         emit_cols(e), pitch, e->phase->levels, emit_scalar(e, src->dtype, s->imm));
}

static const char *level_top_text(struct emit *e, const struct af_kstmt *s) {
        const char *type = emit_type(e->phase->values[s->src[0]].dtype);
        emit_use(e, EMIT_LIB_LEVEL_TOP);
        const char *to = emit_view_of(e, s->dst, type), *from = emit_view_of(e, s->src[0], type), *pitch = level_pitch(e, s->src[0]);
        return emit_text(e, "LevelTop<%s>(%s, %s, %s, %s, %u);", emit_op(e, s->combine), to, from, emit_cols(e), pitch, e->phase->levels);
}

static const char *scan_text(struct emit *e, const struct af_kstmt *s) {
        const char *type = emit_type(e->phase->values[s->dst].dtype);
        emit_use(e, EMIT_LIB_COPY);
        emit_use(e, EMIT_LIB_SCAN_ROWS);
        const char *to = emit_view_of(e, s->dst, type), *from = emit_view_of(e, s->src[0], type), *row = emit_view_of(e, s->src[1], type);
        const char *pitch = emit_size(e, "uint32_t", e->stage->pitch, "p%u_pitch%u", e->phase_no, (uint32_t)(e->stage - e->phase->stages));
        return emit_text(e, "ScanRows<%s, %s, %s>(%s, %s, %s, %s, %s, %s);", type, s->back ? "true" : "false",
                         s->exclusive ? "true" : "false", to, from, row, emit_rows(e), emit_cols(e), pitch);
}

/* ROW, COLUMN or ONE to more: the same bits. Types of no matter: what Brcb takes. */
static const char *expand_text(struct emit *e, const struct af_kstmt *s) {
        const struct af_kvalue *src = &e->phase->values[s->src[0]];
        const struct af_stage *st = e->stage;
        const char *type = src->hold == AF_HOLD_ROW ? emit_type(src->dtype) : af_dtype_size(src->dtype) == 2 ? "uint16_t" : "uint32_t";
        const char *pitch = emit_size(e, "uint32_t", st->pitch, "p%u_pitch%u", e->phase_no, (uint32_t)(st - e->phase->stages));
        const char *to = emit_view_of(e, s->dst, type), *from = emit_view_of(e, s->src[0], type);
        if (src->hold == AF_HOLD_ROW) {
                emit_use(e, EMIT_LIB_EXPAND_ROW);
                return emit_text(e, "ExpandRow(%s, %s, %s, %s, %s);", to, from, emit_rows(e), emit_cols(e), pitch);
        }
        emit_use(e, EMIT_LIB_EXPAND_COLUMN);
        const char *blocks = emit_view_of(e, s->src[1], type);
        if (src->hold == AF_HOLD_COLUMN)
                return emit_text(e, "ExpandColumn(%s, %s, %s, %s, %s, %s);", to, from, blocks, emit_rows(e), emit_cols(e), pitch);
        return emit_text(e, "ExpandColumn(%s, %s, %s, 1, %s, 0);", to, from, blocks, emit_count(e, s->dst));
}

static const char *fill_text(struct emit *e, const struct af_kstmt *s) {
        const struct af_kvalue *v = &e->phase->values[s->dst];
        bool bits = not_finite(v->dtype, s->imm);
        enum af_dtype as = !bits ? v->dtype : v->dtype == AF_DTYPE_FLOAT32 ? AF_DTYPE_UINT32 : AF_DTYPE_UINT16;
        const char *n = v->hold == AF_HOLD_LANES ? emit_text(e, "%s * 64", rows_of(e, s->dst)) : emit_count(e, s->dst);
        return emit_text(e, "Duplicate(%s, %s, %s);", emit_view_of(e, s->dst, emit_type(as)), emit_scalar(e, as, s->imm), n);
}

static const char *copy_text(struct emit *e, const struct af_kstmt *s) {
        const struct af_kvalue *v = &e->phase->values[s->src[0]];
        const char *type = emit_type(v->dtype), *n = emit_count(e, s->src[0]);
        emit_use(e, EMIT_LIB_COPY);
        const char *to = emit_view_of(e, s->dst, type), *from = emit_view_of(e, s->src[0], type);
        return emit_text(e, "CopyBits(%s, %s, %s);", to, from, v->dtype == AF_DTYPE_MASK ? emit_text(e, "%s / 8", n) : n);
}

static const char *stmt_text(struct emit *e, const struct af_kstmt *s) {
        switch (s->kind) {
        case AF_KSTMT_PRIM:
                return prim_text(e, s);
        case AF_KSTMT_COPY:
                return copy_text(e, s);
        case AF_KSTMT_EXPAND:
                return expand_text(e, s);
        case AF_KSTMT_FILL:
                return fill_text(e, s);
        case AF_KSTMT_ROW_LANES:
                return row_lanes_text(e, s);
        case AF_KSTMT_ROW_CHUNKS:
                return row_chunks_text(e, s);
        case AF_KSTMT_LANE_TREE:
                return lane_tree_text(e, s);
        case AF_KSTMT_ROW_LEVELS:
                return row_levels_text(e, s);
        case AF_KSTMT_LEVEL_TOP:
                return level_top_text(e, s);
        case AF_KSTMT_SCAN:
                return scan_text(e, s);
        case AF_KSTMT_FETCH:
        case AF_KSTMT_INDEX:
        case AF_KSTMT_TABLE:
        case AF_KSTMT_GATHER:
                return emit_raw_text(e, s);
        case AF_KSTMT_LOAD:
        case AF_KSTMT_STORE:
                break;
        }
        return "";
}

/* All views of one type from the i-th on. */
static void declare_type(struct emit *e, uint32_t i) {
        const char *type = e->views[i].type, **items = af_arena_calloc(&e->arena, e->n_views, sizeof(*items));
        if (!items) {
                e->error = -ENOMEM;
                return;
        }
        for (; i < e->n_views; i++) {
                const struct emit_view *w = &e->views[i];
                if (strcmp(w->type, type) == 0)
                        items[i] = emit_text(e, "%s(%s, %u)", w->name, base_names[w->place], w->offset);
        }
        emit_declare(e, emit_text(e, "View<%s>", type), items, e->n_views);
}

void emit_declare_views(struct emit *e, const struct af_stage *st, const struct af_stage *rest) {
        e->n_views = 0;
        memset(e->n_slots, 0, sizeof(e->n_slots));
        for (; st; st = rest, rest = NULL) {
                e->stage = st;
                for (uint32_t i = 0; i < st->n_stmts; i++) {
                        const struct af_kstmt *s = &e->phase->stmts[st->first_stmt + i];
                        if (!s->pick.queued)
                                stmt_text(e, s); /* for the views that it names */
                }
        }
        for (uint32_t i = 0; i < e->n_views; i++) {
                uint32_t first = 0;
                while (strcmp(e->views[first].type, e->views[i].type) != 0)
                        first++;
                if (first == i)
                        declare_type(e, i);
        }
}

void emit_compute(struct emit *e, const struct af_kstmt *s) {
        const char *text = stmt_text(e, s);
        if (s->op_node != AF_NONE && s->op_node != e->last_node)
                emit_line(e, "%s // %s", text, af_op_info(e->k->g->nodes[s->op_node].op)->name);
        else
                emit_line(e, "%s", text);
        if (s->op_node != AF_NONE)
                e->last_node = s->op_node;
}
