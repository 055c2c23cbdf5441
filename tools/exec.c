/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/exec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/io.h"
#include "client/strided.h"
#include "tools/args.h"

#define MEMORY_ALIGN 64u

/* Elements from the first to one past the last; 0 where empty. */
static int64_t extent(const int64_t *dims, const int64_t *strides, uint32_t rank) {
        int64_t last = 0;
        for (uint32_t i = 0; i < rank; i++) {
                if (dims[i] == 0)
                        return 0;
                last += (dims[i] - 1) * strides[i];
        }
        return last + 1;
}

static int64_t count(const struct af_tensor *t) {
        int64_t n = 1;
        for (uint32_t i = 0; i < t->rank; i++)
                n *= t->dims[i];
        return n;
}

static bool describe(const struct af_graph *g, uint32_t value, struct af_tensor *ret) {
        *ret = (struct af_tensor){.dtype = g->values[value].dtype, .rank = g->values[value].rank};
        return af_value_static_dims(g, value, ret->dims) && af_value_static_strides(g, value, ret->strides);
}

static int allocate(struct af_exec_tensor *x, uint64_t n_bytes) {
        void *p = NULL;
        x->n_bytes = n_bytes;
        if (posix_memalign(&p, MEMORY_ALIGN, AF_MAX(n_bytes, (uint64_t)1)) != 0)
                return -ENOMEM;
        memset(p, 0xff, n_bytes); /* NaN in every float type, so that a read outside shows */
        x->memory = x->base = p;
        return 0;
}

static int init_input(struct af_exec *x, uint32_t i) {
        const struct af_graph *g = &x->frag->g;
        const struct af_graph_input *in = &g->inputs[i];
        struct af_exec_tensor *t = &x->inputs[i];
        int64_t offset;
        if (!describe(g, in->value, &t->t) || !af_expr_is_const(&g->exprs, in->offset, &offset)) {
                fprintf(stderr, "error: %s: input \"%s\" has a shape with symbols that have no sizes\n", x->frag->path,
                        g->values[in->value].name);
                return AF_EXIT_FAILED;
        }
        unsigned size = af_dtype_size(t->t.dtype);
        int64_t n = extent(t->t.dims, t->t.strides, t->t.rank);
        if (allocate(t, (uint64_t)(n ? n + offset : 0) * size) < 0) {
                fprintf(stderr, "error: out of memory\n");
                return AF_EXIT_FAILED;
        }
        t->t.data = t->memory + offset * size;
        return 0;
}

/* Inputs of one buffer: the largest of them has the memory. */
static void share_buffers(struct af_exec *x) {
        const struct af_graph *g = &x->frag->g;
        for (uint32_t i = 0; i < g->n_inputs; i++) {
                uint32_t owner = i;
                for (uint32_t j = 0; j < g->n_inputs; j++)
                        if (g->inputs[j].buffer == g->inputs[i].buffer && x->inputs[j].n_bytes > x->inputs[owner].n_bytes)
                                owner = j;
                for (uint32_t j = 0; j < owner; j++)
                        if (g->inputs[j].buffer == g->inputs[i].buffer && x->inputs[j].n_bytes == x->inputs[owner].n_bytes)
                                owner = j;
                if (owner == i)
                        continue;
                x->inputs[i].t.data = x->inputs[owner].memory + ((uint8_t *)x->inputs[i].t.data - x->inputs[i].base);
                x->inputs[i].base = x->inputs[owner].memory;
        }
}

int af_exec_init(struct af_exec *x, const struct af_frag *frag) {
        const struct af_graph *g = &frag->g;
        *x = (struct af_exec){.frag = frag};
        x->inputs = calloc((size_t)g->n_inputs + 1, sizeof(*x->inputs));
        x->outputs = calloc((size_t)g->n_outputs + 1, sizeof(*x->outputs));
        x->expected = calloc((size_t)g->n_outputs + 1, sizeof(*x->expected));
        int r = x->inputs && x->outputs && x->expected ? 0 : AF_EXIT_FAILED;
        for (uint32_t i = 0; r == 0 && i < g->n_inputs; i++)
                r = init_input(x, i);
        if (r == 0)
                share_buffers(x);
        else
                af_exec_deinit(x);
        return r;
}

void af_exec_deinit(struct af_exec *x) {
        for (uint32_t i = 0; x->inputs && i < x->frag->g.n_inputs; i++)
                free(x->inputs[i].memory);
        for (uint32_t i = 0; x->outputs && i < x->frag->g.n_outputs; i++)
                free(x->outputs[i].memory);
        for (uint32_t i = 0; x->expected && i < x->frag->g.n_outputs; i++)
                free(x->expected[i].data);
        free(x->inputs);
        free(x->outputs);
        free(x->expected);
        *x = (struct af_exec){0};
}

