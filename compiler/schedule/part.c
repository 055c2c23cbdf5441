/* SPDX-License-Identifier: Apache-2.0 */
/* One part of a kernel: collects its facts, tries the plans, keeps the cheapest. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "compiler/schedule/sched.h"

#define REGION_ALIGN 512

int sched_unfit(struct sched *s, const char *why) {
        *s->why = why;
        return AF_SCHEDULE_E_UNFIT;
}

const struct reduction *sched_cross(const struct sched *s, uint32_t position) {
        uint32_t r = s->reduction_of[position];
        return r != AF_NONE && s->reductions[r].cross ? &s->reductions[r] : NULL;
}

uint32_t sched_arg(const struct sched *s, uint32_t place) {
        return place & PLACE_REGION ? s->n_args + (place & ~PLACE_REGION) : place;
}

uint32_t sched_input_arg(const struct sched *s, uint32_t value) {
        for (uint32_t i = 0; i < s->n_pointers; i++)
                if (s->args[i].kind == AF_KARG_INPUT && s->args[i].value == value)
                        return i;
        for (uint32_t i = 0; i < s->n_held; i++)
                if (s->held[i].value == value)
                        return sched_arg(s, s->held[i].place);
        return AF_NONE;
}

bool sched_ordered(const struct reduction *r) {
        return af_combine_ordered(r->plan.combine, r->plan.acc);
}

bool sched_set_region(const struct af_graph *g, struct af_region *r, enum af_dtype dtype, int64_t elements, const struct af_region *last) {
        int64_t bytes, offset = 0;
        if (!af_size_mul(g, elements, af_dtype_size(dtype), &bytes))
                return false;
        if (af_size_is_symbolic(bytes) &&
            (!af_size_ceil_div(g, bytes, REGION_ALIGN, &bytes) || !af_size_mul(g, bytes, REGION_ALIGN, &bytes)))
                return false;
        if (last && !af_size_add(g, af_size_join((int64_t)last->offset, last->offset_x), af_size_join((int64_t)last->bytes, last->bytes_x),
                                 &offset))
                return false;
        offset = af_size_is_symbolic(offset) ? offset : AF_ALIGN_UP(offset, (int64_t)REGION_ALIGN);
        *r = (struct af_region){.dtype = dtype,
                                .offset = (uint64_t)af_size_hint(g, offset),
                                .bytes = (uint64_t)af_size_hint(g, bytes),
                                .offset_x = af_size_x(offset),
                                .bytes_x = af_size_x(bytes)};
        return true;
}

int sched_add_region(struct sched *s, enum af_dtype dtype, int64_t elements, uint32_t *ret_region) {
        int r = af_arena_grow(s->arena, &s->regions, &s->cap_regions, s->n_regions + 1, sizeof(*s->regions));
        if (r)
                return r;
        const struct af_region *last = s->n_regions ? &s->regions[s->n_regions - 1] : NULL;
        bool fits = sched_set_region(s->g, &s->regions[s->n_regions], dtype, elements, last);
        *ret_region = s->n_regions++;
        return fits ? 0 : sched_unfit(s, "sizes beyond 64 bits");
}

static int check_dtype(struct sched *s, enum af_dtype d) {
        if (s->soc->dtypes & AF_DTYPE_BIT(d))
                return 0;
        const char *why = af_arena_printf(s->arena, "%s tensors are not for %s", af_dtype_name(d), s->soc->name);
        return why ? sched_unfit(s, why) : -ENOMEM;
}

static int check_nodes(struct sched *s) {
        for (uint32_t i = 0; i < s->m.n; i++) {
                const struct af_node *n = &s->g->nodes[s->m.nodes[i]];
                enum af_op_class cls = af_op_info(n->op)->cls;
                if (cls > AF_CLASS_VIEW && cls != AF_CLASS_TRANSPOSE && cls != AF_CLASS_SLICE && cls != AF_CLASS_IOTA &&
                    cls != AF_CLASS_CONCAT && cls != AF_CLASS_GATHER) {
                        const char *why = af_arena_printf(s->arena, "no template for op class %s", af_op_class_name(cls));
                        return why ? sched_unfit(s, why) : -ENOMEM;
                }
                for (uint32_t k = 0; k < n->n_in; k++) {
                        uint64_t bits;
                        const struct af_value *v = &s->g->values[n->in[k]];
                        bool taken = af_value_scalar(s->g, n->in[k], &bits) || af_value_is_wide_scalar(v);
                        int r = taken ? 0 : check_dtype(s, v->dtype);
                        if (r)
                                return r;
                }
                int r = check_dtype(s, s->g->values[n->out[0]].dtype);
                if (r)
                        return r;
        }
        return 0;
}

/* Elements combined into one result. False where that does not fit. */
static bool reduced_count(const struct sched *s, uint32_t i, int64_t *ret) {
        const struct af_node *n = &s->g->nodes[s->m.nodes[i]];
        int64_t in[AF_LIMIT_RANK] = {0};
        const struct af_attr *axes = af_node_attr(n, AF_ATTR_AXES);
        uint32_t n_axes = axes ? axes->n : s->g->values[n->in[0]].rank;
        af_size_dims(s->g, n->in[0], in);
        *ret = 1;
        for (uint32_t k = 0; k < n_axes; k++)
                if (!af_size_mul(s->g, *ret, in[axes ? axes->ints[k] : (int64_t)k], ret))
                        return false;
        return true;
}

