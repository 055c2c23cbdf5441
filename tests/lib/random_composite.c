/* SPDX-License-Identifier: Apache-2.0 */
/* Random composites: operands of the shapes that they ask for, attributes present or left out. */
#include "tests/lib/random_maker.h"

#include <string.h>

#define MAX_ATTRS 4

/* A node in the making. */
struct draft {
        struct random_value *in[5];
        uint32_t n;
        struct af_attr attrs[MAX_ATTRS];
        uint32_t n_attrs;
        enum af_dtype declared;
        int64_t numbers[AF_LIMIT_RANK]; /* of a list attribute */
};

static void put_int(struct draft *d, enum af_attr_key key, int64_t v) {
        d->attrs[d->n_attrs++] = (struct af_attr){.key = key, .i = v};
}

static void put_float(struct draft *d, enum af_attr_key key, double v) {
        d->attrs[d->n_attrs++] = (struct af_attr){.key = key, .f = v};
}

static bool subject(struct random_maker *m, enum af_op op, struct draft *d, uint32_t least_rank) {
        for (unsigned i = 0; i < 12; i++) {
                d->in[0] = random_pick_of(m, af_op_info(op)->dtypes);
                if (d->in[0] && !d->in[0]->scalar && d->in[0]->rank >= least_rank) {
                        d->n = 1;
                        return true;
                }
        }
        return false;
}

/* Another operand of this shape and a float dtype, now and then the subject's. */
static bool parameter(struct random_maker *m, struct draft *d, const int64_t *dims, uint32_t rank) {
        enum af_dtype type = random_one_in(m, 2) ? d->in[0]->dtype : AF_DTYPE_FLOAT32;

        d->in[d->n] = random_input(m, type, dims, rank);
        return d->in[d->n++] != NULL;
}

static bool with_axis(struct random_maker *m, enum af_op op, struct draft *d) {
        if (!subject(m, op, d, 1))
                return false;
        if (!random_one_in(m, 3))
                put_int(d, AF_ATTR_AXIS, random_below(m, d->in[0]->rank));
        return true;
}

/* Axes and keepdims, as of reductions. */
static bool reduced(struct random_maker *m, enum af_op op, struct draft *d) {
        uint32_t n = 0;

        if (!subject(m, op, d, 0))
                return false;
        for (uint32_t i = 0; i < d->in[0]->rank; i++)
                if (random_one_in(m, 2))
                        d->numbers[n++] = i;
        if (n > 0)
                d->attrs[d->n_attrs++] = (struct af_attr){.key = AF_ATTR_AXES, .ints = d->numbers, .n = n};
        if (random_one_in(m, 2))
                put_int(d, AF_ATTR_KEEPDIMS, 1);
        if ((op == AF_OP_VAR || op == AF_OP_STD) && random_one_in(m, 2))
                put_float(d, AF_ATTR_CORRECTION, random_below(m, 3));
        d->declared = AF_DTYPE_INT32;
        return true;
}

static bool norm(struct random_maker *m, enum af_op op, struct draft *d) {
        uint32_t axis, extra = random_below(m, af_op_info(op)->max_inputs);

        if (!subject(m, op, d, 1))
                return false;
        axis = random_one_in(m, 2) ? d->in[0]->rank - 1 : random_below(m, d->in[0]->rank);
        put_int(d, AF_ATTR_AXIS, axis);
        if (random_one_in(m, 2))
                put_float(d, AF_ATTR_EPSILON, random_one_in(m, 2) ? 1e-3 : 0);
        for (uint32_t i = 0; i < extra; i++)
                if (!parameter(m, d, d->in[0]->dims + axis, d->in[0]->rank - axis))
                        return false;
        return true;
}

static bool channels(struct random_maker *m, enum af_op op, struct draft *d) {
        uint32_t least = af_op_info(op)->min_inputs, most = af_op_info(op)->max_inputs;
        uint32_t n = least + random_below(m, most - least + 1);

        if (!subject(m, op, d, op == AF_OP_INSTANCE_NORM ? 3 : 2))
                return false;
        if (op == AF_OP_GROUP_NORM) {
                int64_t c = d->in[0]->dims[1], groups = c > 0 && random_one_in(m, 2) ? c : 1;
                for (int64_t k = 2; k < c && random_one_in(m, 2); k++)
                        if (c % k == 0)
                                groups = k;
                put_int(d, AF_ATTR_GROUPS, groups);
        }
        for (uint32_t i = 1; i < n; i++)
                if (!parameter(m, d, d->in[0]->dims + 1, 1))
                        return false;
        return true;
}

static bool arg_reduce(struct random_maker *m, enum af_op op, struct draft *d) {
        if (!with_axis(m, op, d))
                return false;
        if (random_one_in(m, 2))
                put_int(d, AF_ATTR_KEEPDIMS, 1);
        if (random_one_in(m, 3))
                put_int(d, AF_ATTR_SELECT_LAST, 1);
        return true;
}

