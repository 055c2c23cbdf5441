/* SPDX-License-Identifier: Apache-2.0 */
/* Entry points: collects the facts of a group, tries the plans, keeps the cheapest. */
#include <errno.h>
#include <string.h>

#include "compiler/schedule/sched.h"

#define REGION_ALIGN 512u
#define SYNC_CYCLES  1500u /* all cores meet */

int sched_unfit(struct sched *s, const char *why) {
        *s->why = why;
        return AF_SCHEDULE_E_UNFIT;
}

const struct reduction *sched_cross(const struct sched *s, uint32_t position) {
        uint32_t r = s->reduction_of[position];
        return r != AF_NONE && s->reductions[r].cross ? &s->reductions[r] : NULL;
}

bool sched_ordered(const struct reduction *r) {
        return r->plan.acc == AF_DTYPE_FLOAT32 && (r->plan.combine == AF_COMBINE_ADD || r->plan.combine == AF_COMBINE_MUL);
}

int sched_add_region(struct sched *s, enum af_dtype dtype, int64_t elements, uint32_t *ret_region) {
        int r = af_arena_grow(s->arena, &s->regions, &s->cap_regions, s->n_regions + 1, sizeof(*s->regions));
        if (r)
                return r;
        uint64_t at = 0;
        if (s->n_regions) {
                const struct af_region *last = &s->regions[s->n_regions - 1];
                at = AF_ALIGN_UP(last->offset + last->bytes, REGION_ALIGN);
        }
        s->regions[s->n_regions] = (struct af_region){dtype, at, (uint64_t)elements * af_dtype_size(dtype)};
        *ret_region = s->n_regions++;
        return 0;
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
                if (cls == AF_CLASS_GATHER || cls == AF_CLASS_OPAQUE) {
                        const char *why = af_arena_printf(s->arena, "no template for op class %s", af_op_class_name(cls));
                        return why ? sched_unfit(s, why) : -ENOMEM;
                }
                for (uint32_t k = 0; k < n->n_in; k++) {
                        uint64_t bits;
                        int r = af_value_scalar(s->g, n->in[k], &bits) ? 0 : check_dtype(s, s->g->values[n->in[k]].dtype);
                        if (r)
                                return r;
                }
                int r = check_dtype(s, s->g->values[n->out[0]].dtype);
                if (r)
                        return r;
        }
        return 0;
}

static uint64_t reduced_count(const struct sched *s, uint32_t i) {
        const struct af_node *n = &s->g->nodes[s->m.nodes[i]];
        int64_t in[AF_LIMIT_RANK] = {0};
        const struct af_attr *axes = af_node_attr(n, AF_ATTR_AXES);
        uint64_t count = 1;
        if (!af_value_static_dims(s->g, n->in[0], in))
                return 0;
        for (uint32_t d = 0; !axes && d < s->g->values[n->in[0]].rank; d++)
                count *= (uint64_t)in[d];
        for (uint32_t k = 0; axes && k < axes->n; k++)
                count *= (uint64_t)in[axes->ints[k]];
        return count;
}

static int add_reduction(struct sched *s, uint32_t i) {
        const struct af_node *n = &s->g->nodes[s->m.nodes[i]];
        struct reduction *r = &s->reductions[s->n_reductions];
        const char *reason = "no program";
        *r = (struct reduction){.node = i, .real = !s->sp.unit_reduce[i] && !s->sp.empty_reduce[i], .reduced = s->sp.node_reduced[i]};
        r->axes = r->real ? s->sp.uses[s->sp.first_use[i]].axes : 0;
        if (af_expand_reduce(n->op, s->g->values[n->in[0]].dtype, s->g->values[n->out[0]].dtype, reduced_count(s, i), &r->plan, &reason))
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
                n += c != AF_CLASS_VIEW && c != AF_CLASS_BROADCAST;
        }
        return n <= 1;
}

/* The common axes: first as if an input were one value to all its readers, then use by use, then with dense copies for a node by itself. */
static int find_space(struct sched *s) {
        int r = af_space_build(s->arena, &s->m, s->stores, s->n_stores, false, true, &s->sp, s->why);
        const char *why = *s->why;
        if (r == AF_SCHEDULE_E_UNFIT)
                r = af_space_build(s->arena, &s->m, s->stores, s->n_stores, false, false, &s->sp, s->why);
        if (r == AF_SCHEDULE_E_UNFIT && single(&s->m))
                r = af_space_build(s->arena, &s->m, s->stores, s->n_stores, true, false, &s->sp, s->why);
        *s->why = r > 0 ? why : *s->why;
        return r;
}

