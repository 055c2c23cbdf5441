/* SPDX-License-Identifier: Apache-2.0 */
/* A phase: the block loop over its tiles, index decoding, tile loops, and stages as load - compute - store turns. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "compiler/codegen/emit.h"

/* Whether text has the name in it, as "l0" or "s0". */
static bool mentions(const char *text, const char *name) {
        size_t n = strlen(name);
        for (const char *at = text; (at = strstr(at, name)); at += n)
                if ((at == text || (!isalnum((unsigned char)at[-1]) && at[-1] != '_')) && !isalnum((unsigned char)at[n]) && at[n] != '_')
                        return true;
        return false;
}

/* Where an axis' tile starts and how long it is, as declared. */
struct place {
        const char *tail, *start, *length; /* tail: chunk axis, whether this is the short last chunk */
};

/* index: the axis' tile of all. Sizes are named only where they show. */
static struct place block_axis(struct emit *e, uint32_t a, const char *index, const char *tiles) {
        const struct af_axis *x = &e->phase->axes[a];
        if (x->tile == 1 && !x->ragged_tail)
                return (struct place){.start = emit_text(e, "s%u = %s", a, index), .length = emit_text(e, "l%u = 1", a)};
        const char *tile = emit_axis_size(e, a, "tile", x->tile, 0), *extent = emit_axis_size(e, a, "extent", x->extent, x->extent_x);
        if (x->ragged_tail) /* the short last chunk stands alone */
                return (struct place){emit_text(e, "tail%u = %s + 1 == %s", a, index, tiles),
                                      emit_text(e, "s%u = tail%u ? %s - 1 : %s * %s", a, a, extent, index, tile),
                                      emit_text(e, "l%u = tail%u ? 1 : Least(%s, %s - 1 - s%u)", a, a, tile, extent, a)};
        return (struct place){.start = emit_text(e, "s%u = %s * %s", a, index, tile),
                              .length = emit_text(e, "l%u = Least(%s, %s - s%u)", a, tile, extent, a)};
}

/* Tiles of an axis, as a size. */
static const char *tiles_of(struct emit *e, uint32_t a) {
        int64_t n = 0;
        if (!af_axis_tiles(e->k->g, &e->phase->axes[a], &n))
                emit_fail(e, "more tiles than fit 64 bits");
        return emit_axis_size(e, a, "tiles", af_size_hint(e->k->g, n), af_size_x(n));
}

/* The names of those axes that the body of the tile asks for. */
static void decode_tile(struct emit *e, const char *body) {
        const struct af_phase *p = e->phase;
        const char *tails[AF_KERNEL_MAX_AXES] = {0}, *starts[AF_KERNEL_MAX_AXES] = {0}, *lengths[AF_KERNEL_MAX_AXES] = {0}, *rest = "tile";
        uint32_t outermost = 0;
        while (outermost < p->n_axes && p->axes[outermost].role != AF_AXIS_BLOCK)
                outermost++;
        for (uint32_t a = p->n_axes; a-- > 0;) {
                bool start = mentions(body, emit_text(e, "s%u", a)), length = mentions(body, emit_text(e, "l%u", a));
                for (uint32_t b = 0; b < p->n_axes; b++)
                        start |= p->axes[b].chunk_axis == a && (p->axes[b].role == AF_AXIS_LOOP || mentions(body, emit_text(e, "l%u", b)));
                if (p->axes[a].role == AF_AXIS_WHOLE && length)
                        lengths[a] = emit_text(e, "l%u = %s", a, emit_whole_length(e, a));
                if (p->axes[a].role != AF_AXIS_BLOCK)
                        continue;
                const char *tiles = a == outermost && !p->axes[a].ragged_tail ? "" : tiles_of(e, a);
                if (start || length) {
                        struct place at = block_axis(e, a, a == outermost ? rest : emit_text(e, "%s %% %s", rest, tiles), tiles);
                        bool alone = p->axes[a].tile == 1 && !p->axes[a].ragged_tail && !start; /* its length is 1 wherever it starts */
                        tails[a] = at.tail;
                        starts[a] = alone ? NULL : at.start;
                        lengths[a] = length ? at.length : NULL;
                }
                rest = emit_text(e, "%s / %s", rest, tiles);
        }
        emit_declare(e, "const bool", tails, p->n_axes);
        emit_declare(e, "const int64_t", starts, p->n_axes);
        emit_declare(e, "const uint32_t", lengths, p->n_axes);
}

