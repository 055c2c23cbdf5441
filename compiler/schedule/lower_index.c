/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Indices along an axis: an access without memory, whose position is the value; rows and columns are made apart and added up. And gathers:
 * memory at places that an index tells, read by the scalar unit.
 */
#include <errno.h>
#include <string.h>

#include "compiler/schedule/lower.h"

/* The int32 values of one access at the hold that its axes have; of both tile axes only where the other has no stride. */
static int index_line(struct lower *l, const struct af_access *access, uint32_t *ret) {
        uint32_t axes = 0;
        for (uint32_t a = 0; a < l->phase->n_axes; a++)
                axes |= access->strides[a] ? 1u << a : 0;
        int r = lower_value(l, AF_DTYPE_INT32, lower_hold(l, axes), axes, ret);
        return r ? r
                 : lower_emit(l, (struct af_kstmt){
                                         .kind = AF_KSTMT_INDEX, .dst = *ret, .src = {AF_NONE, AF_NONE, AF_NONE}, .access = *access});
}

static int index_tile(struct lower *l, const struct af_access *access, uint32_t *ret) {
        struct af_access along = {.arg = AF_NONE}, across = *access;
        struct af_prim_ins add = {.prim = AF_PRIM_ADD, .dtype = AF_DTYPE_INT32, .to = AF_DTYPE_INT32};
        uint32_t x, y, axes = 0;
        if (l->row == AF_NONE || l->inner == AF_NONE || !access->strides[l->row] || !access->strides[l->inner])
                return index_line(l, access, ret);
        along.strides[l->inner] = access->strides[l->inner];
        along.strides_x[l->inner] = access->strides_x[l->inner];
        across.strides[l->inner] = 0;
        across.strides_x[l->inner] = 0;
        int r = index_line(l, &along, &x);
        if (!r)
                r = index_line(l, &across, &y);
        if (!r)
                r = lower_expand(l, x, AF_HOLD_FULL, &x);
        if (!r)
                r = lower_expand(l, y, AF_HOLD_FULL, &y);
        for (uint32_t a = 0; a < l->phase->n_axes; a++)
                axes |= access->strides[a] ? 1u << a : 0;
        return r ? r : lower_prim(l, add, AF_HOLD_FULL, axes, x, y, AF_NONE, ret);
}

static int with_scalar(struct lower *l, enum af_prim prim, double value, uint32_t *v) {
        struct af_prim_ins ins = {.prim = prim, .dtype = AF_DTYPE_FLOAT32, .to = AF_DTYPE_FLOAT32};
        float f = (float)value;
        uint32_t bits;
        memcpy(&bits, &f, sizeof(bits));
        ins.imm = bits;
        return lower_prim(l, ins, l->phase->values[*v].hold, l->phase->values[*v].axes, *v, AF_NONE, AF_NONE, v);
}

/* As the node cast would. */
static int convert(struct lower *l, enum af_dtype from, enum af_dtype to, uint32_t v, uint32_t *ret) {
        struct af_expand_operand desc = {.dtype = from};
        struct af_expand_attrs attrs = {0};
        const char *reason = "no program";
        *ret = v;
        if (from == to)
                return 0;
        if (af_expand(AF_OP_CAST, &desc, 1, to, &attrs, &l->s->prog, &reason))
                return sched_unfit(l->s, reason);
        return lower_program(l, &l->s->prog, &v, l->phase->values[v].hold, l->phase->values[v].axes, ret);
}

static double attr_float(const struct af_node *n, enum af_attr_key key) {
        const struct af_attr *a = af_node_attr(n, key);
        return a->is_int ? (double)(float)a->i : a->f;
}

int lower_iota(struct lower *l, uint32_t i) {
        const struct sched *s = l->s;
        const struct af_node *n = &s->g->nodes[s->m.nodes[i]];
        enum af_dtype d = s->g->values[n->out[0]].dtype, made = AF_DTYPE_INT32;
        struct af_access access;
        uint32_t v;
        int r = lower_access(l, &s->sp.uses[s->sp.first_use[i]], AF_NONE, &access);
        if (!r)
                r = index_tile(l, &access, &v);
        if (!r && af_dtype_size(d) == 8) /* nothing expands 64 bits */
                r = lower_expand(l, v, lower_hold(l, lower_axes_of(l, s->sp.node_axes[i])), &v);
        if (!r && af_dtype_kind(d) == 'f') {
                made = AF_DTYPE_FLOAT32;
                r = lower_cast(l, v, AF_DTYPE_INT32, made, AF_ROUND_RINT, &v);
                if (!r)
                        r = with_scalar(l, AF_PRIM_MULS, attr_float(n, AF_ATTR_STEP), &v);
                if (!r)
                        r = with_scalar(l, AF_PRIM_ADDS, attr_float(n, AF_ATTR_START), &v);
        }
        return r ? r : convert(l, made, d, v, &l->node_value[i]);
}

/* Whether each value of the index gives a run of contiguous elements. */
static bool is_run(const struct lower *l, enum af_hold hold, const struct af_access *access, uint32_t index_axes) {
        uint32_t along = hold == AF_HOLD_COLUMN ? l->row : hold == AF_HOLD_ONE ? AF_NONE : l->inner;
        return along == AF_NONE || (access->strides[along] == 1 && !access->strides_x[along] && !(index_axes >> along & 1));
}