/* The extent of the axis that input i indexes, where it is a gather's index; else 0. */
static int64_t gathered_extent(const struct af_graph *g, uint32_t i) {
        for (uint32_t n = 0; n < g->n_nodes; n++) {
                const struct af_node *node = &g->nodes[n];
                int64_t dims[AF_LIMIT_RANK];
                if (node->op != AF_OP_GATHER || node->n_in != 2 || node->in[1] != g->inputs[i].value ||
                    !af_value_static_dims(g, node->in[0], dims))
                        continue;
                const struct af_attr *axis = af_node_attr(node, AF_ATTR_AXIS);
                int64_t a = axis ? axis->i : 0;
                return dims[a < 0 ? a + g->values[node->in[0]].rank : a];
        }
        return 0;
}

static void fill_index(const struct af_tensor *t, uint64_t seed, int64_t limit) {
        int64_t n = count(t), dense[AF_LIMIT_RANK];
        unsigned size = af_dtype_size(t->dtype);
        uint8_t *bytes = malloc(AF_MAX((size_t)n * size, (size_t)1));
        if (!bytes)
                return;
        for (int64_t i = 0; i < n; i++) {
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                int64_t v = (int64_t)((seed >> 33) % (uint64_t)limit);
                memcpy(bytes + i * size, &v, size); /* little-endian */
        }
        af_strided_dense(t->dims, t->rank, dense);
        af_strided_copy(t->data, t->strides, bytes, dense, t->dims, t->rank, size);
        free(bytes);
}

void af_exec_fill(struct af_exec *x, uint64_t seed, bool specials) {
        const struct af_graph *g = &x->frag->g;
        for (uint32_t i = 0; i < g->n_inputs; i++) {
                int64_t limit = gathered_extent(g, i);
                if (limit > 0)
                        fill_index(&x->inputs[i].t, seed + i, limit);
                else
                        af_tensor_fill(&x->inputs[i].t, seed + i, specials);
        }
}

int af_exec_read(struct af_exec *x, uint32_t input, const char *path) {
        AF_CLEANUP(af_buf_deinit) struct af_buf bytes = AF_BUF_INIT;
        struct af_tensor *t = &x->inputs[input].t;
        size_t n = (size_t)count(t) * af_dtype_size(t->dtype);
        int64_t dense[AF_LIMIT_RANK];
        int r = af_io_read_file(path, n + 1, &bytes);
        if (r < 0 && r != -EFBIG) {
                fprintf(stderr, "error: %s: %s\n", path, strerror(-r));
                return AF_EXIT_FAILED;
        }
        if (r < 0 || bytes.size != n) {
                fprintf(stderr, "error: %s: input \"%s\" takes %zu bytes, the file has %s%zu\n", path,
                        x->frag->g.values[x->frag->g.inputs[input].value].name, n, r < 0 ? "more than " : "", bytes.size);
                return AF_EXIT_FAILED;
        }
        af_strided_dense(t->dims, t->rank, dense);
        af_strided_copy(t->data, t->strides, bytes.data ? bytes.data : (uint8_t *)"", dense, t->dims, t->rank, af_dtype_size(t->dtype));
        return 0;
}

int af_exec_reference(struct af_exec *x) {
        const struct af_graph *g = &x->frag->g;
        struct af_tensor *inputs = calloc((size_t)g->n_inputs + 1, sizeof(*inputs));
        const char *why = "out of memory";
        int r = -ENOMEM;
        if (inputs) {
                for (uint32_t i = 0; i < g->n_inputs; i++)
                        inputs[i] = x->inputs[i].t;
                r = af_reference_run(g, inputs, x->expected, NULL, &why);
        }
        free(inputs);
        if (r == 0)
                return 0;
        fprintf(stderr, "error: %s: the reference cannot run it: %s\n", x->frag->path, why);
        return AF_EXIT_FAILED;
}

static struct af_tensor to_reference(const struct autofuse_tensor *t) {
        struct af_tensor out = {.dtype = (enum af_dtype)t->dtype, .rank = t->rank, .data = t->data};
        memcpy(out.dims, t->dims, t->rank * sizeof(*t->dims));
        memcpy(out.strides, t->strides, t->rank * sizeof(*t->strides));
        return out;
}

