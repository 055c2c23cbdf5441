/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/maker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/eval.h"

void maker_init(struct maker *m) {
        m->n_values = 1;
        m->error = 0;
        m->where[0] = 0;
        af_arena_init(&m->arena, 0);
        m->error = af_fragment_init(&m->f, &m->arena);
}

void maker_deinit(struct maker *m) {
        af_arena_deinit(&m->arena);
}

static uint32_t broken(struct maker *m, int error, const char *what) {
        if (!m->error) {
                m->error = error ? error : -EINVAL;
                snprintf(m->where, sizeof(m->where), "%s", what);
        }
        return 0;
}

static uint32_t add_value(struct maker *m, enum af_dtype d, uint32_t rank, const uint32_t *ids, bool scalar) {
        char *name = af_arena_printf(&m->arena, "v%u", m->n_values);
        if (m->n_values == MAKER_VALUES || !name)
                return broken(m, -ENOMEM, "values");
        m->values[m->n_values] = (struct maker_value){name, d, rank, ids, scalar};
        return m->n_values++;
}

static struct af_fragment_tensor tensor_of(const struct maker_value *v) {
        return (struct af_fragment_tensor){.name = v->name, .dtype = v->dtype, .rank = v->rank, .dims = v->ids};
}

static uint32_t add_input(struct maker *m, enum af_dtype d, const struct maker_shape *shape, const int64_t *strides, int64_t offset,
                          bool host) {
        const uint32_t *ids;
        struct af_fragment_input in = {.host = host};
        if (m->error)
                return 0;
        if (af_fragment_dims_const(&m->f, shape->dims, shape->rank, &ids))
                return broken(m, -ENOMEM, "dims");
        uint32_t v = add_value(m, d, shape->rank, ids, host);
        if (!v)
                return 0;
        in.t = tensor_of(&m->values[v]);
        in.t.has_strides = strides != NULL;
        int r = strides ? af_fragment_dims_const(&m->f, strides, shape->rank, &in.t.strides) : 0;
        if (!r)
                r = af_expr_const(&m->f.exprs, offset, &in.offset);
        if (!r)
                r = af_fragment_add_input(&m->f, &in, NULL);
        return r ? broken(m, r, "input") : v;
}

uint32_t maker_input(struct maker *m, enum af_dtype d, const struct maker_shape *shape) {
        return add_input(m, d, shape, NULL, 0, false);
}

uint32_t maker_strided(struct maker *m, enum af_dtype d, const struct maker_shape *shape, const int64_t *strides, int64_t offset) {
        return add_input(m, d, shape, strides, offset, false);
}

uint32_t maker_host(struct maker *m, enum af_dtype d) {
        return add_input(m, d, &(struct maker_shape){0}, NULL, 0, true);
}

uint32_t maker_constant(struct maker *m, enum af_dtype d, double number) {
        uint8_t bytes[8] = {0};
        uint32_t v = m->error ? 0 : add_value(m, d, 0, NULL, true);
        if (!v)
                return 0;
        af_test_number_put(bytes, d, number);
        struct af_fragment_constant c = {.t = tensor_of(&m->values[v]), .bytes = bytes, .n_bytes = af_dtype_size(d)};
        int r = af_fragment_add_constant(&m->f, &c, NULL);
        return r ? broken(m, r, "constant") : v;
}

/* The values that a node makes; the number of the first. */
static uint32_t add_results(struct maker *m, const struct af_inferred *inferred, enum af_dtype d, struct af_fragment_tensor *results) {
        uint32_t first = m->n_values;
        for (uint32_t j = 0; j < inferred->n_out; j++) {
                uint32_t *ids = af_arena_calloc(&m->arena, inferred->rank, sizeof(*ids));
                for (uint32_t k = 0; ids && k < inferred->rank; k++)
                        ids[k] = af_inferred_dim(inferred, j, k);
                uint32_t v = ids ? add_value(m, d, inferred->rank, ids, false) : broken(m, -ENOMEM, "values");
                if (!v)
                        return 0;
                results[j] = tensor_of(&m->values[v]);
        }
        return first;
}

