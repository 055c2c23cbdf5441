/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a random fragment: inputs, constants, what nodes give, and which of them to read next. */
#include "tests/lib/random_maker.h"

#include <errno.h>
#include <string.h>

static uint64_t next(struct random_maker *m) {
        uint64_t x = m->state += 0x9e3779b97f4a7c15u;

        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
        x = (x ^ x >> 27) * 0x94d049bb133111ebu;
        return x ^ x >> 31;
}

uint32_t random_below(struct random_maker *m, uint32_t n) {
        return (uint32_t)((next(m) >> 32) * n >> 32);
}

bool random_one_in(struct random_maker *m, uint32_t n) {
        return random_below(m, n) == 0;
}

int64_t random_count(const int64_t *dims, uint32_t rank) {
        int64_t n = 1;

        for (uint32_t i = 0; i < rank; i++)
                if (__builtin_mul_overflow(n, dims[i], &n))
                        return INT64_MAX;
        return n;
}

enum af_dtype random_dtype(struct random_maker *m) {
        /* The usual ones more often. */
        static const enum af_dtype common[] = {AF_DTYPE_FLOAT32, AF_DTYPE_FLOAT32,  AF_DTYPE_FLOAT32,
                                               AF_DTYPE_FLOAT16, AF_DTYPE_BFLOAT16, AF_DTYPE_INT32};

        for (unsigned i = 0; i < 200; i++) {
                enum af_dtype d =
                        random_one_in(m, 3) ? 1 + random_below(m, AF_DTYPE_FLOAT32) : common[random_below(m, AF_ARRAY_SIZE(common))];
                if (m->o.dtypes & AF_DTYPE_BIT(d))
                        return d;
        }
        for (unsigned d = 1; d < AF_N_DTYPES; d++)
                if (m->o.dtypes & AF_DTYPE_BIT(d))
                        return d;
        return AF_DTYPE_FLOAT32;
}

/* Two symbols never share a sample, and no size of random_shape is one: a number tells which it is. */
static int64_t add_symbol(struct random_maker *m) {
        static const struct {
                int64_t multiple, sample[RANDOM_MAX_SYMBOLS];
        } kinds[] = {{1, {61, 67}}, {1, {61, 67}}, {1, {61, 67}},    {2, {62, 74}},
                     {4, {68, 76}}, {8, {72, 88}}, {16, {112, 144}}, {32, {96, 160}}};
        static const int64_t most[] = {256, 2500, 65536, INT64_MAX};
        uint32_t k = random_below(m, AF_ARRAY_SIZE(kinds)), i = m->n_symbols++;
        struct af_fragment_symbol s = {.name = i ? "s1" : "s0", .multiple_of = kinds[k].multiple, .hint = -1};

        m->samples[i] = kinds[k].sample[i];
        s.min = random_one_in(m, 2) ? 0 : random_one_in(m, 2) ? s.multiple_of : random_below(m, 3) * s.multiple_of;
        s.max = random_one_in(m, 6) ? m->samples[i] : most[random_below(m, AF_ARRAY_SIZE(most))];
        if (random_one_in(m, 2))
                s.hint = m->samples[i];
        m->mins[i] = s.min;
        m->maxs[i] = s.max;
        if (af_fragment_add_symbol(m->f, &s, NULL) != 0 || af_expr_symbol(&m->f->exprs, i, &m->symbols[i]) != 0)
                m->error = -ENOMEM;
        return m->samples[i];
}

const uint32_t *random_ids(struct random_maker *m, const int64_t *numbers, uint32_t n) {
        uint32_t *ids = af_arena_calloc(m->f->arena, n + 1, sizeof(*ids));

        for (uint32_t i = 0; ids && i < n; i++) {
                uint32_t k = 0;
                while (k < m->n_symbols && m->samples[k] != numbers[i])
                        k++;
                if (k < m->n_symbols)
                        ids[i] = m->symbols[k];
                else if (af_expr_const(&m->f->exprs, numbers[i], &ids[i]) != 0)
                        ids = NULL;
        }
        if (!ids)
                m->error = -ENOMEM;
        return ids;
}

bool random_symbolic(const struct random_maker *m, const struct random_value *v) {
        int64_t d;

        for (uint32_t i = 0; i < v->rank; i++)
                if (!af_expr_is_const(&m->f->exprs, v->ids[i], &d))
                        return true;
        return false;
}

