/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes, outputs and the whole of a random fragment. */
#include "tests/lib/random_maker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIES 40u

static struct random_value *make_elementwise(struct random_maker *m, enum af_op op) {
        const struct af_op_info *info = af_op_info(op);
        struct random_value *in[3] = {NULL};
        struct af_attr attrs[2];
        uint32_t n_attrs = 0;

        if (op == AF_OP_WHERE) {
                in[0] = random_pick_of(m, AF_DTYPE_BIT(AF_DTYPE_BOOL));
                in[1] = in[0] ? random_partner(m, in[0], random_dtype(m)) : NULL;
                in[2] = in[1] ? random_partner(m, in[1], in[1]->dtype) : NULL;
                return in[2] ? random_node(m, op, in, 3, NULL, 0, 0) : NULL;
        }
        in[0] = random_pick_of(m, info->dtypes);
        if (!in[0])
                return NULL;
        if (info->min_inputs == 2) {
                in[1] = random_partner(m, in[0], in[0]->dtype);
                if (in[1] && random_one_in(m, 2)) {
                        struct random_value *t = in[0];
                        in[0] = in[1];
                        in[1] = t;
                }
                if (!in[1])
                        return NULL;
        }
        if (op == AF_OP_GELU && random_one_in(m, 2))
                attrs[n_attrs++] = (struct af_attr){.key = AF_ATTR_APPROXIMATE, .s = "tanh"};
        if (op == AF_OP_LEAKY_RELU && random_one_in(m, 2))
                attrs[n_attrs++] = (struct af_attr){.key = AF_ATTR_ALPHA, .f = 0.2};
        if (op == AF_OP_CLIP && !random_one_in(m, 4))
                attrs[n_attrs++] = (struct af_attr){.key = AF_ATTR_MIN, .is_int = true, .i = (int64_t)random_below(m, 8) - 6, .f = 0};
        if (op == AF_OP_CLIP && !random_one_in(m, 4))
                attrs[n_attrs++] = (struct af_attr){.key = AF_ATTR_MAX, .is_int = true, .i = (int64_t)random_below(m, 8) - 1, .f = 0};
        for (uint32_t i = 0; i < n_attrs; i++)
                if (attrs[i].is_int)
                        attrs[i].f = (double)attrs[i].i;
        return random_node(m, op, in, info->min_inputs, attrs, n_attrs, random_dtype(m));
}

static struct random_value *make_reduce(struct random_maker *m, enum af_op op) {
        struct random_value *v = random_pick_of(m, af_op_info(op)->dtypes);
        struct af_attr attrs[2];
        int64_t axes[AF_LIMIT_RANK];
        uint32_t n_attrs = 0, n_axes = 0;

        if (!v || v->scalar)
                return NULL;
        for (uint32_t i = 0; i < v->rank; i++)
                if (random_one_in(m, 2))
                        axes[n_axes++] = random_one_in(m, 2) ? (int64_t)i : (int64_t)i - v->rank;
        if (n_axes > 0)
                attrs[n_attrs++] = (struct af_attr){.key = AF_ATTR_AXES, .ints = axes, .n = n_axes};
        if (random_one_in(m, 2))
                attrs[n_attrs++] = (struct af_attr){.key = AF_ATTR_KEEPDIMS, .i = 1};
        enum af_dtype wide = random_one_in(m, 2) && (m->o.dtypes & AF_DTYPE_BIT(AF_DTYPE_INT64)) ? AF_DTYPE_INT64 : AF_DTYPE_INT32;
        struct random_value *in[] = {v};
        return random_node(m, op, in, 1, attrs, n_attrs, wide);
}

/* Attribute shape that op can give v. */
static uint32_t random_target(struct random_maker *m, enum af_op op, const struct random_value *v, int64_t *dims) {
        uint32_t rank = v->rank;

        if (op == AF_OP_RESHAPE) { /* merge or split at random places */
                int64_t rest = random_count(v->dims, v->rank);
                rank = 0;
                while (rank < m->o.max_rank - 1 && rest > 1 && !random_one_in(m, 3)) {
                        static const int64_t factors[] = {1, 2, 3, 4, 5, 8, 16};
                        int64_t f = factors[random_below(m, AF_ARRAY_SIZE(factors))];
                        if (rest % f == 0) {
                                dims[rank++] = f;
                                rest /= f;
                        }
                }
                dims[rank] = random_one_in(m, 3) && rest > 0 ? -1 : rest;
                return rank + 1;
        }
        uint32_t fresh = rank < m->o.max_rank ? random_below(m, m->o.max_rank - rank + 1) : 0;
        for (uint32_t i = 0; i < fresh; i++)
                dims[i] = 1 + random_below(m, 4);
        for (uint32_t i = 0; i < rank; i++)
                dims[fresh + i] = v->dims[i] == 1 && random_one_in(m, 2) ? 1 + random_below(m, 70) : v->dims[i];
        return fresh + rank;
}

