/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a bundle: canonical slots and nodes become the caller's own. */
#include "client/bundle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "numeric/op.h"

_Static_assert(AUTOFUSE_MAX_RANK == AF_BUNDLE_MAX_RANK, "ranks of the public header");
_Static_assert((int)AUTOFUSE_DTYPE_BOOL == AF_DTYPE_BOOL && (int)AUTOFUSE_DTYPE_FLOAT64 == AF_DTYPE_FLOAT64, "dtypes of the public header");
_Static_assert((int)AUTOFUSE_BUFFER_CONST == AF_BUFFER_CONST && (int)AUTOFUSE_STEP_FRAMEWORK == AF_STEP_FRAMEWORK,
               "kinds of the public header");

unsigned autofuse_dtype_size(enum autofuse_dtype dtype) {
        return (unsigned)dtype < AF_N_DTYPES ? af_dtype_size((enum af_dtype)dtype) : 0;
}

const char *autofuse_dtype_name(enum autofuse_dtype dtype) {
        return (unsigned)dtype < AF_N_DTYPES ? af_dtype_name((enum af_dtype)dtype) : "invalid";
}

static bool fail(const char **ret_why, const char *why) {
        *ret_why = why;
        return false;
}

const struct af_bundle *af_bundle_tables(const struct autofuse_bundle *bundle) {
        return bundle->solved ? &bundle->solved->solved.view : &bundle->content->view;
}

bool af_content_suits(const struct af_content *content, const struct af_prepared *prepared, const char **ret_why) {
        const struct af_bundle *b = &content->view;
        if (af_bundle_count(b, AF_SECTION_INPUTS) != prepared->n_slots)
                return fail(ret_why, "its inputs are not the fragment's");
        if (af_bundle_count(b, AF_SECTION_OUTPUTS) != prepared->n_outputs)
                return fail(ret_why, "its outputs are not the fragment's");
        for (uint32_t i = 0; i < af_bundle_count(b, AF_SECTION_STEPS); i++) {
                const struct af_bundle_step *s = af_bundle_at(b, AF_SECTION_STEPS, i);
                if (s->kind == AF_STEP_FRAMEWORK && (s->node >= prepared->n_canon_nodes || prepared->canon_nodes[s->node] == AF_NONE))
                        return fail(ret_why, "it names a node that the fragment does not have");
        }
        for (uint32_t i = 0; i < af_bundle_count(b, AF_SECTION_BUFFERS); i++) {
                const struct af_bundle_buffer *buf = af_bundle_at(b, AF_SECTION_BUFFERS, i);
                uint32_t limit = buf->kind == AF_BUFFER_INPUT    ? prepared->n_slots
                                 : buf->kind == AF_BUFFER_OUTPUT ? prepared->n_outputs
                                                                 : UINT32_MAX;
                if (buf->slot >= limit)
                        return fail(ret_why, "a buffer's slot is out of range");
        }
        if (af_bundle_is_form(b) && af_bundle_count(b, AF_SECTION_SYMBOLS) != prepared->n_canon_symbols)
                return fail(ret_why, "its symbols are not the fragment's");
        for (uint32_t i = 0; i < af_bundle_count(b, AF_SECTION_GUARDS); i++) {
                const struct af_bundle_guard *g = af_bundle_at(b, AF_SECTION_GUARDS, i);
                if (g->node >= prepared->n_canon_nodes || prepared->canon_nodes[g->node] == AF_NONE)
                        return fail(ret_why, "it names a node that the fragment does not have");
        }
        return true;
}

struct autofuse_bundle *af_bundle_handle_new(struct af_content *content, struct af_prepared *prepared, enum autofuse_hit hit,
                                             uint64_t compile_us) {
        struct autofuse_bundle *b = malloc(sizeof(*b));
        if (!b)
                return NULL;
        *b = (struct autofuse_bundle){
                .content = af_content_ref(content), .prepared = af_prepared_ref(prepared), .hit = hit, .compile_us = compile_us};
        atomic_init(&b->refs, 1);
        return b;
}

struct autofuse_bundle *autofuse_bundle_ref(struct autofuse_bundle *bundle) {
        if (bundle)
                atomic_fetch_add_explicit(&bundle->refs, 1, memory_order_relaxed);
        return bundle;
}

void autofuse_bundle_unref(struct autofuse_bundle *bundle) {
        if (!bundle || atomic_fetch_sub_explicit(&bundle->refs, 1, memory_order_acq_rel) != 1)
                return;
        af_solved_unref(bundle->solved);
        af_content_unref(bundle->content);
        af_prepared_unref(bundle->prepared);
        free(bundle);
}

