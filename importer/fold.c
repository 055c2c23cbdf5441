/* SPDX-License-Identifier: Apache-2.0 */
/* A small constant evaluator for what computes shapes and parameters: data movement by bytes, arithmetic by numeric/'s definitions. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "importer/import.h"
#include "numeric/expand.h"
#include "numeric/half.h"

#define FOLD_MAX (1 << 22) /* elements of one folded tensor */

struct fold {
        struct import *im;
        const Onnxm__Node *n;
        struct val *const *in;
        uint32_t n_in;
};

static uint8_t *room(struct fold *f, enum af_dtype d, uint32_t rank, const int64_t *dims) {
        int64_t n = 1;
        for (uint32_t i = 0; i < rank; i++) {
                if (dims[i] < 0 || dims[i] > FOLD_MAX)
                        return NULL;
                n *= dims[i];
                if (n > FOLD_MAX)
                        return NULL;
        }
        uint8_t *p = af_arena_alloc(f->im->arena, (size_t)n * af_dtype_size(d));
        if (!p)
                f->im->error = -ENOMEM;
        return p;
}

static const int64_t *ints(struct fold *f, uint32_t i, uint32_t *ret_n) {
        *ret_n = 0;
        return i < f->n_in && f->in[i] ? im_ints(f->im, f->in[i], ret_n) : NULL;
}

static struct val *fold_shape(struct fold *f) {
        const struct val *x = f->in[0];
        int64_t start = im_attr_int(f->im, "start", 0), end = im_attr_int(f->im, "end", x->rank), rank = x->rank;
        start = AF_MAX(0, AF_MIN(rank, start < 0 ? start + rank : start));
        end = AF_MAX(start, AF_MIN(rank, end < 0 ? end + rank : end));
        int64_t n = end - start;
        return im_known(f->im, AF_DTYPE_INT64, 1, &n, af_arena_memdup(f->im->arena, x->dims + start, (size_t)n * 8));
}
static struct val *fold_size(struct fold *f) {
        int64_t n = im_count(f->in[0]);
        return im_known(f->im, AF_DTYPE_INT64, 0, NULL, af_arena_memdup(f->im->arena, &n, 8));
}

static struct val *fold_constant_of_shape(struct fold *f) {
        uint32_t rank;
        const int64_t *dims = ints(f, 0, &rank);
        const Onnxm__Attribute *a = im_attr(f->im, "value");
        struct af_onnx_tensor value = {.dtype = AF_DTYPE_FLOAT32, .bytes = (const uint8_t[4]){0}, .n_bytes = 4};
        if (!dims || rank > AF_LIMIT_RANK || (a && a->t && im_tensor(f->im->arena, a->t, &value, f->im->diags)) ||
            value.n_bytes != af_dtype_size(value.dtype))
                return NULL;
        uint8_t *p = room(f, value.dtype, rank, dims);
        int64_t n = 1;
        for (uint32_t i = 0; p && i < rank; i++)
                n *= dims[i];
        if (n * (int64_t)value.n_bytes > IM_LARGE_BYTES)
                return NULL;
        for (int64_t i = 0; p && i < n; i++)
                memcpy(p + i * value.n_bytes, value.bytes, value.n_bytes);
        return p ? im_known(f->im, value.dtype, rank, dims, p) : NULL;
}