/* Attribute shape of v with the axes from a random one on as one. */
static struct af_attr flattened(struct random_maker *m, const struct random_value *v) {
        uint32_t *ids = af_arena_calloc(m->f->arena, v->rank + 1, sizeof(*ids)), keep = random_below(m, v->rank);

        if (!ids) {
                m->error = -ENOMEM;
                return (struct af_attr){.key = AF_ATTR_SHAPE};
        }
        memcpy(ids, v->ids, (keep + 1) * sizeof(*ids));
        for (uint32_t i = keep + 1; i < v->rank; i++)
                if (af_expr_binary(&m->f->exprs, AF_EXPR_MUL, ids[keep], v->ids[i], &ids[keep]) != 0)
                        m->error = -ENOMEM;
        return (struct af_attr){.key = AF_ATTR_SHAPE, .dims = ids, .n = keep + 1};
}

static struct random_value *make_view(struct random_maker *m, enum af_op op) {
        struct random_value *v = random_pick(m), *in[] = {v};
        int64_t dims[AF_LIMIT_RANK * 2];
        struct af_attr attr = {.key = AF_ATTR_SHAPE};

        if (v->scalar)
                return NULL;
        if (op == AF_OP_SQUEEZE)
                return random_node(m, op, in, 1, NULL, 0, 0);
        if (op == AF_OP_UNSQUEEZE) {
                dims[0] = (int64_t)random_below(m, v->rank + 1);
                attr = (struct af_attr){.key = AF_ATTR_AXES, .ints = dims, .n = 1};
                return v->rank < m->o.max_rank ? random_node(m, op, in, 1, &attr, 1, 0) : NULL;
        }
        if (op == AF_OP_RESHAPE && random_symbolic(m, v))
                attr = flattened(m, v);
        else
                attr = random_dims(m, AF_ATTR_SHAPE, dims, random_target(m, op, v, dims));
        return m->error ? NULL : random_node(m, op, in, 1, &attr, 1, 0);
}

static struct random_value *make_gather(struct random_maker *m) {
        struct random_value *in[2] = {random_pick(m), random_pick_of(m, AF_DTYPE_BIT(AF_DTYPE_INT32) | AF_DTYPE_BIT(AF_DTYPE_INT64))};
        struct af_attr axis = {.key = AF_ATTR_AXIS};

        if (in[0]->rank == 0 || !in[1] || in[0]->scalar)
                return NULL;
        axis.i = (int64_t)random_below(m, in[0]->rank);
        return random_node(m, AF_OP_GATHER, in, 2, &axis, 1, 0);
}

static bool is_movement(enum af_op op) {
        enum af_op_class cls = af_op_info(op)->cls;

        return cls >= AF_CLASS_TRANSPOSE && cls <= AF_CLASS_SCAN;
}

static bool allowed(const struct random_maker *m, enum af_op op) {
        if (op == AF_OP_OPAQUE || !(m->o.classes & 1u << af_op_info(op)->cls))
                return false;
        for (const enum af_op *p = m->o.ops; p && *p != AF_OP_INVALID; p++)
                if (*p == op)
                        return true;
        return m->o.ops == NULL;
}

/* An op of the whole table; with `mixed` a class first, so that what fuses is the most of the graph. */
static enum af_op random_op(struct random_maker *m) {
        uint32_t kind = random_below(m, 20);
        enum af_op op = AF_OP_ADD;

        for (unsigned i = 0; i < 1000; i++) {
                op = random_below(m, AF_N_OPS);
                enum af_op_class cls = af_op_info(op)->cls;
                bool wanted = kind < 10   ? cls <= AF_CLASS_CAST
                              : kind < 12 ? cls == AF_CLASS_REDUCE
                              : kind < 14 ? cls == AF_CLASS_VIEW || cls == AF_CLASS_BROADCAST
                              : kind < 17 ? is_movement(op) || cls == AF_CLASS_GATHER
                                          : cls == AF_CLASS_COMPOSITE;
                if (allowed(m, op) && (wanted || !m->o.mixed || i > 500))
                        break;
        }
        return op;
}

