/* SPDX-License-Identifier: Apache-2.0 */
/* Running a host bundle: pointers for its buffers, then its steps in order, then what lies elsewhere is copied to where it belongs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/bundle.h"
#include "client/strided.h"

#define TEMP_ALIGN      512u
#define ERROR_TEXT_SIZE 1024u
/* Per worker, by what a kernel moves: waking a thread takes some microseconds, in which another copies about as much. */
#define WORKER_BYTES (256u << 10)

struct runner {
        struct autofuse_bundle *bundle;
        const struct af_bundle *view;
        const struct autofuse_run *run;
        struct af_run_stats *stats; /* NULL: none wanted */
        uint8_t **base;             /* per buffer; NULL where it has no bytes */
        void **args;                /* of the step that runs */
        uint64_t *arg_bytes;
        void *own_temp; /* to be freed */
};

/* One kernel launch, spread over tasks. */
struct spread {
        struct af_host_kernel *kernel;
        struct af_twin_launch launch; /* without the range of blocks */
        uint32_t n_tasks;
        atomic_int failed;           /* the first result that is not 0 */
        char error[ERROR_TEXT_SIZE]; /* written by the task that sets failed */
};

static void run_task(void *arg, uint32_t i) {
        struct spread *s = arg;
        struct af_twin_launch launch = s->launch;
        char error[ERROR_TEXT_SIZE] = "";
        int none = 0;
        if (i >= s->n_tasks || atomic_load_explicit(&s->failed, memory_order_relaxed))
                return;
        launch.first_block = (uint32_t)((uint64_t)launch.block_dim * i / s->n_tasks);
        launch.n_blocks = (uint32_t)((uint64_t)launch.block_dim * (i + 1) / s->n_tasks) - launch.first_block;
        launch.error = error;
        launch.error_size = sizeof(error);
        int r = af_host_kernel_launch(s->kernel, &launch);
        if (r != 0 && atomic_compare_exchange_strong(&s->failed, &none, r))
                memcpy(s->error, error, sizeof(error));
}

static enum autofuse_status load_kernel(struct autofuse_bundle *bundle, uint32_t id, struct af_host_kernel **ret_kernel,
                                        struct autofuse_error **ret_error) {
        const struct af_bundle_kernel *k = af_bundle_at(af_bundle_tables(bundle), AF_SECTION_KERNELS, id);
        char *why = NULL;
        int r = af_content_kernel(bundle->content, id, ret_kernel, &why);
        enum autofuse_status status = AUTOFUSE_OK;
        if (r == -ENOMEM)
                status = af_error_set_memory(ret_error);
        else if (r != 0)
                status = af_error_set(ret_error, AUTOFUSE_E_KERNEL, "kernel %s, compiled by toolchain %s, cannot be loaded here: %s",
                                      af_bundle_str(af_bundle_tables(bundle), k->symbol),
                                      af_bundle_str(af_bundle_tables(bundle), k->toolchain),
                                      why     ? why
                                      : r < 0 ? strerror(-r)
                                              : "unknown reason");
        free(why);
        return status;
}

static void add_stats(struct af_run_stats *sum, const struct af_twin_stats *one) {
        sum->n_launches++;
        sum->twin.mte2_bytes += one->mte2_bytes;
        sum->twin.mte3_bytes += one->mte3_bytes;
        sum->twin.scalar_bytes += one->scalar_bytes;
        sum->twin.mte2_cycles += one->mte2_cycles;
        sum->twin.v_cycles += one->v_cycles;
        sum->twin.mte3_cycles += one->mte3_cycles;
        sum->twin.s_cycles += one->s_cycles;
        sum->twin.total_cycles += one->total_cycles;
        sum->twin.n_vector_calls += one->n_vector_calls;
        sum->twin.n_dma_calls += one->n_dma_calls;
}

static void spread_tasks(const struct runner *r, const struct af_bundle_kernel *k, struct spread *s) {
        uint32_t n_workers = r->run->n_workers ? r->run->n_workers : k->block_dim;
        bool whole = !r->run->executor || k->needs_sync_all || r->stats;
        if (r->run->n_workers)
                n_workers = (uint32_t)AF_MIN((uint64_t)n_workers, 1 + k->hbm_bytes / WORKER_BYTES);
        s->n_tasks = whole ? 1 : AF_MIN(n_workers, k->block_dim);
        if (s->n_tasks > 1)
                r->run->executor(r->run->userdata, s->n_tasks, run_task, s);
        else
                run_task(s, 0);
}

