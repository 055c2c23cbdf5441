/* SPDX-License-Identifier: Apache-2.0 */
/* Values and statements of a stage: where each goes (prologue or tile), conversions, expansions, programs. */
#include <errno.h>
#include <string.h>

#include "compiler/schedule/lower.h"

static int append(struct lower *l, struct stmt_list *list, const struct af_kstmt *stmt) {
        int r = af_arena_grow(l->s->arena, &list->items, &list->cap, list->n + 1, sizeof(*list->items));
        if (!r)
                list->items[list->n++] = *stmt;
        return r;
}

int lower_value(struct lower *l, enum af_dtype dtype, enum af_hold hold, uint32_t axes, uint32_t *ret) {
        struct af_phase *p = l->phase;
        int r = af_arena_grow(l->s->arena, &p->values, &p->cap_values, p->n_values + 1, sizeof(*p->values));
        if (!r)
                r = af_arena_grow(l->s->arena, &l->aux, &l->cap_aux, p->n_values + 1, sizeof(*l->aux));
        if (r)
                return r;
        p->values[p->n_values] = (struct af_kvalue){.dtype = dtype, .hold = hold, .stage = l->stage, .axes = axes, .graph_value = AF_NONE};
        l->aux[p->n_values] = (struct aux){
                .expanded = {AF_NONE, AF_NONE, AF_NONE, AF_NONE}, .as_mask = AF_NONE, .as_bytes = AF_NONE, .gathered = AF_NONE};
        *ret = p->n_values++;
        return 0;
}

enum af_hold lower_hold(const struct lower *l, uint32_t axes) {
        bool row = l->row != AF_NONE && axes >> l->row & 1, inner = l->inner != AF_NONE && axes >> l->inner & 1;
        if (inner)
                return row || l->row == AF_NONE ? AF_HOLD_FULL : AF_HOLD_ROW;
        return row ? AF_HOLD_COLUMN : AF_HOLD_ONE;
}

/* Whether what a statement computes is the same for every tile of a block, and so are its sources. */
static bool hoists(const struct lower *l, const struct af_kstmt *s) {
        if (!l->may_hoist || s->dst == AF_NONE || l->phase->values[s->dst].axes & ~l->fixed)
                return false;
        if (s->kind != AF_KSTMT_LOAD && s->kind != AF_KSTMT_PRIM && s->kind != AF_KSTMT_EXPAND && s->kind != AF_KSTMT_FILL &&
            s->kind != AF_KSTMT_TABLE && s->kind != AF_KSTMT_GATHER && s->kind != AF_KSTMT_INDEX)
                return false;
        enum af_hold hold = lower_raw_hold(&l->phase->values[s->dst]);
        if (hold != AF_HOLD_ROW && hold != AF_HOLD_ONE && hold != AF_HOLD_TABLE && !(hold == AF_HOLD_FULL && l->variant.hoist_expand))
                return false;
        for (unsigned k = 0; k < 3; k++)
                if (s->src[k] != AF_NONE && l->phase->values[s->src[k]].hold != AF_HOLD_BLOCKS && !l->aux[s->src[k]].hoisted)
                        return false;
        return true;
}

int lower_emit(struct lower *l, struct af_kstmt stmt) {
        bool early = hoists(l, &stmt);
        stmt.stage = early ? STAGE_PROLOGUE : l->stage;
        stmt.op_node = l->op_node;
        if (stmt.dst != AF_NONE) {
                l->aux[stmt.dst].hoisted = early;
                l->aux[stmt.dst].loaded = stmt.kind == AF_KSTMT_LOAD || stmt.pick.queued;
                l->phase->values[stmt.dst].stage = stmt.stage;
        }
        unsigned list = stmt.kind == AF_KSTMT_LOAD || stmt.pick.queued ? 0 : stmt.kind == AF_KSTMT_STORE ? 2 : 1;
        return append(l, &l->lists[stmt.stage][list], &stmt);
}

int lower_prim(struct lower *l, struct af_prim_ins ins, enum af_hold hold, uint32_t axes, uint32_t a, uint32_t b, uint32_t c,
               uint32_t *ret) {
        uint32_t v;
        int r = lower_value(l, ins.to, hold, axes, &v);
        if (!r)
                r = lower_emit(l, (struct af_kstmt){.kind = AF_KSTMT_PRIM,
                                                    .dst = v,
                                                    .src = {a, b, c},
                                                    .ins = ins,
                                                    .imm_x = ins.prim == AF_PRIM_DUP ? l->dup_x : 0});
        if (!r)
                *ret = v;
        return r;
}

