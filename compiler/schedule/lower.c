/* SPDX-License-Identifier: Apache-2.0 */
/* Pass -> phase: axes with their roles, the stages and the tree over them. Tile sizes come later. */
#include <errno.h>
#include <string.h>

#include "compiler/schedule/lower.h"

static void lower_axes(struct lower *l) {
        const struct pass *p = l->p;
        struct af_phase *ph = l->phase;
        ph->n_axes = p->n_axes;
        for (uint32_t a = 0; a < p->n_axes; a++)
                ph->axes[a] = (struct af_axis){.extent = p->axes[a].extent,
                                               .extent_x = p->axes[a].x,
                                               .most = p->axes[a].most,
                                               .tile = 1,
                                               .role = AF_AXIS_BLOCK,
                                               .reduced = p->axes[a].reduced,
                                               .chunk_axis = AF_NONE};
        if (p->inner != AF_NONE && l->variant.inner_whole)
                ph->axes[p->inner].role = AF_AXIS_WHOLE;
        for (uint32_t a = 0; a < p->n_axes; a++)
                if (p->whole >> a & 1)
                        ph->axes[a].role = AF_AXIS_WHOLE;
        if (p->kind == PASS_LAST) {
                bool whole = p->axes[p->over].most <= AF_REDUCE_CHUNK;
                ph->axes[p->over].role = whole ? AF_AXIS_WHOLE : AF_AXIS_LOOP;
                ph->axes[p->over].tile = whole ? p->axes[p->over].most : AF_REDUCE_CHUNK;
        } else if (p->kind >= PASS_ROWS) {
                ph->axes[p->over].role = AF_AXIS_LOOP;
                ph->axes[p->over].back = p->kind == PASS_SCAN && l->s->scan->back;
        }
        if (p->kind >= PASS_LAST && p->chunk_axis != AF_NONE) {
                ph->axes[p->over].chunk_axis = p->chunk_axis;
                ph->axes[p->over].total = p->total;
                ph->axes[p->over].total_x = p->total_x;
                ph->axes[p->chunk_axis].ragged_tail = p->kind == PASS_LAST && (p->total_x || p->total % p->axes[p->over].extent);
        }
        uint32_t levels = 2, rows = p->kind == PASS_ROWS ? p->over : p->row;
        bool levelled = p->kind == PASS_ROWS || (p->row != AF_NONE && p->whole >> p->row & 1);
        for (int64_t n = (levelled ? p->axes[rows].most : 1) / AF_REDUCE_ROWS; n > AF_REDUCE_ROWS;
             n = (n + AF_REDUCE_ROWS - 1) / AF_REDUCE_ROWS)
                levels++;
        ph->levels = levels;
}

static int begin_stage(struct lower *l, uint32_t stage, uint32_t row, uint32_t inner) {
        l->stage = stage;
        l->row = row;
        l->inner = inner;
        l->fixed = 0;
        for (uint32_t a = 0; a < l->phase->n_axes; a++)
                l->fixed |= l->phase->axes[a].role == AF_AXIS_WHOLE && l->phase->axes[a].chunk_axis == AF_NONE ? 1u << a : 0;
        l->may_hoist = stage == STAGE_BODY && l->fixed != (1u << l->phase->n_axes) - 1;
        l->node_value = af_arena_calloc(l->s->arena, l->s->m.n, sizeof(uint32_t));
        l->node_wide = af_arena_calloc(l->s->arena, l->s->m.n, sizeof(uint32_t));
        if (!l->node_value || !l->node_wide)
                return -ENOMEM;
        memset(l->node_value, 0xff, l->s->m.n * sizeof(uint32_t));
        memset(l->node_wide, 0xff, l->s->m.n * sizeof(uint32_t));
        return 0;
}

/* Whether there are tiles to store a value in, whatever the symbols are: one that does not vary along an axis that may be empty would be
 * stored nowhere. */
