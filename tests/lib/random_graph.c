/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/random_graph.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANK   8u
#define MAX_VALUES 512u
#define TRIES      40u

struct value {
        const char *name;
        enum af_dtype dtype;
        uint32_t rank;
        int64_t dims[AF_LIMIT_RANK];
        const uint32_t *ids; /* the same as expressions */
        uint32_t users;
        bool scalar, input, host, strided;
};

struct maker {
        struct af_fragment *f;
        struct af_random_opts o;
        uint64_t state;
        struct value values[MAX_VALUES];
        uint32_t n_values;
        uint32_t shape_rank; /* the fragment's main shape */
        int64_t shape[AF_LIMIT_RANK];
        int error;
};

static uint64_t next(struct maker *m) {
        uint64_t x = m->state += 0x9e3779b97f4a7c15u;

        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
        x = (x ^ x >> 27) * 0x94d049bb133111ebu;
        return x ^ x >> 31;
}

static uint32_t below(struct maker *m, uint32_t n) {
        return (uint32_t)((next(m) >> 32) * n >> 32);
}

static bool one_in(struct maker *m, uint32_t n) {
        return below(m, n) == 0;
}

static int64_t count_of(const int64_t *dims, uint32_t rank) {
        int64_t n = 1;

        for (uint32_t i = 0; i < rank; i++)
                if (__builtin_mul_overflow(n, dims[i], &n))
                        return INT64_MAX;
        return n;
}

static enum af_dtype random_dtype(struct maker *m) {
        /* The usual ones more often. */
        static const enum af_dtype common[] = {AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT32,  AF_DTYPE_FLOAT32,
                                               AF_DTYPE_FLOAT16, AF_DTYPE_BFLOAT16, AF_DTYPE_INT32};

        for (unsigned i = 0; i < 200; i++) {
                enum af_dtype d = one_in(m, 3) ? 1 + below(m, AF_DTYPE_FLOAT32) : common[below(m, AF_ARRAY_SIZE(common))];
                if (m->o.dtypes & AF_DTYPE_BIT(d))
                        return d;
        }
        for (unsigned d = 1; d < AF_N_DTYPES; d++)
                if (m->o.dtypes & AF_DTYPE_BIT(d))
                        return d;
        return AF_DTYPE_FLOAT32;
}

static void random_shape(struct maker *m) {
        static const int64_t sizes[] = {1,  2,  3,  4,  5,  7,   8,   9,   15,   16,   17,   31,   32,
                                        33, 50, 63, 64, 65, 100, 128, 257, 1000, 1023, 1024, 1025, 4097};

        m->shape_rank = below(m, m->o.max_rank + 1);
        for (uint32_t i = 0; i < m->shape_rank; i++) {
                int64_t room = m->o.max_elements / AF_MAX(count_of(m->shape, i), (int64_t)1);
                do
                        m->shape[i] = sizes[below(m, AF_ARRAY_SIZE(sizes))];
                while (m->shape[i] > AF_MAX(room, (int64_t)1));
                if (!m->o.no_empty && one_in(m, 60))
                        m->shape[i] = 0;
        }
}

static struct value *new_value(struct maker *m, enum af_dtype d, const int64_t *dims, uint32_t rank) {
        struct value *v = &m->values[m->n_values];

        *v = (struct value){.dtype = d, .rank = rank};
        if (rank > 0)
                memcpy(v->dims, dims, rank * sizeof(*dims));
        v->name = af_arena_printf(m->f->arena, "v%u", m->n_values);
        if (!v->name || af_fragment_dims_const(m->f, v->dims, rank, &v->ids) < 0)
                m->error = -ENOMEM;
        m->n_values++;
        return v;
}

static struct af_fragment_tensor tensor_of(const struct value *v) {
        return (struct af_fragment_tensor){.name = v->name, .dtype = v->dtype, .rank = v->rank, .dims = v->ids};
}

