/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout: which buffer each value stands in, and where the temporaries lie in their arena. Two temporaries overlap only where the first's
 * last reader runs before the second's writer.
 */
#include <errno.h>
#include <string.h>

#include "compiler/driver/job.h"

#define TEMP_ALIGN 512u

void af_job_dense_strides(const int64_t *dims, uint32_t rank, int64_t *ret_strides) {
        int64_t s = 1;
        for (uint32_t i = rank; i-- > 0;) {
                ret_strides[i] = s;
                s *= dims[i] > 1 ? dims[i] : 1;
        }
}

/* Sizes of a value's dimensions. */
static struct af_size *dims_of(struct af_job *job, uint32_t value) {
        const struct af_value *v = &job->graph.values[value];
        struct af_size *dims = af_arena_calloc(job->arena, AF_LIMIT_RANK, sizeof(*dims));
        for (uint32_t i = 0; dims && i < v->rank; i++)
                dims[i] = af_size_of(&job->sizes, v->dims[i]);
        return dims;
}

/* Row-major strides; a size-0 or size-1 axis counts as 1. */
static void dense_strides(struct af_job *job, const struct af_size *dims, uint32_t rank, struct af_size *ret_strides) {
        struct af_size s = af_size_const(1);
        for (uint32_t i = rank; i-- > 0;) {
                ret_strides[i] = s;
                if (dims[i].x || dims[i].n > 1)
                        s = af_size_op(&job->sizes, AF_EXPR_MUL, s, dims[i]);
        }
}

/* Elements from the buffer's start to one past the last of a strided tensor; 0 where it is empty. */
static struct af_size extent(struct af_job *job, const struct af_size *dims, const struct af_size *strides, uint32_t rank,
                             struct af_size offset) {
        struct af_size last = offset, one = af_size_const(1);
        for (uint32_t i = 0; i < rank; i++) {
                if (!dims[i].x && dims[i].n == 0)
                        return af_size_const(0);
                struct af_size span = af_size_op(&job->sizes, AF_EXPR_SUB, dims[i], one);
                last = af_size_op(&job->sizes, AF_EXPR_ADD, last, af_size_op(&job->sizes, AF_EXPR_MUL, span, strides[i]));
        }
        last = af_size_op(&job->sizes, AF_EXPR_ADD, last, one);
        return last.x ? af_size_op(&job->sizes, AF_EXPR_MAX, last, af_size_const(0)) : last;
}

static int add_buffer(struct af_job *job, struct af_bundle_buffer b, struct af_size bytes, uint32_t *ret_id) {
        int r = af_arena_grow(job->arena, &job->buffers, &job->cap_buffers, job->n_buffers + 1, sizeof(b));
        if (!r)
                r = af_arena_grow(job->arena, &job->buffer_bytes, &job->cap_bytes, job->n_buffers + 1, sizeof(bytes));
        if (!r)
                r = af_arena_grow(job->arena, &job->buffer_offset, &job->cap_offsets, job->n_buffers + 1, sizeof(bytes));
        if (r)
                return r;
        b.bytes = (uint64_t)bytes.n;
        job->buffers[job->n_buffers] = b;
        job->buffer_bytes[job->n_buffers] = bytes;
        job->buffer_offset[job->n_buffers] = af_size_const(0);
        *ret_id = job->n_buffers++;
        return 0;
}

/* Gives value v the memory b; its strides are the value's own. */
static int place(struct af_job *job, uint32_t v, struct af_bundle_buffer b, struct af_size offset) {
        const struct af_value *value = &job->graph.values[v];
        struct af_size *strides = af_arena_calloc(job->arena, AF_LIMIT_RANK, sizeof(*strides)), *dims = dims_of(job, v);
        if (!strides || !dims)
                return -ENOMEM;
        dense_strides(job, dims, value->rank, strides);
        for (uint32_t i = 0; value->strides && i < value->rank; i++)
                strides[i] = af_size_of(&job->sizes, value->strides[i]);
        struct af_size elements = extent(job, dims, strides, value->rank, offset);
        job->places[v].strides = strides;
        job->places[v].offset = offset;
        return add_buffer(job, b, af_size_op(&job->sizes, AF_EXPR_MUL, elements, af_size_const(af_dtype_size(value->dtype))),
                          &job->places[v].buffer);
}

