/* SPDX-License-Identifier: Apache-2.0 */
/* Group -> passes: copies that make inputs dense, the group, copies that spread outputs out; a reduction goes innermost run first, cut into
 * chunks where that pays. */
#include <errno.h>
#include <string.h>

#include "compiler/schedule/sched.h"

struct plan {
        struct sched *s;
        struct pass *passes;
        uint32_t n;
        struct pass_axis axes[AF_KERNEL_MAX_AXES]; /* of the partial results so far */
        uint32_t n_axes;
        uint32_t regions; /* first region of the partials, or AF_NONE: still the group */
        bool ordered_mul; /* some product's order matters */
};

static int next_pass(struct plan *p, struct pass **ret) {
        if (p->n >= MAX_PASSES)
                return sched_unfit(p->s, "too many inputs and outputs that are not dense");
        *ret = &p->passes[p->n++];
        **ret = (struct pass){.row = AF_NONE, .inner = AF_NONE, .over = AF_NONE, .chunk_axis = AF_NONE};
        return 0;
}

static bool same_pack(const struct af_use *a, const struct af_use *b) {
        return a->base == b->base && memcmp(a->pack, b->pack, sizeof(*a->pack)) == 0;
}

/* A pass that copies between a value's own memory and its region. */
static int plan_copy(struct plan *p, uint32_t use, enum pass_kind kind) {
        struct sched *s = p->s;
        const struct af_pack *k = s->sp.uses[use].pack;
        struct pass *q;
        int r = next_pass(p, &q);
        if (r)
                return r;
        q->kind = kind;
        q->pack = &s->sp.uses[use];
        q->regions = s->pack_region[use];
        for (uint32_t a = 0; a < k->n_axes; a++)
                q->axes[a] = (struct pass_axis){.extent = k->extent[a], .most = k->extent[a], .space_axis = AF_NONE};
        q->n_axes = k->n_axes;
        int64_t inner = k->n_axes ? k->load[k->n_axes - 1] : 0, row = k->n_axes > 1 ? k->load[k->n_axes - 2] : 0;
        uint32_t cross = 0;
        while (cross < k->n_axes && k->load[cross] != 1)
                cross++;
        if (cross == k->n_axes && (inner ? inner != 1 : row != 0 && row != 1)) /* rows of one element */
                q->axes[q->n_axes++] = (struct pass_axis){.extent = 1, .most = 1, .space_axis = AF_NONE};
        q->inner = q->n_axes ? q->n_axes - 1 : AF_NONE;
        q->row = cross + 1 < k->n_axes ? cross : q->n_axes > 1 ? q->n_axes - 2 : AF_NONE; /* a tile spans both contiguous axes */
        return 0;
}

static int plan_pack(struct plan *p, uint32_t use) {
        struct sched *s = p->s;
        for (uint32_t i = 0; i < use; i++)
                if (s->sp.uses[i].pack && same_pack(&s->sp.uses[i], &s->sp.uses[use])) {
                        s->pack_region[use] = s->pack_region[i];
                        return 0;
                }
        int r = sched_add_region(s, s->g->values[s->sp.uses[use].base].dtype, s->sp.uses[use].pack->elements, &s->pack_region[use]);
        return r ? r : plan_copy(p, use, PASS_PACK);
}

/* Axes that resident reductions combine. */
static uint32_t resident_axes(const struct sched *s) {
        uint32_t axes = 0;
        for (uint32_t i = 0; i < s->n_reductions; i++)
                axes |= s->reductions[i].real && !s->reductions[i].cross ? s->reductions[i].reduced : 0;
        return axes;
}

/* The two passes that put the rows in order, and where they leave that. */
static int plan_bins(struct plan *p) {
        struct sched *s = p->s;
        struct af_bins *b = &s->bins;
        struct pass *q;
        int r = sched_add_region(s, AF_DTYPE_INT32, (int64_t)b->sources * b->bins * b->words, &b->slots);
        if (!r)
                r = sched_add_region(s, AF_DTYPE_INT64, b->n, &b->entries);
        for (enum pass_kind kind = PASS_BIN; !r && kind <= PASS_GROUP; kind++) {
                r = next_pass(p, &q);
                if (!r)
                        q->kind = kind;
        }
        return r;
}