static int add_reduction(struct sched *s, uint32_t i) {
        const struct af_node *n = &s->g->nodes[s->m.nodes[i]];
        struct reduction *r = &s->reductions[s->n_reductions];
        const char *reason = "no program";
        *r = (struct reduction){.node = i, .real = !s->sp.unit_reduce[i] && !s->sp.empty_reduce[i], .reduced = s->sp.node_reduced[i]};
        int64_t count;
        if (!reduced_count(s, i, &count))
                return sched_unfit(s, "sizes beyond 64 bits");
        int64_t most = af_size_most(s->g, count);
        r->count_x = n->op == AF_OP_REDUCE_MEAN ? af_size_x(count) : 0;
        r->axes = r->real ? s->sp.uses[s->sp.first_use[i]].axes : 0;
        if (af_expand_reduce(n->op, s->g->values[n->in[0]].dtype, s->g->values[n->out[0]].dtype, (uint64_t)most, &r->plan, &reason))
                return sched_unfit(s, reason);
        s->n_real += r->real;
        s->reduction_of[i] = s->n_reductions++;
        return 0;
}

static int find_reductions(struct sched *s) {
        uint32_t n = 0; /* they are large */
        for (uint32_t i = 0; i < s->m.n; i++)
                n += af_op_info(s->g->nodes[s->m.nodes[i]].op)->cls == AF_CLASS_REDUCE;
        s->reductions = af_arena_calloc(s->arena, n, sizeof(*s->reductions));
        s->reduction_of = af_arena_calloc(s->arena, s->m.n, sizeof(uint32_t));
        s->late = af_arena_calloc(s->arena, s->m.n, sizeof(bool));
        s->pack_region = af_arena_calloc(s->arena, s->sp.n_uses + 1, sizeof(uint32_t));
        if (!s->reductions || !s->reduction_of || !s->late || !s->pack_region)
                return -ENOMEM;
        for (uint32_t i = 0; i < s->m.n; i++) {
                s->reduction_of[i] = AF_NONE;
                if (s->sp.skip[i])
                        continue;
                int r = af_op_info(s->g->nodes[s->m.nodes[i]].op)->cls == AF_CLASS_REDUCE ? add_reduction(s, i) : 0;
                if (r)
                        return r;
        }
        return 0;
}

/* Whether one node alone computes: then any layout can be had by making its inputs dense first. */
static bool single(const struct af_members *m) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < m->n; i++) {
                enum af_op_class c = af_op_info(m->g->nodes[m->nodes[i]].op)->cls;
                n += c != AF_CLASS_VIEW && c != AF_CLASS_BROADCAST && c != AF_CLASS_TRANSPOSE && c != AF_CLASS_SLICE &&
                     c != AF_CLASS_CONCAT;
        }
        return n <= 1;
}

/* The common axes: first as if an input were one value to all its readers, then use by use, then with dense copies for a node by itself. */
static int find_space(struct sched *s) {
        int r = af_space_build(s->arena, &s->m, s->stores, s->n_stores, s->packing, true, &s->sp, s->why);
        const char *why = *s->why;
        if (r == AF_SCHEDULE_E_UNFIT)
                r = af_space_build(s->arena, &s->m, s->stores, s->n_stores, s->packing, false, &s->sp, s->why);
        if (r == AF_SCHEDULE_E_UNFIT && single(&s->m))
                r = af_space_build(s->arena, &s->m, s->stores, s->n_stores, AF_PACK_ALL, false, &s->sp, s->why);
        *s->why = r > 0 ? why : *s->why;
        return r;
}

/* Whether tiles may write over this input: each element is read by the tile that writes it and by no other. */
static bool same_elements(const struct af_use *load, const struct af_use *store) {
        return !load->pack && !load->gathers && load->offset == store->offset && load->offset_x == store->offset_x &&
               memcmp(load->strides, store->strides, sizeof(load->strides)) == 0 &&
               memcmp(load->strides_x, store->strides_x, sizeof(load->strides_x)) == 0;
}

