/* SPDX-License-Identifier: Apache-2.0 */
/* Compares: in a type that holds every operand exactly and has them; int32 has equality alone, bool none. */
#include "numeric/build_macros.h"

/* int32 has equality alone: x <= y where max(x, y) is y. */
static af_val compare_i32(struct af_builder *b, enum af_op op, af_val x, af_val y) {
        bool swap = op == AF_OP_GE || op == AF_OP_LT; /* y <= x, and its negation */
        bool negate = op == AF_OP_LT || op == AF_OP_GT || op == AF_OP_NE;
        af_val r;

        if (op == AF_OP_EQ || op == AF_OP_NE)
                r = CMP(AF_CMP_EQ, x, y);
        else
                r = CMP(AF_CMP_EQ, MAX(x, y), swap ? x : y);
        return negate ? af_b_unary(b, AF_PRIM_MASK_NOT, r) : r;
}

static af_val compare_bool(struct af_builder *b, enum af_op op, af_val x, af_val y) {
        switch (op) {
        case AF_OP_EQ:
                return af_b_unary(b, AF_PRIM_MASK_NOT, af_b_mask_xor(b, x, y));
        case AF_OP_NE:
                return af_b_mask_xor(b, x, y);
        case AF_OP_LT:
                return MASK_AND(af_b_unary(b, AF_PRIM_MASK_NOT, x), y);
        case AF_OP_GT:
                return MASK_AND(x, af_b_unary(b, AF_PRIM_MASK_NOT, y));
        case AF_OP_LE:
                return MASK_OR(af_b_unary(b, AF_PRIM_MASK_NOT, x), y);
        default:
                return MASK_OR(x, af_b_unary(b, AF_PRIM_MASK_NOT, y));
        }
}

static enum af_cmp mode_of(enum af_op op, bool swapped) {
        switch (op) {
        case AF_OP_EQ:
                return AF_CMP_EQ;
        case AF_OP_NE:
                return AF_CMP_NE;
        case AF_OP_LT:
                return swapped ? AF_CMP_GT : AF_CMP_LT;
        case AF_OP_LE:
                return swapped ? AF_CMP_GE : AF_CMP_LE;
        case AF_OP_GT:
                return swapped ? AF_CMP_LT : AF_CMP_GT;
        default:
                return swapped ? AF_CMP_LE : AF_CMP_GE;
        }
}

/* The dtype that a compare is about: that of the tensors, the widest where they differ; of constants alone, the first's. */
enum af_dtype af_x_operands_type(const struct af_builder *b, unsigned first) {
        enum af_dtype t = AF_DTYPE_INVALID;

        for (unsigned i = first; i < b->n_operands; i++)
                if (!b->operands[i].is_scalar && af_dtype_size(b->operands[i].dtype) > af_dtype_size(t))
                        t = b->operands[i].dtype;
        return t == AF_DTYPE_INVALID ? b->operands[first].dtype : t;
}

af_val af_x_compare(struct af_builder *b, enum af_op op) {
        enum af_dtype t = af_x_operands_type(b, 0), d;
        bool left = b->operands[0].is_scalar, right = b->operands[1].is_scalar;
        af_val x;

        switch ((int)t) {
        case AF_DTYPE_BOOL:
                x = af_b_operand(b, 0, t, AF_DTYPE_MASK);
                return compare_bool(b, op, x, af_b_operand(b, 1, t, AF_DTYPE_MASK));
        case AF_DTYPE_INT64:
                x = af_b_operand(b, 0, t, t);
                return af_x_compare_i64(b, op, x, af_b_operand(b, 1, t, t));
        case AF_DTYPE_INT32:
                x = af_b_operand(b, 0, t, t);
                return compare_i32(b, op, x, af_b_operand(b, 1, t, t));
        case AF_DTYPE_INT8:
        case AF_DTYPE_UINT8:
                d = AF_DTYPE_FLOAT16;
                break;
        case AF_DTYPE_INT16:
                d = AF_DTYPE_FLOAT32;
                break;
        default:
                d = af_x_float_type(b);
                t = d;
                break;
        }
        if (right && !left)
                return af_b_cmps(b, mode_of(op, false), af_b_operand(b, 0, t, d), af_x_scalar_imm(b, 1, t, d));
        if (left && !right)
                return af_b_cmps(b, mode_of(op, true), af_b_operand(b, 1, t, d), af_x_scalar_imm(b, 0, t, d));
        return CMP(mode_of(op, false), af_b_operand(b, 0, t, d), af_b_operand(b, 1, t, d));
}