static void set_range(const struct sched *s, struct af_karg *a) {
        int64_t dims[AF_LIMIT_RANK], strides[AF_LIMIT_RANK], lo = 0, hi = 0;
        const struct af_value *v = &s->g->values[a->value];
        if (af_value_count(s->g, a->value) <= 0 || !af_value_static_dims(s->g, a->value, dims) ||
            !af_value_static_strides(s->g, a->value, strides))
                return;
        if (v->kind == AF_VALUE_INPUT)
                af_expr_is_const(&s->g->exprs, s->g->inputs[v->index].offset, &lo);
        hi = lo;
        for (uint32_t d = 0; d < v->rank; d++) {
                int64_t step = (dims[d] - 1) * strides[d];
                lo += AF_MIN(step, 0);
                hi += AF_MAX(step, 0);
        }
        a->range_begin = (uint64_t)lo * af_dtype_size(v->dtype);
        a->range_end = (uint64_t)(hi + 1) * af_dtype_size(v->dtype);
}

static int add_arg(struct sched *s, enum af_karg_kind kind, uint32_t value) {
        if (s->n_args + 1 >= AF_KERNEL_MAX_ARGS)
                return sched_unfit(s, "too many inputs and outputs");
        s->args[s->n_args] = (struct af_karg){.kind = kind, .value = value, .dtype = s->g->values[value].dtype};
        set_range(s, &s->args[s->n_args++]);
        return 0;
}

/* Whether tiles may write over this input: each element is read by the tile that writes it and by no other. */
static bool same_elements(const struct af_use *load, const struct af_use *store) {
        return !load->pack && memcmp(load->strides, store->strides, sizeof(load->strides)) == 0;
}

