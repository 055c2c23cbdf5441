/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ONNX models to fragments. Ops of the table map one to one, composites expand into its parts, and what only feeds shapes, axes
 * and other parameters is folded. Dimensions must be known: from the model or from the tensors that are fed.
 */
#pragma once

#include "base/arena.h"
#include "base/diag.h"
#include "proto/fragment.h"

struct af_onnx_tensor {
        const char *name;    /* "" where the file has none */
        enum af_dtype dtype; /* INVALID: a type that fragments do not have; elem_type says which */
        int32_t elem_type;   /* ONNX's number */
        uint32_t rank;
        int64_t dims[AF_LIMIT_RANK];
        const uint8_t *bytes; /* row-major, little-endian; bool as one byte 0/1 */
        size_t n_bytes;
};
struct af_onnx_model;
enum {
        AF_ONNX_E_INVALID = 1, /* not a model or tensor, or one that contradicts itself; diagnostics */
        AF_ONNX_E_REFUSED = 2, /* valid, but not all of it can be expressed: the first diagnostic's text starts with `op NAME`, `dtype NAME`
                                  or `shape` */
};

/* Parses a .onnx file's bytes. Everything lives in arena. 0, -ENOMEM, AF_ONNX_E_INVALID. */
int af_onnx_load(struct af_arena *arena, const void *p, size_t n, struct af_onnx_model **ret_model, struct af_diags *diags) AF_WARN_UNUSED;
/* Frees what the parser holds; the arena keeps the rest. Accepts NULL. */
void af_onnx_close(struct af_onnx_model *m);
/* Inputs that a caller gives (initializers are not among them) and outputs, in the model's order. */
uint32_t af_onnx_n_inputs(const struct af_onnx_model *m);
uint32_t af_onnx_n_outputs(const struct af_onnx_model *m);
const char *af_onnx_input_name(const struct af_onnx_model *m, uint32_t i);
const char *af_onnx_output_name(const struct af_onnx_model *m, uint32_t i);
uint32_t af_onnx_n_nodes(const struct af_onnx_model *m);
/* Whether every input and output is a tensor (sequences, maps and optionals are not): 0 or REFUSED. Ask before reading their files. */
int af_onnx_check_types(const struct af_onnx_model *m, struct af_diags *diags) AF_WARN_UNUSED;

/*
 * A TensorProto file (input_0.pb): bytes of any fixed-size type; ONNX's own test data writes
 * bfloat16 as uint16. 0, -ENOMEM, INVALID, REFUSED (strings, sequences).
 */
int af_onnx_tensor_read(struct af_arena *arena, const void *p, size_t n, struct af_onnx_tensor *ret_tensor,
                        struct af_diags *diags) AF_WARN_UNUSED;

/* A model node that became one opaque node: the caller's to run. */
struct af_onnx_opaque {
        uint32_t node;      /* of the model's graph */
        const char *reason; /* why it is not expressed */
};
struct af_onnx_options {
        bool opaque; /* a node that cannot be expressed becomes an opaque one, where the model states its results' types and shapes */
        const uint32_t *forced; /* nodes of the model that are made opaque whatever they are; may be NULL */
        uint32_t n_forced;
};
struct af_onnx_import {
        uint32_t *input_of; /* per fragment input: which model input it is */
        uint32_t n_inputs;  /* of the fragment: model inputs that only parametrise, or are unused, are not among them */
        uint32_t n_nodes;   /* fragment nodes made */
        uint32_t *node_of;  /* per fragment node: which model node it is made for */
        uint32_t n_folded;  /* model nodes folded away */
        bool *by_value;     /* per model input: its values were read, so the fragment holds for these alone */
        struct af_onnx_opaque *opaque;
        uint32_t n_opaque;
};
/*
 * Builds f (initialised, empty) with one fragment output per model output. feeds (may be NULL): one tensor per model input, in order; they
 * give unknown dimensions and the values of inputs that are shapes, axes or the like; one without bytes gives its shape only. options may
 * be NULL: nothing is opaque. 0, -ENOMEM, INVALID, REFUSED.
 */
int af_onnx_import(const struct af_onnx_model *m, const struct af_onnx_tensor *feeds, uint32_t n_feeds,
                   const struct af_onnx_options *options, struct af_fragment *f, struct af_onnx_import *ret,
                   struct af_diags *diags) AF_WARN_UNUSED;

/*
 * Compares with ONNX's own tolerances: |got - want| <= 1e-7 + 1e-3 |want| for floats, NaN equals NaN, integers and bools exact; dtype and
 * shape too. True where equal; else text says what differs first.
 */
bool af_onnx_equal(const struct af_onnx_tensor *got, const struct af_onnx_tensor *want, char *text, size_t text_size);
