/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the importer: values by name, the node being imported, and what handlers build with. */
#pragma once

#include "compiler/graph/graph.h"
#include "importer/onnx.h"
#include "numeric/op.h"
#include "onnx_min.pb-c.h"

#define ONNX_MAX_IO      64
#define IM_ELEM_UINT16   4
#define IM_ELEM_BFLOAT16 16

struct af_onnx_model {
        struct af_arena *arena;
        Onnxm__Model *proto;
        const Onnxm__ValueInfo **inputs;
        uint32_t n_inputs;
        int64_t opset; /* of the default domain */
};

/* An ONNX value: a fragment value, or a tensor known at import (which becomes a fragment constant when something computes with it). */
struct val {
        const char *name; /* in the fragment; NULL: not there yet */
        enum af_dtype dtype;
        uint32_t rank;
        int64_t dims[AF_LIMIT_RANK];
        const uint8_t *bytes;        /* known; NULL: not */
        bool constant;               /* known without feeds */
        int32_t input;               /* model input, or -1 */
        const Onnxm__Node *producer; /* to find its value when a parameter depends on feeds; NULL */
};
struct import {
        const struct af_onnx_model *m;
        struct af_arena *arena;
        struct af_fragment *f;
        struct af_diags *diags;
        const struct af_onnx_tensor *feeds;
        uint32_t n_feeds;
        struct {
                const char *name;
                struct val *v;
        } * table;
        uint32_t table_size;
        struct af_onnx_import *ret;
        const struct af_onnx_options *options;
        uint32_t cap_inputs, cap_nodes, cap_opaque, n_names;
        const Onnxm__Node *node; /* being imported */
        uint32_t at;             /* its index in the model's own graph, also while a graph within it is read */
        uint32_t depth;          /* of graphs within graphs */
        enum af_op op;           /* of its handler's row */
        struct val *in[ONNX_MAX_IO];
        uint32_t n_in;
        struct val *out[ONNX_MAX_IO];
        int error; /* sticky */
};

/* Each returns NULL, or 0, once im->error is set: handlers need not check between calls. */
struct val *im_lookup(struct import *im, const char *name);
void im_refuse(struct import *im, const char *fmt, ...) AF_PRINTF(2, 3);
int64_t im_count(const struct val *v); /* INT64_MAX where it is larger */
struct val *im_known(struct import *im, enum af_dtype d, uint32_t rank, const int64_t *dims, const void *bytes);
/* The value's bytes: constant, fed, or computed from such by foldable nodes; NULL where it cannot be known. */
const uint8_t *im_bytes(struct import *im, struct val *v);
/* A parameter as integers (int32 or int64 tensor). *ret_n elements; NULL where unknown: refused with the reason. */
const int64_t *im_ints(struct import *im, struct val *v, uint32_t *ret_n);

/* Attributes. */
const Onnxm__Attribute *im_attr(const struct import *im, const char *name);
int64_t im_attr_int(const struct import *im, const char *name, int64_t otherwise);
double im_attr_float(const struct import *im, const char *name, double otherwise);
/* An ONNX axis made non-negative, in [0, rank). */
int64_t im_axis(struct import *im, int64_t axis, uint32_t rank);

/* Fragment nodes. Shapes and dtypes are inferred; dtype INVALID: as inferred. */
struct val *im_node(struct import *im, enum af_op op, struct val *const *in, uint32_t n, const struct af_attr *attrs, uint32_t n_attrs,
                    enum af_dtype dtype);
struct val *im_unary(struct import *im, enum af_op op, struct val *x);
struct val *im_binary(struct import *im, enum af_op op, struct val *x, struct val *y);
struct val *im_where(struct import *im, struct val *c, struct val *x, struct val *y);
struct val *im_cast(struct import *im, struct val *x, enum af_dtype d);
struct val *im_scalar(struct import *im, enum af_dtype d, double value);
/* op with a scalar of x's dtype on the right. */
struct val *im_binary_scalar(struct import *im, enum af_op op, struct val *x, double value);
struct val *im_clip(struct import *im, struct val *x, double lo, double hi);
struct val *im_reduce(struct import *im, enum af_op op, struct val *x, const int64_t *axes, uint32_t n_axes, bool keepdims);
struct val *im_reshape(struct import *im, struct val *x, uint32_t rank, const int64_t *dims);
struct val *im_expand(struct import *im, struct val *x, uint32_t rank, const int64_t *dims);

