/* SPDX-License-Identifier: Apache-2.0 */
/* The op table (numeric/ops.def) as C: ids, and what a row says. Common subset of C17 and C++17. */
#pragma once

#include "numeric/dtype.h"

enum af_op {
#define AF_OP(ID, name, cls, min_in, max_in, dtype_rule, shape_rule, acc, dtypes, flags) AF_OP_##ID,
#include "numeric/ops.def"
#undef AF_OP
        AF_N_OPS,
        AF_OP_INVALID = 0xffff
};

enum af_op_class {
        AF_CLASS_ELEMENTWISE,
        AF_CLASS_COMPARE,
        AF_CLASS_SELECT,
        AF_CLASS_CAST,
        AF_CLASS_BROADCAST,
        AF_CLASS_REDUCE,
        AF_CLASS_VIEW,
        AF_CLASS_GATHER,
        AF_CLASS_OPAQUE,
        AF_CLASS_TRANSPOSE,
        AF_CLASS_SLICE,
        AF_CLASS_PAD,
        AF_CLASS_CONCAT,
        AF_CLASS_SPLIT,
        AF_CLASS_IOTA,
        AF_CLASS_SCAN,
        AF_CLASS_COMPOSITE,
};
enum af_op_dtype_rule {
        AF_DTYPES_SAME,
        AF_DTYPES_BOOL_OUT,
        AF_DTYPES_LOGICAL,
        AF_DTYPES_CAST,
        AF_DTYPES_WHERE,
        AF_DTYPES_SUM,
        AF_DTYPES_ANY,
        AF_DTYPES_GATHER,
        AF_DTYPES_TRUE_DIV,
        AF_DTYPES_DECLARED,
        AF_DTYPES_FIRST,
        AF_DTYPES_INDEX,
        AF_DTYPES_MASKED,
        AF_DTYPES_ONE_HOT
};
enum af_op_shape_rule {
        AF_SHAPE_SAME,
        AF_SHAPE_BROADCAST,
        AF_SHAPE_TO_SHAPE,
        AF_SHAPE_REDUCE,
        AF_SHAPE_RESHAPE,
        AF_SHAPE_SQUEEZE,
        AF_SHAPE_UNSQUEEZE,
        AF_SHAPE_GATHER,
        AF_SHAPE_DECLARED,
        AF_SHAPE_TRANSPOSE,
        AF_SHAPE_SLICE,
        AF_SHAPE_PAD,
        AF_SHAPE_CONCAT,
        AF_SHAPE_SPLIT,
        AF_SHAPE_GATHER_ELEMENTS,
        AF_SHAPE_IOTA,
        AF_SHAPE_TILE,
        AF_SHAPE_ARG_REDUCE,
        AF_SHAPE_ONE_HOT,
        AF_SHAPE_NORM,
        AF_SHAPE_CHANNELS
};
enum af_op_accumulate { AF_ACCUMULATE_NONE, AF_ACCUMULATE_F32, AF_ACCUMULATE_SELF };
#define AF_OP_COMMUTES 1u
#define AF_OP_HEAVY    2u
#define AF_OP_SEVERAL  4u

struct af_op_info {
        const char *name;
        enum af_op_class cls;
        uint8_t min_inputs, max_inputs;
        enum af_op_dtype_rule dtype_rule;
        enum af_op_shape_rule shape_rule;
        enum af_op_accumulate accumulate;
        uint32_t dtypes; /* AF_DTYPE_BIT mask of tensor dtypes */
        uint32_t flags;
};

/* Row of op; op < AF_N_OPS. Static memory. */
const struct af_op_info *af_op_info(enum af_op op);
/* Dtype of the result on tensors of d where the op's rule tells it from one dtype; for CAST, SUM, GATHER, WHERE and DECLARED: d. */
enum af_dtype af_op_result_dtype(enum af_op op, enum af_dtype d);
enum af_op af_op_from_name(const char *name);       /* AF_OP_INVALID where unknown */
const char *af_op_class_name(enum af_op_class cls); /* "elementwise" */