static enum autofuse_status launch(struct runner *r, const struct af_bundle_step *step, struct autofuse_error **ret_error) {
        const struct af_bundle_kernel *k = af_bundle_at(r->view, AF_SECTION_KERNELS, step->kernel);
        struct af_twin_stats stats = {0};
        struct spread s = {.launch = {.args = r->args, .arg_bytes = r->arg_bytes, .n_args = step->n_args, .block_dim = k->block_dim}};
        enum autofuse_status status = load_kernel(r->bundle, step->kernel, &s.kernel, ret_error);
        if (status != AUTOFUSE_OK)
                return status;
        for (uint32_t i = 0; i < step->n_args; i++) {
                const struct af_bundle_arg *a = af_bundle_at(r->view, AF_SECTION_ARGS, step->first_arg + i);
                const struct af_bundle_buffer *b = af_bundle_at(r->view, AF_SECTION_BUFFERS, a->buffer);
                r->args[i] = r->base[a->buffer] ? r->base[a->buffer] + a->byte_offset : NULL;
                r->arg_bytes[i] = b->bytes > a->byte_offset ? b->bytes - a->byte_offset : 0;
        }
        if (k->workspace_zeroed && step->n_args && r->args[step->n_args - 1])
                memset(r->args[step->n_args - 1], 0, AF_MIN(k->workspace_bytes, r->arg_bytes[step->n_args - 1]));
        s.launch.tiling = k->tiling.size ? af_bundle_blob(r->view, k->tiling) : NULL;
        s.launch.stats = r->stats ? &stats : NULL;
        spread_tasks(r, k, &s);
        if (r->stats)
                add_stats(r->stats, &stats);
        int failed = atomic_load(&s.failed);
        if (failed == -ENOMEM)
                return af_error_set_memory(ret_error);
        return failed ? af_error_set(ret_error, AUTOFUSE_E_KERNEL, "kernel %s: %s", af_bundle_str(r->view, k->symbol),
                                     s.error[0] ? s.error : "failed")
                      : AUTOFUSE_OK;
}

static struct autofuse_tensor tensor_at(const struct runner *r, uint32_t id) {
        const struct af_bundle_tensor *t = af_bundle_at(r->view, AF_SECTION_TENSORS, id);
        uint8_t *base = r->base[t->buffer];
        return (struct autofuse_tensor){.dtype = (enum autofuse_dtype)t->dtype,
                                        .rank = t->rank,
                                        .dims = t->dims,
                                        .strides = t->strides,
                                        .data = base ? base + t->offset * (int64_t)af_dtype_size((enum af_dtype)t->dtype) : NULL};
}

static enum autofuse_status call_framework(struct runner *r, uint32_t index, const struct af_bundle_step *step,
                                           struct autofuse_error **ret_error) {
        struct autofuse_step_info info;
        uint32_t n = step->n_inputs + step->n_outputs;
        (void)autofuse_bundle_step(r->bundle, index, &info);
        if (!r->run->framework_node)
                return af_error_set(ret_error, AUTOFUSE_E_CALLBACK,
                                    "node %s (%s) is left to the framework (%s), and the run has no callback for it", info.name,
                                    info.origin ? info.origin : info.op, info.reason);
        struct autofuse_tensor *tensors = calloc((size_t)n + 1, sizeof(*tensors));
        if (!tensors)
                return af_error_set_memory(ret_error);
        for (uint32_t i = 0; i < n; i++)
                tensors[i] = tensor_at(r, *(const uint32_t *)af_bundle_at(r->view, AF_SECTION_FALLBACK_VALUES, step->first_value + i));
        struct autofuse_node_call call = {.node = info.node,
                                          .name = info.name,
                                          .origin = info.origin,
                                          .op = info.op,
                                          .inputs = tensors,
                                          .outputs = tensors + step->n_inputs,
                                          .n_inputs = step->n_inputs,
                                          .n_outputs = step->n_outputs};
        int failed = r->run->framework_node(r->run->userdata, &call);
        free(tensors);
        return failed ? af_error_set(ret_error, AUTOFUSE_E_CALLBACK, "the framework's node %s (%s) failed with %d", info.name,
                                     info.origin ? info.origin : info.op, failed)
                      : AUTOFUSE_OK;
}