void random_shape(struct random_maker *m) {
        static const int64_t sizes[] = {1,  2,  3,  4,  5,  7,   8,   9,   15,   16,   17,   31,   32,
                                        33, 50, 63, 64, 65, 100, 128, 257, 1000, 1023, 1024, 1025, 4097};

        int64_t most = m->o.max_elements >> 6 * m->o.n_symbols; /* a symbol takes about 64 of them */

        m->shape_rank = random_below(m, m->o.max_rank + 1);
        for (uint32_t i = 0; i < m->shape_rank; i++) {
                int64_t room = most / AF_MAX(random_count(m->shape, i), (int64_t)1);
                do
                        m->shape[i] = sizes[random_below(m, AF_ARRAY_SIZE(sizes))];
                while (m->shape[i] > AF_MAX(room, (int64_t)1));
                if (!m->o.no_empty && random_one_in(m, 60))
                        m->shape[i] = 0;
        }
        for (uint32_t i = 0; i < AF_MIN(m->o.n_symbols, RANDOM_MAX_SYMBOLS); i++) {
                if (m->shape_rank <= i)
                        m->shape_rank = i + 1;
                uint32_t axis = random_below(m, m->shape_rank);
                if (i > 0 && m->shape[axis] == m->samples[0])
                        axis = (axis + 1) % m->shape_rank;
                m->shape[axis] = add_symbol(m);
        }
}

/* ids: its sizes as expressions; NULL: by random_ids. */
static struct random_value *new_value(struct random_maker *m, enum af_dtype d, const int64_t *dims, const uint32_t *ids, uint32_t rank) {
        struct random_value *v = &m->values[m->n_values];

        *v = (struct random_value){.dtype = d, .rank = rank};
        if (rank > 0)
                memcpy(v->dims, dims, rank * sizeof(*dims));
        v->name = af_arena_printf(m->f->arena, "v%u", m->n_values);
        v->ids = ids ? ids : random_ids(m, v->dims, rank);
        if (!v->name)
                m->error = -ENOMEM;
        m->n_values++;
        return v;
}

static struct af_fragment_tensor tensor_of(const struct random_value *v) {
        return (struct af_fragment_tensor){.name = v->name, .dtype = v->dtype, .rank = v->rank, .dims = v->ids};
}

/* Strides: row-major with gaps, transposed, or 0 along an axis. Returns whether they are stated. */
static bool random_strides(struct random_maker *m, struct random_value *v, int64_t *strides) {
        uint32_t order[AF_LIMIT_RANK];
        int64_t step = 1;

        if (m->o.contiguous_only || v->rank == 0 || !random_one_in(m, 3))
                return false;
        for (uint32_t i = 0; i < v->rank; i++)
                order[i] = i;
        if (random_one_in(m, 3))
                for (uint32_t i = v->rank - 1; i > 0; i--) {
                        uint32_t k = random_below(m, i + 1), t = order[i];
                        order[i] = order[k];
                        order[k] = t;
                }
        if (random_one_in(m, 8))
                step = 2;
        for (uint32_t i = v->rank; i-- > 0;) {
                strides[order[i]] = v->dims[order[i]] == 1 && random_one_in(m, 2) ? 999 : step;
                step = step * AF_MAX(v->dims[order[i]], (int64_t)1) + (random_one_in(m, 3) ? random_below(m, 9) : 0);
        }
        if (random_one_in(m, 6))
                strides[random_below(m, v->rank)] = 0;
        v->strided = true;
        return true;
}

static struct random_value *add_input(struct random_maker *m, enum af_dtype d, const int64_t *dims, uint32_t rank, bool host) {
        struct af_fragment_input in = {.host = host};
        int64_t strides[AF_LIMIT_RANK];

        if (m->n_values == RANDOM_MAX_VALUES || m->error)
                return NULL;
        struct random_value *v = new_value(m, d, dims, NULL, rank);
        if (m->error)
                return NULL;
        in.t = tensor_of(v);
        v->host = v->scalar = host;
        v->input = true;
        in.t.has_strides = random_strides(m, v, strides);
        int64_t offset = v->strided && random_one_in(m, 2) ? random_below(m, 40) : 0;
        if ((in.t.has_strides && !(in.t.strides = random_ids(m, strides, rank))) || af_expr_const(&m->f->exprs, offset, &in.offset) != 0 ||
            af_fragment_add_input(m->f, &in, NULL) != 0)
                m->error = -ENOMEM;
        return m->error ? NULL : v;
}

