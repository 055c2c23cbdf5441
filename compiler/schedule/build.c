/* SPDX-License-Identifier: Apache-2.0 */
/* Entry point: a group's pointers, its parts one after another, and where all cores must meet between them. */
#include <errno.h>
#include <string.h>

#include "compiler/schedule/sched.h"

static void set_range(const struct af_graph *g, struct af_karg *a) {
        int64_t dims[AF_LIMIT_RANK], strides[AF_LIMIT_RANK], lo = 0, hi = 0;
        const struct af_value *v = &g->values[a->value];
        if (af_value_count(g, a->value) <= 0 || !af_value_static_dims(g, a->value, dims) || !af_value_static_strides(g, a->value, strides))
                return;
        if (v->kind == AF_VALUE_INPUT)
                af_expr_is_const(&g->exprs, g->inputs[v->index].offset, &lo);
        hi = lo;
        for (uint32_t d = 0; d < v->rank; d++) {
                int64_t step = (dims[d] - 1) * strides[d];
                lo += AF_MIN(step, 0);
                hi += AF_MAX(step, 0);
        }
        a->range_begin = (uint64_t)lo * af_dtype_size(v->dtype);
        a->range_end = (uint64_t)(hi + 1) * af_dtype_size(v->dtype);
}

static int unfit(struct whole *w, const char *why) {
        *w->why = why;
        return AF_SCHEDULE_E_UNFIT;
}

static int add_arg(struct whole *w, enum af_karg_kind kind, uint32_t value) {
        if (w->n_pointers + 1 >= AF_KERNEL_MAX_ARGS)
                return unfit(w, "too many inputs and outputs");
        w->args[w->n_pointers] = (struct af_karg){.kind = kind, .value = value, .dtype = w->g->values[value].dtype};
        set_range(w->g, &w->args[w->n_pointers++]);
        return 0;
}

static int add_store(struct whole *w, const struct af_store *store, uint32_t place) {
        int r = af_arena_grow(w->arena, &w->stores, &w->cap_stores, w->n_stores + 1, sizeof(*w->stores));
        if (!r)
                r = af_arena_grow(w->arena, &w->store_place, &w->cap_places, w->n_stores + 1, sizeof(*w->store_place));
        if (r)
                return r;
        w->stores[w->n_stores] = *store;
        w->store_place[w->n_stores++] = place;
        return 0;
}

#define MAX_NESTED 16u /* concatenations within concatenations */

/* A stored value, or what it is put together of; a view of a concatenation has its memory. */
static int add_pieces(struct whole *w, struct af_store store, uint32_t place, unsigned depth) {
        const struct af_graph *g = w->g;
        uint32_t value = store.value, p;
        while (store.into == AF_NONE && !g->values[store.output].strides && (p = af_members_producer(&w->m, value)) != AF_NONE &&
               af_op_info(g->nodes[w->m.nodes[p]].op)->cls == AF_CLASS_VIEW)
                value = g->nodes[w->m.nodes[p]].in[0];
        p = af_members_producer(&w->m, value);
        const struct af_node *n = p == AF_NONE ? NULL : &g->nodes[w->m.nodes[p]];
        if (!n || af_op_info(n->op)->cls != AF_CLASS_CONCAT)
                return add_store(w, &store, place);
        uint32_t axis = (uint32_t)af_node_attr(n, AF_ATTR_AXIS)->i;
        if (depth == MAX_NESTED) {
                *w->why = "concatenations nested too deep";
                return AF_SCHEDULE_E_UNFIT;
        }
        store.into = store.into == AF_NONE ? value : store.into;
        for (uint32_t i = 0; i < n->n_in; i++) {
                int64_t dims[AF_LIMIT_RANK];
                af_size_dims(g, n->in[i], dims);
                store.value = n->in[i];
                int r = add_pieces(w, store, place, depth + 1);
                if (r)
                        return r;
                if (!af_size_add(g, store.start[axis], dims[axis], &store.start[axis]))
                        return unfit(w, "sizes beyond 64 bits");
        }
        return 0;
}