/* The caller's memory for an input or output buffer: its start, or an error. */
static enum autofuse_status caller_memory(const struct runner *r, const struct af_bundle_buffer *b, uint8_t **ret_base,
                                          struct autofuse_error **ret_error) {
        const struct af_prepared *p = r->bundle->prepared;
        bool input = b->kind == AF_BUFFER_INPUT;
        uint32_t i = input ? p->slot_inputs[b->slot] : b->slot;
        const char *what = input ? "input" : "output", *name = input ? p->inputs[i] : p->outputs[i];
        void *const *pointers = input ? r->run->inputs : r->run->outputs;
        const uint64_t *sizes = input ? r->run->input_bytes : r->run->output_bytes;
        uint8_t *at = pointers ? pointers[i] : NULL;
        if (b->bytes == 0) {
                *ret_base = at;
                return AUTOFUSE_OK;
        }
        if (!at)
                return af_error_set(ret_error, AUTOFUSE_E_SHAPE, "%s %u (%s) has no memory", what, i, name);
        if (sizes && sizes[i] < b->bytes)
                return af_error_set(ret_error, AUTOFUSE_E_SHAPE, "%s %u (%s) has %llu bytes and needs %llu", what, i, name,
                                    (unsigned long long)sizes[i], (unsigned long long)b->bytes);
        if (input) {
                const struct af_bundle_input *in = af_bundle_at(r->view, AF_SECTION_INPUTS, b->slot);
                if (in->align > 1 && (uintptr_t)at % in->align)
                        return af_error_set(ret_error, AUTOFUSE_E_SHAPE, "input %u (%s) is not aligned to %u bytes", i, name, in->align);
        }
        *ret_base = at;
        return AUTOFUSE_OK;
}

static enum autofuse_status place_temp(struct runner *r, uint8_t **ret_temp, struct autofuse_error **ret_error) {
        struct autofuse_bundle_info info;
        autofuse_bundle_info(r->bundle, &info);
        *ret_temp = r->run->temp;
        if (info.temp_bytes == 0)
                return AUTOFUSE_OK;
        if (r->run->temp && (r->run->temp_bytes < info.temp_bytes || (uintptr_t)r->run->temp % TEMP_ALIGN))
                return af_error_set(ret_error, AUTOFUSE_E_SHAPE, "temp needs %llu bytes aligned to %u", (unsigned long long)info.temp_bytes,
                                    TEMP_ALIGN);
        if (!r->run->temp) {
                if (posix_memalign(&r->own_temp, TEMP_ALIGN, info.temp_bytes) != 0)
                        return af_error_set_memory(ret_error);
                *ret_temp = r->own_temp;
        }
        return AUTOFUSE_OK;
}

static enum autofuse_status place_buffers(struct runner *r, struct autofuse_error **ret_error) {
        uint8_t *temp = NULL;
        enum autofuse_status status = place_temp(r, &temp, ret_error);
        for (uint32_t i = 0; status == AUTOFUSE_OK && i < af_bundle_count(r->view, AF_SECTION_BUFFERS); i++) {
                const struct af_bundle_buffer *b = af_bundle_at(r->view, AF_SECTION_BUFFERS, i);
                if (b->kind == AF_BUFFER_TEMP)
                        r->base[i] = b->bytes ? temp + b->offset : NULL;
                else if (b->kind == AF_BUFFER_CONST)
                        r->base[i] = (uint8_t *)af_bundle_blob(r->view, b->data); /* no kernel writes it: af_bundle_open checked */
                else
                        status = caller_memory(r, b, &r->base[i], ret_error);
        }
        return status;
}

static enum autofuse_status check_solved(const struct autofuse_bundle *bundle, struct autofuse_error **ret_error) {
        return af_bundle_is_form(&bundle->content->view) && !bundle->solved
                       ? af_error_set(ret_error, AUTOFUSE_E_SHAPE, "the bundle has symbols: autofuse_bundle_solve() first")
                       : AUTOFUSE_OK;
}

static void copy_tensor(const struct runner *r, uint32_t from, void *to, const int64_t *to_strides) {
        struct autofuse_tensor t = tensor_at(r, from);
        if (t.data && to)
                af_strided_copy(to, to_strides, t.data, t.strides, t.dims, t.rank, autofuse_dtype_size(t.dtype));
}