static int check_stored(const struct lower *l, uint32_t axes, bool late) {
        for (uint32_t a = 0; a < l->phase->n_axes; a++) {
                const struct af_axis *x = &l->phase->axes[a];
                bool looped = late ? x->role == AF_AXIS_BLOCK && !x->reduced : x->role != AF_AXIS_WHOLE;

                if (looped && x->extent_x && !(axes >> a & 1) && af_size_least(l->s->g, af_size_join(0, x->extent_x)) < 1)
                        return sched_unfit(l->s, "a value that stays the same along an axis that may be empty");
        }
        return 0;
}

/* Writes the stored outputs of one side of the reduction. */
static int lower_stores(struct lower *l, bool late) {
        struct sched *s = l->s;
        bool *needed = af_arena_calloc(s->arena, s->m.n, sizeof(*needed));
        if (!needed)
                return -ENOMEM;
        for (unsigned turn = 0; turn < 2; turn++) {
                for (uint32_t i = 0; i < s->n_stores; i++) {
                        const struct af_use *u = &s->sp.uses[s->sp.first_store + i];
                        uint32_t p = u->base == AF_NONE || u->source != AF_NONE ? AF_NONE : af_members_producer(&s->m, u->base), v;
                        if (u->base == AF_NONE || (p != AF_NONE && s->late[p] != late) || (p == AF_NONE && late))
                                continue;
                        if (turn == 0) {
                                if (p != AF_NONE)
                                        needed[p] = true;
                                continue;
                        }
                        struct af_access access;
                        int r = u->source != AF_NONE ? lower_use(l, u->source, &v) : lower_node_value(l, p, &v);
                        if (r)
                                return r;
                        uint32_t arg = u->pack ? s->n_args + s->pack_region[s->sp.first_store + i] : sched_arg(s, s->store_place[i]);
                        r = lower_access(l, u, arg, &access);
                        if (r)
                                return r;
                        r = check_stored(l, lower_axes_of(l, u->axes), late);
                        if (!r)
                                r = lower_store(l, v, &access, lower_axes_of(l, u->axes));
                        if (r)
                                return r;
                }
                int r = turn == 0 ? lower_nodes(l, needed, late) : 0;
                if (r)
                        return r;
        }
        return 0;
}

/* PACK: from the input to its region; UNPACK: from the region to the output. */
static int lower_pack(struct lower *l) {
        struct sched *s = l->s;
        bool unpack = l->p->kind == PASS_UNPACK;
        const struct af_use *u = l->p->pack;
        const struct af_pack *k = u->pack;
        uint32_t value = unpack ? u->value : u->base, v, all = (1u << l->p->n_axes) - 1;
        struct af_access memory = {.offset = k->offset}, region = {.arg = s->n_args + l->p->regions};
        for (uint32_t a = 0; a < k->n_axes; a++) {
                memory.strides[a] = k->load[a];
                region.strides[a] = k->store[a];
        }
        if (l->p->n_axes > k->n_axes) /* the unit axis: a row of one element */
                memory.strides[k->n_axes] = region.strides[k->n_axes] = 1;
        if (unpack)
                memory.arg = sched_arg(s, s->store_place[(uint32_t)(u - s->sp.uses) - s->sp.first_store]);
        else
                memory.arg = sched_input_arg(s, value);
        int r = lower_load(l, s->g->values[value].dtype, unpack ? &region : &memory, unpack ? AF_NONE : value, &v);
        return r ? r : lower_store(l, v, unpack ? &memory : &region, all);
}

/*
 * Row-major strides of partial results over these axes of the pass. A chunked run is stored as one axis of `total`: the chunk axis, just
 * outside the element axis, steps over whole chunks of it. False where a stride does not fit 64 bits.
 */
