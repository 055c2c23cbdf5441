/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UB by liveness: a linear scan over the statements of a phase. A value lives from its first to its last touch; what a loop carries lives
 * through the whole loop, what the prologue makes lives to the end of the phase. A result takes the place of a source that dies with it
 * where the call may work in place. Loads and stores are packed side by side in one buffer of the stage's own queues.
 */
#include <errno.h>
#include <string.h>

#include "compiler/schedule/sched.h"

#define UB_ALIGN 256u

struct gap {
        uint32_t at, bytes;
};
struct scan {
        struct af_phase *ph;
        uint32_t *first, *last;                          /* per value: statement numbers; AF_NONE: never touched */
        uint32_t *starts, *start_next, *ends, *end_next; /* values by first and by last statement, as lists */
        bool *given;                                     /* its place went to the result that read it last */
        struct gap *gaps;                                /* sorted; the last one has no end */
        uint32_t n_gaps;
        uint32_t high;
};

/* An offset per element that is gathered, two for 64 bits; one more row to make them. */
static uint32_t table_elements(const struct af_phase *p, const struct af_kvalue *v) {
        uint32_t rows, cols;
        af_ktable_shape(p, v, &rows, &cols);
        uint64_t words = AF_ALIGN_UP((uint64_t)cols * (v->size == 8 ? 2 : 1), 8);
        return (uint32_t)AF_MIN((rows + (v->size == 8 ? 1 : 0)) * words, UINT32_C(1) << 28);
}

uint64_t af_phase_ub_bytes(const struct af_phase *p) {
        return (uint64_t)p->load_buffers * p->load_bytes + (uint64_t)p->store_buffers * p->store_bytes + p->calc_bytes + p->resident_bytes;
}

uint32_t af_kvalue_elements(const struct af_phase *p, const struct af_kvalue *v) {
        const struct af_stage *st = &p->stages[v->stage];
        uint32_t size = v->dtype == AF_DTYPE_MASK ? 1 : af_dtype_size(v->dtype), per_block = 32 / size;
        switch (v->hold) {
        case AF_HOLD_FULL:
                return AF_ALIGN_UP(st->rows * st->pitch, AF_KERNEL_ROUND);
        case AF_HOLD_ROW:
                return AF_ALIGN_UP(st->pitch, AF_KERNEL_ROUND);
        case AF_HOLD_COLUMN:
                return AF_ALIGN_UP(st->rows, AF_KERNEL_ROUND);
        case AF_HOLD_ONE:
                return AF_KERNEL_ROUND;
        case AF_HOLD_LANES:
        case AF_HOLD_SCRATCH:
                return st->rows * AF_REDUCE_LANES;
        case AF_HOLD_CHUNKS:
                return st->rows * AF_ALIGN_UP(v->columns, per_block);
        case AF_HOLD_LEVELS:
                return p->levels * AF_ALIGN_UP(st->pitch, per_block);
        case AF_HOLD_BLOCKS:
                return AF_ALIGN_UP(st->rows, 8) * per_block;
        case AF_HOLD_RAW:
                return (uint32_t)AF_MIN((uint64_t)af_kraw_lines(p, v) * af_kraw_pitch(p, v), UINT32_C(1) << 28);
        case AF_HOLD_TABLE:
                return table_elements(p, v);
        }
        return 0;
}

static uint32_t bytes_of(const struct af_phase *p, const struct af_kvalue *v) {
        uint64_t n = af_kvalue_elements(p, v);
        uint64_t bytes = v->dtype == AF_DTYPE_MASK ? n / 8 : n * af_dtype_size(v->dtype);
        return (uint32_t)AF_MIN(AF_ALIGN_UP(bytes, UB_ALIGN), UINT32_C(1) << 30);
}

static void touch(struct scan *c, uint32_t v, uint32_t at) {
        if (v == AF_NONE)
                return;
        c->first[v] = c->first[v] == AF_NONE ? at : AF_MIN(c->first[v], at);
        c->last[v] = c->last[v] == AF_NONE ? at : AF_MAX(c->last[v], at);
}

