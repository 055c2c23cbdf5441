/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gathers that read a row of memory once, however many indices name it: before the group's own pass two others put the positions of the
 * index in the order of rows. Which groups can have that, and its sizes. Correct for any index; worth it by how often uniform ones repeat.
 */
#include <string.h>

#include "compiler/schedule/sched.h"

#define LEAST_SAVED 0.01 /* of all bytes: below, two meetings of the cores are not worth it */
#define MOST_SLOWER 1.25
#define MAX_SLICE   32767 /* entries before a slot are a half word */
#define MAX_TABLE   16384
#define SLOT_UNIT   8 /* 32 bytes */
#define UB_UNIT     256

double sched_bins_distinct(int64_t extent, int64_t n) {
        double missed = 1, power = 1 - 1 / (double)AF_MAX(extent, 1);
        for (; n > 0; n /= 2) { /* by squaring: the same on every machine */
                missed *= n & 1 ? power : 1;
                power *= power;
        }
        return (double)extent * (1 - missed);
}

static uint32_t bits_for(int64_t most) {
        uint32_t n = 0;
        for (; most > 0; most >>= 1)
                n++;
        return n;
}

/* Entries that a slot should have room for where `mean` is what even bins get: two and a half deviations more. */
static int64_t room_for(int64_t entries, int64_t bins) {
        int64_t room = (entries + bins - 1) / bins;
        while ((room * bins - entries) * (room * bins - entries) * 4 < 25 * entries * bins)
                room++;
        return room;
}

static bool set_sizes(const struct af_soc *soc, struct af_bins *b) {
        int64_t sources = AF_MIN((int64_t)soc->vector_cores, b->n), slice = (b->n + sources - 1) / sources, bins = 1, table = 64;
        while (2 * bins <= soc->vector_cores && 2 * bins <= b->n)
                bins *= 2;
        int64_t words = AF_ALIGN_UP(room_for(slice, bins) + 1, (int64_t)SLOT_UNIT);
        while (table < AF_MIN(8 * b->n, b->extent) / bins && table < MAX_TABLE)
                table *= 2;
        b->sources = (uint32_t)sources;
        b->bins = (uint32_t)bins;
        b->shift = bits_for(slice - 1);
        if (slice > MAX_SLICE || b->shift + bits_for(b->extent) > 31 || words > soc->ub_bytes / 4)
                return false;
        b->words = (uint32_t)words;
        b->table = (uint32_t)table;
        return true;
}

/* UB of the two phases: the slice and its slots; the slots of a bin, the table, the entries. */
static uint64_t ub_of(const struct af_bins *b, enum pass_kind kind) {
        uint64_t slice = (uint64_t)(b->n + b->sources - 1) / b->sources, all = (uint64_t)b->sources * b->words;
        return kind == PASS_BIN
                       ? AF_ALIGN_UP(slice * af_dtype_size(b->dtype), UB_UNIT) + AF_ALIGN_UP(4 * (uint64_t)b->bins * b->words, UB_UNIT)
                       : 3 * AF_ALIGN_UP(4 * all, UB_UNIT) + AF_ALIGN_UP(4 * (uint64_t)b->table, UB_UNIT);
}

static bool is_index(const struct sched *s, const struct af_use *u) {
        enum af_dtype d = u->base == AF_NONE ? AF_DTYPE_BOOL : s->g->values[u->base].dtype;
        return u->base_kind == AF_BASE_INPUT && !u->pack && !u->gathers && u->vary == 1u << s->sp.row && u->strides[s->sp.row] == 1 &&
               !u->strides_x[s->sp.row] && !u->offset_x && (d == AF_DTYPE_INT32 || d == AF_DTYPE_INT64);
}

bool sched_bins_index(const struct sched *s, const struct af_use *index, int64_t extent) {
        return is_index(s, index) && sched_input_arg(s, index->base) == s->bins.index && index->offset == s->bins.offset &&
               extent == s->bins.extent;
}

