/* SPDX-License-Identifier: Apache-2.0 */
/* C++ types and scalar literals. A scalar operand has exactly the tensor's type; its bits survive the text. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/codegen/emit.h"
#include "numeric/half.h"

const char *emit_type(enum af_dtype d) {
        switch ((int)d) {
        case AF_DTYPE_INT8:
                return "int8_t";
        case AF_DTYPE_INT16:
                return "int16_t";
        case AF_DTYPE_INT32:
                return "int32_t";
        case AF_DTYPE_INT64:
        case AF_DTYPE_FLOAT64: /* moved as bits */
                return "int64_t";
        case AF_DTYPE_FLOAT16:
                return "half";
        case AF_DTYPE_BFLOAT16:
                return "bfloat16_t";
        case AF_DTYPE_FLOAT32:
                return "float";
        case AF_DTYPE_UINT16:
                return "uint16_t";
        case AF_DTYPE_UINT32:
                return "uint32_t";
        default: /* bool, uint8, mask */
                return "uint8_t";
        }
}

/* Shortest decimal that reads back as the same float, with a point. */
static const char *float_text(struct emit *e, float f) {
        char text[64];
        for (int digits = 6; digits <= 9; digits++) {
                snprintf(text, sizeof(text), "%.*g", digits, (double)f);
                if (strtof(text, NULL) == f)
                        break;
        }
        if (!strpbrk(text, ".e"))
                strcat(text, ".0");
        return emit_text(e, "%sf", text);
}

const char *emit_scalar(struct emit *e, enum af_dtype d, uint64_t bits) {
        uint32_t b32 = (uint32_t)bits;
        float f;
        switch ((int)d) {
        case AF_DTYPE_FLOAT32:
                memcpy(&f, &b32, sizeof(f));
                if (isfinite(f))
                        return float_text(e, f);
                emit_use(e, EMIT_LIB_FLOAT_BITS);
                return emit_text(e, "FloatBits(0x%08" PRIx32 ")", b32);
        case AF_DTYPE_FLOAT16:
                f = af_f16_to_f32((uint16_t)bits);
                if (isfinite(f))
                        return emit_text(e, "(half)%s", float_text(e, f));
                emit_use(e, EMIT_LIB_HALF_BITS);
                return emit_text(e, "HalfBits(0x%04x)", (unsigned)(uint16_t)bits);
        case AF_DTYPE_INT16:
                return emit_text(e, "(int16_t)%d", (int)(int16_t)bits);
        case AF_DTYPE_UINT16:
        case AF_DTYPE_BFLOAT16: /* moved as bits */
                return emit_text(e, "(uint16_t)0x%04x", (unsigned)(uint16_t)bits);
        case AF_DTYPE_INT32:
                return b32 == 0x80000000u ? "(int32_t)(-2147483647 - 1)" : emit_text(e, "(int32_t)%" PRId32, (int32_t)b32);
        case AF_DTYPE_UINT32:
                return emit_text(e, "(uint32_t)0x%08" PRIx32, b32);
        default:
                emit_fail(e, "a scalar of a type that no call takes");
                return "0";
        }
}