static bool is_load(const struct af_kstmt *s) {
        return s->kind == AF_KSTMT_LOAD || s->pick.queued;
}

static bool has_kind(const struct emit *e, const struct af_stage *st, enum af_kstmt_kind kind) {
        for (uint32_t i = 0; i < st->n_stmts; i++)
                if (e->phase->stmts[st->first_stmt + i].kind == kind)
                        return true;
        return false;
}

static const char *tiles_text(struct emit *e) {
        return emit_size_x(e, "int64_t", e->phase->n_tiles, e->phase->n_tiles_x, "p%u_tiles", e->phase_no);
}

/* The queues of the layout: "loads", "loads2". */
static const char *queue_name(struct emit *e, const char *what, uint32_t i) {
        return i ? emit_text(e, "%s%u", what, i + 1) : what;
}

/* Whether stores go where something loaded tells. */
static bool reads_late(const struct af_stage *st, const struct af_kstmt *stmts) {
        for (uint32_t i = 0; i < st->n_stmts; i++)
                if (stmts[i].kind == AF_KSTMT_STORE && stmts[i].src[1] != AF_NONE)
                        return true;
        return false;
}

static void emit_loads(struct emit *e, const struct af_stage *st, const char *queue, const char *base) {
        const struct af_kstmt *stmts = &e->phase->stmts[st->first_stmt];
        emit_line(e, st->prologue ? "kept = %s.AllocTensor<uint8_t>();" : "LocalTensor<uint8_t> in = %s.AllocTensor<uint8_t>();", queue);
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

static void emit_stores(struct emit *e, const struct af_stage *st, const char *queue) {
        const struct af_kstmt *stmts = &e->phase->stmts[st->first_stmt];
        emit_line(e, "%s.EnQue(out);", queue);
        emit_line(e, "out = %s.DeQue<uint8_t>();", queue);
        for (uint32_t i = 0; i < st->n_stmts; i++)
                if (stmts[i].kind == AF_KSTMT_STORE)
                        emit_store(e, &stmts[i], "out");
        emit_line(e, "%s.FreeTensor(out);", queue);
}

static void emit_calls(struct emit *e, const struct af_stage *st) {
        const struct af_kstmt *stmts = &e->phase->stmts[st->first_stmt];
        e->stage = st;
        for (uint32_t i = 0; i < st->n_stmts; i++)
                if (!is_load(&stmts[i]) && stmts[i].kind != AF_KSTMT_STORE)
                        emit_compute(e, &stmts[i]);
}

/* A stage; rest: the one that goes on with what it left, without loads of its own. NULL: none. */
static void emit_turn(struct emit *e, const struct af_stage *st, const struct af_stage *rest) {
        const struct af_stage *last = rest ? rest : st;
        const char *queue = st->prologue ? "resident" : queue_name(e, "loads", st->load_queue),
                   *out = queue_name(e, "stores", last->store_queue);
        const char *take = emit_text(e, "LocalTensor<uint8_t> out = %s.AllocTensor<uint8_t>();", out);
        bool loads = has_kind(e, st, AF_KSTMT_LOAD), stores = has_kind(e, last, AF_KSTMT_STORE);
        bool late = reads_late(last, &e->phase->stmts[last->first_stmt]);
        e->stage = st;
        e->out_late = rest != NULL;
        e->last_node = AF_NONE;
        if (loads)
                emit_loads(e, st, queue, st->prologue ? "kept" : "in");
        if (stores && !rest)
                emit_line(e, "%s", take);
        emit_declare_views(e, st, rest);
        emit_calls(e, st);
        if (loads && !st->prologue && !late)
                emit_line(e, "%s.FreeTensor(in);", queue);
        if (rest) {
                if (stores)
                        emit_line(e, "%s", take);
                emit_calls(e, rest);
        }
        if (!stores)
                return;
        e->stage = last;
        emit_stores(e, last, out);
        if (late)
                emit_line(e, "%s.FreeTensor(in);", queue);
}

/* Whether the stage behind this one goes on in its turn. */
static const struct af_stage *rest_of(const struct emit *e, const struct af_knode *n, const struct af_knode *end) {
        if (n + 1 >= end || n->kind != AF_KNODE_STAGE || n[1].kind != AF_KNODE_STAGE)
                return NULL;
        const struct af_stage *st = &e->phase->stages[n->stage], *rest = &e->phase->stages[n[1].stage];
        return has_kind(e, st, AF_KSTMT_STORE) || has_kind(e, rest, AF_KSTMT_LOAD) ? NULL : rest;
}

static void emit_loop(struct emit *e, const struct af_knode *n);

/* Stages and loops one after another; one alone needs no names of its own. */
static void emit_nodes(struct emit *e, const struct af_knode *nodes, uint32_t n) {
        const struct af_knode *end = nodes + n;
        bool alone = n == 1 || (n == 2 && rest_of(e, nodes, end));
        for (const struct af_knode *at = nodes; at < end; at++) {
                if (at->kind == AF_KNODE_LOOP) {
                        emit_loop(e, at);
                        continue;
                }
                const struct af_stage *rest = rest_of(e, at, end);
                if (!alone) {
                        emit_line(e, "{");
                        e->indent++;
                }
                emit_turn(e, &e->phase->stages[at->stage], rest);
                if (!alone) {
                        e->indent--;
                        emit_line(e, "}");
                }
                at += rest ? 1 : 0;
        }
}

static void emit_loop(struct emit *e, const struct af_knode *n) {
        const struct af_axis *x = &e->phase->axes[n->axis];
        const char *length = x->chunk_axis == AF_NONE ? emit_axis_size(e, n->axis, "extent", x->extent, x->extent_x)
                                                      : emit_text(e, "(int64_t)%s", emit_whole_length(e, n->axis));
        const char *tile = emit_axis_size(e, n->axis, "tile", x->tile, 0);
        emit_line(e, "const int64_t run%u = %s;", n->axis, length);
        if (x->back)
                emit_line(e, "for (int64_t s%u = (run%u + %s - 1) / %s * %s - %s; s%u >= 0; s%u -= %s) {", n->axis, n->axis, tile, tile,
                          tile, tile, n->axis, n->axis, tile);
        else
                emit_line(e, "for (int64_t s%u = 0; s%u < run%u; s%u += %s) {", n->axis, n->axis, n->axis, n->axis, tile);
        e->indent++;
        emit_line(e, "const uint32_t l%u = Least(%s, run%u - s%u);", n->axis, tile, n->axis, n->axis);
        emit_nodes(e, &e->phase->nodes[n->first_child], n->n_children);
        e->indent--;
        emit_line(e, "}");
}

static void emit_queues(struct emit *e, const char *what, const char *position, const struct af_ub_queue *q, uint32_t n) {
        for (uint32_t i = 0; i < n; i++) {
                const char *name = queue_name(e, what, i);
                emit_line(e, "TQue<TPosition::%s, 1> %s;", position, name);
                emit_line(e, "pipe.InitBuffer(%s, %u, %s);", name, q[i].buffers,
                          emit_size(e, "uint32_t", q[i].bytes, "p%u_%s_bytes", e->phase_no, name));
        }
}

/* What this phase and those that join it lay out in UB. */
static void emit_buffers(struct emit *e) {
        const struct af_ub *ub = &e->phase->ub;
        unsigned n = e->phase_no;
        emit_line(e, "TPipe pipe;");
        emit_queues(e, "loads", "VECIN", ub->loads, ub->n_loads);
        emit_queues(e, "stores", "VECOUT", ub->stores, ub->n_stores);
        if (ub->resident_bytes) {
                emit_line(e, "TQue<TPosition::VECIN, 1> resident;");
                emit_line(e, "pipe.InitBuffer(resident, 1, %s);", emit_size(e, "uint32_t", ub->resident_bytes, "p%u_resident_bytes", n));
        }
        if (ub->calc_bytes) {
                emit_line(e, "TBuf<TPosition::VECCALC> pool;");
                emit_line(e, "pipe.InitBuffer(pool, %s);", emit_size(e, "uint32_t", ub->calc_bytes, "p%u_calc_bytes", n));
                emit_line(e, "LocalTensor<uint8_t> calc = pool.Get<uint8_t>();");
        }
}

static const struct af_stage *prologue_of(const struct af_phase *p) {
        for (uint32_t i = 0; i < p->n_stages; i++)
                if (p->stages[i].prologue && p->stages[i].n_stmts)
                        return &p->stages[i];
        return NULL;
}

/* Once per block. */
static void emit_prologue(struct emit *e, const struct af_stage *st, bool loads) {
        emit_line(e, "%s // once: what does not change from tile to tile",
                  loads ? "{" : emit_text(e, "if (Share(%s, 0) < Share(%s, 1)) {", tiles_text(e), tiles_text(e)));
        e->indent++;
        e->once = true;
        emit_length(e, st->row_axis); /* sizes in one order, whatever order a compiler takes arguments in */
        emit_length(e, st->inner_axis);
        emit_turn(e, st, NULL);
        e->once = false;
        e->indent--;
        emit_line(e, "}");
}

/* What a tile does, behind the names that it uses. */
static void emit_tile(struct emit *e) {
        struct af_buf before = e->body;
        e->body = (struct af_buf)AF_BUF_INIT;
        emit_nodes(e, e->phase->nodes, e->phase->n_roots);
        af_buf_put_u8(&e->body, 0);
        struct af_buf tile = e->body;
        e->body = before;
        if (!af_buf_error(&tile)) {
                decode_tile(e, (const char *)tile.data);
                af_buf_put_str(&e->body, (const char *)tile.data);
        } else {
                e->error = -ENOMEM;
        }
        af_buf_deinit(&tile);
}

static void emit_tiles(struct emit *e) {
        const struct af_phase *p = e->phase;
        for (uint32_t i = 0; i < p->n_stmts; i++)
                if (p->stmts[i].pick.once && emit_carries(e, &p->stmts[i]))
                        emit_line(e, "int64_t %s = -1; // row that the tile before ends with", emit_before(e, &p->stmts[i]));
        emit_line(e, "for (int64_t tile = Share(%s, 0), end = Share(%s, 1); tile < end; ++tile) {", tiles_text(e), tiles_text(e));
        e->indent++;
        if (p->kind != AF_PHASE_TILES)
                emit_bins(e);
        else
                emit_tile(e);
        e->indent--;
        emit_line(e, "}");
}

static void emit_close(struct emit *e) {
        e->indent--;
        emit_line(e, "}");
}

void emit_phase(struct emit *e, uint32_t phase_no) {
        const struct af_phase *p = &e->k->phases[phase_no];
        e->phase = p;
        e->phase_no = phase_no;
        const struct af_stage *prologue = prologue_of(p);
        bool loads = prologue && has_kind(e, prologue, AF_KSTMT_LOAD);
        if (!p->joins)
                emit_buffers(e);
        emit_line(e, "// phase %u of %u: %s", phase_no + 1, e->k->n_phases, p->what);
        if (loads) {
                emit_line(e, "if (Share(%s, 0) < Share(%s, 1)) {", tiles_text(e), tiles_text(e));
                e->indent++;
                emit_line(e, "LocalTensor<uint8_t> kept;");
        }
        if (prologue)
                emit_prologue(e, prologue, loads);
        emit_tiles(e);
        if (loads) {
                emit_line(e, "resident.FreeTensor(kept);");
                emit_close(e);
        }
}
