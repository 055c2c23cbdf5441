/* SPDX-License-Identifier: Apache-2.0 */
/* TensorProto to bytes, and comparing with ONNX's tolerances. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "importer/import.h"
#include "numeric/half.h"

static const struct {
        const char *name;
        enum af_dtype dtype;
        unsigned bytes;
} elem_types[] = {
        [1] = {"float32", AF_DTYPE_FLOAT32, 4},    [2] = {"uint8", AF_DTYPE_UINT8, 1},        [3] = {"int8", AF_DTYPE_INT8, 1},
        [4] = {"uint16", AF_DTYPE_INVALID, 2},     [5] = {"int16", AF_DTYPE_INT16, 2},        [6] = {"int32", AF_DTYPE_INT32, 4},
        [7] = {"int64", AF_DTYPE_INT64, 8},        [8] = {"string", AF_DTYPE_INVALID, 0},     [9] = {"bool", AF_DTYPE_BOOL, 1},
        [10] = {"float16", AF_DTYPE_FLOAT16, 2},   [11] = {"float64", AF_DTYPE_FLOAT64, 8},   [12] = {"uint32", AF_DTYPE_INVALID, 4},
        [13] = {"uint64", AF_DTYPE_INVALID, 8},    [14] = {"complex64", AF_DTYPE_INVALID, 8}, [15] = {"complex128", AF_DTYPE_INVALID, 16},
        [16] = {"bfloat16", AF_DTYPE_BFLOAT16, 2},
};

enum af_dtype im_dtype(int32_t elem_type) {
        return elem_type > 0 && elem_type < (int32_t)AF_ARRAY_SIZE(elem_types) ? elem_types[elem_type].dtype : AF_DTYPE_INVALID;
}
const char *im_elem_name(int32_t elem_type) {
        return elem_type > 0 && elem_type < (int32_t)AF_ARRAY_SIZE(elem_types) ? elem_types[elem_type].name : "unknown";
}

static int bad(struct af_diags *diags, const char *name, const char *what) {
        af_diag_error(diags, name, "%s", what);
        return AF_ONNX_E_INVALID;
}

/* Copies n elements of a typed field; each element of int32_data holds one narrower one. */
static int from_fields(const Onnxm__Tensor *t, unsigned size, size_t n, uint8_t *out, struct af_diags *diags) {
        const char *name = t->name ? t->name : "tensor";
        if (t->n_float_data == n && n && size == 4) {
                memcpy(out, t->float_data, n * 4);
        } else if (t->n_int32_data == n && n && size <= 4) {
                for (size_t i = 0; i < n; i++)
                        memcpy(out + i * size, &t->int32_data[i], size); /* little-endian: the low bytes */
        } else if (t->n_int64_data == n && n && size == 8) {
                memcpy(out, t->int64_data, n * 8);
        } else if (t->n_double_data == n && n && size == 8) {
                memcpy(out, t->double_data, n * 8);
        } else if (t->n_uint64_data == n && n && size <= 8) {
                for (size_t i = 0; i < n; i++)
                        memcpy(out + i * size, &t->uint64_data[i], size);
        } else if (n) {
                return bad(diags, name, "the tensor's data does not have as many elements as its shape");
        }
        return 0;
}