static double as_double(const struct val *v) {
        float x;
        int64_t i = 0;
        if (v->dtype == AF_DTYPE_FLOAT32)
                return memcpy(&x, v->bytes, 4), (double)x;
        if (v->dtype == AF_DTYPE_FLOAT16)
                return (double)af_f16_to_f32(*(const uint16_t *)v->bytes);
        if (v->dtype == AF_DTYPE_BFLOAT16)
                return (double)af_bf16_to_f32(*(const uint16_t *)v->bytes);
        if (v->dtype == AF_DTYPE_INT32)
                return *(const int32_t *)v->bytes;
        if (v->dtype == AF_DTYPE_INT16)
                return *(const int16_t *)v->bytes;
        memcpy(&i, v->bytes, 8);
        return (double)i;
}
static struct val *fold_range(struct fold *f) {
        if (f->n_in < 3)
                return NULL;
        enum af_dtype d = f->in[0]->dtype;
        double start = as_double(f->in[0]), limit = as_double(f->in[1]), delta = as_double(f->in[2]);
        int64_t n = delta != 0 && isfinite((limit - start) / delta) ? (int64_t)AF_MAX(0, ceil((limit - start) / delta)) : -1;
        bool known = af_dtype_kind(d) == 'f' || d == AF_DTYPE_INT32 || d == AF_DTYPE_INT64 || d == AF_DTYPE_INT16;
        uint8_t *p = known && d != AF_DTYPE_FLOAT64 ? room(f, d, 1, &n) : NULL;
        for (int64_t i = 0; p && i < n; i++) {
                double v = start + (double)i * delta;
                float x = (float)v;
                int64_t k = d == AF_DTYPE_FLOAT16 ? af_f16_from_f32(x) : d == AF_DTYPE_BFLOAT16 ? af_bf16_from_f32(x) : (int64_t)v;
                memcpy(p + i * af_dtype_size(d), d == AF_DTYPE_FLOAT32 ? (const void *)&x : &k, af_dtype_size(d));
        }
        return p ? im_known(f->im, d, 1, &n, p) : NULL;
}

static struct val *fold_eye_like(struct fold *f) {
        const struct val *x = f->in[0];
        enum af_dtype d = im_attr(f->im, "dtype") ? im_dtype((int32_t)im_attr_int(f->im, "dtype", 1)) : x->dtype;
        int64_t k = im_attr_int(f->im, "k", 0);
        uint8_t *p = x->rank == 2 && d != AF_DTYPE_INVALID ? room(f, d, 2, x->dims) : NULL;
        float one_f = 1;
        int64_t one = d == AF_DTYPE_FLOAT16 ? 0x3c00 : d == AF_DTYPE_BFLOAT16 ? 0x3f80 : 1;
        double one_d = 1;
        for (int64_t i = 0; p && i < x->dims[0]; i++)
                if (i + k >= 0 && i + k < x->dims[1])
                        memcpy(p + (i * x->dims[1] + i + k) * af_dtype_size(d),
                               d == AF_DTYPE_FLOAT32   ? (const void *)&one_f
                               : d == AF_DTYPE_FLOAT64 ? (const void *)&one_d
                                                       : &one,
                               af_dtype_size(d));
        return p ? im_known(f->im, d, 2, x->dims, p) : NULL;
}

static int64_t product(const int64_t *dims, uint32_t from, uint32_t to) {
        int64_t n = 1;
        for (uint32_t i = from; i < to; i++)
                n *= dims[i];
        return n;
}

static struct val *fold_concat(struct fold *f) {
        struct val *x = f->in[0];
        int64_t dims[AF_LIMIT_RANK], axis = im_axis(f->im, im_attr_int(f->im, "axis", 0), x->rank), at = 0;
        memcpy(dims, x->dims, sizeof(dims));
        dims[axis] = 0;
        for (uint32_t i = 0; i < f->n_in; i++) {
                if (f->in[i]->rank != x->rank || f->in[i]->dtype != x->dtype)
                        return NULL;
                dims[axis] += f->in[i]->dims[axis];
        }
        uint8_t *p = x->rank ? room(f, x->dtype, x->rank, dims) : NULL;
        int64_t outer = product(dims, 0, (uint32_t)axis),
                inner = product(dims, (uint32_t)axis + 1, x->rank) * (int64_t)af_dtype_size(x->dtype);
        for (uint32_t i = 0; p && i < f->n_in; i++) {
                int64_t run = f->in[i]->dims[axis] * inner;
                for (int64_t o = 0; o < outer; o++)
                        memcpy(p + o * dims[axis] * inner + at, f->in[i]->bytes + o * run, (size_t)run);
                at += run;
        }
        return p ? im_known(f->im, x->dtype, x->rank, dims, p) : NULL;
}