static struct random_value *make_node(struct random_maker *m) {
        enum af_op op = random_op(m);

        switch (af_op_info(op)->cls) {
        case AF_CLASS_REDUCE:
                return make_reduce(m, op);
        case AF_CLASS_BROADCAST:
        case AF_CLASS_VIEW:
                return make_view(m, op);
        case AF_CLASS_GATHER:
                return op == AF_OP_GATHER ? make_gather(m) : random_movement(m, op);
        case AF_CLASS_COMPOSITE:
                return random_composite(m, op);
        default:
                return is_movement(op) ? random_movement(m, op) : make_elementwise(m, op);
        }
}

/* Strides of an output: axes in another order, now and then with gaps; never overlapping. */
static void random_output_strides(struct random_maker *m, const struct random_value *v, struct af_fragment_output *o) {
        int64_t strides[AF_LIMIT_RANK], step = random_one_in(m, 4) ? 2 : 1;
        uint32_t order[AF_LIMIT_RANK];

        for (uint32_t i = 0; i < v->rank; i++)
                order[i] = i;
        for (uint32_t i = v->rank - 1; random_one_in(m, 2) && i > 0; i--) {
                uint32_t k = random_below(m, i + 1), t = order[i];
                order[i] = order[k];
                order[k] = t;
        }
        for (uint32_t i = v->rank; i-- > 0;) {
                strides[order[i]] = step;
                step = step * AF_MAX(v->dims[order[i]], (int64_t)1) + (random_one_in(m, 3) ? random_below(m, 9) : 0);
        }
        o->has_strides = true;
        o->n_strides = v->rank;
        if (af_fragment_dims_const(m->f, strides, v->rank, &o->strides) < 0)
                m->error = -ENOMEM;
}

/* Unread values, and now and then one that is read. */
static void add_outputs(struct random_maker *m) {
        bool taken[RANDOM_MAX_VALUES] = {false};

        for (uint32_t i = 0; i < m->n_values && !m->error; i++) {
                struct random_value *v = &m->values[i];
                struct af_fragment_output o = {.value = v->name};
                bool node = !v->input && !v->scalar;
                if (!node || !(v->users == 0 || random_one_in(m, m->o.outputs ? 2 : 10)))
                        continue;
                /* In place only where the input is read by nobody or the graph is one chain: else order may be impossible. */
                for (uint32_t k = 0; m->o.in_place && k < m->n_values && !o.alias_of; k++) {
                        struct random_value *x = &m->values[k];
                        bool fits = !random_symbolic(m, v) && x->input && !x->host && !x->strided && !taken[k] && x->users == 0 &&
                                    x->dtype == v->dtype && x->rank == v->rank;
                        if (fits && (x->rank == 0 || memcmp(x->dims, v->dims, v->rank * sizeof(*v->dims)) == 0)) {
                                o.alias_of = x->name;
                                taken[k] = true;
                        }
                }
                if (m->o.output_strides && !o.alias_of && v->rank > 0 && !random_symbolic(m, v) && random_one_in(m, 4))
                        random_output_strides(m, v, &o);
                if (af_fragment_add_output(m->f, &o, NULL) != 0)
                        m->error = -ENOMEM;
        }
        if (m->f->n_outputs == 0 && !m->error &&
            af_fragment_add_output(m->f, &(struct af_fragment_output){.value = m->values[0].name}, NULL) != 0)
                m->error = -ENOMEM;
}

static void fill_opts(struct random_maker *m, const struct af_random_opts *opts) {
        if (opts)
                m->o = *opts;
        if (m->o.n_nodes == 0)
                m->o.n_nodes = 1 + random_below(m, 12);
        if (m->o.dtypes == 0)
                m->o.dtypes = (AF_DTYPE_BIT(AF_DTYPE_FLOAT64) - 1) & ~1u;
        if (m->o.classes == 0)
                m->o.classes = (1u << AF_CLASS_GATHER) - 1;
        if (m->o.max_elements == 0)
                m->o.max_elements = 6000;
        if (m->o.max_rank == 0)
                m->o.max_rank = 4;
        m->o.max_rank = AF_MIN(m->o.max_rank, RANDOM_MAX_RANK);
        m->o.n_nodes = AF_MIN(m->o.n_nodes, RANDOM_MAX_VALUES / 4);
}

