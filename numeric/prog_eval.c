/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program over arrays, a block of elements at a time so that its temporaries stay in the first-level cache. Temporaries
 * live in slots that are given out by a linear scan over the program.
 */
#include <string.h>

#include "numeric/build.h"

enum {
        BLOCK = 512,                 /* elements */
        SLOT_BYTES = BLOCK * 8 + 64, /* not a multiple of 4 KiB: slots must not alias in the cache */
        N_VALUES = AF_PROG_MAX + AF_PROG_MAX_OPERANDS,
};
_Static_assert((AF_PROG_MAX_LIVE + AF_PROG_MAX_OPERANDS) * SLOT_BYTES + 64 <= AF_PROG_SCRATCH_BYTES,
               "room for the slots and a mask per operand");

struct slots {
        uint16_t of[N_VALUES];       /* value -> slot */
        uint16_t last_use[N_VALUES]; /* value -> instruction that reads it last; the result: n_ins */
        uint16_t free[AF_PROG_MAX_LIVE];
        unsigned n_free;
};

static void find_last_uses(const struct af_prog *prog, uint16_t *last_use) {
        for (unsigned v = 0; v < prog->n_operands + prog->n_ins; v++)
                last_use[v] = 0;
        for (unsigned i = 0; i < prog->n_ins; i++)
                for (unsigned k = 0; k < af_prim_info((enum af_prim)prog->ins[i].prim)->n_src; k++)
                        last_use[prog->ins[i].src[k]] = (uint16_t)i;
        last_use[prog->result] = prog->n_ins;
}

static size_t memory_size(enum af_dtype d) {
        return d == AF_DTYPE_MASK || d == AF_DTYPE_BOOL ? 1 : af_dtype_size(d);
}

/* Temporaries that instruction i reads last: their number, the values in ret_values. */
static unsigned dying(const struct af_prog *prog, const uint16_t *last_use, unsigned i, uint16_t ret_values[3]) {
        const struct af_prim_ins *ins = &prog->ins[i];
        unsigned n = 0;

        for (unsigned k = 0; k < af_prim_info((enum af_prim)ins->prim)->n_src; k++) {
                uint16_t v = ins->src[k];
                bool seen = false;

                for (unsigned j = 0; j < n; j++)
                        seen |= ret_values[j] == v;
                if (v >= prog->n_operands && last_use[v] == i && !seen)
                        ret_values[n++] = v;
        }
        return n;
}

/*
 * Gives each result a slot; returns how many slots that takes. A result may take the slot of a source that dies with it where
 * elements have one size: the loops work in place only then. More than AF_PROG_MAX_LIVE: the assignment is unusable.
 */
static unsigned assign_slots(const struct af_prog *prog, struct slots *s) {
        unsigned most = 0;

        find_last_uses(prog, s->last_use);
        memset(s->of, 0xff, sizeof(s->of));
        s->n_free = AF_PROG_MAX_LIVE;
        for (unsigned k = 0; k < AF_PROG_MAX_LIVE; k++)
                s->free[k] = (uint16_t)(AF_PROG_MAX_LIVE - 1 - k);
        for (unsigned i = 0; i < prog->n_ins; i++) {
                unsigned v = prog->n_operands + i;
                uint16_t dead[3];
                unsigned n_dead = dying(prog, s->last_use, i, dead);
                size_t size = memory_size((enum af_dtype)prog->ins[i].to);

                for (unsigned k = 0; k < n_dead; k++)
                        if (memory_size((enum af_dtype)prog->ins[dead[k] - prog->n_operands].to) == size)
                                s->free[s->n_free++] = s->of[dead[k]];
                if (!s->n_free)
                        return AF_PROG_MAX_LIVE + 1;
                s->of[v] = s->free[--s->n_free];
                most = AF_PROG_MAX_LIVE - s->n_free > most ? AF_PROG_MAX_LIVE - s->n_free : most;
                for (unsigned k = 0; k < n_dead; k++)
                        if (memory_size((enum af_dtype)prog->ins[dead[k] - prog->n_operands].to) != size)
                                s->free[s->n_free++] = s->of[dead[k]];
                if (s->last_use[v] <= i) /* never read */
                        s->free[s->n_free++] = s->of[v];
        }
        return most;
}

unsigned af_prog_max_live(const struct af_prog *prog) {
        struct slots s;

        return assign_slots(prog, &s);
}

static void normalise(uint8_t *dst, const uint8_t *src, size_t n) {
        for (size_t i = 0; i < n; i++)
                dst[i] = src[i] != 0;
}

struct run {
        const struct af_prog *prog;
        const enum af_dtype *operand_dtypes;
        const void *const *srcs;
        char *slots;
        struct slots s;
        const void *operand[AF_PROG_MAX_OPERANDS]; /* of the present block */
};

static void load_operands(struct run *r, size_t at, size_t n) {
        for (unsigned k = 0; k < r->prog->n_operands; k++) {
                enum af_dtype d = r->operand_dtypes[k];
                const char *src = r->srcs[k];

                r->operand[k] = src ? src + at * memory_size(d) : NULL;
                if (src && d == AF_DTYPE_BOOL) {
                        uint8_t *mask = (uint8_t *)r->slots + (size_t)(AF_PROG_MAX_LIVE + k) * SLOT_BYTES;

                        normalise(mask, (const uint8_t *)src + at, n);
                        r->operand[k] = mask;
                }
        }
}

static const void *value_at(const struct run *r, unsigned v) {
        return v < r->prog->n_operands ? r->operand[v] : r->slots + (size_t)r->s.of[v] * SLOT_BYTES;
}

static size_t result_size(const struct af_prog *prog, const enum af_dtype *operand_dtypes) {
        if (prog->result < prog->n_operands)
                return memory_size(operand_dtypes[prog->result]);
        return memory_size((enum af_dtype)prog->ins[prog->result - prog->n_operands].to);
}

void af_prog_eval(const struct af_prog *prog, const enum af_dtype *operand_dtypes, const void *const *srcs, void *dst, size_t n,
                  void *scratch) {
        struct run r = {.prog = prog, .operand_dtypes = operand_dtypes, .srcs = srcs};
        size_t out_size = result_size(prog, operand_dtypes);

        r.slots = (char *)scratch + (-(uintptr_t)scratch & 63u);
        assign_slots(prog, &r.s);
        for (size_t at = 0; at < n; at += BLOCK) {
                size_t m = n - at < BLOCK ? n - at : BLOCK;

                load_operands(&r, at, m);
                for (unsigned i = 0; i < prog->n_ins; i++) {
                        const struct af_prim_ins *ins = &prog->ins[i];
                        const void *s[3] = {NULL, NULL, NULL};

                        for (unsigned k = 0; k < af_prim_info((enum af_prim)ins->prim)->n_src; k++)
                                s[k] = value_at(&r, ins->src[k]);
                        af_prim_eval(ins, s, r.slots + (size_t)r.s.of[prog->n_operands + i] * SLOT_BYTES, m);
                }
                memmove((char *)dst + at * out_size, value_at(&r, prog->result), m * out_size);
        }
}
