/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/run_bundle.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ARGS 256u
#define GUARD    512u /* bytes after each buffer that no kernel may touch */

struct run {
        const struct af_graph *g;
        const struct af_bundle *b;
        const struct af_tensor *inputs;
        uint8_t **memory; /* per buffer */
        uint8_t *temp;
        const struct run_launcher *launcher; /* or NULL */
        struct run_result *result;
};

static int fail(struct run_result *result, const char *fmt, ...) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(result->error, sizeof(result->error), fmt, ap);
        va_end(ap);
        return -1;
}

static const struct af_bundle_buffer *buffer_at(const struct af_bundle *b, uint32_t i) {
        return af_bundle_at(b, AF_SECTION_BUFFERS, i);
}

static int map_buffers(struct run *run) {
        uint32_t n = af_bundle_count(run->b, AF_SECTION_BUFFERS);
        uint64_t end = 0;
        run->memory = calloc(n + 1, sizeof(*run->memory));
        for (uint32_t i = 0; i < n; i++) {
                const struct af_bundle_buffer *buf = buffer_at(run->b, i);
                if (buf->kind == AF_BUFFER_TEMP)
                        end = AF_MAX(end, buf->offset + buf->bytes);
        }
        run->temp = aligned_alloc(512, AF_ALIGN_UP(end + GUARD, 512));
        if (!run->memory || !run->temp)
                return fail(run->result, "out of memory");
        memset(run->temp, 0xa5, end + GUARD);
        for (uint32_t i = 0; i < n; i++) {
                const struct af_bundle_buffer *buf = buffer_at(run->b, i);
                const struct af_bundle_input *in;
                switch ((enum af_buffer_kind)buf->kind) {
                case AF_BUFFER_INPUT:
                        in = af_bundle_at(run->b, AF_SECTION_INPUTS, buf->slot);
                        const struct af_bundle_tensor *t = af_bundle_at(run->b, AF_SECTION_TENSORS, in->tensor);
                        run->memory[i] = (uint8_t *)run->inputs[buf->slot].data - t->offset * af_dtype_size((enum af_dtype)t->dtype);
                        break;
                case AF_BUFFER_OUTPUT:
                        run->memory[i] = aligned_alloc(512, AF_ALIGN_UP(buf->bytes + GUARD, 512));
                        if (!run->memory[i])
                                return fail(run->result, "out of memory");
                        memset(run->memory[i], 0xa5, buf->bytes + GUARD);
                        break;
                case AF_BUFFER_TEMP:
                        run->memory[i] = run->temp + buf->offset;
                        break;
                case AF_BUFFER_CONST:
                        run->memory[i] = (uint8_t *)af_bundle_blob(run->b, buf->data);
                        break;
                }
        }
        return 0;
}

static void unmap_buffers(struct run *run) {
        for (uint32_t i = 0; run->memory && i < af_bundle_count(run->b, AF_SECTION_BUFFERS); i++)
                if (buffer_at(run->b, i)->kind == AF_BUFFER_OUTPUT)
                        free(run->memory[i]);
        free(run->memory);
        free(run->temp);
}

static struct af_tensor tensor_of(const struct run *run, uint32_t id) {
        const struct af_bundle_tensor *t = af_bundle_at(run->b, AF_SECTION_TENSORS, id);
        struct af_tensor out = {.dtype = (enum af_dtype)t->dtype, .rank = t->rank};
        memcpy(out.dims, t->dims, sizeof(out.dims));
        memcpy(out.strides, t->strides, sizeof(out.strides));
        out.data = run->memory[t->buffer] + t->offset * (int64_t)af_dtype_size(out.dtype);
        return out;
}

static int launch_binary(struct run *run, const struct af_bundle_kernel *k, const struct af_twin_launch *launch) {
        struct af_host_kernel *kernel;
        char *why = NULL;
        if (af_host_kernel_load(af_bundle_blob(run->b, k->binary), k->binary.size, &kernel, &why)) {
                fail(run->result, "%s does not load: %s", af_bundle_str(run->b, k->symbol), why ? why : "?");
                free(why);
                return -1;
        }
        int r = af_host_kernel_launch(kernel, launch);
        af_host_kernel_free(kernel);
        return r;
}

