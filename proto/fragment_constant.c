/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of constants: hexadecimal bits, or numbers in a scalar, a flat list or lists nested as the shape is. */
#include <string.h>

#include "base/digest.h"
#include "proto/fragment_parse.h"
#include "proto/number.h"

struct fill {
        struct af_fragment_parser *p;
        enum af_dtype dtype;
        size_t size; /* of an element */
        uint32_t rank;
        int64_t dims[AF_LIMIT_RANK];
        uint8_t *at; /* next element */
};

static void fill_element(struct fill *fill, const struct af_where *where, const struct af_json_value *item) {
        struct af_fragment_parser *p = fill->p;
        const char *name = af_dtype_name(fill->dtype);
        uint8_t *out = fill->at;

        fill->at += fill->size;
        if (item->kind == AF_JSON_TRUE || item->kind == AF_JSON_FALSE) {
                if (fill->dtype == AF_DTYPE_BOOL)
                        *out = item->kind == AF_JSON_TRUE;
                else
                        af_parse_fail(p, where, NULL, "a bool where a number is expected");
                return;
        }
        if (item->kind != AF_JSON_NUMBER && item->kind != AF_JSON_STRING) {
                af_parse_fail(p, where, NULL, "is not a number");
                return;
        }
        switch (af_number_element(fill->dtype, af_json_text(&p->json, item->at), item->n, out)) {
        case AF_NUMBER_E_SYNTAX:
                af_parse_fail(p, where, af_dtype_kind(fill->dtype) == 'f' ? "infinities and NaN go into bits" : NULL, "is no %s number",
                              name);
                break;
        case AF_NUMBER_E_RANGE:
                af_parse_fail(p, where, NULL, "does not fit %s", name);
                break;
        }
}

/* A list whose elements are at axis `axis`; n must be the axis' length. */
static void fill_list(struct fill *fill, const struct af_where *where, const struct af_json_value *list, uint32_t axis) {
        struct af_where element = {.up = where};
        if (list->n != fill->dims[axis]) {
                af_parse_fail(fill->p, where, NULL, "%u elements where the shape has %lld", list->n, (long long)fill->dims[axis]);
                return;
        }
        af_json_each(item, list) {
                if (axis + 1 == fill->rank)
                        fill_element(fill, &element, item);
                else if (item->kind == AF_JSON_LIST)
                        fill_list(fill, &element, item, axis + 1);
                else
                        af_parse_fail(fill->p, &element, NULL, "is not a list; the shape has %u axes", fill->rank);
                element.index++;
        }
}

static void fill_value(struct fill *fill, const struct af_where *where, const struct af_json_value *value, size_t n_elements) {
        if (value->kind != AF_JSON_LIST) {
                uint8_t *first = fill->at;
                uint8_t scalar[8] = {0};
                /* Checked even where there is no element to take it. */
                fill->at = scalar;
                fill_element(fill, where, value);
                for (size_t i = 0; i < n_elements; i++)
                        memcpy(first + i * fill->size, scalar, fill->size);
                return;
        }
        if (fill->rank == 0) {
                af_parse_fail(fill->p, where, NULL, "is a list; the shape has no axis");
                return;
        }
        bool is_flat = value->n > 0 && value[1].kind != AF_JSON_LIST;
        if (is_flat || (value->n == 0 && n_elements == 0)) {
                fill->rank = 1;
                fill->dims[0] = (int64_t)n_elements;
        }
        fill_list(fill, where, value, 0);
}

static void read_bits(struct af_fragment_parser *p, const struct af_where *where, enum af_dtype dtype, const struct af_json_value *bits,
                      uint8_t *out, size_t n) {
        if (bits->kind != AF_JSON_STRING) {
                af_parse_fail(p, where, NULL, "is not a string");
                return;
        }
        size_t n_hex = bits->n;
        if (n_hex != 2 * n) {
                af_parse_fail(p, where, NULL, "%zu hex digits where dtype and shape make %zu", n_hex, 2 * n);
                return;
        }
        if (!af_unhex(af_json_text(&p->json, bits->at), n_hex, out, n)) {
                af_parse_fail(p, where, NULL, "holds something else than hex digits");
                return;
        }
        for (size_t i = 0; dtype == AF_DTYPE_BOOL && i < n; i++)
                if (out[i] > 1) {
                        af_parse_fail(p, where, NULL, "byte %zu of a bool is neither 00 nor 01", i);
                        return;
                }
}

void af_parse_constant_bytes(struct af_fragment_parser *p, const struct af_where *at, const struct af_fragment_tensor *t,
                             const struct af_json_value *bits, const struct af_json_value *value, uint8_t *out, size_t n_bytes) {
        struct fill fill = {.p = p, .dtype = t->dtype, .size = af_dtype_size(t->dtype), .rank = t->rank, .at = out};

        if (bits) {
                read_bits(p, AF_FIELD(at, "bits"), t->dtype, bits, out, n_bytes);
                return;
        }
        for (uint32_t i = 0; i < t->rank; i++)
                if (!af_expr_is_const(&p->f->exprs, t->dims[i], &fill.dims[i]))
                        return; /* reported with the shape */
        fill_value(&fill, AF_FIELD(at, "value"), value, n_bytes / fill.size);
}
