/* SPDX-License-Identifier: Apache-2.0 */
/* What handlers build with: known tensors, parameters, attributes, common nodes. */
#include <errno.h>
#include <string.h>

#include "importer/import.h"
#include "numeric/half.h"

int64_t im_count(const struct val *v) {
        int64_t n = 1;
        for (uint32_t i = 0; i < v->rank; i++)
                if (v->dims[i] == 0)
                        return 0;
                else if (__builtin_mul_overflow(n, v->dims[i], &n))
                        n = INT64_MAX;
        return n;
}

struct val *im_known(struct import *im, enum af_dtype d, uint32_t rank, const int64_t *dims, const void *bytes) {
        struct val *v = af_arena_alloc(im->arena, sizeof(*v));
        if (!v) {
                im->error = -ENOMEM;
                return NULL;
        }
        *v = (struct val){.dtype = d, .rank = rank, .bytes = bytes, .constant = true, .input = -1};
        if (rank)
                memcpy(v->dims, dims, rank * sizeof(*dims));
        return v;
}

#define KNOWN_DEPTH 64

static const uint8_t *bytes_of(struct import *im, struct val *v, unsigned depth) {
        struct val *in[ONNX_MAX_IO];
        if (v->bytes || im->error || depth > KNOWN_DEPTH)
                return v->bytes;
        if (v->input >= 0) {
                v->bytes = im->feeds && (uint32_t)v->input < im->n_feeds ? im->feeds[v->input].bytes : NULL;
                im->ret->by_value[v->input] |= v->bytes != NULL;
                return v->bytes;
        }
        const Onnxm__Node *n = v->producer;
        if (!n || !im_foldable(n->op_type) || n->n_input > ONNX_MAX_IO)
                return NULL;
        for (size_t i = 0; i < n->n_input; i++) {
                in[i] = n->input[i][0] ? im_lookup(im, n->input[i]) : NULL;
                if (in[i] && strcmp(n->op_type, "Shape") != 0 && strcmp(n->op_type, "Size") != 0 && !bytes_of(im, in[i], depth + 1))
                        return NULL;
        }
        struct val *folded = im_fold(im, n, in, (uint32_t)n->n_input);
        return v->bytes = folded ? folded->bytes : NULL;
}

const uint8_t *im_bytes(struct import *im, struct val *v) {
        return v ? bytes_of(im, v, 0) : NULL;
}

const int64_t *im_ints(struct import *im, struct val *v, uint32_t *ret_n) {
        const uint8_t *bytes = im_bytes(im, v);
        *ret_n = 0;
        if (!bytes || (v->dtype != AF_DTYPE_INT64 && v->dtype != AF_DTYPE_INT32) || im_count(v) > AF_LIMIT_NODE_INPUTS) {
                im_refuse(im, "shape parameter of %s is not known", im->node->op_type);
                return NULL;
        }
        uint32_t n = (uint32_t)im_count(v);
        int64_t *out = af_arena_calloc(im->arena, n, sizeof(*out));
        if (!out) {
                im->error = -ENOMEM;
                return NULL;
        }
        for (uint32_t i = 0; i < n; i++) {
                int32_t narrow;
                if (v->dtype == AF_DTYPE_INT64)
                        memcpy(&out[i], bytes + 8 * i, 8);
                else
                        memcpy(&narrow, bytes + 4 * i, 4), out[i] = narrow;
        }
        *ret_n = n;
        return out;
}

const Onnxm__Attribute *im_attr(const struct import *im, const char *name) {
        for (size_t i = 0; i < im->node->n_attribute; i++)
                if (im->node->attribute[i]->name && strcmp(im->node->attribute[i]->name, name) == 0)
                        return im->node->attribute[i];
        return NULL;
}
int64_t im_attr_int(const struct import *im, const char *name, int64_t otherwise) {
        const Onnxm__Attribute *a = im_attr(im, name);
        return a ? a->i : otherwise;
}
double im_attr_float(const struct import *im, const char *name, double otherwise) {
        const Onnxm__Attribute *a = im_attr(im, name);
        return a ? (double)a->f : otherwise;
}
int64_t im_axis(struct import *im, int64_t axis, uint32_t rank) {
        if (axis < -(int64_t)rank || axis >= (int64_t)AF_MAX(rank, 1u)) {
                im_refuse(im, "shape: axis of %s out of range", im->node->op_type);
                return 0;
        }
        return axis < 0 ? axis + rank : axis;
}