/* Results that lie in other memory: to the caller's, then in-place updates to their inputs. */
static void copy_results(const struct runner *r) {
        for (uint32_t i = 0; i < af_bundle_count(r->view, AF_SECTION_OUTPUTS); i++) {
                const struct af_bundle_output *out = af_bundle_at(r->view, AF_SECTION_OUTPUTS, i);
                const struct af_bundle_tensor *t = af_bundle_at(r->view, AF_SECTION_TENSORS, out->tensor);
                const struct af_bundle_buffer *b = af_bundle_at(r->view, AF_SECTION_BUFFERS, t->buffer);
                int64_t dense[AF_BUNDLE_MAX_RANK];
                if ((b->kind == AF_BUFFER_OUTPUT && b->slot == i) || !r->run->outputs || !r->run->outputs[i])
                        continue;
                af_strided_dense(t->dims, t->rank, dense);
                copy_tensor(r, out->tensor, r->run->outputs[i], dense);
        }
        for (uint32_t i = 0; i < af_bundle_count(r->view, AF_SECTION_OUTPUTS); i++) {
                const struct af_bundle_output *out = af_bundle_at(r->view, AF_SECTION_OUTPUTS, i);
                if (out->alias_of == AF_NONE)
                        continue;
                const struct af_bundle_input *in = af_bundle_at(r->view, AF_SECTION_INPUTS, out->alias_of);
                struct autofuse_tensor to = tensor_at(r, in->tensor);
                if (tensor_at(r, out->tensor).data != to.data)
                        copy_tensor(r, out->tensor, to.data, to.strides);
        }
}

static enum autofuse_status run_steps(struct runner *r, struct autofuse_error **ret_error) {
        enum autofuse_status status = AUTOFUSE_OK;
        for (uint32_t i = 0; status == AUTOFUSE_OK && i < af_bundle_count(r->view, AF_SECTION_STEPS); i++) {
                const struct af_bundle_step *step = af_bundle_at(r->view, AF_SECTION_STEPS, i);
                status = step->kind == AF_STEP_KERNEL ? launch(r, step, ret_error) : call_framework(r, i, step, ret_error);
        }
        return status;
}

static bool alloc_arrays(struct runner *r) {
        uint32_t n_args = 0;
        for (uint32_t i = 0; i < af_bundle_count(r->view, AF_SECTION_STEPS); i++)
                n_args = AF_MAX(n_args, ((const struct af_bundle_step *)af_bundle_at(r->view, AF_SECTION_STEPS, i))->n_args);
        r->base = calloc((size_t)af_bundle_count(r->view, AF_SECTION_BUFFERS) + 1, sizeof(*r->base));
        r->args = calloc((size_t)n_args + 1, sizeof(*r->args));
        r->arg_bytes = calloc((size_t)n_args + 1, sizeof(*r->arg_bytes));
        return r->base && r->args && r->arg_bytes;
}

enum autofuse_status af_bundle_run(struct autofuse_bundle *bundle, const struct autofuse_run *run, struct af_run_stats *stats,
                                   struct autofuse_error **ret_error) {
        struct autofuse_run copy = AUTOFUSE_RUN_INIT;
        if (!bundle || !run || run->size < sizeof(size_t))
                return af_error_set(ret_error, AUTOFUSE_E_ARGUMENT, "autofuse_bundle_run: an argument is NULL, or the run not initialised");
        memcpy(&copy, run, AF_MIN(run->size, sizeof(copy)));
        struct runner r = {.bundle = bundle, .view = af_bundle_tables(bundle), .run = &copy, .stats = stats};
        enum autofuse_status status = alloc_arrays(&r) ? AUTOFUSE_OK : af_error_set_memory(ret_error);
        if (status == AUTOFUSE_OK)
                status = check_solved(bundle, ret_error);
        if (status == AUTOFUSE_OK)
                status = place_buffers(&r, ret_error);
        if (status == AUTOFUSE_OK)
                status = run_steps(&r, ret_error);
        if (status == AUTOFUSE_OK)
                copy_results(&r);
        free(r.base);
        free(r.args);
        free(r.arg_bytes);
        free(r.own_temp);
        return status;
}

enum autofuse_status autofuse_bundle_run(struct autofuse_bundle *bundle, const struct autofuse_run *run,
                                         struct autofuse_error **ret_error) {
        return af_bundle_run(bundle, run, NULL, ret_error);
}