/* A node left to the framework: the interpreter stands in for it. */
static int run_node(void *userdata, const struct autofuse_node_call *call) {
        struct af_exec *x = userdata;
        const struct af_graph *g = &x->frag->g;
        uint32_t id = call->node < x->frag->f.n_nodes ? x->frag->node_of[call->node] : AF_NONE;
        struct af_tensor *tensors = calloc((size_t)call->n_inputs + call->n_outputs + 1, sizeof(*tensors));
        const char *why = "it is not in the graph";
        int r = 1;
        x->n_fallback_calls++;
        for (uint32_t i = 0; tensors && i < call->n_inputs + call->n_outputs; i++)
                tensors[i] = to_reference(i < call->n_inputs ? &call->inputs[i] : &call->outputs[i - call->n_inputs]);
        if (tensors && id != AF_NONE)
                r = af_reference_node(g, &g->nodes[id], tensors, tensors + call->n_inputs, &why);
        if (r > 0)
                fprintf(stderr, "node %s (%s): %s\n", call->name, call->op, why);
        free(tensors);
        return r;
}

/* Memory for each result: of its own, or for a dense copy of what lies elsewhere. */
static enum autofuse_status place_outputs(struct af_exec *x, const struct autofuse_bundle *bundle, struct autofuse_error **ret_error) {
        for (uint32_t i = 0; i < x->frag->g.n_outputs; i++) {
                struct autofuse_output_info info;
                struct af_exec_tensor *out = &x->outputs[i];
                if (!autofuse_bundle_output(bundle, i, &info))
                        return af_error_set(ret_error, AUTOFUSE_E_SHAPE, "the bundle has no output %u", i);
                out->t = (struct af_tensor){.dtype = (enum af_dtype)info.tensor.dtype, .rank = info.tensor.rank};
                memcpy(out->t.dims, info.tensor.dims, sizeof(info.tensor.dims));
                if (info.own)
                        memcpy(out->t.strides, info.tensor.strides, sizeof(info.tensor.strides));
                else
                        af_strided_dense(out->t.dims, out->t.rank, out->t.strides);
                unsigned size = af_dtype_size(out->t.dtype);
                free(out->memory);
                if (allocate(out, info.own ? info.bytes : (uint64_t)count(&out->t) * size) < 0)
                        return af_error_set_memory(ret_error);
                out->t.data = out->memory + (info.own ? info.tensor.offset * size : 0);
        }
        return AUTOFUSE_OK;
}

enum autofuse_status af_exec_run(struct af_exec *x, struct autofuse_bundle *bundle, bool stats, struct autofuse_error **ret_error) {
        const struct af_graph *g = &x->frag->g;
        void **pointers = calloc((size_t)g->n_inputs + g->n_outputs + 1, sizeof(*pointers));
        if (!pointers)
                return af_error_set_memory(ret_error);
        enum autofuse_status status = place_outputs(x, bundle, ret_error);
        for (uint32_t i = 0; i < g->n_inputs; i++)
                pointers[i] = x->inputs[i].base;
        for (uint32_t i = 0; i < g->n_outputs; i++)
                pointers[g->n_inputs + i] = x->outputs[i].memory;
        struct autofuse_run run = AUTOFUSE_RUN_INIT;
        run.inputs = pointers;
        run.outputs = pointers + g->n_inputs;
        run.framework_node = run_node;
        run.userdata = x;
        uint64_t started = af_clock_now_us();
        if (status == AUTOFUSE_OK)
                status = af_bundle_run(bundle, &run, stats ? &x->stats : NULL, ret_error);
        x->run_us = af_clock_now_us() - started;
        free(pointers);
        return status;
}

int af_exec_write(const struct af_exec *x, uint32_t output, const char *path) {
        const struct af_tensor *t = &x->outputs[output].t;
        size_t n = (size_t)count(t) * af_dtype_size(t->dtype);
        int64_t dense[AF_LIMIT_RANK];
        uint8_t *bytes = malloc(AF_MAX(n, (size_t)1));
        if (!bytes)
                return AF_EXIT_FAILED;
        af_strided_dense(t->dims, t->rank, dense);
        af_strided_copy(bytes, dense, t->data, t->strides, t->dims, t->rank, af_dtype_size(t->dtype));
        int r = af_io_publish_file(path, bytes, n, 0644);
        free(bytes);
        if (r < 0)
                fprintf(stderr, "error: %s: %s\n", path, strerror(-r));
        return r < 0 ? AF_EXIT_FAILED : 0;
}

void af_exec_shape(const struct af_graph *g, uint32_t value, struct af_buf *buf) {
        const struct af_value *v = &g->values[value];
        const char **names = calloc((size_t)g->n_symbols + 1, sizeof(*names));
        af_buf_put_str(buf, "[");
        for (uint32_t i = 0; i < g->n_symbols && names; i++)
                names[i] = g->symbols[i].name;
        for (uint32_t i = 0; i < v->rank; i++) {
                af_buf_put_str(buf, i ? ", " : "");
                af_expr_print(&g->exprs, v->dims[i], names && (!g->n_symbols || names[0]) ? names : NULL, buf);
        }
        af_buf_put_str(buf, "]");
        free(names);
}
