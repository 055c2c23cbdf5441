/* SPDX-License-Identifier: Apache-2.0 */
/* assemble: everything into the skeleton bundle, and one line per node that is left to the framework. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "compiler/driver/job.h"

static void patch(struct af_job *job, struct af_size a, enum af_bundle_section section, uint32_t index, size_t field) {
        af_size_patch(&job->sizes, a, section, AF_PATCH_I64, index, field);
}

static uint32_t add_tensor(struct af_job *job, uint32_t v) {
        const struct af_value *value = &job->graph.values[v];
        const struct af_location *p = &job->places[v];
        struct af_bundle_tensor t = {.buffer = p->buffer, .dtype = value->dtype, .rank = value->rank, .offset = p->offset.n};
        uint32_t id = af_bundle_builder_count(&job->builder, AF_SECTION_TENSORS);
        for (uint32_t i = 0; i < value->rank; i++) {
                struct af_size d = af_size_of(&job->sizes, value->dims[i]);
                t.dims[i] = d.n;
                t.strides[i] = p->strides ? p->strides[i].n : 0;
                patch(job, d, AF_SECTION_TENSORS, id, offsetof(struct af_bundle_tensor, dims) + i * sizeof(int64_t));
                if (p->strides)
                        patch(job, p->strides[i], AF_SECTION_TENSORS, id, offsetof(struct af_bundle_tensor, strides) + i * sizeof(int64_t));
        }
        patch(job, p->offset, AF_SECTION_TENSORS, id, offsetof(struct af_bundle_tensor, offset));
        return af_bundle_add(&job->builder, AF_SECTION_TENSORS, &t);
}

static void add_buffers(struct af_job *job) {
        for (uint32_t i = 0; i < job->n_buffers; i++) {
                patch(job, job->buffer_bytes[i], AF_SECTION_BUFFERS, i, offsetof(struct af_bundle_buffer, bytes));
                patch(job, job->buffer_offset[i], AF_SECTION_BUFFERS, i, offsetof(struct af_bundle_buffer, offset));
                af_bundle_add(&job->builder, AF_SECTION_BUFFERS, &job->buffers[i]);
        }
}

static void add_interface(struct af_job *job) {
        const struct af_graph *g = &job->graph;
        for (uint32_t i = 0; i < g->n_inputs; i++) {
                struct af_bundle_input in = {
                        .tensor = add_tensor(job, g->inputs[i].value), .align = g->inputs[i].align, .flags = g->inputs[i].host};
                af_bundle_add(&job->builder, AF_SECTION_INPUTS, &in);
        }
        for (uint32_t i = 0; i < g->n_outputs; i++) {
                struct af_bundle_output out = {.tensor = add_tensor(job, g->outputs[i].value), .alias_of = g->outputs[i].alias_of};
                af_bundle_add(&job->builder, AF_SECTION_OUTPUTS, &out);
        }
        add_buffers(job);
}

static struct af_size size_of(struct af_job *job, int64_t n, uint32_t x) {
        return x ? af_size_of(&job->sizes, x - 1) : af_size_const(n);
}

struct af_size af_job_workspace(struct af_job *job, const struct af_kernel *k) {
        return size_of(job, (int64_t)k->workspace_bytes, k->workspace_x);
}

/* The kernel's tiling as it is passed by value: each field at its alignment, numbers at the hints, the rest filled in when solved. */
static struct af_blob_ref add_tiling(struct af_job *job, const struct af_tiling *t) {
        uint8_t bytes[AF_TILING_MAX_FIELDS * sizeof(int64_t)] = {0};
        size_t at = 0;
        for (uint32_t i = 0; i < t->n; i++) {
                size_t size = t->fields[i].type == AF_PATCH_I64 ? 8 : 4;
                float f = (float)t->fields[i].value;
                at = AF_ALIGN_UP(at, size);
                memcpy(bytes + at, t->fields[i].type == AF_PATCH_F32 ? (const void *)&f : &t->fields[i].value, size);
                at += size;
        }
        struct af_blob_ref ref = af_bundle_add_blob(&job->builder, bytes, AF_ALIGN_UP(at, 8), 64);
        at = 0;
        for (uint32_t i = 0; i < t->n; i++) {
                size_t size = t->fields[i].type == AF_PATCH_I64 ? 8 : 4;
                at = AF_ALIGN_UP(at, size);
                af_size_patch(&job->sizes, size_of(job, t->fields[i].value, t->fields[i].x), AF_SECTION_BLOB, t->fields[i].type, 0,
                              ref.offset + at);
                at += size;
        }
        return ref;
}