static bool partial_access(const struct lower *l, uint32_t axes, struct af_access *a) {
        const struct pass *p = l->p;
        int64_t stride = 1, s;
        for (uint32_t i = p->n_axes; i-- > 0;) {
                if (!(axes >> i & 1))
                        continue;
                bool both = p->chunk_axis != AF_NONE && axes >> p->over & 1, run = both && p->chunk_axis == i;
                s = stride;
                if (run && !af_size_mul(l->s->g, stride, p->axes[p->over].extent, &s))
                        return false;
                a->strides[i] = af_size_hint(l->s->g, s);
                a->strides_x[i] = af_size_x(s);
                if (both && i == p->over)
                        continue;
                int64_t n = run ? af_size_join(p->total, p->total_x) : af_size_join(p->axes[i].extent, p->axes[i].x);
                if (!af_size_mul(l->s->g, stride, n, &stride))
                        return false;
        }
        return true;
}

/* What reduction k combines in this pass: the group's value after its `pre` program, or the partials of the pass before. */
static int reduction_input(struct lower *l, const struct reduction *r, uint32_t k, uint32_t *ret) {
        struct sched *s = l->s;
        uint32_t all = (1u << l->p->n_axes) - 1;
        if (!l->p->from_group) {
                struct af_access a = {.arg = s->n_args + l->p->regions + k};
                if (!partial_access(l, (1u << l->p->n_axes) - 1, &a))
                        return sched_unfit(s, "sizes beyond 64 bits");
                return lower_load(l, r->plan.acc, &a, AF_NONE, ret);
        }
        return lower_reduce_input(l, r->node, all, ret);
}

static int lower_last_body(struct lower *l, const struct reduction *r, uint32_t in, uint32_t *ret_running) {
        uint32_t lanes, all = (1u << l->p->n_axes) - 1;
        bool loop = l->phase->axes[l->p->over].role == AF_AXIS_LOOP, flush = loop && sched_ordered(r);
        int e = lower_value(l, r->plan.acc, AF_HOLD_LANES, all, &lanes);
        if (!e && loop && !flush)
                l->stage = STAGE_INIT;
        if (!e)
                e = lower_emit(l, lower_combine(AF_KSTMT_FILL, r, lanes, AF_NONE, AF_NONE));
        l->stage = STAGE_BODY;
        if (!e)
                e = lower_emit(l, lower_combine(AF_KSTMT_ROW_LANES, r, lanes, in, AF_NONE));
        *ret_running = lanes;
        if (e || !flush)
                return e;
        e = lower_chunks(l, r->plan.acc, all, l->p->axes[l->p->over].most, ret_running);
        return e ? e : lower_emit(l, lower_combine(AF_KSTMT_LANE_TREE, r, *ret_running, lanes, AF_NONE));
}

/* running: LANES, or CHUNKS which go through lanes once more. The result has the finish stage's shape. */
static int lower_last_finish(struct lower *l, const struct reduction *r, uint32_t running, uint32_t axes, uint32_t *ret) {
        uint32_t scratch = AF_NONE, all = (1u << l->p->n_axes) - 1;
        int e = 0;
        if (l->phase->values[running].hold == AF_HOLD_CHUNKS) {
                uint32_t lanes;
                e = lower_value(l, r->plan.acc, AF_HOLD_LANES, all, &lanes);
                if (!e)
                        e = lower_emit(l, lower_combine(AF_KSTMT_FILL, r, lanes, AF_NONE, AF_NONE));
                if (!e)
                        e = lower_emit(l, lower_combine(AF_KSTMT_ROW_LANES, r, lanes, running, AF_NONE));
                if (e)
                        return e;
                l->phase->values[lanes].stage = STAGE_BODY; /* as many rows as a tile of the body */
                running = lanes;
        }
        if (!(r->plan.combine == AF_COMBINE_ADD && r->plan.acc == AF_DTYPE_FLOAT32)) {
                e = lower_value(l, r->plan.acc, AF_HOLD_SCRATCH, all, &scratch);
                if (e)
                        return e;
                l->phase->values[scratch].stage = STAGE_BODY;
        }
        e = lower_value(l, r->plan.acc, lower_hold(l, axes), axes, ret);
        return e ? e : lower_emit(l, lower_combine(AF_KSTMT_LANE_TREE, r, *ret, running, scratch));
}

