/* SPDX-License-Identifier: Apache-2.0 */
/* A phase: the block loop over its tiles, index decoding, tile loops, and stages as load - compute - store turns. */
#include <inttypes.h>

#include "compiler/codegen/emit.h"

static const char *axis_size_x(struct emit *e, uint32_t a, const char *what, int64_t value, uint32_t x) {
        return emit_size_x(e, "int64_t", value, x, "p%u_%s%u", e->phase_no, what, a);
}

static const char *axis_size(struct emit *e, uint32_t a, const char *what, int64_t value) {
        return axis_size_x(e, a, what, value, 0);
}

/* Length of an element axis within its chunk, or of a whole axis. */
static const char *whole_length(struct emit *e, uint32_t a) {
        const struct af_axis *x = &e->phase->axes[a];
        const char *extent = axis_size_x(e, a, "extent", x->extent, x->extent_x);
        if (x->chunk_axis == AF_NONE)
                return emit_text(e, "(uint32_t)%s", extent);
        return emit_text(e, "Least(%s, %s - s%u * %s)", extent, axis_size_x(e, a, "total", x->total, x->total_x), x->chunk_axis, extent);
}

static void decode_block_axis(struct emit *e, uint32_t a, bool outermost) {
        const struct af_axis *x = &e->phase->axes[a];
        int64_t n = 0;
        if (!af_axis_tiles(e->k->g, x, &n))
                emit_fail(e, "more tiles than fit 64 bits");
        const char *extent = axis_size_x(e, a, "extent", x->extent, x->extent_x), *tile = axis_size(e, a, "tile", x->tile),
                   *tiles = axis_size_x(e, a, "tiles", af_size_hint(e->k->g, n), af_size_x(n));
        const char *index = outermost ? "rest" : emit_text(e, "rest %% %s", tiles);
        if (x->ragged_tail) { /* the short last chunk stands alone */
                emit_line(e, "const bool tail%u = %s + 1 == %s;", a, index, tiles);
                emit_line(e, "const int64_t s%u = tail%u ? %s - 1 : %s * %s;", a, a, extent, index, tile);
                emit_line(e, "const uint32_t l%u = tail%u ? 1 : Least(%s, %s - 1 - s%u);", a, a, tile, extent, a);
        } else {
                emit_line(e, x->tile == 1 ? "const int64_t s%u = %s;" : "const int64_t s%u = %s * %s;", a, index, tile);
                if (x->tile == 1)
                        emit_line(e, "const uint32_t l%u = 1;", a);
                else
                        emit_line(e, "const uint32_t l%u = Least(%s, %s - s%u);", a, tile, extent, a);
        }
        if (!outermost)
                emit_line(e, "rest /= %s;", tiles);
}

static void decode_tile(struct emit *e) {
        const struct af_phase *p = e->phase;
        uint32_t outermost = AF_NONE, n_block = 0;
        for (uint32_t a = p->n_axes; a-- > 0;)
                if (p->axes[a].role == AF_AXIS_BLOCK) {
                        outermost = a;
                        n_block++;
                }
        if (n_block)
                emit_line(e, n_block > 1 ? "int64_t rest = tile;" : "const int64_t rest = tile;");
        for (uint32_t a = p->n_axes; a-- > 0;)
                if (p->axes[a].role == AF_AXIS_BLOCK)
                        decode_block_axis(e, a, a == outermost);
        for (uint32_t a = 0; a < p->n_axes; a++)
                if (p->axes[a].role == AF_AXIS_WHOLE)
                        emit_line(e, "const uint32_t l%u = %s;", a, whole_length(e, a));
}

static bool is_load(const struct af_kstmt *s) {
        return s->kind == AF_KSTMT_LOAD || s->pick.queued;
}

static bool has_kind(const struct emit *e, enum af_kstmt_kind kind) {
        for (uint32_t i = 0; i < e->stage->n_stmts; i++)
                if (e->phase->stmts[e->stage->first_stmt + i].kind == kind)
                        return true;
        return false;
}

/* "loads", or "loads2" where several stages have such a queue. */
static const char *queue_name(struct emit *e, const struct af_stage *st, bool store) {
        const struct af_phase *p = e->phase;
        uint32_t n = 0;
        for (uint32_t i = 0; i < p->n_stages; i++)
                n += !p->stages[i].prologue && (store ? p->stages[i].store_bytes : p->stages[i].load_bytes) > 0;
        const char *name = store ? "stores" : "loads";
        return n > 1 ? emit_text(e, "%s%u", name, (uint32_t)(st - p->stages)) : name;
}