struct val *im_unary(struct import *im, enum af_op op, struct val *x) {
        return im_node(im, op, &x, 1, NULL, 0, AF_DTYPE_INVALID);
}
struct val *im_binary(struct import *im, enum af_op op, struct val *x, struct val *y) {
        return im_node(im, op, (struct val *[]){x, y}, 2, NULL, 0, AF_DTYPE_INVALID);
}
struct val *im_where(struct import *im, struct val *c, struct val *x, struct val *y) {
        return im_node(im, AF_OP_WHERE, (struct val *[]){c, x, y}, 3, NULL, 0, AF_DTYPE_INVALID);
}
struct val *im_cast(struct import *im, struct val *x, enum af_dtype d) {
        if (!im->error && x && x->dtype == d)
                return x;
        if (d == AF_DTYPE_INVALID || d == AF_DTYPE_FLOAT64)
                im_refuse(im, "dtype %s", d == AF_DTYPE_FLOAT64 ? "float64" : "that fragments do not have");
        return im_node(im, AF_OP_CAST, &x, 1, NULL, 0, d);
}

struct val *im_scalar(struct import *im, enum af_dtype d, double value) {
        uint8_t *bytes = af_arena_alloc(im->arena, 8);
        float f = (float)value;
        int64_t i = (int64_t)value;
        uint16_t h;
        if (!bytes) {
                im->error = -ENOMEM;
                return NULL;
        }
        switch (d) {
        case AF_DTYPE_FLOAT16:
                h = af_f16_from_f32(f);
                memcpy(bytes, &h, 2);
                break;
        case AF_DTYPE_BFLOAT16:
                h = af_bf16_from_f32(f);
                memcpy(bytes, &h, 2);
                break;
        case AF_DTYPE_FLOAT32:
                memcpy(bytes, &f, 4);
                break;
        case AF_DTYPE_FLOAT64:
                memcpy(bytes, &value, 8);
                break;
        default:
                memcpy(bytes, &i, 8);
        }
        return im_known(im, d, 0, NULL, bytes);
}
struct val *im_binary_scalar(struct import *im, enum af_op op, struct val *x, double value) {
        return x ? im_binary(im, op, x, im_scalar(im, x->dtype, value)) : NULL;
}
struct val *im_clip(struct import *im, struct val *x, double lo, double hi) {
        struct af_attr attrs[] = {{.key = AF_ATTR_MIN, .f = lo}, {.key = AF_ATTR_MAX, .f = hi}};
        return im_node(im, AF_OP_CLIP, &x, 1, attrs, 2, AF_DTYPE_INVALID);
}
struct val *im_reduce(struct import *im, enum af_op op, struct val *x, const int64_t *axes, uint32_t n_axes, bool keepdims) {
        struct af_attr attrs[] = {{.key = AF_ATTR_AXES, .ints = axes, .n = n_axes}, {.key = AF_ATTR_KEEPDIMS, .i = keepdims}};
        return im_node(im, op, &x, 1, attrs, 2,
                       im->error || !x || op == AF_OP_REDUCE_ANY || op == AF_OP_REDUCE_ALL ? AF_DTYPE_INVALID : x->dtype);
}

static struct val *to_shape(struct import *im, enum af_op op, struct val *x, uint32_t rank, const int64_t *dims) {
        const uint32_t *ids;
        int r = im->error ? im->error : rank > AF_LIMIT_RANK ? AF_ONNX_E_REFUSED : af_fragment_dims_const(im->f, dims, rank, &ids);
        if (r) {
                im_refuse(im, "shape of rank %u", rank);
                return NULL;
        }
        struct af_attr shape = {.key = AF_ATTR_SHAPE, .dims = ids, .n = rank};
        return im_node(im, op, &x, 1, &shape, 1, AF_DTYPE_INVALID);
}
struct val *im_reshape(struct import *im, struct val *x, uint32_t rank, const int64_t *dims) {
        if (x && x->rank == rank && rank && memcmp(x->dims, dims, rank * sizeof(*dims)) == 0)
                return x;
        return to_shape(im, AF_OP_RESHAPE, x, rank, dims);
}
struct val *im_expand(struct import *im, struct val *x, uint32_t rank, const int64_t *dims) {
        return to_shape(im, AF_OP_BROADCAST, x, rank, dims);
}