struct random_value *random_input(struct random_maker *m, enum af_dtype d, const int64_t *dims, uint32_t rank) {
        return add_input(m, d, dims, rank, false);
}

void random_first_input(struct random_maker *m) {
        int64_t dims[AF_LIMIT_RANK];
        uint32_t drop = random_one_in(m, 4) ? random_below(m, m->shape_rank + 1) : 0, rank = m->shape_rank - drop;
        bool host = !m->o.no_scalars && random_one_in(m, 20);

        for (uint32_t i = 0; i < rank; i++)
                dims[i] = random_one_in(m, 6) ? 1 : m->shape[drop + i];
        enum af_dtype d = random_dtype(m);
        if (host && random_one_in(m, 3))
                d = AF_DTYPE_FLOAT64;
        (void)add_input(m, d, dims, host ? 0 : rank, host);
}

/* A scalar of dtype d (or a wider float), its bits an ordinary or a special value. */
struct random_value *random_constant(struct random_maker *m, enum af_dtype d) {
        uint64_t bits = 0;
        struct af_tensor t = {.rank = 0, .data = &bits};

        if (m->n_values == RANDOM_MAX_VALUES)
                return NULL;
        if (af_dtype_kind(d) == 'f' && d != AF_DTYPE_FLOAT64 && random_one_in(m, 3))
                d = d == AF_DTYPE_FLOAT32 || random_one_in(m, 2) ? AF_DTYPE_FLOAT64 : AF_DTYPE_FLOAT32;
        struct random_value *v = new_value(m, d, NULL, NULL, 0);
        v->scalar = true;
        t.dtype = d;
        af_tensor_fill(&t, next(m), random_one_in(m, 2));
        struct af_fragment_constant c = {.t = tensor_of(v), .bytes = (const uint8_t *)&bits, .n_bytes = af_dtype_size(d)};
        if (m->error || af_fragment_add_constant(m->f, &c, NULL) != 0) {
                m->error = -ENOMEM;
                return NULL;
        }
        return v;
}

/* The sizes of output `out`; false where they are not for this fragment. */
static bool output_dims(struct random_maker *m, const struct af_inferred *inferred, uint32_t out, int64_t *dims) {
        if (inferred->rank > RANDOM_MAX_RANK)
                return false;
        for (uint32_t i = 0; i < inferred->rank; i++)
                if (af_expr_eval(&m->f->exprs, af_inferred_dim(inferred, out, i), m->samples, &dims[i]) || dims[i] < 0)
                        return false;
        return random_count(dims, inferred->rank) <= m->o.max_elements;
}

/* The values that a node makes: the first of them. */
static struct random_value *add_outputs(struct random_maker *m, const struct af_inferred *inferred, enum af_dtype d,
                                        struct af_fragment_tensor *tensors) {
        struct random_value *first = &m->values[m->n_values];
        int64_t dims[AF_LIMIT_RANK];

        if (m->n_values + inferred->n_out > RANDOM_MAX_VALUES)
                return NULL;
        for (uint32_t i = 0; i < inferred->n_out; i++)
                if (!output_dims(m, inferred, i, dims))
                        return NULL;
        for (uint32_t i = 0; i < inferred->n_out; i++) {
                uint32_t *ids = af_arena_calloc(m->f->arena, inferred->rank + 1, sizeof(*ids));
                (void)output_dims(m, inferred, i, dims);
                for (uint32_t k = 0; ids && k < inferred->rank; k++)
                        ids[k] = af_inferred_dim(inferred, i, k);
                if (!ids)
                        m->error = -ENOMEM;
                tensors[i] = tensor_of(new_value(m, d, dims, ids, inferred->rank));
        }
        return m->error ? NULL : first;
}