/* Strides: row-major with gaps, transposed, or 0 along an axis. Returns whether they are stated. */
static bool random_strides(struct maker *m, struct value *v, int64_t *strides) {
        uint32_t order[AF_LIMIT_RANK];
        int64_t step = 1;

        if (m->o.contiguous_only || v->rank == 0 || !one_in(m, 3))
                return false;
        for (uint32_t i = 0; i < v->rank; i++)
                order[i] = i;
        if (one_in(m, 3))
                for (uint32_t i = v->rank - 1; i > 0; i--) {
                        uint32_t k = below(m, i + 1), t = order[i];
                        order[i] = order[k];
                        order[k] = t;
                }
        if (one_in(m, 8))
                step = 2;
        for (uint32_t i = v->rank; i-- > 0;) {
                strides[order[i]] = v->dims[order[i]] == 1 && one_in(m, 2) ? 999 : step;
                step = step * AF_MAX(v->dims[order[i]], (int64_t)1) + (one_in(m, 3) ? below(m, 9) : 0);
        }
        if (one_in(m, 6))
                strides[below(m, v->rank)] = 0;
        v->strided = true;
        return true;
}

static void add_input(struct maker *m) {
        int64_t dims[AF_LIMIT_RANK], strides[AF_LIMIT_RANK];
        uint32_t drop = one_in(m, 4) ? below(m, m->shape_rank + 1) : 0, rank = m->shape_rank - drop;
        bool host = !m->o.no_scalars && one_in(m, 20);
        struct af_fragment_input in = {0};

        if (host)
                rank = 0;
        for (uint32_t i = 0; i < rank; i++)
                dims[i] = one_in(m, 6) ? 1 : m->shape[drop + i];
        enum af_dtype d = random_dtype(m);
        if (host && one_in(m, 3))
                d = AF_DTYPE_FLOAT64;
        struct value *v = new_value(m, d, dims, rank);
        if (m->error)
                return;
        in.t = tensor_of(v);
        in.host = v->host = v->scalar = host;
        v->input = true;
        in.t.has_strides = random_strides(m, v, strides);
        int64_t offset = v->strided && one_in(m, 2) ? below(m, 40) : 0;
        if ((in.t.has_strides && af_fragment_dims_const(m->f, strides, rank, &in.t.strides) < 0) ||
            af_expr_const(&m->f->exprs, offset, &in.offset) != 0 || af_fragment_add_input(m->f, &in, NULL) != 0)
                m->error = -ENOMEM;
}

/* A scalar of dtype d (or a wider float), its bits an ordinary or a special value. */
static struct value *add_constant(struct maker *m, enum af_dtype d) {
        uint64_t bits = 0;
        struct af_tensor t = {.rank = 0, .data = &bits};

        if (m->n_values == MAX_VALUES)
                return NULL;
        if (af_dtype_kind(d) == 'f' && d != AF_DTYPE_FLOAT64 && one_in(m, 3))
                d = d == AF_DTYPE_FLOAT32 || one_in(m, 2) ? AF_DTYPE_FLOAT64 : AF_DTYPE_FLOAT32;
        struct value *v = new_value(m, d, NULL, 0);
        v->scalar = true;
        t.dtype = d;
        af_tensor_fill(&t, next(m), one_in(m, 2));
        struct af_fragment_constant c = {.t = tensor_of(v), .bytes = (const uint8_t *)&bits, .n_bytes = af_dtype_size(d)};
        if (m->error || af_fragment_add_constant(m->f, &c, NULL) != 0) {
                m->error = -ENOMEM;
                return NULL;
        }
        return v;
}

