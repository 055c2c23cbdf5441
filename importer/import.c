/* SPDX-License-Identifier: Apache-2.0 */
/* The walk over a model: values by name, inputs and initializers, nodes by handler, outputs. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "importer/import.h"

void im_refuse(struct import *im, const char *fmt, ...) {
        char text[512];
        va_list ap;
        if (im->error)
                return;
        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        const char *where = im->node && im->node->n_output && im->node->output[0] ? im->node->output[0] : "model";
        af_diag_error(im->diags, where, "%s", text);
        im->error = AF_ONNX_E_REFUSED;
}

static uint32_t hash(const char *s) {
        uint32_t h = 2166136261u;
        for (; *s; s++)
                h = (h ^ (uint8_t)*s) * 16777619u;
        return h;
}

struct val *im_lookup(struct import *im, const char *name) {
        for (uint32_t i = hash(name) & (im->table_size - 1);; i = (i + 1) & (im->table_size - 1)) {
                if (!im->table[i].name)
                        return NULL;
                if (strcmp(im->table[i].name, name) == 0)
                        return im->table[i].v;
        }
}

static void bind_value(struct import *im, const char *name, struct val *v) {
        uint32_t i = hash(name) & (im->table_size - 1);
        while (im->table[i].name && strcmp(im->table[i].name, name) != 0)
                i = (i + 1) & (im->table_size - 1);
        im->table[i].name = name;
        im->table[i].v = v;
}

/* Names that a graph and those within it define. */
static size_t count_names(const Onnxm__Graph *g) {
        size_t n = g->n_input + g->n_initializer;
        for (size_t i = 0; i < g->n_node; i++) {
                n += g->node[i]->n_output;
                for (size_t k = 0; k < g->node[i]->n_attribute; k++)
                        if (g->node[i]->attribute[k]->g)
                                n += count_names(g->node[i]->attribute[k]->g);
        }
        return n;
}

static int make_table(struct import *im) {
        size_t n = count_names(im->m->proto->graph);
        if (n > AF_LIMIT_VALUES) {
                af_diag_error(im->diags, "model", "%zu values, at most %u", n, AF_LIMIT_VALUES);
                return AF_ONNX_E_INVALID;
        }
        for (im->table_size = 16; im->table_size < 2 * n + 2;)
                im->table_size *= 2;
        im->table = af_arena_calloc(im->arena, im->table_size, sizeof(*im->table));
        return im->table ? 0 : -ENOMEM;
}

static void bind_initializers(struct import *im, const Onnxm__Graph *g) {
        for (size_t i = 0; i < g->n_initializer && !im->error; i++) {
                struct af_onnx_tensor t;
                int r = im_tensor(im->arena, g->initializer[i], &t, im->diags);
                if (r) {
                        im->error = r;
                        return;
                }
                struct val *v = im_known(im, t.dtype, t.rank, t.dims, t.bytes);
                if (v)
                        bind_value(im, g->initializer[i]->name ? g->initializer[i]->name : "", v);
        }
}

/* Shape and dtype of model input i: the feed's, checked against what the model states. */
static void bind_input(struct import *im, uint32_t i) {
        const Onnxm__ValueInfo *info = im->m->inputs[i];
        const Onnxm__TensorType *type = info->type ? info->type->tensor_type : NULL;
        const struct af_onnx_tensor *feed = im->feeds && i < im->n_feeds ? &im->feeds[i] : NULL;
        struct val *v = af_arena_alloc(im->arena, sizeof(*v));
        if (!v) {
                im->error = -ENOMEM;
                return;
        }
        *v = (struct val){.input = (int32_t)i};
        if (feed) {
                bool bits = feed->elem_type == IM_ELEM_UINT16 && type && type->elem_type == IM_ELEM_BFLOAT16;
                v->dtype = bits ? AF_DTYPE_BFLOAT16 : feed->dtype;
                v->rank = feed->rank;
                memcpy(v->dims, feed->dims, sizeof(v->dims));
        } else if (type) {
                v->dtype = im_dtype(type->elem_type);
                v->rank = type->shape ? (uint32_t)type->shape->n_dim : 0;
                for (uint32_t a = 0; a < AF_MIN(v->rank, AF_LIMIT_RANK); a++)
                        v->dims[a] = type->shape->dim[a]->has_dim_value ? type->shape->dim[a]->dim_value : -1;
        }
        bool known = type && (feed || type->shape) && v->rank <= AF_LIMIT_RANK;
        for (uint32_t a = 0; known && a < v->rank; a++)
                known = v->dims[a] >= 0;
        if (!type)
                im_refuse(im, "dtype of input '%s': not a tensor", info->name);
        else if (!known)
                im_refuse(im, "shape of input '%s' is not known: give its data", info->name);
        else if (feed && im_dtype(type->elem_type) != v->dtype)
                im_refuse(im, "dtype %s of the data for input '%s', the model says %s", im_elem_name(feed->elem_type), info->name,
                          im_elem_name(type->elem_type));
        if (!im->error)
                bind_value(im, info->name, v);
}