static int lower_rows_body(struct lower *l, const struct reduction *r, uint32_t in, uint32_t *ret_running) {
        int e = lower_value(l, r->plan.acc, AF_HOLD_LEVELS, (1u << l->p->n_axes) - 1, ret_running);
        l->stage = STAGE_INIT;
        if (!e)
                e = lower_emit(l, lower_combine(AF_KSTMT_FILL, r, *ret_running, AF_NONE, AF_NONE));
        l->stage = STAGE_BODY;
        l->phase->values[*ret_running].stage = STAGE_BODY;
        return e ? e : lower_emit(l, lower_combine(AF_KSTMT_ROW_LEVELS, r, *ret_running, in, AF_NONE));
}

static int store_partial(struct lower *l, uint32_t v, uint32_t k, uint32_t axes) {
        struct af_access a = {.arg = l->s->n_args + l->p->to_regions + k};
        if (!partial_access(l, axes, &a))
                return sched_unfit(l->s, "sizes beyond 64 bits");
        return lower_store(l, v, &a, axes);
}

static int lower_finish(struct lower *l, const uint32_t *running) {
        struct sched *s = l->s;
        uint32_t axes = ((1u << l->p->n_axes) - 1) & ~(1u << l->p->over);
        for (uint32_t i = 0, k = 0; i < s->n_reductions; i++) {
                const struct reduction *r = &s->reductions[i];
                uint32_t v;
                if (!r->cross)
                        continue;
                l->op_node = s->m.nodes[r->node];
                int e = 0;
                if (l->p->kind == PASS_LAST) {
                        e = lower_last_finish(l, r, running[k], axes, &v);
                } else {
                        e = lower_value(l, r->plan.acc, lower_hold(l, axes), axes, &v);
                        if (!e)
                                e = lower_emit(l, lower_combine(AF_KSTMT_LEVEL_TOP, r, v, running[k], AF_NONE));
                }
                l->dup_x = r->count_x;
                if (!e && l->p->to_group)
                        e = lower_program(l, &r->plan.post, &v, l->phase->values[v].hold, axes, &l->node_value[r->node]);
                else if (!e)
                        e = store_partial(l, v, k, axes);
                l->op_node = AF_NONE;
                l->dup_x = 0;
                if (e)
                        return e;
                k++;
        }
        return l->p->to_group ? lower_stores(l, true) : 0;
}

static int lower_reduction(struct lower *l) {
        struct sched *s = l->s;
        uint32_t *running = af_arena_calloc(s->arena, s->n_cross, sizeof(*running));
        bool *needed = af_arena_calloc(s->arena, s->m.n, sizeof(*needed));
        if (!running || !needed)
                return -ENOMEM;
        for (uint32_t i = 0; i < s->n_reductions && l->p->from_group; i++) {
                const struct af_use *u = &s->sp.uses[s->sp.first_use[s->reductions[i].node]];
                if (s->reductions[i].cross && u->base_kind == AF_BASE_NODE)
                        needed[af_members_producer(&s->m, u->base)] = true;
        }
        int e = l->p->from_group ? lower_nodes(l, needed, false) : 0;
        for (uint32_t i = 0, k = 0; !e && i < s->n_reductions; i++) {
                const struct reduction *r = &s->reductions[i];
                uint32_t in;
                if (!r->cross)
                        continue;
                e = reduction_input(l, r, k, &in);
                l->op_node = s->m.nodes[r->node];
                if (!e)
                        e = l->p->kind == PASS_LAST ? lower_last_body(l, r, in, &running[k]) : lower_rows_body(l, r, in, &running[k]);
                l->op_node = AF_NONE;
                k++;
        }
        if (!e && l->p->from_group)
                e = lower_stores(l, false);
        if (!e)
                e = begin_stage(l, STAGE_FINISH, AF_NONE, l->p->kind == PASS_LAST ? l->p->row : l->p->inner);
        return e ? e : lower_finish(l, running);
}