static struct val *fold_gather(struct fold *f) {
        struct val *x = f->in[0], *index = f->n_in > 1 ? f->in[1] : NULL;
        uint32_t n;
        const int64_t *which = ints(f, 1, &n);
        if (!which || x->rank < 1 || index->rank + x->rank - 1 > AF_LIMIT_RANK)
                return NULL;
        uint32_t axis = (uint32_t)im_axis(f->im, im_attr_int(f->im, "axis", 0), x->rank), rank = index->rank + x->rank - 1;
        int64_t dims[AF_LIMIT_RANK], run = product(x->dims, axis + 1, x->rank) * (int64_t)af_dtype_size(x->dtype), len = x->dims[axis];
        memcpy(dims, x->dims, axis * sizeof(*dims));
        memcpy(dims + axis, index->dims, index->rank * sizeof(*dims));
        memcpy(dims + axis + index->rank, x->dims + axis + 1, (x->rank - 1 - axis) * sizeof(*dims));
        uint8_t *p = room(f, x->dtype, rank, dims);
        for (int64_t o = 0, at = 0; p && o < product(x->dims, 0, axis); o++)
                for (uint32_t i = 0; i < n; i++, at += run) {
                        int64_t k = which[i] < 0 ? which[i] + len : which[i];
                        if (k < 0 || k >= len)
                                return NULL;
                        memcpy(p + at, x->bytes + (o * len + k) * run, (size_t)run);
                }
        return p ? im_known(f->im, x->dtype, rank, dims, p) : NULL;
}

/* Copies elements that a walk over `dims` meets, at start + sum of index * stride (in elements). */
static struct val *walk(struct fold *f, const struct val *x, uint32_t rank, const int64_t *dims, int64_t at, const int64_t *strides) {
        uint8_t *p = room(f, x->dtype, rank, dims);
        size_t size = af_dtype_size(x->dtype);
        int64_t index[AF_LIMIT_RANK] = {0}, n = product(dims, 0, rank);
        for (int64_t i = 0; p && i < n; i++) {
                memcpy(p + (size_t)i * size, x->bytes + at * (int64_t)size, size);
                for (uint32_t a = rank; a-- > 0;) {
                        at += strides[a];
                        if (++index[a] < dims[a])
                                break;
                        at -= index[a] * strides[a];
                        index[a] = 0;
                }
        }
        return p ? im_known(f->im, x->dtype, rank, dims, p) : NULL;
}
static void row_major(const struct val *x, int64_t *strides) {
        for (uint32_t i = 0; i < x->rank; i++)
                strides[i] = product(x->dims, i + 1, x->rank);
}
static struct val *fold_slice(struct fold *f) {
        const struct val *x = f->in[0];
        struct im_box box;
        int64_t dims[AF_LIMIT_RANK], strides[AF_LIMIT_RANK], at = 0;
        if (!im_slice_box(f->im, f->in, f->n_in, &box))
                return NULL;
        row_major(x, strides);
        for (uint32_t i = 0; i < x->rank; i++) {
                int64_t step = box.step[i], span = box.stop[i] - box.start[i];
                dims[i] = step > 0 ? (span + step - 1) / step : (span + step + 1) / step;
                at += box.start[i] * strides[i];
                strides[i] *= step;
        }
        return walk(f, x, x->rank, dims, at, strides);
}
static struct val *fold_transpose(struct fold *f) {
        const struct val *x = f->in[0];
        const Onnxm__Attribute *a = im_attr(f->im, "perm");
        int64_t dims[AF_LIMIT_RANK], from[AF_LIMIT_RANK], strides[AF_LIMIT_RANK];
        uint32_t seen = 0;
        if (a && a->n_ints != x->rank)
                return NULL;
        row_major(x, from);
        for (uint32_t i = 0; i < x->rank; i++) {
                int64_t axis = a ? im_axis(f->im, a->ints[i], x->rank) : x->rank - 1 - i;
                if (seen & 1u << axis)
                        return NULL; /* no permutation */
                seen |= 1u << axis;
                dims[i] = x->dims[axis];
                strides[i] = from[axis];
        }
        return walk(f, x, x->rank, dims, 0, strides);
}