/* Whether rows may come in any order: nothing runs over them or counts them, and each goes and comes as a run. */
static bool any_order(const struct sched *s) {
        uint32_t row = s->sp.row;
        if (s->scan || row == AF_NONE || s->sp.inner == AF_NONE || s->sp.raw || s->sp.flat)
                return false;
        for (uint32_t a = 0; a < s->sp.n_axes; a++)
                if (s->sp.extent_x[a])
                        return false;
        for (uint32_t i = 0; i < s->n_reductions; i++)
                if (s->reductions[i].reduced >> row & 1)
                        return false;
        for (uint32_t i = 0; i < s->sp.n_uses; i++) {
                const struct af_use *u = &s->sp.uses[i];
                bool steps = u->strides[row] || u->strides_x[row];
                if (steps && (u->strides_x[row] || u->gathers || u->base_kind == AF_BASE_INDEX))
                        return false;
        }
        return true;
}

/* Bytes that the gathers by this index save where indices are spread evenly. */
static double saved_by(const struct sched *s, const struct af_bins *b, const struct af_use *data) {
        double row = (double)s->sp.extent[s->sp.inner] * af_dtype_size(s->g->values[data->base].dtype);
        return ((double)b->n - sched_bins_distinct(b->extent, b->n)) * row;
}

int sched_bins_find(struct sched *s, struct af_bins *ret) {
        double best = 0;
        if (!any_order(s))
                return sched_unfit(s, "rows that have an order");
        for (uint32_t i = 0; i < s->m.n; i++) {
                if (s->sp.skip[i] || af_op_info(s->g->nodes[s->m.nodes[i]].op)->cls != AF_CLASS_GATHER)
                        continue;
                const struct af_use *data = &s->sp.uses[s->sp.first_use[i]], *index = data + 1;
                if (af_size_is_symbolic(data->gather_extent) || af_size_is_symbolic(data->gather_stride))
                        continue;
                if (!is_index(s, index) || data->strides[s->sp.inner] != 1 || data->strides_x[s->sp.inner])
                        continue;
                struct af_bins b = {.index = sched_input_arg(s, index->base),
                                    .offset = index->offset,
                                    .n = s->sp.extent[s->sp.row],
                                    .extent = data->gather_extent,
                                    .dtype = s->g->values[index->base].dtype};
                double saved = saved_by(s, &b, data), lists = 4.0 * 4 * (double)b.n;
                if (b.index >= s->n_pointers || b.extent < 1 || b.n < 1 || saved <= lists || saved <= best || !set_sizes(s->soc, &b) ||
                    ub_of(&b, PASS_BIN) > s->soc->ub_bytes || ub_of(&b, PASS_GROUP) > s->soc->ub_bytes)
                        continue;
                best = saved;
                *ret = b;
        }
        return best > 0 ? 0 : sched_unfit(s, "no gather whose rows repeat");
}

void sched_bins_phase(const struct sched *s, const struct pass *p, struct af_phase *ret_phase) {
        struct af_bins b = s->bins;
        bool bin = p->kind == PASS_BIN;
        b.slots += s->n_args;
        b.entries += s->n_args;
        *ret_phase = (struct af_phase){.kind = bin ? AF_PHASE_BIN : AF_PHASE_GROUP,
                                       .bins = b,
                                       .n_axes = 1,
                                       .n_tiles = bin ? b.sources : b.bins,
                                       .load_buffers = 1,
                                       .store_buffers = 1,
                                       .calc_bytes = (uint32_t)ub_of(&b, p->kind),
                                       .what = bin ? "positions into bins by row" : "bins in the order of rows"};
        ret_phase->axes[0] = (struct af_axis){.extent = ret_phase->n_tiles, .most = ret_phase->n_tiles, .tile = 1, .chunk_axis = AF_NONE};
        ret_phase->blocks = (uint32_t)AF_MIN(ret_phase->n_tiles, (int64_t)s->soc->vector_cores);
        sched_cost(s, ret_phase, ret_phase->blocks);
}

bool sched_bins_better(uint64_t cycles, uint64_t bytes, uint64_t than_cycles, uint64_t than_bytes) {
        return sched_better(cycles, bytes, than_cycles, than_bytes) ||
               ((double)bytes <= (1 - LEAST_SAVED) * (double)than_bytes && (double)cycles <= MOST_SLOWER * (double)than_cycles);
}