int lower_cast(struct lower *l, uint32_t v, enum af_dtype from, enum af_dtype to, enum af_round mode, uint32_t *ret) {
        struct af_prim_ins ins = {.prim = AF_PRIM_CAST, .dtype = from, .to = to, .mode = mode};
        return lower_prim(l, ins, l->phase->values[v].hold, l->phase->values[v].axes, v, AF_NONE, AF_NONE, ret);
}

#define HALF_ONE 0x3c00u

/* uint8 (0: false) -> mask, through half: nothing compares bytes. */
int lower_to_mask(struct lower *l, uint32_t v, uint32_t *ret) {
        if (l->phase->values[v].dtype == AF_DTYPE_MASK) {
                *ret = v;
                return 0;
        }
        if (l->aux[v].as_mask == AF_NONE) {
                uint32_t h, m;
                struct af_prim_ins ne = {.prim = AF_PRIM_CMPS, .dtype = AF_DTYPE_FLOAT16, .to = AF_DTYPE_MASK, .mode = AF_CMP_NE};
                int r = lower_cast(l, v, AF_DTYPE_UINT8, AF_DTYPE_FLOAT16, AF_ROUND_NONE, &h);
                if (!r)
                        r = lower_prim(l, ne, l->phase->values[v].hold, l->phase->values[v].axes, h, AF_NONE, AF_NONE, &m);
                if (r)
                        return r;
                l->aux[v].as_mask = m;
        }
        *ret = l->aux[v].as_mask;
        return 0;
}

/* mask -> half 0 or 1 */
static int mask_to_half(struct lower *l, uint32_t v, uint32_t *ret) {
        struct af_prim_ins one = {.prim = AF_PRIM_DUP, .dtype = AF_DTYPE_FLOAT16, .to = AF_DTYPE_FLOAT16, .imm = HALF_ONE};
        struct af_prim_ins sel = {.prim = AF_PRIM_SELECT, .dtype = AF_DTYPE_FLOAT16, .to = AF_DTYPE_FLOAT16};
        enum af_hold hold = l->phase->values[v].hold;
        uint32_t axes = l->phase->values[v].axes, ones;
        int r = lower_prim(l, one, hold, axes, AF_NONE, AF_NONE, AF_NONE, &ones);
        return r ? r : lower_prim(l, sel, hold, axes, v, ones, AF_NONE, ret);
}

int lower_to_bytes(struct lower *l, uint32_t v, uint32_t *ret) {
        if (l->phase->values[v].dtype != AF_DTYPE_MASK) {
                *ret = v;
                return 0;
        }
        if (l->aux[v].as_bytes == AF_NONE) {
                uint32_t h, b;
                int r = mask_to_half(l, v, &h);
                if (!r)
                        r = lower_cast(l, h, AF_DTYPE_FLOAT16, AF_DTYPE_UINT8, AF_ROUND_NONE, &b);
                if (r)
                        return r;
                l->aux[v].as_bytes = b;
                l->aux[b].as_mask = v;
        }
        *ret = l->aux[v].as_bytes;
        return 0;
}

static int expand_bits(struct lower *l, uint32_t v, enum af_hold hold, uint32_t *ret) {
        uint32_t out, blocks = AF_NONE, axes = l->phase->values[v].axes;
        enum af_hold from = l->phase->values[v].hold;
        int r = lower_value(l, l->phase->values[v].dtype, hold, axes, &out);
        if (!r && from != AF_HOLD_ROW)
                r = lower_value(l, l->phase->values[v].dtype, AF_HOLD_BLOCKS, axes, &blocks);
        if (!r)
                r = lower_emit(l, (struct af_kstmt){.kind = AF_KSTMT_EXPAND, .dst = out, .src = {v, blocks, AF_NONE}});
        if (!r && blocks != AF_NONE)
                l->phase->values[blocks].stage = l->phase->values[out].stage;
        if (!r)
                *ret = out;
        return r;
}