int sched_whole_init(struct whole *w, const uint32_t *nodes, uint32_t n_nodes, const uint32_t *inputs, uint32_t n_inputs,
                     const uint32_t *outputs, uint32_t n_outputs) {
        w->args = af_arena_calloc(w->arena, AF_KERNEL_MAX_ARGS, sizeof(*w->args));
        w->s = af_arena_calloc(w->arena, 1, sizeof(*w->s));
        if (!w->args || !w->s)
                return -ENOMEM;
        af_arena_init(&w->s->scratch, 0);
        w->outputs = outputs;
        w->n_outputs = n_outputs;
        w->n_inputs = n_inputs;
        int r = af_members_init(&w->m, w->arena, w->g, nodes, n_nodes);
        for (uint32_t i = 0; !r && i < n_inputs; i++)
                r = add_arg(w, AF_KARG_INPUT, inputs[i]);
        for (uint32_t i = 0; !r && i < n_outputs; i++)
                r = add_arg(w, AF_KARG_OUTPUT, outputs[i]);
        for (uint32_t i = 0; !r && i < n_outputs; i++)
                r = add_pieces(w, (struct af_store){.value = outputs[i], .output = outputs[i], .into = AF_NONE}, n_inputs + i, 0);
        return r;
}

int sched_open_part(struct whole *w, const struct part *p, const struct af_region *regions, uint32_t n_regions) {
        struct sched *s = w->s;
        struct af_arena scratch = s->scratch;
        *s = (struct sched){.g = w->g,
                            .soc = w->soc,
                            .arena = w->arena,
                            .exhaustive = w->exhaustive,
                            .scratch = scratch,
                            .why = w->why,
                            .stores = p->stores,
                            .store_place = p->store_place,
                            .n_stores = p->n_stores,
                            .held = p->held,
                            .n_held = p->n_held,
                            .args = w->args,
                            .n_pointers = w->n_pointers,
                            .n_args = w->n_pointers,
                            .n_regions = n_regions,
                            .n_kept_regions = n_regions};
        int r = af_arena_grow(s->arena, &s->regions, &s->cap_regions, n_regions, sizeof(*s->regions));
        if (!r && n_regions)
                memcpy(s->regions, regions, n_regions * sizeof(*regions));
        if (!r)
                r = af_members_init(&s->m, s->arena, w->g, p->nodes, p->n_nodes);
        return r ? r : sched_part_init(s);
}

static void add_phase(struct af_kernel *k, const struct sched *s, const struct af_phase *ph) {
        k->phases[k->n_phases++] = *ph;
        k->block_dim = AF_MAX(k->block_dim, ph->blocks);
        k->hbm_bytes += ph->hbm_bytes;
        k->modelled_cycles += ph->cycles + (ph->sync_before ? (uint64_t)s->soc->sync_all_cycles : 0);
        k->needs_sync_all |= ph->sync_before;
}

static int add_part(struct af_kernel *k, const struct sched *s, const struct part_plan *plan) {
        uint32_t cap = k->n_phases;
        int r = af_arena_grow(s->arena, &k->phases, &cap, k->n_phases + plan->n_phases, sizeof(*k->phases));
        for (uint32_t i = 0; !r && i < plan->n_phases; i++)
                add_phase(k, s, &plan->phases[i]);
        return r;
}

/* The parts in order; a part waits for all cores where it reads what no meeting has made sure of yet. */
static int build_parts(struct whole *w, const struct part *parts, uint32_t n, struct af_region *regions, uint32_t n_regions,
                       struct af_kernel *k) {
        uint32_t met = 0; /* what the parts below it wrote can be read */
        for (uint32_t i = 0; i < n; i++) {
                struct part_plan plan;
                int r = sched_open_part(w, &parts[i], regions, n_regions);
                w->s->started = k->n_phases > 0;
                if (!r)
                        r = sched_part_build(w->s, &plan);
                if (r)
                        return r;
                if (!plan.n_phases)
                        continue;
                if (parts[i].behind != AF_NONE && parts[i].behind >= met)
                        plan.phases[0].sync_before = true;
                for (uint32_t p = 0; p < plan.n_phases; p++)
                        met = plan.phases[p].sync_before ? i : met;
                regions = plan.regions;
                n_regions = plan.n_regions;
                r = add_part(k, w->s, &plan);
                if (r)
                        return r;
        }
        k->regions = regions;
        k->n_regions = n_regions;
        k->args = w->args;
        k->n_args = w->n_pointers;
        if (!n_regions || !k->n_phases)
                return 0;
        const struct af_region *last = &regions[n_regions - 1];
        int64_t end;
        if (!af_size_add(w->g, af_size_join((int64_t)last->offset, last->offset_x), af_size_join((int64_t)last->bytes, last->bytes_x),
                         &end))
                return unfit(w, "sizes beyond 64 bits");
        k->workspace_x = af_size_x(end);
        w->args[k->n_args++] = sched_workspace(regions, n_regions);
        k->workspace_bytes = w->args[w->n_pointers].workspace_bytes;
        return 0;
}