/* Adds a node where its operands fit; returns its value, or NULL. declared: dtype where the op does not give it. */
static struct value *add_node(struct maker *m, enum af_op op, struct value *const *in, uint32_t n, const struct af_attr *attrs,
                              uint32_t n_attrs, enum af_dtype declared) {
        struct af_infer_operand operands[3];
        const char *names[3];
        struct af_inferred inferred;
        int64_t dims[AF_LIMIT_RANK];

        for (uint32_t i = 0; i < n; i++) {
                operands[i] =
                        (struct af_infer_operand){.dtype = in[i]->dtype, .rank = in[i]->rank, .dims = in[i]->ids, .scalar = in[i]->scalar};
                names[i] = in[i]->name;
        }
        if (m->n_values == MAX_VALUES || m->error)
                return NULL;
        int r = af_infer(&m->f->exprs, m->f->arena, op, operands, n, attrs, n_attrs, NULL, &inferred, NULL);
        if (r != 0) {
                m->error = AF_MIN(r, 0);
                return NULL;
        }
        for (uint32_t i = 0; i < inferred.rank; i++)
                if (!af_expr_is_const(&m->f->exprs, inferred.dims[i], &dims[i]))
                        return NULL;
        if (inferred.rank > MAX_RANK || count_of(dims, inferred.rank) > m->o.max_elements)
                return NULL;
        if (inferred.dtype == AF_DTYPE_INVALID)
                inferred.dtype = declared;
        if (inferred.dtype == AF_DTYPE_FLOAT64) /* a float64 tensor would be the framework's */
                return NULL;
        struct value *v = new_value(m, inferred.dtype, dims, inferred.rank);
        if (m->error)
                return NULL;
        struct af_fragment_tensor out = tensor_of(v);
        struct af_fragment_node node = {.op = af_op_info(op)->name, .inputs = names, .n_inputs = n, .attrs = attrs, .n_attrs = n_attrs};
        node.outputs = &out;
        node.n_outputs = 1;
        node.name = af_arena_printf(m->f->arena, "n%u", m->f->n_nodes);
        node.origin = "random";
        if (!node.name || af_fragment_add_node(m->f, &node, NULL) != 0) {
                m->error = -ENOMEM;
                return NULL;
        }
        for (uint32_t i = 0; i < n; i++)
                in[i]->users++;
        return v;
}

static struct value *cast_to(struct maker *m, struct value *v, enum af_dtype d) {
        struct value *in[] = {v};

        return v->dtype == d ? v : add_node(m, AF_OP_CAST, in, 1, NULL, 0, d);
}

/* A value to read: late ones and unread ones more often, so that chains grow. */
static struct value *pick(struct maker *m) {
        struct value *best = NULL;

        if (m->o.chains && m->n_values > 4 && !one_in(m, 5))
                return &m->values[m->n_values - 1 - below(m, 3)];
        for (unsigned i = 0; i < 3; i++) {
                struct value *v = &m->values[below(m, m->n_values)];
                if (!best || (v->users == 0 && best->users > 0) || (v->users == best->users && v > best))
                        best = v;
        }
        return best->scalar && !one_in(m, 8) ? &m->values[below(m, m->n_values)] : best;
}

/* A value of one of the dtypes; casts one where none is at hand. NULL where nothing fits. */
static struct value *pick_of(struct maker *m, uint32_t dtypes) {
        struct value *v = NULL;

        for (unsigned i = 0; i < 12; i++) {
                v = pick(m);
                if (dtypes & AF_DTYPE_BIT(v->dtype))
                        return v;
        }
        for (unsigned i = 0; i < 30; i++) {
                enum af_dtype d = random_dtype(m);
                if (dtypes & AF_DTYPE_BIT(d))
                        return cast_to(m, v, d);
        }
        return NULL;
}

static bool broadcasts(const struct value *a, const struct value *b) {
        for (uint32_t i = 0; i < a->rank && i < b->rank; i++) {
                int64_t x = a->dims[a->rank - 1 - i], y = b->dims[b->rank - 1 - i];
                if (x != y && x != 1 && y != 1)
                        return false;
        }
        return true;
}

/* An operand that meets v in dtype d: a scalar, v itself, or another value of a shape that broadcasts. */
static struct value *partner(struct maker *m, struct value *v, enum af_dtype d) {
        if (!m->o.no_scalars && one_in(m, 4))
                return add_constant(m, d);
        for (unsigned i = 0; i < 20; i++) {
                struct value *w = pick(m);
                if (broadcasts(v, w) && (w->dtype == d || i > 10))
                        return w->scalar && w->dtype != AF_DTYPE_FLOAT64 && w->dtype != d ? NULL : w->scalar ? w : cast_to(m, w, d);
        }
        return v->dtype == d ? v : NULL;
}