static bool one_hot(struct random_maker *m, struct draft *d) {
        const uint32_t ints = AF_DTYPE_BIT(AF_DTYPE_INT32) | AF_DTYPE_BIT(AF_DTYPE_INT64) | AF_DTYPE_BIT(AF_DTYPE_INT8);

        d->in[0] = random_pick_of(m, ints);
        if (!d->in[0] || d->in[0]->scalar)
                return false;
        d->n = 1;
        put_int(d, AF_ATTR_DEPTH, random_below(m, 12));
        put_int(d, AF_ATTR_AXIS, random_below(m, d->in[0]->rank + 1));
        d->declared = random_dtype(m);
        for (uint32_t k = random_one_in(m, 2) ? 2 : 0; k > 0; k--) {
                struct random_value *v = random_constant(m, d->declared);
                if (!v || (d->n > 1 && v->dtype != d->in[1]->dtype))
                        return false;
                d->in[d->n++] = v;
        }
        return true;
}

static bool shifted(struct random_maker *m, enum af_op op, struct draft *d) {
        if (!subject(m, op, d, op == AF_OP_TILE ? 0 : 2))
                return false;
        if (op != AF_OP_TILE) {
                put_int(d, AF_ATTR_DIAGONAL, (int64_t)random_below(m, 9) - 4);
                return true;
        }
        for (uint32_t i = 0; i < d->in[0]->rank; i++)
                d->numbers[i] = random_one_in(m, 2) ? 1 : random_one_in(m, 30) ? 0 : 1 + random_below(m, 3);
        d->attrs[d->n_attrs++] = random_dims(m, AF_ATTR_REPEATS, d->numbers, d->in[0]->rank);
        return true;
}

/* Operands that broadcast; masked_fill has a mask and a scalar. */
static bool together(struct random_maker *m, enum af_op op, struct draft *d) {
        if (!subject(m, op, d, 0))
                return false;
        for (uint32_t i = 1; i < af_op_info(op)->min_inputs; i++) {
                bool mask = op == AF_OP_MASKED_FILL && i == 1, value = op == AF_OP_MASKED_FILL && i == 2;
                d->in[i] =
                        value ? random_constant(m, d->in[0]->dtype) : random_partner(m, d->in[0], mask ? AF_DTYPE_BOOL : d->in[0]->dtype);
                if (!d->in[i])
                        return false;
                d->n++;
        }
        bool scales = op == AF_OP_AXPY || op == AF_OP_ADDCMUL || op == AF_OP_ADDCDIV;
        if (scales && random_one_in(m, 2))
                put_float(d, AF_ATTR_ALPHA, af_dtype_kind(d->in[0]->dtype) == 'f' && random_one_in(m, 2) ? 0.1 : 3);
        return true;
}

static bool activation(struct random_maker *m, enum af_op op, struct draft *d) {
        static const double numbers[] = {0.5, 1, 2, 0.1, -0.25};
        bool alpha = op == AF_OP_ELU || op == AF_OP_SELU || op == AF_OP_CELU || op == AF_OP_HARDSIGMOID || op == AF_OP_THRESHOLDED_RELU;

        if (!subject(m, op, d, 0))
                return false;
        if (alpha && random_one_in(m, 2))
                put_float(d, AF_ATTR_ALPHA, numbers[random_below(m, AF_ARRAY_SIZE(numbers))]);
        if ((op == AF_OP_SOFTPLUS || op == AF_OP_HARDSIGMOID) && random_one_in(m, 2))
                put_float(d, AF_ATTR_BETA, numbers[random_below(m, 3)]);
        return true;
}

static bool fill(struct random_maker *m, enum af_op op, struct draft *d) {
        switch (op) {
        case AF_OP_SOFTMAX:
        case AF_OP_LOG_SOFTMAX:
                return with_axis(m, op, d);
        case AF_OP_LAYER_NORM:
        case AF_OP_RMS_NORM:
                return norm(m, op, d);
        case AF_OP_ARG_MAX:
        case AF_OP_ARG_MIN:
                return arg_reduce(m, op, d);
        case AF_OP_ONE_HOT:
                return one_hot(m, d);
        case AF_OP_TRIU:
        case AF_OP_TRIL:
        case AF_OP_TILE:
                return shifted(m, op, d);
        default:
                break;
        }
        if (af_op_info(op)->shape_rule == AF_SHAPE_REDUCE)
                return reduced(m, op, d);
        if (af_op_info(op)->shape_rule == AF_SHAPE_CHANNELS)
                return channels(m, op, d);
        return af_op_info(op)->min_inputs > 1 ? together(m, op, d) : activation(m, op, d);
}

struct random_value *random_composite(struct random_maker *m, enum af_op op) {
        struct draft d = {.declared = AF_DTYPE_INVALID};

        return fill(m, op, &d) && !m->error ? random_node(m, op, d.in, d.n, d.attrs, d.n_attrs, d.declared) : NULL;
}
