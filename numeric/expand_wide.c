/* SPDX-License-Identifier: Apache-2.0 */
/* `fast`: programs whose 16-bit float operands come as float32 and whose result stays that. */
#include "numeric/expand.h"

enum af_dtype af_dtype_widened(enum af_dtype d) {
        return d == AF_DTYPE_FLOAT16 || d == AF_DTYPE_BFLOAT16 ? AF_DTYPE_FLOAT32 : d;
}

int af_expand_wide(enum af_op op, const struct af_expand_operand *operands, unsigned n_operands, enum af_dtype out_dtype,
                   const struct af_expand_attrs *attrs, uint32_t wide_in, bool wide_out, struct af_prog *ret_prog,
                   const char **ret_reason) {
        struct af_expand_operand o[AF_PROG_MAX_OPERANDS];

        if (n_operands > AF_PROG_MAX_OPERANDS) {
                *ret_reason = "wrong number of operands";
                return AF_EXPAND_E_UNSUPPORTED;
        }
        for (unsigned i = 0; i < n_operands; i++) {
                o[i] = operands[i];
                if (!o[i].is_scalar && wide_in >> i & 1)
                        o[i].dtype = af_dtype_widened(o[i].dtype);
        }
        return af_expand(op, o, n_operands, wide_out ? af_dtype_widened(out_dtype) : out_dtype, attrs, ret_prog, ret_reason);
}