static void symbol_profile(unsigned k, struct af_random_opts *o) {
        o->n_nodes = 6;
        o->n_symbols = 1 + k % 2;
        o->max_elements = k % 2 ? 40000 : 6000;
        if (k < 2)
                return;
        o->classes = AF_RANDOM_ALL_CLASSES;
        o->mixed = true;
        o->max_rank = 3;
}

void af_random_profile(unsigned profile, struct af_random_opts *ret_opts) {
        const uint32_t cls = 1u << AF_CLASS_REDUCE | 1u << AF_CLASS_VIEW | 1u << AF_CLASS_BROADCAST;
        const uint32_t small = AF_DTYPE_BIT(AF_DTYPE_BOOL) | AF_DTYPE_BIT(AF_DTYPE_INT8) | AF_DTYPE_BIT(AF_DTYPE_UINT8) |
                               AF_DTYPE_BIT(AF_DTYPE_INT16) | AF_DTYPE_BIT(AF_DTYPE_INT32) | AF_DTYPE_BIT(AF_DTYPE_FLOAT16);
        const uint32_t movement = AF_RANDOM_ALL_CLASSES & ~(1u << AF_CLASS_COMPOSITE) & ~((1u << AF_CLASS_VIEW) - 1);
        static const struct af_random_opts defaults;
        *ret_opts = defaults;
        switch (profile) {
        case 1:
                *ret_opts = (struct af_random_opts){.n_nodes = 30, .chains = true};
                break;
        case 2:
                *ret_opts = (struct af_random_opts){.n_nodes = 12, .outputs = true, .in_place = true, .output_strides = true};
                break;
        case 3:
                *ret_opts = (struct af_random_opts){.n_nodes = 24, .n_inputs = 20};
                break;
        case 4:
                *ret_opts = (struct af_random_opts){.n_nodes = 10, .classes = cls | 1u << AF_CLASS_ELEMENTWISE, .max_elements = 40000};
                break;
        case 5:
                *ret_opts = (struct af_random_opts){.dtypes = small};
                break;
        case 6:
                *ret_opts = (struct af_random_opts){.n_nodes = 6, .max_elements = 300000, .max_rank = 2};
                break;
        case 7:
                *ret_opts = (struct af_random_opts){.n_nodes = 10, .max_rank = 7, .output_strides = true};
                break;
        case 8:
                *ret_opts = (struct af_random_opts){.classes = AF_RANDOM_ALL_CLASSES, .mixed = true};
                break;
        case 9:
                *ret_opts = (struct af_random_opts){.n_nodes = 20, .classes = AF_RANDOM_ALL_CLASSES, .mixed = true, .chains = true};
                break;
        case 10:
                *ret_opts = (struct af_random_opts){.n_nodes = 8, .classes = movement | 1u << AF_CLASS_ELEMENTWISE, .output_strides = true};
                break;
        case 11:
                *ret_opts = (struct af_random_opts){
                        .n_nodes = 5, .classes = 1u << AF_CLASS_COMPOSITE | 1u << AF_CLASS_ELEMENTWISE, .max_elements = 40000};
                break;
        default:
                if (profile >= AF_RANDOM_ALL_PROFILES)
                        symbol_profile(profile - AF_RANDOM_ALL_PROFILES, ret_opts);
                break;
        }
}

int af_random_fragment(struct af_fragment *f, struct af_arena *arena, uint64_t seed, const struct af_random_opts *opts) {
        struct random_maker *m = calloc(1, sizeof(*m));
        int r = m ? af_fragment_init(f, arena) : -ENOMEM;

        if (r != 0) {
                free(m);
                return r;
        }
        m->f = f;
        m->state = seed;
        fill_opts(m, opts);
        f->name = af_arena_printf(arena, "random_%llu", (unsigned long long)seed);
        f->soc = m->o.soc ? af_arena_strdup(arena, m->o.soc) : NULL;
        random_shape(m);
        for (uint32_t n = m->o.n_inputs ? m->o.n_inputs : 1 + random_below(m, 4); n > 0 && !m->error; n--)
                random_first_input(m);
        for (uint32_t made = 0, tries = 0; made < m->o.n_nodes && tries < TRIES * m->o.n_nodes && !m->error; tries++)
                made += make_node(m) != NULL;
        add_outputs(m);
        r = m->error ? m->error : !f->name ? -ENOMEM : 0;
        free(m);
        return r;
}