static void add_kernel_entry(struct af_job *job, const struct af_kernel_out *out) {
        const struct af_kernel *k = out->kernel;
        AF_CLEANUP(af_buf_deinit) struct af_buf ops = AF_BUF_INIT;
        for (uint32_t i = 0; i < k->group->n_nodes; i++)
                af_buf_printf(&ops, "%s%s", i ? "," : "", af_op_info(job->graph.nodes[k->group->nodes[i]].op)->name);
        af_buf_put_u8(&ops, 0);
        struct af_bundle_kernel e = {.key = out->key,
                                     .block_dim = k->block_dim,
                                     .workspace_bytes = k->workspace_bytes,
                                     .workspace_zeroed = k->workspace_zeroed,
                                     .ub_bytes = k->ub_bytes,
                                     .needs_sync_all = k->needs_sync_all,
                                     .n_pointer_args = k->n_args,
                                     .n_nodes = k->group->n_nodes,
                                     .hbm_bytes = k->hbm_bytes,
                                     .modelled_cycles = k->modelled_cycles};
        uint32_t id = af_bundle_builder_count(&job->builder, AF_SECTION_KERNELS);
        patch(job, size_of(job, (int64_t)k->workspace_bytes, k->workspace_x), AF_SECTION_KERNELS, id,
              offsetof(struct af_bundle_kernel, workspace_bytes));
        af_size_patch(&job->sizes, size_of(job, k->block_dim, k->block_dim_x), AF_SECTION_KERNELS, AF_PATCH_U32, id,
                      offsetof(struct af_bundle_kernel, block_dim));
        if (out->tiling.n)
                e.tiling = add_tiling(job, &out->tiling);
        e.symbol = af_bundle_add_str(&job->builder, out->symbol);
        e.toolchain = af_bundle_add_str(&job->builder, job->env->toolchain.id);
        e.ops = af_bundle_add_str(&job->builder, af_buf_error(&ops) ? "" : (const char *)ops.data);
        if (job->opts->keep_sources)
                e.source = af_bundle_add_blob(&job->builder, out->source, out->source_size, 1);
        af_bundle_add(&job->builder, AF_SECTION_KERNELS, &e);
}

static void add_kernel_step(struct af_job *job, uint32_t group) {
        const struct af_kernel_out *out = &job->kernels[group];
        const struct af_kernel *k = out->kernel;
        struct af_bundle_step s = {.kind = AF_STEP_KERNEL, .kernel = out->entry, .n_args = k->n_args, .node = AF_NONE};
        s.first_arg = af_bundle_builder_count(&job->builder, AF_SECTION_ARGS);
        for (uint32_t i = 0; i < k->n_args; i++) {
                const struct af_karg *a = &k->args[i];
                struct af_bundle_arg arg = {.range_begin = a->range_begin, .range_end = a->range_end};
                struct af_size offset = af_size_const(0);
                arg.access = a->kind == AF_KARG_INPUT    ? AF_ACCESS_READ
                             : a->kind == AF_KARG_OUTPUT ? AF_ACCESS_WRITE
                                                         : AF_ACCESS_READ | AF_ACCESS_WRITE;
                arg.buffer = a->kind == AF_KARG_WORKSPACE ? out->workspace_buffer : job->places[a->value].buffer;
                /* the kernel knows of an input's own offset; a view of it is a value that starts at its first element */
                if (a->kind != AF_KARG_WORKSPACE && job->graph.values[a->value].kind != AF_VALUE_INPUT)
                        offset = af_size_op(&job->sizes, AF_EXPR_MUL, job->places[a->value].offset, af_size_const(af_dtype_size(a->dtype)));
                struct af_size bytes = job->buffer_bytes[arg.buffer];
                if (offset.x || offset.n) /* where the tensor is empty its buffer may end before */
                        offset = af_size_op(&job->sizes, AF_EXPR_MIN, offset, bytes);
                arg.byte_offset = (uint64_t)offset.n;
                uint32_t id = af_bundle_builder_count(&job->builder, AF_SECTION_ARGS);
                patch(job, offset, AF_SECTION_ARGS, id, offsetof(struct af_bundle_arg, byte_offset));
                struct af_size rest = af_size_op(&job->sizes, AF_EXPR_SUB, bytes, offset);
                if (rest.x) { /* all of the buffer */
                        arg.range_begin = 0;
                        arg.range_end = (uint64_t)rest.n;
                        patch(job, rest, AF_SECTION_ARGS, id, offsetof(struct af_bundle_arg, range_end));
                }
                af_bundle_add(&job->builder, AF_SECTION_ARGS, &arg);
        }
        af_bundle_add(&job->builder, AF_SECTION_STEPS, &s);
}