static int run_kernel(struct run *run, const struct af_bundle_step *s) {
        const struct af_bundle_kernel *k = af_bundle_at(run->b, AF_SECTION_KERNELS, s->kernel);
        const char *symbol = af_bundle_str(run->b, k->symbol);
        void *args[MAX_ARGS];
        uint64_t bytes[MAX_ARGS];
        struct af_twin_stats stats = {0};
        if (s->n_args > MAX_ARGS)
                return fail(run->result, "%u arguments", s->n_args);
        for (uint32_t i = 0; i < s->n_args; i++) {
                const struct af_bundle_arg *a = af_bundle_at(run->b, AF_SECTION_ARGS, s->first_arg + i);
                args[i] = run->memory[a->buffer] + a->byte_offset;
                bytes[i] = a->range_end;
                if (a->access == (AF_ACCESS_READ | AF_ACCESS_WRITE) && k->workspace_bytes)
                        memset(args[i], k->workspace_zeroed ? 0 : 0xa5, k->workspace_bytes);
        }
        struct af_twin_launch launch = {.args = args,
                                        .arg_bytes = bytes,
                                        .n_args = s->n_args,
                                        .tiling = k->tiling.size ? af_bundle_blob(run->b, k->tiling) : NULL,
                                        .block_dim = k->block_dim,
                                        .n_blocks = k->block_dim,
                                        .stats = &stats,
                                        .error = run->result->error,
                                        .error_size = sizeof(run->result->error)};
        int r = run->launcher ? run->launcher->launch(run->launcher->userdata, symbol, &launch) : launch_binary(run, k, &launch);
        if (r && !run->result->error[0])
                fail(run->result, "launch of %s failed: %d", symbol, r);
        run->result->n_kernel_steps++;
        run->result->n_nodes_fused += k->n_nodes;
        run->result->modelled_bytes += k->hbm_bytes;
        run->result->moved_bytes += stats.mte2_bytes + stats.mte3_bytes + stats.scalar_bytes;
        run->result->cycles += stats.total_cycles;
        run->result->modelled_cycles += k->modelled_cycles;
        run->result->mte2_cycles += stats.mte2_cycles;
        run->result->v_cycles += stats.v_cycles;
        run->result->mte3_cycles += stats.mte3_cycles;
        run->result->pipe_cycles += AF_MAX(stats.mte2_cycles, AF_MAX(stats.v_cycles, stats.mte3_cycles));
        return r ? -1 : 0;
}

static int run_framework(struct run *run, const struct af_bundle_step *s) {
        struct af_tensor in[64], out[64];
        const char *why = NULL;
        run->result->n_framework_steps++;
        if (s->n_inputs > 64 || s->n_outputs > 64 || s->node >= run->g->n_nodes)
                return fail(run->result, "framework step with node %u", s->node);
        for (uint32_t i = 0; i < s->n_inputs + s->n_outputs; i++) {
                const uint32_t *t = af_bundle_at(run->b, AF_SECTION_FALLBACK_VALUES, s->first_value + i);
                *(i < s->n_inputs ? &in[i] : &out[i - s->n_inputs]) = tensor_of(run, *t);
        }
        if (af_reference_node(run->g, &run->g->nodes[s->node], in, out, &why))
                return fail(run->result, "reference refuses node %u: %s", s->node, why ? why : "?");
        return 0;
}

/* Row-major copy of a strided tensor; data malloc'd. */
static int densify(const struct af_tensor *t, struct af_tensor *ret) {
        unsigned size = af_dtype_size(t->dtype);
        int64_t n = 1, index[AF_LIMIT_RANK] = {0};
        *ret = *t;
        for (uint32_t i = t->rank; i-- > 0;) {
                ret->strides[i] = n;
                n *= t->dims[i];
        }
        ret->data = malloc((size_t)n * size + 1);
        for (int64_t e = 0; ret->data && e < n; e++) {
                int64_t at = 0;
                for (uint32_t i = 0; i < t->rank; i++)
                        at += index[i] * t->strides[i];
                memcpy((uint8_t *)ret->data + e * size, (const uint8_t *)t->data + at * size, size);
                for (uint32_t i = t->rank; i-- > 0 && ++index[i] == t->dims[i];)
                        index[i] = 0;
        }
        return ret->data ? 0 : -1;
}

