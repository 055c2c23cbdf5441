/* SPDX-License-Identifier: Apache-2.0 */
/* libautofuse-onnx: the importer behind one call, its answer as a text. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "importer/autofuse_onnx.h"
#include "importer/import.h"

struct call {
        struct af_arena arena;
        struct af_diags diags;
        struct af_onnx_model *model;
        struct af_fragment fragment;
        struct af_onnx_import import;
};

static void put_string(struct af_buf *buf, const char *s) {
        af_buf_put_u8(buf, '"');
        for (; *s; s++) {
                if (*s == '"' || *s == '\\')
                        af_buf_put_u8(buf, '\\');
                if ((unsigned char)*s < 0x20)
                        af_buf_printf(buf, "\\u%04x", (unsigned char)*s);
                else
                        af_buf_put_u8(buf, (uint8_t)*s);
        }
        af_buf_put_u8(buf, '"');
}
static void put_numbers(struct af_buf *buf, const char *name, const uint32_t *items, uint32_t n) {
        af_buf_printf(buf, ",\"%s\":[", name);
        for (uint32_t i = 0; i < n; i++)
                af_buf_printf(buf, i ? ",%u" : "%u", items[i]);
        af_buf_put_u8(buf, ']');
}
static void put_values(struct af_buf *buf, const struct call *c) {
        uint32_t n = 0;
        af_buf_put_str(buf, ",\"values\":[");
        for (uint32_t i = 0; c->import.by_value && i < c->model->n_inputs; i++)
                if (c->import.by_value[i])
                        af_buf_printf(buf, n++ ? ",%u" : "%u", i);
        af_buf_put_u8(buf, ']');
}

static void put_answer(struct af_buf *buf, const struct call *c) {
        const struct af_onnx_import *got = &c->import;
        af_buf_put_str(buf, "{\"fragment\":");
        af_fragment_print(&c->fragment, 0, buf);
        put_numbers(buf, "inputs", got->input_of, got->n_inputs);
        put_values(buf, c);
        put_numbers(buf, "nodes", got->node_of, got->n_nodes);
        af_buf_put_str(buf, ",\"opaque\":[");
        for (uint32_t i = 0; i < got->n_opaque; i++) {
                af_buf_printf(buf, "%s{\"node\":%u,\"op\":", i ? "," : "", got->opaque[i].node);
                put_string(buf, c->model->proto->graph->node[got->opaque[i].node]->op_type);
                af_buf_put_str(buf, ",\"reason\":");
                put_string(buf, got->opaque[i].reason);
                af_buf_put_u8(buf, '}');
        }
        af_buf_printf(buf, "],\"folded\":%u}", got->n_folded);
}
static void put_errors(struct af_buf *buf, const struct call *c) {
        uint32_t n = 0;
        af_buf_put_str(buf, "{\"errors\":[");
        for (uint32_t i = 0; i < c->diags.n_items; i++) {
                const struct af_diag *d = &c->diags.items[i];
                if (d->severity != AF_SEVERITY_ERROR)
                        continue;
                af_buf_printf(buf, "%s{\"where\":", n++ ? "," : "");
                put_string(buf, d->where ? d->where : "model");
                af_buf_put_str(buf, ",\"what\":");
                put_string(buf, d->what);
                af_buf_put_u8(buf, '}');
        }
        af_buf_put_u8(buf, ']');
        if (c->model)
                put_values(buf, c);
        af_buf_put_u8(buf, '}');
}

/* The caller's tensors as the importer's. NULL where they cannot be: *ret_r says why. */
static struct af_onnx_tensor *tensors(struct call *c, const struct autofuse_onnx_tensor *feeds, size_t n, int *ret_r) {
        struct af_onnx_tensor *out = af_arena_calloc(&c->arena, n + 1, sizeof(*out));
        *ret_r = out ? 0 : -ENOMEM;
        for (size_t i = 0; out && i < n; i++) {
                const struct autofuse_onnx_tensor *t = &feeds[i];
                const Onnxm__ValueInfo *info = i < c->model->n_inputs ? c->model->inputs[i] : NULL;
                const Onnxm__TensorType *stated = info && info->type ? info->type->tensor_type : NULL;
                if (t->rank > AF_LIMIT_RANK) {
                        af_diag_error(&c->diags, info ? info->name : "model", "shape of rank %u", t->rank);
                        *ret_r = AF_ONNX_E_REFUSED;
                        return NULL;
                }
                out[i] = (struct af_onnx_tensor){.name = "", .rank = t->rank, .bytes = t->data, .n_bytes = t->n_bytes};
                out[i].elem_type = t->elem_type ? t->elem_type : stated ? stated->elem_type : 0;
                out[i].dtype = im_dtype(out[i].elem_type);
                if (t->rank)
                        memcpy(out[i].dims, t->dims, t->rank * sizeof(*t->dims));
        }
        return out;
}

static int import(struct call *c, const void *model, size_t n, const struct autofuse_onnx_tensor *feeds, size_t n_feeds,
                  const struct autofuse_onnx_options *options) {
        struct af_onnx_options o = {0};
        struct af_onnx_tensor *fed = NULL;
        if (options && options->size >= sizeof(*options))
                o = (struct af_onnx_options){.opaque = options->opaque, .forced = options->forced, .n_forced = (uint32_t)options->n_forced};
        int r = af_onnx_load(&c->arena, model, n, &c->model, &c->diags);
        if (r == 0)
                r = af_onnx_check_types(c->model, &c->diags);
        if (r == 0 && feeds)
                fed = tensors(c, feeds, n_feeds, &r);
        if (r == 0)
                r = af_fragment_init(&c->fragment, &c->arena);
        if (r == 0)
                r = af_onnx_import(c->model, fed, (uint32_t)n_feeds, &o, &c->fragment, &c->import, &c->diags);
        return r;
}

enum autofuse_onnx_status autofuse_onnx_import(const void *model, size_t n, const struct autofuse_onnx_tensor *feeds, size_t n_feeds,
                                               const struct autofuse_onnx_options *options, char **ret_json) {
        AF_CLEANUP(af_buf_deinit) struct af_buf buf = AF_BUF_INIT;
        struct call c = {0};
        size_t size;
        af_arena_init(&c.arena, 0);
        int r = import(&c, model, n, feeds, n_feeds, options);
        if (r == 0)
                put_answer(&buf, &c);
        else if (r > 0)
                put_errors(&buf, &c);
        af_onnx_close(c.model);
        af_diags_deinit(&c.diags);
        af_arena_deinit(&c.arena);
        *ret_json = r < 0 ? NULL : (char *)af_buf_take(&buf, &size);
        if (!*ret_json)
                return AUTOFUSE_ONNX_E_MEMORY;
        return r == 0 ? AUTOFUSE_ONNX_OK : r == AF_ONNX_E_REFUSED ? AUTOFUSE_ONNX_E_REFUSED : AUTOFUSE_ONNX_E_INVALID;
}

void autofuse_onnx_free(char *json) {
        free(json);
}