static void find_lives(struct scan *c) {
        struct af_phase *p = c->ph;
        for (uint32_t i = 0; i < p->n_stmts; i++) {
                touch(c, p->stmts[i].dst, i);
                for (unsigned k = 0; k < 3; k++)
                        touch(c, p->stmts[i].src[k], i);
                if (p->stmts[i].pick.once) { /* from tile to tile */
                        touch(c, p->stmts[i].src[1], 0);
                        touch(c, p->stmts[i].src[1], p->n_stmts);
                }
        }
        for (uint32_t n = 0; n < p->n_nodes; n++) {
                if (p->nodes[n].kind != AF_KNODE_LOOP)
                        continue;
                const struct af_stage *st = &p->stages[p->nodes[p->nodes[n].first_child].stage];
                uint32_t begin = st->first_stmt, end = begin + st->n_stmts - 1;
                for (uint32_t v = 0; v < p->n_values; v++) {
                        if (c->first[v] == AF_NONE || c->last[v] < begin || c->first[v] > end ||
                            (c->first[v] >= begin && c->last[v] <= end))
                                continue;
                        c->first[v] = AF_MIN(c->first[v], begin);
                        c->last[v] = AF_MAX(c->last[v], end);
                }
        }
        uint32_t prologue_end = p->stages[0].first_stmt + p->stages[0].n_stmts;
        for (uint32_t v = 0; v < p->n_values; v++)
                if (c->first[v] != AF_NONE && c->first[v] < prologue_end && c->last[v] >= prologue_end)
                        c->last[v] = p->n_stmts;
}

static uint32_t take(struct scan *c, uint32_t bytes) {
        for (uint32_t i = 0; i < c->n_gaps; i++) {
                if (c->gaps[i].bytes < bytes)
                        continue;
                uint32_t at = c->gaps[i].at;
                c->gaps[i].at += bytes;
                c->gaps[i].bytes -= bytes;
                if (!c->gaps[i].bytes)
                        memmove(&c->gaps[i], &c->gaps[i + 1], (--c->n_gaps - i) * sizeof(*c->gaps));
                c->high = AF_MAX(c->high, at + bytes);
                return at;
        }
        return c->high = UINT32_C(1) << 30; /* far beyond any UB: the caller sees that it does not fit */
}

static void give(struct scan *c, uint32_t at, uint32_t bytes) {
        uint32_t i = c->n_gaps;
        while (i > 0 && c->gaps[i - 1].at > at)
                i--;
        bool left = i > 0 && c->gaps[i - 1].at + c->gaps[i - 1].bytes == at, right = i < c->n_gaps && at + bytes == c->gaps[i].at;
        if (left && right) {
                c->gaps[i - 1].bytes += bytes + c->gaps[i].bytes;
                memmove(&c->gaps[i], &c->gaps[i + 1], (--c->n_gaps - i) * sizeof(*c->gaps));
        } else if (left) {
                c->gaps[i - 1].bytes += bytes;
        } else if (right) {
                c->gaps[i].at = at;
                c->gaps[i].bytes += bytes;
        } else {
                memmove(&c->gaps[i + 1], &c->gaps[i], (c->n_gaps - i) * sizeof(*c->gaps));
                c->gaps[i] = (struct gap){at, bytes};
                c->n_gaps++;
        }
}

/* Whether the call may write its result over source k. */
static bool in_place(const struct af_kstmt *s, unsigned k) {
        if (s->kind != AF_KSTMT_PRIM)
                return false;
        switch (af_prim_info(s->ins.prim)->kind) {
        case 'V':
        case 'S':
        case 'L':
                return true;
        case '?':
                return k > 0;
        case 'C':
                return af_dtype_size(s->ins.dtype) == af_dtype_size(s->ins.to);
        default:
                return false;
        }
}

static void place_dst(struct scan *c, uint32_t i) {
        const struct af_kstmt *s = &c->ph->stmts[i];
        struct af_kvalue *d = &c->ph->values[s->dst];
        for (unsigned k = 0; k < 3 && d->place == AF_PLACE_POOL; k++) {
                if (s->src[k] == AF_NONE || !in_place(s, k) || c->last[s->src[k]] != i || c->given[s->src[k]])
                        continue;
                const struct af_kvalue *v = &c->ph->values[s->src[k]];
                bool free_after = v->place == AF_PLACE_POOL || (v->place == AF_PLACE_LOAD && c->last[s->dst] < c->ph->n_stmts);
                if (!free_after || v->bytes != d->bytes)
                        continue;
                if (v->place == AF_PLACE_LOAD && c->ph->stmts[c->last[s->dst]].stage != s->stage)
                        continue; /* the queue buffer goes back at the end of the stage */
                c->given[s->src[k]] = true;
                d->place = v->place;
                d->offset = v->offset;
                return;
        }
        if (d->place == AF_PLACE_POOL)
                d->offset = take(c, d->bytes);
}