static struct value *make_elementwise(struct maker *m, enum af_op op) {
        const struct af_op_info *info = af_op_info(op);
        struct value *in[3] = {NULL};
        struct af_attr attrs[2];
        uint32_t n_attrs = 0;

        if (op == AF_OP_WHERE) {
                in[0] = pick_of(m, AF_DTYPE_BIT(AF_DTYPE_BOOL));
                in[1] = in[0] ? partner(m, in[0], random_dtype(m)) : NULL;
                in[2] = in[1] ? partner(m, in[1], in[1]->dtype) : NULL;
                return in[2] ? add_node(m, op, in, 3, NULL, 0, 0) : NULL;
        }
        in[0] = pick_of(m, info->dtypes);
        if (!in[0])
                return NULL;
        if (info->min_inputs == 2) {
                in[1] = partner(m, in[0], in[0]->dtype);
                if (in[1] && one_in(m, 2)) {
                        struct value *t = in[0];
                        in[0] = in[1];
                        in[1] = t;
                }
                if (!in[1])
                        return NULL;
        }
        if (op == AF_OP_GELU && one_in(m, 2))
                attrs[n_attrs++] = (struct af_attr){.key = AF_ATTR_APPROXIMATE, .s = "tanh"};
        if (op == AF_OP_LEAKY_RELU && one_in(m, 2))
                attrs[n_attrs++] = (struct af_attr){.key = AF_ATTR_ALPHA, .f = 0.2};
        if (op == AF_OP_CLIP && !one_in(m, 4))
                attrs[n_attrs++] = (struct af_attr){.key = AF_ATTR_MIN, .is_int = true, .i = (int64_t)below(m, 8) - 6, .f = 0};
        if (op == AF_OP_CLIP && !one_in(m, 4))
                attrs[n_attrs++] = (struct af_attr){.key = AF_ATTR_MAX, .is_int = true, .i = (int64_t)below(m, 8) - 1, .f = 0};
        for (uint32_t i = 0; i < n_attrs; i++)
                if (attrs[i].is_int)
                        attrs[i].f = (double)attrs[i].i;
        return add_node(m, op, in, info->min_inputs, attrs, n_attrs, random_dtype(m));
}

static struct value *make_reduce(struct maker *m, enum af_op op) {
        struct value *v = pick_of(m, af_op_info(op)->dtypes);
        struct af_attr attrs[2];
        int64_t axes[AF_LIMIT_RANK];
        uint32_t n_attrs = 0, n_axes = 0;

        if (!v || v->scalar)
                return NULL;
        for (uint32_t i = 0; i < v->rank; i++)
                if (one_in(m, 2))
                        axes[n_axes++] = one_in(m, 2) ? (int64_t)i : (int64_t)i - v->rank;
        if (n_axes > 0)
                attrs[n_attrs++] = (struct af_attr){.key = AF_ATTR_AXES, .ints = axes, .n = n_axes};
        if (one_in(m, 2))
                attrs[n_attrs++] = (struct af_attr){.key = AF_ATTR_KEEPDIMS, .i = 1};
        enum af_dtype wide = one_in(m, 2) && (m->o.dtypes & AF_DTYPE_BIT(AF_DTYPE_INT64)) ? AF_DTYPE_INT64 : AF_DTYPE_INT32;
        struct value *in[] = {v};
        return add_node(m, op, in, 1, attrs, n_attrs, wide);
}

/* Attribute shape that op can give v. */
static uint32_t random_target(struct maker *m, enum af_op op, const struct value *v, int64_t *dims) {
        uint32_t rank = v->rank;

        if (op == AF_OP_RESHAPE) { /* merge or split at random places */
                int64_t rest = count_of(v->dims, v->rank);
                rank = 0;
                while (rank < m->o.max_rank - 1 && rest > 1 && !one_in(m, 3)) {
                        static const int64_t factors[] = {1, 2, 3, 4, 5, 8, 16};
                        int64_t f = factors[below(m, AF_ARRAY_SIZE(factors))];
                        if (rest % f == 0) {
                                dims[rank++] = f;
                                rest /= f;
                        }
                }
                dims[rank] = one_in(m, 3) && rest > 0 ? -1 : rest;
                return rank + 1;
        }
        uint32_t fresh = rank < m->o.max_rank ? below(m, m->o.max_rank - rank + 1) : 0;
        for (uint32_t i = 0; i < fresh; i++)
                dims[i] = 1 + below(m, 4);
        for (uint32_t i = 0; i < rank; i++)
                dims[fresh + i] = v->dims[i] == 1 && one_in(m, 2) ? 1 + below(m, 70) : v->dims[i];
        return fresh + rank;
}

