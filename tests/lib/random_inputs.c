/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/random_graph.h"

/* dtype, shape and strides of input i, and where it ends in elements from its pointer. */
static int describe(const struct af_graph *g, uint32_t i, struct af_tensor *t, int64_t *ret_offset, int64_t *ret_end) {
        const struct af_graph_input *in = &g->inputs[i];
        const struct af_value *v = &g->values[in->value];
        int64_t offset, end;

        *t = (struct af_tensor){.dtype = v->dtype, .rank = v->rank};
        if (!af_value_static_dims(g, in->value, t->dims) || !af_value_static_strides(g, in->value, t->strides) ||
            !af_expr_is_const(&g->exprs, in->offset, &offset))
                return -EINVAL;
        end = offset + 1;
        for (uint32_t k = 0; k < v->rank; k++) {
                if (t->dims[k] == 0) {
                        end = offset;
                        break;
                }
                end += (t->dims[k] - 1) * t->strides[k];
        }
        *ret_offset = offset;
        *ret_end = end;
        return 0;
}

static int make_memory(const struct af_graph *g, struct af_random_input *inputs, uint32_t i, size_t n_bytes) {
        void *base;

        for (uint32_t k = 0; k < i; k++)
                if (g->inputs[k].buffer == g->inputs[i].buffer && inputs[k].n_bytes >= n_bytes) {
                        inputs[i].base = inputs[k].base;
                        inputs[i].n_bytes = inputs[k].n_bytes;
                        return 0;
                }
        if (posix_memalign(&base, 64, AF_ALIGN_UP(n_bytes + 1, (size_t)64)) != 0)
                return -ENOMEM;
        memset(base, 0xff, n_bytes);
        inputs[i].base = base;
        inputs[i].n_bytes = n_bytes;
        return 0;
}

/* The largest input of a buffer is made first, so that the others find room in it. */
static int make_inputs(const struct af_graph *g, uint64_t seed, bool specials, struct af_random_input *inputs) {
        for (uint32_t i = 0; i < g->n_inputs; i++) {
                int64_t offset, end, most = 0;
                for (uint32_t k = 0; k < g->n_inputs; k++) {
                        if (k != i && g->inputs[k].buffer != g->inputs[i].buffer)
                                continue;
                        int r = describe(g, k, &inputs[k].tensor, &offset, &end);
                        if (r < 0)
                                return r;
                        most = AF_MAX(most, end * (int64_t)af_dtype_size(inputs[k].tensor.dtype));
                }
                int r = make_memory(g, inputs, i, (size_t)most);
                if (r < 0)
                        return r;
        }
        for (uint32_t i = 0; i < g->n_inputs; i++) {
                struct af_tensor *t = &inputs[i].tensor;
                int64_t offset, end;
                int r = describe(g, i, t, &offset, &end);
                if (r < 0)
                        return r;
                t->data = (char *)inputs[i].base + offset * af_dtype_size(t->dtype);
                af_tensor_fill(t, seed + i * 0x10001, specials);
        }
        return 0;
}

int af_random_inputs(const struct af_graph *g, uint64_t seed, bool specials, struct af_random_input **ret_inputs) {
        struct af_random_input *inputs = calloc((size_t)g->n_inputs + 1, sizeof(*inputs));
        int r = inputs ? make_inputs(g, seed, specials, inputs) : -ENOMEM;

        if (r < 0)
                af_random_inputs_free(inputs, g->n_inputs);
        else
                *ret_inputs = inputs;
        return r;
}

void af_random_inputs_free(struct af_random_input *inputs, uint32_t n) {
        for (uint32_t i = 0; inputs && i < n; i++) {
                bool shared = false;
                for (uint32_t k = 0; k < i; k++)
                        shared |= inputs[k].base == inputs[i].base;
                if (!shared)
                        free(inputs[i].base);
        }
        free(inputs);
}