/* Bytes have no broadcast along the columns: they go there and back as half, which holds all of them. */
static int expand_bytes(struct lower *l, uint32_t v, enum af_hold hold, uint32_t *ret) {
        enum af_dtype d = l->phase->values[v].dtype == AF_DTYPE_INT8 ? AF_DTYPE_INT8 : AF_DTYPE_UINT8;
        uint32_t h, e;
        int r = lower_cast(l, v, d, AF_DTYPE_FLOAT16, AF_ROUND_NONE, &h);
        if (!r)
                r = expand_bits(l, h, hold, &e);
        return r ? r : lower_cast(l, e, AF_DTYPE_FLOAT16, d, AF_ROUND_NONE, ret);
}

/* 8 bytes: two words by themselves. */
static int expand_wide(struct lower *l, uint32_t v, enum af_hold hold, uint32_t *ret) {
        enum af_hold from = l->phase->values[v].hold;
        uint32_t axes = l->phase->values[v].axes, words[2];
        int r = 0;
        for (unsigned k = 0; k < 2 && !r; k++) {
                af_expand_word(k, &l->s->prog);
                r = lower_program(l, &l->s->prog, &v, from, axes, &words[k]);
                if (!r)
                        r = expand_bits(l, words[k], hold, &words[k]);
        }
        if (r)
                return r;
        af_expand_words_joined(&l->s->prog);
        return lower_program(l, &l->s->prog, words, hold, axes, ret);
}

static int expand_mask(struct lower *l, uint32_t v, enum af_hold hold, uint32_t *ret) {
        struct af_prim_ins ne = {.prim = AF_PRIM_CMPS, .dtype = AF_DTYPE_FLOAT16, .to = AF_DTYPE_MASK, .mode = AF_CMP_NE};
        uint32_t h, e;
        int r = mask_to_half(l, v, &h);
        if (!r)
                r = expand_bits(l, h, hold, &e);
        return r ? r : lower_prim(l, ne, hold, l->phase->values[v].axes, e, AF_NONE, AF_NONE, ret);
}

int lower_expand(struct lower *l, uint32_t v, enum af_hold hold, uint32_t *ret) {
        enum af_hold from = l->phase->values[v].hold;
        enum af_dtype d = l->phase->values[v].dtype;
        if (from == hold) {
                *ret = v;
                return 0;
        }
        if (l->aux[v].expanded[hold] != AF_NONE) {
                *ret = l->aux[v].expanded[hold];
                return 0;
        }
        uint32_t e;
        int r;
        if (d == AF_DTYPE_MASK)
                r = expand_mask(l, v, hold, &e);
        else if (from == AF_HOLD_ROW || af_dtype_size(d) == 2 || af_dtype_size(d) == 4)
                r = expand_bits(l, v, hold, &e);
        else if (af_dtype_size(d) == 1)
                r = expand_bytes(l, v, hold, &e);
        else
                r = expand_wide(l, v, hold, &e);
        if (r)
                return r;
        l->aux[v].expanded[hold] = e;
        *ret = e;
        return 0;
}

int lower_constant(struct lower *l, enum af_dtype dtype, uint64_t bits, uint32_t *ret) {
        struct af_prim_ins dup = {.prim = AF_PRIM_DUP, .dtype = dtype, .to = dtype, .imm = bits};
        uint32_t v;
        int r;
        if (dtype == AF_DTYPE_INT64) {
                af_expand_const_i64((int64_t)bits, &l->s->prog);
                return lower_program(l, &l->s->prog, NULL, AF_HOLD_ONE, 0, ret);
        }
        if (af_dtype_size(dtype) == 8)
                return sched_unfit(l->s, "a float64 constant as a tensor");
        if (af_dtype_size(dtype) != 1)
                return lower_prim(l, dup, AF_HOLD_ONE, 0, AF_NONE, AF_NONE, AF_NONE, ret);
        int value = dtype == AF_DTYPE_INT8 ? (int8_t)bits : dtype == AF_DTYPE_BOOL ? bits != 0 : (int)(uint8_t)bits;
        dup = (struct af_prim_ins){.prim = AF_PRIM_DUP, .dtype = AF_DTYPE_INT16, .to = AF_DTYPE_INT16, .imm = (uint16_t)value};
        r = lower_prim(l, dup, AF_HOLD_ONE, 0, AF_NONE, AF_NONE, AF_NONE, &v);
        if (!r)
                r = lower_cast(l, v, AF_DTYPE_INT16, AF_DTYPE_FLOAT16, AF_ROUND_NONE, &v);
        return r ? r : lower_cast(l, v, AF_DTYPE_FLOAT16, dtype == AF_DTYPE_INT8 ? AF_DTYPE_INT8 : AF_DTYPE_UINT8, AF_ROUND_NONE, ret);
}