/* An output that takes an input's memory: whoever reads that memory here reads just what its tile writes. */
static int check_in_place(struct sched *s) {
        for (uint32_t o = 0; o < s->g->n_outputs && !s->g->not_in_place; o++) {
                const struct af_graph_output *out = &s->g->outputs[o];
                for (uint32_t i = 0; i < s->n_stores && out->alias_of != AF_NONE; i++) {
                        const struct af_use *store = &s->sp.uses[s->sp.first_store + i];
                        if (s->stores[i].output != out->value || store->base == AF_NONE ||
                            store->pack) /* spread out when all has been read */
                                continue;
                        for (uint32_t u = 0; u < s->sp.first_store; u++) {
                                const struct af_value *v = &s->g->values[s->sp.uses[u].base];
                                if (v->kind == AF_VALUE_INPUT && s->g->inputs[v->index].buffer == s->g->inputs[out->alias_of].buffer &&
                                    !same_elements(&s->sp.uses[u], store))
                                        return sched_unfit(s, "an input that is updated in place is read by other tiles too");
                        }
                }
        }
        return 0;
}

int sched_part_init(struct sched *s) {
        if (!s->soc->data_copy_pad)
                return sched_unfit(s, "this SoC has no padded copies: tails would not be exact");
        if (sched_is_scan(s))
                return sched_scan_init(s);
        int r = check_nodes(s);
        if (!r)
                r = find_space(s);
        if (!r)
                r = find_reductions(s);
        return r ? r : check_in_place(s);
}

static bool stores_nothing(const struct sched *s) {
        if (s->scan)
                return s->scan->empty;
        for (uint32_t i = 0; i < s->n_stores; i++)
                if (s->sp.uses[s->sp.first_store + i].base != AF_NONE)
                        return false;
        return true;
}

/* The workspace is an argument only where there are regions. */
static void set_workspace(struct sched *s) {
        s->n_args = s->n_pointers + (s->n_regions ? 1 : 0);
}

struct af_karg sched_workspace(const struct af_region *regions, uint32_t n) {
        /* never nothing, also where all regions are empty: the pointer is an argument, and has memory */
        uint64_t bytes = AF_MAX(AF_ALIGN_UP(regions[n - 1].offset + regions[n - 1].bytes, (uint64_t)REGION_ALIGN), (uint64_t)REGION_ALIGN);
        return (struct af_karg){
                .kind = AF_KARG_WORKSPACE, .dtype = AF_DTYPE_UINT8, .value = AF_NONE, .workspace_bytes = bytes, .range_end = bytes};
}

/* Whether something is read again for each element of axis a, that a tile over a and the inner axis would read once. */
static bool reuses(const struct sched *s, uint32_t a) {
        uint32_t tile = (s->sp.row == AF_NONE ? 0 : 1u << s->sp.row) | 1u << s->sp.inner;
        for (uint32_t u = 0; u < s->sp.first_store; u++) {
                const struct af_use *use = &s->sp.uses[u];
                if (use->base_kind == AF_BASE_INPUT && !use->gathers && use->vary & tile && !(use->vary >> a & 1))
                        return true;
        }
        return false;
}

/* A pass with the rows that its space gives it, or other ones where more of what is read stays. */
static int tile_pass(struct sched *s, const struct pass *p, struct af_phase *ret) {
        if (p->kind == PASS_BIN || p->kind == PASS_GROUP) {
                sched_bins_phase(s, p, ret);
                return 0;
        }
        int r = sched_tile(s, p, ret);
        if (r || p->kind != PASS_ELEMENTWISE || p->binned || s->sp.raw || p->whole || p->row == AF_NONE)
                return r;
        for (uint32_t a = 0; a < p->n_axes; a++) {
                struct pass other = *p;
                struct af_phase phase;
                if (a == p->row || a == p->inner || !reuses(s, a))
                        continue;
                other.row = a;
                r = sched_tile(s, &other, &phase);
                if (r < 0)
                        return r;
                if (!r && phase.cycles < ret->cycles)
                        *ret = phase;
        }
        return 0;
}

