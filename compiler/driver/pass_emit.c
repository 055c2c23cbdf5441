/* SPDX-License-Identifier: Apache-2.0 */
/* emit: loop tree -> source, kernel key and symbol; groups with equal sources that are launched alike share one kernel. */
#include <errno.h>
#include <string.h>

#include "compiler/driver/job.h"

static int emit(struct af_job *job, struct af_kernel_out *k, struct af_buf *text, struct af_buf *symbol) {
        af_buf_clear(text);
        af_buf_clear(symbol);
        int r = af_codegen_emit(k->kernel, &job->env->templates, text, &k->tiling, job->diags);
        if (r)
                return r < 0 ? r : AF_DRIVER_E_COMPILE;
        af_key_kernel(text->data, text->size, &job->env->toolchain.closure_digest, job->env->toolchain.flags, &k->key);
        af_codegen_symbol(k->kernel, &k->key, symbol);
        if (af_buf_error(text) || af_buf_error(symbol))
                return -ENOMEM;
        k->symbol = af_arena_memdup(job->arena, symbol->data, symbol->size);
        if (!k->symbol)
                return -ENOMEM;
        af_buf_clear(symbol);
        af_codegen_instantiate(text->data, text->size, k->symbol, symbol);
        if (af_buf_error(symbol))
                return -ENOMEM;
        k->source = af_arena_memdup(job->arena, symbol->data, symbol->size);
        k->source_size = (uint32_t)symbol->size;
        return k->source ? 0 : -ENOMEM;
}

/* Whether one entry of the bundle serves both: with symbols, equal sources may be given different sizes. */
static bool same_launch(const struct af_kernel_out *a, const struct af_kernel_out *b) {
        const struct af_kernel *k = a->kernel, *o = b->kernel;

        if (!af_digest_equal(&a->key, &b->key) || a->tiling.n != b->tiling.n || k->block_dim != o->block_dim ||
            k->block_dim_x != o->block_dim_x || k->workspace_bytes != o->workspace_bytes || k->workspace_x != o->workspace_x ||
            k->workspace_zeroed != o->workspace_zeroed)
                return false;
        for (uint32_t i = 0; i < a->tiling.n; i++) {
                const struct af_tiling_field *f = &a->tiling.fields[i], *g = &b->tiling.fields[i];

                if (f->type != g->type || f->x != g->x || f->value != g->value)
                        return false;
        }
        return true;
}

/* Open-addressed index over keys, so that 10^4 kernels stay linear. */
static uint32_t find_or_add(const struct af_job *job, uint32_t *table, uint32_t mask, uint32_t group, uint32_t *n_entries) {
        const struct af_digest *key = &job->kernels[group].key;
        uint32_t h;
        memcpy(&h, key->bytes, sizeof(h));
        for (uint32_t at = h & mask;; at = (at + 1) & mask) {
                if (table[at] == AF_NONE) {
                        table[at] = group;
                        return (*n_entries)++;
                }
                if (same_launch(&job->kernels[table[at]], &job->kernels[group]))
                        return job->kernels[table[at]].entry;
        }
}

int af_pass_emit(struct af_job *job) {
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        AF_CLEANUP(af_buf_deinit) struct af_buf symbol = AF_BUF_INIT;
        uint32_t n = job->fusion.n_groups, size = 16, n_entries = 0;
        while (size < 2 * n)
                size *= 2;
        uint32_t *table = af_arena_calloc(job->arena, size, sizeof(*table));
        if (!table)
                return -ENOMEM;
        memset(table, 0xff, size * sizeof(*table));
        for (uint32_t i = 0; i < n; i++) {
                struct af_kernel_out *k = &job->kernels[i];
                if (k->alike != i) { /* the same source: written once */
                        const struct af_kernel_out *first = &job->kernels[k->alike];
                        k->key = first->key;
                        k->source = first->source;
                        k->source_size = first->source_size;
                        k->symbol = first->symbol;
                        k->entry = first->entry;
                        k->workspace_buffer = AF_NONE;
                        continue;
                }
                int r = emit(job, k, &text, &symbol);
                if (r)
                        return r;
                job->kernels[i].entry = find_or_add(job, table, size - 1, i, &n_entries);
                job->kernels[i].workspace_buffer = AF_NONE;
        }
        return 0;
}
