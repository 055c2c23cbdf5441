/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/eval.h"

#include <stdlib.h>
#include <string.h>

#include "numeric/half.h"
#include "tests/lib/random_graph.h"

double af_test_number_get(const void *p, enum af_dtype d) {
        uint16_t half;

        switch (d) {
        case AF_DTYPE_BOOL:
        case AF_DTYPE_UINT8:
                return *(const uint8_t *)p;
        case AF_DTYPE_INT8:
                return *(const int8_t *)p;
        case AF_DTYPE_INT16:
                return *(const int16_t *)p;
        case AF_DTYPE_INT32:
                return *(const int32_t *)p;
        case AF_DTYPE_INT64:
                return (double)*(const int64_t *)p;
        case AF_DTYPE_FLOAT32:
                return *(const float *)p;
        case AF_DTYPE_FLOAT64:
                return *(const double *)p;
        default:
                memcpy(&half, p, sizeof(half));
                return d == AF_DTYPE_FLOAT16 ? af_f16_to_f32(half) : af_bf16_to_f32(half);
        }
}

void af_test_number_put(void *p, enum af_dtype d, double v) {
        float single = (float)v;
        uint16_t half = d == AF_DTYPE_FLOAT16 ? af_f16_from_f32(single) : af_bf16_from_f32(single);
        int64_t integer = af_dtype_kind(d) == 'f' ? 0 : (int64_t)v;

        if (d == AF_DTYPE_FLOAT64)
                memcpy(p, &v, sizeof(v));
        else if (d == AF_DTYPE_FLOAT32)
                memcpy(p, &single, sizeof(single));
        else if (af_dtype_kind(d) == 'f')
                memcpy(p, &half, sizeof(half));
        else
                memcpy(p, &integer, af_dtype_size(d));
}

void af_test_numbers_put(struct af_tensor *t, const double *values) {
        int64_t index[AF_LIMIT_RANK] = {0}, count = 1;
        unsigned size = af_dtype_size(t->dtype);

        for (uint32_t k = 0; k < t->rank; k++)
                count *= t->dims[k];
        for (int64_t i = 0; i < count; i++) {
                int64_t at = 0;
                for (uint32_t k = 0; k < t->rank; k++)
                        at += index[k] * t->strides[k];
                af_test_number_put((char *)t->data + at * size, t->dtype, values[i]);
                for (uint32_t k = t->rank; k-- > 0 && ++index[k] == t->dims[k];)
                        index[k] = 0;
        }
}

void af_test_eval(struct af_test_eval *e, const char *text, const double *const *inputs) {
        struct af_random_input *memory = NULL;
        struct af_tensor *tensors;

        *e = (struct af_test_eval){.r = -1000};
        af_test_graph_make(&e->t, text);
        af_test_diags_print(&e->t.diags);
        if (e->t.r != 0 || af_random_inputs(&e->t.graph, 1, false, &memory) != 0)
                return;
        tensors = calloc((size_t)e->t.graph.n_inputs + 1, sizeof(*tensors));
        e->outputs = calloc((size_t)e->t.graph.n_outputs + 1, sizeof(*e->outputs));
        for (uint32_t i = 0; i < e->t.graph.n_inputs; i++) {
                tensors[i] = memory[i].tensor;
                af_test_numbers_put(&tensors[i], inputs[i]);
        }
        e->r = af_reference_run(&e->t.graph, tensors, e->outputs, NULL, &e->why);
        free(tensors);
        af_random_inputs_free(memory, e->t.graph.n_inputs);
}

double af_test_output(const struct af_test_eval *e, uint32_t k, int64_t i) {
        const struct af_tensor *t = &e->outputs[k];

        return af_test_number_get((const char *)t->data + i * af_dtype_size(t->dtype), t->dtype);
}

void af_test_eval_deinit(struct af_test_eval *e) {
        for (uint32_t i = 0; e->outputs && i < e->t.graph.n_outputs; i++)
                free(e->outputs[i].data);
        free(e->outputs);
        af_test_graph_deinit(&e->t);
}