/* Same elements in another shape: Reshape, Squeeze, Unsqueeze, Identity, Flatten of what parameters need. */
static struct val *fold_view(struct fold *f) {
        struct val *x = f->in[0];
        const char *op = f->n->op_type;
        int64_t dims[AF_LIMIT_RANK];
        uint32_t n = 0, rank = 0;
        if (strcmp(op, "Identity") == 0)
                return im_known(f->im, x->dtype, x->rank, x->dims, x->bytes);
        const Onnxm__Attribute *a = im_attr(f->im, "axes");
        const int64_t *p = f->n_in > 1 ? ints(f, 1, &n) : a ? a->ints : NULL;
        n = f->n_in > 1 ? n : a ? (uint32_t)a->n_ints : 0;
        if (strcmp(op, "Reshape") == 0) {
                int64_t known = 1;
                for (uint32_t i = 0; i < n && i < AF_LIMIT_RANK; i++)
                        if (__builtin_mul_overflow(known, p[i] == -1 ? 1 : p[i] ? p[i] : i < x->rank ? x->dims[i] : 0, &known))
                                return NULL;
                for (uint32_t i = 0; i < n && i < AF_LIMIT_RANK; i++)
                        dims[rank++] = p[i] == -1 ? (known ? im_count(x) / known : 0) : p[i] ? p[i] : x->dims[i];
        } else if (strcmp(op, "Unsqueeze") == 0) {
                for (uint32_t i = 0, from = 0; i < x->rank + n && i < AF_LIMIT_RANK; i++) {
                        bool added = false;
                        for (uint32_t k = 0; k < n; k++)
                                added |= im_axis(f->im, p[k], x->rank + n) == i;
                        dims[rank++] = added ? 1 : x->dims[from++];
                }
        } else {
                for (uint32_t i = 0; i < x->rank; i++) {
                        bool drop = !p && x->dims[i] == 1;
                        for (uint32_t k = 0; k < n; k++)
                                drop |= im_axis(f->im, p[k], x->rank) == i;
                        if (!drop)
                                dims[rank++] = x->dims[i];
                }
        }
        int64_t count = 1;
        for (uint32_t i = 0; i < rank; i++)
                if (dims[i] < 0 || __builtin_mul_overflow(count, dims[i], &count))
                        return NULL;
        return count == im_count(x) ? im_known(f->im, x->dtype, rank, dims, x->bytes) : NULL;
}

/* x's element for output element `at` of `dims`, numpy broadcasting. */
static int64_t broadcast_index(const struct val *x, uint32_t rank, const int64_t *dims, int64_t at) {
        int64_t index = 0, stride = 1;
        for (uint32_t i = 0; i < rank; i++) {
                int64_t k = at % dims[rank - 1 - i];
                at /= dims[rank - 1 - i];
                if (i >= x->rank)
                        continue;
                int64_t d = x->dims[x->rank - 1 - i];
                index += d == 1 ? 0 : k * stride;
                stride *= d;
        }
        return index;
}