uint32_t maker_node(struct maker *m, enum af_op op, const uint32_t *in, uint32_t n, const struct af_attr *attrs, uint32_t n_attrs,
                    enum af_dtype declared) {
        struct af_infer_operand operands[64];
        struct af_fragment_tensor results[AF_LIMIT_ATTR_ITEMS];
        const char *names[64];
        struct af_inferred inferred;
        if (m->error)
                return 0;
        for (uint32_t i = 0; i < n; i++) {
                const struct maker_value *v = &m->values[in[i]];
                operands[i] = (struct af_infer_operand){.dtype = v->dtype, .rank = v->rank, .dims = v->ids, .scalar = v->scalar};
                names[i] = v->name;
        }
        int r = af_infer(&m->f.exprs, &m->arena, op, operands, n, attrs, n_attrs, NULL, &inferred, NULL);
        if (r)
                return broken(m, r, af_op_info(op)->name);
        uint32_t first = add_results(m, &inferred, inferred.dtype == AF_DTYPE_INVALID ? declared : inferred.dtype, results);
        if (!first)
                return 0;
        struct af_fragment_node node = {.name = af_arena_printf(&m->arena, "n%u", first),
                                        .op = af_op_info(op)->name,
                                        .inputs = names,
                                        .n_inputs = n,
                                        .attrs = attrs,
                                        .n_attrs = n_attrs,
                                        .outputs = results,
                                        .n_outputs = inferred.n_out};
        r = af_fragment_add_node(&m->f, &node, NULL);
        return r ? broken(m, r, af_op_info(op)->name) : first;
}

struct af_attr maker_dims(struct maker *m, enum af_attr_key key, const int64_t *numbers, uint32_t n) {
        struct af_attr attr = {.key = key, .n = n};
        if (!m->error && af_fragment_dims_const(&m->f, numbers, n, &attr.dims))
                broken(m, -ENOMEM, af_attr_name(key));
        return attr;
}

uint32_t maker_unary(struct maker *m, enum af_op op, uint32_t a) {
        return maker_node(m, op, &a, 1, NULL, 0, AF_DTYPE_INVALID);
}

uint32_t maker_binary(struct maker *m, enum af_op op, uint32_t a, uint32_t b) {
        uint32_t in[] = {a, b};
        return maker_node(m, op, in, 2, NULL, 0, AF_DTYPE_INVALID);
}

uint32_t maker_cast(struct maker *m, uint32_t a, enum af_dtype to) {
        return maker_node(m, AF_OP_CAST, &a, 1, NULL, 0, to);
}

uint32_t maker_shaped(struct maker *m, enum af_op op, uint32_t a, const struct maker_shape *to) {
        struct af_attr attr = {.key = AF_ATTR_SHAPE, .n = to->rank};
        if (m->error || af_fragment_dims_const(&m->f, to->dims, to->rank, &attr.dims))
                return broken(m, -ENOMEM, "shape");
        return maker_node(m, op, &a, 1, &attr, 1, AF_DTYPE_INVALID);
}

uint32_t maker_reduce(struct maker *m, enum af_op op, uint32_t a, uint32_t axes, bool keepdims, enum af_dtype declared) {
        int64_t list[8];
        uint32_t n = 0;
        for (uint32_t k = 0; k < 8; k++)
                if (axes >> k & 1)
                        list[n++] = k;
        struct af_attr attrs[] = {{.key = AF_ATTR_AXES, .ints = list, .n = n}, {.key = AF_ATTR_KEEPDIMS, .i = keepdims}};
        return maker_node(m, op, &a, 1, attrs, 2, declared);
}

void maker_output_strided(struct maker *m, uint32_t v, const int64_t *strides) {
        struct af_fragment_output o = {.value = m->values[v].name, .has_strides = strides != NULL};
        if (m->error)
                return;
        o.n_strides = strides ? m->values[v].rank : 0;
        int r = strides ? af_fragment_dims_const(&m->f, strides, o.n_strides, &o.strides) : 0;
        if (!r)
                r = af_fragment_add_output(&m->f, &o, NULL);
        if (r)
                broken(m, r, "output");
}

void maker_output(struct maker *m, uint32_t v) {
        maker_output_strided(m, v, NULL);
}