/* A view shares its source's buffer. Unit axes may come and go; a reshape needs a dense source (the outputs pass saw to it). */
static int place_view(struct af_job *job, uint32_t node) {
        const struct af_node *n = &job->graph.nodes[node];
        const struct af_location *src = &job->places[n->in[0]];
        struct af_location *dst = &job->places[n->out[0]];
        struct af_size *strides = af_arena_calloc(job->arena, AF_LIMIT_RANK, sizeof(*strides)), *dims = dims_of(job, n->out[0]),
                       *src_dims = dims_of(job, n->in[0]);
        if (!strides || !dims || !src_dims)
                return -ENOMEM;
        *dst = *src;
        dst->strides = strides;
        uint32_t rank = job->graph.values[n->out[0]].rank, src_rank = job->graph.values[n->in[0]].rank, s = 0;
        dense_strides(job, dims, rank, strides);
        if (n->op == AF_OP_RESHAPE)
                return 0;
        for (uint32_t i = 0; i < rank; i++) { /* squeeze, unsqueeze: the other axes keep their order and strides */
                if (!dims[i].x && dims[i].n == 1)
                        continue;
                while (s < src_rank && !src_dims[s].x && src_dims[s].n == 1)
                        s++;
                strides[i] = s < src_rank ? src->strides[s++] : af_size_const(1);
        }
        return 0;
}

/* The value whose memory v shares through alias views. */
static uint32_t root_of(const struct af_job *job, uint32_t v) {
        const struct af_graph *g = &job->graph;
        while (g->values[v].kind == AF_VALUE_NODE && job->unit_of_node[g->values[v].index] == AF_NONE)
                v = g->nodes[g->values[v].index].in[0];
        return v;
}

static int place_sources(struct af_job *job) {
        const struct af_graph *g = &job->graph;
        for (uint32_t i = 0; i < g->n_inputs; i++) {
                struct af_size offset = af_size_of(&job->sizes, g->inputs[i].offset);
                int r = place(job, g->inputs[i].value, (struct af_bundle_buffer){.kind = AF_BUFFER_INPUT, .slot = i}, offset);
                if (r)
                        return r;
        }
        for (uint32_t i = 0; i < g->n_constants; i++) {
                struct af_bundle_buffer b = {.kind = AF_BUFFER_CONST};
                b.data = af_bundle_add_blob(&job->builder, g->constants[i].bytes, g->constants[i].n_bytes, 64);
                int r = place(job, g->constants[i].value, b, af_size_const(0));
                if (r)
                        return r;
        }
        return 0;
}

static bool same_size(struct af_size a, struct af_size b) {
        return a.x == b.x && (a.x || a.n == b.n);
}

/*
 * An output that replaces an input is written where the input lies, if a kernel makes it and it has the input's strides: whoever reads the
 * old value runs before (order.c), or is the same tile of the same kernel (the schedule checks). *ret_done: it was.
 */
static int place_in_input(struct af_job *job, const struct af_graph_output *out, uint32_t v, bool *ret_done) {
        const struct af_graph *g = &job->graph;
        *ret_done = false;
        if (out->alias_of == AF_NONE || v != out->value || g->values[v].kind != AF_VALUE_NODE)
                return 0;
        uint32_t unit = job->unit_of_node[g->values[v].index], input = g->inputs[out->alias_of].value;
        const struct af_value *value = &g->values[v], *old = &g->values[input];
        if (unit == AF_NONE || job->units[unit].group == AF_NONE || value->dtype != old->dtype || value->rank != old->rank)
                return 0;
        struct af_size *dims = dims_of(job, v), *old_dims = dims_of(job, input),
                       *strides = af_arena_calloc(job->arena, AF_LIMIT_RANK, sizeof(*strides));
        if (!dims || !old_dims || !strides)
                return -ENOMEM;
        dense_strides(job, dims, value->rank, strides);
        for (uint32_t i = 0; i < value->rank; i++) {
                if (value->strides)
                        strides[i] = af_size_of(&job->sizes, value->strides[i]);
                bool unit_axis = !dims[i].x && dims[i].n == 1;
                if (!same_size(dims[i], old_dims[i]) || (!unit_axis && !same_size(strides[i], job->places[input].strides[i])))
                        return 0;
        }
        job->places[v] = job->places[input];
        job->places[v].strides = strides;
        *ret_done = true;
        return 0;
}