static struct value *make_view(struct maker *m, enum af_op op) {
        struct value *v = pick(m), *in[] = {v};
        int64_t dims[AF_LIMIT_RANK * 2];
        struct af_attr attr = {.key = AF_ATTR_SHAPE};

        if (v->scalar)
                return NULL;
        if (op == AF_OP_SQUEEZE)
                return add_node(m, op, in, 1, NULL, 0, 0);
        if (op == AF_OP_UNSQUEEZE) {
                dims[0] = (int64_t)below(m, v->rank + 1);
                attr = (struct af_attr){.key = AF_ATTR_AXES, .ints = dims, .n = 1};
                return v->rank < m->o.max_rank ? add_node(m, op, in, 1, &attr, 1, 0) : NULL;
        }
        attr.n = random_target(m, op, v, dims);
        if (af_fragment_dims_const(m->f, dims, attr.n, &attr.dims) < 0) {
                m->error = -ENOMEM;
                return NULL;
        }
        return add_node(m, op, in, 1, &attr, 1, 0);
}

static struct value *make_gather(struct maker *m) {
        struct value *in[2] = {pick(m), pick_of(m, AF_DTYPE_BIT(AF_DTYPE_INT32) | AF_DTYPE_BIT(AF_DTYPE_INT64))};
        struct af_attr axis = {.key = AF_ATTR_AXIS};

        if (in[0]->rank == 0 || !in[1] || in[0]->scalar)
                return NULL;
        axis.i = (int64_t)below(m, in[0]->rank);
        return add_node(m, AF_OP_GATHER, in, 2, &axis, 1, 0);
}

static bool allowed(const struct maker *m, enum af_op op) {
        if (af_op_info(op)->cls >= AF_CLASS_OPAQUE || op == AF_OP_GATHER_ELEMENTS || !(m->o.classes & 1u << af_op_info(op)->cls))
                return false;
        for (const enum af_op *p = m->o.ops; p && *p != AF_OP_INVALID; p++)
                if (*p == op)
                        return true;
        return m->o.ops == NULL;
}

static struct value *make_node(struct maker *m) {
        enum af_op op = AF_OP_ADD;

        for (unsigned i = 0; i < 1000; i++) {
                op = below(m, AF_N_OPS);
                if (allowed(m, op))
                        break;
        }
        switch (af_op_info(op)->cls) {
        case AF_CLASS_REDUCE:
                return make_reduce(m, op);
        case AF_CLASS_BROADCAST:
        case AF_CLASS_VIEW:
                return make_view(m, op);
        case AF_CLASS_GATHER:
                return make_gather(m);
        default:
                return make_elementwise(m, op);
        }
}

/* Strides of an output: axes in another order, now and then with gaps; never overlapping. */
static void random_output_strides(struct maker *m, const struct value *v, struct af_fragment_output *o) {
        int64_t strides[AF_LIMIT_RANK], step = one_in(m, 4) ? 2 : 1;
        uint32_t order[AF_LIMIT_RANK];

        for (uint32_t i = 0; i < v->rank; i++)
                order[i] = i;
        for (uint32_t i = v->rank - 1; one_in(m, 2) && i > 0; i--) {
                uint32_t k = below(m, i + 1), t = order[i];
                order[i] = order[k];
                order[k] = t;
        }
        for (uint32_t i = v->rank; i-- > 0;) {
                strides[order[i]] = step;
                step = step * AF_MAX(v->dims[order[i]], (int64_t)1) + (one_in(m, 3) ? below(m, 9) : 0);
        }
        o->has_strides = true;
        o->n_strides = v->rank;
        if (af_fragment_dims_const(m->f, strides, v->rank, &o->strides) < 0)
                m->error = -ENOMEM;
}