bool lower_same_access(const struct af_access *a, const struct af_access *b) {
        return a->arg == b->arg && a->offset == b->offset && a->offset_x == b->offset_x &&
               memcmp(a->strides, b->strides, sizeof(a->strides)) == 0 && memcmp(a->strides_x, b->strides_x, sizeof(a->strides_x)) == 0;
}

/* One load per distinct access. */
int lower_load(struct lower *l, enum af_dtype dtype, const struct af_access *access, uint32_t graph_value, uint32_t *ret) {
        uint32_t axes = 0, v;
        if (l->p->binned && access->strides[l->row])
                return lower_load_binned(l, dtype, access, ret);
        for (unsigned k = 0; k < (l->may_hoist ? 2 : 1); k++) {
                const struct stmt_list *list = &l->lists[k ? STAGE_PROLOGUE : l->stage][0];
                for (uint32_t i = 0; i < list->n; i++)
                        if (list->items[i].kind == AF_KSTMT_LOAD && lower_same_access(&list->items[i].access, access)) {
                                *ret = list->items[i].dst;
                                if (l->aux[*ret].gathered != AF_NONE)
                                        *ret = l->aux[*ret].gathered;
                                return 0;
                        }
        }
        for (uint32_t a = 0; a < l->phase->n_axes; a++)
                axes |= access->strides[a] ? 1u << a : 0;
        struct af_raw raw = {0};
        enum af_hold hold = lower_hold(l, axes);
        bool lies = lower_lies(l, access, hold, af_dtype_size(dtype), &raw);
        if (lies && raw.step == RAW_STEP_UNKNOWN)
                return sched_unfit(l->s, "a step from element to element that depends on symbols");
        int r = lower_value(l, dtype == AF_DTYPE_BOOL ? AF_DTYPE_UINT8 : dtype, lies ? AF_HOLD_RAW : hold, axes, &v);
        if (r)
                return r;
        l->phase->values[v].raw = raw;
        l->phase->values[v].graph_value = graph_value;
        r = lower_emit(l, (struct af_kstmt){.kind = AF_KSTMT_LOAD, .dst = v, .src = {AF_NONE, AF_NONE, AF_NONE}, .access = *access});
        *ret = v;
        if (r || !lies)
                return r;
        r = lower_unravel(l, v, ret);
        l->aux[v].gathered = *ret;
        return r;
}

/* Stores leave from the store queue, so that a value that was loaded or is older than this tile is copied there first. */
int lower_store(struct lower *l, uint32_t v, const struct af_access *access, uint32_t axes) {
        int r = lower_to_bytes(l, v, &v);
        if (!r)
                r = lower_expand(l, v, lower_hold(l, axes), &v);
        if (r)
                return r;
        struct af_raw raw;
        if (lower_lies(l, access, l->phase->values[v].hold, af_dtype_size(l->phase->values[v].dtype), &raw)) {
                r = lower_ravel(l, v, &raw, &v);
                if (r)
                        return r;
        } else if (l->aux[v].loaded || l->aux[v].hoisted || l->phase->values[v].stage != l->stage) {
                uint32_t c;
                const struct af_kvalue *from = &l->phase->values[v];
                r = lower_value(l, from->dtype, from->hold, from->axes, &c);
                if (!r)
                        r = lower_emit(l, (struct af_kstmt){.kind = AF_KSTMT_COPY, .dst = c, .src = {v, AF_NONE, AF_NONE}});
                if (r)
                        return r;
                v = c;
        }
        l->phase->values[v].place = AF_PLACE_STORE;
        uint32_t entries = AF_NONE;
        if (l->p->binned && access->strides[l->row]) {
                if (l->phase->values[v].hold != AF_HOLD_FULL)
                        return sched_unfit(l->s, "rows of one element in an order of their own");
                r = lower_entries(l, &entries);
                if (r)
                        return r;
        }
        return lower_emit(l, (struct af_kstmt){.kind = AF_KSTMT_STORE, .dst = AF_NONE, .src = {v, entries, AF_NONE}, .access = *access});
}