/* Outputs name their memory: the first output that shows a value gives it its slot. */
static int place_outputs(struct af_job *job) {
        const struct af_graph *g = &job->graph;
        for (uint32_t i = 0; i < g->n_outputs; i++) {
                uint32_t v = root_of(job, g->outputs[i].value);
                bool done;
                if (job->places[v].buffer != AF_NONE)
                        continue;
                int r = place_in_input(job, &g->outputs[i], v, &done);
                if (!r && done)
                        continue;
                if (!r)
                        r = place(job, v, (struct af_bundle_buffer){.kind = AF_BUFFER_OUTPUT, .slot = i}, af_size_const(0));
                if (r)
                        return r;
        }
        return 0;
}

struct life {
        uint32_t buffer, first, last; /* units */
};
struct lives {
        struct life *items;
        uint32_t n, cap;
};

/* A temporary for each value that is stored and has no memory yet. */
static int place_temps(struct af_job *job, uint32_t *last_use, struct lives *lives) {
        const struct af_graph *g = &job->graph;
        for (uint32_t u = 0; u < job->n_units; u++) {
                const struct af_unit *unit = &job->units[u];
                const uint32_t *values = unit->group != AF_NONE ? job->fusion.groups[unit->group].outputs : g->nodes[unit->node].out;
                uint32_t n = unit->group != AF_NONE ? job->fusion.groups[unit->group].n_outputs : g->nodes[unit->node].n_out;
                for (uint32_t i = 0; i < n; i++) {
                        uint32_t v = values[i];
                        if (job->places[v].buffer != AF_NONE)
                                continue;
                        int r = place(job, v, (struct af_bundle_buffer){.kind = AF_BUFFER_TEMP}, af_size_const(0));
                        if (!r)
                                r = af_arena_grow(job->arena, &lives->items, &lives->cap, lives->n + 1, sizeof(*lives->items));
                        if (r)
                                return r;
                        lives->items[lives->n++] = (struct life){job->places[v].buffer, u, AF_MAX(last_use[v], u)};
                }
                if (unit->group == AF_NONE || !job->kernels[unit->group].kernel->workspace_bytes)
                        continue;
                struct af_kernel_out *k = &job->kernels[unit->group];
                int r = add_buffer(job, (struct af_bundle_buffer){.kind = AF_BUFFER_TEMP}, af_job_workspace(job, k->kernel),
                                   &k->workspace_buffer);
                if (!r)
                        r = af_arena_grow(job->arena, &lives->items, &lives->cap, lives->n + 1, sizeof(*lives->items));
                if (r)
                        return r;
                lives->items[lives->n++] = (struct life){k->workspace_buffer, u, u};
        }
        return 0;
}

/* Last unit that reads each root value. */
static void find_last_uses(const struct af_job *job, uint32_t *last_use) {
        const struct af_graph *g = &job->graph;
        for (uint32_t n = 0; n < g->n_nodes; n++) {
                uint32_t u = job->unit_of_node[n];
                for (uint32_t i = 0; u != AF_NONE && i < g->nodes[n].n_in; i++) {
                        uint32_t v = root_of(job, g->nodes[n].in[i]);
                        last_use[v] = AF_MAX(last_use[v], u);
                }
        }
}

struct gap {
        uint64_t offset, bytes;
};

/* First fit in a sorted list of free gaps; the end of the arena grows. */
static uint64_t take_gap(struct gap *gaps, uint32_t *n, uint64_t bytes, uint64_t *end) {
        for (uint32_t i = 0; i < *n; i++) {
                if (gaps[i].bytes < bytes)
                        continue;
                uint64_t at = gaps[i].offset;
                gaps[i].offset += bytes;
                gaps[i].bytes -= bytes;
                if (!gaps[i].bytes)
                        memmove(&gaps[i], &gaps[i + 1], (--*n - i) * sizeof(*gaps));
                return at;
        }
        if (*n && gaps[*n - 1].offset + gaps[*n - 1].bytes == *end) {
                uint64_t at = gaps[--*n].offset;
                *end = at + bytes;
                return at;
        }
        *end += bytes;
        return *end - bytes;
}
static void give_gap(struct gap *gaps, uint32_t *n, uint64_t offset, uint64_t bytes) {
        uint32_t i = *n;
        while (i > 0 && gaps[i - 1].offset > offset)
                i--;
        bool left = i > 0 && gaps[i - 1].offset + gaps[i - 1].bytes == offset;
        bool right = i < *n && offset + bytes == gaps[i].offset;
        if (left && right) {
                gaps[i - 1].bytes += bytes + gaps[i].bytes;
                memmove(&gaps[i], &gaps[i + 1], (--*n - i) * sizeof(*gaps));
        } else if (left) {
                gaps[i - 1].bytes += bytes;
        } else if (right) {
                gaps[i].offset = offset;
                gaps[i].bytes += bytes;
        } else {
                memmove(&gaps[i + 1], &gaps[i], (*n - i) * sizeof(*gaps));
                gaps[i] = (struct gap){offset, bytes};
                ++*n;
        }
}