/* Unread values, and now and then one that is read. */
static void add_outputs(struct maker *m) {
        bool taken[MAX_VALUES] = {false};

        for (uint32_t i = 0; i < m->n_values && !m->error; i++) {
                struct value *v = &m->values[i];
                struct af_fragment_output o = {.value = v->name};
                bool node = !v->input && !v->scalar;
                if (!node || !(v->users == 0 || one_in(m, m->o.outputs ? 2 : 10)))
                        continue;
                /* In place only where the input is read by nobody or the graph is one chain: else order may be impossible. */
                for (uint32_t k = 0; m->o.in_place && k < m->n_values && !o.alias_of; k++) {
                        struct value *x = &m->values[k];
                        bool fits = x->input && !x->host && !x->strided && !taken[k] && x->users == 0 && x->dtype == v->dtype &&
                                    x->rank == v->rank;
                        if (fits && (x->rank == 0 || memcmp(x->dims, v->dims, v->rank * sizeof(*v->dims)) == 0)) {
                                o.alias_of = x->name;
                                taken[k] = true;
                        }
                }
                if (m->o.output_strides && !o.alias_of && v->rank > 0 && one_in(m, 4))
                        random_output_strides(m, v, &o);
                if (af_fragment_add_output(m->f, &o, NULL) != 0)
                        m->error = -ENOMEM;
        }
        if (m->f->n_outputs == 0 && !m->error &&
            af_fragment_add_output(m->f, &(struct af_fragment_output){.value = m->values[0].name}, NULL) != 0)
                m->error = -ENOMEM;
}

static void fill_opts(struct maker *m, const struct af_random_opts *opts) {
        if (opts)
                m->o = *opts;
        if (m->o.n_nodes == 0)
                m->o.n_nodes = 1 + below(m, 12);
        if (m->o.dtypes == 0)
                m->o.dtypes = (AF_DTYPE_BIT(AF_DTYPE_FLOAT64) - 1) & ~1u;
        if (m->o.classes == 0)
                m->o.classes = ~(1u << AF_CLASS_GATHER | 1u << AF_CLASS_OPAQUE);
        if (m->o.max_elements == 0)
                m->o.max_elements = 6000;
        if (m->o.max_rank == 0)
                m->o.max_rank = 4;
        m->o.max_rank = AF_MIN(m->o.max_rank, MAX_RANK);
        m->o.n_nodes = AF_MIN(m->o.n_nodes, MAX_VALUES / 4);
}

void af_random_profile(unsigned profile, struct af_random_opts *ret_opts) {
        const uint32_t cls = 1u << AF_CLASS_REDUCE | 1u << AF_CLASS_VIEW | 1u << AF_CLASS_BROADCAST;
        const uint32_t small = AF_DTYPE_BIT(AF_DTYPE_BOOL) | AF_DTYPE_BIT(AF_DTYPE_INT8) | AF_DTYPE_BIT(AF_DTYPE_UINT8) |
                               AF_DTYPE_BIT(AF_DTYPE_INT16) | AF_DTYPE_BIT(AF_DTYPE_INT32) | AF_DTYPE_BIT(AF_DTYPE_FLOAT16);
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
        default:
                break;
        }
}

int af_random_fragment(struct af_fragment *f, struct af_arena *arena, uint64_t seed, const struct af_random_opts *opts) {
        struct maker *m = calloc(1, sizeof(*m));
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
        for (uint32_t n = m->o.n_inputs ? m->o.n_inputs : 1 + below(m, 4); n > 0 && !m->error; n--)
                add_input(m);
        for (uint32_t made = 0, tries = 0; made < m->o.n_nodes && tries < TRIES * m->o.n_nodes && !m->error; tries++)
                made += make_node(m) != NULL;
        add_outputs(m);
        r = m->error ? m->error : !f->name ? -ENOMEM : 0;
        free(m);
        return r;
}