struct random_value *random_node(struct random_maker *m, enum af_op op, struct random_value *const *in, uint32_t n,
                                 const struct af_attr *attrs, uint32_t n_attrs, enum af_dtype declared) {
        struct af_infer_operand operands[8];
        struct af_fragment_tensor outputs[8];
        const char *names[8];
        struct af_inferred inferred;

        if (m->n_values == RANDOM_MAX_VALUES || m->error)
                return NULL;
        for (uint32_t i = 0; i < n; i++) {
                operands[i] =
                        (struct af_infer_operand){.dtype = in[i]->dtype, .rank = in[i]->rank, .dims = in[i]->ids, .scalar = in[i]->scalar};
                names[i] = in[i]->name;
        }
        struct af_infer_bounds bounds = {m->mins, m->maxs};
        int r = af_infer_within(&m->f->exprs, m->f->arena, &bounds, op, operands, n, attrs, n_attrs, NULL, &inferred, NULL);
        if (r != 0) {
                m->error = AF_MIN(r, 0);
                return NULL;
        }
        if (inferred.dtype == AF_DTYPE_INVALID)
                inferred.dtype = declared;
        if (inferred.dtype == AF_DTYPE_FLOAT64 || inferred.n_out > AF_ARRAY_SIZE(outputs)) /* a float64 tensor would be the framework's */
                return NULL;
        struct random_value *v = add_outputs(m, &inferred, inferred.dtype, outputs);
        if (!v)
                return NULL;
        struct af_fragment_node node = {.op = af_op_info(op)->name, .inputs = names, .n_inputs = n, .attrs = attrs, .n_attrs = n_attrs};
        node.outputs = outputs;
        node.n_outputs = inferred.n_out;
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

struct af_attr random_dims(struct random_maker *m, enum af_attr_key key, const int64_t *numbers, uint32_t n) {
        return (struct af_attr){.key = key, .n = n, .dims = random_ids(m, numbers, n)};
}

struct random_value *random_cast(struct random_maker *m, struct random_value *v, enum af_dtype d) {
        struct random_value *in[] = {v};

        return v->dtype == d ? v : random_node(m, AF_OP_CAST, in, 1, NULL, 0, d);
}

/* A value to read: late ones and unread ones more often, so that chains grow. */
struct random_value *random_pick(struct random_maker *m) {
        struct random_value *best = NULL;

        if (m->o.chains && m->n_values > 4 && !random_one_in(m, 5))
                return &m->values[m->n_values - 1 - random_below(m, 3)];
        for (unsigned i = 0; i < 3; i++) {
                struct random_value *v = &m->values[random_below(m, m->n_values)];
                if (!best || (v->users == 0 && best->users > 0) || (v->users == best->users && v > best))
                        best = v;
        }
        return best->scalar && !random_one_in(m, 8) ? &m->values[random_below(m, m->n_values)] : best;
}

/* A value of one of the dtypes; casts one where none is at hand. NULL where nothing fits. */
struct random_value *random_pick_of(struct random_maker *m, uint32_t dtypes) {
        struct random_value *v = NULL;

        for (unsigned i = 0; i < 12; i++) {
                v = random_pick(m);
                if (dtypes & AF_DTYPE_BIT(v->dtype))
                        return v;
        }
        for (unsigned i = 0; i < 30; i++) {
                enum af_dtype d = random_dtype(m);
                if (dtypes & AF_DTYPE_BIT(d))
                        return random_cast(m, v, d);
        }
        return NULL;
}

static bool broadcasts(const struct random_value *a, const struct random_value *b) {
        for (uint32_t i = 0; i < a->rank && i < b->rank; i++) {
                int64_t x = a->dims[a->rank - 1 - i], y = b->dims[b->rank - 1 - i];
                if (x != y && x != 1 && y != 1)
                        return false;
        }
        return true;
}

/* An operand that meets v in dtype d: a scalar, v itself, or another value of a shape that broadcasts. */
struct random_value *random_partner(struct random_maker *m, struct random_value *v, enum af_dtype d) {
        if (!m->o.no_scalars && random_one_in(m, 4))
                return random_constant(m, d);
        for (unsigned i = 0; i < 20; i++) {
                struct random_value *w = random_pick(m);
                if (broadcasts(v, w) && (w->dtype == d || i > 10))
                        return w->scalar && w->dtype != AF_DTYPE_FLOAT64 && w->dtype != d ? NULL : w->scalar ? w : random_cast(m, w, d);
        }
        return v->dtype == d ? v : NULL;
}