static const struct handler *find_handler(const char *op) {
        static const struct handler *const tables[] = {im_ops_simple, im_ops_composite, im_ops_norm,   im_ops_shape, im_ops_move,
                                                       im_ops_loss,   im_ops_window,    im_ops_resize, im_ops_train, im_ops_control};
        for (size_t t = 0; t < AF_ARRAY_SIZE(tables); t++)
                for (const struct handler *h = tables[t]; h->name; h++)
                        if (strcmp(h->name, op) == 0)
                                return h;
        return NULL;
}

static bool gather_operands(struct import *im) {
        const Onnxm__Node *n = im->node;
        if (n->n_input > ONNX_MAX_IO || n->n_output > ONNX_MAX_IO) {
                im_refuse(im, "op %s with more than %u operands", n->op_type, ONNX_MAX_IO);
                return false;
        }
        im->n_in = (uint32_t)n->n_input;
        memset(im->out, 0, sizeof(im->out));
        for (uint32_t i = 0; i < im->n_in; i++) {
                im->in[i] = NULL;
                if (!n->input[i][0])
                        continue; /* an optional operand that is left out */
                im->in[i] = im_lookup(im, n->input[i]);
                if (!im->in[i]) {
                        af_diag_error(im->diags, n->output[0], "input '%.200s' of %s is not defined before it", n->input[i], n->op_type);
                        im->error = AF_ONNX_E_INVALID;
                        return false;
                }
        }
        while (im->n_in && !im->in[im->n_in - 1])
                im->n_in--;
        for (uint32_t i = im->n_in; i < ONNX_MAX_IO; i++)
                im->in[i] = NULL;
        return true;
}

static bool all_constant(const struct import *im) {
        for (uint32_t i = 0; i < im->n_in; i++)
                if (!im->in[i] || !im->in[i]->constant || im_count(im->in[i]) > (1 << 20))
                        return false;
        return im->n_in > 0;
}

/* Makes the outputs of im->node, folded or by its handler. */
static void run_handler(struct import *im) {
        const Onnxm__Node *n = im->node;
        if (n->domain && *n->domain && strcmp(n->domain, "ai.onnx") != 0 && strcmp(n->domain, "ai.onnx.preview.training") != 0) {
                im_refuse(im, "op %s of domain %.100s", n->op_type, n->domain);
                return;
        }
        if (all_constant(im) && im_foldable(n->op_type)) {
                im->out[0] = im_fold(im, n, im->in, im->n_in);
                im->ret->n_folded += im->out[0] != NULL;
        }
        if (!im->out[0] && !im->error) {
                const struct handler *h = find_handler(n->op_type);
                if (h) {
                        im->op = h->op;
                        h->run(im);
                } else {
                        im_refuse(im, "op %s", n->op_type);
                }
        }
        for (uint32_t i = 0; i < n->n_output && !im->error; i++)
                if (n->output[i][0] && !im->out[i])
                        im_refuse(im, "op %s with output %u", n->op_type, i);
}

static bool is_forced(const struct import *im) {
        for (uint32_t i = 0; im->options && i < im->options->n_forced; i++)
                if (im->options->forced[i] == im->at)
                        return true;
        return false;
}

/* Nodes of an attempt that was refused are taken back; what it brought in (inputs, constants) stays, unused. */
static void take_back(struct import *im, uint32_t n_nodes) {
        im->f->n_values -= im->f->n_nodes - n_nodes;
        im->f->n_nodes = im->ret->n_nodes = n_nodes;
}

