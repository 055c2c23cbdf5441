/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libautofuse-onnx: a model of ONNX becomes a fragment (docs/fragment.md) that libautofuse compiles. No server is asked, nothing is kept
 * between calls, and any number of threads may call at once. The library links nothing of libautofuse and may be loaded beside it.
 */
#ifndef AUTOFUSE_ONNX_H
#define AUTOFUSE_ONNX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum autofuse_onnx_status {
        AUTOFUSE_ONNX_OK = 0,
        AUTOFUSE_ONNX_E_INVALID = 1, /* not a model, or one that contradicts itself */
        AUTOFUSE_ONNX_E_REFUSED = 2, /* a model, but not all of it can be a fragment */
        AUTOFUSE_ONNX_E_MEMORY = 3
};

/* What is fed to one input of the model, in the model's order; initializers that are inputs too are left out. */
struct autofuse_onnx_tensor {
        int32_t elem_type;   /* TensorProto.DataType; 0: what the model states */
        uint32_t rank;       /* at most 16 */
        const int64_t *dims; /* may be NULL where rank is 0 */
        const void *data;    /* row-major, little-endian, bool as one byte; NULL: only the shape is known */
        size_t n_bytes;      /* of data */
};
/* Start from zeros. */
struct autofuse_onnx_options {
        size_t size; /* of this struct */
        bool opaque; /* a node that cannot be expressed becomes an `opaque` one, where the model states its results' types and shapes */
        const uint32_t *forced; /* model nodes that are made opaque whatever they are; may be NULL */
        size_t n_forced;
};
/*
 * Builds the fragment of a serialised ModelProto whose dimensions are those of the feeds, or of the model where feeds is NULL. options may
 * be NULL. *ret_json is a text that the caller frees with autofuse_onnx_free(), NULL only for E_MEMORY. With OK:
 *
 *   {"fragment": {…},           for autofuse_compile_text()
 *    "inputs": [0, 2],          which input of the model each of the fragment's is; those that only give sizes, or are unused, are missing
 *    "values": [1],             inputs of the model whose values were read: the fragment holds for these alone
 *    "nodes": [0, 0, 1],        which node of the model each of the fragment's is made for
 *    "opaque": [{"node": 1, "op": "MatMul", "reason": "op MatMul"}],   nodes of the model that are the caller's
 *    "folded": 3}               nodes of the model that were computed while reading
 *
 * Else {"errors": [{"where": "…", "what": "…"}]}, where names the model's value, node or field; the first `what` of E_REFUSED begins with
 * `op NAME`, `dtype NAME` or `shape` where the importer refused it. `values` is there too: what was read until then.
 */
enum autofuse_onnx_status autofuse_onnx_import(const void *model, size_t n, const struct autofuse_onnx_tensor *feeds, size_t n_feeds,
                                               const struct autofuse_onnx_options *options, char **ret_json);
/* Frees a text; accepts NULL. */
void autofuse_onnx_free(char *json);

#ifdef __cplusplus
}
#endif
#endif