/* Tiles the passes of one plan. */
static int build_plan(struct sched *s, const struct pass *passes, uint32_t n, struct part_plan *ret) {
        *ret = (struct part_plan){.n_phases = n};
        ret->phases = af_arena_calloc(s->arena, n, sizeof(*ret->phases));
        if (!ret->phases)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++) {
                struct af_phase *ph = &ret->phases[i];
                bool started = s->started;
                s->started |= i > 0;
                int r = tile_pass(s, &passes[i], ph);
                s->started = started;
                if (r)
                        return r;
                ph->sync_before = i > 0;
                ret->bytes += ph->hbm_bytes;
                ret->cycles += ph->cycles + (i ? (uint64_t)s->soc->sync_all_cycles : 0);
        }
        return 0;
}

/* What does not fit with lines as they lie in memory may fit with rows that are copied before. */
static bool again_with_rows(struct sched *s, int *r) {
        if (*r != AF_SCHEDULE_E_UNFIT || s->packing != AF_PACK_NEEDED || !s->sp.raw)
                return false;
        s->packing = AF_PACK_ROWS;
        s->n_reductions = s->n_real = 0;
        *r = sched_part_init(s);
        return !*r;
}

static uint32_t n_choices(const struct sched *s) {
        return s->n_real ? SCHED_CHOICES : 1;
}

/* The passes of a choice; *ret_n 0: it says nothing new. 0, -ENOMEM, UNFIT. */
static int plan_choice(struct sched *s, uint32_t choice, struct pass *passes, uint32_t *ret_n) {
        int r = s->scan ? 0 : sched_sides(s, choice);
        if (s->scan)
                sched_scan_plan(s, &passes[(*ret_n = 1) - 1]);
        else if (!r)
                r = sched_plan(s, choice, passes, ret_n);
        set_workspace(s);
        return r;
}

static int keep_plan(struct sched *s, const struct part_plan *plan, struct part_plan *ret) {
        *ret = *plan;
        ret->n_regions = s->n_regions;
        ret->regions = af_arena_memdup(s->arena, s->regions, s->n_regions * sizeof(*s->regions));
        return s->n_regions && !ret->regions ? -ENOMEM : 0;
}

/* The plan without reductions across tiles, its rows in the order of an index: instead of *ret where that is better. 0 or -ENOMEM. */
static int try_bins(struct sched *s, struct pass *passes, struct part_plan *ret) {
        const char *why = *s->why;
        struct part_plan plan;
        uint32_t n;
        int r = sched_bins_find(s, &s->bins);
        s->binned = !r;
        if (!r)
                r = plan_choice(s, CHOICE_RESIDENT, passes, &n);
        if (!r)
                r = build_plan(s, passes, n, &plan);
        s->binned = false;
        *s->why = why;
        if (r)
                return AF_MIN(r, 0);
        return sched_bins_better(plan.cycles, plan.bytes, ret->cycles, ret->bytes) ? keep_plan(s, &plan, ret) : 0;
}

static int build_part(struct sched *s, struct part_plan *ret) {
        AF_CLEANUP(af_freep) struct pass *passes = calloc(MAX_PASSES, sizeof(*passes));
        bool found = false;
        if (!passes)
                return -ENOMEM;
        *ret = (struct part_plan){0};
        if (stores_nothing(s))
                return 0;
        for (uint32_t choice = 0; choice < n_choices(s); choice++) {
                struct part_plan plan;
                uint32_t n;
                int r = plan_choice(s, choice, passes, &n);
                if (!r && !n)
                        continue;
                if (!r)
                        r = build_plan(s, passes, n, &plan);
                if (r < 0)
                        return r;
                if (r || (found && !sched_better(plan.cycles, plan.bytes, ret->cycles, ret->bytes)))
                        continue;
                r = keep_plan(s, &plan, ret);
                if (r)
                        return r;
                found = true;
        }
        return found ? try_bins(s, passes, ret) : AF_SCHEDULE_E_UNFIT;
}

int sched_part_build(struct sched *s, struct part_plan *ret) {
        int r = build_part(s, ret);
        return again_with_rows(s, &r) ? build_part(s, ret) : r;
}

static int check_part(struct sched *s) {
        AF_CLEANUP(af_freep) struct pass *passes = calloc(MAX_PASSES, sizeof(*passes));
        uint32_t n = 0;
        if (!passes)
                return -ENOMEM;
        if (stores_nothing(s))
                return 0;
        for (uint32_t choice = 0; choice < n_choices(s); choice++) {
                int r = plan_choice(s, choice, passes, &n);
                if (!r && !n)
                        continue;
                for (uint32_t i = 0; !r && i < n; i++)
                        r = sched_least(s, &passes[i]);
                if (r <= 0)
                        return r;
        }
        return AF_SCHEDULE_E_UNFIT;
}

int sched_part_check(struct sched *s) {
        int r = check_part(s);
        return again_with_rows(s, &r) ? check_part(s) : r;
}
