/* SPDX-License-Identifier: Apache-2.0 */
/* A composite is what its decomposition computes: that graph is run, node by node, on the operands. */
#include <errno.h>
#include <stdlib.h>

#include "compiler/reference/internal.h"
#include "compiler/rewrite/rewrite.h"

int af_reference_composite(const struct af_reference_node *r, const struct af_tensor *in, struct af_tensor *out) {
        const int64_t **dims = calloc((size_t)r->n->n_in + 1, sizeof(*dims));
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        struct af_tensor result = {0};
        struct af_graph defined;

        af_arena_init(&arena, 0);
        if (!dims)
                return -ENOMEM;
        for (uint32_t j = 0; j < r->n->n_in; j++)
                dims[j] = in[j].dims;
        int e = af_rewrite_define(&arena, r->g, r->n, dims, out->dims, &defined);
        free(dims);
        if (e > 0) {
                *r->ret_why = "no decomposition for these operands";
                return AF_REFERENCE_E_UNSUPPORTED;
        }
        if (e == 0)
                e = af_reference_run(&defined, in, &result, NULL, r->ret_why);
        if (e == 0)
                e = af_reference_copy(&result, out);
        free(result.data);
        return e;
}
