/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "numeric/op.h"

static const struct af_op_info infos[AF_N_OPS] = {
#define AF_OP(ID, name_, cls_, min_, max_, drule, srule, acc, dtypes_, flags_)                                                             \
        [AF_OP_##ID] = {                                                                                                                   \
                .name = name_,                                                                                                             \
                .cls = AF_CLASS_##cls_,                                                                                                    \
                .min_inputs = min_,                                                                                                        \
                .max_inputs = max_,                                                                                                        \
                .dtype_rule = AF_DTYPES_##drule,                                                                                           \
                .shape_rule = AF_SHAPE_##srule,                                                                                            \
                .accumulate = AF_ACCUMULATE_##acc,                                                                                         \
                .dtypes = dtypes_,                                                                                                         \
                .flags = flags_,                                                                                                           \
        },
#include "numeric/ops.def"
#undef AF_OP
};

const struct af_op_info *af_op_info(enum af_op op) {
        return &infos[op];
}

enum af_dtype af_op_result_dtype(enum af_op op, enum af_dtype d) {
        switch (infos[op].dtype_rule) {
        case AF_DTYPES_BOOL_OUT:
        case AF_DTYPES_LOGICAL:
        case AF_DTYPES_ANY:
                return AF_DTYPE_BOOL;
        case AF_DTYPES_TRUE_DIV:
                return af_dtype_kind(d) == 'f' ? d : AF_DTYPE_FLOAT32;
        default:
                return d;
        }
}

enum af_op af_op_from_name(const char *name) {
        for (unsigned i = 0; i < AF_N_OPS; i++)
                if (infos[i].name[0] == name[0] && !strcmp(infos[i].name, name))
                        return (enum af_op)i;
        return AF_OP_INVALID;
}

const char *af_op_class_name(enum af_op_class cls) {
        switch (cls) {
        case AF_CLASS_ELEMENTWISE:
                return "elementwise";
        case AF_CLASS_COMPARE:
                return "compare";
        case AF_CLASS_SELECT:
                return "select";
        case AF_CLASS_CAST:
                return "cast";
        case AF_CLASS_BROADCAST:
                return "broadcast";
        case AF_CLASS_REDUCE:
                return "reduce";
        case AF_CLASS_VIEW:
                return "view";
        case AF_CLASS_GATHER:
                return "gather";
        case AF_CLASS_OPAQUE:
                return "opaque";
        case AF_CLASS_TRANSPOSE:
                return "transpose";
        case AF_CLASS_SLICE:
                return "slice";
        case AF_CLASS_PAD:
                return "pad";
        case AF_CLASS_CONCAT:
                return "concat";
        case AF_CLASS_SPLIT:
                return "split";
        case AF_CLASS_IOTA:
                return "iota";
        case AF_CLASS_SCAN:
                return "scan";
        case AF_CLASS_COMPOSITE:
                return "composite";
        }
        return "invalid";
}
