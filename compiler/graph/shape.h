/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules. Private to compiler/graph. */
#pragma once

#include "compiler/graph/internal.h"

/*
 * Applies the op's shape rule to ctx's operands and normal attributes: ret->rank and dims. A -1 of attribute `shape` is replaced in
 * ctx->attrs. DECLARED leaves rank 0 and no dims. Findings go to ctx.
 */
void af_infer_shape(struct af_infer_ctx *ctx, struct af_inferred *ret);