/* Whether stores go where something loaded tells. */
static bool reads_late(const struct af_stage *st, const struct af_kstmt *stmts) {
        for (uint32_t i = 0; i < st->n_stmts; i++)
                if (stmts[i].kind == AF_KSTMT_STORE && stmts[i].src[1] != AF_NONE)
                        return true;
        return false;
}

static void emit_stage(struct emit *e, const struct af_stage *st) {
        e->stage = st;
        e->last_node = AF_NONE;
        const char *queue = st->prologue ? "resident" : queue_name(e, st, false), *base = st->prologue ? "kept" : "in",
                   *out = queue_name(e, st, true);
        bool loads = has_kind(e, AF_KSTMT_LOAD), stores = has_kind(e, AF_KSTMT_STORE);
        const struct af_kstmt *stmts = &e->phase->stmts[st->first_stmt];
        if (loads) {
                emit_line(e, st->prologue ? "kept = %s.AllocTensor<uint8_t>();" : "LocalTensor<uint8_t> in = %s.AllocTensor<uint8_t>();",
                          queue);
                for (uint32_t i = 0; i < st->n_stmts; i++)
                        if (stmts[i].kind == AF_KSTMT_LOAD)
                                emit_load(e, &stmts[i], base);
                        else if (stmts[i].pick.queued)
                                emit_fetch(e, &stmts[i]);
                emit_line(e, "%s.EnQue(%s);", queue, base);
                emit_line(e, "%s = %s.DeQue<uint8_t>();", base, queue);
                for (uint32_t i = 0; i < st->n_stmts; i++)
                        if (stmts[i].pick.once)
                                emit_repeats(e, &stmts[i]);
        }
        if (stores)
                emit_line(e, "LocalTensor<uint8_t> out = %s.AllocTensor<uint8_t>();", out);
        emit_declare_views(e);
        for (uint32_t i = 0; i < st->n_stmts; i++)
                if (!is_load(&stmts[i]) && stmts[i].kind != AF_KSTMT_STORE)
                        emit_compute(e, &stmts[i]);
        bool late = reads_late(st, stmts);
        if (loads && !st->prologue && !late)
                emit_line(e, "%s.FreeTensor(in);", queue);
        if (!stores)
                return;
        emit_line(e, "%s.EnQue(out);", out);
        emit_line(e, "out = %s.DeQue<uint8_t>();", out);
        for (uint32_t i = 0; i < st->n_stmts; i++)
                if (stmts[i].kind == AF_KSTMT_STORE)
                        emit_store(e, &stmts[i], "out");
        emit_line(e, "%s.FreeTensor(out);", out);
        if (late)
                emit_line(e, "%s.FreeTensor(in);", queue);
}

static void emit_node(struct emit *e, const struct af_knode *n) {
        if (n->kind == AF_KNODE_STAGE) {
                emit_line(e, "{");
                e->indent++;
                emit_stage(e, &e->phase->stages[n->stage]);
                e->indent--;
                emit_line(e, "}");
                return;
        }
        const struct af_axis *x = &e->phase->axes[n->axis];
        const char *length = x->chunk_axis == AF_NONE ? axis_size_x(e, n->axis, "extent", x->extent, x->extent_x)
                                                      : emit_text(e, "(int64_t)%s", whole_length(e, n->axis));
        const char *tile = axis_size(e, n->axis, "tile", x->tile);
        emit_line(e, "const int64_t run%u = %s;", n->axis, length);
        if (x->back)
                emit_line(e, "for (int64_t s%u = (run%u + %s - 1) / %s * %s - %s; s%u >= 0; s%u -= %s) {", n->axis, n->axis, tile, tile,
                          tile, tile, n->axis, n->axis, tile);
        else
                emit_line(e, "for (int64_t s%u = 0; s%u < run%u; s%u += %s) {", n->axis, n->axis, n->axis, n->axis, tile);
        e->indent++;
        emit_line(e, "const uint32_t l%u = Least(%s, run%u - s%u);", n->axis, tile, n->axis, n->axis);
        for (uint32_t i = 0; i < n->n_children; i++)
                emit_node(e, &e->phase->nodes[n->first_child + i]);
        e->indent--;
        emit_line(e, "}");
}