/* An output that takes an input's memory: whoever reads that memory here reads just what its tile writes. */
static int check_in_place(struct sched *s) {
        for (uint32_t o = 0; o < s->g->n_outputs; o++) {
                const struct af_graph_output *out = &s->g->outputs[o];
                for (uint32_t i = 0; i < s->n_stores && out->alias_of != AF_NONE; i++) {
                        const struct af_use *store = &s->sp.uses[s->sp.first_store + i];
                        if (store->value != out->value || store->base == AF_NONE || store->pack) /* spread out when all has been read */
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

static int init(struct sched *s, const uint32_t *inputs, uint32_t n_inputs) {
        s->args = af_arena_calloc(s->arena, AF_KERNEL_MAX_ARGS, sizeof(*s->args));
        s->workspace_arg = AF_NONE;
        if (!s->args)
                return -ENOMEM;
        if (!s->soc->data_copy_pad)
                return sched_unfit(s, "this SoC has no padded copies: tails would not be exact");
        int r = check_nodes(s);
        for (uint32_t i = 0; !r && i < n_inputs; i++)
                r = add_arg(s, AF_KARG_INPUT, inputs[i]);
        for (uint32_t i = 0; !r && i < s->n_stores; i++)
                r = add_arg(s, AF_KARG_OUTPUT, s->stores[i]);
        if (!r)
                r = find_space(s);
        if (!r)
                r = find_reductions(s);
        return r ? r : check_in_place(s);
}

static bool stores_nothing(const struct sched *s) {
        for (uint32_t i = 0; i < s->n_stores; i++)
                if (s->sp.uses[s->sp.first_store + i].base != AF_NONE)
                        return false;
        return true;
}

/* The workspace is an argument only where there are regions. */
static void set_workspace(struct sched *s, uint32_t n_base_args) {
        s->n_args = n_base_args + (s->n_regions ? 1 : 0);
        s->workspace_arg = s->n_regions ? n_base_args : AF_NONE;
        if (!s->n_regions)
                return;
        const struct af_region *last = &s->regions[s->n_regions - 1];
        uint64_t bytes = AF_ALIGN_UP(last->offset + last->bytes, REGION_ALIGN);
        s->args[n_base_args] = (struct af_karg){
                .kind = AF_KARG_WORKSPACE, .dtype = AF_DTYPE_UINT8, .value = AF_NONE, .workspace_bytes = bytes, .range_end = bytes};
}

static int build_plan(struct sched *s, const struct pass *passes, uint32_t n, struct af_kernel *k) {
        uint64_t most = 0;
        *k = (struct af_kernel){.g = s->g, .block_dim = 1, .buffers = 1};
        k->phases = af_arena_calloc(s->arena, n, sizeof(*k->phases));
        if (!k->phases)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++) {
                struct af_phase *ph = &k->phases[i];
                int r = sched_tile(s, &passes[i], ph);
                if (r)
                        return r;
                k->block_dim = AF_MAX(k->block_dim, sched_blocks(s, ph));
                k->hbm_bytes += ph->hbm_bytes;
                k->modelled_cycles += ph->cycles + (i ? SYNC_CYCLES : 0);
                uint64_t use = (uint64_t)ph->buffers * (ph->load_bytes + ph->store_bytes) + ph->calc_bytes + ph->resident_bytes;
                if (use <= most)
                        continue;
                most = use;
                k->buffers = ph->buffers;
                k->load_bytes = ph->load_bytes;
                k->store_bytes = ph->store_bytes;
                k->calc_bytes = ph->calc_bytes;
                k->resident_bytes = ph->resident_bytes;
        }
        k->n_phases = n;
        k->needs_sync_all = n > 1;
        k->args = s->args;
        k->n_args = s->n_args;
        k->n_regions = s->n_regions;
        k->workspace_bytes = s->workspace_arg == AF_NONE ? 0 : s->args[s->workspace_arg].workspace_bytes;
        return 0;
}

/* A plan's regions and arguments, as they stand while the next plan is tried. */
static int keep(struct sched *s, struct af_kernel *k) {
        k->regions = af_arena_memdup(s->arena, s->regions, s->n_regions * sizeof(*s->regions));
        k->args = af_arena_memdup(s->arena, s->args, s->n_args * sizeof(*s->args));
        return k->regions && k->args ? 0 : -ENOMEM;
}

static int build(struct sched *s, struct af_kernel *best) {
        struct pass *passes = af_arena_calloc(s->arena, MAX_PASSES, sizeof(*passes));
        uint32_t n_base = s->n_args, n;
        bool found = false;
        if (!passes)
                return -ENOMEM;
        for (uint32_t choice = 0; choice < (s->n_real ? SCHED_CHOICES : 1); choice++) {
                struct af_kernel k;
                int r = sched_sides(s, choice);
                if (!r)
                        r = sched_plan(s, choice, passes, &n);
                if (!r && (!n || stores_nothing(s)))
                        continue;
                set_workspace(s, n_base);
                if (!r)
                        r = build_plan(s, passes, n, &k);
                if (r < 0)
                        return r;
                if (r || (found && k.modelled_cycles >= best->modelled_cycles))
                        continue;
                r = keep(s, &k);
                if (r)
                        return r;
                *best = k;
                found = true;
        }
        if (found)
                return 0;
        if (!stores_nothing(s))
                return AF_SCHEDULE_E_UNFIT;
        *best = (struct af_kernel){.g = s->g, .block_dim = 1, .buffers = 1, .args = s->args, .n_args = n_base};
        return 0;
}

/* init, then the first plan that can be lowered and fits with its smallest tile. */
int sched_check(struct sched *s, const uint32_t *inputs, uint32_t n_inputs) {
        struct pass *passes = af_arena_calloc(s->arena, MAX_PASSES, sizeof(*passes));
        uint32_t n = 0;
        if (!passes)
                return -ENOMEM;
        int r = init(s, inputs, n_inputs);
        uint32_t n_base = s->n_args;
        if (r || stores_nothing(s))
                return r;
        for (uint32_t choice = 0; choice < (s->n_real ? SCHED_CHOICES : 1); choice++) {
                r = sched_sides(s, choice);
                if (!r)
                        r = sched_plan(s, choice, passes, &n);
                if (!r && !n)
                        continue;
                set_workspace(s, n_base);
                for (uint32_t i = 0; !r && i < n; i++)
                        r = sched_least(s, &passes[i]);
                if (r <= 0)
                        return r;
        }
        return AF_SCHEDULE_E_UNFIT;
}

int af_schedule_build(const struct af_graph *g, const struct af_group *group, const struct af_soc *soc, struct af_kernel **ret_kernel,
                      const char **ret_why) {
        struct sched *s = af_arena_alloc(g->arena, sizeof(*s));
        struct af_kernel *k = af_arena_alloc(g->arena, sizeof(*k));
        if (!s || !k)
                return -ENOMEM;
        *s = (struct sched){.g = g, .soc = soc, .arena = g->arena, .why = ret_why, .stores = group->outputs, .n_stores = group->n_outputs};
        af_arena_init(&s->scratch, 0);
        int r = af_members_init(&s->m, s->arena, g, group->nodes, group->n_nodes);
        if (!r)
                r = init(s, group->inputs, group->n_inputs);
        if (!r)
                r = build(s, k);
        af_arena_deinit(&s->scratch);
        if (r)
                return r;
        k->group = group;
        k->hbm_bytes = 0;
        for (uint32_t i = 0; i < k->n_phases; i++) {
                sched_count_bytes(&k->phases[i], k->block_dim);
                k->hbm_bytes += k->phases[i].hbm_bytes;
        }
        *ret_kernel = k;
        return 0;
}
