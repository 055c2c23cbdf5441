/* SPDX-License-Identifier: Apache-2.0 */
/* Running sums along an axis, in index order: floats in float32 (float64: in double), integers and bools in int64, wrapping. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/reference/internal.h"

/* One line of n elements, `step` bytes apart; from and to start at its first element or, in reverse, at its last. */
struct line {
        enum af_dtype from_dtype, to_dtype;
        const char *from;
        char *to;
        int64_t n, from_step, to_step;
        bool exclusive;
};

static int64_t integer_of(const void *p, enum af_dtype d) {
        int64_t v = 0;

        if (d == AF_DTYPE_INT64)
                memcpy(&v, p, sizeof(v));
        else
                v = (int64_t)af_reference_number(p, d);
        return v;
}

static void sum_integers(const struct line *l) {
        uint64_t sum = 0;

        for (int64_t i = 0; i < l->n; i++) {
                uint64_t next = sum + (uint64_t)integer_of(l->from + i * l->from_step, l->from_dtype);
                memcpy(l->to + i * l->to_step, l->exclusive ? &sum : &next, af_dtype_size(l->to_dtype));
                sum = next;
        }
}

static void sum_floats(const struct line *l) {
        float sum = 0;

        for (int64_t i = 0; i < l->n; i++) {
                float next = sum + (float)af_reference_number(l->from + i * l->from_step, l->from_dtype);
                af_reference_float_put(l->to + i * l->to_step, l->to_dtype, (double)(l->exclusive ? sum : next));
                sum = next;
        }
}

static void sum_doubles(const struct line *l) {
        double sum = 0;

        for (int64_t i = 0; i < l->n; i++) {
                double next = sum + af_reference_number(l->from + i * l->from_step, l->from_dtype);
                memcpy(l->to + i * l->to_step, l->exclusive ? &sum : &next, sizeof(sum));
                sum = next;
        }
}

static void sum_line(const struct line *l) {
        if (af_dtype_kind(l->to_dtype) != 'f')
                sum_integers(l);
        else if (l->to_dtype == AF_DTYPE_FLOAT64)
                sum_doubles(l);
        else
                sum_floats(l);
}

int af_reference_scan(const struct af_reference_node *r, const struct af_tensor *in, struct af_tensor *out) {
        const struct af_attr *axis_attr = af_node_attr(r->n, AF_ATTR_AXIS), *exclusive = af_node_attr(r->n, AF_ATTR_EXCLUSIVE);
        const struct af_attr *reverse = af_node_attr(r->n, AF_ATTR_REVERSE);
        uint32_t axis = axis_attr ? (uint32_t)axis_attr->i : 0;
        int64_t index[AF_LIMIT_RANK] = {0}, from_size = af_dtype_size(in->dtype), to_size = af_dtype_size(out->dtype);

        if (in->rank != out->rank || axis >= in->rank || memcmp(in->dims, out->dims, in->rank * sizeof(*in->dims)) != 0) {
                *r->ret_why = "the result has another shape";
                return AF_REFERENCE_E_SHAPE;
        }
        int64_t n = in->dims[axis], count = af_tensor_count(in);
        bool back = reverse && reverse->i;
        struct line l = {.from_dtype = in->dtype, .to_dtype = out->dtype, .n = n, .exclusive = exclusive && exclusive->i};
        l.from_step = (back ? -1 : 1) * in->strides[axis] * from_size;
        l.to_step = (back ? -1 : 1) * out->strides[axis] * to_size;
        for (int64_t k = 0; count > 0 && k < count / n; k++) {
                int64_t from = back ? (n - 1) * in->strides[axis] : 0, to = back ? (n - 1) * out->strides[axis] : 0;
                for (uint32_t i = 0; i < in->rank; i++) {
                        from += index[i] * in->strides[i];
                        to += index[i] * out->strides[i];
                }
                l.from = (const char *)in->data + from * from_size;
                l.to = (char *)out->data + to * to_size;
                sum_line(&l);
                for (uint32_t i = in->rank; i-- > 0;) { /* the next line: over all axes but one */
                        if (i == axis)
                                continue;
                        if (++index[i] < in->dims[i])
                                break;
                        index[i] = 0;
                }
        }
        return 0;
}