static int build(struct whole *w, const struct af_group *group, struct af_kernel *k) {
        struct part *parts;
        struct af_region *regions;
        uint32_t n_parts, n_regions;
        int r = sched_whole_init(w, group->nodes, group->n_nodes, group->inputs, group->n_inputs, group->outputs, group->n_outputs);
        if (!r)
                r = sched_split(w, &parts, &n_parts, &regions, &n_regions);
        return r ? r : build_parts(w, parts, n_parts, regions, n_regions, k);
}

/* Blocks where they depend on symbols: as many as some phase has tiles, at least one, at most the cores. */
static bool bound_blocks(struct af_kernel *k, const struct af_soc *soc) {
        int64_t blocks = 1;
        bool symbolic = false;
        for (uint32_t i = 0; i < k->n_phases; i++)
                symbolic |= k->phases[i].n_tiles_x != 0;
        for (uint32_t i = 0; symbolic && i < k->n_phases; i++)
                if (!af_size_max(k->g, blocks, af_size_join(k->phases[i].n_tiles, k->phases[i].n_tiles_x), &blocks))
                        return false;
        if (symbolic && !af_size_min(k->g, blocks, soc->vector_cores, &blocks))
                return false;
        k->block_dim_x = af_size_x(blocks);
        return true;
}

/* Copies n objects of one array of from's into g's arena. */
static int keep_array(const struct af_graph *g, void *p_array, uint32_t n, size_t size) {
        void *from, *copy;
        memcpy(&from, p_array, sizeof(from));
        if (!n)
                return 0;
        copy = af_arena_memdup(g->arena, from, n * size);
        memcpy(p_array, &copy, sizeof(copy));
        return copy ? 0 : -ENOMEM;
}

/* Of all that was tried in scratch the kernel alone stays. */
static int keep(const struct af_graph *g, const struct af_kernel *k, struct af_kernel **ret) {
        struct af_kernel *copy = af_arena_memdup(g->arena, k, sizeof(*k));
        int r = copy ? 0 : -ENOMEM;
        if (!r)
                r = keep_array(g, &copy->args, copy->n_args, sizeof(*copy->args));
        if (!r)
                r = keep_array(g, &copy->regions, copy->n_regions, sizeof(*copy->regions));
        if (!r)
                r = keep_array(g, &copy->phases, copy->n_phases, sizeof(*copy->phases));
        for (uint32_t i = 0; !r && i < copy->n_phases; i++) {
                struct af_phase *p = &copy->phases[i];
                r = keep_array(g, &p->values, p->n_values, sizeof(*p->values));
                if (!r)
                        r = keep_array(g, &p->stmts, p->n_stmts, sizeof(*p->stmts));
                if (!r)
                        r = keep_array(g, &p->stages, p->n_stages, sizeof(*p->stages));
                if (!r)
                        r = keep_array(g, &p->nodes, p->n_nodes, sizeof(*p->nodes));
        }
        if (!r)
                *ret = copy;
        return r;
}

static int build_group(struct whole *w, const struct af_group *group, struct af_kernel **ret_kernel) {
        af_arena_reset(w->arena);
        struct af_kernel *k = af_arena_calloc(w->arena, 1, sizeof(*k));
        if (!k)
                return -ENOMEM;
        *k = (struct af_kernel){.g = w->g, .group = group, .block_dim = 1};
        int r = build(w, group, k);
        if (!r && !bound_blocks(k, w->soc))
                r = unfit(w, "sizes beyond 64 bits");
        if (!r)
                sched_share_ub(k, w->soc);
        if (!r && k->n_phases)
                r = sched_timeline(w->s, k);
        if (w->s)
                af_arena_deinit(&w->s->scratch);
        if (!r)
                r = keep(w->g, k, ret_kernel);
        *w->why = r > 0 ? af_arena_strdup(w->g->arena, *w->why) : NULL;
        return r > 0 && !*w->why ? -ENOMEM : r;
}

int af_schedule_build(struct af_arena *scratch, const struct af_graph *g, const struct af_group *group, const struct af_soc *soc,
                      struct af_kernel **ret_kernel, const char **ret_why) {
        struct whole w = {.g = g, .soc = soc, .arena = scratch, .why = ret_why};
        return build_group(&w, group, ret_kernel);
}

int af_schedule_build_exhaustive(struct af_arena *scratch, const struct af_graph *g, const struct af_group *group, const struct af_soc *soc,
                                 struct af_kernel **ret_kernel, const char **ret_why) {
        struct whole w = {.g = g, .soc = soc, .arena = scratch, .why = ret_why, .exhaustive = true};
        return build_group(&w, group, ret_kernel);
}