/* A constant that Select takes as it is: an exact float, or no bit at all. */
static bool scalar_of_select(const struct lower *l, const struct af_prim_ins *ins) {
        uint64_t exponent = ins->to == AF_DTYPE_FLOAT32 ? 0x7f800000 : 0x7c00, mantissa = ins->to == AF_DTYPE_FLOAT32 ? 0x7fffff : 0x3ff;
        if (ins->prim != AF_PRIM_DUP || l->dup_x)
                return false;
        if (ins->to != AF_DTYPE_FLOAT32 && ins->to != AF_DTYPE_FLOAT16)
                return ins->imm == 0;
        bool nan = (ins->imm & exponent) == exponent && (ins->imm & mantissa), subnormal = !(ins->imm & exponent) && (ins->imm & mantissa);
        return !nan && !subnormal;
}

/* A program being lowered: constants that Select can take are made only where someone else reads them. */
struct program {
        struct lower *l;
        const struct af_prog *prog;
        uint32_t *values;
        enum af_hold hold;
        uint32_t axes;
};

static const struct af_prim_ins *waiting(const struct program *p, uint32_t v) {
        return p->values[v] == AF_NONE && v >= p->prog->n_operands ? &p->prog->ins[v - p->prog->n_operands] : NULL;
}

static int made(struct program *p, uint32_t v, uint32_t *ret) {
        const struct af_prim_ins *dup = waiting(p, v);
        int r = dup ? lower_prim(p->l, *dup, p->hold, p->axes, AF_NONE, AF_NONE, AF_NONE, &p->values[v]) : 0;
        *ret = p->values[v];
        return r;
}

/* Against a constant on either side: where it is the first, the mask is turned. */
static int lower_select(struct program *p, struct af_prim_ins ins, uint32_t *ret) {
        struct af_prim_ins not = {.prim = AF_PRIM_MASK_NOT, .dtype = AF_DTYPE_MASK, .to = AF_DTYPE_MASK};
        const struct af_prim_ins *b = waiting(p, ins.src[1]), *c = waiting(p, ins.src[2]);
        uint32_t mask, from;
        int r = made(p, ins.src[0], &mask);
        if (!r && b && !c)
                r = lower_prim(p->l, not, p->hold, p->axes, mask, AF_NONE, AF_NONE, &mask);
        if (!r)
                r = made(p, ins.src[b && !c ? 2 : 1], &from);
        ins.imm = c ? c->imm : b ? b->imm : 0;
        return r ? r : lower_prim(p->l, ins, p->hold, p->axes, mask, from, b || c ? AF_NONE : p->values[ins.src[2]], ret);
}

static int lower_ins(struct program *p, const struct af_prim_ins *ins, uint32_t *ret) {
        uint32_t src[3] = {AF_NONE, AF_NONE, AF_NONE};
        *ret = AF_NONE;
        if (scalar_of_select(p->l, ins))
                return 0;
        if (ins->prim == AF_PRIM_SELECT)
                return lower_select(p, *ins, ret);
        for (unsigned k = 0; k < af_prim_info(ins->prim)->n_src; k++) {
                int r = made(p, ins->src[k], &src[k]);
                if (r)
                        return r;
        }
        if (ins->prim != AF_PRIM_BITS)
                return lower_prim(p->l, *ins, p->hold, p->axes, src[0], src[1], src[2], ret);
        *ret = src[0];
        return 0;
}

int lower_program(struct lower *l, const struct af_prog *prog, const uint32_t *operands, enum af_hold hold, uint32_t axes, uint32_t *ret) {
        struct program p = {.l = l, .prog = prog, .hold = hold, .axes = axes};
        p.values = af_arena_calloc(l->s->arena, prog->n_operands + prog->n_ins, sizeof(*p.values));
        if (!p.values)
                return -ENOMEM;
        for (uint32_t i = 0; i < prog->n_operands; i++)
                p.values[i] = operands[i];
        for (uint32_t i = 0; i < prog->n_ins; i++) {
                int r = lower_ins(&p, &prog->ins[i], &p.values[prog->n_operands + i]);
                if (r)
                        return r;
        }
        int r = made(&p, prog->result, ret);
        return r ? r : *ret == AF_NONE ? sched_unfit(l->s, "an expansion that returns an immediate") : 0;
}