int lower_entries(struct lower *l, uint32_t *ret) {
        struct af_access access = {.arg = l->s->n_args + l->s->bins.entries};
        int r = 0;
        if (l->entries == AF_NONE) {
                access.strides[l->row] = 1;
                r = lower_value(l, AF_DTYPE_INT64, AF_HOLD_COLUMN, 1u << l->row, &l->entries);
                if (!r)
                        r = lower_emit(
                                l, (struct af_kstmt){
                                           .kind = AF_KSTMT_LOAD, .dst = l->entries, .src = {AF_NONE, AF_NONE, AF_NONE}, .access = access});
        }
        *ret = l->entries;
        return r;
}

/* Whether this index comes with the loads of the stage. */
static bool is_loaded(const struct lower *l, uint32_t index) {
        return l->aux[index].loaded && !l->aux[index].hoisted && l->phase->values[index].stage == l->stage;
}

int lower_load_binned(struct lower *l, enum af_dtype d, const struct af_access *access, uint32_t *ret) {
        struct af_kstmt fetch = {.kind = AF_KSTMT_FETCH, .src = {AF_NONE, AF_NONE, AF_NONE}, .access = *access};
        uint32_t axes = 0;
        if (access->strides_x[l->row])
                return sched_unfit(l->s, "rows in an order of their own whose step depends on symbols");
        for (uint32_t a = 0; a < l->phase->n_axes; a++)
                axes |= access->strides[a] ? 1u << a : 0;
        enum af_hold hold = lower_hold(l, axes);
        fetch.pick = (struct af_pick){.stride = access->strides[l->row], .extent = l->s->bins.n, .word = AF_INDEX_PLACE};
        fetch.access.strides[l->row] = 0;
        fetch.pick.runs = is_run(l, hold, &fetch.access, 1u << l->row);
        if (!fetch.pick.runs && (hold == AF_HOLD_FULL || access->arg >= l->s->n_pointers))
                return sched_unfit(l->s, "rows in an order of their own without contiguous elements");
        int r = lower_entries(l, &fetch.src[0]);
        fetch.pick.queued = fetch.pick.runs;
        const struct stmt_list *list = &l->lists[l->stage][fetch.pick.queued ? 0 : 1];
        for (uint32_t i = 0; !r && i < list->n; i++) {
                const struct af_kstmt *s = &list->items[i];
                if (s->kind == AF_KSTMT_FETCH && s->src[0] == fetch.src[0] && s->pick.stride == fetch.pick.stride &&
                    lower_same_access(&s->access, &fetch.access)) {
                        *ret = s->dst;
                        return 0;
                }
        }
        if (!r)
                r = lower_value(l, d == AF_DTYPE_BOOL ? AF_DTYPE_UINT8 : d, hold, axes, &fetch.dst);
        *ret = fetch.dst;
        return r ? r : lower_emit(l, fetch);
}

static struct af_pick pick_of(const struct af_graph *g, const struct af_use *u) {
        return (struct af_pick){.stride = af_size_hint(g, u->gather_stride),
                                .extent = af_size_hint(g, u->gather_extent),
                                .stride_x = af_size_x(u->gather_stride),
                                .extent_x = af_size_x(u->gather_extent)};
}

int lower_gather(struct lower *l, uint32_t i) {
        const struct sched *s = l->s;
        uint32_t first = s->sp.first_use[i], index, axes = 0;
        const struct af_use *u = &s->sp.uses[first];
        enum af_dtype d = s->g->values[u->base].dtype;
        struct af_kstmt fetch = {.kind = AF_KSTMT_FETCH, .pick = pick_of(s->g, u)};
        fetch.pick.once = l->p->binned && sched_bins_index(s, &s->sp.uses[first + 1], u->gather_extent);
        int r = fetch.pick.once ? lower_entries(l, &index) : lower_use(l, first + 1, &index);
        if (r)
                return r;
        r = lower_access(l, u, sched_input_arg(s, u->base), &fetch.access);
        if (r)
                return r;
        for (uint32_t a = 0; a < l->phase->n_axes; a++)
                axes |= fetch.access.strides[a] ? 1u << a : 0;
        axes |= l->phase->values[index].axes;
        enum af_hold hold = lower_hold(l, axes);
        fetch.pick.runs = is_run(l, hold, &fetch.access, l->phase->values[index].axes);
        fetch.pick.word = fetch.pick.once ? AF_INDEX_ROW : AF_INDEX_ITSELF;
        fetch.pick.distinct = fetch.pick.once ? sched_bins_distinct(s->bins.extent, s->bins.n) : 0;
        fetch.pick.queued = fetch.pick.runs && is_loaded(l, index);
        fetch.pick.once &= fetch.pick.queued && l->row != AF_NONE && !fetch.access.strides[l->row];
        if (!fetch.pick.runs && fetch.access.arg >= s->n_pointers)
                return sched_unfit(l->s, "a gather of elements from the workspace"); /* the scalar unit may have older ones in its cache */
        r = lower_value(l, d == AF_DTYPE_BOOL ? AF_DTYPE_UINT8 : d, hold, axes, &fetch.dst);
        fetch.src[0] = index;
        fetch.src[1] = fetch.src[2] = AF_NONE;
        l->node_value[i] = fetch.dst;
        if (!r && fetch.pick.once)
                r = lower_value(l, l->phase->values[fetch.dst].dtype, AF_HOLD_ROW, 1u << l->inner, &fetch.src[1]);
        return r ? r : lower_emit(l, fetch);
}
