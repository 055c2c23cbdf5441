/* SPDX-License-Identifier: Apache-2.0 */
/* Random nodes that move elements. */
#include "tests/lib/random_maker.h"

#include <string.h>

/* A tensor to move: of some rank. */
static struct random_value *subject(struct random_maker *m, uint32_t least_rank) {
        for (unsigned i = 0; i < 12; i++) {
                struct random_value *v = random_pick(m);
                if (!v->scalar && v->rank >= least_rank)
                        return v;
        }
        return NULL;
}

static struct random_value *transpose(struct random_maker *m) {
        struct random_value *v = subject(m, 0), *in[] = {v};
        int64_t perm[AF_LIMIT_RANK];
        struct af_attr attr = {.key = AF_ATTR_PERM, .ints = perm};

        if (!v)
                return NULL;
        for (uint32_t i = 0; i < v->rank; i++)
                perm[i] = i;
        for (uint32_t i = v->rank; i > 1; i--) {
                uint32_t k = random_below(m, i);
                int64_t t = perm[i - 1];
                perm[i - 1] = perm[k];
                perm[k] = t;
        }
        attr.n = v->rank;
        return random_node(m, AF_OP_TRANSPOSE, in, 1, &attr, 1, 0);
}

static struct random_value *slice(struct random_maker *m) {
        struct random_value *v = subject(m, 1), *in[] = {v};
        int64_t starts[AF_LIMIT_RANK], stops[AF_LIMIT_RANK], steps[AF_LIMIT_RANK];

        if (!v)
                return NULL;
        for (uint32_t i = 0; i < v->rank; i++) {
                int64_t d = v->dims[i];
                bool whole = random_one_in(m, 2) || d == 0;
                int64_t a = whole ? 0 : random_below(m, (uint32_t)d), b = whole ? d - 1 : random_below(m, (uint32_t)d);
                bool back = random_one_in(m, 6);
                starts[i] = back ? AF_MAX(a, b) : AF_MIN(a, b);
                stops[i] = back ? AF_MIN(a, b) - 1 : AF_MAX(a, b) + (m->o.no_empty || !random_one_in(m, 30));
                steps[i] = (back ? -1 : 1) * (random_one_in(m, 3) ? 1 + (int64_t)random_below(m, 5) : 1);
        }
        struct af_attr attrs[] = {random_dims(m, AF_ATTR_STARTS, starts, v->rank),
                                  random_dims(m, AF_ATTR_STOPS, stops, v->rank),
                                  {.key = AF_ATTR_STEPS, .ints = steps, .n = v->rank}};
        return random_node(m, AF_OP_SLICE, in, 1, attrs, 3, 0);
}

static struct random_value *pad(struct random_maker *m) {
        struct random_value *in[2] = {subject(m, 0)};
        int64_t low[AF_LIMIT_RANK], high[AF_LIMIT_RANK];
        uint32_t n = 1;

        if (!in[0])
                return NULL;
        for (uint32_t i = 0; i < in[0]->rank; i++) {
                low[i] = random_one_in(m, 2) ? random_below(m, 4) : 0;
                high[i] = random_one_in(m, 3) ? random_below(m, 40) : 0;
        }
        struct af_attr attrs[] = {random_dims(m, AF_ATTR_LOW, low, in[0]->rank), random_dims(m, AF_ATTR_HIGH, high, in[0]->rank)};
        if (!m->o.no_scalars && random_one_in(m, 2))
                in[n++] = random_constant(m, in[0]->dtype);
        return in[n - 1] ? random_node(m, AF_OP_PAD, in, n, attrs, 2, 0) : NULL;
}

/* A value of v's shape but for the axis, of its dtype: one that is there, or a new input. */
static struct random_value *neighbour(struct random_maker *m, const struct random_value *v, uint32_t axis) {
        int64_t dims[AF_LIMIT_RANK];

        for (unsigned i = 0; i < 8; i++) {
                struct random_value *w = random_pick(m);
                bool fits = !w->scalar && w->dtype == v->dtype && w->rank == v->rank;
                for (uint32_t k = 0; fits && k < v->rank; k++)
                        fits = k == axis || w->dims[k] == v->dims[k];
                if (fits)
                        return w;
        }
        memcpy(dims, v->dims, v->rank * sizeof(*dims));
        dims[axis] = 1 + random_below(m, 20);
        return random_count(dims, v->rank) <= m->o.max_elements ? random_input(m, v->dtype, dims, v->rank) : NULL;
}

static struct random_value *concat(struct random_maker *m) {
        struct random_value *in[6] = {subject(m, 1)};
        uint32_t n = 1 + random_below(m, 4);