/* A value becomes part of the fragment, where it is not yet: an input or a constant. */
void im_enter(struct import *im, struct val *v);
/* Reads a graph within the model's: its initializers and nodes, which see the values around it. */
void im_graph(struct import *im, const Onnxm__Graph *g);
/* The shape and element type that the model states for a value, both known; NULL where it does not. */
const Onnxm__TensorType *im_stated(const struct import *im, const char *name);
/* Adds a node whose inputs have names; the values' names are the outputs'. */
void im_add_node(struct import *im, const struct af_fragment_node *node);
/* The whole of im->node as one opaque node for `reason`; refused where its results' types are not stated or are none of fragments. */
void im_opaque(struct import *im, const char *reason);

struct af_attr im_attr_dims(struct import *im, enum af_attr_key key, const int64_t *dims, uint32_t n);
/* Boxes of x: `start` may be the last element where step is negative; stop is exclusive (-1 included before the first). */
struct im_box {
        int64_t start[AF_LIMIT_RANK], stop[AF_LIMIT_RANK], step[AF_LIMIT_RANK];
};
struct im_box im_box_all(const struct val *x);
/* The box that a Slice (im->node, on in[0..n_in)) takes, in whichever way it says so. False: refused. */
bool im_slice_box(struct import *im, struct val *const *in, uint32_t n_in, struct im_box *ret_box);
/* x itself where the box is all of it. */
struct val *im_slice(struct import *im, struct val *x, const struct im_box *box);
struct val *im_slice_axis(struct import *im, struct val *x, uint32_t axis, int64_t start, int64_t stop);
struct val *im_transpose(struct import *im, struct val *x, const int64_t *perm);
/* 1..64 operands and more: in a tree. */
struct val *im_concat(struct import *im, struct val *const *in, uint32_t n, uint32_t axis);
/* low and high per dimension, not negative; fill is a scalar or NULL for 0. */
struct val *im_pad(struct import *im, struct val *x, const int64_t *low, const int64_t *high, struct val *fill);
/* An index as int32: int64 by way of float32, which keeps every number that can be one (below 2^24) and moves none into that range. */
struct val *im_index32(struct import *im, struct val *index);
/* start + step * index along axis of a tensor of dtype d. */
struct val *im_iota(struct import *im, enum af_dtype d, uint32_t rank, const int64_t *dims, uint32_t axis, int64_t start, int64_t step);

struct handler {
        const char *name;
        void (*run)(struct import *im);
        enum af_op op; /* for runners that serve several rows */
};
void im_run_unary(struct import *im);  /* im->op of the first operand */
void im_run_binary(struct import *im); /* of the first two; before opset 7 the second is placed by `axis` */
/* Tables end with a NULL name. */
extern const struct handler im_ops_simple[], im_ops_composite[], im_ops_norm[], im_ops_shape[], im_ops_move[], im_ops_loss[],
        im_ops_window[], im_ops_resize[], im_ops_train[], im_ops_control[];

#define IM_LARGE_BYTES (1 << 16) /* a fill of more is a broadcast, not a constant */

/* fold.c: evaluates node n on known inputs. NULL where the op is not one that folds. */
struct val *im_fold(struct import *im, const Onnxm__Node *n, struct val *const *in, uint32_t n_in);
bool im_foldable(const char *op);

enum af_dtype im_dtype(int32_t elem_type);
const char *im_elem_name(int32_t elem_type);
/* TensorProto to bytes in arena; dtype INVALID with elem_type where fragments do not have it (float64 comes as such). */
int im_tensor(struct af_arena *arena, const Onnxm__Tensor *t, struct af_onnx_tensor *ret, struct af_diags *diags);