static int plan_elementwise(struct plan *p) {
        struct pass *q;
        int r = next_pass(p, &q);
        if (r)
                return r;
        q->kind = PASS_ELEMENTWISE;
        q->whole = resident_axes(p->s);
        q->from_group = q->to_group = true;
        q->binned = p->s->binned;
        memcpy(q->axes, p->axes, sizeof(q->axes));
        q->n_axes = p->n_axes;
        q->inner = p->s->sp.inner;
        q->row = p->s->sp.row;
        return 0;
}

/* Cuts the run into chunks: q combines the elements of each, p's axes keep one result per chunk. */
static bool cut_run(struct plan *p, struct pass *q, int64_t chunk) {
        uint32_t over = q->over;
        int64_t chunks;
        memmove(&q->axes[over + 1], &q->axes[over], (p->n_axes - over) * sizeof(q->axes[0]));
        q->chunk_axis = over;
        q->over = over + 1;
        q->n_axes++;
        q->axes[q->over].extent = q->axes[q->over].most = chunk;
        q->axes[q->over].x = 0;
        if (!af_size_ceil_div(p->s->g, af_size_join(q->total, q->total_x), chunk, &chunks))
                return false;
        q->axes[over].x = af_size_x(chunks);
        q->axes[over].extent = AF_MAX(af_size_hint(p->s->g, chunks), (int64_t)1);
        q->axes[over].most = q->total_most / chunk + (q->total_most % chunk != 0);
        q->axes[over].step *= chunk;
        q->axes[over].reduced = false;
        p->axes[over] = q->axes[over];
        p->axes[over].reduced = true;
        p->axes[over].space_axis = AF_NONE;
        return true;
}

/* A region per reduction for the partial results. */
static int add_partials(struct plan *p, struct pass *q) {
        int64_t elements = 1;
        bool first = true;
        for (uint32_t a = 0; a < p->n_axes; a++)
                if (!af_size_mul(p->s->g, elements, af_size_join(p->axes[a].extent, p->axes[a].x), &elements))
                        return sched_unfit(p->s, "sizes beyond 64 bits");
        for (uint32_t i = 0; i < p->s->n_reductions; i++) {
                uint32_t region;
                if (!p->s->reductions[i].cross)
                        continue;
                int r = sched_add_region(p->s, p->s->reductions[i].plan.acc, elements, &region);
                if (r)
                        return r;
                q->to_regions = first ? region : q->to_regions;
                first = false;
        }
        p->regions = q->to_regions;
        return 0;
}

/* chunk: elements per chunk; 0: the whole run at once. Turns p's axes into those of the result. */
static int plan_run(struct plan *p, uint32_t over, int64_t chunk, bool *ret_done) {
        struct pass *q;
        bool last = over == p->n_axes - 1;
        int r = next_pass(p, &q);
        if (r)
                return r;
        q->kind = last ? PASS_LAST : PASS_ROWS;
        q->from_group = p->regions == AF_NONE;
        q->regions = p->regions;
        memcpy(q->axes, p->axes, sizeof(q->axes));
        q->n_axes = p->n_axes;
        q->over = over;
        q->total = p->axes[over].extent;
        q->total_x = p->axes[over].x;
        q->total_most = p->axes[over].most;
        if (chunk) {
                if (!cut_run(p, q, chunk))
                        return sched_unfit(p->s, "sizes beyond 64 bits");
        } else {
                memmove(&p->axes[over], &p->axes[over + 1], (p->n_axes - over - 1) * sizeof(p->axes[0]));
                p->n_axes--;
        }
        q->inner = q->n_axes - 1;
        q->row = last ? (q->n_axes > 1 ? q->n_axes - 2 : AF_NONE) : q->over;
        q->whole = q->from_group && resident_axes(p->s) ? 1u << q->inner : 0;
        *ret_done = true;
        for (uint32_t a = 0; a < p->n_axes; a++)
                *ret_done &= !p->axes[a].reduced;
        q->to_group = *ret_done;
        return *ret_done ? 0 : add_partials(p, q);
}