/* Linear scan over the steps: lives are in order of their first step already. */
static int pack_temps(struct af_job *job, const struct lives *lives) {
        struct gap *gaps = af_arena_calloc(job->arena, lives->n + 1, sizeof(*gaps));
        uint32_t *first = af_arena_calloc(job->arena, job->n_units + 2, sizeof(*first));
        uint32_t *ending = af_arena_calloc(job->arena, lives->n, sizeof(*ending));
        uint32_t n_gaps = 0, next = 0;
        uint64_t end = 0;
        if (!gaps || !first || !ending)
                return -ENOMEM;
        for (uint32_t i = 0; i < lives->n; i++)
                first[lives->items[i].last + 1]++;
        for (uint32_t u = 0; u < job->n_units; u++)
                first[u + 1] += first[u];
        for (uint32_t i = lives->n; i-- > 0;)
                ending[--first[lives->items[i].last + 1]] = i;
        /* first[u + 1] is now where the lives that end with unit u start */
        for (uint32_t u = 0, e = 0; u < job->n_units; u++) {
                for (; next < lives->n && lives->items[next].first == u; next++) {
                        struct af_bundle_buffer *b = &job->buffers[lives->items[next].buffer];
                        b->bytes = AF_ALIGN_UP(b->bytes, TEMP_ALIGN);
                        if (b->bytes && !job->buffer_bytes[lives->items[next].buffer].x)
                                b->offset = take_gap(gaps, &n_gaps, b->bytes, &end);
                        if (end > AF_BUNDLE_MAX_BYTES) {
                                af_diag_error(job->diags, "fragment", "its temporaries need more than the limit of 2^48 bytes");
                                return AF_DRIVER_E_INVALID;
                        }
                }
                for (; e < lives->n && lives->items[ending[e]].last == u; e++) {
                        const struct af_bundle_buffer *b = &job->buffers[lives->items[ending[e]].buffer];
                        if (b->bytes && !job->buffer_bytes[lives->items[ending[e]].buffer].x)
                                give_gap(gaps, &n_gaps, b->offset, b->bytes);
                }
        }
        return 0;
}

/* Temporaries whose size depends on symbols come behind the others, one after another. */
static void place_symbolic_temps(struct af_job *job, const struct lives *lives) {
        uint64_t end = 0;
        for (uint32_t i = 0; i < job->n_buffers; i++)
                if (job->buffers[i].kind == AF_BUFFER_TEMP && !job->buffer_bytes[i].x)
                        end = AF_MAX(end, job->buffers[i].offset + job->buffers[i].bytes);
        struct af_size at = af_size_const((int64_t)end);
        for (uint32_t i = 0; i < lives->n; i++) {
                uint32_t id = lives->items[i].buffer;
                if (!job->buffer_bytes[id].x)
                        continue;
                job->buffer_bytes[id] = af_size_align(&job->sizes, job->buffer_bytes[id], TEMP_ALIGN);
                job->buffer_offset[id] = at;
                job->buffers[id].bytes = (uint64_t)job->buffer_bytes[id].n;
                job->buffers[id].offset = (uint64_t)at.n;
                at = af_size_op(&job->sizes, AF_EXPR_ADD, at, job->buffer_bytes[id]);
        }
}

int af_pass_layout(struct af_job *job) {
        const struct af_graph *g = &job->graph;
        struct lives lives = {0};
        uint32_t *last_use = af_arena_calloc(job->arena, g->n_values, sizeof(*last_use));
        job->places = af_arena_calloc(job->arena, g->n_values, sizeof(*job->places));
        if (!job->places || !last_use)
                return -ENOMEM;
        for (uint32_t v = 0; v < g->n_values; v++)
                job->places[v].buffer = AF_NONE;
        if (af_sizes_init(&job->sizes, &job->graph, &job->builder))
                return -ENOMEM;
        find_last_uses(job, last_use);
        int r = place_sources(job);
        if (!r)
                r = place_outputs(job);
        if (!r)
                r = place_temps(job, last_use, &lives);
        if (!r)
                r = pack_temps(job, &lives);
        if (!r)
                place_symbolic_temps(job, &lives);
        for (uint32_t n = 0; !r && n < g->n_nodes; n++)
                if (job->fusion.alias_view[n])
                        r = place_view(job, n);
        return r;
}