        if (!in[0])
                return NULL;
        struct af_attr axis = {.key = AF_ATTR_AXIS, .i = random_below(m, in[0]->rank)};
        for (uint32_t i = 1; i < n; i++) {
                in[i] = neighbour(m, in[0], (uint32_t)axis.i);
                if (!in[i])
                        return NULL;
        }
        return random_node(m, AF_OP_CONCAT, in, n, &axis, 1, 0);
}

static struct random_value *split(struct random_maker *m) {
        struct random_value *v = subject(m, 1), *in[] = {v};
        int64_t sizes[4], rest;
        uint32_t n = 1 + random_below(m, 4);

        if (!v)
                return NULL;
        struct af_attr axis = {.key = AF_ATTR_AXIS, .i = random_below(m, v->rank)};
        rest = v->dims[axis.i];
        for (uint32_t i = 0; i < n; i++) {
                sizes[i] = i + 1 == n ? rest : random_one_in(m, 2) ? rest / (n - i) : random_below(m, (uint32_t)rest + 1);
                rest -= sizes[i];
        }
        struct af_attr attrs[] = {axis, random_dims(m, AF_ATTR_SIZES, sizes, n)};
        return random_node(m, AF_OP_SPLIT, in, 1, attrs, 2, 0);
}

static struct random_value *gather_elements(struct random_maker *m) {
        struct random_value *v = subject(m, 1), *in[2] = {v};
        int64_t dims[AF_LIMIT_RANK];

        if (!v)
                return NULL;
        struct af_attr axis = {.key = AF_ATTR_AXIS, .i = random_below(m, v->rank)};
        for (uint32_t i = 0; i < v->rank; i++)
                dims[i] = i == axis.i ? 1 + random_below(m, 9) : random_one_in(m, 3) && v->dims[i] > 1 ? v->dims[i] - 1 : v->dims[i];
        if (random_count(dims, v->rank) > m->o.max_elements)
                return NULL;
        in[1] = random_input(m, random_one_in(m, 2) ? AF_DTYPE_INT32 : AF_DTYPE_INT64, dims, v->rank);
        return in[1] ? random_node(m, AF_OP_GATHER_ELEMENTS, in, 2, &axis, 1, 0) : NULL;
}

/* One that broadcasts with the fragment's main shape. */
static struct random_value *iota(struct random_maker *m) {
        int64_t dims[AF_LIMIT_RANK];
        uint32_t rank = m->shape_rank;

        if (rank == 0)
                return NULL;
        enum af_dtype d = random_dtype(m);
        struct af_attr axis = {.key = AF_ATTR_AXIS, .i = random_below(m, rank)};
        for (uint32_t i = 0; i < rank; i++)
                dims[i] = i == axis.i || random_one_in(m, 2) ? m->shape[i] : 1;
        struct af_attr attrs[4] = {axis, random_dims(m, AF_ATTR_SHAPE, dims, rank), {.key = AF_ATTR_START}, {.key = AF_ATTR_STEP}};
        for (unsigned i = 2; i < 4; i++) {
                attrs[i].is_int = af_dtype_kind(d) != 'f' || random_one_in(m, 2);
                attrs[i].i = (int64_t)random_below(m, 200) - 100;
                attrs[i].f = attrs[i].is_int ? (double)attrs[i].i : (double)attrs[i].i / 8 + 0.1;
        }
        return d == AF_DTYPE_BOOL ? NULL : random_node(m, AF_OP_IOTA, NULL, 0, attrs, 4, d);
}

static struct random_value *cumsum(struct random_maker *m) {
        struct random_value *v = subject(m, 1), *in[] = {v};

        if (!v)
                return NULL;
        struct af_attr attrs[] = {{.key = AF_ATTR_AXIS, .i = random_below(m, v->rank)},
                                  {.key = AF_ATTR_EXCLUSIVE, .i = random_one_in(m, 3)},
                                  {.key = AF_ATTR_REVERSE, .i = random_one_in(m, 3)}};
        return random_node(m, AF_OP_CUMSUM, in, 1, attrs, 3, random_one_in(m, 2) ? AF_DTYPE_INT64 : AF_DTYPE_INT32);
}

struct random_value *random_movement(struct random_maker *m, enum af_op op) {
        switch (op) {
        case AF_OP_TRANSPOSE:
                return transpose(m);
        case AF_OP_SLICE:
                return slice(m);
        case AF_OP_PAD:
                return pad(m);
        case AF_OP_CONCAT:
                return concat(m);
        case AF_OP_SPLIT:
                return split(m);
        case AF_OP_GATHER_ELEMENTS:
                return gather_elements(m);
        case AF_OP_IOTA:
                return iota(m);
        case AF_OP_CUMSUM:
                return cumsum(m);
        default:
                return NULL;
        }
}