/* The node by its handler, or whole as an opaque one where that is refused and allowed. */
static void import_or_leave(struct import *im) {
        AF_CLEANUP(af_diags_deinit) struct af_diags own = {0};
        struct af_diags *outer = im->diags;
        bool forced = is_forced(im), opaque = im->options && im->options->opaque;
        uint32_t n_nodes = im->f->n_nodes;
        if (!forced) {
                im->diags = opaque ? &own : outer;
                run_handler(im);
                im->diags = outer;
                if (im->error != AF_ONNX_E_REFUSED || !opaque)
                        return;
        }
        take_back(im, n_nodes);
        memset(im->out, 0, sizeof(im->out));
        im->error = 0;
        im_opaque(im, forced ? "the compiler has no kernel for it" : own.n_items ? own.items[0].what : "not expressed");
}

static void import_node(struct import *im) {
        const Onnxm__Node *n = im->node;
        if (!n->op_type || !n->n_output || !gather_operands(im))
                return;
        import_or_leave(im);
        for (uint32_t i = 0; i < n->n_output && !im->error; i++) {
                if (!n->output[i][0])
                        continue;
                if (!im->out[i]->producer && !im->out[i]->constant && im->out[i]->input < 0)
                        im->out[i]->producer = n;
                bind_value(im, n->output[i], im->out[i]);
        }
}

void im_graph(struct import *im, const Onnxm__Graph *g) {
        bind_initializers(im, g);
        for (size_t i = 0; i < g->n_node && !im->error; i++) {
                im->node = g->node[i];
                import_node(im);
        }
}

void im_enter(struct import *im, struct val *v) {
        const uint32_t *dims;
        char name[32];
        if (im->error || v->name)
                return;
        if (!v->constant && v->input < 0) {
                im_refuse(im, "op %s of data", v->producer ? v->producer->op_type : "?");
                return;
        }
        snprintf(name, sizeof(name), "v%u", im->n_names++);
        struct af_fragment_tensor t = {.name = af_arena_strdup(im->arena, name), .dtype = v->dtype, .rank = v->rank};
        int r = t.name ? af_fragment_dims_const(im->f, v->dims, v->rank, &dims) : -ENOMEM;
        t.dims = dims;
        if (!r && (v->dtype == AF_DTYPE_INVALID || (v->dtype == AF_DTYPE_FLOAT64 && (v->rank || !v->constant)))) {
                im_refuse(im, "dtype %s", v->dtype == AF_DTYPE_FLOAT64 ? "float64" : "that fragments do not have");
                return;
        }
        if (!r && v->constant) {
                struct af_fragment_constant c = {.t = t, .bytes = v->bytes, .n_bytes = (size_t)im_count(v) * af_dtype_size(v->dtype)};
                r = af_fragment_add_constant(im->f, &c, im->diags);
        } else if (!r) {
                uint32_t zero;
                r = af_expr_const(&im->f->exprs, 0, &zero);
                struct af_fragment_input in = {.t = t, .offset = zero};
                if (!r)
                        r = af_fragment_add_input(im->f, &in, im->diags);
                if (!r)
                        r = af_arena_grow(im->arena, &im->ret->input_of, &im->cap_inputs, im->ret->n_inputs + 1, sizeof(uint32_t));
                if (!r)
                        im->ret->input_of[im->ret->n_inputs++] = (uint32_t)v->input;
        }
        if (r)
                im->error = r;
        v->name = t.name;
}

/* attrs in the order of their keys. */
static void sorted_attrs(const struct af_attr *attrs, uint32_t n, struct af_attr *ret) {
        for (uint32_t i = 0; i < n; i++) {
                uint32_t at = i;
                for (; at && ret[at - 1].key > attrs[i].key; at--)
                        ret[at] = ret[at - 1];
                ret[at] = attrs[i];
        }
}

/* What the table says of the node; refused in the name of the model's where it is none. */
static int infer(struct import *im, enum af_op op, const struct af_infer_operand *operands, uint32_t n, const struct af_attr *attrs,
                 uint32_t n_attrs, struct af_inferred *ret) {
        AF_CLEANUP(af_diags_deinit) struct af_diags why = {0};
        const char *name = im->node->op_type;
        int r = af_infer(&im->f->exprs, im->arena, op, operands, n, attrs, n_attrs, name, ret, &why);
        if (r > 0)
                im_refuse(im, "op %s: %s", name, why.n_items ? why.items[0].what : af_op_info(op)->name);
        return r;
}