/* Elements per chunk that the choice asks for, or that must be; 0: none. */
static int64_t chunk_of(const struct plan *p, uint32_t over, uint32_t choice) {
        int64_t n = p->axes[over].most, chunks = n / AF_REDUCE_CHUNK + (n % AF_REDUCE_CHUNK != 0);
        if (over == p->n_axes - 1) {
                bool must = chunks > AF_REDUCE_CHUNK || (p->ordered_mul && chunks > 1);
                return must || (choice == 1 && chunks > 1) ? AF_REDUCE_CHUNK : 0;
        }
        int64_t rows = AF_REDUCE_ROWS;
        for (uint32_t k = 1; k < choice; k++)
                rows *= AF_REDUCE_ROWS;
        return choice && rows < n ? rows : 0;
}

/* Copies in front, and regions for the outputs that are spread out behind. */
static int plan_before(struct plan *p) {
        struct sched *s = p->s;
        int r = 0;
        for (uint32_t i = 0; !r && i < s->sp.first_store; i++)
                if (s->sp.uses[i].pack)
                        r = plan_pack(p, i);
        for (uint32_t i = s->sp.first_store; !r && i < s->sp.n_uses; i++)
                if (s->sp.uses[i].pack)
                        r = sched_add_region(s, s->g->values[s->sp.uses[i].value].dtype, s->sp.uses[i].pack->elements, &s->pack_region[i]);
        return r;
}

static int plan_behind(struct plan *p) {
        int r = 0;
        for (uint32_t i = p->s->sp.first_store; !r && i < p->s->sp.n_uses; i++)
                if (p->s->sp.uses[i].pack)
                        r = plan_copy(p, i, PASS_UNPACK);
        return r;
}

int sched_plan(struct sched *s, uint32_t choice, struct pass *passes, uint32_t *ret_n) {
        struct plan p = {.s = s, .passes = passes, .n_axes = s->sp.n_axes, .regions = AF_NONE};
        uint32_t over = 0;
        int r = 0;
        bool done = false;
        s->n_regions = s->n_kept_regions;
        *ret_n = 0;
        for (uint32_t i = 0; i < s->n_reductions; i++)
                p.ordered_mul |=
                        s->reductions[i].cross && s->reductions[i].plan.combine == AF_COMBINE_MUL && sched_ordered(&s->reductions[i]);
        for (uint32_t i = 0; i < s->n_reductions; i++)
                over |= s->reductions[i].cross ? s->reductions[i].reduced : 0;
        for (uint32_t a = 0; a < s->sp.n_axes; a++)
                p.axes[a] = (struct pass_axis){.extent = s->sp.extent[a],
                                               .x = s->sp.extent_x[a],
                                               .most = s->sp.most[a],
                                               .space_axis = a,
                                               .step = 1,
                                               .reduced = over >> a & 1};
        r = plan_before(&p);
        if (!r && !s->n_cross) {
                r = s->binned ? plan_bins(&p) : 0;
                if (!r)
                        r = plan_elementwise(&p);
                if (!r)
                        r = plan_behind(&p);
                *ret_n = p.n;
                return r;
        }
        choice = choice >= CHOICE_MIXED ? choice - CHOICE_MIXED + 1 : choice - CHOICE_CROSS;
        for (bool first = true; !r && !done; first = false) {
                uint32_t over = p.n_axes - 1;
                while (!p.axes[over].reduced)
                        over--;
                int64_t chunk = chunk_of(&p, over, first ? choice : 0);
                if (first && choice && !(over == p.n_axes - 1 ? choice == 1 && chunk : chunk != 0))
                        return 0;
                r = plan_run(&p, over, chunk, &done);
        }
        if (!r && done)
                r = plan_behind(&p);
        *ret_n = done ? p.n : 0;
        return r;
}