static void walk(struct scan *c) {
        struct af_phase *p = c->ph;
        for (uint32_t i = 0; i < p->n_stmts; i++) {
                const struct af_kstmt *s = &p->stmts[i];
                struct af_stage *st = &p->stages[s->stage];
                for (uint32_t v = c->starts[i]; v != AF_NONE; v = c->start_next[v]) {
                        struct af_kvalue *value = &p->values[v];
                        if ((s->kind == AF_KSTMT_LOAD || s->pick.queued) && v == s->dst) {
                                value->place = st->prologue ? AF_PLACE_RESIDENT : AF_PLACE_LOAD;
                                value->offset = st->load_bytes;
                                st->load_bytes += value->bytes;
                        } else if (value->place == AF_PLACE_STORE) {
                                value->offset = st->store_bytes;
                                st->store_bytes += value->bytes;
                        } else if (v == s->dst) {
                                place_dst(c, i);
                        } else {
                                value->offset = take(c, value->bytes);
                        }
                }
                for (uint32_t v = c->ends[i]; v != AF_NONE; v = c->end_next[v])
                        if (p->values[v].place == AF_PLACE_POOL && !c->given[v])
                                give(c, p->values[v].offset, p->values[v].bytes);
        }
}

static int prepare(struct sched *s, struct scan *c) {
        uint32_t nv = c->ph->n_values, ns = c->ph->n_stmts + 1;
        c->first = af_arena_calloc(&s->scratch, nv, sizeof(uint32_t));
        c->last = af_arena_calloc(&s->scratch, nv, sizeof(uint32_t));
        c->starts = af_arena_calloc(&s->scratch, ns, sizeof(uint32_t));
        c->ends = af_arena_calloc(&s->scratch, ns, sizeof(uint32_t));
        c->start_next = af_arena_calloc(&s->scratch, nv, sizeof(uint32_t));
        c->end_next = af_arena_calloc(&s->scratch, nv, sizeof(uint32_t));
        c->given = af_arena_calloc(&s->scratch, nv, sizeof(bool));
        c->gaps = af_arena_calloc(&s->scratch, nv + 2, sizeof(*c->gaps));
        if (!c->first || !c->last || !c->starts || !c->ends || !c->start_next || !c->end_next || !c->given || !c->gaps)
                return -ENOMEM;
        memset(c->first, 0xff, nv * sizeof(uint32_t));
        memset(c->last, 0xff, nv * sizeof(uint32_t));
        memset(c->starts, 0xff, ns * sizeof(uint32_t));
        memset(c->ends, 0xff, ns * sizeof(uint32_t));
        c->gaps[0] = (struct gap){0, UINT32_C(1) << 30};
        c->n_gaps = 1;
        return 0;
}

int sched_allocate(struct sched *s, struct af_phase *phase) {
        struct scan c = {.ph = phase};
        af_arena_reset(&s->scratch);
        int r = prepare(s, &c);
        if (r)
                return r;
        find_lives(&c);
        for (uint32_t v = phase->n_values; v-- > 0;) {
                struct af_kvalue *value = &phase->values[v];
                value->bytes = bytes_of(phase, value);
                if (value->place != AF_PLACE_STORE)
                        value->place = AF_PLACE_POOL;
                if (c.first[v] == AF_NONE)
                        continue;
                c.start_next[v] = c.starts[c.first[v]];
                c.starts[c.first[v]] = v;
                c.end_next[v] = c.ends[c.last[v]];
                c.ends[c.last[v]] = v;
        }
        for (uint32_t i = 0; i < phase->n_stages; i++)
                phase->stages[i].load_bytes = phase->stages[i].store_bytes = 0;
        walk(&c);
        phase->calc_bytes = c.high;
        phase->load_bytes = phase->store_bytes = phase->resident_bytes = 0;
        for (uint32_t i = 0; i < phase->n_stages; i++) {
                const struct af_stage *st = &phase->stages[i];
                phase->resident_bytes += st->prologue ? st->load_bytes : 0;
                phase->load_bytes += st->prologue ? 0 : st->load_bytes;
                phase->store_bytes += st->store_bytes;
        }
        return 0;
}