struct val *im_node(struct import *im, enum af_op op, struct val *const *in, uint32_t n, const struct af_attr *given, uint32_t n_attrs,
                    enum af_dtype dtype) {
        struct af_infer_operand operands[ONNX_MAX_IO];
        struct af_attr attrs[AF_N_ATTRS];
        const char *names[ONNX_MAX_IO];
        struct af_inferred got = {0};
        char node_name[32];
        sorted_attrs(given, n_attrs, attrs);
        for (uint32_t i = 0; i < n && !im->error; i++) {
                if (!in[i]) {
                        im_refuse(im, "op %s without input %u", im->node->op_type, i);
                        return NULL;
                }
                im_enter(im, in[i]);
                operands[i] = (struct af_infer_operand){.dtype = in[i]->dtype, .rank = in[i]->rank};
                int r = im->error ? im->error : af_fragment_dims_const(im->f, in[i]->dims, in[i]->rank, &operands[i].dims);
                im->error = r;
                names[i] = in[i]->name;
        }
        if (im->error)
                return NULL;
        snprintf(node_name, sizeof(node_name), "n%u", im->ret->n_nodes);
        int r = infer(im, op, operands, n, attrs, n_attrs, &got);
        struct val *v = af_arena_alloc(im->arena, sizeof(*v));
        char name[32];
        snprintf(name, sizeof(name), "v%u", im->n_names++);
        if (!r && !v)
                r = -ENOMEM;
        if (r < 0)
                im->error = r;
        if (im->error)
                return NULL;
        *v = (struct val){.name = af_arena_strdup(im->arena, name),
                          .dtype = dtype == AF_DTYPE_INVALID ? got.dtype : dtype,
                          .rank = got.rank,
                          .input = -1};
        for (uint32_t i = 0; i < got.rank; i++)
                af_expr_is_const(&im->f->exprs, got.dims[i], &v->dims[i]);
        struct af_fragment_tensor out = {.name = v->name, .dtype = v->dtype, .rank = v->rank, .dims = got.dims};
        struct af_fragment_node node = {.name = node_name,
                                        .op = af_op_info(op)->name,
                                        .origin = im->node->op_type,
                                        .inputs = names,
                                        .n_inputs = n,
                                        .attrs = attrs,
                                        .n_attrs = n_attrs,
                                        .outputs = &out,
                                        .n_outputs = 1};
        im_add_node(im, &node);
        return im->error ? NULL : v;
}

void im_add_node(struct import *im, const struct af_fragment_node *node) {
        struct af_onnx_import *ret = im->ret;
        if (im->error)
                return;
        im->error = node->outputs->name ? af_fragment_add_node(im->f, node, im->diags) : -ENOMEM;
        if (!im->error)
                im->error = af_arena_grow(im->arena, &ret->node_of, &im->cap_nodes, ret->n_nodes + 1, sizeof(*ret->node_of));
        if (!im->error)
                ret->node_of[ret->n_nodes++] = im->at;
}

static void add_outputs(struct import *im) {
        const Onnxm__Graph *g = im->m->proto->graph;
        im->node = NULL;
        for (size_t i = 0; i < g->n_output && !im->error; i++) {
                struct val *v = g->output[i]->name ? im_lookup(im, g->output[i]->name) : NULL;
                if (!v) {
                        af_diag_error(im->diags, "model", "output %zu is not defined", i);
                        im->error = AF_ONNX_E_INVALID;
                        return;
                }
                im_enter(im, v);
                struct af_fragment_output o = {.value = v->name};
                int r = im->error ? im->error : af_fragment_add_output(im->f, &o, im->diags);
                im->error = r;
        }
}

int af_onnx_import(const struct af_onnx_model *m, const struct af_onnx_tensor *feeds, uint32_t n_feeds,
                   const struct af_onnx_options *options, struct af_fragment *f, struct af_onnx_import *ret, struct af_diags *diags) {
        struct import im = {
                .m = m, .arena = f->arena, .f = f, .diags = diags, .feeds = feeds, .n_feeds = n_feeds, .options = options, .ret = ret};
        const Onnxm__Graph *g = m->proto->graph;
        *ret = (struct af_onnx_import){.by_value = af_arena_calloc(f->arena, m->n_inputs + 1, sizeof(bool))};
        int r = ret->by_value ? make_table(&im) : -ENOMEM;
        if (r)
                return r;
        bind_initializers(&im, g);
        for (uint32_t i = 0; i < m->n_inputs && !im.error; i++)
                bind_input(&im, i);
        for (size_t i = 0; i < g->n_node && !im.error; i++) {
                im.node = g->node[i];
                im.at = (uint32_t)i;
                import_node(&im);
        }
        if (!im.error)
                add_outputs(&im);
        return im.error;
}
