/* SPDX-License-Identifier: Apache-2.0 */
/* An ONNX model as a fragment, with the tensors of a test data set. */
#pragma once

#include "importer/onnx.h"
#include "tools/frag.h"

struct af_model {
        struct af_frag frag; /* its arena holds everything */
        struct af_onnx_model *onnx;
        struct af_onnx_tensor *feeds; /* per model input; n_feeds may be fewer */
        uint32_t n_feeds;
        struct af_onnx_import import;
};
/*
 * Reads and imports a model. data (may be NULL): directory of input_0.pb and so on, which give values of parameters and unknown dimensions.
 * 0, -errno (of path or data), or AF_ONNX_E_*, with the reason as first diagnostic. On failure nothing is left to free.
 */
int af_model_load(const char *path, const char *data, struct af_model *ret_model, struct af_diags *diags) AF_WARN_UNUSED;
void af_model_deinit(struct af_model *m);
/* DIR/<kind>_<number>.pb. 0, -ENOENT, -errno, AF_ONNX_E_*. */
int af_model_read_tensor(struct af_arena *arena, const char *dir, const char *kind, uint32_t number, struct af_onnx_tensor *ret_tensor,
                         struct af_diags *diags) AF_WARN_UNUSED;
/* The first error's text, or otherwise. */
const char *af_model_reason(const struct af_diags *diags, const char *otherwise);