static int check_guards(struct run *run) {
        for (uint32_t i = 0; i < af_bundle_count(run->b, AF_SECTION_BUFFERS); i++) {
                const struct af_bundle_buffer *buf = buffer_at(run->b, i);
                for (uint64_t j = 0; buf->kind == AF_BUFFER_OUTPUT && j < GUARD; j++)
                        if (run->memory[i][buf->bytes + j] != 0xa5)
                                return fail(run->result, "bytes after output %u were overwritten", buf->slot);
        }
        return 0;
}

int run_bundle(const struct af_graph *g, const struct af_bundle *b, const struct af_tensor *inputs, struct af_tensor *ret_outputs,
               struct run_result *result) {
        return run_bundle_with(g, b, NULL, inputs, ret_outputs, result);
}

int run_bundle_with(const struct af_graph *g, const struct af_bundle *b, const struct run_launcher *launcher,
                    const struct af_tensor *inputs, struct af_tensor *ret_outputs, struct run_result *result) {
        struct run run = {.g = g, .b = b, .launcher = launcher, .inputs = inputs, .result = result};
        *result = (struct run_result){0};
        int r = map_buffers(&run);
        for (uint32_t i = 0; !r && i < af_bundle_count(b, AF_SECTION_STEPS); i++) {
                const struct af_bundle_step *s = af_bundle_at(b, AF_SECTION_STEPS, i);
                r = s->kind == AF_STEP_KERNEL ? run_kernel(&run, s) : run_framework(&run, s);
        }
        if (!r)
                r = check_guards(&run);
        for (uint32_t i = 0; !r && i < af_bundle_count(b, AF_SECTION_OUTPUTS); i++) {
                const struct af_bundle_output *o = af_bundle_at(b, AF_SECTION_OUTPUTS, i);
                struct af_tensor t = tensor_of(&run, o->tensor);
                r = densify(&t, &ret_outputs[i]);
        }
        unmap_buffers(&run);
        return r;
}

int make_inputs(const struct af_graph *g, uint64_t seed, bool specials, struct af_tensor *ret_inputs, void **ret_blocks) {
        for (uint32_t i = 0; i < g->n_inputs; i++) {
                const struct af_graph_input *in = &g->inputs[i];
                struct af_tensor *t = &ret_inputs[i];
                int64_t offset, extent = 1;
                *t = (struct af_tensor){.dtype = g->values[in->value].dtype, .rank = g->values[in->value].rank};
                if (!af_value_static_dims(g, in->value, t->dims) || !af_value_static_strides(g, in->value, t->strides) ||
                    !af_expr_is_const(&g->exprs, in->offset, &offset))
                        return -1;
                for (uint32_t a = 0; a < t->rank; a++)
                        extent += t->dims[a] > 0 ? (t->dims[a] - 1) * t->strides[a] : 0;
                size_t bytes = (size_t)(offset + extent) * af_dtype_size(t->dtype);
                ret_blocks[i] = aligned_alloc(512, AF_ALIGN_UP(bytes + 1, 512));
                if (!ret_blocks[i])
                        return -1;
                memset(ret_blocks[i], 0xff, bytes);
                t->data = (uint8_t *)ret_blocks[i] + offset * af_dtype_size(t->dtype);
                af_tensor_fill(t, seed + i, specials);
        }
        return 0;
}

int compare_outputs(const struct af_tensor *got, const struct af_tensor *want, uint32_t n, char *text, size_t text_size) {
        for (uint32_t i = 0; i < n; i++) {
                double error;
                uint64_t first, differ;
                if (got[i].dtype != want[i].dtype || got[i].rank != want[i].rank ||
                    memcmp(got[i].dims, want[i].dims, want[i].rank * sizeof(want[i].dims[0])) != 0) {
                        snprintf(text, text_size, "output %u: another dtype or shape", i);
                        return -1;
                }
                differ = af_tensor_compare(&got[i], &want[i], &error, &first);
                if (differ) {
                        snprintf(text, text_size, "output %u (%s): %llu elements differ, first at %llu, largest error %g", i,
                                 af_dtype_name(want[i].dtype), (unsigned long long)differ, (unsigned long long)first, error);
                        return -1;
                }
        }
        return 0;
}