/* The caller's values in canonical order; malloc'd. */
static int64_t *canonical_symbols(const struct af_prepared *p, const int64_t *symbols) {
        int64_t *values = malloc((size_t)p->n_canon_symbols * sizeof(*values) + 1);
        for (uint32_t i = 0; values && i < p->n_canon_symbols; i++)
                values[i] = symbols[p->canon_symbols[i]];
        return values;
}

enum autofuse_status autofuse_bundle_solve(struct autofuse_bundle *bundle, const int64_t *symbols, uint32_t n_symbols,
                                           struct autofuse_bundle **ret_solved, struct autofuse_error **ret_error) {
        if (!bundle || !ret_solved || (n_symbols && !symbols))
                return af_error_set(ret_error, AUTOFUSE_E_ARGUMENT, "autofuse_bundle_solve: an argument is NULL");
        const struct af_prepared *p = bundle->prepared;
        if (n_symbols != p->n_symbols)
                return af_error_set(ret_error, AUTOFUSE_E_ARGUMENT, "autofuse_bundle_solve: %u symbols, but the fragment has %u", n_symbols,
                                    p->n_symbols);
        if (!af_bundle_is_form(&bundle->content->view)) {
                *ret_solved = autofuse_bundle_ref(bundle);
                return AUTOFUSE_OK;
        }
        int64_t *values = canonical_symbols(p, symbols);
        struct autofuse_bundle *b =
                values ? af_bundle_handle_new(bundle->content, bundle->prepared, bundle->hit, bundle->compile_us) : NULL;
        const char *why = "";
        uint32_t which = 0;
        int r = b ? af_solved_memo_get(&bundle->content->solved, &bundle->content->view, values, p->n_canon_symbols, &b->solved, &which,
                                       &why)
                  : -ENOMEM;
        enum autofuse_status status = AUTOFUSE_OK;
        if (r == -ENOMEM)
                status = af_error_set_memory(ret_error);
        else if (r == AF_SOLVE_E_GUARD)
                status = af_error_set(ret_error, AUTOFUSE_E_SHAPE, "symbol %s = %lld: %s", p->symbols[p->canon_symbols[which]],
                                      (long long)values[which], why);
        else if (r == AF_SOLVE_E_NODE)
                status = af_error_set(ret_error, AUTOFUSE_E_SHAPE, "node %s: %s", p->nodes[p->canon_nodes[which]], why);
        else if (r)
                status = af_error_set(ret_error, AUTOFUSE_E_SHAPE, "these values of the symbols: %s", why);
        free(values);
        if (status != AUTOFUSE_OK)
                autofuse_bundle_unref(b);
        else
                *ret_solved = b;
        return status;
}

static uint32_t sender_node(const struct autofuse_bundle *bundle, uint32_t canonical) {
        return canonical < bundle->prepared->n_canon_nodes ? bundle->prepared->canon_nodes[canonical] : AF_NONE;
}

void autofuse_bundle_info(const struct autofuse_bundle *bundle, struct autofuse_bundle_info *ret_info) {
        const struct af_bundle *b = af_bundle_tables(bundle);
        struct autofuse_bundle_info info = {.hit = bundle->hit,
                                            .compile_us = bundle->compile_us,
                                            .n_steps = af_bundle_count(b, AF_SECTION_STEPS),
                                            .n_kernels = af_bundle_count(b, AF_SECTION_KERNELS),
                                            .n_inputs = bundle->prepared->n_inputs,
                                            .n_outputs = bundle->prepared->n_outputs,
                                            .n_buffers = af_bundle_count(b, AF_SECTION_BUFFERS),
                                            .n_decisions = af_bundle_count(b, AF_SECTION_DECISIONS),
                                            .bundle_bytes = bundle->content->size};
        for (uint32_t i = 0; i < info.n_steps; i++) {
                const struct af_bundle_step *s = af_bundle_at(b, AF_SECTION_STEPS, i);
                if (s->kind == AF_STEP_KERNEL) {
                        const struct af_bundle_kernel *k = af_bundle_at(b, AF_SECTION_KERNELS, s->kernel);
                        info.n_kernel_steps++;
                        info.n_nodes_fused += k->n_nodes;
                        info.hbm_bytes += k->hbm_bytes;
                } else {
                        info.n_framework_steps++;
                }
        }
        for (uint32_t i = 0; i < info.n_buffers; i++) {
                const struct af_bundle_buffer *buf = af_bundle_at(b, AF_SECTION_BUFFERS, i);
                if (buf->kind == AF_BUFFER_TEMP)
                        info.temp_bytes = AF_MAX(info.temp_bytes, buf->offset + buf->bytes);
        }
        af_digest_hex(&bundle->content->key.fragment, info.fragment);
        af_digest_hex(&bundle->content->key.environment, info.environment);
        *ret_info = info;
}