static struct val *fold_elementwise(struct fold *f, enum af_op op, enum af_dtype to) {
        struct af_expand_operand operands[3];
        const void *srcs[3];
        int64_t dims[AF_LIMIT_RANK] = {0}, n = 1;
        uint32_t rank = 0;
        if (f->n_in > 3)
                return NULL;
        for (uint32_t i = 0; i < f->n_in; i++)
                rank = AF_MAX(rank, f->in[i]->rank);
        for (uint32_t a = 0; a < rank; a++) {
                dims[a] = 1;
                for (uint32_t i = 0; i < f->n_in; i++) {
                        int64_t d = a + f->in[i]->rank >= rank ? f->in[i]->dims[a + f->in[i]->rank - rank] : 1;
                        if (d != 1 && dims[a] != 1 && d != dims[a])
                                return NULL;
                        dims[a] = d != 1 ? d : dims[a];
                }
                n *= dims[a];
        }
        for (uint32_t i = 0; i < f->n_in; i++) {
                unsigned size = af_dtype_size(f->in[i]->dtype);
                uint8_t *p = room(f, f->in[i]->dtype, rank, dims);
                for (int64_t k = 0; p && k < n; k++)
                        memcpy(p + k * size, f->in[i]->bytes + broadcast_index(f->in[i], rank, dims, k) * size, size);
                if (!p)
                        return NULL;
                operands[i] = (struct af_expand_operand){.dtype = f->in[i]->dtype};
                srcs[i] = p;
        }
        struct af_expand_attrs attrs = {0};
        uint8_t *out = room(f, to, rank, dims);
        void *scratch = malloc(af_eval_scratch_bytes((size_t)n));
        int r = !out || !scratch ? -ENOMEM
                : !af_eval_op_supported(op, operands, f->n_in, to)
                        ? 1
                        : af_eval_op(op, operands, f->n_in, to, &attrs, srcs, out, (size_t)n, scratch);
        free(scratch);
        return r ? NULL : im_known(f->im, to, rank, dims, out);
}

static struct val *fold_cast(struct fold *f) {
        enum af_dtype d = im_dtype((int32_t)im_attr_int(f->im, "to", 0));
        if (strcmp(f->n->op_type, "CastLike") == 0)
                d = f->n_in > 1 ? f->in[1]->dtype : AF_DTYPE_INVALID;
        struct fold one = *f;
        one.n_in = 1;
        if (d == f->in[0]->dtype)
                return im_known(f->im, d, f->in[0]->rank, f->in[0]->dims, f->in[0]->bytes);
        return d == AF_DTYPE_INVALID || d == AF_DTYPE_FLOAT64 || f->in[0]->dtype == AF_DTYPE_FLOAT64
                       ? NULL
                       : fold_elementwise(&one, AF_OP_CAST, d);
}

/* Sum, product, least or largest of a vector of integers. */
static struct val *fold_reduce(struct fold *f) {
        uint32_t n = 0;
        const int64_t *v = f->in[0]->rank == 1 && f->in[0]->dtype == AF_DTYPE_INT64 ? ints(f, 0, &n) : NULL;
        const char *op = f->n->op_type + strlen("Reduce");
        int64_t one = 1, total = n ? v[0] : 0;
        bool keep = im_attr_int(f->im, "keepdims", 1), none = im_attr_int(f->im, "noop_with_empty_axes", 0);
        if (!v || !n || none)
                return NULL;
        for (uint32_t i = 1; i < n; i++)
                total = strcmp(op, "Prod") == 0  ? (int64_t)((uint64_t)total * (uint64_t)v[i])
                        : strcmp(op, "Sum") == 0 ? (int64_t)((uint64_t)total + (uint64_t)v[i])
                        : strcmp(op, "Min") == 0 ? AF_MIN(total, v[i])
                                                 : AF_MAX(total, v[i]);
        return im_known(f->im, AF_DTYPE_INT64, keep, &one, af_arena_memdup(f->im->arena, &total, 8));
}