static void add_framework_step(struct af_job *job, uint32_t node) {
        const struct af_node *n = &job->graph.nodes[node];
        struct af_bundle_step s = {.kind = AF_STEP_FRAMEWORK,
                                   .kernel = AF_NONE,
                                   .node = job->canonical[node],
                                   .n_inputs = n->n_in,
                                   .n_outputs = n->n_out,
                                   .op = n->op};
        s.reason = af_bundle_add_str(&job->builder, job->fusion.fallback[node]);
        s.first_value = af_bundle_builder_count(&job->builder, AF_SECTION_FALLBACK_VALUES);
        for (uint32_t i = 0; i < n->n_in + n->n_out; i++) {
                uint32_t t = add_tensor(job, i < n->n_in ? n->in[i] : n->out[i - n->n_in]);
                af_bundle_add(&job->builder, AF_SECTION_FALLBACK_VALUES, &t);
        }
        af_bundle_add(&job->builder, AF_SECTION_STEPS, &s);
        af_buf_printf(&job->fallbacks, "%u %s\n", job->canonical[node], job->fusion.fallback[node]);
}

static void add_decisions(struct af_job *job) {
        for (uint32_t i = 0; i < job->fusion.n_decisions; i++) {
                const struct af_decision *d = &job->fusion.decisions[i];
                struct af_bundle_decision e = {
                        .kind = d->kind, .node_a = job->canonical[d->consumer], .group = AF_NONE, .bytes_saved = d->bytes_saved};
                e.node_b = d->producer == AF_NONE ? AF_NONE : job->canonical[d->producer];
                e.rule = af_bundle_add_str(&job->builder, d->rule ? d->rule->name : "");
                e.reason = af_bundle_add_str(&job->builder, d->reason ? d->reason : "");
                if (d->kind == AF_DECISION_MERGED)
                        e.group = job->unit_of_node[d->consumer];
                af_bundle_add(&job->builder, AF_SECTION_DECISIONS, &e);
        }
}

/* What the sender's nodes want of sizes that depend on symbols. */
static void add_guards(struct af_job *job) {
        const struct af_graph *g = &job->read;
        for (uint32_t i = 0; i < g->n_nodes; i++) {
                const struct af_value *in = g->nodes[i].n_in ? &g->values[g->nodes[i].in[0]] : NULL;
                for (uint32_t a = 0; in && af_op_wants_some(g->nodes[i].op) && a < in->rank; a++) {
                        struct af_size size = af_size_of(&job->sizes, in->dims[a]);
                        char why[100];
                        if (!size.x || !af_node_wants_some(&g->nodes[i], a))
                                continue;
                        snprintf(why, sizeof(why), "%s of nothing: axis %u has size 0", af_op_info(g->nodes[i].op)->name, a);
                        struct af_bundle_guard guard = {
                                .expr = size.x - 1, .node = i, .min = 1, .why = af_bundle_add_str(&job->builder, why)};
                        af_bundle_add(&job->builder, AF_SECTION_GUARDS, &guard);
                }
        }
}

int af_pass_assemble(struct af_job *job) {
        add_guards(job);
        add_interface(job);
        uint32_t n_entries = 0;
        for (uint32_t i = 0; i < job->fusion.n_groups; i++)
                if (job->kernels[i].entry == n_entries) {
                        add_kernel_entry(job, &job->kernels[i]);
                        n_entries++;
                }
        for (uint32_t u = 0; u < job->n_units; u++) {
                if (job->units[u].group != AF_NONE)
                        add_kernel_step(job, job->units[u].group);
                else
                        add_framework_step(job, job->units[u].node);
        }
        add_decisions(job);
        return af_buf_error(&job->fallbacks); /* the builder's own errors surface in af_bundle_finish */
}