static void tensor_info(const struct af_bundle *b, uint32_t id, struct autofuse_tensor_info *ret) {
        const struct af_bundle_tensor *t = af_bundle_at(b, AF_SECTION_TENSORS, id);
        *ret = (struct autofuse_tensor_info){
                .dtype = (enum autofuse_dtype)t->dtype, .rank = t->rank, .offset = t->offset, .buffer = t->buffer};
        memcpy(ret->dims, t->dims, sizeof(ret->dims));
        memcpy(ret->strides, t->strides, sizeof(ret->strides));
}

bool autofuse_bundle_input(const struct autofuse_bundle *bundle, uint32_t index, struct autofuse_input_info *ret_info) {
        const struct af_prepared *p = bundle->prepared;
        if (index >= p->n_inputs)
                return false;
        struct autofuse_input_info info = {.name = p->inputs[index], .used = p->input_slots[index] != AF_NONE};
        if (info.used) {
                const struct af_bundle_input *in = af_bundle_at(af_bundle_tables(bundle), AF_SECTION_INPUTS, p->input_slots[index]);
                info.host = in->flags & 1;
                info.align = in->align;
                tensor_info(af_bundle_tables(bundle), in->tensor, &info.tensor);
        }
        *ret_info = info;
        return true;
}

bool autofuse_bundle_output(const struct autofuse_bundle *bundle, uint32_t index, struct autofuse_output_info *ret_info) {
        const struct af_bundle *b = af_bundle_tables(bundle);
        const struct af_bundle_output *out = af_bundle_at(b, AF_SECTION_OUTPUTS, index);
        if (!out || index >= bundle->prepared->n_outputs)
                return false;
        struct autofuse_output_info info = {.name = bundle->prepared->outputs[index], .alias_of = -1};
        if (out->alias_of < bundle->prepared->n_slots)
                info.alias_of = (int32_t)bundle->prepared->slot_inputs[out->alias_of];
        tensor_info(b, out->tensor, &info.tensor);
        const struct af_bundle_buffer *buf = af_bundle_at(b, AF_SECTION_BUFFERS, info.tensor.buffer);
        info.own = buf->kind == AF_BUFFER_OUTPUT && buf->slot == index;
        info.bytes = info.own ? buf->bytes : 0;
        *ret_info = info;
        return true;
}

bool autofuse_bundle_buffer(const struct autofuse_bundle *bundle, uint32_t index, struct autofuse_buffer_info *ret_info) {
        const struct af_bundle_buffer *buf = af_bundle_at(af_bundle_tables(bundle), AF_SECTION_BUFFERS, index);
        if (!buf)
                return false;
        *ret_info = (struct autofuse_buffer_info){.kind = (enum autofuse_buffer_kind)buf->kind, .bytes = buf->bytes};
        if (buf->kind == AF_BUFFER_INPUT)
                ret_info->index = bundle->prepared->slot_inputs[buf->slot];
        else if (buf->kind == AF_BUFFER_OUTPUT)
                ret_info->index = buf->slot;
        else if (buf->kind == AF_BUFFER_TEMP)
                ret_info->offset = buf->offset;
        else
                ret_info->data = af_bundle_blob(af_bundle_tables(bundle), buf->data);
        return true;
}

bool autofuse_bundle_step(const struct autofuse_bundle *bundle, uint32_t index, struct autofuse_step_info *ret_info) {
        const struct af_bundle *b = af_bundle_tables(bundle);
        const struct af_bundle_step *s = af_bundle_at(b, AF_SECTION_STEPS, index);
        if (!s)
                return false;
        struct autofuse_step_info info = {.kind = (enum autofuse_step_kind)s->kind};
        if (s->kind == AF_STEP_KERNEL) {
                info.kernel = s->kernel;
                info.n_args = s->n_args;
        } else {
                info.node = sender_node(bundle, s->node);
                info.name = bundle->prepared->nodes[info.node];
                info.origin = bundle->prepared->origins[info.node];
                info.op = s->op < AF_N_OPS ? af_op_info((enum af_op)s->op)->name : "unknown";
                info.reason = af_bundle_str(b, s->reason);
                info.n_inputs = s->n_inputs;
                info.n_outputs = s->n_outputs;
        }
        *ret_info = info;
        return true;
}