static const struct {
        const char *name;
        struct val *(*run)(struct fold *f);
} movers[] = {
        {"Shape", fold_shape},         {"Size", fold_size},        {"ConstantOfShape", fold_constant_of_shape},
        {"Range", fold_range},         {"EyeLike", fold_eye_like}, {"Concat", fold_concat},
        {"Gather", fold_gather},       {"Slice", fold_slice},      {"Reshape", fold_view},
        {"Squeeze", fold_view},        {"Unsqueeze", fold_view},   {"Identity", fold_view},
        {"Cast", fold_cast},           {"CastLike", fold_cast},    {"ReduceProd", fold_reduce},
        {"ReduceSum", fold_reduce},    {"ReduceMin", fold_reduce}, {"ReduceMax", fold_reduce},
        {"Transpose", fold_transpose},
};
static const struct {
        const char *name;
        enum af_op op;
        enum af_dtype to; /* INVALID: as the first operand */
} arithmetic[] = {
        {"Add", AF_OP_ADD, 0},
        {"Sub", AF_OP_SUB, 0},
        {"Mul", AF_OP_MUL, 0},
        {"Div", AF_OP_DIV, 0},
        {"Neg", AF_OP_NEG, 0},
        {"Abs", AF_OP_ABS, 0},
        {"Floor", AF_OP_FLOOR, 0},
        {"Ceil", AF_OP_CEIL, 0},
        {"Max", AF_OP_MAXIMUM, 0},
        {"Min", AF_OP_MINIMUM, 0},
        {"Equal", AF_OP_EQ, AF_DTYPE_BOOL},
        {"Greater", AF_OP_GT, AF_DTYPE_BOOL},
        {"Less", AF_OP_LT, AF_DTYPE_BOOL},
        {"GreaterOrEqual", AF_OP_GE, AF_DTYPE_BOOL},
        {"LessOrEqual", AF_OP_LE, AF_DTYPE_BOOL},
        {"Not", AF_OP_LOGICAL_NOT, AF_DTYPE_BOOL},
        {"And", AF_OP_LOGICAL_AND, AF_DTYPE_BOOL},
        {"Or", AF_OP_LOGICAL_OR, AF_DTYPE_BOOL},
        {"Sqrt", AF_OP_SQRT, 0},
        {"Pow", AF_OP_POW, 0},
        {"Reciprocal", AF_OP_RECIPROCAL, 0},
        {"Mod", AF_OP_REMAINDER, 0},
};

bool im_foldable(const char *op) {
        for (size_t i = 0; i < AF_ARRAY_SIZE(movers); i++)
                if (strcmp(movers[i].name, op) == 0)
                        return true;
        for (size_t i = 0; i < AF_ARRAY_SIZE(arithmetic); i++)
                if (strcmp(arithmetic[i].name, op) == 0)
                        return true;
        return strcmp(op, "Where") == 0;
}

struct val *im_fold(struct import *im, const Onnxm__Node *n, struct val *const *in, uint32_t n_in) {
        struct fold f = {.im = im, .n = n, .in = in, .n_in = n_in};
        const Onnxm__Node *before = im->node;
        struct val *v = NULL;
        for (uint32_t i = 0; i < n_in; i++)
                if (!in[i])
                        return NULL;
        if (!n_in)
                return NULL;
        im->node = n; /* attributes are the folded node's */
        for (size_t i = 0; i < AF_ARRAY_SIZE(movers); i++)
                if (strcmp(movers[i].name, n->op_type) == 0)
                        v = movers[i].run(&f);
        for (size_t i = 0; !v && !im->error && i < AF_ARRAY_SIZE(arithmetic); i++)
                if (strcmp(arithmetic[i].name, n->op_type) == 0)
                        v = fold_elementwise(&f, im_attr_int(im, "fmod", 0) ? AF_OP_FMOD : arithmetic[i].op,
                                             arithmetic[i].to ? arithmetic[i].to : in[0]->dtype);
        if (!v && !im->error && strcmp(n->op_type, "Where") == 0 && n_in == 3)
                v = fold_elementwise(&f, AF_OP_WHERE, in[1]->dtype);
        im->node = before;
        return v;
}