static void emit_queues(struct emit *e, const struct af_stage *st) {
        unsigned n = e->phase_no;
        const char *loads = queue_name(e, st, false), *stores = queue_name(e, st, true);
        if (st->load_bytes && !st->prologue) {
                emit_line(e, "TQue<TPosition::VECIN, 1> %s;", loads);
                emit_line(e, "pipe.InitBuffer(%s, %u, %s);", loads, e->phase->load_buffers,
                          emit_size(e, "uint32_t", st->load_bytes, "p%u_%s_bytes", n, loads));
        }
        if (st->store_bytes) {
                emit_line(e, "TQue<TPosition::VECOUT, 1> %s;", stores);
                emit_line(e, "pipe.InitBuffer(%s, %u, %s);", stores, e->phase->store_buffers,
                          emit_size(e, "uint32_t", st->store_bytes, "p%u_%s_bytes", n, stores));
        }
}

/* Each phase lays UB out for itself. */
static void emit_buffers(struct emit *e) {
        const struct af_phase *p = e->phase;
        unsigned n = e->phase_no;
        emit_line(e, "TPipe pipe;");
        for (uint32_t i = 0; i < p->n_stages; i++)
                emit_queues(e, &p->stages[i]);
        if (p->resident_bytes) {
                emit_line(e, "TQue<TPosition::VECIN, 1> resident;");
                emit_line(e, "pipe.InitBuffer(resident, 1, %s);", emit_size(e, "uint32_t", p->resident_bytes, "p%u_resident_bytes", n));
        }
        if (p->calc_bytes) {
                emit_line(e, "TBuf<TPosition::VECCALC> pool;");
                emit_line(e, "pipe.InitBuffer(pool, %s);", emit_size(e, "uint32_t", p->calc_bytes, "p%u_calc_bytes", n));
                emit_line(e, "LocalTensor<uint8_t> calc = pool.Get<uint8_t>();");
        }
}

static const struct af_stage *prologue_of(const struct af_phase *p) {
        for (uint32_t i = 0; i < p->n_stages; i++)
                if (p->stages[i].prologue && p->stages[i].n_stmts)
                        return &p->stages[i];
        return NULL;
}

/* Once per block: the tile's full lengths stand in for those of a tile. */
static void emit_prologue(struct emit *e, const struct af_stage *st, bool loads) {
        if (loads)
                emit_line(e, "LocalTensor<uint8_t> kept;");
        emit_line(e, "{ // once: what does not change from tile to tile");
        e->indent++;
        for (unsigned i = 0; i < 2; i++) {
                uint32_t a = i ? st->inner_axis : st->row_axis;
                if (a == AF_NONE)
                        continue;
                bool whole = e->phase->axes[a].role == AF_AXIS_WHOLE && e->phase->axes[a].extent_x;
                emit_line(e, "const uint32_t l%u = %s;", a, whole ? whole_length(e, a) : axis_size(e, a, "tile", e->phase->axes[a].tile));
        }
        emit_stage(e, st);
        e->indent--;
        emit_line(e, "}");
}

void emit_phase(struct emit *e, uint32_t phase_no) {
        const struct af_phase *p = &e->k->phases[phase_no];
        e->phase = p;
        e->phase_no = phase_no;
        const char *tiles = emit_size_x(e, "int64_t", p->n_tiles, p->n_tiles_x, "p%u_tiles", phase_no);
        const struct af_stage *prologue = prologue_of(p);
        emit_line(e, "{ // phase %u of %u: %s", phase_no + 1, e->k->n_phases, p->what);
        e->indent++;
        emit_buffers(e);
        emit_line(e, "const int64_t begin = %s * GetBlockIdx() / GetBlockNum(), end = %s * (GetBlockIdx() + 1) / GetBlockNum();", tiles,
                  tiles);
        if (prologue) {
                e->stage = prologue;
                bool loads = has_kind(e, AF_KSTMT_LOAD);
                emit_line(e, "if (begin < end) {");
                e->indent++;
                emit_prologue(e, prologue, loads);
        }
        for (uint32_t i = 0; i < p->n_stmts; i++)
                if (p->stmts[i].pick.once && emit_carries(e, &p->stmts[i]))
                        emit_line(e, "int64_t before%u = -1; // row that the tile before ends with", p->stmts[i].dst);
        emit_line(e, "for (int64_t tile = begin; tile < end; ++tile) {");
        e->indent++;
        if (p->kind != AF_PHASE_TILES)
                emit_bins(e);
        else
                decode_tile(e);
        for (uint32_t i = 0; i < p->n_roots; i++)
                emit_node(e, &p->nodes[i]);
        e->indent--;
        emit_line(e, "}");
        if (prologue) {
                e->stage = prologue;
                if (has_kind(e, AF_KSTMT_LOAD))
                        emit_line(e, "resident.FreeTensor(kept);");
                e->indent--;
                emit_line(e, "}");
        }
        e->indent--;
        emit_line(e, "}");
}