static int collect(struct lower *l) {
        struct af_phase *ph = l->phase;
        ph->stages = af_arena_calloc(l->s->arena, N_STAGES, sizeof(*ph->stages));
        ph->n_stages = N_STAGES;
        for (uint32_t i = 0; i < N_STAGES; i++)
                for (uint32_t k = 0; k < 3; k++)
                        ph->n_stmts += l->lists[i][k].n;
        ph->stmts = af_arena_calloc(l->s->arena, ph->n_stmts, sizeof(*ph->stmts));
        if (!ph->stages || !ph->stmts)
                return -ENOMEM;
        uint32_t at = 0;
        for (uint32_t i = 0; i < N_STAGES; i++) {
                bool finish = i == STAGE_FINISH;
                ph->stages[i].first_stmt = at;
                ph->stages[i].prologue = i == STAGE_PROLOGUE;
                ph->stages[i].row_axis = finish ? AF_NONE : l->p->row;
                ph->stages[i].inner_axis = !finish ? l->p->inner : l->p->kind == PASS_LAST ? l->p->row : l->p->inner;
                for (uint32_t k = 0; k < 3; k++) {
                        if (l->lists[i][k].n)
                                memcpy(&ph->stmts[at], l->lists[i][k].items, l->lists[i][k].n * sizeof(*ph->stmts));
                        at += l->lists[i][k].n;
                }
                ph->stages[i].n_stmts = at - ph->stages[i].first_stmt;
        }
        return 0;
}

/* init, the body (in a loop where the pass loops), finish; children after the roots. */
static int build_tree(struct lower *l) {
        struct af_phase *ph = l->phase;
        ph->nodes = af_arena_calloc(l->s->arena, 4, sizeof(*ph->nodes));
        if (!ph->nodes)
                return -ENOMEM;
        bool loop = l->p->kind >= PASS_LAST && ph->axes[l->p->over].role == AF_AXIS_LOOP;
        for (uint32_t i = STAGE_INIT; i < N_STAGES; i++) {
                if (!ph->stages[i].n_stmts)
                        continue;
                if (i == STAGE_BODY && loop)
                        ph->nodes[ph->n_roots++] = (struct af_knode){.kind = AF_KNODE_LOOP, .axis = l->p->over, .n_children = 1};
                else
                        ph->nodes[ph->n_roots++] = (struct af_knode){.kind = AF_KNODE_STAGE, .stage = i};
        }
        ph->n_nodes = ph->n_roots;
        for (uint32_t i = 0; i < ph->n_roots; i++)
                if (ph->nodes[i].kind == AF_KNODE_LOOP) {
                        ph->nodes[i].first_child = ph->n_nodes;
                        ph->nodes[ph->n_nodes++] = (struct af_knode){.kind = AF_KNODE_STAGE, .stage = STAGE_BODY};
                }
        return 0;
}

int sched_lower(struct sched *s, const struct pass *p, struct variant v, struct af_phase *ret_phase) {
        struct lower l = {.s = s, .p = p, .variant = v, .phase = ret_phase, .op_node = AF_NONE};
        l.entries = AF_NONE;
        *ret_phase = (struct af_phase){0};
        lower_axes(&l);
        int r = begin_stage(&l, STAGE_BODY, p->row, p->inner);
        if (r)
                return r;
        switch (p->kind) {
        case PASS_PACK:
        case PASS_UNPACK:
                r = lower_pack(&l);
                ret_phase->what = p->kind == PASS_PACK ? "make an input dense" : "spread an output out";
                break;
        case PASS_BIN:
        case PASS_GROUP: /* no tiles */
                break;
        case PASS_ELEMENTWISE:
                r = lower_stores(&l, false);
                ret_phase->what = p->binned ? "rows in the order of an index" : "elementwise";
                break;
        case PASS_SCAN:
                r = lower_scan(&l);
                ret_phase->what = "running sum";
                break;
        case PASS_LAST:
        case PASS_ROWS:
                r = lower_reduction(&l);
                ret_phase->what = p->to_group ? "reduction" : "reduction, partial results";
                break;
        }
        if (!r)
                r = collect(&l);
        return r ? r : build_tree(&l);
}