int im_tensor(struct af_arena *arena, const Onnxm__Tensor *t, struct af_onnx_tensor *ret, struct af_diags *diags) {
        const char *name = t->name ? t->name : "";
        size_t n = 1;
        unsigned size = t->data_type > 0 && t->data_type < (int32_t)AF_ARRAY_SIZE(elem_types) ? elem_types[t->data_type].bytes : 0;
        *ret = (struct af_onnx_tensor){.name = af_arena_strdup(arena, name), .dtype = im_dtype(t->data_type), .elem_type = t->data_type};
        if (!ret->name)
                return -ENOMEM;
        if (t->n_dims > AF_LIMIT_RANK)
                return bad(diags, name, "a tensor of too many dimensions");
        if (!size || t->data_location) {
                af_diag_error(diags, name, t->data_location ? "shape data in another file" : "dtype %s", im_elem_name(t->data_type));
                return AF_ONNX_E_REFUSED;
        }
        for (size_t i = 0; i < t->n_dims; i++) {
                if (t->dims[i] < 0 || (t->dims[i] && n > ((size_t)1 << 40) / (size_t)t->dims[i]))
                        return bad(diags, name, "a tensor's dimensions are negative or too large");
                ret->dims[ret->rank++] = t->dims[i];
                n *= (size_t)t->dims[i];
        }
        if (t->has_raw_data && t->raw_data.len != n * size && (t->raw_data.len || n))
                return bad(diags, name, "the tensor's raw data does not have the size of its shape");
        uint8_t *bytes = af_arena_alloc(arena, n * size);
        if (!bytes)
                return -ENOMEM;
        int r = 0;
        if (t->has_raw_data && n)
                memcpy(bytes, t->raw_data.data, n * size);
        else
                r = from_fields(t, size, n, bytes, diags);
        for (size_t i = 0; !r && ret->dtype == AF_DTYPE_BOOL && i < n; i++)
                bytes[i] = bytes[i] != 0;
        ret->bytes = bytes;
        ret->n_bytes = n * size;
        return r;
}

int af_onnx_tensor_read(struct af_arena *arena, const void *p, size_t n, struct af_onnx_tensor *ret_tensor, struct af_diags *diags) {
        Onnxm__Tensor *t = onnxm__tensor__unpack(NULL, n, p);
        if (!t)
                return bad(diags, "tensor", "not an ONNX tensor");
        int r = im_tensor(arena, t, ret_tensor, diags);
        onnxm__tensor__free_unpacked(t, NULL);
        return r;
}

static double element(const struct af_onnx_tensor *t, size_t i) {
        uint16_t h;
        float f;
        double d;
        switch (t->dtype) {
        case AF_DTYPE_FLOAT16:
                memcpy(&h, t->bytes + 2 * i, 2);
                return (double)af_f16_to_f32(h);
        case AF_DTYPE_BFLOAT16:
                memcpy(&h, t->bytes + 2 * i, 2);
                return (double)af_bf16_to_f32(h);
        case AF_DTYPE_FLOAT32:
                memcpy(&f, t->bytes + 4 * i, 4);
                return (double)f;
        default:
                memcpy(&d, t->bytes + 8 * i, 8);
                return d;
        }
}

bool af_onnx_equal(const struct af_onnx_tensor *got, const struct af_onnx_tensor *want, char *text, size_t text_size) {
        struct af_onnx_tensor bits = *want;
        if (want->elem_type == IM_ELEM_UINT16 && got->dtype == AF_DTYPE_BFLOAT16) {
                bits.dtype = AF_DTYPE_BFLOAT16;
                want = &bits;
        }
        size_t n = 1, size = af_dtype_size(want->dtype);
        if (got->dtype != want->dtype || !size) {
                snprintf(text, text_size, "dtype %s, expected %s", af_dtype_name(got->dtype), im_elem_name(want->elem_type));
                return false;
        }
        bool same = got->rank == want->rank;
        for (uint32_t i = 0; i < want->rank; i++) {
                same = same && got->dims[i] == want->dims[i];
                n *= (size_t)want->dims[i];
        }
        if (!same) {
                snprintf(text, text_size, "another shape than expected");
                return false;
        }
        bool floats = af_dtype_kind(want->dtype) == 'f';
        for (size_t i = 0; i < n; i++) {
                if (!floats && memcmp(got->bytes + i * size, want->bytes + i * size, size) == 0)
                        continue;
                double a = floats ? element(got, i) : 0, b = floats ? element(want, i) : 0;
                if (floats && (a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-7 + 1e-3 * fabs(b)))
                        continue;
                if (floats)
                        snprintf(text, text_size, "element %zu is %.9g, expected %.9g", i, a, b);
                else
                        snprintf(text, text_size, "element %zu differs", i);
                return false;
        }
        return true;
}
