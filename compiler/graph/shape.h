/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules. Private to compiler/graph. */
#pragma once

#include "compiler/graph/internal.h"

/*
 * Applies the op's shape rule to ctx's operands and normal attributes: ret->rank and dims. A -1 of attribute `shape` is replaced in
 * ctx->attrs. DECLARED leaves rank 0 and no dims. Findings go to ctx.
 */
void af_infer_shape(struct af_infer_ctx *ctx, struct af_inferred *ret);

/* The rules that shape_move.c and shape_composite.c hold: as af_infer_shape. */
void af_infer_transpose(struct af_infer_ctx *ctx, struct af_inferred *ret);
void af_infer_slice(struct af_infer_ctx *ctx, struct af_inferred *ret);
void af_infer_pad(struct af_infer_ctx *ctx, struct af_inferred *ret);
void af_infer_concat(struct af_infer_ctx *ctx, struct af_inferred *ret);
void af_infer_split(struct af_infer_ctx *ctx, struct af_inferred *ret);
void af_infer_gather_elements(struct af_infer_ctx *ctx, struct af_inferred *ret);
void af_infer_iota(struct af_infer_ctx *ctx, struct af_inferred *ret);
void af_infer_tile(struct af_infer_ctx *ctx, struct af_inferred *ret);
void af_infer_arg_reduce(struct af_infer_ctx *ctx, struct af_inferred *ret);
void af_infer_one_hot(struct af_infer_ctx *ctx, struct af_inferred *ret);
void af_infer_norm(struct af_infer_ctx *ctx, struct af_inferred *ret);
void af_infer_channels(struct af_infer_ctx *ctx, struct af_inferred *ret);

/* rank expression ids in the ctx's arena; NULL: ctx->error is set. */
uint32_t *af_infer_dims_alloc(struct af_infer_ctx *ctx, uint32_t rank);
/* Whether a <= b for every value of the symbols; false where that cannot be shown. */
bool af_infer_known_le(struct af_infer_ctx *ctx, uint32_t a, uint32_t b);
/* Whether list attribute key has one item per axis of a rank; false with a diagnostic. */
bool af_infer_list_size(struct af_infer_ctx *ctx, enum af_attr_key key, uint32_t rank);
/* Whether item i of attribute key (DIMS) is not negative; with known symbols it must be shown. False with a diagnostic. */
bool af_infer_not_negative(struct af_infer_ctx *ctx, enum af_attr_key key, uint32_t i);