/* Room for the pointers of any of these steps, in one piece: they all are kernels', or the error says which is not. */
static enum autofuse_status prepare_kernels(struct runner *r, uint32_t first, uint32_t n, struct autofuse_error **ret_error) {
        uint32_t n_args = 1;
        for (uint32_t i = 0; i < n; i++) {
                const struct af_bundle_step *step = af_bundle_at(r->view, AF_SECTION_STEPS, first + i);
                if (!step || step->kind != AF_STEP_KERNEL)
                        return af_error_set(ret_error, AUTOFUSE_E_ARGUMENT, "autofuse_bundle_run_kernels: step %u is no kernel's",
                                            first + i);
                n_args = AF_MAX(n_args, step->n_args);
        }
        r->arg_bytes = calloc(n_args, sizeof(*r->arg_bytes) + sizeof(*r->args));
        r->args = (void **)(r->arg_bytes + n_args);
        return r->arg_bytes ? AUTOFUSE_OK : af_error_set_memory(ret_error);
}

enum autofuse_status autofuse_bundle_run_kernels(struct autofuse_bundle *bundle, uint32_t first_step, uint32_t n_steps,
                                                 void *const *buffers, const struct autofuse_run *run, struct autofuse_error **ret_error) {
        struct autofuse_run copy = AUTOFUSE_RUN_INIT;
        if (!bundle || !buffers || (run && run->size < sizeof(size_t)))
                return af_error_set(ret_error, AUTOFUSE_E_ARGUMENT,
                                    "autofuse_bundle_run_kernels: an argument is NULL, or the run not initialised");
        if (run)
                memcpy(&copy, run, AF_MIN(run->size, sizeof(copy)));
        struct runner r = {.bundle = bundle, .view = af_bundle_tables(bundle), .run = &copy, .base = (uint8_t **)buffers};
        enum autofuse_status status = check_solved(bundle, ret_error);
        if (status == AUTOFUSE_OK)
                status = prepare_kernels(&r, first_step, n_steps, ret_error);
        for (uint32_t i = 0; status == AUTOFUSE_OK && i < n_steps; i++)
                status = launch(&r, af_bundle_at(r.view, AF_SECTION_STEPS, first_step + i), ret_error);
        free(r.arg_bytes);
        return status;
}

enum autofuse_status autofuse_kernel_launch(struct autofuse_bundle *bundle, uint32_t kernel, void *const *args, const uint64_t *arg_bytes,
                                            uint32_t n_args, uint32_t first_block, uint32_t n_blocks, struct autofuse_error **ret_error) {
        const struct af_bundle_kernel *k = bundle ? af_bundle_at(af_bundle_tables(bundle), AF_SECTION_KERNELS, kernel) : NULL;
        struct af_host_kernel *loaded = NULL;
        char text[ERROR_TEXT_SIZE] = "";
        if (!k || (n_args && !args) || n_args != k->n_pointer_args)
                return af_error_set(ret_error, AUTOFUSE_E_ARGUMENT,
                                    "autofuse_kernel_launch: no such kernel, or another number of pointers than it has");
        if (n_blocks > k->block_dim || first_block > k->block_dim - n_blocks || (k->needs_sync_all && n_blocks != k->block_dim))
                return af_error_set(ret_error, AUTOFUSE_E_ARGUMENT, "autofuse_kernel_launch: blocks %u to %u of %u%s", first_block,
                                    first_block + n_blocks, k->block_dim, k->needs_sync_all ? ", which run all at once" : "");
        enum autofuse_status status = check_solved(bundle, ret_error);
        if (status == AUTOFUSE_OK)
                status = load_kernel(bundle, kernel, &loaded, ret_error);
        if (status != AUTOFUSE_OK)
                return status;
        struct af_twin_launch l = {.args = args,
                                   .arg_bytes = arg_bytes,
                                   .n_args = n_args,
                                   .tiling = k->tiling.size ? af_bundle_blob(af_bundle_tables(bundle), k->tiling) : NULL,
                                   .block_dim = k->block_dim,
                                   .first_block = first_block,
                                   .n_blocks = n_blocks,
                                   .error = text,
                                   .error_size = sizeof(text)};
        int r = af_host_kernel_launch(loaded, &l);
        return r == 0 ? AUTOFUSE_OK
                      : af_error_set(ret_error, AUTOFUSE_E_KERNEL, "kernel %s: %s", af_bundle_str(af_bundle_tables(bundle), k->symbol),
                                     text[0] ? text : "failed");
}