bool autofuse_bundle_step_arg(const struct autofuse_bundle *bundle, uint32_t step, uint32_t index, struct autofuse_arg_info *ret_info) {
        const struct af_bundle *b = af_bundle_tables(bundle);
        const struct af_bundle_step *s = af_bundle_at(b, AF_SECTION_STEPS, step);
        if (!s || s->kind != AF_STEP_KERNEL || index >= s->n_args)
                return false;
        const struct af_bundle_arg *a = af_bundle_at(b, AF_SECTION_ARGS, s->first_arg + index);
        *ret_info = (struct autofuse_arg_info){.buffer = a->buffer,
                                               .byte_offset = a->byte_offset,
                                               .reads = a->access & AF_ACCESS_READ,
                                               .writes = a->access & AF_ACCESS_WRITE,
                                               .range_begin = a->range_begin,
                                               .range_end = a->range_end};
        return true;
}

bool autofuse_bundle_step_value(const struct autofuse_bundle *bundle, uint32_t step, uint32_t index,
                                struct autofuse_tensor_info *ret_info) {
        const struct af_bundle *b = af_bundle_tables(bundle);
        const struct af_bundle_step *s = af_bundle_at(b, AF_SECTION_STEPS, step);
        if (!s || s->kind != AF_STEP_FRAMEWORK || index >= s->n_inputs + s->n_outputs)
                return false;
        const uint32_t *tensor = af_bundle_at(b, AF_SECTION_FALLBACK_VALUES, s->first_value + index);
        tensor_info(b, *tensor, ret_info);
        return true;
}

bool autofuse_bundle_kernel(const struct autofuse_bundle *bundle, uint32_t index, struct autofuse_kernel_info *ret_info) {
        const struct af_bundle *b = af_bundle_tables(bundle);
        const struct af_bundle_kernel *k = af_bundle_at(b, AF_SECTION_KERNELS, index);
        if (!k)
                return false;
        *ret_info = (struct autofuse_kernel_info){.symbol = af_bundle_str(b, k->symbol),
                                                  .ops = af_bundle_str(b, k->ops),
                                                  .toolchain = af_bundle_str(b, k->toolchain),
                                                  .binary = af_bundle_blob(b, k->binary),
                                                  .binary_bytes = k->binary.size,
                                                  .source = k->source.size ? af_bundle_blob(b, k->source) : NULL,
                                                  .source_bytes = k->source.size,
                                                  .tiling = k->tiling.size ? af_bundle_blob(b, k->tiling) : NULL,
                                                  .tiling_bytes = k->tiling.size,
                                                  .block_dim = k->block_dim,
                                                  .ub_bytes = k->ub_bytes,
                                                  .n_nodes = k->n_nodes,
                                                  .needs_sync_all = k->needs_sync_all,
                                                  .workspace_zeroed = k->workspace_zeroed,
                                                  .workspace_bytes = k->workspace_bytes,
                                                  .hbm_bytes = k->hbm_bytes,
                                                  .modelled_cycles = k->modelled_cycles};
        af_digest_hex(&k->key, ret_info->key);
        return true;
}

bool autofuse_bundle_decision(const struct autofuse_bundle *bundle, uint32_t index, struct autofuse_decision_info *ret_info) {
        const struct af_bundle *b = af_bundle_tables(bundle);
        const struct af_bundle_decision *d = af_bundle_at(b, AF_SECTION_DECISIONS, index);
        if (!d)
                return false;
        uint32_t consumer = sender_node(bundle, d->node_a), producer = sender_node(bundle, d->node_b);
        *ret_info = (struct autofuse_decision_info){.kind = (enum autofuse_decision_kind)d->kind,
                                                    .consumer = consumer == AF_NONE ? -1 : (int64_t)consumer,
                                                    .producer = producer == AF_NONE ? -1 : (int64_t)producer,
                                                    .consumer_name = consumer == AF_NONE ? NULL : bundle->prepared->nodes[consumer],
                                                    .producer_name = producer == AF_NONE ? NULL : bundle->prepared->nodes[producer],
                                                    .rule = af_bundle_str(b, d->rule),
                                                    .reason = af_bundle_str(b, d->reason),
                                                    .step = d->group == AF_NONE ? -1 : (int64_t)d->group,
                                                    .bytes_saved = d->bytes_saved};
        return true;
}
