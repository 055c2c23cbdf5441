/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/model.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"

#define MODEL_MAX_BYTES  ((size_t)2 << 30)
#define TENSOR_MAX_BYTES ((size_t)2 << 30)

int af_model_read_tensor(struct af_arena *arena, const char *dir, const char *kind, uint32_t number, struct af_onnx_tensor *ret_tensor,
                         struct af_diags *diags) {
        AF_CLEANUP(af_buf_deinit) struct af_buf file = AF_BUF_INIT;
        char path[4096];
        if (snprintf(path, sizeof(path), "%s/%s_%u.pb", dir, kind, number) >= (int)sizeof(path))
                return -ENAMETOOLONG;
        int r = af_io_read_file(path, TENSOR_MAX_BYTES, &file);
        if (r < 0)
                return r;
        const void *copy = af_arena_memdup(arena, file.data ? file.data : (const void *)"", file.size);
        return copy ? af_onnx_tensor_read(arena, copy, file.size, ret_tensor, diags) : -ENOMEM;
}

static int read_feeds(struct af_model *m, const char *data, struct af_diags *diags) {
        uint32_t n = af_onnx_n_inputs(m->onnx);
        m->feeds = af_arena_calloc(&m->frag.arena, n, sizeof(*m->feeds));
        if (!m->feeds)
                return -ENOMEM;
        for (uint32_t i = 0; data && i < n; i++) {
                int r = af_model_read_tensor(&m->frag.arena, data, "input", i, &m->feeds[i], diags);
                if (r == -ENOENT)
                        break;
                if (r != 0)
                        return r;
                m->n_feeds = i + 1;
        }
        return 0;
}

static int load(struct af_model *m, const char *path, const char *data, struct af_diags *diags) {
        AF_CLEANUP(af_buf_deinit) struct af_buf file = AF_BUF_INIT;
        int r = af_io_read_file(path, MODEL_MAX_BYTES, &file);
        if (r < 0)
                return r;
        const void *copy = af_arena_memdup(&m->frag.arena, file.data ? file.data : (const void *)"", file.size);
        if (!copy)
                return -ENOMEM;
        r = af_onnx_load(&m->frag.arena, copy, file.size, &m->onnx, diags);
        if (r == 0)
                r = af_onnx_check_types(m->onnx, diags);
        if (r == 0)
                r = read_feeds(m, data, diags);
        if (r == 0)
                r = af_fragment_init(&m->frag.f, &m->frag.arena);
        if (r == 0)
                r = af_onnx_import(m->onnx, m->feeds, m->n_feeds, NULL, &m->frag.f, &m->import, diags);
        if (r == 0)
                r = af_frag_resolve(&m->frag, diags);
        return r;
}

int af_model_load(const char *path, const char *data, struct af_model *ret_model, struct af_diags *diags) {
        *ret_model = (struct af_model){.frag = {.path = path}};
        af_arena_init(&ret_model->frag.arena, 0);
        int r = load(ret_model, path, data, diags);
        if (r != 0)
                af_model_deinit(ret_model);
        return r;
}

void af_model_deinit(struct af_model *m) {
        af_onnx_close(m->onnx);
        af_frag_deinit(&m->frag);
        *m = (struct af_model){0};
}

const char *af_model_reason(const struct af_diags *diags, const char *otherwise) {
        for (uint32_t i = 0; i < diags->n_items; i++)
                if (diags->items[i].severity == AF_SEVERITY_ERROR)
                        return diags->items[i].what;
        return otherwise;
}
